"""Lines: what prose is wrapped into is one; fields, items and rows are each their own."""

from __future__ import annotations

from itertools import pairwise

import pytest

from quoth.text.lines import is_heading, is_item, is_same_field, lines_of

WRAPPED = "The first row of a paragraph of wrapped prose\nis followed by a second row."
RECORD = "Coastline: 998 km of the southern and of the eastern sea\nClimate: arid\nClimate - winter: mild"


def texts(text: str) -> list[str]:
    return [text[line.start : line.end] for line in lines_of(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("---\n ***", []),
        (WRAPPED, [WRAPPED]),
        (f"  {WRAPPED}\n\nAnd a third.", [WRAPPED, "And a third."]),
        (RECORD, RECORD.split("\n")),
        ("milk\neggs", ["milk", "eggs"]),
        ("- milk\n- eggs", ["- milk", "- eggs"]),
    ],
)
def test_lines(text: str, found: list[str]) -> None:
    assert texts(text) == found


def test_headings_items_and_fields() -> None:
    text = f"# Seas\n{RECORD}\n- salt. And water\n| a | b |\nPlain prose ends here."
    lines = lines_of(text)
    assert [is_heading(text, lines, i) for i in range(len(lines))] == [True, *[False] * 6]
    assert [is_item(text, line) for line in lines] == [False, True, True, True, True, True, False]
    same = [is_same_field(text, *pair) for pair in pairwise(lines)]
    assert same == [False, False, True, False, False, False]
