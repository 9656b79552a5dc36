"""A tiny REALM over a synthetic corpus, and its training runs, for the tests of REALM's training."""

from __future__ import annotations

import copy
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from quoth.corpus.corpus import Corpus
from quoth.hub import ModelSource, locate
from quoth.realm.config import REALMConfig
from quoth.realm.salient import Masked
from quoth.realm.trained import PARTS, TrainedREALM
from quoth.records import Document, Passage, TaggedSpan
from quoth.training.settings import LoopConfig
from tiny import tiny_bert

CITIES = {
    "Greece": "Athens",
    "France": "Paris",
    "Germany": "Berlin",
    "Korea": "Seoul",
    "China": "Beijing",
    "Egypt": "Cairo",
    "India": "Delhi",
    "Spain": "Madrid",
}
SENTENCES = ("The capital of {0} is {1}.", "In {1}, the people of {0} sing by the old river until night.")
DOCUMENTS = [
    Document(f"{name}-{i}", name, sentence.format(name, city))
    for name, city in CITIES.items()
    for i, sentence in enumerate(SENTENCES)
]
TEXT = [f"{document.title} {document.text}" for document in DOCUMENTS]
CONFIG = REALMConfig(
    dimensions=16,
    similarity_scale=1.0,
    num_candidates=4,
    query_tokens=24,
    passage_tokens=40,
    reader_tokens=64,
    reader_titles=True,
    span_hidden=8,
    span_width=4,
)


