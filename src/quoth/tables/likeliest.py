"""The likeliest phrase of a cell, by which it is compared with others.

Knows: which phrases a column's type allows, and what the reader says of one when it sees nothing but its line. Does
not know: other cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quoth.answers.evidence import Source, Spans, chance, features, log_odds, predict_spans
from quoth.reader.config import ReaderConfig
from quoth.reader.spans import SpanReader
from quoth.records import Passage, Sentence, is_within, quote_of
from quoth.tables.cells import Cell, fits, said_as
from quoth.tables.columns import Column
from quoth.tables.compare import has_label

LOOKED_AT = 24
"""Phrases among which those with a value are looked for."""
FEW, MANY = (14, 10), (40, 20)
"""Words before and after a phrase that are read with it alone: in a line with a label, and in running text."""
_LEAST = 0.01
"""The share of the next phrase, and the chance of a unit, at least: others were not looked at."""


def likeliest(
    read: Sequence[Source], spans: Sequence[Spans], units: Sequence[Sentence], config: ReaderConfig, column: Column
) -> Cell | None:
    """The best phrase that the column's type allows, with its chance by the reader, whatever the others' are.

    `known` of it are how far the log odds of its share among all spans are above the next phrase's, and the log odds of
    the best unit around it. None if there is none, or if the reader scores no evidence or is not calibrated.
    """
    if config.calibration is None or not read or any(each.marks is None for each in spans):
        return None
    phrases = predict_spans(read, spans, LOOKED_AT, prior=config.prior)
    if not (fitting := [each for each in phrases if fits(quote_of(each.evidence[0]), column)]):
        return None
    best = fitting[0]
    margin = log_odds(best.probability) - log_odds(max([_LEAST, *(each.probability for each in fitting[1:])]))
    inside = [each.probability for each in units if is_within(best.evidence[0], each.evidence[0])]
    known = tuple(round(each, 4) for each in (margin, log_odds(max(inside, default=_LEAST))))
    own = chance(config.calibration, features(best, read, spans))
    return replace(said_as(best, column), probability=own, status="unsure", known=known)


def alone(reader: SpanReader, texts: Sequence[str], phrases: Sequence[Cell | None]) -> list[Cell | None]:
    """The best phrases for these questions, with two more numbers in `known`: its log odds against all else in its line
    and "no answer here", and the log odds that the line answers, if the reader sees nothing but the line.

    Among other lines the reader takes the nearest one for the answer; alone it says whether that is one.
    """
    made, given = [*phrases], [(n, phrase, *line_of(phrase)) for n, phrase in enumerate(phrases) if phrase is not None]
    shown = [[Source(Passage(0, "", title, line, 0, len(line)), "")] for _, _, title, line, _ in given]
    read = reader.read_enough([texts[n] for n, *_ in given], shown) if given else []
    for (n, phrase, _, _, start), [spans] in zip(given, read, strict=True):
        odds_C = spans.odds_C[(spans.start_C < start + len(phrase.text)) & (spans.end_C > start)]
        share = math.exp(np.logaddexp.reduce([-math.inf, *odds_C]) - np.logaddexp(0.0, spans.total))
        made[n] = replace(phrase, known=(*phrase.known, round(log_odds(share), 4), round(spans.relevance, 4)))
    return made


def line_of(phrase: Cell) -> tuple[str, str, int]:
    """The words around a phrase in its line, and where it begins among them; in running text more of them, and first
    the title, as they may not say what they are about."""
    place, is_labelled = phrase.evidence[0], has_label(phrase)
    start, end = (place[name] - place["context_start"] for name in ("start", "end"))
    before, said, after = place["context"][:start], place["context"][start:end], place["context"][end:]
    num_before, num_after = FEW if is_labelled else MANY
    first = " ".join([*before.rpartition("\n")[2].split()[-num_before:], ""])
    line = " ".join([first + said, *after.partition("\n")[0].split()[:num_after]])
    return "" if is_labelled else place["title"], line, len(first)
