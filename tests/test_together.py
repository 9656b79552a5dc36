"""Many threads and processes search a corpus while it is written, embedded and compacted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from killed import document
from quoth import NPM, Corpus
from quoth.errors import LockedError
from tiny import tiny_bert

THREADS = int(os.environ.get("QUOTH_TEST_THREADS", "2"))
PROCESSES = int(os.environ.get("QUOTH_TEST_PROCESSES", "1"))
ROUNDS = 3
"""The second ends with a compaction; one more follows."""
QUERY = "wörd1 [MASK] wörd2"


def ask(npm: NPM, corpus: Corpus) -> int:
    """Search in every way; every answer must be a quotation from this snapshot, and searches agree on it."""
    texts = {each.id: each.text for each in corpus.documents()}
    for options in ({"passages": None}, {"passages": 4}, {"passages": 4, "passage_share": 0.3}):
        first, second = (npm.fill(QUERY, top_k=1000, distinct=False, **options) for _ in range(2))
        scores = [{each.text.casefold(): each.log_score for each in found} for found in (first, second)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)
        for each in first:
            for place in each.evidence:
                assert texts[place.document_id][place.start : place.end].casefold() == each.text.casefold()
    found = {hit.passage.document_id for hit in npm.search("zav0 zbv0 zbv1", k=100)}
    assert found == {name for name, text in texts.items() if {"zav0", "zbv0", "zbv1"} & set(text.split())}
    return corpus.snapshot


def read(path: Path, model: str, done: Any, seen: set[int]) -> None:
    npm = NPM.from_pretrained(model, corpus := Corpus.open(path))
    while True:
        last = done()
        seen.add(ask(npm, corpus))
        corpus.refresh()
        if last:
            return
        time.sleep(0.2)  # the writer is to get on as well


READER = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from test_together import read
path, model = Path(sys.argv[1]), sys.argv[2]
seen = set()
print("ready", flush=True)
read(path, model, (path.parent / "done").exists, seen)
print(len(seen))
"""


WRITER = """
import sys
from killed import document
from quoth import Corpus
corpus = Corpus.open(sys.argv[1])
for number in range(20):
    while True:
        try:
            corpus.add([document(f"{sys.argv[2]}{number}")])
            break
        except Exception as error:
            print(type(error).__name__)
"""


def test_readers_are_never_disturbed(tmp_path: Path) -> None:
    model = str(tiny_bert(tmp_path / "model"))
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="fixed:3")
    corpus.add([document("a", 30), document("b", 30)])
    writer = NPM.from_pretrained(model, corpus)
    writer.embed("fp32")
    command = [sys.executable, "-c", READER, str(corpus.path), model]
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    readers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | paths)
        for _ in range(PROCESSES)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"

    errors: list[BaseException] = []
    seen: set[int] = set()

    def thread() -> None:
        try:
            read(corpus.path, model, (tmp_path / "done").exists, seen)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=thread) for _ in range(THREADS)]
    for each in threads:
        each.start()
    try:
        for number in range(ROUNDS):
            corpus.replace([document("b", 30, 1 + number % 2), document(f"more{number}")])
            writer.embed("fp32")
            corpus.add([document(f"late{number}")])
            if number % 2:
                corpus.delete([f"more{number - 1}"])
                corpus.compact()
    finally:
        (tmp_path / "done").touch()
        for each in threads:
            each.join()
    for reader in readers:
        out, err = reader.communicate(timeout=120)
        assert reader.returncode == 0, err
        assert int(out) >= 1
    assert not errors, errors[0]
    assert seen
    corpus.verify()
    corpus.compact()
    assert corpus.snapshots() == [corpus.snapshot]


def test_two_who_write_at_once(tmp_path: Path) -> None:
    """One is told who writes; nothing of either is lost."""
    Corpus.create(tmp_path / "c.quoth", splitter="fixed:3")
    paths = {"PYTHONPATH": str(Path(__file__).parent)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "c.quoth"), name],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | paths,
        )
        for name in "xy"
    ]
    said = {line for writer in writers for line in writer.communicate(timeout=120)[0].split()}
    assert said <= {LockedError.__name__}
    corpus = Corpus.open(tmp_path / "c.quoth")
    corpus.verify()
    assert {each.id for each in corpus.documents()} == {f"{name}{n}" for name in "xy" for n in range(20)}


def test_late_passages_are_searched_before_they_are_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = str(tiny_bert(tmp_path / "model"))
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="fixed:3")
    corpus.add([document("a", 30)])
    npm = NPM.from_pretrained(model, corpus)
    npm.embed("fp32")
    corpus.add([document("late", 9), document("gone")])
    corpus.delete(["gone"])
    early = {each.text: each.log_score for each in npm.fill(QUERY, passages=None, top_k=1000, distinct=False)}
    npm.embed("fp32")
    stored = {each.text: each.log_score for each in npm.fill(QUERY, passages=None, top_k=1000, distinct=False)}
    assert early == pytest.approx(stored, abs=1e-4)
    assert any("zlatev0" in text for text in early)
    assert not any("zgonev0" in text for text in early)
    monkeypatch.setattr("quoth.index.tables.LATE_PASSAGES", 2)
    corpus.add([document("later", 9)])
    with pytest.raises(Exception, match="1 of 3 segments have no vectors"):
        npm.fill(QUERY, passages=None)
