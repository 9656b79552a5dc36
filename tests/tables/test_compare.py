"""Cells of a column compared: what a phrase looks like, what it shares with others, what that is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from random import Random

import numpy as np
import pytest

from quoth.answers.evidence import Source, Spans, chance, log_odds
from quoth.reader.config import ReaderConfig
from quoth.records import Evidence, Passage, Sentence
from quoth.tables import compare
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.compare import NAMES, Comparison, Profile, around, fitted, numbers
from quoth.tables.rivals import rivals_of


def phrase(context: str, text: str, share: float = 0.5, known: Sequence[float] = (-0.1, 0.7)) -> Cell:
    """A phrase where it stands, after 100 other characters of its document."""
    start = 100 + context.index(text)
    place = {"document_id": "d", "start": start, "end": start + len(text), "context": context, "context_start": 100}
    return Cell(text, None, share, "unsure", (place,), known=tuple(known))


def test_what_is_around_a_phrase() -> None:
    context = "Area: 3 sq km\nThe Coast - total, by sea: 1,234.5 km (est.) more\nNext: 4"
    one = around(phrase(context, "1,234.5 km"))
    assert (one.before, one.last, one.words) == (["the", "coast", "total", "by", "sea"], "by sea", 7)
    assert around(phrase("x", "x")) == ([], 0)


def test_agreement_by_hand() -> None:
    rows = [
        [phrase("Birth rate: 12", "12", 0.9), phrase("Death rate: 8", "8", 0.2)],
        [phrase("The birth rate: 13", "13", 0.6)],
        [phrase("Death rate: 9 or so", "9", 0.4)],
        [],
    ]
    profile = Profile()
    for row in rows:
        profile.add(row)
    others = 0.6 + 0.4  # the likeliest phrases of the other rows
    assert profile.agreement("birth rate", rows[0]) == pytest.approx((0.6 / (others + 1), others / 3))
    assert profile.agreement("death rate", rows[0]) == pytest.approx((0.4 / (others + 1), others / 3))
    assert profile.agreement("birth rate", rows[3]) == pytest.approx((1.5 / (1.9 + 1), 1.9 / 3))
    assert Profile().agreement("birth rate", []) == (0, 0)


def test_agreement_is_that_of_the_other_rows_alone() -> None:
    draw = Random(0)
    labels, values = ("Birth rate", "Death rate", "Rate of births"), ("12", "1.5 m", "about 3", "North")
    rows = []
    for _ in range(40):
        own = [(f"{draw.choice(labels)}: ", draw.choice(values)) for _ in range(draw.randrange(4))]
        rows.append([phrase(f"{label}{value}", value, draw.random()) for label, value in own])
    profile = Profile()
    for row in rows:
        profile.add(row)
    for own in rows:
        best = [max(row, key=lambda each: each.probability) for row in rows if row and row is not own]
        weight = sum(each.probability for each in best)
        for each in own:
            last = around(each).last
            share = sum(other.probability for other in best if around(other).last == last)
            assert profile.agreement(last, own) == pytest.approx((share / (weight + 1), weight / 39))


def test_numbers_of_a_phrase() -> None:
    column = Column("c", ["What is the birth rate?", "How many are born?"], "number")
    one = phrase("Births, and the number: 12 or 13", "12", 0.6)
    profile = Profile()
    for row in ([one], [phrase("the number: 13", "13", 0.4)], []):
        profile.add(row)
    made = dict(zip(NAMES, numbers(one, [one], column, profile), strict=True))
    assert made["reader"] == pytest.approx(math.log(0.6 / 0.4))
    assert (made["bias"], made["evidence"], made["unit"]) == (1.0, -0.1, 0.7)
    assert made["asked"] == pytest.approx(2 / 5)  # births, as birth begins; the; not and, number
    assert made["line"] == pytest.approx(math.log(1 + 6))
    assert (made["last"], made["column"]) == pytest.approx((0.4 / 1.4, 0.4 / 2))


@pytest.fixture
def only_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chance that goes by the words before a phrase alone: 0.5 if half of the rows have them."""
    weights = {"bias": -10.0, "last": 20.0}
    given = tuple(weights.get(name, 0.0) for name in NAMES), 0.5
    monkeypatch.setattr(compare, "fitted", lambda: given)


