"""A task: what is asked, and how an answer is judged.

Knows: examples, answers, how examples are drawn. Does not know: systems, corpora, how scores are reported.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from quoth.datasets.judging import normalise
from quoth.errors import InputError
from quoth.records import Passage, Prediction

HITS = 5
Source = TypeVar("Source")
Drawn = TypeVar("Drawn")
Scores = Mapping[str, float]
"""What one example adds to the mean of each measure, by its name."""


@dataclass(frozen=True, slots=True)
class Example(Generic[Source]):
    """One thing to ask: its text as the task spells it, and the answers that count as right.

    `groups` name the groups it belongs to, one per dimension ({"relation": "P36"}). `hidden` are rows of passages that
    may not be searched. `pattern` says that the answers are regular expressions. `source` is the record that it was
    made from.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    source: Source
    groups: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    pattern: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system says: predictions, best first (None: it only searches), the passages that it found, best first, and
    scores that only the system can know, for the judge. `weights` say how much the example counts in a measure's mean,
    above 0, where that is not 1."""

    predictions: Sequence[Prediction] | None = None
    passages: Sequence[Passage] = ()
    scores: Scores = field(default_factory=dict)
    weights: Scores = field(default_factory=dict)


System = Callable[[Sequence[Example[Source]]], Sequence[Answer]]
"""Answers examples, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Generic[Source]):
    """Examples and their judge, whose first measure is the main one.

    `settings` are what the examples were made from; a run resumes only with the same. `macro` are the dimensions of
    groups whose mean is reported as well. `at_a_time` examples are asked together, sorted by `order`.
    """

    name: str
    examples: Sequence[Example[Source]]
    judge: Callable[[Example[Source], Answer], Scores]
    settings: Mapping[str, Any] = field(default_factory=dict)
    macro: Sequence[str] = ()
    at_a_time: int = 1
    order: Callable[[Example[Source]], Any] | None = None


def first_right(right: Sequence[bool]) -> Scores:
    """Exact match and hit@5 of one example, from which of its predictions are right, best first."""
    return {"exact_match": float(any(right[:1])), "hit_at_5": float(any(right[:HITS]))}


def recalls(name: str, place: int | None, ks: Sequence[int]) -> dict[str, float]:
    """Whether the first right passage, at a place from 0 (None: none is right), is among the best k."""
    return {f"{name}@{k}": float(place is not None and place < k) for k in ks}


def draw(items: Sequence[Drawn], limit: int | None, seed: int) -> list[Drawn]:
    """Up to `limit` items drawn at random (None: all), in their order; a smaller limit draws a subset of a larger
    one's. Raises InputError on a limit below 1."""
    order = list(range(len(items)))
    random.Random(seed).shuffle(order)
    return [items[i] for i in sorted(order[: _checked(limit)])]


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}; it must be 1 or more")
    return limit


def draw_of_each(items: Sequence[Drawn], limit: int | None, seed: int, group: Callable[[Drawn], object]) -> list[Drawn]:
    """`draw` from each group, in the groups' order of appearance. What is drawn from one group does not depend on the
    others."""
    if limit is None:
        return list(items)
    groups: defaultdict[object, list[Drawn]] = defaultdict(list)
    for item in items:
        groups[group(item)].append(item)
    return [item for members in groups.values() for item in draw(members, limit, seed)]


def draw_as_released(items: Sequence[Drawn], limit: int | None, seed: int = 0) -> list[Drawn]:
    """The items that NPM's released code draws: the first `limit` of numpy's permutation (None: all, in order).

    Source: `task/task.py` of facebookresearch/NPM, with seed 0 and 3,000.
    """
    if limit is None:
        return list(items)
    return [items[i] for i in np.random.RandomState(seed).permutation(len(items))[: _checked(limit)]]


def said(phrase: str, answer: Answer) -> list[bool]:
    """Of an answer's predictions, which are this phrase, ignoring case and the amount of white space."""
    wanted = normalise(phrase)
    return [normalise(prediction.text) == wanted for prediction in answer.predictions or ()]


def length_groups(length: int, unit: str) -> dict[str, str]:
    """The groups of an answer by its number of words or tokens: 1, 2, 3, 4+, and 2+."""
    name = f"4+ {unit}" if length >= 4 else f"{length} {unit if length > 1 else unit.removesuffix('s')}"
    return {unit: name} | ({f"several {unit}": f"2+ {unit}"} if length > 1 else {})


def percent(share: float) -> str:
    return f"{100 * share:.1f}"
