"""The state that a table is compared with: a snapshot by its number, or the last one made by a date.

Knows: when the manifests of a corpus were written. Does not know: tables.
"""

from __future__ import annotations

from datetime import date, datetime, time

from quoth.corpus.corpus import Corpus
from quoth.corpus.manifest import manifest_path
from quoth.errors import InputError, brief, few

Since = int | str | date
"""A snapshot's number, or a date, as ISO 8601 writes it."""


def snapshot_at(corpus: Corpus, since: Since) -> int:
    """The snapshot of this number, or the last one that was made at or before a date, in local time; a day without a
    time means its end. Raises InputError naming the dates that there are."""
    if isinstance(since, int) or (isinstance(since, str) and since.isascii() and since.isdecimal()):
        return int(since)
    times = {number: _made(corpus, number) for number in corpus.snapshots()}
    known = f"there are {few([f'{each:%Y-%m-%d %H:%M} (snapshot {number})' for number, each in times.items()], 20)}"
    try:
        until = _until(since)
    except ValueError:
        raise InputError(f"since {brief(since)}; it must be a snapshot or a date such as 2026-03-01; {known}") from None
    before = [number for number, made in times.items() if made <= until]
    if not before:
        raise InputError(f"since {since}: no snapshot is that old; {known}")
    return before[-1]


def _until(since: str | date) -> datetime:
    """The last instant of a day, or an instant. Raises ValueError."""
    if isinstance(since, str):
        since = date.fromisoformat(since) if len(since) == len("2026-03-01") else datetime.fromisoformat(since)
    return (since if isinstance(since, datetime) else datetime.combine(since, time.max)).astimezone()


def _made(corpus: Corpus, snapshot: int) -> datetime:
    return datetime.fromtimestamp(manifest_path(corpus.path, snapshot).stat().st_mtime).astimezone()
