"""The entity of a question by its template, to the character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quoth.errors import InputError
from quoth_eval.tasks.entities import QuestionTemplates

TEMPLATES = {
    "P19": "Where was [X] born?",
    "P40": "Who is [X]'s child?",
    "P50": "Who is the author of [X]?",
    "P131": "Where is [X] located?",
    "X2": "[X] was born where",
}


def entity(question: str, relation: str = "P19") -> str | None:
    found = QuestionTemplates(TEMPLATES).entity(question, relation)
    return None if found is None else question[slice(*found)]


@pytest.mark.parametrize(
    ("relation", "question", "wanted"),
    [
        ("P19", "Where was Ada Lovelace born?", "Ada Lovelace"),
        ("P19", "  Where was\n Ada  Lovelace\tborn ? ", "Ada  Lovelace"),
        ("P19", "Where was born born?", "born"),
        ("P19", "Where was X born", "X"),
        ("P40", "Who is Jean d'Arc's child?", "Jean d'Arc"),
        ("P50", "Who is the author of The C++ [X] (2nd ed.)?", "The C++ [X] (2nd ed.)"),
        ("P50", "Who is the author of What Is to Be Done??", "What Is to Be Done?"),
        ("P50", "Who is the author of 羅生門?", "羅生門"),
        ("P50", "Who is the author of Where Was I born", "Where Was I born"),
        ("P131", "Where is Zoe\u0308's, 🙂 located?", "Zoe\u0308's, 🙂"),
        ("X2", " Ada Lovelace was born where?", "Ada Lovelace"),
        ("P19", "where was Ada Lovelace born?", None),
        ("P19", "Where was Ada Lovelace born, and when?", None),
        ("P19", "Where wasAda born?", None),
        ("P19", "Where was born?", None),
        ("P19", "Where was  born?", None),
        ("P19", "Who is Ada's child?", None),
        ("P50", "Who is the author of ?", None),
        ("P50", "", None),
    ],
)
def test_the_entity_stands_where_its_relations_template_says(relation: str, question: str, wanted: str | None) -> None:
    assert entity(question, relation) == wanted


def test_a_long_question_takes_no_long_time() -> None:
    assert entity("Where was" + " " * 100_000 + "x " * 100_000) is None


def test_templates_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(TEMPLATES), encoding="utf-8")
    assert QuestionTemplates.read(path).entity("Where was Ada born?", "P19") == (10, 13)
    with pytest.raises(InputError, match=r"no template for relation 'P1'; use one of P19, P40"):
        QuestionTemplates.read(path).entity("Where was Ada born?", "P1")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"P19":\n"Where', "t.json:2: not JSON"),
        (b"[" * 100_000, "t.json:1: not JSON"),
        (b"", "t.json:1: not JSON"),
        (b'{"P19": "\xff [X]"}', "t.json:1: not UTF-8 text"),
        (b"[]", "t.json: not a JSON object; it must map"),
        (b"{}", "t.json: no templates; give one per relation"),
        (b'{"P19": "Where?"}', "t.json: template 'Where?' of P19: it must be a text with exactly one [X]"),
        (b'{"P17": "a [X]", "P19": "[X] or [X]?"}', "t.json: template '[X] or [X]?' of P19: it must be"),
        (b'{"P19": ["[X]"]}', "t.json: template ['[X]'] of P19: it must be"),
        (None, "t.json: cannot be read"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "t.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        QuestionTemplates.read(path)
    assert str(raised.value).startswith(f"{tmp_path}/{complaint}")
