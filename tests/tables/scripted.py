"""A reader whose answers are looked up: everything else of a table is real."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from quoth.answers.evidence import Source, Spans
from quoth.reader.config import ReaderConfig, ReaderDefaults
from quoth.reader.model import Reader
from quoth.records import Passage

ANSWERS = {
    "Who signed it?": r"[A-Z]\w+ [A-Z]\w+(?= signed)",
    "When does it end?": r"(?<=ends on )[^.]+(?=\.)|(?<=perhaps on )[^.]+(?=\.)|[A-Z]\w+ Fox(?= signed)",
    "What is the fee?": r"(?<=fee is ).+?(?=\.(?: |$))",
    "Who gets it?": r"(?<=goes to )[^.]+(?=\.)",
}
"""What answers a question; where it says perhaps, unsurely; after "(0.5) ends on", with these log odds."""


class Scripted:
    """The part of a reader that reads. `asked` counts the questions, `read` has the passages shown for each; `before`
    is called before some are answered."""

    config = ReaderConfig(defaults=ReaderDefaults(min_probability=0.5, not_found_below=0.1))

    def __init__(self, before: Callable[[int], None] = lambda asked: None) -> None:
        self.asked, self._before, self._lock = 0, before, Lock()
        self.read: list[list[Source]] = []

    def read_enough(self, texts: Sequence[str], sources: Sequence[Sequence[Source]], **_: Any) -> list[list[Spans]]:
        with self._lock:
            asked, self.asked = self.asked, self.asked + len(texts)
        self._before(asked)
        self.read += map(list, sources)
        return [[self._spans(text, each.passage) for each in group] for text, group in zip(texts, sources, strict=True)]

    def _spans(self, question: str, passage: Passage) -> Spans:
        places = [each.span() for each in re.finditer(ANSWERS[question], passage.text)]
        odds_C = np.array([_odds(passage.text[:start]) for start, _ in places])
        start_C, end_C = np.array(places, np.int64).reshape(-1, 2).T
        return Spans(start_C, end_C, odds_C, float(np.logaddexp.reduce(odds_C)) if places else -np.inf)


def _odds(before: str) -> float:
    """How sure an answer is, by the text before it."""
    told = re.search(r"\((-?\d+\.\d+)\) ends on $", before)
    return float(told[1]) if told else -1.0 if before.endswith("perhaps on ") else 4.0


def scripted(before: Callable[[int], None] = lambda asked: None) -> tuple[Reader, Scripted]:
    """A reader, and what counts its questions."""
    own: Any = Scripted(before)
    return Reader(own, [], "scripted"), own
