"""OpenDocument texts, written by hand as LibreOffice and pandoc write them: each piece where it is."""

import io
import zipfile

import pytest

from quoth.sources import odt

_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table", "meta")
)
_MANIFEST = "<manifest/>"
_META = f"""<office:document-meta {_NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>
<dc:title>Of Kenya</dc:title><dc:creator>Bob</dc:creator><dc:date>2024-05-01T10:00:00</dc:date>
</office:meta></office:document-meta>"""


def written(body: str, kind: str = "text", manifest: str = _MANIFEST, meta: str = _META) -> bytes:
    content = f"<office:document-content {_NAMES}><office:body><office:{kind}>{body}</office:{kind}></office:body>"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", content + "</office:document-content>")
        if meta:
            archive.writestr("meta.xml", meta)
    return stream.getvalue()


def test_paragraphs_lists_and_notes() -> None:
    source = odt.read(
        written(
            "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
            "<text:table-of-content><text:p>Report 1</text:p></text:table-of-content>"
            "<text:h>Report</text:h>"
            "<text:section><text:p>Kenya's   capital<text:line-break/>is<text:s/><text:span>Nai</text:span>"
            "<!-- x -->robi"
            "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Since 1907.</text:p>"
            "</text:note-body></text:note>.<office:annotation><text:p>really?</text:p></office:annotation></text:p>"
            "</text:section><text:list><text:list-item><text:p>one</text:p><text:list><text:list-item>"
            "<text:p>in it</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p/>"
            "</text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list><text:p>After.</text:p>"
        ),
    )
    assert source.text == ("Report\n\nKenya's capital\nis Nairobi.\n\n- one\n- in it\n- two\n\nAfter.\n\nSince 1907.")
    assert [(source.text[start:end], place) for start, end, place in source.runs] == [
        ("Report", "paragraph 1"), ("Kenya's capital", "paragraph 2"), ("is Nairobi.", "paragraph 2"),
        ("one", "paragraph 3"), ("in it", "paragraph 4"), ("two", "paragraph 6"), ("After.", "paragraph 7"),
        ("Since 1907.", "note 1"),
    ]  # fmt: skip
    assert source.metadata == {"title": "Of Kenya", "author": "Bob", "date": "2024-05-01"}


def test_a_comments_author_is_not_the_documents() -> None:
    comment = '<office:annotation><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">Eve</dc:creator></office:annotation>'
    assert odt.read(written(f"<text:p>Text.{comment}</text:p>", meta="")).metadata == {}


def test_a_table_and_one_inside_it() -> None:
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    inner = f"<table:table><table:table-row>{cells('hills')}</table:table-row></table:table>"
    source = odt.read(
        written(
            "<table:table><table:table-header-rows><table:table-row>"
            f"{cells('Country')}{cells('Capital')}</table:table-row></table:table-header-rows>"
            f"<table:table-row>{cells('Kenya')}{cells('Nairobi')}"
            "<table:table-cell table:number-columns-repeated='16382'/></table:table-row>"
            f"<table:table-row><table:covered-table-cell/><table:table-cell>{inner}</table:table-cell></table:table-row>"
            "</table:table>"
        ),
    )
    assert source.text == "Country: Kenya | Capital: Nairobi\nCapital: hills"
    places = {source.text[start:end]: place for start, end, place in source.runs}
    assert places["Nairobi"] == "table 1, row 2, cell 2"
    assert places["hills"] == "table 1, row 3, cell 2"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (written("", kind="spreadsheet"), "is it an OpenDocument text"),
        (written("", manifest="<manifest><encryption-data/></manifest>"), "without a password"),
        (written("<text:p>"), "a file in it is damaged"),
    ],
)
def test_what_is_no_text_says_so(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        odt.read(content)
