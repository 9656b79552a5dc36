"""Any model by its name.

Knows: which class each kind of model is. Does not know: how one is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from quoth.corpus.corpus import Corpora
from quoth.errors import InputError
from quoth.hub import kind_of

if TYPE_CHECKING:
    from quoth.model.model import Model
    from quoth.npm.model import NPM
    from quoth.reader.model import Reader
    from quoth.realm.model import REALM
    from quoth.zero_ner.model import ZeroNER

NPMName = Literal["quoth-mini", "quoth-mini-single", "quoth-mini-base", "facebook/npm", "facebook/npm-single"]
ReaderName = Literal["quoth-reader", "quoth-reader-base"]
REALMName = Literal["quoth-realm", "quoth-realm-base"]
ZeroNERName = Literal["quoth-zero-ner"]


@overload
def load(
    name: NPMName = "quoth-mini",
    corpus: Corpora = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
) -> NPM: ...
@overload
def load(
    name: ReaderName,
    corpus: Corpora = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
) -> Reader: ...
@overload
def load(
    name: REALMName,
    corpus: Corpora = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
) -> REALM: ...
@overload
def load(
    name: ZeroNERName,
    corpus: Corpora = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
) -> ZeroNER: ...
@overload
def load(
    name: str | Path,
    corpus: Corpora = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    base: str | Path | None = None,
) -> Model: ...
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
        name (str | Path): A shipped model (quoth-mini, quoth-reader, quoth-realm, quoth-zero-ner, …), the folder of one
            that was trained or converted, or a hub id, such as facebook/npm. Default: "quoth-mini".
        corpus (Corpus | str | Path | None): What to search: a corpus or the path of one, or a list of them.
            Default: None.
        device (str | None): "cpu", "cuda", "cuda:1" or "mps". Default: the best there is.
        dtype (str | None): Precision of the encoder: "fp32", "bf16" or "fp16". Default: "fp32".
        base (str | Path | None): Folder of the base encoder, if its package is not installed. Default: None.

    Returns:
        An NPM, REALM, Reader or ZeroNER, as the model's settings say. For a checker, the class of a shipped model's
        literal name; of any other name a `Model`, which `isinstance` narrows.

    Raises:
        ModelNotFoundError: No model of that name, or its weights are missing or damaged.
        CorpusNotFoundError: No corpus at that path.
        InputError: A tagger, which searches no corpus; an unknown device or dtype.

    Example:
        >>> quoth.load("quoth-reader", corpus=corpus).ask("Who composed Carmen?")[0].text
        'Georges Bizet'
    """
    match kind_of(str(name)):
        case "reader":
            from quoth.reader.model import Reader

            return Reader.from_pretrained(name, corpus=corpus, device=device, dtype=dtype, base=base)
        case "realm":
            from quoth.realm.model import REALM

            return REALM.from_pretrained(name, corpus=corpus, device=device, dtype=dtype, base=base)
        case "zero-ner":
            from quoth.zero_ner.model import ZeroNER

            return ZeroNER.from_pretrained(name, corpus=corpus, device=device, dtype=dtype, base=base)
        case "npm":
            from quoth.npm.model import NPM

            return NPM.from_pretrained(name, corpus=corpus, device=device, dtype=dtype, base=base)
        case kind:
            raise InputError(f"model {str(name)!r} is a {kind} and searches no corpus; load it with quoth.Tagger.load")
