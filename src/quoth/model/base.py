"""What models share: loading and pickling; corpora to search and to embed; several as one search.

Knows: the call that loaded a model, how rankings are fused. Does not know: any model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, overload

from quoth.corpus.bm25 import PassageRef, Ranking, best_places
from quoth.corpus.corpus import Corpora, Corpus, listed
from quoth.corpus.view import parts
from quoth.errors import InputError
from quoth.fields import checked, documented
from quoth.hub import is_shipped
from quoth.index.costs import Cost, Shortfall
from quoth.index.finder import Finder
from quoth.index.fusion import FUSION_DEPTH, FUSIONS
from quoth.index.key_table import KeyTable
from quoth.index.options import EmbedOptions, LoadOptions, Mode, SearchOptions, Storage
from quoth.memory import WORKING_MEMORY
from quoth.moved import renamed
from quoth.records import Hit, Hits, Match, Passage, Predictions

if TYPE_CHECKING:
    from quoth.index.retriever import KeyAt, Retriever
    from quoth.model.calls import Exclude


M = TypeVar("M", bound="Model")  # not Self, which some editors do not follow


class Call(Protocol):
    """The input of every model's `ask` and `fill`: one text, or several."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, text: str, /, *, top_k: int = ..., passages: int = ..., exclude: Exclude = ...
    ) -> Predictions: ...
    @overload
    def __call__(
        self, text: Sequence[str], /, *, top_k: int = ..., passages: int = ..., exclude: Exclude = ...
    ) -> list[Predictions]: ...


class Model:
    """A model of any kind, as `load` returns it for a name unknown to a type checker.

    It has `name`, `corpora`, `ask`, `fill` and `search`; a ZeroNER only finds passages, and its `ask` and `fill` raise
    InputError. Each class has more options. A pickle stores the call that loaded it, without weights: unpickling loads
    it again, over the same snapshots. So its folder and its corpora must not have moved.

    Example:
        >>> import pickle
        >>> reader = quoth.load("quoth-reader", corpus=corpus)
        >>> pickle.loads(pickle.dumps(reader)).ask("Who composed Carmen?") == reader.ask("Who composed Carmen?")
        True
    """

    _usual: ClassVar[str]
    name: str
    _call: Mapping[str, Any] | None = None

    if TYPE_CHECKING:

        @property
        def corpora(self) -> Sequence[Corpus]: ...
        @property
        def ask(self) -> Call: ...
        @property
        def fill(self) -> Call: ...
        def search(self, query: str, k: int = ...) -> Hits: ...
        @classmethod
        def _load(cls, *given: Any, **options: Any) -> Self: ...
        def _search_in(self, corpora: Sequence[Corpus]) -> None: ...

    @classmethod
    @documented(LoadOptions)
    def from_pretrained(
        cls: type[M],
        name: str | Path | None = None,
        corpus: Corpora = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        base: str | Path | None = None,
    ) -> M:
        """Load a model of this class.

        Args:
            name (str | Path | None): A shipped model, the folder of a trained or converted one, or a hub id. Default:
                quoth-mini for an NPM, quoth-reader for a Reader, quoth-realm for a REALM.
            corpus (Corpus | str | Path | None): What to search: a corpus or the path of one, or a list of them.
                Default: None.

        Returns:
            The model, ready to search.

        Raises:
            ModelNotFoundError: No model of that name, or its weights are missing or damaged.
            InputError: Another kind of model, an unknown device or dtype.

        Example:
            >>> quoth.NPM.from_pretrained(corpus=corpus)
            NPM('quoth-mini', keys='tokens', corpora=[Corpus('tiny.quoth', documents=6, passages=6, snapshot=1)])
        """
        return cls._remembered(name, corpus, device=device, dtype=dtype, base=base)

    @classmethod
    def _remembered(cls, name: str | Path | None, corpus: Corpora, base: str | Path | None, **options: Any) -> Self:
        """The loaded model, with the call that loads it in another process."""
        name, folder = str(name or cls._usual), None if base is None else str(base)
        made = cls._load(name, listed(corpus), base=folder, **options)
        made._call = {"name": _absolute(name), "base": _absolute(folder), **options}
        return made

    def over(self, corpora: Corpora) -> Self:
        """This model over other corpora, with the same weights. Accepts the same as `corpus` in `from_pretrained`."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("finder", None)
        made._search_in(listed(corpora))
        return made

    def where(self, condition: str) -> Self:
        """This model over the documents whose metadata meet a condition.

        Args:
            condition (str): As in `Corpus.where`: "year >= 2020 and source in ('minutes', 'letters')". With several
                corpora, a field of one is known in all.

        Returns:
            The model, with the same weights; every call searches only these documents.

        Raises:
            InputError: The condition cannot be parsed, no document has one of its fields, or none has a value of that
                type.

        Example:
            >>> reader.where("id != 'carmen'").corpora
            [Corpus('tiny.quoth', documents=5, passages=5, snapshot=1)]
        """
        return self.over(parts(self.corpora, condition))

    @cached_property
    def finder(self) -> Finder:
        """Finds the passages to read: by words, and by meaning if the corpora have passage vectors. These are the
        shipped encoder's, whatever base this model has."""
        return Finder(self.corpora, **{name: (self._call or {}).get(name) for name in ("device", "dtype")})

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self._call is None:
            raise InputError(
                f"this {type(self).__name__} was not loaded by from_pretrained, so another process cannot load it; "
                "save it to a folder and load that"
            )
        return partial(type(self).from_pretrained, corpus=list(self.corpora), **self._call), ()


