"""What a type checker of `tests/typing/user_script.py` needs: the names of kinds, the mark of a typed package."""

from __future__ import annotations

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
    assert build["wheel"]["packages"] == [
        "src/quoth",
        "src/quoth_sources",
        "src/quoth_serve",
        "src/quoth_ray",
        "src/quoth_eval",
    ]  # all of its files, this one too


def test_a_model_that_only_searches_says_so_when_it_is_asked() -> None:
    model = object.__new__(quoth.ZeroNER)
    model.name = "quoth-zero-ner"
    for call in (model.ask, model.fill):
        with pytest.raises(InputError, match="quoth-zero-ner finds passages and gives no answers; use search"):
            call("Who composed Carmen?")
