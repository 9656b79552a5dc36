"""Which documents of a corpus come from which folder: when a file is gone, its document can be deleted.

A document comes from a folder if it is a whole file of it and is still the same: the record has its id, which is the
file's path in the folder, and a digest. Rows of tables and JSONL files come from no folder, nor do documents
that were changed in another way since. Knows the record, `origins.json`, which is written after the commit: if a kill
comes between, a file removed before the next write is not missed. Does not know who deletes.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.manifest import ORIGINS
from quoth.errors import CorruptionError, InputError, UnknownDocumentError
from quoth.records import Document
from quoth.sources.files import FILES, format_of
from quoth.storage import atomic_write_json, read_json

Digests = dict[str, str]
"""The digests of documents, by id."""


class Origins:
    """The documents of each folder, as they were when they were last read from it.

    A folder is recorded by its path relative to the corpus, so that both can move together. Raises CorruptionError if
    the record cannot be read; its methods raise InputError for a folder whose path is not UTF-8.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._file = corpus.path / ORIGINS
        # The digests are its checksums: what is not the corpus's any longer is not deleted.
        self._folders = read_record(self._file, "`quoth replace` records again what comes from where")

    def of(self, folder: Path) -> Digests:
        """The documents that were read from a folder, as they were then."""
        return self._folders.get(place_of(folder, self._corpus), {})

    def know(self, folder: Path) -> bool:
        """Whether anything was read from a folder before."""
        return place_of(folder, self._corpus) in self._folders

    def gone(self, folders: Iterable[Path]) -> dict[Path, list[str]]:
        """Per folder, the documents of the corpus that come from it and whose files are no longer there.

        What comes from another folder too is gone only if it is gone from that one, and that one is among `folders`.
        """
        places = {place_of(folder, self._corpus): folder for folder in folders}
        there = {
            (document_id, digest)
            for place, digests in self._folders.items()
            for document_id, digest in digests.items()
            if place not in places or (places[place] / document_id).exists()
        }
        gone = {}
        for place, folder in places.items():
            missing = {each: own for each, own in self._folders.get(place, {}).items() if (each, own) not in there}
            gone[folder] = [*as_read(self._corpus, missing)]
        return gone

    def save(self, read: Mapping[Path, Digests]) -> None:
        """Record what was read from each folder, and keep what it had before and the corpus still has."""
        for folder, digests in read.items():
            others = {each: own for each, own in self.of(folder).items() if each not in digests}
            self._folders[place_of(folder, self._corpus)] = as_read(self._corpus, others) | digests
        if read:
            atomic_write_json(self._file, self._folders)


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
    is_whole = (format or format_of(Path(document.id))) in FILES
    return is_whole and (folder / document.id).is_file()


def digest_of(document: Document) -> str:
    """A digest of a document's title, text and metadata."""
    facts = "\0" + json.dumps(dict(document.metadata), sort_keys=True) if document.metadata else ""
    return blake2b(f"{document.title}\0{document.text}{facts}".encode(), digest_size=12).hexdigest()


def read_record(file: Path, remedy: str) -> dict[str, dict[str, Any]]:
    """What is recorded of each folder; nothing if there is no file. Raises CorruptionError."""
    if not file.exists():
        return {}
    with suppress(CorruptionError):
        folders = read_json(file)
        if isinstance(folders, dict) and all(isinstance(known, dict) for known in folders.values()):
            return folders
    raise CorruptionError(f"{file}: damaged; delete this file, and {remedy}")
