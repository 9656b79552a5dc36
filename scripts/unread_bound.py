"""Fit how much of what a search found a reader reads: its `unread_bound`.

    python scripts/unread_bound.py FOLDER dev.quoth questions.jsonl … --count 300

FOLDER holds a reader; its quoth.json gets the smallest `unread_bound` with which at least 99 % of the first answers are
those of reading everything. Needs no answers. It depends on the `prior`, and an answer's calibration on it: fit them in
this order (calibrate.py). Use no data that anything is reported on.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from quoth.answers.evidence import Source, Spans, predict_spans, settled
from quoth.corpus.corpus import Corpus
from quoth.hub import SETTINGS_FILE
from quoth.reader.data import read_examples
from quoth.reader.model import Reader
from quoth.reader.network import AT_A_TIME
from quoth.storage import atomic_write_json, read_json

SAME = 0.99
BOUNDS = tuple(each / 2 for each in range(-8, 25))
Read = tuple[list[Source], list[Spans]]
"""Passages, and what a reader marks in them."""


def enough(read: Read, prior: float, bound: float) -> Read:
    """The part of everything that is read with a bound."""
    sources, spans = read
    counts = range(AT_A_TIME, len(sources), AT_A_TIME)
    end = next((n for n in counts if settled(sources, spans[:n], prior, bound)), len(sources))
    return sources[:end], spans[:end]


def least_bound(read: Sequence[Read], prior: float) -> float:
    """The smallest bound with which enough of the first answers are those of everything."""
    whole = [_first(each, prior) for each in read]
    for bound in BOUNDS:
        parts = [enough(each, prior, bound) for each in read]
        same = sum(_first(part, prior) == first for part, first in zip(parts, whole, strict=True)) / len(read)
        print(f"{bound:5.1f}: {same:.1%} the same, {sum(len(part[0]) for part in parts) / len(read):.1f} passages read")
        if same >= SAME:
            return bound
    return BOUNDS[-1]


def _first(read: Read, prior: float) -> list[str]:
    return [each.text for each in predict_spans(*read, 1, prior=prior)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the reader's folder")
    parser.add_argument("corpus", type=Path, help="what is searched")
    parser.add_argument("files", nargs="+", help="questions with their passages (JSONL)")
    parser.add_argument("--count", type=int, default=300, help="questions in all")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    texts = [each.text for each in chain(*map(read_examples, options.files))]
    asked = random.Random(options.seed).sample(texts, min(options.count, len(texts)))
    reader = Reader.from_pretrained(options.folder, corpus=Corpus.open(options.corpus))
    reader.reader.config = replace(reader.config, unread_bound=None)
    settings = read_json(options.folder / SETTINGS_FILE)
    settings["unread_bound"] = least_bound(list(reader.read(asked, asked)), reader.config.prior)
    atomic_write_json(options.folder / SETTINGS_FILE, settings)


if __name__ == "__main__":
    main()
