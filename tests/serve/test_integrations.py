"""LangChain, LlamaIndex and Haystack with their real packages; the tests of one that is not installed are skipped."""

from __future__ import annotations

import pickle
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_span_reader import make_reader

import quoth
from quoth.errors import CorpusNotFoundError, InputError
from quoth_serve import shared
from quoth_serve.shared import Searching
from quoth_sources.source_map import encode
from tiny import TEXT, tiny_corpus, tiny_npm

pytestmark = pytest.mark.filterwarnings("ignore")
QUERY = "What is the capital of France?"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The packages warn about their own parts while they are imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path_factory.mktemp("corpora") / "c.quoth", splitter="words:10")
    made.add(
        quoth.Document(f"d{n}", f"T{n}", text, {"year": n, "start": "own"}, encode("line", [(0, len(text), n + 1)]))
        for n, text in enumerate(TEXT)
    )
    return made


def test_a_passage_knows_its_place(corpus: quoth.Corpus) -> None:
    found = Searching(corpus.path).search(QUERY, 3)
    assert len(found) == 3
    for each in found:
        name, start, end = (each.metadata[key] for key in ("document_id", "start", "end"))  # not the document's own
        assert corpus.document(name).text[start:end] == each.text
        assert each.id == f"{name}#{start}-{end}"
        assert each.metadata["year"] == int(name[1:])
        assert each.metadata["location"] == {"line": int(name[1:]) + 1}
        assert "read_as" not in each.metadata


def test_a_misspelt_search_says_what_was_read(corpus: quoth.Corpus) -> None:
    assert {each.metadata["read_as"] for each in Searching(corpus.path).search("capitel", 3)} == {"capital"}


def test_a_search_follows_the_corpus_and_refuses_what_it_does_not_know(corpus: quoth.Corpus, tmp_path: Path) -> None:
    live = quoth.Corpus.create(tmp_path / "live.quoth")
    live.add([quoth.Document("a", "", "One text.")])
    searching = Searching(live.path)
    live.add([quoth.Document("b", "", "Zanzibar.")])
    assert [each.metadata["document_id"] for each in searching.search("zanzibar", 5)] == ["b"]
    with pytest.raises(InputError, match="mode is 'sparse'; it must be one of auto, bm25, dense, hybrid"):
        Searching(live.path, "sparse")
    with pytest.raises(InputError, match="mode 'dense' searches by vectors; name their model"):
        Searching(live.path, "dense")


def test_only_documents_that_meet_a_condition_are_found(corpus: quoth.Corpus, tmp_path: Path) -> None:
    live = quoth.Corpus.create(tmp_path / "live.quoth")
    live.add(quoth.Document(f"d{n}", "", "Zanzibar.", {"year": n}) for n in range(3))
    for searching in (each := Searching(live.path, where="year > 0"), pickle.loads(pickle.dumps(each))):
        assert {one.metadata["document_id"] for one in searching.search("zanzibar", 5)} == {"d1", "d2"}
    live.add([quoth.Document("d3", "", "Zanzibar.", {"year": 3}), quoth.Document("d4", "", "Zanzibar.", {"year": 0})])
    assert {one.metadata["document_id"] for one in each.search("zanzibar", 5)} == {"d1", "d2", "d3"}
    with pytest.raises(InputError, match="no document has a field 'yeer'; did you mean year"):
        Searching(corpus.path, where="yeer = 1")


