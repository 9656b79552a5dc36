"""Any model by its name.

Knows: the names whose class a type checker can infer. Does not know: how a model is loaded (its class does).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from quoth.corpus.corpus import Corpora
from quoth.errors import InputError
from quoth.fields import documented
from quoth.hub import kind_of
from quoth.index.options import LoadOptions
from quoth.model.keywords import LoadKeywords
from quoth.registry import SYSTEMS, named

if TYPE_CHECKING:
    from quoth.model.base import Model
    from quoth.npm.model import NPM
    from quoth.reader.model import Reader
    from quoth.realm.model import REALM
    from quoth.zero_ner.model import ZeroNER

NPMName = Literal[
    "quoth-mini", "quoth-mini-single", "quoth-mini-base", "quoth-base", "facebook/npm", "facebook/npm-single"
]
ReaderName = Literal["quoth-reader", "quoth-reader-small", "quoth-reader-base"]
REALMName = Literal["quoth-realm", "quoth-realm-base"]
ZeroNERName = Literal["quoth-zero-ner"]


@overload
def load(name: NPMName = "quoth-mini", corpus: Corpora = None, **options: Unpack[LoadKeywords]) -> NPM: ...
@overload
def load(name: ReaderName, corpus: Corpora = None, **options: Unpack[LoadKeywords]) -> Reader: ...
@overload
def load(name: REALMName, corpus: Corpora = None, **options: Unpack[LoadKeywords]) -> REALM: ...
@overload
def load(name: ZeroNERName, corpus: Corpora = None, **options: Unpack[LoadKeywords]) -> ZeroNER: ...
@overload
def load(name: str | Path, corpus: Corpora = None, **options: Unpack[LoadKeywords]) -> Model: ...
@documented(LoadOptions)
def load(
    name: str | Path = "quoth-mini",
    corpus: Corpora = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
) -> Model:
    """Load a model of any kind, ready to search a corpus.

    Args:
        name (str | Path): A shipped model (quoth-mini, quoth-reader, quoth-realm, quoth-zero-ner, …), the folder of a
            trained or converted one, or a hub id, such as facebook/npm. Default: "quoth-mini".
        corpus (Corpus | str | Path | None): What to search: a corpus or the path of one, or a list of them.
            Default: None.

    Returns:
        An NPM, REALM, Reader or ZeroNER, by the model's settings. To a type checker, a shipped model's literal name
        gives its class, any other name a `Model`, which `isinstance` narrows.

    Raises:
        ModelNotFoundError: No model of that name, or its weights are missing or damaged.
        CorpusNotFoundError: No corpus at that path.
        InputError: A tagger, which searches no corpus; an unknown device or dtype.

    Example:
        >>> quoth.load("quoth-reader", corpus=corpus).ask("Who composed Carmen?")[0].text
        'Georges Bizet'
    """
    row = SYSTEMS[kind_of(str(name))]
    found: Any = named(row.model)
    if not row.searches:
        raise InputError(
            f"model {str(name)!r} is a {row.label} and searches no corpus; load it with quoth.{found.__name__}.load"
        )
    model: Model = found.from_pretrained(name, corpus=corpus, device=device, dtype=dtype, base=base)
    return model
