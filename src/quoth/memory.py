"""How much memory a process holds, and may take.

Knows bytes. Does not know what they are for.
"""

import os
import resource
import sys
from pathlib import Path

from quoth.errors import InputError

WORKING_MEMORY = 1_000_000_000
"""Bytes that embedding may take beside the loaded model where nothing else is said."""
DEFAULT_LIMIT = 2_000_000_000
LEAST_WORKING_MEMORY = 200_000_000
UNITS = {"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_STATM = Path("/proc/self/statm")


def bytes_named(text: str) -> int:
    """`2GB`, `1.5 GB` or `500MB` as a number. Raises InputError."""
    number, unit = text.strip()[:-2], text.strip()[-2:]
    try:
        count = float(number) * UNITS[unit]
        if 0 < count < 2**60:
            return int(count)
    except (KeyError, ValueError):
        pass
    raise InputError(f"{text!r} is no number of bytes; write it like 500MB or 2GB")


def held() -> int:
    """The bytes that this process holds now; where the system does not tell, the most that it ever held."""
    if _STATM.is_file():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def limit(named: str | None) -> int:
    """The most that a process may hold: what is named, or else DEFAULT_LIMIT, and more where it holds almost as much
    already. Raises InputError where what is named is too little."""
    least = held() + LEAST_WORKING_MEMORY
    if named is None:
        return max(DEFAULT_LIMIT, least)
    if (most := bytes_named(named)) < least:
        raise InputError(
            f"{named} of memory are too little: with the loaded model the process holds {held() // 10**6} MB; allow "
            f"{least // 10**6 + 1}MB or more"
        )
    return most


def left_of(most: int) -> int:
    """What may still be taken where the process may hold so much: no less than LEAST_WORKING_MEMORY."""
    return max(most - held(), LEAST_WORKING_MEMORY)
