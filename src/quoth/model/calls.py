"""Arguments of model calls: one text or several, rows to exclude, a blank in any form.

Knows: signatures and arguments, and that one text returns one list, several a list of lists. Does not know: what the
methods do.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral
from typing import Any

from quoth.errors import InputError, nearest
from quoth.fields import fields_of, spelled, with_options
from quoth.moved import current
from quoth.text.tokenizer import MASK, MASKS, around_mask

Exclude = Collection[int] | Sequence[Collection[int]]
MOST_BLANKS = 8
"""Maximum number of blanks of a text that are filled together."""
_OTHER_BLANKS = re.compile(r"<mask>|_{3,}")


def takes(record: Any) -> Callable[[Callable[..., list[Any]]], Callable[..., Any]]:
    """Lets a method that maps texts and a record of options to answers also take a single text, and the record's fields
    as keywords, which its docstring then describes.

    Editors and type checkers use the method's overloads, whose options are generated from the record
    (`model.keywords`). An unknown keyword raises a TypeError that names the method and the nearest keyword.
    """
    names = [*fields_of(record)]

    def decorated(method: Callable[..., list[Any]]) -> Callable[..., Any]:
        shape = _public(inspect.signature(method), record)
        _, first, *others = shape.parameters

        @wraps(method)
        def run(model: Any, *given: Any, **keywords: Any) -> Any:
            keywords = current(keywords, others)
            for name in keywords:
                if name not in (first, *others):
                    known = nearest(name, others) or f"; it takes {', '.join(others)}"
                    raise TypeError(f"{method.__qualname__}() has no option {name!r}{known}")
            _, asked, *_ = shape.bind(model, *given, **keywords).arguments.values()
            several = isinstance(asked, Iterable) and not isinstance(asked, (str, bytes, Mapping))
            texts = [*asked] if several else [asked]
            for text in texts:
                if not isinstance(text, str):
                    raise InputError(f"{first} is {text!r}; it must be a string, or a list of strings")
            own = {name: value for name, value in keywords.items() if name not in (first, *names)}
            options = record(**{name: keywords[name] for name in names if name in keywords})
            answers = method(model, texts, options, **own)
            return answers[0] if isinstance(asked, str) else answers

        run.__signature__, run.options = shape, record  # type: ignore[attr-defined]
        run.__doc__ = with_options(method.__doc__, shape.parameters, record)
        return run

    return decorated


def _public(shape: inspect.Signature, record: Any) -> inspect.Signature:
    """A method's signature as called: one text or several, an answer or a list of answers, each option."""
    model, text, _, *own = shape.parameters.values()
    options = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=spelled(each.kind)
        )
        for each in fields_of(record).values()
    ]
    keywords = [*options, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)]
    return shape.replace(
        parameters=[model, text.replace(annotation="str | Sequence[str]"), *keywords],
        return_annotation="Predictions | list[Predictions]",
    )


def tidied(
    texts: Sequence[str], mask_token: str, searched: Sequence[str], exclude: Exclude
) -> tuple[list[str], Sequence[str], list[Collection[int]]]:
    """Texts with `[MASK]` for their blanks, the BM25 query of each (by default its words), and the rows hidden from
    each. Raises InputError if the last two do not match the number of texts."""
    if searched and len(searched) != len(texts):
        raise InputError(f"searched has {len(searched)} entries for {len(texts)} texts; pass one per text")
    masked = [with_mask(text, mask_token) for text in texts]
    return masked, searched or [*map(words_of, masked)], for_each(exclude, len(texts))


def for_each(exclude: Exclude, count: int) -> list[Collection[int]]:
    """One collection of rows for each of `count` texts. Raises InputError if their number differs, or an item is not a
    row."""
    given = [*exclude] if isinstance(exclude, Iterable) else [exclude]
    nested = [each for each in given if isinstance(each, Collection) and not isinstance(each, str)]
    if not nested:
        return [_rows(given)] * count
    if not len(given) == len(nested) == count:
        raise InputError(f"exclude has {len(nested)} collections for {count} texts; pass one per text")
    return [*map(_rows, nested)]


def _rows(given: Iterable[object]) -> set[int]:
    rows = set[int]()
    for each in given:
        if not isinstance(each, Integral) or not 0 <= int(each) < 1 << 63:
            raise InputError(f"exclude has {each!r}; it takes rows of passages: whole numbers, 0 or more")
        rows.add(int(each))
    return rows


def check_questions(questions: Sequence[str]) -> None:
    """Raises InputError if a question is empty or has no words."""
    if not all(question.strip() for question in questions):
        raise InputError("the question is empty; ask one, such as 'Who composed Carmen?'")
    for question in questions:
        if not any(map(str.isalnum, question)):
            raise InputError(f"question {question!r} has no words; ask one, such as 'Who composed Carmen?'")


def place_of(entity: str, question: str) -> tuple[int, int]:
    """Where an entity's words occur in a question: as whole words, else in another case, else inside words.

    Raises InputError if nowhere.
    """
    words = r"\s+".join(map(re.escape, entity.split()))
    forms = [(rf"(?<!\w){words}(?!\w)", 0), (rf"(?<!\w){words}(?!\w)", re.IGNORECASE), (words, re.IGNORECASE)]
    found = (re.search(form, question, flags) for form, flags in forms if words)
    if (match := next(filter(None, found), None)) is None:
        raise InputError(f"entity {entity!r} does not occur in the question {question!r}; give words of it")
    return match.span()


def check_blank(text: str, most: int = 1) -> None:
    """Raises InputError for a text without a blank or with more than `most`, in any form of the mask."""
    counts = [with_mask(text, mask_token).count(MASK) for mask_token in MASKS]
    if any(1 <= count <= most for count in counts):
        return
    if most > 1 and any(counts):
        raise InputError(f"the text has {max(counts)} blanks; give at most {most} at a time")
    several = (f"put [MASK] in place of the blank, or of up to {most} blanks",) if most > 1 else ()
    around_mask(with_mask(text, MASK), MASK, *several)


def check_labels(text: str, labels: Mapping[str, Sequence[str]]) -> None:
    """Raises InputError if the text or the labels are empty, or a label's words are not strings."""
    if not isinstance(text, str):
        raise InputError(f"text is {text!r}; it must be a string")
    if not text.strip():
        raise InputError("the text is empty; give one to label")
    if not isinstance(labels, Mapping):
        raise InputError(f"labels is {labels!r}; give each words that express it: {{'positive': ['good', 'great']}}")
    if len(labels) == 1:
        raise InputError(f"labels has only {next(iter(labels))!r}, which would always win; give two or more")
    for label, words in labels.items():
        if isinstance(words, str):
            raise InputError(f"the words of label {label!r} are the string {words!r}; write [{words!r}]")
        if not isinstance(words, Collection) or not all(isinstance(word, str) for word in words):
            raise InputError(f"the words of label {label!r} are {words!r}; they must be a list of strings")


def with_mask(text: str, mask_token: str) -> str:
    """A text with `[MASK]` for its blank, which may also be the tokenizer's own mask, `<mask>` or `___`.

    The last two count only in a text without the first two.
    """
    if MASK in text or mask_token in text:
        return text.replace(mask_token, MASK)
    return _OTHER_BLANKS.sub(MASK, text)


def words_of(text: str) -> str:
    """A text without its blank, for BM25."""
    return text.replace(MASK, " ")
