"""What one file may take: bytes, unpacked bytes, a record, time. Each limit ends in one line; the others are read."""

import bz2
import gzip
import io
import lzma
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from pyarrow import parquet
from written import pdf, read_in

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.sync import sync
from quoth.errors import InputError
from quoth_sources import limits
from quoth_sources.worker import Worker

MOST = 100_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can afford."""
    for name in ("FILE_BYTES", "TEXT_BYTES", "UNPACKED", "RECORD"):
        monkeypatch.setattr(limits, name, MOST)


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


def packed_table(*columns: list[object]) -> bytes:
    stream = io.BytesIO()
    names = ["text", *map(str, range(1, len(columns)))]
    parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), stream, compression="gzip")
    return stream.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not limit memory")
def test_a_table_that_takes_too_much_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMORY", 700 << 20)
    (tmp_path / "a.parquet").write_bytes(packed_table(["a" * (350 << 20)] * 2))
    (tmp_path / "b.parquet").write_bytes(packed_table(["B."]))
    assert (tmp_path / "a.parquet").stat().st_size < 2 << 20
    found, errors = all_of(tmp_path)
    assert found == ["b-1"]
    assert "reading it takes too much memory; split it" in errors["a.parquet"]


@pytest.mark.usefixtures("small")
def test_a_table_whose_rows_are_too_much_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(packed_table(["a" * 1000] * 100_000))
    found, errors = all_of(tmp_path)
    assert len(found) < 20_000
    assert "its rows unpack to too much; split it" in errors["a.parquet"]


def test_records_come_while_the_file_is_read(tmp_path: Path) -> None:
    """Of a pipe without end."""
    os.mkfifo(tmp_path / "a.jsonl")

    def write() -> None:
        with suppress(BrokenPipeError), open(tmp_path / "a.jsonl", "wb") as pipe:
            while True:
                pipe.write(b'{"text": "One."}\n')

    thread = Thread(target=write)
    thread.start()
    documents = read_documents(tmp_path / "a.jsonl")
    assert [each.id for each in islice(documents, 3)] == ["a-1", "a-2", "a-3"]
    del documents
    thread.join(30)
    assert not thread.is_alive()


DEEP = b"<div>" * 200_000
LATE = "not read in the time that its size allows; split it, or convert it to text"


def test_a_parser_has_the_time_that_its_file_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_EACH", 1.0)
    monkeypatch.setattr(limits, "SECONDS_PER_BYTE", 0.0)
    with Worker() as reading:
        for _ in range(2):  # of each file, not of all
            with pytest.raises(ValueError, match=LATE):
                read_in(reading, "html", DEEP)
            assert read_in(reading, "markdown", b"*One.*").text == "One."


def test_sync_goes_on_after_files_that_take_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_EACH", 1.0)
    monkeypatch.setattr(limits, "SECONDS_PER_BYTE", 0.0)
    (tmp_path / "f").mkdir()
    for name, content in {"a.html": DEEP, "b.html": b"<p>B.", "c.pdf": pdf(), "d.md": b"# D"}.items():
        (tmp_path / "f" / name).write_bytes(content)
    began = time.process_time()
    done = sync(Corpus.create(tmp_path / "c.quoth"), tmp_path / "f")
    assert done.new == ["b.html", "d.md"]
    assert done.unreadable["a.html"] == LATE
    assert time.process_time() - began < 60


def test_a_message_that_takes_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_EACH", 2.0)
    monkeypatch.setattr(limits, "SECONDS_PER_BYTE", 0.0)
    message = b"From a Mon Jan  1 10:00:00 2024\nSubject: x\nContent-Type: text/html\n\n%s\n\n"
    (tmp_path / "a.mbox").write_bytes(b"".join(message % each for each in (b"<p>A.", DEEP, b"<p>B.")))
    errors: list[InputError] = []
    found = [each.text for each in read_documents(tmp_path, skip_bad=True, on_bad=errors.append)]
    assert found == ["Subject: x\n\nA.", "Subject: x\n\nB."]
    assert [LATE in str(each) for each in errors] == [True]
