"""Train a reader on tables of tokens (reader_tables.py) for a given time; a larger one can teach it.

    python recipes/gpu/reader_job.py runs/gpu --base runs/gpu/base --vocabulary runs/gpu/reader --keep teacher \\
        --out "$OUT" --seconds 400 --rate 6e-5 --batch 96 --dropout 0.1
    python recipes/gpu/reader_job.py runs/gpu --base runs/gpu/reader --vocabulary runs/gpu/reader --out "$OUT" \\
        --seconds 470 --start runs/gpu/reader/reader.safetensors --teacher runs/gpu/base runs/gpu-work/teacher

The first folder has train.npz and dev.npz. The learning rate rises, then falls to 0 with the time. What comes back:
weights in half precision, in files of at most 15 MB, and facts.json: what the reader gets right of dev.npz, passage
given.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from quoth.encoders.bert import all_whole
from quoth.encoders.rounding import SCALE
from quoth.encoders.transformer import load_base
from quoth.hub import EncoderSource
from quoth.reader.config import ReaderConfig
from quoth.reader.network import SpanReaderModel
from quoth.reader.training import Marked, taught_loss
from quoth.reader.weights import trained
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START
from quoth.text.tokenizer import batches_by_length
from quoth.training.adapter import set_dropout
from quoth.training.epochs import by_length, turns

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PART = 15e6
WARMUP = 0.04
FIXED = ("position_embeddings", "token_type_embeddings", "relative_attention_bias")
"""Not trained: few rows with many tokens each, whose gradient would take longer than all else."""
SAME = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}
"""BERT's special tokens, and MPNet's in their place."""
Ints = NDArray[np.int64]
Held = TypeVar("Held", Tensor, NDArray[Any])


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs [B, T], and which spans are legal and right [B, T, W]."""

    ids_BT: Tensor
    seen_BT: Tensor
    types_BT: Tensor
    legal_BTW: Tensor
    right_BTW: Tensor


