"""A corpus at a URL: what is copied, what is not taken for whole, who may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoth import Corpus
from quoth.errors import InputError, LockedError
from quoth.index.key_store import MARKERS
from quoth.records import Document
from quoth.scale import remote as module
from quoth.scale.remote import TEXT, RemoteFolder


@pytest.fixture
def far(tmp_path: Path) -> Path:
    return tmp_path / "far" / "atlas.quoth"


@pytest.fixture
def place(far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteFolder:
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "one"))
    return RemoteFolder(f"file://{far}")


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same URL seen from a second machine."""
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "two"))


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_folder_needs_no_copy(tmp_path: Path) -> None:
    place = RemoteFolder(str(tmp_path))
    place.send("*")
    place.fetch("*")
    place.remove("*")
    with place.writing():
        assert place.path == tmp_path
    assert not list(tmp_path.iterdir())


def test_a_corpus_travels(place: RemoteFolder, far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place.path.name == "atlas.quoth"
    assert not place.exists()
    corpus = Corpus.create(place.path)
    corpus.add([Document("a", "", "Paris is the capital of France.")])
    place.send(*TEXT)
    assert place.exists()
    Corpus.open(far).verify()
    elsewhere(monkeypatch, tmp_path)
    place.fetch(*TEXT)
    copy = Corpus.open(place.path)
    assert copy.path != corpus.path
    copy.verify()
    assert list(copy.documents()) == list(corpus.documents())
    assert not list(copy.path.rglob("*.tmp"))


def test_only_what_is_asked_for_and_new_is_copied(
    place: RemoteFolder, far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ALWAYS_ANEW", 2)
    write(far / "segments/1/large", "0123")
    write(far / "segments/1/small", "0")
    write(far / "keys/m/1/vectors.npy", "0123")
    place.fetch(*TEXT)
    assert not (place.path / "keys").exists()
    write(far / "segments/1/large", "4567")
    write(far / "segments/1/small", "1")
    place.fetch(*TEXT)
    assert (place.path / "segments/1/large").read_text() == "0123"
    assert (place.path / "segments/1/small").read_text() == "1"
    write(far / "segments/1/large", "45678")
    place.fetch(*TEXT)
    assert (place.path / "segments/1/large").read_text() == "45678"


def test_keys_that_were_not_sent_to_the_end_are_not_there(place: RemoteFolder, far: Path) -> None:
    write(far / "keys/m/1/table.json", "{}")
    place.fetch(*MARKERS)
    assert not (place.path / "keys/m/1").exists()
    write(far / "keys/m/1/checksums.json", "{}")
    place.fetch(*MARKERS)
    assert (place.path / "keys/m/1/table.json").is_file()


def test_what_completes_the_others_is_sent_last(
    place: RemoteFolder, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["manifest-1.json", "keys/m/1/checksums.json", "keys/m/1/vectors.npy", "segments/0/checksums.json"]
    for name in names:
        write(place.path / name, "x")
    from fsspec.implementations.local import LocalFileSystem

    sent: list[str] = []
    plain = LocalFileSystem.put_file

    def put(self: LocalFileSystem, here: str, there: str, **options: object) -> None:
        sent.append(there.removeprefix(f"{far}/"))
        plain(self, here, there, **options)

    monkeypatch.setattr(LocalFileSystem, "put_file", put)
    place.send("*")
    assert sent == ["keys/m/1/vectors.npy", "keys/m/1/checksums.json", "segments/0/checksums.json", "manifest-1.json"]


def test_what_matches_is_removed(place: RemoteFolder, far: Path) -> None:
    write(far / "segments/run-1.tmp/segment/x", "x")
    write(far / "segments/0/x", "x")
    place.remove("segments/run*")
    assert [path.name for path in far.glob("segments/*")] == ["0"]


def test_one_writes_at_a_time(place: RemoteFolder, far: Path) -> None:
    with place.writing():
        with (
            pytest.raises(LockedError, match=r"process \d+ on .* is writing; .* delete file://.*/writer.lock"),
            place.writing(),
        ):
            pass
        assert (far / "writer.lock").is_file()
    with place.writing():
        pass
    assert not (far / "writer.lock").exists()


@pytest.mark.parametrize("exclusive", [True, False])
def test_of_two_writers_at_once_one_wins(
    exclusive: bool, place: RemoteFolder, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the store can create a file exclusively: then it does not help that both have seen no lock."""
    from fsspec.implementations.local import LocalFileSystem

    monkeypatch.setattr(LocalFileSystem, "exists", lambda self, path, **options: False)
    if not exclusive:
        plain = LocalFileSystem.open

        def written(self: LocalFileSystem, path: str, mode: str = "rb", **options: object) -> object:
            if mode == "xb":
                raise NotImplementedError
            return plain(self, path, mode, **options)

        monkeypatch.setattr(LocalFileSystem, "open", written)
    with place.writing():
        assert (far / "writer.lock").read_text().startswith("process ")
        if exclusive:
            with pytest.raises(LockedError, match="is writing"), place.writing():
                pass


def test_folders_are_unsent_until_their_checksums_are_there(place: RemoteFolder, far: Path, tmp_path: Path) -> None:
    names = ["keys/m/1", "keys/m/2", "keys/m/2.codes"]
    for name in names:
        write(place.path / name / "checksums.json", "{}")
    write(far / "keys/m/1/checksums.json", "{}")
    write(far / "keys/m/2/vectors.npy", "{}")
    folders = [place.path / name for name in names]
    assert place.unsent(folders) == folders[1:]
    place.send("keys/*")
    assert place.unsent(folders) == []
    assert RemoteFolder(str(tmp_path)).unsent([tmp_path / "keys"]) == []


def test_a_url_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(InputError, match="nosuch://x: cannot be reached"):
        RemoteFolder("nosuch://x").fetch("*")


def test_a_name_that_leads_out_of_the_copy_is_refused(
    place: RemoteFolder, far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(far / "precious", "theirs")
    write(tmp_path / "one" / "precious", "mine")
    name = "segments/../../../precious"
    monkeypatch.setattr(RemoteFolder, "_sizes", lambda _: {name: 6})
    with pytest.raises(InputError, match=r"segments/\.\./\.\./\.\./precious leads out of the corpus"):
        place.fetch(*TEXT)
    assert (tmp_path / "one" / "precious").read_text() == "mine"
