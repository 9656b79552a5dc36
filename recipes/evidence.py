"""Relevance of a passage and evidence per token: the upper layers that a reader has for them, learned from documents.

    python recipes/evidence.py examples examples.jsonl.xz faq.jsonl.xz:2 policies.jsonl.xz:1 …
    python recipes/evidence.py teacher examples.jsonl.xz ranker.pt runs/teacher --steps 405   # resumes a stopped run
    python recipes/evidence.py branch examples.jsonl.xz runs/teacher/teacher.pt runs/branch --steps 3650  # resumes too
    python recipes/evidence.py save runs/branch/last.pt adapters/reader
    python recipes/evidence.py lines examples.jsonl.xz lines.jsonl.gz --count 5000  # for `quoth train reader`

A line of questions has `question`, `title`, `text`, and `evidence`, the character ranges that answer, if any do; and
`short`, those of the shortest answers in them, if they are known.
`ranker.pt` has the weights of ms-marco-MiniLM-L-12-v2 as its authors name them (`bert.…`, `classifier.…`).

The teacher is that ranker, fine-tuned. A step shows eight questions with a window around their evidence and one or two
passages that do not answer: those that BM25 finds in the same set, or others of the same document. The loss: 2 × the
cross-entropy of each token, + 0.2 × that of the passage with the evidence among those of the question and none, + 0.1 ×
the squared difference from the untouched ranker's relevance, without which fine-tuning unlearns to rank. The embeddings
and three layers stay as they are. In the end 0.7 of its weights and 0.3 of the untouched ranker's are taken.

The branch begins as the teacher's upper layers, over the reader's lower ones, which stay as they are. A step shows five
questions with up to six passages. The loss: 2 × the cross-entropy of each token (0.7 of passages with evidence, 0.3 of
others), + 0.05 × that of the passage, as above, + 0.5 × the teacher's: 4 × the Kullback-Leibler divergence of its
relevance over a question's passages, at temperature 2 (Hinton et al. 2015, §2), + 0.1 × the squared difference. A
moving average of the weights is saved.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import lzma
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from quoth.corpus.corpus import Corpus
from quoth.encoders.transformer import tensors
from quoth.hub import locate
from quoth.reader.config import ReaderConfig
from quoth.reader.evidence_loss import OF_TAUGHT, Marks, by_passage, marked_loss, relevance_distillation
from quoth.reader.network import SpanReaderModel
from quoth.reader.spans import Reading, query_ids, windows
from quoth.reader.training import tokens_in
from quoth.reader.weights import load_reader, save_reader
from quoth.records import Document
from quoth.text.passages import WHOLE
from quoth.text.tokenizer import PairTokenizer, Tokens, pair_arrays

LENGTHS = {"query_tokens": 64, "title_tokens": 24, "max_tokens": 288, "overlap": 64}
LAYERS = 4
"""That the branch has."""
SHORTEST, LONGEST = 400, 900
"""Characters of a window."""
FROZEN, HEAD_RATE = 3, 15
"""Layers of the teacher that are not trained; how much faster the new head learns."""
TAUGHT, MEMORY = 0.7, 0.995
"""The share of what the teacher learned that is kept; of the moving average that a step keeps."""
BESIDE = 750
"""Characters of a passage that does not answer."""
BRANCHED = ("branch.", "pooler.", "relevance.", "evidence.")
Range = tuple[int, int]


def chunks(text: str) -> Iterator[Range]:
    """Ranges of about `BESIDE` characters, cut at line or sentence ends."""
    low = 0
    while low < len(text):
        high = min(len(text), low + BESIDE)
        if high < len(text):
            cut = max(text.rfind("\n", low + BESIDE // 2, high), text.rfind(". ", low + BESIDE // 2, high))
            high = cut + 1 if cut > 0 else high
        if text[low:high].strip():
            yield low, high
        low = high


def examples(rows: Sequence[Mapping[str, Any]], source: str, weight: float) -> Iterator[dict[str, Any]]:
    """The questions of one set with passages that do not answer them."""
    texts = dict.fromkeys((row.get("title") or "", row["text"]) for row in rows)
    passages = [(key, low, high) for key in texts for low, high in chunks(key[1])]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus.create(Path(folder) / "c.quoth", splitter=WHOLE)
        corpus.add(Document(str(i), key[0], key[1][low:high]) for i, (key, low, high) in enumerate(passages))
        for row in rows:
            own, evidence = (row.get("title") or "", row["text"]), row["evidence"]

            def answers(i: int, own: tuple[str, str] = own, evidence: Sequence[Range] = evidence) -> bool:
                key, low, high = passages[i]
                return key == own and any(start < high and end > low for start, end in evidence)

            found = [int(corpus.passage(int(at)).document_id) for at in corpus.bm25(row["question"], 12)[0]]
            beside = [i for i, (key, *_) in enumerate(passages) if key == own and not answers(i)]
            beside = random.Random(2).sample(beside, min(4, len(beside)))
            others = [i for i in found if not answers(i) and (passages[i][0] != own or evidence)][:6]
            shown = [
                [(passages[i][0][0], passages[i][0][1][slice(*passages[i][1:])]) for i in each]
                for each in (others, beside)
            ]
            yield {"set": source, "weight": weight, "question": row["question"], "title": own[0], "text": own[1],
                   "evidence": evidence, "short": row.get("short", []), "others": shown[0],
                   "beside": shown[1]}  # fmt: skip


def window(text: str, evidence: Sequence[Range], rng: random.Random) -> Range:
    """A part of a text, around a piece of evidence if there is any, that begins where a sentence or a line does."""
    size = rng.randint(SHORTEST, LONGEST)
    if len(text) <= size:
        return 0, len(text)
    low = rng.randint(0, len(text) - size)
    if evidence:
        low = max(0, min(rng.choice(evidence)[0] - rng.randint(0, size // 2), len(text) - size))
    end = max(text.rfind("\n", max(0, low - 150), low), text.rfind(". ", max(0, low - 150), low))
    low = end + 1 if end > 0 else low
    return low, min(len(text), low + size)


def reading_lines(rows: Sequence[Mapping[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    """Drawn by their weights, each with a window and passages that do not answer: what `quoth train reader` takes."""
    rng = random.Random(3)
    for row in rng.choices(rows, [row["weight"] for row in rows], k=count):
        low, high = window(row["text"], row["evidence"], rng)
        title = "" if rng.random() < 0.25 else row["title"]
        others = [*row["others"][:3], *row["beside"][:2]]
        others = rng.sample(others, min(3, len(others)))
        evidence, short = (
            [[max(start, low) - low, min(end, high) - low] for start, end in row[name] if end > low and start < high]
            for name in ("evidence", "short")
        )
        text = row["text"][low:high]
        yield {
            "title": title, "context": text, "question": row["question"], "evidence": evidence,
            "answers": [{"text": text[start:end], "start": start} for start, end in short],
            "negatives": [{"title": title and own, "context": each} for own, each in others],
        }  # fmt: skip


class Shown(NamedTuple):
    """Inputs of a step, the question of each, and which tokens of its passage are evidence."""

    readings: list[Reading]
    question_B: Tensor
    marks: list[np.ndarray]


class Questions:
    """What a step shows."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], tokenizer: PairTokenizer, config: ReaderConfig, count: int, more: int
    ) -> None:
        self.rows, self.tokenizer, self.config, self.count, self.more = rows, tokenizer, config, count, more
        self._sums = np.cumsum([row["weight"] for row in rows])

    def shown(self, step: int) -> Shown:
        rng, readings, owner, marks = random.Random(step), list[Reading](), list[int](), list[np.ndarray]()
        for question in range(self.count):
            row = self.rows[int(np.searchsorted(self._sums, rng.random() * self._sums[-1]))]
            for title, text, evidence in self._passages(row, rng):
                ids = self.tokenizer.pieces([f"{title}."])[0][0] if title else []
                body = Tokens.of(text, self.tokenizer.pieces([text])[0])
                query = query_ids(self.tokenizer, row["question"], self.config.query_tokens)
                reading = windows(self.tokenizer, self.config, query, ids, body)[0]
                readings.append(reading)
                owner.append(question)
                marks.append(tokens_in(reading, evidence))
        return Shown(readings, torch.tensor(owner), marks)

    def _passages(self, row: Mapping[str, Any], rng: random.Random) -> list[tuple[str, str, list[Range]]]:
        low, high = window(row["text"], row["evidence"], rng)
        evidence = [
            (max(start, low) - low, min(end, high) - low)
            for start, end in row["evidence"]
            if end > low and start < high
        ]
        untitled, others = rng.random() < 0.25, list[tuple[str, str]]()
        own = [("" if untitled else row["title"], row["text"][low:high], evidence)]
        if row["others"]:
            others.append(tuple(rng.choice(row["others"])))
        if row["beside"] and (not others or rng.random() < 0.4):
            others.append(tuple(rng.choice(row["beside"])))
        if others and rng.random() < 0.1:
            own = []  # nothing that is shown answers
        for name, most in (("others", self.more), ("beside", self.more - 1)):
            others += map(tuple, rng.sample(row[name], max(0, min(most, len(row[name])))))
        return [*own, *(("" if untitled else title, text, []) for title, text in list(dict.fromkeys(others))[:5])]


