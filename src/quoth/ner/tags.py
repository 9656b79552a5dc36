"""Labels of words and the spans of text they mark, in the schemes that taggers use.

Knows: BIO, IO (only a class name, or only I-) and the rarer BIOES and BILOU. Does not know: models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from quoth.records import TaggedSpan

OUTSIDE = "O"
_STARTS, _CONTINUES = ("B", "S", "U"), ("I", "E", "L")


def bio_labels(classes: Iterable[str]) -> tuple[str, ...]:
    """`O`, then `B-` and `I-` of each class."""
    return (OUTSIDE, *(f"{place}-{name}" for name in classes for place in "BI"))


def parse_label(label: str) -> tuple[bool, str]:
    """Whether a label starts a span whatever label precedes it, and its class ("" for `O`)."""
    place, dash, rest = label.partition("-")
    if label == OUTSIDE:
        return False, ""
    if dash and rest and place in _STARTS + _CONTINUES:
        return place in _STARTS, rest
    return False, label


def spans_of_labels(words: Sequence[tuple[int, int]], labels: Sequence[str]) -> list[TaggedSpan]:
    """The spans that the labels of words mark: a span continues over words of its class that do not start another."""
    spans: list[TaggedSpan] = []
    previous = ""
    for (start, end), label in zip(words, labels, strict=True):
        starts, kind = parse_label(label)
        if kind:
            first = spans.pop().start if kind == previous and not starts else start
            spans.append(TaggedSpan(first, end, kind))
        previous = kind
    return spans


def labels_of_spans(words: Sequence[tuple[int, int]], spans: Iterable[TaggedSpan]) -> list[str]:
    """Each word's BIO label, from the span that it overlaps. The spans must not overlap each other."""
    labels = [OUTSIDE] * len(words)
    for span in spans:
        inside = [i for i, (start, end) in enumerate(words) if start < span.end and end > span.start]
        for i in inside:
            labels[i] = f"{'B' if i == inside[0] else 'I'}-{span.label}"
    return labels


def best_labels(scores_WL: NDArray[np.float32], labels: Sequence[str]) -> list[str]:
    """The labels of a text's words with the greatest sum of log probabilities in which every `I-` continues a span of
    its class (Viterbi). If no label starts a span (IO), simply each word's best label."""
    if not len(scores_WL):
        return []
    penalty_LL = _forbidden(labels)
    best_L = scores_WL[0] + penalty_LL[labels.index(OUTSIDE) if OUTSIDE in labels else 0]
    back: list[NDArray[np.int64]] = []
    for scores_L in scores_WL[1:]:
        reached_LL = best_L[:, None] + penalty_LL
        back.append(reached_LL.argmax(axis=0))
        best_L = reached_LL.max(axis=0) + scores_L
    path = [int(best_L.argmax())]
    for from_L in reversed(back):
        path.append(int(from_L[path[-1]]))
    return [labels[i] for i in reversed(path)]


def _forbidden(labels: Sequence[str]) -> NDArray[np.float32]:
    """Minus infinity for pairs whose second label must not follow the first, else 0: [L, L]."""
    parsed = [parse_label(label) for label in labels]
    started = {kind for starts, kind in parsed if starts}
    table = np.zeros((len(labels), len(labels)), np.float32)
    for i, (_, before) in enumerate(parsed):
        for j, (starts, kind) in enumerate(parsed):
            if kind in started and not starts and kind != before:
                table[i, j] = -np.inf
    return table
