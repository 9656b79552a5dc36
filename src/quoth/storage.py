"""Files that survive a crash: atomic writes, checksums, memory-mapped arrays, the writer's lock.

Knows bytes, folders and flushing to disk; does not know what the files mean.

A folder is *sealed* by a `checksums.json` that lists size and SHA-256 of every other file in it. Sizes are
checked on open, which is cheap; contents by `verify`.
"""

import fcntl
import hashlib
import json
import math
import mmap
import os
import shutil
import weakref
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quoth.errors import CorruptionError, LockedError

CHECKSUMS = "checksums.json"
_ROWS_AT_A_TIME = 1 << 16
_ALIGNED = 64
_SMALL = 1 << 16
"""Files up to this size are read whole rather than mapped, since every mapping holds a file descriptor."""


def fsync_path(path: Path) -> None:
    """Flushes a file, or a folder's list of names, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write_bytes(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one, never a part; it is on disk when this returns."""
    part = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with part.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)
    fsync_path(path.parent)


def atomic_write_json(path: Path, content: Any) -> None:
    """`atomic_write_bytes` of readable JSON."""
    atomic_write_bytes(path, encode_json(content))


def encode_json(content: Any) -> bytes:
    """The one form in which JSON is written here, so that equal contents are equal bytes."""
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def read_json(path: Path) -> Any:
    """Raises CorruptionError where the file is missing or is no JSON."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CorruptionError(f"{path}: the file is missing") from None
    except ValueError as error:
        raise CorruptionError(f"{path}: damaged, no longer JSON ({error})") from None


def sha256_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def describe_file(path: Path) -> dict[str, Any]:
    """The size and SHA-256 that `check_file` compares."""
    return {"size": path.stat().st_size, "sha256": sha256_file(path)}


def check_file(path: Path, expected: dict[str, Any], contents: bool = False) -> None:
    """Raises CorruptionError where the file is missing, has another size or (`contents`) other bytes."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise CorruptionError(f"{path}: the file is missing") from None
    if size != expected["size"]:
        raise CorruptionError(f"{path}: {size} bytes, {expected['size']} were written; truncated or altered")
    if contents and sha256_file(path) != expected["sha256"]:
        raise CorruptionError(f"{path}: its SHA-256 is not the recorded one; the file was altered")


def seal_folder(folder: Path) -> str:
    """Flushes a finished folder to disk, lists its files in `checksums.json`, returns the SHA-256 of that."""
    files = sorted(each for each in folder.rglob("*") if each.is_file() and each.name != CHECKSUMS)
    for file in files:
        fsync_path(file)
    listing = {each.relative_to(folder).as_posix(): describe_file(each) for each in files}
    atomic_write_json(folder / CHECKSUMS, listing)
    fsync_path(folder.parent)
    return sha256_file(folder / CHECKSUMS)


def check_folder(folder: Path, sha256: str | None = None, contents: bool = False) -> None:
    """Checks a sealed folder: its list against `sha256`, every size and, with `contents`, every byte."""
    listing = folder / CHECKSUMS
    files = read_json(listing)
    if sha256 is not None and sha256_file(listing) != sha256:
        raise CorruptionError(f"{listing}: its SHA-256 is not the recorded one; the file was altered")
    for name, expected in files.items():
        check_file(folder / name, expected, contents)


def publish_directory(part: Path, final: Path) -> None:
    """Makes a finished folder visible under its name in one step, replacing an older one of that name."""
    for file in part.rglob("*"):
        fsync_path(file)
    fsync_path(part)
    if final.exists():
        remove(final)
    part.replace(final)
    fsync_path(final.parent)


def remove(path: Path) -> None:
    """Removes a file or a folder. A folder loses its name first, so that no half of it is ever seen."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    path.replace(doomed)
    shutil.rmtree(doomed)


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Writes a `.npy` file; no pickle. Raises OSError where the disk is full (np.save may not notice)."""
    save_pieces(path, len(array), [array])


