"""The whole model against a slow one in float64, written out again from the papers; and what it refuses."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import quoth
from quoth import NPM, Corpus, Document, Prediction
from quoth.errors import EmptyCorpusError, EncoderMismatchError, InputError, ModelNotFoundError
from quoth.hub import locate
from quoth.model.calls import check_questions, for_each, takes
from quoth.realm.config import REALMConfig
from quoth.realm.model import REALM
from quoth.realm.trained import TrainedREALM
from tiny import tiny_bert, tiny_npm, tiny_realm, tiny_roberta

WORDS = ["Paris", "France", "Berlin", "Germany", "the", "capital", "of", "is", "tower", "river", "raven", "café", "the"]
QUESTIONS = ["What is the capital of France?", "the river of the raven", " Berlin tower is the tower of Paris? "]
BLANKS = ["the capital of [MASK] is above the river", "[MASK] is the raven", "the Paris river is [MASK]"]
SETTINGS: dict[str, dict[str, Any]] = {
    "bert": {"base": tiny_bert},
    "two towers": {
        "base": tiny_bert,
        "separate_towers": True,
        "pooling": "mean",
        "pooler": True,
        "normalize": True,
        "layer_norm_eps": None,
        "similarity_scale": 5.0,
        "reader_titles": True,
        "add_relevance": False,
    },
    "roberta": {"base": tiny_roberta, "dimensions": 0, "span_width": 3, "reader_titles": True, "reader_tokens": 48},
}


def prose(rng: np.random.Generator, count: int) -> str:
    return " ".join(" ".join(rng.choice(WORDS, rng.integers(2, 7))) + "." for _ in range(count))


@pytest.fixture(scope="module", params=SETTINGS)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_realm(tmp_path_factory.mktemp("realm") / "tiny", **SETTINGS[request.param])


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Corpus]:
    """Two corpora, the first of two segments with a deletion in each."""
    rng, folder = np.random.default_rng(7), tmp_path_factory.mktemp("corpora")
    first, second = (Corpus.create(folder / f"{name}.quoth", splitter="words:12") for name in ("one", "two"))
    for segment in "ab":
        first.add([Document(f"{segment}{i}", f"Title {i}" * (i % 2), prose(rng, 3)) for i in range(3)])
    first.delete(["a1", "b2"])
    second.add([Document(f"c{i}", "Paris", prose(rng, 2)) for i in range(3)])
    return [first, second]


@pytest.fixture(scope="module")
def realm(folder: Path, corpora: list[Corpus]) -> REALM:
    model = REALM.from_pretrained(folder, corpora)
    model.embed("fp32")
    return model


@pytest.fixture(scope="module")
def slow(folder: Path) -> Slow:
    return Slow(folder)


@dataclass(frozen=True)
class Times:
    times: int = 2


class Doubler:
    @takes(Times)
    def twice(self, text: Sequence[str], options: Times) -> list[str]:
        return [each * options.times for each in text]


class Slow:
    """REALM in float64, one input and one span at a time."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.config = json.loads((folder / "quoth.json").read_text())
        heads = load_file(folder / "heads.safetensors").items()
        self.heads = {name: weight.double().numpy() for name, weight in heads}
        self.hf = AutoTokenizer.from_pretrained(folder / "reader")
        names = [name for name in ("passages", "queries", "reader") if (folder / name).is_dir()]
        self.models = {
            name: AutoModel.from_pretrained(folder / name, add_pooling_layer=False).double().eval() for name in names
        }

    def ids(self, text: str) -> list[int]:
        found: list[int] = self.hf(text, add_special_tokens=False)["input_ids"]
        return found

    def framed(self, first: list[int], second: list[int] | None = None) -> tuple[list[int], list[int]]:
        ids = [self.hf.cls_token_id, *first, self.hf.sep_token_id]
        types = [0] * len(ids)
        if second is not None:
            ids, types = [*ids, *second, self.hf.sep_token_id], types + [1] * (len(second) + 1)
        return ids, types

    def states(self, part: str, ids: list[int], types: list[int]) -> Any:
        one = self.models[part].config.type_vocab_size == 1
        with torch.no_grad():
            return (
                self.models[part](input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types]) * (not one))
                .last_hidden_state[0]
                .numpy()
            )

    def linear(self, name: str, x: Any) -> Any:
        return x @ self.heads[f"{name}.weight"].T + self.heads[f"{name}.bias"]

    def norm(self, name: str, x: Any, eps: float) -> Any:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
        return x * self.heads[f"{name}.weight"] + self.heads[f"{name}.bias"]

    def vector(self, part: str, ids: list[int], types: list[int]) -> Any:
        states = self.states(part, ids, types)
        x = states.mean(axis=0) if self.config["pooling"] == "mean" else states[0]
        if self.config["pooler"]:
            x = np.tanh(self.linear(f"{part}.pooler", x))
        if self.config["dimensions"]:
            x = self.linear(f"{part}.projection", x)
        if self.config["layer_norm_eps"]:
            x = self.norm(f"{part}.norm", x, self.config["layer_norm_eps"])
        return x / np.linalg.norm(x) if self.config["normalize"] else x

    def relevance(self, q: Any, title: str, text: str) -> float:
        inputs = self.framed(self.ids(title), self.ids(text))
        return float(self.config["similarity_scale"] * q @ self.vector("passages", *inputs))

    def nearest(self, ids: list[int], corpora: list[Corpus], count: int, hidden: Collection[int] = ()) -> Any:
        """The query's vector, and relevance, corpus's name and passage of the nearest."""
        q = self.vector("queries" if self.config["separate_towers"] else "passages", *self.framed(ids))
        scored = [
            (self.relevance(q, passage.title, passage.text), number, passage)
            for number, corpus in enumerate(corpora)
            for passage in corpus.passages()
            if passage.row not in hidden
        ]
        scored.sort(key=lambda each: (-each[0], each[1], each[2].row))
        return q, [(f, corpora[number].name, passage) for f, number, passage in scored[:count]]

    def read(self, question: list[int], title: str, text: str) -> tuple[Any, list[int], list[tuple[int, int, int]]]:
        """States, ids, and each token of the passage: place in the input, characters from start to end."""
        head = f"{title}. " if title and self.config["reader_titles"] else ""
        encoded = self.hf(head + text, add_special_tokens=False, return_offsets_mapping=True)
        room = self.config["reader_tokens"] - len(question) - 3
        ids, types = self.framed(question, encoded["input_ids"][:room])
        tokens = []
        for t, (first, last) in enumerate(encoded["offset_mapping"][:room]):
            start, end = first - len(head), last - len(head)
            if end > 0:
                start += text[start : start + 1] == " "
                tokens.append((len(question) + 2 + t, start, end))
        return self.states("reader", ids, types), ids, tokens

    def spans(self, question: list[int], title: str, text: str) -> Iterator[tuple[int, int, float]]:
        """Characters from start to end of every answer, and its score."""
        states, _, tokens = self.read(question, title, text)
        starts, ends = ({each.span()[side] for each in re.finditer(r"\w+", text)} for side in (0, 1))
        size = self.config["span_hidden"]
        ends_of = self.linear("reader.span.ends", states)
        begin = {start: at for at, start, end in reversed(tokens) if start < end}
        finish = {end: at for at, start, end in tokens if start < end}
        for i, (first, start, _) in enumerate(tokens):
            for last, _, end in tokens[i : i + self.config["span_width"]]:
                if start in starts and end in ends and (begin[start], finish[end]) == (first, last):
                    both = np.maximum(ends_of[first, :size] + ends_of[last, size:], 0)
                    shaped = self.norm("reader.span.norm", both, self.config["reader_layer_norm_eps"])
                    yield start, end, float(self.linear("reader.span.score", shaped)[0])

    def log_p(self, question: list[int], title: str, text: str, mask: int = 0) -> Any:
        """log p(y|z,x) of every token of the vocabulary, at that mask of the input."""
        states, ids, _ = self.read(question, title, text)
        x = self.linear("reader.mlm.transform", states[ids.index(self.hf.mask_token_id) + mask])
        x = x * np.array([(1 + math.erf(each / math.sqrt(2))) / 2 for each in x])
        x = self.norm("reader.mlm.norm", x, self.models["reader"].config.layer_norm_eps)
        words = self.models["reader"].get_input_embeddings().weight.detach().numpy()
        logits = x @ words.T + self.heads["reader.mlm.bias"]
        return logits - np.log(np.exp(logits).sum())

    def marginal(self, text: str, corpora: list[Corpus], passages: int) -> dict[str, Any]:
        """As `ask`, by p(y|x) = Σ_z p(z|x) p(y|z,x), where p(y|z,x) is a softmax over the spans of z."""
        ids = self.ids(text.strip())
        found = self.nearest(ids, corpora, passages)[1]
        every = sum(math.exp(relevance) for relevance, _, _ in found)
        shares: dict[str, dict[Any, float]] = defaultdict(dict)
        for relevance, name, passage in found:
            spans = list(self.spans(ids, passage.title, passage.text))
            within = sum(math.exp(score) for _, _, score in spans)
            for start, end, score in spans:
                place = (name, passage.document_id, passage.start + start, passage.start + end)
                shares[passage.text[start:end].lower()][place] = math.exp(relevance + score) / every / within
        return shares

    def ask(self, text: str, corpora: list[Corpus], passages: int, hidden: Collection[int] = ()) -> dict[str, Any]:
        """Each answer's probability, and its places with their shares."""
        ids = self.ids(text.strip())
        weights: dict[str, dict[tuple[str, str, int, int], float]] = defaultdict(dict)
        for relevance, name, passage in self.nearest(ids, corpora, passages, hidden)[1]:
            for start, end, score in self.spans(ids, passage.title, passage.text):
                place = (name, passage.document_id, passage.start + start, passage.start + end)
                weight = math.exp(score + relevance * self.config["add_relevance"])
                weights[passage.text[start:end].lower()][place] = weight
        total = sum(sum(each.values()) for each in weights.values())
        return {text: {place: w / total for place, w in each.items()} for text, each in weights.items()}

    def fill(self, text: str, corpora: list[Corpus], passages: int, hidden: Collection[int] = ()) -> dict[str, Any]:
        """As `ask`, for a text with a blank."""
        before, after = text.split("[MASK]")
        ids = [*self.ids(before.rstrip()), self.hf.mask_token_id, *self.ids(after)]
        q, found = self.nearest(ids, corpora, passages, hidden)
        null = self.relevance(q, "", "")
        p_z = np.exp([*(relevance for relevance, _, _ in found), null])
        p_z /= p_z.sum()
        p_y = [np.exp(self.log_p(ids, passage.title, passage.text)) for _, _, passage in found]
        p_y.append(np.exp(self.log_p(ids, "", "")))
        marginal = sum(z * y for z, y in zip(p_z, p_y, strict=True))
        parts: dict[int, dict[Any, float]] = defaultdict(dict)
        written: dict[Any, str] = {}
        for n, (_, name, passage) in enumerate(found):
            _, seen, tokens = self.read(ids, passage.title, passage.text)
            words = {each.span() for each in re.finditer(r"\w+", passage.text)}
            whole = [(seen[at], start, end) for at, start, end in tokens if (start, end) in words]
            for word, start, end in whole:
                place = (name, passage.document_id, passage.start + start, passage.start + end)
                parts[word][place] = p_z[n] * p_y[n][word] / [each[0] for each in whole].count(word)
                written[place] = passage.text[start:end].lower()
        answers: dict[str, Any] = defaultdict(dict)
        for word, each in parts.items():
            for place, part in each.items():
                answers[written[place]][place] = marginal[word] * part / sum(each.values())
        return dict(answers)

    def likelihood(self, text: str, answer: str, corpora: list[Corpus], passages: int, hidden: Any = ()) -> Any:
        """p(y|x), and p(z|x) and p(y|z,x) of each passage and, last, of none."""
        before, after = text.split("[MASK]")
        y = self.ids(" " * (before != before.rstrip()) + answer)
        ids = [*self.ids(before.rstrip()), *([self.hf.mask_token_id] * len(y)), *self.ids(after)]
        q, found = self.nearest(ids, corpora, passages, hidden)
        read = [*((f, passage.title, passage.text) for f, _, passage in found), (self.relevance(q, "", ""), "", "")]
        weights = [math.exp(f) for f, _, _ in read]
        p_z = [each / sum(weights) for each in weights]
        p_y = [math.prod(math.exp(self.log_p(ids, *z, m)[w]) for m, w in enumerate(y)) for _, *z in read]
        return sum(z * p for z, p in zip(p_z, p_y, strict=True)), p_z, p_y, [each for *_, each in found]


