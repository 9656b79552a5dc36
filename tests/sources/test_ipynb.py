"""Notebooks: cells by hand, in both versions of the format, and what is none."""

import json
from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth_sources import ipynb
from quoth_sources.source_map import locate

OUTPUTS: list[dict[str, Any]] = [
    {"output_type": "stream", "name": "stdout", "text": ["pumps: 3\n", "\x1b[31mred\x1b[0m\n"]},
    {"output_type": "execute_result", "data": {"text/plain": "   a\n0  1", "text/html": "<table>"}},
    {"output_type": "display_data", "data": {"image/png": "AAAA"}},
    {"output_type": "error", "ename": "ValueError", "evalue": "no pump", "traceback": ["long"]},
]
CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "source": ["# The *pump*\n", "\n", "It is in the cellar."]},
    {"cell_type": "code", "source": "def f():\n    return 1\n", "outputs": OUTPUTS},
    {"cell_type": "raw", "source": "as it is"},
    {"cell_type": "code", "source": "", "outputs": []},
]
TEXT = (
    "The pump\n\nIt is in the cellar.\n\ndef f():\n    return 1\n\npumps: 3\nred\n\n   a\n0  1\n\n"
    "ValueError: no pump\n\nas it is"
)


def written(**notebook: Any) -> bytes:
    return json.dumps(notebook).encode()


def test_cells_in_their_order_each_with_its_number() -> None:
    source = ipynb.read(written(cells=CELLS, metadata={}, nbformat=4))
    assert (source.text, source.metadata) == (TEXT, {"title": "The pump"})
    found = {
        part: str(locate(quoth_map(source), start := TEXT.index(part), start + 1)) for part in ("cellar", "red", "as")
    }
    assert found == {"cellar": "cell 1", "red": "cell 2", "as": "cell 3"}


def quoth_map(source: Any) -> bytes:
    from quoth_sources.source_map import encode

    return encode(source.kind, source.runs)


def test_the_third_version_of_the_format() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Pumps"},
        {"cell_type": "code", "input": ["1 + 1"], "outputs": [{"output_type": "pyout", "text": ["2"]}]},
    ]
    source = ipynb.read(written(worksheets=[{"cells": cells}], metadata={"title": "Own"}, nbformat=3))
    assert (source.text, source.metadata["title"]) == ("Pumps\n\n1 + 1\n\n2", "Own")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'"x"', b'{"cells": 3}', b'{"worksheets": 1}', b"\xff\xfe"]
)
def test_what_is_no_notebook(content: bytes) -> None:
    with pytest.raises(ValueError, match="is it a notebook"):
        ipynb.read(content)


@pytest.mark.parametrize(
    "cell",
    [
        {},
        {"cell_type": "code", "source": 3, "outputs": 7},
        {"cell_type": "markdown", "source": [1, None]},
        {"cell_type": "heading", "level": "x", "source": "a"},
        {"cell_type": "code", "source": "x", "outputs": [1, {"data": []}, {"data": {"text/plain": {}}}]},
    ],
)
def test_odd_cells_stop_nothing(cell: Any) -> None:
    assert "as it is" in ipynb.read(written(cells=[cell, 5, CELLS[2]])).text


def test_a_notebook_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "n.ipynb").write_bytes(written(cells=CELLS))
    [document] = quoth.read_documents(tmp_path)
    assert (document.id, document.title, document.text) == ("n.ipynb", "The pump", TEXT)
