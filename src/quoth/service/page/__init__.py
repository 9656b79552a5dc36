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


def page_files() -> dict[str, bytes]:
    """The files by name."""
    return {
        each.name: each.read_bytes()
        for each in files("quoth.service.page").iterdir()
        if each.name.rsplit(".", 1)[-1] in KINDS
    }


def add_page(api: FastAPI) -> None:
    """Send the page at `/` and its other files at `/page/`. They are read once: no request becomes a path."""
    for name, content in page_files().items():
        path = "/" if name == START else f"/page/{name}"
        api.add_api_route(path, _sender(name, content), include_in_schema=False, response_class=Response)


def _sender(name: str, content: bytes) -> Callable[[], Response]:
    kind = KINDS[name.rsplit(".", 1)[-1]]

    def send() -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return send
