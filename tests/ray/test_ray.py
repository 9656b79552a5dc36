"""Indexing, embedding and serving on a cluster of two nodes on this machine: the same corpus, vectors and answers as
one process gives, workers killed in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from test_npm import sentences

from quoth import NPM, Corpus
from quoth.errors import DuplicateDocumentError, EncoderMismatchError, InputError
from quoth.index.key_store import MARKERS
from quoth.index.tables import KeyTables
from quoth.records import Document
from quoth_ray.cluster import ModelName, _check_reachable
from quoth_ray.remote import TEXT, RemoteFolder
from tiny import tiny_npm

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.filterwarnings("ignore")
QUERY = "the capital of [MASK] is above the river"
PORT = 8517


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["QUOTH_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    del os.environ["QUOTH_CACHE"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelName:
    return ModelName(str(tiny_npm(tmp_path_factory.mktemp("model") / "tiny")))


def documents(count: int = 60) -> list[Document]:
    rng = np.random.default_rng(5)
    return [Document(f"d{i}", "Paris" * (i % 2), sentences(rng, 20)) for i in range(count)]


def workers() -> list[psutil.Process]:
    """The processes that are at work on a task."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(part.startswith(("ray::_write", "ray::_embed")) for part in process.info["cmdline"] or ()):
            found.append(process)
    return found


def killing(ready: Any) -> threading.Thread:
    """Kills one worker as soon as `ready()`; `.killed` tells which."""

    def run() -> None:
        while not thread.stop:  # type: ignore[attr-defined]
            if ready() and (found := workers()):
                found[0].send_signal(signal.SIGKILL)
                thread.killed = found[0].pid  # type: ignore[attr-defined]
                return
            time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.stop, thread.killed = False, None  # type: ignore[attr-defined]
    thread.start()
    return thread


def test_a_corpus_is_the_same_whoever_writes_it(cluster: Any, tmp_path: Path) -> None:
    from quoth_ray.build import index

    one, many = (Corpus.create(tmp_path / f"{name}.quoth") for name in ("one", "many"))
    counts: list[int] = []
    one.add(documents())
    thread = killing(lambda: any((many.path / "segments").iterdir()))
    assert index(many, iter(documents()), counts.append, block_characters=6_000) == 60
    thread.stop = True  # type: ignore[attr-defined]
    thread.join()
    assert thread.killed  # type: ignore[attr-defined]
    many = Corpus.open(many.path)
    many.verify()
    assert len(many.segments) > 3
    assert counts[-1] == 60
    assert counts == sorted(counts)
    assert list(many.documents()) == list(one.documents())
    assert list(many.passages()) == list(one.passages())
    for query in ("capital of Germany", "raven above the door", "Paris"):
        for ours, theirs in zip(many.bm25(query, 30), one.bm25(query, 30), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert not list(many.path.rglob("*.tmp"))


def test_an_error_stops_the_other_tasks_first(cluster: Any, tmp_path: Path) -> None:
    from quoth_ray.build import index

    corpus = Corpus.create(tmp_path / "twice.quoth")
    slow = [Document(f"s{i}", "", "word " * 200_000) for i in range(3)]
    with pytest.raises(DuplicateDocumentError):
        index(corpus, [*documents(1), *documents(1), *slow], block_characters=10)
    assert not workers()
    assert not list(corpus.path.glob("segments/*"))


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"RAY_ADDRESS is '127\.0\.0\.1:1': no cluster there"):
        _check_reachable("127.0.0.1:1")


def test_the_command_line_on_a_cluster(
    cluster: Any, model: ModelName, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from quoth.cli.main import main

    texts = tmp_path / "docs.jsonl"
    texts.write_text("".join(json.dumps({"id": each.id, "text": each.text}) + "\n" for each in documents(20)))
    for place in (str(tmp_path / "near.quoth"), f"file://{tmp_path}/far.quoth"):
        assert main(["index", str(texts), "-o", place, "--ray", "--block", "1"]) == 0
        assert main(["embed", place, "--ray", "--model", model.name]) == 0
        assert main(["index", str(texts), "-o", place, "--ray"]) == 2
        assert "already exists" in capsys.readouterr().err
    far = Corpus.open(tmp_path / "far.quoth")
    far.verify()
    assert NPM.from_pretrained(model.name, far).fill(QUERY, passages=None)
    for command in (["index", str(texts), "-o", "s3://x/y"], ["embed", "s3://x/y"]):
        assert main(command) == 2
        assert "is a URL; add --ray" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "near.quoth"), "--ray", "--shards", "5"]) == 2
    assert "more than the cluster's 4 CPUs" in capsys.readouterr().err


