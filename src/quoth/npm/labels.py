"""Closed sets: which label's words would fill the blank.

Knows: the words (verbalizers) of each label as sequences of token groups, and where they occur. Does not
know: tokenizers, and what a label means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import joint_score, log_sum_exp
from quoth.answers.evidence import Quoter
from quoth.answers.ranking import Occurrences, group_equal, group_score, places_of, rank
from quoth.arrays import Doubles, Floats, Rows
from quoth.errors import InputError
from quoth.index.key_table import KeyTable
from quoth.npm.candidates import live_hits
from quoth.records import Prediction
from quoth.text.boundaries import MAY_END, MAY_START

Words = Sequence[NDArray[np.uint64]]


def predict_labels(
    tables: Sequence[KeyTable],
    labels: Mapping[str, Words],
    q_start_D: Floats,
    q_end_D: Floats | None = None,
    temperature: float = 5.0,
) -> list[Prediction]:
    """Every label, best first, with the occurrences of its words as evidence (NPM A.4).

    `labels` gives each label's words as arrays of token groups, as in `KeyTable.group_N`. With both queries
    (NPM) a word's occurrence from i to j scores exp((sim(q_start, c_i) + sim(q_end, c_j))/τ); with one query
    (NPM-single) words of one token score exp(sim(q, c_i)/τ), and longer words are left out. A label whose words occur
    nowhere in the live passages has score -inf and probability 0; ties go by the order of `labels`. Raises InputError
    if there is no label, a label has no word that the model knows, or no word of any label occurs in the passages.
    """
    words = usable_words(labels, single=q_end_D is None)
    found = [find_words(table, words) for table in tables]
    q_end_1D = None if q_end_D is None else q_end_D[None]
    (occurrences,) = score_words(tables, found, q_start_D[None], q_end_1D, temperature)
    label_C = np.concatenate([spans.label_C for spans in found]) if found else np.zeros(0, np.int64)
    if not len(label_C):
        names = ", ".join(repr(label) for label in labels)
        raise InputError(
            f"no word of the labels {names} occurs in the passages searched; give other words, or search more passages"
        )
    return rank_labels(list(labels), label_C, occurrences)


def usable_words(labels: Mapping[str, Words], single: bool) -> list[list[tuple[int, ...]]]:
    """By label, its distinct words, of one token if the model answers with `single` tokens. Raises InputError if there
    is none."""
    if not labels:
        raise InputError("labels is empty; give at least one label and its words, as {'good': ['great']}")
    usable = []
    for label, words in labels.items():
        distinct = dict.fromkeys(tuple(int(group) for group in word) for word in words)
        usable.append([word for word in distinct if word and (len(word) == 1 or not single)])
        if not usable[-1]:
            kind = "of a single token " if single else ""
            raise InputError(f"label {label!r} has no word {kind}that the model knows; give it another word")
    return usable


@dataclass(frozen=True, slots=True)
class WordSpans:
    """Words in one table: their first rows, last rows and labels, ordered by all three: [C]."""

    start_C: Rows
    end_C: Rows
    label_C: Rows


def find_words(keys: KeyTable, words: list[list[tuple[int, ...]]]) -> WordSpans:
    """Where the words occur whole in live passages."""
    first = np.array(sorted({word[0] for label_words in words for word in label_words}), np.uint64)
    row_R, passage_R = live_hits(keys, np.flatnonzero(np.isin(keys.group_N[:], first)), MAY_START)
    limit_R, group_R = keys.offsets_P1[passage_R + 1], keys.group_N[row_R]
    starts, ends, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for label, label_words in enumerate(words):
        for word in label_words:
            start = row_R[(group_R == np.uint64(word[0])) & (row_R + len(word) <= limit_R)]
            for position in range(1, len(word)):
                start = start[keys.group_N[start + position] == np.uint64(word[position])]
            start = start[(keys.flags_N[start + len(word) - 1] & MAY_END) != 0]
            starts.append(start)
            ends.append(start + len(word) - 1)
            owners.append(np.full(len(start), label))
    start_C, end_C, label_C = np.concatenate(starts), np.concatenate(ends), np.concatenate(owners)
    order = np.lexsort((label_C, end_C, start_C))
    return WordSpans(start_C[order], end_C[order], label_C[order])


def score_words(
    tables: Sequence[KeyTable],
    spans: Sequence[WordSpans],
    q_start_BD: Floats,
    q_end_BD: Floats | None,
    temperature: float,
) -> list[Occurrences]:
    """For each blank the places of words, one `WordSpans` per table, with their scores. A place's vectors are read once
    for all blanks."""

    def scaled(table: KeyTable, q_BD: Floats, row_C: Rows) -> Doubles:
        return table.vectors.similarities(q_BD, row_C).astype(np.float64) / temperature

    scores: list[Doubles] = [np.zeros((len(q_start_BD), 0))]
    for table, span in zip(tables, spans, strict=True):
        score_BC = scaled(table, q_start_BD, span.start_C)
        if q_end_BD is not None:
            score_BC = joint_score(score_BC, scaled(table, q_end_BD, span.end_C))
        scores.append(score_BC)
    none = np.zeros(0, np.int64)
    table_C = np.repeat(np.arange(len(spans)), [len(span.start_C) for span in spans])
    start_C = np.concatenate([none, *(span.start_C for span in spans)])
    end_C = np.concatenate([none, *(span.end_C for span in spans)])
    return [Occurrences(tables, table_C, start_C, end_C, score_C) for score_C in np.concatenate(scores, axis=1)]


def rank_labels(names: list[str], label_C: Rows, occurrences: Occurrences, most: int | None = None) -> list[Prediction]:
    """The labels, best first, each with its `most` best places (None: all); an occurrence adds to the label whose
    number it has. Labels without any come last."""
    groups = group_equal(label_C.astype(np.uint64))
    score_G = group_score(occurrences.log_score_C, groups)
    total, label_G = log_sum_exp(score_G), label_C[groups.first_G]
    quoter = Quoter(occurrences)
    predictions = []
    for group, score in zip(*(x.tolist() for x in rank(score_G, label_G)), strict=True):
        probability = float(np.exp(score - total))
        quotes = quoter.quotes(places_of(occurrences, groups, group, probability), most)
        name = names[label_G[group]]
        predictions.append(Prediction(name, score, probability, quotes.evidence, num_places=quotes.num_places))
    absent = [Prediction(name, -np.inf, 0.0, ()) for i, name in enumerate(names) if i not in label_G]
    return predictions + absent
