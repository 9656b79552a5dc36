"""A corpus with a damaged segment: open without it, written to without loss, exported, and repaired or given up."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from quoth import storage
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.manifest import segment_name
from quoth.errors import (
    CorpusNotFoundError,
    CorruptionError,
    DamageWarning,
    InputError,
    LockedError,
    UnknownDocumentError,
)
from quoth.records import Document
from quoth.storage import copy_of

FULL = (28, "No space left on device")
TEXTS = {"a": "Paris lies on the Seine", "b": "Berlin lies on the Spree", "c": "Cairo lies on the Nile"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """a in a segment of its own, b and c in another."""
    corpus = Corpus.create(tmp_path / "x.quoth", splitter="fixed:3")
    corpus.add([Document("a", "A", TEXTS["a"])])
    corpus.add([Document("b", "B", TEXTS["b"]), Document("c", "C", TEXTS["c"], {"metadata": {"x": 1.5}})])
    return corpus.path


def flip(path: Path, text: bytes, segment: int = 1) -> bytes:
    """Change a byte of a text in a segment's documents; returns what was there."""
    file = path / "segments" / segment_name(segment) / "documents.bin"
    before = file.read_bytes()
    assert before.count(text) == 1
    file.write_bytes(before.replace(text, bytes([text[0] ^ 4]) + text[1:]))
    return before


def opened(path: Path) -> Corpus:
    with pytest.warns(DamageWarning, match=r"documents\.bin.*open without segment .*`quoth repair"):
        return Corpus.open(path)


def ids(corpus: Corpus) -> list[str]:
    return [each.id for each in corpus.documents()]


def test_the_intact_part_is_open_and_the_damage_is_said(path: Path) -> None:
    flip(path, b"Nile")
    corpus = opened(path)
    assert (ids(corpus), corpus.num_documents, corpus.num_passages) == (["a"], 1, 2)
    assert [each.entry.name for each in corpus.damaged] == ["000000000001"]
    assert corpus.bm25("Seine Nile", 9)[0].tolist() == [1]
    with pytest.raises(InputError, match="row 2"):
        corpus.passage(2)
    with pytest.raises(UnknownDocumentError, match="unless it is in a damaged segment"):
        corpus.document("c")
    with pytest.raises(CorruptionError, match=r"documents\.bin"):
        corpus.verify()


def test_nothing_intact_is_an_error(path: Path) -> None:
    flip(path, b"Nile")
    flip(path, b"Seine", 0)
    with pytest.raises(CorruptionError, match=r"documents\.bin"):
        Corpus.open(path)


