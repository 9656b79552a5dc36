"""Pipelines as Hugging Face's: arguments, keys, shapes of results; scores worked out beside them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from test_span_reader import make_reader

import quoth
from quoth.answers.evidence import Source, predict_spans
from quoth.errors import InputError
from quoth.reader.spans import query_ids
from quoth.records import Passage
from quoth_serve import huggingface as pipelines
from quoth_serve.huggingface import FillMask, QuestionAnswering
from tiny import TEXT, tiny_corpus, tiny_npm

QUESTION, CONTEXT = "What is the capital of France?", TEXT[1]
BLANK = "[MASK] is the capital of France."


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    return tiny_corpus(tmp_path_factory.mktemp("corpora") / "c.quoth")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, corpus: quoth.Corpus) -> quoth.Reader:
    return quoth.Reader(make_reader(tmp_path_factory.mktemp("reader") / "b", max_tokens=128), [corpus])


@pytest.fixture(scope="module")
def answer(reader: quoth.Reader) -> QuestionAnswering:
    return QuestionAnswering(reader)


@pytest.fixture(scope="module")
def fill(tmp_path_factory: pytest.TempPathFactory, corpus: quoth.Corpus) -> FillMask:
    return FillMask(quoth.NPM.from_pretrained(tiny_npm(tmp_path_factory.mktemp("npm") / "n"), corpus))


def test_an_answer_has_the_keys_and_is_a_slice_of_the_context(answer: QuestionAnswering) -> None:
    found = answer(question=QUESTION, context=CONTEXT)
    assert list(found) == ["score", "start", "end", "answer"]
    assert found["answer"] == CONTEXT[found["start"] : found["end"]]
    several = answer(question=QUESTION, context=CONTEXT, top_k=4)
    assert [each["score"] for each in several] == sorted((each["score"] for each in several), reverse=True)
    assert several[0] == found
    assert len(several) == 4


def test_every_way_to_ask_gives_the_same(answer: QuestionAnswering) -> None:
    one = {"question": QUESTION, "context": CONTEXT}
    found = answer(one)
    assert answer(QUESTION, CONTEXT) == answer([one]) == answer(question=[QUESTION], context=CONTEXT) == found
    other = answer(question="What flows?", context=TEXT[2])
    assert answer([one, {"question": "What flows?", "context": TEXT[2]}]) == [found, other]
    assert answer(question=[QUESTION, "What flows?"], context=[CONTEXT, TEXT[2]]) == [found, other]
    assert answer(one, {"question": "What flows?", "context": TEXT[2]}) == [found, other]


def test_scores_are_shares_of_all_spans_and_of_no_answer(answer: QuestionAnswering, reader: quoth.Reader) -> None:
    shown = Passage(0, "", "", CONTEXT, 0, len(CONTEXT))
    [[spans]] = reader.reader.read([QUESTION], [[shown]])
    found = answer(question=QUESTION, context=CONTEXT, top_k=1000, max_answer_len=1000, handle_impossible_answer=True)
    (none,) = [each for each in found if not each["answer"]]
    everything = 1 + math.exp(spans.total)
    assert none == {"score": pytest.approx(1 / everything), "start": 0, "end": 0, "answer": ""}
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    shares = {each.text: each.probability for each in predict_spans([Source(shown, "")], [spans], 1000)}
    assert len(found) - 1 == len(shares) > 1
    for each in found:
        assert not each["answer"] or each["score"] == pytest.approx(shares[each["answer"]])
    assert not any(each["answer"] == "" for each in answer(question=QUESTION, context=CONTEXT, top_k=1000))


def test_a_short_answer_is_one_that_would_else_be_hidden(answer: QuestionAnswering, reader: quoth.Reader) -> None:
    short = answer(question=QUESTION, context=CONTEXT, top_k=1000, max_answer_len=1)
    assert short
    assert all(reader.num_tokens(each["answer"]) == 1 for each in short)
    longer = answer(question=QUESTION, context=CONTEXT, top_k=1000, max_answer_len=3)
    lengths = [reader.num_tokens(each["answer"]) for each in longer]
    assert 1 < max(lengths) <= 3


def test_a_long_context_is_read_in_windows_of_the_lengths_that_are_given(
    answer: QuestionAnswering, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, int]] = []
    inputs = pipelines.SpanReader._inputs

    def spy(reader: Any, queries: Any, passages: Any, known: Any) -> Any:
        found = inputs(reader, queries, passages, known)
        asked = query_ids(reader.tokenizer, queries[0], reader.config.query_tokens)
        seen.append((len(found), max(each.length for each in found), len(asked)))
        return found

    monkeypatch.setattr(pipelines.SpanReader, "_inputs", spy)
    long = " ".join([CONTEXT] * 8)
    asked = "What is the capital of France, through which the river runs?"
    found = answer(question=asked, context=long, max_seq_len=96, doc_stride=21, max_question_len=8, top_k=3)
    assert all(each["answer"] == long[each["start"] : each["end"]] for each in found)
    answer(question=asked, context=long)
    (count, length, question), (fewer, longer, whole) = seen
    assert (length, question) == (96, 8)
    assert longer == 128
    assert count > fewer
    assert whole > 8


def test_on_a_corpus_it_answers_as_the_reader_and_names_the_document(
    answer: QuestionAnswering, reader: quoth.Reader, corpus: quoth.Corpus
) -> None:
    found = answer(QUESTION, top_k=3, max_answer_len=1000)
    asked = reader.ask(QUESTION, top_k=3)
    assert [each["answer"] for each in found] == [each.text for each in asked]
    assert [each["score"] for each in found] == pytest.approx([each.probability for each in asked])
    for each in found:
        text = corpus.document(each["document_id"]).text
        assert " ".join(text[each["start"] : each["end"]].split()) == each["answer"]
    mixed = answer([{"question": QUESTION}, {"question": QUESTION, "context": CONTEXT}], max_answer_len=1000)
    assert mixed == [found[0], answer(question=QUESTION, context=CONTEXT, max_answer_len=1000)]


def test_on_a_corpus_misspelt_words_are_read_as_the_reader_reads_them(
    answer: QuestionAnswering, reader: quoth.Reader
) -> None:
    asked = ["What is the capitel of France?", "What is the capital of Frence?", QUESTION]
    found = answer([{"question": each} for each in asked], top_k=2, max_answer_len=1000)
    for own, expected in zip(found, reader.ask(asked, top_k=2), strict=True):
        assert [(each["answer"], each["status"]) for each in own] == [(each.text, each.status) for each in expected]
        assert [each["score"] for each in own] == pytest.approx([each.probability for each in expected])
        assert {each.get("read_as", "") for each in own} == {expected.read_as}
    assert [each[0].get("read_as") for each in found] == [QUESTION, QUESTION, None]


def test_that_there_is_no_answer_comes_before_less_probable_ones_that_are_unsure() -> None:
    place = quoth.Evidence("d", "", 0, 0, 1, "a", 0.4)
    sure, guess = (
        quoth.Prediction("a", 0.0, p, (place,), status="unsure" if p < 0.3 else "answered") for p in (0.4, 0.2)
    )
    answers = pipelines._of_corpus([sure, guess], 3, True)
    assert [(each["answer"], each["score"]) for each in answers] == [("a", 0.4), ("", 0.6), ("a", 0.2)]
    assert [each["answer"] for each in pipelines._of_corpus([guess], 1, True)] == [""]
    assert [each["answer"] for each in pipelines._of_corpus([guess], 1, False)] == ["a"]
    likely = quoth.Prediction("a", 0.0, 0.55, (place,), status="unsure")
    assert [each["answer"] for each in pipelines._of_corpus([likely, guess], 3, True)] == ["a", "", "a"]


def test_blanks_are_filled_with_the_keys_of_fill_mask(fill: FillMask) -> None:
    found = fill(BLANK, top_k=3)
    own = fill.npm.fill(BLANK, top_k=3)
    assert [list(each) for each in found] == [["score", "token", "token_str", "sequence"]] * 3
    assert [each["token_str"] for each in found] == [each.text for each in own]
    assert [each["score"] for each in found] == pytest.approx([each.probability for each in own])
    assert all(each["sequence"] == BLANK.replace("[MASK]", each["token_str"]) for each in found)
    for each in found:
        ids = fill.npm.encoder.tokenizer.hf(each["token_str"], add_special_tokens=False)["input_ids"]
        assert each["token"] == (ids[0] if len(ids) == 1 else None)
    for again in (*fill([BLANK, BLANK]), fill([BLANK])):
        assert [each["token_str"] for each in again] == [each["token_str"] for each in fill(BLANK)]
        assert [each["score"] for each in again] == pytest.approx([each["score"] for each in fill(BLANK)], rel=1e-4)


def test_targets_keep_their_shares_of_all_phrases(fill: FillMask) -> None:
    every = {each.text: each for each in fill.npm.fill(BLANK, top_k=1000, distinct=False)}
    found = fill(BLANK, targets=["berlin", "France", "nowhere", "Paris"], top_k=10)
    assert {each["token_str"] for each in found} == {"Berlin", "France", "Paris"} & {*every}
    assert found
    for each in found:
        assert each["score"] == pytest.approx(every[each["token_str"]].probability)
    assert fill(BLANK, targets="nowhere") == []


def test_a_given_context_is_all_that_is_quoted(fill: FillMask, tmp_path: Path) -> None:
    context = "Rome has seven hills. Oslo lies on a fjord."  # it shares no word with the text
    found = fill("The [MASK].", context=context, top_k=50)
    assert found
    assert all(each["token_str"] in context for each in found)
    made = quoth.Corpus.create(tmp_path / "same.quoth")
    made.add([quoth.Document("context", "", context)])
    same = quoth.NPM(fill.npm.encoder, [made]).fill("The [MASK].", top_k=50, searched=["Rome"], max_evidence=1)
    assert [each["token_str"] for each in found] == [each.text for each in same]


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ([QUESTION, ""], {}, "context ''"),
        ([], {}, "question None"),
        ([" ", CONTEXT], {}, "the question is empty"),
        ([{"context": CONTEXT}], {}, "question None"),
        ([], {"question": [QUESTION], "context": [CONTEXT, CONTEXT]}, "1 questions and 2 contexts"),
        ([QUESTION, CONTEXT], {"top_k": 0}, "top_k is 0"),
        ([QUESTION, CONTEXT], {"max_answer_len": 0}, "max_answer_len is 0"),
        ([QUESTION, CONTEXT], {"doc_stride": 1}, "overlap 1"),
        ([QUESTION, CONTEXT], {"max_seq_len": 512, "max_question_len": 450}, "takes at most 260 tokens, which leaves"),
    ],
)
def test_what_cannot_be_read_is_refused(
    answer: QuestionAnswering, inputs: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        answer(*inputs, **options)


def test_without_a_corpus_a_context_is_required(reader: quoth.Reader, fill: FillMask) -> None:
    with pytest.raises(InputError, match="no context to read; pass context"):
        QuestionAnswering(quoth.Reader(reader.reader))(QUESTION)
    with pytest.raises(InputError, match="no text to quote from; pass context"):
        FillMask(quoth.NPM(fill.npm.encoder))(BLANK)
    with pytest.raises(InputError, match="targets is empty"):
        fill(BLANK, targets=[])
    with pytest.raises(InputError, match="context '  '; give the text to read, which must not be empty"):
        fill(BLANK, context="  ")


def test_a_text_has_one_blank(fill: FillMask) -> None:
    for text, message in (
        ("[MASK] is [MASK].", "2 masks in"),
        ("No blank.", "no \\[MASK\\] in"),
        (1, "no \\[MASK\\] in '1'"),
    ):
        with pytest.raises(InputError, match=message):
            fill([BLANK, text], targets=["Paris", "rome"])


def test_a_pipeline_is_made_by_the_name_of_its_task(
    tmp_path: Path, corpus: quoth.Corpus, reader: quoth.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tiny_npm(tmp_path / "npm")
    filling = pipelines.pipeline("fill-mask", npm, corpus, device=-1, dtype="float32", top_k=2)
    assert len(filling(BLANK)) == 2
    assert len(filling(BLANK, top_k=1)) == 1
    with pytest.raises(
        InputError, match=r"task 'question_answering'; use one of .*; did you mean question-answering\?"
    ):
        pipelines.pipeline("question_answering")
    with pytest.raises(InputError, match="of kind 'npm'; question-answering takes one of kind 'reader'"):
        pipelines.pipeline("question-answering", npm)
    with pytest.raises(TypeError, match=r"fill-mask has no option 'topk'; did you mean top_k\?"):
        pipelines.pipeline("fill-mask", npm, topk=2)
