"""Equal texts are searched once."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from commands import Run
from quoth import Corpus, Document
from quoth.corpus import duplicates
from quoth.corpus.duplicates import digest_of
from quoth.errors import InputError


def written(path: Path, texts: list[str]) -> Corpus:
    corpus = Corpus.create(path)
    corpus.add(Document(f"d{n}", f"T{n}", text, {"n": n}) for n, text in enumerate(texts))
    return corpus


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [("Yes.", " YES.\n", True), ("a  b", "A\tb", True), ("Yes.", "Yes!", False), ("ab", "a b", False), ("", " ", True)],
)
def test_case_and_white_space_do_not_count(one: str, other: str, is_equal: bool) -> None:
    assert (digest_of(one) == digest_of(other)) == is_equal


def test_long_texts_are_compared_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "LONG", 1000)
    long = "amber basin copper delta " * 200
    corpus = written(tmp_path / "c.quoth", [long, f"{long} end", long.upper(), long[::-1]])
    assert [each.id for each in corpus.where("once").documents()] == ["d0", "d1", "d3"]


PRESS = "The mayor of Bree opened the new bridge."
TEXTS = [
    PRESS,
    "A fair is in the mill.",
    PRESS.upper(),
    f" {PRESS}\n",
    "The mayor of Bree said that the old bridge is safe.",
]


def test_equal_texts_are_searched_once(tmp_path: Path) -> None:
    corpus = written(tmp_path / "c.quoth", TEXTS)
    alone = written(tmp_path / "alone.quoth", [TEXTS[0], TEXTS[1], TEXTS[4]])
    part = corpus.where("once")
    assert [each.id for each in part.documents()] == ["d0", "d1", "d4"]
    rows, scores = part.bm25("mayor bridge", 9)
    assert [part.passage(row).document_id for row in rows.tolist()] == ["d0", "d4"]
    np.testing.assert_array_equal(scores, alone.bm25("mayor bridge", 9)[1])


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (["n > 0 once"], "d1 d2 d4"),  # the first of those that meet the rest
        (["n > 0", "once"], "d1 d2 d4"),
        (["once", "n > 0"], "d1 d4"),
        (["n in (2, 3) ONCE"], "d2"),
        (["(n = 0 or n between 2 and 3) once", "n >= 0"], "d0"),
    ],
)
def test_it_is_said_last_and_follows_the_corpus(tmp_path: Path, conditions: list[str], kept: str) -> None:
    corpus = part = written(tmp_path / "c.quoth", TEXTS)
    for condition in conditions:
        part = part.where(condition)
    for each in (part, pickle.loads(pickle.dumps(part))):
        assert [document.id for document in each.documents()] == kept.split()
    corpus.add([Document("more", "", TEXTS[1], {"n": 9}), Document("new", "", "Something else.", {"n": 2})])
    part.catch_up()
    assert [document.id for document in part.documents()] == [*kept.split(), "new"]


def test_a_field_of_that_name_is_a_field(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("a", "", "x", {"once": 1}), Document("b", "", "x", {"once": 2})])
    assert [each.id for each in corpus.where("once > 1").documents()] == ["b"]
    assert [each.id for each in corpus.where("once >= 1 once").documents()] == ["a"]
    with pytest.raises(InputError, match=r"at character 6, 'and' instead of =, !="):
        corpus.where("once and id = 'a'")
    with pytest.raises(InputError, match=r"'once' instead of and, or, once or the end"):
        corpus.where("id = 'a' once once")


def test_commands_count_equal_texts_once(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "press"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.txt").write_text(PRESS)
    (folder / "other.txt").write_text("Nothing of that.")
    assert run("index", folder, "-o", tmp_path / "c.quoth")[0] == 0
    assert len(run("search", tmp_path / "c.quoth", "mayor", "--json")[1].splitlines()) == 4
    assert len(run("search", tmp_path / "c.quoth", "mayor", "--json", "--where", "once")[1].splitlines()) == 1
