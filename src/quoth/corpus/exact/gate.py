"""Whether a quotation is faithful: the verdict, the places it rests on, and what was changed.

Knows corpora, foldings, and what a careful editor may do. Does not know drafts or models, and of languages only their
negations: brackets and short ellipses may not hide one. No other word decides a verdict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.changed import FAITHFUL, Change, Kind, Status, compared, is_sign, tokens
from quoth.corpus.exact.find import Shown, Wanted, occurrences
from quoth.corpus.exact.nearest import MOST_CHARACTERS, around, cuts, nearest_part
from quoth.corpus.exact.negations import NEGATIONS
from quoth.records import Evidence
from quoth.text.boundaries import begins_note
from quoth.text.folding import fold, fold_with_places
from quoth_sources.source_map import as_json

MOST_APART = 2000
"""Characters that one ellipsis may leave out."""
MOST_REPLACED = 100
"""Characters that words in brackets may stand for."""
LEAST_WORDS = 3
"""Of a part beside an ellipsis; fewer occur in order by chance."""
LEAST_COMMON = 0.5
"""The share of a quotation's letters that the nearest place must have for it to be altered, not absent."""
_COMPARED = 3
"""Passages that are compared character by character, of those with most words in common."""
_SPOTS = 200
"""Places that are compared: beyond these a better one is not looked for."""
_CHUNK = re.compile(r"(?s).{400,1000}?[.!?。][\"'”’»)]*(?=\s)|.{1,1000}(?=\s|$)|.{1,1000}")
_MARKS = "\"'`´“”„‟«»‹›‘’‚‛「」『』〝〞〟"
_FINAL, _SPACE = ".,;:!?…–—", " \t\r\n\f\v\u00a0\u202f"
_BEFORE = re.compile(rf"\A(?:[{_MARKS}…,;:{_SPACE}]|\.\s?(?=\.)|(?<=\.)\.|(?<=\.\s)\.)+")
_ELLIPSIS = r"[\[(<]?\s*(?:…|\.(?:\s?\.){2,})[.\s]*[\])>]?"
_GAP = re.compile(rf"(?P<ellipsis>{_ELLIPSIS})|(?!\[[^\W\d_]\](?=[^\W\d_]))\w*\[[^\[\]]{{0,200}}\]\w*")
_NOTE = re.compile(
    r"(?<=\S)\[(?:\^[\w-]{1,12}|[a-z]|\d{1,3}(?:[,–-] ?\d{1,3})*|note \d+|citation needed)\](?!\w)"
    r"|(?<=\S)[*†‡§¶]+(?!\w)|(?<!\w)[*_]{1,3}(?=\w)|(?<=[^\s_])_{1,3}(?!\w)|`+(?=[^`\s])|(?<=[^`\s])`+"
)
"""Marks of notes, of emphasis and of code in a source."""
_NUMBER = re.compile(
    r"(?<![\d.])(?:\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?!\d)|\d+ \d+/\d+|\d+(?:[.,:/^–−-]{1,2}\d+)+)"
)
"""A number in groups, with a fraction, a ratio, a range, a power: half of it is another number."""
_MEASURE = re.compile(r"\d\s?[^\W\d_]+\Z")
_CODE = re.compile(r"(?<!`)(`{1,2})(?=[^`\s])([^`\n]+)(?<!\s)\1(?!`)")
_DIGIT_QUOTED = re.compile(r"(?<!\w)(?:['‘‚](?=\w)([^'‘’\"“”]*\d)['‘’]|[\"“„](?=\w)([^'‘’\"“”]*\d)[\"“”])(?!\w)")
"""Marks around what ends with a digit, behind which folding takes one for feet or inches."""
_BROKEN = re.compile(r"(?<=[^\W\d_])[-‐] (?=[^\W\d_])")
"""What becomes of a hyphen at a line's end, copied from a page."""
_RAISED = re.compile(r"[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+(?:[˒⁾’,][\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+)*")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a quotation is, from character `start` to before `end` of the draft.

    `status` is "verbatim": it occurs, to the character but for white space; "typographic": it differs as a careful
    editor may make it; "elided": its parts occur in order, near each other in one document, and `changes` say what was
    left out or replaced; "altered": `changes` say how it differs from the nearest place; "absent": nothing is near;
    "unreadable": the source named beside it, `source`, is not in the corpus, or is not text. `evidence` are the places;
    of an elided quotation one for each part.
    """

    quote: str
    start: int
    end: int
    status: Status
    evidence: tuple[Evidence, ...] = ()
    changes: tuple[Change, ...] = ()
    source: str = ""

    @property
    def is_faithful(self) -> bool:
        """Whether it is verbatim, typographic or elided."""
        return self.status in FAITHFUL

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it."""
        return as_json(self)


