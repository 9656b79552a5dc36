"""Dates as people and programs write them: what a text says, and which of two is earlier.

A date is the time from its first moment to its last: 2024 is a year, Q4 2024 a quarter, 2024-05-31T12:00 a minute. Of
two whose times overlap, neither is earlier. Times with a zone are compared as moments; if one has none, as they are
written. What can be read in two ways is not a date by itself: 03/04/2024 is one only in a field of which another value
shows the order of day and month, and a year of two digits never is. Years are those of the Gregorian calendar.

Knows forms, and the words of `date_words.json` (`scripts/date_words.py` writes it). Does not know fields or documents.
"""

import json
import re
import unicodedata
from calendar import isleap, monthrange
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

LONGEST = 80
"""Characters of a date."""
Orders = Mapping[str, str]
"""Per mark between numbers (".", "/", "-") which comes first in a field's dates: "day" or "month"."""

_ZONES = {"z": 0, "ut": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6}
_ZONES |= {"pst": -8, "pdt": -7}
"""Hours from UTC, as RFC 5322 has them."""
_ZONE = rf"(?P<zone>[+-]\d\d(?::?\d\d)?|(?i:{'|'.join(_ZONES)})\b)"
_CLOCK = re.compile(
    r"(?:(?<=\d)T|(?<!\d))(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?"
    rf"(?:\s?(?P<half>[AaPp])\.?[Mm]\b\.?)?(?:\s?{_ZONE}(?:\s\([A-Za-z ]+\))?)?(?![\d:])"
)
_BASIC = re.compile(rf"(?<=\d)T(?P<hour>\d\d)(?:(?P<minute>\d\d)(?P<second>\d\d)?)?{_ZONE}?$")
_ISO = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<part>\d{1,9}))?)?"
    rf"{_ZONE}?)?)?)?"
)
_YEAR_FIRST = re.compile(r"(\d{4})\s*[/-]\s*(\d\d?)|(\d{4})\s*([-/.])\s*(\d\d?)\s*\4\s*(\d\d?)|(\d{4})(\d\d)(\d\d)")
_YEAR_LAST = re.compile(r"(\d\d?)\s*([-/.])\s*(\d\d?)\s*\2\s*(\d{4})")
_MONTH_YEAR = re.compile(r"(\d\d?)\s*[-/]\s*(\d{4})")
_EAST = re.compile(r"(\d{4})\s*[年년]\s*(?:(\d\d?)\s*[月월]\s*(?:(\d\d?)\s*[日일]\s*)?)?")
_QUARTER = re.compile(r"(?:Q([1-4])|([1-4])Q)[\s/-]?(\d{4})|(\d{4})[\s/-]?Q([1-4])", re.IGNORECASE)
_WEEK = re.compile(r"(\d{4})-?W(\d\d)(?:-?([1-7]))?")
_NUMBERS = re.compile(r"\d(?:[\d\s./-]*\d)?")
_TOKENS = re.compile(r"(\d+)|[\s,،.:;/()’'–-]+")
_FOLLOWING = frozenset(["st", "nd", "rd", "th", "er", "o", "a", "of", "the", "uhr"])
"""What CLDR does not have."""
_UNSEEN = re.compile("[\u200b-\u200f\u2060\ufeff]")
_MOMENT = timedelta.resolution


class Date(NamedTuple):
    """From its first moment to its last, as written; the distance of its zone from UTC, if it has one; in ISO form; and
    the mark between its numbers with the one that comes first ("day" or "month"), if it shows that."""

    first: datetime
    last: datetime
    zone: timedelta | None
    iso: str
    shows: tuple[str, str] | None = None

    def order(self, other: "Date") -> int:
        """-1, 0 or 1 as this is before the other, overlaps it, or is after it."""
        shift = timedelta() if self.zone is None or other.zone is None else self.zone - other.zone
        return int(self.first - other.last > shift) - int(self.last - other.first < shift)


