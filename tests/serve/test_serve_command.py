"""`quoth serve` as a process: what it refuses, what it prints, how it stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from commands import Run
from quoth_serve.command import _access
from tiny import tiny_corpus, tiny_npm

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tiny_corpus(tmp_path / "notes.quoth").path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no corpus to serve"),
        (("--demo", "x"), "leave x out"),
        (("x", "--writable"), "--writable requires a token; set QUOTH_TOKEN"),
        (("x", "--limit", "quue=3"), "did you mean queue?"),
        (("x", "--limit", "queue=many"), "--limit queue=many is not a number"),
        (("x", "--limit", "body=many"), "not an amount of memory"),
        (("x", "--limit", "timeout=0"), "limit timeout is 0.0"),
        (("x", "--limit", "timeout=1e10"), "limit timeout is 10000000000.0; it must be from 0.001 to 86400"),
        (("x", "--token-file", "/none"), "--token-file /none"),
        (("x", "y", "--ray"), "--ray serves one corpus"),
        (("x", "--ray", "--search", "quoth-zero-ner"), "leave one out"),
        (("/none.quoth",), "corpus not found"),
        (("x", "--allow-host", "https://my.org"), "host 'https://my.org': give its name alone"),
        (("x", "--allow-host", "my.org:443"), "host 'my.org:443': give its name alone"),
        (("x", "--host", "my..server"), "--host 'my..server' is no host name"),
    ],
    ids=str,
)
def test_what_is_refused(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run("serve", *arguments, "--port", 0)
    assert (code, out) == (2, "")
    assert said in err


def test_a_corpus_that_cannot_be_written_to_is_refused_before_anything_is_loaded(
    run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_TOKEN", "correct horse")
    monkeypatch.setattr("quoth_serve.command.os.access", lambda path, mode: (path, mode) != (corpus, os.W_OK))
    code, out, err = run("serve", corpus, "--port", 0, "--writable")
    assert (code, out) == (2, "")
    assert err == f"quoth: --writable: {corpus} cannot be written to; change its permissions, or leave --writable out\n"


def test_a_copy_of_a_url_is_not_written_to(run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_TOKEN", "correct horse")
    code, _, err = run("serve", f"file://{corpus}", "--port", 0, "--writable")
    assert (code, "is a URL, of which a copy is served; use quoth add, replace or delete" in err) == (2, True)


def test_a_damaged_corpus_is_refused_with_the_reason(run: Run, corpus: Path) -> None:
    damaged = list(corpus.glob("**/manifest*.json"))
    for file in damaged:
        file.write_bytes(file.read_bytes()[:-1])
    model = tiny_npm(corpus.parent / "tiny")
    code, out, err = run("serve", corpus, "--port", 0, "--model", model, "--reader", model)
    assert (code, out) == (1, "")
    assert any(file.name in err for file in damaged)


def test_a_token_of_the_environment_and_a_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("correct horse\n")
    monkeypatch.setenv("QUOTH_TOKEN", "battery staple")
    assert "are both set" in run("serve", "x", "--token-file", file)[2]
    monkeypatch.setenv("QUOTH_TOKEN", "battery staple\n")
    assert _access("0.0.0.0", (), None, False).token == "battery staple"
    monkeypatch.setenv("QUOTH_TOKEN", "short")
    assert "5 characters" in run("serve", "x")[2]


@pytest.mark.parametrize("stopped_by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_service_stopped_while_it_loads_leaves_nothing(tmp_path: Path, stopped_by: signal.Signals) -> None:
    command = [sys.executable, "-m", "quoth", "serve", "--demo", "--port", "0"]
    environment = os.environ | {"TMPDIR": str(tmp_path), "QUOTH_TOKEN": ""}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=_heed
    ) as service:
        assert service.stderr is not None
        assert service.stderr.readline() == "quoth: loading the models\n"
        assert len(os.listdir(tmp_path)) == 1
        service.send_signal(stopped_by)
        out, err = service.communicate(timeout=120)
    assert (out, err) == ("", "quoth: interrupted; everything committed so far is kept\n")
    codes = [128 + stopped_by] + [-stopped_by] * (stopped_by == signal.SIGINT)  # CPython, if an import was interrupted
    assert service.returncode in codes
    assert os.listdir(tmp_path) == []


def _heed() -> None:
    """The signals as a terminal's programs get them, whatever started the tests."""
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def test_a_service_answers_and_stops(corpus: Path) -> None:
    """Its address is the only line of standard output; every line of standard error after the start is JSON."""
    model = str(tiny_npm(corpus.parent / "tiny"))
    command = [sys.executable, "-m", "quoth", "serve", str(corpus), "--port", "0", "--model", model, "--reader", model]
    service = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"QUOTH_TOKEN": ""}
    )
    try:
        assert service.stdout is not None
        address = service.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        body = json.dumps({"text": "Paris is the [MASK] of France."}).encode()
        request = urllib.request.Request(f"{address}/v1/fill", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            assert json.load(answer)["predictions"][0]["evidence"]
        with urllib.request.urlopen(f"{address}/", timeout=120) as answer:
            assert b"<title>Quoth</title>" in answer.read()
        service.send_signal(signal.SIGINT)
        out, err = service.communicate(timeout=120)
    finally:
        service.kill()
    assert (service.returncode, out) == (0, "")
    first, *lines, last = err.splitlines()
    assert (first, last) == ("quoth: loading the models", "quoth: stopped")
    assert [json.loads(line)["route"] for line in lines] == ["/v1/fill", "/"]
