"""Reads the files of open question answering datasets as questions with their answers.

Knows: the files of NQ-open and TriviaQA (question, tab, a Python list), CuratedTREC (id, kind, question, pattern),
WebQuestions and EntityQuestions (a JSON list, or JSONL), and SQuAD 1.1. Does not know: how answers are judged.

The format is detected from the content, except for one thing: the caller must say whether the answers in a JSON file
are patterns, as CuratedTREC's are.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from quoth.corpus.checks import check_document
from quoth.corpus.documents import OnBad, bad_record, read_text
from quoth.errors import InputError
from quoth.records import Document

Read = Callable[[str], "QAExample"]
"""Reads one entry; takes the id to use if the entry has none, and raises ValueError saying what is wrong."""
Entry = tuple[str, str, Read]
"""An entry's location (": entry 7", ":7" for line 7), its number, and its reader."""

_SUFFIXES = re.compile(r"(\.(tsv|txt|jsonl?))?(\.(xz|gz|bz2))?$")
_BROKEN_JSON = (ValueError, RecursionError)
_BROKEN_LIST = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


@dataclass(frozen=True, slots=True)
class QAExample:
    """A question and the answers that count as right: phrases or, with `pattern`, regular expressions.

    `gold` is the id of the document that the question was asked about, "" if unknown.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    pattern: bool = False
    gold: str = ""


@dataclass(frozen=True, slots=True)
class Squad:
    """SQuAD's questions and its paragraphs, each a document `squad:ARTICLE:NUMBER` with its article's title."""

    paragraphs: tuple[Document, ...]
    questions: tuple[QAExample, ...]


def read_questions(
    *paths: str | Path, patterns: bool = False, skip_bad: bool = False, on_bad: OnBad | None = None
) -> list[QAExample]:
    """The questions in files of the known formats, compressed or not; `patterns` says that answers in JSON are
    patterns.

    An entry that cannot be used, such as one without an answer, raises InputError "file:line: what is wrong"; with
    `skip_bad` it is skipped instead, and `on_bad`, if given, receives the error. Raises InputError if a file cannot
    be read, has an unknown format, or contains no question.
    """
    bad = partial(bad_record, skip_bad, on_bad)
    return [question for path in map(Path, paths) for question in _collect(path, _entries(path, patterns), bad)]


def read_squad(path: str | Path) -> Squad:
    """The paragraphs and questions of a SQuAD 1.1 file. Raises InputError as `read_questions` does."""
    path = Path(path)
    content = _json(path, read_text(path))
    if not _is_squad(content):
        raise InputError(f'{path}: not a SQuAD file, which is a JSON object whose "data" lists articles')
    paragraphs = list(_paragraphs(path, content["data"]))
    questions = _collect(path, _squad_entries(paragraphs), partial(bad_record, False, None))
    return Squad(tuple(document for document, _ in paragraphs), tuple(questions))


@lru_cache(maxsize=1 << 14)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile one of CuratedTREC's answers with the flags of ORQA and DPR, for texts in NFC. Raises re.error.

    DPR's NFD would break patterns that have an accented letter in a class or after a backslash.
    """
    return re.compile(unicodedata.normalize("NFC", pattern), re.IGNORECASE | re.UNICODE | re.MULTILINE)


def _collect(path: Path, entries: Iterable[Entry], bad: OnBad) -> list[QAExample]:
    stem = _SUFFIXES.sub("", path.name)
    questions = []
    for where, number, read in entries:
        try:
            questions.append(_checked(read(f"{stem}-{number}")))
        except ValueError as error:
            bad(InputError(f"{path}{where}: {error}; fix it or skip it (--skip-bad)"))
    if not questions:
        raise InputError(f"{path}: no usable question; name a file of questions and answers")
    return questions


def _entries(path: Path, patterns: bool) -> Iterator[Entry]:
    text = read_text(path)
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    if "\t" in first:
        return _lines(text, _row)
    if first[:1] not in ("{", "["):
        raise InputError(f"{path}: neither a tab-separated table of questions and answers nor JSON; name another file")
    content = _json(path, text)
    if _is_squad(content):
        return _squad_entries(list(_paragraphs(path, content["data"])))
    if isinstance(content, list):
        numbered = enumerate(content, start=1)
        return ((f": entry {number}", str(number), partial(_record, entry, patterns)) for number, entry in numbered)
    return _lines(text, partial(_json_line, patterns=patterns))


