"""A short run of the soak: clients and writers at once, and every quotation compared with its document."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import quoth
from tiny import TEXT, tiny_npm

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.soak import Seen, report, soak

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc, of Linux")
SECONDS = float(os.environ.get("QUOTH_TEST_SOAK", "4"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    corpus = quoth.Corpus.create(tmp_path / "notes.quoth")
    corpus.add(
        [quoth.Document(f"d/{i}", f"T{i}", f"{each.capitalize()} It is in Ghent.") for i, each in enumerate(TEXT)]
    )
    return corpus.path


def test_answers_are_quotations_while_the_corpus_changes(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tiny_npm(tmp_path / "tiny"))
    (tmp_path / "soak").mkdir()
    seen = soak(corpus, tmp_path / "soak", SECONDS, 3, "--model", model, "--reader", model)
    assert seen.faults == []
    asked = {each.removesuffix(" 200") for each in seen.statuses if each.endswith(" 200")}
    assert asked >= {"ask", "corpus", "fill", "read", "search", "verify"}
    assert seen.statuses["compact done"]
    assert len({snapshot for snapshot, *_ in seen.quotations}) > 3
    report(seen)
    assert "| fill |" in capsys.readouterr().out


def test_a_wrong_quotation_is_a_fault() -> None:
    seen = Seen()
    seen.texts["a"] += [(1, "Paris is old."), (4, "Rome is old."), (6, None)]
    for snapshot, text in ((1, "Paris"), (3, "Paris"), (5, "Rome ")):
        seen.quoted(snapshot, "a", 0, 5, text)
    seen.compare()
    assert seen.faults == []
    for snapshot, document in ((4, "a"), (6, "a"), (1, "b")):
        seen.quoted(snapshot, document, 0, 5, "Paris")
    seen.compare()
    assert len(seen.faults) == 3
