"""BM25: the words of passages and their file, scores by hand, names in any script, deleted passages, plain loops,
snapshots, several corpora as one."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoth.corpus import bm25
from quoth.corpus.bm25 import LiveWords, Query, Words, best_places, count, hashes, indexed_text, search
from quoth.corpus.corpus import Corpus
from quoth.errors import CorruptionError
from quoth.records import Document
from quoth.text.terms import ANALYZERS, FIRST, analyse, analyse_apart, is_unspaced_character

ANY_TEXT = st.text(st.characters(exclude_categories=()))
TEXTS = ["the cat sat", "the dog sat on the cat", "a bird", "the the the end of the cat show"]
WORDS = ["The cat saw the cats", "", "北京 cat", "dog"]
Scored = dict[int, float]


def words_of(texts: Sequence[str], first_row: int = 0, deleted: Collection[int] = ()) -> LiveWords:
    return LiveWords(Words.of(texts), first_row, sorted(deleted))


def ranked(parts: Sequence[LiveWords], query: str, k: int = 10) -> Scored:
    rows, scores = search(parts, Query.of(query), k, count(parts, Query.of(query)))
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def found(texts: Sequence[str], query: str, k: int = 10) -> list[int]:
    return list(ranked([words_of(texts)], query, k))


def by_hand(texts: dict[int, str], query: str, k: int = 10**9, k1: float = 1.2, b: float = 0.75) -> Scored:
    """The best of these texts by plain loops, ties by row."""
    parts = {row: analyse_apart(text) for row, text in texts.items()}
    fields = {row: (each.words + each.joined, each.characters) for row, each in parts.items()}
    lengths = {row: (len(each.words), len(each.characters)) for row, each in parts.items()}
    scores = dict.fromkeys(texts, 0.0)
    for term in analyse(query):
        field = int(is_unspaced_character(term))
        held = {row: each[field] for row, each in fields.items()}
        length = {row: each[field] for row, each in lengths.items()}
        average = sum(length.values()) / len(held)
        holders = sum(term in each for each in held.values())
        idf = math.log(1 + (len(held) - holders + 0.5) / (holders + 0.5))
        for row, each in held.items():
            if frequency := each.count(term):
                scores[row] += idf * (k1 + 1) * frequency / (frequency + k1 * (1 - b + b * length[row] / average))
    best = sorted((row for row in scores if scores[row] > 0), key=lambda row: (-round(scores[row], 10), row))
    return {row: scores[row] for row in best[:k]}


def assert_ranked(found: Scored, wanted: Scored) -> None:
    assert list(found) == list(wanted)
    assert list(found.values()) == pytest.approx(list(wanted.values()), rel=1e-12)


def test_shapes_and_types() -> None:
    parts = [words_of(TEXTS)]
    rows, scores = search(parts, Query.of("cat"), 2, count(parts, Query.of("cat")))
    assert rows.shape == scores.shape == (2,)
    assert rows.dtype == np.dtype(np.int64)
    assert scores.dtype == np.dtype(np.float64)


def test_a_score_by_hand() -> None:
    # Of 4 passages 3 hold "cat"; they have 3, 6, 2 and 8 terms, 4.75 on average.
    idf = math.log(1 + 1.5 / 3.5)
    assert ranked([words_of(TEXTS)], "cat", 1) == {0: pytest.approx(idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / 4.75)))}


@pytest.mark.parametrize("query", ["cat", "the cat", "cat cat the", "the end birds nowhere"])
def test_scores_are_lucenes(query: str) -> None:
    assert_ranked(ranked([words_of(TEXTS)], query), by_hand(dict(enumerate(TEXTS)), query))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Καζαντζάκης", "Ο Νίκος Καζαντζάκης γεννήθηκε στο Ηράκλειο"),
        ("ΚΑΖΑΝΤΖΑΚΗΣ", "Ο Νίκος Καζαντζάκης γεννήθηκε στο Ηράκλειο"),
        ("세종", "세종대왕은 한글을 만들었다"),
        ("القاهرة", "تقع القاهرة على نهر النيل"),
        ("北京", "他住在北京市"),
        ("京", "他住在北京市"),
        ("Munchen", "In München steht ein Hofbräuhaus"),
        ("दिल्ली", "नई दिल्ली भारत की राजधानी है"),
        ("กรุงเทพ", "เมืองหลวงคือกรุงเทพมหานคร"),
        ("Достоевский", "Роман написал Достоевский"),
        ("running", "she runs"),
    ],
)
def test_names_in_any_script(query: str, text: str) -> None:
    texts = ["nothing here", text, "東西南北 のか 한국 μεγας आम بحر дом"]
    assert found(texts, query)[0] == 1
    assert_ranked(ranked([words_of(texts)], query), by_hand(dict(enumerate(texts)), query))


def test_one_character_asks_only_for_itself() -> None:
    texts = ["北京", "東西", "京", "a cat 京 京"]
    assert found(texts[:3], "京") == [2, 0]
    assert found(texts[:3], "西") == [1]
    assert_ranked(ranked([words_of(texts)], "京 cat"), by_hand(dict(enumerate(texts)), "京 cat"))


@pytest.mark.parametrize("query", ["", "  ", "?!", "🙂", "\x00", "zebra"])
def test_nothing_asked_or_nothing_found(query: str) -> None:
    assert found(TEXTS, query) == []


@pytest.mark.parametrize("query", ['"cat', "cat AND", "terms:cat", "(cat", "cat^", "row:[0 TO 5] cat", "-cat", "*cat"])
def test_query_syntax_is_plain_text(query: str) -> None:
    assert 0 in found(TEXTS, query)


def test_no_passages_and_none_alive() -> None:
    assert ranked([], "cat") == ranked([words_of([])], "cat") == ranked([words_of(["", "?"])], "cat") == {}
    assert ranked([words_of(TEXTS, deleted=range(4))], "cat") == {}


def test_k_bounds() -> None:
    assert found(TEXTS, "cat", 0) == found(TEXTS, "cat", -3) == []
    assert sorted(found(TEXTS, "cat", 10**12)) == [0, 1, 3]


def test_ties_go_by_row() -> None:
    parts = [words_of(["same words here"] * 30, first) for first in (60, 0, 30)]
    assert list(ranked(parts, "words same", 5)) == [0, 1, 2, 3, 4]
    assert list(ranked(parts, "words same", 100)) == list(range(90))


def test_deleted_passages_do_not_count() -> None:
    parts = [words_of(TEXTS, 10, {0}), words_of(["a cat", "the very long tale of a cat and its tail"], 20, {1})]
    left = {11: TEXTS[1], 12: TEXTS[2], 13: TEXTS[3], 20: "a cat"}
    for query in ("cat", "the cat", "tail", "bird cat"):
        assert_ranked(ranked(parts, query), by_hand(left, query))


@pytest.mark.parametrize("lookup_cost", [0, 8, 10**9])
@pytest.mark.parametrize("seed", range(3))
def test_pruning_equals_plain_loops(monkeypatch: pytest.MonkeyPatch, seed: int, lookup_cost: int) -> None:
    monkeypatch.setattr(bm25, "_LOOKUP_COST", lookup_cost)
    chance = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(60)]
    common = [1 / (1 + number) for number in range(60)]
    texts = [" ".join(chance.choices(vocabulary, common, k=chance.randrange(25))) for _ in range(240)]
    deleted = set(chance.sample(range(240), 40))
    bounds = [(0, 100), (100, 101), (101, 240)]
    parts = [words_of(texts[a:b], a, {row - a for row in deleted if a <= row < b}) for a, b in bounds]
    live = {row: text for row, text in enumerate(texts) if row not in deleted}
    for k in (1, 3, 20, 1000):
        query = " ".join(chance.choices(vocabulary, k=chance.randrange(1, 8)))
        assert_ranked(ranked(parts, query, k), by_hand(live, query, k))


SMALL = words_of([*TEXTS, "北京 세종대왕 กรุงเทพ"])


@given(query=ANY_TEXT)
def test_any_query_is_answered(query: str) -> None:
    scores = list(ranked([SMALL], query, 3).values())
    assert len(scores) <= 3
    assert scores == sorted(scores, reverse=True)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(ANY_TEXT, max_size=8))
def test_any_text_finds_itself(texts: list[str]) -> None:
    for row, text in enumerate(texts):
        assert (row in found(texts, text)) == bool(analyse(text))


QUERIES = ("apple pear", "pear", "apple apple plum", "the pear of Greece")


def fruit(number: int, chance: random.Random) -> Document:
    words = ["apple", "pear", "plum", "the", "of", "Greece", *(f"w{chance.randrange(50)}" for _ in range(9))]
    return Document(f"d{number}", f"Page {number}", " ".join(chance.choices(words, k=chance.randrange(3, 60))))


def answers(corpus: Corpus) -> list[Scored]:
    found = [corpus.bm25(query, 50) for query in QUERIES]
    return [dict(zip(rows.tolist(), scores.tolist(), strict=True)) for rows, scores in found]


def assert_by_hand(corpus: Corpus) -> None:
    texts = {each.row: f"{each.title} {each.text}" for each in corpus.passages()}
    for query, each in zip(QUERIES, answers(corpus), strict=True):
        assert_ranked(each, by_hand(texts, query, 50))


def test_a_snapshot_ranks_for_ever_as_it_did(tmp_path: Path) -> None:
    chance = random.Random(0)
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:20")
    corpus.add([fruit(number, chance) for number in range(20)])
    corpus.delete(["d3", "d7"])
    corpus.replace([fruit(5, chance)])
    then, number = answers(corpus), corpus.snapshot
    assert_by_hand(corpus)
    reader = Corpus.open(corpus.path, snapshot=number)
    corpus.add([fruit(number, chance) for number in range(100, 200)])
    assert answers(Corpus.open(corpus.path, snapshot=number)) == answers(reader) == then
    corpus.delete([f"d{number}" for number in range(100, 140)])
    assert_by_hand(corpus)
    assert answers(Corpus.open(corpus.path, snapshot=number)) == answers(reader) == then
    corpus.compact()
    assert_by_hand(corpus)
    assert answers(Corpus.open(corpus.path, snapshot=number)) == answers(reader) == then


def test_passages_that_were_deleted_and_compacted_rank_alike(tmp_path: Path) -> None:
    chance = random.Random(1)
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([fruit(number, chance) for number in range(60)])
    corpus.delete([f"d{number}" for number in range(20, 50)])
    before = answers(corpus)
    corpus.compact()
    rows = corpus.live_rows().tolist()
    assert rows[0] == 60
    assert [list(each.values()) for each in answers(corpus)] == [list(each.values()) for each in before]


def test_several_corpora_rank_as_one_of_all_documents(tmp_path: Path) -> None:
    chance = random.Random(2)
    documents = [fruit(number, chance) for number in range(90)]
    whole = Corpus.create(tmp_path / "whole.quoth")
    whole.add(documents)
    parts = [Corpus.create(tmp_path / f"{number}.quoth") for number in range(3)]
    for part, (first, last) in zip(parts, [(0, 3), (3, 80), (80, 90)], strict=True):
        part.add(documents[first:last])
    firsts = np.cumsum([0, *(part.num_passages for part in parts)])
    for query in (*QUERIES, "nowhere"):
        rows, scores = whole.bm25(query, 40)
        places = best_places(parts, query, 40)
        assert [score for score, _ in places] == scores.tolist()
        assert [firsts[number] + row for _, (number, row) in places] == rows.tolist()


def test_a_small_corpus_with_the_match_beats_a_large_one_without(tmp_path: Path) -> None:
    small, large = (Corpus.create(tmp_path / f"{name}.quoth") for name in ("small", "large"))
    small.add([Document("a", "", "red zebra stripes"), Document("b", "", "red cars"), Document("c", "", "zebra red")])
    large.add([Document("x", "", "zebra"), *(Document(str(n), "", f"word{n} of red no. {n}") for n in range(500))])
    best = best_places([small, large], "zebra stripes", 2)
    assert [place for _, place in best] == [(0, 0), (1, 0)]


def held(words: Words, word: str) -> dict[int, int]:
    (at,) = words.find(hashes([word]))
    return dict(zip(words.passages_O[at].tolist(), words.counts_O[at].tolist(), strict=True))


def test_occurrences_by_hand() -> None:
    words = Words.of(WORDS)
    assert words.num_passages == 4
    assert words.lengths_2P.tolist() == [[5, 0, 2, 1], [0, 0, 2, 0]]
    assert held(words, "cat") == {0: 2, 2: 1}
    assert held(words, "the") == {0: 2}
    assert held(words, "北京") == held(words, "北") == held(words, "京") == {2: 1}
    assert held(words, "zebra") == held(words, "cats") == held(words, "") == {}


@pytest.mark.parametrize(
    ("title", "indexed"),
    [
        ("The cat saw the cats", "The cat saw the cats"),
        ("x" * 1000, "x" * 1000),
        ("x" * 1500, "x" * 1000),
        ("京" * 1500, "京" * 1000),
        ("cat " * 250, "cat " * 250),
        ("cat " * 400, "cat " * 249 + "cat"),
        (f"cat {'x' * 996} dog", f"cat {'x' * 996}"),
        (f"cat {'x' * 997} dog", "cat"),
        (" " * 1500, " " * 1000),
    ],
)
def test_a_long_title_is_indexed_as_far_as_whole_words_go(title: str, indexed: str) -> None:
    assert indexed_text(title, "a dog") == f"{indexed} a dog"


def test_a_long_title_makes_each_passage_no_longer(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:20")
    title = " ".join(f"t{number}" for number in range(5_000))
    corpus.add([Document("a", title, "one word more. " * 200)])
    [part] = corpus.live_words
    assert corpus.num_passages > 20
    assert part.words.lengths_2P[0].max() < 300
    assert (len(corpus.bm25("t7", 1)[0]), len(corpus.bm25("t4000", 1)[0])) == (1, 0)
    assert next(corpus.passages()).title == title


def test_a_character_that_is_a_term_too_counts_once_as_each() -> None:
    words = Words.of(["京", "北京 京"])
    assert words.lengths_2P.tolist() == [[1, 2], [1, 3]]
    assert held(words, "京") == {0: 1, 1: 2}


def test_frequent_words_take_more_bytes() -> None:
    assert Words.of(["a " * 255]).counts_O.dtype == np.uint8
    words = Words.of(["a " * 70_000])
    assert (words.counts_O.dtype, held(words, "a")) == (np.dtype(np.uint32), {0: 70_000})


@pytest.mark.parametrize("texts", [[], [""], WORDS, [f"word{n} again" for n in range(20_000)]])
def test_the_file_holds_them(tmp_path: Path, texts: list[str]) -> None:
    words = Words.of(texts)
    words.save(tmp_path / "words.bin")
    read = Words.open(tmp_path / "words.bin")
    for name in ("hashes_W", "first_W1", "passages_O", "counts_O", "lengths_2P"):
        written, there = getattr(words, name), getattr(read, name)
        np.testing.assert_array_equal(written, there)
        assert (written.dtype, written.shape) == (there.dtype, there.shape)
        assert not there.flags.writeable or not there.size
    assert held(read, "again") == held(words, "again")


@pytest.mark.parametrize("left", [0, 5, 70, 300])
def test_a_damaged_file_is_named(tmp_path: Path, left: int) -> None:
    Words.of(WORDS).save(tmp_path / "words.bin")
    content = (tmp_path / "words.bin").read_bytes()
    (tmp_path / "words.bin").write_bytes(content[:left])
    with pytest.raises(CorruptionError, match=r"words\.bin"):
        Words.open(tmp_path / "words.bin")
    (tmp_path / "words.bin").write_bytes(b"?" + content[1:])
    with pytest.raises(CorruptionError, match=r"words\.bin"):
        Words.open(tmp_path / "words.bin")


COMPOUNDS = ["Send an e-mail to Ann.", "The email came.", "A C++ program.", "Vitamin C.", "Some C# code.", "C"]


def test_words_are_searched_by_the_analyzer_that_they_come_from() -> None:
    """A query over segments of both: each has the terms of its own, and what both have is counted in both."""
    texts = dict(enumerate(COMPOUNDS * 2))
    parts = [LiveWords(Words.of(COMPOUNDS, each), number * len(COMPOUNDS)) for number, each in enumerate(ANALYZERS)]
    for query in ("email", "C++", "C", "e-mail program"):
        held = {row: analyse(text, ANALYZERS[row // len(COMPOUNDS)]) for row, text in texts.items()}
        asked = [analyse(query, each) for each in ANALYZERS]
        rows, scores = search(parts, Query.of(query), 20, count(parts, Query.of(query)))
        wanted = {row for row in texts if not {*held[row]}.isdisjoint(asked[row // len(COMPOUNDS)])}
        assert {*rows.tolist()} == wanted
        assert (np.diff(scores) <= 0).all()
    for query in (Query.of("C++"), Query.of("C++", FIRST)):  # of which the first analyzer makes c
        assert search(parts[:1], query, 9, count(parts[:1], query))[0].tolist() == [5, 3, 2, 4]
    assert ranked(parts[1:], "C++").keys() == {8}
    assert ranked(parts[1:], "C").keys() == {9, 11}
    assert ranked(parts[1:], "email").keys() == {6, 7}


def test_what_is_joined_adds_nothing_to_the_length() -> None:
    assert Words.of(["e-mail", "Notepad++ x", "1,250,000"]).lengths_2P.tolist() == [[2, 2, 3], [0, 0, 0]]
    words = Words.of(["e-mail 北京"])
    assert all(held(words, term) == {0: 1} for term in ("e", "mail", "email", "北京", "北"))
