"""One segment: what it finds by id and by bytes, and what it says when its files change under it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from quoth.corpus import segment as segment_module
from quoth.corpus.segment import Segment, SegmentWriter
from quoth.errors import CorruptionError, DamageWarning
from quoth.records import Document, Passage

DOCUMENTS = [
    Document("a", "Seine", "Paris ça lies", {"n": 1}),
    Document("bé", "", "", {}),
    Document("c", "T", "no, no Spree", {"x": [None]}),
]
RANGES = [[(0, 5), (6, 13)], [], [(0, 2), (4, 6), (7, 12)]]


def written(path: Path, with_checks: bool = True, documents: list[Document] = DOCUMENTS) -> Segment:
    """A sealed segment whose rows begin at 100, and its documents at 50."""
    with SegmentWriter(path) as writer:
        for document, ranges in zip(documents, RANGES, strict=False):
            writer.add(document, ranges)
        assert (writer.num_documents, writer.num_passages) == (3, 5)
        sha256 = writer.seal(with_checks=with_checks)
    return Segment(path, 100, 50, sha256)


@pytest.mark.parametrize("with_checks", [True, False])
def test_what_was_written_is_read(tmp_path: Path, with_checks: bool) -> None:
    segment = written(tmp_path / "s", with_checks)
    assert [segment.document(d) for d in range(3)] == DOCUMENTS
    assert list(segment.passages()) == [
        Passage(100 + row, each.id, each.title, each.text[start:end], start, end, each.metadata)
        for row, (each, (start, end)) in enumerate(
            (each, place) for each, ranges in zip(DOCUMENTS, RANGES, strict=True) for place in ranges
        )
    ]
    assert [segment.ranges(d) for d in range(3)] == RANGES
    assert [segment.passage_range(d) for d in range(3)] == [(0, 2), (2, 2), (2, 5)]
    assert (segment.first_row, segment.last_row, segment.first_document, segment.last_document) == (100, 105, 50, 53)
    assert [segment.find(each.id) for each in DOCUMENTS] == [0, 1, 2]
    assert segment.find("b") is None
    kinds = {file.name: np.load(file).dtype.str for file in (tmp_path / "s").glob("*.npy")}
    checks = {"checks.npy": "<u4"} if with_checks else {}
    assert kinds == {"documents.npy": "<i8", "passages.npy": "<i8", "ids.npy": "<u8", "blocks.npy": "<i8"} | checks


@pytest.mark.parametrize("distinct", [1, 2])
def test_ids_of_equal_hashes_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: int) -> None:
    monkeypatch.setattr(
        segment_module, "hashes", lambda ids: np.array([7 + len(each) % distinct for each in ids], np.uint64)
    )
    segment = written(tmp_path / "s")
    others = [Document(name, "", text, {}) for name, text in (("c", "Paris ça lies"), ("x", ""), ("a", "no, no Spree"))]
    other = written(tmp_path / "t", documents=others)
    assert [segment.find(name) for name in ("a", "bé", "c", "x", "xé")] == [0, 1, 2, None, None]
    assert sorted(segment.find_all(other)) == [0, 2]
    assert sorted(other.find_all(segment)) == [0, 2]


@pytest.mark.parametrize(
    ("part", "documents"),
    [("no", [2]), ("Seine", []), ("Paris", [0]), ("ça", [0]), ("Spree", [2]), ("s", [0]), ("e", [0, 2]), ("bé", [])],
)
def test_bytes_are_found_in_texts_alone(tmp_path: Path, part: str, documents: list[int]) -> None:
    assert list(written(tmp_path / "s").containing(part.encode())) == documents


def altered(content: bytes, at: int, byte: int) -> bytes:
    return content[:at] + bytes([byte]) + content[at + 1 :]


def test_an_altered_byte_is_never_given_out(tmp_path: Path) -> None:
    segment = written(tmp_path / "s")
    content = (tmp_path / "s" / "documents.bin").read_bytes()
    starts, texts = segment._documents_D13[:3, :2].T.tolist()
    for at, byte in enumerate(content):
        owner = max(d for d in range(3) if starts[d] <= at)
        segment._blob = altered(content, at, byte ^ 1)
        for d in range(3):
            if d == owner:
                with pytest.raises(CorruptionError, match=rf"documents\.bin: damaged \(document {d} is not as it was"):
                    segment.document(d)
            else:
                assert segment.document(d) == DOCUMENTS[d]
        for p, (d, _, _, first, last) in enumerate(segment._passages_P5.tolist()):
            if d == owner and (at < texts[d] or first <= at < last):
                with pytest.raises(CorruptionError, match=rf"documents\.bin: damaged \(passage {p} is not as it was"):
                    segment.passage(p)
            else:
                assert segment.passage(p).document_id == DOCUMENTS[d].id


def test_without_checks_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    segment = written(tmp_path / "s", with_checks=False)
    content, remedy = (tmp_path / "s" / "documents.bin").read_bytes(), rf"; `quoth repair {tmp_path.parent}"
    segment._blob = altered(content, int(segment._documents_D13[0, 1]), 0xFF)
    for read in (segment.document, segment.passage):
        with pytest.raises(CorruptionError, match=rf"s/documents\.bin: damaged \('utf-8' codec .*\){remedy}"):
            read(0)
    segment._blob = altered(content, 0, ord("{"))
    with pytest.raises(CorruptionError, match=r"s/documents\.bin: damaged \("):
        segment.id(0)
    for document in (3, -1):
        segment._passages_P5 = np.array([[document, 0, 1, 0, 1]])
        with pytest.raises(CorruptionError, match=r"s/passages\.npy: damaged \(passage 0 belongs to no document\)"):
            segment.passage(0)


def test_files_that_were_cut_are_noticed(tmp_path: Path) -> None:
    segment = written(tmp_path / "s")
    assert segment.has_its_sizes()
    words = tmp_path / "s" / "words-2.bin"
    content = words.read_bytes()
    words.write_bytes(content[:-1])
    assert segment.has_its_sizes()  # words are not open yet
    with pytest.warns(DamageWarning, match=r"words-2\.bin: .* truncated"):
        assert segment.words.num_passages == segment.num_passages
    del segment.words
    words.write_bytes(content)
    assert segment.words is segment.words
    words.write_bytes(content[:-1])
    assert not segment.has_its_sizes()
    words.unlink()
    assert not segment.has_its_sizes()


def test_characters_are_at_their_bytes(tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(20):
        text = "".join(rng.choices("aéß漢🙂 ", k=30))
        cuts = sorted(rng.sample(range(31), 6))
        ranges = list(zip(cuts[::2], cuts[1::2], strict=True))
        with SegmentWriter(tmp_path / str(number)) as writer:
            writer.add(Document("x", "", "before"), [(0, 6)])
            writer.add(Document("y", "", text), ranges)
            segment = Segment(tmp_path / str(number), 0, 0, writer.seal())
        assert [each.text for each in segment.passages()] == ["before", *(text[start:end] for start, end in ranges)]
