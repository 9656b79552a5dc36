"""The cloze task: fill blanks drawn from a corpus, or from held-out pages, which then become the corpus.

Knows: which documents are used, how an answer is judged. Does not know: how blanks are drawn, or models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from sys import maxsize
from typing import Annotated, Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_listing
from quoth.datasets.blanks import KINDS, Blank, draw_blanks
from quoth.errors import InputError
from quoth.records import Document
from quoth_eval.baselines import bm25_phrases, frequent_phrases
from quoth_eval.harness import lazily
from quoth_eval.spec import Given, Options, Prepared, Settings, TaskSpec
from quoth_eval.systems import fills, phrases, without
from quoth_eval.task import Answer, Example, Scores, System, Task, first_right, length_groups, rank

BLANKS_AT_A_TIME = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ClozeSettings(Settings):
    """Which of the pages are used."""

    heldout: Annotated[str | None, "Use only the documents that this JSONL lists (id, title)."] = None


def read_pages(pages: Sequence[str | Path], heldout: str | None) -> list[Document]:
    """The documents of the files; with `heldout`, only those whose id or title (ignoring case) is in that list.

    Raises InputError on an invalid list, and if no document is left.
    """
    read = read_documents(*pages)
    if heldout is None:
        documents = list(read)
    else:
        ids, titles = read_listing(Path(heldout))
        documents = [document for document in read if document.id in ids or document.title.casefold() in titles]
    if not documents:
        named = "" if heldout is None else f" that {heldout} names"
        raise InputError(f"no document{named} in {', '.join(map(str, pages))}; give the file that contains them")
    return documents


def cloze_task(blanks: Sequence[Blank], settings: Mapping[str, Any]) -> Task[Blank]:
    """Blanks to fill, those of neighbouring passages together; a blank's own passage is hidden."""
    examples = [
        Example(
            f"{blank.kind}-{number}",
            blank.text,
            (blank.answer,),
            blank,
            {"kind": blank.kind} | length_groups(blank.num_words, "words"),
            frozenset({blank.row}),
        )
        for number, blank in enumerate(blanks)
    ]
    return Task(
        name="cloze",
        examples=examples,
        judge=_judge,
        settings=settings,
        at_a_time=BLANKS_AT_A_TIME,
        order=lambda example: example.source.row,
    )


def _judge(example: Example[Blank], answer: Answer) -> Scores:
    place = rank(example.source.answer, [prediction.text for prediction in answer.predictions or ()])
    return first_right([i == place for i in range(len(answer.predictions or ()))])


def _make(given: Given, settings: ClozeSettings) -> Prepared:
    if given.files:
        pages = read_pages(given.files, settings.heldout)
        corpus = Corpus.create(given.scratch / "pages.quoth")
        corpus.add(pages)
        counted = {"num_pages": len(pages)}
    else:
        counted = {}
        corpus = given.one_corpus("cloze")
    count = maxsize if given.limit is None else ceil(given.limit / len(KINDS))
    passages = list(corpus.passages())
    blanks = [blank for kind in KINDS for blank in draw_blanks(passages, kind, count, given.seed)][: given.limit]

    def asked(name: str, options: Options) -> System[Blank]:
        return fills(given.open(name, [corpus], options), without(options))

    return Prepared(
        task=cloze_task(blanks, given.settings([corpus], **counted)),
        asks=asked,
        baselines={
            "frequent": lambda _: lazily(lambda: phrases(frequent_phrases(corpus))),
            "bm25": lambda _: phrases(bm25_phrases(corpus)),
        },
    )


SPECS = [
    TaskSpec(
        name="cloze",
        help="Phrases that recur in the corpus, or in FILES, hidden in one of its passages; half are names and terms.",
        settings=ClozeSettings,
        make=_make,
        systems=("quoth-mini", "bm25", "frequent"),
        baselines=("bm25", "frequent"),
        limit=3000,
        takes_files=True,
    )
]
