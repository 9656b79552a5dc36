"""Dates: what texts say by hand; and, of dates drawn and written in many ways, that a filter keeps what they say."""

import json
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from email.utils import format_datetime
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commands import Run
from quoth import Corpus, Document
from quoth.corpus.dates import LONGEST, Date, Either, orders_of, read, settled
from quoth.corpus.view import parts
from quoth.corpus.where import dated, parse
from quoth.errors import ComparisonWarning, InputError


@pytest.mark.parametrize(
    ("said", "first", "last"),
    [
        ("2024", "2024-01-01", "2024-12-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2023-2", "2023-02-01", "2023-02-28"),
        ("12/2024", "2024-12-01", "2024-12-31"),
        ("2024-9-5", "2024-09-05", "2024-09-05"),
        ("2024/12/31", "2024-12-31", "2024-12-31"),
        ("2024. 12. 31.", "2024-12-31", "2024-12-31"),
        ("20241231", "2024-12-31", "2024-12-31"),
        ("２０２４／１２／３１", "2024-12-31", "2024-12-31"),
        ("31.12.2024", "2024-12-31", "2024-12-31"),
        ("12/31/2024", "2024-12-31", "2024-12-31"),
        ("05.05.2024", "2024-05-05", "2024-05-05"),
        ("Di., 31.12.2024", "2024-12-31", "2024-12-31"),
        ("31 décembre 2024", "2024-12-31", "2024-12-31"),
        ("1er décembre 2024", "2024-12-01", "2024-12-01"),
        ("mardi 31 DECEMBRE 2024", "2024-12-31", "2024-12-31"),
        ("Mar, 31 dic 2024", "2024-12-31", "2024-12-31"),
        ("mar 2024", "2024-03-01", "2024-03-31"),
        ("31. Dezember 2024", "2024-12-31", "2024-12-31"),
        ("31 de diciembre de 2024", "2024-12-31", "2024-12-31"),
        ("31 декабря 2024 г.", "2024-12-31", "2024-12-31"),
        ("31 Aralık 2024", "2024-12-31", "2024-12-31"),
        ("2024. december 31.", "2024-12-31", "2024-12-31"),
        ("31 ديسمبر 2024", "2024-12-31", "2024-12-31"),
        ("३१ दिसंबर २०२४", "2024-12-31", "2024-12-31"),
        ("the 31st of December, 2024", "2024-12-31", "2024-12-31"),
        ("Dec. 31, 2024", "2024-12-31", "2024-12-31"),
        ("2024-Dec-31", "2024-12-31", "2024-12-31"),
        ("2024年12月31日(火)", "2024-12-31", "2024-12-31"),
        ("2024년 12월 31일", "2024-12-31", "2024-12-31"),
        ("2024年12月", "2024-12-01", "2024-12-31"),
        ("Q4 2024", "2024-10-01", "2024-12-31"),
        ("2024-Q1", "2024-01-01", "2024-03-31"),
        ("4Q2024", "2024-10-01", "2024-12-31"),
        ("2024-W01", "2024-01-01", "2024-01-07"),
        ("2024-W52-2", "2024-12-24", "2024-12-24"),
        ("9999", "9999-01-01", "9999-12-31"),
    ],
)
def test_days_by_hand(said: str, first: str, last: str) -> None:
    made = read(said)
    assert isinstance(made, Date)
    assert (
        (made.first, made.last + timedelta.resolution - timedelta(1))
        == (
            datetime.fromisoformat(first),
            datetime.fromisoformat(last),
        )
        if made.last.year < 9999
        else made.first.year == 9999
    )


@pytest.mark.parametrize(
    ("said", "iso", "zone"),
    [
        ("2024-12-31T12", "2024-12-31T12", None),
        ("2024-12-31 10:30", "2024-12-31T10:30", None),
        ("20241231T103000Z", "2024-12-31T10:30:00", 0),
        ("2024-12-31T23:30:00-05:00", "2024-12-31T23:30:00", -5),
        ("2024-12-31T23:30:00.25+0530", "2024-12-31T23:30:00.250000", 5.5),
        ("Tue, 31 Dec 2024 10:00:00 +0100 (CET)", "2024-12-31T10:00:00", 1),
        ("Tue, 31 Dec 2024 10:00 EST", "2024-12-31T10:00", -5),
        ("Tue Dec 31 10:00:00 2024", "2024-12-31T10:00:00", None),
        ("31/Dec/2024:10:00:00 +0000", "2024-12-31T10:00:00", 0),
        ("12/31/2024 11:59 PM", "2024-12-31T23:59", None),
        ("12/31/2024 12:05 a.m.", "2024-12-31T00:05", None),
        ("31.12.2024 10:00 Uhr", "2024-12-31T10:00", None),
        ("2024年12月31日 10:30", "2024-12-31T10:30", None),
    ],
)
def test_times_by_hand(said: str, iso: str, zone: float | None) -> None:
    made = read(said)
    assert isinstance(made, Date)
    assert (made.iso, made.zone) == (iso, None if zone is None else timedelta(hours=zone))