class Tables:
    """All inputs in one row on the device, with the flags of their passages' tokens."""

    def __init__(self, file: Path, width: int) -> None:
        stored = np.load(file)
        self.width, self.questions = width, stored["questions"].astype(np.int64)
        self.kinds, self.shares = [str(kind) for kind in stored["kinds"]], stored["shares"].tolist()
        separator, self.pad = stored["frame"].tolist()
        head, body, flags = stored["readings"].astype(np.int64).T
        ids, ids_at = stored["ids"], stored["ids_at"]
        heads, bodies = np.diff(ids_at)[head], np.diff(ids_at)[body]
        self.length, self.body = heads + bodies + 1, heads
        at = np.cumsum([0, *self.length])
        row, marks = np.full(at[-1], separator, np.int32), np.zeros(at[-1], np.uint8)
        _fill(row, at[:-1], ids, ids_at[head], heads)
        _fill(row, at[:-1] + heads, ids, ids_at[body], bodies)
        _fill(marks, at[:-1] + heads, stored["flags"], stored["flags_at"][flags], bodies)
        self._row, self._flags = (torch.from_numpy(each).to(DEVICE) for each in (row, marks))
        parts = (at[:-1], self.length, stored["second"].astype(np.int64), self.body)
        self._first, self._length, self._second, self._body = (torch.from_numpy(each).to(DEVICE) for each in parts)
        self._right = stored["right"].astype(np.int64)
        self._right_at = np.searchsorted(self._right[:, 0], np.arange(len(head) + 1))

    def batch(self, readings: Ints) -> Batch:
        length = -(-int(self.length[readings].max()) // 8) * 8
        b, t = torch.from_numpy(readings).to(DEVICE), torch.arange(length, device=DEVICE)
        seen_BT = t < self._length[b][:, None]
        at_BT = (self._first[b][:, None] + t).clamp_max(len(self._row) - 1)
        ids_BT = torch.where(seen_BT, self._row[at_BT].long(), self.pad)
        flags_BT = torch.where(seen_BT, self._flags[at_BT], 0)
        inside_BT = (t >= self._body[b][:, None]) & (t < self._length[b][:, None] - 1)
        start_BT, end_BT = (((flags_BT & flag) > 0) & inside_BT for flag in (MAY_START, MAY_END))
        line_BT = ((flags_BT & BREAK_BEFORE) > 0).cumsum(dim=1)
        end_BTW, line_BTW = (self._ahead(each, value) for each, value in ((end_BT, 0), (line_BT, -1)))
        legal_BTW = start_BT[:, :, None] & end_BTW & (line_BTW == line_BT[:, :, None])
        right_BTW = torch.zeros_like(legal_BTW)
        spans = [
            (row, int(self.body[reading]) + first, beyond)
            for row, reading in enumerate(readings.tolist())
            for _, first, beyond in self._right[self._right_at[reading] : self._right_at[reading + 1]].tolist()
        ]
        if spans:
            right_BTW[tuple(torch.tensor(spans, device=DEVICE).T)] = True
        types_BT = ((t >= self._second[b][:, None]) & seen_BT).long()
        return Batch(ids_BT, seen_BT.long(), types_BT, legal_BTW, right_BTW)

    def _ahead(self, each_BT: Tensor, beyond: int) -> Tensor:
        """What is said of the tokens from each one on: [B, T, W]."""
        return torch.nn.functional.pad(each_BT, (0, self.width - 1), value=beyond).unfold(1, self.width, 1)


def _fill(row: NDArray[Any], places: Ints, source: NDArray[Any], begins: Ints, lengths: Ints) -> None:
    """Copy a piece of the source to each place."""
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    row[np.repeat(places, lengths) + within] = source[np.repeat(begins, lengths) + within]


class Network:
    """A reader, and the ids that it has for those of the tables."""

    def __init__(self, base: Path, work: Path, weights: Path | None, vocabulary: Path) -> None:
        folder = joined(base, work)
        encoder, _ = load_base(EncoderSource(str(folder)))
        self.model = SpanReaderModel(encoder, ReaderConfig())
        if weights is not None:
            stored = stored_in(weights.glob("weights-*") if weights.is_dir() else [weights])
            if any(name.endswith(SCALE) for name in stored):
                raise SystemExit(f"{weights} has differences from a base; write it with reader_tables.py whole")
            with torch.no_grad():
                for name, weight in trained(self.model).items():
                    if name in stored or not name.startswith("encoder."):
                        weight.copy_(stored[name])
        self.model.to(DEVICE)
        self._types = encoder.config.model_type != "mpnet"
        self._ids_V = None if self._types else same_words(vocabulary, folder).to(DEVICE)

    def odds(self, batch: Batch) -> Tensor:
        ids_BT = batch.ids_BT if self._ids_V is None else self._ids_V[batch.ids_BT]
        inputs = {"input_ids": ids_BT, "attention_mask": batch.seen_BT}
        if self._types:
            inputs["token_type_ids"] = batch.types_BT
        with torch.autocast(DEVICE.type, torch.bfloat16):
            odds_BTW: Tensor = self.model(inputs, batch.legal_BTW)
        return odds_BTW


def joined(base: Path, folder: Path) -> Path:
    """A base whose packed parts (pack.py) are joined, in fp32; one without parts as it is."""
    stored = stored_in(base.glob("part-*.safetensors"))
    if not stored:
        return base
    folder.mkdir(parents=True, exist_ok=True)
    save_file(all_whole(stored), folder / "model.safetensors")
    for file in base.glob("*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def stored_in(files: Iterable[Path]) -> dict[str, Tensor]:
    """The tensors of all files."""
    return {name: each for file in files for name, each in load_file(file).items()}


def in_parts(groups: Iterable[Mapping[str, Held]], most: float) -> list[dict[str, Held]]:
    """The arrays, as few parts as their order allows, of at most so many bytes each; a group stays together."""
    parts: list[dict[str, Held]] = [{}]
    for group in groups:
        if sum(each.nbytes for each in (*parts[-1].values(), *group.values())) > most:
            parts.append({})
        parts[-1] |= group
    return parts


def same_words(ours: Path, theirs: Path) -> Tensor:
    """For each id of the tables' vocabulary the id of the same word in another one: [V]."""
    own, other = (json.loads((each / "tokenizer.json").read_text())["model"]["vocab"] for each in (ours, theirs))
    ids_V = torch.full((max(own.values()) + 1,), other["[UNK]"])
    for word, number in own.items():
        ids_V[number] = other.get(SAME.get(word, word), other["[UNK]"])
    return ids_V


def epochs(tables: Tables, rng: np.random.Generator) -> Iterator[Ints]:
    """The questions of one epoch after another: each kind's share, all of a kind before any of it twice."""
    kind_N, marked_N = tables.questions[:, 3], tables.questions[:, 4] > 0
    kinds = [rng.permutation(np.flatnonzero((kind_N == number) & marked_N)) for number in range(len(tables.shares))]
    counts = [round(share * len(own)) for share, own in zip(tables.shares, kinds, strict=True)]
    for epoch in itertools.count():
        drawn = [
            number
            for own, count in zip(kinds, counts, strict=True)
            for number in turns(epoch * count, (epoch + 1) * count, len(own), lambda _, own=own: own)
        ]
        yield rng.permutation(np.array(drawn))


def batches(tables: Tables, options: argparse.Namespace) -> Iterator[tuple[Ints, Ints]]:
    """Readings and the number of the question of each, within the batch: questions of similar length together, some
    with passages that do not answer them, some with such a one alone."""
    rng, size = np.random.default_rng(options.seed), options.batch
    for order in epochs(tables, rng):
        for parts in by_length(order, tables.length[tables.questions[order, 0]].tolist(), size):
            for part in rng.permutation(len(parts)).tolist():
                readings: list[int] = []
                owners: list[int] = []
                for owner, (own, first, last) in enumerate(tables.questions[parts[part], :3].tolist()):
                    shown = [own]
                    if last > first and rng.random() < options.unanswerable:
                        shown = [int(rng.integers(first, last))]
                    elif last > first and rng.random() < options.negative_share:
                        shown += rng.permutation(np.arange(first, last))[:2].tolist()
                    readings += shown
                    owners += [owner] * len(shown)
                yield np.array(readings), np.array(owners)


def loss_of(
    tables: Tables, pupil: Network, teacher: Network | None, step: tuple[Ints, Ints], options: argparse.Namespace
) -> Tensor:
    readings, owners = step
    parts = []
    for members in batches_by_length(tables.length[readings].tolist(), options.tokens):
        batch = tables.batch(readings[members])
        with torch.no_grad():
            taught_BTW = teacher.odds(batch) if teacher else None
        owner = torch.from_numpy(owners[members]).to(DEVICE)
        parts.append(Marked(pupil.odds(batch), batch.right_BTW, owner, taught_BTW))
    questions = int(owners.max()) + 1
    return taught_loss(parts, questions, weight=options.teacher_weight, temperature=options.temperature)


def train(tables: Tables, pupil: Network, teacher: Network | None, options: argparse.Namespace) -> dict[str, Any]:
    """Until the time is over. Returns what was done."""
    weights = {name: each for name, each in trained(pupil.model).items() if not any(map(name.__contains__, FIXED))}
    pupil.model.requires_grad_(False)
    for weight in weights.values():
        weight.requires_grad_(True)
    set_dropout(pupil.model, options.dropout)
    decayed, others = ([each for each in weights.values() if (each.ndim == 2) == matrix] for matrix in (True, False))
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        fused=DEVICE.type == "cuda",
    )
    began = shown = time.perf_counter()
    steps = tokens = 0
    losses: list[Tensor | float] = []
    for step in batches(tables, options):
        done = (time.perf_counter() - began) / options.seconds
        if done >= 1 or steps == options.steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = options.rate * share_of_rate(done)
        loss = loss_of(tables, pupil, teacher, step, options)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        steps, tokens = steps + 1, tokens + int(tables.length[step[0]].sum())
        losses.append(loss.detach())
        if time.perf_counter() - shown > 15:
            mean, shown, losses = finite(losses, steps), time.perf_counter(), []
            print(json.dumps({"step": steps, "loss": mean, "tokens_per_second": tokens / (shown - began)}), flush=True)
    if losses:
        finite(losses, steps)
    return {"steps": steps, "tokens": tokens}


def share_of_rate(done: float) -> float:
    """Of the highest learning rate, when this share of the time is over: it rises, then falls to 0."""
    return min(1.0, max(done, 1e-3) / WARMUP, (1 - done) / (1 - WARMUP))


def finite(losses: Sequence[Tensor | float], steps: int) -> float:
    """Their mean. Ends the run if it is no number."""
    mean = float(np.mean(list(map(float, losses))))
    if not math.isfinite(mean):
        raise SystemExit(f"the loss is {mean} at step {steps}; train with a lower --rate")
    return mean


@torch.no_grad()
def measured(tables: Tables, network: Network) -> dict[str, dict[str, float]]:
    """Of each kind's questions, own passage given, in %: right first (exactly the marked span), and with more than
    half of the mass on some answer ("sure"), apart by whether their passage answers them."""
    network.model.eval()
    found: dict[str, dict[str, float]] = {}
    for number, kind in enumerate(tables.kinds):
        readings = tables.questions[tables.questions[:, 3] == number, 0]
        right, said, sure = (np.zeros(len(readings), bool) for _ in range(3))
        for members in batches_by_length(tables.length[readings].tolist(), 65536):
            batch = tables.batch(readings[members])
            odds = network.odds(batch).flatten(1)
            marked = batch.right_BTW.flatten(1)
            right[members] = marked.gather(1, odds.argmax(dim=1)[:, None])[:, 0].cpu().numpy()
            said[members] = marked.any(dim=1).cpu().numpy()
            sure[members] = (odds.logsumexp(dim=1) > 0).cpu().numpy()
        shares = {"right": right[said], "sure": sure[said], "sure without an answer": sure[~said]}
        found[kind] = {name: round(100 * float(each.mean()), 1) for name, each in shares.items() if len(each)}
    return found


def save(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Files of at most `PART` bytes, in half precision, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("weights-*"):
        file.unlink()
    halves = ({name: weight.detach().half().cpu().contiguous()} for name, weight in weights.items())
    for number, part in enumerate(in_parts(halves, PART)):
        save_file(part, folder / f"weights-{number}.safetensors")


def told(facts: dict[str, Any], folder: Path) -> None:
    """Write what was done, and on which device, into the folder's facts.json, and print it."""
    facts["device"] = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "cpu"
    (folder / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    print(json.dumps(facts))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="folder with train.npz, dev.npz and the shares")
    parser.add_argument("--base", type=Path, required=True, help="folder of the encoder, whole or in parts")
    parser.add_argument("--start", type=Path, help="weights to start from: a file, or a folder of weights-…")
    parser.add_argument("--vocabulary", type=Path, required=True, help="folder with the tables' tokenizer.json")
    parser.add_argument("--teacher", type=Path, nargs=2, metavar=("BASE", "WEIGHTS"), help="a reader to learn from")
    parser.add_argument("--teacher-weight", type=float, default=0.5)
    parser.add_argument("--temperature", type=float, default=1.5)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--steps", type=int, help="at most; the default is as many as the time allows")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--batch", type=int, default=160, help="questions in a step")
    parser.add_argument("--tokens", type=int, default=65536, help="encoded at a time, padding included")
    parser.add_argument("--negative-share", type=float, default=0.4, help="read with two passages that do not answer")
    parser.add_argument("--unanswerable", type=float, default=0.06, help="share read with such a passage alone")
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("runs/gpu-work"))
    parser.add_argument("--out", type=Path, required=True, help="what is brought back")
    parser.add_argument("--keep", metavar="NAME", help="keep the weights in the work folder, for a teacher")
    options = parser.parse_args(arguments)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every shape, on the CPU
    width = ReaderConfig().span_width
    torch.manual_seed(options.seed)
    pupil, teacher = Network(options.base, options.work / "base", options.start, options.vocabulary), None
    if options.teacher:
        base, weights = options.teacher
        teacher = Network(base, options.work / "teacher-base", weights, options.vocabulary)
        teacher.model.eval().requires_grad_(False)
    facts = train(Tables(options.input / "train.npz", width), pupil, teacher, options)
    folder = options.work / options.keep if options.keep else options.out
    options.out.mkdir(parents=True, exist_ok=True)
    save(trained(pupil.model), folder)
    facts["development"] = measured(Tables(options.input / "dev.npz", width), pupil)
    told(facts, options.out)


if __name__ == "__main__":
    main()
