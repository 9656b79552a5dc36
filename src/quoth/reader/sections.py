"""Sections that a question names: what stands below a heading, or behind a number.

Knows: which lines are headings or begin with a number, what belongs to them, and when a question asks for no more than
that: "What are the ingredients of scones?", "What does clause 5.2 say?". Does not know: networks, or how the passages
were found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from quoth.answers.evidence import Source
from quoth.text.boundaries import STOP_WORDS
from quoth.text.passages import FIELDS, SHORT, Line, is_heading, lines_of
from quoth.text.terms import analyse

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

BEFORE, AFTER = 2, 3
"""The passages of a document around one that was read, in which its headings and the rest of its section stand."""
LONGEST = 2000
"""Characters that a section has at most to be given as an answer."""
_PART = (
    r"(?:sub-?)?(?:clause|claim|section|article|paragraph|rule|point|item|part|chapter|schedule|regulation|by-?law)s?"
)
_NUMBER = r"\d+(?:\.\d+)"
_REFERENCE = re.compile(rf"(?:\b{_PART}\s+|§\s*)({_NUMBER}*)|(?<![\d.,$£€])({_NUMBER}+)(?![\d.,]|\s*%)", re.IGNORECASE)
"""A question's reference to a numbered part of a document."""
_LABEL = re.compile(rf"^(?:{_PART}\s+|§\s*)?({_NUMBER}*)[.):]?(?=\s)", re.IGNORECASE)
"""The number in front of a line."""
_INNER = re.compile(r"(?:\(\d{1,2}\)|\(?(?:[a-z]|[ivx]+)[.)]|[-*•–])\s", re.IGNORECASE)
"""What a line below a numbered one begins with: (a), ii), a bullet."""
_OTHER_WORDS = (
    "agreement anybody anyone ask asked bake baked best complete contain contains contract cook cooked cover covers "
    "describe document everybody everyone exactly explain find following full get give go goes going guide handbook "
    "happen happens include included includes know list made make manual mean means name need needed one outline page "
    "people please prepare prepared regarding say says show somebody someone state stated states tell thing things "
    "use used want way"
)
_IGNORED = frozenset(analyse(f"{' '.join(STOP_WORDS)} {_OTHER_WORDS}"))
"""Terms that name nothing that a section could be about."""
_HOW, _WHAT = "method|steps|instructions|directions|procedure|preparation", "ingredients"
_ALIKE = (
    (re.compile(rf"\b(?:how|{_HOW})\b", re.IGNORECASE), "method"),
    (re.compile(rf"\b(?:{_WHAT}|needs?|go(?:es)? in(?:to)?|buy|contains?)\b", re.IGNORECASE), "ingredients"),
)
"""Questions, and headings without a term of their own, that mean a term, whether they have it or not."""
_ALL_MEANT = {term for _, word in _ALIKE for term in analyse(word)}
_BARE = re.compile(rf"(?:{_HOW}|{_WHAT}|how to make it|what you(?: will|['’]ll) need)\s*:?", re.IGNORECASE)
"""Lines that are headings wherever they stand."""


def named_sections(question: str, read: Sequence[Source], corpora: Sequence[Corpus]) -> list[Source]:
    """The sections that a question asks for and nothing else, from the documents of the passages that were read; each
    as a passage of its own. If others stand in the way, those whose heading is nearest to what it is about."""
    reference, meant = _REFERENCE.search(question), _meant(question)
    asked = _terms(_REFERENCE.sub(" ", question, count=1))
    label = reference[1] or reference[2] if reference else ""
    if not label and not asked:
        return []
    by_name = {corpus.name: corpus for corpus in corpora}
    found: dict[int, dict[tuple[str, str, int], Source]] = {}
    fewest = len(asked)  # of what is asked, the words that are not in the title of the document that is meant
    for source in read:
        segment = by_name[source.corpus].segment_of(source.passage.row)
        around = segment.around(source.passage.row - segment.first_row, BEFORE, AFTER)
        lines, title = lines_of(around.text), _terms(f"{around.title} {around.document_id}")
        if reference:
            others = len(asked - title)
            fewest = min(fewest, others)
            # A number alone may be any; behind "clause", what else is asked may name another document.
            is_meant = not asked or others < len(asked)
            is_meant = is_meant or (bool(reference[1]) and not asked.isdisjoint(_terms(around.text)))
            ranges = [(others, *each) for each in _numbered(around.text, lines, label)] if is_meant else []
        else:
            ranges = [*_headed(around.text, lines, asked, meant, title)]
        for far, i, j in ranges:
            start, end = lines[i].start, lines[j - 1].end
            if end - start <= LONGEST:
                text, at = around.text[start:end], around.start
                section = replace(around, text=text, start=at + start, end=at + end)
                key = (source.corpus, section.document_id, section.start)
                found.setdefault(far, {}).setdefault(key, replace(source, passage=section))
    if not found or (reference and min(found) > fewest):
        return []
    return [*found[min(found)].values()]


