"""Marks in PDFs: where a highlight is, by the widths that reportlab has of the letters; pictures; wrong files."""

import ctypes
import io
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from test_pdf import COUNTRIES, turned
from written import both, lines, pdf

from quoth.errors import InputError
from quoth_sources.marks import MOST_PIXELS, YELLOW, Mark, highlighted, picture
from quoth_sources.originals import original
from quoth_sources.pdf import read
from quoth_sources.source_map import encode, locate
from quoth_sources.worker import Worker

WORDS = st.lists(st.sampled_from("abcdefghijilmMWABCDEFGH0123456789.,;()'"), min_size=1, max_size=9, unique=True)
Quad = tuple[float, float, float, float]


def marked(content: bytes, phrase: str, note: str = "") -> Mark:
    """The mark of the first place of a phrase."""
    source = read(content)
    at = source.text.index(phrase)
    place = locate(encode(source.kind, source.runs), at, at + len(phrase))
    assert place is not None
    assert place.page is not None
    return Mark(place.page, place.rectangles, phrase, note)


def quads(content: bytes) -> list[list[Quad]]:
    """Per annotation of the pages, its quadrilaterals: left, bottom, right, top."""
    found = []
    for page in pypdfium2.PdfDocument(content):
        for number in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
            note, quad = pdfium.FPDFPage_GetAnnot(page.raw, number), pdfium.FS_QUADPOINTSF()
            assert pdfium.FPDFAnnot_GetSubtype(note) == pdfium.FPDF_ANNOT_HIGHLIGHT
            found.append([])
            for each in range(pdfium.FPDFAnnot_CountAttachmentPoints(note)):
                pdfium.FPDFAnnot_GetAttachmentPoints(note, each, quad)
                found[-1].append((quad.x3, quad.y3, quad.x2, quad.y2))
    return found


def said(content: bytes, page: int = 0) -> str:
    """The characters whose middle is in a quadrilateral of the page's first annotation, without spaces."""
    text, box = pypdfium2.PdfDocument(content)[page].get_textpage(), pdfium.FS_RECTF()
    letters = []
    for at in range(text.count_chars()):
        pdfium.FPDFText_GetLooseCharBox(text.raw, at, box)
        x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        inside = (left < x < right and low < y < high for left, low, right, high in quads(content)[0])
        letters += [chr(pdfium.FPDFText_GetUnicode(text.raw, at))] if any(inside) else []
    return "".join("".join(letters).split())


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=9), st.data())
def test_a_highlight_begins_and_ends_where_the_letters_do(words: list[list[str]], data: Any) -> None:
    """Of any characters of a line, which the source map's rectangles cut as if all were equally wide.

    No word has a letter twice: which of two next to each other is meant, nothing tells.
    """
    line = " ".join("".join(word) for word in words)
    content = pdf(lines(line))
    source = read(content)
    if source.text != line:  # a bullet, or a table
        return
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, len(line)))
    if not line[start].strip() or not line[end - 1].strip():
        return
    place = locate(encode(source.kind, source.runs), start, end)
    assert place is not None
    [[(left, low, right, high)]] = quads(highlighted(content, [Mark(1, place.rectangles, line[start:end])]))
    edges = [72 + stringWidth(line[:at], "Helvetica", 11) for at in (start, end)]
    assert (left, right) == (pytest.approx(edges[0], abs=0.6), pytest.approx(edges[1], abs=0.6))
    assert low < 720 < 720 + 0.7 * 11 < high < low + 2 * 11


def test_what_was_there_stays_and_the_note_says_what_was_asked() -> None:
    content = pdf(lines("The capital is Kampala."), lines("And Nairobi too, by the lake."))
    found = highlighted(content, [marked(content, "Kampala", "Where? 🗼 \ud800"), marked(content, "Nairobi")])
    assert found.startswith(content)
    again = pypdfium2.PdfDocument(found)
    assert [pdfium.FPDFPage_GetAnnotCount(page.raw) for page in again] == [1, 1]
    page, buffer = again[0], (ctypes.c_ushort * 99)()
    note = pdfium.FPDFPage_GetAnnot(page.raw, 0)
    size = pdfium.FPDFAnnot_GetStringValue(note, b"Contents", buffer, 198)
    assert bytes(buffer)[: size - 2].decode("utf-16-le") == "Where? 🗼 ?"
    assert read(found).text == read(content).text
    assert said(highlighted(found, [])) == "Kampala"


