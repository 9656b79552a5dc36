"""Training batches: passages of the same document together, short documents grouped.

Knows: documents, token ids on disk, the order of an epoch. Does not know: masking and encoders.

Every batch is a pure function of the seed and its number, so a resumed run sees what an unbroken one would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quoth.corpus.passages import get_splitter
from quoth.encoders.tokenization import TextTokenizer
from quoth.errors import InputError
from quoth.records import Document
from quoth.storage import open_array, publish_directory, remove, save_array

DOCUMENTS_AT_A_TIME = 256
LABEL = "settings.json"
ARRAYS = ("ids", "flags", "offsets", "titles", "title_offsets", "document")


@dataclass(frozen=True, slots=True)
class TokenizedDocuments:
    """Passages as token ids, laid end to end.

    Passage p is `ids[offsets[p]:offsets[p+1]]` with boundary `flags`; its title is
    `titles[title_offsets[d]:title_offsets[d+1]]` with d = `document[p]`.
    """

    ids: NDArray[np.int32]
    flags: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    title_offsets: NDArray[np.int64]
    document: NDArray[np.int32]

    @property
    def num_passages(self) -> int:
        return len(self.document)

    def save(self, folder: Path, label: str) -> None:
        """Write the folder whole or not at all; `label` says what it was made of."""
        part = folder.with_name(f"{folder.name}.part")
        if part.exists():
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
    max_body_tokens: int = 192,
    progress: Callable[[int], None] | None = None,
) -> TokenizedDocuments:
    """Split and tokenize documents for training; a passage is cut after `max_body_tokens` tokens.

    Raises InputError when there is no text at all. `progress` is told the number of documents done.
    """
    split = get_splitter(splitter)
    parts: dict[str, list[NDArray[np.generic]]] = {name: [] for name in ARRAYS}
    stream, done = iter(documents), 0
    while batch := list(islice(stream, DOCUMENTS_AT_A_TIME)):
        texts = [(d, document.text[a:b]) for d, document in enumerate(batch) for a, b in split(document.text)]
        tokenized = tokenizer.passages([text for _, text in texts], [""] * len(texts))
        title_ids = tokenizer.titles([document.title for document in batch])
        for (d, _), passage in zip(texts, tokenized, strict=True):
            if not len(passage.ids_T):
                continue
            parts["ids"].append(passage.ids_T[:max_body_tokens])
            parts["flags"].append(passage.flags_T[:max_body_tokens])
            parts["offsets"].append(np.array([min(len(passage.ids_T), max_body_tokens)]))
            parts["document"].append(np.array([done + d], np.int32))
        parts["titles"].extend(np.array(ids, np.int32) for ids in title_ids)
        parts["title_offsets"].extend(np.array([len(ids)]) for ids in title_ids)
        done += len(batch)
        if progress:
            progress(done)
    if not parts["ids"]:
        raise InputError("no text to train on: the documents given are empty or all excluded")
    return TokenizedDocuments(
        ids=np.concatenate(parts["ids"]).astype(np.int32),
        flags=np.concatenate(parts["flags"]).astype(np.uint8),
        offsets=np.cumsum(np.concatenate([[0], *parts["offsets"]])).astype(np.int64),
        titles=np.concatenate(parts["titles"]).astype(np.int32),
        title_offsets=np.cumsum(np.concatenate([[0], *parts["title_offsets"]])).astype(np.int64),
        document=np.concatenate(parts["document"]).astype(np.int32),
    )


class BatchSampler:
    """The batches of an endless run: batch i is a list of passages, the same for the same seed.

    Each epoch shuffles documents; a document's passages fill whole batches in order, and what is left over is
    grouped with the left-overs of the documents that follow.
    """

    def __init__(self, document_P: NDArray[np.int32], batch_size: int, seed: int) -> None:
        if len(document_P) < 2 or batch_size < 2:
            raise InputError(f"{len(document_P)} passages in batches of {batch_size}; training takes 2 or more of both")
        self._bounds = np.flatnonzero(np.diff(document_P, prepend=-1, append=-1))
        self._size, self._seed = min(batch_size, len(document_P)), seed
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
        for d in rng.permutation(len(self._bounds) - 1):
            rows = list(range(int(self._bounds[d]), int(self._bounds[d + 1])))
            cut = len(rows) - len(rows) % self._size
            whole.extend(rows[at : at + self._size] for at in range(0, cut, self._size))
            left_over.extend(rows[cut:])
        whole.extend(left_over[at : at + self._size] for at in range(0, len(left_over) - self._size + 1, self._size))
        return [whole[i] for i in rng.permutation(len(whole))]
