"""Zero-NeR: finds passages by the entities they mention, without training (Hoshi et al. 2022).

Knows: how entity keys, search and explanation compose. Does not know: recognition, vectors, fusion with others.

encode (keys) → search (retriever: distinct passages) → expand and score (the best key of each passage for
each entity) → explain (which key it was).

Shape suffixes that differ from the project's: S entities of a question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import PassageRef
from quoth.corpus.corpus import Corpora
from quoth.encoders.config import TokenConfig
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import InputError, needs_torch
from quoth.fields import Count, checked, documented
from quoth.hub import EncoderSource, is_luke, locate
from quoth.index.options import LoadOptions, Mode
from quoth.index.retriever import KeyAt, Retriever
from quoth.model.base import CorpusModel, KeyRanking
from quoth.model.calls import check_questions, place_of
from quoth.records import Hits
from quoth.timing import step
from quoth.zero_ner.config import ZeroNERConfig
from quoth.zero_ner.keys import EntityEncoder, Range, Recognizer, TokenSpans
from quoth.zero_ner.recognition import load_recognizer

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.zero_ner.luke import LukeSpans

Entity = str | Range
"""An entity of a question: its words, which must occur there, or its character range."""


class ZeroNER(CorpusModel):
    """Entity search over one or several corpora."""

    _usual, keys = "quoth-zero-ner", "entities"
    encoder: EntityEncoder
    config: ZeroNERConfig

    def __init__(self, encoder: EntityEncoder, corpora: Sequence[Corpus] = ()) -> None:
        super().__init__(Retriever(corpora, encoder), encoder)

    @classmethod
    @documented(LoadOptions)
    def from_pretrained(
        cls,
        name: str | Path | None = None,
        corpus: Corpora = None,
        *,
        recognizer: Recognizer | None = None,
        device: str | None = None,
        dtype: str | None = None,
        base: str | Path | None = None,
    ) -> ZeroNER:
        """Load a Zero-NeR.

        Args:
            name (str | Path | None): A shipped model (quoth-zero-ner), a folder with settings in quoth.json
                (`ZeroNERConfig`), or any encoder (an NPM, a LUKE, a hub id), with the default settings. Default:
                "quoth-zero-ner".
            corpus (Corpus | str | Path | None): What to search: a corpus or the path of one, or a list of them.
                Default: None.
            recognizer (Recognizer | None): Finds the entities, instead of the settings' recognizer. Default: None.

        Returns:
            The model, ready to search.

        Raises:
            ModelNotFoundError: No model of that name, or its weights are missing or damaged.
            InputError: Another kind of model, an unknown device or dtype.

        Example:
            >>> quoth.ZeroNER.from_pretrained(corpus=corpus).keys
            'entities'
        """
        return cls._remembered(name, corpus, recognizer=recognizer, device=device, dtype=dtype, base=base)

    @classmethod
    def _load(
        cls,
        name: str,
        corpora: list[Corpus],
        *,
        recognizer: Recognizer | None,
        device: str | None,
        dtype: str | None,
        base: str | None,
    ) -> ZeroNER:
        config = locate(name, ZeroNERConfig).config
        if recognizer is None:
            recognizer = load_recognizer(config.recognizer, corpora, device, base)
        return cls(EntityEncoder(_span_encoder(config, device, dtype, base), recognizer, config, name), corpora)

    def search(
        self, query: str, k: int = 20, mode: Mode = "dense", *, entities: Sequence[Entity] | None = None
    ) -> Hits:
        """Find the k distinct passages whose entities are nearest to the question's.

        A passage's score is its nearest key's cosine with the question's entity; with several entities, their mean.

        Args:
            query (str): A question, or another text that names an entity.
            k (int): Number of passages. Default: 20.
            mode ("auto" | "bm25" | "dense" | "hybrid"): By words, by entities (requires `embed`), or by both; auto: by
                words, and by passage vectors if there are any. Default: "dense".
            entities (Sequence[str | tuple[int, int]] | None): The question's entities, as words or character ranges.
                Default: recognised; the whole question if it has none.

        Returns:
            The hits, best first; a hit has its passage, its score, and as `matches` the keys that matched.

        Raises:
            InputError: An entity that does not occur in the question, another mode, or vectors missing.
            EmptyCorpusError: No passage to search.

        Source:
            Zero-NeR, section 3 (Hoshi et al., 2022).

        Example:
            >>> hit = zero_ner.search("Where does the Nile end?", k=1)[0]
            >>> hit.passage.title, hit.matches[0].query
            ('Nile', 'Nile')
        """
        if entities is not None and (mode != "dense" or self.config.ask_with == "question"):
            setting = f"mode {mode!r}" if mode != "dense" else "ask_with 'question'"
            raise InputError(f"{setting} takes no entities; leave them out")
        if mode != "dense":
            return super().search(query, k, mode)
        checked("query", query, str)
        checked("k", k, Count, 20)
        found = self._ranked(*self._question(query, entities), k)
        return self.hits(found.ranking, [found])

    def ask(self, *texts: object, **options: object) -> NoReturn:
        """Raises InputError: a Zero-NeR finds passages and answers nothing."""
        raise InputError(f"{self.name} finds passages and gives no answers; use search, or quoth.load('quoth-reader')")

    fill = ask

    def ranked_by_keys(self, query: str, k: int) -> KeyRanking:
        """As `CorpusModel.ranked_by_keys`, by the question's entities."""
        return self._ranked(*self._question(query, None), k)

    def _question(self, text: str, entities: Sequence[Entity] | None) -> tuple[list[str], NDArray[np.float32]]:
        """The parts of a question that are searched for, and their vectors [S, D]."""
        check_questions([text])
        if isinstance(entities, str):
            raise InputError(f"entities is the string {entities!r}; it must be a list: write [{entities!r}]")
        with step("encode"):
            found = self.encoder.asked(text) if entities is None else [_range(text, entity) for entity in entities]
            if not found:
                raise InputError("entities is empty; give at least one, or None to have them recognised")
            parts = [text] if self.config.ask_with == "question" else [text[start:end] for start, end in found]
            return parts, self.encoder.queries(text, found)

    def _ranked(self, parts: Sequence[str], q_SD: NDArray[np.float32], k: int) -> KeyRanking:
        """The k best passages, and each one's nearest key to each entity.

        With several entities, each one's search goes deeper until no passage beyond it could be among the k best (the
        threshold algorithm, Fagin et al. 2001).
        """
        depth = k
        while True:
            with step("search"):
                near = self._retriever.nearest_keys(q_SD, depth, [()] * len(q_SD))
            with step("score"):
                # A passage near every entity has been found with its keys; all keys are compared only for the others.
                found = {place: [keys[place] for keys in near] for place in set(near[0]).intersection(*near)}
                best = self._keys(q_SD, found, set().union(*near))
            scored = [(fmean(key.similarity for key in keys), place) for place, keys in best.items()]
            ranked = sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k]
            whole = any(len(keys) < depth for keys in near)
            last = (next(reversed(keys.values())).similarity for keys in near)
            if len(q_SD) == 1 or whole or ranked[-1][0] >= fmean(last):
                return KeyRanking(ranked, parts, partial(self._keys, q_SD, best))
            depth *= 2

    def _keys(
        self, q_SD: NDArray[np.float32], known: Mapping[PassageRef, list[KeyAt]], places: Collection[PassageRef]
    ) -> dict[PassageRef, list[KeyAt]]:
        """The nearest key to each entity in each of these passages, searched for if not known."""
        unknown = [place for place in places if place not in known]
        return {**known, **(self._retriever.keys_in(unknown, q_SD) if unknown else {})}


def _span_encoder(
    config: ZeroNERConfig, device: str | None, dtype: str | None, base: str | None
) -> TokenSpans | LukeSpans:
    if is_luke(config.base):
        with needs_torch(config.base):
            from quoth.zero_ner.luke import LukeSpans
        luke = EncoderSource(config.base, revision=config.revision)
        return LukeSpans.load(luke, joint=config.joint, max_tokens=config.max_tokens, device=device, dtype=dtype)
    source = locate(config.base, TokenConfig, base)
    settings = replace(
        source.config,
        max_tokens=config.max_tokens,
        revision=config.revision or source.config.revision,
        normalize=source.config.normalize and config.pooling != "states",
    )
    encoder = TokenEncoder.load(replace(source, config=settings), device=device, dtype=dtype)
    return TokenSpans(encoder, config.pooling)


def _range(question: str, entity: Entity) -> Range:
    """Where an entity occurs in its question. Raises InputError if it does not occur."""
    if isinstance(entity, str):
        return place_of(entity, question)
    if len(entity) != 2 or {*map(type, entity)} != {int} or not 0 <= entity[0] < entity[1] <= len(question):
        raise InputError(f"entity {entity!r}; give its words, or characters (start, end) from 0 to {len(question)}")
    return entity
