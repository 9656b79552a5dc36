"""How the commands load a model and open its corpora.

Knows which class loads which kind of model. Does not know models; imports torch only when called.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from quoth.cli.options import Setup
from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.npm.model import NPM
    from quoth.reader.model import Reader
    from quoth.realm.model import REALM
    from quoth.scale.cluster import ModelName
    from quoth.zero_ner.model import ZeroNER


KEYS = {"npm": "tokens", "realm": "passages", "zero-ner": "entities"}
"""By the kind of a model, what has a vector."""


def open_corpora(first: Path, more: Iterable[Path] | None = None) -> "list[Corpus]":
    """The corpora of a command, without repetitions. Raises CorpusNotFoundError."""
    from quoth.corpus.corpus import Corpus

    return [Corpus.open(path) for path in dict.fromkeys([first, *(more or ())])]


def ray_model(model: str, setup: Setup) -> "ModelName":
    """The model as a cluster's workers load it, with absolute paths of folders."""
    from quoth.scale.cluster import ModelName

    name = str(Path(model).absolute()) if Path(model).is_dir() else model
    base = None if setup.base is None else str(setup.base.absolute())
    return ModelName(name, base, setup.device, setup.dtype)


def kind(model: str) -> str:
    """The kind of a model, given by name or folder: "npm", "reader", "realm", "zero-ner".

    Raises ModelNotFoundError, without importing torch, if it is clear from the name that there is no such model.
    """
    from quoth.hub import check_name, kind_of

    check_name(model)
    return kind_of(model)


def check_embedded(corpora: "Iterable[Corpus]", model: str, keys: str) -> None:
    """Raises InputError if a corpus has no vectors, or only those of shipped models that cannot be this one's. Of other
    models that is known once this one is loaded."""
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
    """Whether the vectors that one model stored may be another's. Names that are not shipped say nothing: a folder may
    contain any model."""
    from quoth.hub import is_shipped, kind_of

    if stored == model or not (is_shipped(stored) and is_shipped(model)):
        return True
    if keys == "entities":  # which other encoders can make too
        return kind_of(stored) != "realm"
    return kind_of(stored) == kind_of(model) == "realm"  # shipped ones share their tower


def load(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM":
    """An NPM that searches `corpora`; its libraries keep their progress bars off standard error."""
    from quoth.hub import is_luke

    also = ["zero-ner"] if is_luke(model) else []  # a LUKE's encoder can be an NPM's
    _require(model, "quoth-mini", "npm", *also)
    quiet_libraries()
    from quoth.npm.model import NPM

    return NPM.from_pretrained(model, corpus=list(corpora), **setup._asdict())


def load_reader(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "Reader":
    """`load`, for a reader."""
    _require(model, "quoth-reader", "reader")
    quiet_libraries()
    from quoth.reader.model import Reader

    return Reader.from_pretrained(model, corpus=list(corpora), **setup._asdict())


def load_entities(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "ZeroNER":
    """`load`, for a model that finds passages by their entities: a Zero-NeR, or one made from another encoder."""
    check_finds_entities(model)
    quiet_libraries()
    from quoth.zero_ner.model import ZeroNER

    return ZeroNER.from_pretrained(model, corpus=list(corpora), **setup._asdict())


def load_predictor(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM":
    """`load`, for a model that fills blanks or answers questions."""
    if kind(model) == "zero-ner":
        return load(model, corpora, setup)  # raises: a Zero-NeR answers nothing
    return cast("NPM | Reader | REALM", _load_any(model, corpora, setup))


def load_searcher(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | REALM | ZeroNER":
    """`load`, for a model that embeds and searches by vectors. Raises InputError for one that has none."""
    searching_kind(model)
    return cast("NPM | REALM | ZeroNER", _load_any(model, corpora, setup))


def searching_kind(model: str) -> str:
    """The kind of a model that searches by vectors. Raises InputError for one that has none."""
    if (of := kind(model)) not in KEYS:
        raise InputError(f"model {model!r} is a {of} and has no vectors; use quoth-realm, quoth-mini or quoth-zero-ner")
    return of


def check_finds_entities(model: str) -> None:
    """Raises InputError for a model from whose encoder no Zero-NeR can be made."""
    _require(model, "quoth-zero-ner", "zero-ner", "npm")


def _require(model: str, usual: str, *kinds: str) -> None:
    if (of := kind(model)) not in kinds:
        required = " or ".join(map(repr, kinds))
        raise InputError(f"model {model!r} is of kind {of!r}; kind {required} is required here; try {usual}")


def quiet_libraries() -> None:
    """Keep the libraries' progress bars and retries off standard error."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _load_any(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM | ZeroNER":
    quiet_libraries()
    from quoth.model.loading import load

    return cast("NPM | Reader | REALM | ZeroNER", load(model, list(corpora), **setup._asdict()))
