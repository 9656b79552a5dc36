"""How the commands come to a model and its corpora.

Knows where the library's doors are. Does not know what is behind them; imports torch only when called.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.models.npm import NPM
    from quoth.models.realm import REALM
    from quoth.models.zero_ner import ZeroNER
    from quoth.scale.cluster import ModelName


def open_corpora(first: Path, more: Iterable[Path] | None = None) -> "list[Corpus]":
    """The corpora of a command, each opened once. Raises CorpusNotFoundError."""
    from quoth.corpus.corpus import Corpus

    return [Corpus.open(path) for path in dict.fromkeys([first, *(more or ())])]


def ray_model(model: str, base: Path | None, device: str | None, dtype: str | None) -> "ModelName":
    """The model as the workers of a cluster load it, folders by their absolute paths."""
    from quoth.scale.cluster import ModelName

    name = str(Path(model).absolute()) if Path(model).is_dir() else model
    return ModelName(name, None if base is None else str(base.absolute()), device, dtype)


def load(
    model: str, corpora: "Sequence[Corpus]", base: Path | None, device: str | None, dtype: str | None = None
) -> "NPM":
    """The model, ready to search `corpora`, without its libraries' own progress bars on standard error."""
    quiet_libraries()
    from quoth.models.npm import NPM

    return NPM.from_pretrained(model, corpus=list(corpora), device=device, base=base, dtype=dtype)


def is_realm(model: str) -> bool:
    """Whether a model's name or folder stands for a REALM."""
    from quoth.encoders.pretrained import kind_of

    return kind_of(model) == "realm"


def load_realm(
    model: str, corpora: "Sequence[Corpus]", base: Path | None, device: str | None, dtype: str | None = None
) -> "REALM":
    """`load`, of a REALM."""
    quiet_libraries()
    from quoth.models.realm import REALM

    return REALM.from_pretrained(model, corpus=list(corpora), device=device, base=base, dtype=dtype)


def load_entities(
    model: str, corpora: "Sequence[Corpus]", base: Path | None, device: str | None, dtype: str | None = None
) -> "ZeroNER":
    """`load`, of what finds passages by their entities: a Zero-NeR, or one made of another encoder."""
    quiet_libraries()
    from quoth.models.zero_ner import ZeroNER

    return ZeroNER.from_pretrained(model, corpus=list(corpora), device=device, base=base, dtype=dtype)


def load_predictor(
    model: str, corpora: "Sequence[Corpus]", base: Path | None, device: str | None, dtype: str | None = None
) -> "NPM | REALM":
    """`load`, of what fills blanks and answers questions."""
    return (load_realm if is_realm(model) else load)(model, corpora, base, device, dtype)


def load_any(
    model: str, corpora: "Sequence[Corpus]", base: Path | None, device: str | None, dtype: str | None = None
) -> "NPM | REALM | ZeroNER":
    """`load`, of a model of any kind: all embed and search."""
    from quoth.encoders.pretrained import kind_of

    finds = kind_of(model) == "zero-ner"
    return (load_entities if finds else load_predictor)(model, corpora, base, device, dtype)


def quiet_libraries() -> None:
    """Keep the libraries' own progress bars off standard error."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