@pytest.mark.parametrize(
    "said",
    [
        *("", "May", "31 December", "Q4 2024 draft", "draft 2024", "2024 or 2025", "2024-12-31 - 2025-01-05"),
        *("31.12.24", "31-Dec-24", "Sunday, 06-Nov-94 08:49:37 GMT", "1735603200", "202412", "2024-13", "31.02.2024"),
        *("2024-02-30", "30 février 2024", "2024-12-31T25:00", "13:00 PM 31 Dec 2024", "2024 10:00", "0000"),
        *("10 listopada 2024", "Dec Jan 2024", "1.2.3.2024", "1998³", "202⁴", "2024-W54", "Q5 2024", "12,31,2024x"),
        "31 December 2024" + " " * LONGEST,
    ],
)
def test_what_is_not_a_date(said: str) -> None:
    assert read(said) is None


def test_day_and_month_are_told_apart_by_the_field_alone() -> None:
    made = read("03/04/2024")
    assert isinstance(made, Either)
    assert (made.day.iso, made.month.iso, made.mark) == ("2024-04-03", "2024-03-04", "/")
    assert orders_of(["03/04/2024", "05/05/2024", "Dec 31, 2024"]) == {}
    assert orders_of(["03/04/2024", "31.12.2024", "04/13/2024", "x"]) == {".": "day", "/": "month"}
    assert orders_of(["31/12/2024", "12/31/2024", "31-12-2024 10:00"]) == {"-": "day"}
    assert settled(made, {"/": "day"}) == made.day
    assert settled(made, {"/": "month"}) == made.month
    assert settled(made, {".": "day"}) is None


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        ("2024", "2024-12-31", 0),
        ("2024-12-31", "2025", -1),
        ("Q4 2024", "2024-09-30", 1),
        ("Q4 2024", "2024-12", 0),
        ("Q4 2024", "2025-01-01T00:00", -1),
        ("2024-12-31T23:30:00-05:00", "2024-12-31", 0),
        ("2024-12-31T23:30:00-05:00", "2025-01-01T04:30:00Z", 0),
        ("2024-12-31T23:30:00-05:00", "2025-01-01T04:00:00Z", 1),
        ("2024-12-31T23:30:00-05:00", "2025-01-01T04:30:00", -1),
        ("0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00", -1),
    ],
)
def test_which_is_earlier(one: str, other: str, order: int) -> None:
    first, second = read(one), read(other)
    assert isinstance(first, Date)
    assert isinstance(second, Date)
    assert (first.order(second), second.order(first)) == (order, -order)


LANGUAGES = {
    "{day} {month} {year}": "January February March April May June July August September October November December",
    "{day}. {month} {year}": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "le {day} {month} {year}"[
        3:
    ]: "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "{day} de {month} de {year}": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "{day} {month} {year} г.": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "{day}  {month}, {year}": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października - "
    "grudnia",
    "{year}. {month} {day}.": "január február március április május június július augusztus szeptember október "
    "november december",
    "{month} {day}, {year}": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "{day}-{month}-{year}": "ian. feb. mar. apr. mai iun. iul. aug. sept. oct. nov. dec.",
    "{day} {month}  {year}": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    "{day}.{month} {year}": "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου "
    "Οκτωβρίου Νοεμβρίου Δεκεμβρίου",
}


def test_no_word_is_the_name_of_two_months() -> None:
    known = json.loads(files("quoth.corpus").joinpath("date_words.json").read_text("utf-8"))
    names = [name for month in known["months"] for name in month]
    assert len(known["months"]) == 12
    assert len({*names}) == len(names) > 1000
    assert not {*names} & {*known["others"]}


