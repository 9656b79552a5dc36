"""Workbooks of Excel: values as they were last computed, not formulas; dates in ISO's form."""

import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from quoth_sources.levels import OF_OFFICE, joined
from quoth_sources.office import STRICT, Archive, kind_of, opened, root_of
from quoth_sources.sheets import Row, written
from quoth_sources.source import Piece, Source, is_final
from quoth_sources.tables import EMPTY, Box, Grid

_PERCENT = re.compile(r"[#,0]+(?:\.(0{0,9})(#{0,9}))? ?%")
_AROUND = re.compile(r'"[^"]*"|\[[^]]*\]|[_*].|\\[^%]')
"""What a format says of texts, colours and gaps around a number."""
_DIGITS = re.compile("[0-9]{1,9}")
_ZEROS = re.compile("0{2,20}")
_CONTROL = re.compile("_x(00[01][0-9A-F]|005F)_")
"""A character that XML cannot have, or the "_" before what only looks like one."""
_MERGED = re.compile(rb"[<:]mergeCell\s[^>]*?ref=\"([A-Z]+[0-9]+:[A-Z]+[0-9]+)\"")
_MOST_MERGED = 100_000
"""Cells of a sheet that others cover: a range with more than are left is left alone."""
_READ: Mapping[str, Mapping[str, str]] = {
    "styles.xml": {"numFmts": "", "numFmt": "numFmtId formatCode", "fonts": "", "font": "", "b": "val", "cellXfs": "",
                   "xf": "numFmtId fontId"},
    "workbook.xml": {"workbookPr": "date1904", "sheets": "", "sheet": "name sheetId state id"},
}  # fmt: skip
"""What is needed of a file, by the end of its name: elements and their attributes. openpyxl also reads the others, in
which there may be what it does not know."""


_NO_FACTS = b"<x:coreProperties xmlns:x='http://schemas.openxmlformats.org/package/2006/metadata/core-properties'/>"
_TYPES = {
    "workbook.xml$": "spreadsheetml.sheet.main",
    "worksheets/[^/]*$": "spreadsheetml.worksheet",
    "sharedStrings.xml$": "spreadsheetml.sharedStrings",
}


def read(content: bytes) -> Source:
    """The text of a workbook. Raises ValueError if it cannot be opened."""
    archive, text = Archive(content), None
    if any(_has_raised(name, archive.read(name) or b"") for name in archive.names if name.endswith(".xml")):
        content = archive.changed(_flat)
    try:
        text = written(_sheets(content, nullcontext))
    except Exception as error:  # openpyxl does not know every form, and raises anything
        if is_final(error):
            raise
        with archive.survived("the list of sheets"):
            text = written(_sheets(archive.changed(STRICT, _flat, _simple, types=_TYPES), archive.survived))
    if text is None:
        raise ValueError("it has no sheets that can be read: it is not a workbook, or is damaged")
    return text.source(archive.facts(), [*archive.notes.values()])


def _sheets(content: bytes, survived: Callable[[str], AbstractContextManager[Any]]) -> list[tuple[str, Iterator[Row]]]:
    """The titles and rows of the sheets that are visible."""
    from openpyxl import load_workbook

    with warnings.catch_warnings(action="ignore"):  # of styles that are not there
        book = load_workbook(opened(content), read_only=True, data_only=True, keep_links=False)
    if not book.worksheets:
        raise LookupError("no sheet under a name that openpyxl knows")
    files = zipfile.ZipFile(opened(content))

    def rows(sheet: Any) -> Iterator[Row]:
        with survived(f"sheet {sheet.title}"):
            yield from _rows(sheet, files)

    return [(sheet.title, rows(sheet)) for sheet in book.worksheets if sheet.sheet_state == "visible"]


def _has_raised(name: str, part: bytes) -> bool:
    """Whether a file of a workbook may have texts in which something is raised or lowered."""
    return name.endswith(".xml") and not name.endswith("styles.xml") and b"vertAlign" in part


def _flat(name: str, part: bytes) -> bytes:
    """A file of a workbook in which texts of several runs, raised and lowered ones among them, are one."""
    from lxml import etree

    if not _has_raised(name, part) or (root := root_of(part)[0]) is None:
        return part
    for item in root.iter("{*}si", "{*}is"):
        runs = item.findall("{*}r")
        levels = (run.xpath("string(*[local-name()='rPr']/*[local-name()='vertAlign']/@val)") for run in runs)
        said = joined(
            (run.findtext("{*}t") or "", OF_OFFICE.get(level, "")) for run, level in zip(runs, levels, strict=True)
        )
        for run in runs:
            item.remove(run)
        if runs:
            etree.SubElement(item, runs[0].tag[:-1] + "t").text = said
    return bytes(etree.tostring(root))


