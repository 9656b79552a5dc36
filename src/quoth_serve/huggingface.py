"""Pipelines with the arguments and results of Hugging Face's, on a context or a corpus.

Knows: the inputs and outputs of transformers 4. Does not know: how passages are read and blanks filled.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quoth.answers.evidence import Source, Spans, predict_spans
from quoth.answers.options import TopK
from quoth.corpus.corpus import Corpora, Corpus
from quoth.errors import InputError, nearest
from quoth.fields import checked
from quoth.hub import kind_of
from quoth.model.calls import check_blank, check_questions
from quoth.npm.model import NPM
from quoth.reader.answering import Keep
from quoth.reader.config import ReaderAskOptions
from quoth.reader.model import Reader
from quoth.reader.spans import SpanReader, check_room
from quoth.records import Document, Passage, Prediction, Predictions

Answer = dict[str, Any]
_EVERY = 100_000
"""The number of phrases to rank if only targets are wanted."""
_WHOLE = 20
"""A context of up to this many passages is searched whole, regardless of shared words."""
_DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def pipeline(
    task: str,
    model: str | Path | None = None,
    corpus: Corpora = None,
    *,
    device: int | str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """A pipeline with the calls of Hugging Face's for that task, returning dictionaries with the same keys.

    Args:
        task (str): "question-answering" or "fill-mask".
        model (str | Path | None): A reader for questions, an NPM for blanks. Default: quoth-reader, quoth-mini.
        corpus (Corpus | str | Path | None): What to search if a call passes no context: a corpus or the path of one, or
            a list of them. Default: None.
        device (int | str | None): "cpu", "cuda", "cuda:1" or "mps", or a number: -1 for the CPU, 1 for "cuda:1".
            Default: the best available.
        dtype (str | None): Precision: "fp32", "bf16", "fp16", "int8" or "auto", also as torch names them.
            Default: "auto".
        base (str | Path | None): Folder of the base encoder. Default: None (the shipped one).
        options (Any): Arguments of the calls, which a call may override.

    Returns:
        The pipeline, a callable `QuestionAnswering` or `FillMask`.

    Raises:
        InputError: Another task, or a model of another kind.
        ModelNotFoundError: No model of that name, or its weights are missing or damaged.
        TypeError: An option the calls do not take.

    Example:
        >>> from quoth_serve.huggingface import pipeline
        >>> answer = pipeline("question-answering")
        >>> found = answer(question="Who composed Carmen?", context="Carmen is an opera by Georges Bizet.")
        >>> found["answer"], found["start"], found["end"]
        ('Georges Bizet', 22, 35)
        >>> pipeline("question-answering", corpus=corpus, top_k=1)("Who composed Carmen?")["document_id"]
        'carmen'
        >>> pipeline("fill-mask", corpus=corpus)("Carmen is an opera by [MASK].")[0]["token_str"]
        'Georges Bizet'
    """
    if task not in _TASKS:
        raise InputError(f"task {task!r}; use one of {', '.join(_TASKS)}{nearest(task, _TASKS)}")
    default, reads, called = _TASKS[task]
    name = default if model is None else str(model)
    if kind_of(name) != (kind := kind_of(default)):
        raise InputError(f"model {name!r} is of kind {kind_of(name)!r}; {task} takes one of kind {kind!r}")
    where = device if not isinstance(device, int) else "cpu" if device < 0 else f"cuda:{device}"
    plain = None if dtype is None else str(dtype).removeprefix("torch.")
    setup: dict[str, Any] = {"device": where, "dtype": plain and _DTYPES.get(plain, plain), "base": base}
    made = called(reads.from_pretrained(name, corpus, **setup))
    allowed = [each for each in inspect.signature(made).parameters if each != "inputs"]
    for option in options:
        if option not in allowed:
            raise TypeError(f"{task} has no option {option!r}{nearest(option, allowed)}")
    return partial(made, **options) if options else made


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and the context to read for it; None: the corpus."""

    question: str
    context: str | None


