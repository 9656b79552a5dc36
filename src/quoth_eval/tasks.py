"""The tasks of the papers by name: `quoth eval run sst2 nq --data DIR`.

Knows: where a task's files are in a folder of data, and how models of different kinds are asked. Does not know: how a
model or a corpus is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from pathlib import Path
from sys import maxsize
from typing import TYPE_CHECKING, Any

from quoth.datasets.blanks import KINDS, draw_blanks
from quoth.datasets.closed import (
    FORMATS,
    ClosedSet,
    LabelledText,
    find_file,
    find_files,
    read_closed_set,
    read_labelled,
)
from quoth.datasets.kamel import FILE as KAMEL_FILE
from quoth.datasets.kamel import SOURCE as KAMEL_SOURCE
from quoth.datasets.kamel import read_kamel
from quoth.datasets.questions import QAExample, read_questions
from quoth.datasets.translation import Translation, find_translations
from quoth.errors import InputError
from quoth.text.tokenizer import MASK
from quoth_eval.baselines import bm25_phrases, frequent_phrases
from quoth_eval.closed import (
    PRIOR_TEXTS,
    ClosedOptions,
    WordScorer,
    always,
    batch_calibrated,
    closed_task,
    labels,
    labels_of_nearest,
    likely_labels,
    pmi,
)
from quoth_eval.cloze import cloze_task
from quoth_eval.families import BLANKS, CLOSED, OPEN
from quoth_eval.harness import lazily
from quoth_eval.lama import Fact, judge, lama_task, read_facts, read_templates
from quoth_eval.openqa import KS, READ, find_answerable, openqa_task
from quoth_eval.system import BM25, Completer, asks, completes, fills, phrases
from quoth_eval.task import Answer, Example, System, Task, draw_as_released, draw_of_each

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

_DPR = "https://github.com/facebookresearch/DPR (question, tab, list of answers)"
QUESTIONS = {
    "nq-dev": ("open_qa/nq.dev.tsv", f"NQ-open's development side, data.retriever.qas.nq-dev of {_DPR}"),
    "nq": ("open_qa/nq.test.tsv", f"NQ-open's test side, data.retriever.qas.nq-test of {_DPR}"),
    "triviaqa": ("open_qa/trivia.test.tsv", f"TriviaQA's test side, data.retriever.qas.trivia-test of {_DPR}"),
    "webquestions": ("open_qa/wq.test.tsv", "WebQuestions' test side as question, tab, list of answers"),
    "curatedtrec": ("open_qa/curated.test.tsv", "CuratedTREC's test side as id, kind, question, pattern"),
}
"""Each set's file, and what it is, by the set's name."""
FACTS = {"google-re": "lama/Google_RE", "trex": "lama/TREx"}
"""The folders of LAMA's facts, by the set's name."""
_LAMA = "it is in the data.zip of https://github.com/facebookresearch/LAMA (JSONL of facts), to be unpacked as lama"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "closed": tuple(FORMATS),
    "sentiment": ("sst2", "mr", "rt", "cr", "amazon"),
    "open": ("nq", "triviaqa", "webquestions", "curatedtrec", "kamel"),
    "facts": tuple(FACTS),
}
MADE = CLOZE, TRANSLATION = ("cloze", "translation")
"""Tasks that are made from the corpus."""
NAMES = (*FORMATS, *QUESTIONS, "kamel", *FACTS, *MADE)
BASELINES = MAJORITY, SEARCH, FREQUENT = ("majority", "bm25", "frequent")
ORACLE = "oracle"
"""The option of a system that is shown the passage with the answer."""
LABELLED = "labelled"
"""The option of a system whose labels are voted by so many of the nearest labelled texts."""
TEMPLATE = "template"
CLOSED_OPTIONS = (TEMPLATE, "calibration", LABELLED)
QUESTIONS_AT_A_TIME = 16
"""Language models answer these together."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a task: its data, the corpora, how many examples are drawn with which seed (None: all)."""

    data: Path | None
    corpora: tuple[Corpus, ...]
    limit: int | None
    seed: int = 0
    coverage: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """A name whose spelling is asked for, and the text of the passage that states it."""

    translation: Translation
    passage: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task, how a loaded model is asked (with the options of `ask`, and of closed sets), its baselines, its form as
    `families` names it, and the options that it gives an NPM beyond those of `fill`."""

    task: Task[Any]
    system: Callable[[Any, Mapping[str, Any], ClosedOptions], System[Any]]
    baselines: Mapping[str, System[Any]] = field(default_factory=dict)
    form: str = BLANKS
    options: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether texts are labelled."""
        return self.form == CLOSED

    @property
    def hides(self) -> bool:
        """Whether passages are hidden, which are known by their rows in the whole corpus."""
        return any(example.hidden for example in self.task.examples)


