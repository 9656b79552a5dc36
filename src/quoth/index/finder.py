"""Retrieval of passages to read or show: by words, by stored passage vectors, or by both.

Knows: when there are such vectors, how both rankings are fused, which words are misspelt. Does not know: how vectors
are computed, how passages are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, reduce
from itertools import chain
from string import ascii_lowercase
from typing import TYPE_CHECKING

from quoth.corpus.bm25 import Ranking, best_places, hits_of, holders
from quoth.corpus.manifest import BESIDE
from quoth.errors import UserError
from quoth.fields import checked
from quoth.index.costs import Cost
from quoth.index.fusion import FUSION_DEPTH, shares_of_sum
from quoth.index.options import Mode, SearchOptions
from quoth.records import Hits
from quoth.registry import SYSTEMS, named
from quoth_sources.dictionary import dictionary

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.index.key_store import KeyStore
    from quoth.index.retriever import Retriever

_ROW = next(row for row in SYSTEMS.values() if row.by_passages)
_SHIPPED = frozenset(_ROW.shipped)
LATE_PASSAGES = 32
"""At most this many passages without vectors are encoded for a question that does not ask for vectors: about what is
read anyway."""
SOON = 600.0
"""Time limit, in seconds, for computing vectors unasked. A core computes some fifty a second: enough for 30,000
passages, or 7,000 pages. With more, the user should choose the machine and the time."""
FEW = 2000
"""Passages that have vectors soon without an estimate, even where each takes a third of a second."""
CORRECTED = range(5, 31)
"""The lengths of words that may be misspelt: too many others are one slip away from a shorter one."""
MOST_CORRECTED = 16
"""Different words of a text that are taken for misspelt, at most."""
_MOST_CANDIDATES = 5
_PLACES = 10
_WORD = re.compile(r"""(?<![^\s("“‘«\[-])[A-Za-z]+(?=['’]s\b|[-.,;:?!)"'”’»\]…]*(?:\s|$)|-)""")
"""A word that stands by itself: no part of an address, a path or a name with digits."""


class Finder:
    """Finds passages of some corpora; the encoder is loaded when vectors are first compared."""

    def __init__(
        self, corpora: Sequence[Corpus], device: str | None = None, dtype: str | None = None, base: str | None = None
    ) -> None:
        self.corpora, self._how = corpora, (device, dtype, base)

    def rankings(
        self, queries: Sequence[str], k: int, hidden: Sequence[Collection[int]], mode: Mode = "auto"
    ) -> list[Ranking]:
        """For each query the k best passages; `hidden` are rows that it never sees.

        Scores are BM25's, or if vectors are compared shares of the best one's (`shares_of_sum`). Raises UserError if
        there are no vectors of every corpus, except with `auto`, which goes by words then.
        """
        retriever = None if mode == "bm25" else self.by_vectors(mode != "auto")
        if retriever is None:
            return [best_places(self.corpora, query, k, rows) for query, rows in zip(queries, hidden, strict=True)]
        depth, found = max(k, FUSION_DEPTH), []
        for query, rows in zip(queries, hidden, strict=True):
            both = [] if mode == "dense" else [best_places(self.corpora, query, depth, rows)]
            if query.strip():
                both += retriever.nearest_passages(retriever.encoder.words(query), depth, [rows])
            found.append(shares_of_sum(both, k))
        return found

    def as_spelled(self, text: str) -> tuple[str, bool]:
        """The text with misspelt words corrected to the corpora's spelling, and whether a correction may be a name.

        A word is misspelt if it occurs in no passage, is not in the English dictionary (SymSpell's), and is one typo
        away from a word of the corpora with the same first letter: a letter missing, added, wrong or swapped with the
        next one, as in four of five misspellings (Damerau 1964). The most frequent such word is the correction. It may
        be a name if it is not in the dictionary, or replaces a capitalised word.
        """
        meant, names = dict[str, str](), False

        def spelled(found: re.Match[str]) -> str:
            nonlocal names
            word = found[0]
            if word not in meant:
                if len(word) not in CORRECTED or word.isupper() or len(meant) == MOST_CORRECTED:
                    return word
                if holders(self.corpora, [word]) or word.lower() in dictionary():
                    return word
                meant[word] = self._meant(word)
            form = meant[word]
            names |= form != word and (form.lower() not in dictionary() or (word[0].isupper() and found.start() > 0))
            return form

        return _WORD.sub(spelled, text), names

    def _meant(self, word: str) -> str:
        """The correction of a misspelt word from the corpora; the word itself if none is near."""
        likely = holders(self.corpora, _slips(word.lower()))
        for candidate in sorted(likely, key=likely.__getitem__, reverse=True)[:_MOST_CANDIDATES]:
            if form := candidate if candidate in dictionary() else self._form(candidate):
                return form[0].upper() + form[1:] if word[0].isupper() else form
        return word

    def _form(self, word: str) -> str:
        """The form in which a word itself, not another of its stem, occurs in the best passages for it, or ""."""
        whole = re.compile(rf"(?<![^\W_]){word}(?![^\W_])", re.IGNORECASE)
        for _, (number, row) in best_places(self.corpora, word, _PLACES):
            passage = self.corpora[number].passage(row)
            if found := whole.search(f"{passage.title} {passage.text}"):
                return found[0]
        return ""

    def by_vectors(self, required: bool = False) -> Retriever | None:
        """The retriever over passage vectors; None if a corpus has none, or too few. Raises UserError in that case if
        they are `required`."""
        # Whether there are any is seen without loading an encoder, and asked each time: they may be made meanwhile.
        if not required and not all(map(_stores, self.corpora)):
            return None
        opened = self._opened
        try:
            late = [len(tables.open()[1]) for tables in opened.tables]
        except UserError:
            if required:
                raise
            return None
        return opened if required or sum(late) <= LATE_PASSAGES else None

    @cached_property
    def _opened(self) -> Retriever:
        opened: Retriever = named(_ROW.by_passages)(self.corpora, *self._how)
        return opened

    def embed(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Store the vectors that are missing; resumes a stopped run. Raises QuothError as `KeyTables.build`."""
        for tables in self._opened.tables:
            tables.build(tables.precision(), progress=progress)

    def embed_cost(self) -> Cost:
        """Estimates what `embed` takes, by encoding a few passages."""
        return reduce(Cost.plus, (tables.cost(tables.precision()) for tables in self._opened.tables))

    def seconds_if_long(self) -> float:
        """The seconds that `embed` takes, if that is not `SOON`; else 0."""
        if sum(map(without_vectors, self.corpora)) <= FEW:
            return 0.0
        seconds = self.embed_cost().seconds
        return seconds if seconds > SOON else 0.0

    def search(self, query: str, k: int = 10, mode: Mode = "auto") -> Hits:
        """The k best passages with their scores; with "auto", for a query as the corpora spell it. Raises InputError,
        EmptyCorpusError."""
        checked("query", query, str)
        SearchOptions(k=k, mode=mode)
        ranking, read_as = self.searched(query, k, mode)
        hits = hits_of(self.corpora, ranking)
        hits.read_as = read_as
        return hits

    def searched(self, query: str, k: int, mode: Mode = "auto") -> tuple[Ranking, str]:
        """As `search`, but the places of the passages; and the query as it was read, "" if as given."""
        text = self.as_spelled(query)[0] if mode == "auto" else query
        [ranking] = self.rankings([text], k, [()], mode)
        return ranking, text if text != query else ""


def _slips(word: str) -> Iterator[str]:
    """What a word may have been before one slip that left its first letter, as long as such words are."""
    cuts = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    swapped = (head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1)
    shorter = (head + tail[1:] for head, tail in cuts if tail)
    longer = (head + letter + tail for head, tail in cuts for letter in ascii_lowercase)
    other = (head + letter + tail[1:] for head, tail in cuts if tail for letter in ascii_lowercase)
    return (each for each in dict.fromkeys(chain(swapped, shorter, longer, other)) if len(each) in CORRECTED)


def without_vectors(corpus: Corpus) -> int:
    """The number of passages that have no vector."""
    late = (
        sum(int(corpus.live(segment.first_row + store.absent(segment)).sum()) for segment in corpus.segments)
        for store in _stores(corpus)
    )
    return min(late, default=corpus.num_passages)


def has_vectors(corpus: Corpus) -> bool:
    """Whether any passage has one."""
    return bool(_stores(corpus))


def num_late(corpora: Sequence[Corpus]) -> int:
    """The number of passages without vectors, if because of them passages are found by words alone; else 0."""
    late = [*map(without_vectors, corpora)]
    some = all(not count or has_vectors(corpus) for count, corpus in zip(late, corpora, strict=True))
    return 0 if some and sum(late) <= LATE_PASSAGES else sum(late)


def _stores(corpus: Corpus) -> list[KeyStore]:
    """The folders with vectors of passages of a shipped model, which all have the same vectors."""
    if not (corpus.path / BESIDE).is_dir():
        return []
    from quoth.index.key_store import stores

    return [each for each in stores(corpus.path) if next(each.facts(), {}).get("model") in _SHIPPED]