def test_a_search_keeps_its_snapshot_while_others_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frameworks search from several threads. Compaction gives every passage a new row."""
    live = quoth.Corpus.create(tmp_path / "live.quoth")
    for name in ("a", "b"):
        live.add([quoth.Document(name, "", "The raven sat above the door.")])
    searching = Searching(live.path)
    passage, others = searching.corpus.passage, list[threading.Thread]()

    def slow(row: int) -> quoth.Passage:
        if not others:
            live.compact()
            others.append(threading.Thread(target=searching.search, args=("raven", 1)))
            others[0].start()
            others[0].join(1)  # it waits for this search
        return passage(row)

    monkeypatch.setattr(searching.corpus, "passage", slow)
    assert [each.metadata["document_id"] for each in searching.search("raven", 2)] == ["a", "b"]
    others[0].join()


def test_a_corpus_that_was_made_anew_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, folder = tmp_path / "live.quoth", tiny_npm(tmp_path / "npm")
    monkeypatch.setattr(shared, "Reader", OneReader(tmp_path))

    def made(text: str) -> None:
        shutil.rmtree(place, ignore_errors=True)
        corpus = quoth.Corpus.create(place)
        corpus.add([quoth.Document("d", "", text, {"year": 1}), quoth.Document("e", "", text, {"year": 2})])
        quoth.NPM.from_pretrained(folder, corpus).embed("fp32")

    made("The Seine flows through Paris.")
    words, vectors = Searching(place, where="year = 1"), Searching(place, "dense", str(folder))
    asking = shared.Asking(place, where="year = 2")
    for text in ("The Seine flows through Paris.", "The Spree flows through Berlin.", "The Seine flows through Rome."):
        made(text)
        assert [each.text for each in words.search("flows", 2)] == [text]
        assert [each.text for each in vectors.search("flows", 2)] == [text, text]
        answers = asking.ask_corpus("What flows?")["answers"]
        assert {(each["places"][0]["document_id"], each["places"][0]["context"]) for each in answers} == {("e", text)}
        assert asking.verify_quote(text)["num_places"] == 1
    shutil.rmtree(place)
    for gone in (lambda: words.search("flows", 2), lambda: asking.verify_quote("flows")):
        with pytest.raises(CorpusNotFoundError, match="not found"):
            gone()


def test_vectors_are_searched_by_a_model(corpus: quoth.Corpus, tmp_path: Path) -> None:
    folder = tiny_npm(tmp_path / "npm")
    model = quoth.NPM.from_pretrained(folder, corpus)
    model.embed("fp32")
    found = Searching(corpus.path, "dense", str(folder)).search(QUERY, 2)
    assert [each.metadata["passage"] for each in found] == [hit.passage.row for hit in model.search(QUERY, 2, "dense")]


try:
    from langchain_tests.integration_tests import RetrieversIntegrationTests as Standard
except ImportError:

    class Standard:  # type: ignore[no-redef]
        """Stands in for the standard tests where they are not installed."""

        @pytest.mark.skip(reason="langchain-tests is not installed: pip install langchain-tests")
        def test_standard(self) -> None:
            """Skipped."""


@pytest.fixture
def anyio_backend() -> str:
    """What runs an asynchronous test."""
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def given(corpus: quoth.Corpus) -> None:
    TestLangChain.path = str(corpus.path)


@pytest.mark.anyio
class TestLangChain(Standard):
    """LangChain's own tests of retrievers."""

    path = ""

    @property
    def retriever_constructor(self) -> Any:
        from quoth_serve.langchain import QuothRetriever

        return QuothRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"corpus": self.path}

    @property
    def retriever_query_example(self) -> str:
        return QUERY


def test_langchain_documents_are_the_passages(corpus: quoth.Corpus) -> None:
    pytest.importorskip("langchain_core", reason="the extra langchain is not installed")
    from quoth_serve.langchain import QuothRetriever

    found = QuothRetriever(corpus=str(corpus.path), k=3).invoke(QUERY)
    wanted = Searching(corpus.path).search(QUERY, 3)
    assert [(each.id, each.page_content, each.metadata) for each in found] == [
        (each.id, each.text, each.metadata) for each in wanted
    ]
    with pytest.raises(InputError, match="mode is 'sparse'"):
        QuothRetriever(corpus=str(corpus.path), mode="sparse")
    found = QuothRetriever(corpus=str(corpus.path), where="year = 1").invoke(QUERY)
    assert {each.metadata["document_id"] for each in found} == {"d1"}


def test_llama_index_nodes_know_their_characters(corpus: quoth.Corpus) -> None:
    pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")
    from quoth_serve.llama_index import QuothRetriever

    found = QuothRetriever(corpus.path, k=3).retrieve(QUERY)
    assert len(found) == 3
    for each, wanted in zip(found, Searching(corpus.path).search(QUERY, 3), strict=True):
        node = each.node
        source = corpus.document(node.source_node.node_id)
        assert source.text[node.start_char_idx : node.end_char_idx] == node.text == wanted.text
        assert (node.node_id, each.score, node.metadata["title"]) == (wanted.id, wanted.metadata["score"], source.title)


