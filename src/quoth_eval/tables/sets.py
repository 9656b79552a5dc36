"""The sets of `quoth eval table`: documents in rows, the questions asked of them, and what answers each cell.

Knows: the World Factbook's "label: value" lines, ContractNLI's file, PDFs whose places are labelled, and which rows
are tests. Does not know: who is asked, or how cells are counted.
"""

from __future__ import annotations

import json
import lzma
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from quoth.corpus.documents import read_documents
from quoth.errors import InputError
from quoth.records import Document
from quoth.storage import sha256_file
from quoth.tables.columns import Column
from quoth_sources.source_map import Rectangle

TESTED = 30
"""Countries of the Factbook that are tests; the others are for development."""
ROW = "row"
"""The field of a document's metadata that names its row."""


class Box(NamedTuple):
    """A place on a page: its number, from 1, and a rectangle in per cent of it, from its upper left."""

    page: int
    rectangle: Rectangle


@dataclass(frozen=True, slots=True)
class Gold:
    """What answers a cell: the text of a field, or what it says in several ways, a line each; or any of these ranges of
    characters of the row's document."""

    field: str = ""
    places: tuple[tuple[int, int], ...] = ()

    def accepts(self, text: str, start: int = 0, end: int = 0) -> bool:
        """Whether a quotation is right: it is inside the field, or a range, or has all of it."""
        if self.places:
            inside = ((low <= start and end <= high) or (start <= low and high <= end) for low, high in self.places)
            return start < end and any(inside)
        said, *ways = (" ".join(each.casefold().split()) for each in (text, *self.field.split("\n")))
        return bool(said) and any(said in known or known in said for known in ways if known)


@dataclass(frozen=True, slots=True)
class TableSet:
    """Documents by row, columns, and what answers the cells of a row by column. A cell without is not stated. If the
    fields that answer are `deleted` from the texts, no cell is; `gold` is what they were. `boxes` are where they are,
    if that is known."""

    name: str
    columns: tuple[Column, ...]
    rows: Mapping[str, Sequence[Document]]
    gold: Mapping[str, Mapping[str, Gold]]
    deleted: bool = False
    boxes: Mapping[str, Mapping[str, Sequence[Box]]] = field(default_factory=dict)

    def documents(self) -> list[Document]:
        """All documents, each with its row in its metadata."""
        return [replace(each, metadata={ROW: row}) for row, own in self.rows.items() for each in own]


def factbook(path: Path, part: str = "test", rows: int | None = None, questions: str | Path | None = None) -> TableSet:
    """Countries of the Factbook, with the fields that answer.

    Of the countries that have all fields of the benchmark's own questions, in the order of the digests of their names,
    the first 30 are the "test"; others are to "develop" with. `questions` is another file of columns with fields.
    """
    columns, fields = _columns(questions or "factbook.toml")
    by_country = dict[str, list[Document]]()
    for document in read_documents(path):
        by_country.setdefault(str(document.metadata.get("country", "")), []).append(document)
    needed = {*_columns("factbook.toml")[1].values()}
    told = {country: fields_of(own) for country, own in by_country.items()}
    whole = sorted((each for each in told if needed <= {*told[each]}), key=lambda each: sha256(each.encode()).digest())
    chosen = (whole[:TESTED] if part == "test" else whole[TESTED:])[:rows]
    if not chosen:
        raise InputError(f"{path}: no country with all fields of the questions; give the World Factbook as JSONL")
    gold = {
        country: {name: Gold(told[country][field]) for name, field in fields.items() if field in told[country]}
        for country in chosen
    }
    return TableSet("factbook", columns, {country: by_country[country] for country in chosen}, gold)


def deleted(given: TableSet, fields: Iterable[str]) -> TableSet:
    """The set with all lines of these fields gone from its texts."""
    gone = {*fields}

    def left(document: Document) -> Document:
        lines = document.text.split("\n")
        return replace(document, text="\n".join(each for each in lines if each.split(": ", 1)[0] not in gone))

    rows = {row: [*map(left, own)] for row, own in given.rows.items()}
    return replace(given, name=f"{given.name}, fields deleted", rows=rows, deleted=True)


def factbook_fields(questions: str | Path | None = None) -> dict[str, str]:
    """The labels of the fields that answer, by column."""
    return _columns(questions or "factbook.toml")[1]


def fields_of(documents: Iterable[Document]) -> dict[str, str]:
    """The text of each field, by its label."""
    lines = (line for each in documents for line in each.text.split("\n") if ": " in line)
    return dict(line.split(": ", 1) for line in lines)


