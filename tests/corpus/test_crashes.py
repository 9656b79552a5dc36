"""Writes that are killed, or lose power, before any call that changes the corpus's folder: every such call is tried.

After a kill, the next sync does what one that was never killed would have done; after a power failure, nothing that was
committed is missing, and the corpus is sound.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import quoth.corpus.sync as module
from commands import Run
from crashes import Disk, Tree, kills, recorded, write_tree
from quoth import Corpus, Document
from quoth.corpus.manifest import LOCK
from quoth.corpus.sync import sync

KILLS = int(os.environ.get("QUOTH_TEST_KILLS", "6"))
NAMES = ("a.txt", "b.md", "deep/c.txt", "d.jsonl", "e.txt")
TEXTS = ("One text.", "Two.", "Three other words.")
Folder = dict[str, str]
"""The files of a folder: their texts."""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP_FILES", 2)


def put(folder: Path, files: Folder) -> Path:
    """Makes a folder have these files, written at a time that is long ago and tells which text it is."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (file := folder / name).parent.mkdir(parents=True, exist_ok=True)
        rows = "".join(f'{{"id": "{name}-{number}", "text": "{word}"}}\n' for number, word in enumerate(text.split()))
        file.write_text(rows if name.endswith(".jsonl") else text)
        at = 1_000_000_000 + crc32(text.encode()) % 1_000_000
        os.utime(file, (at, at))
    return folder


def contents(files: Folder) -> dict[str, str]:
    """The documents of a folder with these files."""
    rows = {
        f"{name}-{n}": word for name, text in files.items() for n, word in enumerate(text.split()) if "jsonl" in name
    }
    return rows | {name: text for name, text in files.items() if "jsonl" not in name}


def documents(path: Path) -> dict[str, str]:
    return {each.id: each.text for each in Corpus.open(path).documents()}


def states_of(path: Path, act: Callable[[], object]) -> list[Tree]:
    found = list[Tree]()
    with recorded(path, lambda disk, _: found.extend(kills(disk))):
        act()
    return [tree for number, tree in enumerate(found) if tree not in found[:number]]


folders = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS), min_size=1)


@settings(max_examples=KILLS, deadline=None, phases=[Phase.generate])
@given(st.lists(folders, max_size=2), folders, folders, st.randoms(use_true_random=False))
def test_after_any_kill_the_next_sync_does_what_was_left_to_do(
    before: list[Folder], now: Folder, later: Folder, chance: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as root:
        made = Path(root, "made")
        folder, corpus = made / "notes", Corpus.create(made / "c.quoth")
        corpus.add([Document("elsewhere", "", "Not of this folder.")])
        for files in before:
            sync(corpus, put(folder, files))
        del corpus
        put(folder, now)
        found = states_of(made / "c.quoth", lambda: sync(Corpus.open(made / "c.quoth"), folder))
        for number, tree in enumerate(chance.sample(found, min(len(found), 8))):
            beside = Path(root, f"killed-{number}")
            path = write_tree(tree, beside / "c.quoth")
            killed = Corpus.open(path)
            killed.verify()
            files = chance.choice([now, later])
            done = sync(killed, put(beside / "notes", files))
            assert documents(path) == {"elsewhere": "Not of this folder."} | contents(files)
            assert not done.unreadable
            again = sync(Corpus.open(path), beside / "notes")
            assert (bool(again), again.unchanged) == (False, len(files))
            Corpus.open(path).verify()


def test_every_kill_of_a_sync(tmp_path: Path) -> None:
    """Each call of several commits, of new, changed and deleted files; and a file that is gone or changed since."""
    old = {"a.txt": "One.", "b.md": "Two.", "d.jsonl": "x y z", "e.txt": "Gone."}
    new = {"a.txt": "Another.", "b.md": "Two.", "c.txt": "New.", "d.jsonl": "x w", "f.txt": "New too."}
    corpus = Corpus.create(tmp_path / "made" / "c.quoth")
    folder = put(tmp_path / "made" / "notes", old)
    sync(corpus, folder)
    put(folder, new)
    found = states_of(corpus.path, lambda: sync(corpus, folder))
    assert len(found) > 80
    seen = set[int]()
    for number, tree in enumerate(found):
        path = write_tree(tree, tmp_path / str(number) / "c.quoth")
        seen.add(Corpus.open(path).snapshot)
        for files in ({**new, "c.txt": "Changed since."}, {name: new[name] for name in ("a.txt", "f.txt")}):
            done = sync(Corpus.open(path), put(path.parent / "notes", files))
            assert (documents(path), done.unreadable) == (contents(files), {})
        Corpus.open(path).verify()
        assert not [*path.rglob("*.tmp")]
    assert seen == {2, 3, 4, 5}  # two files are changed in each of two commits, and the third deletes


def test_after_any_kill_compacting_leaves_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "made" / "c.quoth")
    sync(corpus, put(tmp_path / "made" / "notes", {"quokka.txt": "Quuxical.", "b.md": "Two.", "d.jsonl": "x quuz"}))
    corpus.delete(["quokka.txt", "d.jsonl-1"])
    found = states_of(corpus.path, corpus.compact)
    assert len(found) > 20
    for number, tree in enumerate(found):
        path = write_tree(tree, tmp_path / str(number) / "c.quoth")
        killed = Corpus.open(path)
        killed.verify()
        assert documents(path) == {"b.md": "Two.", "d.jsonl-0": "x"}
        killed.compact()
        killed.verify()
        files = (file for file in path.rglob("*") if file.is_file() and file.name != LOCK)  # which has random bytes
        assert not [file for file in files if b"qu" in file.read_bytes().lower()]
        sync(killed, put(path.parent / "notes", {"b.md": "Two.", "d.jsonl": "x quuz"}))
        assert documents(path) == {"b.md": "Two.", "d.jsonl-0": "x", "d.jsonl-1": "quuz"}


