"""The type of the fixture `run` (conftest.py), which runs a command of `quoth`."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]
"""From the words of the command line to the exit code, standard output and standard error."""
