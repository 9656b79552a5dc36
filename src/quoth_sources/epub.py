"""E-books (EPUB): their parts in reading order, each piece with the number of its part and the path of its element.

Knows the container: which files are the book's parts (cover, chapters, notes), and its facts. What a part says is for
`html` to read. Does not know protected books, whose parts are encrypted.
"""

import posixpath
from functools import partial
from typing import Any
from urllib.parse import unquote

from quoth_sources import html
from quoth_sources.files import decode
from quoth_sources.office import Archive, described
from quoth_sources.source import Source, Text

_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")


def read(content: bytes) -> Source:
    """The text of a book. Raises ValueError if it cannot be opened, or is protected."""
    archive, text = Archive(content), Text("element")
    package = _package(archive)
    if (book := archive.xml(package)) is None:
        raise ValueError("it has no list of its parts: it is not an e-book, or is damaged")
    files = {each.get("id"): each for each in book.iterfind("{*}manifest/{*}item")}
    locked, contents = _locked(archive), _contents(book, package)
    for number, reference in enumerate(book.iterfind("{*}spine/{*}itemref"), 1):
        item = files.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _PAGES or "nav" in (item.get("properties") or "").split():
            continue
        file = _beside(package, item.get("href", ""))
        if file in locked:
            raise ValueError("it is encrypted; only books without copy protection are read")
        if (page := archive.read(file)) is None:
            archive.notes.setdefault(file, f"{file} in it is missing, so text may be missing")
        else:
            text.gap()
            before, sheets = f"part {number}, ", partial(_sheet, archive, file)
            html.write(_readable(page, file, archive), text, before, sheets, is_contents=file in contents)
    return text.source(described(book), [*archive.notes.values()])


def _contents(book: Any, package: str) -> set[str]:
    """The files that the book says are its table of contents, or an index."""
    guide = book.iterfind("{*}guide/{*}reference")
    return {_beside(package, each.get("href", "")) for each in guide if each.get("type") in ("toc", "index")}


def _readable(page: bytes, file: str, archive: Archive) -> bytes:
    """A page of a book, without the bytes that are no characters."""
    try:
        decode(page)
    except ValueError:
        archive.notes[file] = f"{file} in it is damaged, so text may be missing"
        return page.replace(b"\0", b" ").decode("utf-8", "replace").encode()
    return page


def _package(archive: Archive) -> str:
    """The name of the file that lists the book's parts."""
    container = archive.xml("META-INF/container.xml")
    root = None if container is None else container.find(".//{*}rootfile")
    usual = min((name for name in archive.names if name.endswith(".opf")), default="")
    return usual if root is None else root.get("full-path", usual)


def _beside(file: str, name: str) -> str:
    """The name in the archive of a file that another file refers to by this name."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), unquote(name)))


def _sheet(archive: Archive, file: str, name: str) -> bytes | None:
    """A style sheet that a page links to."""
    return archive.read(_beside(file, name))


def _locked(archive: Archive) -> set[str]:
    """The encrypted files. Fonts often are, which hinders nobody."""
    root = archive.xml("META-INF/encryption.xml")
    return set() if root is None else {unquote(each.get("URI", "")) for each in root.iterfind(".//{*}CipherReference")}
