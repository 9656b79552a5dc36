"""`python -m benchmarks` runs every benchmark and writes docs/benchmarks.md."""

from __future__ import annotations

import platform
from itertools import chain
from pathlib import Path

import torch

from benchmarks import search, training

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `python -m benchmarks` on {machine}, {threads} threads, torch {torch}. Each line sets ours beside a named
peer, measured in the same run on the same data; a ratio above 1 says how many times better ours is.

| what | ours | peer | ratio |
|---|---:|---:|---:|
"""


def main() -> None:
    """Run and report."""
    machine = next(
        (line.split(":")[1].strip() for line in _cpu_lines() if line.startswith("model name")), platform.processor()
    )
    page = HEAD.format(machine=machine, threads=torch.get_num_threads(), torch=torch.__version__)
    for result in chain(search.run(), training.run()):
        print(result.row(), flush=True)
        page += result.row() + "\n"
    PAGE.write_text(page, encoding="utf-8")


def _cpu_lines() -> list[str]:
    info = Path("/proc/cpuinfo")
    return info.read_text(encoding="utf-8").splitlines() if info.is_file() else []


if __name__ == "__main__":
    main()
