"""Files that survive a crash: atomic writes, seals, mapped arrays, the lock."""

import ast
import os
import subprocess
import sys
from contextlib import nullcontext
from errno import EMFILE
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest

from quoth import storage
from quoth.arrays import open_array, open_arrays, open_blob, save_array, save_arrays
from quoth.errors import CorruptionError, LockedError
from quoth.index.codes import _Index
from quoth.storage import (
    CHECKSUMS,
    WriterLock,
    atomic_write_bytes,
    atomic_write_json,
    check_folder,
    publish_directory,
    read_json,
    remove,
    seal_folder,
)


def test_an_atomic_write_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    atomic_write_bytes(file, b"old")
    atomic_write_json(file, {"é": 1})
    assert read_json(file) == {"é": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_rename_is_flushed_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rename, the folder's own entry is flushed: else a power cut may undo what was committed."""
    seen: list[tuple[str, list[str]]] = []
    flush = storage.fsync_path
    monkeypatch.setattr(
        storage, "fsync_path", lambda path: seen.append((path.name, sorted(os.listdir(tmp_path)))) or flush(path)
    )
    atomic_write_bytes(tmp_path / "a", b"new")
    assert seen[-1] == (tmp_path.name, ["a"])
    (tmp_path / "part").mkdir()
    publish_directory(tmp_path / "part", tmp_path / "final")
    assert seen[-1] == (tmp_path.name, ["a", "final"])
    (tmp_path / "final" / "b").write_text("b")
    seal_folder(tmp_path / "final")
    assert [name for name, _ in seen[-3:]] == ["b", "final", tmp_path.name]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    atomic_write_bytes(file, b"old")

    def fail(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        atomic_write_bytes(file, b"new")
    assert file.read_bytes() == b"old"


def test_broken_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    for name in ("a.json", "b.json"):
        with pytest.raises(CorruptionError, match=name):
            read_json(tmp_path / name)


def test_a_seal_sees_sizes_and_small_files_always_and_all_contents_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.bin").write_bytes(b"hello")
    (folder / "large.bin").write_bytes(bytes(100_000))
    seal = seal_folder(folder)
    check_folder(folder, seal, contents=True)
    (folder / "large.bin").write_bytes(bytes(99_999) + b"1")
    check_folder(folder, seal)
    with pytest.raises(CorruptionError, match=r"large\.bin.*altered"):
        check_folder(folder, seal, contents=True)
    (folder / "large.bin").write_bytes(bytes(100_000))
    (folder / "sub" / "a.bin").write_bytes(b"hellO")
    with pytest.raises(CorruptionError, match=r"a\.bin.*altered"):
        check_folder(folder, seal)
    (folder / "sub" / "a.bin").write_bytes(b"hell")
    with pytest.raises(CorruptionError, match=r"a\.bin: 4 bytes, but 5 were written"):
        check_folder(folder, seal)
    (folder / "sub" / "a.bin").unlink()
    with pytest.raises(CorruptionError, match=r"a\.bin.*missing"):
        check_folder(folder, seal)
    (folder / CHECKSUMS).write_text("{}")
    with pytest.raises(CorruptionError, match=CHECKSUMS):
        check_folder(folder, seal)


@pytest.mark.parametrize("size", [0, 10, 100_000])
def test_arrays_are_read_only_and_round_trip(tmp_path: Path, size: int) -> None:
    array = np.arange(size * 2).reshape(size, 2)
    save_array(tmp_path / "a.npy", array)
    found = open_array(tmp_path / "a.npy")
    assert np.array_equal(found, array)
    assert found.dtype == array.dtype
    assert not found.flags.writeable


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_a_broken_array_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    for name in ("a.npy", "b.npy"):
        with pytest.raises(CorruptionError, match=name):
            open_array(tmp_path / name)


@pytest.mark.parametrize(("disturbed", "size"), [(2, 10), (2, 100_000), (10, 10), (10, 100_000)])
def test_a_parser_that_other_threads_disturb_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturbed: int, size: int
) -> None:
    """Python's parser fails by chance while another thread parses; a header at which it always fails is damaged."""
    save_array(tmp_path / "a.npy", np.arange(size))
    save_arrays(tmp_path / "a", [np.arange(size), np.arange(3)])
    for opened in (lambda: open_array(tmp_path / "a.npy"), lambda: open_arrays(tmp_path / "a", 2)[0]):
        parse = Mock(wraps=ast.literal_eval)
        fails = SystemError("AST constructor recursion depth mismatch (before=102, after=37)")
        parse.side_effect = chain([fails] * disturbed, repeat(DEFAULT))
        monkeypatch.setattr(ast, "literal_eval", parse)
        with pytest.raises(CorruptionError, match="recursion depth") if disturbed == 10 else nullcontext():
            assert len(opened()) == size
        monkeypatch.undo()


def test_a_file_that_the_system_does_not_open_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAISS says of such a file no more than of a damaged one."""
    (file := tmp_path / "a.faiss").write_bytes(b"torn")
    with pytest.raises(CorruptionError, match="no longer an index"):
        _Index.read(file, 0)
    monkeypatch.setattr(Path, "open", Mock(side_effect=OSError(EMFILE, "Too many open files")))
    with pytest.raises(OSError, match="Too many open files"):
        _Index.read(file, 0)


@pytest.mark.parametrize("size", [0, 10, 100_000])
def test_blobs_are_sliced(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "b").write_bytes(content)
    assert open_blob(tmp_path / "b")[3:7] == content[3:7]


def test_a_published_directory_replaces_the_old_one(tmp_path: Path) -> None:
    for content in ("old", "new"):
        (tmp_path / "part").mkdir()
        (tmp_path / "part" / "a").write_text(content)
        publish_directory(tmp_path / "part", tmp_path / "final")
        assert (tmp_path / "final" / "a").read_text() == content
    assert os.listdir(tmp_path) == ["final"]
    remove(tmp_path / "final")
    remove(tmp_path / "final")
    assert os.listdir(tmp_path) == []


def test_the_lock_is_free_again_and_names_its_holder(tmp_path: Path) -> None:
    lock = tmp_path / "writer.lock"
    with WriterLock(lock):
        code = (
            "import sys; from pathlib import Path; from quoth.storage import WriterLock\n"
            "with WriterLock(Path(sys.argv[1])): pass"
        )
        done = subprocess.run([sys.executable, "-c", code, str(lock)], capture_output=True, text=True)
        assert f"LockedError: {tmp_path}: process {os.getpid()} is writing" in done.stderr
        with pytest.raises(LockedError, match=f"process {os.getpid()} is writing"), WriterLock(lock):
            pass
    with WriterLock(lock):
        assert lock.read_text().strip() == str(os.getpid())


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from quoth.storage import WriterLock\n"
        "WriterLock(Path(sys.argv[1])).__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "lock")], check=False)
    assert (tmp_path / "lock").read_text() != ""
    with WriterLock(tmp_path / "lock"):
        pass