def test_what_is_wrong_with_a_document_is_told_as_ever(cluster: Any, tmp_path: Path) -> None:
    from quoth_ray.build import index

    corpus = Corpus.create(tmp_path / "wrong.quoth")
    corpus.add([Document("here", "", "A text.")])
    for wrong in (documents(8) + documents(1), [Document("here", "", "Another.")]):
        with pytest.raises(DuplicateDocumentError, match=r"twice|already"):
            index(corpus, wrong, block_characters=2_000)
    with pytest.raises(InputError, match="not a non-empty string"):
        index(corpus, [*documents(3), Document("", "", "No id.")], block_characters=2_000)
    assert Corpus.open(corpus.path).num_documents == 1
    corpus.verify()
    assert index(corpus, []) == 0


@pytest.fixture(scope="module")
def embedded(cluster: Any, model: ModelName, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Embedded by the cluster, a worker killed in the middle."""
    from quoth_ray.build import embed

    corpus = Corpus.create(tmp_path_factory.mktemp("corpora") / "parts.quoth", splitter="words:12")
    texts = documents(80)
    for first in range(0, 80, 20):
        corpus.add(texts[first : first + 20])
    corpus.delete(["d7"])
    done: list[tuple[int, int]] = []
    thread = killing(lambda: any(corpus.path.glob("keys/*/*.part")))
    embed(corpus, model, "fp32", progress=lambda *each: done.append(each))
    thread.stop = True  # type: ignore[attr-defined]
    thread.join()
    assert thread.killed  # type: ignore[attr-defined]
    total = sum(each.num_passages for each in corpus.segments)
    assert done[-1] == (total, total)
    return corpus


def test_vectors_are_the_same_whoever_makes_them(embedded: Corpus, model: ModelName, tmp_path: Path) -> None:
    embedded.verify()
    alone = Corpus.create(tmp_path / "alone.quoth", splitter="words:12")
    for first in range(0, 80, 20):
        alone.add(documents(80)[first : first + 20])
    NPM.from_pretrained(model.name, alone).embed("fp32")
    tables = sorted(alone.path.glob("keys/*/0*/vectors.npy"))
    assert len(tables) == 4
    for table in tables:
        ours = np.load(embedded.path / table.relative_to(alone.path))
        np.testing.assert_allclose(ours, np.load(table), atol=2e-5)


def test_an_embedded_corpus_costs_no_task(embedded: Corpus, model: ModelName) -> None:
    from quoth_ray.build import embed

    assert KeyTables(embedded, model.load()).unfinished(0.97) == []
    embed(embedded, model, "fp32")
    with pytest.raises(InputError, match="has fp32 vectors"):
        embed(embedded, model, "sq8")
    with pytest.raises(EncoderMismatchError, match="on this machine"):
        ModelName(model.name, fingerprint="f" * 64).load()


def test_an_interrupted_run_stops_its_tasks_and_goes_on(cluster: Any, model: ModelName, tmp_path: Path) -> None:
    from quoth_ray.build import embed, index

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    corpus = Corpus.create(tmp_path / "cut.quoth")
    with pytest.raises(KeyboardInterrupt):
        index(corpus, documents(), interrupt, block_characters=6_000)
    assert Corpus.open(corpus.path).num_documents == 0
    assert index(corpus, documents(), block_characters=6_000) == 60
    with pytest.raises(KeyboardInterrupt):
        embed(corpus, model, progress=interrupt)
    assert not workers()
    embed(corpus, model)
    corpus.verify()
    assert NPM.from_pretrained(model.name, corpus).fill(QUERY, passages=None)


def test_a_corpus_at_a_url(cluster: Any, model: ModelName, tmp_path: Path) -> None:
    """Indexed, embedded and searched there, as in a folder."""
    from quoth_ray.build import embed, index
    from quoth_ray.serve import ShardReplica, parts_of

    place = RemoteFolder(f"file://{tmp_path}/far/wiki.quoth")
    corpus = Corpus.create(place.path)
    assert index(corpus, documents(), block_characters=6_000, place=place) == 60
    far = Corpus.open(tmp_path / "far" / "wiki.quoth")
    far.verify()
    assert list(far.documents()) == documents()
    names = {path.name for path in (far.path / "segments").iterdir() if any(path.iterdir())}
    assert names == {each.name for each in far.segments}
    place.fetch(*TEXT, *MARKERS)
    embed(Corpus.open(place.path), model, place=place)
    far.verify()
    assert len(list(far.path.glob("keys/*/*/vectors.npy"))) == len(far.segments)
    for lost in list(far.path.glob("keys/*/*/checksums.json"))[-2:]:
        shutil.rmtree(lost.parent)  # as if it had been killed before the last folders were sent
    embed(Corpus.open(place.path), model, place=place)
    assert len(list(far.path.glob("keys/*/*/vectors.npy"))) == len(far.segments)
    assert not (far.path / "writer.lock").exists() or not (far.path / "writer.lock").read_text()
    assert NPM.from_pretrained(model.name, far).fill(QUERY, passages=None)
    [part] = parts_of(far, 1)
    replica = ShardReplica(place, model, part)
    groups, seconds = replica.call(part, "groups", *_asked(NPM.from_pretrained(model.name, far), replica, part))
    assert groups.key_G.size
    assert seconds > 0


def _asked(npm: NPM, replica: Any, part: Any) -> tuple[Any, Any]:
    from quoth.answers.options import ResolvedOptions
    from quoth_ray.shard import ShardQuery, Taken

    question = ShardQuery(*npm.query_vectors(QUERY), ResolvedOptions(), 9)
    return question, Taken(np.arange(9), np.arange(9), replica.call(part, "nearest", question)[0].layout)


def post(route: str, **body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/{route}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=200) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(scope="module")
def served(cluster: Any, embedded: Corpus, model: ModelName) -> Iterator[NPM]:
    """The model of one process, while the cluster serves the same corpus."""
    from quoth_ray.serve import application, start
    from quoth_serve.app import create_app
    from quoth_serve.limits import Limits
    from ray import serve

    build = partial(create_app, limits=Limits(timeout=180))  # a new shard may start slowly on a busy machine
    start(application(RemoteFolder(str(embedded.path)), model, 2, build, fronts=2), "127.0.0.1", PORT)
    yield NPM.from_pretrained(model.name, embedded)
    serve.shutdown()


@pytest.mark.parametrize(
    "options",
    [
        {"passages": None},
        {"passages": None, "combine": "softmax_sum", "k": 300},
        {"passages": 3},
        {"passages": 3, "passage_share": 0.3, "top_k": 9},
    ],
    ids=str,
)
def test_the_cluster_answers_as_one_process_does(served: NPM, options: dict[str, Any]) -> None:
    status, answer = post("fill", text=QUERY, **options)
    assert status == 200, answer
    ours, theirs = answer["predictions"], [each.to_dict() for each in served.fill(QUERY, **options)]
    assert [each["token_str"] for each in ours] == [each["token_str"] for each in theirs]
    for left, right in zip(ours, theirs, strict=True):
        assert left["score"] == pytest.approx(right["score"], rel=1e-4)
        places = [{(e["passage"], e["start"], e["end"]) for e in each["evidence"]} for each in (left, right)]
        assert places[0] == places[1]


def replicas_of(what: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(f"ServeReplica:quoth:{what}" in part for part in process.info["cmdline"] or ())
    ]


def test_requests_survive_the_death_of_a_shard(served: NPM) -> None:
    expected = [each.text for each in served.fill(QUERY, passages=None)]
    answers: list[Any] = []

    def ask() -> None:
        for _ in range(12):
            answers.append(post("fill", text=QUERY, passages=None))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(answers) < 4 and threads[0].is_alive():
        time.sleep(0.01)
    shards = replicas_of("shard-")
    assert len(shards) == 2
    shards[0].send_signal(signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert len(answers) == 24
    for status, answer in answers:
        assert status == 200, answer
        assert [each["token_str"] for each in answer["predictions"]] == expected


def test_every_front_answers_until_it_drains(served: NPM) -> None:
    from quoth_ray.serve import drain

    assert len(replicas_of("Front")) == 2
    assert {post("fill", text=QUERY)[0] for _ in range(12)} == {200}
    drain()
    assert {post("fill", text=QUERY)[0] for _ in range(12)} == {503}


def test_more_shards_than_segments_are_refused(embedded: Corpus, model: ModelName) -> None:
    from quoth_ray.serve import application

    place = RemoteFolder(str(embedded.path))
    with pytest.raises(InputError, match="9 shards of 4 segments"):
        application(place, model, 9, lambda front: front)
    with pytest.raises(InputError, match="0 replicas"):
        application(place, model, 2, lambda front: front, replicas=0)
    with pytest.raises(InputError, match="0 fronts"):
        application(place, model, 2, lambda front: front, fronts=0)
    with pytest.raises(InputError, match="at most 1 replicas are fewer than 2"):
        application(place, model, 2, lambda front: front, replicas=2, most=1)
