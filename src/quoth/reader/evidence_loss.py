"""What a reader's layers for evidence learn from: which passages answer a question, and which tokens of them say it.

Knows: the losses, of labels and of a teacher. Does not know: networks or how inputs are made.

Shape suffixes that differ from the project's: N tokens of all passages together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

SHARES = {True: 0.7, False: 0.3}
"""The weights of the tokens of passages with evidence, and of others."""
OF_TOKENS, OF_PASSAGES, OF_TAUGHT = 2.0, 0.05, 0.5
"""The weights of `by_token`, of `by_passage`, and of what a teacher says."""
TEMPERATURE = 2.0
"""Of the softmax over passages that is learned from a teacher."""


class Marks(NamedTuple):
    """What a network says of passages: the log odds of each that it answers, the question of each [B]; the log odds of
    each of their tokens that it is evidence, and the number of its passage [N]."""

    relevance_B: Tensor
    question_B: Tensor
    evidence_N: Tensor
    passage_N: Tensor

    @classmethod
    def cut(cls, relevance_B: Tensor, evidence_BT: Tensor, question_B: Tensor, bodies: Sequence[slice]) -> Marks:
        """Those of inputs, each with its passage's tokens alone."""
        evidence = [row[body] for row, body in zip(evidence_BT, bodies, strict=True)]
        lengths_B = torch.tensor([*map(len, evidence)], device=question_B.device)
        passage_N = torch.arange(len(evidence), device=question_B.device).repeat_interleave(lengths_B)
        return cls(relevance_B.float(), question_B, torch.cat(evidence).float(), passage_N)

    def of(self, chosen_B: Tensor) -> Marks:
        """Those of some passages."""
        chosen_N, number_B = chosen_B[self.passage_N], chosen_B.cumsum(0) - 1
        rows = self.relevance_B[chosen_B], self.question_B[chosen_B]
        return Marks(*rows, self.evidence_N[chosen_N], number_B[self.passage_N[chosen_N]])


def joined_marks(parts: Sequence[Marks]) -> Marks:
    """Those of several batches, in order."""
    before = np.cumsum([0, *(len(part.relevance_B) for part in parts)])[:-1].tolist()
    rows = [part._replace(passage_N=part.passage_N + first) for part, first in zip(parts, before, strict=True)]
    return Marks(*map(torch.cat, zip(*rows, strict=True)))


def marked_loss(said: Marks, target_N: Tensor, has_B: Tensor) -> Tensor:
    """The loss of passages whose evidence is known: `by_token` and `by_passage`, weighted: scalar."""
    return OF_TOKENS * by_token(said, target_N, has_B, SHARES) + OF_PASSAGES * by_passage(said, has_B)


def by_passage(said: Marks, has_B: Tensor) -> Tensor:
    """Cross-entropy of the passages with evidence among those of a question, and none of them (log odds 0): scalar."""
    losses = []
    for question in torch.unique(said.question_B):
        here = said.question_B == question
        right = said.relevance_B[here & has_B]
        every = torch.logsumexp(torch.cat([said.relevance_B[here], said.relevance_B.new_zeros(1)]), 0)
        losses.append(every - (torch.logsumexp(right, 0) if len(right) else 0.0))
    return torch.stack(losses).mean()


def by_token(said: Marks, target_N: Tensor, has_B: Tensor, shares: Mapping[bool, float]) -> Tensor:
    """Cross-entropy of tokens, with these shares of passages that have evidence and of others: scalar."""
    has_N = has_B[said.passage_N]
    losses = [
        share * functional.binary_cross_entropy_with_logits(said.evidence_N[at], target_N[at])
        for has, share in shares.items()
        if (at := has_N == has).any()
    ]
    return torch.stack(losses).sum()


def relevance_distillation(said: Marks, taught_B: Tensor) -> Tensor:
    """How far relevance is from a teacher's: the divergence over each question's passages at `TEMPERATURE` (Hinton et
    al. 2015, §2), and 0.1 × the squared difference: scalar."""
    questions = torch.unique(said.question_B)
    loss = 0.1 * functional.mse_loss(said.relevance_B, taught_B)
    for question in questions:
        own, its = (each[said.question_B == question] / TEMPERATURE for each in (said.relevance_B, taught_B))
        apart = functional.kl_div(own.log_softmax(0), its.log_softmax(0), log_target=True, reduction="sum")
        loss = loss + TEMPERATURE**2 * apart / len(questions)
    return loss


def token_distillation(said: Marks, taught: Marks) -> Tensor:
    """Cross-entropy of tokens with a teacher's probabilities, above the least there is: scalar."""
    if not len(said.evidence_N):
        return said.evidence_N.sum()
    p_N = taught.evidence_N.sigmoid()
    least = functional.binary_cross_entropy_with_logits(taught.evidence_N, p_N)
    return functional.binary_cross_entropy_with_logits(said.evidence_N, p_N) - least