@pytest.fixture
def component(corpus: quoth.Corpus, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("haystack", reason="the extra haystack is not installed")
    from quoth_serve import haystack

    reader = make_reader(tmp_path_factory.mktemp("reader") / "b", max_tokens=128)

    class Tiny:
        @staticmethod
        def from_pretrained(name: str, given: quoth.Corpus) -> quoth.Reader:
            return quoth.Reader(reader, [given], name)

    monkeypatch.setattr(haystack, "Reader", Tiny)
    return haystack.QuothReader(str(corpus.path), top_k=3)


def test_haystack_answers_are_slices_of_document_and_context(component: Any, corpus: quoth.Corpus) -> None:
    answers = component.run(query=QUERY)["answers"]
    assert len(answers) == 3
    assert len(component.run(query=QUERY, top_k=1)["answers"]) == 1
    for each in answers:
        place, inside = each.document_offset, each.context_offset
        assert each.data == each.document.content[place.start : place.end]
        assert each.data == each.context[inside.start : inside.end]
        assert each.document.content == corpus.document(each.document.id).text
        assert (each.query, each.meta["corpus"]) == (QUERY, "c")
        assert each.meta["location"] == {"line": int(each.document.id[1:]) + 1}
        assert 0 < each.score < 1
    assert [each.score for each in answers] == sorted((each.score for each in answers), reverse=True)


def test_haystack_sentences_are_documents_with_their_place(component: Any, corpus: quoth.Corpus) -> None:
    found = component.run(query=QUERY)["sentences"]
    expected = component._reader.ask(QUERY).sentences
    assert found
    assert [each.score for each in found] == pytest.approx([each.probability for each in expected], rel=1e-4)
    for each in found:
        document = corpus.document(each.meta["document_id"])
        assert each.content == document.text[each.meta["start"] : each.meta["end"]]
        assert (each.meta["year"], each.meta["title"], each.meta["corpus"]) == (
            document.metadata["year"],
            document.title,
            "c",
        )
        assert each.meta["location"] == {"line": int(document.id[1:]) + 1}


def test_a_haystack_run_keeps_its_snapshot_while_another_moves_on(
    component: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tiny_corpus(tmp_path / "own.quoth")
    reads = type(component)(str(own.path))
    before = [each.data for each in reads.run(query=QUERY)["answers"]]
    ask, moved = quoth.Reader.ask, list[Any]()

    def slow(reader: quoth.Reader, query: str, **options: Any) -> Any:
        found = ask(reader, query, **options)
        if not moved:
            moved.append(own.replace([replace(each, text=f"Indeed: {each.text}") for each in own.documents()]))
            moved.append(reads.run(query=QUERY)["answers"])
        return found

    monkeypatch.setattr(quoth.Reader, "ask", slow)
    assert [each.data for each in reads.run(query=QUERY)["answers"]] == before
    assert all(each.document.content.startswith("Indeed: ") for each in moved[1])


def test_haystacks_answers_have_the_question_that_was_read(component: Any) -> None:
    assert {each.query for each in component.run(query="Capitel?")["answers"]} == {"Capital?"}


def test_a_haystack_pipeline_is_stored_and_run(component: Any) -> None:
    from haystack import Pipeline

    pipeline = Pipeline()
    pipeline.add_component("reader", component)
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["quoth_serve.haystack"])
    run = [each.run({"reader": {"query": QUERY}})["reader"]["answers"] for each in (pipeline, again)]
    assert [each.data for each in run[0]] == [each.data for each in run[1]]


def test_guesses_are_dropped_if_that_is_wanted(component: Any, corpus: quoth.Corpus) -> None:
    from quoth_serve.haystack import QuothReader

    component.warm_up()
    ask = component._reader.ask
    component._reader.ask = lambda *args, **options: ask(*args, min_probability=1.0, **options)
    for each in component.run(query=QUERY)["answers"]:
        assert (each.meta["status"], each.meta["abstained"]) == ("unsure", True)
    component.drop_guesses = True
    assert component.run(query=QUERY)["answers"] == []
    assert QuothReader(str(corpus.path)).drop_guesses is False


class OneReader:
    """Stands in for the class of readers: a tiny one."""

    def __init__(self, folder: Path) -> None:
        self.reader = make_reader(folder / "b", max_tokens=128)

    def from_pretrained(self, name: str, given: quoth.Corpus) -> quoth.Reader:
        return quoth.Reader(self.reader, [given], name)


@pytest.fixture
def told(corpus: quoth.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The reader's best answer and sentence as a tool tells them."""
    one = OneReader(tmp_path)
    monkeypatch.setattr(shared, "Reader", one)
    found = one.from_pretrained("", corpus).ask(QUERY, top_k=2)
    best, sentence = found[0], found.sentences[0]

    def places(place: quoth.Evidence) -> list[dict[str, Any]]:
        where = {"document_id": place.document_id, "title": place.title, "start": place.start, "end": place.end}
        quotation = corpus.document(place.document_id).text[place.start : place.end]
        line = int(place.document_id[1:]) + 1
        return [{"quotation": quotation, **where, "context": place.context, "location": {"line": line}}]

    answer = {
        "answer": best.text,
        "probability": pytest.approx(best.probability, rel=1e-4),
        "status": best.status,
        "num_places": best.num_places,
        "places": places(best.evidence[0]),
    }
    likely = pytest.approx(sentence.probability, rel=1e-4)
    return [answer, {"sentence": sentence.text, "probability": likely, "places": places(sentence.evidence[0])}]


def check_verified(verify: Callable[[str], Any], corpus: quoth.Corpus) -> None:
    """A tool that verifies knows a quotation from what is only near to it."""
    quotation = "The Seine flows through Paris"
    found = verify("The Seine  flows through Paris")
    assert (found["occurs"], found["num_places"], found["nearest"]) == (True, 1, [])
    place = found["places"][0]
    assert corpus.document("d1").text[place["start"] : place["end"]] == place["quotation"] == quotation
    found = verify("The Seine flows through Rome")
    assert (found["occurs"], found["places"]) == (False, [])
    assert found["nearest"][0]["document_id"] == "d1"


def test_langchain_tools_ask_and_verify(corpus: quoth.Corpus, told: list[dict[str, Any]]) -> None:
    pytest.importorskip("langchain_core", reason="the extra langchain is not installed")
    from quoth_serve.langchain import ask_tool, verify_tool

    ask, verify = ask_tool(corpus.path, top_k=2), verify_tool(corpus.path)
    assert (ask.name, list(ask.args)) == ("ask_corpus", ["question"])
    assert (verify.name, list(verify.args)) == ("verify_quote", ["text"])
    assert "the corpus 'c'" in ask.description
    found = ask.invoke({"question": QUERY})
    assert len(found["answers"]) == 2
    assert [found["answers"][0], found["sentences"][0]] == told
    assert found["read_as"] == ""
    assert ask.invoke({"question": "Capitel?"})["read_as"] == "Capital?"
    check_verified(lambda text: verify.invoke({"text": text}), corpus)
    part = ask_tool(corpus.path, where="year = 2").invoke({"question": QUERY})
    assert {place["document_id"] for each in part["answers"] for place in each["places"]} == {"d2"}
    assert ask.invoke({"question": " "}).startswith("the question is empty")  # told, not raised
    message = verify.invoke({"type": "tool_call", "id": "1", "name": "verify_quote", "args": {"text": "raven"}})
    assert '"occurs": true' in message.content


def test_llama_index_tools_ask_and_verify(corpus: quoth.Corpus, told: list[dict[str, Any]]) -> None:
    pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")
    from quoth_serve.llama_index import ask_tool, verify_tool

    ask, verify = ask_tool(corpus.path, top_k=2), verify_tool(corpus.path)
    assert (ask.metadata.name, verify.metadata.name) == ("ask_corpus", "verify_quote")
    assert "the corpus 'c'" in ask.metadata.description
    found = ask.call(question=QUERY).raw_output
    assert len(found["answers"]) == 2
    assert [found["answers"][0], found["sentences"][0]] == told
    check_verified(lambda text: verify.call(text=text).raw_output, corpus)
    part = ask_tool(corpus.path, where="year = 2").call(question=QUERY).raw_output
    assert {place["document_id"] for each in part["answers"] for place in each["places"]} == {"d2"}


def test_llama_index_shows_a_model_no_places(corpus: quoth.Corpus) -> None:
    pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")
    from llama_index.core.schema import MetadataMode

    from quoth_serve.llama_index import QuothRetriever

    node = QuothRetriever(corpus.path, k=1).retrieve("Seine")[0].node
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        head, *text = node.get_content(mode).split("\n\n")
        assert {*head.splitlines()} == {"year: 1", "title: T1"}
        assert text == [node.text]
    assert node.metadata["document_id"] == "d1"
    found = QuothRetriever(corpus.path, where="year = 2").retrieve(QUERY)
    assert {each.node.metadata["document_id"] for each in found} == {"d2"}


def test_a_haystack_retriever_finds_passages_in_a_stored_pipeline(corpus: quoth.Corpus) -> None:
    pytest.importorskip("haystack", reason="the extra haystack is not installed")
    from haystack import Pipeline

    from quoth_serve.haystack import QuothRetriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", QuothRetriever(str(corpus.path), top_k=3))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["quoth_serve.haystack"])
    wanted = Searching(corpus.path).search(QUERY, 3)
    for each in (pipeline, again):
        found = each.run({"retriever": {"query": QUERY}})["retriever"]["documents"]
        assert [(one.id, one.content) for one in found] == [(one.id, one.text) for one in wanted]
        assert [{**one.meta, "score": one.score} for one in found] == [one.metadata for one in wanted]
        assert len(each.run({"retriever": {"query": QUERY, "top_k": 1}})["retriever"]["documents"]) == 1
    [only] = QuothRetriever(str(corpus.path), where="year = 2").run(QUERY)["documents"]
    assert only.meta["document_id"] == "d2"
    with pytest.raises(InputError, match="mode is 'sparse'"):
        QuothRetriever(str(corpus.path), mode="sparse").warm_up()
