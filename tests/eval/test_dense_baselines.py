"""Contriever's and DPR's way of search against transformers' classes called directly, on tiny random weights."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import (
    AutoModel,
    AutoTokenizer,
    DPRConfig,
    DPRContextEncoder,
    DPRQuestionEncoder,
    DPRReader,
    PreTrainedModel,
)

from quoth import Corpus, Document
from quoth.cli.main import main
from quoth.corpus.bm25 import bm25
from quoth.errors import EmptyCorpusError, InputError, ModelNotFoundError
from quoth_eval.dense import PUBLISHED, DenseBaseline, DenseSearch
from tiny import SHAPE, TEXT, tiny_bert

QUESTIONS = ["Where is Paris?", "what stands above the river", ""]


@pytest.fixture
def corpora(tmp_path: Path) -> list[Corpus]:
    made = [Corpus.create(tmp_path / f"{name}.quoth") for name in ("one", "two")]
    made[0].add([Document(f"a{i}", "The raven" * (i % 2), text) for i, text in enumerate(TEXT[:4])])
    made[0].delete(["a2"])
    made[1].add([Document("long", "Paris", "the river runs east " * 28), Document("b", "", TEXT[5])])
    return made


def tiny_dpr(folder: Path, kind: type[PreTrainedModel], seed: int) -> Path:
    tiny_bert(folder)
    torch.manual_seed(seed)
    vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
    kind(DPRConfig(vocab_size=vocabulary, **SHAPE)).save_pretrained(folder)
    return folder


def assert_same(search: DenseSearch, vectors_PD: NDArray[np.floating], queries_QD: NDArray[np.floating]) -> None:
    """The passages in the order of their dot products with each query."""
    for question, q_D in zip(QUESTIONS, queries_QD, strict=True):
        scores_P = vectors_PD @ q_D
        found = search.search(question, 100)
        assert [each.score for each in found] == pytest.approx(sorted(scores_P, reverse=True), abs=1e-4)
        order = [search.search(question, k)[-1].passage.text for k in range(1, len(found) + 1)]
        assert order == [each.passage.text for each in found]


def passages(corpora: list[Corpus]) -> list[tuple[str, str]]:
    return [(each.title, each.text) for corpus in corpora for each in corpus.passages()]


def titled(corpora: list[Corpus]) -> list[str]:
    return [f"{title} {text}" if title else text for title, text in passages(corpora)]


def last_states(folder: str, texts: Iterable[str]) -> list[NDArray[np.float64]]:
    """The last states of each text's tokens: [T, D]."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    inputs = (tokenizer(each, return_tensors="pt", truncation=True, max_length=256) for each in texts)
    with torch.no_grad():
        return [model(**each).last_hidden_state[0].double().numpy() for each in inputs]


def test_contriever_is_the_mean_of_the_states_of_title_and_text(corpora: list[Corpus], tmp_path: Path) -> None:
    folder = str(tiny_bert(tmp_path / "contriever"))
    vectors_PD, queries_QD = (
        np.stack([states_TD.mean(axis=0) for states_TD in last_states(folder, texts)])
        for texts in (titled(corpora), QUESTIONS)
    )
    told: list[tuple[int, int]] = []
    search = DenseSearch(folder, corpora, progress=lambda done, of: told.append((done, of)))
    assert_same(search, vectors_PD, queries_QD)
    assert told[-1] == (len(vectors_PD), len(vectors_PD))


def test_dpr_has_an_encoder_for_passages_with_their_titles_and_one_for_questions(
    corpora: list[Corpus], tmp_path: Path
) -> None:
    folders = [tiny_dpr(tmp_path / "p", DPRContextEncoder, 1), tiny_dpr(tmp_path / "q", DPRQuestionEncoder, 2)]
    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    context, asked = DPRContextEncoder.from_pretrained(folders[0]), DPRQuestionEncoder.from_pretrained(folders[1])
    options = {"return_tensors": "pt", "truncation": True, "max_length": 256}
    with torch.no_grad():
        read = [context(**tokenizer(title, text, **options)).pooler_output[0] for title, text in passages(corpora)]
        queries = [asked(**tokenizer(each, **options)).pooler_output[0] for each in QUESTIONS]
    search = DenseSearch("+".join(map(str, folders)), corpora)
    assert_same(search, torch.stack(read).numpy(), torch.stack(queries).numpy())


