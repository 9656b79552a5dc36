"""The reader: span scores against two loops, legal spans, characters of passages in every script, masked words."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from quoth.encoders.encoder import pair_tokenizer
from quoth.encoders.transformer import Transformer, pair_batch
from quoth.errors import InputError
from quoth.hub import EncoderSource, locate, shipped_settings
from quoth.reader.network import SpanHead
from quoth.reader.spans import Reading, legal_spans
from quoth.realm.config import REALMConfig
from quoth.realm.network import MLMHead, ReaderModel, readings
from quoth.realm.own_reader import OwnReader
from quoth.text.boundaries import MAY_END, MAY_START, words
from quoth.text.tokenizer import Pair, PairTokenizer
from tiny import TEXT, TOKENIZERS, tiny_realm

TRICKY = "Le café naïve, œuvre de Zoë\u0308 (Νίκος)! 北京 🙂👍🏽 1.5 the e\u0301te\u0301 in München; raven's door"
TITLE = "Pâté, 東京 🙂"
WHOLE = re.compile(r"[^\W\d_\u3000-\u9fff]{2}")
"""Words that no tokenizer joins with others: no digits, nothing Chinese."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> OwnReader:
    source = locate(str(tiny_realm(tmp_path_factory.mktemp("realm") / "tiny")), REALMConfig)
    return load(source.part("reader"), source.config)


def load(source: EncoderSource, config: REALMConfig) -> OwnReader:
    transformer = Transformer.load(source)
    torch.manual_seed(0)
    model = ReaderModel(transformer.model, config)
    return OwnReader(model, pair_tokenizer(transformer.tokenizer, transformer.config, config.token_types))


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request: Any, tmp_path_factory: pytest.TempPathFactory) -> PairTokenizer:
    folder = TOKENIZERS[request.param](tmp_path_factory.mktemp("tokenizer") / request.param)
    return PairTokenizer(Transformer.load(EncoderSource(str(folder))).tokenizer, types=False)


def head(hidden: int, width: int, size: int = 5) -> SpanHead:
    torch.manual_seed(width)
    found = SpanHead(hidden, width, size).double()
    for parameter in found.parameters():
        nn.init.normal_(parameter)
    return found


@pytest.mark.parametrize("width", [1, 3, 9])
def test_span_scores_equal_two_loops(width: int) -> None:
    span, states_BTH = head(4, width), torch.randn(2, 6, 4, dtype=torch.float64)
    found = span(states_BTH)
    assert found.shape == (2, 6, width)
    start_H5, end_H5 = span.ends.weight[:5], span.ends.weight[5:]
    for b, i, w in product(range(2), range(6), range(width)):
        if i + w >= 6:
            assert found[b, i, w] == -torch.inf
            continue
        both = start_H5 @ states_BTH[b, i] + span.ends.bias[:5] + end_H5 @ states_BTH[b, i + w] + span.ends.bias[5:]
        shaped = both.clamp(min=0)
        shaped = (shaped - shaped.mean()) / (shaped.var(correction=0) + 1e-3).sqrt()
        shaped = shaped * span.norm.weight + span.norm.bias
        expected = shaped @ span.score.weight[0] + span.score.bias[0]
        torch.testing.assert_close(found[b, i, w], expected)


def test_a_span_score_by_hand() -> None:
    span = head(1, 2, size=2)
    with torch.no_grad():
        span.ends.weight.copy_(torch.tensor([[1.0], [0.0], [0.0], [1.0]]))
        span.score.weight.copy_(torch.tensor([[1.0, 0.0]]))
        for parameter in (span.ends.bias, span.norm.bias, span.score.bias):
            parameter.zero_()
        span.norm.weight.fill_(1.0)
    (found,) = span(torch.tensor([[[300.0], [100.0], [-500.0]]], dtype=torch.float64)).tolist()
    for scores, expected in zip(found, [[0.0, 1.0], [0.0, 1.0], [0.0, -torch.inf]], strict=True):
        assert scores == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_the_masked_lm_head_is_berts(activation: str) -> None:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLMPredictionHead

    config = BertConfig(vocab_size=11, hidden_size=6, hidden_act=activation, layer_norm_eps=1e-5)
    torch.manual_seed(0)
    theirs, words = BertLMPredictionHead(config), nn.Embedding(11, 6)
    theirs.decoder.weight, theirs.decoder.bias = words.weight, theirs.bias
    mine = MLMHead(words, activation, 1e-5)
    nn.init.normal_(theirs.bias)
    state = theirs.state_dict()
    names = {"transform.weight": "transform.dense.weight", "transform.bias": "transform.dense.bias"}
    names |= {f"norm.{kind}": f"transform.LayerNorm.{kind}" for kind in ("weight", "bias")} | {"bias": "bias"}
    mine.load_state_dict({name: state[other] for name, other in names.items()})
    states_MH = torch.randn(5, 6)
    torch.testing.assert_close(mine(states_MH), theirs(states_MH))
    assert "_words" not in dict(mine.named_parameters())


