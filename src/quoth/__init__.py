"""Quoth: language models that quote. They answer only with phrases that occur in a corpus, and show where.

This module knows the public names and which module each comes from. It imports none of them until one is
asked for, so `import quoth` is fast and needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quoth import errors
    from quoth.answers.options import FillOptions
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.documents import read_documents
    from quoth.corpus.exact.cite import Citation, cite
    from quoth.corpus.exact.quotes import Verification, verify_quote
    from quoth.corpus.repair import Repairs
    from quoth.integrations.huggingface import pipeline
    from quoth.model.base import FusedSearch, Model
    from quoth.model.loading import load
    from quoth.ner.tagger import Tagger
    from quoth.npm.blanks import PassageVectors
    from quoth.npm.model import NPM
    from quoth.reader.model import Reader
    from quoth.realm.model import REALM
    from quoth.records import (
        Cost,
        Document,
        Evidence,
        Hit,
        Hits,
        Likelihood,
        Match,
        Passage,
        PassageShare,
        Prediction,
        Predictions,
        Shortfall,
        TaggedSpan,
        TaggedText,
    )
    from quoth.zero_ner.model import ZeroNER

__version__ = "0.1.0"

__all__ = [
    "NPM",
    "REALM",
    "Citation",
    "Corpus",
    "Cost",
    "Document",
    "Evidence",
    "FillOptions",
    "FusedSearch",
    "Hit",
    "Hits",
    "Likelihood",
    "Match",
    "Model",
    "Passage",
    "PassageShare",
    "PassageVectors",
    "Prediction",
    "Predictions",
    "Reader",
    "Repairs",
    "Shortfall",
    "TaggedSpan",
    "TaggedText",
    "Tagger",
    "Verification",
    "ZeroNER",
    "__version__",
    "cite",
    "errors",
    "load",
    "pipeline",
    "read_documents",
    "verify_quote",
]

_HOMES = {
    name: module
    for module, names in {
        "quoth.answers.options": "FillOptions",
        "quoth.corpus.corpus": "Corpus",
        "quoth.corpus.documents": "read_documents",
        "quoth.corpus.exact.cite": "Citation cite",
        "quoth.corpus.exact.quotes": "Verification verify_quote",
        "quoth.corpus.repair": "Repairs",
        "quoth.integrations.huggingface": "pipeline",
        "quoth.model.base": "FusedSearch Model",
        "quoth.model.loading": "load",
        "quoth.ner.tagger": "Tagger",
        "quoth.npm.blanks": "PassageVectors",
        "quoth.npm.model": "NPM",
        "quoth.reader.model": "Reader",
        "quoth.realm.model": "REALM",
        "quoth.records": "Cost Document Evidence Hit Hits Likelihood Match Passage PassageShare Prediction "
        "Predictions Shortfall TaggedSpan TaggedText",
        "quoth.zero_ner.model": "ZeroNER",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # or a checker would take any name for a public one

    def __getattr__(name: str) -> Any:
        """Import the public name `name` from its module, the first time it is asked for."""
        if name == "errors":
            return import_module("quoth.errors")
        if name not in _HOMES:
            raise AttributeError(f"module 'quoth' has no attribute {name!r}; public names: {', '.join(__all__)}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(__all__)
