"""LAMA: facts asked with templates (Petroni et al. 2019; NPM §6.1, App. B).

Knows: the files of T-REx and Google-RE, and how a fact becomes a blank. Does not know: how a model answers.

The model searches either a given corpus or the facts' own evidence, in which every answer occurs: a report must say
which. Distractor documents show how much the evidence helps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_records
from quoth.datasets.judging import exact_match
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.fields import Checked, Count
from quoth.records import Document
from quoth.text.passages import MEASURED
from quoth.text.tokenizer import MASK
from quoth_eval.spec import Given, Prepared, TaskSpec
from quoth_eval.systems import filling
from quoth_eval.task import Answer, Example, Scores, Task, draw_as_released, draw_of_each, first_right, length_groups
from quoth_eval.tasks.closed_files import find_file, find_files, parsed

TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}
"""The templates of Google-RE, as in LAMA."""
FACTS = {"google-re": "lama/Google_RE", "trex": "lama/TREx"}
"""The folders of LAMA's facts in a folder of data, by the task's name."""
_LAMA = "it is in the data.zip of https://github.com/facebookresearch/LAMA (JSONL of facts), to be unpacked as lama"
MOST_TOKENS = 4
"""Answers of this many tokens or more are one group, as in the released code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LamaSettings(Checked):
    """Which facts are asked, and what is searched."""

    templates: Annotated[str | None, "LAMA's relations.jsonl, required for T-REx."] = None
    distractors: Annotated[tuple[str, ...], "Files of documents to search together with the facts' evidence."] = ()
    per_group: Annotated[Count | None, "Ask at most this many facts per number of tokens (1, 2, 3, 4 and more)."] = None
    tokens: Annotated[str | None, "Count the tokens of this model. Default: the first system."] = None
    unhelpful_names: Annotated[bool, "Leave out facts whose subject contains the answer: UHN's first filter."] = False
    only: Annotated[str | None, "Ask only the facts of this file or folder, such as T-REx Hard."] = None


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
    return [fact for path in paths for fact in parsed(path, _fact, "a fact of T-REx or Google-RE")]


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
    folder, keys = Path(path), set[tuple[str, str, str]]()
    for file in sorted(folder.glob("*.jsonl*")) if folder.is_dir() else [folder]:
        relation = file.name.partition(".")[0]
        names = partial(_named, relation)
        keys.update(parsed(file, names, "a fact with sub_label and obj_label"))
    kept = [fact for fact in facts if (fact.relation, fact.subject, fact.answer) in keys]
    if not kept:
        several = f"none of its {len(keys):,} facts is among those to ask"
        raise InputError(f"{path}: {several}; name the list of the same set")
    return kept


def _named(relation: str, record: Mapping[str, Any]) -> tuple[str, str, str]:
    return record.get("predicate_id", relation), record["sub_label"], record["obj_label"]


def read_templates(path: str | Path | None) -> dict[str, str]:
    """The templates by relation, with [X] for the subject and [Y] for the object; those of Google-RE are built in."""
    listed = {} if path is None else {str(r["relation"]): str(r["template"]) for _, r in read_records(path)}
    return TEMPLATES | listed


def asked_as(fact: Fact, templates: Mapping[str, str]) -> str:
    """The fact's blank. Raises InputError on a relation without a template."""
    if fact.relation not in templates:
        raise InputError(f"relation {fact.relation!r} has no template; name the file with --set templates=FILE")
    return templates[fact.relation].replace("[X]", fact.subject).replace("[Y]", MASK)


def judge(example: Example[Any], answer: Answer) -> Scores:
    """Exact match and hit@5 by SQuAD's rules."""
    question = QAExample("", "", example.answers, example.pattern)
    return first_right([exact_match(prediction.text, question) for prediction in answer.predictions or ()])


def _evidence(facts: Sequence[Fact]) -> Iterator[Document]:
    """Each distinct text as a document, titled with its first fact's subject."""
    titles: dict[str, str] = {}
    for fact in facts:
        for text in fact.evidence:
            titles.setdefault(text, fact.subject)
    return (Document(f"evidence-{i}", title, text) for i, (text, title) in enumerate(titles.items()))


def _make(given: Given, settings: LamaSettings) -> Prepared:
    facts = read_facts(given.files)
    if settings.only is not None:
        facts = listed(facts, settings.only)
    if settings.unhelpful_names:
        facts = unhelpful(facts)
    relations = settings.templates
    if relations is None and given.data:
        relations = next(map(str, sorted(given.data.glob("lama/relations.jsonl*"))), None)
    return facts_over(given, settings, facts, read_templates(relations))


def facts_over(given: Given, settings: LamaSettings, facts: Sequence[Fact], templates: Mapping[str, str]) -> Prepared:
    """Up to `limit` facts per relation, over the corpora or over the facts' evidence and the distractors. An answer is
    right if it equals the object by SQuAD's rules (ignoring case, articles and punctuation)."""
    if not facts:
        raise InputError("no facts to ask for; give the files of T-REx or Google-RE")
    if given.corpora and settings.distractors:
        raise InputError("distractors are only for searching the facts' evidence; leave them out, or the corpus")
    drawn = draw_of_each(facts, given.limit, given.seed, lambda fact: fact.relation)
    for fact in drawn:
        asked_as(fact, templates)  # A missing template is told before a model is loaded.
    if not given.corpora:
        read = read_documents(*settings.distractors) if settings.distractors else ()
        distractors = (Document(f"distractor-{i}", each.title, each.text) for i, each in enumerate(read))
        made = Corpus.create(given.scratch / "evidence.quoth", MEASURED)
        made.add(chain(_evidence(drawn), distractors))
        given = replace(given, corpora=(made,))
    counter = given.open(settings.tokens or given.systems[0].partition(",")[0], given.corpora, given.options)
    num_tokens = {fact: counter.num_tokens(fact.answer) for fact in drawn}
    asked = draw_of_each(drawn, settings.per_group, given.seed, lambda fact: min(num_tokens[fact], MOST_TOKENS))
    return _over("lama", given, asked, templates, num_tokens)


def _of_data(name: str, given: Given, settings: object) -> Prepared:
    """The facts of a folder of data over the corpora."""
    data = given.folder(name, FACTS[name], _LAMA)
    facts = read_facts(find_files(data, f"{FACTS[name]}/*.jsonl", _LAMA))
    relations = find_file(data, "lama/relations.jsonl", _LAMA) if name == "trex" else None
    drawn = draw_as_released(facts, given.limit, given.seed)
    given.searched()
    return _over(name, given, drawn, read_templates(relations), {})


def _over(
    name: str, given: Given, facts: Sequence[Fact], templates: Mapping[str, str], num_tokens: Mapping[Fact, int]
) -> Prepared:
    """Facts as blanks, by relation and, if they are given, by their answers' numbers of tokens."""
    examples = []
    for fact in facts:
        tokens = {"tokens": length_groups(num_tokens[fact], "tokens")["tokens"]} if num_tokens else {}
        groups = {**tokens, "relation": fact.relation}
        examples.append(Example(fact.id, asked_as(fact, templates), (fact.answer,), fact, groups))
    task = Task(
        name=name,
        examples=examples,
        judge=judge,
        settings=given.settings(),
        macro=("tokens", "relation") if num_tokens else ("relation",),
        at_a_time=32,
    )
    return Prepared(task=task, asks=filling(given))


SPECS = [
    *(TaskSpec(name=name, make=partial(_of_data, name), limit=3000) for name in FACTS),
    TaskSpec(name="lama", settings=LamaSettings, make=_make, each=True, files="lama/*/*.jsonl*", takes_files=True),
]
