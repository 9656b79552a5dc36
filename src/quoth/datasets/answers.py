"""Right or wrong: answers as ORQA compares them, and passages that hold an answer as DPR finds them.

Knows questions, predictions and texts. Does not know where predictions and passages come from.

ORQA: Lee et al. 2019 (its `eval_utils`); DPR: Karpukhin et al. 2020 (its `qa_validation`, after DrQA's).
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate

from quoth.datasets.questions import Question, compile_pattern

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """`text` as answers are compared: case folded, runs of white space one space, none at the edges."""
    return " ".join(text.casefold().split())


def normalise_answer(text: str) -> str:
    """`text` as SQuAD and ORQA compare answers: NFD, lower case, without ASCII punctuation, articles, spare spaces."""
    bare = unicodedata.normalize("NFD", text).lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(prediction: str, question: Question) -> bool:
    """Whether the prediction is one of the answers, or, for patterns, begins with a match of one (as in ORQA).

    What normalisation leaves nothing of (the band The The) is compared with its articles and punctuation.
    """
    if question.pattern:
        text = unicodedata.normalize("NFC", prediction)
        return any((found := each.match(text)) and found.group() for each in _patterns(question.answers))
    said = _comparable(prediction)
    return said != "" and any(_comparable(answer) == said for answer in question.answers)


def has_answer(text: str, question: Question) -> bool:
    """Whether an answer's tokens stand in a passage's text side by side, case aside, or a pattern matches in it (DPR).

    The title does not count. An answer without tokens, an empty match and a broken pattern are never found.
    """
    if question.pattern:
        composed = unicodedata.normalize("NFC", text)
        return any(found.group() for each in _patterns(question.answers) for found in each.finditer(composed))
    tokens = joined_tokens(text)
    return any(each in tokens for each in _joined_answers(question.answers))


def joined_tokens(text: str) -> str:
    """DPR's tokens of the text in NFD, lower case, a space before and after each; "" for a text without tokens.

    A token is a run of letters, numbers and marks, or another character that is neither space nor control.
    """
    tokens = _token().findall(unicodedata.normalize("NFD", text))
    return f" {' '.join(tokens)} ".lower() if tokens else ""


def answer_rank(texts: Iterable[str], question: Question) -> int | None:
    """Where the first text that holds an answer stands, from 0; None where none does."""
    return first(has_answer(text, question) for text in texts)


def first(right: Iterable[bool]) -> int | None:
    """Where the first that is right stands, from 0; None where none is."""
    return next((i for i, each in enumerate(right) if each), None)


def recall(ranks: Sequence[int | None], k: int) -> float:
    """The share of questions for which what is right is among the first k. `ranks` runs over the questions."""
    return sum(rank is not None and rank < k for rank in ranks) / len(ranks)


def answerable(questions: Sequence[Question], texts: Iterable[str]) -> set[int]:
    """The numbers of the questions that some text holds an answer to; as `holders`, but each is looked for no longer
    than until it has one."""
    return set(holders(questions, texts, first_only=True))


def holders(questions: Sequence[Question], texts: Iterable[str], first_only: bool = False) -> dict[int, list[int]]:
    """For each question that has some, the numbers of the texts that hold an answer, by `has_answer`; reads them once.

    Each answer is looked for only where its longest token stands. Patterns have no such token: each costs a search of
    every text.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    waiting: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, question in enumerate(questions):
        for each in () if question.pattern else _joined_answers(question.answers):
            waiting[max(each.split(), key=len)].append((number, each))
    patterns = [number for number, question in enumerate(questions) if question.pattern]
    for place, text in enumerate(texts):
        tokens = joined_tokens(text)
        right = [number for number in patterns if has_answer(text, questions[number])]
        for token in waiting.keys() & set(tokens.split()):
            right += [number for number, each in waiting[token] if each in tokens]
            if first_only:
                waiting[token] = [(n, each) for n, each in waiting[token] if n not in found and n not in right]
        for number in dict.fromkeys(right):
            found[number].append(place)
        if first_only:
            patterns = [number for number in patterns if number not in found]
    return dict(found)


def answer_ranges(text: str, question: Question) -> list[tuple[int, int]]:
    """Where in a text an answer stands, as `has_answer` finds it: characters from start to end, each once."""
    if question.pattern:
        composed = unicodedata.normalize("NFC", text)
        matches = (match.span() for each in _patterns(question.answers) for match in each.finditer(composed))
        return _ranges_of(text, composed, [span for span in matches if span[0] < span[1]])
    decomposed = unicodedata.normalize("NFD", text)
    places = [match.span() for match in _token().finditer(decomposed)]
    tokens = joined_tokens(text).split()
    found = []
    for answer in (each.split() for each in _joined_answers(question.answers)):
        for i in [i for i, token in enumerate(tokens) if token == answer[0]]:
            if tokens[i : i + len(answer)] == answer:
                found.append((places[i][0], places[i + len(answer) - 1][1]))
    return _ranges_of(text, decomposed, found)


def _ranges_of(text: str, normal: str, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of a normal form (NFC, NFD) of a text as ranges of the text, each once; no character is cut."""
    if text == normal:
        return list(dict.fromkeys(ranges))
    owners = [i for i, char in enumerate(text) for _ in unicodedata.normalize("NFD", char)]
    places = [0, *accumulate(len(unicodedata.normalize("NFD", char)) for char in normal)]
    return list(dict.fromkeys((owners[places[start]], owners[places[end] - 1] + 1) for start, end in ranges))


def _comparable(text: str) -> str:
    return normalise_answer(text) or normalise(unicodedata.normalize("NFD", text))


@lru_cache(maxsize=1 << 14)
def _joined_answers(answers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tokens for answer in answers if (tokens := joined_tokens(answer))))


@lru_cache(maxsize=1 << 14)
def _patterns(answers: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for answer in answers:
        try:
            compiled.append(compile_pattern(answer))
        except re.error:
            continue
    return tuple(compiled)


@cache
def _token() -> re.Pattern[str]:
    """DPR's `[\\p{L}\\p{N}\\p{M}]+|[^\\p{Z}\\p{C}]`; ASCII is told apart first, which is ten times as fast."""
    kinds = "".join(unicodedata.category(chr(code))[0] for code in range(sys.maxunicode + 1))
    word, dropped = (
        "".join(rf"\U{run.start():08x}-\U{run.end() - 1:08x}" for run in re.finditer(f"[{wanted}]+", kinds))
        for wanted in ("LNM", "ZC")
    )
    beyond_ascii = r"(?![\x00-\x7f])"
    return re.compile(rf"(?:[0-9A-Za-z]+|{beyond_ascii}[{word}]+)+|[!-/:-@\[-`{{-~]|{beyond_ascii}[^{dropped}]")
