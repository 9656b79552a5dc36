"""What `help` says of the public callables: their sections, and that the examples print what they say."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_overloads, get_type_hints

import pytest

import quoth
from quoth.fields import fields_of
from quoth.index.options import EmbedOptions, SearchOptions
from quoth.npm.config import ClassifyOptions
from quoth_serve.huggingface import pipeline

TEXTS = {
    "genji": ("The Tale of Genji", "The Tale of Genji was written by Murasaki Shikibu, a lady of the court in Kyoto."),
    "carmen": ("Carmen", "Carmen is an opera in four acts by Georges Bizet. It was first performed in Paris in 1875."),
    "iceland": ("Iceland", "Iceland is an island in the Atlantic. Its capital is Reykjavik, a city on the coast."),
    "nile": ("Nile", "The Nile is a river in Africa. It flows through Egypt and ends in the Mediterranean Sea."),
    "good": ("A good book", "The book was good, a great joy to read."),
    "bad": ("A bad book", "The book was bad, a terrible waste of time."),
}

ASKING = [
    quoth.NPM.fill,
    quoth.NPM.ask,
    quoth.NPM.classify,
    quoth.NPM.search,
    quoth.NPM.embed,
    quoth.NPM.embed_cost,
    quoth.NPM.query_vectors,
    quoth.NPM.token_vectors,
    quoth.REALM.ask,
    quoth.REALM.fill,
    quoth.REALM.search,
    quoth.REALM.likelihood,
    quoth.Reader.ask,
    quoth.Reader.fill,
    quoth.Reader.search,
    quoth.ZeroNER.search,
    quoth.FusedSearch.search,
    quoth.Tagger.load,
    quoth.Tagger.spans,
    quoth.load,
]
CORPUS = [
    quoth.Corpus.create,
    quoth.Corpus.open,
    quoth.Corpus.repair,
    quoth.Corpus.passage,
    quoth.Corpus.rows_of,
    quoth.Corpus.document,
    quoth.Corpus.bm25,
    quoth.Corpus.find,
    quoth.Corpus.count,
    quoth.Corpus.trace,
    quoth.Corpus.add,
    quoth.Corpus.replace,
    quoth.Corpus.delete,
]
WITHOUT_ARGUMENTS = [
    quoth.Corpus,
    quoth.Corpus.passages,
    quoth.Corpus.documents,
    quoth.Corpus.compact,
    quoth.Corpus.verify,
]
PUBLIC = [
    *ASKING,
    *CORPUS,
    quoth.Model.from_pretrained,
    quoth.ZeroNER.from_pretrained,
    quoth.read_documents,
    quoth.verify_quote,
    quoth.verify_quotes,
    quoth.cite,
    quoth.table,
    pipeline,
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the examples take as given: a tiny corpus, and the shipped models over it, with their vectors stored."""
    folder = tmp_path_factory.mktemp("examples")
    corpus = quoth.Corpus.create(folder / "tiny.quoth")
    corpus.add(quoth.Document(name, title, text) for name, (title, text) in TEXTS.items())
    realm, zero_ner = (quoth.load(name, corpus) for name in ("quoth-realm", "quoth-zero-ner"))
    npm, reader = quoth.NPM.from_pretrained(corpus=corpus), quoth.Reader.from_pretrained(corpus=corpus)
    for model in (realm, zero_ner):
        assert not isinstance(model, quoth.Reader)
        model.embed("fp32")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield {"quoth": quoth, "corpus": corpus, "npm": npm, "reader": reader, "realm": realm, "zero_ner": zero_ner}


@pytest.mark.parametrize("public", [*PUBLIC, *WITHOUT_ARGUMENTS], ids=lambda each: each.__qualname__)
def test_an_example_prints_what_it_says(public: Any, names: dict[str, Any]) -> None:
    text = inspect.getdoc(public) or ""
    example = doctest.DocTestParser().get_doctest(text, dict(names), public.__qualname__, None, 0)
    assert example.examples
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(example).failed == 0


@pytest.mark.parametrize("public", PUBLIC, ids=lambda each: each.__qualname__)
def test_help_names_every_argument_and_what_is_returned_and_raised(public: Any) -> None:
    text = inspect.getdoc(public) or ""
    for section in ("\nArgs:\n", "\nReturns:\n", "\nExample:\n"):
        assert section in text, section
    taken = [name for name in inspect.signature(public).parameters if name not in ("self", "cls")]
    arguments = text.partition("\nArgs:\n")[2].partition("\nReturns:\n")[0]
    for name in taken:
        assert f"\n    {name}" in f"\n{arguments}", name


ANSWERING: list[Any] = [
    quoth.NPM.fill,
    quoth.NPM.ask,
    quoth.Reader.fill,
    quoth.Reader.ask,
    quoth.REALM.fill,
    quoth.REALM.ask,
]


@pytest.mark.parametrize("method", ANSWERING, ids=lambda each: each.__qualname__)
def test_what_an_editor_shows_of_a_method_is_what_its_record_of_options_says(method: Any) -> None:
    record, (one, many) = method.options, get_overloads(method)
    for overload, text, answer in ((one, str, quoth.Predictions), (many, Sequence[str], list[quoth.Predictions])):
        hints, taken = get_type_hints(overload), inspect.signature(overload).parameters
        _, first, *own, options = taken
        [keywords] = get_args(hints[options])
        assert get_type_hints(keywords) == get_type_hints(record)
        assert (hints[first], hints["return"]) == (text, answer)
        assert {*own} <= {"searched", "exclude"}
        assert {*inspect.signature(method).parameters} == {"self", first, *own, *get_type_hints(record)}


SEARCHING = [
    (quoth.NPM.search, SearchOptions),
    (quoth.NPM.embed, EmbedOptions),
    (quoth.NPM.classify, ClassifyOptions),
]


@pytest.mark.parametrize(("method", "record"), SEARCHING, ids=["search", "embed", "classify"])
def test_a_method_that_takes_its_options_by_place_has_those_of_the_record(method: Any, record: Any) -> None:
    hints, taken = get_type_hints(method), inspect.signature(method).parameters
    for name, kind in get_type_hints(record).items():
        assert (hints[name], taken[name].default) == (kind, fields_of(record)[name].default)


def test_a_docstring_says_of_an_option_what_its_record_says() -> None:
    text = inspect.getdoc(quoth.Reader.ask) or ""
    kinds, count = '"auto" | "bm25" | "dense" | "hybrid"', "Number of passages to read. Default: the model's."
    assert "\n    question: One question, or several.\n    top_k (int): Number of answers. Default: 5.\n" in text
    assert f"\n    passages (int | None): {count}\n    mode ({kinds}): How passages are" in text
    assert 'else words. Default: "auto".' in " ".join(text.split())
    assert text.index("    precision (") < text.index("    exclude (") < text.index("\nReturns:")
    assert "options: " not in text
    assert "The fields of" not in text
