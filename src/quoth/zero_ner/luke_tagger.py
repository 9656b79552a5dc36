"""Names by LUKE (Yamada et al. 2020, §4.3): classifies every span of a few words and keeps the most certain ones that
do not overlap.

Knows: span classifiers such as studio-ousia/luke-large-finetuned-conll-2003. Does not know: encoder inputs, training.

Shape suffixes that differ from the project's: E entities of an input.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from quoth.arrays import Floats, Ints
from quoth.encoders.encoder import longest_input
from quoth.errors import InputError
from quoth.hub import EncoderSource
from quoth.ner.words import touching
from quoth.records import TaggedSpan
from quoth.text.boundaries import words
from quoth.zero_ner.luke import EntityNetwork, EntityTokenizer, TextTokens, load_luke

MAX_WORDS = 16
"""The longest name considered. (The published training used spans of up to 16 word pieces.)"""
MAX_ENTITIES = 128
"""How many spans share a forward pass, as in the published training."""
NULL_LABELS = ("NIL", "O")
"""Labels that a checkpoint may use for a span that is not a name; if it has both, the first one here counts."""


class LukeTagger:
    """Finds names in texts of any length, like a `Tagger`. `fingerprint` identifies the weights and the rules."""

    def __init__(self, network: EntityNetwork, labels: Sequence[str], name: str, fingerprint: str) -> None:
        nulls = [label for label in NULL_LABELS if label in labels]
        if not nulls:
            raise InputError(
                f"model {name!r} has labels {', '.join(labels)}; spans that are not names need the label "
                f"{' or '.join(NULL_LABELS)}: set it in id2label of its config.json"
            )
        self.name, self.labels = name, tuple(labels)
        settings = f"{fingerprint} {self.labels} {MAX_WORDS} {network.tokenizer.settings}"
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()
        self._network, self._null = network, nulls[0]

    @classmethod
    def load(cls, name: str | Path, device: str | None = None) -> LukeTagger:
        """A `LukeForEntitySpanClassification` by folder or hub id; its config names the labels.

        Raises ModelNotFoundError, or InputError on an unknown device or if no label is for spans that are not names.
        """
        model, hf, fingerprint = load_luke(
            EncoderSource(str(name)), "LukeForEntitySpanClassification", device=device, dtype="fp32"
        )
        tokenizer = EntityTokenizer(hf, longest_input(model.config), MAX_ENTITIES)
        labels = [str(model.config.id2label[i]) for i in range(len(model.config.id2label))]

        def network(inputs: dict[str, Tensor], first_BE: Tensor, last_BE: Tensor) -> Tensor:
            logits_BEL: Tensor = model(**inputs, entity_start_positions=first_BE, entity_end_positions=last_BE).logits
            return logits_BEL

        return cls(EntityNetwork(network, tokenizer, len(labels), model.device), labels, str(name), fingerprint)

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """The names in each text as character ranges of whole words, in order, without overlap."""
        return [best_spans(spans_S2, scores_SL, self.labels, self._null) for spans_S2, scores_SL in self._scored(texts)]

    def _scored(self, texts: Sequence[str]) -> list[tuple[Ints, Floats]]:
        """Each text's spans of words [S, 2] and their logits [S, L]."""
        tokenized = self._network.tokenizer.texts(texts)
        spans = [_word_spans(text, tokens) for text, tokens in zip(texts, tokenized, strict=True)]
        scores = self._network.rows(tokenized, [tokens_S2 for _, tokens_S2 in spans])
        return [(spans_S2, scores_SL) for (spans_S2, _), scores_SL in zip(spans, scores, strict=True)]


def _word_spans(text: str, tokens: TextTokens) -> tuple[Ints, Ints]:
    """Every span of up to `MAX_WORDS` words that have tokens, ordered by start: characters and tokens, each [S, 2]."""
    ranges = words(text)
    tokens_W2 = touching(tokens.places_T2, ranges)
    filled = tokens_W2[:, 0] < tokens_W2[:, 1]
    words_W2, tokens_W2 = np.array(ranges, np.int64).reshape(-1, 2)[filled], tokens_W2[filled]
    first_S = np.arange(len(words_W2)).repeat(MAX_WORDS)
    last_S = first_S + np.tile(np.arange(MAX_WORDS), len(words_W2))
    first_S, last_S = first_S[last_S < len(words_W2)], last_S[last_S < len(words_W2)]
    spans_S2, tokens_S2 = (np.stack([x_W2[first_S, 0], x_W2[last_S, 1]], 1) for x_W2 in (words_W2, tokens_W2))
    return spans_S2, tokens_S2


def best_spans(spans_S2: Ints, scores_SL: Floats, labels: Sequence[str], null: str) -> list[TaggedSpan]:
    """The spans whose best label is not `null`, in order; of two that overlap, the one with the higher best score.

    Of equal scores, the first span given wins.
    """
    best_S = scores_SL.argmax(1)
    taken = np.zeros(spans_S2.max(initial=0), bool)
    names = []
    for i in np.argsort(-scores_SL.max(1), kind="stable"):
        start, end = map(int, spans_S2[i])
        if labels[best_S[i]] != null and not taken[start:end].any():
            taken[start:end] = True
            names.append(TaggedSpan(start, end, labels[best_S[i]]))
    return sorted(names, key=lambda name: name.start)
