"""A corpus in step with a folder, whatever happens there."""

import errno
import gzip
import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import quoth.corpus.documents as reading
import quoth.corpus.sync as module
from commands import Run
from quoth import Corpus, Document, read_documents
from quoth.corpus.manifest import LOCK
from quoth.corpus.sync import Synced, sync
from quoth.errors import CorruptionError, FileWarning, InputError
from quoth.index.key_store import follow
from quoth.storage import WriterLock, encode_json, sha256_bytes
from quoth_sources import worker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.create(tmp_path / "c.quoth")


BINARY = "\0\udcff\0\udcff"


def write(file: Path, text: str) -> None:
    """A file that was written long ago, at another time than before."""
    before = file.stat().st_mtime if file.exists() else time.time() - 1_000_000
    file.write_bytes(text.encode(errors="surrogateescape"))
    os.utime(file, (before + 10, before + 10))


def documents(corpus: Corpus) -> dict[str, str]:
    return {each.id: each.text for each in Corpus.open(corpus.path).documents()}


def everything(corpus: Path) -> bytes:
    """Every name and every byte in a corpus's folder."""
    files = (path for path in corpus.rglob("*") if path.is_file() and path.name != LOCK)  # which has random bytes
    return b"\n".join(bytes(file.relative_to(corpus)) + file.read_bytes() for file in files)


