"""The files of key tables: one folder per model, next to the corpus's passages; and how keys follow their passages into
merged segments: stored vectors are copied, not made again.

Knows: every path and lock, the settings, which folders are whole, whose keys a table holds. Does not know: what is
encoded, search.

    keys/<model>/                         a model's, named by the start of its fingerprint
        writer.lock                       held by whoever embeds, or lets tables follow
        settings/settings.json            the recall requested last
        <segment>/                        a segment's table
            table.json                    format, model, fingerprint, precision, number of tokens
            vectors.npy                   [N, D] (quantizer.npy for sq8 and sq4), and each token's columns (`key_table`)
        <segment>.partial/                a table that lacks the passages of absent.npy
        <segment>.codes/                  proposes which of a table's vectors to compare (`codes`)
        <segment>.<precision>.part/       a table that is being made

When segments are merged, their tables stay; a segment without a table is read from those of the segments where its
passages were (`corpus.moves`). So a merge does not handle keys, and a kill after it loses none. Whoever embeds next
copies what is stored into one table (`carry`), and removes the tables that nobody reads any more.

Shape suffixes that differ from the project's: M passages that a table holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Rows, open_array, save_array, save_pieces
from quoth.corpus.manifest import BESIDE, LOCK, is_number, segment_name, segment_of, segment_path
from quoth.corpus.moves import Moves, read_moves
from quoth.errors import CorruptionError, LockedError, advising
from quoth.index.key_table import KeyColumns, open_columns, ranges, save_columns
from quoth.index.vectors import KeyVectors, Quantizer, save_quantizer, stored
from quoth.storage import (
    CHECKSUMS,
    Fields,
    WriterLock,
    atomic_write_json,
    check_fields,
    check_folder,
    make_folder,
    publish_folder,
    read_json,
    remove,
)

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.segment import Segment

FORMAT = 2
FACTS: Fields = {"format": (int,), "model": (str,), "fingerprint": (str,), "precision": (str,), "tokens": (int,)}
TABLE, CODES, SETTINGS, ABSENT = "table.json", "codes.json", "settings", "absent.npy"
_SETTINGS: Fields = {"recall": (int, float)}
RECALL = 0.97
PASSAGES_AT_A_TIME = 1024
"""Number of passages whose vectors are in memory while they are copied."""
MARKERS = tuple(f"{BESIDE}/*/{name}" for name in (TABLE, CODES, f"{SETTINGS}.json", ABSENT, CHECKSUMS))
"""The files that say which keys there are."""
SETTINGS_FILES = f"{BESIDE}/*/{SETTINGS}/*"


@dataclass(frozen=True, slots=True)
class Source:
    """A table that holds keys of a segment: the numbers of these passages in the table, ascending, and in the
    segment."""

    table: Path
    there_M: Rows
    here_M: Rows


class KeyStore:
    """One model's folder."""

    def __init__(self, corpus: Path, model: str) -> None:
        self.corpus, self.folder = corpus, corpus / BESIDE / model
        self._moves: dict[str, Moves] = {}
        self._origins: dict[str, list[int]] = {}

    def whole(self, segment: str) -> Path:
        return self.folder / segment

    def partial(self, segment: str) -> Path:
        return self.folder / f"{segment}.partial"

    def codes(self, segment: str) -> Path:
        return self.folder / f"{segment}.codes"

    def part(self, segment: str, precision: str) -> Path:
        return self.folder / f"{segment}.{precision}.part"

    def table(self, segment: str) -> Path | None:
        """A segment's own table, or what there is of it."""
        whole, partial = self.whole(segment), self.partial(segment)
        return whole if whole.is_dir() else partial if partial.is_dir() else None

    def tables(self, segment: str) -> tuple[Path, ...]:
        """The tables that a segment is read from: its own, or those of the segments where its passages were, the
        latest first. Raises CorruptionError."""
        if own := self.table(segment):
            return (own,)
        if not self.folder.is_dir():
            return ()
        if segment not in self._origins:
            self._moves[segment] = read_moves(self.corpus, segment)
            self._origins[segment] = np.unique(self._moves[segment][:, 0])[::-1].tolist()
        origins = map(segment_name, self._origins[segment])
        return tuple(table for origin in origins if (table := self.table(origin)))

    def sources(self, segment: Segment, tables: Sequence[Path]) -> list[Source]:
        """The segment's passages that each of its tables (`tables`) has, no passage twice. Raises CorruptionError."""
        found, left_P = [], np.ones(segment.num_passages, np.bool_)
        for table in tables:
            if own := segment_of(table) == segment.name:
                there_M = here_M = np.arange(segment.num_passages)
            else:
                moves_M3 = self._moves[segment.name]
                there_M, here_M = moves_M3[moves_M3[:, 0] == int(segment_of(table)), 1:].T
            kept_M = left_P[here_M] & ~np.isin(there_M, absent_passages(table))
            left_P[here_M[kept_M]] = False
            if own or kept_M.any():
                found.append(Source(table, there_M[kept_M], here_M[kept_M]))
        return found

    def absent(self, segment: Segment) -> Rows:
        """The numbers of a segment's passages whose keys no sound table holds, ascending."""
        tables = [each for each in self.tables(segment.name) if is_sound(each)]
        return absent_from(self.sources(segment, tables), segment.num_passages)

    def is_stored(self, segment: Segment) -> bool:
        """Whether sound tables hold all of a segment's keys."""
        return bool(self.tables(segment.name)) and not len(self.absent(segment))

    def folders(self, segment: str = "") -> list[Path]:
        """The folders named after this segment, or after any segment."""
        return [path for path in sorted(self.folder.glob(f"{segment}*")) if is_number(segment_of(path))]

    def lock(self) -> WriterLock:
        """Held by whoever writes here. Raises LockedError on entering."""
        make_folder(self.folder)
        return WriterLock(self.folder / LOCK)

    def facts(self) -> Iterator[dict[str, Any]]:
        """What the tables say of themselves, but for those being written or removed. Raises CorruptionError."""
        tables = (file.parent for file in sorted(self.folder.glob(f"*/{TABLE}")))
        return (table_facts(table) for table in tables if table.suffix != ".tmp")

    def recall(self) -> float:
        """The recall requested last."""
        file = self.folder / SETTINGS / f"{SETTINGS}.json"
        return float(check_fields(file, read_json(file), _SETTINGS)["recall"]) if file.parent.is_dir() else RECALL

    def set_recall(self, recall: float) -> None:
        settings = {"recall": recall}
        publish_folder(self.folder / SETTINGS, lambda part: atomic_write_json(part / f"{SETTINGS}.json", settings))

    def sweep(self) -> None:
        """Remove what a killed process has left, what is damaged, and orphans; the lock must be held."""
        self.remove_temporary()
        for folder in [each for each in self.folder.glob("*") if each.is_dir() and each.suffix != ".part"]:
            if not is_sound(folder):
                remove(folder)
        for left in [*self.folder.glob("*.part"), *self.folder.glob("*.partial")]:
            if self.whole(segment_of(left)).is_dir():
                remove(left)
        self.remove_orphans()

    def remove_temporary(self) -> None:
        """Remove what a killed process was writing; the lock must be held."""
        for left in self.folder.glob("*.tmp"):
            remove(left)

    def remove_orphans(self) -> None:
        """Remove the folders of segments that are gone, unless another segment is read from them; the lock must be
        held."""
        gone = [path for path in self.folders() if not segment_path(self.corpus, segment_of(path)).exists()]
        if gone:  # only then the segments that are there, of which another process may be writing more
            there = [path.name for path in self.corpus.glob("segments/*") if is_number(path.name)]
            fresh = KeyStore(self.corpus, self.folder.name)  # it keeps no moves of segments that are never committed
            needed = {segment_of(table) for segment in there for table in fresh.tables(segment)}
            for path in gone:
                if segment_of(path) not in needed:
                    remove(path)


