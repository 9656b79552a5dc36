"""`python -m benchmarks` measures, keeps the results in docs/benchmarks.json and makes docs/benchmarks.md of them."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import page, plots
from benchmarks.measure import alone, machine


def main() -> None:
    """Run what is asked for, and write the page."""
    os.environ["QUOTH_DTYPE"] = "fp32"  # as its peers
    given = _arguments()
    data = page.load()
    if given.corpus:
        for path in given.corpus:
            measure_corpus(data, path, given.model, given.blanks, given.queries)
    elif not given.page:
        measure_all(data)
    write(data)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--corpus", type=Path, action="append", help="measure this embedded corpus instead")
    parser.add_argument("--model", default="quoth-mini", help="whose vectors (quoth-mini)")
    parser.add_argument("--blanks", type=int, default=100, help="how many answers to compare with exact search (100)")
    parser.add_argument("--queries", type=int, default=20, help="how many fills to time (20)")
    parser.add_argument("--page", action="store_true", help="measure nothing, only make the page anew")
    return parser.parse_args()


def measure_all(data: dict[str, Any]) -> None:
    """The benchmarks that make their own data."""
    import torch

    from benchmarks import own, search, training

    data["machine"] = f"{machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    data["million"] = alone(search.million, threads=1)
    data["results"] = []
    for result in chain(search.run(), training.run(), own.run()):
        print(result.row(), flush=True)
        data["results"].append(asdict(result))
    page.save(data)


def measure_corpus(data: dict[str, Any], path: Path, model: str, blanks: int, queries: int) -> None:
    """One embedded corpus."""
    from benchmarks import embedded

    facts = asdict(embedded.measure(path, model, blanks, queries))
    for result in page.corpus_results(facts):
        print(result.row(), flush=True)
    page.remember(data, facts)
    page.save(data)


def write(data: dict[str, Any]) -> None:
    """The page and its picture."""
    page.PAGE.write_text(page.text(data), encoding="utf-8")
    if data["corpora"]:
        try:
            plots.draw(data, page.PICTURE)
        except ModuleNotFoundError:
            print(plots.INSTALL, file=sys.stderr)


if __name__ == "__main__":
    main()
