"""Training batches: passages of the same document together, short documents grouped.

Knows: documents, token ids on disk, the order of an epoch, which documents are similar. Does not know: masking and
encoders.

Phrases recur in a batch if its documents are similar. NPM §4 groups documents without regard to that; Zhong et al.
(2022), on whom it builds, group by BM25. Every batch is a pure function of the seed and its number, so a resumed run
sees what an unbroken one would.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, save_array
from quoth.corpus.bm25 import LiveWords, Query, Words, count, search
from quoth.errors import InputError
from quoth.npm.config import Grouping
from quoth.records import Document
from quoth.storage import publish_directory, remove
from quoth.text.passages import WHOLE, get_splitter
from quoth.text.tokenizer import TextTokenizer, TokenizedPassage

DOCUMENTS_AT_A_TIME = 256
FILLED = "filled"
"""Used instead of a splitter: a document's consecutive passages each fill an encoder input."""
LABEL = "settings.json"
QUERY_TOKENS = 24
"""Tokens of a document, the rarest, by which similar ones are searched."""
NEIGHBOURS = 32
PART = 100_000
"""How many documents are counted at a time, which bounds memory."""
ARRAYS: dict[str, type[np.generic]] = {
    "ids": np.int32,
    "flags": np.uint8,
    "offsets": np.int64,
    "titles": np.int32,
    "title_offsets": np.int64,
    "document": np.int32,
    "chain": np.int32,
}


@dataclass(frozen=True, slots=True)
class TokenizedDocuments:
    """Passages as token ids, laid end to end.

    Passage p is `ids[offsets[p]:offsets[p+1]]` with boundary `flags`, of the document numbered `document[p]`; its
    title is `titles[title_offsets[p]:title_offsets[p+1]]`. `chain` lists the documents with passages in an order in
    which neighbours are similar; it is empty unless the grouping is by neighbours.
    """

    ids: NDArray[np.int32]
    flags: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    title_offsets: NDArray[np.int64]
    document: NDArray[np.int32]
    chain: NDArray[np.int32]

    @property
    def num_passages(self) -> int:
        return len(self.document)

    def save(self, folder: Path, label: str) -> None:
        """Write the folder whole or not at all; `label` says what it was made of."""
        part = folder.with_name(f"{folder.name}.part")
        remove(part)
        part.mkdir(parents=True)
        for name in ARRAYS:
            save_array(part / f"{name}.npy", getattr(self, name))
        (part / LABEL).write_text(label, encoding="utf-8")
        publish_directory(part, folder)

    @classmethod
    def load(cls, folder: Path, label: str) -> TokenizedDocuments | None:
        """What was saved under this label, or None. Raises CorruptionError naming a damaged file."""
        saved = folder / LABEL
        if not saved.is_file() or saved.read_text(encoding="utf-8") != label:
            return None
        return cls(**{name: open_array(folder / f"{name}.npy") for name in ARRAYS})


