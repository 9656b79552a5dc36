"""How many files a warm call enters, and over how many edges: these numbers may only fall."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from walk import Walk, walk, walks

MOST = {"fill": (22, 32), "ask": (25, 38), "index": (13, 23)}
"""Files and edges of today. Where a walk is shorter now, write its numbers here. The aim: 24, 40; 16, 24; 13, 24.
Of `ask`, one file and four edges find the sections that a question names."""


def test_walks_become_no_longer(capsys: pytest.CaptureFixture[str]) -> None:
    found = {name: each.counts for name, each in walks().items()}
    with capsys.disabled():
        for name, (files, edges) in found.items():
            print(f"\n{name}: {files} files, {edges} edges (at most {MOST[name]})")
    assert found.keys() == MOST.keys()
    longer = {name: counts for name, counts in found.items() if any(map(int.__gt__, counts, MOST[name]))}
    assert not longer, f"longer than {MOST}: {longer}; python scripts/walk.py --edges lists what is entered"


def test_a_walk_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "a.py": "import b\n\ndef start():\n    return own() + sorted(map(b.twice, [1]))[0] + sum(b.count())\n\n"
        "def own():\n    return 1\n",
        "b.py": "import c\n\ndef twice(n):\n    held = n\n    return (lambda: c.double(held))()\n\n"
        "def count():\n    for n in range(3):\n        yield n\n",
        "c.py": "def double(n):\n    return 2 * n\n\ndef never():\n    pass\n",
    }
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("walk.ROOT", tmp_path)
    import a  # type: ignore[import-not-found]

    found: Walk = walk(a.start)
    assert found.files == {"a.py", "b.py", "c.py"}
    assert found.edges == {("a.py", "b.py"): "twice", ("b.py", "c.py"): "double"}
