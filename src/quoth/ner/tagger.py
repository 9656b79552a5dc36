"""Salient spans: names of persons, places, organisations and other things by a tagger, dates by rule.

REALM masks them in training (salient span masking, Guu et al. 2020 §3.4), and Zero-NeR makes keys of them (Hoshi et al.
2022). Knows: this project's taggers and Hugging Face token classifiers, windows over long texts. Does not know:
training, what the spans are used for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from quoth.arrays import Floats
from quoth.encoders.transformer import Transformer, pad, run_batched
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import EncoderSource, ModelSource, has_settings, locate
from quoth.ner.config import TaggerConfig
from quoth.ner.dates import DATES_VERSION, find_dates, longest
from quoth.ner.tags import best_labels, spans_of_labels
from quoth.records import TaggedSpan
from quoth.storage import atomic_write_bytes, sha256_file
from quoth.text.boundaries import BOUNDARIES_VERSION
from quoth.text.words import NUM_SHAPES, TextWords, WordTokenizer, WordWindow

HEAD_FILE = "tagger.safetensors"
_OWN = ("shapes.", "head.")


class TagNetwork(nn.Module):
    """Scores of labels for each token. A word's shape is a learned vector added to its tokens' embeddings, so that an
    uncased encoder sees casing in all its layers."""

    def __init__(self, encoder: Any, num_labels: int) -> None:
        super().__init__()
        dimensions = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.shapes = nn.Embedding(NUM_SHAPES, dimensions)
        self.head = nn.Linear(dimensions, num_labels)
        nn.init.zeros_(self.shapes.weight)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, shapes_BT: Tensor) -> Tensor:
        """Logits [B, T, L] of inputs padded on the right; `shapes_BT` are numbers from `word_shapes`."""
        words_BTD = self.encoder.get_input_embeddings()(ids_BT) + self.shapes(shapes_BT)
        states = self.encoder(inputs_embeds=words_BTD, attention_mask=mask_BT).last_hidden_state
        logits_BTL: Tensor = self.head(states)
        return logits_BTL

    def save_head(self, folder: Path) -> None:
        """Write the weights that are not the encoder's, in fp16."""
        own = {name: value for name, value in self.state_dict().items() if name.startswith(_OWN)}
        halves = {name: value.detach().half().cpu().contiguous() for name, value in own.items()}
        atomic_write_bytes(folder / HEAD_FILE, save(halves))

    def load_head(self, folder: Path) -> None:
        """Read what `save_head` wrote. Raises ModelNotFoundError if it is missing, damaged or of a different size."""
        file = folder / HEAD_FILE
        try:
            saved = {name: value.float() for name, value in load_file(file).items()}
        except (OSError, SafetensorError) as error:
            raise ModelNotFoundError(f"{file} cannot be read ({error}); fetch or train it again") from error
        expected = {name: list(v.shape) for name, v in self.state_dict().items() if name.startswith(_OWN)}
        shapes = {name: list(v.shape) for name, v in saved.items()}
        if shapes != expected:
            raise ModelNotFoundError(
                f"{file} has shapes {shapes}, not {expected}; name the base and labels it was trained with"
            )
        with torch.no_grad():
            self.load_state_dict(saved, strict=False)


CPU = torch.device("cpu")

