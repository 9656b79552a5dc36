"""The scripts of gpu/ on a tiny encoder, on the CPU."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_reading import EXAMPLES, untrained

import quoth
from quoth import REALM
from quoth.corpus.documents import read_documents
from quoth.hub import MINILM, locate
from quoth.npm.batches import ARRAYS, tokenize_documents
from quoth.reader.config import NEVER, ReaderConfig
from quoth.reader.data import ReadingExample, TitledText
from quoth.reader.spans import legal_in
from quoth.reader.training import Inputs, distillation_loss, reading_loss
from quoth.reader.weights import load_reader, trained
from quoth.realm.trained import PARTS
from quoth.storage import read_json
from quoth.text.tokenizer import FastTokenizer, TextTokenizer, pair_arrays
from tiny import tiny_bert, tiny_mpnet, tiny_npm

ROOT = Path(__file__).parents[2]
JOB, ATLAS = ROOT / "recipes" / "gpu" / "job.py", ROOT / "samples" / "atlas-2026.jsonl"
READER_JOB, TABLES = ROOT / "recipes" / "gpu" / "reader_job.py", ROOT / "recipes" / "gpu" / "reader_tables.py"
Script = Callable[..., str]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As recipes/gpu/pack.py makes it, with a tiny base."""
    folder = tmp_path_factory.mktemp("packed")
    tiny_npm(folder / "base", base=str(folder / "base"))
    lines = ATLAS.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "text.jsonl").write_text("".join(lines[:20]), encoding="utf-8")
    return folder


def program(*arguments: object, job: Path = JOB) -> str:
    """Run a job as its user does, in a process of its own."""
    command = [sys.executable, str(job), *map(str, arguments)]
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


def test_an_npm_learns_from_packed_tokens_until_the_time_is_over(tmp_path: Path, script: Script) -> None:
    base, inputs, out = (tmp_path / name for name in ("mpnet", "in", "out"))
    tiny_mpnet(base, positions=300)
    script(ROOT / "recipes" / "gpu" / "pack.py", inputs, ATLAS, "--base", base, "--tokens")
    job = ROOT / "recipes" / "gpu" / "npm_job.py"
    arguments = [inputs, "--work", tmp_path / "work", "--batch", 8, "--rank", 4, "--workers", 1, "--rate", 0.1]
    arguments += ["--base", base, "--out", out, "--masked", 0]

    def steps(most: int, seconds: float) -> int:
        said = program(*arguments, "--steps", most, "--seconds", seconds, job=job)
        return int(json.loads(said.splitlines()[-1])["steps"])

    assert steps(2, 600) == 2
    script(job, out, "--unpack", "--out", tmp_path / "after")
    assert steps(9, 0.1) == 0
    assert [json.loads(line)["clean"] for line in (out / "log.jsonl").read_text().splitlines()] == [True]
    learned = load_file(tmp_path / "after" / "adapter_model.safetensors")
    assert {each.shape[0] for name, each in learned.items() if "lora_A" in name} == {4}
    assert any(each.any() for name, each in learned.items() if "lora_B" in name)  # it begins with zeros
    assert quoth.NPM.from_pretrained(tmp_path / "after").config.similarity_scale == 20
    arguments += ["--groups", 2, "--teacher", tmp_path / "after", "--teacher-base", base]
    assert steps(2, 600) == 2
    assert json.loads((out / "log.jsonl").read_text().splitlines()[-1])["loss"] < 3  # a distance: by contrast more


def test_tokens_are_packed_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "recipes" / "gpu"))
    job = importlib.import_module("npm_job")
    tiny_mpnet(tmp_path / "mpnet")
    tokenizer = TextTokenizer(FastTokenizer(tmp_path / "mpnet"), num_masks=2, max_tokens=256)
    data = tokenize_documents(read_documents(ATLAS), tokenizer)
    job.pack(data, tmp_path / job.TOKENS)
    back = job.unpack(tmp_path / job.TOKENS)
    for name, kind in ARRAYS.items():
        assert getattr(back, name).dtype == kind
        assert np.array_equal(getattr(back, name), getattr(data, name))


QUESTIONS = [
    {"question": f"What is {word}?", "context": f"It is {word}.", "answers": [{"text": word, "start": 6}]}
    for word in ("Athens", "Berlin", "Cairo", "Delhi")
]


