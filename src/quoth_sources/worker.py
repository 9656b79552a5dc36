"""Files are read in a process of its own, so that one that makes a parser hang, crash or grow ends only that process.

Knows how a file goes there and what is made of it comes back, part by part: JSON and bytes, nothing that is executed.
The process gets one open file at a time, never a path, and is replaced if it ends or takes too long. Does not know
formats: it calls a function, by name, which reads the file.
"""

import atexit
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from errno import EINTR
from importlib import import_module
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, cast

from quoth_sources import limits
from quoth_sources.source import is_final

BUFFER = 1 << 16
_SECONDS_TO_END = 10.0
"""Of a process that was killed."""
_TOO_LONG = "not read in the time that its size allows; split it, or convert it to text"
_CRASHED = "its parser crashed: the file is damaged, or too large; repair it, or convert it to text"
_ENDED = "the process that reads files was ended from outside, or did not start (is there enough memory?); try again"
_FROM_OUTSIDE = (1, -signal.SIGHUP, -signal.SIGINT, -signal.SIGKILL, -signal.SIGTERM)
"""How a process ends that could not start, or that somebody ends."""
_FAILED = 70
"""The exit status of one that cannot read a file, or say so."""
_SIZE = struct.Struct("<Q")

Answer = tuple[dict[str, Any], list[bytes]]
"""A part of what is made of a file: what JSON can represent, and bytes."""


class EndedError(ValueError):
    """The process ended before it had read a file, by itself or because its time was over."""


class Worker:
    """Reads files one after another; starts its process with the first. A context manager."""

    def __init__(self, seconds: float | None = None, memory: int | None = None) -> None:
        self._seconds = limits.SECONDS if seconds is None else seconds
        self._memory = limits.MEMORY if memory is None else memory
        self._process: _Process | None = None
        self._is_reading = False

    def answers(
        self, function: str, file: IO[bytes], given: dict[str, Any], is_whole: bool = False
    ) -> Generator[Answer, None, None]:
        """What a function (`quoth.corpus.documents.answers`) makes of a file, which it gets open, or all its bytes if
        they are taken as a whole; `given` is as JSON has it. If this is not read to its end, the process ends.

        Raises ValueError that says why there is nothing, or no more; EndedError if the process ended.
        """
        process = self._process = self._process or _Process.rested(self._memory) or _Process(self._memory)
        # Of a pipe or a terminal nobody knows when the next bytes come.
        is_waiting = not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        self._is_reading = True
        try:
            process.socket.settimeout(None if is_waiting else self._seconds)
            with self._watched():
                socket.send_fds(process.socket, [b"\n"], [file.fileno()])
                _send(process.stream, {"function": function, "given": given, "is_whole": is_whole})
            while True:
                with self._watched():
                    head, parts = _received(process.stream)
                if head.get("is_last"):
                    break
                yield head, parts
        except BaseException:  # Ctrl-C, for example: the next file would get what is made of this one
            self.close()
            raise
        self._is_reading = False
        if head["error"]:
            raise ValueError(head["error"])

    def made(self, function: str, content: bytes, **given: Any) -> bytes:
        """The bytes that a function (`quoth_sources.marks.picture`) makes of these; `given` is as JSON has it.

        Raises ValueError that says why there are none.
        """
        [made] = self.parts(function, content, **given)
        return made

    def parts(self, function: str, content: bytes, **given: Any) -> Iterator[bytes]:
        """As `made`, of a function that makes several (`quoth_sources.marks.cuttings`)."""
        with TemporaryFile() as file:
            file.write(content)
            file.seek(0)
            for _, [made] in self.answers(function, file, given, is_whole=True):
                yield made

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Raises EndedError for what happens inside if the process takes too long, has ended, or sends nonsense; from
        an OSError, by which a retry may succeed, if the file is not to blame."""
        try:
            yield
        except TimeoutError as error:
            self.close()
            raise EndedError(_TOO_LONG) from error
        except (EOFError, ConnectionError):
            ended = self.close(_SECONDS_TO_END)
            if ended in _FROM_OUTSIDE:
                raise EndedError(_ENDED) from InterruptedError(EINTR, f"exit status {ended}")
            raise EndedError(_TOO_LONG if ended == -signal.SIGXCPU else _CRASHED) from None
        except OSError as error:
            self.close()
            raise EndedError(_ENDED) from error
        except ValueError:
            self.close()
            raise EndedError(_CRASHED) from None

    def close(self, patience: float = 0.0) -> int | None:
        """Ends the process, if there is one; how it ended, by itself if it does so in these seconds."""
        process, self._process = self._process, None
        return None if process is None else process.end(patience)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process is not None and not self._is_reading:
            self._process.rest()
            self._process = None
        self.close()


class _Process:
    """A process that reads files. Without any, one rests until this process ends: most calls read few files, and
    starting it takes longer than they do."""

    _resting: ClassVar[list["_Process"]] = []

    def __init__(self, memory: int) -> None:
        self.socket, there = socket.socketpair()
        self.stream = cast(IO[bytes], self.socket.makefile("rwb", BUFFER))
        self._as_started, self._owner = _start_of(memory), os.getpid()
        command, environment = self._as_started
        with there:
            self._process = subprocess.Popen(
                command, stdin=there.fileno(), stdout=there.fileno(), stderr=subprocess.DEVNULL, env=environment
            )

    @classmethod
    def rested(cls, memory: int) -> "_Process | None":
        """A process that would be started as this one was."""
        while cls._resting:
            process = cls._resting.pop()
            is_own = process._owner == os.getpid() and process._process.poll() is None
            if is_own and process._as_started == _start_of(memory):
                return process
            process.end()
        return None

    def rest(self) -> None:
        """Waits for the next file; one that waits already ends."""
        self.end_all()
        self._resting.append(self)

    @classmethod
    def end_all(cls) -> None:
        while cls._resting:
            cls._resting.pop().end()

    def end(self, patience: float = 0.0) -> int | None:
        """Ends it, unless it is another process's; how it ended, by itself if it does so in these seconds."""
        if self._owner == os.getpid():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # the system is in its way: it ends later
                self._process.wait(_SECONDS_TO_END)
        with suppress(OSError):
            self.stream.close()
        self.socket.close()
        return self._process.returncode


