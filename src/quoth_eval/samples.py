"""Smaller corpora: nested samples of a corpus's documents, to measure how answers depend on its size.

Knows: which documents a share has. Does not know: models. A sample is a corpus by itself, with its own word statistics.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import ceil
from pathlib import Path

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError


def check_share(share: object) -> None:
    """Raises InputError unless the share is a number above 0 and at most 1."""
    if not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise InputError(f"corpus is {share}; it must be a share of the documents, above 0 and at most 1; try 0.25")


def sampled_ids(ids: Iterable[str], share: float, seed: int = 0) -> set[str]:
    """A share of the ids, one or more, drawn by their digests: a smaller share draws a subset of a larger one's,
    whatever their order. Raises InputError as `check_share` does."""
    check_share(share)
    drawn = sorted(ids, key=lambda each: blake2b(f"{seed} {each}".encode()).digest())
    return set(drawn[: ceil(share * len(drawn))])


def sample_of(corpus: Corpus, share: float, path: Path, seed: int = 0) -> Corpus:
    """A corpus in the folder `path` with a share of another's documents, split as they are there; it is made if there
    is none. The other itself if the share is 1."""
    if share == 1:
        return corpus
    if path.exists():
        return Corpus.open(path)
    kept = sampled_ids((document.id for document in corpus.documents()), share, seed)
    sample = Corpus.create(path, splitter=corpus.splitter)
    sample.add(document for document in corpus.documents() if document.id in kept)
    return sample
