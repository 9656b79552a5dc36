"""Codes that propose rows: what they find, what they never find, what is kept of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quoth import NPM
from quoth.corpus.corpus import Corpus
from quoth.errors import CorruptionError, InputError
from quoth.index import codes as module
from quoth.index.codes import Codes, build_codes
from quoth.index.key_store import follow
from quoth.index.key_table import KeyTable
from quoth.index.search import search_all, search_exactly, search_tables, search_together
from quoth.index.tables import sample_queries
from quoth.index.vectors import KeyVectors, stored
from quoth.records import Document
from quoth.storage import seal_folder
from quoth.text.tokenizer import MASK
from tiny import tiny_bert
from token_tables import fitted, word_table

N, D, K = 6000, 32, 50


@pytest.fixture(scope="module")
def vectors() -> KeyVectors:
    """Vectors in 200 clusters, some dimensions wider than others, as tokens' are, in eight bits."""
    rng = np.random.default_rng(0)
    spread = np.linspace(1.5, 0.1, D)
    centres = spread * rng.normal(size=(200, D))
    raw = (centres[rng.integers(200, size=N)] + 0.4 * spread * rng.normal(size=(N, D))).astype(np.float32)
    raw /= np.linalg.norm(raw, axis=1, keepdims=True)
    quantizer = fitted(raw)
    return KeyVectors(stored(raw, "sq8", quantizer), 20.0, quantizer)


@pytest.fixture(scope="module")
def q_QD(vectors: KeyVectors) -> Any:
    rng = np.random.default_rng(1)
    near = vectors.floats(rng.choice(N, 24)) + 0.1 * rng.normal(size=(24, D))
    return near.astype(np.float32)


