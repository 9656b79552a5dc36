"""Hugging Face's language models as baselines: likelihoods and greedy answers against plain loops over transformers'
own models; calibration by hand; the options on the command line."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from asking import given, repeated, written
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
)

from quoth import NPM, Corpus, Document
from quoth.cli.main import main
from quoth.errors import InputError, ModelNotFoundError
from quoth.npm.twin import MaskedModel
from quoth.records import Evidence, Prediction
from quoth.registry import SYSTEMS
from quoth.text.tokenizer import MASK
from quoth_eval import language_models
from quoth_eval.harness import read_run
from quoth_eval.language_models import LanguageModel
from quoth_eval.systems import completes, filling, parse_system
from quoth_eval.task import Answer, Example
from quoth_eval.tasks import find
from quoth_eval.tasks.closed import ClosedOptions, batch_calibrated, labels, likely_labels, pmi
from tiny import TEXT, random_model, tiny_bert, tiny_npm, tiny_roberta, tiny_sentencepiece

WORDS = ("great", "terrible", "tower", "unheardof")
TEXTS = [
    f"The café was open. It was {MASK}.",
    f"It was {MASK}.",
    f"The river runs east, right? {MASK}, the tower was built.",
    f"{' '.join(TEXT)} It was {MASK}.",
]


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal LM with byte-level BPE that takes 40 tokens; its answers end at <s>."""
    folder = tiny_roberta(tmp_path_factory.mktemp("gpt"))
    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    (folder / "config.json").unlink()
    config = GPT2Config(
        vocab_size=size, n_embd=32, n_layer=2, n_head=2, n_positions=40, bos_token_id=0, eos_token_id=2, pad_token_id=1
    )
    random_model(GPT2LMHeadModel, config, 1).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sequence-to-sequence LM with a SentencePiece-like tokenizer that knows T5's sentinels."""
    folder = tiny_sentencepiece(tmp_path_factory.mktemp("t5"))
    (folder / "config.json").unlink()
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    for number in (0, 1):
        at = tokenizer["added_tokens"][-1]["id"] + 1
        tokenizer["added_tokens"].append({**tokenizer["added_tokens"][-1], "id": at, "content": f"<extra_id_{number}>"})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = T5Config(
        vocab_size=at + 1, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2,
        decoder_start_token_id=1, pad_token_id=1, eos_token_id=2,
    )  # fmt: skip
    random_model(T5ForConditionalGeneration, config, 1).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_bert(tmp_path_factory.mktemp("bert"))
    config = BertConfig(**{**json.loads((folder / "config.json").read_text()), "max_position_embeddings": 32})
    random_model(BertForMaskedLM, config, 1).save_pretrained(folder)
    return folder


def followed(next_logits: Any, prompt: list[int], words: list[int]) -> float:
    """log p of words after a prompt, one forward pass per word."""
    total = 0.0
    for at, word in enumerate(words):
        total += float(next_logits([*prompt, *words[:at]]).log_softmax(-1)[word])
    return total


def test_a_causal_lm_scores_words_after_the_text_up_to_the_blank(gpt: Path) -> None:
    lm = LanguageModel.from_pretrained(str(gpt))
    model = AutoModelForCausalLM.from_pretrained(gpt)
    scores_BW = lm.word_scores(TEXTS, WORDS, {})
    for text, scores_W in zip(TEXTS, scores_BW, strict=True):
        left, right = text.split(f" {MASK}")
        room, follows = 40, right if "tower" in right else ""
        tails = [lm.tokenizer(f" {word}{follows}", add_special_tokens=False)["input_ids"] for word in WORDS]
        start = lm.tokenizer(left, add_special_tokens=False)["input_ids"]
        start = start[-(room - 1 - max(map(len, tails))) :]
        with torch.inference_mode():
            expected = [
                followed(lambda ids: model(torch.tensor([ids])).logits[0, -1], [0, *start], tail) for tail in tails
            ]
        assert scores_W == pytest.approx(expected, abs=1e-4)
    assert len({len(lm.tokenizer(f" {word}")["input_ids"]) for word in WORDS}) > 1


