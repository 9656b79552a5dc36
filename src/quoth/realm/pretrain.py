"""REALM's pre-training step: retrieve with a stale index, weigh and read with fresh weights (Guu et al. 2020, §3).

Knows: how examples, passages and losses become a gradient. Does not know: the loop, or how the index is refreshed.

Shape suffixes that differ from the project's: N candidates of an example (the null document first), U distinct
passages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import normalise
from quoth.encoders.transformer import pair_batch
from quoth.errors import InputError, UnknownDocumentError
from quoth.reader.spans import Reading, SpanReader
from quoth.realm.answering import log_likelihood
from quoth.realm.config import PretrainConfig
from quoth.realm.index_refresh import FixedIndex, IndexRefresher
from quoth.realm.losses import log_retrieval, marginal_of_product, marginal_per_token, relevance, retrieval_utility
from quoth.realm.network import readings
from quoth.realm.passages import passage_inputs, query_inputs
from quoth.realm.salient import Masked, MaskedTexts
from quoth.realm.trained import REALMTask, TrainedREALM
from quoth.records import Passage
from quoth.text.tokenizer import MASK
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.trainer import Step


@dataclass(frozen=True, slots=True)
class Marginal:
    """The results of a batch: log p(y_m|z,x) [B, N, M], f(x, z) [B, N], which of the M are masks [B, M], the passages
    that were retrieved, candidates 1 to N − 1 of each example, and which examples have p(y|x) > 0 [B], as all have
    whose reader is the model's own: of others log p(y|x) is 0 here."""

    log_p_BNM: Tensor
    relevance_BN: Tensor
    masked_BM: Tensor
    passages: list[list[Passage]]
    explained_B: Tensor

    def log_likelihood(self, per_token: bool) -> Tensor:
        """log p(y|x) of each example: [B]."""
        form = marginal_per_token if per_token else marginal_of_product
        log_p_B = form(self.log_p_BNM, log_retrieval(self.relevance_BN), self.masked_BM)
        return log_p_B.where(self.explained_B, 0.0)  # of which no rounding leaves a gradient

    def gain(self) -> Tensor:
        """log p(y|x) − log p(y|∅,x), the gain from all candidates together: [B]."""
        return self.log_likelihood(False) - (self.log_p_BNM[:, 0] * self.masked_BM).sum(dim=-1)

    def utility(self) -> Tensor:
        """Retrieval utility of each candidate except the null document: [B, N − 1]."""
        return retrieval_utility(self.log_p_BNM[:, 1:], self.log_p_BNM[:, 0], self.masked_BM)


