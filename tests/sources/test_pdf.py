"""PDF: the order in which a page is read, what is left out, and that a rectangle encloses the text it is said to."""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pypdfium2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas
from written import A4, both, lines, pdf

from quoth_sources.pdf import read
from quoth_sources.source import Source
from quoth_sources.source_map import WHOLE, encode, locate

WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789.,;()-'", min_size=1, max_size=9)
COUNTRIES = [("Country", "Capital", "People"), ("Kenya", "Nairobi", "55,000"), ("Uganda", "Kampala", "47,000")]


def enclosed(content: bytes, source: Source) -> Iterator[tuple[str, str]]:
    """Per run, its text, and what pdfium finds in its rectangle."""
    file = pypdfium2.PdfDocument(content)
    for start, end, number, left, top, right, bottom in source.runs:
        page = file[number - 1]
        x0, y0, x1, y1 = page.get_cropbox()
        wide, high = (x1 - x0) / WHOLE, (y1 - y0) / WHOLE
        found = page.get_textpage().get_text_bounded(
            x0 + left * wide, y1 - bottom * high, x0 + right * wide, y1 - top * high
        )
        yield source.text[start:end], found


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=1, max_size=8), min_size=1, max_size=12))
@example([["wor-"], ["ld", "peace"]])
@example([["Ami-"], ["b"]])
def test_a_rectangle_has_the_text_that_it_is_said_to_have(drawn: list[list[str]]) -> None:
    content = pdf(lines(*(" ".join(words) for words in drawn)))
    source = read(content)
    for said, found in enclosed(content, source):
        assert said.strip("-") in found.replace("\ufffe", "-")
    read_letters = "".join(source.text.split()).replace("-", "")
    assert read_letters == "".join("".join(words) for words in drawn).replace("-", "")


def test_columns_are_read_one_after_the_other_under_their_heading() -> None:
    left = [f"The left column has a line number {n} here" for n in range(5)]
    right = [f"The right one goes on with line {n} here" for n in range(5)]
    heading = lines("A heading over both of the columns, from the left edge to the right", left=90, top=760, size=12)
    source = read(pdf(both(heading, lines(*left, left=60), lines(*right, left=320))))
    assert source.text == "\n\n".join(
        ["A heading over both of the columns, from the left edge to the right", " ".join(left), " ".join(right)]
    )


def test_a_table_is_rows_that_keep_their_headings() -> None:
    def draw(canvas: Canvas) -> None:
        lines("These are the countries of the region, as of today, in one table, which follows below this line.")(
            canvas
        )
        for row, cells in enumerate(COUNTRIES):
            for column, cell in enumerate(cells):
                canvas.drawString(72 + 150 * column, 690 - 16 * row, cell)

    source = read(content := pdf(draw))
    assert source.text.splitlines()[2:] == [
        "Country: Kenya | Capital: Nairobi | People: 55,000",
        "Country: Uganda | Capital: Kampala | People: 47,000",
    ]
    assert dict(enclosed(content, source))["Kampala"].strip() == "Kampala"


def test_a_short_line_above_a_table_ends_its_paragraph() -> None:
    def draw(canvas: Canvas) -> None:
        before = ("These are the countries of the region, as of today, in one table, which follows", "below.")
        lines(*before, top=718)(canvas)
        for row, cells in enumerate(COUNTRIES):
            for column, cell in enumerate(cells):
                canvas.drawString(72 + 150 * column, 690 - 13.75 * row, cell)

    paragraph, table = read(pdf(draw)).text.split("\n\n")
    assert paragraph.endswith("which follows below.")
    assert table.splitlines()[0] == "Country: Kenya | Capital: Nairobi | People: 55,000"


def test_heads_feet_and_page_numbers_are_left_out() -> None:
    def page(number: int) -> Callable[[Canvas], None]:
        head = lines(f"Annual report, part {number}", top=810)
        foot = lines(f"Page {number} of 3", left=280, top=30)
        return both(head, foot, lines(f"What page {number} says about sums."))

    pages = [page(number) for number in (1, 2, 3)]
    assert read(pdf(*pages)).text == "\n\n".join(f"What page {n} says about sums." for n in (1, 2, 3))
    alone = read(pdf(pages[0])).text  # nothing says that it is a head
    assert alone == "Annual report, part 1\n\nWhat page 1 says about sums.\n\nPage 1 of 3"


