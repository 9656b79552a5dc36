"""The names of the release before work for one more, and say where they are now."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

import quoth
from quoth.answers.options import NPMDefaults
from quoth_eval.spec import read_options
from quoth_serve.limits import Limits
from quoth_serve.requests import forms
from tiny import tiny_npm


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("quoth.service.limits", "quoth_serve.limits"),
        ("quoth.integrations.shared", "quoth_serve.shared"),
        ("quoth.scale.remote", "quoth_ray.remote"),
        ("quoth.sources.html", "quoth_sources.html"),
    ],
)
def test_a_module_is_found_by_its_old_name_and_says_so(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=rf"^{old} is now {new}; the old name goes with the next release"):
        found = import_module(old)
    assert found is import_module(new)
    assert import_module(old) is found  # with no second warning, which would be an error here


def test_a_public_name_is_found_and_says_so() -> None:
    with pytest.warns(DeprecationWarning, match=r"quoth\.pipeline is now quoth_serve\.huggingface\.pipeline") as told:
        found = quoth.pipeline
    assert found is import_module("quoth_serve.huggingface").pipeline
    assert told[0].filename == __file__


def test_an_option_is_taken_by_its_old_name_and_says_so(tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "cities.quoth")
    corpus.add([quoth.Document("p", "", "Paris is the capital of France.")])
    npm = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpus)
    told = r"^the option {} is now {}; the old name goes with the next release"
    with pytest.warns(DeprecationWarning, match=told.format("precision", "storage")) as warned:
        npm.embed(precision="fp16")  # type: ignore[call-arg]
    assert warned[0].filename == __file__
    text = "[MASK] is the capital of France."
    with pytest.warns(DeprecationWarning, match=told.format("hybrid", "passage_share")) as warned:
        old = npm.fill(text, hybrid=0.3, passages=1)  # type: ignore[call-overload]
    assert warned[0].filename == __file__
    assert old == npm.fill(text, passage_share=0.3, passages=1)
    assert npm.fill(text, passages="all") == npm.fill(text, passages=None)


def test_models_and_requests_of_before_have_the_old_name() -> None:
    assert NPMDefaults.from_dict({"hybrid": 0.2}).passage_share == 0.2
    made = forms(Limits(), quoth.Reader.ask).fill(text="a [MASK]", hybrid=0.2)
    assert made.passage_share == 0.2
    assert read_options(["hybrid=0.2", "precision=0.9"]) == {"passage_share": 0.2, "precision": 0.9}


def test_what_was_never_there_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"quoth\.nothing"):
        import_module("quoth.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        quoth.nothing  # noqa: B018
