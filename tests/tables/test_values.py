"""Values of quotations, by hand: what is certain has one, what is not has none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.corpus.dates import orders_of
from quoth.tables.values import items_of, value_of

NUMBERS = [
    ("two and a half", None),
    ("two thirds", None),
    ("two dozen", None),
    ("3 hundred", None),
    ("twenty-first", None),
    ("1 million and a half", None),
    ("2½ kg", None),
    ("½", None),
    ("5k", None),
    ("0,123", None),
    ("minus 5", -5),
    ("2.5bn", 2_500_000_000),
    ("5 km²", 5),
    ("5 m", 5),
    ("72.5 years", 72.5),
    ("1,234,567 (July 2017 est.)", 1234567),
    ("1.234.567", 1234567),
    ("1.234,56", 1234.56),
    ("1,234.56", 1234.56),
    ("1,234", 1234),
    ("1'234'567", 1234567),
    ("1\u202f234\u202f567", 1234567),
    ("12,34,567", 1234567),
    ("1,5", 1.5),
    ("-5", -5),
    ("−3.5 °C", -3.5),
    ("45%", 45),
    ("about 3.2 million people", 3200000),
    ("two hundred and fifty thousand", 250000),
    ("twenty-one", 21),
    ("ten (10)", 10),
    ("10 (ten)", 10),
    ("(7)", 7),
    ("total: 643,801 sq km", 643801),
    ("1,234 km²", 1234),
    ("5 m", 5),
    ("3rd", 3),
    ("2017", 2017),
    ("1,234 (2017)", 1234),
    ("ten (12)", None),
    ("12 (ten)", None),
    ("5 to 10", None),
    ("5-10", None),
    ("1,000–2,000", None),
    ("five and six", None),
    ("five six", None),
    ("one, two", None),
    ("1234,567", None),
    ("10⁶", None),
    ("3 × 10^6", None),
    ("1.2.3", None),
    ("12.3 deaths/1,000 live births", 12.3),
    ("-0.1 migrant(s)/1,000 population (2016 est.)", -0.1),
    ("37.1 births per 1,000 people", 37.1),
    ("INV/2023/5", None),
    ("15/Mar/2021", None),
    ("12 Jan/2020", None),
    ("price per 100", 100),
    ("Rs/1,500", 1500),
    ("10/12", None),
    ("A4", None),
    ("COVID-19", None),
    ("+49 30 1234567", None),
    ("a million", None),
    ("many", None),
    ("", None),
]
MONEY = [
    ("€ 0,123", None, None),
    ("-€ 3", -3, "EUR"),
    ("-EUR 3", -3, "EUR"),
    ("minus €5", -5, "EUR"),
    ("Deposit - $ 500", 500, "$"),
    ("$1.2 billion", 1200000000, "$"),
    ("US$ 1,250,000", 1250000, "USD"),
    ("USD 5", 5, "USD"),
    ("EUR/500", 500, "EUR"),
    ("€ 1.234,56", 1234.56, "EUR"),
    ("£3.2bn", 3200000000, "GBP"),
    ("$5m", 5000000, "$"),
    ("5 million euros", 5000000, "EUR"),
    ("twelve million dollars", 12000000, "$"),
    ("five thousand dollars ($5,000)", 5000, "$"),
    ("US$ 500 (five hundred dollars)", 500, "USD"),
    ("CHF 1'200.50", 1200.5, "CHF"),
    ("¥100", 100, "¥"),
    ("-$5", -5, "$"),
    ("1,000", 1000, None),
    ("$100 per month", 100, "$"),
    ("40 EUR/100 kg", 40, "EUR"),
    ("5 million (2016 est.)", 5000000, None),
    ("68.7%", None, None),
    ("75.4 years", None, None),
    ("1.234 EUR", None, None),
    ("$5 to $10", None, None),
    ("$5 or €5", None, None),
    ("five thousand dollars ($6,000)", None, None),
    ("no fee", None, None),
]
DATES = [
    ("31 May 2024", "2024-05-31"),
    ("May 31, 2024", "2024-05-31"),
    ("2024-05-31", "2024-05-31"),
    ("31.12.2024", "2024-12-31"),
    ("May 2024", "2024-05"),
    ("2024", "2024"),
    ("Dated as of May 31, 2024", "2024-05-31"),
    ("the 5th day of March, 2019", "2019-03-05"),
    ("this 1st day of January 2020", "2020-01-01"),
    ("December ___, 1996", "1996-12"),
    ("9th day of December __, 1996", "1996-12-09"),
    ("__ of ____", None),
    ("12 March 1999 to 13 March 1999", None),
    ("03/04/2024", None),
    ("Effective Date", None),
    ("May", None),
    ("10", None),
    ("the 1990s", None),
]
DURATIONS = [
    ("half a year", None),
    ("a year and a half", None),
    ("a quarter of an hour", None),
    ("several months and a day", None),
    ("twice a year", None),
    ("some 30 days", "P30D"),
    ("ten seconds", "PT10S"),
    ("3 years", "P3Y"),
    ("three (3) years", "P3Y"),
    ("3 (three) years", "P3Y"),
    ("for a period of five (5) years from the date of disclosure", "P5Y"),
    ("2 years and 6 months", "P2Y6M"),
    ("two (2) years and six (6) months", "P2Y6M"),
    ("24 months", "P24M"),
    ("36-month", "P36M"),
    ("a year", "P1Y"),
    ("90 days", "P90D"),
    ("thirty (30) calendar days", "P30D"),
    ("1 hour 30 minutes", "PT1H30M"),
    ("1 day, 2 hours", "P1DT2H"),
    ("72.5 years (2017 est.)", "P72.5Y"),
    ("P3Y", "P3Y"),
    ("PT30M", "PT30M"),
    ("five (6) years", None),
    ("5 to 10 years", None),
    ("30 business days", None),
    ("5 days a week", None),
    ("6 months and 2 years", None),
    ("30 days of 1 January 2020", None),
    ("forever", None),
    ("10", None),
]


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_numbers(text: str, value: Any) -> None:
    assert value_of(text, "number") == value
    assert type(value_of(text, "number")) is type(value)


@pytest.mark.parametrize(("text", "amount", "currency"), MONEY)
def test_money(text: str, amount: Any, currency: str | None) -> None:
    assert value_of(text, "money") == (None if amount is None else {"amount": amount, "currency": currency})


@pytest.mark.parametrize(("text", "value"), DATES)
def test_dates(text: str, value: str | None) -> None:
    assert value_of(text, "date") == value


def test_a_column_tells_the_day_from_the_month() -> None:
    assert value_of("03/04/2024", "date", orders=orders_of(["31/12/2023", "03/04/2024"])) == "2024-04-03"
    assert value_of("03/04/2024", "date", orders=orders_of(["12/31/2023"])) == "2024-03-04"


@pytest.mark.parametrize(("text", "value"), DURATIONS)
def test_durations(text: str, value: str | None) -> None:
    assert value_of(text, "duration") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Yes, on request", True),
        ("NO", False),
        ("☒", True),
        ("☒ No", False),
        ("☐ No", None),
        ("☐ Married", False),
        ("N/A", None),
        ("yes / no", None),
        ("No. 5", None),
        ("Nothing", None),
        ("yesterday", None),
    ],
)
def test_yes_or_no(text: str, value: bool | None) -> None:
    assert value_of(text, "yes/no") is value


def test_choices() -> None:
    choices = ("York", "New York", "Delaware")
    said = ["the laws of the State of New York", "York", "DELAWARE law", "Delaware or New York", "Yorkshire", ""]
    expected = ["New York", "York", "Delaware", None, None, None]
    assert [value_of(each, "choice", choices) for each in said] == expected


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Russia and China", ["Russia", "China"]),
        ("Brazil, Peru and Chile", ["Brazil", "Peru", "Chile"]),
        ("Brazil, Trinidad and Tobago, and Peru", ["Brazil", "Trinidad and Tobago", "Peru"]),
        ("oil, 1,000 t; gas", ["oil, 1,000 t", "gas"]),
        ("- oats\n- an egg", ["oats", "an egg"]),
        ("gold", ["gold"]),
        ("Andorra", ["Andorra"]),
        ("", []),
    ],
)
def test_items(text: str, items: list[str]) -> None:
    assert items_of(text) == items
    assert all(each in text for each in items)


@given(st.integers(-(10**15), 10**15))
def test_a_number_is_read_as_it_is_written(number: int) -> None:
    for said in (f"{number:,}", f"{number}", f"about {number:,} people"):
        assert value_of(said, "number") == number
    assert value_of(f"US$ {abs(number):,}.50", "money") == {"amount": abs(number) + 0.5, "currency": "USD"}


TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "money": (dict,),
    "date": (str,),
    "duration": (str,),
    "yes/no": (bool,),
    "list": (list,),
    "choice": (str,),
}


@given(st.text(max_size=60), st.sampled_from(["number", "money", "date", "duration", "yes/no", "list", "choice"]))
def test_any_text_has_a_value_or_none(text: str, kind: str) -> None:
    value = value_of(text, kind, ("a", "b"))
    assert value is None or type(value) in TYPES[kind]


@given(st.text("0123456789 ,.()-–'$€%MmkKtwofivehundradyst", max_size=40))
def test_what_looks_like_numbers_is_read_or_not(text: str) -> None:
    for kind in ("number", "money", "duration"):
        value = value_of(text, kind)
        assert value is None or type(value) in TYPES[kind]
