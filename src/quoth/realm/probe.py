"""How well a REALM retrieves for masked names in documents it was not trained on: the curve of its pre-training.

Knows: blanks drawn from held-out passages, and what is measured on them. Does not know: training.

Shape suffixes that differ from the project's: N candidates.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import answer_rank, recall
from quoth.datasets.questions import QAExample
from quoth.hub import ModelSource
from quoth.index.tables import KeyTables
from quoth.ner.tagger import Tagger
from quoth.realm.config import PretrainConfig, REALMConfig
from quoth.realm.index_refresh import FixedIndex
from quoth.realm.pretrain import PretrainTask
from quoth.realm.salient import Masked, MaskedTexts
from quoth.realm.towers import PassageEncoder
from quoth.realm.trained import TrainedREALM
from quoth.records import Document

EXAMPLES_AT_A_TIME = 8


class Probe:
    """Held-out documents and blanks in them, the same for model after model of one run. `close` removes them."""

    def __init__(self, documents: Iterable[Document], config: PretrainConfig, tagger: Tagger, count: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="quoth-probe-")
        self._corpus = Corpus.create(Path(self._folder.name) / "heldout.quoth", splitter=config.splitter)
        self._corpus.add(documents)
        self._config, self._tagger, self._count = config, tagger, count
        self._drawn: list[Masked] = []

    @torch.inference_mode()
    def measure(self, source: ModelSource[REALMConfig]) -> dict[str, float]:
        """Of the blanks, in passages other than their own: `recall_at_1` and `recall_at_5`, the shares for which one of
        this many retrieved passages contains the hidden words; `score`, the mean log p(y|x); `gain`, the part due to
        passages; `utility`, the mean retrieval utility of the retrieved passages."""
        model = TrainedREALM(source, trained=(), lora_rank=0)
        encoder = PassageEncoder.load(source)
        KeyTables(self._corpus, encoder).build("fp32", recall=1.0)
        texts = MaskedTexts(self._corpus, model.tokenizer, model.config.query_tokens - 2, "salient", self._tagger)
        task = PretrainTask(model, texts, FixedIndex(self._corpus, encoder), self._config)
        drawn = self._drawn = self._drawn or texts.draw(self._count, np.random.default_rng(0))
        ranks, score, gain, utility = [], [], [], []
        for at in range(0, len(drawn), EXAMPLES_AT_A_TIME):
            part = drawn[at : at + EXAMPLES_AT_A_TIME]
            found, _ = task.marginal(part)
            score += found.log_likelihood(False).tolist()
            gain += found.gain().tolist()
            utility += found.utility().mean(dim=1).tolist()
            for example, passages in zip(part, found.passages, strict=True):
                question = QAExample("", "", (example.answer,))
                ranks.append(answer_rank((passage.text for passage in passages), question))
        return {
            "score": float(np.mean(score)),
            "gain": float(np.mean(gain)),
            "utility": float(np.mean(utility)),
            "recall_at_1": recall(ranks, 1),
            "recall_at_5": recall(ranks, 5),
        }

    def close(self) -> None:
        """Remove the documents."""
        self._folder.cleanup()
