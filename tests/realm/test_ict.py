"""The inverse cloze task: its examples, its loss by brute force, several processes as one, that it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.realm.config import ICTConfig
from quoth.realm.ict import Example, ICTTask
from quoth.realm.trained import TrainedREALM
from quoth.records import Document
from quoth.text.passages import sentences
from quoth.training.distributed import World
from quoth.training.trainer import Progress, Trainer
from ranks import together
from realm_runs import (
    CITIES,
    SENTENCES,
    assert_gradients_of_both,
    assert_same_gradients,
    doubled,
    make_corpus,
    passage_vector,
    query_vector,
    scattered,
    trained,
)

TOWERS = ("passages", "queries")
PAIRS = [Document(name, name, " ".join(SENTENCES).format(name, city)) for name, city in CITIES.items()]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c", PAIRS)


def make_task(model: TrainedREALM, corpus: Corpus, world: World | None = None, **settings: Any) -> ICTTask:
    config = ICTConfig(**{"batch_size": 4, "lora_rank": 0, **settings})
    return ICTTask(model, corpus, config, world or World())


def drawn(task: ICTTask, step: int) -> list[Example]:
    rng = np.random.default_rng((task.config.seed, 3, step))
    return task._examples(rng)


@pytest.mark.parametrize("keep", [0.0, 0.25, 1.0])
def test_a_sentence_is_taken_out_of_its_passage(folder: Path, corpus: Corpus, keep: float) -> None:
    task, kept, taken = make_task(trained(folder), corpus, keep_sentence=keep), 0, set()
    rng = np.random.default_rng(0)
    for row in rng.choice(corpus.live_rows(), 400).tolist():
        sentence, passage, title = task._example(row, rng) or pytest.fail("a passage of two sentences is an example")
        whole = corpus.passage(row)
        assert sentence in [whole.text[start:end] for start, end in sentences(whole.text)]
        assert title == whole.title
        if sentence in passage:
            assert passage == whole.text
            kept += 1
        else:
            assert passage == whole.text.replace(sentence, "").strip()
        taken.add(whole.text.startswith(sentence))
    assert kept / 400 == pytest.approx(keep, abs=0.08)
    assert taken == {True, False}


def test_a_passage_of_one_sentence_is_no_example(folder: Path, tmp_path: Path) -> None:
    short = [Document(f"short {i}", "", f"One sentence {i}.") for i in range(6)]
    corpus = make_corpus(tmp_path / "c", [*short[:3], *PAIRS[:4], *short[3:]])
    titles = {document.title for document in PAIRS[:4]}
    for step in range(5):
        examples = drawn(make_task(trained(folder), corpus, keep_sentence=0.0), step)
        assert {title for _, _, title in examples} == titles
        assert all(sentence not in passage for sentence, passage, _ in examples)
    with pytest.raises(
        InputError,
        match=r"batch_size is 5; it must be from 2 to the number of passages with two sentences or more \(4\)",
    ):
        drawn(make_task(trained(folder), corpus, batch_size=5), 0)


@pytest.mark.parametrize("own_queries", [False, True])
def test_a_step_is_the_softmax_over_the_batch(folder: Path, corpus: Corpus, own_queries: bool) -> None:
    model = scattered(trained(folder, TOWERS, own_queries=own_queries))
    task, exact = make_task(model, corpus), doubled(model)
    examples = drawn(task, 5)
    hf = model.tokenizer.hf
    q = [query_vector(exact, hf(sentence, add_special_tokens=False)["input_ids"]) for sentence, _, _ in examples]
    z = [passage_vector(exact, passage, title) for _, passage, title in examples]
    sims = torch.stack([torch.stack([a @ b for b in z]) for a in q])
    loss = sum(-sims[i].softmax(dim=0)[i].log() for i in range(4)) / 4
    loss.backward()
    step = task.backward(5)
    assert step.loss == pytest.approx(loss.item(), abs=1e-5)
    assert step.tokens > 0
    assert_same_gradients(model, exact)
    assert not any(name.startswith("reader.") for name in model.parameters)


def gradients(world: World, folder: Path, path: Path, output: Path) -> float:
    model = scattered(trained(folder, TOWERS, own_queries=True))
    step = make_task(model, Corpus.open(path), world).backward(5)
    found = {name: each.grad for name, each in model.parameters.items() if each.grad is not None}
    save_file(found, f"{output}-{world.rank}")
    return step.loss


def test_two_processes_give_the_gradients_of_one(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    losses = together(gradients, folder, corpus.path, tmp_path / "gradients")
    model = scattered(trained(folder, TOWERS, own_queries=True))
    step = make_task(model, corpus).backward(5)
    assert losses == pytest.approx([step.loss] * 2, abs=1e-5)
    assert_gradients_of_both(tmp_path / "gradients", model, atol=1e-5, rtol=1e-3)


def test_it_learns_which_passage_a_sentence_was_taken_from(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    task = make_task(trained(folder, TOWERS), corpus, batch_size=8, steps=40, learning_rate=2e-3, log_every=10)
    seen: list[Progress] = []
    Trainer(task, task.config, tmp_path).run(seen.append)
    assert seen[-1].loss < 0.6 * seen[0].loss


def test_batches_that_cannot_be_are_refused(folder: Path, corpus: Corpus) -> None:
    model = trained(folder)
    for size in (1, 9):
        with pytest.raises(
            InputError, match=rf"batch_size is {size}; it must be from 2 to the number of passages \(8\)"
        ):
            make_task(model, corpus, batch_size=size)
    with pytest.raises(InputError, match=r"batch_size \(4\) must be a multiple of the number of processes \(3\)"):
        make_task(model, corpus, World(0, 3))
    for keep in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=r"keep_sentence is .*; it must be .*from 0 to 1"):
            ICTConfig(keep_sentence=keep)
