"""Which row, if any, has a table's headings, judged by the cells above and below each other.

A column speaks for headings if its first cell lacks what all others share (a number, a date, one length, a sign such as
@); against them if its first cell is a number or a date like the others, or occurs again below. Numbers in equal steps
(1, 2, 3) may be headings, and so may years that follow each other (2019, 2020) if most rows below have no such years.
Rows above the first that is about as wide as the table are its title or notes.

Knows cells. Does not know files, and no words but `text`, the name that a table gives its texts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from quoth.corpus.dates import LONGEST, read

Row = Sequence[str]
_SAME = 3
"""Cells that are equally long by chance only rarely."""
_LAST_YEAR, _DECADE = 2100, 10


@dataclass(frozen=True, slots=True)
class Headings:
    """Which of some rows is the first of the table, how many cells its rows have, whether that row has the headings,
    and whether its columns show it, or somebody says it."""

    row: int
    width: int
    are_there: bool
    is_sure: bool
    is_given: bool = False


def find(rows: Sequence[Row], given: bool | None = None) -> Headings:
    """Where the headings are in the first rows of a table, of which none is empty; `given` says whether there are."""
    width = _width(rows)
    row = next((n for n, cells in enumerate(rows) if _begins(cells, width, rows)), 0)
    if given is not None or "text" in rows[row]:
        return Headings(row, max(width, len(rows[row])), given is not False, True, given is not None)
    first, below = rows[row], rows[row + 1 :]
    steps = _steps(first) or _years(first, below)
    votes = [_vote(cell, column, steps) for cell, column in zip(first, _columns(below, len(first)), strict=True)]
    pro, contra = votes.count(1), votes.count(-1)
    return Headings(row, max(width, len(first)), pro >= contra, (pro > 0) != (contra > 0))


def _width(rows: Sequence[Row]) -> int:
    """The number of cells that most rows have, without columns at the end that are empty."""
    counted = Counter(map(len, rows))
    width = max(counted, key=lambda each: (counted[each], each))
    while width > 1 and not any(cells[width - 1].strip() for cells in rows if len(cells) == width):
        width -= 1
    return width


def _begins(cells: Row, width: int, rows: Sequence[Row]) -> bool:
    """Whether a table of this width may begin with this row: it is as wide, or as other rows below such a one are."""
    if "text" in cells:
        return True
    wide = next(n for n, each in enumerate(rows) if len(each) >= width)
    is_like = len(cells) > 1 and any(len(each) == len(cells) for each in rows[wide:])
    filled = [n for n, cell in enumerate(cells, 1) if cell.strip()]
    reaches = bool(filled) and filled[-1] >= min(3, width, len(cells)) and 4 * len(filled) > min(width, len(cells))
    return (len(cells) >= width or is_like) and reaches


def _columns(rows: Sequence[Row], width: int) -> list[list[str]]:
    """The cells of each column that are not empty."""
    return [[cells[n].strip() for cells in rows if n < len(cells) and cells[n].strip()] for n in range(width)]


def _kind(cell: str) -> str:
    """What a cell is by itself: a date, a number (digits without letters), or ""."""
    if len(cell) > LONGEST or not any(map(str.isdecimal, cell)):
        return ""
    if not cell.isdecimal() and read(cell):
        return "date"
    return "" if any(map(str.isalpha, cell)) else "number"


def _vote(first: str, below: list[str], steps: bool) -> int:
    """1 or -1 as a column speaks for or against headings; 0 if it does not speak."""
    first, kinds = first.strip(), {*map(_kind, below)}
    kind = _kind(first)
    signs = set.intersection(*map(_signs, below)) if below else set()
    if kind:
        is_other = kind not in kinds if len(kinds) == 1 else False
        is_whole = len(below) >= _SAME and not signs <= _signs(first)
        return 1 if is_other or is_whole or (kind == "number" and steps) else -1
    if not below:
        return 0
    if "" not in kinds:
        return 1
    if not first or first in below:
        return -1 if first else 0
    if signs:
        return -1 if signs <= _signs(first) else 1
    lengths = {*map(len, below)}
    return int(len(lengths) == 1 and len({*below}) >= _SAME and len(first) not in lengths)


def _signs(cell: str) -> set[str]:
    """The signs in a cell, and whether it has digits."""
    return {"0" if each.isdecimal() else each for each in cell if not (each.isalpha() or each.isspace())}


def _steps(first: Row) -> bool:
    """Whether the whole numbers of a row, of which there are three or more, go in equal steps."""
    numbers = [int(cell) for cell in map(str.strip, first) if cell.isdecimal() and len(cell) < 10]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(numbers) > 2 and len(steps) == 1 and 0 not in steps


def _years(first: Row, below: Sequence[Row]) -> bool:
    """Whether the whole numbers of a row are years that follow each other, and those below them mostly are not."""
    columns = [number for number, cell in enumerate(first) if cell.strip().isdecimal()]

    def are_years(row: Row) -> bool:
        cells = [row[number].strip() for number in columns if number < len(row)]
        numbers = [int(cell) for cell in cells if cell.isdecimal() and len(cell) == 4]
        in_range = len(numbers) == len(columns) > 1 and min(numbers) >= 1000 and max(numbers) <= _LAST_YEAR
        return in_range and all(0 < after - before <= _DECADE for before, after in pairwise(numbers))

    return are_years(first) and 2 * sum(map(are_years, below)) < len(below)
