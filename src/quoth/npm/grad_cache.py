"""A batch's loss and its gradient, in parts that fit into memory, over one process or many.

Knows: gradient caching (Gao et al. 2021): all vectors are computed without activations, the loss gives each
vector's gradient, and each part of the batch is encoded again, with the same dropout, to send it on to the weights.
The masked LM's loss is a sum over masks, so each part's is added when the part is encoded again.
Processes share out the encoding and the queries; every query meets every key. Does not know: optimisers and files.

Shape suffixes that differ from the project's: K keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from quoth.encoders.transformer import pad
from quoth.npm.collate import Batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.losses import contrastive_loss, masked_lm_loss, phrase_contrastive_loss
from quoth.text.tokenizer import batches_by_length
from quoth.training.distributed import World

SIMILARITIES_AT_A_TIME = 1 << 25
PADDED_TOKENS = 1 << 14
"""Encoded together, at most: a batch for a GPU has eight times as many, of which a third would be padding."""


class Contrast:
    """The contrastive loss of batches under a model that maps `input_ids` [B, T] to `last_hidden_state` [B, T, D], and
    with `head`, which maps states [M, D] to logits [M, V], the masked LM's."""

    def __init__(
        self, model: Any, pad_id: int, npm: NPMConfig, config: TrainConfig, world: World, head: Any = None
    ) -> None:
        self._model, self._pad_id, self._npm, self._config, self._world = model, pad_id, npm, config, world
        self._device, self._head = next(model.parameters()).device, head
        self._contrasts = config.contrast_with != "nothing"

    def loss(self, batch: Batch) -> Tensor:
        """The batch's loss with its graph, all in one piece; zero if nothing could be masked."""
        whole = slice(0, len(batch.inputs))
        states_BTD = self.states(batch, whole)
        loss = self._masked_lm(batch, whole, states_BTD)
        if self._contrasts:
            vectors = self.vectors(batch, whole, states_BTD)
            loss = loss + self._contrastive(batch, *vectors, slice(0, len(batch.masks_M2)))
        return loss

    def backward(self, batch: Batch, weight: float = 1.0) -> float:
        """Add this process's part of `weight` times the loss's gradient to the parameters'; returns that share of the
        loss. After a step's last batch `sum_gradients` puts the parts together."""
        mine = self._world.share(len(batch.inputs))
        size = self._config.mini_batch_size or len(batch.inputs)
        if self._world.size == 1 and size >= len(batch.inputs):
            loss = weight * self.loss(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        # Every part is encoded twice: once without a graph for its vectors, once more when the loss's gradients for
        # these are known. With the same seed dropout hides the same units both times; otherwise the gradients would be
        # those of other vectors. The seeds are drawn from the step's own random numbers: a run that resumes has them.
        parts = [slice(at, min(at + size, mine.stop)) for at in range(mine.start, mine.stop, size)]
        seeds = torch.randint(1 << 62, (len(parts),)).tolist()
        contrast, of_vectors = self._gradients(batch, parts, seeds, weight) if self._contrasts else (0.0, None)
        predicted = torch.zeros((), device=self._device)
        for part, seed in zip(parts, seeds, strict=True):
            torch.manual_seed(seed)
            states_BTD = self.states(batch, part)
            loss = weight * self._masked_lm(batch, part, states_BTD)
            outputs, gradients = list[Tensor](), list[Tensor | None]()
            if self._head is not None:
                outputs, gradients = [loss], [None]
            if of_vectors is not None:
                keys, masks = _rows(batch, part)
                outputs += self.vectors(batch, part, states_BTD)
                gradients += [of_vectors[0][keys], of_vectors[1][:, masks]]
            torch.autograd.backward(outputs, gradients)
            predicted += loss.detach()
        self._world.sum([predicted])
        return contrast + predicted.item()

    def _gradients(
        self, batch: Batch, parts: list[slice], seeds: list[int], weight: float
    ) -> tuple[float, tuple[Tensor, ...]]:
        """`weight` times the contrastive loss, and its gradients for the keys and queries."""
        leaves = self._cached(batch, parts, seeds)
        loss = weight * self._contrastive(batch, *leaves, self._world.share(len(batch.masks_M2)))
        gradients = torch.autograd.grad(loss, leaves)
        # A process's loss covers its own queries and everyone's keys: a key's gradient is the sum over all processes.
        total = loss.detach()
        self._world.sum([total, *gradients])
        return total.item(), gradients

    def sum_gradients(self) -> None:
        """Give every process the sum of all processes' gradients."""
        both = dict.fromkeys([*self._model.parameters(), *(() if self._head is None else self._head.parameters())])
        self._world.sum_gradients(p for p in both if p.requires_grad)

    def _cached(self, batch: Batch, parts: list[slice], seeds: list[int]) -> tuple[Tensor, Tensor]:
        """The vectors of the whole batch, without a graph: keys [K, D] and queries [2, M, D]. What dropout hides in a
        part follows from its seed."""
        dimensions = int(self._model.config.hidden_size)
        c_KD = torch.zeros(len(batch.keys_K2), dimensions, device=self._device)
        q_2MD = torch.zeros(2, len(batch.masks_M2), dimensions, device=self._device)
        with torch.no_grad():
            for part, seed in zip(parts, seeds, strict=True):
                keys, masks = _rows(batch, part)
                torch.manual_seed(seed)
                c_KD[keys], q_2MD[:, masks] = self.vectors(batch, part, self.states(batch, part))
        # Every process has filled in its own rows, and zeros elsewhere: the sum is everyone's rows.
        self._world.sum([c_KD, q_2MD])
        return c_KD.requires_grad_(), q_2MD.requires_grad_()

    def states(self, batch: Batch, part: slice) -> Tensor:
        """The last hidden states of these inputs: [B, T, D]. Those of similar length are encoded together, so that less
        is padded."""
        inputs = batch.inputs[part]
        lengths = [len(ids) for ids in inputs]
        longest = max(lengths)
        order, states = list[int](), list[Tensor]()
        for some in batches_by_length(lengths, PADDED_TOKENS):
            ids_BT, attention_BT = pad([inputs[number] for number in some], self._pad_id)
            with self._precision():
                output = self._model(input_ids=ids_BT.to(self._device), attention_mask=attention_BT.to(self._device))
            states.append(functional.pad(output.last_hidden_state, (0, 0, 0, longest - ids_BT.shape[1])).float())
            order += some
        return torch.cat(states)[self._tensor(np.argsort(order))]

    def _precision(self) -> torch.autocast:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._config.bf16)

    def _masked_lm(self, batch: Batch, part: slice, states_BTD: Tensor) -> Tensor:
        """`mlm_weight` times these inputs' share of the masked LM's loss, a mean over the batch; 0 without a head."""
        if self._head is None:
            return states_BTD.new_zeros(())
        mine = _within(batch.hidden_X2, part)
        mask_input, mask_at = self._tensor(batch.hidden_X2[mine].T)
        with self._precision():
            logits_XV = self._head(states_BTD[mask_input - part.start, mask_at])
        token_X = self._tensor(batch.hidden_X[mine])
        return self._config.mlm_weight * masked_lm_loss(logits_XV.float(), token_X, len(batch.hidden_X))

    def vectors(self, batch: Batch, part: slice, states_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors of these inputs: keys and queries, in the batch's order."""
        keys, masks = _rows(batch, part)
        key_input, key_at = self._tensor(batch.keys_K2[keys].T)
        mask_input, mask_at = self._tensor(batch.masks_M2[masks].T)
        c_KD = states_BTD[key_input - part.start, key_at]
        last = self._npm.num_masks - 1
        q_2MD = torch.stack([states_BTD[mask_input - part.start, mask_at + i] for i in (0, last)])
        if self._npm.normalize:
            c_KD, q_2MD = (functional.normalize(vectors, dim=-1) for vectors in (c_KD, q_2MD))
        return c_KD, q_2MD

    def _contrastive(self, batch: Batch, c_KD: Tensor, q_2MD: Tensor, queries: slice) -> Tensor:
        """These queries' share of the loss, which is a mean over all queries that have a positive."""
        pairs = slice(*np.searchsorted(batch.positive_query, [queries.start, queries.stop]).tolist())
        both = batch.positive_query[pairs], batch.positive_query  # in order, so that counting them needs no sorting
        mine, everyone = (int(np.count_nonzero(np.diff(each, prepend=-1))) for each in both)
        chunk = self._config.similarity_chunk_size or max(1, SIMILARITIES_AT_A_TIME // max(len(c_KD), 1))
        settings: dict[str, Any] = {
            "scale": self._npm.scale(c_KD.shape[1]),
            "chunk": chunk if chunk < queries.stop - queries.start else None,
        }
        masked_out = self._tensor(batch.masked_out_M[queries]), self._tensor(batch.masked_out_K)
        query = self._tensor(batch.positive_query[pairs] - queries.start)
        start, end = self._tensor(batch.positive_start[pairs]), self._tensor(batch.positive_end[pairs])
        q_start_MD, q_end_MD = q_2MD[:, queries]
        if self._npm.num_masks == 1:
            loss = contrastive_loss(q_start_MD, c_KD, *masked_out, query, start, **settings)
        else:
            loss = phrase_contrastive_loss(q_start_MD, q_end_MD, c_KD, *masked_out, query, start, end, **settings)
        return loss * (mine / max(everyone, 1))

    def _tensor(self, array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def _rows(batch: Batch, part: slice) -> tuple[slice, slice]:
    """Which keys and which masks are in these inputs; both are in the order of the inputs."""
    return _within(batch.keys_K2, part), _within(batch.masks_M2, part)


def _within(places_X2: NDArray[np.int64], part: slice) -> slice:
    """Which of these places, in the order of the inputs, are in these inputs."""
    return slice(*np.searchsorted(places_X2[:, 0], [part.start, part.stop]).tolist())
