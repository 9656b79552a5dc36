import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_candidates import counted

from quoth.answers.options import ResolvedOptions
from quoth.answers.ranking import TIE, rank
from quoth.errors import InputError
from quoth.index.key_table import KeyHits, KeyTable
from quoth.records import Prediction
from quoth.text.boundaries import MAY_END, MAY_START, SPACE_BEFORE
from token_tables import predict_phrases, word_table

ONE = np.ones(1, np.float32)


def hits(keys: KeyTable, starts: Any, ends: Any) -> KeyHits:
    return KeyHits(keys, np.asarray(starts, np.int64), np.asarray(ends, np.int64))


def rows(*scores: float) -> list[float]:
    return [math.log(score) for score in scores]


def brute_force(parts: list[KeyHits], q: Any, r: Any, options: ResolvedOptions) -> list[tuple[Any, ...]]:
    """(text, log score, probability, [(document, start, end, share)]) by the equations, a span at a time."""
    spans = []
    for part, hit in enumerate(parts):
        keys, c = hit.keys, hit.keys.vectors.c_ND.astype(np.float64)
        for p in range(len(keys.offsets_P1) - 1):
            first, stop = keys.offsets_P1[p], keys.offsets_P1[p + 1]
            for i in range(first, stop):
                for j in range(i, min(stop, i + options.max_phrase_tokens + 20)):
                    if counted(keys, i, j) > options.max_phrase_tokens:
                        break
                    inside = set(keys.ids_N[i : j + 1].tolist())
                    near = i in hit.start_rows or j in hit.end_rows
                    bounded = keys.flags_N[i] & MAY_START and keys.flags_N[j] & MAY_END
                    live = keys.live_P is None or keys.live_P[p]
                    if near and bounded and live and not inside & options.banned_ids:
                        a = c[i] @ q.astype(np.float64) / options.temperature
                        b = c[j] @ r.astype(np.float64) / options.temperature
                        spans.append((part, i, j, math.exp(a), math.exp(b)))
    all_a, all_b = searched_sums(parts, q, r, options, [(part, i, j) for part, i, j, *_ in spans])
    phrases: dict[Any, list[Any]] = {}
    for part, i, j, a, b in spans:
        keys = parts[part].keys
        score = {"sum": a + b, "joint": a * b, "softmax_sum": a / all_a + b / all_b}[options.combine]
        score *= (j - i + 1) ** options.length_exponent
        spaces = [bool(flag & SPACE_BEFORE) for flag in keys.flags_N[i + 1 : j + 1]]
        name = (tuple(keys.group_N[i : j + 1].tolist()), tuple(spaces))
        place = (keys.corpus.name, int(keys.start_N[i]), int(keys.end_N[j]))
        phrases.setdefault(name, []).append((score, place, keys.corpus.text[place[1] : place[2]]))
    total = sum(score for places in phrases.values() for score, _, _ in places)
    ranked = []
    for places in phrases.values():
        score = sum(score for score, _, _ in places)
        places = sorted(places, key=lambda place: -round(math.log(place[0]), 6))
        shares = [(*place, share / total) for share, place, _ in places]
        ranked.append((places[0][2], math.log(score), score / total, shares))
    return sorted(ranked, key=lambda phrase: -round(phrase[1], 6))[: options.top_k]


def searched_sums(
    parts: list[KeyHits], q: Any, r: Any, options: ResolvedOptions, spans: list[tuple[int, int, int]]
) -> tuple[float, float]:
    """What the released code's two softmaxes divide by, a row at a time."""
    all_a = all_b = 0.0
    for part, hit in enumerate(parts):
        keys, c = hit.keys, hit.keys.vectors.c_ND.astype(np.float64)
        firsts, lasts = {i for p, i, _ in spans if p == part}, {j for p, _, j in spans if p == part}
        for p in range(len(keys.offsets_P1) - 1):
            if keys.live_P is not None and not keys.live_P[p]:
                continue
            for row in range(keys.offsets_P1[p], keys.offsets_P1[p + 1]):
                may_start, may_end = keys.flags_N[row] & MAY_START, keys.flags_N[row] & MAY_END
                if hit.restricted or (row in hit.start_rows and may_start) or row in firsts:
                    all_a += math.exp(c[row] @ q.astype(np.float64) / options.temperature)
                if hit.restricted or (row in hit.end_rows and may_end) or row in lasts:
                    all_b += math.exp(c[row] @ r.astype(np.float64) / options.temperature)
    return all_a, all_b