def test_an_encoder_without_word_embeddings_is_refused() -> None:
    encoder = nn.Linear(3, 3)
    encoder.config = SimpleNamespace(hidden_size=3)  # type: ignore[assignment]
    with pytest.raises(InputError, match="Linear has no word embeddings; a REALM requires a BERT or RoBERTa"):
        ReaderModel(encoder, REALMConfig())


def test_legal_spans_equal_brute_force() -> None:
    rng = np.random.default_rng(0)
    for length, width in product((0, 1, 4, 9), (1, 3, 12)):
        flags_T = rng.integers(0, 8, length).astype(np.uint8)
        reading = Reading(Pair(np.zeros(0, np.int64), 0), 0, np.zeros((length, 2), np.int64), flags_T)
        found = legal_spans(reading, width)
        assert found.shape == (length, width)
        for i, w in product(range(length), range(width)):
            fits = i + w < length and bool(flags_T[i] & MAY_START) and bool(flags_T[i + w] & MAY_END)
            assert found[i, w] == fits


def quoted(reading: Reading, text: str, width: int) -> list[str]:
    """The legal spans of a passage, as they stand in it."""
    first, beyond = np.nonzero(legal_spans(reading, width))
    ranges = zip(reading.offsets_T2[first, 0], reading.offsets_T2[first + beyond, 1], strict=True)
    return [text[start:end] for start, end in ranges]


@pytest.mark.parametrize("titles", [False, True])
def test_every_word_of_every_script_can_be_quoted(tokenizer: PairTokenizer, titles: bool) -> None:
    config = REALMConfig(reader_titles=titles, query_tokens=32, reader_tokens=256)
    question = tokenizer.pieces(["What?"])[0][0]
    for text in (TRICKY, *TEXT):
        (reading,) = readings(tokenizer, config, question, [text], [TITLE])
        found = quoted(reading, text, 40)
        assert {text[start:end] for start, end in words(text) if WHOLE.match(text[start:end])} <= set(found)
        assert all(each.strip() == each and each for each in found)
        ids = reading.pair.ids_T.tolist()
        assert ids[: len(question) + 2] == [tokenizer.cls_id, *question, tokenizer.sep_id]
        assert ids[-1] == tokenizer.sep_id
        assert reading.pair.second == len(question) + 2
        assert reading.body + len(reading.flags_T) == len(ids) - 1
        title = tokenizer.pieces([f"{TITLE}. {text}"])[0][0][: reading.body - reading.pair.second]
        assert ids[reading.pair.second : reading.body] == title
        assert bool(title) is titles


def test_offsets_are_those_of_the_passage_alone(tokenizer: PairTokenizer) -> None:
    plain, titled = (
        readings(tokenizer, REALMConfig(reader_titles=titles), [7], ["the raven, café"], ["Paris"])[0]
        for titles in (False, True)
    )
    expected = ["the", "raven", "café", "the raven", "raven, café", "the raven, café"]
    for reading in (plain, titled):
        assert sorted(set(quoted(reading, "the raven, café", 30))) == sorted(expected)


@pytest.mark.parametrize(("titles", "seen"), [(True, "Paris. the raven"), (False, "the raven")])
def test_the_reader_sees_the_title_or_as_in_the_paper_the_body_alone(
    tokenizer: PairTokenizer, titles: bool, seen: str
) -> None:
    settings = shipped_settings("quoth-realm-base")
    assert isinstance(settings, REALMConfig)
    assert settings.reader_titles  # the default of the class is the paper's
    (found,) = readings(tokenizer, replace(settings, reader_titles=titles), [7, 8], ["the raven"], ["Paris"])
    ((ids, _),) = tokenizer.pieces([seen])
    assert found.pair.ids_T.tolist()[found.pair.second : -1] == list(ids)
    assert not REALMConfig().reader_titles


