"""docs/benchmarks.json, what was measured, and docs/benchmarks.md, made from it. Knows no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import extrapolate
from benchmarks.extrapolate import Facts, disk_bytes, duration, embedding_rate, hot_bytes, short, size
from benchmarks.measure import Result

DOCS = Path(__file__).parents[1] / "docs"
DATA, PAGE, PICTURE = DOCS / "benchmarks.json", DOCS / "benchmarks.md", DOCS / "images" / "scale.png"
STEPS = ("encode", "search", "expand", "score", "explain")
DIAMOND = """ The diamond is a table of {tokens:,} random
vectors, whose codes take {code:.3g} bytes each to find 97 % of the neighbours, and a search of it for two queries."""
TABLE = "| what | ours | peer | ratio |\n|---|---:|---:|---:|\n"
HEAD = """# Benchmarks

Written by `python -m benchmarks` from [benchmarks.json](benchmarks.json), which holds what was measured. Each line sets
ours beside a named peer, measured in the same run on the same data; a ratio above 1 says how many times better ours is.

```sh
python -m benchmarks                                   # the first table
python -m benchmarks --corpus wiki.quoth [--corpus …]  # an embedded corpus; the others' results are kept
python -m benchmarks --page                            # this page anew; the picture needs matplotlib
```
"""
CORPORA = """
## Embedded corpora

Text of Wikipedia, one thread. A dense fill searches every token for the 4,096 nearest to each of a blank's two queries.
Times are medians over blanks drawn from the corpus's own passages, each passage hidden from its blank, with the vectors
in the page cache. The tiny corpus has two passages. The peer of `search` compares every vector for the same queries.
"""
SCALE = """
## At a billion tokens and more

![Disk, hot memory, dense query time and embedding time against corpus size](images/scale.png)

**Extrapolated, not measured**, from the largest corpus above: {N} tokens, {precision}. Everything grows in proportion
to the tokens, but for the steps of a fill other than its search, which only see 4,096 neighbours.{diamond}

| tokens | {heads} |
|---|{rules}|
"""
FORMULAS = """
N tokens are in the largest measured corpus, n are to come:

- Disk and hot memory: bytes × n / N; {disk:.4g} and {hot:.3g} bytes a token. Hot is what every search reads
  whole, the codes; vectors and columns are read near hits only.
- A machine is taken to have 256 GB of memory, {ram:.0f} GB of it for what is hot, {hdd:.0f} TB of disk, {cores} cores;
  it holds {held} tokens by memory, {kept} by disk. Machines: the more of hot / {ram:.0f} GB and disk / {hdd:.0f} TB.
- Dense fill on one core: search × n / N + the other steps, {search:.3g} ms and {rest:.3g} ms. Of the search
  only the codes grow with n; comparing what they propose does not, so that this is too much.
- On all machines: search × n / N / (machines × {cores}) + the other steps; the search takes at least as long as reading
  the codes: codes × n / N / (machines × {width:.0f} GB/s). One shard a core (`quoth serve --ray
  --shards`); the network is taken to cost nothing. Every code is looked at: a segment ends at 100,000 passages,
  {segment} tokens, and cells begin at 16.7 million in one.
- With cells: the same with a sixteenth of the codes. That share is assumed, its recall unknown at this size.
- Vectors read at random: 2 queries × {proposed:,} rows, the most that codes need where a segment holds few of the
  nearest of all (`deeper` in codes.json), whatever n. The measured times have them in the page cache; from disk they
  cost reads / (machines × 1,000,000 a second) on top.
- Embedding: n / {rate:,.0f} tokens a second, measured on one core, / (machines × {cores}) on all. Codes not included.
"""


def load() -> dict[str, Any]:
    """What was measured so far."""
    empty: dict[str, Any] = {"machine": "", "results": [], "million": None, "corpora": []}
    return dict(json.loads(DATA.read_text(encoding="utf-8"))) if DATA.is_file() else empty


def save(data: dict[str, Any]) -> None:
    DATA.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def remember(data: dict[str, Any], facts: Facts) -> None:
    """Keep what was measured of a corpus, in the place of what was known of it, smaller corpora first."""
    same = ("model", "precision", "tokens")
    others = [each for each in data["corpora"] if [each[key] for key in same] != [facts[key] for key in same]]
    data["corpora"] = sorted([*others, facts], key=lambda each: (each["tokens"], each["model"], each["precision"]))


def text(data: dict[str, Any]) -> str:
    """The page."""
    page = HEAD
    if data["results"]:
        page += f"\n{data['machine']}.\n\n{TABLE}" + "".join(Result(**each).row() + "\n" for each in data["results"])
    if data["corpora"]:
        page += CORPORA + "".join(_section(each) for each in data["corpora"]) + _scale(data["corpora"], data["million"])
    return page


def _section(facts: Facts) -> str:
    where = f"{facts['model']}, {facts['precision']}, {facts['segments']} segment{'s' * (facts['segments'] > 1)}"
    head = f"\n### {facts['tokens']:,} tokens, {facts['passages']:,} passages\n\n{where}; {facts['machine']}.\n\n"
    return head + TABLE + "".join(each.row() + "\n" for each in corpus_results(facts))


def corpus_results(facts: Facts) -> list[Result]:
    """An embedded corpus's lines."""
    return [*_sizes(facts), *_openings(facts), *_fills(facts), *_writes(facts)]


