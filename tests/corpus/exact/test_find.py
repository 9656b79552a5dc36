"""Every place of a string: by hand, and equal to looking at every text, in any state of a corpus."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_folding import PIECES

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact import suffixes
from quoth.corpus.exact.find import Match, Wanted, occurrences
from quoth.records import Document
from quoth.text.folding import fold, fold_with_places

WORDS = st.sampled_from(
    ["the cat", "The", "cats", "sat", "on", "中文", "한국", "ﬁn", "co-\nop", "½", "é", "5", "(the", "\n\n"]
)
TEXTS = st.lists(PIECES | WORDS | st.just(" ") | st.characters(codec="utf-8"), max_size=40).map("".join)


def place_of(match: Match) -> tuple[str, int, int]:
    return match.document_id, match.start, match.end


def brute_force(corpus: Corpus, text: str) -> list[tuple[str, int, int]]:
    """The definition, without an index."""
    wanted, found = Wanted.of(text), []
    for document in corpus.documents():
        folded = fold_with_places(document.text)
        found += [(document.id, *folded.source(*place)) for place in occurrences(wanted, folded)]
    return found


def corpus_of(folder: Path, *parts: list[str]) -> Corpus:
    """A corpus with a segment for each list of texts."""
    corpus = Corpus.create(folder / "a.quoth")
    for number, texts in enumerate(parts):
        corpus.add(Document(f"{number}-{at}", f"Title {at}", text) for at, text in enumerate(texts))
    return corpus


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few words need every kind of search."""
    monkeypatch.setattr(suffixes, "STEP", 4)
    monkeypatch.setattr(suffixes, "FEW", 2)
    monkeypatch.setattr(suffixes, "PART_BYTES", 60)
    monkeypatch.setattr(suffixes, "_FIRST_LOOK", 3)


@st.composite
def questions(draw: st.DrawFn, texts: list[str]) -> str:
    """Parts of the texts, mostly: what is not there is found nowhere."""
    text = draw(st.sampled_from([*filter(str.strip, texts), "the cat"]))
    first = draw(st.integers(0, len(text) - 1))
    part = text[first : first + draw(st.integers(1, 12))]
    return part.upper() if draw(st.booleans()) else part


@settings(max_examples=1500, deadline=None)
@given(st.data())
def test_find_and_count_equal_looking_at_every_text(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(TEXTS, min_size=1, max_size=4), min_size=1, max_size=3))
    texts = [text for part in parts for text in part]
    with tempfile.TemporaryDirectory() as folder:
        corpus = corpus_of(Path(folder), *parts)
        ids = [*corpus.ids()]
        before = corpus.snapshot
        if gone := data.draw(st.sets(st.sampled_from(ids), max_size=2)):
            corpus.delete(gone)
        older = Corpus.open(corpus.path, snapshot=before)
        part = corpus.where("id like '0-%'") if any(each.startswith("0-") for each in corpus.ids()) else corpus
        asked = [each for each in data.draw(st.lists(questions(texts), min_size=1, max_size=6)) if fold(each).strip()]
        for text in asked:
            for view in (corpus, older, part):
                expected = brute_force(view, text)
                assert [place_of(each) for each in view.find(text)] == expected
                assert view.count(text) == len(expected)
        corpus.compact()
        for text in asked:
            assert [place_of(each) for each in corpus.find(text)] == brute_force(corpus, text)