def expand(names: Sequence[str]) -> list[str]:
    """The tasks of names and groups, each once. Raises InputError on an unknown name."""
    if unknown := [name for name in names if name not in NAMES and name not in GROUPS]:
        known = f"{', '.join(NAMES)}; groups: {', '.join(GROUPS)}"
        raise InputError(f"unknown task {unknown[0]!r}; choose from {known}; or a command of quoth eval --help")
    return list(dict.fromkeys(task for name in names for task in GROUPS.get(name, (name,))))


def prepare(name: str, wanted: Wanted, options: Mapping[str, Any] | None = None) -> Prepared:
    """A task from its files; its settings include the `options` that all systems get.

    Raises InputError, naming the file and where it can be had, if one is missing.
    """
    searched: dict[str, Any] = {
        "options": dict(options or {}),
        "corpora": [corpus.path.name for corpus in wanted.corpora],
        "num_passages": sum(corpus.num_passages for corpus in wanted.corpora),
    }
    settings = {"limit": wanted.limit, "seed": wanted.seed, **searched}
    if name == TRANSLATION:
        return Prepared(_translation(wanted, settings), _fills, options=(ORACLE,))
    if name == CLOZE:
        return _cloze(wanted, settings)
    check_data(name, wanted.data)
    assert wanted.data is not None
    if name in FORMATS:
        closed = read_closed_set(wanted.data, name)
        task = closed_task(closed, wanted.limit, wanted.seed)
        task = replace(task, settings={**task.settings, **searched})
        baselines: Mapping[str, System[Any]] = {MAJORITY: always(_majority(task))}
        # Drawn, since a file may list one class after another; the texts of any larger limit begin with these.
        prior = closed_task(closed, min(wanted.limit or PRIOR_TEXTS, PRIOR_TEXTS), wanted.seed).examples
        return Prepared(task, partial(_labels, closed, wanted.data, prior), baselines, CLOSED, CLOSED_OPTIONS)
    if name in FACTS:
        return Prepared(_facts(name, wanted.data, wanted, settings), _fills)
    questions = draw_as_released(_questions(name, wanted.data), wanted.limit, wanted.seed)
    covered = find_answerable(questions, wanted.corpora) if wanted.coverage else None
    settings["num_answerable"] = None if covered is None else len(covered)
    asked = openqa_task(questions, settings, covered=covered, name=name)
    asked = replace(asked, at_a_time=QUESTIONS_AT_A_TIME)
    return Prepared(asked, _asks, {SEARCH: asks(BM25(wanted.corpora), max(KS), {})}, OPEN, (TEMPLATE,))


def check_data(name: str, data: Path | None) -> None:
    """Raises InputError if no folder is named for a task that is read from files; it says which, and where they are."""
    if data is not None or name in MADE:
        return
    if name in FORMATS:
        file, source = FORMATS[name].file, FORMATS[name].source
    elif name in FACTS:
        file, source = FACTS[name], _LAMA
    elif name == "kamel":
        file, source = KAMEL_FILE, KAMEL_SOURCE
    else:
        file, source = QUESTIONS[name][0], f"it is {QUESTIONS[name][1]}"
    raise InputError(f"{name} is read from DIR/{file}; name DIR with --data. If you do not have it: {source}")


def _questions(name: str, data: Path) -> list[QAExample]:
    if name == "kamel":
        return read_kamel(data)
    file, what = QUESTIONS[name]
    return read_questions(find_file(data, file, f"it is {what}"))


