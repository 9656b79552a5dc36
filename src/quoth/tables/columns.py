"""The columns of a table: questions, and what kind of answer each wants; and the files that they are read from.

Knows: the three forms of a questions file, and how a mistake in one is told. Does not know: answers.
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from quoth.corpus.documents import read_text
from quoth.errors import InputError, brief, nearest

TYPES = ("text", "number", "money", "date", "duration", "yes/no", "choice", "list")
SPELLED = "text, number, money, date, duration, yes/no, choice of A, B, or list"
FIELDS = ("name", "question", "type", "threshold")
_CHOICE = re.compile(r"choice\s+of\s+(.+)", re.IGNORECASE | re.DOTALL)
_TOML_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        name (str): Its heading.
        question (str | Sequence[str]): The question, or several wordings of it; the surest answer counts.
        type (str): What its values are: text, number, money, date, duration, yes/no, "choice of A, B" or list.
        threshold (float | None): Chance of being right from which an answer fills a cell. Default: the model's own.

    Raises:
        InputError: An empty name or question, an unknown type, or a threshold that is no chance.
    """

    name: str
    question: str | Sequence[str]
    type: str = "text"
    threshold: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.question, str):
            object.__setattr__(self, "question", tuple(self.question))
        if not self.wordings or not all(isinstance(each, str) for each in self.wordings):
            raise InputError(f"column {brief(self.name)} has no question; give one")
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError("the column has no name; give one")
        for each in self.wordings:
            if not any(map(str.isalnum, each)):
                raise InputError(f"question {brief(each)} has no words; ask one, such as 'Who signed it?'")
        if self.kind not in TYPES or (self.kind == "choice") != bool(self.choices):
            raise InputError(f"type {brief(self.type)}{nearest(self.type, TYPES)}; it must be {SPELLED}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"threshold {self.threshold}; it must be between 0 and 1")

    @property
    def wordings(self) -> tuple[str, ...]:
        """The question in all its wordings."""
        return (self.question,) if isinstance(self.question, str) else tuple(self.question)

    @property
    def kind(self) -> str:
        """The type, without the choices."""
        return "choice" if _CHOICE.fullmatch(self.type) else self.type

    @property
    def choices(self) -> tuple[str, ...]:
        """Of a choice, what there is to choose from."""
        said = _CHOICE.fullmatch(self.type)
        return tuple(each for each in map(str.strip, said[1].split(",")) if each) if said else ()

    def to_dict(self) -> dict[str, Any]:
        """The column as JSON has it."""
        return {"name": self.name, "question": [*self.wordings], "type": self.type, "threshold": self.threshold}


Questions = str | Path | Sequence[str | Column | Mapping[str, Any]]
"""What a table takes: a questions file, or the questions or columns themselves."""


def columns_of(questions: Questions) -> list[Column]:
    """The columns of a table. Raises InputError; of a file, with the number of the line."""
    if isinstance(questions, (str, Path)):
        return read_columns(Path(questions))
    made = []
    for number, each in enumerate(questions, 1):
        if isinstance(each, str):
            each = Column(" ".join(each.split()), each)
        made.append((number, each if isinstance(each, Column) else _column(each)))
    return _distinct(made, "questions", "questions")


def read_columns(path: Path) -> list[Column]:
    """The columns of a file: .csv with a header, .toml with a [[column]] for each, any other a question a line."""
    text = read_text(path)
    read = {".csv": _of_csv, ".toml": _of_toml}.get(path.suffix.lower(), _of_lines)
    made = []
    for line, said in read(path, text):
        try:
            made.append((line, _column(said)))
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
    return _distinct(made, f"{path}:", str(path))


def _distinct(made: Iterable[tuple[int, Column]], where: str, source: str) -> list[Column]:
    """The columns. Raises InputError if there are none, or two have one name."""
    known = dict[str, Column]()
    for line, column in made:
        if column.name in known:
            raise InputError(f"{where}{line}: a second column named {brief(column.name)}; give each its own name")
        known[column.name] = column
    if not known:
        raise InputError(f"{source}: no question in it; write one a line")
    return [*known.values()]


def _column(said: Mapping[str, Any]) -> Column:
    for name in said:
        if name not in FIELDS:
            raise InputError(f"field {brief(name)}{nearest(name, FIELDS)}; a column has {', '.join(FIELDS)}")
    question, threshold = said.get("question", ()), said.get("threshold")
    if isinstance(threshold, str):
        try:
            threshold = float(threshold) if threshold.strip() else None
        except ValueError:
            raise InputError(f"threshold {brief(threshold)}; it must be between 0 and 1") from None
    several = [question] if isinstance(question, str) else question
    are_texts = isinstance(several, (list, tuple)) and all(isinstance(each, str) for each in several)
    if not are_texts or not isinstance(threshold, (int, float, type(None))):
        raise InputError(f"column {brief(dict(said))}; question must be a text or a list of texts, threshold a number")
    name, kind = said.get("name") or next(iter(several), ""), said.get("type") or "text"
    if not isinstance(kind, str):
        raise InputError(f"type {brief(kind)}; it must be {SPELLED}")
    return Column(" ".join(name.split()) if isinstance(name, str) else name, question, kind.strip(), threshold)


def _of_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, said in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        if not said.strip():
            raise InputError(f"{path}:{line}: an empty line; write one question a line")
        yield line, {"question": said.strip()}


def _of_csv(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """A row is a column of the table; several wordings are in several fields named question."""
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    line, header = 1, list[str]()
    try:
        for row in rows:
            if not any(map(str.strip, row)):
                raise InputError(f"{path}:{line}: an empty line; write one column a line")
            if not header:
                header = [each.strip().lower() for each in row]
                if "question" not in header or not {*header} <= {*FIELDS}:
                    raise InputError(f"{path}:1: {brief(','.join(row))}; the first line must be {','.join(FIELDS)}")
            elif len(row) > len(header):
                raise InputError(f"{path}:{line}: {len(row)} fields, but {len(header)} names in the first line")
            else:
                pairs = [*zip(header, map(str.strip, row), strict=False)]
                yield line, {**dict(pairs), "question": [each for name, each in pairs if name == "question" and each]}
            line = rows.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}:{line}: not CSV ({error})") from None


def _of_toml(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        known = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _TOML_LINE.search(str(error))
        line = at[1] if at else text.count("\n") + 1
        raise InputError(f"{path}:{line}: not TOML ({_TOML_LINE.sub('', str(error))})") from None
    columns = known.get("column")
    lines = [n for n, line in enumerate(text.split("\n"), 1) if re.match(r"\s*\[\[\s*column\s*\]\]", line)]
    if [*known] != ["column"] or not isinstance(columns, list) or len(lines) != len(columns):
        raise InputError(f"{path}:1: write [[column]] before the name, question, type and threshold of each column")
    yield from zip(lines, columns, strict=True)
