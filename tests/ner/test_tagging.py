"""Training a tagger: batches, labels, the loss by hand, the command."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from test_trainer import stop_at

from quoth.cli.main import main
from quoth.encoders.transformer import load_base
from quoth.errors import InputError, TrainingError
from quoth.hub import locate
from quoth.ner.config import TaggingConfig
from quoth.ner.network import TagNetwork
from quoth.ner.recipe import NO_LABEL, batches, examples, lowered, tagging_loss
from quoth.ner.tagger import Tagger
from quoth.ner.tags import bio_labels
from quoth.ner.words import WordTokenizer
from quoth.npm.config import NPMConfig
from quoth.records import TaggedSpan, TaggedText
from quoth.text.tokenizer import FastTokenizer
from quoth.training.recipes import run_recipe
from quoth.training.trainer import Progress
from tiny import tiny_bert, tiny_roberta

LABELS = bio_labels(["LOC", "PER"])
SENTENCE = TaggedText("Nikos Kazantzakis saw Paris.", (TaggedSpan(0, 17, "PER"), TaggedSpan(22, 27, "LOC")))
LINES = "Nikos B-PER\nKazantzakis I-PER\nsaw O\nParis B-LOC\n. O\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny")


def test_examples_label_the_first_token_of_each_word(folder: Path) -> None:
    hf = FastTokenizer(folder)
    text = "Nikos Kazantzakis saw Paris."
    (example,) = examples([SENTENCE], WordTokenizer(hf, 64), LABELS)
    offsets = hf(text)["offset_mapping"]
    labelled = {offsets[i][0]: LABELS[label] for i, label in enumerate(example.labels_T) if label != NO_LABEL}
    assert labelled == {0: "B-PER", 6: "I-PER", 18: "O", 22: "B-LOC", 27: "O"}
    assert len(example.ids_T) == len(example.shapes_T) == len(example.labels_T) == len(offsets)


def test_long_texts_are_labelled_once(folder: Path) -> None:
    tokenizer = WordTokenizer(FastTokenizer(folder), 24)
    found = examples([TaggedText("Paris " * 100, ())], tokenizer, LABELS)
    assert len(found) > 4
    assert sum(int((each.labels_T != NO_LABEL).sum()) for each in found) == 100


def test_lower_case_keeps_the_spans() -> None:
    text = lowered(SENTENCE)
    assert text.text == "nikos kazantzakis saw paris."
    assert text.spans == SENTENCE.spans
    dotted = TaggedText("İstanbul", (TaggedSpan(0, 8, "LOC"),))
    assert lowered(dotted) == dotted


def test_batches_hold_each_input_once_and_like_lengths(folder: Path) -> None:
    texts = [TaggedText("Paris " * n, ()) for n in range(1, 31)]
    inputs = examples(texts, WordTokenizer(FastTokenizer(folder), 64), LABELS)
    made = batches(inputs, 4, np.random.default_rng(0))
    assert sorted(len(each.ids_T) for batch in made for each in batch) == [len(each.ids_T) for each in inputs]
    assert all(len(batch) <= 4 for batch in made)
    assert all(max(map(width, batch)) - min(map(width, batch)) <= 6 for batch in made)


def width(example: object) -> int:
    return len(example.ids_T)  # type: ignore[attr-defined]


def test_the_loss_by_hand(folder: Path) -> None:
    encoder, hf = load_base(locate(str(folder), NPMConfig).encoder)
    network = TagNetwork(encoder, len(LABELS)).eval()
    batch = examples([SENTENCE, TaggedText("Paris", ())], WordTokenizer(hf, 64), LABELS)
    total, count = 0.0, 0
    for each in batch:
        ids = torch.from_numpy(each.ids_T)[None]
        with torch.no_grad():
            scores = network(ids, torch.ones_like(ids), torch.from_numpy(each.shapes_T)[None])[0].log_softmax(-1)
        for i, label in enumerate(each.labels_T):
            if label != NO_LABEL:
                total, count = total - float(scores[i, label]), count + 1
    assert count == 6
    assert tagging_loss(network, batch, 0, bf16=False).item() == pytest.approx(total / count, abs=1e-5)


def test_the_command_writes_a_tagger(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text(LINES * 8, encoding="utf-8")
    settings = ["epochs=30", "batch_size=4", "lora_rank=4", "learning_rate=0.02", "bf16=false"]
    options = [each for setting in settings for each in ("--set", setting)]
    output = tmp_path / "out"
    assert main(["train", "tagger", str(tmp_path / "x"), "-o", str(output), "--model", str(folder), *options]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"the model is in {output}" in shown.err
    saved = json.loads((output / "quoth.json").read_text())
    assert (saved["kind"], saved["labels"], saved["base"]) == ("tagger", list(LABELS), str(folder))
    assert main(["eval", "ner", str(tmp_path / "x"), "--system", str(output)]) == 0
    assert "| f1 without class | 100.0 [100.0, 100.0] |" in capsys.readouterr().out


def test_no_input_is_longer_than_the_encoder_takes(tmp_path: Path) -> None:
    """RoBERTa's positions begin after the padding id."""
    base = tiny_roberta(tmp_path / "base")
    (tmp_path / "x").write_text("Paris B-LOC\n" * 300, encoding="utf-8")
    settings = {"epochs": "1", "batch_size": "2", "lora_rank": "2", "bf16": "false", "max_tokens": "600"}
    run_recipe("tagger", [str(tmp_path / "x")], tmp_path / "out", settings, model=str(base))
    assert json.loads((tmp_path / "out" / "quoth.json").read_text())["max_tokens"] == 260


