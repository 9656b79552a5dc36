"""Dates by rule: what is one, to the character, and what is none."""

import re

import pytest

from quoth.ner.dates import DATE, find_dates, longest
from quoth.records import TaggedSpan

MARKED = [
    "He was born on [12 March 1999] in Rome.",
    "It opened on [March 12, 1999], and again on [March 12th].",
    "[March 1999] was cold; [June–July 1916] was not; nor was [the] [May of 1968].".replace("[the]", "the"),
    "In the [1990s] and the [1980's], the mid-[1970s] too.",
    "the [19th century], the [nineteenth century], the [5th century BC], a [17th-century] poet",
    "the [18th and 19th centuries]; the [Twentieth century]; the [first century AD]",
    "[2021-03-04] and [04/03/2021], at 12:30; [24.12.1999].",
    "World War II ([1939–1945]) and the other ([1914-18]); the season of [1997/98]",
    "in [1999], [2000] and [2001].",
    "[1066], and all that; Orwell's [1984].",
    "the [summer of 1969]; [Winter 2004]; [fall 1812]",
    "[44 BC]; [AD 79]; [300-200 BCE]; [480 B.C.] at Thermopylae",
    "[Sept. 11, 2001]; [Jan 5]; [5 Jan. 2000]; [DECEMBER 1941]",
    "[Monday, 5 May 2003] and [Friday, October 3]",
    "[30 June – 2 July 1916]; [12–14 March]; [May 3-5, 1990]",
    "the [3rd of May] and the [4th of July, 1776]",
    "[April] came before [September].",
    "(born [1950]; died [2 May 2011], aged 60)",
    "2 of the 14 came on [1 May].",
    "1,999 copies, 1999.5 or $1500, 1200 kg or 2000 people, 1500 m",
    "phone 555-1999, version 2.1999, A1999, #1999, 1999%, 3,1999",
    "You may march in May; in March they may spring and fall.",
    "on Friday, last week, tomorrow; 12th, 2nd place",
    "32 Marching bands, the 101st, year 2150, 0999, 12345",
    "March on Rome; Mayor May; Augustus; Junebug; Septembrists",
    "9:1999 and 1999:9 and 12/1999/5",
    "",
]


@pytest.mark.parametrize("marked", MARKED)
def test_dates_stand_where_they_are_marked(marked: str) -> None:
    wanted = re.findall(r"\[(.*?)\]", marked)
    text = re.sub(r"[\[\]]", "", marked)
    found = find_dates(text)
    assert [text[each.start : each.end] for each in found] == wanted
    assert {each.label for each in found} <= {DATE}


def test_places_are_characters_of_the_text() -> None:
    text = "🙂 Αθήνα, 12\u00a0March\n1999: café 北京 2008年"
    assert [(each.start, each.end) for each in find_dates(text)] == [(9, 22)]
    assert text[9:22] == "12\u00a0March\n1999"


def test_of_two_spans_that_overlap_the_longer_stays() -> None:
    name, date, inner = TaggedSpan(0, 9, "MISC"), TaggedSpan(5, 9, "DATE"), TaggedSpan(9, 12, "PER")
    assert longest([date, name, inner]) == [name, inner]
    as_long = TaggedSpan(5, 9, "ORG")
    assert longest([as_long, date]) == [as_long]
    assert longest([]) == []
