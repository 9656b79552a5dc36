"""The papers' dense baselines, one vector per passage: Contriever (Izacard et al. 2021), DPR (Karpukhin et al. 2020),
and the lexical models that SPAR adds to them (Chen et al. 2022).

Knows: their encoders on the Hugging Face hub, and the forms of their inputs. Does not know: key tables. Vectors are
kept in memory, and a query is compared with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from quoth.arrays import Floats
from quoth.corpus.bm25 import PassageRef, best_places, check_not_empty
from quoth.corpus.corpus import Corpus
from quoth.encoders.transformer import kinds_of
from quoth.errors import InputError, ModelNotFoundError
from quoth.npm.twin import load_lm
from quoth.realm.towers import mean_state
from quoth.records import Hit, Passage

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
            known = f"name {', '.join(PUBLISHED)}, a hub id or a folder, or two joined by +"
            raise InputError(f"dense baseline {name!r} is not complete; {known}")
        return cls(passages, queries or passages, bool(plus))


_DPR, _SPAR = "facebook/dpr-{}-single-nq-base", "facebook/spar-{}-bm25-lexmodel-{}-encoder"
PUBLISHED = {
    "contriever": DenseBaseline("facebook/contriever", "facebook/contriever", False),
    "dpr": DenseBaseline(_DPR.format("ctx_encoder"), _DPR.format("question_encoder"), True),
    **{
        f"spar-{taught_on}": DenseBaseline(
            _SPAR.format(taught_on, "context"), _SPAR.format(taught_on, "query"), title_apart=False, first_state=True
        )
        for taught_on in ("wiki", "paq", "marco")
    },
}


class DenseSearch:
    """Finds passages by the dot product of their vectors with the question's; encodes every passage when created."""

    def __init__(
        self,
        name: str,
        corpora: Sequence[Corpus],
        device: str | None = None,
        dtype: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """The search by the baseline of this name. Raises ModelNotFoundError, EmptyCorpusError, InputError on an
        incomplete name, an unknown device or dtype."""
        baseline = DenseBaseline.named(name)
        check_not_empty(corpora)
        self._corpora, self._options = corpora, (device, dtype)
        self._mu, self._lexical, self._opened = 0.0, "", dict[str, DenseSearch]()
        self._encode = _encoder(baseline.queries, baseline.first_state, device, dtype)
        encode = self._encode
        if baseline.passages != baseline.queries:
            encode = _encoder(baseline.passages, baseline.first_state, device, dtype)
        self._places = [(n, row) for n, corpus in enumerate(corpora) for row in corpus.live_rows().tolist()]
        self._number = {place: number for number, place in enumerate(self._places)}
        vectors = []
        for done in range(0, len(self._places), TEXTS_AT_A_TIME):
            passages = list(map(self._passage, self._places[done : done + TEXTS_AT_A_TIME]))
            texts = [each.text for each in passages]
            if baseline.title_apart:
                vectors.append(encode([each.title for each in passages], texts))
            else:
                vectors.append(encode([f"{each.title} {each.text}".strip() for each in passages], None))
            if progress is not None:
                progress(done + len(passages), len(self._places))
        self._vectors_PD = np.concatenate(vectors)

    def adding(self, mu: float, lexical: str = "") -> DenseSearch:
        """The same search with `mu` times other scores of all passages added: BM25's, or the dot products of a baseline
        `lexical`, such as one that was trained to imitate BM25, which encodes the passages once. Raises the errors of
        the class.

        Source: SPAR (Chen et al. 2022, §3). Its concatenated vectors [p, λ(p)] and [q, μ λ(q)] have this product.
        """
        if lexical and lexical not in self._opened:
            self._opened[lexical] = DenseSearch(lexical, self._corpora, *self._options)
        both = copy(self)
        both._mu, both._lexical = mu, lexical
        return both

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best passages, ties by corpus, then row."""
        scores_P = self._products(query)
        if self._lexical:
            scores_P = scores_P + self._mu * self._opened[self._lexical]._products(query)
        elif self._mu:
            for score, place in best_places(self._corpora, query, len(self._places)):
                scores_P[self._number[place]] += self._mu * score
        best = np.argsort(-scores_P, kind="stable")[:k].tolist()
        return [Hit(self._passage(self._places[i]), float(scores_P[i])) for i in best]

    def _products(self, query: str) -> Floats:
        """The dot products of the passages' vectors with a query's."""
        product_P: Floats = self._vectors_PD @ self._encode([query], None)[0]
        return product_P

    def _passage(self, place: PassageRef) -> Passage:
        number, row = place
        return self._corpora[number].passage(row)


def _encoder(name: str, first_state: bool, device: str | None, dtype: str | None) -> Callable[..., Floats]:
    """What makes vectors of texts, or of pairs of them."""
    model, tokenizer = load_lm(name, _choose, "name a hub id, or a folder with config.json", device, dtype)
    model.eval()

    @torch.inference_mode()
    def encode(texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        options = {"truncation": True, "max_length": MAX_TOKENS, "padding": True, "return_tensors": "pt"}
        inputs = tokenizer(texts, pairs, **options).to(model.device)
        output = model(**inputs)
        if (states_BTD := getattr(output, "last_hidden_state", None)) is None:
            vectors_BD = output.pooler_output
        else:
            vectors_BD = states_BTD[:, 0] if first_state else mean_state(states_BTD, inputs["attention_mask"])
        on_cpu_BD: Floats = vectors_BD.float().cpu().numpy()
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
