"""Deleting and compacting on a disk that is full, which is emulated: what would not fit fails when it is flushed."""

import os
import re
import shutil
from collections.abc import Callable
from errno import EACCES, ENOSPC
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pytest

from quoth import Corpus, Document
from quoth.corpus.writer import RESERVE

SEGMENTS = (("large", 24), ("small", 3), ("middle", 6))
Fill = Callable[[Path, int], None]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def used(folder: Path) -> int:
    """The bytes of all files, in blocks of 4096."""
    return sum(-(-each.stat().st_size // 4096) * 4096 for each in folder.rglob("*") if each.is_file())


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Leaves a folder's disk so many free bytes."""
    fsync, pwrite = os.fsync, os.pwrite

    def call(folder: Path, free: int) -> None:
        capacity = used(folder) + free

        def limited(descriptor: int) -> None:
            if used(folder) > capacity:
                raise OSError(ENOSPC, "No space left on device")
            fsync(descriptor)

        def limited_at(descriptor: int, content: bytes, at: int) -> int:
            size = os.fstat(descriptor).st_size
            if used(folder) + max(at + len(content) - size, 0) > capacity:
                raise OSError(ENOSPC, "No space left on device")
            return pwrite(descriptor, content, at)

        monkeypatch.setattr(os, "fsync", limited)
        monkeypatch.setattr(os, "pwrite", limited_at)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(capacity, used(folder), capacity - used(folder)))

    return call


def segment(name: str, documents: int) -> list[Document]:
    """Documents of some 12 kB each on disk."""
    words = " ".join(f"{name}{number}" for number in range(800))
    return [Document(f"{name}-{number}", "", words) for number in range(documents)]


def ids(corpus: Corpus) -> list[str]:
    return sorted(each.id for each in corpus.documents())


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Three segments, of some 30, 60 and 240 kB."""
    made = Corpus.create(tmp_path / "c.quoth")
    for name, documents in SEGMENTS:
        made.add(segment(name, documents))
    return made


def test_a_document_is_deleted_without_a_free_byte(corpus: Corpus, fill: Fill) -> None:
    assert (corpus.path / "writer.lock").stat().st_size == RESERVE
    fill(corpus.path, 0)
    for name in ("large-3", "small-0", "large-4"):
        corpus.delete([name])
    kept = ids(Corpus.open(corpus.path))
    assert kept == sorted({each.id for n, d in SEGMENTS for each in segment(n, d)} - {"large-3", "small-0", "large-4"})
    corpus.verify()


def test_the_reserve_is_taken_again_when_there_is_room(corpus: Corpus, fill: Fill) -> None:
    fill(corpus.path, 0)
    corpus.delete(["large-3"])
    assert (corpus.path / "writer.lock").stat().st_size < RESERVE
    fill(corpus.path, 1 << 20)
    corpus.delete(["large-4"])
    assert (corpus.path / "writer.lock").stat().st_size == RESERVE


def test_compacting_from_the_smallest_needs_no_free_byte(corpus: Corpus, fill: Fill) -> None:
    for name in ("small-1", "small-2", "middle-1", "middle-2", "middle-3", *(f"large-{n}" for n in range(20))):
        corpus.delete([name])
    before, left = used(corpus.path), ids(corpus)
    fill(corpus.path, 0)
    corpus.compact()
    assert ids(corpus) == ids(Corpus.open(corpus.path)) == left
    assert sum(each.num_documents for each in corpus.segments) == len(left)
    assert used(corpus.path) < before / 2
    corpus.verify()


def test_what_compacting_needs_is_named_and_nothing_is_lost(
    corpus: Corpus, fill: Fill, run: Callable[..., tuple[int, str, str]]
) -> None:
    path, large = corpus.path, sum(each.stat().st_size for each in corpus.segments[0].path.iterdir())
    corpus.delete(["large-3"])
    left = ids(corpus)
    del corpus
    fill(path, 0)
    code, out, err = run("compact", path)
    told = re.fullmatch(
        rf"quoth: {path}: No space left on device: compacting needs some ([\d,]+) bytes, and ([\d,]+) are free; "
        "free some space and run the command again\n",
        err,
    )
    assert (code, out) == (1, "")
    assert told
    needed, free = (int(each.replace(",", "")) for each in told.groups())
    assert large * 23 / 24 < needed < 2 * large
    assert free < needed
    assert not list(path.rglob("*.tmp"))
    again = Corpus.open(path)
    again.verify()
    assert ids(again) == left
    again.delete(["large-5"])
    fill(path, 1 << 20)
    again.compact()
    assert ids(again) == sorted({*left} - {"large-5"})


def test_another_error_is_not_tried_again(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Mock(side_effect=OSError(EACCES, "Permission denied"))
    monkeypatch.setattr("quoth.corpus.writer.write_manifest", refused)
    for write in (partial(corpus.delete, ["small-0"]), corpus.compact):
        with pytest.raises(PermissionError):
            write()
    assert (corpus.path / "writer.lock").stat().st_size == RESERVE
