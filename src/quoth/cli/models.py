"""How the commands load a model and open its corpora.

Knows which kinds of models a command takes. Does not know models; imports torch only when called.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from quoth.cli.options import Setup
from quoth.cli.output import plural
from quoth.cli.plugged import clusters
from quoth.errors import InputError
from quoth.registry import DEFAULT, SYSTEMS, System, named

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.npm.model import NPM
    from quoth.reader.model import Reader
    from quoth.realm.model import REALM
    from quoth.zero_ner.model import ZeroNER

DENSE, ENTITIES = "quoth-realm", "quoth-zero-ner"
"""The models whose passage and entity vectors let any model find passages."""


def open_corpus(path: Path) -> "Corpus":
    """The corpus of a command. Raises CorpusNotFoundError."""
    from quoth.corpus.corpus import Corpus

    return Corpus.open(path)


def contents(corpus: "Corpus") -> str:
    """`2 documents, 3 passages`."""
    return f"{plural(corpus.num_documents, 'document')}, {plural(corpus.num_passages, 'passage')}"


def open_corpora(
    first: Path, more: Iterable[Path] | None = None, where: str | None = None, as_of: str | None = None
) -> "list[Corpus]":
    """The corpora of a command, without repetitions, or their parts by --where and --as-of. Raises CorpusNotFoundError,
    InputError if two have one name."""
    from quoth.corpus.corpus import listed
    from quoth.corpus.view import parts
    from quoth.corpus.where import dated

    spelt: dict[str, Path] = {}
    for path in (first, *(more or ())):
        spelt.setdefault(os.path.realpath(path), path)
    corpora = listed([*map(open_corpus, spelt.values())])
    if as_of is not None:
        corpora = parts(corpora, dated(as_of))
    return corpora if where is None else parts(corpora, where)


@contextmanager
def changing(place: str) -> "Iterator[Corpus]":
    """The corpus at a place, to change in the block; for a URL a copy, sent at the end. If that is interrupted, nothing
    changes at the URL.

    Raises InputError, CorpusNotFoundError if nothing is there, LockedError.
    """
    if "://" in place:
        with clusters().changing(place) as corpus:
            yield corpus
    else:
        yield open_corpus(Path(place))


def system(model: str) -> System:
    """The registry row of a model, by its name or folder.

    Raises ModelNotFoundError, without importing torch, if the name rules out any such model.
    """
    from quoth.hub import check_name, kind_of

    check_name(model)
    return SYSTEMS[kind_of(model)]


def check_embedded(corpora: "Iterable[Corpus]", model: str, keys: str) -> None:
    """Raises InputError if a corpus has no vectors, or only those of other shipped models. Models that are not shipped
    are checked on loading."""
    from quoth.index.key_store import stores

    for corpus in corpora:
        found = stores(corpus.path)
        makes = f"`quoth embed {corpus.path} --keys {keys} --model {model}` makes them"
        if corpus.num_passages and not any(store.folders() for store in found):
            raise InputError(f"{corpus.path}: nothing is embedded, and this search compares vectors; {makes}")
        there = sorted({facts["model"] for store in found for facts in store.facts()})
        if corpus.num_passages and there and not any(_may_be_of(name, model, keys) for name in there):
            raise InputError(f"{corpus.path}: has vectors of {', '.join(there)}, not of {model}; {makes}")


def _may_be_of(stored: str, model: str, keys: str) -> bool:
    """Whether one model's stored vectors may be another's. Names that are not shipped prove nothing: a folder may
    contain any model."""
    from quoth.hub import is_shipped, kind_of

    if stored == model or not (is_shipped(stored) and is_shipped(model)):
        return True
    of, row = kind_of(stored), SYSTEMS[kind_of(model)]
    makers = next((each for each in SYSTEMS.values() if each.keys == keys), row)
    return of in (makers.kind, *makers.over) if makers.over else of == row.kind and row.one_space


def load(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM":
    """An NPM that searches `corpora`, with its libraries' progress bars kept off standard error."""
    return cast("NPM", _load("npm", model, corpora, setup))


def load_reader(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "Reader":
    """`load`, for a reader."""
    return cast("Reader", _load("reader", model, corpora, setup))


def load_entities(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "ZeroNER":
    """`load`, for a model that finds passages by their entities: a Zero-NeR, or one made from another encoder."""
    return cast("ZeroNER", _load("zero-ner", model, corpora, setup))


def load_predictor(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM":
    """`load`, for a model that fills blanks or answers questions."""
    row = system(model)
    if row.searches and not row.answers:
        return load(model, corpora, setup)  # an NPM with a LUKE's encoder; raises for a model that answers nothing
    return cast("NPM | Reader | REALM", _load("", model, corpora, setup))


def load_searcher(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | REALM | ZeroNER":
    """`load`, for a model that embeds and searches by vectors. Raises InputError for one that has none."""
    keys_of(model)
    return cast("NPM | REALM | ZeroNER", _load("", model, corpora, setup))


def keys_of(model: str) -> str:
    """The kind of keys of a model. Raises InputError for a model without vectors."""
    if not (row := system(model)).keys:
        remedy = "use quoth-realm, quoth-mini or quoth-zero-ner"
        raise InputError(f"model {model!r} is a {row.kind} and has no vectors; {remedy}")
    return row.keys


def required(kind: str, model: str) -> System:
    """The row of a kind. Raises InputError unless the model is of this kind or a substitute."""
    from quoth.hub import is_luke

    row, of = SYSTEMS[kind], system(model).kind
    fits = (kind, *row.over)
    if of not in fits and not (kind == DEFAULT and is_luke(model)):  # a LUKE's encoder can be an NPM's
        required = " or ".join(map(repr, fits))
        raise InputError(
            f"model {model!r} is of kind {of!r}; kind {required} is required here; try {next(row.shipped)}"
        )
    return row


def _load(kind: str, model: str, corpora: "Sequence[Corpus]", setup: Setup) -> Any:
    """A model of a kind; "" for any kind."""
    row = required(kind, model) if kind else None
    quiet_libraries()
    from quoth.model.loading import load as load_any

    load_one = named(row.model).from_pretrained if row else load_any
    return load_one(model, corpus=list(corpora), **setup._asdict())


def quiet_libraries() -> None:
    """Keep the libraries' progress bars and retries off standard error."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
