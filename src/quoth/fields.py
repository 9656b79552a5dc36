"""The fields of options and settings: type, bounds and meaning, declared once and checked here.

`top_k: Annotated[int, Ge(1), "Number of answers."] = 5` has a field's type, bounds, meaning and default. Bounds are
those of `annotated_types`, and `Has`.
Knows: types, bounds, and how an error names them. Does not know: any field.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from numbers import Integral, Real
from textwrap import fill
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen

from quoth.errors import InputError, brief, nearest

MOST = 2**31 - 1
"""A bound that an error names only if it is exceeded."""

_UNIONS = (Union, UnionType)
_Record = TypeVar("_Record")
_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Has:
    """A text must contain this."""

    part: str


@dataclass(frozen=True, slots=True)
class Such:
    """An example value for a field whose default is None."""

    value: Any


_BOUNDS: dict[type, tuple[Callable[[Any, Any], bool], str]] = {
    Ge: (lambda value, bound: value >= bound.ge, "{0.ge} or more"),
    Gt: (lambda value, bound: value > bound.gt, "above {0.gt}"),
    Le: (lambda value, bound: value <= bound.le, "at most {0.le}"),
    Lt: (lambda value, bound: value < bound.lt, "below {0.lt}"),
    MinLen: (lambda value, bound: len(value) >= bound.min_length, "not empty"),
    Has: (lambda value, bound: bound.part in value, "with {0.part}"),
}
"""For each kind of bound: whether a value is within it, and its words."""

Count = Annotated[int, Ge(1)]
Number = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
ShareBelow1 = Annotated[float, Ge(0), Lt(1)]


class Field(NamedTuple):
    """A field of a record: its type with its bounds, what it means, its default, and whether it allows a value."""

    name: str
    kind: Any
    meaning: str
    default: Any
    fits: Callable[[Any], bool]


@cache
def fields_of(record: Any) -> dict[str, Field]:
    """The fields of a record, by name. One that is declared again, for another default, keeps its meaning."""
    meanings: dict[str, str] = {}
    for owner in reversed(record.__mro__):
        for name, hint in get_type_hints(owner, include_extras=True).items():
            meanings[name] = next((mark for mark in marks(hint) if isinstance(mark, str)), meanings.get(name, ""))
    hints = get_type_hints(record, include_extras=True)
    defaults = {each.name: None if each.default is MISSING else each.default for each in fields(record)}
    return {
        name: Field(name, hints[name], meanings[name], default, _test(hints[name]))
        for name, default in defaults.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Base of records whose fields are checked on construction. Raises InputError."""

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Raises InputError if individually valid values do not go together."""


def check_fields(record: Any, prefix: str = "") -> None:
    """Raises InputError if a field's value is not allowed. JSON lists and objects become tuples and records."""
    kind: Any = type(record)
    for name, field in fields_of(kind).items():
        value = getattr(record, name)
        if not field.fits(value):
            object.__setattr__(record, name, checked(f"{prefix}{name}", value, field.kind, field.default))


