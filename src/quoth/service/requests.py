"""The requests of the HTTP service, as records that are checked before any text is read as tokens.

Knows: fields, their meanings and bounds; those of `fill` and `ask` are made from `FillOptions`. Does not know: who
answers, HTTP.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from quoth.predictors.options import MEANINGS, FillOptions
from quoth.service.limits import Limits

MOST_PHRASE_TOKENS = 32
MOST_BANNED = 1000
MOST_EXCLUDED = 10_000
MOST_LABELS = 100
MOST_DOCUMENTS = 10_000
LARGEST_EXPONENT = 100.0
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)

MOST = 1 << 53
"""No larger number is exact in every program that reads JSON."""

Row = Annotated[int, Field(ge=0, lt=MOST)]
Number = Annotated[int, Field(ge=0, lt=MOST)]
Texts = str | list[str]
Mode = Literal["bm25", "dense", "entity", "hybrid"]
Labels = Annotated[
    dict[str, Annotated[list[str], Field(min_length=1, max_length=MOST_LABELS)]],
    Field(min_length=2, max_length=MOST_LABELS, description="Words that express each label, by label."),
]
CorpusName = Annotated[
    str | None, Field(description="The corpus to ask, by name. Default: all that are served, searched as one.")
]
Snapshot = Annotated[
    Number | None, Field(description="A snapshot of that corpus which is still kept. Default: the latest.")
]


class Forms(NamedTuple):
    """The request records of a service."""

    fill: Any
    ask: Any
    classify: Any
    search: Any
    verify: Any


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
    corpus: Annotated[str | None, Field(description="Its name; may be left out if one corpus is served.")] = None


def forms(limits: Limits, asks: Callable[..., Any]) -> Forms:
    """The request records of a service with these limits, whose questions are answered by the method `asks`."""
    place = {"corpus": (CorpusName, None), "snapshot": (Snapshot, None)}
    record = get_type_hints(FillOptions)
    options = _options(limits, {each.name: (record[each.name], each.default) for each in fields(FillOptions)})
    taken, hints = inspect.signature(asks).parameters, get_type_hints(inspect.unwrap(asks))
    of_ask = _options(limits, {name: (hints[name], taken[name].default) for name in taken if name in MEANINGS})
    if "template" in taken:
        of_ask["template"] = (_said(str | None, "The text made of `{question}`, with one blank."), None)
    answers = Annotated[int, Field(ge=1, le=limits.answers)]
    return Forms(
        fill=_form(
            "FillRequest",
            {"text": "Carmen is an opera by [MASK].", "top_k": 3},
            text=(_said(Texts, "A text with one blank (`[MASK]`, `<mask>` or `___`), or several texts."), ...),
            **options,
            **place,
        ),
        ask=_form(
            "AskRequest",
            {"question": "Who composed Carmen?", "top_k": 3},
            question=(_said(Texts, "A question, or several."), ...),
            **of_ask,
            **place,
        ),
        classify=_form(
            "ClassifyRequest",
            {"text": "A joy to read.", "labels": {"positive": ["great", "good"], "negative": ["terrible"]}},
            text=(_said(str, "What to label."), ...),
            labels=(Labels, ...),
            template=(_said(str | None, "The text made of `{text}`, with one blank. Default: the model's."), None),
            temperature=(options["temperature"][0], 5.0),
            passages=options["passages"],
            **place,
        ),
        search=_form(
            "SearchRequest",
            {"query": "opera by Bizet", "k": 3},
            query=(_said(str, "What to look for."), ...),
            k=(_said(answers, "Number of passages."), 10),
            mode=(_said(Mode, "By words, by vectors, by the entities named, or by all of these."), "bm25"),
            words=(_said(bool, "Say where the query's words occur in the passages (`words`)."), False),
            **place,
        ),
        verify=_form(
            "VerifyRequest",
            {"text": "an opera in four acts"},
            text=(_said(str, "The words of a quotation; white space matches any other."), ...),
            max_places=(_said(answers, "Number of places to return."), 10),
            **place,
        ),
    )


def _said(kind: Any, meaning: str) -> Any:
    return Annotated[kind, Field(description=meaning)]


def _form(name: str, example: dict[str, Any], **declared: Any) -> type[BaseModel]:
    config = ConfigDict(**STRICT, json_schema_extra={"examples": [example]})
    made: type[BaseModel] = create_model(name, __config__=config, **declared)
    return made


def _options(limits: Limits, declared: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Options, by name their type and default, with what they mean and what a request may ask for at most; and rows of
    passages to leave out."""
    passages: Any = Annotated[int, Field(ge=1, le=limits.passages)] | None
    types = {"banned_tokens": list[str], "passages": passages}
    if declared["passages"][1] == "default":
        types["passages"] = passages | Literal["default"]
    bounds: dict[str, Any] = {
        "top_k": Field(ge=1, le=limits.answers),
        "max_evidence": Field(ge=1, le=limits.answers),
        "k": Field(ge=1, le=limits.neighbours),
        "temperature": Field(ge=1e-3, le=1e3),
        "length_exponent": Field(ge=-LARGEST_EXPONENT, le=LARGEST_EXPONENT),
        "banned_tokens": Field(max_length=MOST_BANNED),
        "max_phrase_tokens": Field(ge=1, le=MOST_PHRASE_TOKENS),
        "read": Field(ge=0, le=limits.passages),
        "hybrid": Field(ge=0, lt=1),
        "min_probability": Field(ge=0, le=1),
    }
    found: dict[str, tuple[Any, Any]] = {}
    for name, (kind, default) in declared.items():
        kind = Annotated[types.get(name, kind), bounds.get(name), Field(description=MEANINGS[name])]
        found[name] = (kind, [] if name == "banned_tokens" else default)
    exclude = Annotated[list[Row], Field(max_length=MOST_EXCLUDED, description="Passage rows that are never searched.")]
    return found | {"exclude": (exclude, [])}
