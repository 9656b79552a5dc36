import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.encoders.boundaries import BREAK_BEFORE, MAY_END, MAY_START, SPACE_BEFORE
from quoth.predictors.candidates import _BASE, _SPACE, find_candidates
from quoth.retrieval.keys import TokenHits, TokenKeys
from token_tables import word_table


def spans(keys: TokenKeys, starts: list[int], ends: list[int], longest: int, banned: list[int] | None = None):
    hits = TokenHits(keys, np.array(starts, np.int64), np.array(ends, np.int64))
    found = find_candidates(hits, longest, banned or [])
    return sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))


def random_hits(rng: np.random.Generator) -> TokenHits:
    """Overlapping hits in passages of all lengths, some deleted, some tokens no border of a phrase."""
    passages = [" ".join(rng.choice(["a", "b", "B", "c"], rng.integers(0, 40))) for _ in range(rng.integers(1, 12))]
    tokens = sum(len(passage.split()) for passage in passages)
    flags = np.array(rng.choice([3, 3, 3, 1, 2, 0], tokens), int) + BREAK_BEFORE * (rng.random(tokens) < 0.2)
    live = rng.random(len(passages)) < 0.8 if rng.random() < 0.5 else None
    keys = word_table(passages, np.zeros((tokens, 2)), flags=flags, live=live)
    starts, ends = (rng.integers(0, tokens, rng.integers(0, 60) if tokens else 0) for _ in range(2))
    return TokenHits(keys, starts, ends)


def plain(keys: TokenKeys, starts: list[int], ends: list[int], longest: int, banned: list[int]):
    found = []
    for p in range(len(keys.passage_rows_P)):
        if keys.live_P is not None and not keys.live_P[p]:
            continue
        first, stop = int(keys.offsets_P1[p]), int(keys.offsets_P1[p + 1])
        for i in range(first, stop):
            for j in range(i, min(stop, i + longest)):
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


def names(keys: TokenKeys, *rows: tuple[int, int]) -> list[int]:
    """Names of phrases, which are the same whether their first or their last token was hit."""
    found = []
    for first, last in rows:
        pair = [
            find_candidates(TokenHits(keys, np.array(starts, np.int64), np.array(ends, np.int64)), last - first + 1)
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
            later = [group[row] + spaced[row] * int(_SPACE) for row in range(start + 1, end + 1)]
            terms = [value * int(_BASE) ** power for power, value in enumerate([group[start], *later])]
            assert name == sum(terms) % 2**64


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
