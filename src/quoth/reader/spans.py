"""A query and passages as the reader's network sees them, and its scores as spans of the passages.

Knows: windows of long passages, which spans may be answers, how much is read. Does not know: the network itself, how
passages were found, how readings of several are combined (`answers`). numpy only.

Shape suffixes that differ from the project's: L ends of lines, W widths of spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Source, Spans, settled
from quoth.arrays import Floats
from quoth.errors import InputError
from quoth.reader.config import NEVER, ReaderConfig
from quoth.records import Passage
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START, uncut
from quoth.text.tokenizer import (
    MASK,
    READ_OF_TITLE,
    Pair,
    PairArrays,
    PairTokenizer,
    Tokens,
    batches_by_length,
    masked_ids,
    pair_arrays,
)

AT_A_TIME = 4
"""Number of a query's passages that are read before it is checked whether the others can change its answer."""


class SpanModel(Protocol):
    """A network that scores spans."""

    @property
    def config(self) -> ReaderConfig: ...

    @property
    def batch_tokens(self) -> int:
        """The most tokens of a batch, with padding."""

    def odds(self, batch: PairArrays, legal_BTW: NDArray[np.bool_]) -> Floats:
        """log odds of every span against "no answer here": [B, T, W]; `NEVER` if it is not legal."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A question and a passage as the reader sees them: the input, where the passage's tokens begin in it, their
    character ranges of the passage [T, 2] and boundary flags [T]. A title's tokens are not among them."""

    pair: Pair
    body: int
    offsets_T2: NDArray[np.int64]
    flags_T: NDArray[np.uint8]


def legal_spans(reading: Reading, width: int) -> NDArray[np.bool_]:
    """Which spans of the passage's tokens may be answers, by first token and tokens beyond it: [T, W].

    No word is cut, none starts or ends with punctuation or crosses a break.
    """
    length = len(reading.flags_T)
    may_end, line = np.zeros(length + width, np.bool_), np.full(length + width, -1)
    may_end[:length] = (reading.flags_T & MAY_END) > 0
    line[:length] = np.cumsum((reading.flags_T & BREAK_BEFORE) > 0)
    ends_TW = np.arange(length)[:, None] + np.arange(width)
    legal_TW: NDArray[np.bool_] = may_end[ends_TW] & (line[ends_TW] == line[:length, None])
    return legal_TW & ((reading.flags_T & MAY_START) > 0)[:, None]


def has_blank(tokenizer: PairTokenizer, text: str) -> bool:
    """Whether a text is no question."""
    return MASK in text or tokenizer.mask_token in text


def query_ids(tokenizer: PairTokenizer, text: str, limit: int) -> list[int]:
    """The ids of a question, or of a text around its blank, at most `limit`."""
    if has_blank(tokenizer, text):
        return masked_ids(tokenizer, text, limit)
    return tokenizer.pieces([text])[0][0][:limit]


def windows(
    tokenizer: PairTokenizer, config: ReaderConfig, query: Sequence[int], title: Sequence[int], body: Tokens
) -> list[Reading]:
    """The inputs that show all of a passage, whose tokens are `body`: one, or windows that overlap."""
    title, body = title[: config.title_tokens], with_line_ends(tokenizer, body)
    room = min(config.max_tokens, tokenizer.longest) - len(query) - len(title) - 3
    ids, offsets_T2, flags_T = body.ids_T.tolist(), body.offsets_T2, body.flags_T
    found, first = [], 0
    while True:
        last = min(first + room, len(flags_T))
        pair = tokenizer.pair(query, [*title, *ids[first:last]], config.max_tokens)
        found.append(Reading(pair, pair.second + len(title), offsets_T2[first:last], flags_T[first:last]))
        if last == len(flags_T):
            return found
        first += room - config.overlap


