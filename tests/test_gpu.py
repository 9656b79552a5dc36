"""The scripts of gpu/ on a tiny encoder, on the CPU."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import quoth
from quoth import REALM
from quoth.hub import MINILM
from quoth.realm.trained import PARTS
from quoth.storage import read_json
from tiny import tiny_npm

ROOT = Path(__file__).parents[1]
JOB, ATLAS = ROOT / "gpu" / "job.py", ROOT / "samples" / "atlas-2026.jsonl"
Script = Callable[..., str]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As gpu/pack.py makes it, with a tiny base."""
    folder = tmp_path_factory.mktemp("packed")
    tiny_npm(folder / "base", base=str(folder / "base"))
    lines = ATLAS.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "text.jsonl").write_text("".join(lines[:20]), encoding="utf-8")
    return folder


def program(*arguments: object) -> str:
    """Run a job as its user does, in a process of its own."""
    command = [sys.executable, str(JOB), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_realm_is_trained_in_slices(packed: Path, tmp_path: Path, script: Script) -> None:
    asked = [{"question": "what is the capital of Greece?", "answer": ["Athens"]}]
    asked += [{"question": "where is the Nile?", "answer": ["Egypt", "Africa"]}]
    for name in ("questions-a.jsonl", "cloze-a.jsonl"):
        (packed / name).write_text("".join(json.dumps(each) + "\n" for each in asked), encoding="utf-8")
    arguments = ["realm-mini-spans", "--input", packed, "--work", tmp_path / "work", "--out", tmp_path, "--tiny"]
    assert not json.loads(script(JOB, *arguments, "--seconds", 0).splitlines()[-1])["done"]
    assert json.loads(script(JOB, *arguments).splitlines()[-1])["done"]
    out, folder = tmp_path / "realm-mini-spans", tmp_path / "model"
    found = {file.name for file in out.iterdir()}
    assert found == {"facts.json", "log.jsonl", "quoth.json", "heads.safetensors"} | {f"{part}.zip" for part in PARTS}
    assert [json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()] == [1, 2, 3] * 3
    shutil.copytree(out, folder)
    for part in PARTS:
        shutil.unpack_archive(out / f"{part}.zip", folder / part)
    settings = read_json(folder / "quoth.json")
    assert settings["base"] == MINILM
    (folder / "quoth.json").write_text(json.dumps(settings | {"base": str(packed / "base")}), encoding="utf-8")
    assert REALM.from_pretrained(folder).config.separate_towers


@pytest.mark.parametrize("name", ["npm-mini", "npm-single-mini", "full", "memory-large"])
def test_a_job_runs_and_brings_back_its_files(packed: Path, tmp_path: Path, script: Script, name: str) -> None:
    arguments = [name, "--input", packed, "--work", tmp_path / "work", "--out", tmp_path / "out", "--tiny"]
    facts = json.loads(script(JOB, *arguments, "--seconds", 0 if name == "npm-mini" else 60).splitlines()[-1])
    if name == "npm-mini":
        assert not facts["done"]
        facts = json.loads(program(*arguments).splitlines()[-1])
    found = {file.name for file in (tmp_path / "out" / name).iterdir()}
    if name == "memory-large":
        assert found == {"facts.json"}
        assert facts["loss"] > 0
        return
    assert facts["done"]
    assert {"facts.json", "log.jsonl", "quoth.json"} <= found
    if name != "full":
        assert quoth.NPM.from_pretrained(tmp_path / "out" / name).single == (name == "npm-single-mini")


QUESTIONS = [
    {"question": f"What is {word}?", "context": f"It is {word}.", "answers": [{"text": word, "start": 6}]}
    for word in ("Athens", "Berlin", "Cairo", "Delhi")
]


def test_a_reader_of_another_base_comes_back_whole(
    tmp_path: Path, script: Script, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, reading = tmp_path / "bert", tmp_path / "a.jsonl"
    tiny_npm(base, base=str(base))
    reading.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS), encoding="utf-8")
    monkeypatch.syspath_prepend(str(ROOT / "gpu"))
    pack = importlib.import_module("pack")
    monkeypatch.setattr(pack, "PART", 2000)
    monkeypatch.setattr(sys, "argv", ["pack.py", str(tmp_path / "in"), "--base", str(base), "--reading", str(reading)])
    pack.main()
    assert "and part-1.safetensors" in capsys.readouterr().out
    arguments = ["reader", "--input", tmp_path / "in", "--work", tmp_path / "work", "--out", tmp_path / "out", "--tiny"]
    assert json.loads(script(JOB, *arguments).splitlines()[-1])["done"]
    corpus = quoth.Corpus.create(tmp_path / "c")
    corpus.add([quoth.Document("a", "A", "It is Athens.")])
    [answer] = quoth.Reader.from_pretrained(tmp_path / "out" / "reader", corpus=corpus).ask("What is Athens?", top_k=1)
    assert answer.evidence[0].document_id == "a"
    joined = load_file(tmp_path / "work" / "base" / "model.safetensors")
    for name, weight in load_file(base / "model.safetensors").items():
        assert torch.allclose(joined[name], weight, atol=float(weight.abs().max()) / 127)


@pytest.mark.parametrize("name", ["reader", "reader-mlp"])
def test_a_reader_is_trained_in_slices(packed: Path, tmp_path: Path, script: Script, name: str) -> None:
    (packed / "reading-a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS), encoding="utf-8")
    arguments = [name, "--input", packed, "--work", tmp_path / "work", "--out", tmp_path / "out", "--tiny"]
    assert not json.loads(script(JOB, *arguments, "--seconds", 0).splitlines()[-1])["done"]
    assert json.loads(script(JOB, *arguments).splitlines()[-1])["done"]
    out = tmp_path / "out" / name
    assert {file.name for file in out.iterdir()} == {"facts.json", "log.jsonl", "quoth.json", "reader.safetensors"}
    settings = read_json(out / "quoth.json")
    assert (settings["base"], settings["head"]) == (MINILM, "mlp" if name == "reader-mlp" else "ends")


def test_pack_leaves_out_the_excluded_and_brings_the_base(tmp_path: Path, script: Script) -> None:
    listing = tmp_path / "held.jsonl"
    listing.write_text('{"id": "none", "title": "The Tale of Genji"}\n', encoding="utf-8")
    script(ROOT / "gpu" / "pack.py", tmp_path / "packed", ATLAS, "--exclude", listing)
    titles = {document.title for document in quoth.read_documents(tmp_path / "packed" / "text.jsonl.xz")}
    assert len(titles) == 184
    assert "The Tale of Genji" not in titles
    model = quoth.NPM.from_pretrained(tmp_path / "packed" / "base")
    assert model.config.base == quoth.NPM.from_pretrained("quoth-mini-base").config.base
    size = (tmp_path / "packed" / "base" / "model.safetensors").stat().st_size
    assert size < 24e6
