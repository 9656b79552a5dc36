"""Word senses: are a word's vectors in two texts similar if it means the same, and dissimilar if it does not?

Knows: MCL-WiC (Martelli et al. 2021), pairs of sentences with one word marked in each. Does not know: models.
NPM shows such similarities in figures 5 and 9; here they become one number.

Shape suffixes that differ from the project's: P pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.documents import read_records
from quoth.encoders.key_encoder import EncodedPassage
from quoth.errors import InputError
from quoth.types import Doubles

PAIRS_AT_A_TIME = 64


class Encoder(Protocol):
    """What the evaluation needs of an encoder: the tokens of texts and their vectors."""

    def passages(self, texts: Sequence[str], titles: Sequence[str]) -> list[EncodedPassage]: ...


@dataclass(frozen=True, slots=True)
class Pair:
    """A word in two sentences (text, start, end), and whether it means the same in both."""

    first: tuple[str, int, int]
    second: tuple[str, int, int]
    same: bool


@dataclass(frozen=True, slots=True)
class SenseScores:
    """Mean cosines of pairs with the same and with different meanings, and the accuracy of a threshold between them,
    which is fitted on the first half of the pairs and measured on the second."""

    num_pairs: int
    same: float
    different: float
    threshold: float
    accuracy: float


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs of an MCL-WiC file (JSONL). Raises InputError naming an invalid line."""
    pairs = []
    for line, record in read_records(path):
        try:
            first, second = (
                (str(record[f"sentence{i}"]), int(record[f"start{i}"]), int(record[f"end{i}"])) for i in (1, 2)
            )
            pairs.append(Pair(first, second, str(record["label"])[:1].upper() == "T"))
        except (KeyError, ValueError) as error:
            raise InputError(f"{path}:{line}: not a pair of MCL-WiC ({error}); fix or remove the line") from None
    return pairs


def similarities(encoder: Encoder, pairs: Sequence[Pair]) -> Doubles:
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


def sense_scores(cosine_P: Doubles, same_P: NDArray[np.bool_]) -> SenseScores:
    """Score cosines of pairs. Raises InputError for fewer than four pairs, or if all have the same label."""
    if len(cosine_P) < 4 or same_P.all() or not same_P.any():
        raise InputError(f"{len(cosine_P)} pairs; give four or more, with the same and with different meanings")
    half = len(cosine_P) // 2
    candidates = np.unique(cosine_P[:half])
    accuracies = [np.mean((cosine_P[:half] >= threshold) == same_P[:half]) for threshold in candidates]
    threshold = float(candidates[int(np.argmax(accuracies))])
    return SenseScores(
        len(cosine_P),
        float(cosine_P[same_P].mean()),
        float(cosine_P[~same_P].mean()),
        threshold,
        float(np.mean((cosine_P[half:] >= threshold) == same_P[half:])),
    )
