"""The sampling rules of span and token masking, against plain Python that spells them out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from quoth.npm.masking import MaskedSpans, MaskingOptions, mask_spans, mask_tokens, ngrams, recurring
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START

SEEDS = range(6)
Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]


def random_batch(seed: int) -> Arrays:
    """Ids of few kinds (so that phrases recur), the sequence of each, and flags that cut some words."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 50, size=int(rng.integers(2, 6)))
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    ids = rng.integers(0, int(rng.choice([3, 12, 60])), size=len(sequence))
    flags = rng.choice(np.array([0, 1, 2, 3], np.uint8), size=len(ids), p=[0.1, 0.15, 0.15, 0.6])
    return ids, sequence, flags


def occurrences(ids: NDArray[np.int64], sequence: NDArray[np.int64], legal: NDArray[np.uint8], n: int) -> list[int]:
    return [
        i
        for i in range(len(ids) - n + 1)
        if sequence[i] == sequence[i + n - 1] and legal[i] & MAY_START and legal[i + n - 1] & MAY_END
    ]


def slow_positives(batch: Arrays, start: int, length: int) -> list[int]:
    """Where the same tokens stand, at word boundaries, in other sequences."""
    ids, sequence, flags = batch
    phrase = ids[start : start + length].tolist()
    return [
        i
        for i in occurrences(ids, sequence, flags, length)
        if sequence[i] != sequence[start] and ids[i : i + length].tolist() == phrase
    ]


def assert_rules(batch: Arrays, spans: MaskedSpans, options: MaskingOptions, *, repeats: bool = True) -> None:
    ids, sequence, flags = batch
    taken: set[int] = set()
    grams: Counter[tuple[int, ...]] = Counter()
    hidden: Counter[int] = Counter()
    number: Counter[int] = Counter()
    pairs = []
    for m, (start, length) in enumerate(zip(spans.start_M.tolist(), spans.length_M.tolist(), strict=True)):
        rows = range(start, start + length)
        assert 1 <= length <= options.max_span
        assert len({int(sequence[row]) for row in rows}) == 1
        assert flags[start] & MAY_START
        assert flags[start + length - 1] & MAY_END
        assert taken.isdisjoint(rows)
        taken.update(rows)
        grams[tuple(ids[start : start + length].tolist())] += 1
        hidden[int(sequence[start])] += length
        number[int(sequence[start])] += 1
        positives = slow_positives(batch, start, length)
        assert positives
        pairs.extend((m, row) for row in positives)
    assert list(zip(spans.positive_query.tolist(), spans.positive_start.tolist(), strict=True)) == pairs
    assert spans.start_M.tolist() == sorted(spans.start_M.tolist())
    assert all(tokens <= options.mask_ratio * np.sum(sequence == s) for s, tokens in hidden.items())
    assert max(number.values(), default=0) <= options.max_spans_per_sequence
    if repeats:
        assert max(grams.values(), default=0) <= options.max_repeats


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "options",
    [
        MaskingOptions(),
        MaskingOptions(mask_ratio=0.6, max_repeats=2, max_span=4),
        MaskingOptions(mask_ratio=0.9, max_spans_per_sequence=3, geometric_p=0.2),
    ],
    ids=["paper", "repeats", "spans"],
)
def test_span_masking_keeps_every_rule(seed: int, options: MaskingOptions) -> None:
    batch = random_batch(seed)
    assert_rules(batch, mask_spans(*batch, np.random.default_rng(seed), options), options)


@pytest.mark.parametrize("seed", SEEDS)
def test_positives_anywhere_are_all_equal_n_grams(seed: int) -> None:
    """The paper's (§3.2.2): what is hidden stays the same, only its positives are more."""
    ids, sequence, flags = random_batch(seed)
    usual = mask_spans(ids, sequence, flags, np.random.default_rng(seed))
    spans = mask_spans(ids, sequence, flags, np.random.default_rng(seed), MaskingOptions(whole_words=False))
    assert spans.start_M.tolist() == usual.start_M.tolist()
    assert spans.length_M.tolist() == usual.length_M.tolist()
    everywhere = ids, sequence, np.full_like(flags, MAY_START | MAY_END)
    pairs = [
        (m, row)
        for m, (start, length) in enumerate(zip(spans.start_M.tolist(), spans.length_M.tolist(), strict=True))
        for row in slow_positives(everywhere, start, length)
    ]
    assert list(zip(spans.positive_query.tolist(), spans.positive_start.tolist(), strict=True)) == pairs


@pytest.mark.parametrize(("whole_words", "positives"), [(True, [3]), (False, [3, 4, 7])])
def test_a_word_inside_another_is_a_positive_only_without_whole_words(whole_words: bool, positives: list[int]) -> None:
    """ "man" (7) alone, at the end of "woman" (5 7) and at the beginning of "manly" (7 8)."""
    ids = np.array([7, 1, 2, 7, 7, 8, 5, 7])  # man . . | man manly woman
    sequence = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    flags = np.array([3, 3, 3, 3, MAY_START, MAY_END, MAY_START, MAY_END], np.uint8)
    options = MaskingOptions(mask_ratio=0.4, whole_words=whole_words)
    spans = mask_spans(ids, sequence, flags, np.random.default_rng(0), options)
    hidden = spans.start_M.tolist().index(0)
    assert spans.positive_start[spans.positive_query == hidden].tolist() == positives


