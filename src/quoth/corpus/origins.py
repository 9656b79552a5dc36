"""Where the documents of a corpus come from: of which folder, of which file, and what its bytes were.

The record is committed with the documents: the manifest names its files, each of which has what changed since those
before it, so that a commit writes about as much as changed; compacting leaves one file, without the documents that the
corpus no longer has. A file of the record is written twice. Knows the record, and what is gone from a folder: whole
files alone, not rows of tables and JSONL files, and only what the corpus still has as it was read. Does not know who
reads files, or who deletes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from quoth.corpus.manifest import Manifest, origins_path, read_manifest
from quoth.errors import CorruptionError, InputError, UnknownDocumentError
from quoth.records import Document
from quoth.storage import encode_json, read_either, read_json, write_twice
from quoth_sources.files import format_of
from quoth_sources.formats import FILES

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

BEFORE = "origins.json", "sync.json"
"""The records of corpora whose manifest names none: the digests of documents by file, and what `sync` had read."""

Digests = dict[str, str]
"""The digests of documents, by id."""


class Origin(TypedDict):
    """What was read of a file: a digest of its bytes, "" if only `quoth sync` will know, and of its documents."""

    digest: str
    documents: Digests


NOTHING: Origin = {"digest": "", "documents": {}}
Record = dict[str, dict[str, Origin]]
"""Of each folder, by its path relative to the corpus, so that both can move together, its files by name."""
Changes = Mapping[str, Mapping[str, Origin | None]]
"""What is new or different in a record; None in place of a file that is gone."""


class Origins:
    """The documents of each folder, as they were when they were last read from it.

    Raises CorruptionError if the record cannot be read; its methods raise InputError for a folder whose path is not
    UTF-8.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.record = read_origins(corpus.path, read_manifest(corpus.path, corpus.snapshot))

    def of(self, folder: Path) -> dict[str, Origin]:
        """The files that were read from a folder."""
        return self.record.get(place_of(folder, self._corpus), {})

    def know(self, folder: Path) -> bool:
        """Whether anything was read from a folder before."""
        return place_of(folder, self._corpus) in self.record

    def gone(self, folders: Iterable[Path]) -> dict[Path, list[str]]:
        """Per folder, the documents of the corpus that are whole files of it and no longer there.

        What comes from another folder too is gone only if it is gone from that one, and that one is among `folders`.
        """
        places = {place_of(folder, self._corpus): folder for folder in folders}
        there = {
            document
            for place, files in self.record.items()
            for name, origin in files.items()
            if place not in places or (places[place] / name).exists()
            for document in origin["documents"].items()
        }
        gone = {}
        for place, folder in places.items():
            files = self.record.get(place, {}).items()
            whole = {name: own for name, origin in files for each, own in origin["documents"].items() if each == name}
            missing = {name: digest for name, digest in whole.items() if (name, digest) not in there}
            gone[folder] = [*as_read(self._corpus, missing)]
        return gone

    def remaining(self, deleted: Iterable[str]) -> dict[Path, list[str]]:
        """Per folder, the files that are still there of which documents were deleted."""
        beside, ids = self._corpus.path.resolve().parent, {*deleted}
        found = dict[Path, list[str]]()
        for place, files in self.record.items():
            folder = Path(os.path.normpath(beside / place))
            theirs = [name for name, origin in files.items() if not ids.isdisjoint(origin["documents"])]
            if there := [name for name in theirs if (folder / name).exists()]:
                found[folder] = there
        return found

    def changes(self, read: Mapping[Path, Digests], gone: Iterable[str] = ()) -> Changes:
        """What the record lacks of the whole files that were read from each folder, and no longer has: the files that
        `gone` names, and those of which the corpus has no document as it was read, unless `sync` read them."""
        deleted, changes = set(gone), dict[str, dict[str, Origin | None]]()
        for folder, digests in read.items():
            known = self.of(folder)
            changed: dict[str, Origin | None] = {
                name: {"digest": "", "documents": {name: digest}}
                for name, digest in digests.items()
                if known.get(name, NOTHING)["documents"] != {name: digest}
            }
            for name, origin in known.items():
                held = as_read(self._corpus, origin["documents"]).keys() - deleted
                if name not in digests and not held and (name in deleted or not origin["digest"]):
                    changed[name] = None
            if changed or not self.know(folder):
                changes[place_of(folder, self._corpus)] = changed
        return changes


def read_origins(corpus: Path, manifest: Manifest) -> Record:
    """The record of a snapshot. Raises CorruptionError."""
    if not manifest.origins:
        return _read_before(corpus)
    record: dict[str, dict[str, Origin | None]] = {}
    for described in manifest.origins:
        _lay_over(record, _read_part(corpus, described))
    return _without_gone(record)


def write_origins(corpus: Path, old: Manifest, changes: Changes) -> tuple[dict[str, Any], ...]:
    """Writes what changes in the record with the next snapshot; returns what its manifest says of the record's files.

    Raises CorruptionError if the record so far has to be read and cannot be.
    """
    if not changes:
        return old.origins
    parts = [*old.origins]
    record: dict[str, dict[str, Origin | None]] = {}
    if not parts:
        _lay_over(record, _read_before(corpus))
    _lay_over(record, changes)
    # A part is joined with the one before it unless that is twice as large: so many parts as the record doubles, and
    # each file's line is written that many times.
    while parts and parts[-1]["size"] < 2 * len(encode_json(record)):
        later, record = record, {}
        _lay_over(record, _read_part(corpus, parts.pop()))
        _lay_over(record, later)
    content = encode_json(record if parts else _without_gone(record))
    return *parts, write_twice(origins_path(corpus, old.snapshot + 1), content)


