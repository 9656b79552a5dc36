"""LAMA: facts that a template asks for (Petroni et al. 2019; NPM §6.1, App. B).

Knows: the files of T-REx and Google-RE, how a fact becomes a blank, and the scores reported. Does not know: how a
model answers.

What is searched is a corpus of one's own, or the facts' own evidence, in which every answer stands: say so next to the
number. Distractor documents show how much that helps.
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
from quoth.datasets.questions import Question
from quoth.errors import InputError
from quoth.evaluation.cloze import Blank, words
from quoth.evaluation.metrics import ALL, GroupScore, group_scores, markdown, percent
from quoth.evaluation.openqa import draw
from quoth.evaluation.run import Filler, Progress, ask_system, embed_if_wanted, model_answers
from quoth.records import Document
from quoth.tokenizers.text import MASK

TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}
"""Google-RE's, as LAMA writes them."""

TOKENS = ("1", "2", "3", "4+")
"""The groups of answers, by their number of tokens (the released code's)."""
MOST_TOKENS = len(TOKENS)

_Asked = TypeVar("_Asked")


class Model(Filler, Protocol):
    """What is asked: as `Filler`, and it counts its tokens of a phrase."""

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
    """What was asked, how, and the scores: of all facts, by their answers' number of tokens, by relation."""

    model: str
    num_passages: int
    seed: int
    options: Mapping[str, Any]
    whole: GroupScore
    by_tokens: tuple[GroupScore, ...]
    by_relation: tuple[GroupScore, ...]

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores; not the single facts and answers."""
        return {
            "model": self.model,
            "num_facts": self.whole.num_blanks,
            "num_passages": self.num_passages,
            "seed": self.seed,
            "options": dict(self.options),
            "scores": [asdict(each) for each in (self.whole, *self.by_tokens, *self.by_relation)],
            "macro": {
                name: {"exact_match": exact, "hit_at_5": hits}
                for name, (exact, hits) in {
                    "tokens": macro(self.by_tokens),
                    "relations": macro(self.by_relation),
                }.items()
            },
        }


def macro(groups: Sequence[GroupScore]) -> tuple[float, float]:
    """Exact match and hit@5, the means over the groups, whatever their size."""
    return fmean(each.exact_match for each in groups), fmean(each.hit_at_5 for each in groups)


def read_facts(paths: Sequence[str | Path]) -> list[Fact]:
    """The facts of LAMA's files (JSONL). Raises InputError naming a broken line."""
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
        each["snippet"] if "snippet" in each else each["masked_sentence"].replace(MASK, each["obj_surface"])
        for each in record["evidences"]
    ]
    return Fact(record["uuid"], relation, record["sub_label"], record["obj_label"], tuple(dict.fromkeys(texts)))


def read_templates(path: str | Path | None) -> dict[str, str]:
    """The relations' templates, with [X] for the subject and [Y] for the object; Google-RE's are known."""
    listed = {} if path is None else {str(r["relation"]): str(r["template"]) for _, r in read_records(path)}
    return TEMPLATES | listed


def blanks(facts: Sequence[Fact], templates: Mapping[str, str]) -> list[Blank]:
    """Each fact as a blank whose kind is its relation. Raises InputError on a relation without a template."""
    drawn = []
    for fact in facts:
        if fact.relation not in templates:
            raise InputError(f"relation {fact.relation!r} has no template; name the file with --templates")
        text = templates[fact.relation].replace("[X]", fact.subject).replace("[Y]", MASK)
        drawn.append(Blank(fact.relation, -1, fact.id, text, fact.answer, len(words(fact.answer))))
    return drawn