def checked(name: str, value: Any, kind: Any, default: Any = None) -> Any:
    """`value` if this type allows it. Raises InputError: the value, what is allowed, and what to write instead."""
    if isinstance(value, Mapping) and hasattr(kind, "from_dict"):
        try:
            return kind.from_dict(value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    given, value = value, _as_tuples(value)
    if _test(kind)(value):
        return value
    such = next((mark.value for mark in marks(kind) if isinstance(mark, Such)), default)
    none = "None" if default is not None else "left out" if such is None else ""
    words = _words(value, kind, none)
    if isinstance(value, str) and "a list" in words:
        remedy = f"; write [{value!r}]"
    elif "one of" in words:
        remedy = nearest(str(value), words.split("one of ")[1].split(", "))
    else:
        remedy = "" if such is None or isinstance(such, (bool, tuple)) else f"; try {name}={such!r}"
    raise InputError(f"{name} is {brief(given)}; it must be {words}{remedy}")


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def described(record: type[_Record]) -> type[_Record]:
    """A record whose `help` lists every field's type without bounds, meaning and default."""
    of: Any = record
    known, shape = fields_of(of), inspect.signature(of.__init__)
    taken = [
        each.replace(annotation=spelled(known[each.name].kind)) if each.name in known else each
        for each in shape.parameters.values()
    ]
    record.__doc__ = "\n".join([inspect.cleandoc(record.__doc__ or ""), "", "Args:", *lines_of(of).values()])
    of.__init__.__signature__ = shape.replace(parameters=taken)
    return record


def lines_of(record: Any) -> dict[str, str]:
    """The line under "Args" of every field that has a meaning, by its name."""
    open_ = None if hasattr(record, "from_dict") else "the model's"
    return {
        name: fill(
            f"{name} ({spelled(field.kind)}): {told(field, open_)}",
            width=112,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, field in fields_of(record).items()
        if field.meaning
    }


def told(field: Field, open_: str | None) -> str:
    """A field's meaning and, unless the meaning mentions it, its default; `open_` stands for an unset one."""
    if "default" in field.meaning.lower():
        return field.meaning
    if open_ is not None and field.default in (None, "default"):
        shown = open_
    else:
        shown = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
    return f"{field.meaning} Default: {shown}."


def documented(record: Any) -> Callable[[_Method], _Method]:
    """Gives the docstring of a method a line under "Args" for each field of a record that it takes."""

    def with_lines(method: _Method) -> _Method:
        method.__doc__ = with_options(method.__doc__, inspect.signature(method).parameters, record)
        return method

    return with_lines


def with_options(text: str | None, names: Iterable[str], record: Any) -> str:
    """A docstring whose "Args" has a line for each of these names: its own, or else that of the record's field."""
    head, mark, rest = inspect.cleandoc(text or "").partition("\nArgs:\n")
    own, gap, rest = rest.partition("\n\n")
    lines = lines_of(record) | {line.split()[0].rstrip(":"): line for line in re.split(r"\n(?=    \w)", own) if line}
    shown = "\n".join(lines[name] for name in names if name in lines)
    return f"{head}{mark}{shown}{gap}{rest}"


def spelled(kind: Any) -> str:
    """A type as written in code, without its bounds."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return spelled(inner[0])
    if origin in _UNIONS:
        return " | ".join(map(spelled, inner))
    if origin is Literal:
        return " | ".join(f'"{each}"' if isinstance(each, str) else repr(each) for each in inner)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(spelled, inner))}]"
    return {NoneType: "None", ...: "..."}.get(kind) or str(kind.__name__)


def marks(kind: Any) -> tuple[Any, ...]:
    """What `Annotated` adds to a type."""
    return kind.__metadata__ if get_origin(kind) is Annotated else ()


@cache
def _test(kind: Any) -> Callable[[Any], bool]:
    """Whether a value is of a type and within its bounds."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        fits, bounds = _test(inner[0]), [(_BOUNDS[type(each)][0], each) for each in inner[1:] if type(each) in _BOUNDS]
        return lambda value: fits(value) and all(keeps(value, bound) for keeps, bound in bounds)
    if origin in _UNIONS:
        tests = [_test(each) for each in inner]
        return lambda value: any(fits(value) for fits in tests)
    if origin is Literal:
        return lambda value: any(type(value) is type(each) and value == each for each in inner)
    if origin is tuple and inner[-1] is not ...:
        tests = [_test(each) for each in inner]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(tests)
            and all(map(lambda fits, each: fits(each), tests, value))
        )
    if origin in (tuple, Collection):
        fits = _test(inner[0])
        return lambda value: isinstance(value, origin) and not isinstance(value, str) and all(map(fits, value))
    if kind is int:
        return lambda value: isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return lambda value: isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    return lambda value: isinstance(value, origin or kind)


def _words(value: Any, kind: Any, none: str) -> str:
    """What a type allows; of a number only its bounds if the value is one. `none` are the words for None, if any."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = _bounds(value, inner[1:])
        number = isinstance(value, (int, float)) and _test(inner[0])(value)
        what = "" if number and bounds else _words(value, inner[0], none)
        return ", ".join(filter(None, (what, bounds)))
    if origin in _UNIONS:
        parts = [_words(value, each, none) for each in inner if each is not NoneType]
        *others, last = [*parts, none] if none and NoneType in inner else parts
        return f"{', '.join(others)}, or {last}" if others else last
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}" if len(inner) > 1 else repr(inner[0])
    if origin is tuple and inner[-1] is not ...:
        return f"a list of {len(inner)} numbers"
    if origin in (tuple, Collection):
        item = get_args(inner[0])[0] if get_origin(inner[0]) is Annotated else inner[0]
        several = "lists of two numbers" if get_origin(item) is tuple else "texts"
        return "a list of " + {int: "whole numbers", float: "numbers"}.get(item, several)
    if kind is float and isinstance(value, float):
        return "a finite number"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}.get(kind, "an object {}")


def _bounds(value: Any, bounds: tuple[Any, ...]) -> str:
    """The bounds in words; the technical one only if the value exceeds it."""
    named = [each for each in bounds if each != Le(MOST) or (isinstance(value, int) and value > MOST)]
    between = " and ".join(_BOUNDS[type(each)][1].format(each) for each in named if type(each) in _BOUNDS)
    return re.sub("^(.*) or more and at most (.*)$", r"from \1 to \2", between)
