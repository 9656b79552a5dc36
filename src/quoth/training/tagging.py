"""Training a tagger: an encoder with LoRA, the shapes of words and a linear head, on CoNLL files.

Knows: how sentences become batches, the loss, what is saved. Does not know: the loop, how a tagger is used or measured.

Shape suffixes: B batch, T tokens, L labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from quoth.config import TaggerConfig
from quoth.datasets.conll import joined, read_conll
from quoth.encoders.pretrained import SETTINGS_FILE, Source, locate
from quoth.encoders.transformer import attend_in_fp32, load_base
from quoth.errors import InputError
from quoth.ner.tag_network import TagNetwork
from quoth.ner.tags import bio_labels, labels_of_spans
from quoth.records import TaggedText
from quoth.storage import WriterLock, atomic_write_json
from quoth.tokenizers.batching import pad
from quoth.tokenizers.words import Ints, WordTokenizer
from quoth.training.adapter import save_adapter, set_dropout, with_adapter
from quoth.training.recipes import with_overrides
from quoth.training.settings import TaggingConfig
from quoth.training.trainer import Progress, Step, Trainer

NO_LABEL = -100
_LIKE_LENGTHS = 32
"""Batches are made of inputs of like length among this many batches' inputs."""


@dataclass(frozen=True, slots=True)
class Example:
    """An encoder input: token ids, shapes, and the label of each word's first token, else `NO_LABEL`; [T] each."""

    ids_T: Ints
    shapes_T: Ints
    labels_T: Ints


