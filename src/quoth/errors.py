"""The errors Quoth raises; each message is one line: the value, what is allowed, the remedy.

    QuothError
    ├── UserError                   the user can mend it: exit code 2
    │   ├── InputError              text, arguments or records that cannot be used
    │   ├── CorpusNotFoundError     no corpus (or snapshot) there
    │   ├── EmptyCorpusError        a search in a corpus without passages
    │   ├── ModelNotFoundError      no model of that name
    │   ├── EncoderMismatchError    the keys belong to another model
    │   ├── LockedError             another process is writing
    │   ├── UnknownDocumentError    no document of that id
    │   └── DuplicateDocumentError  a document of that id is there already
    ├── TrainingError               a run that cannot go on: exit code 1
    ├── ClusterError                Ray does not start: exit code 1
    └── CorruptionError             a file on disk is damaged: exit code 1

This module knows names and exit codes only, not who raises what.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class QuothError(Exception):
    """Anything Quoth raises on purpose."""

    exit_code = 1


class UserError(QuothError):
    """A mistake the user can mend; the message says how."""

    exit_code = 2


class InputError(UserError):
    """A text, an argument or a record that cannot be used."""


class CorpusNotFoundError(UserError):
    """There is no corpus at that path, or no such snapshot of it."""


class EmptyCorpusError(UserError):
    """The corpus holds no passage to search."""


class ModelNotFoundError(UserError):
    """No model goes by that name here."""


class EncoderMismatchError(UserError):
    """The keys on disk were made by another model than the one that asks."""


class LockedError(UserError):
    """Another process is writing to the corpus."""


class UnknownDocumentError(UserError):
    """The corpus holds no document of that id."""


class DuplicateDocumentError(UserError):
    """The corpus holds a document of that id already."""


class CorruptionError(QuothError):
    """A file on disk is missing, truncated or altered; the message names it."""


def nearest(name: object, allowed: Iterable[str]) -> str:
    """ "; did you mean …?" with the allowed name that is spelled most alike; "" where none is near."""
    alike = get_close_matches(str(name), list(allowed), n=1)
    return f"; did you mean {alike[0]}?" if alike else ""


@contextmanager
def advising(remedy: str) -> Iterator[None]:
    """An error of damage that is raised within, and names no command as a remedy, names this one."""
    try:
        yield
    except CorruptionError as error:
        if "`quoth " in str(error):
            raise
        raise CorruptionError(f"{error}; {remedy}") from error


class TrainingError(QuothError):
    """A training run that cannot go on; what it saved before is kept."""


class TextCutWarning(UserWarning):
    """A text is longer than the encoder takes; what is left of it is around its blank."""


class ClusterError(QuothError):
    """Ray cannot be started, or what is to run on it."""
