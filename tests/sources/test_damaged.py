"""Damaged files of every format: what can be read is read, and no message has a word of Python in it."""

import gzip
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_epub import written as epub
from test_numbering import kind, level, num, p, word
from test_opendocument import written as odf
from written import docx, lines, pdf, pptx, read_in, repacked, xlsx

from quoth.corpus.documents import read_documents
from quoth.errors import FileWarning, InputError
from quoth_sources.office import described, root_of
from quoth_sources.worker import Worker

PYTHON = re.compile(r"Error\b|Exception|Traceback|0x[0-9a-f]|[<>{}]|object at|\bNone\b|list index|subscriptable|"
                    r"invalid literal|codec|index out|unpack\b|has no attribute|Errno|xmlns|\bb'")  # fmt: skip
"""What no sentence for people has."""
TABLE = [("Country", "Capital"), ("Kenya", "Nairobi"), ("Uganda", "Kampala")]
CELLS = "".join(f"<table:table-cell><text:p>{each}</text:p></table:table-cell>" for each in ("Kenya", "Nairobi"))
SHEET = f"<table:table table:name='T'><table:table-row>{CELLS}</table:table-row></table:table>"
ITEM = "<text:list><text:list-item><text:p>a</text:p></text:list-item></text:list>"
PAGE = "<drawing:page><drawing:frame><text:p>Kenya</text:p></drawing:frame></drawing:page>"
FILES = {
    "pdf": pdf(lines("Of Kenya.")),
    "html": b"<title>Kenya</title><ol start=3><li>Of <b>Kenya<table><tr><td colspan=2>a<td>b</table>",
    "eml": b"From: a@b.cd\nDate: Fri, 9 May 2025 10:00:00 +0000\nSubject: Kenya\n\nOf Kenya.\n",
    "docx": docx(("Heading 1", "Report"), "Kenya", ("List Number", "one"), TABLE, title="Of Kenya"),
    "pptx": pptx(("Kenya", "Nairobi", "notes"), ("Uganda", "Kampala", ""), table=TABLE),
    "xlsx": xlsx(Countries=TABLE, Other=[("a", 1), ("b", 2.5)]),
    "odt": odf(f"<text:h text:outline-level='2'>Kenya</text:h>{ITEM}{SHEET}"),
    "ods": odf(SHEET, "spreadsheet"),
    "odp": odf(PAGE, "presentation"),
    "epub": epub(),
    "numbered.docx": word(p("one", "1") + p("two", "1", 1), kind(1, level(0, "%1."), level(1, "%1.%2")) + num(1, 1)),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as each:
        yield each


def said_of(worker: Worker, format: str, content: bytes) -> str:
    """What is told of a file, by error or by note."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            read_in(worker, format, content)
        except ValueError as error:
            return str(error)
    return " ".join(str(each.message) for each in told)


CHANGES = [
    (rb'="[0-9]+"', b'="x"'), (rb'="[0-9]+"', b'="-99999999999"'), (rb"='[0-9]+'", b"='x'"), (rb"</[^>]+>", b""),
    (rb"<[a-z]+:?[A-Za-z]+ ?/?>", b""), (rb' \w+="[^"]*"', b""), (rb"xmlns", b"ns"), (rb'="[^"]*"', b'="rId99"'),
    (rb">[^<]+<", b">\x00\xff<"), (rb"$", b"<open>"), (rb".{40}\Z", b""), (rb"(?s)^.*$", b""),
    (rb"(?s)^.*$", b"\x89PNG nonsense"), (rb"<(?=\w)", b"<x:"),
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_no_message_has_a_word_of_python(worker: Worker, name: str, data: st.DataObject) -> None:
    content, format = FILES[name], name.rpartition(".")[2]
    if zipfile.is_zipfile(io.BytesIO(content)):
        part = data.draw(st.sampled_from(sorted(zipfile.ZipFile(io.BytesIO(content)).namelist())))
        pattern, instead = data.draw(st.sampled_from(CHANGES))
        count, skipped = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 20))

        def change(each: str, old: bytes) -> bytes:
            if each != part:
                return old
            at = next((m.start() for n, m in enumerate(re.finditer(pattern, old, re.S)) if n == skipped), 0)
            return old[:at] + re.sub(pattern, lambda _: instead, old[at:], count=count)

        content = repacked(content, change)
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + data.draw(st.binary(max_size=8)) + content[at + data.draw(st.integers(0, 8)) :]
    assert not PYTHON.search(said := said_of(worker, format, content)), said


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.binary(max_size=60), st.floats(0, 1))
def test_nor_has_one_of_a_file_that_is_cut_or_another(worker: Worker, name: str, other: bytes, share: float) -> None:
    format, content = name.rpartition(".")[2], FILES[name]
    for bad in (other, content[: int(share * len(content))], content[:4] + other):
        assert not PYTHON.search(said := said_of(worker, format, bad)), said


@pytest.mark.parametrize(
    "suffix", ["jsonl", "csv", "tsv", "parquet", "txt", "md", "rst", "1", "csv.gz", "txt.xz", "md.bz2"]
)
def test_nor_has_one_of_the_other_readers(tmp_path: Path, suffix: str) -> None:
    packed = gzip.compress(b"text\nKenya\n" * 99)
    for number, content in enumerate(
        (
            b"\x00\xff\xfe" * 40,
            b'{"text": 1}\n{"',
            packed[:40],
            packed[:-5],
            b"PAR1" + bytes(40) + b"PAR1",
            b'a,text\n"b',
        )
    ):
        file = tmp_path / f"{number}.{suffix}"
        file.write_bytes(content)
        errors: list[InputError | FileWarning] = []
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                list(read_documents(file, skip_bad=True, on_bad=errors.append))
            except InputError as error:
                errors.append(error)
        for said in [*map(str, errors), *(str(each.message) for each in told)]:
            assert not PYTHON.search(said.replace(str(tmp_path), "")), said


def test_what_can_be_read_of_a_word_document_is_read_and_a_warning_names_the_rest(tmp_path: Path) -> None:
    content = docx("It opened in 1998.", TABLE)
    whole = "It opened in 1998.\n\nCountry: Kenya | Capital: Nairobi\nCountry: Uganda | Capital: Kampala"
    cases = {
        "styles": ("word/styles.xml", rb"(?s)^.*$", b"nonsense", whole),
        "cut": ("word/styles.xml", rb"(?s).{400}$", b"", whole),
        "open": ("word/document.xml", rb"</w:t>", b"", whole),
        "end": ("word/document.xml", rb"(?s)<w:tbl>.*", b"<w:tb", "It opened in 1998."),
        "facts": ("docProps/core.xml", rb"</dc:creator>", b"", whole),
    }
    for name, (part, pattern, instead, text) in cases.items():
        bad = repacked(
            content,
            lambda each, old, case=(part, pattern, instead): (
                re.sub(*case[1:], old, count=1) if each == case[0] else old
            ),
        )
        (file := tmp_path / f"{name}.docx").write_bytes(bad)
        with pytest.warns(FileWarning, match=f"^{name}.docx: {part} in it is damaged, ") as told:
            [document] = read_documents(file)
        assert (document.text, len(told)) == (text, 1)
    (file := tmp_path / "all.docx").write_bytes(repacked(content, lambda _, old: old[:50]))
    with pytest.raises(
        InputError, match=r"all\.docx: it has no text: it is not a Word document, or is damaged; fix it"
    ):
        list(read_documents(file))


@pytest.mark.parametrize("format", ["docx", "odt", "epub", "pptx", "xlsx"])
def test_a_part_with_bytes_that_changed_is_named(format: str) -> None:
    """A part that is unpacked wrongly is left out; that which has the text cannot be."""
    content = bytearray(FILES[format])
    parts = {"docx": "word/styles.xml", "odt": "meta.xml", "epub": "OPS/text/two b.xhtml", "xlsx": "xl/styles.xml"}
    part = parts.get(format, "ppt/theme/theme1.xml")
    info = zipfile.ZipFile(io.BytesIO(content)).getinfo(part)
    at = info.header_offset + 30 + len(part) + info.compress_size // 2
    content[at] ^= 0xFF
    source = import_module(f"quoth_sources.{format}").read(bytes(content))
    assert source.text
    assert any(part in note for note in source.notes) or format == "pptx"  # which does not read a theme


def test_an_archive_with_a_password_says_so() -> None:
    content = bytearray(FILES["odt"])
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(mark), content):
            content[found.start() + offset] |= 1
    with pytest.raises(ValueError, match="it is encrypted; save it again, without a password"):
        import_module("quoth_sources.odt").read(bytes(content))


@pytest.mark.parametrize(
    ("core", "facts"),
    [
        ("<dc:creator>python-docx</dc:creator><dc:date>2013-12-23T23:15:00Z</dc:date>", ("", "", "")),
        ("<dc:title>PowerPoint Presentation</dc:title><dc:creator>Apache POI</dc:creator>", ("", "", "")),
        ("<dc:title>On  openpyxl</dc:title><dc:date>0101-01-01T00:00:00+00:00</dc:date>", ("On openpyxl", "", "")),
        ("<dc:creator>Ann\nLee</dc:creator><dc:date>1924</dc:date>", ("", "Ann Lee", "1924")),
        ("<dc:date>2024-05-01T10:00:00</dc:date>", ("", "", "2024-05-01")),
        ("<dc:date>1 May 2024</dc:date><dc:date>2025</dc:date>", ("", "", "1 May 2024")),
    ],
)
def test_facts_that_a_program_makes_up_are_none(core: str, facts: tuple[str, str, str]) -> None:
    part, _ = root_of(f'<meta xmlns:dc="http://purl.org/dc/elements/1.1/">{core}</meta>'.encode())
    assert tuple(described(part).values()) == facts
