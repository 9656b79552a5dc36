"""The files of a path: which are read, in which format, which are left out, and how bytes become characters.

Text is UTF-8, UTF-16 with a byte order mark, or in another encoding, which is recognised by what it spells. Knows
names, folders, suffixes, characters, and what markup looks like. Does not know records or documents.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EFBIG
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import IO, Any

from quoth_sources import limits
from quoth_sources.errors import FileWarning, InputError, few
from quoth_sources.formats import BY_SUFFIX, PARSERS, SUFFIXES, WRITES
from quoth_sources.libreoffice import program
from quoth_sources.man import is_man

Source = tuple[str, str | Path, str]
"""A file's format, the file (a URL is a string), and its name relative to the path that was given."""

OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""What these raise if a file cannot be read, or is damaged."""
_SUFFIXES = f"{', '.join(chain.from_iterable(SUFFIXES.values()))}, .1 to .9 (manual pages)"
_CORPUS = "committed.json", "segments"
"""A file and a folder that a corpus of Quoth has; it is no folder of documents."""
_UNSEEN = re.compile(r"\.|~\$")
"""How the names of hidden files and of Office's lock files begin."""
_SECTION = re.compile(r"\.[1-9][a-z]{0,12}")
_REMEDY = "convert it, or name its format (--format, format=)"
_MOST_KINDS = 8
_PART = 1 << 17


def unpacked(stream: IO[bytes], size: int) -> IO[bytes]:
    """What a compressed file of this size unpacks to. Raises OSError when more of it is read than it may unpack to."""
    return io.BufferedReader(_Unpacked(stream, limits.unpacked_bytes(size)), _PART)


class _Unpacked(io.RawIOBase):
    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most, self._left = stream, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._stream.read(len(buffer))
        self._left -= len(part)
        if self._left < 0:
            raise OSError(EFBIG, f"it unpacks to more than {self._most:,} bytes; unpack it, or split it")
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


def sources_of(path: str | Path, format: str | None, follow_links: bool = False) -> list[Source]:
    """Every file of a path: its format, the file, and its name relative to the path.

    Warns of a folder's files that are left out. Raises InputError if there is no file, or a folder cannot be read.
    """
    if str(path) == "-":
        return [(format or "jsonl", Path("-"), "stdin")]
    if "://" in str(path):
        return _remote_sources(str(path), format)
    path = Path(path)
    if path.is_dir():
        named = files_below(path, follow_links)
        if found := readable(named, format, path):
            return found
        there = f" (there are {kinds})" if (kinds := _kinds(name for _, name in named)) else ""
        raise InputError(
            f"{path}: no file in it ends in {_SUFFIXES}{there}; "
            "to read other files, convert them to text, or give --format (format= in Python)"
        )
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; give one that exists, or - for standard input")
    kind = format or _read_as(path)
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
    suffix = bare(file).suffix.lower()
    return "man" if _SECTION.fullmatch(suffix) else BY_SUFFIX.get(suffix)


def _read_as(file: str | Path) -> str | None:
    """The same, but that what is here and ends in .1 to .9 must begin as a manual page does, if it can be read."""
    kind = format_of(Path(file))
    if kind == "man" and isinstance(file, Path):
        with suppress(*DAMAGE), OPENERS.get(file.suffix, Path.open)(file, "rb") as stream:
            return kind if is_man(stream.read(_SAMPLE).decode("utf-8", "replace")) else None
    return kind