def _sizes(facts: Facts) -> list[Result]:
    tokens, fp32 = facts["tokens"], 4 * facts["dimensions"]
    parts = ", ".join(f"{name}s {facts[f'{name}_bytes'] / tokens:.4g}" for name in ("vector", "code", "column"))
    disk, peer = disk_bytes(facts) / tokens, f"{fp32:,} (FAISS flat, fp32, without columns)"
    return [
        Result(f"bytes a token on disk: {parts}", f"{disk:.4g}", peer, fp32 / disk),
        Result("bytes a token that must be hot: codes", f"{hot_bytes(facts) / tokens:.3g}"),
    ]


def _openings(facts: Facts) -> list[Result]:
    ours, tiny, used = facts["opened"], facts["tiny_opened"], facts["searching"]

    def against(what: str, key: str, form: Any) -> Result:
        return Result(what, form(ours[key]), f"{form(tiny[key])} (the tiny corpus)", tiny[key] / ours[key])

    return [
        against("open it in a fresh process", "seconds", duration),
        against("memory of that process, model loaded, opened and idle", "anon", size),
        against("files mapped into it, resident", "file", size),
        Result("the same after the dense fills: memory, mapped files", f"{size(used['anon'])}, {size(used['file'])}"),
    ]


def _fills(facts: Facts) -> list[Result]:
    dense, few = facts["dense"], facts["restricted"]
    steps = [Result(f"— {name}", duration(dense[name])) for name in STEPS]
    steps[1] = Result(
        "— search",
        duration(dense["search"]),
        f"{duration(facts['peer_seconds'])} ({facts['peer']})",
        facts["peer_seconds"] / dense["search"],
    )
    alone = f"{duration(few['encode'])} (the encoder alone)"
    equal = f"{facts['agreed']} of {facts['blanks']}"
    return [
        Result(f"dense fill, median of {facts['queries']}", duration(dense["whole"])),
        *steps,
        Result("fill in BM25's 3 passages, embedded", duration(few["whole"]), alone, few["encode"] / few["whole"]),
        Result("recall of the 4,096 nearest", f"{facts['recall']:.4f}", "1 (exact search)", facts["recall"]),
        Result("best answers equal to those of exact search", equal),
    ]


def _writes(facts: Facts) -> list[Result]:
    ours, tiny = facts["add_seconds"], facts["tiny_add_seconds"]
    return [
        Result("add 1,000 documents to it", duration(ours), f"{duration(tiny)} (to the tiny corpus)", tiny / ours),
        Result("embed passages of it, tokens/s", f"{embedding_rate(facts):,.0f}"),
    ]


def _scale(corpora: Sequence[Facts], million: Facts | None) -> str:
    """What the largest corpus says of larger ones."""
    facts = extrapolate.largest(corpora)
    columns = [extrapolate.extrapolate(facts, tokens) for tokens in extrapolate.SIZES]
    heads, rules = " | ".join(short(each.tokens) for each in columns), "|".join(["---:"] * len(columns))
    rows = {
        "disk": [size(each.disk) for each in columns],
        "hot memory": [size(each.hot) for each in columns],
        "machines: by memory, by disk": [f"{each.by_memory:,}, {each.by_disk:,}" for each in columns],
        "dense fill, every code looked at, one core": [duration(each.fill_one_core) for each in columns],
        "— on all cores of these machines": [duration(each.scan) for each in columns],
        "— with cells, 1 code of 16 looked at (assumed)": [duration(each.cells) for each in columns],
        "vectors read at random for it": [f"{each.reads:,.0f}" for each in columns],
        "— from disk, not from the page cache, on top": [duration(each.reading) for each in columns],
        "embedding, one core": [duration(each.embed_one_core) for each in columns],
        "— all cores of these machines": [duration(each.embed) for each in columns],
    }
    table = "".join(f"| {what} | {' | '.join(cells)} |\n" for what, cells in rows.items())
    code = million["code_bytes"] / million["tokens"] if million else 0
    diamond = DIAMOND.format(tokens=million["tokens"], code=code) if million else ""
    head = SCALE.format(
        N=f"{facts['tokens']:,}", precision=facts["precision"], heads=heads, rules=rules, diamond=diamond
    )
    return head + table + _formulas(facts)


def _formulas(facts: Facts) -> str:
    tokens, dense = facts["tokens"], facts["dense"]
    ram, disk = extrapolate.HOT_PER_MACHINE, extrapolate.DISK_PER_MACHINE
    return FORMULAS.format(
        disk=disk_bytes(facts) / tokens,
        hot=hot_bytes(facts) / tokens,
        ram=ram / 1e9,
        hdd=disk / 1e12,
        cores=extrapolate.CORES,
        held=short(ram * tokens / hot_bytes(facts)),
        kept=short(disk * tokens / disk_bytes(facts)),
        search=1e3 * dense["search"],
        rest=1e3 * (dense["whole"] - dense["search"]),
        width=extrapolate.BANDWIDTH / 1e9,
        proposed=facts["proposed_of_many"],
        segment=short(extrapolate.SEGMENT_PASSAGES * tokens / facts["passages"]),
        rate=embedding_rate(facts),
    )
