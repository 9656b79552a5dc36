"""Pre-training the towers by a `Reader` that stays as it is, against eq. 1 with every passage read alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

import quoth
from quoth.answers.evidence import Source, Spans, predict_spans
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.hub import ModelSource, locate
from quoth.reader.config import ReaderConfig
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.reader.weights import load_reader, save_reader
from quoth.realm.config import PretrainConfig, REALMConfig
from quoth.realm.pretrain import PretrainTask
from quoth.realm.recipe import Probe
from quoth.realm.salient import Masked, MaskedTexts
from quoth.realm.trained import TrainedREALM
from quoth.records import Passage
from quoth.text.tokenizer import MASK
from quoth.training.recipes import run_recipe
from realm_runs import (
    DOCUMENTS,
    Names,
    Snapshot,
    assert_same_gradients,
    doubled,
    passage_vector,
    query_vector,
    scattered,
    trained,
)
from tiny import tiny_bert

TOWERS = ("passages", "queries")
TINY = {"steps": "2", "batch_size": "8", "lora_rank": "0", "bf16": "false"}


class Counting:
    """A reader that notes what it is shown."""

    def __init__(self, reader: SpanReader) -> None:
        self._reader, self.tokenizer, self.shown = reader, reader.tokenizer, list[tuple[str, Passage]]()

    def read(self, queries: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[list[Spans]]:
        self.shown += [(query, each) for query, group in zip(queries, passages, strict=True) for each in group]
        return self._reader.read(queries, passages)


@pytest.fixture(scope="module")
def reader_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a reader with random heads."""
    folder = tmp_path_factory.mktemp("reader")
    base = tiny_bert(folder / "base", [each.text for each in DOCUMENTS])
    config = ReaderConfig(query_tokens=32, title_tokens=4, max_tokens=96, overlap=8, span_width=5, base=str(base))
    torch.manual_seed(3)
    model, _ = load_reader(ModelSource("tiny", config, None, str(base)))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith(("span.", "none.")):
                weight.copy_(torch.randn(weight.shape))
    save_reader(folder / "r", model, model, config.to_dict())
    return folder / "r"


@pytest.fixture(scope="module")
def reader(reader_folder: Path) -> SpanReader:
    return open_reader(str(reader_folder))


def p_of(reader: SpanReader, example: Masked, passage: Passage) -> float:
    """p(y|z,x), by what `fill` makes of the passage alone."""
    blank = example.before + MASK + example.after
    [spans] = reader.read([blank], [[passage]])
    found = predict_spans([Source(passage, "")], spans, 10**6, distinct=False, marginal=True)
    return next((each.probability for each in found if each.text.casefold() == example.answer.casefold()), 0.0)


def slow(model: TrainedREALM, reader: SpanReader, example: Masked, passages: Sequence[Passage]) -> torch.Tensor:
    """p(y|x) = Σ_z p(z|x) p(y|z,x), z among them the null document, which says nothing."""
    q_D, scale = query_vector(model, example.ids), model.config.similarity_scale
    z_ND = [passage_vector(model, *each) for each in [("", ""), *((p.text, p.title) for p in passages)]]
    p_N = torch.stack([scale * (q_D @ z_D) for z_D in z_ND]).softmax(dim=0)
    return (p_N * torch.tensor([0.0, *(p_of(reader, example, each) for each in passages)])).sum()


@pytest.mark.parametrize("marginal", ["product", "token"])
@pytest.mark.parametrize("masking", ["salient", "spans", "word"])
def test_a_step_is_eq_1(folder: Path, corpus: Corpus, reader: SpanReader, masking: Any, marginal: Any) -> None:
    """A blank has one answer, so both forms of the marginal are one."""
    model = scattered(trained(folder, TOWERS), seed=1)
    config = PretrainConfig(
        batch_size=8,
        asynchronous=False,
        lora_rank=0,
        masking=masking,
        marginal=marginal,
        exclude_self="passage",
        reader="r",
    )
    texts = MaskedTexts(corpus, model.tokenizer, model.config.question_room, masking, Names())
    exact, index, counting = doubled(model), Snapshot(model, corpus), Counting(reader)
    task = PretrainTask(model, texts, index, config, reader=counting)  # type: ignore[arg-type]
    examples = texts.draw(8, np.random.default_rng((config.seed, 2, 3)))
    assert all(each.before + each.answer + each.after in each.passage.text for each in examples)
    step = task.backward(3)
    p = [slow(exact, reader, *each) for each in zip(examples, index.found, strict=True)]
    said = [each for each in p if each > 0]
    assert 0 < len(said) < 8 or masking != "salient"
    loss = -torch.stack(said).log().sum() / len(examples)
    loss.backward()  # type: ignore[no-untyped-call]
    assert step.loss == pytest.approx(loss.item(), abs=1e-5)
    assert step.skipped == 8 - len(said)
    assert step.measures == {"staleness": 0, "explained": len(said) / 8}
    assert_same_gradients(model, exact)
    asked = [example.before + MASK + example.after for example in examples]
    assert {query for query, _ in counting.shown} <= set(asked)
    for query, passage in counting.shown:
        assert examples[asked.index(query)].answer.casefold() in passage.text.casefold()


