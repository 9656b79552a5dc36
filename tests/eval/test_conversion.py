"""Converted checkpoints compute what the classes they were saved from compute: values and gradients.

The numbers of tests/golden/realm were written by tests/golden/make_realm.py, where the suffixes of their names stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from quoth import REALM, Corpus, Document
from quoth.encoders.transformer import load_base, pair_batch
from quoth.hub import locate
from quoth.realm.config import REALMConfig
from quoth.realm.losses import log_retrieval, marginal_choice_loss, marginal_per_token, relevance
from quoth.realm.network import readings
from quoth.realm.passages import passage_inputs
from quoth.realm.trained import PARTS, TrainedREALM
from quoth.text.tokenizer import FastTokenizer, Pair, PairTokenizer
from quoth_eval.convert import READER_NAMES, TOWER_NAMES, Names, convert

GOLDEN = Path(__file__).parents[1] / "golden" / "realm"
NUMBERS = load_file(GOLDEN / "numbers.safetensors")
TEXTS = json.loads((GOLDEN / "texts.json").read_text(encoding="utf-8"))
TITLES, BLOCKS = ([block[i] for block in TEXTS["blocks"]] for i in (0, 1))


def trained(folder: Path) -> TrainedREALM:
    """The model with gradients everywhere."""
    return TrainedREALM(locate(str(folder), REALMConfig), trained=PARTS)


def close(found: Any, name: str) -> None:
    """Equal to the golden number of that name, to 1e-4."""
    torch.testing.assert_close(torch.as_tensor(found), NUMBERS[name], atol=1e-4, rtol=1e-4, check_dtype=False)


def inputs(prefix: str, shape: str = "BT") -> dict[str, Tensor]:
    """The golden inputs of that name, one a row."""
    names = ("input_ids", "attention_mask", "token_type_ids")
    return {name: NUMBERS[f"{prefix}{name}_{shape}"].flatten(0, -2) for name in names}


def same_inputs(tokenizer: PairTokenizer, found: list[Pair], wanted: dict[str, Tensor]) -> None:
    """The same ids and token types; padding aside, which may be longer there."""
    batch = pair_batch(tokenizer, found, torch.device("cpu"))
    width = batch["input_ids"].shape[1]
    assert batch["input_ids"].tolist() == wanted["input_ids"][:, :width].tolist()
    assert batch["attention_mask"].sum(dim=1).tolist() == wanted["attention_mask"].sum(dim=1).tolist()
    assert batch["token_type_ids"].tolist() == wanted["token_type_ids"][:, :width].tolist()


def same_gradients(part: str, loss: Tensor, prefix: str, module: nn.Module, names: Names) -> int:
    """Compare the gradients of `loss` for a module's weights, whose published names begin with `prefix`; how many."""
    weights, start, count = dict(module.named_parameters()), f"{part}.grad.{prefix}", 0
    for name in (each.removeprefix(start) for each in NUMBERS if each.startswith(start)):
        there = next((each for each in names if name.startswith(each)), None)
        if there is not None and names[there] is not None:
            weight = weights[names[there] + name.removeprefix(there)]
            close(torch.autograd.grad(loss, weight, retain_graph=True)[0], start + name)
            count += 1
    return count


# Inputs


def test_the_tokenizer_is_the_published_one(pretrained: Path) -> None:
    model = REALM.from_pretrained(pretrained)
    tokenizer, config = model.encoder.tokenizer, model.config
    queries = [ids for ids, _ in tokenizer.pieces(TEXTS["queries"])]
    same_inputs(tokenizer, [tokenizer.single(ids, 40) for ids in queries], inputs("pretraining.query_"))
    rows = [row for each in TEXTS["retrieved"] for row in each]
    texts, titles = [BLOCKS[row] for row in rows], [TITLES[row] for row in rows]
    candidates = passage_inputs(tokenizer, config, texts, titles)
    same_inputs(tokenizer, candidates, inputs("pretraining.candidate_", "BNT"))
    joint = [
        reading.pair
        for ids, each in zip(queries, TEXTS["retrieved"], strict=True)
        for reading in readings(tokenizer, config, ids, [BLOCKS[row] for row in each], [TITLES[row] for row in each])
    ]
    same_inputs(tokenizer, joint, inputs("pretraining.joint_", "BNT"))


def test_transformers_reads_the_same_tokenizer(pretrained: Path) -> None:
    light, (_, full) = (
        FastTokenizer(pretrained / "reader"),
        load_base(locate(str(pretrained), REALMConfig).part("reader")),
    )
    texts = ["Quoth the RAVEN, nevermore.", "Who wrote [MASK]?", "Paríś", "xyz"]
    assert light(texts)["input_ids"] == full(texts)["input_ids"]
    assert (light.mask_token_id, light.pad_token_id) == (full.mask_token_id, full.pad_token_id)


# Vectors


