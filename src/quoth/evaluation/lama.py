"""LAMA: facts asked with templates (Petroni et al. 2019; NPM §6.1, App. B).

Knows: the files of T-REx and Google-RE, how a fact becomes a blank, and the scores reported. Does not know: how a
model answers.

The model searches either a given corpus or the facts' own evidence, in which every answer occurs: say so next to the
number. Distractor documents show how much the evidence helps.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol, TypeVar

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_records
from quoth.datasets.answers import exact_match, first
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.evaluation.cloze import Blank, words
from quoth.evaluation.metrics import ALL, GroupScore, group_scores, markdown, percent
from quoth.evaluation.openqa import draw
from quoth.evaluation.run import Filler, ProgressCallback, ask_system, embed_if_wanted, model_answers
from quoth.records import Document
from quoth.tokenizers.text import MASK

TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}
"""The templates of Google-RE, as in LAMA."""

TOKENS = ("1", "2", "3", "4+")
"""Groups of answers by their number of tokens, as in the released code."""
MOST_TOKENS = len(TOKENS)

_Asked = TypeVar("_Asked")


class Model(Filler, Protocol):
    """A `Filler` that also counts the tokens of a phrase."""

    def num_tokens(self, phrase: str) -> int: ...


Load = Callable[[str, Sequence[Corpus]], Model]


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, relation and object of a fact, and texts that state it."""

    id: str
    relation: str
    subject: str
    answer: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LamaReport:
    """The settings and the scores: over all facts, by the number of tokens of the answer, and by relation."""

    model: str
    num_passages: int
    seed: int
    options: Mapping[str, Any]
    whole: GroupScore
    by_tokens: tuple[GroupScore, ...]
    by_relation: tuple[GroupScore, ...]

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores, without the individual facts and answers."""
        return {
            "model": self.model,
            "num_facts": self.whole.num_blanks,
            "num_passages": self.num_passages,
            "seed": self.seed,
            "options": dict(self.options),
            "scores": [asdict(score) for score in (self.whole, *self.by_tokens, *self.by_relation)],
            "macro": {
                name: {"exact_match": exact, "hit_at_5": hits}
                for name, (exact, hits) in {
                    "tokens": macro(self.by_tokens),
                    "relations": macro(self.by_relation),
                }.items()
            },
        }


def macro(groups: Sequence[GroupScore]) -> tuple[float, float]:
    """Exact match and hit@5 as means over the groups, whatever their size."""
    return fmean(score.exact_match for score in groups), fmean(score.hit_at_5 for score in groups)


def read_facts(paths: Sequence[str | Path]) -> list[Fact]:
    """The facts in LAMA's files (JSONL). Raises InputError naming an invalid line."""
    facts = []
    for path in paths:
        for line, record in read_records(path):
            try:
                facts.append(_fact(record))
            except (KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{path}:{line}: not a fact of T-REx or Google-RE (no {error})") from None
    return facts


def _fact(record: Mapping[str, Any]) -> Fact:
    relation = record["predicate_id"] if "predicate_id" in record else record["pred"].rpartition("/")[2]
    texts = [
        source["snippet"] if "snippet" in source else source["masked_sentence"].replace(MASK, source["obj_surface"])
        for source in record["evidences"]
    ]
    return Fact(record["uuid"], relation, record["sub_label"], record["obj_label"], tuple(dict.fromkeys(texts)))


def read_templates(path: str | Path | None) -> dict[str, str]:
    """The templates by relation, with [X] for the subject and [Y] for the object; those of Google-RE are built in."""
    listed = {} if path is None else {str(r["relation"]): str(r["template"]) for _, r in read_records(path)}
    return TEMPLATES | listed


def blanks(facts: Sequence[Fact], templates: Mapping[str, str]) -> list[Blank]:
    """Each fact as a blank whose kind is its relation. Raises InputError on a relation without a template."""
    asked = []
    for fact in facts:
        if fact.relation not in templates:
            raise InputError(f"relation {fact.relation!r} has no template; name the file with --templates")
        text = templates[fact.relation].replace("[X]", fact.subject).replace("[Y]", MASK)
        asked.append(Blank(fact.relation, -1, fact.id, text, fact.answer, len(words(fact.answer))))
    return asked


def draw_of_each(
    asked: Sequence[_Asked], limit: int | None, seed: int, group: Callable[[_Asked], object]
) -> list[_Asked]:
    """Up to `limit` items per group (None: all), drawn at random, in the groups' order of appearance. What is drawn
    from one group does not depend on the others."""
    if limit is None:
        return list(asked)
    if limit < 1:
        raise InputError(f"limit is {limit}; it must be 1 or more facts per group")
    groups: defaultdict[object, list[_Asked]] = defaultdict(list)
    for item in asked:
        groups[group(item)].append(item)
    return [item for members in groups.values() for item in draw(members, limit, seed)]


def run_lama(
    facts: Sequence[Fact],
    templates: Mapping[str, str],
    model: str,
    load: Load,
    *,
    corpora: Sequence[Corpus] = (),
    distractors: Sequence[str] = (),
    per_relation: int | None = None,
    per_group: int | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> LamaReport:
    """Ask a model for facts over corpora, or over the facts' evidence and the distractor documents.

    Up to `per_relation` facts per relation are drawn with `seed`, and of these up to `per_group` per number of tokens
    of the answer (1, 2, 3, 4 and more), as the model counts them. An answer is right if it equals the object by SQuAD's
    rules (ignoring case, articles and punctuation). `load` makes a model from a name and corpora; `options` are those
    of its `fill`. Raises InputError.
    """
    if not facts:
        raise InputError("no facts to ask for; give the files of T-REx or Google-RE")
    if corpora and distractors:
        raise InputError("distractors are only for searching the facts' evidence; leave them out, or the corpus")
    drawn = draw_of_each(facts, per_relation, seed, lambda fact: fact.relation)
    asked = blanks(drawn, templates)
    with _searched(drawn, corpora, distractors) as searched:
        filler = load(model, searched)
        if not corpora:
            embed_if_wanted(filler, options)
        asked = draw_of_each(asked, per_group, seed, lambda blank: min(filler.num_tokens(blank.answer), MOST_TOKENS))
        answers = ask_system(model, model_answers(filler, options), asked, progress)
        num_passages = sum(corpus.num_passages for corpus in searched)
    ranks = [_rank(blank.answer, given) for blank, given in zip(asked, answers, strict=True)]
    num_tokens = [filler.num_tokens(blank.answer) for blank in asked]
    scores = group_scores([blank.kind for blank in asked], num_tokens, ranks)
    by_group = {(score.kind, score.length): score for score in scores}
    by_tokens = tuple(by_group[ALL, length] for length in TOKENS if (ALL, length) in by_group)
    by_relation = tuple(score for score in scores if score.kind != ALL and score.length == ALL)
    return LamaReport(model, num_passages, seed, options, by_group[ALL, ALL], by_tokens, by_relation)


@contextmanager
def _searched(facts: Sequence[Fact], corpora: Sequence[Corpus], distractors: Sequence[str]) -> Iterator[list[Corpus]]:
    """The given corpora or, if there are none, a temporary one of the facts' evidence and the distractors."""
    if corpora:
        yield list(corpora)
        return
    with tempfile.TemporaryDirectory(prefix="quoth-lama-") as folder:
        corpus = Corpus.create(Path(folder) / "evidence.quoth")
        corpus.add(chain(_evidence(facts), _renamed(distractors)))
        yield [corpus]


def _rank(answer: str, given: Sequence[str]) -> int | None:
    """The rank of the first right answer, from 0; None if none is right."""
    question = QAExample("", "", (answer,))
    return first(exact_match(text, question) for text in given)


def _evidence(facts: Sequence[Fact]) -> Iterator[Document]:
    """Each distinct text as a document, titled with its first fact's subject."""
    titles: dict[str, str] = {}
    for fact in facts:
        for text in fact.evidence:
            titles.setdefault(text, fact.subject)
    return (Document(f"evidence-{i}", title, text) for i, (text, title) in enumerate(titles.items()))


def _renamed(paths: Sequence[str]) -> Iterator[Document]:
    documents = read_documents(*paths) if paths else ()
    return (Document(f"distractor-{i}", document.title, document.text) for i, document in enumerate(documents))


def table(report: LamaReport) -> str:
    """The scores as a Markdown table, percentages: all facts, by tokens and their mean, by relation and their mean."""
    rows = [_row(ALL, report.whole)]
    rows += [_row(f"{score.length} token{'' if score.length == '1' else 's'}", score) for score in report.by_tokens]
    rows.append(["mean of these", "", *map(percent, macro(report.by_tokens))])
    rows += [_row(score.kind, score) for score in report.by_relation]
    rows.append(["mean of the relations", "", *map(percent, macro(report.by_relation))])
    return markdown([f"passages: {report.num_passages:,}", "facts", "exact match %", "hit@5 %"], rows)


def _row(name: str, score: GroupScore) -> list[str]:
    return [name, f"{score.num_blanks:,}", percent(score.exact_match), percent(score.hit_at_5)]
