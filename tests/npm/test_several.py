"""Several blanks of one text: the surest first, several fillings followed, by tables of what fills each."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

import quoth
from quoth.errors import InputError
from quoth.npm.several import BEAMS, OPEN, fill_together
from quoth.records import Evidence, Prediction, Status
from tiny import TEXT, tiny_npm


def predicted(text: str, probability: float, status: Status = "answered") -> Prediction:
    place = Evidence("d", "", 0, 0, len(text), text, probability / 2)
    return Prediction(text, math.log(probability), probability, (place, place), "", status)


class Table:
    """Fills as a table says, and remembers what it was asked."""

    def __init__(self, table: dict[str, Sequence[tuple[str, float]]]) -> None:
        self.table, self.asked = table, list[list[str]]()

    def __call__(self, texts: list[str]) -> list[list[Prediction]]:
        self.asked.append(texts)
        return [[predicted(*each) for each in self.table[text]] for text in texts]


def test_the_surest_blank_is_filled_first_and_then_helps_the_other() -> None:
    table = Table(
        {
            f"[MASK] wrote {OPEN}.": [("Bizet", 0.3), ("Verdi", 0.2)],
            f"{OPEN} wrote [MASK].": [("Aida", 0.6), ("Carmen", 0.4)],
            "[MASK] wrote Aida.": [("Verdi", 0.9), ("Bizet", 0.1)],
            "[MASK] wrote Carmen.": [("Bizet", 0.5), ("Verdi", 0.2)],
        }
    )
    found = fill_together(table, "[MASK] wrote [MASK].")
    assert table.asked == [
        [f"[MASK] wrote {OPEN}.", f"{OPEN} wrote [MASK]."],
        ["[MASK] wrote Aida.", "[MASK] wrote Carmen."],
    ]
    assert [each.parts for each in found] == [
        ("Verdi", "Aida"),  # 0.54
        ("Bizet", "Carmen"),  # 0.2
        ("Verdi", "Carmen"),  # 0.08
        ("Bizet", "Aida"),  # 0.06
    ]
    best = found[0]
    assert (best.text, best.sequence) == ("Verdi … Aida", "Verdi wrote Aida.")
    assert best.probability == pytest.approx(0.54)
    assert best.log_score == pytest.approx(math.log(0.54))
    assert [place.context for place in best.evidence] == ["Verdi", "Aida"]  # the best place of each
    assert best.num_places == 2


def test_a_phrase_with_a_mask_fills_no_blank() -> None:
    table = Table(
        {
            f"[MASK] is {OPEN}": [("the [MASK]", 0.9), ("it", 0.2)],
            f"{OPEN} is [MASK]": [("a <mask>", 0.8), ("a form", 0.5), ("___", 0.1)],
            "[MASK] is a form": [("[MASK]", 1.0)],
            "[MASK] is ___": [("it", 0.5)],
        }
    )
    assert [each.sequence for each in fill_together(table, "[MASK] is [MASK]")] == ["it is ___"]


@pytest.mark.parametrize("seed", range(20))
def test_as_many_beams_as_fillings_find_the_best_of_all(seed: int) -> None:
    """With two phrases for each of two blanks nothing is cut off, so the order is that of every filling's product."""
    rng = random.Random(seed)
    table = {f"[MASK] {OPEN}": "ab", f"{OPEN} [MASK]": "xy"}
    table |= {f"[MASK] {y}": "ab" for y in "xy"} | {f"{a} [MASK]": "xy" for a in "ab"}
    chances = {text: [(one, rng.uniform(0.01, 1)) for one in phrases] for text, phrases in table.items()}
    chances = {text: sorted(rows, key=lambda row: -row[1]) for text, rows in chances.items()}
    first = max(chances[f"[MASK] {OPEN}"][0][1], chances[f"{OPEN} [MASK]"][0][1])
    left = first == chances[f"[MASK] {OPEN}"][0][1]
    wanted = {}
    for a, y in product("ab", "xy"):
        one = dict(chances[f"[MASK] {OPEN}" if left else f"{OPEN} [MASK]"])[a if left else y]
        wanted[a, y] = one * dict(chances[f"{a} [MASK]" if left else f"[MASK] {y}"])[y if left else a]
    found = fill_together(Table(chances), "[MASK] [MASK]")
    assert [each.parts for each in found] == sorted(wanted, key=lambda pair: -wanted[pair])
    assert [each.probability for each in found] == pytest.approx(sorted(wanted.values(), reverse=True))


def test_no_more_fillings_are_followed_than_beams() -> None:
    asked = list[int]()

    def fill(texts: list[str]) -> list[list[Prediction]]:
        asked.append(len(texts))
        return [[predicted(f"{len(text)}-{n}", 0.5 / (n + 1)) for n in range(6)] for text in texts]

    assert len(fill_together(fill, "[MASK] [MASK] [MASK]")) == BEAMS * 6  # all that the last blank makes of them
    assert asked == [3, 2 * BEAMS, BEAMS]


def test_the_least_sure_phrase_says_how_sure_the_filling_is() -> None:
    said: dict[str, tuple[Status, float]] = {
        f"[MASK] {OPEN}": ("answered", 0.9),
        f"{OPEN} [MASK]": ("unsure", 0.3),
        "x [MASK]": ("not_found", 0.1),
    }

    def fill(texts: list[str]) -> list[list[Prediction]]:
        return [[predicted("x", said[text][1], said[text][0])] for text in texts]

    [only] = fill_together(fill, "[MASK] [MASK]")
    assert (only.status, only.abstained) == ("not_found", True)


def test_where_nothing_fills_a_blank_there_is_no_filling() -> None:
    assert fill_together(lambda texts: [[] for _ in texts], "[MASK] [MASK]") == []
    with pytest.raises(InputError, match="the text has 9 blanks; give at most 8 at a time"):
        fill_together(lambda texts: [], "[MASK] " * 9)


def test_npm_fills_texts_with_one_blank_and_with_several(tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "c.quoth", splitter="words:10")
    corpus.add(quoth.Document(f"d{n}", f"T{n}", text) for n, text in enumerate(TEXT))
    npm = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpus)
    one, two = "The capital of France is ___.", "The Seine flows through [MASK] in [MASK]."
    filled = npm.fill([one, two], top_k=3)
    for found, text in zip(filled, (one, two), strict=True):
        assert [each.text for each in found] == [each.text for each in npm.fill(text, top_k=3)]
    assert len(filled[1]) == 3
    for each in filled[1]:
        first, second = each.parts
        assert each.sequence == f"The Seine flows through {first} in {second}."
        for phrase, place in zip(each.parts, each.evidence, strict=True):
            assert corpus.document(place.document_id).text[place.start : place.end] == phrase
    for options, only in (({"exclude": corpus.rows_of("d1")}, "d0 d2 d3 d4 d5"), ({"searched": ["raven"]}, "d0")):
        found = npm.fill(two, **options)
        assert found
        assert {place.document_id for each in found for place in each.evidence} <= {*only.split()}
