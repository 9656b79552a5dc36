"""Several blanks of one text, filled together.

Knows: which blank is filled next, what stands for those that are still open, which fillings are followed further. Does
not know: how one blank is filled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from quoth.model.calls import MOST_BLANKS, check_blank
from quoth.records import Prediction, Status
from quoth.text.tokenizer import MASK, MASKS

BEAMS = 4
"""Fillings that are followed from one blank to the next."""
OPEN = "..."
"""Stands for a blank that is not being filled."""

Filling = Mapping[int, Prediction]
"""The phrases of the blanks that are filled, by the blank's number."""


def fill_together(fill: Callable[[list[str]], Sequence[Sequence[Prediction]]], text: str) -> list[Prediction]:
    """Fill all blanks of a text, the surest first: with it filled, the others are looked at again.

    `fill` fills the one blank of each of several texts. The `BEAMS` likeliest fillings are followed, by the product of
    their phrases' probabilities, and all that the last blank makes of them are returned. Of a prediction, `parts` are
    the phrases in the order of the blanks, and `evidence` is the best place of each. Raises InputError for too many
    blanks.
    """
    check_blank(text, MOST_BLANKS)
    pieces = text.split(MASK)
    blanks = range(len(pieces) - 1)
    beams: list[Filling] = [{}]
    for _ in blanks:
        beams = beams[:BEAMS]
        asked = [(beam, blank) for beam in beams for blank in blanks if blank not in beam]
        given = fill([_text(pieces, beam, blank) for beam, blank in asked])
        # A phrase with a mask, of a text about such models, would be one more blank.
        answers = [[one for one in found if not any(mask in one.text for mask in MASKS)] for found in given]
        grown = dict[tuple[tuple[int, str], ...], Filling]()
        for beam in beams:
            open_ = [(blank, found) for (of, blank), found in zip(asked, answers, strict=True) if of is beam and found]
            blank, found = max(open_, key=lambda each: each[1][0].probability, default=(0, ()))
            for one in found:
                filling = {**beam, blank: one}
                grown.setdefault(tuple(sorted((at, each.text) for at, each in filling.items())), filling)
        beams = sorted(grown.values(), key=_log_probability, reverse=True)
    return [_prediction(pieces, beam) for beam in beams]


def _text(pieces: Sequence[str], filling: Filling, blank: int = -1) -> str:
    """The text with one of its blanks, the others filled or left open."""
    marks = [filling[at].text if at in filling else OPEN for at in range(len(pieces) - 1)]
    if blank >= 0:
        marks[blank] = MASK
    return "".join(chain.from_iterable(zip(pieces, [*marks, ""], strict=True)))


def _log_probability(filling: Filling) -> float:
    return sum(math.log(max(each.probability, 1e-30)) for each in filling.values())


def _prediction(pieces: Sequence[str], filling: Filling) -> Prediction:
    phrases = [filling[blank] for blank in range(len(pieces) - 1)]
    said: Sequence[Status] = ("not_found", "unsure", "answered")
    return Prediction(
        text=" … ".join(each.text for each in phrases),
        log_score=sum(each.log_score for each in phrases),
        probability=math.exp(_log_probability(filling)),
        evidence=tuple(each.evidence[0] for each in phrases),
        sequence=_text(pieces, filling),
        status=min((each.status for each in phrases), key=said.index),
        parts=tuple(each.text for each in phrases),
    )
