"""Every place of a string: by hand, and equal to looking at every text, in any state of a corpus."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_folding import PIECES

from crashes import Tree, kills, recorded, write_tree
from quoth.corpus.corpus import Corpus
from quoth.corpus.exact import indexes, suffixes
from quoth.corpus.exact.find import Match, Wanted, occurrences
from quoth.corpus.exact.indexes import make
from quoth.errors import CorruptionError, DamageWarning, IndexWarning, InputError
from quoth.records import Document, quote_of
from quoth.storage import WriterLock
from quoth.text.folding import fold, fold_with_places

WORDS = st.sampled_from(
    ["the cat", "The", "cats", "sat", "on", "中文", "한국", "ﬁn", "co-\nop", "½", "5", "(the", "\n\n"]
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
    monkeypatch.setattr(suffixes, "PART_BYTES", 60)
    monkeypatch.setattr(suffixes, "_FIRST_LOOK", 3)


@st.composite
def questions(draw: st.DrawFn, texts: list[str]) -> str:
    """Parts of the texts, mostly: what is not there is found nowhere."""
    text = draw(st.sampled_from([*filter(str.strip, texts), "the cat"]))
    first = draw(st.integers(0, len(text) - 1))
    part = text[first : first + draw(st.integers(1, 12))]
    return part.upper() if draw(st.booleans()) else part


@settings(max_examples=100, deadline=None)
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


TEXT = (
    "He said: “The ﬁrst co-\noperative — of 1844 — didn’t fail.” The [t]hird did. "
    "In Straße 5 he paid $5 (about 10⁶ marks). 北京是中国。 The End"
)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return corpus_of(tmp_path, [TEXT], ["the end of it; the endless end", "No words: ☃ ☃☃"])


@pytest.mark.parametrize(
    ("asked", "found", "how"),
    [
        ("co-\noperative — of 1844", "co-\noperative — of 1844", "exact"),
        ('"The first cooperative - of', "“The ﬁrst co-\noperative — of", "typographic"),
        ("THE FIRST COOPERATIVE", "The ﬁrst co-\noperative", "case"),
        ("The third", "The [t]hird", "typographic"),
        ("didn't", "didn’t", "typographic"),
        ("strasse 5", "Straße 5", "case"),
        ("$5 (about", "$5 (about", "exact"),
        ("10^6", "10⁶", "typographic"),
        ("中国", "中国", "exact"),
        ('fail."', "fail.”", "typographic"),
    ],
)
def test_a_place_and_its_degree(corpus: Corpus, asked: str, found: str, how: str) -> None:
    [match] = corpus.find(asked)
    assert (match.document_id, quote_of(match), match.degree) == ("0-0", found, how)
    assert TEXT[match.start : match.end] == found
    assert match.to_dict()["text"] == found


def test_words_are_whole_and_places_in_order(corpus: Corpus) -> None:
    places = [place_of(each) for each in corpus.find("the end")]
    assert places == [("0-0", len(TEXT) - 7, len(TEXT)), ("1-0", 0, 7)]
    assert corpus.find("irst") == corpus.find("844") == corpus.find("(bout") == []
    assert [place_of(each) for each in corpus.find("the end", limit=1)] == places[:1]
    assert [each.start for each in corpus.find("☃")] == [10, 12, 13]
    with pytest.raises(InputError, match="limit"):
        corpus.find("the end", limit=0)
    for empty in ("", " \n", "\u00ad"):
        with pytest.raises(InputError, match="empty"):
            corpus.count(empty)


def test_what_is_before_the_first_word_is_compared_in_texts_without_a_cut(tmp_path: Path) -> None:
    text = "— (x" + "\u0301" * 200 + " (x" + "\u00ad" * 100 + "y"
    corpus = corpus_of(tmp_path, [text, "$5\u0301"])
    for asked in ("(xy", "(x\u0301", "- (x", "$5"):
        assert [place_of(each) for each in corpus.find(asked)] == brute_force(corpus, asked)
    assert len(corpus.find("(xy")) == 1


def test_a_place_across_passages_is_shown_with_both(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "a.quoth", splitter="fixed:3")
    corpus.add([Document("a", "T", "One two three four five six.")])
    [match] = corpus.find("three four")
    assert (match.passage, match.context, match.context_start) == (0, "One two three four five six.", 0)
    assert corpus.passage(1).text == "four five six."


def test_the_index_is_made_once_and_only_for_new_segments(corpus: Corpus) -> None:
    folder = corpus.path / "exact"
    corpus.find("the end")
    made = {each.name: each.stat().st_ino for each in folder.iterdir() if each.is_dir()}
    assert made.keys() == {segment.name for segment in corpus.segments}
    corpus.add([Document("new", "", "the end again")])
    assert Corpus.open(corpus.path).count("the end") == 3
    now = {each.name: each.stat().st_ino for each in folder.iterdir() if each.is_dir()}
    assert made.items() < now.items()
    assert len(now) == 3


def test_compact_makes_the_index_of_the_merged_segment(corpus: Corpus) -> None:
    corpus.compact()
    assert not (corpus.path / "exact").exists()
    corpus.find("the end")
    corpus.add([Document("new", "", "the end again")])
    corpus.compact()
    [segment] = corpus.segments
    assert {each.name for each in (corpus.path / "exact").iterdir()} == {segment.name, "writer.lock"}
    assert corpus.count("the end") == 3


def files(corpus: Corpus) -> Iterator[Path]:
    return (
        each for each in sorted((corpus.path / "exact").rglob("*")) if each.is_file() and each.name != "writer.lock"
    )


def test_a_damaged_index_is_named_and_made_again(corpus: Corpus) -> None:
    corpus.find("the end")
    for file in [*files(corpus)]:
        whole = file.read_bytes()
        for damaged in (whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
            file.write_bytes(damaged)
            opened = Corpus.open(corpus.path)
            with pytest.warns(DamageWarning, match=re.escape(file.name)):
                assert opened.count("the end") == 2
            assert file.read_bytes() == whole
        opened.verify()


def test_verify_names_a_changed_byte_and_repair_removes_the_index(corpus: Corpus) -> None:
    corpus.find("the end")
    file = next(each for each in files(corpus) if each.name == "suffixes-0.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptionError, match="suffixes-0"):
        corpus.verify()
    [line] = Corpus.repair(corpus.path).repaired
    assert "suffixes-0.npy" in line
    assert "--keys exact" in line
    assert not file.parent.exists()
    assert Corpus.open(corpus.path).count("the end") == 2


def test_an_index_of_other_texts_or_another_folding_is_made_again(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.find("the end")
    first, second = sorted(each for each in (corpus.path / "exact").iterdir() if each.is_dir())
    shutil.rmtree(first)
    shutil.copytree(second, first)
    assert [each.document_id for each in Corpus.open(corpus.path).find("the end")] == ["0-0", "1-0"]
    made = second.stat().st_ino
    monkeypatch.setattr(suffixes, "FOLDING_VERSION", 99)
    assert Corpus.open(corpus.path).count("the end") == 2
    assert second.stat().st_ino != made


def test_if_the_folder_cannot_be_written_the_index_is_in_memory(corpus: Corpus) -> None:
    (corpus.path / "exact").write_text("in the way")
    with pytest.warns(IndexWarning, match="cannot be written"):
        assert corpus.count("the end") == 2
    assert corpus.count("the end") == 2
    with pytest.raises(OSError):
        make(Corpus.open(corpus.path), required=True)


def test_while_another_process_makes_it_the_index_is_in_memory(corpus: Corpus) -> None:
    (corpus.path / "exact").mkdir()
    with WriterLock(corpus.path / "exact" / "writer.lock"), pytest.warns(IndexWarning, match="is writing"):
        assert corpus.count("the end") == 2
    assert [*(corpus.path / "exact").iterdir()] == [corpus.path / "exact" / "writer.lock"]


def test_what_it_costs_is_told_first(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "TOLD_FROM_SECONDS", 0)
    with pytest.warns(IndexWarning, match=r"takes about \d+ seconds and \d+ MB"):
        corpus.count("the end")


def test_a_kill_while_an_index_is_made_loses_nothing(corpus: Corpus, tmp_path: Path) -> None:
    trees: list[Tree] = []
    with recorded(corpus.path, lambda disk, _: trees.extend(kills(disk))):
        corpus.count("the end")
    assert len(trees) > 10
    for number, tree in enumerate(trees):
        opened = Corpus.open(write_tree(tree, tmp_path / str(number)))
        assert opened.count("the end") == 2
        opened.add([Document("new", "", "the end again")])
        opened.compact()
        assert opened.count("the end") == 3
        assert not [*(opened.path / "exact").glob("*.tmp")]
        opened.verify()
