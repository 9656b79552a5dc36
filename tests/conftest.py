"""Settings and models that tests share. The machines they run on are noisy, so no example has a deadline.

With QUOTH_TEST_SKIPS=listed, a test that is skipped for another reason than one of `MAY_SKIP` fails the run.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Callable
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
_skipped: list[str] = []


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


os.environ.setdefault("QUOTH_DTYPE", "fp32")  # what is compared is the same on every processor
settings.register_profile("quoth", deadline=None)
settings.load_profile("quoth")

GOLDEN = Path(__file__).parent / "golden" / "realm"


def converted(folder: Path, *checkpoints: str) -> Path:
    """The model that golden checkpoints make, in a folder of that name."""
    from quoth.realm.convert import convert

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
