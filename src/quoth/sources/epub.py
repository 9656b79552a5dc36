"""E-books (EPUB): their parts in reading order, each piece with the number of its part and the path of its element.

Knows the container: which files are the book's parts (cover, chapters, notes), and its facts. What a part says is for
`html` to read. Does not know protected books, whose parts are encrypted.
"""

import posixpath
import zipfile
from urllib.parse import unquote

from quoth.sources import html
from quoth.sources.office import described, opened, parsed
from quoth.sources.source import Source, Text

_PAGES = ("application/xhtml+xml", "text/html")


def read(content: bytes) -> Source:
    """The text of a book. Raises ValueError if it cannot be opened, or is protected."""
    archive = zipfile.ZipFile(opened(content))
    names = set(archive.namelist())
    if "META-INF/container.xml" not in names:
        raise ValueError("no META-INF/container.xml in it; is it an e-book?")
    package = parsed(archive.read("META-INF/container.xml")).find(".//{*}rootfile").get("full-path")
    book = parsed(archive.read(package))
    files = {each.get("id"): each for each in book.iterfind("{*}manifest/{*}item")}
    locked = _locked(archive) if "META-INF/encryption.xml" in names else set()
    text = Text("element")
    for number, reference in enumerate(book.iterfind("{*}spine/{*}itemref"), 1):
        item = files.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _PAGES or "nav" in (item.get("properties") or "").split():
            continue
        file = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(item.get("href"))))
        if file in locked:
            raise ValueError("it is encrypted; only books without copy protection are read")
        if file in names:
            text.gap()
            html.write(archive.read(file), text, f"part {number}, ")
    return text.source(described(book))


def _locked(archive: zipfile.ZipFile) -> set[str]:
    """The encrypted files. Fonts often are, which hinders nobody."""
    found = parsed(archive.read("META-INF/encryption.xml")).iterfind(".//{*}CipherReference")
    return {unquote(each.get("URI", "")) for each in found}
