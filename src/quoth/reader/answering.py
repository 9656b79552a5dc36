"""From a question to its answers, for every interface: spell, find, read, units, calibrate.

Knows: the order of these steps. Does not know: their insides, or how a caller finds passages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from quoth.answers.evidence import RIVALS, Source, Spans, calibrated, chance, features, predict_spans, quote
from quoth.index.finder import Finder
from quoth.reader.config import ReaderConfig
from quoth.reader.spans import SpanReader, has_blank
from quoth.reader.units import answer_units
from quoth.records import Predictions
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

TEXTS_AT_A_TIME = 8
STOP_AFTER = 0.6
"""The share of passages after which reading stops if the best answer would be called not found."""
Hidden = Sequence[Collection[int]]
"""The rows of passages that each text never sees."""
Find = Callable[[Sequence[str], Hidden], list[list[Source]]]
"""Finds the passages to read for texts, best first."""
Keep = Callable[[Source, Spans], Spans]
"""The spans of a passage that may be answers."""


def answer(
    questions: Sequence[str],
    reader: SpanReader,
    corpora: Sequence[Corpus],
    find: Find,
    hidden: Hidden,
    *,
    top_k: int,
    least: float,
    keep: Keep | None = None,
) -> list[Predictions]:
    """The answers to each question: phrases, and units of the text that say more, with their chances of being right.

    Answers from the probability `least` on are sure. Of a question that is read as another, because words of it were
    misspelt, `read_as` is that one; none of its answers is sure if such a word may be a name.
    """
    with step("search"):
        spelled = [*map(Finder(corpora).as_spelled, map(str.strip, questions))]
    texts = [text for text, _ in spelled]
    answers = []
    for given, (text, may_be_name), (read, spans) in zip(
        questions, spelled, read_found(texts, texts, reader, find, hidden), strict=True
    ):
        if keep is not None:
            spans = [*map(keep, read, spans)]
        found = predictions(read, spans, reader.config, top_k, math.inf if least and may_be_name else least)
        found.read_as = text if text != given.strip() else ""
        answers.append(found)
    return answers


def read_found(
    texts: Sequence[str], searched: Sequence[str], reader: SpanReader, find: Find, hidden: Hidden
) -> Iterator[tuple[list[Source], list[Spans]]]:
    """The passages found for what is `searched`, as many as are read, and the reader's scores of their spans for each
    text."""
    for at in range(0, len(texts), TEXTS_AT_A_TIME):
        part = slice(at, at + TEXTS_AT_A_TIME)
        with step("search"):
            sources = find(searched[part], hidden[part])
        with step("expand"):
            can_stop = partial(_can_stop, reader, texts[part], sources)
            spans = reader.read_enough(texts[part], sources, can_stop=can_stop)
        yield from ((group[: len(found)], found) for group, found in zip(sources, spans, strict=True))


def predictions(
    read: Sequence[Source], spans: Sequence[Spans], config: ReaderConfig, top_k: int, least: float
) -> Predictions:
    """Phrases, and units of the passages that were read, calibrated. An answer in a sure unit is not called not
    found."""
    sentences, lowest = answer_units(read, spans, config), config.defaults.not_found_below
    if config.sentence_calibration is not None:
        own = config.defaults
        sure = least if own.unit_probability is None or least != own.min_probability else own.unit_probability
        sentences = [replace(each, status="answered") if each.probability >= sure else each for each in sentences]
        lowest = 0.0 if any(each.status == "answered" for each in sentences) else lowest
    phrases = predict_spans(read, spans, max(top_k, RIVALS), prior=config.prior)
    found = Predictions(calibrated(phrases, config.calibration, read, least, lowest, spans)[:top_k], sentences)
    if read and found.status != "answered":
        best, _ = max(zip(read, spans, strict=True), key=lambda each: each[1].relevance)
        found.look_in = quote(best.passage, best.corpus, best.passage.start, best.passage.end, 0.0)
    return found


def _can_stop(
    reader: SpanReader, texts: Sequence[str], sources: Sequence[Sequence[Source]], number: int, spans: Sequence[Spans]
) -> bool:
    """Whether the best answer of most passages to a question, by its number, would be called not found."""
    config, read = reader.config, sources[number][: len(spans)]
    is_blank = has_blank(reader.tokenizer, texts[number])
    if config.calibration is None or is_blank or len(read) < STOP_AFTER * len(sources[number]):
        return False
    best = predict_spans(read, spans, 1, prior=config.prior)
    return all(
        chance(config.calibration, features(each, read, spans)) < config.defaults.not_found_below for each in best
    )


def without_prior(reader: SpanReader) -> SpanReader:
    """The reader for passages whose relevance does not weigh their answers."""
    plain = copy(reader)
    plain.config = replace(reader.config, prior=0.0)
    return plain
