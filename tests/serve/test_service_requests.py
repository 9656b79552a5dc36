"""The HTTP application without a cluster: what it refuses before anything is read as tokens, and how."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest

from quoth.errors import CorpusNotFoundError, InputError
from quoth.records import Hits, Predictions

pytest.importorskip("fastapi")

from quoth import NPM
from quoth_serve.app import create_app
from quoth_serve.limits import Limits
from quoth_serve.security import Access

NOTHING: dict[str, Any] = {"snapshots": {}, "notes": []}
LIMITS = Limits(body=2000, text=100, texts=3, timeout=7)


class Recorded:
    """Answers nothing, and keeps what it was asked."""

    corpora = ()
    folders: ClassVar[dict[str, str]] = {"/home/me/atlas.quoth": "atlas"}

    def __init__(self) -> None:
        self.asked: list[tuple[Any, dict[str, Any]]] = []
        self.fills = self.asks = self

    def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> Recorded:
        if corpus not in (None, "atlas"):
            raise CorpusNotFoundError(f"no corpus {corpus!r}")
        return self

    def unready(self) -> str:
        return ""

    def refresh(self) -> bool:
        return False

    def fill(self, text: list[str], **options: Any) -> list[Predictions]:
        self.asked.append((text, options))
        if "slow" in text:
            raise TimeoutError
        if "no blank" in text:
            raise InputError("no blank \ud800 in /home/me/atlas.quoth")
        if "broken" in text:
            raise ZeroDivisionError("a secret")
        return [Predictions() for _ in text]

    ask = fill
    ask.options = NPM.ask.options

    def classify(self, text: str, **options: Any) -> Predictions:
        self.asked.append((text, options))
        return Predictions()

    def search(self, query: str, k: int, mode: str) -> Hits:
        self.asked.append((query, {"k": k, "mode": mode}))
        return Hits()

    def describe(self) -> dict[str, Any]:
        return {"models": {"shards": 1}, "modes": ["bm25"]}


class Client:
    """Sends a body in pieces to the application, and counts how many it took."""

    def __init__(self) -> None:
        self.answering = Recorded()
        self.api = create_app(self.answering, LIMITS, Access(hosts=()))  # type: ignore[arg-type]
        self.headers: dict[str, str] = {}
        self.taken = 0

    def send(self, path: str, pieces: Iterable[bytes], method: str = "POST", **headers: str) -> tuple[int, Any]:
        return asyncio.run(self._send(path, iter(pieces), method, headers))

    async def _send(self, path: str, pieces: Any, method: str, headers: dict[str, str]) -> tuple[int, Any]:
        sent: list[Any] = []
        given = {"content-type": "application/json", **{name.replace("_", "-"): each for name, each in headers.items()}}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(name.encode(), each.encode()) for name, each in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }

        ended = False

        async def receive() -> dict[str, Any]:
            nonlocal ended
            piece = next(pieces, None)
            if ended:
                await asyncio.Event().wait()  # the client waits for its answer
            if piece is None:
                ended = True
                return {"type": "http.request", "body": b"", "more_body": False}
            self.taken += 1
            return {"type": "http.request", "body": piece, "more_body": True}

        async def take(message: Any) -> None:
            sent.append(message)

        await self.api(scope, receive, take)
        body = b"".join(each.get("body", b"") for each in sent[1:])
        self.headers = {name.decode(): each.decode() for name, each in sent[0]["headers"]}
        return sent[0]["status"], json.loads(body)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        return self.send(path, [body if isinstance(body, bytes) else json.dumps(body).encode()])


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.api.state.service.queue.close()


def test_what_is_within_bounds_is_answered(client: Client) -> None:
    text = "x" * 94 + "[MASK]"
    assert client.post("/v1/fill", {"text": [text] * 3, "k": 9, "passages": None}) == (
        200,
        NOTHING | {"predictions": [[]] * 3},
    )
    asked, options = client.answering.asked[0]
    assert asked == [text] * 3
    assert (options["k"], options["passages"], options["top_k"], options["temperature"]) == (9, None, 5, 1.0)
    assert client.post("/v1/ask", {"question": "Who?"})[0] == 200
    assert client.post("/v1/search", {"query": "who", "k": 3}) == (
        200,
        NOTHING | {"passages": [], "read_as": ""},
    )
    assert client.send("/v1/corpus", [], "GET")[1]["models"] == {"shards": 1}
    assert len(client.answering.asked) == 3


def test_no_texts_have_no_answers(client: Client) -> None:
    assert client.post("/v1/fill", {"text": []}) == (200, NOTHING | {"predictions": []})


@pytest.mark.parametrize("stated", [True, False])
def test_a_large_body_is_refused_before_it_is_read(client: Client, stated: bool) -> None:
    pieces = [b'{"text": "'] + [b"word " * 100] * 10_000
    headers = {"content_length": str(sum(map(len, pieces)))} if stated else {}
    status, answer = client.send("/v1/fill", pieces, **headers)
    assert (status, answer["detail"]) == (413, "the body is too large; at most 2,000 bytes")
    assert client.taken == (0 if stated else 5)  # the piece that exceeds 2,000 bytes is the last one taken
    assert not client.answering.asked


def test_a_body_of_just_so_many_bytes_is_read(client: Client) -> None:
    body = json.dumps({"text": "a"}).encode()
    assert client.post("/v1/fill", body + b" " * (2000 - len(body)))[0] == 200
    assert client.post("/v1/fill", body + b" " * (2001 - len(body)))[0] == 413


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/v1/fill", {"text": "x" * 101}, "text: 101 characters; at most 100"),
        ("/v1/fill", {"text": ["a", "x" * 101]}, "text: 101 characters; at most 100"),
        ("/v1/fill", {"text": list("abcd")}, "text: a list of 4; at most 3 at once"),
        ("/v1/ask", {"question": list("abcd")}, "question: a list of 4; at most 3 at once"),
        ("/v1/ask", {"question": "a", "template": "x" * 101}, "template: 101 characters; at most 100"),
        ("/v1/search", {"query": "x" * 101}, "query: 101 characters; at most 100"),
        ("/v1/fill", {"text": "a", "banned_tokens": ["x" * 101]}, "banned_tokens: 101 characters; at most 100"),
        ("/v1/fill", {"text": "a", "exclude": [1] * 600 + [2**63]}, "exclude"),
        ("/v1/fill", b'{"text": "\\ud800 [MASK]"}', "text: "),
        ("/v1/fill", b'{"text": "a", "banned_tokens": ["\\udfff"]}', "banned_tokens"),
        ("/v1/search", b'{"query": "\\ud800"}', "query: "),
        ("/v1/fill", b'{"text": "a", "\\ud800": 1}', "unicode"),
        ("/v1/fill", b'{"text": "a", "temperature": 1e999}', "temperature: "),
        ("/v1/fill", b'{"text": "a", "temperature": 1e-320}', "temperature: "),
        ("/v1/fill", b'{"text": "a", "temperature": NaN}', "temperature: "),
        ("/v1/fill", {"text": "a", "length_exponent": 1e308}, "length_exponent: "),
        ("/v1/fill", b'{"text": "a", "passage_share": -Infinity}', "passage_share: "),
        ("/v1/fill", {"text": "a", "max_phrase_tokens": 2**70}, "max_phrase_tokens: "),
        ("/v1/fill", {"text": "a", "k": 2**70}, "65536"),
        ("/v1/fill", {"text": "a", "top_k": 10**9}, "1000"),
        ("/v1/fill", {"text": "a", "max_evidence": 10**9}, "1000"),
        ("/v1/fill", {"text": "a", "passages": 10**9}, "256"),
        ("/v1/search", {"query": "a", "k": 10**9}, "1000"),
        ("/v1/fill", {"text": "a", "passages": 0}, "passages"),
        ("/v1/search", {"query": "a", "snapshot": 2**53}, "snapshot"),
        ("/v1/fill", {"text": 5}, "text"),
        ("/v1/fill", {"text": "a", "topk": 3}, "topk: Extra"),
        ("/v1/fill", {}, "text: Field required"),
        ("/v1/fill", b"{", "JSON"),
    ],
    ids=str,
)
def test_what_is_too_much_is_told_with_its_bound(client: Client, path: str, body: Any, said: str) -> None:
    status, answer = client.post(path, body)
    assert status == 422
    assert {*answer} - {"errors"} == {"type", "title", "status", "detail"}
    assert said in answer["detail"]
    assert "\n" not in answer["detail"]
    assert len(json.dumps(answer)) < 2500
    assert not client.answering.asked


@pytest.mark.parametrize("body", [b"[" * 1999, b'{"text": ' + b"[" * 1900, b"\xff\xfe", b"1" * 1999, b"null"], ids=repr)
def test_what_is_no_request_is_a_mistake_too(client: Client, body: bytes) -> None:
    assert client.post("/v1/fill", body)[0] in (400, 422)


def test_mistakes_and_patience_are_told_as_ever(client: Client) -> None:
    status, answer = client.post("/v1/fill", {"text": "no blank"})
    assert (status, answer["detail"]) == (400, "no blank \\ud800 in atlas")
    assert client.headers["content-type"] == "application/problem+json"
    status, answer = client.post("/v1/fill", {"text": "slow"})
    assert (status, answer["detail"]) == (503, "no answer in 7 seconds; ask again later")
    assert client.headers["retry-after"] == "5"


def test_a_body_that_comes_too_slowly_is_given_up(client: Client) -> None:
    api = create_app(client.answering, Limits(timeout=0.05), Access(hosts=()))  # type: ignore[arg-type]
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.sleep(60)

    async def take(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/fill", "query_string": b"", "headers": []}
    asyncio.run(api(scope, never, take))
    api.state.service.queue.close()
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["detail"] == "the body took longer than 0.05 seconds"


def test_limits_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="limit text is 0; it must be 1 or more"):
        Limits(text=0)