def save_pieces(path: Path, total: int, pieces: Iterable[NDArray[Any]]) -> None:
    """Writes a `.npy` file of arrays end to end, `total` rows in all, at least one array; one in memory at a time."""
    at = 0
    with path.open("wb") as stream:
        for piece in pieces:
            if not stream.tell():
                header = np.lib.format.header_data_from_array_1_0(piece[:0])
                np.lib.format.write_array_header_1_0(stream, {**header, "shape": (total, *piece.shape[1:])})
            for first in range(0, len(piece), _ROWS_AT_A_TIME):
                stream.write(piece[first : first + _ROWS_AT_A_TIME].tobytes())
            at += len(piece)
    assert at == total


def open_array(path: Path) -> NDArray[Any]:
    """A read-only `.npy` file, memory-mapped unless small. Raises CorruptionError where it is damaged."""
    try:
        if path.stat().st_size > _SMALL:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise CorruptionError(f"{path}: the file is missing") from None
    except (ValueError, EOFError, OSError) as error:
        raise CorruptionError(f"{path}: damaged, no longer an array ({error})") from None
    array.setflags(write=False)
    return array


def save_arrays(path: Path, arrays: Iterable[NDArray[Any]]) -> None:
    """Writes several arrays into one file, each as in a `.npy` file and begun at a multiple of 64 bytes."""
    with path.open("wb") as stream:
        for array in arrays:
            stream.write(bytes(-stream.tell() % _ALIGNED))
            np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
            stream.write(array.tobytes())


def open_arrays(path: Path, count: int) -> list[NDArray[Any]]:
    """The `count` arrays of `save_arrays`, read-only; memory-mapped together unless small. Raises CorruptionError."""
    blob = open_blob(path)
    stream: BytesIO | mmap.mmap = BytesIO(blob) if isinstance(blob, bytes) else blob
    arrays: list[NDArray[Any]] = []
    try:
        for _ in range(count):
            stream.seek(-stream.tell() % _ALIGNED, os.SEEK_CUR)
            np.lib.format.read_magic(stream)
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            size = math.prod(shape)
            flat = np.frombuffer(blob, dtype, size, stream.tell()) if size else np.empty(0, dtype)
            arrays.append(flat.reshape(shape))
            stream.seek(flat.nbytes, os.SEEK_CUR)
    except (ValueError, EOFError, OSError) as error:
        raise CorruptionError(f"{path}: damaged, no longer arrays ({error})") from None
    return arrays


def open_blob(path: Path) -> mmap.mmap | bytes:
    """A file's bytes, to be sliced; memory-mapped unless small. Raises CorruptionError."""
    try:
        if path.stat().st_size <= _SMALL:
            return path.read_bytes()
        with path.open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise CorruptionError(f"{path}: the file is missing") from None


class Lease:
    """A file held for reading as long as this is referred to: `remove_unless_leased` leaves it alone.

    Raises CorruptionError where the file is missing.
    """

    def __init__(self, path: Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise CorruptionError(f"{path}: the file is missing") from None
        weakref.finalize(self, os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if not os.fstat(descriptor).st_nlink:
            raise CorruptionError(f"{path}: the file is missing")


def remove_unless_leased(path: Path) -> bool:
    """Remove a file unless somebody, in any process, holds it; returns whether it is gone."""
    with path.open("r+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        path.unlink()
    return True


class WriterLock:
    """One writer at a time: a lock the system frees with its process, in a file that names the holder.

    >>> with WriterLock(folder / "writer.lock"): ...

    Raises LockedError, naming the holder's pid, where another holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        self._stream = self.path.open("a+")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.seek(0)
            holder = self._stream.read().strip() or "unknown"
            self._stream.close()
            message = f"{self.path.parent}: process {holder} is writing; wait for it to end"
            raise LockedError(message) from None
        self._stream.truncate(0)
        self._stream.write(str(os.getpid()))
        self._stream.flush()

    def __exit__(self, *exception: object) -> None:
        self._stream.truncate(0)
        self._stream.close()