class Spot(NamedTuple):
    """A place of a text."""

    corpus: Corpus
    document_id: str
    start: int
    end: int


def places(corpora: Sequence[Corpus], text: str, limit: int) -> Iterator[Spot]:
    """Where a text occurs but for typography and case."""
    for corpus in corpora:
        for match in corpus.find(text, limit):
            yield Spot(corpus, match.document_id, match.start, match.end)


class Part(NamedTuple):
    """`text[start:end]` of a quotation without the punctuation around it, which is `head` and `tail`."""

    text: str
    start: int
    end: int
    head: str
    tail: str

    @classmethod
    def of(cls, text: str, start: int, end: int) -> Part | None:
        """The part inside of a range; None if it has no word."""
        inside = text[start:end]
        left = _BEFORE.sub("", inside)
        core = left.rstrip(f"{_MARKS}{_FINAL}{_SPACE}-")
        first = start + len(inside) - len(left)
        last = first + len(core)
        if not any(map(str.isalnum, core)):
            return None
        return cls(core, first, last, text[start:first].strip(), text[last:end].strip())

    @property
    def num_words(self) -> int:
        """The number of its words."""
        return sum(each.is_word for each in tokens(self.text))


class Found(NamedTuple):
    """A place of a part, how it differs, and the share of the part's letters that it has."""

    start: int
    end: int
    changes: list[Change]
    is_verbatim: bool
    common: float = 1.0


def at_place(part: Part, document_id: str, text: str, start: int, end: int) -> Found:
    """A place that has the characters of a part, or is near it: is it a whole one, and how does it differ?"""
    first, last = start, end
    while _cut_before(text, first):
        first -= 1
    while _cut_behind(text, last):
        last += 1
    found = text[first:last]
    is_same = (first, last) == (start, end) and found.split() == part.text.split()
    changes, common = ([], 1.0) if is_same else compared(part.text, part.start, found, first, document_id)
    after = text[last : last + 3].lstrip(f"{_MARKS} ")[:1]
    asks = next((each for each in part.tail if each in "!?"), "")
    if asks != after and (asks or (after in ("!", "?") and part.tail[:1] == ".")):
        place = (part.tail, part.end, part.end + len(part.tail), after, document_id, last, last + len(after))
        changes = [*changes, Change("changed", *place, ("punctuation",))]
    beside = text[max(start - len(part.head), 0) : start], text[end : end + len(part.tail)]
    return Found(first, last, changes, is_same and beside == (part.head, part.tail), common)


def _cut_before(text: str, at: int) -> bool:
    """Whether a quotation that begins here leaves out the beginning of a word or number, or its sign."""
    if not 0 < at < len(text):
        return False
    if cuts(text, at) or _is_hyphenated(text, at) or _is_in_number(text, at):
        return True
    earlier, before, after = text[max(at - 2, 0) : at - 1], text[at - 1], text[at]
    return after.isnumeric() and (is_sign(before) or before in "-–^/" or (before == "." and not earlier.isalpha()))


def _cut_behind(text: str, at: int) -> bool:
    """Whether a quotation that ends here leaves out the end of a word or number, or its unit's sign."""
    if not 0 < at < len(text) or _begins_note(text, at):
        return False
    if cuts(text, at) or _is_hyphenated(text, at) or _is_in_number(text, at):
        return True
    before, rest = text[at - 1], text[at : at + 3]
    number = text[at - 2 : at - 1] if before.isspace() else before
    if number.isnumeric() and (is_sign(rest[0]) or (rest[0].isspace() and rest[1:2] in tuple("%‰°"))):
        return rest[0] in "%‰°" or not before.isspace()
    if before in "'’":
        return text[at - 2].isalpha() and rest[0].isalpha()
    return rest[0] in "'’" and before.isalpha() and rest[1:2].isalpha() and (rest[1] != "s" or rest[2:].isalnum())


