"""Which tables have headings: people's lists, forms and layouts, in every format that does not say so."""

import io
from collections.abc import Sequence

import pytest
from docx import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from written import docx, pptx, xlsx

from quoth.sources import docx as word
from quoth.sources import pptx as slides
from quoth.sources import xlsx as sheets
from quoth.sources.tables import is_headed

FORM = [("Name", "Ann Lee"), ("Position", "Manager"), ("Office", "Berlin")]
SHOWN = "Name | Ann Lee\nPosition | Manager\nOffice | Berlin"


@pytest.mark.parametrize(
    "rows",
    [
        [("Country", "Capital"), ("Kenya", "Nairobi")],
        [("Item", "Price"), ("Chair", "40 €"), ("Table", "120 €")],
        [("Room", "Rate"), ("Single room", "40"), ("Double room", "60")],
        [("", "Price"), ("Chair", "40 €")],
        [("", "2006", "2007"), ("Income", "4,000", "5,000")],
        [("No.", "Task", "Owner", "Due"), ("1", "Paint", "Ann", "3 May")],
        [("State", "Rate", "State", "Rate"), ("Ohio", "122", "Utah", "110")],
        [
            ("Acronym", "Definition"),
            ("LAB", "Logical Architecture Blank"),
            ("LFBD", "Logical Function Breakdown Diagram"),
        ],
        [("Plan", "Basic", "Plus", "Storage per user (GB)"), ("Price", "4", "9", "10")],
    ],
)
def test_a_list_has_headings(rows: Sequence[Sequence[str]]) -> None:
    assert is_headed(rows)


@pytest.mark.parametrize(
    "rows",
    [
        FORM,
        [("Final exam", "20%"), ("Tests", "45%"), ("Homework", "5%")],
        [("Founded", "1998"), ("Employees", "40"), ("Turnover", "3 million")],
        [("Name", "Otto Brehm"), ("Born", "7 May 1961"), ("Talents", "football"), ("Eyes", "blue"), ("Hair", "brown")],
        [("Client:", "Acme"), ("Kind:", "new"), ("Since:", "today")],
        [("Client", "Acme"), ("Since", "3 May"), ("Worth", "4,000"), ("Kind", "new")],
        [("Date:", "", "Case Number:", ""), ("Ann", "x", "Bo", "y")],
        [("Kenya", "Nairobi", "55,000,000"), ("Uganda", "Kampala", "47,000,000")],
        [("We meet each week in the hall.", "Bring what you need for that day."), ("a", "b")],
        [("Prices", ""), ("Chair", "40"), ("Table", "120")],
        [("Country", "Capital")],
        [("Country", "Capital"), ("", "")],
        [("x", "x", "x", "x"), ("a", "b", "c", "d")],
        [("A", "", "", "", "B"), ("a", "b", "c", "d", "e")],
    ],
)
def test_a_form_has_none(rows: Sequence[Sequence[str]]) -> None:
    assert not is_headed(rows)


@pytest.mark.parametrize(("row", "column", "headed"), [(1, 0, 1), (0, 1, 0), (1, 1, 0), (0, 0, 0)])
def test_bold_cells_decide(row: bool, column: bool, headed: bool) -> None:
    assert is_headed(FORM, row, column) == headed


def test_forms_in_files() -> None:
    assert word.read(docx(FORM)).text == SHOWN
    assert slides.read(pptx(("", "", ""), table=FORM)).text == SHOWN
    assert sheets.read(xlsx(Staff=FORM)).text == f"Staff\n\n{SHOWN}"


@pytest.mark.parametrize(
    ("first", "text"),
    [
        ("bold", "Name: Position | Ann Lee: Manager\nName: Office | Ann Lee: Berlin"),
        ("repeated", "Name: Position | Ann Lee: Manager\nName: Office | Ann Lee: Berlin"),
        ("no", SHOWN),
    ],
)
def test_a_first_row_that_word_marks(first: str, text: str) -> None:
    document = Document(io.BytesIO(docx(FORM)))
    row = document.tables[0].rows[0]
    if first == "bold":
        for cell in row.cells:
            cell.paragraphs[0].runs[0].bold = True
    elif first == "repeated":
        row._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {nsdecls('w')}/>"))
    else:
        row.cells[0].paragraphs[0].runs[0].bold = False
    document.save(stream := io.BytesIO())
    assert word.read(stream.getvalue()).text == text


def test_a_title_over_all_columns_is_no_heading() -> None:
    rows = [("Prices", ""), ("Item", "Price"), ("Indoors", ""), ("Chair", "40"), ("Table", "120")]
    document = Document(io.BytesIO(docx(rows)))
    for number in (0, 2):
        cells = document.tables[0].rows[number].cells
        cells[0].merge(cells[1])
    document.save(stream := io.BytesIO())
    assert (
        word.read(stream.getvalue()).text
        == "Prices\n\nPrices | Indoors\nPrices | Item: Chair | Price: 40\nPrices | Item: Table | Price: 120"
    )


def test_a_table_that_only_puts_texts_somewhere() -> None:
    document = Document()
    boxes = document.add_table(2, 1)
    boxes.cell(0, 0).text = "Left alone."
    boxes.cell(1, 0).add_paragraph("Below.")
    inner = document.add_table(1, 2).cell(0, 0).add_table(3, 2)
    for number, (place, what) in enumerate([("Country", "Capital"), ("Kenya", "Nairobi"), ("Uganda", "Kampala")]):
        inner.cell(number, 0).text, inner.cell(number, 1).text = place, what
    document.tables[1].cell(0, 1).text = "Beside."
    document.add_paragraph("After.")
    document.save(stream := io.BytesIO())
    source = word.read(stream.getvalue())
    assert source.text.split("\n\n") == [
        *("Left alone.", "Below.", "Country: Kenya | Capital: Nairobi\nCountry: Uganda | Capital: Kampala"),
        *("Beside.", "After."),
    ]
    places = {source.text[start:end]: place for start, end, place in source.runs}
    assert places["Below."] == "table 1, row 2, cell 1"
    assert places["Beside."] == "table 2, row 1, cell 2"
    assert places["Kampala"] == "table 3, row 3, cell 2"
    assert places["After."] == "paragraph 1"


def test_cells_that_word_leaves_out_before_a_row_and_those_of_controls() -> None:
    document = Document(
        io.BytesIO(docx([("Country", "Capital", "People"), ("Kenya", "Nairobi", "55"), ("x", "y", "47")]))
    )
    table = document.tables[0]
    last = table.rows[2]._tr
    last.remove(last.tc_lst[0])
    last.get_or_add_trPr().append(parse_xml(f'<w:gridBefore {nsdecls("w")} w:val="1"/>'))
    control = parse_xml(f"<w:sdt {nsdecls('w')}><w:sdtContent/></w:sdt>")
    cell = last.tc_lst[0]
    cell.addprevious(control)
    control[0].append(cell)
    document.save(stream := io.BytesIO())
    text = word.read(stream.getvalue()).text
    assert text == "Country: Kenya | Capital: Nairobi | People: 55\nCapital: y | People: 47"
