"""The likeliest phrase of a cell, by which it is compared with others.

Knows: which phrases a column's type allows. Does not know: other cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quoth.answers.evidence import Source, Spans, chance, features, log_odds, predict_spans
from quoth.reader.config import ReaderConfig
from quoth.records import Sentence, is_within, quote_of
from quoth.tables.cells import Cell, fits, said_as
from quoth.tables.columns import Column

LOOKED_AT = 24
"""Phrases among which those with a value are looked for."""
_LEAST = 0.01
"""The share of the next phrase, and the chance of a unit, at least: others were not looked at."""


def likeliest(
    read: Sequence[Source], spans: Sequence[Spans], units: Sequence[Sentence], config: ReaderConfig, column: Column
) -> Cell | None:
    """The best phrase that the column's type allows, with its chance by the reader, whatever the others' are.

    `known` of it are the log odds of its share among all spans, how far they are above the next phrase's, and the log
    odds of the best unit around it. None if there is none, or if the reader scores no evidence or is not calibrated.
    """
    if config.calibration is None or not read or any(each.marks is None for each in spans):
        return None
    phrases = predict_spans(read, spans, LOOKED_AT, prior=config.prior)
    if not (fitting := [each for each in phrases if fits(quote_of(each.evidence[0]), column)]):
        return None
    best, share = fitting[0], log_odds(fitting[0].probability)
    margin = share - log_odds(max([_LEAST, *(each.probability for each in fitting[1:])]))
    inside = [each.probability for each in units if is_within(best.evidence[0], each.evidence[0])]
    known = tuple(round(each, 4) for each in (share, margin, log_odds(max(inside, default=_LEAST))))
    own = chance(config.calibration, features(best, read, spans))
    return replace(said_as(best, column), probability=own, status="unsure", known=known)
