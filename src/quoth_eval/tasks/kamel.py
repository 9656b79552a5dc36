"""KAMEL: questions about facts of 234 relations, with one or several answers each (Kalo and Fichtel 2022).

Knows: its files. Does not know: how a question is answered.
"""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from quoth.corpus.documents import read_records, read_text
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth_eval.tasks.closed_files import find_file

SUBJECT = "[S]"
FILE = "kamel/dev.jsonl"
SOURCE = (
    "KAMEL is at https://github.com/JanKalo/KAMEL; copy question-templates.csv and join the relations' dev.jsonl to "
    "one file"
)


def read_kamel(data: str | Path) -> list[QAExample]:
    """The questions of DIR/kamel: dev.jsonl (sub_label, obj_label, relation), asked by question-templates.csv.

    Raises InputError on a missing file, a broken line, or a relation without a template.
    """
    templates = _templates(find_file(data, "kamel/question-templates.csv", SOURCE))
    path = find_file(data, FILE, SOURCE)
    questions = []
    for line, record in read_records(path):
        try:
            relation, subject, answers = record["relation"], record["sub_label"], tuple(map(str, record["obj_label"]))
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}:{line}: not a fact of KAMEL (no {error}); fix or remove the line") from None
        if relation not in templates:
            raise InputError(f"{path}:{line}: relation {relation!r} has no template in question-templates.csv")
        questions.append(QAExample(f"{relation}-{line}", templates[relation].replace(SUBJECT, subject), answers))
    if not questions:
        raise InputError(f"{path}: no fact; name a folder with the whole file")
    return questions


def _templates(path: Path) -> dict[str, str]:
    found = {}
    for number, row in enumerate(csv.reader(StringIO(read_text(path), newline="")), start=1):
        if len(row) != 2 or SUBJECT not in row[1]:
            raise InputError(f"{path}:{number}: not a relation and a question with {SUBJECT}; fix the line")
        found[row[0]] = row[1].strip()
    return found
