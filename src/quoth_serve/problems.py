"""Errors as `application/problem+json` (RFC 9457).

Knows: which error has which status, and that no answer names a folder of this machine. Does not know: the routes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from quoth.corpus.checks import to_json
from quoth.errors import (
    CorpusNotFoundError,
    DuplicateDocumentError,
    LockedError,
    QuothError,
    UnknownDocumentError,
    UserError,
)
from quoth_serve.limits import BoundError

LOG = logging.getLogger("quoth.service")
MEDIA_TYPE = "application/problem+json"
LONGEST_REASON = 300
MOST_FAULTS = 3


class BusyError(QuothError):
    """The queue is full, or closed."""

    def __init__(self, seconds: int, why: str = "too many requests are waiting") -> None:
        super().__init__(f"{why}; ask again in {seconds} s")
        self.seconds = seconds


STATUS: dict[type[Exception], int] = {
    BoundError: 422,
    CorpusNotFoundError: 404,
    UnknownDocumentError: 404,
    DuplicateDocumentError: 409,
    LockedError: 423,
    UserError: 400,
    BusyError: 503,
    TimeoutError: 503,
}
"""The first match counts."""
RETRY_SECONDS = {423: 1, 503: 5}
"""When to ask again, if the error does not say it."""


class Fault(BaseModel):
    """An invalid field of a request."""

    field: str
    message: str


class Problem(BaseModel):
    """An error in RFC 9457's form; `errors` names the invalid fields."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": "topk: Extra inputs are not permitted",
                    "errors": [{"field": "topk", "message": "Extra inputs are not permitted"}],
                }
            ]
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": said}
    for code, said in {
        400: "A value that cannot be used",
        401: "No token, or a wrong one",
        404: "No such corpus, snapshot or document",
        408: "The body came too slowly",
        413: "The body is too large",
        421: "The service does not accept this host name",
        422: "The request is invalid",
        503: "Too many requests, or no answer in time; see Retry-After",
    }.items()
}
"""The errors that every route may return, for its description."""


def described(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, whose errors have their own media type."""
    if api.openapi_schema is None:
        found = get_openapi(title=api.title, version=api.version, summary=api.summary, routes=api.routes)
        for path in found["paths"].values():
            for operation in path.values():
                for status, reply in operation["responses"].items():
                    if int(status) >= 400:
                        reply["content"] = {MEDIA_TYPE: reply["content"].pop("application/json")}
        api.openapi_schema = found
    return api.openapi_schema


class JSON(Response):
    """An answer as JSON: a number that JSON lacks is null, half of a surrogate pair is spelled as JSON can, and what is
    nested too deep to be written is left out."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        text = to_json(content, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def problem(
    status: int, detail: str, errors: list[Fault] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """An error reply; it may quote the request's text, even what JSON cannot spell."""
    title = HTTPStatus(status).phrase
    said = Problem(title=title, status=status, detail=detail, errors=errors or [])
    names = None if errors else {"errors"}
    return JSON(said.model_dump(exclude=names), status, headers, MEDIA_TYPE)


def add_problems(api: FastAPI, folders: Mapping[str, str]) -> None:
    """Make an application answer errors in this form; `folders` are those of its corpora, with the names to show
    instead."""

    def told(error: Exception) -> str:
        text = str(error)
        for folder, name in folders.items():
            text = text.replace(folder, name)
        return _spelled(text)

    def of_ours(_: Request, error: Exception) -> Response:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
        again = getattr(error, "seconds", RETRY_SECONDS.get(status))
        if status == 500:
            LOG.error("error", extra={"error": str(error)})
        detail = told(error) or "no answer in time; ask again later"
        return problem(status, detail, headers={"Retry-After": str(again)} if again else None)

    def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return faulty(list(map(_fault, error.errors()[:MOST_FAULTS])))

    def faulty(found: list[Fault]) -> Response:
        return problem(422, "; ".join(f"{each.field}: {each.message}" for each in found), found)

    def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if error.status_code == 405:  # Starlette names the methods of the first route of this path alone
            headers["Allow"] = ", ".join(_methods(api, request))
        if isinstance(error.__cause__, UnicodeDecodeError):
            return faulty([Fault(field="body", message="not UTF-8; send JSON in UTF-8")])
        return problem(error.status_code, str(error.detail), headers=headers)

    for kind, handler in (
        (RequestValidationError, invalid),
        (QuothError, of_ours),
        (TimeoutError, of_ours),
        (HTTPException, of_http),
    ):
        api.add_exception_handler(kind, handler)


def _methods(api: FastAPI, request: Request) -> list[str]:
    """The methods of all routes of a path."""
    routes = [each for each in api.routes if isinstance(each, Route) and each.matches(request.scope)[0] != Match.NONE]
    return sorted({method for each in routes for method in each.methods or ()})


def _spelled(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _fault(error: Mapping[str, Any]) -> Fault:
    """A wrong field and what is wrong with it; never its value, which may be long."""
    if error["type"] == "json_invalid":
        return Fault(field="body", message=f"not JSON, at character {error['loc'][-1]}; send a JSON object")
    if error["type"] == "model_attributes_type":
        return Fault(field="body", message="not an object; send a JSON object, as Content-Type: application/json")
    name = ".".join(str(part) for part in error["loc"] if part not in ("body", "query"))[:LONGEST_REASON]
    return Fault(field=_spelled(name or "body"), message=_spelled(error["msg"][:LONGEST_REASON]))