def _lines(text: str, read: Callable[[str, str], QAExample]) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f":{number}", str(number), partial(read, line.rstrip("\r"))


def _json(path: Path, text: str) -> Any:
    """The content of a JSON file; None if it may be JSONL."""
    try:
        return json.loads(text)
    except _BROKEN_JSON as error:
        if text.lstrip().startswith("{"):
            return None
        raise InputError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON ({error}); fix the file") from None


def _row(line: str, number: str) -> QAExample:
    """A row of CuratedTREC, which quotes nothing, or of NQ-open and TriviaQA, which quote as CSV does."""
    cells = line.split("\t")
    if len(cells) == 4:
        return QAExample(cells[0] or number, cells[2], (cells[3],), pattern=True)
    try:
        cells = next(csv.reader([line], delimiter="\t"))
    except csv.Error as error:
        raise ValueError(f"not a table row ({error})") from None
    if len(cells) != 2:
        raise ValueError(f"{len(cells)} cells; expected a question and a list, or id, kind, question and pattern")
    try:
        return QAExample(number, cells[0], _phrases(ast.literal_eval(cells[1])))
    except _BROKEN_LIST:
        raise ValueError(f"{cells[1][:80]!r} is not a list of answers such as ['a', 'b']") from None


def _json_line(line: str, number: str, patterns: bool) -> QAExample:
    try:
        record = json.loads(line)
    except _BROKEN_JSON as error:
        raise ValueError(f"not JSON ({error})") from None
    return _record(record, patterns, number)


def _record(record: Any, patterns: bool, number: str) -> QAExample:
    if not isinstance(record, Mapping):
        raise ValueError("not a JSON object")
    text = record.get("question", record.get("qText"))
    answers = record.get("answers", record.get("answer", ()))
    return QAExample(str(record.get("id", record.get("qId", number))), text, _phrases(answers), patterns)


def _phrases(answers: Any) -> tuple[str, ...]:
    """The distinct answers that are not blank."""
    listed = [answers] if isinstance(answers, str) else answers
    if not isinstance(listed, Sequence) or not all(isinstance(answer, str) for answer in listed):
        raise ValueError("the answers are not a list of strings")
    return tuple(dict.fromkeys(answer for answer in listed if answer.strip()))


def _checked(question: QAExample) -> QAExample:
    if not isinstance(question.text, str) or not question.text.strip():
        raise ValueError("no question")
    question.text.encode()
    if not any(answer.strip() for answer in question.answers):
        raise ValueError("no answer")
    for pattern in question.answers if question.pattern else ():
        try:
            compile_pattern(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"answer {pattern!r} is not a regular expression ({error})") from None
    return question


def _is_squad(content: Any) -> bool:
    return isinstance(content, Mapping) and isinstance(content.get("data"), list)


def _paragraphs(path: Path, articles: Iterable[Any]) -> Iterator[tuple[Document, list[Any]]]:
    """SQuAD's paragraphs, each with the questions asked about it."""
    for number, article in enumerate(articles, start=1):
        try:
            for at, paragraph in enumerate(article["paragraphs"]):
                title = article["title"]
                document = Document(f"squad:{title}:{at}", title.replace("_", " "), paragraph["context"])
                check_document(document)
                yield document, list(paragraph["qas"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{path}: article {number} is not in SQuAD's format ({error!r}); fix it") from None


def _squad_entries(paragraphs: Iterable[tuple[Document, list[Any]]]) -> Iterator[Entry]:
    for document, asked in paragraphs:
        for number, record in enumerate(asked, start=1):
            where = f": paragraph {document.id}, question {number}"
            yield where, f"{document.id}-{number}", partial(_squad_question, record, document.id)


def _squad_question(record: Any, gold: str, number: str) -> QAExample:
    try:
        answers = _phrases([answer["text"] for answer in record["answers"]])
        return QAExample(str(record.get("id", number)), record["question"], answers, gold=gold)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not in SQuAD's format ({error!r})") from None
