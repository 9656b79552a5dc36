"""From scored occurrences to the best phrases, quoted where they occur.

Knows: how phrases are quoted from their passages, and that most of what is proposed is never shown. Does not know: how
a score came about.

Shape suffixes that differ from the project's: M places of a phrase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from quoth.answers.ranking import Best, Occurrences, Places, Scored, best_phrases, places_of
from quoth.index.key_table import passage_of
from quoth.records import Evidence, Passage, Prediction
from quoth.text.boundaries import crosses_sentence
from quoth.timing import step

if TYPE_CHECKING:
    from quoth.answers.options import ResolvedOptions


@dataclass(frozen=True, slots=True)
class Proposal:
    """A phrase that may be an answer, quoted from its best place alone. Its other places are read only if it is one."""

    best: Prediction
    evidence: Callable[[], tuple[Evidence, ...]]

    def whole(self) -> Prediction:
        """The prediction with all places to be shown."""
        with step("explain"):
            return replace(self.best, evidence=self.evidence())


def chosen(proposals: Iterable[Proposal], top_k: int, distinct: bool = True) -> list[Prediction]:
    """The `top_k` best proposals, with all places to be shown; if `distinct`, none that overlaps a better one."""
    return [each.whole() for each in islice(_apart(proposals) if distinct else proposals, top_k)]


def _apart(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """The proposals, best first, except those whose best place overlaps the best place of a better one, or that run
    across the end of a sentence."""
    taken: list[Evidence] = []
    for each in proposals:
        place = each.best.evidence[0]
        if not crosses_sentence(each.best.text) and not any(_overlap(place, other) for other in taken):
            taken.append(place)
            yield each


def _overlap(one: Evidence, other: Evidence) -> bool:
    same = (one.corpus, one.document_id) == (other.corpus, other.document_id)
    return same and one.start < other.end and other.start < one.end


def propose(scored: Scored, options: ResolvedOptions) -> Iterator[Proposal]:
    """The `top_k` phrases of highest score, ties by first occurrence; equal keys are one phrase.

    A passage is read when the first proposal that is quoted from it is asked for, and once.
    """
    if not len(scored.key_C):
        return
    with step("score"):
        ranked = best_phrases(scored, options)
    quoter = Quoter(ranked.occurrences)
    for each in ranked.best:
        with step("explain"):
            places = places_of(ranked.occurrences, ranked.groups, each.group, each.probability)
            prediction = quoted(each, quoter.quotes(places, 1))
        yield Proposal(prediction, partial(quoter.evidence, places, options.max_evidence))


def quoted(best: Best, quotes: Quotes) -> Prediction:
    """The phrase as it occurs in its first place, with single spaces."""
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

    def quotes(self, places: Places, most: int | None = None) -> Quotes:
        """The first `most` places (None: all), quoted, and how many there are."""
        return Quotes(self.evidence(places, most), len(places.candidate_M))

    def evidence(self, places: Places, most: int | None = None) -> tuple[Evidence, ...]:
        """The first `most` places (None: all), quoted."""
        candidate_M, share_M = places.candidate_M[:most], places.share_M[:most]
        part_M = self._occurrences.part_C[candidate_M]
        local_M, start_M, end_M = (np.zeros(len(part_M), np.int64) for _ in range(3))
        for part in np.unique(part_M):
            keys, here = self._occurrences.parts[part], part_M == part
            rows = self._occurrences.start_C[candidate_M[here]]
            local_M[here] = passage_of(keys.offsets_P1, rows)
            start_M[here] = keys.start_N[rows]
            end_M[here] = keys.end_N[self._occurrences.end_C[candidate_M[here]]]
        rows = zip(*(x.tolist() for x in (part_M, local_M, start_M, end_M, share_M)), strict=True)
        return tuple(self._evidence(*row) for row in rows)

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
            found = self._passages[part, local] = self._occurrences.parts[part].passage(local)
        return found
