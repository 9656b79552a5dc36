"""Vectors of passages, which the commands make that change a corpus: what they cost, what stops them, who is told."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from errno import ENOSPC
from pathlib import Path
from unittest.mock import Mock

import pytest

from commands import Run
from quoth import REALM, Corpus
from quoth.encoders.keys import EncodedPassage
from quoth.index.finder import without_vectors
from quoth.index.retriever import Retriever
from quoth.index.tables import KeyTables
from quoth.realm.passages import PassageEncoder
from quoth.records import Passage
from tiny import tiny_bert, tiny_realm

SYNCED = "{} new, 0 changed, 0 deleted, {} unchanged; {} document, {} passage"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "documents.jsonl"
    path.write_text('{"id": "a", "text": "Carmen is an opera by Bizet."}\n{"id": "b", "text": "A church in a town."}\n')
    return path


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_realm(tmp_path_factory.mktemp("realm") / "tiny")


@pytest.fixture
def with_realm(realm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model in the place of the shipped one that makes the vectors of passages; and nobody declines them."""
    encoder = REALM.from_pretrained(realm).encoder
    monkeypatch.setattr("quoth.index.finder._SHIPPED", {str(realm)})
    monkeypatch.setattr("quoth.index.finder.named", lambda _: lambda corpora, *_: Retriever(corpora, encoder))
    monkeypatch.delenv("QUOTH_VECTORS")


@pytest.mark.usefixtures("with_realm")
def test_index_makes_vectors_and_says_what_they_cost_if_they_are_asked_for(
    tmp_path: Path, documents: Path, run: Run
) -> None:
    for options, told in (((), ""), (("--vectors",), "2 passages to encode")):
        path = tmp_path / f"{len(told)}.quoth"
        code, out, err = run("index", documents, "-o", path, *options)
        assert (code, out) == (0, f"{path}: 2 documents, 2 passages, snapshot 1\n")
        assert told in err
        assert ("about 2 vectors take" in err) == bool(err) == bool(told)
        command = ("search", path, "an opera", "--json")
        assert len(run(*command)[1].splitlines()) == 2
        assert len(run(*command, "--mode", "bm25")[1].splitlines()) == 1  # the other one has none of the words


@pytest.mark.usefixtures("with_realm")
def test_add_and_replace_make_vectors_if_the_corpus_has_some(tmp_path: Path, documents: Path, run: Run) -> None:
    path, more, command = tmp_path / "v.quoth", tmp_path / "more.jsonl", ("search", tmp_path / "v.quoth", "x", "--json")

    def missing() -> int:
        return without_vectors(Corpus.open(path))

    def write(name: str, count: int) -> None:
        more.write_text("".join(f'{{"id": "{name}-{n}", "text": "opera {n}"}}\n' for n in range(count)))

    run("index", documents, "-o", path, "--no-vectors")
    write("a", 40)
    assert run("add", path, more)[2] == ""
    assert missing() == 42
    assert run("replace", path, more, "--vectors")[0] == 0
    assert missing() == 0
    assert len(run(*command)[1].splitlines()) == 10  # x occurs nowhere
    write("b", 33)
    assert run("add", path, more, "--no-vectors")[2] == ""
    assert missing() == 33
    assert run(*command)[1] == ""
    write("c", 1)
    assert run("replace", path, more)[2] == "quoth: replaced 0, new 1, unchanged 0\n"
    assert missing() == 0


@pytest.mark.usefixtures("with_realm")
def test_vectors_that_take_long_or_cannot_be_made_are_told_and_stop_nothing(
    tmp_path: Path, documents: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.quoth"
    told = f"2 passages of {path} without vectors: until `quoth embed {path} --keys passages` makes them"
    state = f"{path}: 2 documents, 2 passages, snapshot 1\n"
    with monkeypatch.context() as patch:
        patch.setattr("quoth.index.finder.Finder.seconds_if_long", lambda _: 1500.0)
        code, out, err = run("index", documents, "-o", path)
        assert (code, out) == (0, state)
        assert err == f"quoth: {told} (25 minutes), passages are found by words alone\n"
        shutil.rmtree(path)
    with monkeypatch.context() as patch:
        patch.setattr(KeyTables, "build", Mock(side_effect=OSError(ENOSPC, "No space left on device")))
        code, out, err = run("index", documents, "-o", path)
        assert (code, out) == (0, state)
        assert err.splitlines() == [
            "quoth: no vectors were made: [Errno 28] No space left on device",
            f"quoth: {told}, passages are found by words alone",
        ]
        shutil.rmtree(path)
        code, out, err = run("index", documents, "-o", path, "--vectors")
        assert (code, out) == (1, state)
    assert without_vectors(Corpus.open(path)) == 2


@pytest.mark.usefixtures("with_realm")
def test_sync_makes_the_vectors_of_what_is_new_and_goes_on_where_it_was_stopped(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, path, encoded = tmp_path / "f", tmp_path / "s.quoth", list[str]()
    encode = PassageEncoder.encode

    def seen(encoder: PassageEncoder, passages: Sequence[Passage]) -> list[EncodedPassage]:
        encoded.extend(each.document_id for each in passages)
        return encode(encoder, passages)

    monkeypatch.setattr(PassageEncoder, "encode", seen)
    folder.mkdir()
    (folder / "a.txt").write_text("A text.")
    with monkeypatch.context() as patch:
        patch.setattr(KeyTables, "build", Mock(side_effect=KeyboardInterrupt))
        assert run("sync", folder, path)[:2] == (130, f"+ a.txt\n{path}: {SYNCED.format(1, 0, 1, 1)}\n")
    assert Corpus.open(path).num_documents == 1
    assert run("sync", folder, path)[1:] == (f"{path}: {SYNCED.format(0, 1, 1, 1)}\n", "")
    assert encoded == ["a.txt"]
    (folder / "b.txt").write_text("Another.")
    assert run("sync", folder, path, "--dry-run")[0] == 0
    assert run("sync", folder, path, "--json")[2] == ""
    assert run("sync", folder, path)[0] == 0
    assert encoded == ["a.txt", "b.txt"]


def test_ask_says_once_how_passages_are_found_by_meaning(
    documents: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, tiny = tmp_path / "c.quoth", tiny_bert(tmp_path / "model")
    run("index", documents, "-o", corpus)
    command, asked = ("ask", corpus, "Where is it?", "--model", tiny, "--json"), list[tuple[str, str]]()
    for given in ("0", "", "no", "1"):
        monkeypatch.setenv("QUOTH_VECTORS", given)
        asked.append(run(*command)[1:])
    silent, told = asked[0], asked[1]
    assert asked == [silent, told, silent, told]
    assert silent == (told[0], "")
    assert told[1] == (
        f"quoth: 2 passages of {corpus} without vectors: until `quoth embed {corpus} --keys passages` makes them, "
        "passages are found by words alone\n"
    )
    assert run(*command, "--mode", "bm25")[2] == ""
