"""Rare and common names, by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from asking import given, mean
from hypothesis import given as drawn
from hypothesis import strategies as st

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document, Hit, Passage
from quoth_eval.entity_search import idf, rarity, rarity_groups, searches, term_idfs
from quoth_eval.harness import evaluate
from quoth_eval.tasks.entities import EntitySettings, entities_task

TEXTS = ("Rome and Oslo", "Rome, Roman Rome", "running runs", "北京市")


def test_idf_by_hand_and_below_zero_for_the_commonest() -> None:
    assert idf(1, 10) == pytest.approx(math.log(9.5 / 1.5))
    assert idf(0, 10) == pytest.approx(math.log(10.5 / 0.5))
    assert idf(9, 10) < 0 == idf(5, 10)


def test_terms_are_counted_once_a_passage_as_the_word_index_cuts_them() -> None:
    passages = [Passage(row, str(row), "", text, 0, len(text)) for row, text in enumerate(TEXTS)]
    idfs = term_idfs(passages, ["rome oslo", "RUN", "京", "Lima"])
    rome, oslo, lima = math.log(2.5 / 2.5), math.log(3.5 / 1.5), math.log(4.5 / 0.5)
    assert idfs == pytest.approx({"rome": rome, "oslo": oslo, "run": oslo, "京": oslo, "lima": lima})
    assert rarity("Rome, Oslo!", idfs) == pytest.approx(oslo)
    assert rarity("?", idfs) == -math.inf


def test_questions_fall_into_groups_by_their_entitys_idf() -> None:
    idfs = {f"t{n}": idf(n, 100) for n in range(100)}
    names = ["t40", "t1", "t2", "t30", "?", "", "t20", "t3"]
    low = f"rarity 1 of 2, IDF {idf(40, 100):.2f} to {idf(20, 100):.2f}"
    high = f"rarity 2 of 2, IDF {idf(3, 100):.2f} to {idf(1, 100):.2f}"
    assert rarity_groups(names, idfs, 2) == {0: low, 1: high, 2: high, 3: low, 6: low, 7: high}
    rare = rarity_groups(["t90 t1", "t20", "t20 t30", "t2"], idfs, 2)  # "t90 t1" is as rare as t1
    assert [rare[number].split()[1] for number in range(4)] == ["2", "1", "1", "2"]
    assert [told.split()[1] for told in rarity_groups(["t1", "t2"], idfs).values()] == ["1", "2"]  # one question each
    with pytest.raises(InputError, match="no question whose entity is known"):
        rarity_groups([""], idfs)


@drawn(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(1, 7))
def test_groups_are_of_equal_size_and_in_order_however_many_names_are_equally_rare(
    holding: list[int], num_groups: int
) -> None:
    """The paper divides a thousand questions into five times 200."""
    groups = rarity_groups([f"t{n}" for n in holding], {f"t{n}": idf(n, 100) for n in range(13)}, num_groups)
    numbers = [int(groups[at].split()[1]) for at in range(len(holding))]
    sizes = Counter(numbers)
    assert set(sizes) == set(range(1, min(num_groups, len(holding)) + 1))
    assert max(sizes.values()) - min(sizes.values()) <= 1
    by_rarity = sorted(zip(numbers, holding, strict=True), key=lambda each: (each[0], -each[1]))
    assert [n for _, n in by_rarity] == sorted(holding, reverse=True)


def test_recall_is_reported_by_bucket(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(Document(str(n), "", f"{'t1' if n == 0 else ''} common x{n}") for n in range(8))
    asked = [{"question": name, "answers": ["x0"]} for name in ("t1", "common")]
    (tmp_path / "P1.json").write_text(json.dumps(asked))
    (tmp_path / "templates.json").write_text('{"P1": "[X]"}')
    settings = EntitySettings(ks=(1,), idf=True, templates=str(tmp_path / "templates.json"))
    task = entities_task(given(tmp_path, corpus, files=(str(tmp_path / "P1.json"),)), settings)

    def search(text: str, entity: object, k: int) -> list[Hit]:
        return [Hit(corpus.passage(0 if text == "t1" else 1), 1.0)]

    result = evaluate(task, {"s": searches(search, lambda _: 1)}).system("s")
    recalls = [(name, score.num_examples, mean(score, "dpr@1")) for name, score in result.by_group("rarity").items()]
    assert [each[1:] for each in recalls] == [(1, 0.0), (1, 1.0)]
    assert recalls[1][0].startswith("rarity 2 of 2, IDF ")
    assert recalls[1][0].endswith(f"to {idf(1, 8):.2f}")
