"""The README's Python example, run as it stands."""

import doctest
import re
import shlex
import tempfile
from pathlib import Path

import pytest

from quoth import NPM, Corpus, Reader, read_documents
from quoth.cli.main import main

ROOT = Path(__file__).resolve().parents[1]


def test_the_python_example_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    assert len(example.examples) > 5
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(example).failed == 0


def test_its_commands_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that need no vectors and train nothing, in their order, with the shipped models."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("quoth ")]
    verbs = ("index", "fill", "ask", "search", "classify", "replace", "compact")
    wanting = {"--dense", "--model", "--mode"}
    commands = [words[1:] for words in lines if words[1] in verbs and not wanting & {*words}]
    assert [command[0] for command in commands] == [*verbs]
    for command in commands:
        assert main(command) == 0
    shown = capsys.readouterr().out
    assert "Louvre" in shown
    assert "Leo Tolstoy" in shown


def test_its_first_blank_is_answered_and_a_name_that_no_text_has_is_not_found(tmp_path: Path) -> None:
    """With the shipped weights and thresholds."""
    corpus = Corpus.create(tmp_path / "atlas.quoth")
    corpus.add(read_documents(str(ROOT / "samples" / "atlas-2026.jsonl")))
    blank = re.search(r'^quoth fill \S+ "(.+)"', (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert blank
    filled = NPM.from_pretrained(corpus=corpus).fill(blank[1])
    assert (filled.status, filled[0].text) == ("answered", "Louvre")
    reader = Reader.from_pretrained(corpus=corpus)
    assert reader.ask("Who founded Zorblaxia?").status == "not_found"
    assert reader.ask("Who wrote War and Peace?").status == "answered"