def tokenize_documents(
    documents: Iterable[Document],
    tokenizer: TextTokenizer,
    *,
    splitter: str = "words:120",
    max_passage_tokens: int = 192,
    folder: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> TokenizedDocuments:
    """Split and tokenize documents for training, each passage with its title as search encodes it.

    A passage is cut after `max_passage_tokens` tokens, and the rest is left out; with the splitter `FILLED` the rest
    becomes the next passage, and a passage fits the tokenizer's `max_tokens` with its title.

    Documents are read one after another, and their tokens kept on disk, in nameless files in `folder` (default: the
    folder for temporary files). `progress` takes the number of documents done. Raises InputError when there is no text
    at all, or on an unknown splitter.
    """
    filled = splitter == FILLED
    try:
        split = get_splitter(WHOLE if filled else splitter)
    except InputError as error:
        raise InputError(f"{error}; nor {FILLED}, which fills encoder inputs") from None
    with ExitStack() as stack:
        files = {name: stack.enter_context(tempfile.TemporaryFile(dir=folder)) for name in ARRAYS}

        def extend(name: str, values: Any) -> None:
            files[name].write(np.asarray(values, ARRAYS[name]).tobytes())

        num_tokens, num_title_tokens, done = 0, 0, 0
        extend("offsets", [0])
        extend("title_offsets", [0])
        stream = iter(documents)
        while batch := list(islice(stream, DOCUMENTS_AT_A_TIME)):
            ranges = [(d, a, b) for d, document in enumerate(batch) for a, b in split(document.text)]
            texts, titles = [batch[d].text[a:b] for d, a, b in ranges], [batch[d].title for d, *_ in ranges]
            tokenized = tokenizer.passages(texts, titles)
            for (d, *_), passage in zip(ranges, tokenized, strict=True):
                title = tokenizer.title_of(passage)
                for part in _bodies(passage, max_passage_tokens, filled):
                    num_tokens += len(passage.ids_T[part])
                    num_title_tokens += len(title)
                    extend("ids", passage.ids_T[part])
                    extend("flags", passage.flags_T[part])
                    extend("offsets", [num_tokens])
                    extend("titles", title)
                    extend("title_offsets", [num_title_tokens])
                    extend("document", [done + d])
            done += len(batch)
            if progress:
                progress(done)
        if not num_tokens:
            raise InputError("no text to train on: the documents given are empty or all excluded")
        return TokenizedDocuments(**{name: _mapped(file, ARRAYS[name]) for name, file in files.items()})


def _bodies(passage: TokenizedPassage, longest: int, filled: bool) -> list[slice]:
    """Which of a passage's tokens are trained on: the first ones; if `filled` all, in parts that fit one input."""
    count = len(passage.ids_T)
    if not filled or not count:
        return [slice(0, longest)][:count]
    body = passage.windows[0].body
    size = min(longest, body.stop - body.start)
    return [slice(at, at + size) for at in range(0, count, size)]


def _mapped(file: IO[bytes], kind: type[np.generic]) -> NDArray[Any]:
    """What was written to the file, which may now be closed."""
    file.flush()
    return np.memmap(file, kind, mode="r") if file.tell() else np.empty(0, kind)


class BatchSampler:
    """The batches of an endless run: batch i is a list of passages, the same for the same seed.

    Each epoch shuffles documents; a document's passages fill whole batches in order, and what is left over is
    grouped with the left-overs of the documents that follow. With `grouping` "neighbours" documents follow each other
    as in the data's `chain`, which each epoch cuts at another place; "random" draws passages whatever their document.
    """

    def __init__(
        self,
        data: TokenizedDocuments,
        batch_size: int,
        seed: int,
        grouping: Grouping = "shuffled",
    ) -> None:
        count = data.num_passages
        if count < 2 or batch_size < 2:
            raise InputError(f"{count} passages in batches of {batch_size}; training takes 2 or more of both")
        if grouping == "neighbours" and not len(data.chain):
            raise InputError(
                "grouping is 'neighbours', but the data has no chain; without one it must be 'shuffled' or 'random'"
            )
        self._bounds = np.flatnonzero(np.diff(data.document, prepend=-1, append=-1))
        self._chain = np.searchsorted(data.document[self._bounds[:-1]], data.chain)
        self._size, self._seed, self._grouping = min(batch_size, count), seed, grouping
        self._epoch, self._batches = -1, self._shuffled(0)

    def __getitem__(self, number: int) -> list[int]:
        epoch, position = divmod(number, len(self._batches))
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._shuffled(epoch)
        return self._batches[position]

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._batches)

    def _shuffled(self, epoch: int) -> list[list[int]]:
        rng = np.random.default_rng((self._seed, epoch))
        whole: list[list[int]] = []
        left_over: list[int] = []
        for rows in self._rows(rng):
            cut = len(rows) - len(rows) % self._size
            whole.extend(rows[at : at + self._size] for at in range(0, cut, self._size))
            left_over.extend(rows[cut:])
        whole.extend(left_over[at : at + self._size] for at in range(0, len(left_over) - self._size + 1, self._size))
        return [whole[i] for i in rng.permutation(len(whole))]

    def _rows(self, rng: np.random.Generator) -> Iterator[list[int]]:
        """Passages that stay together, in the order of this epoch."""
        if self._grouping == "random":
            yield rng.permutation(int(self._bounds[-1])).tolist()
            return
        count = len(self._bounds) - 1
        chained = self._grouping == "neighbours"
        for d in np.roll(self._chain, rng.integers(count)) if chained else rng.permutation(count):
            yield list(range(int(self._bounds[d]), int(self._bounds[d + 1])))


def chain_of_neighbours(data: TokenizedDocuments, progress: Callable[[int], None]) -> NDArray[np.int32]:
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
