"""What reading one file may take: time, memory, bytes before and after it is unpacked.

Knows the limits of every format; a process that reads files has those of the one that started it. What a format
limits besides, such as the rows of a sheet, is in its module.
"""

import math
import resource
import time
from contextlib import suppress
from typing import Any

SECONDS = 300.0
"""By the clock, for each part that comes back of a file."""
SECONDS_EACH, SECONDS_PER_BYTE = 30.0, 20e-6
"""Of a processor, at most `SECONDS`, for the same: 1 MB of any format takes less than a tenth of them."""
MEMORY = 4 << 30
"""Where the system limits it."""
FILE_BYTES = 1 << 30
TEXT_BYTES = 200_000_000
"""Of a file that is read as a whole, and of one that is text."""
JSON_BYTES = 1 << 28
MESSAGE_BYTES = 1 << 27
"""Of a message in a mailbox, with what is attached."""
RECORD = 1 << 26
"""Bytes or characters of a line of JSONL or a row of a table, which takes up to 22 times as much memory while it is
read."""
HEAD = 1 << 20
"""Bytes of a table by which its encoding is recognised."""
UNPACKED, TIMES = 200_000_000, 100
"""Bytes, and times its own size, to which a compressed file may unpack, whichever is more: text that was written by
people is compressed to a tenth, a trap to a millionth."""


def known() -> dict[str, Any]:
    """The limits by name, to be handed to a process."""
    return {name: value for name, value in globals().items() if name.isupper()}


def allow(num_bytes: int) -> None:
    """Ends this process when it has had the processor for the time that so many bytes may take, from now on."""
    seconds = min(SECONDS, SECONDS_EACH + SECONDS_PER_BYTE * num_bytes)
    with suppress(ValueError, OSError):  # a lower limit is set already
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))


def unpacked_bytes(size: int) -> int:
    """To how many bytes a file of this size may unpack."""
    return max(UNPACKED, TIMES * size)
