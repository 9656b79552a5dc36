"""Mail: who wrote to whom, when and about what, then the text of the message, each line with its number and without the
">" before what it quotes.

What a reader of mail shows one below the other is read in its order: texts and web pages, attached texts under their
names, forwarded messages under their own headers, what a server says of a delivery. Other attachments are not read. A
message in whose body there is no text, although there is a body, says so in its notes.

Knows headers and bodies, also those of programs that write them wrongly. Does not know mailboxes.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from email import message_from_bytes, message_from_string
from email.header import decode_header, make_header
from email.message import Message
from email.policy import compat32
from email.utils import parsedate_to_datetime
from itertools import groupby
from typing import Any

from quoth_sources import html
from quoth_sources.errors import few
from quoth_sources.files import decode, meant
from quoth_sources.source import Source, Text

# Of Python's two policies this one reads each header once, when it is asked for: 100,000 parts in 6 seconds.
_POLICY = compat32
_HEADS = ("From", "To", "Cc", "Date", "Subject")
_FORWARDED = ("From", "Date", "Subject")
_LONGEST_HEAD = 100_000
"""Characters of a header in which encoded words are read."""
_WORD = r"=\?\w[^?\s]*\?[qb]\?(?:(?!=\?\w).)*?\?="
_WORDS = re.compile(rf"{_WORD}(?:\s*{_WORD})*", re.IGNORECASE)
"""Words that are encoded, one after another; the space between them is none. One that does not end ends where the next
begins, so that no end is looked for twice."""
_CHOICES = ("multipart/alternative", "multipart/related")
_BOUNDARY = re.compile(r"^--(\S[^\r\n]{1,199})\r?\n(?=Content-|\r?\n)", re.MULTILINE | re.IGNORECASE)
_TEXTS = (".txt", ".csv", ".ics")
"""Of attachments that are sent as bytes."""
_EMPTY = re.compile(rb"(\r?\n\r?\n)")
_FIELD = re.compile(rb"^([!-9;-~]+)[ \t]*:")
Block = str | list[str]
"""A line that is about a part, or lines of one."""


def read(content: bytes) -> Source:
    """The text of a message. Raises ValueError if it has no headers."""
    message = message_from_bytes(content, policy=_POLICY)
    if not _heads(message, _HEADS):
        message = message_from_bytes(_mended(content), policy=_POLICY)
    if not _heads(message, _HEADS):
        raise ValueError(f"none of {', '.join(_HEADS)} at its head; is it a message?")
    _, *body = _EMPTY.split(content, maxsplit=1)
    return source_of(message, bool(b"".join(body).strip()))


def source_of(message: Message, has_body: bool) -> Source:
    """The text of a message that has been parsed; if there is none although it has a body, a note says so."""
    heads = _heads(message, _HEADS)
    text = Text("line")
    for head, said in heads.items():
        text.add(f"{head}: {said}")
        text.gap("\n")
    text.gap()
    number, left_out = 1, list[str]()
    blocks = [*_blocks(message, left_out)]
    for block in blocks:
        if isinstance(block, str):
            text.add(block)
            text.gap("\n" if block else "\n\n")
        else:
            text.code(block, number)
            number += len(block)
    date = ""
    with suppress(Exception):  # ValueError, TypeError, IndexError, OverflowError: every wrong date its own
        date = parsedate_to_datetime(heads["Date"]).date().isoformat()
    return text.source(
        {"title": heads.get("Subject"), "author": heads.get("From"), "date": date},
        [] if _has_text(blocks) or not (left_out or has_body) else [_told(left_out)],
    )


def _mended(content: bytes) -> bytes:
    """A message without the lines that are not headers, at which its headers seem to end, above the first empty one."""
    head, *rest = _EMPTY.split(content, maxsplit=1)
    lines = (_FIELD.sub(rb"\1:", line) for line in head.splitlines(keepends=True))
    return b"".join([*(line for line in lines if _FIELD.match(line) or line[:1].isspace()), *rest])


def _told(left_out: list[str]) -> str:
    only = f" ({few(left_out)})" if left_out else ""
    return f"no text is found in the body{only}; only the headers are read"


def _heads(message: Message, names: Iterable[str]) -> dict[str, str]:
    return {head: said for head in names if (said := _said(message, head))}


def _said(message: Message, head: str) -> str:
    """What a head says, with its encoded words; as it is written if these are wrong, or it is very long."""
    return _spelled(next((said for name, said in message.raw_items() if name.lower() == head.lower()), ""))


def _spelled(raw: Any) -> str:
    raw = str(raw)
    if not raw.isascii():
        with suppress(ValueError):
            raw = decode(raw.encode("utf-8", "surrogateescape"))[0]
    raw = " ".join(raw.split())
    return " ".join(_WORDS.sub(_decoded, raw).split()) if len(raw) <= _LONGEST_HEAD else raw


def _decoded(words: re.Match[str]) -> str:
    """Encoded words, which may share a character; as they are written if they are wrong."""
    with suppress(Exception):  # binascii.Error, LookupError, UnicodeError and others
        return str(make_header(decode_header(words[0])))
    return words[0]


def _blocks(part: Message, left_out: list[str]) -> Iterator[Block]:
    """The texts and web pages that a reader of mail shows one below the other; of alternatives, the text. What is not
    read joins `left_out`."""
    kind, name = part.get_content_type(), _name(part)
    if kind == "message/delivery-status":
        for each in _children(part):
            yield [f"{head}: {_spelled(said)}" for head, said in each.raw_items()]
    elif part.get_content_maintype() == "message" or name.lower().endswith(".eml"):
        yield from _forwarded(_inner(part), left_out)
    elif kind in _CHOICES and part.is_multipart():
        yield from _chosen(_children(part), kind, left_out)
    elif part.get_content_maintype() == "multipart":
        for each in _children(part) if part.is_multipart() else _divided(part):
            yield from _blocks(each, left_out)
    elif (part.get_content_maintype() == "text" and kind != "text/rtf") or name.lower().endswith(_TEXTS):
        try:
            lines = _lines(part, bool(name))
        except ValueError:
            left_out.append(name or kind)
            return
        if name:
            yield ""
            yield name
        yield from lines
    else:
        left_out.append(name or kind)


def _chosen(parts: list[Message], kind: str, left_out: list[str]) -> Iterator[Block]:
    """The first part that has text; of alternatives the plain one, if it has."""
    order = {"text/plain": 0, "text/html": 1} if kind == "multipart/alternative" else {}
    for part in sorted(parts, key=lambda each: order.get(each.get_content_type(), len(order))):
        others = list[str]()
        if _has_text(blocks := [*_blocks(part, others)]):
            left_out += others
            yield from blocks
            return
        left_out += others


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []


def _divided(part: Message) -> list[Message]:
    """The parts of a message that says that it has some, but not how they are divided, or wrongly: as the first line
    says that looks so. If none does, its text."""
    content = str(part.get_payload())
    if found := _BOUNDARY.search(content):
        boundary = found[1].rstrip().replace("\\", r"\\").replace('"', r"\"")
        head = f'Content-Type: {part.get_content_type()}; boundary="{boundary}"\n\n'
        divided = message_from_string(head + content, policy=_POLICY)
        if divided.is_multipart():
            return [divided]
    whole = Message(_POLICY)
    whole.set_payload(content)
    return [whole]


def _inner(part: Message) -> Message:
    """The message inside, also one that is encoded, as no message may be."""
    if not part.is_multipart():
        return message_from_bytes(_content(part), policy=_POLICY)
    [inner, *_] = _children(part)
    if not inner.keys() and "Content-Transfer-Encoding" in part:
        encoded = Message(_POLICY)
        encoded["Content-Transfer-Encoding"] = str(part["Content-Transfer-Encoding"])
        encoded.set_payload(inner.get_payload())
        return message_from_bytes(_content(encoded), policy=_POLICY)
    return inner


def _forwarded(message: Message, left_out: list[str]) -> Iterator[Block]:
    yield ""
    yield from (f"{head}: {said}" for head, said in _heads(message, _FORWARDED).items())
    yield ""
    yield from _blocks(message, left_out)


def _name(part: Message) -> str:
    """The file name of an attachment; "" for another part, or one without a name."""
    with suppress(Exception):  # UnicodeError, LookupError and others
        return _spelled(part.get_filename("")) if part.get_content_disposition() == "attachment" else ""
    return ""


def _has_text(blocks: list[Block]) -> bool:
    return any(line.strip() for block in blocks if not isinstance(block, str) for line in block)


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _lines(body: Message, is_file: bool) -> list[Block]:
    """A body's lines, those that are quoted equally often together, without the ">" of these. A line by itself that
    begins so may mean "more than". Raises ValueError for a file that is not text; of a body, what is not becomes �."""
    content = _content(body)
    with suppress(LookupError, UnicodeError):
        content = b"\xef\xbb\xbf" + content.decode(meant(str(body.get_content_charset("us-ascii")))).encode()
    if body.get_content_subtype() == "html":
        return [html.read(content).text.splitlines()]
    try:
        said = decode(content)[0]
    except ValueError:
        if is_file:
            raise
        said = content.decode(errors="replace")
    parts = [[*lines] for _, lines in groupby(said.splitlines(), _depth)]
    return [[line.lstrip("> ") for line in part] if _depth(part[0]) and len(part) > 1 else part for part in parts]


def _depth(line: str) -> int:
    """How many times a line is quoted."""
    return line.count(">", 0, len(line) - len(line.lstrip("> "))) if line.startswith(">") else 0
