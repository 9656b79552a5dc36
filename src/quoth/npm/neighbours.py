"""Which documents are similar: a chain through all of them in which each is followed by a similar one.

Knows: token ids and BM25. Does not know: batches and training.

Short documents share batches; phrases recur in a batch if its documents are similar. NPM §4 groups documents without
regard to that; Zhong et al. (2022), on whom it builds, group by BM25.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.bm25 import LiveWords, Query, Words, count, search
from quoth.npm.batches import TokenizedDocuments

QUERY_TOKENS = 24
NEIGHBOURS = 32
PART = 100_000
"""How many documents are counted at a time, which bounds memory."""


def chain_of_neighbours(data: TokenizedDocuments, progress: Callable[[int], None] | None = None) -> NDArray[np.int32]:
    """The documents that have passages, each followed by its best neighbour by BM25 that is not in the chain yet.

    Tokens are the words; a document's query is its rarest tokens that another document has as well. A document
    without a neighbour left is followed by the first one that is not in the chain. `progress` is called with the number
    of documents whose neighbours are known.
    """
    firsts = np.flatnonzero(np.diff(data.document, prepend=-1))
    bounds = data.offsets[np.append(firsts, data.num_passages)]
    bodies = [slice(a, b) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
    frequency = np.zeros(int(data.ids.max()) + 1, np.int64)
    for body in bodies:
        frequency[np.unique(data.ids[body])] += 1
    neighbours = np.full((len(bodies), NEIGHBOURS), -1, np.int32)
    words = [
        LiveWords(Words.of(_words(data.ids[body]) for body in bodies[first : first + PART]), first)
        for first in range(0, len(bodies), PART)
    ]
    for row, body in enumerate(bodies):
        tokens = np.unique(data.ids[body])
        shared = tokens[frequency[tokens] > 1]
        query = Query.of(_words(shared[np.argsort(frequency[shared], kind="stable")[:QUERY_TOKENS]]))
        found, _ = search(words, query, NEIGHBOURS, count(words, query))
        neighbours[row, : len(found)] = found
        if progress:
            progress(row + 1)
    return data.document[firsts[_walk(neighbours)]]


def _words(tokens: NDArray[np.int32]) -> str:
    return " ".join(map(str, tokens.tolist()))


def _walk(neighbours: NDArray[np.int32]) -> list[int]:
    """From each document to its best neighbour that was not visited; −1 if there is none."""
    order: list[int] = []
    visited = [False] * len(neighbours)
    here = first_unvisited = 0
    while here < len(neighbours):
        order.append(here)
        visited[here] = True
        while first_unvisited < len(neighbours) and visited[first_unvisited]:
            first_unvisited += 1
        here = next((row for row in neighbours[here].tolist() if row >= 0 and not visited[row]), first_unvisited)
    return order
