"""The word index of a corpus: passage rows ranked by BM25 (tantivy).

Knows rows and texts, analysed by `analysis`. Knows nothing of passages, segments or snapshots: which rows
are live is asked of the caller, so the index may run ahead of the corpus and hold rows that are no longer,
or not yet, there.
"""

import errno
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.analysis import ANALYSIS_VERSION, analyse, analyse_with_characters, is_unspaced_character
from quoth.errors import CorruptionError, LockedError
from quoth.storage import usual_mode

if TYPE_CHECKING:
    import tantivy

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Analysed = tuple[list[str], list[str]]
"""A text's terms and unspaced characters, as `analyse_with_characters` gives them."""
Live = Callable[[Rows], NDArray[np.bool_]]

WRITER_HEAP_BYTES = 64_000_000
MAX_TIED_HITS = 65_536
_TOKENIZER = f"quoth_terms_{ANALYSIS_VERSION}"
_META, _MANAGED = "meta.json", ".managed.json"
_ENTRIES_AT_A_TIME = 1024
_SECONDS_PRIVATE = 1.0
"""For a moment after each of its changes `meta.json` is its owner's alone."""


class BM25Index:
    """A folder of (row, text) entries, changed by `update` and asked by `search`.

    Scores are tantivy's, which are Lucene's BM25 with k1 = 1.2 and b = 0.75, summed over the query's terms t:

        ln(1 + (N - n_t + 0.5) / (n_t + 0.5)) * (k1 + 1) * f / (f + k1 * (1 - b + b * length / average))

    (Robertson and Zaragoza 2009, eq. 3.15, with Lucene's idf). Lengths over 40 terms are rounded down to
    one of Lucene's 256 steps; removed entries count in N, n_t and the average until their file is merged.

    Any number of threads and processes may search while one updates; a search sees the last full update. Who may
    read the folder may search.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._index: tantivy.Index | None = None
        self._seen_meta = b""

    def update(
        self, add: Iterable[tuple[int, str | Analysed]], discard_from: int | None = None, delete: Iterable[int] = ()
    ) -> None:
        """One commit, all or nothing: removes the rows >= `discard_from`, then those of `delete`, then adds.

        A row that is added must not be in the index any more: rows are not checked for repetition.
        Raises LockedError while another process writes, CorruptionError when the folder cannot be read.
        """
        index = self._open_to_write()
        with self._writer(index) as writer:
            for query in _removals(index.schema, discard_from, delete):
                writer.delete_documents_by_query(query)
            for count, (row, text) in enumerate(add):
                if count % _ENTRIES_AT_A_TIME == 0:
                    self._share()
                with _readable(self.path):
                    writer.add_document(_entry(row, text))

    def search(self, query: str, k: int, live: Live) -> tuple[Rows, Scores]:
        """The `k` best live rows for any of the query's terms: rows int64 [n], scores float32 [n], n <= k.

        A term repeated in the query counts as often as it stands there. Best score first, equal scores by
        row; where more than `MAX_TIED_HITS` hits tie at the end, those found first. No term, no index: n = 0.
        Raises CorruptionError when the folder cannot be read.
        """
        view = self._view() if k > 0 else None
        question = _question(view[1], query) if view else None
        if view is None or question is None:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        searcher, _ = view
        return _live_hits(lambda limit: self._fetch(searcher, question, limit), searcher.num_docs, k, live)

    def _fetch(self, searcher: "tantivy.Searcher", question: "tantivy.Query", limit: int) -> tuple[Rows, Scores]:
        with _readable(self.path):
            hits = searcher.search(question, limit, count=False).hits
            rows = searcher.fast_field_values("row", [address for _, address in hits])
        return np.array(rows, np.int64), np.array([score for score, _ in hits], np.float32)

    def _open_to_write(self) -> "tantivy.Index":
        import tantivy

        self.path.mkdir(parents=True, exist_ok=True)
        with _readable(self.path):
            return _with_tokenizer(tantivy.Index(_schema(), path=str(self.path)))

    @contextmanager
    def _writer(self, index: "tantivy.Index") -> "Iterator[tantivy.IndexWriter]":
        try:
            writer = index.writer(WRITER_HEAP_BYTES, 1)
        except ValueError as error:
            if "LockBusy" in str(error):
                raise LockedError(f"{self.path} is being written; wait for the other writer") from error
            with _readable(self.path):
                raise
        try:
            yield writer
            with _readable(self.path):
                writer.commit()
            self._share()
        except BaseException:
            with suppress(ValueError):  # on a full disk; the last commit stands all the same
                writer.rollback()
            raise
        finally:
            writer.wait_merging_threads()
            self._share()

    def _share(self) -> None:
        """Give the files that tantivy makes for their owner alone the permissions of other files."""
        mode = usual_mode(self.path)
        for name in (_META, _MANAGED):
            with suppress(FileNotFoundError, PermissionError):  # not there yet; another user's
                (self.path / name).chmod(mode)

    def _view(self) -> "tuple[tantivy.Searcher, tantivy.Schema] | None":
        """A view of the last commit, None without entries; opened anew only when its meta file changed."""
        with self._lock, _readable(self.path):
            while (meta := _read_or_empty(self.path / _META)) and meta != self._seen_meta:
                try:
                    self._index = self._opened(meta)
                    self._seen_meta = meta
                except ValueError:
                    if meta == _read_or_empty(self.path / _META):
                        raise  # no writer has overtaken
            if not meta:
                self._index, self._seen_meta = None, b""
            if self._index is None:
                return None
            searcher = self._index.searcher()
            return (searcher, self._index.schema) if searcher.num_docs else None

    def _opened(self, meta: bytes) -> "tantivy.Index":
        """The index at this commit, its files open; the one that was open before where that can be brought up to it.

        tantivy locks a folder by writing to it. Where that is not allowed, it is shown a folder of links instead.
        """
        lock = self.path / ".tantivy-meta.lock"
        effective = os.access in os.supports_effective_ids
        if os.access(lock if lock.exists() else self.path, os.W_OK, effective_ids=effective):
            index = self._index or _open_index(self.path)
            index.reload()
            return index
        with TemporaryDirectory(prefix="quoth-") as links:
            for file in self.path.iterdir():
                if file.name not in (_META, _MANAGED) and file.suffix != ".lock":
                    Path(links, file.name).symlink_to(file.absolute())
            Path(links, _META).write_bytes(meta)
            index = _open_index(Path(links))
            index.reload()
            return index


def _live_hits(fetch: Callable[[int], tuple[Rows, Scores]], total: int, k: int, live: Live) -> tuple[Rows, Scores]:
    limit = k + 16
    while True:
        limit = min(limit, total)
        rows, scores = fetch(limit)
        keep = np.asarray(live(rows), np.bool_)
        if len(rows) < limit or limit == total or _settled(scores, keep, k):
            rows, scores = rows[keep], scores[keep]
            best = np.lexsort((rows, -scores))[:k]
            return rows[best], scores[best]
        limit *= 2


def _settled(scores: Scores, keep: NDArray[np.bool_], k: int) -> bool:
    """Whether no hit beyond these can enter the best k: k are live and the last one scores below them."""
    live_scores = scores[keep]
    if len(live_scores) < k:
        return False
    return bool(scores[-1] < live_scores[k - 1]) or len(live_scores) >= k + MAX_TIED_HITS


def _question(schema: "tantivy.Schema", text: str) -> "tantivy.Query | None":
    from tantivy import Occur, Query

    terms = [("characters" if is_unspaced_character(term) else "terms", term) for term in analyse(text)]
    clauses = [(Occur.Should, Query.term_query(schema, field, term, "freq")) for field, term in terms]
    return Query.boolean_query(clauses) if clauses else None


def _removals(schema: "tantivy.Schema", discard_from: int | None, delete: Iterable[int]) -> "Iterator[tantivy.Query]":
    from tantivy import FieldType, Query

    if discard_from is not None:
        yield Query.range_query(schema, "row", FieldType.Unsigned, lower_bound=discard_from)
    if rows := list(map(int, delete)):
        yield Query.term_set_query(schema, "row", rows)


def _entry(row: int, text: str | Analysed) -> "tantivy.Document":
    from tantivy import Document

    terms, characters = analyse_with_characters(text) if isinstance(text, str) else text
    entry = Document()
    entry.add_unsigned("row", int(row))
    entry.add_text("terms", " ".join(terms))
    if characters:
        entry.add_text("characters", " ".join(characters))
    return entry


def _schema() -> "tantivy.Schema":
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_unsigned_field("row", indexed=True, fast=True)
    builder.add_text_field("terms", tokenizer_name=_TOKENIZER, index_option="freq")
    builder.add_text_field("characters", tokenizer_name=_TOKENIZER, index_option="freq")
    return builder.build()


def _open_index(path: Path) -> "tantivy.Index":
    import tantivy

    index = _with_tokenizer(tantivy.Index.open(str(path)))
    index.config_reader("manual")
    return index


def _with_tokenizer(index: "tantivy.Index") -> "tantivy.Index":
    from tantivy import TextAnalyzerBuilder, Tokenizer

    index.register_tokenizer(_TOKENIZER, TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    return index


def _read_or_empty(path: Path) -> bytes:
    until = time.monotonic() + _SECONDS_PRIVATE
    while True:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""
        except PermissionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


_CAUSE = re.compile(r"(?:\bcode: |\(os error )(\d+)")
_DAMAGE = (errno.ENOENT, errno.EINVAL)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Names the index in its errors: what the system refuses (a permission, room on the disk) is an OSError of that
    number, all else a CorruptionError."""
    try:
        yield
    except BaseException as error:
        # A panic in tantivy (a truncated file) arrives as an exception class that cannot be imported.
        if isinstance(error, ValueError | OSError) or type(error).__name__ == "PanicException":
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            told = _CAUSE.search(str(error))
            number = error.errno if isinstance(error, OSError) else told and int(told[1])
            if number and number not in _DAMAGE:
                raise OSError(number, os.strerror(number), str(path)) from error
            raise CorruptionError(f"the word index {path} cannot be read: {reason}") from error
        raise
