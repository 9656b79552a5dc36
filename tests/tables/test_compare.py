"""Cells of a column compared: how a phrase is told, what it shares with others, what that is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from random import Random
from typing import Any

import numpy as np
import pytest

from quoth.answers.evidence import Source, Spans, chance, log_odds
from quoth.reader.config import ReaderConfig
from quoth.records import Evidence, Passage, Sentence
from quoth.tables import compare
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.compare import NAMES, Comparison, Profile, fitted, label_of, numbers
from quoth.tables.likeliest import alone, likeliest, line_of


def phrase(context: str, text: str, share: float = 0.5, known: Sequence[float] = (2.0, -0.5, 1.5, 3.0)) -> Cell:
    """A phrase where it stands, after 100 other characters of its document."""
    start = 100 + context.index(text)
    place: dict[str, Any] = {"document_id": "d", "title": "Title", "context": context, "context_start": 100}
    place |= {"start": start, "end": start + len(text)}
    return Cell(text, None, share, "unsure", (place,), known=tuple(known))


def agreement(profile: Profile, phrase: Cell) -> tuple[float, float]:
    return profile.agreement(label_of(phrase), phrase.probability)


def test_the_label_of_a_phrase() -> None:
    context = "Area: 3 sq km\nThe Coasts - total, by sea: 1,234.5 km (est.) more\nNext: 4"
    assert label_of(phrase(context, "1,234.5 km")) == ("the", "coast", "total", "by", "sea")
    assert label_of(phrase("x", "x")) == ()
    words = [f"w{number}" for number in range(15)]
    assert label_of(phrase(f"{' '.join(words)} end", "end")) == tuple(words[3:])


def test_agreement_by_hand() -> None:
    first, *others = [
        phrase("Birth rate: 12", "12", 0.9),
        phrase("The birth rates: 13", "13", 0.6),
        phrase("Birth rate: 15", "15", 0.5),
        phrase("Death rate: 9 or so", "9", 0.4),
        phrase("8", "8", 0.3),
    ]
    profile = Profile()
    for each in (first, *others, None):
        profile.add(each)
    assert agreement(profile, first) == pytest.approx((0.5 / 6, 0))  # the others have a label each
    share = math.sqrt(2 * 0.9 * 0.5)  # the one pair with one label
    assert agreement(profile, others[2]) == pytest.approx((0, -share / 6))
    assert agreement(profile, others[3]) == pytest.approx((0, -share / 6))  # without a label none is like it
    alone = Profile()
    alone.add(first)
    assert agreement(alone, first) == (0, 0)


def test_a_row_in_the_place_of_others_is_compared_as_if_they_had_never_been() -> None:
    rows = [Row(f"{n}", "", {"q": Cell(likeliest=phrase("Rate: 12", "12", n / 10))}) for n in range(1, 5)]
    made, alone = Comparison([Column("q", ("Q?",))]), Comparison([Column("q", ("Q?",))])
    for each in rows[:3]:
        made.add(each)
    for each in (rows[3], rows[2]):
        alone.add(each)
    before = made.decided(rows[0])
    with made.instead(rows[3], rows[:2]):
        said, expected = (next(each.decided(rows[3]).cells["q"].shown()).probability for each in (made, alone))
        assert said == pytest.approx(expected)
    assert made.decided(rows[0]) == before


def test_running_text_is_no_label() -> None:
    said = "It was said by all of them at the end of the day that"
    prose, first, second = (phrase(f"{text} 12", "12", 0.5) for text in (said, "Rate:", "Rate:"))
    profile = Profile()
    for each in (prose, prose, first, second):
        profile.add(each)
    assert len(label_of(prose)) == 12
    assert agreement(profile, prose) == (0, 0)  # nothing speaks for it or against it
    assert agreement(profile, first) == pytest.approx((0.5 / 4, 0))


def test_agreement_is_that_of_the_other_rows_alone() -> None:
    draw = Random(0)
    labels, values = ("Birth rate", "Death rate", "Rate of births"), ("12", "1.5 m", "about 3", "North")
    rows = [phrase(f"{draw.choice(labels)}: {value}", value, draw.random()) for value in draw.choices(values, k=40)]
    profile = Profile()
    for row in rows:
        profile.add(row)
    for own in rows:
        others = [(label_of(row), row.probability) for row in rows if row is not own]
        same = sum(chance for label, chance in others if label == label_of(own))
        pairs = sum(
            one * other
            for n, (label, one) in enumerate(others)
            for m, (also, other) in enumerate(others)
            if n != m and label == also
        )
        assert agreement(profile, own) == pytest.approx((same / 40, min(same - math.sqrt(pairs), 0) / 40))


def test_numbers_of_a_phrase() -> None:
    column = Column("c", ["What is the birth rate?", "How many are born?"], "number")
    one = phrase("The rates, and the number: 12 or 13", "12", 0.6)
    profile = Profile()
    for row in (one, phrase("the rates and the number: 13", "13", 0.4), None):
        profile.add(row)
    made = dict(zip(NAMES, numbers(one, column, profile), strict=True))
    assert [made[name] for name in ("bias", "margin", "unit", "alone", "line")] == [1.0, 2.0, -0.5, 1.5, 3.0]
    assert made["asked"] == pytest.approx(2 / 5)  # the, rate; not and, number
    assert (made["label"], made["apart"]) == pytest.approx((0.4 / 3, 0.0))


@pytest.fixture
def only_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chance that goes by the label of a phrase alone: 0.5 if those that have it have a chance of 0.4 per row."""
    weights = {"bias": -8.0, "label": 20.0}
    given = tuple(weights.get(name, 0.0) for name in NAMES), 0.5
    monkeypatch.setattr(compare, "fitted", lambda: given)


