"""The readers: every format, and what becomes of records that cannot be used."""

import bz2
import gzip
import http.server
import io
import json
import lzma
import os
import string
import sys
import threading
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written import docx

from quoth.corpus.checks import check_document
from quoth.corpus.documents import read_documents
from quoth.errors import FileWarning, InputError, RecordError
from quoth.records import Document
from quoth_sources.source_map import encode, locate

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
SHARED_FOLDER = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_jsonl_keeps_further_fields_as_metadata(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", lines({"id": 7, "title": "T", "text": "x", "year": 1999, "tags": ["a"]}))
    assert list(read_documents(file)) == [Document("7", "T", "x", {"year": 1999, "tags": ["a"]})]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_compressed_files_read_as_plain_ones(tmp_path: Path, suffix: str, compress: Any) -> None:
    content = lines({"id": "a", "text": "é"}).encode()
    assert list(read_documents(write(tmp_path / f"a.jsonl{suffix}", compress(content)))) == [Document("a", "", "é")]
    whole = compress(b"".join(b'{"text": "%d"}\n' % number for number in range(500)))
    for content in (whole[:-12], whole[:30] + bytes(99) + whole[129:]):
        damaged = write(tmp_path / f"b.jsonl{suffix}", content)
        with pytest.raises(InputError, match=r"b\.jsonl.*(damaged or truncated|cannot be read)"):
            list(read_documents(damaged))


def test_metadata_that_is_nested_too_deep_is_refused_with_its_line(tmp_path: Path) -> None:
    """The metadata is the first of 64 levels."""
    values = [json.loads("[" * levels + "]" * levels) for levels in (63, 64, 500)]
    file = write(
        tmp_path / "a.jsonl", lines(*({"id": str(i), "text": "x", "a": each} for i, each in enumerate(values)))
    )
    bad: list[InputError] = []
    assert [each.id for each in read_documents(file, skip_bad=True, on_bad=bad.append)] == ["0"]
    said = "metadata is nested more than 64 deep; flatten it; fix it or leave it out (--skip-bad)"
    assert [str(each) for each in bad] == [f"{file}:{line}: {said}" for line in (2, 3)]


def test_psgs_w100_reads_with_its_quotes(tmp_path: Path) -> None:
    file = write(tmp_path / "psgs.tsv", 'id\ttext\ttitle\n1\t"He said ""no"".\tYes"\tTitle\n')
    assert list(read_documents(file)) == [Document("1", "Title", 'He said "no".\tYes')]


@pytest.mark.filterwarnings("ignore:a.csv is searched and read in its column 'text' alone")
def test_csv_reports_rows_of_another_width_and_bad_bytes(tmp_path: Path) -> None:
    content = "id,text,by\n1,gööd,Ann\n2,too,many,cells\n3,caf".encode() + b"\xe9,Bo\n4,few\n5,fine,Di\n6\n"
    file, errors = write(tmp_path / "a.csv", content), list[InputError]()
    with pytest.warns(FileWarning, match=r"a.csv: 2 rows \(lines 3, 5\) with more or fewer cells than 3, read as far"):
        found = [*read_documents(file, skip_bad=True, on_bad=errors.append)]
    assert [(each.id, each.text, dict(each.metadata)) for each in found] == [
        ("1", "gööd", {"by": "Ann"}),
        ("2", "too", {"by": "many", "column 4": "cells"}),
        ("4", "few", {}),
        ("5", "fine", {"by": "Di"}),
    ]
    assert [str(each).partition(": ")[0] for each in errors] == [f"{file}:4", f"{file}:7"]
    assert "1 cells under a header of 3, so that it has no text" in str(errors[1])


def test_a_row_without_a_text_column_is_every_cell_under_its_name(tmp_path: Path) -> None:
    boats = write(tmp_path / "boats.csv", 'name,state,port\n"Sea  Star",in repair,Kiel\nMoby,afloat,\n')
    titled = write(tmp_path / "a.tsv", "_id\twikipedia_title\tbody\n7\tMoby\tx y\n")
    with pytest.warns(FileWarning, match="boats.csv has no column 'text'"):
        first, second = read_documents(boats)
    text = "name: Sea Star | state: in repair | port: Kiel"
    known = {"name": "Sea  Star", "state": "in repair", "port": "Kiel"}
    assert first == Document("boats-2", "boats", text, known, encode("line", [(0, len(text), 2)]))
    assert second.text == "name: Moby | state: afloat"
    with pytest.warns(FileWarning):
        assert list(read_documents(titled)) == [Document("7", "Moby", "body: x y", {"body": "x y"})]


def test_columns_that_are_not_read_are_told(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "id,name,text,role\n1,Ann,She leads.,chair\n")
    with pytest.warns(FileWarning) as told:
        assert list(read_documents(file)) == [Document("1", "a", "She leads.", {"name": "Ann", "role": "chair"})]
    assert [str(each.message) for each in told] == [
        "a.csv is searched and read in its column 'text' alone; name, role only filter (--where)"
    ]


def test_a_row_says_its_file_and_without_an_id_its_line(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'text\none\n\n"two\nlines"\n""\nthree\n')
    found = [(each.id, each.title, locate(each.source_map, 0, 1)) for each in read_documents(file)]
    lines = [None if place is None else place.line for *_, place in found]
    assert [each[:2] for each in found] == [("a-2", "a"), ("a-5", "a"), ("a-6", "a"), ("a-7", "a")]
    assert lines == [2, 4, None, 7]
    assert list(read_documents(write(tmp_path / "b.csv", "id,text\n1,one\n"))) == [Document("1", "b", "one")]


@pytest.mark.filterwarnings("ignore::quoth.errors.FileWarning")
def test_columns_of_one_name_keep_all_their_cells(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    write(tmp_path / "a.csv", "name,phone, ,phone,phone (2),,\nAnn,1,2,3,4,5,\n")
    columns = [[1], ["x"], ["y"], ["z"]]
    parquet.write_table(pyarrow.table(columns, ["id", "text", "text", "text"]), tmp_path / "b.parquet")
    row, record = read_documents(tmp_path)
    assert row.text == "name: Ann | phone: 1 | column 3: 2 | phone (2): 3 | phone (2) (2): 4 | column 6: 5"
    assert row.metadata == dict(each.split(": ") for each in row.text.split(" | "))
    assert record == Document("1", "", "x", {"text (2)": "y", "text (3)": "z"})


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_what_separates_the_cells_of_a_table_is_seen(tmp_path: Path, mark: str) -> None:
    rows = [("id", "text"), ("1", "3,50; x | y\tz"), ("2", "a, b"), ("3", "a; b"), ("4", "a | b")]
    content = "".join(mark.join(f'"{cell}"' if mark in cell else cell for cell in row) + "\n" for row in rows)
    with pytest.warns(FileWarning, match=r"1 row \(line 6\) with more or fewer cells than 2"):
        found = [*read_documents(write(tmp_path / "a.csv", content + mark.join(["5", "w", "more\n"])))]
    assert [(each.id, each.text) for each in found] == [*rows[1:], ("5", "w")]
    assert found[-1].metadata == {"column 3": "more"}


def test_a_table_may_begin_with_blank_lines(tmp_path: Path) -> None:
    assert list(read_documents(write(tmp_path / "a.csv", "\n\nid,text\n1,one\n"))) == [Document("1", "a", "one")]


def test_a_table_of_one_column_has_one(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "text\nRed; green\nBlue; grey\n")
    assert [each.text for each in read_documents(file)] == ["Red; green", "Blue; grey"]


@pytest.mark.filterwarnings("ignore:sub/a.csv")
def test_ids_of_several_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.csv", "b.csv", "sub/a.csv"):
        write(tmp_path / name, f"id,text\n1,One of {name}\n2,Two of {name}\n")
    with pytest.warns(FileWarning, match=r"b\.csv: ids that another file has too become 'b\.csv#ID'"):
        found = [each.id for each in read_documents(tmp_path)]
    assert found == ["1", "2", "b.csv#1", "b.csv#2", "sub/a.csv#1", "sub/a.csv#2"]
    with pytest.raises(InputError, match=r"a\.csv:2: id '1' occurs twice; fix it or leave it out"):
        list(read_documents(tmp_path / "a.csv", tmp_path / "a.csv"))
    folders = [tmp_path / "x", tmp_path / "y"]
    for folder in folders:
        folder.mkdir()
        write(folder / "a.txt", "One.")
    with pytest.raises(InputError, match=r"y/a\.txt: id 'a\.txt' occurs twice, first in .*x/a\.txt"):
        list(read_documents(*folders))


def test_an_id_that_is_twice_in_a_table_is_named_with_its_line(tmp_path: Path) -> None:
    file, errors = write(tmp_path / "a.csv", "id,text\n1,One\n1,Other\n2,Two\n"), list[InputError]()
    assert [each.text for each in read_documents(file, skip_bad=True, on_bad=errors.append)] == ["One", "Two"]
    assert [str(each) for each in errors] == [f"{file}:3: id '1' occurs twice; fix it or leave it out (--skip-bad)"]


def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = [{"id": "a", "text": "one", "n": 1}, {"id": "b", "text": None, "n": 2}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet:2: text is null"):
        list(read_documents(tmp_path / "a.parquet"))
    assert list(read_documents(tmp_path / "a.parquet", skip_bad=True)) == [Document("a", "", "one", {"n": 1})]
    with pytest.raises(InputError, match="not a Parquet file"):
        list(read_documents(write(tmp_path / "b.parquet", b"PAR1 no")))


def test_kilt_paragraphs_are_joined(tmp_path: Path) -> None:
    record = {"wikipedia_id": "9", "wikipedia_title": "T", "text": ["T\n", "One.", "Two.\n"]}
    assert list(read_documents(write(tmp_path / "k.jsonl", lines(record)))) == [Document("9", "T", "T\nOne.\nTwo.\n")]


def test_a_folder_is_every_readable_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    write(tmp_path / "sub" / "b.txt", "second")
    write(tmp_path / "a.txt", "\ufefffirst")
    write(tmp_path / "c.jsonl", lines({"text": "third"}))
    write(tmp_path / "image.png", b"\x89PNG")
    write(tmp_path / ".git" / "d.txt", "hidden")
    write(tmp_path / "PAGE.LOG.gz", b"")
    write(tmp_path / "other.png", b"")
    write(tmp_path / "Makefile", b"")
    with pytest.warns(FileWarning) as told:
        found = list(read_documents(tmp_path))
    assert [str(each.message) for each in told] == [
        f"left out 2 .png, 1 .log.gz, 1 without a suffix of {tmp_path} (Makefile, PAGE.LOG.gz, image.png, …): only "
        ".jsonl, .ndjson, .csv, .tsv, .parquet, .json, .mbox, .txt, .md, .markdown, .rst, .html, .htm, .xhtml, .pdf, "
        ".docx, .pptx, .xlsx, .odt, .odp, .ods, .epub, .eml, .msg, .ipynb, .1 to .9 (manual pages) are read; convert "
        "the others to text"
    ]
    assert [(each.id, each.title, each.text) for each in found] == [
        ("a.txt", "a", "first"),
        ("c-1", "", "third"),
        ("sub/b.txt", "b", "second"),
    ]


def test_a_text_is_read_as_it_is_and_knows_its_lines(tmp_path: Path) -> None:
    text = "One.\n\n  two\r\n\x0cthree\rfour"
    write(tmp_path / "a.txt", text)
    [document] = read_documents(tmp_path / "a.txt")
    assert document.text == text
    lines = {phrase: locate(document.source_map, text.index(phrase), len(text)) for phrase in ("One", "two", "four")}
    assert {phrase: str(place) for phrase, place in lines.items()} == {
        "One": "line 1",
        "two": "line 3",
        "four": "line 5",
    }
    assert [document.source_map] == [encode("line", [(0, 4, 1), (6, 11, 3), (13, 19, 4), (20, 24, 5)])]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with write(tmp_path / "in", lines({"text": "x"}, {"text": "y"})).open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert [each.id for each in read_documents("-")] == ["stdin-1", "stdin-2"]


def test_paths_are_checked_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_documents(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match=r"does not end in \.jsonl"):
        read_documents(write(tmp_path / "a.log", ""))
    with pytest.raises(InputError, match="format 'wpd' is not one of"):
        read_documents(tmp_path, format="wpd")
    with pytest.raises(InputError, match=r"no file in it .* \(there are 1 \.log\); to read other files, convert"):
        read_documents(tmp_path)


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private").mkdir()
    write(tmp_path / "a.txt", "x")
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name == "private":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"private: cannot be read \(Permission denied\)"):
        read_documents(tmp_path)


def test_kinds_of_files_are_few(tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / f"a.x{number:02d}", "")
    write(tmp_path / "a.txt", "text")
    with pytest.warns(FileWarning, match=r"left out 1 \.x00, .* 1 \.x07, 4 of other kinds of "):
        read_documents(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "markup"),
    [
        ("page.html", "<p>One.</p>", "HTML"),
        ("page.txt", "\n<!DOCTYPE html><p>One.", "HTML"),
        ("feed.txt.gz", "<?xml version='1.0'?><a/>", "XML"),
        ("quoth.1", '.\\" A comment\n.TH QUOTH 1\n.SH NAME\n', "troff"),
        ("index.rst", "A title\n=======\n", "reStructuredText"),
        ("paper.tex", "\\title{x}", "LaTeX"),
        ("plain.txt", "a < b, and <html> is a tag\nA line. .TH x", None),
        ("readme.md", "# A title\n<b>bold</b>", None),
    ],
)
def test_markup_is_kept_with_a_hint(tmp_path: Path, name: str, content: str, markup: str | None) -> None:
    for copy in (name, f"z{name}"):
        raw = content.encode()
        write(tmp_path / copy, gzip.compress(raw) if name.endswith(".gz") else raw)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert [each.text for each in read_documents(tmp_path, format="text")] == [content, content]
    expected = [] if markup is None else [f"{name} looks like {markup}; its markup is kept as text"]
    assert [str(each.message) for each in told] == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "b", "text": ', "not JSON"),
        (b'{"id": "b", "text": "caf\xe9"}', "not UTF-8 at byte 24"),
        (b'{"id": "b", "text": "\\ud83d"}', "text is not valid Unicode at character 0"),
        (b'{"id": "b", "title": "\\udc00", "text": ""}', "title is not valid Unicode"),
        (b'{"id": "b", "text": "", "m": "\\udc00"}', "metadata is not valid Unicode"),
        (b'["b"]', "the record is list"),
        (b'{"id": "b"}', "no field 'text'"),
        (b'{"id": "b", "text": null}', "text is null"),
        (b'{"id": "b", "text": ["x", 1]}', "not only of strings"),
        (b'{"id": "b", "title": 3, "text": ""}', "title is int"),
        (b'{"id": true, "text": ""}', "id is bool"),
        (b'{"id": "", "text": ""}', "not a non-empty string"),
        (b'{"text": "x"}', "no id"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 5000, "not JSON"),
    ],
)
def test_a_broken_line_is_named_or_skipped(tmp_path: Path, line: bytes, message: str) -> None:
    good = [lines({"id": name, "text": name}).encode() for name in "ac"]
    file = write(tmp_path / "x.jsonl", good[0] + line + b"\n\n" + good[1])
    with pytest.raises(InputError) as caught:
        list(read_documents(file))
    assert str(caught.value).startswith(f"{file}:2: ")
    assert message in str(caught.value)
    assert "--skip-bad" in str(caught.value)
    errors: list[InputError] = []
    assert [each.id for each in read_documents(file, skip_bad=True, on_bad=errors.append)] == ["a", "c"]
    assert len(errors) == 1