def test_a_batch_that_nothing_explains_moves_nothing(folder: Path, corpus: Corpus, reader: SpanReader) -> None:
    """Not by rounding either, which an optimizer would make a whole step of."""
    model = scattered(trained(folder, TOWERS), seed=1)
    config = PretrainConfig(batch_size=2, asynchronous=False, lora_rank=0, masking="word", reader="r")
    texts = MaskedTexts(corpus, model.tokenizer, model.config.question_room, "word", Names())
    [first, *_] = texts.draw(4, np.random.default_rng(0))
    before = f"A [MASK] is a hole. {first.before}"
    lost = Masked(first.ids, first.masks_M, first.hidden_M, "Atlantis", first.passage, before, first.after)
    for count in (4, 7, 10):
        model.config = replace(model.config, num_candidates=count)
        task = PretrainTask(model, texts, Snapshot(model, corpus), config, reader=reader)
        with patch.object(texts, "draw", return_value=[lost, lost]):
            step = task.backward(0)
        assert step.loss is None
        assert step.skipped == 2
        assert step.measures["explained"] == 0
        assert not any(each.grad is not None and each.grad.any() for each in model.parameters.values())


def test_held_out_blanks_are_measured_with_it(folder: Path, tmp_path: Path, reader: SpanReader) -> None:
    config = PretrainConfig(exclude_self="passage", evaluate_blanks=24, num_candidates=4, reader="r")
    probe = Probe(tmp_path, DOCUMENTS, config, Names(), reader)
    found = probe.measure(locate(str(folder), REALMConfig))
    model, corpus = trained(folder), Corpus.open(tmp_path / "heldout.quoth")
    texts = MaskedTexts(corpus, model.tokenizer, model.config.question_room, "salient", Names())
    index, p, ranks = Snapshot(model, corpus), [], []
    with torch.no_grad():
        for blank in texts.draw(24, np.random.default_rng(0)):
            passages = index.nearest(query_vector(model, blank.ids).numpy()[None], 3, [[blank.passage.row]])[0]
            p.append(float(slow(model, reader, blank, passages)))
            ranks.append(next((n for n, each in enumerate(passages) if blank.answer in each.text), 99))
    assert set(found) == {"score", "recall_at_1", "recall_at_5"}
    assert found["score"] == pytest.approx(np.mean(p), abs=1e-5)
    assert found["recall_at_1"] == np.mean([rank < 1 for rank in ranks])


def test_what_was_trained_so_reads_with_it(folder: Path, tmp_path: Path, reader_folder: Path) -> None:
    file = tmp_path / "docs.jsonl"
    lines = [json.dumps({"id": each.id, "title": each.title, "text": each.text}) for each in DOCUMENTS]
    file.write_text("\n".join(lines))
    settings = {
        **TINY,
        "reader": str(reader_folder),
        "masking": "spans",
        "refresh_every": "1",
        "asynchronous": "false",
        "num_candidates": "4",
    }
    held_out = tmp_path / "held.jsonl"
    held_out.write_text("\n".join(json.dumps({"id": f"h{n}", "text": d.text}) for n, d in enumerate(DOCUMENTS)))
    settings |= {"evaluate_on": str(held_out), "evaluate_every": "1"}
    assert run_recipe("realm-pretrain", [str(file)], tmp_path / "out", settings, model=str(folder))
    assert not (tmp_path / "out" / "reader").exists()
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert any("recall_at_5" in line for line in log)
    assert run_recipe("realm-pretrain", [str(file)], tmp_path / "on", settings, model=str(tmp_path / "out"))
    own = {name: value for name, value in settings.items() if name != "reader"}
    with pytest.raises(InputError, match="out has no reader of its own, as it learned from another; `quoth convert"):
        run_recipe("realm-pretrain", [str(file)], tmp_path / "own", own, model=str(tmp_path / "out"))
    assert (
        main(["convert", "--encoder", str(folder), "--retriever", str(tmp_path / "out"), "-o", str(tmp_path / "b")])
        == 0
    )
    assert run_recipe("realm-pretrain", [str(file)], tmp_path / "own", own, model=str(tmp_path / "b"))
    corpus = Corpus.open(tmp_path / "out" / "corpus.quoth")
    model = quoth.REALM.from_pretrained(tmp_path / "out", corpus)
    model.embed()
    found = model.fill(f"The capital of Greece is {MASK}.", combine="marginal")
    assert model.config.reader == str(reader_folder)
    assert len(found) == 5
    assert all(each.text in each.evidence[0].context for each in found)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"masking": "tokens"}, "set masking=salient, spans or word"),
        ({"mlm_warmup_steps": 3}, "set mlm_warmup_steps=0"),
        ({"reader_sees": "body"}, "set reader_sees=model"),
    ],
)
def test_it_fills_one_blank_and_does_not_learn(settings: dict[str, Any], remedy: str) -> None:
    with pytest.raises(InputError, match=f"reader='r' fills one blank with a span.* and does not learn; {remedy}"):
        PretrainConfig(reader="r", **settings)
