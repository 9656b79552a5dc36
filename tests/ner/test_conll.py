"""CoNLL files: sentences, documents, parts, and what is wrong with a line."""

import lzma
from pathlib import Path

import pytest

from quoth.errors import InputError
from quoth.ner.data import joined, read_conll
from quoth.records import TaggedSpan, TaggedText

WIKI = """-DOCSTART- O

The O
Seine I-LOC
in O
New I-LOC
York I-LOC

Paris I-LOC

-DOCSTART- O

Quoth I-MISC
Poe I-PER
"""
TWEETS = "Ada\tB-person\nMia\tB-person\nAcme\tB-corporation\nInc\tI-corporation\n\t\nhi\tO\n"


def test_sentences_and_documents(tmp_path: Path) -> None:
    (tmp_path / "wiki").write_text(WIKI, encoding="utf-8")
    first, second = read_conll(str(tmp_path / "wiki"))
    assert first == [
        TaggedText("The Seine in New York", (TaggedSpan(4, 9, "LOC"), TaggedSpan(13, 21, "LOC"))),
        TaggedText("Paris", (TaggedSpan(0, 5, "LOC"),)),
    ]
    assert second == [TaggedText("Quoth Poe", (TaggedSpan(0, 5, "MISC"), TaggedSpan(6, 9, "PER")))]


def test_without_documents_each_sentence_is_one(tmp_path: Path) -> None:
    (tmp_path / "tweets.xz").write_bytes(lzma.compress(TWEETS.encode()))
    people, nothing = read_conll(str(tmp_path / "tweets.xz"))
    assert [(each.start, each.end, each.label) for each in people[0].spans] == [
        (0, 3, "PER"),
        (4, 7, "PER"),
        (8, 16, "ORG"),
    ]
    assert nothing == [TaggedText("hi", ())]


def test_parts_divide_the_documents(tmp_path: Path) -> None:
    file = tmp_path / "many"
    file.write_text("".join(f"w{i} O\n\n" for i in range(500)), encoding="utf-8")
    parts = {part: [d[0].text for d in read_conll(f"{file}:{part}")] for part in ("train", "dev", "test")}
    assert sorted(text for part in parts.values() for text in part) == sorted(f"w{i}" for i in range(500))
    assert 60 < len(parts["test"]) < 140
    assert 25 < len(parts["dev"]) < 80


def test_joined_sentences_keep_their_spans() -> None:
    text = joined(
        [TaggedText("hi", ()), TaggedText("Ada in Rome", (TaggedSpan(0, 3, "PER"), TaggedSpan(7, 11, "LOC")))]
    )
    assert text.text == "hi Ada in Rome"
    assert [text.text[each.start : each.end] for each in text.spans] == ["Ada", "Rome"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Ada B-PER\nMia\n", r"x:2: 'Mia'; it must be a word and O, B-CLASS or I-CLASS"),
        (b"Ada PER\n", r"x:1: 'Ada PER'"),
        (b"Ada O\n\xff O\n", r"x:2: not UTF-8 text"),
        (b"\n\n", r"x: no sentence; give a CoNLL file"),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_conll(str(tmp_path / "x"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: cannot be read .* give a file that exists"):
        read_conll(str(tmp_path / "nowhere"))
    (tmp_path / "bad.xz").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"bad\.xz: cannot be read"):
        read_conll(str(tmp_path / "bad.xz"))