def write_whole(corpus: Path, old: Manifest, record: Record) -> tuple[dict[str, Any], ...]:
    """Writes the record in one file for the next snapshot; returns what its manifest says of it."""
    return (write_twice(origins_path(corpus, old.snapshot + 1), encode_json(record)),)


def held(record: Record, is_held: Callable[[str], bool]) -> Record:
    """The record without the documents that the corpus does not hold, and the files and folders that have no other.

    Of what is left of a file `quoth sync` has no digest then, and reads it again.
    """
    kept: Record = {}
    for place, files in record.items():
        left = {name: origin for name, each in files.items() if (origin := _held(each, is_held))}
        if left or not files:
            kept[place] = left
    return kept


def _held(origin: Origin, is_held: Callable[[str], bool]) -> Origin | None:
    documents = {each: digest for each, digest in origin["documents"].items() if is_held(each)}
    if len(documents) == len(origin["documents"]):
        return origin
    return {"digest": "", "documents": documents} if documents else None


def _lay_over(record: dict[str, dict[str, Origin | None]], changes: Changes) -> None:
    for place, files in changes.items():
        record.setdefault(place, {}).update(files)


def _without_gone(record: Changes) -> Record:
    return {
        place: {name: origin for name, origin in files.items() if origin is not None} for place, files in record.items()
    }


def _read_part(corpus: Path, described: dict[str, Any]) -> Changes:
    file = corpus / described["name"]
    content, _ = read_either(file, described)
    with suppress(ValueError, RecursionError):
        part = json.loads(content)
        if _is_record(part):
            return dict(part)
    raise CorruptionError(f"{file}: damaged, not a record of files")


def _is_record(content: Any) -> bool:
    return isinstance(content, dict) and all(
        origin is None
        or (
            isinstance(origin, dict)
            and isinstance(origin.get("digest"), str)
            and isinstance(documents := origin.get("documents"), dict)
            and all(isinstance(digest, str) for digest in documents.values())
        )
        for files in content.values()
        for origin in (files.values() if isinstance(files, dict) else [0])
    )


def _read_before(corpus: Path) -> Record:
    """The record of a corpus whose manifest names none, from the files that were written after its commits."""
    record: dict[str, dict[str, Origin | None]] = {}
    for name in BEFORE:
        _lay_over(record, read_before(corpus / name))
    return _without_gone(record)


def read_before(file: Path) -> Changes:
    """One of these files; nothing if it is not there. Raises CorruptionError."""
    if not file.exists():
        return {}
    with suppress(CorruptionError, AttributeError, TypeError):
        folders = read_json(file)
        folders.pop("", None)  # the snapshots that `sync` left
        record: Any = {
            place: {
                name: {"digest": facts["digest"], "documents": facts["documents"]}
                if isinstance(facts, dict) and facts.keys() >= {"digest", "documents"}
                else {"digest": "", "documents": {name: facts}}
                for name, facts in files.items()
            }
            for place, files in folders.items()
        }
        if _is_record(record):
            return dict(record)
    raise CorruptionError(f"{file}: damaged; delete this file, and `quoth sync` or `quoth replace` reads folders again")


def place_of(folder: Path, corpus: Corpus) -> str:
    """A folder's path relative to the corpus, as it is recorded. Raises InputError if it is not UTF-8."""
    place = Path(os.path.relpath(folder.resolve(), corpus.path.resolve().parent)).as_posix()
    if not is_utf8(place):
        raise InputError(f"{folder}: its path is not UTF-8, so that what comes from it cannot be recorded; rename it")
    return place


def is_utf8(name: str) -> bool:
    """Whether a file's name can be recorded: half a surrogate pair stands for a byte that is no part of UTF-8."""
    return name == name.encode(errors="ignore").decode()


def digest_in(corpus: Corpus, document_id: str) -> str:
    """The digest of a document as the corpus has it; empty if it has none of that id."""
    with suppress(UnknownDocumentError):
        return digest_of(corpus.document(document_id))
    return ""


def as_read(corpus: Corpus, documents: Digests) -> Digests:
    """Those of these documents that the corpus has as they were read."""
    return {each: digest for each, digest in documents.items() if digest_in(corpus, each) == digest}


def is_file_of(folder: Path, document: Document, format: str | None) -> bool:
    """Whether a document that was read from a folder is a file of it, not a row of a file."""
    is_whole = (format or format_of(Path(document.id))) in (*FILES, "json")  # of which a row has no file's name
    return is_whole and (folder / document.id).is_file()


def digest_of(document: Document) -> str:
    """A digest of a document's title, text and metadata."""
    facts = "\0" + json.dumps(dict(document.metadata), sort_keys=True) if document.metadata else ""
    return blake2b(f"{document.title}\0{document.text}{facts}".encode(), digest_size=12).hexdigest()
