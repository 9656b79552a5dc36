"""The script that fits how much a reader reads, by hand."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from unread_bound import Read, enough, least_bound

from quoth.answers.evidence import Source, Spans
from quoth.records import Passage


def words(*odds: float) -> Read:
    """Passages of a word each, all different, with these odds."""
    sources = [Source(Passage(n, f"d{n}", "", f"word{n}", 0, 5), "c") for n in range(len(odds))]
    return sources, [Spans(np.array([0]), np.array([5]), np.log([each]), math.log(each)) for each in odds]


def test_the_least_bound_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """The sixth passage's 100 is missed if 8, the best of the first five, is more than 1 + 2 exp(bound)."""
    late, early = words(8, 1, 1, 1, 1, 100, 1), words(90, 1, 1, 1, 1, 1, 1)
    assert [len(enough(late, 0.0, bound)[0]) for bound in (1.0, 1.25, 1.26, 1.5)] == [5, 5, 7, 7]
    assert [len(each) for each in enough(early, 0.0, 1.5)] == [5, 5]
    assert least_bound([late, early], 0.0) == 1.5
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  1.0: 50.0% the same, 5.0 passages read",
        "  1.5: 100.0% the same, 6.0 passages read",
    ]