@pytest.mark.parametrize("limit", [24, 31, 64])
def test_what_is_too_long_is_cut(tokenizer: PairTokenizer, limit: int) -> None:
    text = " ".join([TRICKY] * 3)
    config = REALMConfig(query_tokens=8, reader_tokens=limit, reader_titles=True)
    (whole,) = readings(tokenizer, REALMConfig(reader_tokens=512), [7, 8, 9], [text], [""])
    for title in ("", "Paris", " ".join(["the capital"] * 90)):
        (cut,) = readings(tokenizer, config, [7, 8, 9], [text], [title])
        kept = len(cut.flags_T)
        assert len(cut.pair.ids_T) == limit
        assert cut.body + kept == limit - 1
        assert cut.body - cut.pair.second <= limit // 2
        assert kept >= limit // 2 - 6
        assert cut.offsets_T2[-1, 1] <= len(text)
        if not title:
            assert cut.offsets_T2.tolist() == whole.offsets_T2[:kept].tolist()
        assert set(quoted(cut, text, 5)) <= set(quoted(whole, text, 12))


def test_a_question_may_fill_the_input_but_for_sixteen_tokens(tokenizer: PairTokenizer) -> None:
    config = REALMConfig(query_tokens=48, reader_tokens=64, reader_titles=True)
    (found,) = readings(tokenizer, config, [7] * 46, ["the raven"], ["Paris " * 99])
    assert len(found.pair.ids_T) == 64
    assert (found.body, len(found.flags_T), quoted(found, "the raven", 3)) == (48 + 32, 0, [])


def test_the_null_document_has_no_words(tokenizer: PairTokenizer) -> None:
    (found,) = readings(tokenizer, REALMConfig(), [7, 8], [""], [""])
    assert found.pair.ids_T.tolist() == [tokenizer.cls_id, 7, 8, tokenizer.sep_id, tokenizer.sep_id]
    assert quoted(found, "", 10) == []


def seen(reader: OwnReader, question: str) -> list[Reading]:
    ids = reader.tokenizer.pieces([question.replace("[MASK]", reader.tokenizer.mask_token)])[0][0]
    return readings(reader.tokenizer, reader.model.config, ids, [*TEXT, ""], ["Title"] * len(TEXT) + [""])


def direct(reader: OwnReader, reading: Reading) -> Tensor:
    """States of one input alone."""
    batch = pair_batch(reader.tokenizer, [reading.pair], torch.device("cpu"))
    with torch.no_grad():
        return reader.model.states(batch)


def test_spans_are_those_of_each_passage_alone(reader: OwnReader) -> None:
    read = seen(reader, "What flows through Paris?")
    together = reader.spans(read)
    assert len(together[-1].odds_C) == 0
    for reading, found in zip(read, together, strict=True):
        scores = reader.model.span(direct(reader, reading))[0].detach()
        legal = legal_spans(reading, 10)
        expected = {}
        for i, w in np.argwhere(legal).tolist():
            place = (int(reading.offsets_T2[i, 0]), int(reading.offsets_T2[i + w, 1]))
            expected[place] = float(scores[reading.body + i, w])
        places = list(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))
        assert places == list(expected)
        assert found.odds_C == pytest.approx(list(expected.values()), abs=1e-5)
    assert reader.spans([]) == []


def test_masked_words_are_those_of_each_passage_alone(reader: OwnReader) -> None:
    read = seen(reader, "the [MASK] flows")
    found = reader.masked(read)
    assert found.shape == (len(read), len(reader.model.mlm.bias))
    assert np.exp(found).sum(axis=1) == pytest.approx(np.ones(len(read)), abs=1e-5)
    for reading, log_p_V in zip(read, found, strict=True):
        at = reading.pair.ids_T.tolist().index(reader.tokenizer.mask_id)
        expected = reader.model.mlm(direct(reader, reading)[0, at]).log_softmax(-1).detach()
        np.testing.assert_allclose(log_p_V, expected.numpy(), atol=1e-5)


def test_a_mask_of_the_passage_is_not_the_blank(reader: OwnReader) -> None:
    ids = [*reader.tokenizer.pieces(["the"])[0][0], reader.tokenizer.mask_id]
    plain, masked = (
        readings(reader.tokenizer, reader.model.config, ids, [text], [""])[0] for text in ("the door", "the [MASK]")
    )
    assert (masked.pair.ids_T == reader.tokenizer.mask_id).sum() == 2
    at = plain.pair.ids_T.tolist().index(reader.tokenizer.mask_id)
    expected = reader.model.mlm(direct(reader, masked)[0, at]).log_softmax(-1).detach()
    np.testing.assert_allclose(reader.masked([plain, masked])[1], expected.numpy(), atol=1e-5)


def test_reading_for_answers_needs_no_gradients(reader: OwnReader, tmp_path: Path) -> None:
    assert any(parameter.requires_grad for parameter in reader.model.parameters())
    reader.spans(seen(reader, "Who?"))
    assert all(parameter.grad is None for parameter in reader.model.parameters())