def contracts(path: Path, part: str = "test", rows: int | None = None) -> TableSet:
    """Agreements of ContractNLI that were filed with the SEC, with the ranges that answer, as two readings agreed.

    Raises InputError if the file has other texts.
    """
    columns, _ = _columns("contracts.toml")
    opened = lzma.open if path.suffix == ".xz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as stream:
            texts = {str(each["id"]): (each["file_name"], each["text"]) for each in json.load(stream)["documents"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a file of ContractNLI ({error!r}); give its dev.json") from None
    own, gold = dict[str, list[Document]](), dict[str, dict[str, Gold]]()
    for known in (each for each in _labelled("contracts.jsonl") if each["part"] == part):
        name, text = texts.get(known["document"], ("", ""))
        if sha256(text.encode()).hexdigest() != known["sha256"]:
            raise InputError(f"{path}: document {known['document']} is not the one that was labelled; give dev.json")
        own[known["document"]] = [Document(known["document"], name, text)]
        gold[known["document"]] = _places_of(known)
    chosen = [*own][:rows]
    return TableSet("contracts", columns, {each: own[each] for each in chosen}, {each: gold[each] for each in chosen})


def minutes(folder: Path, part: str = "test", rows: int | None = None) -> TableSet:
    """Minutes of Rust's language team, with the ranges of the files that answer.

    Raises InputError if the folder has not all of them.
    """
    own, gold = dict[str, list[Document]](), dict[str, dict[str, Gold]]()
    for known in [each for each in _labelled("minutes.jsonl") if each["part"] == part][:rows]:
        name = known["document"]
        text = _labelled_file(folder, known, "the folder minutes of rust-lang/lang-team").read_text("utf-8")
        own[name], gold[name] = [Document(name, name, text)], _places_of(known)
    return TableSet("minutes", _columns("minutes.toml")[0], own, gold)


def invoices(folder: Path, part: str = "test", rows: int | None = None) -> TableSet:
    """The invoices of invoice2data's tests, with what they say and where. There is no part for development.

    Raises InputError if the folder has not all of them.
    """
    return _labelled_pdfs("invoices", "tests/compare of invoice2data", folder, part, rows)


def forms(folder: Path, part: str = "test", rows: int | None = None) -> TableSet:
    """The filled forms of tabula-java's tests; what they say is what is written in the labelled boxes.

    Raises InputError if the folder has not all of them.
    """
    return _labelled_pdfs("forms", "regex_batch_process/input_files of tabula-java at a730125", folder, part, rows)


def _labelled_pdfs(name: str, source: str, folder: Path, part: str, rows: int | None) -> TableSet:
    if part != "test":
        raise InputError(f"the {name} are all tests; leave --part out")
    own, gold, boxes = dict[str, list[Document]](), dict[str, dict[str, Gold]](), dict[str, dict[str, list[Box]]]()
    for known in _labelled(f"{name}.jsonl")[:rows]:
        row, path = known["document"], _labelled_file(folder, known, source)
        own[row] = [*read_documents(path)]
        places = known["boxes"].items()
        boxes[row] = {column: [Box(page, tuple(box)) for page, *box in each] for column, each in places}
        says = known.get("says") or {column: written_in(path, each) for column, each in boxes[row].items()}
        gold[row] = {column: Gold(text) for column, text in says.items()}
    return TableSet(name, _columns(f"{name}.toml")[0], own, gold, boxes=boxes)


def _labelled_file(folder: Path, known: Mapping[str, Any], source: str) -> Path:
    path: Path = folder / known["document"]
    if not path.is_file() or sha256_file(path) != known["sha256"]:
        raise InputError(f"{path}: not the file that was labelled; give {source}")
    return path


def _places_of(known: Mapping[str, Any]) -> dict[str, Gold]:
    places = known["places"].items()
    return {column: Gold(places=tuple((start, end) for start, end in own)) for column, own in places}


def written_in(path: Path, boxes: Iterable[Box]) -> str:
    """What a PDF says in these boxes, a line each, as PDFium reads it."""
    from pypdfium2 import PdfDocument

    document, lines = PdfDocument(path), []
    for number, (left, top, right, bottom) in boxes:
        page = document[number - 1]
        wide, high = page.get_width() / 100, page.get_height() / 100
        inside = (left * wide, (100 - bottom) * high, right * wide, (100 - top) * high)
        lines.append(" ".join(page.get_textpage().get_text_bounded(*inside).split()))
    document.close()
    return "\n".join(lines)


def _labelled(name: str) -> list[dict[str, Any]]:
    lines = files("quoth_eval.tables").joinpath(name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _columns(questions: str | Path) -> tuple[tuple[Column, ...], dict[str, str]]:
    """Columns, and the field that answers each."""
    place = questions if isinstance(questions, Path) else files("quoth_eval.tables").joinpath(questions)
    known = tomllib.loads(place.read_text("utf-8"))["column"]
    fields = {each["name"]: each.pop("field") for each in known if "field" in each}
    return tuple(Column(**each) for each in known), fields
