"""Writes to corpora that are killed on the way: as a script in a process of its own, and what is left examined.

    python killed.py ROOT MODEL KILL...      MODEL: a folder, or "" to embed nothing

Each KILL, "step-<n>" (at the n-th flush, rename or removal) or "milliseconds-<n>", has a corpus of its own in ROOT, and
a log there of as many bytes as writes were done. Prints the number of steps where nothing was killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.writer import split_documents, write_segment
from quoth.records import Document
from quoth.text.terms import analyse

State = dict[str, Document]

WRITES: list[tuple[str, dict[str, tuple[int, int]]]] = [
    ("add", {"a": (30, 0), "b": (30, 0), "c": (30, 0)}),
    ("embed", {}),
    ("replace", {"b": (30, 1), "d": (30, 1)}),
    ("delete", {"a": (7, 0)}),
    ("embed", {}),
    ("add_written", {"e": (30, 0), "g": (30, 0)}),
    ("embed", {}),
    ("compact", {}),
    ("embed", {}),
    ("add", {"f": (30, 0)}),
]
"""Verbs and their documents: name, number of words, version."""


def document(name: str, words: int = 7, version: int = 0) -> Document:
    """A document whose word `z<name>v<version>` stands in each of its passages of three words."""
    text = " ".join(f"z{name}v{version}" if number % 3 == 0 else f"wörd{number}" for number in range(words))
    return Document(name, f"Title {name}", text, {"version": version, "漢": [1, None]})


def writes(model: str) -> list[tuple[str, dict[str, tuple[int, int]]]]:
    return [each for each in WRITES if model or each[0] != "embed"]


def prepare(root: Path, model: str = "") -> list[State]:
    """Write the inputs; returns what the corpus holds before the first write and after each."""
    states: list[State] = [{}]
    for number, (verb, given) in enumerate(writes(model)):
        documents = {name: document(name, *how) for name, how in given.items()}
        records = [{"id": e.id, "title": e.title, "text": e.text, **e.metadata} for e in documents.values()]
        (root / f"{number}.jsonl").write_text("\n".join(map(json.dumps, records)))
        kept = {name: each for name, each in states[-1].items() if verb != "delete" or name not in documents}
        states.append(kept if verb == "delete" else kept | documents)
    return states


def run(root: Path, *kills: str, model: str = "") -> int:
    """The script, with these kills; returns how many steps there are, where nothing was killed."""
    command = [sys.executable, __file__, str(root), model, *kills]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split()
    return int(printed[-1]) if printed else 0


def num_done(path: Path) -> int:
    """How many writes to this corpus came to their end."""
    return path.with_name(f"{path.name}.log").stat().st_size


def _counted(original: Callable[..., Any], steps: list[int], kill_at: int) -> Callable[..., Any]:
    def step(*arguments: Any, **options: Any) -> Any:
        steps[0] += 1
        if steps[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    return step


def _folders(corpus: Corpus, documents: Iterable[Document]) -> Generator[Path]:
    """Each document as a segment that was written elsewhere."""
    for number, document in enumerate(documents):
        folder = corpus.path / "segments" / f"{number}.tmp"
        write_segment(folder, split_documents([document], corpus.splitter))
        yield folder


def _write(root: Path, path: Path, model: str, kill_at: int, log: int) -> None:
    steps = [0]
    for place, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
        setattr(place, name, _counted(getattr(place, name), steps, kill_at))
    corpus = Corpus.open(path)
    npm: Any = None
    if model:
        from quoth.npm.model import NPM

        npm = NPM.from_pretrained(model, corpus)
    for number, (verb, _) in enumerate(writes(model)):
        documents = read_documents(root / f"{number}.jsonl")
        if verb == "embed":
            npm.embed("fp32")
        elif verb == "compact":
            corpus.compact()
        elif verb == "delete":
            corpus.delete(each.id for each in documents)
        elif verb == "add_written":
            corpus.add_written(_folders(corpus, documents))
        else:
            getattr(corpus, verb)(documents)
        os.write(log, b"x")
    print(steps[0], flush=True)


def main(root: Path, model: str, kills: list[str]) -> None:
    analyse("its tables are made once, before the forks")
    if model:
        import faiss
        import torch

        import quoth.npm.model  # noqa: F401  what takes longest is imported once, before the forks
        from quoth.index import build, codes

        torch.set_num_threads(1)
        faiss.omp_set_num_threads(1)
        codes.FLAT_FROM, build.PASSAGES_PER_PART = 30, 8
    for name in kills:
        kind, _, amount = name.partition("-")
        Corpus.create(root / name, splitter="fixed:3")
        log = os.open(root / f"{name}.log", os.O_CREAT | os.O_WRONLY)
        child = os.fork()
        if not child:
            _write(root, root / name, model, int(amount) if kind == "step" else -1, log)
            os._exit(0)
        if kind == "milliseconds":
            time.sleep(int(amount) / 1000)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
