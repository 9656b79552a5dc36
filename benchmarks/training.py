"""Masking, the contrastive loss, and training steps."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.measure import SAMPLES, Result, best_seconds, peak_bytes
from quoth import read_documents
from quoth.encoders.transformer import load_base, pad
from quoth.hub import locate
from quoth.npm.batches import TokenizedDocuments, tokenize_documents
from quoth.npm.config import NPMConfig
from quoth.npm.losses import phrase_contrastive_loss
from quoth.npm.masking import mask_spans
from quoth.npm.task import NPMTask
from quoth.text.boundaries import MAY_END, MAY_START
from quoth.text.tokenizer import TextTokenizer
from quoth.training.recipes import RECIPES

QUERIES, TOKENS, DIMENSIONS = 4096, 32768, 384


def run() -> Iterator[Result]:
    """Every benchmark of training."""
    task = mini_task()
    yield masking(task.data)
    yield from loss()
    yield steps(task)


def mini_task(**changed: Any) -> NPMTask:
    """What npm-mini-cpu trains, on the samples, with some settings changed."""
    source = locate("quoth-mini-base", NPMConfig)
    model, hf = load_base(source.encoder)
    tokenizer = TextTokenizer(hf, num_masks=2, max_tokens=256)
    data = tokenize_documents(read_documents(SAMPLES), tokenizer)
    return NPMTask(model, tokenizer, source.config, data, replace(RECIPES["npm-mini-cpu"].config, **changed))


def masking(data: TokenizedDocuments) -> Result:
    """Span masking of a batch of 128 passages."""
    count = int(data.offsets[128])
    ids_N, flags_N = np.asarray(data.ids[:count], np.int64), np.asarray(data.flags[:count])
    sequence_N = np.repeat(np.arange(128), np.diff(data.offsets[:129]))
    ours = best_seconds(lambda: mask_spans(ids_N, sequence_N, flags_N, np.random.default_rng(0)))
    peer = best_seconds(lambda: plain_mask_spans(ids_N.tolist(), sequence_N.tolist(), flags_N.tolist()), repeats=1)
    return Result(
        "span masking, 128 passages, tokens/s a core",
        f"{count / ours:,.0f}",
        f"{count / peer:,.0f} (the same rules in plain Python)",
        peer / ours,
    )


def plain_mask_spans(ids: list[int], sequence: list[int], flags: list[int]) -> list[tuple[int, int, list[int]]]:
    """NPM §3.2.1 and A.2 with lists and dictionaries."""
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for start in range(len(ids)):
        for length in range(1, 11):
            last = start + length - 1
            if last >= len(ids) or sequence[last] != sequence[start]:
                break
            if flags[start] & MAY_START and flags[last] & MAY_END:
                places[tuple(ids[start : last + 1])].append(start)
    rng, taken, used = random.Random(0), set[int](), Counter[tuple[int, ...]]()
    found = []
    for s in range(max(sequence) + 1):
        rows = [i for i, each in enumerate(sequence) if each == s]
        candidates: dict[int, list[int]] = defaultdict(list)
        for start in rows:
            for length in range(1, 11):
                others = places.get(tuple(ids[start : start + length]), [])
                if start + length <= rows[-1] + 1 and any(sequence[other] != s for other in others):
                    candidates[length].append(start)
        budget = 0.15 * len(rows)
        for length in candidates:
            rng.shuffle(candidates[length])
        while budget >= 1 and any(candidates.values()):
            length = 1
            while length < 10 and rng.random() < 0.5:
                length += 1
            length = min(length, int(budget))
            while length > 1 and not candidates[length]:
                length -= 1
            if not candidates[length]:
                break
            start = candidates[length].pop()
            gram = tuple(ids[start : start + length])
            if used[gram] >= 10 or taken.intersection(range(start, start + length)):
                continue
            used[gram] += 1
            taken.update(range(start, start + length))
            budget -= length
            found.append((start, length, [other for other in places[gram] if sequence[other] != s]))
    return found


def _problem() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    vectors = [torch.randn(n, DIMENSIONS, generator=generator) for n in (QUERIES, QUERIES, TOKENS)]
    q_start, q_end, c = (torch.nn.functional.normalize(each, dim=-1).requires_grad_() for each in vectors)
    sequence_N = torch.arange(TOKENS) // 128
    sequence_M = torch.randint(TOKENS // 128, (QUERIES,), generator=generator)
    query = torch.arange(QUERIES).repeat_interleave(4)
    start = (sequence_M[query] * 128 + 128 + torch.randint(TOKENS - 256, (len(query),), generator=generator)) % TOKENS
    return {"vectors": (q_start, q_end, c), "places": (sequence_M, sequence_N, query, start, start)}


def chunked_loss() -> None:
    """Ours: 1,024 queries' similarities at a time."""
    problem = _problem()
    phrase_contrastive_loss(*problem["vectors"], *problem["places"], scale=20.0, chunk=1024).backward()


def naive_loss() -> None:
    """The same loss by whole matrices of similarities and boolean masks, as the formula reads."""
    problem = _problem()
    q_start, q_end, c = problem["vectors"]
    sequence_M, sequence_N, query, start, end = problem["places"]
    other_MN = sequence_M[:, None] != sequence_N[None, :]
    total = torch.zeros(())
    for q_MD, row in ((q_start, start), (q_end, end)):
        positive_MN = torch.zeros_like(other_MN)
        positive_MN[query, row] = True
        sim_MN = 20.0 * q_MD @ c.T
        above = sim_MN.masked_fill(~positive_MN, -torch.inf).logsumexp(1)
        total = total + (sim_MN.masked_fill(~other_MN, -torch.inf).logsumexp(1) - above).mean()
    total.backward()


def loss() -> Iterator[Result]:
    """Time and memory of the phrase-contrastive loss with its gradient."""
    size = f"{QUERIES:,} spans × {TOKENS:,} tokens"
    ours, peer = best_seconds(chunked_loss, 1), best_seconds(naive_loss, 1)
    yield Result(f"loss and gradient, {size}", f"{ours:.2f} s", f"{peer:.2f} s (whole matrices)", peer / ours)
    ours, peer = peak_bytes(chunked_loss), peak_bytes(naive_loss)
    yield Result(
        f"loss and gradient, {size}, peak memory",
        f"{ours / 1e9:.2f} GB",
        f"{peer / 1e9:.2f} GB (whole matrices)",
        peer / ours,
    )


def steps(task: NPMTask) -> Result:
    """Training steps against three times the encoder's bare forward over the same inputs."""
    batch = task.batches(0)[0]
    ids_BT, attention_BT = pad(batch.inputs, 0)

    def forward() -> None:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            task.model.get_base_model()(input_ids=ids_BT, attention_mask=attention_BT)

    with task.model.disable_adapter():
        bare = 3 * best_seconds(forward)
    step = best_seconds(lambda: task.contrast.backward(batch))
    return Result(
        "training step of npm-mini-cpu, body tokens/s",
        f"{batch.num_tokens / step:,.0f}",
        f"{batch.num_tokens / bare:,.0f} (three times the bare forward)",
        bare / step,
    )
