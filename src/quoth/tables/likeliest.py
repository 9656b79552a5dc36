"""The likeliest phrase of a cell, by which it is compared with others.

Knows: which phrases a column's type allows. Does not know: other cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quoth.answers.evidence import Source, Spans, chance, features, log_odds, predict_spans
from quoth.reader.config import ReaderConfig
from quoth.records import quote_of
from quoth.tables.cells import Cell, fits, said_as
from quoth.tables.columns import Column

LOOKED_AT = 24
"""Phrases among which one with a value is looked for."""


def likeliest(read: Sequence[Source], spans: Sequence[Spans], config: ReaderConfig, column: Column) -> Cell | None:
    """The best phrase that the column's type allows, with its chance by the reader, whatever the others' are; `known`
    of it are the log odds of its share among all spans. None if there is none, or if the reader scores no evidence or
    is not calibrated."""
    if config.calibration is None or not read or any(each.marks is None for each in spans):
        return None
    for each in predict_spans(read, spans, LOOKED_AT, prior=config.prior):
        if fits(quote_of(each.evidence[0]), column):
            share = chance(config.calibration, features(each, read, spans))
            known = (round(log_odds(each.probability), 4),)
            return replace(said_as(each, column), probability=share, status="unsure", known=known)
    return None
