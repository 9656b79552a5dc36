"""Citations in others' formats, by hand: emoji, marks, percent-encoding, context that tells places apart."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth import Corpus, Document, Evidence, Prediction, cite
from quoth.corpus.exact.cite import CONTEXT, MOST_WORDS, _context, text_directive
from quoth.errors import InputError

# 👨‍👩‍👧 is five code points (three people and two joiners), which UTF-16 has in 8 units; 🇬🇷 two in 4; é here two in 2.
FAMILY, FLAG, CAFE = "👨‍👩‍👧", "🇬🇷", "cafe\u0301"
TEXT = f"{FAMILY} met in Athens {FLAG}, at a {CAFE} of Nikos Kazantzakis. The bill was 5 € & more."


def prediction(text: str, phrase: str, document_id: str = "d", corpus: str = "") -> Prediction:
    """The phrase as it first occurs in a document that is one passage."""
    start = text.index(phrase)
    place = Evidence(document_id, "", 0, start, start + len(phrase), text, 1.0, corpus)
    return Prediction(" ".join(phrase.split()), 0.0, 1.0, (place,))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "d.quoth")
    made.add(
        [
            Document("d", "Meetings", TEXT, {"url": "https://example.org/a?b=1"}),
            Document("e", "Events", "Athens is where it was.", {"url": "javascript:alert(1)"}),
        ]
    )
    return made


def test_offsets_count_code_points_and_utf_16_units_are_beside_them(corpus: Corpus) -> None:
    ((athens,), (flag,), (cafe,)) = cite([prediction(TEXT, each) for each in ("Athens", FLAG, CAFE)], corpus)
    # 5 code points and " met in ": 13; 8 units and the same: 16.
    assert (athens.start, athens.end, athens.start_utf16, athens.end_utf16) == (13, 19, 16, 22)
    assert (flag.start, flag.end, flag.start_utf16, flag.end_utf16) == (20, 22, 23, 27)
    # ", at a " is 7 more: the word of 5 code points, its accent one of them, is 5 units.
    assert (cafe.start, cafe.end, cafe.start_utf16, cafe.end_utf16) == (29, 34, 34, 39)
    units = TEXT.encode("utf-16-le")
    for each in (athens, flag, cafe):
        assert units[2 * each.start_utf16 : 2 * each.end_utf16].decode("utf-16-le") == each.exact
        assert TEXT[each.start : each.end] == each.exact


def test_a_web_annotation_has_quote_and_position(corpus: Corpus) -> None:
    ((athens,),) = cite([prediction(TEXT, "Athens")], corpus)
    assert athens.selector() == {
        "type": "SpecificResource",
        "source": "https://example.org/a?b=1",
        "selector": [
            {
                "type": "TextQuoteSelector",
                "exact": "Athens",
                "prefix": f"{FAMILY} met in ",
                "suffix": f" {FLAG}, at a {CAFE} of Nikos Kazantz",
            },
            {
                "type": "TextPositionSelector",
                "start": 13,
                "end": 19,
                "unit": "code points",
                "start_utf16": 16,
                "end_utf16": 22,
            },
        ],
    }


def test_a_character_location_numbers_the_documents_as_they_are_cited(corpus: Corpus) -> None:
    other = prediction("Athens is where it was.", "Athens", "e")
    cited = cite([other, prediction(TEXT, "Nikos"), other], corpus)
    assert [each[0].document_index for each in cited] == [0, 1, 0]
    assert cited[1][0].char_location() == {
        "type": "char_location",
        "cited_text": "Nikos",
        "document_index": 1,
        "document_title": "Meetings",
        "document_id": "d",
        "start_char_index": 38,
        "end_char_index": 43,
        "unit": "code points",
        "start_utf16": 43,
        "end_utf16": 48,
    }


def test_context_is_not_cut_inside_a_letter_or_an_emoji() -> None:
    for cluster in (FAMILY, FLAG, CAFE[3:], "👍🏽"):
        for shift in range(8):
            before = "x" + cluster + "y" * (CONTEXT - shift)
            text = f"{before}PHRASE{'y' * (CONTEXT - shift)}{cluster}x"
            start = len(before)
            first, last = _context(text, start, start + 6)
            assert first in (0, 1, 1 + len(cluster))
            assert len(text) - last in (0, 1, 1 + len(cluster))
            assert start - first <= CONTEXT
            assert last - start - 6 <= CONTEXT


def test_context_grows_until_it_tells_places_apart(tmp_path: Path) -> None:
    line = "The very same words before it and Bizet and the same words after it, all of them. "
    text = f"First. {line}Second. {line}"
    made = Corpus.create(tmp_path / "same.quoth")
    made.add([Document("d", "", text)])
    ((found,),) = cite([prediction(text, "Bizet")], made)
    assert text.count(found.prefix + found.exact + found.suffix) == 1
    assert len(found.prefix) > CONTEXT


@pytest.mark.parametrize(
    ("text", "phrase", "directive"),
    [
        (TEXT, "Athens", "text=Athens"),
        (TEXT, "Nikos Kazantzakis", "text=Nikos%20Kazantzakis"),
        (TEXT, "5 € & more", "text=5%20%E2%82%AC%20%26%20more"),
        (TEXT, FLAG, "text=%F0%9F%87%AC%F0%9F%87%B7"),
        (TEXT, CAFE, "text=cafe%CC%81"),
        # Comma, ampersand and dash are the syntax of directives.
        ("A well-known, 50 % [x](y).", "well-known, 50 % [x](y)", "text=well%2Dknown%2C%2050%20%25%20%5Bx%5D%28y%29"),
        # An earlier place would match, in whatever case: context tells the places apart, a word on each side at a time.
        ("ATHENS was. Then Athens is.", "Athens", "text=Then-,Athens,-is."),
        ("In ATHENS it was. In Athens it is.", "Athens", "text=was.%20In-,Athens,-it%20is."),
        # None is taken from other lines, where a browser would not find it.
        ("Athens was.\nAthens is.", "Athens", "text=Athens,-is."),
        # Of several lines the first and the last are named.
        ("The end\n of a line.", "end\n of a line", "text=end,of%20a%20line"),
    ],
)
def test_a_text_fragment_is_as_the_specification_has_it(text: str, phrase: str, directive: str) -> None:
    start = text.rindex(phrase)
    assert text_directive(text, start, start + len(phrase)) == directive


@given(
    st.lists(st.sampled_from(["Bizet", "bizet,", "wrote", "Carmen-1", "&", "the"]), min_size=1, max_size=12), st.data()
)
def test_a_reader_of_the_directive_finds_the_place(words: list[str], data: st.DataObject) -> None:
    """As a browser reads it: split at commas, then decoded; the first place with that context, ignoring case."""
    at = data.draw(st.integers(0, len(words) - 1))
    text, start = " ".join(words), len(" ".join(words[:at])) + (at > 0)
    parts = text_directive(text, start, start + len(words[at])).removeprefix("text=").split(",")
    assert all(each.count("-") <= 1 for each in parts)
    prefix = unquote(parts.pop(0)[:-1]).split() if parts[0].endswith("-") else []
    suffix = unquote(parts.pop()[1:]).split() if parts[-1].startswith("-") else []
    (exact,) = parts
    assert unquote(exact) == words[at]
    assert len(prefix) <= MOST_WORDS >= len(suffix)
    lower = [each.casefold() for each in words]
    wanted = [each.casefold() for each in [*prefix, words[at], *suffix]]
    found = next(i for i in range(len(words)) if lower[i : i + len(wanted)] == wanted) + len(prefix)
    assert found == at or len(prefix) == min(at, MOST_WORDS)


def test_a_link_keeps_the_page_s_own_fragment_and_takes_no_other_scheme(corpus: Corpus, tmp_path: Path) -> None:
    ((found,),) = cite([prediction(TEXT, "Athens")], corpus)
    assert found.link() == "https://example.org/a?b=1#:~:text=Athens"
    ((script,),) = cite([prediction("Athens is where it was.", "Athens", "e")], corpus)
    assert (script.url, script.link(), script.selector()["source"]) == ("", "#:~:text=Athens", "e")
    made = Corpus.create(tmp_path / "u.quoth")
    urls = ["https://example.org/#part", "https://example.org/#part:~:text=x", 7]
    made.add(Document(str(n), "", "Athens", {"url": url}) for n, url in enumerate(urls))
    cited = cite([prediction("Athens", "Athens", str(n)) for n in range(3)], made)
    assert [each[0].link() for each in cited] == [*["https://example.org/#part:~:text=Athens"] * 2, "#:~:text=Athens"]


def test_a_place_is_looked_up_in_the_corpus_that_it_names(corpus: Corpus, tmp_path: Path) -> None:
    other = Corpus.create(tmp_path / "other.quoth")
    other.add([Document("d", "Another", f"xx {TEXT}")])
    theirs = prediction(f"xx {TEXT}", "Athens", corpus="other")
    ((found,),) = cite([theirs], [corpus, other])
    assert (found.title, found.start) == ("Another", 16)
    with pytest.raises(InputError, match="document 'd' of corpus 'other' has no 'Athens' at 16; give the corpus"):
        cite([theirs], corpus)
    with pytest.raises(InputError, match="has no 'Athens' at 13"):
        cite([prediction(TEXT, "Athens")], other)


def test_json_has_the_unit_and_the_link(corpus: Corpus) -> None:
    ((found,),) = cite([prediction(TEXT, "Athens")], corpus)
    record = found.to_dict()
    assert (record["unit"], record["link"]) == ("code points", "https://example.org/a?b=1#:~:text=Athens")
    assert (record["exact"], record["start_utf16"]) == ("Athens", 16)
