"""What a corpus of real text that is embedded already costs: bytes, memory, a dense fill by step, agreement with exact
search, a peer's search, adding, embedding. Nothing is written into the corpus.

Shape suffixes: D dimensions, K neighbours, B blanks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import SAMPLES, alone, available_bytes, machine, seconds, status_bytes
from quoth import NPM, Corpus, Document, read_documents
from quoth.answers.evidence import propose
from quoth.answers.options import ResolvedOptions
from quoth.datasets.blanks import KINDS, draw_blanks
from quoth.index.codes import Codes
from quoth.index.key_table import FILES, KeyHits, KeyTable
from quoth.index.search import deal, live, search_exactly, search_together
from quoth.index.tables import KeyTables
from quoth.npm.phrases import ScoredPhrases
from quoth.storage import read_json
from quoth.timing import timed

K = 4096
BLANK_PASSAGES, TINY_PASSAGES = 2000, 2
EMBEDDED_PASSAGES = (32, 128, 512)
ROWS_AT_A_TIME = 1 << 16

Blanks = Sequence[tuple[str, int]]
"""Texts with a blank, each with the passage row that it was drawn from, which is not searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """What was measured of one embedded corpus. Sizes are bytes, times seconds; `dense` and `restricted` hold the
    median of each step and of the whole; `anon` is memory of the process's own, `file` mapped files'.

    `proposed` rows are compared exactly for each of a blank's two queries, `proposed_of_many` where there are so many
    segments that each holds few of the nearest. `samples` are passages of the corpus that were embedded anew on one
    thread: tokens and seconds.
    """

    machine: str
    model: str
    precision: str
    tokens: int
    passages: int
    segments: int
    dimensions: int
    vector_bytes: int
    code_bytes: int
    column_bytes: int
    proposed: int
    proposed_of_many: int
    opened: dict[str, float]
    tiny_opened: dict[str, float]
    searching: dict[str, float]
    dense: dict[str, float]
    restricted: dict[str, float]
    peer: str
    peer_seconds: float
    queries: int
    recall: float
    blanks: int
    agreed: int
    add_seconds: float
    tiny_add_seconds: float
    samples: list[list[float]]


def measure(path: Path, model: str, num_blanks: int, num_queries: int) -> Embedded:
    """Everything about one corpus, each part in a process of its own, on one thread but for adding."""
    blanks = drawn(Corpus.open(path), max(num_blanks, num_queries))
    with tempfile.TemporaryDirectory() as work:
        tiny = Path(work) / "tiny.quoth"
        alone(make_tiny, path, tiny, model)
        facts = {
            **alone(facts_of, path, model),
            "opened": best_opened(path, model),
            "tiny_opened": best_opened(tiny, model),
            "samples": alone(embed_samples, path, model, threads=1),
            **alone(added, path, tiny, Path(work)),
        }
    facts |= alone(searched, path, model, blanks, num_blanks, num_queries, threads=1)
    return Embedded(machine=machine(), model=model, **facts)


