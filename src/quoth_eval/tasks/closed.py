"""Closed sets: does a model give a text the right label? (NPM, Min et al. 2022, §5, app. A.4.)

Knows: the three published ways to score labels by a corpus, labels by the likelihood of their words, calibration. Does
not know: files of texts, language models.

The equation of appendix A.4 sums over all occurrences of a label's words; §5.3 searches for the k nearest tokens only;
the released code sums over the tokens of both searches, each by itself, with the temperature applied twice.

Shape suffixes: B texts, C occurrences, D dimensions, W words.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from statistics import fmean
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import log_sum_exp
from quoth.answers.options import Temperature
from quoth.answers.ranking import Occurrences
from quoth.arrays import Doubles, Floats
from quoth.errors import InputError, TextCutWarning
from quoth.fields import Checked, Count
from quoth.index.search import search_together
from quoth.index.vectors import KeyVectors
from quoth.npm.labels import WordSpans, find_words, rank_labels, score_words, usable_words
from quoth.npm.phrases import scaled_similarities
from quoth.records import Prediction
from quoth_eval.harness import EVIDENCE
from quoth_eval.spec import CLOSED, Given, Options, Prepared, TaskSpec
from quoth_eval.task import Answer, Example, Scores, Source, System, Task, draw_as_released
from quoth_eval.tasks.closed_files import FORMATS, ClosedSet, LabelledText, read_closed_set, read_labelled

SAMPLE = 3000
"""The number of texts that the paper draws from each set, with seed 0."""
TEXTS_AT_A_TIME = 16
ENCODED_AT_A_TIME = 256
"""Labelled texts."""
SCORES_AT_A_TIME = 1 << 23
"""Places of words, each for every text: half a gigabyte in all."""
PRIOR_TEXTS = 256
"""The number of texts from which a system's preference for labels is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedOptions(Checked):
    """How labels are scored. Raises InputError."""

    scoring: Annotated[
        Literal["all", "nearest", "released"],
        "Sum over all places of a label's words (NPM, app. A.4), over those with an end among the `k` nearest tokens "
        "(A.4 with §5.3), or as in the released code.",
    ] = "all"
    label_temperature: Annotated[Temperature, "Divides similarities."] = 5.0
    k: Annotated[Count, "Number of nearest tokens."] = 4096


def closed_task(closed: ClosedSet, limit: int | None = SAMPLE, seed: int = 0) -> Task[LabelledText]:
    """The texts that the released code draws, or all if `limit` is None, to be labelled."""
    drawn = draw_as_released(closed.texts, limit, seed)
    examples = [Example(each.id, each.text, (each.label,), each, {"label": each.label}) for each in drawn]
    words = {label: len(words) for label, words in closed.words.items()}
    settings = {"limit": limit, "seed": seed, "words": words}
    return Task(name=closed.name, examples=examples, judge=_judge, settings=settings, at_a_time=TEXTS_AT_A_TIME)


def _judge(example: Example[LabelledText], answer: Answer) -> Scores:
    best = answer.predictions[0] if answer.predictions else None
    return {"accuracy": float(best is not None and best.text == example.source.label)}


def labels(model: Any, words: Mapping[str, Sequence[str]], options: ClosedOptions) -> System[Source]:
    """An NPM's labels, best first, with places of their words."""
    scorer = LabelScorer(model, words, options)
    return lambda examples: list(map(Answer, scorer.rank(_blanks(model, [example.text for example in examples]))))


def _blanks(model: Any, texts: Sequence[str]) -> Floats:
    """The start and end queries of texts' blanks: [2, B, D]."""
    with warnings.catch_warnings():
        # The paper keeps the last 256 tokens of a text, which are those around its blank.
        warnings.simplefilter("ignore", TextCutWarning)
        return np.stack(model.encoder.blanks(texts), axis=1)