def assert_equal(found: list[Prediction], expected: list[tuple[Any, ...]]) -> None:
    assert [prediction.text for prediction in found] == [" ".join(text.split()) for text, *_ in expected]
    for prediction, (_, score, probability, shares) in zip(found, expected, strict=True):
        assert prediction.log_score == pytest.approx(score, rel=1e-4, abs=1e-5)
        assert prediction.probability == pytest.approx(probability, rel=1e-4)
        assert sum(each.score for each in prediction.evidence) == pytest.approx(prediction.probability)
        assert [(each.corpus, each.start, each.end) for each in prediction.evidence] == [
            (corpus, start, end) for corpus, start, end, _ in shares
        ]
        expected_shares = [share for *_, share in shares]
        assert [each.score for each in prediction.evidence] == pytest.approx(expected_shares, rel=1e-4)


def random_case(rng: np.random.Generator, ties: bool) -> tuple[list[KeyHits], Any, Any]:
    def numbers(*shape: int) -> Any:
        return rng.integers(-1, 2, shape) if ties else rng.standard_normal(shape)

    parts = []
    for part in range(rng.integers(1, 4)):
        passages = []
        for _ in range(rng.integers(1, 6)):
            words = rng.choice(["a", "b", "B", "c", "dd"], rng.integers(0, 9))
            gaps = rng.choice([" ", "  ", "-"], len(words))
            passages.append("".join(word + gap for word, gap in zip(words, gaps, strict=True)).rstrip("- "))
        tokens = sum(len(passage.replace("-", " ").split()) for passage in passages)
        keys = word_table(
            passages,
            numbers(tokens, 5),
            name=f"part{part}",
            flags=np.array(rng.choice([3, 3, 3, 1, 2, 0], tokens), int),
            live=rng.random(len(passages)) < 0.8 if rng.random() < 0.5 else None,
        )
        some = rng.integers(0, tokens, (2, rng.integers(0, 9))) if tokens else np.zeros((2, 0), int)
        parts.append(hits(keys, *some))
    return parts, numbers(5).astype(np.float32), numbers(5).astype(np.float32)


@pytest.mark.parametrize("combine", ["sum", "joint", "softmax_sum"])
@pytest.mark.parametrize("ties", [False, True])
def test_equals_brute_force(combine: Any, ties: bool) -> None:
    rng = np.random.default_rng(len(combine))
    for case in range(120):
        parts, q, r = random_case(rng, ties)
        if case % 2:
            parts = [replace(part, restricted=True) for part in parts]
        ids = np.unique(np.concatenate([part.keys.ids_N for part in parts]))
        options = ResolvedOptions(
            combine=combine,
            top_k=int(rng.choice([1, 3, 1000])),
            temperature=float(rng.choice([1.0, 0.3, 5.0])),
            length_exponent=float(rng.choice([0.0, 0.5, -1.0])),
            banned_ids=frozenset(ids[: rng.integers(0, 2)].tolist()),
            max_phrase_tokens=int(rng.integers(1, 12)),
            max_evidence=1000,
        )
        assert_equal(predict_phrases(parts, q, r, options), brute_force(parts, q, r, options))


def test_values_by_hand() -> None:
    keys = word_table(["New York grew", "so new  york"], rows(2, 3, 1, 1, 4, 5))
    found = predict_phrases([hits(keys, [0, 4], [])], ONE, ONE, ResolvedOptions(combine="sum", max_phrase_tokens=2))
    # a = b = log of the numbers. Spans: New 2+2, New York 2+3, new 4+4, new york 4+5. In all 26.
    assert [(p.text, round(math.exp(p.log_score)), p.probability) for p in found] == [
        ("new york", 14, pytest.approx(14 / 26)),
        ("new", 12, pytest.approx(12 / 26)),
    ]
    best, second = found[0].evidence
    assert (best.score, second.score) == (pytest.approx(9 / 26), pytest.approx(5 / 26))
    assert best.passage == 101
    assert best.context == "so new  york"
    assert best.context[best.start - best.context_start : best.end - best.context_start] == "new  york"
    assert (best.document_id, best.title, best.corpus) == ("corpus-document", "Corpus", "corpus")


@pytest.mark.parametrize(
    ("combine", "x", "x_y", "y"),
    [("joint", 2 * 1, 2 * 4, 3 * 4), ("softmax_sum", 2 / 5 + 1 / 5, 2 / 5 + 4 / 5, 3 / 5 + 4 / 5)],
)
def test_other_combinations_by_hand(combine: Any, x: float, x_y: float, y: float) -> None:
    # As first tokens x and y weigh 2 and 3, as last tokens 1 and 4.
    keys = word_table(["x y"], [[math.log(2), 0.0], [math.log(3), math.log(4)]])
    q, r = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    found = predict_phrases([hits(keys, [0, 1], [])], q, r, ResolvedOptions(combine=combine))
    by_text = {prediction.text: prediction.probability for prediction in found}
    total = x + x_y + y
    assert by_text == pytest.approx({"x": x / total, "x y": x_y / total, "y": y / total})


