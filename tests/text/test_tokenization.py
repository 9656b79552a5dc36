import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quoth.errors import InputError
from quoth.text.boundaries import MAY_END, MAY_START, begins_note
from quoth.text.tokenizer import READ_OF_TITLE, FastTokenizer, PairTokenizer, TextTokenizer, TokenizedPassage, Tokens
from tiny_tokenizers import KINDS, tokenizer_folder

PIECES = [
    *("Paris ", "the capital", "Café ", "cafe\u0301", "a\u0323\u0301\u0327b", "e\u0301\u0301 ", "ﬁﬂ ", "ﷺ", "½ ", "ß"),
    *("👩\u200d👩\u200d👧", "👍🏽", "🇫🇷", "❤\ufe0f", "서울은 ", "\u1109\u1165", "القاهرة ", "مُحَمَّد ", "می\u200cخواهم"),
    *("दिल्ली ", "北京市", "か\u3099", "กรุงเทพ", "\r\n", "\n\n", "\t", " ", "\u00a0", "\u3000", "\u200b", "\ufeff"),
    *("\x01", "\x1f", "\x85", ".", ", ", "— ", "«", "3.14", "x²", "\u00ad", "\u2028", "\ufffd", "[MASK]", "</s>"),
    *("##s", "▁", "İ", "\U00013080"),
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=12).map("".join)
TEXTS = TEXTS.map(lambda text: text.replace("\x00", "").encode("utf-8", "ignore").decode())
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@pytest.fixture(scope="session", params=KINDS)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_folder(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> TextTokenizer:
    return make(folder)


@pytest.fixture(scope="session")
def berts(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return make(tokenizer_folder("bert", tmp_path_factory.mktemp("berts")))


def make(folder: Path, num_masks: int = 2, max_tokens: int = 64) -> TextTokenizer:
    return TextTokenizer(FastTokenizer(folder), num_masks=num_masks, max_tokens=max_tokens)


def cuts_a_word(text: str, at: int) -> bool:
    """Whether letters of one word, or a character and its marks, stand on both sides of a place."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if unicodedata.category(after)[0] == "M":
        return not before.isspace()
    spaced = not any(unicodedata.name(char, "").startswith(UNSPACED) for char in (before, after))
    return before == "\u200d" or (spaced and before.isalpha() and after.isalpha())


def check(text: str, passage: TokenizedPassage) -> None:
    count = len(passage.ids_T)
    assert passage.offsets_T2.shape == (count, 2)
    assert passage.flags_T.shape == passage.group_T.shape == (count,)
    assert passage.flags_T.dtype == np.uint8
    assert passage.group_T.dtype == np.uint64
    start_T, end_T = passage.offsets_T2.T
    assert (start_T <= end_T).all()
    assert ((start_T >= 0) & (end_T <= len(text))).all()
    assert (np.diff(start_T) >= 0).all()
    assert (np.diff(end_T) >= 0).all()
    starts = start_T[(passage.flags_T & MAY_START) != 0].tolist()
    ends = end_T[(passage.flags_T & MAY_END) != 0].tolist()
    assert not any(cuts_a_word(text, at) for at in starts + ends if not begins_note(text, at))
    for start, end in passage.offsets_T2.tolist():
        assert text[start:end] == text[start:end].strip()


@settings(max_examples=80, deadline=None)
@given(text=TEXTS, title=st.sampled_from(["", "Paris", "北京 e\u0301", "\u200d"]))
@example(text="\u0301abc", title="Paris")
@example(text="a\u0327\u0301\u0323 \u0301b", title="")
def test_ranges_are_in_order_and_cut_no_word(tokenizer: TextTokenizer, text: str, title: str) -> None:
    passage = tokenizer.passages([text], [title])[0]
    check(text, passage)
    covered = [i for window in passage.windows for i in window.input_ids[window.body].tolist()]
    assert covered == passage.ids_T.tolist()
    assert all(len(window.input_ids) <= tokenizer.max_tokens for window in passage.windows)


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_every_legal_phrase_starts_before_it_ends(tokenizer: TextTokenizer, text: str) -> None:
    passage = tokenizer.passages([text], ["T"])[0]
    starts = np.flatnonzero(passage.flags_T & MAY_START)
    ends = np.flatnonzero(passage.flags_T & MAY_END)
    for i in starts:
        for j in ends[ends >= i][:4]:
            assert passage.offsets_T2[i, 0] < passage.offsets_T2[j, 1]


def test_groups_tell_texts_apart(folder: Path) -> None:
    tokenizer = make(folder)
    assert tokenizer.spells == (not folder.name.startswith("bert"))
    egypt = tokenizer.passages(["x \U00013080 x \U00013081"], [""])[0]
    pieces = {
        tuple(egypt.group_T[(egypt.offsets_T2[:, 0] <= at) & (at < egypt.offsets_T2[:, 1])].tolist()) for at in (2, 6)
    }
    assert len(pieces) == 2


def test_long_passages_are_covered_by_windows_in_order(folder: Path) -> None:
    tokenizer = make(folder, max_tokens=64)
    text = "the capital of France is Paris. " * 30 + "End."
    plain, titled = tokenizer.passages([text, text], ["", "Paris " * 40])
    for passage in (plain, titled):
        assert len(passage.windows) > 2
        ids = np.concatenate([window.input_ids[window.body] for window in passage.windows])
        np.testing.assert_array_equal(ids, passage.ids_T)
        for window in passage.windows:
            assert len(window.input_ids) <= 64
            assert window.input_ids[: len(tokenizer.before)].tolist() == tokenizer.before
            assert window.input_ids[window.body.stop :].tolist() == tokenizer.after
    np.testing.assert_array_equal(plain.offsets_T2[-1], [len(text) - 1, len(text)])


def test_of_a_long_title_no_more_is_tokenized_than_is_needed(tokenizer: TextTokenizer) -> None:
    words = "Paris 北京 " * 10_000
    [long] = tokenizer.passages(["The end."], [words])
    [short] = tokenizer.passages(["The end."], [words[:500]])
    assert [each.input_ids.tolist() for each in long.windows] == [each.input_ids.tolist() for each in short.windows]
    assert long.offsets_T2.tolist() == short.offsets_T2.tolist()
    assert max(len(prefix) for prefix, _ in tokenizer._recent) == READ_OF_TITLE + len(". ")


def test_the_title_owns_no_token(tokenizer: TextTokenizer) -> None:
    passage = tokenizer.passages(["Berlin stands."], ["Germany"])[0]
    assert passage.offsets_T2[0, 0] == 0
    assert passage.offsets_T2[-1, 1] == len("Berlin stands.")
    assert passage.windows[0].body.start > len(tokenizer.before)
    assert tokenizer.passages([], []) == []


@pytest.mark.parametrize("num_masks", [1, 2])
def test_a_query_holds_its_masks_where_the_blank_is(folder: Path, num_masks: int) -> None:
    tokenizer = make(folder, num_masks)
    ids, positions = tokenizer.query("The capital is [MASK].")
    assert positions.shape == (num_masks,)
    assert (ids[positions] == tokenizer.mask_id).all()
    assert (ids == tokenizer.mask_id).sum() == num_masks
    np.testing.assert_array_equal(tokenizer.query(f"The capital is {tokenizer.mask_token}.")[0], ids)
    expected = tokenizer.hf("The capital is")["input_ids"]
    assert ids[: positions[0]].tolist() == expected[: len(expected) - len(tokenizer.after)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing here", r"no \[MASK\] in 'nothing here'; put one"),
        ("", r"no \[MASK\]"),
        ("[MASK] and [MASK]", "2 masks in"),
    ],
)
def test_query_errors_are_one_line(tokenizer: TextTokenizer, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        tokenizer.query(text)
    assert "\n" not in str(error.value)


def test_other_errors(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InputError, match="only fast tokenizers"):
        TextTokenizer(SimpleNamespace(is_fast=False), num_masks=2, max_tokens=64)
    fast = SimpleNamespace(is_fast=True, mask_token_id=None, name_or_path="gpt")
    with pytest.raises(InputError, match="no mask token"):
        TextTokenizer(fast, num_masks=2, max_tokens=64)
    with pytest.raises(InputError, match="max_tokens 2 leaves no room"):
        TextTokenizer(tokenizer.hf, num_masks=2, max_tokens=2).passages(["Paris"], [""])


def test_a_phrase_has_no_empty_token(tokenizer: TextTokenizer) -> None:
    for text in ("北京", "terrible", " the capital "):
        phrase = tokenizer.phrase(text)
        assert len(phrase.ids_T)
        assert (np.diff(phrase.offsets_T2, axis=1) > 0).all()
    assert not len(tokenizer.phrase("  ").ids_T)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, title=st.sampled_from(["", "Paris", "北京 e\u0301", "\u200d", "[MASK"]))
@example(text="\u0301abc", title="Paris")
def test_a_reader_may_take_the_tokens_of_bert(text: str, title: str, berts: TextTokenizer) -> None:
    [passage] = berts.passages([text], [title])
    [pieces] = PairTokenizer(berts.hf, types=True).pieces([text])
    alone = Tokens.of(text, pieces)
    assert passage.ids_T.tolist() == alone.ids_T.tolist()
    assert passage.offsets_T2.tolist() == alone.offsets_T2.tolist()
    assert passage.flags_T.tolist() == alone.flags_T.tolist()


def test_half_of_a_surrogate_pair_is_refused(tokenizer: TextTokenizer, berts: TextTokenizer) -> None:
    for each in (tokenizer, berts):
        with pytest.raises(InputError, match=r"ud83d b' is not valid Unicode"):
            each.query("a \ud83d b [MASK]")


def test_only_the_same_berts_share_their_tokens(tmp_path: Path) -> None:
    one, same = (FastTokenizer(tokenizer_folder("bert", tmp_path / name)) for name in "ab")
    assert one.cuts_like(same)
    assert not one.cuts_like(FastTokenizer(tokenizer_folder("bert", tmp_path / "c", ["another text"])))
    assert not one.cuts_like(SimpleNamespace(backend_tokenizer=one.backend_tokenizer))  # of another library
    for kind in ("roberta", "sentencepiece"):
        folder = tokenizer_folder(kind, tmp_path / kind)
        assert not FastTokenizer(folder).cuts_like(FastTokenizer(folder))
