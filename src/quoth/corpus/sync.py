"""A corpus in step with a folder: what is new, changed or gone there becomes so in the corpus.

A file is looked at again if its size or time has changed, and read again if its bytes have (`seen`). The record of
`origins` says which documents came from which file; only these are replaced or deleted, only as they were read, and not
while another folder has them too. It is committed with the documents, so that after a kill at any instant the next run
does what was left to do. Does not know formats, or who reports.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pathspec import GitIgnoreSpec

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_each, with_file
from quoth.corpus.manifest import read_manifest
from quoth.corpus.origins import (
    NOTHING,
    Digests,
    Origin,
    as_read,
    digest_in,
    digest_of,
    is_utf8,
    place_of,
    read_origins,
)
from quoth.corpus.seen import Seen
from quoth.errors import InputError, RecordError
from quoth.records import Document
from quoth_sources.files import Source, check_parsers, files_below, readable
from quoth_sources.worker import Worker

IGNORE = ".quothignore"
STEP_FILES, STEP_CHARACTERS = 500, 1 << 25
"""After how much a step is committed: a kill loses no more than that."""


@dataclass
class Synced:
    """Names of files, relative to the folder: those whose documents are new, changed or deleted, those that cannot be
    read, with the reason, of these the ones of which the corpus keeps what it had (`kept`), and how many are as they
    were."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
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
    header: bool | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Synced:
    """Bring a corpus in step with a folder; with `dry_run`, only say what would be done.

    A file that cannot be read, or has a broken record, keeps the documents that it had. Files that `.quothignore` names
    (gitignore's patterns) count as not there; so do links that lead out of the folder, unless `follow_links`. `header`
    says of each CSV and TSV that is read now whether its first row names the columns; files that did not change are not
    read again. `progress` gets the number of files looked at, and of all.

    Raises InputError if the folder is not there or has no file that can be read, unless `delete_all` says that all may
    be deleted; CorruptionError if the record is damaged; and as `Corpus.replace` does.
    """
    return _Sync(corpus, folder, dry_run, follow_links, header).run(delete_all, progress)


