"""NPM over shards: the same answers as in one process, from partial sums.

Knows: what to ask the shards, in which order, and how their parts become one answer. Does not know: how shards are
reached, or what they contain.

1. Each shard names its k nearest tokens; the k nearest of all are sent back to their shards.
2. If scores are normalised over all candidates, the shards' sums are added up first.
3. Each shard names its phrases with their scores; those of equal phrases are added up.
4. The shards quote the best phrases.

Shape suffixes that differ from the project's: C the phrases of all shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Proposal, Quotes, quoted
from quoth.answers.options import ResolvedOptions
from quoth.answers.ranking import Best, best_groups, group_equal, rank, sums_over
from quoth.arrays import Doubles, Floats
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import EmptyCorpusError, InputError
from quoth.index.search import deal
from quoth.npm.blanks import Asked
from quoth.npm.model import NPM
from quoth.records import Evidence, Prediction
from quoth.timing import step
from quoth_ray.shard import Nearest, Partial, ShardQuery, TablesChangedError, Taken

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

LEAST_SHARE = 1e-300
TRIES = 3


class Shards(Protocol):
    """All shards of a corpus, in the order of their segments."""

    def __len__(self) -> int: ...

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every shard, with separate arguments for each."""
        ...


class ShardedNPM(NPM):
    """An NPM whose vectors are in shards; `fill`, `ask` and BM25 `search` work as usual."""

    def __init__(self, encoder: TokenEncoder, corpus: Corpus, shards: Shards) -> None:
        super().__init__(encoder, [corpus])
        self._shards = shards

    def proposals(
        self, asked: Asked, queries: Sequence[tuple[Floats, Floats]], options: ResolvedOptions
    ) -> Iterator[Iterable[Proposal]]:
        """As of an NPM in one process; the shards quote every proposal at once."""
        every = self.per_text(asked, options)
        for query, ranking, rows, phrases in zip(queries, asked.ranked, asked.hidden, every, strict=True):
            best = tuple(row for _, (_, row) in ranking[: options.passages])
            question = ShardQuery(
                *query,
                options=phrases,
                k=options.k,
                inside=None if options.everywhere else best,
                boosted=best if options.passage_share else (),
                hidden=frozenset(rows),
            )
            yield [Proposal(each, partial(getattr, each, "evidence")) for each in self._answer(question)]

    def _answer(self, question: ShardQuery) -> list[Prediction]:
        for _ in range(TRIES - 1):
            try:
                return _answer(self._shards, question)
            except TablesChangedError:
                question = replace(question, id=uuid4().hex)
        return _answer(self._shards, question)


def _answer(shards: Shards, question: ShardQuery) -> list[Prediction]:
    options = question.options
    with step("search"):
        near: list[Nearest] = shards.ask("nearest", [(question,)] * len(shards))
        starts, ends = deal([each.starts for each in near], question.k), deal([each.ends for each in near], question.k)
        taken = [Taken(start, end, each.layout) for start, end, each in zip(starts, ends, near, strict=True)]
    with step("score"):

        def shares(known: Any) -> list[Any]:
            return shards.ask("sums", [(question, replace(each, sums=known)) for each in taken])

        sums = sums_over(shares, options)
        taken = [replace(each, sums=sums) for each in taken]
        parts: list[Partial] = shards.ask("groups", [(question, each) for each in taken])
        key_C = np.concatenate([part.key_G for part in parts])
        if not len(key_C):
            return []
        score_C = np.concatenate([part.log_score_G for part in parts])
        groups = group_equal(key_C)
        best = best_groups(groups, score_C, log_sum_exp(score_C), options.top_k)
    with step("explain"):
        names = key_C[groups.first_G[[each.group for each in best]]]
        quotes: list[list[Quotes]] = shards.ask("quote", [(question, each, names.tolist()) for each in taken])
        return [
            _merged(each, name, parts, [of_shard[i] for of_shard in quotes], options.max_evidence)
            for i, (each, name) in enumerate(zip(best, names, strict=True))
        ]


def _merged(
    best: Best, name: np.uint64, parts: Sequence[Partial], quotes: Sequence[Quotes], max_evidence: int
) -> Prediction:
    """A phrase with its places in all shards, with their shares of it, largest first, ties by shard and place."""
    shares: list[Doubles] = []
    places: list[Evidence] = []
    scores = [part.log_score_G[part.key_G == name] for part in parts]
    for score, found in zip(scores, quotes, strict=True):
        share = [each.score for each in found.evidence]
        shares.append(np.log(np.maximum(share, LEAST_SHARE)) + (score[0] if len(score) else 0.0))
        places += found.evidence
    log_share = np.concatenate(shares)
    order, log_score = rank(log_share, np.arange(len(log_share)), max_evidence)
    # Relative to all places, of which a shard quotes only its best.
    share_M = best.probability * np.exp(log_score - log_sum_exp(np.concatenate(scores)))
    evidence = tuple(replace(places[at], score=float(each)) for at, each in zip(order, share_M, strict=True))
    return quoted(best, Quotes(evidence, sum(each.num_places for each in quotes)))


def assigned(segments: Sequence[str], shards: int) -> list[list[str]]:
    """Distributes segments over this many shards, in order. Raises EmptyCorpusError, and InputError if there are fewer
    segments than shards."""
    if not segments:
        raise EmptyCorpusError("the corpus has no documents; add some first: quoth add DIR DOCS")
    if not 1 <= shards <= len(segments):
        raise InputError(
            f"{shards} shards of {len(segments)} segments; choose 1 to {len(segments)}, as a segment is in one shard "
            "(quoth index --ray --block 8 makes smaller ones)"
        )
    return [part.tolist() for part in np.array_split(np.array(segments), shards)]