def _is_in_number(text: str, at: int) -> bool:
    first = max(at - 32, 0)
    return any(first + each.start() < at < first + each.end() for each in _NUMBER.finditer(text[first : at + 32]))


def _begins_note(text: str, at: int) -> bool:
    """Whether a raised character is the mark of a note, and not the power of a unit that is written out."""
    return begins_note(text, at) and not (text[at] in "²³" and _MEASURE.search(text, max(at - 24, 0), at))


def _is_hyphenated(text: str, at: int) -> bool:
    """Whether there is a hyphen or a stroke (km/h) inside of a word before this character or behind it."""
    return any(
        (text[each] in "-‐‑" or (text[each] == "/" and text[each - 1].isalpha()))
        and text[each - 1].isalnum()
        and text[each + 1 : each + 2].isalnum()
        for each in (at - 1, at)
        if each > 0
    )


class View:
    """A range of a document in which parts are looked for, maybe without the marks of notes."""

    def __init__(self, shown: Shown, first: int, last: int, without_notes: bool = False) -> None:
        whole = shown.text
        while first > 0 and not whole[first - 1].isspace():
            first -= 1
        while last < len(whole) and not whole[last].isspace():
            last += 1
        self.shown, self._first = shown, first
        text = whole[first:last]
        self._notes = [*_notes(text)] if without_notes else []
        self.has_notes = bool(self._notes)
        self.text = "".join(_without(text, self._notes))

    def source(self, at: int, behind: bool = False) -> int:
        """The document's character that this one is; of an end, `behind` the one before it."""
        for start, end in self._notes:
            if start > at - behind:
                break
            at += end - start
        return self._first + at

    def matches(self, part: Part) -> list[Found]:
        """The faithful places of a part, in order."""
        folded = fold_with_places(self.text)
        spans = (folded.source(*each) for each in occurrences(Wanted.of(part.text), folded))
        found = (at_place(part, self.shown.document_id, self.text, *span) for span in spans)
        return [each for each in found if not each.changes]


def _other_marks(quoted: re.Match[str]) -> str:
    return f'"{quoted[1]}"' if quoted[1] is not None else f"'{quoted[2]}'"


def _without(text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[str]:
    """A text but for some of its characters, in pieces."""
    at = 0
    for start, end in ranges:
        yield text[at:start]
        at = end
    yield text[at:]


def _raised_notes(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of raised marks of notes, in order."""
    yield from (
        each.span()
        for each in _RAISED.finditer(text)
        if _begins_note(text, each.start())
        or text[each.start() - 1 : each.start()] in tuple(".,;:!?\"'”’»")
        or re.search(r"\w{4}\)\Z", text[max(each.start() - 5, 0) : each.start()])  # no power: (a + b)²
    )


def _notes(text: str) -> Iterator[tuple[int, int]]:
    """The ranges of the marks of notes, in order."""
    last = 0
    for start, end in sorted([*_raised_notes(text), *(each.span() for each in _NOTE.finditer(text))]):
        if start >= last:
            yield start, end
            last = end


_BESIDE = 200
"""Characters beside a quotation that brackets at its end may stand for."""
_SENTENCE_END = re.compile(r"[.!?;:](?=\s)\s*|\n\s*\n")


class Gap(NamedTuple):
    """Where a quotation says that words are left out, or replaced by those in brackets."""

    text: str
    start: int
    end: int
    is_ellipsis: bool


@dataclass(frozen=True, slots=True)
class Parted:
    """A quotation as parts and the gaps between them; `edges` are gaps before the first part and behind the last."""

    parts: list[Part]
    gaps: list[list[Gap]]
    edges: list[Gap]

    @classmethod
    def of(cls, text: str) -> Parted:
        parts, gaps, pending, at = list[Part](), list[list[Gap]](), list[Gap](), 0
        edges = list[Gap]()
        found = [*_GAP.finditer(text)]
        for start, end, gap in [*((each.start(), each.end(), each) for each in found), (len(text), len(text), None)]:
            if part := Part.of(text, at, start):
                if parts:
                    gaps.append(pending)
                else:
                    edges += pending
                pending = []
                parts.append(part)
            if gap:
                pending.append(Gap(gap[0], start, end, gap["ellipsis"] is not None))
            at = end
        return cls(parts, gaps, edges + pending)

    @property
    def can_be_elided(self) -> bool:
        """Whether there are gaps, and enough words around them: of parts beside an ellipsis one may be short."""
        if not self.parts:
            return False
        words = [each.num_words for each in self.parts]
        near: list[list[Gap]] = [[] for _ in self.parts]
        for at, gaps in enumerate(self.gaps):
            near[at] += gaps
            near[at + 1] += gaps
        num_short = sum(
            count < LEAST_WORDS and any(each.is_ellipsis for each in beside)
            for count, beside in zip(words, near, strict=True)
        )
        numbers = any(map(str.isnumeric, "".join(gap.text for gap in self.edges if gap.start < self.parts[0].start)))
        return bool(self.edges or self.gaps) and sum(words) >= LEAST_WORDS and num_short < 2 and not numbers

    def in_order(self, view: View) -> list[Found]:
        """The places of the parts that follow each other with the least between them; empty if there are none.
        There is a part."""
        chains: list[tuple[int, list[Found]]] = [(0, [each]) for each in view.matches(self.parts[0])]
        for (before, part), gaps in zip(pairwise(self.parts), self.gaps, strict=True):
            most = MOST_APART if min(before.num_words, part.num_words) >= LEAST_WORDS else MOST_REPLACED
            following = list[tuple[int, list[Found]]]()
            for found in view.matches(part):
                joined = [
                    (cost + found.start - chain[-1].end, [*chain, found])
                    for cost, chain in chains
                    if chain[-1].end <= found.start and _may_bridge(gaps, view.text[chain[-1].end : found.start], most)
                ]
                if joined:
                    following.append(min(joined, key=lambda each: each[0]))
            chains = following
        return min(chains, key=lambda each: each[0])[1] if chains else []


def _may_bridge(gaps: Sequence[Gap], left_out: str, most: int) -> bool:
    """Whether gaps may stand for these words: few enough, and in brackets neither a number for another nor only some of
    the words themselves, which hides the others: "[is]" for "is not"."""
    if any(each.is_ellipsis for each in gaps):
        return len(left_out) <= most
    text = " ".join(each.text for each in gaps)
    said, its = ({each.folded for each in tokens(part) if each.is_word} for part in (text, left_out))
    digits = re.findall(r"\d+", left_out)
    return len(left_out) <= MOST_REPLACED and (not digits or digits == re.findall(r"\d+", text)) and not said < its


def _shown(corpus: Corpus, document_id: str) -> Shown:
    return Shown(corpus, *corpus.locate(document_id))


def _best_around(corpora: Sequence[Corpus], text: str) -> list[tuple[Shown, int, int]]:
    """BM25's best passages with what is around them, those with most of the text's words first."""
    words = Counter(fold(text).split())

    def common(place: tuple[Shown, int, int]) -> int:
        shown, first, last = place
        return (words & Counter(fold(shown.text[first:last]).split())).total()

    return sorted((each for corpus in corpora for each in around(corpus, text)), key=common, reverse=True)


class Judge:
    """Judges quotations by some corpora."""

    def __init__(self, corpora: Sequence[Corpus], most: int = 10) -> None:
        self._corpora, self._most = corpora, most
        # Not of methods: a judge that keeps itself keeps its corpora's files until everything is collected.
        self._shown = lru_cache(maxsize=64)(_shown)
        self._around = lru_cache(maxsize=4)(partial(_best_around, corpora))

    def __call__(self, text: str) -> Verdict:
        """The verdict on a quotation, without regard to a source that is named."""
        verdict = Verdict(text, 0, len(text), "absent")
        if (whole := Part.of(text, 0, len(text))) is None:
            return verdict
        spots = self._whole(whole)
        if spots and not spots[0][1].changes:
            status: Status = "verbatim" if spots[0][1].is_verbatim else "typographic"
            same = [each for each in spots if (each[1].changes, each[1].is_verbatim) == ([], spots[0][1].is_verbatim)]
            return replace(verdict, status=status, evidence=self._told(same))
        nested = Part.of(_DIGIT_QUOTED.sub(_other_marks, whole.text), 0, len(whole.text))
        if nested and nested.text != whole.text and (same := self._whole(nested)) and not same[0][1].changes:
            return replace(verdict, status="typographic", evidence=self._told(same[:1]))
        copied = _CODE.sub(r"\2", _BROKEN.sub("-", "".join(_without(text, [*_raised_notes(text)]))))
        if copied != text and (mended := self(copied)).status in ("verbatim", "typographic"):
            return replace(verdict, status="typographic", evidence=mended.evidence)
        parted = Parted.of(text)
        for view in self._views(whole.text, parted):
            if found := self._elided(verdict, parted, whole, view):
                return found
        if spots:
            return replace(
                verdict, status="altered", evidence=self._told(spots[:1]), changes=tuple(spots[0][1].changes)
            )
        if len(parted.parts) > 1:
            return self._piecewise(verdict, parted.parts)
        if len(text) > MOST_CHARACTERS:
            return self._piecewise(verdict, [*_chunks(text)])
        return self._nearest(verdict, whole)

    def _whole(self, part: Part) -> list[tuple[Spot, Found]]:
        """The places of a quotation as one, the most faithful first."""
        graded = [
            (spot, at_place(part, spot.document_id, self._shown(spot.corpus, spot.document_id).text, *spot[2:]))
            for spot in places(self._corpora, part.text, _SPOTS)
        ]
        return sorted(graded, key=lambda each: (len(each[1].changes), not each[1].is_verbatim))

    def _told(self, spots: Sequence[tuple[Spot, Found]]) -> tuple[Evidence, ...]:
        return tuple(
            self._shown(spot.corpus, spot.document_id).place(found.start, found.end, 1.0)
            for spot, found in spots[: self._most]
        )

    def _views(self, text: str, parted: Parted) -> Iterator[View]:
        """Where the parts of a quotation may be, or the whole but for marks of notes."""
        if parted.can_be_elided:
            anchor = max(parted.parts, key=lambda part: len(part.text))
            reach = len(text) + MOST_APART * len(parted.gaps)
            for spot in places(self._corpora, anchor.text, _SPOTS):
                shown = self._shown(spot.corpus, spot.document_id)
                yield View(shown, max(spot.start - reach, 0), min(spot.end + reach, len(shown.text)))
        if len(text) > MOST_CHARACTERS * 4:
            return
        for shown, first, last in self._around(text):
            view = View(shown, first, min(last, len(shown.text)), without_notes=True)
            if view.has_notes:
                yield view

    def _elided(self, verdict: Verdict, parted: Parted, whole: Part, view: View) -> Verdict | None:
        """The verdict if a quotation is in a view as a whole, or all of its parts are."""
        if view.has_notes and (found := view.matches(whole)):
            return replace(verdict, status="typographic", evidence=(_place(view, found[0]),))
        if not parted.can_be_elided or not (chain := parted.in_order(view)):
            return None
        changes = [_at_edge(gap, view, chain, gap.start < parted.parts[0].start) for gap in parted.edges]
        is_false = any(map(_says_another_number, changes))
        for gaps, (one, other) in zip(parted.gaps, pairwise(chain), strict=True):
            changes += [_of_gap(gap, view, one.end, other.start) for gap in gaps]
        replaced = sum(
            each.is_word for change in changes if change.kind == "replaced" for each in tokens(change.source)
        )
        if replaced > sum(each.num_words for each in parted.parts):
            return None  # not one sentence in other words, but words from here and there
        changes.sort(key=lambda each: each.start)
        evidence = tuple(_place(view, each) for each in chain)
        status: Status = "altered" if is_false or any(map(_hides_negation, changes)) else "elided"
        return replace(verdict, status=status, evidence=evidence, changes=tuple(changes))

    def _piecewise(self, verdict: Verdict, parts: Sequence[Part]) -> Verdict:
        """The verdict on a quotation that is judged part by part, as all of it is nowhere."""
        judged = [self(part.text) for part in parts]
        changes, evidence = list[Change](), list[Evidence]()
        for part, one in zip(parts, judged, strict=True):
            if one.status == "absent":
                changes.append(Change("added", part.text, part.start, part.end, "", "", 0, 0, ("word",)))
            shift = part.start
            changes += [replace(each, start=each.start + shift, end=each.end + shift) for each in one.changes]
            evidence += one.evidence[:1]
        if not evidence:
            return verdict
        if all(one.is_faithful for one in judged):
            changes.append(Change("apart", verdict.quote, 0, len(verdict.quote), "", "", 0, 0))
        return replace(verdict, status="altered", changes=tuple(changes), evidence=tuple(evidence))

    def _nearest(self, verdict: Verdict, part: Part) -> Verdict:
        """The verdict on a quotation that occurs nowhere: what is nearest to it."""
        near = list[tuple[Found, Evidence]]()
        for shown, first, last in self._around(part.text)[:_COMPARED]:
            if nearest := nearest_part(part.text, shown.text, first, last):
                edits, start, end = nearest
                found = at_place(part, shown.document_id, shown.text, start, end)
                score = 1 - edits / max(len(part.text), end - start)
                near.append((found, shown.place(found.start, found.end, score)))
        best, place = max(near, key=lambda each: (each[0].common, -len(each[0].changes)), default=(None, None))
        if best is None or place is None or best.common < LEAST_COMMON:
            return verdict
        status: Status = "altered" if best.changes else "typographic"
        return replace(verdict, status=status, evidence=(place,), changes=tuple(best.changes))


def _place(view: View, found: Found) -> Evidence:
    return view.shown.place(view.source(found.start), view.source(found.end, behind=True), 1.0)


def _of_gap(gap: Gap, view: View, start: int, end: int) -> Change:
    """What a gap left out or replaced."""
    kind: Kind = "omitted" if gap.is_ellipsis else "replaced"
    first, last = view.source(start, behind=True), view.source(end)
    left_out, document_id = view.shown.text[first:last] if start < end else "", view.shown.document_id
    said = "" if gap.is_ellipsis else gap.text.strip("[]")
    told = {each: None for one in compared(said, 0, left_out, 0, document_id).changes for each in one.concerns}
    concerns = tuple(told) if len(left_out) <= MOST_REPLACED else ()
    return Change(kind, gap.text, gap.start, gap.end, left_out.strip(), document_id, first, max(first, last), concerns)


def _at_edge(gap: Gap, view: View, chain: Sequence[Found], is_before: bool) -> Change:
    """What a gap before the first part of a quotation, or behind the last, stands for: brackets for as many words of
    the sentence beside them, and two more if they repeat one of these, if they negate what the words do not, or the
    other way round, or say another number. Else for nothing, as what an editor adds."""
    at = chain[0].start if is_before else chain[-1].end
    said, first = [each for each in tokens(gap.text) if each.is_word], max(at - _BESIDE, 0) if is_before else at
    nothing = _of_gap(gap, view, at, at)
    if gap.is_ellipsis or not said:
        return nothing
    beside = view.text[first : at if is_before else at + _BESIDE]
    sentences = _SENTENCE_END.split(beside)
    start = len(beside) - len(sentences[-1]) if is_before else 0
    its = [each for each in tokens(sentences[-1 if is_before else 0]) if each.is_word]
    nearest = its[::-1] if is_before else its
    repeats = {each.folded for each in said} & {each.folded for each in nearest[: len(said) + 2]}
    near = sorted(nearest[: len(said) + 2 * bool(repeats)], key=lambda each: each.start)
    if not near:
        return nothing
    change = _of_gap(gap, view, first + start + near[0].start, first + start + near[-1].end)
    is_told = "negation" in {*change.concerns, *nothing.concerns} or _says_another_number(change)
    return change if is_told else nothing


def _says_another_number(gap: Change) -> bool:
    said, its = (re.findall(r"\d+", each) for each in (gap.quoted, gap.source))
    return gap.kind == "replaced" and bool(said and its) and said != its


def _hides_negation(gap: Change) -> bool:
    """Whether brackets stand for a negation or put one in, or an ellipsis for little else: "wasn't", "not yet".
    More words left out have what is negated among them."""
    words = [each.folded for each in tokens(gap.source) if each.is_word]
    little = len(words) == 1 or (len(words) == 2 and not NEGATIONS.isdisjoint(words))
    return "negation" in gap.concerns and (gap.kind == "replaced" or little)


def _chunks(text: str) -> Iterator[Part]:
    """A long text in pieces, cut at ends of sentences, or at least of words."""
    for piece in _CHUNK.finditer(text):
        if part := Part.of(text, *piece.span()):
            yield part
