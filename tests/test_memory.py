"""Embedding holds so much and no more, however many passages there are."""

from __future__ import annotations

import re
import tracemalloc
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from quoth import arrays, memory
from quoth.arrays import fetch, forget, in_blocks, open_array, save_array, save_pieces
from quoth.corpus.corpus import Corpus
from quoth.encoders.keys import EncodedPassage, TextSpan
from quoth.errors import InputError
from quoth.index import codes
from quoth.index.build import COPIES, sample_queries
from quoth.index.tables import KeyTables
from quoth.index.vectors import KeyVectors, Quantizer, Spread, nearest_rows, stored
from quoth.records import Document, Passage
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import TokenizedPassage

D = 256
WORDS = 40
ROOM = 4_000_000


class Wide:
    """A long random vector for every word; `asked` has the bytes of the texts of each call."""

    keys, name, dimensions, scale = "tokens", "wide", D, 1.0
    fingerprint = "wide".ljust(16, "0")

    def __init__(self) -> None:
        self.asked: list[int] = []

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        self.asked.append(sum(len(each.text.encode()) for each in passages))
        return [self._encoded(each.text) for each in passages]

    def _encoded(self, text: str) -> EncodedPassage:
        words = text.split(" ")
        ends = np.cumsum([len(word) + 1 for word in words]) - 1
        offsets_T2 = np.stack([ends - [len(word) for word in words], ends], axis=1)
        group_T = np.array([zlib.crc32(word.encode()) for word in words], np.uint64)
        flags_T = np.full(len(words), MAY_START | MAY_END, np.uint8)
        vectors_TD = np.random.default_rng(zlib.crc32(text.encode())).standard_normal((len(words), D), np.float32)
        ids_T = (group_T % 1000).astype(np.int32)
        return EncodedPassage(TokenizedPassage(ids_T, offsets_T2, flags_T, group_T, ()), vectors_TD)

    def words(self, query: str) -> NDArray[np.float32]:
        return self._encoded(query).vectors_TD

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        return np.concatenate([self._encoded(text).vectors_TD[:1] for text, _, _ in islice(places, count)])


def made(path: Path, passages: int) -> Corpus:
    """Passages of 40 words of four letters, in one segment."""
    corpus = Corpus.create(path, splitter="words:1000000")
    rng = np.random.default_rng(0)
    texts = (" ".join(f"w{number:03d}" for number in rng.integers(1000, size=WORDS)) for _ in range(passages))
    corpus.add(Document(f"d{i}", "", text) for i, text in enumerate(texts))
    return corpus


def peak(corpus: Corpus, encoder: Any, precision: str, recall: float, room: int) -> int:
    """The most bytes that Python and NumPy held at a time while it was embedded."""
    tables = KeyTables(corpus, encoder)
    tracemalloc.start()
    try:
        tables.build(precision, recall=recall, memory=room)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("precision", ["fp32", "sq8"])
def test_more_passages_take_no_more_memory(tmp_path: Path, precision: str) -> None:
    few, many = (made(tmp_path / f"{count}.quoth", count) for count in (120, 480))
    encoder = Wide()
    held = [peak(each, encoder, precision, 1.0, ROOM) for each in (few, many)]
    floats = 480 * WORDS * D * 4
    assert floats > 4 * ROOM
    assert held[1] < 1.3 * held[0]  # the columns of a part are held: 29 bytes a word
    assert held[1] < floats / 2
    assert max(encoder.asked) <= ROOM // (COPIES * 4 * D)
    assert sum(encoder.asked) == 600 * (5 * WORDS - 1)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "sq8", "sq4"])
def test_what_is_stored_does_not_depend_on_the_memory(tmp_path: Path, precision: str) -> None:
    tables = []
    for room in (1, 10**9):
        corpus = made(tmp_path / f"{room}.quoth", 30)
        KeyTables(corpus, Wide()).build(precision, recall=1.0, memory=room)
        tables.append(next(corpus.path.glob("keys/*/*/table.json")).parent)
    names = sorted(path.name for path in tables[0].iterdir())
    assert "floats.npy" not in names
    for name in names:
        assert (tables[0] / name).read_bytes() == (tables[1] / name).read_bytes()


