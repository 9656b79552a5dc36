"""Word senses: are a word's vectors in two texts similar if it means the same, and dissimilar if it does not?

Knows: MCL-WiC (Martelli et al. 2021), pairs of sentences with one word marked in each. Does not know: models.
NPM shows such similarities in figures 5 and 9; here they become numbers.

Shape suffixes that differ from the project's: P pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Doubles
from quoth.cli.models import load
from quoth.encoders.keys import EncodedPassage
from quoth.errors import InputError
from quoth.records import Prediction
from quoth_eval.spec import Given, Prepared, TaskSpec
from quoth_eval.task import Answer, Example, Scores, System, Task, draw
from quoth_eval.tasks.closed_files import parsed

PAIRS_AT_A_TIME = 64


@dataclass(frozen=True, slots=True)
class Pair:
    """A word in two sentences (text, start, end), and whether it means the same in both."""

    first: tuple[str, int, int]
    second: tuple[str, int, int]
    same: bool


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs of an MCL-WiC file (JSONL). Raises InputError naming an invalid line."""
    return list(parsed(path, _pair, "a pair of MCL-WiC"))


def _pair(record: Mapping[str, Any]) -> Pair:
    first, second = ((str(record[f"sentence{i}"]), int(record[f"start{i}"]), int(record[f"end{i}"])) for i in (1, 2))
    return Pair(first, second, str(record["label"])[:1].upper() == "T")


def similarities(encoder: Any, pairs: Sequence[Pair]) -> Doubles:
    """The cosine of the marked words' vectors, each the mean over its tokens: [P]."""
    cosines = []
    for first in range(0, len(pairs), PAIRS_AT_A_TIME):
        marked = [word for pair in pairs[first : first + PAIRS_AT_A_TIME] for word in (pair.first, pair.second)]
        encoded = encoder.passages([text for text, _, _ in marked], [""] * len(marked))
        words = [_mean(passage, start, end) for passage, (_, start, end) in zip(encoded, marked, strict=True)]
        cosines += [float(a @ b) for a, b in zip(words[::2], words[1::2], strict=True)]
    return np.array(cosines)


def _mean(passage: EncodedPassage, start: int, end: int) -> Doubles:
    inside_T = (passage.tokens.offsets_T2[:, 0] < end) & (passage.tokens.offsets_T2[:, 1] > start)
    if not inside_T.any():
        raise InputError(f"characters {start} to {end} contain no token; mark a word")
    mean_D = passage.vectors_TD[inside_T].astype(np.float64).mean(axis=0)
    unit_D: Doubles = mean_D / np.linalg.norm(mean_D)
    return unit_D


def senses_task(pairs: Sequence[Pair], limit: int | None = None, seed: int = 0) -> tuple[Task[Pair], Sequence[Pair]]:
    """Do pairs above a threshold on the cosine mean the same? The task has the second half of the pairs, or `limit` of
    them, with the mean cosines of pairs of the same and of different meanings; the threshold is fitted on the first
    half, which is returned as well. Raises InputError."""
    same_P = np.array([pair.same for pair in pairs])
    if len(pairs) < 4 or same_P.all() or not same_P.any():
        raise InputError(f"{len(pairs)} pairs; give four or more, with the same and with different meanings")
    first, second = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
    examples = []
    for number, pair in enumerate(second, start=len(first)):
        marked = (f"{text[:start]}[{text[start:end]}]{text[end:]}" for text, start, end in (pair.first, pair.second))
        means = _meaning(pair.same)
        examples.append(Example(str(number), " / ".join(marked), (means,), pair, {"meaning": means}))
    drawn, settings = draw(examples, limit, seed), {"num_fitted": len(first)}
    return Task(name="senses", examples=drawn, judge=_judge, settings=settings, at_a_time=PAIRS_AT_A_TIME), first


def _judge(example: Example[Pair], answer: Answer) -> Scores:
    (said,) = answer.predictions or ()
    return {"accuracy": float(said.text in example.answers), **answer.scores}


def _meaning(same: bool) -> str:
    return "same" if same else "different"


def above_threshold(encoder: Any, fitted: Sequence[Pair]) -> System[Pair]:
    """Says whether pairs have a cosine of at least the threshold that is right for most of `fitted`."""
    threshold = fit_threshold(similarities(encoder, fitted), np.array([pair.same for pair in fitted]))

    def answer(examples: Sequence[Example[Pair]]) -> list[Answer]:
        cosines = similarities(encoder, [example.source for example in examples]).tolist()
        said = [Prediction(_meaning(cosine >= threshold), cosine, 0.0, ()) for cosine in cosines]
        return [Answer([each], scores={"cosine": cosine}) for each, cosine in zip(said, cosines, strict=True)]

    return answer


def fit_threshold(cosine_P: Doubles, same_P: NDArray[np.bool_]) -> float:
    """The least of the cosines at and above which calling a pair the same is right most often."""
    candidates = np.unique(cosine_P)
    accuracies = [np.mean((cosine_P >= threshold) == same_P) for threshold in candidates]
    return float(candidates[int(np.argmax(accuracies))])


def _make(given: Given, settings: object) -> Prepared:
    task, fitted = senses_task([pair for path in given.files for pair in read_pairs(path)], given.limit, given.seed)
    return Prepared(task=task, asks=lambda name, options: above_threshold(load(name, [], given.setup).encoder, fitted))


SPECS = [TaskSpec(name="senses", make=_make, form="senses", files="mcl_wic/*.jsonl*", takes_files=True)]
