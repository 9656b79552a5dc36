"""A query and passages as the reader's network sees them, and its scores as spans of the passages.

Knows: windows of long passages, which spans may be answers, how much is read. Does not know: the network itself, how
passages were found, how readings of several are combined (`answers`). numpy only.

Shape suffixes that differ from the project's: L ends of lines, W widths of spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Source, Spans, settled
from quoth.arrays import Floats, Ints
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

NO_SPANS = Spans(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), -np.inf)
AT_A_TIME = 4
"""Number of a query's passages that are read before it is checked whether the others can change its answer."""


class SpanModel(Protocol):
    """A network that scores spans and, with `config.evidence`, passages and tokens."""

    @property
    def config(self) -> ReaderConfig: ...

    @property
    def batch_tokens(self) -> int:
        """The most tokens of a batch, with padding."""

    def states(self, batch: PairArrays) -> Floats:
        """The states of these inputs from which it scores [B, T, D]."""

    def odds(self, states_BTD: Floats, mask_BT: Ints, legal_BTW: NDArray[np.bool_]) -> Floats:
        """Log odds of every span against "no answer here" [B, T, W], `NEVER` if it is not legal: may be no answer."""

    def marks(self, states_BTD: Floats, mask_BT: Ints) -> tuple[Floats, Floats]:
        """Log odds that the passage answers [B], and that a token is part of the evidence [B, T]."""


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


@dataclass(slots=True)
class _Input:
    """A reading of a passage, by the numbers of its query and of the passage among the query's; what is said of it."""

    query: int
    passage: int
    reading: Reading
    states_TD: Floats | None = None
    found: Spans = NO_SPANS

    @property
    def length(self) -> int:
        return len(self.reading.pair.ids_T)


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
        """Readings of each query's passages, all queries together in batches: spans, and relevance and evidence if the
        network scores them and the queries are questions. `known` gives the tokens of a passage's text, if they are
        known.

        Raises InputError if a text has more than one blank.
        """
        inputs, marks = self._inputs(queries, passages, known), self._marks(queries)
        for own in self._batches(inputs):
            states_BTD, mask_BT = self._states(own)
            if marks:
                self._add_marks(own, states_BTD, mask_BT)
            self._add_spans(own, states_BTD, mask_BT)
        return _by_passage(inputs, passages)

    def read_enough(
        self,
        queries: Sequence[str],
        sources: Sequence[Sequence[Source]],
        known: Callable[[Passage], Tokens | None] = lambda passage: None,
        can_stop: Callable[[int, Sequence[Spans]], bool] = lambda query, spans: False,
    ) -> list[list[Spans]]:
        """As `read`, of each query's passages in their order, until one is relevant enough (`enough_relevance`); spans
        are marked in the `marked_passages` most relevant ones. Without relevance: as many as can change the answer
        (`unread_bound`), or until `can_stop` (given the query's number and its readings so far)."""
        if self._marks(queries):
            return self._read_relevant(queries, [[each.passage for each in group] for group in sources], known)
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
                unread = [q for q in unread if not can_stop(q, found[q])]
        return found

    def _read_relevant(
        self,
        queries: Sequence[str],
        passages: Sequence[Sequence[Passage]],
        known: Callable[[Passage], Tokens | None],
    ) -> list[list[Spans]]:
        waiting, read = self._inputs(queries, passages, known), list[_Input]()
        best_QP = [np.full(len(group), -np.inf) for group in passages]
        enough = np.inf if self.config.enough_relevance is None else self.config.enough_relevance
        for first in range(0, max(map(len, passages), default=0), AT_A_TIME):
            unsure = [not (best_P >= enough).any() for best_P in best_QP]
            now = [each for each in waiting if first <= each.passage < first + AT_A_TIME and unsure[each.query]]
            for own in self._batches(now):
                states_BTD, mask_BT = self._states(own)
                self._add_marks(own, states_BTD, mask_BT)
                for each, states_TD in zip(own, states_BTD, strict=True):
                    each.states_TD = states_TD[: each.length]
                    best_QP[each.query][each.passage] = max(best_QP[each.query][each.passage], each.found.relevance)
            read += now
        marked = [set(np.argsort(-best_P, kind="stable")[: self.config.marked_passages].tolist()) for best_P in best_QP]
        for own in self._batches([each for each in read if each.passage in marked[each.query]]):
            self._add_spans(own, *_padded([each.states_TD for each in own if each.states_TD is not None]))
        counts = [int((best_P > -np.inf).sum()) for best_P in best_QP]
        return _by_passage(read, [group[:count] for group, count in zip(passages, counts, strict=True)])

    def _marks(self, queries: Sequence[str]) -> bool:
        """Whether relevance and evidence are scored, which were learned from questions."""
        return self.config.evidence and not any(has_blank(self.tokenizer, query) for query in queries)

    def _batches(self, inputs: Sequence[_Input]) -> Iterator[list[_Input]]:
        for members in batches_by_length([each.length for each in inputs], self.model.batch_tokens):
            yield [inputs[member] for member in members]

    def _states(self, inputs: Sequence[_Input]) -> tuple[Floats, Ints]:
        batch = pair_arrays(self.tokenizer, [each.reading.pair for each in inputs])
        return self.model.states(batch), batch.mask_BT

    def _add_spans(self, inputs: Sequence[_Input], states_BTD: Floats, mask_BT: Ints) -> None:
        legal_BTW = legal_in([each.reading for each in inputs], mask_BT.shape[1], self.config.span_width)
        for each, odds_TW in zip(inputs, self.model.odds(states_BTD, mask_BT, legal_BTW), strict=True):
            spans = best_spans(each.reading, odds_TW)
            each.found = replace(spans, relevance=each.found.relevance, marks=each.found.marks)

    def _add_marks(self, inputs: Sequence[_Input], states_BTD: Floats, mask_BT: Ints) -> None:
        relevance_B, evidence_BT = self.model.marks(states_BTD, mask_BT)
        for each, relevance, evidence_T in zip(inputs, relevance_B.tolist(), evidence_BT, strict=True):
            marks_T = evidence_T[each.reading.body :][: len(each.reading.flags_T)].astype(np.float64)
            each.found = replace(each.found, relevance=relevance, marks=(each.reading.offsets_T2, marks_T))

    def _inputs(
        self,
        queries: Sequence[str],
        passages: Sequence[Sequence[Passage]],
        known: Callable[[Passage], Tokens | None],
    ) -> list[_Input]:
        asked = [query_ids(self.tokenizer, query, self.config.query_tokens) for query in queries]
        every = [(q, n, passage) for q, group in enumerate(passages) for n, passage in enumerate(group)]
        bodies = [known(passage) for *_, passage in every]
        texts = [passage.text for (*_, passage), body in zip(every, bodies, strict=True) if body is None]
        fresh = iter(zip(texts, self.tokenizer.pieces(texts), strict=True))
        titles = self.tokenizer.pieces([_heading(passage) for *_, passage in every])
        return [
            _Input(q, n, window)
            for (q, n, _), body, (title, _) in zip(every, bodies, titles, strict=True)
            for window in windows(self.tokenizer, self.config, asked[q], title, body or Tokens.of(*next(fresh)))
        ]


