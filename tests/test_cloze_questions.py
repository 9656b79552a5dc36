"""Questions made of a text's own sentences: the script over the sample documents."""

import json
import subprocess
import sys
from pathlib import Path

from quoth.corpus.documents import read_documents
from quoth.corpus.passages import sentences
from quoth.datasets.questions import read_questions

ROOT = Path(__file__).parents[1]
PAGES = str(ROOT / "samples" / "atlas-2016.jsonl")
ASKING = ("who", "where", "what organization", "when", "what")


def is_within(words: list[str], sentence: str) -> bool:
    """Whether the words stand in the sentence, in this order."""
    rest = iter(sentence.split())
    return all(word in rest for word in words)


def made(folder: Path, *options: str) -> list[dict[str, str]]:
    script, out = ROOT / "scripts" / "cloze_questions.py", folder / "made.jsonl"
    subprocess.run([sys.executable, script, PAGES, "-o", out, "--count", "12", *options], check=True, timeout=300)
    assert len(read_questions(str(out))) == 12
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_a_sentence_answers_each_question(tmp_path: Path) -> None:
    known = [each.text[a:b] for each in read_documents(PAGES) for a, b in sentences(each.text)]
    for each in made(tmp_path):
        (answer,) = each["answer"]
        asked = max((word for word in ASKING if each["question"].startswith(f"{word} ")), key=len)
        words = each["question"].removeprefix(asked).removesuffix("?").split()
        assert any(
            answer in sentence and is_within(words, sentence.replace(answer, " ", 1).rstrip(" .")) for sentence in known
        ), each


def test_another_seed_asks_others_and_excluded_pages_are_left_out(tmp_path: Path) -> None:
    first = made(tmp_path)
    assert made(tmp_path) == first != made(tmp_path, "--seed", "1")
    listing = tmp_path / "excluded.jsonl"
    documents = list(read_documents(PAGES))
    listing.write_text("".join(json.dumps({"id": each.id}) + "\n" for each in documents[60:]), encoding="utf-8")
    text = " ".join(each.text for each in documents[:60])
    assert all(each["answer"][0] in text for each in made(tmp_path, "--exclude", str(listing)))
