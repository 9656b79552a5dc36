"""Tiny random encoders, one for each kind of tokenizer of `tiny_tokenizers`, saved as Hugging Face folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import (
    BertConfig,
    BertModel,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from quoth.corpus.corpus import Corpus
from quoth.encoders.transformer import Transformer
from quoth.hub import HEADS_FILE, SETTINGS_FILE, EncoderSource
from quoth.npm.config import NPMConfig
from quoth.realm.config import REALMConfig
from quoth.realm.network import ReaderModel
from quoth.realm.towers import Tower, head_state
from quoth.records import Document
from tiny_tokenizers import BERT_NAMES, ROBERTA_NAMES, TEXT, byte_pairs, unigram, wordpiece

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 260,
}


def tiny_bert(folder: Path, text: Iterable[str] = TEXT, seed: int = 0) -> Path:
    """A BERT with uncased WordPiece; a character that `text` lacks becomes [UNK]."""
    tokenizer = wordpiece(text)
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), pad_token_id=0, **SHAPE)
    return _save(folder, BertModel, config, tokenizer, BERT_NAMES, seed)


def tiny_mpnet(
    folder: Path, text: Iterable[str] = TEXT, seed: int = 0, positions: int = SHAPE["max_position_embeddings"]
) -> Path:
    """An MPNet, which has BERT's WordPiece and RoBERTa's special tokens and positions."""
    tokenizer = wordpiece(text, ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    shape = {**SHAPE, "max_position_embeddings": positions + 2}
    config = MPNetConfig(vocab_size=tokenizer.get_vocab_size(), pad_token_id=1, layer_norm_eps=1e-5, **shape)
    return _save(folder, MPNetModel, config, tokenizer, {**ROBERTA_NAMES, "unk": "[UNK]"}, seed)


def tiny_npm(folder: Path, text: Iterable[str] = TEXT, base: str = "") -> Path:
    """A tiny BERT with the settings of quoth-mini's similarity; `base` is what its quoth.json names."""
    settings = NPMConfig(base=base, similarity_scale=20.0, normalize=True)
    (tiny_bert(folder, text) / "quoth.json").write_text(json.dumps(settings.to_dict()), encoding="utf-8")
    return folder


def tiny_realm(folder: Path, base: Callable[..., Path] = tiny_bert, seed: int = 0, **settings: Any) -> Path:
    """A REALM with an encoder for each part, all of other weights; `settings` are those of its quoth.json."""
    small = {"dimensions": 8, "span_hidden": 16, "query_tokens": 32, "passage_tokens": 64, "reader_tokens": 128}
    config = REALMConfig(**{**small, **settings})
    random, heads = torch.Generator().manual_seed(seed), {}
    for number, name in enumerate(("passages", "queries", "reader")):
        if name == "queries" and not config.separate_towers:
            continue
        encoder = Transformer.load(EncoderSource(str(base(folder / name, seed=10 * seed + number)))).model
        part = ReaderModel(encoder, config) if name == "reader" else Tower(encoder, config)
        for key, weight in head_state(part).items():
            noise = torch.randn(weight.shape, generator=random)
            heads[f"{name}.{key}"] = 0.3 * noise + float("norm.weight" in key)
    save_file(heads, folder / HEADS_FILE)
    (folder / SETTINGS_FILE).write_text(json.dumps(config.to_dict()), encoding="utf-8")
    return folder


def tiny_roberta(folder: Path, text: Iterable[str] = TEXT, seed: int = 0) -> Path:
    """A RoBERTa with cased byte-level BPE."""
    tokenizer = byte_pairs(text)
    return _save(folder, RobertaModel, _roberta_config(RobertaConfig, tokenizer), tokenizer, ROBERTA_NAMES, seed)


def tiny_sentencepiece(folder: Path, text: Iterable[str] = TEXT, seed: int = 0) -> Path:
    """An XLM-RoBERTa with a Unigram tokenizer."""
    tokenizer = unigram(text)
    return _save(folder, XLMRobertaModel, _roberta_config(XLMRobertaConfig, tokenizer), tokenizer, ROBERTA_NAMES, seed)


TOKENIZERS = {"bert": tiny_bert, "roberta": tiny_roberta, "sentencepiece": tiny_sentencepiece}
"""What makes an encoder, by the kind of its tokenizer."""


def tiny_corpus(folder: Path, texts: Iterable[str] = TEXT) -> Corpus:
    """A corpus of the texts: documents d0, d1, … with titles T0, T1, …"""
    corpus = Corpus.create(folder)
    corpus.add(Document(f"d{number}", f"T{number}", text) for number, text in enumerate(texts))
    return corpus


def _roberta_config(kind: Any, tokenizer: Tokenizer) -> Any:
    shape = {**SHAPE, "max_position_embeddings": SHAPE["max_position_embeddings"] + 2}
    return kind(
        vocab_size=tokenizer.get_vocab_size(),
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        type_vocab_size=1,
        **shape,
    )


def random_model(kind: Any, config: Any, seed: int, **options: Any) -> Any:
    """A model of that class whose weights are drawn anew, the same for the same seed."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    model = kind(config, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.2)
    torch.set_rng_state(state)
    return model


def _save(folder: Path, kind: Any, config: Any, tokenizer: Tokenizer, names: dict[str, str], seed: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    random_model(kind, config, seed, add_pooling_layer=False).save_pretrained(folder)
    tokens = {f"{name}_token": token for name, token in names.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens).save_pretrained(folder)
    return folder
