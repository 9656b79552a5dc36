"""Swaps a corpus for another edition of itself: do a model's answers follow? (REALM, Guu et al. 2020, Table 4.)

Knows: which sentences of two editions differ in one name or number, or are the same, and how answers are counted. Does
not know: how a model answers. Sentences that differ and sentences that do not are TempLAMA's changed and unchanged
facts, made from any two dated corpora (NPM, Min et al. 2022, Table 2).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, product, takewhile
from typing import Annotated, Any

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError, UnknownDocumentError
from quoth.fields import Count, Number
from quoth.text.passages import sentences
from quoth.text.tokenizer import MASK
from quoth_eval.report import Report, Row
from quoth_eval.spec import Given, Options, Prepared, Settings, TaskSpec
from quoth_eval.systems import fills, without
from quoth_eval.task import Answer, Example, Scores, System, Task, draw, first_right, percent, rank

EDITIONS = ("old", "new")
CONTEXT_WORDS = 6
"""The least number of words of a sentence that must be the same in both editions."""
SHOWN = 3
"""The number of answers that are shown over each edition."""
CHANGES_AT_A_TIME = 64
"""Examples asked together: both editions of half as many changes."""
_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*")

Words = list[re.Match[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapSettings(Settings):
    """The earlier edition, and which facts are asked and shown."""

    old: Annotated[str | None, "Folder of an earlier edition of the corpus: documents with the same ids."] = None
    max_words: Annotated[Count, "Longest name or number, in words."] = 3
    unchanged: Annotated[Number, "Also ask about this many facts that are the same in both."] = 0
    show: Annotated[Number, "Show this many of the facts whose answer followed."] = 5


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence that differs between two editions in one phrase: the new edition's sentence with that phrase masked,
    and the phrase in the old and in the new edition."""

    title: str
    text: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A change, and the edition that is asked about it."""

    change: Change
    edition: str

    @property
    def right(self) -> str:
        """What this edition says."""
        return self.change.old if self.edition == "old" else self.change.new

    @property
    def other(self) -> str:
        """What the other edition says."""
        return self.change.new if self.edition == "old" else self.change.old


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


def find_unchanged(old: Corpus, new: Corpus, max_words: int = 3) -> Iterator[Change]:
    """Sentences that documents with the same id share, each with a name or number of up to `max_words` words masked:
    one per document, drawn by its id.

    The rules of a name are those of `find_changes`; so are the words that must be left.
    """
    for document in new.documents():
        try:
            before = _sentences(old.document(document.id).text)
        except UnknownDocumentError:
            continue
        names = [name for sentence in _sentences(document.text) if sentence in before for name in _names(sentence)]
        fitting = [(words, name) for words, name in names if len(name) <= max_words <= words - CONTEXT_WORDS]
        if fitting:
            _, name = random.Random(document.id).choice(fitting)
            before_it, phrase, after_it = _cut(name)
            yield Change(document.title, f"{before_it}{MASK}{after_it}", phrase, phrase)


def _names(sentence: str) -> Iterator[tuple[int, Words]]:
    """The runs of words that begin with a capital or a digit, but for the first word's; and the number of words."""
    words = _words(sentence)
    for capital, run in groupby(words[1:], _capital):
        if capital:
            yield len(words), list(run)


def swap_task(changes: Sequence[Change], settings: Mapping[str, Any]) -> Task[Asked]:
    """Changes, each asked of the old and of the new edition.

    Measures: exact match and hit@5 with each edition; whether the first answer is the other edition's phrase; and, of
    the new edition, whether both first answers are right. Raises InputError if there are no changes.
    """
    if not changes:
        raise InputError(
            "no sentence differs in exactly one name or number; give two editions of the same documents, with equal ids"
        )
    examples = [
        Example(
            f"{number}-{asked.edition}",
            change.text,
            (asked.right,),
            asked,
            {"edition": asked.edition, "facts": _facts(change), "direction": f"{_facts(change)}, {asked.edition}"},
        )
        for number, change in enumerate(changes)
        for asked in (Asked(change, edition) for edition in EDITIONS)
    ]
    return Task(
        name="swap",
        examples=examples,
        judge=_judge,
        settings={"num_changes": sum(change.old != change.new for change in changes), **settings},
        macro=("facts",),
        at_a_time=CHANGES_AT_A_TIME,
    )


def _facts(change: Change) -> str:
    return "unchanged" if change.old == change.new else "changed"


def of_both(old: System[Asked], new: System[Asked]) -> System[Asked]:
    """The model over either edition; an answer from the new one also says whether both are right.

    In a run that was stopped between the two, the old one is asked again.
    """

    def answer(examples: Sequence[Example[Asked]]) -> list[Answer]:
        over_old = {each.source.change: each for each in examples}
        over_new = {each.source.change: each for each in examples if each.source.edition == "new"}
        before = dict(zip(over_old, old([*over_old.values()]), strict=True))
        after = dict(zip(over_new, new([*over_new.values()]), strict=True))
        for change, found in after.items():
            both = _rank(change.old, before[change]) == _rank(change.new, found) == 0
            after[change] = replace(found, scores={"both": float(both)})
        return [(before if each.source.edition == "old" else after)[each.source.change] for each in examples]

    return answer


def _rank(phrase: str, answer: Answer) -> int | None:
    return rank(phrase, [prediction.text for prediction in answer.predictions or ()])


def _judge(example: Example[Asked], answer: Answer) -> Scores:
    asked = example.source
    place = _rank(asked.right, answer)
    scores = first_right([i == place for i in range(len(answer.predictions or ()))])
    if asked.right != asked.other:
        scores = {**scores, "of_the_other_edition": float(_rank(asked.other, answer) == 0)}
    return {**scores, **answer.scores}


def followed(report: Report, changes: Sequence[Change], show: int, name: str = "answers") -> str:
    """The first `show` changes that a system's answers followed, with the best over either edition (REALM, Table 4)."""
    rows = {row.id: row for row in report.system(name).rows}
    shown = [
        (change, rows[f"{number}-old"], rows[f"{number}-new"])
        for number, change in enumerate(changes)
        if rows[f"{number}-new"].scores.get("both") and change.old != change.new
    ]
    return "".join(
        f"\n{change.title}: {change.text}\n  old: {_best(old)}\n  new: {_best(new)}\n"
        for change, old, new in shown[:show]
    )


def _best(row: Row) -> str:
    return ", ".join(f"{each.text} ({percent(each.probability)} %)" for each in (row.predictions or ())[:SHOWN])


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


def _make(given: Given, settings: SwapSettings) -> Prepared:
    new = given.one_corpus("swap")
    if settings.old is None:
        raise InputError("swap requires an earlier edition of the corpus; name its folder with --set old=DIR")
    old = Corpus.open(settings.old)
    changes = draw(list(find_changes(old, new, settings.max_words)), given.limit, given.seed)
    if settings.unchanged:
        changes += draw(list(find_unchanged(old, new, settings.max_words)), settings.unchanged, given.seed)

    def asked(name: str, options: Options) -> System[Asked]:
        told = without(options)
        return of_both(fills(given.open(name, [old], options), told), fills(given.open(name, [new], options), told))

    def shown(report: Report) -> str:
        return "".join(followed(report, changes, settings.show, result.name) for result in report.systems)

    told = {"seed": given.seed, "options": dict(given.options)}
    return Prepared(task=swap_task(changes, told), asks=asked, more=shown)


SPECS = [
    TaskSpec(
        name="swap",
        help="Facts in which an earlier edition of the corpus differs: do the answers follow, without any training?",
        settings=SwapSettings,
        make=_make,
    )
]
