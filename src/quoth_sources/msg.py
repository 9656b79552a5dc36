"""Messages that Outlook saved, read as the mail that they were: properties become headers and parts (`eml`).

Knows the properties of a message, of its attachments, and messages inside. Does not know RTF: a message that has its
text in no other form says so in its notes.
"""

from base64 import b64encode
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.policy import compat32
from email.utils import format_datetime
from io import BytesIO
from struct import error, unpack_from
from typing import Any

import olefile

from quoth_sources import eml
from quoth_sources.source import Source

_HEADS = {"To": 0x0E04, "Cc": 0x0E03, "Subject": 0x0037}
_SENDER, _ADDRESSES, _TIMES = 0x0C1A, (0x5D01, 0x0C1F), (0x0039, 0x0E06)
_BODY, _PAGE, _FILE, _NAMES, _KIND, _CODE_PAGES = 0x1000, 0x1013, 0x3701, (0x3707, 0x3704), 0x370E, (0x3FFD, 0x3FDE)
_INSIDE, _ATTACHED, _PROPERTIES = "__substg1.0_3701000D", "__attach_version1.0_#", "__properties_version1.0"
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_PAGES = {0: "cp1252", 65001: "utf-8", 20127: "ascii"}


def read(content: bytes) -> Source:
    """The text of a message. Raises ValueError if it is none."""
    if not olefile.isOleFile(data=content):
        raise ValueError("not a file of Outlook; is it a message?")
    try:
        with olefile.OleFileIO(BytesIO(content)) as ole:
            message = _Storage(ole, ()).message()
    except (OSError, error, LookupError, TypeError, ValueError):  # as the library meets what it does not expect
        raise ValueError("the file is damaged; save the message again") from None
    if not (source := eml.source_of(message, True)).text:
        raise ValueError("no sender, subject or text in it; is it a message?")
    return source


class _Storage:
    """The properties of a message or of an attachment: a folder in the file."""

    def __init__(self, ole: Any, path: tuple[str, ...]) -> None:
        self._ole, self._path = ole, path

    def message(self) -> Message:
        made, sender = Message(compat32), self._text(_SENDER)
        address = next((said for each in _ADDRESSES if "@" in (said := self._text(each))), "")
        heads = {"From": f"{sender} <{address}>" if sender and address not in ("", sender) else address or sender}
        heads |= {head: self._text(number) for head, number in _HEADS.items()}
        if ticks := next(filter(None, map(self._number, _TIMES)), 0):
            with suppress(OverflowError):
                heads["Date"] = format_datetime(_EPOCH + timedelta(microseconds=ticks // 10))
        for head, said in heads.items():
            if said:
                made[head] = " ".join(said.split())
        page = self._stream(_PAGE, "0102") or self._text(_PAGE).encode()
        choice = Message(compat32)
        choice["Content-Type"] = "multipart/alternative"
        choice.set_payload([_part("text/plain", self._text(_BODY).encode()), _part("text/html", page)])
        made["Content-Type"] = "multipart/mixed"
        made.set_payload([choice, *(each._attachment() for each in self._attached())])
        return made

    def _attachment(self) -> Message:
        if self._ole.exists([*self._path, _INSIDE]):
            made = Message(compat32)
            made["Content-Type"] = "message/rfc822"
            made.set_payload([_Storage(self._ole, (*self._path, _INSIDE)).message()])
            return made
        name = next(filter(None, map(self._text, _NAMES)), "")
        return _part(self._text(_KIND) or "application/octet-stream", self._stream(_FILE, "0102"), name)

    def _attached(self) -> "list[_Storage]":
        depth = len(self._path)
        below = {tuple(each[: depth + 1]) for each in self._ole.listdir() if tuple(each[:depth]) == self._path}
        return [_Storage(self._ole, each) for each in sorted(below) if each[-1].startswith(_ATTACHED)]

    def _stream(self, number: int, kind: str) -> bytes:
        place = [*self._path, f"__substg1.0_{number:04X}{kind}"]
        return bytes(self._ole.openstream(place).read()) if self._ole.exists(place) else b""

    def _text(self, number: int) -> str:
        wide, narrow = self._stream(number, "001F"), self._stream(number, "001E")
        page = next(filter(None, map(self._number, _CODE_PAGES)), 0) & 0xFFFFFFFF if narrow else 0
        said = wide.decode("utf-16-le", "replace") or narrow.decode("cp1252", "replace")
        with suppress(LookupError):
            said = wide.decode("utf-16-le", "replace") or narrow.decode(_PAGES.get(page, f"cp{page}"), "replace")
        return said.rstrip("\0")

    def _number(self, number: int) -> int:
        """A property that is a number or a time, as its 64 bits; 0 if there is none. What stands before the properties
        has another length in a message inside, and in an attachment."""
        place = [*self._path, _PROPERTIES]
        content = self._ole.openstream(place).read() if self._ole.exists(place) else b""
        before = 32 if not self._path else 24 if self._path[-1] == _INSIDE else 8
        for at in range(before, len(content) - 15, 16):
            if unpack_from("<H", content, at + 2)[0] == number:
                return int(unpack_from("<Q", content, at + 8)[0])
        return 0


def _part(kind: str, content: bytes, name: str = "") -> Message:
    made = Message(compat32)
    made["Content-Type"] = f"{kind}; charset=utf-8" if kind == "text/plain" and not name else kind
    made["Content-Transfer-Encoding"] = "base64"
    if name:
        made.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
    made.set_payload(b64encode(content).decode())
    return made
