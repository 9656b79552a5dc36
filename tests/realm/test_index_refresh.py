"""The index that training retrieves from: made of the right towers, swapped, cleared away, and safe from kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_trainer import Stop, assert_same, stop_at, weights

from quoth.corpus.corpus import Corpus
from quoth.errors import TrainingError
from quoth.hub import locate
from quoth.index.tables import KeyTables
from quoth.realm import index_refresh
from quoth.realm.config import PretrainConfig, REALMConfig
from quoth.realm.index_refresh import BUILDER_LOG, INDEX, KEYS, TOWERS, IndexRefresher, index_step
from quoth.realm.passages import PassageEncoder
from quoth.realm.pretrain import PretrainTask
from quoth.realm.salient import MaskedTexts
from quoth.training.trainer import Progress, Trainer
from realm_runs import DOCUMENTS, Names, environment, make_corpus, scattered, trained

QUERIES = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
RUN = {
    "steps": 6,
    "batch_size": 2,
    "learning_rate": 1e-3,
    "log_every": 1,
    "refresh_every": 2,
    "exclude_self": "passage",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "c", DOCUMENTS[:8])


def brute_force(model: Path, corpus: Corpus) -> list[list[float]]:
    """Each query's similarities with the passages, by row."""
    encoder = PassageEncoder.load(locate(str(model), REALMConfig))
    passages = list(corpus.passages())
    encoded = encoder.passages([each.text for each in passages], [each.title for each in passages])
    return [[float(each.vectors_TD[0] @ q_D) for each in encoded] for q_D in QUERIES]


def assert_index_of(model: Path, refresher: IndexRefresher, corpus: Corpus) -> None:
    """It finds the passages nearest by this model, but for the hidden ones; near ties in either order."""
    hidden = [[], [0], [3, 4], [1]]
    for found, sims, away in zip(
        refresher.nearest(QUERIES, 3, hidden), brute_force(model, corpus), hidden, strict=True
    ):
        best = sorted((sim for row, sim in enumerate(sims) if row not in away), reverse=True)[:3]
        assert [sims[each.row] for each in found] == pytest.approx(best, abs=0.02)
        assert len({each.row for each in found} - set(away)) == 3


def towers(output: Path) -> list[int]:
    return sorted(int(each.name) for each in (output / TOWERS).iterdir())


def key_folders(corpus: Corpus) -> list[str]:
    return sorted(each.name for each in (corpus.path / "keys").iterdir())


