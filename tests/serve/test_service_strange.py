"""Strange clients over real connections, and strange characters: nobody else waits, and every offset is right."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import quoth

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from starlette.testclient import TestClient
from test_service import TOKEN
from test_service_requests import Recorded

from quoth.errors import UnknownDocumentError
from quoth.records import Predictions
from quoth_serve.app import create_app
from quoth_serve.library import Library, Models
from quoth_serve.limits import Limits
from quoth_serve.running import _Server, bound, settings
from quoth_serve.security import Access
from tiny import tiny_npm

SMALL = Limits(body=2000, timeout=0.5)
HEAD = b"POST /v1/fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
DELETE = (
    f"DELETE /v1/documents?id=a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    "Connection: close\r\n\r\n"
).encode()
GOOD = b'{"text": "a [MASK]"}'


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """That of a service with small limits, whose log must have no error in the end."""
    monkeypatch.setattr("quoth_serve.running.IDLE_SECONDS", 1)
    with running(Recorded(), SMALL) as (port, _):
        yield port


@contextmanager
def running(backend: Any, limits: Limits, access: Access | None = None) -> Iterator[tuple[int, _Server]]:
    """A service as `quoth serve` runs it, and its port."""
    listening = bound("127.0.0.1", 0)
    server = _Server(settings(create_app(backend, limits, access)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1], server
    server.should_exit = True
    thread.join()
    listening.close()


def received(connection: socket.socket) -> bytes:
    """Everything until the service closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def assert_answers(port: int) -> None:
    """That another client is served."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as other:
        other.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD)
        assert received(other).startswith(b"HTTP/1.1 200")


def test_a_body_that_drips_is_given_up_while_others_are_served(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
        slow.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        assert_answers(port)
        slow.settimeout(0.05)
        reply = b""
        while not reply:
            slow.sendall(b" ")  # as long as bytes come, so that only the time for the whole body can end it
            try:
                reply = slow.recv(65536)
            except TimeoutError:
                continue
    assert reply.startswith(b"HTTP/1.1 408")
    assert b"the body took longer than 0.5 seconds" in reply
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_service_is_alive_however_many_connections_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth_serve.running.MOST_CONNECTIONS", 2)
    with running(Recorded(), SMALL) as (port, _):
        held = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(2)]
        for path, status in (("/healthz", b"200"), ("/v1/corpus", b"503")):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as other:
                other.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                assert received(other).startswith(b"HTTP/1.1 " + status)
        for each in held:
            each.close()


@pytest.mark.parametrize("stated", [True, False])
def test_a_body_over_the_limit_is_refused_while_it_is_sent(
    port: int, caplog: pytest.LogCaptureFixture, stated: bool
) -> None:
    """With its length stated it is refused before any of it; in chunks, soon after the limit."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as huge:
        huge.sendall(
            HEAD + (b"Content-Length: 1000000000000\r\n\r\n" if stated else b"Transfer-Encoding: chunked\r\n\r\n")
        )
        sent = 0
        try:
            while not stated and sent < 1 << 30:
                huge.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                sent += 4096
        except OSError:  # the service has answered and closed
            pass
        assert sent < 1 << 28
        if stated:
            reply = received(huge)
            assert reply.startswith(b"HTTP/1.1 413")
            assert b"at most 2,000 bytes" in reply
    assert_answers(port)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "sent", [b"", b"GET", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", HEAD + b"Content-Length: x\r\n\r\n"]
)
def test_who_hangs_up_leaves_nothing_behind(port: int, caplog: pytest.LogCaptureFixture, sent: bytes) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as gone:
            gone.sendall(sent)
    assert_answers(port)
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_connections_without_a_whole_head_are_dropped(port: int) -> None:
    """However much of it they sent, and also after an answer; a head that drips is not whole either."""
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD
    sent = [b"", b"GET", HEAD, HEAD + b"X: y\r\n", whole + b"POST /v1/fi"]
    with ExitStack() as stack:
        half = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(40)]
        for number, each in enumerate(half):
            each.sendall(sent[number % len(sent)])
        assert_answers(port)
        drips = half[2]
        with suppress(OSError):  # it is dropped while it sends
            for _ in range(6000):
                drips.sendall(b"X-Filler: 1\r\n")
                time.sleep(0.01)
        for number, each in enumerate(half):
            with suppress(ConnectionResetError):
                assert received(each).startswith(b"HTTP/1.1 200" if number % len(sent) == 4 else b"")
    assert_answers(port)


class Long(Recorded):
    """Describes itself at more length than the system's buffers take."""

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"modes": ["x" * (1 << 26)]}


