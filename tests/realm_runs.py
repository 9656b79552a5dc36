"""A tiny REALM over a synthetic corpus, and its training runs, for the tests of REALM's training."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from quoth.config import REALMConfig
from quoth.corpus.corpus import Corpus
from quoth.encoders.pretrained import REALMSource, locate_realm
from quoth.records import Document, TaggedSpan
from quoth.training.realm_model import PARTS, TrainedREALM
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
    trained(REALMSource("tiny", config, None, base), rank=rank, scatter=True).save(folder)
    return folder


def trained(
    source: REALMSource | Path,
    parts: Sequence[str] = PARTS,
    *,
    rank: int = 0,
    scatter: bool = False,
    own_queries: bool = False,
) -> TrainedREALM:
    """A model with gradients; `scatter` gives heads and adapters, which begin at 0 in part, weights to tell apart."""
    if isinstance(source, Path):
        source = locate_realm(str(source))
    model = TrainedREALM(source, trained=parts, lora_rank=rank, own_queries=own_queries)
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
