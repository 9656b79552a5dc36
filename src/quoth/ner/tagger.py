"""Salient spans: names of persons, places, organisations and other things by a tagger, dates by rule.

REALM masks them in training (salient span masking, Guu et al. 2020 §3.4), and Zero-NeR makes keys of them (Hoshi et al.
2022). Knows: this project's taggers and Hugging Face token classifiers, windows over long texts. Does not know:
training, what the spans are used for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from quoth.arrays import Floats, Ints
from quoth.encoders.encoder import loaded, run_batched
from quoth.encoders.graph import open_encoder
from quoth.encoders.rounding import Stored
from quoth.errors import InputError, ModelNotFoundError, needs_torch
from quoth.hub import EncoderSource, ModelSource, has_settings, locate
from quoth.ner.config import TaggerConfig
from quoth.ner.dates import DATES_VERSION, find_dates, longest
from quoth.ner.tags import best_labels, spans_of_labels
from quoth.ner.words import NUM_SHAPES, TextWords, WordTokenizer, WordWindow
from quoth.records import TaggedSpan
from quoth.storage import sha256_file
from quoth.text.boundaries import BOUNDARIES_VERSION
from quoth.text.tokenizer import BATCH_TOKENS, PairArrays, padded

HEAD_FILE = "tagger.safetensors"
Network = Callable[[PairArrays, Ints], Floats]
"""Maps token ids with their mask, and word shapes, each [B, T], to logits [B, T, L]."""


class Tagger:
    """Finds names and dates. `fingerprint` identifies the weights, labels and rules.

    Texts are not changed: a network that needs casing gets it as word shapes.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: WordTokenizer,
        labels: Sequence[str],
        name: str,
        fingerprint: str,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self.name = name
        self.labels = tuple(labels)
        settings = f"{fingerprint} {self.labels} {tokenizer.room} {BOUNDARIES_VERSION} {DATES_VERSION}"
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()
        self._network, self._tokenizer, self._batch_tokens = network, tokenizer, batch_tokens

    @classmethod
    def load(
        cls, name: str | Path = "quoth-tagger", device: str | None = None, *, base: str | Path | None = None
    ) -> Tagger:
        """Load a tagger.

        Args:
            name (str | Path): A shipped model (quoth-tagger), a folder written by `quoth train tagger`, or a Hugging
                Face token classifier by folder or hub id. Default: "quoth-tagger".
            device (str | None): "cpu", "cuda", "cuda:1" or "mps". Default: the best available.
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
        # In fp32: the head is, and Zero-NeR stores what is found, which every processor should find alike.
        encoder = open_encoder(EncoderSource(source.base, folder, config.revision), device=device, dtype="fp32")
        head = load_head(folder, encoder.dimensions, len(config.labels))

        def network(batch: PairArrays, shapes_BT: Ints) -> Floats:  # as `TagNetwork.forward`
            states_BTD = encoder.states(batch, head["shapes.weight"][shapes_BT])
            logits_BTL: Floats = states_BTD @ head["head.weight"].T + head["head.bias"]
            return logits_BTL

        tokenizer = WordTokenizer(encoder.tokenizer, min(config.max_tokens, encoder.max_tokens))
        fingerprint = f"{encoder.fingerprint} {sha256_file(folder / HEAD_FILE)}"
        return cls(network, tokenizer, config.labels, source.name, fingerprint, encoder.batch_tokens)

    @classmethod
    def _load_classifier(cls, name: str, device: str | None) -> Tagger:
        with needs_torch(name):
            from quoth.encoders.transformer import Transformer, computed, tensors
        transformer = Transformer.load_classifier(name, device=device)
        model = transformer.model
        names = model.config.id2label

        def network(batch: PairArrays, shapes_BT: Ints) -> Floats:
            return computed(lambda: model(**tensors(batch, transformer.device)).logits)

        labels = [str(names[i]) for i in range(len(names))]
        tokenizer = WordTokenizer(transformer.tokenizer, transformer.max_tokens)
        return cls(network, tokenizer, labels, name, transformer.fingerprint, transformer.batch_tokens)

    def spans(self, texts: Sequence[str], *, dates: bool = True) -> list[list[TaggedSpan]]:
        """The names and dates in each text as character ranges of whole words, in order, without overlap.

        Args:
            texts (Sequence[str]): Texts of any length.
            dates (bool): Also find dates, by rules. If a date overlaps a name, the longer one is kept, on a tie the
                name. Default: True.

        Returns:
            The spans of each text: `text[span.start:span.end]` is a name or date of kind `span.label`.

        Raises:
            InputError: A string instead of a list.

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
        lengths = [len(window.input_ids) for window in inputs]
        for member, scores_TL in run_batched(inputs, lengths, self._log_p, self._batch_tokens):
            row, window = windows[member]
            scores[row][window.tokens] = scores_TL[window.inside]
        return scores

    def _log_p(self, inputs: Sequence[WordWindow]) -> Floats:
        ids_BT, mask_BT = padded([window.input_ids for window in inputs], self._tokenizer.pad_id)
        shapes_BT, _ = padded([window.shapes for window in inputs], 0)
        logits_BTL = self._network(PairArrays(ids_BT, mask_BT, None), shapes_BT)
        logits_BTL -= logits_BTL.max(axis=-1, keepdims=True)
        log_p_BTL: Floats = logits_BTL - np.log(np.exp(logits_BTL).sum(axis=-1, keepdims=True))
        return log_p_BTL


def load_head(folder: Path, dimensions: int, labels: int) -> Stored:
    """What `TagNetwork.save_head` wrote, in fp32. Raises ModelNotFoundError if it is missing, damaged or of a different
    size."""
    file = folder / HEAD_FILE
    stored = loaded(file, load_file, "cannot be read", "fetch or train it again")
    saved = {name: value.astype(np.float32) for name, value in stored.items()}
    expected = {"shapes.weight": (NUM_SHAPES, dimensions), "head.weight": (labels, dimensions), "head.bias": (labels,)}
    shapes = {name: value.shape for name, value in saved.items()}
    if shapes != expected:
        raise ModelNotFoundError(
            f"{file} has shapes {shapes}, not {expected}; name the base and labels it was trained with"
        )
    return saved