class _Sync:
    def __init__(
        self, corpus: Corpus, folder: Path, dry_run: bool, follow_links: bool, header: bool | None = None
    ) -> None:
        corpus.catch_up()
        self._corpus, self._folder, self._dry_run, self._follow_links = corpus, folder, dry_run, follow_links
        manifest = read_manifest(corpus.path, corpus.snapshot)
        self._record, self._seen = read_origins(corpus.path, manifest), Seen(corpus.path)
        self._place = place_of(folder, corpus)
        self._files = self._record.setdefault(self._place, {})
        self._owner = {each: name for name, origin in self._files.items() for each in origin["documents"]}
        self._done = Synced()
        self._header, self._hints = header, set[str]()

    def run(self, delete_all: bool, progress: Callable[[int, int], None]) -> Synced:
        sources = self._sources()
        there = {name for _, _, name in sources}
        gone = [name for name in self._files if name not in there]
        if not sources and not (gone and delete_all):
            held = f"; the corpus has {len(gone):,} from it, which --delete-all deletes" if gone else ""
            raise InputError(f"{self._folder}: no file in it can be read{held}")
        if not self._seen.is_whole(self._place, self._state()):
            self._forget_lost()
        try:
            self._replace(self._altered(sources, progress))
            self._delete(gone)
            if all(origin["digest"] for origin in self._files.values()):
                self._seen.found_whole(self._place, self._state())
        finally:
            if not self._dry_run:
                self._seen.save(self._place, there)
        self._done.kept = [name for name in self._done.unreadable if self._files.get(name, NOTHING)["documents"]]
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
        there = set(self._corpus.ids())
        for name, origin in self._files.items():
            if not there.issuperset(origin["documents"]):
                self._files[name] = {**origin, "digest": ""}

    def _state(self) -> str:
        return read_manifest(self._corpus.path, self._corpus.snapshot).digest

    def _altered(self, sources: Sequence[Source], progress: Callable[[int, int], None]) -> Iterator[tuple[Source, str]]:
        """The files whose bytes are not those that were read, and the digests of these."""
        for number, source in enumerate(sources, 1):
            name = source[2]
            known = self._files.get(name)
            if not is_utf8(name):
                self._done.unreadable[name] = "its name is not UTF-8; rename it"
            else:
                try:
                    digest = self._seen.digest(self._place, name)
                except OSError as error:
                    self._done.unreadable[name] = f"cannot be read ({error.strerror})"
                else:
                    if known and known["digest"] == digest:
                        self._done.unchanged += 1
                    else:
                        yield source, digest
            progress(number, len(sources))

    def _replace(self, altered: Iterable[tuple[Source, str]]) -> None:
        """Replace the documents of these files, in steps of one commit each."""
        step: dict[str, Origin] = {}
        documents = list[Document]()
        characters = 0
        with Worker() as worker:
            for source, digest in altered:
                name = source[2]
                try:
                    own = self._claimed(self._read(source, worker), name)
                except InputError as error:
                    self._done.unreadable[name] = str(error)
                    continue
                origin: Origin = {"digest": digest, "documents": {each.id: digest_of(each) for each in own}}
                self._count(name, origin["documents"])
                # What the file had before is free for the files that follow, whose it may be by now.
                before = self._files.get(name, origin)["documents"]
                self._owner |= {each: "" for each in before if self._owner.get(each) == name}
                self._owner |= dict.fromkeys(origin["documents"], name)
                step[name] = origin
                documents += own
                characters += sum(len(each.text) for each in own)
                if len(step) == STEP_FILES or characters >= STEP_CHARACTERS:
                    self._commit(step, documents)
                    step, documents, characters = {}, [], 0
        self._commit(step, documents)

    def _read(self, source: Source, worker: Worker) -> list[Document]:
        """All documents of a file. Raises InputError if one cannot be read, which is remembered if it is of these
        bytes."""
        bad, name = list[RecordError](), source[2]
        if self._header is None and (reason := self._seen.reason(self._place, name)):
            raise InputError(reason)
        documents = [*read_each([source], worker, bad.append, {}, self._header, self._hints)]
        if not bad:
            return documents
        reason = f"{bad[0].line}: {bad[0].reason}" if bad[0].line else bad[0].reason
        if self._header is None and not bad[0].is_passing:  # without `header` it may be read
            self._seen.cannot_be_read(self._place, name, reason)
        raise InputError(reason)

    def _claimed(self, read: Iterable[Document], name: str) -> list[Document]:
        """A file's documents, under ids that are its own. Raises InputError if one is another's."""
        documents = [self._apart(each, name) for each in read]
        if len({each.id for each in documents}) < len(documents):
            raise InputError("an id occurs twice; give each document its own")
        for each in documents:
            if other := self._other(each.id, name):
                raise InputError(f"{other} has a document {each.id!r} too; give each document its own id")
            held = digest_in(self._corpus, each.id)
            is_own = each.id in self._owner and (each.id, held) not in self._elsewhere
            if not is_own and held not in ("", digest_of(each)):
                raise InputError(f"the corpus has another document {each.id!r}, not from here; rename the file")
        return documents

    @cached_property
    def _elsewhere(self) -> set[tuple[str, str]]:
        """The documents, by id and digest, that other folders have too, whose files are as they were read."""
        return {
            document
            for place, files in self._record.items()
            if place != self._place
            for name, origin in files.items()
            if self._is_as_read(place, name, origin)
            for document in origin["documents"].items()
        }

    def _is_as_read(self, place: str, name: str, origin: Origin) -> bool:
        with suppress(OSError):
            return self._seen.digest(place, name) == origin["digest"] or not origin["digest"]
        return False

    def _apart(self, document: Document, name: str) -> Document:
        """A document of a file, with the file in front of its id if it is a record whose id another file has."""
        return with_file(document, name) if document.id != name and self._other(document.id, name) else document

    def _other(self, document_id: str, name: str) -> str:
        """The other file of the folder that has a document of this id; "" if none has."""
        owner = self._owner.get(document_id, name)
        return owner if owner != name and (self._folder / owner).exists() else ""

    def _count(self, name: str, documents: Digests) -> None:
        known = self._files.get(name)
        is_held = all(digest_in(self._corpus, each) == own for each, own in documents.items())
        if is_held and (not known or not known["digest"]):
            self._done.unchanged += 1  # another command has read it
        else:
            (self._done.changed if known else self._done.new).append(name)

    def _commit(self, step: Mapping[str, Origin], documents: Sequence[Document]) -> None:
        if step and not self._dry_run:
            before = [each for name in step if name in self._files for each in self._held(name)]
            with self._corpus.recording(lambda: {self._place: step}):
                self._corpus.replace(documents, delete=before)
            self._files |= step

    def _delete(self, gone: Sequence[str]) -> None:
        self._done.deleted += gone
        if gone and not self._dry_run:
            ids = [each for name in gone for each in self._held(name) if self._owner[each] == name]
            with self._corpus.recording(lambda: {self._place: dict.fromkeys(gone)}):
                self._corpus.delete(ids)
            for name in gone:
                del self._files[name]

    def _held(self, name: str) -> list[str]:
        """The documents of a file that the corpus has as they were read, and from no other folder."""
        as_before = as_read(self._corpus, self._files[name]["documents"])
        return [each for each, digest in as_before.items() if (each, digest) not in self._elsewhere]
