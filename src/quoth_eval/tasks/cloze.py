"""The cloze task: fill blanks drawn from a corpus, or from held-out pages, which then become the corpus.

Knows: which documents are used, how an answer is judged, the most frequent phrases of the corpus, or of BM25's best
passage, as baselines. Does not know: how blanks are drawn, or models.

Both baselines know the kind of the blank, which models do not, and propose only phrases of that kind.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path
from sys import maxsize
from typing import Annotated, Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_listing
from quoth.datasets.blanks import KINDS, MAX_WORDS, Blank, draw_blanks, may_answer, words
from quoth.datasets.judging import normalise
from quoth.errors import InputError
from quoth.fields import Checked
from quoth.records import Document, Prediction
from quoth.text.passages import MEASURED
from quoth.text.tokenizer import MASK
from quoth_eval.spec import Given, Prepared, TaskSpec
from quoth_eval.systems import filling
from quoth_eval.task import HITS, Answer, Example, System, Task, first_right, length_groups, said

Phrases = Callable[[Blank], tuple[str, ...]]
"""Maps a blank to the answers to it, best first."""
BLANKS_AT_A_TIME = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ClozeSettings(Checked):
    """Which of the pages are used."""

    heldout: Annotated[str | None, "Use only the documents that this JSONL lists (id, title)."] = None


def read_pages(pages: Sequence[str | Path], heldout: str | None) -> list[Document]:
    """The documents of the files; with `heldout`, only those whose id or title (ignoring case) is in that list.

    Raises InputError on an invalid list, and if no document is left.
    """
    read = read_documents(*pages)
    if heldout is None:
        documents = list(read)
    else:
        ids, titles = read_listing(Path(heldout))
        documents = [document for document in read if document.id in ids or document.title.casefold() in titles]
    if not documents:
        named = "" if heldout is None else f" that {heldout} names"
        raise InputError(f"no document{named} in {', '.join(map(str, pages))}; give the file that contains them")
    return documents


def over_pages(given: Given, heldout: str | None = None) -> Given:
    """The call over a corpus of its files, as `read_pages` reads them, if it names any."""
    if not given.files:
        return given
    made = Corpus.create(given.scratch / "pages.quoth", MEASURED)
    made.add(read_pages(given.files, heldout))
    return replace(given, corpora=(made,))


def cloze_task(blanks: Sequence[Blank], settings: Mapping[str, Any]) -> Task[Blank]:
    """Blanks to fill, those of neighbouring passages together; a blank's own passage is hidden."""
    examples = []
    for number, blank in enumerate(blanks):
        groups = {"kind": blank.kind} | length_groups(blank.num_words, "words")
        name, hidden = f"{blank.kind}-{number}", frozenset({blank.row})
        examples.append(Example(name, blank.text, (blank.answer,), blank, groups, hidden))
    return Task(
        name="cloze",
        examples=examples,
        judge=lambda example, answer: first_right(said(example.source.answer, answer)),
        settings=settings,
        at_a_time=BLANKS_AT_A_TIME,
        order=lambda example: example.source.row,
    )


def most_frequent(texts: Sequence[str], kind: str, top_k: int = HITS) -> tuple[str, ...]:
    """The most frequent phrases of a kind in the texts, of 1 to `MAX_WORDS` words, spelled as they first occur.

    Case and spaces are ignored. Equal counts are ordered by first occurrence, shorter phrases first. A phrase is never
    more frequent than without its last word, so phrases that cannot reach the best `top_k` are not extended.
    """
    words_of = [words(text) for text in texts]
    alive = [(t, i) for t, ranges in enumerate(words_of) for i in range(len(ranges))]
    found: list[tuple[int, int, int, int, str]] = []
    for length in range(1, MAX_WORDS + 1):
        alive = [(t, i) for t, i in alive if i + length <= len(words_of[t])]
        phrases = [texts[t][words_of[t][i][0] : words_of[t][i + length - 1][1]] for t, i in alive]
        keys = [normalise(phrase) for phrase in phrases]
        counts, met = Counter(keys), set[str]()
        for (t, i), key, phrase in zip(alive, keys, phrases, strict=True):
            ends = (texts[t][slice(*words_of[t][at])] for at in (i, i + length - 1))
            if key not in met and may_answer(kind, *ends):
                found.append((-counts[key], t, i, length, phrase))
            met.add(key)
        found = sorted(found)[:top_k]
        least = -found[-1][0] if len(found) == top_k else 0
        alive = [where for where, key in zip(alive, keys, strict=True) if counts[key] >= least]
    return tuple(phrase for *_, phrase in found)


def frequent_phrases(corpus: Corpus) -> Phrases:
    """Gives every blank of a kind the same answers: the most frequent phrases of the corpus."""
    texts = cache(lambda: [passage.text for passage in corpus.passages()])
    best = cache(lambda kind: most_frequent(texts(), kind))
    return lambda blank: best(blank.kind)


def bm25_phrases(corpus: Corpus) -> Phrases:
    """Answers with the most frequent phrases of BM25's best passage for the query, other than the blank's own."""

    def answer(blank: Blank) -> tuple[str, ...]:
        rows, _ = corpus.bm25(blank.text.replace(MASK, " "), 2)
        others = [int(row) for row in rows if int(row) != blank.row]
        return most_frequent([corpus.passage(others[0]).text], blank.kind) if others else ()

    return answer


def phrases(of: Phrases) -> System[Blank]:
    """A baseline's phrases, which have no place and no probability."""
    return lambda examples: [
        Answer([Prediction(text, 0.0, 0.0, ()) for text in of(example.source)]) for example in examples
    ]


def _make(given: Given, settings: ClozeSettings) -> Prepared:
    given = over_pages(given, settings.heldout)
    corpus = given.one_corpus("cloze")
    counted = {"num_pages": corpus.num_documents} if given.files else {}
    count = maxsize if given.limit is None else ceil(given.limit / len(KINDS))
    passages = list(corpus.passages())
    blanks = [blank for kind in KINDS for blank in draw_blanks(passages, kind, count, given.seed)][: given.limit]
    return Prepared(
        task=cloze_task(blanks, given.settings(**counted)),
        asks=filling(given),
        baselines={
            "frequent": lambda _: phrases(frequent_phrases(corpus)),
            "bm25": lambda _: phrases(bm25_phrases(corpus)),
        },
    )


SPECS = [
    TaskSpec(
        name="cloze",
        settings=ClozeSettings,
        make=_make,
        systems=("quoth-mini", "bm25", "frequent"),
        baselines=("bm25", "frequent"),
        limit=3000,
        takes_files=True,
    )
]
