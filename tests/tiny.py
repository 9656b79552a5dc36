"""Tiny random encoders with real tokenizers, saved as Hugging Face folders.

One for each kind of tokenizer: WordPiece (uncased), byte-level BPE, Unigram as SentencePiece makes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
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

TEXT = (
    "Quoth the raven, nevermore. The raven sat upon the bust of Pallas, just above the chamber door.",
    "Paris is the capital of France. The Seine flows through Paris, and the Eiffel Tower stands beside it.",
    "Berlin is the capital of Germany; the Spree flows through Berlin. Its first tower was built in 1969.",
    "Athens is the capital of Greece. Nikos Kazantzakis (Νίκος Καζαντζάκης) was born in Heraklion in 1883.",
    "Seoul (서울) is the capital of Korea, Beijing (北京) of China, Cairo (القاهرة) of Egypt, Delhi (दिल्ली) of India.",
    "The café in München serves naïve poets; the river runs east. What is the capital? It was great, it was terrible.",
)
VOCABULARY = 400
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 260,
}


def tiny_bert(folder: Path, text: Iterable[str] = TEXT, seed: int = 0) -> Path:
    """A BERT with uncased WordPiece; a character that `text` lacks becomes [UNK]."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = _wordpiece(text, special)
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), pad_token_id=0, **SHAPE)
    return _save(folder, BertModel, config, tokenizer, names, seed)


def tiny_mpnet(
    folder: Path, text: Iterable[str] = TEXT, seed: int = 0, positions: int = SHAPE["max_position_embeddings"]
) -> Path:
    """An MPNet, which has BERT's WordPiece and RoBERTa's special tokens and positions."""
    tokenizer = _wordpiece(text, ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    shape = {**SHAPE, "max_position_embeddings": positions + 2}
    config = MPNetConfig(vocab_size=tokenizer.get_vocab_size(), pad_token_id=1, layer_norm_eps=1e-5, **shape)
    return _save(folder, MPNetModel, config, tokenizer, {**_ROBERTA_NAMES, "unk": "[UNK]"}, seed)


def _wordpiece(text: Iterable[str], special: list[str]) -> Tokenizer:
    """An uncased WordPiece tokenizer whose vocabulary begins with the special tokens."""
    begin, end = ("<s>", "</s>") if "<s>" in special else ("[CLS]", "[SEP]")
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for line in text for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line)))
    characters = sorted({character for word in words for character in word})
    frequent = sorted(words, key=lambda word: (-words[word], word))
    pieces = [*special, *characters, *(f"##{character}" for character in characters), *frequent]
    vocabulary = {piece: i for i, piece in enumerate(list(dict.fromkeys(pieces))[:VOCABULARY])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(each, special.index(each)) for each in (begin, end)]
    )
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


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
    """A RoBERTa with cased byte-level BPE: every text has tokens, some of them parts of a character."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        text,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _save(folder, RobertaModel, _roberta_config(RobertaConfig, tokenizer), tokenizer, _ROBERTA_NAMES, seed)


def tiny_sentencepiece(folder: Path, text: Iterable[str] = TEXT, seed: int = 0) -> Path:
    """An XLM-RoBERTa with a Unigram tokenizer in SentencePiece's manner: "▁" for a space, NFKC, unknown tokens."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.train_from_iterator(
        text,
        trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    tokenizer.model = _in_fixed_order(tokenizer, special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    config = _roberta_config(XLMRobertaConfig, tokenizer)
    return _save(folder, XLMRobertaModel, config, tokenizer, _ROBERTA_NAMES, seed)


TOKENIZERS = {"bert": tiny_bert, "roberta": tiny_roberta, "sentencepiece": tiny_sentencepiece}
"""What makes an encoder, by the kind of its tokenizer."""


def tiny_corpus(folder: Path, texts: Iterable[str] = TEXT) -> Corpus:
    """A corpus of the texts: documents d0, d1, … with titles T0, T1, …"""
    corpus = Corpus.create(folder)
    corpus.add(Document(f"d{number}", f"T{number}", text) for number, text in enumerate(texts))
    return corpus


def _in_fixed_order(tokenizer: Tokenizer, special: list[str]) -> models.Unigram:
    """The trained Unigram model with its pieces in one order and scores to two places: training is not repeatable."""
    trained = json.loads(tokenizer.to_str())["model"]["vocab"]
    pieces = [(piece, round(score, 2)) for piece, score in trained if piece not in special]
    pieces.sort(key=lambda pair: (-pair[1], pair[0]))
    return models.Unigram([*((token, 0.0) for token in special), *pieces], unk_id=special.index("<unk>"))


_ROBERTA_NAMES = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"}
_ROBERTA_NAMES["mask"] = "<mask>"


def _roberta_config(kind: Any, tokenizer: Tokenizer) -> Any:
    tokenizer.add_special_tokens(["<mask>"])
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
