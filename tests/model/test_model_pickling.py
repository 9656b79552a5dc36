"""Corpora and models between processes: pickled by path, and what they say then."""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth.corpus.view import parts
from quoth.errors import CorpusNotFoundError, InputError
from quoth_serve.shared import Searching
from tiny import TEXT, tiny_corpus, tiny_npm, tiny_realm

BLANK = "[MASK] is the capital of France."


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    return tiny_corpus(tmp_path / "c.quoth")


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_a_corpus_is_pickled_by_its_path(corpus: quoth.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stored = pickle.dumps(quoth.Corpus.open("c.quoth"))
    assert len(stored) < 300  # no text
    monkeypatch.chdir("/")
    read = pickle.loads(stored)
    assert [*read.documents()] == [*corpus.documents()]
    read.add([quoth.Document("new", "", "Written by the copy.")])
    assert corpus.num_documents == len(TEXT)
    corpus.refresh()
    assert corpus.document("new").text == "Written by the copy."


def test_it_keeps_its_snapshot_while_there_is_one(corpus: quoth.Corpus) -> None:
    live, pinned = pickle.dumps(corpus), pickle.dumps(quoth.Corpus.open(corpus.path, snapshot=1))
    corpus.delete(["d0"])
    assert [pickle.loads(each).num_documents for each in (live, pinned)] == [len(TEXT)] * 2
    with pytest.raises(InputError, match="snapshot 1 is for reading"):
        pickle.loads(pinned).add([])
    corpus.compact()
    assert pickle.loads(live).snapshot == corpus.snapshot
    with pytest.raises(CorpusNotFoundError, match="snapshot 1"):
        pickle.loads(pinned)


def test_a_corpus_that_moved_is_told(corpus: quoth.Corpus, tmp_path: Path) -> None:
    stored = pickle.dumps(Searching(corpus.path))
    assert [each.id for each in pickle.loads(stored).search("raven", 1)] == ["d0#0-95"]
    shutil.move(corpus.path, tmp_path / "moved.quoth")
    with pytest.raises(CorpusNotFoundError, match=r"c\.quoth"):
        pickle.loads(stored)


def test_a_corpus_whose_place_another_has_taken_is_told(corpus: quoth.Corpus, tmp_path: Path) -> None:
    live, pinned = pickle.dumps(corpus), pickle.dumps(quoth.Corpus.open(corpus.path, snapshot=1))
    shutil.move(corpus.path, tmp_path / "moved.quoth")
    other = quoth.Corpus.create(corpus.path)
    with pytest.raises(CorpusNotFoundError, match="another corpus has taken its place"):
        pickle.loads(live)
    other.add([quoth.Document("other", "", "Another text.")])
    for stored in (live, pinned):
        with pytest.raises(CorpusNotFoundError, match="another corpus has taken its place"):
            pickle.loads(stored)


def test_a_model_answers_as_before(corpus: quoth.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_npm(tmp_path / "npm")
    monkeypatch.chdir(tmp_path)
    npm = quoth.NPM.from_pretrained("npm", "c.quoth", device="cpu", dtype="bf16")
    stored = pickle.dumps(npm)
    assert len(stored) < 1000  # no weights
    answers = npm.fill([BLANK, "Berlin is in ___."])
    monkeypatch.chdir("/")
    copy = pickle.loads(stored)
    assert copy.fill([BLANK, "Berlin is in ___."]) == answers
    assert copy.encoder.fingerprint == npm.encoder.fingerprint
    assert again(copy).fill([BLANK, "Berlin is in ___."]) == answers  # a copy of a copy


def test_every_kind_of_model_is(corpus: quoth.Corpus, tmp_path: Path) -> None:
    npm = quoth.load(tiny_npm(tmp_path / "npm"), corpus)
    realm = quoth.load(tiny_realm(tmp_path / "realm"), corpus)
    zero_ner = quoth.ZeroNER.from_pretrained(str(tmp_path / "npm"), corpus)
    for model in (npm, realm, zero_ner):
        copy = again(model)
        assert (type(copy), copy.fingerprint) == (type(model), model.fingerprint)  # type: ignore[attr-defined]
        assert copy.search("capital", 3, "bm25") == model.search("capital", 3, "bm25")  # type: ignore[call-arg]


def test_another_process_asks(corpus: quoth.Corpus, tmp_path: Path) -> None:
    npm = quoth.load(tiny_npm(tmp_path / "npm"), corpus)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(npm.search, ["raven"]) == [npm.search("raven")]


def test_a_model_made_in_memory_says_why_it_cannot_be_pickled(corpus: quoth.Corpus, tmp_path: Path) -> None:
    loaded = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpus)
    with pytest.raises(InputError, match="this NPM was not loaded by from_pretrained"):
        pickle.dumps(quoth.NPM(loaded.encoder, [corpus]))


def test_a_model_over_other_corpora_is_the_one_loaded_for_them(corpus: quoth.Corpus, tmp_path: Path) -> None:
    other = quoth.Corpus.create(tmp_path / "other.quoth")
    other.add([quoth.Document("rome", "", "Rome is the capital of Italy.")])
    folder = tiny_npm(tmp_path / "npm")
    npm = quoth.NPM.from_pretrained(folder, corpus)
    assert npm.over([other]).fill(BLANK) == quoth.NPM.from_pretrained(folder, other).fill(BLANK)
    assert again(npm.over([other])).corpora[0].path == other.path
    assert npm.corpora == [corpus]


def test_a_model_over_documents_that_meet_a_condition_searches_these_alone(tmp_path: Path) -> None:
    corpora = [quoth.Corpus.create(tmp_path / f"{name}.quoth") for name in "ab"]
    texts = {"France": "Paris", "Italy": "Rome", "Egypt": "Cairo"}
    for corpus in corpora:
        corpus.add(quoth.Document(land, "", f"{city} is the capital of {land}.") for land, city in texts.items())
    corpora[0].add([quoth.Document("dated", "", "Oslo is the capital of Norway.", {"year": 2024})])
    npm = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpora)
    part = npm.where("id in ('Italy', 'Egypt') or year = 2024")
    for model in (part, again(part)):
        assert {hit.passage.document_id for hit in model.search("capital", 9)} == {"Italy", "Egypt", "dated"}
        assert model.fill(BLANK) == npm.over(parts(corpora, "id in ('Italy', 'Egypt') or year = 2024")).fill(BLANK)
    assert len(npm.search("capital", 9)) == 7
    with pytest.raises(InputError, match="no document has a field 'yeer'"):
        npm.where("yeer = 2024")