def assert_same(found: list[Prediction], expected: dict[str, Any]) -> None:
    assert [each.text.lower() for each in found] == sorted(expected, key=lambda text: -sum(expected[text].values()))
    for each in found:
        places = expected[each.text.lower()]
        assert each.probability == pytest.approx(sum(places.values()), rel=2e-3)
        shares = {(place.corpus, place.document_id, place.start, place.end): place.score for place in each.evidence}
        assert shares == pytest.approx(places, rel=2e-3)


def assert_quoted(found: list[Prediction], corpora: list[Corpus]) -> None:
    """What holds of every list of predictions."""
    documents = {(corpus.name, each.id): each.text for corpus in corpora for each in corpus.documents()}
    assert len({each.text.casefold() for each in found}) == len(found)
    assert sum(each.probability for each in found) <= 1 + 1e-6
    assert [each.probability for each in found] == sorted((each.probability for each in found), reverse=True)
    for each in found:
        assert sum(place.score for place in each.evidence) == pytest.approx(each.probability)
        assert [place.score for place in each.evidence] == sorted((p.score for p in each.evidence), reverse=True)
        for place in each.evidence:
            text = documents[place.corpus, place.document_id]
            assert text[place.start : place.end].casefold() == each.text.casefold()
            assert text[place.context_start :].startswith(place.context)
        first = each.evidence[0]
        assert documents[first.corpus, first.document_id][first.start : first.end] == each.text


