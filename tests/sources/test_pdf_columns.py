"""What is beside and below each other on a PDF's page: columns, tables in their margin, text after tables, labels."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas
from test_pdf_tables import grid
from written import both, lines, pdf

from quoth_sources.layout import Writer
from quoth_sources.pdf import read
from quoth_sources.source import Text
from quoth_sources.strips import Page, Word, in_order, strips_of

LEFT = (
    "The mill was built by Ada Brandt in the",
    "year of the flood, on a site above the",
    "weir where two older mills had stood and",
    "burned, and it ground rye and barley for",
    "all the farms along the river until the",
    "railway came and took the trade away to",
    "the steam mills of the coast, which paid",
    "better prices and never waited for rain.",
)
RIGHT = (
    "Flour from the mill was sold in sacks of",
    "fifty kilos, marked with a blue wheel. A",
    "baker in the next town, Otto Lind, owned",
    "half of the business for nine years, and",
    "his daughter kept the books, which the",
    "archive of the county holds today. They",
    "show that in the last year only a third",
    "of the grain was paid for by its owners.",
)
STOCK = (("Year", "2020", "2021"), ("Rye", "120", "135"), ("Barley", "310", "298"), ("Oats", "40", "52"))
PROSE = (" ".join(LEFT), " ".join(RIGHT))


def text(*parts: Callable[[Canvas], object]) -> str:
    return read(pdf(both(*parts))).text


@pytest.mark.parametrize("offset", [0, 3.5, 7])
@pytest.mark.parametrize("step", [13.75, 27.5])
def test_columns_beside_a_table_are_read_by_themselves(offset: float, step: float) -> None:
    told = text(
        lines(*LEFT, left=40), lines(*RIGHT, left=255, top=720 - offset),
        grid(STOCK, (475, 520, 560), top=720 - offset, step=step),
    )  # fmt: skip
    assert told.split("\n\n") == [*PROSE, "\n".join(f"Year: {a} | 2020: {b} | 2021: {c}" for a, b, c in STOCK[1:])]


def test_one_column_beside_a_table() -> None:
    told = text(lines(*LEFT, left=40), grid(STOCK, (300, 400, 480), step=13.75)).split("\n\n")
    assert told[0] == PROSE[0]
    assert "2020: 120" in told[1]


def test_a_narrow_gutter_that_all_lines_have() -> None:
    told = text(lines(*LEFT, left=72), lines(*RIGHT, left=72 + 207))
    assert told.split("\n\n") == [*PROSE]


def test_a_spread_of_two_pages() -> None:
    questions = [f"Question {number} asks who owns the house by the river now" for number in range(8)]
    answers = [f"Answer {number} names the people who have lived there so far" for number in range(9)]
    told = text(
        *(lines(line, left=20, top=720 - 26 * at, size=9) for at, line in enumerate(questions)),
        *(lines(line, left=330, top=711 - 23 * at, size=9) for at, line in enumerate(answers)),
    )
    assert told.index("Question 7") < told.index("Answer 0")
    assert "|" not in told


def test_a_table_of_long_texts_stays_a_table() -> None:
    rows = [("Item", "What it is for", "Price")]
    rows += [(f"Tool {n}", "for the garden and the orchard behind the house", f"{n}.50") for n in range(6)]
    assert text(grid(rows, (72, 160, 480))).splitlines()[0] == (
        "Item: Tool 0 | What it is for: for the garden and the orchard behind the house | Price: 0.50"
    )


def below(rows: Sequence[Sequence[str]], *after: str, gap: float = 30, size: float = 11) -> Callable[[Canvas], Any]:
    return both(grid(rows, (72, 200, 340)), lines(*after, top=700 - 16 * (len(rows) - 1) - gap, size=size))


def test_text_below_a_table_is_no_row_of_it() -> None:
    rows = [("Item", "Place", "Count"), ("Valve", "Shelf A", "14"), ("Gasket", "Shelf C", "31")]
    table = "Item: Valve | Place: Shelf A | Count: 14\nItem: Gasket | Place: Shelf C | Count: 31"
    sentence = "The depot is run by Olga Bern, and it is open on all days but Monday."
    assert text(below(rows, sentence)) == f"{table}\n\n{sentence}"
    assert text(below(rows, sentence, gap=16)) == f"{table}\n\n{sentence}"  # as close as a row
    assert text(below(rows, "Notes", gap=34, size=14)) == f"{table}\n\nNotes"
    assert text(below(rows, "Notes", gap=34)) == f"{table}\n\nNotes"


def test_the_lines_of_the_last_cell_are_its_own() -> None:
    rows = [("Item", "Place", "Remark"), ("Valve", "Shelf A", "to be"), ("", "", "checked"), ("Pump", "Shelf B", "new")]
    rows += [("Gasket", "Shelf C", "to be sold before the end"), ("", "", "of the year")]
    assert "of the year" in text(grid(rows, (72, 200, 340), step=13)).splitlines()[-1]


def test_stacked_tables_have_their_own_headings() -> None:
    tables = [
        ("From", "Until", "Nights"), ("1 May", "9 May", "8"), ("Rooms",),
        ("Room", "Guest", "Beds"), ("12", "Ada Brandt", "2"), ("14", "Otto Lind", "1"),
    ]  # fmt: skip
    assert text(grid(tables, (72, 200, 340), step=20)).split("\n\n") == [
        "From: 1 May | Until: 9 May | Nights: 8",
        "Rooms",
        "Room: 12 | Guest: Ada Brandt | Beds: 2\nRoom: 14 | Guest: Otto Lind | Beds: 1",
    ]


def test_a_paragraph_beside_its_label_is_one() -> None:
    def draw(canvas: Canvas) -> None:
        lines(*LEFT, left=160)(canvas)
        lines(*RIGHT, left=160, top=720 - 13.75 * 8)(canvas)
        lines("mill", left=72)(canvas)
        lines("flour", left=72, top=720 - 13.75 * 8)(canvas)

    assert text(draw).split("\n\n") == [f"mill | {PROSE[0]}", f"flour | {PROSE[1]}"]


def test_a_label_on_a_line_of_its_own_above_its_paragraph() -> None:
    def draw(canvas: Canvas) -> None:
        for at, (label, told) in enumerate((("history", LEFT), ("trade", RIGHT))):
            lines(label, left=72, top=720 - 124 * at)(canvas)
            lines(*told, left=160, top=720 - 124 * at - 13.75)(canvas)

    assert text(draw).split("\n\n") == [f"history | {PROSE[0]}", f"trade | {PROSE[1]}"]


def test_numbers_of_sections_of_two_levels() -> None:
    rows = [("1.", "", "INTENT"), ("", ".1", LEFT[0]), ("", "", LEFT[1]), ("", ".2", RIGHT[0]), ("", "", RIGHT[1])]
    told = text(grid(rows, (72, 100, 140), step=13.75)).split("\n\n")
    assert told == ["1. INTENT", f".1 {LEFT[0]} {LEFT[1]}", f".2 {RIGHT[0]} {RIGHT[1]}"]


def test_numbers_of_lines_are_kept_apart() -> None:
    every = [lines(str(number + 1), left=40, top=720 - 13.75 * number) for number in range(8)]
    fifth = lines("5", left=400, top=720 - 13.75 * 4)
    eighth = lines("10", left=400, top=720 - 13.75 * 9)
    for told in (text(lines(*LEFT, left=72), *every), text(lines(*LEFT, *RIGHT, left=72), fifth, eighth)):
        prose = [part for part in told.split("\n\n") if not part.replace(" ", "").isdigit()]
        assert " ".join(prose).startswith(PROSE[0])


def test_rules_join_no_words() -> None:
    told = text(lines("Total 12.50", "-" * 30, "REWARDS MEMBER", "Ada Brandt"))
    assert told == f"Total 12.50\n\n{'-' * 30}\n\nREWARDS MEMBER Ada Brandt"


def test_items_whose_numbers_touch_their_words() -> None:
    assert text(lines("They are:", "1.First numbered", "2.Second numbered", "a)Alpha")).split("\n\n")[1:] == [
        "1.First numbered",
        "2.Second numbered",
        "a)Alpha",
    ]


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        ([("1998", 11, 0), ("3", 7, 4)], "1998³"),
        ([("4×10", 11, 0), ("6", 7, 4)], "4×10⁶"),
        ([("10", 11, 0), ("-3", 7, 4)], "10⁻³"),
        ([("H", 11, 0), ("2", 7, -2), ("O", 11, 0)], "H₂O"),
        ([("end.", 11, 0), ("12", 7, 4)], "end.¹²"),
        ([("A", 11, 0), ("NNA", 8, 0)], "ANNA"),  # small capitals
        ([("T", 20, -5), ("he", 11, 0)], "The"),  # a large initial
        ([("19", 11, 0), ("98", 11, 0)], "1998"),
    ],
)
def test_raised_and_lowered_characters(drawn: Sequence[tuple[str, float, float]], told: str) -> None:
    def draw(canvas: Canvas) -> None:
        lines("The mill and its tank are described here, in words of the usual size.", top=760)(canvas)
        left = 72.0
        for said, size, up in drawn:
            canvas.setFont("Helvetica", size)
            canvas.drawString(left, 700 + up, said)
            left += canvas.stringWidth(said)

    assert text(draw).split("\n\n")[1] == told


def test_a_raised_number_behind_a_space() -> None:
    def draw(canvas: Canvas) -> None:
        lines("Rates of the statutes")(canvas)
        canvas.setFont("Helvetica", 7)
        canvas.drawString(74 + canvas.stringWidth("Rates of the statutes", "Helvetica", 11) + 1, 724, "1")

    assert text(draw) == "Rates of the statutes ¹"


def line_of(*words: str) -> list[Word]:
    """Words from left to right; those in Hebrew run from right to left."""
    return [
        Word(10 + 60 * at, 10, 60 + 60 * at, 20, word, is_backward="\u0590" < word[0] < "\u05ff")
        for at, word in enumerate(words)
    ]


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        (("עולם", "שלום"), "שלום עולם"),
        (("עולם", "New", "York", "שלום", "רב"), "רב שלום New York עולם"),
        (("עולם", "12", "שלום"), "שלום 12 עולם"),
        (("one", "שלום", "two", "three"), "one שלום two three"),
    ],
)
def test_words_that_run_from_right_to_left(drawn: Sequence[str], told: str) -> None:
    line = line_of(*drawn)
    assert " ".join(word.text for word in in_order(line)) == told
    written = Text("page")
    Writer(written, lambda _, __: False).page(1, Page(600, 800, strips_of(line)))
    assert written.source({}).text == told


def test_text_of_a_size_below_nothing_is_upside_down() -> None:
    def draw(canvas: Canvas) -> None:
        for at, line in enumerate(LEFT):
            canvas.setFont("Helvetica", -11)
            canvas.drawString(300, 300 + 13.75 * at, line)

    assert text(draw) == PROSE[0]
