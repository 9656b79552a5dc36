"""What the formats of Office and of e-books have in common: an archive, which must not be a trap, of files in XML, and
facts about the document.

Knows archives, XML and core properties. Does not know what is in a document.
"""

import io
import re
import zipfile
import zlib
from contextlib import suppress
from typing import Any

_MOST_BYTES, _MOST_FILES = 1 << 30, 100_000
_HEAD, _ENTITY, _ELEMENT = 1 << 16, re.compile(rb"<!ENTITY\b"), re.compile(rb"<[A-Za-z_]")
_CORE, _FACTS = "{http://purl.org/dc/elements/1.1/}", ("title", "creator", "date")
STRICT = rb"http://purl\.oclc\.org/ooxml/(\w+)/", rb"http://schemas.openxmlformats.org/\1/2006/"
"""How the names of elements begin in documents that are saved as "strict", and how in all others."""
_OLD = b"\xd0\xcf\x11\xe0"


def opened(content: bytes) -> io.BytesIO:
    """The file, to be parsed. Raises ValueError if it is not an archive, is encrypted, or unpacks to too much."""
    if content.startswith(_OLD):
        raise ValueError("it is encrypted, or in the format before 2007; save it anew, without a password")
    try:
        parts = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise ValueError(f"not a document of this format ({error})") from None
    size = sum(part.file_size for part in parts)
    if size > _MOST_BYTES or len(parts) > _MOST_FILES:
        raise ValueError(f"it unpacks to {size:,} bytes in {len(parts):,} files; at most {_MOST_BYTES:,} are read")
    _refuse_entities(content)
    return io.BytesIO(content)


def _refuse_entities(content: bytes) -> None:
    """Raises ValueError if a file in an archive defines entities before its first element: no program of Office does,
    and what they stand for is not read."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            head = b""
            if name.endswith((".xml", ".rels")):
                # A file that is damaged, encrypted or compressed in an unknown way is told by what reads it.
                with suppress(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
                    head = archive.open(name).read(_HEAD).replace(b"\0", b"")  # as UTF-16 has them
            if _ENTITY.search(_ELEMENT.split(head, 1)[0]):
                raise ValueError(f"{name} in it defines entities, whose text would be lost; save it again")


def changed(content: bytes, *changes: tuple[bytes, bytes]) -> bytes:
    """The archive with its files changed: each match of a pattern, and what is put in its place."""
    with zipfile.ZipFile(opened(content)) as old, zipfile.ZipFile(stream := io.BytesIO(), "w") as new:
        for name in old.namelist():
            part = old.read(name)
            for pattern, instead in changes:
                part = re.sub(pattern, instead, part)
            new.writestr(name, part)
    return stream.getvalue()


def parsed(content: bytes) -> Any:
    """The root of a file in XML. Raises ValueError if it is damaged."""
    from lxml import etree

    try:
        return etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except etree.XMLSyntaxError as error:
        raise ValueError(f"a file in it is damaged ({error})") from None


def described(part: Any) -> dict[str, Any]:
    """A document's title, author and date as Dublin Core has them below a part of a file in XML."""
    title, author, date = (" ".join((part.findtext(f".//{_CORE}{fact}") or "").split()) for fact in _FACTS)
    return {"title": title, "author": author, "date": date[:10]}


def facts(properties: Any) -> dict[str, Any]:
    """A document's title, author and date."""
    date = properties.modified or properties.created
    author = getattr(properties, "author", None) or getattr(properties, "creator", None)
    return {"title": properties.title, "author": author, "date": date.date().isoformat() if date else ""}
