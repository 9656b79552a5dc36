"""Questions with published answers, and the corpus of SQuAD's paragraphs, among passages of other pages.

Knows: KAMEL's files (Kalo and Fichtel 2022), where each set can be had, how the corpus is made. Does not know: how it
is searched, or how a question is answered.
"""

from __future__ import annotations

import csv
import heapq
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_text
from quoth.datasets.questions import QAExample, read_questions
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.passages import MEASURED, WHOLE, get_splitter
from quoth_eval.tasks.closed_files import find_file, parsed

_DPR = "https://github.com/facebookresearch/DPR (question, tab, list of answers)"
QUESTIONS = {
    "nq-dev": ("open_qa/nq.dev.tsv", f"NQ-open's development side, data.retriever.qas.nq-dev of {_DPR}"),
    "nq": ("open_qa/nq.test.tsv", f"NQ-open's test side, data.retriever.qas.nq-test of {_DPR}"),
    "triviaqa": ("open_qa/trivia.test.tsv", f"TriviaQA's test side, data.retriever.qas.trivia-test of {_DPR}"),
    "webquestions": ("open_qa/wq.test.tsv", "WebQuestions' test side as question, tab, list of answers"),
    "curatedtrec": ("open_qa/curated.test.tsv", "CuratedTREC's test side as id, kind, question, pattern"),
    "kamel": ("kamel/dev.jsonl", "KAMEL's facts of 234 relations, as questions"),
}
"""Each set's file, and what it is, by the set's name."""
KAMEL = (
    "KAMEL is at https://github.com/JanKalo/KAMEL; copy question-templates.csv and join the relations' dev.jsonl to "
    "one file"
)
SUBJECT = "[S]"


def source_of(name: str) -> str:
    """Where the file of a set can be had."""
    return KAMEL if name == "kamel" else f"it is {QUESTIONS[name][1]}"


def read_set(data: Path, name: str) -> list[QAExample]:
    """The questions of a set in a folder of data. Raises InputError."""
    return read_kamel(data) if name == "kamel" else read_questions(find_file(data, QUESTIONS[name][0], source_of(name)))


def read_kamel(data: str | Path) -> list[QAExample]:
    """The questions of DIR/kamel: dev.jsonl (sub_label, obj_label, relation), asked by question-templates.csv.

    Raises InputError on a missing file, a broken line, or a relation without a template.
    """
    path, templates = find_file(data, "kamel/question-templates.csv", KAMEL), dict[str, str]()
    for number, row in enumerate(csv.reader(StringIO(read_text(path), newline="")), start=1):
        if len(row) != 2 or SUBJECT not in row[1]:
            raise InputError(f"{path}:{number}: not a relation and a question with {SUBJECT}; fix the line")
        templates[row[0]] = row[1].strip()
    path = find_file(data, QUESTIONS["kamel"][0], KAMEL)
    facts = parsed(path, partial(_fact, templates), "a fact of KAMEL")
    questions = [QAExample(f"{named}-{line}", text, answers) for line, (named, text, answers) in enumerate(facts, 1)]
    if not questions:
        raise InputError(f"{path}: no fact; name a folder with the whole file")
    return questions


def _fact(templates: Mapping[str, str], record: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    relation, subject, answers = record["relation"], record["sub_label"], tuple(map(str, record["obj_label"]))
    if relation not in templates:
        raise ValueError(f"relation {relation!r} has no template in question-templates.csv")
    return relation, templates[relation].replace(SUBJECT, subject), answers


def squad_corpus(
    path: str | Path,
    paragraphs: Sequence[Document],
    distractors: Sequence[str] = (),
    count: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Corpus:
    """A new corpus of the paragraphs and `count` passages (None: all) of the documents in the files `distractors`.

    Raises InputError if the folder is not empty, or if there are fewer passages.
    """
    corpus = Corpus.create(path, splitter=WHOLE)
    titles = {paragraph.title for paragraph in paragraphs}
    try:
        corpus.add(chain(paragraphs, draw_passages(distractors, titles, count, seed)), progress)
    except BaseException:
        shutil.rmtree(path)
        raise
    return corpus


def draw_passages(paths: Sequence[str], titles: set[str], count: int | None, seed: int) -> Iterator[Document]:
    """Passages of the documents, split as in a corpus, each as a document `distractor:ID:NUMBER`.

    Documents with one of `titles` (ignoring case) are left out. Draws `count` passages (None: all) at random by their
    ids: the same for the same seed, whatever the order of the files; a smaller count draws a subset of a larger one's.
    Raises InputError if there are fewer.
    """
    passages = _passages(paths, {title.casefold() for title in titles}) if paths else iter(())
    if count is None:
        yield from passages
        return
    drawn = heapq.nsmallest(count, passages, key=lambda passage: blake2b(f"{seed} {passage.id}".encode()).digest())
    if len(drawn) < count:
        raise InputError(f"{count:,} distractors requested, but there are {len(drawn):,} passages; give more documents")
    yield from drawn


def _passages(paths: Sequence[str], left_out: set[str]) -> Iterator[Document]:
    split = get_splitter(MEASURED)
    for document in read_documents(*paths):
        if document.title.casefold() not in left_out:
            for number, (start, end) in enumerate(split(document.text)):
                yield Document(f"distractor:{document.id}:{number}", document.title, document.text[start:end])
