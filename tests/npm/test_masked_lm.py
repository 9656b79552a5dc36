"""The masked LM's loss, alone (NPM's parametric twin) and as a part of NPM's: plain loops, and what is saved."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from test_trainer import TWIN, base, changed, data, trainer

import quoth
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.datasets.blanks import KINDS, draw_blanks
from quoth.encoders.transformer import load_masked_lm
from quoth.errors import InputError
from quoth.hub import EncoderSource
from quoth.npm.batches import TokenizedDocuments
from quoth.npm.collate import Batch
from quoth.npm.twin import MaskedModel
from quoth.training.recipes import RECIPES, run_recipe
from quoth.training.trainer import Trainer
from tiny import tiny_roberta

__all__ = ["base", "data"]


def step_of(one: Trainer) -> Batch:
    return one.task.batches(0)[0]


@pytest.mark.parametrize("masking", ["spans", "tokens"])
def test_the_twin_hides_every_token_behind_its_own_mask(
    base: Path, data: TokenizedDocuments, tmp_path: Path, masking: str
) -> None:
    """The batch, read back: with the hidden tokens put into their masks, the passages are whole."""
    twin = trainer(base, data, tmp_path, changed(**TWIN, masking=masking, batch_size=8))
    batch, mask = step_of(twin), twin.task.tokenizer.mask_id
    shown = [ids.copy() for ids in batch.inputs]
    assert sum(np.count_nonzero(ids == mask) for ids in shown) == len(batch.hidden_X) > 0
    for (row, at), token in zip(batch.hidden_X2, batch.hidden_X, strict=True):
        shown[row][at] = token
    for ids, p in zip(shown, twin.task.sampler[0], strict=True):
        body = data.ids[data.offsets[p] : data.offsets[p + 1]]
        assert ids[len(ids) - len(body) - 1 : -1].tolist() == body.tolist()
    # The same spans as NPM's of the same seed.
    npm = step_of(trainer(base, data, tmp_path / "npm", changed(masking=masking, batch_size=8)))
    assert len(npm.masks_M2) == len(batch.masks_M2)
    assert set(npm.hidden_X.tolist()) <= set(batch.hidden_X.tolist())


def test_npms_masks_predict_the_first_and_the_last_token(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    batch = step_of(trainer(base, data, tmp_path, changed(mlm_weight=0.2, batch_size=8)))
    np.testing.assert_array_equal(batch.hidden_X2[0::2], batch.masks_M2)
    np.testing.assert_array_equal(batch.hidden_X2[1::2], batch.masks_M2 + np.array([0, 1]))
    clean = batch.inputs[: len(batch.inputs) // 2]
    for query, start, end in zip(batch.positive_query, batch.positive_start, batch.positive_end, strict=True):
        ends = [clean[row][at] for row, at in batch.keys_K2[[start, end]]]
        assert batch.hidden_X[[2 * query, 2 * query + 1]].tolist() == ends


def predicted(one: Trainer, batch: Batch) -> float:
    """The mean of −log p(token) at the masks, by a plain loop in float64 over the weights of BERT's head."""
    head = one.task.masked_lm.cls.predictions
    dense, norm = head.transform.dense, head.transform.LayerNorm
    weight, bias, scale, shift = (w.double().tolist() for w in (dense.weight, dense.bias, norm.weight, norm.bias))
    words, beyond = one.task.masked_lm.bert.embeddings.word_embeddings.weight.double().tolist(), head.bias.tolist()
    total = 0.0
    for (row, at), token in zip(batch.hidden_X2.tolist(), batch.hidden_X.tolist(), strict=True):
        state = one.task.model(input_ids=torch.tensor(batch.inputs[row])[None]).last_hidden_state[0, at].tolist()
        turned = [
            sum(a * b for a, b in zip(line, state, strict=True)) + c for line, c in zip(weight, bias, strict=True)
        ]
        gelu = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in turned]
        mean = sum(gelu) / len(gelu)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in gelu) / len(gelu) + 1e-12)
        normed = [(x - mean) / deviation * s + t for x, s, t in zip(gelu, scale, shift, strict=True)]
        logits = [
            sum(a * b for a, b in zip(word, normed, strict=True)) + c for word, c in zip(words, beyond, strict=True)
        ]
        total += math.log(sum(math.exp(x) for x in logits)) - logits[token]
    return total / len(batch.hidden_X)


