"""The service over a real corpus: the same JSON as the command line prints, batches, new snapshots, limits, tokens."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from jsonschema import Draft202012Validator

import quoth
from quoth.cli.output import print_json
from quoth.errors import CorruptionError, DamageWarning, EncoderMismatchError, InputError, LockedError

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from starlette.testclient import TestClient
from test_span_reader import make_reader

from quoth.corpus import snapshot as snapshots
from quoth.corpus.exact.quotes import word_ranges
from quoth.index.retriever import Retriever
from quoth_serve import app as app_module
from quoth_serve import replies
from quoth_serve.app import create_app
from quoth_serve.batches import BatchQueue, Done
from quoth_serve.fields import told
from quoth_serve.library import Library, Models
from quoth_serve.limits import Limits
from quoth_serve.problems import BusyError, Problem
from quoth_serve.security import Access, JSONLines
from tiny import TEXT, tiny_npm, tiny_realm

TOKEN = "correct horse"
HERE = Access(hosts=("testserver",))
WRITING = Access(TOKEN, True, ("testserver",))
"""For a client that has the token."""
BLANK = "the capital of [MASK] is above the river"
QUESTION = "What is the capital of France?"


def documents(count: int = len(TEXT)) -> list[quoth.Document]:
    return [quoth.Document(f"d/{i}", f"T{i}", f"{TEXT[i % len(TEXT)]}\n\n{TEXT[0]}") for i in range(count)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("models")
    npm = quoth.NPM.from_pretrained(tiny_npm(folder / "tiny"))
    return Models(npm, quoth.Reader(make_reader(folder / "b", max_tokens=128), name="tiny-reader"))


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    corpus = quoth.Corpus.create(tmp_path / "notes.quoth")
    corpus.add(documents())
    return corpus


@pytest.fixture
def start(models: Models) -> Iterator[Callable[..., TestClient]]:
    """Starts a service over corpora; all are stopped in the end."""
    started = ExitStack()

    def call(*corpora: quoth.Corpus, access: Access = HERE, limits: Limits | None = None, **more: Any) -> TestClient:
        library = Library(models, [each.path for each in corpora])
        app = create_app(library, limits, access, **more)
        headers = {"authorization": f"Bearer {TOKEN}"} if access is WRITING else {}
        return started.enter_context(TestClient(app, raise_server_exceptions=False, headers=headers))

    with started:
        yield call


def printed(capsys: pytest.CaptureFixture[str], records: list[Any]) -> list[Any]:
    """Records as `--json` prints them."""
    for each in records:
        print_json(each.to_dict())
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_replies_are_what_the_command_line_prints(
    models: Models, corpus: quoth.Corpus, start: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    client, over = start(corpus), models.over([corpus])
    fill = client.post("/v1/fill", json={"text": BLANK, "top_k": 3}).json()
    assert fill["predictions"] == printed(capsys, over.fills.fill(BLANK, top_k=3))
    assert fill["snapshots"] == {"notes": 1}
    ask = client.post("/v1/ask", json={"question": QUESTION, "top_k": 3, "passages": 4}).json()
    asked = over.asks.ask(QUESTION, top_k=3, passages=4)
    assert ask["predictions"] == printed(capsys, asked)
    assert ask["sentences"] == printed(capsys, asked.sentences)
    assert ask["sentences"]
    assert ask["read_as"] == ""
    labels = {"a": ["capital"], "b": ["river"]}
    classify = client.post("/v1/classify", json={"text": "Paris", "labels": labels}).json()
    assert classify["predictions"] == printed(capsys, over.fills.classify("Paris", labels))
    search = client.post("/v1/search", json={"query": "capital of Germany", "k": 2}).json()
    assert search["passages"] == printed(capsys, over.fills.search("capital of Germany", 2))
    for model, reply in ((replies.Predictions, fill), (replies.Answers, ask), (replies.Hits, search)):
        model.model_validate(reply)


def test_a_misspelt_question_is_answered_as_it_was_meant(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    meant, slipped = (client.post("/v1/ask", json={"question": each}).json() for each in ("Capital?", "Capitel?"))
    assert slipped == meant | {"read_as": "Capital?"}
    both = client.post("/v1/ask", json={"question": ["Capital?", "Capitel?"]}).json()
    assert both["read_as"] == ["", "Capital?"]
    replies.Answers.model_validate(both)
    found, slipped = (
        client.post("/v1/search", json={"query": each, "words": True}).json() for each in ("capital", "capitel")
    )
    assert found["passages"][0]["words"]
    assert slipped == found | {"read_as": "capital"}


def test_every_answer_shows_where_it_occurs(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    for answer in client.post("/v1/ask", json={"question": QUESTION}).json()["predictions"]:
        assert answer["evidence"]
        for place in answer["evidence"]:
            where = {"id": place["document_id"], "start": place["start"], "end": place["end"]}
            shown = client.get("/v1/documents", params=where).json()
            assert replies.DocumentReply.model_validate(shown)
            assert " ".join(shown["text"].split()).casefold() == answer["text"].casefold()


def test_several_texts_are_answered_in_their_order(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, limits=Limits(batch=2))
    texts = [BLANK, "[MASK] sat", "Berlin is the [MASK]."]
    together = client.post("/v1/fill", json={"text": texts, "top_k": 2}).json()["predictions"]
    alone = [client.post("/v1/fill", json={"text": each, "top_k": 2}).json()["predictions"] for each in texts]
    assert [[each["text"] for each in found] for found in together] == [[each["text"] for each in x] for x in alone]


def test_where_the_time_went(corpus: quoth.Corpus, start: Any) -> None:
    timing = start(corpus).post("/v1/fill", json={"text": BLANK}).headers["server-timing"]
    assert [each.split(";")[0] for each in timing.split(", ")] == [
        "wait", "encode", "search", "expand", "score", "explain", "work", "batch"
    ]  # fmt: skip


def test_a_new_snapshot_is_served_and_the_last_one_can_be_asked(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    library = client.app.state.service.backend
    before = library.view()
    corpus.replace([quoth.Document("d/1", "T1", "Lyon is the capital of Gaul.")])
    assert library.refresh()
    assert not library.refresh()
    assert before.corpora[0].snapshot == 1
    query = {"query": "Lyon"}
    assert client.post("/v1/search", json=query).json()["snapshots"] == {"notes": 2}
    assert len(client.post("/v1/search", json=query).json()["passages"]) == 1
    old = client.post("/v1/search", json=query | {"corpus": "notes", "snapshot": 1}).json()
    assert (old["passages"], old["snapshots"]) == ([], {"notes": 1})
    assert client.get("/v1/corpus").json()["corpora"][0]["snapshots"] == [1, 2]


def test_a_condition_on_documents(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    library = client.app.state.service.backend
    corpus.add(quoth.Document(f"y{year}", "", f"Lyon in {year}.", {"year": year}) for year in (2023, 2024))
    assert library.refresh()

    def found(where: str) -> list[str]:
        reply = client.post("/v1/search", json={"query": "Lyon", "mode": "bm25", "where": where}).json()
        return [each["document_id"] for each in reply["passages"]]

    assert found("year >= 2024") == ["y2024"]
    assert library.view(where="year >= 2024") is library.view(where="year >= 2024")
    corpus.add([quoth.Document("y2025", "", "Lyon in 2025.", {"year": 2025})])
    assert library.refresh()
    assert set(found("year >= 2024")) == {"y2024", "y2025"}
    reply = client.post("/v1/ask", json={"question": "What is in 2023?", "where": "year = 2023"}).json()
    assert {place["document_id"] for one in reply["predictions"] for place in one["evidence"]} == {"y2023"}
    wrong = client.post("/v1/search", json={"query": "Lyon", "where": "yaer > 2"})
    assert wrong.status_code == 400
    assert "no document has a field 'yaer'; did you mean year?" in wrong.json()["detail"]
    corpus.add([quoth.Document("soon", "", "Lyon soon.", {"year": "2024, maybe"})])
    assert library.refresh()
    for _ in "12":  # made, and kept
        reply = client.post("/v1/search", json={"query": "Lyon", "where": "year >= '2024'"}).json()
        assert {each["document_id"] for each in reply["passages"]} == {"y2024", "y2025"}
        assert reply["notes"] == ["1 value of `year` is not a date, such as '2024, maybe'"]
    assert client.post("/v1/search", json={"query": "Lyon"}).json()["notes"] == []


def test_the_fields_that_a_condition_can_go_by(
    corpus: quoth.Corpus, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def tally(records: Any) -> Any:
        counted.append(1)
        return count(records)

    count = snapshots.tally
    monkeypatch.setattr(snapshots, "tally", tally)
    metadata: list[dict[str, Any]] = [
        {"source": "minutes", "date": "2024-05-01", "by": {"name": "Ann"}, "open": True},
        {"source": "minutes", "date": "2023", "pages": 7},
        {"source": "letters", "pages": "8.5", "n" * 201: 1},
    ]
    corpus.add(quoth.Document(f"m{n}", "", "A text.", each) for n, each in enumerate(metadata))
    more = quoth.Corpus.create(tmp_path / "more.quoth")
    more.add(quoth.Document(f"n{n}", "", "A text.", {"source": "letters", "n": n}) for n in range(20))
    client = start(corpus, more)
    reply = client.get("/v1/fields", params={"corpus": "notes"}).json()
    assert replies.Fields.model_validate(reply)
    of = len(TEXT) + 3

    def field(name: str, documents: int, values: dict[Any, int], ends: Any = (None, None), distinct: Any = None) -> Any:
        listed = [{"value": value, "documents": each} for value, each in values.items()]
        facts = {"documents": documents, "distinct": distinct or len(values), "values": listed}
        return {"name": name, **facts, "least": ends[0], "most": ends[1]}

    source = field("source", 3, {"minutes": 2, "letters": 1})
    assert reply == {
        "documents": of,
        "fields": [
            source,
            field("date", 2, {"2024-05-01": 1, "2023": 1}, ("2023", "2024-05-01")),
            field("pages", 2, {7: 1, "8.5": 1}, (7, 8.5)),
            field("by.name", 1, {"Ann": 1}),
            field("open", 1, {True: 1}),
        ],
        "snapshots": {"notes": 2},
    }
    both = client.get("/v1/fields").json()
    assert (both["documents"], both["snapshots"]) == (of + 20, {"notes": 2, "more": 1})
    assert both["fields"][:2] == [
        field("source", 23, {"letters": 21, "minutes": 2}),
        field("n", 20, dict.fromkeys(range(12), 1), (0, 19), 20),
    ]
    assert client.get("/v1/fields", params={"corpus": "notes", "snapshot": 1}).json()["fields"] == []
    assert client.get("/v1/fields", params={"corpus": "notes", "snapshot": 2}).json() == reply
    assert len(counted) == 3  # one for each snapshot of each corpus
    corpus.add([quoth.Document("more", "", "A text.", {"source": "minutes"})])
    assert client.app.state.service.backend.refresh()
    fresh = client.get("/v1/fields", params={"corpus": "notes"}).json()
    assert fresh["fields"][0] == field("source", 4, {"minutes": 3, "letters": 1})
    assert client.get("/v1/fields", params={"corpus": "none"}).status_code == 404
    assert client.get("/v1/fields", params={"where": "n = 1"}).status_code == 422


def test_no_more_fields_are_told_than_can_be_read(corpus: quoth.Corpus) -> None:
    corpus.add([quoth.Document("wide", "", "A text.", {f"f{n:02}": n for n in range(60)})])
    assert [each["name"] for each in told([corpus])["fields"]] == [f"f{n:02}" for n in range(50)]


def test_a_slower_look_for_snapshots_does_not_go_back(
    models: Models, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one look opens snapshot 2, snapshot 3 is written and looked for: it is what is served in the end."""
    library = Library(models, [corpus.path])
    corpus.add([quoth.Document("two", "", "A second snapshot.")])
    others: list[threading.Thread] = []

    class Slow(quoth.Corpus):
        @classmethod
        def open(cls, path: Any, snapshot: int | None = None) -> quoth.Corpus:
            opened = quoth.Corpus.open(path, snapshot)
            if not others:
                corpus.add([quoth.Document("three", "", "A third snapshot.")])
                others.append(threading.Thread(target=library.refresh))
                others[0].start()
                others[0].join(1)  # it waits for this one
            return opened

    monkeypatch.setattr("quoth_serve.library.Corpus", Slow)
    assert library.refresh()
    others[0].join()
    assert library.view().corpora[0].snapshot == 3


