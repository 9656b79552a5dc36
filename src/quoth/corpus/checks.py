"""What a document must be to be stored exactly as it is.

Knows: documents, JSON. Does not know: files, formats, corpora.
"""

import json
from collections.abc import Mapping
from typing import Any

from quoth.errors import brief
from quoth.records import Document
from quoth_sources.source_map import frames_of

ID_FIELDS = ("id", "_id", "wikipedia_id")
TITLE_FIELDS = ("title", "wikipedia_title")
DEEPEST = 64
"""Levels of lists and objects in a document's metadata, the metadata itself included: JSON is read and written by
recursion, and whoever reads it deeper in a program has fewer levels left."""
_TOO_DEEP = f"metadata is nested more than {DEEPEST} deep; flatten it"


def check_document(document: Document) -> None:
    """Raises ValueError for a document that cannot be stored exactly as it is; the message says why."""
    if not isinstance(document.id, str) or not document.id:
        raise ValueError(f"id {brief(document.id)} is not a non-empty string")

    def refuse(value: object) -> object:
        raise ValueError(f"metadata contains {kind_of(value)}, which JSON cannot represent")

    try:
        metadata = json.dumps(document.metadata, ensure_ascii=False, default=refuse)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _is_deeper(document.metadata, DEEPEST):
        raise ValueError(_TOO_DEEP)
    strange: list[str] = []
    json.loads(metadata, parse_constant=strange.append)
    if strange:
        raise ValueError("metadata contains NaN or an infinite number, which JSON cannot represent")
    if document.source_map and [*frames_of(document.source_map)][-1][1] > len(document.text):
        raise ValueError("its source map goes beyond its text")
    fields = {"id": document.id, "title": document.title, "text": document.text, "metadata": metadata}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} is {kind_of(value)}, not a string")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{name} is not valid Unicode at character {error.start}") from None


def to_json(value: Any, **style: Any) -> str:
    """A value as JSON in this style of `json.dumps`, with null for numbers that JSON lacks, and "…" for what is nested
    too deep to be written."""
    try:
        return json.dumps(value, allow_nan=False, **style)
    except (RecursionError, ValueError):
        known = json.loads(json.dumps(_shallow(value)), parse_constant=lambda _: None)
        return json.dumps(known, **style)


def _shallow(value: Any, deepest: int = 2 * DEEPEST) -> Any:
    """A value as JSON has it, with "…" in place of lists and objects that are nested deeper."""
    if isinstance(value, Mapping):
        return {name: _shallow(each, deepest - 1) for name, each in value.items()} if deepest else "…"
    if isinstance(value, (list, tuple)):
        return [_shallow(each, deepest - 1) for each in value] if deepest else "…"
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, (Mapping, list, tuple)):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def kind_of(value: object) -> str:
    """The type of a value from JSON, in a message."""
    return "null" if value is None else type(value).__name__
