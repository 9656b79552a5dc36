"""Ways to search for the passages about an entity.

Knows: systems that search, and the characters of an entity in a text. Does not know: the questions, or what counts as a
right result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from quoth.cli.models import load_entities, system
from quoth.records import Hit
from quoth_eval.entity_keys import single_key_search
from quoth_eval.spec import Given, Options
from quoth_eval.systems import Searcher, family_of, with_lexical
from quoth_eval.task import Answer, Example, Source, System

if TYPE_CHECKING:
    from quoth.index.options import Mode
    from quoth.model.base import CorpusModel

Range = tuple[int, int]
Search = Callable[[str, Range | None, int], list[Hit]]
"""Asks a system; takes a text, the characters of its entity (None if unknown), and the number of passages."""


class EntitySearcher(Protocol):
    """A system that accepts the entities of a question: Zero-NeR."""

    def search(self, query: str, k: int, *, entities: Sequence[str | Range] | None = None) -> list[Hit]: ...


def by_text(system: Searcher) -> Search:
    """Asks with the whole text; a model recognises entities itself."""
    return lambda text, entity, k: system.search(text, k)


def by_name(system: Searcher) -> Search:
    """Asks with the entity's name alone, or with the text if the entity is unknown."""
    return lambda text, entity, k: system.search(text[slice(*entity)] if entity else text, k)


def by_entity(model: EntitySearcher) -> Search:
    """Asks with the text and the characters of its entity, if known."""
    return lambda text, entity, k: model.search(text, k, entities=[entity] if entity else None)


def by_vectors(model: CorpusModel, mode: Mode = "dense") -> Search:
    """Asks a model with the whole text, by its vectors (or, if `mode` is hybrid, with BM25), whatever its default."""
    return lambda text, entity, k: model.search(text, k, mode)


def searches(
    search: Search, depth: Callable[[Source], int], entity: Callable[[Source], Range | None]
) -> System[Source]:
    """The `depth` best passages that a search finds for each example, given its `entity`."""

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        return [
            Answer(None, [hit.passage for hit in search(each.text, entity(each.source), depth(each.source))])
            for each in examples
        ]

    return answer


def searching(given: Given) -> Callable[[str, Options], Search]:
    """How a system is asked, by its name and options.

    A Zero-NeR recognises the entities itself; with `told=true` they are given, with `keys=idf` or `random` they are
    given and each passage has a single key, with `mode=hybrid` BM25 joins. Another model is asked by its own vectors,
    or, with one of these options, as a Zero-NeR with its encoder.
    """

    @cache
    def entity_model(name: str) -> Any:
        return load_entities(name, given.corpora, given.setup)

    def search(name: str, options: Options) -> Search:
        if family_of(name):
            return by_text(with_lexical(given.open(name, given.corpora, options), options))
        mode, told, keys = (options.get(option) for option in ("mode", "told", "keys"))
        if system(name).keys != "entities" and told is None and keys is None:
            return by_vectors(given.open(name, given.corpora, options), mode or "dense")
        model = entity_model(name)
        if keys is not None:
            return single_key_search(model, keys, given.seed)
        if mode is not None:
            return by_vectors(model, mode)
        return by_entity(model) if told else by_text(model)

    return search
