"""Train a small NPM on a larger one's vectors: every token and every blank of a batch has the teacher's as its target.

    python recipes/distillation.py pages/ -o mine --teacher quoth-base --set steps=3000

The settings are those of `quoth train npm-mini-cpu`; the same command resumes a stopped run.

A batch on one machine has too few phrases for contrast to teach a small encoder much. A teacher that saw large batches
says of each token where it belongs among all (Hinton et al. 2015; of hidden states, Jiao et al. 2020, §3).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from quoth.cli.options import pairs
from quoth.encoders.encoder import fingerprint_of
from quoth.encoders.transformer import apply_adapter, attend_in_fp32, load_base, parameters
from quoth.errors import InputError, QuothError
from quoth.fields import described
from quoth.hub import locate
from quoth.npm.collate import Batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.grad_cache import Contrast
from quoth.npm.recipe import prepare as prepare_npm
from quoth.npm.task import NPMTask
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.recipes import RECIPES, run_recipe
from quoth.training.run import Job, Run
from quoth.training.settings import Recipe

FITTED_ON = 12
"""Batches of which the map from the teacher's space is made."""
SIMILARITY_WEIGHT = 0.3
"""Of the similarities' divergence (in nats), beside the two cosine distances."""
RECIPE = "npm-distilled"
ROLES = ("cls_token", "sep_token", "bos_token", "eos_token", "mask_token", "pad_token", "unk_token")


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class DistillConfig(TrainConfig):
    """How to train an NPM by a larger one."""

    teacher: Annotated[str, "An NPM, the larger the better, with the same vocabulary."] = "quoth-base"
    teacher_base: Annotated[str, "The folder of the teacher's base. Default: what its settings name."] = ""

    def check(self) -> None:
        TrainConfig.check(self)
        if self.mlm_weight or self.mini_batch_size:
            raise InputError(
                f"with a teacher, mlm_weight ({self.mlm_weight:g}) and mini_batch_size ({self.mini_batch_size}) must "
                "be 0; for larger batches set groups"
            )


@dataclass(frozen=True)
class Teacher:
    """An NPM's encoder, its id of each token of the student's, that of padding, and a digest of all of it: a run
    resumes with the same teacher only."""

    model: Any
    id_V: NDArray[np.int64]
    pad_id: int
    digest: str

    @classmethod
    def load(cls, name: str, base: str, npm: NPMConfig, tokenizer: Any) -> Teacher:
        """The teacher of this name, for a student with this tokenizer. Raises InputError if it cannot teach that
        one."""
        source = locate(name, NPMConfig, base or None)
        for setting in ("normalize", "num_masks"):
            if getattr(source.config, setting) != getattr(npm, setting):
                raise InputError(
                    f"teacher {name!r} has {setting} {getattr(source.config, setting)}, the model that learns "
                    f"{getattr(npm, setting)}; they must be the same: name another teacher"
                )
        model, its_own = load_base(source.encoder)
        if source.adapter is not None:
            apply_adapter(model, source.adapter)
        digest = fingerprint_of(parameters(model), its_own, source.adapter)
        return cls(model.eval(), ids_of(tokenizer, its_own, name), int(its_own.pad_token_id or 0), digest)


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


def similarity_distillation_loss(
    q_MD: Tensor,
    c_ND: Tensor,
    taught_q_ME: Tensor,
    taught_c_NE: Tensor,
    query_sequence_M: Tensor,
    sequence_N: Tensor,
    *,
    scale: float,
) -> Tensor:
    """How far a model's similarities are from its teacher's (Hinton et al. 2015, §2): scalar.

    In plain words: the teacher's softmax over the tokens of other sequences is the target of the model's.

    Inputs: queries [M, D] and batch tokens [N, D], the teacher's of both, the sequence of each.
    Formula: mean over queries of Σ p log(p / q), p the softmax of the teacher's s q·c and q the model's.
    When to use: instead of `contrastive_loss`, with a larger model as the teacher.
    """
    own_MN = query_sequence_M[:, None] == sequence_N[None, :]

    def log_shares(q_MX: Tensor, c_NX: Tensor) -> Tensor:
        sim_MN = (scale * (q_MX @ c_NX.T)).masked_fill(own_MN, -torch.inf)
        return sim_MN.log_softmax(dim=1).masked_fill(own_MN, 0.0)  # the same in both, so that they do not count

    taught_MN = log_shares(taught_q_ME, taught_c_NE)
    return (taught_MN.exp() * (taught_MN - log_shares(q_MD, c_ND))).sum(dim=1).mean()


class DistillationTask(NPMTask):
    """Trains an NPM's encoder by a teacher's vectors."""

    config: DistillConfig

    def make_contrast(self, pad_id: int, world: World, head: Any) -> Contrast:
        fitted_on = (batch for step in range(FITTED_ON) for batch in self.batches(step))
        return Distillation(self.model, pad_id, self.npm, self.config, self.teacher, fitted_on)

    @cached_property
    def teacher(self) -> Teacher:
        return Teacher.load(self.config.teacher, self.config.teacher_base, self.npm, self.tokenizer.hf)

    def settings(self) -> dict[str, Any]:
        """A run resumes with the same teacher only."""
        settings = super().settings()
        settings["data"]["digest of the teacher"] = self.teacher.digest
        return settings


def prepare(run: Run, config: DistillConfig) -> Job:
    """As for any NPM, but the task has a teacher."""
    return prepare_npm(run, config, DistillationTask)


DISTILLATION = Recipe(
    "distillation:prepare",
    "quoth-mini-base",
    DistillConfig.from_dict(RECIPES["npm-mini-cpu"].config.to_dict() | {"contrast_with": "clean", "lora_rank": 160}),
    distributed=False,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", help="files and folders of documents")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder for the model, its checkpoints and log"
    )
    parser.add_argument("--teacher", default="quoth-base", help="a larger NPM (default: quoth-base)")
    parser.add_argument("--teacher-base", default="", help="the folder of its base")
    parser.add_argument("--model", help="what to start from (default: quoth-mini-base)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    options = parser.parse_args()
    settings = {
        "teacher": options.teacher,
        "teacher_base": options.teacher_base,
        **pairs(options.set, "--set", "steps=9"),
    }
    RECIPES[RECIPE] = DISTILLATION
    try:
        run_recipe(RECIPE, options.documents, options.output, settings, model=options.model, progress=print)
    except QuothError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(importlib.import_module("distillation").main())  # under the name by which the recipe finds it
