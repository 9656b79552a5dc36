"""One question gets one answer, whichever door it comes through: 61 questions over documents of several kinds."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth.answers.evidence import Source
from quoth.cli.main import main
from quoth.corpus.sync import sync
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth_serve.huggingface import pipeline

HOUSEHOLD = Path(__file__).parents[1] / "benchmarks" / "questions" / "household"
QUESTIONS = [
    json.loads(line)["question"] for line in (HOUSEHOLD / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
MISSPELT = ["Who repairs the heatng?", "How many pounds is a rell of thread?"]
ASKED = [*QUESTIONS, *MISSPELT]
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """What the network marks in a passage is computed once for all doors, by the fastest of its forms."""
    seen, read = dict[tuple[str, tuple[int, ...]], Any](), SpanReader.read_enough
    fast = open_reader("quoth-reader", dtype="int8")

    def remembered(
        _: SpanReader, queries: Sequence[str], sources: Sequence[Sequence[Source]], *_known: Any, **_more: Any
    ) -> Any:
        keys = [
            (query, tuple(each.passage.row for each in group)) for query, group in zip(queries, sources, strict=True)
        ]
        for key, group in zip(keys, sources, strict=True):
            if key not in seen:  # alone: in int8 the others of a batch change the last digits
                [seen[key]] = read(fast, [key[0]], [group])
        return [seen[key] for key in keys]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SpanReader, "read_enough", remembered)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    """With vectors of passages, which REALM requires and the others use as well."""
    made = quoth.Corpus.create(tmp_path_factory.mktemp("corpora") / "household.quoth")
    sync(made, HOUSEHOLD / "corpus")
    quoth.REALM.from_pretrained("quoth-realm", corpus=made).embed()
    return made


@pytest.fixture(scope="module")
def expected(corpus: quoth.Corpus) -> list[dict[str, Any]]:
    reader = quoth.Reader.from_pretrained("quoth-reader", corpus=corpus)
    return [told(each) for each in reader.ask(ASKED)]


def told(found: quoth.Predictions) -> dict[str, Any]:
    """What every door has to say of a question."""
    best = found[0]
    place = best.evidence[0]
    sentences = [each.text for each in found.sentences]
    answer = fact(best.text, best.probability, best.status, place.document_id, place.start, place.end, sentences)
    look_in = found.look_in and {"document_id": found.look_in.document_id, "start": found.look_in.start}
    return answer | {"whole": found.status, "look_in": spot(look_in)}


def spot(place: dict[str, Any] | None) -> tuple[Any, Any] | None:
    """Where the most relevant passage begins, if one is told."""
    return (place["document_id"], place["start"]) if place else None


def fact(*parts: Any) -> dict[str, Any]:
    names = ("answer", "probability", "status", "document_id", "start", "end", "sentences")
    return dict(zip(names, parts, strict=False))


def same(found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> None:
    """Equal in what a door tells."""
    assert len(found) == len(expected) == len(ASKED)
    for question, one, other in zip(ASKED, found, expected, strict=True):
        wanted = {name: other[name] for name in one} | {"probability": pytest.approx(other["probability"], abs=1e-6)}
        assert one == wanted, question


def of_prediction(record: dict[str, Any], sentences: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """The same of a prediction as `to_dict` gives it, and of its sentences if they are told."""
    place = record["evidence"][0]
    parts = [record["answer"], record["score"], record["status"], place["document_id"], place["start"], place["end"]]
    return fact(*parts, *([] if sentences is None else [[each["text"] for each in sentences]]))


def of_tool(reply: dict[str, Any]) -> dict[str, Any]:
    """The same of what a framework's tool says."""
    best = reply["answers"][0]
    place = best["places"][0]
    parts = [best["answer"], best["probability"], best["status"], place["document_id"], place["start"], place["end"]]
    return fact(*parts, [each["sentence"] for each in reply["sentences"]]) | {"whole": reply["status"]}


def of_mcp(reply: dict[str, Any]) -> dict[str, Any]:
    """The same of what an assistant is told."""
    best = reply["answers"][0]
    place = best["places"][0]
    parts = [best["text"], best["probability"], best["status"], place["document_id"], place["start"], place["end"]]
    more = {"whole": reply["status"], "look_in": spot(reply["look_in"])}
    return fact(*parts, [each["text"] for each in reply["sentences"]]) | more


