"""Named entities: which of a file's spans does a tagger find?

Knows: exact match of spans and classes, as in conlleval and seqeval. Does not know: models, dates by rule.
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
    """What the evaluation needs of a tagger."""

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]: ...


@dataclass(frozen=True, slots=True)
class TagScore:
    """The numbers of gold spans, of spans found, and of right ones among these.

    `label` is a class, "all" for all spans, or "spans" for all spans without regard to their classes.
    """

    label: str
    num_gold: int
    num_found: int
    num_right: int

    @property
    def precision(self) -> float:
        """The share of the spans found that are right; 0 if none were found."""
        return self.num_right / self.num_found if self.num_found else 0.0

    @property
    def recall(self) -> float:
        """The share of the gold spans that were found; 0 if there are none."""
        return self.num_right / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.num_gold + self.num_found
        return 2 * self.num_right / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The counts, precision, recall and F1."""
        counts = {"gold": self.num_gold, "found": self.num_found, "right": self.num_right}
        return {"label": self.label, **counts, "precision": self.precision, "recall": self.recall, "f1": self.f1}


def tag_scores(gold: Sequence[Sequence[TaggedSpan]], found: Sequence[Sequence[TaggedSpan]]) -> list[TagScore]:
    """The scores over all spans, over spans without classes, then per class. A span is right if its start, end and
    class are."""
    wanted = {(i, span.start, span.end, span.label) for i, spans in enumerate(gold) for span in spans}
    given = {(i, span.start, span.end, span.label) for i, spans in enumerate(found) for span in spans}
    scores = [
        _score(ALL, wanted, given),
        _score(SPANS, {span[:3] for span in wanted}, {span[:3] for span in given}),
    ]
    for label in sorted({span[3] for span in wanted | given}):
        of_class = [{span for span in spans if span[3] == label} for spans in (wanted, given)]
        scores.append(_score(label, *of_class))
    return scores


def _score(label: str, wanted: set[Any], given: set[Any]) -> TagScore:
    return TagScore(label, len(wanted), len(given), len(wanted & given))


def run_ner(files: Sequence[str], tagger: Names, progress: Callable[[int, int], None] | None = None) -> list[TagScore]:
    """Tag the sentences of CoNLL files (`read_conll`) one by one. Raises InputError naming an invalid line."""
    sentences = [sentence for file in files for document in read_conll(file) for sentence in document]
    found: list[list[TaggedSpan]] = []
    for at in range(0, len(sentences), TEXTS_AT_A_TIME):
        found += tagger.names([sentence.text for sentence in sentences[at : at + TEXTS_AT_A_TIME]])
        if progress is not None:
            progress(len(found), len(sentences))
    return tag_scores([sentence.spans for sentence in sentences], found)