class QuestionAnswering:
    """Answers questions from a context, or from a corpus, as transformers 4's QuestionAnsweringPipeline does."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def __call__(
        self,
        *inputs: Any,
        question: str | Sequence[str] | None = None,
        context: str | Sequence[str] | None = None,
        top_k: int = 1,
        doc_stride: int | None = None,
        max_answer_len: int | None = None,
        max_seq_len: int | None = None,
        max_question_len: int | None = None,
        handle_impossible_answer: bool = False,
        align_to_words: bool = True,
    ) -> Any:
        """Answer one question or several.

        Args:
            inputs: A question and a context; or a dictionary with the keys question and context, or a list of them; or,
                on a corpus, a question or a list of questions.
            question (str | list[str]): One question or several.
            context (str | list[str]): The text to read: one for all, or one per question. Default: the corpus.
            top_k (int): Number of answers. Default: 1.
            doc_stride (int): Overlap in tokens of the windows of a long context. Default: the model's (96).
            max_answer_len (int): Maximum tokens of an answer, or of a list item. Default: the model's (20).
            max_seq_len (int): Tokens the model reads at a time, question included. Default: the model's (384).
            max_question_len (int): Tokens of a question; longer ones are cut. Default: the model's (96).
            handle_impossible_answer (bool): Whether "" (the text does not say) may be an answer. Default: False.
            align_to_words (bool): Accepted, without effect: no answer ever cuts a word. Default: True.

        Returns:
            A dictionary with score, start, end and answer; a list of them, best first, if there are several (or none);
            for several questions a list of these. On a context `score` is an answer's share of all spans and of "no
            answer", and `context[start:end]` is the answer. On a corpus it is the chance of being right, start and end
            count in the document `document_id`, and everything in `Prediction.to_dict` is added; and `read_as`, the
            question with misspellings corrected, if there are any.

        Raises:
            InputError: No question, neither context nor corpus, or a number out of bounds.
        """
        checked("top_k", top_k, TopK, 5)
        checked("max_answer_len", max_answer_len, TopK | None, 15)
        asked = _asked(inputs, question, context)
        check_questions([each.question for each in asked])
        reader = self._tuned(overlap=doc_stride, max_tokens=max_seq_len, query_tokens=max_question_len)
        keep = partial(_shortened, reader.reader, max_answer_len)
        of_corpus = iter(_answers(reader, [each.question for each in asked if each.context is None], top_k, keep))
        found = []
        for each in asked:
            if each.context is None:
                answers = next(of_corpus)
                read_as = {"read_as": answers.read_as} if answers.read_as else {}
                found.append([one | read_as for one in _of_corpus(answers, top_k, handle_impossible_answer)])
            else:
                text = each.question.strip()
                found.append(_of_context(reader.reader, text, each.context, keep, top_k, handle_impossible_answer))
        given = [one[0] if len(one) == 1 else one for one in found]
        return given[0] if len(given) == 1 else given

    def _tuned(self, **settings: int | None) -> Reader:
        """The reader with other lengths. Raises InputError if they do not go together."""
        given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        if not given:
            return self.reader
        reading = copy(self.reader.reader)
        reading.config = replace(reading.config, **given)
        check_room(reading.config, reading.tokenizer.longest, self.reader.name or "the reader")
        return Reader(reading, self.reader.corpora, self.reader.name)


def _answers(reader: Reader, questions: Sequence[str], top_k: int, keep: Keep) -> list[Predictions]:
    """The answers from the corpus."""
    if questions and not reader.corpora:
        raise InputError("no context to read; pass context=…, or create the pipeline with corpus=…")
    return reader.answers(questions, ReaderAskOptions(top_k=top_k), keep=keep) if questions else []


def _asked(inputs: Sequence[Any], question: Any, context: Any) -> list[_Asked]:
    """The questions of a call, in the forms that Hugging Face's pipeline takes. Raises InputError on others."""
    if len(inputs) == 2 and all(isinstance(each, str) for each in inputs):
        question, context = inputs
    elif inputs:
        items = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list) else list(inputs)
        pairs = [each if isinstance(each, Mapping) else {"question": each, "context": context} for each in items]
        return [_one(each.get("question"), each.get("context")) for each in pairs]
    if isinstance(question, str) or question is None:
        return [_one(question, context)]
    contexts = [context] * len(question) if context is None or isinstance(context, str) else context
    if len(contexts) != len(question):
        raise InputError(f"{len(question)} questions and {len(contexts)} contexts; give one context, or one for each")
    return [_one(*each) for each in zip(question, contexts, strict=True)]


def _one(question: object, context: object) -> _Asked:
    if not isinstance(question, str):
        raise InputError(f"question {question!r}; give a text, or a dictionary with the keys question and context")
    return _Asked(question, _context(context))


def _context(given: object) -> str | None:
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    raise InputError(f"context {given!r}; give the text to read, which must not be empty")


def _shortened(reader: SpanReader, most: int | None, source: Source, spans: Spans) -> Spans:
    """The spans of no more than `most` tokens."""
    if most is None or most >= reader.config.span_width or not len(spans.start_C):
        return spans
    ends = zip(spans.start_C.tolist(), spans.end_C.tolist(), strict=True)
    pieces = reader.tokenizer.pieces([f" {source.passage.text[start:end].strip()}" for start, end in ends])
    kept = [place for place, (ids, _) in enumerate(pieces) if len(ids) <= most]
    return replace(spans, start_C=spans.start_C[kept], end_C=spans.end_C[kept], odds_C=spans.odds_C[kept])


