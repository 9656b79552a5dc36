"""The page of benchmarks is made from what was measured; no time is measured here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import __main__ as command
from benchmarks import embedded, page, plots
from benchmarks.extrapolate import comparable, duration, extrapolate, largest, short, size

from quoth import NPM, Corpus, Document
from tiny import TEXT, tiny_npm


def facts(tokens: int = 10_000_000, **others: Any) -> dict[str, Any]:
    """A corpus of round numbers: 440 bytes a token, 40 of them of codes and 16 of columns; 150 tokens a passage."""
    steps = {"encode": 0.01, "search": 0.05, "expand": 0.01, "score": 0.02, "explain": 0.01, "whole": 0.1}
    held = {"seconds": 0.004, "anon": 2e8, "file": 1e8}
    return {
        "machine": "a machine",
        "model": "quoth-mini",
        "precision": "sq8",
        "tokens": tokens,
        "passages": tokens // 150,
        "segments": 1,
        "dimensions": 384,
        "vector_bytes": 384 * tokens,
        "code_bytes": 40 * tokens,
        "column_bytes": 16 * tokens,
        "proposed": 10_000,
        "proposed_of_many": 20_000,
        "opened": held,
        "tiny_opened": {**held, "seconds": 0.002},
        "searching": held,
        "dense": steps,
        "restricted": {**steps, "whole": 0.02},
        "peer": "FAISS flat, fp32",
        "peer_seconds": 2.0,
        "queries": 20,
        "recall": 0.98,
        "blanks": 100,
        "agreed": 99,
        "add_seconds": 0.2,
        "tiny_add_seconds": 0.1,
        "samples": [[100, 0.1], [20_000, 10.0]],
        **others,
    }


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (size(440e9), "440 GB"),
        (size(43.9e12), "43.9 TB"),
        (size(12), "12 B"),
        (duration(0.0171), "17.1 ms"),
        (duration(45), "45 s"),
        (duration(100), "1.67 min"),
        (duration(86400 * 365 * 20), "20 years"),
        (short(257_555), "0.26 M"),
        (short(12_000_000), "12 M"),
        (short(10**11), "100 B"),
    ],
)
def test_quantities_are_written_in_fitting_units(made: str, expected: str) -> None:
    assert made == expected


def test_an_extrapolation_worked_out_by_hand() -> None:
    found = extrapolate(facts(), 10**11)
    assert (found.disk, found.hot) == (44e12, 4e12)
    assert (found.by_memory, found.by_disk, found.machines) == (20, 6, 20)
    assert found.search_one_core == pytest.approx(500)
    assert found.fill_one_core == pytest.approx(500.05)
    by_bandwidth, by_cores = 4e12 / 16 / 200e9 / 20, 500 / 64 / 20
    assert by_cores > by_bandwidth
    assert found.fill == pytest.approx(0.05 + by_cores)
    quick = facts(dense=facts()["dense"] | {"search": 1e-3, "whole": 0.051})
    assert extrapolate(quick, 10**11).fill == pytest.approx(0.05 + by_bandwidth)
    assert found.reads == 2 * 20_000
    assert found.embed_one_core == pytest.approx(10**11 / 2000)
    assert found.embed == pytest.approx(10**11 / 2000 / 64 / 20)
    assert found.embedding_rent == pytest.approx(4 * 10**11 / 2000 / 64 / 3600)
    assert found.monthly_rent == 20 * 730 * 4


def test_lines_set_ours_beside_the_peer() -> None:
    rows = [each.row() for each in page.corpus_results(facts())]
    assert "| — search | 50 ms | 2 s (FAISS flat, fp32) | 40× |" in rows
    assert "| open it in a fresh process | 4 ms | 2 ms (the tiny corpus) | 0.5× |" in rows
    assert "| bytes per token that must be hot: codes | 40 |  |  |" in rows
    assert any(row.startswith("| bytes per token on disk: vectors 384, codes 40, columns 16 | 440 |") for row in rows)
    assert "| best answers equal to those of exact search | 99 of 100 |  |  |" in rows


def test_runs_on_corpora_of_different_sizes_accumulate_and_a_second_run_replaces_the_first() -> None:
    data: dict[str, Any] = {"corpora": []}
    for tokens, agreed in ((10**7, 1), (10**6, 2), (10**7, 3)):
        page.remember(data, facts(tokens, agreed=agreed))
    assert [(each["tokens"], each["agreed"]) for each in data["corpora"]] == [(10**6, 2), (10**7, 3)]
    page.remember(data, facts(10**6, precision="fp16"))
    assert [each["precision"] for each in data["corpora"]] == ["fp16", "sq8", "sq8"]


def test_only_corpora_of_one_model_and_precision_are_compared() -> None:
    corpora = [facts(10), facts(20, precision="fp16"), facts(20), facts(5, model="other")]
    assert largest(corpora) == corpora[2]
    assert comparable(corpora) == [corpora[0], corpora[2]]


def test_the_page_extrapolates_from_the_largest_corpus_and_says_so() -> None:
    data = {"machine": "", "results": [], "million": None, "corpora": [facts(10**6), facts()]}
    made = page.text(data)
    assert "Extrapolated, not measured**, from the largest corpus above: 10,000,000 tokens, sq8" in made
    assert "| disk | 440 GB | 44 TB |" in made
    assert "| machines: by memory, by disk | 1, 1 | 20, 6 |" in made
    assert "| — these machines for a month (730 h) | $2,920 | $58,400 |" in made
    assert "{" not in made


def test_a_page_without_any_corpus_has_the_first_table_alone() -> None:
    result = {"what": "open", "ours": "1 ms", "peer": "2 ms (x)", "ratio": 2.0}
    made = page.text({"machine": "m", "results": [result], "million": None, "corpora": []})
    assert made.endswith("| open | 1 ms | 2 ms (x) | 2× |\n")


def test_the_page_in_docs_is_what_the_data_make() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(json.loads(page.DATA.read_text(encoding="utf-8")))


def test_without_matplotlib_the_page_is_written_and_the_picture_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "PICTURE", tmp_path / "scale.png")
    command.write({"machine": "", "results": [], "million": None, "corpora": [facts()]})
    assert page.PAGE.is_file()
    assert capsys.readouterr().err == f"{plots.INSTALL}\n"


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    million = {"tokens": 10**6, "vector_bytes": 1, "code_bytes": 2, "column_bytes": 3, "search_seconds": 0.01}
    data = {"corpora": [facts(10**6), facts()], "million": million}
    for name in ("a.png", "b.png"):
        plots.draw(data, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").stat().st_size < 200_000


def test_answers_by_codes_are_compared_with_those_of_exact_search_by_any_npm(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(Document(f"d{n}", "", text) for n, text in enumerate(TEXT))
    npm = NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpus=corpus)
    npm.embed()
    tables = embedded.opened_tables(corpus.path, npm)[1]
    blanks = [("The [MASK] of the city.", 0), ("A [MASK] was built.", 1)]
    queries = npm.encoder.blanks([text for text, _ in blanks])
    found = embedded.exactly(tables, [{row} for _, row in blanks], queries)
    for (rows, text), (asked, row) in zip(embedded.answers(found, queries), blanks, strict=True):
        best = npm.fill(asked, passages=None, read=0, k=embedded.K, exclude=[row], distinct=False)[0]
        assert text == best.text
        assert sum(map(len, rows)) > 0
    assert embedded.agreement(tables, blanks, queries) == (1.0, 2)
