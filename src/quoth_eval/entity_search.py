"""Ways to search for the passages about an entity: by its name, by a model's vectors, with one key per passage or all
of its keys; how rare a name is; a picture of questions and keys in the plane (Hoshi et al. 2022, figure 3).

Knows: systems that search, keys as arrays, counts of terms, the characters of an entity in a text, UMAP and matplotlib.
Does not know: what counts as a right result.

Shape suffixes that differ from the project's: K keys.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quoth.arrays import Doubles, Rows
from quoth.cli.models import load_entities, system
from quoth.corpus.bm25 import indexed_text
from quoth.datasets.judging import holders
from quoth.encoders.keys import Vectors
from quoth.encoders.tokens import unit
from quoth.errors import InputError
from quoth.records import Hit, Passage
from quoth.text.terms import analyse, analyse_apart
from quoth_eval.spec import Given, Options
from quoth_eval.systems import Searcher, family_of
from quoth_eval.task import Answer, Example, System

if TYPE_CHECKING:
    from quoth.zero_ner.model import ZeroNER
    from quoth_eval.tasks.entities import EntityQuestion

Range = tuple[int, int]
Search = Callable[[str, Range | None, int], list[Hit]]
"""Asks a system; takes a text, the characters of its entity (None if unknown), and the number of passages."""
NUM_GROUPS = 5
OTHERS = 2000
"""Keys in a picture beside those of its questions."""


def by_text(system: Searcher) -> Search:
    """Asks with the whole text; a model recognises entities itself."""
    return lambda text, entity, k: system.search(text, k)


def by_name(system: Searcher) -> Search:
    """Asks with the entity's name alone, or with the text if the entity is unknown."""
    return lambda text, entity, k: system.search(text[slice(*entity)] if entity else text, k)


def by_entity(model: Any) -> Search:
    """Asks a Zero-NeR with the text and the characters of its entity, if known."""
    return lambda text, entity, k: model.search(text, k, entities=[entity] if entity else None)


def searches(search: Search, depth: Callable[[Any], int]) -> System[Any]:
    """The `depth` best passages that a search finds for each example, whose source has an `entity`."""

    def answer(examples: Sequence[Example[Any]]) -> list[Answer]:
        found = [search(each.text, each.source.entity, depth(each.source)) for each in examples]
        return [Answer(None, [hit.passage for hit in hits]) for hits in found]

    return answer


def searching(given: Given) -> Callable[[str, Options], Search]:
    """How a system is asked, by its name and options.

    A Zero-NeR recognises the entities itself; with `told=true` they are given, unless it asks with the whole question,
    with `keys=idf` or `random` they are given and each passage has a single key, with `mode=hybrid` BM25 joins. Another
    model is asked by its own vectors, or, with one of these options, as a Zero-NeR with its encoder.
    """

    @cache
    def entity_model(name: str) -> Any:
        return load_entities(name, given.corpora, given.setup)

    def search(name: str, options: Options) -> Search:
        if family_of(name):
            return by_text(given.open(name, given.corpora, options))
        mode, told, keys = (options.get(option) for option in ("mode", "told", "keys"))
        own = system(name).keys != "entities" and told is None and keys is None
        model = given.open(name, given.corpora, options) if own else entity_model(name)
        if keys is not None:
            return single_key_search(model, keys, given.seed)
        if own or mode is not None:
            return lambda text, entity, k: model.search(text, k, mode or "dense")
        return by_entity(model) if told and model.encoder.config.ask_with != "question" else by_text(model)

    return search


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of passages 0 to P − 1, in order: texts and vectors [N, D]; passage p has rows `offsets_P1[p:p + 2]`."""

    texts: tuple[str, ...]
    vectors_ND: Vectors
    offsets_P1: Rows

    def only(self, rows: Rows) -> Keys:
        """The keys at these rows (ascending), for the same passages."""
        texts = tuple(self.texts[row] for row in rows.tolist())
        return Keys(texts, self.vectors_ND[rows], np.searchsorted(rows, self.offsets_P1))


def stored_keys(model: ZeroNER) -> tuple[list[Passage], Keys]:
    """A model's live passages and their stored keys. Raises InputError if vectors are missing."""
    passages, texts, vectors, counts = list[Passage](), list[str](), [], [0]
    for keys in model.tables():
        live_P = np.ones(len(keys.passage_rows_P), np.bool_) if keys.live_P is None else keys.live_P
        whole = keys.take(np.flatnonzero(live_P))
        vectors.append(whole.vectors.similarities(np.eye(model.encoder.dimensions, dtype=np.float32)).T)
        for row, first, last in zip(whole.passage_rows_P, whole.offsets_P1, whole.offsets_P1[1:], strict=False):
            passage = keys.corpus.passage(int(row))
            places = zip(whole.start_N[first:last], whole.end_N[first:last], strict=True)
            spans = (slice(start - passage.start, end - passage.start) for start, end in places)
            texts += [passage.text[span] or passage.title for span in spans]
            passages.append(passage)
            counts.append(int(last - first))
    return passages, Keys(tuple(texts), np.concatenate(vectors), np.cumsum(counts, dtype=np.int64))