def _labels(
    closed: ClosedSet,
    data: Path,
    prior: Sequence[Example[LabelledText]],
    model: Any,
    options: Mapping[str, Any],
    scoring: ClosedOptions,
) -> System[Any]:
    if k := options.get(LABELLED):
        return labels_of_nearest(model, read_labelled(data, closed.name), list(closed.words), k, scoring.temperature)
    if isinstance(model, WordScorer):
        system: System[Any] = likely_labels(model, closed.words, options)
    else:
        system = labels(model, closed.words, scoring)
    match options.get("calibration"):
        case "pmi":
            return pmi(system, closed.prompt)
        case "batch":
            return batch_calibrated(system, prior)
    return system


def _asks(model: Any, options: Mapping[str, Any], scoring: ClosedOptions) -> System[Any]:
    if isinstance(model, Completer):
        return completes(model, max(*KS, READ), options)
    if "lexical" in options:
        model = model.with_lexical(options["lexical"], options.get("mu", 1.0))
    elif "mu" in options:
        model = model.with_bm25(options["mu"])
    return asks(model, max(*KS, READ), options)


def _cloze(wanted: Wanted, settings: Mapping[str, Any]) -> Prepared:
    """Phrases that recur in the corpus, half of each kind."""
    if len(wanted.corpora) != 1:
        raise InputError(f"cloze draws its blanks from one corpus, not {len(wanted.corpora)}; name one --corpus")
    (corpus,) = wanted.corpora
    count = maxsize if wanted.limit is None else ceil(wanted.limit / len(KINDS))
    passages = list(corpus.passages())
    blanks = [blank for kind in KINDS for blank in draw_blanks(passages, kind, count, wanted.seed)][: wanted.limit]
    baselines = {
        FREQUENT: lazily(lambda: phrases(frequent_phrases(corpus))),
        SEARCH: phrases(bm25_phrases(corpus)),
    }
    return Prepared(cloze_task(blanks, settings), _fills, baselines)


def _facts(name: str, data: Path, wanted: Wanted, settings: Mapping[str, Any]) -> Task[Fact]:
    """LAMA's facts as blanks."""
    facts = read_facts(find_files(data, FACTS[name], _LAMA))
    relations = find_file(data, "lama/relations.jsonl", _LAMA) if name == "trex" else None
    drawn = draw_as_released(facts, wanted.limit, wanted.seed)
    return lama_task(name, drawn, read_templates(relations), settings)


def _translation(wanted: Wanted, settings: Mapping[str, Any]) -> Task[Asked]:
    """The names that the searched documents spell in other scripts; `limit` of each language."""
    found = [each for corpus in wanted.corpora for each in find_translations(corpus.documents())]
    drawn = draw_of_each(found, wanted.limit, wanted.seed, lambda each: each.language)
    if not drawn:
        raise InputError("no document spells its title in another script: 'Athens (Greek: Αθήνα)'; search others")
    passages = (passage for corpus in wanted.corpora for passage in corpus.passages())
    first = {passage.document_id: passage.text for passage in passages if passage.start == 0}
    examples = [
        Example(
            f"{each.document_id}-{each.language}",
            f"The {each.language} translation of {each.name} is: {MASK}.",
            (each.spelling,),
            Asked(each, first[each.document_id]),
            {"language": each.language},
        )
        for each in drawn
    ]
    return Task(name=TRANSLATION, examples=examples, judge=judge, settings=settings, macro=("language",), at_a_time=32)


def _fills(model: Any, options: Mapping[str, Any], scoring: ClosedOptions) -> System[Asked]:
    """A model's best phrases for blanks; with the option `oracle` (names in other scripts), from a passage that states
    the answer."""
    told = {name: value for name, value in options.items() if name not in (ORACLE, TEMPLATE)}
    if not options.get(ORACLE):
        return fills(model, told)

    def answer(examples: Sequence[Example[Asked]]) -> list[Answer]:
        # BM25's best passage for a passage's own text is that passage.
        texts, passages = [each.text for each in examples], [each.source.passage for each in examples]
        return [Answer(found) for found in model.fill(texts, searched=passages, **{**told, "passages": 1})]

    return answer


def _majority(task: Task[Any]) -> str:
    """The label that most of the texts have, which no system can know: the best that a constant answer can do."""
    return str(Counter(example.source.label for example in task.examples).most_common(1)[0][0])
