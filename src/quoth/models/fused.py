"""One search over all kinds of keys: words, tokens, passages and entities together.

Knows: models over the same corpora, BM25, and how their rankings become one. Does not know: how each ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quoth.errors import InputError
from quoth.models.base import FUSION_DEPTH, CorpusModel, check_count
from quoth.records import Hit
from quoth.retrieval.fusion import FUSIONS

WORDS = "bm25"


class FusedSearch:
    """Searches by BM25 and by several models, which were loaded with the same corpora in the same order.

    `weights` are by kind of keys: "bm25", "tokens", "passages", "entities"; 1 where none is given, and 0 leaves a
    ranking out. `fusion` is "rrf" (reciprocal ranks) or "sum" (scores from 0 to 1, added up). Raises InputError on
    other values.
    """

    def __init__(
        self, models: Sequence[CorpusModel], fusion: str = "rrf", weights: Mapping[str, float] | None = None
    ) -> None:
        kinds = [WORDS, *(each.keys for each in models)]
        if not models:
            raise InputError("no model to search with; give one or more, or use mode bm25")
        if fusion not in FUSIONS:
            raise InputError(f"fusion {fusion!r}; allowed are {', '.join(FUSIONS)}")
        for name in weights or ():
            if name not in kinds:
                raise InputError(f"weight of {name!r}; these searches have {', '.join(dict.fromkeys(kinds))}")
        self._first, self._fuse = models[0], FUSIONS[fusion]
        ways = [models[0].ranked_by_words, *(each.ranking for each in models)]
        weighted = [(way, (weights or {}).get(kind, 1.0)) for way, kind in zip(ways, kinds, strict=True)]
        self._ways = [(way, weight) for way, weight in weighted if weight != 0]

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """The k best passages. Raises as each model's search does."""
        check_count(k)
        rankings = [way(query, max(k, FUSION_DEPTH)) for way, _ in self._ways]
        return self._first.hits(self._fuse(rankings, [weight for _, weight in self._ways])[:k])