def outlines(found: list[Prediction]) -> Any:
    return [(each.text, [(e.corpus, e.document_id, e.start, e.end) for e in each.evidence]) for each in found]


# Answers


@pytest.mark.parametrize("passages", [1, 4])
def test_ask_equals_the_slow_model(realm: REALM, slow: Slow, corpora: list[Corpus], passages: int) -> None:
    for question in QUESTIONS[:passages]:
        found = realm.ask(question, passages=passages, top_k=10000)
        assert_same(found, slow.ask(question, corpora, passages))
        assert sum(each.probability for each in found) == pytest.approx(1)


@pytest.mark.parametrize("passages", [1, 4])
def test_eq_1_of_ask_equals_the_slow_model(realm: REALM, slow: Slow, corpora: list[Corpus], passages: int) -> None:
    for question in QUESTIONS[:passages]:
        found = realm.ask(question, passages=passages, top_k=10000, combine="marginal")
        assert_same(found, slow.marginal(question, corpora, passages))
        assert sum(each.probability for each in found) == pytest.approx(1)


@pytest.mark.parametrize("passages", [1, 4])
def test_fill_equals_the_slow_model(realm: REALM, slow: Slow, corpora: list[Corpus], passages: int) -> None:
    for text in BLANKS[:passages]:
        assert_same(realm.fill(text, passages=passages, top_k=10000), slow.fill(text, corpora, passages))