def _absolute(name: str | None) -> str | None:
    """A folder as an absolute path, valid in any process; any other name unchanged."""
    folder = name is not None and Path(name).is_dir() and not is_shipped(name)
    return str(Path(name).absolute()) if name is not None and folder else name


@dataclass(frozen=True, slots=True)
class KeyRanking:
    """The best passages by vectors. If keys are parts of passages, also the parts of the question that were searched
    for, and a function that returns each passage's nearest key to each of them."""

    ranking: Ranking
    queries: Sequence[str] = ()
    keys: Callable[[Collection[PassageRef]], Mapping[PassageRef, Sequence[KeyAt]]] = lambda places: {}


def matched(queries: Sequence[str], keys: Sequence[KeyAt], passage: Passage) -> Iterator[Match]:
    """A passage's nearest keys, each with the part of the question it matches."""
    for query, key in zip(queries, keys, strict=False):
        text = passage.text[key.start - passage.start : key.end - passage.start]
        yield Match(query, text or passage.title, key.start, key.end, key.similarity)


class CorpusModel(Model):
    """A model over corpora, whose vectors it stores and searches. `keys` says which units have a vector; equal
    fingerprints mean equal vectors."""

    keys: ClassVar[str]

    def __init__(self, retriever: Retriever, encoder: Any) -> None:
        self._retriever, self.encoder, self.config = retriever, encoder, encoder.config
        self.name, self.fingerprint = str(encoder.name), str(encoder.fingerprint)

    def _search_in(self, corpora: Sequence[Corpus]) -> None:
        self._retriever = type(self._retriever)(corpora, self.encoder)

    @documented(SearchOptions)
    def search(self, query: str, k: int = 10, mode: Mode = "auto") -> Hits:
        """Find the k best passages.

        Args:
            query (str): What to look for.

        Returns:
            The hits, best first; a hit has its passage and its score.

        Raises:
            InputError: Another mode, `k` below 1, or vectors missing.
            EmptyCorpusError: No passage to search.

        Example:
            >>> npm.search("opera by Bizet", k=1)[0].passage.title
            'Carmen'
        """
        if mode == "auto":
            return self.finder.search(query, k)  # which checks query and k itself
        checked("query", query, str)
        SearchOptions(k=k, mode=mode)
        if mode == "hybrid":
            return FusedSearch([self]).search(query, k)
        ranking = best_places(self.corpora, query, k) if mode == "bm25" else self.ranked_by_keys(query, k).ranking
        return self.hits(ranking)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, keys={self.keys!r}, corpora={self.corpora!r})"

    @property
    def corpora(self) -> list[Corpus]:
        """The corpora searched."""
        return self._retriever.corpora

    def tables(self) -> list[KeyTable]:
        """The keys of every passage. Raises InputError if vectors are missing."""
        return self._retriever.key_tables()

    def ranked_by_keys(self, query: str, k: int) -> KeyRanking:
        """The k best passages by vectors, with their scores."""
        return KeyRanking(self._retriever.late_interaction(query, k))

    def hits(self, ranking: Ranking, found: Sequence[KeyRanking] = ()) -> Hits:
        """The passages of a ranking, each with the keys it matched by in the underlying searches."""
        places = [place for _, place in ranking]
        keys = [each.keys(places) for each in found]
        hits = Hits()
        for score, place in ranking:
            passage = self._retriever.passage(place)
            matches = (matched(each.queries, of.get(place, ()), passage) for each, of in zip(found, keys, strict=True))
            hits.append(Hit(passage, score, tuple(chain.from_iterable(matches)), self.corpora[place[0]].name))
        return hits

    @renamed
    @documented(EmbedOptions)
    def embed(
        self,
        storage: Storage = "sq8",
        recall: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        memory: int = WORKING_MEMORY,
    ) -> list[Shortfall]:
        """Store a vector for every key of every corpus, for dense search; resumes a stopped run.

        Args:
            progress (Callable[[int, int], None] | None): Called with the numbers of passages done and in total.
                Default: None.
            memory (int): Approximate maximum of bytes to use besides the loaded model. Default: 1 GB.

        Returns:
            The segments whose codes miss the target recall.

        Raises:
            InputError: Vectors in another storage exist.
            LockedError: Another process is embedding.

        Example:
            >>> npm.embed()
            []
            >>> npm.fill("Carmen is an opera by [MASK].", passages="all", top_k=1)[0].text
            'Georges Bizet'
        """
        EmbedOptions(storage=storage, recall=recall)
        every = self._retriever.tables
        return [short for tables in every for short in tables.build(storage, recall, progress, memory)]

    @renamed
    def embed_cost(self, storage: Storage = "sq8") -> Cost:
        """Estimate the cost of `embed` by encoding a few passages.

        Args:
            storage ("sq8" | "sq4" | "fp16" | "fp32"): As in `embed`. Default: "sq8".

        Returns:
            The passages and keys still to embed, their bytes on disk, finally and at the peak, and the seconds.

        Raises:
            InputError: An unknown storage.

        Example:
            >>> realm.embed_cost().passages  # all are embedded
            0
        """
        costs = [tables.cost(storage) for tables in self._retriever.tables]
        return reduce(Cost.plus, costs, Cost(0, 0, 0, 0, 0.0))


