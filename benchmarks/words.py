"""BM25 beside its peers: `python -m benchmarks.words DOCS… --questions nq.dev.tsv` (pip install bm25s tantivy).

CPU seconds to index, and the time of a search for the 20 best passages. Quoth's count everything from the files on:
reading, splitting, storing, checksums. The peers get its passages as strings, and store no text; each in one thread and
with its own words, bm25s with the same stems.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from benchmarks.measure import cpu_seconds, machine, seconds
from quoth import Corpus
from quoth.corpus.documents import read_documents
from quoth.datasets.questions import read_questions

BEST = 20


def main() -> None:
    """A line for each, and how many times as long as Quoth's a peer's search takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.words", description=__doc__)
    parser.add_argument("documents", nargs="+")
    parser.add_argument("--questions", required=True, help="a file of questions")
    parser.add_argument("--count", type=int, default=200, help="how many questions, evenly spread (200)")
    given = parser.parse_args()
    asked = [each.text for each in read_questions(given.questions)]
    count = min(given.count, len(asked))
    asked = [asked[i * len(asked) // count] for i in range(count)]
    with tempfile.TemporaryDirectory() as place:
        corpus = Corpus.create(Path(place) / "corpus.quoth")
        ours = cpu_seconds(lambda: corpus.add(read_documents(*given.documents)))
        texts = [f"{each.title} {each.text}" for each in corpus.passages()]
        print(f"{machine()}: {len(texts):,} passages, {len(asked)} questions", flush=True)
        mine = told("Quoth", ours, len(texts), asked, lambda text: corpus.bm25(text, BEST))
        for name, build in (("tantivy", tantivy), ("bm25s", bm25s)):
            began = time.process_time()
            search = build(texts, Path(place))
            theirs = told(name, time.process_time() - began, len(texts), asked, search)
            print(f"  its search: {theirs / mine:.2f}×", flush=True)


def told(name: str, spent: float, passages: int, asked: Sequence[str], search: Callable[[str], object]) -> float:
    """Prints what it takes; returns the median time of a search."""
    for text in asked:
        search(text)
    times = [seconds(partial(search, text)) for text in asked]
    late = quantiles(times, n=20)[-1]
    print(
        f"{name}: {spent:.1f} s, {passages / spent:,.0f} passages a second; a search {1000 * median(times):.2f} ms, "
        f"95th percentile {1000 * late:.2f} ms",
        flush=True,
    )
    return median(times)


def tantivy(texts: Iterable[str], place: Path) -> Callable[[str], object]:
    """Its index of these texts, on disk, by its English stemmer."""
    import tantivy as peer  # type: ignore[import-not-found]

    schema = peer.SchemaBuilder().add_text_field("text", stored=False, tokenizer_name="en_stem").build()
    (folder := place / "tantivy").mkdir()
    index = peer.Index(schema, str(folder))
    writer = index.writer(500_000_000, 1)
    for text in texts:
        writer.add_document(peer.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    return lambda text: searcher.search(index.parse_query_lenient(text, ["text"])[0], BEST)


def bm25s(texts: Sequence[str], place: Path) -> Callable[[str], object]:
    """Its index of these texts, in memory."""
    import bm25s as peer
    import Stemmer

    stemmer, index = Stemmer.Stemmer("english"), peer.BM25()
    index.index(peer.tokenize(list(texts), stemmer=stemmer, show_progress=False), show_progress=False)
    quiet = {"show_progress": False}
    return lambda text: index.retrieve(peer.tokenize(text, stemmer=stemmer, **quiet), k=BEST, n_threads=0, **quiet)


if __name__ == "__main__":
    main()