def test_names_are_published_ones_or_one_or_two_encoders() -> None:
    assert (
        DenseBaseline.named("contriever")
        == PUBLISHED["contriever"]
        == DenseBaseline(*["facebook/contriever"] * 2, False)
    )
    assert DenseBaseline.named("dpr").title_apart
    assert DenseBaseline.named("a/b") == DenseBaseline("a/b", "a/b", False)
    assert DenseBaseline.named("a/b+c") == DenseBaseline("a/b", "c", True)
    for name in ("", "+a", "a+"):
        with pytest.raises(InputError, match=r"dense baseline .* is not complete; name contriever, dpr, spar-wiki, "):
            DenseBaseline.named(name)


def test_what_cannot_be_loaded_is_named(
    corpora: list[Corpus], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelNotFoundError, match=r"model '.*none' cannot be loaded: .*; name a hub id, or"):
        DenseSearch(str(tmp_path / "none"), corpora)
    tiny_dpr(tmp_path / "reader", DPRReader, 1)
    with pytest.raises(ModelNotFoundError, match=r"model '.*reader' is a DPRReader; only DPRCon"):
        DenseSearch(str(tmp_path / "reader"), corpora)
    with pytest.raises(EmptyCorpusError, match="no passage to search"):
        DenseSearch("dpr", [Corpus.create(tmp_path / "empty.quoth")])
    (tmp_path / "open_qa").mkdir()
    (tmp_path / "open_qa" / "nq.test.tsv").write_text("what is the capital of france\t['Paris']\n", encoding="utf-8")
    asked = ["--data", str(tmp_path), "--corpus", str(corpora[0].path), "--system", f"dense:{tmp_path / 'none'}"]
    assert main(["eval", "nq", *asked]) != 0
    assert "cannot be loaded" in capsys.readouterr().err


def test_mu_adds_that_much_of_bm25s_scores(corpora: list[Corpus], tmp_path: Path) -> None:
    dense = DenseSearch(str(tiny_bert(tmp_path / "contriever")), corpora)
    for question in QUESTIONS:
        scores = {(hit.passage.document_id, hit.passage.start): hit.score for hit in dense.search(question, 100)}
        for mu in (0.0, 0.7, 100.0):
            expected = dict(scores)
            for hit in bm25(corpora, question, 100):
                expected[hit.passage.document_id, hit.passage.start] += mu * hit.score
            found = dense.adding(mu).search(question, 100)
            assert [hit.score for hit in found] == pytest.approx(sorted(expected.values(), reverse=True), abs=1e-4)
            for hit in found:
                assert hit.score == pytest.approx(expected[hit.passage.document_id, hit.passage.start], abs=1e-4)


def test_spar_adds_the_first_states_of_a_lexical_model(
    corpora: list[Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = str(tiny_bert(tmp_path / "base")), str(tiny_bert(tmp_path / "lexical", seed=5))
    monkeypatch.setitem(PUBLISHED, "spar-tiny", DenseBaseline(other, other, False, first_state=True))
    assert PUBLISHED["spar-wiki"].first_state
    lexical_PD, queries_QD = (
        np.stack([states_TD[0] for states_TD in last_states(other, texts)]) for texts in (titled(corpora), QUESTIONS)
    )
    dense = DenseSearch(folder, corpora)
    for question, q_D in zip(QUESTIONS, queries_QD, strict=True):
        scores = {hit.passage.text: hit.score for hit in dense.search(question, 100)}
        added = dict(zip((text for _, text in passages(corpora)), lexical_PD @ q_D, strict=True))
        for mu in (0.0, 0.7):
            found = dense.adding(mu, "spar-tiny").search(question, 100)
            expected = {text: score + mu * added[text] for text, score in scores.items()}
            assert {hit.passage.text: hit.score for hit in found} == pytest.approx(expected, abs=1e-4)
            assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert dense.adding(1.0, "spar-tiny").adding(0.0).search("Paris", 1) == dense.search("Paris", 1)


def test_eval_run_asks_dense_baselines_and_sweeps_mu(
    corpora: list[Corpus], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "open_qa").mkdir()
    (tmp_path / "open_qa" / "nq.dev.tsv").write_text("what is the capital of france\t['Paris']\n", encoding="utf-8")
    folder = tiny_bert(tmp_path / "contriever")
    asked = ["--data", str(tmp_path), "--corpus", str(corpora[0].path), "--corpus", str(corpora[1].path)]
    assert main(["eval", "nq-dev", *asked, "--system", f"dense:{folder}", "--sweep", "mu=0,1000", "--json"]) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    assert [each["name"] for each in systems] == [f"dense:{folder},mu=0", f"dense:{folder},mu=1000"]
    assert systems[1]["answer@1"]["mean"] == 1
    spar = f"dense:{folder},lexical={folder},mu=0.5"
    assert main(["eval", "nq-dev", *asked, "--system", spar, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"][0]["name"] == spar
    assert "exact_match" not in systems[0]
