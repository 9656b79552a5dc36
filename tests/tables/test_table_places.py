"""Places of a table in PDFs: pictures with the phrase marked, highlighted copies, links to these."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pypdfium2 as pdfium
import pytest
from PIL import Image
from scripted import scripted
from written import lines, pdf

import quoth
from quoth.errors import InputError
from quoth.tables import pictures
from quoth_sources.marks import YELLOW

SIGNER, END = "Who signed it?", {"name": "end", "question": "When does it end?", "type": "date"}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs" / "in"
    folder.mkdir(parents=True)
    (folder / "a.pdf").write_bytes(pdf(lines("One."), lines("Ann Baker signed this.", "It ends on 1 May 2020.")))
    (folder / "b.pdf").write_bytes(pdf(lines("Carl Dean signed this.", "It ends perhaps on 1 June 2021.")))
    (folder / "c.txt").write_text("Eve Fox signed this.")
    return tmp_path / "docs"


@pytest.fixture
def corpus(tmp_path: Path, docs: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "c.quoth")
    made.add(quoth.read_documents(docs))
    return made


def make(corpus: quoth.Corpus, out: Path, docs: Path, **more: Any) -> quoth.Table:
    return quoth.table(corpus, [SIGNER, END], model=scripted()[0], output=out, files=docs, **more)


def drawn(page: Path) -> list[Image.Image]:
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', page.read_text())
    return [Image.open(io.BytesIO(base64.b64decode(each))).convert("RGB") for each in found]


def yellow(picture: Image.Image) -> list[tuple[int, int]]:
    """Where a picture has the colour of marks, and what of it printing left of it."""
    near = [max(abs(a - b) for a, b in zip(each, YELLOW, strict=True)) < 20 for each in picture.get_flattened_data()]
    return [(at % picture.width, at // picture.width) for at, is_near in enumerate(near) if is_near]


def test_pictures_have_the_lines_around_a_phrase_which_is_marked(
    corpus: quoth.Corpus, docs: Path, tmp_path: Path
) -> None:
    make(corpus, tmp_path / "t.html", docs)
    found = drawn(tmp_path / "t.html")
    assert len(found) == 4  # two of a.pdf, two of b.pdf: what came nearest too
    for picture, is_first in zip(found, [True, False, True, False], strict=True):
        assert picture.width == pictures.WIDTH
        assert picture.height < 120
        across, down = zip(*yellow(picture), strict=True)
        scale = pictures.WIDTH / 595
        assert min(across) == pytest.approx(72 * scale, abs=4) if is_first else min(across) > 72 * scale + 30
        assert 30 * scale - 6 <= min(down) < max(down) <= 60 * scale  # the picture begins 30 points above its phrase
    make(corpus, tmp_path / "u.html", docs, pictures=False)
    assert drawn(tmp_path / "u.html") == []


def test_other_files_have_no_picture(corpus: quoth.Corpus, docs: Path, tmp_path: Path) -> None:
    (docs / "in" / "a.pdf").write_bytes(pdf(lines("One."), lines("Other words are here.")))
    (docs / "in" / "b.pdf").unlink()
    made = make(corpus, tmp_path / "t.html", docs)
    assert drawn(tmp_path / "t.html") == []
    assert made.rows[0].cells[SIGNER].text == "Ann Baker"


def test_pictures_have_a_bound(
    corpus: quoth.Corpus, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MOST_BYTES", 1)
    make(corpus, tmp_path / "t.html", docs)
    assert len(drawn(tmp_path / "t.html")) == 2  # those of the document with which the bound is reached


def notes(path: Path) -> list[list[str]]:
    """The notes of the highlights of each page."""
    with pdfium.PdfDocument(path) as file:
        raw = pdfium.raw
        found = []
        for page in file:
            own = []
            for at in range(raw.FPDFPage_GetAnnotCount(page)):
                annotation = raw.FPDFPage_GetAnnot(page, at)
                size = raw.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
                text = (raw.FPDF_WCHAR * (size // 2))()
                raw.FPDFAnnot_GetStringValue(annotation, b"Contents", text, size)
                own.append(bytes(text).decode("utf-16-le").rstrip("\0"))
                raw.FPDFPage_CloseAnnot(annotation)
            found.append(own)
    return found


def test_a_click_opens_a_highlighted_copy(corpus: quoth.Corpus, docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.xlsx"
    before = (docs / "in" / "a.pdf").read_bytes()
    make(corpus, out, docs, marked=True)
    assert (docs / "in" / "a.pdf").read_bytes() == before
    assert notes(tmp_path / "t.marked" / "in" / "a.pdf") == [
        [],
        [f"{SIGNER}: Ann Baker (98 %)", "end: 2020-05-01 (98 %)"],
    ]
    assert notes(tmp_path / "t.marked" / "in" / "b.pdf") == [[f"{SIGNER}: Carl Dean (98 %)"]]
    sheet = openpyxl.load_workbook(out)["Table"]
    links = {sheet.cell(row, 1).value: sheet.cell(row, 3).hyperlink for row in (2, 3, 4)}
    assert (links["in/a.pdf"].target, links["in/a.pdf"].location) == (r"t.marked\in\a.pdf", "page=2")
    assert links["in/c.txt"].target == r"docs\in\c.txt"
    assert sorted(each.name for each in (tmp_path / "t.marked" / "in").iterdir()) == ["a.pdf", "b.pdf"]
    make(corpus, out, docs, marked=True)
    with (tmp_path / "t.marked" / "in" / "a.pdf").open("ab") as stream:
        stream.write(b"% a note of somebody")
    with pytest.raises(InputError, match=r"a\.pdf was changed since it was written"):
        make(corpus, out, docs, marked=True)


def test_no_copy_leads_out_of_its_folder(docs: Path, tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "o.quoth")
    read = [*quoth.read_documents(docs)]
    corpus.add(replace(each, id=f"../docs/{each.id}") for each in read)
    (tmp_path / "x").mkdir()
    make(corpus, tmp_path / "x" / "t.jsonl", docs, marked=True)
    assert [path.name for path in (tmp_path / "x").iterdir() if path.is_dir()] == []


def test_copies_that_cannot_be_made_are_told(corpus: quoth.Corpus, docs: Path, tmp_path: Path) -> None:
    from quoth.tables.columns import columns_of
    from quoth.tables.table import Options, Run

    (docs / "in" / "a.pdf").write_bytes(pdf(lines("One."), lines("Other words are here.")))
    options = Options(output=tmp_path / "t.jsonl", files=docs, marked=True)
    with Run(corpus, columns_of([SIGNER]), scripted()[0], options) as run:
        run.fill()
        run.save()
        assert [*run.unmarked] == ["in/a.pdf"]
        assert "other words" in run.unmarked["in/a.pdf"]
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [row["cells"][SIGNER]["evidence"][0]["link"] for row in rows] == [
        *("docs/in/a.pdf#page=2", "t.marked/in/b.pdf#page=1", "docs/in/c.txt")
    ]
