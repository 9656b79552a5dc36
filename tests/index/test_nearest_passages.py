"""The nearest distinct passages against a comparison with every passage, while corpora change."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from quoth.corpus.corpus import Corpus
from quoth.corpus.view import parts
from quoth.encoders.keys import EncodedPassage, TextSpan
from quoth.errors import EmptyCorpusError, EncoderMismatchError, InputError
from quoth.index import retriever as retriever_module
from quoth.index.key_table import KeyHits
from quoth.index.retriever import Retriever
from quoth.records import Document, Passage
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import TokenizedPassage

Found = list[list[tuple[float, tuple[int, int]]]]
D = 8


class Random:
    """Vectors drawn from each text: one key a passage, or `many`, one a character."""

    keys, name, dimensions, scale = "passages", "random", D, 2.0

    def __init__(self, many: bool = False) -> None:
        self.many, self.encoded = many, 0
        self.fingerprint = ("many" if many else "once").ljust(16, "0")

    def vectors(self, text: str) -> NDArray[np.float32]:
        """Those of a text of x are all alike, and near each other's."""
        if text.startswith("x"):
            return np.linspace(1, 1.01, len(text) * D, dtype=np.float32).reshape(-1, D)
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        return rng.standard_normal((len(text) if self.many else 1, D)).astype(np.float32)

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        self.encoded += len(passages)
        return [self._encoded(each.text) for each in passages]

    def _encoded(self, text: str) -> EncodedPassage:
        vectors_TD = self.vectors(text)
        count = len(vectors_TD)
        offsets_T2 = np.stack([np.arange(count), np.arange(count) + 1], axis=1)
        flags_T = np.full(count, MAY_START | MAY_END, np.uint8)
        zeros = np.zeros(count, np.uint64)
        return EncodedPassage(TokenizedPassage(zeros.astype(np.int32), offsets_T2, flags_T, zeros, ()), vectors_TD)

    def words(self, query: str) -> NDArray[np.float32]:
        return self.vectors(query)

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        return np.stack([self.vectors(text)[0] for text, _, _ in list(places)[:count]])


def document(name: str, count: int = 3) -> Document:
    return Document(name, "", " ".join(f"{name}{i}. And so." for i in range(count)))


@pytest.fixture
def corpora(tmp_path: Path) -> list[Corpus]:
    """Two corpora, the first of two segments with deletions and a replaced document, all embedded but the last few."""
    first, second = (Corpus.create(tmp_path / f"{name}.quoth", splitter="words:3") for name in ("one", "two"))
    first.add([document(f"a{i}") for i in range(6)])
    first.add([document(f"b{i}") for i in range(6)])
    second.add([document(f"c{i}") for i in range(4)])
    return [first, second]


def change(corpora: list[Corpus]) -> None:
    first, second = corpora
    first.delete(["a1", "b4"])
    first.replace([document("a2", 5)])
    second.add([document("late")])


def fresh(corpora: list[Corpus]) -> int:
    """How many passages `change` has added."""
    return len(corpora[0].rows_of("a2")) + len(corpora[1].rows_of("late"))


def embed(corpora: list[Corpus], encoder: Random, precision: str) -> Retriever:
    retriever = Retriever(corpora, encoder)
    for tables in retriever.tables:
        tables.build(precision)
    return retriever


def brute(
    corpora: list[Corpus], encoder: Random, q_QD: NDArray[np.float32], hidden: Sequence[Collection[int]]
) -> Found:
    """Every live passage of each query, nearest first."""
    found: Found = []
    for q_D, rows in zip(q_QD, hidden, strict=True):
        scored = [
            (max(2.0 * float(q_D @ vector_D) for vector_D in encoder.vectors(passage.text)), (number, passage.row))
            for number, corpus in enumerate(corpora)
            for passage in corpus.passages()
            if passage.row not in rows
        ]
        found.append(sorted(scored, key=lambda pair: (-pair[0], pair[1])))
    return found


def assert_same(found: Found, expected: Found, k: int) -> None:
    """The same passages in the same order, but that equal vectors may differ in the last bit of their similarity."""
    for mine, every in zip(found, expected, strict=True):
        score_of, wanted = {place: score for score, place in every}, [score for score, _ in every[:k]]
        assert len({place for _, place in mine}) == len(mine)
        assert [score_of[place] for _, place in mine] == pytest.approx(wanted, abs=1e-5)
        assert [score for score, _ in mine] == pytest.approx(wanted, abs=1e-4)


