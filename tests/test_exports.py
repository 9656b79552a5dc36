"""The public names: what they are, where they come from, and that importing them costs nothing."""

import subprocess
import sys

import pytest

import quoth

RECORDS = [
    "Change",
    "Citation",
    "Column",
    "Cost",
    "Document",
    "Evidence",
    "FillOptions",
    "Hit",
    "Hits",
    "Likelihood",
    "Location",
    "Match",
    "Overlap",
    "Passage",
    "PassageShare",
    "PassageVectors",
    "Prediction",
    "Predictions",
    "Repairs",
    "Sentence",
    "Shortfall",
    "Table",
    "TaggedSpan",
    "TaggedText",
    "Trace",
    "TracedSpan",
    "Verdict",
    "Verification",
]
NAMES = [
    *RECORDS,
    "Corpus",
    "FusedSearch",
    "Model",
    "NPM",
    "REALM",
    "Reader",
    "Tagger",
    "ZeroNER",
    "__version__",
    "cite",
    "errors",
    "load",
    "overlap",
    "read_documents",
    "table",
    "verify_quote",
    "verify_quotes",
]


def test_all_lists_exactly_the_public_names() -> None:
    assert sorted(quoth.__all__) == sorted(NAMES)
    assert dir(quoth) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(quoth, name) is getattr(quoth, name)


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Corpsu'.*Corpus"):
        quoth.Corpsu  # noqa: B018


def test_importing_quoth_imports_nothing_heavy() -> None:
    code = "import sys, quoth; print(sorted({'torch', 'transformers', 'numpy', 'rich'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