def rows_of_rates() -> list[Row]:
    rows = []
    for number in range(9):
        phrases = [phrase("Death rate: 8", "8", 0.3), phrase(f"Birth rate: 1{number}", f"1{number}", 0.8)]
        rows.append(Row(f"{number}", "", {"c": Cell(rivals=tuple(phrases), read_as="r")}))
    lacking = Row("9", "", {"c": Cell("8", 8, 0.9, "answered", rivals=(phrase("Death rate: 8", "8", 0.9),))})
    return [*rows, lacking]


@pytest.mark.usefixtures("only_last")
def test_a_cell_is_decided_by_the_others_of_its_column() -> None:
    column, rows = Column("c", "What is the rate?", "number"), rows_of_rates()
    made = Comparison([column])
    for row in rows:
        made.add(row)
    *cells, lacking = (made.decided(row).cells["c"] for row in rows)
    assert [cell.text for cell in cells] == [f"1{number}" for number in range(9)]
    assert {(cell.status, cell.read_as, cell.rivals, cell.known) for cell in cells} == {("answered", "r", (), ())}
    others = 8 * 0.8 + 0.9
    assert cells[0].probability == pytest.approx(1 / (1 + math.exp(10 - 20 * 8 * 0.8 / (others + 1))))
    assert (lacking.text, lacking.status) == ("", "unsure")  # the reader was sure of the death rate
    assert lacking.candidate is not None
    assert (lacking.candidate.text, lacking.candidate.known) == ("8", ())
    strict = Comparison([Column("c", "What is the rate?", "number", 1.0)])
    for row in rows:
        strict.add(row)
    assert {strict.decided(row).cells["c"].text for row in rows} == {""}
    plain = Row("x", "", {"c": Cell("8", 8, 0.9, "answered")})
    assert strict.decided(plain) == plain  # without rivals: by the reader alone


def test_the_weights_that_are_shipped() -> None:
    told = json.loads(files("quoth.tables").joinpath("chances.json").read_text("utf-8"))
    assert [*told["weights"]] == [*NAMES]
    assert all(weight >= 0 for name, weight in told["weights"].items() if name != "bias")
    assert 0 < told["least"] < 1 < told["fitted_on"]["cells"]
    assert fitted()[0] == tuple(told["weights"].values())


TEXT = "The fee is 20 EUR, at most 30 EUR. It is due in May."


def spans(*odds: tuple[str, float], marks: bool = True) -> Spans:
    places = [(TEXT.index(text), TEXT.index(text) + len(text)) for text, _ in odds]
    odds_C = np.array([each for _, each in odds])
    start_C, end_C = np.array(places, np.int64).reshape(-1, 2).T
    own = (np.array([[0, len(TEXT)]]), np.array([1.0])) if marks else None
    return Spans(start_C, end_C, odds_C, float(np.logaddexp.reduce(odds_C)), 0.5, own)


def test_rivals_are_the_phrases_that_the_type_allows() -> None:
    passage = Passage(0, "d", "", TEXT, 100, 100 + len(TEXT))
    read, config = [Source(passage, "c", -0.5, 7)], ReaderConfig(calibration=(0.5, 1.0), evidence=True)
    unit = Sentence("", 0.6, (Evidence("d", "", 0, 100, 134, TEXT, 0.6, "c", 100),))
    found = spans(("May", 3.0), ("20 EUR", 2.0), ("30 EUR", -1.0))
    column = Column("c", "What is the fee?", "money")
    first, second = rivals_of(read, [found], [unit], config, column)
    assert (first.text, first.value) == ("20 EUR", {"amount": 20, "currency": "EUR"})
    assert (second.text, second.evidence[0]["start"]) == ("30 EUR", 100 + TEXT.index("30"))
    total = np.logaddexp.reduce([0.0, 3.0, 2.0, -1.0])
    share = math.exp(2.0 - total)
    assert first.known == pytest.approx([math.log(1 / (1 + math.exp(-1))), log_odds(0.6)], abs=1e-4)
    assert first.probability == pytest.approx(chance((0.5, 1.0), (1.0, log_odds(share))))
    texts = [each.text for each in rivals_of(read, [found], [], config, Column("c", "What?"))]
    assert texts == ["May", "20 EUR", "30 EUR"]
    assert rivals_of(read, [found], [], config, column)[0].known[1] == pytest.approx(log_odds(0.01), abs=1e-4)
    assert rivals_of(read, [spans(("20 EUR", 2.0), marks=False)], [], config, column) == ()
    assert rivals_of(read, [found], [], ReaderConfig(), column) == ()
