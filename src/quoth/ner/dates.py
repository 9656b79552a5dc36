"""Date expressions in English text, by rule.

Knows: days, months, years from 1000 to 2099, ranges, decades, centuries, seasons with a year, ISO and numeric dates,
years BC and AD. Does not know: lower-case month names, weekdays alone, relative dates ("last week"), other languages.
March and May alone do not count as dates, since they are also words; a year alone does, unless a unit follows.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

from quoth.records import TaggedSpan

DATE = "DATE"
DATES_VERSION = 1
"""Incremented when the rules change, so that spans tagged by older rules are not mistaken for current ones."""

_LONG = "January|February|March|April|May|June|July|August|September|October|November|December"
_SHORT = "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
_ALONE = "January|February|April|June|July|August|September|October|November|December"
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_ORDINAL = (
    "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|"
    "fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|twenty-first)"
)
_UNITS = (
    "%|percent|per cent|k?m|k?g|mi|ft|lb|mph|hp|km²|kilometres?|kilometers?|metres?|meters?|miles?|feet|yards?|"
    "tons?|tonnes?|kilograms?|pounds|hectares|acres|square|dollars|euros|people|inhabitants|soldiers|men|troops|"
    "copies|votes|students|members|hours|minutes|seconds|years|days|times|points|degrees|million|billion"
)

_PARTS = {
    "month": rf"(?:{_LONG}|{_LONG.upper()}|(?:{_SHORT})\b\.?)",
    "alone": rf"(?:{_ALONE}|{_ALONE.upper()})",
    "day": r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?",
    "year": r"(?:1[0-9]{3}|20[0-9]{2})",
    "dash": r"\s?[-–—]\s?",
    "season": "(?:[Ss]pring|[Ss]ummer|[Aa]utumn|[Ff]all|[Ww]inter)",
    "weekday": _WEEKDAY,
    "nth": rf"(?:[1-9][0-9]?(?:st|nd|rd|th)|{_ORDINAL}|{_ORDINAL.title()})",
    "era": r"(?:BCE?|B\.C\.(?:E\.)?|CE|AD|A\.D\.)",
    "units": _UNITS,
}

_FORMS = (
    r"(?:{weekday},?\s)?{day}(?:{dash}{day})?(?:\sof)?\s{month}(?:,?\s{year})?",  # 12 March 1999, 3rd of May
    r"(?:{weekday},?\s)?{month}\s{day}(?:{dash}{day})?(?:,?\s{year})?",  # March 12, 1999; May 3-5
    r"{day}\s{month}{dash}{day}\s{month}(?:,?\s{year})?",  # 30 June – 2 July 1916
    r"{month}(?:{dash}{month})?(?:\sof|,)?\s{year}",  # March 1999, June–July 1916
    r"{alone}",
    r"{season}(?:\sof|,)?\s{year}",  # the summer of 1969
    r"{year}[-/.](?:0[1-9]|1[0-2])[-/.](?:0[1-9]|[12][0-9]|3[01])",  # 1999-03-12
    r"(?:3[01]|[12][0-9]|0?[1-9])(?P<mark>[-/.])(?:3[01]|[12][0-9]|0?[1-9])(?P=mark){year}",  # 12/03/1999
    r"{year}(?:(?:{dash}|/)(?:{year}|[0-9]{{2}}))?(?!\s?(?:{units})(?!\w))",  # 1999, 1939–45
    r"(?:1[0-9]|20)[0-9]0['’]?s(?:{dash}(?:1[0-9]|20)?[0-9]0['’]?s)?",  # the 1990s
    r"{nth}(?:(?:{dash}|\sand\s|\sor\s|\sto\s){nth})?[-\s]centur(?:y|ies)(?:\s{era})?",  # the 5th century BC
    r"[1-9][0-9]{{0,3}}(?:{dash}[1-9][0-9]{{0,3}})?\s{era}",  # 44 BC
    r"(?:AD|A\.D\.)\s[1-9][0-9]{{0,3}}",  # AD 79
)

_BEFORE = r"(?<![\w$€£¥#@])(?<![0-9][.,:/–—-])(?<![0-9A-Z][-/])"
_AFTER = r"(?![\w%])(?![.,:/][0-9])(?![-–—][0-9])"
_PATTERNS = tuple(re.compile(f"{_BEFORE}(?:{form.format(**_PARTS)}){_AFTER}") for form in _FORMS)


def find_dates(text: str) -> list[TaggedSpan]:
    """The date expressions of a text, in order; if two forms overlap, the longer one."""
    return longest(
        TaggedSpan(match.start(), match.end(), DATE) for pattern in _PATTERNS for match in pattern.finditer(text)
    )


def longest(spans: Iterable[TaggedSpan]) -> list[TaggedSpan]:
    """Spans without overlap, in order: of two that overlap, the longer one is kept; of equally long ones, the first
    given."""
    kept: list[TaggedSpan] = []
    for span in sorted(spans, key=lambda span: span.start - span.end):
        at = bisect_left(kept, span.start, key=lambda other: other.start)
        if (not at or kept[at - 1].end <= span.start) and (at == len(kept) or span.end <= kept[at].start):
            kept.insert(at, span)
    return kept