def test_excluded_passages_are_not_read(realm: REALM, slow: Slow, corpora: list[Corpus]) -> None:
    nearest = [row for _, (_, row) in nearest_rows(realm, QUESTIONS[0], 2)]
    found = realm.ask(QUESTIONS[0], passages=2, top_k=10000, exclude=nearest)
    assert_same(found, slow.ask(QUESTIONS[0], corpora, 2, nearest))
    assert not {place.passage for each in found for place in each.evidence} & set(nearest)
    together = realm.ask(QUESTIONS[:2], passages=2, top_k=10000, exclude=[nearest, []])
    assert [outlines(each) for each in together] == [
        outlines(found),
        outlines(realm.ask(QUESTIONS[1], passages=2, top_k=10000)),
    ]
    nowhere = set(range(100))
    assert realm.ask(QUESTIONS[0], exclude=nowhere) == realm.fill(BLANKS[0], exclude=nowhere) == []


def nearest_rows(realm: REALM, question: str, count: int) -> Any:
    return realm._retriever.nearest_passages(realm.encoder.queries([question]), count, [()])[0]


# The likelihood of a given answer


@pytest.mark.parametrize("passages", [1, 4])
@pytest.mark.parametrize(
    ("text", "answer"),
    [(BLANKS[0], "Paris"), (BLANKS[1], "raven tower"), (BLANKS[2], " Berliner river of it ")],
)
def test_the_likelihood_equals_the_slow_model(
    realm: REALM, slow: Slow, corpora: list[Corpus], text: str, answer: str, passages: int
) -> None:
    p, p_z, p_y, read = slow.likelihood(text, answer.strip(), corpora, passages)
    found = realm.likelihood(text, answer, passages=passages)
    assert found.answer == answer.strip()
    assert len(found.pieces) > 1 or answer == "Paris"
    assert found.probability == pytest.approx(p, rel=2e-3)
    assert found.log_probability == pytest.approx(math.log(p), abs=2e-3)
    assert [each.passage for each in found.passages] == [*read, None]
    assert found.passages[-1].corpus == ""
    for z, prior, likelihood in zip(found.passages, p_z, p_y, strict=True):
        assert math.exp(z.log_retrieval) == pytest.approx(prior, rel=2e-3)
        assert math.exp(z.log_likelihood) == pytest.approx(likelihood, rel=2e-3)
        assert z.share == pytest.approx(prior * likelihood / p, rel=2e-3)
    assert sum(each.share for each in found.passages) == pytest.approx(1)


