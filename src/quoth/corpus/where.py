"""Conditions on documents' metadata, which select the documents to search.

    condition   all of: not, and, or, ( ); at its end, or alone: once
    test        FIELD = 'text' | != < <= > >= | in ('a', 'b') | between 1 and 5 | like '%part%' | is null
                (not in, not between, not like, is not null)

`once` keeps the first of the documents with the same text, ignoring case and white space, that meet the rest.

A field is a key of the metadata, `id` or `title`; `a.b` is b of a; a name with other characters is put into double
quotes. Text, numbers, true and false are compared with their like; a text that spells a number is compared with numbers
as one. A date (`quoth.corpus.dates`: 2024, 2024-05-31T12:00, 31 May 2024, 31.12.2024) is compared with dates, as far as
both go: a value that is not one passes no test of order, and is counted. Of a list, one element suffices. A field that
a document lacks passes no test but `is null`. `like` knows % and _ and ignores case.

Knows the grammar and what a test means. Does not know corpora: it is given records.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from quoth.corpus.dates import Date, Either, Orders, read, settled
from quoth.errors import InputError, brief, nearest

EXAMPLE = "date >= '2024-01-01' and source in ('minutes', 'letters')"
_BARE_DATE = re.compile(r"(?<!['\"\d-])\d{4}-\d{2}(?:-\d{2})?(?!['\"\d-])")
DEEPEST, LONGEST = 50, 4000
Record = Mapping[str, Any]
Value = str | int | float | bool
Holds = Callable[[Record], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*') | (?P<number>[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<name>[^\W\d][\w.-]*|"[^"]+") | (?P<sign><=|>=|<>|!=|==?|<|>|\(|\)|,) | (?P<end>$))""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_ORDER = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ALIASES = {"==": "=", "<>": "!="}
_KEYWORDS = ("and", "or", "not", "in", "between", "like", "is", "null", "true", "false")


@dataclass
class Test:
    """A comparison of a field with values; remembers what it met."""

    name: str
    values: Sequence[Value]
    passes: "Callable[[Any, Callable[[], Orders]], bool | None]"
    """Given the orders of the field's dates, should it need them; None for a value that cannot be compared."""
    is_order: bool = False
    unlike: bool | None = None
    """The outcome for a text that is not a date, if the values asked for are; None: it cannot be compared."""
    orders: Callable[[], Orders] = dict
    strange: Any = None
    compared: bool = False
    num_strange: int = 0
    num_compared: int = 0
    num_dates: int = 0
    """The last three: since `Condition.settle`; dates of tests that order them by letters."""
    has_letters: bool = False

    def __post_init__(self) -> None:
        self.is_of_dates = any(isinstance(each, str) and read(each) for each in self.values)
        self._is_of_letters = self.is_order and not self.is_of_dates and isinstance(self.values[0], str)

    def __call__(self, record: Record) -> bool:
        met = False
        for value in values_of(record, self.name):
            holds = self.passes(value, self.orders)
            if holds is None:
                self.strange = value if self.strange is None else self.strange
                self.num_strange += 1
                holds = bool(self.unlike)
            else:
                self.compared = True
                self.num_compared += 1
                if self._is_of_letters:
                    is_date = bool(read(value)) and not value.isdecimal()
                    self.num_dates, self.has_letters = self.num_dates + is_date, self.has_letters or not is_date
            met = met or holds
        return met

    def note(self) -> str:
        """What to say of a field of dates that has other values; "" if it has not, or if it is asked for one value that
        may be a number as well (room = '1204')."""
        if self.num_dates:
            compared = f"{self.num_dates:,} of the values of `{self.name}` are dates"
            return f"{compared}, but are compared letter by letter, because {self.values[0]!r} is not one"
        is_asked = self.unlike is None or (self.num_compared and not all(str(each).isdecimal() for each in self.values))
        if not (self.num_strange and self.is_of_dates and is_asked):
            return ""
        are = "value of `{}` is not a date" if self.num_strange == 1 else "values of `{}` are not dates"
        either = isinstance(self.strange, str) and isinstance(read(self.strange), Either)
        which = ", of which no other value shows whether the day or the month comes first" if either else ""
        return f"{self.num_strange:,} {are.format(self.name)}, such as {brief(self.strange)}{which}"