def stores(corpus: Path) -> list[KeyStore]:
    """Every model's."""
    return [KeyStore(corpus, folder.name) for folder in sorted(corpus.glob(f"{BESIDE}/*")) if folder.is_dir()]


def files_of(corpus: Path, segments: Collection[str]) -> list[str]:
    """Patterns of the files that hold the keys of these segments."""
    origins = (origin for each in segments for origin in np.unique(read_moves(corpus, each)[:, 0]).tolist())
    names = {*segments, *map(segment_name, origins)}
    return [f"{BESIDE}/*/{name}*/*" for name in sorted(names)]


def codes_of(segment: str) -> str:
    """The pattern of the folders with a segment's codes."""
    return f"{BESIDE}/*/{segment}.codes"


def made_files(segment: str) -> tuple[str, str]:
    """Patterns of the files that embedding a segment makes: its table's, its codes'."""
    return f"{BESIDE}/*/{segment}/*", f"{codes_of(segment)}/*"


def is_key_file(name: str) -> bool:
    """Whether a file of a corpus, by its name in there, belongs to a folder of keys."""
    return name.startswith(f"{BESIDE}/")


def table_facts(table: Path) -> dict[str, Any]:
    """What a table's `table.json` says. Raises CorruptionError unless it has FACTS, or is of another format."""
    content = read_json(table / TABLE)
    other = isinstance(content, dict) and content.get("format") != FORMAT and content.keys() >= FACTS.keys()
    return content if other else check_fields(table / TABLE, content, FACTS)


