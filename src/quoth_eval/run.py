"""The cloze evaluation, from files to a report: `quoth eval cloze`.

Knows: which documents are used, which systems answer the blanks. Does not know: how a model answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_listing
from quoth.datasets.blanks import KINDS, Blank, draw_blanks
from quoth.errors import InputError
from quoth.records import Document
from quoth_eval.baselines import bm25_phrases, frequent_phrases
from quoth_eval.cloze import cloze_task
from quoth_eval.harness import ProgressCallback, evaluate, lazily
from quoth_eval.report import Report
from quoth_eval.system import Filler, embed_if_wanted, fills, phrases
from quoth_eval.task import System

SYSTEMS = ("model", "untrained", "frequent", "bm25")
UNTRAINED = "quoth-mini-base"
_TITLES = {"frequent": "most frequent phrase", "bm25": "most frequent phrase of BM25's passage"}

Load = Callable[[str, Corpus], Filler]


def run_cloze(
    pages: Sequence[str | Path],
    heldout: Path | None = None,
    model: str = "quoth-mini",
    *,
    base: str | Path | None = None,
    device: str | None = None,
    count: int = 1000,
    seed: int = 0,
    limit: int | None = None,
    systems: Sequence[str] = SYSTEMS,
    progress: ProgressCallback | None = None,
    load: Load | None = None,
    folder: Path | None = None,
    **options: Any,
) -> Report:
    """Hide `count` phrases of each kind in the documents of `pages`, and count the exact matches.

    If `heldout` is given, only the documents that it names (JSONL of ids and titles) are used. They are also the corpus
    that is searched, without each blank's own passage. `limit` asks only the first blanks of each kind. `options` are
    those of `FillOptions`, for the model's `fill`; if they search every token, the pages are embedded beforehand, in
    full precision. `load` makes a model from a name and a corpus. `folder` keeps the run, to be resumed. Raises
    InputError, ModelNotFoundError.
    """
    _check(systems, count, limit)
    documents = read_pages(pages, heldout)
    with tempfile.TemporaryDirectory(prefix="quoth-cloze-") as temporary:
        corpus = Corpus.create(Path(temporary) / "pages.quoth")
        corpus.add(documents)
        number = count if limit is None else min(count, limit)
        drawn = list(corpus.passages())
        blanks = [blank for kind in KINDS for blank in draw_blanks(drawn, kind, number, seed)]
        settings = {"num_pages": len(documents), "num_passages": len(drawn), "seed": seed, "options": options}
        load = load or _loader(base, device)
        made = {_name(name, model): lazily(partial(_system, name, model, corpus, load, options)) for name in systems}
        return evaluate(cloze_task(blanks, settings), made, folder, progress)


def read_pages(pages: Sequence[str | Path], heldout: Path | None) -> list[Document]:
    """The documents of the files; with `heldout`, only those whose id or title (ignoring case) is in that list.

    Raises InputError on an invalid list, and if no document is left.
    """
    read = read_documents(*pages)
    if heldout is None:
        documents = list(read)
    else:
        ids, titles = read_listing(heldout)
        documents = [document for document in read if document.id in ids or document.title.casefold() in titles]
    if not documents:
        named = "" if heldout is None else f" that {heldout} names"
        raise InputError(f"no document{named} in {', '.join(map(str, pages))}; give the file that contains them")
    return documents


def _check(systems: Sequence[str], count: int, limit: int | None) -> None:
    unknown = [system for system in systems if system not in SYSTEMS]
    if unknown or not systems:
        raise InputError(f"systems {unknown or 'none'}; choose from {', '.join(SYSTEMS)}")
    for name, value in (("count", count), ("limit", limit)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be 1 or more blanks of each kind")


def _name(system: str, model: str) -> str:
    return {"model": model, "untrained": UNTRAINED}.get(system) or _TITLES[system]


def _system(system: str, model: str, corpus: Corpus, load: Load, options: dict[str, Any]) -> System[Blank]:
    if system == "frequent":
        return phrases(frequent_phrases(corpus))
    if system == "bm25":
        return phrases(bm25_phrases(corpus))
    filler = load(_name(system, model), corpus)
    embed_if_wanted(filler, options)
    return fills(filler, options)


def _loader(base: str | Path | None, device: str | None) -> Load:
    def load(name: str, corpus: Corpus) -> Filler:
        from quoth.npm.model import NPM

        return NPM.from_pretrained(name, corpus=corpus, base=base, device=device)

    return load
