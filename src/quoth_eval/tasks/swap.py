"""Swaps a corpus for another edition of itself: do a model's answers follow? (REALM, Guu et al. 2020, Table 4.)

Knows: which sentences of two editions differ in one name or number, or are the same, and how answers are counted. Does
not know: how a model answers. Sentences that differ and sentences that do not are TempLAMA's changed and unchanged
facts, made from any two dated corpora (NPM, Min et al. 2022, Table 2).
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, product, takewhile
from typing import Annotated, Any, NamedTuple

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError, UnknownDocumentError
from quoth.fields import Checked, Count, Number
from quoth.records import Document
from quoth.text.passages import sentences
from quoth.text.tokenizer import MASK
from quoth_eval.report import Report, Row
from quoth_eval.spec import Given, Prepared, TaskSpec
from quoth_eval.systems import filling
from quoth_eval.task import Answer, Example, Scores, System, Task, draw, first_right, percent, said

CONTEXT_WORDS = 6
"""The least number of words of a sentence that must be the same in both editions."""
SHOWN = 3
"""The number of answers that are shown over each edition."""
CHANGES_AT_A_TIME = 64
"""Examples asked together: both editions of half as many changes."""
_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*")

Words = list[re.Match[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapSettings(Checked):
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


class Asked(NamedTuple):
    """A change, the edition that is asked about it, what this one says, and what the other says."""

    change: Change
    edition: str
    right: str
    other: str


def find_changes(old: Corpus, new: Corpus, max_words: int = 3) -> Iterator[Change]:
    """Sentences of documents with the same id that differ in one name or number of up to `max_words` words: the first
    one per document.

    Each word of a name begins with a capital or a digit. Names at the beginning of a sentence, and pairs with similar
    spelling, are left out.
    """
    for document, before, after in _shared(old, new):
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
    for document, before, after in _shared(old, new):
        fitting = []
        for words in (_words(sentence) for sentence in after if sentence in before):
            # A first word's capital is no sign of a name.
            names = [list(run) for capital, run in groupby(words[1:], _capital) if capital]
            fitting += [name for name in names if len(name) <= max_words <= len(words) - CONTEXT_WORDS]
        if fitting:
            before_it, phrase, after_it = _cut(random.Random(document.id).choice(fitting))
            yield Change(document.title, f"{before_it}{MASK}{after_it}", phrase, phrase)


def _shared(old: Corpus, new: Corpus) -> Iterator[tuple[Document, dict[str, None], dict[str, None]]]:
    """The new edition's documents that the old one has too, with the sentences of both."""
    for document in new.documents():
        with suppress(UnknownDocumentError):
            yield document, _sentences(old.document(document.id).text), _sentences(document.text)


def swap_task(changes: Sequence[Change], settings: Mapping[str, Any]) -> Task[Asked]:
    """Changes, each asked of the old and of the new edition.

    Measures: exact match and hit@5 with each edition; whether the first answer is the other edition's phrase; and, of
    the new edition, whether both first answers are right. Raises InputError if there are no changes.
    """
    if not changes:
        none = "no sentence differs in exactly one name or number"
        raise InputError(f"{none}; give two editions of the same documents, with equal ids")
    examples = []
    for number, change in enumerate(changes):
        facts = "unchanged" if change.old == change.new else "changed"
        for edition, right, other in (("old", change.old, change.new), ("new", change.new, change.old)):
            asked = Asked(change, edition, right, other)
            groups = {"edition": edition, "facts": facts, "direction": f"{facts}, {edition}"}
            examples.append(Example(f"{number}-{edition}", change.text, (right,), asked, groups))
    return Task(
        name="swap",
        examples=examples,
        judge=_judge,
        settings={"num_changes": sum(change.old != change.new for change in changes), **settings},
        macro=("facts",),
        at_a_time=CHANGES_AT_A_TIME,
    )


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
            both = [*said(change.old, before[change])[:1], *said(change.new, found)[:1]]
            after[change] = replace(found, scores={"both": float(both == [True, True])})
        return [(before if each.source.edition == "old" else after)[each.source.change] for each in examples]

    return answer


def _judge(example: Example[Asked], answer: Answer) -> Scores:
    asked = example.source
    scores = {**first_right(said(asked.right, answer)), **answer.scores}
    if asked.right != asked.other:
        scores["of_the_other_edition"] = float(any(said(asked.other, answer)[:1]))
    return scores


def followed(report: Report, changes: Sequence[Change], show: int, name: str = "answers") -> str:
    """The first `show` changes that a system's answers followed, with the best over either edition (REALM, Table 4)."""
    rows, shown = {row.id: row for row in report.system(name).rows}, list[str]()
    for number, change in enumerate(changes):
        old, new = (rows[f"{number}-{edition}"] for edition in ("old", "new"))
        if new.scores.get("both") and change.old != change.new:
            shown.append(f"\n{change.title}: {change.text}\n  old: {_best(old)}\n  new: {_best(new)}\n")
    return "".join(shown[:show])


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
    over_old, over_new = filling(replace(given, corpora=(old,))), filling(given)

    def shown(report: Report) -> str:
        return "".join(followed(report, changes, settings.show, result.name) for result in report.systems)

    asked = {"limit": given.limit, "unchanged": settings.unchanged, "max_words": settings.max_words}
    told = {"seed": given.seed, "options": dict(given.options), **asked, "editions": [old.path.name, new.path.name]}
    return Prepared(
        task=swap_task(changes, told),
        asks=lambda name, options: of_both(over_old(name, options), over_new(name, options)),
        more=shown,
    )


SPECS = [TaskSpec(name="swap", settings=SwapSettings, make=_make)]
