"""Token vectors: the keys and queries of NPM and NPM-single.

Knows: how a passage's windows become one vector per token, and a blank two vectors. Does not know: where vectors are
stored.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import Floats
from quoth.encoders.config import TokenConfig
from quoth.encoders.encoder import Encoder
from quoth.encoders.graph import open_encoder
from quoth.encoders.keys import EncodedPassage, TextSpan, Vectors
from quoth.errors import InputError, TextCutWarning
from quoth.hub import EncoderSource, ModelSource
from quoth.records import Passage
from quoth.text.boundaries import BOUNDARIES_VERSION, SPELLING_VERSION
from quoth.text.tokenizer import MASK, TextTokenizer, TokenizedPassage

QUERIES = "queries"
"""The folder of the adapter that encodes queries, in a model whose queries were tuned (`npm.queries`)."""
QUERY_REACH = 300
"""Characters of context on either side of a blank that serves as a sample query."""


class TokenEncoder:
    """An encoder with the conventions of a nonparametric masked LM.

    `queries` encodes blanks, if not the same weights do that make keys; the fingerprint, which is of the keys, does not
    depend on it.
    """

    keys = "tokens"

    def __init__(self, encoder: Encoder, config: TokenConfig, name: str, queries: Encoder | None = None) -> None:
        self.name = name
        self._encoder, self._queries = encoder, queries or encoder
        self.config = config
        self.dimensions = encoder.dimensions
        self.scale = config.scale(self.dimensions)
        longest = min(config.max_tokens, encoder.max_tokens)
        self.tokenizer = TextTokenizer(encoder.tokenizer, num_masks=config.num_masks, max_tokens=longest)
        self._query_tokenizer = TextTokenizer(
            encoder.tokenizer, num_masks=config.num_masks, max_tokens=encoder.max_tokens
        )
        settings = f"{encoder.fingerprint} {BOUNDARIES_VERSION} {config.normalize} {longest}"
        if self.tokenizer.spells:
            settings += f" {SPELLING_VERSION}"
        if not config.titles:
            settings += " without titles"
        self.fingerprint = hashlib.sha256(settings.encode()).hexdigest()

    @classmethod
    def load(
        cls, source: ModelSource[TokenConfig], *, device: str | None = None, dtype: str | None = None
    ) -> TokenEncoder:
        """Raises ModelNotFoundError, or InputError on an unknown device or dtype."""
        load = partial(open_encoder, device=device, dtype=dtype)
        tuned = queries_of(source)
        return cls(load(source.encoder), source.config, source.name, None if tuned is None else load(tuned))

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        """The keys of each passage: `passages` of their texts, and of their titles if the model reads these."""
        return self.passages(*self._texts(passages))

    def tokens(self, passages: Sequence[Passage]) -> list[TokenizedPassage]:
        """The tokens of each passage, as they are encoded."""
        return self.tokenizer.passages(*self._texts(passages))

    def _texts(self, passages: Sequence[Passage]) -> tuple[list[str], list[str]]:
        titles = [passage.title if self.config.titles else "" for passage in passages]
        return [passage.text for passage in passages], titles

    def passages(self, texts: Sequence[str], titles: Sequence[str]) -> list[EncodedPassage]:
        """Encode passages as "Title. text", long ones in several windows."""
        tokenized = self.tokenizer.passages(texts, titles)
        windows = [window for passage in tokenized for window in passage.windows]
        states = iter(self._encoder.encode([window.input_ids for window in windows]))
        empty = np.zeros((0, self.dimensions), np.float32)
        return [
            EncodedPassage(
                passage,
                self._normalized(np.concatenate([empty, *(next(states)[w.body] for w in passage.windows)])),
            )
            for passage in tokenized
        ]

    def blanks(self, texts: Sequence[str]) -> list[tuple[Floats, Floats]]:
        """The start and end query vectors of each text's blank: [D] each, both the same for NPM-single.

        Raises InputError unless each text has exactly one blank.
        """
        queries = [self.query_tokens(text) for text in texts]
        states = self._queries.encode([ids for ids, _ in queries])
        vectors = []
        for (_, positions), states_TD in zip(queries, states, strict=True):
            q_start_D, q_end_D = self._normalized(states_TD[positions[[0, -1]]])
            vectors.append((q_start_D, q_end_D))
        return vectors

    def query_tokens(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The input ids of a text with one blank, and the positions of its masks. Raises InputError as `blanks`."""
        return self._query_tokenizer.query(text)

    def takes(self, text: str) -> bool:
        """Whether `blanks` accepts a text: it has exactly one blank."""
        try:
            self._query_tokenizer.query(text)
        except InputError:
            return False
        return True

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        """Sample queries: the start and end vectors of blanks at the first `count` places without another blank: [Q,
        D]."""
        texts = (
            f"{text[max(start - QUERY_REACH, 0) : start]}{MASK}{text[end : end + QUERY_REACH]}"
            for text, start, end in places
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TextCutWarning)  # nobody gave these texts
            taken = list(islice(filter(self.takes, texts), count))
            return np.concatenate([np.zeros((0, self.dimensions), np.float32), *map(np.stack, self.blanks(taken))])

    def words(self, text: str) -> NDArray[np.float32]:
        """The vectors of a plain text's tokens: [T, D]. Raises InputError when the text has none."""
        encoded = self.passages([text], [""])[0]
        vectors_TD = encoded.vectors_TD[encoded.tokens.offsets_T2[:, 0] < encoded.tokens.offsets_T2[:, 1]]
        if not len(vectors_TD):
            raise InputError(f"text {text!r} has no words; give words to search for")
        return vectors_TD

    def _normalized(self, states_TD: NDArray[np.float32]) -> NDArray[np.float32]:
        return unit(states_TD) if self.config.normalize else states_TD


def unit(vectors_TD: Vectors) -> Vectors:
    """The vectors normalised to length 1; zero vectors stay zero."""
    lengths_T1 = np.linalg.norm(vectors_TD, axis=1, keepdims=True)
    unit_TD: Vectors = vectors_TD / np.maximum(lengths_T1, np.float32(1e-12))
    return unit_TD


def queries_of(source: ModelSource[TokenConfig]) -> EncoderSource | None:
    """The encoder of queries of a model whose queries were tuned; None of another."""
    if source.folder is None or not (source.folder / QUERIES).is_dir():
        return None
    return EncoderSource(source.base, source.folder / QUERIES, source.config.revision)
