"""Workbooks of Excel: values as Excel shows them."""

import io
import re
from datetime import date, timedelta
from typing import Any

import pytest
from openpyxl import load_workbook
from openpyxl.xml.constants import SHEET_MAIN_NS
from written import repacked, xlsx

from quoth_sources import xlsx as sheets


@pytest.mark.parametrize(
    ("value", "shown", "said"),
    [
        (0.256, "0.0%", "25.6%"),
        (1, "0%", "100%"),
        (0.25, "General", "0.25"),
        (7, "0.00", "7"),
        (0.1255, "#,##0.0%", "12.6%"),
        (0.12, "0%;-0%", "12%"),
        (-0.1255, "0.0%;[Red]-0.0%", "-12.6%"),
        (0.1255, "[Blue]0.00%_);(0.00%)", "12.55%"),
        (0.1255, "0.0#%", "12.55%"),
        (0.1, "0.0#%", "10.0%"),
        (0.1, "0.##%", "10%"),
        (0.5, "0\\ %", "50%"),
        (12.5, "0.0\\%", "12.5"),
        (12.5, '0.0"%"', "12.5"),
        (1e300, "0%", "1e+300"),
        *((value, "0%", said) for value, said in [(0.005, "1%"), (0.125, "13%"), (0.145, "15%"), (0.285, "29%")]),
        (7, "000", "007"),
        (timedelta(hours=30, minutes=2), "[h]:mm", "30:02"),
        (timedelta(hours=1), "[h]:mm:ss", "1:00:00"),
        (timedelta(hours=1, minutes=2, seconds=3), "[h]:mm", "1:02:03"),
        (timedelta(minutes=3, seconds=25), "[m]:ss", "0:03:25"),
        (timedelta(hours=-1, minutes=-30), "[h]:mm", "-1:30"),
        (True, "General", "TRUE"),
    ],
)
def test_values_are_read_as_they_are_shown(value: Any, shown: str, said: str) -> None:
    book = load_workbook(io.BytesIO(xlsx(S=[("is", value)])))
    book["S"]["B1"].number_format = shown
    book.save(stream := io.BytesIO())
    assert sheets.read(stream.getvalue()).text == f"S\n\nis | {said}"


@pytest.mark.filterwarnings("ignore:File contains an invalid specification")
@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (
            rb"http://schemas\.openxmlformats\.org/(spreadsheetml|officeDocument)/2006/",
            rb"http://purl.oclc.org/ooxml/\1/",
        ),
        (rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>2024-05-05"),
        (rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>5/5/2024"),
        (rb"<fill><patternFill ?/></fill>", b"<fill/>"),
        (rb"<c r=", b'<c s="77" r='),
        (rb'<xf numFmtId="0"', b'<xf numFmtId="170"'),
    ],
)
def test_files_as_few_programs_write_them(pattern: bytes, instead: bytes) -> None:
    content = xlsx(S=[("Town", "People"), ("Bonn", 3)])
    odd = repacked(content, lambda _, part: re.sub(pattern, instead, part))
    assert sheets.read(odd).text == sheets.read(content).text == "S\n\nTown: Bonn | People: 3"


def test_signs_that_xml_cannot_have() -> None:
    assert sheets.read(xlsx(S=[("1 High St_x000D_\nYork", "_x005F_x000D_")])).text == "S\n\n1 High St York | _x000D_"


def test_merged_cells_by_other_names_and_more_than_anyone_reads() -> None:
    content = xlsx(S=[("Town", "Street"), ("Bonn", "Nr. 0"), *((None, f"Nr. {r}") for r in range(1, 400))])
    ranges = "A500:A1048576", "A2:A401", "A600:A1048576"
    merged = "".join(f'<x:mergeCell xmlns:x="{SHEET_MAIN_NS}" ref="{each}"/>' for each in ranges)
    end = b"</sheetData>"
    content = repacked(content, lambda _, part: part.replace(end, end + f"<mergeCells>{merged}</mergeCells>".encode()))
    lines = sheets.read(content).text.split("\n")
    assert lines[2:] == [f"Town: Bonn | Street: Nr. {r}" for r in range(400)]