def test_a_run_is_repeatable(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(LINES * 4, encoding="utf-8")
    settings = {"epochs": "2", "batch_size": "2", "lora_rank": "2", "bf16": "false"}
    for name in ("a", "b"):
        run_recipe("tagger", [str(tmp_path / "x")], tmp_path / name, settings, model=str(folder))
    for file in ("adapter_model.safetensors", "tagger.safetensors", "quoth.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_run_that_was_broken_off_goes_on_as_if_it_had_not_been(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(LINES * 8, encoding="utf-8")
    settings = {"epochs": "4", "batch_size": "2", "lora_rank": "2", "bf16": "false"}
    settings |= {"checkpoint_every": "4", "log_every": "1"}

    def train(name: str, progress: Callable[[Progress], None] | None = None) -> None:
        run_recipe("tagger", [str(tmp_path / "x")], tmp_path / name, settings, model=str(folder), progress=progress)

    with pytest.raises(KeyboardInterrupt):
        train("broken", stop_at(7, KeyboardInterrupt))
    assert Tagger.load(str(tmp_path / "broken")).spans(["Paris"])[0] is not None
    steps: list[int] = []
    train("broken", lambda now: steps.append(now.step))
    assert steps[0] == 5
    steps.clear()
    train("whole", lambda now: steps.append(now.step))
    length = len(steps)
    assert steps == [*range(1, length + 1)]
    for file in ("adapter_model.safetensors", "tagger.safetensors", "quoth.json"):
        assert (tmp_path / "broken" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    settings["epochs"] = "6"
    steps.clear()
    train("whole", lambda now: steps.append(now.step))
    assert steps == [*range(length + 1, length + len(steps) + 1)]
    assert len(steps) > 1
    (tmp_path / "x").write_text(LINES * 7 + LINES.replace("B-LOC", "B-PER"), encoding="utf-8")
    with pytest.raises(InputError, match=r"^digest of the documents is '\w+', but .* has a run with '\w+'; use"):
        train("broken")


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("no O\nname O\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no entity in .*; give CoNLL files with labels such as B-PER"):
        run_recipe("tagger", [str(file)], tmp_path / "out", {}, model=str(folder))
    with pytest.raises(InputError, match=r"unknown setting 'epoch'; it must be one of steps, batch_size, .*, epochs"):
        run_recipe("tagger", [str(file)], tmp_path / "out", {"epoch": "3"}, model=str(folder))
    with pytest.raises(
        InputError,
        match=r"`steps` cannot be set for the recipe tagger \(it follows from the data\); set `epochs` instead",
    ):
        run_recipe("tagger", [str(file)], tmp_path / "out", {"steps": "3"}, model=str(folder))
    file.write_text(LINES, encoding="utf-8")
    with pytest.raises(InputError, match="model 'quoth-mini' has an adapter, but a tagger starts without one"):
        run_recipe("tagger", [str(file)], tmp_path / "out", {}, model="quoth-mini")
    with pytest.raises(TrainingError, match="the loss is nan at step"):
        run_recipe("tagger", [str(file)], tmp_path / "out", {"learning_rate": "1e30", "epochs": "9"}, model=str(folder))
    with pytest.raises(InputError, match="lora_rank is 0; it must be 1 or more: a tagger is an adapter"):
        TaggingConfig(lora_rank=0)
    with pytest.raises(InputError, match="lowercase is 2; it must be from 0 to 1"):
        TaggingConfig(lowercase=2)
    with pytest.raises(InputError, match="learning_rate is -1; it must be 0 or more"):
        TaggingConfig(learning_rate=-1)
