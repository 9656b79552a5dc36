"""Forms of PDFs: each value behind its label, as a viewer shows them, and where it is; what is empty has none."""

from collections.abc import Callable
from typing import Any

import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas
from written import both, lines, pdf

from quoth_sources.marks import Mark, highlighted
from quoth_sources.pdf import read
from quoth_sources.source_map import encode, locate

NAMES = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8).map(str.capitalize)


def field(name: str, left: float, low: float, value: str, wide: float = 120, **more: Any) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        canvas.acroForm.textfield(name=name, x=left, y=low, width=wide, height=16, value=value, fontSize=10, **more)

    return draw


def word(text: str, left: float, low: float) -> Callable[[Canvas], None]:
    return lines(text, left=left, top=low)


def row(name: str, label: str, value: str, low: float, left: float = 72, **more: Any) -> Callable[[Canvas], None]:
    return both(word(label, left, low + 4), field(name, left + 80, low, value, **more))


def text(*parts: Callable[[Canvas], object]) -> str:
    return read(pdf(both(*parts))).text


def test_values_are_read_behind_the_labels_on_their_left() -> None:
    told = text(row("a", "Surname", "Quist", 700), row("b", "Plot number:", "27", 680), row("c", "Town", "", 660))
    assert told == "Surname: Quist\nPlot number: 27\nTown:"


def test_a_value_has_its_place() -> None:
    source = read(pdf(row("a", "Surname", "Quist", 700)))
    at = source.text.index("Quist")
    found = locate(encode(source.kind, source.runs), at, at + 5)
    assert found is not None
    assert found.page == 1
    ((left, top, right, bottom),) = found.rectangles
    assert (left, right) == (pytest.approx(100 * 152 / 595, abs=0.1), pytest.approx(100 * 272 / 595, abs=0.1))
    assert (top, bottom) == (pytest.approx(100 * 126 / 842, abs=0.1), pytest.approx(100 * 142 / 842, abs=0.1))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES | st.just("")), min_size=1, max_size=12, unique_by=lambda each: each[0]))
def test_no_label_is_the_value_of_another(rows: list[tuple[str, str]]) -> None:
    told = text(
        *(
            row(f"f{number}", label, value, 720 - 22 * (number // 2), 72 + 250 * (number % 2))
            for number, (label, value) in enumerate(rows)
        )
    )
    pairs = [pair for line in told.splitlines() for pair in line.split(" | ") if line]
    assert sorted(pairs) == sorted(f"{label}: {value}".strip() for label, value in rows)


def test_a_tooltip_is_the_label() -> None:
    told = text(row("a", "Name:", "Olga Bern", 700, tooltip="Name of the person to call"))
    assert told == "Name of the person to call: Olga Bern"
    alone = text(word("Order form", 72, 760), field("b", 72, 700, "27", tooltip="Plot"))
    assert alone == "Order form\n\nPlot: 27"
    other = text(row("c", "Depot", "Shelf A", 700, tooltip="Where it lies"))
    assert other == "Depot\nWhere it lies: Shelf A"


def test_labels_above_their_fields() -> None:
    told = text(
        word("Day of birth", 72, 720), word("Place of birth", 300, 720),
        field("a", 72, 698, "12 May 1980"), field("b", 300, 698, ""),
    )  # fmt: skip
    assert told == "Day of birth: 12 May 1980\nPlace of birth:"


def test_a_table_of_fields_keeps_its_headings() -> None:
    heads = [word(head, left, 720) for head, left in (("Item", 72), ("Count", 200))]
    cells = [("Bolt", "4"), ("Nut", "9"), ("", "")]
    drawn = [
        field(f"{line}{column}", left, 700 - 18 * line, value, wide=90)
        for line, values in enumerate(cells)
        for column, (left, value) in enumerate(zip((72, 200), values, strict=True))
    ]
    assert text(*heads, *drawn).split() == ["Item:", "Bolt", "|", "Count:", "4", "Item:", "Nut", "|", "Count:", "9"]


def test_fields_in_a_sentence_are_read_in_it() -> None:
    told = text(
        word("I,", 72, 700), field("a", 84, 696, "Mara Quist", wide=90), word("want the plot no.", 177, 700),
        field("b", 262, 696, "27", wide=30), word("from May on.", 295, 700),
    )  # fmt: skip
    assert told == "I, Mara Quist want the plot no. 27 from May on."


def test_boxes_and_buttons() -> None:
    def draw(canvas: Canvas) -> None:
        form = canvas.acroForm
        for low, label, is_checked in ((700, "Wants water:", True), (680, "Wants a shed:", False)):
            canvas.drawString(72, low, label)
            form.checkbox(name=label, x=170, y=low - 2, size=12, checked=is_checked)
        for low, label, is_checked in ((660, "I have read the rules", True), (640, "I have a dog", False)):
            form.checkbox(name=label, x=72, y=low - 2, size=12, checked=is_checked, tooltip="")
            canvas.drawString(88, low, label)
        canvas.drawString(72, 620, "Payment:")
        for number, (left, label) in enumerate([(140, "by month"), (220, "by year")]):
            form.radio(name="pay", value=f"v{number}", x=left, y=618, size=12, selected=number == 1, tooltip="")
            canvas.drawString(left + 16, 620, label)

    told = text(draw).split("\n")
    assert "Wants water: Yes" in told
    assert "Wants a shed:" in told
    assert "☒ I have read the rules" in told
    assert "☐ I have a dog" in told
    assert "Payment: by year" in told
    assert "☐ by month" in told


def test_lists_show_what_was_chosen() -> None:
    def draw(canvas: Canvas) -> None:
        form, options = canvas.acroForm, ["small", "middle", "large"]
        canvas.drawString(72, 700, "Size")
        form.choice(name="s", x=150, y=696, width=100, height=16, options=options, value="middle", tooltip="")
        canvas.drawString(72, 680, "Tools")
        form.listbox(name="l", x=150, y=640, width=100, height=50, options=options, value="large", tooltip="")

    assert text(draw) == "Size: middle\nTools: large"


def test_what_no_viewer_shows_is_not_read() -> None:
    secret = row("a", "Password", "xyz", 700, fieldFlags="password", tooltip="")
    hidden = field("b", 152, 660, "Hidden", annotationFlags="hidden")
    assert text(secret, hidden) == "Password:"


def test_a_form_without_other_text_is_read() -> None:
    assert text(field("a", 72, 700, "Quist", tooltip="Surname")) == "Surname: Quist"


def test_a_value_is_marked_where_it_is() -> None:
    content = pdf(both(row("a", "Surname", "Quist", 700), row("b", "Town", "Kamen", 680)))
    source = read(content)
    at = source.text.index("Kamen")
    found = locate(encode(source.kind, source.runs), at, at + 5)
    assert found is not None
    marked = pypdfium2.PdfDocument(highlighted(content, [Mark(1, found.rectangles, "Kamen")]))
    page = marked[0]
    assert pypdfium2.raw.FPDFPage_GetAnnotCount(page.raw) == 3  # two fields, one highlight
    assert read(highlighted(content, [Mark(1, found.rectangles, "Kamen")])).text == source.text
    with pytest.raises(ValueError, match="other words"):
        highlighted(content, [Mark(1, found.rectangles, "Dortmund")])