class Either(NamedTuple):
    """A date whose day and month cannot be told apart: read with the day first, read with the month first, and the mark
    between its numbers."""

    day: Date
    month: Date
    mark: str


Said = Date | Either | None


@lru_cache(1 << 16)
def read(text: str) -> Said:
    """The date that a text spells; None if it is none."""
    if not 4 <= len(text) <= LONGEST or not any(map(str.isdecimal, text)):
        return None
    if iso := _ISO.fullmatch(text):  # most are, and this is ten times as fast
        with suppress(ValueError):
            return _date(iso if iso["hour"] else None, *iso.group(1, 2, 3))
        return None
    if any(each.isdigit() and not each.isdecimal() for each in text):  # raised: the mark of a note
        return None
    said = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).strip()
    time = _CLOCK.search(said) or _BASIC.search(said)
    if time:
        said = f"{said[: time.start()]} {said[time.end() :]}".strip()
    with suppress(ValueError, OverflowError):  # no such day, or hour
        return _marked(said, time) or _numeric(said, time) or _named(said, time)
    return None


def orders_of(texts: Iterable[str]) -> Orders:
    """The orders of day and month in a field: those that some date shows (31.12.2024) and none contradicts."""
    shown = dict[str, set[str]]()
    for text in texts:
        if isinstance(said := read(text), Date) and said.shows:
            mark, first = said.shows
            shown.setdefault(mark, set()).add(first)
    return {mark: min(first) for mark, first in shown.items() if len(first) == 1}


def settled(said: Said, orders: Orders) -> Date | None:
    """The date that a text spells, if these are the known orders of its field."""
    return {"day": said.day, "month": said.month}.get(orders.get(said.mark, "")) if isinstance(said, Either) else said


def folded(text: str) -> str:
    """A word as it is looked up: ignoring case and the accents of Latin, Greek and Cyrillic letters."""
    plain = unicodedata.normalize("NFKD", _UNSEEN.sub("", text)).casefold().replace("ı", "i")
    return unicodedata.normalize("NFKC", "".join(each for each in plain if not "\u0300" <= each <= "\u036f"))


def is_month(word: str) -> bool:
    """Whether a word is the name of a month, or short for one, in any of the languages."""
    return folded(word) in _words().months


class _Words(NamedTuple):
    """Months by name, the days of the week, and other words of dates ("de", "г")."""

    months: Mapping[str, int]
    weekdays: frozenset[str]
    others: frozenset[str]


@cache
def _words() -> _Words:
    known = json.loads(files(__package__).joinpath("date_words.json").read_text("utf-8"))
    months = {name: number for number, names in enumerate(known["months"], 1) for name in names}
    return _Words(months, frozenset(known["weekdays"]), frozenset(known["others"]) | _FOLLOWING)


def _date(time: re.Match[str] | None, year: str, month: str | None = None, day: str | None = None) -> Date:
    """A year, a month, a day or a time. Raises ValueError if there is none such."""
    first = datetime(int(year), int(month or 1), int(day or 1))
    if day and time:
        return _timed(first, time)
    if time:
        raise ValueError("a time without a day")
    length = monthrange(first.year, first.month)[1] if month else 366 if isleap(first.year) else 365
    return _lasting(first, timedelta(days=1 if day else length), 10 if day else 7 if month else 4)


def _lasting(first: datetime, width: timedelta, kept: int, zone: timedelta | None = None) -> Date:
    return Date(first, first + (width - _MOMENT), zone, first.isoformat()[:kept])


