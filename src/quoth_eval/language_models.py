"""Hugging Face's language models as baselines: how likely are words in a blank, and what follows a question?

Knows: causal and sequence-to-sequence language models, and how a text with a blank becomes their input. Does
not know: tasks, labels.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from quoth.arrays import Doubles
from quoth.corpus.corpus import Corpus
from quoth.encoders.transformer import PADDED_TOKENS_PER_BATCH, is_decoder, kinds_of, pad
from quoth.errors import InputError, ModelNotFoundError
from quoth.ner.words import frame_of
from quoth.npm.twin import LOGITS_PER_BATCH, load_lm, longest
from quoth.records import Prediction
from quoth.text.tokenizer import MASK, around_mask, batches_by_length
from quoth_eval.task import HITS

MAX_NEW_TOKENS = 32
SENTINELS = ("<extra_id_0>", "<extra_id_1>")
"""T5's blank, and what ends its filling (Raffel et al. 2020, §3.1.4)."""


Tokens = tuple[int, ...]


class Scored(NamedTuple):
    """Tokens whose likelihood is asked: of `words` after `prompt`, given the encoder's `source` (causal: empty)."""

    source: Tokens
    prompt: Tokens
    words: Tokens


class LanguageModel:
    """A causal or a sequence-to-sequence language model, and the corpora whose passages it may be shown."""

    def __init__(self, model: Any, tokenizer: Any, corpora: Sequence[Corpus] = ()) -> None:
        self.model, self.tokenizer, self.corpora = model.eval(), tokenizer, tuple(corpora)
        self._encodes = bool(model.config.is_encoder_decoder)
        self._limit = longest(model, tokenizer)
        self._before, self._after = frame_of(tokenizer)
        self._pad = int(tokenizer.pad_token_id or 0)
        self._breaks: dict[int, bool] = {}

    @classmethod
    def from_pretrained(
        cls, name: str, corpora: Sequence[Corpus] = (), device: str | None = None, dtype: str | None = None
    ) -> Self:
        """A model from a folder or hub id. Raises ModelNotFoundError, InputError on an unknown device or dtype."""
        remedy = "name a folder or hub id of a causal or seq2seq LM"
        return cls(*load_lm(name, _generator, remedy, device, dtype), corpora)

    def word_scores(self, texts: Sequence[str], words: Sequence[str], options: Mapping[str, Any]) -> Doubles:
        """The log-likelihood of each word in the blank of each text: [B, W].

        A decoder sees the text up to the blank. If more words follow the blank, theirs is added: they are likelier
        after the right word.
        """
        sentinel = bool(options.get("sentinel"))
        scored = [each for text in texts for each in self._scored(text, words, sentinel)]
        return self.log_likelihoods(scored).reshape(len(texts), len(words))

    @torch.inference_mode()
    def log_likelihoods(self, scored: Sequence[Scored]) -> Doubles:
        """log p(words | source, prompt) = Σ_i log p(w_i | source, prompt, w_<i), each. What shares an input is run
        once."""
        users = defaultdict[tuple[Tokens, Tokens], list[int]](list)
        for number, each in enumerate(scored):
            users[each.source, each.prompt + each.words[:-1]].append(number)
        inputs, result = list(users), np.zeros(len(scored))
        lengths = [len(source) + len(target) for source, target in inputs]
        for members in batches_by_length(lengths, LOGITS_PER_BATCH // int(self.model.config.vocab_size)):
            logits_BTV = self._logits([inputs[member] for member in members])
            for logits_TV, member in zip(logits_BTV, members, strict=True):
                least = min(len(scored[number].prompt) for number in users[inputs[member]]) - 1
                log_p_TV = logits_TV[least : len(inputs[member][1])].float().log_softmax(-1).cpu().double().numpy()
                for number in users[inputs[member]]:
                    _, prompt, words = scored[number]
                    at = len(prompt) - 1 - least
                    result[number] = log_p_TV[np.arange(at, at + len(words)), list(words)].sum()
        return result

    @torch.inference_mode()
    def fill(
        self,
        texts: Sequence[str],
        *,
        exclude: object = (),
        top_k: int = HITS,
        sentinel: bool = False,
        max_new_tokens: int = MAX_NEW_TOKENS,
    ) -> list[list[Prediction]]:
        """What greedy decoding puts in each text's blank, up to the line break or the end, and how likely that is: one
        answer, whatever `top_k` is. It searches no passages, so `exclude` hides none."""
        inputs = [self._prompt(text, sentinel, max_new_tokens) for text in texts]
        result = [[Prediction("", 0.0, 0.0, ())]] * len(texts)
        for members in batches_by_length(
            [len(source) + len(prompt) for source, prompt in inputs], PADDED_TOKENS_PER_BATCH
        ):
            generated = self._generate([inputs[m] for m in members], max_new_tokens)
            for member, found in zip(members, generated, strict=True):
                result[member] = [found]
        return result

    def num_tokens(self, phrase: str) -> int:
        """The number of the model's tokens in a phrase."""
        return len(self._plain(phrase))

    def _scored(self, text: str, words: Sequence[str], sentinel: bool) -> list[Scored]:
        left, right = around_mask(text, MASK)
        context = left.rstrip()
        if self._encodes:
            follows = "" if sentinel else _words_of(right)
            pieces = [tuple(self._plain(word + follows)) for word in words]
            source, prompt = self._prompt(text, sentinel, 0)
            return [Scored(source, prompt, piece) for piece in pieces]
        endings = [f"{left[len(context) :]}{word}{_words_of(right)}" for word in words]
        start = len(self._plain(context))
        wholes = self.tokenizer([context + each for each in endings], add_special_tokens=False)["input_ids"]
        _, prompt = self._prompt(text, sentinel, max(map(len, wholes)) - start)
        return [Scored((), prompt, tuple(whole[start:])) for whole in wholes]

    def _prompt(self, text: str, sentinel: bool, room: int) -> tuple[Tokens, Tokens]:
        """The encoder's input (causal: empty), and the decoder's before the blank is filled with up to `room` tokens.
        Texts that are too long lose their beginning."""
        left, right = around_mask(text, MASK)
        if self._encodes:
            mark = self._sentinels[:1] if sentinel else []
            tokens = [*self._plain(left.rstrip()), *mark, *(self._plain(right) if sentinel else [])]
            frame = len(self._before) + len(self._after)
            source = (*self._before, *tokens[max(len(tokens) - self._limit + frame, 0) :], *self._after)
            return source, (int(self.model.config.decoder_start_token_id), *self._before, *mark)
        if sentinel:
            raise InputError("sentinel=true is for models such as T5, not for a causal LM; leave it out")
        tokens = self._plain(left.rstrip())
        if not tokens:
            raise InputError(f"nothing before the blank of {text[:60]!r}; a causal LM needs a text before it")
        room = self._limit - len(self._before) - room
        if room < 1:
            raise InputError(f"the model takes {self._limit} tokens, which leaves none for the text; ask for fewer")
        return (), (*self._before, *tokens[-room:])

    def _logits(self, inputs: Sequence[tuple[Tokens, Tokens]]) -> Tensor:
        """The logits of the next token at each token that the decoder is given: [B, T, V]."""
        target_BT, mask_BT = self._padded([target for _, target in inputs])
        given = {"input_ids": target_BT, "attention_mask": mask_BT}
        if self._encodes:  # Tokens see only those before them, so the padding at the end needs no mask.
            given = {**self._source(inputs), "decoder_input_ids": target_BT}
        logits_BTV: Tensor = self.model(**given).logits
        return logits_BTV

    def _source(self, inputs: Sequence[tuple[Tokens, Tokens]]) -> dict[str, Tensor]:
        source_BT, seen_BT = self._padded([source for source, _ in inputs])
        return {"input_ids": source_BT, "attention_mask": seen_BT}

    def _generate(self, inputs: Sequence[tuple[Tokens, Tokens]], max_new_tokens: int) -> list[Prediction]:
        import transformers

        prompt_BT, mask_BT = self._padded([prompt[::-1] for _, prompt in inputs])
        given = {"input_ids": prompt_BT.flip(1), "attention_mask": mask_BT.flip(1)}  # padded on the left
        if self._encodes:  # all prompts are equal
            given = {**self._source(inputs), "decoder_input_ids": prompt_BT.flip(1)}
        settings: Any = transformers.GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False,
            max_new_tokens=max_new_tokens,
            pad_token_id=self._pad,
            eos_token_id=self._ends or None,
            return_dict_in_generate=True,
            output_logits=True,
        )
        made = self.model.generate(**given, generation_config=settings, stopping_criteria=[self._broken])
        new_BT = made.sequences[:, -len(made.logits) :]
        log_p_TB = [
            logits_BV.float().log_softmax(-1).gather(1, token_B1)[:, 0]
            for logits_BV, token_B1 in zip(made.logits, new_BT.split(1, 1), strict=True)
        ]
        return [self._said(*row) for row in zip(new_BT.tolist(), torch.stack(log_p_TB, 1).tolist(), strict=True)]

    def _said(self, tokens: list[int], log_p: list[float]) -> Prediction:
        ended = (n for n, token in enumerate(tokens, start=1) if token in self._ends or self._breaks_line(token))
        end = next(ended, None)
        text = self.tokenizer.decode(tokens[:end], skip_special_tokens=True).partition("\n")[0].strip()
        score = sum(log_p[:end])
        return Prediction(text, score, math.exp(score), ())

    def _broken(self, ids_BT: Tensor, scores: Any, **_: Any) -> Tensor:
        """Which rows have come to a line break."""
        return torch.tensor([self._breaks_line(token) for token in ids_BT[:, -1].tolist()], device=ids_BT.device)

    def _breaks_line(self, token: int) -> bool:
        if token not in self._breaks:
            self._breaks[token] = "\n" in self.tokenizer.decode([token])
        return self._breaks[token]

    def _padded(self, inputs: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        ids_BT, mask_BT = pad([np.array(each, np.int64) for each in inputs], self._pad)
        return ids_BT.to(self.model.device), mask_BT.to(self.model.device)

    def _plain(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    @cached_property
    def _ends(self) -> list[int]:
        """The tokens that end an answer."""
        ids = self.model.generation_config.eos_token_id
        ids = self.tokenizer.eos_token_id if ids is None else ids
        blank_end = self.tokenizer.get_vocab().get(SENTINELS[1])
        return [each for each in [*(ids if isinstance(ids, list) else [ids]), blank_end] if each is not None]

    @cached_property
    def _sentinels(self) -> list[int]:
        known = self.tokenizer.get_vocab()
        if SENTINELS[0] not in known:
            raise InputError(f"sentinel=true is for models such as T5; this one has no {SENTINELS[0]}; leave it out")
        return [int(known[SENTINELS[0]])]


def _words_of(right: str) -> str:
    """What follows the blank, if it has words."""
    return right if any(map(str.isalnum, right)) else ""


def _generator(name: str, config: Any) -> str:
    if config.is_encoder_decoder:
        return "AutoModelForSeq2SeqLM"
    if not is_decoder(config):
        raise ModelNotFoundError(f"model {name!r} is a {kinds_of(config)[0]}, which generates nothing; use mlm:{name}")
    return "AutoModelForCausalLM"