def test_the_likelihood_of_one_piece_is_the_probability_that_fill_gives(realm: REALM) -> None:
    for filled in realm.fill(BLANKS[0], top_k=5):
        found = realm.likelihood(BLANKS[0], filled.text)
        if len(found.pieces) == 1 and not found.pieces[0].startswith("Ġ"):
            assert found.probability == pytest.approx(filled.probability, rel=1e-4)
        elif len(found.pieces) == 1:  # "the" and "Ġthe" are two tokens, and one word to `fill`
            assert 0 < found.probability <= filled.probability * (1 + 1e-4)
        assert len(found.passages) == 8


def test_the_likelihood_without_passages_is_the_null_documents(realm: REALM, slow: Slow, corpora: list[Corpus]) -> None:
    text, answer = "the [MASK] is above the river", "Paris tower"
    (nearest,) = [row for _, (_, row) in nearest_rows(realm, "the", 1)]
    some = realm.likelihood(text, answer, passages=2, exclude=[nearest])
    assert some.probability == pytest.approx(slow.likelihood(text, answer, corpora, 2, [nearest])[0], rel=2e-3)
    alone = realm.likelihood(text, answer, exclude=set(range(100)))
    (null,) = alone.passages
    assert (null.passage, null.log_retrieval, null.share) == (None, 0.0, 1.0)
    assert alone.log_probability == null.log_likelihood
    assert null.log_likelihood == pytest.approx(some.passages[-1].log_likelihood, rel=1e-4)
    written = json.loads(json.dumps(some.to_dict()))
    assert written["probability"] == some.probability
    assert [each["passage"] and each["passage"]["text"] for each in written["passages"]] == [
        *(each.passage.text for each in some.passages[:-1] if each.passage),
        None,
    ]


def test_a_mask_in_a_passage_is_none_of_the_answers(tmp_path: Path, slow: Slow, folder: Path) -> None:
    corpus = Corpus.create(tmp_path / "masks.quoth")
    corpus.add([Document("a", "", "Paris is [MASK] the tower.")])
    realm = REALM.from_pretrained(folder, corpus)
    realm.embed("fp32")
    found = realm.likelihood("[MASK] of France", "Paris tower")
    assert found.probability == pytest.approx(
        slow.likelihood("[MASK] of France", "Paris tower", [corpus], 7)[0], rel=2e-3
    )


def test_what_has_no_likelihood_is_said(realm: REALM) -> None:
    for answer in ("", "  "):
        with pytest.raises(InputError, match=r"answer '\s*' is empty; give the words of the blank"):
            realm.likelihood(BLANKS[0], answer)
    mask = realm.encoder.tokenizer.mask_token
    with pytest.raises(InputError, match=f"answer 'Paris {re.escape(mask)}' contains a mask, so it has no probability"):
        realm.likelihood(BLANKS[0], f"Paris {mask}")
    with pytest.raises(InputError, match=r"answer .* has \d+ word pieces; it may have at most 30; give a shorter one"):
        realm.likelihood(BLANKS[0], "river " * 31)
    count = 30 // len(realm.likelihood("the the [MASK] the the", "river").pieces)
    longest = realm.likelihood("the the [MASK] the the", "river " * count)
    assert 25 <= len(longest.pieces) <= 30
    assert math.isfinite(longest.log_probability)
    with pytest.raises(InputError, match=r"no \[MASK\] in 'Paris'"):
        realm.likelihood("Paris", "Paris")
    with pytest.raises(InputError, match="passages is 0; it must be 1 or more"):
        realm.likelihood(BLANKS[0], "Paris", passages=0)
    if realm.encoder.tokenizer.hf.unk_token == "[UNK]":
        with pytest.raises(InputError, match=r"answer '\U00013080' has characters that the tokenizer does not know"):
            realm.likelihood(BLANKS[0], "\U00013080")


