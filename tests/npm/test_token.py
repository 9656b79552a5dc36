import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from quoth.answers.evidence import propose
from quoth.answers.options import ResolvedOptions
from quoth.errors import InputError
from quoth.index.key_table import KeyHits, KeyTable
from quoth.npm.phrases import ScoredTokens
from quoth.records import Prediction
from token_tables import word_table

ONE = np.ones(1, np.float32)


def hits(keys: KeyTable, rows: Any) -> KeyHits:
    return KeyHits(keys, np.asarray(rows, np.int64), np.zeros(0, np.int64))


def predict(parts: list[KeyHits], q_D: Any, options: ResolvedOptions | None = None) -> list[Prediction]:
    options = options or ResolvedOptions()
    return [each.whole() for each in propose(ScoredTokens(parts, q_D, options), options)]


def test_values_by_hand() -> None:
    keys = word_table(["red blue Red", "blue"], [math.log(x) for x in (1, 4, 2, 9)])
    found = predict([hits(keys, [0, 1, 2])], ONE)
    assert [(p.text, p.probability) for p in found] == [
        ("blue", pytest.approx(4 / 7)),
        ("Red", pytest.approx(3 / 7)),
    ]
    assert [each.score for each in found[1].evidence] == pytest.approx([2 / 7, 1 / 7])
    assert math.exp(found[1].log_score) == pytest.approx(3)


def test_parts_of_words_banned_tokens_and_dead_passages_are_left_out() -> None:
    keys = word_table(["a b c d", "e"], np.zeros((5, 1)), flags=[3, 1, 2, 3, 3], live=[True, False])
    every = hits(keys, range(5))
    assert [p.text for p in predict([every], ONE)] == ["a", "d"]
    parts = predict([every], ONE, ResolvedOptions(whole_words=False))
    assert [p.text for p in parts] == ["a", "b", "c", "d"]
    banned = ResolvedOptions(banned_ids=frozenset([int(keys.ids_N[0])]))
    assert [p.text for p in predict([every], ONE, banned)] == ["d"]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 7.0])
def test_equals_brute_force(temperature: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        parts, q = [], rng.standard_normal(4).astype(np.float32)
        for part in range(2):
            passages = [" ".join(rng.choice(list("abcdAB"), rng.integers(1, 7))) for _ in range(3)]
            tokens = sum(len(passage.split()) for passage in passages)
            keys = word_table(passages, rng.standard_normal((tokens, 4)), name=f"p{part}")
            parts.append(hits(keys, rng.integers(0, tokens, rng.integers(0, 9))))
        expected: dict[str, float] = defaultdict(float)
        for part in parts:
            for row in set(part.start_rows.tolist()):
                word = part.keys.corpus.text[part.keys.start_N[row] : part.keys.end_N[row]].lower()
                c = part.keys.vectors.c_ND[row].astype(np.float64)
                expected[word] += math.exp(c @ q / temperature)
        found = predict(parts, q, ResolvedOptions(temperature=temperature, top_k=100, max_evidence=100))
        ranked = sorted(expected.items(), key=lambda item: -item[1])
        assert [p.text.lower() for p in found] == [word for word, _ in ranked]
        assert [p.log_score for p in found] == pytest.approx([math.log(s) for _, s in ranked], rel=1e-4, abs=1e-5)
        for p in found:
            assert sum(each.score for each in p.evidence) == pytest.approx(p.probability)


def test_nothing_hit_predicts_nothing() -> None:
    keys = word_table(["a"], np.zeros((1, 1)))
    assert predict([], ONE) == []
    assert predict([hits(keys, [])], ONE) == []


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="top_k is 0"):
        ResolvedOptions(top_k=0)
    with pytest.raises(InputError, match="temperature is -1"):
        ResolvedOptions(temperature=-1)
