"""Parsers in a process of their own, so that a file that makes one hang, crash or grow ends only that process.

Knows how a file goes there and its text, or a file made of it, comes back: a line of JSON and bytes, nothing that is
executed. The process gets the bytes of one file at a time, never a path, and is replaced if it ends or takes too long.
Does not know formats: it calls the `read` of the module `quoth.sources.<format>`, or another function of this room.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from threading import Event, Timer
from typing import IO, Any, NamedTuple

from quoth.source_map import encode
from quoth.sources.libreoffice import WRITES

SECONDS = 300.0
MEMORY = 4 << 30
"""What reading one file may take; the memory only where the system limits it."""

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

    def read(self, format: str, content: bytes) -> Read:
        """The text of a file of this format. Raises ValueError that says why there is none."""
        by_libreoffice = format in WRITES
        function = "libreoffice.read" if by_libreoffice else f"{format}.read"
        head, [text, source_map] = self._answer(function, content, {"format": format} if by_libreoffice else {})
        return Read(text.decode(), source_map, head["metadata"], head["notes"])

    def made(self, function: str, content: bytes, **given: Any) -> bytes:
        """What a function of this room (`marks.picture`) makes of a file; `given` is as JSON has it.

        Raises ValueError that says why there is nothing.
        """
        return self._answer(function, content, given)[1][0]

    def _answer(self, function: str, content: bytes, given: dict[str, Any]) -> Answer:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "quoth.sources.worker", str(self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        reply, is_late = None, Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = Timer(self._seconds, end)
        timer.daemon = True
        timer.start()
        try:
            with suppress(OSError):  # it ended
                _send(process.stdin, {"function": function, "given": given}, content)
                reply = _received(process.stdout, 2)
        finally:
            timer.cancel()
        if reply is None:
            self.close()
            if is_late.is_set():
                raise ValueError(f"not read within {self._seconds:,.0f} seconds; split it, or convert it to text")
            raise ValueError("its parser crashed: the file is damaged, or too large; repair it, or convert it to text")
        if reply[0]["error"]:
            raise ValueError(reply[0]["error"])
        return reply

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

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
    try:
        module, _, function = asked["function"].partition(".")
        made = getattr(import_module(f"quoth.sources.{module}"), function)(content, **asked["given"])
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
    except ValueError as error:
        why = str(error)
    except Exception as error:  # every parser raises its own
        why = f"it cannot be read ({type(error).__name__}: {error})"
    return {"error": " ".join(why.split())[:500] or "it cannot be read"}, b"", b""


def main(memory: int) -> None:
    """Reads files from standard input until it ends."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    stream, replies = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a parser prints
    while (asked := _received(stream, 1)) is not None:
        head, [content] = asked
        _send(replies, *_answered(head, content))


if __name__ == "__main__":
    main(int(sys.argv[1]))
