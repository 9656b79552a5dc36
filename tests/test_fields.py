"""The one check of options and settings: what it takes, and how it says what is allowed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le, Lt, MinLen

from quoth.answers.options import FillOptions, NPMDefaults, ResolvedOptions
from quoth.config import Config
from quoth.errors import InputError
from quoth.fields import MOST, Has, Such, checked, described, fields_of, spelled
from quoth.index.options import AnySearchOptions, EmbedOptions
from quoth.npm.config import AskOptions, ClassifyOptions, TrainConfig
from quoth.reader.config import ReaderAskOptions, ReaderTrainConfig
from quoth.realm.config import FineTuneConfig, ICTConfig, PretrainConfig, REALMAskOptions
from quoth.registry import SYSTEMS, named
from quoth_serve.limits import Limits


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Config):
    """A part."""

    depth: Annotated[int, Ge(1), "How deep."] = 1


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Config):
    """A whole."""

    count: Annotated[int, Ge(1), Le(MOST), "How many."] = 5
    share: Annotated[Annotated[float, Ge(0), Lt(1)] | None, Such(0.25), "How much."] = None
    rate: Annotated[float, Gt(0), Le(0.5)] = 0.1
    rows: Annotated[int, Ge(1)] | Literal["all"] | None = "all"
    rule: Literal["sum", "joint"] = "sum"
    flag: bool = False
    name: Annotated[str, MinLen(1)] = "x"
    text: Annotated[str, Has("{q}")] = "{q}?"
    weights: tuple[float, float] | None = None
    words: Collection[str] = ()
    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count is 0; it must be 1 or more; try count=5"),
        ({"count": "3"}, "count is '3'; it must be a whole number, 1 or more; try count=5"),
        ({"count": True}, "count is True; it must be a whole number, 1 or more; try count=5"),
        ({"count": 2.0}, "count is 2.0; it must be a whole number, 1 or more; try count=5"),
        ({"count": 2**31}, "count is 2147483648; it must be from 1 to 2147483647; try count=5"),
        ({"share": 1}, "share is 1; it must be 0 or more and below 1; try share=0.25"),
        ({"share": math.nan}, "share is nan; it must be a finite number, 0 or more and below 1; try share=0.25"),
        ({"rate": 0.6}, "rate is 0.6; it must be above 0 and at most 0.5; try rate=0.1"),
        ({"rows": 0}, "rows is 0; it must be 1 or more, 'all', or None; try rows='all'"),
        ({"rule": "jont"}, "rule is 'jont'; it must be one of sum, joint; did you mean joint?"),
        ({"flag": 1}, "flag is 1; it must be true or false"),
        ({"name": ""}, "name is ''; it must be a text, not empty; try name='x'"),
        ({"text": "why"}, "text is 'why'; it must be a text, with {q}; try text='{q}?'"),
        ({"weights": [1, 2, 3]}, "weights is [1, 2, 3]; it must be a list of 2 numbers, or left out"),
        ({"words": "the"}, "words is 'the'; it must be a list of texts; write ['the']"),
        ({"words": [1]}, "words is [1]; it must be a list of texts"),
        ({"inner": {"depth": 0}}, "inner: depth is 0; it must be 1 or more; try depth=1"),
        ({"inner": {"deep": 1}}, "inner: unknown setting 'deep'; use one of depth; did you mean depth?"),
        ({"inner": 3}, "inner is 3; it must be an object {}"),
    ],
    ids=str,
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        Whole.from_dict(values)
    assert str(error.value) == message


def test_what_is_allowed_is_kept_as_its_type_has_it() -> None:
    whole = Whole.from_dict({"share": 0, "rows": None, "weights": [1, 2.5], "inner": {"depth": 3}, "words": {"a"}})
    assert (whole.share, whole.rows, whole.weights, whole.inner, whole.words) == (
        0,
        None,
        (1, 2.5),
        Inner(depth=3),
        {"a"},
    )
    assert Whole.from_dict(whole.to_dict()) == whole
    assert Whole(count=np.int64(2), rate=np.float32(0.5)).count == 2


def test_a_name_of_the_caller_s_is_said_as_it_is() -> None:
    with pytest.raises(InputError, match=r"^--top-k is 0; it must be 1 or more; try --top-k=5$"):
        checked("--top-k", 0, fields_of(FillOptions)["top_k"].kind, 5)

    with pytest.raises(InputError, match=r"^limit text is 0; it must be 1 or more; try limit text=20000$"):
        Limits(text=0)


def test_a_field_that_is_declared_again_keeps_its_meaning() -> None:
    assert fields_of(AskOptions)["read"].meaning == fields_of(FillOptions)["read"].meaning != ""
    assert (fields_of(AskOptions)["read"].default, fields_of(FillOptions)["read"].default) == (0, None)
    with pytest.raises(InputError, match="read is None"):
        AskOptions(read=None)  # type: ignore[arg-type]


def test_every_field_says_what_it_means() -> None:
    options = [
        FillOptions,
        AskOptions,
        ClassifyOptions,
        ReaderAskOptions,
        REALMAskOptions,
        ResolvedOptions,
        NPMDefaults,
        AnySearchOptions,
        EmbedOptions,
    ]
    settings = [TrainConfig, ReaderTrainConfig, ICTConfig, PretrainConfig, FineTuneConfig]
    for record in (NPMDefaults, *options, *settings, *(named(row.config) for row in SYSTEMS.values())):
        kind: Any = record
        silent = {name for name, each in fields_of(kind).items() if not each.meaning}
        assert silent <= {"kind", "defaults", "banned_ids", "stop_words"}, record
        assert all(each.meaning.endswith(".") for name, each in fields_of(kind).items() if name not in silent)


def test_help_and_signature_of_a_record_are_its_fields() -> None:
    text = inspect.getdoc(Whole) or ""
    assert "\n    count (int): How many. Default: 5.\n" in text
    assert "\n    share (float | None): How much. Default: None." in text
    assert '\n    passages (int | "default" | "all" | None): Number of' in (inspect.getdoc(FillOptions) or "")
    shown = inspect.signature(Whole).parameters
    assert (shown["rows"].annotation, shown["rows"].default) == ('int | "all" | None', "all")
    assert [*shown] == [*fields_of(Whole)]


def test_types_are_spelled_without_their_bounds() -> None:
    kinds = {name: spelled(each.kind) for name, each in fields_of(Whole).items()}
    assert kinds["rule"] == '"sum" | "joint"'
    assert kinds["weights"] == "tuple[float, float] | None"
    assert kinds["words"] == "Collection[str]"
    assert kinds["inner"] == "Inner"
