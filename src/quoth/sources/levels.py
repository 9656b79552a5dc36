"""Parts of a line that files mark as raised or lowered: "super", "sub", or "" for the line itself.

Knows how parts become one text. Does not know formats, or how a superscript is written, which `superscripts` does.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from quoth.sources.superscripts import lowered, raised

LEVELS = {"super": raised, "sub": lowered}


def joined(parts: Iterable[tuple[str, str]]) -> str:
    """The text of parts, each with its level; neighbours of one level are one run."""
    runs, before = [], ""
    for level, group in groupby((part for part in parts if part[0]), itemgetter(1)):
        run = "".join(text for text, _ in group)
        runs.append(LEVELS[level](run, before) if level else run)
        before = runs[-1][-1:]
    return "".join(runs)
