"""Where a corpus is for a cluster: in a folder that every machine sees, or at a URL that fsspec reads and writes.

If it is at a URL, each machine keeps a copy of what it needs in QUOTH_CACHE (~/.cache/quoth). Knows files and their
sizes, and that `checksums.json` completes a folder of keys, and a manifest a corpus. Does not know what they contain.
"""

from __future__ import annotations

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

from quoth.corpus.manifest import BESIDE
from quoth.errors import CorpusNotFoundError, InputError, LockedError
from quoth.index.key_store import is_key_file
from quoth.storage import CHECKSUMS

TEXT = ("manifest-*", "deleted-*", "segments/*", "moves/*")
KEYS = f"{BESIDE}/*"
ALWAYS_ANEW = 1 << 16
"""Files up to this size are copied even if there is one of the same size already."""


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

    def fetch(self, *patterns: str, progress: Callable[[int, int], None] | None = None) -> None:
        """Copy the files at the URL that match and are not here yet; each file completely or not at all. `progress`
        receives the number of files looked at, and of all that match."""
        if not self.is_remote:
            return
        system, root = self._remote()
        there = self._sizes()
        wanted = [name for name in there if _matches(name, patterns) and _is_complete(name, there)]
        for number, name in enumerate(wanted, 1):
            if ".." in name.split("/"):
                raise InputError(
                    f"{self.address}/{name} leads out of the corpus; delete it there, or use another corpus"
                )
            here = self.path / name
            if not _is_same(here, there[name]):
                here.parent.mkdir(parents=True, exist_ok=True)
                part = here.with_name(f"{here.name}.{uuid4().hex}.tmp")
                system.get_file(f"{root}/{name}", str(part))
                part.replace(here)
            if progress:
                progress(number, len(wanted))

    def send(self, *patterns: str) -> None:
        """Copy the files here that match and are not at the URL yet; files that complete others come last."""
        if not self.is_remote:
            return
        system, root = self._remote()
        there = self._sizes()
        folders = os.walk(self.path)  # skips what another task removes meanwhile
        names = [(Path(at) / file).relative_to(self.path).as_posix() for at, _, files in folders for file in files]
        for name in sorted(names, key=lambda each: (each.startswith("manifest-"), each.endswith(CHECKSUMS), each)):
            here = self.path / name
            if _matches(name, patterns) and (name not in there or not _is_same(here, there[name])):
                system.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
                system.put_file(str(here), f"{root}/{name}")

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

    def exists(self) -> bool:
        """Whether a corpus is there."""
        if self.is_remote:
            return any(name.startswith("manifest-") for name in self._sizes())
        return self.path.exists()

    def check(self) -> None:
        """Raises CorpusNotFoundError if no corpus is at the URL."""
        if self.is_remote and not self.exists():
            where = self.address
            raise CorpusNotFoundError(f"{where}: no corpus there; `quoth index DOCS -o {where} --ray` makes one")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps others from writing during the block, with a file that names the writer (a folder has its own lock).

        Raises LockedError.
        """
        if not self.is_remote:
            yield
            return
        system, root = self._remote()
        lock, writer = f"{root}/writer.lock", f"process {os.getpid()} on {socket.gethostname()}".encode()
        system.makedirs(root, exist_ok=True)
        try:
            _create(system, lock, writer)
        except FileExistsError:
            raise LockedError(
                f"{self.address}: {system.cat_file(lock).decode()} is writing; wait for it to end, or delete "
                f"{self.address}/writer.lock if it has died"
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


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _is_complete(name: str, there: dict[str, int]) -> bool:
    """Whether a file of keys is in a folder that has been sent completely."""
    return not is_key_file(name) or f"{name.rpartition('/')[0]}/{CHECKSUMS}" in there


def _is_same(here: Path, size: int) -> bool:
    return here.is_file() and here.stat().st_size == size > ALWAYS_ANEW
