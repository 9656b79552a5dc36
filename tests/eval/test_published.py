"""The papers' tables: numbers, captions and columns as they are printed, and averages that must follow from them."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from quoth_eval.papers import items
from quoth_eval.published import Published, published, published_for
from quoth_eval.report import Result, Row
from quoth_eval.tasks import NAMES

DOCS = Path(__file__).parents[2] / "docs"
LANGUAGES = ("ar", "cs", "el", "hi", "iw", "jp", "ko", "ml", "mn", "pl", "ru", "ta", "th", "tr", "zh")
RELATIONS = [
    f"P{number}"
    for number in (
        *(17, 19, 20, 26, 36, 40, 50, 69, 106, 112, 127, 131, 136, 159, 170, 175, 176, 264, 276, 407, 413, 495, 740),
        800,
    )
]
CAPTIONS = {
    "npm-table-1": "Zero-shot results on closed-set tasks.",
    "npm-table-2": "Results on TempLAMA, on an unchanged set, a changed set, and a macro-average over two",
    "npm-table-3": "Results on the entity translation task.",
    "npm-table-4": "Inference speed measured on Subj",
    "npm-table-5": "Statistics of downstream datasets.",
    "npm-table-6": "Statistics of the retrieval corpus.",
    "npm-table-7": "Statistics of the entity translation benchmark.",
    "npm-table-8": "Results on open-set tasks (numbers used in Figure 6).",
    "npm-table-9": "Comparison to GPT-3 on AG News and SST-2.",
    "npm-table-10": "Results on the entity translation task.",
    "npm-table-11": "Results on the entity translation task given an oracle passage.",
    "npm-figure-1": "An illustration of NPM.",
    "npm-figure-2": "Inference of NPM",
    "npm-figure-3": "Training of NPM.",
    "npm-figure-4": "Our span masking",
    "npm-figure-5": "Predictions from RoBERTa (baseline) and NPM.",
    "npm-figure-6": "Zero-shot results on knowledge tasks.",
    "npm-figure-7": "Ablation on the size of the reference corpus,",
    "npm-figure-8": "Performance on LAMA and TempLAMA tasks, broken down based on the number of BPE splits",
    "npm-figure-9": "Predictions from RoBERTa (baseline) and NPM on a topic classification task",
    "realm-table-1": "Test results on Open-QA benchmarks.",
    "realm-table-2": "Ablation experiments on NQ's development set.",
    "realm-table-3": "An example where REALM utilizes retrieved documents to better predict masked tokens.",
    "realm-table-4": "An example where REALM adapts to the updated knowledge corpus.",
    "realm-figure-1": "REALM augments language model pre-training with a neural knowledge retriever",
    "realm-figure-2": "The overall framework of REALM.",
    "realm-figure-3": "REALM pre-training with asynchronous MIPS refreshes.",
    "realm-figure-4": "The Retrieval Utility (RU, described in Eq. 2) vs the number of pre-training steps.",
    "zero-ner-table-1": "The macro average of the top-20 retrieval accuracies (denoted as Recall@20) on the",
    "zero-ner-table-2": "The top-20 and top-100 retrieval accuracies (%) on EQ test sets.",
    "zero-ner-table-3": "The top-20 retrieval accuracy on the test sets of EntityQuestions dataset.",
    "zero-ner-figure-1": "An overview of our proposed zero-shot dense retrieval system.",
    "zero-ner-figure-2": "The top-20 retrieval accuracy on author (P50, Who is the author of [E]?), where the test set",
    "zero-ner-figure-3": "A UMAP projection of the queries and the corresponding top-20 keys retrieved by (a) DPR-NQ",
    "zero-ner-figure-4": "The top-20 retrieval accuracy for author (P50, Who is the author of [E]?).",
}
TABLES: dict[str, tuple[list[str], dict[str, list[float | None]], int]] = {
    "npm-table-1": (
        ["AGN", "Yahoo", "Subj", "SST-2", "MR", "RT", "CR", "Amz", "RTE", "Avg"],
        {
            "RoBERTa": [71.3, 41.4, 67.6, 84.5, 81.7, 81.1, 80.4, 83.5, 57.4, 72.1],
            "GPT-2 kNN-LM (Shi et al., 2022)": [78.8, 51.0, 62.5, 84.2, 78.2, 80.6, 84.3, 85.7, 55.6, 73.4],
            "NPM": [74.5, 53.9, 75.5, 87.2, 83.7, 86.0, 81.2, 83.4, 61.7, 76.4],
        },
        12,
    ),
    "npm-table-2": (
        [
            "Unchanged, outdated Wikipedia",
            "Unchanged, updated",
            "Changed, outdated Wikipedia",
            "Changed, updated",
            "AVG",
        ],
        {"BM25 + T5": [13.7, 14.9, 3.0, 20.1, 17.5], "NPM": [18.9, 19.5, 2.9, 17.5, 18.5]},
        9,
    ),
    "npm-table-3": (["w/o BM25", "w/ BM25"], {"NPM": [None, 52.4], "mT5 XL": [4.1, 56.6]}, 9),
    "npm-table-4": (
        ["Subj Acc", "Subj #Q/sec", "NQ Acc", "NQ #Q/sec"],
        {"RoBERTa": [67.6, 36.36, None, None], "OPT 6.7B + BM25": [None, None, 10.7, 0.12]},
        7,
    ),
    "npm-table-8": (
        ["T-REx All", "T-REx UHN", "T-REx Hard", "Google RE All", "Google RE UHN", "KML", "TQA", "NQ"],
        {
            "T5": [13.3, 5.5, 10.7, 1.1, 0.4, 1.6, 4.2, 0.5],
            "GPT-3 175B": [25.7, 24.1, 24.7, 1.1, 1.0, 6.5, 49.0, 11.4],
            "BM25 + GPT-3 175B": [32.0, 31.6, 31.3, 11.4, 11.9, 12.2, 44.9, 6.4],
            "NPM": [34.5, 29.0, 32.1, 27.9, 23.0, 15.6, 32.2, 10.8],
        },
        19,
    ),
    "npm-table-9": (
        ["AGN 0-shot", "AGN 4-shot", "SST-2 0-shot", "SST-2 4-shot"],
        {"GPT-3 2.7B (Zhao et al., 2021)": [44.7, 43.3, 57.2, 59.1], "NPM single": [74.2, None, 86.8, None]},
        15,
    ),
    "npm-table-10": (
        [*LANGUAGES, "AVG"],
        {
            "NPM": [
                *(51.9, 33.0, 60.9, 63.2, 63.7, 59.0, 60.5, 50.9, 46.9, 33.3, 61.2, 51.2, 60.8, 32.7, 56.9, 52.4),
            ]
        },
        17,
    ),
    "npm-table-11": (
        [*LANGUAGES, "AVG"],
        {
            "NPM": [
                *(70.3, 44.0, 76.8, 74.0, 82.4, 71.3, 73.2, 58.5, 59.4, 45.2, 71.5, 68.8, 66.2, 45.3, 74.5, 65.4),
            ]
        },
        9,
    ),
    "realm-table-1": (
        ["NQ", "WQ", "CT"],
        {
            "ORQA (Lee et al., 2019)": [33.3, 36.4, 30.1],
            "REALM, pre-trained on Wikipedia": [39.2, 40.2, 46.8],
            "REALM, pre-trained on CC-News": [40.4, 40.7, 42.9],
        },
        11,
    ),
    "realm-table-2": (
        ["Exact Match", "Zero-shot Retrieval Recall@5"],
        {"REALM": [38.2, 38.5], "Baseline (ORQA)": [31.3, 13.9], "30x stale MIPS": [28.7, 15.1]},
        7,
    ),
    "realm-table-3": (["p(Fermat)"], {"BERT, no retrieval": [1.1e-14]}, 3),
    "realm-table-4": (["first", "second", "third"], {"BERT: also, then, later": [0.13, 0.08, 0.05]}, 3),
    "zero-ner-table-1": (
        ["Recall@20 (macro average)"],
        {"BM25": [72.0], "DPR-NQ": [45.1], "SPAR-PAQ (PAQ Λ + DPR-multi)": [74.5], "Zero-NeR": [67.1]},
        11,
    ),
    "zero-ner-table-2": (
        ["Top-20", "Top-100"],
        {
            "query: entity span, condition: full span": [67.1, 77.5],
            "query: full span, condition: full span": [28.6, 44.7],
        },
        3,
    ),
    "zero-ner-table-3": ([*RELATIONS, "macro average", "micro average"], {}, 10),
    "zero-ner-figure-4": (["mean of author (P50)"], {"Full Set": [82.0], "Random": [35.8], "Max IDF_ent": [21.0]}, 3),
}
NOT_MEANS = {("npm-table-11", "T5"), ("npm-table-11", "T5 3B")}
BY_ID = {item.id: item for item in items() if not item.ours}


def numbers(table: Published) -> dict[str, list[float | None]]:
    return {system: list(values) for system, values in table.rows}


def test_captions_are_the_papers() -> None:
    assert {*CAPTIONS} == {*BY_ID}
    for name, caption in CAPTIONS.items():
        assert BY_ID[name].caption.startswith(caption), name


def test_tables_have_the_papers_columns_rows_and_numbers() -> None:
    assert {name for name, item in BY_ID.items() if item.published} == {*TABLES}
    for name, (columns, rows, count) in TABLES.items():
        table = BY_ID[name].published
        assert table
        assert [column.name for column in table.columns] == columns, name
        assert len(table.rows) == count, name
        assert all(len(values) == len(columns) for *_, values in (*table.rows, *table.ours)), name
        found = numbers(table)
        for system, values in rows.items():
            assert found[system] == values, (name, system)


@pytest.mark.parametrize(
    ("name", "average"),
    [("npm-table-1", "Avg"), ("npm-table-10", "AVG"), ("npm-table-11", "AVG"), ("zero-ner-table-3", "")],
)
def test_averages_follow_from_the_columns(name: str, average: str) -> None:
    """A digit that was read wrongly would move the mean of its row. Two of the papers' own averages do not follow."""
    table = BY_ID[name].published
    assert table
    names = [column.name for column in table.columns]
    at = names.index(average or "macro average")
    for system, values in numbers(table).items():
        parts, mean = values[:at], values[at]
        if mean is not None and None not in parts and (name, system) not in NOT_MEANS:
            assert fmean(each for each in parts if each is not None) == pytest.approx(mean, abs=0.1), system


