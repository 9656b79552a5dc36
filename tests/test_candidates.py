import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.encoders.boundaries import MAY_END, MAY_START
from quoth.predictors.candidates import find_candidates
from quoth.retrieval.keys import TokenHits, TokenKeys
from token_tables import word_table


def spans(keys: TokenKeys, starts: list[int], ends: list[int], longest: int, banned: list[int] | None = None):
    hits = TokenHits(keys, np.array(starts, np.int64), np.array(ends, np.int64))
    found = find_candidates(hits, longest, banned or [])
    return sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True))


def plain(keys: TokenKeys, starts: list[int], ends: list[int], longest: int, banned: list[int]):
    found = []
    for p in range(len(keys.passage_rows_P)):
        if keys.live_P is not None and not keys.live_P[p]:
            continue
        first, stop = int(keys.offsets_P1[p]), int(keys.offsets_P1[p + 1])
        for i in range(first, stop):
            for j in range(i, min(stop, i + longest)):
                bounded = keys.flags_N[i] & MAY_START and keys.flags_N[j] & MAY_END
                if (i in starts or j in ends) and bounded and not set(keys.ids_N[i : j + 1]) & set(banned):
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
