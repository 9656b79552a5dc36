"""Quoth: language models that quote. They answer only with phrases that occur in a corpus, and show where.

This module knows the public names and the module of each. It imports a module on first use, so `import quoth` is fast
and needs no torch.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quoth import moved as _moved

if TYPE_CHECKING:  # "as" makes a name public for type checkers
    from quoth import errors as errors
    from quoth.answers.options import FillOptions as FillOptions
    from quoth.corpus.corpus import Corpus as Corpus
    from quoth.corpus.documents import read_documents as read_documents
    from quoth.corpus.exact.changed import Change as Change
    from quoth.corpus.exact.checking import verify_quotes as verify_quotes
    from quoth.corpus.exact.cite import Citation as Citation
    from quoth.corpus.exact.cite import cite as cite
    from quoth.corpus.exact.gate import Verdict as Verdict
    from quoth.corpus.exact.overlap import Overlap as Overlap
    from quoth.corpus.exact.overlap import overlap as overlap
    from quoth.corpus.exact.quotes import Verification as Verification
    from quoth.corpus.exact.quotes import verify_quote as verify_quote
    from quoth.corpus.exact.trace import Trace as Trace
    from quoth.corpus.exact.trace import TracedSpan as TracedSpan
    from quoth.corpus.repair import Repairs as Repairs
    from quoth.index.costs import Cost as Cost
    from quoth.index.costs import Shortfall as Shortfall
    from quoth.model.base import FusedSearch as FusedSearch
    from quoth.model.base import Model as Model
    from quoth.model.loading import load as load
    from quoth.ner.tagger import Tagger as Tagger
    from quoth.npm.blanks import PassageVectors as PassageVectors
    from quoth.npm.model import NPM as NPM
    from quoth.reader.model import Reader as Reader
    from quoth.realm.model import REALM as REALM
    from quoth.records import Document as Document
    from quoth.records import Evidence as Evidence
    from quoth.records import Hit as Hit
    from quoth.records import Hits as Hits
    from quoth.records import Likelihood as Likelihood
    from quoth.records import Match as Match
    from quoth.records import Passage as Passage
    from quoth.records import PassageShare as PassageShare
    from quoth.records import Prediction as Prediction
    from quoth.records import Predictions as Predictions
    from quoth.records import Sentence as Sentence
    from quoth.records import TaggedSpan as TaggedSpan
    from quoth.records import TaggedText as TaggedText
    from quoth.tables.columns import Column as Column
    from quoth.tables.table import Table as Table
    from quoth.tables.table import table as table
    from quoth.zero_ner.model import ZeroNER as ZeroNER
    from quoth_sources.source_map import Location as Location

__version__ = "0.1.0"

sys.meta_path.append(_moved.Finder())

_HOMES = {
    name: module
    for module, names in {
        "quoth.answers.options": "FillOptions",
        "quoth.corpus.corpus": "Corpus",
        "quoth.corpus.documents": "read_documents",
        "quoth.corpus.exact.changed": "Change",
        "quoth.corpus.exact.checking": "verify_quotes",
        "quoth.corpus.exact.cite": "Citation cite",
        "quoth.corpus.exact.gate": "Verdict",
        "quoth.corpus.exact.overlap": "Overlap overlap",
        "quoth.corpus.exact.quotes": "Verification verify_quote",
        "quoth.corpus.exact.trace": "Trace TracedSpan",
        "quoth.corpus.repair": "Repairs",
        "quoth.index.costs": "Cost Shortfall",
        "quoth.model.base": "FusedSearch Model",
        "quoth.model.loading": "load",
        "quoth.ner.tagger": "Tagger",
        "quoth.npm.blanks": "PassageVectors",
        "quoth.npm.model": "NPM",
        "quoth.reader.model": "Reader",
        "quoth.realm.model": "REALM",
        "quoth.records": "Document Evidence Hit Hits Likelihood Match Passage PassageShare Prediction "
        "Predictions Sentence TaggedSpan TaggedText",
        "quoth.tables.columns": "Column",
        "quoth.tables.table": "Table table",
        "quoth_sources.source_map": "Location",
        "quoth.zero_ner.model": "ZeroNER",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # or a checker would take any name for a public one
    __all__ = sorted([*_HOMES, "__version__", "errors"])

    def __getattr__(name: str) -> Any:
        """Import the public name `name` from its module on first use."""
        if name == "errors":
            return import_module("quoth.errors")
        if name in _moved.NAMES:
            return _moved.moved(name)
        if name not in _HOMES:
            raise AttributeError(f"module 'quoth' has no attribute {name!r}; public names: {', '.join(__all__)}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, for completion."""
        return __all__
