"""REALM's equations: by hand, at their edges, and against loops in float64, values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from quoth.realm.losses import (
    inverse_cloze_loss,
    log_retrieval,
    marginal_choice_loss,
    marginal_of_product,
    marginal_per_token,
    relevance,
    retrieval_utility,
)

B, N, M, D = 3, 4, 5, 6
MASKED = torch.tensor([[True, True, True, False, False], [True, False, True, True, True], [False, True] + [False] * 3])
"""Examples of three masks, of four and of one."""


def responsibility(log_p_BN: Tensor, log_retrieval_BN: Tensor) -> Tensor:
    """r(z) = [p(y|z,x) / p(y|x) − 1] p(z|x), the gradient of log p(y|x) for f(x, z): [B, N]. REALM §3.3, appendix A."""
    log_marginal_B1 = (log_retrieval_BN + log_p_BN).logsumexp(dim=-1, keepdim=True)
    return ((log_p_BN - log_marginal_B1).exp() - 1) * log_retrieval_BN.exp()


@pytest.fixture
def drawn() -> tuple[Tensor, Tensor, Tensor]:
    """Relevance [B, N], log p(y_m|z,x) [B, N, M], both with gradients, and which of the M are masks."""
    torch.manual_seed(0)
    relevance_BN = torch.randn(B, N, dtype=torch.float64, requires_grad=True)
    logits_BNMV = torch.randn(B, N, M, 7, dtype=torch.float64)
    return relevance_BN, logits_BNMV.log_softmax(-1)[..., 0].clone().requires_grad_(), MASKED


def probabilities(relevance_N: Tensor) -> list[Tensor]:
    """p(z|x), spelled out."""
    weights = [math.e**each for each in relevance_N]
    return [each / sum(weights) for each in weights]


def product(relevance_N: Tensor, log_p_NM: Tensor, masked_M: Tensor) -> Tensor:
    """p(y|x) = Σ_z p(z|x) Π_m p(y_m|z,x), spelled out."""
    total = torch.zeros((), dtype=torch.float64)
    for p_z, log_p_M in zip(probabilities(relevance_N), log_p_NM, strict=True):
        term = p_z
        for log_p, masked in zip(log_p_M, masked_M, strict=True):
            if masked:
                term = term * log_p.exp()
        total = total + term
    return total


def per_token(relevance_N: Tensor, log_p_NM: Tensor, masked_M: Tensor) -> Tensor:
    """Π_m Σ_z p(z|x) p(y_m|z,x), spelled out."""
    total = torch.ones((), dtype=torch.float64)
    for m in range(len(masked_M)):
        if masked_M[m]:
            p_z = probabilities(relevance_N)
            total = total * sum(each * log_p_NM[n, m].exp() for n, each in enumerate(p_z))
    return total


def gradients(value: Tensor, *of: Tensor) -> Iterator[Tensor]:
    yield from torch.autograd.grad(value, of, retain_graph=True)


def test_shapes(drawn: tuple[Tensor, Tensor, Tensor]) -> None:
    relevance_BN, log_p_BNM, masked_BM = drawn
    assert relevance(torch.zeros(B, D), torch.zeros(B, N, D)).shape == (B, N)
    assert log_retrieval(relevance_BN).shape == (B, N)
    for marginal in (marginal_of_product, marginal_per_token):
        assert marginal(log_p_BNM, log_retrieval(relevance_BN), masked_BM).shape == (B,)
    assert retrieval_utility(log_p_BNM, log_p_BNM[:, 0], masked_BM).shape == (B, N)
    assert marginal_choice_loss(torch.zeros(4), torch.ones(4, dtype=torch.bool)).shape == ()
    assert inverse_cloze_loss(torch.zeros(B, D), torch.zeros(N, D)).shape == ()


def test_values_by_hand() -> None:
    q_BD, z_BND = torch.tensor([[1.0, 2.0]]), torch.tensor([[[3.0, 1.0], [0.0, -1.0]]])
    assert relevance(q_BD, z_BND, scale=0.5).tolist() == [[2.5, -1.0]]
    log_p_z = log_retrieval(torch.tensor([[math.log(3.0), 0.0]]))
    torch.testing.assert_close(log_p_z.exp(), torch.tensor([[0.75, 0.25]]))
    log_p_BNM = torch.tensor([[[0.5, 0.2], [0.1, 0.8]]]).log()
    both, one = torch.tensor([[True, True]]), torch.tensor([[True, False]])
    assert marginal_of_product(log_p_BNM, log_p_z, both).exp().item() == pytest.approx(0.75 * 0.1 + 0.25 * 0.08)
    assert marginal_per_token(log_p_BNM, log_p_z, both).exp().item() == pytest.approx(0.4 * 0.35)
    assert marginal_of_product(log_p_BNM, log_p_z, one).exp().item() == pytest.approx(0.4)
    assert marginal_per_token(log_p_BNM, log_p_z, one).exp().item() == pytest.approx(0.4)
    null_BM = torch.tensor([[0.25, 0.4]]).log()
    assert retrieval_utility(log_p_BNM, null_BM, both).exp()[0].tolist() == pytest.approx([1.0, 0.8])
    scores, right = torch.tensor([1.0, 2.0, 5.0]).log(), torch.tensor([True, False, True])
    assert marginal_choice_loss(scores, right).item() == pytest.approx(-math.log(6 / 8))
    asked, passages = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    assert inverse_cloze_loss(asked, passages).item() == pytest.approx((math.log(4) + math.log(2)) / 2)
    assert inverse_cloze_loss(asked[:1], passages, 2.0, first=1).item() == pytest.approx(-math.log(9 / 10))


def test_relevance_is_that_of_each_examples_own_candidates() -> None:
    q_BD, z_BND = torch.randn(B, D, dtype=torch.float64), torch.randn(B, N, D, dtype=torch.float64)
    expected = [[2.5 * float(sum(q_BD[b] * z_BND[b, n])) for n in range(N)] for b in range(B)]
    torch.testing.assert_close(relevance(q_BD, z_BND, 2.5), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(("form", "spelled_out"), [(marginal_of_product, product), (marginal_per_token, per_token)])
def test_marginals_equal_loops(
    drawn: tuple[Tensor, Tensor, Tensor], form: Callable[..., Tensor], spelled_out: Callable[..., Tensor]
) -> None:
    relevance_BN, log_p_BNM, masked_BM = drawn
    found_B = form(log_p_BNM, log_retrieval(relevance_BN), masked_BM)
    expected_B = torch.stack([spelled_out(relevance_BN[b], log_p_BNM[b], masked_BM[b]).log() for b in range(B)])
    torch.testing.assert_close(found_B, expected_B)
    both = (gradients(value_B.sum(), relevance_BN, log_p_BNM) for value_B in (found_B, expected_B))
    for found, expected in zip(*both, strict=True):
        torch.testing.assert_close(found, expected)
    assert found_B.exp().max() < 1


def test_the_two_marginals_are_the_same_for_one_mask_only(drawn: tuple[Tensor, Tensor, Tensor]) -> None:
    relevance_BN, log_p_BNM, masked_BM = drawn
    forms = (marginal_of_product, marginal_per_token)
    first, second = (form(log_p_BNM, log_retrieval(relevance_BN), masked_BM) for form in forms)
    assert torch.isclose(first, second).tolist() == [False, False, True]


def test_what_is_no_mask_does_not_matter() -> None:
    log_p_BNM = torch.tensor([[[0.5, 0.0], [0.1, 0.0]]]).log().requires_grad_()
    one, log_p_z = torch.tensor([[True, False]]), torch.tensor([[0.75, 0.25]]).log()
    for value in (
        marginal_of_product(log_p_BNM, log_p_z, one),
        marginal_per_token(log_p_BNM, log_p_z, one),
        retrieval_utility(log_p_BNM, torch.zeros(1, 2), one).sum(),
    ):
        assert value.isfinite().all()
        (grad,) = gradients(value.sum(), log_p_BNM)
        assert grad.isfinite().all()
        assert grad[..., 1].tolist() == [[0.0, 0.0]]


def test_large_scores_do_not_overflow() -> None:
    relevance_BN = torch.tensor([[1e4, 1e4 - 1, -1e4]])
    log_p_BNM = torch.tensor([[[-1e3], [-1e3], [-1e4]]])
    every = torch.ones(1, 1, dtype=torch.bool)
    for form in (marginal_of_product, marginal_per_token):
        assert form(log_p_BNM, log_retrieval(relevance_BN), every).item() == pytest.approx(-1e3)


def test_responsibility_is_the_gradient_of_the_marginal(drawn: tuple[Tensor, Tensor, Tensor]) -> None:
    relevance_BN, log_p_BNM, masked_BM = drawn
    (by_autograd,) = gradients(
        marginal_of_product(log_p_BNM, log_retrieval(relevance_BN), masked_BM).sum(), relevance_BN
    )
    log_p_BN = (log_p_BNM * masked_BM[:, None]).sum(-1)
    found = responsibility(log_p_BN, log_retrieval(relevance_BN))
    torch.testing.assert_close(found, by_autograd)
    assert found.sum(-1).abs().max() < 1e-12, "what pulls some passages near pushes others away"


def test_one_perfect_passage_is_supervised_as_if_it_were_known() -> None:
    relevance_BN = torch.tensor([[0.3, -1.2, 2.0]], dtype=torch.float64, requires_grad=True)
    log_p_BNM = torch.tensor([[[0.0], [1.0], [0.0]]], dtype=torch.float64).log()
    every = torch.ones(1, 1, dtype=torch.bool)
    (known,) = gradients(log_retrieval(relevance_BN)[0, 1], relevance_BN)
    for form in (marginal_of_product, marginal_per_token):
        (found,) = gradients(form(log_p_BNM, log_retrieval(relevance_BN), every)[0], relevance_BN)
        torch.testing.assert_close(found, known)


def test_utility_equals_loops_and_is_nothing_for_the_null_document(drawn: tuple[Tensor, Tensor, Tensor]) -> None:
    log_p_BNM, masked_BM = drawn[1].detach(), drawn[2]
    found = retrieval_utility(log_p_BNM, log_p_BNM[:, 0], masked_BM)
    for b in range(B):
        for n in range(N):
            gains = [log_p_BNM[b, n, m] - log_p_BNM[b, 0, m] for m in range(M) if masked_BM[b, m]]
            assert found[b, n].item() == pytest.approx(float(sum(gains)))
    assert found[:, 0].tolist() == [0.0] * B


@pytest.mark.parametrize("right", [[True] * 4, [False, True, False, True], [False, False, True, False]])
def test_marginal_choice_equals_loops(right: list[bool]) -> None:
    score_K = torch.tensor([0.5, -2.0, 3.0, 1.0], dtype=torch.float64, requires_grad=True)
    weights = [math.e**each for each in score_K]
    expected = -(sum(w for w, r in zip(weights, right, strict=True) if r) / sum(weights)).log()  # type: ignore[union-attr]
    found = marginal_choice_loss(score_K, torch.tensor(right))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(next(gradients(each, score_K)) for each in (found, expected)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scores", [[], [0.0, 2.0], [1.0, -math.inf]])
def test_without_a_right_choice_there_is_nothing_to_learn(scores: list[float]) -> None:
    score_K = torch.tensor(scores, requires_grad=True)
    loss = marginal_choice_loss(score_K, torch.zeros(len(scores), dtype=torch.bool))
    loss.backward()  # type: ignore[no-untyped-call]
    assert (loss.item(), score_K.grad.tolist()) == (0.0, [0.0] * len(scores))  # type: ignore[union-attr]


def test_what_cannot_be_chosen_takes_no_part() -> None:
    score_K = torch.tensor([1.0, -math.inf, 0.5], requires_grad=True)
    loss = marginal_choice_loss(score_K, torch.tensor([True, False, False]))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-0.5)))
    assert score_K.grad is not None
    assert score_K.grad[1] == 0
    assert score_K.grad.isfinite().all()


def test_inverse_cloze_equals_loops() -> None:
    torch.manual_seed(1)
    q_BD, z_KD = torch.randn(3, D, dtype=torch.float64), torch.randn(5, D, dtype=torch.float64)
    losses = []
    for i in range(3):
        weights = [math.e ** float(2.0 * (q_BD[i] @ z_D)) for z_D in z_KD]
        losses.append(-math.log(weights[i + 2] / sum(weights)))
    assert inverse_cloze_loss(q_BD, z_KD, 2.0, first=2).item() == pytest.approx(sum(losses) / 3)