class PretrainTask(REALMTask):
    """Learns to retrieve what helps to fill masks.

    `searched` is the corpus of `neighbourhood`, if texts are drawn from another one; `reader` takes the place of the
    model's own. Raises InputError if the corpus has too few passages.
    """

    def __init__(
        self,
        model: TrainedREALM,
        texts: MaskedTexts,
        neighbourhood: FixedIndex | IndexRefresher,
        config: PretrainConfig,
        searched: Corpus | None = None,
        world: World = SINGLE_PROCESS,
        reader: SpanReader | None = None,
    ) -> None:
        super().__init__(model, config, world)
        self.texts, self.config, self._searched, self._reader = texts, config, searched, reader
        self._neighbourhood = neighbourhood
        self._retrieved = model.config.num_candidates - 1
        # The least number of passages that are not trivial for an example.
        if searched is not None:
            others = searched.num_passages - _most_passages(searched, texts.corpus)
        else:
            trivial = 1 if config.exclude_self == "passage" else _most_passages(texts.corpus)
            others = texts.corpus.num_passages - trivial
        if others < self._retrieved:
            raise InputError(
                f"{self._retrieved} passages are to be retrieved for an example, but only {others} are not of its own "
                f"{config.exclude_self}; give more documents, or lower num_candidates"
            )

    def backward(self, step: int) -> Step:
        """Add the gradient of −log p(y|x), the mean over the batch's examples (over its masks, "token")."""
        if step < self.config.mlm_warmup_steps:
            return self._alone(step)
        staleness = self._neighbourhood.refresh(step, self.model)
        rng = np.random.default_rng((self.config.seed, 2, step))
        drawn = self.texts.draw(self.config.batch_size, rng)
        if not drawn:
            return Step(None, 0, self.config.batch_size)
        per_token = self.config.marginal == "token" and self._reader is None
        count = sum(len(example.hidden_M) for example in drawn) if per_token else len(drawn)
        totals = np.zeros(6)
        for part in self.parts(drawn, self.config.mini_batch_size):
            found, tokens = self.marginal(part)
            loss = -found.log_likelihood(per_token).sum() / count
            loss.backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                null = log_retrieval(found.relevance_BN)[:, 0].exp()
                means = [
                    len(part) / len(drawn) * float(measure.mean()) for measure in (found.utility(), found.gain(), null)
                ]
            totals += [loss.item(), tokens, int(found.explained_B.sum()), *means]
        total, tokens_of_all, explained, *means_of_all = self.summed(totals.tolist())
        measures = {"staleness": float(staleness)}
        if self._reader is None:
            measures |= zip(("utility", "gain", "null"), means_of_all, strict=True)
        else:
            measures["explained"] = explained / len(drawn)
        skipped = self.config.batch_size - int(explained)
        return Step(total if explained else None, int(tokens_of_all), skipped, measures)

    def _alone(self, step: int) -> Step:
        """Add the gradient of a masked LM that reads as many texts as there would be passages, and none of these."""
        rng = np.random.default_rng((self.config.seed, 2, step))
        count = self.config.batch_size * self.model.config.num_candidates
        drawn = self.texts.draw(count, rng, "tokens")
        if not drawn:
            return Step(None, 0, count)
        masks, totals = sum(len(example.hidden_M) for example in drawn), np.zeros(2)
        for part in self.parts(drawn, self.config.mini_batch_size * self.model.config.num_candidates):
            read = [self._readings(example, ()) for example in part]
            loss = -self._likelihood(part, read)[0].sum() / masks
            loss.backward()  # type: ignore[no-untyped-call]
            totals += [loss.item(), _tokens(read)]
        total, tokens = self.summed(totals.tolist())
        return Step(total, int(tokens), count - len(drawn))

    def marginal(self, drawn: Sequence[Masked]) -> tuple[Marginal, int]:
        """Relevance and likelihood of each example under its candidates, with gradients; and tokens read."""
        model = self.model
        queries = query_inputs(model.tokenizer, model.config, (example.ids for example in drawn))
        q_BD = self.vectors(model.queries, queries)
        q = q_BD.detach().cpu().numpy()
        found = self._neighbourhood.nearest(q, self._retrieved, [self._trivial(example.passage) for example in drawn])
        read: list[list[Reading]] = []
        if self._reader is None:
            read = [self._readings(example, passages) for example, passages in zip(drawn, found, strict=True)]
            log_p_BNM, masked_BM = self._likelihood(drawn, read)
        else:
            log_p_BNM = torch.from_numpy(by_spans(self._reader, drawn, found))[:, :, None].float().to(self.device)
            masked_BM = torch.ones_like(log_p_BNM[:, 0], dtype=torch.bool)
        explained_B = log_p_BNM.isfinite().all(dim=2).any(dim=1)
        # Of a blank that no passage explains nothing is learned; its passages are not encoded.
        log_p_BNM = log_p_BNM.masked_fill(~explained_B[:, None, None], 0.0)
        used = [passages if explained else [] for passages, explained in zip(found, explained_B.tolist(), strict=True)]
        rows = {passage.row: passage for passages in used for passage in passages}
        place = {row: u + 1 for u, row in enumerate(rows)}
        texts, titles = ["", *(p.text for p in rows.values())], ["", *(p.title for p in rows.values())]
        inputs = passage_inputs(model.tokenizer, model.config, texts, titles)
        candidates_BN = torch.tensor([[0, *(place.get(p.row, 0) for p in passages)] for passages in found])
        z_BND = self.vectors(model.passages, inputs)[candidates_BN.to(self.device)]
        relevance_BN = relevance(q_BD, z_BND, model.config.similarity_scale)
        tokens = _tokens(read) + sum(len(pair.ids_T) for pair in inputs)
        return Marginal(log_p_BNM, relevance_BN, masked_BM, found, explained_B), tokens

    def _trivial(self, passage: Passage) -> list[int]:
        """The rows never retrieved for an example of this passage; none if its text does not occur there."""
        if self._searched is not None:
            return rows_holding(self._searched, passage, self.config.exclude_self == "document")
        if self.config.exclude_self == "passage":
            return [passage.row]
        return self.texts.corpus.rows_of(passage.document_id)

    def _readings(self, example: Masked, passages: Sequence[Passage]) -> list[Reading]:
        """The null document's, then each passage's."""
        texts, titles = ["", *(p.text for p in passages)], ["", *(p.title for p in passages)]
        return readings(self.model.tokenizer, self.model.config, example.ids, texts, titles)

    def _likelihood(self, drawn: Sequence[Masked], read: Sequence[Sequence[Reading]]) -> tuple[Tensor, Tensor]:
        """log p(y_m|z,x) [B, N, M], 0 beyond an example's masks, and which of the M are masks [B, M]."""
        tokenizer, reader = self.model.tokenizer, self.model.reader
        batch = pair_batch(tokenizer, [reading.pair for group in read for reading in group], self.device)
        examples = [example for example, group in zip(drawn, read, strict=True) for _ in group]
        rows = np.repeat(np.arange(len(examples)), [len(example.masks_M) for example in examples])
        places = 1 + np.concatenate([example.masks_M for example in examples])  # after [CLS]
        hidden = torch.from_numpy(np.concatenate([example.hidden_M for example in examples]))
        with self.model.autocast():
            states_BTH = reader.states(batch)
            logits_MV = reader.mlm(states_BTH[rows, places])
        log_p_M = -torch.nn.functional.cross_entropy(logits_MV.float(), hidden.to(self.device), reduction="none")
        width = max(len(example.hidden_M) for example in drawn)
        masks_B = torch.tensor([len(example.hidden_M) for example in drawn])
        masked_BM = (torch.arange(width) < masks_B[:, None]).to(self.device)
        whole_BNM = masked_BM[:, None].expand(-1, len(read[0]), -1)
        return torch.zeros(whole_BNM.shape, device=self.device).masked_scatter(whole_BNM, log_p_M), masked_BM

    def settings(self) -> dict[str, Any]:
        searched = "" if self._searched is None else f"{self._searched.name}, {self._searched.num_passages} passages"
        data = {"passages": self.texts.corpus.num_passages, "searched": searched}
        return {"model": self.model.config.to_dict(), "data": data}


