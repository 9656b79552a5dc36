"""What every model is, whatever its kind: asked one text or several, and pickled as the call that loaded it.

Knows: signatures, and what `from_pretrained` was called with. Does not know: any model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast, overload

from quoth.errors import InputError
from quoth.hub import is_shipped

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.model.calls import Exclude
    from quoth.records import Hits, Predictions

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Call(Protocol):
    """What `ask` and `fill` of every model take: one text, or several."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, text: str, /, *, top_k: int = ..., passages: int = ..., exclude: Exclude = ...
    ) -> Predictions: ...
    @overload
    def __call__(
        self, text: Sequence[str], /, *, top_k: int = ..., passages: int = ..., exclude: Exclude = ...
    ) -> list[Predictions]: ...


class Model:
    """A model of any kind, as `load` returns it for a name that a type checker does not know.

    It has `name`, `corpora`, `ask`, `fill` and `search`; a ZeroNER only finds passages, and its `ask` and `fill` raise
    InputError. Each class has more options. It is pickled as the call that loaded it, without weights: unpickled, it is
    loaded again and searches the same snapshots. So its folder and its corpora must be where they were.

    Example:
        >>> import pickle
        >>> reader = quoth.load("quoth-reader", corpus=corpus)
        >>> pickle.loads(pickle.dumps(reader)).ask("Who composed Carmen?") == reader.ask("Who composed Carmen?")
        True
    """

    name: str
    _call: Mapping[str, Any] | None = None

    if TYPE_CHECKING:

        @property
        def corpora(self) -> Sequence[Corpus]: ...
        @property
        def ask(self) -> Call: ...
        @property
        def fill(self) -> Call: ...
        def search(self, query: str, k: int = ...) -> Hits: ...
        def over(self, corpora: Sequence[Corpus]) -> Self: ...

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self._call is None:
            raise InputError(
                f"this {type(self).__name__} was not loaded by from_pretrained, so another process cannot load it; "
                "save it to a folder and load that"
            )
        return _again, (type(self), list(self.corpora), dict(self._call))


def remembered(load: _Function) -> _Function:
    """A `from_pretrained` whose models can be pickled."""
    shape = inspect.signature(load)

    @wraps(load)
    def run(*given: Any, **options: Any) -> Any:
        made = load(*given, **options)
        bound = shape.bind(*given, **options)
        bound.apply_defaults()
        call = {name: value for name, value in bound.arguments.items() if name not in ("cls", "corpus")}
        made._call = call | {name: _absolute(call[name]) for name in ("name", "base")}
        return made

    return cast(_Function, run)


def _absolute(name: str | Path | None) -> str | None:
    """A folder as another process finds it, whatever its working directory; any other name as it is."""
    if name is None:
        return None
    folder = Path(name).is_dir() and not is_shipped(str(name))
    return str(Path(name).absolute() if folder else name)


def _again(kind: Any, corpora: Sequence[Corpus], call: Mapping[str, Any]) -> Any:
    return kind.from_pretrained(corpus=corpora, **call)
