"""A skip that is not listed fails the run of CI, whichever process met it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """
import pytest

def test_of_one_that_is_not_listed() -> None:
    pytest.skip("not today")

def test_of_one_that_is_listed() -> None:
    pytest.skip("QUOTH_TEST_TASKS names no folder of tasks")
"""


@pytest.mark.parametrize("processes", [[], ["-n", "2", "--dist", "loadfile"]], ids=["one", "two"])
def test_a_skip_that_is_not_listed_fails_the_run(processes: list[str], tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_some.py").write_text(SKIPS)
    (tmp_path / "test_whole.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", *processes]
    environment = os.environ | {"QUOTH_TEST_SKIPS": "listed", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stdout + done.stderr
    said = done.stdout.partition("skipped, and not listed in tests/conftest.py")[2]
    assert "test_of_one_that_is_not_listed: not today" in said
    assert "test_whole.py: could not import 'no_such_module'" in said
    assert "that_is_listed" not in said.replace("one_that_is_not_listed", "")
