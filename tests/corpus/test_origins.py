"""What is gone from a folder: which documents of a corpus that are, and when they are deleted."""

import json
import random
import shutil
from pathlib import Path

import pytest

from commands import Run
from quoth import Corpus, Document
from quoth.corpus.origins import Origins
from quoth.errors import CorruptionError, UnknownDocumentError
from quoth_sources.source_map import encode


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def ids(corpus: Path) -> list[str]:
    return sorted(document.id for document in Corpus.open(corpus).documents())


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write(tmp_path / "notes", a="One.", b="Two.", c="Three.")


def forget(corpus: Path) -> None:
    """Make the corpus one that has no record of folders."""
    for file in corpus.glob("origins-*"):
        file.unlink()
    Corpus.repair(corpus)


@pytest.fixture
def corpus(tmp_path: Path, notes: Path, run: Run) -> Path:
    assert run("index", notes, "-o", tmp_path / "c.quoth")[0] == 0
    return tmp_path / "c.quoth"


def test_what_is_gone_stays_and_is_named_until_it_is_to_be_deleted(corpus: Path, notes: Path, run: Run) -> None:
    for name in "ab":
        (notes / f"{name}.txt").unlink()
    write(notes, c="Three!", d="Four.")
    stay = f"quoth: 2 documents are no longer in {notes} (a.txt, b.txt); they stay; --delete-missing removes them\n"
    for counts in ("replaced 1, new 1, unchanged 0", "replaced 0, new 0, unchanged 2"):
        assert run("replace", corpus, notes)[2] == f"{stay}quoth: {counts}\n"
    assert ids(corpus) == ["a.txt", "b.txt", "c.txt", "d.txt"]
    write(notes, d="Four!")
    snapshot = Corpus.open(corpus).snapshot
    code, out, err = run("replace", corpus, notes, "--delete-missing")
    assert (code, err) == (0, "quoth: replaced 1, new 0, unchanged 1, deleted 2\n")
    assert out == f"{corpus}: 2 documents, 2 passages, snapshot {snapshot + 1}\n"  # one commit
    assert [document.text for document in Corpus.open(corpus).documents()] == ["Three!", "Four!"]
    assert run("replace", corpus, notes)[2] == "quoth: replaced 0, new 0, unchanged 2\n"


def test_add_remembers_as_well(corpus: Path, tmp_path: Path, run: Run) -> None:
    more = write(tmp_path / "more" / "sub", x="Ten.", y="Twenty.").parent
    run("add", corpus, more)
    (more / "sub" / "x.txt").unlink()
    stays = f"quoth: 1 document is no longer in {more} (sub/x.txt); it stays; --delete-missing removes it\n"
    assert run("replace", corpus, more)[2].startswith(stays)
    run("replace", corpus, more, "--delete-missing")
    assert ids(corpus) == ["a.txt", "b.txt", "c.txt", "sub/y.txt"]


def test_documents_from_elsewhere_are_never_deleted(corpus: Path, notes: Path, tmp_path: Path, run: Run) -> None:
    other = write(tmp_path / "other", b="Two of other.", e="Five.")
    (rows := tmp_path / "rows.jsonl").write_text(json.dumps({"id": "row.txt", "text": "A row."}))
    (notes / "table.csv").write_text("id,text\nold.txt,A row of a table.\ntable.csv,Another.\n")
    assert run("replace", corpus, rows, notes)[0] == 0
    assert run("replace", corpus, other)[0] == 0  # whose b.txt takes the place of the other one
    Corpus.open(corpus).replace([Document("c.txt", "c", "Changed by a program."), Document("p.txt", "p", "New.")])
    for file in notes.iterdir():
        file.unlink()
    write(notes, z="The last.")
    assert run("replace", corpus, notes, "--delete-missing")[2] == "quoth: replaced 0, new 1, unchanged 0, deleted 1\n"
    assert ids(corpus) == ["b.txt", "c.txt", "e.txt", "old.txt", "p.txt", "row.txt", "table.csv", "z.txt"]


def test_a_document_of_two_folders_is_gone_when_it_is_gone_from_both(
    corpus: Path, notes: Path, tmp_path: Path, run: Run
) -> None:
    copy = Path(shutil.copytree(notes, tmp_path / "copy"))
    assert run("replace", corpus, copy)[2] == "quoth: replaced 0, new 0, unchanged 3\n"
    (notes / "a.txt").unlink()
    run("replace", corpus, notes, "--delete-missing")
    assert "a.txt" in ids(corpus)
    (copy / "a.txt").unlink()
    assert run("replace", corpus, copy, "--delete-missing")[2].endswith("deleted 0\n")  # notes may have it
    for file in (notes / "b.txt", copy / "c.txt"):
        file.unlink()
    assert run("replace", corpus, notes, copy, "--delete-missing")[2].endswith("deleted 1\n")
    assert ids(corpus) == ["b.txt", "c.txt"]


