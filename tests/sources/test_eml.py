"""Mail: headers, text and dates by hand; what is encoded, a web page, or no message."""

from base64 import b64encode
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from time import process_time

import pytest

import quoth
from quoth.errors import FileWarning
from quoth_sources import eml
from quoth_sources.source import Source
from quoth_sources.source_map import locate


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
    log.set_content("no\n", disposition="attachment", filename="a.log")
    both = message(("plain", "Here is the plan.\n"), ("html", "<p>other</p>"))
    page = in_parts(message(("html", "<p>It is Monday.</p>")), file, kind="related")
    second, foot = message(("plain", "The budget is 500.\n")), message(("plain", "___\nlist"))
    made = in_parts(both, file, second, log, in_parts(page, foot))
    made["Subject"] = "Plan"
    source = eml.read(made.as_bytes())
    assert source.text == "Subject: Plan\n\nHere is the plan.\n\nThe budget is 500.\n\na.log\nno\n\n" + (
        "It is Monday.\n\n___\nlist"
    )
    assert [line for *_, line in source.runs] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("said", ['"', "a@[x", ".@", "[SMTP:x@example.org]"])
def test_addresses_that_are_written_wrongly_are_kept_as_they_are(said: str) -> None:
    assert eml.read(f"From: {said}\n\nHello.".encode()).text == f"From: {said}\n\nHello."
    named = f"To: =?utf-8?q?Zo=C3=AB?= <z@example.org>,\n {said}\n\nHello."
    assert "Zoë" in eml.read(named.encode()).text


def test_what_is_no_message_or_has_no_text() -> None:
    with pytest.raises(ValueError, match="is it a message"):
        eml.read(b"The key is under the mat.")
    assert eml.read(b"Subject: Empty\nDate: some day\n\n").text == "Date: some day\nSubject: Empty"


BODY = "The boiler is serviced on 9 May."


def body_of(kind: str, *lines: str, **heads: str) -> str:
    """The text that is read below the headers of a message with these lines."""
    head = "".join(f"{name.replace('_', '-')}: {said}\n" for name, said in heads.items())
    content = f"From: a@example.org\nMIME-Version: 1.0\nContent-Type: {kind}\n{head}\n" + "\n".join(lines)
    source = eml.read(content.encode())
    assert not source.notes
    return source.text.partition("\n\n")[2]


@pytest.mark.parametrize(
    ("declared", "lines"),
    [
        ("----=_Part_1_2.3", "------=_Part_1_2.3"),
        ("a=b", "--a=b"),
        ("x.1/y?z", "--x.1/y?z"),
        ('"----=_NextPart_000_0093"', "------=_NextPart_000_0093"),
        ('"a b"', "--a b"),
        ("never", "--another"),
        ("", "--some"),
    ],
)
@pytest.mark.parametrize("kind", ["alternative", "mixed", "report", "related"])
@pytest.mark.parametrize("part", ["Content-Type: text/plain; charset=utf-8", ""])
def test_a_body_behind_any_boundary(declared: str, lines: str, kind: str, part: str) -> None:
    given = [lines, *filter(None, [part]), "", BODY, f"{lines}--"]
    assert body_of(f"multipart/{kind}; boundary={declared}", *given) == BODY


def test_a_body_whose_parts_nothing_divides_is_shown_as_it_is() -> None:
    assert body_of("multipart/mixed", BODY) == BODY
    assert body_of("multipart/mixed; boundary=q", "--", BODY, "---", "") == f"--\n{BODY}\n---"


@pytest.mark.parametrize("end", [[], ["--q"], ["--q--", "epilogue"]])
def test_a_part_that_does_not_end(end: list[str]) -> None:
    assert body_of("multipart/mixed; boundary=q", "preamble", "--q", "", BODY, *end) == BODY