Written = Callable[[date], str]
FORMS: dict[str, Written] = {
    "iso": date.isoformat,
    "short": lambda day: f"{day.year}-{day.month}-{day.day}",
    "slash": lambda day: f"{day:%Y/%m/%d}",
    "compact": lambda day: f"{day:%Y%m%d}",
    "time": lambda day: f"{day.isoformat()}T23:59:59",
    "rfc": lambda day: format_datetime(datetime(day.year, day.month, day.day, 12, tzinfo=UTC)),
    "chinese": lambda day: f"{day.year}年{day.month}月{day.day}日",
    "german": lambda day: f"{day:%d.%m.%Y}",
    "american": lambda day: f"{day.month}/{day.day}/{day.year}",
    "british": lambda day: f"{day:%d-%m-%Y}",
}
DAYS = st.dates(date(1000, 1, 1), date(9998, 12, 31))


def named(day: date, form: str, names: str) -> str:
    month = names.split()[day.month - 1]
    assume(month != "-")
    return form.format(day=day.day, month=month, year=day.year)


@given(DAYS, st.sampled_from([*LANGUAGES.items()]))
def test_a_day_with_the_name_of_its_month_is_that_day(day: date, language: tuple[str, str]) -> None:
    for said in (named(day, *language), named(day, *language).upper(), named(day, *language).lower()):
        made = read(said)
        assert isinstance(made, Date), said
        assert made.iso == day.isoformat()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(DAYS, st.sampled_from([*FORMS])), min_size=1, max_size=12), DAYS)
def test_a_filter_keeps_what_the_dates_say(tmp_path_factory: Any, drawn: list[tuple[date, str]], limit: date) -> None:
    """The oracle is the date that was drawn. A date whose order no other shows may be missing, but is said to be."""
    texts = [FORMS[form](day) for day, form in drawn]
    corpus = Corpus.create(tmp_path_factory.mktemp("dates") / "c.quoth")
    corpus.add(Document(str(n), "", "Text.", {"date": text}) for n, text in enumerate(texts))
    shown = {form for day, form in drawn if day.day > 12}
    lost = {
        n
        for n, (day, form) in enumerate(drawn)
        if form in ("german", "american", "british") and form not in shown and day.day != day.month
    }
    for sign, holds in {">=": date.__ge__, "<": date.__lt__, "=": date.__eq__}.items():
        expected = {str(n) for n, (day, _) in enumerate(drawn) if holds(day, limit)} - {*map(str, lost)}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if len(lost) == len(drawn) and sign != "=":
                with pytest.raises(InputError, match="no date that can be compared"):
                    corpus.where(f"date {sign} '{limit}'")
                continue
            kept = {each.id for each in corpus.where(f"date {sign} '{limit}'").documents()}
        assert kept == expected, (texts, sign, limit)
        assert len(told) == (0 < len(lost) < len(drawn))


def records(*dates: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"n": n, "date": each, **more} for n, each in enumerate(dates)]


def test_what_equality_means() -> None:
    """A text that is not a date is another one than any date, and no reason for a note if none is one."""
    for day, notes in (("1984", []), ("1984-01", ["1 value of `t` is not a date, such as 'Animal Farm'"])):
        kept = []
        for test in (f"t = '{day}'", f"t != '{day}'", f"t in ('{day}', '1985')", f"t not in ('{day}')"):
            read_ = parse(test)
            kept.append([n for n, t in enumerate(("1984", "Animal Farm", "1985")) if read_({"t": t})])
            read_.check()
            assert read_.notes() == notes
        assert kept == [[0], [1, 2], [0, 2], [1, 2]]
    only = parse("t != '1984-01'")
    assert only({"t": "Emma"})
    only.check()
    assert not only.notes()


def test_what_is_no_date_does_not_order_dates(tmp_path: Path) -> None:
    """By letters, 31.12.2024 would be after '2025, maybe'."""
    made = Corpus.create(tmp_path / "c.quoth")
    made.add(Document(str(n), "", "Text.", {"date": f"31.12.202{n}", "no": f"120{n}"}) for n in range(3))
    for test in ("date >= '2025, maybe'", "date < '31.12.24'", "date between 'a' and 'b'"):
        with pytest.raises(InputError, match=r"where: date has dates, .* is not one; write it as 2024-05-31"):
            made.where(test)
    assert made.where("no < 'A120'").num_documents == 3
    assert made.where("date like '05/06/2024'").num_documents == 0
    made.add([Document("x", "", "Text.", {"date": "later"})])
    with pytest.warns(
        ComparisonWarning,
        match="3 of the values of `date` are dates, but are compared letter by letter, because 'a' is not one",
    ):
        assert made.where("date > 'a'").num_documents == 1


