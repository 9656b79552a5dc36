"""The spans of a text that occur word for word: by hand, and equal to looking for every run of its words."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_folding import PIECES

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.find import Wanted, occurrences
from quoth.corpus.exact.trace import trace
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.folding import fold_with_places, words

NILE = "The Nile is a river in Africa. It flows through Egypt and ends in the Mediterranean Sea."
RHINE = "The Rhine is a river in Europe. It flows through Germany and ends in the North Sea."
WORDS = st.sampled_from(["a ", "b ", "a-", "c. ", "ﬁ ", "中", "½ "]) | PIECES
TEXTS = st.lists(WORDS, max_size=25).map("".join)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    corpus = Corpus.create(tmp_path / "a.quoth")
    corpus.add([Document("nile", "Nile", NILE)])
    corpus.add([Document("rhine", "Rhine", RHINE), Document("gone", "", "an entirely different run of words")])
    corpus.delete(["gone"])
    return corpus


def test_the_rarest_span_comes_first_with_its_places(corpus: Corpus) -> None:
    text = "Now: “the NILE is a river in Africa”. It ﬂows through it, is a river in, an entirely different run of words"
    found = corpus.trace(text, min_words=4)
    assert [(span.text, span.num_places) for span in found.spans] == [
        ("the NILE is a river in Africa", 1),
        ("is a river in", 2),
    ]
    for span in found.spans:
        assert text[span.start : span.end] == span.text
    assert [(each.document_id, each.start, each.end) for each in found.spans[0].places] == [("nile", 0, 29)]
    assert [(each.document_id, each.start, each.end) for each in found.spans[1].places] == [
        ("nile", 9, 22),
        ("rhine", 10, 23),
    ]
    assert found.coverage == {"nile": 11 / 22, "rhine": 4 / 22}
    assert found.share == 11 / 22
    assert [*found.to_dict()] == ["coverage", "share", "spans"]
    assert found.to_dict()["spans"][0]["places"][0]["degree"] == "case"


def test_deleted_documents_and_parts_count_as_not_there(corpus: Corpus) -> None:
    gone = "an entirely different run of words"
    assert corpus.trace(gone).spans == ()
    assert Corpus.open(corpus.path, snapshot=2).trace(gone).coverage == {"gone": 1.0}
    assert corpus.where("id = 'rhine'").trace(NILE, min_words=4).coverage == {"rhine": pytest.approx(8 / 17)}


def test_ten_places_of_a_span_are_told_and_all_are_counted(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "a.quoth")
    corpus.add(Document(str(number), "", "one two three four five six seven") for number in range(12))
    [span] = corpus.trace("one two three four five six").spans
    assert (span.num_places, len(span.places)) == (12, 10)
    assert len(corpus.trace("one two three four five six").coverage) == 12


def test_of_several_corpora_the_names_are_told(corpus: Corpus, tmp_path: Path) -> None:
    other = Corpus.create(tmp_path / "b.quoth")
    other.add([Document("nile", "", NILE)])
    found = trace([corpus, other], NILE)
    assert found.coverage == {"a: nile": 1.0, "b: nile": 1.0}
    assert [each.corpus for each in found.spans[0].places] == ["a", "b"]


def test_nothing_is_found_in_no_words(corpus: Corpus) -> None:
    for text in ("", "…", "one word"):
        assert (corpus.trace(text).spans, corpus.trace(text).coverage, corpus.trace(text).share) == ((), {}, 0.0)
    with pytest.raises(InputError, match="min_words"):
        corpus.trace(NILE, min_words=0)
    with pytest.raises(InputError, match="Unicode"):
        corpus.trace("\ud800")


def brute_force(corpus: Corpus, text: str, min_words: int) -> dict[tuple[int, int], int]:
    """The maximal runs of words that occur, by their folded characters, and how often."""
    folded = fold_with_places(text)
    ranges = words(folded.text).tolist()
    starts = set(folded.starts()[0].tolist())
    documents = [fold_with_places(document.text) for document in corpus.documents()]
    occurring = {}
    for first, (start, _) in enumerate(ranges):
        for last in range(first + min_words, len(ranges) + 1):
            if start in starts:
                wanted = Wanted(folded.text[start : ranges[last - 1][1]], 0, True)
                if count := sum(len([*occurrences(wanted, each)]) for each in documents):
                    occurring[first, last] = count
    return {
        folded.source(ranges[first][0], ranges[last - 1][1]): count
        for (first, last), count in occurring.items()
        if not any((a, b) != (first, last) and a <= first and last <= b for a, b in occurring)
    }


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS, st.integers(1, 3), st.booleans())
def test_spans_equal_looking_for_every_run_of_words(
    texts: list[str], asked: str, min_words: int, deletes: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.create(Path(folder) / "a.quoth")
        for number, text in enumerate(texts):
            corpus.add([Document(str(number), "", text)])
        if deletes:
            corpus.delete(["0"])
        for text in (asked, f"{asked} {texts[0]}"):
            found = {(span.start, span.end): span.num_places for span in corpus.trace(text, min_words).spans}
            assert found == brute_force(corpus, text, min_words)
