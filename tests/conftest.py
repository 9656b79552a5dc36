"""Settings and models that tests share. The machines they run on are noisy, so no example has a deadline.

With QUOTH_TEST_SKIPS=listed, a test that is skipped for another reason than one of `MAY_SKIP` fails the run. With
QUOTH_TEST_QUICK, as `make quick` sets it, one fails after which torch is imported.
"""

from __future__ import annotations

import gc
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from commands import Run

MAY_SKIP = (
    "QUOTH_TEST_TASKS names no folder of tasks",  # published questions, which are nobody's to ship
    "(Retriever|Tool).* (does not|not) support",  # LangChain's tests of what an integration may lack
)
LONGEST = (
    "ray/test_ray",
    "recipes/test_gpu",
    "test_doors",
    "test_site",
    "test_together",
    "index/test_crash",
    "cli/",
    "serve/",
)
"""Files that take longest begin first: at the end both processes have work."""
_skipped: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: nobody looks for garbage in it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        name = item.nodeid.removeprefix("tests/")
        return next((at for at, each in enumerate(LONGEST) if name.startswith(each)), len(LONGEST))

    items.sort(key=place)


def pytest_runtest_teardown() -> None:
    torch = sys.modules.get("torch")
    if torch and "QUOTH_TEST_QUICK" in os.environ:
        pytest.fail("torch was imported; what `make quick` runs does without it")
    if torch and THREADS and torch.get_num_threads() != int(THREADS):
        pytest.fail(f"PyTorch takes {torch.get_num_threads()} threads now, not {THREADS}: later tests add otherwise")


def pytest_runtest_logreport(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not any(re.search(each, reason) for each in MAY_SKIP):
            _skipped.append(f"{report.nodeid}: {reason}")


pytest_collectreport = pytest_runtest_logreport


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped and os.environ.get("QUOTH_TEST_SKIPS") == "listed":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped and os.environ.get("QUOTH_TEST_SKIPS") == "listed":
        terminalreporter.section("skipped, and not listed in tests/conftest.py")
        for each in _skipped:
            terminalreporter.line(each)


os.fsync = os.fstat  # no test cuts the power: `crashes` follows what was flushed, and a kill leaves what was written
THREADS = os.environ.get("OMP_NUM_THREADS", "")
# UMAP would set PyTorch's threads to one for each core, and compiles for longer than it draws a few points.
os.environ.update({"NUMBA_NUM_THREADS": THREADS or "1", "NUMBA_DISABLE_JIT": "1"})
os.environ.setdefault("QUOTH_VECTORS", "0")  # only tests of vectors wait for them
os.environ.setdefault("QUOTH_DTYPE", "fp32")  # what is compared is the same on every processor
settings.register_profile("quoth", deadline=None, max_examples=int(os.environ.get("QUOTH_TEST_EXAMPLES", "25")))
settings.load_profile("quoth")

GOLDEN = Path(__file__).parent / "golden" / "realm"


def converted(folder: Path, *checkpoints: str) -> Path:
    """The model that golden checkpoints make, in a folder of that name."""
    from quoth_eval.convert import convert

    convert([str(GOLDEN / name) for name in checkpoints], folder)
    return folder


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return converted(tmp_path_factory.mktemp("models") / "pretrained", "embedder", "encoder")


@pytest.fixture(scope="module")
def openqa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return converted(tmp_path_factory.mktemp("models") / "openqa", "openqa", "embedder")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit code, standard output, standard error."""
    from quoth.cli.main import main

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a script of the repository in this process: its standard output. A process of its own imports for seconds."""

    def call(path: Path, *arguments: object) -> str:
        monkeypatch.syspath_prepend(path.parent)
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return call
