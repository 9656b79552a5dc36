"""A corpus in step with a folder: what is new, changed or gone there becomes so in the corpus.

A file is looked at again if its size or time has changed, and read again if its bytes have. The record, `sync.json`,
says which documents came from which file; only these are replaced or deleted, only as they were read, and not while
another folder has them too. It is written after each commit: after a kill between both, files are read again, and what
is unchanged is left alone. Does not know formats, or who reports.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_each, with_file
from quoth.corpus.manifest import SYNC
from quoth.corpus.origins import Digests, Origins, as_read, digest_in, digest_of, is_utf8, place_of, read_record
from quoth.errors import InputError, UnknownDocumentError
from quoth.records import Document
from quoth.sources.files import FILES, Source, check_parsers, files_below, format_of, readable
from quoth.sources.worker import Worker
from quoth.storage import atomic_write_json

IGNORE = ".quothignore"
STEP_FILES, STEP_CHARACTERS = 500, 1 << 25
"""After how much a step is committed: a kill loses no more than that."""
LAST = ""
"""In the record, beside the folders: by folder the snapshot that its last whole sync left."""
UNSURE = 2_000_000_000
"""Nanoseconds for which a file's time does not tell whether it was written again."""

Facts = dict[str, Any]
"""Of a file that was read: `size`, `time` (ns), `digest` of its bytes, and the digests of its `documents` by id."""


