"""How the commands load a model and open its corpora.

Knows which class loads which kind of model. Does not know models; imports torch only when called.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from quoth.cli.options import Setup
from quoth.errors import InputError, ModelNotFoundError, nearest

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.models.npm import NPM
    from quoth.models.reader import Reader
    from quoth.models.realm import REALM
    from quoth.models.zero_ner import ZeroNER
    from quoth.scale.cluster import ModelName


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
    """The kind of a model, given by name or folder: "npm", "reader", "realm", "zero-ner"."""
    from quoth.hub import kind_of

    return kind_of(_checked(model))


def _checked(model: str) -> str:
    """The model's name. Raises ModelNotFoundError for a misspelt shipped name, for which the hub is not asked."""
    from quoth.hub import TRAINED, UNTRAINED

    shipped = [*TRAINED, *UNTRAINED]
    if model in shipped or "/" in model or Path(model).is_dir() or not (hint := nearest(model, shipped)):
        return model
    raise ModelNotFoundError(f"no model {model!r}{hint} A folder or a hub id may be given too")


def load(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM":
    """An NPM that searches `corpora`; its libraries keep their progress bars off standard error."""
    quiet_libraries()
    from quoth.models.npm import NPM

    return NPM.from_pretrained(_checked(model), corpus=list(corpora), **setup._asdict())


def load_reader(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "Reader":
    """`load`, for a reader."""
    quiet_libraries()
    from quoth.models.reader import Reader

    return Reader.from_pretrained(_checked(model), corpus=list(corpora), **setup._asdict())


def load_entities(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "ZeroNER":
    """`load`, for a model that finds passages by their entities: a Zero-NeR, or one made from another encoder."""
    quiet_libraries()
    from quoth.models.zero_ner import ZeroNER

    return ZeroNER.from_pretrained(_checked(model), corpus=list(corpora), **setup._asdict())


def load_predictor(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM":
    """`load`, for a model that fills blanks or answers questions."""
    if kind(model) == "zero-ner":
        return load(model, corpora, setup)  # raises: a Zero-NeR answers nothing
    return cast("NPM | Reader | REALM", _load_any(model, corpora, setup))


def load_searcher(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | REALM | ZeroNER":
    """`load`, for a model that embeds and searches by vectors. Raises InputError for a reader, which has none."""
    if kind(model) == "reader":
        raise InputError(f"model {model!r} is a reader and has no vectors; use quoth-realm or quoth-mini")
    return cast("NPM | REALM | ZeroNER", _load_any(model, corpora, setup))


def quiet_libraries() -> None:
    """Keep the libraries' progress bars and retries off standard error."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _load_any(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM | ZeroNER":
    quiet_libraries()
    from quoth.models.loading import load

    return load(_checked(model), list(corpora), **setup._asdict())
