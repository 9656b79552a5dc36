"""NPM-single: the tokens of a corpus that fill a blank best.

Knows: the query of a blank and its hits. Does not know: encoders, tokenizers, or how the hits were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quoth.answers.candidates import live_hits
from quoth.answers.equations import Sums, interpolated
from quoth.answers.evidence import propose
from quoth.answers.options import ResolvedOptions
from quoth.answers.phrases import scaled_similarities
from quoth.answers.ranking import Occurrences, in_boosted, score_sums
from quoth.index.key_table import KeyHits, looked_up
from quoth.records import Prediction
from quoth.text.boundaries import MAY_END, MAY_START, spelling
from quoth.timing import step

NOTHING = spelling("")
"""The group of a token without a character of its own."""


def predict_tokens(
    hits: Sequence[KeyHits], q_D: NDArray[np.float32], options: ResolvedOptions | None = None
) -> list[Prediction]:
    """The tokens that fill the blank, best first: Σ exp(sim(q, c)/τ) over a token's hits (NPM A.3).

    The hits are the tables' `start_rows`. `score` is the log of that sum, `probability` its share among all tokens hit.
    Without hits there is no prediction.
    """
    options = options or ResolvedOptions()
    return [each.whole() for each in propose(ScoredTokens(hits, q_D, options), options)]


class ScoredTokens:
    """The candidate tokens of some tables, with their similarity to the query.

    `whole_words` leaves out tokens that are only a part of a word; a later part of a character is never an answer.
    """

    def __init__(self, hits: Sequence[KeyHits], q_D: NDArray[np.float32], options: ResolvedOptions) -> None:
        self._hits, self._weight = hits, options.hybrid
        with step("expand"):
            rows = self._rows = [_rows(part_hits, options) for part_hits in hits]
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

    def sums(self, known: Sums) -> Sums:
        everywhere, boosted = score_sums(self._found.log_score_C, self._boosted_C)
        return Sums(everywhere=everywhere, boosted=boosted)

    def occurrences(self, sums: Sums) -> Occurrences:
        if not self._weight:
            return self._found
        score_C = interpolated(self._found.log_score_C, self._boosted_C, self._weight, sums)
        return replace(self._found, log_score_C=score_C)

    @cached_property
    def _boosted_C(self) -> NDArray[np.bool_]:
        return in_boosted(self._hits, self._rows)


def _rows(hits: KeyHits, options: ResolvedOptions) -> NDArray[np.int64]:
    word = MAY_START | MAY_END
    row_C, _ = live_hits(hits.keys, hits.start_rows, word if options.whole_words else 0)
    banned = np.fromiter(options.banned_ids, np.int64, len(options.banned_ids))
    stop_words = np.fromiter(options.stop_words, np.uint64, len(options.stop_words))
    group_C, flags_C = looked_up(row_C, hits.keys.group_N, hits.keys.flags_N)
    stop_C = ((flags_C & word) == word) & np.isin(group_C, stop_words)
    kept_C: NDArray[np.bool_] = ~np.isin(hits.keys.ids_N[row_C], banned) & ~stop_C & (group_C != NOTHING)
    return row_C[kept_C]
