"""Reads files of questions, each with the passage that answers it, to train a reader on.

Knows: JSONL of `{"id", "title", "context", "question", "answers": [{"text", "start"}], "evidence": [[start, end]],
"negatives": [{"title", "context"}], "in_full", "kind"}` (`start` in characters of the context; no answers: the passage
does not say), and SQuAD 1.1 and 2.0. Does not know: tokens or models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from quoth.corpus.documents import OnBad, read_text
from quoth.errors import InputError

_REMEDY = "fix it or skip it (--skip-bad)"


@dataclass(frozen=True, slots=True)
class TitledText:
    """A passage to read, with the title of its document ("" if there is none)."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ReadingExample:
    """A question (or a text with a blank `[MASK]`), a passage, and the character ranges of the answers in the passage.

    No ranges: the passage does not answer the question. `evidence` are the ranges of the sentences, items or rows that
    answer it; None if nobody marked any. `negatives` are further passages that do not answer it.
    `in_full` is the question as a teacher reads it, if that is another: in whole words where `question` has keywords.
    `kind` groups questions where they are measured.
    """

    id: str
    question: str
    passage: TitledText
    answers: tuple[tuple[int, int], ...]
    negatives: tuple[TitledText, ...] = ()
    in_full: str = ""
    evidence: tuple[tuple[int, int], ...] | None = None
    kind: str = ""

    @property
    def texts(self) -> list[str]:
        """The answers as they occur in the passage."""
        return [self.passage.text[start:end] for start, end in self.answers]


def read_examples(path: str | Path, skip_bad: bool = False, on_bad: OnBad | None = None) -> list[ReadingExample]:
    """The examples of a file, compressed or not.

    Raises InputError naming the file and line of an entry that cannot be used; with `skip_bad` the error goes to
    `on_bad` instead, and reading continues. Raises InputError if no example is left.
    """
    path = Path(path)
    examples = []
    for where, read in _entries(path, read_text(path)):
        try:
            examples.append(read())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            bad = InputError(f"{path}{where}: {reason}; {_REMEDY}")
            if not skip_bad:
                raise bad from None
            if on_bad is not None:
                on_bad(bad)
    if not examples:
        raise InputError(f"{path}: no question with its passage; name a JSONL file or SQuAD's JSON")
    return examples


def _entries(path: Path, text: str) -> Iterator[tuple[str, Callable[[], ReadingExample]]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, Mapping) and isinstance(content.get("data"), list):
        yield from _squad(content["data"])
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f":{number}", partial(_line, line, str(number))


def _squad(articles: Iterable[Any]) -> Iterator[tuple[str, Callable[[], ReadingExample]]]:
    for number, article in enumerate(articles, start=1):
        try:
            paragraphs = [
                (article["title"].replace("_", " "), paragraph["context"], [{**each} for each in paragraph["qas"]])
                for paragraph in article["paragraphs"]
            ]
        except (KeyError, TypeError, AttributeError) as error:
            yield f": article {number}", partial(_refuse, f"not in SQuAD's format ({error!r})")
            continue
        for at, (title, context, asked) in enumerate(paragraphs, start=1):
            for which, record in enumerate(asked, start=1):
                where = f": article {number}, paragraph {at}, question {which}"
                yield where, partial(_example, {"title": title, "context": context, **record}, f"{number}-{at}-{which}")


def _refuse(reason: str) -> ReadingExample:
    raise ValueError(reason)


def _line(line: str, number: str) -> ReadingExample:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(record, Mapping):
        raise ValueError("not a JSON object")
    return _example(record, number)


def _example(record: Mapping[str, Any], number: str) -> ReadingExample:
    question, passage = record["question"], _passage(record)
    if not isinstance(question, str) or not any(map(str.isalnum, question)):
        raise ValueError(f"question {question!r} has no words")
    answers = record.get("answers", []) if not record.get("is_impossible") else []
    negatives = tuple(map(_passage, record.get("negatives", [])))
    ranges = tuple(dict.fromkeys(_range(passage.text, answer) for answer in answers))
    in_full = record.get("in_full", "")
    if not isinstance(in_full, str):
        raise ValueError(f"in_full {in_full!r} is not a text")
    f"{question}{in_full}".encode()
    marked = record.get("evidence")
    evidence = None if marked is None else tuple(_marked(passage.text, each) for each in marked)
    kind = str(record.get("kind") or "")
    return ReadingExample(str(record.get("id", number)), question, passage, ranges, negatives, in_full, evidence, kind)


def _passage(record: Mapping[str, Any]) -> TitledText:
    title, text = record.get("title") or "", record["context"]
    if not isinstance(text, str) or not text.strip() or not isinstance(title, str):
        raise ValueError("the context is not a text")
    f"{title}{text}".encode()
    return TitledText(title, text)


def _marked(text: str, given: Sequence[Any]) -> tuple[int, int]:
    start, end = given
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
        raise ValueError(f"evidence {given!r} is no range of its context, which has {len(text)} characters")
    return start, end


def _range(text: str, answer: Mapping[str, Any]) -> tuple[int, int]:
    said, start = answer["text"], answer["answer_start"] if "answer_start" in answer else answer["start"]
    if not isinstance(said, str) or not said.strip():
        raise ValueError(f"answer {said!r} is empty")
    if not isinstance(start, int) or start < 0 or text[start : start + len(said)] != said:
        there = text[start : start + len(said)] if isinstance(start, int) and start >= 0 else ""
        raise ValueError(f"answer {said!r} does not occur at position {start!r} of its context, which has {there!r}")
    return start, start + len(said)