@dataclass
class Condition:
    """A condition that was read. Called with a record, it says whether that meets it, and remembers its fields. `once`
    says that of documents with the same text only the first is kept."""

    text: str
    holds: Holds
    names: list[str]
    once: bool = False
    tests: list[Test] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def __call__(self, record: Record) -> bool:
        self.known.update(name for name, _ in fields_in(record))
        return self.holds(record)

    def settle(self, orders: Callable[[str], Orders]) -> None:
        """Before the records of a corpus: where the orders of dates are known, by field, should one need them."""
        for test in self.tests:
            test.orders, test.num_strange, test.num_compared, test.num_dates = partial(orders, test.name), 0, 0, 0

    def notes(self) -> list[str]:
        """Which fields of the corpus have values that are not dates, and are compared with dates."""
        return [*{test.name: note for test in self.tests if (note := test.note())}.values()]

    def check(self) -> None:
        """Raises InputError for a field that no record had, or none had in a form that can be compared."""
        for name in self.names:
            if self.known and name not in self.known:
                there = ", ".join(sorted(self.known)[:20])
                raise InputError(
                    f"where: no document has a field {name!r}{nearest(name, self.known)}; there are: {there}"
                )
        for test in self.tests:
            if test.num_dates and not test.has_letters:
                raise InputError(f"where: {test.name} has dates, {test.values[0]!r} is not one; write it as 2024-05-31")
            is_told = test.strange is not None and not (test.unlike is not None and isinstance(test.strange, str))
            if is_told and not test.compared:
                kind = _kind(test.strange)
                if test.is_of_dates:
                    raise InputError(
                        f"where: {test.name} has {kind}, such as {brief(test.strange)}, and no date that can be "
                        f"compared with {test.values[0]!r}; write its dates as 2024-05-31, or use like"
                    )
                raise InputError(
                    f"where: {test.name} has {kind}, such as {brief(test.strange)}, which cannot be compared with "
                    f"{test.values[0]!r}; compare it with {kind}"
                )


def parse(text: str) -> Condition:
    """Read a condition. Raises InputError that names the place."""
    if not isinstance(text, str):
        raise InputError(f'where is {text!r}; it must be a text, such as "year >= 2020"')
    return _Parser(text).condition()


def dated(last: str) -> str:
    """The condition that a document has no later date. Raises InputError if `last` is no date."""
    if not isinstance(read(last), Date):
        raise InputError(f"{last!r} is not a date; write 2024, 2024-05, 2024-05-31 or 2024-05-31T12:00")
    spelled = last.replace("'", "''")
    return f"date <= '{spelled}' or date is null"


def values_of(record: Record, name: str) -> list[Any]:
    """What a record has as a field: one value, the elements of a list, or nothing."""
    found: Any = record.get(name)
    if found is None and "." in name:
        found = record
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    return [each for each in found if each is not None] if isinstance(found, list) else [] if found is None else [found]


def fields_in(record: Record) -> Iterator[tuple[str, Any]]:
    """The fields of a record as a condition finds them (`values_of`), each once; those of records inside by `a.b`."""
    for name, value in record.items():
        if not isinstance(value, dict):
            if value is not None:
                yield name, value
        elif "." not in name:
            for inner, one in _inside(value, f"{name}."):
                if record.get(inner) is None:
                    yield inner, one