def labels_of_nearest(
    model: Any, labelled: Sequence[LabelledText], names: Sequence[str], k: int, temperature: float
) -> System[Source]:
    """A supervised system on the same vectors: the k labelled texts whose blanks are nearest vote for their labels,
    score(y | text) = log Σ exp(sim / τ) / n_y, where sim adds the similarities of both blanks' start and end vectors
    and n_y is the number of texts with that label: no label wins because more texts have it.

    A nearest-neighbour classifier in the manner of kNN-LM (Khandelwal et al. 2020) and of NPM's app. A.4; the paper has
    none. A text is never its own neighbour.
    """
    log_count = {y: math.log(max(sum(each.label == y for each in labelled), 1)) for y in names}

    def blanks(texts: Sequence[str]) -> Floats:
        return np.concatenate(_blanks(model, texts), axis=1)

    @cache
    def keys() -> KeyVectors:
        texts = [each.text for each in labelled]
        parts = [blanks(texts[at : at + ENCODED_AT_A_TIME]) for at in range(0, len(texts), ENCODED_AT_A_TIME)]
        return KeyVectors(np.concatenate(parts), model.encoder.scale)

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        sim_BN = keys().similarities(blanks([example.text for example in examples])).astype(np.float64) / temperature
        return [Answer(_best_first(votes(example.text, s_N))) for example, s_N in zip(examples, sim_BN, strict=True)]

    def votes(text: str, s_N: Doubles) -> dict[str, float]:
        others = [at for at in np.argsort(-s_N, kind="stable")[: k + 1] if labelled[at].text != text][:k]
        return {y: log_sum_exp(s_N[[at for at in others if labelled[at].label == y]] - log_count[y]) for y in names}

    return answer


def likely_labels(
    model: Any, words: Mapping[str, Sequence[str]], options: Mapping[str, Any] | None = None
) -> System[Source]:
    """A model's labels, best first: score(y | text) = log Σ p(w | text) over the label's words w (NPM, app. A.4)."""
    given = list(dict.fromkeys(word for several in words.values() for word in several if word.strip()))

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        scores_BW: Doubles = model.word_scores([example.text for example in examples], given, options or {})
        columns = {label: [at for at, word in enumerate(given) if word in its] for label, its in words.items()}
        if lost := [label for label, its in columns.items() if np.isneginf(scores_BW[:, its]).all()]:
            raise InputError(f"label {', '.join(lost)}: the model knows none of its words; leave the model out")
        sums = ({label: log_sum_exp(scores_W[its]) for label, its in columns.items()} for scores_W in scores_BW)
        return [Answer(_best_first(each)) for each in sums]

    return answer


def pmi(system: System[Source], prompt: str) -> System[Source]:
    """A system's labels by domain-conditional pointwise mutual information.

    PMI_DC(y, text) = log (p(y | text) / p(y | prompt)) = score(y | text) − score(y | prompt), where the prompt is the
    template without the text: a label does not win because its words are frequent. Source: Holtzman et al. 2021,
    "Surface Form Competition", §3. Raises InputError if a label has no score for the prompt.
    """

    def before() -> dict[str, float]:
        example: Example[Any] = Example("prompt", prompt, (), None)
        (answer,) = system([example])
        return {each.text: each.log_score for each in answer.predictions or ()}

    return _calibrated("pmi", system, before, f"score for {prompt!r}")


def batch_calibrated(system: System[Source], examples: Sequence[Example[Source]]) -> System[Source]:
    """A system's labels without what it prefers whatever the text is, as seen in texts whose labels it is not told.

    BC(y, text) = score(y | text) − log mean_x p(y | x) over these texts x, where p(y | x) is a label's share of all
    labels' scores. Source: Zhou et al. 2024, "Batch Calibration", §3. Raises InputError if a label has no share of any.
    """

    def before() -> dict[str, float]:
        parts = [examples[at : at + TEXTS_AT_A_TIME] for at in range(0, len(examples), TEXTS_AT_A_TIME)]
        answers = [answer.predictions or () for part in parts for answer in system(part)]
        share = {
            each.text: fmean(p.probability for a in answers for p in a if p.text == each.text) for each in answers[0]
        }
        return {label: math.log(mean) if mean else -np.inf for label, mean in share.items()}

    return _calibrated("batch", system, before, f"share of {len(examples)} texts")


