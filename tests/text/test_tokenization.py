import re
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quoth import NPM
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import READ_OF_TITLE, FastTokenizer, PairTokenizer, TextTokenizer, TokenizedPassage, Tokens
from tiny import TEXT, TOKENIZERS, tiny_bert, tiny_roberta, tiny_sentencepiece

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


@pytest.fixture(scope="session", params=TOKENIZERS)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TOKENIZERS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> TextTokenizer:
    return make(folder)


@pytest.fixture(scope="session")
def berts(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return TextTokenizer(FastTokenizer(tiny_bert(tmp_path_factory.mktemp("berts"))), num_masks=2, max_tokens=64)


def make(folder: Path, num_masks: int = 2, max_tokens: int = 64) -> TextTokenizer:
    from transformers import AutoTokenizer

    return TextTokenizer(AutoTokenizer.from_pretrained(folder), num_masks=num_masks, max_tokens=max_tokens)


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
    assert not any(cuts_a_word(text, at) for at in starts + ends)
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


@pytest.mark.parametrize("build", TOKENIZERS.values(), ids=TOKENIZERS)
def test_equal_texts_are_one_answer_whatever_their_tokens(build: Any, tmp_path: Path) -> None:
    model = build(tmp_path / "m", [*TEXT, *["We saw Thessaloniki and Thessaloniki."] * 20])
    corpus = Corpus.create(tmp_path / "c.quoth")
    text = "Thessaloniki is great. We saw Thessaloniki (Thessaloniki) and 서울 (서울); 북 is not 서."
    corpus.add([Document("d", "", text)])
    npm = NPM.from_pretrained(str(model), corpus)
    ids = {tuple(each) for each in npm.encoder.tokenizer.hf(["Thessaloniki", " Thessaloniki"])["input_ids"]}
    assert len(ids) == 1 + ("roberta" in build.__name__)
    found = npm.fill("We saw [MASK]", passages=1, top_k=10000, distinct=False)
    texts = [each.text for each in found]
    assert len(texts) == len({text.casefold() for text in texts}) or npm.encoder.tokenizer.spells
    assert len(texts) == len(set(texts))
    for word in ("Thessaloniki", "서울", "북"):
        places = [(e.start, e.end) for e in next(each for each in found if each.text == word).evidence]
        assert sorted(places) == [match.span() for match in re.finditer(word, text)]


LETTERS = "Θ ε σ α λ ο ν ί κ η ς 반 포 대 교 a b c d e f g h i j k l m n o p q r s t u v w x y z"


def test_names_of_many_pieces_are_quoted_by_default(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("d", "", "They met at 반포대교, then in Θεσσαλονίκη and กรุงเทพมหานคร all the same.")])
    npm = NPM.from_pretrained(str(tiny_bert(tmp_path / "m", [LETTERS])), corpus)
    pieces = {name: npm.encoder.tokenizer.phrase(name).ids_T for name in ("Θεσσαλονίκη", "반포대교", "กรุงเทพมหานคร")}
    assert [len(ids) for ids in pieces.values()] == [11, 7, 1]
    assert pieces["กรุงเทพมหานคร"].tolist() == [npm.encoder.tokenizer.hf.unk_token_id]
    for query in ("they met in [MASK]", "𓂀 they met in [MASK]"):
        found = {each.text for each in npm.fill(query, passages=1, top_k=10000, distinct=False, ban_query=True)}
        assert {*pieces} <= found


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


def test_predictions_quote_the_document(folder: Path, strange: Corpus) -> None:
    npm = NPM.from_pretrained(str(folder), strange)
    predictions = npm.fill("Paris is [MASK].", passages=100, top_k=1000, max_phrase_tokens=4)
    assert len(predictions) > 30
    for prediction in predictions:
        best = prediction.evidence[0]
        said = strange.document(best.document_id).text[best.start : best.end]
        assert " ".join(said.split()) == prediction.text
        for each in prediction.evidence:
            text = strange.document(each.document_id).text
            assert text[each.context_start :].startswith(each.context)
            assert fold(text[each.start : each.end]) == fold(prediction.text) != ""


@pytest.fixture(scope="session")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Documents of random pieces, each with a word that the query finds."""
    rng = np.random.default_rng(5)
    corpus = Corpus.create(tmp_path_factory.mktemp("strange") / "c.quoth", splitter="words:8")
    texts = ["".join([*rng.choice(PIECES, 8), " Paris ", *rng.choice(PIECES, 8)]) for _ in range(25)]
    corpus.add([Document(f"d{i}", "Ti\u0301tle", text) for i, text in enumerate(texts)])
    return corpus


def fold(text: str) -> str:
    """Without case, kind of white space, and the invisible characters that a tokenizer drops."""
    seen = "".join(char for char in text if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf"))
    return " ".join(seen.split()).casefold()


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
    one, same = (FastTokenizer(tiny_bert(tmp_path / name)) for name in "ab")
    assert one.cuts_like(same)
    assert not one.cuts_like(FastTokenizer(tiny_bert(tmp_path / "c", ["another text"])))
    assert not one.cuts_like(make(tmp_path / "a").hf)
    for kind in (tiny_roberta, tiny_sentencepiece):
        folder = kind(tmp_path / kind.__name__)
        assert not FastTokenizer(folder).cuts_like(FastTokenizer(folder))
