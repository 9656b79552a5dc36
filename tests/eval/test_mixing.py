"""A REALM of the parts of two others, and how likely an answer is, on the command line."""

from __future__ import annotations

import json
from math import exp
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

import quoth
from quoth.cli.main import main
from quoth.errors import InputError
from quoth_eval.convert import mix
from tiny import TEXT, tiny_realm


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_realm(tmp_path_factory.mktemp("one") / "one")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_realm(tmp_path_factory.mktemp("two") / "two", seed=1, separate_towers=True)


def test_the_reader_of_one_and_the_towers_of_the_other(one: Path, two: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    assert main(["convert", "--encoder", str(one), "--retriever", str(two), "-o", str(mixed)]) == 0
    made, reading, finding = (quoth.REALM.from_pretrained(path) for path in (mixed, one, two))
    assert made.fingerprint == finding.fingerprint  # vectors that are stored remain valid
    np.testing.assert_array_equal(made.encoder.queries(list(TEXT)), finding.encoder.queries(list(TEXT)))
    own, theirs = (dict(model.reader.model.state_dict()) for model in (made, reading))  # type: ignore[union-attr]
    assert own.keys() == theirs.keys()
    assert all((own[name] == theirs[name]).all() for name in own)
    heads = {name.partition(".")[0] for name in load_file(mixed / "heads.safetensors")}
    assert heads == {"passages", "queries", "reader"}


def test_what_cannot_be_mixed_is_named(one: Path, two: Path, tmp_path: Path) -> None:
    for arguments, says in {
        (str(one), str(two), one): f"{one} is there already",
        ("quoth-realm-base", str(one), tmp_path / "a"): "'quoth-realm-base' has no reader of its own",
        (str(one), str(tiny_realm(tmp_path / "wide", dimensions=4)), tmp_path / "b"): "dimensions is 8 and 4; mix",
    }.items():
        with pytest.raises(InputError, match=says):
            mix(*arguments)
    assert not (tmp_path / "b").exists()


def test_mistakes_of_convert(one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--encoder", str(one)], [str(one), "--encoder", str(one), "--retriever", str(one)]):
        assert main(["convert", *arguments, "-o", str(tmp_path / "none")]) == 2
        assert "name checkpoints to convert, or both --encoder and --retriever" in capsys.readouterr().err


def test_the_likelihood_of_an_answer_is_shown(one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add([quoth.Document(f"d{number}", f"Title {number}", text) for number, text in enumerate(TEXT)])
    realm = quoth.REALM.from_pretrained(one, corpus)
    realm.embed()
    asked = [str(corpus.path), "The raven sat in [MASK].", "Paris", "--model", str(one), "--passages", "2"]
    by_hand = realm.likelihood(asked[1], asked[2], passages=2)
    assert main(["eval", "likelihood", *asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["probability"] == pytest.approx(by_hand.probability)
    assert main(["eval", "likelihood", *asked]) == 0
    *_, nothing, whole = lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 3 + 1
    last = by_hand.passages[-1]
    shown = f"{exp(last.log_retrieval):.3g} | {exp(last.log_likelihood):.3g} | {100 * last.share:.1f} % |"
    assert nothing == f"| no passage | {shown}"
    assert whole == f"| all of them: p(y|x) | 1 | {by_hand.probability:.3g} | 100.0 % |"
    assert main(["eval", "likelihood", *asked[:3], "--model", "quoth-mini"]) == 2
    assert "'quoth-mini' is not a REALM" in capsys.readouterr().err