def files_below(folder: Path, follow_links: bool = False) -> list[tuple[Path, str]]:
    """The files below a folder, and their names relative to it, without hidden ones, locks of Office and corpora.

    A link to a file counts as one if that is another of these files. With `follow_links`, every link does, and those to
    folders are followed, each folder once. Others are left out; a FileWarning names those that lead out of the folder.
    Raises InputError if a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); change its permissions, or move it")

    root, files, outside = folder.resolve(), list[Path](), list[Path]()
    pending, seen = [folder], set[str]()
    for top in pending:  # which grows
        for where, folders, names in os.walk(top, onerror=refuse):
            if (real := os.path.realpath(where)) in seen or (_CORPUS[0] in names and _CORPUS[1] in folders):
                folders.clear()  # a corpus, or read already
                continue
            seen.add(real)
            folders[:] = [name for name in folders if not _UNSEEN.match(name)]
            linked = [path for path in (Path(where, name) for name in folders) if path.is_symlink()]
            files += [Path(where, name) for name in names if not _UNSEEN.match(name)]
            if follow_links:
                pending += linked
            else:
                outside += [path for path in linked if not _target(path).is_relative_to(root)]
    if not follow_links:
        leading = {path: _target(path) for path in files if path.is_symlink()}
        outside += [path for path, target in leading.items() if not target.is_relative_to(root)]
        left_out = {path for path, target in leading.items() if not _is_seen(target, root)}
        files = [path for path in files if path not in left_out]
    named = [(file, file.relative_to(folder).as_posix()) for file in sorted(files) if file.is_file()]
    if outside:
        links = few([path.relative_to(folder).as_posix() for path in sorted(outside)])
        remedy = "--follow-links (follow_links= in Python) reads what is there"
        warnings.warn(FileWarning(f"left out links that lead out of {folder} ({links}); {remedy}"), stacklevel=2)
    return named


def _target(link: Path) -> Path:
    return Path(os.path.realpath(link))


def _is_seen(file: Path, root: Path) -> bool:
    """Whether a file is below a folder, and no part of its path is hidden."""
    return file.is_relative_to(root) and not any(map(_UNSEEN.match, file.relative_to(root).parts))


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
    relative = [(file, file.removeprefix(base).lstrip("/")) for file in files]
    visible = [(file, name) for file, name in relative if not any(map(_UNSEEN.match, name.split("/")))]
    named = [(system.unstrip_protocol(file), name) for file, name in visible]
    if not (found := readable(named, format, url)):
        raise InputError(f"{url}: no file there ends in {_SUFFIXES}; {_REMEDY}")
    return found


def readable(named: Iterable[tuple[str | Path, str]], format: str | None, path: str | Path) -> list[Source]:
    """The files that have a format; warns of the others, unless there are only such."""
    known = [(format or _read_as(file), file, name) for file, name in named]
    formats = {kind for kind, *_ in known if kind is not None}
    if not format and program() is None:
        formats -= WRITES.keys()
    found: list[Source] = [(kind, file, name) for kind, file, name in known if kind in formats]
    left_out = [name for kind, _, name in known if kind not in formats]
    if found and left_out:
        older = sorted({f".{kind}" for kind, *_ in known if kind and kind not in formats})
        by_office = f"; LibreOffice, if it is installed, reads {', '.join(older)}" if older else ""
        remedy = f"only {_SUFFIXES} are read{by_office}; convert the others to text"
        warnings.warn(FileWarning(f"left out {_kinds(left_out)} of {path} ({few(left_out)}): {remedy}"), stacklevel=3)
    return found


def check_parsers(formats: Iterable[str]) -> None:
    """Raises InputError if a format's parser is not installed."""
    formats = {*formats}
    needed = PARSERS | {"mbox": PARSERS["eml"]}
    missing = sorted(format for format in formats & needed.keys() if find_spec(needed[format]) is None)
    if missing:
        raise InputError(
            f"{', '.join(missing)}: reading these takes packages that are not installed: "
            "pip install \"quoth[documents]\" (in a clone: pip install '.[documents]')"
        )
    if (old := sorted(WRITES.keys() & formats)) and program() is None:
        raise InputError(
            f"{', '.join(old)}: LibreOffice, which reads these, is not installed; install it, or save the file as "
            f"{WRITES[old[0]]}"
        )


def _kinds(names: Iterable[str]) -> str:
    """Files by kind and number, the most frequent first: `3 .pdf, 1 .docx`."""

    def kind(name: str) -> str:
        path = Path(name)
        suffix = path.suffix if path.suffix in OPENERS else ""
        return (bare(path).suffix + suffix).lower() or "without a suffix"

    counts = sorted(Counter(map(kind, names)).items(), key=lambda each: (-each[1], each[0]))
    shown = [f"{count:,} {kind}" for kind, count in counts[:_MOST_KINDS]]
    if others := sum(count for _, count in counts[_MOST_KINDS:]):
        shown.append(f"{others:,} of other kinds")
    return ", ".join(shown)


UTF_8, UTF_16 = "utf-8-sig", "utf-16"
"""The encodings that are certain; any other is a guess."""
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GUESSES = (
    *("cp1252", "cp1251", "gb18030", "cp932", "cp949", "big5", "euc_jp"),
    *("cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r"),
)
"""The other encodings, the more frequent first: of those that fit about as well, the first is taken."""
_ALIKE_CHAOS, _ALIKE_COHERENCE = 0.05, 0.08
"""How much worse an encoding may fit and still be taken for being more frequent. Mixtures of western sentences in
cp1252 fit cp1250 better by up to 0.08 (German with a £ in it); Turkish fits cp1254 better by 0.1."""
_SAMPLE = 1 << 16
_INSIDE = bytes(range(0x30, 0x100))
"""Bytes of which characters of several bytes consist."""
_BINARY = "binary, or in an encoding that is not recognised"
_MARKUP = {
    "HTML": ((".html", ".htm", ".xhtml"), re.compile(r"\s*<(!doctype html|html)\b", re.IGNORECASE)),
    "XML": ((".xml",), re.compile(r"\s*<\?xml\b")),
    "troff": ((), re.compile(r"(?s).{0,4096}?^\.(TH|SH|Dd) ", re.MULTILINE)),
    "reStructuredText": ((".rst",), None),
    "LaTeX": ((".tex",), re.compile(r"\s*\\documentclass\b")),
}