@pytest.mark.parametrize("often", [2, 3])
def test_large_titles_that_differ_by_a_number_are_no_heads(often: int) -> None:
    def page(number: int) -> Callable[[Canvas], None]:
        club = lines("The club of 1998", left=400, top=800, size=16)
        return both(
            club, lines(f"Step {number}", top=780, size=16), lines("Take it,", f"put it on {number},", "and wait.")
        )

    told = read(pdf(*(page(number) for number in range(1, often + 1)))).text
    assert told == "\n\n".join(f"Step {n}\n\nTake it, put it on {n}, and wait." for n in range(1, often + 1))


@pytest.mark.parametrize(
    ("feet", "left_out"),
    [(("", "1200"), False), (("", "2"), True), (("", "1"), True), (("1200", "", "", "1203"), True)],
)
def test_a_number_at_a_pages_end_is_its_number_if_it_may_be(feet: Sequence[str], left_out: bool) -> None:
    pages = [both(lines("It weighed, in tons,"), lines(foot, top=60)) for foot in feet]
    assert all((foot not in read(pdf(*pages)).text) == left_out for foot in feet if foot)


def spread(*edges: tuple[str, str]) -> str:
    """What is read of pages with these heads and feet, between which each has a text of its own."""
    names = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fred")
    pages = [
        both(lines(head, top=800), lines(f"Dear {name}, it is here.", "It was late."), lines(foot, top=60))
        for name, (head, foot) in zip(names, edges, strict=False)
    ]
    return read(pdf(*pages)).text


@pytest.mark.parametrize(
    "edges",
    [
        ["Invoice No. 1001", "Invoice No. 1008", "Invoice No. 1015", "Invoice No. 1022"],
        ["Invoice No. 1001", "Invoice No. 1002", "Invoice No. 1003", "Invoice No. 1004"],
        ["Minutes of 3 May 2025", "Minutes of 10 May 2025", "Minutes of 17 May 2025"],
        ["Log of 1/5/2025", "Log of 2/5/2025", "Log of 3/5/2025"],
        ["Log of 2025-05-01", "Log of 2025-05-02", "Log of 2025-05-03"],
        ["Report of 2019", "Report of 2020"],
        ["Total due: 300.50 EUR", "Total due: 313.50 EUR", "Total due: 326.50 EUR"],
        ["Total due: 300.01 EUR", "Total due: 300.02 EUR", "Total due: 300.03 EUR"],
        ["Seat 14 in row 2", "Seat 15 in row 3", "Seat 16 in row 4"],
        ["18/20", "12/20", "19/20"],
    ],
)
def test_lines_at_an_edge_that_differ_in_numbers_other_than_the_pages_are_kept(edges: Sequence[str]) -> None:
    for text in (spread(*((edge, "") for edge in edges)), spread(*(("", edge) for edge in edges))):
        assert all(edge in text for edge in edges)


@pytest.mark.parametrize(
    "edges",
    [
        ["12", "13", "14"],
        ["- 12 -", "- 13 -", "- 14 -"],
        ["iv", "v", "vi"],
        ["Page 1 of 2", "Page 2 of 2", "Page 1 of 1"],
        ["Chapter 2 · 17", "Chapter 2 · 18", "Chapter 2 · 19"],
        ["The 12 moons of 1998", "The 12 moons of 1998", "The 12 moons of 1998"],
        ["2 | Sums", "Of 1998 | 3", "4 | Sums", "Of 1998 | 5", "6 | Sums", "Of 1998 | 7"],
        ["Sums 1", "Sums 2", "Sums 3"],
        ["Sums, page 1/3", "Sums, page 2/3", "Sums, page 3/3"],
        ["One 31", "One 32", "One 33", "Two 34", "Two 35", "Two 36"],
    ],
)
def test_heads_that_are_equal_but_for_the_pages_number_are_left_out(edges: Sequence[str]) -> None:
    plain = spread(*[("", "")] * len(edges))
    wide = [edge.replace(" 3", " " * 40 + "3") if edge.startswith(("One", "Two")) else edge for edge in edges]
    assert spread(*((edge, "") for edge in wide)) == spread(*(("", edge) for edge in wide)) == plain


