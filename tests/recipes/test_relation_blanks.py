"""Which training texts share twelve words in a row with the evidence of a test."""

import json
from pathlib import Path

from script_modules import script_module

SCRIPT = script_module("relation_blanks")
EVIDENCE = (
    'Ada Lovelace (1815 – 1852), born in London, was an English mathematician and writer of the "first" programs.'
)


def test_texts_that_share_twelve_words_are_found_whatever_is_between_them(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps({"id": 1, "evidence": [{"masked": "Nothing.", "text": EVIDENCE}]}) + "\n", "utf-8")
    words = EVIDENCE.replace("(", "").replace(")", ",").replace('"', "“").replace("–", "to").split()
    texts = [
        EVIDENCE,
        "He read: born in LONDON was an English mathematician, and writer of the first programs!",
        " ".join(words[6:-1]),
        "Nothing.",
        "",
    ]
    assert SCRIPT.sharing([str(file)], texts) == {0, 1}
    assert SCRIPT.sharing([], texts) == set()
