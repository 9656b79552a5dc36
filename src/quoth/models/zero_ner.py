"""Zero-NeR: passages by the entities they speak of, with nothing trained for it (Hoshi et al. 2022).

Knows: how entity keys, search and explanation come together. Does not know: recognition, vectors, fusion with others.

encode (entity_encoder) → search (retriever: distinct passages) → expand and score (the best key of each passage for
each entity) → explain (which key it was).

Shape suffixes: S entities of a question, D dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.config import ZeroNERConfig
from quoth.corpus.corpus import Corpus
from quoth.encoders.entity_encoder import EntityEncoder, Range, SpanEncoder, TokenSpans
from quoth.encoders.pretrained import EncoderSource, is_luke, locate, locate_zero_ner
from quoth.encoders.recognition import Recognizer, load_recognizer
from quoth.encoders.token_encoder import TokenEncoder
from quoth.errors import InputError
from quoth.models.base import FUSION_DEPTH, Corpora, CorpusModel, Mode, check_count, listed
from quoth.records import Hit, Match
from quoth.retrieval.keys import TokenKeys
from quoth.retrieval.retriever import KeyAt, Retriever
from quoth.retrieval.sparse import Place, Ranking
from quoth.timing import step

Entity = str | Range
"""An entity of a question: its words, which must stand there, or its characters."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, its entities and their vectors [S, D]."""

    text: str
    entities: Sequence[Range]
    q_SD: NDArray[np.float32]


class ZeroNER(CorpusModel):
    """Entity search over one or several corpora."""

    keys = "entities"

    def __init__(self, encoder: EntityEncoder, corpora: Sequence[Corpus] = ()) -> None:
        super().__init__(Retriever(corpora, encoder))
        self.encoder = encoder
        self.config, self.fingerprint = encoder.config, encoder.fingerprint

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path = "quoth-zero-ner",
        corpus: Corpora = None,
        *,
        recognizer: Recognizer | None = None,
        device: str | None = None,
        dtype: str | None = None,
        base: str | Path | None = None,
    ) -> ZeroNER:
        """Load a shipped model by name, by a folder whose `quoth.json` holds its settings (`ZeroNERConfig`), or any
        encoder (an NPM, a LUKE, a hub id) with the default settings.

        `recognizer` takes the place of the settings'. `base` names a folder for the base encoder. Raises
        ModelNotFoundError, InputError.
        """
        config = locate_zero_ner(str(name))
        corpora, folder = listed(corpus), None if base is None else str(base)
        if recognizer is None:
            recognizer = load_recognizer(config.recognizer, corpora, device, folder)
        spans = _span_encoder(config, device, dtype, folder)
        return cls(EntityEncoder(spans, recognizer, config, str(name)), corpora)

    def search(
        self, query: str, k: int = 20, mode: Mode = "dense", *, entities: Sequence[Entity] | None = None
    ) -> list[Hit]:
        """The k distinct passages with the keys nearest to the question's entities, each with the keys that matched.

        A passage's score is its nearest key's cosine with the question's entity (Hoshi et al. 2022, §3); with several
        entities, their mean. `entities` are those of the question, its words or characters (recognised if None; the
        whole question where there are none). Raises InputError where one does not stand there.
        """
        check_count(k)
        if mode != "dense":
            if entities is not None:
                raise InputError(f"mode {mode!r} takes no entities; allowed with them is dense")
            return super().search(query, k, mode)
        question = self._question(query, entities)
        places, best = self._ranked(question, k)
        return [
            replace(hit, matches=tuple(self._matches(question, place, best[place])))
            for hit, (_, place) in zip(self.hits(places), places, strict=True)
        ]

    def ranking(self, query: str, k: int) -> Ranking:
        """As `CorpusModel.ranking`, by the question's entities."""
        return self._ranked(self._question(query, None), k)[0]

    def tables(self) -> list[TokenKeys]:
        """The keys of every passage. Raises InputError where vectors are missing."""
        return self._retriever.every_token()

    def _question(self, text: str, entities: Sequence[Entity] | None) -> _Question:
        if not text.strip():
            raise InputError(f"query {text!r} has no word; give a question")
        with step("encode"):
            found = self.encoder.asked(text) if entities is None else [_range(text, each) for each in entities]
            if not found:
                raise InputError("entities is empty; give at least one, or None to have them recognised")
            return _Question(text, found, self.encoder.queries(text, found))

    def _ranked(self, question: _Question, k: int) -> tuple[Ranking, dict[Place, list[KeyAt]]]:
        """The k best passages, and the key of each that is nearest to each entity."""
        depth = k if len(question.q_SD) == 1 else max(k, FUSION_DEPTH)
        with step("search"):
            near = self._retriever.nearest_passages(question.q_SD, depth, [()] * len(question.q_SD))
        with step("score"):
            best = self._retriever.nearest_keys({place for each in near for _, place in each}, question.q_SD)
            scores = {place: sum(key.similarity for key in keys) / len(keys) for place, keys in best.items()}
        ranked = sorted(((score, place) for place, score in scores.items()), key=lambda pair: (-pair[0], pair[1]))
        return ranked[:k], best

    def _matches(self, question: _Question, place: Place, keys: Sequence[KeyAt]) -> list[Match]:
        passage = self._retriever.passage(place)
        whole = self.config.ask_with == "question"
        asked = [question.text] if whole else [question.text[start:end] for start, end in question.entities]
        texts = [passage.text[each.start - passage.start : each.end - passage.start] for each in keys]
        return [
            Match(words, text or passage.title, key.start, key.end, key.similarity)
            for words, text, key in zip(asked, texts, keys, strict=True)
        ]


def _span_encoder(config: ZeroNERConfig, device: str | None, dtype: str | None, base: str | None) -> SpanEncoder:
    if is_luke(config.base):
        from quoth.encoders.luke import LukeSpans

        source = EncoderSource(config.base, revision=config.revision)
        return LukeSpans.load(source, joint=config.joint, max_tokens=config.max_tokens, device=device, dtype=dtype)
    return TokenSpans(TokenEncoder.load(locate(config.base, base), device=device, dtype=dtype), config.pooling)


def _range(question: str, entity: Entity) -> Range:
    """Where an entity stands in its question. Raises InputError where it does not."""
    if isinstance(entity, str):
        found = re.search(re.escape(entity.strip()), question, re.IGNORECASE) if entity.strip() else None
        if found is None:
            raise InputError(f"entity {entity!r} does not stand in the question {question!r}; give words of it")
        return found.span()
    start, end = entity
    if not 0 <= start < end <= len(question):
        raise InputError(
            f"entity {entity!r}; allowed are characters from 0 to {len(question)}, the first before the last"
        )
    return start, end