def test_numbers_that_are_years_or_days() -> None:
    read_ = parse("date >= '2024-06-01'")
    assert [each["n"] for each in records(2024, 2023, 20240601, 1735603200, True, 2024.5, 10**5000) if read_(each)] == [
        0,
        2,
    ]
    assert read_.notes() == ["4 values of `date` are not dates, such as 1735603200"]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "c.quoth")
    dates = ["31.12.2024", "01.02.2025", "Q4 2024 draft", "Q3 2024", None, "02/03/2025"]
    made.add(Document(f"d{n}", "", f"Pump {n}.", {"date": each, "n": n}) for n, each in enumerate(dates))
    return made


@pytest.mark.filterwarnings("default::quoth.errors.ComparisonWarning")
def test_values_that_are_not_dates_are_told(corpus: Corpus, run: Run) -> None:
    note = "2 values of `date` are not dates, such as 'Q4 2024 draft'"
    with pytest.warns(ComparisonWarning, match=note):
        part = corpus.where("date >= '2025'")
    assert ([each.id for each in part.documents()], part.notes) == (["d1"], (note,))
    assert part.where("n = 1").notes == (note,)
    code, out, error = run("search", corpus.path, "pump", "--as-of", "2024-12-31", "--json")
    assert (code, error) == (0, f"quoth: {note}\n")
    assert {json.loads(line)["document_id"] for line in out.splitlines()} == {"d0", "d3", "d4"}
    with pytest.raises(InputError, match="may have the day or the month first; write '2025-03-02' or '2025-02-03'"):
        corpus.where("date > '02/03/2025'")
    [quiet] = parts([corpus], "date >= '2025' and date < '2026'", warn=False)
    assert quiet.notes == (note,)


def test_an_ambiguous_date_is_told_as_such(tmp_path: Path) -> None:
    made = Corpus.create(tmp_path / "c.quoth")
    made.add(Document(each, "", "Text.", {"date": each}) for each in ("01.02.2025", "2025-02-01"))
    with pytest.warns(ComparisonWarning, match="such as '01.02.2025', of which no other value shows whether the day"):
        assert made.where("date >= '2024'").num_documents == 1
    with pytest.raises(InputError, match="and no date that can be compared with '2024'; write its dates as"):
        made.where("id like '01%'").where("date >= '2024'")


def test_the_order_is_that_of_the_whole_field_in_every_part(corpus: Corpus) -> None:
    """Also if the part has no date that shows it; and it is settled again after a change."""
    first = corpus.where("n = 1")
    assert first.where("date = '2025-02-01'").num_documents == 1
    corpus.delete(["d0"])
    corpus.add([Document("new", "", "Text.", {"date": "12.31.2024", "n": 1})])
    assert corpus.where("n = 1").where("date = '2025-01-02'").num_documents == 1


def test_a_time_ends_at_a_date_in_any_form() -> None:
    for last in ("31.12.2024", "Dec 31, 2024", "2024年12月31日"):
        ends = parse(dated(last))
        found = [
            each["n"] for each in records("2024-12-31T23:59", "2025", None, "31.12.2024", "1.1.2025") if ends(each)
        ]
        assert found == [0, 2, 3]


@settings(max_examples=300)
@given(st.text(max_size=LONGEST + 2), st.sampled_from(["", "2024", "31.12.2024", "10:00"]))
def test_any_text_is_read_or_is_not(noise: str, end: str) -> None:
    said = read(noise + end)
    if isinstance(said, Date):
        assert said.first <= said.last
        assert said.order(said) == 0


def test_zones_shift_as_datetime_shifts() -> None:
    """All moments and zones of some, against Python's own comparison of aware times."""
    moments = [
        datetime(2024, 12, 31, hour, 30, tzinfo=timezone(timedelta(hours=zone)))
        for hour, zone in product(range(0, 24, 5), range(-11, 13, 3))
    ]
    for one, other in product(moments, moments):
        first, second = read(one.isoformat()), read(other.isoformat())
        assert isinstance(first, Date)
        assert isinstance(second, Date)
        assert first.order(second) == (one > other) - (one < other)
