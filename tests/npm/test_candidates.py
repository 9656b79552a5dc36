from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.index.key_table import KeyHits, KeyTable
from quoth.npm.candidates import _SPACE, find_candidates
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START, SPACE_BEFORE, SPELLING_BASE, spelling
from token_tables import word_group, word_table


def spans(keys: KeyTable, starts: list[int], ends: list[int], longest: int, banned: list[int] | None = None):
    hits = KeyHits(keys, np.array(starts, np.int64), np.array(ends, np.int64))
    found = find_candidates(hits, longest, banned or [])
    return sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))


def random_hits(rng: np.random.Generator) -> KeyHits:
    """Overlapping hits in passages of all lengths, some deleted, some tokens no border of a phrase."""
    passages = [" ".join(rng.choice(["a", "b", "B", "c"], rng.integers(0, 40))) for _ in range(rng.integers(1, 12))]
    tokens = sum(len(passage.split()) for passage in passages)
    flags = np.array(rng.choice([3, 3, 3, 1, 2, 0], tokens), int) + BREAK_BEFORE * (rng.random(tokens) < 0.2)
    live = rng.random(len(passages)) < 0.8 if rng.random() < 0.5 else None
    keys = word_table(passages, np.zeros((tokens, 2)), flags=flags, live=live)
    starts, ends = (rng.integers(0, tokens, rng.integers(0, 60) if tokens else 0) for _ in range(2))
    return KeyHits(keys, starts, ends)


def counted(keys: KeyTable, i: int, j: int) -> int:
    """The tokens from i to j but for those that go on with a word, read one by one."""
    count, in_word = 0, False
    for row in range(i, j + 1):
        start, end = keys.flags_N[row] & MAY_START, keys.flags_N[row] & MAY_END
        goes_on = (end and not start) or (in_word and not start and not end)
        count += not goes_on
        if start or end:
            in_word = bool(start and not end)
    return count


def plain(keys: KeyTable, starts: list[int], ends: list[int], longest: int, banned: list[int]):
    found = []
    for p in range(len(keys.passage_rows_P)):
        if keys.live_P is not None and not keys.live_P[p]:
            continue
        first, stop = int(keys.offsets_P1[p]), int(keys.offsets_P1[p + 1])
        for i in range(first, stop):
            for j in range(i, min(stop, i + longest + 20)):
                if counted(keys, i, j) > longest:
                    break
                bounded = keys.flags_N[i] & MAY_START and keys.flags_N[j] & MAY_END
                crosses = (keys.flags_N[i + 1 : j + 1] & BREAK_BEFORE).any()
                if (
                    (i in starts or j in ends)
                    and bounded
                    and not crosses
                    and not set(keys.ids_N[i : j + 1]) & set(banned)
                ):
                    found.append((i, j))
    return found


def names(keys: KeyTable, *rows: tuple[int, int]) -> list[int]:
    """Names of phrases, which are the same whether their first or their last token was hit."""
    found = []
    for first, last in rows:
        pair = [
            find_candidates(KeyHits(keys, np.array(starts, np.int64), np.array(ends, np.int64)), last - first + 1)
            for starts, ends in (([first], []), ([], [last]))
        ]
        from_start, from_end = (int(each.key_C[(each.start_C == first) & (each.end_C == last)].item()) for each in pair)
        assert from_start == from_end
        found.append(from_start)
    return found


def test_phrases_start_at_a_start_hit_or_end_at_an_end_hit() -> None:
    keys = word_table(["a b c", "d e"], np.zeros((5, 2)))
    assert spans(keys, [1], [], 10) == [(1, 1), (1, 2)]
    assert spans(keys, [], [1], 10) == [(0, 1), (1, 1)]
    assert spans(keys, [1], [2], 10) == [(0, 2), (1, 1), (1, 2), (2, 2)]
    assert spans(keys, [2, 3], [], 10) == [(2, 2), (3, 3), (3, 4)]
    assert spans(keys, [0], [], 2) == [(0, 0), (0, 1)]


