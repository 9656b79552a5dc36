"""A user's script passes type checkers, and what it checks is what the models and the wheel have."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import quoth
from quoth.errors import InputError
from quoth.hub import kind_of
from quoth.model import loading
from quoth.registry import SYSTEMS

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tests" / "typing" / "user_script.py"
WRONG = """
import quoth

corpus = quoth.Corpus.open(3)
quoth.load("quoth-mini").fill("Carmen is by [MASK].", top_k="5")
quoth.load("quoth-reader").classify("text", {})
text: str = quoth.load("some-model").ask("Who?")
quoth.Corpsu
"""
"""Five mistakes, in lines 4 to 8."""


def told(checker: str, folder: Path, *scripts: Path) -> str:
    """What a checker prints of scripts that lie outside the project."""
    settings = {"typeCheckingMode": "standard", "include": [*map(str, scripts)], "extraPaths": [str(ROOT / "src")]}
    (folder / "pyright.json").write_text(json.dumps(settings | {"venvPath": str(Path(sys.prefix).parent)}))
    (folder / "mypy.ini").write_text(
        f"[mypy]\nmypy_path = {ROOT / 'src'}\ncache_dir = {ROOT / '.mypy_cache/scripts'}\n"
    )
    quiet = ["--follow-imports=silent", "--ignore-missing-imports"]
    commands = {
        "mypy": ["mypy", "--strict", "--config-file", str(folder / "mypy.ini"), *quiet, *map(str, scripts)],
        "basedpyright": ["basedpyright", "-p", str(folder / "pyright.json"), "--pythonpath", sys.executable],
    }
    done = subprocess.run([sys.executable, "-m", *commands[checker]], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_checkers_accept_a_user_s_script_and_see_the_mistakes_of_another(checker: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: pip install {checker}")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    said = told(checker, tmp_path, SCRIPT, wrong)
    assert SCRIPT.name not in said
    lines = [line for line in range(1, 10) if f"wrong.py:{line}:" in said]
    assert lines == [4, 5, 6, 7, 8], said


def test_every_shipped_name_is_typed_as_its_kind() -> None:
    for kind, names in (
        ("reader", loading.ReaderName),
        ("realm", loading.REALMName),
        ("zero-ner", loading.ZeroNERName),
    ):
        assert {*get_args(names)} == {*SYSTEMS[kind].shipped}
    published = SYSTEMS["npm"].published
    assert {*get_args(loading.NPMName)} == {*SYSTEMS["npm"].shipped, *published}
    assert {kind_of(name) for name in published} == {"npm"}


def test_the_package_says_that_it_is_typed() -> None:
    package = Path(quoth.__file__).parent
    assert (package / "py.typed").is_file()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"]["packages"] == ["src/quoth", "src/quoth_eval"]  # all of its files, this one too


def test_a_model_that_only_searches_says_so_when_it_is_asked() -> None:
    model = object.__new__(quoth.ZeroNER)
    model.name = "quoth-zero-ner"
    for call in (model.ask, model.fill):
        with pytest.raises(InputError, match="quoth-zero-ner finds passages and gives no answers; use search"):
            call("Who composed Carmen?")
