"""A small NPM that learns a larger one's vectors: the loss by plain loops, the map, the vocabularies, whole runs."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_trainer import CONFIG, DOCUMENTS, base, data, weights
from transformers import AutoTokenizer

import tiny
from quoth.encoders.transformer import load_base
from quoth.errors import InputError
from quoth.hub import EncoderSource, locate
from quoth.npm.batches import TokenizedDocuments
from quoth.npm.collate import Batch
from quoth.npm.config import NPMConfig
from quoth.storage import atomic_write_json
from quoth.text.tokenizer import TextTokenizer
from quoth.training.recipes import RECIPES, run_recipe
from quoth.training.trainer import Trainer

sys.path.append(str(Path(__file__).parents[2] / "recipes"))
recipe: Any = importlib.import_module("distillation")

__all__ = ["base", "data"]
NPM = NPMConfig(similarity_scale=20.0, normalize=True)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, recipe.RECIPE, recipe.DISTILLATION)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MPNet with more dimensions, whose tokens have other numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny.SHAPE, "hidden_size", 48)
        folder = tiny.tiny_mpnet(tmp_path_factory.mktemp("teacher"), [document.text for document in DOCUMENTS], seed=4)
    atomic_write_json(folder / "quoth.json", NPM.to_dict())
    return folder


def changed(**settings: object) -> Any:
    return recipe.DistillConfig.from_dict(CONFIG.to_dict() | {"mini_batch_size": 0} | settings)


def task(base: Path, data: TokenizedDocuments, teacher: Path, **settings: object) -> Any:
    config = changed(**settings, teacher=str(teacher))
    torch.manual_seed(0)
    model, hf = load_base(locate(str(base), NPMConfig).encoder)
    tokenizer = TextTokenizer(hf, num_masks=2, max_tokens=256)
    return recipe.DistillationTask(model, tokenizer, NPM, data, config)


def states(model: object, inputs: list[list[int]]) -> list[NDArray[np.float64]]:
    """The unit vectors of each input by itself, in float64."""
    found = []
    for ids in inputs:
        with torch.no_grad():
            state = model.double()(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()  # type: ignore[attr-defined]
        found.append(state / np.linalg.norm(state, axis=1, keepdims=True))
    return found


def expected(own: list[NDArray[np.float64]], taught: list[NDArray[np.float64]], batch: Batch) -> float:
    """The loss, by plain loops over tokens, blanks and similarities."""
    tokens = [1 - a @ b for mine, its in zip(own, taught, strict=True) for a, b in zip(mine, its, strict=True)]
    blanks, apart = [], []
    for (row, at), passage in zip(batch.masks_M2.tolist(), batch.masked_out_M, strict=True):
        for place in (at, at + 1):
            blanks.append(1 - own[row][place] @ taught[row][place])
            odds = [
                (20 * own[row][place] @ own[k][t], 20 * taught[row][place] @ taught[k][t])
                for (k, t), other in zip(batch.keys_K2.tolist(), batch.masked_out_K, strict=True)
                if other != passage
            ]
            mine, its = np.array(odds).T
            q, p = (np.exp(x) / np.exp(x).sum() for x in (mine, its))
            apart.append((p * np.log(p / q)).sum())
    return float(np.mean(tokens) + np.mean(blanks) + recipe.SIMILARITY_WEIGHT * np.mean(apart))


@pytest.mark.parametrize("contrast_with", ["clean", "masked"])
def test_the_loss_equals_plain_loops(base: Path, data: TokenizedDocuments, teacher: Path, contrast_with: str) -> None:
    student = task(base, data, teacher, contrast_with=contrast_with, lora_rank=0, batch_size=8)
    assert isinstance(student.contrast, recipe.Distillation)
    [batch] = student.batches(20)
    inputs = [ids.tolist() for ids in batch.inputs]
    vocabulary, its = (AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (base, teacher))
    names = {number: token for token, number in vocabulary.items()}
    special = {"[PAD]": "<pad>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    other = [[its[special.get(names[i], names[i])] for i in ids] for ids in inputs]
    with torch.no_grad():
        loss = student.contrast.loss(batch).item()
    projected = [
        x @ student.contrast._map_ED.double().numpy() for x in states(load_base(EncoderSource(str(teacher)))[0], other)
    ]
    projected = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in projected]
    assert loss == pytest.approx(expected(states(student.model, inputs), projected, batch), rel=1e-5)


def test_a_group_without_blanks_teaches_its_tokens(base: Path, data: TokenizedDocuments, teacher: Path) -> None:
    student = task(base, data, teacher, contrast_with="clean")
    batch = student.batches(20)[0]
    none = replace(batch, masks_M2=batch.masks_M2[:0], masked_out_M=batch.masked_out_M[:0])
    with torch.no_grad():
        assert 0 < student.contrast.loss(none).item() < student.contrast.loss(batch).item()


def test_the_map_keeps_angles_in_the_directions_of_greatest_variance(
    base: Path, data: TokenizedDocuments, teacher: Path
) -> None:
    student = task(base, data, teacher, contrast_with="clean")
    assert isinstance(student.contrast, recipe.Distillation)
    map_ED = student.contrast._map_ED
    assert map_ED.shape == (48, 32)
    torch.testing.assert_close(map_ED.T @ map_ED, torch.eye(32), atol=1e-5, rtol=0)
    batches = [batch for step in range(12) for batch in student.batches(step)]
    x_NE, y_ND = [], []
    for batch in batches:
        whole = slice(0, len(batch.inputs))
        with torch.no_grad():
            c_KE, q_2ME = student.contrast.vectors(batch, whole, student.contrast._of_teacher(batch))
            c_KD, q_2MD = student.contrast.vectors(batch, whole, student.contrast.states(batch, whole))
        x_NE += [c_KE, *q_2ME]
        y_ND += [c_KD, *q_2MD]
    x, y = torch.cat(x_NE).double().numpy(), torch.cat(y_ND).double().numpy()
    kept = np.linalg.svd(x, full_matrices=False)[2][:32]
    mapped = x @ map_ED.double().numpy()
    assert (mapped**2).sum() == pytest.approx(((x @ kept.T) ** 2).sum(), rel=1e-6)
    # No rotation of what is kept is nearer: the product of the two is symmetric and has no negative eigenvalue.
    product = mapped.T @ y
    np.testing.assert_allclose(product, product.T, atol=1e-3)
    assert np.linalg.eigvalsh(product).min() > -1e-6


def test_a_model_that_is_its_own_teacher_has_nothing_to_learn(base: Path, data: TokenizedDocuments) -> None:
    student = task(base, data, base)
    assert isinstance(student.contrast, recipe.Distillation)
    torch.testing.assert_close(student.contrast._map_ED, torch.eye(32), atol=1e-4, rtol=0)
    with torch.no_grad():
        assert student.contrast.loss(student.batches(0)[0]).item() == pytest.approx(0.0, abs=1e-5)


def test_a_run_learns_and_resumes_to_the_same_weights(
    base: Path, data: TokenizedDocuments, teacher: Path, tmp_path: Path
) -> None:
    settings = {"contrast_with": "clean", "batch_size": 8, "groups": 2}

    def run(name: str) -> Trainer:
        config = changed(**settings, teacher=str(teacher))
        return Trainer(task(base, data, teacher, **settings), config, tmp_path / name)

    @torch.no_grad()
    def loss(one: Trainer) -> float:
        batches = (batch for step in range(40, 44) for batch in one.task.batches(step))
        return float(np.mean([one.task.contrast.loss(batch).item() for batch in batches]))

    whole = run("whole")
    before = loss(whole)
    whole.run()
    assert loss(whole) < 0.95 * before
    for _ in range(3):
        run("part").run(seconds=0.0)  # ends after a step
    rest = run("part")
    rest.run()
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(rest)[name], value, atol=1e-5, rtol=0)


def test_the_recipe_takes_a_teacher(base: Path, teacher: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for document in DOCUMENTS:
        (docs / f"{document.id}.txt").write_text(document.text)
    settings = {"steps": 2, "batch_size": 4, "teacher": str(teacher), "max_passage_tokens": 40}
    assert run_recipe(recipe.RECIPE, [docs], tmp_path / "out", settings, model=str(base))
    said = (tmp_path / "out" / "log.jsonl").read_text()
    assert "loss" in said
    other = tiny.tiny_mpnet(tmp_path / "other", [document.text for document in DOCUMENTS], seed=5)
    atomic_write_json(other / "quoth.json", NPM.to_dict())
    with pytest.raises(InputError, match="teacher"):
        run_recipe(
            recipe.RECIPE, [docs], tmp_path / "out", {**settings, "steps": 4, "teacher": str(other)}, model=str(base)
        )


def test_what_cannot_teach_is_refused(base: Path, teacher: Path, tmp_path: Path) -> None:
    _, hf = load_base(EncoderSource(str(base)))
    for other in (replace(NPM, normalize=False), replace(NPM, num_masks=1)):
        with pytest.raises(InputError, match=r"the model that learns .*they must be the same: name another teacher"):
            recipe.Teacher.load(str(teacher), "", other, hf)
    words = AutoTokenizer.from_pretrained(tiny.tiny_bert(tmp_path / "words", ["zebra " * 3, *tiny.TEXT]))
    with pytest.raises(InputError, match=r"teacher 'large' has another vocabulary: \d+ tokens are missing, such as"):
        recipe.ids_of(words, hf, "large")
    for settings in ({"mlm_weight": 1.0}, {"mini_batch_size": 2}):
        with pytest.raises(InputError, match=r"with a teacher, .* must be 0; for larger batches set groups"):
            changed(**settings)
