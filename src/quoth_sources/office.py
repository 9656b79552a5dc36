"""What the formats of Office and of e-books have in common: an archive, which must not be a trap, of files in XML, and
facts about the document.

Knows archives, XML, also damaged, and core properties. Does not know what is in a document.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from quoth_sources.source import is_final

_MOST_BYTES, _MOST_FILES = 1 << 30, 100_000
_HEAD, _ENTITY, _ELEMENT = 1 << 16, re.compile(rb"<!ENTITY\b"), re.compile(rb"<[A-Za-z_]")
_CORE = "{http://purl.org/dc/elements/1.1/}"
_OF_PROGRAMS = re.compile(
    "python-docx|openpyxl|Apache POI|PowerPoint Presentation|0101-01-01.*|2013-12-23T23:15:00.*|2013-01-27T09:1.:.*"
)
"""Facts that a program puts into every file: its own name, the name of a kind of file, the day of its template."""
_DAY = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}(?![0-9])")
_TAG = re.compile(rb"<(/?)([A-Za-z_][\w:.-]*)([^<>]*)>")
_DIGITS = re.compile("-?[0-9]{1,9}")
STRICT = rb"http://purl\.oclc\.org/ooxml/(\w+)/", rb"http://schemas.openxmlformats.org/\1/2006/"
"""How the names of elements begin in documents that are saved as "strict", and how in all others."""
_OLD = b"\xd0\xcf\x11\xe0"
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError)
_TYPES, _PACKAGE = "[Content_Types].xml", "application/vnd.openxmlformats-package"
_NOT_THIS = "not a document of this format, or damaged"
_HEADING = re.compile("(?:heading|title) ?([1-9])?")
_STYLES = {
    "contents": re.compile("toc( heading| ?[1-9])|table of (figures|authorities)|(index|contents)( ?[1-9]| heading)"),
    "caption": re.compile("(.* )?caption"),
    "code": re.compile("html preformatted|preformatted text|plain text|macro text|source code|code"),
    "term": re.compile("definition term|list heading"),
    "item": re.compile("definition|list contents"),
}
"""What programs call the styles of paragraphs that are no mere text."""
Change = tuple[bytes, bytes] | Callable[[str, bytes], bytes]
"""A pattern and what is put in its place, or a function of a file's name and what is in it."""


def opened(content: bytes) -> io.BytesIO:
    """The file, to be parsed. Raises ValueError if it is not an archive, is encrypted, or unpacks to too much."""
    if content.startswith(_OLD):
        raise ValueError("it is encrypted, or in the format before 2007; save it again, without a password")
    try:
        parts = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except _DAMAGE:
        raise ValueError(_NOT_THIS) from None
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


class Archive:
    """The files of a document by their names. `notes` say, by name, which of those that were read are damaged."""

    def __init__(self, content: bytes) -> None:
        """Raises ValueError as `opened` does."""
        self._zip = zipfile.ZipFile(opened(content))
        self.names = {*self._zip.namelist()}
        self.notes: dict[str, str] = {}
        self._roots: dict[str, Any] = {}

    def read(self, name: str) -> bytes | None:
        """What is in a file; None if it is not there, or damaged. Raises ValueError if it is encrypted."""
        if name not in self.names:
            return None
        try:
            return self._zip.read(name)
        except RuntimeError as error:
            if isinstance(error, NotImplementedError):
                self.notes[name] = f"{name} in it is compressed in an unknown way, and is left out"
                return None
            raise ValueError("it is encrypted; save it again, without a password") from None
        except _DAMAGE:
            self.notes[name] = f"{name} in it is damaged, and is left out"
            return None

    def xml(self, name: str, *changes: tuple[bytes, bytes]) -> Any:
        """The root of an XML file; of a damaged one, what can be read; None if nothing can."""
        if name in self._roots or (content := self.read(name)) is None:
            return self._roots.get(name)
        for pattern, instead in changes:
            content = re.sub(pattern, instead, content)
        root, is_whole = root_of(content)
        self._roots[name] = root
        if not is_whole:
            left = "and is left out" if root is None else "so text or its form may be missing"
            self.notes[name] = f"{name} in it is damaged, {left}"
        return root

    def changed(self, *changes: Change, types: Mapping[str, str] | None = None) -> bytes:
        """The archive with each of its files changed, and of damaged ones what can be read. `types` are
        the kinds of files by patterns of their names, if the archive's own list of them is not to be trusted."""
        from lxml import etree

        with zipfile.ZipFile(stream := io.BytesIO(), "w") as new:
            for name in self._zip.namelist():
                if (part := self.read(name)) is None or (types and name == _TYPES):
                    continue
                if name.endswith((".xml", ".rels")) and not root_of(part)[1]:
                    if (root := self.xml(name)) is None:
                        continue
                    part = etree.tostring(root)
                for change in changes:
                    part = change(name, part) if callable(change) else re.sub(*change, part)
                new.writestr(name, part)
            if types:
                new.writestr(_TYPES, _typed(new.namelist(), types))
        return stream.getvalue()

    def related(self, name: str = "") -> dict[str, str]:
        """The names of the files that a file, or the whole document (""), refers to, by their kinds."""
        folder, file = posixpath.split(name)
        found = self.xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        return {
            each.get("Type", "").rpartition("/")[2]: posixpath.normpath(
                posixpath.join("/", folder, each.get("Target", ""))
            )[1:]
            for each in (() if found is None else found.iterchildren("{*}Relationship"))
        }

    @contextmanager
    def survived(self, name: str) -> Iterator[None]:
        """For reading a part: what a library cannot read of it is left out, with a note."""
        try:
            yield
        except Exception as error:  # every library raises its own
            if is_final(error):
                raise
            self.notes[name] = f"{name} in it is damaged, so text may be missing"

    def facts(self) -> Mapping[str, Any]:
        """The title, author and date of a document of Office, as its own properties have them."""
        return described(self.xml(self.related().get("core-properties", "")), "modified", "created")