@pytest.mark.parametrize("sentinel", [False, True])
def test_a_seq2seq_lm_scores_words_in_its_decoder(t5: Path, sentinel: bool) -> None:
    lm = LanguageModel.from_pretrained(str(t5))
    model = AutoModelForSeq2SeqLM.from_pretrained(t5)
    mark = lm.tokenizer.convert_tokens_to_ids("<extra_id_0>")
    assert mark != lm.tokenizer.unk_token_id
    scores_BW = lm.word_scores(TEXTS[:3], WORDS, {"sentinel": sentinel})
    for text, scores_W in zip(TEXTS, scores_BW, strict=False):
        left, right = text.split(f" {MASK}")
        pieces = [lm.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (left, right)]
        source = [0, *pieces[0], *([mark, *pieces[1]] if sentinel else []), 2]
        follows = right if "tower" in right and not sentinel else ""
        prompt = [1, 0, *([mark] if sentinel else [])]
        with torch.inference_mode():
            expected = [
                followed(
                    lambda ids, source=source: model(
                        input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([ids])
                    ).logits[0, -1],
                    prompt,
                    lm.tokenizer(word + follows, add_special_tokens=False)["input_ids"],
                )
                for word in WORDS
            ]
        assert scores_W == pytest.approx(expected, abs=1e-4)


