"""One registry of systems: every row resolves, nothing else knows a kind, and a fifth system is a row."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import quoth
from quoth.config import ModelConfig
from quoth.hub import kind_of, shipped, shipped_folder, shipped_settings
from quoth.model.base import Model
from quoth.registry import DEFAULT, SYSTEMS, System, model_config, named, system_of
from quoth.training.recipes import RECIPES
from quoth.training.settings import Recipe

SOURCES = [*Path(quoth.__file__).parents[1].rglob("*.py")]
OTHER_NAMES = {
    "quoth/hub.py": {"reader"},
    "realm/trained.py": {"reader"},
    "quoth_eval/convert.py": {"reader", "realm"},
    "quoth_eval/tables/command.py": {"reader"},
}
"""By file, words that are no kinds there: a part of a REALM, what transformers calls one, and who is measured."""


@pytest.mark.parametrize("row", SYSTEMS.values(), ids=SYSTEMS)
def test_every_row_resolves(row: System) -> None:
    config = named(row.config)
    assert issubclass(config, ModelConfig)
    assert {each.name: each.default for each in fields(config)}["kind"] == row.kind
    assert system_of(config) is row
    model = named(row.model)
    assert getattr(quoth, model.__name__) is model
    assert issubclass(model, Model) == row.searches
    assert getattr(model, "keys", "") == row.keys
    assert row.answers == bool(config.options)
    for asks, verb in enumerate(("fill", "ask")):
        if row.answers:
            assert getattr(model, verb).options is row.records(asks=bool(asks))
    for name, recipe in (named(row.recipes) if row.recipes else {}).items():
        assert RECIPES[name] is recipe
        assert callable(named(recipe.prepare))
    assert {row.bare, row.reads_with} - {""} <= {*shipped()}
    assert {*row.over} <= SYSTEMS.keys()
    for name in row.published:
        assert isinstance(model_config({"kind": row.kind, **row.published[name]}), config)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_model_has_weights_or_settings(name: str) -> None:
    settings = shipped_settings(name)
    kind = json.loads((shipped_folder(name) / "quoth.json").read_text())["kind"] if settings is None else settings.kind
    assert kind == kind_of(name)
    assert [row.kind for row in SYSTEMS.values() if name in row.shipped] == [kind]


def test_every_recipe_is_in_the_row_of_one_system() -> None:
    tables = [named(row.recipes) for row in SYSTEMS.values() if row.recipes]
    assert len(RECIPES) == sum(map(len, tables))
    assert all(isinstance(each, Recipe) for each in RECIPES.values())


def test_what_has_no_settings_is_of_the_default_kind() -> None:
    assert DEFAULT in SYSTEMS
    assert model_config({}).kind == kind_of("someone/else") == DEFAULT


def compared(source: str) -> list[tuple[int, str]]:
    """The kinds that a module compares something with: ==, in a display, or in a case; with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        values: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            values = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            values = [node.value]
        inner = [each for value in values for each in (getattr(value, "elts", None) or [value])]
        found += [(each.lineno, each.value) for each in inner if isinstance(each, ast.Constant)]
    return [(line, str(value)) for line, value in found if value in SYSTEMS]


def test_a_comparison_with_a_kind_is_seen() -> None:
    source = 'a == "npm"\nb not in ("x", "tagger")\nmatch c:\n    case "zero-ner" | "realm":\n        pass\nd["npm"]\n'
    assert sorted(compared(source)) == [(1, "npm"), (2, "tagger"), (4, "realm"), (4, "zero-ner")]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_no_kind_is_compared_outside_the_registry(path: Path) -> None:
    found = compared(path.read_text(encoding="utf-8"))
    others = next((names for end, names in OTHER_NAMES.items() if path.as_posix().endswith(end)), set())
    assert {kind for _, kind in found} == others, (
        "what differs by kind belongs into the row of quoth.registry, or on the class that it names"
    )


FIFTH = '''
"""A system that answers every question with the titles of the corpus."""

from dataclasses import dataclass
from typing import Literal

from quoth.config import ModelConfig
from quoth.corpus.corpus import listed
from quoth.model.base import Model
from quoth.reader.config import ReaderAskOptions, ReaderFillOptions
from quoth.records import Prediction, Predictions
from quoth.training.settings import LoopConfig, Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoConfig(ModelConfig):
    kind: Literal["echo"] = "echo"
    options = (ReaderFillOptions, ReaderAskOptions)
    mark: str = "!"


class Echo(Model):
    def __init__(self, config, corpora, name):
        self.config, self.corpora, self.name = config, corpora, name

    @classmethod
    def from_pretrained(cls, name="quoth-echo", corpus=None, *, device=None, dtype=None, base=None):
        from quoth.hub import locate

        return cls(locate(str(name), EchoConfig).config, listed(corpus), str(name))

    def ask(self, text, **options):
        passages = [corpus.passage(row) for corpus in self.corpora for row in range(corpus.num_passages)]
        marked = (each.title + self.config.mark for each in passages[: options["top_k"]])
        return Predictions(Prediction(each, 0.0, 1.0, ()) for each in marked)

    fill = ask


RECIPES = {"echo": Recipe("fifth:prepare", "quoth-echo", LoopConfig())}
'''
ROW = """
from quoth.registry import SYSTEMS, System

SYSTEMS["echo"] = System(
    kind="echo",
    label="echo",
    config="fifth:EchoConfig",
    model="fifth:Echo",
    answers=True,
    recipes="fifth:RECIPES",
    settings={"quoth-echo": {"base": "none", "mark": "?"}},
)
"""
USE = """
import quoth
from quoth.cli.main import main
from quoth.hub import kind_of, shipped
from quoth.training.recipes import RECIPES

assert (kind_of("quoth-echo"), kind_of("mine")) == ("echo", "echo")
assert "quoth-echo" in shipped()
assert "echo" in RECIPES
for name, mark in (("quoth-echo", "?"), ("mine", "+")):
    model = quoth.load(name, "c.quoth")
    assert type(model).__name__ == "Echo"
    assert [each.text for each in model.ask("Who?", top_k=1)] == ["Carmen" + mark]
try:
    quoth.NPM.from_pretrained("mine")
except quoth.errors.InputError as error:
    assert "model 'mine' is of kind 'echo'; kind 'npm' is required here" in str(error)
raise SystemExit(main(["ask", "c.quoth", "Who composed it?", "--model", "mine", "--json"]))
"""


def test_a_fifth_system_is_a_folder_and_a_row(tmp_path: Path) -> None:
    quoth.Corpus.create(tmp_path / "c.quoth").add([quoth.Document("c", "Carmen", "An opera by Georges Bizet.")])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "quoth.json").write_text('{"kind": "echo", "base": "none", "mark": "+"}')
    (tmp_path / "fifth.py").write_text(FIFTH)
    (tmp_path / "use.py").write_text(ROW + USE)
    paths = os.pathsep.join([str(Path(quoth.__file__).parents[1]), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "use.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == "Carmen+"


def test_reading_the_registry_imports_no_system() -> None:
    code = "import sys, quoth.registry; print([n for n in sys.modules if n.startswith('quoth.') and n.count('.') > 1])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
