"""Mail: who wrote to whom, when and about what, then the text of the message, each line with its number and without the
">" before what it quotes.

Knows headers and bodies. Does not know mailboxes. Attachments are not read.
"""

from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import default
from itertools import chain, groupby

from quoth.sources import html
from quoth.sources.files import decode, meant
from quoth.sources.source import Source, Text

_HEADS = ("From", "To", "Cc", "Date", "Subject")


def read(content: bytes) -> Source:
    """The text of a message. Raises ValueError if it has no headers, or is in no encoding that is recognised."""
    message = message_from_bytes(content, policy=default)
    heads = {head: said for head in _HEADS if (said := _said(message, head))}
    if not heads:
        raise ValueError(f"none of {', '.join(_HEADS)} at its head; is it a message?")
    text = Text("line")
    for head, said in heads.items():
        text.add(f"{head}: {said}")
        text.gap("\n")
    text.gap()
    number = 1
    for lines in chain.from_iterable(map(_lines, _bodies(message))):
        text.code(lines, number)
        number += len(lines)
    sent = message["Date"] and message["Date"].datetime
    date = sent.date().isoformat() if sent else ""
    return text.source({"title": heads.get("Subject"), "author": heads.get("From"), "date": date})


def _said(message: EmailMessage, head: str) -> str:
    """What a head says; as it is written, if Python's parser loses an address that is written wrongly, or fails."""
    raw = next((str(said) for name, said in message.raw_items() if name.lower() == head.lower()), "")
    with suppress(Exception):  # IndexError, AttributeError, TypeError and others
        said = str(message[head] or "")
        if said.count("@") >= raw.count("@"):
            return " ".join(said.split())
    return str(default.header_factory("Subject", " ".join(raw.split())))


def _bodies(part: MIMEPart) -> Iterator[MIMEPart]:
    """The texts and web pages that a reader of mail shows one below the other; of alternatives, the text."""
    if part.get_content_type() in ("multipart/alternative", "multipart/related") or not part.is_multipart():
        if body := part.get_body(("plain", "html")):
            yield body
    elif part.get_content_maintype() == "multipart" and not part.is_attachment():
        for each in part.iter_parts():
            yield from _bodies(each)


def _lines(body: MIMEPart) -> list[list[str]]:
    """A body's lines, those that are quoted equally often together, without the ">" of these. A line by itself that
    begins so may mean "more than"."""
    content = body.get_payload(decode=True)
    assert isinstance(content, bytes)
    with suppress(LookupError, UnicodeError):
        content = b"\xef\xbb\xbf" + content.decode(meant(body.get_content_charset("us-ascii"))).encode()
    if body.get_content_subtype() == "html":
        return [html.read(content).text.splitlines()]
    parts = [[*lines] for _, lines in groupby(decode(content)[0].splitlines(), _depth)]
    return [[line.lstrip("> ") for line in part] if _depth(part[0]) and len(part) > 1 else part for part in parts]


def _depth(line: str) -> int:
    """How many times a line is quoted."""
    return line.count(">", 0, len(line) - len(line.lstrip("> "))) if line.startswith(">") else 0
