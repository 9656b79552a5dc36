"""Workbooks of Excel: values as Excel shows them."""

import io
import re
from datetime import timedelta
from typing import Any

import pytest
from openpyxl import load_workbook
from openpyxl.xml.constants import SHEET_MAIN_NS
from written import repacked, xlsx

from quoth.sources import xlsx as sheets


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
