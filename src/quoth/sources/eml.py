"""Mail: who wrote to whom, when and about what, then the text of the message, each line with its number and without the
">" before what it quotes.

Knows headers and bodies. Does not know mailboxes. Attachments are not read.
"""

import re
from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from quoth.sources import html
from quoth.sources.files import decode
from quoth.sources.source import Source, Text

_HEADS = ("From", "To", "Cc", "Date", "Subject")
_QUOTED = re.compile(r"^(?:> ?)+")


def read(content: bytes, name: str) -> Source:
    """The text of a message. Raises ValueError if it has no headers, or is in no encoding that is recognised."""
    message = message_from_bytes(content, policy=default)
    heads = {head: " ".join(str(message[head]).split()) for head in _HEADS if message[head]}
    if not heads:
        raise ValueError(f"none of {', '.join(_HEADS)} at its head; is it a message?")
    text = Text("line")
    for head, said in heads.items():
        text.add(f"{head}: {said}")
        text.gap("\n")
    text.gap()
    text.code([_QUOTED.sub("", line) for line in _body(message).splitlines()], 1)
    sent = message["Date"] and message["Date"].datetime
    date = sent.date().isoformat() if sent else ""
    return text.source({"title": heads.get("Subject"), "author": heads.get("From"), "date": date})


def _body(message: EmailMessage) -> str:
    """What there is as text, or else as a web page."""
    body = message.get_body(("plain", "html"))
    if body is None:
        return ""
    content = body.get_payload(decode=True)
    assert isinstance(content, bytes)
    with suppress(LookupError, UnicodeError):
        content = b"\xef\xbb\xbf" + content.decode(body.get_content_charset("us-ascii")).encode()
    if body.get_content_subtype() == "html":
        return html.read(content, "").text
    return decode(content)[0]
