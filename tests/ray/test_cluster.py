"""How a cluster is joined or started, with a stand-in for Ray."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from quoth.errors import ClusterError
from quoth_ray import cluster

SETTINGS = ("RAY_ADDRESS", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN")


class Slow:
    """Ray that does not start the first few times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.begun, self.undone = failures, 0, 0
        self.settings: dict[str, str] = {}

    def init(self, **options: Any) -> None:
        self.begun += 1
        self.options = options
        if self.begun <= self.failures:
            raise Exception("The current node timed out during startup. This\ncould happen because of many lines")

    def shutdown(self) -> None:
        self.undone += 1

    def module(self) -> Any:
        return SimpleNamespace(
            init=self.init,
            shutdown=self.shutdown,
            is_initialized=lambda: False,
            cluster_resources=lambda: {"CPU": 3.0},
        )


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


def test_a_slow_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(failures=2)
    monkeypatch.setitem(sys.modules, "ray", slow.module())
    assert cluster.connect() == 3
    assert (slow.begun, slow.undone) == (3, 2)
    assert slow.options["address"] == "local"
    assert slow.options["include_dashboard"] is False


def test_no_start_at_all_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(failures=10**9)
    monkeypatch.setitem(sys.modules, "ray", slow.module())
    monkeypatch.setattr(cluster, "START_SECONDS", 0.0)
    with pytest.raises(ClusterError) as raised:
        cluster.connect()
    said = str(raised.value)
    assert said.startswith("Ray did not start a cluster on this machine: The current node timed out during startup")
    assert "\n" not in said
    assert "many lines" not in said
    assert "try again" in said
    assert raised.value.exit_code == 1


def test_a_cluster_that_is_joined_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(failures=1)
    monkeypatch.setitem(sys.modules, "ray", slow.module())
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(ClusterError, match="with the cluster at auto"):
        cluster.connect()
    assert slow.begun == 1
    assert "address" not in slow.options


def test_a_cluster_of_this_machine_is_closed_to_others() -> None:
    """Ray reads these when it is imported, so they are set in a process that has not done so."""
    code = """
import os, sys, types
sys.modules.pop("ray", None)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "ray":
            print(*[os.environ.get(each, "none") for each in NAMES], flush=True)
            raise SystemExit
sys.meta_path.insert(0, Finder())
from quoth_ray.cluster import connect
connect()
"""
    names = SETTINGS[1:]
    told = subprocess.run(
        [sys.executable, "-c", code.replace("NAMES", repr(names))], capture_output=True, text=True, check=True
    ).stdout.split()
    assert told[:2] == ["0", "token"]
    assert len(told[2]) == 64
