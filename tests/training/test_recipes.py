"""Recipes: from files to a saved model, settings, the cache of tokenized text, what is held out."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from test_trainer import CONFIG, DOCUMENTS, stop_at
from transformers import AutoTokenizer

import quoth
from quoth.cli.main import main
from quoth.corpus.documents import read_documents
from quoth.errors import InputError, LockedError
from quoth.hub import locate
from quoth.npm import recipe as npm_recipe
from quoth.npm.batches import TokenizedDocuments, tokenize_documents
from quoth.npm.config import NPMConfig
from quoth.npm.task import NPMTask
from quoth.records import Document
from quoth.storage import WriterLock
from quoth.text.tokenizer import TextTokenizer
from quoth.training.distributed import World
from quoth.training.recipes import RECIPES, run_recipe
from quoth.training.run import without
from quoth.training.settings import with_overrides
from quoth.training.trainer import Progress, Step, Trainer
from tiny import tiny_bert, tiny_npm, tiny_roberta


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_npm(tmp_path_factory.mktemp("tiny"), [document.text for document in DOCUMENTS])


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("docs") / "docs.jsonl"
    records = ({"id": d.id, "title": d.title, "text": d.text} for d in DOCUMENTS)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


@pytest.fixture
def recipe(base: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(RECIPES, "tiny", replace(RECIPES["npm-mini-cpu"], model=str(base), config=CONFIG))
    return "tiny"


def test_a_recipe_runs_and_names_its_base(recipe: str, base: Path, docs: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []

    def preparing(*stage: Any) -> None:
        told.append(stage)

    run_recipe(recipe, [str(docs)], tmp_path, {"steps": "1", "masking": "tokens"}, preparing=preparing)
    assert told == [
        ("tokenizing documents", 0, None),
        ("tokenizing documents", 5, None),
        ("training", 0, 1),
        ("training", 0, 1),
    ]
    npm = quoth.NPM.from_pretrained(tmp_path)
    assert npm.single
    assert npm.config.base == str(base)
    told.clear()
    run_recipe(recipe, [str(docs)], tmp_path, {"steps": "1", "masking": "tokens"}, preparing=preparing)
    assert told == [("training", 0, 1), ("training", 1, 1)]


def test_the_command_names_every_recipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out
    for name, recipe in RECIPES.items():
        assert name in shown
        assert recipe.config == type(recipe.config).from_dict(recipe.config.to_dict())


def test_dropout_and_clip_are_the_released_codes_in_the_papers_recipe_alone() -> None:
    for name, recipe in RECIPES.items():
        if name in ("reader", "tagger"):
            continue
        expected = (0.1, 2.0) if name == "npm-large" else (0.1 if name.endswith("-paper") else 0.0, 1.0)
        assert (recipe.config.dropout, recipe.config.max_grad_norm) == expected


def test_the_papers_recipe_fills_inputs_of_256_tokens(tmp_path: Path) -> None:
    config = RECIPES["npm-large"].config
    hf = AutoTokenizer.from_pretrained(tiny_roberta(tmp_path))
    tokenizer = TextTokenizer(
        hf, num_masks=2, max_tokens=locate("FacebookAI/roberta-large", NPMConfig).config.max_tokens
    )
    long = Document("long", "Greece", " ".join(DOCUMENTS[0].text for _ in range(20)))
    data = tokenize_documents([long], tokenizer, splitter=config.splitter, max_passage_tokens=config.max_passage_tokens)
    lengths = np.diff(data.offsets) + np.diff(data.title_offsets) + 2
    assert config.batch_size * 256 == 131_072
    assert set(lengths[:-1].tolist()) == {256}
    assert lengths[-1] <= 256


def test_the_splitter_is_a_setting(recipe: str, docs: Path, tmp_path: Path) -> None:
    counts = []
    for splitter in ("words:20", "filled"):
        run_recipe(recipe, [str(docs)], tmp_path / splitter, {"steps": "1", "splitter": splitter})
        counts.append(len(np.load(tmp_path / splitter / "tokens" / "document.npy")))
    assert counts[0] > counts[1] >= len(DOCUMENTS)


def test_adapt_goes_on_from_the_shipped_adapter(docs: Path, tmp_path: Path) -> None:
    settings = {"steps": "1", "batch_size": "2", "mini_batch_size": "1", "learning_rate": "0"}
    run_recipe("adapt", [str(docs)], tmp_path, settings)
    shipped, adapted = quoth.NPM.from_pretrained("quoth-mini"), quoth.NPM.from_pretrained(tmp_path)
    assert adapted.config == shipped.config
    for mine, theirs in zip(adapted.query_vectors("a [MASK]"), shipped.query_vectors("a [MASK]"), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


def test_two_runs_never_share_a_folder(recipe: str, docs: Path, tmp_path: Path) -> None:
    with WriterLock(tmp_path / "writer.lock"), pytest.raises(LockedError, match="is writing; wait for it"):
        run_recipe(recipe, [str(docs)], tmp_path, {"steps": "1"})


def test_broken_off_tokenizing_is_not_taken_for_finished(
    recipe: str, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(**overrides: str) -> TokenizedDocuments:
        run_recipe(recipe, [str(docs)], tmp_path, overrides)
        return used[-1]

    used: list[TokenizedDocuments] = []
    monkeypatch.setattr(Trainer, "__init__", lambda self, task, *rest: used.append(task.data))
    monkeypatch.setattr(Trainer, "run", lambda self, *rest: True)
    monkeypatch.setattr(Trainer, "step", 0, raising=False)
    everything = run()
    with monkeypatch.context() as patch:
        patch.setattr(npm_recipe, "tokenize_documents", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(num_documents="2")
        assert run().num_passages == everything.num_passages
    with monkeypatch.context() as patch:
        patch.setattr("quoth.npm.batches.publish_directory", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(num_documents="2")
    assert run().num_passages == everything.num_passages
    assert run(num_documents="2").num_passages < everything.num_passages
    assert len(set(run(num_documents="2").document.tolist())) == 2
    text = docs.read_text(encoding="utf-8")
    try:
        docs.write_text(text.splitlines(keepends=True)[0], encoding="utf-8")
        os.utime(docs, (time.time(), time.time() + 5))
        assert run(num_documents="2").num_passages < everything.num_passages / 2
    finally:
        docs.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "inputs", "settings"),
    [
        ("tiny", "nowhere.jsonl", {}),
        ("tiny", "broken.jsonl", {}),
        ("tiny", "docs.jsonl", {"exclude": "nowhere.jsonl"}),
        ("tiny", "docs.jsonl", {"splitter": "fixed:100000", "mask_ratio": "0.15", "warm_start": "nowhere"}),
        ("reader", "broken.jsonl", {}),
        ("reader", "docs.jsonl:-1", {}),
        ("tagger", "nowhere.conll", {}),
        ("realm-ict", "broken.jsonl", {}),
        ("realm-qa", "docs.jsonl", {}),
    ],
)
def test_a_refusal_leaves_nothing_behind(
    recipe: str, docs: Path, tmp_path: Path, name: str, inputs: str, settings: dict[str, str]
) -> None:
    (tmp_path / "broken.jsonl").write_text(docs.read_text("utf-8") + "{broken\n", encoding="utf-8")
    file = docs if inputs == "docs.jsonl" else tmp_path / inputs
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for output in (tmp_path / "new" / "model", tmp_path / "mine"):
        with pytest.raises(InputError):
            run_recipe(name, [str(file)], output, settings)
    assert sorted(os.listdir(tmp_path)) == ["broken.jsonl", "mine"]
    assert os.listdir(tmp_path / "mine") == ["notes.txt"]


def test_unknown_names_and_values_are_refused(recipe: str, docs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown recipe 'x'; it must be one of .*tiny"):
        run_recipe("x", [str(docs)], tmp_path, {})
    for overrides, message in [
        ({"stepz": "3"}, "unknown setting 'stepz'; it must be one of steps, "),
        ({"steps": "many"}, "steps is 'many'; it must be a whole number"),
        ({"steps": "0"}, "steps is 0; it must be 1 or more"),
        ({"batch_size": "1"}, "batch_size is 1; it must be 2 or more"),
        ({"lora_rank": "-1"}, "lora_rank is -1; it must be 0 or more"),
        ({"learning_rate": "nan"}, "learning_rate is nan; it must be a finite number"),
        ({"masking": "words"}, "masking is 'words'; it must be one of spans, tokens"),
        ({"bf16": "yes"}, "bf16 is 'yes'; it must be true or false"),
    ]:
        with pytest.raises(InputError, match=message):
            run_recipe(recipe, [str(docs)], tmp_path, overrides)
    assert not list(tmp_path.iterdir())


def test_settings_are_read_as_their_types() -> None:
    texts = {"steps": "7", "learning_rate": "3e-4", "bf16": "True", "masking": "tokens", "exclude": "x"}
    config = with_overrides(CONFIG, texts)
    assert (config.steps, config.learning_rate, config.bf16, config.masking, config.exclude) == (
        7,
        3e-4,
        True,
        "tokens",
        "x",
    )
    assert config.batch_size == CONFIG.batch_size


def test_held_out_ids_and_titles_are_left_out(recipe: str, docs: Path, tmp_path: Path) -> None:
    listing = tmp_path / "heldout.jsonl"
    lines = [
        {"id": "Greece", "title": "no such title"},
        {"id": 17, "title": "FRANCE", "text": "a\u2028b\x85c"},
        {"title": ""},
    ]
    records = [json.dumps(line, ensure_ascii=False) for line in lines[:2]]
    listing.write_text("\n".join(records) + "\n\n", encoding="utf-8")
    kept = list(
        without([*read_documents(str(docs)), Document("17", "Seventeen", "x"), Document("n", "", "x")], str(listing))
    )
    assert [d.id for d in kept] == ["Germany", "Korea", "China", "n"]
    run_recipe(recipe, [str(docs)], tmp_path / "run", {"steps": "1", "exclude": str(listing)})
    saved = np.load(tmp_path / "run" / "tokens" / "document.npy")
    assert len(set(saved.tolist())) == 3
    listing.write_text("\n".join([*records, json.dumps(lines[2])]), encoding="utf-8")
    with pytest.raises(InputError, match=r'heldout\.jsonl:3: not a JSON object with an "id" or a "title"'):
        list(without([], str(listing)))
    with pytest.raises(InputError, match=r"nowhere: cannot be read \(No such file or directory\); give a JSONL file"):
        list(without([], "nowhere"))


@pytest.mark.parametrize("settings", [{"evaluate_every": "2"}, {"evaluate_on": "pages.jsonl"}])
def test_evaluation_takes_documents_and_a_number_of_steps(settings: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"set evaluate_on \(.*\) and evaluate_every \(.*\) together"):
        with_overrides(CONFIG, settings)


def test_documents_that_are_evaluated_on_are_never_trained_on(recipe: str, docs: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    lines = docs.read_text(encoding="utf-8").splitlines(keepends=True)
    pages.write_text("".join(lines[:2]), encoding="utf-8")
    settings = {"steps": "4", "evaluate_on": str(pages), "evaluate_every": "2", "evaluate_blanks": "3"}
    told: list[Progress] = []
    run_recipe(recipe, [str(docs)], tmp_path / "run", settings, progress=told.append)
    saved = tmp_path / "run" / "tokens"
    data = TokenizedDocuments.load(saved, (saved / "settings.json").read_text(encoding="utf-8"))
    assert data is not None
    assert len(set(data.document.tolist())) == len(lines) - 2
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    scores = [record["score"] for record in log if "score" in record]
    assert [0 <= score <= 1 for score in scores] == [True, True]
    measured = {now.step: now.measures["score"] for now in told if "score" in now.measures}
    assert measured == {2: scores[0], 4: scores[1]}
    assert quoth.NPM.from_pretrained(tmp_path / "run" / "best").config.num_masks == 2


def test_pages_without_blanks_are_refused_before_the_first_step(recipe: str, docs: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    pages.write_text(json.dumps({"text": "Nothing here recurs."}), encoding="utf-8")
    settings = {"steps": "4", "evaluate_on": str(pages), "evaluate_every": "2"}
    with pytest.raises(InputError, match="no phrase of kind 'any' occurs in two passages of these pages"):
        run_recipe(recipe, [str(docs)], tmp_path / "run", settings)
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_a_stopped_run_can_be_used_and_then_extended(recipe: str, docs: Path, tmp_path: Path) -> None:
    """CONFIG has a checkpoint every 5 steps."""
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, [docs], tmp_path, {"steps": 8}, progress=stop_at(7, KeyboardInterrupt))
    checkpoint = load_file(tmp_path / "checkpoint-5" / "state.safetensors")
    saved = load_file(tmp_path / "adapter_model.safetensors")
    assert len(saved) > 1
    for name, weight in saved.items():
        other = checkpoint[f"parameter.{name.removesuffix('.weight')}.default.weight"]
        assert torch.equal(weight, other.half())
    quoth.NPM.from_pretrained(tmp_path)
    steps: list[int] = []
    for total, last in ((8, [6, 7, 8]), (10, [9, 10]), (10, [])):
        assert run_recipe(recipe, [docs], tmp_path, {"steps": total}, progress=lambda now: steps.append(now.step))
        assert steps == last
        steps.clear()
    with pytest.raises(InputError, match=r"^steps is 9, but .* has a run with 10; use the same settings"):
        run_recipe(recipe, [docs], tmp_path, {"steps": 9})
    with pytest.raises(InputError, match=r"has a run at step 10; resume it, or name another folder"):
        run_recipe(recipe, [docs], tmp_path, {"steps": 20}, resume=False)


def test_ctrl_c_during_a_step_keeps_the_steps_before(
    recipe: str, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backward = NPMTask.backward

    def interrupted(task: NPMTask, step: int) -> Step:
        done = backward(task, step)
        if step == 3:
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patch:
        patch.setattr(NPMTask, "backward", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_recipe(recipe, [docs], tmp_path / "interrupted", {"steps": 6})
    assert [path.name for path in (tmp_path / "interrupted").glob("checkpoint*")] == ["checkpoint-3"]
    for name in ("interrupted", "unbroken"):
        assert run_recipe(recipe, [docs], tmp_path / name, {"steps": 6})
    ours, theirs = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("interrupted", "unbroken"))
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
    logs = [(tmp_path / name / "log.jsonl").read_text(encoding="utf-8") for name in ("interrupted", "unbroken")]
    steps = [[json.loads(line)["step"] for line in log.splitlines()] for log in logs]
    assert steps[0] == steps[1] == [1, 2, 3, 4, 5, 6]


def test_a_slow_run_has_a_checkpoint_before_it_is_due(
    recipe: str, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.training.trainer.SAVE_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, [docs], tmp_path, {"steps": 4}, progress=stop_at(3, KeyboardInterrupt))
    assert [path.name for path in tmp_path.glob("checkpoint*")] == ["checkpoint-2"]
    quoth.NPM.from_pretrained(tmp_path)


def test_the_first_step_is_reported_whatever_is_logged(recipe: str, docs: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    run_recipe(recipe, [docs], tmp_path, {"steps": 5, "log_every": 3}, progress=told.append)
    assert [now.step for now in told] == [1, 3, 5]
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record["step"] for record in log] == [3, 5]
    assert told[0].loss > 0


def test_a_long_wait_is_never_silent(recipe: str, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.training.trainer.SHOW_EVERY", 0.0)
    told: list[int] = []
    run_recipe(recipe, [docs], tmp_path, {"steps": 4, "log_every": 100}, progress=lambda now: told.append(now.step))
    assert told == [1, 2, 3, 4]


def test_the_command_says_what_it_does(
    recipe: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--set", "steps=4", "--set", "log_every=1")
    assert main(["train", recipe, str(docs), "-o", str(tmp_path), *settings]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["tokenizing documents", "training"]
    assert lines[2].startswith("step 1 of 4  loss ")
    assert lines[3].startswith("step 4 of 4  loss ")
    assert lines[4:] == [f"quoth: the model is in {tmp_path}"]


def test_what_a_recipe_cannot_do_is_said(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("adapt", "tagger", "realm-qa"):
        with pytest.raises(
            InputError, match=rf"corpus \(--corpus\) is for realm-pretrain and npm-queries, not for {name}"
        ):
            run_recipe(name, [docs], tmp_path / "m", corpus=tmp_path)
        with pytest.raises(InputError, match=rf"on_bad \(--skip-bad\) is for the recipe reader, not for {name}"):
            run_recipe(name, [docs], tmp_path / "m", on_bad=print)
        assert main(["train", name, str(docs), "-o", str(tmp_path / "m"), "--skip-bad"]) == 2
        assert f"(--skip-bad) is for the recipe reader, not for {name}; leave it out" in capsys.readouterr().err
    monkeypatch.setattr(World, "join", lambda: World(0, 2))
    for name in ("reader", "tagger"):
        with pytest.raises(InputError, match=f"the recipe {name} runs in a single process; start it without torchrun"):
            run_recipe(name, [docs], tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(("name", "bare"), [("npm-mini-cpu", "quoth-mini-base"), ("tagger", "quoth-mini-base")])
def test_a_base_is_refused_that_would_not_be_read(name: str, bare: str, tmp_path: Path) -> None:
    own = tiny_bert(tmp_path / "own")
    (tmp_path / "text").write_text("Ada B-PER\nwrote O\n\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"base '.*' is not read: .*own has a base of its own; .* from {bare}"):
        run_recipe(name, [str(tmp_path / "text")], tmp_path / "m", {}, model=str(own), base=str(tmp_path / "other"))
    assert not (tmp_path / "m").exists()
