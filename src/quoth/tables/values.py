"""What a quotation says as a value: a number, an amount of money, a date, a duration, yes or no, one of several.

A value is given only where the quotation leaves no doubt: one number, one date. A range, a day and a month that may be
either, "10 (twelve)" have none. What stands in brackets is a remark, or says the same number again.
Knows: digits as English texts group them, English words for numbers and units. Does not know: questions or documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from quoth.corpus.dates import Orders, read, settled
from quoth.ner.dates import find_dates

LONGEST = 200
"""Characters of a quotation whose value is looked for; a list may be longer."""
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: n for n, word in enumerate(_ONES.split())}
_SMALL |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "lakh": 10**5, "crore": 10**7}
_SHORT = {"bn": 10**9, "tn": 10**12, "mn": 10**6, "mio": 10**6, "k": 10**3, "m": 10**6, "b": 10**9}
_UNITS_TOO = {"k", "m", "b"}
"""Factors of money only: 5 m is five metres otherwise."""
_WORD = "|".join([*_SMALL, "hundred", *_LARGE])
_DIGITS = r"\d{1,3}(?P<mark>[,'’\u00a0\u2009\u202f])\d{3}(?:(?P=mark)\d{3})*(?!\d)(?:\.\d+)?"
_DIGITS += r"|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?|\d+(?:[.,]\d+)?"
_NUMBER = re.compile(
    rf"(?<![^\W_])(?<![^\W\d_][-–])(?P<digits>[+−-]?(?<![\d.,])(?:{_DIGITS}))(?![\d.,]*\d)(?![^\W\d_]+\d)"
    rf"(?:\s*-?\s*(?P<large>{'|'.join(_LARGE)})s?\b|\s?(?P<short>{'|'.join(_SHORT)})\b)?"
    rf"|\b(?P<words>(?:{_WORD})(?:(?:[\s-]+and)?[\s-]+(?:{_WORD}))*)\b",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3})(?:\.\d+)?")
_MINUS = re.compile(r"\b(?:minus|negative)\s+(?=\S?\d)", re.IGNORECASE)
_SHARES = "half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?"
_BESIDE = re.compile(
    rf"[\s-]+(?:and\s+)?(?:an?\s+)?(?:{_SHARES}|dozens?|scores?|hundreds?)\b|-(?:first|second|third)\b", re.IGNORECASE
)
"""What makes another number of the one before: "two and a half", "two dozen", "twenty-first"."""
_VAGUE = re.compile(rf"\b(?:{_SHARES}|twice|once|several|few|couple)\b", re.IGNORECASE)
_REMARK = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_CODES = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP "
    "CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF "
    "IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD "
    "MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB "
    "RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU "
    "UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG"
)
"""ISO 4217."""
_SIGNS = {"US$": "USD", "U.S.$": "USD", "CA$": "CAD", "C$": "CAD", "A$": "AUD", "AU$": "AUD", "NZ$": "NZD"}
_SIGNS |= {"HK$": "HKD", "S$": "SGD", "R$": "BRL", "€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "₽": "RUB"}
_SIGNS |= {"₺": "TRY", "₴": "UAH", "₪": "ILS", "₫": "VND", "₦": "NGN", "฿": "THB", "$": "$", "¥": "¥"}
"""Signs of currencies. Which dollar or yen is meant, a sign alone does not say."""
_NAMES = {r"(?:US|U\.S\.) dollars?": "USD", r"dollars?": "$", r"euros?": "EUR", r"pounds? sterling": "GBP"}
_NAMES |= {r"Swiss francs?": "CHF", r"(?:Japanese )?yen": "JPY", r"yuan|renminbi": "CNY", r"(?:Indian )?rupees?": "INR"}
_CURRENCY = re.compile(
    "|".join(
        [
            *(rf"(?<![A-Za-z]){re.escape(each)}" for each in sorted(_SIGNS, key=len, reverse=True)),
            rf"(?<![A-Za-z])(?:{_CODES.replace(' ', '|')})(?![A-Za-z])",
            *(rf"\b(?i:{each})\b" for each in _NAMES),
        ]
    )
)
_SIGNED = re.compile(rf"(?<![\w])([+−-])({_CURRENCY.pattern})\s?(?=\d)")
_UNITS = {"year": "0Y", "yr": "0Y", "month": "1M", "week": "2W", "wk": "2W", "day": "3D", "hour": "4H", "hr": "4H"}
_UNITS |= {"minute": "5M", "min": "5M", "second": "6S", "sec": "6S"}
"""The place of a unit in a duration, the longest first, and its sign there."""
_UNIT = re.compile(rf"[\s-]*(?:calendar\s+)?({'|'.join(_UNITS)})s?\b\.?", re.IGNORECASE)
_PER = re.compile(r"(\d\s+[^\d/]*)(?:/|\bper )1[0,]*(?![\d/])")
"""What a rate is of: 12.3 deaths/1,000 births are 12.3."""
_ONE = re.compile(rf"\ban?\s+(?=(?:{'|'.join(_UNITS)})\b)", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,]*(?:and\s*)?", re.IGNORECASE)
_ISO = re.compile(r"P(?=.*\d)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?")
_TRUTH = {"yes": True, "true": True, "y": True, "☒": True, "☑": True, "no": False, "false": False, "n": False}
_TRUTH |= {"☐": False}
_BOX, _SAID = re.compile(r"([☒☑☐])\s*"), re.compile(r"[^\W_]+(?!\s*/|\.\s*\d)\b")
_DAY_OF = re.compile(r"\bday\s+of\b", re.IGNORECASE)
_OPEN = re.compile(r"\s*_{2,}")
"""A day that was to be filled in by hand."""
_AND = re.compile(r"(?:and|or|&)\s+", re.IGNORECASE)


def value_of(text: str, kind: str, choices: Sequence[str] = (), orders: Orders | None = None) -> Any:
    """What a quotation says, as JSON has it; None if it is no value of this kind, or not a certain one.

    A number, {"amount", "currency"}, a date or a duration as ISO 8601 writes it, True or False, a choice, a list of
    items; a text is itself. `orders` are those of day and month in the column.
    """
    text = re.sub(r"[ \t\r\n\f\v]+", " ", text).strip() if kind != "list" else text.strip()
    if not text or (len(text) > LONGEST and kind not in ("text", "list")):
        return None
    if kind == "choice":
        return choice_in(text, choices)
    return date_in(text, orders or {}) if kind == "date" else _READ[kind](text)


def items_of(text: str) -> list[str]:
    """The items of a list, as they stand in the quotation: between the highest of its marks."""
    mark = next((each for each in (r"[;•\n]", r",\s") if re.search(each, text)), "")
    parts = [each.strip(" \t\n-–*•.") for each in (re.split(mark, text) if mark else [text])]
    if not any(_AND.match(each) for each in parts):  # "Brazil, Trinidad and Tobago, and Peru" has its own
        parts[-1:] = re.split(rf"\s{_AND.pattern}", parts[-1], flags=re.IGNORECASE)
    return [each for each in (_AND.sub("", part, count=1) if _AND.match(part) else part for part in parts) if each]


def number_in(text: str) -> int | float | None:
    """The one number of a text."""
    found = _told(_PER.sub(r"\1 ", _MINUS.sub("-", text)), money=False)
    return _plain(found[0][2]) if len(found) == 1 else None


def money_in(text: str) -> dict[str, Any] | None:
    """The one amount of a text, and its currency as far as the text says it: a code of ISO 4217, "$" or "¥"."""
    currencies = {_currency(each[0]) for each in _CURRENCY.finditer(text)}
    for sign in ("$", "¥"):  # "US$ 5 (five dollars)" says which
        currencies -= {sign} if len(currencies) > 1 else set()
    text = _PER.sub(r"\1 ", _MINUS.sub("-", text))
    found = _told(_CURRENCY.sub(" ", _SIGNED.sub(r" \2\1", text)), money=True)
    is_amount = currencies or _NUMBER.fullmatch(_without_remarks(text).strip())  # 5 % and 5 years are none
    if len(found) != 1 or len(currencies) > 1 or not is_amount:
        return None
    return {"amount": _plain(found[0][2]), "currency": min(currencies, default=None)}


def date_in(text: str, orders: Orders) -> str | None:
    """The one date of a text, as exact as it is said: 2024, 2024-05 or 2024-05-31."""
    text = _OPEN.sub("", _DAY_OF.sub("of", text))
    if date := settled(read(text), orders):
        return date.iso
    found = {text[each.start : each.end] for each in find_dates(text)}
    said = [date for each in found if (date := settled(read(each), orders))]
    return said[0].iso if len(found) == len(said) == 1 else None


def duration_in(text: str) -> str | None:
    """The one duration of a text, as ISO 8601 writes it: P3Y, P2Y6M, PT30M."""
    if _ISO.fullmatch(text):
        return text
    if _VAGUE.search(text):
        return None
    text = _ONE.sub("1 ", text)
    bare, parts, last = _without_remarks(text), list[tuple[str, str]](), 0
    for start, end, number in _told(text, money=False):
        unit = _UNIT.match(bare, end)
        if unit is None or number < 0 or (parts and not _BETWEEN.fullmatch(bare[last:start])):
            return None
        place, sign = _UNITS[unit[1].lower()][:1], _UNITS[unit[1].lower()][1:]
        parts.append((place, f"{_plain(number)}{sign}"))
        last = unit.end()
    places = [place for place, _ in parts]
    if not parts or places != sorted({*places}):
        return None
    days, clock = ("".join(said for place, said in parts if (place > "3") == late) for late in (False, True))
    return f"P{days}" + (f"T{clock}" if clock else "")


def truth_in(text: str) -> bool | None:
    """Whether a text says yes or no, in its first word; a box before such a word says whether it is meant. "N/A",
    "yes/no" and "No. 5" say neither."""
    box = _BOX.match(text)
    first = _SAID.match(text, box.end() if box else 0)
    said = _TRUTH.get(first[0].lower()) if first else None
    if box is None:
        return said
    if said is None:
        return _TRUTH[box[1]]
    return said if _TRUTH[box[1]] else None


def choice_in(text: str, choices: Sequence[str]) -> str | None:
    """The one of several that a text names; of "New York" and "York" the longer one."""
    left, found = f" {_words(text)} ", list[str]()
    for each in sorted(choices, key=len, reverse=True):
        if (said := f" {_words(each)} ").strip() and said in left:
            left = left.replace(said, " | ")
            found.append(each)
    return found[0] if len(found) == 1 else None


_READ: dict[str, Callable[[str], Any]] = {"text": str, "list": items_of, "number": number_in, "money": money_in}
_READ |= {"duration": duration_in, "yes/no": truth_in}


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def _currency(said: str) -> str:
    named = (code for name, code in _NAMES.items() if re.fullmatch(name, said, re.IGNORECASE))
    return _SIGNS.get(said) or next(named, said)


def _told(text: str, money: bool) -> list[tuple[int, int, Decimal]]:
    """The numbers of a text and where they are, without what is in brackets; none if one cannot be read, or a bracket
    that says a number in words again, or one in digits that words said, says another."""
    if any(
        each.isnumeric() and not each.isdecimal() and (not each.isdigit() or text[at - 1 : at].isdigit())
        for at, each in enumerate(text)
    ):
        return []  # ½, 10⁶, or the mark of a note
    bare = _without_remarks(text)
    found = [*_NUMBER.finditer(bare)] or [*_NUMBER.finditer(text)]
    told = list[tuple[int, int, Decimal]]()
    for each in found:
        if (number := _value(each, money)) is None or _BESIDE.match(bare, each.end()):
            return []
        is_unit = not money and each["short"] and each["short"].lower() in _UNITS_TOO
        told.append((each.start(), each.end("digits") if is_unit else each.end(), number))
    for remark in _REMARK.finditer(text):
        again = _NUMBER.fullmatch(_CURRENCY.sub(" ", remark[1]).strip())
        before = [at for at, each in enumerate(found) if each.end() <= remark.start()]
        is_other = again and before and bool(again["words"]) != bool(found[before[-1]]["words"])
        if again and is_other and _value(again, True) != told[before[-1]][2]:
            return []
    return told


def _without_remarks(text: str) -> str:
    return _REMARK.sub(lambda each: " " * len(each[0]), text)


def _value(found: re.Match[str], money: bool) -> Decimal | None:
    if found["words"]:
        return _of_words(re.findall(r"[a-z]+", found["words"].lower()))
    digits = re.sub(r"['’\s]", "", found["digits"]).replace("−", "-")
    factor = _LARGE.get((found["large"] or "").lower(), 1)
    if not money and found["short"] == "k":
        return None
    short = (found["short"] or "").lower()
    factor *= _SHORT.get(short, 1) if money or short not in _UNITS_TOO else 1
    if money and factor == 1 and re.fullmatch(r"[+-]?\d{1,3}\.\d{3}", digits):
        return None  # a point between thousands, or before three decimals?
    if digits.rfind(",") > digits.rfind(".") >= 0 or digits.count(".") > 1:
        digits = digits.replace(".", "").replace(",", ".")
    elif _GROUPED.fullmatch(digits):
        digits = digits.replace(",", "")
    elif re.search(r",\d{3}$", digits):
        return None
    return Decimal(digits.replace(",", ".")) * factor


def _of_words(words: Sequence[str]) -> Decimal | None:
    """A number in words. None for words that make none, or may be two ("five six", "five and six")."""
    total, part, least, last = 0, 0, 10**15, ""
    for word in words:
        is_open = last == "hundred" or last in _LARGE
        if word == "and":
            if not is_open:
                return None
            continue
        if word in _LARGE:
            if not part or _LARGE[word] >= least:
                return None
            total, part, least = total + part * _LARGE[word], 0, _LARGE[word]
        elif word == "hundred":
            if not 0 < part < 10:
                return None
            part *= 100
        else:
            room = 100 if is_open or not last else 10 if last and last in _TENS else 0
            if _SMALL[word] >= room or (last and not _SMALL[word]):
                return None
            part += _SMALL[word]
        last = word
    return Decimal(total + part)


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
