"""Draws the benchmark: sentences by seed, each quoted faithfully and forged; as a file that others can read.

Knows corpora and changes. Does not know who checks quotations.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import TypeVar

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import create_lines, read_records
from quoth.corpus.exact.overlap import overlap
from quoth.corpus.view import CorpusView
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.folding import fold, word_starts
from quoth_eval.quotations.faithful import FAITHFUL
from quoth_eval.quotations.forged import FORGED
from quoth_eval.quotations.source import Source, quotable

REDRAWN = 8
"""How often a forgery is drawn that occurs by chance."""
_CHANGES = {**FAITHFUL, **FORGED}
_ELLIPSIS = " … "
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence as it is quoted: its text, what was done to it, whether that is faithful, and where the sentence is in
    a document of a corpus."""

    id: str
    corpus: str
    document_id: str
    start: int
    end: int
    variant: str
    faithful: bool
    text: str


def draw_quotations(corpora: Sequence[Corpus], sentences: int, seed: int) -> Iterator[Quotation]:
    """The quotations of so many sentences, as many of each corpus as of another. A change that does not apply to a
    sentence is left out, and so is a forgery that occurs in its corpus however often it is drawn.

    Raises InputError if a corpus has too few sentences of 12 to 40 words.
    """
    for number, corpus in enumerate(corpora):
        share = sentences * (number + 1) // len(corpora) - sentences * number // len(corpora)
        places = [*islice(_places(corpus, seed), share)]
        if len(places) < share:
            found = f"{corpus.path}: {len(places):,} sentences of 12 to 40 words, but {share:,} are to be drawn"
            raise InputError(f"{found}; give a smaller number of sentences, or a larger corpus")
        yield from _quotations(corpus, places, seed)


Sentence = tuple[str, int, int]
"""The id of a document, and a range of characters."""


def _places(corpus: Corpus, seed: int) -> Iterator[Sentence]:
    """The sentences of a corpus in random order, one of each document before the second of any."""
    ids = sorted(corpus.ids(), key=lambda each: blake2b(f"{seed} {each}".encode()).digest())

    @cache
    def drawn(document_id: str) -> list[tuple[int, int]]:
        found = quotable(corpus.document(document_id).text)
        return Random(f"{seed} {document_id}").sample(found, len(found))

    for turn in count():
        having = [each for each in ids if turn < len(drawn(each))] if turn else ids
        if not having:
            return
        yield from ((each, *drawn(each)[turn]) for each in having if turn < len(drawn(each)))


def _quotations(corpus: Corpus, places: Sequence[Sentence], seed: int) -> Iterator[Quotation]:
    """The quotations of these sentences, sentence by sentence."""
    sources = [*_sources(corpus, places)]
    made = dict[tuple[int, str], Quotation]()
    waiting = [(number, name) for number in range(len(places)) for name in _CHANGES]
    for turn in range(REDRAWN):
        drawn = dict[tuple[int, str], Quotation]()
        for number, name in waiting:
            (document_id, start, end), change = places[number], _CHANGES[name]
            text = change(sources[number], Random(f"{seed} {document_id} {start} {name} {turn}"))
            if text and (text != sources[number].text or name == "unchanged"):
                told = (f"{corpus.name}:{document_id}:{start}:{name}", corpus.name, document_id, start, end)
                drawn[number, name] = Quotation(*told, name, name in FAITHFUL, text)
        forged = {key: each.text for key, each in drawn.items() if not each.faithful}
        waiting = [*occurring(forged, corpus)]
        made |= {key: each for key, each in drawn.items() if key not in waiting}
        if not waiting:
            break
    keys = ((number, name) for number in range(len(places)) for name in _CHANGES)
    yield from (made[key] for key in keys if key in made)


def _sources(corpus: Corpus, places: Sequence[Sentence]) -> Iterator[Source]:
    texts = [corpus.document(document_id).text for document_id, _, _ in places]
    for number, ((document_id, start, end), text) in enumerate(zip(places, texts, strict=True)):
        others = (*range(number + 1, len(places)), *range(number))
        other = next((each for each in others if places[each][0] != document_id), None)
        elsewhere = "" if other is None else texts[other][slice(*places[other][1:])]
        yield Source(text[start:end], text, elsewhere)


def occurring(texts: Mapping[Key, str], corpus: CorpusView | Iterable[Document]) -> set[Key]:
    """Which of these texts occur in a document, from their first word to their last, whatever their typography. Of one
    with an ellipsis, its parts must occur in one document, in order."""
    keys, parts = list[tuple[Key, int]](), list[Document]()
    for key, text in texts.items():
        for at, part in enumerate(text.split(_ELLIPSIS)):
            parts.append(Document(str(len(parts)), "", part))
            keys.append((key, at))
    num_parts = {key: text.count(_ELLIPSIS) + 1 for key, text in texts.items()}
    if not parts:
        return set()
    num_words = [int(word_starts(fold(part.text)).sum()) for part in parts]
    found = dict[tuple[Key, str], list[tuple[int, int, int]]]()
    # In every document that has a part, a run covers all its words.
    for pair in overlap(parts, corpus, max(2, min(num_words))):
        key, at = keys[int(pair.a.document_id)]
        for run in pair.runs:
            if run.words == pair.a.words:
                found.setdefault((key, pair.b.document_id), []).append((at, run.b.start, run.b.end))
    return {key for (key, _), places in found.items() if _in_order(places, num_parts[key])}


def _in_order(places: Iterable[tuple[int, int, int]], num_parts: int) -> bool:
    """Whether all parts (which one, its start and its end) follow each other: each is taken as early as it can be."""
    at = 0
    for part in range(num_parts):
        ends = [end for number, start, end in places if number == part and start >= at]
        if not ends:
            return False
        at = min(ends)
    return True


def write(path: str, quotations: Iterable[Quotation]) -> None:
    """Write quotations as JSONL. Raises InputError for another suffix."""
    with create_lines(path) as stream:
        for each in quotations:
            stream.write(json.dumps(asdict(each), ensure_ascii=False).encode() + b"\n")


def read(path: str | Path, corpora: Sequence[Corpus]) -> list[Quotation]:
    """The quotations of a file that `write` wrote. Raises InputError for a line that is none, or of another corpus."""
    names, found = {corpus.name for corpus in corpora}, []
    for line, record in read_records(path):
        try:
            each = Quotation(**record)
        except TypeError as error:
            raise InputError(
                f"{path}:{line}: not a quotation of the benchmark ({error}); fix or remove the line"
            ) from None
        if each.corpus not in names:
            raise InputError(f"{path}:{line}: a sentence of corpus {each.corpus!r}; name its folder too")
        found.append(each)
    if not found:
        raise InputError(f"{path}: no quotation in it; write one with --write")
    return found
