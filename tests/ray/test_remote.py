"""A corpus at a URL: what is copied, what is not taken for whole, who may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoth import Corpus
from quoth.errors import CorpusNotFoundError, InputError, LockedError
from quoth.index.key_store import MARKERS
from quoth.records import Document
from quoth.storage import remove
from quoth_ray.remote import TEXT, RemoteFolder


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


def test_only_what_is_asked_for_and_new_is_copied(place: RemoteFolder, far: Path) -> None:
    """A sealed folder is the same if its list of checksums is; other files are always copied."""
    write(far / "segments/1/words", "0123")
    write(far / "segments/1/checksums.json", "{}")
    write(far / "deleted-1.npy", "0")
    write(far / "keys/m/1/vectors.npy", "0123")
    place.fetch(*TEXT)
    assert not (place.path / "keys").exists()
    write(far / "segments/1/words", "4567")
    write(far / "deleted-1.npy", "1")
    place.fetch(*TEXT)
    assert (place.path / "segments/1/words").read_text() == "0123"
    assert (place.path / "deleted-1.npy").read_text() == "1"
    write(far / "segments/1/checksums.json", "[]")
    place.fetch(*TEXT)
    assert (place.path / "segments/1/words").read_text() == "4567"


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


def text(word: str) -> list[Document]:
    """Documents whose files have the same sizes whatever the word is, if it is as long."""
    return [Document(f"d{i}", "", f"{word} is text number {i}.") for i in range(40)]


def test_what_an_interrupted_writer_sent_is_not_taken_for_what_the_next_one_sends(
    place: RemoteFolder, far: Path
) -> None:
    """Not even if the sizes are the same, without the list of checksums or with it."""
    for word, patterns in (("alpha", ("segments/*.bin",)), ("gamma", ("segments/*",)), ("delta", TEXT)):
        remove(place.path)
        Corpus.create(place.path).add(text(word))
        place.send(*patterns)
    corpus = Corpus.open(far)
    corpus.verify()
    assert list(corpus.documents()) == text("delta")


def test_a_copy_of_another_corpus_that_was_at_the_url_is_replaced(place: RemoteFolder, far: Path) -> None:
    """Its later snapshots, its files of the same sizes, and the keys of its segments."""
    Corpus.create(far).add(text("alpha"))
    Corpus.open(far).add([Document("later", "", "A later text.")])
    place.update(*TEXT)
    write(place.path / "keys/m/000000000000/vectors.npy", "of alpha")
    remove(far)
    Corpus.create(far).add(text("gamma"))
    (far / "writer.lock").unlink()  # which is a folder's
    place.update(*TEXT)
    copy = Corpus.open(place.path)
    copy.verify()
    assert list(copy.documents()) == text("gamma")
    assert not list(place.path.glob("keys/m/*"))


def test_a_snapshot_that_was_not_sent_is_forgotten_once_nobody_writes(place: RemoteFolder, far: Path) -> None:
    Corpus.create(far).add(text("alpha"))
    place.update(*TEXT)
    Corpus.open(place.path).add([Document("unsent", "", "Not sent.")])
    write(far / "writer.lock", "process 1 on elsewhere")
    place.update(*TEXT)
    assert Corpus.open(place.path).snapshot == 2
    (far / "writer.lock").unlink()
    place.update(*TEXT)
    assert list(Corpus.open(place.path).documents()) == text("alpha")
    Corpus.open(place.path).add([Document("sent", "", "Sent.")])
    place.send(*TEXT)
    Corpus.open(far).verify()
    assert Corpus.open(far).document("sent").text == "Sent."


def test_what_no_manifest_names_is_cleared(place: RemoteFolder, far: Path) -> None:
    for name in ("000000000000", "000000000007", "000000000009", "0f-1.tmp"):
        write(far / f"segments/{name}/x", "x")
    place.clear("000000000007")
    assert [path.name for path in far.glob("segments/*")] == ["000000000000"]


def test_a_corpus_at_a_url_is_listed_once(place: RemoteFolder, far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.local import LocalFileSystem

    Corpus.create(far).add(text("alpha"))
    plain, times = LocalFileSystem.find, list[str]()

    def find(self: LocalFileSystem, path: str, **options: object) -> object:
        times.append(path)
        return plain(self, path, **options)

    monkeypatch.setattr(LocalFileSystem, "find", find)
    place.update(*TEXT)
    assert len(times) == 1
    with pytest.raises(CorpusNotFoundError, match="no corpus there"):
        RemoteFolder(f"{place.address}.not").update(*TEXT)


@pytest.mark.parametrize("remote", [True, False])
def test_the_state_changes_with_snapshots_and_vectors(remote: bool, place: RemoteFolder, far: Path) -> None:
    here = place if remote else RemoteFolder(str(far))
    Corpus.create(far).add(text("alpha"))
    states = [here.state()]
    Corpus.open(far).delete(["d1"])
    states.append(here.state())
    write(far / "keys/m/000000000000/vectors.npy", "unfinished")
    assert here.state() == states[-1]
    write(far / "keys/m/000000000000/checksums.json", "{}")
    states.append(here.state())
    assert len(set(states)) == 3
