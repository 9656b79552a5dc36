"""The rehearsal of a run with the published weights: tiny networks in the published files, by the hub's names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from safetensors import safe_open

from script_modules import script_module

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "realm"
TABLES = ("npm-table-9", "realm-table-1", "zero-ner-table-1")
TEXTS = {
    "Paris": "Paris is the capital of France. The Seine flows through Paris, and politics is made there.",
    "Berlin": "Berlin is the capital of Germany, good at sports, business and technology.",
}
SIZES = {
    "RobertaForMaskedLM": 1.42e9,
    "RealmEmbedder": 535e6,
    "RealmKnowledgeAugEncoder": 441e6,
    "RealmForOpenQA": 7.91e9,
    "LukeForMaskedLM": 1.1e9,
}
"""The sizes of the published pytorch_model.bin, as the hub lists them; of RoBERTa large for NPM."""


@pytest.fixture(scope="module")
def published() -> ModuleType:
    return script_module("published")


def shapes_in(folder: Path) -> dict[str, tuple[int, ...]]:
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


@pytest.mark.parametrize("part", ["embedder", "encoder", "reader", "openqa"])
def test_names_and_shapes_are_those_of_the_classes_that_saved_them(published: ModuleType, part: str) -> None:
    config = json.loads((GOLDEN / part / "config.json").read_text())
    shapes = published.realm_shapes(config) | ({"block_emb": (10, 8)} if part == "openqa" else {})
    assert shapes == shapes_in(GOLDEN / part)


@pytest.mark.parametrize(("kind", "size"), SIZES.items())
def test_files_are_as_large_as_the_published_ones(published: ModuleType, kind: str, size: float) -> None:
    if kind.startswith("Realm"):
        config = published.realm_config(kind, tiny=False)
        shapes = published.realm_shapes(config)
        if kind == published.TIED:
            del shapes["cls.predictions.decoder.weight"]
        if kind == "RealmForOpenQA":
            shapes["block_emb"] = (published.BLOCKS, config["retriever_proj_size"])
    else:
        own = kind.startswith("Roberta")
        shapes = published.transformers_shapes(
            published.npm_config(False) if own else published.luke_config(kind, False)
        )
        shapes = {name: shape for name, shape in shapes.items() if name not in published.tied(shapes)}
    assert 4 * sum(map(prod, shapes.values())) == pytest.approx(size, rel=0.01)


def test_the_run_by_the_hubs_names_over_tiny_weights(tmp_path: Path) -> None:
    files = {
        "agn/test.csv": 'Class,Title,Description\n"2","Cup final","The team won the match."\n',
        "agn/verbalizers.txt": AGN,
    }
    files |= {"open_qa/nq.test.tsv": "what is the capital of france\t['Paris']\n"}
    files |= {"entityquestions/test/P36.test.json": json.dumps([QUESTION])}
    files |= {"entityquestions/relation_query_templates.json": '{"P36": "What is the capital of [X]?"}'}
    for name, content in files.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(content)
    wiki = tmp_path / "wiki.jsonl"
    wiki.write_text(
        "".join(json.dumps({"id": name, "title": name, "text": text}) + "\n" for name, text in TEXTS.items())
    )
    script = [sys.executable, str(ROOT / "recipes" / "published.py")]
    hub = {**os.environ, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    subprocess.run([*script, "make", str(tmp_path / "cache"), "--tiny"], check=True, env=hub)
    told = ["--data", str(tmp_path / "data"), "--corpus", f"wiki={wiki}", "--limit", "1", "--tables", *TABLES]
    subprocess.run([*script, "run", "-o", str(tmp_path / "out"), *told], check=True, env=hub)
    written = {table: next((tmp_path / "out").glob(f"*/{table}.md")).read_text() for table in TABLES}
    for table, model in zip(TABLES, ("facebook/npm", "realm-nq", "models/luke"), strict=True):
        assert model in written[table], table
    assert not list((tmp_path / "cache").rglob("*.tmp"))


QUESTION: dict[str, Any] = {"question": "What is the capital of France?", "answers": ["Paris"]}
AGN = "politics\nsports\nbusiness\ntechnology\n"
