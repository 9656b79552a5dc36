"""The HTTP application: what requests may hold, and how answers and mistakes are told.

Knows: bounds, which are checked before a text is read as tokens. Does not know: who answers.

    POST /fill    {"text": "… [MASK] …", "top_k": 5, "passages": null, …}   -> {"predictions": [...]}
    POST /ask     {"question": "…", …}
    POST /search  {"query": "…", "k": 10}                                   -> {"passages": [...]}
    GET  /health                                                            -> {"shards": 2, …}
"""

# No postponed annotations: FastAPI reads those of functions within functions.

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Protocol, get_type_hints

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

from quoth.errors import InputError, UserError
from quoth.predictors.options import MEANINGS, FillOptions
from quoth.records import Hit, Prediction

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MOST_NEIGHBOURS = 1 << 16
MOST_ANSWERS = 1000
MOST_PASSAGES = 256
MOST_PHRASE_TOKENS = 32
MOST_BANNED = 1000
MOST_EXCLUDED = 10_000
LARGEST_EXPONENT = 100.0
LONGEST_REASON = 300

Count = Annotated[int, Field(le=MOST_ANSWERS)]
Row = Annotated[int, Field(ge=0, lt=1 << 63)]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may hold at most: bytes of its body, characters of each text, texts (or questions) at once.

    Raises InputError unless all are 1 or more.
    """

    body: int = 1_000_000
    text: int = 20_000
    texts: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            if (value := getattr(self, each.name)) < 1:
                raise InputError(f"--max-{each.name} is {value}; it must be 1 or more")

    def check(self, request: BaseModel) -> None:
        """Raises BoundError where a text is too long or no Unicode text, or there are too many."""
        for name, value in request:
            members = value if isinstance(value, list) else [value]
            if name in ("text", "question") and len(members) > self.texts:
                raise BoundError(f"{name}: a list of {len(members):,}; at most {self.texts:,} at once")
            for each in members:
                if isinstance(each, str):
                    self._check_text(name, each)

    def _check_text(self, name: str, text: str) -> None:
        if len(text) > self.text:
            raise BoundError(f"{name}: {len(text):,} characters; at most {self.text:,}")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BoundError(f"{name}: half of a surrogate pair is no character; send Unicode text") from None


class BoundError(InputError):
    """A request that holds more than is allowed, or what no text can hold."""


STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
BOUNDS: dict[str, Any] = {
    "top_k": Field(le=MOST_ANSWERS),
    "max_evidence": Field(le=MOST_ANSWERS),
    "k": Field(le=MOST_NEIGHBOURS),
    "temperature": Field(ge=1e-3, le=1e3),
    "length_exponent": Field(ge=-LARGEST_EXPONENT, le=LARGEST_EXPONENT),
    "banned_tokens": Field(max_length=MOST_BANNED),
    "max_phrase_tokens": Field(le=MOST_PHRASE_TOKENS),
    "read": Field(le=MOST_PASSAGES),
}
"""What a request may ask for at most, by option; a caller's own process has no such bounds."""


def _options() -> dict[str, Any]:
    """What a request may say beside its text: the options of `FillOptions`, and rows of passages to leave out."""
    hints = get_type_hints(FillOptions) | {"banned_tokens": list[str]}
    hints["passages"] = Annotated[int, Field(le=MOST_PASSAGES)] | Literal["default"] | None
    found: dict[str, Any] = {
        each.name: (
            Annotated[hints[each.name], BOUNDS.get(each.name), Field(description=MEANINGS[each.name])],
            [] if each.name == "banned_tokens" else each.default,
        )
        for each in fields(FillOptions)
    }
    return found | {"exclude": (Annotated[list[Row], Field(max_length=MOST_EXCLUDED)], [])}


Texts = str | list[str]
FillRequest: Any = create_model("FillRequest", __config__=STRICT, text=(Texts, ...), **_options())
AskRequest: Any = create_model(
    "AskRequest", __config__=STRICT, question=(Texts, ...), template=(str | None, None), **_options()
)


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str
    k: Count = 10


class Answering(Protocol):
    """What answers: a model, and what is known of its corpus."""

    def fill(self, text: str | list[str], **options: Any) -> Any: ...
    def ask(self, question: str | list[str], **options: Any) -> Any: ...
    def search(self, query: str, k: int) -> Sequence[Hit]: ...
    def health(self) -> dict[str, Any]: ...


class BodyLimit:
    """Reads a request's body before anything else sees it; one that is too large is answered with 413."""

    def __init__(self, app: Callable[..., Awaitable[None]], most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        large = stated.isdigit() and int(stated[:20]) > self._most
        body = None if large else await self._read(receive)
        if body is None:
            await _told(413, f"the body is too large; at most {self._most:,} bytes")(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """None where it is too large."""
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most:
                return None
            more = message.get("more_body", False)
        return b"".join(parts)


def _told(status: int, reason: str) -> JSONResponse:
    """An answer that says what is wrong; what the request held may be quoted in it, though JSON cannot spell it."""
    said = reason.encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error": said}, status_code=status)


def _invalid(error: RequestValidationError) -> str:
    """What is wrong with the first wrong field, and its name; never its value, which may be long."""
    reasons = []
    for each in error.errors()[:3]:
        name = ".".join(str(part) for part in each["loc"] if part != "body")[:LONGEST_REASON]
        reasons.append(f"{name or 'body'}: {each['msg'][:LONGEST_REASON]}")
    return "; ".join(reasons)


def http_api(limits: Limits, answering: Callable[[], Answering], patience: float) -> FastAPI:
    """The application; `answering` gives what answers, which has `patience` seconds before it raises TimeoutError."""
    api = FastAPI(title="Quoth")
    api.add_middleware(BodyLimit, most=limits.body)
    reasons: Mapping[type[Exception], Callable[[Any], tuple[int, str]]] = {
        RequestValidationError: lambda error: (422, _invalid(error)),
        BoundError: lambda error: (422, str(error)),
        UserError: lambda error: (400, str(error)),
        TimeoutError: lambda error: (503, f"a shard gave no answer in {patience:.0f} seconds; ask again later"),
    }
    for kind, reason in reasons.items():
        api.add_exception_handler(kind, lambda _, error, reason=reason: _told(*reason(error)))

    @api.post("/fill")
    def fill(request: FillRequest) -> dict[str, Any]:
        limits.check(request)
        return _predictions(answering().fill(request.text, **request.model_dump(exclude={"text"})))

    @api.post("/ask")
    def ask(request: AskRequest) -> dict[str, Any]:
        limits.check(request)
        return _predictions(answering().ask(request.question, **request.model_dump(exclude={"question"})))

    @api.post("/search")
    def search(request: SearchRequest) -> dict[str, Any]:
        limits.check(request)
        return {"passages": [each.to_dict() for each in answering().search(request.query, request.k)]}

    @api.get("/health")
    def health() -> dict[str, Any]:
        return answering().health()

    return api


def _predictions(found: Sequence[Prediction] | Sequence[Sequence[Prediction]]) -> dict[str, Any]:
    return {
        "predictions": [
            each.to_dict() if isinstance(each, Prediction) else [one.to_dict() for one in each] for each in found
        ]
    }
