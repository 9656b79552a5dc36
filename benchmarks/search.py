"""Opening, filling, searching, embedding, adding."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.embedded import K, add_seconds, folder_bytes
from benchmarks.measure import SAMPLES, Result, best_seconds, cpu_seconds
from quoth import NPM, Corpus, Document, read_documents
from quoth.answers.evidence import propose
from quoth.answers.options import ResolvedOptions
from quoth.arrays import save_array
from quoth.encoders.transformer import Transformer, pad
from quoth.hub import locate
from quoth.index.codes import DEPTH, Codes, build_codes
from quoth.index.key_table import KeyHits, KeyTable, save_columns
from quoth.index.search import search_exactly, search_tables
from quoth.index.vectors import KeyVectors, Quantizer, Spread, stored
from quoth.npm.candidates import SPARE_PIECES
from quoth.npm.config import NPMConfig
from quoth.npm.phrases import ScoredPhrases
from quoth.records import Prediction
from quoth.storage import seal_folder
from quoth.text.boundaries import MAY_END, MAY_START, SPACE_BEFORE
from quoth.text.tokenizer import batches_by_length
from quoth.timing import timed

TOKENS, DIMENSIONS, PASSAGE = 1_000_000, 384, 125
QUESTION = "The river flows through [MASK] and into the sea."


def run() -> Iterator[Result]:
    """Every benchmark of search."""
    with tempfile.TemporaryDirectory() as folder:
        yield from corpora(Path(folder))
        yield from encoding(Path(folder))
        keys, q_QD = random_table(Path(folder))
        yield dense(Path(folder), keys, q_QD)
        yield hot_path(keys, q_QD)


def corpora(folder: Path) -> Iterator[Result]:
    """What opening and adding cost, in a corpus a hundred times as large as another."""
    texts = [document.text for document in read_documents(SAMPLES)]
    large, small = (Corpus.create(folder / f"{size}.quoth") for size in ("large", "small"))
    large.add(Document(f"d{n}", "", texts[n % len(texts)]) for n in range(50_000))
    small.add(Document(f"d{n}", "", texts[n % len(texts)]) for n in range(500))
    ours, peer = (best_seconds(lambda c=each: Corpus.open(c.path)) for each in (large, small))
    yield Result(
        f"open a corpus of {large.num_passages:,} passages",
        f"{1000 * ours:.1f} ms",
        f"{1000 * peer:.1f} ms (one of {small.num_passages:,})",
        peer / ours,
    )
    ours, peer = (add_seconds(each, texts) for each in (large, small))
    yield Result("add 1,000 documents to it", f"{ours:.2f} s", f"{peer:.2f} s (to the small one)", peer / ours)


def encoding(folder: Path) -> Iterator[Result]:
    """Embedding, and filling without any vectors, against the encoder's bare forward."""
    corpus = Corpus.create(folder / "atlas.quoth")
    corpus.add(read_documents(SAMPLES))
    npm = NPM.from_pretrained("quoth-mini", corpus)
    passages = list(corpus.passages())
    tokenized = npm.encoder.tokenizer.passages([p.text for p in passages], [p.title for p in passages])
    inputs = [window.input_ids for each in tokenized for window in each.windows]
    batches = [pad([inputs[i] for i in members], 0) for members in batches_by_length(list(map(len, inputs)))]

    network = Transformer.load(locate("quoth-mini", NPMConfig).encoder).model

    @torch.inference_mode()
    def forward() -> None:
        for ids_BT, attention_BT in batches:
            network(input_ids=ids_BT, attention_mask=attention_BT)

    forward()
    bare, took = [], []
    for turn in range(3):  # in turns, so that a change of the processor's clock hits both
        fresh = Corpus.create(folder / f"atlas-{turn}.quoth")
        fresh.add(read_documents(SAMPLES))
        bare.append(cpu_seconds(forward))
        took.append(cpu_seconds(NPM(npm.encoder, [fresh]).embed))
    tokens, ours, peer = sum(map(len, inputs)), min(took), min(bare)
    yield Result(
        "embed, tokens per CPU second",
        f"{tokens / ours:,.0f}",
        f"{tokens / peer:,.0f} (the bare forward in PyTorch)",
        peer / ours,
    )
    fresh = Corpus.create(folder / "fresh.quoth")
    fresh.add(read_documents(SAMPLES))
    npm = NPM.from_pretrained("quoth-mini", fresh)
    npm.fill("warm [MASK]", passages=1, read=0)
    with timed() as steps:
        npm.fill(QUESTION, read=0)
    whole = sum(steps.values())
    yield Result(
        "fill in BM25's 3 passages by NPM alone, nothing embedded",
        f"{1000 * whole:.0f} ms",
        f"{1000 * steps['encode']:.0f} ms (the encoder alone)",
        steps["encode"] / whole,
    )


