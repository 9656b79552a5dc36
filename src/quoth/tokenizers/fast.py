"""A tokenizer from its `tokenizer.json` or a BERT's `vocab.txt`, without importing transformers.

Knows: the few methods of a Hugging Face fast tokenizer that this project uses. Does not know: anything about models.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from quoth.storage import read_json

BERT_TOKENS = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}
"""BERT's special tokens, as `tokenizer_config.json` names them."""


class FastTokenizer:
    """Replaces `transformers.AutoTokenizer.from_pretrained(folder)` where only ids and offsets are needed."""

    is_fast = True

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.backend_tokenizer.no_truncation()
        self.backend_tokenizer.no_padding()
        names = _special_tokens(folder)
        self.mask_token, self.pad_token, self.unk_token = (
            names.get(f"{kind}_token") for kind in ("mask", "pad", "unk")
        )
        self.mask_token_id, self.pad_token_id, self.unk_token_id = (
            None if token is None else self.backend_tokenizer.token_to_id(token)
            for token in (self.mask_token, self.pad_token, self.unk_token)
        )

    @classmethod
    def read(cls, folder: Path) -> FastTokenizer | None:
        """The folder's tokenizer, or None if it has no `tokenizer.json`."""
        return cls(folder) if (folder / "tokenizer.json").is_file() else None

    def get_vocab(self) -> dict[str, int]:
        return self.backend_tokenizer.get_vocab(with_added_tokens=True)

    def __call__(self, text: str | Sequence[str], *, add_special_tokens: bool = True, **_: Any) -> dict[str, list[Any]]:
        """`input_ids` and `offset_mapping` of a text, or a list of them for several texts."""
        if isinstance(text, str):
            encoding = self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
            return {"input_ids": encoding.ids, "offset_mapping": encoding.offsets}
        encodings: list[Encoding] = self.backend_tokenizer.encode_batch(
            list(text), add_special_tokens=add_special_tokens
        )
        return {
            "input_ids": [encoding.ids for encoding in encodings],
            "offset_mapping": [encoding.offsets for encoding in encodings],
        }


def _special_tokens(folder: Path) -> dict[str, str]:
    """The special tokens by name, from `tokenizer_config.json` or else `special_tokens_map.json`."""
    special: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            values = read_json(folder / name)
            for key, value in values.items():
                if key.endswith("_token"):
                    content = value["content"] if isinstance(value, dict) else value
                    if isinstance(content, str):
                        special[key] = content
    return special


def wordpiece(vocabulary: Path, *, lowercase: bool) -> Tokenizer:
    """BERT's tokenizer for the pieces listed in a `vocab.txt`, one per line."""
    pieces = models.WordPiece.read_file(str(vocabulary))
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.add_special_tokens([token for token in BERT_TOKENS.values() if token in pieces])
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", pieces["[SEP]"]), ("[CLS]", pieces["[CLS]"]))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
