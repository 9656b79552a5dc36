"""The splitters: limits, lines, sentence ends, nothing but space is ever left out; phrases that cross a sentence."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.errors import InputError, ModelNotFoundError
from quoth.text.passages import (
    crosses_sentence,
    get_splitter,
    is_mark_of_item,
    is_same_field,
    sentences,
    whole_sentences,
)
from quoth_sources.guess import is_heading, is_item, lines_of

UNICODE = st.text(max_size=300) | st.text("ab.!?:;-|# \n\t。漢字かなไทย์\u0301\u200b", max_size=300)
PROSE = """Honey is made by bees in the summer, when the lime trees are in flower
and the days are long enough. It keeps for years if no water gets in.
Wax is made too."""
CODE = """def f(x):
    if x:
        return g(x)
    return None"""
CHAT = """18/03/2025, 11:52 - Ann: Roofer has been. It is £455 all in, he can do it on the 27th if dry
18/03/2025, 11:55 - Carla: do it
22/03/2025, 16:46 - Joe: my rent is in, and I am away until Sunday evening, so ask the neighbours."""
COLUMNS = """12.20    LUNCH   Clubs: chess in room 4, choir in the hall
13.20    Geography   Mr Osei, who takes the register
15.20    End of school."""
RECORD = """Capital - name: Algiers
Capital - geographic coordinates: 36 45 N, 3 03 E
Constitution: several previous; amended several times. Last in 2016
Exports: 35 billion dollars (2016 est.)
Exports - partners: Spain 19 %, France 16 %"""
TABLE = """| name | height of the tower |
|------|------|
| Eiffel | 330 m. It was 312 m before 1957 |
| Tokyo | 333 m |"""
LIST = """- a spoon of honey. Not more
- two eggs, which must be fresh
- flour"""

ROW = "Country: Kenya | Capital: Nairobi"
WRAPPED = "The first row of a paragraph of wrapped prose\nis followed by a second row."
RECORD = "Coastline: 998 km of the southern and of the eastern sea\nClimate: arid\nClimate - winter: mild"


def units_of(block: str) -> list[str]:
    """What of a block may not be cut, by hand."""
    if block == PROSE:
        return [sentence + "." for sentence in block.split(".")[:-1]]
    return [line for line in block.split("\n") if "--" not in line]


def pieces(spec: str, text: str) -> list[str]:
    return [text[start:end] for start, end in get_splitter(spec)(text)]


def assert_covers(text: str, ranges: list[tuple[int, int]]) -> None:
    covered = {place for start, end in ranges for place in range(start, end)}
    assert all(place in covered or character.isspace() for place, character in enumerate(text))
    assert all(text[start:end] and text[start:end] == text[start:end].strip() for start, end in ranges)
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))


@settings(max_examples=150, deadline=None)
@given(UNICODE, st.integers(1, 12), st.sampled_from(["blocks", "words", "fixed"]))
def test_passages_cover_every_text(text: str, limit: int, kind: str) -> None:
    assert_covers(text, get_splitter(f"{kind}:{limit}")(text))


def test_a_text_without_words_has_no_passage() -> None:
    assert pieces("words:5", "") == pieces("words:5", " \n\t\u3000") == []


def test_passages_end_with_sentences() -> None:
    text = "One two three. Four five! Six seven eight nine? Ten."
    assert pieces("words:5", text) == ["One two three. Four five!", "Six seven eight nine? Ten."]
    assert pieces("words:4", text) == ["One two three.", "Four five!", "Six seven eight nine?", "Ten."]


@settings(max_examples=300, deadline=None)
@given(st.data(), st.integers(25, 60))
def test_blocks_cut_no_unit_and_no_heading_is_last(data: st.DataObject, limit: int) -> None:
    headings = ("# A story", "Bees and wasps", "Ingredients:")
    blocks = data.draw(st.lists(st.sampled_from([PROSE, CODE, RECORD, TABLE, LIST, ROW]), min_size=2, max_size=12))
    texts = []
    for block in blocks:
        texts += [*data.draw(st.lists(st.sampled_from(headings), max_size=1)), block]
    found = pieces(f"blocks:{limit}", "\n\n".join(texts))
    assert " ".join(found).split() == " ".join(texts).split()
    assert all(len(piece.split()) <= limit for piece in found)
    assert not any(piece.endswith(headings) for piece in found)
    for unit in {unit for block in blocks for unit in units_of(block)}:
        whole = sum(block.count(unit.strip()) for block in blocks)
        assert sum(piece.count(unit.strip()) for piece in found) == whole, unit


def test_blocks_end_at_the_best_place_that_leaves_them_full() -> None:
    """Of ten words six are enough: an empty line before a line's end, this before a sentence's; else the last."""
    assert pieces("blocks:10", "a b c. D e f.\n\nG h. I j k.") == ["a b c. D e f.", "G h. I j k."]
    assert pieces("blocks:10", "a b c. D e f.\nG h. I j k.") == ["a b c. D e f.", "G h. I j k."]
    assert pieces("blocks:10", "a b c. D e.\n\nF g h. I j k.") == ["a b c. D e.\n\nF g h.", "I j k."]
    assert pieces("blocks:10", "a b c d e f.\nG.\n\nH i. J k.") == ["a b c d e f.\nG.", "H i. J k."]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{ROW}\n{ROW}", [ROW, ROW]),
        (f"{ROW}\n\n{ROW}\nAnd so on.", [ROW, ROW, "And so on."]),
        (f"Of two.\n\nStates\n\nAfrica\n\n{ROW}\n{ROW}", ["Of two.", f"States\n\nAfrica\n\n{ROW}", ROW]),
        (f"{ROW}\n\nSee there.\n\nEnd:", [ROW, "See there.\n\nEnd:"]),
        ("Seen: a | b\nSaid: c", ["Seen: a | b\nSaid: c"]),
    ],
)
def test_blocks_leave_a_row_that_names_its_cells_alone(text: str, found: list[str]) -> None:
    assert pieces("blocks:99", text) == found


def test_blocks_keep_lines_of_one_field_together() -> None:
    text = "Coast: 5 km long\nArea - all: 9 km\nAirports: 157 (2016)\nAirports - paved: 64\nPorts: 3 large"
    assert pieces("blocks:15", text) == [text[: text.index("Airports:")].strip(), text[text.index("Airports:") :]]
    assert pieces("blocks:15", text.replace("Airports - ", "Fields - "))[0].endswith("(2016)")


def test_blocks_cut_what_is_too_long_at_a_clause_or_a_row() -> None:
    assert pieces("blocks:5", "Parties: a b; c d e f; g") == ["Parties: a b;", "c d e f; g"]
    assert pieces("blocks:5", "a b c d e f") == ["a b c d e", "f"]
    rows = "and so the words of this row go on and on\n" * 3
    assert pieces("blocks:25", rows) == [(rows[:84]).strip(), rows[84:].strip()]
    assert [len(piece.split()) for piece in pieces("words:25", rows)] == [25, 8]


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
        "6. Takes 55 minutes",
        "the Seine. 1900",
        "Germany. Élysée",
        "the company. (The",
        "moisture 17.2 %. Lime",
        "at week 48 (rash). Next",
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
        "3 %. of it",
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
    "spec",
    [
        "",
        "words",
        "words:0",
        "blocks:",
        "blocks:5:x",
        "words:x",
        "words:-1",
        "lines:3",
        "tokens:5",
        "words:5:x",
        "fixed:",
        pytest.param("words:" + 5000 * "9", id="more digits than an int may have"),
    ],
)
def test_other_specs_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match=r"is not one of blocks:N, words:N, fixed:N, tokens:N:TOKENIZER"):
        get_splitter(spec)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match=str(tmp_path)):
        get_splitter(f"tokens:5:{tmp_path}")


def texts(text: str) -> list[str]:
    return [text[line.start : line.end] for line in lines_of(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("---\n ***", []),
        (WRAPPED, [WRAPPED]),
        (f"  {WRAPPED}\n\nAnd a third.", [WRAPPED, "And a third."]),
        (RECORD, RECORD.split("\n")),
        ("milk\neggs", ["milk", "eggs"]),
        ("- milk\n- eggs", ["- milk", "- eggs"]),
        (CHAT, CHAT.split("\n")),
        (COLUMNS, COLUMNS.split("\n")),
    ],
)
def test_lines(text: str, found: list[str]) -> None:
    assert texts(text) == found


def test_headings_items_and_fields() -> None:
    text = f"# Seas\n{RECORD}\n- salt. And water\n| a | b |\nPlain prose ends here."
    lines = lines_of(text)
    assert [is_heading(text, lines, i) for i in range(len(lines))] == [True, *[False] * 6]
    assert [is_item(text, line) for line in lines] == [False, True, True, True, True, True, False]
    same = [is_same_field(text, *pair) for pair in pairwise(lines)]
    assert same == [False, False, True, False, False, False]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ask Dr. H. Carver of St. Brendan. She knows.", ["Ask Dr. H. Carver of St. Brendan.", "She knows."]),
        ("Until Feb. 2025 call ext. 4471. Or No. 5.", ["Until Feb. 2025 call ext. 4471.", "Or No. 5."]),
        ("He said no. Then he left Apple Inc. It grew.", ["He said no.", "Then he left Apple Inc.", "It grew."]),
        ("Is it art. 3? No.", ["Is it art. 3?", "No."]),
        ("It is 17 %. See (row 3). Then go.", ["It is 17 %.", "See (row 3).", "Then go."]),
    ],
)
def test_no_whole_sentence_ends_in_an_abbreviation_of_what_follows(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in whole_sentences(text)] == found


def test_a_long_run_of_letters_is_no_work() -> None:
    """As a passage of base64 has it, or one in a script without spaces."""
    began = time.process_time()
    for letter in "a_東":
        assert whole_sentences(letter * 200_000) == [(0, 200_000)]
        assert not crosses_sentence(letter * 200_000)
    assert time.process_time() - began < 20  # some hundredths; what is quadratic takes minutes


@pytest.mark.parametrize(
    ("text", "phrase", "is_mark"),
    [
        ("1. Chop\n2. Mix well", "2", True),
        ("- 12) Mix", "12", True),
        ("7.1 Officers", "7.1", True),
        ("A:\n7.1.12. Officers", "7.1.12", True),
        ("3.", "3", False),  # an amount
        ("See 2. Mix", "2", False),
        ("7.1 millions", "7.1", False),
        ("10.30 Coffee", "10.30", False),
        ("1990. Wars", "1990", False),
        ("2. Mix", "2. Mix", False),
    ],
)
def test_numbers_of_items(text: str, phrase: str, is_mark: bool) -> None:
    at = text.rindex(phrase)
    assert is_mark_of_item(text, at, at + len(phrase)) is is_mark


DENSE = (
    "1.1.1.",
    "(",
    "!",
    '"',
    "…",
    ",a",
    "a-",
    "x9Y",
    "0123456789",
    "。",
    "॥",
    "😀",
    "a\u0301\u0302",
    "!!!! ",
    "((((\n",
)


@pytest.mark.parametrize("piece", DENSE)
@pytest.mark.parametrize("spec", ["blocks:120", "words:120", "blocks:10"])
def test_what_is_dense_has_about_as_much_in_a_passage_as_prose(piece: str, spec: str) -> None:
    text, limit = piece * 6000, int(spec.partition(":")[2])
    split = get_splitter(spec)
    passages = split(text)
    assert "".join("".join(text[start:end] for start, end in passages).split()) == "".join(text.split())
    for start, end in passages:
        marks = sum(not (each.isalnum() or each.isspace()) for each in text[start:end])
        assert end - start <= max(12 * limit + 1, 64)
        assert marks <= 7 * limit or not piece[0].isascii()


def test_prose_full_of_marks_is_cut_by_its_words_alone() -> None:
    row = "“Aa (b),” he said: 1,234.5 % of it—more or less—is (or was) https://example.org/a/b?c=d, e.g. here; "
    text = row * 40
    [*passages, _] = get_splitter("words:120")(text)
    assert all(100 < len(text[start:end].split()) <= 120 for start, end in passages)
    assert get_splitter("fixed:100")("(" * 64 * 300) == [(0, 6400), (6400, 12800), (12800, 19200)]