@pytest.mark.parametrize("tickets", [["Admit one"] * 3, ["Gate 1", "Gate 2", "Gate 3"], ["1", "2", "3"]])
@pytest.mark.parametrize("top", [800, 60])
def test_a_page_that_has_nothing_else_keeps_its_text(tickets: Sequence[str], top: float) -> None:
    assert read(pdf(*(lines(ticket, top=top) for ticket in tickets))).text.split("\n\n") == [*tickets]


def test_hyphens_at_line_ends() -> None:
    text = ["A well-known exam-", "ple of a well-", "known fact, from 1990-", "1995, and of North-", "America."]
    source = read(pdf(lines(*text)))
    assert source.text == "A well-known example of a well-known fact, from 1990-1995, and of North-America."
    places = encode(source.kind, source.runs)
    at = source.text.index("example")
    found = locate(places, at, at + 7)
    assert found is not None
    assert len(found.rectangles) == 2


def test_hyphens_of_words_that_the_text_has_once() -> None:
    source = read(pdf(lines("It takes two-", "thirds of a foil-", "covered govern-", "ment and Zür-", "cher Zeitung.")))
    assert source.text == "It takes two-thirds of a foil-covered government and Zürcher Zeitung."


def test_hyphens_of_compounds_and_addresses_stay() -> None:
    text = ["State-of-the-", "art X-", "ray, mother-", "in-law and well-inten-", "tioned john-", "smith@example.com."]
    said = "State-of-the-art X-ray, mother-in-law and well-intentioned john-smith@example.com."
    assert read(pdf(lines(*text))).text == said


@pytest.mark.parametrize("size", [48, 60, 72])
def test_a_large_figure_does_not_mix_the_lines_beside_it(size: int) -> None:
    beside = lines(
        "Of all households in the north had", "water from a river in 2019. That is", "twice as many.", left=260
    )
    said = read(pdf(both(lines("42%", size=size, top=690), beside))).text
    at = [
        said.index(each)
        for each in ("Of all households in the north had", "water from a river in 2019. That is", "twice")
    ]
    assert at == sorted(at)
    assert "42%" in said


def test_a_line_after_which_there_was_room_ends_a_paragraph() -> None:
    items = (
        "150 g of bacon",
        "3 onions of medium size",
        "1 spoon of oil or butter from the farm",
    )
    assert read(pdf(lines(*items))).text.split("\n\n") == list(items)


def test_an_indented_line_goes_on_with_what_hangs_or_begins_after_a_sentence() -> None:
    def drawn(first: str) -> str:
        def draw(canvas: Canvas) -> None:
            lines(first, left=72, top=700)(canvas)
            lines("the houses by the water were sold.", left=90, top=686.25)(canvas)

        return read(pdf(draw)).text

    assert drawn("Baker, A. (2003), “On the use of") == (
        "Baker, A. (2003), “On the use of the houses by the water were sold."
    )
    assert drawn("It was the end of the year.") == "It was the end of the year.\n\nthe houses by the water were sold."


def test_heads_that_touch_the_text_are_left_out_if_half_of_the_pages_have_them() -> None:
    def page(number: int, told: str) -> Callable[[Canvas], None]:
        texts = [f"On page {number} it says {told}, which is a sentence of a line.", f"Amended at: town hall, {number}"]
        return lines(*["It is told as it was."] * 4, *texts, top=110)

    pages = [page(1, "how"), page(2, "why"), page(3, "where"), page(4, "when")]
    assert "Amended" not in read(pdf(*pages)).text
    assert read(pdf(*pages[:2])).text.count("Amended") == 2


def test_two_columns_below_a_heading_in_one_of_them() -> None:
    left = both(
        lines("Beef Jerky", left=60, top=720, size=24),
        lines(*(f"This is how to dry the meat, line {n}" for n in range(6)), left=60, top=690),
    )
    right = lines(*(f"The soup is made of water, line {n}" for n in range(9)), left=320, top=722)
    text = read(pdf(both(left, right))).text
    assert text.index("dry the meat, line 5") < text.index("water, line 0")