def max_pool(q_D: Vectors, vectors_ND: Vectors, offsets_P1: Rows) -> Doubles:
    """Each passage's score, the highest cosine of its keys with the query: [P]; −inf without a key. All vectors have
    length 1. Zero-NeR, §3."""
    scores_P, has_keys_P = np.full(len(offsets_P1) - 1, -np.inf), np.diff(offsets_P1) > 0
    if has_keys_P.any():
        scores_P[has_keys_P] = np.maximum.reduceat(vectors_ND @ q_D, offsets_P1[:-1][has_keys_P])
    return scores_P


def single_key(offsets_P1: Rows, value_N: Doubles) -> Rows:
    """The row of one key per passage that has keys: that of the highest value, the first of equals."""
    ends = pairwise(offsets_P1.tolist())
    return np.array([start + value_N[start:end].argmax() for start, end in ends if start < end], np.int64)


def single_key_search(model: ZeroNER, keep: str, seed: int = 0) -> Search:
    """A search with all keys of each passage ("all"), one at random ("random"), or the rarest ("idf"), for questions
    whose entity is given, ties by passage; nothing is found for others. Raises InputError if vectors are missing."""
    passages, keys = stored_keys(model)
    if keep == "random":
        keys = keys.only(single_key(keys.offsets_P1, np.random.default_rng(seed).random(len(keys.texts))))
    elif keep == "idf":
        idfs = term_idfs(passages, keys.texts)
        keys = keys.only(single_key(keys.offsets_P1, np.array([rarity(text, idfs) for text in keys.texts])))
    unit_ND = unit(keys.vectors_ND)

    def search(text: str, entity: Range | None, k: int) -> list[Hit]:
        if entity is None:
            return []
        (q_D,) = unit(model.encoder.queries(text, [entity]))
        scores_P = max_pool(q_D, unit_ND, keys.offsets_P1)
        best = np.argsort(-scores_P, kind="stable")[:k].tolist()
        return [Hit(passages[at], float(scores_P[at])) for at in best if scores_P[at] > -np.inf]

    return search


def idf(num_holding: int, num_passages: int) -> float:
    """ln((N − n + 0.5) / (n + 0.5)), as in Zero-NeR: without +1, so below 0 for a term in most of the passages."""
    return math.log((num_passages - num_holding + 0.5) / (num_holding + 0.5))


def term_idfs(passages: Iterable[Passage], wanted: Iterable[str]) -> dict[str, float]:
    """The IDF of each term of the texts `wanted`, cut as in the word index. Reads the passages once."""
    terms = {term for text in wanted for term in analyse(text)}
    counts, num_passages = Counter[str](), 0
    for passage in passages:
        found = analyse_apart(indexed_text(passage.title, passage.text))
        counts.update(terms.intersection(chain.from_iterable(found)))
        num_passages += 1
    return {term: idf(counts[term], num_passages) for term in terms}


def rarity(name: str, idfs: Mapping[str, float]) -> float:
    """The IDF of a name's rarest term (Zero-NeR, "Analysis": IDF_ent = max(5.8, 6.0) = 6.0); −inf without a term."""
    return max((idfs[term] for term in analyse(name)), default=-np.inf)