def test_vectors_of_passages_and_questions(pretrained: Path, openqa: Path) -> None:
    for folder, question in ((pretrained, "embedder.projected_BP"), (openqa, "openqa.question_BP")):
        encoder = REALM.from_pretrained(folder).encoder
        close(np.concatenate([each.vectors_TD for each in encoder.passages(BLOCKS, TITLES)]), "embedder.blocks_NP")
        close(encoder.queries([TEXTS["question"]]), question)


def test_without_an_embedder_passages_get_the_questions_tower(tmp_path: Path) -> None:
    notes = convert([str(GOLDEN / "openqa")], tmp_path / "model")
    model = REALM.from_pretrained(tmp_path / "model")
    assert not model.config.separate_towers
    close(model.encoder.queries([TEXTS["question"]]), "openqa.question_BP")
    assert any("google/realm-cc-news-pretrained-embedder" in note for note in notes)


# Pre-training


def test_pretraining_loss_and_gradients(pretrained: Path) -> None:
    model = trained(pretrained)
    assert model.queries is model.passages
    q_BD = model.queries(inputs("pretraining.query_"))
    z_BND = model.passages(inputs("pretraining.candidate_", "BNT")).unflatten(0, (2, 3))
    relevance_BN = relevance(q_BD, z_BND, model.config.similarity_scale)
    logits_BNTV = model.reader.mlm(model.reader.states(inputs("pretraining.joint_", "BNT"))).unflatten(0, (2, 3))
    close(q_BD, "pretraining.query_vectors_BP")
    close(z_BND, "pretraining.candidate_vectors_BNP")
    close(relevance_BN, "pretraining.relevance_BN")
    close(logits_BNTV, "pretraining.logits_BNTV")
    labels_BT, masked_BT = NUMBERS["pretraining.labels_BT"], NUMBERS["pretraining.mlm_mask_BT"].bool()
    at_BNT1 = labels_BT.clamp(min=0)[:, None, :, None].expand(-1, 3, -1, 1)
    log_p_BNT = logits_BNTV.log_softmax(dim=-1).gather(3, at_BNT1).squeeze(3)
    loss = -marginal_per_token(log_p_BNT, log_retrieval(relevance_BN), masked_BT).sum() / masked_BT.sum()
    close(loss, "pretraining.loss")
    close(torch.autograd.grad(loss, relevance_BN, retain_graph=True)[0], "pretraining.grad.relevance_BN")
    assert same_gradients("pretraining", loss, "", model.reader, READER_NAMES) == 7
    assert same_gradients("pretraining", loss, "embedder.", model.passages, TOWER_NAMES) == 5
    labelled_BNT = log_p_BNT * masked_BT[:, None]
    everywhere = marginal_per_token(labelled_BNT, log_retrieval(relevance_BN), torch.ones_like(masked_BT))
    close(-everywhere.sum() / masked_BT.numel(), "pretraining.loss_without_mask")


def test_masked_words_as_the_model_reads_them(pretrained: Path) -> None:
    model = REALM.from_pretrained(pretrained)
    ids = model.encoder.tokenizer.pieces([TEXTS["queries"][1]])[0][0]
    rows = TEXTS["retrieved"][1]
    read = readings(model.encoder.tokenizer, model.config, ids, [BLOCKS[row] for row in rows], [""] * 3)
    logits_NTV = NUMBERS["pretraining.logits_BNTV"][1]
    wanted_NV = logits_NTV[:, ids.index(model.encoder.tokenizer.mask_id) + 1].log_softmax(dim=-1)
    torch.testing.assert_close(torch.from_numpy(model.reader.masked(read)), wanted_NV, atol=1e-4, rtol=1e-4)


# Reading


def spans_as_published(scores_BTW: Tensor) -> Tensor:
    """Scores of spans by start and width in the order of the published reader, by width and start: [B, C]."""
    start_C, end_C = NUMBERS["reader.span_starts_C"], NUMBERS["reader.span_ends_C"]
    return scores_BTW[:, start_C, end_C - start_C]


def legal_spans(inside_BT: Tensor) -> Tensor:
    """Which of those spans stand inside the passage: [B, C]."""
    return inside_BT[:, NUMBERS["reader.span_starts_C"]] & inside_BT[:, NUMBERS["reader.span_ends_C"]]


