"""What an editor shows: names, types, defaults and meanings, read from the source without running it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth.fields import fields_of

jedi = pytest.importorskip("jedi", reason="jedi is not installed")
SOURCE = Path(quoth.__file__).parents[1]
CALLS = {
    "quoth.NPM": ("fill", "ask", "classify", "search", "embed"),
    "quoth.Reader": ("fill", "ask", "search"),
    "quoth.REALM": ("fill", "ask", "search", "embed"),
    "quoth.ZeroNER": ("search",),
}


@pytest.mark.parametrize(("kind", "method"), [(kind, each) for kind, methods in CALLS.items() for each in methods])
def test_an_editor_shows_names_types_defaults_and_args(kind: str, method: str) -> None:
    code = f"import quoth\nmodel = {kind}.from_pretrained()\nmodel.{method}("
    project = jedi.Project(str(SOURCE), smart_sys_path=False, sys_path=[str(SOURCE), *sys.path])
    script = jedi.Script(code, project=project)
    shown = [each.to_string() for each in script.get_signatures()]
    [hover] = script.help(3, len("model.") + 1)
    made: Any = getattr(getattr(quoth, kind.partition(".")[2]), method)
    options = fields_of(made.options) if hasattr(made, "options") else {}
    assert len(shown) == (2 if options else 1)  # one text or several
    for signature in shown:
        for each in options.values():
            written = f'"{each.default}"' if isinstance(each.default, str) else repr(each.default)
            assert f" {each.name}: " in signature
            assert f"={written}" in signature.partition(f" {each.name}: ")[2].partition(": ")[0]
        assert "**" not in signature
        assert "->" in signature
    _, _, arguments = hover.docstring().partition("\nArgs:\n")
    for name in options or jedi_names(script):
        assert f"\n    {name}" in f"\n{arguments}", name
    assert "{" not in arguments.partition("\nReturns:")[0].replace("{text}", "").replace("{question}", "")


def jedi_names(script: Any) -> list[str]:
    return [each.name for each in script.get_signatures()[0].params]
