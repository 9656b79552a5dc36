"""What is known of files without reading them again: the digest of a file's bytes, and why these cannot be read.

Kept beside the documents, in `seen.json`, which only saves work: what it says holds for a file whatever the corpus has
of it, so nothing is lost with it, and a damaged one counts for nothing. Does not know documents.
"""

import hashlib
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from quoth import __version__
from quoth.errors import CorruptionError
from quoth.storage import atomic_write_json, encode_json, read_json, sha256_bytes

SEEN = "seen.json"
UNSURE = 2_000_000_000
"""Nanoseconds for which a file's time does not tell whether it was written again."""


class _File(NamedTuple):
    size: int
    time: int
    digest: str
    reason: str


class Seen:
    """The files of each folder, by its path relative to the corpus."""

    def __init__(self, corpus: Path) -> None:
        self._corpus, self._beside = corpus, corpus.resolve().parent
        self._is_changed = True  # unless it can be read
        self._files: dict[str, dict[str, _File]] = {}
        self._whole: dict[str, str] = {}
        with suppress(CorruptionError):
            self._files, self._whole = _read(corpus)
            self._is_changed = False

    def digest(self, place: str, name: str) -> str:
        """The digest of a file's bytes, which are read unless its size and time are as before. Raises OSError."""
        file = self._beside / place / name
        status, known = file.stat(), self._files.setdefault(place, {}).get(name)
        # A file that has just been written may be written again without another time.
        is_settled = time.time_ns() - status.st_mtime_ns > UNSURE
        if is_settled and known and (status.st_size, status.st_mtime_ns) == known[:2]:
            return known.digest
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, partial(hashlib.blake2b, digest_size=16)).hexdigest()
        reason = known.reason if known and known.digest == digest else ""
        self._set(place, name, _File(status.st_size, status.st_mtime_ns if is_settled else 0, digest, reason))
        return digest

    def reason(self, place: str, name: str) -> str:
        """Why the bytes that `digest` saw last cannot be read; "" if nobody tried, or they can."""
        return self._files[place][name].reason

    def cannot_be_read(self, place: str, name: str, reason: str) -> None:
        """Remember it of the bytes that `digest` saw last."""
        self._set(place, name, self._files[place][name]._replace(reason=reason))

    def is_whole(self, place: str, state: str) -> bool:
        """Whether the corpus in this state, by its manifest's digest, has all that was read of a folder."""
        return self._whole.get(place) == state

    def found_whole(self, place: str, state: str) -> None:
        """Remember it."""
        self._is_changed = self._is_changed or self._whole.get(place) != state
        self._whole[place] = state

    def save(self, place: str, there: set[str]) -> None:
        """Write what is known; of a folder, only of the files that are there. A disk that is full is no error."""
        files = self._files.setdefault(place, {})
        for name in files.keys() - there:
            del files[name]
            self._is_changed = True
        self._write()

    def keep(self, record: Mapping[str, Collection[str]]) -> None:
        """Forget all but these files of each folder. A disk that is full is no error."""
        files = {
            place: {name: file for name, file in files.items() if name in record[place]}
            for place, files in self._files.items()
            if place in record
        }
        whole = {place: state for place, state in self._whole.items() if place in record}
        self._is_changed = self._is_changed or (files, whole) != (self._files, self._whole)
        self._files, self._whole = files, whole
        self._write()

    def _write(self) -> None:
        if self._is_changed:
            content = {"version": __version__, "whole": self._whole, "files": self._files}
            with suppress(OSError):
                atomic_write_json(self._corpus / SEEN, {**content, "sha256": sha256_bytes(encode_json(content))})

    def _set(self, place: str, name: str, file: _File) -> None:
        self._is_changed = self._is_changed or self._files[place].get(name) != file
        self._files[place][name] = file


def check_seen(corpus: Path) -> None:
    """Raises CorruptionError if the record is damaged."""
    _read(corpus)


def _read(corpus: Path) -> tuple[dict[str, dict[str, _File]], dict[str, str]]:
    file = corpus / SEEN
    if not file.exists():
        return {}, {}
    content = read_json(file)
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        if content.pop("sha256") == sha256_bytes(encode_json(content)):
            # Another version may read what this one could not.
            is_new = content["version"] != __version__
            files = {
                place: {
                    name: _File(size, at, digest, "" if is_new else reason)
                    for name, (size, at, digest, reason) in files.items()
                }
                for place, files in content["files"].items()
            }
            return files, dict(content["whole"])
    raise CorruptionError(f"{file}: not as it was written; delete it: only time is lost")
