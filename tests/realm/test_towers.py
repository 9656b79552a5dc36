"""REALM's towers: pooling and heads by hand, the forms of inputs, padding, token types, what a fingerprint names."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from quoth.encoders.bert import BertEncoder, States
from quoth.encoders.transformer import Transformer, load_base, pair_batch
from quoth.errors import InputError
from quoth.hub import EncoderSource, locate
from quoth.realm.config import REALMConfig
from quoth.realm.passages import QUERY_CHARACTERS, PassageEncoder, embed, passage_inputs
from quoth.realm.towers import Tower
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import Pair, PairTokenizer, fill_in, masked_ids
from tiny import TEXT, tiny_bert, tiny_realm, tiny_roberta

PLAIN = REALMConfig(dimensions=0, layer_norm_eps=None)


class Table(nn.Module):
    """An encoder whose states are looked up: token t has state (t, t²)."""

    config = SimpleNamespace(hidden_size=2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> States:
        return States(torch.stack([input_ids, input_ids**2], dim=-1).double())


BATCH = {"input_ids": torch.tensor([[3, 1, 2], [4, 0, 99]]), "attention_mask": torch.tensor([[1, 1, 1], [1, 1, 0]])}


def tower(**settings: Any) -> Tower:
    return Tower(Table(), replace(PLAIN, **settings)).double()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_realm(tmp_path_factory.mktemp("realm") / "tiny")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> PassageEncoder:
    return PassageEncoder.load(locate(str(folder), REALMConfig))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> EncoderSource:
    return EncoderSource(str(tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")))


def pairs(bert: EncoderSource, types: bool = True, longest: int = 512) -> PairTokenizer:
    return PairTokenizer(Transformer.load(bert).tokenizer, types, longest)


def altered(folder: Path, other: Path, **settings: Any) -> PassageEncoder:
    """The same weights under other settings."""
    other.mkdir()
    for name in ("passages", "heads.safetensors"):
        (other / name).symlink_to(folder / name)
    values = json.loads((folder / "quoth.json").read_text())
    (other / "quoth.json").write_text(json.dumps(values | settings))
    return PassageEncoder.load(locate(str(other), REALMConfig))


# Towers


def test_shapes() -> None:
    assert tower().dimensions == 2
    assert tower(dimensions=5, pooler=True, layer_norm_eps=1.0)(BATCH).shape == (2, 5)


def test_pooling_by_hand() -> None:
    assert tower()(BATCH).tolist() == [[3, 9], [4, 16]]
    assert tower(pooling="mean")(BATCH).tolist() == [[2, 14 / 3], [2, 8]]


def test_the_heads_by_hand() -> None:
    normal = tower(normalize=True)(BATCH).tolist()
    assert normal[0] == pytest.approx([3 / math.sqrt(90), 9 / math.sqrt(90)])
    shaped = tower(layer_norm_eps=1e-3)(BATCH).tolist()
    assert shaped[0] == pytest.approx([-3 / math.sqrt(9.001), 3 / math.sqrt(9.001)])
    assert tower(layer_norm_eps=7.0)(BATCH)[0].tolist() == pytest.approx([-3 / 4, 3 / 4])
    projected = tower(dimensions=1)
    assert projected.projection is not None
    with torch.no_grad():
        projected.projection.weight.copy_(torch.tensor([[2.0, -1.0]]))
        projected.projection.bias.fill_(0.5)
    assert projected(BATCH).tolist() == [[-2.5], [-7.5]]
    pooled = tower(pooler=True)
    assert pooled.pooler is not None
    with torch.no_grad():
        pooled.pooler.weight.copy_(torch.tensor([[0.1, 0.0], [0.0, 0.2]]))
    assert pooled(BATCH)[0].tolist() == pytest.approx([math.tanh(0.3), math.tanh(1.8)])


def test_heads_come_one_after_another() -> None:
    found = tower(pooling="mean", pooler=True, dimensions=3, layer_norm_eps=0.1, normalize=True)
    assert found.pooler is not None
    assert found.projection is not None
    assert found.norm is not None
    states_BH = torch.tensor([[2, 14 / 3], [2, 8]], dtype=torch.float64)
    shaped = found.norm(found.projection(found.pooler(states_BH).tanh()))
    torch.testing.assert_close(found(BATCH), shaped / shaped.norm(dim=-1, keepdim=True))


def test_padding_does_not_change_a_vector(encoder: PassageEncoder, bert: EncoderSource) -> None:
    model = Transformer.load(bert).model
    inputs = passage_inputs(encoder.tokenizer, encoder.config, [*TEXT, "", "Paris"], ["T"] * len(TEXT) + ["", "Seine"])
    for each in (encoder.passage_tower, Tower(model, replace(PLAIN, pooling="mean"))):
        together = embed(each, encoder.tokenizer, inputs)
        assert together.shape == (len(inputs), each.dimensions)
        for pair, vector_D in zip(inputs, together, strict=True):
            np.testing.assert_allclose(embed(each, encoder.tokenizer, [pair])[0], vector_D, atol=1e-5)
    assert embed(encoder.passage_tower, encoder.tokenizer, []).shape == (0, 8)


# Inputs


def test_inputs_by_hand(bert: EncoderSource) -> None:
    tokenizer = pairs(bert)
    assert tokenizer.single([7, 8], 10).ids_T.tolist() == [2, 7, 8, 3]
    assert tokenizer.pair([7, 8], [9], 10).ids_T.tolist() == [2, 7, 8, 3, 9, 3]
    assert tokenizer.pair([], [], 10).ids_T.tolist() == [2, 3, 3]
    assert [tokenizer.single([7], 10).second, tokenizer.pair([7, 8], [9], 10).second] == [3, 4]
    batch = pair_batch(tokenizer, [tokenizer.pair([7, 8], [9], 10), tokenizer.single([7], 10)], torch.device("cpu"))
    assert batch["input_ids"].tolist() == [[2, 7, 8, 3, 9, 3], [2, 7, 3, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0] * 6]
    assert set(batch) == {"input_ids", "attention_mask", "token_type_ids"}
    without = pair_batch(pairs(bert, types=False), [tokenizer.pair([7], [8], 10)], torch.device("cpu"))
    assert set(without) == {"input_ids", "attention_mask"}
    assert tokenizer.pieces([]) == []


@pytest.mark.parametrize("longest", [9, 512])
def test_what_is_too_long_is_cut(bert: EncoderSource, longest: int) -> None:
    tokenizer = pairs(bert, longest=longest)
    limit = 9 if longest == 512 else 99
    assert tokenizer.single(range(20, 40), limit).ids_T.tolist() == [2, *range(20, 27), 3]
    assert tokenizer.pair([7, 8], range(20, 40), limit).ids_T.tolist() == [2, 7, 8, 3, *range(20, 24), 3]
    cut = tokenizer.pair(range(20, 40), range(40, 60), limit)
    assert cut.ids_T.tolist() == [2, *range(20, 25), 3, 40, 3]
    assert cut.second == 7


def test_passages_as_inputs(encoder: PassageEncoder) -> None:
    tokenizer, config = encoder.tokenizer, encoder.config
    (title, _), (text, _) = tokenizer.pieces(["Paris", TEXT[1]])
    both, bare = passage_inputs(tokenizer, config, [TEXT[1]] * 2, ["Paris", ""])
    assert both.ids_T.tolist() == [2, *title, 3, *text, 3]
    assert bare.ids_T.tolist() == [2, 3, *text, 3]
    (long,) = passage_inputs(tokenizer, config, [TEXT[1] * 9], ["Paris " * 99])
    assert (long.second, len(long.ids_T)) == (32 + 2, 64)


def test_inputs_are_no_longer_than_the_encoder_takes(folder: Path, tmp_path: Path) -> None:
    encoder = altered(folder, tmp_path / "long", passage_tokens=1000, reader_tokens=1000, query_tokens=900)
    assert encoder.tokenizer.longest == 260
    (found,) = encoder.passages(["the river " * 500], ["Paris"])
    (cut,) = passage_inputs(encoder.tokenizer, encoder.config, ["the river " * 500], ["Paris"])
    assert len(cut.ids_T) == 260
    assert np.isfinite(found.vectors_TD).all()
    assert np.isfinite(encoder.queries(["the river " * 500])).all()


def test_a_tokenizer_must_know_masks_and_offsets(bert: EncoderSource) -> None:
    tokenizer = Transformer.load(bert).tokenizer
    tokenizer.mask_token_id = None
    with pytest.raises(InputError, match="has no mask token; use a masked language model's"):
        PairTokenizer(tokenizer, types=True)
    with pytest.raises(
        InputError, match=r"gives no character offsets; only fast tokenizers do \(a folder with tokenizer\.json\)"
    ):
        PairTokenizer(SimpleNamespace(is_fast=False), types=True)


def test_a_text_with_a_blank(bert: EncoderSource) -> None:
    tokenizer = pairs(bert)
    (left, _), (right, _) = tokenizer.pieces(["Paris is", "of France"])
    assert masked_ids(tokenizer, "Paris is [MASK] of France", 50) == [*left, 4, *right]
    assert masked_ids(tokenizer, "[MASK]", 50) == [4]
    assert fill_in(tokenizer, "Paris is [MASK] of France", "north") == "Paris is north of France"
    for text, message in (("Paris", "no .MASK."), ("[MASK] [MASK]", "2 masks")):
        with pytest.raises(InputError, match=message):
            masked_ids(tokenizer, text, 50)


@pytest.mark.parametrize(("before", "after"), [(0, 40), (40, 0), (40, 40), (3, 40), (40, 3), (10, 9)])
def test_of_a_long_text_what_surrounds_the_blank_is_kept(bert: EncoderSource, before: int, after: int) -> None:
    text = " ".join([*["river"] * before, "[MASK]", *["tower"] * after])
    (river,), (tower_id,) = (ids for ids, _ in pairs(bert).pieces(["river", "tower"]))
    found = masked_ids(pairs(bert), text, 20)
    at = found.index(4)
    assert found == [river] * at + [4] + [tower_id] * (len(found) - at - 1)
    assert len(found) == min(20, before + after + 1)
    assert at >= min(before, 9)
    assert len(found) - at - 1 >= min(after, 9)


# Token types


def test_token_types_are_those_of_transformers(bert: EncoderSource) -> None:
    light, (full, _) = Transformer.load(bert).model, load_base(bert)
    assert isinstance(light, BertEncoder)
    tokenizer = pairs(bert)
    inputs = [tokenizer.pair([7, 8, 9], [10, 11], 20), tokenizer.single([12, 13], 20)]
    with torch.no_grad():
        found, expected, without = (
            model(**pair_batch(PairTokenizer(tokenizer.hf, types), inputs, torch.device("cpu")))[0]
            for model, types in ((light, True), (full.eval(), True), (light, False))
        )
    mask_BT = pair_batch(tokenizer, inputs, torch.device("cpu"))["attention_mask"].bool()
    torch.testing.assert_close(found[mask_BT], expected[mask_BT], atol=1e-5, rtol=0)
    assert (found - without)[0].abs().max() > 0.1
    torch.testing.assert_close(found[1, :4], without[1, :4])


def test_token_types_are_used_only_where_they_are_set(folder: Path, encoder: PassageEncoder, tmp_path: Path) -> None:
    without = altered(folder, tmp_path / "without", token_types=False)
    assert (encoder.tokenizer.types, without.tokenizer.types) == (True, False)
    first, second = (each.passages(TEXT, ["Paris"] * len(TEXT))[0].vectors_TD for each in (encoder, without))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_allclose(encoder.queries(TEXT), without.queries(TEXT), atol=1e-5)


def test_an_encoder_with_one_token_type_is_given_none(tmp_path: Path) -> None:
    source = locate(str(tiny_realm(tmp_path / "roberta", tiny_roberta, token_types=True)), REALMConfig)
    encoder = PassageEncoder.load(source)
    assert not encoder.tokenizer.types
    (found,) = encoder.passages([TEXT[3]], ["Αθήνα"])
    assert np.isfinite(found.vectors_TD).all()
    assert encoder.queries(TEXT).shape == (len(TEXT), 8)


# The encoder as key tables see it


def test_one_key_a_passage_which_spans_its_text(encoder: PassageEncoder) -> None:
    texts = [*TEXT, ""]
    found = encoder.passages(texts, [""] * len(texts))
    expected = embed(encoder.passage_tower, encoder.tokenizer, inputs_of(encoder, texts))
    for each, text, vector_D in zip(found, texts, expected, strict=True):
        assert each.vectors_TD.shape == (1, 8)
        assert each.vectors_TD.dtype == np.float32
        np.testing.assert_array_equal(each.vectors_TD[0], vector_D)
        assert each.tokens.offsets_T2.tolist() == [[0, len(text)]]
        assert each.tokens.flags_T.tolist() == [MAY_START | MAY_END]
    assert encoder.passages([], []) == []


def inputs_of(encoder: PassageEncoder, texts: Sequence[str]) -> list[Pair]:
    return passage_inputs(encoder.tokenizer, encoder.config, texts, [""] * len(texts))


def test_queries(encoder: PassageEncoder) -> None:
    q_BD = encoder.queries([TEXT[0], TEXT[1]])
    np.testing.assert_allclose(encoder.words(TEXT[1]), q_BD[1:], atol=1e-5)
    ids = [pieces for pieces, _ in encoder.tokenizer.pieces(TEXT[:2])]
    np.testing.assert_allclose(encoder.vectors_of(ids), q_BD, atol=1e-5)
    np.testing.assert_allclose(encoder.vectors_of([ids[0] * 9]), encoder.vectors_of([(ids[0] * 9)[:30]]), atol=1e-5)
    assert encoder.vectors_of([]).shape == (0, 8)
    with pytest.raises(InputError, match="query ' ' has no words; give words to search for"):
        encoder.words(" ")


def test_parts_of_passages_stand_in_for_questions(encoder: PassageEncoder) -> None:
    text = TEXT[0] * 9
    found = encoder.queries_at(((each, 0, 3) for each in (text, TEXT[1], TEXT[2])), 2)
    parts = [text[len(text) // 3 :][:QUERY_CHARACTERS], TEXT[1][len(TEXT[1]) // 3 :]]
    np.testing.assert_allclose(found, encoder.queries(parts), atol=1e-5)
    assert encoder.queries_at([], 3).shape == (0, 8)


def test_each_tower_has_its_own_encoder_where_that_is_asked_for(tmp_path: Path) -> None:
    encoder = PassageEncoder.load(locate(str(tiny_realm(tmp_path / "two", separate_towers=True)), REALMConfig))
    inputs = [encoder.tokenizer.single([7, 8], 10)]
    first, second = (embed(each, encoder.tokenizer, inputs) for each in (encoder.passage_tower, encoder.query_tower))
    assert np.abs(first - second).max() > 1e-2
    np.testing.assert_array_equal(encoder.vectors_of([[7, 8]]), second)


def test_a_fingerprint_names_all_that_makes_a_passages_vector_and_nothing_else(
    folder: Path, encoder: PassageEncoder, tmp_path: Path
) -> None:
    same = [
        {},
        {"similarity_scale": 3.0},
        {"query_tokens": 16},
        {"reader_tokens": 200, "reader_titles": True},
        {"num_candidates": 3, "span_width": 4, "add_relevance": False},
    ]
    other = [{"pooling": "mean"}, {"layer_norm_eps": 1e-12}, {"normalize": True}]
    other += [{"token_types": False}, {"passage_tokens": 32}]
    marks = [
        altered(folder, tmp_path / str(number), **settings).fingerprint for number, settings in enumerate(same + other)
    ]
    assert set(marks[: len(same)]) == {encoder.fingerprint}
    assert len(set(marks)) == len(other) + 1
    two = PassageEncoder.load(locate(str(tiny_realm(tmp_path / "seed", seed=1)), REALMConfig))
    assert two.fingerprint not in marks


def test_half_precision_is_near_and_the_same_model(folder: Path, encoder: PassageEncoder) -> None:
    half = PassageEncoder.load(locate(str(folder), REALMConfig), dtype="bf16")
    np.testing.assert_allclose(half.queries(TEXT), encoder.queries(TEXT), atol=0.3)
    assert half.queries(TEXT).dtype == np.float32
    assert half.fingerprint == encoder.fingerprint
