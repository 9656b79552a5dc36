"""One key of a passage or all, and the picture: by hand and against plain loops."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_entity_encoder import Capitals

from quoth import Corpus, Document, ZeroNER
from quoth.datasets.questions import QAExample
from quoth.encoders.tokens import unit
from quoth.errors import InputError
from quoth.records import Passage
from quoth.zero_ner.recognition import ByText
from quoth_eval import entity_search
from quoth_eval.entity_search import (
    Keys,
    idf,
    max_pool,
    picture,
    rarity,
    single_key,
    single_key_search,
    stored_keys,
    term_idfs,
)
from quoth_eval.tasks.entities import EntityQuestion
from tiny import TEXT, tiny_npm

TEXTS = ("Rome and Oslo", "Rome, Roman Rome", "running runs", "北京市")


def passages(texts: Sequence[str]) -> list[Passage]:
    return [Passage(row, str(row), "", text, 0, len(text)) for row, text in enumerate(texts)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(0, 99))
def test_the_best_key_of_each_passage_is_as_a_loop_finds_it(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors_ND, q_D = rng.normal(size=(sum(sizes), 4)), rng.normal(size=4)
    offsets_P1 = np.cumsum([0, *sizes])
    expected = [
        max((v_D @ q_D / np.linalg.norm(v_D) / np.linalg.norm(q_D) for v_D in vectors_ND[start:end]), default=-np.inf)
        for start, end in pairwise(offsets_P1)
    ]
    np.testing.assert_allclose(max_pool(unit(q_D[None])[0], unit(vectors_ND), offsets_P1), expected)
    rows = single_key(offsets_P1, np.random.default_rng(seed).random(len(vectors_ND)))
    kept = Keys(tuple(map(str, range(len(vectors_ND)))), vectors_ND, offsets_P1).only(rows)
    assert kept.texts == tuple(map(str, rows))
    assert np.diff(kept.offsets_P1).tolist() == [min(size, 1) for size in sizes]
    assert all(start <= row < start + size for row, start, size in _with_keys(rows, offsets_P1, sizes))


def _with_keys(rows: NDArray[np.int64], offsets_P1: NDArray[np.int64], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    with_keys = [(int(start), size) for start, size in zip(offsets_P1[:-1], sizes, strict=True) if size]
    return [(int(row), *each) for row, each in zip(rows, with_keys, strict=True)]


def test_zero_vectors_are_near_nothing_and_far_from_nothing() -> None:
    assert max_pool(np.ones(2), unit(np.zeros((1, 2))), np.array([0, 1])).tolist() == [0.0]
    assert max_pool(np.zeros(2), np.ones((1, 2)), np.array([0, 1, 1])).tolist() == [0.0, -np.inf]


def test_the_rarest_of_each_passage_is_kept() -> None:
    vectors_ND = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-1.0, 0.0]])
    keys = Keys(("Rome", "Oslo", "?", "Rome"), vectors_ND, np.array([0, 2, 2, 4]))
    idfs = term_idfs(passages(TEXTS), keys.texts)
    rows = single_key(keys.offsets_P1, np.array([rarity(text, idfs) for text in keys.texts]))
    assert rows.tolist() == [1, 3]  # Oslo is rarer than Rome; what has no term is never the rarest


def test_the_rarest_key_is_the_one_with_the_rarest_word() -> None:
    texts = ("Rome of Rome", "Rome of Rome", "Rome of Rome", "Oslo Rome of", "Lima Rome", "Lima Rome")
    names = ("Rome of Oslo", "Lima", "Rome")  # IDF by number of holders: Rome 6, of 4, Oslo 1, Lima 2
    idfs = term_idfs(passages(texts), names)
    assert idfs == {"rome": idf(6, 6), "of": idf(4, 6), "oslo": idf(1, 6), "lima": idf(2, 6)}
    assert single_key(np.array([0, 3]), np.array([rarity(name, idfs) for name in names])).tolist() == [0]


@pytest.mark.skipif(importlib.util.find_spec("umap") is None, reason="umap-learn is not installed")
def test_a_picture_is_drawn_and_the_same_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2, 8))
    keys_KD = np.repeat(centres, 10, 0) + 0.1 * rng.normal(size=(20, 8))
    for name in ("a.png", "b.png"):
        labels = ["PER"] * 10 + [""] * 10
        picture(tmp_path / name, centres, keys_KD, ["PER", "LOC"], labels)
    drawn = (tmp_path / "a.png").read_bytes()
    assert drawn[:4] == b"\x89PNG"
    assert drawn == (tmp_path / "b.png").read_bytes()


def test_without_umap_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(InputError, match="needs umap; pip install '\\.\\[eval\\]' in a clone of Quoth"):
        picture(tmp_path / "p.png", np.ones((1, 2)), np.ones((1, 2)), ["a"], ["b"])


@pytest.fixture
def model(tmp_path: Path) -> ZeroNER:
    """Two corpora, the first with a deleted document, one that was not embedded and one without keys."""
    corpora = [Corpus.create(tmp_path / f"{name}.quoth") for name in ("one", "two")]
    corpora[0].add([Document(f"a{i}", "Title" * (i % 2), text) for i, text in enumerate(TEXT[:4])])
    corpora[1].add([Document("b", "", TEXT[4]), Document("none", "", "the river runs")])
    made = ZeroNER.from_pretrained(tiny_npm(tmp_path / "npm"), corpora, recognizer=ByText(Capitals()))
    made.embed("fp32")
    corpora[0].delete(["a1"])
    corpora[0].add([Document("late", "Berlin", "Germany is east of France.")])
    return made


def test_stored_keys_are_those_that_the_encoder_makes_of_live_passages(model: ZeroNER) -> None:
    passages, keys = stored_keys(model)
    assert [each.document_id for each in passages] == ["a0", "a2", "a3", "late", "b", "none"]
    for number, (passage, encoded) in enumerate(zip(passages, model.encoder.encode(passages), strict=True)):
        rows = slice(*keys.offsets_P1[number : number + 2].tolist())
        np.testing.assert_allclose(keys.vectors_ND[rows], encoded.vectors_TD, atol=1e-5)
        places = encoded.tokens.offsets_T2.tolist()
        assert list(keys.texts[rows]) == [passage.text[start:end] or passage.title for start, end in places]


def test_a_search_with_all_keys_is_the_models_own_and_one_with_a_single_key_finds_fewer(model: ZeroNER) -> None:
    searches = {keep: single_key_search(model, keep) for keep in ("all", "idf", "random")}
    for text, name in (("Where does the Seine flow?", "Seine"), ("Was Pallas a bust?", "Pallas")):
        entity = (text.index(name), text.index(name) + len(name))
        own = [hit.passage for hit in model.search(text, 6, entities=[entity])]
        assert [hit.passage for hit in searches["all"](text, entity, 6)] == own
        for keep in ("idf", "random"):
            assert {hit.passage.document_id for hit in searches[keep](text, entity, 6)} == {
                each.document_id for each in own
            }
            assert searches[keep](text, None, 6) == []


def test_the_picture_shows_each_question_with_the_key_that_is_nearest_in_a_right_passage(
    model: ZeroNER, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(entity_search, "picture", lambda *given: drawn.extend(given))
    monkeypatch.setattr(entity_search, "OTHERS", 4)
    text = "Was Pallas a bust?"
    question = EntityQuestion(QAExample(text, text, ("nevermore",)), "P1", (4, 10))
    entity_search.picture_of(tmp_path / "p.png", [question], model)
    path, queries_QD, keys_KD, query_labels, key_labels = drawn
    assert path == tmp_path / "p.png"
    assert (query_labels, key_labels) == (["P1"], ["", "", "", "", "P1"])
    passages, keys = stored_keys(model)
    sims_N = keys.vectors_ND @ queries_QD[0]
    right = [number for number, each in enumerate(passages) if "nevermore" in each.text]
    rows = [row for number in right for row in range(*keys.offsets_P1[number : number + 2].tolist())]
    np.testing.assert_allclose(keys_KD[-1], keys.vectors_ND[max(rows, key=lambda row: sims_N[row])], atol=1e-6)