def test_boundaries_deletions_and_banned_tokens_forbid() -> None:
    flags = [MAY_START, MAY_START | MAY_END, MAY_END, 3, 3]
    keys = word_table(["a b c", "d e"], np.zeros((5, 2)), flags=flags, live=[True, False])
    assert spans(keys, [0, 1, 2, 3], [4], 10) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert spans(keys, [0], [], 10, banned=[int(keys.ids_N[2])]) == [(0, 1)]


@pytest.mark.parametrize(("starts", "ends"), [([], []), ([], [0]), ([0], [])])
def test_a_passage_of_one_token(starts: list[int], ends: list[int]) -> None:
    keys = word_table(["a"], np.zeros((1, 2)))
    assert spans(keys, starts, ends, 10) == ([(0, 0)] if starts or ends else [])


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_equals_looking_at_every_span(data: st.DataObject) -> None:
    passages = data.draw(st.lists(st.text("abc", max_size=9).map(" ".join), min_size=1, max_size=5))
    tokens = sum(len(passage.split()) for passage in passages)
    rows = st.lists(st.integers(0, tokens - 1), max_size=12) if tokens else st.just([])
    flags = data.draw(st.lists(st.integers(0, 3), min_size=tokens, max_size=tokens))
    live = data.draw(st.none() | st.lists(st.booleans(), min_size=len(passages), max_size=len(passages)))
    keys = word_table(passages, np.zeros((tokens, 2)), flags=np.array(flags, int), live=live)
    banned = data.draw(st.sampled_from([[], sorted(set(keys.ids_N.tolist()))[:1]]))
    starts, ends, longest = data.draw(rows), data.draw(rows), data.draw(st.integers(1, 11))
    assert spans(keys, starts, ends, longest, banned) == plain(keys, starts, ends, longest, banned)


def test_of_a_word_only_the_first_token_counts() -> None:
    # One word of 11 tokens, a mark, a word of 25 tokens.
    flags = [MAY_START, *[0] * 9, MAY_END, 0, MAY_START, *[0] * 23, MAY_END]
    keys = word_table([" ".join("a" * 37)], np.zeros((37, 2)), flags=flags)
    for starts, ends in (([0], []), ([], [10])):
        assert spans(keys, starts, ends, 1) == [(0, 10)]  # at most 21 tokens
    assert spans(keys, [12], [], 4) == spans(keys, [], [36], 4) == []  # 25 tokens, at most 24
    assert spans(keys, [12], [], 5) == spans(keys, [], [36], 5) == [(12, 36)]
    assert spans(keys, [0], [36], 16) == [(0, 10), (12, 36)]  # with the mark 37 tokens, at most 36
    assert spans(keys, [0], [36], 17) == [(0, 10), (0, 36), (12, 36)]
    assert spans(keys, [0], [], 3) == [(0, 10)]


def test_a_text_has_one_name_however_it_is_cut() -> None:
    cuts = [
        ["Thess", "alon", "iki"],
        ["Th", "essaloniki"],
        ["Thessaloniki"],
        ["Thess", "alonik", "i"],
        ["thessaloniki"],
    ]
    pieces = [piece for cut in cuts for piece in cut]
    keys = word_table([" ".join("a" * len(cut)) for cut in cuts], np.zeros((10, 2)))
    flags = np.full(10, MAY_START | MAY_END, np.uint8)
    keys = replace(keys, group_N=np.array([spelling(piece) for piece in pieces], np.uint64), flags_N=flags)
    first, *same, other = names(keys, (0, 2), (3, 4), (5, 5), (6, 8), (9, 9))
    assert [first] * 3 == same
    assert first != other