def marks(model: SpanReaderModel, batch: dict[str, Tensor], shown: Shown) -> Marks:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.set_grad_enabled(torch.is_grad_enabled() and not model.config.evidence_layers):
            states_BTH = model.shared(batch)
        relevance_B, evidence_BT = model.marked(states_BTH, batch["attention_mask"])
    bodies = [slice(each.body, each.body + len(each.offsets_T2)) for each in shown.readings]
    return Marks.cut(relevance_B, evidence_BT, shown.question_B, bodies)


def teacher_loss(said: Marks, target_N: Tensor, has_B: Tensor, taught_B: Tensor) -> Tensor:
    tokens = functional.binary_cross_entropy_with_logits(said.evidence_N, target_N)
    kept = functional.mse_loss(said.relevance_B, taught_B.clamp(-12, 12))
    return 2 * tokens + 0.2 * by_passage(said, has_B) + 0.1 * kept


def branch_loss(said: Marks, target_N: Tensor, has_B: Tensor, taught_B: Tensor) -> Tensor:
    return marked_loss(said, target_N, has_B) + OF_TAUGHT * relevance_distillation(said, taught_B)


def ranker(weights: Path | None = None) -> tuple[SpanReaderModel, PairTokenizer]:
    """The untouched ranker, with a head for evidence that knows nothing yet; without its weights, any."""
    model, tokenizer = load_reader(locate("quoth-reader", ReaderConfig))
    made = SpanReaderModel(copy.deepcopy(model.encoder), ReaderConfig(evidence=True, **LENGTHS))
    if weights:
        given = torch.load(weights, map_location="cpu", weights_only=True)
        renamed = {"bert.pooler.dense.": "pooler.", "classifier.": "relevance.", "bert.": "encoder."}
        for name, weight in given.items():
            old = next(each for each in renamed if name.startswith(each))
            made.get_parameter(name.replace(old, renamed[old], 1)).data.copy_(weight)
    nn.init.zeros_(made.evidence.weight)
    nn.init.constant_(made.evidence.bias, -1.5)
    return made, tokenizer


