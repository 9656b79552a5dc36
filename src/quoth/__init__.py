"""Quoth: language models that quote. They answer only with phrases that stand in a corpus, and show where.

This module knows the public names and which module each comes from. It imports none of them until one is
asked for, so `import quoth` is fast and needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quoth import errors
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.documents import read_documents
    from quoth.models.base import FusedSearch
    from quoth.models.npm import NPM
    from quoth.models.realm import REALM
    from quoth.models.zero_ner import ZeroNER
    from quoth.records import Document, Evidence, Hit, Likelihood, Match, Passage, PassageShare, Prediction

__version__ = "0.1.0"

__all__ = [
    "NPM",
    "REALM",
    "Corpus",
    "Document",
    "Evidence",
    "FusedSearch",
    "Hit",
    "Likelihood",
    "Match",
    "Passage",
    "PassageShare",
    "Prediction",
    "Reader",
    "ZeroNER",
    "__version__",
    "errors",
    "read_documents",
]

_HOMES = {
    "Corpus": "quoth.corpus.corpus",
    "Document": "quoth.records",
    "Evidence": "quoth.records",
    "FusedSearch": "quoth.models.base",
    "Hit": "quoth.records",
    "Likelihood": "quoth.records",
    "Match": "quoth.records",
    "NPM": "quoth.models.npm",
    "Passage": "quoth.records",
    "PassageShare": "quoth.records",
    "Prediction": "quoth.records",
    "REALM": "quoth.models.realm",
    "Reader": "quoth.models.reader",
    "ZeroNER": "quoth.models.zero_ner",
    "read_documents": "quoth.corpus.documents",
}


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
