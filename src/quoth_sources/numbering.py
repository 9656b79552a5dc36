"""The numbers of a Word document's items and headings, which are nowhere in its text (ECMA-376, part 1, §17.9).

Knows lists, their levels, and which of them a paragraph or its style belongs to. Does not know the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from quoth_sources.numbers import written
from quoth_sources.office import whole
from quoth_sources.wordml import Styles, W, attribute, below, is_on

WAYS = {"decimal": "1", "decimalZero": "01", "lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i"}
WAYS |= {"upperRoman": "I"}
_PART = re.compile("%([1-9])")


@dataclass(frozen=True, slots=True)
class _Level:
    """How a level is numbered: in `text`, `%1` is the number of the first level. It begins again after one of the first
    `after` levels."""

    way: str
    text: str
    start: int
    after: int
    in_digits: bool


@dataclass(frozen=True, slots=True)
class _Kind:
    """What lists of one kind share: levels, which of them belong to a style, and how far each has come."""

    levels: dict[int, _Level]
    of_style: dict[str, int]
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _List:
    """A list: its levels, and those that begin at a number of its own at first, whatever came before."""

    kind: _Kind
    levels: dict[int, _Level]
    starts: dict[int, int]


class Numbering:
    """Counts the paragraphs of a document, which must come in their order."""

    def __init__(self, numbering: Any, styles: Styles) -> None:
        """`numbering` is the part that defines lists; None if there is none."""
        self._styles = styles
        self._lists = {} if numbering is None else dict(self._defined(numbering))

    def label(self, paragraph: Any) -> str:
        """What stands before a paragraph: "4.2", "(a)", "-" for a bullet; "" if nothing does."""
        name, at = self._place(paragraph)
        if (of := self._lists.get(name)) is None or (level := of.levels.get(at)) is None:
            return ""
        counts = of.kind.counts
        counts[at] = of.starts.pop(at) if at in of.starts else counts[at] + 1 if at in counts else level.start
        for deeper in [number for number in counts if number > at]:
            if deeper not in of.levels or at < of.levels[deeper].after:
                del counts[deeper]

        def number(part: re.Match[str]) -> str:
            if (other := of.levels.get(int(part[1]) - 1)) is None:
                return ""
            count = counts.setdefault(int(part[1]) - 1, other.start)
            return written(count, "1" if level.in_digits else WAYS.get(other.way, "1"))

        if level.way == "bullet":
            return "-"
        return "" if level.way == "none" else _PART.sub(number, level.text).strip()

    def level(self, paragraph: Any) -> int:
        """A paragraph's level in its list, from 0."""
        return self._place(paragraph)[1]

    def _place(self, paragraph: Any) -> tuple[str, int]:
        """The name of a paragraph's list, and its level there."""
        properties = below(paragraph, "pPr")
        name, level = (attribute(below(properties, "numPr", part)) for part in ("numId", "ilvl"))
        styles = () if name else self._styles.based(attribute(below(properties, "pStyle")))
        if numbered := [style for style in styles if below(style, "pPr", "numPr") is not None]:
            names = (attribute(below(style, "pPr", "numPr", "numId")) for style in numbered)
            name, first = next(filter(None, names), ""), numbered[0]
            of_style = self._lists[name].kind.of_style if name in self._lists else {}
            own = attribute(below(first, "pPr", "numPr", "ilvl"))
            level = level or str(of_style.get(attribute(first, "styleId"), own))
        return name, whole(level, 0)

    def _defined(self, numbering: Any) -> Iterator[tuple[str, _List]]:
        """The lists by their names. Some only point to the list of a style."""
        parts = {attribute(part, "abstractNumId"): part for part in numbering.iterchildren(W + "abstractNum")}
        of_list = {
            attribute(part, "numId"): attribute(below(part, "abstractNumId"))
            for part in numbering.iterchildren(W + "num")
        }
        kinds = dict[str, _Kind]()
        for each in numbering.iterchildren(W + "num"):
            name = attribute(below(each, "abstractNumId"))
            for style in self._styles.based(attribute(below(parts.get(name), "numStyleLink"))):
                name = of_list.get(attribute(below(style, "pPr", "numPr", "numId")), name)
            if name not in parts:
                continue
            if name not in kinds:
                levels = [*parts[name].iterchildren(W + "lvl")]
                of_style = {attribute(below(level, "pStyle")): _number(level) for level in levels}
                kinds[name] = _Kind(dict(map(_level, levels)), of_style)
            own, starts = dict(kinds[name].levels), dict[int, int]()
            for override in each.iterchildren(W + "lvlOverride"):
                own.update(map(_level, override.iterchildren(W + "lvl")))
                at, start = _number(override), attribute(below(override, "startOverride"))
                if start and at in own:
                    starts[at] = whole(start, own[at].start)
                    own[at] = replace(own[at], start=starts[at])
            yield attribute(each, "numId"), _List(kinds[name], own, starts)


def _level(level: Any) -> tuple[int, _Level]:
    at = _number(level)
    return at, _Level(
        way=attribute(below(level, "numFmt")) or "decimal",
        text=attribute(below(level, "lvlText")),
        start=whole(attribute(below(level, "start")), 0),
        after=whole(attribute(below(level, "lvlRestart")), at),
        in_digits=is_on(below(level, "isLgl")),
    )


def _number(level: Any) -> int:
    return whole(attribute(level, "ilvl"), 0)
