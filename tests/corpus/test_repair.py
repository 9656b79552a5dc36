"""Damage: what is noticed and when, what is repaired from the rest, what is reported as lost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden_files import OLD
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.corpus.repair import Repairs, verify
from quoth.errors import CorpusNotFoundError, CorruptionError, DamageWarning
from quoth.records import Document
from quoth.storage import seal_folder

TEXTS = {"a": "Paris lies on the Seine", "b": "Berlin lies on the Spree", "c": "Cairo lies on the Nile"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents in two segments, one deleted: snapshots 0 to 3; a key table, its codes, settings."""
    path = tmp_path_factory.mktemp("written") / "x.quoth"
    corpus = Corpus.create(path, splitter="fixed:3")
    corpus.add([Document("a", "A", TEXTS["a"]), Document("b", "B", TEXTS["b"])])
    corpus.add([Document("c", "C", TEXTS["c"], {"x": 1.5})])
    corpus.delete("b")
    for name in ("000000000000", "000000000000.codes", "settings"):
        folder = path / "keys" / "model" / name
        folder.mkdir(parents=True)
        (folder / "some.npy").write_bytes(bytes(100))
        seal_folder(folder)
    return path


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "x.quoth"))


def assert_sound(path: Path) -> None:
    """It is what was written, to the letter, and found by its words."""
    corpus = Corpus.open(path)
    corpus.verify()
    assert {each.id: each.text for each in corpus.documents()} == {name: TEXTS[name] for name in "ac"}
    assert [each.text for each in corpus.passages()] == ["Paris lies on", "the Seine", "Cairo lies on", "the Nile"]
    for word, row in {"Seine": 1, "Nile": 5}.items():
        assert corpus.bm25(word, 5)[0].tolist() == [row]
    assert corpus.bm25("Spree", 5)[0].tolist() == []


def damage(file: Path, how: str) -> None:
    if how == "missing":
        file.unlink()
    elif how == "cut":
        file.write_bytes(file.read_bytes()[:-2])
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 4
        file.write_bytes(content)


def refused(path: Path) -> str:
    with pytest.raises(CorruptionError) as error:
        verify(path)
    message = str(error.value)
    assert "\n" not in message
    assert "`quoth repair" in message or "Quoth" in message or "`quoth embed" in message
    return message


MENDED = [
    "manifest-3.json",
    "committed.json",
    "deleted-3.npy",
    "deleted-3.copy.npy",
    "segments/000000000000/words-2.bin",
    "segments/000000000000/documents.npy",
    "segments/000000000000/passages.npy",
    "segments/000000000000/ids.npy",
    "segments/000000000000/checks.npy",
    "segments/000000000002/checksums.json",
]


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
@pytest.mark.parametrize("name", MENDED)
def test_what_follows_from_the_rest_is_mended(path: Path, name: str, how: str) -> None:
    damage(path / name, how)
    assert name.rpartition("/")[2].partition(".")[0] in refused(path)
    found = Corpus.repair(path)
    assert len(found.repaired) == 1
    assert name in found.repaired[0]
    assert not found.lost
    assert_sound(path)
    assert Corpus.repair(path) == Repairs([], [])


def test_all_at_once_and_only_from_the_texts(path: Path) -> None:
    for name in ("passages.npy", "ids.npy", "checks.npy", "words-2.bin", "checksums.json"):
        (path / "segments" / "000000000000" / name).unlink()
    (path / "manifest-3.json").unlink()
    (path / "manifest-1.json").write_text("{}")
    found = Corpus.repair(path)
    assert len(found.repaired) == 3
    assert not found.lost
    assert_sound(path)
    assert Corpus.open(path).snapshots() == [0, 2, 3]


def test_damaged_documents_are_said_to_be_lost(path: Path) -> None:
    damage(path / "segments" / "000000000000" / "documents.bin", "flipped")
    found = Corpus.repair(path)
    assert len(found.lost) == 1
    assert re.search(r"documents\.bin.*restore .*000000000000 from a backup", found.lost[0])


@pytest.mark.parametrize("name", ["documents.bin", "documents.npy", "ids.npy", "words-2.bin"])
def test_what_was_appended_is_cut(path: Path, name: str) -> None:
    file = path / "segments" / "000000000000" / name
    file.write_bytes(file.read_bytes() + b"\n")
    assert "cut to what was written" in Corpus.repair(path).repaired[0]
    assert_sound(path)


