"""A command's input documents: what they are, which are skipped, and which are gone from their folders.

Knows how to count and report them. Does not know formats or how a corpus is stored.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from quoth.cli.output import LeftOut, note, plural
from quoth.errors import CorruptionError, InputError, UnknownDocumentError, brief, few

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.origins import Changes
    from quoth.records import Document

FEW = 3


class Inputs:
    """A command's documents, read once; counts them, those without text, and those skipped."""

    def __init__(
        self,
        docs: list[str],
        format: str | None,
        skip_bad: bool | None,
        header: bool | None = None,
        follow_links: bool = False,
    ) -> None:
        from quoth.corpus.documents import read_paths

        self.count, self.left_out = 0, LeftOut()
        self._docs, self._format = docs, format
        self._without_text: list[str] = []
        self._num_without_text = 0
        read = read_paths(docs, format, skip_bad, self.left_out, header, follow_links)
        self._read = [*zip(map(Path, docs), read, strict=True)]
        self._folders: dict[Path, dict[str, str]] = {path: {} for path, _ in self._read if path.is_dir()}

    @property
    def folders(self) -> list[Path]:
        return list(self._folders)

    def __iter__(self) -> "Iterator[Document]":
        """Raises InputError if there is no document."""
        from quoth.corpus.origins import digest_of, is_file_of

        for path, documents in self._read:
            for document in documents:
                self.count += 1
                if not document.text.strip():
                    self._num_without_text += 1
                    self._without_text = [*self._without_text, document.id][:FEW]
                if path in self._folders and is_file_of(path, document, self._format):
                    self._folders[path][document.id] = digest_of(document)
                yield document
        if not self.count:
            raise InputError(f"{', '.join(self._docs)}: no documents in it; give a file that has some")

    def with_text(self) -> "Iterator[Document]":
        """The documents. Raises InputError if there is none, or none of them has any text."""
        yield from self
        if self._num_without_text == self.count:
            raise InputError(f"{', '.join(self._docs)}: no text in it; give a file that has some")

    def report(self) -> None:
        """Report how many documents had no text or were skipped, if any."""
        for document_id in self._without_text:
            note(f"document {brief(document_id)} has no text, so it gets no passage")
        if self._num_without_text:
            note(f"{plural(self._num_without_text, 'document')} without text; no search finds them")
        self.left_out.report()

    def finish(self) -> None:
        """Raises Exit with code 1 if a file or a record was skipped."""
        if self.left_out.count:
            raise typer.Exit(1)

    @contextmanager
    def recorded(self, corpus: "Corpus", place: str, gone: "Gone | None" = None) -> "Iterator[None]":
        """Commits writes in the body together with the record of their folder, without what is `gone`; not for a corpus
        at a URL. If the record cannot be written, this is reported, not raised: only --delete-missing needs it."""
        from quoth.corpus.origins import Origins

        def origins() -> "Changes":
            if self._folders and "://" not in place:
                try:
                    return Origins(corpus).changes(self._folders, gone.to_delete() if gone else ())
                except (CorruptionError, InputError) as error:
                    note(str(error))
            return {}

        with corpus.recording(origins):
            yield


def tell_remaining(corpus: "Corpus", deleted: Iterable[str]) -> None:
    """Report per folder which files are still there whose documents were deleted."""
    from quoth.corpus.origins import Origins

    with suppress(CorruptionError):  # everything is committed
        for folder, names in Origins(corpus).remaining(deleted).items():
            are, them = ("is", "it") if len(names) == 1 else ("are", "them")
            remedy = "remove what was deleted there, or name a file in .quothignore if all of it was"
            still = f"{plural(len(names), 'file')} {are} still in {folder} ({few(names)})"
            note(f"{still}; quoth sync reads {them} again; {remedy}")


class Gone:
    """A corpus's documents from the folders of a command's documents that are no longer there.

    None if the record of folders is damaged, or a folder's path cannot be recorded; raises CorruptionError or
    InputError if the record is `required`.
    """

    def __init__(self, corpus: "Corpus", inputs: Inputs, required: bool) -> None:
        from quoth.corpus.origins import Origins

        self._corpus, self._inputs = corpus, inputs
        self._by_folder: dict[Path, list[str]] = {}
        self._new: list[Path] = []
        try:
            origins = Origins(corpus)
            self._by_folder = origins.gone(inputs.folders)
            self._new = [folder for folder in inputs.folders if not origins.know(folder)]
        except (CorruptionError, InputError):
            if required:
                raise

    def to_delete(self) -> Iterator[str]:
        """Their ids, once all documents have been read: none if a file or a record was skipped."""
        if not self._inputs.left_out.count:
            yield from dict.fromkeys(document_id for ids in self._by_folder.values() for document_id in ids)

    def report(self, delete: bool) -> int:
        """Report per folder what stays and why; returns how many documents were deleted."""
        deleted: set[str] = set()
        for folder, ids in self._by_folder.items():
            staying = []
            for document_id in ids:
                with suppress(UnknownDocumentError):
                    self._corpus.rows_of(document_id)
                    staying.append(document_id)
            deleted |= set(ids) - set(staying)
            if staying and (not delete or self._inputs.left_out.count):
                are, they, them = ("is", "it stays", "it") if len(staying) == 1 else ("are", "they stay", "them")
                why = ", because not everything could be read" if delete else f"; --delete-missing removes {them}"
                note(f"{plural(len(staying), 'document')} {are} no longer in {folder} ({few(staying)}); {they}{why}")
            if delete and folder in self._new:
                note(f"{folder}: what was read from it earlier is not known; from now on it is recorded")
        return len(deleted)