@pytest.mark.parametrize("is_inline", [False, True])
def test_what_is_raised_in_a_cell(is_inline: bool) -> None:
    content = xlsx(S=[("What", "Mass"), ("Oak", "here")])
    run = '<r><rPr><vertAlign val="{}"/></rPr><t>{}</t></r>'.format
    rich = f'<r><t xml:space="preserve">H</t></r>{run("subscript", 2)}<r><t>O, 10</t></r>{run("superscript", 6)}'
    rich = rich.replace("<r>", f'<r xmlns="{SHEET_MAIN_NS}">')

    def change(name: str, part: bytes) -> bytes:
        if name.endswith("sheet1.xml") and is_inline:
            cell = f'<c r="B2" t="inlineStr"><is>{rich}</is></c>'.encode()
            return re.sub(rb'<c r="B2".*?</c>', lambda _: cell, part)
        return part if is_inline else part.replace(b"<t>here</t>", rich.encode())

    source = sheets.read(repacked(content, change))
    assert source.text == "S\n\nWhat: Oak | Mass: H₂O, 10⁶"
    assert ("S", "B2") in [tuple(place) for *_, place in [(start, end, place) for start, end, *place in source.runs]]


def test_facts_are_those_of_the_file() -> None:
    content = xlsx(S=[("Town", "People"), ("Bonn", 3)])
    core = (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">{}</cp:coreProperties>'
    ).format

    def facts(properties: str) -> Any:
        def change(name: str, part: bytes) -> bytes:
            return core(properties).encode() if name == "docProps/core.xml" else part

        return sheets.read(repacked(content, change)).metadata

    assert sheets.read(repacked(content, lambda name, part: b"" if name == "_rels/.rels" else part)).metadata == {}
    assert facts("") == facts("<dc:creator>openpyxl</dc:creator><dc:title> </dc:title>") == {}
    assert facts("<dc:creator>Ann Lee</dc:creator>") == {"author": "Ann Lee"}
    dates = "<dcterms:created>2016-01-01T00:00:00Z</dcterms:created><dcterms:modified>{}</dcterms:modified>".format
    assert facts(dates("2017-08-31T12:00:00Z")) == {"date": "2017-08-31"}
    assert facts(dates("")) == {"date": "2016-01-01"}
    assert facts(dates("5/5/2024")) == {"date": "5/5/2024"}


@pytest.mark.filterwarnings("error")
def test_a_workbook_whose_styles_are_broken_is_read() -> None:
    content = xlsx(S=[("Town", "Since"), ("Bonn", date(2020, 5, 1)), ("Köln", 3)])
    text = sheets.read(content).text
    assert text == "S\n\nTown: Bonn | Since: 2020-05-01\nTown: Köln | Since: 3"

    def changed(pattern: bytes, instead: bytes, end: str = "styles.xml") -> Any:
        odd = repacked(
            content, lambda name, part: re.sub(pattern, instead, part, flags=re.S) if name.endswith(end) else part
        )
        assert odd != content
        return sheets.read(odd)

    assert changed(b"<cellStyleXfs.*</cellStyleXfs>", b"").text == text
    assert changed(b'fontId="0"', b'fontId="x"').text == text
    source = changed(b"</cellXfs>.*", b"</cellXfs>")
    assert (source.text, source.notes) == (text, ["xl/styles.xml in it is damaged, so text or its form may be missing"])
    source = changed(b"</row></sheetData>.*", b"", "sheet1.xml")
    assert (source.text, len(source.notes)) == (text, 1)
    source = changed(b"<v>3</v>", b"<v>x</v>", "sheet1.xml")
    assert source.text == "S\n\nTown: Bonn | Since: 2020-05-01"
    assert source.notes == ["sheet S in it is damaged, so text may be missing"]