@torch.no_grad()
@pytest.mark.parametrize("masking", ["spans", "tokens"])
def test_the_loss_equals_a_plain_loop(base: Path, data: TokenizedDocuments, tmp_path: Path, masking: str) -> None:
    twin = trainer(base, data, tmp_path / "twin", changed(**TWIN, masking=masking))
    batch = step_of(twin)
    assert twin.task.contrast.loss(batch).item() == pytest.approx(predicted(twin, batch), rel=1e-5)
    both = trainer(base, data, tmp_path / "both", changed(mlm_weight=0.3, masking=masking))
    alone = trainer(base, data, tmp_path / "alone", changed(masking=masking))
    batch = step_of(both)
    expected = alone.task.contrast.loss(batch).item() + 0.3 * predicted(both, batch)
    assert both.task.contrast.loss(batch).item() == pytest.approx(expected, rel=1e-5)


def test_what_the_twin_saves_is_what_was_trained(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    for number, settings in enumerate(({}, {"lora_rank": 0}, {"bf16": True})):
        folder = tmp_path / str(number)
        twin = trainer(base, data, folder, changed(**TWIN, **settings))
        before = {name: p.detach().clone() for name, p in twin.parameters.items()}
        twin.run()
        assert all(not torch.equal(before[name], p) for name, p in twin.parameters.items() if "head." in name)
        saved = MaskedModel.from_pretrained(str(folder))
        batch = step_of(twin)
        row, at = batch.hidden_X2[0].tolist()
        ids = torch.tensor(batch.inputs[row])[None]
        with torch.no_grad():
            logits = saved.model(input_ids=ids).logits[0, at]
            trained = twin.task.masked_lm.cls(twin.task.model(input_ids=ids).last_hidden_state)[0, at]
        torch.testing.assert_close(logits, trained, atol=1e-4, rtol=0)
        assert not (folder / "quoth.json").exists()
        scores = saved.word_scores(["The capital of Greece is [MASK]."], ["Athens", "Paris"], {})
        assert np.isfinite(scores).all()


def test_an_npm_with_the_masked_lms_loss_is_saved_as_an_npm(
    base: Path, data: TokenizedDocuments, tmp_path: Path
) -> None:
    trainer(base, data, tmp_path, changed(mlm_weight=0.2)).run()
    assert sorted(path.name for path in tmp_path.glob("adapter*")) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    assert quoth.NPM.from_pretrained(tmp_path).query_vectors("a [MASK]")[0].shape == (32,)


def test_a_roberta_has_its_own_head(tmp_path: Path) -> None:
    source = EncoderSource(str(tiny_roberta(tmp_path)))
    torch.manual_seed(0)
    model, _ = load_masked_lm(source)
    model.save_pretrained(tmp_path)
    torch.manual_seed(1)
    again, _ = load_masked_lm(source)
    assert torch.equal(model.lm_head.dense.weight, again.lm_head.dense.weight)


def test_the_recipe_trains_the_twin_on_npms_settings(base: Path, tmp_path: Path) -> None:
    npm, twin = RECIPES["npm-mini-cpu"].config.to_dict(), RECIPES["mlm-mini-cpu"].config.to_dict()
    assert {key for key in npm if npm[key] != twin[key]} == {"contrast_with", "mlm_weight"}
    docs = tmp_path / "docs.jsonl"
    docs.write_text(json.dumps({"id": "a", "title": "", "text": "Athens is the capital of Greece. " * 80}), "utf-8")
    pages = tmp_path / "pages.jsonl"
    pages.write_text(json.dumps({"id": "b", "title": "", "text": "Corinth is a city of Greece. " * 80}), "utf-8")
    small = {"steps": 2, "batch_size": 2, "lora_rank": 4, "checkpoint_every": 1}
    held_out = {"evaluate_on": str(pages), "evaluate_every": 1, "evaluate_blanks": 4}
    assert run_recipe("mlm-mini-cpu", [docs], tmp_path / "twin", small | held_out, model=str(base))
    lines = (tmp_path / "twin" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [score for line in lines if (score := json.loads(line).get("score")) is not None]
    assert len(scores) == 2
    corpus = Corpus.create(tmp_path / "pages.quoth")
    corpus.add(read_documents(pages))
    blanks = [each for kind in KINDS for each in draw_blanks(list(corpus.passages()), kind, 4, 0)]
    saved = MaskedModel.from_pretrained(str(tmp_path / "twin"))
    right = [saved.fill([blank.text])[0][0].text.casefold() == blank.answer.casefold() for blank in blanks]
    assert sum(right) / len(right) == max(scores)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InputError, match="contrast_with is 'nothing', so there is nothing to learn; set mlm_weight"):
        changed(**{**TWIN, "mlm_weight": 0.0})
    with pytest.raises(InputError, match=r"mlm_weight is -1\.0; it must be 0 or more"):
        changed(mlm_weight=-1.0)
