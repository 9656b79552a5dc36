"""Damaged files of every format: what can be read is read, and no message has a word of Python in it."""

import gzip
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_epub import written as epub
from test_numbering import kind, level, num, p, word
from test_opendocument import written as odf
from written import docx, lines, pdf, pptx, repacked, xlsx

from quoth.corpus.documents import read_documents
from quoth.errors import FileWarning, InputError
from quoth.sources.worker import Worker

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
    try:
        return " ".join(worker.read(format, content).notes)
    except ValueError as error:
        return str(error)


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
