"""Word, Excel and PowerPoint: texts by hand, each piece where the parser says it is; archives that are traps."""

import io
import re
from datetime import date, datetime
from pathlib import Path

import pytest
from docx import Document
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from pptx import Presentation
from written import docx, pptx, repacked, xlsx

from quoth.corpus.documents import read_documents
from quoth_sources import docx as word
from quoth_sources import epub, odp, ods, odt
from quoth_sources import pptx as slides
from quoth_sources import xlsx as sheets

TABLE = [("Country", "Capital"), ("Kenya", "Nairobi"), ("Uganda", "Kampala")]
ROWS = "Country: Kenya | Capital: Nairobi\nCountry: Uganda | Capital: Kampala"
PLAIN = st.text("ab cé.|:", max_size=8)


def test_a_word_document_by_hand() -> None:
    content = docx(
        ("Heading 1", "Report"), "Kenya's capital\nis  Nairobi.", ("List Bullet", "one"), ("List Bullet", "two"), TABLE,
        "After.", title="Of Kenya", author="Bob", modified=datetime(2024, 5, 1),
    )  # fmt: skip
    source = word.read(content)
    assert source.text == f"Report\n\nKenya's capital\nis Nairobi.\n\n- one\n- two\n\n{ROWS}\n\nAfter."
    assert source.metadata == {"title": "Of Kenya", "author": "Bob", "date": "2024-05-01"}
    document = Document(io.BytesIO(content))
    paragraphs, [table] = document.paragraphs, document.tables
    for start, end, place in source.runs:
        said = source.text[start:end]
        if place.startswith("paragraph "):
            assert said in " ".join(paragraphs[int(place.split()[1]) - 1].text.split())
        else:
            row, cell = (int(part.split()[1]) - 1 for part in place.split(", ")[1:])
            assert said == table.cell(row, cell).text


def test_notes_merged_cells_and_what_was_deleted() -> None:
    document = Document()
    paragraph = document.add_paragraph("It was kept.")
    gone = paragraph.add_run(" gone")._r
    deleted = gone.makeelement(gone.tag.replace("}r", "}del"), {})
    gone.addprevious(deleted)
    deleted.append(gone)
    table = document.add_table(3, 2)
    for row, cells in enumerate([("Place", "Example"), ("Kenya", "lakes"), ("", "hills")]):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    table.cell(1, 0).merge(table.cell(2, 0))
    stream = io.BytesIO()
    document.save(stream)
    text = word.read(stream.getvalue()).text
    assert text.split("\n\n") == ["It was kept.", "Place: Kenya | Example: lakes\nPlace: Kenya | Example: hills"]


def test_a_workbook_by_hand() -> None:
    content = xlsx(
        Countries=[("Country", "Since", "People"), ("Kenya", date(1963, 12, 12), 55e6), ("Uganda", None, 0.5)],
        Notes=[("only a note",), (), ("a", 1), ("b", 2)],
        Empty=[],
    )
    source = sheets.read(content)
    assert source.text.split("\n\n") == [
        "Countries",
        "Sheet: Countries | Country: Kenya | Since: 1963-12-12 | People: 55000000\n"
        "Sheet: Countries | Country: Uganda | People: 0.5",
        "Notes",
        "only a note",
        "a | 1\nb | 2",
    ]
    places = {source.text[start:end]: (sheet, cell) for start, end, sheet, cell in source.runs}
    assert places["1963-12-12"] == ("Countries", "B2")
    assert places["0.5"] == ("Countries", "C3")
    assert places["b"] == ("Notes", "A4")
    assert "Country" not in places
    alone = sheets.read(xlsx(Countries=[("Country", "Since"), ("Kenya", 1963)]))
    assert alone.text == "Countries\n\nCountry: Kenya | Since: 1963"


@pytest.mark.parametrize("kind", ["hdr", "ftr", "sldNum", "dt"])
def test_what_is_on_every_slide_is_left_out(kind: str) -> None:
    presentation = Presentation(io.BytesIO(pptx(("Kenya", "Nairobi", ""))))
    presentation.slides[0].placeholders[1].element.nvSpPr.nvPr.ph.set("type", kind)
    presentation.save(stream := io.BytesIO())
    assert slides.read(stream.getvalue()).text == "Kenya"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (TABLE, ROWS),
        ([("Kenya", "1963"), ("Uganda", "1962")], "Kenya | 1963\nUganda | 1962"),
        ([("", ""), ("", "")], ""),
    ],
)
def test_headings_of_a_slides_table_that_are_not_marked_as_such(table: list[tuple[str, str]], text: str) -> None:
    presentation = Presentation(io.BytesIO(pptx(("", "", ""), table=table)))
    next(shape for shape in presentation.slides[0].shapes if shape.has_table).table.first_row = False
    presentation.save(stream := io.BytesIO())
    assert slides.read(stream.getvalue()).text == text


