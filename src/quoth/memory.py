"""How much memory a process uses, how much more it may use, and which errors mean that there is no more.

Knows bytes. Does not know what they are for.
"""

import os
import resource
import sys
from contextlib import suppress
from errno import ENOMEM
from pathlib import Path

from quoth.errors import InputError

WORKING_MEMORY = 1_000_000_000
"""Bytes that embedding may use on top of the loaded model, by default."""
DEFAULT_LIMIT = 2_000_000_000
LEAST_WORKING_MEMORY = 200_000_000
UNITS = {"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_STATM = Path("/proc/self/statm")
_LACKING = ("allocate memory", "unable to allocate", "not enough memory", "bad_alloc", "failed to map segment")
"""What torch, numpy and the system's loader say when they get no memory, in errors of any kind."""


def bytes_named(text: str) -> int:
    """`2GB`, `1.5 GB` or `500MB` as a number. Raises InputError."""
    number, unit = text.strip()[:-2], text.strip()[-2:]
    with suppress(KeyError, ValueError):
        if 0 < (count := float(number) * UNITS[unit]) < 2**60:
            return int(count)
    raise InputError(f"{text!r} is not an amount of memory; write it like 500MB or 2GB")


def held() -> int:
    """The bytes this process uses now, or its peak if the system does not report current use."""
    if _STATM.is_file():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def limit(named: str | None) -> int:
    """The most bytes a process may use: the amount named, or DEFAULT_LIMIT, raised if the process is already close to
    it.

    Raises InputError if the amount named is too small.
    """
    least = held() + LEAST_WORKING_MEMORY
    if named is None:
        return max(DEFAULT_LIMIT, least)
    if (most := bytes_named(named)) < least:
        raise InputError(
            f"{named} of memory is too little: with the loaded model the process already uses {held() // 10**6} MB; "
            f"allow {least // 10**6 + 1}MB or more"
        )
    return most


def is_lacking(error: BaseException) -> bool:
    """Whether an error says that this process gets no more memory."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == ENOMEM):
        return True
    message = str(error).lower() if isinstance(error, RuntimeError | ImportError) else ""
    return any(words in message for words in _LACKING)


def left_of(most: int) -> int:
    """The bytes left until the process reaches `most`, and at least LEAST_WORKING_MEMORY."""
    return max(most - held(), LEAST_WORKING_MEMORY)