def branched(reader: str = "quoth-reader") -> SpanReaderModel:
    """A reader with layers for evidence, and its spans."""
    source = locate(reader, ReaderConfig)
    model, _ = load_reader(source)
    own = {"evidence": True, "evidence_layers": LAYERS}
    made = SpanReaderModel(model.encoder, ReaderConfig.from_dict(source.config.to_dict() | own | LENGTHS))
    made.load_state_dict(model.state_dict(), strict=False)
    return made


def from_teacher(weights: Path) -> tuple[SpanReaderModel, SpanReaderModel]:
    """The branch as it begins, and the teacher."""
    teacher, _ = ranker()
    teacher.load_state_dict(torch.load(weights, weights_only=True))
    made = branched()
    made.branch.load_state_dict(teacher.encoder.encoder["layer"][-LAYERS:].state_dict())
    for name in ("pooler", "relevance", "evidence"):
        made.get_submodule(name).load_state_dict(teacher.get_submodule(name).state_dict())
    return made, teacher


Loss = Callable[[Marks, Tensor, Tensor, Tensor], Tensor]
"""Of what a network says, the tokens that are evidence [N], passages that have any [B], the teacher's relevance [B]."""


def train(
    model: SpanReaderModel,
    teacher: SpanReaderModel,
    questions: Questions,
    loss_of: Loss,
    folder: Path,
    steps: int,
    rate: float,
    fall: int,
) -> dict[str, Tensor]:
    """Train what has a gradient up to so many steps, the last `fall` of them with a rate that falls to 0; returns the
    moving average. Every 25 steps are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    teacher.eval().requires_grad_(False)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    for name, weight in trained.items():
        is_head = name.startswith("evidence")
        key = (0.01 if weight.ndim > 1 and not is_head else 0.0, HEAD_RATE if is_head else 1.0)
        groups.setdefault(key, []).append(weight)
    made = [{"params": own, "weight_decay": decay, "times": times} for (decay, times), own in groups.items()]
    optimizer = torch.optim.AdamW(made, lr=rate, betas=(0.9, 0.98))
    average = {name: weight.detach().clone() for name, weight in trained.items()}
    last, step = folder / "last.pt", 0
    if last.exists():
        state = torch.load(last, weights_only=True)
        model.load_state_dict(state["model"], strict=False)
        optimizer.load_state_dict(state["optimizer"])
        average, step = state["average"], state["step"]
    while step < steps:
        for group in optimizer.param_groups:
            group["lr"] = group["times"] * rate * min(1, (step + 1) / 25, (steps - step) / max(fall, 1))
        shown = questions.shown(step)
        batch = tensors(pair_arrays(questions.tokenizer, [each.pair for each in shown.readings]), torch.device("cpu"))
        with torch.no_grad():
            taught_B = marks(teacher, batch, shown).relevance_B
        target_N = torch.from_numpy(np.concatenate(shown.marks).astype(np.float32))
        has_B = torch.tensor([bool(own.any()) for own in shown.marks])
        loss = loss_of(marks(model, batch, shown), target_N, has_B, taught_B)
        loss.backward()
        nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        for name, weight in trained.items():
            average[name].lerp_(weight.detach(), 1 - min(MEMORY, (1 + step) / (10 + step)))
        step += 1
        if step % 25 == 0 or step == steps:
            print(f"{step} {loss.item():.3f}", flush=True)
            state = {"model": trained, "optimizer": optimizer.state_dict(), "average": average, "step": step}
            torch.save(state, folder / "last.tmp")
            os.replace(folder / "last.tmp", last)
    return average


def learn_teacher(rows: Sequence[Mapping[str, Any]], given: argparse.Namespace) -> None:
    (model, tokenizer), (teacher, _) = ranker(given.weights), ranker(given.weights)
    frozen = ("embeddings", *(f"encoder.layer.{number}." for number in range(FROZEN)))
    for name, weight in model.named_parameters():
        weight.requires_grad_(not name.startswith(("span", "none")) and not any(part in name for part in frozen))
    questions = Questions(rows, tokenizer, model.config, count=8, more=0)
    train(model, teacher, questions, teacher_loss, given.folder, given.steps, given.rate or 1.2e-4, given.fall)
    old = teacher.state_dict()
    mixed = {name: torch.lerp(old[name], weight, TAUGHT) for name, weight in model.state_dict().items()}
    torch.save(mixed, given.folder / "teacher.pt")


def learn_branch(rows: Sequence[Mapping[str, Any]], given: argparse.Namespace) -> None:
    model, teacher = from_teacher(given.weights)
    for name, weight in model.named_parameters():
        weight.requires_grad_(name.startswith(BRANCHED))
    model.eval()  # no dropout
    _, tokenizer = ranker()
    questions = Questions(rows, tokenizer, model.config, count=5, more=3)
    train(model, teacher, questions, branch_loss, given.folder, given.steps, given.rate or 1.5e-4, given.fall)


def save(checkpoint: Path, reader: Path) -> None:
    """Write a trained branch into the folder of its reader."""
    made = branched(str(reader))
    made.load_state_dict(torch.load(checkpoint, map_location="cpu", weights_only=True)["average"], strict=False)
    config = locate(str(reader), ReaderConfig).config.to_dict()
    with tempfile.TemporaryDirectory() as folder:
        save_reader(Path(folder) / "new", made, reader, config | {"evidence": True, "evidence_layers": LAYERS})
        for name in ("reader.safetensors", "quoth.json"):
            os.replace(shutil.copy(Path(folder) / "new" / name, reader / f"{name}.tmp"), reader / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("examples")
    one.add_argument("output", type=Path)
    one.add_argument("files", nargs="+", help="FILE.jsonl.xz:WEIGHT, the weight of each of its questions")
    one.add_argument("--most", type=int, default=2700, help="questions of a file")
    for command in ("teacher", "branch"):
        two = commands.add_parser(command)
        for name in ("examples", "weights", "folder"):
            two.add_argument(name, type=Path)
        two.add_argument("--steps", type=int, required=True)
        two.add_argument("--rate", type=float)
        two.add_argument("--fall", type=int, default=0)
    four = commands.add_parser("lines")
    four.add_argument("examples", type=Path)
    four.add_argument("output", type=Path)
    four.add_argument("--count", type=int, required=True)
    three = commands.add_parser("save")
    three.add_argument("checkpoint", type=Path)
    three.add_argument("reader", type=Path)
    given = parser.parse_args()
    if given.command == "examples":
        with lzma.open(given.output, "wt", encoding="utf-8", preset=1) as stream:
            for named in given.files:
                file, _, weight = named.rpartition(":")
                with lzma.open(file, "rt", encoding="utf-8") as lines:
                    rows = [json.loads(line) for line in lines]
                random.Random(1).shuffle(rows)
                for each in examples(rows[: given.most], Path(file).name, float(weight)):
                    stream.write(json.dumps(each) + "\n")
    elif given.command == "save":
        save(given.checkpoint, given.reader)
    else:
        torch.manual_seed(0)
        with lzma.open(given.examples, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        if given.command == "lines":
            with gzip.open(given.output, "wt", encoding="utf-8") as stream:
                stream.writelines(json.dumps(each) + "\n" for each in reading_lines(rows, given.count))
        else:
            (learn_teacher if given.command == "teacher" else learn_branch)(rows, given)


if __name__ == "__main__":
    main()
