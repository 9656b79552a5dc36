"""Hostile, huge and broken files: one line that names the file, and the others are read; parsers that hang or crash."""

import io
import json
import os
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest
from written import docx, lines, pdf, pptx, read_in, repacked, xlsx

from quoth import Corpus, Document
from quoth.corpus.documents import read_documents
from quoth.corpus.sync import sync
from quoth.errors import InputError, RecordError
from quoth_sources import worker as module
from quoth_sources.source_map import runs_of
from quoth_sources.worker import Worker, _Process

PDF = pdf(lines("Some words."))


def test_a_process_that_takes_too_long_or_ends_is_replaced() -> None:
    with (
        Worker(seconds=0.01) as worker,
        pytest.raises(ValueError, match="not read in the time"),
    ):
        read_in(worker, "pdf", PDF)
    with Worker() as worker:
        assert read_in(worker, "pdf", PDF).text == "Some words."
        assert worker._process is not None
        first = worker._process._process
        assert read_in(worker, "html", b"<p>One.").text == "One."
        assert worker._process._process is first
        first.kill()
        first.wait()
        with pytest.raises(ValueError, match="was ended from outside"):
            read_in(worker, "pdf", PDF)
        assert read_in(worker, "pdf", PDF).text == "Some words."
        last = worker._process
    with Worker() as worker:  # the next one has it
        assert read_in(worker, "text", b"One.").text == "One."
        assert worker._process is last
        worker.close()
    assert last._process.poll() is not None
    with Worker(memory=3 << 30) as worker:
        assert read_in(worker, "text", b"One.").text == "One."
        assert worker._process is not None
        other = worker._process._process
    assert other.poll() is None
    _Process.end_all()
    assert other.poll() is not None


@pytest.mark.parametrize(
    ("number", "says", "is_passing"),
    [
        (signal.SIGKILL, "was ended from outside", True),
        (signal.SIGTERM, "was ended from outside", True),
        (signal.SIGSEGV, "its parser crashed", False),
        (signal.SIGTRAP, "its parser crashed", False),
        (signal.SIGXCPU, "not read in the time", False),
    ],
)
def test_a_process_that_is_ended_from_outside_says_nothing_of_the_file(
    number: int, says: str, is_passing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of `sync` reads the file again only if a retry may succeed."""
    corpus = Corpus.create(tmp_path / "c.quoth")
    (folder := tmp_path / "files").mkdir()
    (folder / "a.txt").write_text("One.")
    began = _Process.__init__

    def ended(process: _Process, memory: int) -> None:
        began(process, memory)
        process._process.send_signal(number)

    _Process.end_all()
    with monkeypatch.context() as once:
        once.setattr(_Process, "__init__", ended)
        assert says in sync(corpus, folder).unreadable["a.txt"]
    assert (sync(corpus, folder).new == ["a.txt"]) is is_passing


def test_a_mailbox_whose_process_always_ends_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mbox").write_text("From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n\nHello.\n")
    monkeypatch.setattr(module, "_received", lambda stream: json.loads("{"))
    bad = list[RecordError]()
    assert [*read_documents(tmp_path / "a.mbox", skip_bad=True, on_bad=bad.append)] == []
    assert 1 < len(bad) < 50


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not limit memory")
def test_memory_is_limited() -> None:
    with Worker(memory=300 << 20) as worker:
        assert read_in(worker, "pdf", PDF).text == "Some words."
        with pytest.raises(ValueError, match=r"memory|crashed"):
            read_in(worker, "pdf", PDF + bytes(400 << 20))


def test_what_a_parser_prints_disturbs_nothing() -> None:
    with Worker() as worker, pytest.raises(ValueError, match="it cannot be read"):
        read_in(worker, "none", b"")


ODD = """
import os, subprocess, sys
from quoth_sources.source import Text
def read(content):
    os.write(1, b'{"sizes": [0, 0]}\\n')
    print("printed", flush=True)
    assert os.read(0, 9) == b""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    text = Text("line")
    text.add(f"{child.pid} {content.decode()}", 1)
    return text.source({})
"""


def test_what_a_parser_writes_reads_and_starts_has_not_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser that writes to its output, reads its input to the end, and leaves a process behind that keeps both."""
    (tmp_path / "odd.py").write_text(ODD)
    there = f"import quoth_sources\nquoth_sources.__path__.append({str(tmp_path)!r})\n"
    (tmp_path / "sitecustomize.py").write_text(there)
    monkeypatch.syspath_prepend(tmp_path)
    with Worker(seconds=30) as worker:
        child, said = read_in(worker, "odd", b"one").text.split()
        other, again = read_in(worker, "odd", b"two").text.split()
        assert (said, again) == ("one", "two")
        began = time.monotonic()
    try:
        assert time.monotonic() - began < 15
    finally:
        for each in (child, other):
            os.kill(int(each), signal.SIGKILL)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, RuntimeError])
def test_after_an_interruption_the_next_file_gets_its_own_reply(
    monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    def interrupted(*_: object) -> None:
        raise interrupt

    with Worker() as worker:
        assert read_in(worker, "html", b"<p>One.").text == "One."
        with monkeypatch.context() as once:
            once.setattr(module, "_received", interrupted)
            with pytest.raises(interrupt):
                read_in(worker, "html", b"<p>Two.")
        assert read_in(worker, "html", b"<p>Three.").text == "Three."


def test_what_is_no_reply_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker() as worker:
        assert read_in(worker, "html", b"<p>One.").text == "One."
        with monkeypatch.context() as once:
            once.setattr(module, "_received", lambda stream: json.loads("{"))
            with pytest.raises(ValueError, match="its parser crashed"):
                read_in(worker, "html", b"<p>Two.")
        assert read_in(worker, "html", b"<p>Three.").text == "Three."


ENTITIES = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + b"".join(
    b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)
)
SECRET = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
LOOP = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1000000>>endobj\n"
    b"trailer<</Root 1 0 R>>"
)


