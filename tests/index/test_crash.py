"""Kills, full disks and damaged files while vectors are made and merged: nothing committed is lost, work goes on."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import killed
from crashes import Tree, recorded, write_tree
from killed import document
from quoth import NPM, Corpus
from quoth.errors import QuothError
from quoth.index import build, codes
from tiny import tiny_bert

KILLS = int(os.environ.get("QUOTH_TEST_KILLS", "6"))
QUERY = "wörd1 [MASK] wörd2"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "FLAT_FROM", 30)
    monkeypatch.setattr(build, "PASSAGES_PER_PART", 8)


def answers(npm: NPM) -> dict[str, float]:
    return {each.text: each.log_score for each in npm.fill(QUERY, passages=None, top_k=1000, distinct=False)}


def assert_whole(path: Path, model: Path, documents: killed.State) -> None:
    """Sound, embedded to the end by one more run, and answering as a new corpus of the same documents does."""
    corpus = Corpus.open(path)
    corpus.verify()
    assert {each.id: each for each in corpus.documents()} == documents
    npm = NPM.from_pretrained(str(model), corpus)
    npm.embed("fp32")
    corpus.verify()
    assert not [*path.glob("keys/*/*.part"), *path.glob("keys/*/*.partial")]
    npm.embed("fp32", recall=1.0)
    fresh = Corpus.create(path.with_suffix(".fresh"), splitter="fixed:3")
    fresh.add(documents.values())
    other = NPM.from_pretrained(str(model), fresh)
    other.embed("fp32", recall=1.0)
    assert answers(npm) == pytest.approx(answers(other), abs=1e-4)


def test_a_kill_loses_no_vectors(model: Path, tmp_path: Path) -> None:
    states = killed.prepare(tmp_path, str(model))
    steps = killed.run(tmp_path, "step-0", model=str(model))
    assert killed.num_done(tmp_path / "step-0") == len(states) - 1
    kills = [f"step-{number}" for number in random.Random(0).sample(range(1, steps + 1), min(KILLS, steps))]
    killed.run(tmp_path, *kills, model=str(model))
    for name in ("step-0", *kills):
        path = tmp_path / name
        done = killed.num_done(path)
        found = {each.id: each for each in Corpus.open(path).documents()}
        assert found in states[done : done + 2]
        if found:
            assert_whole(path, model, found)


@pytest.fixture
def embedded(model: Path, tmp_path: Path) -> Path:
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="fixed:3")
    corpus.add([document("a", 30), document("b", 30)])
    NPM.from_pretrained(str(model), corpus).embed("fp32")
    corpus.delete(["b"])
    return corpus.path


LIMITED = """
import os, resource, signal, sys
import faiss, torch
from quoth import NPM, Corpus
from quoth.records import Document
torch.set_num_threads(1)
faiss.omp_set_num_threads(1)
def write(path, model, limit):
    corpus = Corpus.open(path)
    npm = NPM.from_pretrained(model, corpus)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for write in (
        lambda: corpus.add([Document("late", "", "a late word " * 4000)]),
        lambda: npm.embed("fp32"),
        lambda: corpus.compact(),
    ):
        try:
            write()
        except Exception as error:
            os.write(1, f"{limit} {type(error).__name__}\\n".encode())
model, *paths = sys.argv[1:]
for path in paths:
    if not (child := os.fork()):
        write(path, model, int(path.rpartition("/")[2]))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_disk_that_takes_no_more_loses_nothing(embedded: Path, model: Path, tmp_path: Path) -> None:
    """Each size of the largest file is tried in a fork: what a process imports takes longest."""
    limits = (0, 500, 5_000, 40_000)
    copies = [Path(shutil.copytree(embedded, tmp_path / str(limit))) for limit in limits]
    done = subprocess.run([sys.executable, "-c", LIMITED, model, *copies], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} == {*map(str, limits)}
    for path in copies:
        found = {each.id: each for each in Corpus.open(path).documents()}
        assert found.keys() in ({"a"}, {"a", "late"})
        assert found["a"] == document("a", 30)
        assert_whole(path, model, found)


@pytest.mark.parametrize("in_order", [True, False])
def test_no_power_failure_while_vectors_are_made_damages_them(
    embedded: Path, model: Path, tmp_path: Path, in_order: bool
) -> None:
    found, chance = list[Tree](), random.Random(in_order)
    Corpus.open(embedded).add([document("c", 30)])
    npm = NPM.from_pretrained(str(model), Corpus.open(embedded))
    with recorded(embedded, lambda disk, _: found.append(disk.after_power_loss(chance, in_order))):
        npm.embed("fp32")
        Corpus.open(embedded).compact()
        npm = NPM.from_pretrained(str(model), Corpus.open(embedded))
        npm.embed("fp32", recall=0.99)
    for number, tree in enumerate(found):
        path = write_tree(tree, tmp_path / f"{number}" / "c.quoth")
        corpus = Corpus.open(path)
        corpus.verify()
        assert {each.id: each for each in corpus.documents()} == {"a": document("a", 30), "c": document("c", 30)}
    for tree in chance.sample(found, 2):
        assert_whole(
            write_tree(tree, tmp_path / "whole" / str(id(tree)) / "c.quoth"),
            model,
            {"a": document("a", 30), "c": document("c", 30)},
        )


def damaged(path: Path, chance: random.Random, how: str) -> Iterator[Path]:
    """Copies of the corpus, in each of which one file is cut short or has one bit flipped."""
    files = sorted(each for each in path.rglob("*") if each.is_file() and each.stat().st_size)
    for number, file in enumerate(files):
        if file.suffix == ".lock":
            continue
        copy = path.with_name(f"damaged-{number}.quoth")
        shutil.copytree(path, copy)
        victim = copy / file.relative_to(path)
        content = bytearray(victim.read_bytes())
        if how == "cut":
            content = content[: chance.randrange(len(content))]
        else:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        victim.write_bytes(content)
        yield victim


@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_every_damaged_file_is_found(embedded: Path, how: str) -> None:
    Corpus.open(embedded).compact()
    victims = list(damaged(embedded, random.Random(how), how))
    assert len(victims) > 15
    for victim in victims:
        copy = next(parent for parent in victim.parents if parent.name.startswith("damaged-"))
        with pytest.raises(QuothError, match=copy.name):
            Corpus.open(copy).verify()