def test_messages_that_are_forwarded_are_read_under_their_own_headers() -> None:
    inner = ["From: c@example.org", "To: d@example.org", "Subject: =?utf-8?q?R=C3=B6of?=", "", "The roof is repaired."]
    deeper = [
        "From: e@example.org",
        "Content-Type: multipart/mixed; boundary=r",
        "",
        "--r",
        "Content-Type: message/rfc822",
    ]
    shown = "From: c@example.org\nSubject: Röof\n\nThe roof is repaired."
    start = ["--q", "", "See below."]
    forwarded = ["--q", "Content-Type: message/rfc822", ""]
    assert body_of("multipart/mixed; boundary=q", *start, *forwarded, *inner, "--q--") == f"See below.\n\n{shown}"
    twice = body_of("multipart/mixed; boundary=q", *forwarded, *deeper, "", *inner, "--r--", "--q--")
    assert twice == f"From: e@example.org\n\n{shown}"
    assert body_of("message/rfc822", *inner) == shown
    assert body_of("multipart/digest; boundary=q", "--q", "", *inner, "--q--") == shown
    encoded = b64encode("\n".join(inner).encode()).decode()
    for kind in ("message/rfc822", 'application/octet-stream\nContent-Disposition: attachment; filename="a.eml"'):
        head = [f"Content-Type: {kind}", "Content-Transfer-Encoding: base64", ""]
        assert body_of("multipart/mixed; boundary=q", "--q", *head, encoded, "--q--") == shown


def test_what_a_server_says_of_a_delivery() -> None:
    status = [
        "Content-Type: message/delivery-status",
        "",
        "Reporting-MTA: dns; a",
        "",
        "Action: failed",
        "Status: 5.1.1",
    ]
    head = ["Content-Type: text/rfc822-headers", "", "Subject: Lost"]
    found = body_of("multipart/report; boundary=q", "--q", "", "Not sent.", "--q", *status, "", "--q", *head, "--q--")
    assert found == "Not sent.\n\nReporting-MTA: dns; a\n\nAction: failed\nStatus: 5.1.1\n\nSubject: Lost"


def test_of_alternatives_the_first_that_has_text() -> None:
    page, empty, event = ("html", f"<p>{BODY}</p>"), ("plain", " \n"), ("calendar", "BEGIN:VCALENDAR")
    for parts, text in (
        ((empty, page), BODY),
        ((page, ("plain", "Plain.")), "Plain."),
        ((event, page), BODY),
        ((event,), "BEGIN:VCALENDAR"),
    ):
        made = in_parts(*(message(each) for each in parts), kind="alternative")
        made["Subject"] = "x"
        assert eml.read(made.as_bytes()).text == f"Subject: x\n\n{text}"
    both = in_parts(message(page), message(("plain", "And the rest.")))
    made = in_parts(message(empty), both, kind="alternative")
    made["Subject"] = "x"
    assert eml.read(made.as_bytes()).text == f"Subject: x\n\n{BODY}\n\nAnd the rest."


def test_text_that_is_attached_is_read_under_its_name() -> None:
    made = message(("plain", "See the list.\n"), Subject="List")
    made.add_attachment("Ann; 3\n", subtype="csv", filename="Größen.csv")
    made.add_attachment(b"\x89PNG\r\n\x1a\n\0\xff\xd8", maintype="text", subtype="plain", filename="not.txt")
    made.add_attachment("<p>One</p>", subtype="html", filename="p.html")
    for name, content in (("a.TXT", b"Notes"), ("b.csv", b"\x89PNG\r\n\x1a\n\0\xff\xd8"), ("c.bin", b"Code")):
        made.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    said = "Subject: List\n\nSee the list.\n\nGrößen.csv\nAnn; 3\n\np.html\nOne\n\na.TXT\nNotes"
    assert eml.read(made.as_bytes()).text == said


def test_a_body_without_text_says_so() -> None:
    made = EmailMessage()
    made["Subject"] = "Scan"
    made.set_content(b"%PDF", maintype="application", subtype="pdf", filename="a.pdf", disposition="attachment")
    source = eml.read(made.as_bytes())
    assert source.notes == ["no text is found in the body (a.pdf); only the headers are read"]
    assert source.text == "Subject: Scan"
    picture = message(("html", '<img src="cid:1">'), Subject="Scan")
    assert eml.read(picture.as_bytes()).notes == ["no text is found in the body; only the headers are read"]
    assert not eml.read(b"Subject: End of message\n\n \n").notes


