"""The recipe `tagger`: from CoNLL files to the training of an encoder with LoRA, the shapes of words and a linear head.

Knows: what a tagger starts from, how sentences become batches, the loss, what is saved. Does not know: the loop, how a
tagger is measured.
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

from quoth.arrays import Ints
from quoth.encoders.config import TokenConfig
from quoth.encoders.encoder import longest_input
from quoth.encoders.transformer import load_base, pad
from quoth.errors import InputError
from quoth.hub import SETTINGS_FILE
from quoth.ner.config import TaggerConfig, TaggingConfig
from quoth.ner.data import joined, read_conll
from quoth.ner.network import TagNetwork
from quoth.ner.tags import bio_labels, labels_of_spans
from quoth.ner.words import WordTokenizer
from quoth.records import TaggedText
from quoth.storage import atomic_write_json
from quoth.training.adapter import save_adapter, trainable
from quoth.training.epochs import by_length
from quoth.training.run import Job, Run
from quoth.training.trainer import Step

NO_LABEL = -100


def prepare(run: Run, config: TaggingConfig) -> Job:
    """Read the CoNLL files, whose classes the tagger learns, and plan all batches of the run."""
    documents = [document for file in run.inputs for document in read_conll(file)]
    labels = bio_labels(sorted({span.label for document in documents for text in document for span in text.spans}))
    if len(labels) == 1:
        raise InputError(f"no entity in {', '.join(run.inputs)}; give CoNLL files with labels such as B-PER")
    source = run.source(TokenConfig)
    if source.adapter is not None:
        raise InputError(f"model {run.model!r} has an adapter, but a tagger starts without one; name quoth-mini-base")
    encoder, hf = load_base(source.encoder)
    settings = TaggerConfig(
        base=source.config.base or source.base,
        revision=source.config.revision,
        labels=labels,
        max_tokens=min(config.max_tokens, longest_input(encoder.config)),
    )
    tokenizer = WordTokenizer(hf, settings.max_tokens)
    plan = plan_batches(documents, tokenizer, labels, config, run.counter("tokenizing epochs", config.epochs))
    config = replace(config, steps=len(plan))
    run.claim()
    adapted, _ = trainable(encoder, config, torch.device(run.device))
    network = TagNetwork(adapted, len(labels)).to(run.device)
    digest = hashlib.sha256(repr(documents).encode()).hexdigest()[:16]
    return Job(TaggingTask(network, plan, tokenizer.pad_id, config, settings, digest), config)


@dataclass(frozen=True, slots=True)
class Example:
    """An encoder input: token ids, shapes, and the label of each word's first token, else `NO_LABEL`; [T] each."""

    ids_T: Ints
    shapes_T: Ints
    labels_T: Ints


class TaggingTask:
    """Learns the labels of words, one batch of `plan` per step. `digest` tells its documents from others."""

    def __init__(
        self,
        network: TagNetwork,
        plan: Sequence[list[Example]],
        pad_id: int,
        config: TaggingConfig,
        settings: TaggerConfig,
        digest: str,
    ) -> None:
        self._network, self._plan, self._pad_id = network, plan, pad_id
        self._config, self._settings = config, settings
        self.parameters: Mapping[str, torch.nn.Parameter] = {
            name: weight for name, weight in network.named_parameters() if weight.requires_grad
        }
        self.device = network.head.weight.device
        self._digest = digest

    def backward(self, step: int) -> Step:
        """Add the gradient of `tagging_loss`."""
        loss = tagging_loss(self._network, self._plan[step], self._pad_id, self._config.bf16)
        loss.backward()  # type: ignore[no-untyped-call]
        return Step(loss.item(), sum(len(example.ids_T) for example in self._plan[step]))

    def save_model(self, folder: Path) -> None:
        """Write what `Tagger.load` reads."""
        save_adapter(folder, self._network.encoder, self._settings.base)
        self._network.save_head(folder)
        atomic_write_json(folder / SETTINGS_FILE, self._settings.to_dict())

    def settings(self) -> dict[str, Any]:
        model = self._settings.to_dict() | {"labels": list(self._settings.labels)}
        return {"model": model, "data": {"digest of the documents": self._digest}}


def plan_batches(
    documents: Sequence[Sequence[TaggedText]],
    tokenizer: WordTokenizer,
    labels: Sequence[str],
    config: TaggingConfig,
    progress: Callable[[int], None],
) -> list[list[Example]]:
    """All batches of the run, epoch after epoch, each of which cuts the documents in another way. `progress` takes
    epochs done."""
    rng = np.random.default_rng(config.seed)
    plan: list[list[Example]] = []
    for epoch in range(config.epochs):
        runs = [text for document in documents for text in _runs(document, config.max_sentences, rng)]
        texts = [lowered(text) if rng.random() < config.lowercase else text for text in runs]
        plan += batches(examples(texts, tokenizer, labels), config.batch_size, rng)
        progress(epoch + 1)
    return plan


def _runs(document: Sequence[TaggedText], most: int, rng: np.random.Generator) -> Iterator[TaggedText]:
    """A document in runs of sentences; half of them are single sentences."""
    at = 0
    while at < len(document):
        count = 1 if rng.random() < 0.5 else int(rng.integers(1, most + 1))
        yield joined(document[at : at + count])
        at += count


def lowered(tagged: TaggedText) -> TaggedText:
    """A text in lower case with the same spans; unchanged if lower case has another length ("İ")."""
    text = tagged.text.lower()
    return replace(tagged, text=text) if len(text) == len(tagged.text) else tagged


def examples(texts: Sequence[TaggedText], tokenizer: WordTokenizer, labels: Sequence[str]) -> list[Example]:
    """The inputs that texts make; long texts make several, each token labelled in one of them."""
    found = []
    for tagged, text in zip(texts, tokenizer.texts([tagged.text for tagged in texts]), strict=True):
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
    """Batches of `size` inputs of similar length, in random order."""
    order = rng.permutation(len(inputs))
    lengths = [len(inputs[i].ids_T) for i in order]
    made = [batch for pool in by_length(order, lengths, size) for batch in pool]
    return [[inputs[i] for i in made[number]] for number in rng.permutation(len(made))]


def tagging_loss(network: TagNetwork, batch: Sequence[Example], pad_id: int, bf16: bool) -> Tensor:
    """How badly words' labels are predicted from their first tokens: mean cross entropy over the batch's words.

    Inputs: ids, shapes and labels [B, T] of a padded batch. Formula: -1/W sum over words of log softmax(logits)[label].
    """
    device = network.head.weight.device
    ids_BT, mask_BT = (tensor.to(device) for tensor in pad([example.ids_T for example in batch], pad_id))
    shapes_BT = pad([example.shapes_T for example in batch], 0)[0].to(device)
    labels_BT = pad([example.labels_T for example in batch], NO_LABEL)[0].to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        logits_BTL = network(ids_BT, mask_BT, shapes_BT)
    return cross_entropy(logits_BTL.float().flatten(0, 1), labels_BT.flatten(), ignore_index=NO_LABEL)
