"""Questions as keywords: which words stay, by hand, in many draws."""

import gzip
import json
import random
from pathlib import Path

from script_modules import script_module

SCRIPT = script_module("keyword_questions")
QUESTION = "What is the admin password of the router's first page?"


def test_the_words_that_tell_something_stay() -> None:
    drawn = {SCRIPT.keywords(QUESTION, random.Random(seed)) for seed in range(200)}
    assert "admin password router's first page" in drawn
    assert "admin password router first page" in drawn
    whole = {"admin", "password", "router", "router's", "first", "page"}
    for each in drawn:
        assert each is not None
        words = each.split()
        assert set(words) <= whole
        assert len(words) in (4, 5)
    assert any(each and each.startswith(("first page", "page", "router")) for each in drawn)


def test_some_keep_how_they_ask_and_blanks_lose_theirs() -> None:
    drawn = {SCRIPT.keywords("When did Ada Lovelace die?", random.Random(seed)) for seed in range(200)}
    assert {"When Ada Lovelace die", "ada lovelace die", "die Ada Lovelace"} <= drawn
    assert SCRIPT.keywords("The port is [MASK].", random.Random(0)) is None


def test_a_line_keeps_its_question_for_a_teacher(tmp_path: Path) -> None:
    row = {"id": 7, "title": "T", "context": "The port is 80.", "question": "What is the default port?", "answers": []}
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, [row, row | {"question": "Who is he?"}])), "utf-8")
    SCRIPT.main([str(tmp_path / "q.jsonl"), "-o", str(tmp_path / "k.jsonl.gz")])
    with gzip.open(tmp_path / "k.jsonl.gz", "rt", encoding="utf-8") as lines:
        [line] = map(json.loads, lines)
    assert line["question"].casefold() in ("default port", "port default")
    assert line == row | {"id": "7-words", "question": line["question"], "in_full": row["question"]}