@pytest.mark.parametrize("angle", [0, 90, 180, 270])
def test_pages_that_are_cropped_and_turned(angle: int) -> None:
    content = turned(pdf(lines("Only these words.", "And more.", left=100, top=700, size=10)), angle)
    assert said(highlighted(content, [marked(content, "these words. And")])) in ("thesewords.And", "Andthesewords.")


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_text_that_is_drawn_turned(angle: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(angle)
        lines("A sideways line of", "words.", left=0, top=0)(canvas)

    content = pdf(draw)
    assert said(highlighted(content, [marked(content, "line of words")])) in ("lineofwords", "wordslineof")


def test_lines_hyphens_and_tables() -> None:
    hyphens = pdf(lines("A well-known exam-", "ple of a well-", "known fact."))
    found = highlighted(hyphens, [marked(hyphens, "example of a well-known")])
    assert said(found) == "exam\x02pleofawell\x02known"
    assert len(quads(found)[0]) == 3

    def table(canvas: Canvas) -> None:
        lines("These are the countries of the region, as of today, in one table, which follows below it.")(canvas)
        for row, cells in enumerate(COUNTRIES):
            for column, cell in enumerate(cells):
                canvas.drawString(72 + 150 * column, 690 - 16 * row, cell)

    content = pdf(table)
    assert said(highlighted(content, [marked(content, "Uganda | Capital: Kampala")])) == "UgandaKampala"


def test_the_place_itself_is_marked_not_the_same_words_elsewhere() -> None:
    content = pdf(both(lines("one two one two one two"), lines("one two", top=600)))
    source = read(content)
    at = source.text.rindex("one")
    place = locate(encode(source.kind, source.runs), at, at + 3)
    assert place is not None
    [[(left, low, right, high)]] = quads(highlighted(content, [Mark(1, place.rectangles, "one")]))
    assert (left, low < 600 < high, right < 95) == (pytest.approx(72, abs=0.5), True, True)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (pdf(lines("Something else is written there.")), "page 2"),
        (pdf(lines("One."), lines("Xylophones, Zebras, Quizzes.")), "page 2 has other words where the answer was"),
        (pdf(lines("One."), lambda canvas: canvas.rect(9, 9, 9, 9)), "page 2 has other words"),
    ],
)
def test_another_file_is_not_marked(other: bytes, why: str) -> None:
    mark = marked(pdf(lines("One."), lines("The capital is Kampala.")), "capital is Kampala")
    with pytest.raises(ValueError, match=f"{why}.*index it again"):
        highlighted(other, [mark])


def test_a_picture_of_the_page() -> None:
    content = pdf(lines("One."), lines("The capital is Kampala."))
    image = Image.open(io.BytesIO(picture(content, marked(content, "Kampala"), 595)))
    assert (image.format, image.size) == ("PNG", (595, 842))
    x = 72 + stringWidth("The capital is ", "Helvetica", 11)
    colours = {
        colour
        for _, colour in image.convert("RGB").crop((int(x) + 1, 842 - 728, int(x) + 30, 842 - 719)).getcolors(9999)
    }
    assert YELLOW in colours
    assert image.convert("RGB").getpixel((75, 842 - 729)) == (255, 255, 255)
    with Worker() as worker:
        again = worker.made("quoth_sources.marks.picture", content, mark=marked(content, "Kampala"), width=595)
    assert Image.open(io.BytesIO(again)).tobytes() == image.tobytes()


def test_a_long_page_has_no_more_pixels_than_it_may() -> None:
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(60, 14_000), invariant=1)
    canvas.drawString(5, 13_900, "Word")
    canvas.save()
    image = Image.open(io.BytesIO(picture(stream.getvalue(), marked(stream.getvalue(), "Word"), 2000)))
    assert image.width * image.height < 1.01 * MOST_PIXELS


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out.pdf").write_bytes(b"secret")
    inner = tmp_path / "in"
    (inner / "a").mkdir(parents=True)
    (inner / "a" / "b.pdf").write_bytes(b"1234")
    (inner / "link.pdf").symlink_to(tmp_path / "out.pdf")
    (inner / "loop.pdf").symlink_to(inner / "loop.pdf")
    (inner / "bad.pdf.gz").write_bytes(b"1234")
    assert original(inner, "a/b.pdf", 4) == b"1234"
    assert original(inner, "a/../a/b.pdf", 4) == b"1234"
    for name in (
        "../out.pdf", "a/../../out.pdf", str(tmp_path / "out.pdf"), "link.pdf", "loop.pdf", "a", "", "\0", "x" * 5000,
        "none.pdf", "a/b.pdf/c", "\ud800.pdf", "bad.pdf.gz", "/dev/zero",
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"no such file below|cannot be read") as error:
            original(inner, name, 4)
        assert "\n" not in str(error.value)
        assert "secret" not in str(error.value)
    with pytest.raises(InputError, match="more than 3 bytes"):
        original(inner, "a/b.pdf", 3)