def by_spans(reader: SpanReader, drawn: Sequence[Masked], found: Sequence[Sequence[Passage]]) -> NDArray[np.float64]:
    """log p(y|z,x) of the hidden text, by the spans of each example's null document, which has none, and passages:
    [B, N]. Passages without the text are not read: there p(y|z,x) is 0."""
    said = [normalise(example.answer) for example in drawn]
    holding = [
        [n for n, passage in enumerate(passages, 1) if text in normalise(passage.text)]
        for text, passages in zip(said, found, strict=True)
    ]
    # A text about masks has them in it; a blank has one.
    masks = re.compile(f"{re.escape(MASK)}|{re.escape(reader.tokenizer.mask_token)}")
    blanks = [MASK.join(masks.sub(" ", side) for side in (each.before, each.after)) for each in drawn]
    read = reader.read(blanks, [[passages[n - 1] for n in own] for passages, own in zip(found, holding, strict=True)])
    log_p_BN = np.full((len(drawn), 1 + len(found[0])), -np.inf)
    for b, (example, own, spans) in enumerate(zip(drawn, holding, read, strict=True)):
        for n, marked in zip(own, spans, strict=True):
            log_p_BN[b, n] = log_likelihood(found[b][n - 1], marked, example.answer)
    return log_p_BN


def _tokens(read: Sequence[Sequence[Reading]]) -> int:
    return sum(len(reading.pair.ids_T) for group in read for reading in group)


def rows_holding(corpus: Corpus, passage: Passage, all_of_it: bool) -> list[int]:
    """The rows of a corpus that show the text of another corpus's passage: those of the document of the same id, if it
    contains the text, that overlap it, or `all_of_it`."""
    try:
        text, rows = corpus.document(passage.document_id).text, corpus.rows_of(passage.document_id)
    except UnknownDocumentError:
        return []
    places = [found.span() for found in re.finditer(re.escape(passage.text), text)]
    if all_of_it:
        return rows if places else []
    ranges = [(passage.start, passage.end) for passage in map(corpus.passage, rows)]
    return [
        row
        for row, (first, last) in zip(rows, ranges, strict=True)
        if any(first < end and start < last for start, end in places)
    ]


def _most_passages(corpus: Corpus, shared_with: Corpus | None = None) -> int:
    """The number of passages of the longest document, of all or of those whose id another corpus has too."""
    most = 0
    for segment in corpus.segments:
        ranges_D2 = np.array([segment.passage_range(document) for document in range(segment.num_documents)])
        live_D = corpus.live(segment.first_row + ranges_D2[:, 0])
        if shared_with is not None:
            shared = [document for other in shared_with.segments for document in segment.find_all(other)]
            live_D &= np.isin(np.arange(len(live_D)), shared)
        most = max(most, int(np.diff(ranges_D2)[live_D].max(initial=0)))
    return most
