"""Notebooks of Jupyter: cells of Markdown without their markup, code as it is, and what it wrote, each with its cell.

Knows versions 3 and 4 of the format. Of an output it reads the plain text, without colours; pictures and web pages are
not read.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quoth_sources import markdown
from quoth_sources.blocks import Block
from quoth_sources.source import Source, Text

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def read(content: bytes) -> Source:
    """The text of a notebook. Raises ValueError if it is none."""
    try:
        notebook = json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"not JSON ({error}); is it a notebook?") from None
    text, title, notes = Text("element"), "", list[str]()
    for number, cell in enumerate(_cells(notebook), 1):
        kind, written = cell.get("cell_type"), _joined(cell.get("source", cell.get("input")))
        blocks: Sequence[Block] = ()
        if kind in ("markdown", "heading"):
            marked = markdown.read(f"# {written}" if kind == "heading" else written)
            notes += [f"cell {number}: {note}" for note in marked.notes]
            title = title or str(marked.metadata.get("title", ""))
            written, blocks = marked.text, marked.blocks
        text.block("code" if kind == "code" else "paragraph")
        text.blocked(written.strip("\n").rstrip(), blocks, f"cell {number}")
        for output in _outputs(cell):
            text.gap()
            text.block("code")
            text.add(output.strip("\n").rstrip(), f"cell {number}")
        text.gap()
    facts = notebook.get("metadata")
    return text.source({"title": (facts.get("title") if isinstance(facts, Mapping) else "") or title}, notes)


def _cells(notebook: Any) -> Iterator[Mapping[str, Any]]:
    """Raises ValueError if there are none."""
    parts = notebook.get("worksheets", [notebook]) if isinstance(notebook, Mapping) else []
    found = [part.get("cells") for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    if not (lists := [cells for cells in found if isinstance(cells, list)]):
        raise ValueError("it has no list of cells; is it a notebook?")
    return (cell if isinstance(cell, Mapping) else {} for cells in lists for cell in cells)


def _joined(lines: Any) -> str:
    """A text of several lines, which may be a list of them."""
    return "".join(map(str, lines)) if isinstance(lines, list) else lines if isinstance(lines, str) else ""


def _outputs(cell: Mapping[str, Any]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping):
            data = output.get("data")
            plain = data.get("text/plain") if isinstance(data, Mapping) else output.get("text")
            failed = ": ".join(str(output[name]) for name in ("ename", "evalue") if output.get(name))
            yield _COLOUR.sub("", _joined(plain) or failed)
