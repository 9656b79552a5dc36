"""What people meet first: any model by name, corpora by path, defaults of a model, blanks, and mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quoth
from quoth.answers.options import FillOptions, NPMDefaults
from quoth.errors import CorpusNotFoundError, InputError
from quoth.model.calls import for_each, with_mask
from quoth.npm.config import NPMConfig
from quoth.registry import model_config
from tiny import tiny_npm, tiny_realm

TEXTS = ["Paris is the capital of France.", "Berlin is the capital of Germany.", "The river runs through Paris."]
TEXT = "[MASK] is the capital of France."


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path_factory.mktemp("corpora") / "cities.quoth")
    made.add(quoth.Document(f"d{n}", "", text) for n, text in enumerate(TEXTS))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_npm(tmp_path_factory.mktemp("models") / "npm")


@pytest.fixture(scope="module")
def npm(folder: Path, corpus: quoth.Corpus) -> quoth.NPM:
    return quoth.NPM.from_pretrained(folder, corpus)


def with_defaults(folder: Path, to: Path, **defaults: Any) -> Path:
    """The model of a folder, with other defaults."""
    to.mkdir()
    for file in folder.iterdir():
        to.joinpath(file.name).symlink_to(file)
    settings = json.loads((folder / "quoth.json").read_text())
    to.joinpath("quoth.json").unlink()
    to.joinpath("quoth.json").write_text(json.dumps(settings | {"defaults": defaults}))
    return to


def test_a_model_of_any_kind_is_loaded_by_its_folder(folder: Path, corpus: quoth.Corpus, tmp_path: Path) -> None:
    assert isinstance(quoth.load(folder, corpus), quoth.NPM)
    assert isinstance(quoth.load(tiny_realm(tmp_path / "r"), corpus), quoth.REALM)
    tagger = tmp_path / "tagger"
    tagger.mkdir()
    (tagger / "quoth.json").write_text('{"kind": "tagger", "labels": ["O"]}')
    with pytest.raises(InputError, match=r"is a tagger and searches no corpus; load it with quoth\.Tagger\.load"):
        quoth.load(tagger)


def test_corpora_are_given_as_paths(folder: Path, corpus: quoth.Corpus, tmp_path: Path) -> None:
    other = quoth.Corpus.create(tmp_path / "other.quoth")
    other.add([quoth.Document("x", "", "Athens is the capital of Greece.")])
    for given in (corpus, corpus.path, str(corpus.path), [str(corpus.path)]):
        assert [each.path for each in quoth.load(folder, given).corpora] == [corpus.path]
    both = quoth.load(folder, [corpus, str(other.path)])
    assert [each.path for each in both.corpora] == [corpus.path, other.path]
    assert repr(both) == (
        f"NPM({both.name!r}, keys='tokens', corpora=[Corpus('cities.quoth', documents=3, passages=3, snapshot=1), "
        "Corpus('other.quoth', documents=1, passages=1, snapshot=1)])"
    )
    with pytest.raises(CorpusNotFoundError, match="nowhere"):
        quoth.load(folder, tmp_path / "nowhere.quoth")


def test_a_model_s_defaults_are_those_of_its_settings(
    folder: Path, npm: quoth.NPM, corpus: quoth.Corpus, tmp_path: Path
) -> None:
    defaults = {"passages": 1, "combine": "sum", "template": "{question} is [MASK]"}
    other = quoth.NPM.from_pretrained(with_defaults(folder, tmp_path / "other", **defaults), corpus)
    assert told(other.fill(TEXT)) == told(npm.fill(TEXT, passages=1, combine="sum"))
    assert told(other.fill(TEXT, passages=3, combine="joint")) == told(npm.fill(TEXT))
    asked = npm.ask("capital", template="{question} is [MASK]", passages=1, combine="sum")
    assert told(other.ask("capital")) == told(asked)
    one = quoth.NPM.from_pretrained(with_defaults(folder, tmp_path / "one", classify_template="[MASK]: {text}"), corpus)
    labels = {"a": ["Paris"], "b": ["Berlin"]}
    assert told(one.classify("the capital", labels)) == told(
        npm.classify("the capital", labels, template="[MASK]: {text}")
    )


def told(predictions: list[quoth.Prediction]) -> list[Any]:
    """All of the predictions; batches and threads add up in other orders, so the last digits of numbers differ."""
    return [_about(each.to_dict()) for each in predictions]


def _about(value: Any) -> Any:
    match value:
        case float():
            return pytest.approx(value, rel=1e-4)
        case dict():
            return {name: _about(each) for name, each in value.items()}
        case list() | tuple():
            return [_about(each) for each in value]
    return value


def test_an_unknown_default_is_an_error_that_says_what_was_meant(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"defaults: unknown setting 'pasages'; .*; did you mean passages\?"):
        quoth.load(with_defaults(folder, tmp_path / "wrong", pasages=3))


@pytest.mark.parametrize(
    "defaults",
    [
        {"passages": 0},
        {"combine": "max"},
        {"passage_share": 1},
        {"read": -1},
        {"min_probability": 2},
        {"template": "no question [MASK]"},
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["npm", "reader", "realm"])
def test_defaults_out_of_bounds_are_refused(kind: str, defaults: Any) -> None:
    with pytest.raises(InputError, match="defaults"):
        model_config({"kind": kind, "defaults": defaults})


def test_defaults_survive_a_round_trip() -> None:
    config = NPMConfig(reader="r", defaults=NPMDefaults(read=7, passages=None))
    assert model_config(json.loads(json.dumps(config.to_dict()))) == config
    assert FillOptions().resolved(config.defaults).read == 7
    assert FillOptions(read=0, passages=2).resolved(config.defaults).keywords()["passages"] == 2


@pytest.mark.parametrize(
    ("read", "given", "searched"),
    [(None, "default", 3), (2, "default", 3), (0, "default", 3), (9, 4, 4), (9, None, None)],
)
def test_npm_searches_its_own_passages_whatever_the_reader_reads(
    read: int | None, given: Any, searched: int | None
) -> None:
    assert FillOptions(read=read, passages=given).resolved(NPMDefaults(read=7)).passages == searched
    assert FillOptions(read=read).resolved(NPMDefaults(read=7, passages=None)).passages is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a [MASK] b", "a [MASK] b"),
        ("a <mask> b", "a [MASK] b"),
        ("a ___ b", "a [MASK] b"),
        ("a ______. b", "a [MASK]. b"),
        ("a __ b", "a __ b"),
        ("a [MASK] ___", "a [MASK] ___"),  # one blank already
        ("a [M] ___", "a [MASK] ___"),
        ("a ___ <mask>", "a [MASK] [MASK]"),  # two, which is told as ever
    ],
)
def test_blanks_are_written_in_several_ways(text: str, expected: str) -> None:
    assert with_mask(text, "[M]") == expected


def test_every_model_understands_them(npm: quoth.NPM) -> None:
    for blank in ("<mask>", "___", "________"):
        assert npm.fill(TEXT.replace("[MASK]", blank)) == npm.fill(TEXT)
    assert npm.query_vectors("___ runs")[0].tolist() == npm.query_vectors("[MASK] runs")[0].tolist()


def test_a_misspelt_option_names_the_call_and_the_nearest(npm: quoth.NPM) -> None:
    with pytest.raises(TypeError, match=r"^NPM\.fill\(\) has no option 'topk'; did you mean top_k\?$"):
        npm.fill(TEXT, topk=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"^NPM\.ask\(\) has no option 'templat'; did you mean template\?$"):
        npm.ask("Who?", templat="x")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"^NPM\.fill\(\) has no option 'xyz'; it takes top_k, k, passages"):
        npm.fill(TEXT, xyz=3)  # type: ignore[call-overload]


def test_one_label_alone_is_refused(npm: quoth.NPM) -> None:
    with pytest.raises(InputError, match="labels has only 'positive', which would always win; give two or more"):
        npm.classify("text", {"positive": ["great"]})


def test_words_of_a_label_are_a_list(npm: quoth.NPM) -> None:
    with pytest.raises(InputError, match=r"the words of label 'b' are the string 'bad'; write \['bad'\]"):
        npm.classify("text", {"a": ["great"], "b": "bad"})


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        (3, {"a": ["great"], "b": ["bad"]}, "text is 3; it must be a string"),
        ("text", ["great", "bad"], r"labels is \['great', 'bad'\]; give each words that express it"),
        ("text", {"a": ["great"], "b": [1]}, r"the words of label 'b' are \[1\]; they must be a list of strings"),
        ("text", {"a": ["great"], "b": 1}, "the words of label 'b' are 1; they must be a list of strings"),
        ("text", {"a": ["great"], "b": iter(["bad"])}, "the words of label .b. are <list_iterator .*a list"),
    ],
)
def test_labels_are_words_by_name(npm: quoth.NPM, text: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        npm.classify(text, labels)


def test_a_model_goes_over_to_one_corpus_or_several(npm: quoth.NPM, corpus: quoth.Corpus) -> None:
    for given in (corpus, corpus.path, [corpus], (str(corpus.path),)):
        assert [each.path for each in npm.over(given).corpora] == [corpus.path]
    for wrong in (3, [corpus, 3]):
        with pytest.raises(InputError, match="corpus is 3; it must be a corpus, the path of one, or a list of these"):
            npm.over(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match='where is 3; it must be a text, such as "year >= 2020"'):
        npm.where(3)  # type: ignore[arg-type]


def test_rows_to_leave_out_may_be_given_in_any_form() -> None:
    wanted = [{1, 2}, {1, 2}]
    for given in ([1, 2], {1, 2}, (row for row in (1, 2)), np.array([1, 2])):
        assert for_each(given, 2) == wanted
    for several in ([[1, 2], [1, 2]], [np.array([1, 2]), {2, 1}], np.array([[1, 2], [1, 2]])):
        assert for_each(several, 2) == wanted
    for wrong in (["a"], "a", [-1], [1.5], [10**30], [[1], ["a"]], None):
        with pytest.raises(InputError, match=r"exclude has ('a'|-1|1.5|10{30}|None); it takes rows of passages: whole"):
            for_each(wrong, 2)  # type: ignore[arg-type]


def test_two_corpora_of_one_name_are_refused(folder: Path, corpus: quoth.Corpus, tmp_path: Path) -> None:
    quoth.Corpus.create(tmp_path / "cities.quoth")
    with pytest.raises(InputError, match=r"two corpora are named 'cities'; rename one of the folders"):
        quoth.load(folder, [corpus, str(tmp_path / "cities.quoth")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": "3"}, "k is '3'; it must be a whole number"),
        ({"top_k": 2.5}, "top_k is 2.5; it must be a whole number"),
        ({"top_k": None}, "top_k is None; it must be a whole number"),
        ({"passages": 2.5}, "passages is 2.5; it must be a whole number"),
        ({"read": "x"}, "read is 'x'; it must be a whole number"),
        ({"max_evidence": True}, "max_evidence is True; it must be a whole number"),
        ({"passage_share": "a"}, "passage_share is 'a'; it must be a number"),
        ({"temperature": "1"}, "temperature is '1'; it must be a number"),
        ({"temperature": None}, "temperature is None; it must be a number"),
        ({"length_exponent": "0"}, "length_exponent is '0'; it must be a number"),
        ({"min_probability": "0"}, "min_probability is '0'; it must be a number"),
    ],
    ids=str,
)
def test_options_of_another_type_are_named(npm: quoth.NPM, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        npm.fill(TEXT, **options)


@pytest.mark.parametrize("query", [None, b"capital", ["capital"]], ids=str)
def test_what_is_looked_for_is_a_text(npm: quoth.NPM, corpus: quoth.Corpus, query: Any) -> None:
    for search in (npm.search, npm.finder.search, quoth.FusedSearch([npm]).search):
        with pytest.raises(InputError, match=re.escape(f"query is {query!r}; it must be a text")):
            search(query)
    with pytest.raises(InputError, match=re.escape(f"text is {query!r}; it must be a text")):
        quoth.verify_quote(corpus, query)
    with pytest.raises(InputError, match="max_places is '2'; it must be a whole number"):
        quoth.verify_quote(corpus, "capital", "2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="models has 3, which has no vectors; give an NPM, a REALM or a ZeroNER"):
        quoth.FusedSearch([npm, 3])  # type: ignore[list-item]


@pytest.mark.parametrize("asked", [{"question": "Who?"}, b"Who?"], ids=str)
def test_a_question_is_no_key_of_a_mapping_and_no_byte(npm: quoth.NPM, asked: Any) -> None:
    with pytest.raises(InputError, match=re.escape(f"question is {asked!r}; it must be a string, or a list of")):
        npm.ask(asked)


def test_numbers_of_numpy_are_numbers(npm: quoth.NPM) -> None:
    assert npm.fill(TEXT, top_k=np.int64(2), temperature=np.float32(1)) == npm.fill(TEXT, top_k=2)
    with pytest.raises(InputError, match="k is '3'; it must be a whole number"):
        npm.search("capital", k="3")


def test_words_that_are_banned_are_a_list(npm: quoth.NPM) -> None:
    with pytest.raises(InputError, match=r"banned_tokens is 'the'; it must be a list of texts; write \['the'\]"):
        npm.fill(TEXT, banned_tokens="the")
