"""Output of the command line: results on standard output, notes and progress on standard error.

Knows terminals and encodings. Does not know what the results mean.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor
from typing import TYPE_CHECKING, Any

from quoth.errors import RecordError
from quoth_sources.source_map import as_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from quoth.records import Hits, Predictions

SHOWN_RECORDS = 3
"""Of each file's broken records."""
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def results() -> "Console":
    """The console of standard output: colour only in a terminal; unencodable characters are replaced."""
    from rich.console import Console

    _tolerate(sys.stdout, "replace")
    return Console(highlight=False, markup=False, emoji=False)


def url_of(host: str, port: int) -> str:
    """The address of a service, with an IPv6 host in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def print_tables(tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> None:
    """Heads and rows on standard output: wrapped to a terminal's width, elsewhere as Markdown, one row per line."""
    from rich import box
    from rich.table import Table

    console = results()
    if not console.is_terminal:
        print("\n".join(markdown(heads, rows) for heads, rows in tables), end="")
        return
    for heads, rows in tables:
        table = Table(box=box.SIMPLE_HEAD)
        for number, head in enumerate(heads):
            table.add_column(head, justify="right" if number else "left", overflow="fold")
        for cells in rows:
            table.add_row(*map(visible, cells))
        console.print(table)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with names in the first column and numbers in the others."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def note(message: str) -> None:
    """One line on standard error."""
    _tolerate(sys.stderr, "backslashreplace")
    print(f"quoth: {visible(' '.join(message.split()))}", file=sys.stderr, flush=True)


def visible(text: str) -> str:
    """`text` with control characters and bidirectional overrides escaped."""
    return _OBEYED.sub(lambda match: ascii(match[0])[1:-1], text)


def read_as(found: "Hits | Predictions") -> dict[str, str]:
    """The corrected question, as JSON; nothing if it was read as given."""
    return {"read_as": found.read_as} if found.read_as else {}


def look_in(found: "Predictions") -> dict[str, Any]:
    """The passage to look in if nothing is sure, as JSON."""
    return {"look_in": as_json(found.look_in)} if found.look_in else {}


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object on one line of standard output, with null for numbers that JSON cannot represent; ASCII if the
    output is not UTF-8."""
    from quoth.corpus.checks import to_json

    unicode_output = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    _tolerate(sys.stdout, "backslashreplace")
    line = to_json(record, ensure_ascii=not unicode_output)
    print(_OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", line), flush=True)


@contextmanager
def counting(label: str, unit: str) -> Iterator[Callable[..., None]]:
    """A progress line on standard error while the block runs, if that is a terminal.

    Yields a function that takes the count so far and, if known, the total.
    """
    with progress_bar(label, unit) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total=None: progress.update(task, completed=done, total=total)


def progress_bar(label: str, unit: str = "", left: bool = False) -> "Progress":
    """A bar on standard error, disabled if that is not a terminal; with `left`, also the remaining time."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, highlight=False)
    columns = [TextColumn(label), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn()]
    columns += [TimeRemainingColumn()] if left else []
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class LeftOut:
    """Counts what is skipped, and reports each file: the file itself, or its first three broken records."""

    def __init__(self) -> None:
        self._files = 0
        self._records = Counter[str]()

    @property
    def count(self) -> int:
        """How many files and records are skipped."""
        return self._files + self._records.total()

    def __call__(self, error: Exception) -> None:
        file, line, remedy = (error.file, error.line, error.remedy) if isinstance(error, RecordError) else ("", 1, "")
        if line:
            self._records[file] += 1
        else:
            self._files += 1
        if not line or self._records[file] <= SHOWN_RECORDS:
            note(f"left out: {str(error).removesuffix(f'; {remedy}')}")

    def report(self) -> None:
        """Report how many were skipped, if any."""
        for file, count in self._records.items():
            if file and count > SHOWN_RECORDS:
                note(f"left out: {file}: {count - SHOWN_RECORDS:,} more")
        files, records = plural(self._files, "file"), plural(self._records.total(), "broken record")
        if self.count:
            note(f"left out {' and '.join([files] * bool(self._files) + [records] * bool(self._records))}")


def plural(count: int, thing: str) -> str:
    """`1 document`, `1,024 documents`."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """A readable time: `under a minute`, `12 minutes`, `3.5 hours`."""
    if seconds < 60:
        return "under a minute"
    minutes = round(seconds / 60)
    return plural(minutes, "minute") if minutes < 100 else f"{seconds / 3600:.1f} hours"


def rounded_down(share: float) -> float:
    """Rounded down to three digits, so that it never exceeds the real value."""
    return floor(1000 * share) / 1000


def size(num_bytes: int) -> str:
    """A readable number of bytes: `512 B`, `1.5 MB`."""
    value = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _tolerate(stream: Any, errors: str) -> None:
    """Make `stream` replace unencodable characters instead of failing."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=errors)
