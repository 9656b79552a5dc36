"""Mailboxes: one file with many messages, each behind a line that begins with "From " and has a time and a year.

Reads one message at a time. Knows where messages begin. Does not know headers and bodies (`quoth_sources.eml`).
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from quoth.corpus.whole import document_of
from quoth_sources import limits
from quoth_sources.files import bare

if TYPE_CHECKING:
    from quoth.corpus.documents import Records

_LINE = 1 << 20
_BEGIN = re.compile(rb"From .*\d:\d\d.*\d{4}")
_QUOTED = re.compile(rb">+From ")


def read(stream: IO[bytes], name: str, after: int = 0) -> "Records":
    """The messages behind the first of them, each with the line that begins it."""
    stem = bare(Path(name)).stem
    for line, content in islice(_messages(stream), after, None):
        try:
            if isinstance(content, ValueError):
                raise content
            yield line, document_of("eml", content, f"{name}:{line}", f"{stem}-{line}", stem)
        except ValueError as error:
            yield line, error


def _messages(stream: IO[bytes]) -> Iterator[tuple[int, bytes | ValueError]]:
    """The messages, without the ">" before a line of theirs that seems to begin one."""
    parts, size, begin, number = list[bytes](), 0, 0, 0
    is_start, is_after_blank = True, True
    while line := stream.readline(_LINE):
        number += is_start
        if is_start and is_after_blank and _BEGIN.match(line):
            if begin:
                yield begin, _whole(parts, size)
            parts, size, begin = [], 0, number
        elif not begin:
            if line.strip():
                why = f"no line 'From … 10:00:00 2024' before its text (line {number}); is it a mailbox?"
                yield 0, ValueError(why)
                return
        else:
            part = line[1:] if is_start and _QUOTED.match(line) else line
            size += len(part)
            if size <= limits.MESSAGE_BYTES:
                parts.append(part)
        is_after_blank, is_start = is_start and not line.strip(), line.endswith(b"\n")
    if begin:
        yield begin, _whole(parts, size)


def _whole(parts: list[bytes], size: int) -> bytes | ValueError:
    if size > limits.MESSAGE_BYTES:
        return ValueError(f"a message of more than {limits.MESSAGE_BYTES:,} bytes; save it as a file of its own")
    return b"".join(parts)
