"""What is measured on held-out documents, against the same by brute force."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from quoth.corpus.corpus import Corpus
from quoth.hub import locate
from quoth.realm.config import PretrainConfig, REALMConfig
from quoth.realm.recipe import Probe
from quoth.realm.salient import MaskedTexts
from realm_runs import (
    DOCUMENTS,
    Names,
    Snapshot,
    log_likelihoods,
    make_model,
    query_vector,
    slow_log_likelihood,
    trained,
)

COUNT = 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "m", pooling="mean", normalize=True, similarity_scale=10.0)


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    return Probe(tmp_path, DOCUMENTS, PretrainConfig(exclude_self="passage", evaluate_blanks=COUNT), Names())


@torch.no_grad()
def by_hand(folder: Path, corpus: Corpus) -> dict[str, float]:
    """Each blank alone, its candidates found by comparing all passages."""
    model = trained(folder)
    blanks = MaskedTexts(corpus, model.tokenizer, 22, "salient", Names()).draw(COUNT, np.random.default_rng(0))
    index = Snapshot(model, corpus)
    scores, gains, utilities, ranks = [], [], [], []
    for blank in blanks:
        own = [row for row in index.rows if corpus.passage(row) == blank.passage]
        passages = index.nearest(query_vector(model, blank.ids).numpy()[None], 3, [own])[0]
        alone = slow_log_likelihood(model, blank, [], False)
        scores.append(slow_log_likelihood(model, blank, passages, False))
        gains.append(scores[-1] - alone)
        each = [log_likelihoods(model, blank, passage.text, passage.title).sum() - alone for passage in passages]
        utilities.append(sum(each) / 3)
        ranks.append(next((at for at, passage in enumerate(passages) if blank.answer in passage.text), 99))
    return {
        "score": float(np.mean(scores)),
        "gain": float(np.mean(gains)),
        "utility": float(np.mean(utilities)),
        "recall_at_1": float(np.mean([rank < 1 for rank in ranks])),
        "recall_at_5": float(np.mean([rank < 5 for rank in ranks])),
    }


def test_a_model_is_measured_as_by_hand(folder: Path, probe: Probe) -> None:
    found = probe.measure(locate(str(folder), REALMConfig))
    assert found == pytest.approx(by_hand(folder, probe._corpus), abs=1e-4)
    assert 0 < found["recall_at_1"] < found["recall_at_5"] < 1
    assert found["gain"] != 0 != found["utility"]


def test_every_model_has_the_same_blanks(folder: Path, probe: Probe, tmp_path: Path) -> None:
    first = probe.measure(locate(str(folder), REALMConfig))
    other = probe.measure(locate(str(make_model(tmp_path / "other")), REALMConfig))
    assert probe.measure(locate(str(folder), REALMConfig)) == first != other