def test_phrases_of_nothing_but_stop_words_are_left_out() -> None:
    # The first "the" is only the beginning of a word.
    words, both = "the re of the , of Paris", MAY_START | MAY_END
    flags = [MAY_START, MAY_END, both, both, 0, both, both]
    keys = word_table([words], np.zeros((7, 2)), flags=flags)
    stop = [word_group("the"), word_group("of"), word_group("re")]
    every = plain(keys, list(range(7)), [], 10, [])
    naming = {0, 1, 6}
    kept = [(i, j) for i, j in every if naming & set(range(i, j + 1))]
    assert {(2, 2), (2, 3), (2, 5), (3, 5)} <= set(every) - set(kept)
    for starts, ends in ((range(7), []), ([], range(7)), ([0, 3, 6], [3, 5])):
        hits = KeyHits(keys, np.array([*starts], np.int64), np.array([*ends], np.int64))
        found = find_candidates(hits, 10, (), stop)
        pairs = sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))
        assert pairs == [(i, j) for i, j in kept if i in starts or j in ends]
        assert sorted(found.start_S.tolist()) == sorted({start for start, _ in pairs})
        assert sorted(found.end_E.tolist()) == sorted({end for _, end in pairs})


def test_stop_words_are_found_however_they_are_cut() -> None:
    flags = [MAY_START, 0, MAY_END, MAY_START | MAY_END, MAY_START, MAY_END]
    keys = word_table(["a a a a a a"], np.zeros((6, 2)), flags=flags)
    pieces = ["ab", "o", "ve", "the", "ri", "ver"]
    keys = replace(
        keys, group_N=np.array([spelling(piece) for piece in pieces], np.uint64), flags_N=np.array(flags, np.uint8)
    )
    for starts, ends in (([0, 3], []), ([], [2, 3, 5])):
        hits = KeyHits(keys, np.array(starts, np.int64), np.array(ends, np.int64))
        found = find_candidates(hits, 10, (), [spelling("above"), spelling("the"), spelling("ri")])
        pairs = sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))
        assert pairs == [(0, 5), (3, 5), (4, 5)][: 2 if starts else 3]


def test_first_and_last_tokens_are_distinct_and_all_of_them_used() -> None:
    rng = np.random.default_rng(7)
    for _ in range(100):
        hits = random_hits(rng)
        banned = hits.keys.ids_N[:1].tolist() if rng.random() < 0.5 else []
        longest = int(rng.integers(1, 12))
        found = find_candidates(hits, longest, banned)
        pairs = sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))
        assert pairs == plain(hits.keys, hits.start_rows.tolist(), hits.end_rows.tolist(), longest, banned)
        assert sorted(found.start_S.tolist()) == sorted({start for start, _ in pairs})
        assert sorted(found.end_E.tolist()) == sorted({end for _, end in pairs})


def test_names_are_polynomials_of_the_tokens() -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        hits = random_hits(rng)
        found = find_candidates(hits, 10)
        group, spaced = hits.keys.group_N.tolist(), (hits.keys.flags_N & SPACE_BEFORE != 0).tolist()
        for start, end, name in zip(*(x.tolist() for x in (found.start_C, found.end_C, found.key_C)), strict=True):
            total = power = 0
            for row in range(start, end + 1):
                value = group[row] // 256 * 256 + (spaced[row] and row > start) * int(_SPACE)
                total += value * SPELLING_BASE**power
                power += group[row] % 256
            assert name == total % 2**64


def test_equal_phrases_have_equal_names_whatever_the_case_and_the_white_space() -> None:
    keys = word_table(["New York x", "so new  york", "new-york"], np.zeros((8, 2)))
    first, second, joined = names(keys, (0, 1), (4, 5), (6, 7))
    assert first == second != joined


def test_order_length_and_position_make_other_phrases() -> None:
    keys = word_table(["a b a b b", "b a", "a", "a a"], np.zeros((10, 2)))
    different = names(keys, (0, 1), (1, 2), (0, 2), (0, 0), (1, 1), (3, 4), (8, 9), (0, 3))
    assert len(set(different)) == len(different)
    assert names(keys, (0, 1), (1, 2)) == names(keys, (2, 3), (5, 6))


def test_names_of_long_phrases() -> None:
    keys = word_table([" ".join("ab" * 100), " ".join("ab" * 100)], np.zeros((400, 2)))
    one, other, shifted = names(keys, (0, 149), (200, 349), (1, 150))
    assert one == other != shifted
