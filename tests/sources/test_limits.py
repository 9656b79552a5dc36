"""What one file may take: bytes, unpacked bytes, a record, time. Each limit ends in one line; the others are read."""

import bz2
import gzip
import io
import lzma
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from written import pdf

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.sync import sync
from quoth.errors import InputError
from quoth.sources import worker
from quoth.sources.worker import Worker

MOST = 100_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can afford."""
    for name in ("documents._MOST_BYTES", "documents.MOST_CHARACTERS", "documents.MOST_IN_RECORD"):
        monkeypatch.setattr(f"quoth.corpus.{name}", MOST)
    for name in ("_MOST_UNPACKED", "MOST_IN_RECORD"):
        monkeypatch.setattr(f"quoth.sources.files.{name}", MOST)


def all_of(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The documents of a folder, and what is said of the other files."""
    errors: list[InputError] = []
    found = [each.id for each in read_documents(folder, skip_bad=True, on_bad=errors.append)]
    return found, {Path(str(error).partition(":")[0]).name: str(error) for error in errors}


PACKED: dict[str, Callable[[bytes], bytes]] = {".bz2": bz2.compress, ".gz": gzip.compress, ".xz": lzma.compress}
BOMBS = {
    "a.txt": b"a" * 10 * MOST,
    "a.md": b"# a\n" * 4 * MOST,
    "a.html": b"<p>" * 4 * MOST,
    "blank.jsonl": b"\n" * 10 * MOST,
    "long.jsonl": b"a" * 10 * MOST,
    "records.jsonl": b'{"text": ""}\n' * MOST,
    "cell.csv": b'text\n"' + b"a\n" * 5 * MOST,
    "cells.csv": b"text\n" + b'"a\n",' * 2 * MOST,
    "row.csv": b"text\n" + b"a," * 5 * MOST,
    "rows.tsv": b"text\na\n" + b"\n" * 10 * MOST,
}


@pytest.mark.usefixtures("small")
@pytest.mark.filterwarnings("ignore::quoth.errors.FileWarning")
@pytest.mark.parametrize("suffix", PACKED)
def test_what_unpacks_to_too_much_is_named_and_the_others_are_read(tmp_path: Path, suffix: str) -> None:
    for name, content in BOMBS.items():
        (tmp_path / f"{name}{suffix}").write_bytes(PACKED[suffix](content))
    (tmp_path / "good.txt").write_text("Good.")
    found, errors = all_of(tmp_path)
    assert [each for each in found if not each.startswith(("records-", "rows-"))] == ["good.txt"]
    assert sorted(errors) == sorted(f"{name}{suffix}" for name in BOMBS)
    assert all("\n" not in error for error in errors.values())


@pytest.mark.usefixtures("small")
@pytest.mark.filterwarnings("ignore::quoth.errors.FileWarning")
def test_what_is_not_compressed_has_limits_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a" * (MOST + 1))
    (tmp_path / "b.txt").write_bytes(b"b" * MOST)
    (tmp_path / "c.jsonl").write_bytes(b'{"id": "c1", "text": "C."}\n' * 1 + b" " * (MOST + 1))
    (tmp_path / "d.csv").write_bytes(b'id,text\nd1,D.\nd2,"' + b"d\n" * MOST)
    (tmp_path / "e.html").write_bytes(b"e" * (MOST + 1))
    (tmp_path / "f.jsonl").write_bytes(b"".join(b'{"id": "f%d", "text": "F."}\n' % n for n in range(MOST // 20)))
    found, errors = all_of(tmp_path)
    assert [each for each in found if each[0] not in "df"] == ["b.txt", "c1"]
    assert sum(each[0] == "f" for each in found) == MOST // 20  # of as many records as there are
    assert sorted(errors) == ["a.txt", "c.jsonl", "d.csv", "e.html"]
    assert "more than 100,000 bytes; split it" in errors["a.txt"]
    assert "is a quotation mark missing?" in errors["d.csv"]


@pytest.mark.usefixtures("small")
def test_real_text_that_is_compressed_is_read_whatever_its_size(tmp_path: Path) -> None:
    content = b"".join(b'{"id": "%d", "text": "Sentence %d of %d."}\n' % (n, n * n, n**3) for n in range(5000))
    assert len(content) > 2 * MOST
    for suffix, pack in PACKED.items():
        (tmp_path / f"a.jsonl{suffix}").write_bytes(pack(content))
        assert sum(1 for _ in read_documents(tmp_path / f"a.jsonl{suffix}")) == 5000


def test_a_compressed_table_that_is_read_at_any_place(tmp_path: Path) -> None:
    stream = io.BytesIO()
    parquet.write_table(pa.table({"id": ["a"], "text": ["A."]}), stream)
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(stream.getvalue()))
    assert [each.id for each in read_documents(tmp_path / "a.parquet.gz")] == ["a"]


DEEP = b"<div>" * 200_000


def test_a_parser_has_the_time_that_its_file_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SECONDS_EACH", 1.0)
    monkeypatch.setattr(worker, "SECONDS_PER_BYTE", 0.0)
    with Worker() as reading:
        for _ in range(2):  # of each file, not of all
            with pytest.raises(ValueError, match="not read within 1 seconds"):
                reading.read("html", DEEP)
            assert reading.read("markdown", "*One.*").text == "One."


def test_sync_goes_on_after_files_that_take_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SECONDS_EACH", 1.0)
    monkeypatch.setattr(worker, "SECONDS_PER_BYTE", 0.0)
    (tmp_path / "f").mkdir()
    for name, content in {"a.html": DEEP, "b.html": b"<p>B.", "c.pdf": pdf(), "d.md": b"# D"}.items():
        (tmp_path / "f" / name).write_bytes(content)
    began = time.process_time()
    done = sync(Corpus.create(tmp_path / "c.quoth"), tmp_path / "f")
    assert done.new == ["b.html", "d.md"]
    assert done.unreadable["a.html"] == "not read within 1 seconds; split it, or convert it to text"
    assert time.process_time() - began < 60