def test_a_reader_learns_from_tables_and_from_a_teacher(
    tmp_path: Path, script: Script, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small reader from its files to its folder; its teacher is an MPNet, packed in several parts."""
    base, inputs, work, reading = (tmp_path / name for name in ("mpnet", "in", "work", "train.jsonl"))
    tiny_mpnet(base)
    model = untrained(tiny_bert(tmp_path / "bert"), tmp_path / "reader")
    reading.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS), encoding="utf-8")
    monkeypatch.syspath_prepend(str(ROOT / "recipes" / "gpu"))
    pack = importlib.import_module("pack")
    monkeypatch.setattr(pack, "PART", 2000)
    monkeypatch.setattr(sys, "argv", ["pack.py", str(inputs), "--base", str(base)])
    pack.main()
    assert "and part-1.safetensors" in capsys.readouterr().out
    for name, more in (("train", ("--work", tmp_path / "found")), ("dev", ())):
        said = script(TABLES, "pack", inputs / f"{name}.npz", f"{reading}:1.5", "--model", model, *more)
        assert "4 examples" in said
    own = ["--vocabulary", tmp_path / "bert", "--work", work, "--batch", 2, "--steps", 3]
    script(READER_JOB, inputs, "--base", inputs / "base", "--keep", "teacher", "--out", tmp_path / "kept", *own)
    joined = load_file(work / "base" / "model.safetensors")
    for name, weight in load_file(base / "model.safetensors").items():
        assert torch.allclose(joined[name], weight, atol=float(weight.abs().max()) / 127)
    script(TABLES, "whole", model, "-o", tmp_path / "start")
    taught = ["--base", tmp_path / "bert", "--teacher", inputs / "base", work / "teacher"]
    for rate in (0, 1):  # of which the first steps have a fortieth
        out = ["--out", tmp_path / f"out-{rate}", "--rate", rate]
        said = script(READER_JOB, inputs, *taught, *own, *out, "--start", tmp_path / "start")
        assert json.loads(said.splitlines()[-1])["steps"] == 3
        script(TABLES, "unpack", tmp_path / f"out-{rate}", "-o", tmp_path / f"after-{rate}", "--model", model)
    before, same, after = (
        trained(load_reader(locate(str(each), ReaderConfig))[0]) for each in (model, *sorted(tmp_path.glob("after-*")))
    )
    for name, weight in before.items():
        assert torch.allclose(weight, same[name], atol=0.01), name
    assert not torch.allclose(before["span.ends.weight"], after["span.ends.weight"], atol=1e-3)
    corpus = quoth.Corpus.create(tmp_path / "c")
    corpus.add([quoth.Document("a", "A", "It is Athens.")])
    [answer] = quoth.Reader.from_pretrained(tmp_path / "after-1", corpus=corpus).ask("What is Athens?", top_k=1)
    assert answer.evidence[0].document_id == "a"
    with pytest.raises(SystemExit, match=r"has differences from a base; write it with reader_tables.py whole"):
        script(READER_JOB, inputs, *taught, *own, "--out", tmp_path / "x", "--start", model / "reader.safetensors")


def test_a_batch_of_tables_is_what_the_reader_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids, types, legal and right spans, against the reader's own inputs."""
    monkeypatch.syspath_prepend(str(ROOT / "recipes" / "gpu"))
    job, tables = importlib.import_module("reader_job"), importlib.import_module("reader_tables")
    model = untrained(tiny_bert(tmp_path / "bert"), tmp_path / "reader")
    source = locate(str(model), ReaderConfig)
    _, tokenizer = load_reader(source)
    long = "The raven sat, and said no more. " * 20 + "It was Paris."
    at = long.index("Paris")
    examples = [
        ReadingExample(
            "a", "Who sat?", TitledText("Poe", "The raven sat.\nIt was old."), ((4, 9),), EXAMPLES[0].negatives
        ),
        ReadingExample("b", "Which city was it?", TitledText("", long), ((at, at + 5),)),
        ReadingExample("c", "Why?", TitledText("Poe", "The raven sat."), ()),
    ]
    inputs = Inputs(examples, tokenizer, source.config)
    made = tables.tables(examples, [(0, 2), (2, 3)], inputs)
    frame = np.array([tokenizer.sep_id, tokenizer.pad_id])
    kinds = {"kinds": np.array(["one", "two"]), "shares": np.array([1.0, 1.0])}
    np.savez(tmp_path / "t.npz", **made, **kinds, frame=frame)
    width = source.config.span_width
    stored = job.Tables(tmp_path / "t.npz", width)
    assert stored.questions.tolist() == [[0, 1, 2, 0, 1], [2, 3, 3, 0, 1], [3, 4, 4, 1, 1]]
    seen = [inputs.read(0, examples[0].passage, examples[0].answers), inputs.read(0, examples[0].negatives[0])]
    seen += [inputs.read(number, examples[number].passage, examples[number].answers) for number in (1, 2)]
    batch = stored.batch(np.arange(4))
    arrays = pair_arrays(tokenizer, [each.reading.pair for each in seen])
    length = arrays.ids_BT.shape[1]
    assert np.array_equal(batch.ids_BT[:, :length], arrays.ids_BT)
    assert np.array_equal(batch.seen_BT[:, :length], arrays.mask_BT)
    assert np.array_equal(batch.types_BT[:, :length], arrays.types_BT)
    assert not batch.seen_BT[:, length:].any()
    legal = legal_in([each.reading for each in seen], batch.ids_BT.shape[1], width)
    assert np.array_equal(batch.legal_BTW, legal)
    right = np.zeros_like(legal)
    for row, each in enumerate(seen):
        for first, beyond in each.right_R2.tolist():
            right[row, each.reading.body + first, beyond] = True
    assert right.sum() == 2
    assert np.array_equal(batch.right_BTW, right)

    class Network:
        """The odds of a span are those of its first and last token's ids."""

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def odds(self, batch: Any) -> torch.Tensor:
            ids_BT = batch.ids_BT.float() * self.scale
            last_BTW = torch.nn.functional.pad(ids_BT, (0, width - 1)).unfold(1, width, 1)
            return (ids_BT[:, :, None] + last_BTW).masked_fill(~batch.legal_BTW, NEVER)

    step = np.array([0, 1, 2, 3]), np.array([0, 0, 1, 2])
    options = SimpleNamespace(tokens=64, teacher_weight=1.0, temperature=1.5)
    odds = Network(0.1).odds(batch)
    owner = torch.from_numpy(step[1])
    expected = reading_loss(odds, batch.right_BTW, owner, 3)
    assert job.loss_of(stored, Network(0.1), None, step, options).item() == pytest.approx(expected.item(), rel=1e-5)
    assert job.loss_of(stored, Network(0.1), Network(0.1), step, options).item() == pytest.approx(0, abs=1e-5)
    taught = distillation_loss(odds, Network(0.2).odds(batch), owner, 3, 1.5).item()
    assert job.loss_of(stored, Network(0.1), Network(0.2), step, options).item() == pytest.approx(taught, rel=1e-5)

    order = SimpleNamespace(seed=0, batch=3, unanswerable=1.0, negative_share=0.0)
    readings, owners = next(job.batches(stored, order))
    assert sorted(owners.tolist()) == [0, 1, 2]
    assert sorted(readings.tolist()) == [1, 2, 3]
    order.unanswerable, order.negative_share = 0.0, 1.0
    assert sorted(next(job.batches(stored, order))[0].tolist()) == [0, 1, 2, 3]
    sure = Network(1.0)
    sure.model = torch.nn.Linear(1, 1)  # type: ignore[attr-defined]
    assert job.measured(stored, sure)["two"] == {"sure without an answer": 100.0}
    assert job.measured(stored, sure)["one"]["sure"] == 100.0


def test_words_have_other_numbers_in_another_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "recipes" / "gpu"))
    job = importlib.import_module("reader_job")
    ours, theirs = tiny_bert(tmp_path / "bert"), tiny_mpnet(tmp_path / "mpnet", ["raven the"])
    own, other = (json.loads((each / "tokenizer.json").read_text())["model"]["vocab"] for each in (ours, theirs))
    ids_V = job.same_words(ours, theirs)
    assert ids_V[own["raven"]] == other["raven"] != own["raven"]
    assert ids_V[own["[CLS]"]] == other["<s>"]
    assert ids_V[own["[MASK]"]] == other["<mask>"]
    assert ids_V[own["chamber"]] == other["[UNK]"]


