"""The errors of reading files, which are also those that Quoth's other errors extend.

Each message is one line: the value, what is allowed, the remedy. `quoth.errors` has them all.
"""

from collections.abc import Sequence


class QuothError(Exception):
    """Anything Quoth raises on purpose."""

    exit_code = 1


class UserError(QuothError):
    """A mistake the user can fix; the message says how."""

    exit_code = 2


class InputError(UserError):
    """A text, an argument or a record that cannot be used."""


class FileWarning(UserWarning):
    """Files of a folder are left out, or a file is read in a way that one should know."""


def brief(value: object) -> str:
    """A value as errors show it, at most 60 characters long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def few(names: Sequence[str], most: int = 3) -> str:
    """The first names of a list, as messages show it."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