def test_a_character_that_pdfium_counts_but_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does if the first of a page is not known."""
    told = pypdfium2.raw.FPDFText_GetText

    def without_first(page: Any, start: int, count: int, buffer: Any) -> int:
        written = int(told(page, start, count, buffer))
        buffer[: written - 1] = buffer[1:written]
        return written - 1

    monkeypatch.setattr(pypdfium2.raw, "FPDFText_GetText", without_first)
    assert read(pdf(lines("Only these words.", "And more."))).text == "Only these words. And more."


@pytest.mark.parametrize(
    ("title", "read_as"),
    [
        ("Microsoft Word - E mail to all.docx", "E mail to all"),
        ("minutes 2024-05.pdf", "minutes 2024-05"),
        ("Untitled", None),
        ("Of Docx and men", "Of Docx and men"),
    ],
)
def test_a_title_made_of_a_files_name(title: str, read_as: str | None) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setTitle(title)
        canvas.drawString(72, 700, "Text.")

    assert read(pdf(draw)).metadata.get("title") == read_as


def test_a_sentence_goes_on_over_pages_and_gaps_begin_paragraphs() -> None:
    first, second = lines("A sentence that goes on", "over the"), lines("page. Here", "it ends.")
    assert read(pdf(first, second)).text == "A sentence that goes on over the page. Here it ends."
    apart = both(lines("One paragraph is here."), lines("Another one is here.", top=690))
    assert read(pdf(apart)).text == "One paragraph is here.\n\nAnother one is here."


def turned(content: bytes, angle: int) -> bytes:
    """The first page, cropped to 500 by 700, and shown turned."""
    file = pypdfium2.PdfDocument(content)
    file[0].set_cropbox(50, 100, 550, 800)
    file[0].set_rotation(angle)
    stream = io.BytesIO()
    file.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("angle", "edges"),
    # The first letter begins at 10 % of the width of the page as it is drawn, and the line is about 13 % below its top.
    [(0, (10, 13)), (90, (85, 10)), (180, (90, 85)), (270, (13, 90))],
)
def test_a_page_that_is_cropped_and_turned(angle: int, edges: tuple[int, int]) -> None:
    source = read(turned(pdf(lines("Only these words.", "And more.", left=100, top=700, size=10)), angle))
    assert source.text == "Only these words. And more."
    left, top, right, bottom = (edge / 100 for edge in source.runs[0][3:])
    starts = {0: (left, top), 90: (right, top), 180: (right, bottom), 270: (left, bottom)}
    assert starts[angle] == (pytest.approx(edges[0], abs=2.5), pytest.approx(edges[1], abs=2.5))


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_text_that_is_drawn_turned(angle: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(angle)
        lines("A sideways line of", "words.", left=0, top=0)(canvas)

    assert read(pdf(draw)).text == "A sideways line of words."


def test_facts() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setTitle("Sums of 2024")
        canvas.setAuthor("Ann")
        canvas.drawString(72, 700, "Text.")

    assert read(pdf(draw)).metadata == {
        "title": "Sums of 2024",
        "author": "Ann",
        "date": "2000-01-01",
        "pages": 1,
    }


def test_what_cannot_be_read_says_why() -> None:
    with pytest.raises(ValueError, match=r"no text in it, so its pages may be scanned pictures; .* by ocrmypdf"):
        read(pdf(lambda canvas: canvas.rect(10, 10, *A4), lambda canvas: canvas.rect(10, 10, 5, 5)))
    with pytest.raises(ValueError, match="encrypted; save it without a password"):
        read(pdf(lines("secret"), encrypt=StandardEncryption("key")))
    with pytest.raises(ValueError, match="not a PDF"):
        read(b"%PDF-1.7\nnothing")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2000), st.binary(max_size=40))
def test_damage_gives_a_text_or_an_error(at: int, noise: bytes) -> None:
    content = pdf(lines("Some words on a page."), lines("Others."))
    try:
        source = read(content[:at] + noise + content[at + len(noise) :])
    except ValueError:
        return
    assert len(source.text) < 100