def _by_passage(inputs: Sequence[_Input], passages: Sequence[Sequence[Passage]]) -> list[list[Spans]]:
    """What is said of each query's passages."""
    parts = [[list[Spans]() for _ in group] for group in passages]
    for each in inputs:
        parts[each.query][each.passage].append(each.found)
    return [
        [with_whole(merged(part), passage.text) for part, passage in zip(own, group, strict=True)]
        for own, group in zip(parts, passages, strict=True)
    ]


def _padded(states: Sequence[Floats]) -> tuple[Floats, Ints]:
    """States of inputs as one array [B, T, D], padded on the right, and which are of tokens [B, T]."""
    length = max(map(len, states))
    states_BTD = np.stack([np.pad(each_TD, ((0, length - len(each_TD)), (0, 0))) for each_TD in states])
    return states_BTD, (np.arange(length) < np.array([[len(each_TD)] for each_TD in states])).astype(np.int64)


def _heading(passage: Passage) -> str:
    """What is read in front of a passage: its title."""
    return f"{passage.title[:READ_OF_TITLE]}." if passage.title else ""


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
    return replace(spans, start_C=kept_K2[:, 0], end_C=kept_K2[:, 1], odds_C=odds_K)


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
    total += float(np.log1p(-np.exp(log_sum_exp(np.array(twice)) - total))) if twice else 0.0
    offsets, marks = zip(*(part.marks for part in parts if part.marks), strict=True) if parts[0].marks else ((), ())
    return Spans(
        spans[:, 0],
        spans[:, 1],
        np.array(list(best.values()), np.float64),
        total,
        max(part.relevance for part in parts),
        (np.concatenate(offsets), np.concatenate(marks)) if offsets else None,
    )