def test_spans_losses_and_gradients_of_the_reader(openqa: Path) -> None:
    model, n = trained(openqa), {name.removeprefix("reader."): value for name, value in NUMBERS.items()}
    first = {name: each_BT[:3] for name, each_BT in inputs("reader.").items()}
    scores_NC = spans_as_published(model.reader.span(model.reader.states(first)))
    legal_NC = legal_spans(n["block_mask_BT"][:3])
    assert (legal_NC == (n["logits_NC"] > -1e30)).all()
    torch.testing.assert_close(scores_NC[legal_NC], n["logits_NC"][legal_NC], atol=1e-4, rtol=1e-4)
    relevance_B = n["relevance_B"].clone().requires_grad_()
    total_NC = scores_NC + relevance_B[:3, None]
    retriever = marginal_choice_loss(relevance_B, n["has_answers_B"])
    reader = marginal_choice_loss(total_NC[legal_NC], n["reader_correct_NC"][legal_NC])
    for name, value in (("retriever_loss", retriever), ("reader_loss", reader), ("loss", retriever + reader)):
        close(value, f"reader.{name}")
    close(torch.autograd.grad(retriever + reader, relevance_B, retain_graph=True)[0], "reader.grad.relevance_B")
    assert same_gradients("reader", retriever + reader, "", model.reader, READER_NAMES) == 7
    block, candidate = divmod(int(total_NC.masked_fill(~legal_NC, -torch.inf).argmax()), total_NC.shape[1])
    assert block == int(n["best_block"])
    assert int(n["span_starts_C"][candidate]) == int(n["best_start"])
    assert int(n["span_ends_C"][candidate]) == int(n["best_end"])


def test_what_has_no_answer_costs_nothing() -> None:
    n = {name.removeprefix("reader."): value for name, value in NUMBERS.items()}
    nowhere_NC = torch.zeros_like(n["reader_correct_NC"])
    reader = marginal_choice_loss(n["logits_NC"].flatten(), nowhere_NC.flatten())
    close(reader + marginal_choice_loss(n["relevance_B"], n["has_answers_B"]), "reader.loss_without_span")
    retriever = marginal_choice_loss(n["relevance_B"], torch.zeros_like(n["has_answers_B"]))
    close(reader + retriever, "reader.loss_without_answer")


# Open QA


def occurrences(tokenizer: PairTokenizer, ids: list[int], first: int) -> Iterator[tuple[int, int]]:
    """Where an answer's tokens stand after place `first`: their first and last places."""
    for answer, _ in tokenizer.pieces(TEXTS["answers"]):
        for start in range(first, len(ids)):
            if ids[start : start + len(answer)] == answer:
                yield start, start + len(answer) - 1


def test_a_question_from_its_text_to_the_loss(openqa: Path) -> None:
    model, n = trained(openqa), {name.removeprefix("openqa."): value for name, value in NUMBERS.items()}
    tokenizer, config = model.tokenizer, model.config
    ids = tokenizer.pieces([TEXTS["question"]])[0][0]
    q_D = model.queries(pair_batch(tokenizer, [tokenizer.single(ids, config.query_tokens)], model.device))[0]
    beam = (NUMBERS["embedder.blocks_NP"] @ q_D).topk(6)
    assert beam.indices.tolist() == n["retrieved_N"].tolist()
    close(beam.values, "openqa.relevance_N")
    retrieved = [BLOCKS[row] for row in beam.indices.tolist()]
    seen = readings(tokenizer, config, ids, retrieved, [""] * 6)
    golds = [list(occurrences(tokenizer, each.pair.ids_T.tolist(), each.body)) for each in seen]
    assert [bool(each) for each in golds] == n["has_answers_N"].tolist()
    retriever = marginal_choice_loss(beam.values, n["has_answers_N"])
    batch = pair_batch(tokenizer, [each.pair for each in seen[:3]], model.device)
    scores_NTW = model.reader.span(model.reader.states(batch)) + beam.values[:3, None, None]
    scores, right = [], []
    for scores_TW, reading, gold in zip(scores_NTW, seen, golds, strict=False):
        for start in range(reading.body, len(reading.pair.ids_T) - 1):
            for width in range(min(config.span_width, len(reading.pair.ids_T) - 1 - start)):
                scores.append(scores_TW[start, width])
                right.append((start, start + width) in gold)
    reader = marginal_choice_loss(torch.stack(scores), torch.tensor(right))
    for name, value in (("retriever_loss", retriever), ("reader_loss", reader), ("loss", retriever + reader)):
        close(value, f"openqa.{name}")
    assert same_gradients("openqa", retriever + reader, "embedder.", model.queries, TOWER_NAMES) == 4
    assert same_gradients("openqa", retriever + reader, "reader.", model.reader, READER_NAMES) == 2


def test_a_converted_model_answers_from_a_corpus(openqa: Path, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "blocks.quoth")
    blocks = [(row, *block) for row, block in enumerate(TEXTS["blocks"]) if block[1]]
    corpus.add(Document(id=str(row), title=title, text=text) for row, title, text in blocks)
    model = REALM.from_pretrained(openqa, corpus=corpus)
    model.embed(storage="fp32")
    hits = model.search(TEXTS["question"], k=6)
    assert [int(hit.passage.document_id) for hit in hits] == NUMBERS["openqa.retrieved_N"].tolist()
    close([hit.score for hit in hits], "openqa.relevance_N")
    for answer in model.ask(TEXTS["question"], passages=3):
        for place in answer.evidence:
            assert corpus.document(place.document_id).text[place.start : place.end].lower() == answer.text.lower()
    assert model.fill(TEXTS["queries"][1])
