"""The files of a path: which are read, in which format, and which are left out.

Knows names, folders and suffixes. Does not know what the files contain.
"""

import bz2
import gzip
import lzma
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from quoth.corpus.layout import COMMITTED
from quoth.errors import FileWarning, InputError

Source = tuple[str, str | Path, str]
"""A file's format, the file (a URL is a string), and its name relative to the path that was given."""

OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_FORMATS_BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".txt": "text",
    ".md": "text",
}
_SUFFIXES = ", ".join(_FORMATS_BY_SUFFIX)
_REMEDY = "convert it, or name its format (--format, format=)"
_MOST_KINDS = 8


def sources_of(path: str | Path, format: str | None) -> list[Source]:
    """Every file of a path: its format, the file, and its name relative to the path.

    Warns of a folder's files that are left out. Raises InputError if there is no file, or a folder cannot be read.
    """
    if str(path) == "-":
        return [(format or "jsonl", Path("-"), "stdin")]
    if "://" in str(path):
        return _remote_sources(str(path), format)
    path = Path(path)
    if path.is_dir():
        named = [(file, file.relative_to(path).as_posix()) for file in _files(path)]
        if found := _readable(named, format, path):
            return found
        raise InputError(
            f"{path}: no file in it ends in {_SUFFIXES}{_kinds_there(name for _, name in named)}; "
            "to read other files, convert them to text, or give --format (format= in Python)"
        )
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; give one that exists, or - for standard input")
    kind = format or format_of(path)
    if kind is None:
        raise InputError(
            f"{path}: its name does not end in {_SUFFIXES}; give --format (format= in Python), or convert it"
        )
    return [(kind, path, path.name)]


def bare(file: Path) -> Path:
    """The file's path without a compression suffix."""
    return file.with_suffix("") if file.suffix in OPENERS else file


def format_of(file: Path) -> str | None:
    """The format that a file's suffix says, if any does."""
    return _FORMATS_BY_SUFFIX.get(bare(file).suffix.lower())


def _files(folder: Path) -> list[Path]:
    """The files below a folder, without hidden ones and corpora. Raises InputError if a folder cannot be read."""

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); change its permissions, or move it")

    files: list[Path] = []
    for where, folders, names in os.walk(folder, onerror=refuse):
        if COMMITTED in names and "segments" in folders:
            folders.clear()  # a corpus
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(where, name) for name in names if not name.startswith(".")]
    return sorted(file for file in files if file.is_file())


def _remote_sources(url: str, format: str | None) -> list[Source]:
    """`sources_of` a file or folder that fsspec reads."""
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(url)
        is_folder = system.isdir(root)
        files = sorted(system.find(root)) if is_folder else [root] if system.exists(root) else []
    except Exception as error:  # every file system raises its own
        raise InputError(f"{url}: cannot be read ({error})") from error
    base = root.rstrip("/") if is_folder else root.rpartition("/")[0]
    relative = [(each, each.removeprefix(base).lstrip("/")) for each in files]
    named = [(system.unstrip_protocol(each), name) for each, name in relative if not _hidden(name)]
    if not (found := _readable(named, format, url)):
        raise InputError(f"{url}: no file there ends in {_SUFFIXES}; {_REMEDY}")
    return found


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts)


def _readable(named: Iterable[tuple[str | Path, str]], format: str | None, path: str | Path) -> list[Source]:
    """The files that have a format; warns of the others, unless there are only such."""
    known = [(format or format_of(Path(name)), file, name) for file, name in named]
    found: list[Source] = [(kind, file, name) for kind, file, name in known if kind is not None]
    left_out = [name for kind, _, name in known if kind is None]
    if found and left_out:
        remedy = f"only {_SUFFIXES} are read; convert the others to text"
        warnings.warn(FileWarning(f"left out {_kinds(left_out)} of {path}: {remedy}"), stacklevel=3)
    return found


def _kinds_there(names: Iterable[str]) -> str:
    return f" (there are {kinds})" if (kinds := _kinds(names)) else ""


def _kinds(names: Iterable[str]) -> str:
    """Files by kind and number, the most frequent first: `3 .pdf, 1 .docx`."""
    counts = sorted(Counter(map(_kind, names)).items(), key=lambda each: (-each[1], each[0]))
    shown = [f"{count:,} {kind}" for kind, count in counts[:_MOST_KINDS]]
    if others := sum(count for _, count in counts[_MOST_KINDS:]):
        shown.append(f"{others:,} of other kinds")
    return ", ".join(shown)


def _kind(name: str) -> str:
    path = Path(name)
    suffix = path.suffix if path.suffix in OPENERS else ""
    return (bare(path).suffix + suffix).lower() or "without a suffix"
