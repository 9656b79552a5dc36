"""Tables of PDF as people print them, and what only looks like one: which row has the headings, what is a cell."""

from collections.abc import Callable, Sequence

import pytest
from reportlab.pdfgen.canvas import Canvas
from written import both, lines, pdf

from quoth_sources.pdf import read

COUNTRIES = [("Kenya", "Nairobi", "55,000"), ("Uganda", "Kampala", "47,000"), ("Chad", "N'Djamena", "17,000")]
LOREM = "It was said that the houses by the water were to be sold before the year had come to its end"


def grid(
    rows: Sequence[Sequence[str]], at: Sequence[float], top: float = 700, step: float = 16
) -> Callable[[Canvas], None]:
    """Draws cells, each column at its distance from the left edge; "" is an empty cell."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 11)
        for row, cells in enumerate(rows):
            for left, cell in zip(at, cells, strict=False):
                if cell:
                    canvas.drawString(left, top - step * row, cell)

    return draw


def text(*pages: Callable[[Canvas], object]) -> str:
    return read(pdf(*pages)).text


def test_headings_of_several_lines_are_one() -> None:
    heads = [("", "Capital", "People"), ("Country", "or seat of", "in"), ("", "government", "thousands")]
    told = text(grid([*heads, *COUNTRIES], (72, 200, 340), step=13))
    assert (
        told.splitlines()[0] == "Country: Kenya | Capital or seat of government: Nairobi | People in thousands: 55,000"
    )
    assert len(told.splitlines()) == 3


def test_a_line_across_does_not_make_two_columns_one() -> None:
    rows = [("Country", "Capital", "People"), *COUNTRIES, *COUNTRIES]
    rows.insert(4, ("All of these were measured with the greatest care",))
    told = text(grid(rows, (72, 200, 340))).splitlines()
    assert told[0] == "Country: Kenya | Capital: Nairobi | People: 55,000"
    assert told[-1] == "Country: Chad | Capital: N'Djamena | People: 17,000"
    assert sum("measured" in line for line in told) == 1


def test_numbers_that_nearly_touch_are_in_their_columns() -> None:
    rows = [("Town", "2001", "2011"), *((f"Town {letter}", "101", "202") for letter in "ABCDEFG")]
    rows += [("Total", "1,234,567,8", "9,876,543,2")]
    told = text(grid(rows, (72, 180, 243))).splitlines()
    assert told[0] == "Town: Town A | 2001: 101 | 2011: 202"
    assert told[-1] == "Town: Total | 2001: 1,234,567,8 | 2011: 9,876,543,2"


def test_two_headings_that_nearly_touch_are_two() -> None:
    rows = [("Name", "State", "", "Amount"), *((f"Ann {letter}", "MN", "55104", "60.00") for letter in "BCDEFGHI")]
    zipped = grid([("Zip",)], (231,))
    assert text(both(grid(rows, (72, 200, 240, 340)), zipped)).splitlines()[0] == (
        "Name: Ann B | State: MN | Zip: 55104 | Amount: 60.00"
    )


def test_a_table_goes_on_over_the_page_with_its_headings() -> None:
    first = grid([("Country", "Capital", "People"), *COUNTRIES], (72, 200, 340))
    following = grid([("Mali", "Bamako", "22,000"), ("Niger", "Niamey", "25,000")], (72, 200, 340))
    told = text(first, following).splitlines()
    assert told[-1] == "Country: Niger | Capital: Niamey | People: 25,000"
    between = lines("This is a sentence about something else, in one line of its own.", top=740)
    assert text(first, both(between, following)).splitlines()[-1] == "Niger | Niamey | 25,000"
    assert text(both(first, lines("It ends.", top=400)), following).splitlines()[-1] == "Niger | Niamey | 25,000"


def test_a_heading_beside_its_values_is_theirs() -> None:
    rows = [("Country", "Capital", "People", ""), *((*row[:2], "", row[2]) for row in COUNTRIES)]
    assert text(grid(rows, (72, 200, 300, 350))).splitlines()[0] == "Country: Kenya | Capital: Nairobi | People: 55,000"


@pytest.mark.parametrize(
    "first",
    [
        ("07/17/2015", "Boeing", "65"),  # a row of the table
        ("Benin", "14.9%", "16.5%"),
        ("means of transport", "as far as it is in the open sea or", "in the air"),  # prose
        ("1.", "Benin", "Porto-Novo"),
    ],
)
def test_a_row_of_values_is_no_headings(first: tuple[str, ...]) -> None:
    told = text(grid([first, *COUNTRIES], (72, 200, 440))).splitlines()
    assert told == [" | ".join(row) for row in (first, *COUNTRIES)]


def test_years_are_headings() -> None:
    told = text(grid([("", "2001", "2011"), ("Towns", "12", "15"), ("Farms", "30", "22")], (72, 200, 300)))
    assert told == "Towns | 2001: 12 | 2011: 15\nFarms | 2001: 30 | 2011: 22"


def test_a_glossary_is_terms_with_their_meanings() -> None:
    rows = [
        ("“carport”", "means a building that has a roof and of which no more than"),
        ("", "a part is enclosed by walls."),
        ("“church”", "means a building for worship that is open to everybody who"),
        ("", "comes to it."),
        ("“club”", "means a group of people who pursue a common interest."),
    ]
    assert text(grid(rows, (72, 160), step=13.75)).splitlines() == [
        "“carport” | means a building that has a roof and of which no more than a part is enclosed by walls.",
        "“church” | means a building for worship that is open to everybody who comes to it.",
        "“club” | means a group of people who pursue a common interest.",
    ]


@pytest.mark.parametrize("marks", [("1.1", "1.2", "1.3"), ("(a)", "(b)", "(c)"), ("iv)", "v)", "vi)"), ("•", "•", "•")])
def test_hanging_numbers_and_bullets_begin_paragraphs(marks: Sequence[str]) -> None:
    rows = [row for mark in marks for row in ((mark, LOREM[:63]), ("", LOREM[64:]))]
    assert text(grid(rows, (72, 120), step=13.75)).split("\n\n") == [f"{mark} {LOREM}" for mark in marks]


def test_amounts_in_a_first_column_are_no_numbers_of_sections() -> None:
    told = text(grid([("1.25", "3.5", "4.5"), ("2.25", "5.5", "6.5"), ("3.25", "7.5", "8.5")], (72, 200, 300)))
    assert told == "1.25 | 3.5 | 4.5\n2.25 | 5.5 | 6.5\n3.25 | 7.5 | 8.5"


def test_notes_in_the_margin_come_before_their_paragraph() -> None:
    body = [("", f"{LOREM}, as line {number}") for number in range(12)]
    body[5] = ("Changed 2016", body[5][1])
    told = text(grid(body, (30, 120), step=13.75)).split("\n\n")
    assert told == ["Changed 2016", " ".join(line for _, line in body)]


def test_what_is_written_upwards_is_read_after_the_page() -> None:
    def upwards(canvas: Canvas) -> None:
        canvas.translate(40, 500)
        canvas.rotate(90)
        lines("seen in a margin", left=0, top=0)(canvas)

    page = both(grid([(LOREM,)] * 9, (120,), step=13.75), upwards)
    assert text(page) == f"{' '.join([LOREM] * 9)}\n\nseen in a margin"
    assert text(page, page, page) == "\n\n".join([" ".join([LOREM] * 9)] * 3)  # as a running head
