"""The tasks by name, one file each. A task's file defines `SPECS`; it is imported when the task is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quoth_eval.spec import TaskSpec

ROWS: Mapping[str, tuple[str, ...]] = {
    "closed": ("agn", "yahoo", "subj", "sst2", "mr", "rt", "cr", "amazon", "rte"),
    "openqa": ("nq-dev", "nq", "triviaqa", "webquestions", "curatedtrec", "kamel", "openqa", "squad"),
    "lama": ("google-re", "trex", "lama"),
    "utility": ("utility",),
    **{name: (name,) for name in ("cloze", "translation", "swap", "reading", "entities", "links", "senses", "ner")},
}
"""By module of this package, the names of its tasks."""
NAMES = tuple(name for names in ROWS.values() for name in names)
GROUPS: Mapping[str, tuple[str, ...]] = {
    "closed": ROWS["closed"],
    "sentiment": ("sst2", "mr", "rt", "cr", "amazon"),
    "open": ("nq", "triviaqa", "webquestions", "curatedtrec", "kamel"),
    "facts": ("google-re", "trex"),
    "quick": tuple(name for name in NAMES if name not in ("nq-dev", "openqa", "google-re", "trex", "utility", "links")),
}
QUICK = "quick"


def find(name: str) -> TaskSpec:
    """The task of a name in `NAMES`."""
    module = next(module for module, names in ROWS.items() if name in names)
    specs: Sequence[TaskSpec] = import_module(f"{__name__}.{module}").SPECS
    return next(spec for spec in specs if spec.name == name)


def expand(names: Sequence[str]) -> list[str]:
    """The tasks of names and groups, each once."""
    return list(dict.fromkeys(task for name in names for task in GROUPS.get(name, (name,))))