def _typed(names: Iterable[str], types: Mapping[str, str]) -> bytes:
    """What [Content_Types].xml says, if files are of these kinds."""
    from lxml import etree

    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    root = etree.Element(f"{{{space}}}Types", nsmap={None: space})
    etree.SubElement(root, f"{{{space}}}Default", Extension="rels", ContentType=f"{_PACKAGE}.relationships+xml")
    etree.SubElement(root, f"{{{space}}}Default", Extension="xml", ContentType="application/xml")
    for name in names:
        kind = next((kind for pattern, kind in types.items() if re.search(pattern, name)), None)
        if kind:
            kind = f"application/vnd.openxmlformats-officedocument.{kind}+xml"
            etree.SubElement(root, f"{{{space}}}Override", PartName=f"/{name}", ContentType=kind)
    return bytes(etree.tostring(root))


def root_of(content: bytes) -> tuple[Any, bool]:
    """The root of a file in XML, and whether it is whole; None if nothing can be read. What defines entities is not
    repaired: it may be a trap."""
    from lxml import etree

    options = {"resolve_entities": False, "no_network": True, "huge_tree": True}
    try:
        return etree.fromstring(content, etree.XMLParser(**options)), True
    except (etree.XMLSyntaxError, ValueError):
        if b"<!ENTITY" in content:
            return None, False
    try:
        return etree.fromstring(_balanced(content), etree.XMLParser(recover=True, **options)), False
    except (etree.XMLSyntaxError, ValueError):
        return None, False


def _balanced(content: bytes) -> bytes:
    """A file in XML in which each element ends: an end without a beginning goes, and one that ends another element
    ends those in it too. lxml takes any end for that of the last element, so that all the rest would be in it."""
    parts: list[bytes] = []
    opened: list[bytes] = []
    counts, at = Counter[bytes](), 0
    for tag in _TAG.finditer(content):
        ends, name, rest = tag.groups()
        parts.append(content[at : tag.start() if ends else tag.end()])
        at = tag.end()
        if not ends and not rest.endswith(b"/"):
            opened.append(name)
            counts[name] += 1
        while ends and counts[name]:
            counts[last := opened.pop()] -= 1
            parts.append(b"</" + last + b">")
            if last == name:
                break
    return b"".join([*parts, content[at:], *(b"</" + name + b">" for name in reversed(opened))])


def kind_of_styles(names: Iterable[str]) -> tuple[str, int]:
    """The kind of block (`quoth_sources.blocks`), and its level, of the first of these styles that is for one; "" and 0
    if none is."""
    for name in map(str.lower, names):
        if found := _HEADING.fullmatch(name):
            return "heading", int(found[1] or 1)
        if kind := next((kind for kind, pattern in _STYLES.items() if pattern.fullmatch(name)), ""):
            return kind, int(kind in ("term", "item"))
    return "", 0


def kind_of(part: Any) -> str:
    """The name of a part of a file in XML, without its namespace; of a comment, anything."""
    return str(part.tag).rpartition("}")[2]


def described(part: Any, *dates: str) -> Mapping[str, Any]:
    """A document's title, author and date as Dublin Core has them below a part of a file in XML, without those that a
    program made up; `dates` are the names of the date, if it has others."""
    if part is None:
        return {}

    def said(*names: str) -> str:
        found = (" ".join((part.findtext(f".//{name}") or "").split()) for name in names)
        return next((fact for fact in found if fact and not _OF_PROGRAMS.fullmatch(fact)), "")

    date = said(*(f"{{*}}{name}" for name in dates or ("date",)))
    day = _DAY.match(date)
    return {"title": said(f"{_CORE}title"), "author": said(f"{_CORE}creator"), "date": day[0] if day else date}


def whole(said: str, usual: int, most: int = 10**9) -> int:
    """The whole number that a file says; `usual` if it says none."""
    return min(int(said), most) if _DIGITS.fullmatch(said) else usual
