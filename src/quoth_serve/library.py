"""The models and corpora of one process.

Knows: how to use the same loaded models over corpora at several snapshots, how a new snapshot replaces the last, and
the checks before serving. Does not know: HTTP.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from quoth.corpus.bm25 import bm25
from quoth.corpus.corpus import Corpus, listed
from quoth.corpus.view import parts
from quoth.errors import (
    CorpusNotFoundError,
    EmptyCorpusError,
    InputError,
    QuothError,
    UserError,
    nearest,
)
from quoth.index.finder import Finder
from quoth.index.key_store import stores
from quoth.index.tables import KeyTables
from quoth.model.base import CorpusModel, FusedSearch
from quoth.npm.model import NPM
from quoth.reader.model import Reader
from quoth.realm.model import REALM
from quoth.records import Hits
from quoth.registry import SYSTEMS
from quoth.zero_ner.model import ZeroNER

OLD_VIEWS = 4
"""The number of views of older snapshots, or of some corpora or documents, that stay open, by latest use."""
Asker = NPM | Reader | REALM
ViewKey = tuple[str | None, int | None, str | None]
"""A corpus, a snapshot and a condition; None: all corpora, the latest snapshot, every document."""
LATEST: ViewKey = (None, None, None)
SECONDS_TO_RETRY = 300.0
"""After making vectors has failed: another process was writing, the disk was full."""
LOG = logging.getLogger("quoth.service")


@dataclass(frozen=True, slots=True)
class Models:
    """The loaded models of a service, over corpora at fixed snapshots: for blanks and labels, for questions, for
    searches."""

    fills: NPM
    asks: Asker
    searches: Sequence[CorpusModel] = ()

    def over(self, corpora: Sequence[Corpus]) -> Models:
        """The same models over other corpora, without loading anything."""
        fills = self.fills.over(corpora)
        asks = fills if self.asks is self.fills else self.asks.over(corpora)
        return Models(fills, asks, [each.over(corpora) for each in self.searches])

    @property
    def corpora(self) -> list[Corpus]:
        """The corpora all of them search."""
        return self.fills.corpora

    def search(self, query: str, k: int, mode: str) -> Hits:
        """The k best passages. Raises InputError if no model of the service has this search mode."""
        named = [each for each in self.searches if isinstance(each, ZeroNER) == (mode == "entity")]
        match mode:
            case "auto":
                return self.fills.search(query, k)
            case "bm25":
                return bm25(self.corpora, query, k)
            case "dense":
                return (named or [self.fills])[0].search(query, k, "dense")
            case "entity" if named:
                return named[0].search(query, k, "dense")
            case "hybrid" if self.searches:
                return FusedSearch(self.searches).search(query, k)
        raise InputError(f"mode is {mode!r}, for which the service has no model; start it with --search quoth-zero-ner")


class _ClosedError(Exception):
    """No more vectors are wanted. Stored ones are kept."""


@dataclass
class Library:
    """Corpora by name, and the models that answer from them. Raises QuothError if a corpus or model cannot be served.

    Example:
        >>> library = Library(Models(npm, reader), [corpus.path])
        >>> library.view().asks.ask(["Who composed Carmen?"])[0][0].text
        'Georges Bizet'
    """

    models: Models
    paths: Sequence[Path]
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _refreshing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _latest: dict[str, Corpus] = field(default_factory=dict)
    _views: OrderedDict[ViewKey, Models] = field(default_factory=OrderedDict)
    _vectors: dict[str, str] = field(default_factory=dict)
    _embedding: threading.Thread | None = None
    _embeds: bool = False
    _closed: bool = False
    _even_long: bool = False
    _failed: float = inf

    def __post_init__(self) -> None:
        corpora = listed([path.absolute() for path in self.paths])
        if not corpora:
            raise InputError("no corpus to serve; name one or more")
        self._latest.update({each.name: each for each in corpora})
        _check(self.models.over(corpora), corpora)
        self.view()

    def unused(self) -> list[str]:
        """The warning about corpora with vectors, but none of a served model."""
        return [said for each in self._latest.values() if (said := _unused(self.models.over([each]), each))]

    @property
    def folders(self) -> dict[str, str]:
        return {str(corpus.path): name for name, corpus in self._latest.items()}

    def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> Models:
        """The latest view takes no time. The files of an older one are opened, and documents that meet a condition
        found, while other requests are answered."""
        with self._lock:
            corpora = [*self._latest.values()] if corpus is None else [self._named(corpus)]
            if snapshot is None or [snapshot] == [each.snapshot for each in corpora]:
                key: ViewKey = (None if len(self._latest) == 1 else corpus, None, where)
                if where is None:
                    return self._kept(key, corpora)
            elif len(corpora) > 1:
                names = ", ".join(each.name for each in corpora)
                raise InputError(f"snapshot {snapshot} is given without a corpus; add its corpus: {names}")
            else:
                key = (corpora[0].name, snapshot, where)
            if (found := self._views.get(key)) is not None:
                return self._kept(key, found.corpora)
        opened = corpora if key[1] is None else [Corpus.open(corpora[0].path, snapshot)]
        opened = opened if where is None else parts(opened, where, warn=False)
        with self._lock:
            # What was the latest may not be it any longer.
            if key[1] is not None or all(each is self._latest[each.name] for each in corpora):
                return self._kept(key, opened)
        return self.view(corpus, snapshot, where)

    def _kept(self, key: ViewKey, corpora: Sequence[Corpus]) -> Models:
        """The view of a corpus and snapshot, created from these corpora if there is none; the least recently used are
        dropped."""
        if key not in self._views:
            self._views[key] = self.models.over(corpora)
        if key != LATEST:
            self._views.move_to_end(key)
        while len(self._views) > OLD_VIEWS + 1:
            del self._views[next(each for each in self._views if each != LATEST)]
        return self._views[key]

    def _named(self, corpus: str) -> Corpus:
        if corpus not in self._latest:
            alike = nearest(corpus, self._latest)
            raise CorpusNotFoundError(f"no corpus {corpus!r} is served; use one of {', '.join(self._latest)}{alike}")
        return self._latest[corpus]

    def snapshots(self, corpus: Corpus) -> list[int]:
        return [each for each in corpus.snapshots() if each]

    def embed(self, even_long: bool = True) -> threading.Thread:
        """Stores missing passage vectors, in a separate thread, and again after documents are added; unless
        `even_long`, only if that is quick and the folder is writable. If the process ends meanwhile, stored vectors are
        kept, and the next one continues.
        """
        with self._lock:
            self._even_long = even_long
            if self._embedding is None or not (self._embeds and self._embedding.is_alive()):
                self._embeds, self._failed = True, inf
                self._embedding = threading.Thread(target=self._embed, name="vectors", daemon=True)
                self._embedding.start()
            return self._embedding

    def close(self) -> None:
        """Stops making vectors, and returns when the current batch is stored: a thread that Python ends inside a
        network kills the process by a signal."""
        self._closed = True
        if self._embedding is not None:
            self._embedding.join()

    def _embed(self) -> None:
        """Until every corpus is as it was when its vectors were begun."""
        begun: dict[str, Corpus] = {}
        while new := self._not_yet(begun):
            begun |= new
            for name, corpus in new.items():

                def tell(done: int, total: int, name: str = name) -> None:
                    self._vectors[name] = f"{done:,} of {total:,} passages"
                    if self._closed:
                        raise _ClosedError

                try:  # a corpus of its own, because it moves to the latest snapshot
                    finder = self.models.fills.over([Corpus.open(corpus.path)]).finder
                    if self._even_long or self._is_soon_done(name, finder):
                        finder.embed(tell)
                        self._vectors[name] = "complete"
                except _ClosedError:
                    return
                except Exception as error:  # whatever it is, the service goes on, and tries again
                    self._vectors[name], self._failed = "failed", monotonic()
                    LOG.error("vectors", extra={"corpus": name, "error": str(error)})

    def _is_soon_done(self, name: str, finder: Finder) -> bool:
        """Whether a corpus may get vectors unasked. If that takes long, it is not tried again."""
        if self._vectors.get(name) == "none" or not os.access(finder.corpora[0].path, os.W_OK):
            return False
        if seconds := finder.seconds_if_long():
            self._vectors[name] = "none"
            LOG.warning("vectors", extra={"corpus": name, "error": f"they take {seconds:.0f} seconds: see --vectors"})
        return not seconds

    def _not_yet(self, begun: Mapping[str, Corpus]) -> dict[str, Corpus]:
        """The corpora that are not as they were. If there are none the thread ends, and who asks for more from here on
        starts another."""
        with self._lock:
            new = {
                name: each for name, each in self._latest.items() if begun.get(name) is not each and not self._closed
            }
            self._embeds = bool(new)
            return new

    def describe(self) -> dict[str, Any]:
        modes = ["auto"] * bool(self.view().fills.finder.by_vectors())
        modes += ["bm25", "dense"] if self._dense() else ["bm25"]
        searches = self.models.searches
        modes += ["entity"] * any(isinstance(each, ZeroNER) for each in searches) + ["hybrid"] * bool(searches)
        return {
            "models": {
                "fill": self.models.fills.name,
                "ask": self.models.asks.name,
                "search": [each.name for each in searches],
            },
            "modes": modes,
            "vectors": dict(self._vectors),
        }

    def _dense(self) -> bool:
        """Whether a served model has a vector for every token, or every passage."""
        encoder, corpora = self.models.fills.encoder, self._latest.values()
        return any(not isinstance(each, ZeroNER) for each in self.models.searches) or not any(
            KeyTables(corpus, encoder).missing() for corpus in corpora
        )

    def unready(self) -> str:
        """Nothing: it is in this process."""
        return ""

    def refresh(self) -> bool:
        """Moves to the latest snapshots; one that cannot be opened is logged, and the last one stays. One call at a
        time: of two, the slower one would go back to what it had opened."""
        with self._refreshing:
            new: dict[str, Corpus] = {}
            others = set[str]()
            for name, corpus in self._latest.items():
                try:
                    if corpus.is_current():
                        continue
                    new[name] = Corpus.open(corpus.path)
                    if new[name].unlisted:
                        LOG.error("damaged", extra={"corpus": name, "error": new[name].unlisted})
                    for each in new[name].damaged:
                        LOG.error("damaged", extra={"corpus": name, "segment": each.entry.name, "error": each.reason})
                    if not corpus.is_followed_by(new[name]):
                        LOG.warning("replaced", extra={"corpus": name})
                        others.add(name)
                except (QuothError, OSError) as error:
                    LOG.error("refresh", extra={"corpus": name, "error": str(error)})
            if new:
                latest = self._latest | new
                view = self.models.over([*latest.values()])
                with self._lock:
                    self._latest = latest
                    kept = {
                        key: each for key, each in self._views.items() if key[1] is not None and key[0] not in others
                    }
                    self._views = OrderedDict({LATEST: view, **kept})
            if self._embedding is not None and (new or monotonic() - self._failed > SECONDS_TO_RETRY):
                self.embed(self._even_long)
        return bool(new)

    def writable(self, corpus: str | None) -> Corpus:
        if corpus is None and len(self._latest) > 1:
            raise InputError(f"several corpora are served; name one of {', '.join(self._latest)}")
        return Corpus.open(self._named(corpus or next(iter(self._latest))).path)


def _check(models: Models, corpora: Sequence[Corpus]) -> None:
    """Calls everything once, so that the first request finds it loaded.

    Raises CorruptionError, EncoderMismatchError, and InputError if a model that searches by vectors has none.
    """
    for corpus in corpora:
        for model in _searching(models):
            try:
                KeyTables(corpus, model.encoder).open()
            except UserError:  # an NPM needs no vectors to search BM25's passages
                if corpus.num_passages and _needs_vectors(model):
                    raise
    calls = (
        partial(models.fills.fill, "The [MASK] is here.", top_k=1),
        partial(models.asks.ask, "Where is it?", top_k=1),
        partial(models.fills.search, "it", 1),
    )
    for call in calls:
        with suppress(EmptyCorpusError):
            call()


def _searching(models: Models) -> list[Any]:
    """The models that search by vectors, or may."""
    return [models.fills, *models.searches, *([models.asks] if _needs_vectors(models.asks) else [])]


def _needs_vectors(model: Any) -> bool:
    return SYSTEMS[model.config.kind].needs_vectors


def _unused(models: Models, corpus: Corpus) -> str:
    if models.fills.finder.by_vectors():
        return ""
    found = {facts["fingerprint"]: facts["model"] for store in stores(corpus.path) for facts in store.facts()}
    served = {each.fingerprint: each.name for each in _searching(models)}
    if not found or found.keys() & served.keys():
        return ""
    there, here = (
        ", ".join(sorted(f"{name} ({fingerprint[:8]})" for fingerprint, name in each.items()))
        for each in (found, served)
    )
    return (
        f"{corpus.path}: its vectors are of {there}, not of {here}, and are not used; serve it with their model "
        f"(--model or --search), or add those of this one: `quoth embed {corpus.path}`"
    )
