"""The splitters: limits, sentence ends, and that nothing but space is ever left out; phrases that cross a sentence."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.errors import InputError, ModelNotFoundError
from quoth.text.passages import crosses_sentence, get_splitter, sentences

UNICODE = st.text(max_size=300) | st.text("ab.!? \n\t。漢字かなไทย์\u0301\u200b", max_size=300)


def pieces(spec: str, text: str) -> list[str]:
    return [text[start:end] for start, end in get_splitter(spec)(text)]


def assert_covers(text: str, ranges: list[tuple[int, int]]) -> None:
    covered = {place for start, end in ranges for place in range(start, end)}
    assert all(place in covered or character.isspace() for place, character in enumerate(text))
    assert all(text[start:end] and text[start:end] == text[start:end].strip() for start, end in ranges)
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))


@settings(max_examples=150, deadline=None)
@given(UNICODE, st.integers(1, 12), st.sampled_from(["words", "fixed"]))
def test_passages_cover_every_text(text: str, limit: int, kind: str) -> None:
    assert_covers(text, get_splitter(f"{kind}:{limit}")(text))


def test_a_text_without_words_has_no_passage() -> None:
    assert pieces("words:5", "") == pieces("words:5", " \n\t\u3000") == []


def test_passages_end_with_sentences() -> None:
    text = "One two three. Four five! Six seven eight nine? Ten."
    assert pieces("words:5", text) == ["One two three. Four five!", "Six seven eight nine? Ten."]
    assert pieces("words:4", text) == ["One two three.", "Four five!", "Six seven eight nine?", "Ten."]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" \n ", []),
        ("no end", ["no end"]),
        ("  One two. Three!  “Four?” Five", ["One two.", "Three!", "“Four?”", "Five"]),
        ("By J. Smith, e.g. here. It was good.", ["By J. Smith, e.g. here.", "It was good."]),
        ('He said "no." She said "yes."', ['He said "no."', 'She said "yes."']),
        ("Heading\n\nthe text. ", ["Heading", "the text."]),
        ("今天天气好。我们出去玩。", ["今天天气好。", "我们出去玩。"]),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "Paris. The",
        "in 1875. It was first",
        'he left." Then',
        "the Seine. 1900",
        "Germany. Élysée",
        "the company. (The",
    ],
)
def test_a_phrase_across_the_end_of_a_sentence(text: str) -> None:
    assert crosses_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "St. Petersburg",
        "J. R. R. Tolkien",
        "Washington D.C. area",
        "Washington, D.C. The",
        "Dr. Martin Luther King Jr. Day",
        "Yahoo! Inc. Japan",
        "Monsters vs. Aliens",
        "Op. 27 No. 2",
        "version 2.4 of Python 3.12",
        "e.g. apples",
        "U.S. Army",
        "Paris.",
        "Nikki Giovanni",
        "",
    ],
)
def test_a_phrase_with_full_stops_inside_a_sentence(text: str) -> None:
    assert not crosses_sentence(text)


@settings(max_examples=100, deadline=None)
@given(UNICODE)
def test_sentences_cover_every_text_and_none_is_split_further(text: str) -> None:
    found = sentences(text)
    assert_covers(text, found)
    assert sorted({start for start, _ in found}) == [start for start, _ in found]


def test_a_sentence_over_the_limit_is_cut_between_words() -> None:
    assert pieces("words:2", "a b c d e") == ["a b", "c d", "e"]


def test_fixed_counts_words_and_heeds_no_sentence() -> None:
    assert pieces("fixed:3", "a b. c d. e f g") == ["a b. c", "d. e f", "g"]


@pytest.mark.parametrize("text", ["漢" * 1000, "ไทย" * 1000, "x" * 10_000, "\u0301" * 10_000])
def test_unspaced_texts_are_bounded(text: str) -> None:
    found = pieces("words:20", text)
    assert max(map(len, found)) <= 20 * 64
    assert "".join(found) == text


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = {"[UNK]": 0, **{letter: number for number, letter in enumerate("abcdefghij", 1)}}
    letters |= {f"##{letter}": number for number, letter in enumerate("abcdefghij", 11)}
    tokenizer = Tokenizer(models.WordPiece(letters, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_tokens_are_counted_and_words_kept_whole(tokenizer_folder: Path) -> None:
    assert pieces(f"tokens:5:{tokenizer_folder}", "abc de fgh ij a") == ["abc de", "fgh ij", "a"]


@settings(max_examples=60, deadline=None)
@given(text=UNICODE, limit=st.integers(1, 9))
def test_tokens_cover_every_text(tokenizer_folder: Path, text: str, limit: int) -> None:
    text = text.encode("utf-8", "ignore").decode()
    assert_covers(text, get_splitter(f"tokens:{limit}:{tokenizer_folder}")(text))


@pytest.mark.parametrize(
    "spec", ["", "words", "words:0", "words:x", "words:-1", "lines:3", "tokens:5", "words:5:x", "fixed:"]
)
def test_other_specs_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match=r"is not one of words:N, fixed:N, tokens:N:TOKENIZER"):
        get_splitter(spec)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match=str(tmp_path)):
        get_splitter(f"tokens:5:{tmp_path}")