def at_masks(model: Any, tokenizer: Any, text: str, count: int) -> Any:
    """The log-probabilities of the vocabulary at each of this many masks in the blank."""
    filled = tokenizer(text.replace(MASK, " ".join(["[MASK]"] * count)), return_tensors="pt")
    at = (filled["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
    with torch.inference_mode():
        return model(**filled).logits[0, at].log_softmax(-1)


def test_a_masked_lm_scores_words_at_as_many_masks_as_they_have_tokens(bert: Path) -> None:
    mlm = MaskedModel.from_pretrained(str(bert))
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(bert), mlm.tokenizer
    words = ("great", "terrible", "towers", "Ω")
    scores_BW = mlm.word_scores(TEXTS, words, {})
    for text, scores_W in zip(TEXTS[:3], scores_BW, strict=False):
        for word, score in zip(words[:3], scores_W, strict=False):
            ids = tokenizer(word, add_special_tokens=False)["input_ids"]
            log_p = at_masks(model, tokenizer, text, len(ids))
            assert score == pytest.approx(sum(float(log_p[n, id]) for n, id in enumerate(ids)), abs=1e-4)
    assert np.isfinite(scores_BW[3, :3]).all()  # cut to what is around the blank
    assert np.isneginf(scores_BW[:, 3]).all()  # not in the vocabulary
    single = mlm.word_scores(TEXTS, words, {"masks": 1})
    assert len(tokenizer(words[2], add_special_tokens=False)["input_ids"]) > 1
    assert np.isneginf(single[:, 2]).all()
    assert single[:, 0] == pytest.approx(scores_BW[:, 0])


def greedy(
    next_logits: Any, prompt: list[int], ends: Sequence[int], tokenizer: Any, most: int
) -> tuple[str, float, int]:
    """Greedy decoding by hand: the text, its log-likelihood, its number of tokens."""
    made, score = list[int](), 0.0
    while len(made) < most:
        log_p = next_logits([*prompt, *made]).log_softmax(-1)
        made.append(int(log_p.argmax()))
        score += float(log_p.max())
        if made[-1] in ends or "\n" in tokenizer.decode(made[-1:]):
            break
    return tokenizer.decode(made, skip_special_tokens=True).partition("\n")[0].strip(), score, len(made)


@pytest.mark.parametrize("break_line", [False, True])
def test_answers_are_those_of_greedy_decoding(gpt: Path, break_line: bool) -> None:
    lm = LanguageModel.from_pretrained(str(gpt))
    (line_break,) = lm.tokenizer("\n", add_special_tokens=False)["input_ids"]
    if break_line:  # likely from the 20th token on
        with torch.inference_mode():
            lm.model.transformer.wpe.weight[20:] += 9 * lm.model.lm_head.weight[line_break]
    texts = [f"Q: {question}\nA: {MASK}." for question in ("what river", "It was the bust of Pallas", "why")]
    lengths = set[int]()
    for text, [found] in zip(texts, lm.fill(texts, max_new_tokens=9), strict=True):
        prompt = [0, *lm.tokenizer(text.split(f" {MASK}")[0], add_special_tokens=False)["input_ids"]]
        with torch.inference_mode():
            said, score, length = greedy(
                lambda ids: lm.model(torch.tensor([ids])).logits[0, -1], prompt[-31:], [2], lm.tokenizer, 9
            )
        assert found.text == said
        assert (found.log_score, found.probability) == pytest.approx((score, math.exp(score)), abs=1e-4)
        lengths.add(length)
    assert (min(lengths) < 9) == break_line


@pytest.mark.parametrize("sentinel", [False, True])
def test_a_seq2seq_lm_answers_in_its_decoder(t5: Path, sentinel: bool) -> None:
    lm = LanguageModel.from_pretrained(str(t5))
    marks = lm.tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
    texts = [f"Q: what is the capital of France\nA: {MASK}.", f"Q: who\nA: {MASK}."]
    for text, [found] in zip(texts, lm.fill(texts, sentinel=sentinel, max_new_tokens=6), strict=True):
        left, right = text.split(f" {MASK}")
        pieces = [lm.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (left, right)]
        source = torch.tensor([[0, *pieces[0], *([marks[0], *pieces[1]] if sentinel else []), 2]])
        with torch.inference_mode():
            said, score, _ = greedy(
                lambda ids, source=source: lm.model(input_ids=source, decoder_input_ids=torch.tensor([ids])).logits[
                    0, -1
                ],
                [1, 0, *marks[:1]] if sentinel else [1, 0],
                [2, marks[1]],
                lm.tokenizer,
                6,
            )
        assert found.text == said
        assert found.log_score == pytest.approx(score, abs=1e-4)


def test_bm25s_passages_are_before_the_question_the_best_last(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(
        [Document("1", "", "The\nSeine flows."), Document("2", "France", "Paris by the Seine [MASK] flows, flows.")]
    )

    class Echo:
        corpora = (corpus,)
        seen: list[str]

        def fill(self, texts: Sequence[str], top_k: int) -> list[list[Prediction]]:
            self.seen = list(texts)
            return [[Prediction("Paris", 0.0, 1.0, ())] for _ in texts]

    model = Echo()
    asked = [Example("1", " what flows in Paris ", ("Seine",), None)]
    (answer,) = completes(model, 20, {"passages": 2})(asked)
    assert model.seen == [
        f"The Seine flows.\n\nFrance. Paris by the Seine flows, flows.\n\nQ: what flows in Paris\nA: {MASK}."
    ]
    assert [passage.document_id for passage in answer.passages] == ["2", "1"]
    (answer,) = completes(model, 20, {"template": f"{{question}}? {MASK}"})(asked)
    assert (model.seen, answer.passages) == ([f"what flows in Paris? {MASK}"], [])


def test_a_masked_lm_fills_a_blank_after_bm25s_best_passages_but_the_blanks_own(bert: Path, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(
        [
            Document("own", "", "The tower was built in France."),
            Document("best", "Tower", "It [MASK] was <mask> built, the tower."),
            Document("next", "", "A tower by the river."),
            Document("far", "", "Coffee."),
        ]
    )
    (own,) = (passage.row for passage in corpus.passages() if passage.document_id == "own")
    example = Example("1", f"The tower was built in {MASK}.", ("France",), None, hidden=frozenset({own}))
    best, after = "Tower. It was built, the tower.", "A tower by the river."
    model, mlm = AutoModelForMaskedLM.from_pretrained(bert), MaskedModel.from_pretrained(str(bert), [corpus])
    spec = find("cloze")
    for passages, shown in ((0, ""), (1, best), (2, f"{after} {best}")):
        asked = given(tmp_path, corpus, opens=mlm)
        (answer,) = filling(asked)(f"mlm:{bert}", {"passages": passages})([example])
        log_p_1V = at_masks(model, mlm.tokenizer, f"{shown} {example.text}", 1)
        found = answer.predictions or ()
        for each in found:
            tokens = mlm.tokenizer.convert_tokens_to_ids([each.text, f"##{each.text}"])  # "##北" is a word as well
            assert min(abs(each.log_score - float(log_p_1V[0, token])) for token in tokens) < 1e-4
        assert len(found) == 5
    assert parse_system(f"mlm:{bert},passages=2,masks=2", spec).options == {"passages": 2, "masks": 2}
    assert parse_system(f"mlm:{bert}", spec, {"passages": "all", "read": 0}).options == {}  # of all systems' options
    for wrong in ("passages=all", "passages=-1"):
        with pytest.raises(InputError, match="passages"):
            parse_system(f"mlm:{bert},{wrong}", spec)
    for given_to_all in ({"passages": 2.5}, {"masks": 0}):
        with pytest.raises(InputError, match="must be"):
            parse_system(f"mlm:{bert}", spec, given_to_all)


class Fixed:
    """Words' probabilities by text."""

    def word_scores(self, texts: Sequence[str], words: Sequence[str], options: Any) -> np.ndarray[Any, Any]:
        known = {"a It was": {"good": 0.2, "fine": 0.1, "bad": 0.1}, "It was": {"good": 0.5, "fine": 0.1, "bad": 0.05}}
        return np.array([[math.log(known[text.split(f" {MASK}")[0]][word]) for word in words] for text in texts])


def test_a_labels_score_sums_its_words_and_pmi_takes_away_that_of_the_template() -> None:
    system = likely_labels(Fixed(), {"1": ("good", "fine"), "0": ("bad",)})
    asked: list[Example[None]] = [Example("1", f"a It was {MASK}.", ("0",), None)]
    ((first, second),) = (answer.predictions or () for answer in system(asked))
    assert (first.text, first.log_score, second.log_score) == (
        "1",
        pytest.approx(math.log(0.3)),
        pytest.approx(math.log(0.1)),
    )
    assert first.probability == pytest.approx(0.75)
    ((first, second),) = (answer.predictions or () for answer in pmi(system, f"It was {MASK}.")(asked))
    # log 0.1/0.05 = log 2 against log 0.3/0.6 = -log 2.
    assert (first.text, first.log_score, second.log_score) == (
        "0",
        pytest.approx(math.log(2)),
        pytest.approx(-math.log(2)),
    )
    assert first.probability == pytest.approx(0.8)


def test_what_a_system_prefers_in_a_batch_of_texts_is_taken_away() -> None:
    system = likely_labels(Fixed(), {"1": ("good", "fine"), "0": ("bad",)})
    asked: list[Example[None]] = [Example(text, f"{text}It was {MASK}.", (), None) for text in ("a ", "")]
    given = [answer.predictions or () for answer in batch_calibrated(system, asked)(asked)]
    mean = {"1": (0.3 / 0.4 + 0.6 / 0.65) / 2, "0": (0.1 / 0.4 + 0.05 / 0.65) / 2}
    expected = [{"1": math.log(0.3 / mean["1"]), "0": math.log(0.1 / mean["0"])}]
    expected += [{"1": math.log(0.6 / mean["1"]), "0": math.log(0.05 / mean["0"])}]
    assert [{each.text: each.log_score for each in both} for both in given] == [
        pytest.approx(each) for each in expected
    ]
    assert [both[0].text for both in given] == ["0", "1"]


class Listening:
    """Remembers the texts that it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def word_scores(self, texts: Sequence[str], words: Sequence[str], options: Any) -> np.ndarray[Any, Any]:
        self.asked += texts
        return np.zeros((len(texts), len(words)))


def test_the_texts_of_batch_calibration_are_drawn_though_a_file_lists_one_class_after_another(tmp_path: Path) -> None:
    (tmp_path / "sst2").mkdir()
    lines = [f"__label__{5 if n < 400 else 1}\t{'Great' if n < 400 else 'Awful'} {n}\n" for n in range(800)]
    (tmp_path / "sst2/test.tsv").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "sst2/verbalizers.txt").write_text("terrible, bust\ngreat, tower\n", encoding="utf-8")
    priors, corpus = [], Corpus.create(tmp_path / "c.quoth")
    for limit, seed, number in ((None, 0, 256), (300, 0, 256), (100, 0, 100), (None, 1, 256)):
        model = Listening()
        asked = given(tmp_path, corpus, data=tmp_path, opens=model, limit=limit, seed=seed)
        prepared = find("sst2").make(asked, ClosedOptions())
        prepared.asks("m", {"calibration": "batch"})(prepared.task.examples[:1])
        assert len(model.asked) == 1 + number
        priors.append(model.asked[1:])
    every, some, few, other = priors
    assert 90 < sum("Great" in text for text in every) < 166
    assert every == some
    assert every[:100] == few
    assert every != other


def test_batch_calibration_needs_a_share_for_every_label() -> None:
    def system(examples: Sequence[Example[Any]]) -> list[Answer]:
        return [Answer([Prediction("0", 0.0, 1.0, ()), Prediction("1", -math.inf, 0.0, ())]) for _ in examples]

    asked: list[Example[None]] = [Example("1", "text", (), None)]
    with pytest.raises(InputError, match="calibration=batch: label 1 has no share of 1 texts; use --set scoring=all"):
        batch_calibrated(system, asked)(asked)


def test_pmi_keeps_evidence_and_needs_a_score_for_every_label() -> None:
    place = Evidence("d", "", 0, 0, 3, "bad", 1.0)

    def system(examples: Sequence[Example[Any]]) -> list[Answer]:
        low = -math.inf if examples[0].text == "none" else -1.0
        return [Answer([Prediction("0", 0.0, 1.0, (place,)), Prediction("1", low, 0.0, ())]) for _ in examples]

    (answer,) = pmi(system, "some")([Example("1", "text", (), None)])
    assert [(each.text, each.log_score, each.evidence) for each in answer.predictions or ()] == [
        ("0", 0.0, (place,)),
        ("1", 0.0, ()),
    ]
    with pytest.raises(InputError, match="label 1 has no score for 'none'; use --set scoring=all"):
        pmi(system, "none")([Example("1", "text", (), None)])


def test_a_label_without_a_known_word_is_an_error(bert: Path) -> None:
    system = likely_labels(MaskedModel.from_pretrained(str(bert)), {"1": ("great",), "0": ("Ω",)})
    with pytest.raises(InputError, match="label 0: the model knows none of its words"):
        system([Example("1", TEXTS[0], (), None)])


def test_batches_do_not_change_scores(gpt: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = LanguageModel.from_pretrained(str(gpt)), MaskedModel.from_pretrained(str(bert))
    together = [model.word_scores(TEXTS, WORDS[:3], {}) for model in models]
    monkeypatch.setattr(language_models, "LOGITS_PER_BATCH", 1)
    for model, scores_BW in zip(models, together, strict=True):
        assert model.word_scores(TEXTS, WORDS[:3], {}) == pytest.approx(scores_BW, abs=1e-4)


def test_models_of_another_kind_are_refused(gpt: Path, bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"is a BertForMaskedLM, which generates nothing; use mlm:"):
        LanguageModel.from_pretrained(str(bert))
    with pytest.raises(ModelNotFoundError, match="cannot be loaded"):
        MaskedModel.from_pretrained(str(gpt))
    with pytest.raises(ModelNotFoundError, match=r"lacks .* of its weights"):
        MaskedModel.from_pretrained(str(tiny_bert(tmp_path / "encoder")))
    with pytest.raises(InputError, match="sentinel=true is for models such as T5"):
        LanguageModel.from_pretrained(str(gpt)).word_scores(TEXTS[:1], WORDS, {"sentinel": True})
    with pytest.raises(InputError, match="nothing before the blank"):
        LanguageModel.from_pretrained(str(gpt)).fill([f"{MASK}. who"])


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    files = {
        "sst2/test.tsv": "__label__5\tGreat !\n__label__1\tAwful .\n",
        "sst2/verbalizers.txt": "terrible, bust\ngreat, tower\n",
        "open_qa/nq.test.tsv": "what is the capital of france\t['Paris']\nwho sat on it\t['Zeus']\n",
    }
    data = written(tmp_path / "data", files)
    made = Corpus.create(tmp_path / "c.quoth")
    made.add([Document(f"d{i}", "", text) for i, text in enumerate(TEXT)])
    return ["--data", str(data), "--corpus", str(tmp_path / "c.quoth")]


def test_language_models_are_asked_on_the_command_line(
    asked: list[str], gpt: Path, t5: Path, bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = [
        f"lm:{gpt}",
        f"lm:{gpt},calibration=pmi",
        f"mlm:{bert},calibration=batch",
        f"mlm:{bert},masks=1",
        f"lm:{t5},sentinel=true",
    ]
    assert main(["eval", "sst2", *asked, *repeated("--system", *closed), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in report["systems"]] == closed
    assert all(0 <= each["accuracy"]["mean"] <= 1 for each in report["systems"])
    open_book = f"lm:{t5},passages=2,max_new_tokens=4"
    assert main(["eval", "nq", *asked, *repeated("--system", f"lm:{gpt}", open_book, "bm25"), "--json"]) == 0
    without, book, search = json.loads(capsys.readouterr().out)["systems"]
    assert book["answer@5"] == search["answer@5"]
    assert without["answer@5"]["mean"] == 0
    assert "exact_match" in without
    filled = f"mlm:{bert},passages=2,masks=2,template={{question}} {MASK}."
    assert main(["eval", "nq", *asked, *repeated("--system", filled, "bm25"), "--json"]) == 0
    book, search = json.loads(capsys.readouterr().out)["systems"]
    assert book["answer@5"] == search["answer@5"]
    assert "hit_at_5" in book


def test_quoths_models_are_calibrated_and_the_untrained_one_is_its_base(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    npm = NPM.from_pretrained(tiny_npm(tmp_path / "npm"), tmp_path / "c.quoth")
    npm.embed()
    settings: Any = SYSTEMS["npm"].settings
    own = settings["quoth-mini-base"] | {"base": str(tmp_path / "npm")}
    monkeypatch.setitem(settings, "quoth-mini-base", own)
    systems = [str(tmp_path / "npm"), f"{tmp_path / 'npm'},calibration=pmi", "quoth-mini-base,calibration=pmi"]
    told = [*repeated("--system", *systems), "--set", "scoring=all", "--run", str(tmp_path / "runs")]
    assert main(["eval", "sst2", *asked, *told]) == 0
    plain, calibrated, untrained = (result.rows for result in read_run(tmp_path / "runs" / "sst2").systems)
    words, options = {"0": ("terrible", "bust"), "1": ("great", "tower")}, ClosedOptions(scoring="all")
    (prompt,) = labels(npm, words, options)([Example("", f"It was {MASK}.", (), None)])
    before = {each.text: each.log_score for each in prompt.predictions or ()}
    for row, its, same in zip(plain, calibrated, untrained, strict=True):
        expected = {each.text: each.log_score - before[each.text] for each in row.predictions or ()}
        assert {each.text: each.log_score for each in its.predictions or ()} == pytest.approx(expected, abs=1e-6)
        assert all(each.evidence for each in its.predictions or ())
        assert [each.log_score for each in same.predictions or ()] == [each.log_score for each in its.predictions or ()]


@pytest.mark.parametrize(
    ("task", "system", "says"),
    [
        (
            "sst2",
            "llm:x",
            "'llm:x': no such kind of model; use lm:ID_OR_FOLDER, mlm:ID_OR_FOLDER, dense:ID_OR_FOLDER",
        ),
        ("sst2", "lm:", "'lm:': no such kind of model"),
        ("sst2", "lm:x,passages=5", "no option 'passages'; use one of calibration, sentinel"),
        ("sst2", "mlm:x,masks=0", "masks is 0; it must be 1 or more"),
        ("sst2", "lm:x,calibration=dcpmi", "calibration is 'dcpmi'; it must be one of none, pmi, batch"),
        ("sst2", "quoth-mini,calibration=PMI", "calibration is 'PMI'; it must be one of none, pmi, batch"),
        ("nq", "lm:x,sentinel=1", "sentinel is 1; it must be true or false"),
        ("nq", "lm:x,passages=two", "passages is 'two'; it must be a whole number, 0 or more"),
        ("nq", "lm:x,template=Q", "template is 'Q'; it must be a text, with {question} and with [MASK]"),
        ("nq", "lm:x,calibration=pmi", "no option 'calibration'; use one of passages, template, max"),
        ("nq", "quoth-mini,calibration=pmi", "no option 'calibration'; use one of k, passages"),
        ("nq", "mlm:x,sentinel=true", "no option 'sentinel'; use one of passages, template, masks"),
        ("sst2", "dense:x", "dense:x cannot do sst2; leave it out"),
        ("nq", "dense:x,mu=-1", "mu is -1; it must be 0 or more"),
        ("nq", "dense:x+", "dense baseline 'x+' is not complete"),
        ("nq", "lm:/nowhere/at/all", "/nowhere/at/all' cannot be loaded"),
    ],
)
def test_mistakes_name_what_is_known(
    asked: list[str], task: str, system: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", task, *asked, "--system", system]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert says in err


def is_phrase(pieces: Sequence[str]) -> bool:
    """Whether word pieces start with a word's first piece, and neither start nor end with punctuation."""
    bare = [[unicodedata.category(char)[0] for char in pieces[at]] for at in (0, -1)]
    return not pieces[0].startswith("##") and all(set(kinds) - {"P"} for kinds in bare)


@pytest.mark.parametrize("wordpiece", [True, False])
def test_a_masked_lm_never_answers_a_part_of_a_word_or_punctuation(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wordpiece: bool
) -> None:
    folder = bert if wordpiece else tiny_roberta(tmp_path / "r")
    if not wordpiece:
        config = AutoConfig.from_pretrained(folder)
        random_model(RobertaForMaskedLM, config, 1).save_pretrained(folder)
    mlm = MaskedModel.from_pretrained(str(folder))
    vocabulary = int(mlm.model.config.vocab_size)
    monkeypatch.setattr(mlm, "_at_masks", lambda texts, count: np.zeros((len(texts), count, vocabulary)))
    inside, first = (
        {each.text for each in filled if each.text.isascii()}
        for filled in mlm.fill(["Athens is [MASK].", "[MASK] is here."], top_k=vocabulary)
    )
    special = set(mlm.tokenizer.all_special_tokens)
    names = {name for name in mlm.tokenizer.get_vocab() if name.isascii() or name[0] == "Ġ"} - special - {"|"}
    if wordpiece:
        assert inside == first == {name for name in names if is_phrase([name])}
    else:
        # A text's first word has no space before it; after a text, letters without one belong to its last word.
        starts = {name.removeprefix("Ġ") for name in names if name[0] == "Ġ" or not name[0].isalnum()}
        assert inside == {name for name in starts if is_phrase([name or "."])}
        assert first == {name.removeprefix("Ġ") for name in names if is_phrase([name.removeprefix("Ġ") or "."])}


@pytest.mark.parametrize("most", [1, 3])
def test_a_masked_lm_fills_a_blank_with_as_many_masks_as_are_likeliest(bert: Path, most: int) -> None:
    mlm = MaskedModel.from_pretrained(str(bert))
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(bert), mlm.tokenizer
    words = [id for id in range(model.config.vocab_size) if id not in tokenizer.all_special_ids]
    for text, predictions in zip(TEXTS[:2], mlm.fill(TEXTS[:2], top_k=4, masks=most), strict=True):
        fillings = []
        for count in range(1, most + 1):
            log_p = at_masks(model, tokenizer, text, count).tolist()
            likely = [sorted(words, key=lambda id, row=row: -row[id])[:30] for row in log_p]
            legal = [ids for ids in product(*likely) if is_phrase(tokenizer.convert_ids_to_tokens(ids))]
            fillings += [(sum(row[id] for row, id in zip(log_p, ids, strict=True)), ids) for ids in legal]
        best = sorted(fillings, key=lambda pair: -pair[0] / len(pair[1]))[:4]
        assert [each.text for each in predictions] == [tokenizer.decode(ids).strip() for _, ids in best]
        assert [each.log_score for each in predictions] == pytest.approx([p / len(ids) for p, ids in best], abs=1e-4)
        assert [each.probability for each in predictions] == pytest.approx([math.exp(p) for p, _ in best], rel=1e-3)


def test_language_models_fill_blanks_on_the_command_line(
    asked: list[str], gpt: Path, bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = [f"mlm:{bert}", f"mlm:{bert},masks=3", f"mlm:{bert},passages=1", f"lm:{gpt},max_new_tokens=4"]
    Corpus.open(tmp_path / "c.quoth").add([Document("a", "Athens", "Athens (Greek: Αθήνα) is a city in Greece.")])
    assert main(["eval", "translation", *asked, *repeated("--system", *systems), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in report["systems"]] == systems
    fact = {"uuid": "1", "pred": "/x/place_of_birth", "sub_label": "Nikos", "obj_label": "Heraklion", "evidences": []}
    (tmp_path / "facts.jsonl").write_text(json.dumps(fact) + "\n", encoding="utf-8")
    (tmp_path / "pages.jsonl").write_text(
        "".join(json.dumps({"id": str(i), "title": "", "text": " ".join(TEXT)}) + "\n" for i in range(3)), "utf-8"
    )
    for command, named in (
        (["lama", str(tmp_path / "facts.jsonl")], {systems[1]}),
        (["cloze", str(tmp_path / "pages.jsonl")], {systems[1], "frequent"}),
    ):
        corpus = asked[2:] if command[0] == "lama" else ["--system", "frequent", "--limit", "6"]
        assert main(["eval", *command, *corpus, "--system", systems[1], "--json"]) == 0
        assert {each["name"] for each in json.loads(capsys.readouterr().out)["systems"]} == named
    assert main(["eval", "lama", str(tmp_path / "facts.jsonl"), "--system", f"mlm:{bert},max_new_tokens=1"]) == 2
    assert "no option 'max_new_tokens'; use one of passages, masks" in capsys.readouterr().err