atexit.register(_Process.end_all)


def _start_of(memory: int) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a process."""
    known = json.dumps({**limits.known(), "MEMORY": memory})
    path = os.pathsep.join(filter(None, sys.path))
    return [sys.executable, "-P", "-m", "quoth_sources.worker", known], {**os.environ, "PYTHONPATH": path}


def _send(stream: IO[bytes], head: dict[str, Any], *parts: bytes) -> None:
    said = json.dumps({**head, "sizes": [*map(len, parts)]}, ensure_ascii=False).encode(errors="surrogatepass")
    stream.write(_SIZE.pack(len(said)))
    stream.write(said)
    stream.writelines(parts)
    stream.flush()


def _received(stream: IO[bytes]) -> Answer:
    """What was sent. Raises EOFError if the stream ends before."""
    head = json.loads(_exactly(stream, _SIZE.unpack(_exactly(stream, _SIZE.size))[0]))
    content, parts, start = _exactly(stream, sum(head["sizes"])), list[bytes](), 0
    for length in head["sizes"]:
        parts.append(content[start : start + length])
        start += length
    return head, parts


def _exactly(stream: IO[bytes], size: int) -> bytes:
    if len(content := stream.read(size)) < size:
        raise EOFError
    return content


def why_not(error: Exception) -> str:
    """Why a file is not read, on one line, without a word of Python."""
    if isinstance(error, MemoryError):
        why = "reading it takes too much memory; split it, or convert it to text"
    elif isinstance(error, RecursionError):
        why = "its parts are nested too deep; convert it to text"
    else:  # every parser raises its own
        why = str(error) if is_final(error) else "it cannot be read: it is damaged, or not of this format"
    return " ".join(why.split())[:500] or "it cannot be read"


def _answers(asked: dict[str, Any], file: IO[bytes]) -> Iterator[Answer]:
    error = ""
    try:
        module, _, name = asked["function"].rpartition(".")
        content = file.read() if asked["is_whole"] else file
        made = getattr(import_module(module), name)(content, **asked["given"])
        yield from [({}, [made])] if isinstance(made, bytes) else made
    except Exception as raised:
        error = why_not(raised)
    yield {"is_last": True, "error": error}, []


def main(known: dict[str, Any]) -> None:
    """Reads files that come through standard input until it ends. What parsers read, print or start has neither it nor
    the output, so that nothing but answers is sent, and nobody keeps the stream open."""
    vars(limits).update(known)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limits.MEMORY, limits.MEMORY))
    own, nothing = os.dup(0), os.open(os.devnull, os.O_RDWR)  # which no child inherits
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    with socket.socket(fileno=own) as there, cast(IO[bytes], there.makefile("rwb", BUFFER)) as stream:
        while (received := socket.recv_fds(there, 1, 1))[0]:
            try:
                _read(received[1][0], stream)
            except (Exception, SystemExit):
                sys.exit(_FAILED)


def _read(descriptor: int, stream: IO[bytes]) -> None:
    with open(descriptor, "rb", BUFFER) as file:
        asked, _ = _received(stream)
        status = os.fstat(file.fileno())
        num_bytes = status.st_size if stat.S_ISREG(status.st_mode) else limits.FILE_BYTES
        limits.allow(num_bytes)
        for head, parts in _answers(asked, file):
            _send(stream, head, *parts)
            limits.allow(num_bytes)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
