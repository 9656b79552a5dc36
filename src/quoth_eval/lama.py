"""LAMA: facts asked with templates (Petroni et al. 2019; NPM §6.1, App. B).

Knows: the files of T-REx and Google-RE, and how a fact becomes a blank. Does not know: how a model answers.

The model searches either a given corpus or the facts' own evidence, in which every answer occurs: a report must say
which. Distractor documents show how much the evidence helps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_records
from quoth.datasets.judging import exact_match
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.tokenizer import MASK
from quoth_eval.harness import ProgressCallback, evaluate
from quoth_eval.metrics import length_groups
from quoth_eval.report import Report
from quoth_eval.system import Filler, embed_if_wanted, fills
from quoth_eval.task import Answer, Example, Scores, Task, draw_of_each, first_right

TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}
"""The templates of Google-RE, as in LAMA."""
MOST_TOKENS = 4
"""Answers of this many tokens or more are one group, as in the released code."""
FACTS_AT_A_TIME = 32


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


def unhelpful(facts: Sequence[Fact]) -> list[Fact]:
    """LAMA-UHN's first filter: the facts whose subject does not contain the object's characters, ignoring case.

    Its second filter asks BERT for each name's usual places, so these are more facts than UHN's.
    Source: Poerner et al. 2019, "BERT is Not a Knowledge Base (Yet)"; NPM's released `task/create_lama_uhn.py`.
    """
    return [fact for fact in facts if fact.answer.lower() not in fact.subject.lower()]


def listed(facts: Sequence[Fact], path: str | Path) -> list[Fact]:
    """The facts that a list has too, by relation, subject and object: T-REx Hard (Zhong et al. 2021), or the published
    UHN.

    The list is a JSONL file, or a folder of such files, with `sub_label`, `obj_label` and `predicate_id`; without the
    last, the relation is the file's name (P17.jsonl). Raises InputError naming an invalid line, or if no fact is left.
    """
    folder = Path(path)
    keys = set()
    for file in sorted(folder.glob("*.jsonl*")) if folder.is_dir() else [folder]:
        for line, record in read_records(file):
            try:
                relation = record.get("predicate_id", file.name.partition(".")[0])
                keys.add((relation, record["sub_label"], record["obj_label"]))
            except (KeyError, AttributeError) as error:
                raise InputError(f"{file}:{line}: not a fact with sub_label and obj_label (no {error})") from None
    kept = [fact for fact in facts if (fact.relation, fact.subject, fact.answer) in keys]
    if not kept:
        raise InputError(
            f"{path}: none of its {len(keys):,} facts is among those to ask; name the list of the same set"
        )
    return kept


def read_templates(path: str | Path | None) -> dict[str, str]:
    """The templates by relation, with [X] for the subject and [Y] for the object; those of Google-RE are built in."""
    listed = {} if path is None else {str(r["relation"]): str(r["template"]) for _, r in read_records(path)}
    return TEMPLATES | listed


def asked_as(fact: Fact, templates: Mapping[str, str]) -> str:
    """The fact's blank. Raises InputError on a relation without a template."""
    if fact.relation not in templates:
        raise InputError(f"relation {fact.relation!r} has no template; name the file with --templates")
    return templates[fact.relation].replace("[X]", fact.subject).replace("[Y]", MASK)


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
    folder: Path | None = None,
    **options: Any,
) -> Report:
    """Ask a model for facts over corpora, or over the facts' evidence and the distractor documents.

    Up to `per_relation` facts per relation are drawn with `seed`, and of these up to `per_group` per number of tokens
    of the answer (1, 2, 3, 4 and more), as the model counts them. An answer is right if it equals the object by SQuAD's
    rules (ignoring case, articles and punctuation). `load` makes a model from a name and corpora; `options` are those
    of its `fill`. `folder` keeps the run, to be resumed. Raises InputError.
    """
    if not facts:
        raise InputError("no facts to ask for; give the files of T-REx or Google-RE")
    if corpora and distractors:
        raise InputError("distractors are only for searching the facts' evidence; leave them out, or the corpus")
    drawn = draw_of_each(facts, per_relation, seed, lambda fact: fact.relation)
    for fact in drawn:
        asked_as(fact, templates)  # A missing template is told before a model is loaded.
    with _searched(drawn, corpora, distractors) as searched:
        filler = load(model, searched)
        if not corpora:
            embed_if_wanted(filler, options)
        num_tokens = {fact: filler.num_tokens(fact.answer) for fact in drawn}
        asked = draw_of_each(drawn, per_group, seed, lambda fact: min(num_tokens[fact], MOST_TOKENS))
        settings = {"num_passages": sum(corpus.num_passages for corpus in searched), "seed": seed, "options": options}
        task = lama_task("lama", asked, templates, settings, num_tokens)
        return evaluate(task, {model: fills(filler, options)}, folder, progress)


def lama_task(
    name: str,
    facts: Sequence[Fact],
    templates: Mapping[str, str],
    settings: Mapping[str, Any],
    num_tokens: Mapping[Fact, int] | None = None,
) -> Task[Fact]:
    """Facts as blanks, by relation and, if they are given, by their answers' numbers of tokens. Raises InputError on a
    relation without a template."""

    def groups(fact: Fact) -> dict[str, str]:
        tokens = {} if num_tokens is None else {"tokens": length_groups(num_tokens[fact], "tokens")["tokens"]}
        return {**tokens, "relation": fact.relation}

    return Task(
        name=name,
        examples=[Example(each.id, asked_as(each, templates), (each.answer,), each, groups(each)) for each in facts],
        judge=judge,
        settings=settings,
        macro=("relation",) if num_tokens is None else ("tokens", "relation"),
        at_a_time=FACTS_AT_A_TIME,
    )


def judge(example: Example[Any], answer: Answer) -> Scores:
    """Exact match and hit@5 by SQuAD's rules."""
    question = QAExample("", "", example.answers, example.pattern)
    return first_right([exact_match(prediction.text, question) for prediction in answer.predictions or ()])


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
