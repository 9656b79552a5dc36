"""Which tokens of a batch are hidden, and where else in the batch the same phrase occurs.

Knows: token ids, word boundaries, the sampling rules of the papers.
Does not know: encoders and losses.

Shape suffixes that differ from the project's: S sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from quoth.arrays import Flags, Ints
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START


@dataclass(frozen=True, slots=True)
class MaskingOptions:
    """The rules of NPM §3.2.1 and appendix A.2."""

    mask_ratio: float = 0.15
    max_span: int = 10
    geometric_p: float = 0.5
    max_spans_per_sequence: int = 128
    max_repeats: int = 10
    group: int = 0
    """The number of consecutive sequences searched together for spans that recur; 0: all."""
    whole_words: bool = True
    """Whether a positive begins and ends at word boundaries; the paper's is any equal n-gram."""


@dataclass(frozen=True, slots=True)
class MaskedSpans:
    """Hidden spans of a batch and their positives.

    `start_M`, `length_M`: rows of the batch's tokens laid end to end. `positive_query`, `positive_start`: pairs that
    say at which rows of *other* sequences the same n-gram starts; it ends `length - 1` rows later.
    """

    start_M: Ints
    length_M: Ints
    positive_query: Ints
    positive_start: Ints


@dataclass(frozen=True, slots=True)
class NGrams:
    """All n-grams of one length: first row, sequence, and a number that is equal for equal n-grams."""

    start: Ints
    sequence: Ints
    group: Ints


def ngrams(ids_N: Ints, sequence_N: Ints, flags_N: Flags, max_span: int) -> list[NGrams]:
    """Every span of 1 to `max_span` tokens inside one sequence that starts and ends at word boundaries and crosses no
    break.

    Each length's groups number the pairs (group of the first n - 1 tokens, last token), so they are exact.
    """
    result: list[NGrams] = []
    total = len(ids_N)
    prefix_N = np.unique(ids_N, return_inverse=True)[1].astype(np.int64)
    token_N = prefix_N.copy()
    vocabulary = int(token_N.max(initial=0)) + 1
    line_N = np.cumsum(flags_N & BREAK_BEFORE > 0)
    for length in range(1, max_span + 1):
        count = total - length + 1
        if count <= 0:
            break
        if length > 1:
            # Both factors are at most N, since ids were renumbered above: the product fits into 64 bits, and unlike
            # hashes the numbers never collide.
            pairs = prefix_N[:count] * vocabulary + token_N[length - 1 :]
            prefix_N = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
        legal = (
            (sequence_N[:count] == sequence_N[length - 1 :])
            & (line_N[:count] == line_N[length - 1 :])
            & (flags_N[:count] & MAY_START > 0)
            & (flags_N[length - 1 :] & MAY_END > 0)
        )
        start = np.flatnonzero(legal)
        result.append(NGrams(start, sequence_N[start], prefix_N[start]))
    return result


