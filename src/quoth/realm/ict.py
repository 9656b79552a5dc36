"""The inverse cloze task, which teaches two towers to find a passage by a sentence of it (Lee et al. 2019, §4).

Knows: sentences and passages of a corpus, and the step's gradient. Does not know: the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.realm.config import ICTConfig
from quoth.realm.losses import inverse_cloze_loss
from quoth.realm.passages import passage_inputs, query_inputs
from quoth.realm.trained import REALMTask, TrainedREALM
from quoth.text.passages import sentences
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.trainer import Step

Example = tuple[str, str, str]
"""A sentence, the passage it was taken from, and that passage's title."""


class ICTTask(REALMTask):
    """Learns which passage of a batch each sentence was taken from; all of the processes' passages are in the batch.

    Raises InputError if the corpus has fewer passages than a batch, or a batch cannot be divided evenly.
    """

    def __init__(self, model: TrainedREALM, corpus: Corpus, config: ICTConfig, world: World = SINGLE_PROCESS) -> None:
        super().__init__(model, config, world)
        self.config, self._corpus = config, corpus
        self._rows_P = corpus.live_rows()
        if config.batch_size < 2 or config.batch_size > len(self._rows_P):
            raise InputError(
                f"batch_size is {config.batch_size}; it must be from 2 to the number of passages ({len(self._rows_P)})"
            )

    def backward(self, step: int) -> Step:
        """Add the gradient of `inverse_cloze_loss`."""
        rng = np.random.default_rng((self.config.seed, 3, step))
        drawn = self._examples(rng)
        mine = self.world.share(len(drawn))
        loss, tokens = self._loss(drawn[mine], mine.start)
        loss = loss / self.world.size
        loss.backward()  # type: ignore[no-untyped-call]
        total, tokens_of_all = self.summed([loss.item(), tokens])
        return Step(total, int(tokens_of_all))

    def _loss(self, drawn: Sequence[Example], first: int) -> tuple[torch.Tensor, int]:
        model, tokenizer = self.model, self.model.tokenizer
        texts, passages, titles = zip(*drawn, strict=True)
        asked = query_inputs(tokenizer, model.config, (ids for ids, _ in tokenizer.pieces(texts)))
        inputs = passage_inputs(tokenizer, model.config, passages, titles)
        q_BD, z_BD = self.vectors(model.queries, asked), self.vectors(model.passages, inputs)
        loss = inverse_cloze_loss(q_BD, self.world.gather(z_BD), model.config.similarity_scale, first)
        return loss, sum(len(pair.ids_T) for pair in (*asked, *inputs))

    def _examples(self, rng: np.random.Generator) -> list[Example]:
        """A batch, of passages drawn at random, none twice. Raises InputError if too few have two sentences."""
        found: list[Example] = []
        seen: set[int] = set()
        while len(found) < self.config.batch_size:
            if len(seen) == len(self._rows_P):
                raise InputError(
                    f"batch_size is {self.config.batch_size}; it must be from 2 to the number of passages with two "
                    f"sentences or more ({len(found)})"
                )
            row = int(rng.choice(self._rows_P))
            if row in seen:
                continue
            seen.add(row)
            if example := self._example(row, rng):
                found.append(example)
        return found

    def _example(self, row: int, rng: np.random.Generator) -> Example | None:
        """A sentence and its passage, mostly without it. None for a passage of one sentence: with it the
        passage would be found by its words alone, without it nothing is left."""
        passage = self._corpus.passage(row)
        found = sentences(passage.text)
        if len(found) < 2:
            return None
        start, end = found[rng.integers(len(found))]
        sentence, rest = passage.text[start:end], f"{passage.text[:start]}{passage.text[end:]}".strip()
        kept = rng.random() < self.config.keep_sentence
        return sentence, passage.text if kept else rest, passage.title

    def settings(self) -> dict[str, Any]:
        return {"model": self.model.config.to_dict(), "data": {"passages": len(self._rows_P)}}