Network = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Maps token ids, attention mask and word shapes, each [B, T], to logits [B, T, L]."""


class Tagger:
    """Finds names and dates. `fingerprint` identifies the weights, the labels and the rules.

    The texts are not changed: a network that needs casing gets it as the words' shapes.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: WordTokenizer,
        labels: Sequence[str],
        name: str,
        fingerprint: str,
        device: torch.device = CPU,
    ) -> None:
        self.name = name
        self.labels = tuple(labels)
        settings = f"{fingerprint} {self.labels} {tokenizer.room} {BOUNDARIES_VERSION} {DATES_VERSION}"
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()
        self._network, self._tokenizer, self._device = network, tokenizer, device

    @classmethod
    def load(
        cls, name: str | Path = "quoth-tagger", device: str | None = None, *, base: str | Path | None = None
    ) -> Tagger:
        """Load a tagger.

        Args:
            name (str | Path): A shipped model (quoth-tagger), the folder of one that `quoth train tagger` wrote, or a
                Hugging Face token classifier by folder or hub id. Default: "quoth-tagger".
            device (str | None): "cpu", "cuda", "cuda:1" or "mps". Default: the best there is.
            base (str | Path | None): Folder of the base encoder. Default: None (the shipped one).

        Returns:
            The tagger, ready to tag texts.

        Raises:
            ModelNotFoundError: No model of that name, or its weights are missing or damaged.
            InputError: Another kind of model, or an unknown device.

        Example:
            >>> quoth.Tagger.load().labels
            ('O', 'B-LOC', 'I-LOC', 'B-MISC', 'I-MISC', 'B-ORG', 'I-ORG', 'B-PER', 'I-PER')
        """
        name = str(name)
        if has_settings(name) or (name.startswith("quoth-") and not Path(name).is_dir()):
            return cls._load_own(locate(name, TaggerConfig, None if base is None else str(base)), device)
        return cls._load_classifier(name, device)

    @classmethod
    def _load_own(cls, source: ModelSource[TaggerConfig], device: str | None) -> Tagger:
        config, folder = source.config, source.folder
        assert folder is not None
        encoder = EncoderSource(source.base, folder, config.revision)
        # In fp32: the head is, and Zero-NeR stores what is found, which every processor should find alike.
        transformer = Transformer.load(encoder, device=device, dtype="fp32")
        network = TagNetwork(transformer.model, len(config.labels))
        network.load_head(folder)
        network.to(transformer.device).eval()
        tokenizer = WordTokenizer(transformer.tokenizer, min(config.max_tokens, transformer.max_tokens))
        fingerprint = f"{transformer.fingerprint} {sha256_file(folder / HEAD_FILE)}"
        return cls(network, tokenizer, config.labels, source.name, fingerprint, transformer.device)

    @classmethod
    def _load_classifier(cls, name: str, device: str | None) -> Tagger:
        transformer = Transformer.load_classifier(name, device=device)
        model = transformer.model
        names = model.config.id2label
        tokenizer = WordTokenizer(transformer.tokenizer, transformer.max_tokens)

        def network(ids_BT: Tensor, mask_BT: Tensor, shapes_BT: Tensor) -> Tensor:
            logits_BTL: Tensor = model(input_ids=ids_BT, attention_mask=mask_BT).logits
            return logits_BTL

        labels = [str(names[i]) for i in range(len(names))]
        return cls(network, tokenizer, labels, name, transformer.fingerprint, transformer.device)

    def spans(self, texts: Sequence[str], *, dates: bool = True) -> list[list[TaggedSpan]]:
        """The names and dates in each text as character ranges of whole words, in order, without overlap.

        Args:
            texts (Sequence[str]): Texts of any length.
            dates (bool): Find dates too, by rules. If a date overlaps a name, the longer of the two is kept, the
                name if they are equally long. Default: True.

        Returns:
            For each text its spans: `text[span.start:span.end]` is a name or a date of the kind `span.label`.

        Raises:
            InputError: A string in place of a list.

        Example:
            >>> text = "Georges Bizet was born in Paris."
            >>> [spans] = quoth.Tagger.load("quoth-tagger").spans([text])
            >>> [(text[each.start : each.end], each.label) for each in spans]
            [('Georges Bizet', 'PER'), ('Paris', 'LOC')]
        """
        if isinstance(texts, str):
            raise InputError("texts is a string; it must be a list of texts: write [text]")
        by_text = self.names(texts)
        return [
            longest([*names, *find_dates(text)]) if dates else names for text, names in zip(texts, by_text, strict=True)
        ]

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        """The names that the model tags in each text, without the dates found by rule."""
        found, tokenized = [], self._tokenizer.texts(texts)
        for text, scores_TL in zip(tokenized, self._scores(tokenized), strict=True):
            filled = text.first_W >= 0
            words = [word for word, has in zip(text.words, filled, strict=True) if has]
            found.append(spans_of_labels(words, best_labels(scores_TL[text.first_W[filled]], self.labels)))
        return found

    def _scores(self, texts: Sequence[TextWords]) -> list[Floats]:
        """Log probabilities of the labels for each text's tokens: [T, L] per text."""
        scores = [np.zeros((len(text.ids_T), len(self.labels)), np.float32) for text in texts]
        windows = [(row, window) for row, text in enumerate(texts) for window in self._tokenizer.windows(text)]
        inputs = [window for _, window in windows]
        for member, scores_TL in run_batched(inputs, [len(window.input_ids) for window in inputs], self._log_p):
            row, window = windows[member]
            scores[row][window.tokens] = scores_TL[window.inside]
        return scores

    def _log_p(self, inputs: Sequence[WordWindow]) -> Tensor:
        ids_BT, mask_BT = pad([window.input_ids for window in inputs], self._tokenizer.pad_id)
        shapes_BT, _ = pad([window.shapes for window in inputs], 0)
        logits_BTL = self._network(*(x_BT.to(self._device) for x_BT in (ids_BT, mask_BT, shapes_BT)))
        return logits_BTL.float().log_softmax(-1)
