"""What models have in common: one text in, one list out; many in, a list of lists.

Knows how arguments are spread over texts. Does not know any model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from quoth.errors import InputError

Texts = str | Sequence[str]
Exclude = Collection[int] | Sequence[Collection[int]]
_Found = TypeVar("_Found")


def of_each(text: Texts, many: Callable[[Sequence[str]], list[_Found]]) -> _Found | list[_Found]:
    """What `many` finds for a text, or for each of several."""
    return many([text])[0] if isinstance(text, str) else many(text)


def for_each(exclude: Exclude, count: int) -> list[Collection[int]]:
    """One collection of rows for each of `count` texts. Raises InputError where there are more or fewer."""
    nested: list[Collection[int]] = [each for each in exclude if isinstance(each, Collection)]
    if not nested:
        return [{int(each) for each in exclude if not isinstance(each, Collection)}] * count
    if len(nested) != count:
        raise InputError(f"exclude has {len(nested)} collections for {count} texts; give one for each")
    return nested


def check_questions(questions: Sequence[str]) -> None:
    """Raises InputError where one is empty."""
    if not all(question.strip() for question in questions):
        raise InputError("the question is empty; ask one, such as 'Who composed Carmen?'")
