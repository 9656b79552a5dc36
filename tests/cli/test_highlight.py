"""`quoth highlight`: what is marked, and that whatever is wrong is one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from test_marks import quads, said
from written import lines, pdf

from commands import Run
from quoth import Corpus, Evidence, Prediction, read_documents

TWO = pdf(lines("One."), lines("The capital of Uganda is Kampala, and that of Kenya is Nairobi."))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "two.pdf").write_bytes(TWO)
    (folder / "b.pdf").write_bytes(pdf(lines("Kampala is a city.")))
    (folder / "c.md").write_text("# Kampala\n\nIt is a **city**.")
    return folder


@pytest.fixture
def answer(folder: Path, tmp_path: Path) -> Callable[..., str]:
    """A line as `quoth ask --json` prints it, of an answer in these documents."""
    corpus = Corpus.create(tmp_path / "r.quoth")
    corpus.add(read_documents(folder))

    def line(phrase: str, *names: str, status: Any = "answered", **more: Any) -> str:
        places = []
        for passage in corpus.passages():
            if passage.document_id in names:
                start = passage.start + passage.text.index(phrase)
                places.append(
                    Evidence(
                        passage.document_id, "T", passage.row, start, start + len(phrase), passage.text, 0.9, "r",
                        passage.start, passage.source_map,
                    )
                )  # fmt: skip
        return json.dumps(Prediction(phrase, 0.0, 0.9, tuple(places), "", status).to_dict() | more) + "\n"

    return line


def test_answers_are_marked_where_they_are(
    folder: Path, answer: Callable[..., str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (
        answer("Kampala", "a/two.pdf", "c.md", query="Where?") + "\n" + answer("Nairobi", "a/two.pdf", status="unsure")
    )
    (tmp_path / "answers.json").write_text(content)
    out = tmp_path / "out.pdf"
    code, told, notes = run("highlight", tmp_path / "answers.json", "--files", folder, "-o", out)
    assert (code, told) == (0, f"{out}: 1 place marked in a/two.pdf, on page 2\n")
    assert notes == "quoth: 1 place not on a page of a PDF left out\n"
    assert said(out.read_bytes(), 1) == "Kampala"
    assert out.read_bytes().startswith(TWO)
    assert (folder / "a" / "two.pdf").read_bytes() == TWO
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content.encode())))
    code, told, _ = run("highlight", "-", "--files", folder, "-o", tmp_path / "all.pdf", "--unsure")
    assert (code, told) == (0, f"{tmp_path / 'all.pdf'}: 2 places marked in a/two.pdf, on page 2\n")
    assert len(quads((tmp_path / "all.pdf").read_bytes())) == 2


def test_answers_in_several_documents(folder: Path, answer: Callable[..., str], tmp_path: Path, run: Run) -> None:
    (tmp_path / "answers.json").write_text(answer("Kampala", "a/two.pdf", "b.pdf"))
    given = ("highlight", tmp_path / "answers.json", "--files", folder, "-o", tmp_path / "out.pdf")
    code, _, err = run(*given)
    assert (code, err.endswith("answers are in 2 documents ('a/two.pdf', 'b.pdf'); name one with --document\n")) == (
        2,
        True,
    )
    assert run(*given, "--document", "c.pdf")[2].endswith("answers are in 'a/two.pdf', 'b.pdf'\n")
    assert run(*given, "--document", "b.pdf")[0] == 0
    assert said((tmp_path / "out.pdf").read_bytes()) == "Kampala"


PLACE = {
    "document_id": "a/two.pdf", "start": 0, "end": 4, "context": "One.", "context_start": 0,
    "location": {"page": 1, "rectangles": [[1.0, 1.0, 2.0, 2.0]]},
}  # fmt: skip
ANSWER = {"text": "One.", "probability": 0.9, "status": "answered"}
BAD = "answers.json:1: not an answer; pass the output of `quoth ask --json`"


def with_place(**changed: Any) -> str:
    return json.dumps(ANSWER | {"evidence": [PLACE | changed]})


def at(page: Any, *sides: Any) -> str:
    return with_place(location={"page": page, "rectangles": [*sides]})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no answer is on a page of a PDF"),
        (json.dumps(ANSWER | {"evidence": []}), "no answer is on a page of a PDF"),
        (with_place(location={"line": 3}), "no answer is on a page of a PDF"),
        (with_place(document_id="../secret.pdf"), "'../secret.pdf': there is no such file below"),
        (with_place(document_id="/etc/passwd.pdf"), "there is no such file below"),
        (with_place(document_id="c.md"), "'c.md' is not a PDF"),
        (with_place(document_id="\0.pdf"), "there is no such file below"),
        (with_place(), "page 1 has other words where the answer was"),
        (at(3, [1, 1, 2, 2]), "it has 2 pages, but a place is on page 3"),
        (with_place(document_id=["a"]), BAD),
        (with_place(context=None), BAD),
        (at(0, [1, 1, 2, 2]), BAD),
        (at(True, [1, 1, 101, 2]), BAD),
        (at(2**40, [1, 1, 2, 2]), BAD),
        (at(1), BAD),
        (at(1, [1, 1, float("nan"), 2]), BAD),
        (at(1, [1, 1, 2]), BAD),
        (at(1, "abcd"), BAD),
        (json.dumps({"text": "x"}), BAD),
        ("[]", BAD),
        ("{", BAD),
        ("[" * 100_000, BAD),
        ("\udc00", BAD),
    ],
)
def test_what_cannot_be_marked_is_one_line(content: str, why: str, folder: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "secret.pdf").write_bytes(TWO)
    (tmp_path / "answers.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    code, out, err = run("highlight", tmp_path / "answers.json", "--files", folder, "-o", tmp_path / "out.pdf")
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out.pdf").exists()


def test_files_that_cannot_be_marked(folder: Path, answer: Callable[..., str], tmp_path: Path, run: Run) -> None:
    (tmp_path / "answers.json").write_text(answer("Kampala", "b.pdf"))
    given = ("highlight", tmp_path / "answers.json", "--files", folder, "-o")
    (folder / "b.pdf").write_bytes(pdf(lines("secret"), encrypt=StandardEncryption("key")))
    assert run(*given, tmp_path / "out.pdf")[::2] == (
        2,
        "quoth: 'b.pdf': it is encrypted; save it without a password\n",
    )
    (folder / "b.pdf").write_bytes(b"%PDF-1.7\nnothing")
    assert "'b.pdf': not a PDF" in run(*given, tmp_path / "out.pdf")[2]
    before = (folder / "a" / "two.pdf").read_bytes()
    code, _, err = run(*given, folder / "a" / "two.pdf")
    assert (code, err) == (2, f"quoth: {folder / 'a' / 'two.pdf'} already exists; choose another name\n")
    assert (folder / "a" / "two.pdf").read_bytes() == before
    (tmp_path / "link.pdf").symlink_to(tmp_path / "elsewhere.pdf")
    assert "is a symbolic link" in run(*given, tmp_path / "link.pdf")[2]
    assert "there is no such folder" in run("highlight", "x", "--files", tmp_path / "no", "-o", "y.pdf")[2]
    code, _, err = run("highlight", tmp_path / "no.json", "--files", folder, "-o", tmp_path / "out.pdf")
    assert (code != 0, err.count("\n")) == (True, 1)