def test_every_answer_is_a_quotation(realm: REALM, corpora: list[Corpus]) -> None:
    for top_k in (1, 5, 100):
        for found in (*realm.ask(QUESTIONS, top_k=top_k), *realm.fill(BLANKS, top_k=top_k)):
            assert 0 < len(found) <= top_k
            assert_quoted(found, corpora)
    assert [each.sequence for each in realm.ask(QUESTIONS[0])] == [""] * 5
    for each in realm.fill(BLANKS[0]):
        assert each.sequence == f"the capital of {each.text} is above the river"


def test_many_texts_equal_one_by_one(realm: REALM) -> None:
    for method, texts in ((realm.ask, QUESTIONS), (realm.fill, BLANKS)):
        together = method(texts, top_k=7, passages=3)
        for text, found in zip(texts, together, strict=True):
            alone = method(text, top_k=7, passages=3)
            assert outlines(alone) == outlines(found)
            assert [each.probability for each in alone] == pytest.approx([p.probability for p in found], rel=1e-4)
        assert method([]) == []


def test_fill_reads_as_many_passages_as_the_model_was_trained_with(realm: REALM) -> None:
    assert outlines(realm.fill(BLANKS[0], top_k=50)) == outlines(realm.fill(BLANKS[0], top_k=50, passages=7))


def test_only_the_beginning_of_a_long_question_is_read(realm: REALM) -> None:
    first, second = (realm.ask("river " * count, top_k=9) for count in (40, 80))
    assert outlines(first) == outlines(second)
    assert realm.fill("river " * 80 + "[MASK]" + " tower" * 80)


def test_search_goes_by_vectors_unless_it_is_told_otherwise(realm: REALM, corpora: list[Corpus]) -> None:
    hits = realm.search("the raven", k=5)
    assert [(corpora.index(each), hit.passage.row) for each, hit in zip(owners(corpora, hits), hits, strict=True)] == [
        place for _, place in nearest_rows(realm, "the raven", 5)
    ]
    assert {hit.passage.text for hit in realm.search("raven", k=50, mode="bm25")} == {
        passage.text for corpus in corpora for passage in corpus.passages() if "raven" in passage.text
    }
    assert len(realm.search("raven", k=3, mode="hybrid")) == 3


def owners(corpora: list[Corpus], hits: Any) -> list[Corpus]:
    return [next(each for each in corpora if hit.passage in each.passages()) for hit in hits]


