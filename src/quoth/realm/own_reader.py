"""The reader that a REALM was trained with.

Knows: questions, blanks and the null document as inputs of the network, and what this reader cannot do. Does not know:
how passages are found, how readings become answers (`answering`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.answers.equations import log_sum_exp
from quoth.answers.evidence import Source, Spans
from quoth.encoders.encoder import run_batched
from quoth.encoders.transformer import PADDED_TOKENS_PER_BATCH, Transformer, on_arrays, pair_batch
from quoth.errors import InputError
from quoth.fields import checked
from quoth.hub import ModelSource
from quoth.reader.spans import Reading, legal_spans
from quoth.realm.answering import EncodedQuery, How, explain_likelihood, predict_answers, predict_words
from quoth.realm.config import REALMAskOptions, REALMConfig
from quoth.realm.network import ReaderModel, readings
from quoth.realm.towers import like_encoder, opened
from quoth.records import Likelihood, Prediction, Predictions
from quoth.text.tokenizer import PairTokenizer, answer_ids
from quoth.timing import step


class OwnReader:
    """REALM's own reader, without gradients: answers questions by spans, and fills blanks by masked words."""

    def __init__(self, model: ReaderModel, tokenizer: PairTokenizer, name: str = "") -> None:
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self._device = next(model.parameters()).device

    @classmethod
    def load(
        cls, source: ModelSource[REALMConfig], tokenizer: PairTokenizer, device: str | None, dtype: str | None
    ) -> OwnReader:
        """Raises ModelNotFoundError, or InputError on an unknown device or dtype."""
        encoder = Transformer.load(source.part("reader"), device=device, dtype=dtype).model
        model = opened(ReaderModel, encoder, source.config, source.heads, "reader")
        return cls(like_encoder(model), tokenizer, source.name)

    def check(self, options: REALMAskOptions) -> float:
        """The probability that an answer must reach. Raises InputError for what needs odds, which the spans' scores are
        not: adding BM25's, calibration."""
        if options.mode == "hybrid":
            raise InputError(f"mode is 'hybrid', but {self.name} has a reader of its own; use mode='dense'")
        for name in ("min_probability", "precision"):
            if getattr(options, name) is not None:
                raise InputError(f"{name} is given, but the reader of {self.name} is not calibrated; leave it out")
        return 0.0

    def combined(self, combine: str | None, default: str) -> str:
        """How the fillings of a blank are combined: eq. 1 is all that masked words have. Raises InputError."""
        checked("combine", combine or "marginal", Literal["marginal"])
        return "marginal"

    def answers(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> Predictions:
        """The best spans."""
        with step("expand"):
            spans = self.spans(self._read(query, sources))
        found = predict_answers(sources, spans, self.model.config.add_relevance, how.top_k, how.marginal, how.null)
        return Predictions(found)

    def fillings(self, query: EncodedQuery, sources: Sequence[Source], how: How) -> list[Prediction]:
        """The best words of a blank."""
        with step("expand"):
            seen = self._read(query, sources, null=how.null is not None)
            log_p_NV = self.masked(seen)
        return predict_words(sources, seen, how.null, log_p_NV, how.top_k)

    def likelihood(
        self, text: str, answer: str, found: Callable[[int], tuple[EncodedQuery, Sequence[Source], float]]
    ) -> Likelihood:
        """How likely an answer is in the masks of a text. `found` takes their number, and gives the text with its
        masks, the passages nearest to it and the null document's relevance. Raises InputError on an answer that cannot
        be spelled or has too many pieces."""
        hidden, room = answer_ids(self.tokenizer, text, answer), self.model.config.question_room
        if len(hidden) > room:
            raise InputError(
                f"answer {answer!r} has {len(hidden)} word pieces; it may have at most {room}; give a shorter one"
            )
        query, sources, null = found(len(hidden))
        with step("expand"):
            log_p_NM = self.at_masks(self._read(query, sources, null=True), hidden)
        pieces = [self.tokenizer.hf.backend_tokenizer.id_to_token(token) for token in hidden]
        return explain_likelihood(sources, null, answer.strip(), pieces, log_p_NM)

    def spans(self, read: Sequence[Reading]) -> list[Spans]:
        """The answers in each passage, as `legal_spans` gives them."""
        found = []
        rows = self._run(read, lambda part: self.model.span(self._states(part)))
        for reading, scores_TW in zip(read, rows, strict=True):
            first_C, beyond_C = np.nonzero(legal_spans(reading, scores_TW.shape[1]))
            start_C, end_C = reading.offsets_T2[first_C, 0], reading.offsets_T2[first_C + beyond_C, 1]
            score_C = scores_TW[reading.body + first_C, beyond_C].astype(np.float64)
            found.append(Spans(start_C, end_C, score_C, log_sum_exp(score_C)))
        return found

    def masked(self, read: Sequence[Reading]) -> NDArray[np.float32]:
        """log p(y|z, x) of every token of the vocabulary at the first mask of each input: [B, V]."""
        rows = self._run(read, lambda part: self._log_p(part, 1)[:, 0])
        return np.array(rows, np.float32).reshape(len(read), len(self.model.mlm.bias))

    def at_masks(self, read: Sequence[Reading], hidden_M: Sequence[int]) -> NDArray[np.float32]:
        """log p(y_m|z, x) of these tokens, one at each of the first M masks of each input: [B, M]."""
        which = torch.arange(len(hidden_M)), list(hidden_M)
        rows = self._run(read, lambda part: self._log_p(part, len(hidden_M))[:, *which])
        return np.array(rows, np.float32).reshape(len(read), len(hidden_M))

    def _log_p(self, read: Sequence[Reading], masks: int) -> Tensor:
        """log p of the vocabulary at the first masks of the inputs, one per word piece: [B, M, V]."""
        ids = (reading.pair.ids_T for reading in read)
        at_BM = torch.from_numpy(np.stack([np.flatnonzero(ids_T == self.tokenizer.mask_id)[:masks] for ids_T in ids]))
        logits_BMV: Tensor = self.model.mlm(self._states(read)[torch.arange(len(read))[:, None], at_BM])
        return logits_BMV.float().log_softmax(dim=-1)

    def _states(self, read: Sequence[Reading]) -> Tensor:
        return self.model.states(pair_batch(self.tokenizer, [reading.pair for reading in read], self._device))

    def _run(self, read: Sequence[Reading], forward: Callable[[list[Reading]], Tensor]) -> list[NDArray[np.float32]]:
        """What `forward` makes of each input, in their order."""
        lengths = [len(reading.pair.ids_T) for reading in read]
        rows = dict(run_batched(read, lengths, on_arrays(forward), PADDED_TOKENS_PER_BATCH))
        return [rows[number] for number in range(len(read))]

    def _read(self, query: EncodedQuery, sources: Sequence[Source], null: bool = False) -> list[Reading]:
        """The input for each passage and, if `null`, last the one for the null document."""
        texts = [*(source.passage.text for source in sources), *[""] * null]
        titles = [*(source.passage.title for source in sources), *[""] * null]
        return readings(self.tokenizer, self.model.config, query.ids, texts, titles)
