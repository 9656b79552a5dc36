"""A corpus swapped for another edition of itself: do a model's answers follow it? (REALM, Guu et al. 2020, Table 4.)

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
"""So many words of a sentence at least are the same in both editions."""
_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*")

Words = list[re.Match[str]]


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence of both editions, as the new one has it, with the phrase hidden that differs; that phrase in the old
    and in the new one."""

    title: str
    text: str
    old: str
    new: str


class Filler(Protocol):
    """What is asked of a model over one edition: the best phrases for each text's blank."""

    def fill(self, text: Sequence[str], **options: Any) -> list[list[Prediction]]: ...


@dataclass(frozen=True, slots=True)
class SwapReport:
    """What changed, and a model's best phrases for it, from the old and from the new edition."""

    changes: tuple[Change, ...]
    from_old: tuple[Answers, ...]
    from_new: tuple[Answers, ...]

    @property
    def followed(self) -> list[bool]:
        """Whether the first answer is right with either edition."""
        ranks = zip(_ranks(self._old, self.from_old), _ranks(self._new, self.from_new), strict=True)
        return [pair == (0, 0) for pair in ranks]

    def to_dict(self) -> dict[str, Any]:
        """Shares of the changes: right with each edition (the first answer, one of the first five), right with both,
        and, of both editions' first answers, those that the other edition has."""
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
        return [each.old for each in self.changes]

    @property
    def _new(self) -> list[str]:
        return [each.new for each in self.changes]


def _ranks(phrases: Sequence[str], answers: Sequence[Answers]) -> list[int | None]:
    """Where each phrase stands among the answers to its change."""
    return list(map(rank, phrases, answers))


def find_changes(old: Corpus, new: Corpus, max_words: int = 3) -> Iterator[Change]:
    """Sentences of documents with the same id that have another name in the place of one, or another number, of up to
    `max_words` words: of each document the first.

    Each word of a name begins with a capital or a digit. Names at a sentence's beginning, and those that are spelt
    alike, are left out.
    """
    for document in new.documents():
        try:
            before, after = _sentences(old.document(document.id).text), _sentences(document.text)
        except UnknownDocumentError:
            continue
        theirs = [_words(each) for each in before if each not in after]
        ours = [_words(each) for each in after if each not in before]
        found = (_change(document.title, here, there, max_words) for here, there in product(ours, theirs))
        if (change := next(filter(None, found), None)) is not None:
            yield change


def run_swap(changes: Sequence[Change], old: Filler, new: Filler, **options: Any) -> SwapReport:
    """Ask a model over the old edition, and the same over the new one, for what changed. `options` go to its `fill`.

    Raises InputError where nothing did.
    """
    if not changes:
        raise InputError(
            "no sentence differs in one name or number alone; give two editions of the same documents, with equal ids"
        )
    texts = [each.text for each in changes]
    answers = [
        tuple(tuple(each.text for each in found) for found in model.fill(texts, top_k=HITS, **options))
        for model in (old, new)
    ]
    return SwapReport(tuple(changes), *answers)


def table(report: SwapReport, show: int = 0) -> str:
    """The shares as a Markdown table, and the first `show` changes that the answers followed; percentages."""
    scores = report.to_dict()
    editions = [exact_and_hits(scores[each]["exact_match"], scores[each]["hit_at_5"]) for each in EDITIONS]
    shares = [percent(scores[name]) for name in ("both", "of_the_other_edition")]
    heads = ["old: exact match (hit@5)", "new", "right with both", "of the other"]
    shown = markdown([f"{scores['num_changes']:,} changes, %", *heads], [["answers", *editions, *shares]])
    followed = [each for each, right in zip(report.changes, report.followed, strict=True) if right]
    examples = [f"\n{each.title}: {each.text}\n  old: {each.old}   new: {each.new}\n" for each in followed[:show]]
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
    if not left or left + right < CONTEXT_WORDS or not all(0 < len(each) <= max_words for each in (ours, theirs)):
        return None
    (before, new, after), (same_before, old, same_after) = _cut(ours), _cut(theirs)
    same = (before, after) == (same_before, same_after)
    if not same or not all(map(_capital, [*ours, *theirs])) or _alike(old, new):
        return None
    return Change(title, f"{before}{MASK}{after}", old, new)


def _same(here: Words, there: Words) -> int:
    """How many words are the same, from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0].group() == pair[1].group(), zip(here, there, strict=False)))


def _cut(phrase: Words) -> tuple[str, str, str]:
    """A sentence's text before a phrase of it, of the phrase, and after it."""
    sentence, start, end = phrase[0].string, phrase[0].start(), phrase[-1].end()
    return sentence[:start], sentence[start:end], sentence[end:]


def _capital(word: re.Match[str]) -> bool:
    return word.group()[0].isupper() or word.group()[0].isdigit()


def _alike(one: str, other: str) -> bool:
    """Whether two phrases share half of their letters in order, as spellings of one name do; numbers, only if equal."""
    one, other = ("".join(filter(str.isalnum, each)).casefold() for each in (one, other))
    if one.isdigit() and other.isdigit():
        return one == other
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.5