def decode(content: bytes) -> tuple[str, str]:
    """The text, and its encoding. Raises ValueError if it is binary, or in no encoding that is recognised."""
    encoding = encoding_of(content)
    text = content.decode(encoding)
    if (place := text.find("\0")) >= 0:
        # In UTF-8 a few may be damage, or fill up the end; where they are many inside, it is another encoding.
        inside = text.rstrip("\0")
        if encoding != UTF_8 or 5 * inside.count("\0") > 2 * len(inside):
            raise ValueError(f"{_BINARY}: character {place} is NUL")
    return text, encoding


def meant(encoding: str) -> str:
    """The encoding that web pages and mail mean by this name, as browsers take it: Latin-1 itself has no quotation
    marks and no €. Raises LookupError if there is none."""
    return "cp1252" if codecs.lookup(encoding).name == "iso8859-1" else encoding


def tell(name: str, encoding: str) -> None:
    """Warns of an encoding that is a guess."""
    if encoding not in (UTF_8, UTF_16):
        warnings.warn(FileWarning(f"{name} is read as {encoding}"), stacklevel=2)


def encoding_of(content: bytes) -> str:
    """The encoding of a text. Raises ValueError if none is recognised."""
    encoding = UTF_16 if content.startswith(_BOMS) else UTF_8
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        wrong = f"not {encoding.removesuffix('-sig').upper()} at byte {error.start}"
    else:
        return encoding
    # UTF-8 but for a few damaged bytes: in another encoding, hardly a byte looks like UTF-8.
    text = content.decode(errors="replace")
    if encoding == UTF_16 or sum(character > "\x7f" for character in text) >= 2 * text.count("\ufffd"):
        raise ValueError(wrong)
    if (place := content.find(b"\0")) >= 0:
        raise ValueError(f"{_BINARY}: byte {place} is NUL")
    for encoding in _fitting(content):
        with suppress(UnicodeDecodeError):
            content.decode(encoding)
            return encoding
    raise ValueError(f"{_BINARY}: {wrong}")


def _fitting(content: bytes) -> list[str]:
    """The encodings that fit the lines with other characters than ASCII's, best first."""
    from charset_normalizer import from_bytes

    lines = io.BytesIO()
    for line in content.splitlines(keepends=True):
        if not line.isascii():
            # Of a longer one what ends with a space or a mark, so that no character is cut.
            lines.write(
                line if len(line) <= limits.HEAD else line[: limits.HEAD].rstrip(_INSIDE) or line[: limits.HEAD]
            )
            if lines.tell() > _SAMPLE:
                break
    # Its own order prefers cp775 and cp1250 to cp1252 where both fit, so that French quotation marks become letters.
    matches = list(from_bytes(lines.getvalue(), cp_isolation=list(_GUESSES), enable_fallback=False))
    if not matches:
        others = content.translate(None, bytes(range(128)))
        return ["cp1252"] if 5 * len(others) < len(content) else []
    chaos, coherence = matches[0].chaos + _ALIKE_CHAOS, matches[0].coherence - _ALIKE_COHERENCE
    alike = [match for match in matches if match.chaos <= chaos and match.coherence >= coherence]
    names = {name for match in alike for name in match.could_be_from_charset}
    return sorted(names.intersection(_GUESSES), key=_GUESSES.index)


class Lines:
    """The lines of a long file. Raises OSError if there are more than `limits.RECORD` characters since `taken` was set
    to 0: a row of a table may have several lines, or, if a quotation mark is missing, all of them."""

    def __init__(self, characters: IO[str]) -> None:
        self._characters, self.taken = characters, 0

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        line = self._characters.readline(limits.RECORD + 1)
        self.taken += len(line)
        if self.taken > limits.RECORD:
            raise OSError(EFBIG, f"a row of more than {limits.RECORD:,} characters; is a quotation mark missing?")
        if not line:
            raise StopIteration
        return line


@contextmanager
def text_stream(stream: IO[bytes]) -> Iterator[tuple[Lines, str]]:
    """The characters of a long file, and its encoding, which its first megabyte decides.

    Line ends stay as they are. Bytes that the encoding lacks become lone surrogates, which no document may contain.
    """
    head = stream.read(limits.HEAD) + stream.readline(limits.RECORD)
    try:
        encoding = UTF_16 if head.startswith(_BOMS) else encoding_of(head)
    except ValueError:
        encoding = UTF_8
    lines = io.TextIOWrapper(
        io.BufferedReader(_Joined(head, stream)), encoding=encoding, errors="surrogateescape", newline=""
    )
    try:
        yield Lines(lines), encoding
    finally:
        lines.detach()


class _Joined(io.RawIOBase):
    """Bytes that were read from a stream, and then the rest of it."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = io.BytesIO(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        part = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def markup_of(name: str, text: str) -> str | None:
    """The markup that a file's name or its beginning says, if any: HTML, for example."""
    suffix = Path(name).suffix.lower()
    for markup, (suffixes, beginning) in _MARKUP.items():
        if suffix in suffixes or (beginning is not None and beginning.match(text)):
            return markup
    return None