def with_line_ends(tokenizer: PairTokenizer, body: Tokens) -> Tokens:
    """The tokens with a semicolon, of no characters, where a line ends without punctuation: a network does not see line
    breaks, and would read the amount of a list's next line as that of the one before."""
    semicolon, bar = tokenizer.semicolon_and_bar
    ids_T, flags_T = body.ids_T, body.flags_T
    ends_T = (flags_T[:-1] & MAY_END > 0) & (flags_T[1:] & BREAK_BEFORE > 0) & (ids_T[1:] != bar)
    after_L = np.flatnonzero(ends_T) + 1
    if not len(after_L):
        return body
    offsets_T2 = np.insert(body.offsets_T2, after_L, body.offsets_T2[after_L - 1, 1:], axis=0)
    return Tokens(np.insert(ids_T, after_L, semicolon), offsets_T2, np.insert(flags_T, after_L, 0))


def check_room(config: ReaderConfig, longest: int, name: str) -> None:
    """Raises InputError if the inputs of a reader, of at most `longest` tokens, leave no room for a passage."""
    room = longest - config.query_tokens - config.title_tokens - 3
    if room <= config.overlap:
        raise InputError(
            f"the base of {name} takes at most {longest} tokens, which leaves {room} for a passage; it must be "
            f"more than overlap ({config.overlap}): use another base, or lower query_tokens, title_tokens or overlap"
        )


def legal_in(read: Sequence[Reading], length: int, width: int) -> NDArray[np.bool_]:
    """Which spans of the inputs may be answers: [B, T, W]."""
    legal_BTW = np.zeros((len(read), length, width), np.bool_)
    for row, reading in enumerate(read):
        legal_BTW[row, reading.body : reading.body + len(reading.flags_T)] = legal_spans(reading, width)
    return legal_BTW


class SpanReader:
    """Reads passages with a query, without gradients."""

    def __init__(self, model: SpanModel, tokenizer: PairTokenizer) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, model.config

    def read(
        self,
        queries: Sequence[str],
        passages: Sequence[Sequence[Passage]],
        known: Callable[[Passage], Tokens | None] = lambda passage: None,
    ) -> list[list[Spans]]:
        """Readings of each query's passages, all queries together in batches. `known` gives the tokens of a passage's
        text, if they are known.

        Raises InputError if a text has more than one blank.
        """
        asked = [query_ids(self.tokenizer, query, self.config.query_tokens) for query in queries]
        shown = dict(self._shown(asked, passages, known))
        inputs = [(place, window) for place, found in shown.items() for window in found]
        parts: dict[tuple[int, int], list[Spans]] = {place: [] for place in shown}
        for members in batches_by_length([len(window.pair.ids_T) for _, window in inputs], self.model.batch_tokens):
            read = [inputs[member][1] for member in members]
            batch = pair_arrays(self.tokenizer, [window.pair for window in read])
            odds_BTW = self.model.odds(batch, legal_in(read, batch.ids_BT.shape[1], self.config.span_width))
            for member, window, odds_TW in zip(members, read, odds_BTW, strict=True):
                parts[inputs[member][0]].append(best_spans(window, odds_TW))
        return [
            [with_whole(merged(parts[q, n]), passage.text) for n, passage in enumerate(group)]
            for q, group in enumerate(passages)
        ]

    def read_enough(
        self,
        queries: Sequence[str],
        sources: Sequence[Sequence[Source]],
        known: Callable[[Passage], Tokens | None] = lambda passage: None,
        hopeless: Callable[[int, Sequence[Spans]], bool] = lambda query, spans: False,
    ) -> list[list[Spans]]:
        """Readings of each query's passages, in their order, as many as can change its answer (`unread_bound`), or
        until it is `hopeless` (the query's number and its readings so far tell); else as `read`."""
        bound, found = self.config.unread_bound, [list[Spans]() for _ in queries]
        step = max(map(len, sources), default=0) if bound is None else AT_A_TIME
        unread = [q for q, group in enumerate(sources) if group]
        while unread:
            shown = [[each.passage for each in sources[q][len(found[q]) :][:step]] for q in unread]
            for q, spans in zip(unread, self.read([queries[q] for q in unread], shown, known), strict=True):
                found[q] += spans
            unread = [q for q in unread if len(found[q]) < len(sources[q])]
            if bound is not None:
                unread = [q for q in unread if not settled(sources[q], found[q], self.config.prior, bound)]
                unread = [q for q in unread if not hopeless(q, found[q])]
        return found

    def _shown(
        self,
        asked: Sequence[Sequence[int]],
        passages: Sequence[Sequence[Passage]],
        known: Callable[[Passage], Tokens | None],
    ) -> Iterator[tuple[tuple[int, int], list[Reading]]]:
        every = [(q, n, passage) for q, group in enumerate(passages) for n, passage in enumerate(group)]
        bodies = [known(passage) for *_, passage in every]
        texts = [passage.text for (*_, passage), body in zip(every, bodies, strict=True) if body is None]
        fresh = iter(zip(texts, self.tokenizer.pieces(texts), strict=True))
        titles = self.tokenizer.pieces([f"{p.title[:READ_OF_TITLE]}." if p.title else "" for *_, p in every])
        for (q, n, _), body, (title, _) in zip(every, bodies, titles, strict=True):
            yield (q, n), windows(self.tokenizer, self.config, asked[q], title, body or Tokens.of(*next(fresh)))


