"""A reader's examples as tables of tokens, of which a GPU makes batches by itself; and what was trained, as a reader.

    python recipes/gpu/reader_tables.py pack runs/gpu/train.npz squad_train.jsonl.gz nq_train.jsonl.gz \\
        --work runs/negatives
    python recipes/gpu/reader_tables.py pack runs/gpu/dev.npz dev_nq.jsonl.gz dev_entities.jsonl.gz
    python recipes/gpu/reader_tables.py whole quoth-reader-small -o runs/gpu/small       # weights to start from
    python recipes/gpu/reader_tables.py unpack OUT/reader -o after --model quoth-reader

The tokens are those of `--model`; every text is stored once, so that a table is about a quarter of its files.
`FILE:0.25` takes a quarter of a file in each epoch. `--work` is a folder for BM25's passages without an answer, found
once; without it none are added to those of the files.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from reader_job import save, stored_in

from quoth.hub import locate
from quoth.reader.config import ReaderConfig
from quoth.reader.data import ReadingExample, TitledText
from quoth.reader.recipe import compared_with, read_files, with_negatives
from quoth.reader.training import Inputs
from quoth.reader.weights import load_reader, save_reader, trained

READER = "quoth-reader"
Rows = NDArray[Any]


class Pieces:
    """Sequences of whole numbers, each stored once."""

    def __init__(self) -> None:
        self.rows: list[Rows] = []
        self._known: dict[bytes, int] = {}

    def row(self, values: Sequence[int] | Rows) -> int:
        array = np.asarray(values, np.uint16)
        if (key := array.tobytes()) not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(array)
        return self._known[key]

    def arrays(self, name: str) -> dict[str, Rows]:
        ends = np.cumsum([0, *map(len, self.rows)])
        return {name: np.concatenate(self.rows), f"{name}_at": ends.astype(np.int64)}


def tables(examples: Sequence[ReadingExample], kinds: Sequence[tuple[int, int]], inputs: Inputs) -> dict[str, Rows]:
    """`ids` and `flags` hold what inputs consist of, one after another, with the places where each begins (`…_at`).

    `readings` [R, 3]: the rows of an input's ids before the passage, of the passage's ids and of its flags. `second`
    [R]: where the second text begins. `right` [S, 3]: reading, first token of the passage and tokens beyond it.
    `questions` [N, 5]: own reading, first and last + 1 of the negatives', kind, 1 if its answer can be marked.
    """
    ids, flags = Pieces(), Pieces()
    readings, second, right, questions = [], [], [], []

    def add(number: int, passage: TitledText, answers: Sequence[tuple[int, int]]) -> bool:
        seen = inputs.read(number, passage, answers)
        pair, body = seen.reading.pair, seen.reading.body
        whole = pair.ids_T.tolist()
        last = body + len(seen.reading.flags_T)
        right.extend((len(readings), first, beyond) for first, beyond in seen.right_R2.tolist())
        readings.append((ids.row(whole[:body]), ids.row(whole[body:last]), flags.row(seen.reading.flags_T)))
        second.append(pair.second)
        return len(seen.right_R2) > 0

    for kind, (first, last) in enumerate(kinds):
        for number in range(first, last):
            example, own = examples[number], len(readings)
            marked = add(number, example.passage, example.answers) or not example.answers
            for negative in example.negatives:
                add(number, negative, ())
            questions.append((own, own + 1, len(readings), kind, int(marked)))
    return {
        **ids.arrays("ids"),
        **flags.arrays("flags"),
        "readings": np.array(readings, np.int32),
        "second": np.array(second, np.int32),
        "right": np.array(right, np.int32).reshape(-1, 3),
        "questions": np.array(questions, np.int32),
    }


def pack(options: argparse.Namespace) -> None:
    examples, shares = read_files(options.files)
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
        examples = with_negatives(examples, options.work, lambda what, _: lambda done: print(what, done, flush=True))
    most = options.negatives
    examples = [replace(example, negatives=example.negatives[:most]) for example in examples]
    source = locate(options.model, ReaderConfig)
    _, tokenizer = load_reader(source)
    made = tables(examples, [share[:2] for share in shares], Inputs(examples, tokenizer, source.config))
    kinds = {
        "kinds": np.array([Path(file).name.split(".")[0] for file in options.files]),
        "shares": np.array([share for *_, share in shares]),
    }
    frame = np.array([tokenizer.sep_id, tokenizer.pad_id], np.int32)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.output, **made, **kinds, frame=frame)
    size = options.output.stat().st_size / 1e6
    print(f"{options.output}: {len(examples):,} examples, {len(made['readings']):,} inputs, {size:.1f} MB")


def unpack(options: argparse.Namespace) -> None:
    source = locate(options.model, ReaderConfig)
    model, _ = load_reader(source)
    stored, base = stored_in(options.weights.glob("weights-*")), compared_with(source, model)
    with torch.no_grad():
        for name, weight in trained(model).items():
            weight.copy_(stored[name])
    save_reader(options.output, model, base, source.config.to_dict())


def whole(options: argparse.Namespace) -> None:
    model, _ = load_reader(locate(options.model, ReaderConfig))
    save(trained(model), options.output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack", help="files of examples into one table")
    packing.add_argument("output", type=Path)
    packing.add_argument("files", nargs="+", help="as `quoth train reader` takes them")
    packing.add_argument("--work", type=Path, help="folder for the negatives that are found")
    packing.add_argument("--negatives", type=int, default=3, help="of an example, at most (default: 3)")
    packing.add_argument("--model", default=READER, help=f"whose tokens (default: {READER})")
    packing.set_defaults(run=pack)
    unpacking = commands.add_parser("unpack", help="trained weights into a reader's folder")
    unpacking.add_argument("weights", type=Path, help="folder with weights-….safetensors")
    unpacking.add_argument("-o", "--output", type=Path, required=True)
    unpacking.add_argument("--model", default=READER, help="the reader that the training began from")
    unpacking.set_defaults(run=unpack)
    writing = commands.add_parser("whole", help="a reader's weights as they are, not as differences from its base")
    writing.add_argument("model")
    writing.add_argument("-o", "--output", type=Path, required=True)
    writing.set_defaults(run=whole)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
