"""A masked language model as it is: NPM's parametric twin, and a baseline.

Knows: which tokens may start and end a phrase (the rules of NPM's phrases), and how several masks become one filling.
Does not know: passages, tasks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from heapq import nlargest
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.arrays import Doubles
from quoth.corpus.corpus import Corpus
from quoth.encoders.encoder import longest_input
from quoth.encoders.transformer import load_kind, pad, placed
from quoth.errors import TextCutWarning
from quoth.hub import EncoderSource
from quoth.records import Prediction
from quoth.text.boundaries import MAY_END, MAY_START, boundary_flags, trim
from quoth.text.tokenizer import TextTokenizer, around_mask, batches_by_length

LOGITS_PER_BATCH = 2**27
"""A batch's logits, of all tokens and the whole vocabulary: half a gigabyte."""
MAX_TOKENS = 512
"""Of a model that names no maximum."""
PART = "\ufffd"
"""What a tokenizer of bytes decodes a part of a character to."""


class MaskedModel:
    """A masked language model, and the corpora whose passages it may be shown."""

    def __init__(self, model: Any, tokenizer: Any, corpora: Sequence[Corpus] = ()) -> None:
        self.model, self.tokenizer, self.corpora = model.eval(), tokenizer, tuple(corpora)
        limit = longest(model, tokenizer)
        self._tokenizer = cache(lambda masks: TextTokenizer(tokenizer, num_masks=masks, max_tokens=limit))
        self._words = WholeWords(tokenizer, int(model.config.vocab_size))

    @classmethod
    def from_pretrained(
        cls, name: str, corpora: Sequence[Corpus] = (), device: str | None = None, dtype: str | None = None
    ) -> MaskedModel:
        """A model from a folder or hub id; it searches no corpus itself. Raises ModelNotFoundError, InputError on an
        unknown device or dtype."""
        remedy = "name a folder or hub id of a masked LM, such as FacebookAI/roberta-base"
        return cls(*load_lm(name, lambda *_: "AutoModelForMaskedLM", remedy, device, dtype), corpora)

    def word_scores(self, texts: Sequence[str], words: Sequence[str], options: Mapping[str, Any]) -> Doubles:
        """The log-probability of each word in the blank of each text: [B, W].

        A word of m tokens is read at m masks: Σ_i log p(w_i | text with m masks). It is −inf for a word that the
        tokenizer does not know, or with more tokens than the option `masks`.
        """
        ids = [self._tokenizer(1).phrase(word).ids_T.tolist() for word in words]
        most = options.get("masks") or max(map(len, ids))
        scores_BW = np.full((len(texts), len(words)), -np.inf)
        for count in sorted({len(tokens) for tokens in ids if 0 < len(tokens) <= most}):
            log_p_BMV = self._at_masks(texts, count)
            for number, tokens in enumerate(ids):
                if len(tokens) == count and self.tokenizer.unk_token_id not in tokens:
                    scores_BW[:, number] = log_p_BMV[:, np.arange(count), tokens].sum(1)
        return scores_BW

    def fill(
        self, texts: Sequence[str], *, exclude: object = (), top_k: int = 5, masks: int = 1
    ) -> list[list[Prediction]]:
        """The best fillings of each blank with 1 to `masks` tokens; it searches no passages, so `exclude` hides none.

        All masks are predicted at once, each by itself, and fillings of different lengths are compared by the mean
        log-probability of their tokens. They start and end as NPM's phrases do: with no part of a word, and no
        punctuation. Source: Jiang et al. 2020 (X-FACTR), independent predictions.
        """
        found = [list[tuple[float, tuple[int, ...]]]() for _ in texts]
        before = [self._words.before(around_mask(text, self.tokenizer.mask_token)[0]) for text in texts]
        for count in range(1, masks + 1):
            log_p_BMV = self._at_masks(texts, count)
            log_p_BMV[..., self.tokenizer.all_special_ids] = -np.inf
            for fillings, log_p_MV, after in zip(found, log_p_BMV, before, strict=True):
                may_start_V, may_end_V = self._words.bounds(after, count == 1)
                log_p_MV[0, ~may_start_V] = log_p_MV[-1, ~may_end_V] = -np.inf
                best = best_sequences(log_p_MV, top_k)
                fillings += [(total / count, tokens) for total, tokens in best if total > -np.inf]
        return [self._said(sorted(f, reverse=True), top_k, after) for f, after in zip(found, before, strict=True)]

    def num_tokens(self, phrase: str) -> int:
        """The number of the model's tokens in a phrase."""
        return len(self._tokenizer(1).phrase(phrase).ids_T)

    def _said(self, fillings: Sequence[tuple[float, tuple[int, ...]]], top_k: int, before: str) -> list[Prediction]:
        """The first `top_k` fillings with different texts."""
        said: dict[str, Prediction] = {}
        for mean, tokens in fillings:
            text = self._words.text(before, tokens)
            said.setdefault(text, Prediction(text, mean, math.exp(mean * len(tokens)), ()))
        return [said[text] for text in filter(None, said)][:top_k]

    @torch.inference_mode()
    def _at_masks(self, texts: Sequence[str], count: int) -> Doubles:
        """log p of each token at each of `count` masks in the blank: [B, M, V]."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TextCutWarning)  # as for NPM: what is around the blank counts
            queries: list[Any] = [self._tokenizer(count).query(text) for text in texts]
        found: list[Doubles] = [np.empty(0)] * len(texts)
        limit = LOGITS_PER_BATCH // int(self.model.config.vocab_size)
        for members in batches_by_length([len(ids) for ids, _ in queries], limit):
            ids_BT, mask_BT = pad([queries[member][0] for member in members], int(self.tokenizer.pad_token_id or 0))
            device = self.model.device
            at_BM = torch.from_numpy(np.stack([queries[member][1] for member in members])).to(device)
            with _only_at(self.model, at_BM):
                logits_BMV = self.model(input_ids=ids_BT.to(device), attention_mask=mask_BT.to(device)).logits
            for logits_MV, member in zip(logits_BMV, members, strict=True):
                found[member] = logits_MV.float().log_softmax(-1).cpu().double().numpy()
        return np.stack(found)


@contextmanager
def _only_at(model: Any, at_BM: Tensor) -> Iterator[None]:
    """Lets a masked LM compute the logits of these places alone, as [B, M, V]: the vocabulary's layer costs more than
    all others together."""

    def picked(_: Any, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (states[0].take_along_dim(at_BM[..., None], dim=1),)

    hook = model.get_output_embeddings().register_forward_pre_hook(picked)
    try:
        yield
    finally:
        hook.remove()


def best_sequences(log_p_MV: Doubles, k: int) -> list[tuple[float, tuple[int, ...]]]:
    """The k likeliest sequences of a token per mask, best first, and their log-probabilities: masks are independent, so
    each beginning of one of the best is among the best."""
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for log_p_V in log_p_MV:
        tokens = np.argsort(-log_p_V, kind="stable")[:k].tolist()
        longer = ((total + float(log_p_V[token]), (*some, token)) for total, some in best for token in tokens)
        best = nlargest(k, longer)
    return best


def load_lm(name: str, choose: Any, remedy: str, device: str | None, dtype: str | None) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder or hub id; `choose` names the class of transformers."""
    model, tokenizer = load_kind(EncoderSource(name), choose, remedy)
    return placed(model, device, dtype or "fp32"), tokenizer


