"""Every shipped model in bf16 and int8, the default on processors that multiply it faster; other tests run in fp32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth.hub import kind_of
from quoth.registry import SYSTEMS

DOCUMENTS = [
    quoth.Document("carmen", "Carmen", "Carmen is an opera by Georges Bizet, first performed in Paris in 1875."),
    quoth.Document("seine", "Seine", "The Seine is a river of France. It flows through Paris to the sea at Le Havre."),
]
NAMES = [name for row in SYSTEMS.values() if row.searches for name in row.shipped if name != "quoth-base"]
"""All but the one whose base is not in the package."""


@pytest.mark.parametrize("name", NAMES)
def test_it_finds_what_it_finds_in_fp32(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, found = SYSTEMS[kind_of(name)], []
    for dtype in ("fp32", "bf16", "int8"):
        monkeypatch.setenv("QUOTH_DTYPE", dtype)
        corpus = quoth.Corpus.create(tmp_path / dtype)
        corpus.add(DOCUMENTS)
        model: Any = quoth.load(name, corpus)
        if row.needs_vectors:
            model.embed()
        if row.answers:
            best = model.ask("Who composed the opera Carmen?", top_k=1)[0]
            found.append((best.text, best.evidence[0].document_id))
        else:
            found.append(model.search("Who is Georges Bizet?", 1)[0].passage.document_id)
    assert found[0] == found[1] == found[2] or name == row.bare  # whose heads are random


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_the_tagger_finds_names(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_DTYPE", dtype)
    [spans] = quoth.Tagger.load("quoth-tagger").spans([DOCUMENTS[0].text])
    assert "Georges Bizet" in {DOCUMENTS[0].text[each.start : each.end] for each in spans}
