"""How the commands come to a model and its corpora.

Knows where the library's doors are. Does not know what is behind them; imports torch only when called.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from quoth.errors import InputError

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.models.npm import NPM
    from quoth.models.reader import Reader
    from quoth.models.realm import REALM
    from quoth.models.zero_ner import ZeroNER
    from quoth.scale.cluster import ModelName


class Setup(NamedTuple):
    """How a model is loaded: the folder of its base, the device it runs on, the numbers it computes with; None: its
    own place, the best one, fp32."""

    base: Path | None = None
    device: str | None = None
    dtype: str | None = None


def open_corpora(first: Path, more: Iterable[Path] | None = None) -> "list[Corpus]":
    """The corpora of a command, each opened once. Raises CorpusNotFoundError."""
    from quoth.corpus.corpus import Corpus

    return [Corpus.open(path) for path in dict.fromkeys([first, *(more or ())])]


def ray_model(model: str, setup: Setup) -> "ModelName":
    """The model as the workers of a cluster load it, folders by their absolute paths."""
    from quoth.scale.cluster import ModelName

    name = str(Path(model).absolute()) if Path(model).is_dir() else model
    base = None if setup.base is None else str(setup.base.absolute())
    return ModelName(name, base, setup.device, setup.dtype)


def kind(model: str) -> str:
    """The kind of model that a name or folder stands for: "npm", "reader", "realm", "zero-ner"."""
    from quoth.hub import kind_of

    return kind_of(model)


def load(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM":
    """An NPM, ready to search `corpora`, without its libraries' own progress bars on standard error."""
    quiet_libraries()
    from quoth.models.npm import NPM

    return NPM.from_pretrained(model, corpus=list(corpora), **setup._asdict())


def load_reader(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "Reader":
    """`load`, of a reader."""
    quiet_libraries()
    from quoth.models.reader import Reader

    return Reader.from_pretrained(model, corpus=list(corpora), **setup._asdict())


def load_entities(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "ZeroNER":
    """`load`, of what finds passages by their entities: a Zero-NeR, or one made of another encoder."""
    quiet_libraries()
    from quoth.models.zero_ner import ZeroNER

    return ZeroNER.from_pretrained(model, corpus=list(corpora), **setup._asdict())


def load_predictor(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM":
    """`load`, of what fills blanks and answers questions."""
    if kind(model) == "zero-ner":
        return load(model, corpora, setup)  # which says that it answers nothing
    return cast("NPM | Reader | REALM", _load_any(model, corpora, setup))


def load_searcher(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | REALM | ZeroNER":
    """`load`, of what embeds and searches by vectors. Raises InputError for a reader, which has none."""
    if kind(model) == "reader":
        raise InputError(f"model {model!r} is a reader and has no vectors; name quoth-realm or quoth-mini")
    return cast("NPM | REALM | ZeroNER", _load_any(model, corpora, setup))


def quiet_libraries() -> None:
    """Keep the libraries' own progress bars off standard error."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _load_any(model: str, corpora: "Sequence[Corpus]", setup: Setup) -> "NPM | Reader | REALM | ZeroNER":
    quiet_libraries()
    from quoth.models.loading import load

    return load(model, list(corpora), **setup._asdict())
