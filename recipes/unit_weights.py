"""The weights by which a reader ranks the units of its passages, and by which it tells their chance.

    python recipes/unit_weights.py adapters/reader faq.jsonl.xz policies.jsonl.xz …

A line of questions has `question`, `title`, `text`, and `evidence`, the character ranges that answer; one without a
question has a text beside them. The texts of a file make a corpus, of which each question is asked. `unit_weights` are
those of a conditional logistic regression: the likelihood that of all pieces read for a question one is taken that
answers. A piece answers if the characters that it shares with a range are half of its own or half of the range's.
`sentence_calibration` is a logistic regression: whether a unit answers, of the three best by these weights. Prints
both, for `quoth.json`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quoth.answers.calibration import fit
from quoth.answers.evidence import Source, Spans, sources_of
from quoth.corpus.corpus import Corpus
from quoth.index.finder import Finder
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader
from quoth.reader.units import judged_units, measured, shares
from quoth.records import Document

RIDGE = 1e-3
Answers = Callable[[str, int, int], bool]
"""Whether these characters of a document answer."""


def asked(reader: SpanReader, file: Path, most: int) -> Iterator[tuple[Sequence[Source], Sequence[Spans], Answers]]:
    """What is read for the questions of a file."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    random.Random(0).shuffle(rows)
    texts = {key: str(n) for n, key in enumerate(dict.fromkeys((row.get("title") or "", row["text"]) for row in rows))}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.create(Path(folder) / "c.quoth")
        corpus.add(Document(number, title, text) for (title, text), number in texts.items())
        finder = Finder([corpus])
        for row in [row for row in rows if row.get("question")][:most]:
            own, ranges = texts[row.get("title") or "", row["text"]], row["evidence"]

            def answers(document: str, start: int, end: int, own: str = own, ranges: Any = ranges) -> bool:
                shared = ((min(high, end) - max(low, start), min(high - low, end - start)) for low, high in ranges)
                return document == own and any(2 * both >= least for both, least in shared)

            [ranking] = finder.rankings([row["question"]], reader.config.defaults.passages, [()])
            passages = [corpus.passage(number) for _, (_, number) in ranking]
            sources = sources_of(ranking, passages, [corpus], corpus.num_passages)
            [spans] = reader.read_enough([row["question"]], [sources])
            yield sources[: len(spans)], spans, answers


def weigh(questions: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, ...]:
    """The weights of pieces' features [N, F] of highest likelihood, none below 0, by which of them answer [N]. A
    feature whose weight would be negative is left out (0), the most negative first."""
    rows = [(torch.from_numpy(x_NF), torch.from_numpy(y_N)) for x_NF, y_N in questions if y_N.any()]
    used_F = torch.ones(rows[0][0].shape[1], dtype=torch.float64)
    while (w_F := likeliest([(x_NF * used_F, y_N) for x_NF, y_N in rows])).min() < 0:
        used_F[w_F.argmin()] = 0
    return tuple(w_F.tolist())


def likeliest(rows: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    w_F = torch.zeros(rows[0][0].shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w_F], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        each = [torch.logsumexp(x_NF @ w_F, 0) - torch.logsumexp((x_NF @ w_F)[y_N], 0) for x_NF, y_N in rows]
        value = torch.stack(each).mean() + RIDGE * w_F.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return w_F.detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reader", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=100, help="questions of a file")
    given = parser.parse_args()
    reader = open_reader(str(given.reader))
    read = [each for file in given.files for each in asked(reader, file, given.most)]
    questions = []
    for sources, spans, answers in read:
        parts, _, features = measured(sources, spans, shares(sources, spans, reader.config.prior))
        every = [(source.passage, piece) for source, part in zip(sources, parts, strict=True) for piece in part]
        right = [
            answers(passage.document_id, passage.start + piece.start, passage.start + piece.end) and not piece.heads
            for passage, piece in every
        ]
        questions.append((np.array([own for part in features for own in part]), np.array(right)))
    config = replace(reader.config, unit_weights=weigh(questions))
    known, right = [], []
    for sources, spans, answers in read:
        for unit, own in judged_units(sources, spans, config, 3):
            [place] = unit.evidence
            known.append(own)
            right.append(answers(place.document_id, place.start, place.end))
    print(
        json.dumps({"unit_weights": config.unit_weights, "sentence_calibration": fit(np.array(known), np.array(right))})
    )


if __name__ == "__main__":
    main()