def test_commands_continue_and_verify_fails(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(path, b"Nile")
    (path.parent / "more.jsonl").write_text('{"id": "d", "text": "Delhi lies on the Yamuna"}')
    for command in (
        ["info", str(path)],
        ["list", str(path)],
        ["search", str(path), "Seine"],
        ["add", str(path), str(path.parent / "more.jsonl")],
        ["delete", str(path), "d"],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert main(command) == 0
        assert "open without segment 000000000001 (2 documents)" in capsys.readouterr().err
    assert main(["verify", str(path)]) == 1
    assert "documents.bin" in capsys.readouterr().err


def test_what_is_written_meanwhile_loses_nothing(path: Path) -> None:
    whole = flip(path, b"Nile")
    corpus = opened(path)
    corpus.add([Document("d", "", "Delhi")])
    corpus.replace([Document("c", "", "Khartoum"), Document("a", "", "Rouen")])
    corpus.delete(["d"])
    with pytest.raises(CorruptionError, match="only an intact corpus is compacted"):
        corpus.compact()
    assert sorted(ids(corpus)) == ["a", "c"]
    (path / "segments" / "000000000001" / "documents.bin").write_bytes(whole)
    again = Corpus.open(path)  # the c of the damaged segment is older than the one added since
    assert {each.id: each.text for each in again.documents()} == {"a": "Rouen", "b": TEXTS["b"], "c": "Khartoum"}
    assert (again.num_documents, again.num_passages) == (3, 4)
    corpus.refresh()
    corpus.delete(["c"])
    corpus.compact()
    corpus.verify()
    assert sorted(ids(Corpus.open(path))) == ["a", "b"]
    assert Corpus.open(path).num_documents == 2


def test_a_dropped_segment_is_gone_in_one_commit(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Corpus.open(path).delete(["b"])
    flip(path, b"Nile")
    with pytest.raises(InputError, match="nothing was dropped; damaged: 000000000001"):
        Corpus.repair(path, drop=["000000000000"])
    assert main(["repair", str(path)]) == 1
    assert "of its 1 documents 0 can be read" in capsys.readouterr().err
    assert main(["repair", str(path), "--drop", "000000000001"]) == 0
    assert capsys.readouterr().out.startswith("dropped: ")
    corpus = Corpus.open(path)
    assert (ids(corpus), corpus.num_documents, corpus.snapshot) == (["a"], 1, 4)
    corpus.verify()
    corpus.compact()
    corpus.verify()
    assert [each.name for each in (path / "segments").iterdir()] == ["000000000000"]


def test_a_segment_that_can_be_repaired_is_not_dropped(path: Path) -> None:
    (path / "segments" / "000000000001" / "documents.npy").unlink()
    done = Corpus.repair(path, drop=["000000000001"])
    assert (len(done.repaired), done.lost, done.dropped) == (1, [], [])
    assert ids(Corpus.open(path)) == ["a", "b", "c"]


def test_a_wrong_name_to_drop_hides_no_repair(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path / "segments" / "000000000001" / "documents.npy").unlink()
    assert main(["repair", str(path), "--drop", "000000000009"]) == 2
    wrong, repaired = capsys.readouterr().err.splitlines()
    assert "'000000000009' is not a damaged segment" in wrong
    assert repaired.startswith("quoth: repaired: ")
    assert "documents.npy" in repaired
    assert main(["repair", str(path)]) == 0
    assert "sound, nothing to repair" in capsys.readouterr().out


def test_damage_is_reported_and_nothing_is_dropped_if_the_deletions_are_lost_too(path: Path) -> None:
    corpus = Corpus.open(path)
    corpus.delete(["b"])
    flip(path, b"Nile")
    deletions = path / f"deleted-{corpus.snapshot}.npy"
    whole = deletions.read_bytes()
    for file in (deletions, copy_of(deletions)):
        file.write_bytes(whole[:50])
    for drop in ([], ["000000000001"]):
        done = Corpus.repair(path, drop=drop)
        assert ["deleted-" in each for each in done.lost] == [True, False]
        assert "of its 2 documents 1 can be read" in done.lost[1]
        assert not done.dropped
    deletions.write_bytes(whole)
    assert len(Corpus.repair(path, drop=["000000000001"]).dropped) == 1
    assert ids(Corpus.open(path)) == ["a"]


@pytest.mark.parametrize("name", ["export.jsonl", "export.jsonl.gz"])
def test_an_export_has_every_intact_document(path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = path.parent / name
    assert main(["export", str(path), "-o", str(file)]) == 0
    assert list(read_documents(file)) == list(Corpus.open(path).documents())
    flip(path, b"Nile")
    assert main(["export", str(path), "-o", str(file)]) == 1
    assert "lost: " in (told := capsys.readouterr().err)
    assert "1 of 2 documents cannot be read" in told
    assert [each.id for each in read_documents(file)] == ["a", "b"]
    content = file.read_bytes()
    assert (gzip.decompress(content) if name.endswith("gz") else content).startswith(b'{"id": "a", "title": "A", ')
    assert [each.name for each in path.parent.iterdir() if ".tmp" in each.name] == []


def test_an_export_is_printed_or_refused(path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", str(path), "-o", "-"]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert [json.loads(each)["id"] for each in lines] == ["a", "b", "c"]
    assert main(["export", str(path), "-o", str(path.parent / "x.txt")]) == 2
    capfdbinary.readouterr()
    assert main(["export", str(path), "-o", "/nonexistent/x.jsonl"]) == 1
    assert capfdbinary.readouterr().err == b"quoth: /nonexistent/x.jsonl: No such file or directory\n"


def test_another_corpus_in_the_same_place_is_noticed(path: Path, tmp_path: Path) -> None:
    seen = Corpus.open(path)
    assert seen.is_current()
    other = Corpus.create(tmp_path / "other.quoth", splitter="fixed:3")
    other.add([Document("x", "", "Oslo")])
    other.add([Document("y", "", "Rome")])
    assert other.snapshot == seen.snapshot
    path.rename(tmp_path / "old.quoth")
    other.path.rename(path)
    assert not seen.is_current()
    assert not seen.is_followed_by(Corpus.open(path))
    for act in (seen.refresh, lambda: seen.delete(["a"])):
        with pytest.raises(CorpusNotFoundError, match="another corpus has taken its place"):
            act()
    Corpus.open(path).delete(["x"])  # a later snapshot of another corpus is not a later one of this
    with pytest.raises(CorpusNotFoundError, match="another corpus has taken its place"):
        seen.refresh()
    assert ids(Corpus.open(path)) == ["y"]


def test_a_later_snapshot_is_not_another_corpus(path: Path) -> None:
    seen, writer = Corpus.open(path), Corpus.open(path)
    writer.delete(["a"])
    writer.compact()
    assert not seen.is_current()
    assert seen.is_followed_by(writer)
    seen.refresh()
    assert ids(seen) == ["b", "c"]


def test_a_file_that_was_cut_is_noticed_before_it_is_read(path: Path) -> None:
    corpus = Corpus.open(path)
    file = path / "segments" / "000000000001" / "documents.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert not corpus.is_current()
    damaged = opened(path)
    assert damaged.is_current()
    file.write_bytes(whole)
    assert not damaged.is_current()


def test_a_lock_is_not_waited_for_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(storage, "LOCK_SECONDS", 0.05)
    corpus = Corpus.open(path)
    corpus.add([Document("d", "", "Delhi")])
    with (path / "manifest-3.json").open() as stranger:
        del corpus
        fcntl.flock(stranger, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match=rf"manifest-3\.json: process {os.getpid()} has kept it locked"):
            Corpus.open(path)
    assert Corpus.open(path).num_documents == 4


def test_a_commit_that_others_lock_is_a_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.open(path)

    class Locked:
        def __init__(self, file: Path) -> None:
            if file.name == "manifest-3.json":
                raise LockedError(f"{file} is locked")

    monkeypatch.setattr("quoth.corpus.snapshot.Lease", Locked)
    assert corpus.add([Document("d", "", "Delhi")]) == 1
    assert corpus.document("d").text == "Delhi"


def test_a_full_disk_names_no_writer_but_deletes_and_compacts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pwrite", Mock(side_effect=OSError(*FULL)))
    corpus = Corpus.open(path)
    corpus.delete(["a"])
    corpus.compact()
    assert ids(corpus) == ["b", "c"]


def test_compacting_frees_old_snapshots_before_it_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.open(path)
    corpus.delete(["b"])

    monkeypatch.setattr("quoth.corpus.segment.SegmentWriter.add", Mock(side_effect=OSError(*FULL)))
    with pytest.raises(OSError, match="No space left on device: compacting needs"):
        corpus.compact()
    assert corpus.snapshots() == [3]
    corpus.verify()


@pytest.mark.parametrize("copy", ["missing", "damaged"])
@pytest.mark.parametrize("write", ["add", "delete"])
def test_a_commit_without_any_manifest_is_noticed_and_kept(path: Path, copy: str, write: str) -> None:
    writes: dict[str, Callable[[Corpus], int]] = {
        "add": lambda corpus: corpus.add([Document("d", "", "Delhi")]),
        "delete": lambda corpus: corpus.delete(["a"]),
    }
    writes[write](Corpus.open(path))
    committed = path / "committed.json"
    committed.unlink() if copy == "missing" else committed.write_text("{}")
    (path / "manifest-3.json").unlink()
    before = sorted(each for each in path.rglob("*") if each.suffix != ".lock")
    name = {"add": "000000000003", "delete": r"deleted-3\.copy\.npy, deleted-3\.npy"}[write]
    assert main(["verify", str(path)]) == 1
    with pytest.raises(CorruptionError, match=f"no manifest names {name}"):
        Corpus.open(path)
    assert f"{name}".replace("\\", "") in Corpus.repair(path).lost[0]
    assert sorted(each for each in path.rglob("*") if each.suffix != ".lock") == before


def test_without_a_copy_a_sound_corpus_is_written_to(path: Path) -> None:
    (path / "committed.json").unlink()
    with pytest.raises(CorruptionError, match=r"committed\.json: the file is missing"):
        Corpus.open(path).verify()
    (path / "segments" / "000000000003").mkdir()  # begun, never sealed
    Corpus.open(path).delete(["a"])
    assert (path / "committed.json").is_file()
    assert not (path / "segments" / "000000000003").exists()


@pytest.mark.parametrize("name", ["manifest-9.json", "committed.json"])
def test_a_pipe_is_not_read(path: Path, name: str) -> None:
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    if name == "committed.json":
        assert Corpus.open(path).num_documents == 3
    else:
        with pytest.raises(CorruptionError, match=r"manifest-9\.json: a pipe"):
            Corpus.open(path)


def test_digits_of_other_scripts_name_no_snapshot(path: Path) -> None:
    (path / "manifest-٣.json").touch()
    assert Corpus.open(path).snapshots() == [0, 1, 2]
    with pytest.raises(InputError, match="splitter"):
        Corpus.create(path.parent / "y.quoth", splitter="words:٣")


def test_a_folder_in_place_of_a_table_is_repaired(path: Path) -> None:
    table = path / "segments" / "000000000001" / "passages.npy"
    table.unlink()
    (table / "inside").mkdir(parents=True)
    assert "a folder, not a file" in Corpus.repair(path).repaired[0]
    Corpus.open(path).verify()


def test_verify_has_few_files_open(path: Path) -> None:
    import resource

    corpus = Corpus.open(path)
    for number in range(40):
        corpus.add([Document(f"n{number}", "", "A text.")])
    del corpus
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 16, hard))
    try:
        assert main(["verify", str(path)]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_long_id_is_shortened(path: Path) -> None:
    with pytest.raises(UnknownDocumentError) as error:
        Corpus.open(path).document("x" * 10_000)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),  # mmap
        RuntimeError("unable to mmap 90868376 bytes from file <model.safetensors>: Cannot allocate memory (12)"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        RuntimeError("std::bad_alloc"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_is_short_is_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Corpus, "open", Mock(side_effect=error))
    assert main(["list", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("quoth: not enough memory; raise the limit (ulimit -v)")
    assert err.count("\n") == 1


@pytest.mark.parametrize("error", [RuntimeError("a fault"), ImportError("No module named x")])
def test_other_errors_are_not_taken_for_short_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Corpus, "open", Mock(side_effect=error))
    with pytest.raises(type(error), match=str(error)):
        main(["list", str(path)])


@pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")
def test_streams_that_are_closed_and_a_width_of_nothing(path: Path) -> None:
    import subprocess
    import sys

    info = [sys.executable, "-m", "quoth", "info", str(path)]
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *info], capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")
    narrow = subprocess.run(info, capture_output=True, text=True, env={**os.environ, "COLUMNS": "0"})
    assert "documents" in narrow.stdout
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    search = [sys.executable, "-m", "quoth", "search", str(path), "Čeine Seine"]
    found = subprocess.run(search, capture_output=True, text=True, env=plain)
    assert found.returncode == 0, found.stderr
