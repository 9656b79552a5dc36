"""The tiny REALM and the corpus of `realm_runs`, one for the tests of a file; some files have others by these names."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoth.corpus.corpus import Corpus
from realm_runs import make_corpus, make_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "m")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c")