def random_table(folder: Path) -> tuple[KeyTable, Any]:
    """A million tokens of Zipfian words, vectors in clusters, some dimensions wider than others; and 32 queries."""
    rng = np.random.default_rng(0)
    spread = (24 / (24 + np.arange(DIMENSIONS))).astype(np.float32)
    centres = spread * rng.standard_normal((5000, DIMENSIONS), np.float32)
    word_N = np.minimum(rng.zipf(1.2, TOKENS), 30_000)
    raw_ND = centres[word_N % len(centres)] + 0.4 * spread * rng.standard_normal((TOKENS, DIMENSIONS), np.float32)
    raw_ND /= np.linalg.norm(raw_ND, axis=1, keepdims=True)
    q_QD = raw_ND[rng.choice(TOKENS, 32)] + 0.03 * rng.standard_normal((32, DIMENSIONS), np.float32)
    spread = Spread(DIMENSIONS)
    spread.add(raw_ND[:100_000])
    quantizer = Quantizer.fitting(spread)
    vectors = KeyVectors(stored(raw_ND, "sq8", quantizer), 20.0, quantizer)
    corpus = Corpus.create(folder / "words.quoth", splitter=f"fixed:{PASSAGE}")
    words = [f"w{word}" for word in word_N.tolist()]
    step = 100 * PASSAGE
    corpus.add(Document(f"d{at}", "", " ".join(words[at : at + step])) for at in range(0, TOKENS, step))
    lengths = np.array([len(word) for word in words])
    within = np.arange(TOKENS) % step
    start_N = np.cumsum(lengths + 1) - lengths - 1
    start_N -= np.repeat(start_N[within == 0], step)
    flags = rng.choice([MAY_START | MAY_END, MAY_START, MAY_END], TOKENS, p=[0.6, 0.2, 0.2]) | SPACE_BEFORE
    keys = KeyTable(
        corpus=corpus,
        passage_rows_P=np.arange(TOKENS // PASSAGE),
        offsets_P1=np.arange(0, TOKENS + 1, PASSAGE),
        origin_P=start_N[::PASSAGE],
        ids_N=word_N.astype(np.int32),
        start_N=start_N,
        end_N=start_N + lengths,
        group_N=word_N.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15),
        flags_N=flags.astype(np.uint8),
        vectors=vectors,
    )
    return keys, q_QD.astype(np.float32)


def coded(codes: Path, keys: KeyTable, q_QD: Any) -> KeyTable:
    """A table with codes that find 97 % of these queries' neighbours."""
    exact = [each.rows_K for each in search_exactly(keys, q_QD, DEPTH)]
    codes.mkdir()
    build_codes(codes, keys.vectors, q_QD, exact, 0.97)
    seal_folder(codes)
    return replace(keys, codes=Codes(codes, TOKENS))


def million() -> dict[str, float]:
    """The random table's bytes as they lie on disk, and a search for two queries: a point for the plots."""
    with tempfile.TemporaryDirectory() as work:
        keys, q_QD = random_table(Path(work))
        tables = Path(work) / "tables"
        (tables / "0").mkdir(parents=True)
        save_array(tables / "0" / "vectors.npy", keys.vectors.stored_ND)
        save_columns(tables / "0", lambda: [keys])
        table = coded(tables / "0.codes", keys, q_QD)
        took = best_seconds(lambda: search_tables([table], q_QD[:2], K))
        return {"tokens": TOKENS, "search_seconds": took, **folder_bytes(tables)}