@pytest.mark.parametrize("seed", SEEDS)
def test_token_masking_keeps_its_rules(seed: int) -> None:
    ids, sequence, flags = random_batch(seed)
    spans = mask_tokens(ids, sequence, flags, np.random.default_rng(seed))
    assert set(spans.length_M.tolist()) <= {1}
    assert_rules((ids, sequence, np.full_like(flags, 3)), spans, MaskingOptions(), repeats=False)


@pytest.mark.parametrize("masker", [mask_spans, mask_tokens])
def test_the_budget_is_spent_where_there_is_enough_to_hide(masker) -> None:
    ids = np.tile(np.arange(100), 6)
    sequence = np.repeat(np.arange(6), 100)
    spans = masker(ids, sequence, np.full(600, 3, np.uint8), np.random.default_rng(0))
    hidden = np.bincount(sequence[spans.start_M], weights=spans.length_M, minlength=6)
    assert hidden.tolist() == [15.0] * 6


def test_lengths_are_geometric_and_reach_the_longest() -> None:
    ids = np.tile(np.arange(4000), 2)
    sequence = np.repeat([0, 1], 4000)
    options = MaskingOptions(max_spans_per_sequence=10**6)
    spans = mask_spans(ids, sequence, np.full(8000, 3, np.uint8), np.random.default_rng(0), options)
    share = np.bincount(spans.length_M, minlength=12) / len(spans.length_M)
    assert share[1:5] == pytest.approx([0.5, 0.25, 0.125, 0.0625], abs=0.06)
    assert spans.length_M.max() in (8, 9, 10)


def test_where_no_span_of_a_length_is_left_the_next_shorter_one_is_taken() -> None:
    """Words of one token and of three: lengths of 1 and 2 take the former, those above the latter."""
    words = np.random.default_rng(1).random(3000) < 0.5
    flags = np.concatenate([[3 | BREAK_BEFORE] if one else [1 | BREAK_BEFORE, 0, 2] for one in words])
    ids, sequence = np.tile(np.arange(len(flags)), 2), np.repeat([0, 1], len(flags))
    options = MaskingOptions(max_spans_per_sequence=10**6)
    spans = mask_spans(ids, sequence, np.tile(flags, 2).astype(np.uint8), np.random.default_rng(0), options)
    assert set(spans.length_M.tolist()) == {1, 3}
    assert np.mean(spans.length_M == 3) == pytest.approx(0.25, abs=0.05)


def test_a_span_that_does_not_fit_makes_room_for_one_of_its_length() -> None:
    """Long spans are rejected more often, for overlaps; lengths stay geometric all the same."""
    ids, sequence = np.tile(np.arange(2000), 2), np.repeat([0, 1], 2000)
    options = MaskingOptions(mask_ratio=0.5, max_spans_per_sequence=10**6)
    spans = mask_spans(ids, sequence, np.full(4000, 3, np.uint8), np.random.default_rng(0), options)
    assert np.mean(spans.length_M >= 2) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("masker", [mask_spans, mask_tokens])
def test_phrases_are_looked_for_in_groups_and_contrasted_over_all(masker) -> None:
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.integers(0, 40, 60) + (0 if s < 4 else 30) for s in range(8)])
    sequence, flags = np.repeat(np.arange(8), 60), np.full(480, 3, np.uint8)
    spans = masker(ids, sequence, flags, rng, MaskingOptions(group=2))
    elsewhere = 0
    assert len(spans.start_M) > 20
    for m, (start, length) in enumerate(zip(spans.start_M.tolist(), spans.length_M.tolist(), strict=True)):
        positives = slow_positives((ids, sequence, flags), start, length)
        assert spans.positive_start[spans.positive_query == m].tolist() == positives
        assert any(sequence[i] // 2 == sequence[start] // 2 for i in positives)
        elsewhere += any(sequence[i] // 2 != sequence[start] // 2 for i in positives)
    assert elsewhere


@pytest.mark.parametrize("masker", [mask_spans, mask_tokens])
def test_masking_is_a_function_of_the_seed(masker) -> None:
    batch = random_batch(3)
    first, same, other = (masker(*batch, np.random.default_rng(seed)) for seed in (7, 7, 8))
    for name in ("start_M", "length_M", "positive_query", "positive_start"):
        assert getattr(first, name).tolist() == getattr(same, name).tolist()
    assert first.start_M.tolist() != other.start_M.tolist()


@pytest.mark.parametrize("masker", [mask_spans, mask_tokens])
@pytest.mark.parametrize(
    ("ids", "sequence"),
    [([], []), ([1] * 20, [0] * 20), (range(40), [0] * 20 + [1] * 20), ([5, 5], [0, 1])],
    ids=["nothing", "one sequence", "nothing in common", "too short for the budget"],
)
def test_nothing_to_hide_is_no_span(masker, ids, sequence) -> None:
    flags = np.full(len(ids), 3, np.uint8)
    spans = masker(np.array(ids, np.int64), np.array(sequence, np.int64), flags, np.random.default_rng(0))
    assert len(spans.start_M) == len(spans.length_M) == 0
    assert len(spans.positive_query) == len(spans.positive_start) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_ngram_groups_are_exact(seed: int) -> None:
    ids, sequence, flags = random_batch(seed)
    for length, table in enumerate(ngrams(ids, sequence, flags, 5), 1):
        starts = table.start.tolist()
        assert starts == occurrences(ids, sequence, flags, length)
        texts = [tuple(ids[i : i + length].tolist()) for i in starts]
        assert (
            len(set(texts)) == len(set(table.group.tolist())) == len(set(zip(texts, table.group.tolist(), strict=True)))
        )
        expected = [bool(slow_positives((ids, sequence, flags), i, length)) for i in starts]
        assert recurring(table).tolist() == expected