def test_what_cannot_be_asked_is_said(realm: REALM) -> None:
    for question in ("", "  "):
        with pytest.raises(InputError, match="the question is empty; ask one, such as"):
            realm.ask(question)
    with pytest.raises(InputError, match=r"no \[MASK\] in 'Paris'"):
        realm.fill("Paris")
    with pytest.raises(InputError, match="2 masks"):
        realm.fill(["[MASK]", "[MASK] [MASK]"])
    for ask in (lambda **o: realm.ask("Who?", **o), lambda **o: realm.fill("[MASK]", **o)):
        with pytest.raises(InputError, match="passages is 0; it must be 1 or more"):
            ask(passages=0)
        with pytest.raises(InputError, match="top_k is 0"):
            ask(top_k=0)
        with pytest.raises(InputError, match="exclude has 2 collections for 1 texts; pass one per text"):
            ask(exclude=[[1], [2]])
    with pytest.raises(InputError, match="mode is 'best'; it must be one of auto, bm25, dense, hybrid"):
        realm.search("a", mode="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="k is 0; it must be 1 or more"):
        realm.search("a", k=0)
    with pytest.raises(InputError, match="has no words"):
        realm.search(" ")


# Words that share a token


def test_words_that_are_one_token_are_told_apart(tmp_path: Path) -> None:
    """An uncased tokenizer drops accents, and has one token for all that it cannot spell."""
    corpus = Corpus.create(tmp_path / "words.quoth")
    text = "The cafe and the Café, the CAFÉ; \U00013080 and \U00013081."
    corpus.add([Document("a", "", text)])
    realm = REALM.from_pretrained(tiny_realm(tmp_path / "tiny"), corpus)
    realm.embed("fp32")
    found = {each.text: each for each in realm.fill("the [MASK]", top_k=50)}
    assert set(found) == {"The", "cafe", "and", "Café", "\U00013080", "\U00013081"}
    assert_quoted(list(found.values()), [corpus])
    assert found["Café"].probability == pytest.approx(2 * found["cafe"].probability)
    assert found["\U00013080"].probability == pytest.approx(found["\U00013081"].probability)


def test_answers_in_every_script(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "scripts.quoth")
    text = "Zoe\u0308 saß in 北京 🙂👍🏽; Καζαντζάκης was in the café of München, сказала она: e\u0301te\u0301!"
    corpus.add([Document("a", "東京 🙂", "🙂 " + text), Document("b", "", text.upper())])
    for base in (tiny_bert, tiny_roberta):
        folder = tiny_realm(tmp_path / base.__name__, base, reader_titles=True, span_width=40)
        realm = REALM.from_pretrained(folder, corpus)
        realm.embed("fp32")
        found = realm.ask("Who?", top_k=10000)
        assert_quoted(found, [corpus])
        assert {"Zoe\u0308", "Καζαντζάκης", "café of München", "e\u0301te\u0301"} <= {each.text for each in found} | {
            place.context[place.start - place.context_start : place.end - place.context_start]
            for each in found
            for place in each.evidence
        }


# Corpora and models that do not fit


def test_a_corpus_without_passages_or_vectors(tmp_path: Path) -> None:
    folder, corpus = tiny_realm(tmp_path / "tiny"), Corpus.create(tmp_path / "one.quoth")
    for empty in (None, corpus, []):
        model = REALM.from_pretrained(folder, empty)
        for ask in (lambda m=model: m.ask("Who?"), lambda m=model: m.fill("[MASK]"), lambda m=model: m.search("a")):
            with pytest.raises(EmptyCorpusError, match="no passage to search"):
                ask()
    corpus.add([Document("a", "", "The raven sat.")])
    realm = REALM.from_pretrained(folder, corpus)
    command = re.escape(f"`quoth embed {corpus.path} --keys passages --model {folder}`")
    for ask in (lambda: realm.ask("Who?"), lambda: realm.fill("[MASK]"), lambda: realm.search("a")):
        with pytest.raises(InputError, match=f"1 of 1 segments have no vectors of .*; {command}"):
            ask()
    cost = realm.embed_cost()
    assert (cost.passages, cost.tokens) == (1, 1)
    progress: list[tuple[int, int]] = []
    assert realm.embed(progress=lambda *done: progress.append(done)) == []
    assert progress[-1] == (1, 1)
    assert realm.ask("Who?")
    other = REALM.from_pretrained(tiny_realm(tmp_path / "other", seed=1), corpus)
    with pytest.raises(EncoderMismatchError, match=rf"has keys of .*tiny \({realm.fingerprint[:8]}\), not of .*other"):
        other.ask("Who?")
    npm = NPM.from_pretrained(str(tiny_npm(tmp_path / "npm")), corpus)
    npm.embed("fp32")
    assert npm.fill("the [MASK]", passages=None)
    assert realm.ask("Who?"), "tables of several models live side by side"


def test_another_kind_of_folder_is_refused(tmp_path: Path) -> None:
    realm, npm = tiny_realm(tmp_path / "realm"), tiny_npm(tmp_path / "npm")
    with pytest.raises(InputError, match="realm' is of kind 'realm'; kind 'npm' is required here"):
        NPM.from_pretrained(str(realm))
    with pytest.raises(InputError, match="npm' is of kind 'npm'; kind 'realm' is required here"):
        REALM.from_pretrained(npm)
    for name in ("quoth-realm-none", str(tmp_path), "google/realm-orqa-nq-openqa"):
        with pytest.raises(
            ModelNotFoundError, match=r"REALM .* not found; name quoth-realm, quoth-realm-base, .* `quoth conv"
        ):
            REALM.from_pretrained(name)


def test_damaged_heads_are_named(tmp_path: Path) -> None:
    folder = tiny_realm(tmp_path / "tiny")
    file = folder / "heads.safetensors"
    heads = load_file(file)
    for name in ("passages.projection.weight", "reader.span.ends.bias"):
        save_file({key: weight for key, weight in heads.items() if key != name}, file)
        with pytest.raises(ModelNotFoundError, match=rf"heads.safetensors: {name} is missing, expected \["):
            REALM.from_pretrained(folder)
        save_file({**heads, name: heads[name][:3].contiguous()}, file)
        with pytest.raises(ModelNotFoundError, match=rf"heads.safetensors: {name} is of shape \[3.*, expected \["):
            REALM.from_pretrained(folder)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(
        ModelNotFoundError, match=r"heads.safetensors cannot be read .*; fetch or train the model again"
    ):
        REALM.from_pretrained(folder)
    file.unlink()
    with pytest.raises(ModelNotFoundError, match=r"heads.safetensors cannot be read"):
        REALM.from_pretrained(folder)


@pytest.mark.parametrize("part", ["passages", "queries", "reader"])
def test_a_missing_part_is_named(tmp_path: Path, part: str) -> None:
    folder = tiny_realm(tmp_path / "tiny", separate_towers=True)
    shutil.rmtree(folder / part)
    with pytest.raises(ModelNotFoundError, match=f"tiny/{part}' has no encoder; fetch or train the model again"):
        REALM.from_pretrained(folder)


def test_what_training_saves_is_what_is_loaded(
    folder: Path, realm: REALM, corpora: list[Corpus], tmp_path: Path
) -> None:
    TrainedREALM(locate(str(folder), REALMConfig)).save(tmp_path / "saved")
    saved = REALM.from_pretrained(tmp_path / "saved", corpora)
    assert (saved.fingerprint, saved.config) == (realm.fingerprint, realm.config)
    assert saved.ask(QUESTIONS[0]) == realm.ask(QUESTIONS[0])
    assert saved.fill(BLANKS[0]) == realm.fill(BLANKS[0])


# What models have in common


def test_arguments_are_spread_over_texts() -> None:
    assert Doubler().twice("a") == "aa"
    assert Doubler().twice(text="a") == "aa"  # type: ignore[call-overload]
    assert Doubler().twice(["a", "b"], times=3) == ["aaa", "bbb"]
    with pytest.raises(TypeError, match=r"^Doubler\.twice\(\) has no option 'tims'; did you mean times\?$"):
        Doubler().twice("a", tims=3)  # type: ignore[call-overload]
    assert for_each((), 2) == for_each(set(), 2) == [set(), set()]
    assert for_each(np.array([3, 1]), 2) == [{1, 3}, {1, 3}]  # type: ignore[arg-type]
    assert for_each([[1], {2}], 2) == [{1}, {2}]
    for exclude in ([[1]], [[1], [2], [3]], [[1], [2], 3]):
        with pytest.raises(InputError, match="collections for 2 texts; pass one per text"):
            for_each(exclude, 2)  # type: ignore[arg-type]
    check_questions(["Who?"])
    with pytest.raises(InputError, match="the question is empty"):
        check_questions(["Who?", "\n"])
    with pytest.raises(InputError, match=r"question '\?!' has no words"):
        check_questions(["Who?", "?!"])


def test_the_shipped_model_answers_questions(tmp_path: Path) -> None:
    asked = {
        "Who wrote War and Peace?": "Leo Tolstoy",
        "Who composed Carmen?": "Georges Bizet",
        "Who directed the film Seven Samurai?": "Akira Kurosawa",
    }
    titles = {"War and Peace", "Carmen", "Eiffel Tower", "Mona Lisa", "Astana", "Seven Samurai"}
    atlas = quoth.read_documents(Path(__file__).parents[2] / "samples" / "atlas-2026.jsonl")
    corpus = Corpus.create(tmp_path / "atlas.quoth")
    corpus.add(each for each in atlas if each.title in titles)
    realm = REALM.from_pretrained(corpus=corpus)
    assert locate("quoth-realm", REALMConfig).config == realm.config
    realm.embed()
    for found, answer in zip(realm.ask(list(asked)), asked.values(), strict=True):
        assert found[0].text == answer
        place = found[0].evidence[0]
        assert corpus.document(place.document_id).text[place.start : place.end] == answer