def test_an_epoch_of_tables_takes_the_share_of_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "recipes" / "gpu"))
    job = importlib.import_module("reader_job")
    kinds = [0] * 6 + [1] * 4
    questions = np.array([[n, n + 1, n + 1, kind, n != 9] for n, kind in enumerate(kinds)])
    drawn = job.epochs(SimpleNamespace(shares=[0.5, 2], questions=questions), np.random.default_rng(0))
    first, second = next(drawn).tolist(), next(drawn).tolist()
    assert sorted(each for each in first if each > 5) == [6, 6, 7, 7, 8, 8]
    assert sorted(each for each in first + second if each < 6) == [0, 1, 2, 3, 4, 5]


def test_pack_leaves_out_the_excluded_and_brings_the_base(tmp_path: Path, script: Script) -> None:
    listing = tmp_path / "held.jsonl"
    listing.write_text('{"id": "none", "title": "The Tale of Genji"}\n', encoding="utf-8")
    script(ROOT / "recipes" / "gpu" / "pack.py", tmp_path / "packed", ATLAS, "--exclude", listing)
    titles = {document.title for document in quoth.read_documents(tmp_path / "packed" / "text.jsonl.xz")}
    assert len(titles) == 184
    assert "The Tale of Genji" not in titles
    model = quoth.NPM.from_pretrained(tmp_path / "packed" / "base")
    assert model.config.base == quoth.NPM.from_pretrained("quoth-mini-base").config.base
    size = (tmp_path / "packed" / "base" / "model.safetensors").stat().st_size
    assert size < 24e6