@dataclass
class Synced:
    """Names of files, relative to the folder: those whose documents are new, changed or deleted, those that cannot be
    read, with the reason, and how many are as they were."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    unchanged: int = 0

    def __bool__(self) -> bool:
        """Whether the corpus changed."""
        return bool(self.new or self.changed or self.deleted)


def sync(
    corpus: Corpus,
    folder: Path,
    *,
    dry_run: bool = False,
    delete_all: bool = False,
    follow_links: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Synced:
    """Bring a corpus in step with a folder; with `dry_run`, only say what would be done.

    A file that cannot be read, or has a broken record, keeps the documents that it had. Files that `.quothignore` names
    (gitignore's patterns) count as not there; so do links that lead out of the
    folder, unless `follow_links`. `progress` gets the number of files looked at, and of all.

    Raises InputError if the folder is not there or has no file that can be read, unless `delete_all` says that all may
    be deleted; CorruptionError if the record is damaged; and as `Corpus.replace` does.
    """
    return _Sync(corpus, folder, dry_run, follow_links).run(delete_all, progress)


class _Sync:
    def __init__(self, corpus: Corpus, folder: Path, dry_run: bool, follow_links: bool) -> None:
        corpus.catch_up()
        self._corpus, self._folder, self._dry_run, self._follow_links = corpus, folder, dry_run, follow_links
        self._origins, self._file = Origins(corpus), corpus.path / SYNC
        self._record = read_record(self._file, "`quoth sync` reads the folder again")
        self._last: dict[str, int] = self._record.pop(LAST, {})
        self._place = place_of(folder, corpus)
        self._files: dict[str, Facts] = self._record.setdefault(self._place, {})
        self._owner = {each: name for name, facts in self._files.items() for each in facts["documents"]}
        self._done = Synced()

    def run(self, delete_all: bool, progress: Callable[[int, int], None]) -> Synced:
        sources = self._sources()
        there = {name for _, _, name in sources}
        gone = [name for name in self._files if name not in there]
        # What `quoth index` read from here before there was this record.
        indexed = [each for each in self._origins.gone([self._folder])[self._folder] if each not in self._owner]
        if not sources and not ((gone or indexed) and delete_all):
            held = f"; the corpus has {len(gone) + len(indexed):,} from it, which --delete-all deletes"
            raise InputError(f"{self._folder}: no file in it can be read{held if gone or indexed else ''}")
        if self._last.get(self._place) != self._corpus.snapshot:
            self._forget_lost()
        self._replace(self._altered(sources, progress))
        self._delete(gone, indexed)
        return self._done

    def _sources(self) -> list[Source]:
        if not self._folder.is_dir():
            raise InputError(f"{self._folder}: no such folder; give one that exists")
        named = files_below(self._folder, self._follow_links)
        if (rules := self._folder / IGNORE).is_file():
            ignored = GitIgnoreSpec.from_lines(rules.read_text(encoding="utf-8", errors="replace").splitlines())
            named = [(file, name) for file, name in named if not ignored.match_file(name)]
        sources = readable(named, None, self._folder)
        check_parsers(format for format, _, _ in sources)
        return sources

    def _forget_lost(self) -> None:
        """Let files of which the corpus has lost a document count as altered."""
        for facts in self._files.values():
            with suppress(UnknownDocumentError):
                for each in facts["documents"]:
                    self._corpus.rows_of(each)
                continue
            facts |= {"time": 0, "digest": ""}

    def _altered(
        self, sources: Sequence[Source], progress: Callable[[int, int], None]
    ) -> Iterator[tuple[Source, Facts]]:
        """The files whose bytes are not those that were read, and their facts, without documents."""
        for number, source in enumerate(sources, 1):
            _, file, name = source
            known = self._files.get(name)
            try:
                facts = _facts(Path(file), known)
            except OSError as error:
                self._done.unreadable[name] = f"cannot be read ({error.strerror})"
            else:
                if not is_utf8(name):
                    self._done.unreadable[name] = "its name is not UTF-8; rename it"
                elif known and known["digest"] == facts["digest"]:
                    self._done.unchanged += 1
                    known |= facts
                else:
                    yield source, facts
            progress(number, len(sources))

    def _replace(self, altered: Iterable[tuple[Source, Facts]]) -> None:
        """Replace the documents of these files, in steps of one commit each."""
        step: dict[str, Facts] = {}
        documents = list[Document]()
        characters = 0
        with Worker() as worker:
            for source, facts in altered:
                name = source[2]
                try:
                    own = self._documents(source, worker)
                except InputError as error:
                    reason = str(error).removeprefix(f"{source[1]}:").strip()
                    self._done.unreadable[name] = reason.removesuffix("; fix it or leave it out (--skip-bad)")
                    continue
                facts["documents"] = {each.id: digest_of(each) for each in own}
                self._count(name, facts["documents"])
                # What the file had before is free for the files that follow, whose it may be by now.
                before = self._files.get(name, facts)["documents"]
                self._owner |= {each: "" for each in before if self._owner.get(each) == name}
                self._owner |= dict.fromkeys(facts["documents"], name)
                step[name] = facts
                documents += own
                characters += sum(len(each.text) for each in own)
                if len(step) == STEP_FILES or characters >= STEP_CHARACTERS:
                    self._commit(step, documents)
                    step, documents, characters = {}, [], 0
        self._commit(step, documents)

    def _documents(self, source: Source, worker: Worker) -> list[Document]:
        """All documents of a file. Raises InputError if one cannot be read, or is another's."""
        bad, name = list[InputError](), source[2]
        documents = [self._apart(each, name) for each in read_each([source], worker, bad.append, {})]
        for error in bad:
            raise error
        if len({each.id for each in documents}) < len(documents):
            raise InputError("an id occurs twice; give each document its own")
        indexed = self._origins.of(self._folder)
        for each in documents:
            if other := self._other(each.id, name):
                raise InputError(f"{other} has a document {each.id!r} too; give each document its own id")
            held = digest_in(self._corpus, each.id)
            is_own = (each.id in self._owner or each.id in indexed) and (each.id, held) not in self._elsewhere
            if not is_own and held not in ("", digest_of(each)):
                raise InputError(f"the corpus has another document {each.id!r}, not from here; rename the file")
        return documents

    @cached_property
    def _elsewhere(self) -> set[tuple[str, str]]:
        """The documents, by id and digest, that other folders have too, whose files are as they were read."""
        beside = self._corpus.path.resolve().parent
        return {
            document
            for place, files in self._record.items()
            if place != self._place
            for name, facts in files.items()
            if _is_as_read(beside / place / name, facts)
            for document in facts["documents"].items()
        }

    def _apart(self, document: Document, name: str) -> Document:
        """A document of a file, with the file in front of its id if it is a record whose id another file has."""
        return with_file(document, name) if document.id != name and self._other(document.id, name) else document

    def _other(self, document_id: str, name: str) -> str:
        """The other file of the folder that has a document of this id; "" if none has."""
        owner = self._owner.get(document_id, name)
        return owner if owner != name and (self._folder / owner).exists() else ""

    def _count(self, name: str, documents: Digests) -> None:
        if name not in self._files and all(digest_in(self._corpus, each) == own for each, own in documents.items()):
            self._done.unchanged += 1  # it was indexed before there was this record
        else:
            is_known = name in self._files or name in self._origins.of(self._folder)
            (self._done.changed if is_known else self._done.new).append(name)

    def _commit(self, step: Mapping[str, Facts], documents: Sequence[Document]) -> None:
        if step and not self._dry_run:
            before = [each for name in step if name in self._files for each in self._held(name)]
            self._corpus.replace(documents, delete=before)
            self._files |= step
            self._save()

    def _delete(self, gone: Sequence[str], indexed: Sequence[str]) -> None:
        self._done.deleted += [*gone, *indexed]
        if self._dry_run:
            return
        ids = [each for name in gone for each in self._held(name) if self._owner[each] == name]
        if ids or indexed:
            self._corpus.delete([*ids, *indexed])
        for name in gone:
            del self._files[name]
        self._last[self._place] = self._corpus.snapshot
        self._save()

    def _held(self, name: str) -> list[str]:
        """The documents of a file that the corpus has as they were read, and from no other folder."""
        as_before = as_read(self._corpus, self._files[name]["documents"])
        return [each for each, digest in as_before.items() if (each, digest) not in self._elsewhere]

    def _save(self) -> None:
        whole = {name: facts["documents"] for name, facts in self._files.items() if format_of(Path(name)) in FILES}
        atomic_write_json(self._file, {LAST: self._last} | self._record)
        self._origins.save({self._folder: {name: own[name] for name, own in whole.items() if name in own}})


def _is_as_read(file: Path, known: Facts) -> bool:
    with suppress(OSError):
        return bool(_facts(file, known)["digest"] == known["digest"])
    return False


def _facts(file: Path, known: Facts | None) -> Facts:
    """A file's size, time and digest; the digest is the known one if size and time are."""
    status = file.stat()
    # A file that has just been written may be written again without another time.
    settled = time.time_ns() - status.st_mtime_ns > UNSURE
    facts = {"size": status.st_size, "time": status.st_mtime_ns if settled else 0}
    if settled and known and facts.items() <= known.items():
        return facts | {"digest": known["digest"]}
    with file.open("rb") as stream:
        return facts | {"digest": hashlib.file_digest(stream, partial(hashlib.blake2b, digest_size=16)).hexdigest()}
