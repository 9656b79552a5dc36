"""REALM's losses: retrieval as a latent variable (Guu et al. 2020; open QA after Lee et al. 2019, ORQA).

Knows: relevance scores and log probabilities. Does not know: encoders, texts, where passages come from.

Shape suffixes that differ from the project's: N candidate passages of an example, K passages or spans.
"""

from __future__ import annotations

import torch
from torch import Tensor


def relevance(q_BD: Tensor, z_BND: Tensor, scale: float = 1.0) -> Tensor:
    """f(x, z) = s q·z of each example's own candidates: [B, N]. REALM §3.2."""
    return scale * torch.einsum("bd,bnd->bn", q_BD, z_BND)


def log_retrieval(relevance_BN: Tensor) -> Tensor:
    """log p(z|x): the softmax of relevance over the candidates: [B, N]. REALM §3.2."""
    return relevance_BN.log_softmax(dim=-1)


def marginal_of_product(log_p_BNM: Tensor, log_retrieval_BN: Tensor, masked_BM: Tensor) -> Tensor:
    """log p(y|x) = log Σ_z p(z|x) Π_m p(y_m|z,x): [B]. REALM eq. 1, with p(y|z,x) as in §3.2.

    In plain words: one passage explains all masked tokens of an example together.
    Inputs: log p(y_m|z,x) [B, N, M], log p(z|x) [B, N], which of the M are masked tokens [B, M].
    """
    return (log_retrieval_BN + _of_masks(log_p_BNM, masked_BM).sum(dim=-1)).logsumexp(dim=-1)


def marginal_per_token(log_p_BNM: Tensor, log_retrieval_BN: Tensor, masked_BM: Tensor) -> Tensor:
    """Σ_m log Σ_z p(z|x) p(y_m|z,x): [B]. The released code, which averages it over all masked tokens of a batch.

    In plain words: each masked token chooses its passages for itself. Inputs as in `marginal_of_product`; for one
    masked token the two are the same.
    """
    token_BM = (log_retrieval_BN[:, :, None] + _of_masks(log_p_BNM, masked_BM)).logsumexp(dim=1)
    return (token_BM * masked_BM).sum(dim=-1)


def retrieval_utility(log_p_BNM: Tensor, log_p_null_BM: Tensor, masked_BM: Tensor) -> Tensor:
    """RU(z|x) = log p(y|z,x) − log p(y|∅,x): how much a passage helps compared with none: [B, N]. REALM appendix D."""
    return _of_masks(log_p_BNM - log_p_null_BM[:, None, :], masked_BM).sum(dim=-1)


def _of_masks(log_p_BNM: Tensor, masked_BM: Tensor) -> Tensor:
    """0 at positions that are not masks."""
    # Filled, not multiplied by 0: beyond an example's masks there may be −inf, and −inf · 0 is NaN.
    return log_p_BNM.masked_fill(~masked_BM[:, None, :], 0.0)


def marginal_choice_loss(score_K: Tensor, right_K: Tensor) -> Tensor:
    """−log of the softmax mass on the right choices, 0 if none is right: scalar. ORQA §6, REALM's open QA.

    In plain words: any of several choices may be right, and it does not matter which of them is taken.
    Inputs: scores [K], which are right [K]. When to use: over a large beam of passages that contain an answer
    (`log p(z|x)` of the retriever), and over all spans of the passages read that are an answer (the reader).
    """
    if not bool(right_K.any()):
        # A zero with a graph, as the other questions of the batch have. Spans beyond the input score −inf, and
        # −inf · 0 is NaN, whose gradient `nan_to_num` takes away too.
        return (score_K * 0).nan_to_num(0.0).sum()
    return score_K.logsumexp(dim=0) - score_K.masked_fill(~right_K, -torch.inf).logsumexp(dim=0)


def inverse_cloze_loss(q_BD: Tensor, z_KD: Tensor, scale: float = 1.0, first: int = 0) -> Tensor:
    """Inverse cloze task: −log softmax of each sentence's own passage among all of the batch, mean: scalar. ORQA §4.

    In plain words: which of these passages was this sentence taken from?
    Inputs: sentences' vectors [B, D], passages' [K, D], K ≥ B over all processes; the passage of sentence i is
    `first` + i. When to use: to warm up towers before anything is retrieved with them.
    """
    own_B = torch.arange(first, first + len(q_BD), device=q_BD.device)
    return torch.nn.functional.cross_entropy(scale * (q_BD @ z_KD.T), own_B)
