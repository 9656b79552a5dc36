"""Places in PDFs as they are looked at: pictures of the lines around them, copies with all of them highlighted.

Knows which places of a row are on a page. Does not know how a page is drawn, or what a table looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from quoth.errors import InputError, brief
from quoth.storage import refuse_unless_plain
from quoth.tables.cells import Row
from quoth.tables.files import replacing
from quoth.tables.journal import Journal
from quoth.tables.told import Place, chance_of, place_key, shown
from quoth_sources.marks import Mark
from quoth_sources.originals import original
from quoth_sources.worker import Worker

MARKED = ".marked"
"""What the folder of highlighted copies has after the output's name."""
WIDTH = 720
"""Pixels of a page."""
MOST_BYTES = 100_000_000
"""Of all pictures of a table; later ones are left out."""
LARGEST_FILE = 1 << 30


class Drawn:
    """Pages of the files in a folder, drawn in a process of their own; a context manager. `num_left_out` counts the
    pictures for which there was no room."""

    def __init__(self, files: Path) -> None:
        self._files, self._worker, self._left = files, Worker(), MOST_BYTES
        self.num_left_out = 0

    def __enter__(self) -> Drawn:
        return self

    def __exit__(self, *exception: object) -> None:
        self._worker.__exit__(*exception)

    def of_row(self, row: Row) -> dict[Place, bytes]:
        """Pictures of the best places of a row's cells, or of what came nearest, as far as they are on pages."""
        made = dict[Place, bytes]()
        for document_id, marks in _marks(row, nearest=True).items():
            if self._left <= 0:
                self.num_left_out += len(marks)
                continue
            with suppress(InputError, ValueError):  # no file, or another one: the quotations are there without it
                content = original(self._files, document_id, LARGEST_FILE)
                drawn = self._worker.parts(
                    "quoth_sources.marks.cuttings", content, marks=[*marks.values()], width=WIDTH
                )
                for place, picture in zip(marks, drawn, strict=True):
                    made |= {place: picture} if picture else {}
                    self._left -= len(picture)
        return made

    def copies(self, rows: Iterable[Row], folder: Path, journal: Journal) -> Iterator[tuple[str, str]]:
        """Writes a copy of each PDF with the places of its cells highlighted into a folder, as the documents' ids say;
        yields the id of each document, and why it has none if so. Raises InputError if a copy was changed since."""
        for document_id, marks in _by_document(rows).items():
            try:
                content = original(self._files, document_id, LARGEST_FILE)
                marked = self._worker.made("quoth_sources.marks.highlighted", content, marks=marks)
            except (InputError, ValueError) as error:
                yield document_id, str(error)
                continue
            path = folder / document_id
            if not path.resolve().is_relative_to(folder.resolve()):
                yield document_id, f"{brief(document_id)} leads out of {folder}"
                continue
            refuse_unless_plain(path)
            journal.check_written(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path, journal.will_write) as part:
                part.write_bytes(marked)
            yield document_id, ""


def _by_document(rows: Iterable[Row]) -> dict[str, list[Mark]]:
    """The marks of every document, which may be in several rows."""
    known = dict[str, list[Mark]]()
    for row in rows:
        for document_id, marks in _marks(row).items():
            known.setdefault(document_id, []).extend(marks.values())
    return known


def _marks(row: Row, nearest: bool = False) -> dict[str, dict[Place, Mark]]:
    """By document the marks of a row's cells that are on pages; with `nearest` of empty ones what came nearest."""
    known = dict[str, dict[Place, Mark]]()
    for name, cell in row.cells.items():
        best = next(cell.shown(), cell) if nearest else cell
        for place in best.evidence[:1]:
            if "page" in (location := place.get("location", {})):
                first = place["context_start"]
                phrase = place["context"][place["start"] - first : place["end"] - first]
                note = f"{name}: {shown(best.value) or best.text} ({chance_of(best)})"
                mark = Mark(location["page"], location["rectangles"], phrase, note)
                known.setdefault(place["document_id"], {})[place_key(place)] = mark
    return known
