"""Where a corpus is for a cluster: in a folder that every machine sees, or at a URL that fsspec reads and writes.

If it is at a URL, each machine keeps a copy of what it needs in QUOTH_CACHE (~/.cache/quoth). Knows files and their
sizes, that two sealed folders with equal `checksums.json` are equal, and that this list completes a folder of keys, and
a manifest a corpus. Does not know what they contain.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from uuid import uuid4

from quoth.corpus.manifest import BESIDE, LOCK, is_number
from quoth.errors import CorpusNotFoundError, InputError, LockedError
from quoth.index.key_store import is_key_file
from quoth.storage import CHECKSUMS, COMMITTED, atomic_write_bytes, remove

TEXT = ("manifest-*", "deleted-*", "origins-*", "segments/*", "moves/*")
KEYS = f"{BESIDE}/*"


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """A folder, or a URL with `://`. Raises InputError if the URL cannot be reached."""

    address: str

    @property
    def is_remote(self) -> bool:
        return "://" in self.address

    @property
    def path(self) -> Path:
        """`named` as an absolute path, valid in every working directory."""
        return self.named.absolute()

    @property
    def named(self) -> Path:
        """The folder as it was given, or the folder of the copy."""
        if not self.is_remote:
            return Path(self.address)
        cache = Path(os.environ.get("QUOTH_CACHE", "~/.cache/quoth")).expanduser()
        name = self.address.rstrip("/").rpartition("/")[2].removesuffix(".quoth")
        return cache / hashlib.sha256(self.address.encode()).hexdigest()[:16] / f"{name}.quoth"

    def fetch(self, *patterns: str) -> None:
        """Copy the files at the URL that match, each completely or not at all. Of a sealed folder, only those that are
        not here yet."""
        if self.is_remote:
            self._fetch(self._sizes(), patterns)

    def update(self, *patterns: str, progress: Callable[[int, int], None] | None = None) -> None:
        """`fetch` of a corpus; snapshots that are not at the URL are forgotten. `progress` receives the number of files
        looked at, and of all that match. Raises CorpusNotFoundError if no corpus is at the URL."""
        if self.is_remote:
            there = self._sizes()
            self._check(there)
            self._forget(there)
            self._fetch(there, patterns, progress)

    def check(self) -> None:
        """Raises CorpusNotFoundError if no corpus is at the URL."""
        if self.is_remote:
            self._check(self._sizes())

    def _check(self, there: dict[str, int]) -> None:
        if not any(map(_is_manifest, there)):
            where = self.address
            raise CorpusNotFoundError(f"{where}: no corpus there; `quoth index DOCS -o {where} --ray` makes one")

    def _fetch(
        self, there: dict[str, int], patterns: tuple[str, ...], progress: Callable[[int, int], None] | None = None
    ) -> None:
        system, root = self._remote()
        found = [name for name in there if _matches(name, patterns)]
        # A folder of keys without its list of checksums is still being sent.
        wanted = sorted((name for name in found if not is_key_file(name) or _list_of(name) in there), key=_order)
        for name in wanted:
            if ".." in name.split("/"):
                raise InputError(
                    f"{self.address}/{name} leads out of the corpus; delete it there, or use another corpus"
                )
        self._take({name: system.cat_file(f"{root}/{name}") for name in wanted if _is_list(name)})
        for number, name in enumerate(wanted, 1):
            here = self.path / name
            if _list_of(name) not in there or not _has_size(here, there[name]):
                here.parent.mkdir(parents=True, exist_ok=True)
                part = here.with_name(f"{here.name}.{uuid4().hex}.tmp")
                system.get_file(f"{root}/{name}", str(part))
                part.replace(here)
            if progress:
                progress(number, len(wanted))
        if manifests := [name for name in wanted if _is_manifest(name)]:
            last = max(manifests, key=lambda name: (len(name), name))
            atomic_write_bytes(self.path / COMMITTED, (self.path / last).read_bytes())

    def _take(self, lists: dict[str, bytes]) -> None:
        """Makes these the lists of checksums of folders here. A folder that had another one is removed, and with a
        segment its keys: they are of another corpus that was at the URL."""
        if not lists:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path.parent / "copy.lock").open("w") as alone:
            fcntl.flock(alone, fcntl.LOCK_EX)
            for name, content in lists.items():
                here = self.path / name
                if here.is_file() and here.read_bytes() != content:
                    keys = f"{BESIDE}/*/{here.parent.name}*" if name.startswith("segments/") else ""
                    for each in (here.parent, *(self.path.glob(keys) if keys else ())):
                        remove(each)
                if not here.is_file():
                    here.parent.mkdir(parents=True, exist_ok=True)
                    atomic_write_bytes(here, content)

    def _forget(self, there: dict[str, int]) -> None:
        """Removes manifests that the URL does not have: of a writer that was interrupted, or of another corpus. Nothing
        is removed while another process writes there, perhaps on this machine."""
        system, root = self._remote()
        if LOCK in there and system.cat_file(f"{root}/{LOCK}") != _me():
            return
        if gone := [each for each in self.path.glob("manifest-*") if each.name not in there]:
            for each in (self.path / COMMITTED, *gone):
                each.unlink(missing_ok=True)

    def send(self, *patterns: str) -> None:
        """Copy the files here that match; files that complete others come last. Of a sealed folder of which the URL has
        the list of checksums, only those that are not there yet."""
        if not self.is_remote:
            return
        system, root = self._remote()
        there = self._sizes()
        folders = os.walk(self.path)  # skips what another task removes meanwhile
        files = [(Path(at) / file).relative_to(self.path).as_posix() for at, _, files in folders for file in files]
        names = sorted((name for name in files if _matches(name, patterns)), key=_order)
        if any(map(_is_manifest, names)):
            names += [name for name in files if name == COMMITTED]
        for name in filter(_is_list, names):
            if name in there and system.cat_file(f"{root}/{name}") != (self.path / name).read_bytes():
                system.rm_file(f"{root}/{name}")
                del there[name]
        for name in names:
            known = there.get(name) if _list_of(name) in there else None
            if known is None or not _has_size(self.path / name, known):
                system.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
                system.put_file(str(self.path / name), f"{root}/{name}")

    def unsent(self, folders: Iterable[Path]) -> list[Path]:
        """Those of these folders of keys that the URL does not hold completely."""
        if not self.is_remote:
            return []
        there = self._sizes()
        names = {each: (each.absolute() / CHECKSUMS).relative_to(self.path).as_posix() for each in folders}
        return [each for each, name in names.items() if name not in there]

    def remove(self, pattern: str) -> None:
        """Remove the files and folders at the URL that match."""
        if self.is_remote:
            system, root = self._remote()
            for each in system.glob(f"{root}/{pattern}"):
                system.rm(each, recursive=True)

    def clear(self, first: str) -> None:
        """Remove an interrupted writer's leftovers from the URL: orphaned segments from this name on, and unfinished
        ones."""
        if self.is_remote:
            for each in {name.split("/")[1] for name in self._sizes() if name.startswith("segments/")}:
                if not is_number(each) or each >= first:
                    self.remove(f"segments/{each}")

    def state(self) -> frozenset[str]:
        """Names that change when somebody adds, deletes or embeds."""
        if self.is_remote:
            return frozenset(name for name in self._sizes() if _is_manifest(name) or _is_list(name))
        found = [*self.path.glob("manifest-*.json"), *self.path.glob(f"{BESIDE}/*/*/{CHECKSUMS}")]
        return frozenset(each.relative_to(self.path).as_posix() for each in found)

    def exists(self) -> bool:
        """Whether a corpus is at the URL."""
        return any(map(_is_manifest, self._sizes()))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps others from writing during the block, with a file that names the writer (a folder has its own lock).

        Raises LockedError.
        """
        if not self.is_remote:
            yield
            return
        system, root = self._remote()
        lock = f"{root}/{LOCK}"
        system.makedirs(root, exist_ok=True)
        try:
            _create(system, lock, _me())
        except FileExistsError:
            said: bytes = system.cat_file(lock)
            who = said.decode() if said.startswith(b"process ") else "another process"  # a folder's own lock
            raise LockedError(
                f"{self.address}: {who} is writing; wait for it to end, or delete {self.address}/{LOCK} if it has died"
            ) from None
        try:
            yield
        finally:
            system.rm_file(lock)

    def _remote(self) -> tuple[Any, str]:
        import fsspec

        try:
            system, root = fsspec.core.url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            raise InputError(f"{self.address}: cannot be reached ({error})") from error
        system.invalidate_cache()
        return system, root.rstrip("/")

    def _sizes(self) -> dict[str, int]:
        """The files at the URL, by their names relative to it."""
        system, root = self._remote()
        try:
            found: dict[str, Any] = system.find(root, detail=True)
        except OSError as error:
            raise InputError(f"{self.address}: cannot be reached ({error})") from error
        return {name.removeprefix(root).lstrip("/"): int(facts["size"]) for name, facts in found.items()}


def _create(system: Any, file: str, content: bytes) -> None:
    """Write a file that is not there: where the store can (a folder, S3's `If-None-Match`), one writer of several wins.
    Raises FileExistsError."""
    if system.exists(file):
        raise FileExistsError(file)
    try:
        with system.open(file, "xb") as created:
            created.write(content)
    except (NotImplementedError, ValueError):
        system.pipe_file(file, content)


def _me() -> bytes:
    """The name of this process in the lock."""
    return f"process {os.getpid()} on {socket.gethostname()}".encode()


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _is_manifest(name: str) -> bool:
    return fnmatch(name, "manifest-*.json")


def _is_list(name: str) -> bool:
    return name.endswith(f"/{CHECKSUMS}")


def _list_of(name: str) -> str:
    """The list of checksums of the folder that a file is in."""
    return f"{name.rpartition('/')[0]}/{CHECKSUMS}"


def _order(name: str) -> tuple[bool, bool, str]:
    """What completes others comes last."""
    return _is_manifest(name), _is_list(name), name


def _has_size(here: Path, size: int) -> bool:
    return here.is_file() and here.stat().st_size == size
