"""LUKE (Yamada et al. 2020): vectors of character ranges of texts, each in its context.

Knows: entity inputs (the [MASK] entity at the tokens of a range), windows over long texts, how many entities share a
forward pass. Does not know: which ranges are encoded, or what their vectors are for.

Shape suffixes that differ from the project's: E entities of an input, M tokens of an entity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from quoth.arrays import Floats, Ints
from quoth.encoders.encoder import fingerprint_of, longest_input, run_batched
from quoth.encoders.transformer import (
    PADDED_TOKENS_PER_BATCH,
    apply_adapter,
    kinds_of,
    load_kind,
    on_arrays,
    pad,
    parameters,
    placed,
)
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import EncoderSource
from quoth.ner.words import TextWords, WordTokenizer, touching
from quoth.text.boundaries import BOUNDARIES_VERSION, trim
from quoth.text.tokenizer import pieces_of

MAX_ENTITIES = 32
"""How many entities may share a forward pass: as many as LukeTokenizer allows."""
TOKENS_PER_ENTITY = 4
"""How many tokens an entity counts for in the size of a batch, since it has position embeddings of all its tokens."""
PUBLISHED = {
    "LukeModel": "studio-ousia/luke-base",
    "LukeForEntitySpanClassification": "studio-ousia/luke-large-finetuned-conll-2003",
}
"""The classes of transformers that can be loaded here, each with the hub id of an example."""

Span = tuple[int, int]

Network = Callable[[dict[str, Tensor], Tensor, Tensor], Tensor]
"""Maps the inputs of a LUKE, and the positions of each entity's first and last token [B, E], to a row per entity."""


@dataclass(frozen=True, slots=True)
class TextTokens:
    """A text's token ids [T] and the character range of each [T, 2]; see `_place`."""

    ids_T: Ints
    places_T2: Ints


@dataclass(frozen=True, slots=True)
class EntityInput:
    """An encoder input: a window of the text with index `text`, the indices of the `spans` it encodes, and their token
    positions in it [E, 2]."""

    text: int
    spans: Ints
    input_ids: Ints
    places_E2: Ints