def test_a_document_is_read_while_questions_are_at_work(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, limits=Limits(concurrency=1, timeout=10))
    queue, release = client.app.state.service.queue, threading.Event()
    work = threading.Thread(target=lambda: asyncio.run(queue.ask(None, [0], lambda _: [release.wait()])))
    work.start()
    while not queue.at_work:
        release.wait(0.001)
    assert client.get("/v1/documents", params={"id": "d/1"}).status_code == 200
    assert client.get("/v1/corpus").status_code == 200
    release.set()
    work.join()


def test_no_request_is_dropped_while_snapshots_come_and_go(corpus: quoth.Corpus, start: Any) -> None:
    """Every answer is a quotation from the snapshot that it names."""
    client = start(corpus)
    texts = {1: {each.id: each.text for each in corpus.documents()}}
    statuses: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            answer = client.post("/v1/fill", json={"text": BLANK, "top_k": 1})
            statuses.append((answer.status_code, answer.json()))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    for number in range(4):
        corpus.replace([quoth.Document("d/1", "T1", f"Capital {number} of France is above the river.")])
        texts[corpus.snapshot] = {each.id: each.text for each in corpus.documents()}
        client.app.state.service.backend.refresh()
    corpus.compact()
    texts[corpus.snapshot] = texts[max(texts)]
    client.app.state.service.backend.refresh()
    count = len(statuses)
    while len(statuses) < count + 6:
        done.wait(0.01)
    done.set()
    for each in threads:
        each.join()
    assert {status for status, _ in statuses} == {200}
    for _, answer in statuses:
        for place in answer["predictions"][0]["evidence"]:
            text = texts[answer["snapshots"]["notes"]][place["document_id"]]
            assert text[place["start"] : place["end"]].casefold() == answer["predictions"][0]["text"].casefold()
    assert max(answer["snapshots"]["notes"] for _, answer in statuses) == max(texts)


