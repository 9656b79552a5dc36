"""Small key tables with known words and vectors, for the tests of what is built upon them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quoth.answers.evidence import propose
from quoth.answers.options import ResolvedOptions
from quoth.index.key_table import KeyHits, KeyTable
from quoth.index.vectors import Quantizer, Spread
from quoth.npm.phrases import ScoredPhrases
from quoth.records import Passage, Prediction
from quoth.text.boundaries import MAY_END, MAY_START, SPACE_BEFORE


@dataclass(frozen=True)
class ArrayVectors:
    """Vectors held in an array, at scale 1."""

    c_ND: NDArray[np.float32]

    def similarities(self, q_QD: NDArray[np.float32], rows_R: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        return q_QD @ (self.c_ND if rows_R is None else self.c_ND[rows_R]).T


@dataclass(frozen=True)
class OneDocument:
    """What prediction asks of a corpus: passages, here ranges of one text, their rows from `first_row` on."""

    name: str
    text: str
    ranges: list[tuple[int, int]]
    first_row: int

    def passage(self, row: int) -> Passage:
        start, end = self.ranges[row - self.first_row]
        return Passage(row, f"{self.name}-document", self.name.title(), self.text[start:end], start, end)


def word_group(word: str) -> int:
    """The group of a lower-case word of up to 8 bytes."""
    return int.from_bytes(word.encode()[:8], "little") * 2654435761 % (1 << 64)


def word_table(
    passages: list[str],
    vectors: Any,
    *,
    name: str = "corpus",
    flags: Any = None,
    live: Any = None,
    first_row: int = 100,
) -> KeyTable:
    """Passages of words, a token each; "a-b" is a and b with no white space between.

    Words equal but for case are one group; token ids follow the groups. Boundaries default to everywhere.
    """
    text, ranges, offsets, tokens = "Head. ", [], [0], []
    for passage in passages:
        words = list(re.finditer(r"[^\s-]+", passage))
        for word, previous in zip(words, [None, *words], strict=False):
            gap = passage[previous.end() : word.start()] if previous else ""
            place = (len(text) + word.start(), len(text) + word.end())
            tokens.append((*place, word.group().lower(), gap != "" and gap.isspace()))
        ranges.append((len(text), len(text) + len(passage)))
        text += passage + "\n"
        offsets.append(len(tokens))
    group = [word_group(word) for _, _, word, _ in tokens]
    flag_N = np.full(len(tokens), MAY_START | MAY_END) if flags is None else np.asarray(flags)
    flag_N = flag_N | np.array([SPACE_BEFORE * space for *_, space in tokens], np.int64)
    return KeyTable(
        corpus=cast(Any, OneDocument(name, text, ranges, first_row)),
        passage_rows_P=np.arange(len(passages)) + first_row,
        offsets_P1=np.array(offsets, np.int64),
        origin_P=np.array([start for start, _ in ranges], np.int64),
        ids_N=np.array([value % 1000003 for value in group], np.int32),
        start_N=np.array([start for start, *_ in tokens], np.int32),
        end_N=np.array([end for _, end, *_ in tokens], np.int32),
        group_N=np.array(group, np.uint64),
        flags_N=flag_N.astype(np.uint8),
        vectors=ArrayVectors(
            np.asarray(vectors, np.float32).reshape(len(tokens), np.shape(vectors)[-1] if np.ndim(vectors) > 1 else 1)
        ),
        live_P=None if live is None else np.asarray(live, bool),
    )


def predict_phrases(
    hits: list[KeyHits], q_start_D: Any, q_end_D: Any, options: ResolvedOptions | None = None
) -> list[Prediction]:
    """The phrases that fill the blank, best first, each with its best occurrences among the candidates."""
    options = options or ResolvedOptions()
    return [each.whole() for each in propose(ScoredPhrases(hits, q_start_D, q_end_D, options), options)]


def fitted(sample_ND: NDArray[np.float32], bits: int = 8) -> Quantizer:
    """A quantizer for the range of a sample's numbers."""
    spread = Spread(sample_ND.shape[1])
    spread.add(sample_ND)
    return Quantizer.fitting(spread, bits)
