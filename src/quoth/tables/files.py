"""A table as a file: CSV, JSON lines and Parquet here, a workbook and a page by their own modules.

Knows: which suffix is which form, and that a file is there whole or not at all. Does not know: how cells are found.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quoth.errors import InputError
from quoth.storage import create, fsync_path, refuse_unless_plain, temporary
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.told import Look, Rows, shown

AT_A_TIME = 1000
"""Rows of a group in Parquet."""


def check_output(path: Path) -> None:
    """Raises InputError if a table cannot be written there."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"{path}: {path.suffix or 'no suffix'}; a table is written as {', '.join(_WRITERS)}")
    if path.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise InputError(f"{path}: a workbook takes xlsxwriter, which is not installed; pip install 'quoth[documents]'")
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise InputError(f"{path}: {'a folder' if path.is_dir() else 'no such folder'}; name a file in one that exists")
    refuse_unless_plain(path)


def write(
    path: Path,
    columns: Sequence[Column],
    rows: Rows,
    look: Look,
    will_write: Callable[[Path], None] | None = None,
) -> None:
    """Writes a table; `will_write` is told the file before it gets its name."""
    with replacing(path, will_write) as part:
        _WRITERS[path.suffix.lower()](part, columns, rows, look)


@contextmanager
def replacing(path: Path, will_write: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """Where to write a file in the block, which then gets its name."""
    part = temporary(path)
    try:
        yield part
        fsync_path(part)
        if will_write is not None:
            will_write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    fsync_path(path.absolute().parent)


def with_links(row: Row, files: Path, beside: Path, but: Collection[str] = ()) -> Row:
    """A row whose places lead to the files of its documents in a folder, to the page if there is one, as seen from
    another. What has a link already, or no file there, keeps it, and so do some documents."""

    def linked(place: dict[str, Any]) -> dict[str, Any]:
        file, page = files / place["document_id"], place.get("location", {}).get("page")
        named = "link" in place or place["document_id"] in but
        if named or not file.resolve().is_relative_to(files.resolve()) or not file.is_file():
            return place
        path = quote(os.path.relpath(file.absolute(), beside).replace(os.sep, "/"))
        return place | {"link": f"{path}#page={page}" if page else path}

    return replace(row, cells={name: cell.placed(linked) for name, cell in row.cells.items()})


def _as_csv(part: Path, columns: Sequence[Column], rows: Rows, look: Look) -> None:
    """A column with the quotations of each question and, unless these are what is wanted, one with the values."""
    with create(part) as binary, TextIOWrapper(binary, "utf-8-sig", newline="") as stream:
        lines = csv.writer(stream)
        named = [(each.name, f"{each.name} (value)") if each.kind != "text" else (each.name,) for each in columns]
        lines.writerow(["document_id", "title", *(name for names in named for name in names), "error"])
        for row in rows():
            cells = [
                said
                for column, names in zip(columns, named, strict=True)
                for said in (row.cells[column.name].text, shown(row.cells[column.name].value))[: len(names)]
            ]
            lines.writerow([row.document_id, row.title, *cells, row.error])


def _as_jsonl(part: Path, columns: Sequence[Column], rows: Rows, look: Look) -> None:
    with create(part) as stream:
        for row in rows():
            stream.write(json.dumps(row.to_dict(), ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _as_parquet(part: Path, columns: Sequence[Column], rows: Rows, look: Look) -> None:
    """A struct for each column: text, value, probability, status, and the best place."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    kinds = {"number": pa.float64(), "yes/no": pa.bool_(), "list": pa.list_(pa.string())}
    kinds["money"] = pa.struct([("amount", pa.float64()), ("currency", pa.string())])
    place = [("document_id", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("page", pa.int64())]

    def struct(kind: str) -> Any:
        own = [("text", pa.string()), ("value", kinds.get(kind, pa.string()))]
        return pa.struct([*own, ("probability", pa.float64()), ("status", pa.string()), *place])

    def cell(known: Cell) -> dict[str, Any]:
        best = known.evidence[0] if known.evidence else {}
        own = {name: getattr(known, name) for name in ("text", "value", "probability", "status")}
        own |= {name: best.get(name) for name in ("document_id", "start", "end")}
        return own | {"page": best.get("location", {}).get("page")}

    ends = [("document_id", pa.string()), ("title", pa.string()), ("error", pa.string())]
    schema = pa.schema([*ends, *((f"{each.name}", struct(each.kind)) for each in columns)])
    with create(part) as stream, ParquetWriter(stream, schema) as writer:
        group = list[dict[str, Any]]()
        for row in rows():
            own = {"document_id": row.document_id, "title": row.title, "error": row.error or None}
            group.append(own | {name: cell(each) for name, each in row.cells.items()})
            if len(group) == AT_A_TIME:
                writer.write_table(pa.Table.from_pylist(group, schema))
                group = []
        writer.write_table(pa.Table.from_pylist(group, schema))


def _as_workbook(part: Path, columns: Sequence[Column], rows: Rows, look: Look) -> None:
    from quoth.tables.workbook import write_workbook

    write_workbook(part, columns, rows)


def _as_page(part: Path, columns: Sequence[Column], rows: Rows, look: Look) -> None:
    from quoth.tables.page import write_page

    write_page(part, columns, rows, look)


_WRITERS: dict[str, Callable[[Path, Sequence[Column], Rows, Look], None]] = {
    ".csv": _as_csv,
    ".xlsx": _as_workbook,
    ".html": _as_page,
    ".jsonl": _as_jsonl,
    ".parquet": _as_parquet,
}