def _calibrated(
    name: str, system: System[Source], before: Callable[[], Mapping[str, float]], what: str
) -> System[Source]:
    """The system, each label's score less that of `before`, which is called once and needs `what` of each label."""

    @cache
    def prior() -> Mapping[str, float]:
        found = before()
        if lost := [label for label, score in found.items() if score == -np.inf]:
            told = f"calibration={name}: label {', '.join(lost)} has no {what}"
            raise InputError(f"{told}; use --set scoring=all, or a larger k")
        return found

    def calibrated(answer: Answer) -> Answer:
        given = {each.text: each for each in answer.predictions or ()}
        best = _best_first({label: each.log_score - prior()[label] for label, each in given.items()})
        return Answer([replace(each, evidence=given[each.text].evidence) for each in best])

    return lambda examples: [calibrated(answer) for answer in system(examples)]


def _best_first(scores: Mapping[str, float]) -> list[Prediction]:
    """Labels by their scores, each with its share; ties in their own order."""
    total = log_sum_exp(np.array(list(scores.values())))
    shares = {label: float(np.exp(score - total)) if total > -np.inf else 0.0 for label, score in scores.items()}
    return [Prediction(label, scores[label], shares[label], ()) for label in sorted(scores, key=lambda y: -scores[y])]


class LabelScorer:
    """Ranks labels for queries over the tokens of an NPM's corpora. The places of the labels' words are found once."""

    def __init__(self, model: Any, words: Mapping[str, Sequence[str]], options: ClosedOptions) -> None:
        """Raises InputError if vectors are missing, or if the words of a label cannot be used or do not occur."""
        self._options, self._single, self._names = options, model.single, list(words)
        self._tables = model.tables()
        phrase = model.encoder.tokenizer.phrase
        groups = {label: [phrase(word).group_T for word in given] for label, given in words.items()}
        # The released code takes words of one token only.
        usable = usable_words(groups, model.single or options.scoring == "released")
        self._found = [find_words(table, usable) for table in self._tables]
        present = np.unique(np.concatenate([spans.label_C for spans in self._found]))
        if absent := [name for number, name in enumerate(self._names) if number not in present]:
            raise InputError(f"no word of label {', '.join(absent)} occurs in the corpus; give it another corpus")

    def rank(self, queries_2BD: Floats) -> Iterator[list[Prediction]]:
        """For each blank the labels, best first. If no word is among the k nearest, they are in their own order, with
        probability 0."""
        num_texts = queries_2BD.shape[1]
        if self._options.scoring == "all":
            size = max(1, SCORES_AT_A_TIME // max(sum(len(spans.label_C) for spans in self._found), 1))
            for at in range(0, num_texts, size):
                yield from self._scored(self._found, queries_2BD[:, at : at + size])
            return
        every_hits = search_together(self._tables, [()] * num_texts, queries_2BD, self._options.k)
        for number, hits in enumerate(every_hits):
            pairs = list(zip(self._found, hits, strict=True))
            starts = [np.isin(spans.start_C, near.start_rows) for spans, near in pairs]
            ends = [np.isin(spans.end_C, near.end_rows) for spans, near in pairs]
            if self._options.scoring == "released":
                yield self._released(queries_2BD[:, number], self._only(starts), self._only(ends))
            else:
                kept = starts if self._single else [start | end for start, end in zip(starts, ends, strict=True)]
                yield from self._scored(self._only(kept), queries_2BD[:, number : number + 1])

    def _only(self, kept: Sequence[NDArray[np.bool_]]) -> list[WordSpans]:
        """In each corpus, the places of words that are kept."""
        return [
            WordSpans(spans.start_C[kept_C], spans.end_C[kept_C], spans.label_C[kept_C])
            for spans, kept_C in zip(self._found, kept, strict=True)
        ]

    def _scored(self, found: Sequence[WordSpans], queries_2BD: Floats) -> Iterator[list[Prediction]]:
        end_BD = None if self._single else queries_2BD[1]
        for places in score_words(self._tables, found, queries_2BD[0], end_BD, self._options.label_temperature):
            yield self._ranked(found, places)

    def _released(self, queries_2D: Floats, starts: Sequence[WordSpans], ends: Sequence[WordSpans]) -> list[Prediction]:
        """Each search's tokens count by themselves. NPM divides by the temperature twice, NPM-single once.

        Source: `get_all_scores` and `get_knn_scores` of facebookresearch/NPM, npm/npm.py and npm/npm_single.py.
        """
        tau = self._options.label_temperature ** (1 if self._single else 2)
        searches = list(zip(queries_2D, (starts, ends), strict=True))[: 1 if self._single else 2]
        parts = [(n, q_D, found[n]) for n in range(len(self._tables)) for q_D, found in searches]
        places = Occurrences(
            self._tables,
            np.repeat([n for n, _, _ in parts], [len(spans.start_C) for _, _, spans in parts]),
            np.concatenate([spans.start_C for _, _, spans in parts]),
            np.concatenate([spans.end_C for _, _, spans in parts]),
            np.concatenate([scaled_similarities(self._tables[n], q_D, spans.start_C, tau) for n, q_D, spans in parts]),
        )
        return self._ranked([spans for _, _, spans in parts], places)

    def _ranked(self, found: Sequence[WordSpans], places: Occurrences) -> list[Prediction]:
        label_C = np.concatenate([spans.label_C for spans in found])
        if not len(label_C):
            return [Prediction(name, -np.inf, 0.0, ()) for name in self._names]
        return rank_labels(self._names, label_C, places, EVIDENCE)


def _make(name: str, given: Given, settings: ClosedOptions) -> Prepared:
    data = given.folder(name, FORMATS[name].file, FORMATS[name].source)
    closed = read_closed_set(data, name)
    given.searched()
    task = closed_task(closed, given.limit, given.seed)
    options = {**given.options, **asdict(settings)}
    task = replace(task, settings={**given.settings(), **task.settings, "options": options})
    # Drawn, since a file may list one class after another; the texts of any larger limit begin with these.
    prior = closed_task(closed, min(given.limit or PRIOR_TEXTS, PRIOR_TEXTS), given.seed).examples

    def asked(name: str, options: Options) -> System[LabelledText]:
        model = given.open(name, given.corpora, {**options, "passages": None})  # every token
        if k := options.get("labelled"):
            labelled = read_labelled(data, closed.name)
            return labels_of_nearest(model, labelled, list(closed.words), k, settings.label_temperature)
        system: System[LabelledText]
        scored = hasattr(model, "word_scores")
        system = likely_labels(model, closed.words, options) if scored else labels(model, closed.words, settings)
        match options.get("calibration"):
            case "pmi":
                return pmi(system, closed.prompt)
            case "batch":
                return batch_calibrated(system, prior)
        return system

    # No system can know the label that most of the texts have: the best that a constant answer can do.
    ((most, _),) = Counter(example.source.label for example in task.examples).most_common(1)

    def majority(examples: Sequence[Example[LabelledText]]) -> list[Answer]:
        return [Answer([Prediction(most, 0.0, 1.0, ())]) for _ in examples]

    return Prepared(task=task, asks=asked, baselines={"majority": lambda _: majority})


SPECS = [
    TaskSpec(
        name=name,
        settings=ClosedOptions,
        make=partial(_make, name),
        form=CLOSED,
        systems=("quoth-mini", "majority"),
        baselines=("majority",),
        options=("calibration", "labelled"),
        limit=SAMPLE,
    )
    for name in FORMATS
]
