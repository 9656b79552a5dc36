"""Which files of src a warm call enters: how many, and over how many edges from file to file.

    python scripts/walk.py          the counts of a default fill, Reader.ask and index
    python scripts/walk.py --edges  and every edge, with the function that is entered

A file counts when one of its functions, methods or generators is called; an edge leads from the file of the nearest
caller inside src to the file of what is called. Calls in other threads count too, but their first edge is not
known. The call is made once before it is counted, so that loading and importing are over.
"""

from __future__ import annotations

import dis
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import quoth

ROOT = Path(quoth.__file__).parents[1]
SAMPLES = Path(__file__).resolve().parents[1] / "samples"
BLANK = "The composer of the opera Carmen is [MASK]."
QUESTION = "Who wrote War and Peace?"
DOCUMENTS = ("carmen", "georges-bizet", "france", "greece")


@dataclass
class Walk:
    """The files that were entered, and by edge the function that was entered first."""

    files: set[str] = field(default_factory=set)
    edges: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, int]:
        """The number of files, and of edges."""
        return len(self.files), len(self.edges)

    def enter(self, code: CodeType, caller: FrameType | None) -> None:
        """Count the start of a function, which `caller` called."""
        to = _file(code)
        if to is None:
            return
        self.files.add(to)
        while caller is not None and _file(caller.f_code) is None:
            caller = caller.f_back
        origin = None if caller is None else _file(caller.f_code)
        if origin is not None and origin != to:
            self.edges.setdefault((origin, to), code.co_qualname)


def _file(code: CodeType) -> str | None:
    """A code object's file inside src; None for another file, and for a module that is being imported."""
    path = code.co_filename
    return path[len(str(ROOT)) + 1 :] if path.startswith(f"{ROOT}/") and code.co_name != "<module>" else None


def walk(call: Callable[[], Any]) -> Walk:
    """What a call enters, the second time it is made."""
    call()
    found = Walk()
    if sys.version_info >= (3, 12):
        entering = _monitored(found)
    else:
        entering = _profiled(found)
    with entering:
        call()
    return found


if sys.version_info >= (3, 12):

    @contextmanager
    def _monitored(found: Walk) -> Iterator[None]:
        monitoring = sys.monitoring
        tool, started = monitoring.PROFILER_ID, monitoring.events.PY_START

        def entered(code: CodeType, offset: int) -> Any:
            if _file(code) is None:
                return monitoring.DISABLE
            found.enter(code, sys._getframe(1).f_back)
            return None

        monitoring.use_tool_id(tool, "walk")
        monitoring.register_callback(tool, started, entered)
        monitoring.set_events(tool, started)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, started, None)
            monitoring.free_tool_id(tool)
            monitoring.restart_events()


@contextmanager
def _profiled(found: Walk) -> Iterator[None]:
    def entered(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_lasti <= _start(frame.f_code):  # not a generator that is resumed
            found.enter(frame.f_code, frame.f_back)

    before = sys.getprofile()
    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


@cache
def _start(code: CodeType) -> int:
    """The offset of the instruction that a call begins with; what makes cells and generators comes before it."""
    resumes = (each for each in dis.get_instructions(code) if each.opname == "RESUME" and each.arg == 0)
    return next(resumes).offset


def documents() -> list[quoth.Document]:
    """Some articles of the bundled atlas."""
    lines = (SAMPLES / "atlas-2016.jsonl").read_text(encoding="utf-8").splitlines()
    return [quoth.Document(**record) for record in map(json.loads, lines) if record["id"] in DOCUMENTS]


def walks() -> dict[str, Walk]:
    """The three walks: a default fill, a question to a reader, adding documents to a new corpus."""
    with tempfile.TemporaryDirectory(prefix="quoth-walk-") as folder:
        made = iter(range(9))

        def index() -> quoth.Corpus:
            corpus = quoth.Corpus.create(Path(folder) / f"c{next(made)}.quoth")
            corpus.add(documents())
            return corpus

        corpus = index()
        npm, reader = quoth.load("quoth-mini", corpus), quoth.load("quoth-reader", corpus)
        return {
            "fill": walk(lambda: npm.fill(BLANK)),
            "ask": walk(lambda: reader.ask(QUESTION)),
            "index": walk(index),
        }


def main() -> int:
    """Print the counts; with --edges, every edge. The exit code."""
    for name, found in walks().items():
        print("{}: {} files, {} edges".format(name, *found.counts))
        if "--edges" in sys.argv[1:]:
            for (origin, to), function in sorted(found.edges.items()):
                print(f"  {origin} -> {to}: {function}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