def test_a_note_reaches_who_reads_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.eml").write_bytes(b"Subject: x\nContent-Type: image/png\n\nAAAA")
    with pytest.warns(FileWarning, match=r"^m.eml: no text is found in the body \(image/png\); only the headers"):
        assert [each.text for each in quoth.read_documents(tmp_path / "m.eml")] == ["Subject: x"]


def test_letters_that_no_encoding_explains_lose_nothing_else() -> None:
    content = b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\nThe key \xc3\x28 \xc3\xb6 \xe4\xb8\xad is here."
    assert eml.read(content).text == "Subject: x\n\nThe key �( ö 中 is here."
    assert eml.read("Subject: Café\n\n.".encode("cp1252")).text == "Subject: Café\n\n."


def test_headers_that_are_interrupted() -> None:
    lines = "Received: a\n b\nquite wrong\nFrom  : a@example.org\nSubject: x\n\nThe key: here"
    for written in (lines, lines.replace("\n", "\r\n")):
        assert eml.read(written.encode()).text == "From: a@example.org\nSubject: x\n\nThe key: here"


def test_many_parts_receivers_and_levels_take_time_in_proportion() -> None:
    def seconds(content: str) -> float:
        began = process_time()
        with suppress(RecursionError):
            eml.read(content.encode())
        return process_time() - began

    shapes = {
        "parts": lambda n: "From: a\nContent-Type: multipart/mixed; boundary=q\n\n" + "--q\n\nhi\n" * n,
        "receivers": lambda n: "From: a\nTo: " + "=?utf-8?q?Z=C3=AB?= <a@b.c>, " * n + "\n\nhi",
        "levels": lambda n: "From: a\nContent-Type: message/rfc822\n\n" * n,
        "blank": lambda n: "From: a\n" + "\n" * 20 * n,
        "unknown": lambda n: "From: a\nContent-Type: multipart/mixed\n\n" + "--q\n\n\n--r\n" * n,
    }
    for name, shape in shapes.items():
        assert seconds(shape(20_000)) < 0.5 + 12 * seconds(shape(5000)), name


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


def test_a_body_that_cannot_be_read_and_has_no_name_is_named_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(content: bytes) -> Source:
        raise ValueError("too deep")

    monkeypatch.setattr("quoth_sources.html.read", refusing)
    found = eml.read(b"Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n<p>Words.")
    assert found.notes == ["no text is found in the body (text/html); only the headers are read"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("=?utf-8?q?Z=C3=AB?= is here", "Zë is here"),
        ("Café =?utf-8?q?Z=C3=AB?=", "Café Zë"),
        ("漢 =?utf-8?q?Z=C3=AB?= 漢", "漢 Zë 漢"),
        ("=?utf-8?b?w6k=?= =?utf-8?q?=C3=AB?=", "éë"),
        ("=?utf-8?b?w6k=?=\n =?latin-1?q?=EB?=", "éë"),
        ("=?utf-8?q?=C3?= =?utf-8?q?=AB?=", "ë"),  # a character in two words
        ("=?none?q?a?= and =?utf-8?q?=C3=AB?=", "=?none?q?a?= and ë"),
        ("=?utf-8?q?=C3=AB?= =?utf-8?q?never ends", "ë =?utf-8?q?never ends"),
        ("=?utf-8?q?never ends =?utf-8?q?=C3=AB?=", "=?utf-8?q?never ends ë"),
        ("=?utf-8?b?YQ==?= =?utf-8?B?YQ==?=", "aa"),
        ("a?=b", "a?=b"),
        ("a=?b", "a=?b"),
        ("=?", "=?"),
    ],
)
def test_encoded_words_of_a_header(written: str, said: str) -> None:
    assert eml.read(f"Subject: {written}\n\nWords.".encode()).metadata["title"] == said
