"""Recipes: from files to a saved model, settings, the cache of tokenized text, what is held out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

import quoth
from quoth.cli import train
from quoth.corpus.documents import read_documents
from quoth.encoders.pretrained import locate
from quoth.errors import InputError, LockedError
from quoth.records import Document
from quoth.storage import WriterLock
from quoth.tokenizers.text import TextTokenizer
from quoth.training import recipes
from quoth.training.batches import TokenizedDocuments, tokenize_documents
from quoth.training.realm_recipes import REALM_RECIPES
from quoth.training.recipes import RECIPES, Recipe, run_recipe, with_overrides, without
from quoth.training.settings import TrainConfig
from quoth.training.trainer import Trainer
from test_trainer import CONFIG, DOCUMENTS
from tiny import tiny_npm, tiny_roberta


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
    monkeypatch.setitem(RECIPES, "tiny", lambda: Recipe(str(base), CONFIG))
    return "tiny"


def test_a_recipe_runs_and_names_its_base(recipe: str, base: Path, docs: Path, tmp_path: Path) -> None:
    tokenized: list[int] = []
    run_recipe(recipe, [str(docs)], tmp_path, {"steps": "1", "masking": "tokens"}, tokenizing=tokenized.append)
    assert tokenized == [5]
    npm = quoth.NPM.from_pretrained(tmp_path)
    assert npm.single
    assert npm.config.base == str(base)
    run_recipe(recipe, [str(docs)], tmp_path, {"steps": "1", "masking": "tokens"}, tokenizing=tokenized.append)
    assert tokenized == [5]


def test_the_command_names_every_recipe() -> None:
    assert train.RECIPES.split(", ") == [*RECIPES, train.READER, train.TAGGER, *REALM_RECIPES]
    for make in RECIPES.values():
        recipe = make()
        assert recipe.train == TrainConfig.from_dict(recipe.train.to_dict())


def test_dropout_and_clip_are_the_released_codes_in_the_papers_recipe_alone() -> None:
    for name, make in RECIPES.items():
        expected = (0.1, 2.0) if name == "npm-large" else (0.0, 1.0)
        assert (make().train.dropout, make().train.max_grad_norm) == expected
    for name, realm in REALM_RECIPES.items():
        assert (realm().train.dropout, realm().train.max_grad_norm) == (0.1 if name.endswith("-paper") else 0.0, 1.0)


def test_the_papers_recipe_fills_inputs_of_256_tokens(tmp_path: Path) -> None:
    config = RECIPES["npm-large"]().train
    hf = AutoTokenizer.from_pretrained(tiny_roberta(tmp_path))
    tokenizer = TextTokenizer(hf, num_masks=2, max_tokens=locate("FacebookAI/roberta-large").config.max_tokens)
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
    everything = run()
    with monkeypatch.context() as patch:
        patch.setattr(recipes, "tokenize_documents", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(num_documents="2")
        assert run().num_passages == everything.num_passages
    with monkeypatch.context() as patch:
        patch.setattr("quoth.training.batches.publish_directory", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
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


def test_unknown_names_and_values_are_refused(recipe: str, docs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recipe 'x'; allowed are .*tiny"):
        run_recipe("x", [str(docs)], tmp_path, {})
    for overrides, message in [
        ({"stepz": "3"}, "unknown setting 'stepz'; allowed are steps, "),
        ({"steps": "many"}, r"steps='many'; allowed is a number \(int\)"),
        ({"steps": "0"}, "steps is 0; it must be 1 or more"),
        ({"batch_size": "1"}, "batch_size is 1; it must be 2 or more"),
        ({"lora_rank": "-1"}, "lora_rank is -1; it must be 0 or more"),
        ({"learning_rate": "nan"}, "learning_rate is nan; it must be a finite number"),
        ({"masking": "words"}, "masking is 'words'; it must be one of spans, tokens"),
        ({"bf16": "yes"}, "bf16='yes'; allowed are true and false"),
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
    with pytest.raises(InputError, match=r'heldout\.jsonl:3: no JSON object with an "id" or a "title"'):
        list(without([], str(listing)))
    with pytest.raises(InputError, match="nowhere: cannot be read, No such file or directory; name a JSONL file"):
        list(without([], "nowhere"))


def test_an_evaluation_wants_something_that_measures(recipe: str, docs: Path, tmp_path: Path) -> None:
    settings = {"evaluate_on": str(docs), "evaluate_every": "2"}
    with pytest.raises(InputError, match="evaluate_every is 2; give what measures the model, evaluate="):
        run_recipe(recipe, [str(docs)], tmp_path / "out", settings)


@pytest.mark.parametrize("settings", [{"evaluate_every": "2"}, {"evaluate_on": "pages.jsonl"}])
def test_evaluation_takes_documents_and_a_number_of_steps(settings: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"set evaluate_on \(.*\) and evaluate_every \(.*\) together"):
        with_overrides(CONFIG, settings)


def test_documents_that_are_evaluated_on_are_never_trained_on(recipe: str, docs: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages.jsonl"
    lines = docs.read_text(encoding="utf-8").splitlines(keepends=True)
    pages.write_text("".join(lines[:2]), encoding="utf-8")
    settings = {"steps": "4", "evaluate_on": str(pages), "evaluate_every": "2", "evaluate_blanks": "3"}
    run_recipe(
        recipe,
        [str(docs)],
        tmp_path / "run",
        settings,
        evaluate=lambda model, config: train._exact_match(model, config, None),
    )
    saved = tmp_path / "run" / "tokens"
    data = TokenizedDocuments.load(saved, (saved / "settings.json").read_text(encoding="utf-8"))
    assert data is not None
    assert len(set(data.document.tolist())) == len(lines) - 2
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [0 <= record["score"] <= 1 for record in log if "score" in record] == [True, True]
    assert quoth.NPM.from_pretrained(tmp_path / "run" / "best").config.num_masks == 2
