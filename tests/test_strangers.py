"""Folders that come from somebody else, or are read by somebody else: what they may do, and what not."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from killed import document
from quoth import Corpus
from quoth.arrays import save_array
from quoth.errors import InputError
from quoth.storage import WriterLock, atomic_write_bytes, remove

NOBODY = 65534


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder: Path, files: bool) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in folder.rglob("*") if each.is_file() == files}


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o002])
def test_every_file_of_a_corpus_has_the_usual_mode(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        corpus = Corpus.create(tmp_path / "c.quoth", splitter="fixed:3")
        corpus.add([document("a"), document("b")])
        corpus.delete(["a"])
        corpus.compact()
    assert modes(corpus.path, files=True) == {0o666 & ~mask}
    assert modes(corpus.path, files=False) == {0o777 & ~mask}


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def who_may_only_read(folder: Path) -> Iterator[None]:
    """As another user; where one cannot become one, with nothing to write to."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
        return
    before = [(each, each.stat().st_mode) for each in [folder, *folder.rglob("*")]]
    for each, mode in before:
        each.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for each, mode in before:
            each.chmod(mode)


def test_who_may_read_a_corpus_may_search_it(shared: Path) -> None:
    with umask(0o022):
        corpus = Corpus.create(shared / "c.quoth", splitter="fixed:3")
        corpus.add([document("a"), document("b")])  # seven words each, so three passages
    with who_may_only_read(corpus.path):
        reader = Corpus.open(corpus.path)
        assert sorted(reader.bm25("zbv0", 10)[0].tolist()) == [3, 4, 5]
        reader.verify()
    with umask(0o022):
        corpus.add([document("c")])
    with who_may_only_read(corpus.path):
        reader.refresh()
        assert sorted(reader.bm25("zcv0", 10)[0].tolist()) == [6, 7, 8]
        assert sorted(reader.bm25("zbv0", 10)[0].tolist()) == [3, 4, 5]
    assert not [each for each in shared.rglob("*") if each.is_symlink()]


PRECIOUS = "my precious file"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of somebody's own, with files of such names as a corpus has."""
    folder = tmp_path / "precious"
    for name in ("file", "zoo/file", "000000000009/file", "x.tmp", "b.part"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(PRECIOUS)
    return folder


def untouched(precious: Path) -> bool:
    files = [each for each in precious.rglob("*") if each.is_file()]
    return len(files) == 5 and all(each.read_text() == PRECIOUS for each in files)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = Corpus.create(tmp_path_factory.mktemp("whole") / "c.quoth", splitter="fixed:3")
    corpus.add([document("a"), document("b")])
    corpus.delete(["a"])
    (corpus.path / "keys" / "model").mkdir(parents=True)
    (corpus.path / "keys" / "model" / "writer.lock").touch()
    return corpus.path


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("writer.lock", "file"),
        ("stray.tmp", "."),
        ("manifest-2.json.1.tmp", "file"),
        ("deleted-3.npy", "file"),
        ("segments", "."),
        ("segments/000000000002", "."),
        ("keys", "."),
        ("keys/model", "."),
        ("keys/model/writer.lock", "file"),
        ("keys/model/000000000000.carried.part", "."),
    ],
)
def test_nothing_is_written_or_removed_through_a_link(
    whole: Path, precious: Path, tmp_path: Path, name: str, target: str
) -> None:
    path = tmp_path / "c.quoth"
    shutil.copytree(whole, path)
    link = path / name
    if link.is_dir():
        shutil.copytree(link, precious, dirs_exist_ok=True)  # so that the corpus still opens
        before = sorted(each.relative_to(precious) for each in precious.rglob("*"))
        shutil.rmtree(link)
    else:
        before = sorted(each.relative_to(precious) for each in precious.rglob("*"))
        if link.exists() and target == "file" and link.stat().st_size:
            (precious / "file").write_bytes(link.read_bytes())
        link.unlink(missing_ok=True)
    kept = (precious / "file").read_bytes()
    link.symlink_to(precious if target == "." else precious / target)
    corpus = Corpus.open(path)
    writes: list[Callable[[], object]] = [
        lambda: corpus.add([document("c")]),
        lambda: corpus.delete(["b"]),
        corpus.compact,
    ]
    for write in writes:
        with pytest.raises(InputError, match=f"{link} is a symbolic link"):
            write()
    assert (precious / "file").read_bytes() == kept
    assert sorted(each.relative_to(precious) for each in precious.rglob("*")) == before
    link.unlink()


def test_a_corpus_may_itself_be_a_link(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "elsewhere")
    (tmp_path / "c.quoth").symlink_to(tmp_path / "elsewhere")
    corpus = Corpus.open(tmp_path / "c.quoth")
    corpus.add([document("c")])
    corpus.compact()
    assert [each.id for each in Corpus.open(tmp_path / "elsewhere").documents()] == ["b", "c"]


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_a_lock_is_a_plain_file(precious: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "run").mkdir()
    lock = tmp_path / "run" / "writer.lock"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(precious / ("file" if kind == "link" else "new"))
    with pytest.raises((InputError, IsADirectoryError), match=r"writer\.lock"), WriterLock(lock):
        pass
    assert untouched(precious)
    shutil.rmtree(lock) if kind == "folder" else lock.unlink()
    with WriterLock(lock):
        assert lock.read_text().strip() == str(os.getpid())


def test_a_run_is_not_written_through_a_link(precious: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "towers").symlink_to(precious)
    for _ in range(2):
        with pytest.raises(InputError, match="towers is a symbolic link"), WriterLock(run / "writer.lock"):
            pass
    (run / "towers").unlink()
    with WriterLock(run / "writer.lock"):
        pass
    assert untouched(precious)


def test_files_are_written_anew_where_links_stood(precious: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.npy"):
        (tmp_path / name).symlink_to(precious / "file")
    (tmp_path / "gone").symlink_to(precious)
    atomic_write_bytes(tmp_path / "a.json", b"{}")
    save_array(tmp_path / "b.npy", np.arange(3))
    remove(tmp_path / "gone")
    assert (tmp_path / "a.json").read_text() == "{}"
    assert np.load(tmp_path / "b.npy").tolist() == [0, 1, 2]
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.npy", "precious"]
    assert untouched(precious)
