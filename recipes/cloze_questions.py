"""Questions with answers made of a text's own sentences, for `quoth train realm-qa` where there are few real ones.

    python recipes/cloze_questions.py pages.jsonl -o questions.jsonl --count 4000

A name or date of a sentence is taken out, a question word for its kind put before what is left, of which some words are
dropped (Lewis et al. 2019, Unsupervised question answering by cloze translation, with their noise in the place of a
translation). One question a passage at most.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from quoth.corpus.documents import read_documents
from quoth.ner.tagger import Tagger
from quoth.records import TaggedSpan
from quoth.text.passages import MEASURED, get_splitter, sentences
from quoth.training.run import without

ASKING = {"PER": "who", "LOC": "where", "ORG": "what organization", "DATE": "when"}
ANYTHING = "what"
DROPPED = 0.15
LEAST_WORDS, MOST_WORDS = 6, 40
TAGGED_AT_A_TIME = 64


def question(sentence: str, spans: list[TaggedSpan], rng: np.random.Generator) -> tuple[str, str]:
    """A question that the sentence answers with one of its spans, and that answer."""
    span = spans[int(rng.integers(len(spans)))]
    words = f"{sentence[: span.start]} {sentence[span.end :]}".rstrip(" .").split()
    kept = [word for word in words if rng.random() >= DROPPED]
    return f"{ASKING.get(span.label, ANYTHING)} {' '.join(kept)}?", sentence[span.start : span.end]


def questions(passages: list[str], tagger: Tagger, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Of a sentence of each passage, in random order, where it is neither short nor long and names something."""
    drawn = []
    for number in rng.permutation(len(passages)).tolist():
        ranges = sentences(passages[number])
        start, end = ranges[int(rng.integers(len(ranges)))]
        if LEAST_WORDS <= len(passages[number][start:end].split()) <= MOST_WORDS:
            drawn.append(passages[number][start:end])
    for at in range(0, len(drawn), TAGGED_AT_A_TIME):
        part = drawn[at : at + TAGGED_AT_A_TIME]
        for sentence, spans in zip(part, tagger.spans(part), strict=True):
            if spans:
                yield question(sentence, spans, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", help="documents")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL of question and answer")
    parser.add_argument("--count", type=int, default=4000, help="questions at most")
    parser.add_argument("--exclude", default="", help="JSONL of ids and titles that are left out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, tagger = np.random.default_rng(options.seed), Tagger.load("quoth-tagger")
    split = get_splitter(MEASURED)
    documents = list(without(read_documents(*options.pages), options.exclude))
    passages = [each.text[start:end] for each in documents for start, end in split(each.text)]
    found = list(islice(questions(passages, tagger, rng), options.count))
    lines = [json.dumps({"question": asked, "answer": [answer]}, ensure_ascii=False) for asked, answer in found]
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{options.output}: {len(found):,} questions of {len(passages):,} passages")


if __name__ == "__main__":
    main()
