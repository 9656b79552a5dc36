"""What integrations with every framework share: a question answered and a quotation verified, as small dictionaries;
passages with their place as metadata.

Knows: corpora, models, quotations. Does not know: any framework.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.quotes import verify_quote as verify
from quoth.errors import CorpusNotFoundError, InputError
from quoth.index.finder import Finder
from quoth.index.options import Mode, SearchOptions
from quoth.model.base import CorpusModel
from quoth.model.loading import load
from quoth.reader.model import Reader
from quoth.records import NOT_FOUND, PLACES, Evidence, Hit, Hits, Status, quote_of
from quoth_sources.source_map import as_json

NOTES: dict[Status, str] = {
    "answered": "The first answer is likely to be right. Give it with the place that says it.",
    "unsure": "The first answer may be right: `probability` is the chance. Read its context; if that answers the "
    "question, give it, and say how sure it is. Do not say that there is no answer.",
    "not_found": f"{NOT_FOUND[0].upper()}{NOT_FOUND[1:]}; what is listed only comes nearest. Other passages may say: "
    "ask in other words, or search for passages and read them. Do not say that the corpus has no answer: say that "
    "none was found.",
}
"""What each status means to an assistant."""


def opened(corpus: str | Path, where: str | None) -> Corpus:
    """A corpus, or the part of it that meets a condition. Raises CorpusNotFoundError, InputError."""
    whole = Corpus.open(corpus)
    return whole if where is None else whole.where(where)


def latest(corpus: Corpus, where: str | None) -> Corpus:
    """The corpus, moved to its latest snapshot; or the one that was made anew in its folder, of which `where` says what
    part is read."""
    try:
        corpus.catch_up()
    except CorpusNotFoundError:
        return opened(corpus.path, where)
    return corpus


class Asking:
    """Questions to one corpus, one at a time, and quotations to check in it.

    `ask_corpus` returns `status`, a `note` that says what it means, and `answers`, a list of answer, probability,
    status, num_places, and as `places` the best place: quotation, document_id, title, start, end, context and perhaps
    `location`; and `sentences` that may answer, a list of sentence, probability and `places`; and `read_as`, the
    question that was read if words of it were misspelt. `verify_quote` needs no model; it returns occurs, num_places,
    the first `places`, and `nearest` if the words do not occur.

    Args:
        corpus (str | Path): The folder of a corpus.
        model (str): A reader, by name or folder. It is loaded with the first question. Default: "quoth-reader".
        top_k (int): Number of answers. Default: 3.
        where (str | None): A condition on the documents' metadata, as in `Corpus.where`. Default: None (all of them).

    Raises:
        CorpusNotFoundError: No corpus in that folder.
        InputError: The condition cannot be read.
    """

    def __init__(
        self, corpus: str | Path, model: str = "quoth-reader", top_k: int = 3, where: str | None = None
    ) -> None:
        self.corpus, self._lock = opened(corpus, where), threading.Lock()
        self._model, self._top_k, self._where = model, top_k, where

    def _catch_up(self) -> None:
        self.corpus = latest(before := self.corpus, self._where)
        if self.corpus is not before and "_reader" in self.__dict__:
            self.__dict__["_reader"] = self._reader.over([self.corpus])

    @cached_property
    def _reader(self) -> Reader:
        return Reader.from_pretrained(self._model, self.corpus)

    @property
    def about_ask(self) -> str:
        """What `ask_corpus` does, as an assistant is told."""
        return (
            f"Answer a question with phrases quoted from the corpus {self.corpus.name!r}, best first, each with its "
            "probability of being right and the place where it occurs; and with whole sentences, which say more where "
            "it asks how or why, or for a list. `note` says what `status` means."
        )

    @property
    def about_verify(self) -> str:
        """What `verify_quote` does, as an assistant is told."""
        return (
            f"Check whether words occur in the corpus {self.corpus.name!r}, exactly except for white space, and where; "
            "if they do not, what is nearest to them. Check every quotation before you give it."
        )

    def ask_corpus(self, question: str) -> dict[str, Any]:
        """The answers as dictionaries. Raises InputError, EmptyCorpusError."""
        with self._lock:
            self._catch_up()
            found = self._reader.ask(question, top_k=self._top_k)
        return {
            "status": found.status,
            "note": NOTES[found.status],
            "answers": [
                {
                    "answer": each.text,
                    "probability": each.probability,
                    "status": each.status,
                    "num_places": each.num_places,
                    "places": [_place(place) for place in each.evidence[:1]],
                }
                for each in found
            ],
            "sentences": [
                {
                    "sentence": each.text,
                    "probability": each.probability,
                    "places": [_place(place) for place in each.evidence],
                }
                for each in found.sentences
            ],
            "read_as": found.read_as,
        }

    def verify_quote(self, text: str) -> dict[str, Any]:
        """Whether and where words occur, and what is nearest if they do not. Raises InputError."""
        with self._lock:
            self._catch_up()
            found = verify(self.corpus, text, PLACES)
        return {
            "occurs": found.occurs,
            "num_places": found.num_places,
            "places": [_place(each) for each in found.places],
            "nearest": [_place(each) for each in found.nearest],
        }


def _place(place: Evidence) -> dict[str, Any]:
    known = as_json(place)
    names = ("document_id", "title", "start", "end", "context", "location")
    return {"quotation": quote_of(place)} | {name: known[name] for name in names if name in known}


PLACE_KEYS = ("document_id", "title", "start", "end", "passage", "corpus", "score", "location", "read_as")
"""The keys that a search adds to a document's metadata; `location` only where it is known, `read_as`, the
query that was searched, only if words of it were misspelt."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage: `document_text[start:end]` is `text`, counted in code points.

    `id` is "document_id#start-end". `metadata` are the document's own and, winning over these, those of `PLACE_KEYS`.
    """

    id: str
    text: str
    metadata: dict[str, Any]


class Searching:
    """A search of one corpus, by words or by vectors. Raises CorpusNotFoundError, and InputError on another mode or a
    condition that cannot be read."""

    def __init__(
        self, corpus: str | Path, mode: str = "auto", model: str | None = None, where: str | None = None
    ) -> None:
        SearchOptions(mode=cast(Mode, mode))
        if mode not in ("auto", "bm25") and model is None:
            raise InputError(f"mode {mode!r} searches by vectors; name their model, such as model='quoth-mini'")
        self.corpus, self._lock = opened(corpus, where), threading.Lock()
        self._call = str(self.corpus.path.absolute()), mode, model, where
        self._loaded: CorpusModel | None = None
        if mode not in ("auto", "bm25"):
            loaded = load(cast(str, model), self.corpus)
            if not isinstance(loaded, CorpusModel):
                raise InputError(f"model {model!r} has no vectors; name quoth-mini or quoth-realm")
            self._loaded = loaded
        self._find = self._finding()

    def _finding(self) -> Callable[[str, int], Hits]:
        """What finds passages of the corpus."""
        over: CorpusModel | Finder = self._loaded.over([self.corpus]) if self._loaded else Finder([self.corpus])
        return partial(over.search, mode=cast(Mode, self._call[1]))

    def __reduce__(self) -> tuple[type[Searching], tuple[str, str, str | None, str | None]]:
        return Searching, self._call

    def search(self, query: str, k: int) -> list[Found]:
        """The k best passages of the corpus as it is now. Raises InputError, EmptyCorpusError.

        One search at a time: another would move the corpus to a snapshot in which a found row may be gone.
        """
        with self._lock:
            self.corpus = latest(before := self.corpus, self._call[3])
            if self.corpus is not before:
                self._find = self._finding()
            hits = self._find(query, k)
            more = {"read_as": hits.read_as} if hits.read_as else {}
            return [_found(each, each.to_dict() | more) for each in hits]


def _found(hit: Hit, values: dict[str, Any]) -> Found:
    passage, known = hit.passage, {key: values[key] for key in PLACE_KEYS if key in values}
    return Found(f"{passage.document_id}#{passage.start}-{passage.end}", passage.text, {**passage.metadata, **known})
