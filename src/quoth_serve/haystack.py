"""Haystack: passages of a corpus, and answers quoted from it, as components of a pipeline. It stores them by the
arguments of their constructors, which they keep under their names.

Knows: Haystack's documents and answers. Does not know: how passages are ranked or questions answered.
"""

from __future__ import annotations

from typing import Any

from haystack import Document, component
from haystack.dataclasses import ExtractedAnswer

from quoth.corpus.corpus import Corpus
from quoth.reader.model import Reader
from quoth.records import Evidence, Prediction, Sentence, in_context, quote_of
from quoth_serve.shared import PLACE_KEYS, Searching, opened
from quoth_sources.source_map import as_json


@component
class QuothRetriever:
    """The best passages of a corpus for a query, as `Document`s.

    A document's `content` is the passage; its metadata are those of the corpus's document, with document_id, title,
    start, end, passage and corpus.
    """

    def __init__(
        self,
        corpus: str,
        top_k: int = 10,
        mode: str = "auto",
        model: str | None = None,
        where: str | None = None,
    ) -> None:
        """Nothing is opened or loaded before `warm_up`.

        Args:
            corpus: The folder of a corpus.
            top_k: Number of passages.
            mode: "auto" or "bm25", which need no model, "dense" or "hybrid".
            model: The model for searches by vectors, by name or folder.
            where: A condition on the documents' metadata, as in `Corpus.where`; None: all of them.
        """
        self.corpus, self.top_k, self.mode, self.model, self.where = corpus, top_k, mode, model, where
        self._searching: Searching | None = None

    def warm_up(self) -> None:
        """Open the corpus and load the model, if there is one."""
        if self._searching is None:
            self._searching = Searching(self.corpus, self.mode, self.model, self.where)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Find passages.

        Args:
            query: What to look for.
            top_k: Number of passages; None: the component's.

        Returns:
            A dictionary with `documents`, best first.
        """
        self.warm_up()
        assert self._searching is not None
        found = self._searching.search(query, self.top_k if top_k is None else top_k)
        documents = []
        for each in found:
            meta = {key: value for key, value in each.metadata.items() if key != "score"}
            documents.append(Document(id=each.id, content=each.text, score=each.metadata["score"], meta=meta))
        return {"documents": documents}


@component
class QuothReader:
    """Answers a question with phrases of a corpus, as `ExtractedAnswer`s, and with sentences, as `Document`s.

    An answer's `document` is a document of the corpus, and `document_offset` counts the code points of its content;
    `context` is the passage, in which `context_offset` counts. `score` is the chance of being right. The metadata have
    `status` ("answered", "unsure" or "not_found"), `abstained` (it is not "answered") and `num_places`.

    The `score` of a sentence (or list item, row, short list) is the chance that it answers; its metadata are those of
    the corpus's document, with document_id, title, start, end, passage and corpus.
    """

    def __init__(
        self,
        corpus: str,
        model: str = "quoth-reader",
        top_k: int = 5,
        passages: int | None = None,
        drop_guesses: bool = False,
        where: str | None = None,
    ) -> None:
        """Nothing is opened or loaded before `warm_up`.

        Args:
            corpus: The folder of a corpus.
            model: A reader, by name or folder.
            top_k: Number of answers.
            passages: Number of passages to read; None: the model's own.
            drop_guesses: Drop answers that are unsure or not found, perhaps all of them.
            where: A condition on the documents' metadata, as in `Corpus.where`; None: all of them.
        """
        self.corpus, self.model, self.where = corpus, model, where
        self.top_k, self.passages, self.drop_guesses = top_k, passages, drop_guesses
        self._reader: Reader | None = None

    def warm_up(self) -> None:
        """Open the corpus and load the model."""
        if self._reader is None:
            self._reader = Reader.from_pretrained(self.model, opened(self.corpus, self.where))

    @component.output_types(answers=list[ExtractedAnswer], sentences=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, Any]:
        """Answer a question.

        Args:
            query: The question.
            top_k: Number of answers; None: the component's.

        Returns:
            A dictionary with `answers` and `sentences`, best first. The `query` of an answer is the question as read,
            with misspellings corrected.
        """
        reader = self._latest()
        (corpus,) = reader.corpora
        found = reader.ask(query, top_k=self.top_k if top_k is None else top_k, passages=self.passages)
        kept = [each for each in found if each.evidence and not (self.drop_guesses and each.abstained)]
        return {
            "answers": [_answer(corpus, found.read_as or query, each, each.evidence[0]) for each in kept],
            "sentences": [_sentence(corpus, each, each.evidence[0]) for each in found.sentences],
        }

    def _latest(self) -> Reader:
        """The reader over the current corpus. Another thread's run keeps the snapshot it started with."""
        self.warm_up()
        assert self._reader is not None
        reader = self._reader
        (corpus,) = reader.corpora
        if not corpus.is_current():
            reader = self._reader = reader.over([opened(self.corpus, self.where)])
        return reader


def _sentence(corpus: Corpus, sentence: Sentence, place: Evidence) -> Document:
    known = as_json(place)
    place_of = {key: known[key] for key in PLACE_KEYS if key in known and key != "score"}
    return Document(
        id=f"{place.document_id}#{place.start}-{place.end}",
        content=quote_of(place),
        meta={**corpus.document(place.document_id).metadata, **place_of},
        score=sentence.probability,
    )


def _answer(corpus: Corpus, query: str, answer: Prediction, best: Evidence) -> ExtractedAnswer:
    document = corpus.document(best.document_id)
    (start, end), known = in_context(best), as_json(best)
    return ExtractedAnswer(
        query=query,
        score=answer.probability,
        data=document.text[best.start : best.end],
        document=Document(id=document.id, content=document.text, meta={**document.metadata, "title": document.title}),
        context=best.context,
        document_offset=ExtractedAnswer.Span(start=best.start, end=best.end),
        context_offset=ExtractedAnswer.Span(start=start, end=end),
        meta={
            "status": answer.status,
            "abstained": answer.abstained,
            "num_places": answer.num_places,
            "corpus": best.corpus,
            **({"location": known["location"]} if "location" in known else {}),
        },
    )
