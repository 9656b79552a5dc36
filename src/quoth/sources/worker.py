"""Parsers in a process of their own, so that a file that makes one hang, crash or grow ends only that process.

Knows how a file goes there and its text, or a file made of it, comes back: a line of JSON and bytes, nothing that is
executed. The process gets the bytes of one file at a time, never a path, and is replaced if it ends or takes too long.
Does not know formats: it calls the `read` of the module `quoth.sources.<format>`, or another function of this room.
"""

import json
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, NamedTuple, cast

from quoth.source_map import encode
from quoth.sources.libreoffice import WRITES
from quoth.sources.source import is_final

SECONDS = 300.0
MEMORY = 4 << 30
"""What reading one file may take at most; the memory only where the system limits it."""
SECONDS_EACH, SECONDS_PER_BYTE = 30.0, 20e-6
"""Of a processor, that a file of so many bytes may take: 1 MB of any format takes less than a tenth of them."""
BUFFER = 1 << 16
_SECONDS_TO_END = 10.0
"""Of a process that was killed."""

Answer = tuple[dict[str, Any], list[bytes]]
"""What comes back: why there is nothing, or what else is known; and bytes, in two parts."""


class Read(NamedTuple):
    """A file's text, its source map, what else is known of it, and what is to be told of the reading."""

    text: str
    source_map: bytes
    metadata: dict[str, Any]
    notes: Sequence[str] = ()


class Worker:
    """Reads files one after another; starts its process with the first. A context manager."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: IO[bytes]

    def read(self, format: str, content: bytes | str) -> Read:
        """The text of a file of this format, whose bytes these are, or whose characters, if the format is one of text.

        Raises ValueError that says why there is none.
        """
        by_libreoffice = format in WRITES
        function = "libreoffice.read" if by_libreoffice else f"{format}.read"
        head, [text, source_map] = self._answer(function, content, {"format": format} if by_libreoffice else {})
        return Read(text.decode(), source_map, head["metadata"], head["notes"])

    def made(self, function: str, content: bytes, **given: Any) -> bytes:
        """What a function of this room (`marks.picture`) makes of a file; `given` is as JSON has it.

        Raises ValueError that says why there is nothing.
        """
        return self._answer(function, content, given)[1][0]

    def _answer(self, function: str, content: bytes | str, given: dict[str, Any]) -> Answer:
        if self._process is None:
            self._start()
        sent = content.encode() if isinstance(content, str) else content
        # Of its processor, which does not depend on what else the machine does; LibreOffice has a limit of its own.
        seconds = SECONDS if "format" in given else SECONDS_EACH + SECONDS_PER_BYTE * len(sent)
        seconds = min(self._seconds, seconds)
        asked = {"function": function, "given": given, "is_text": isinstance(content, str), "seconds": seconds}
        reply, late = None, None
        try:
            _send(self._stream, asked, sent)
            reply = _received(self._stream, 2)
        except TimeoutError as error:
            late, seconds = error, self._seconds
        except (OSError, ValueError):  # it ended, or what it sends is no reply
            pass
        except BaseException:  # Ctrl-C, for example: the next file would get this one's reply
            self.close()
            raise
        if reply is None:
            if self.close() == -signal.SIGXCPU or late:
                raise ValueError(f"not read within {seconds:,.0f} seconds; split it, or convert it to text") from late
            raise ValueError("its parser crashed: the file is damaged, or too large; repair it, or convert it to text")
        if reply[0]["error"]:
            raise ValueError(reply[0]["error"]) from TimeoutError() if reply[0]["is_late"] else None
        return reply

    def _start(self) -> None:
        here, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "quoth.sources.worker", str(self._memory)],
                stdin=there.fileno(),
                stdout=there.fileno(),
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        here.settimeout(self._seconds)
        with here:  # which ends with its stream
            self._stream = cast(IO[bytes], here.makefile("rwb", BUFFER))

    def close(self) -> int | None:
        """Ends the process, if there is one; how it ended."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        if process.poll() is None:
            process.kill()
        with suppress(subprocess.TimeoutExpired):  # the system is in its way: it ends later
            process.wait(_SECONDS_TO_END)
        with suppress(OSError):
            self._stream.close()
        return process.returncode

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _send(stream: IO[bytes], head: dict[str, Any], *parts: bytes) -> None:
    stream.write(json.dumps({**head, "sizes": [*map(len, parts)]}).encode() + b"\n")
    for part in parts:
        stream.write(part)
    stream.flush()


def _received(stream: IO[bytes], count: int) -> Answer | None:
    """A line and this many parts; None if the stream ends before."""
    if not (line := stream.readline()).endswith(b"\n"):
        return None
    head = json.loads(line)
    parts = [stream.read(size) for size in head["sizes"]]
    return (head, parts) if [*map(len, parts)] == head["sizes"] and len(parts) == count else None


def _answered(asked: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    is_late = False
    try:
        module, _, function = asked["function"].partition(".")
        given = content.decode() if asked["is_text"] else content
        made = getattr(import_module(f"quoth.sources.{module}"), function)(given, **asked["given"])
        if isinstance(made, bytes):
            return {"error": ""}, made, b""
        return (
            {"error": "", "metadata": made.metadata, "notes": [*made.notes]},
            made.text.encode(),
            encode(made.kind, made.runs),
        )
    except MemoryError:
        why = "reading it takes too much memory; split it, or convert it to text"
    except RecursionError:
        why = "its parts are nested too deep; convert it to text"
    except Exception as error:  # every parser raises its own
        is_late = isinstance(error.__cause__, TimeoutError)
        why = str(error) if is_final(error) else "it cannot be read: it is damaged, or not of this format"
    return {"error": " ".join(why.split())[:500] or "it cannot be read", "is_late": is_late}, b"", b""


def main(memory: int) -> None:
    """Reads files from standard input until it ends. What parsers read, print or start has neither it nor the output,
    so that nothing but replies is sent, and nobody keeps the stream open."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    own, nothing = os.dup(0), os.open(os.devnull, os.O_RDWR)  # which no child inherits
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    with open(own, "rb", BUFFER) as stream, open(own, "wb", BUFFER, closefd=False) as replies:
        while (asked := _received(stream, 1)) is not None:
            head, [content] = asked
            with suppress(ValueError, OSError):  # a lower limit is set already
                most = resource.getrlimit(resource.RLIMIT_CPU)[1]
                resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + head["seconds"]), most))
            _send(replies, *_answered(head, content))


if __name__ == "__main__":
    main(int(sys.argv[1]))
