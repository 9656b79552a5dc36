"""Packages plugged into the commands by entry points, so that nothing here imports them.

Knows the two groups: `quoth.commands` has commands by their names, `quoth.packages` modules by the name of an option.
"""

from importlib.metadata import entry_points
from typing import Any

from quoth.errors import InputError

EXTRAS = {"eval": "eval", "report": "eval", "reproduce": "eval", "convert": "eval", "serve": "serve", "mcp": "mcp"}
"""Plugged-in commands, and the extra that installs each."""


def command_names() -> list[str]:
    """The names of the plugged-in commands."""
    return sorted(entry.name for entry in entry_points(group="quoth.commands"))


def command(name: str) -> Any:
    """The command of this name; None if no package has one. Raises InputError if its package is not installed."""
    for entry in entry_points(group="quoth.commands", name=name):
        return entry.load()
    if extra := EXTRAS.get(name):
        raise InputError(f"quoth {name} is not installed; get it with: {_remedy(extra)}")
    return None


def clusters() -> Any:
    """The functions for corpora at URLs and for Ray. Raises InputError if the package is not installed."""
    for entry in entry_points(group="quoth.packages", name="ray"):
        return entry.load()
    raise InputError(f"URLs of corpora, and --ray, are not installed; get them with: {_remedy('ray')}")


def _remedy(extra: str) -> str:
    return f"pip install 'quoth[{extra}]' (in a clone: pip install '.[{extra}]')"
