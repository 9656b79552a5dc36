"""Questions made of a text's own sentences: the script over the sample documents."""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quoth.corpus.documents import read_documents
from quoth.datasets.questions import read_questions
from quoth.text.passages import sentences
from script_modules import script_module

ROOT = Path(__file__).parents[2]
PAGES = str(ROOT / "samples" / "atlas-2016.jsonl")
ASKING = ("who", "where", "what organization", "when", "what")


def is_within(words: list[str], sentence: str) -> bool:
    """Whether the words stand in the sentence, in this order."""
    rest = iter(sentence.split())
    return all(word in rest for word in words)


Made = Callable[..., list[dict[str, str]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What the script makes with some options. The tagger is loaded once, and sees no more sentences than are asked
    for."""
    script: Any = script_module("cloze_questions")
    script.Tagger = SimpleNamespace(load=cache(script.Tagger.load))
    script.TAGGED_AT_A_TIME = 16
    out = tmp_path_factory.mktemp("made") / "made.jsonl"

    def run(*options: str) -> list[dict[str, str]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["cloze_questions.py", PAGES, "-o", str(out), "--count", "12", *options])
            script.main()
        assert len(read_questions(str(out))) == 12
        return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]

    return run


@pytest.fixture(scope="module")
def first(made: Made) -> list[dict[str, str]]:
    return made()


def test_a_sentence_answers_each_question(first: list[dict[str, str]]) -> None:
    known = [each.text[a:b] for each in read_documents(PAGES) for a, b in sentences(each.text)]
    for each in first:
        (answer,) = each["answer"]
        asked = max((word for word in ASKING if each["question"].startswith(f"{word} ")), key=len)
        words = each["question"].removeprefix(asked).removesuffix("?").split()
        assert any(
            answer in sentence and is_within(words, sentence.replace(answer, " ", 1).rstrip(" .")) for sentence in known
        ), each


def test_another_seed_asks_others_and_excluded_pages_are_left_out(
    made: Made, first: list[dict[str, str]], tmp_path: Path
) -> None:
    assert made() == first != made("--seed", "1")
    listing = tmp_path / "excluded.jsonl"
    documents = list(read_documents(PAGES))
    listing.write_text("".join(json.dumps({"id": each.id}) + "\n" for each in documents[60:]), encoding="utf-8")
    text = " ".join(each.text for each in documents[:60])
    assert all(each["answer"][0] in text for each in made("--exclude", str(listing)))