def with_part(content: bytes, name: str, part: bytes) -> bytes:
    return repacked(content, lambda each, old: part if each == name else old)


def lying() -> bytes:
    """An archive whose directory says that its parts are small."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", bytes(50 << 20))
    content = bytearray(stream.getvalue())
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (100).to_bytes(4, "little")
    return bytes(content)


W = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>'
END = b"</w:t></w:r></w:p></w:body></w:document>"
HOSTILE = {
    "bomb.docx": with_part(docx("x"), "word/document.xml", ENTITIES + b"]>" + W + b"&j;" + END),
    "lying.docx": lying(),
    "lying.xlsx": lying(),
    "entities.xlsx": with_part(xlsx(S=[["x"]]), "xl/worksheets/sheet1.xml", ENTITIES + b"]><x>&j;</x>"),
    "entities.pptx": with_part(pptx(("x", "y", "")), "ppt/slides/slide1.xml", ENTITIES + b"]><x>&j;</x>"),
    "loop.pdf": LOOP,
    "cut.pdf": PDF[: len(PDF) // 3],
    "empty.pdf": b"",
    "empty.docx": b"",
    "plain.pptx": b"plain text",
    "scanned.pdf": pdf(lambda canvas: canvas.rect(9, 9, 99, 99)),
    "deep.html": b"<b>" * 100_000 + b"x",
}


def test_each_is_one_line_that_names_it_and_the_others_are_read(tmp_path: Path) -> None:
    for name, content in {**HOSTILE, "good.pdf": PDF, "z.md": b"# Z"}.items():
        (tmp_path / name).write_bytes(content)
    errors: list[InputError] = []
    found = [each.id for each in read_documents(tmp_path, skip_bad=True, on_bad=errors.append)]
    assert found == ["good.pdf", "z.md"]
    assert [str(error).partition(": ")[0] for error in errors] == [str(tmp_path / name) for name in sorted(HOSTILE)]
    assert all("\n" not in str(error) and str(error).endswith("(--skip-bad)") for error in errors)
    with pytest.raises(InputError, match=r"scanned\.pdf: no text in it, so its pages may be scanned"):
        list(read_documents(tmp_path / "scanned.pdf"))


def test_no_other_file_is_read_or_written(tmp_path: Path) -> None:
    content = with_part(docx("x"), "word/document.xml", SECRET + W + b"root: &a;" + END)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.docx").write_bytes(content)
    (tmp_path / "inner" / "b.docx").write_bytes(repacked(docx("Words."), lambda _, part: part, **{"../out": b"out"}))
    found = {each.id: each.text for each in read_documents(tmp_path / "inner", skip_bad=True)}
    assert found["b.docx"] == "Words."
    assert found.get("a.docx", "root:") == "root:"
    assert [each.name for each in tmp_path.iterdir()] == ["inner"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("name", "part", "made"),
    [
        ("a.docx", "word/document.xml", docx("x")),
        ("a.xlsx", "xl/worksheets/sheet1.xml", xlsx(S=[["x"]])),
        ("a.pptx", "ppt/slides/slide1.xml", pptx(("x", "y", ""))),
    ],
)
def test_a_document_that_defines_entities_is_named(
    tmp_path: Path, name: str, part: str, made: bytes, encoding: str
) -> None:
    for entity in ('SYSTEM "file:///etc/passwd"', '"text that would be lost"'):
        xml = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY a {entity}>]><x>&a;</x>'
        (tmp_path / name).write_bytes(with_part(made, part, xml.encode(encoding)))
        with pytest.raises(InputError, match=rf"{name}: {part} in it defines entities, .*; save it again"):
            list(read_documents(tmp_path / name))


def test_every_format_gives_a_document_with_a_map(tmp_path: Path) -> None:
    files = {
        "a.pdf": PDF, "b.html": b"<title>B</title><p>Some words.", "c.docx": docx("Some words.", title="C"),
        "d.pptx": pptx(("D", "Some words.", "")), "e.xlsx": xlsx(S=[["Some words."]]), "f.md": b"**Some** words.",
        "g.rst": b"*Some* words.",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = [*read_documents(tmp_path)]
    assert [(each.id, each.title) for each in found] == [
        ("a.pdf", "a"), ("b.html", "B"), ("c.docx", "C"), ("d.pptx", "d"), ("e.xlsx", "e"), ("f.md", "f"),
        ("g.rst", "g"),
    ]  # fmt: skip
    for each in found:
        assert "Some words." in each.text
        kind, runs = runs_of(each.source_map)
        assert "".join("".join(each.text[start:end] for start, end, *_ in runs).split()).endswith("Somewords.")
        assert kind
    assert read_documents(tmp_path / "a.pdf", format="text")


def test_a_package_that_is_missing_is_one_line_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_bytes(PDF)
    (tmp_path / "b.md").write_bytes(b"# B")
    monkeypatch.setattr("quoth_sources.files.find_spec", lambda _: None)
    message = r'pdf: reading these takes packages that are not installed: pip install "quoth\[documents\]"'
    with pytest.raises(InputError, match=message):
        read_documents(tmp_path)
    errors: list[InputError] = []
    found = list(read_documents(tmp_path, skip_bad=True, on_bad=errors.append))
    assert [type(each) for each in found] == [Document]
    assert message.replace("\\", "") in str(errors[0])
    assert str(errors[0]).startswith(str(tmp_path / "a.pdf"))