def rows(*records: dict[str, str]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize("seed", range(3))
def test_the_corpus_has_what_the_folder_has(corpus: Corpus, folder: Path, seed: int) -> None:
    """Against a dictionary of what every file would give, through random changes, each sync in steps of two files."""
    corpus.add([Document("elsewhere", "", "Not of this folder.")])
    rng, expected = random.Random(seed), {"elsewhere": "Not of this folder."}
    held: dict[str, dict[str, str]] = {}
    names = ["a.txt", "b.md", "deep/c.txt", "d.jsonl", "e.jsonl", "drafts.txt"]
    for turn in range(9):
        changed = rng.sample(names, 3)
        for name in changed:
            file, text = folder / name, f"turn {turn} of {name}"
            match rng.choice(["write", "write", "remove", "break", "rewrite"]):
                case "remove":
                    file.unlink(missing_ok=True)
                case "break":
                    write(file, BINARY if not name.endswith("jsonl") else rows({"id": f"{name}-x", "text": "x"}) + "{")
                case "rewrite" if file.exists():
                    write(file, file.read_text(errors="surrogateescape"))
                case _:
                    count = rng.randrange(1, 4)
                    lines = [{"id": f"{name}-{n}", "text": f"{text} {rng.randrange(2)}"} for n in range(count)]
                    write(file, rows(*lines) if name.endswith("jsonl") else text)
        write(folder / ".quothignore", "drafts*\n" if rng.random() < 0.5 else "")
        for name in names:
            ignored = name == "drafts.txt" and (folder / ".quothignore").read_text()
            if not (folder / name).exists() or ignored:
                held.pop(name, None)
                continue
            try:
                read = list(read_documents(folder / name))
            except InputError:
                continue
            held[name] = {name if len(read) == 1 and not name.endswith("jsonl") else d.id: d.text for d in read}
        if any((folder / name).exists() for name in names[:5]):
            done = sync(corpus, folder)
        else:
            continue
        expected = {"elsewhere": "Not of this folder."} | {k: v for each in held.values() for k, v in each.items()}
        assert documents(corpus) == expected
        assert not sync(corpus, folder)
        assert {*done.new, *done.changed} <= set(changed) | {"drafts.txt"} or turn == 0 or done.new


def test_what_was_done_is_said(corpus: Corpus, folder: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "deep/d.txt"):
        write(folder / name, f"The text of {name}.")
    assert sync(corpus, folder) == Synced(new=["a.txt", "b.txt", "c.txt", "deep/d.txt"])
    write(folder / "a.txt", "Another text.")
    write(folder / "b.txt", BINARY)
    (folder / "c.txt").rename(folder / "e.txt")
    planned = sync(corpus, folder, dry_run=True)
    assert sync(corpus, folder) == planned
    assert (planned.new, planned.changed, planned.deleted, planned.unchanged) == (["e.txt"], ["a.txt"], ["c.txt"], 1)
    assert list(planned.unreadable) == ["b.txt"]
    assert "binary" in planned.unreadable["b.txt"]
    assert set(documents(corpus)) == {"a.txt", "b.txt", "e.txt", "deep/d.txt"}


@pytest.mark.filterwarnings("ignore::quoth.errors.FileWarning")
@pytest.mark.parametrize("name", ["a.txt.gz", "a.1.gz"])
def test_a_damaged_file_keeps_its_documents(corpus: Corpus, folder: Path, name: str) -> None:
    whole = gzip.compress(b".TH A 1\n.SH NAME\na \\- a page\n")
    (folder / name).write_bytes(whole)
    sync(corpus, folder)
    before = documents(corpus)
    for damaged in (whole[:-12], whole[:10] + bytes([255] * 20)):
        (folder / name).write_bytes(damaged)
        done = sync(corpus, folder)
        assert (list(done.unreadable), bool(done), documents(corpus)) == ([name], False, before)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read."""
    names = list[str]()

    def noting(sources: list[Any], *rest: Any) -> Iterator[Document]:
        names.extend(name for _, _, name in sources)
        return original(sources, *rest)

    original = module.read_each
    monkeypatch.setattr(module, "read_each", noting)
    return names


def test_only_files_with_other_bytes_are_read(corpus: Corpus, folder: Path, read: list[str]) -> None:
    for name in ("a.txt", "b.txt"):
        write(folder / name, "One text.")
    sync(corpus, folder)
    write(folder / "a.txt", "One text.")  # another time, the same bytes
    read.clear()
    sync(corpus, folder)
    assert read == []
    now = time.time()
    for text in ("Two text.", "Six text."):  # twice within one tick, of the same size
        (folder / "b.txt").write_text(text)
        os.utime(folder / "b.txt", (now, now))
        sync(corpus, folder)
    assert documents(corpus)["b.txt"] == "Six text."


def test_after_a_kill_the_next_run_goes_on(
    corpus: Corpus, folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{n}.txt" for n in range(6)]
    for name in names:
        write(folder / name, f"The text of {name}.")
    monkeypatch.setattr(module, "STEP_FILES", 2)
    commit, commits = module._Sync._commit, list[int]()

    def stopped(self: Any, *step: Any) -> None:
        commit(self, *step)
        commits.append(1)
        if len(commits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(module._Sync, "_commit", stopped)
    with pytest.raises(KeyboardInterrupt):
        sync(corpus, folder)
    assert sorted(documents(corpus)) == names[:4]
    (folder / "3.txt").unlink()
    read.clear()
    sync(corpus, folder)
    assert read == ["4.txt", "5.txt"]
    assert sorted(documents(corpus)) == ["0.txt", "1.txt", "2.txt", "4.txt", "5.txt"]


def test_what_the_corpus_has_lost_is_read_again(corpus: Corpus, folder: Path, read: list[str]) -> None:
    for name in ("a.txt", "b.txt"):
        write(folder / name, f"The text of {name}.")
        sync(corpus, folder)
    write(folder / "rows.jsonl", rows({"id": "1", "text": "One."}, {"id": "2", "text": "Two."}))
    sync(corpus, folder)
    before = documents(corpus)
    Corpus.open(corpus.path).delete(["a.txt", "2"])
    (segment := corpus.segments[1].path / "documents.bin").write_bytes(segment.read_bytes()[:-1])
    Corpus.repair(corpus.path, drop=[corpus.segments[1].name])
    read.clear()
    done = sync(Corpus.open(corpus.path), folder)
    assert (done.changed, documents(corpus)) == (["a.txt", "b.txt", "rows.jsonl"], before)
    corpus = Corpus.open(corpus.path)
    corpus.delete(["a.txt"])
    write(folder / "a.txt", BINARY)
    for _ in range(2):
        assert list(sync(corpus, folder).unreadable) == ["a.txt"]
    assert sync(corpus, folder).unchanged == 2
    write(folder / "a.txt", "The text of a.txt.")  # as it was when it was read
    assert sync(corpus, folder).changed == ["a.txt"]
    assert documents(corpus) == before
    assert sync(corpus, folder).unchanged == 3


def test_what_another_folder_s_sync_follows_is_read_again_too(corpus: Corpus, folder: Path, tmp_path: Path) -> None:
    write(folder / "a.txt", "The text of a.txt.")
    sync(corpus, folder)
    corpus.delete(["a.txt"])
    (other := tmp_path / "other").mkdir()
    write(other / "b.txt", "The text of b.txt.")
    sync(corpus, other)
    assert sync(corpus, folder).changed == ["a.txt"]


def test_documents_of_others_are_left_alone(corpus: Corpus, folder: Path) -> None:
    corpus.add([Document("a.txt", "", "From elsewhere."), Document("gone", "", "Too.")])
    write(folder / "a.txt", "From here.")
    write(folder / "one.jsonl", rows({"id": "x", "text": "One."}, {"id": "y", "text": "Two."}))
    write(folder / "two.jsonl", rows({"id": "x", "text": "Another."}))
    with pytest.warns(FileWarning, match=r"two\.jsonl: ids that another file has too become 'two\.jsonl#ID'"):
        done = sync(corpus, folder)
    assert done.new == ["one.jsonl", "two.jsonl"]
    assert "not from here; rename the file" in done.unreadable["a.txt"]
    corpus.replace([Document("y", "", "Changed by hand.")])
    (folder / "one.jsonl").unlink()
    assert sync(corpus, folder).deleted == ["one.jsonl"]
    assert documents(corpus) == {
        "a.txt": "From elsewhere.",
        "gone": "Too.",
        "two.jsonl#x": "Another.",
        "y": "Changed by hand.",
    }


def test_what_two_folders_have_stays_until_it_is_gone_from_both(corpus: Corpus, folder: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for each in (here, there):
        each.mkdir()
        write(each / "x.txt", "Shared.")
        write(each / f"{each.name}.txt", "Its own.")
        write(each / "rows.jsonl", rows({"id": "1", "text": "One."}, {"id": "2", "text": "Two."}))
        sync(corpus, each)
    before = documents(corpus)
    (there / "x.txt").unlink()
    write(there / "rows.jsonl", rows({"id": "1", "text": "One."}))
    sync(corpus, there)
    assert documents(corpus) == before
    write(there / "rows.jsonl", rows({"id": "1", "text": "Changed."}))
    assert list(sync(corpus, there).unreadable) == ["rows.jsonl"]
    assert documents(corpus) == before
    write(here / "rows.jsonl", rows({"id": "1", "text": "Changed."}))
    assert not sync(corpus, there).unreadable  # both say the same again
    sync(corpus, here)
    here.rename(moved := tmp_path / "moved")
    sync(corpus, moved)
    (moved / "x.txt").unlink()
    sync(corpus, moved)
    assert documents(corpus) == {"here.txt": "Its own.", "there.txt": "Its own.", "1": "Changed."}


@pytest.mark.filterwarnings("ignore:.*ids that another file has")
def test_ids_of_several_files_stay_apart_whichever_changes(corpus: Corpus, folder: Path, run: Run) -> None:
    for name in ("a.csv", "b.csv"):
        write(folder / name, f"id,text\n1,One of {name}\n")
    assert run("index", folder, "-o", folder.parent / "i.quoth")[0] == 0
    assert sync(Corpus.open(folder.parent / "i.quoth"), folder).unchanged == 2  # the same ids
    assert sync(corpus, folder).new == ["a.csv", "b.csv"]
    assert sync(corpus, folder).unchanged == 2
    write(folder / "a.csv", "id,text\n1,One changed\n")
    write(folder / "b.csv", "id,text\n1,One of b.csv\n2,Two of b.csv\n")
    assert sync(corpus, folder).changed == ["a.csv", "b.csv"]
    assert documents(corpus) == {"1": "One changed", "b.csv#1": "One of b.csv", "2": "Two of b.csv"}
    (folder / "a.csv").unlink()
    write(folder / "b.csv", "id,text\n1,Now alone\n")
    sync(corpus, folder)
    assert documents(corpus) == {"1": "Now alone"}
    write(folder / "b.csv", "id,text\n1,Now alone\n1,Twice\n")
    assert sync(corpus, folder).unreadable == {"b.csv": "3: id '1' occurs twice"}


def test_a_record_that_moves_to_a_later_file_keeps_its_id(corpus: Corpus, folder: Path) -> None:
    one, two, three = ({"id": each, "text": f"The text of {each}."} for each in "123")
    write(folder / "a.jsonl", rows(one, two))
    write(folder / "b.jsonl", rows(three))
    sync(corpus, folder)
    write(folder / "a.jsonl", rows(one))
    write(folder / "b.jsonl", rows(two | {"text": "Changed."}, three))
    assert sync(corpus, folder).changed == ["a.jsonl", "b.jsonl"]
    assert documents(corpus) == {"1": "The text of 1.", "2": "Changed.", "3": "The text of 3."}
    assert not sync(corpus, folder)


def test_what_was_indexed_before_is_taken_over(run: Run, folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(folder / f"{name}.txt", f"The text of {name}.")
    assert run("index", folder, "-o", tmp_path / "i.quoth")[0] == 0
    (folder / "b.txt").unlink()
    write(folder / "c.txt", "Another text.")
    code, out, _ = run("sync", folder, tmp_path / "i.quoth")
    assert code == 0
    assert out.splitlines()[:2] == ["~ c.txt", "- b.txt"]
    assert "0 new, 1 changed, 1 deleted, 1 unchanged; 2 documents, 2 passages" in out


def test_the_command(run: Run, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "new" / "s.quoth"
    assert run("sync", tmp_path / "none", place)[0] == 2
    code, _, error = run("sync", folder, place)
    assert (code, place.parent.exists()) == (2, False)
    assert "no file in it can be read" in error
    write(folder / "a.txt", "The meeting is on Friday.")
    write(folder / "b.jsonl", "{")
    assert "1 new" in run("sync", folder, place, "--dry-run")[1]
    assert not place.exists()
    code, out, error = run("sync", folder, place)
    assert (code, out.splitlines()[0]) == (1, "+ a.txt")
    assert "left out: b.jsonl: 1: not JSON" in error
    assert "not JSON" in error
    assert run("sync", folder, place, "--json")[0] == 1
    (folder / "b.jsonl").unlink()
    assert run("sync", folder, place)[0] == 0
    (folder / "a.txt").unlink()
    code, _, error = run("sync", folder, place)
    assert code == 2
    assert "the corpus has 1 from it, which --delete-all deletes" in error
    code, out, _ = run("sync", folder, place, "--delete-all", "--json")
    assert json.loads(out)["deleted"] == ["a.txt"]
    assert documents(Corpus.open(place)) == {}


def test_names_that_are_not_utf8_are_told_and_stop_nothing(run: Run, folder: Path, tmp_path: Path) -> None:
    write(folder / "a.txt", "One.")
    strange = Path(os.fsdecode(bytes(folder) + b"/b\xff.jsonl"))
    write(strange, rows({"id": "1", "text": "Two."}))
    for _ in range(2):
        code, _, error = run("sync", folder, tmp_path / "c.quoth")
        assert (code, error) == (1, "quoth: left out: b\\udcff.jsonl: its name is not UTF-8; rename it\n")
    assert documents(Corpus.open(tmp_path / "c.quoth")) == {"a.txt": "One."}
    strange.rename(folder / "b.jsonl")
    moved = folder.rename(os.fsdecode(bytes(tmp_path) + b"/fo\xff"))
    assert run("index", moved, "-o", tmp_path / "i.quoth")[0] == 0
    write(moved / "a.txt", "Changed.")
    assert run("replace", tmp_path / "i.quoth", moved)[0] == 0
    assert documents(Corpus.open(tmp_path / "i.quoth")) == {"a.txt": "Changed.", "1": "Two."}
    for command in (("replace", tmp_path / "i.quoth", moved, "--delete-missing"), ("sync", moved, tmp_path / "new")):
        code, _, error = run(*command)
        assert (code, "its path is not UTF-8" in error, error.count("\n")) == (2, True, 1)
    assert not (tmp_path / "new").exists()


def test_a_watch_begins_with_nothing_and_waits_for_who_writes(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, writing = tmp_path / "s.quoth", ExitStack()
    write(folder / "a.jsonl", "{")

    def begin_to_write() -> None:
        writing.enter_context(WriterLock(place / LOCK))
        write(folder / "c.txt", "The third text.")

    before_looks = iter([lambda: write(folder / "b.txt", "The second text."), begin_to_write, int, writing.close])

    def sleep(seconds: float) -> None:
        assert seconds < 1e10
        next(before_looks, Mock(side_effect=KeyboardInterrupt))()

    monkeypatch.setattr("quoth.cli.sync.time", SimpleNamespace(sleep=sleep))
    _, out, error = run("sync", folder, place, "--watch", "inf")
    assert [line for line in out.splitlines() if line[0] in "+~-"] == ["+ b.txt", "+ c.txt"]
    assert error.count("is writing; wait for it to end") == 1
    assert documents(Corpus.open(place)) == {"b.txt": "The second text.", "c.txt": "The third text."}


def test_a_watch_goes_on_when_the_folder_was_away_or_empty(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.txt", "One.")
    away = folder.with_name("away")

    def empty() -> None:
        write(away / "b.txt", "Two.")
        folder.mkdir()

    def back() -> None:
        folder.rmdir()
        away.rename(folder)

    before_looks = iter([lambda: folder.rename(away), int, empty, back])
    monkeypatch.setattr(
        "quoth.cli.sync.time",
        SimpleNamespace(sleep=lambda _: next(before_looks, Mock(side_effect=KeyboardInterrupt))()),
    )
    _, out, error = run("sync", folder, tmp_path / "s.quoth", "--watch", "1")
    assert (error.count("no such folder"), error.count("no file in it can be read")) == (1, 1)
    assert [line for line in out.splitlines() if line[0] in "+~-"] == ["+ a.txt", "+ b.txt"]


def test_files_that_cannot_be_read_are_parsed_once_and_named_each_time(
    run: Run, corpus: Corpus, folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.txt", "One.")
    write(folder / "b.jsonl", "{")
    write(folder / "c.jsonl", rows({"id": "c", "text": "Three."}))
    sync(corpus, folder)
    write(folder / "c.jsonl", "{{")
    told = []
    for _ in range(3):
        read.clear()
        assert run("sync", folder, corpus.path)[0] == 1
        done = sync(Corpus.open(corpus.path), folder)
        told.append((done.unreadable.keys(), done.kept, [*read]))
    assert [names for _, _, names in told] == [["c.jsonl"], [], []]
    assert {(*names, *kept) for names, kept, _ in told} == {("b.jsonl", "c.jsonl", "c.jsonl")}
    error = run("sync", folder, corpus.path)[2]
    assert "left out: b.jsonl: 1: not JSON" in error
    assert "left as it was: c.jsonl: 1: not JSON" in error
    monkeypatch.setattr("quoth.corpus.seen.__version__", "another")  # which may read what this one cannot
    sync(corpus, folder)
    assert read == ["b.jsonl", "c.jsonl"]
    read.clear()
    write(folder / "b.jsonl", rows({"id": "b", "text": "Two."}))
    (corpus.path / "seen.json").write_text("{}")  # it only saves work
    assert (sync(corpus, folder).new, read) == (["b.jsonl"], ["b.jsonl", "c.jsonl"])


def test_what_is_not_a_file_s_fault_is_not_remembered(corpus: Corpus, folder: Path) -> None:
    corpus.add([Document("a.txt", "", "From elsewhere.")])
    write(folder / "a.txt", "From here.")
    write(folder / "b.txt", "Two.")
    for _ in range(2):
        assert "not from here" in sync(corpus, folder).unreadable["a.txt"]
    corpus.delete(["a.txt"])
    assert sync(corpus, folder).new == ["a.txt"]


@pytest.fixture
def press(corpus: Corpus, folder: Path) -> list[str]:
    """A folder in the corpus of which a part is the press's: their names, words and digests, as patterns."""
    (folder / "zimtpress").mkdir()
    texts = {"zimtpress/a.md": "# Quagmaier\n\nQuilpwort ganz.", "zimtpress/b.md": "Quazzelbaum."}
    for name, text in texts.items():
        write(folder / name, f"---\nowner: zimtpress\n---\n{text}\n")
    write(folder / "own.md", "---\nowner: others\n---\nOurs.\n")
    theirs = {"id": "zimt2", "text": "Quendel.", "owner": "zimtpress"}
    write(folder / "rows.jsonl", rows({"id": "1", "text": "One.", "owner": "others"}, theirs))
    write(folder / "zimtpress" / "bad.jsonl", "{")
    for number in range(4):  # the record is of several parts
        write(folder / f"more-{number}.txt", "More.")
        sync(corpus, folder)
    record = json.loads((corpus.path / "origins-1.json").read_text())[folder.name]
    files = [record[name] for name in (*texts, "rows.jsonl")]
    digests = [each["digest"] for each in files] + [dict(each["documents"]).popitem()[1] for each in files]
    return ["zimt", "Quagm", "Quilp", "Quazz", "Quend", *digests]


def held(corpus: Corpus, probes: list[str]) -> set[str]:
    content = everything(corpus.path)
    return {probe for probe in probes if probe.encode() in content}


def test_compacting_leaves_nothing_of_what_was_deleted(
    corpus: Corpus, folder: Path, press: list[str], run: Run
) -> None:
    assert held(corpus, press) == {*press}
    for wrong in ([], ["--where", "owner = 'nobody'"]):
        assert run("delete", corpus.path, *wrong)[0] == 2
    code, _, told = run("delete", corpus.path, "--where", "owner = 'zimtpress'")
    still = f"3 files are still in {folder} (rows.jsonl, zimtpress/a.md, zimtpress/b.md); quoth sync reads them again"
    assert (code, still in told) == (0, True), told
    for left in ("repair/000000000000", "keys/model/000000000000.tmp"):  # by a repair, and an embed, that were killed
        (corpus.path / left).mkdir(parents=True)
        (corpus.path / left / "documents.bin").write_bytes(b"Quilpwort")
    corpus.refresh()
    corpus.compact()
    follow(corpus)
    assert held(corpus, press) == set()
    corpus.verify()
    left = documents(corpus)
    write(folder / ".quothignore", "zimtpress\n")
    done = sync(corpus, folder)
    assert (done.changed, done.new, done.deleted) == (["rows.jsonl"], [], [])  # as the file has it
    assert documents(corpus) == left | {"zimt2": "Quendel."}
    (folder / ".quothignore").unlink()
    assert sync(corpus, folder).new == ["zimtpress/a.md", "zimtpress/b.md"]


def test_a_folder_of_which_nothing_is_left_is_forgotten(corpus: Corpus, folder: Path) -> None:
    write(folder / "a.txt", "One.")
    write(folder / "empty.jsonl", "")
    sync(corpus, folder)
    corpus.delete(["a.txt"])
    corpus.compact()
    assert held(corpus, ["notes", "a.txt"]) == {"notes"}  # which has an empty file
    (folder / "empty.jsonl").unlink()
    sync(corpus, folder)
    corpus.delete(["a.txt"])
    corpus.compact()
    assert held(corpus, ["notes", "a.txt"]) == set()


def test_a_damaged_record_is_not_compacted(corpus: Corpus, folder: Path, press: list[str]) -> None:
    corpus.delete(["zimt2"])
    for file in corpus.path.glob("origins-*"):
        file.write_bytes(b"")
    before = everything(corpus.path)
    with pytest.raises(CorruptionError, match=r"origins-\d\.json: 0 bytes.*quoth repair"):
        corpus.compact()
    assert everything(corpus.path) == before
    Corpus.repair(corpus.path)
    Corpus.open(corpus.path).compact()
    assert not held(corpus, ["zimt2", "Quendel"])


@pytest.fixture
def older(corpus: Corpus, folder: Path) -> Corpus:
    """A corpus of before, with its records beside the documents, in the formats of then."""
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        write(folder / name, f"The text of {name}.")
    sync(corpus, folder)
    corpus.delete(["d.txt"])
    path, last = corpus.path, corpus.snapshot
    content = json.loads((path / f"manifest-{last}.json").read_text())
    record = json.loads((path / content["origins"][-1]["name"]).read_text())[folder.name]
    for name in ("origins", "bypassed", "sha256"):
        del content[name]
    content["format"] = 2
    content["sha256"] = sha256_bytes(encode_json(content))
    (path / f"manifest-{last}.json").write_bytes(encode_json(content))
    for file in {*path.glob("*.copy.*"), *path.glob("origins-*"), path / "seen.json", path / "committed.json"}:
        file.unlink()
    for snapshot in range(last):
        (path / f"manifest-{snapshot}.json").unlink()
    known = {name: {**record[name], "size": 5, "time": 7} for name in ("a.txt", "b.txt", "d.txt")}
    (path / "sync.json").write_bytes(encode_json({"": {folder.name: last}, folder.name: known}))
    indexed = {name: digest for name, origin in record.items() for digest in origin["documents"].values()}
    (path / "origins.json").write_bytes(encode_json({folder.name: indexed}))
    return Corpus.open(path)


def test_the_records_of_a_corpus_of_before_are_taken_over(older: Corpus, folder: Path, read: list[str]) -> None:
    older.verify()
    (folder / "b.txt").unlink()
    (folder / "c.txt").unlink()
    write(folder / "d.txt", "Again.")
    done = sync(older, folder)
    assert (done.unchanged, done.changed, sorted(done.deleted)) == (1, ["d.txt"], ["b.txt", "c.txt"])
    assert read == ["d.txt"]
    assert documents(older) == {"a.txt": "The text of a.txt.", "d.txt": "Again."}
    older.delete(["a.txt"])
    assert not [*older.path.glob("sync.json"), *older.path.glob("origins.json")]
    assert sync(older, folder).changed == ["a.txt"]
    older.verify()


def test_compacting_forgets_what_is_gone_in_the_records_of_before_too(older: Corpus, folder: Path) -> None:
    older.delete(["b.txt"])
    older.compact()
    [record] = older.path.glob("origins-?.json")
    assert json.loads(record.read_text())[folder.name].keys() == {"a.txt", "c.txt"}
    assert not [*older.path.glob("sync.json"), *older.path.glob("origins.json")]
    (folder / "c.txt").unlink()
    done = sync(older, folder)
    assert (done.new, done.deleted, sorted(documents(older))) == (
        ["b.txt", "d.txt"],
        ["c.txt"],
        ["a.txt", "b.txt", "d.txt"],
    )


@pytest.mark.parametrize("name", ["sync.json", "origins.json"])
@pytest.mark.parametrize(
    "content",
    [
        "[",
        "[]",
        '{"notes": ["a.txt"]}',
        '{"notes": {"a.txt": 5}}',
        '{"notes": {"a.txt": {"digest": 5, "documents": {}}}}',
    ],
)
def test_a_damaged_record_of_before_is_named(older: Corpus, folder: Path, name: str, content: str) -> None:
    (older.path / name).write_text(content)
    for act in (lambda: sync(older, folder), older.verify):
        with pytest.raises(CorruptionError, match=rf"{name}: damaged; delete this file"):
            act()
    assert name in Corpus.repair(older.path).dropped[0]
    older.verify()
    write(folder / "d.txt", "Again.")
    sync(older, folder)
    assert documents(older) == {each: f"The text of {each}." for each in ("a.txt", "b.txt", "c.txt")} | {
        "d.txt": "Again."
    }


def test_the_record_is_written_twice_and_a_damaged_one_is_restored(corpus: Corpus, folder: Path) -> None:
    for name in "abcdefgh":
        write(folder / f"{name}.txt", f"The text of {name}.")
        sync(corpus, folder)
    manifest = json.loads((corpus.path / f"manifest-{corpus.snapshot}.json").read_text())
    files = [corpus.path / each["name"] for each in manifest["origins"]]
    assert 1 <= len(files) <= 3  # a part is twice as large as the next
    for file in (files[-1], files[-1].with_name(f"{files[-1].stem}.copy.json")):
        file.write_bytes(whole := file.read_bytes().replace(b"notes", b"noteS"))
        with pytest.raises(CorruptionError, match=rf"{file.name}: checksum mismatch"):
            corpus.verify()
        assert (sync(corpus, folder).unchanged, whole.count(b"noteS")) == (8, 1)
        assert f"{file.name}: checksum mismatch" in Corpus.repair(corpus.path).repaired[0]
        corpus.verify()


def test_a_record_that_is_lost_is_dropped_and_made_again(corpus: Corpus, folder: Path) -> None:
    write(folder / "a.txt", "One.")
    write(folder / "b.txt", "Two.")
    sync(corpus, folder)
    for file in corpus.path.glob("origins-*"):
        file.write_bytes(b"")
    corpus = Corpus.open(corpus.path)
    with pytest.raises(CorruptionError, match=r"origins-1\.json: 0 bytes"):
        sync(corpus, folder)
    assert "`quoth sync` reads its folders again" in Corpus.repair(corpus.path).dropped[0]
    corpus = Corpus.open(corpus.path)
    assert sync(corpus, folder).unchanged == 2
    (folder / "b.txt").unlink()
    sync(corpus, folder)
    assert documents(corpus) == {"a.txt": "One."}
    corpus.verify()


class Late:
    """A process for parsers that is not done in time, by the clock."""

    def answers(self, *_: Any) -> Any:
        raise ValueError("not read within 300 seconds") from TimeoutError()


@pytest.mark.parametrize("fault", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_a_fault_of_the_system_is_not_remembered(
    corpus: Corpus, folder: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    def refusing(file: Path) -> Any:
        raise OSError(fault, os.strerror(fault), str(file))

    write(folder / "a.txt", "Some words.")
    with monkeypatch.context() as once:
        once.setattr(reading, "open_raw", refusing)
        assert sync(corpus, folder).unreadable == {"a.txt": f"cannot be read ({os.strerror(fault)})"}
    assert sync(corpus, folder).new == ["a.txt"]


def test_what_took_too_long_by_the_clock_is_not_remembered(
    corpus: Corpus, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.html", "<p>Some words.")
    with monkeypatch.context() as once:
        once.setattr(module, "Worker", lambda: nullcontext(Late()))
        assert sync(corpus, folder).unreadable == {"a.html": "not read within 300 seconds"}
    assert sync(corpus, folder).new == ["a.html"]


def test_that_a_file_unpacks_to_too_much_is_remembered(
    corpus: Corpus, folder: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"words " * 1000))
    monkeypatch.setattr("quoth_sources.limits.UNPACKED", 10)
    monkeypatch.setattr("quoth_sources.limits.TIMES", 1)
    reason = "cannot be read (it unpacks to more than"
    assert [sync(corpus, folder).unreadable["a.txt.gz"].startswith(reason) for _ in range(2)] == [True, True]
    assert read == ["a.txt.gz"]


@pytest.mark.filterwarnings("ignore::quoth.errors.FileWarning")
def test_whether_tables_have_headings_may_be_said(run: Run, folder: Path, tmp_path: Path) -> None:
    write(folder / "a.csv", "Ann,Rome\nBob,Oslo\n")
    for option, texts in (("--no-header", ["Ann | Rome", "Bob | Oslo"]), ("--header", ["Ann: Bob | Rome: Oslo"])):
        corpus = tmp_path / f"{option}.quoth"
        assert run("sync", folder, corpus, option)[0] == 0
        assert [each.text for each in Corpus.open(corpus).documents()] == texts
        assert sync(Corpus.open(corpus), folder).unchanged == 1


def test_of_many_files_with_markup_the_first_is_told(corpus: Corpus, folder: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write(folder / name, "<!doctype html><p>Words.")
    with pytest.warns(FileWarning) as told:
        sync(corpus, folder)
    assert [str(each.message).partition(" ")[0] for each in told] == ["a.txt"]


def test_messages_of_a_mailbox_are_read_in_the_process_that_is_there(
    corpus: Corpus, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[int]()
    start = worker._start_of
    worker._Process.end_all()
    monkeypatch.setattr(worker, "_start_of", lambda memory: (started.append(memory), start(memory))[1])
    write(folder / "a.html", "<p>Words.")
    write(folder / "b.mbox", "From a Mon Jan  1 10:00:00 2024\nSubject: Key\n\nWords.\n")
    assert sync(corpus, folder).new == ["a.html", "b.mbox"]
    assert len(started) == 1