@pytest.mark.usefixtures("only_label")
def test_a_cell_is_filled_or_emptied_by_the_others_of_its_column() -> None:
    column = Column("c", "What is the rate?", "number")
    told = [phrase(f"Birth rate: 1{number}", f"1{number}", 0.8) for number in range(8)]
    death = phrase("Death rate: 8", "8", 0.9)
    unit = Cell("Birth rate: 19 or 20.", None, 0.7, "answered")
    cells = [replace(each, status="answered", known=(), read_as="r", likeliest=each) for each in told[:6]]
    cells += [Cell(candidate=replace(told[6], known=()), likeliest=told[6])]
    cells += [Cell(candidate=replace(told[7], known=()), likeliest=told[7], read_as="a name")]
    cells += [replace(death, status="answered", known=(), read_as="r", likeliest=death)]
    cells += [replace(unit, likeliest=death), Cell("15", 15, 0.9, "answered"), Cell(likeliest=death)]
    rows = [Row(f"{n}", "", {"c": cell}) for n, cell in enumerate(cells)]
    made = Comparison([column])
    for row in rows:
        made.add(row)
    *kept, filled, name, emptied, whole, plain, empty = (made.decided(row).cells["c"] for row in rows)
    share = 1 / (1 + math.exp(8 - 20 * 7 * 0.8 / len(rows)))
    assert [(each.text, each.status, each.read_as, each.likeliest) for each in kept] == [
        (f"1{number}", "answered", "r", None) for number in range(6)
    ]
    assert [each.probability for each in kept] == pytest.approx([share] * 6)
    assert filled == replace(told[6], probability=filled.probability, status="answered", known=())
    assert filled.probability == pytest.approx(share)
    assert name == replace(cells[7], likeliest=None)  # a misspelt word may be a name
    assert (emptied.text, emptied.status, emptied.read_as) == ("", "unsure", "r")
    assert emptied.candidate is not None
    assert (emptied.candidate.text, emptied.candidate.status) == ("8", "unsure")
    assert emptied.candidate.probability < 0.5
    assert whole == unit  # the reader is sure of a unit of the text
    assert plain == cells[-2]
    assert (empty.text, empty.status, empty.candidate) == ("", "not_found", emptied.candidate)
    own = Comparison([Column("c", "What is the rate?", "number", 0.1)])
    for row in rows:
        own.add(row)
    assert own.decided(rows[8]).cells["c"] == replace(cells[8], likeliest=None)  # the column has its own threshold


def test_what_a_cell_said_before_is_kept_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    best, unit = phrase("Rate: 8", "8"), Cell("It is 9.", None, 0.4, "unsure")
    found = Cell("7", 7, 0.9, "answered", others=(unit, Cell("8")), likeliest=best)
    for bias, text in ((9.0, "8"), (-9.0, "7")):
        monkeypatch.setattr(compare, "fitted", lambda bias=bias: ((bias, *[0.0] * (len(NAMES) - 1)), 0.5))
        made = Comparison([Column("c", "What is the rate?")])
        made.add(Row("r", "", {"c": found}))
        cell = made.decided(Row("r", "", {"c": found})).cells["c"]
        assert cell.text == text
        assert text == "7" or [each.text for each in cell.others] == ["7", "It is 9."]


def test_a_cell_is_read_back_with_its_likeliest_phrase() -> None:
    cell = Cell("8", 8, 0.9, "answered", likeliest=phrase("Death rate: 8", "8", 0.9))
    assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell
    assert "likeliest" not in replace(cell, likeliest=None).to_dict()


def test_the_weights_that_are_shipped() -> None:
    told = json.loads(files("quoth.tables").joinpath("chances.json").read_text("utf-8"))
    assert [*told["weights"]] == [*NAMES]
    assert all(weight >= 0 for name, weight in told["weights"].items() if name != "bias")
    assert 0 < told["least"] < 1
    assert all(set["stated"] < set["cells"] for set in told["fitted_on"].values())
    assert fitted()[0] == tuple(told["weights"].values())