class Names:
    """Stands in for a tagger: countries and cities by their names."""

    def spans(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        names = re.compile("|".join([*CITIES, *CITIES.values()]))
        return [[TaggedSpan(*match.span(), "LOC") for match in names.finditer(text)] for text in texts]


def make_corpus(folder: Path, documents: Sequence[Document] = DOCUMENTS) -> Corpus:
    corpus = Corpus.create(folder)
    corpus.add(documents)
    return corpus


def make_model(folder: Path, rank: int = 0, **settings: Any) -> Path:
    """A model folder: whole encoders, or with a rank adapters to a base beside it."""
    base = str(tiny_bert(folder.with_name(f"{folder.name}-base"), TEXT))
    config = REALMConfig.from_dict({**CONFIG.to_dict(), "base": base, **settings})
    trained(ModelSource("tiny", config, None, base), rank=rank, scatter=True).save(folder)
    return folder


def trained(
    source: ModelSource[REALMConfig] | Path,
    parts: Sequence[str] = PARTS,
    *,
    rank: int = 0,
    scatter: bool = False,
    own_queries: bool = False,
) -> TrainedREALM:
    """A model with gradients; `scatter` gives heads and adapters, which begin at 0 in part, weights to tell apart."""
    if isinstance(source, Path):
        source = locate(str(source), REALMConfig)
    model = TrainedREALM(source, LoopConfig(lora_rank=rank), trained=parts, own_queries=own_queries)
    return scattered(model) if scatter else model


def scattered(model: TrainedREALM, seed: int = 0, std: float = 0.1) -> TrainedREALM:
    """Move every weight that is trained."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters.values():
            parameter += std * torch.randn(parameter.shape, generator=generator)
    return model


def environment(**variables: str) -> dict[str, str]:
    """Of another process that runs tests' code."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": paths, **variables}


class Snapshot:
    """Stands in for the index: every passage's vector by the model as it is now, compared one by one."""

    def __init__(self, model: TrainedREALM, corpus: Corpus) -> None:
        self.corpus, self.asked, self.hidden, self.found = corpus, list[Any](), list[Any](), list[Any]()
        self.rows = corpus.live_rows().tolist()
        passages = [corpus.passage(row) for row in self.rows]
        self.vectors = np.stack([passage_vector(model, each.text, each.title).detach().numpy() for each in passages])

    def refresh(self, step: int, model: TrainedREALM) -> int:
        return 0

    def nearest(self, q_BD: Any, k: int, exclude: Sequence[Any]) -> list[list[Passage]]:
        self.asked, self.hidden, self.found = q_BD, exclude, []
        for q_D, hidden in zip(q_BD, exclude, strict=True):
            best = sorted((-float(z_D @ q_D), row) for z_D, row in zip(self.vectors, self.rows, strict=True))
            self.found.append([self.corpus.passage(row) for _, row in best if row not in set(hidden)][:k])
        return self.found


def passage_vector(model: TrainedREALM, text: str, title: str) -> torch.Tensor:
    """By the passage tower, alone and without padding, from an input made here: [D]."""
    hf, limit = model.tokenizer.hf, model.config.passage_tokens
    title_ids, ids = (hf(each, add_special_tokens=False)["input_ids"] for each in (title, text))
    head = [hf.cls_token_id, *title_ids, hf.sep_token_id]
    return encoded(model, model.passages, [*head, *ids[: limit - len(head) - 1], hf.sep_token_id], len(head))


def query_vector(model: TrainedREALM, ids: Sequence[int]) -> torch.Tensor:
    """By the query tower: [D]."""
    hf = model.tokenizer.hf
    cut = [hf.cls_token_id, *ids[: model.config.query_tokens - 2], hf.sep_token_id]
    return encoded(model, model.queries, cut, len(cut))


def encoded(model: TrainedREALM, network: Any, ids: list[int], second: int) -> torch.Tensor:
    """What a network makes of one input: a tower's vector, or the reader's states."""
    types = torch.tensor([[int(model.config.token_types and t >= second) for t in range(len(ids))]])
    ones = torch.ones(1, len(ids), dtype=torch.long)
    batch = {"input_ids": torch.tensor([ids]), "attention_mask": ones, "token_type_ids": types}
    out: torch.Tensor = network(batch)[0]
    return out


def reader_input(model: TrainedREALM, question: Sequence[int], text: str, title: str) -> tuple[list[int], int]:
    """ "[CLS] question [SEP] title. text [SEP]", and where the second begins."""
    hf, limit = model.tokenizer.hf, model.config.reader_tokens
    body = hf(f"{title}. {text}" if title else text, add_special_tokens=False)["input_ids"]
    head = [hf.cls_token_id, *question, hf.sep_token_id]
    return [*head, *body[: limit - len(head) - 1], hf.sep_token_id], len(head)


def log_likelihoods(model: TrainedREALM, example: Masked, text: str, title: str) -> torch.Tensor:
    """log p(y_m|z,x) of each mask: [M]."""
    ids, second = reader_input(model, example.ids, text, title)
    states_TH = encoded(model, lambda batch: model.reader.states(batch), ids, second)
    log_p_TV = model.reader.mlm(states_TH).log_softmax(dim=-1)
    return torch.stack([log_p_TV[1 + at, token] for at, token in zip(example.masks_M, example.hidden_M, strict=True)])


def slow_log_likelihood(model: TrainedREALM, example: Masked, passages: list[Any], per_token: bool) -> torch.Tensor:
    """log p(y|x), by p(z|x) and p(y|z,x) of the null document and each passage."""
    candidates = [("", ""), *((each.text, each.title) for each in passages)]
    q_D, scale = query_vector(model, example.ids), model.config.similarity_scale
    p_N = torch.stack([scale * (q_D @ passage_vector(model, *each)) for each in candidates]).softmax(dim=0)
    p_NM = torch.stack([log_likelihoods(model, example, *each) for each in candidates]).exp()
    if per_token:
        return (p_N @ p_NM).log().sum()
    return (p_N * p_NM.prod(dim=1)).sum().log()


def doubled(model: TrainedREALM) -> TrainedREALM:
    """The same model in float64."""
    twin = copy.deepcopy(model)
    for part in (twin.passages, twin.queries, twin.reader):
        part.double()
    return twin


def assert_same_gradients(model: TrainedREALM, expected: TrainedREALM) -> None:
    """With at least one that is not 0."""
    largest = 0.0
    for name, parameter in expected.parameters.items():
        mine, theirs = model.parameters[name].grad, parameter.grad
        if mine is None or theirs is None:
            assert mine is None or not mine.any(), name
            assert theirs is None or not theirs.any(), name
        else:
            torch.testing.assert_close(mine.double(), theirs, atol=1e-5, rtol=1e-3)
            largest = max(largest, float(theirs.abs().max()))
    assert largest > 1e-3


def assert_gradients_of_both(path: Path, model: TrainedREALM, atol: float, rtol: float) -> None:
    """What two processes have stored, each with its rank behind the path, are the model's gradients."""
    for rank in range(2):
        theirs = load_file(f"{path}-{rank}")
        for name, parameter in model.parameters.items():
            mine = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(theirs[name], mine, atol=atol, rtol=rtol)