def test_a_synchronous_index_is_made_of_the_towers_of_its_step(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    model, refresher = trained(folder), IndexRefresher(tmp_path, corpus, 3, asynchronous=False)
    assert index_step(tmp_path) == -1
    then = tmp_path / "then"
    folders = []
    for step in range(7):
        scattered(model, step)
        if step % 3 == 0:
            model.save(then)
        assert refresher.refresh(step, model) == step % 3
        assert_index_of(then, refresher, corpus)
        assert index_step(tmp_path) == step - step % 3
        assert towers(tmp_path) == [step - step % 3]
        folders += key_folders(corpus)
    assert len(folders) == 7
    assert [folders.count(each) for each in dict.fromkeys(folders)] == [3, 3, 1]
    corpus.verify()
    refresher.close()


def test_the_first_index_may_be_wanted_at_any_step(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    model, refresher = trained(folder), IndexRefresher(tmp_path, corpus, 10, asynchronous=False)
    assert refresher.refresh(7, model) == 0
    assert refresher.refresh(8, model) == 1
    assert refresher.refresh(10, scattered(model)) == 0
    assert towers(tmp_path) == [10]


def test_vectors_that_were_there_before_are_kept(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    tables = KeyTables(corpus, PassageEncoder.load(locate(str(folder), REALMConfig)))
    tables.build("sq8", recall=1.0)
    model, refresher = trained(folder), IndexRefresher(tmp_path, corpus, 1, asynchronous=False)
    refresher.refresh(0, model)
    assert key_folders(corpus) == [tables.folder.name]
    for step in (1, 2):
        refresher.refresh(step, scattered(model, step))
    assert tables.folder.name in key_folders(corpus)
    assert len(key_folders(corpus)) == 2
    assert tables.missing() == []


def test_a_run_that_begins_again_takes_nothing_of_another(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    IndexRefresher(tmp_path, corpus, 2, asynchronous=False).refresh(0, trained(folder, scatter=True))
    (first,) = key_folders(corpus)
    model = scattered(trained(folder), seed=5)
    other = IndexRefresher(tmp_path, corpus, 2, asynchronous=False)
    other.refresh(0, model)
    assert_index_of(tmp_path / TOWERS / f"{0:09d}", other, corpus)
    (second,) = key_folders(corpus)
    assert first != second
    again = IndexRefresher(tmp_path, corpus, 2, asynchronous=False)
    made = (corpus.path / "keys" / second).stat().st_ino
    again.refresh(0, model)
    assert key_folders(corpus) == [second]
    assert (corpus.path / "keys" / second).stat().st_ino == made


def test_an_index_of_the_future_is_forgotten(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    """A run broken off after step 4 whose last checkpoint is step 3's."""
    model, refresher = trained(folder), IndexRefresher(tmp_path, corpus, 2, asynchronous=False)
    for step in range(5):
        refresher.refresh(step, scattered(model, step))
    resumed = IndexRefresher(tmp_path, corpus, 2, asynchronous=False)
    for step in (3, 4):
        assert resumed.refresh(step, scattered(model, 10 + step)) == 0
        assert_index_of(tmp_path / TOWERS / f"{step:09d}", resumed, corpus)
        assert towers(tmp_path) == [step]
        assert len(key_folders(corpus)) == 1
    corpus.verify()


def test_vectors_that_are_gone_are_made_again(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    model = trained(folder)
    IndexRefresher(tmp_path, corpus, 2, asynchronous=False).refresh(0, model)
    shutil.rmtree(corpus.path / "keys")
    resumed = IndexRefresher(tmp_path, corpus, 2, asynchronous=False)
    assert resumed.refresh(1, model) == 1
    assert_index_of(tmp_path / TOWERS / f"{0:09d}", resumed, corpus)


def wait_for(done: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Whether there is such a process, but for one that has ended and waits for its parent."""
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state not in ("", "Z")


def test_training_goes_on_while_another_process_builds(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    model, refresher = trained(folder), IndexRefresher(tmp_path, corpus, 2, asynchronous=True)
    try:
        assert refresher.refresh(0, scattered(model)) == 0
        first = refresher._builder
        assert first is not None
        assert first.pid != os.getpid()
        assert_index_of(tmp_path / TOWERS / f"{0:09d}", refresher, corpus)
        (old,) = key_folders(corpus)

        os.kill(first.pid, signal.SIGSTOP)
        assert refresher.refresh(1, scattered(model, 1)) == 1
        assert refresher.refresh(2, scattered(model, 2)) == 2
        assert refresher.refresh(3, scattered(model, 3)) == 3
        assert towers(tmp_path) == [0, 2]
        assert_index_of(tmp_path / TOWERS / f"{0:09d}", refresher, corpus)
        os.kill(first.pid, signal.SIGCONT)
        wait_for(lambda: refresher.refresh(3, model) == 1)
        assert_index_of(tmp_path / TOWERS / f"{2:09d}", refresher, corpus)
        assert towers(tmp_path) == [2]
        assert old not in key_folders(corpus)

        os.kill(first.pid, signal.SIGSTOP)
        assert refresher.refresh(4, scattered(model, 4)) == 2
        first.kill()
        first.wait()
        assert refresher.refresh(5, model) == 3
        second = refresher._builder
        assert second is not first
        wait_for(lambda: refresher.refresh(5, model) == 1)
        assert second is refresher._builder
        assert_index_of(tmp_path / TOWERS / f"{4:09d}", refresher, corpus)
    finally:
        refresher.close()
    assert second is not None
    assert not runs(second.pid)
    corpus.verify()
    assert len(key_folders(corpus)) == 1


def test_a_builder_that_always_dies_ends_the_run(
    folder: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho no room on the disk >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(index_refresh, "POLL_SECONDS", 0.02)
    refresher = IndexRefresher(tmp_path, corpus, 2, asynchronous=True)
    with pytest.raises(TrainingError, match=r"the index builder died 4 times: no room on the disk; see .*builder\.log"):
        refresher.refresh(0, trained(folder))
    assert (tmp_path / BUILDER_LOG).read_text().count("no room") == 4
    refresher.close()


def run(folder: Path, output: Path, progress: Callable[[Progress], None] | None = None, **settings: object) -> Trainer:
    """A run of six steps over a corpus beside it, from its last checkpoint."""
    corpus = Corpus.open(output / "c") if (output / "c").exists() else make_corpus(output / "c", DOCUMENTS[:8])
    config = PretrainConfig.from_dict({"lora_rank": 0, "checkpoint_every": 2, "asynchronous": False, **RUN, **settings})
    model = trained(folder)
    texts = MaskedTexts(corpus, model.tokenizer, 22, "salient", Names())
    refresher = IndexRefresher(output, corpus, config.refresh_every, config.asynchronous)
    trainer = Trainer(PretrainTask(model, texts, refresher, config), config, output)
    try:
        trainer.run(progress)
    finally:
        refresher.close()
    return trainer


def test_a_resumed_run_ends_where_an_unbroken_one_does(folder: Path, tmp_path: Path) -> None:
    unbroken = run(folder, tmp_path / "unbroken")
    with pytest.raises(Stop):
        run(folder, tmp_path / "broken", stop_at(5))
    assert index_step(tmp_path / "broken") == 4
    resumed = run(folder, tmp_path / "broken")
    assert_same(weights(unbroken), weights(resumed))
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("unbroken", "broken")]
    seen = [[(each["step"], each["loss"], each["staleness"]) for each in map(json.loads, lines)] for lines in logs]
    assert seen[0] == seen[1]
    assert [staleness for _, _, staleness in seen[0]] == [0, 1] * 3


def test_a_run_broken_off_after_a_later_refresh_goes_on(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run(folder, tmp_path, stop_at(5), checkpoint_every=3)
    assert index_step(tmp_path) == 4
    resumed = run(folder, tmp_path, checkpoint_every=3)
    assert resumed.step == 6
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(each["step"], each["staleness"]) for each in log] == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0), (6, 1)]
    corpus = Corpus.open(tmp_path / "c")
    corpus.verify()
    assert (towers(tmp_path), len(key_folders(corpus))) == ([4], 1)


KILLED = """
import sys, time
from pathlib import Path
from quoth.realm.index_refresh import IndexRefresher
from test_index_refresh import run
swap = IndexRefresher._swap
def told(self, step):
    swap(self, step)
    print("builder", self._builder.pid, flush=True)
IndexRefresher._swap = told
def progress(now):
    print("step", now.step, flush=True)
    time.sleep(60 if now.step == 3 else 0)
run(Path(sys.argv[1]), Path(sys.argv[2]), progress, asynchronous=True)
"""


def test_training_waits_for_an_index_that_is_two_refreshes_behind(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    model, refresher = trained(folder), IndexRefresher(tmp_path, corpus, 2, asynchronous=True)
    try:
        refresher.refresh(0, model)
        builder = refresher._builder
        assert builder is not None
        os.kill(builder.pid, signal.SIGSTOP)
        assert [refresher.refresh(step, scattered(model, step)) for step in (1, 2, 3)] == [1, 2, 3]
        threading.Timer(1, os.kill, (builder.pid, signal.SIGCONT)).start()
        assert refresher.refresh(4, scattered(model, 4)) in (0, 2)
    finally:
        refresher.close()


def test_the_builder_ends_with_a_killed_trainer_and_the_run_goes_on(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(folder), str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    builder = 0
    with process.stdout as lines:
        for line in lines:
            word, number = line.split()
            builder = int(number) if word == "builder" else builder
            if line == "step 3\n":
                break
        assert runs(builder)
        process.kill()
    assert process.wait() == -signal.SIGKILL
    wait_for(lambda: not runs(builder))
    seen: list[int] = []
    resumed = run(folder, tmp_path, lambda now: seen.append(now.step), asynchronous=True)
    assert (seen, resumed.step) == ([3, 4, 5, 6], 6)
    Corpus.open(tmp_path / "c").verify()
    assert (tmp_path / INDEX).is_file()


@pytest.mark.parametrize("name", ["../../precious", "..", "", ".", "{folder}"])
def test_a_run_removes_no_vectors_outside_its_corpus(corpus: Corpus, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    for file in (precious / "file", corpus.path / "keys" / "another" / "file"):
        file.parent.mkdir(parents=True)
        file.write_text("mine")
    towers = tmp_path / "run" / TOWERS / f"{7:09d}"
    towers.mkdir(parents=True)
    (towers / KEYS).write_text(name.format(folder=precious))
    IndexRefresher(tmp_path / "run", corpus, every=1, asynchronous=False)._forget([7])
    assert not towers.exists()
    assert (precious / "file").read_text() == (corpus.path / "keys" / "another" / "file").read_text() == "mine"
    corpus.verify()