def _simple(name: str, part: bytes) -> bytes:
    """A file of a workbook with nothing but what is read here."""
    from lxml import etree

    if name == "docProps/core.xml":
        return _NO_FACTS
    kept = _READ.get(name.rpartition("/")[2])
    if kept is None or (root := root_of(part)[0]) is None:
        return part
    for each in [*root.iterdescendants()]:
        kind = kind_of(each)
        if kind not in kept:
            each.getparent().remove(each)
        for key, said in {**each.attrib}.items():
            is_wrong = key.endswith(("fontId", "numFmtId", "sheetId")) and not _DIGITS.fullmatch(said)
            if is_wrong or key.rpartition("}")[2] not in kept.get(kind, "").split():
                del each.attrib[key]
    return bytes(etree.tostring(root))


def _rows(sheet: Any, archive: zipfile.ZipFile) -> Iterator[Row]:
    """What the cells of a sheet say; a value that covers several rows is repeated in each."""
    merged, grid = _merged(archive.read(sheet._worksheet_path)), Grid()
    sheet.reset_dimensions()  # a file may say anything
    styles: dict[int, tuple[str, bool]] = {}
    for r, cells in enumerate(sheet.iter_rows(), 1):
        here = merged.get(r, {})
        grid.begin()
        while (c := len(grid.row)) < max(len(cells), *here, 0):
            box, (across, down) = EMPTY, here.get(c + 1, (1, 1))
            if c < len(cells) and (cell := cells[c]).value is not None:
                if (style := cell._style_id) not in styles:
                    styles[style] = _style(cell)
                shown, is_bold = styles[style]
                if said := _said(cell.value, shown):
                    box = Box(said, [Piece(said, (sheet.title, cell.coordinate))], across, is_bold)
            grid.add(box, across, down)
        yield grid.end()


def _merged(content: bytes) -> dict[int, dict[int, tuple[int, int]]]:
    """By row and column, how many columns and rows a cell spans."""
    from openpyxl.utils import range_boundaries

    merged: dict[int, dict[int, tuple[int, int]]] = {}
    left_over = _MOST_MERGED
    for found in _MERGED.finditer(content):
        left, top, right, bottom = range_boundaries(found[1].decode())
        across, down = right - left + 1, bottom - top + 1
        if across > 0 < down and across * down <= left_over:
            left_over -= across * down
            merged.setdefault(top, {})[left] = across, down
    return merged


def _style(cell: Any) -> tuple[str, bool]:
    """How a cell shows a number above 0, and whether it is bold. The style may be one that is not there."""
    try:
        return _AROUND.sub("", cell.number_format).split(";")[0].strip(), bool(cell.font.b)
    except IndexError:
        return "", False


def _said(value: Any, shown: str) -> str:
    """A value as a person reads it: a date in ISO's form, per cent and leading zeros where they are shown, a number
    without a fraction as a whole number."""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        return _duration(value, "s" in shown)
    if isinstance(value, (int, float)):
        if (percent := _PERCENT.fullmatch(shown)) and abs(value) < 1e9:
            return _share(value, len(percent[1] or ""), len(percent[2] or ""))
        if isinstance(value, float):
            value = int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.15g}")
        if _ZEROS.fullmatch(shown) and isinstance(value, int):
            return f"{value:0{len(shown)}}"
    return " ".join(_CONTROL.sub(lambda found: "_" if found[1] == "005F" else " ", str(value)).split())


def _duration(value: timedelta, has_seconds: bool) -> str:
    seconds = round(abs(value).total_seconds())
    said = f"{'-' if value < timedelta() else ''}{seconds // 3600}:{seconds // 60 % 60:02}"
    return f"{said}:{seconds % 60:02}" if has_seconds or seconds % 60 else said


def _share(value: float, digits: int, more: int) -> str:
    """A number in per cent, with so many digits after the point, and more if they are not 0. Excel rounds a half up, of
    the 15 digits that it keeps."""
    rounded = Decimal(f"{value:.15g}").scaleb(2).quantize(Decimal(1).scaleb(-digits - more), ROUND_HALF_UP)
    said = f"{rounded:f}"
    for _ in range(more):
        said = said.removesuffix("0")
    return said.removesuffix(".") + "%"