def test_ids_are_numbered_only_where_the_first_record_has_none(tmp_path: Path) -> None:
    file = write(tmp_path / "notes.jsonl", lines({"text": "x"}) + "\n" + lines({"text": "y"}, {"id": "z", "text": ""}))
    errors: list[InputError] = []
    assert [each.id for each in read_documents(file, skip_bad=True, on_bad=errors.append)] == ["notes-1", "notes-3"]
    assert "notes.jsonl:4: an id, although the file's first record has none" in str(errors[0])


def test_nul_and_right_to_left_and_empty_texts_are_kept(tmp_path: Path) -> None:
    texts = ["a\0b", "שלום עולם", "e\u0301", "", "\u202eabc"]
    file = write(tmp_path / "t.jsonl", lines(*({"text": text} for text in texts)))
    assert [each.text for each in read_documents(file)] == texts


def test_a_very_long_line(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", lines({"text": "word " * 10_000_000}))
    assert [len(each.text) for each in read_documents(file)] == [50_000_000]


def test_a_document_must_be_storable() -> None:
    check_document(Document("a", "", ""))
    for bad in (Document("", "", ""), Document("a", "", "\ud800"), Document("a", "", "", {"at": object()})):
        with pytest.raises(ValueError):
            check_document(bad)


@SHARED_FOLDER
@given(st.lists(st.tuples(TEXT, TEXT, st.dictionaries(st.sampled_from(["a", "b"]), TEXT | st.integers() | st.none()))))
def test_whatever_is_written_is_read(tmp_path: Path, rows: list[tuple[str, str, dict[str, Any]]]) -> None:
    documents = [Document(str(number), *row) for number, row in enumerate(rows)]
    records = ({"id": each.id, "title": each.title, "text": each.text, **each.metadata} for each in documents)
    assert list(read_documents(write(tmp_path / "r.jsonl", lines(*records)))) == documents


@SHARED_FOLDER
@given(
    st.binary(max_size=300), st.sampled_from(["jsonl", "csv", "tsv", "json", "parquet", "text", "jsonl.gz", "jsonl.xz"])
)
def test_no_bytes_do_worse_than_an_input_error(tmp_path: Path, content: bytes, kind: str) -> None:
    file = write(tmp_path / f"f.{kind.replace('text', 'txt')}", content)
    found: list[Document] = []
    with suppress(InputError), warnings.catch_warnings(action="ignore"):
        found.extend(read_documents(file, skip_bad=True))
    for document in found:
        check_document(document)  # what is read can be stored
        assert document.text.encode().decode() == document.text


@pytest.mark.filterwarnings("ignore:t.csv is searched and read in its column 'text' alone")
@SHARED_FOLDER
@given(st.lists(st.tuples(st.text(string.printable), st.text(string.printable))))
def test_tables_round_trip(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    import csv

    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([("id", "text", "note"), *((str(i), *row) for i, row in enumerate(rows))])
    found = list(read_documents(write(tmp_path / "t.csv", stream.getvalue())))
    assert [(each.text, each.metadata["note"]) for each in found] == rows


def test_urls_are_read_as_files_and_folders_are(tmp_path: Path) -> None:
    (folder := tmp_path / "docs").mkdir()
    write(folder / "b.jsonl.gz", gzip.compress(b'{"title": "B", "text": "two"}\n'))
    write(folder / "a.txt", "one")
    write(folder / ".hidden.txt", "no")
    write(folder / "c.bin", "no")
    url = f"file://{folder}"
    with pytest.warns(FileWarning, match=r"left out 1 \.bin of file:"):
        there = list(read_documents(url))
    with pytest.warns(FileWarning, match=r"left out 1 \.bin of /"):
        assert there == list(read_documents(folder))
    assert [each.id for each in there] == ["a.txt", "b-1"]
    assert list(read_documents(f"{url}/b.jsonl.gz")) == list(read_documents(folder / "b.jsonl.gz"))
    assert [each.text for each in read_documents(f"{url}/c.bin", format="text")] == ["no"]


@pytest.mark.parametrize("rest", ["nowhere.jsonl", "c.bin", ""])
def test_a_url_without_documents_is_named(tmp_path: Path, rest: str) -> None:
    write(tmp_path / "c.bin", "x")
    with pytest.raises(InputError, match=f"{tmp_path}/?{rest}.*no file there"):
        read_documents(f"file://{tmp_path}/{rest}")
    with pytest.raises(InputError, match=r"nosuch://x: cannot be read"):
        read_documents("nosuch://x")


def test_documents_of_a_web_server(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    write(tmp_path / "a.jsonl", lines({"id": "x", "text": "from far away"}))
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert [each.text for each in read_documents(f"{url}/a.jsonl")] == ["from far away"]
        with pytest.raises(InputError, match=r"nothing.jsonl"):
            list(read_documents(f"{url}/nothing.jsonl"))
        server.shutdown()


class Broken(http.server.SimpleHTTPRequestHandler):
    """Sends the first half of a file, and no more."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: len(content) // 2])
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.mbox", "a.docx"])
def test_half_of_a_download_is_no_document(tmp_path: Path, name: str) -> None:
    pytest.importorskip("aiohttp")
    said = ["one" * 300_000, "two" * 300_000]
    box = "From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n"
    write(tmp_path / name, docx(*said) if name == "a.docx" else "\n".join([box if name == "a.mbox" else "text", *said]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Broken, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bad = list[RecordError]()
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        assert list(read_documents(url, skip_bad=True, on_bad=bad.append)) == []
        server.shutdown()
    [failed] = bad
    assert failed.is_passing
    assert "damaged" not in str(failed)


def test_what_ends_a_file_early_names_it_once_with_one_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = write(tmp_path / "a.jsonl", lines({"id": "a", "text": "x"}, {"id": "b", "text": "x" * 99}))
    cut = tmp_path / "t.csv"
    cut.write_bytes("id,text\nc,One.\n".encode("utf-16") + b"\x00\xd8a\x00\n\x00")
    monkeypatch.setattr("quoth_sources.limits.RECORD", 60)
    errors: list[InputError] = []
    assert [each.id for each in read_documents(long, cut, skip_bad=True, on_bad=errors.append)][:1] == ["a"]
    remedy = "fix it or leave it out (--skip-bad)"
    assert [str(each) for each in errors] == [
        f"{long}:2: a line of more than 60 bytes, at which reading ends; is it JSONL?; {remedy}",
        f"{cut}: not UTF-16-LE, so that line 1 and the rest is not read; {remedy}",
    ]
