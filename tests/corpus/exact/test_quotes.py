"""Does a text occur in a corpus: exact places by hand and by brute force, and the nearest part by an edit distance that
is computed cell by cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth import Corpus, Document, Evidence, verify_quote
from quoth.corpus.exact.nearest import MOST_CHARACTERS, nearest_part
from quoth.corpus.exact.quotes import verify_in
from quoth.errors import InputError

TEXTS = {
    "carmen": "Carmen is an opera\n  in four acts by Georges Bizet. It was first given in 1875; they sold 10.5 tons.",
    "genji": "The Tale of Genji (源氏物語) was written by Murasaki\u00a0Shikibu, a lady of the court 🏯 in Kyo\u0304to",
    "other": "Bizet, Bizet and Bizet. Carmen is an opera in Bizetville, where 4 Bizets live.",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = Corpus.create(tmp_path_factory.mktemp("quotes") / "texts.quoth", splitter="words:5")
    made.add(Document(name, name.title(), text) for name, text in TEXTS.items())
    return made


def shown(place: Evidence) -> str:
    """The place's text, cut from its context."""
    text = place.context[place.start - place.context_start : place.end - place.context_start]
    assert text == TEXTS[place.document_id][place.start : place.end]
    return text


def test_a_quote_is_found_across_lines_and_passages_to_the_character(corpus: Corpus) -> None:
    found = verify_quote(corpus, " Carmen is an  opera in four acts by Georges Bizet. ")
    assert (found.occurs, found.num_places, found.num_whole, found.nearest) == (True, 1, 1, ())
    (place,) = found.places
    assert (place.document_id, place.title, place.start, place.end, place.score) == ("carmen", "Carmen", 0, 51, 1.0)
    assert shown(place) == "Carmen is an opera\n  in four acts by Georges Bizet."
    assert (place.passage, place.corpus) == (0, "texts")
    # It touches two passages of five words, whose text is the context.
    assert place.context == TEXTS["carmen"][:51]


def test_any_white_space_is_white_space_and_offsets_count_characters(corpus: Corpus) -> None:
    (place,) = verify_quote(corpus, "Murasaki Shikibu, a lady of the court 🏯").places
    assert shown(place) == "Murasaki\u00a0Shikibu, a lady of the court 🏯"
    assert (place.start, place.end) == (40, 79)
    (place,) = verify_quote(corpus, "源氏").places
    assert (place.start, place.end) == (19, 21)


@pytest.mark.parametrize(
    ("text", "num_places", "num_whole"),
    [
        ("Bizet", 6, 4),  # Bizetville and Bizets are longer words
        ("10", 1, 0),  # of 10.5
        ("5", 2, 0),  # of 10.5 and of 1875
        ("in 187", 1, 0),
        ("物語", 1, 1),  # no word of a script without spaces is cut
        ("Kyo", 1, 0),  # the o has a macron
        ("bizet", 0, 0),
    ],
)
def test_places_that_cut_a_word_are_counted_apart(corpus: Corpus, text: str, num_places: int, num_whole: int) -> None:
    found = verify_quote(corpus, text)
    assert (found.num_places, found.num_whole, found.occurs) == (num_places, num_whole, num_places > 0)
    assert all(shown(place) == text for place in found.places)


def test_the_mark_of_a_note_is_no_part_of_a_number(tmp_path: Path) -> None:
    made = Corpus.create(tmp_path / "mill.quoth")
    made.add([Document("a", "Mill", "It opened in 1998³ and holds 10⁶ litres.")])
    for text, num_places, num_whole in (("1998", 1, 1), ("1998³", 1, 1), ("19983", 0, 0), ("10", 1, 0), ("106", 0, 0)):
        found = verify_quote(made, text)
        assert (found.num_places, found.num_whole) == (num_places, num_whole), text


@pytest.mark.parametrize(
    ("told", "typed", "occurs"),
    [
        ("It’s “a lady’s” part.", "It's \"a lady's\" part.", True),
        ("It's a 'part'.", "It’s a ‘part’.", True),
        ("It's a 'part'.", "It’s a “part”.", False),
        ("A quote: '", "'", True),  # of nothing else
        ("Its part.", "It's part.", False),
    ],
)
def test_straight_quotation_marks_are_curly_ones(tmp_path: Path, told: str, typed: str, occurs: bool) -> None:
    mine = Corpus.create(tmp_path / "mine.quoth")
    mine.add([Document("a", "", told)])
    found = verify_quote(mine, typed)
    assert found.occurs is occurs
    assert [place.end - place.start for place in found.places] == [len(typed)] * occurs


