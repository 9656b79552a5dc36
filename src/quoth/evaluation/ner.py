"""Named entities: which of a file's spans does a tagger find?

Knows: exact match of spans and classes, as conlleval and seqeval count it. Does not know: models, dates by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from quoth.datasets.conll import read_conll
from quoth.records import TaggedSpan

ALL, SPANS = "all", "spans"
TEXTS_AT_A_TIME = 64


class Names(Protocol):
    """What is asked of a tagger."""

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]: ...


@dataclass(frozen=True, slots=True)
class TagScore:
    """How many spans there are, were found, and were found rightly. `label` is a class, "all" for all with their
    classes, or "spans" for all with their classes left aside."""

    label: str
    num_gold: int
    num_found: int
    num_right: int

    @property
    def precision(self) -> float:
        """The share of what was found that is right; 0 where nothing was found."""
        return self.num_right / self.num_found if self.num_found else 0.0

    @property
    def recall(self) -> float:
        """The share of what there is that was found; 0 where there is nothing."""
        return self.num_right / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.num_gold + self.num_found
        return 2 * self.num_right / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The counts and the three shares."""
        counts = {"gold": self.num_gold, "found": self.num_found, "right": self.num_right}
        return {"label": self.label, **counts, "precision": self.precision, "recall": self.recall, "f1": self.f1}


def tag_scores(gold: Sequence[Sequence[TaggedSpan]], found: Sequence[Sequence[TaggedSpan]]) -> list[TagScore]:
    """The scores of texts' spans: all, spans alone, then each class. A span is right if start, end and class are."""
    wanted = {(i, each.start, each.end, each.label) for i, spans in enumerate(gold) for each in spans}
    given = {(i, each.start, each.end, each.label) for i, spans in enumerate(found) for each in spans}
    scores = [
        _score(ALL, wanted, given),
        _score(SPANS, {each[:3] for each in wanted}, {each[:3] for each in given}),
    ]
    for label in sorted({each[3] for each in wanted | given}):
        of_class = [{each for each in spans if each[3] == label} for spans in (wanted, given)]
        scores.append(_score(label, *of_class))
    return scores


def _score(label: str, wanted: set[Any], given: set[Any]) -> TagScore:
    return TagScore(label, len(wanted), len(given), len(wanted & given))


def run_ner(files: Sequence[str], tagger: Names, progress: Callable[[int, int], None] | None = None) -> list[TagScore]:
    """Tag each sentence of CoNLL files (`read_conll`) by itself. Raises InputError naming a broken line."""
    sentences = [sentence for file in files for document in read_conll(file) for sentence in document]
    found: list[list[TaggedSpan]] = []
    for at in range(0, len(sentences), TEXTS_AT_A_TIME):
        found += tagger.names([each.text for each in sentences[at : at + TEXTS_AT_A_TIME]])
        if progress is not None:
            progress(len(found), len(sentences))
    return tag_scores([each.spans for each in sentences], found)
