import math
from typing import Any

import numpy as np
import pytest

from quoth.errors import InputError
from quoth.npm.labels import predict_labels
from token_tables import word_group, word_table

ONE = np.ones(1, np.float32)


def words(*texts: str) -> list[Any]:
    return [np.array([word_group(word) for word in text.split()], np.uint64) for text in texts]


def logs(*values: float) -> list[float]:
    return [math.log(value) for value in values]


def test_values_by_hand() -> None:
    keys = word_table(["good film", "not good", "Bad"], logs(2, 1, 3, 4, 5))
    labels = {"positive": words("good", "great"), "negative": words("bad", "not good", "bad")}
    found = predict_labels([keys], labels, ONE, ONE, 1.0)
    # joint: good 2·2 + 4·4; bad 5·5, not good 3·4.
    assert [(p.text, p.probability) for p in found] == [
        ("negative", pytest.approx(37 / 57)),
        ("positive", pytest.approx(20 / 57)),
    ]
    assert [(each.passage, each.score) for each in found[0].evidence] == [
        (102, pytest.approx(25 / 57)),
        (101, pytest.approx(12 / 57)),
    ]
    assert found[0].log_score == pytest.approx(math.log(37))


def test_single_query_and_temperature_by_hand() -> None:
    keys = word_table(["good film", "not good"], logs(32, 1, 1, 1))
    labels = {"p": words("good", "film good"), "n": words("not")}
    single = predict_labels([keys], labels, ONE)
    assert [math.exp(p.log_score) for p in single] == pytest.approx([2 + 1, 1])


def test_words_stand_whole_inside_one_live_passage() -> None:
    flags = [3, 2, 3, 3, 1, 3]
    keys = word_table(["a b", "b a", "a b"], np.zeros((6, 1)), flags=flags, live=[True, True, False])
    found = predict_labels([keys], {"ab": words("a b"), "b": words("b"), "ba": words("b a")}, ONE, ONE)
    assert [(p.text, len(p.evidence)) for p in found] == [("ab", 1), ("b", 1), ("ba", 1)]


def test_a_label_that_stands_nowhere_has_probability_zero() -> None:
    keys = word_table(["good"], np.zeros((1, 1)))
    labels = {"none": words("awful"), "good": words("good"), "neither": words("so so")}
    found = predict_labels([keys], labels, ONE, ONE)
    assert [(p.text, p.log_score, p.probability) for p in found] == [
        ("good", 0.0, 1.0),
        ("none", -np.inf, 0.0),
        ("neither", -np.inf, 0.0),
    ]
    del labels["good"]
    for tables in ([keys], []):
        with pytest.raises(InputError, match="no word of the labels 'none', 'neither' occurs in the passages"):
            predict_labels(tables, labels, ONE, ONE)


def test_ties_go_by_the_order_of_labels() -> None:
    keys = word_table(["b a"], np.zeros((2, 1)))
    found = predict_labels([keys], {"first": words("a"), "second": words("b")}, ONE, ONE)
    assert [p.text for p in found] == ["first", "second"]


def test_a_word_of_two_labels_counts_for_both() -> None:
    keys = word_table(["a"], np.zeros((1, 1)))
    found = predict_labels([keys], {"x": words("a"), "y": words("a")}, ONE, ONE)
    assert [p.probability for p in found] == [0.5, 0.5]


@pytest.mark.parametrize("single", [False, True])
def test_equals_brute_force(single: bool) -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        tables = []
        for part in range(2):
            passages = [" ".join(rng.choice(list("abcd"), rng.integers(1, 8))) for _ in range(3)]
            tokens = sum(len(passage.split()) for passage in passages)
            flags = rng.choice([3, 3, 1, 2], tokens)
            tables.append(word_table(passages, rng.standard_normal((tokens, 4)), flags=flags, name=f"t{part}"))
        q, r = rng.standard_normal((2, 4)).astype(np.float32)
        texts = {"x": ["a", "b c"], "y": ["b", "a b d", "c"], "z": ["d", "d d"]}
        expected = dict.fromkeys(texts, 0.0)
        for keys in tables:
            c = keys.vectors.c_ND.astype(np.float64)
            for p in range(3):
                for i in range(keys.offsets_P1[p], keys.offsets_P1[p + 1]):
                    for j in range(i, keys.offsets_P1[p + 1]):
                        text = keys.corpus.text[keys.start_N[i] : keys.end_N[j]]
                        for label, verbalizers in texts.items():
                            bounded = keys.flags_N[i] & 1 and keys.flags_N[j] & 2
                            if text in verbalizers and bounded and (i == j or not single):
                                similarity = c[i] @ q + (0 if single else c[j] @ r)
                                expected[label] += math.exp(similarity / 5)
        labels = {label: words(*verbalizers) for label, verbalizers in texts.items()}
        found = predict_labels(tables, labels, q, None if single else r)
        total = sum(expected.values())
        assert [p.text for p in found] == sorted(texts, key=lambda label: -expected[label])
        for p in found:
            assert p.probability == pytest.approx(expected[p.text] / total if total else 0, rel=1e-4)
            assert sum(each.score for each in p.evidence) == pytest.approx(p.probability)


def test_mistakes_are_named() -> None:
    keys = word_table(["a"], np.zeros((1, 1)))
    with pytest.raises(InputError, match="labels is empty"):
        predict_labels([keys], {}, ONE, ONE)
    with pytest.raises(InputError, match="label 'bad' has no word that the model knows; give it another word"):
        predict_labels([keys], {"good": words("a"), "bad": [np.zeros(0, np.uint64)]}, ONE, ONE)
    with pytest.raises(InputError, match="label 'bad' has no word of a single token"):
        predict_labels([keys], {"bad": words("not good")}, ONE)
