"""Fine-tuning REALM to answer questions: both losses by brute force, what stays as it is, what is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch

import quoth
from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import answer_ranges, has_answer
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.hub import locate
from quoth.index.key_store import KeyStore, carry
from quoth.index.tables import KeyTables
from quoth.reader.spans import legal_spans
from quoth.realm.config import FineTuneConfig, REALMConfig
from quoth.realm.finetune import FineTuneTask, right_spans
from quoth.realm.index_refresh import IndexRefresher
from quoth.realm.network import readings
from quoth.realm.passages import PassageEncoder
from quoth.realm.trained import TrainedREALM
from quoth.records import Document
from quoth.training.distributed import World
from quoth.training.trainer import Progress, Trainer
from realm_runs import (
    CITIES,
    assert_same_gradients,
    doubled,
    encoded,
    make_corpus,
    make_model,
    passage_vector,
    query_vector,
    reader_input,
    scattered,
    trained,
)

LEARNT = ("queries", "reader")
QUESTIONS = [QAExample(name, f"What is the capital of {name}?", (city,)) for name, city in CITIES.items()]


@pytest.fixture(scope="module")
def corpus(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    corpus = make_corpus(tmp_path_factory.mktemp("corpus") / "c")
    KeyTables(corpus, PassageEncoder.load(locate(str(folder), REALMConfig))).build("fp32", recall=1.0)
    return corpus


def make_task(
    folder: Path,
    corpus: Corpus,
    questions: list[QAExample] = QUESTIONS,
    model: TrainedREALM | None = None,
    **config: Any,
) -> FineTuneTask:
    model = model or scattered(trained(folder, LEARNT, own_queries=True))
    settings = FineTuneConfig(**{"lora_rank": 0, "retriever_beam_size": 6, "num_reader_passages": 3, **config})
    return FineTuneTask(model, PassageEncoder.load(locate(str(folder), REALMConfig)), corpus, questions, settings)


def slow_losses(
    model: TrainedREALM, vectors: dict[int, torch.Tensor], corpus: Corpus, question: QAExample, config: FineTuneConfig
) -> tuple[torch.Tensor, torch.Tensor]:
    """The retriever's and the reader's, each span scored by itself."""
    ids = model.tokenizer.hf(question.text, add_special_tokens=False)["input_ids"]
    q_D = query_vector(model, ids)
    f = {row: model.config.similarity_scale * (q_D @ z_D) for row, z_D in vectors.items()}
    beam = sorted(f, key=lambda row: -float(f[row].detach()))[: config.retriever_beam_size]
    right = [row for row in beam if has_answer(corpus.passage(row).text, question)]
    mass = torch.stack([f[row] for row in beam]).softmax(dim=0)
    retriever = -sum(mass[beam.index(row)] for row in right).log() if right else torch.zeros(())
    read = beam[: config.num_reader_passages]
    if config.force_positive and right and not set(right) & set(read):
        read[-1] = right[0]
    scores, good = [], []
    for row in read:
        passage = corpus.passage(row)
        states_TH = encoded(model, model.reader.states, *reader_input(model, ids, passage.text, passage.title))
        (reading,) = readings(model.tokenizer, model.config, ids, [passage.text], [passage.title])
        answers = answer_ranges(passage.text, question)
        for first, width in np.argwhere(legal_spans(reading, model.config.span_width)).tolist():
            span = reading.offsets_T2[first][0], reading.offsets_T2[first + width][1]
            head = model.reader.span
            start_S = head.ends(states_TH[reading.body + first]).chunk(2)[0]
            end_S = head.ends(states_TH[reading.body + first + width]).chunk(2)[1]
            score = head.score(head.norm((start_S + end_S).relu()))[0]
            scores.append(score + f[row] if model.config.add_relevance else score)
            good.append(tuple(map(int, span)) in answers)
    mass = torch.stack(scores).softmax(dim=0)
    return retriever, -mass[torch.tensor(good)].sum().log() if any(good) else torch.zeros(())


@pytest.mark.parametrize("add_relevance", [True, False])
@pytest.mark.parametrize("force_positive", [True, False])
def test_losses_and_gradients_are_those_of_all_spans(
    corpus: Corpus, tmp_path: Path, folder: Path, add_relevance: bool, force_positive: bool
) -> None:
    other = make_model(tmp_path / "m", add_relevance=add_relevance)
    KeyTables(corpus, PassageEncoder.load(locate(str(other), REALMConfig))).build("fp32", recall=1.0)
    seen = set()
    for number in range(len(QUESTIONS)):
        questions = QUESTIONS[number : number + 1]
        task = make_task(other, corpus, questions, num_reader_passages=2, force_positive=force_positive, batch_size=1)
        exact = doubled(task.model)
        vectors = {int(row): task._z_PD[at].double() for at, row in enumerate(task._rows_P)}
        retriever, reader = slow_losses(exact, vectors, corpus, questions[0], task.config)
        step = task.backward(0)
        expected = retriever.item(), reader.item()
        assert step.measures["retriever"] == pytest.approx(expected[0], abs=1e-4)
        assert step.measures["reader"] == pytest.approx(expected[1], abs=1e-4)
        assert step.loss == pytest.approx(sum(expected), abs=1e-4)
        kind = (expected[0] > 0, expected[1] > 0, step.measures["found"])
        if kind[0]:
            (retriever + reader).backward()
            assert_same_gradients(task.model, exact)
        seen.add(kind)
    assert {(True, True, 1.0), (False, False, 0.0)} <= seen
    assert ((True, True, 0.0) in seen) == force_positive
    assert ((True, False, 0.0) in seen) != force_positive


def test_with_a_refreshed_index_passages_learn_too(corpus: Corpus, tmp_path: Path, folder: Path) -> None:
    """The beam is that of the vectors as they were, relevance that of the passages as they are now (footnote 3)."""
    model, encoder = trained(folder, own_queries=True), PassageEncoder.load(locate(str(folder), REALMConfig))
    config = FineTuneConfig(retriever_beam_size=14, num_reader_passages=3, batch_size=1, refresh_every=2)
    index = IndexRefresher(tmp_path / "run", corpus, 2, asynchronous=False)
    task = FineTuneTask(model, encoder, corpus, QUESTIONS[:1], config, index=index)
    for step in (2, 3, 4):
        assert task.backward(step).measures["staleness"] == step % 2
        before = task._z_PD.clone()
        scattered(model, seed=step, std=0.02)
        for parameter in model.parameters.values():
            parameter.grad = None
        if step == 3:
            # One step later nothing is embedded again, but the beam's passages are encoded.
            beam_QK = torch.arange(6)[None]
            fresh_KD = task._fresh(beam_QK)[0]
            passages = [corpus.passage(int(row)) for row in task._rows_P[:6]]
            by_hand = torch.stack([passage_vector(model, each.text, each.title) for each in passages])
            torch.testing.assert_close(fresh_KD, by_hand, atol=1e-5, rtol=1e-4)
            assert not torch.allclose(fresh_KD, before[:6], atol=1e-3)
    exact, seen = doubled(model), task._z_PD
    beam = (seen @ query_vector(model, task.model.tokenizer.pieces([QUESTIONS[0].text])[0][0])).topk(14).indices
    passages = {int(task._rows_P[at]): corpus.passage(int(task._rows_P[at])) for at in beam.tolist()}
    vectors = {row: passage_vector(exact, each.text, each.title) for row, each in passages.items()}
    retriever, reader = slow_losses(exact, vectors, corpus, QUESTIONS[0], config)
    step = task.backward(5)
    assert step.loss == pytest.approx((retriever + reader).item(), abs=1e-4)
    (retriever + reader).backward()
    assert_same_gradients(model, exact)
    assert any(name.startswith("passages.") and each.grad is not None for name, each in model.parameters.items())


def test_a_corpus_that_changes_while_it_is_trained_on_is_told(corpus: Corpus, tmp_path: Path, folder: Path) -> None:
    corpus = Corpus.open(copytree(corpus.path, tmp_path / "own.quoth"))
    model, encoder = trained(folder, own_queries=True), PassageEncoder.load(locate(str(folder), REALMConfig))
    config = FineTuneConfig(retriever_beam_size=6, num_reader_passages=3, batch_size=1, refresh_every=2)
    index = IndexRefresher(tmp_path / "run", corpus, 2, asynchronous=False)
    task = FineTuneTask(model, encoder, corpus, QUESTIONS[:1], config, index=index)
    corpus.delete([corpus.passage(int(task._rows_P[0])).document_id])
    with pytest.raises(InputError, match="was changed while it is trained on"):
        task.backward(2)


def test_a_batch_is_the_mean_of_its_questions(folder: Path, corpus: Corpus) -> None:
    losses, gradients = [], []
    for question in QUESTIONS[:2]:
        task = make_task(folder, corpus, [question])
        losses.append(task.backward(0).loss)
        gradients.append({name: each.grad for name, each in task.model.parameters.items()})
    both = make_task(folder, corpus, QUESTIONS[:2], batch_size=2)
    assert both.backward(0).loss == pytest.approx(np.mean(losses), abs=1e-5)
    for name, parameter in both.model.parameters.items():
        if parameter.grad is not None:
            mean = (gradients[0][name] + gradients[1][name]) / 2
            torch.testing.assert_close(parameter.grad, mean, atol=1e-5, rtol=1e-4)


def test_parts_add_up_to_the_batch(folder: Path, corpus: Corpus) -> None:
    whole = make_task(folder, corpus, batch_size=8, force_positive=True)
    parts = make_task(folder, corpus, batch_size=8, force_positive=True, mini_batch_size=3)
    one, many = whole.backward(0), parts.backward(0)
    assert many.loss == pytest.approx(one.loss, abs=1e-5)
    assert many.tokens == one.tokens
    assert many.measures == pytest.approx(one.measures, abs=1e-5)
    for name, parameter in whole.model.parameters.items():
        if parameter.grad is not None:
            torch.testing.assert_close(parts.model.parameters[name].grad, parameter.grad, atol=1e-5, rtol=1e-3)


class HalfOf(World):
    """One of two processes, which hears nothing of the other."""

    def sum(self, tensors: Any) -> None: ...

    def sum_gradients(self, parameters: Any) -> None: ...


def test_the_shares_of_two_processes_add_up(folder: Path, corpus: Corpus) -> None:
    encoder = PassageEncoder.load(locate(str(folder), REALMConfig))
    config = FineTuneConfig(lora_rank=0, retriever_beam_size=6, num_reader_passages=3, batch_size=4)
    whole, loss, sums = make_task(folder, corpus, batch_size=4), 0.0, dict[str, torch.Tensor]()
    for rank in range(2):
        model = scattered(trained(folder, LEARNT, own_queries=True))
        loss += FineTuneTask(model, encoder, corpus, QUESTIONS, config, world=HalfOf(rank, 2)).backward(0).loss
        for name, each in model.parameters.items():
            if each.grad is not None:
                sums[name] = sums.get(name, 0) + each.grad
    assert loss == pytest.approx(whole.backward(0).loss, abs=1e-5)
    for name, parameter in whole.model.parameters.items():
        if parameter.grad is not None:
            torch.testing.assert_close(sums[name], parameter.grad, atol=1e-5, rtol=1e-3)
    with pytest.raises(InputError, match=r"batch_size \(3\) must be a multiple of the number of processes \(2\)"):
        FineTuneTask(model, encoder, corpus, QUESTIONS, replace(config, batch_size=3), world=World(0, 2))


def test_each_question_comes_once_an_epoch(folder: Path, corpus: Corpus) -> None:
    task = make_task(folder, corpus, batch_size=4)
    epochs = [[number for step in (2 * epoch, 2 * epoch + 1) for number in task._drawn(step)] for epoch in range(3)]
    assert all(sorted(each) == list(range(8)) for each in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert list(task._drawn(1)) == list(make_task(folder, corpus, batch_size=4)._drawn(1))


def test_right_spans_are_answers_between_token_edges(folder: Path) -> None:
    model = trained(folder)
    text = "Paris, the old Paris, is Paris-like."
    (reading,) = readings(model.tokenizer, model.config, [5], [text], ["France"])
    question = QAExample("1", "?", ("Paris", "old Paris"))
    found = right_spans(reading, answer_ranges(text, question), 4)
    spans = [
        text[reading.offsets_T2[first][0] : reading.offsets_T2[first + width][1]]
        for first, width in np.argwhere(found).tolist()
    ]
    assert sorted(spans) == ["Paris", "Paris", "Paris", "old Paris"]
    assert right_spans(reading, [(1, 5), (0, len(text)), (0, 0)], 4).sum() == 0


def test_a_run_leaves_passages_as_they_are_and_learns_to_answer(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    before = PassageEncoder.load(locate(str(folder), REALMConfig))
    task = make_task(
        folder,
        corpus,
        model=trained(folder, LEARNT, own_queries=True),
        steps=40,
        batch_size=4,
        retriever_beam_size=12,
        learning_rate=3e-3,
        force_positive=True,
        log_every=10,
    )
    assert not any(name.startswith("passages.") for name in task.parameters)
    assert {name.partition(".")[0] for name in task.parameters} == {"queries", "reader"}
    seen: list[Progress] = []
    Trainer(task, task.config, tmp_path).run(seen.append)
    assert seen[-1].loss < 0.5 * seen[0].loss
    assert seen[-1].measures["found"] >= seen[0].measures["found"]

    after = quoth.REALM.from_pretrained(tmp_path, corpus)
    assert after.config.separate_towers
    assert after.fingerprint == before.fingerprint
    assert KeyTables(corpus, after.encoder).missing() == []
    ids = task.model.tokenizer.hf(QUESTIONS[0].text, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        expected = query_vector(task.model, ids).numpy()
    assert after.encoder.queries([QUESTIONS[0].text])[0] == pytest.approx(expected, abs=1e-4)
    assert np.abs(before.queries([QUESTIONS[0].text])[0] - expected).max() > 0.01
    answers = after.ask([each.text for each in QUESTIONS], top_k=1)
    right = sum(found[0].text == each.answers[0] for found, each in zip(answers, QUESTIONS, strict=True) if found)
    assert right >= 6


def test_questions_that_the_corpus_cannot_answer_are_left_out(folder: Path, corpus: Corpus) -> None:
    unknown = QAExample("x", "Who sings?", ("Nobody at all",))
    task = make_task(folder, corpus, [unknown, *QUESTIONS[:2], unknown])
    assert task.settings()["data"]["questions"] == 2
    assert task.settings()["data"] == {"passages": 16, "questions": 2}
    with pytest.raises(InputError, match=r"no answer to any of the 2 questions occurs in .*; give other questions"):
        make_task(folder, corpus, [unknown, unknown])


def test_what_cannot_be_is_refused(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`retriever_beam_size` \(17\) must not exceed the corpus's 16 passages"):
        make_task(folder, corpus, retriever_beam_size=17)
    with pytest.raises(InputError, match=r"`num_reader_passages` \(7\) must not exceed `retriever_beam_size` \(6\)"):
        make_task(folder, corpus, num_reader_passages=7)
    bare = make_corpus(tmp_path / "bare")
    with pytest.raises(
        InputError, match=r"segments have no vectors of .*; `quoth embed .*bare --keys passages --model .*` makes them"
    ):
        make_task(folder, bare)


def test_deleted_passages_are_not_searched(folder: Path, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c")
    KeyTables(corpus, PassageEncoder.load(locate(str(folder), REALMConfig))).build("fp32", recall=1.0)
    corpus.delete(["Greece-0", "Greece-1"])
    task = make_task(folder, corpus, QUESTIONS[:3], retriever_beam_size=14)
    assert task.settings()["data"]["questions"] == 2
    assert sorted(task._rows_P) == sorted(corpus.live_rows())


def test_a_table_that_lacks_passages_gives_every_passage_its_own_vector(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, encoder = make_corpus(tmp_path / "c"), PassageEncoder.load(locate(str(folder), REALMConfig))
    KeyTables(corpus, encoder).build("fp32", recall=1.0)
    changed = [replace(corpus.document(name), title="") for name in ("Greece-0", "Spain-1")]
    corpus.replace(changed)
    late = {segment.name for segment in corpus.segments}
    corpus.add([Document("last", "Paris", "Paris is the capital of France, and was so before.")])
    KeyTables(corpus, encoder, {segment.name for segment in corpus.segments} - late).build("fp32", recall=1.0)
    corpus.delete(["Greece-1"])
    corpus.compact()
    [segment] = corpus.segments
    store = KeyStore(corpus.path, encoder.fingerprint[:16])
    with store.lock():
        carry(store, segment)
    assert store.partial(segment.name).is_dir()
    task = make_task(folder, corpus, QUESTIONS)
    assert sorted(task._rows_P) == sorted(corpus.live_rows())
    for row, z_D in zip(task._rows_P.tolist(), task._z_PD.numpy(), strict=True):
        [own] = encoder.encode([corpus.passage(row)])
        np.testing.assert_allclose(z_D, own.vectors_TD[0], rtol=1e-4, atol=1e-5)
    monkeypatch.setattr("quoth.index.tables.LATE_PASSAGES", len(changed) - 1)
    with pytest.raises(InputError, match=r"1 of 1 segments have no vectors of .*; `quoth embed .*` makes them"):
        make_task(folder, corpus, QUESTIONS)
