"""Writing a file, and flushing it to disk.

Knows bytes and names. Does not know what files mean, or how several belong together (`storage`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

SMALL = 1 << 16
"""Files up to this size are hashed wherever they are checked, and read whole rather than mapped."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError inside without a file name, such as that of a full disk, gets this one."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def create(path: Path) -> Iterator[BinaryIO]:
    """A new file to write; what was there before is removed. An OSError inside without a file name gets this one."""
    path.unlink(missing_ok=True)
    with naming(path), path.open("xb") as stream:
        yield stream


def fsync_path(path: Path) -> None:
    """Flushes a file, or a folder's list of names, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
