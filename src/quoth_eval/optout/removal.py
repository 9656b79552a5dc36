"""Deletes an owner's documents from a copy of a corpus, and counts what is left of them before, after, and compacted.

Knows: a corpus's folder, its snapshots, exact search, stored vectors, the bytes of its files. Does not know: questions,
models.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_blob
from quoth.corpus.corpus import Corpus
from quoth.corpus.segment import Segment
from quoth.corpus.view import CorpusView
from quoth.errors import InputError
from quoth.index.key_store import TABLE, follow, stores
from quoth.index.key_table import open_columns
from quoth.storage import read_json
from quoth.text.passages import sentences
from quoth.text.terms import analyse

STAGES = ("before", "deleted", "compacted")
MIN_WORDS = 6
"""Shorter sentences occur by chance."""
HEAD = 8
"""Bytes by which a probe is looked for; shorter ones are left out."""
_CHUNK = 1 << 24
_MIX = np.uint64(0x9E3779B97F4A7C15)
_BITS = 20
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of an owner's documents: how many of them the corpus has; how many snapshots can be opened that have
    any; of the quotations drawn, how many are found word for word in them, how many in others' documents, and of those
    found in no others' how many are in the bytes of a file; how many of their passages have stored vectors; how many of
    them the record of source files names, in any of its parts."""

    documents: int
    snapshots: int
    quotations: int
    elsewhere: int
    in_bytes: int
    vectors: int
    recorded: int


def draw_quotations(part: CorpusView, count: int, seed: int) -> list[str]:
    """The longest sentence of each document, if it has six words, of up to `count` documents drawn at random."""
    drawn = []
    for document in part.documents():
        ranges = sentences(document.text)
        start, end = max(ranges, key=lambda each: each[1] - each[0], default=(0, 0))
        drawn.append(document.text[start:end].strip())
    kept = [text for text in dict.fromkeys(drawn) if len(analyse(text)) >= MIN_WORDS]
    random.Random(seed).shuffle(kept)
    return kept[:count]


class Removal:
    """A copy of a corpus in the new folder `path`, from which documents are removed step by step. The corpus itself is
    only read."""

    def __init__(self, corpus: Corpus, path: Path, ids: Collection[str], quotations: Sequence[str]) -> None:
        copytree(corpus.path, path, ignore=ignore_patterns("*.lock", "*.tmp"))
        self.corpus = Corpus.open(path)
        if self.corpus.snapshot != corpus.snapshot:
            raise InputError(f"{corpus.path} was changed while it was copied; run the command again")
        self._ids, self._quotations = frozenset(ids), quotations
        self._own = list[bytes]()

    def stages(self) -> Iterator[tuple[str, Left]]:
        """Counts, then deletes and counts, then compacts and counts. `corpus` is the copy at that stage."""
        yield STAGES[0], self._left()
        self.corpus.delete(self._ids)
        yield STAGES[1], self._left()
        self.corpus.compact()
        follow(self.corpus)
        yield STAGES[2], self._left()

    def _left(self) -> Left:
        places = [{match.document_id in self._ids for match in self.corpus.find(text)} for text in self._quotations]
        if not self._own:  # before anything is deleted
            found = zip(self._quotations, places, strict=True)
            self._own = [text.encode() for text, own in found if own == {True}]
        return Left(
            documents=sum(each in self._ids for each in self.corpus.ids()),
            snapshots=sum(map(self._has_any, self.corpus.snapshots())),
            quotations=sum(True in each for each in places),
            elsewhere=sum(False in each for each in places),
            in_bytes=len(occurring(self.corpus.path, self._own)),
            vectors=num_embedded(self.corpus, self._ids),
            recorded=len(self._ids & set(recorded(self.corpus.path))),
        )

    def _has_any(self, snapshot: int) -> bool:
        return not self._ids.isdisjoint(Corpus.open(self.corpus.path, snapshot).ids())


def num_embedded(corpus: Corpus, ids: Collection[str]) -> int:
    """How many passages of these documents, deleted or not, have stored vectors, once per model. All passages of tables
    whose segment is gone count as well, since nothing says whose they are."""
    found = 0
    for store in stores(corpus.path):
        for segment in corpus.segments:
            theirs_P = _theirs(segment, ids)
            found += sum(
                int(theirs_P[each.here_M].sum()) for each in store.sources(segment, store.tables(segment.name))
            )
        names = {segment.name for segment in corpus.segments}
        gone = [each for each in store.folders() if each.name.partition(".")[0] not in names]
        found += sum(len(open_columns(each).offsets_P1) - 1 for each in gone if (each / TABLE).exists())
    return found


def recorded(corpus: Path) -> Iterator[str]:
    """The ids of documents that any part of the record of source files has, the parts that later ones correct too."""
    for part in corpus.glob("origins*.json"):
        for files in read_json(part).values():
            for origin in filter(None, files.values()):
                yield from origin["documents"]


def _theirs(segment: Segment, ids: Collection[str]) -> NDArray[np.bool_]:
    theirs_P = np.zeros(segment.num_passages, np.bool_)
    for number in range(segment.num_documents):
        if segment.id(number) in ids:
            theirs_P[slice(*segment.passage_range(number))] = True
    return theirs_P


def occurring(folder: Path, probes: Sequence[bytes]) -> set[bytes]:
    """The probes that occur in the bytes of some file of a folder.

    Every eight bytes of a file are looked up at once in a table of the probes' first eight; probes themselves are
    compared only where that fits.
    """
    heads = defaultdict[int, list[bytes]](list)
    for probe in probes:
        if len(probe) >= HEAD:
            heads[int.from_bytes(probe[:HEAD], "little")].append(probe)
    if not heads:
        return set()
    table = np.zeros(1 << _BITS, np.bool_)
    table[_mixed(np.fromiter(heads, np.uint64))] = True
    longest, found = max(map(len, probes)), set[bytes]()
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size >= HEAD):
        blob = open_blob(file)
        for at in range(0, len(blob), _CHUNK):
            chunk = bytes(blob[at : at + _CHUNK + longest])
            for shift in range(min(HEAD, len(chunk) - HEAD + 1)):
                words = np.frombuffer(chunk, "<u8", (len(chunk) - shift) // HEAD, shift)
                for place in np.flatnonzero(table[_mixed(words)]).tolist():
                    start = shift + HEAD * place
                    found.update(each for each in heads.get(int(words[place]), ()) if chunk.startswith(each, start))
    return found


def _mixed(words_W: Words) -> Words:
    return (words_W * _MIX) >> np.uint64(64 - _BITS)
