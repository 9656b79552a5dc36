"""Learning a larger NPM's vectors: every token and every blank of a batch has the teacher's as its target.

Knows: how a teacher's vectors are made as short as the student's, and what is asked of these. Does not know: masking,
optimisers, files.

A batch on one machine has too few phrases for contrast to teach a small encoder much. A teacher that saw large batches
says of each token where it belongs among all (Hinton et al. 2015; of hidden states, Jiao et al. 2020, §3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from quoth.encoders.encoder import fingerprint_of
from quoth.encoders.transformer import apply_adapter, attend_in_fp32, load_base, parameters
from quoth.errors import InputError
from quoth.hub import locate
from quoth.npm.collate import Batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.grad_cache import Contrast
from quoth.training.distributed import SINGLE_PROCESS
from quoth.training.losses import similarity_distillation_loss

FITTED_ON = 12
"""Batches of which the map from the teacher's space is made."""
SIMILARITY_WEIGHT = 0.3
"""Of the similarities' divergence (in nats), beside the two cosine distances."""
ROLES = ("cls_token", "sep_token", "bos_token", "eos_token", "mask_token", "pad_token", "unk_token")


@dataclass(frozen=True)
class Teacher:
    """An NPM's encoder, its id of each token of the student's, that of padding, and a digest of all of it: a run
    resumes with the same teacher only."""

    model: Any
    id_V: NDArray[np.int64]
    pad_id: int
    digest: str

    @classmethod
    def load(cls, config: TrainConfig, npm: NPMConfig, tokenizer: Any) -> Teacher:
        """The teacher that the settings name, for a student with this tokenizer. Raises InputError if it cannot teach
        that one."""
        source = locate(config.teacher, NPMConfig, config.teacher_base or None)
        for name in ("normalize", "num_masks"):
            if getattr(source.config, name) != getattr(npm, name):
                raise InputError(
                    f"teacher {config.teacher!r} has {name} {getattr(source.config, name)}, the model that learns "
                    f"{getattr(npm, name)}; they must be the same: name another teacher"
                )
        model, its_own = load_base(source.encoder)
        if source.adapter is not None:
            apply_adapter(model, source.adapter)
        digest = fingerprint_of(parameters(model), its_own, source.adapter)
        return cls(model.eval(), ids_of(tokenizer, its_own, config.teacher), int(its_own.pad_token_id or 0), digest)


def ids_of(tokenizer: Any, other: Any, name: str) -> NDArray[np.int64]:
    """The other tokenizer's id of each token: by its name, or by what it is for, such as padding: [V].

    Raises InputError, naming the `other`, if a token is missing there.
    """
    own, its = tokenizer.get_vocab(), other.get_vocab()
    its = its | {
        token: its[getattr(other, role)]
        for role in ROLES
        if (token := getattr(tokenizer, role)) is not None and getattr(other, role) is not None
    }
    if lacking := sorted(own.keys() - its.keys()):
        raise InputError(
            f"teacher {name!r} has another vocabulary: {len(lacking)} tokens are missing, such as {lacking[0]!r}; name "
            "one whose base has the same"
        )
    id_V = np.zeros(max(own.values()) + 1, np.int64)
    id_V[list(own.values())] = [its[token] for token in own]
    return id_V


class Distillation(Contrast):
    """The distance of a batch's vectors from the teacher's, in the place of the contrastive loss."""

    def __init__(
        self, model: Any, pad_id: int, npm: NPMConfig, config: TrainConfig, teacher: Teacher, batches: Iterable[Batch]
    ) -> None:
        """`batches` are those that the map from the teacher's space is made of, while the student is untrained."""
        super().__init__(model, pad_id, npm, config, SINGLE_PROCESS)
        self._id_V = teacher.id_V
        if config.bf16 and self._device.type == "cpu":
            attend_in_fp32(teacher.model)
        self._taught = Contrast(teacher.model.to(self._device), teacher.pad_id, npm, config, SINGLE_PROCESS)
        self._map_ED = self._fitted(batches)

    def loss(self, batch: Batch) -> Tensor:
        """The mean cosine distance of all tokens, that of the blanks, and how far the similarities of blanks and keys
        are from the teacher's."""
        whole = slice(0, len(batch.inputs))
        states_BTD = self.states(batch, whole)
        c_KD, q_2MD = self.vectors(batch, whole, states_BTD)
        with torch.no_grad():
            taught_BTD = self._of_teacher(batch) @ self._map_ED
            taught_c_KD, taught_q_2MD = self.vectors(batch, whole, taught_BTD)
        length_B = torch.tensor([len(ids) for ids in batch.inputs], device=self._device)
        read_BT = torch.arange(states_BTD.shape[1], device=self._device) < length_B[:, None]
        tokens = 1 - functional.cosine_similarity(states_BTD[read_BT], taught_BTD[read_BT], dim=-1).mean()
        if not len(batch.masks_M2):
            return tokens
        blanks = 1 - functional.cosine_similarity(q_2MD, taught_q_2MD, dim=-1).mean()
        passages = (self._tensor(batch.masked_out_M), self._tensor(batch.masked_out_K))
        scale = self._npm.scale(c_KD.shape[1])
        apart = sum(
            similarity_distillation_loss(q_MD, c_KD, taught_q_MD, taught_c_KD, *passages, scale=scale)
            for q_MD, taught_q_MD in zip(q_2MD, taught_q_2MD, strict=True)
        )
        return tokens + blanks + SIMILARITY_WEIGHT * apart / 2

    def _of_teacher(self, batch: Batch) -> Tensor:
        """The teacher's states of the batch's inputs: [B, T, E]."""
        inputs = [self._id_V[ids] for ids in batch.inputs]
        return self._taught.states(replace(batch, inputs=inputs), slice(0, len(inputs)))

    @torch.no_grad()
    def _fitted(self, batches: Iterable[Batch]) -> Tensor:
        """A map from the teacher's space into the student's that keeps angles in the directions in which the teacher's
        vectors vary most, and is turned so that they are as near to the student's as they can be: [E, D].

        Of the vectors X [N, E] and Y [N, D] of keys and queries: the first eigenvectors P of XᵀX, and the rotation of
        least squares from X P to Y (Schönemann 1966).
        """
        squares_EE = products_ED = torch.zeros(())
        for batch in batches:
            whole = slice(0, len(batch.inputs))
            x_NE, y_ND = (
                torch.cat([c_KD, *q_2MD]).double().cpu()
                for c_KD, q_2MD in (
                    self.vectors(batch, whole, states)
                    for states in (self._of_teacher(batch), self.states(batch, whole))
                )
            )
            squares_EE, products_ED = squares_EE + x_NE.T @ x_NE, products_ED + x_NE.T @ y_ND
        dimensions = min(products_ED.shape)
        kept_EP = torch.linalg.eigh(squares_EE).eigenvectors[:, -dimensions:]
        left_PP, _, right_PD = torch.linalg.svd(kept_EP.T @ products_ED, full_matrices=False)
        map_ED: Tensor = kept_EP @ left_PP @ right_PD
        return map_ED.to(self._device, torch.float32)