def drawn(corpus: Corpus, count: int) -> Blanks:
    """Blanks of both kinds by turns, from passages drawn at random."""
    rows = corpus.live_rows()
    rows = np.sort(np.random.default_rng(0).choice(rows, min(len(rows), BLANK_PASSAGES), replace=False))
    passages = [corpus.passage(row) for row in rows.tolist()]
    by_kind = [draw_blanks(passages, kind, -(-count // 2), seed=0) for kind in KINDS]
    return [(blank.text, blank.row) for pair in zip(*by_kind, strict=True) for blank in pair]


def proposals(tables: Sequence[KeyTable]) -> dict[str, int]:
    """How many vectors are compared for one query, here and in a corpus of very many segments."""
    coded = [table for table in tables if isinstance(table.codes, Codes)]
    if not coded:
        return {"proposed": 0, "proposed_of_many": 0}
    total = sum(table.num_keys for table in tables)
    facts = max(coded, key=lambda table: table.num_keys).codes.facts
    return {
        "proposed": sum(table.codes.count(K, table.num_keys / total) for table in coded),
        "proposed_of_many": int(K * max([facts.factor, *(factor for _, factor in facts.deeper or ())])),
    }


def folder_bytes(folder: Path) -> dict[str, int]:
    """The sizes of one model's key tables: vectors, codes, columns."""
    sizes = {"vector_bytes": 0, "code_bytes": 0, "column_bytes": 0}
    for file in folder.glob("*/*"):
        if file.parent.suffix == ".codes":
            sizes["code_bytes"] += file.stat().st_size
        elif file.suffix == ".npy":
            sizes["column_bytes" if file.stem in FILES else "vector_bytes"] += file.stat().st_size
    return sizes


def facts_of(path: Path, model: str) -> dict[str, Any]:
    """What can be seen without searching."""
    npm = NPM.from_pretrained(model)
    corpus, tables = opened_tables(path, npm)
    folder = path / "keys" / npm.fingerprint[:16]
    return {
        "precision": read_json(next(folder.glob("[0-9]*/table.json")))["precision"],
        "tokens": sum(table.num_keys for table in tables),
        "passages": corpus.num_passages,
        "segments": len(tables),
        "dimensions": npm.encoder.dimensions,
        **proposals(tables),
        **folder_bytes(folder),
    }


def opened_tables(path: Path, npm: NPM) -> tuple[Corpus, list[KeyTable]]:
    corpus = Corpus.open(path)
    return corpus, KeyTables(corpus, npm.encoder).open()[0]


def best_opened(path: Path, model: str) -> dict[str, float]:
    """`opened` in three fresh processes, the least of each."""
    found = [alone(opened, path, model, threads=1) for _ in range(3)]
    return {name: min(each[name] for each in found) for name in found[0]}


def opened(path: Path, model: str) -> dict[str, float]:
    """How long a process that has loaded the model takes to open a corpus with its vectors, and what it then holds."""
    npm = NPM.from_pretrained(model)
    held: list[Any] = []
    took = seconds(lambda: held.append(opened_tables(path, npm)))
    return {"seconds": took, **resident()}


def resident() -> dict[str, float]:
    """This process's memory now."""
    return {"anon": status_bytes("RssAnon"), "file": status_bytes("RssFile")}


def make_tiny(path: Path, tiny: Path, model: str) -> None:
    """An embedded corpus of the first few passages of another."""
    copied(islice(Corpus.open(path).passages(), TINY_PASSAGES), tiny, NPM.from_pretrained(model))


def copied(passages: Any, path: Path, npm: NPM) -> tuple[int, float]:
    """Passages as documents of a new corpus, embedded: its tokens, and the seconds that embedding took."""
    corpus = Corpus.create(path)
    corpus.add(Document(f"p{n}", each.title, each.text) for n, each in enumerate(passages))
    took = seconds(NPM(npm.encoder, [corpus]).embed)
    return sum(table.num_keys for table in opened_tables(path, npm)[1]), took


def embed_samples(path: Path, model: str) -> list[list[float]]:
    """Tokens and seconds of passages drawn at random and embedded, ever more of them."""
    npm, corpus = NPM.from_pretrained(model), Corpus.open(path)
    rows = np.random.default_rng(0).permutation(corpus.live_rows()).tolist()
    with tempfile.TemporaryDirectory() as work:
        copied(map(corpus.passage, rows[:8]), Path(work) / "warm.quoth", npm)
        sizes = [size for size in EMBEDDED_PASSAGES if size <= len(rows)]
        return [list(copied(map(corpus.passage, rows[:n]), Path(work) / f"{n}.quoth", npm)) for n in sizes]


def added(path: Path, tiny: Path, work: Path) -> dict[str, float]:
    """How long adding 1,000 documents takes: to a copy of the corpus without vectors, and to one of the tiny corpus."""
    texts = [document.text for document in read_documents(SAMPLES)]
    found = {}
    for name, source in (("add_seconds", path), ("tiny_add_seconds", tiny)):
        copy = shutil.copytree(source, work / name, ignore=shutil.ignore_patterns("keys", "*.lock"))
        os.sync()
        corpus = Corpus.open(copy)
        found[name] = min(add_seconds(corpus, texts) for _ in range(3))
    return found


def add_seconds(corpus: Corpus, texts: Sequence[str]) -> float:
    """How long a corpus takes to add 1,000 documents."""
    first = corpus.num_documents
    documents = (Document(f"new{n}", "", texts[n % len(texts)]) for n in range(first, first + 1000))
    return seconds(lambda: corpus.add(documents))


def searched(path: Path, model: str, blanks: Blanks, num_blanks: int, num_queries: int) -> dict[str, Any]:
    """Fills of the first `num_queries` blanks timed, and a peer's search for them; the first `num_blanks` answers
    compared with those of exact search."""
    corpus, npm = Corpus.open(path), NPM.from_pretrained(model)
    npm = NPM(npm.encoder, [corpus])
    timed_blanks, compared = blanks[:num_queries], blanks[:num_blanks]
    dense = medians(npm, timed_blanks, None)
    searching = resident()
    tables = opened_tables(path, npm)[1]
    queries = npm.encoder.blanks([text for text, _ in compared])
    recall, agreed = agreement(tables, compared, queries)
    return {
        "dense": dense,
        "restricted": medians(npm, timed_blanks, 3),
        "searching": searching,
        **peer(tables, npm.encoder.blanks([text for text, _ in timed_blanks])),
        "queries": len(timed_blanks),
        "recall": recall,
        "blanks": len(compared),
        "agreed": agreed,
    }


def medians(npm: NPM, blanks: Blanks, passages: int | None) -> dict[str, float]:
    """The median seconds of each step of a fill, and of the whole, after one round to warm up."""
    found: list[dict[str, float]] = []
    for text, row in (*blanks, *blanks):
        with timed() as steps:
            npm.fill(text, passages=passages, exclude=[row], read=0)
        found.append({**steps, "whole": sum(steps.values())})
    return {name: median(each[name] for each in found[len(blanks) :]) for name in found[0]}


def agreement(tables: list[KeyTable], blanks: Blanks, queries: Any) -> tuple[float, int]:
    """The share of the exact neighbours that are found, and for how many blanks the best answer is that of exact
    search."""
    hidden = [{row} for _, row in blanks]
    coded = search_together(tables, hidden, np.stack(queries, axis=1), K)
    found = wanted = agreed = 0
    for (mine, my_text), (theirs, their_text) in zip(
        answers(coded, queries), answers(exactly(tables, hidden, queries), queries), strict=True
    ):
        found += sum(len(np.intersect1d(a, b)) for a, b in zip(mine, theirs, strict=True))
        wanted += sum(map(len, theirs))
        agreed += my_text == their_text
    return found / wanted, agreed


def exactly(tables: Sequence[KeyTable], hidden: Sequence[set[int]], queries: Any) -> Iterator[list[KeyHits]]:
    """As `search_together` without codes; every vector is read once, for all blanks."""
    flat_QD = np.concatenate([np.stack(pair) for pair in queries])
    longest = max(int(np.diff(table.offsets_P1).max()) for table in tables)
    near = [search_exactly(table, flat_QD, K + longest) for table in tables]
    for b, rows in enumerate(hidden):
        kept = [
            [best.at(live(table.without(rows), best.rows_K)) for best in found[2 * b : 2 * b + 2]]
            for table, found in zip(tables, near, strict=True)
        ]
        starts, ends = (deal([both[side] for both in kept], K) for side in (0, 1))
        yield [KeyHits(*hits) for hits in zip(tables, starts, ends, strict=True)]


def answers(found: Iterable[list[KeyHits]], queries: Any) -> Iterator[tuple[list[Any], str]]:
    """For each blank the rows that were hit, by table, and the best answer."""
    options = ResolvedOptions()
    for (q_start_D, q_end_D), hits in zip(queries, found, strict=True):
        best = next(propose(ScoredPhrases(hits, q_start_D, q_end_D, options), options)).best
        yield [rows for each in hits for rows in (each.start_rows, each.end_rows)], best.text


def peer(tables: Sequence[KeyTable], queries: Any) -> dict[str, Any]:
    """FAISS comparing every vector: in fp32, or in eight bits where that does not fit into half the free memory, and
    one part after another where that does not either."""
    import faiss

    tokens, dimensions = sum(table.num_keys for table in tables), len(queries[0][0])
    room = available_bytes() // 2
    name, spec = ("FAISS flat, fp32", "Flat") if 4 * dimensions * tokens <= room else ("FAISS flat, 8 bits", "SQ8")
    # An index takes three times its size while it grows.
    parts = -(-3 * dimensions * tokens // room) if spec == "SQ8" and dimensions * tokens > room // 2 else 1
    every, taken = blocks(tables), 0.0
    for _ in range(parts):
        flat = faiss.index_factory(dimensions, spec, faiss.METRIC_INNER_PRODUCT)
        for block_ND in every:
            if not flat.is_trained:
                flat.train(block_ND)
            flat.add(block_ND)
            if flat.ntotal >= tokens / parts:
                break
        searches = [partial(flat.search, np.stack(pair), K) for pair in queries]
        searches[0]()
        taken += median(map(seconds, searches))
    return {"peer": name if parts == 1 else f"{name}, in {parts} parts", "peer_seconds": taken}


def blocks(tables: Sequence[KeyTable]) -> Iterator[Any]:
    """Every stored vector as floats, some at a time."""
    for table in tables:
        for first in range(0, table.num_keys, ROWS_AT_A_TIME):
            yield table.vectors.floats(slice(first, min(first + ROWS_AT_A_TIME, table.num_keys)))
