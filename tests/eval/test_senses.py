"""Sense pairs: cosines against a plain computation, the threshold by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from asking import mean

from quoth import NPM
from quoth.errors import InputError
from quoth_eval.errors import wrong_answers
from quoth_eval.harness import evaluate, read_run
from quoth_eval.tasks import senses
from quoth_eval.tasks.senses import Pair, above_threshold, fit_threshold, read_pairs, senses_task, similarities
from tiny import tiny_bert


def test_pairs_are_read(tmp_path: Path) -> None:
    record = {"sentence1": "a bank", "start1": "2", "end1": "6", "sentence2": "the bank", "start2": "4", "end2": "8"}
    file = tmp_path / "pairs.jsonl"
    file.write_text(json.dumps({**record, "label": "True"}) + "\n" + json.dumps({**record, "label": "F"}) + "\n")
    first, second = read_pairs(file)
    assert first == Pair(("a bank", 2, 6), ("the bank", 4, 8), True)
    assert not second.same
    file.write_text('{"sentence1": "x"}\n')
    with pytest.raises(InputError, match=r"pairs\.jsonl:1: not a pair of MCL-WiC"):
        read_pairs(file)


def test_cosines_are_those_of_the_words_mean_vectors(tmp_path: Path) -> None:
    npm = NPM.from_pretrained(tiny_bert(tmp_path / "tiny"))
    texts = ("Paris is the capital of France.", "The raven sat in Paris nevermore.")
    pairs = [Pair((texts[0], 0, 5), (texts[1], 17, 22), True), Pair((texts[0], 13, 20), (texts[1], 4, 9), False)]
    found = similarities(npm.encoder, pairs)
    for cosine, pair in zip(found, pairs, strict=True):
        means = []
        for text, start, end in (pair.first, pair.second):
            (passage,) = npm.encoder.passages([text], [""])
            inside = [start <= a < end for a, _ in passage.tokens.offsets_T2.tolist()]
            means.append(passage.vectors_TD[inside].mean(axis=0))
        a, b = means
        assert cosine == pytest.approx(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), abs=1e-5)
    with pytest.raises(InputError, match="characters 5 to 5 contain no token; mark a word"):
        similarities(npm.encoder, [Pair((texts[0], 5, 5), (texts[1], 0, 3), True)])


def test_the_threshold_is_fitted_on_the_first_half(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cosine = [0.9, 0.2, 0.8, 0.6, 0.95, 0.7, 0.85, 0.1]
    same = [True, False, True, False, True, False, False, False]
    pairs = [Pair((f"{value}", 0, 3), ("a bank", 2, 6), each) for value, each in zip(cosine, same, strict=True)]
    monkeypatch.setattr(senses, "similarities", lambda _, given: np.array([float(each.first[0]) for each in given]))
    # The first half is parted best at 0.8; of the second, 0.95 and 0.85 are above, of which one is wrong.
    assert fit_threshold(np.array(cosine[:4]), np.array(same[:4])) == 0.8
    task, fitted = senses_task(pairs)
    report = evaluate(task, {"m": above_threshold(object(), fitted)}, tmp_path / "run")
    (result,) = report.systems
    assert result.values("accuracy") == [1, 1, 0, 1]
    assert result.rows[0].text == "[0.9]5 / a [bank]"
    cosines = {name: mean(score, "cosine") for name, score in result.by_group("meaning").items()}
    assert cosines == {"same": 0.95, "different": pytest.approx((0.7 + 0.85 + 0.1) / 3)}
    assert read_run(tmp_path / "run") == report
    assert [each.kind for each in wrong_answers(result)] == ["label different taken for same"]
    for few in (pairs[:2], pairs[5:]):
        with pytest.raises(InputError, match=f"{len(few)} pairs; give four or more"):
            senses_task(few)
