"""The reader: a query and a passage encoded together; a score for every span, and one for "no answer here".

Knows: the network, its inputs, windows of long passages, which spans may be answers. Does not know: how passages were
found, how readings of several are combined (`answers`), training.

Shape suffixes that differ from the project's: S span size, W widths of spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Source, Spans, settled
from quoth.encoders.bert import dense
from quoth.encoders.transformer import PairBatch, pair_batch, run_batched
from quoth.reader.config import ReaderConfig
from quoth.records import Passage
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START
from quoth.text.tokenizer import MASK, Pair, PairTokenizer, Tokens, masked_ids

AT_A_TIME = 4
"""Number of a query's passages that are read before it is checked whether the others can change its answer."""
NEVER = -1e30
"""The score of anything that is not a span. Finite, so that a softmax over nothing else has a gradient of 0, not
NaN."""


class EndsHead(nn.Module):
    """A span's score is the sum of its first token's start logit and its last token's end logit (BERT, §4.2)."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.ends = dense(hidden, 2)
        self.width = width

    def forward(self, states_BTH: Tensor) -> Tensor:
        """The score of the span of w + 1 tokens from token t on: [B, T, W]; `NEVER` beyond the input."""
        start_BT, end_BT = self.ends(states_BTH).float().unbind(dim=-1)
        padded_BT = nn.functional.pad(end_BT, (0, self.width - 1), value=NEVER)
        scores_BTW: Tensor = start_BT[:, :, None] + padded_BT.unfold(1, self.width, 1)
        return scores_BTW


class SpanHead(nn.Module):
    """The span reader: s(i, j) = w · LayerNorm(ReLU(start_i + end_j)), an MLP of both ends' states. ORQA §3."""

    def __init__(self, hidden: int, width: int, size: int, layer_norm_eps: float = 1e-3) -> None:
        super().__init__()
        self.ends = dense(hidden, 2 * size)
        self.norm = nn.LayerNorm(size, layer_norm_eps)
        self.score = dense(size, 1)
        self.width = width

    def forward(self, states_BTH: Tensor) -> Tensor:
        """The score of the span of w + 1 tokens from token t on: [B, T, W]; −inf if it ends beyond the input."""
        start_BTS, end_BTS = self.ends(states_BTH).chunk(2, dim=-1)
        length = start_BTS.shape[1]
        padded_BTS = nn.functional.pad(end_BTS, (0, 0, 0, self.width - 1))
        end_BTSW = padded_BTS.unfold(1, self.width, 1)
        spans_BTWS = (start_BTS[:, :, None] + end_BTSW.transpose(2, 3)).relu()
        score_BTW: Tensor = self.score(self.norm(spans_BTWS)).squeeze(-1)
        ends_TW = torch.arange(length)[:, None] + torch.arange(self.width)
        return score_BTW.masked_fill((ends_TW >= length).to(score_BTW.device), -torch.inf)


class SpanReaderModel(nn.Module):
    """The encoder and its heads; weights are named `encoder.…`, `span.…` and `none.…`."""

    def __init__(self, encoder: Any, config: ReaderConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        hidden, width = int(encoder.config.hidden_size), config.span_width
        self.span = EndsHead(hidden, width) if config.head == "ends" else SpanHead(hidden, width, config.span_hidden)
        self.none = dense(hidden, 1)

    def forward(self, batch: PairBatch, legal_BTW: Tensor) -> Tensor:
        """log odds of every span against "no answer here": [B, T, W]; `NEVER` if it is not legal.

        A span's score less the score of "no answer", which comes from the input's first state.
        """
        states_BTH: Tensor = self.encoder(**batch.arguments()).last_hidden_state.float()
        odds_BTW: Tensor = self.span(states_BTH).float() - self.none(states_BTH[:, 0]).float()[:, :, None]
        return odds_BTW.masked_fill(~legal_BTW, NEVER)


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


def query_ids(tokenizer: PairTokenizer, text: str, limit: int) -> list[int]:
    """The ids of a question, or of a text around its blank, at most `limit`."""
    if MASK in text or tokenizer.mask_token in text:
        return masked_ids(tokenizer, text, limit)
    return tokenizer.pieces([text])[0][0][:limit]


def windows(
    tokenizer: PairTokenizer, config: ReaderConfig, query: Sequence[int], title: Sequence[int], body: Tokens
) -> list[Reading]:
    """The inputs that show all of a passage, whose tokens are `body`: one, or windows that overlap."""
    title = title[: config.title_tokens]
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


def legal_in(read: Sequence[Reading], length: int, width: int) -> Tensor:
    """Which spans of the inputs may be answers: bool [B, T, W]."""
    legal_BTW = torch.zeros((len(read), length, width), dtype=torch.bool)
    for row, reading in enumerate(read):
        legal_BTW[row, reading.body : reading.body + len(reading.flags_T)] = torch.from_numpy(
            legal_spans(reading, width)
        )
    return legal_BTW


class SpanReader:
    """Reads passages with a query, without gradients."""

    def __init__(self, model: SpanReaderModel, tokenizer: PairTokenizer) -> None:
        self.model, self.tokenizer, self.config = model.eval(), tokenizer, model.config
        self._device = next(model.parameters()).device

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
        read = [window for _, window in inputs]
        for member, odds_TW in run_batched(read, [len(window.pair.ids_T) for window in read], self._odds):
            parts[inputs[member][0]].append(best_spans(read[member], torch.from_numpy(odds_TW).double()))
        return [[merged(parts[q, n]) for n in range(len(group))] for q, group in enumerate(passages)]

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

    def _odds(self, read: Sequence[Reading]) -> Tensor:
        batch = pair_batch(self.tokenizer, [reading.pair for reading in read], self._device)
        legal_BTW = legal_in(read, batch.ids_BT.shape[1], self.config.span_width)
        odds_BTW: Tensor = self.model(batch, legal_BTW.to(self._device))
        return odds_BTW

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
        titles = self.tokenizer.pieces([f"{p.title}." if p.title else "" for *_, p in every])
        for (q, n, _), body, (title, _) in zip(every, bodies, titles, strict=True):
            yield (q, n), windows(self.tokenizer, self.config, asked[q], title, body or Tokens.of(*next(fresh)))


def best_spans(window: Reading, odds_TW: Tensor, most: int = 64) -> Spans:
    """The spans of an input with the highest odds, by their characters."""
    width = odds_TW.shape[1]
    flat = odds_TW.flatten()
    odds_C, at_C = flat.topk(min(most, len(flat)))
    kept_C = (odds_C > NEVER / 2).numpy()
    first_C, beyond_C = np.divmod(at_C.numpy()[kept_C], width)
    offsets_T2, first_C = window.offsets_T2, first_C - window.body
    start_C, end_C = offsets_T2[first_C, 0], offsets_T2[first_C + beyond_C, 1]
    return Spans(start_C, end_C, odds_C.numpy()[kept_C], float(flat.logsumexp(dim=0)))


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
