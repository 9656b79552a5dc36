"""Arrays: their types, as signatures name them; in files, written a piece at a time, opened without being read.

Knows NumPy's types and its format, and that small files are better read than mapped, since every mapping holds a file
descriptor. Does not know shapes, which the suffixes of names tell, or when a file is complete (`storage`).
"""

import math
import mmap
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from quoth.errors import CorruptionError, brief
from quoth.storage import SMALL, create, from_top, size_of

Floats = NDArray[np.float32]
"""Vectors and similarities: what encoders compute and tables store."""
Doubles = NDArray[np.float64]
"""Scores and probabilities: sums of many terms."""
Ints = NDArray[np.int64]
"""Counts, places and token ids."""
Rows = NDArray[np.int64]
"""Numbers of keys, passages or documents: rows of a table."""
Flags = NDArray[np.uint8]
"""Where phrases may start and end (`boundaries.boundary_flags`)."""

_BYTES_AT_A_TIME = 1 << 21
_LOOKED_AT = 64
_FROM_DISK = 1e-5
"""Seconds for a row: from memory it takes less than a tenth of that, from a fast disk five times as long."""
_AT_ONCE = 32
"""Rows that are waited for."""
_ALIGNED = 64
T = TypeVar("T")


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Writes a `.npy` file; no pickle. Raises OSError where the disk is full (np.save may not notice)."""
    save_pieces(path, [array])


def save_pieces(path: Path, pieces: Iterable[NDArray[Any]]) -> int:
    """Writes a `.npy` file of arrays end to end, at least one array; one in memory at a time. Returns the number of
    rows."""
    rows = 0
    like: NDArray[Any] | None = None
    with create(path) as stream:
        for piece in pieces:
            if like is None:
                like = piece[:0].copy()
                _write_header(stream, like, 0)
            for block in in_blocks(piece):
                stream.write(block.tobytes())
            rows += len(piece)
        assert like is not None
        stream.seek(0)
        _write_header(stream, like, rows)
    return rows


def _write_header(stream: BinaryIO, like: NDArray[Any], rows: int) -> None:
    """Its length does not depend on the number of rows, for which NumPy leaves room."""
    header = np.lib.format.header_data_from_array_1_0(like)
    np.lib.format.write_array_header_1_0(stream, {**header, "shape": (rows, *like.shape[1:])})


def in_blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """An array's rows, two megabytes at a time, at least one block. No more of a mapped array is in memory."""
    rows = max(1, _BYTES_AT_A_TIME // max(array[:1].nbytes, 1))
    for first in range(0, max(len(array), 1), rows):
        yield array[first : first + rows]
        forget(array)


def forget(array: NDArray[Any]) -> None:
    """What was read of a mapped array no longer counts as this process's memory; it is read again where it is used."""
    if mapped := _mapping(array):
        mapped.madvise(mmap.MADV_DONTNEED)


def fetch(array: NDArray[Any], rows: Rows | None) -> None:
    """Have these rows of a mapped array brought into memory if they are scattered; else (None: all of them) they are
    read from end to end afterwards.

    By itself the system reads far ahead of every row, and waits for one after another: 200,000 rows of 20 GB that did
    not fit into memory took a minute. Rows that are there already cost nothing but a look at a few.
    """
    if not (mapped := _mapping(array)) or (rows is not None and not len(rows)):
        return
    if rows is None or (len(rows) > _LOOKED_AT and np.ptp(rows) < 2 * len(rows)):
        mapped.madvise(mmap.MADV_NORMAL)
        return
    mapped.madvise(mmap.MADV_RANDOM)
    some = rows[:: -(-len(rows) // _LOOKED_AT)]
    began = perf_counter()
    np.take(array, some, axis=0, mode="clip")
    if perf_counter() - began > _FROM_DISK * len(some):
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            deque(pool.map(partial(np.take, array, axis=0, mode="clip"), np.array_split(rows, _AT_ONCE)), maxlen=0)


def _mapping(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def open_array(path: Path, dtype: Any = None, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """A read-only `.npy` file, memory-mapped unless small.

    Raises CorruptionError if it is damaged, or is not of the type and shape given; -1 stands for any length.
    """
    there = size_of(path)
    try:
        read = partial(_mapped if there > SMALL else _read, path)
        array, size = parsed(read, f"{path}: damaged, no longer an array")
    except FileNotFoundError:  # removed since
        raise CorruptionError(f"{path}: the file is missing") from None
    if size != there:
        raise CorruptionError(f"{path}: damaged, its header speaks of {size} bytes")
    fits = shape is None or (len(shape) == array.ndim and all(map(lambda n, m: n in (-1, m), shape, array.shape)))
    if not fits or (dtype is not None and array.dtype != dtype):
        raise CorruptionError(f"{path}: damaged, its header speaks of {brief(array.dtype)} of shape {array.shape}")
    array.setflags(write=False)
    return array


def _mapped(path: Path) -> tuple[NDArray[Any], int]:
    array = np.lib.format.open_memmap(path, mode="r")
    return np.asarray(array), array.offset + array.nbytes


def _read(path: Path) -> tuple[NDArray[Any], int]:
    with path.open("rb") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False), stream.tell()


def parsed(read: Callable[[], T], damage: str, tries: int = 10) -> T:
    """The result of a call that reads NumPy's headers. Raises CorruptionError, which begins with `damage`, if one is
    wrong, OSError if a file cannot be read.

    NumPy leaves headers to Python's own parser, in which threads disturb each other: one in a few hundred fails with a
    SystemError where they do nothing else (CPython gh-106905). That is no damage unless it comes at every try.
    """
    try:
        return cast(T, from_top(read))
    except Exception as error:  # of a damaged header numpy makes nearly any error
        if isinstance(error, OSError) and error.errno:
            raise  # no permission, for example
        if isinstance(error, SystemError) and tries > 1:
            return parsed(read, damage, tries - 1)
        raise CorruptionError(f"{damage} ({(str(error) or type(error).__name__).splitlines()[0]})") from None


def save_arrays(path: Path, arrays: Iterable[NDArray[Any]]) -> None:
    """Writes several arrays into one file, each as in a `.npy` file and begun at a multiple of 64 bytes."""
    with create(path) as stream:
        for array in arrays:
            stream.write(bytes(-stream.tell() % _ALIGNED))
            np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
            stream.write(array.tobytes())


def open_arrays(path: Path, count: int) -> list[NDArray[Any]]:
    """The `count` arrays of `save_arrays`, read-only; memory-mapped together unless small. Raises CorruptionError."""
    return parsed(partial(_each, open_blob(path), count), f"{path}: damaged, no longer arrays")


def _each(blob: mmap.mmap | bytes, count: int) -> list[NDArray[Any]]:
    stream: BytesIO | mmap.mmap = BytesIO(blob) if isinstance(blob, bytes) else blob
    stream.seek(0)
    arrays: list[NDArray[Any]] = []
    for _ in range(count):
        stream.seek(-stream.tell() % _ALIGNED, os.SEEK_CUR)
        np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        size = math.prod(shape)
        flat = np.frombuffer(blob, dtype, size, stream.tell()) if size else np.empty(0, dtype)
        arrays.append(flat.reshape(shape))
        stream.seek(flat.nbytes, os.SEEK_CUR)
    return arrays


def open_blob(path: Path) -> mmap.mmap | bytes:
    """A file's bytes, to be sliced; memory-mapped unless small. Raises CorruptionError."""
    size = size_of(path)
    try:
        with path.open("rb") as stream:
            return stream.read() if size <= SMALL else mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:  # removed since
        raise CorruptionError(f"{path}: the file is missing") from None
