"""Questions and blanks about entities, with passages that answer them, of questions without passages.

    python recipes/entity_blanks.py articles.quoth P17.dev.json … --templates relation_query_templates.json \\
        -o entities.jsonl.gz --leave-out P17.test.json … --apart wiki2018.jsonl --exclude heldout_pages.jsonl

EntityQuestions gives a question and its answers, but no passage. A passage of the corpus that names the entity and
contains an answer is taken as evidence (distant supervision, mostly right because it names both), up to two for each
question; BM25's best passages without an answer come along as negatives. Each is written twice: as the question, and as
a statement with a blank. Out: the lines `quoth train reader` takes.

Questions about an entity of the files of `--leave-out` are not used, nor passages that share twelve words in a row with
a text of `--apart`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recurring_blanks import occurrences
from relation_blanks import sharing

from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import answerable, has_answer, holders
from quoth.datasets.questions import QAExample
from quoth.records import Passage
from quoth.text.tokenizer import MASK
from quoth.training.run import without
from quoth_eval.tasks.entities import EntityQuestion, QuestionTemplates, read_entity_questions

PASSAGES, NEGATIVES, BM25_BEST = 2, 6, 20
SHORTEST_NAME = 4

# A relation's statements; X is the entity, _ the blank.
STATEMENTS = """
P17|X is in the country of _.|X is located in the country of _.
P19|X was born in _.
P20|X died in _.
P26|X is married to _.|The spouse of X is _.
P36|The capital of X is _.|_ is the capital of X.
P40|The child of X is _.
P50|X was written by _.|The author of X is _.
P69|X was educated at _.
P106|X works as a _.|X is a _ by profession.
P112|X was founded by _.
P127|X is owned by _.
P131|X is located in _.|X lies in _.
P136|X plays _ music.|The genre of X is _.
P159|The headquarters of X is in _.|X is based in _.
P170|X was created by _.
P175|X was performed by _.
P176|X is produced by _.|X is made by _.
P264|X is represented by the music label _.
P276|X is located in _.|X took place in _.
P407|X was written in _.|The language of X is _.
P413|X plays in the position of _.
P495|X was created in _.|X is from _.
P740|X was founded in _.
P800|X is famous for _.
"""
BY_RELATION = {
    relation: statements for relation, *statements in (line.split("|") for line in STATEMENTS.strip().splitlines())
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="made by quoth index")
    parser.add_argument("questions", nargs="+", help="files of EntityQuestions, named by their relation")
    parser.add_argument("--templates", type=Path, required=True, help="relation_query_templates.json")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--leave-out", nargs="*", default=[], help="questions whose entities are not used")
    parser.add_argument("--apart", nargs="*", default=[], help="texts that no passage may share twelve words with")
    parser.add_argument("--exclude", default="", help="JSONL of ids and titles of pages that are not evidence")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    templates, rng = QuestionTemplates.read(options.templates), random.Random(options.seed)
    banned = {asked.name.casefold() for asked in read_entity_questions(options.leave_out, templates)}
    asked = [each for each in read_entity_questions(options.questions, templates) if each.name.casefold() not in banned]
    corpus = Corpus.open(options.corpus)
    questions = written = 0
    with gzip.open(options.output, "wt", encoding="utf-8") as stream:
        usable = {document.id for document in without(corpus.documents(), options.exclude)}
        for question, passages in evidence(corpus, usable, asked, options.apart):
            negatives = [
                {"title": passage.title, "context": passage.text}
                for passage in map(corpus.passage, corpus.bm25(question.question.text, BM25_BEST)[0].tolist())
                if not has_answer(passage.text, question.question)
            ][:NEGATIVES]
            questions += 1
            for number, passage in enumerate(passages):
                for text in (question.question.text, statement(question, rng)):
                    written += 1
                    line = example(f"{questions}-{number}", text, passage, question.question.answers, negatives)
                    stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{options.output}: {written:,} examples of {questions:,} questions")


def evidence(
    corpus: Corpus, documents: set[str], asked: Sequence[EntityQuestion], apart: Sequence[str]
) -> Iterator[tuple[EntityQuestion, list[Passage]]]:
    """The questions that have evidence in these documents, with its passages, those about the entity by their title
    first; none of them shares words with a text of the files `apart`."""
    passages = [passage for passage in corpus.passages() if passage.document_id in documents]
    left_out = sharing(apart, (passage.text for passage in passages))
    answered = set(answerable([each.question for each in asked], (passage.text for passage in passages)))
    named = [i in answered and len(each.name) >= SHORTEST_NAME for i, each in enumerate(asked)]
    names = [QAExample("", "", (each.name,) if use else ()) for each, use in zip(asked, named, strict=True)]
    # No entity begins in the title and ends in the text.
    texts = (f"{passage.title}\n|\n{passage.text}" for passage in passages)
    for number, rows_of in holders(names, texts).items():
        question = asked[number]
        usable = [
            passage
            for passage in (passages[row] for row in rows_of if row not in left_out)
            if places(question.question.answers, passage.text)
        ]
        usable.sort(key=lambda passage: question.name.casefold() not in passage.title.casefold())
        if usable:
            yield question, usable[:PASSAGES]


def places(answers: Sequence[str], text: str) -> list[dict[str, Any]]:
    """Where the first of the answers that occurs in the text does so, as whole words."""
    return next(filter(None, (occurrences(answer, text) for answer in answers)), [])


def statement(question: EntityQuestion, rng: random.Random) -> str:
    """The question as a statement with a blank."""
    return rng.choice(BY_RELATION[question.relation]).replace("X", question.name, 1).replace("_", MASK, 1)


def example(
    name: str, text: str, passage: Passage, answers: Sequence[str], negatives: list[dict[str, str]]
) -> dict[str, Any]:
    """A line for `quoth train reader`."""
    return {
        "id": name,
        "title": passage.title,
        "context": passage.text,
        "question": text,
        "answers": places(answers, passage.text),
        "negatives": negatives,
    }


if __name__ == "__main__":
    main()
