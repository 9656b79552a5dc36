"""Files that survive a crash: atomic writes, checksums, the writer's lock.

Knows bytes, folders and flushing to disk; does not know what the files mean.

A folder is *sealed* by a `checksums.json` that lists size and SHA-256 of every other file in it. Sizes, and the
contents of small files, are checked on open, which is cheap; all contents by `verify`.

A folder may come from a stranger: nothing is written, locked or removed through a symbolic link in it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self
from uuid import uuid4

from quoth.errors import CorruptionError, InputError, LockedError, brief

CHECKSUMS = "checksums.json"
COMMITTED = "committed.json"
"""The file that a corpus's folder is known by."""
SMALL = 1 << 16
"""Files up to this size are hashed wherever they are checked, and read whole rather than mapped."""
LOCK_SECONDS = 10.0
"""A lease is tried for this long: whoever may read a file may keep it locked for ever."""

Fields = Mapping[str, tuple[type, ...]]
"""The fields of a JSON object, and the types that each may have."""

FILE_FIELDS: Fields = {"size": (int,), "sha256": (str,)}


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


def open_plain(path: Path, flags: int) -> int:
    """`os.open` of a plain file. Raises InputError for a symbolic link, a pipe and the like."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError:
        refuse_unless_plain(path)
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        refuse_unless_plain(path)
    return descriptor


def refuse_unless_plain(path: Path) -> None:
    """Raises InputError for a symbolic link, a pipe and the like: a write there would end up elsewhere."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a plain file"
        raise InputError(f"{path} is {kind}; Quoth writes only to plain files; delete it, or replace it with a copy")