def test_a_file_that_moves_to_another_path_that_is_given_stays(corpus: Path, notes: Path, run: Run) -> None:
    moved = notes.with_name("a.txt")
    (notes / "a.txt").rename(moved)
    assert run("replace", corpus, moved, notes, "--delete-missing")[2].endswith("unchanged 3, deleted 0\n")
    assert ids(corpus) == ["a.txt", "b.txt", "c.txt"]


def test_nothing_is_deleted_if_something_cannot_be_read(corpus: Path, notes: Path, run: Run) -> None:
    (notes / "a.txt").unlink()
    (notes / "b.txt").write_bytes(b"\xff\0\0")
    snapshot = Corpus.open(corpus).snapshot
    assert run("replace", corpus, notes, "--delete-missing", "--strict")[0] == 2
    assert Corpus.open(corpus).snapshot == snapshot
    code, _, err = run("replace", corpus, notes, "--delete-missing")
    assert code == 1
    assert f"1 document is no longer in {notes} (a.txt); it stays, because not everything could be read" in err
    assert ids(corpus) == ["a.txt", "b.txt", "c.txt"]
    for file in notes.iterdir():
        file.unlink()
    assert run("replace", corpus, notes, "--delete-missing")[0] == 2  # as of a disk that is not there
    assert ids(corpus) == ["a.txt", "b.txt", "c.txt"]


def test_a_file_that_is_there_is_not_gone(corpus: Path, notes: Path, run: Run) -> None:
    (notes / "a.txt").rename(notes / "a.jsonl")
    (notes / "a.jsonl").write_text('{"text": "One."}')
    (notes / "a.txt").mkdir()  # whatever it is
    assert run("replace", corpus, notes, "--delete-missing")[2].endswith("deleted 0\n")


def test_a_folder_that_moves_with_its_corpus_is_known(tmp_path: Path, run: Run) -> None:
    notes = write(tmp_path / "here" / "notes", a="One.", b="Two.")
    run("index", notes, "-o", tmp_path / "here" / "c.quoth")
    (tmp_path / "here").rename(there := tmp_path / "there")
    (there / "notes" / "a.txt").unlink()
    run("replace", there / "c.quoth", there / "notes", "--delete-missing")
    assert ids(there / "c.quoth") == ["b.txt"]


def test_without_a_record_nothing_is_deleted(corpus: Path, notes: Path, run: Run) -> None:
    forget(corpus)
    (notes / "a.txt").unlink()
    err = run("replace", corpus, notes, "--delete-missing")[2]
    assert f"{notes}: what was read from it earlier is not known; from now on it is recorded" in err
    (notes / "b.txt").unlink()
    run("replace", corpus, notes, "--delete-missing")
    assert ids(corpus) == ["a.txt", "c.txt"]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"notes": ["a.txt"]}', b"\xff"])
def test_a_damaged_record_is_named(corpus: Path, notes: Path, run: Run, content: bytes) -> None:
    forget(corpus)
    (corpus / "origins.json").write_bytes(content)
    with pytest.raises(CorruptionError, match=r"origins\.json: damaged; delete this file"):
        Origins(Corpus.open(corpus))
    snapshot = Corpus.open(corpus).snapshot
    code, out, err = run("replace", corpus, notes, "--delete-missing")
    assert (code, out, err.count("\n"), Corpus.open(corpus).snapshot) == (1, "", 1, snapshot)
    for command in ("replace", "add"):
        more = write(notes.parent / command, **{command: "More."})
        code, out, err = run(command, corpus, more)
        assert code == 0
        assert f"{command}.txt" in ids(corpus)
        assert "origins.json: damaged" in err
        Corpus.open(corpus).delete([f"{command}.txt"])
    assert (corpus / "origins.json").read_bytes() == content
    (corpus / "origins.json").write_bytes(b'{"notes": {"a.txt": 5, "../notes/b.txt": "x"}}')
    (notes / "a.txt").unlink()
    run("replace", corpus, notes, "--delete-missing")
    assert ids(corpus) == ["a.txt", "b.txt", "c.txt"]


def test_deleting_what_is_missing_requires_a_folder(corpus: Path, notes: Path, run: Run) -> None:
    code, _, err = run("replace", corpus, notes / "a.txt", "--delete-missing")
    assert (code, err) == (
        2,
        f"quoth: --delete-missing requires a folder, not {notes / 'a.txt'}; name the folder, or leave it out\n",
    )


