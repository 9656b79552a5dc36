"""Right or wrong: compares answers as ORQA does, and finds the passages that contain an answer as DPR does.

Knows: questions, predictions and texts. Does not know: where predictions and passages come from.

ORQA: Lee et al. 2019 (its `eval_utils`); DPR: Karpukhin et al. 2020 (its `qa_validation`, after DrQA's).
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate

from quoth.datasets.questions import QAExample, compile_pattern

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """`text` for comparing answers: case-folded, white space collapsed to single spaces and trimmed."""
    return " ".join(text.casefold().split())


def normalise_answer(text: str) -> str:
    """`text` as SQuAD and ORQA compare answers: NFD, lower case, no ASCII punctuation, articles or extra spaces."""
    bare = unicodedata.normalize("NFD", text).lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(prediction: str, question: QAExample) -> bool:
    """Whether the prediction is one of the answers or, for patterns, begins with a match of one (as in ORQA).

    If normalisation would leave nothing (the band The The), articles and punctuation are kept.
    """
    if question.pattern:
        composed, patterns = unicodedata.normalize("NFC", prediction), map(compile_pattern, question.answers)
        return any((match := pattern.match(composed)) and match.group() for pattern in patterns)
    said = _comparable(prediction)
    return said != "" and any(_comparable(answer) == said for answer in question.answers)


def has_answer(text: str, question: QAExample) -> bool:
    """Whether a passage's text contains an answer's tokens in sequence, ignoring case, or matches a pattern (DPR).

    The title does not count. An answer without tokens and an empty match never count as contained.
    """
    if question.pattern:
        composed, patterns = unicodedata.normalize("NFC", text), map(compile_pattern, question.answers)
        return any(match.group() for pattern in patterns for match in pattern.finditer(composed))
    tokens = joined_tokens(text)
    return any(answer in tokens for answer in _joined_answers(question.answers))


def joined_tokens(text: str) -> str:
    """DPR's tokens of the text: NFD, lower case, with a space before and after each; "" if the text has none.

    A token is a run of letters, numbers and marks, or a single other character that is neither space nor control.
    """
    tokens = _token().findall(unicodedata.normalize("NFD", text))
    return f" {' '.join(tokens)} ".lower() if tokens else ""


def answer_rank(texts: Iterable[str], question: QAExample) -> int | None:
    """The position of the first text that contains an answer, from 0; None if none does."""
    return first(has_answer(text, question) for text in texts)


def first(right: Iterable[bool]) -> int | None:
    """The position of the first True, from 0; None if there is none."""
    return next((i for i, is_right in enumerate(right) if is_right), None)


def recall(ranks: Sequence[int | None], k: int) -> float:
    """The share of questions with a right result among the first k. `ranks` has one entry per question."""
    return sum(rank is not None and rank < k for rank in ranks) / len(ranks)


def answerable(questions: Sequence[QAExample], texts: Iterable[str]) -> set[int]:
    """The indices of the questions that some text answers. Like `holders`, but stops looking for a question's answers
    after the first text that contains one."""
    return set(holders(questions, texts, first_only=True))


def holders(
    questions: Sequence[QAExample],
    texts: Iterable[str],
    first_only: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[int, list[int]]:
    """The indices of the texts that contain an answer (`has_answer`), by question; questions without any are left out.

    Reads the texts once; `progress` takes the number of those read. An answer is looked for only in texts that contain
    its longest token. Patterns have no such token, so each of them costs a search of every text.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    waiting: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, question in enumerate(questions):
        for answer in () if question.pattern else _joined_answers(question.answers):
            waiting[max(answer.split(), key=len)].append((number, answer))
    patterns = [number for number, question in enumerate(questions) if question.pattern]
    for place, text in enumerate(texts):
        tokens = joined_tokens(text)
        right = [number for number in patterns if has_answer(text, questions[number])]
        for token in waiting.keys() & set(tokens.split()):
            right += [number for number, answer in waiting[token] if answer in tokens]
            if first_only:
                waiting[token] = [(n, answer) for n, answer in waiting[token] if n not in found and n not in right]
        for number in dict.fromkeys(right):
            found[number].append(place)
        if first_only:
            patterns = [number for number in patterns if number not in found]
        if progress and place % 1000 == 0:
            progress(place)
    return dict(found)


def answer_ranges(text: str, question: QAExample) -> list[tuple[int, int]]:
    """Where an answer occurs in a text, by the rules of `has_answer`: distinct (start, end) character ranges."""
    if question.pattern:
        composed, patterns = unicodedata.normalize("NFC", text), map(compile_pattern, question.answers)
        matches = (match.span() for pattern in patterns for match in pattern.finditer(composed))
        return _ranges_of(text, composed, [span for span in matches if span[0] < span[1]])
    decomposed = unicodedata.normalize("NFD", text)
    places = [match.span() for match in _token().finditer(decomposed)]
    tokens = joined_tokens(text).split()
    ranges = []
    for answer in (joined.split() for joined in _joined_answers(question.answers)):
        for i in [i for i, token in enumerate(tokens) if token == answer[0]]:
            if tokens[i : i + len(answer)] == answer:
                ranges.append((places[i][0], places[i + len(answer) - 1][1]))
    return _ranges_of(text, decomposed, ranges)


def _ranges_of(text: str, normal: str, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of a normal form (NFC, NFD) of a text as distinct ranges of the text; no character is cut."""
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


@cache
def _token() -> re.Pattern[str]:
    """DPR's `[\\p{L}\\p{N}\\p{M}]+|[^\\p{Z}\\p{C}]`; ASCII is matched separately, which is ten times as fast."""
    kinds = "".join(unicodedata.category(chr(code))[0] for code in range(sys.maxunicode + 1))
    word, dropped = (
        "".join(rf"\U{run.start():08x}-\U{run.end() - 1:08x}" for run in re.finditer(f"[{wanted}]+", kinds))
        for wanted in ("LNM", "ZC")
    )
    beyond_ascii = r"(?![\x00-\x7f])"
    return re.compile(rf"(?:[0-9A-Za-z]+|{beyond_ascii}[{word}]+)+|[!-/:-@\[-`{{-~]|{beyond_ascii}[^{dropped}]")
