"""Labels of words to spans and back, and the best labels that fit each other."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.ner.tags import best_labels, bio_labels, labels_of_spans, parse_label, spans_of_labels
from quoth.records import TaggedSpan

WORDS = [(0, 3), (4, 6), (6, 7), (8, 12)]
BIO = bio_labels(["LOC", "PER"])


def test_labels() -> None:
    assert BIO == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert [parse_label(each) for each in ("O", "B-PER", "I-PER", "PER", "creative-work", "S-LOC", "L-LOC")] == [
        (False, ""),
        (True, "PER"),
        (False, "PER"),
        (False, "PER"),
        (False, "creative-work"),
        (True, "LOC"),
        (False, "LOC"),
    ]


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("O O O O", []),
        ("B-PER I-PER O B-LOC", [(0, 6, "PER"), (8, 12, "LOC")]),
        ("B-PER B-PER I-PER I-LOC", [(0, 3, "PER"), (4, 7, "PER"), (8, 12, "LOC")]),
        ("I-PER I-PER O I-PER", [(0, 6, "PER"), (8, 12, "PER")]),
        ("PER PER LOC O", [(0, 6, "PER"), (6, 7, "LOC")]),
    ],
)
def test_spans_by_hand(labels: str, spans: list[tuple[int, int, str]]) -> None:
    assert spans_of_labels(WORDS, labels.split()) == [TaggedSpan(*each) for each in spans]


def test_labels_by_hand() -> None:
    spans = [TaggedSpan(1, 6, "PER"), TaggedSpan(6, 7, "LOC")]
    assert labels_of_spans(WORDS, spans) == ["B-PER", "I-PER", "B-LOC", "O"]


def test_the_best_labels_fit_each_other() -> None:
    scores = np.log(np.array([[0.6, 0.3, 0, 0.1, 0], [0.3, 0.05, 0, 0.05, 0.6]], np.float32) + 1e-9)
    assert best_labels(scores, BIO) == ["O", "O"]
    assert best_labels(np.zeros((0, 5), np.float32), BIO) == []
    assert best_labels(np.eye(3, dtype=np.float32)[[1, 2, 1]], ["O", "PER", "LOC"]) == ["PER", "LOC", "PER"]
    assert best_labels(np.eye(2, dtype=np.float32)[[1, 1, 0]], ["O", "I-PER"]) == ["I-PER", "I-PER", "O"]


@given(st.lists(st.lists(st.floats(-5, 0, width=16), min_size=5, max_size=5), min_size=1, max_size=4))
def test_the_best_labels_are_those_of_trying_all(scores: list[list[float]]) -> None:
    def fits(path: tuple[int, ...]) -> bool:
        before = "O"
        for label in (BIO[i] for i in path):
            if label.startswith("I-") and before[2:] != label[2:]:
                return False
            before = label
        return True

    def total(path: tuple[int, ...]) -> float:
        return sum(row[i] for row, i in zip(scores, path, strict=True))

    best = max(total(path) for path in product(range(5), repeat=len(scores)) if fits(path))
    found = tuple(BIO.index(each) for each in best_labels(np.array(scores, np.float32), BIO))
    assert fits(found)
    assert total(found) == pytest.approx(best, abs=1e-4)