def dense(folder: Path, keys: KeyTable, q_QD: Any) -> Result:
    """The 4,096 nearest of a million, by codes and exact rescoring, against FAISS comparing every vector."""
    import faiss

    table = coded(folder / "codes", keys, q_QD)
    assert table.codes is not None
    flat = faiss.IndexFlatIP(DIMENSIONS)
    flat.add(keys.vectors.floats(slice(None)))
    ours = best_seconds(lambda: search_tables([table], q_QD[:1], K))
    peer = best_seconds(lambda: flat.search(q_QD[:1], K))
    return Result(
        f"{K:,} nearest of {TOKENS:,} tokens, recall {table.codes.facts.recall:.3f}",
        f"{1000 * ours:.1f} ms",
        f"{1000 * peer:.1f} ms (FAISS flat, fp32)",
        peer / ours,
    )


def hot_path(keys: KeyTable, q_QD: Any) -> Result:
    """Candidates, similarities, scores and groups of 4,096 start and end hits, against plain Python."""
    near = [each.rows_K for each in search_exactly(keys, q_QD[:2], K)]
    hits = KeyHits(keys, np.sort(near[0]), np.sort(near[1]))
    options = ResolvedOptions(combine="joint")

    def predict() -> list[Prediction]:
        return [each.whole() for each in propose(ScoredPhrases([hits], q_QD[0], q_QD[1], options), options)]

    ours = best_seconds(predict)
    before = time.perf_counter()
    text, probability = plain_phrases(hits, q_QD[0], q_QD[1])
    peer = time.perf_counter() - before
    best = predict()[0]
    assert best.text == text
    assert abs(best.probability - probability) < 1e-3 * probability
    return Result(
        f"candidates, scores and groups of {K:,} start and {K:,} end hits",
        f"{1000 * ours:.1f} ms",
        f"{1000 * peer:,.0f} ms (the same steps in plain Python)",
        peer / ours,
    )


def plain_phrases(hits: KeyHits, q_start_D: Any, q_end_D: Any, longest: int = 10) -> tuple[str, float]:
    """The best phrase and its probability, by position lists, dictionaries of spans and one vector at a time."""
    keys = hits.keys
    spans: set[tuple[int, int]] = set()
    for row in hits.start_rows.tolist():
        if keys.flags_N[row] & MAY_START:
            end = (row // PASSAGE + 1) * PASSAGE
            near = plain_reach(keys, range(row, min(row + longest + SPARE_PIECES, end)), longest)
            spans.update((row, last) for last in near if keys.flags_N[last] & MAY_END)
    for row in hits.end_rows.tolist():
        if keys.flags_N[row] & MAY_END:
            begin = row // PASSAGE * PASSAGE
            near = plain_reach(keys, range(row, max(row - longest - SPARE_PIECES, begin - 1), -1), longest)
            spans.update((first, row) for first in near if keys.flags_N[first] & MAY_START)
    a: dict[int, float] = {}
    b: dict[int, float] = {}
    for first, last in spans:
        if first not in a:
            a[first] = keys.vectors.scale * float(keys.vectors.floats(slice(first, first + 1))[0] @ q_start_D)
        if last not in b:
            b[last] = keys.vectors.scale * float(keys.vectors.floats(slice(last, last + 1))[0] @ q_end_D)
    scores: dict[tuple[int, ...], float] = defaultdict(float)
    for first, last in spans:
        scores[tuple(keys.ids_N[first : last + 1].tolist())] += float(np.exp(a[first] + b[last]))
    best = max(scores, key=lambda phrase: scores[phrase])
    return " ".join(f"w{word}" for word in best), scores[best] / sum(scores.values())


def plain_reach(keys: KeyTable, rows: range, longest: int) -> Iterator[int]:
    """These rows as far as `longest` words begin in them."""
    words = 0
    for row in rows:
        words += int(keys.flags_N[row] != MAY_END | SPACE_BEFORE)
        if words > longest:
            return
        yield row