def refuse_unwritable(path: Path) -> None:
    """Raises InputError for what cannot become a file, before there is something to write."""
    refuse_unless_plain(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: its folder does not exist; make it, or choose another")


def refuse_links_below(folder: Path) -> None:
    """`refuse_unless_plain` for everything in a folder, which may itself be a link."""
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            refuse_unless_plain(Path(at, name))


def atomic_write_bytes(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one, never a part of it; the new one is on disk when this returns."""
    part = temporary(path)
    _write_through(part, content)
    part.replace(path)
    fsync_path(path.parent)


def temporary(path: Path) -> Path:
    """Where something is written before it gets its name: a name that no other process, dead or alive, has taken."""
    return path.with_name(f"{path.name}.{uuid4().hex}.tmp")


def _write_through(path: Path, content: bytes) -> None:
    with create(path) as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def atomic_write_json(path: Path, content: Any) -> None:
    """`atomic_write_bytes`, of readable JSON."""
    atomic_write_bytes(path, encode_json(content))


def encode_json(content: Any) -> bytes:
    """The only form in which JSON is written here, so that equal contents are equal bytes."""
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def check_opens(path: Path) -> None:
    """Raises OSError if the system does not open a file that is there: no permission, too many open files. Libraries
    say of such a file that it is missing or damaged."""
    if path.is_file():
        path.open("rb").close()


def size_of(path: Path) -> int:
    """The size of a file. Raises CorruptionError if it is missing, or a folder, a pipe and the like."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise CorruptionError(f"{path}: the file is missing") from None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise CorruptionError(f"{path}: {kind}, not a file")
    return found.st_size


def from_top(call: Callable[[], Any]) -> Any:
    """The result of a call that recurses; if the program has recursed too deep already, a new thread makes it."""
    try:
        return call()
    except RecursionError:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(call).result()


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises CorruptionError if the file is missing or is not JSON."""
    return read_json_and_bytes(path)[0]


def read_json_and_bytes(path: Path) -> tuple[Any, bytes]:
    """The content of a JSON file, and its bytes. Raises as `read_json`."""
    size_of(path)
    try:
        written = path.read_bytes()
        return json.loads(written), written
    except FileNotFoundError:
        raise CorruptionError(f"{path}: the file is missing") from None
    except (ValueError, RecursionError) as error:
        raise CorruptionError(f"{path}: damaged, no longer JSON ({error})") from None


def check_fields(path: Path, content: Any, fields: Fields) -> dict[str, Any]:
    """The content of a JSON file, or of a part of it, as an object of exactly these fields.

    Raises CorruptionError, naming the file and the field, if anything differs, or a number is negative.
    """
    if not isinstance(content, dict):
        raise CorruptionError(f"{path}: damaged, contains {brief(content)} instead of an object of {', '.join(fields)}")
    if missing := fields.keys() - content.keys():
        raise CorruptionError(f"{path}: damaged, its field {min(missing)!r} is missing")
    if unknown := content.keys() - fields.keys():
        raise CorruptionError(f"{path}: damaged, its field {min(unknown)!r} is unknown")
    for name, types in fields.items():
        value = content[name]
        if type(value) not in types or (isinstance(value, int | float) and not value >= 0):
            raise CorruptionError(f"{path}: damaged, its field {name!r} is {brief(value)}")
    return content


def sha256_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def describe_file(path: Path) -> dict[str, Any]:
    """The size and SHA-256 that `check_file` compares."""
    return {"size": path.stat().st_size, "sha256": sha256_file(path)}


def check_file(path: Path, expected: Mapping[str, Any], contents: bool = False) -> None:
    """Raises CorruptionError if the file is missing, or its size or (if small, or with `contents`) its bytes differ."""
    if (size := size_of(path)) != expected["size"]:
        raise CorruptionError(f"{path}: {size} bytes, but {expected['size']} were written; truncated or altered")
    if (contents or size <= SMALL) and sha256_file(path) != expected["sha256"]:
        raise CorruptionError(f"{path}: checksum mismatch; the file was altered")


def copy_of(path: Path) -> Path:
    """Where the copy is of a file that is written twice."""
    return path.with_name(f"{path.stem}.copy{path.suffix}")


def write_twice(path: Path, content: bytes) -> dict[str, Any]:
    """Writes a file and its copy, for what nothing else could restore; returns the name, size and SHA-256.

    Their contents are on disk when this returns; their names once the folder has been flushed.
    """
    for each in (path, copy_of(path)):
        _write_through(each, content)
    return {"name": path.name, "size": len(content), "sha256": sha256_bytes(content)}


def read_either(path: Path, expected: Mapping[str, Any]) -> tuple[bytes, str]:
    """The bytes of a file that was written twice, and if they are the copy's, what is wrong with the file itself.

    Raises CorruptionError, about the file itself, if neither is as it was written.
    """
    try:
        return _read_sound(path, expected), ""
    except CorruptionError as error:
        with suppress(CorruptionError):
            return _read_sound(copy_of(path), expected), str(error)
        raise


def _read_sound(path: Path, expected: Mapping[str, Any]) -> bytes:
    check_file(path, expected, contents=True)
    return path.read_bytes()


def cut_to(path: Path, expected: Mapping[str, Any]) -> bool:
    """Cuts off what follows the recorded bytes of a file, if these are all there; returns whether it did."""
    with suppress(CorruptionError):
        if size_of(path) > expected["size"]:
            with open(open_plain(path, os.O_RDWR), "r+b") as stream:
                if _sha256_of_first(stream, expected["size"]) == expected["sha256"]:
                    stream.truncate(expected["size"])
                    os.fsync(stream.fileno())
                    return True
    return False


def _sha256_of_first(stream: BinaryIO, size: int) -> str:
    digest = hashlib.sha256()
    while size and (piece := stream.read(min(size, 1 << 20))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def seal_folder(folder: Path) -> str:
    """Flushes a finished folder to disk, lists its files in `checksums.json` and returns the SHA-256 of that list."""
    files = sorted(each for each in folder.rglob("*") if each.is_file() and each.name != CHECKSUMS)
    for file in files:
        fsync_path(file)
    listing = {each.relative_to(folder).as_posix(): describe_file(each) for each in files}
    atomic_write_json(folder / CHECKSUMS, listing)
    fsync_path(folder.parent)
    return sha256_file(folder / CHECKSUMS)


def check_folder(
    folder: Path, sha256: str | None = None, contents: bool = False, but: Collection[str] = ()
) -> dict[str, Any]:
    """Checks a sealed folder, except the files `but`: its list against `sha256`, all sizes, and the bytes of small
    files or, with `contents`, of all. Returns the list. Raises CorruptionError naming the file."""
    listing = folder / CHECKSUMS
    files = read_json(listing)
    if sha256 is not None and sha256_file(listing) != sha256:
        raise CorruptionError(f"{listing}: checksum mismatch; the file was altered")
    if not isinstance(files, dict):
        raise CorruptionError(f"{listing}: damaged, no longer a list of files")
    for name, expected in files.items():
        check_fields(listing, expected, FILE_FIELDS)
        if name not in but:
            check_file(folder / name, expected, contents)
    return files


def publish_directory(part: Path, final: Path) -> None:
    """Makes a finished folder visible under its name in one step, replacing an older one of that name."""
    for file in part.rglob("*"):
        fsync_path(file)
    fsync_path(part)
    remove(final)
    part.replace(final)
    fsync_path(final.parent)


def make_folder(path: Path) -> None:
    """Makes a folder, and those above it, if they are not there; they are on disk when this returns."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(made):
        fsync_path(folder.parent)


def publish_folder(final: Path, write: Callable[[Path], None]) -> None:
    """Lets `write` fill a folder, seals it, and makes it visible under its name in place of what was there."""
    make_folder(final.parent)
    part = temporary(final)
    part.mkdir()
    try:
        write(part)
        seal_folder(part)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)  # it may have filled the disk
        raise
    publish_directory(part, final)


def remove(path: Path) -> None:
    """Removes a file, a link or a folder. A folder loses its name first, so that nobody sees half of it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path
    if path.suffix != ".tmp":
        doomed = path.replace(temporary(path))
        flush_removal(path.parent)
    shutil.rmtree(doomed)


def flush_removal(folder: Path) -> None:
    """Flushes that names are gone from a folder, before what they lead to goes; a full disk stops no removal."""
    with suppress(OSError):
        fsync_path(folder)


@contextmanager
def no_empty_folder(path: Path) -> Iterator[None]:
    """Removes `path`, and the folders above it, if they are made inside and left empty."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        yield
    finally:
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


class Lease:
    """Keeps a file, as long as this object is referred to: `remove_unless_leased` leaves it alone.

    Raises CorruptionError if the file is missing, LockedError if another process keeps it locked for LOCK_SECONDS.
    """

    def __init__(self, path: Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise CorruptionError(f"{path}: the file is missing") from None
        weakref.finalize(self, os.close, descriptor)
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    who = f"{_holder(descriptor)} has kept it locked for {LOCK_SECONDS:g} seconds"
                    raise LockedError(f"{path}: {who}; end that process, or copy the corpus") from None
                time.sleep(0.02)
        if not os.fstat(descriptor).st_nlink:
            raise CorruptionError(f"{path}: the file is missing")


def _holder(descriptor: int) -> str:
    """Who has a lock on an open file, as far as the system says."""
    inode = os.fstat(descriptor).st_ino
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1:2] == ["FLOCK"] and fields[5].rpartition(":")[2] == str(inode) and int(fields[4]) > 0:
                return f"process {fields[4]}"
    return "another process"


def remove_unless_leased(path: Path) -> bool:
    """Removes a file unless somebody, in any process, has a lease on it; returns whether it is gone."""
    with open(open_plain(path, os.O_RDWR), "r+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        path.unlink()
    return True


_HOLDER = 20
"""The first bytes of a lock's file name its holder."""


class WriterLock:
    """One writer at a time, who writes only inside the folder. The system releases the lock with its process; the file
    names the holder. With `reserve` it then takes this many bytes of the disk, if there is room: `yield_reserve` frees
    them for a write to a full disk, and the next holder takes them again.

    >>> with WriterLock(folder / "writer.lock"): ...

    Raises LockedError, naming the holder's pid if it is known, if another process has it, and InputError if there is a
    symbolic link in the folder or below.
    """

    def __init__(self, path: Path, reserve: int = 0) -> None:
        self.path = path
        self._reserve = reserve

    def __enter__(self) -> Self:
        self._file = open_plain(self.path, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                said = os.pread(self._file, _HOLDER, 0).decode("ascii", "replace").strip()
                holder = f"process {said}" if said else _holder(self._file)
                raise LockedError(f"{self.path.parent}: {holder} is writing; wait for it to end") from None
            refuse_links_below(self.path.parent)
        except BaseException:
            os.close(self._file)
            raise
        self._name(str(os.getpid()))
        return self

    def __exit__(self, *exception: object) -> None:
        self._name("")
        size = max(os.fstat(self._file).st_size, _HOLDER)
        if size < self._reserve:
            with suppress(OSError):
                os.pwrite(self._file, os.urandom(self._reserve - size), size)  # nothing that a file system compresses
        os.close(self._file)

    def yield_reserve(self) -> None:
        """Frees the space that the file takes."""
        os.ftruncate(self._file, 0)

    def _name(self, holder: str) -> None:
        with suppress(OSError):  # on a full disk nobody is named, but deleting and compacting must work
            os.pwrite(self._file, holder.encode().ljust(_HOLDER), 0)


@contextmanager
def all_locked(locks: Iterable[Path]) -> Iterator[None]:
    """Holds several locks during the block. Raises LockedError if another process has one of them."""
    with ExitStack() as held:
        for lock in locks:
            held.enter_context(WriterLock(lock))
        yield
