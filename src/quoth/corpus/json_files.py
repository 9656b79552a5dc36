"""JSON: the records of an array, alone or in an object that has nothing else of several parts; or the text of the file.

Knows which values are records, and what a record without a text says. Does not know files or compression.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from quoth.corpus.checks import ID_FIELDS, TITLE_FIELDS
from quoth.corpus.whole import document_of, whole
from quoth.errors import FileWarning, few
from quoth.records import Document
from quoth_sources import limits
from quoth_sources.files import bare

if TYPE_CHECKING:
    from quoth.corpus.documents import Reader, Records


def read(stream: IO[bytes], name: str, jsonl: "Reader") -> "Records":
    """Records, or the one document that a file is; `jsonl` reads a file with an object on each line."""
    try:
        content = whole(stream, limits.JSON_BYTES, "split it, or write an object per line (--format jsonl)")
    except ValueError as error:
        yield 0, error
        return
    try:
        text = content.decode(json.detect_encoding(content))
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            yield from jsonl(BytesIO(content), name)
        else:
            where = f"line {error.lineno}, character {error.colno}"
            yield 0, ValueError(f"not JSON ({error.msg.removesuffix(' at')} at {where})")
        return
    except (ValueError, RecursionError) as error:
        yield 0, ValueError(f"not JSON that can be read ({error})")
        return
    title = bare(Path(name)).stem
    found, others = _records(value)
    if found is None:
        if "\n" in text.strip():
            yield 0, document_of("text", text, name, name, title)
        else:
            yield 0, Document(name, title, json.dumps(value, ensure_ascii=False, indent=2))
        return
    told = [f"is read as the records of {others[0]!r}, without {few(others[1:])}"] if others[1:] else []
    if any("text" not in each for each in found):
        told.append("has records without 'text'; their text is every value under its name, 'name: value | …'")
    if told:
        warnings.warn(FileWarning(f"{name} {'; it '.join(told)}"), stacklevel=2)
    yield from enumerate((_with_text(each, title) for each in found), 1)


def _records(value: Any) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """The records that a value is, and the names of an object: of those records first. None if it is a document."""
    if isinstance(value, list):
        return (value, []) if all(isinstance(each, dict) for each in value) else (None, [])
    if not isinstance(value, dict):
        return None, []
    if isinstance(value.get("text"), (str, list)):
        return [value], []
    parts = [name for name, each in value.items() if isinstance(each, (dict, list))]
    if len(parts) != 1 or not isinstance(rows := value[parts[0]], list):
        return None, []
    if not rows or not all(isinstance(each, dict) for each in rows):
        return None, []
    return rows, [*parts, *(name for name in value if name not in parts)]


def _with_text(record: Mapping[str, Any], title: str) -> dict[str, Any]:
    """A record with a text: by default each value behind its name, as of a row of a table (`tables`)."""
    if "text" in record:
        return dict(record)
    own = {} if any(record.get(name) for name in TITLE_FIELDS) else {"title": title}
    cells = [
        f"{name}: {said}"
        for key, value in record.items()
        if key not in (*ID_FIELDS, *TITLE_FIELDS)
        for name, each in _values(key, value)
        if (said := " ".join(each.split()))
    ]
    return {**record, **own, "text": " | ".join(cells)}


def _values(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values inside a value, with the names that lead there; of a list without records, one."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _values(f"{name}.{key}", each)
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        for each in value:
            yield from _values(name, each)
    elif isinstance(value, list):
        yield name, ", ".join(map(_spelled, value))
    else:
        yield name, _spelled(value)


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