def table_of(vectors: KeyVectors, live: Any = None) -> KeyTable:
    return replace(word_table(["x " * 10] * (N // 10), np.zeros((N, 2)), live=live), vectors=vectors)


def exact(vectors: KeyVectors, q_QD: Any, k: int, live: Any = None) -> list[set[int]]:
    sims = q_QD.astype(np.float64) @ vectors.floats(slice(None)).astype(np.float64).T
    if live is not None:
        sims[:, ~np.repeat(live, 10)] = -np.inf
    return [set(np.argsort(-row)[:k].tolist()) for row in sims]


def build(folder: Path, vectors: KeyVectors, q_QD: Any, recall: float = 0.97) -> Codes:
    truth = [np.array(sorted(rows)) for rows in exact(vectors, q_QD, K)]
    folder.mkdir()
    build_codes(folder, vectors, q_QD, truth, recall)
    seal_folder(folder)
    return Codes(folder, N)


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory, vectors: KeyVectors, q_QD: Any) -> Codes:
    return build(tmp_path_factory.mktemp("codes") / "flat", vectors, q_QD)


def test_the_recall_asked_for_is_found(codes: Codes, vectors: KeyVectors, q_QD: Any) -> None:
    found = search_tables([replace(table_of(vectors), codes=codes)], q_QD, K)[0]
    truth = exact(vectors, q_QD, K)
    recall = np.mean([len(rows & set(best.rows_K.tolist())) / K for rows, best in zip(truth, found, strict=True)])
    assert recall == pytest.approx(codes.facts.recall, abs=2e-3)
    assert codes.facts.recall >= codes.facts.target == 0.97
    assert codes.facts.spec == "PCAR16,PQ8x4fs"
    sims = vectors.similarities(q_QD)
    for best, sim_N in zip(found, sims, strict=True):
        assert len(best.rows_K) == K
        assert (np.diff(best.sims_K) <= 0).all()
        np.testing.assert_allclose(best.sims_K, sim_N[best.rows_K], rtol=1e-5)


def test_finer_codes_where_coarse_ones_do_not_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = KeyVectors(rng.normal(size=(N, D)).astype(np.float32), 1.0)
    q_QD = noise.floats(slice(0, 8)) + np.float32(0.1)
    assert build(tmp_path / "noise", noise, q_QD).facts.spec == "PCAR32,PQ16x4fs"
    assert build(tmp_path / "easy", noise, q_QD, 0.5).facts.spec == "PCAR16,PQ8x4fs"


def test_a_lower_recall_proposes_less(codes: Codes, vectors: KeyVectors, q_QD: Any, tmp_path: Path) -> None:
    low = build(tmp_path / "low", vectors, q_QD, 0.6)
    assert low.facts.factor < codes.facts.factor
    assert low.count(K) < codes.count(K) == int(K * codes.facts.factor)
    assert codes.count(1) == codes.count(K)
    assert codes.count(10 * N) == N


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_deleted_rows_never_appear_and_take_no_place(
    codes: Codes, vectors: KeyVectors, q_QD: Any, share: float
) -> None:
    live = np.random.default_rng(2).random(N // 10) < share
    found = search_tables([replace(table_of(vectors, live), codes=codes)], q_QD, K)[0]
    truth = exact(vectors, q_QD, K, live)
    recalls = []
    for rows, best in zip(truth, found, strict=True):
        assert live[best.rows_K // 10].all()
        assert len(best.rows_K) == min(K, 10 * np.count_nonzero(live))
        recalls.append(len(rows & set(best.rows_K.tolist())) / K)
    assert np.mean(recalls) > 0.95


def test_everything_is_found_when_everything_is_wanted(codes: Codes, vectors: KeyVectors, q_QD: Any) -> None:
    best = search_tables([replace(table_of(vectors), codes=codes)], q_QD[:1], 10 * N)[0][0]
    assert sorted(best.rows_K.tolist()) == list(range(N))


@pytest.mark.parametrize("cells", [False, True], ids=["flat", "cells"])
def test_codes_in_several_files(
    vectors: KeyVectors, q_QD: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: bool
) -> None:
    monkeypatch.setattr(module, "ROWS_PER_FILE", 2500)
    monkeypatch.setattr("quoth.index.vectors.ROWS_AT_A_TIME", 999)
    if cells:
        monkeypatch.setattr(module, "IVF_FROM", N)
    codes = build(tmp_path / "codes", vectors, q_QD)
    assert len(list((tmp_path / "codes").glob("*.faiss"))) == 3
    assert (codes.facts.probes > 0) == ("IVF" in codes.facts.spec) == cells
    assert codes.facts.recall >= 0.97
    found = search_tables([replace(table_of(vectors), codes=codes)], q_QD, K)[0]
    recalls = [
        len(rows & set(best.rows_K.tolist())) / K for rows, best in zip(exact(vectors, q_QD, K), found, strict=True)
    ]
    assert np.mean(recalls) > 0.95
    assert all(best.rows_K.max() >= 2500 for best in found)


def test_tables_with_and_without_codes_are_searched_together(codes: Codes, vectors: KeyVectors, q_QD: Any) -> None:
    coded, plain = replace(table_of(vectors), codes=codes), table_of(vectors)
    q_2BD = np.stack([q_QD[:3], q_QD[3:6]])
    hidden = [{100}, set(), {101, 102}]
    together = list(search_together([coded, plain], hidden, q_2BD, K))
    for b, hits in enumerate(together):
        alone = search_all([coded.without(hidden[b]), plain.without(hidden[b])], *q_2BD[:, b], K)
        for mine, theirs in zip(hits, alone, strict=True):
            np.testing.assert_array_equal(mine.start_rows, theirs.start_rows)
            np.testing.assert_array_equal(mine.end_rows, theirs.end_rows)
        for side in (0, 1):
            found = [(each.start_rows, each.end_rows)[side] for each in hits]
            assert sum(map(len, found)) == K
            assert {100 + row // 10 for each in found for row in each.tolist()}.isdisjoint(hidden[b])


def test_tables_share_what_is_compared(vectors: KeyVectors, q_QD: Any, tmp_path: Path) -> None:
    """Four tables compare about as many vectors as one, and find as many of the nearest of all."""
    size, k = N // 4, 400
    parts = [replace(vectors, stored_ND=vectors.stored_ND[at : at + size]) for at in range(0, N, size)]
    words = word_table(["x " * 10] * (size // 10), np.zeros((size, 2)))
    tables, compared = [], []

    class Counting(KeyVectors):
        def similarities(self, q_QD: Any, rows_R: Any = None) -> Any:
            compared.append(len(rows_R))
            return super().similarities(q_QD, rows_R)

    for number, part in enumerate(parts):
        keys = replace(words, vectors=part)
        truth = [near.rows_K for near in search_exactly(keys, q_QD[:12], k)]
        (folder := tmp_path / str(number)).mkdir()
        build_codes(folder, part, q_QD[:12], truth, 0.97)
        seal_folder(folder)
        counting = Counting(part.stored_ND, part.scale, part.quantizer)
        tables.append(replace(keys, vectors=counting, codes=Codes(folder, size)))
    depths = [depth for depth, _ in tables[0].codes.facts.deeper]
    assert depths == [200, 100]
    found = search_tables(tables, q_QD[12:], k)
    wanted = sum(table.codes.count(k, 1 / 4) for table in tables)
    assert wanted < sum(table.codes.count(k) for table in tables) / 2
    assert 12 * wanted <= sum(compared) < 1.02 * 12 * wanted  # of equal estimates all
    recalls = []
    for query, rows in enumerate(exact(vectors, q_QD[12:], k)):
        sims = np.concatenate([each[query].sims_K for each in found])
        mine = np.concatenate([each[query].rows_K + size * t for t, each in enumerate(found)])
        recalls.append(len(rows & set(mine[np.argsort(-sims)[:k]].tolist())) / k)
    assert np.mean(recalls) > 0.95


def test_damage_is_named(vectors: KeyVectors, q_QD: Any, tmp_path: Path) -> None:
    build(tmp_path / "codes", vectors, q_QD)
    with pytest.raises(CorruptionError, match="do not fit the vectors"):
        Codes(tmp_path / "codes", N + 1)
    file = tmp_path / "codes" / "rows-000.faiss"
    whole = file.read_bytes()
    file.write_bytes(b"\0" * len(whole))
    with pytest.raises(CorruptionError, match=r"rows-000\.faiss: checksum mismatch"):
        Codes(tmp_path / "codes", N).propose(q_QD, 5)
    file.write_bytes(whole[:-1])
    with pytest.raises(CorruptionError, match=r"rows-000\.faiss"):
        Codes(tmp_path / "codes", N)


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NPM:
    """A corpus of about 2,000 tokens in one segment, large enough for codes, and a small one."""
    monkeypatch.setattr(module, "FLAT_FROM", 1000)
    rng = np.random.default_rng(0)
    words = ["the", "raven", "sat", "upon", "a", "bust", "of", "Pallas", "above", "Paris", "Berlin", "river", "door"]
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:30")
    corpus.add(Document(f"d{i}", "Title", f"{' '.join(rng.choice(words, 60))}.") for i in range(40))
    corpus.add([Document("small", "Small", "the raven sat in Paris.")])
    return NPM.from_pretrained(str(tiny_bert(tmp_path / "model")), corpus)


def facts_of(npm: NPM) -> list[dict[str, Any]]:
    files = sorted(npm._retriever.corpora[0].path.glob("keys/*/*.codes/codes.json"))
    return [json.loads(file.read_text()) for file in files]


def test_embed_makes_codes_of_large_segments(npm: NPM) -> None:
    npm.embed()
    (facts,) = facts_of(npm)
    assert (facts["target"], facts["rows"] > 1000, facts["num_queries"]) == (0.97, True, 64)
    corpus, (tables,) = npm._retriever.corpora[0], npm._retriever.tables
    coded, small = tables.open()[0]
    assert coded.codes is not None
    assert small.codes is None
    found = npm.fill("the raven sat [MASK] the door", passages=None, k=40, top_k=10)
    npm.embed(recall=1.0)
    npm.embed()
    assert not facts_of(npm)
    compared = npm.fill("the raven sat [MASK] the door", passages=None, k=40, top_k=10)
    assert found[0].text == compared[0].text
    assert len({each.text for each in found} & {each.text for each in compared}) > 3
    corpus.verify()


def test_a_recall_that_cannot_be_met_is_told(npm: NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    assert npm.embed(recall=0.5) == []
    monkeypatch.setattr(module, "DEPTH", 40)
    monkeypatch.setattr(module, "FACTORS", (1.0,))
    (short,) = npm.embed(recall=0.9999)
    (facts,) = facts_of(npm)
    corpus = npm._retriever.corpora[0]
    assert (short.corpus, short.segment) == (corpus.path, corpus.segments[0].name)
    assert 0 < short.recall == facts["recall"] < short.target == facts["target"] == 0.9999
    assert npm.embed() == [short]
    assert npm.embed(recall=1) == []


def test_four_bits_have_codes_too(npm: NPM) -> None:
    assert npm.embed("sq4") == []
    (facts,) = facts_of(npm)
    assert facts["recall"] >= 0.97
    coded, _ = npm._retriever.tables[0].open()[0]
    assert coded.codes is not None
    assert npm.fill("the raven sat [MASK] the door", passages=None, k=40)
    npm._retriever.corpora[0].compact()
    assert npm.embed("sq4") == []
    npm._retriever.corpora[0].verify()


def test_the_recall_is_kept_until_another_is_asked_for(npm: NPM) -> None:
    npm.embed(recall=0.8)
    folder = next(npm._retriever.corpora[0].path.glob("keys/*/*.codes"))
    made = folder.stat().st_mtime_ns
    npm.embed()
    assert folder.stat().st_mtime_ns == made
    npm.embed(recall=0.9)
    assert [each["target"] for each in facts_of(npm)] == [0.9]
    for value in (0.2, 1.5, float("nan")):
        with pytest.raises(InputError, match=r"recall is .*; it must be .*from 0.5 to 1"):
            npm.embed(recall=value)


def test_codes_that_another_process_changes(npm: NPM) -> None:
    npm.embed()
    expected = npm.fill("a [MASK]", passages=None, k=40)
    for recall in (1.0, 0.8):
        reader = NPM(npm.encoder, [Corpus.open(npm._retriever.corpora[0].path)])
        npm.embed(recall=0.97)
        assert reader._retriever.tables[0].open()[0][0].codes is not None
        npm.embed(recall=recall)
        assert [each.text for each in reader.fill("a [MASK]", passages=None, k=40)][:1] == [expected[0].text]


def test_blanks_that_do_not_fit_are_left_out(npm: NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm.encoder, "takes", lambda text: False)
    npm.embed()
    assert not facts_of(npm)
    assert npm.fill("a [MASK]", passages=None)


def test_broken_off_codes_are_made_again(npm: NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(folder: Path, *rest: Any) -> None:
        (folder / "rows-000.faiss").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "build_codes", breaking)
        with pytest.raises(KeyboardInterrupt):
            npm.embed()
    assert npm.fill("a [MASK]", passages=None)
    npm.embed()
    assert len(facts_of(npm)) == 1
    assert not list(npm._retriever.corpora[0].path.glob("keys/*/*.part"))


def test_compaction_and_verify_know_codes(npm: NPM) -> None:
    npm.embed()
    corpus = npm._retriever.corpora[0]
    file = next(corpus.path.glob("keys/*/*.codes/*.faiss"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CorruptionError, match=r"rows-000\.faiss"):
        corpus.verify()
    corpus.delete(["d1"])
    corpus.compact()
    follow(corpus)
    assert not list(corpus.path.glob("keys/*/*.codes"))


def test_sample_queries_are_blanks_of_the_tables_passages(npm: NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    npm.embed()
    keys = npm._retriever.tables[0].open()[0][0]
    asked: list[str] = []
    blanks = npm.encoder.blanks
    monkeypatch.setattr(npm.encoder, "blanks", lambda texts: asked.extend(texts) or blanks(texts))
    assert sample_queries(npm.encoder, keys, 5).shape == (10, 32)
    passages = [passage.text for passage in npm._retriever.corpora[0].passages()]
    for text in asked:
        before, after = text.split(MASK)
        assert any(each.startswith(before) and each.endswith(after) and len(each) > len(text) - 6 for each in passages)
