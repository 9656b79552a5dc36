"""Spreadsheets of every format: a row is a line, each value with the heading of its column, its sheet and its cell. Of
several sheets each has its name in every row.

Knows what cells say, and how empty rows and columns separate tables. Does not know charts, or how a sheet looks.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from quoth_sources.source import Text
from quoth_sources.tables import Box, heading_rows, write

Row = list[Box]
MOST_EMPTY = 20_000
"""Empty rows in a row after which a sheet is over: some have a million of them."""


def written(sheets: Sequence[tuple[str, Iterable[Row]]]) -> Text:
    """The text of the sheets, titles with their rows."""
    text = Text("cell")
    for title, rows in sheets:
        for number, table in enumerate(_tables(rows)):
            if not number:
                text.gap()
                text.block("heading", 1)
                text.add(title)
            name = f"Sheet: {title}" if len(sheets) > 1 else ""
            write(text, table, name=name)
    return text


def _tables(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The tables, which empty rows and columns separate."""
    for is_filled, group in groupby(rows, _is_filled):
        if is_filled:
            yield from _blocks([*group])
        elif sum(1 for _ in islice(group, MOST_EMPTY + 1)) > MOST_EMPTY:
            return


def _is_filled(row: Row) -> bool:
    return any(box.said for box in row)


def _blocks(rows: list[Row]) -> Iterator[list[Row]]:
    """The tables among cells that empty columns separate. If none has headings, all stay together, as a form's labels
    and values do. A column behind a gap belongs to the table before it if it is in the same rows and has a heading."""
    filled = {number for row in rows for number, box in enumerate(row) if box.said}
    starts = sorted(number for number in filled if number - 1 not in filled)
    ends = sorted(number + 1 for number in filled if number + 1 not in filled)
    blocks = [[row[start:end] for row in rows] for start, end in zip(starts, ends, strict=True)]
    parts = [[*group] for block in blocks for is_filled, group in groupby(block, _is_filled) if is_filled]
    headed = [*map(_stands_alone, parts)]
    if len(blocks) == 1 or not any(headed):
        yield [row[starts[0] :] for row in rows]
        return
    joined = [[box for row in across for box in row] for across in zip(*blocks, strict=True)]
    in_same_rows = len({tuple(map(_is_filled, block)) for block in blocks}) == 1
    if in_same_rows and not all(headed) and _stands_alone(joined):
        yield joined
    else:
        for part in parts:
            yield from _blocks(part)


def _stands_alone(rows: list[Row]) -> bool:
    """Whether cells are a table by themselves: all columns have headings, and all different."""
    first = [box.said for box in rows[0] if box.said]
    widest = max((number for row in rows for number, box in enumerate(row) if box.said), default=0)
    return 1 < len({*first}) == len(first) > widest and heading_rows(rows) > 0
