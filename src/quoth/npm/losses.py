"""Contrastive losses over the tokens of a batch, and the masked LM's.

Knows: vectors, which rows belong to which sequence, positives. Does not know: how they were encoded or masked.

Shape suffixes that differ from the project's: M queries.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from quoth.training.grouped import grouped_logsumexp


def contrastive_loss(
    q_MD: Tensor,
    c_ND: Tensor,
    query_sequence_M: Tensor,
    sequence_N: Tensor,
    positive_query: Tensor,
    positive_row: Tensor,
    *,
    scale: float,
    chunk: int | None = None,
) -> Tensor:
    """Token-contrastive loss (NPM A.3): pull each query to the same token elsewhere, push it from all others.

    In plain words: of all tokens in other sequences, how much of the softmax falls on the right ones?

    Inputs: queries [M, D]; batch tokens [N, D]; the sequence of each; pairs (query, row) of positives, rows in
    other sequences than the query's. Queries without a positive are left out.
    Formula: mean over queries of −log Σ_{positives} exp(s q·c) / Σ_{tokens of other sequences} exp(s q·c).
    When to use: NPM-single, and each end of a span in `phrase_contrastive_loss`. With `chunk`, the similarities of at
    most this many queries are held at a time, and computed again in the backward pass.
    """
    has_positive_M = torch.bincount(positive_query, minlength=len(q_MD)) > 0
    if not bool(has_positive_M.any()):
        # A zero with a graph: the caller calls `backward` in every process, whatever its part of the batch has.
        return (q_MD.sum() + c_ND.sum()) * 0
    order = torch.argsort(positive_query, stable=True)
    positive_query, positive_row = positive_query[order], positive_row[order]
    # Only one chunk's similarities [chunk, N] exist at a time, instead of [M, N] with its masks; the price is that each
    # is computed twice, forward and backward. The pairs are sorted, so a chunk's are one range.
    size = chunk or len(q_MD)
    terms = []
    for first in range(0, len(q_MD), size):
        last = min(first + size, len(q_MD))
        left, right = torch.searchsorted(positive_query, torch.tensor([first, last], device=q_MD.device)).tolist()
        sequences = query_sequence_M[first:last], sequence_N
        positives = positive_query[left:right] - first, positive_row[left:right]
        arguments = q_MD[first:last], c_ND, sequences, positives, scale
        if chunk and torch.is_grad_enabled():
            terms.append(checkpoint(_negative_log_shares, *arguments, use_reentrant=False))
        else:
            terms.append(_negative_log_shares(*arguments))
    return torch.cat(terms)[has_positive_M].mean()


def _negative_log_shares(
    q_MD: Tensor, c_ND: Tensor, sequences: tuple[Tensor, Tensor], positives: tuple[Tensor, Tensor], scale: float
) -> Tensor:
    """−log of the softmax mass on the positives, per query (meaningless for a query without one): [M].

    `sequences` are those of the queries [M] and of the tokens [N], `positives` the queries and rows of all pairs.
    """
    query_sequence_M, sequence_N = sequences
    sim_MN = scale * (q_MD @ c_ND.T)
    own_MN = query_sequence_M[:, None] == sequence_N[None, :]
    everything_M = sim_MN.masked_fill(own_MN, -torch.inf).logsumexp(dim=1)
    return everything_M - grouped_logsumexp(sim_MN[positives], positives[0], len(q_MD))


def phrase_contrastive_loss(
    q_start_MD: Tensor,
    q_end_MD: Tensor,
    c_ND: Tensor,
    query_sequence_M: Tensor,
    sequence_N: Tensor,
    positive_query: Tensor,
    positive_start: Tensor,
    positive_end: Tensor,
    *,
    scale: float,
    chunk: int | None = None,
) -> Tensor:
    """Phrase-contrastive loss (NPM §3.2.2): the start of a masked phrase is pulled to where the phrase starts in
    other sequences, its end to where it ends.

    Inputs as in `contrastive_loss`, with a start and an end query per span. Formula: the sum of the two contrastive
    losses. When to use: NPM with span masking.
    """
    sequences = query_sequence_M, sequence_N
    start = contrastive_loss(q_start_MD, c_ND, *sequences, positive_query, positive_start, scale=scale, chunk=chunk)
    end = contrastive_loss(q_end_MD, c_ND, *sequences, positive_query, positive_end, scale=scale, chunk=chunk)
    return start + end


def masked_lm_loss(logits_MV: Tensor, token_M: Tensor, count: int) -> Tensor:
    """The masked language model's loss (Devlin et al. 2019, §3.1): each mask predicts the token that it hides.

    Inputs: logits of the vocabulary at each mask [M, V]; the hidden tokens [M]; the masks of the whole batch, of which
    these may be a part. Formula: −Σ log p(token) / count. When to use: NPM's parametric twin, or as a part of NPM's
    loss.
    """
    return torch.nn.functional.cross_entropy(logits_MV, token_M, reduction="sum") / max(count, 1)
