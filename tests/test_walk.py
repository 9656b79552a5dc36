"""What scripts/walk.py counts: the files that a call enters, and the edges between them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from walk import Walk, walk


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
