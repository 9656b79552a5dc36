"""The blocks of a page: columns of running text beside tables, one table below another.

Knows strips and the columns between their gaps. Does not know what a table's cells are, nor the order of pages.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from quoth_sources.strips import Line, Strip, bottom_of, height_of, is_rule, said, top_of, words_of

_PROSE = 3.5
"""The mean number of words in a piece from which a column is read by itself."""
_LINES, _RUNNING, _ACROSS_ROWS = 4, 0.7, 0.6
"""From how many lines on a column may be running text; of its lines, and of those beside a table's rows, the share that
end where the next word had no room."""
_MANY, _LABEL = 6, 6
"""The least number of lines on each side of a page, and the most words before a paragraph, in a column of their own."""
_RARE = 4
"""From how many lines on between two numbers they are not those of items."""
_EACH = 0.8
"""The share of a column's lines, the only one of running text, that have something next to them in a table."""
_ENDS = ".!?:"
_APART = 1.3
"""The gap above text that is no row of a table, in multiples of the largest gap between its rows."""


def is_prose(column: Sequence[Strip]) -> bool:
    """Whether most pieces of a column have several words."""
    pieces = [piece for strip in column for piece in strip]
    return len(pieces) > 2 and sum(map(len, pieces)) >= _PROSE * len(pieces)


def parts_of(columns: Sequence[Sequence[Strip]]) -> list[list[Strip]]:
    """Columns that are read one after the other: each of running text by itself, those between together, as a table."""
    flows = [_flow(column) for column in columns]
    running = [*map(_runs, flows)]
    rows = {
        number
        for column, runs in zip(columns, running, strict=True)
        for number, strip in enumerate(column)
        if strip and not runs
    }
    parts = list[list[Strip]]()
    was_running = True
    for column, flow, runs in zip(columns, flows, running, strict=True):
        beside = [flows_on for number, flows_on in flow.items() if number in rows]
        if sum(running) == 1 and len(beside) > _EACH * len(flow):
            return []
        is_running = runs and sum(beside) >= _ACROSS_ROWS * len(beside)
        if is_running or was_running:
            parts.append([*column])
        else:
            parts[-1] = [[*left, *right] for left, right in zip(parts[-1], column, strict=True)]
        was_running = is_running
    return parts


def halves_of(columns: Sequence[Sequence[Strip]]) -> list[list[Strip]]:
    """Two sides of a page that have to do nothing with each other, left and right of the widest gap: each with text on
    many heights, mostly others than the other side. None if there are no such."""
    halves = list[tuple[float, list[list[Strip]]]]()
    for cut in range(1, len(columns)):
        sides = [
            [[piece for part in parts for piece in part] for parts in zip(*some, strict=True)]
            for some in (columns[:cut], columns[cut:])
        ]
        left, right = ([strip for strip in side if strip] for side in sides)
        shared = sum(bool(one and other) for one, other in zip(*sides, strict=True))
        least = min(len(left), len(right))
        if least >= _MANY and 2 * shared <= least and is_prose(left) and is_prose(right):
            gap = min(strip[0][0].left for strip in right) - max(strip[-1][-1].right for strip in left)
            halves.append((gap, sides))
    return max(halves, key=lambda half: half[0])[1] if halves else []


def labels_of(column: Sequence[Strip], text: Sequence[Strip]) -> list[tuple[int, list[int]]]:
    """If the pieces of a column stand before paragraphs of the running text next to it, or on lines of their own above
    them: where each such paragraph begins, and the numbers of its labels. Else nothing."""
    flow, starts, above = _flow(text), list[tuple[int, list[int]]](), list[int]()
    for number, (label, line) in enumerate(zip(column, text, strict=True)):
        above += [number] * bool(label)
        if above and line:
            starts.append((number, above))
            above = []
    short = all(len(label) == 1 and len(label[0]) <= _LABEL for label in column if label)
    amid = sum(flow.get(number, False) for number, _ in starts)
    if not _runs(flow) or not starts or not short or above or 4 * amid > len(starts):
        return []
    lines = [words_of(strip) for strip in text if strip]
    left, right = min(line[0].left for line in lines), max(line[-1].right for line in lines)
    first = min(label[0][0].left for label in column if label)
    return starts if left - first < (right - left) / 2 else []


def count_lines(column: Sequence[Strip], text: Sequence[Strip]) -> bool:
    """Whether a column has nothing but the numbers of the lines next to it: of each fourth or rarer, or of all, if the
    sentences go on over the lines."""
    numbers = [(row, said(words_of(strip))) for row, strip in enumerate(column) if strip]
    if len(numbers) < 2 or not all(re.fullmatch("[0-9]{1,4}", number) for _, number in numbers):
        return False
    lines = [*accumulate((bool(strip) for strip in text), initial=0)]
    steps = [(int(b) - int(a), lines[last] - lines[first]) for (first, a), (last, b) in pairwise(numbers)]
    inside = sum(strip[0][0].text[0].islower() for strip in text if strip)
    return all(step == rows > 0 for step, rows in steps) and (min(steps)[0] >= _RARE or 3 * inside > lines[-1] > _MANY)


