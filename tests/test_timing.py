"""Clocks of a query's steps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from quoth import timing
from quoth.index.search import search_all
from quoth.timing import STEPS, step, timed
from token_tables import predict_phrases, word_table


def test_an_inner_step_stops_the_outer_ones_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([1.0, 3.0, 7.0, 12.0, 20.0, 30.0])
    monkeypatch.setattr(timing, "perf_counter", lambda: next(ticks))
    with timed() as seconds:
        with step("search"), step("encode"):
            pass
        with step("score"):
            pass
    assert seconds == {"encode": 4.0, "search": 2.0 + 5.0, "expand": 0.0, "score": 10.0, "explain": 0.0}


def test_nobody_listens_afterwards() -> None:
    with timed() as seconds:
        pass
    with step("score"):
        time.sleep(0.001)
    assert not any(seconds.values())
    with pytest.raises(KeyError), timed() as seconds, step("score"):
        raise KeyError
    assert seconds["score"] > 0


def test_a_prediction_is_measured_step_by_step() -> None:
    table: Any = word_table(["x y", "y z"], np.eye(4, 2))
    query = np.array([1.0, 0.5], np.float32)
    with timed() as seconds:
        predict_phrases(search_all([table], query, query, 4), query, query)
    assert [name for name in STEPS if seconds[name] > 0] == ["expand", "score", "explain"]
