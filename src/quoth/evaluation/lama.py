"""LAMA: facts that a template asks for, over a corpus that states them (Petroni et al. 2019; NPM §6.1, appendix B).

Knows: the files of T-REx and Google-RE, and how a fact becomes a blank. Does not know: how a model answers.

The corpus that is searched is the facts' own evidence, so every answer stands in it: say so next to the number.
Distractor documents show how much that helps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_records
from quoth.encoders.tokenization import MASK
from quoth.errors import InputError
from quoth.evaluation.cloze import Blank, words
from quoth.evaluation.run import Load, Progress, SystemScores, embed_if_wanted, model_answers, score_system
from quoth.records import Document

TEMPLATES = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}
"""Google-RE's, as LAMA writes them."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, relation and object of a fact, and texts that state it."""

    id: str
    relation: str
    subject: str
    answer: str
    evidence: tuple[str, ...]


def read_facts(paths: Sequence[str | Path], limit: int | None = None) -> list[Fact]:
    """The facts of LAMA's files (JSONL), of each file the first `limit`. Raises InputError naming a broken line."""
    facts = []
    for path in paths:
        for line, record in read_records(path):
            try:
                facts.append(_fact(record))
            except (KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{path}:{line}: not a fact of T-REx or Google-RE (no {error})") from None
            if limit is not None and line >= limit:
                break
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


def run_lama(
    facts: Sequence[Fact],
    templates: Mapping[str, str],
    model: str,
    load: Load,
    *,
    distractors: Sequence[str] = (),
    progress: Progress | None = None,
    **options: Any,
) -> SystemScores:
    """Ask a model every fact over the facts' evidence and the distractor documents; exact match by relation.

    `options` are those of `NPM.fill`. Raises InputError.
    """
    if not facts:
        raise InputError("no fact to ask; give the files of T-REx or Google-RE")
    asked = blanks(facts, templates)
    with tempfile.TemporaryDirectory(prefix="quoth-lama-") as folder:
        corpus = Corpus.create(Path(folder) / "evidence.quoth")
        corpus.add(chain(_evidence(facts), _renamed(distractors)))
        filler = load(model, corpus)
        embed_if_wanted(filler, options)
        return score_system("model", model, model_answers(filler, options), asked, progress)


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
