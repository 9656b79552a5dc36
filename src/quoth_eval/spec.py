"""What a task is to `quoth eval`: its name, its options, and what it makes of a call.

Knows: the records that pass between the command and the tasks. Does not know: any task, or how a model is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from quoth.errors import InputError, nearest
from quoth_eval.task import System, Task

if TYPE_CHECKING:
    from quoth.cli.options import Setup
    from quoth.corpus.corpus import Corpus
    from quoth_eval.harness import ProgressCallback
    from quoth_eval.report import Report, Table

CLOSED, OPEN, BLANKS, ENTITIES = "closed sets", "questions", "blanks", "entities"
"""The forms of tasks, which say what a system must be able to do; a form of its own takes only its kind of model."""
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NoSettings:
    """The options of a task that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a call gives to a task. `open` makes a model from its name, the corpora and its options; `options` are those
    of all systems; `limit` is None for all examples; `scratch` is a temporary folder."""

    open: Callable[[str, Sequence[Corpus], Options], Any]
    scratch: Path
    setup: Setup
    progress: ProgressCallback | None = None
    files: tuple[str, ...] = ()
    data: Path | None = None
    corpora: tuple[Corpus, ...] = ()
    systems: tuple[str, ...] = ()
    options: Options = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0

    def settings(self, corpora: Sequence[Corpus] | None = None, **more: Any) -> dict[str, Any]:
        """What a run resumes only with: the limit, the seed, the options, and what is searched."""
        searched = self.corpora if corpora is None else corpora
        return {
            "limit": self.limit,
            "seed": self.seed,
            "options": dict(self.options),
            "corpora": [corpus.path.name for corpus in searched],
            "num_passages": sum(corpus.num_passages for corpus in searched),
            **more,
        }

    def folder(self, task: str) -> Path:
        """The folder of data. Raises InputError if none is given."""
        if self.data is None:
            raise InputError(f"{task} is read from files; name their folder with --data")
        return self.data

    def one_corpus(self, task: str) -> Corpus:
        """The corpus. Raises InputError if there is none, or if there are several."""
        if len(self.corpora) != 1:
            raise InputError(f"{task} requires one corpus, not {len(self.corpora)}; name it with --corpus")
        return self.corpora[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A task, how a model is asked (by its name and options), and baselines by name, made from their options.

    `tables` are shown of its report; `more` says in words what they do not.
    """

    task: Task[Any]
    asks: Callable[[str, Options], System[Any]]
    baselines: Mapping[str, Callable[[Options], System[Any]]] = field(default_factory=dict)
    tables: Callable[[Report], list[Table]] = lambda report: report.tables()
    more: Callable[[Report], str] = lambda report: ""


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """A task by name. `settings` is the record of its options; `options` are those that it gives a system beyond those
    of `fill`; `systems` are asked by default. `limit` is the default of --limit, which is of each group if `each`.
    `files` are its files in a folder of data, if none is named on the command line. `searches` if it requires a corpus.
    """

    name: str
    help: str
    make: Callable[[Given, Any], Prepared]
    form: str = BLANKS
    settings: type[Any] = NoSettings
    systems: tuple[str, ...] = ("quoth-mini",)
    baselines: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    limit: int | None = None
    each: bool = False
    files: str = ""
    takes_files: bool = False
    searches: bool = True

    @cached_property
    def names(self) -> list[str]:
        """The names of its options."""
        return [each.name for each in fields(self.settings)]

    def read(self, given: Options) -> Any:
        """Its options from those given, which may contain others. Raises InputError on a value of another type."""
        hints = get_type_hints(self.settings)
        return self.settings(**{name: _fitting(name, given[name], hints[name]) for name in self.names if name in given})

    def prepare(self, given: Given, options: Options) -> Prepared:
        """The task. Raises InputError."""
        if given.files and not self.takes_files:
            raise InputError(f"{self.name} takes no files: {given.files[0]!r}; name folders with --data and --corpus")
        if self.files and not given.files:
            raise InputError(f"{self.name} is read from files; name them, or the folder with {self.files} with --data")
        if self.searches and not given.corpora:
            raise InputError(f"{self.name} searches a corpus; name it with --corpus")
        return self.make(given, self.read(options))


def _fitting(name: str, value: Any, hint: Any) -> Any:
    """A value as the hint says. Raises InputError."""
    kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    for kind in kinds:
        if get_origin(kind) is Literal and value in get_args(kind):
            return value
        if get_origin(kind) is tuple:
            (item, *_), several = get_args(kind), value if isinstance(value, list) else str(value).split(",")
            return tuple(_fitting(name, _parsed(each), item) for each in several)
        if kind is str and value is not None and not isinstance(value, (list, dict)):
            return value if isinstance(value, str) else json.dumps(value)
        if kind is float and type(value) in (int, float):
            return float(value)
        if type(value) is kind:
            return value
    spelled = (get_args(kind) or ("null" if kind is NoneType else kind.__name__,) for kind in kinds)
    must = " or ".join(str(name) for names in spelled for name in names)
    raise InputError(f"{name} is {value!r}; it must be {must}")


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def read_options(items: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """`["k=64", "combine=sum"]` as a mapping; values are JSON or words. Raises InputError."""
    found: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise InputError(f"{option}: {item!r} is not OPTION=VALUE; for example combine=sum")
        found[key] = _parsed(value)
    return found


def unknown_option(where: str, name: str, known: Sequence[str]) -> InputError:
    """The error for an option that nothing takes."""
    return InputError(f"{where}: no option {name!r}{nearest(name, known)}; use one of {', '.join(known)}")
