"""What a service answers from: one view per snapshot, and facts about its corpora.

Knows: the calls that the routes make. Does not know: whether this process or a cluster answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.records import Hit, Prediction


class View(Protocol):
    """Models over corpora, each at one snapshot, which does not change while requests are answered."""

    @property
    def corpora(self) -> Sequence[Corpus]: ...
    def fill(self, text: list[str], **options: Any) -> Sequence[Sequence[Prediction]]: ...
    def ask(self, question: list[str], **options: Any) -> Sequence[Sequence[Prediction]]: ...
    def classify(self, text: str, labels: Mapping[str, Sequence[str]], **options: Any) -> Sequence[Prediction]: ...
    def search(self, query: str, k: int, mode: str) -> Sequence[Hit]: ...


class Backend(Protocol):
    """The corpora of a service, by name."""

    @property
    def folders(self) -> Mapping[str, str]:
        """Where each corpus is, and its name: only the name appears in answers."""
        ...

    def asks(self) -> Callable[..., Any]:
        """The method that answers questions; its options are those that a request may give."""
        ...

    def view(self, corpus: str | None = None, snapshot: int | None = None) -> View:
        """One corpus, or all as one (None), at a snapshot, or the latest. Raises CorpusNotFoundError, InputError."""
        ...

    def describe(self) -> dict[str, Any]:
        """The models, and each corpus with its counts and snapshots."""
        ...

    def refresh(self) -> bool:
        """Moves to the latest snapshots; whether there were any. Requests at work keep their view."""
        ...

    def writable(self, corpus: str | None) -> Corpus:
        """A corpus to write to. Raises CorpusNotFoundError, InputError."""
        ...
