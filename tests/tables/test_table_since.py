"""The snapshot that a date means: the last one made by then, by trying every instant."""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

import quoth
from quoth.errors import InputError
from quoth.tables.since import snapshot_at

MADE = [datetime(2026, 2, 1, 9), datetime(2026, 2, 3, 12), datetime(2026, 2, 3, 18), datetime(2026, 2, 5, 0)]


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "c.quoth")
    for number in range(1, len(MADE)):
        made.add([quoth.Document(f"{number}", "", "It says so.")])
    for number, at in enumerate(MADE):
        os.utime(made.path / f"manifest-{number}.json", (at.timestamp(), at.timestamp()))
    return made


def test_the_last_snapshot_by_a_date(corpus: quoth.Corpus) -> None:
    for hours in range(24 * 6):
        when = datetime(2026, 2, 1) + timedelta(hours=hours)
        by_then = [number for number, at in enumerate(MADE) if at <= when]
        by_night = [number for number, at in enumerate(MADE) if at.date() <= when.date()]
        assert snapshot_at(corpus, when.date()) == snapshot_at(corpus, f"{when:%Y-%m-%d}") == by_night[-1]
        if by_then:
            assert snapshot_at(corpus, when) == snapshot_at(corpus, when.isoformat()) == by_then[-1]
            assert snapshot_at(corpus, when.astimezone().isoformat()) == by_then[-1]
    assert [snapshot_at(corpus, each) for each in (2, "2", "20260203")] == [2, 2, 20260203]


def test_other_dates_are_refused_with_those_there_are(corpus: quoth.Corpus) -> None:
    there = r"there are 2026-02-01 09:00 \(snapshot 0\), .* 2026-02-05 00:00 \(snapshot 3\)"
    with pytest.raises(InputError, match=f"since 2026-01-31: no snapshot is that old; {there}"):
        snapshot_at(corpus, "2026-01-31")
    for each in ("yesterday", "2026-02-30", "²", "", "3.5"):
        with pytest.raises(InputError, match=f"it must be a snapshot or a date such as 2026-03-01; {there}"):
            snapshot_at(corpus, each)
    with pytest.raises(InputError, match="no snapshot is that old"):
        snapshot_at(corpus, date(2025, 12, 31))
