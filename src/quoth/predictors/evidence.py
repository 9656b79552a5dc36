"""From scored occurrences to predictions that show where they occur.

Knows: how the best phrases are quoted from their passages. Does not know: how a score came about.

Shape suffixes that differ from the project's: M members of a group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quoth.grouping import Groups, group_equal, prune_to_top_groups
from quoth.predictors.ranking import TIE, Best, Occurrences, RankOptions, Scored, best_groups, rank, sums_over
from quoth.records import Evidence, Passage, Prediction
from quoth.retrieval.key_columns import passage_of
from quoth.scoring import log_sum_exp
from quoth.timing import step
from quoth.types import Doubles


def predict_scored(scored: Scored, options: RankOptions) -> list[Prediction]:
    """`predict`, where no other tables have candidates."""
    if not len(scored.key_C):
        return []
    with step("score"):
        found = scored.occurrences(sums_over(lambda known: [scored.sums(known)], options.rounds))
    return predict(found, scored.key_C, options.top_k, options.max_evidence)


def predict(occurrences: Occurrences, key_C: NDArray[np.uint64], top_k: int, max_evidence: int) -> list[Prediction]:
    """The `top_k` phrases of highest score, ties by first occurrence; equal keys are one phrase."""
    with step("score"):
        total = log_sum_exp(occurrences.log_score_C)
        # The sum is over all candidates, but only those that may rank are grouped and put in order.
        kept_C = occurrences.in_order(prune_to_top_groups(key_C, occurrences.log_score_C, top_k, TIE))
        occurrences, groups = occurrences.take(kept_C), group_equal(key_C[kept_C])
        best = best_groups(groups, occurrences.log_score_C, total, top_k)
    with step("explain"):
        quoter = Quoter(occurrences)
        return [quoted(each, quoter.explain(groups, each.group, each.probability, max_evidence)) for each in best]


def quoted(best: Best, quotes: Quotes) -> Prediction:
    """The phrase as it occurs in its first place, white space aside."""
    first = quotes.evidence[0]
    text = first.context[first.start - first.context_start : first.end - first.context_start]
    return Prediction(
        " ".join(text.split()), best.score, best.probability, quotes.evidence, num_places=quotes.num_places
    )


@dataclass(frozen=True, slots=True)
class Quotes:
    """A phrase's best places, with their shares of its probability, and how many places it has."""

    evidence: tuple[Evidence, ...] = ()
    num_places: int = 0


class Quoter:
    """Turns occurrences into evidence, reading each passage once."""

    def __init__(self, occurrences: Occurrences) -> None:
        self._occurrences = occurrences
        self._passages: dict[tuple[int, int], Passage] = {}

    def explain(self, groups: Groups, group: int, probability: float, max_evidence: int | None = None) -> Quotes:
        """A group's occurrences, with their shares of the probability, largest first, ties by occurrence.

        Passages are read of the first `max_evidence` alone (None: of all).
        """
        member_M = self._occurrences.in_order(groups.members(group))
        best_M, log_score_M = rank(self._occurrences.log_score_C[member_M], np.arange(len(member_M)))
        share_M = probability * np.exp(log_score_M - log_sum_exp(log_score_M))
        return Quotes(self._quote(member_M[best_M[:max_evidence]], share_M[:max_evidence]), len(member_M))

    def _quote(self, candidate_M: NDArray[np.int64], share_M: Doubles) -> tuple[Evidence, ...]:
        """The evidence of these candidates with these shares, in their order."""
        part_M = self._occurrences.part_C[candidate_M]
        local_M, start_M, end_M = (np.zeros(len(part_M), np.int64) for _ in range(3))
        for part in np.unique(part_M):
            keys, here = self._occurrences.parts[part], part_M == part
            rows = self._occurrences.start_C[candidate_M[here]]
            local_M[here] = passage_of(keys.offsets_P1, rows)
            start_M[here] = keys.start_N[rows]
            end_M[here] = keys.end_N[self._occurrences.end_C[candidate_M[here]]]
        places = zip(*(x.tolist() for x in (part_M, local_M, start_M, end_M, share_M)), strict=True)
        return tuple(self._evidence(*place) for place in places)

    def _evidence(self, part: int, local: int, start: int, end: int, share: float) -> Evidence:
        corpus, passage = self._occurrences.parts[part].corpus, self._passage(part, local)
        return Evidence(
            passage.document_id,
            passage.title,
            passage.row,
            start,
            end,
            passage.text,
            share,
            corpus.name,
            passage.start,
        )

    def _passage(self, part: int, local: int) -> Passage:
        found = self._passages.get((part, local))
        if found is None:
            keys = self._occurrences.parts[part]
            found = self._passages[part, local] = keys.corpus.passage(int(keys.passage_rows_P[local]))
        return found
