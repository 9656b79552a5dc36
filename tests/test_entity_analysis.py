"""Rare and common names, by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.evaluation.coverage import Coverage, EntityQuestion
from quoth.evaluation.entity_analysis import (
    TermCounts,
    count_terms,
    entity_idf,
    idf,
    idf_buckets,
    idf_records,
    idf_table,
)
from quoth.evaluation.entity_questions import EntityReport, EntityResult

TEXTS = ("Rome and Oslo", "Rome, Roman Rome", "running runs", "北京市")


def test_idf_by_hand_and_below_zero_for_the_commonest() -> None:
    assert idf(1, 10) == pytest.approx(math.log(9.5 / 1.5))
    assert idf(0, 10) == pytest.approx(math.log(10.5 / 0.5))
    assert idf(9, 10) < 0 == idf(5, 10)


def test_terms_are_counted_once_a_passage_as_the_word_index_cuts_them() -> None:
    counts = count_terms(TEXTS, ["rome oslo", "RUN", "京", "Lima"])
    assert counts == TermCounts(4, {"rome": 2, "oslo": 1, "run": 1, "京": 1})
    rome, oslo = math.log(2.5 / 2.5), math.log(3.5 / 1.5)
    assert counts.idfs("Rome, Oslo!") == pytest.approx([rome, oslo])
    assert counts.idfs("Lima") == pytest.approx([math.log(4.5 / 0.5)])
    assert counts.idfs("?") == []


def test_a_name_is_as_rare_as_its_rarest_word() -> None:
    assert entity_idf([5.8, 6.0]) == 6.0
    assert entity_idf([-1.0, -2.5]) == -1.0


def report_of(names: Sequence[str], ranks: Sequence[int | None]) -> EntityReport:
    """Questions that are an entity's name and nothing else."""
    asked = [EntityQuestion(QAExample("", each, ("x",)), "P1", (0, len(each)) if each else None) for each in names]
    result = EntityResult("s", {"dpr": tuple(ranks), "string": tuple(ranks)})
    coverage = Coverage(frozenset({0, 1}), frozenset({0}))
    return EntityReport(tuple(asked), {"P1": len(asked)}, 100, coverage, 0, (1, 5), (result,))


def test_questions_fall_into_buckets_of_their_entitys_idf() -> None:
    counts = TermCounts(100, {f"t{n}": n for n in range(100)})
    names = ["t40", "t1", "t2", "t30", "?", "", "t20", "t3"]
    report = report_of(names, [0, None, 3, 4, 0, 0, 0, 9])
    low, high = idf_buckets(report, counts, num_buckets=2)
    assert (low.numbers, high.numbers) == ((0, 3, 6), (1, 2, 7))
    assert (low.low, high.high) == pytest.approx((idf(40, 100), idf(1, 100)))
    assert low.high == high.low == pytest.approx((idf(20, 100) + idf(3, 100)) / 2)
    assert [each["recall"]["s"] for each in idf_records(report, [low, high])] == [
        {"1": pytest.approx(2 / 3), "5": 1.0},
        {"1": 0.0, "5": pytest.approx(1 / 3)},
    ]
    lines = idf_table(report, [low, high]).splitlines()
    assert lines[2] == f"| {low.low:.2f} to {low.high:.2f} | 3 | 1 | 1 | 66.7 | 100.0 |"
    common, rare = idf_buckets(report_of(["t90 t1", "t20", "t20 t30", "t2"], [0] * 4), counts, num_buckets=2)
    assert (common.numbers, rare.numbers) == ((1, 2), (0, 3))  # "t90 t1" is as rare as t1
    same = idf_buckets(report_of(["t1"] * 9, [0] * 9), counts)
    assert [each.numbers for each in same] == [tuple(range(9))]
    with pytest.raises(InputError, match="no question whose entity is known"):
        idf_buckets(report_of([""], [0]), counts)