def _of_context(
    reader: SpanReader, question: str, context: str, keep: Keep, top_k: int, may_be_none: bool
) -> list[Answer]:
    """The answers of a context; "" has the share of there being none, if that may be an answer."""
    source = Source(Passage(0, "", "", context, 0, len(context)), "")
    [[spans]] = reader.read([question], [[source.passage]])
    answers = predict_spans([source], [keep(source, spans)], top_k, prior=reader.config.prior)
    found: list[Answer] = [
        {"score": each.probability, "start": best.start, "end": best.end, "answer": context[best.start : best.end]}
        for each in answers
        for best in each.evidence[:1]
    ]
    if may_be_none:
        none = 1 / (1 + math.exp(min(spans.total, 700.0)))
        found.append({"score": none, "start": 0, "end": 0, "answer": ""})
    return sorted(found, key=lambda each: -each["score"])[:top_k]


def _of_corpus(answers: Sequence[Prediction], top_k: int, may_be_none: bool) -> list[Answer]:
    """The answers of a corpus; "" has the chance that the best one is wrong, and comes before the first less probable
    one that is not answered."""
    found = [each.to_dict() | {"document_id": each.evidence[0].document_id} for each in answers]
    if may_be_none:
        none = 1 - answers[0].probability if answers else 1.0
        less = (place for place, each in enumerate(answers) if each.abstained and each.probability < none)
        found.insert(next(less, len(answers)), {"score": none, "start": 0, "end": 0, "answer": "", "document_id": None})
    return found[:top_k]


class FillMask:
    """Fills the blank of a text from a context, or from a corpus, as transformers' FillMaskPipeline does."""

    def __init__(self, npm: NPM) -> None:
        self.npm = npm

    def __call__(
        self,
        inputs: str | Sequence[str],
        *,
        targets: str | Sequence[str] | None = None,
        top_k: int = 5,
        context: str | None = None,
    ) -> Any:
        """Fill the blank of one text or of several.

        Args:
            inputs (str | list[str]): Texts, each with one blank: `[MASK]`, `<mask>` or `___`.
            targets (str | list[str]): The only phrases wanted, ignoring case. Those found are listed, ranked by NPM
                alone, with their shares of all phrases. Default: None, any.
            top_k (int): Number of phrases. Default: 5.
            context (str): A text whose phrases fill the blank. Default: the corpus.

        Returns:
            A list of dictionaries with score, token, token_str and sequence, best first; for several texts a list of
            such lists. `token` is the phrase's token id in the model's vocabulary, None for a phrase of several tokens.

        Raises:
            InputError: A text without exactly one blank, neither context nor corpus, or no targets.
        """
        checked("top_k", top_k, TopK, 5)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        wanted = [targets] if isinstance(targets, str) else targets
        if wanted is not None and not wanted:
            raise InputError("targets is empty; pass one or more, or omit it")
        for text in texts:
            check_blank(str(text))
        options: dict[str, Any] = {"top_k": top_k, "max_evidence": 1}
        if wanted is not None:
            options |= {"top_k": _EVERY, "read": 0, "distinct": False}
        found = self._fill(texts, _context(context), options)
        if wanted is not None:
            spelled = {" ".join(each.split()).casefold() for each in wanted}
            found = [Predictions(each for each in one if each.text.casefold() in spelled) for one in found]
        given = [[self._result(each) for each in one[:top_k]] for one in found]
        return given[0] if len(given) == 1 else given

    def _fill(self, texts: Sequence[str], context: str | None, options: dict[str, Any]) -> list[Predictions]:
        if context is None:
            if not self.npm.corpora:
                raise InputError("no text to quote from; pass context=…, or create the pipeline with corpus=…")
            return self.npm.fill(texts, **options)
        with TemporaryDirectory(prefix="quoth-") as folder:
            corpus = Corpus.create(Path(folder) / "context.quoth")
            corpus.add([Document("context", "", context)])
            if 0 < corpus.num_passages <= _WHOLE:
                options |= {"passages": corpus.num_passages, "searched": [context] * len(texts)}
            return NPM(self.npm.encoder, [corpus], lambda: self.npm.reader).fill(texts, **options)

    def _result(self, prediction: Prediction) -> Answer:
        ids = self.npm.encoder.tokenizer.phrase(prediction.text).ids_T.tolist()
        return {
            "score": prediction.probability,
            "token": ids[0] if len(ids) == 1 else None,
            "token_str": prediction.text,
            "sequence": prediction.sequence,
        }


_TASKS: dict[str, tuple[str, Any, Any]] = {
    "question-answering": ("quoth-reader", Reader, QuestionAnswering),
    "fill-mask": ("quoth-mini", NPM, FillMask),
}
"""By task its default model, the class of its models, and what is called."""
