"""The finished rows of a table, in a file beside its output: a run that was stopped goes on, however it ended.

A line of JSON for what the table is, then one for each row, flushed to disk before the next is asked; and, when the
output is written, its checksum. Rows are found by their documents' digest, so that a table over a corpus that changed
asks only of what did.
Knows: lines, whom they belong to, which rows were found by words alone. Does not know: what is in a cell.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from quoth.errors import InputError, LockedError
from quoth.storage import fsync_path, naming, open_plain, sha256_file
from quoth.tables.cells import Row

FORMAT = 3
BESIDE = ".rows"
"""What the journal's name has after the output's."""


class Journal:
    """The rows of one table; `identity` is what makes it this one.

    Raises InputError if the file, or an output without one, belongs to another table, LockedError if another process
    is writing it.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], output: Path | None = None) -> None:
        self.path, self._output, self._written = path, output, set[str]()
        if output is not None and output.exists() and not path.exists():
            raise InputError(f"{output} already exists, and {path.name} is not beside it; choose another name")
        self._file = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockedError(f"{path}: another process is writing this table; wait for it to end") from None
            self._places: dict[tuple[str, str], tuple[int, int, bool]] = {}
            self._read(json.loads(json.dumps({"format": FORMAT, **identity})))
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)

    def has(self, key: str, digest: str) -> bool:
        """Whether the row of documents with this digest is finished."""
        return (key, digest) in self._places

    def is_by_words(self, key: str, digest: str) -> bool:
        """Whether a finished row was found by words alone."""
        return self._places[key, digest][2]

    def get(self, key: str, digest: str) -> Row | None:
        """The row of documents with this digest, if it is finished."""
        if (place := self._places.get((key, digest))) is None:
            return None
        return Row.from_dict(json.loads(os.pread(self._file, place[1], place[0]))["row"])

    def add(self, digest: str, row: Row) -> None:
        """Keeps a finished row: it is on disk when this returns."""
        place = self._append({"key": row.document_id, "digest": digest, "row": row.to_dict()})
        self._places[row.document_id, digest] = *place, row.by_words

    def check_output(self) -> None:
        """Raises InputError if the output is not as it was written last: somebody has changed it."""
        if self._output is not None:
            self.check_written(self._output)

    def check_written(self, path: Path) -> None:
        """Raises InputError if a file is not as it was written last."""
        if path.exists() and sha256_file(path) not in self._written:
            raise InputError(f"{path} was changed since it was written; move it away, or choose another name")

    def will_write(self, part: Path) -> None:
        """Remembers what the output is about to be: a file that has another name yet."""
        if (digest := sha256_file(part)) not in self._written:
            self._append({"output": digest})
            self._written.add(digest)

    def _read(self, identity: dict[str, Any]) -> None:
        with open(self._file, "rb", closefd=False) as stream:
            stream.seek(0)
            if not (first := stream.readline()).endswith(b"\n"):  # new, or killed in its first line
                os.ftruncate(self._file, 0)
                self._append(identity)
                fsync_path(self.path.absolute().parent)
                return
            self._check(first, identity)
            end = len(first)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                self._take(line, end)
                end += len(line)
        os.ftruncate(self._file, end)  # a line of which a kill left a part

    def _check(self, first: bytes, identity: dict[str, Any]) -> None:
        try:
            known = json.loads(first)
            others = [name for name, value in identity.items() if known.get(name) != value]
        except (ValueError, AttributeError):
            raise InputError(f"{self.path} is not a table's; choose another name for the output") from None
        if "format" in others:
            raise InputError(f"{self.path}: of another version of Quoth; {self._remedy()}")
        if others:
            name = self._output or self.path
            raise InputError(f"{name} belongs to another table (other {', '.join(others)}); choose another name")

    def _take(self, line: bytes, start: int) -> None:
        try:
            known = json.loads(line)
            if "output" in known:
                self._written.add(known["output"])
            else:
                by_words = known["row"].get("by_words", False)
                self._places[known["key"], known["digest"]] = start, len(line), by_words
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{self.path}: damaged at byte {start}; {self._remedy()}") from None

    def _remedy(self) -> str:
        both = f"{self._output} and {self.path.name}" if self._output else "it"
        return f"delete {both}, and the table is asked again"

    def _append(self, content: Mapping[str, Any]) -> tuple[int, int]:
        line = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        with naming(self.path):
            start, left = os.fstat(self._file).st_size, line
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        return start, len(line)
