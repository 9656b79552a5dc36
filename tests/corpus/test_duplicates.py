"""Near duplicates against the sets of all runs of 32 bytes; equal texts that are searched once."""

from __future__ import annotations

import pickle
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from commands import Run
from quoth import Corpus, Document
from quoth.corpus import duplicates
from quoth.corpus.duplicates import plain, resemblance, shingles
from quoth.errors import InputError

WORDS = (
    *("amber", "basin", "copper", "delta", "ember", "fjord", "glacier", "harbour", "island", "jetty", "kernel"),
    *("lagoon", "meadow", "nickel", "orchard"),
)


def written(path: Path, texts: list[str]) -> Corpus:
    corpus = Corpus.create(path)
    corpus.add(Document(f"d{n}", f"T{n}", text, {"n": n}) for n, text in enumerate(texts))
    return corpus


def runs(text: str) -> set[bytes]:
    """What a text's shingles are the hashes of."""
    told = " ".join(text.lower().split()).encode()
    return {told[at : at + 32] for at in range(max(len(told) - 31, 1))}


def share(one: str, other: str) -> float:
    a, b = runs(one), runs(other)
    return len(a & b) / len(a | b)


def drawn(seed: int) -> list[str]:
    """Texts of several lengths, and edited copies of some of them."""
    rng = random.Random(seed)
    texts = list[str]()
    for size in (3, 20, 120, 600, 2000):
        for _ in range(4):
            words = rng.choices(WORDS, k=size)
            texts.append(" ".join(words))
            for _ in range(rng.randrange(4)):
                edited = list(words)
                for _ in range(rng.randrange(1 + size // 40)):
                    edited[rng.randrange(size)] = rng.choice(WORDS)
                texts.append(rng.choice((str.upper, str.title, "\n {} ".format))(rng.choice(("  ", " ")).join(edited)))
    rng.shuffle(texts)
    return texts


@pytest.mark.parametrize("seed", range(6))
def test_near_duplicates_are_those_that_all_pairs_give(tmp_path: Path, seed: int) -> None:
    texts = drawn(seed)
    group = list(range(len(texts)))
    for a, b in combinations(range(len(texts)), 2):
        if share(texts[a], texts[b]) >= 0.8:
            group = [group[a] if each == group[b] else each for each in group]
    wanted = [[f"d{n}" for n, of in enumerate(group) if of == each] for each in dict.fromkeys(group)]
    wanted = [each for each in wanted if len(each) > 1]
    assert len(wanted) > 3
    found = written(tmp_path / "c.quoth", texts).near_duplicates()
    assert sorted(found) == sorted(wanted)
    assert [*map(len, found)] == sorted(map(len, wanted), reverse=True)


@pytest.mark.parametrize("seed", range(20))
def test_resemblance_is_that_of_the_sets(seed: int) -> None:
    texts = random.Random(seed).sample(drawn(seed), 2)
    one, other = (np.unique(shingles(plain(text))) for text in texts)
    assert (len(one), len(other)) == tuple(len(runs(text)) for text in texts)
    assert resemblance(one, other) == pytest.approx(share(*texts))


def test_there_are_groups_of_texts_that_are_too_short_or_empty(tmp_path: Path) -> None:
    corpus = written(tmp_path / "c.quoth", ["Yes.", "no.", " YES.", "Yes!", "x", "X", "", " "])
    assert sorted(corpus.near_duplicates()) == [["d0", "d2"], ["d4", "d5"]]
    corpus.delete("d0")
    assert corpus.near_duplicates() == [["d4", "d5"]]
    assert corpus.where("n != 4").near_duplicates() == []


def test_many_that_share_much_with_the_first_are_still_compared_with_each_other(tmp_path: Path) -> None:
    rng = random.Random(3)
    notice = " ".join(rng.choices(WORDS, k=150))
    own = [" ".join(rng.choices(WORDS, k=100)) for _ in range(5)]
    corpus = written(tmp_path / "c.quoth", [f"{notice} {text}" for text in own] + [f"{notice} {own[3]}!"])
    assert corpus.near_duplicates() == [["d3", "d5"]]


def test_long_texts_are_compared_by_their_beginnings_and_equal_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "LONG", 1000)
    long = " ".join(random.Random(1).choices(WORDS, k=1000))
    corpus = written(tmp_path / "c.quoth", [long, f"{long} end", long.upper(), long[::-1]])
    assert corpus.near_duplicates() == [["d0", "d1", "d2"]]
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


def test_commands_tell_near_duplicates_and_count_equal_ones_once(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "press"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.txt").write_text(PRESS)
    (folder / "other.txt").write_text("Nothing of that.")
    told = "near duplicates: 4 documents in 1 group; --where once reads equal texts once"
    code, _, error = run("index", folder, "-o", tmp_path / "c.quoth")
    assert code == 0
    assert told in error
    assert len(run("search", tmp_path / "c.quoth", "mayor", "--json")[1].splitlines()) == 4
    assert len(run("search", tmp_path / "c.quoth", "mayor", "--json", "--where", "once")[1].splitlines()) == 1
    assert told in run("sync", folder, tmp_path / "s.quoth")[2]
    assert "near" not in run("sync", folder, tmp_path / "s.quoth")[2]
    (folder / "d.txt").write_text("And that is another.")
    code, out, _ = run("sync", folder, tmp_path / "s.quoth", "--json")
    assert '"near_duplicates": [["a.txt", "b.txt", "c.txt"]]' in out