def test_whole_words_come_first_and_no_more_than_asked_for(corpus: Corpus) -> None:
    found = verify_quote(corpus, "Bizet", max_places=5)
    assert [(each.document_id, each.start) for each in found.places] == [
        ("carmen", 45),
        ("other", 0),
        ("other", 7),
        ("other", 17),
        ("other", 46),
    ]
    assert len(verify_quote(corpus, "Bizet", max_places=1).places) == 1


def test_whole_words_of_all_corpora_come_first(corpus: Corpus, tmp_path: Path) -> None:
    cut = Corpus.create(tmp_path / "cut.quoth")
    cut.add([Document("cut", "", "Bizets. Bizet")])
    places = verify_in([cut, corpus], "Bizet", max_places=6).places
    assert [(each.document_id, each.start) for each in places] == [
        *(("cut", 8), ("carmen", 45), ("other", 0), ("other", 7), ("other", 17), ("cut", 0))
    ]


def test_what_is_deleted_or_only_a_title_or_metadata_does_not_occur(tmp_path: Path) -> None:
    mine = Corpus.create(tmp_path / "mine.quoth")
    mine.add([Document("a", "Hidden title", "One text.", {"note": "hidden note"}), Document("b", "", "Two texts.")])
    assert verify_quote(mine, "Two texts.").occurs
    for text in ("Hidden", "hidden note", '"b"', "text. [", "One text.["):
        assert not verify_quote(mine, text).occurs
    mine.delete(["b"])
    found = verify_quote(mine, "Two texts.")
    assert (found.occurs, [each.document_id for each in found.nearest]) == (False, ["a"] * len(found.nearest))


def test_the_nearest_differs_least_and_has_whole_words(corpus: Corpus) -> None:
    nearest = verify_quote(corpus, "opera in five acts by George Bizet").nearest
    assert shown(nearest[0]) == "opera\n  in four acts by Georges Bizet"
    # five/four takes three edits (i, v and e become o, u and r), Georges one, and the second and third white space two.
    assert nearest[0].score == pytest.approx(1 - 6 / 37)
    assert [each.score for each in nearest] == sorted((each.score for each in nearest), reverse=True)
    assert len({(each.document_id, each.start, each.end) for each in nearest}) == len(nearest) <= 3
    assert verify_quote(corpus, "zzz").nearest == ()  # no word in common
    assert verify_quote(corpus, "Carmen " * MOST_CHARACTERS).nearest == ()


def test_json_says_whether_it_occurs(corpus: Corpus) -> None:
    record = verify_quote(corpus, "in four").to_dict()
    assert list(record) == ["occurs", "text", "num_places", "num_whole", "places", "nearest", "status", "changes"]
    assert (record["occurs"], record["places"][0]["start"]) == (True, 21)


@pytest.mark.parametrize(("text", "places"), [("", 1), (" \n", 1), ("x", 0), ("\ud800", 1)])
def test_what_cannot_be_looked_for_is_refused(corpus: Corpus, text: str, places: int) -> None:
    with pytest.raises(InputError):
        verify_quote(corpus, text, places)


ALPHABET = "ab \n\u00a0.1é"


@settings(max_examples=25)
@given(
    texts=st.lists(st.text(ALPHABET, max_size=30), min_size=1, max_size=5),
    text=st.text(ALPHABET, min_size=1, max_size=4),
)
def test_every_place_is_found_as_by_a_scan(
    texts: list[str], text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not text.strip():
        return
    made = Corpus.create(tmp_path_factory.mktemp("scan") / "c.quoth", splitter="words:2")
    made.add(Document(str(n), "ab", each) for n, each in enumerate(texts))
    wanted = {
        (str(n), match.start(), match.end())
        for n, each in enumerate(texts)
        for match in re.finditer(r"\s+".join(map(re.escape, text.split())), each)
    }
    found = verify_quote(made, text, max_places=1000)
    assert {(each.document_id, each.start, each.end) for each in found.places} == wanted
    assert found.num_places == len(wanted)


def edits(first: str, second: str) -> int:
    """The edit distance, cell by cell."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@given(text=st.text("ab c", min_size=1, max_size=6), whole=st.text("ab c", max_size=12), data=st.data())
def test_the_nearest_part_is_the_best_of_all_ranges_of_whole_words(text: str, whole: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(whole)))
    last = data.draw(st.integers(first, len(whole)))
    starts = [at for at in range(first, last) if not whole[at].isspace() and (at == 0 or whole[at - 1].isspace())]
    ends = [
        at
        for at in range(first + 1, last + 1)
        if not whole[at - 1].isspace() and (at == len(whole) or whole[at].isspace())
    ]
    every = [(edits(text, whole[start:end]), start, end) for start in starts for end in ends if start < end]
    found = nearest_part(text, whole, first, last)
    if not every:
        assert found is None or found[1] >= found[2]
        return
    assert found is not None
    assert found in every
    assert found[0] == min(each[0] for each in every)
