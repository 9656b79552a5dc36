"""Fields counted: values by hand, against conditions, and joined over parts."""

import random
from itertools import chain
from typing import Any

import pytest

from quoth.corpus.facets import DISTINCT, FIELDS, LONGEST, Facet, joined, tally
from quoth.corpus.where import parse

RECORDS: list[dict[str, Any]] = [
    {"source": "minutes", "date": "2024-05-01 10:30", "year": "2024", "tags": ["x", "y", "x", None], "flag": True},
    {"source": "letters", "date": "2023", "year": 2025.5, "tags": [], "flag": 1, "by": {"name": "Ann", "a.b": 1}},
    {"source": "minutes", "date": None, "year": "1e999", "by.name": "Bo", "by": {"name": "Ann", "rank": {"n": 2}}},
]


def test_what_is_counted() -> None:
    facets = tally(RECORDS)
    assert {name: (each.documents, each.most_common(9)) for name, each in facets.items()} == {
        "source": (3, [("minutes", 2), ("letters", 1)]),
        "date": (2, [("2024-05-01 10:30", 1), ("2023", 1)]),
        "year": (3, [("2024", 1), (2025.5, 1), ("1e999", 1)]),
        "tags": (2, [("x", 1), ("y", 1)]),
        "flag": (2, [(True, 1), (1, 1)]),
        "by.name": (2, [("Ann", 1), ("Bo", 1)]),
        "by.rank.n": (1, [(2, 1)]),
    }
    assert [type(value) for value, _ in facets["flag"].most_common(2)] == [bool, int]


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([3, "12", -1.5], (-1.5, 12)),
        (["2024", "1999"], (1999, 2024)),
        (["2024", "1999-12"], ("1999-12", "2024")),
        (["2024-05-01 10:30", ["2025-01", "2023-07-09"]], ("2023-07-09", "2025-01")),
        ([3, "2024-01"], ()),
        ([1, True], ()),
        ([1, "1e999"], ()),
        (["2024-01", "May"], ()),
        ([[]], ()),
    ],
)
def test_the_least_and_the_largest_value(values: list[Any], ends: Any) -> None:
    assert tally({"f": each} for each in values)["f"].ends == ends


def test_what_is_too_much_is_not_counted() -> None:
    many = tally({"n": n, "one": 1} for n in range(DISTINCT + 1))
    assert (many["n"].documents, many["n"].counts, many["n"].ends) == (DISTINCT + 1, None, (0, DISTINCT))
    assert many["one"].most_common(5) == [(1, DISTINCT + 1)]
    assert len(tally({"n": n} for n in range(DISTINCT))["n"].most_common(DISTINCT + 1)) == DISTINCT
    long = tally([{"t": "a" * LONGEST}, {"t": "a" * (LONGEST + 1)}])["t"]
    assert (long.documents, long.most_common(5)) == (2, [("a" * LONGEST, 1)])
    assert len(tally({f"f{n}": 1} for n in range(FIELDS + 1))) == FIELDS


def test_a_count_is_how_many_documents_the_condition_finds() -> None:
    """Of texts that spell no number: a condition takes 5 for '5', counts tell them apart."""
    draw = random.Random(1)
    records = [
        {"a": draw.choice("uvw"), "b": {"c": draw.choices("xyz", k=2)}, "d": draw.random() < 0.3} for _ in "1" * 99
    ]
    for name, facet in tally(records).items():
        assert facet.counts
        for value, count in facet.most_common(9):
            said = f"'{value}'" if isinstance(value, str) else str(value).lower()
            assert sum(map(parse(f"{name} = {said}"), records)) == count


def test_parts_are_counted_together() -> None:
    draw = random.Random(2)
    values: list[Any] = [
        1,
        "1",
        2.5,
        True,
        "2024",
        "2024-05-01",
        "x",
        ["x", 3],
        [],
        "2023-01",
        7,
        8,
        "y" * (LONGEST + 1),
    ]
    for _ in range(300):
        kinds = [draw.sample(values, 3) for _ in "ab"]
        parts = [
            [{f: draw.choice(k) for f, k in zip("ab", kinds, strict=True)} for _ in range(draw.randint(0, 4))]
            for _ in "123"
        ]
        assert joined(map(tally, parts)) == tally(chain(*parts))
    wide = [[{"n": n} for n in range(first, first + 600)] for first in (0, 600)]
    assert joined(map(tally, wide))["n"] == Facet(1200, None, {"number": (0, 1199), "date": None})
    assert joined([]) == {}
