"""The requests of the HTTP service, as records that are checked before any text is tokenized.

Knows: fields, their meanings and bounds; those of `fill` and `ask` are made from records of options. Does not know: who
answers, HTTP.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, create_model

from quoth.answers.options import FillOptions
from quoth.corpus.where import EXAMPLE, LONGEST
from quoth.fields import fields_of, told
from quoth.index.options import AnySearchOptions
from quoth.moved import OPTIONS
from quoth.npm.config import ClassifyOptions
from quoth_serve.limits import Limits

MOST_PHRASE_TOKENS = 32
MOST_BANNED = 1000
MOST_EXCLUDED = 10_000
MOST_LABELS = 100
MOST_DOCUMENTS = 10_000
LARGEST_EXPONENT = 100.0
EXCLUSIVE = ("min_probability", "precision")
"""Options of which a request sets one: the other follows from it."""
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)

MOST = 1 << 53
"""The largest number that is exact in every JSON parser."""

Number = Annotated[int, Field(ge=0, lt=MOST)]
Texts = str | list[str]
Labels = Annotated[
    dict[str, Annotated[list[str], Field(min_length=1, max_length=MOST_LABELS)]],
    Field(min_length=2, max_length=MOST_LABELS, description="Words that express each label, by label."),
]
CorpusName = Annotated[str | None, Field(description="The corpus to ask, by name. Default: all, searched as one.")]
Snapshot = Annotated[
    Number | None, Field(description="A snapshot of that corpus that still exists. Default: the latest.")
]
FilledSnapshot = Annotated[
    Annotated[int, Field(ge=1, lt=MOST)] | None,
    Field(description="A snapshot of that corpus that still exists; 0 is empty. Default: the latest."),
]
Where = Annotated[
    Annotated[str, Field(min_length=1, max_length=LONGEST)] | None,
    Field(
        description=f"Search only documents whose metadata meet this condition: {EXAMPLE}.",
    ),
]
EXCLUDE: dict[str, Any] = {
    "exclude": (
        Annotated[list[Number], Field(max_length=MOST_EXCLUDED, description="Passage rows never to search.")],
        [],
    )
}


class Forms(NamedTuple):
    """The request records of a service."""

    fill: Any
    ask: Any
    classify: Any
    search: Any
    verify: Any
    check: Any


class NewDocument(BaseModel):
    """A document to store."""

    model_config = STRICT

    id: Annotated[str, Field(min_length=1)]
    title: str = ""
    text: str
    metadata: dict[str, Any] = {}


class Documents(BaseModel):
    """Documents to add, or to replace those with the same ids."""

    model_config = ConfigDict(
        **STRICT,
        json_schema_extra={"examples": [{"documents": [{"id": "carmen", "title": "Carmen", "text": "An opera."}]}]},
    )

    documents: Annotated[list[NewDocument], Field(min_length=1, max_length=MOST_DOCUMENTS)]
    corpus: Annotated[str | None, Field(description="Its name; optional if only one corpus is served.")] = None


def forms(limits: Limits, asks: Any) -> Forms:
    """The request records of a service with these limits, which answers questions by the method `asks`."""
    place: dict[str, Any] = {"corpus": (CorpusName, None), "snapshot": (Snapshot, None), "where": (Where, None)}
    filled = place | {"snapshot": (FilledSnapshot, None)}
    searching = _options(AnySearchOptions, replace(limits, neighbours=limits.answers))
    answers = Annotated[int, Field(ge=1, le=limits.answers)]
    return Forms(
        fill=_form(
            "FillRequest",
            {"text": "Carmen is an opera by [MASK].", "top_k": 3},
            text=(
                _said(Texts, "A text with blanks (`[MASK]`, `<mask>` or `___`), or several such texts."),
                ...,
            ),
            **_options(FillOptions, limits),
            **EXCLUDE,
            **place,
        ),
        ask=_form(
            "AskRequest",
            {"question": "Who composed Carmen?", "top_k": 3},
            question=(_said(Texts, "A question, or several."), ...),
            **_options(asks.options, limits),
            **EXCLUDE,
            **place,
        ),
        classify=_form(
            "ClassifyRequest",
            {"text": "A joy to read.", "labels": {"positive": ["great", "good"], "negative": ["terrible"]}},
            text=(_said(str, "What to label."), ...),
            labels=(Labels, ...),
            **_options(ClassifyOptions, limits),
            **filled,
        ),
        search=_form(
            "SearchRequest",
            {"query": "opera by Bizet", "k": 3},
            query=(_said(str, "What to look for."), ...),
            **{name: searching[name] for name in ("k", "mode")},
            words=(_said(bool, "Return where the query's words occur in the passages (`words`)."), False),
            **filled,
        ),
        verify=_form(
            "VerifyRequest",
            {"text": "an opera in four acts"},
            text=(_said(str, "The words of a quotation; white space matches any other."), ...),
            max_places=(_said(answers, "Number of places to return."), 10),
            **place,
        ),
        check=_form(
            "CheckRequest",
            {"text": "They call it “an opera in five acts”."},
            text=(_said(str, "A draft, with Markdown's markup if it has any; its quotations are checked."), ...),
            **place,
        ),
    )


def _said(kind: Any, meaning: str) -> Any:
    return Annotated[kind, Field(description=meaning)]


def _form(name: str, example: dict[str, Any], **declared: Any) -> type[BaseModel]:
    schema: dict[str, Any] = {"examples": [example]}
    if declared.keys() >= set(EXCLUSIVE):
        schema["not"] = {"required": [*EXCLUSIVE], "properties": {each: {"type": "number"} for each in EXCLUSIVE}}
    config = ConfigDict(**STRICT, json_schema_extra=schema)
    made: type[BaseModel] = create_model(name, __config__=config, **declared)
    return made


def _options(record: Any, limits: Limits) -> dict[str, tuple[Any, Any]]:
    """The fields of an options record: type and default by name, with the limits of a request."""
    bounds: dict[str, tuple[Any, ...]] = {
        "top_k": (Le(limits.answers),),
        "max_evidence": (Le(limits.answers),),
        "k": (Le(limits.neighbours),),
        "temperature": (Ge(1e-3), Le(1e3)),
        "length_exponent": (Ge(-LARGEST_EXPONENT), Le(LARGEST_EXPONENT)),
        "banned_tokens": (MaxLen(MOST_BANNED),),
        "max_phrase_tokens": (Le(MOST_PHRASE_TOKENS),),
        "passages": (Le(limits.passages),),
        "read": (Le(limits.passages),),
    }
    declared = {}
    for name, each in fields_of(record).items():
        meaning = told(each, "the model's") if each.default is None else each.meaning
        kind = _said(_bounded(each.kind, bounds.get(name, ())), meaning)
        old = [old for old, new in OPTIONS.items() if new == name and old not in fields_of(record)]
        kind = Annotated[kind, Field(validation_alias=AliasChoices(name, *old))] if old else kind
        declared[name] = (kind, [] if each.default == () else each.default)
    return declared


def _bounded(kind: Any, bounds: tuple[Any, ...]) -> Any:
    """A type whose numbers, or list, also have these bounds; the last of a kind counts."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        number = inner[0] in (int, float)
        return Annotated[inner[0] if number else _bounded(inner[0], bounds), *inner[1:], *(bounds if number else ())]
    if origin in (Union, UnionType):
        return Union[tuple(_bounded(each, bounds) for each in inner)]  # noqa: UP007
    if origin is Collection:
        several: Any = list
        return Annotated[several[inner], *bounds]
    return kind