def _timed(day: datetime, time: re.Match[str]) -> Date:
    said = time.groupdict()
    hour, part = int(said["hour"]), said.get("part")
    if half := said.get("half"):
        if not 1 <= hour <= 12:
            raise ValueError("no such hour")
        hour = hour % 12 + 12 * (half in "Pp")
    first = day.replace(hour=hour, minute=int(said["minute"] or 0), second=int(said["second"] or 0))
    zone = None
    if named := said["zone"]:
        digits = named[1:].replace(":", "").ljust(4, "0")
        ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) if named[0] in "+-" else None
        zone = timedelta(hours=_ZONES[named.lower()]) if ahead is None else -ahead if named[0] == "-" else ahead
    if part:
        return _lasting(first.replace(microsecond=int(part[:6].ljust(6, "0"))), _MOMENT, 26, zone)
    if said["second"]:
        return _lasting(first, timedelta(seconds=1), 19, zone)
    return _lasting(first, *((timedelta(minutes=1), 16) if said["minute"] else (timedelta(hours=1), 13)), zone)


def _marked(said: str, time: re.Match[str] | None) -> Date | None:
    """A date that says with letters which of its numbers is what: 2024年12月31日, Q4 2024, 2024-W52."""
    if (east := _EAST.match(said)) and said[east.end() :].strip("() ") in _words().weekdays | {""}:
        return _date(time, *east.groups())
    if time:
        return None
    if week := _WEEK.fullmatch(said):
        year, number, day = map(int, week.groups("0"))
        return _lasting(datetime.fromisocalendar(year, number, day or 1), timedelta(days=1 if day else 7), 10)
    if quarter := _QUARTER.fullmatch(said):
        year, number = int(quarter[3] or quarter[4]), int(quarter[1] or quarter[2] or quarter[5])
        first, last = datetime(year, 3 * number - 2, 1), datetime(year, 3 * number, monthrange(year, 3 * number)[1])
        return _lasting(first, last - first + timedelta(days=1), 7)
    return None


def _numeric(said: str, time: re.Match[str] | None) -> Said:
    """A date of numbers, maybe with a day of the week."""
    words = _words()
    if len(found := _NUMBERS.findall(said)) != 1:
        return None
    around = {folded(each) for each in _TOKENS.split(said.replace(found[0], " ")) if each}
    made = _of_numbers(found[0], time)
    is_day = isinstance(made, Either) or (made is not None and len(made.iso) >= 10)
    return made if around <= words.others | (words.weekdays if is_day else frozenset()) else None


def _of_numbers(numbers: str, time: re.Match[str] | None) -> Said:
    if form := _YEAR_FIRST.fullmatch(numbers):
        return _date(time, *(each for each in form.groups() if each and each.isdecimal()))
    if form := _MONTH_YEAR.fullmatch(numbers):
        return _date(time, form[2], form[1])
    if not (form := _YEAR_LAST.fullmatch(numbers)):
        return None
    one, mark, two, year = form.groups()
    by_day = by_month = None
    with suppress(ValueError):
        by_day = _date(time, year, two, one)
    with suppress(ValueError):
        by_month = _date(time, year, one, two)
    if by_day and by_month:
        return by_day if by_day == by_month else Either(by_day, by_month, mark)
    return (by_day and by_day._replace(shows=(mark, "day"))) or (by_month and by_month._replace(shows=(mark, "month")))


def _named(said: str, time: re.Match[str] | None) -> Date | None:
    """A date with the name of a month; its numbers may come in any order, as only the year has four digits."""
    months, weekdays, others = _words()
    tokens = [folded(each) for each in _TOKENS.split(said) if each]
    numbers, names = [each for each in tokens if each.isdecimal()], [each for each in tokens if not each.isdecimal()]
    years, days = [each for each in numbers if len(each) == 4], [each for each in numbers if len(each) <= 2]
    inside = [each for each in names if each in months]
    certain = [each for each in inside if each not in weekdays] or inside  # "mar" is March, and martes
    if len(years) != 1 or len(days) > 1 or len(years + days) < len(numbers) or len(certain) != 1:
        return None
    if {*names} - {*certain} - weekdays - others:
        return None
    return _date(time, years[0], str(months[certain[0]]), *days)
