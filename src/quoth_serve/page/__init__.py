"""The page: plain files that the service sends as they are.

Knows: which files there are. Does not know: what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from fastapi import FastAPI
from starlette.responses import Response

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
START = "index.html"


def add_page(api: FastAPI) -> None:
    """Send the page at `/` and its other files at `/page/`. They are read once: no request becomes a path."""
    for each in files("quoth_serve.page").iterdir():
        if kind := KINDS.get(each.name.rpartition(".")[2]):
            path = "/" if each.name == START else f"/page/{each.name}"
            api.add_api_route(path, _sender(each.read_bytes(), kind), include_in_schema=False, response_class=Response)


def _sender(content: bytes, kind: str) -> Callable[[], Response]:
    def send() -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return send
