"""The rows of a table asked on a cluster: the same as in one process, an actor killed in the middle."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import quoth
from commands import Run
from quoth.index.finder import Finder

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["QUOTH_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()
    del os.environ["QUOTH_CACHE"]


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "c.quoth")
    names = ["Ann Baker", "Carl Dean", "Eve Fox", "Gil Hays", "Ian Jones"]
    made.add(quoth.Document(f"{at}", "", f"The contract was signed by {name} in May.") for at, name in enumerate(names))
    Finder([made]).embed()
    return made


def actors() -> list[psutil.Process]:
    return [
        each for each in psutil.process_iter(["cmdline"]) if "ray::RowActor" in " ".join(each.info["cmdline"] or ())
    ]


def test_rows_are_the_same_whoever_asks_them(corpus: quoth.Corpus, tmp_path: Path, run: Run) -> None:
    questions = tmp_path / "q.txt"
    questions.write_text("Who signed the contract?\nWhen was the contract signed?\n")
    asked = ("table", corpus.path, questions, "--where", "id != '0'")
    here = run(*asked, "--json")
    assert here[0] == 0
    assert [json.loads(line)["document_id"] for line in here[1].splitlines()] == ["1", "2", "3", "4"]
    assert run(*asked, "--json", "--ray")[:2] == here[:2]
    away = ("table", f"file://{corpus.path}", *asked[2:])
    assert run(*away, "--json", "--ray", "-o", tmp_path / "t.jsonl")[:2] == here[:2]
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl.rows").read_text().splitlines()]
    assert not any(each["row"].get("by_words") for each in rows if "row" in each)
    assert not psutil.wait_procs(actors(), timeout=60)[1]


def test_rows_of_an_actor_that_dies_are_asked_again(corpus: quoth.Corpus) -> None:
    from quoth.tables.columns import columns_of
    from quoth_ray.cluster import ModelName
    from quoth_ray.remote import RemoteFolder
    from quoth_ray.tables import asking

    columns = columns_of(["Who signed the contract?"])
    rows = asking(RemoteFolder(str(corpus.path)), ModelName("quoth-reader"))(corpus, columns, None, [*"01234"])
    found = [next(rows)]
    killed = actors()[0]
    killed.send_signal(signal.SIGKILL)
    found += rows
    assert sorted(row.document_id for row in found) == [*"01234"]
    assert {
        row.cells[columns[0].name].evidence[0]["document_id"] for row in found if row.cells[columns[0].name].text
    } <= {*"01234"}