def test_tables_that_repeat_numbers_agree() -> None:
    """Zero-NeR's table 1 has the averages of its table 3; NPM's table 3 those of table 10; table 9 has columns of 1."""
    by_relation = numbers(_table("zero-ner-table-3"))
    macro = {system.partition(" (")[0]: values[-2] for system, values in by_relation.items()}
    for system, (value,) in numbers(_table("zero-ner-table-1")).items():
        if system != "DPR-PAQ (Sciavolino et al. 2021)":
            assert macro[system.partition(" (")[0]] == value
    by_language = {system: values[-1] for system, values in numbers(_table("npm-table-10")).items()}
    for system, (without, within) in numbers(_table("npm-table-3")).items():
        named = by_language.get(f"BM25 + {system}", by_language[system])
        assert (named, by_language[system]) == (within, within if without is None else without), system
    closed, two = numbers(_table("npm-table-1")), numbers(_table("npm-table-9"))
    for system in ("RoBERTa", "NPM"):
        assert [closed[system][0], closed[system][3]] == [two[system][0], two[system][2]]
    assert numbers(_table("npm-table-4"))["NPM"][2:] == [10.8, 4.52]
    assert numbers(_table("npm-table-8"))["NPM"][-1] == 10.8


def _table(name: str) -> Published:
    table = BY_ID[name].published
    assert table
    return table


