"""What a task is to `quoth eval`: its name, its options, and what it makes of a call.

Knows: the records that pass between the command and the tasks. Does not know: any task, or how a model is opened.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from quoth.cli.options import Setup
from quoth.cli.output import note
from quoth.corpus.corpus import Corpus
from quoth.corpus.view import count_passages
from quoth.errors import InputError, nearest
from quoth.fields import Checked
from quoth.moved import current, told_moved
from quoth_eval.harness import ProgressCallback
from quoth_eval.report import Report, Table
from quoth_eval.task import System, Task

CLOSED, OPEN, BLANKS, ENTITIES = "closed sets", "questions", "blanks", "entities"
"""The forms of tasks, which say what a system must be able to do; a form of its own takes only its kind of model."""
Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a call gives to a task. `open` makes a model from its name, the corpora and its options; `options` are those
    of all systems; `limit` is None for all examples; `scratch` is a temporary folder. A task that makes a corpus puts
    it in the place of `corpora`."""

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

    def settings(self, **more: Any) -> dict[str, Any]:
        """What a run resumes only with: the limit, the seed, the options, and what is searched."""
        return {
            "limit": self.limit,
            "seed": self.seed,
            "options": dict(self.options),
            "corpora": [corpus.path.name for corpus in self.corpora],
            "num_passages": count_passages(self.corpora),
            **more,
        }

    def folder(self, task: str, file: str, source: str) -> Path:
        """The folder of data. Raises InputError, naming the file and where it can be had, if none is given."""
        if self.data is None:
            raise InputError(f"{task} is read from DIR/{file}; name DIR with --data. If you do not have it: {source}")
        return self.data

    def searched(self) -> Sequence[Corpus]:
        """The corpora. Raises InputError if there is none."""
        if not self.corpora:
            raise InputError("no corpus to search; name one that quoth index made with --corpus")
        return self.corpora

    def one_corpus(self, task: str) -> Corpus:
        """The corpus. Raises InputError if there is none, or if there are several."""
        if len(self.corpora) != 1:
            raise InputError(f"{task} requires one corpus, not {len(self.corpora)}; name it with --corpus")
        return self.corpora[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A task, how a model is asked (by its name and options), and baselines by name, made from their options.

    `tables` are shown of its report; `more` says in words what they do not; `hides` that passages are hidden, by their
    rows in the whole corpus, from what its examples do not tell.
    """

    task: Task[Any]
    asks: Callable[[str, Options], System[Any]]
    baselines: Mapping[str, Callable[[Options], System[Any]]] = field(default_factory=dict)
    tables: Callable[[Report], list[Table]] = lambda report: report.tables()
    more: Callable[[Report], str] = lambda report: ""
    hides: bool = False


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """A task by name. `settings` is the record of its options; `options` are those that it gives a system beyond those
    of `fill`; `systems` are asked by default. `limit` is the default of --limit, which is of each group if `each`.
    `files` are its files in a folder of data, if none is named on the command line."""

    name: str
    make: Callable[[Given, Any], Prepared]
    form: str = BLANKS
    settings: type[Any] = Checked
    systems: tuple[str, ...] = ("quoth-mini",)
    baselines: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    limit: int | None = None
    each: bool = False
    files: str = ""
    takes_files: bool = False

    @cached_property
    def names(self) -> list[str]:
        """The names of its options."""
        return [each.name for each in fields(self.settings)]

    def read(self, given: Options) -> Any:
        """Its options from those given, which may contain others; a list may be one word, its parts apart by commas.
        Raises InputError."""
        own = {name: given[name] for name in self.names if name in given}
        for name, value in own.items():
            if get_origin(get_type_hints(self.settings)[name]) is tuple and not isinstance(value, list):
                own[name] = [_parsed(part) for part in str(value).split(",")]
        return self.settings(**own)

    def prepare(self, given: Given, options: Options) -> Prepared:
        """The task. Raises InputError."""
        if given.files and not self.takes_files:
            raise InputError(f"{self.name} takes no files: {given.files[0]!r}; name folders with --data and --corpus")
        if self.files and not given.files:
            raise InputError(f"{self.name} is read from files; name them, or the folder with {self.files} with --data")
        return self.make(given, self.read(options))


def _parsed(value: str) -> Any:
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
    return current(found, ("passage_share",), lambda old, new: note(told_moved(old, new)))


def unknown_option(where: str, name: str, known: Sequence[str]) -> InputError:
    """The error for an option that nothing takes."""
    return InputError(f"{where}: no option {name!r}{nearest(name, known)}; use one of {', '.join(known)}")
