"""Blanks with the passages that fill them, made of a text's own recurring phrases, for `quoth train reader`.

    python recipes/recurring_blanks.py PAGES -o blanks.jsonl.gz --count 60000 --exclude heldout_pages.jsonl

A phrase is hidden in a sentence; the reader learns to mark it in another passage (recurring spans: Ram et al. 2021,
Splinter; span-selection pre-training: Glass et al. 2020). That passage is the best of BM25's that holds the phrase, or
else another passage of the same page; BM25's passages without the phrase come along as negatives.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.datasets.blanks import KINDS, Blank, draw_blanks
from quoth.records import Document, Passage
from quoth.text.passages import MEASURED, sentences
from quoth.text.tokenizer import MASK
from quoth.training.run import without

PER_PAGE = 14
BEST = 8
NEGATIVES = 3
ALONE, TITLED = 0.6, 0.5
"""The share of blanks that are asked as one sentence, and that are preceded by the page's title."""


def occurrences(phrase: str, text: str) -> list[dict[str, Any]]:
    """Where a phrase occurs in a text as whole words, case and runs of white space aside."""
    pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, phrase.split())) + r"(?!\w)"
    return [{"text": found.group(), "start": found.start()} for found in re.finditer(pattern, text, re.IGNORECASE)]


def shortened(blank: Blank, title: str, rng: random.Random) -> str:
    """The blank's text: its sentence alone or all of it, with or without the title."""
    prefix = f"{title}. " if title else ""
    text = blank.text.removeprefix(prefix)
    if rng.random() < ALONE:
        at = text.index(MASK)
        text = next(text[start:end] for start, end in sentences(text) if start <= at < end)
    return prefix + text if rng.random() < TITLED else text


def example(blank: Blank, number: str, page: Sequence[Passage], corpus: Corpus, rng: random.Random) -> dict[str, Any]:
    """A blank with a passage that holds its answer, and negatives."""
    asked = shortened(blank, page[0].title, rng)
    rows, _ = corpus.bm25(asked.replace(MASK, " "), BEST + 1)
    found = [corpus.passage(row) for row in rows.tolist() if row != blank.row]
    places = [occurrences(blank.answer, passage.text) for passage in found]
    right = next((i for i, where in enumerate(places) if where), None)
    negatives = [p for p, where in zip(found, places, strict=True) if not where][:NEGATIVES]
    if right is None:
        others = [(p, occurrences(blank.answer, p.text)) for p in page if p.row != blank.row]
        passage, answers = next((p, where) for p, where in rng.sample(others, len(others)) if where)
    else:
        passage, answers = found[right], places[right]
    return {
        "id": number,
        "title": passage.title,
        "context": passage.text,
        "question": asked,
        "answers": answers,
        "negatives": [{"title": each.title, "context": each.text} for each in negatives],
    }


def examples(corpus: Corpus, documents: Sequence[Document], rng: random.Random) -> Iterator[dict[str, Any]]:
    """The blanks of pages in random order."""
    for document in rng.sample(documents, len(documents)):
        page = [corpus.passage(row) for row in corpus.rows_of(document.id)]
        if len(page) < 3:
            continue
        for kind in KINDS:
            blanks = draw_blanks(page, kind, PER_PAGE // len(KINDS), rng.randrange(1 << 30))
            for number, blank in enumerate(blanks):
                if blank.answer.isascii() and len(blank.answer) == 1:
                    continue
                try:
                    yield example(blank, f"{document.id}-{kind}-{number}", page, corpus, rng)
                except StopIteration:
                    continue


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", help="documents")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--count", type=int, default=60000, help="blanks at most")
    parser.add_argument("--exclude", default="", help="JSONL of ids and titles that are left out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, written = random.Random(options.seed), 0
    documents = list(without(read_documents(*options.pages), options.exclude))
    with tempfile.TemporaryDirectory() as folder, gzip.open(options.output, "wt", encoding="utf-8") as stream:
        corpus = Corpus.create(Path(folder) / "pages.quoth", MEASURED)
        corpus.add(documents)
        for each in examples(corpus, documents, rng):
            stream.write(json.dumps(each, ensure_ascii=False) + "\n")
            written += 1
            if written == options.count:
                break
    print(f"{options.output}: {written:,} blanks of {len(documents):,} pages")


if __name__ == "__main__":
    main()