def test_columns_are_of_our_tasks() -> None:
    for table in published():
        assert re.search(r"arXiv:\d{4}\.\d{5}$", table.source)
        for column in table.columns:
            assert {*column.measures} <= {*NAMES, "lama", "entities"}, column.name
            assert not (column.groups and column.macro)
    values = {value for table, _ in published_for("curatedtrec") for _, row in table.rows for value in row[2:]}
    assert values == {21.3, 25.7, 30.1, 46.8, 42.9, None}


def test_our_numbers_stand_in_the_sections_that_they_link_to() -> None:
    for table in published():
        for system, where, values in table.ours:
            page, _, anchor = where.partition("#")
            text = (DOCS / page).read_text(encoding="utf-8")
            heads = [*re.finditer(r"^#+ (.*)$", text, re.MULTILINE)]
            slugs = [re.sub(r"[^\w-]", "", head[1].lower().replace(" ", "-")) for head in heads]
            at = slugs.index(anchor)
            end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
            section = text[heads[at].start() : end]
            for value in values:
                assert value is None or re.search(rf"(?<![\d.]){value}(?![\d.])", section), (table.where, system, value)


def test_a_column_is_of_its_groups_of_the_mean_over_groups_or_the_speed() -> None:
    rows = tuple(
        Row("m", str(n), "q?", (), {"exact_match": float(right)}, {"relation": relation}, seconds=0.5)
        for n, (relation, right) in enumerate([("a", 1), ("a", 1), ("a", 0), ("b", 0)])
    )
    result = Result("m", rows)
    whole, macro, one = (
        next(table for table in published() if table.where == where).columns[at]
        for where, at in (
            ("Guu et al. 2020, table 1", 0),
            ("Min et al. 2022, table 3", 1),
            ("Min et al. 2022, table 4", 3),
        )
    )
    assert str(whole.of(result, "nq")).split()[0] == "50.0"
    assert one.of(result, "nq") == 2.0
    assert macro.of(result, "translation") is None  # no row has a language


def test_a_run_is_set_beside_the_columns_that_it_tells_apart() -> None:
    """Google-RE's facts and T-REx's are one task, as are questions by language with and without the oracle passage."""
    assert published_for("lama") == published_for("translation") == []
    assert {column.name for _, columns in published_for("nq") for column in columns} == {"NQ Acc", "NQ", "NQ #Q/sec"}
    assert len(published_for("entities")) > 2
