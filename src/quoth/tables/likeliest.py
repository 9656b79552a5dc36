"""The phrases among which is the likeliest of a cell, with what the reader knows of them.

Knows: which phrases a column's type allows. Does not know: other cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoth.answers.evidence import Source, Spans, chance, features, log_odds, predict_spans
from quoth.reader.config import ReaderConfig
from quoth.records import Sentence, is_within, quote_of
from quoth.tables.cells import Cell, as_place, fits
from quoth.tables.columns import Column

LOOKED_AT = 24
"""Phrases among which those with a value are looked for."""
MOST = 5
"""Of these, as many are likely."""
_LEAST = 0.01
"""The chance of a unit that was not among the best."""


def phrases_of(
    read: Sequence[Source], spans: Sequence[Spans], units: Sequence[Sentence], config: ReaderConfig, column: Column
) -> list[Cell]:
    """The best phrases of those that the column's type allows, each with its chance by the reader, whatever the others'
    are, and as what is `known` of it the log of the evidence in it and the log odds of the best unit around it. None if
    the reader scores no evidence, or is not calibrated."""
    if config.calibration is None or not read or any(each.marks is None for each in spans):
        return []
    phrases = predict_spans(read, spans, LOOKED_AT, prior=config.prior)
    made = list[Cell]()
    for each in [each for each in phrases if fits(quote_of(each.evidence[0]), column)][:MOST]:
        own, place = features(each, read, spans), each.evidence[0]
        around = max((unit.probability for unit in units if is_within(place, unit.evidence[0])), default=_LEAST)
        known = round(own[-1], 4), round(log_odds(around), 4)
        made.append(
            Cell(quote_of(place), None, chance(config.calibration, own), "unsure", (as_place(place),), known=known)
        )
    return made