def longest(model: Any, tokenizer: Any) -> int:
    """The most tokens that a model takes."""
    table = longest_input(model.config) if hasattr(model.config, "max_position_embeddings") else math.inf
    most = min(table, tokenizer.model_max_length)
    return int(most) if most < 10**9 else MAX_TOKENS


class WholeWords:
    """The boundaries of tokens in a blank."""

    def __init__(self, tokenizer: Any, vocab_size: int) -> None:
        self._tokenizer, self._size = tokenizer, vocab_size
        self._spaced = self._ids("(a") != self._ids("( a")
        self.bounds = lru_cache(self._bounds)

    def before(self, left: str) -> str:
        """A word in place of the text before a blank, or a bracket if the first token of a word is one without white
        space there."""
        return "(" if self._spaced and left == left.rstrip() else "a"

    def text(self, before: str, tokens: Sequence[int]) -> str:
        """The text of a blank's tokens; "" if they cut a character."""
        text = self._after(before, tokens).strip()
        return "" if PART in text else text

    def _bounds(self, before: str, alone: bool) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which tokens may start a phrase, and which may end one: [V] each. If they are `alone`, no token is a part of
        a character."""
        flags_V = np.zeros(self._size, np.uint8)
        for token in range(min(self._size, len(self._tokenizer))):
            text = before + self._after(before, [token])
            if not (alone and PART in text):
                ranges_T2 = np.array([(0, len(before)), trim(text, len(before), len(text))])
                flags_V[token] = boundary_flags(text, ranges_T2)[1]
        flags_V[self._tokenizer.all_special_ids] = 0
        return (flags_V & MAY_START) > 0, (flags_V & MAY_END) > 0

    def _after(self, before: str, tokens: Sequence[int]) -> str:
        ids = self._ids(before)
        return str(self._tokenizer.decode([*ids, *tokens]))[len(self._tokenizer.decode(ids)) :]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