def is_sound(folder: Path) -> bool:
    """Whether a table, codes or settings seem complete, without reading everything.

    A local copy of a corpus at a URL may have only the MARKERS of a table or of codes. Settings are nothing but such
    files, so they are always compared with their checksums.
    """
    if not folder.is_dir():
        return False
    facts = CODES if folder.suffix == ".codes" else TABLE
    if {each.name for each in folder.iterdir()} - {ABSENT} == {facts, CHECKSUMS}:
        return True
    try:
        check_folder(folder)
    except CorruptionError:
        return False
    return True


def absent_passages(table: Path) -> Rows:
    """The numbers of the passages whose keys a table lacks, ascending. Raises CorruptionError."""
    return open_array(table / ABSENT, np.int64, (-1,)) if table.suffix == ".partial" else np.zeros(0, np.int64)


def absent_from(sources: Sequence[Source], num_passages: int) -> Rows:
    """The numbers of a segment's passages that none of its sources holds, ascending."""
    absent_P = np.ones(num_passages, np.bool_)  # setdiff1d hashes every number: 20 ms of opening 80,000 passages
    for source in sources:
        absent_P[source.here_M] = False
    return np.flatnonzero(absent_P)


def follow(corpus: Corpus) -> None:
    """Let every model's tables follow their passages, and remove all others; a model that is embedding does so itself.

    Raises CorruptionError if what is to be copied is damaged.
    """
    for store in stores(corpus.path):
        with advising(corpus.path), suppress(LockedError), store.lock():
            for segment in corpus.segments:
                carry(store, segment)
            store.remove_temporary()
            store.remove_orphans()


def carry(store: KeyStore, segment: Segment) -> None:
    """Copy a segment's keys from other tables into one of its own, unless it has one; the lock must be held.

    Raises CorruptionError.
    """
    name, count = segment.name, segment.num_passages
    if store.table(name) or not (sources := store.sources(segment, store.tables(name))):
        return
    origin_P2 = np.full((count, 2), -1, np.int64)
    for number, each in enumerate(sources):
        origin_P2[each.here_M, 0], origin_P2[each.here_M, 1] = number, each.there_M
    tables = [each.table for each in sources]
    final = store.partial(name) if len(absent_from(sources, count)) else store.whole(name)
    publish_folder(final, lambda part: _copy_table(part, tables, origin_P2))


def _copy_table(part: Path, tables: Sequence[Path], origin_P2: NDArray[np.int64]) -> None:
    """Write a table of passages whose keys other tables have into a folder. Raises CorruptionError.

    `origin_P2` has for each passage the number of its table, −1 if it has no keys, and its number there. Vectors of
    eight bits are set to one scale, which covers all of theirs, those of four to that of the largest table; others are
    copied as they are.
    """
    for table in tables:
        check_folder(table)
    facts, columns = table_facts(tables[0]), [open_columns(table) for table in tables]
    if len(absent := np.flatnonzero(origin_P2[:, 0] < 0)):
        save_array(part / ABSENT, absent)
    save_columns(part, lambda: (_taken(columns, *run) for run in _runs(origin_P2)))
    vectors = [KeyVectors.open(table, 1.0) for table in tables]
    largest_first = sorted(vectors, key=len, reverse=True)
    quantizer = Quantizer.covering([each.quantizer for each in largest_first if each.quantizer])
    if quantizer:
        save_quantizer(part, quantizer)
    total = int(open_array(part / "offsets.npy")[-1])
    copied = (
        stored(vectors[number].floats(ranges(columns[number].offsets_P1, numbers)), facts["precision"], quantizer)
        for number, numbers in _runs(origin_P2)
        if number >= 0
    )
    written = save_pieces(part / "vectors.npy", copied)
    assert written == total
    atomic_write_json(part / TABLE, facts | {"tokens": total})


def _taken(columns: Sequence[KeyColumns], table: int, numbers: NDArray[np.int64]) -> KeyColumns:
    return columns[table].take(numbers) if table >= 0 else KeyColumns.without_tokens(len(numbers))


def _runs(origin_P2: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The passages in order, many of one table at a time: the table's number, their numbers in it."""
    for run_P2 in np.split(origin_P2, np.flatnonzero(np.diff(origin_P2[:, 0])) + 1):
        for at in range(0, len(run_P2), PASSAGES_AT_A_TIME):
            yield int(run_P2[0, 0]), run_P2[at : at + PASSAGES_AT_A_TIME, 1]