def draw_of_each(
    asked: Sequence[_Asked], limit: int | None, seed: int, group: Callable[[_Asked], object]
) -> list[_Asked]:
    """Up to `limit` of each group (None: all), at random, in the groups' order of appearance; what is drawn of one
    does not depend on the others."""
    if limit is None:
        return list(asked)
    if limit < 1:
        raise InputError(f"limit is {limit}; allowed is 1 or more facts of each group")
    groups: defaultdict[object, list[_Asked]] = defaultdict(list)
    for each in asked:
        groups[group(each)].append(each)
    return [each for members in groups.values() for each in draw(members, limit, seed)]


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
    progress: Progress | None = None,
    **options: Any,
) -> LamaReport:
    """Ask a model facts over corpora, or over the facts' evidence and the distractor documents.

    Of each relation up to `per_relation` facts are drawn by `seed`, and of these up to `per_group` of each number of
    tokens, as the model counts an answer's (1, 2, 3, 4 and more). An answer is right where it equals the object as
    SQuAD compares them (case, articles and punctuation aside). `load` makes a model of a name and corpora; `options`
    are those of its `fill`. Raises InputError.
    """
    if not facts:
        raise InputError("no fact to ask; give the files of T-REx or Google-RE")
    if corpora and distractors:
        raise InputError("distractors stand beside the facts' evidence, which is not searched in a corpus of your own")
    drawn = draw_of_each(facts, per_relation, seed, lambda fact: fact.relation)
    asked = blanks(drawn, templates)
    with _searched(drawn, corpora, distractors) as searched:
        filler = load(model, searched)
        if not corpora:
            embed_if_wanted(filler, options)
        asked = draw_of_each(asked, per_group, seed, lambda blank: min(filler.num_tokens(blank.answer), MOST_TOKENS))
        answers = ask_system(model, model_answers(filler, options), asked, progress)
        num_passages = sum(each.num_passages for each in searched)
    ranks = [_rank(blank.answer, given) for blank, given in zip(asked, answers, strict=True)]
    num_tokens = [filler.num_tokens(blank.answer) for blank in asked]
    scores = group_scores([blank.kind for blank in asked], num_tokens, ranks)
    found = {(each.kind, each.length): each for each in scores}
    by_tokens = tuple(found[ALL, each] for each in TOKENS if (ALL, each) in found)
    by_relation = tuple(each for each in scores if each.kind != ALL and each.length == ALL)
    return LamaReport(model, num_passages, seed, options, found[ALL, ALL], by_tokens, by_relation)


@contextmanager
def _searched(facts: Sequence[Fact], corpora: Sequence[Corpus], distractors: Sequence[str]) -> Iterator[list[Corpus]]:
    """The corpora given; where none is, one of the facts' evidence and the distractors, for as long as it is used."""
    if corpora:
        yield list(corpora)
        return
    with tempfile.TemporaryDirectory(prefix="quoth-lama-") as folder:
        corpus = Corpus.create(Path(folder) / "evidence.quoth")
        corpus.add(chain(_evidence(facts), _renamed(distractors)))
        yield [corpus]


def _rank(answer: str, given: Sequence[str]) -> int | None:
    """Where the first answer given that is right stands, from 0."""
    question = Question("", "", (answer,))
    return first(exact_match(each, question) for each in given)


def _evidence(facts: Sequence[Fact]) -> Iterator[Document]:
    """Each text once, under its first fact's subject."""
    titles: dict[str, str] = {}
    for fact in facts:
        for text in fact.evidence:
            titles.setdefault(text, fact.subject)
    return (Document(f"evidence-{i}", title, text) for i, (text, title) in enumerate(titles.items()))


def _renamed(paths: Sequence[str]) -> Iterator[Document]:
    found = read_documents(*paths) if paths else ()
    return (Document(f"distractor-{i}", each.title, each.text) for i, each in enumerate(found))


def table(report: LamaReport) -> str:
    """The scores as a Markdown table, percentages: all facts, by tokens and their mean, by relation and their mean."""
    rows = [_row(ALL, report.whole)]
    rows += [_row(f"{each.length} token{'' if each.length == '1' else 's'}", each) for each in report.by_tokens]
    rows.append(["mean of these", "", *map(percent, macro(report.by_tokens))])
    rows += [_row(each.kind, each) for each in report.by_relation]
    rows.append(["mean of the relations", "", *map(percent, macro(report.by_relation))])
    return markdown([f"passages: {report.num_passages:,}", "facts", "exact match %", "hit@5 %"], rows)


def _row(name: str, score: GroupScore) -> list[str]:
    return [name, f"{score.num_blanks:,}", percent(score.exact_match), percent(score.hit_at_5)]