def _terms(text: str) -> set[str]:
    return {*analyse(text)} - _IGNORED


def _meant(text: str) -> set[str]:
    """The terms that a question or a heading means."""
    return {term for pattern, word in _ALIKE if pattern.search(text) for term in analyse(word)}


def _label(text: str, line: Line) -> str:
    found = _LABEL.match(text[line.start : line.end])
    return found[1] if found else ""


def _numbered(text: str, lines: list[Line], label: str) -> Iterator[tuple[int, int]]:
    """What has this number, with all that belongs to it: ranges of lines. A whole number with nothing behind it may
    be a day's or a house's, unless a part of it, the next number or the one before stands nearby."""
    labels = [_label(text, line) for line in lines]
    beside = (f"{label}.1", *(str(int(label) + by) for by in (-1, 1) if label.isdigit()))
    is_counted = "." in label or not {*beside}.isdisjoint(labels)
    for i in (i for i, own in enumerate(labels) if own == label):
        if not is_counted and text.startswith(f"{label} ", lines[i].start):
            continue
        j = i + 1
        while j < len(lines) and (labels[j].startswith(f"{label}.") or _goes_on(text, lines, labels, i, j)):
            j += 1
        yield i, j


def _goes_on(text: str, lines: list[Line], labels: Sequence[str], i: int, j: int) -> bool:
    """Whether line j, whose number is not below that of line i, still belongs to it."""
    headings = [labels[k] != "" and _is_short(text, lines[k]) for k in range(i, j)]
    if _INNER.match(text, lines[j].start) or (headings[-1] and not labels[j]):
        return True
    if labels[j] or _heads(text, lines, j):
        return False
    return any(headings) or lines[j].column > lines[i].column or lines[j].above == 1


def _is_short(text: str, line: Line) -> bool:
    """Whether a line may be a heading, by its length and its end."""
    return line.end - line.start <= SHORT and text[line.end - 1] not in ".!;,"


def _heads(text: str, lines: list[Line], i: int) -> bool:
    """Whether a line is a heading: as `is_heading` says; or in capitals, a question, or behind a number."""
    line, body = lines[i], text[lines[i].start : lines[i].end]
    if is_heading(text, lines, i) or _BARE.fullmatch(body):
        return True
    if i + 1 == len(lines):
        return False
    below, label = text[lines[i + 1].start : lines[i + 1].end], _label(text, line)
    if label:
        its = _label(text, lines[i + 1])
        deeper = its.startswith(f"{label}.") or ("." in label and not its)
        return deeper and _is_short(text, line) and not FIELDS.search(body)
    if body.endswith("?"):
        return line.above != 1 and len(body) <= 2 * SHORT and not below.endswith("?")
    return body.isupper() and _is_short(text, line) and not below.isupper()


def _headed(
    text: str, lines: list[Line], asked: set[str], meant: set[str], title: set[str]
) -> Iterator[tuple[int, int, int]]:
    """What is below a heading, all of whose terms are asked for, if the other terms stand in headings above it, or in
    the title: how many headings above the last of these terms stands, and ranges of lines. A heading that says what the
    question means comes before all others."""
    heads = [i for i in range(len(lines)) if _heads(text, lines, i)]
    bodies = [_LABEL.sub("", text[lines[i].start : lines[i].end], count=1) for i in heads]
    terms = [_terms(body) or _meant(body) for body in bodies]
    for at, (i, own) in enumerate(zip(heads, terms, strict=True)):
        # A line that ends in a colon, next to the heading, introduces a list, and ends nothing.
        ends = [k for k in heads[at + 1 :] if k > i + 1 or not bodies[at + 1].endswith(":")]
        end = ends[0] if ends else len(lines)
        if not own or not own <= asked | meant or end == i + 1:
            continue
        above = [*takewhile(own.__ne__, reversed(terms[:at]))]
        if own & meant:  # as "Ingredients": whose they are says the first heading above that is not of this kind
            above = above[: 1 + next((n for n, other in enumerate(above) if not other & _ALL_MEANT), len(above))]
        met = accumulate([*above, title], set.union, initial=own)
        if (far := next((n for n, known in enumerate(met) if asked - meant <= known), None)) is not None:
            yield far + (0 if own & meant or not meant else len(lines)), i + 1, end