def best_spans(window: Reading, odds_TW: Floats, most: int = 64) -> Spans:
    """The spans of an input with the highest odds, by their characters."""
    width, flat = odds_TW.shape[1], odds_TW.ravel().astype(np.float64)
    at_C = np.argpartition(-flat, most)[:most] if len(flat) > most else np.arange(len(flat))
    at_C = at_C[flat[at_C] > NEVER / 2]
    at_C = at_C[np.argsort(-flat[at_C], kind="stable")]
    first_C, beyond_C = np.divmod(at_C, width)
    offsets_T2, first_C = window.offsets_T2, first_C - window.body
    start_C, end_C = offsets_T2[first_C, 0], offsets_T2[first_C + beyond_C, 1]
    return Spans(start_C, end_C, flat[at_C], float(np.logaddexp.reduce(flat)))


def with_whole(spans: Spans, text: str) -> Spans:
    """The spans of a text, with all of an address or a number's sign that they cut (`uncut`). The odds of those that
    are then equal add up."""
    whole = uncut(text)
    if not whole:
        return spans
    start_C, end_C = spans.start_C.copy(), spans.end_C.copy()
    for start, end in whole:
        start_C[(start_C > start) & (start_C < end)] = start
        end_C[(end_C > start) & (end_C < end)] = end
    kept_K2, kept_C = np.unique(np.stack([start_C, end_C], axis=1), axis=0, return_inverse=True)
    odds_K = np.full(len(kept_K2), -np.inf)
    np.logaddexp.at(odds_K, kept_C, spans.odds_C)
    return Spans(kept_K2[:, 0], kept_K2[:, 1], odds_K, spans.total)


def merged(parts: Sequence[Spans]) -> Spans:
    """A passage's windows as one reading: a span in several of them counts once, with its highest odds."""
    if len(parts) == 1:
        return parts[0]
    best: dict[tuple[int, int], float] = {}
    twice: list[float] = []
    for part in parts:
        for start, end, odds in zip(part.start_C.tolist(), part.end_C.tolist(), part.odds_C.tolist(), strict=True):
            if (start, end) in best:
                twice.append(min(odds, best[start, end]))
                odds = max(odds, best[start, end])
            best[start, end] = odds
    spans = np.array(list(best), np.int64).reshape(-1, 2)
    total = log_sum_exp(np.array([part.total for part in parts]))
    total += float(np.log1p(-np.exp(log_sum_exp(np.array(twice)) - total)))
    return Spans(spans[:, 0], spans[:, 1], np.array(list(best.values()), np.float64), total)
