"""The errors Quoth raises. Each message is one line: the value, what is allowed, the remedy.

This module knows names, exit codes and the remedy for damage, not who raises what.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from errno import EFBIG
from pathlib import Path

from quoth_sources.errors import FileWarning as FileWarning
from quoth_sources.errors import InputError as InputError
from quoth_sources.errors import QuothError as QuothError
from quoth_sources.errors import UserError as UserError
from quoth_sources.errors import brief as brief
from quoth_sources.errors import few as few


class RecordError(InputError):
    """A record, or a whole file of documents (`line` is 0), that cannot be used. `remedy` ends the message."""

    def __init__(self, file: str, line: int, reason: object, remedy: str, cause: Exception | None = None) -> None:
        super().__init__(f"{file}:{line}: {reason}; {remedy}" if line else f"{file}: {reason}; {remedy}")
        self.file, self.line, self.reason, self.remedy, self.__cause__ = file, line, str(reason), remedy, cause

    @property
    def is_passing(self) -> bool:
        """Whether the same bytes may be read another time: the system refused them, or it took too long by the clock.
        EFBIG is of the bytes: they unpack to too much."""
        cause = self.__cause__
        while cause is not None:
            if isinstance(cause, TimeoutError) or (isinstance(cause, OSError) and cause.errno not in (None, EFBIG)):
                return True
            cause = cause.__cause__
        return False


class CorpusNotFoundError(UserError):
    """No corpus exists at that path, or the corpus has no such snapshot."""


class EmptyCorpusError(UserError):
    """The corpus contains no passages, so there is nothing to search."""


class ModelNotFoundError(UserError):
    """No model with that name can be found or read."""


class EncoderMismatchError(UserError):
    """The keys on disk were made by a different model from the one that searches them."""


class LockedError(UserError):
    """Another process is writing to the corpus, or keeps one of its files locked."""


class UnknownDocumentError(UserError):
    """The corpus has no document with that id."""


class DuplicateDocumentError(UserError):
    """The corpus already has a document with that id."""


class CorruptionError(QuothError):
    """A file on disk is missing, truncated or altered; the message names it."""


@contextmanager
def needs_torch(what: str) -> Iterator[None]:
    """Raises InputError, with the remedy, if PyTorch, or a package that trains with it, is missing inside."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := (error.name or "").partition(".")[0]) not in ("torch", "transformers", "peft"):
            raise
        raise InputError(
            f"{what} needs PyTorch, and {missing} is not installed: pip install 'quoth[torch]' (in a clone: make torch)"
        ) from None


def nearest(name: object, allowed: Iterable[str]) -> str:
    """ "; did you mean …?" with the allowed name that is spelled most alike; "" where none is near."""
    alike = get_close_matches(str(name), list(allowed), n=1)
    return f"; did you mean {alike[0]}?" if alike else ""


def remedy_of(corpus: Path) -> str:
    """What to do about damage in a corpus."""
    return f"`quoth repair {corpus}` repairs what can be repaired"


@contextmanager
def advising(corpus: Path) -> Iterator[None]:
    """Add `remedy_of(corpus)` to a CorruptionError raised inside, unless its message already names a command."""
    try:
        yield
    except CorruptionError as error:
        if "`quoth " in str(error):
            raise
        raise CorruptionError(f"{error}; {remedy_of(corpus)}") from error


class TrainingError(QuothError):
    """A training run that cannot continue; what it has saved so far is kept."""


class DamageWarning(UserWarning):
    """A segment of a corpus is damaged: the corpus is open without its documents, or its words are made again."""


class IndexWarning(UserWarning):
    """An exact index is made, which takes long; or it cannot be written, and is kept in memory."""


class ComparisonWarning(UserWarning):
    """A field that a condition compares with a date has values that are not dates; they are left out."""


class TextCutWarning(UserWarning):
    """A text is longer than the encoder's input; only the part around its blank was read."""


class ClusterError(QuothError):
    """Ray, or a job that runs on it, cannot be started."""
