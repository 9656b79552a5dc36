"""NPM: the phrases of a corpus that fill a blank best, and NPM-single: the tokens that do.

Knows: the start and the end query of a blank, the hits of both, and the equation asked for. Does not know:
encoders, tokenizers, or how the hits were found.

Shape suffixes that differ from the project's: S distinct first tokens, E distinct last tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import (
    Sums,
    joint_score,
    length_weighted,
    log_sum_exp,
    softmax_sum_score,
    sum_score,
)
from quoth.answers.options import ResolvedOptions
from quoth.answers.ranking import Occurrences, Scored
from quoth.arrays import Doubles, Floats, Rows
from quoth.index.key_table import KeyHits, KeyTable, looked_up
from quoth.npm.candidates import Candidates, find_candidates, live_hits
from quoth.text.boundaries import MAY_END, MAY_START, spelling
from quoth.timing import step

NOTHING = spelling("")
"""The group of a token without a character of its own."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One table's candidates with a and b of their distinct first and last tokens."""

    candidates: Candidates
    a_S: Doubles
    b_E: Doubles


class ScoredPhrases(Scored):
    """The candidate phrases of some tables, with a and b. `hits` are the k nearest tokens to each query over all
    tables, distributed to their tables."""

    def __init__(
        self,
        hits: Sequence[KeyHits],
        q_start_D: Floats,
        q_end_D: Floats,
        options: ResolvedOptions,
    ) -> None:
        self._hits, self._options, self._queries = hits, options, (q_start_D, q_end_D)
        self._parts: list[_Part] = []
        for each in hits:
            with step("expand"):
                found = find_candidates(each, options.max_phrase_tokens, options.banned_ids, options.stop_words)
            with step("score"):
                a_S = scaled_similarities(each.keys, q_start_D, found.start_S, options.temperature)
                b_E = scaled_similarities(each.keys, q_end_D, found.end_E, options.temperature)
            self._parts.append(_Part(found, a_S, b_E))
        self._starts = [part.candidates.start_C for part in self._parts]
        self.key_C = np.concatenate([np.zeros(0, np.uint64), *(part.candidates.key_C for part in self._parts)])

    def sums(self, known: Sums) -> Sums:
        normalised = self._options.combine == "softmax_sum"
        ends = Sums(*self._searched) if normalised else Sums()
        if not len(self.key_C) or (normalised and known.starts == -np.inf):
            return ends
        return replace(super().sums(known), starts=ends.starts, ends=ends.ends)

    @cached_property
    def _searched(self) -> tuple[float, float]:
        """The logs of the sums of exp a and of exp b over the rows searched (`softmax_sum_score`)."""
        q_start_D, q_end_D = self._queries
        starts, ends, temperature = [np.zeros(0)], [np.zeros(0)], self._options.temperature
        for hits, part in zip(self._hits, self._parts, strict=True):
            start_R, end_R = _rows_searched(hits, part.candidates)
            starts.append(scaled_similarities(hits.keys, q_start_D, start_R, temperature))
            ends.append(scaled_similarities(hits.keys, q_end_D, end_R, temperature))
        return log_sum_exp(np.concatenate(starts)), log_sum_exp(np.concatenate(ends))

    def _scored(self, known: Sums) -> Occurrences:
        parts = self._parts
        start_C = np.concatenate(self._starts)
        end_C = np.concatenate([part.candidates.end_C for part in parts])
        a_C = np.concatenate([part.a_S[part.candidates.start_index_C] for part in parts])
        b_C = np.concatenate([part.b_E[part.candidates.end_index_C] for part in parts])
        if self._options.combine == "joint":
            score_C = joint_score(a_C, b_C)
        elif self._options.combine == "sum":
            score_C = sum_score(a_C, b_C)
        else:
            score_C = softmax_sum_score(a_C, b_C, known.starts, known.ends)
        score_C = length_weighted(score_C, end_C - start_C + 1, self._options.length_exponent)
        part_C = np.repeat(np.arange(len(parts)), [len(part.candidates.key_C) for part in parts])
        return Occurrences([each.keys for each in self._hits], part_C, start_C, end_C, score_C)


def _rows_searched(hits: KeyHits, found: Candidates) -> tuple[Rows, Rows]:
    """A table's rows over which exp a is summed, and those of exp b."""
    keys = hits.keys
    if hits.restricted:
        every, _ = live_hits(keys, np.arange(keys.num_keys), 0)
        return every, every
    starts, _ = live_hits(keys, hits.start_rows, MAY_START)
    ends, _ = live_hits(keys, hits.end_rows, MAY_END)
    return np.union1d(starts, found.start_S), np.union1d(ends, found.end_E)


def scaled_similarities(keys: KeyTable, q_D: Floats, row_R: Rows, temperature: float) -> Doubles:
    """sim(q, c)/τ of a table's rows, in float64: [R]."""
    if not len(row_R):
        return np.zeros(0)
    sim_R: Doubles = keys.vectors.similarities(q_D[None, :], row_R)[0].astype(np.float64)
    return sim_R / temperature


class ScoredTokens(Scored):
    """The candidate tokens of some tables, with their similarity to the query: a token scores Σ exp(sim(q, c)/τ) over
    the tables' `start_rows` (NPM A.3).

    `whole_words` leaves out tokens that are only a part of a word; a later part of a character is never an answer.
    """

    def __init__(self, hits: Sequence[KeyHits], q_D: Floats, options: ResolvedOptions) -> None:
        self._hits, self._options = hits, options
        with step("expand"):
            rows = self._starts = [_word_rows(part_hits, options) for part_hits in hits]
        with step("score"):
            scores = [
                scaled_similarities(part_hits.keys, q_D, part_rows, options.temperature)
                for part_hits, part_rows in zip(hits, rows, strict=True)
            ]
        groups = [part_hits.keys.group_N[part_rows] for part_hits, part_rows in zip(hits, rows, strict=True)]
        self.key_C = np.concatenate([np.zeros(0, np.uint64), *groups])
        row_C = np.concatenate([np.zeros(0, np.int64), *rows])
        part_C = np.repeat(np.arange(len(hits)), [len(part_rows) for part_rows in rows])
        tables = [part_hits.keys for part_hits in hits]
        self._found = Occurrences(tables, part_C, row_C, row_C, np.concatenate([np.zeros(0), *scores]))

    def _scored(self, known: Sums) -> Occurrences:
        return self._found


def _word_rows(hits: KeyHits, options: ResolvedOptions) -> Rows:
    word = MAY_START | MAY_END
    row_C, _ = live_hits(hits.keys, hits.start_rows, word if options.whole_words else 0)
    banned = np.fromiter(options.banned_ids, np.int64, len(options.banned_ids))
    stop_words = np.fromiter(options.stop_words, np.uint64, len(options.stop_words))
    group_C, flags_C = looked_up(row_C, hits.keys.group_N, hits.keys.flags_N)
    stop_C = ((flags_C & word) == word) & np.isin(group_C, stop_words)
    kept_C: NDArray[np.bool_] = ~np.isin(hits.keys.ids_N[row_C], banned) & ~stop_C & (group_C != NOTHING)
    return row_C[kept_C]
