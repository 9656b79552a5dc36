"""The commands verify-quote and verify-quotes: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quoth import Corpus, Document
from quoth.cli.main import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = Corpus.create(tmp_path / "c.quoth")
    made.add([Document("carmen.md", "Carmen", "Carmen is an opera in four acts. It was not well received in 1875.")])
    Corpus.create(tmp_path / "d.quoth").add([Document("faust.md", "Faust", "Faust is an opera in five acts.")])
    (tmp_path / "good.md").write_text("It is “an opera in four acts”.\n\n> Faust is an opera in five acts.\n")
    (tmp_path / "bad.md").write_text("“It was well received in 1875” and “zebras and quaggas are here” (none.pdf)\n")
    (tmp_path / "none.md").write_text("Nothing is quoted.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["verify-quote", "c.quoth", "an opera in four acts"], 0),
        (["verify-quote", "c.quoth", "d.quoth", "an opera in five acts"], 0),
        (["verify-quote", "c.quoth", "an opera in five acts"], 1),
        (["verify-quote", "c.quoth", "an opera in five acts", "--fail-on", "absent"], 0),
        (["verify-quote", "c.quoth", "zebras and quaggas"], 1),
        (["verify-quote", "c.quoth", " "], 2),
        (["verify-quote", "c.quoth"], 2),
        (["verify-quote", "none.quoth", "an opera"], 2),
        (["verify-quotes", "c.quoth", "d.quoth", "good.md"], 0),
        (["verify-quotes", "c.quoth", "good.md"], 1),
        (["verify-quotes", "c.quoth", "d.quoth", "good.md", "bad.md"], 1),
        (["verify-quotes", "c.quoth", "bad.md", "--fail-on", "none"], 0),
        (["verify-quotes", "c.quoth", "bad.md", "--fail-on", "unreadable"], 1),
        (["verify-quotes", "c.quoth", "none.md"], 0),
        (["verify-quotes", "c.quoth", "missing.md"], 2),
        (["verify-quotes", "c.quoth"], 2),
        (["verify-quotes", "c.quoth", "good.md", "--fail-on", "false"], 2),
        (["verify-quotes", "c.quoth", "good.md", "--sarif", "c.quoth"], 2),
        (["verify-quotes", "c.quoth", "good.md", "--html", "none/report.html"], 2),
    ],
)
def test_exit_codes(here: Path, arguments: list[str], code: int) -> None:
    assert main(arguments) == code


def test_verdicts_in_words(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify-quotes", "c.quoth", "bad.md"])
    assert capsys.readouterr().out.splitlines() == [
        "bad.md:1  altered",
        "  “It was well received in 1875”",
        "  NEGATION missing: “not”",
        "  carmen.md (Carmen), characters 33–65: “It was ⟦not⟧ well received in 1875”",
        "",
        "bad.md:1  unreadable",
        "  “zebras and quaggas are here”",
        "  none.pdf is not in the corpus, or is not text",
        "",
        "2 quotations: 1 altered, 1 unreadable",
    ]
    main(["verify-quotes", "c.quoth", "none.md"])
    assert capsys.readouterr().err == "quoth: none.md: no quotations in it\n"


def test_json_and_reports(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify-quotes", "c.quoth", "bad.md", "none.md", "--json", "--html", "r.html", "--sarif", "r.sarif"])
    altered, unreadable = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"draft", "quote", "start", "end", "status", "evidence", "changes"} <= set(altered)
    draft = (here / "bad.md").read_text()
    assert [draft[each["start"] : each["end"]] for each in (altered, unreadable)] == [
        altered["quote"],
        unreadable["quote"],
    ]
    assert altered["changes"][0]["concerns"] == ["negation", "word"]
    assert (altered["evidence"][0]["document_id"], unreadable["evidence"]) == ("carmen.md", [])
    assert len(json.loads((here / "r.sarif").read_text())["runs"][0]["results"]) == 2
    assert "zebras and quaggas" in (here / "r.html").read_text()
    main(["verify-quote", "c.quoth", "an opera in four acts", "--json"])
    assert json.loads(capsys.readouterr().out)["status"] == "verbatim"


def test_verify_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", "--help"])
    assert "quoth verify-quotes" in " ".join(capsys.readouterr().out.split())