class FusedSearch:
    """Searches the same corpora by BM25 and several models, and merges the rankings.

    Args:
        models (Sequence[CorpusModel]): The models, all over the same corpora: an NPM, a REALM, a ZeroNER.
        fusion (str): "rrf" (reciprocal ranks) or "sum" (scores from 0 to 1, added up). Default: "rrf".
        weights (Mapping[str, float] | None): The weight of a ranking by kind of keys, "bm25", "tokens", "passages" or
            "entities"; 0 leaves it out. Default: 1 for each.

    Raises:
        InputError: No model, models over different corpora, or another fusion or weight.
    """

    def __init__(
        self, models: Sequence[CorpusModel], fusion: str = "rrf", weights: Mapping[str, float] | None = None
    ) -> None:
        if not models:
            raise InputError("no model to search with; pass one or more, or use mode bm25")
        for each in models:
            if not isinstance(each, CorpusModel):
                raise InputError(f"models has {each!r}, which has no vectors; give an NPM, a REALM or a ZeroNER")
        if fusion not in FUSIONS:
            raise InputError(f"fusion {fusion!r}; use one of {', '.join(FUSIONS)}")
        kinds = ["bm25", *(each.keys for each in models)]
        check_weights(weights or {}, kinds)
        searched = [[(corpus.path, corpus.snapshot) for corpus in each.corpora] for each in models]
        if any(each != searched[0] for each in searched):
            raise InputError(
                "the models search different corpora or snapshots; load them all with the same list of corpora"
            )
        self._models, self._fuse = list(models), FUSIONS[fusion]
        self._weights = [(weights or {}).get(kind, 1.0) for kind in kinds]

    def search(self, query: str, k: int = 10) -> Hits:
        """Find the k best passages by all rankings together.

        Args:
            query (str): What to look for.
            k (int): Number of passages. Default: 10.

        Returns:
            The hits, best first; a hit has its passage, its score, and as `matches` the keys that matched.

        Raises:
            InputError: `k` is below 1, or vectors are missing.
            EmptyCorpusError: No passage to search.

        Example:
            >>> both = quoth.FusedSearch([realm, zero_ner])
            >>> both.search("Where does the Nile end?", k=1)[0].passage.title
            'Nile'
        """
        checked("query", query, str)
        SearchOptions(k=k)
        first, depth = self._models[0], max(k, FUSION_DEPTH)
        of_words, *of_models = self._weights
        words = [best_places(first.corpora, query, depth)] if of_words else []
        weighted = zip(self._models, of_models, strict=True)
        found = [model.ranked_by_keys(query, depth) for model, weight in weighted if weight]
        rankings = [*words, *(each.ranking for each in found)]
        best = self._fuse(rankings, [*filter(None, self._weights)])[:k]
        return first.hits(best, found)


def check_weights(weights: Mapping[str, float], kinds: Sequence[str]) -> None:
    """Raises InputError unless the weights are numbers for these kinds of keys, at least one above 0."""
    allowed = f"give 0 or more for {', '.join(dict.fromkeys(kinds))}, and at least one above 0"
    for name, weight in weights.items():
        if name not in kinds or not 0 <= weight < math.inf:
            raise InputError(f"weight {weight} of {name}; {allowed}")
    if not any(weights.get(kind, 1.0) for kind in kinds):
        raise InputError(f"weights {dict(weights)}; {allowed}")
