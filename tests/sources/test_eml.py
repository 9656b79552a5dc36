"""Mail: headers, text and dates by hand; what is encoded, a web page, or no message."""

from email.message import EmailMessage
from pathlib import Path

import pytest

import quoth
from quoth.source_map import locate
from quoth.sources import eml


def message(*parts: tuple[str, str], **heads: str) -> EmailMessage:
    made = EmailMessage()
    for head, said in heads.items():
        made[head] = said
    for number, (kind, text) in enumerate(parts):
        (made.add_alternative if number else made.set_content)(text, subtype=kind, charset="utf-8", cte="base64")
    return made


HEADS = {
    "Received": "by a machine",
    "From": "Zoë Ahlström <zoe@example.org>",
    "To": "club@example.org",
    "Date": "Fri, 03 May 2024 23:30:00 -0500",
    "Subject": "The key of the café",
}
HEAD = (
    "From: Zoë Ahlström <zoe@example.org>\nTo: club@example.org\nDate: Fri, 03 May 2024 23:30:00 -0500\n"
    "Subject: The key of the café"
)


def test_a_message_by_hand() -> None:
    body = (
        "Dear all,\n\nthe key is at Müller's.\n-- \nZoë\n>> Where is\n>>  it > 1?\n> \n>I ask.\n> 9\nNo.\n> 18: free\n"
    )
    made = message(("plain", body), ("html", "<p>other</p>"), **HEADS)
    made.add_attachment(b"\0\1", maintype="application", subtype="zip", filename="a.zip")
    source = eml.read(made.as_bytes())
    quoted = "Where is\nit > 1?\n\nI ask.\n9\n\nNo.\n\n> 18: free"
    assert source.text == f"{HEAD}\n\nDear all,\n\nthe key is at Müller's.\n--\nZoë\n\n{quoted}"
    assert source.metadata == {"title": HEADS["Subject"], "author": HEADS["From"], "date": "2024-05-03"}
    assert [(source.text[start:end], line) for start, end, line in source.runs] == [
        ("Dear all,", 1),
        ("the key is at Müller's.", 3),
        ("--", 4),
        ("Zoë", 5),
        ("Where is", 6),
        ("it > 1?", 7),
        ("I ask.", 9),
        ("9", 10),
        ("No.", 11),
        ("> 18: free", 12),
    ]


def test_a_web_page_is_read_where_there_is_no_plain_text() -> None:
    fees = "<h1>Fees</h1><p>They are <b>30 €</b>.</p><p>&gt; 9: 2<br>&gt; 8: 1</p><script>no()</script>"
    page = message(("html", f"<body>{fees}</body>"), Subject="Fees")
    assert eml.read(page.as_bytes()).text == "Subject: Fees\n\nFees\n\nThey are 30 €.\n\n> 9: 2\n> 8: 1"


@pytest.mark.parametrize("charset", ["us-ascii", "x-unknown", "iso-8859-1"])
def test_letters_of_any_charset(charset: str) -> None:
    head = f"Subject: Note\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    letters = "Der „Schlüssel“ liegt unter der Fußmatte am Eingang, für Gäste und Mitglieder."
    encoding = "cp1252" if charset == "iso-8859-1" else "utf-8"
    assert eml.read((head + letters).encode(encoding)).text == f"Subject: Note\n\n{letters}"


def in_parts(*parts: EmailMessage, kind: str = "mixed") -> EmailMessage:
    made = EmailMessage()
    made["Content-Type"] = f"multipart/{kind}"
    for part in parts:
        made.attach(part)
    return made


def test_all_parts_that_a_reader_sees_in_their_order() -> None:
    file, log = EmailMessage(), EmailMessage()
    file.set_content(b"%PDF", maintype="application", subtype="pdf", disposition="inline")
    log.set_content("no\n", disposition="attachment")
    both = message(("plain", "Here is the plan.\n"), ("html", "<p>other</p>"))
    page = in_parts(message(("html", "<p>It is Monday.</p>")), file, kind="related")
    second, foot = message(("plain", "The budget is 500.\n")), message(("plain", "___\nlist"))
    made = in_parts(both, file, second, log, in_parts(page, foot))
    made["Subject"] = "Plan"
    source = eml.read(made.as_bytes())
    assert source.text == "Subject: Plan\n\nHere is the plan.\n\nThe budget is 500.\n\nIt is Monday.\n\n___\nlist"
    assert [line for *_, line in source.runs] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("said", ['"', "a@[x", ".@", "[SMTP:x@example.org]"])
def test_addresses_that_are_written_wrongly_are_kept_as_they_are(said: str) -> None:
    assert eml.read(f"From: {said}\n\nHello.".encode()).text == f"From: {said}\n\nHello."
    named = f"To: =?utf-8?q?Zo=C3=AB?= <z@example.org>,\n {said}\n\nHello."
    assert "Zoë" in eml.read(named.encode()).text


def test_what_is_no_message_or_has_no_text() -> None:
    with pytest.raises(ValueError, match="is it a message"):
        eml.read(b"The key is under the mat.")
    assert eml.read(b"Subject: Empty\nDate: some day\n\n").text == "Date: some day\nSubject: Empty"


def test_a_message_is_indexed_and_answers_name_its_line(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "m.eml").write_bytes(
        message(("plain", "Hello.\n\nThe key is under the mat.\n"), **HEADS).as_bytes()
    )
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add(quoth.read_documents(tmp_path / "d"))
    document = corpus.document("m.eml")
    assert (document.title, document.metadata["date"]) == ("The key of the café", "2024-05-03")
    start = document.text.index("under")
    assert str(locate(document.source_map, start, start + 5)) == "line 3"