def train_tagger(
    files: Sequence[str],
    output: Path,
    overrides: dict[str, str],
    *,
    model: str = "quoth-mini-base",
    base: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Train on CoNLL files (`read_conll`) and write what `Tagger.load` reads to `output`; a run that was broken off
    goes on from its last checkpoint.

    The classes are those of the files. Raises InputError on a broken file or setting, LockedError while another
    process trains into `output`, TrainingError when the loss is no number.
    """
    if "steps" in overrides:
        raise InputError(f"steps={overrides['steps']}: a tagger's follow from its documents; set epochs instead")
    config = with_overrides(TaggingConfig(), overrides)
    documents = [document for file in files for document in read_conll(file)]
    labels = bio_labels(sorted({span.label for document in documents for text in document for span in text.spans}))
    if len(labels) == 1:
        raise InputError(f"no entity in {', '.join(files)}; give CoNLL files with labels such as B-PER")
    source = _plain_source(model, base)
    encoder, hf = load_base(source.encoder)
    settings = TaggerConfig(
        base=source.config.base or source.base,
        revision=source.config.revision,
        labels=labels,
        max_tokens=min(config.max_tokens, int(encoder.config.max_position_embeddings)),
    )
    tokenizer = WordTokenizer(hf, settings.max_tokens)
    plan = _plan(documents, tokenizer, labels, config)
    config = replace(config, steps=len(plan))
    output.mkdir(parents=True, exist_ok=True)
    with WriterLock(output / "writer.lock"):
        network = _network(encoder, config, len(labels))
        task = TaggingTask(network, plan, tokenizer.pad_id, config, settings)
        Trainer(task, config, output).run(progress)


class TaggingTask:
    """Learns the labels of words, a batch of `plan` a step."""

    def __init__(
        self,
        network: TagNetwork,
        plan: Sequence[list[Example]],
        pad_id: int,
        config: TaggingConfig,
        settings: TaggerConfig,
    ) -> None:
        self._network, self._plan, self._pad_id = network, plan, pad_id
        set_dropout(network, config.dropout)
        self._config, self._settings = config, settings
        self.parameters: Mapping[str, torch.nn.Parameter] = {
            name: each for name, each in network.named_parameters() if each.requires_grad
        }
        self.device = network.head.weight.device
        digest = hashlib.sha256()
        for each in (each for batch in plan for each in batch):
            digest.update(np.stack([each.ids_T, each.shapes_T, each.labels_T]).tobytes())
        self._digest = digest.hexdigest()[:16]

    def backward(self, step: int) -> Step:
        """Add the gradient of `tagging_loss`."""
        loss = tagging_loss(self._network, self._plan[step], self._pad_id, self._config.bf16)
        loss.backward()  # type: ignore[no-untyped-call]
        return Step(loss.item(), sum(len(each.ids_T) for each in self._plan[step]))

    def save_model(self, folder: Path) -> None:
        """Write what `Tagger.load` reads."""
        save_adapter(folder, self._network.encoder, self._settings.base)
        self._network.save_head(folder)
        atomic_write_json(folder / SETTINGS_FILE, self._settings.to_dict())

    def settings(self) -> dict[str, Any]:
        model = self._settings.to_dict() | {"labels": list(self._settings.labels)}
        return {"model": model, "data": {"digest of the documents": self._digest}}


def _plain_source(model: str, base: str | None) -> Source:
    source = locate(model, base)
    if source.adapter is not None:
        raise InputError(f"model {model!r} has an adapter; a tagger starts without one: name quoth-mini-base")
    return source


def _network(encoder: torch.nn.Module, config: TaggingConfig, num_labels: int) -> TagNetwork:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if config.bf16 and device == "cpu":
        attend_in_fp32(encoder)
    adapted = with_adapter(encoder, config.lora_rank, config.seed)
    return TagNetwork(adapted, num_labels).to(device)


def _plan(
    documents: Sequence[Sequence[TaggedText]], tokenizer: WordTokenizer, labels: Sequence[str], config: TaggingConfig
) -> list[list[Example]]:
    """All batches of the run, epoch after epoch; each epoch cuts the documents anew."""
    rng = np.random.default_rng(config.seed)
    plan: list[list[Example]] = []
    for _ in range(config.epochs):
        runs = [text for document in documents for text in _runs(document, config.max_sentences, rng)]
        texts = [lowered(text) if rng.random() < config.lowercase else text for text in runs]
        plan += batches(examples(texts, tokenizer, labels), config.batch_size, rng)
    return plan


def _runs(document: Sequence[TaggedText], most: int, rng: np.random.Generator) -> Iterator[TaggedText]:
    """A document in runs of sentences; half of them are single sentences."""
    at = 0
    while at < len(document):
        count = 1 if rng.random() < 0.5 else int(rng.integers(1, most + 1))
        yield joined(document[at : at + count])
        at += count


def lowered(tagged: TaggedText) -> TaggedText:
    """A text in lower case with the same spans; as it is where lower case has another length ("İ")."""
    text = tagged.text.lower()
    return replace(tagged, text=text) if len(text) == len(tagged.text) else tagged


def examples(texts: Sequence[TaggedText], tokenizer: WordTokenizer, labels: Sequence[str]) -> list[Example]:
    """The inputs that texts make; long texts make several, each token labelled in one of them."""
    found = []
    for tagged, text in zip(texts, tokenizer.texts([each.text for each in texts]), strict=True):
        labels_T = np.full(len(text.ids_T), NO_LABEL, np.int64)
        for first, label in zip(text.first_W, labels_of_spans(text.words, tagged.spans), strict=True):
            if first >= 0:
                labels_T[first] = labels.index(label)
        for window in tokenizer.windows(text):
            wanted_T = np.full(len(window.input_ids), NO_LABEL, np.int64)
            wanted_T[window.inside] = labels_T[window.tokens]
            found.append(Example(window.input_ids, window.shapes, wanted_T))
    return found


def batches(inputs: Sequence[Example], size: int, rng: np.random.Generator) -> list[list[Example]]:
    """Batches of `size` inputs of like length, in random order."""
    order = rng.permutation(len(inputs))
    made: list[list[Example]] = []
    for at in range(0, len(order), size * _LIKE_LENGTHS):
        part = sorted((inputs[i] for i in order[at : at + size * _LIKE_LENGTHS]), key=lambda each: len(each.ids_T))
        made += [part[i : i + size] for i in range(0, len(part), size)]
    return [made[i] for i in rng.permutation(len(made))]


def tagging_loss(network: TagNetwork, batch: Sequence[Example], pad_id: int, bf16: bool) -> Tensor:
    """How badly words' labels are foretold from their first tokens: mean cross entropy over the batch's words.

    Inputs: ids, shapes and labels [B, T] of a padded batch. Formula: -1/W sum over words of log softmax(logits)[label].
    """
    device = network.head.weight.device
    ids_BT, mask_BT = (each.to(device) for each in pad([each.ids_T for each in batch], pad_id))
    shapes_BT = pad([each.shapes_T for each in batch], 0)[0].to(device)
    labels_BT = pad([each.labels_T for each in batch], NO_LABEL)[0].to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        logits_BTL = network(ids_BT, mask_BT, shapes_BT)
    return cross_entropy(logits_BTL.float().flatten(0, 1), labels_BT.flatten(), ignore_index=NO_LABEL)
