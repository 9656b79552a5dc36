"""The contrastive losses against a double loop in float64, their gradients, their extremes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from quoth.npm.losses import contrastive_loss, phrase_contrastive_loss

SCALE = 3.0
CHUNKS = [None, 3]


def problem(seed: int, *, queries: int = 6, tokens: int = 12, sequences: int = 3, width: int = 4) -> dict[str, Tensor]:
    """Random vectors and positives; about a third of the queries have none."""
    generator = torch.Generator().manual_seed(seed)

    def vectors(count: int) -> Tensor:
        return torch.randn(count, width, generator=generator, dtype=torch.float64)

    sequence_N = torch.arange(sequences).repeat_interleave(tokens // sequences)
    sequence_M = torch.randint(sequences, (queries,), generator=generator)
    allowed = sequence_M[:, None] != sequence_N[None, :]
    chosen = allowed & (torch.rand(queries, tokens, generator=generator) < 0.25)
    chosen[torch.randperm(queries, generator=generator)[: queries // 3]] = False
    query, row = chosen.nonzero().T
    shuffled = torch.randperm(len(query), generator=generator)
    return {
        "q": vectors(queries),
        "c": vectors(tokens),
        "sequence_M": sequence_M,
        "sequence_N": sequence_N,
        "query": query[shuffled],
        "row": row[shuffled],
    }


def library(p: dict[str, Tensor], **options: Any) -> Tensor:
    options.setdefault("scale", SCALE)
    return contrastive_loss(p["q"], p["c"], p["sequence_M"], p["sequence_N"], p["query"], p["row"], **options)


def naive(p: dict[str, Tensor], scale: float = SCALE) -> Tensor:
    losses = []
    for m in range(len(p["q"])):
        rows = p["row"][p["query"] == m].tolist()
        if not rows:
            continue
        above = sum(torch.exp(scale * p["q"][m] @ p["c"][row]) for row in rows)
        below = sum(
            torch.exp(scale * p["q"][m] @ p["c"][n])
            for n in range(len(p["c"]))
            if p["sequence_N"][n] != p["sequence_M"][m]
        )
        losses.append(-torch.log(above / below))
    return torch.stack(losses).mean()


def gradients(loss: Any, p: dict[str, Tensor]) -> tuple[Tensor, ...]:
    leaves = {**p, "q": p["q"].clone().requires_grad_(), "c": p["c"].clone().requires_grad_()}
    return torch.autograd.grad(loss(leaves), (leaves["q"], leaves["c"]))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("chunk", CHUNKS)
def test_loss_and_gradients_equal_the_double_loop(seed: int, chunk: int | None) -> None:
    p = problem(seed)
    assert library(p, chunk=chunk).item() == pytest.approx(naive(p).item(), abs=1e-10)
    for mine, theirs in zip(gradients(lambda x: library(x, chunk=chunk), p), gradients(naive, p), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=1e-8)
    single = {name: x.float() if x.is_floating_point() else x for name, x in p.items()}
    assert library(single, chunk=chunk).item() == pytest.approx(naive(p).item(), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_gradcheck(chunk: int | None) -> None:
    p = problem(11, queries=5, tokens=9, width=3)
    inputs = (p["q"].requires_grad_(), p["c"].requires_grad_())
    assert torch.autograd.gradcheck(lambda q, c: library({**p, "q": q, "c": c}, chunk=chunk), inputs)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_the_phrase_loss_is_the_start_s_and_the_end_s(chunk: int | None) -> None:
    start, end = problem(1), problem(2)
    row = (start["row"] + 1).clamp(max=len(start["c"]) - 1)
    shared = {name: start[name] for name in ("c", "sequence_M", "sequence_N", "query")}
    mine = phrase_contrastive_loss(
        start["q"],
        end["q"],
        shared["c"],
        shared["sequence_M"],
        shared["sequence_N"],
        shared["query"],
        start["row"],
        row,
        scale=SCALE,
        chunk=chunk,
    )
    expected = naive(start) + naive({**shared, "q": end["q"], "row": row})
    assert mine.item() == pytest.approx(expected.item(), abs=1e-10)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_no_positive_is_exactly_zero(chunk: int | None) -> None:
    p = problem(4)
    none = {**p, "query": p["query"][:0], "row": p["row"][:0]}
    assert library(none, chunk=chunk).item() == 0.0
    for gradient in gradients(lambda x: library(x, chunk=chunk), none):
        assert not gradient.any()


def test_no_query_is_exactly_zero() -> None:
    p = problem(4)
    empty = {**p, **{name: p[name][:0] for name in ("q", "sequence_M", "query", "row")}}
    assert library(empty).item() == 0.0
    assert not gradients(library, empty)[1].any()


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_query_without_a_positive_and_without_another_sequence_harms_nothing(chunk: int | None) -> None:
    p = problem(5, sequences=2, queries=2)
    p["sequence_N"] = torch.zeros(len(p["c"]), dtype=torch.long)
    p["sequence_M"] = torch.tensor([0, 1])
    p["query"], p["row"] = torch.tensor([1, 1]), torch.tensor([3, 4])
    assert library(p, chunk=chunk).item() == pytest.approx(naive(p).item(), abs=1e-10)
    for gradient in gradients(lambda x: library(x, chunk=chunk), p):
        assert gradient.isfinite().all()


@pytest.mark.parametrize(("dtype", "scale"), [(torch.float32, 1e3), (torch.float64, 1e6)])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_very_large_similarities_stay_finite(dtype: torch.dtype, scale: float, chunk: int | None) -> None:
    p = {name: x.to(dtype) if x.is_floating_point() else x for name, x in problem(6).items()}
    assert math.isfinite(library(p, scale=scale, chunk=chunk).item())
    for gradient in gradients(lambda x: library(x, scale=scale, chunk=chunk), p):
        assert gradient.isfinite().all()


def test_chunks_do_not_keep_the_similarities_for_the_backward_pass() -> None:
    p = problem(7, queries=64, tokens=63)
    p["q"].requires_grad_()

    def kept(chunk: int | None) -> int:
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):
            library(p, chunk=chunk)
        return max(sizes)

    assert kept(None) >= 64 * 63
    assert kept(8) < 64 * 63