class EntityTokenizer:
    """LUKE's tokenizer with this project's windows.

    An encoder input has at most `max_tokens` tokens, special tokens included, and `max_entities` entities. `settings`
    identifies everything that determines the inputs.
    """

    def __init__(self, tokenizer: Any, max_tokens: int, max_entities: int) -> None:
        self._words = WordTokenizer(tokenizer, max_tokens)
        self.max_entities = max_entities
        self.max_mention = int(tokenizer.max_mention_length)
        self.settings = f"{self._words.room} {self.max_entities} {self.max_mention} {BOUNDARIES_VERSION}"

    def texts(self, texts: Sequence[str]) -> list[TextTokens]:
        """Tokenize texts of any length, without special tokens. Raises InputError for a string in place of a list."""
        if isinstance(texts, str):
            raise InputError("texts is a string; it must be a list of texts: write [text]")
        tokenized = []
        for text, (ids, offsets) in zip(texts, pieces_of(self._words.hf, texts), strict=True):
            places_T2 = np.array([_place(text, *place) for place in offsets], np.int64).reshape(-1, 2)
            tokenized.append(TextTokens(np.array(ids, np.int64), places_T2))
        return tokenized

    def inputs(self, text: int, tokens: TextTokens, spans_S2: Ints) -> Iterator[EntityInput]:
        """Encoder inputs that contain each non-empty range of tokens once: in the window where it is farthest from a
        cut, clipped to that window. A window with too many ranges becomes several inputs."""
        windows = self._words.windows(TextWords([], spans_S2[:0, 0], tokens.ids_T, np.zeros_like(tokens.ids_T)))
        before, length = len(self._words.before), len(tokens.ids_T)
        starts = [window.tokens.start + before - window.inside.start for window in windows]
        ends = [min(start + self._words.room, length) for start in starts]
        chosen_S = _farthest_from_cuts(spans_S2, starts, ends)
        chosen_S[spans_S2[:, 0] == spans_S2[:, 1]] = -1
        for number, window in enumerate(windows):
            inside = np.flatnonzero(chosen_S == number)
            if not len(inside):
                continue
            for spans in np.array_split(inside, -(-len(inside) // self.max_entities)):
                places_E2 = spans_S2[spans].clip(starts[number], ends[number]) - starts[number] + before
                yield EntityInput(text, spans, window.input_ids, places_E2)

    def batch(self, inputs: Sequence[EntityInput]) -> tuple[dict[str, Tensor], Tensor, Tensor]:
        """The arguments of a `Network`. Entity 0 is [MASK] (see `load_luke`); padding entities are masked out."""
        ids_BT, mask_BT = pad([one.input_ids for one in inputs], self._words.pad_id)
        first_BE, exists_BE = pad([one.places_E2[:, 0] for one in inputs], 0)
        after_BE, _ = pad([one.places_E2[:, 1] for one in inputs], 0)
        longest = min(int((after_BE - first_BE).max()), self.max_mention)
        places_BEM = first_BE[..., None] + torch.arange(longest)
        values = {
            "input_ids": ids_BT,
            "attention_mask": mask_BT,
            "entity_ids": torch.zeros_like(first_BE),
            "entity_attention_mask": exists_BE,
            "entity_position_ids": places_BEM.where(places_BEM < after_BE[..., None], -1),
        }
        return values, first_BE, (after_BE - 1).clamp(min=0)


def _place(text: str, start: int, end: int) -> Span:
    """The character range of a token. A token that is only a space gets the character after it, because LukeTokenizer
    counts it as part of the mention that follows."""
    start, end = trim(text, start, end)
    if start == end and text[end - 1 : end] == " " and not text[end : end + 1].isspace():
        return end, end + 1
    return start, end


def _farthest_from_cuts(spans_S2: Ints, starts: Sequence[int], ends: Sequence[int]) -> Ints:
    """The index of the window in which each range of tokens is farthest from a cut: [S]. The windows overlap by less
    than half of their length."""
    chosen_S = np.zeros(len(spans_S2), np.int64)
    farthest_S = np.full(len(spans_S2), np.iinfo(np.int64).min)
    for window, (start, end) in enumerate(zip(starts, ends, strict=True)):
        room_S = np.minimum(spans_S2[:, 0] - start, end - spans_S2[:, 1])
        chosen_S[room_S > farthest_S] = window
        farthest_S = np.maximum(farthest_S, room_S)
    return chosen_S


class EntityNetwork:
    """A LUKE with its tokenizer: makes a row of `width` numbers for each span of a text."""

    def __init__(self, network: Network, tokenizer: EntityTokenizer, width: int, device: torch.device) -> None:
        self.tokenizer, self.width = tokenizer, width
        self._network, self._device = network, device

    def rows(self, texts: Sequence[TextTokens], spans: Sequence[Ints]) -> list[Floats]:
        """The rows of each text's ranges of tokens, zeros for empty ones: [S, width], in the order given."""
        rows = [np.zeros((len(spans_S2), self.width), np.float32) for spans_S2 in spans]
        inputs = [
            one
            for text, (tokens, spans_S2) in enumerate(zip(texts, spans, strict=True))
            for one in self.tokenizer.inputs(text, tokens, spans_S2)
        ]
        costs = [len(one.input_ids) + TOKENS_PER_ENTITY * len(one.spans) for one in inputs]
        for member, rows_ED in run_batched(inputs, costs, on_arrays(self._forward), PADDED_TOKENS_PER_BATCH):
            one = inputs[member]
            rows[one.text][one.spans] = rows_ED[: len(one.spans)]
        return rows

    def _forward(self, inputs: Sequence[EntityInput]) -> Tensor:
        values, first_BE, last_BE = self.tokenizer.batch(inputs)
        on_device = {name: value.to(self._device) for name, value in values.items()}
        return self._network(on_device, first_BE.to(self._device), last_BE.to(self._device))


class LukeSpans:
    """Vectors of character ranges of texts by LUKE: the last hidden states of its entity inputs.

    If `joint`, the ranges of a window share a forward pass, up to `MAX_ENTITIES` of them, and attend to each other;
    otherwise each range is alone with the text. Equal fingerprints mean equal vectors.
    """

    def __init__(self, network: EntityNetwork, fingerprint: str) -> None:
        self.dimensions = network.width
        self.fingerprint = hashlib.sha256(f"{fingerprint} {network.tokenizer.settings}".encode()).hexdigest()
        self._network = network

    @classmethod
    def load(
        cls,
        source: EncoderSource,
        *,
        joint: bool = True,
        max_tokens: int = 256,
        device: str | None = None,
        dtype: str | None = None,
    ) -> LukeSpans:
        """A LUKE such as studio-ousia/luke-base by folder or hub id; `max_tokens` is capped at what the model allows.

        Raises ModelNotFoundError, or InputError on an unknown device or dtype or a `max_tokens` below 16.
        """
        model, hf, fingerprint = load_luke(source, "LukeModel", device=device, dtype=dtype)
        tokenizer = EntityTokenizer(hf, min(max_tokens, longest_input(model.config)), MAX_ENTITIES if joint else 1)

        def network(inputs: dict[str, Tensor], first_BE: Tensor, last_BE: Tensor) -> Tensor:
            states_BED: Tensor = model(**inputs).entity_last_hidden_state
            return states_BED

        return cls(EntityNetwork(network, tokenizer, int(model.config.hidden_size), model.device), fingerprint)

    def spans(self, texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> list[Floats]:
        """The vectors of each text's ranges, not normalised: [S, D], in the order given.

        A range covers the tokens that overlap it, up to LUKE's longest mention; its vector is zeros if there are none.
        Raises InputError on a range that is not inside its text.
        """
        tokenized = self._network.tokenizer.texts(texts)
        if len(spans) != len(texts):
            raise InputError(f"{len(spans)} lists of spans for {len(texts)} texts; give one list per text")
        for text, ranges in zip(texts, spans, strict=True):
            for start, end in ranges:
                if not 0 <= start <= end <= len(text):
                    raise InputError(f"span ({start}, {end}) must lie within the text, 0 to {len(text)}")
        tokens = [touching(tokens.places_T2, ranges) for tokens, ranges in zip(tokenized, spans, strict=True)]
        return self._network.rows(tokenized, tokens)


def load_luke(
    source: EncoderSource, kind: str, *, device: str | None = None, dtype: str | None = None
) -> tuple[Any, Any, str]:
    """A LUKE of one of the classes in `PUBLISHED`, its tokenizer, and the fingerprint of both.

    Of its entity embeddings only [MASK] is kept, as entity 0: the others are nearly half of luke-base. Raises
    ModelNotFoundError if the model cannot be loaded or is of another kind.
    """

    def choose(name: str, config: Any) -> str:
        kinds = kinds_of(config)
        if config.model_type != "luke" or (kind != "LukeModel" and kind not in kinds):
            raise ModelNotFoundError(f"model {name!r} is a {kinds[0]}; name a {kind} such as {PUBLISHED[kind]}")
        return kind

    model, tokenizer = load_kind(source, choose, f"name a folder or a hub id such as {PUBLISHED[kind]}")
    encoder = model.base_model
    encoder.pooler = None  # not used, and random if the checkpoint has none
    table_VD = encoder.entity_embeddings.entity_embeddings.weight.detach()
    mask = getattr(tokenizer, "entity_mask_token_id", None)
    if mask is None or mask >= len(table_VD):
        raise ModelNotFoundError(
            f"model {source.base!r} has {len(table_VD)} entities, but its tokenizer calls [MASK] entity {mask}; fetch "
            "it again, with LUKE's own tokenizer and entity_vocab.json"
        )
    encoder.entity_embeddings.entity_embeddings = nn.Embedding(1, table_VD.shape[1], _weight=table_VD[[mask]])
    if source.adapter is not None:
        apply_adapter(encoder, source.adapter)
    fingerprint = fingerprint_of(parameters(model), tokenizer, None)
    return placed(model, device, dtype).eval(), tokenizer, fingerprint
