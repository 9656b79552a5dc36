"""Cells of a column compared: what a phrase looks like, what it shares with others, what that is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
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
from quoth.tables.likeliest import phrases_of


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
    first, *others = [
        phrase("Birth rate: 12", "12", 0.9),
        phrase("The birth rate: 13", "13", 0.6),
        phrase("Death rate: 9 or so", "9", 0.4),
    ]
    profile = Profile()
    for each in (first, *others, None):
        profile.add(each)
    assert profile.agreement(first, first) == pytest.approx((0.6 / (1.0 + 1), 1.0 / 3))
    death = phrase("Death rate: 8", "8", 0.2)  # another one of the first row
    assert profile.agreement(death, first) == pytest.approx((0.4 / (1.0 + 1), 1.0 / 3))
    alone = Profile()
    alone.add(first)
    assert alone.agreement(first, first) == (0, 0)


def test_agreement_is_that_of_the_other_rows_alone() -> None:
    draw = Random(0)
    labels, values = ("Birth rate", "Death rate", "Rate of births"), ("12", "1.5 m", "about 3", "North")
    rows = [phrase(f"{draw.choice(labels)}: {value}", value, draw.random()) for value in draw.choices(values, k=40)]
    profile = Profile()
    for row in rows:
        profile.add(row)
    for own in rows:
        others = [row for row in rows if row is not own]
        weight = sum(each.probability for each in others)
        for one in rows[:5]:
            share = sum(each.probability for each in others if around(each).last == around(one).last)
            assert profile.agreement(one, own) == pytest.approx((share / (weight + 1), weight / 39))


def test_numbers_of_a_phrase() -> None:
    column = Column("c", ["What is the birth rate?", "How many are born?"], "number")
    one = phrase("Births, and the number: 12 or 13", "12", 0.6)
    profile = Profile()
    for row in (one, phrase("the number: 13", "13", 0.4), None):
        profile.add(row)
    made = dict(zip(NAMES, numbers(one, one, column, profile), strict=True))
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


@pytest.mark.usefixtures("only_last")
def test_a_cell_is_emptied_if_the_others_of_its_column_speak_against_it() -> None:
    column = Column("c", "What is the rate?", "number")
    told = [phrase(f"Birth rate: 1{number}", f"1{number}", 0.8) for number in range(9)]
    told += [phrase("Death rate: 8", "8", 0.9)]
    cells = [replace(each, status="answered", known=(), read_as="r", likeliest=each) for each in told]
    cells += [Cell(candidate=replace(told[0], known=())), Cell("15", 15, 0.9, "answered")]
    rows = [Row(f"{n}", "", {"c": cell}) for n, cell in enumerate(cells)]
    made = Comparison([column])
    for row in rows:
        made.add(row)
    *kept, emptied, unsure, plain = (made.decided(row).cells["c"] for row in rows)
    assert kept == [replace(cell, likeliest=None) for cell in cells[:9]]
    assert (emptied.text, emptied.status, emptied.read_as, emptied.likeliest) == ("", "unsure", "r", None)
    assert emptied.candidate == replace(cells[9], status="unsure", read_as="", likeliest=None)
    assert [unsure, plain] == cells[10:]  # nothing is filled by the others
    own = Comparison([Column("c", "What is the rate?", "number", 0.1)])
    for row in rows:
        own.add(row)
    assert own.decided(rows[9]).cells["c"].text == "8"  # the column has a threshold of its own


def test_a_cell_is_read_back_with_its_likeliest_phrase() -> None:
    cell = Cell("8", 8, 0.9, "answered", likeliest=phrase("Death rate: 8", "8", 0.9))
    assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell
    assert "likeliest" not in replace(cell, likeliest=None).to_dict()


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


def test_the_phrases_that_the_type_allows() -> None:
    passage = Passage(0, "d", "", TEXT, 100, 100 + len(TEXT))
    read, config = [Source(passage, "c", -0.5, 7)], ReaderConfig(calibration=(0.5, 1.0), evidence=True)
    unit = Sentence("", 0.6, (Evidence("d", "", 0, 100, 134, TEXT, 0.6, "c", 100),))
    found = spans(("May", 3.0), ("20 EUR", 2.0), ("30 EUR", -1.0))
    column = Column("c", "What is the fee?", "money")
    first, second = phrases_of(read, [found], [unit], config, column)
    assert (first.text, second.text, second.evidence[0]["start"]) == ("20 EUR", "30 EUR", 100 + TEXT.index("30"))
    share = math.exp(2.0 - np.logaddexp.reduce([0.0, 3.0, 2.0, -1.0]))
    assert first.probability == pytest.approx(chance((0.5, 1.0), (1.0, log_odds(share))))
    assert first.known == pytest.approx([math.log(1 / (1 + math.exp(-1))), log_odds(0.6)], abs=1e-4)
    assert phrases_of(read, [found], [], config, column)[0].known[1] == pytest.approx(log_odds(0.01), abs=1e-4)
    texts = [each.text for each in phrases_of(read, [found], [], config, Column("c", "What?"))]
    assert texts == ["May", "20 EUR", "30 EUR"]
    assert phrases_of(read, [spans(("20 EUR", 2.0), marks=False)], [], config, column) == []
    assert phrases_of(read, [found], [], ReaderConfig(), column) == []
