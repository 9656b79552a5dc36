"""The models of a paper's table that `quoth train` makes before they are asked, and the pages that they learn from.

Knows: which models a table needs and in which order, which pages are held out. Does not know: recipes, or how a model
is measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from quoth.corpus.corpus import Corpus
from quoth_eval.papers import Item, Part, Training
from quoth_eval.systems import sampled_ids

LOOK = 10
"""With --limit, models learn from at most this many times as many pages, and take at most as many steps."""


def trained(item: Item, parts: Sequence[Part], folder: Path | str) -> list[Training]:
    """The models in a folder that parts of a table ask and that are trained, each after the one that it starts from."""
    wanted = {system.removeprefix(f"{folder}/") for part in parts for system in part.systems}
    for training in reversed(item.trainings):
        wanted |= {training.start} if training.name in wanted else set()
    return [training for training in item.trainings if training.name in wanted]


def settings(training: Training, limit: int | None, seed: int) -> list[str]:
    """As `quoth train --set` takes them. A training that is killed loses 20 steps at most."""
    steps = min(training.steps, limit or training.steps)
    return [*training.set, f"steps={steps}", "checkpoint_every=20", f"seed={seed}"]


def pages(item: Item, output: Path | str) -> Path:
    """The folder in `output` of the pages that the models of its paper learn from, and of those held out."""
    return Path(output) / "pages" / item.paper.lower()


def train_words(item: Item, training: Training, told: Sequence[str], output: Path | str, base: str = "") -> list[str]:
    """A training of a table as `quoth train` takes it; the pages and the models are in `output`."""
    options = {"-o": [f"{output}/models/{training.name}"], "--set": told, "--base": [base] if base else []}
    options["--model"] = [f"{output}/models/{training.start}"] if training.start else []
    words = [word for option, values in options.items() for value in values for word in (option, value)]
    return ["train", training.recipe, str(pages(item, output) / "train.jsonl"), *words]


def train(words: Sequence[str], do: Callable[[Sequence[str]], object]) -> None:
    """Train, unless the model is there. Until it is done its folder has another name, in which it resumes."""
    model = Path(words[words.index("-o") + 1])
    if not model.exists():
        do([f"{model}.part" if word == str(model) else word for word in words])
        Path(f"{model}.part").rename(model)


def num_pages(item: Item, limit: int | None) -> tuple[int, int]:
    """How many pages are learned from, and how many are held out."""
    learned, held_out = (min(count, LOOK * (limit or count)) for count in item.pages)
    return learned, held_out


def split_pages(corpus: Path, folder: Path, learned: int, held_out: int, seed: int) -> None:
    """Draw documents of a corpus: some to learn from (`train.jsonl`), others to hold out (`heldout.jsonl`); of a small
    corpus both in proportion. A folder that is there is left as it is: trainings resume with the same files."""
    if folder.exists():
        return
    opened, part = Corpus.open(corpus), folder.with_suffix(".part")
    ids = [document.id for document in opened.documents()]
    share = min(1, (learned + held_out) / max(1, len(ids)))
    drawn = sampled_ids(ids, share, seed)
    hidden = sampled_ids(ids, share * held_out / (learned + held_out), seed)
    part.mkdir(parents=True, exist_ok=True)
    for name, wanted in (("train", drawn - hidden), ("heldout", hidden)):
        kept = (document for document in opened.documents() if document.id in wanted)
        lines = (json.dumps({"id": each.id, "title": each.title, "text": each.text}) + "\n" for each in kept)
        (part / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    part.rename(folder)
