"""The commands that cite, and that serve assistants, on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import Run
from quoth import Corpus, Document, Evidence, Prediction, Predictions
from quoth.cli import query

TEXT = "👍 The church of Hagios Demetrios is in Thessaloniki."
START = TEXT.index("Thessaloniki")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus, and in the place of every model one that knows one answer in it."""
    made = Corpus.create(tmp_path / "c.quoth")
    made.add([Document("d", "Hagios Demetrios", TEXT, {"url": "https://example.org/d"})])

    class Oracle:
        def fill(self, text: str, **options: Any) -> Predictions:
            place = Evidence("d", "Hagios Demetrios", 0, START, START + 12, TEXT, 0.75, "c")
            best = Prediction("Thessaloniki", -0.5, 0.75, (place,), text)
            return Predictions([best, Prediction("Paris", -1.5, 0.25, ())])

        ask = fill

    monkeypatch.setattr(query, "load_predictor", lambda *_: Oracle())
    return made.path


@pytest.mark.parametrize("verb", ["fill", "ask"])
def test_json_has_the_citations_of_every_place(verb: str, corpus: Path, run: Run) -> None:
    code, out, err = run(verb, corpus, "It is in [MASK].", "--json", "--cite", "chars")
    assert (code, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    (place,) = first["citations"]
    assert (place["type"], place["cited_text"]) == ("char_location", "Thessaloniki")
    assert (place["start_char_index"], place["start_utf16"]) == (START, START + 1)
    assert second["citations"] == []
    selector = json.loads(run(verb, corpus, "It is in [MASK].", "--json", "--cite", "w3c")[1].splitlines()[0])
    assert selector["citations"][0]["selector"][0] == {
        "type": "TextQuoteSelector",
        "exact": "Thessaloniki",
        "prefix": TEXT[START - 32 : START],
        "suffix": ".",
    }
    assert "citations" not in json.loads(run(verb, corpus, "It is in [MASK].", "--json")[1].splitlines()[0])


def test_the_terminal_shows_the_best_place_s_citation_after_the_answers(corpus: Path, run: Run) -> None:
    code, out, _ = run("fill", corpus, "It is in [MASK].", "--cite", "link")
    assert code == 0
    assert out.endswith("\n\n  1  https://example.org/d#:~:text=Thessaloniki\n")
    shown = run("fill", corpus, "It is in [MASK].", "--cite", "chars")[1].splitlines()[-1]
    assert json.loads(shown.removeprefix("  1  "))["document_title"] == "Hagios Demetrios"


def test_another_form_is_refused(corpus: Path, run: Run) -> None:
    code, _, err = run("fill", corpus, "It is in [MASK].", "--cite", "apa")
    assert code == 2
    assert "apa" in err


def test_without_its_package_the_server_for_assistants_says_what_to_install(
    corpus: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("mcp", "mcp.server"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "quoth_serve.mcp", raising=False)
    code, out, err = run("mcp", corpus)
    assert (code, out) == (2, "")
    assert err == "quoth: quoth mcp requires the package mcp 2: pip install '.[mcp]' in a clone of Quoth\n"
