"""How the methods that people call take one text or several, and tell of a misspelt option.

Knows signatures. Does not know what the methods do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from quoth.errors import nearest
from quoth.predictors.options import described

P = ParamSpec("P")
_Model = TypeVar("_Model")
_Answer = TypeVar("_Answer")
_Model_contra = TypeVar("_Model_contra", contravariant=True)


OPTIONS = "{options}"
"""Stands in a docstring for the lines of `FillOptions`."""


class OneOrMany(Protocol[P, _Answer]):
    """A method of a model, bound: one text in, one answer out; several in, a list out."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, text: str, /, *args: P.args, **options: P.kwargs
    ) -> _Answer: ...
    @overload
    def __call__(self, text: Sequence[str], /, *args: P.args, **options: P.kwargs) -> list[_Answer]: ...


class Method(Protocol[_Model_contra, P, _Answer]):
    """`OneOrMany` before it is bound to its model."""

    def __get__(self, model: _Model_contra, kind: type | None = None, /) -> OneOrMany[P, _Answer]: ...


def one_or_many(
    method: Callable[Concatenate[_Model, Sequence[str], P], list[_Answer]],
) -> Method[_Model, P, _Answer]:
    """A method that takes texts, and gives a list of as many, as one that takes a text as well.

    A keyword that the method does not have is a TypeError which names the method and the nearest keyword.
    """
    shape = inspect.signature(method)
    _, first, *others = shape.parameters

    @wraps(method)
    def run(model: Any, *given: Any, **options: Any) -> Any:
        for name in options:
            if name not in (first, *others):
                known = nearest(name, others) or f"; it takes {', '.join(others)}"
                raise TypeError(f"{method.__qualname__}() has no option {name!r}{known}")
        if not given and first in options:
            given = (options.pop(first),)
        call: Any = method
        if given and isinstance(given[0], str):
            return call(model, [given[0]], *given[1:], **options)[0]
        return call(model, *(list(each) if i == 0 else each for i, each in enumerate(given)), **options)

    public: Any = run
    public.__signature__ = _public(shape, first)
    text = inspect.cleandoc(method.__doc__ or "")
    defaults = {each.name: each.default for each in shape.parameters.values()}
    run.__doc__ = text.replace(OPTIONS, described("    ", **defaults)) if OPTIONS in text else text
    return cast("Method[_Model, P, _Answer]", run)


def _public(shape: inspect.Signature, first: str) -> inspect.Signature:
    """The method's signature as it is called: a text or several, an answer or a list of answers."""
    parameters = [
        each.replace(annotation="str | Sequence[str]") if each.name == first else each
        for each in shape.parameters.values()
    ]
    many = str(shape.return_annotation)
    one = many.removeprefix("list[").removesuffix("]")
    return shape.replace(parameters=parameters, return_annotation=f"{one} | {many}")
