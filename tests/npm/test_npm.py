"""The whole model against a brute force in float64: every span in turn, by the equations, in a few lines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quoth import NPM
from quoth.corpus.corpus import Corpus
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import EmptyCorpusError, InputError, UserError
from quoth.hub import locate
from quoth.npm.config import NPMConfig
from quoth.records import Document, Prediction
from tiny import tiny_bert, tiny_roberta

WORDS = ["Paris", "France", "Berlin", "Germany", "the", "capital", "of", "is", "tower", "river", "raven", "sat"]
WORDS += ["above", "Athens", "great", "terrible", "door"]
QUERY = "the capital of [MASK] is above the river"


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = {"bert": tiny_bert, "roberta": tiny_roberta}[request.param]
    return build(tmp_path_factory.mktemp("model") / request.param)


def sentences(rng: np.random.Generator, count: int) -> str:
    return " ".join(" ".join(rng.choice(WORDS, rng.integers(2, 7))) + "." for _ in range(count))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Corpus]:
    """Two corpora, the first of two segments with a deletion in each."""
    rng = np.random.default_rng(7)
    folder = tmp_path_factory.mktemp("corpora")
    first, second = (Corpus.create(folder / f"{name}.quoth", splitter="words:12") for name in ("one", "two"))
    for segment in "ab":
        first.add([Document(f"{segment}{i}", f"Title {i}" * (i % 2), sentences(rng, 3)) for i in range(4)])
    first.delete(["a1", "b2"])
    second.add([Document(f"c{i}", "Paris", sentences(rng, 2)) for i in range(3)])
    assert len(first.segments) == 2
    return [first, second]


@pytest.fixture(scope="module")
def npm(folder: Path, corpora: list[Corpus]) -> NPM:
    model = NPM.from_pretrained(str(folder), corpora)
    model.embed("fp32")
    return model


@pytest.fixture(scope="module")
def single(folder: Path, corpora: list[Corpus]) -> NPM:
    source = locate(str(folder), NPMConfig)
    source = replace(source, config=replace(source.config, num_masks=1))
    return NPM(TokenEncoder.load(source), corpora)


class Brute:
    """The tokens of passages, each (a, b, group, may start, may end, place), encoded one passage at a time."""

    def __init__(self, folder: Path, text: str, num_masks: int = 2) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.hf = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, add_pooling_layer=False).double().eval()
        self.q, self.r = self.blank(text, num_masks)

    def blank(self, text: str, num_masks: int = 2) -> tuple[Any, Any]:
        before, after = text.split("[MASK]")
        masks = [self.hf.mask_token_id] * num_masks
        head, tail = (self.hf(part, add_special_tokens=False)["input_ids"] for part in (before.rstrip(), after))
        ids = [self.hf.cls_token_id, *head, *masks, *tail, self.hf.sep_token_id]
        states = self.states(ids)
        at = ids.index(self.hf.mask_token_id)
        return states[at], states[at + num_masks - 1]

    def states(self, ids: list[int]) -> Any:
        import torch

        with torch.no_grad():
            return self.model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()

    def passages(self, corpora: list[Corpus], rows: Any = None) -> Iterator[list[tuple[Any, ...]]]:
        for number, corpus in enumerate(corpora):
            for passage in corpus.passages():
                if rows is None or (number, passage.row) in rows:
                    yield list(self._tokens(corpus.name, passage))

    def _tokens(self, name: str, passage: Any) -> Iterator[tuple[Any, ...]]:
        prefix = f"{passage.title}. " if passage.title else ""
        encoded = self.hf(prefix + passage.text, return_offsets_mapping=True)
        states = self.states(encoded["input_ids"])
        uncased = self.hf("A")["input_ids"] == self.hf("a")["input_ids"]
        words = [match.span() for match in re.finditer(r"\w+", passage.text)]
        tokens = list(zip(encoded["input_ids"], encoded["offset_mapping"], states, strict=True))[1:-1]
        for token, (first, last), c in tokens:
            start, end = first - len(prefix), last - len(prefix)
            if end <= 0:
                continue
            start += passage.text[start : start + 1] == " "
            group = passage.text[start:end].lower() if uncased else passage.text[start:end]
            scale = 1 / math.sqrt(len(c))
            place = (name, passage.document_id, passage.start + start, passage.start + end)
            yield (
                *(scale * self.q @ c, scale * self.r @ c, group, token),
                *(start < end and start in [s for s, _ in words], end in [e for _, e in words], place),
            )


@cache
def brute_passages(folder: Path, corpora: tuple[Corpus, ...], num_masks: int = 2) -> list[list[Any]]:
    return list(Brute(folder, QUERY, num_masks).passages(list(corpora)))


def counted(span: list[Any]) -> int:
    """The tokens of a phrase but for those that go on with a word."""
    count, in_word = 0, False
    for *_, starts, ends, _ in span:
        count += starts or not (ends or in_word)
        in_word = (starts or in_word) and not ends
    return count


def brute_fill(
    passages: list[list[Any]],
    k: int,
    combine: str,
    longest: int = 10,
    alpha: float = 0,
    banned: Any = (),
    restricted: bool = False,
) -> Any:
    """[(log score, {place: share of the probability})], best first."""
    tokens = [token for passage in passages for token in passage]
    kth_a, kth_b = (sorted((token[i] for token in tokens), reverse=True)[:k][-1] for i in (0, 1))
    spans = [
        (passage[i], passage[j], passage[i : j + 1])
        for passage in passages
        for i in range(len(passage))
        for j in range(i, min(len(passage), i + longest + 20))
        if counted(passage[i : j + 1]) <= longest
        if (passage[i][0] >= kth_a or passage[j][1] >= kth_b) and passage[i][4] and passage[j][5]
        if not any(token[3] in banned for token in passage[i : j + 1])
    ]
    firsts, lasts = {id(first) for first, _, _ in spans}, {id(last) for _, last, _ in spans}
    all_a = sum(math.exp(t[0]) for t in tokens if restricted or (t[0] >= kth_a and t[4]) or id(t) in firsts)
    all_b = sum(math.exp(t[1]) for t in tokens if restricted or (t[1] >= kth_b and t[5]) or id(t) in lasts)
    phrases: dict[Any, dict[Any, float]] = {}
    for first, last, span in spans:
        a, b = math.exp(first[0]), math.exp(last[1])
        score = {"sum": a + b, "joint": a * b, "softmax_sum": a / all_a + b / all_b}[combine] * len(span) ** alpha
        gaps = ["", *(" " * (later[6][2] > sooner[6][3]) for sooner, later in pairwise(span))]
        name = "".join(gap + token[2] for gap, token in zip(gaps, span, strict=True))
        phrases.setdefault(name, {})[(*first[6][:3], last[6][3])] = score
    total = sum(sum(places.values()) for places in phrases.values())
    ranked = sorted(phrases.values(), key=lambda places: -sum(places.values()))
    return [(math.log(sum(p.values())), {at: s / total for at, s in p.items()}) for p in ranked]


def assert_equal(found: list[Prediction], expected: list[Any], corpora: list[Corpus]) -> None:
    texts = {corpus.name: corpus for corpus in corpora}
    assert len(found) == len(expected)
    for prediction, (score, places) in zip(found, expected, strict=True):
        assert prediction.log_score == pytest.approx(score, rel=1e-4, abs=1e-4)
        assert prediction.probability == pytest.approx(sum(places.values()), rel=1e-4)
        shares = {(e.corpus, e.document_id, e.start, e.end): e.score for e in prediction.evidence}
        assert shares == pytest.approx(places, rel=1e-4)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        corpus, document, start, end = next(iter(shares))
        assert texts[corpus].document(document).text[start:end] == prediction.text


def clear_k(passages: list[list[Any]], wanted: int) -> int:
    """A k near the wanted one at which neither search is decided by rounding."""
    sims = [sorted((t[i] for p in passages for t in p), reverse=True) for i in (0, 1)]
    return next(k for k in range(wanted, len(sims[0])) if all(s[k - 1] - s[k] > 1e-4 for s in sims))


@pytest.mark.parametrize("combine", ["sum", "joint", "softmax_sum"])
@pytest.mark.parametrize("wanted", [3, 25])
def test_fill_equals_the_brute_force(npm: NPM, folder: Path, corpora: list[Corpus], combine: str, wanted: int) -> None:
    passages = brute_passages(folder, tuple(corpora))
    k = clear_k(passages, wanted)
    expected = brute_fill(passages, k, combine)
    found = npm.fill(QUERY, passages=None, k=k, combine=combine, top_k=len(expected) + 1, distinct=False)
    assert len(expected) > 5
    assert_equal(found, expected, corpora)


def test_options_equal_the_brute_force(npm: NPM, folder: Path, corpora: list[Corpus]) -> None:
    brute = Brute(folder, QUERY)
    passages = brute_passages(folder, tuple(corpora))
    k = clear_k(passages, 8)
    banned = set(brute.hf(" the", add_special_tokens=False)["input_ids"])
    expected = brute_fill(passages, k, "sum", longest=3, alpha=0.5, banned=banned)
    options: dict[str, Any] = {
        "passages": None,
        "k": k,
        "top_k": 1000,
        "distinct": False,
        "max_phrase_tokens": 3,
        "combine": "sum",
    }
    found = npm.fill(QUERY, length_exponent=0.5, banned_tokens=["the"], **options)
    assert_equal(found, expected, corpora)
    assert not any(re.search(r"(?<=.)\bthe\b", each.text) for each in found)


def test_of_phrases_that_overlap_the_best_is_listed(npm: NPM) -> None:
    every = npm.fill(QUERY, passages=5, top_k=20, distinct=False)
    found = npm.fill(QUERY, passages=5, top_k=5)
    kept: list[Any] = []
    for each in every:
        place = each.evidence[0]
        if not any(
            (place.corpus, place.document_id) == (other.corpus, other.document_id)
            and place.start < other.end
            and other.start < place.end
            for other in kept
        ):
            kept.append(place)
            if len(kept) <= 5 and each.text not in {other.text for other in found}:
                pytest.fail(f"{each.text!r} overlaps nothing better")
    assert [each.evidence[0] for each in found] == kept[:5]
    assert len(every) > len(kept)


def best_passages(folder: Path, corpora: list[Corpus], count: int) -> list[list[Any]]:
    scored = []
    for number, corpus in enumerate(corpora):
        rows, scores = corpus.bm25(QUERY.replace("[MASK]", ""), 50)
        scored += [(-score, number, row) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
    kept = {(number, row) for _, number, row in sorted(scored)[:count]}
    passages = list(Brute(folder, QUERY).passages(corpora, kept))
    assert len(passages) == count
    return passages


@pytest.mark.parametrize(("combine", "wanted"), [("joint", 10000), ("softmax_sum", 10000), ("softmax_sum", 6)])
def test_restricted_search_is_the_brute_force_of_those_passages(
    npm: NPM, folder: Path, corpora: list[Corpus], combine: str, wanted: int
) -> None:
    passages = best_passages(folder, corpora, 5)
    k = clear_k(passages, wanted) if wanted < 10000 else wanted
    expected = brute_fill(passages, k, combine, restricted=True)
    assert_equal(npm.fill(QUERY, passages=5, combine=combine, k=k, top_k=10000, distinct=False), expected, corpora)


@pytest.mark.parametrize("combine", ["sum", "joint"])
def test_hybrid_search_mixes_all_tokens_with_the_best_passages(
    npm: NPM, folder: Path, corpora: list[Corpus], combine: str
) -> None:
    found = npm.fill(QUERY, passages=4, passage_share=0.3, combine=combine, k=10000, top_k=10000, distinct=False)
    mixed: dict[Any, float] = {}
    for share, passages in (
        (0.7, brute_passages(folder, tuple(corpora))),
        (0.3, best_passages(folder, corpora, 4)),
    ):
        for _, places in brute_fill(passages, 10000, combine):
            for place, probability in places.items():
                mixed[place] = mixed.get(place, 0.0) + share * probability
    shares = {(e.corpus, e.document_id, e.start, e.end): e.score for each in found for e in each.evidence}
    assert shares == pytest.approx(mixed, rel=1e-4)
    for each in found:
        assert math.exp(each.log_score) == pytest.approx(each.probability, rel=1e-6)
    assert [each.probability for each in found] == sorted((each.probability for each in found), reverse=True)

    nearest = npm.fill(QUERY, passages=4, passage_share=0.3, combine=combine, k=1, top_k=10000, distinct=False)
    inside = npm.fill(QUERY, passages=4, combine=combine, top_k=10000, distinct=False)
    assert {e.passage for each in inside for e in each.evidence} <= {e.passage for p in nearest for e in p.evidence}
    assert {each.text for each in inside} <= {each.text for each in nearest}


def test_restricted_search_reads_stored_vectors_where_there_are_some(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    first, second = ([Document(f"{part}{i}", "Title", sentences(rng, 3)) for i in range(4)] for part in "ab")
    fresh, mixed = (Corpus.create(tmp_path / name, splitter="words:12") for name in ("fresh.quoth", "mixed.quoth"))
    model = NPM.from_pretrained(str(folder), mixed)
    for corpus in (fresh, mixed):
        corpus.add(first)
        corpus.delete(["a1"])
        if corpus is mixed:
            model.embed("fp32")
        corpus.add(second)
    encoded: list[str] = []
    encode = model.encoder.passages
    model.encoder.passages = lambda texts, titles: encoded.extend(texts) or encode(texts, titles)  # type: ignore
    options: dict[str, Any] = {"passages": 6, "top_k": 10000}
    for text in (QUERY, "the raven sat [MASK] the door"):
        expected = NPM.from_pretrained(str(folder), fresh).fill(text, **options)
        found = model.fill(text, **options)
        assert [each.log_score for each in found] == pytest.approx([each.log_score for each in expected], abs=1e-4)
        places = [{(e.document_id, e.start, e.end): e.score for e in each.evidence} for each in expected]
        assert {frozenset(p) for p in places} == {
            frozenset((e.document_id, e.start, e.end) for e in each.evidence) for each in found
        }
    searched = {row for text in (QUERY,) for row in mixed.bm25(text.replace("[MASK]", ""), 6)[0].tolist()}
    stored = {row for row in searched if row < mixed.segments[1].first_row}
    assert stored
    assert not {mixed.passage(row).text for row in stored} & set(encoded)
    assert set(encoded) <= {passage.text for passage in mixed.passages() if passage.document_id.startswith("b")}


def test_many_texts_are_answered_as_one_by_one(npm: NPM) -> None:
    texts = [QUERY, "the raven sat above the [MASK] door", "Paris is [MASK]."]
    for passages in (2, None):
        together = npm.fill(texts, passages=passages)
        for text, found in zip(texts, together, strict=True):
            alone = npm.fill(text, passages=passages)
            assert [each.text for each in found] == [each.text for each in alone]
            assert [each.log_score for each in found] == pytest.approx([each.log_score for each in alone], abs=1e-4)
            assert found[0].sequence == text.replace("[MASK]", found[0].text)
    assert npm.fill([]) == []


def test_ban_query_bans_the_texts_own_tokens(npm: NPM) -> None:
    for passages in (3, None):
        free = npm.fill(QUERY, passages=passages, top_k=1000, distinct=False)
        words = QUERY.replace("[MASK]", "").split()
        expected = npm.fill(QUERY, passages=passages, top_k=1000, distinct=False, banned_tokens=words)
        found = npm.fill([QUERY, "[MASK]"], passages=passages, top_k=1000, distinct=False, ban_query=True)
        assert [each.text for each in found[0]] == [each.text for each in expected]
        assert 0 < len(expected) < len(free)
        assert not {word for each in found[0] for word in each.text.lower().split()} & set(words)
        assert len(found[1]) == len(npm.fill("[MASK]", passages=passages, top_k=1000, distinct=False))


def test_stop_words_alone_are_no_answer(npm: NPM, single: NPM) -> None:
    stop = {"the", "of", "is", "above"}
    for model, options in ((npm, {"passages": 3}), (npm, {"passages": None, "k": 20}), (single, {"passages": 3})):
        free = model.fill(QUERY, top_k=10000, distinct=False, **options)
        found = model.fill(QUERY, top_k=10000, distinct=False, ban_stop_words=True, **options)
        kept = [each for each in free if not set(re.findall(r"\w+", each.text.lower())) <= stop]
        assert 0 < len(kept) < len(free)
        assert [each.text for each in found] == [each.text for each in kept]
        total = sum(each.probability for each in kept)
        assert [each.probability for each in found] == pytest.approx([each.probability / total for each in kept])


def test_a_single_token_may_be_a_part_of_a_word(single: NPM, folder: Path, corpora: list[Corpus], npm: NPM) -> None:
    text = "[MASK] and nevermore"
    passages = list(Brute(folder, text, num_masks=1).passages(corpora))
    expected: dict[str, float] = {}
    for token in (token for passage in passages for token in passage if token[2]):
        expected[token[2]] = expected.get(token[2], 0.0) + math.exp(token[0])
    single.embed("fp32")
    found = single.fill(text, passages=None, k=10000, top_k=10000, distinct=False, whole_words=False)
    whole = single.fill(text, passages=None, k=10000, top_k=10000, distinct=False)
    assert {each.text for each in whole} < {each.text for each in found}
    scores = {each.text: each.log_score for each in found}
    uncased = {text if text in expected else text.lower(): score for text, score in scores.items()}
    assert uncased == pytest.approx({text: math.log(score) for text, score in expected.items()}, abs=1e-4)
    with pytest.raises(InputError, match=r"whole_words is False; only a model that answers with one token"):
        npm.fill(text, whole_words=False)


def test_excluded_rows_are_never_searched(npm: NPM) -> None:
    for passages in (3, None):
        free = npm.fill(QUERY, passages=passages, top_k=1000, distinct=False)
        hidden = {each.passage for prediction in free[:3] for each in prediction.evidence}
        for exclude in (hidden, [hidden]):
            rest = npm.fill([QUERY], passages=passages, top_k=1000, distinct=False, exclude=exclude)[0]
            assert hidden.isdisjoint(each.passage for prediction in rest for each in prediction.evidence)
    with pytest.raises(InputError, match="exclude has 2 collections for 1 texts"):
        npm.fill([QUERY], exclude=[{1}, {2}])


def test_single_sums_over_a_tokens_hits(single: NPM, folder: Path, corpora: list[Corpus]) -> None:
    passages = brute_passages(folder, tuple(corpora), num_masks=1)
    k = clear_k(passages, 20)
    tokens = sorted((t for p in passages for t in p), key=lambda t: -t[0])[:k]
    expected: dict[Any, dict[Any, float]] = {}
    for token in tokens:
        if token[4] and token[5]:
            expected.setdefault(token[2], {})[token[6]] = math.exp(token[0])
    total = sum(sum(places.values()) for places in expected.values())
    ranked = sorted(expected.values(), key=lambda places: -sum(places.values()))
    wanted = [(math.log(sum(p.values())), {at: s / total for at, s in p.items()}) for p in ranked]
    single.embed("fp32")
    assert single.single
    assert_equal(single.fill(QUERY, passages=None, k=k, top_k=100, distinct=False), wanted, corpora)


@pytest.mark.parametrize("masks", [1, 2])
def test_classify_sums_over_the_labels_words(
    npm: NPM, single: NPM, folder: Path, corpora: list[Corpus], masks: int
) -> None:
    labels = {"place": ["tower", "door"], "country": ["France", "Germany", "nowhere"]}
    text = "the raven sat It was [MASK]."
    score = dict.fromkeys(labels, 0.0)
    brute = Brute(folder, text, num_masks=masks)
    for passage in brute.passages(corpora):
        where = {token[6][2]: token for token in passage if token[4]}, {t[6][3]: t for t in passage if t[5]}
        body = {c.name: c for c in corpora}[passage[0][6][0]].document(passage[0][6][1]).text
        for label, word in ((label, word) for label, words in labels.items() for word in words):
            ids = brute.hf(f" {word}", add_special_tokens=False)["input_ids"]
            wanted = [piece for i in ids if (piece := brute.hf.decode([i]).strip().removeprefix("##").lower())]
            for match in re.finditer(rf"\b{word}\b", body):
                a, b = where[0].get(match.start()), where[1].get(match.end())
                if not (a and b):
                    continue
                pieces = [body[t[6][2] : t[6][3]].lower() for t in passage[passage.index(a) : passage.index(b) + 1]]
                if pieces == wanted and (masks == 2 or a is b):
                    score[label] += math.exp((a[0] + (b[1] if masks == 2 else 0)) / 5)
    model = npm if masks == 2 else single
    model.embed("fp32")
    if masks == 1 and not all(score.values()):
        labels = {label: words for label, words in labels.items() if score[label]}
        if not labels:
            return
    found = {each.text: each for each in model.classify("the raven sat", labels, passages=None)}
    whole = sum(score[label] for label in labels)
    for label in labels:
        assert found[label].probability == pytest.approx(score[label] / whole, rel=1e-4)


def test_ask_fills_the_template(npm: NPM) -> None:
    asked = npm.ask("What is the capital?", passages=5)
    filled = npm.fill(["Q: What is the capital?\nA: [MASK]."], passages=5, searched=["What is the capital?"])[0]
    assert [replace(each, sequence="") for each in filled] == asked
    theirs = {"answer", "score", "start", "end"}
    assert set(asked[0].to_dict()) == theirs | {
        *("text", "probability", "log_score", "status", "abstained", "evidence", "num_places")
    }
    assert [each[0].text for each in npm.ask(["What is the capital?"], passages=5)] == [asked[0].text]
    assert npm.ask("tower", template="the {question} of [MASK]")[0].text


def test_search_in_every_mode(npm: NPM) -> None:
    for mode in ("bm25", "dense", "hybrid"):
        hits = npm.search("the capital of France", k=4, mode=mode)
        assert len(hits) == 4
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    with pytest.raises(InputError, match="mode is 'x'; it must be one of auto, bm25, dense, hybrid"):
        npm.search("a", mode="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="k is 0"):
        npm.search("a", k=0)


def test_equal_passages_of_two_corpora_stay_two(tmp_path: Path, folder: Path) -> None:
    twins = [Corpus.create(tmp_path / f"{name}.quoth") for name in "ab"]
    for corpus in twins:
        corpus.add([Document("d", "T", "the capital of France is Paris")])
    npm = NPM.from_pretrained(str(folder), twins)
    npm.embed("fp32")
    assert len(npm.search("capital of France", mode="hybrid")) == 2
    evidence = npm.fill("the capital of France is [MASK]", passages=5)[0].evidence
    assert [each.corpus for each in evidence] == ["a", "b"]
    assert evidence[0].score == pytest.approx(evidence[1].score)


def test_vectors_of_tokens_and_queries(npm: NPM, corpora: list[Corpus]) -> None:
    passages = list(corpora[0].passages())[-2:]
    for passage, found in zip(passages, npm.token_vectors(passages), strict=True):
        assert found.vectors_TD.shape == (len(found.ids_T), 32)
        assert found.offsets_T2.shape == (len(found.ids_T), 2)
        assert found.offsets_T2.min() == passage.start
        assert found.offsets_T2.max() == passage.end
    q_start_D, q_end_D = npm.query_vectors(QUERY)
    assert q_start_D.shape == q_end_D.shape == (32,)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("nothing", {}, r"no \[MASK\] in 'nothing'"),
        ("[MASK] " * 9, {}, "9 blanks; give at most 8"),
        ("[MASK] river", {"k": 0}, "k is 0; it must be 1 or more"),
        ("[MASK] river", {"passages": 0}, "passages is 0; it must be 1 or more"),
        ("[MASK] river", {"top_k": 0}, "top_k is 0"),
        ("[MASK] river", {"combine": "max"}, "combine is 'max'; it must be one of sum, joint, softmax_sum"),
        ("[MASK] river", {"temperature": 0.0}, "temperature is 0.0"),
        (
            "[MASK] river",
            {"passage_share": 1.0},
            "passage_share is 1.0; it must be 0 or more and below 1; try",
        ),
        ("[MASK] river", {"passage_share": 0.3, "passages": None}, "passage_share is 0.3 and passages all; say which"),
        ("[MASK] river", {"passage_share": 0.3, "passages": 0}, "passages is 0; it must be 1 or more"),
        ("[MASK] river", {"max_phrase_tokens": 0}, "max_phrase_tokens is 0"),
    ],
)
def test_mistakes_are_one_clear_line(npm: NPM, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        npm.fill(text, **options)
    assert "\n" not in str(error.value)


def test_mistakes_of_ask_and_classify(npm: NPM) -> None:
    with pytest.raises(UserError, match=r"template is 'x \[MASK\]'; it must be a text, with \{question\}"):
        npm.ask("q", template="x [MASK]")
    with pytest.raises(UserError, match=r"template is 'x \[MASK\]'; it must be a text, with \{text\}"):
        npm.classify("q", {"a": ["b"]}, template="x [MASK]")
    with pytest.raises(UserError, match=r"no \[MASK\]"):
        npm.ask("q", template="{question}")
    with pytest.raises(UserError, match="label 'good' has no word"):
        npm.classify("q", {"good": [" "], "bad": ["x"]})
    with pytest.raises(UserError, match=r"label 'good': none of its words \(zebra\) occurs in the corpus"):
        npm.classify("the raven", {"good": ["zebra"], "bad": ["raven"]}, passages=None)
    with pytest.raises(UserError, match="labels is empty"):
        npm.classify("q", {})


def test_nothing_to_search(folder: Path, tmp_path: Path) -> None:
    empty = Corpus.create(tmp_path / "empty.quoth")
    for corpus, named in ((empty, "empty.quoth"), (None, "no corpus given")):
        npm = NPM.from_pretrained(str(folder), corpus)
        for passages in (3, None):
            with pytest.raises(EmptyCorpusError, match=named):
                npm.fill("the [MASK]", passages=passages)
    empty.add([Document("d", "", "the capital of France")])
    npm = NPM.from_pretrained(str(folder), empty)
    assert npm.fill("zebra [MASK]") == []
    with pytest.raises(InputError, match=r"1 of 1 segments have no vectors of .*; `quoth embed .*passages=3"):
        npm.fill("zebra [MASK]", passages=None)


def test_a_question_is_searched_by_its_own_words(folder: Path, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "q.quoth")
    corpus.add([Document("q", "", "Q is a letter, a letter, Q, A."), Document("p", "", "Paris is the capital.")])
    npm = NPM.from_pretrained(str(folder), corpus)
    for template in ("Q: {question}\nA: [MASK].", "A Q, a letter Q: {question} letter A [MASK]"):
        found = npm.ask("What is the capital?", template=template, passages=1)
        assert {place.document_id for each in found for place in each.evidence} == {"p"}
    with pytest.raises(InputError, match="searched has 2 entries for 1 texts"):
        npm.fill("the [MASK]", searched=["a", "b"])