def test_a_client_that_does_not_read_its_reply_is_dropped() -> None:
    with running(Long(), Limits(timeout=5)) as (port, server), socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.settimeout(60)
        lazy.connect(("127.0.0.1", port))
        lazy.sendall(b"GET /v1/corpus HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert lazy.recv(12) == b"HTTP/1.1 200"
        for _ in range(6000):
            if not server.server_state.connections:
                break
            time.sleep(0.01)
        assert not server.server_state.connections
        with socket.create_connection(("127.0.0.1", port), timeout=60) as reads:
            reads.sendall(b"GET /v1/corpus HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert len(received(reads)) > 1 << 26


class Busy(Recorded):
    """Is at work on its first text until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.released = threading.Event(), threading.Event()

    def fill(self, text: list[str], **options: Any) -> list[Predictions]:
        self.begun.set()
        self.released.wait(60)
        return super().fill(text, **options)


def test_nothing_is_begun_for_who_has_hung_up(caplog: pytest.LogCaptureFixture) -> None:
    """Nor is a place in the queue kept for them: clients that give up and ask again would lock everybody out."""
    caplog.set_level(logging.INFO, "quoth.service")
    busy, few = Busy(), Limits(concurrency=1, queue=2, batch=1, timeout=30)
    with running(busy, few) as (port, server), ExitStack() as stack:
        queue = server.config.app.state.service.queue  # type: ignore[union-attr]

        def ask(text: str) -> socket.socket:
            content = json.dumps({"text": f"{text} [MASK]"}).encode()
            asked = socket.create_connection(("127.0.0.1", port), timeout=60)
            asked.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
            return stack.enter_context(asked)

        first = ask("first")
        assert busy.begun.wait(60)
        for _ in range(2):
            left = [ask("left"), ask("left")]
            until(lambda: queue.waiting == 2)
            for each in left:
                each.close()
            until(lambda: queue.waiting == 0)
        last = ask("last")
        until(lambda: queue.waiting == 1)
        busy.released.set()
        assert received(first).startswith(b"HTTP/1.1 200")
        assert received(last).startswith(b"HTTP/1.1 200")
    assert [text for text, _ in busy.asked] == [["first [MASK]"], ["last [MASK]"]]
    assert sorted(each.status for each in caplog.records if each.message == "request") == [200, 200, *4 * [499]]
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


class Written(Recorded):
    """Writes until it is released, and counts how many writes are at work at once. Every second one is a mistake."""

    name, snapshot = "atlas", 2

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.released = threading.Event(), threading.Event()
        self.writes: list[int] = []
        self._at_work = 0

    def writable(self, corpus: str | None) -> Written:
        return self

    def delete(self, ids: list[str]) -> int:
        self._at_work += 1
        self.begun.set()
        self.released.wait(60)
        self.writes.append(self._at_work)
        self._at_work -= 1
        if len(self.writes) % 2:
            raise UnknownDocumentError("document 'a' is not in atlas")
        return len(ids)


def hang_up_while_it_writes(written: Written, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as left:
        left.sendall(DELETE)
        assert written.begun.wait(60)


def test_a_write_is_finished_before_the_next_though_its_client_has_hung_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quoth.service")
    written = Written()
    with running(written, Limits(timeout=30), Access(TOKEN, True)) as (port, _):
        hang_up_while_it_writes(written, port)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as waits:
            waits.sendall(DELETE)
            time.sleep(0.2)
        until(lambda: caplog.messages.count("request") == 2)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as last:
            last.sendall(DELETE)
            time.sleep(0.2)
            written.released.set()
            assert received(last).startswith(b"HTTP/1.1 200")
    assert written.writes == [1, 1]
    assert "asyncio" not in {each.name for each in caplog.records}  # which complains of errors that nobody asked for


def test_a_write_that_was_begun_is_finished_before_the_service_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quoth.service")
    written = Written()
    with running(written, Limits(timeout=30), Access(TOKEN, True)) as (port, server):
        hang_up_while_it_writes(written, port)
        until(lambda: "request" in caplog.messages)
        server.should_exit = True
        until(lambda: server.config.app.state.service.draining)  # type: ignore[union-attr]
        threading.Timer(0.5, written.released.set).start()
    assert written.writes == [1]


def until(reached: Callable[[], bool]) -> None:
    for _ in range(6000):
        if reached():
            return
        time.sleep(0.01)
    raise AssertionError("not reached in a minute")


STRANGE = {
    "NUL": "\0",
    "control characters": "\x01\x1b[31m\x7f",
    "line ends": "\r\n \x0b \x0c \x1c \x85 \u2028 \u2029",
    "right to left": "\u202eabc\u202c \u2066שלום\u2069 العربية",
    "combining marks": "Cafe\u0301 e" + "\u0301\u0327" * 40,
    "emoji": "🗼 👩‍👩‍👧‍👦 🇫🇷 👍🏽",
    "other planes": "𝔓𝔞𝔯𝔦𝔰 𐍈 𠀋",
    "noncharacters": "\ufeff \ufffe \uffff \U0010ffff",
    "nothing to see": "\u200b\u200d\u00ad\u2060",
    "case": "İstanbul ẞ ŉ ﬁ Ǆ",
}
"""Around a phrase in a document, and in requests."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("strange")
    corpus = quoth.Corpus.create(folder / "strange.quoth")
    npm = quoth.NPM.from_pretrained(
        tiny_npm(folder / "tiny", [*STRANGE.values(), "Anne Hidalgo is the mayor of Paris."])
    )
    app = create_app(Library(Models(npm, npm), [corpus.path]), access=Access(TOKEN, True, ("testserver",)))
    with TestClient(app, raise_server_exceptions=False, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        new = [{"id": text_of(name), "title": each, "text": text_of(each)} for name, each in STRANGE.items()]
        assert client.post("/v1/documents", json={"documents": new}).status_code == 201
        yield client


def text_of(strange: str) -> str:
    return f"{strange} Anne Hidalgo {strange}is the mayor of{strange} Paris. {strange}"


def letters(text: str) -> str:
    """What decides whether two phrases are equal: the model's tokenizer drops what cannot be seen, and marks."""
    return "".join(each for each in unicodedata.normalize("NFKD", text.casefold()) if each.isalnum())


@pytest.mark.parametrize("name", STRANGE)
def test_offsets_are_right_around_strange_characters(client: TestClient, name: str) -> None:
    strange, text = STRANGE[name], text_of(STRANGE[name])
    document = client.get("/v1/documents", params={"id": text_of(name)}).json()
    assert (document["title"], document["text"], document["length"]) == (strange, text, len(text))
    start = text.index("Anne")
    part = client.get("/v1/documents", params={"id": text_of(name), "start": start, "end": start + 12}).json()
    assert part["text"] == "Anne Hidalgo"
    quote = f"Hidalgo {strange}is"
    found = client.post("/v1/verify", json={"text": quote}).json()
    assert found["occurs"]
    [place] = [each for each in found["places"] if each["document_id"] == text_of(name)]
    assert text[place["start"] : place["end"]].split() == quote.split()
    assert text[place["context_start"] :].startswith(place["context"])


@pytest.mark.parametrize("name", STRANGE)
def test_strange_requests_are_answered_with_quotations(client: TestClient, name: str) -> None:
    texts = {text_of(each): text_of(strange) for each, strange in STRANGE.items()}
    strange = STRANGE[name]
    for path, body in (
        ("fill", {"text": f"{strange} Anne Hidalgo is the mayor of [MASK]{strange}", "passages": 10}),
        ("ask", {"question": f"Who is the{strange} mayor of Paris?", "passages": 10}),
    ):
        reply = client.post(f"/v1/{path}", json=body)
        assert reply.status_code == 200, reply.text
        for answer in reply.json()["predictions"]:
            for number, place in enumerate(answer["evidence"]):
                text = texts[place["document_id"]]
                shown = text[place["start"] : place["end"]]
                assert letters(shown) == letters(answer["text"])
                assert number or shown.casefold().split() == answer["text"].casefold().split()
                assert text[place["context_start"] :].startswith(place["context"])
    hits = client.post("/v1/search", json={"query": f"mayor {strange} Hidalgo", "words": True}).json()["passages"]
    assert hits
    for hit in hits:
        assert texts[hit["document_id"]][hit["start"] : hit["end"]] == hit["text"]
        assert {hit["text"][start:end].casefold() for start, end in hit["words"]} >= {"mayor"}


def test_what_is_not_unicode_is_refused_wherever_it_is(client: TestClient) -> None:
    for path, body in (
        ("/v1/documents", b'{"documents": [{"id": "\\ud800", "text": "a"}]}'),
        ("/v1/documents", b'{"documents": [{"id": "a", "text": "a", "metadata": {"\\udc00": [{"b": "\\ud800"}]}}]}'),
        ("/v1/classify", b'{"text": "a", "labels": {"\\ud800": ["a"], "b": ["b"]}}'),
        ("/v1/verify", b'{"text": "\\ud83d \\ude00"}'),
        ("/v1/search", b'{"query": "\xff\xfe"}'),
    ):
        reply = client.post(path, content=body, headers={"content-type": "application/json"})
        assert reply.status_code in (400, 422), reply.text
        assert json.loads(reply.content)["status"] == reply.status_code
    whole = {"content": b'{"text": "\\ud83d\\ude00"}', "headers": {"content-type": "application/json"}}
    assert client.post("/v1/verify", **whole).status_code == 200  # both halves are a character
    assert client.get("/v1/documents?id=%ED%A0%80").status_code == 404
    assert client.get("/v1/documents?id=%00").status_code == 404
    assert client.delete("/v1/documents?id=%FF").status_code == 404


def test_the_log_is_one_line_per_request_whatever_it_contains(client: TestClient, caplog: Any, tmp_path: Path) -> None:
    from quoth_serve.security import JSONLines

    with caplog.at_level(logging.INFO, logger="quoth.service"):
        client.get("/v1/none%0A%1B[31m")
        client.post("/v1/verify", json={"text": "\n".join(STRANGE.values())})
    lines = [JSONLines().format(each) for each in caplog.records if each.name == "quoth.service"]
    assert len(lines) == 2
    assert all("\n" not in each and "\x1b" not in each and json.loads(each) for each in lines)
