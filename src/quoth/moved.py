"""The modules, names and options of the release before that have others now: the old ones work until the next release,
with a warning.

Knows the old names and the new. Imports a package of the new names only when an old one is asked for.
"""

import sys
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial, wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from inspect import signature
from types import ModuleType
from typing import Any, TypeVar, cast

MODULES = {
    "quoth.integrations": "quoth_serve",
    "quoth.scale": "quoth_ray",
    "quoth.service": "quoth_serve",
    "quoth.sources": "quoth_sources",
}
NAMES = {"pipeline": "quoth_serve.huggingface"}
"""Names of `quoth`, and their modules."""
OPTIONS = {"hybrid": "passage_share", "precision": "storage"}
"""Options with another name now, wherever the new one is taken and the old one is not."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Finder:
    """Finds what no other finder does: a module by its old name, which is then the one of the new name."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """The spec of a module with an old name; None for others."""
        if name in MODULES:
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return ModuleSpec(name, self) if name.rpartition(".")[0] in MODULES else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module of the new name in the place of this one."""
        package, _, name = module.__name__.rpartition(".")
        if package in MODULES:
            warn(module.__name__, new := f"{MODULES[package]}.{name}")
            sys.modules[module.__name__] = import_module(new)


def current(
    given: Mapping[str, Any], taken: Container[str], tell: Callable[[str, str], None] | None = None
) -> dict[str, Any]:
    """These options by their names of now, where `taken` are known; warns the caller's caller of an old one, or `tell`
    says it."""
    names = {name: name_of(name, taken) for name in given}
    for old, new in names.items():
        if old != new:
            (tell or partial(warn, calls=4))(f"the option {old}", new)
    return {names[name]: value for name, value in given.items()}


def name_of(name: str, taken: Container[str]) -> str:
    """The name of an option now, of something that takes these."""
    new = OPTIONS.get(name, name)
    return new if new in taken and name not in taken else name


def renamed(method: _Method) -> _Method:
    """Lets a method take its keywords by their old names too."""
    taken = signature(method).parameters

    @wraps(method)
    def run(*given: Any, **keywords: Any) -> Any:
        return method(*given, **current(keywords, taken))

    return cast(_Method, run)


def warn(old: str, new: str, calls: int = 3) -> None:
    """Say where the name is now, to whoever asks for it so many calls above."""
    warnings.warn(told_moved(old, new), DeprecationWarning, stacklevel=calls)


def told_moved(old: str, new: str) -> str:
    """What is said of an old name."""
    return f"{old} is now {new}; the old name goes with the next release"


def moved(name: str) -> Any:
    """The value of an old name of `quoth`."""
    warn(f"quoth.{name}", f"{NAMES[name]}.{name}", calls=4)
    return getattr(import_module(NAMES[name]), name)
