"""Phrases are quoted to the letter by models with tokenizers of every kind."""

import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tokenization import PIECES
from transformers import AutoTokenizer

from quoth import NPM
from quoth.corpus.corpus import Corpus
from quoth.records import Document
from quoth.text.tokenizer import FastTokenizer
from tiny import TEXT, TOKENIZERS, tiny_bert
from tiny_tokenizers import tokenizer_folder


@pytest.fixture(scope="session", params=TOKENIZERS)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TOKENIZERS[request.param](tmp_path_factory.mktemp(request.param) / request.param)


def test_the_tokens_are_those_of_transformers(folder: Path, tmp_path: Path) -> None:
    """Of a model's folder, and of one that `tokenizer_folder` makes without transformers."""
    hf = AutoTokenizer.from_pretrained(folder)
    for ours in (FastTokenizer(folder), FastTokenizer(tokenizer_folder(folder.name, tmp_path))):
        for special in ("mask_token", "mask_token_id", "pad_token", "pad_token_id", "unk_token_id"):
            assert getattr(ours, special) == getattr(hf, special)
        for text in ("".join(PIECES), *PIECES, *TEXT):
            assert ours(text)["input_ids"] == hf(text)["input_ids"]
            theirs = hf(text, return_offsets_mapping=True, add_special_tokens=False)
            assert ours(text, add_special_tokens=False) == {
                name: theirs[name] for name in ("input_ids", "offset_mapping")
            }
    assert not ours.cuts_like(hf)


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
