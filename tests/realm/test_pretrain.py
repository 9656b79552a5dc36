"""REALM's pre-training step against the paper's equation, each candidate encoded alone; and that it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.hub import locate
from quoth.realm.config import PretrainConfig, REALMConfig
from quoth.realm.index_refresh import IndexRefresher
from quoth.realm.passages import PassageEncoder
from quoth.realm.pretrain import PretrainTask, rows_holding
from quoth.realm.salient import Masked, MaskedTexts
from quoth.realm.trained import TrainedREALM
from quoth.records import Document, Passage
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.trainer import Progress, Trainer
from ranks import together
from realm_runs import (
    DOCUMENTS,
    Names,
    Snapshot,
    assert_gradients_of_both,
    assert_same_gradients,
    doubled,
    log_likelihoods,
    make_corpus,
    make_model,
    passage_vector,
    query_vector,
    scattered,
    slow_log_likelihood,
    trained,
)

SETTINGS = {"batch_size": 4, "asynchronous": False, "lora_rank": 0, "refresh_every": 10}


def make_task(
    model: TrainedREALM, corpus: Corpus, neighbourhood: Any = None, world: World = SINGLE_PROCESS, **settings: Any
) -> PretrainTask:
    config = PretrainConfig(**{**SETTINGS, **settings})
    texts = MaskedTexts(corpus, model.tokenizer, model.config.query_tokens - 2, config.masking, Names())
    return PretrainTask(model, texts, neighbourhood or Snapshot(model, corpus), config, world=world)


def drawn(task: PretrainTask, step: int) -> list[Masked]:
    return task.texts.draw(task.config.batch_size, np.random.default_rng((task.config.seed, 2, step)))


@pytest.mark.parametrize("masking", ["salient", "spans"])
@pytest.mark.parametrize("marginal", ["product", "token"])
@pytest.mark.parametrize("own_queries", [False, True])
def test_a_step_is_the_papers_equation(
    folder: Path, corpus: Corpus, masking: str, marginal: str, own_queries: bool
) -> None:
    model = scattered(trained(folder, own_queries=own_queries), seed=1)
    task = make_task(model, corpus, masking=masking, marginal=marginal)
    exact, examples = doubled(model), drawn(task, 3)
    step = task.backward(3)
    per_token = marginal == "token"
    count = sum(len(each.hidden_M) for each in examples) if per_token else len(examples)
    assert len({len(each.hidden_M) for each in examples}) > 1 or masking == "salient"
    found = zip(examples, task._neighbourhood.found, strict=True)
    loss = -torch.stack([slow_log_likelihood(exact, *each, per_token) for each in found]).sum() / count
    loss.backward()
    assert step.loss == pytest.approx(loss.item(), abs=1e-5)
    assert step.skipped == 0
    assert_same_gradients(model, exact)


@pytest.mark.parametrize("marginal", ["product", "token"])
@pytest.mark.parametrize("alone", [0, 9])
def test_parts_add_up_to_the_batch(folder: Path, corpus: Corpus, marginal: str, alone: int) -> None:
    steps, models = [], []
    for size in (0, 3):
        models.append(scattered(trained(folder), seed=1))
        task = make_task(
            models[-1], corpus, masking="spans", marginal=marginal, mini_batch_size=size, mlm_warmup_steps=alone
        )
        steps.append(task.backward(3))
    whole, parts = steps
    assert parts.loss == pytest.approx(whole.loss, abs=1e-5)
    assert parts.skipped == whole.skipped
    assert parts.tokens >= whole.tokens
    assert parts.measures == pytest.approx(whole.measures, abs=1e-4)
    for name, parameter in models[0].parameters.items():
        if parameter.grad is not None:
            torch.testing.assert_close(models[1].parameters[name].grad, parameter.grad, atol=1e-5, rtol=1e-3)


def gradients(world: World, folder: Path, path: Path, output: Path) -> float:
    corpus = Corpus.open(path)
    model = scattered(trained(folder), seed=1)
    index = IndexRefresher(output, corpus, 1, asynchronous=False, world=world)
    task = make_task(model, corpus, index, world, masking="spans")
    task.backward(2)
    scattered(model, seed=2)
    for parameter in model.parameters.values():
        parameter.grad = None
    loss = task.backward(3).loss
    save_file({name: each.grad for name, each in model.parameters.items()}, f"{output}-{world.rank}")
    return loss


def test_two_processes_give_the_gradients_of_one(folder: Path, tmp_path: Path) -> None:
    """Also after the index was made again."""
    corpus = make_corpus(tmp_path / "c")
    losses = together(gradients, folder, corpus.path, tmp_path / "two")
    model = scattered(trained(folder), seed=1)
    scattered(model, seed=2)
    step = make_task(model, corpus, masking="spans").backward(3)
    assert losses == pytest.approx([step.loss] * 2, abs=2e-3)
    assert_gradients_of_both(tmp_path / "two", model, atol=1e-4, rtol=1e-2)


def test_the_null_document_comes_first(folder: Path, corpus: Corpus) -> None:
    model = scattered(trained(folder), seed=1)
    task = make_task(model, corpus)
    examples = drawn(task, 0)
    with torch.no_grad():
        found, tokens = task.marginal(examples)
        assert found.log_p_BNM.shape[:2] == found.relevance_BN.shape == (4, 4)
        for b, example in enumerate(examples):
            q_D = query_vector(model, example.ids)
            assert float(found.relevance_BN[b, 0]) == pytest.approx(
                float(q_D @ passage_vector(model, "", "")), abs=1e-4
            )
            nothing = log_likelihoods(model, example, "", "")
            torch.testing.assert_close(found.log_p_BNM[b, 0, : len(nothing)], nothing, atol=1e-4, rtol=1e-4)
            assert not found.log_p_BNM[b, :, len(nothing) :].any()
            assert found.masked_BM[b].sum() == len(nothing)
    passages = {passage.row: passage for each in task._neighbourhood.found for passage in each}
    assert tokens > 16 * 4 + 5 * len(passages)


@pytest.mark.parametrize("trivial", ["document", "passage"])
def test_what_is_trivial_is_never_retrieved(folder: Path, tmp_path: Path, trivial: str) -> None:
    documents = [Document(str(i), "", "\n\n".join(d.text for d in DOCUMENTS[i : i + 3])) for i in range(0, 15, 3)]
    corpus = Corpus.create(tmp_path / "c", splitter="words:12")
    corpus.add(documents)
    assert corpus.num_passages > 2 * len(documents)
    task = make_task(trained(folder), corpus, exclude_self=trivial, batch_size=12)
    shared = 0
    for step in range(3):
        examples = drawn(task, step)
        task.backward(step)
        for example, found in zip(examples, task._neighbourhood.found, strict=True):
            assert example.passage.row not in {each.row for each in found}
            shared += example.passage.document_id in {each.document_id for each in found}
            assert len(found) == 3
    assert bool(shared) == (trivial == "passage")


def test_too_few_passages_are_refused(folder: Path, tmp_path: Path) -> None:
    model = trained(folder)
    one = [Document(name, "", f"{name} sings.") for name in ("Paris", "Athens", "Seoul", "Cairo", "Delhi")]
    few = make_corpus(tmp_path / "few", DOCUMENTS[:3])
    with pytest.raises(
        InputError, match="3 passages are to be retrieved for an example, but only 2 are not of its own"
    ):
        make_task(model, few, exclude_self="passage")
    uneven = Corpus.create(tmp_path / "uneven", splitter="words:12")
    uneven.add([Document("long", "", " ".join(d.text for d in DOCUMENTS)), *one[:2]])
    assert uneven.num_passages > 8
    make_task(model, uneven, exclude_self="passage")
    with pytest.raises(InputError, match="but only 2 are not of its own document; give more documents"):
        make_task(model, uneven)
    uneven.add(one[2:3])
    make_task(model, uneven)
    uneven.delete(["Paris"])
    with pytest.raises(InputError, match="only 2"):
        make_task(model, uneven)
    uneven.delete(["long"])
    uneven.add(one[3:])
    assert uneven.num_passages == 4
    make_task(model, uneven)


NEWS = [Document(f"news {i}", "", f"Today {d.title} was seen in {d.text}") for i, d in enumerate(DOCUMENTS)]


@pytest.mark.parametrize("trivial", ["document", "passage"])
def test_texts_of_one_corpus_learn_from_another(folder: Path, corpus: Corpus, tmp_path: Path, trivial: str) -> None:
    """p(y|x) of texts that are not searched, with the passages nearest of all that are."""
    model, config = scattered(trained(folder), seed=1), PretrainConfig(**SETTINGS, exclude_self=trivial)
    texts = MaskedTexts(make_corpus(tmp_path / "news", NEWS), model.tokenizer, 22, "salient", Names())
    index = Snapshot(model, corpus)
    task = PretrainTask(model, texts, index, config, corpus)
    exact, examples = doubled(model), drawn(task, 3)
    step = task.backward(3)
    assert [list(each) for each in index.hidden] == [[]] * 4
    losses = []
    for example, found in zip(examples, index.found, strict=True):
        assert example.passage.document_id.startswith("news")
        q_D = query_vector(exact, example.ids)
        by_hand = [corpus.passage(row) for row in range(16)]
        by_hand.sort(key=lambda p: -(q_D @ passage_vector(exact, p.text, p.title)).item())
        assert [p.row for p in found] == [p.row for p in by_hand[:3]]
        losses.append(-slow_log_likelihood(exact, example, by_hand[:3], per_token=False))
    torch.stack(losses).mean().backward()
    assert step.loss == pytest.approx(torch.stack(losses).mean().item(), abs=1e-5)
    assert_same_gradients(model, exact)
    assert task.settings()["data"] == {"passages": 16, "searched": "c, 16 passages"}
    assert make_task(model, corpus).settings()["data"] == {"passages": 16, "searched": ""}


def test_what_of_a_text_stands_in_the_corpus_searched(tmp_path: Path) -> None:
    searched = Corpus.create(tmp_path / "searched", splitter="fixed:3")
    searched.add([Document("a", "", "One two three four five six seven eight nine."), Document("b", "", "Ten eleven.")])
    searched.add([Document("c", "", "x y z x y z"), Document("gone", "", "One two three")])
    searched.delete(["gone"])
    assert [(p.row, p.text) for p in searched.passages()] == [
        (0, "One two three"),
        (1, "four five six"),
        (2, "seven eight nine."),
        (3, "Ten eleven."),
        (4, "x y z"),
        (5, "x y z"),
    ]

    def hidden(id_: str, text: str) -> tuple[list[int], list[int]]:
        example = Passage(99, id_, "", text, 7, 7 + len(text))
        return rows_holding(searched, example, False), rows_holding(searched, example, True)

    assert hidden("a", "four five six") == ([1], [0, 1, 2])
    assert hidden("a", "three four five six") == ([0, 1], [0, 1, 2])
    assert hidden("a", "One two three four five six seven eight nine.") == ([0, 1, 2], [0, 1, 2])
    assert hidden("c", "x y") == ([4, 5], [4, 5])
    for id_, text in (
        ("b", "four five six"),
        ("a", "Four five six"),
        ("d", "One two three"),
        ("gone", "One two three"),
    ):
        assert hidden(id_, text) == ([], [])


@pytest.mark.parametrize("trivial", ["document", "passage"])
def test_texts_that_are_searched_too_have_trivial_passages(folder: Path, tmp_path: Path, trivial: str) -> None:
    pages = [Document(str(i), "", " ".join(d.text for d in DOCUMENTS[i : i + 2])) for i in range(0, 16, 2)]
    searched, drawn_from = (Corpus.create(tmp_path / name, splitter="words:12") for name in ("z", "x"))
    searched.add(pages)
    drawn_from.add([*pages[:4], *NEWS[8:12]])
    model = trained(folder)
    texts = MaskedTexts(drawn_from, model.tokenizer, 22, "salient", Names())
    index = Snapshot(model, searched)
    task = PretrainTask(
        model, texts, index, PretrainConfig(**{**SETTINGS, "batch_size": 12}, exclude_self=trivial), searched
    )
    shared = 0
    examples = drawn(task, 0)
    task.backward(0)
    for example, hidden, found in zip(examples, index.hidden, index.found, strict=True):
        own = [p for p in searched.passages() if p.document_id == example.passage.document_id]
        if trivial == "passage":
            own = [p for p in own if p.text == example.passage.text]
        assert sorted(hidden) == [p.row for p in own]
        assert not {p.row for p in found} & {p.row for p in own}
        shared += bool(own)
    assert 0 < shared < len(examples)


def test_the_corpus_searched_has_passages_enough(folder: Path, tmp_path: Path) -> None:
    model = trained(folder)
    book = Corpus.create(tmp_path / "book", splitter="words:12")
    book.add([Document("book", "", " ".join(d.text for d in DOCUMENTS)[:200])])
    assert 3 <= book.num_passages < 8

    def start(documents: list[Document]) -> None:
        corpus = make_corpus(tmp_path / f"x {documents[0].id}", documents)
        texts = MaskedTexts(corpus, model.tokenizer, 22, "salient", Names())
        PretrainTask(model, texts, Snapshot(model, book), PretrainConfig(**SETTINGS), book)

    start(NEWS[:1])
    with pytest.raises(
        InputError, match="3 passages are to be retrieved for an example, but only 0 are not of its own"
    ):
        start([Document("book", "", "Paris.")])


def test_relevance_is_fresh_while_the_index_is_stale(folder: Path, corpus: Corpus) -> None:
    model = trained(folder, own_queries=True)
    task = make_task(model, corpus)
    examples = drawn(task, 0)
    with torch.no_grad():
        before, _ = task.marginal(examples)
        found = [[each.row for each in passages] for passages in task._neighbourhood.found]
        for name, parameter in model.parameters.items():
            if name.startswith("passages."):
                parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
        after, _ = task.marginal(examples)
    assert [[each.row for each in passages] for passages in task._neighbourhood.found] == found
    assert (before.relevance_BN - after.relevance_BN).abs().min() > 1e-4
    torch.testing.assert_close(before.log_p_BNM, after.log_p_BNM)
    for b, example in enumerate(examples):
        z = [passage_vector(model, each.text, each.title) for each in task._neighbourhood.found[b]]
        expected = torch.stack(z) @ query_vector(model, example.ids)
        torch.testing.assert_close(after.relevance_BN[b, 1:], expected, atol=1e-4, rtol=1e-4)


def test_at_first_the_reader_learns_alone(folder: Path, corpus: Corpus) -> None:
    class NoIndex:
        def refresh(self, step: int, model: TrainedREALM) -> int:
            raise AssertionError

    model = scattered(trained(folder), seed=1)
    task = make_task(model, corpus, NoIndex(), mlm_warmup_steps=2, masking="salient")
    exact = doubled(model)
    examples = task.texts.draw(4 * 4, np.random.default_rng((0, 2, 1)), "tokens")
    step = task.backward(1)
    log_p = torch.cat([log_likelihoods(exact, each, "", "") for each in examples])
    (-log_p.mean()).backward()
    assert step.loss == pytest.approx(-log_p.mean().item(), abs=1e-5)
    assert step.tokens == sum(len(each.ids) + 3 for each in examples)
    assert_same_gradients(model, exact)
    assert all(p.grad is None for name, p in model.parameters.items() if name.startswith("passages."))
    with pytest.raises(AssertionError):
        task.backward(2)


def test_nothing_to_hide_is_nothing_to_learn(folder: Path, tmp_path: Path) -> None:
    documents = [Document(str(i), "", f"nothing has a name {i}") for i in range(5)]
    task = make_task(trained(folder), make_corpus(tmp_path / "c", documents))
    step = task.backward(0)
    assert (step.loss, step.skipped) == (None, 4)


def test_a_mask_that_stands_in_a_passage_is_no_mask(folder: Path, tmp_path: Path) -> None:
    documents = [Document(each.id, each.title, f"[MASK] {each.text}") for each in DOCUMENTS[:6]]
    task = make_task(trained(folder), make_corpus(tmp_path / "c", documents))
    found, _ = task.marginal(drawn(task, 0))
    assert found.masked_BM.sum() == sum(len(each.hidden_M) for each in drawn(task, 0))


def holding(task: PretrainTask, model: TrainedREALM, corpus: Corpus) -> float:
    """Among 60 examples, the share of those for which a passage that holds the answer is retrieved."""
    index = Snapshot(model, corpus)
    examples = task.texts.draw(60, np.random.default_rng(9))
    q_BD = np.stack([query_vector(model, each.ids).detach().numpy() for each in examples])
    found = index.nearest(q_BD, 3, [corpus.rows_of(each.passage.document_id) for each in examples])
    return float(np.mean([any(e.answer in p.text for p in each) for e, each in zip(examples, found, strict=True)]))


def test_the_retriever_learns_to_find_what_helps_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reader that knows an answer where it sees one, and guesses it otherwise."""
    settings = {"num_candidates": 8, "normalize": True, "similarity_scale": 10.0, "pooling": "mean"}
    corpus, folder = make_corpus(tmp_path / "c"), make_model(tmp_path / "m", **settings)
    model = trained(folder, ("passages", "queries"))
    config = PretrainConfig(**{**SETTINGS, "batch_size": 8, "steps": 100, "learning_rate": 2e-3, "log_every": 25})
    texts = MaskedTexts(corpus, model.tokenizer, 22, "salient", Names())
    task = PretrainTask(model, texts, IndexRefresher(tmp_path, corpus, 10, asynchronous=False), config)

    def known(examples: list[Masked], read: list[list[Any]]) -> tuple[torch.Tensor, torch.Tensor]:
        seen = [[model.tokenizer.hf.decode(r.pair.ids_T[r.body :]) for r in each] for each in read]
        right = [[e.answer.lower() in text for text in each] for e, each in zip(examples, seen, strict=True)]
        log_p_BN = torch.where(torch.tensor(right), -0.01, -3.0)
        return log_p_BN[:, :, None], torch.ones(len(examples), 1, dtype=torch.bool)

    monkeypatch.setattr(task, "_likelihood", known)
    before, seen = holding(task, model, corpus), list[Progress]()
    Trainer(task, config, tmp_path).run(seen.append)
    assert holding(task, model, corpus) > 0.8 > 0.5 > before
    assert seen[-1].loss < 0.7 * seen[0].loss
    assert seen[-1].measures["utility"] > seen[0].measures["utility"]


def test_all_of_it_together_learns_to_fill_masks(folder: Path, tmp_path: Path) -> None:
    corpus, model = make_corpus(tmp_path / "c"), trained(folder)
    config = PretrainConfig(**{**SETTINGS, "steps": 30, "learning_rate": 3e-3, "log_every": 5})
    texts = MaskedTexts(corpus, model.tokenizer, 22, "salient", Names())
    task, seen = PretrainTask(model, texts, IndexRefresher(tmp_path, corpus, 10, asynchronous=False), config), []
    Trainer(task, config, tmp_path).run(seen.append)
    assert [each.step for each in seen] == [1, 5, 10, 15, 20, 25, 30]
    del seen[0]  # the first step's own
    assert seen[-1].loss < 0.7 * seen[0].loss
    assert [round(each.measures["staleness"]) for each in seen] == [2, 7] * 3
    encoder = PassageEncoder.load(locate(str(tmp_path), REALMConfig))
    trained_z = passage_vector(model, "Paris.", "France").detach().numpy()
    assert encoder.passages(["Paris."], ["France"])[0].vectors_TD[0] == pytest.approx(trained_z, abs=1e-4)
