"""Every table of results names the weights that it was measured with, and these are the weights that ship."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from quoth.hub import shipped_folder

ROOT = Path(__file__).parents[1]
WEIGHTS = re.compile(r"<!-- weights: (.*) -->")


def digest(model: str) -> str:
    """The first digits of the SHA-256 of a shipped model's weights, all its files in order."""
    digest = hashlib.sha256()
    for file in sorted(shipped_folder(model).rglob("*.safetensors")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def tables(page: str, after: str) -> list[tuple[str, str]]:
    """The first line of each table behind a heading, and what follows the table."""
    lines = page[page.index(after) :].splitlines()
    found, first = list[tuple[str, str]](), ""
    for line in [*lines, ""]:
        if line.lstrip().startswith("|"):
            first = first or line
        elif first:
            found.append((first, line))
            first = ""
    return found


@pytest.mark.parametrize(("page", "after"), [("docs/results.md", "# Results"), ("README.md", "## Results")])
def test_tables_are_of_the_weights_that_ship(page: str, after: str) -> None:
    found = tables((ROOT / page).read_text(encoding="utf-8"), after)
    assert found
    for first, next_line in found:
        named = WEIGHTS.fullmatch(next_line.strip())
        assert named, f"{page}: the table {first!r} is not followed by <!-- weights: … -->"
        for each in named.group(1).split(", "):
            name, _, known = each.partition(" ")
            assert name == "none" or known == digest(name), (
                f"{page}: the table {first!r} is of {each}, but {name} is {digest(name)} now: measure it again"
            )


def test_a_table_without_weights_is_found() -> None:
    page = "# A\n| a |\n|---|\n| 1 |\n<!-- weights: none -->\n\n| b |\n|---|\ntext\n"
    assert tables(page, "# A") == [("| a |", "<!-- weights: none -->"), ("| b |", "text")]


def test_results_are_tables_and_commands() -> None:
    """What was tried, and what it taught, is in the log."""
    assert len((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split()) <= 2500
