"""Questions files: what they say, and that a mistake is one line that names the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoth.errors import InputError
from quoth.tables.columns import Column, columns_of

LINES = "Who signed it?\nWhen does it end?"
CSV = """name,question,type,threshold,question
signer,Who signed it?,,,
end,"When does it end,
and why?",date,0.9,What is the last day?
law,Which law?,"choice of New York, Delaware",,
"""
TOML = """# a table
[[column]]
name = "signer"
question = "Who signed it?"

[[column]]
question = ["When does it end?", "What is the last day?"]
type = "date"
threshold = 0.9
"""


def saved(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


@pytest.mark.parametrize("text", [LINES, f"{LINES}\n", LINES.replace("\n", "\r\n"), f"\ufeff {LINES}"])
def test_a_question_a_line(tmp_path: Path, text: str) -> None:
    made = columns_of(saved(tmp_path, "q.txt", text))
    assert made == [Column("Who signed it?", "Who signed it?"), Column("When does it end?", "When does it end?")]


def test_csv(tmp_path: Path) -> None:
    signer, end, law = columns_of(saved(tmp_path, "q.csv", CSV))
    assert signer == Column("signer", ("Who signed it?",))
    assert end == Column("end", ("When does it end,\nand why?", "What is the last day?"), "date", 0.9)
    assert (law.kind, law.choices) == ("choice", ("New York", "Delaware"))


def test_toml(tmp_path: Path) -> None:
    signer, end = columns_of(str(saved(tmp_path, "q.toml", TOML)))
    assert signer == Column("signer", "Who signed it?")
    assert end.name == "When does it end?"
    assert end.wordings == ("When does it end?", "What is the last day?")
    assert (end.type, end.threshold) == ("date", 0.9)


def test_questions_and_mappings() -> None:
    made = columns_of(["Who?", Column("n", "How many?", "number"), {"question": "When?", "type": "date"}])
    assert [(each.name, each.kind) for each in made] == [("Who?", "text"), ("n", "number"), ("When?", "date")]
    with pytest.raises(InputError, match="a second column named 'Who\\?'"):
        columns_of(["Who?", "Who?"])


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("q.txt", "Who?\n\nWhen?\n", 2, "an empty line"),
        ("q.txt", "Who?\n \n", 2, "an empty line"),
        ("q.txt", "Who?\nWhen?\nWho?\n", 3, "a second column named 'Who?'"),
        ("q.txt", "Who?\n???\n", 2, "has no words"),
        ("q.csv", "question,type\nWho?,text\nWhen?,dat\n", 3, "type 'dat'; did you mean date?"),
        ("q.csv", "question,type\nWho?,choice\n", 2, "type 'choice'"),
        ("q.csv", 'question\n"Who\nis it?"\n\nWhen?\n', 4, "an empty line"),
        ("q.csv", 'question,name\n"Who\nis it?",a\nWhen?,a\n', 4, "a second column named 'a'"),
        ("q.csv", "question,threshold\nWho?,2\n", 2, "threshold 2.0"),
        ("q.csv", "question,threshold\nWho?,high\n", 2, "threshold 'high'"),
        ("q.csv", "question\nWho?,text\n", 2, "2 fields, but 1 names"),
        ("q.csv", "name,type\na,text\n", 1, "the first line must be"),
        ("q.csv", 'question\n"Who"x\n', 2, "not CSV"),
        ("q.csv", "question,name\n,a\n", 2, "has no question"),
        ("q.toml", "[[column]]\nname = 'a'\n", 1, "has no question"),
        ("q.toml", TOML.replace("date", "dates"), 6, "type 'dates'; did you mean date?"),
        ("q.toml", TOML.replace("threshold", "treshold"), 6, "field 'treshold'; did you mean threshold?"),
        ("q.toml", TOML.replace("question = [", "question = ["[:-1]), 7, "not TOML"),
        ("q.toml", TOML + '[[column]]\nname = "signer"\nquestion = "Who?"\n', 10, "a second column"),
        ("q.toml", TOML.replace("0.9", '"high"'), 6, "threshold 'high'"),
        ("q.toml", "question = 1\n", 1, "write [[column]]"),
        ("q.toml", "[[column]]\nquestion = 1\n", 1, "question must be a text"),
        ("q.toml", "[[column]]\nquestion = [1]\n", 1, "question must be a text"),
        ("q.toml", "[[column]]\nquestion = 'Who?'\nname = 1\n", 1, "no name"),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, name: str, text: str, line: int, said: str) -> None:
    path = saved(tmp_path, name, text)
    with pytest.raises(InputError) as raised:
        columns_of(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("name", "text"), [("q.txt", ""), ("q.csv", ""), ("q.csv", "question\n")])
def test_no_question(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError, match="no question in it"):
        columns_of(saved(tmp_path, name, text))
