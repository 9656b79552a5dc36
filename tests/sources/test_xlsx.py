"""Workbooks of Excel: values as Excel shows them."""

import io
from datetime import timedelta
from typing import Any

import pytest
from openpyxl import load_workbook
from written import xlsx

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
