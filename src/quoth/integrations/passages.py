"""What retrievers of every framework share: a search, and passages with their place as metadata.

Knows: corpora, models that search. Does not know: any framework.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from quoth.corpus.bm25 import bm25
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.index.options import Mode, SearchOptions
from quoth.model.base import CorpusModel
from quoth.model.loading import load
from quoth.records import Hit

PLACE_KEYS = ("document_id", "title", "start", "end", "passage", "corpus", "score")
"""The keys that a search adds to a document's metadata."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage: `document_text[start:end]` is `text`, counted in code points.

    `id` is "document_id#start-end". `metadata` are the document's own and, winning over these, those of `PLACE_KEYS`.
    """

    id: str
    text: str
    metadata: dict[str, Any]


class Searching:
    """A search of one corpus, by words or by vectors. Raises CorpusNotFoundError, and InputError on another mode."""

    def __init__(self, corpus: str | Path, mode: str = "bm25", model: str | None = None) -> None:
        SearchOptions(mode=cast(Mode, mode))
        if mode != "bm25" and model is None:
            raise InputError(f"mode {mode!r} searches by vectors; name their model, such as model='quoth-mini'")
        self.corpus, self._lock = Corpus.open(corpus), threading.Lock()
        self._call = str(self.corpus.path.absolute()), mode, model
        self._find: Callable[[str, int], list[Hit]]
        if mode == "bm25":
            self._find = lambda query, k: bm25([self.corpus], query, k)
        else:
            loaded = load(cast(str, model), self.corpus)
            if not isinstance(loaded, CorpusModel):
                raise InputError(f"model {model!r} has no vectors; name quoth-mini or quoth-realm")
            self._find = lambda query, k: loaded.search(query, k, cast(Mode, mode))

    def __reduce__(self) -> tuple[type[Searching], tuple[str, str, str | None]]:
        return Searching, self._call

    def search(self, query: str, k: int) -> list[Found]:
        """The k best passages of the corpus as it is now. Raises InputError, EmptyCorpusError.

        One search at a time: another would move the corpus to a snapshot in which a found row may be gone.
        """
        with self._lock:
            self.corpus.catch_up()
            return [self._found(each) for each in self._find(query, k)]

    def _found(self, hit: Hit) -> Found:
        passage, values = hit.passage, hit.to_dict() | {"corpus": self.corpus.name}
        name = f"{passage.document_id}#{passage.start}-{passage.end}"
        return Found(name, passage.text, {**passage.metadata, **{key: values[key] for key in PLACE_KEYS}})
