"""The commands that look for texts word for word: find and trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Run
from quoth import Corpus, Document

TEXT = "He said: “It is a <b>long</b> way to the sea.”\nIt is a long way, too."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("d", "A title", TEXT)])
    return corpus.path


def test_find_prints_a_place_on_a_line(path: Path, run: Run) -> None:
    code, out, err = run("find", path, "is a LONG way")
    assert (code, err) == (0, "quoth: 1 place\n")
    assert out == f"d · 50–63 · case  {' '.join(TEXT.split())}\n"
    code, out, _ = run("find", path, "way", "--limit", 1)
    assert len(out.splitlines()) == 1
    code, out, err = run("find", path, "it is", "--json")
    assert (code, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    assert (first["document_id"], first["text"], first["degree"]) == ("d", "It is", "case")
    assert TEXT[second["start"] : second["end"]] == "It is"


def test_find_counts_and_tells_by_its_exit_code(path: Path, run: Run, tmp_path: Path) -> None:
    assert run("find", path, "way", "--count") == (0, "2\n", "")
    assert run("find", path, "way", "--count", "--json") == (0, '{"text": "way", "count": 2}\n', "")
    assert run("find", path, "nowhere") == (1, "", "quoth: 'nowhere' occurs nowhere\n")
    assert run("find", path, "nowhere", "--count")[:2] == (1, "0\n")
    code, _, err = run("find", path, "  ")
    assert (code, err.count("\n")) == (2, 1)
    other = Corpus.create(tmp_path / "other.quoth")
    other.add([Document("e", "", "a way")])
    code, out, err = run("find", path, "a way", "--corpus", other.path)
    assert (code, out.startswith("other e · 0–5 · exact")) == (0, True)


def test_the_index_is_made_beforehand_if_asked(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    code, _, _ = run("index", tmp_path / "a.txt", "-o", tmp_path / "a.quoth", "--exact", "--no-vectors")
    assert (code, len([*(tmp_path / "a.quoth" / "exact").glob("0*")])) == (0, 1)
    code, out, _ = run("embed", tmp_path / "a.quoth", "--keys", "exact")
    assert (code, out) == (0, f"{tmp_path / 'a.quoth'}: exact index of 1 segment, 0 of them made now\n")
    code, _, err = run("embed", tmp_path / "a.quoth", "--keys", "exact", "--model", "quoth-mini")
    assert (code, "--model" in err) == (2, True)


def test_trace_prints_the_text_and_its_parts(path: Path, run: Run) -> None:
    code, out, err = run("trace", path, "They say it is a long way, too. Yes.", "--min-words", 4)
    assert code == 0
    assert out.startswith("They say it is a long way, too. Yes.\n\nit is a long way, too  1 place\n")
    assert "67 % of the words are in 1 part" in err
    code, out, _ = run("trace", path, "They say it is a long way, too. Yes.", "--min-words", 4, "--json")
    found = json.loads(out)
    assert found["coverage"] == {"d": 6 / 9}
    [span] = found["spans"]
    assert (span["text"], span["start"], span["places"][0]["document_id"]) == ("it is a long way, too", 9, "d")


def test_trace_reads_files_and_writes_a_page(path: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<title>Draft</title><p>I: to the sea.” It is a long way, too. &lt;i&gt;</p>")
    page = tmp_path / "page.html"
    assert run("trace", path, tmp_path / "a.html", "--html", page)[0] == 0
    content = page.read_text(encoding="utf-8")
    assert '<mark class="rare">to the sea.” It is a long way, too</mark>' in content
    assert "&lt;i&gt;" in content
    assert "http" not in content
    code, _, err = run("trace", path, "missing.docx")
    assert (code, "there is no file missing.docx" in err) == (2, True)
