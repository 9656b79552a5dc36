"""A corpus on disk: add, replace, delete, compact, verify; any number of readers and one writer.

Knows who may write, and when. Does not know what can be read (`snapshot`), the order of writes to disk (`writer`),
models or vectors.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.corpus.manifest import (
    LOCK,
    Manifest,
    continues,
    exact_indexes,
    keep_copy,
    manifest_path,
    read_manifest,
    side_locks,
    snapshots,
    write_manifest,
)
from quoth.corpus.origins import Changes
from quoth.corpus.snapshot import Snapshot, open_snapshot, reason_unlisted, tell_damage
from quoth.corpus.view import CorpusView
from quoth.corpus.writer import RESERVE, Writer, release, split_documents, sweep
from quoth.errors import CorpusNotFoundError, CorruptionError, InputError, LockedError, advising
from quoth.records import Document
from quoth.storage import WriterLock, all_locked, fsync_path
from quoth.text.passages import DEFAULT_SPLITTER, get_splitter

if TYPE_CHECKING:
    from quoth.corpus.repair import Repairs


class Corpus(CorpusView):
    """Documents, split into passages, in a folder.

    Make one with `Corpus.create` and open it with `Corpus.open`. Reads see one snapshot: the latest when the corpus was
    opened, or at this object's last write or `refresh`. One process writes at a time (LockedError names the other); any
    number read. If a method raises, nothing is committed. A passage's row is never reused.

    Example:
        >>> mine = quoth.Corpus.create("mine.quoth")
        >>> mine.add([quoth.Document("a", "A title", "A text.")])
        1
        >>> mine
        Corpus('mine.quoth', documents=1, passages=1, snapshot=1)
    """

    def __init__(self, path: Path, snapshot: Snapshot, pinned: bool = False) -> None:
        super().__init__(path, snapshot)
        self._pinned = pinned
        self._origins: Callable[[], Changes] = dict

    def __reduce__(self) -> tuple[Callable[..., "Corpus"], tuple[str, int, bool, str, tuple[str, ...]]]:
        place, shown = str(self.path.absolute()), self._snapshot
        return _reopened, (place, self.snapshot, self._pinned, shown.manifest.digest, shown.conditions)

    @classmethod
    def create(cls, path: str | Path, splitter: str = DEFAULT_SPLITTER) -> "Corpus":
        """Make a new, empty corpus.

        If `path` has a corpus that never got a document, it is started over.

        Args:
            path (str | Path): The folder to make, by convention NAME.quoth.
            splitter (str): How texts are split: "blocks:120" (up to 120 words, cut at the end of a paragraph, of a line
                of a list, record or table, or of a sentence), "words:120" (at sentence ends only), "fixed:100" (exactly
                100 words) or "tokens:256:TOKENIZER" (up to 256 tokens of a tokenizer, a folder or hub id). Default:
                "blocks:120".

        Returns:
            The corpus, ready for `add`.

        Raises:
            InputError: The folder contains something else, or the splitter is unknown.
            LockedError: Another process is writing the first documents.

        Example:
            >>> short = quoth.Corpus.create("short.quoth", splitter="words:50")
            >>> short.splitter, short.num_documents
            ('words:50', 0)
        """
        path = Path(path)
        get_splitter(splitter)
        if path.is_file():
            raise InputError(f"{path} is a file; a corpus is a folder, so choose another name")
        if path.exists() and not _is_vacant(path):
            raise InputError(f"{path} already exists; `quoth add {path} DOCS` adds to it, or choose another name")
        path.mkdir(parents=True, exist_ok=True)
        with WriterLock(path / LOCK, RESERVE):
            (path / "segments").mkdir(exist_ok=True)
            write_manifest(path, Manifest(snapshot=0, splitter=splitter))
        fsync_path(path.absolute().parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path, snapshot: int | None = None) -> "Corpus":
        """Open a corpus: as it is now or, read-only, as it was at an earlier snapshot.

        Checks the sizes of all files and the contents of small ones. The first search checks the words of passages,
        since texts can be read without them. A damaged segment is left out with a DamageWarning, unless no other is
        intact; `damaged` names it. If the list of deletions is damaged, a DamageWarning says what replaces it.

        Args:
            path (str | Path): A folder made by `create` or `quoth index`.
            snapshot (int | None): One of `snapshots()`. Default: None, the latest, the only one that can be written to.

        Returns:
            The corpus.

        Raises:
            CorpusNotFoundError: There is no corpus at `path`, or it has no such snapshot.
            CorruptionError: A file is damaged; the message names it and the remedy.
            LockedError: Another process keeps the manifest locked.

        Example:
            >>> quoth.Corpus.open("tiny.quoth").num_documents
            6
            >>> quoth.Corpus.open("tiny.quoth", snapshot=0).num_documents
            0
        """
        path = Path(path)
        with advising(path):
            opened = open_snapshot(path, snapshot)
            tell_damage(opened)
            return cls(path, opened, pinned=snapshot is not None)

    @staticmethod
    def repair(path: str | Path, drop: Iterable[str] = ()) -> "Repairs":
        """Rebuild damaged files from the rest where possible, and report those that are lost.

        It can rebuild segments' tables and words, the lists of checksums, deletions and source files, and the last
        manifest. It removes damaged vectors and codes, which `embed` makes again. Reads every file.

        Args:
            path (str | Path): The corpus's folder.
            drop (Iterable[str]): Segments to remove in one commit if they cannot be repaired: their documents are lost;
                or a lost list of deletions: documents deleted only by it reappear. Default: none.

        Returns:
            `repaired`, `lost` and `dropped`: one line of text per file or segment.

        Raises:
            CorpusNotFoundError: There is no corpus at `path`.
            InputError: A segment to drop is not in the corpus, or is intact.
            LockedError: Another process is writing or embedding.

        Example:
            >>> quoth.Corpus.repair("tiny.quoth")
            Repairs(repaired=[], lost=[], dropped=[])
        """
        from quoth.corpus.repair import repair

        return repair(Path(path), list(drop))

    def refresh(self) -> None:
        """Move to the latest snapshot, including the writes of others.

        Raises:
            CorpusNotFoundError: The corpus is gone, or another has taken its place; `open` opens that.
            CorruptionError: A file is damaged.
            LockedError: Another process keeps the manifest locked.
        """
        self._pinned = False
        with advising(self.path):
            latest, seen = read_manifest(self.path), self._snapshot.manifest
            if latest != seen and not continues(self.path, latest, seen):
                raise CorpusNotFoundError(_REPLACED.format(self.path))
            if latest != seen or self.damaged or self._snapshot.unlisted:
                opened = open_snapshot(self.path, None, self.segments)
                if (opened.damaged, opened.unlisted) != (self.damaged, self._snapshot.unlisted):
                    tell_damage(opened)
                self._snapshot = opened.part(self._snapshot.conditions)

    def is_current(self) -> bool:
        """Whether this is the folder's current state: the latest snapshot of this corpus, with the same files damaged.

        Raises CorruptionError if the latest manifest cannot be read.
        """
        return read_manifest(self.path) == self._snapshot.manifest and not self._snapshot.is_altered()

    def is_followed_by(self, later: "Corpus") -> bool:
        """Whether a corpus opened later at the same path is this one, not another that took its place."""
        return continues(self.path, later._snapshot.manifest, self._snapshot.manifest)

    def catch_up(self) -> None:
        """`refresh`, unless this object was opened for reading one snapshot."""
        if not self._pinned:
            self.refresh()

    def snapshots(self) -> list[int]:
        """The snapshots that `open` accepts, oldest first.

        `compact` releases all but the last and those being read.
        """
        return snapshots(self.path)

    def add(self, documents: Iterable[Document], progress: Callable[[int], None] | None = None) -> int:
        """Add documents in one commit. They are streamed to disk, so they need not fit in memory.

        Args:
            documents (Iterable[Document]): New documents, for example from `quoth.read_documents`.
            progress (Callable[[int], None] | None): Receives the number of documents so far. Default: None.

        Returns:
            The number of documents added.

        Raises:
            DuplicateDocumentError: An id is already in the corpus, or occurs twice.
            InputError: A document cannot be stored, or this object was opened to read one snapshot.
            LockedError: Another process is writing.

        Example:
            >>> notes = quoth.Corpus.create("notes.quoth")
            >>> notes.add([quoth.Document("monday", "Monday", "The meeting is on Friday.")])
            1
        """
        with self._writing() as writer:
            return writer.add(split_documents(documents, self.splitter, progress))

    def replace(
        self,
        documents: Iterable[Document],
        progress: Callable[[int], None] | None = None,
        delete: Iterable[str] = (),
    ) -> int:
        """Like `add`, but a document replaces any with the same id.

        A document already stored with the same title, text and metadata keeps its rows and vectors.

        Args:
            documents (Iterable[Document]): New and changed documents; unchanged ones may be among them.
            progress (Callable[[int], None] | None): Receives the number of documents so far. Default: None.
            delete (Iterable[str]): Ids of documents to delete in the same commit, or a single id, except those in
                `documents`. Read after `documents`. Default: none.

        Returns:
            The number of new and changed documents, which were written.

        Raises:
            DuplicateDocumentError: An id occurs twice.
            UnknownDocumentError: No document has an id to delete; nothing is written.
            InputError: A document cannot be stored, or this object was opened to read one snapshot.
            LockedError: Another process is writing.

        Example:
            >>> plan = quoth.Corpus.create("plan.quoth")
            >>> plan.add([quoth.Document("monday", "Monday", "The meeting is on Friday.")])
            1
            >>> plan.replace([quoth.Document("monday", "Monday", "The meeting is on Thursday.")])
            1
            >>> plan.document("monday").text
            'The meeting is on Thursday.'
        """
        ids = [delete] if isinstance(delete, str) else delete
        with self._writing() as writer:
            return writer.replace(split_documents(documents, self.splitter, progress), ids)

    def add_written(self, folders: Generator[Path]) -> int:
        """Like `add`, with segments that other processes wrote with `writer.write_segment`.

        Each is a folder in `segments/` whose name ends in .tmp. They are taken one by one, up to the first error.
        """
        with self._writing() as writer, closing(folders):
            return writer.add_written(folders)

    def delete(self, document_ids: Iterable[str]) -> int:
        """Delete documents in one commit. `compact` frees their space.

        Args:
            document_ids (Iterable[str]): The ids they were added with, or a single id.

        Returns:
            The number of documents deleted.

        Raises:
            UnknownDocumentError: No document has that id; nothing is deleted.
            InputError: This object was opened to read one snapshot.
            LockedError: Another process is writing.

        Example:
            >>> old = quoth.Corpus.create("old.quoth")
            >>> old.add([quoth.Document("a", "", "One."), quoth.Document("b", "", "Two.")])
            2
            >>> old.delete(["a"]), old.num_documents
            (1, 1)
        """
        ids = [document_ids] if isinstance(document_ids, str) else list(document_ids)
        with self._writing() as writer:
            return writer.delete(ids)

    def compact(self) -> None:
        """Merge small segments, remove deleted documents from disk and release all older snapshots.

        A snapshot being read is released by a later write. A full segment without deletions stays as it is, with its
        rows; the passages of all others get new rows. Vectors and the like are not touched: they are read where they
        are, and moved by the next `embed` or `quoth compact`. Exact indexes of merged segments are rebuilt. The record
        of source files forgets the documents that are gone.

        Raises:
            CorruptionError: A segment is damaged, so that compacting would lose its readable part, or that record is.
            InputError: This object was opened to read one snapshot.
            LockedError: Another process is writing or embedding.

        Example:
            >>> small = quoth.Corpus.create("small.quoth")
            >>> for name in ("a", "b"):
            ...     _ = small.add([quoth.Document(name, "", "A text.")])
            >>> small.compact()
            >>> len(small.segments), small.num_documents
            (1, 2)
        """
        has_exact = bool(exact_indexes(self.path))
        with self._writing() as writer, all_locked(side_locks(self.path)):
            writer.compact()
        if has_exact:
            from quoth.corpus.exact.indexes import make

            with suppress(OSError, LockedError):  # everything is committed; the next call that needs it makes it
                make(self, required=True)

    def verify(self) -> None:
        """Check every file, including older snapshots and data next to the passages, such as vectors.

        Raises:
            CorruptionError: A file is missing, truncated or altered; the message names it and the remedy.

        Example:
            >>> corpus.verify()
        """
        from quoth.corpus.repair import verify

        verify(self.path)

    @contextmanager
    def recording(self, origins: Callable[[], Changes]) -> Iterator[None]:
        """Commit writes in the body together with the record of their files.

        `origins` is called after the last document, and returns the changes to the record.
        """
        self._origins = origins
        try:
            yield
        finally:
            self._origins = dict

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        if self._pinned or self.condition:
            what = f"the part where {self.condition}" if self.condition else "a snapshot"
            raise InputError(f"snapshot {self.snapshot} is for reading; open {self.path} without {what}")
        with WriterLock(self.path / LOCK, RESERVE) as lock, advising(self.path):
            self.refresh()
            if self._snapshot.is_incomplete:
                raise CorruptionError(reason_unlisted(self._snapshot))
            keep_copy(self.path, self._snapshot.manifest)
            sweep(self.path, self._snapshot.manifest)
            release(self.path, self._snapshot.manifest.kept_from)
            try:
                yield Writer(self.path, self._snapshot, self._show, self._origins, lock.yield_reserve)
            except BaseException:
                sweep(self.path, read_manifest(self.path))
                raise

    def _show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot


_BEGUN = {"segments", LOCK, "manifest-0.json", "committed.json"}
_REPLACED = "{}: another corpus has taken its place; open it again"


def _is_vacant(path: Path) -> bool:
    """Whether a folder is empty, or has only the leftovers of a corpus without a committed document."""
    if not path.is_dir() or {file.name for file in path.iterdir() if file.suffix != ".tmp"} - _BEGUN:
        return False
    return manifest_path(path, 0).is_file() or not any(path.glob("*/*"))


def _reopened(path: str, snapshot: int, pinned: bool, digest: str, conditions: tuple[str, ...]) -> Corpus:
    """A pickled corpus: the snapshot it read or, if that was released and it was not opened to read one snapshot, the
    latest. Raises CorpusNotFoundError, also if another corpus has taken its place, CorruptionError."""
    try:
        corpus = Corpus.open(path, snapshot)
    except CorpusNotFoundError:
        if pinned:
            raise
        corpus = Corpus.open(path)
    # A later snapshot may be this corpus's, which nothing on disk tells once the one that was read is released.
    is_other = digest != corpus._snapshot.manifest.digest
    if corpus.snapshot < snapshot or (corpus.snapshot == snapshot and is_other):
        raise CorpusNotFoundError(_REPLACED.format(path))
    corpus._pinned = pinned
    corpus._snapshot = corpus._snapshot.part(conditions)
    return corpus


CorpusOrPath = Corpus | str | Path
Corpora = CorpusOrPath | Sequence[CorpusOrPath] | None
"""What `corpus=` takes: a corpus or the path of one, or several."""


def listed(corpora: Corpora) -> list[Corpus]:
    """None, one or several, as a list of open corpora. Raises CorpusNotFoundError, or InputError if two share a name or
    an item is not a corpus."""
    if isinstance(corpora, CorpusOrPath) or not isinstance(corpora, Iterable):
        corpora = [] if corpora is None else [corpora]
    several = [*corpora]
    for each in several:
        if not isinstance(each, CorpusOrPath):
            raise InputError(f"corpus is {each!r}; it must be a corpus, the path of one, or a list of these")
    opened = [corpus if isinstance(corpus, Corpus) else Corpus.open(corpus) for corpus in several]
    for number, corpus in enumerate(opened):
        # Evidence names its corpus by nothing else.
        if corpus.name in {other.name for other in opened[:number]}:
            raise InputError(f"two corpora are named {corpus.name!r}; rename one of the folders")
    return opened
