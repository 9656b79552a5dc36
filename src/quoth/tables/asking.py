"""The rows of a table: which documents each is of, and its questions asked of all their passages.

Knows: how a corpus is parted into rows, and that a row's passages are searched as a corpus of their own. Does not know:
what is kept of the answers, or how a question is answered (`reader.answering`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from quoth.answers.evidence import RIVALS, Source, Spans, chance, features, predict_spans
from quoth.corpus.bm25 import LiveWords, Query, Ranking, Words, count, indexed_text, search
from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.cite import text_directive
from quoth.corpus.segment import Segment
from quoth.corpus.where import values_of
from quoth.errors import CorruptionError, InputError, nearest
from quoth.index.finder import Finder
from quoth.index.fusion import shares_of_sum
from quoth.reader.answering import predictions
from quoth.reader.spans import SpanReader
from quoth.records import Passage
from quoth.tables.cells import UNREADABLE, Cell, Row, cell_of, surest
from quoth.tables.columns import Column
from quoth.tables.likeliest import alone, likeliest

UNMATCHED = 0.01
"""The score of a passage that has no word of the question, as a share of the best one's; as in a fusion of rankings."""
STEPS = ((1, 0.5), (1, 0.4), (2, 0.3), (2, 0.0))
"""Numbers of passages that are read at a time, and the chance of the best phrase so far from which no more are. In 312
cells of the Factbook and of agreements the best phrase of eight passages that answers is found by 3.2 of them."""
MOST = sum(number for number, _ in STEPS)
TEXTS_AT_A_TIME = 24


class Documents(NamedTuple):
    """The documents of a row: their segments and their numbers there."""

    places: list[tuple[Segment, int]]

    def digest(self) -> str:
        """Equal for equal documents. Raises CorruptionError."""
        return sha256("".join(segment.digest(number) for segment, number in self.places).encode()).hexdigest()

    def text(self) -> str:
        """All that they say. Raises CorruptionError."""
        return "\n".join(segment.document(number).text for segment, number in self.places)

    def title(self) -> str:
        """That of the document, if it is one."""
        segment, number = self.places[0]
        return segment.record(number)[1] if len(self.places) == 1 else ""

    def linked(self, place: dict[str, Any]) -> dict[str, Any]:
        """A place of a document with the link that opens it, if its metadata has a URL. Raises CorruptionError."""
        for segment, number in self.places:
            document_id, _, metadata = segment.record(number)
            url = metadata.get("url")
            if document_id == place["document_id"] and isinstance(url, str) and url.startswith(("http://", "https://")):
                page, text = url.partition(":~:")[0], segment.document(number).text
                directive = text_directive(text, place["start"], place["end"])
                return place | {"link": f"{page}{'' if '#' in page else '#'}:~:{directive}"}
        return place

    def passages(self) -> list[Passage]:
        """Their passages. Raises CorruptionError."""
        return [
            segment.passage(index)
            for segment, number in self.places
            for index in range(*segment.passage_range(number))
        ]  # fmt: skip


def rows_of(corpus: Corpus, by: str | None = None) -> dict[str, Documents]:
    """The rows of a corpus, in the order of its documents: one for each, by its id, or for each value of a field.

    A document with several values is in several rows, one with none is in none. One whose record is damaged has a row
    of its own. Raises InputError if all have none.
    """
    rows, known = dict[str, Documents](), set[str]()
    for segment, number in corpus.numbered():
        try:
            document_id, title, metadata = segment.record(number)
        except CorruptionError:
            rows[f"{segment.name}/{number}"] = Documents([(segment, number)])
            continue
        record = {**metadata, "id": document_id, "title": title}
        known.update(record)
        for value in [document_id] if by is None else dict.fromkeys(map(str, values_of(record, by))):
            rows.setdefault(value, Documents([])).places.append((segment, number))
    if known and not rows:
        there = ", ".join(sorted(known)[:20])
        raise InputError(f"by: no document has a field {by!r}{nearest(by, known)}; there are: {there}")
    return rows