def rarity_groups(names: Sequence[str], idfs: Mapping[str, float], num_groups: int = NUM_GROUPS) -> dict[int, str]:
    """Questions, by their numbers, in groups of equal size (the first ones may have one more) by the rank of the rarity
    of their entities, whose names are given ("" if unknown).

    Questions of equal rarity keep their order, also across groups. Questions whose entity is unknown or has no terms
    are in no group.
    """
    value_N = np.array([rarity(name, idfs) for name in names])
    known_K = np.flatnonzero(value_N > -np.inf)
    if not len(known_K):
        raise InputError("no question whose entity is known; give the templates (--set templates=FILE)")
    ranked_K = known_K[np.argsort(value_N[known_K], kind="stable")]
    groups = np.array_split(ranked_K, min(num_groups, len(ranked_K)))
    return {
        number: f"rarity {at} of {len(groups)}, IDF {value_N[group[0]]:.2f} to {value_N[group[-1]]:.2f}"
        for at, group in enumerate(groups, start=1)
        for number in group.tolist()
    }


def picture_of(path: str | Path, questions: Sequence[EntityQuestion], model: ZeroNER) -> None:
    """Draw questions whose entity is known and, in the colour of their relation, the nearest key of each in a passage
    with an answer, among 2,000 of the model's keys in grey. Raises InputError as `picture` does."""
    if not questions:
        raise InputError("no covered question whose entity is known; give the templates, or a larger corpus")
    queries_QD = np.concatenate([model.encoder.queries(e.question.text, [e.entity]) for e in questions if e.entity])
    passages, keys = stored_keys(model)
    holding = holders([each.question for each in questions], (passage.text for passage in passages))
    rest = np.random.default_rng(0).choice(len(keys.texts), min(OTHERS, len(keys.texts)), replace=False)
    drawn, labels = [*rest.tolist()], [""] * len(rest)
    for at, (question, q_D) in enumerate(zip(questions, queries_QD, strict=True)):
        rows = [row for number in holding.get(at, ()) for row in range(*keys.offsets_P1[number : number + 2].tolist())]
        if rows:
            drawn.append(rows[int((keys.vectors_ND[rows] @ q_D).argmax())])
            labels.append(question.relation)
    picture(path, queries_QD, keys.vectors_ND[drawn], [question.relation for question in questions], labels)


def picture(
    path: str | Path, queries_QD: Vectors, keys_KD: Vectors, query_labels: Sequence[str], key_labels: Sequence[str]
) -> None:
    """Draw queries (stars) and keys (dots) in the plane, by UMAP of their cosines, and save the image.

    There is one colour per label, such as a relation or a class of names; "" is grey and not in the legend. Raises
    InputError if umap-learn or matplotlib is missing.
    """
    vectors_ND = np.concatenate([keys_KD, queries_QD])
    plane = check_installed()(n_neighbors=min(15, len(vectors_ND) - 1), metric="cosine", random_state=0, n_jobs=1)
    keys, queries = np.split(plane.fit_transform(vectors_ND), [len(keys_KD)])
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    axes = figure.add_subplot(xticks=[], yticks=[])
    names = sorted({*key_labels, *query_labels} - {""})
    colours = dict(zip(names, colormaps["turbo"](np.linspace(0.05, 0.95, len(names))), strict=True))
    for some, labels, size, marker in ((keys, key_labels, 10, "o"), (queries, query_labels, 90, "*")):
        for name in ["", *names]:
            chosen = np.array([label == name for label in labels], np.bool_)
            style = {"s": size, "marker": marker, "color": colours.get(name, "lightgrey")}
            axes.scatter(*some[chosen].T, edgecolors="white", linewidths=size / 200, **style)
    for name in names:
        axes.scatter([], [], color=colours[name], label=name)
    if names:
        figure.legend(loc="outside right upper")
    figure.savefig(path, dpi=150)


def check_installed() -> Any:
    """UMAP's class. Raises InputError if a package needed for drawing is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # about Tensorflow, which is not needed here
            from umap import UMAP
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(f"the picture needs {error.name}; pip install '.[eval]' in a clone of Quoth") from None
    return UMAP
