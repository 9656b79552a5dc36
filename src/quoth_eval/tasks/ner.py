"""Named entities: which of a file's spans does a tagger find?

Knows: exact match of spans and classes, as in conlleval and seqeval. Does not know: models, dates by rule.

F1 over all names is the mean of the sentences' F1, each weighted by its number of names, right and found:
Σ 2r / Σ (g + f) = Σ (g + f) · 2r / (g + f) / Σ (g + f). Precision is weighted by f, recall by g.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quoth.cli.models import quiet_libraries
from quoth.ner.data import read_conll
from quoth.ner.tagger import Tagger
from quoth.records import Prediction, TaggedSpan, TaggedText
from quoth_eval.spec import Given, Options, Prepared, TaskSpec
from quoth_eval.task import Answer, Example, Scores, System, Task, draw

ALL_RIGHT = "all_names_right"
TEXTS_AT_A_TIME = 64


def f1_scores(gold: Sequence[TaggedSpan], found: Sequence[TaggedSpan]) -> tuple[Scores, Scores]:
    """One sentence's scores, and their weights: F1, precision and recall of its names, whose start, end and class must
    be right, F1 without regard to the class, then F1 of each class. What there is nothing of has no score."""
    wanted, given = ({(span.start, span.end, span.label) for span in spans} for spans in (gold, found))
    right = len(wanted & given)
    shares = {
        "f1": (2 * right, len(wanted) + len(given)),
        "precision": (right, len(given)),
        "recall": (right, len(wanted)),
        "f1_without_class": _doubled({span[:2] for span in wanted}, {span[:2] for span in given}),
    }
    for label in sorted({label for *_, label in wanted | given}):
        shares[f"f1_{label}"] = _doubled(*({span for span in spans if span[2] == label} for spans in (wanted, given)))
    scores = {measure: part / whole for measure, (part, whole) in shares.items() if whole}
    weights = {measure: float(whole) for measure, (_, whole) in shares.items() if whole}
    return {**scores, ALL_RIGHT: float(wanted == given)}, weights


def _doubled(wanted: set[Any], given: set[Any]) -> tuple[int, int]:
    return 2 * len(wanted & given), len(wanted) + len(given)


def ner_task(files: Sequence[str], limit: int | None = None, seed: int = 0) -> Task[TaggedText]:
    """The sentences of CoNLL files (`read_conll`) with their names, `limit` drawn at random (None: all). Raises
    InputError naming an invalid line."""
    sentences = [sentence for file in files for document in read_conll(file) for sentence in document]
    examples = [
        Example(str(number), sentence.text, (_shown(sentence.text, sentence.spans),), sentence)
        for number, sentence in enumerate(sentences, start=1)
    ]
    settings = {"files": [Path(file).name for file in files], "limit": limit, "seed": seed}
    drawn = draw(examples, limit, seed)
    return Task(
        name="ner", examples=drawn, judge=lambda _, answer: answer.scores, settings=settings, at_a_time=TEXTS_AT_A_TIME
    )


def tags(tagger: Any) -> System[TaggedText]:
    """A tagger's names in each sentence, as one answer."""

    def answer(examples: Sequence[Example[TaggedText]]) -> list[Answer]:
        answers = []
        for example, spans in zip(examples, tagger.names([example.text for example in examples]), strict=True):
            scores, weights = f1_scores(example.source.spans, spans)
            said = Prediction(_shown(example.text, spans), 0.0, 0.0, ())
            answers.append(Answer([said], scores=scores, weights=weights))
        return answers

    return answer


def _shown(text: str, spans: Sequence[TaggedSpan]) -> str:
    return ", ".join(f"{text[span.start : span.end]} ({span.label})" for span in spans) or "no name"


def _make(given: Given, settings: object) -> Prepared:
    def asked(name: str, options: Options) -> System[TaggedText]:
        quiet_libraries()
        return tags(Tagger.load(name, given.setup.device, base=given.setup.base))

    task = ner_task(given.files, given.limit, given.seed)
    return Prepared(task=task, asks=asked, tables=lambda report: [report.measure_table()])


SPECS = [
    TaskSpec(
        name="ner", make=_make, form="names", systems=("quoth-tagger",), files="ner/*.conll*:test", takes_files=True
    )
]
