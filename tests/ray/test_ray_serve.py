"""What answers on a cluster, without one: the same routes and replies as in one process."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth.errors import CorpusNotFoundError, InputError
from quoth.storage import remove
from quoth_ray.cluster import ModelName
from quoth_ray.remote import RemoteFolder
from tiny import TEXT, tiny_npm

pytest.importorskip("ray")
pytest.importorskip("prometheus_client")

from starlette.testclient import TestClient

from quoth_serve import replies
from quoth_serve.app import create_app
from quoth_serve.library import Library, Models
from quoth_serve.security import Access

pytestmark = pytest.mark.filterwarnings("ignore")
BLANK = "the capital of [MASK] is above the river"


class Handle:
    """A shard's handle, whose calls are made at once in this process."""

    def __init__(self, replica: Any) -> None:
        self._replica, self.hangs = replica, False

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> Any:
            return type("Response", (), {"result": lambda _, timeout_s: self._answer(name, arguments, timeout_s)})()

        return type("Method", (), {"remote": staticmethod(remote)})

    def _answer(self, name: str, arguments: tuple[Any, ...], timeout_s: float) -> Any:
        assert timeout_s > 0
        if self.hangs:
            raise TimeoutError
        return getattr(self._replica, name)(*arguments)


def made(folder: Path) -> tuple[Any, list[Handle], quoth.NPM]:
    """What answers by asking two shards, their handles, and the model that answers in this process."""
    from quoth_ray.serve import Front, ShardReplica, parts_of

    model, corpus = ModelName(str(tiny_npm(folder / "tiny"))), quoth.Corpus.create(folder / "notes.quoth")
    for number, text in enumerate(TEXT):
        corpus.add([quoth.Document(f"d{number}", f"T{number}", text)])
    npm = quoth.NPM.from_pretrained(model.name, corpus)
    npm.embed("fp32")
    place = RemoteFolder(str(corpus.path))
    shards = [Handle(ShardReplica(place, model, part)) for part in parts_of(corpus, 2)]
    front = Front(place, model, shards, lambda front: create_app(front, access=Access(hosts=())))
    return front, shards, npm


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What answers by asking two shards, their handles, and what answers in this process."""
    front, shards, npm = made(tmp_path_factory.mktemp("served"))
    return front, shards, create_app(Library(Models(npm, npm), [npm.corpora[0].path]), access=Access(hosts=()))


@pytest.fixture(scope="module")
def clients(parts: Any) -> Any:
    """One whose answers come from two shards, and one from one process."""
    front, _, alone = parts
    with TestClient(front.__serve_build_asgi_app__()) as ours, TestClient(alone) as theirs:
        yield ours, theirs


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("fill", {"text": BLANK, "passages": None, "top_k": 3}),
        ("fill", {"text": [BLANK, "[MASK] sat"], "combine": "softmax_sum"}),
        ("ask", {"question": "What is the capital of Germany?"}),
        ("classify", {"text": "Paris", "labels": {"a": ["capital"], "b": ["river"]}}),
        ("search", {"query": "capital river", "k": 3, "words": True}),
        ("verify", {"text": "the capital of France"}),
    ],
    ids=str,
)
def test_shards_answer_as_one_process_does(clients: Any, route: str, body: Any) -> None:
    ours, theirs = (client.post(f"/v1/{route}", json=body) for client in clients)
    assert ours.status_code == theirs.status_code == 200
    assert _rounded(ours.json()) == _rounded(theirs.json())


def test_what_a_cluster_says_of_itself_and_what_it_has_not(clients: Any) -> None:
    ours, _ = clients
    about = replies.About.model_validate(ours.get("/v1/corpus").json())
    assert (about.corpora[0].name, about.models["shards"], about.modes) == ("notes", 2, ["bm25"])
    assert ours.get("/v1/documents", params={"id": "d1"}).json()["text"] == TEXT[1]
    for body, status in (
        ({"query": "a", "mode": "dense"}, 400),
        ({"query": "a", "corpus": "other"}, 404),
        ({"query": "a", "corpus": "notes", "snapshot": 1}, 404),
    ):
        assert ours.post("/v1/search", json=body).status_code == status


def test_it_is_not_ready_while_a_shard_does_not_answer(parts: Any, clients: Any) -> None:
    (_, shards, _), (ours, _) = parts, clients
    assert ours.get("/readyz").status_code == 200
    shards[1].hangs = True
    answer = ours.get("/readyz")
    shards[1].hangs = False
    assert (answer.status_code, answer.json()["detail"]) == (503, "no answer from shards 1")
    assert ours.get("/readyz").status_code == 200


def test_the_times_of_shards_and_what_was_lost_are_counted(parts: Any, clients: Any) -> None:
    from ray.exceptions import ActorDiedError

    from quoth_ray.serve import _outcome

    def count(name: str) -> float:
        lines = clients[0].get("/metrics").text.splitlines()
        return sum(float(line.split()[1]) for line in lines if line.startswith(name))

    named = 'quoth_shard_seconds_count{call="nearest",shard="1"}'
    before = count(named)
    assert clients[0].post("/v1/fill", json={"text": BLANK}).status_code == 200
    assert count(named) == before + 1
    lost = iter([True, False])

    def result(timeout_s: float) -> Any:
        if next(lost):
            raise ActorDiedError
        return "answer"

    response = type("Response", (), {"result": staticmethod(result)})
    told = partial(parts[0]._told, 1, "nearest", None)
    assert _outcome(response, lambda: response, 9.0, told) == "answer"
    assert (count('quoth_shard_lost_total{shard="1"}'), count(named)) == (1, before + 1)


def test_once_it_drains_it_accepts_nothing(parts: Any) -> None:
    front, *_ = parts
    with TestClient(front.__serve_build_asgi_app__()) as ours:
        assert ours.post("/v1/fill", json={"text": BLANK}).status_code == 200
        asyncio.run(front.drain())
        assert not front._application.state.service.writing.locked()  # or the next drain would wait for it
        answer = ours.post("/v1/fill", json={"text": BLANK})
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert ours.get("/readyz").json()["detail"] == "the service stops"


def test_what_is_new_is_served_once_every_shard_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has asked before is answered from the snapshot that he asked."""
    from quoth_ray import serve as ray_serve

    front, shards, npm = made(tmp_path)
    [corpus] = npm.corpora
    before, expected = front.view(), _told(npm.fill([BLANK], passages=None))
    corpus.add([quoth.Document("new", "", "the capital of Spain is above the river")])
    corpus.delete(["d0"])
    assert (front.refresh(), front.view()) == (False, before)  # it has looked a moment ago
    monkeypatch.setattr(ray_serve, "LOOK_SECONDS", 0.0)
    shards[1].hangs = True
    with pytest.raises(TimeoutError):
        front.refresh()
    assert front.view() is before
    shards[1].hangs = False
    assert front.refresh()
    assert not front.refresh()
    [served] = front.view().corpora
    assert served.snapshot == corpus.snapshot
    assert _told(before.fills.fill([BLANK], passages=None)) == expected
    alone = quoth.NPM.from_pretrained(npm.name, quoth.Corpus.open(corpus.path))
    after = _told(alone.fill([BLANK], passages=None))
    assert after != expected
    assert _told(front.view().fills.fill([BLANK], passages=None)) == after
    started_again = ray_serve.ShardReplica(
        front._place, front._model, ray_serve.Part(99, ())
    )  # what it began with is gone
    shards[0]._replica = started_again
    assert _told(front.view().fills.fill([BLANK], passages=None)) == after