def recurring(grams: NGrams, together: int = 0) -> NDArray[np.bool_]:
    """Whether each n-gram also occurs in another sequence: of the same `together` that follow each other, or (0) of
    all."""
    if not len(grams.start):
        return np.zeros(0, np.bool_)
    name = grams.group
    if together:
        name = np.unique(grams.sequence // together * (int(name.max()) + 1) + name, return_inverse=True)[1]
    # An n-gram recurs if the lowest and the highest sequence it occurs in differ: no list of sequences per n-gram.
    size = int(name.max()) + 1
    lowest = np.full(size, np.iinfo(np.int64).max)
    highest = np.full(size, -1)
    np.minimum.at(lowest, name, grams.sequence)
    np.maximum.at(highest, name, grams.sequence)
    return np.asarray(lowest[name] != highest[name])


def mask_spans(
    ids_N: Ints, sequence_N: Ints, flags_N: Flags, rng: Generator, options: MaskingOptions = MaskingOptions()
) -> MaskedSpans:
    """Span masking (NPM §3.2.1, A.2): hide phrases that also occur in another sequence of the same group.

    Spans are tried in random order with lengths drawn from a geometric distribution, until a sequence's budget
    is spent; they do not overlap. If no span of a length is left, one of the next shorter length is taken. Positives
    are the same phrases in all other sequences of the batch, of other groups too. With `whole_words` they are so at
    word boundaries: the same tokens inside another word ("man" in "manly") are negatives. Without, as in the paper,
    all places of the same tokens are positives.
    """
    # Every n-gram is listed, in arrays: masking runs 13.5 times as fast as the same rules in plain Python
    # (docs/benchmarks.md).
    tables = ngrams(ids_N, sequence_N, flags_N, options.max_span)
    kept = [(table, np.flatnonzero(recurring(table, options.group))) for table in tables]
    chosen = _choose(kept, sequence_N, rng, options)
    anywhere = tables if options.whole_words else ngrams(ids_N, sequence_N, _anywhere(flags_N), options.max_span)
    return _with_positives(tables, chosen, anywhere)


def _anywhere(flags_N: Flags) -> Flags:
    """Flags by which every token may start and end a phrase."""
    return np.full_like(flags_N, MAY_START | MAY_END)


def _choose(
    tables: list[tuple[NGrams, Ints]], sequence_N: Ints, rng: Generator, options: MaskingOptions
) -> list[tuple[int, int]]:
    """Pairs (length, index in that length's table)."""
    num_sequences = int(sequence_N.max(initial=-1)) + 1
    # Popping from a shuffled list draws uniformly without replacement.
    by_sequence = [
        [rng.permutation(index[table.sequence[index] == s]).tolist() for table, index in tables]
        for s in range(num_sequences)
    ]
    free = np.ones(len(sequence_N), np.bool_)
    repeats: dict[tuple[int, int], int] = {}
    chosen: list[tuple[int, int]] = []
    sizes = np.bincount(sequence_N, minlength=num_sequences)

    def fits(length: int, index: int) -> bool:
        table = tables[length - 1][0]
        start, gram = int(table.start[index]), (length, int(table.group[index]))
        return bool(free[start : start + length].all()) and repeats.get(gram, 0) < options.max_repeats

    # Sequences in random order: `max_repeats` is shared by the batch, and would always run out for the last ones.
    for s in rng.permutation(num_sequences):
        budget, spans = options.mask_ratio * sizes[s], 0
        pools = by_sequence[s]
        while budget >= 1 and spans < options.max_spans_per_sequence:
            drawn = min(int(rng.geometric(options.geometric_p)), options.max_span, len(pools), int(budget))
            found = _take(pools, drawn, min(int(budget), len(pools)), fits)
            if found is None:
                break
            length, index = found
            table = tables[length - 1][0]
            start, gram = int(table.start[index]), (length, int(table.group[index]))
            free[start : start + length] = False
            repeats[gram] = repeats.get(gram, 0) + 1
            chosen.append(found)
            budget -= length
            spans += 1
    return chosen


def _take(
    pools: Sequence[list[int]], drawn: int, longest: int, fits: Callable[[int, int], bool]
) -> tuple[int, int] | None:
    """The next span of the drawn length that fits, else of the next shorter one; if there is none either, of the
    next longer one. What does not fit is dropped for the rest of the batch."""
    for length in (*range(drawn, 0, -1), *range(drawn + 1, longest + 1)):
        pool = pools[length - 1]
        while pool:
            # Safe to drop: `free` only shrinks and `repeats` only grows, so what does not fit now never will.
            index = pool.pop()
            if fits(length, index):
                return length, index
    return None


def _with_positives(tables: list[NGrams], chosen: list[tuple[int, int]], places: list[NGrams]) -> MaskedSpans:
    """The chosen spans, (length, index in that length's table), with the equal n-grams among `places`."""
    starts, lengths, queries, positives = [], [], [], []
    order = [np.argsort(place.group, kind="stable") for place in places]
    sorted_groups = [place.group[by] for place, by in zip(places, order, strict=True)]
    chosen = sorted(chosen, key=lambda pair: int(tables[pair[0] - 1].start[pair[1]]))
    for query, (length, index) in enumerate(chosen):
        table, place = tables[length - 1], places[length - 1]
        # Sorted by group once per length, so each phrase's occurrences are one range.
        left, right = np.searchsorted(sorted_groups[length - 1], [table.group[index], table.group[index] + 1])
        same = order[length - 1][left:right]
        same = np.sort(same[place.sequence[same] != table.sequence[index]])
        starts.append(int(table.start[index]))
        lengths.append(length)
        queries.append(np.full(len(same), query))
        positives.append(place.start[same])
    empty = np.zeros(0, np.int64)
    return MaskedSpans(
        np.array(starts, np.int64),
        np.array(lengths, np.int64),
        np.concatenate([empty, *queries]),
        np.concatenate([empty, *positives]),
    )


def mask_tokens(
    ids_N: Ints, sequence_N: Ints, flags_N: Flags, rng: Generator, options: MaskingOptions = MaskingOptions()
) -> MaskedSpans:
    """Uniform masking for NPM-single (A.3): each token that also occurs in another sequence of the same group may be
    hidden alone.

    They are drawn uniformly until a sequence's budget is spent; boundaries and repeats do not matter.
    """
    if not len(ids_N):
        return _with_positives([], [], [])
    # One pass in one random order: single tokens cannot overlap, so nothing has to be tried again.
    table = ngrams(ids_N, sequence_N, _anywhere(flags_N), 1)[0]
    budget_S = (options.mask_ratio * np.bincount(sequence_N)).astype(np.int64)
    chosen: list[tuple[int, int]] = []
    for index in rng.permutation(np.flatnonzero(recurring(table, options.group))):
        sequence = table.sequence[index]
        if budget_S[sequence]:
            budget_S[sequence] -= 1
            chosen.append((1, int(index)))
    return _with_positives([table], chosen, [table])