def by_snapshot(path: Path) -> dict[int, dict[str, str]]:
    return {each: {d.id: d.text for d in Corpus.open(path, each).documents()} for each in Corpus.open(path).snapshots()}


def losses_of(path: Path, act: Callable[[], object], in_order: bool) -> list[Tree]:
    """Folders that a power failure during a call can leave, some for each of its calls."""
    found, chance = list[Tree](), random.Random(in_order)

    def note(disk: Disk, _: str) -> None:
        found.extend(disk.after_power_loss(chance, in_order) for _ in range(1 + KILLS // 8))

    with recorded(path, note):
        act()
    return found


@pytest.mark.parametrize("in_order", [True, False])
def test_no_power_failure_during_a_sync_loses_what_was_committed(tmp_path: Path, in_order: bool) -> None:
    old = {"a.txt": "One.", "b.md": "Two.", "d.jsonl": "x y z", "e.txt": "Gone."}
    new = {"a.txt": "Another.", "b.md": "Two.", "c.txt": "New.", "d.jsonl": "x w", "f.txt": "New too."}
    corpus = Corpus.create(tmp_path / "made" / "c.quoth")
    folder = put(tmp_path / "made" / "notes", old)
    sync(corpus, folder)
    first = corpus.snapshot
    put(folder, new)
    found = losses_of(corpus.path, lambda: sync(corpus, folder), in_order)
    states = by_snapshot(corpus.path)
    for number, tree in enumerate(found):
        path = write_tree(tree, tmp_path / str(number) / "c.quoth")
        lost = Corpus.open(path)
        lost.verify()
        assert lost.snapshot >= first
        assert documents(path) == states[lost.snapshot]
        files = {**new, "c.txt": "Changed since."}
        del files["f.txt"]
        done = sync(lost, put(path.parent / "notes", files))
        assert (documents(path), done.unreadable) == (contents(files), {})
        Corpus.open(path).verify()


WRITES: dict[str, Callable[[Corpus, Run, Path], object]] = {
    "add": lambda corpus, run, notes: run("add", corpus.path, put(notes.with_name("more"), {"n.txt": "A new one."})),
    "replace": lambda corpus, run, notes: run(
        "replace", corpus.path, put(notes, {"a.txt": "Other."}), "--delete-missing"
    ),
    "delete": lambda corpus, run, notes: corpus.delete(["b.md", "e.txt"]),
    "compact": lambda corpus, run, notes: corpus.compact(),
    "repair": lambda corpus, run, notes: Corpus.repair(damage(corpus.path)),
}


def damage(path: Path) -> Path:
    """Cut a list of deletions and a table, which `repair` restores."""
    for file in (next(path.glob("deleted-?.npy")), next(path.glob("segments/*/ids.npy"))):
        file.write_bytes(file.read_bytes()[:-1])
    return path


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("write", WRITES)
def test_no_crash_of_a_write_loses_what_was_committed(tmp_path: Path, run: Run, write: str, in_order: bool) -> None:
    notes = put(tmp_path / "made" / "notes", {"a.txt": "One.", "b.md": "Two.", "e.txt": "Three."})
    corpus = Corpus.create(tmp_path / "made" / "c.quoth")
    sync(corpus, notes)
    corpus.add([Document("x", "", "Not of a file."), Document("y", "", "Nor this.")])
    corpus.delete(["x"])
    before = documents(corpus.path)
    path = corpus.path
    del corpus  # or `compact` would keep the files that it reads
    act = WRITES[write]
    killed = states_of(path, lambda: act(Corpus.open(path), run, notes)) if in_order else []
    if not killed:
        killed = losses_of(path, lambda: act(Corpus.open(path), run, notes), False)
    after = documents(path)
    for number, tree in enumerate(killed):
        left = write_tree(tree, tmp_path / str(number) / "c.quoth")
        if write == "repair":
            Corpus.repair(left)
        assert documents(left) in (before, after)
        Corpus.open(left).verify()
        if write == "add":  # what was added is known to be of this folder, or not there
            more = put(left.parent / "more", {"o.txt": "Other."})
            assert run("replace", left, more, "--delete-missing")[0] == 0
            assert documents(left) == before | {"o.txt": "Other."}
        Corpus.open(left).add([Document("z", "", "After all.")])
        Corpus.open(left).compact()
        Corpus.open(left).verify()
        assert not [*left.rglob("*.tmp")]
