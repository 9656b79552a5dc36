"""The papers' dense baselines, one vector per passage: Contriever (Izacard et al. 2021), DPR (Karpukhin et al. 2020),
and the lexical models that SPAR adds to them (Chen et al. 2022).

Knows: their encoders on the Hugging Face hub, and the forms of their inputs. Does not know: key tables. Vectors are
kept in memory, and a query is compared with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from quoth.corpus.bm25 import PassageRef, best_places, check_not_empty
from quoth.encoders.transformer import device_named, dtype_named, kinds_of, load_kind
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import EncoderSource
from quoth.realm.towers import mean_state
from quoth.records import Hit, Passage

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus

Texts = Sequence[str]
MAX_TOKENS = 256
TEXTS_AT_A_TIME = 32
DPR_ENCODERS = ("DPRContextEncoder", "DPRQuestionEncoder")


@dataclass(frozen=True, slots=True)
class DenseBaseline:
    """Hub ids or folders of the passage and the question encoder; whether the title is the first of two texts (DPR) or
    is put before the text; and whether a text's vector is the first state (SPAR) or the mean of all (Contriever). The
    classes of DPR have vectors of their own."""

    passages: str
    queries: str
    title_apart: bool
    first_state: bool = False

    @classmethod
    def named(cls, name: str) -> DenseBaseline:
        """The baseline of a name in `PUBLISHED`, or one from "PASSAGES+QUESTIONS" (two hub ids or folders of DPR
        encoders) or from the hub id or folder of another encoder.

        Raises InputError on an empty name.
        """
        if name in PUBLISHED:
            return PUBLISHED[name]
        passages, plus, queries = name.partition("+")
        if not passages or (plus and not queries):
            raise InputError(
                f"dense baseline {name!r} is not complete; name {', '.join(PUBLISHED)}, a hub id or a folder, or two "
                "joined by +"
            )
        return cls(passages, queries or passages, bool(plus))


PUBLISHED = {
    "contriever": DenseBaseline("facebook/contriever", "facebook/contriever", False),
    "dpr": DenseBaseline(
        "facebook/dpr-ctx_encoder-single-nq-base", "facebook/dpr-question_encoder-single-nq-base", True
    ),
    **{
        f"spar-{taught_on}": DenseBaseline(
            f"facebook/spar-{taught_on}-bm25-lexmodel-context-encoder",
            f"facebook/spar-{taught_on}-bm25-lexmodel-query-encoder",
            title_apart=False,
            first_state=True,
        )
        for taught_on in ("wiki", "paq", "marco")
    },
}


class DenseSearch:
    """Finds passages by the dot product of their vectors with the question's; encodes every passage when created."""

    def __init__(
        self,
        baseline: DenseBaseline,
        corpora: Sequence[Corpus],
        device: str | None = None,
        dtype: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Raises ModelNotFoundError, EmptyCorpusError, InputError on an unknown device or dtype."""
        check_not_empty(corpora)
        self._baseline, self._options = baseline, (device, dtype)
        self._device = device_named(device)
        self._dtype = dtype_named(dtype or "fp32", self._device)
        self._queries = self._encoder(baseline.queries)
        encoder = self._queries if baseline.passages == baseline.queries else self._encoder(baseline.passages)
        self._corpora, self._mu = corpora, 0.0
        self._lexical: DenseSearch | None = None
        self._opened: dict[str, DenseSearch] = {}
        self._places = [(n, row) for n, corpus in enumerate(corpora) for row in corpus.live_rows().tolist()]
        vectors = []
        for done in range(0, len(self._places), TEXTS_AT_A_TIME):
            places = self._places[done : done + TEXTS_AT_A_TIME]
            vectors.append(encoder(*self._texts([self._passage(place) for place in places])))
            if progress is not None:
                progress(done + len(places), len(self._places))
        self._vectors_PD = np.concatenate(vectors)

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        corpora: Sequence[Corpus],
        device: str | None = None,
        dtype: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> DenseSearch:
        """The baseline of this name. Raises the errors of `DenseBaseline.named` and of the class."""
        return cls(DenseBaseline.named(name), corpora, device, dtype, progress)

    def with_bm25(self, mu: float) -> DenseSearch:
        """The same search with `mu` times BM25's scores added to all passages'.

        Source: as `with_lexical`, with BM25 itself in place of the model that imitates it.
        """
        both = copy(self)
        both._mu, both._lexical = mu, None
        return both

    def with_lexical(self, name: str, mu: float) -> DenseSearch:
        """The same search with `mu` times the dot products of another baseline of this name added, such as one that was
        trained to imitate BM25; it encodes the passages once. Raises the errors of `from_pretrained`.

        Source: SPAR (Chen et al. 2022, §3). Its concatenated vectors [p, λ(p)] and [q, μ λ(q)] have this product.
        """
        if name not in self._opened:
            self._opened[name] = DenseSearch.from_pretrained(name, self._corpora, *self._options)
        both = copy(self)
        both._mu, both._lexical = mu, self._opened[name]
        return both

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best passages, ties by corpus, then row."""
        scores_P = self._products(query)
        if self._mu and self._lexical:
            scores_P = scores_P + self._mu * self._lexical._products(query)
        elif self._mu:
            for score, place in best_places(self._corpora, query, len(self._places)):
                scores_P[self._number[place]] += self._mu * score
        best = np.argsort(-scores_P, kind="stable")[:k].tolist()
        return [Hit(self._passage(self._places[i]), float(scores_P[i])) for i in best]

    def _products(self, query: str) -> NDArray[np.float32]:
        """The dot products of the passages' vectors with a query's."""
        (q_D,) = self._queries([query], None)
        product_P: NDArray[np.float32] = self._vectors_PD @ q_D
        return product_P

    @cached_property
    def _number(self) -> dict[PassageRef, int]:
        """The number of the vector of each place."""
        return {place: number for number, place in enumerate(self._places)}

    def _passage(self, place: PassageRef) -> Passage:
        number, row = place
        return self._corpora[number].passage(row)

    def _texts(self, passages: Sequence[Passage]) -> tuple[Texts, Texts | None]:
        if self._baseline.title_apart:
            return [passage.title for passage in passages], [passage.text for passage in passages]
        return [f"{passage.title} {passage.text}".strip() for passage in passages], None

    def _encoder(self, name: str) -> Callable[[Texts, Texts | None], NDArray[np.float32]]:
        model, tokenizer = load_kind(EncoderSource(name), _choose, "name a hub id, or a folder with config.json")
        model.to(device=self._device, dtype=self._dtype).eval()

        @torch.inference_mode()
        def encode(texts: Texts, pairs: Texts | None) -> NDArray[np.float32]:
            options = {"truncation": True, "max_length": MAX_TOKENS, "padding": True, "return_tensors": "pt"}
            inputs = tokenizer(list(texts), None if pairs is None else list(pairs), **options).to(self._device)
            output = model(**inputs)
            states_BTD = getattr(output, "last_hidden_state", None)
            if states_BTD is None:
                vectors_BD = output.pooler_output
            elif self._baseline.first_state:
                vectors_BD = states_BTD[:, 0]
            else:
                vectors_BD = mean_state(states_BTD, inputs["attention_mask"])
            on_cpu_BD: NDArray[np.float32] = vectors_BD.float().cpu().numpy()
            return on_cpu_BD

        return encode


def _choose(name: str, config: Any) -> str:
    """The class of an encoder by its config: DPR has two classes of its own."""
    if config.model_type != "dpr":
        return "AutoModel"
    kind = kinds_of(config)[0]
    if kind not in DPR_ENCODERS:
        raise ModelNotFoundError(f"model {name!r} is a {kind}; only {' and '.join(DPR_ENCODERS)} are supported")
    return kind