def queries(count: int) -> NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal((count, D)).astype(np.float32)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("k", [1, 4, 1000])
def test_nearest_passages_equal_brute_force(corpora: list[Corpus], many: bool, k: int) -> None:
    encoder, q_QD = Random(many), queries(5)
    retriever = embed(corpora, encoder, "fp32")
    for changed in (False, True):
        if changed:
            change(corpora)
        every = [row for corpus in corpora for row in corpus.live_rows().tolist()]
        hidden: list[Collection[int]] = [(), {0, 1, 2}, every[3:30], every, [10**9]]
        found = retriever.nearest_passages(q_QD, k, hidden)
        assert_same(found, brute(corpora, encoder, q_QD, hidden), k)
        assert found[3] == []
        assert len(found[0]) == min(k, sum(corpus.num_passages for corpus in corpora))
    assert retriever.nearest_passages(q_QD[:0], k, []) == []


@pytest.mark.parametrize("many", [False, True])
def test_a_part_with_fewer_passages_than_k_is_searched_once(
    corpora: list[Corpus], many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, q_QD, depths = Random(many), queries(3), list[int]()
    embed(corpora, encoder, "fp32")
    search = retriever_module.search_tables
    monkeypatch.setattr(retriever_module, "search_tables", lambda *given: (depths.append(given[2]), search(*given))[1])
    part = parts(corpora, "id in ('a3', 'c1')")
    assert all(each.num_passages for each in part)
    retriever = Retriever(part, encoder)
    live = sum(len(encoder.vectors(each.text)) for corpus in part for each in corpus.passages())
    found = retriever.nearest_passages(q_QD, live + 1, [()] * 3)
    assert_same(found, brute(part, encoder, q_QD, [()] * 3), live + 1)
    assert depths == [live + 1]


def test_late_passages_are_encoded_once_and_deleted_ones_never_found(corpora: list[Corpus]) -> None:
    encoder = Random()
    retriever = embed(corpora, encoder, "fp32")
    change(corpora)
    encoder.encoded = 0
    for _ in range(3):
        (found,) = retriever.nearest_passages(queries(1), 1000, [()])
    assert encoder.encoded == fresh(corpora)
    names = {corpora[number].passage(row).document_id for _, (number, row) in found}
    assert names == {each.id for corpus in corpora for each in corpus.documents()}
    assert "a1" not in names


@pytest.mark.parametrize(("precision", "within"), [("fp16", 0.02), ("sq8", 0.1), ("sq4", 1.5)])
def test_stored_in_few_bits_they_are_about_as_near(corpora: list[Corpus], precision: str, within: float) -> None:
    encoder, q_QD = Random(), queries(8)
    retriever = embed(corpora, encoder, precision)
    found = retriever.nearest_passages(q_QD, 1000, [()] * 8)
    for scored, expected in zip(found, brute(corpora, encoder, q_QD, [()] * 8), strict=True):
        exact = {place: score for score, place in expected}
        assert len(scored) == len(exact)
        assert max(abs(score - exact[place]) for score, place in scored) < within


@pytest.mark.parametrize("k", [1, 2, 5])
def test_distinct_passages_are_found_where_one_owns_most_keys(tmp_path: Path, k: int) -> None:
    corpus = Corpus.create(tmp_path / "one.quoth")
    corpus.add([Document("long", "", "x" * 500), Document("short", "", "x" * 30)])
    corpus.add([Document(f"d{i}", "", f"d{i}") for i in range(6)])
    encoder, q_QD = Random(many=True), np.ones((1, D), np.float32)
    retriever = embed([corpus], encoder, "fp32")
    for hidden in ((), {0}, {0, 1}):
        found = retriever.nearest_passages(q_QD, k, [hidden])
        assert len(found[0]) == len({place for _, place in found[0]}) == k
        assert_same(found, brute([corpus], encoder, q_QD, [hidden]), k)


def test_equally_near_passages_go_by_corpus_and_row(tmp_path: Path) -> None:
    corpora = [Corpus.create(tmp_path / f"{name}.quoth") for name in ("one", "two")]
    for corpus in corpora:
        corpus.add([Document(f"d{i}", "", "the same") for i in range(4)])
    encoder = Random()
    retriever = embed(corpora, encoder, "fp32")
    corpora[0].delete(["d1"])
    (found,) = retriever.nearest_passages(encoder.vectors("the same"), 5, [()])
    assert [place for _, place in found] == [(0, 0), (0, 2), (0, 3), (1, 0), (1, 1)]


def test_compaction_carries_keys(corpora: list[Corpus]) -> None:
    encoder, q_QD = Random(), queries(4)
    retriever = embed(corpora, encoder, "fp32")
    change(corpora)
    before = brute(corpora, encoder, q_QD, [()] * 4)
    encoder.encoded = 0
    for corpus in corpora:
        corpus.compact()
    found = retriever.nearest_passages(q_QD, 1000, [()] * 4)
    assert_same(found, brute(corpora, encoder, q_QD, [()] * 4), 1000)
    assert [[score for score, _ in each] for each in before] == [
        pytest.approx([score for score, _ in each], abs=1e-4) for each in found
    ]
    assert encoder.encoded == fresh(corpora)
    assert_same(embed(corpora, encoder, "fp32").nearest_passages(q_QD, 7, [()] * 4), found, 7)
    assert_same(Retriever(corpora, encoder).nearest_passages(q_QD, 7, [()] * 4), found, 7)
    assert encoder.encoded == 2 * fresh(corpora)


def test_dense_search_with_one_query_vector_finds_the_nearest(corpora: list[Corpus]) -> None:
    encoder = Random()
    retriever = embed(corpora, encoder, "fp32")
    (expected,) = retriever.nearest_passages(encoder.words("b3"), 6, [()])
    found = retriever.late_interaction("b3", 6)
    assert [(place, round(score, 4)) for score, place in found] == [
        (place, round(score, 4)) for score, place in expected
    ]


@pytest.mark.parametrize("k", [1, 4, 1000])
def test_late_interaction_equals_brute_force(corpora: list[Corpus], k: int) -> None:
    encoder = Random(many=True)
    retriever = embed(corpora, encoder, "fp32")
    change(corpora)
    q_TD = encoder.words("a query")
    every = [
        (sum(max(2.0 * float(q_D @ c_D) for c_D in encoder.vectors(each.text)) for q_D in q_TD), (number, each.row))
        for number, corpus in enumerate(corpora)
        for each in corpus.passages()
    ]
    expected = sorted(every, key=lambda pair: (-pair[0], pair[1]))
    assert_same([retriever.late_interaction("a query", k)], [expected], k)


def test_equally_near_passages_of_late_interaction_go_by_corpus_and_row(
    corpora: list[Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Random()
    monkeypatch.setattr(encoder, "vectors", lambda _: np.ones((1, D), np.float32))
    retriever = embed(corpora, encoder, "fp32")
    count = corpora[0].num_passages
    expected = [(16.0, (0, row)) for row in range(count)] + [(16.0, (1, 0))]
    assert retriever.late_interaction("any", count + 1) == expected
    monkeypatch.setattr(encoder, "vectors", lambda text: np.full((1, D), 1 + len(text) % 2, np.float32))
    corpora[0].add(Document(f"m{i}", "", "x" * (1 + i % 6)) for i in range(99))
    rows = corpora[0].live_rows()[-99:].tolist()
    longer = [(64.0, (0, row)) for i, row in enumerate(rows) if not i % 2]
    assert embed(corpora, encoder, "fp32").late_interaction("any", 30) == longer[:30]


def test_the_nearest_keys_name_their_places(corpora: list[Corpus]) -> None:
    encoder, q_QD = Random(many=True), queries(3)
    found = embed(corpora, encoder, "fp32").nearest_keys(q_QD, 10, [()] * 3)
    for q_D, keys in zip(q_QD, found, strict=True):
        for (number, row), key in keys.items():
            passage = corpora[number].passage(row)
            best = int((encoder.vectors(passage.text) @ q_D).argmax())
            assert (key.start - passage.start, key.end - passage.start) == (best, best + 1)


@pytest.mark.parametrize("embedded", [False, True])
def test_the_nearest_key_in_each_passage_equals_brute_force(corpora: list[Corpus], embedded: bool) -> None:
    encoder, q_QD = Random(many=True), queries(3)
    retriever = embed(corpora, encoder, "fp32") if embedded else Retriever(corpora, encoder)
    change(corpora)
    places = [(number, row) for number, corpus in enumerate(corpora) for row in corpus.live_rows()[1::2].tolist()]
    found = retriever.keys_in(places, q_QD)
    assert sorted(found) == places
    for (number, row), keys in found.items():
        passage = corpora[number].passage(row)
        sims_QN = 2.0 * q_QD @ encoder.vectors(passage.text).T
        best_Q = sims_QN.argmax(axis=1)
        assert [key.similarity for key in keys] == pytest.approx(sims_QN.max(axis=1), abs=1e-4)
        assert [(key.start - passage.start, key.end - passage.start) for key in keys] == [(n, n + 1) for n in best_Q]


def test_of_each_group_its_own_passages_by_corpus_and_row(corpora: list[Corpus]) -> None:
    encoder = Random()
    retriever = embed(corpora, encoder, "fp32")
    change(corpora)
    (late,), replaced = corpora[1].rows_of("late")[:1], corpora[0].rows_of("a2")
    encoder.encoded = 0
    groups = [[(1, late), (0, replaced[1]), (0, 9), (1, 2), (0, replaced[0]), (0, 3)], [], [(1, late), (1, 0)]]
    found = retriever.gather(groups)
    assert encoder.encoded == 3
    rows = [[(keys.corpus.name, keys.passage_rows_P.tolist()) for keys in tables] for tables in found]
    assert rows == [[("one", [3, 9]), ("one", replaced[:2]), ("two", [2]), ("two", [late])], [], rows[2]]
    assert rows[2] == [("two", [0]), ("two", [late])]
    for tables in found:
        for keys in tables:
            texts = [keys.corpus.passage(row).text for row in keys.passage_rows_P.tolist()]
            expected = np.concatenate([2.0 * encoder.vectors(text) for text in texts]) @ np.ones(D)
            np.testing.assert_allclose(keys.vectors.similarities(np.ones((1, D), np.float32))[0], expected, atol=1e-4)


def test_passages_of_long_ago_are_encoded_again(corpora: list[Corpus], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retriever_module, "CACHED_PASSAGES", 3)
    encoder = Random()
    retriever = Retriever(corpora, encoder)

    def encoded(*rows: int) -> int:
        before = encoder.encoded
        retriever.gather([[(0, row) for row in rows]])
        return encoder.encoded - before

    asked = [(0, 1, 2), (0,), (3,), (2,), (1,), (3, 2, 1), (0,)]
    assert [encoded(*rows) for rows in asked] == [3, 0, 1, 0, 1, 0, 1]
    corpora[0]._snapshot = corpora[1]._snapshot  # what was encoded is not read again
    assert retriever.passage((0, 0)).document_id == "a0"


def test_every_token_of_a_boosted_passage_is_a_hit(corpora: list[Corpus]) -> None:
    retriever = embed(corpora, Random(many=True), "fp32")
    none = np.zeros(0, np.int64)
    boosted = retriever.boost([KeyHits(keys, none, none) for keys in retriever.key_tables()], [(0, 1), (1, 2), (1, 0)])
    wanted = {"one": {1}, "two": {0, 2}}
    for each in boosted:
        keys = each.keys
        rows = {int(row) for row in keys.passage_rows_P} & wanted[keys.corpus.name]
        tokens = [
            n
            for p, row in enumerate(keys.passage_rows_P.tolist())
            if row in rows
            for n in range(int(keys.offsets_P1[p]), int(keys.offsets_P1[p + 1]))
        ]
        assert each.start_rows.tolist() == each.end_rows.tolist() == tokens
        assert each.in_boosted(np.arange(keys.num_keys)).tolist() == [n in tokens for n in range(keys.num_keys)]


def test_some_segments_alone_are_searched(corpora: list[Corpus]) -> None:
    encoder = Random()
    embed(corpora, encoder, "fp32")
    first, second = corpora[0].segments
    only = Retriever(corpora[:1], encoder, [second.name])
    (found,) = only.nearest_passages(queries(1), 1000, [()])
    assert sorted(row for _, (_, row) in found) == list(range(second.first_row, second.last_row))
    assert first.last_row == second.first_row


def test_a_deleted_passage_is_never_among_the_best_by_late_interaction(corpora: list[Corpus]) -> None:
    retriever = embed(corpora, Random(), "fp32")
    (_, (number, row)), *others = retriever.late_interaction("b3", 6)
    corpora[number].delete([corpora[number].passage(row).document_id])
    found = Retriever(corpora, Random()).late_interaction("b3", 6)
    assert (number, row) not in [place for _, place in found]
    assert [place for _, place in found[: len(others)]] == [place for _, place in others][: len(found)]


def test_what_is_missing_is_said(corpora: list[Corpus], tmp_path: Path) -> None:
    encoder, other = Random(), Random(many=True)
    one, ask = corpora[0], (queries(1), 3, [()])
    with pytest.raises(
        InputError,
        match=r"one.quoth: 2 of 2 segments have no vectors of random; `quoth embed .* --keys passages --model random`",
    ):
        Retriever([one], encoder).nearest_passages(*ask)
    embed([one], other, "fp32")
    with pytest.raises(EncoderMismatchError, match=r"has keys of random \(many0000\), not of random \(once0000\); `q"):
        Retriever([one], encoder).nearest_passages(*ask)
    empty = Corpus.create(tmp_path / "empty.quoth")
    for none in ([], [empty]):
        with pytest.raises(EmptyCorpusError, match="no passage to search"):
            Retriever(none, encoder).nearest_passages(*ask)
