"""E-books, written by hand as publishers and pandoc write them: parts in reading order, each piece where it is."""

import io
import zipfile

import pytest
from written import repacked

from quoth_sources import epub

_CONTAINER = """<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
_BOOK = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf"
xmlns:dc="http://purl.org/dc/elements/1.1/">
<metadata><dc:title>The  Lake</dc:title><dc:creator>Ada Obi</dc:creator>
<dc:date>1924-05-01T00:00:00Z</dc:date></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="cover" href="cover.svg" media-type="image/svg+xml"/>
<item id="lost" href="lost.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="cover"/><itemref idref="nav"/><itemref idref="one"/><itemref idref="lost"/><itemref idref="two"/>
</spine></package>"""
_ONE = """<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>
<h1>One</h1>
<p id="a"><a id="b"/>The lake is 68 m deep.<a epub:type="noteref" href="#n">1</a><br/>It is cold.</p>
</body></html>"""
_TWO = "<html><body><p>After.</p></body></html>"
_LOCKED = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData
xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData><CipherReference URI="{}"/></CipherData>
</EncryptedData></encryption>"""


_THREE = """<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">
<head><title/><script src="a.js"/></head><body><section epub:type="chapter"><header><h2>Two</h2></header>
<p>Before <span epub:type="pagebreak" id="p12" title="> 12"/>after.<a epub:type="z3998:x noteref" href="#n">1</a></p>
<aside epub:type="footnote"><p>A note.</p></aside><aside><p>Beside it.</p></aside></section></body></html>"""


def written(one: str = _ONE, **more: str) -> bytes:
    files = {"META-INF/container.xml": _CONTAINER, "OPS/book.opf": _BOOK, "OPS/nav.xhtml": "<p>Contents</p>"}
    files |= {"OPS/text/one.xhtml": one, "OPS/text/two b.xhtml": _TWO}
    files |= {f"META-INF/{name}.xml": content for name, content in more.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize("encrypted", [None, "OPS/fonts/serif.otf"])
def test_parts_in_reading_order(encrypted: str | None) -> None:
    source = epub.read(written(**({"encryption": _LOCKED.format(encrypted)} if encrypted else {})))
    assert source.text == "One\n\nThe lake is 68 m deep.¹\nIt is cold.\n\nAfter."
    assert source.metadata == {"title": "The Lake", "author": "Ada Obi", "date": "1924-05-01"}
    assert [(source.text[start:end], place) for start, end, place in source.runs] == [
        ("One", "part 3, body > h1"),
        ("The lake is 68 m deep.", "part 3, body > p"),
        ("¹", "part 3, body > p > a:nth-of-type(2)"),
        ("It is cold.", "part 3, body > p"),
        ("After.", "part 5, body > p"),
    ]


def test_a_chapter_without_a_declaration_and_its_notes() -> None:
    assert epub.read(written(_THREE)).text == "Two\n\nBefore after.¹\n\nA note.\n\nAfter."


def test_what_is_no_book_says_so() -> None:
    with pytest.raises(ValueError, match="it is encrypted"):
        epub.read(written(encryption=_LOCKED.format("OPS/text/two%20b.xhtml")))
    stream = io.BytesIO()
    zipfile.ZipFile(stream, "w").close()
    with pytest.raises(ValueError, match="it is not an e-book"):
        epub.read(stream.getvalue())


LOST = (("text/one.xhtml", "damaged"), ("lost.xhtml", "missing"))


def test_a_damaged_page_is_read_as_far_as_it_goes() -> None:
    content = written("<body><p>The lake is deep.<b>It is")
    source = epub.read(repacked(content, lambda _, part: part.replace(b" is deep", b"\x00\xff is deep")))
    assert source.text == "The lake \ufffd is deep.It is\n\nAfter."
    told = [f"OPS/{name} in it is {what}, so text may be missing" for name, what in LOST]
    assert source.notes == told


def test_a_style_sheet_of_the_book_says_what_is_raised() -> None:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><link rel="stylesheet" href="../a%20b.css"/></head>'
    content = written(f'{page}<body><p>10<span class="up">6</span></p></body></html>')
    stream = io.BytesIO(content)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("OPS/a b.css", "span.up { vertical-align: super }")
    assert epub.read(stream.getvalue()).text == "10⁶\n\nAfter."
