"""Messages of Outlook, written by hand as its format has them: properties, attachments, messages inside."""

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from struct import pack

import pytest

import quoth
from quoth_sources import msg
from quoth_sources.source_map import locate

Folder = dict[str, "bytes | Folder"]
SECTOR, END, FREE = 512, 0xFFFFFFFE, 0xFFFFFFFF


def ole(root: Folder) -> bytes:
    """A file of these streams and folders. Streams are filled up to the size from which they need no second table."""
    entries, data = list[list[object]](), list[bytes]()

    def add(name: str, content: "bytes | Folder") -> int:
        number = len(entries)
        entry: list[object] = [name, 2 if isinstance(content, bytes) else 1, FREE, FREE, b""]
        entries.append(entry)
        if isinstance(content, bytes):
            entry[4] = content.ljust(max(4096, -(-len(content) // SECTOR) * SECTOR), b"\0")
            return number
        below = [add(*each) for each in sorted(content.items(), key=lambda each: (len(each[0]), each[0].upper()))]
        entry[3] = below[0] if below else FREE
        for one, other in pairwise(below):
            entries[one][2] = other
        return number

    add("Root Entry", root)
    entries[0][1] = 5
    sectors, directory = list[int](), b""
    for name, kind, right, child, content in entries:
        assert isinstance(name, str)
        assert isinstance(content, bytes)
        first, count = len(sectors), len(content) // SECTOR
        sectors += [*range(first + 1, first + count), END] if count else []
        data.append(content)
        wide = name.encode("utf-16-le") + b"\0\0"
        place = first if count else END if kind == 5 else 0
        directory += wide.ljust(64, b"\0") + pack("<HBBIII", len(wide), kind, 1, FREE, right, child)
        directory += bytes(16 + 4 + 16) + pack("<IQ", place, len(content))
    directory += (b"\0" * 68 + b"\xff" * 12 + b"\0" * 48) * (-len(directory) // 128 % 4)
    begin, count = len(sectors), len(directory) // SECTOR
    sectors += [*range(begin + 1, begin + count), END]
    tables = next(n for n in range(1, 110) if n * 128 >= len(sectors) + n)
    fat = len(sectors)
    sectors += [0xFFFFFFFD] * tables
    sectors += [FREE] * (tables * 128 - len(sectors))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    head += pack("<IIIIIIIII", 0, tables, begin, 0, 4096, END, 0, END, 0)
    head += pack("<109I", *range(fat, fat + tables), *[FREE] * (109 - tables))
    return head + b"".join(data) + directory + pack(f"<{len(sectors)}I", *sectors)


def properties(before: int, **numbers: int) -> bytes:
    rows = (pack("<HHIQ", 3, int(name[1:], 16), 6, value) for name, value in numbers.items())
    return bytes(before) + b"".join(rows)


def ticks(moment: datetime) -> int:
    return int((moment - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000


def wide(**texts: str) -> Folder:
    return {f"__substg1.0_{name[1:]}001F": said.encode("utf-16-le") for name, said in texts.items()}


SENT = ticks(datetime(2025, 3, 3, 10, 0, tzinfo=UTC))
BODY = "The boiler is\r\nserviced on 9 May.\r\n\r\nZoë\r\n"
OUTER = wide(x0C1A="Zoë Ahlström", x5D01="zoe@example.org", x0E04="Club", x0037="Boiler", x1000=BODY)
HEAD = "From: Zoë Ahlström <zoe@example.org>\nTo: Club\nDate: Mon, 03 Mar 2025 10:00:00 +0000\nSubject: Boiler"


def test_a_message_by_hand() -> None:
    source = msg.read(ole({"__properties_version1.0": properties(32, x0039=SENT), **OUTER}))
    assert source.text == f"{HEAD}\n\nThe boiler is\nserviced on 9 May.\n\nZoë"
    facts = {"title": "Boiler", "author": "Zoë Ahlström <zoe@example.org>", "date": "2025-03-03"}
    assert (source.metadata, source.notes) == (facts, [])
    assert [line for *_, line in source.runs] == [1, 2, 4]


def test_attachments_and_messages_inside() -> None:
    inner: Folder = {
        **wide(x0C1A="Bo", x0037="Roof", x1000="It is repaired."),
        "__properties_version1.0": properties(24),
    }
    notes: Folder = {
        **wide(x3707="Größen.txt", x370E="text/plain"),
        "__substg1.0_37010102": "Länge: 3".encode().ljust(4096),
    }
    picture: Folder = {**wide(x3704="a.png", x370E="image/png"), "__substg1.0_37010102": b"\x89PNG"}
    parts: Folder = {
        "__attach_version1.0_#00000000": {"__substg1.0_3701000D": inner, "__properties_version1.0": properties(8)},
        "__attach_version1.0_#00000001": notes,
        "__attach_version1.0_#00000002": picture,
    }
    text = msg.read(ole({**OUTER, **parts})).text.partition("Zoë\n\n")[2]
    assert text == "From: Bo\nSubject: Roof\n\nIt is repaired.\n\nGrößen.txt\nLänge: 3"


def test_letters_of_a_code_page_and_a_web_page() -> None:
    said = {"__substg1.0_0037001E": "Котёл".encode("cp1251"), "__substg1.0_10130102": "<p>Ärger</p>".encode()}
    page = properties(32, x3FFD=1251)
    assert msg.read(ole({**said, "__properties_version1.0": page})).text == "Subject: Котёл\n\nÄrger"
    for number in (0, 99_999):  # none, and none that is known
        title = {
            "__substg1.0_0037001E": "Café".encode("cp1252"),
            "__properties_version1.0": properties(32, x3FFD=number),
        }
        assert msg.read(ole(dict(title))).text == "Subject: Café"


def test_a_message_without_text_and_what_is_no_message() -> None:
    source = msg.read(ole(wide(x0037="Scan")))
    assert source.notes == ["no text is found in the body; only the headers are read"]
    whole = ole(OUTER)
    for content in (b"", b"From: a", whole[:8] + bytes(2000), whole[:3000], whole[:700] + bytes(len(whole))):
        with pytest.raises(ValueError, match=r"is it a message|the file is damaged"):
            msg.read(content)


def test_a_message_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "m.msg").write_bytes(ole(OUTER))
    (tmp_path / "broken.msg").write_bytes(ole(OUTER)[:3000])
    bad = list[Exception]()
    [document] = quoth.read_documents(tmp_path, skip_bad=True, on_bad=bad.append)
    assert (document.id, document.title, len(bad)) == ("m.msg", "Boiler", 1)
    place = locate(document.source_map, document.text.index("serviced"), len(document.text))
    assert str(place) == "line 2"