def _runs(flow: Mapping[int, bool]) -> bool:
    return len(flow) >= _LINES - 1 and sum(flow.values()) >= _RUNNING * len(flow)


def _flow(column: Sequence[Strip]) -> dict[int, bool]:
    """For each line of a column but the first: whether it goes on with the sentence before, because its first word had
    no room there. Empty if the lines have few words, or leaders as in a table of contents."""
    lines = [(number, words_of(strip)) for number, strip in enumerate(column) if strip]
    led = sum(any(is_rule(word.text) for word in line) for _, line in lines)
    if not is_prose(column) or led > len(lines) / 4:
        return {}
    edge = max(line[-1].right for _, line in lines)
    flow = dict[int, bool]()
    for (_, before), (number, line) in pairwise(lines):
        room = edge - before[-1].right - 0.5 * (line[0].bottom - line[0].top)
        ends = before[-1].text[-1] in _ENDS and not line[0].text[0].islower()
        flow[number] = room < line[0].right - line[0].left and not ends
    return flow


def tables_of(strips: Sequence[Strip]) -> list[list[Strip]]:
    """Strips of a table as several: each from its own headings, or the title above them, and the text below."""
    begins = [0, *(at for at in range(2, len(strips) - 1) if _is_heading(strips, at))]
    starts = [at - 1 if at and len(strips[at - 1]) == 1 and at - 1 not in begins else at for at in begins]
    tables = [[*strips[start:end]] for start, end in zip(starts, [*starts[1:], len(strips)], strict=True)]
    return [part for table in tables for part in _without_text(table) if part]


def _is_heading(strips: Sequence[Strip], at: int) -> bool:
    """Whether a strip has the headings of another table: words alone, all different, below a line of its own or a gap,
    with numbers below it and above."""
    strip, above, below = strips[at], strips[at - 1], strips[at + 1]
    words = [said(piece) for piece in strip]
    if len(strip) < 2 or len({*words}) < len(words) or any(map(_has_digit, words)):
        return False
    apart = top_of(strip) - bottom_of(above) > _APART * max(_gap(strips, at + 1), 0.3 * height_of(strip))
    titled = len(above) == 1 and at > 1 and not _is_close(strips, at - 1)
    numbers = any(_has_digit(said(piece)) for each in strips[:at] if len(each) > 1 for piece in each[1:])
    return (apart or titled) and numbers and any(_has_digit(said(piece)) for piece in below[1:])


def _without_text(table: Sequence[Strip]) -> tuple[list[Strip], list[Strip]]:
    """A table, and the text below it: lines larger, across its columns, or further away than its rows."""
    last = max((at for at, strip in enumerate(table) if len(strip) > 1), default=len(table) - 1)
    rows = [strip for strip in table[: last + 1] if len(strip) > 1]
    edges = [strip[0][0].left for strip in table[1:last] if len(strip) == 1]
    widest = max((_gap(table, at) for at in range(1, last + 1)), default=1e9)
    for at in range(last + 1, len(table)):
        strip = table[at]
        apart = _gap(table, at) > _APART * max(widest, 0.3 * height_of(strip))
        larger = abs(height_of(strip) - height_of(table[last])) > 0.15 * height_of(strip)
        goes_on = _gap(table, at) <= widest and any(_begin_alike(piece, strip[0]) for piece in table[last][1:])
        if goes_on:
            continue
        alike = any(abs(strip[0][0].left - edge) < 0.1 * height_of(strip) for edge in edges)
        if apart or larger or (_lies_across(strip[0], rows) and not alike):
            return [*table[:at]], [*table[at:]]
    return [*table], []


def _lies_across(line: Line, rows: Sequence[Strip]) -> bool:
    """Whether a line goes on where rows, most that reach so far, have a gap."""
    left, right = line[0].left, line[-1].right
    gaps = [
        any(a[-1].right > left and b[0].left < right and b[0].left - a[-1].right > 0 for a, b in pairwise(row))
        for row in rows
    ]
    return 2 * sum(gaps) > len(gaps)


def _begin_alike(piece: Line, line: Line) -> bool:
    return abs(piece[0].left - line[0].left) < 0.5 * (line[0].bottom - line[0].top)


def _gap(strips: Sequence[Strip], at: int) -> float:
    return top_of(strips[at]) - bottom_of(strips[at - 1])


def _is_close(strips: Sequence[Strip], at: int) -> bool:
    return _gap(strips, at) < 0.3 * height_of(strips[at])


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