def test_a_snapshot_is_served_when_it_has_the_vectors_that_the_last_one_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quoth_ray import serve as ray_serve

    monkeypatch.setattr(ray_serve, "LOOK_SECONDS", 0.0)
    front, _, npm = made(tmp_path)
    [corpus] = npm.corpora
    before = front.view()
    corpus.add([quoth.Document(f"n{i}", "", f"the capital of Spain number {i} is above") for i in range(400)])
    with pytest.raises(InputError, match="lacks vectors that 6 has, which is served until `quoth embed`"):
        front.refresh()
    assert front.view() is before
    assert before.fills.fill([BLANK], passages=None)
    quoth.NPM.from_pretrained(npm.name, quoth.Corpus.open(corpus.path)).embed("fp32")
    assert front.refresh()
    assert front.view().corpora[0].snapshot == corpus.snapshot
    assert front.view().fills.fill([BLANK], passages=None)


def test_another_corpus_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quoth_ray import serve as ray_serve

    monkeypatch.setattr(ray_serve, "LOOK_SECONDS", 0.0)
    front, _, npm = made(tmp_path)
    before, path = front.view(), npm.corpora[0].path
    remove(path)
    quoth.Corpus.create(path).add([quoth.Document("a", "", "Another text."), quoth.Document("b", "", "And one more.")])
    with pytest.raises(CorpusNotFoundError, match="another corpus has taken its place; restart"):
        front.refresh()
    assert front.view() is before


def test_replicas_are_a_number_or_a_range() -> None:
    from quoth_ray.serve import scaling

    assert scaling(2, None) == {"num_replicas": 2}
    most = scaling(2, 5)["autoscaling_config"]
    assert (most["min_replicas"], most["max_replicas"]) == (2, 5)


def _told(answers: Any) -> Any:
    return [[(one.text, f"{one.score:.4g}") for one in each] for each in answers]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value