class Asker:
    """Asks the questions of a table's columns, of one row at a time."""

    def __init__(self, reader: SpanReader, corpus: Corpus, columns: Sequence[Column]) -> None:
        self._reader, self._corpus, self._columns, self._finder = reader, corpus, columns, Finder([corpus])
        self._vector = cache(lambda retriever, text: retriever.encoder.words(text))

    def row(self, key: str, documents: Documents) -> Row:
        """A row. A document that cannot be read makes one that says so."""
        try:
            by_words, passages, title = self._finder.by_vectors() is None, documents.passages(), documents.title()
            found = self._cells(passages) if passages else {each.name: Cell() for each in self._columns}
            cells = {name: cell.placed(documents.linked) for name, cell in found.items()}
        except CorruptionError as error:
            return unreadable(key, self._columns, error)
        return Row(key, title, {each.name: cells[each.name] for each in self._columns}, by_words=by_words)

    def _cells(self, passages: Sequence[Passage]) -> dict[str, Cell]:
        asked = [(column, wording) for column in self._columns for wording in column.wordings]
        spelled = [self._finder.as_spelled(wording.strip()) for _, wording in asked]
        found, best = list[Cell](), list[Cell | None]()
        for (column, given), (text, may_be_name), (read, spans) in zip(
            asked, spelled, self._read([text for text, _ in spelled], passages), strict=True
        ):
            least = self._reader.config.defaults.min_probability if column.threshold is None else column.threshold
            said = predictions(read, spans, self._reader.config, RIVALS, math.inf if least and may_be_name else least)
            found.append(replace(cell_of(said, column), read_as=text if text != given.strip() else ""))
            is_compared = column.threshold is None
            best.append(likeliest(read, spans, said.sentences, self._reader.config, column) if is_compared else None)
        best = alone(self._reader, [text for text, _ in spelled], best)
        cells = dict[str, list[Cell]]()
        for (column, _), cell, phrase in zip(asked, found, best, strict=True):
            cells.setdefault(column.name, []).append(replace(cell, likeliest=phrase))
        return {name: surest(own) for name, own in cells.items()}

    def _read(self, texts: Sequence[str], passages: Sequence[Passage]) -> Iterator[tuple[list[Source], list[Spans]]]:
        """What is read for each question: its best passages, a few at a time, as long as it is open."""
        for at in range(0, len(texts), TEXTS_AT_A_TIME):
            part = texts[at : at + TEXTS_AT_A_TIME]
            sources, spans = self._found(part, passages), [list[Spans]() for _ in part]
            left: Sequence[int] = range(len(part))
            for number, sure in STEPS:
                shown = [sources[n][len(spans[n]) :][:number] for n in left]
                more = self._reader.read_enough([part[n] for n in left], shown) if left else []
                for n, found in zip(left, more, strict=True):
                    spans[n] += found
                left = [n for n in left if self._is_open(sources[n], spans[n], sure)]
            yield from ((group[: len(found)], found) for group, found in zip(sources, spans, strict=True))

    def _is_open(self, sources: Sequence[Source], spans: Sequence[Spans], sure: float) -> bool:
        """Whether more passages may answer: none that was read is relevant enough, and the best phrase in them is not
        sure."""
        config, read = self._reader.config, sources[: len(spans)]
        if len(read) == len(sources):
            return False
        if config.enough_relevance is not None and any(each.relevance >= config.enough_relevance for each in spans):
            return False
        best = predict_spans(read, spans, 1, prior=config.prior)
        shares = [
            each.probability if config.calibration is None else chance(config.calibration, features(each, read, spans))
            for each in best
        ]
        return max(shares, default=0.0) < sure

    def _found(self, texts: Sequence[str], passages: Sequence[Passage]) -> list[list[Source]]:
        """The passages of a row to read for each question, the best first: by words, as if there were no others in the
        corpus, and by their vectors if it has them; those without a word of it last."""
        words = (indexed_text(each.title, each.text, each.path()) for each in passages)
        parts, among, found = [LiveWords(Words.of(words))], len(passages), list[list[Source]]()
        for text, near in zip(texts, self._near(texts, passages), strict=True):
            query = Query.of(text)
            best = search(parts, query, among, count(parts, query))
            ranking: Ranking = [(score, (0, row)) for row, score in zip(*(each.tolist() for each in best), strict=True)]
            ranking = shares_of_sum([ranking, near], among) if near else ranking
            shares = dict.fromkeys(range(among), UNMATCHED)
            shares |= {row: max(score / ranking[0][0], UNMATCHED) for score, (_, row) in ranking}
            first = sorted(shares, key=lambda row: (-shares[row], row))[:MOST]
            found.append([Source(passages[row], self._corpus.name, math.log(shares[row]), among) for row in first])
        return found

    def _near(self, texts: Sequence[str], passages: Sequence[Passage]) -> list[Ranking]:
        """For each question the numbers of these passages, the nearest first; nothing if they have no vectors."""
        if (retriever := self._finder.by_vectors()) is None:
            return [[] for _ in texts]
        numbers = {(0, passage.row): number for number, passage in enumerate(passages)}
        keys = retriever.keys_in(numbers, np.concatenate([self._vector(retriever, text) for text in texts]))
        near = [[(own[q].similarity, (0, numbers[place])) for place, own in keys.items()] for q in range(len(texts))]
        return [sorted(ranking, key=lambda each: (-each[0], each[1])) for ranking in near]


def unreadable(key: str, columns: Sequence[Column], error: CorruptionError) -> Row:
    """The row of a document that cannot be read."""
    return Row(key, "", {each.name: Cell(status=UNREADABLE) for each in columns}, str(error))