@pytest.mark.parametrize(
    ("restricted", "all_a", "all_b"),
    [(False, 2 + 4, 3 + 6), (True, 2 + 4 + 10 + 7, 1 + 3 + 6 + 8)],
    ids=["every token", "some passages"],
)
def test_softmax_sum_normalises_over_the_rows_searched(restricted: bool, all_a: float, all_b: float) -> None:
    # exp a of x, y, z, w: 2 4 10 7; exp b: 1 3 6 8. Phrases start at x and y and end at y and z; w is no border.
    # Start hits are x, y and w, end hits z and w. x is banned: it counts as a start all the same. Phrases: y, y z.
    starts, ends, edges = [2, 4, 10, 7], [1, 3, 6, 8], [MAY_START, MAY_START | MAY_END, MAY_END, 0]
    keys = word_table(["x y z w"], np.log(np.stack([starts, ends], axis=1)), flags=edges)
    q, r = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    banned = frozenset([int(keys.ids_N[0])])
    found = predict_phrases(
        [replace(hits(keys, [0, 1, 3], [2, 3]), restricted=restricted)],
        *(q, r, ResolvedOptions(combine="softmax_sum", banned_ids=banned)),
    )
    scores = {each.text: math.exp(each.log_score) for each in found}
    assert scores == pytest.approx({"y": 4 / all_a + 3 / all_b, "y z": 4 / all_a + 6 / all_b})


def test_ties_go_by_first_occurrence_and_share_one_score() -> None:
    later = word_table(["e a"], np.zeros((2, 1)), name="later")
    keys = word_table(["c b", "b c"], np.zeros((4, 1)))
    found = predict_phrases([hits(keys, [3, 2, 1, 0], []), hits(later, [0, 1], [])], ONE, ONE)
    assert [prediction.text for prediction in found] == ["c", "b", "c b", "b c", "e"]
    assert found[0].log_score == found[1].log_score
    assert [each.passage for each in found[1].evidence] == [100, 101]


def test_ties_are_no_wider_than_the_tolerance() -> None:
    falling = -np.arange(6) * 0.4 * TIE
    which, score = rank(falling, np.array([5, 4, 3, 2, 1, 0]))
    assert which.tolist() == [2, 1, 0, 5, 4, 3]
    np.testing.assert_array_equal(score, falling[[0, 0, 0, 3, 3, 3]])
    assert rank(falling, np.array([5, 4, 3, 2, 1, 0]), 2)[0].tolist() == [2, 1]


def test_far_scores_neither_overflow_nor_vanish() -> None:
    keys = word_table(["a b"], [[3000.0], [-3000.0]])
    found = predict_phrases([hits(keys, [0, 1], [])], ONE, ONE, ResolvedOptions(combine="sum", max_phrase_tokens=1))
    assert [(p.text, p.log_score, p.probability) for p in found] == [
        ("a", pytest.approx(3000 + math.log(2)), 1.0),
        ("b", pytest.approx(-3000 + math.log(2)), 0.0),
    ]


def test_nothing_hit_predicts_nothing() -> None:
    keys = word_table(["a b"], np.zeros((2, 1)))
    assert predict_phrases([], ONE, ONE) == []
    assert predict_phrases([hits(keys, [], [])], ONE, ONE) == []
    dead = word_table(["a b"], np.zeros((2, 1)), live=[False])
    assert predict_phrases([hits(dead, [0], [1])], ONE, ONE) == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("ab", min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4), st.integers(1, 99))
def test_every_token_hit_and_any_top_k(passages: list[str], top_k: int) -> None:
    tokens = sum(len(passage.split()) for passage in passages)
    keys = word_table(passages, np.arange(tokens) % 3)
    options = ResolvedOptions(top_k=top_k, max_evidence=100)
    part = hits(keys, range(tokens), range(tokens))
    found = predict_phrases([part], ONE, ONE, options)
    assert_equal(found, brute_force([part], ONE, ONE, options))
    assert sum(prediction.probability for prediction in found) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"top_k": 0}, "top_k is 0; it must be 1 or more"),
        ({"max_phrase_tokens": -1}, "max_phrase_tokens is -1"),
        ({"temperature": 0.0}, "temperature is 0.0; it must be 1e-06 or more"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"combine": "product"}, "combine is 'product'; it must be one of sum, joint, softmax_sum"),
        ({"length_exponent": math.inf}, "length_exponent is inf"),
    ],
)
def test_bad_options_are_named(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ResolvedOptions(**bad)
