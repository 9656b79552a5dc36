"""Which tables have headings: people's lists, forms and layouts, in every format that does not say so."""

import io
from collections.abc import Sequence
from datetime import timedelta

import pytest
from docx import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import load_workbook
from pptx import Presentation
from written import docx, pptx, xlsx

from quoth_sources import docx as word
from quoth_sources import html as pages
from quoth_sources import pptx as slides
from quoth_sources import xlsx as sheets
from quoth_sources.source import Piece, Text
from quoth_sources.tables import COVERED, Box, boxed, is_headed, write

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
        [("Shift", "Mon", "Tue"), ("early", "Ann", "Bo"), ("late", "Bo", "Ann")],
        [("Item", "2023", "2024"), ("Kit", "950", "1210.5")],
        [
            ("Post", "Name", "Telephone", "Since"),
            ("Treasurer", "Hamid Rezaei", "01670", "May"),
            ("Steward", "Carl", "", ""),
        ],
        [("#", "Task", "Status"), ("1", "Paint", "open")],
        [("Товар", "Знак", "Сведения"), ("Батарея", "Китай", "Напряжение")],
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
        [("Surname", "Okafor", "First name", "Grace"), ("Department", "Radiology", "Staff number", "448213")],
        [("Name", "Jonas Keller"), ("Born", "12 August 1984"), ("Phone", "01225 555 018"), ("Address", "9 Abbey Road")],
        [("Ann Lee", "Baker", "Ward 4"), ("Bob Stone", "Porter", "Ward 7")],
        [("Languages", "German (native)", "French"), ("Computer", "Excel", "MarketMan")],
        [("Name", "ann@example.org", "Bath"), ("Bo", "bo@example.org", "York")],
        [("Name", "https://example.org", "Bath"), ("Bo", "https://example.com", "York")],
        [("Paid to", "", "Ann"), ("Paid by", "", "Bo")],
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


def rows_of(*rows: Sequence[str | tuple[str, int]]) -> list[list[Box]]:
    """Rows of cells, of which some span several columns."""

    def cells(row: Sequence[str | tuple[str, int]]) -> list[Box]:
        boxes: list[Box] = []
        for cell in row:
            said, across = (cell, 1) if isinstance(cell, str) else cell
            boxes += [boxed([Piece(said, (said,))] if said else (), across), *[COVERED] * (across - 1)]
        return boxes

    return [*map(cells, rows)]


def text_of(rows: list[list[Box]], marked: int = 0, name: str = "") -> str:
    write(text := Text("element"), rows, marked, name)
    return text.source({}).text


YEARS = (
    ["Branch", ("2023", 2), ("2024", 2)],
    ["", "Phone", "Email", "Phone", "Email"],
    ["Leeds", "412", "655", "398", "702"],
)


def test_two_rows_of_headings() -> None:
    shown = "Branch: Leeds | 2023 Phone: 412 | 2023 Email: 655 | 2024 Phone: 398 | 2024 Email: 702"
    assert text_of(rows_of(*YEARS)) == shown
    assert text_of(rows_of(*YEARS), marked=2) == shown


def test_a_second_row_of_values_is_no_heading() -> None:
    rows = rows_of(["Name", ("Address", 2)], ["Ann", "Bath", "BA1"], ["Bo", "York", "YO1"])
    assert text_of(rows) == "Name: Ann | Address: Bath | Address: BA1\nName: Bo | Address: York | Address: YO1"
    rows = rows_of(["Branch", ("2023", 2)], ["Leeds", "412", "655"], ["York", "120", "233"])
    assert text_of(rows) == "Branch: Leeds | 2023: 412 | 2023: 655\nBranch: York | 2023: 120 | 2023: 233"


def test_titles_and_what_spans_all_columns() -> None:
    rows = rows_of([("Rates", 2)], ["Kind", "Rate"], [("Young", 2)], ["Junior", "€45"])
    assert text_of(rows) == "Rates\n\nRates | Young\nRates | Kind: Junior | Rate: €45"
    rows = rows_of(["Stock list", ""], ["Item", "Price"], ["Pipe", "3.20"])
    assert text_of(rows, name="Sheet: A") == "Stock list\n\nSheet: A | Stock list | Item: Pipe | Price: 3.20"
    assert text_of(rows, name="Sheet: Stock list").endswith("Sheet: Stock list | Item: Pipe | Price: 3.20")
    rows = rows_of(
        ["How much each of the many things that we keep in stock costs", ""], ["Item", "Price"], ["Pipe", "3.20"]
    )
    assert text_of(rows).endswith("in stock costs\n\nItem: Pipe | Price: 3.20")
    rows = rows_of(["Note", ""], ["x", "y"], ["u", "v"])
    assert text_of(rows) == "Note\nx | y\nu | v"
    assert text_of(rows_of([("Fees", 2)], ["Kind", "Fee"], ["A", "B"]), marked=2) == "Fees\n\nFees | Kind: A | Fee: B"


def test_a_heading_without_values_has_a_line_of_its_own() -> None:
    rows = rows_of(["Task", "Owner", "Signed"], ["Paint", "Ann", ""], ["Mow", "Bo", ""])
    assert text_of(rows) == "Task | Owner | Signed\nTask: Paint | Owner: Ann\nTask: Mow | Owner: Bo"
    assert text_of(rows_of(["Task", "Owner"], ["", ""])) == "Task | Owner"


def test_headings_are_nowhere_and_values_where_they_are() -> None:
    write(text := Text("element"), rows_of(*YEARS))
    assert [place for *_, place in text.source({}).runs] == ["Leeds", "412", "655", "398", "702"]