TEXT = "The fee is 20 EUR, at most 30 EUR. It is due in May."


def spans(*odds: tuple[str, float], marks: bool = True) -> Spans:
    places = [(TEXT.index(text), TEXT.index(text) + len(text)) for text, _ in odds]
    odds_C = np.array([each for _, each in odds])
    start_C, end_C = np.array(places, np.int64).reshape(-1, 2).T
    own = (np.array([[0, len(TEXT)]]), np.array([1.0])) if marks else None
    return Spans(start_C, end_C, odds_C, float(np.logaddexp.reduce(odds_C)), 0.5, own)


def test_the_best_phrase_that_the_type_allows() -> None:
    passage = Passage(0, "d", "", TEXT, 100, 100 + len(TEXT))
    read, config = [Source(passage, "c", -0.5, 7)], ReaderConfig(calibration=(0.5, 1.0), evidence=True)
    unit = Sentence("", 0.6, (Evidence("d", "", 0, 100, 134, TEXT, 0.6, "c", 100),))
    found = spans(("May", 3.0), ("20 EUR", 2.0), ("30 EUR", -1.0))
    column = Column("c", "What is the fee?", "money")
    best = likeliest(read, [found], [unit], config, column)
    assert best is not None
    assert (best.text, best.status, best.evidence[0]["start"]) == ("20 EUR", "unsure", 100 + TEXT.index("20"))
    assert best.value == {"amount": 20, "currency": "EUR"}
    total = np.logaddexp.reduce([0.0, 3.0, 2.0, -1.0])
    share, other = (log_odds(math.exp(odds - total)) for odds in (2.0, -1.0))  # the next one's is 1.3 %
    assert best.probability == pytest.approx(chance((0.5, 1.0), (1.0, share)))
    assert best.known == pytest.approx([share - other, log_odds(0.6)], abs=1e-4)
    only = likeliest(read, [spans(("20 EUR", 2.0))], [], config, column)
    assert only is not None
    assert only.known == pytest.approx([2.0 - log_odds(0.01), log_odds(0.01)], abs=1e-4)
    of_text = likeliest(read, [found], [], config, Column("c", "What?"))
    assert of_text is not None
    assert of_text.text == "May"
    assert likeliest(read, [found], [], config, Column("c", "What?", "duration")) is None
    assert likeliest(read, [spans(("20 EUR", 2.0), marks=False)], [], config, column) is None
    assert likeliest(read, [found], [], ReaderConfig(), column) is None
    assert likeliest([], [], [], config, column) is None


def test_a_phrase_is_read_once_more_with_nothing_but_its_line() -> None:
    words = [f"w{number}" for number in range(50)]
    assert line_of(phrase(f"Area: 3\nThe fee: 20 EUR {' '.join(words)}\nNext: 4", "20 EUR")) == (
        "",
        f"The fee: 20 EUR {' '.join(words[:10])}",
        len("The fee: "),
    )
    before = f"{' '.join(words[-36:])} It is due in"  # running text: more of it, and its title
    assert line_of(phrase(f"\n{' '.join(words)} It is due in May. {' '.join(words)}", "May")) == (
        "Title",
        f"{before} May . {' '.join(words[:19])}",
        len(before) + 1,
    )
    assert line_of(phrase("20 EUR", "20 EUR")) == ("Title", "20 EUR", 0)

    class Read:
        """A reader that marks 20, 20 EUR and 30 in a line."""

        def read_enough(self, texts: Sequence[str], sources: Sequence[Sequence[Source]]) -> list[list[Spans]]:
            shown = [(text, each.passage.title, each.passage.text) for text, [each] in zip(texts, sources, strict=True)]
            assert shown == [("How much?", "", "The fee is 20 EUR or 30."), ("When?", "Title", "May")]
            marked = Spans(np.array([11, 11, 21]), np.array([13, 17, 23]), np.array([1.0, 2.0, 0.5]), 3.0, 4.0)
            return [[marked], [Spans(np.zeros(0, int), np.zeros(0, int), np.zeros(0), -np.inf, -6.0)]]

    fee, may = phrase("It is:\nThe fee is 20 EUR or 30.", "20 EUR", known=(1.0,)), phrase("May", "May", known=())
    reader: Any = Read()
    made = alone(reader, ["How much?", "What?", "When?"], [fee, None, may])
    share = (math.exp(1.0) + math.exp(2.0)) / (1 + math.exp(3.0))
    assert made == [
        replace(fee, known=(1.0, pytest.approx(log_odds(share), abs=1e-4), 4.0)),
        None,
        replace(may, known=(pytest.approx(log_odds(0.0), abs=1e-4), -6.0)),
    ]
    assert alone(reader, ["What?"], [None]) == [None]