def test_a_passage_too_large_is_encoded_alone(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:1000000")
    corpus.add(Document(name, "", "word " * count) for name, count in (("a", 3), ("b", 3), ("large", 900), ("c", 3)))
    encoder = Wide()
    KeyTables(corpus, encoder).build("fp32", recall=1.0, memory=COPIES * 4 * D * 30)
    assert encoder.asked == [14 + 14, 4499, 14]


def test_codes_take_a_sample_and_one_file_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.index.vectors.ROWS_AT_A_TIME", 999)
    monkeypatch.setattr(codes, "LEAST_SAMPLE", 700)
    sizes: list[int] = []
    sample = codes._sample
    monkeypatch.setattr(codes, "_sample", lambda vectors, count: sizes.append(count) or sample(vectors, count))
    raw_ND = np.random.default_rng(0).normal(size=(5000, 32)).astype(np.float32)
    save_array(tmp_path / "vectors.npy", raw_ND)
    vectors = KeyVectors.open(tmp_path, 1.0)
    q_QD = raw_ND[:4] + np.float32(0.1)
    exact = [np.argsort(-(raw_ND.astype(np.float64) @ q_D))[:20] for q_D in q_QD]
    np.testing.assert_array_equal(np.stack(nearest_rows(vectors, q_QD, 20)), np.stack(exact))
    for room, files in ((10**9, 1), (codes.COPIES * (16 // 4 + 8) * 2000, 3)):
        (folder := tmp_path / str(room)).mkdir()
        codes.build_codes(folder, vectors, q_QD, exact, 0.01, room)
        assert len(list(folder.glob("rows-*.faiss"))) == files
    assert sizes == [5000, 700]  # 96,000 bytes hold four copies of only 187 vectors: the least that FAISS is fitted to
    np.testing.assert_array_equal(
        sample(vectors, 300), raw_ND[np.sort(np.random.default_rng(0).choice(5000, 300, replace=False))]
    )


def test_queries_are_drawn_without_looking_at_all_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import quoth.index.build as build

    corpus = made(tmp_path / "c.quoth", 30)
    tables = KeyTables(corpus, Wide())
    tables.build("sq8", recall=1.0)
    keys = tables.open()[0][0]
    monkeypatch.setattr(build, "ROWS_AT_A_TIME", 100)
    rows = build._some_starts(keys, 500)
    assert len(set(rows.tolist())) == 500
    assert rows.min() >= 0
    assert rows.max() < 30 * WORDS
    counts = np.histogram(rows, bins=4, range=(0, 30 * WORDS))[0]
    assert counts.min() > 80  # 125 expected of each quarter
    np.testing.assert_array_equal(build._some_starts(keys, 40), rows[:40])
    assert sample_queries(Wide(), keys, 5).shape == (5, D)


def test_pieces_are_counted_as_they_come(tmp_path: Path) -> None:
    whole = np.arange(70_000, dtype=np.int64).reshape(-1, 7)
    pieces = [whole[:0], whole[:3], whole[3:9_999], whole[9_999:]]
    save_pieces(tmp_path / "counted.npy", iter(pieces))
    np.save(tmp_path / "told.npy", whole)
    assert (tmp_path / "counted.npy").read_bytes() == (tmp_path / "told.npy").read_bytes()
    mapped = open_array(tmp_path / "counted.npy")
    np.testing.assert_array_equal(np.concatenate(list(in_blocks(mapped))), whole)
    forget(mapped)
    np.testing.assert_array_equal(mapped, whole)
    assert [len(each) for each in in_blocks(whole[:0])] == [0]


def test_a_spread_is_that_of_all_numbers() -> None:
    blocks = [
        np.random.default_rng(i).normal(i, 1 + i, size=(n, 3)).astype(np.float32) for i, n in enumerate((5, 0, 3000))
    ]
    spread = Spread(3)
    for each in blocks:
        spread.add(each)
    whole = np.concatenate(blocks).astype(np.float64)
    assert spread.count == 3005
    np.testing.assert_array_equal(spread.low_D, whole.min(axis=0))
    np.testing.assert_array_equal(spread.high_D, whole.max(axis=0))
    np.testing.assert_allclose(spread.mean_D, whole.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(spread.deviation_D, whole.std(axis=0), rtol=1e-5)
    fitted = Quantizer.fitting(spread)
    assert np.abs(KeyVectors(stored(blocks[2], "sq8", fitted), 1.0, fitted).floats(slice(None)) - blocks[2]).max() < 0.1


@pytest.mark.parametrize(("text", "count"), [("2GB", 2 * 10**9), ("1.5 MB", 1_500_000), (" 500kB", 500_000)])
def test_sizes_as_people_write_them(text: str, count: int) -> None:
    assert memory.bytes_named(text) == count


@pytest.mark.parametrize("text", ["", "2", "2G", "GB", "-1GB", "nanGB", "infGB", "1e99TB", "0GB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InputError, match="write it like 500MB or 2GB"):
        memory.bytes_named(text)


def test_what_the_process_holds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.held() > 10**7
    monkeypatch.setattr(memory, "held", lambda: 600 * 10**6)
    assert memory.limit(None) == 2 * 10**9
    assert memory.left_of(memory.limit("1GB")) == 400 * 10**6
    with pytest.raises(InputError, match=r"^700MB of memory .* uses 600 MB; allow 801MB or more"):
        memory.limit("700MB")
    monkeypatch.setattr(memory, "held", lambda: 3 * 10**9)
    assert memory.left_of(memory.limit(None)) == memory.LEAST_WORKING_MEMORY


def reads_ahead(array: NDArray[Any]) -> bool:
    """Whether the system reads ahead of the file that is mapped at an array."""
    at = array.__array_interface__["data"][0]
    mine = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            mine = int(found[1], 16) <= at < int(found[2], 16)
        elif mine and line.startswith("VmFlags:"):
            return "rr" not in line.split()
    raise AssertionError("not mapped")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the kernel does not tell")
@pytest.mark.parametrize("on_disk", [False, True])
def test_scattered_rows_are_fetched_many_at_once_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    save_array(tmp_path / "a.npy", np.arange(300_000, dtype=np.int32).reshape(-1, 3))
    mapped, pools = open_array(tmp_path / "a.npy"), list[int]()
    monkeypatch.setattr(arrays, "_FROM_DISK", 0.0 if on_disk else 60.0)

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers: int) -> None:
            pools.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(arrays, "ThreadPoolExecutor", Pool)
    scattered = np.random.default_rng(0).choice(100_000, 1000, replace=False)
    for rows, ahead in ((scattered, False), (None, True), (scattered[:3], False), (np.arange(500, 900), True)):
        fetch(mapped, rows)
        assert reads_ahead(mapped) == ahead
    fetch(mapped, scattered[:0])
    assert reads_ahead(mapped)
    assert len(pools) == (2 if on_disk else 0)
    fetch(np.arange(9).reshape(3, 3), np.array([0, 2]))  # not mapped
    np.testing.assert_array_equal(mapped[scattered, 0], 3 * scattered)