@pytest.mark.filterwarnings("always::quoth.errors.DamageWarning")
def test_a_damaged_list_of_deletions_closes_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(path / "deleted-3.npy", "flipped")
    for command in (["list"], ["search", "Seine"], ["delete", "c"], ["export", "-o", str(path.parent / "x.jsonl")]):
        assert main([command[0], str(path), *command[1:]]) == 0
        told = capsys.readouterr().err
        if command != ["export", "-o", str(path.parent / "x.jsonl")]:  # by then there is another list
            assert "deleted-3.npy: checksum mismatch; the file was altered; its copy is read instead" in told
    assert [json.loads(line)["id"] for line in (path.parent / "x.jsonl").read_text().splitlines()] == ["a"]
    Corpus.repair(path)
    Corpus.open(path).verify()


def lose_deletions(path: Path, snapshot: int) -> str:
    for name in (f"deleted-{snapshot}.npy", f"deleted-{snapshot}.copy.npy"):
        damage(path / name, "flipped")
    return f"deleted-{snapshot}.npy"


@pytest.mark.filterwarnings("always::quoth.errors.DamageWarning")
def test_without_both_lists_the_last_one_that_can_be_read_opens(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = lose_deletions(path, 3)
    assert main(["search", str(path), "Spree"]) == 0
    told = capsys.readouterr().err
    assert name in told
    assert "its copy is lost too, so 1 deleted document is there again" in told
    assert name in refused(path)
    with pytest.warns(DamageWarning, match=name):
        corpus = Corpus.open(path)
    assert [each.id for each in corpus.documents()] == ["a", "b", "c"]
    assert (corpus.num_documents, corpus.num_passages) == (3, 6)
    with pytest.raises(CorruptionError, match=f"{name}.*`quoth repair"):
        corpus.delete(["a"])
    assert main(["export", str(path), "-o", str(path.parent / "x.jsonl")]) == 1
    assert "lost: " in capsys.readouterr().err
    assert len((path.parent / "x.jsonl").read_text().splitlines()) == 3
    assert main(["repair", str(path)]) == 1
    assert f"or `quoth repair {path} --drop {name}`" in capsys.readouterr().err
    assert main(["repair", str(path), "--drop", name]) == 0
    assert "dropped: " in capsys.readouterr().out
    Corpus.open(path).delete(["b"])
    assert_sound(path)


def test_deletions_that_an_older_list_and_the_ids_tell_are_restored(path: Path) -> None:
    corpus = Corpus.open(path)
    corpus.replace([Document("c", "C", TEXTS["c"] + "."), Document("a", "A", "Rouen lies on the Seine")])
    corpus.replace([Document("a", "A", TEXTS["a"])])
    expected = {each.id: each.text for each in corpus.documents()}
    passages = corpus.num_passages
    name = lose_deletions(path, corpus.snapshot)
    whole = (path / name).read_bytes()
    with pytest.warns(DamageWarning, match="an older list and the ids are read instead"):
        opened = Corpus.open(path)
    assert {each.id: each.text for each in opened.documents()} == expected
    assert (opened.num_documents, opened.num_passages) == (2, passages)
    assert "rebuilt from an older list and the ids" in Corpus.repair(path).repaired[0]
    assert (path / name).read_bytes() != whole
    opened.refresh()
    opened.verify()
    lose_deletions(path, opened.snapshot)
    with pytest.warns(DamageWarning):
        opened = Corpus.open(path)
    opened.add([Document("d", "", "Delhi")])  # writes a list that is whole
    opened.delete(["a"])
    assert sorted(each.id for each in opened.documents()) == ["c", "d"]
    assert sorted(each.id for each in Corpus.open(path).documents()) == ["c", "d"]


def test_a_list_of_before_has_no_copy_until_something_is_written(path: Path) -> None:
    (path / "deleted-3.copy.npy").unlink()
    shutil.copy(rewritten(path, format=2, origins=..., bypassed=...), path / "committed.json")
    assert_sound(path)
    Corpus.open(path).add([Document("d", "", "Delhi")])
    assert sorted(each.name for each in path.glob("deleted*")) == [
        "deleted-3.npy",
        "deleted-4.copy.npy",
        "deleted-4.npy",
    ]
    Corpus.open(path).verify()


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_no_file_is_damaged_without_verify_naming_it(tmp_path: Path, how: str) -> None:
    from quoth.corpus.sync import sync

    (folder := tmp_path / "notes").mkdir()
    corpus = Corpus.create(tmp_path / "x.quoth")
    for text in TEXTS:
        (folder / f"{text}.txt").write_text(TEXTS[text])
        sync(corpus, folder)
    (folder / "a.txt").unlink()
    sync(corpus, folder)
    path = corpus.path
    names = [file.relative_to(path) for file in path.rglob("*") if file.is_file() and file.name != "writer.lock"]
    assert len(names) > 25
    for number, name in enumerate(names):
        copy = Path(shutil.copytree(path, tmp_path / str(number)))
        damage(copy / name, how)
        older = name.name.startswith("manifest-") and name.name != f"manifest-{corpus.snapshot}.json"
        if how == "missing" and (older or name.name == "seen.json"):
            verify(copy)  # as if released; as if never written
        else:
            assert name.name in refused(copy)
        Corpus.repair(copy)
        if name.name != "documents.bin":
            verify(copy)
            assert {each.text for each in Corpus.open(copy).documents()} == {TEXTS["b"], TEXTS["c"]}


def test_leftovers_are_swept_and_stop_nothing(path: Path) -> None:
    names = [f"{each}.{os.getpid()}.tmp" for each in ("keys/model/settings", "segments/000000000000", "x.json")]
    for name in (*names, f"keys/model/000000000000.{os.getpid()}.tmp"):
        (path / name / "inside").mkdir(parents=True)
    damage(path / "keys" / "model" / "settings" / "some.npy", "flipped")
    damage(path / "segments" / "000000000000" / "ids.npy", "flipped")
    assert len(Corpus.repair(path).repaired) == 2
    assert not [*path.rglob("*.tmp")]
    assert_sound(path)


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_damaged_words_are_made_again_in_memory_and_said(path: Path, how: str) -> None:
    sound = {word: Corpus.open(path).bm25(word, 5) for word in ("Seine", "lies on", "the", "Nile")}
    damage(path / "segments" / "000000000000" / "words-2.bin", how)
    shutil.rmtree(path / "keys")
    corpus = Corpus.open(path)
    assert [each.id for each in corpus.documents()] == ["a", "c"]
    assert corpus.passage(1).text == "the Seine"
    assert main(["info", str(path)]) == 0
    with pytest.warns(DamageWarning, match=r"0/words-2\.bin: .*; until .*: `quoth repair .*x\.quoth` repairs"):
        found = {word: corpus.bm25(word, 5) for word in sound}
    for word, (rows, scores) in sound.items():
        assert found[word][0].tolist() == rows.tolist()
        assert found[word][1].tolist() == scores.tolist()
    assert corpus.is_current()  # a service does not open it again and again
    corpus.delete(["c"])
    Corpus.repair(path)
    corpus.refresh()
    corpus.add([Document("d", "", "Delhi lies on the Yamuna")])
    for word, rows in {"Seine": [1], "Nile": [], "Yamuna": [7]}.items():
        assert corpus.bm25(word, 5)[0].tolist() == rows
    corpus.verify()


def test_older_snapshots_keep_their_words(path: Path) -> None:
    Corpus.open(path).replace([Document("c", "C", "Khartoum lies there")])
    damage(path / "segments" / "000000000000" / "words-2.bin", "cut")
    Corpus.repair(path)
    assert Corpus.open(path, snapshot=2).bm25("Spree", 5)[0].tolist() == [3]
    assert Corpus.open(path, snapshot=3).bm25("Nile", 5)[0].tolist() == [5]
    assert Corpus.open(path).bm25("Nile", 5)[0].tolist() == []


@pytest.mark.parametrize("change", ["add", "delete", "compact"])
def test_a_lost_commit_is_noticed_and_never_swept_away(path: Path, change: str) -> None:
    shutil.rmtree(path / "keys")
    corpus = Corpus.open(path)
    writes: dict[str, Callable[[Corpus], Any]] = {
        "add": lambda each: each.add([Document("d", "", "Delhi")]),
        "delete": lambda each: each.delete(["c"]),
        "compact": Corpus.compact,
    }
    writes[change](corpus)
    last = corpus.snapshot
    expected = {each.id: each for each in corpus.documents()}
    del corpus
    (path / f"manifest-{last}.json").unlink()
    before = {each for each in path.rglob("*") if each.suffix != ".lock"}
    message = refused(path)
    assert message.startswith(f"{path / f'manifest-{last}.json'}: the file is missing")
    if change != "compact":  # which leaves no older manifest
        assert {"add": "000000000003", "delete": f"deleted-{last}.npy"}[change] in message
    with pytest.raises(CorruptionError, match="the file is missing"):
        Corpus.open(path).delete(["a"])
    assert {each for each in path.rglob("*") if each.suffix != ".lock"} == before
    Corpus.repair(path)
    assert {each.id: each for each in Corpus.open(path).documents()} == expected
    Corpus.open(path).verify()


def test_what_was_never_committed_is_no_lost_commit(path: Path) -> None:
    shutil.copytree(path / "segments" / "000000000002", path / "segments" / "000000000003")
    shutil.copy(path / "deleted-3.npy", path / "deleted-4.npy")
    assert_sound(path)
    Corpus.open(path).delete(["a"])
    assert not (path / "segments" / "000000000003").exists()


def test_a_manifest_and_its_copy_lost_together_are_told(path: Path) -> None:
    for name in ("manifest-3.json", "committed.json"):
        damage(path / name, "flipped")
    assert "return to the previous snapshot" in Corpus.repair(path).lost[0]
    assert Corpus.open(path, snapshot=2).num_documents == 3


def test_there_is_nothing_to_repair_without_a_corpus(tmp_path: Path) -> None:
    with pytest.raises(CorpusNotFoundError):
        Corpus.repair(tmp_path / "none")


@pytest.mark.parametrize("name", ["000000000000", "000000000000.codes", "settings"])
def test_damaged_keys_are_removed(path: Path, name: str) -> None:
    damage(path / "keys" / "model" / name / "some.npy", "flipped")
    assert "some.npy" in refused(path)
    found = Corpus.repair(path)
    assert "`quoth embed" in found.repaired[0]
    left = {each.name for each in (path / "keys" / "model").iterdir() if each.suffix != ".lock"}
    gone = {name, "000000000000.codes"} if name == "000000000000" else {name}
    assert left == {"000000000000", "000000000000.codes", "settings"} - gone
    assert_sound(path)


def test_the_command_says_what_was_mended_and_what_is_lost(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: sound, nothing to repair\n")
    damage(path / "segments" / "000000000000" / "words-2.bin", "cut")
    assert main(["repair", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("repaired: ")
    assert out.endswith("2 documents, 4 passages, snapshot 3\n")
    damage(path / "segments" / "000000000000" / "documents.bin", "cut")
    assert main(["repair", str(path)]) == 1
    assert "lost: " in capsys.readouterr().err


def test_a_text_that_was_altered_is_never_given_out(tmp_path: Path) -> None:
    """A file too large to be hashed on open is compared where it is read."""
    corpus = Corpus.create(tmp_path / "x", splitter="fixed:100")
    corpus.add([Document(str(number), "", f"start {'word ' * 200}end") for number in range(100)])
    file = next((tmp_path / "x").glob("segments/*/documents.bin"))
    content = bytearray(file.read_bytes())
    assert len(content) > 1 << 16
    at = content.index(b"end", len(content) // 2)
    content[at : at + 3] = b"END"
    file.write_bytes(content)
    corpus = Corpus.open(tmp_path / "x")
    assert corpus.document("0").text.endswith("end")
    names = [str(number) for number in range(100)]
    sound = [name for name in names if text_of(corpus, name).endswith("end")]
    assert len(sound) == 99
    (wrong,) = set(names) - set(sound)
    for read in (corpus.document, lambda name: corpus.passage(corpus.rows_of(name)[-1])):
        with pytest.raises(CorruptionError, match=r"documents\.bin: damaged .* not as it was written\); `quoth repair"):
            read(wrong)


def text_of(corpus: Corpus, name: str) -> str:
    try:
        return corpus.document(name).text
    except CorruptionError:
        return ""


def rewritten(path: Path, **changes: Any) -> Path:
    """The last manifest with other fields, and the checksum that belongs to them."""
    file = path / "manifest-3.json"
    content = json.loads(file.read_text())
    del content["sha256"]
    content = {name: value for name, value in (content | changes).items() if value is not ...}
    encoded = json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"
    content["sha256"] = hashlib.sha256(encoded).hexdigest()
    file.write_bytes(json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")
    return file


SHAPES: list[dict[str, Any]] = [
    {"format": ...},
    {"format": 99},
    {"segments": None},
    {"segments": ["a"]},
    {"segments": [{"name": "../../x"}]},
    {"unknown": 1},
    {"splitter": ...},
    {"splitter": 5},
    {"snapshot": "3"},
    {"snapshot": 7},
    {"next_row": -1},
    {"next_row": True},
    {"num_documents": 1.5},
    {"deletions": {"name": "deleted-3.npy"}},
    {"deletions": {"name": "../deleted-3.npy", "size": 1, "sha256": ""}},
    {"deletions": 3},
]


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_a_manifest_of_another_shape_is_named(path: Path, changes: dict[str, Any]) -> None:
    file = rewritten(path, **changes)
    message = refused(path)
    assert message.startswith(str(file))
    assert ("newer Quoth" in message) == (changes.get("format") == 99)


def test_a_folder_in_place_of_a_manifest_is_named(path: Path) -> None:
    (path / "manifest-4.json").mkdir()
    assert "manifest-4.json" in refused(path)


LISTINGS = ["[]", "3", '{"a": 1}', '{"a": {"size": 1}}', '{"a": {"sha257": "", "size": 1}}', '{"a": null}', "[" * 9999]


@pytest.mark.parametrize("content", LISTINGS)
def test_checksums_of_another_shape_are_named(path: Path, content: str) -> None:
    (path / "keys" / "model" / "000000000000" / "checksums.json").write_text(content)
    assert "000000000000/checksums.json" in refused(path)


HEADERS = [
    "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), ",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (3, (2), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999, 2), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (-3, 2), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': '<i8', 'fortran_order': False, 'shape': (3L, 2), 'x': 1}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': 5, 'fortran_order': False, 'shape': (3, 2), }",
    "'''",
    "((((",
    "",
]


@pytest.mark.filterwarnings("ignore:Reading")
@pytest.mark.parametrize("rows", [3, 10_000])
@pytest.mark.parametrize("header", HEADERS)
def test_a_damaged_header_of_an_array_is_named(tmp_path: Path, header: str, rows: int) -> None:
    from quoth.arrays import open_array

    line = header.replace("(3", f"({rows}").encode().ljust(117) + b"\n"
    start = b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little")
    file = tmp_path / "a.npy"
    file.write_bytes(start + line + np.arange(2 * rows).tobytes())
    with pytest.raises(CorruptionError, match=r"a\.npy: damaged"):
        open_array(file, np.int64, (-1, 2))


def test_words_of_the_first_analyzer_stay_and_are_rebuilt(tmp_path: Path) -> None:
    """Those that a corpus of an earlier version has; what is added later has those of the latest."""
    shutil.copytree(OLD / "corpus", tmp_path / "old.quoth")
    corpus = Corpus.open(tmp_path / "old.quoth")
    first = corpus.segments[0].path / "words.bin"
    before, ranked = first.read_bytes(), [each.tolist() for each in corpus.bm25("the first e-mail", 9)]
    damage(first, "flipped")
    assert Corpus.repair(corpus.path).repaired
    assert first.read_bytes() == before
    again = Corpus.open(corpus.path)
    assert [each.tolist() for each in again.bm25("the first e-mail", 9)] == ranked
    again.add([Document("new", "", "Zanzibar by e-mail.")])
    assert [path.name for path in again.segments[-1].path.glob("words*")] == ["words-2.bin"]
    rows, _ = again.bm25("Zanzibar email", 1)
    assert again.passage(int(rows[0])).document_id == "new"
    assert {each.words.analyzer for each in again.segments} == {1, 2}
    again.verify()