def _inside(record: Record, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if "." in name or value is None:
            continue
        if isinstance(value, dict):
            yield from _inside(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._names, self._tests = text, 0, list[str](), list[Test]()
        if len(text) > LONGEST:
            raise InputError(f"where has {len(text):,} characters; at most {LONGEST:,} are read")
        self._next()

    def condition(self) -> Condition:
        alone = self._is_once()
        holds = (lambda _: True) if alone else self._either(0)
        once = alone or self._is_once()
        if once:
            self._next()
        if self._kind != "end":
            self._fail("and, or, once or the end")
        return Condition(self._text, holds, self._names, once, self._tests)

    def _is_once(self) -> bool:
        """Whether the last word is next, and is not a field."""
        return self._kind == "name" and self._word.lower() == "once" and not self._text[self._at :].strip()

    def _next(self) -> None:
        self._place = len(self._text) - len(self._text[self._at :].lstrip())
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            self._kind, self._word = "", self._text[self._place : self._place + 1]
            self._fail("a field, a value or a sign")
        self._kind, self._word, self._at = match.lastgroup, match[match.lastgroup], match.end()
        if self._kind == "name" and self._word.lower() in _KEYWORDS:
            self._kind, self._word = "keyword", self._word.lower()

    def _fail(self, wanted: str) -> NoReturn:
        found = repr(self._word) if self._kind != "end" else "the end"
        bare = _BARE_DATE.search(self._text)
        remedy = f"write '{bare[0]}', with its marks" if bare else f"for example: {EXAMPLE}"
        raise InputError(f"where: at character {self._place + 1}, {found} instead of {wanted}; {remedy}")

    def _take(self, word: str) -> bool:
        """Whether this word comes next, which is read then."""
        if self._word == word and self._kind in ("keyword", "sign"):
            self._next()
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._take(word):
            self._fail(f"{word!r}")

    # max and min, not any and all: every test meets every record, so that it knows whether it could compare any.
    def _either(self, depth: int) -> Holds:
        if depth > DEEPEST:
            raise InputError(f"where is nested more than {DEEPEST} deep; use fewer brackets")
        parts = [self._both(depth)]
        while self._take("or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else lambda record: max(part(record) for part in parts)

    def _both(self, depth: int) -> Holds:
        parts = [self._not(depth)]
        while self._take("and"):
            parts.append(self._not(depth))
        return parts[0] if len(parts) == 1 else lambda record: min(part(record) for part in parts)

    def _not(self, depth: int) -> Holds:
        if self._take("not"):
            denied = self._not(depth + 1) if depth < DEEPEST else self._either(depth + 1)
            return lambda record: not denied(record)
        if self._take("("):
            inner = self._either(depth + 1)
            self._need(")")
            return inner
        return self._test()

    def _test(self) -> Holds:
        if self._kind != "name":
            self._fail("a field")
        name = self._word.strip('"')
        self._names.append(name)
        self._next()
        if self._take("is"):
            denied = self._take("not")
            self._need("null")
            return lambda record: bool(values_of(record, name)) == denied
        denied = self._take("not")
        test = self._compared(name, denied)
        self._tests.append(test)
        if not denied:
            return test
        return lambda record: bool(values_of(record, name)) and not test(record)

    def _compared(self, name: str, denied: bool) -> Test:
        sign = _ALIASES.get(self._word, self._word)
        if self._kind == "sign" and sign in _ORDER and not denied:
            self._next()
            value = self._value()

            def ordered(found: Any, orders: Callable[[], Orders]) -> bool | None:
                order = compare(found, value, orders)
                return None if order is None else _ORDER[sign](order, 0)

            return Test(name, [value], ordered, sign not in ("=", "!="), _unlike([value], sign))
        if self._take("in"):
            self._need("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._need(")")

            def among(found: Any, orders: Callable[[], Orders]) -> bool | None:
                found_orders = {compare(found, each, orders) for each in values}
                return None if found_orders == {None} else 0 in found_orders

            return Test(name, values, among, False, _unlike(values, "="))
        if self._take("between"):
            least = self._value()
            self._need("and")
            most = self._value()

            def inside(found: Any, orders: Callable[[], Orders]) -> bool | None:
                low, high = compare(found, least, orders), compare(found, most, orders)
                return None if low is None or high is None else low >= 0 >= high

            return Test(name, [least, most], inside, True)
        if self._take("like"):
            form = self._value(compared=False)
            if not isinstance(form, str):
                self._fail("a text after like")
            pattern = _pattern(form)
            return Test(
                name, [form], lambda found, _: bool(pattern.fullmatch(found)) if isinstance(found, str) else None
            )
        self._fail("=, !=, <, <=, >, >=, in, between, like or is")

    def _value(self, compared: bool = True) -> Value:
        kind, word = self._kind, self._word
        if not (kind in ("text", "number") or word in ("true", "false")):
            self._fail("a value: 'text', a number, true or false")
        self._next()
        if kind == "text":
            text = word[1:-1].replace("''", "'")
            if compared and isinstance(said := read(text), Either):
                choice = f"'{said.day.iso}' or '{said.month.iso}'"
                raise InputError(f"where: '{text}' may have the day or the month first; write {choice}, or use like")
            return text
        return word == "true" if kind == "keyword" else _spelled(word)


def compare(found: Any, value: Value, orders: Callable[[], Orders] = dict) -> int | None:
    """-1, 0 or 1 as `found` is below, equal to or above a value; None if they cannot be compared. `orders` are those of
    the dates of its field."""
    if isinstance(value, bool):
        spelled = {"true": True, "false": False}.get(found.lower()) if isinstance(found, str) else found
        return None if not isinstance(spelled, bool) else spelled - value
    if not isinstance(value, str):
        number = number_of(found)
        return None if number is None else (number > value) - (number < value)
    if isinstance(date := read(value), Date):
        # A number may be a year, or a day such as 20240531; seconds since 1970 have ten digits.
        text = str(found) if isinstance(found, int) and found < 10**8 else found
        said = read(text) if isinstance(text, str) else None
        other = settled(said, orders()) if isinstance(said, Either) else said
        return None if other is None else other.order(date)
    return (found > value) - (found < value) if isinstance(found, str) else None


def _unlike(values: Sequence[Value], sign: str) -> bool | None:
    """`Test.unlike` of a comparison: any text may be asked whether it is a date of these, and is another."""
    is_date = any(isinstance(each, str) and read(each) for each in values)
    return {"=": False, "!=": True}.get(sign) if is_date else None


def _pattern(form: str) -> re.Pattern[str]:
    """What `like` looks for. The first place of a part between two % serves as well as any later one, so that it is
    final (an atomic group): otherwise a few % take time exponential in their number."""
    first, *others = ("".join("." if c == "_" else re.escape(c) for c in part) for part in form.split("%"))
    if others:
        *between, last = others
        first += "".join(f"(?>.*?{part})" for part in between) + f".*{last}"
    return re.compile(first, re.IGNORECASE | re.DOTALL)


def number_of(found: Any) -> int | float | None:
    """A number, also one that a text spells; NaN, which `float` reads, would be equal to every number."""
    if isinstance(found, str):
        return _spelled(found) if len(found) <= LONGEST and _NUMBER.fullmatch(found) else None
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def date_of(found: Any) -> str | None:
    """The date that a text says by itself, in ISO form; 03/04/2024 is none: it may be in April."""
    said = read(found) if isinstance(found, str) else None
    return said.iso if isinstance(said, Date) else None


def _spelled(number: str) -> int | float:
    """Whole numbers exactly, as ids with more digits than a float keeps."""
    return int(number) if number.strip().lstrip("+-").isdecimal() else float(number)


def _kind(value: Any) -> str:
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "numbers"