def test_a_corpus_in_a_folder_is_not_a_part_of_it(notes: Path, run: Run) -> None:
    for command in (("index", notes, "-o"), ("replace",)):
        code, out, err = run(*command, notes / "c.quoth", *([notes] if command == ("replace",) else []))
        assert (code, "3 documents, 3 passages" in out, "left out" in err) == (0, True, False)


def test_replace_deletes_in_the_same_commit(corpus: Path) -> None:
    opened = Corpus.open(corpus)
    new = [Document("a.txt", "a", "One.", {}, encode("line", [(0, 4, 1)])), Document("b.txt", "b", "Two, changed.")]
    with pytest.raises(UnknownDocumentError):
        opened.replace(new, delete=["c.txt", "nowhere"])
    assert (opened.snapshot, opened.num_documents) == (1, 3)
    taken: list[str] = []
    documents = (taken.append(each.id) or each for each in new)  # type: ignore[func-returns-value]
    gone = (each for each in ("a.txt", "b.txt", "c.txt", "c.txt") if len(taken) == 2)  # asked for after the documents
    assert opened.replace(documents, delete=gone) == 1
    assert (opened.snapshot, [each.text for each in opened.documents()]) == (2, ["One.", "Two, changed."])
    assert opened.replace([], delete="a.txt") == 0
    assert (opened.snapshot, opened.num_documents, opened.num_passages) == (3, 1, 1)
    more = [Document("b.txt", "b", "Two, again."), Document("new.txt", "new", "New.")]
    assert opened.replace(more, delete=["new.txt", "b.txt"]) == 2
    assert [each.text for each in opened.documents()] == ["Two, again.", "New."]
    opened.compact()
    opened.verify()


def test_any_sequence_of_changes_deletes_what_a_folder_lost_and_nothing_else(tmp_path: Path, run: Run) -> None:
    draw = random.Random(7)
    folders = [write(tmp_path / name, keep="Kept.") for name in ("one", "two")]
    corpus = tmp_path / "c.quoth"
    run("index", write(tmp_path / "zero", first="Nothing."), "-o", corpus)
    expected = {"first.txt": ("Nothing.", "zero")}
    deleted = 0
    for step in range(25):
        folder, name = draw.choice(folders), draw.choice("abcd")
        file = folder / f"{name}.txt"
        if file.exists() and draw.random() < 0.5:
            file.unlink()
        else:
            write(folder, **{name: f"{folder.name} {step}"})
        if draw.random() < 0.2:
            Corpus.open(corpus).replace([Document(file.name, name, f"program {step}")])
            expected[file.name] = (f"program {step}", "program")
        if draw.random() < 0.6:
            delete = draw.random() < 0.6
            assert run("replace", corpus, folder, *["--delete-missing"][: int(delete)])[0] == 0
            if delete:
                its_own = [each for each, (_, where) in expected.items() if where == folder.name]
                for each in its_own:
                    if not (folder / each).exists():
                        del expected[each]
                        deleted += 1
            read = {each.name: (each.read_text(), folder.name) for each in folder.iterdir()}
            read.pop("keep.txt")
            expected |= read
        stored = {each.id: each.text for each in Corpus.open(corpus).documents() if each.id != "keep.txt"}
        assert stored == {each: text for each, (text, _) in expected.items()}
    assert deleted


def test_a_json_file_that_is_one_document_is_known_and_records_are_not(tmp_path: Path, run: Run) -> None:
    folder, corpus = tmp_path / "settings", tmp_path / "s.quoth"
    folder.mkdir()
    (folder / "a.json").write_text('{"port": 80, "host": {"name": "a"}, "paths": ["/"]}')
    (folder / "b.json").write_text('{"port": 90, "host": {"name": "b"}, "paths": ["/"]}')
    (folder / "rows.json").write_text('[{"id": "r", "text": "One."}]')
    assert run("index", folder, "-o", corpus)[0] == 0
    assert ids(corpus) == ["a.json", "b.json", "r"]
    (folder / "a.json").write_text('{"port": 81, "host": {"name": "a"}, "paths": ["/"]}')
    assert run("sync", folder, corpus)[0] == 0
    assert '"port": 81' in Corpus.open(corpus).document("a.json").text
    (folder / "b.json").unlink()
    (folder / "rows.json").write_text('[{"id": "s", "text": "Two."}]')
    assert run("replace", corpus, folder, "--delete-missing")[0] == 0
    assert ids(corpus) == ["a.json", "r", "s"]
