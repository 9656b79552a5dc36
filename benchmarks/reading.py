"""Reading against the bare forward: `python -m benchmarks.reading wiki.quoth texts.jsonl`.

Each line has a `question`; one with a `[MASK]` is filled. In turn, for each: CPU seconds of the bare fp32 forward of
BM25's passages (as many as the reader reads at most) through the reader's encoder, of `ask` or `fill`, and of the same
call if everything is read. Prints sums, their ratio to the forward, how many passages were read, and how many first
answers are those of everything. One thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import cpu_seconds, machine
from quoth import NPM, Corpus, Reader
from quoth.encoders.encoder import run_batched
from quoth.encoders.transformer import on_arrays, pair_batch
from quoth.hub import locate
from quoth.reader.config import ReaderConfig
from quoth.reader.runtime import GraphReader, open_reader
from quoth.reader.spans import Reading, SpanReader, query_ids
from quoth.reader.weights import load_reader
from quoth.text.tokenizer import MASK


class Counting(SpanReader):
    """Counts the passages that are read, all of them or enough."""

    count = 0

    def read(self, queries: Any, passages: Any, *known: Any) -> Any:
        """As `SpanReader.read`."""
        self.count += sum(map(len, passages))
        return super().read(queries, passages, *known)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("texts", type=Path, help="JSONL, or JSONL.gz")
    parser.add_argument("--model", default="quoth-reader", help="what reads (quoth-reader)")
    parser.add_argument("--fills", default="quoth-mini", help="what fills blanks (quoth-mini)")
    parser.add_argument("--count", type=int, default=40, help="how many texts, evenly spread (40)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    opened = gzip.open if given.texts.suffix == ".gz" else open
    with opened(given.texts, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["question"] for line in file]
    compare(Corpus.open(given.corpus), texts[:: max(1, len(texts) // given.count)][: given.count], given)


def compare(corpus: Corpus, texts: list[str], given: argparse.Namespace) -> None:
    """Prints the table."""
    bare, own = SpanReader(*load_reader(locate(given.model, ReaderConfig))), open_reader(given.model)
    enough = Counting(own.model, own.tokenizer)
    every = copy(enough)
    every.config = replace(own.config, unread_bound=None)
    names = "bare fp32 forward", "enough read", "everything read"
    sums, same = dict.fromkeys(names, 0.0), 0
    calls = [call_of(reader, corpus, given.fills) for reader in (enough, every)]
    for call in calls:
        call(texts[0])
    enough.count = every.count = 0
    for text in texts:
        inputs = inputs_of(bare, Reader(bare, [corpus]), text)
        firsts: list[Any] = []
        sums[names[0]] += cpu_seconds(lambda inputs=inputs: forward(bare, inputs))
        for name, call in zip(names[1:], calls, strict=True):
            sums[name] += cpu_seconds(lambda call=call, text=text, firsts=firsts: firsts.append(call(text)))
        same += firsts[0] == firsts[1]
    read = dict(zip(names, ("", *(f"{each.count / len(texts):.1f}" for each in (enough, every))), strict=True))
    runtime = "ONNX Runtime" if isinstance(own.model, GraphReader) else "PyTorch"
    print(f"{len(texts)} texts, {given.corpus.name}, {runtime}, {machine()}; first answers the same: {same}")
    print("| | CPU ms per text | of the forward | passages |\n|---|---:|---:|---:|")
    for name, seconds in sums.items():
        share = seconds / sums[names[0]]
        print(f"| {name} | {1000 * seconds / len(texts):.0f} | {share:.2f} | {read[name]} |")


def call_of(reading: SpanReader, corpus: Corpus, fills: str) -> Any:
    """What gives the first answer to a question or for a blank."""
    reader, npm = Reader(reading, [corpus]), NPM.from_pretrained(fills, corpus=corpus)
    npm = NPM(npm.encoder, [corpus], lambda: reading)

    def first(text: str) -> str:
        found = npm.over([corpus]).fill(text) if MASK in text else reader.ask(text)
        return found[0].text if found else ""

    return first


def inputs_of(reading: SpanReader, reader: Reader, text: str) -> list[Reading]:
    """BM25's passages as the network sees them."""
    passages = [hit.passage for hit in reader.search(text.replace(MASK, " "), reading.config.defaults.passages)]
    asked = [query_ids(reading.tokenizer, text, reading.config.query_tokens)]
    return [window for _, shown in reading._shown(asked, [passages], lambda passage: None) for window in shown]


def forward(reading: SpanReader, inputs: list[Reading]) -> None:
    """The encoder alone, in the batches in which they are read."""

    def states(read: list[Reading]) -> Tensor:
        batch = pair_batch(reading.tokenizer, [each.pair for each in read], torch.device("cpu"))
        states_BTH: Tensor = reading.model.encoder(**batch).last_hidden_state
        return states_BTH

    for _ in run_batched(inputs, [len(each.pair.ids_T) for each in inputs], on_arrays(states)):
        pass


if __name__ == "__main__":
    main()
