"""Tiny tokenizers, trained on a few lines: WordPiece (uncased), byte-level BPE, Unigram as SentencePiece makes it.

They need neither torch nor transformers. `tiny` makes encoders that have them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = (
    "Quoth the raven, nevermore. The raven sat upon the bust of Pallas, just above the chamber door.",
    "Paris is the capital of France. The Seine flows through Paris, and the Eiffel Tower stands beside it.",
    "Berlin is the capital of Germany; the Spree flows through Berlin. Its first tower was built in 1969.",
    "Athens is the capital of Greece. Nikos Kazantzakis (Νίκος Καζαντζάκης) was born in Heraklion in 1883.",
    "Seoul (서울) is the capital of Korea, Beijing (北京) of China, Cairo (القاهرة) of Egypt, Delhi (दिल्ली) of India.",
    "The café in München serves naïve poets; the river runs east. What is the capital? It was great, it was terrible.",
)
VOCABULARY = 400
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BERT_NAMES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA_NAMES = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"}
ROBERTA_NAMES["mask"] = "<mask>"


def wordpiece(text: Iterable[str] = TEXT, special: list[str] = BERT_SPECIAL) -> Tokenizer:
    """Uncased, its vocabulary begins with the special tokens; a character that `text` lacks becomes [UNK]."""
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


def byte_pairs(text: Iterable[str] = TEXT) -> Tokenizer:
    """Cased byte-level BPE: every text has tokens, some of them parts of a character."""
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
    tokenizer.add_special_tokens(["<mask>"])
    return tokenizer


def unigram(text: Iterable[str] = TEXT) -> Tokenizer:
    """In SentencePiece's manner: "▁" for a space, NFKC, unknown tokens."""
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
    tokenizer.add_special_tokens(["<mask>"])
    return tokenizer


def _in_fixed_order(tokenizer: Tokenizer, special: list[str]) -> models.Unigram:
    """The trained Unigram model with its pieces in one order and scores to two places: training is not repeatable."""
    trained = json.loads(tokenizer.to_str())["model"]["vocab"]
    pieces = [(piece, round(score, 2)) for piece, score in trained if piece not in special]
    pieces.sort(key=lambda pair: (-pair[1], pair[0]))
    return models.Unigram([*((token, 0.0) for token in special), *pieces], unk_id=special.index("<unk>"))


KINDS: dict[str, tuple[Callable[..., Tokenizer], dict[str, str]]] = {
    "bert": (wordpiece, BERT_NAMES),
    "roberta": (byte_pairs, ROBERTA_NAMES),
    "sentencepiece": (unigram, ROBERTA_NAMES),
}
"""What makes a tokenizer, and the names of its special tokens."""


def tokenizer_folder(kind: str, folder: Path, text: Iterable[str] = TEXT) -> Path:
    """A folder with a tokenizer alone, as a model's has it."""
    make, names = KINDS[kind]
    tokenizer = make(text)
    tokenizer.add_special_tokens(list(dict.fromkeys(names.values())))
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {f"{name}_token": token for name, token in names.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder
