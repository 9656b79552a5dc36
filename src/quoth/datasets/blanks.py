"""Blanks drawn from pages: phrases that are hidden in one passage and also occur in another.

Knows: words, stop words, how a query is cut to an encoder's length. Does not know: tokenizers or models, so that every
model gets the same blanks. A word is a run of letters and digits, or another single character.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quoth.datasets.judging import normalise
from quoth.errors import InputError
from quoth.records import Passage
from quoth.text.boundaries import STOP_WORDS
from quoth.text.tokenizer import MASK, MASKS

Kind = Literal["any", "content"]
Words = list[tuple[int, int]]
Span = tuple[int, int, int]
"""A phrase: the index of its passage, the index of its first word there, and its number of words."""

KINDS: tuple[Kind, ...] = ("any", "content")
MAX_WORDS = 10
LONGER = 0.5
MAX_QUERY_PIECES = 200
_PIECE = re.compile(r"[^\W_]+|\S")


@dataclass(frozen=True, slots=True)
class Blank:
    """A query with one `[MASK]`, the phrase it replaces, and the passage it comes from (which is never searched).

    `num_words` is the answer's length in words; a punctuation mark inside it counts as a word.
    """

    kind: str
    row: int
    document_id: str
    text: str
    answer: str
    num_words: int


def words(text: str) -> Words:
    """The character ranges of the words: runs of letters, digits and combining marks, and single other characters."""
    result: Words = []
    for start, end in (match.span() for match in _PIECE.finditer(text)):
        # A mark belongs to the letter before it, and a letter after a mark to the word that it continues.
        at = start - (start > 0 and text[start].isalnum())
        marked = unicodedata.category(text[start])[0] == "M" or unicodedata.category(text[at])[0] == "M"
        if result and result[-1][1] == start and marked:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result


def is_content(word: str) -> bool:
    """Whether a word may begin or end a name, a term or a number: it is neither a stop word nor punctuation."""
    return any(map(str.isalnum, word)) and word.casefold() not in STOP_WORDS


def may_answer(kind: str, first_word: str, last_word: str) -> bool:
    """Whether a phrase that begins and ends with these words may be a blank of that kind; no phrase begins or ends with
    a punctuation mark."""
    if kind == "content":
        return is_content(first_word) and is_content(last_word)
    return not any(unicodedata.category(word[0])[0] == "P" for word in (first_word, last_word))


def recurring_spans(texts: Sequence[str], words_of: Sequence[Words]) -> list[list[Span]]:
    """The phrases of 1 to `MAX_WORDS` words that occur in two or more passages, by length, ignoring case and spaces.

    A phrase can only recur if it does so without its last word, so each length extends what the previous one kept.
    """
    alive: list[Span] = [(p, i, 0) for p, ranges in enumerate(words_of) for i in range(len(ranges))]
    result: list[list[Span]] = []
    for length in range(1, MAX_WORDS + 1):
        keyed: list[tuple[str, Span]] = []
        first_passage: dict[str, int] = {}
        shared: set[str] = set()
        for p, i, _ in alive:
            if i + length <= len(words_of[p]):
                key = normalise(texts[p][words_of[p][i][0] : words_of[p][i + length - 1][1]])
                keyed.append((key, (p, i, length)))
                if first_passage.setdefault(key, p) != p:
                    shared.add(key)
        alive = [span for key, span in keyed if key in shared]
        result.append(alive)
    return result


def draw_blanks(passages: Sequence[Passage], kind: Kind, count: int, seed: int) -> list[Blank]:
    """Up to `count` blanks, the same for the same passages and seed; a smaller count gives the first ones of a larger.

    Lengths are drawn as in training's span masking (NPM §3.2.1): geometric with p = 0.5, at most `MAX_WORDS`; if no
    phrase of a length is left, a shorter one is taken. Each occurrence of a phrase is hidden at most once.
    Raises InputError if no phrase of that kind occurs in two passages.
    """
    texts = [passage.text for passage in passages]
    words_of = [words(text) for text in texts]
    usable = [not any(mask in f"{passage.title} {passage.text}" for mask in MASKS) for passage in passages]

    def fits(span: Span) -> bool:
        p, i, length = span
        first, last = (slice(*words_of[p][at]) for at in (i, i + length - 1))
        return usable[p] and may_answer(kind, texts[p][first], texts[p][last])

    pools = [[span for span in spans if fits(span)] for spans in recurring_spans(texts, words_of)]
    rng = random.Random(f"{kind} {seed}")
    blanks: list[Blank] = []
    while len(blanks) < count and any(pools):
        p, i, length = _draw(pools, rng)
        blanks.append(_blank(passages[p], words_of[p], i, length, kind))
    if count and not blanks:
        raise InputError(f"no phrase of kind {kind!r} occurs in two passages of these pages; give more pages")
    return blanks


def _draw(pools: list[list[Span]], rng: random.Random) -> Span:
    length = 1
    while length < MAX_WORDS and rng.random() < LONGER:
        length += 1
    filled = [n for n, pool in enumerate(pools, start=1) if pool]
    pool = pools[max((n for n in filled if n <= length), default=filled[0]) - 1]
    at = int(rng.random() * len(pool))
    pool[at], pool[-1] = pool[-1], pool[at]
    return pool.pop()


def _blank(passage: Passage, ranges: Words, first: int, length: int, kind: Kind) -> Blank:
    text, last = passage.text, first + length - 1
    title = f"{passage.title}. " if passage.title else ""
    start, end = ranges[first][0], ranges[last][1]
    left, right = _window(text, ranges, first, last, MAX_QUERY_PIECES - sum(_cost(w) for w in _PIECE.findall(title)))
    query = f"{title}{text[left:start]}{MASK}{text[end:right]}"
    return Blank(kind, passage.row, passage.document_id, query, text[start:end], length)


def _window(text: str, ranges: Words, first: int, last: int, room: int) -> tuple[int, int]:
    """The characters around words `first` to `last` that fit, as many before them as after if the text has them."""
    costs = [_cost(text[start:end]) for start, end in ranges]
    left, right = first, last
    before = after = 0
    while True:
        room_left = room - before - after
        can_left = left > 0 and costs[left - 1] <= room_left
        can_right = right + 1 < len(costs) and costs[right + 1] <= room_left
        if can_left and (before <= after or not can_right):
            left -= 1
            before += costs[left]
        elif can_right:
            right += 1
            after += costs[right]
        else:
            return ranges[left][0], ranges[right][1]


def _cost(word: str) -> int:
    """About how many pieces a tokenizer makes of a word; words outside ASCII are cut into smaller pieces."""
    return (len(word) + 5) // 6 if word.isascii() else len(word)