def test_empty_columns_separate_tables() -> None:
    months = [("Month", "Units"), ("May", 498), ("June", 52)]
    beside = [(None, *row, None, *more) for row, more in zip(months, [("checked",), ("by Ann",), ()], strict=True)]
    below = [(*row, None, *more) for row, more in zip(months, [(), ("Town", "People"), ("Bonn", 3)], strict=True)]
    gap = [(*row, None, *more) for row, more in zip(months, [("Sum",), (19920,), (2080,)], strict=True)]
    same = [(*row, None, *row) for row in months]
    ruled = "Sheet: {0} | Month: May | Units: 498\nSheet: {0} | Month: June | Units: 52"
    plain = "Sheet: C | Month: {} | Units: {} | Sum: {}"
    form = [("Paid to", None, "Ann"), ("Paid by", None, "Bo"), ("Note",)]
    source = sheets.read(content := xlsx(A=beside, B=below, C=gap, D=same, E=form))
    assert source.text.split("\n\n") == [
        *("A", ruled.format("A"), "checked\nby Ann"),
        *("B", ruled.format("B"), "Sheet: B | Town: Bonn | People: 3"),
        *("C", f"{plain.format('May', 498, 19920)}\n{plain.format('June', 52, 2080)}"),
        *("D", ruled.format("D"), ruled.format("D")),
        *("E", "Paid to | Ann\nPaid by | Bo\nNote"),
    ]
    book = load_workbook(io.BytesIO(content))
    assert all(str(book[name][cell].value) == source.text[start:end] for start, end, name, cell in source.runs)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(PLAIN, max_size=4), max_size=8))
def test_a_cell_has_the_text_that_it_is_said_to_have(rows: list[list[str]]) -> None:
    content = xlsx(S=rows)
    source = sheets.read(content)
    sheet = load_workbook(io.BytesIO(content))["S"]
    for start, end, name, cell in source.runs:
        assert (name, " ".join(str(sheet[cell].value).split())) == ("S", source.text[start:end])
    cells = {cell for *_, cell in source.runs}
    told = [cell for row in sheet.iter_rows() for cell in row if str(cell.value or "").strip()]
    heads = {cell.coordinate for cell in told} - cells
    assert all(" ".join(str(sheet[cell].value).split()) in source.text for cell in heads)  # nothing is lost


def test_slides_by_hand() -> None:
    content = pptx(("Kenya", "Nairobi\nMombasa", "Say hello."), ("More", "One line.", ""), table=TABLE)
    source = slides.read(content)
    assert source.text == f"Kenya\n\n- Nairobi\n- Mombasa\n\nSay hello.\n\nMore\n\nOne line.\n\n{ROWS}"
    shown = Presentation(io.BytesIO(content)).slides
    for start, end, number, place in source.runs:
        said, slide = source.text[start:end], shown[number - 1]
        if place == "notes":
            assert said in slide.notes_slide.notes_text_frame.text
            continue
        name, *cell = place.split(", ")
        [shape] = [each for each in slide.shapes if each.name == name]
        if cell:
            row, column = (int(part.split()[1]) - 1 for part in cell)
            assert shape.table.cell(row, column).text == said
        else:
            assert said in shape.text_frame.text


@pytest.mark.parametrize("reader", [word, odt, odp, ods, epub, sheets, slides])
def test_what_is_no_document_says_why(reader) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="not a document of this format"):
        reader.read(b"PK\x03\x04 nothing")
    with pytest.raises(ValueError, match="encrypted, or in the format before 2007"):
        reader.read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth_sources.office._MOST_BYTES", 1 << 20)
    bomb = repacked(docx("x"), lambda _, part: part, **{"word/bomb.bin": bytes(1 << 21)})
    assert len(bomb) < 1 << 16
    with pytest.raises(ValueError, match=r"it unpacks to 2,\d{3},\d{3} bytes in \d+ files; at most 1,048,576 are read"):
        word.read(bomb)


@pytest.mark.parametrize(
    ("suffix", "content", "kind"),
    [
        ("docm", docx("Of Kenya."), b"ms-word.document.macroEnabled"),
        ("xlsm", xlsx(One=[["Of Kenya."]]), b"ms-excel.sheet.macroEnabled"),
        ("pptm", pptx(("Of Kenya.", "", "")), b"ms-powerpoint.presentation.macroEnabled"),
        ("ppsx", pptx(("Of Kenya.", "", "")), b"openxmlformats-officedocument.presentationml.slideshow"),
    ],
)
def test_files_with_macros_and_shows_are_read(tmp_path: Path, suffix: str, content: bytes, kind: bytes) -> None:
    plain = rb"openxmlformats-officedocument\.\w+\.\w+(?=\.main)"
    odd = repacked(content, lambda name, part: re.sub(plain, kind, part) if name == "[Content_Types].xml" else part)
    assert odd != content
    (tmp_path / f"a.{suffix}").write_bytes(odd)
    assert [each.text.splitlines()[-1] for each in read_documents(tmp_path)] == ["Of Kenya."]
