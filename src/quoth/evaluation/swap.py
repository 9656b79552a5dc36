"""Swaps a corpus for another edition of itself: do a model's answers follow? (REALM, Guu et al. 2020, Table 4.)

Knows: which sentences of two editions differ in one name or number, and how answers are counted. Does not know: how a
model answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product, takewhile
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.corpus.passages import sentences
from quoth.datasets.answers import recall
from quoth.errors import InputError, UnknownDocumentError
from quoth.evaluation.baselines import Answers
from quoth.evaluation.metrics import HITS, exact_and_hits, markdown, percent, rank
from quoth.records import Prediction
from quoth.tokenizers.text import MASK

EDITIONS = ("old", "new")
CONTEXT_WORDS = 6
"""The least number of words of a sentence that must be the same in both editions."""
_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*")

Words = list[re.Match[str]]


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence that differs between two editions in one phrase: the new edition's sentence with that phrase masked,
    and the phrase in the old and in the new edition."""

    title: str
    text: str
    old: str
    new: str


class Filler(Protocol):
    """What the evaluation needs of a model over one edition: the best phrases for each text's blank."""

    def fill(self, text: Sequence[str], **options: Any) -> list[list[Prediction]]: ...


@dataclass(frozen=True, slots=True)
class SwapReport:
    """The changes, and a model's best phrases for each from the old and from the new edition."""

    changes: tuple[Change, ...]
    from_old: tuple[Answers, ...]
    from_new: tuple[Answers, ...]

    @property
    def followed(self) -> list[bool]:
        """For each change, whether the first answer is right with both editions."""
        ranks = zip(_ranks(self._old, self.from_old), _ranks(self._new, self.from_new), strict=True)
        return [pair == (0, 0) for pair in ranks]

    def to_dict(self) -> dict[str, Any]:
        """Shares of the changes: those answered right with each edition (first answer, one of the first five) and with
        both, and the share of first answers from either edition that are the other edition's phrase."""
        old, new = _ranks(self._old, self.from_old), _ranks(self._new, self.from_new)
        other = [*_ranks(self._new, self.from_old), *_ranks(self._old, self.from_new)]
        return {
            "num_changes": len(self.changes),
            "old": {"exact_match": recall(old, 1), "hit_at_5": recall(old, HITS)},
            "new": {"exact_match": recall(new, 1), "hit_at_5": recall(new, HITS)},
            "both": sum(self.followed) / len(self.changes),
            "of_the_other_edition": recall(other, 1),
        }

    @property
    def _old(self) -> list[str]:
        return [change.old for change in self.changes]

    @property
    def _new(self) -> list[str]:
        return [change.new for change in self.changes]


def _ranks(phrases: Sequence[str], answers: Sequence[Answers]) -> list[int | None]:
    """The rank of each phrase among the answers to its change."""
    return list(map(rank, phrases, answers))


def find_changes(old: Corpus, new: Corpus, max_words: int = 3) -> Iterator[Change]:
    """Sentences of documents with the same id that differ in one name or number of up to `max_words` words: the first
    one per document.

    Each word of a name begins with a capital or a digit. Names at the beginning of a sentence, and pairs with similar
    spelling, are left out.
    """
    for document in new.documents():
        try:
            before, after = _sentences(old.document(document.id).text), _sentences(document.text)
        except UnknownDocumentError:
            continue
        theirs = [_words(sentence) for sentence in before if sentence not in after]
        ours = [_words(sentence) for sentence in after if sentence not in before]
        changes = (_change(document.title, here, there, max_words) for here, there in product(ours, theirs))
        if (change := next(filter(None, changes), None)) is not None:
            yield change


def run_swap(changes: Sequence[Change], old: Filler, new: Filler, **options: Any) -> SwapReport:
    """Ask a model about the changes, once over the old and once over the new edition. `options` go to its `fill`.

    Raises InputError if there are no changes.
    """
    if not changes:
        raise InputError(
            "no sentence differs in exactly one name or number; give two editions of the same documents, with equal ids"
        )
    texts = [change.text for change in changes]
    answers = [
        tuple(
            tuple(prediction.text for prediction in predictions)
            for predictions in model.fill(texts, top_k=HITS, **options)
        )
        for model in (old, new)
    ]
    return SwapReport(tuple(changes), *answers)


def table(report: SwapReport, show: int = 0) -> str:
    """The shares as a Markdown table (percentages), and the first `show` changes that the answers followed."""
    scores = report.to_dict()
    editions = [exact_and_hits(scores[name]["exact_match"], scores[name]["hit_at_5"]) for name in EDITIONS]
    shares = [percent(scores[name]) for name in ("both", "of_the_other_edition")]
    heads = ["old: exact match (hit@5)", "new", "right with both", "of the other"]
    shown = markdown([f"{scores['num_changes']:,} changes, %", *heads], [["answers", *editions, *shares]])
    followed = [change for change, right in zip(report.changes, report.followed, strict=True) if right]
    examples = [
        f"\n{change.title}: {change.text}\n  old: {change.old}   new: {change.new}\n" for change in followed[:show]
    ]
    return shown + "".join(examples)


def _sentences(text: str) -> dict[str, None]:
    return dict.fromkeys(text[start:end] for start, end in sentences(text))


def _words(sentence: str) -> Words:
    return list(_WORD.finditer(sentence))


def _change(title: str, here: Words, there: Words, max_words: int) -> Change | None:
    """The one name or number in which two sentences differ."""
    left = _same(here, there)
    right = min(_same(here[::-1], there[::-1]), len(here) - left, len(there) - left)
    ours, theirs = here[left : len(here) - right], there[left : len(there) - right]
    if not left or left + right < CONTEXT_WORDS or not all(0 < len(words) <= max_words for words in (ours, theirs)):
        return None
    (before, new, after), (same_before, old, same_after) = _cut(ours), _cut(theirs)
    same = (before, after) == (same_before, same_after)
    if not same or not all(map(_capital, [*ours, *theirs])) or _alike(old, new):
        return None
    return Change(title, f"{before}{MASK}{after}", old, new)


def _same(here: Words, there: Words) -> int:
    """The number of equal words, counted from the first word."""
    return sum(1 for _ in takewhile(lambda pair: pair[0].group() == pair[1].group(), zip(here, there, strict=False)))


def _cut(phrase: Words) -> tuple[str, str, str]:
    """The text of a sentence before, in and after one of its phrases."""
    sentence, start, end = phrase[0].string, phrase[0].start(), phrase[-1].end()
    return sentence[:start], sentence[start:end], sentence[end:]


def _capital(word: re.Match[str]) -> bool:
    return word.group()[0].isupper() or word.group()[0].isdigit()


def _alike(one: str, other: str) -> bool:
    """Whether two phrases share half of their letters in order, as spellings of one name do; numbers must be equal."""
    one, other = ("".join(filter(str.isalnum, phrase)).casefold() for phrase in (one, other))
    if one.isdigit() and other.isdigit():
        return one == other
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.5