def test_python_one_by_one(corpus: quoth.Corpus, expected: list[dict[str, Any]]) -> None:
    reader = quoth.load("quoth-reader", corpus=corpus)
    same([told(reader.ask(each)) for each in ASKED], expected)
    assert reader.ask(MISSPELT[0]).read_as == "Who repairs the heating?"


def test_realm(corpus: quoth.Corpus, expected: list[dict[str, Any]]) -> None:
    realm = quoth.REALM.from_pretrained("quoth-realm", corpus=corpus)
    same([*map(told, realm.ask(ASKED))], expected)


def test_the_pipeline(corpus: quoth.Corpus, expected: list[dict[str, Any]]) -> None:
    same([*map(of_prediction, pipeline("question-answering", corpus=corpus)(ASKED))], expected)


def test_the_command_line(
    corpus: quoth.Corpus,
    expected: list[dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(ASKED).encode())))
    assert main(["ask", str(corpus.path), "-", "--json", "--top-k", "1"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [of_prediction(each, each["sentences"]) | {"look_in": spot(each.get("look_in"))} for each in records]
    same([each | {"whole": each.pop("status")} for each in found], expected)


def test_http(corpus: quoth.Corpus, expected: list[dict[str, Any]]) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from quoth_serve.app import create_app
    from quoth_serve.library import Library, Models
    from quoth_serve.security import Access

    reader = quoth.Reader.from_pretrained("quoth-reader")
    library = Library(Models(quoth.NPM.from_pretrained("quoth-mini"), reader), [corpus.path])
    with testclient.TestClient(create_app(library, None, Access(hosts=("testserver",)))) as client:
        replies = [client.post("/v1/ask", json={"question": each}).json() for each in ASKED]
    found = [
        of_prediction(each["predictions"][0], each["sentences"])
        | {"whole": each["status"], "look_in": spot(each["look_in"])}
        for each in replies
    ]
    same(found, expected)


def test_mcp(corpus: quoth.Corpus, expected: list[dict[str, Any]]) -> None:
    anyio, mcp = pytest.importorskip("anyio"), pytest.importorskip("mcp")
    from quoth_serve.mcp import Tools, server

    def load(corpora: Sequence[quoth.Corpus]) -> Any:
        return quoth.Reader.from_pretrained("quoth-reader", corpus=list(corpora))

    made = server("household", Tools([corpus], load, load))  # type: ignore[arg-type]

    async def ask() -> list[Any]:
        async with mcp.Client(made) as client:
            return [(await client.call_tool("ask", {"question": each})).structured_content for each in ASKED]

    same([*map(of_mcp, anyio.run(ask))], expected)


def _langchain(corpus: quoth.Corpus) -> Callable[[str], dict[str, Any]]:
    tool = pytest.importorskip("quoth_serve.langchain").ask_tool(str(corpus.path))
    return lambda question: of_tool(tool.invoke({"question": question}))


def _llama_index(corpus: quoth.Corpus) -> Callable[[str], dict[str, Any]]:
    tool = pytest.importorskip("quoth_serve.llama_index").ask_tool(str(corpus.path))
    return lambda question: of_tool(tool.call(question=question).raw_output)


def _haystack(corpus: quoth.Corpus) -> Callable[[str], dict[str, Any]]:
    made = pytest.importorskip("quoth_serve.haystack").QuothReader(str(corpus.path))

    def call(question: str) -> dict[str, Any]:
        best = made.run(question)["answers"][0]
        place, facts = best.document_offset, best.meta
        return fact(" ".join(best.data.split()), best.score, facts["status"], best.document.id, place.start, place.end)

    return call


@pytest.mark.parametrize("door", [_langchain, _llama_index, _haystack])
def test_a_framework(
    corpus: quoth.Corpus,
    expected: list[dict[str, Any]],
    door: Callable[[quoth.Corpus], Callable[[str], dict[str, Any]]],
) -> None:
    same([*map(door(corpus), ASKED)], expected)
