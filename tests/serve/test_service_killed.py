"""`quoth serve` killed while it writes and answers: what was acknowledged is there, and the next start is sound."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import quoth
from tiny import TEXT, tiny_corpus, tiny_npm

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.service import serving

KILLS = min(int(os.environ.get("QUOTH_TEST_KILLS", "2")), 50)
TOKEN = "correct horse"
WORDS = 20_000


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tiny_corpus(tmp_path / "notes.quoth").path


def send(address: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=120)
    try:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def text_of(number: int) -> str:
    """The text of an edition: long, so that writing it takes a while."""
    return f"Edition {number} of the book. " + f"word{number} " * WORDS


class Asking:
    """A thread that writes one edition after another, or fills a blank, until the service is gone."""

    def __init__(self, address: str, first: int | None) -> None:
        self.address, self.first = address, first
        self.answered: list[int] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError, HTTPException):
            while True:
                if self.first is None:
                    status, _ = send(self.address, "POST", "/v1/fill", {"text": "Paris is the [MASK] of France."})
                else:
                    number = self.first + len(self.answered)
                    new = [{"id": each, "text": text_of(number)} for each in ("book", f"copy{number}")]
                    status, _ = send(self.address, "PUT", "/v1/documents", {"documents": new})
                self.answered.append(status)

    def join(self) -> list[int]:
        self._thread.join()
        return self.answered


def kill_in_the_middle(service: subprocess.Popen[str], writing: Asking, filling: Asking, chance: random.Random) -> None:
    """After two editions and an answer, at some moment of the time that one edition takes."""
    begin = time.perf_counter()
    while len(writing.answered) < 2 or not filling.answered:
        assert service.poll() is None
        time.sleep(0.001)
    time.sleep(chance.random() * (time.perf_counter() - begin) / len(writing.answered))
    service.send_signal(signal.SIGKILL)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    return str(tiny_npm(tmp_path / "tiny"))


def test_a_kill_loses_nothing_that_was_acknowledged(corpus: Path, model: str) -> None:
    chance, next_edition = random.Random(0), 0
    for _ in range(KILLS):
        with serving(corpus, "--writable", "--model", model, "--reader", model, token=TOKEN) as (address, service):
            status, _ = send(address, "POST", "/v1/search", {"query": "edition of the book", "k": 1})
            assert status == 200
            writing, filling = Asking(address, next_edition), Asking(address, None)
            kill_in_the_middle(service, writing, filling, chance)
            written, filled = writing.join(), filling.join()
        assert service.returncode == -signal.SIGKILL
        assert {*written} == {200}
        assert {*filled} == {200}
        next_edition += len(written)  # of the one after these no answer came: it is there whole, or not at all
        after = quoth.Corpus.open(corpus)
        after.verify()
        texts = {each.id: each.text for each in after.documents()}
        last = next_edition if f"copy{next_edition}" in texts else next_edition - 1
        expected = {f"d{i}": each for i, each in enumerate(TEXT)} | {"book": text_of(last)}
        assert texts == expected | {f"copy{number}": text_of(number) for number in range(last + 1)}
        next_edition = last + 1
    after.delete(["book"])
    after.compact()
    assert after.snapshots() == [after.snapshot]
    assert not [*after.path.rglob("*.tmp")]
    after.verify()


HANGING = """
import os, sys, threading
from types import SimpleNamespace
from quoth.reader.model import Reader
from quoth_serve.app import create_app
from quoth_serve.limits import Limits
from quoth_serve.running import bound, run
from quoth_serve.security import Access

def never(*_):
    os.write(1, b"hangs\\n")  # at once, whatever other threads write
    threading.Event().wait()

models = SimpleNamespace(asks=Reader)
backend = SimpleNamespace(folders={}, view=lambda: models, writable=never, refresh=never)
with bound("127.0.0.1", 0) as listening:
    app = create_app(backend, Limits(timeout=0.1), Access(sys.argv[1], True, ("127.0.0.1",)))
    backend.view = never
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    run(app, listening)
print("stopped")
"""


def test_calls_that_never_end_do_not_keep_the_process() -> None:
    """Opening a snapshot, writing and looking for a new one, as on a file system that is gone."""
    command = [sys.executable, "-c", HANGING, TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        try:
            assert service.stdout is not None
            address = f"http://127.0.0.1:{service.stdout.readline().strip()}"
            for method, path, body in (
                ("POST", "/v1/search", {"query": "x"}),
                ("DELETE", "/v1/documents?id=a", None),
            ):
                threading.Thread(target=_ignored, args=(address, method, path, body), daemon=True).start()
            assert [service.stdout.readline() for _ in range(3)] == ["hangs\n"] * 3
            service.send_signal(signal.SIGTERM)
            out, _ = service.communicate(timeout=60)
        finally:
            service.kill()
    assert (out, service.returncode) == ("stopped\n", 0)


def _ignored(*request: Any) -> None:
    with suppress(OSError, HTTPException, ValueError):
        send(*request)
