"""JSON files and mailboxes: which documents they are, by hand, and what is wrong with others."""

import json
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from quoth import Corpus, Document, read_documents
from quoth.corpus.sync import sync
from quoth.errors import FileWarning, InputError
from quoth_sources import limits
from quoth_sources.source_map import locate


def read(folder: Path, value: Any, name: str = "t.json") -> list[Document]:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return list(read_documents(folder / name))


def test_an_array_of_records_is_read_as_jsonl_is(tmp_path: Path) -> None:
    records = [{"id": "a", "title": "A", "text": "One.", "date": "2024"}, {"id": "b", "text": "Two."}]
    for content in (records, {"data": records}, json.dumps({"data": records}, indent=1), [records[0]]):
        found = read(tmp_path, content)
        assert found[0] == Document("a", "A", "One.", {"date": "2024"})
        assert [each.id for each in found[1:]] in ([], ["b"])
    lines = "\n".join(map(json.dumps, records)) + "\n"
    assert read(tmp_path, lines) == read(tmp_path, records)
    assert read(tmp_path, lines, "t.jsonlines") == read(tmp_path, records)
    assert read(tmp_path, records[0]) == [Document("a", "A", "One.", {"date": "2024"})]
    assert read(tmp_path, []) == []


def test_records_without_text_are_their_values(tmp_path: Path) -> None:
    rows = [
        {"who": "Ann", "at": {"town": "Kiel", "no": 7}, "tags": ["x", 2], "seen": None, "open": True},
        {"who": "Bob", "kids": [{"name": "Cy"}, {"name": "Di"}]},
    ]
    with pytest.warns(
        FileWarning, match=r"^t.json is read as the records of 'rows', without count, next; it has records"
    ):
        first, second = read(tmp_path, {"count": 2, "rows": rows, "next": None})
    assert (first.id, first.title) == ("t-1", "t")
    assert first.text == "who: Ann | at.town: Kiel | at.no: 7 | tags: x, 2 | open: true"
    assert first.metadata == rows[0]
    assert second.text == "who: Bob | kids.name: Cy | kids.name: Di"


@pytest.mark.parametrize("value", [{"a": {"b": 1}, "c": [{"d": 2}]}, {"a": []}, [1, {"a": 2}], "x", 3, {"a": [1, 2]}])
def test_other_values_are_one_document(tmp_path: Path, value: Any) -> None:
    [document] = read(tmp_path, json.dumps(value))
    assert (document.id, document.title, json.loads(document.text)) == ("t.json", "t", value)
    spread = json.dumps(value, indent=3) + "\n"
    [document] = read(tmp_path, spread)
    if spread.count("\n") > 1:
        assert document.text == spread
        place = locate(document.source_map, len(spread) - 2, len(spread) - 1)
        assert place is not None
        assert place.line == spread.count("\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[\n1 2]", r"t.json: not JSON \(Expecting ',' delimiter at line 2, character 3\)"),
        (b'[\n{"a": 1},\n]', r"t.json: not JSON .*at line 3, character 1"),
        (b"\xff\xff", "not JSON that can be read"),
        (b"[" * 100_000, "not JSON that can be read"),
        (b"", "not JSON"),
    ],
)
def test_what_is_no_json(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_documents(tmp_path / "t.json"))


def test_encodings_of_json(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32-le"):
        (tmp_path / "t.json").write_bytes('{"text": "Zoë"}'.encode(encoding))
        assert [each.text for each in read_documents(tmp_path / "t.json")] == ["Zoë"]


def message(subject: str, text: str) -> str:
    made = EmailMessage()
    made["From"], made["Subject"] = "a@example.org", subject
    made["Date"] = "Mon, 3 Mar 2025 10:00:00 +0000"
    made.set_content(text)
    return made.as_string()


BEGIN = "From a@example.org Mon Mar  3 10:00:00 2025\n"


def box(*messages: str) -> str:
    return "".join(f"{BEGIN}{each}\n" for each in messages)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mailbox_is_its_messages(tmp_path: Path, end: str) -> None:
    first = message("Boiler", "It is serviced.\n\n>From the yard\nFrom here on\n\nFrom all of us\n")
    content = box(first, message("Roof", "It is repaired."), "").replace("\n", end)
    (tmp_path / "in.mbox").write_bytes(content.encode())
    bad = list[InputError]()
    one, two = read_documents(tmp_path / "in.mbox", skip_bad=True, on_bad=bad.append)
    lines = content.split(end)
    starts = [number for number, line in enumerate(lines, 1) if line == BEGIN.strip()]
    assert [one.id, two.id] == [f"in-{line}" for line in starts[:2]]
    assert (one.title, one.metadata["date"]) == ("Boiler", "2025-03-03")
    assert one.text.endswith("Subject: Boiler\n\nIt is serviced.\n\nFrom the yard\nFrom here on\n\nFrom all of us")
    assert two.text.endswith("It is repaired.")
    assert [str(each).split(": ")[0] for each in bad] == [f"{tmp_path / 'in.mbox'}:{starts[2]}"]


def test_a_mailbox_that_is_none_and_a_message_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.mbox").write_text("Hello.")
    with pytest.raises(
        InputError, match=r"in.mbox: no line 'From … 10:00:00 2024' before its text \(line 1\); is it a mailbox"
    ):
        list(read_documents(tmp_path / "in.mbox"))
    monkeypatch.setattr(limits, "MESSAGE_BYTES", 300)
    (tmp_path / "in.mbox").write_text(box(message("a", "x" * 900), message("b", "short")))
    bad = list[InputError]()
    [found] = read_documents(tmp_path / "in.mbox", skip_bad=True, on_bad=bad.append)
    assert found.title == "b"
    assert "a message of more than 300 bytes; save it as a file of its own" in str(bad[0])
    (tmp_path / "in.mbox").write_text("\n\n")
    assert list(read_documents(tmp_path / "in.mbox")) == []


def test_without_the_parser_of_mail_a_mailbox_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.mbox").write_text(box(message("a", "Words.")))
    with monkeypatch.context() as absent:
        absent.setattr("quoth_sources.files.find_spec", lambda name: None)
        with pytest.raises(InputError, match=r"^mbox: reading these takes packages that are not installed"):
            read_documents(tmp_path / "in.mbox")
        with pytest.raises(InputError, match=r"^mbox: reading these takes packages"):
            sync(Corpus.create(tmp_path / "c.quoth"), tmp_path)
    assert sync(Corpus.open(tmp_path / "c.quoth"), tmp_path).new == ["in.mbox"]
