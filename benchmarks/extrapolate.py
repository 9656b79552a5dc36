"""From the largest measured corpus to a billion tokens and more: computed, never measured. docs/benchmarks.md states
each formula; here they are as code. Knows no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

SIZES = (10**9, 10**11)
HOT_PER_MACHINE, DISK_PER_MACHINE = 200 * 10**9, 8 * 10**12
CORES, BANDWIDTH, READS_PER_SECOND = 64, 200 * 10**9, 10**6
CELL_SHARE = 1 / 16
"""The share of the codes that a search reads, as `python -m benchmarks.cells` found it."""
DOLLARS_PER_HOUR = 4.0
"""The rent of such a machine: assumed."""
SEGMENT_PASSAGES = 100_000

Facts = dict[str, Any]
"""What was measured of a corpus, as docs/benchmarks.json holds it."""


def disk_bytes(facts: Facts) -> int:
    return int(facts["vector_bytes"] + facts["code_bytes"] + facts["column_bytes"])


def hot_bytes(facts: Facts) -> int:
    """What any search may read all over; vectors and columns are read near hits only."""
    return int(facts["code_bytes"])


def embedding_rate(facts: Facts) -> float:
    """Tokens a second on one core, of the largest sample."""
    tokens, seconds = facts["samples"][-1]
    return float(tokens / seconds)


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """Bytes and seconds at `tokens` tokens, from one corpus. `fill` is a dense fill by all cores of all machines
    together; `reads` are the proposed vectors."""

    tokens: int
    disk: float
    hot: float
    by_memory: int
    by_disk: int
    search_one_core: float
    fill_one_core: float
    fill: float
    reads: float
    reading: float
    embed_one_core: float
    embed: float

    @property
    def machines(self) -> int:
        return max(self.by_memory, self.by_disk)

    @property
    def embedding_rent(self) -> float:
        """Dollars for embedding everything once."""
        return self.machines * self.embed / 3600 * DOLLARS_PER_HOUR

    @property
    def monthly_rent(self) -> float:
        """Dollars for 730 hours of these machines."""
        return self.machines * 730 * DOLLARS_PER_HOUR


def extrapolate(facts: Facts, tokens: int) -> Extrapolation:
    """Everything in proportion to the tokens, but for the steps of a fill that only see its 4,096 neighbours."""
    times = tokens / facts["tokens"]
    disk, hot = times * disk_bytes(facts), times * hot_bytes(facts)
    by_memory, by_disk = ceil(hot / HOT_PER_MACHINE), ceil(disk / DISK_PER_MACHINE)
    machines = max(by_memory, by_disk)
    search = times * facts["dense"]["search"]
    rest = facts["dense"]["whole"] - facts["dense"]["search"]
    shared = max(search / CORES, CELL_SHARE * times * facts["code_bytes"] / BANDWIDTH) / machines
    reads = 2.0 * facts["proposed_of_many"]
    embed = tokens / embedding_rate(facts)
    return Extrapolation(
        tokens=tokens,
        disk=disk,
        hot=hot,
        by_memory=by_memory,
        by_disk=by_disk,
        search_one_core=search,
        fill_one_core=rest + search,
        fill=rest + shared,
        reads=reads,
        reading=reads / READS_PER_SECOND / machines,
        embed_one_core=embed,
        embed=embed / CORES / machines,
    )


def largest(corpora: Sequence[Facts]) -> Facts:
    """The corpus with the most tokens; of equal ones that of the default model and precision."""
    default = {"model": "quoth-mini", "precision": "sq8"}
    return max(corpora, key=lambda facts: (facts["tokens"], *(facts[key] == default[key] for key in default)))


def comparable(corpora: Sequence[Facts]) -> list[Facts]:
    """Those with the model and the precision of the largest."""
    first = largest(corpora)
    return [each for each in corpora if all(each[key] == first[key] for key in ("model", "precision"))]


def size(count: float) -> str:
    """Bytes in the largest unit of which there is one."""
    return _scaled(count, (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def duration(seconds: float) -> str:
    """A time in the largest unit of which there is one."""
    units = (("years", 365 * 86400.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
    return _scaled(seconds, units)


def short(count: float) -> str:
    """A number of tokens: 257,555 is 0.26 M."""
    return f"{count / 1e9:.3g} B" if count >= 1e9 else f"{count / 1e6:.2g} M" if count < 1e7 else f"{count / 1e6:.3g} M"


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    name, unit = next((each for each in units if value >= each[1]), units[-1])
    number = value / unit
    return f"{number:.3g} {name}" if number < 1000 else f"{number:,.0f} {name}"
