"""What a reader answers to a question by what it marked: phrases, lists and sentences, and how sure they are.

Knows: the rules that every system with this reader keeps. Does not know: how passages were found or read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from quoth.answers.evidence import RIVALS, Source, Spans, calibrated
from quoth.answers.lists import answer_phrases, asks_yes_or_no
from quoth.answers.sentences import answer_sentences
from quoth.reader.config import ReaderConfig
from quoth.records import Predictions

LIKELY = 0.5
"""The probability of a sentence from which on its question is not called not found."""


def answered(
    question: str, read: Sequence[Source], spans: Sequence[Spans], config: ReaderConfig, top_k: int, least: float
) -> Predictions:
    """Phrases and sentences of the passages that were read, calibrated; those from the probability `least` on are
    answers.

    No phrase says yes or no, so that to such a question none is sure; and what a likely sentence says is not called not
    found.
    """
    phrases = answer_phrases(question, read, spans, max(top_k, RIVALS), config.prior)
    weights, lowest = config.sentence_calibration, config.defaults.not_found_below
    sentences = answer_sentences(read, spans, config.prior, weights, question=question)
    if weights is not None and any(each.probability >= LIKELY for each in sentences):
        lowest = 0.0
    if asks_yes_or_no(question) and least > 0:
        least = math.inf
    return Predictions(calibrated(phrases, config.calibration, read, least, lowest)[:top_k], sentences)