SPANNED = "Field: North | Plot: N1\nField: North | Plot: N2\nField: South | Plot: S1"


def test_cells_over_rows_are_repeated() -> None:
    html = "<table><tr><th>Field<th>Plot<tr><td rowspan=2>North<td>N1<tr><td>N2<tr><td>South<td>S1</table>"
    assert pages.read(html.encode()).text == SPANNED
    book = load_workbook(io.BytesIO(xlsx(A=[("Field", "Plot"), ("North", "N1"), (None, "N2"), ("South", "S1")])))
    book["A"].merge_cells("A2:A3")
    book.save(stream := io.BytesIO())
    assert sheets.read(stream.getvalue()).text == f"A\n\n{SPANNED}"
    show = Presentation(
        io.BytesIO(pptx(("", "", ""), table=[("Field", "Plot"), ("North", "N1"), ("", "N2"), ("South", "S1")]))
    )
    table = next(shape for shape in show.slides[0].shapes if shape.has_table).table
    table.cell(1, 0).merge(table.cell(2, 0))
    show.save(stream := io.BytesIO())
    assert slides.read(stream.getvalue()).text == SPANNED


def test_a_cell_over_rows_is_not_repeated_alone() -> None:
    page = "<table><tr><td rowspan=3>All is calculated.<td>Sell<tr><td><tr><td>Buy<tr><td><tr><td>x<td>y</table>"
    assert pages.read(page.encode()).text == "All is calculated. | Sell\nAll is calculated. | Buy\nx | y"


def test_parts_with_headings_are_no_tables_unless_all_columns_have_some() -> None:
    rows = [
        (None, None, "Hub", None, None, "A/B", None, "A/C", None),
        ("Daily", None, 33, 35, None, 8, 11, 4, 6),
        ("Next", None, 40, 41, None, 7, 10, 3, 7),
    ]
    shown = "A\n\nHub | A/B | A/C\nDaily | 33 | 35 | 8 | 11 | 4 | 6\nNext | 40 | 41 | 7 | 10 | 3 | 7"
    assert sheets.read(xlsx(A=rows)).text == shown


def test_cells_over_columns_of_a_workbook_and_of_a_slide() -> None:
    rows = [("Branch", "2023", None, "2024", None), *(tuple(row) for row in YEARS[1:])]
    shown = "Branch: Leeds | 2023 Phone: 412 | 2023 Email: 655 | 2024 Phone: 398 | 2024 Email: 702"
    book = load_workbook(io.BytesIO(xlsx(A=rows)))
    for merged in ("A1:A2", "B1:C1", "D1:E1"):
        book["A"].merge_cells(merged)
    book.save(stream := io.BytesIO())
    assert sheets.read(stream.getvalue()).text == f"A\n\n{shown}"
    show = Presentation(io.BytesIO(pptx(("", "", ""), table=[tuple(cell or "" for cell in row) for row in rows])))
    table = next(shape for shape in show.slides[0].shapes if shape.has_table).table
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(0, 3).merge(table.cell(0, 4))
    show.save(stream := io.BytesIO())
    assert slides.read(stream.getvalue()).text == shown


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("<tr><td><b>Name</b><td><strong>Town</strong><tr><td>Ann<td>Bath", "Name: Ann | Town: Bath"),
        ("<thead><tr><td>Ann<td>Lee</thead><tr><td>Bo<td>Stone", "Ann: Bo | Lee: Stone"),
        ("<tr><td><td>Children<td>Adults<tr><td>May<td>a<td>b", "May | Children: a | Adults: b"),
        ("<tr><th colspan=2>Fees<tr><th>Kind<th>Fee<tr><td>A<td>B", "Fees\n\nFees | Kind: A | Fee: B"),
        ("<tr><th>Room<th>With<tr><td>Attic<td><p>Piano<p>Board", "Room: Attic | With: Piano Board"),
        ("<tr><th>Name<td>Ann<tr><th>Town<td>Bath", "Name | Ann\nTown | Bath"),
        ("<tr><td>x<table><tr><td>a<td>b</table><td>y", "x\n\na | b\n\ny"),
        ("<tr><td><p>x<p>y<td>z", "x\n\ny\n\nz"),
    ],
)
def test_tables_of_web_pages(table: str, text: str) -> None:
    assert pages.read(f"<table>{table}</table>".encode()).text == text


def test_numbers_of_a_workbook_as_people_see_them() -> None:
    shown = [
        (58.300000000000004, "General"),
        (42, "00000"),
        (0.125, "0.0 %"),
        (timedelta(hours=26, minutes=30), "[h]:mm"),
    ]
    book = load_workbook(io.BytesIO(xlsx(A=[tuple(value for value, _ in shown)])))
    for cell, (_, form) in zip(book["A"][1], shown, strict=True):
        cell.number_format = form
    book.save(stream := io.BytesIO())
    assert sheets.read(stream.getvalue()).text == "A\n\n58.3 | 00042 | 12.5% | 26:30"


def test_a_style_may_make_headings_bold() -> None:
    document = Document()
    table = document.add_table(3, 2, style="Medium Shading 1 Accent 1")
    for cells, row in zip(table.rows, FORM, strict=True):
        cells.cells[0].text, cells.cells[1].text = row
    document.save(stream := io.BytesIO())
    assert word.read(stream.getvalue()).text == SHOWN  # its first column is bold too
    look = table._tbl.tblPr.find("{*}tblLook")
    look.set(next(name for name in look.attrib if name.endswith("firstColumn")), "0")
    document.save(stream := io.BytesIO())
    assert word.read(stream.getvalue()).text == "Name: Position | Ann Lee: Manager\nName: Office | Ann Lee: Berlin"