def test_several_corpora_as_one_and_by_name(corpus: quoth.Corpus, tmp_path: Path, start: Any) -> None:
    other = quoth.Corpus.create(tmp_path / "news.quoth")
    other.add([quoth.Document("n", "News", "Vienna is the capital of Austria.")])
    client = start(corpus, other)
    found = client.post("/v1/search", json={"query": "capital"}).json()
    assert {(each["corpus"], each["document_id"]) for each in found["passages"]} >= {("news", "n"), ("notes", "d/1")}
    assert found["snapshots"] == {"notes": 1, "news": 1}
    of_news = client.post("/v1/search", json={"query": "capital", "corpus": "news"}).json()
    assert [each["document_id"] for each in of_news["passages"]] == ["n"]
    assert client.get("/v1/documents", params={"id": "n"}).json()["corpus"] == "news"
    assert client.get("/v1/documents", params={"id": "d/1"}).json()["corpus"] == "notes"
    unknown = client.get("/v1/documents", params={"id": "none"})
    assert (unknown.status_code, unknown.json()["detail"]) == (
        404,
        "document 'none' is in none of the corpora notes, news",
    )
    corpus.add([quoth.Document("late", "", "A late text.")])
    assert client.app.state.service.backend.refresh()
    said = "snapshot 1 is given without a corpus; add its corpus: notes, news"
    for named, status in (({}, 400), ({"corpus": "notes"}, 200), ({}, 400)):  # also once that snapshot is open
        reply = client.post("/v1/search", json={"query": "capital", "snapshot": 1, **named})
        assert (reply.status_code, reply.json().get("detail", said)) == (status, said)
    same = quoth.Corpus.create(tmp_path / "x" / "news.quoth") if (tmp_path / "x").mkdir() is None else None
    with pytest.raises(InputError, match="two corpora are named 'news'"):
        start(other, same)


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "said"),
    [
        ("POST", "/v1/fill", {"json": {"text": "no blank"}}, 400, "[MASK]"),
        ("POST", "/v1/ask", {"json": {"question": "Who?", "combine": "joint"}}, 422, "combine: Extra"),
        ("POST", "/v1/ask", {"json": {"question": "?"}}, 400, "has no words"),
        ("POST", "/v1/fill", {"json": {"text": BLANK, "corpus": "note"}}, 404, "did you mean notes?"),
        ("POST", "/v1/fill", {"json": {"text": BLANK, "corpus": "../notes"}}, 404, "no corpus '../notes'"),
        ("POST", "/v1/fill", {"json": {"text": BLANK, "corpus": "notes", "snapshot": 9}}, 404, "notes: no snapshot 9"),
        ("POST", "/v1/search", {"json": {"query": "a", "mode": "entity"}}, 400, "--search quoth-zero-ner"),
        ("POST", "/v1/classify", {"json": {"text": "a", "labels": {"x": ["a"]}}}, 422, "labels: "),
        ("POST", "/v1/classify", {"json": {"text": "a", "labels": {"x": ["a"], "y": ["z" * 501]}}}, 422, "at most 500"),
        ("POST", "/v1/verify", {"json": {"text": " "}}, 400, "empty"),
        ("POST", "/v1/fill", {"content": "text=a"}, 422, "body"),
        ("POST", "/v1/fill", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 422, "Content"),
        ("GET", "/v1/documents", {"params": {"id": "none"}}, 404, "document 'none' is not in notes"),
        ("GET", "/v1/documents", {"params": {"id": "../../etc/passwd"}}, 404, "is not in notes"),
        ("GET", "/v1/documents", {}, 422, "id: Field required"),
        ("GET", "/v1/documents", {"params": {"id": "d/1", "end": 2**70}}, 422, "end"),
        ("PUT", "/v1/documents", {"json": {"documents": []}}, 405, "Method Not Allowed"),
        ("DELETE", "/v1/documents", {"params": {"id": "d/1"}}, 405, "Method Not Allowed"),
        ("GET", "/page/../../limits.py", {}, 404, "Not Found"),
        ("GET", "/etc/passwd", {}, 404, "Not Found"),
        ("OPTIONS", "/v1/fill", {"headers": {"origin": "http://evil"}}, 405, ""),
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_is_a_problem(
    corpus: quoth.Corpus, start: Any, method: str, path: str, sent: Any, status: int, said: str
) -> None:
    answer = start(corpus, limits=Limits(text=500)).request(method, path, **sent)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate(answer.json())
    assert (problem.status, problem.type) == (status, "about:blank")
    assert said in problem.detail
    assert str(corpus.path.parent) not in answer.text
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/documents", "DELETE, GET, POST, PUT"),
        ("GET", "/v1/fill", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
    ],
)
def test_every_method_of_a_path_is_named(
    corpus: quoth.Corpus, start: Any, method: str, path: str, allowed: str
) -> None:
    answer = start(corpus, access=WRITING).request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_a_host_may_end_in_a_dot(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    assert client.get("/", headers={"host": "testserver.:80"}).status_code == 200
    assert client.get("/", headers={"host": "testserver..:80"}).status_code == 421


def test_a_host_is_the_same_in_capital_letters(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, access=Access(hosts=("Docs.Example.org",)))
    for name in ("docs.example.org", "Docs.Example.org:80", "DOCS.EXAMPLE.ORG."):
        assert client.get("/", headers={"host": name}).status_code == 200
    assert client.get("/", headers={"host": "example.org"}).status_code == 421


def test_a_reply_that_is_too_long_is_refused_with_the_remedy(corpus: quoth.Corpus, start: Any) -> None:
    corpus.add([quoth.Document("long", "Long", "x" * 1001)])
    client = start(corpus, limits=Limits(reply=1000))
    answer = client.get("/v1/documents", params={"id": "long"})
    said = "the text has 1,001 characters; at most 1,000 at once: give start and end"
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    assert client.get("/v1/documents", params={"id": "long", "end": 500}).json()["text"] == "x" * 500
    answer = client.post("/v1/search", json={"query": "capital France"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("the reply has more than 1,000 characters; ask for fewer")
    assert client.post("/v1/search", json={"query": "capital France", "k": 1}).status_code == 200
    assert client.get("/v1/corpus").status_code == 200


def nested(levels: int) -> Any:
    """Metadata that is this many levels deep."""
    value: Any = "…"
    for _ in range(levels - 1):
        value = [value]
    return {"a": value}


def test_metadata_that_is_nested_deep(corpus: quoth.Corpus, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 levels are stored and shown; more are refused; what an older version stored is shown as far as it can be."""
    client = start(corpus, access=WRITING)
    sent = [{"id": f"n{levels}", "text": "Zanzibar", "metadata": nested(levels)} for levels in (64, 65, 200)]
    assert client.post("/v1/documents", json={"documents": sent[:1]}).status_code == 201
    for each in sent[1:]:
        answer = client.post("/v1/documents", json={"documents": [each]})
        assert answer.status_code == 400, answer.text
        assert "metadata is nested more than 64 deep; flatten it" in answer.json()["detail"]
    monkeypatch.setattr("quoth.corpus.writer.check_document", lambda _: None)
    corpus.refresh()
    corpus.add([quoth.Document("old", "", "Zanzibar again", nested(945))])
    client.app.state.service.backend.refresh()
    found = client.post("/v1/search", json={"query": "Zanzibar"}).json()["passages"]
    assert {each["document_id"]: each["metadata"] for each in found}["n64"] == nested(64)
    assert "old" in {each["document_id"] for each in found}
    assert client.get("/v1/documents", params={"id": "old"}).status_code == 200
    assert client.post("/v1/fill", json={"text": "Zanzibar [MASK]"}).status_code == 200


def test_headers_of_every_reply(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    for path in ("/", "/v1/corpus", "/none", "/v1/openapi.json"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-request-id"]
    assert client.get("/v1/corpus").headers["cache-control"] == "no-store"
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200),
        ("127.0.0.1:", 200),
        ("[::1]:80", 200),
        ("[::1]", 200),
        ("127.0.0.1:80@evil.example", 421),
        ("127.0.0.1@evil.example:80", 421),
        ("evil.example:80@127.0.0.1", 421),
        ("127.0.0.1:80:80", 421),
        ("127.0.0.1:eighty", 421),
    ],
)
def test_a_host_is_a_name_and_at_most_a_port(corpus: quoth.Corpus, start: Any, host: str, status: int) -> None:
    assert start(corpus, access=Access()).get("/healthz", headers={"host": host}).status_code == status


def test_two_tokens_are_refused(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, access=Access(TOKEN, hosts=("testserver",)))
    good, other = ("authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer another one")
    assert client.get("/v1/corpus", headers=[good]).status_code == 200
    for two in ([good, other], [other, good], [good, good]):
        answer = client.get("/v1/corpus", headers=two)
        assert (answer.status_code, "two Authorization headers" in answer.json()["detail"]) == (400, True)


def test_what_is_beyond_a_document_is_left_out(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    whole = client.get("/v1/documents", params={"id": "d/1"}).json()
    length = whole["length"]
    for first, last in ((length, None), (length + 9, None), (9, 3), (length + 9, length + 20), (2, length + 20)):
        given = {"id": "d/1", "start": first} | ({} if last is None else {"end": last})
        part = client.get("/v1/documents", params=given).json()
        assert part["text"] == whole["text"][first:last]
        assert 0 <= part["start"] <= part["end"] <= length == part["length"]


def test_the_description_excludes_what_is_refused(corpus: quoth.Corpus, start: Any) -> None:
    forms = start(corpus).get("/v1/openapi.json").json()["components"]["schemas"]
    refused = {"min_probability": 0, "precision": 0}
    for name in ("AskRequest", "FillRequest"):
        rule = Draft202012Validator({"not": forms[name]["not"]})
        assert all(map(rule.is_valid, ({}, {"precision": 0}, refused | {"precision": None})))
        assert not rule.is_valid(refused)
    for name in ("ClassifyRequest", "SearchRequest"):
        (number, _) = forms[name]["properties"]["snapshot"]["anyOf"]
        assert number["minimum"] == 1


def test_the_token_is_needed_and_says_nothing_of_the_corpus_without(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, access=Access(TOKEN, hosts=("testserver",)))
    for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}, {"authorization": "é"}):
        for path in ("/v1/corpus", "/v1/openapi.json", "/metrics", "/v1/documents?id=d/1"):
            answer = client.get(path, headers={name: each.encode("latin-1") for name, each in given.items()})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert client.get("/v1/corpus", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    for path in ("/", "/healthz", "/readyz"):
        assert client.get(path).status_code == 200
    with pytest.raises(InputError, match="--writable requires a token"):
        Access(writable=True)
    with pytest.raises(InputError, match="3 characters"):
        Access("abc")
    assert TOKEN not in repr(Access(TOKEN))


def test_writing_with_a_token(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, access=WRITING)
    new = {"documents": [{"id": "new", "title": "New", "text": "Zanzibar is an island.", "metadata": {"a": 1}}]}
    added = client.post("/v1/documents", json=new)
    assert (added.status_code, added.json()) == (201, {"corpus": "notes", "snapshot": 2, "written": 1})
    assert client.post("/v1/search", json={"query": "Zanzibar"}).json()["passages"][0]["document_id"] == "new"
    assert client.post("/v1/documents", json=new).status_code == 409
    new["documents"][0]["text"] = "Zanzibar is in the Indian Ocean."
    assert client.put("/v1/documents", json=new).json() == {"corpus": "notes", "snapshot": 3, "written": 1}
    assert client.get("/v1/documents", params={"id": "new"}).json()["text"] == new["documents"][0]["text"]
    assert client.put("/v1/documents", content=b'{"documents": [{"id": "a", "text": "\\ud800"}]}').status_code == 422
    assert client.delete("/v1/documents", params={"id": "new"}).json() == {
        "corpus": "notes",
        "snapshot": 4,
        "deleted": 1,
    }
    assert client.delete("/v1/documents", params={"id": "new"}).status_code == 404
    corpus.refresh()
    assert corpus.num_documents == len(TEXT)
    corpus.verify()


def test_a_corpus_that_is_being_written_to_is_locked(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, access=WRITING)
    with corpus._writing():
        answer = client.delete("/v1/documents", params={"id": "d/1"})
    assert (answer.status_code, answer.headers["retry-after"]) == (423, "1")


def test_a_write_after_the_service_was_told_to_stop_is_refused(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus, access=WRITING)
    client.app.state.service.draining = True
    answer = client.delete("/v1/documents", params={"id": "d/1"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "d/1" in {each.id for each in quoth.Corpus.open(corpus.path).documents()}


def test_metrics_and_health(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    client.post("/v1/fill", json={"text": BLANK})
    client.get("/v1/nothing")
    text = client.get("/metrics").text
    assert 'quoth_requests_total{method="POST",route="/v1/fill",status="200"} 1.0' in text
    assert 'quoth_requests_total{method="GET",route="none",status="404"} 1.0' in text
    assert 'quoth_snapshot{corpus="notes"} 1.0' in text
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    client.app.state.service.draining = True
    answer = client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("log_text", [False, True])
def test_the_log_has_no_text_unless_asked(
    corpus: quoth.Corpus, start: Any, caplog: pytest.LogCaptureFixture, log_text: bool
) -> None:
    with caplog.at_level(logging.INFO, logger="quoth.service"):
        start(corpus, log_text=log_text).post("/v1/ask", json={"question": "Where is the raven?"})
    lines = [json.loads(JSONLines().format(each)) for each in caplog.records if each.name == "quoth.service"]
    said = next(each for each in lines if each["event"] == "request")
    assert (said["route"], said["method"], said["status"]) == ("/v1/ask", "POST", 200)
    assert ("raven" in json.dumps(lines)) == log_text


def test_an_unforeseen_error_says_nothing(corpus: quoth.Corpus, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start(corpus)
    monkeypatch.setattr("quoth_serve.library.bm25", Mock(side_effect=ZeroDivisionError("a secret")))
    answer = client.post("/v1/search", json={"query": "a", "mode": "bm25"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    assert "content-security-policy" in answer.headers


def test_vectors_are_used_by_their_own_model_only(models: Models, corpus: quoth.Corpus, tmp_path: Path) -> None:
    """A corpus with vectors of another model is answered as one without, next to any other corpus."""
    plain = quoth.Corpus.create(tmp_path / "plain.quoth")
    plain.add([quoth.Document("p", "P", "Vienna is the capital of Austria.")])
    before = Library(models, [corpus.path, plain.path])
    expected = [each.to_dict() for each in before.view().fills.fill([BLANK])[0]]
    assert before.unused() == []
    other = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "other", [*TEXT, "another"]), corpus)
    other.embed("fp32")
    library = Library(models, [corpus.path, plain.path])
    assert [each.to_dict() for each in library.view().fills.fill([BLANK])[0]] == expected
    assert library.describe()["modes"] == ["bm25"]
    [said] = library.unused()
    assert f"{corpus.path}: its vectors are of {other.name}" in said
    assert f"not of {models.fills.name}" in said
    with pytest.raises(EncoderMismatchError, match="has keys of"):
        library.view("notes").fills.fill([BLANK], passages=None)
    models.over([corpus]).fills.embed("fp32")
    assert Library(models, [corpus.path]).unused() == []


def test_vectors_of_passages_are_used_by_every_model(
    models: Models, corpus: quoth.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm = quoth.REALM.from_pretrained(tiny_realm(tmp_path / "realm"), corpus)
    monkeypatch.setattr("quoth.index.finder.named", lambda _: lambda corpora, *_: Retriever(corpora, realm.encoder))
    monkeypatch.setattr("quoth.index.finder._SHIPPED", {realm.name})
    library = Library(models, [corpus.path])
    by_words = library.view().search("Paris", 3, "auto")
    assert by_words == library.view().search("Paris", 3, "bm25")
    assert "auto" not in library.describe()["modes"]
    library.embed().join()
    assert library.describe()["modes"][0] == "auto"
    assert library.describe()["vectors"] == {"notes": "complete"}
    assert library.unused() == []
    assert [each.score for each in by_words] != [each.score for each in library.view().search("Paris", 3, "auto")]
    corpus.add(quoth.Document(f"more {n}", "", f"Paris {n}") for n in range(33))
    assert library.refresh()
    library.embed().join()
    assert realm.embed_cost().passages == 0


def test_documents_that_come_while_vectors_are_made_get_theirs_too(
    models: Models, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, embedded = Library(models, [corpus.path]), list[int]()

    def embed(finder: Any, _: Any) -> None:
        [opened] = finder.corpora
        embedded.append(opened.snapshot)
        if len(embedded) == 1:
            corpus.add([quoth.Document("late", "", "A late text.")])
            assert library.refresh()

    monkeypatch.setattr("quoth.index.finder.Finder.embed", embed)
    library.embed().join()
    assert embedded == [1, 2]


def test_a_library_that_is_closed_makes_no_more_vectors(
    models: Models, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would end the thread inside of the network, and that ends the process by a signal."""
    library, at_work, told = Library(models, [corpus.path]), threading.Event(), list[int]()

    def embed(_: Any, tell: Callable[[int, int], None]) -> None:
        for number in range(1000):
            told.append(number)
            at_work.set()
            tell(number, 1000)
            time.sleep(0.01)

    monkeypatch.setattr("quoth.index.finder.Finder.embed", embed)
    thread = library.embed()
    at_work.wait()
    library.close()
    assert not thread.is_alive()
    assert len(told) < 1000
    corpus.add([quoth.Document("late", "", "A late text.")])
    assert library.refresh()
    library.embed().join()
    assert told.count(0) == 1


def test_vectors_that_nobody_asked_for_are_made_only_if_that_is_soon_done_where_it_may(
    models: Models, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, timed, writable = list[int](), list[float](), True

    def embed(finder: Any, _: Any) -> None:
        embedded.append(finder.corpora[0].snapshot)

    def seconds(_: Any) -> float:
        timed.append(600.0)
        return 0.0 if len(timed) == 1 else 1000.0

    monkeypatch.setattr("quoth.index.finder.Finder.embed", embed)
    monkeypatch.setattr("quoth.index.finder.Finder.seconds_if_long", seconds)
    monkeypatch.setattr("quoth_serve.library.os.access", lambda *_: writable)
    library = Library(models, [corpus.path])
    for number in range(3):
        library.embed(even_long=False).join()
        corpus.add([quoth.Document(f"new {number}", "", "A new text.")])
        assert library.refresh()
        assert library._embedding is not None
        library._embedding.join()
    assert (embedded, len(timed)) == ([1], 2)  # what takes long is not tried again
    assert library.describe()["vectors"] == {"notes": "none"}
    writable = False
    other = Library(models, [corpus.path])
    other.embed(even_long=False).join()
    assert (embedded, len(timed), other.describe()["vectors"]) == ([1], 2, {})
    other.embed().join()
    assert embedded == [1, 4]


def test_vectors_that_could_not_be_made_are_tried_again(
    models: Models, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = iter([LockedError("another process writes"), RuntimeError("the network failed"), None])

    def embed(*_: Any) -> None:
        if error := next(errors):
            raise error

    monkeypatch.setattr("quoth.index.finder.Finder.embed", embed)
    library = Library(models, [corpus.path])
    library.embed().join()
    library.refresh()
    assert library.describe()["vectors"] == {"notes": "failed"}  # not at once
    monkeypatch.setattr("quoth_serve.library.SECONDS_TO_RETRY", 0.0)
    for said in ("failed", "complete", "complete"):
        library.refresh()
        assert library._embedding is not None
        library._embedding.join()
        assert library.describe()["vectors"] == {"notes": said}


def test_documents_that_come_when_vectors_are_just_done_get_theirs_too(
    models: Models, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, embedded = Library(models, [corpus.path]), list[int]()
    done, ends, work = threading.Event(), threading.Event(), Library._embed

    def lingering(library: Library) -> None:
        work(library)
        done.set()
        ends.wait(30)

    monkeypatch.setattr(
        "quoth.index.finder.Finder.embed", lambda finder, _: embedded.append(finder.corpora[0].snapshot)
    )
    monkeypatch.setattr(Library, "_embed", lingering)
    first = library.embed()
    assert done.wait(30)
    corpus.add([quoth.Document("late", "", "A late text.")])
    assert library.refresh()
    ends.set()
    for each in (first, library._embedding):
        assert each is not None
        each.join()
    assert embedded == [1, 2]


def test_a_damaged_index_is_refused(models: Models, corpus: quoth.Corpus) -> None:
    models.over([corpus]).fills.embed("fp32")
    Library(models, [corpus.path])
    [words] = corpus.path.glob("segments/*/words*")
    content = words.read_bytes()
    words.write_bytes(content[:-1])
    with pytest.warns(DamageWarning, match=words.name):
        Library(models, [corpus.path])
    words.write_bytes(content)
    vectors = next(corpus.path.glob(f"keys/{models.fills.fingerprint[:16]}/*/vectors.npy"))
    vectors.write_bytes(vectors.read_bytes()[:-1])
    with pytest.raises(CorruptionError, match="vectors"):
        Library(models, [corpus.path])


def test_a_damaged_segment_is_named_and_the_rest_is_served(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    library = client.app.state.service.backend
    corpus.add([quoth.Document("late", "", "A late text.")])
    assert library.refresh()
    [file] = corpus.path.glob(f"segments/{corpus.segments[-1].name}/documents.bin")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.warns(DamageWarning, match=r"documents\.bin"):
        assert library.refresh()
    assert not library.refresh()
    assert client.get("/v1/corpus").json()["corpora"][0]["damaged"] == [corpus.segments[-1].name]
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "damaged": [corpus.segments[-1].name]})
    search = {"query": "late raven"}
    assert "late" not in {each["document_id"] for each in client.post("/v1/search", json=search).json()["passages"]}
    file.write_bytes(whole)
    assert library.refresh()
    assert client.get("/v1/corpus").json()["corpora"][0]["damaged"] == []
    assert client.get("/readyz").json() == {"status": "ready"}
    assert "late" in {each["document_id"] for each in client.post("/v1/search", json=search).json()["passages"]}


def test_a_corpus_that_takes_the_place_of_another_is_served(corpus: quoth.Corpus, start: Any, tmp_path: Path) -> None:
    client = start(corpus)
    other = quoth.Corpus.create(tmp_path / "other.quoth")
    other.add([quoth.Document("new", "", "Oslo is the capital of Norway.")])
    assert other.snapshot == corpus.snapshot
    corpus.path.rename(tmp_path / "old.quoth")
    other.path.rename(corpus.path)
    assert client.app.state.service.backend.refresh()
    found = client.post("/v1/search", json={"query": "capital"}).json()["passages"]
    assert [each["document_id"] for each in found] == ["new"]


def test_a_job_that_never_ends_does_not_keep_the_service() -> None:
    queue, never = BatchQueue(Limits(concurrency=1, timeout=0.05)), threading.Event()

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await queue.ask(None, [None], lambda _: [never.wait()])

    asyncio.run(ask())
    queue.close()
    never.set()


def test_a_snapshot_that_cannot_be_opened_leaves_the_last_one(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    corpus.add([quoth.Document("late", "", "A late text.")])
    newest = max(corpus.path.glob("manifest-*.json"))
    newest.write_text("{")
    assert not client.app.state.service.backend.refresh()
    assert client.post("/v1/search", json={"query": "raven"}).json()["snapshots"] == {"notes": 1}


def test_the_description_has_every_route_and_examples(corpus: quoth.Corpus, start: Any) -> None:
    client = start(corpus)
    description = client.get("/v1/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    for name in ("fill", "ask", "classify", "search", "verify", "check"):
        operation = description["paths"][f"/v1/{name}"]["post"]
        form = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[-1]
        [example] = description["components"]["schemas"][form]["examples"]
        assert client.post(f"/v1/{name}", json=example).status_code == 200
        assert "application/problem+json" in operation["responses"]["422"]["content"]
        assert "application/json" not in operation["responses"]["422"]["content"]


async def _gather(queue: BatchQueue, *asked: Any) -> list[Any]:
    return await asyncio.gather(*(queue.ask(*each) for each in asked), return_exceptions=True)


def test_jobs_of_one_moment_are_a_batch() -> None:
    seen: list[list[int]] = []
    release = threading.Event()

    def double(inputs: list[int]) -> list[int]:
        release.wait()
        seen.append(inputs)
        return [2 * each for each in inputs]

    queue = BatchQueue(Limits(concurrency=1, batch=4))

    async def run() -> list[Any]:
        first = asyncio.create_task(queue.ask("a", [0], double))
        while not queue.at_work:
            await asyncio.sleep(0.001)
        others = asyncio.create_task(
            _gather(queue, ("a", [1], double), ("b", [2], double), ("a", [3, 4], double), ("a", [5, 6], double))
        )
        while queue.waiting < 4:
            await asyncio.sleep(0.001)
        release.set()
        return [await first, *await others]

    answers = asyncio.run(run())
    queue.close()
    assert [each.answers for each in answers] == [[0], [2], [4], [6, 8], [10, 12]]
    assert seen == [[0], [1, 3, 4], [2], [5, 6]]
    assert [each.batch for each in answers] == [1, 3, 1, 3, 2]


def test_one_job_that_fails_leaves_the_others_of_its_batch() -> None:
    def halve(inputs: list[int]) -> list[float]:
        return [1 / each for each in inputs]

    queue = BatchQueue(Limits(concurrency=1))
    slow = threading.Event()

    async def run() -> list[Any]:
        first = asyncio.create_task(queue.ask(None, [1], lambda _: [slow.wait()]))
        while not queue.at_work:
            await asyncio.sleep(0.001)
        others = asyncio.create_task(_gather(queue, ("a", [2], halve), ("a", [0], halve), ("a", [4], halve)))
        while queue.waiting < 3:
            await asyncio.sleep(0.001)
        slow.set()
        await first
        return await others

    good, bad, better = asyncio.run(run())
    queue.close()
    assert (good.answers, better.answers) == ([0.5], [0.25])
    assert isinstance(bad, ZeroDivisionError)


def test_overload_is_told_at_once_and_work_in_hand_is_finished() -> None:
    release = threading.Event()

    def wait(inputs: list[int]) -> list[int]:
        release.wait()
        return inputs

    queue = BatchQueue(Limits(concurrency=1, queue=2))

    async def run() -> tuple[Any, list[Any]]:
        first = asyncio.create_task(queue.ask(None, [0], wait))
        while not queue.at_work:
            await asyncio.sleep(0.001)
        others = asyncio.create_task(_gather(queue, *[(None, [each], wait) for each in (1, 2, 3)]))
        await asyncio.sleep(0)
        while queue.waiting < 2:
            await asyncio.sleep(0.001)
        with pytest.raises(BusyError) as caught:
            await queue.ask(None, [4], wait)
        release.set()
        return caught.value, [await first, *await others]

    busy, answers = asyncio.run(run())
    queue.close()
    assert busy.seconds >= 1
    assert [each.answers if isinstance(each, Done) else type(each) for each in answers] == [[0], [1], [2], BusyError]
    with pytest.raises(BusyError):
        asyncio.run(queue.ask(None, [5], wait))


def test_reads_pass_questions_by_and_have_the_same_bounds(
    corpus: quoth.Corpus, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(corpus, limits=Limits(concurrency=1, queue=1))
    service, release = client.app.state.service, threading.Event()
    read = partial(client.get, "/v1/documents", params={"id": "d/1"})

    def held(*given: Any) -> Any:
        release.wait()
        return original(*given)

    with ThreadPoolExecutor() as pool:
        question = client.portal.start_task_soon(service.queue.ask, None, [0], lambda inputs: release.wait() and inputs)
        assert (read().status_code, client.get("/v1/corpus").status_code, question.done()) == (200, 200, False)
        original = app_module.part
        monkeypatch.setattr(app_module, "part", held)
        running = pool.submit(read)
        while not service.reads.at_work:
            assert not running.done()
        waiting = pool.submit(read)
        while not service.reads.waiting:
            assert not waiting.done()
        refused, ready = read(), client.get("/readyz")
        release.set()
        assert (running.result().status_code, waiting.result().status_code) == (200, 200)
    assert (refused.status_code, refused.headers["retry-after"], ready.status_code) == (503, "1", 503)


def test_views_that_take_time_wait_in_a_queue_and_are_made_once(
    corpus: quoth.Corpus, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.add([quoth.Document("y", "", "A raven in Lyon.", {"year": 2024})])
    client, release, asked = start(corpus), threading.Event(), list[Any]()
    service, view = client.app.state.service, client.app.state.service.backend.view
    service.views = BatchQueue(Limits(concurrency=2, queue=1))

    def held(*given: Any) -> Any:
        if given[2:] and given[2]:
            asked.append(given[2])
            release.wait(30)
        return view(*given)

    def search(year: int | None = None) -> int:
        where = {"where": f"year = {year}"} if year else {}
        status: int = client.post("/v1/search", json={"query": "raven"} | where).status_code
        return status

    monkeypatch.setattr(service.backend, "view", held)
    with ThreadPoolExecutor() as pool:
        running = list[Any]()
        for year, at_work, waiting in ((2024, 1, 0), (2024, 1, 0), (2023, 2, 0), (2022, 2, 1)):
            running.append(pool.submit(search, year))
            for _ in range(1000):
                if (len(asked), service.views.waiting) == (at_work, waiting):
                    break
                time.sleep(0.01)
        found = search(2021), search(), client.get("/v1/documents", params={"id": "y", "snapshot": 2}).status_code
        release.set()
        assert [each.result() for each in running] == [200] * 2 + [400] * 2  # no document is of these years
    assert found == (503, 200, 200)
    assert sorted(asked) == ["year = 2022", "year = 2023", "year = 2024"]


def test_a_job_that_waited_too_long_is_never_begun() -> None:
    begun: list[Any] = []
    release = threading.Event()
    queue = BatchQueue(Limits(concurrency=1, timeout=0.05))

    async def run() -> list[Any]:
        return await _gather(queue, (None, [0], lambda inputs: [release.wait()]), (None, [1], begun.extend))

    assert [type(each) for each in asyncio.run(run())] == [TimeoutError, TimeoutError]
    release.set()
    queue.close()
    assert begun == []


def test_words_that_match_a_query() -> None:
    assert word_ranges("Operas in München", "An opera; opérettes, MUNCHEN.") == [(3, 8), (21, 28)]
    assert word_ranges("raven", "Nothing here.") == []
    assert word_ranges("is it the raven", "It is the raven.") == [(10, 15)]
    assert word_ranges("the", "the raven") == [(0, 3)]


def test_a_body_that_is_not_json_is_named_with_the_character(corpus: quoth.Corpus, start: Any) -> None:
    reply = start(corpus).post("/v1/ask", content=b'{"question": bad}', headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert reply.json()["errors"] == [{"field": "body", "message": "not JSON, at character 13; send a JSON object"}]


def test_a_body_that_is_not_utf_8_is_told_so(corpus: quoth.Corpus, start: Any) -> None:
    latin = '{"question": "Où?"}'.encode("latin-1")
    reply = start(corpus).post("/v1/ask", content=latin, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["detail"]) == (422, "body: not UTF-8; send JSON in UTF-8")
    assert reply.json()["errors"] == [{"field": "body", "message": "not UTF-8; send JSON in UTF-8"}]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_may_ask_for_the_head_alone(path: str, corpus: quoth.Corpus, start: Any) -> None:
    reply = start(corpus).head(path)
    assert (reply.status_code, reply.content) == (200, b"")
