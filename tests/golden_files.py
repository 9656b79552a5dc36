"""Compares what the code gives with a file of tests/golden, or writes that file.

QUOTH_TEST_GOLDEN=write writes the files anew instead of comparing; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
OLD = GOLDEN / "old"
"""Models and a corpus that an earlier version wrote; see make_old.py there. Copy a corpus before you open it."""
REMEDY = "if this is meant, write it anew with QUOTH_TEST_GOLDEN=write and read the difference"


def check_text(name: str, found: str) -> None:
    """A text equals the file of that name."""
    path = GOLDEN / name
    if os.environ.get("QUOTH_TEST_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    assert found.splitlines() == path.read_text(encoding="utf-8").splitlines(), f"{path.name}: {REMEDY}"


def check_values(name: str, found: dict[str, Any]) -> None:
    """These entries of a JSON file equal what was found, numbers to 1e-4; other entries are those of other tests."""
    path, found = GOLDEN / name, json.loads(json.dumps(found))
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if os.environ.get("QUOTH_TEST_GOLDEN") == "write":
        known = dict(sorted({**known, **_rounded(found)}.items()))
        path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for entry, value in found.items():
        assert value == _about(known[entry]), f"{path.name}, {entry}: {REMEDY}"


def _rounded(value: Any) -> Any:
    return _each(value, lambda number: round(number, 6))


def _about(value: Any) -> Any:
    return _each(value, lambda number: pytest.approx(number, rel=1e-4, abs=1e-4))


def _each(value: Any, of_number: Any) -> Any:
    match value:
        case float():
            return of_number(value)
        case dict():
            return {name: _each(each, of_number) for name, each in value.items()}
        case list():
            return [_each(each, of_number) for each in value]
    return value
