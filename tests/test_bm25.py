"""The word index: scores by hand, names in many scripts, removal, live rows, threads, processes, damage."""

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from quoth.corpus import bm25
from quoth.corpus.analysis import analyse
from quoth.corpus.bm25 import BM25Index
from quoth.errors import CorruptionError, LockedError

ANY_TEXT = st.text(st.characters(exclude_categories=()))
TEXTS = ["the cat sat", "the dog sat on the cat", "a bird", "the the the end of the cat show"]


def every(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.ones(len(rows), np.bool_)


def found(index: BM25Index, query: str, k: int = 10) -> list[int]:
    return [int(row) for row in index.search(query, k, every)[0]]


def index_of(path: Path, texts: list[str]) -> BM25Index:
    index = BM25Index(path)
    index.update(enumerate(texts))
    return index


def score_by_hand(texts: list[str], query: str, row: int, k1: float = 1.2, b: float = 0.75) -> float:
    documents = [analyse(text) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    score = 0.0
    for term in analyse(query):
        holders = sum(term in document for document in documents)
        frequency = documents[row].count(term)
        idf = math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
        length = len(documents[row]) / average
        score += idf * (k1 + 1) * frequency / (frequency + k1 * (1 - b + b * length))
    return score


def run_python(code: str, path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_shapes_and_types(tmp_path: Path) -> None:
    rows, scores = index_of(tmp_path / "words", TEXTS).search("cat", 2, every)
    assert rows.shape == scores.shape == (2,)
    assert rows.dtype == np.dtype(np.int64)
    assert scores.dtype == np.dtype(np.float32)


@pytest.mark.parametrize("query", ["cat", "the cat", "cat cat the", "the end birds nowhere"])
def test_scores_are_lucenes(tmp_path: Path, query: str) -> None:
    rows, scores = index_of(tmp_path, TEXTS).search(query, 10, every)
    wanted = {row: score_by_hand(TEXTS, query, row) for row in range(len(TEXTS))}
    wanted = {row: score for row, score in wanted.items() if score > 0}
    assert list(rows) == sorted(wanted, key=lambda row: -wanted[row])
    np.testing.assert_allclose(scores, [wanted[int(row)] for row in rows], rtol=1e-5)


def test_scores_span_several_commits(tmp_path: Path) -> None:
    index = BM25Index(tmp_path)
    for row, text in enumerate(TEXTS):
        index.update([(row, text)])
    rows, scores = index.search("the cat", 10, every)
    np.testing.assert_allclose(scores, [score_by_hand(TEXTS, "the cat", int(row)) for row in rows], rtol=1e-5)


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
def test_names_in_any_script(tmp_path: Path, query: str, text: str) -> None:
    index = index_of(tmp_path, ["nothing here", text, "東西南北 のか 한국 μεγας आम بحر дом"])
    assert found(index, query)[0] == 1


def test_one_character_asks_only_for_itself(tmp_path: Path) -> None:
    index = index_of(tmp_path, ["北京", "東西", "京"])
    assert found(index, "京") == [2, 0]
    assert found(index, "西") == [1]


@pytest.mark.parametrize("query", ["", "  ", "?!", "🙂", "\x00", "zebra"])
def test_nothing_asked_or_nothing_found(tmp_path: Path, query: str) -> None:
    assert found(index_of(tmp_path, TEXTS), query) == []


@pytest.mark.parametrize("query", ['"cat', "cat AND", "terms:cat", "(cat", "cat^", "row:[0 TO 5] cat", "-cat", "*cat"])
def test_query_syntax_is_plain_text(tmp_path: Path, query: str) -> None:
    assert 0 in found(index_of(tmp_path, TEXTS), query)


def test_missing_empty_and_emptied_index(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert found(BM25Index(tmp_path / "missing"), "cat") == []
    assert not (tmp_path / "missing").exists()
    assert found(BM25Index(tmp_path / "empty"), "cat") == []
    index = index_of(tmp_path / "a" / "b", TEXTS)
    index.update([], discard_from=0)
    assert found(index, "cat") == []


def test_k_bounds(tmp_path: Path) -> None:
    index = index_of(tmp_path, TEXTS)
    assert found(index, "cat", 0) == found(index, "cat", -3) == []
    assert sorted(found(index, "cat", 10**12)) == [0, 1, 3]


def test_delete(tmp_path: Path) -> None:
    index = index_of(tmp_path, TEXTS)
    index.update([], delete=iter([0, 3, 99]))
    assert found(index, "cat") == [1]
    assert found(index, "bird") == [2]


def test_discard_then_delete_then_add(tmp_path: Path) -> None:
    index = index_of(tmp_path, TEXTS)
    index.update([(2, "new cat"), (2**40, "far cat")], discard_from=2, delete=[0])
    assert sorted(found(index, "cat")) == [1, 2, 2**40]
    assert found(index, "bird") == found(index, "end") == []
    index.update([], discard_from=3)
    assert sorted(found(index, "cat")) == [1, 2]


def test_ties_go_by_row_across_commits(tmp_path: Path) -> None:
    index = BM25Index(tmp_path)
    for rows in (range(60, 90), range(30), range(30, 60)):
        index.update((row, "same words here") for row in rows)
    assert found(index, "words same", 5) == [0, 1, 2, 3, 4]
    assert found(index, "words same", 100) == list(range(90))


def test_many_ties_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "MAX_TIED_HITS", 8)
    index = index_of(tmp_path, ["same"] * 500)
    fetched: list[int] = []

    def live(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        fetched.append(len(rows))
        return every(rows)

    assert len(index.search("same", 5, live)[0]) == 5
    assert fetched == [21]


def test_dead_rows_are_replaced_by_live_ones(tmp_path: Path) -> None:
    index = index_of(tmp_path, ["cat " * 3 + "x " * (row % 30) for row in range(500)])
    calls: list[int] = []

    def live(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        calls.append(len(rows))
        return np.equal(rows % 50, 49)

    rows, scores = index.search("cat", 3, live)
    everything, all_scores = index.search("cat", 500, every)
    keep = everything % 50 == 49
    assert list(rows) == list(everything[keep][:3])
    assert list(scores) == list(all_scores[keep][:3])
    assert len(calls) > 1
    assert len(index.search("cat", 30, live)[0]) == 10
    assert len(index.search("cat", 3, lambda rows: np.zeros(len(rows), np.bool_))[0]) == 0


def test_a_failing_update_changes_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[int, str]]:
        yield 7, "fish"
        raise RuntimeError("no more")

    index = index_of(tmp_path, TEXTS)
    with pytest.raises(RuntimeError, match="no more"):
        index.update(broken(), discard_from=0)
    assert found(index, "fish") == []
    assert len(found(index, "cat")) == 3
    index.update([(7, "fish")])
    assert found(index, "fish") == [7]


def test_a_second_writer_is_told(tmp_path: Path) -> None:
    def meanwhile() -> Iterator[tuple[int, str]]:
        with pytest.raises(LockedError, match="being written"):
            BM25Index(tmp_path).update([(1, "other")])
        yield 0, "mine"

    index = BM25Index(tmp_path)
    index.update(meanwhile())
    assert found(index, "mine") == [0]


def test_another_process_is_seen(tmp_path: Path) -> None:
    index = index_of(tmp_path, TEXTS)
    assert found(index, "fish") == []
    code = "import sys; from pathlib import Path; from quoth.corpus.bm25 import BM25Index as B; "
    process = run_python(code + "B(Path(sys.argv[1])).update([(9, 'fish')], delete=[0])", tmp_path)
    assert process.wait(60) == 0
    assert process.stdout is not None
    process.stdout.close()
    assert found(index, "fish") == [9]
    assert sorted(found(index, "cat")) == [1, 3]


KILLED_WRITER = """
import sys, time
from pathlib import Path
from quoth.corpus.bm25 import BM25Index
def endless():
    yield 8, "half done fish"
    print("writing", flush=True)
    time.sleep(600)
BM25Index(Path(sys.argv[1])).update(endless(), discard_from=2)
"""


def test_a_killed_writer_blocks_nobody(tmp_path: Path) -> None:
    index = index_of(tmp_path, TEXTS)
    process = run_python(KILLED_WRITER, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    with pytest.raises(LockedError):
        index.update([(5, "too early")])
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stdout.close()
    assert (tmp_path / ".tantivy-writer.lock").exists()
    assert found(index, "fish") == []
    index.update([(5, "fish")], discard_from=4)
    assert found(index, "fish") == [5]
    assert sorted(found(index, "cat")) == [0, 1, 3]


def test_threads_search_while_one_updates(tmp_path: Path) -> None:
    index = index_of(tmp_path, ["cat"])
    stop, errors = threading.Event(), list[BaseException]()

    def read() -> None:
        try:
            while not stop.is_set():
                rows = found(index, "cat", 100)
                assert rows == list(range(len(rows)))
                assert rows
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for row in range(1, 25):
        index.update([(row, "cat")])
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert found(index, "cat", 100) == list(range(25))


@pytest.mark.parametrize("content", [b"garbage", b'{"segments": 3}'])
def test_damage_is_named(tmp_path: Path, content: bytes) -> None:
    index_of(tmp_path, TEXTS)
    (tmp_path / "meta.json").write_bytes(content)
    with pytest.raises(CorruptionError, match=tmp_path.name):
        found(BM25Index(tmp_path), "cat")
    with pytest.raises(CorruptionError, match=tmp_path.name):
        BM25Index(tmp_path).update([])


@pytest.mark.parametrize("suffix", ["idx", "term", "fast", "fieldnorm"])
def test_a_truncated_file_is_named(tmp_path: Path, suffix: str) -> None:
    index_of(tmp_path, TEXTS)
    damaged = next(tmp_path.glob(f"*.{suffix}"))
    damaged.write_bytes(damaged.read_bytes()[:5])
    with pytest.raises(CorruptionError, match=tmp_path.name):
        found(BM25Index(tmp_path), "cat")


@pytest.fixture(scope="module")
def small_index(tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    return index_of(tmp_path_factory.mktemp("words"), [*TEXTS, "北京 세종대왕 กรุงเทพ"])


@given(query=ANY_TEXT)
def test_any_query_is_answered(small_index: BM25Index, query: str) -> None:
    rows, scores = small_index.search(query, 3, every)
    assert len(rows) == len(scores) <= 3
    assert list(scores) == sorted(scores, reverse=True)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(ANY_TEXT, max_size=8))
def test_any_text_finds_itself(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    index = index_of(tmp_path_factory.mktemp("words"), texts)
    for row, text in enumerate(texts):
        assert (row in found(index, text)) == bool(analyse(text))
