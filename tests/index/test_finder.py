"""Passages found by words and by stored vectors, against both rankings added up by hand."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import quoth
from quoth.corpus.bm25 import Ranking, bm25
from quoth.corpus.corpus import Corpus
from quoth.encoders.keys import EncodedPassage, TextSpan, span_keys
from quoth.errors import EmptyCorpusError, InputError
from quoth.index import finder as finder_module
from quoth.index.finder import CORRECTED, MOST_CORRECTED, Finder, num_late, without_vectors
from quoth.index.fusion import shares_of_sum
from quoth.index.retriever import Retriever
from quoth.index.tables import KeyTables
from quoth.records import Document, Passage
from tiny import tiny_npm

TEXTS = ["red apple", "green apple", "red wine", "old stone", "new bread"]
QUERY = "red apple pie"
D = 8


class Hashed:
    """A vector drawn from each text."""

    keys, name, dimensions, scale = "passages", "quoth-realm", D, 2.0
    fingerprint = "hashed".ljust(16, "0")
    base: object = None

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        drawn = [np.random.default_rng(zlib.crc32(text.encode())).standard_normal(D) for text in texts]
        return np.stack(drawn).astype(np.float32)

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        texts = [passage.text for passage in passages]
        return [
            EncodedPassage(span_keys([(0, len(text))]), vector_D[None])
            for text, vector_D in zip(texts, self.queries(texts), strict=True)
        ]

    def words(self, query: str) -> NDArray[np.float32]:
        return self.queries([query])

    def queries_at(self, places: Iterable[TextSpan], count: int) -> NDArray[np.float32]:
        return self.queries([text for text, _, _ in list(places)[:count]])


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Hashed]:
    """The encoders that were loaded, in the place of the shipped one."""
    made: list[Hashed] = []

    def opened(corpora: Sequence[Corpus], device: object, dtype: object, base: object) -> Retriever:
        made.append(Hashed())
        made[-1].base = base
        return Retriever(corpora, made[-1])

    monkeypatch.setattr(finder_module, "named", lambda _: opened)
    return made


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(Document(text, "", text) for text in TEXTS)
    return corpus


def embed(corpus: Corpus) -> None:
    KeyTables(corpus, Hashed()).build("fp32")


def scaled(scores: dict[str, float]) -> dict[str, float]:
    low, high = min(scores.values()), max(scores.values())
    return {text: (score - low) / (high - low) for text, score in scores.items()}


def by_words(corpus: Corpus, query: str = QUERY) -> dict[str, float]:
    return {hit.passage.text: hit.score for hit in bm25([corpus], query, 100)}


def by_vectors(texts: Sequence[str], query: str = QUERY) -> dict[str, float]:
    q_D, *vectors = Hashed().queries([query, *texts])
    return {text: float(vector_D @ q_D) for text, vector_D in zip(texts, vectors, strict=True)}


def found(corpus: Corpus, mode: str = "auto", query: str = QUERY, k: int = 100) -> dict[str, float]:
    return {hit.passage.text: hit.score for hit in Finder([corpus]).search(query, k, mode)}  # type: ignore[arg-type]


def test_without_vectors_words_alone_find_and_no_encoder_is_loaded(corpus: Corpus, loaded: list[Hashed]) -> None:
    assert found(corpus) == found(corpus, "bm25") == by_words(corpus)
    assert not loaded
    for mode in ("dense", "hybrid"):
        with pytest.raises(
            InputError, match=r"no vectors of quoth-realm; `quoth embed .* --keys passages --model quoth"
        ):
            found(corpus, mode)


def test_with_vectors_both_scores_are_scaled_and_added(corpus: Corpus, loaded: list[Hashed]) -> None:
    embed(corpus)
    words, vectors = scaled(by_words(corpus)), scaled(by_vectors(TEXTS))
    sums = {text: words.get(text, 0.0) + vectors[text] for text in TEXTS}
    expected = {text: max(total / max(sums.values()), 0.01) for text, total in sums.items()}
    assert found(corpus) == found(corpus, "hybrid") == pytest.approx(expected)
    assert [*found(corpus)] == sorted(expected, key=lambda text: -expected[text])
    assert found(corpus, "dense") == pytest.approx({text: max(share, 0.01) for text, share in vectors.items()})
    assert found(corpus, "bm25") == by_words(corpus)
    assert [*found(corpus, k=2).items()] == [*found(corpus).items()][:2]
    assert found(corpus, query=" ") == {}  # it means nothing, and BM25 finds nothing


def test_hidden_passages_are_never_found(corpus: Corpus, loaded: list[Hashed]) -> None:
    embed(corpus)
    one, none = Finder([corpus]).rankings([QUERY, QUERY], 10, [{0, 3}, range(5)])
    assert {row for _, (_, row) in one} == {1, 2, 4}
    assert none == []


def test_vectors_that_are_made_or_fall_behind_meanwhile(
    corpus: Corpus, loaded: list[Hashed], monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = Finder([corpus])
    assert num_late([corpus]) == without_vectors(corpus) == 5

    def mixed() -> bool:
        return {hit.passage.text: hit.score for hit in finder.search(QUERY, 100)} != by_words(corpus)

    assert not mixed()
    embed(corpus)
    assert mixed()
    monkeypatch.setattr(finder_module, "LATE_PASSAGES", 2)
    corpus.add(Document(text, "", text) for text in ("a red door", "a blue door"))
    assert mixed()
    assert (num_late([corpus]), without_vectors(corpus)) == (0, 2)
    assert {"a red door", "a blue door"} < {hit.passage.text for hit in finder.search(QUERY, 100)}  # encoded now
    corpus.add([Document("more", "", "one more red door")])
    assert not mixed()
    assert num_late([corpus]) == without_vectors(corpus) == 3
    assert {hit.passage.text for hit in finder.search(QUERY, 100, "hybrid")} > {"one more red door"}
    corpus.delete(["more"])
    assert mixed()
    assert (num_late([corpus]), without_vectors(corpus)) == (0, 2)
    finder.embed()
    assert without_vectors(corpus) == 0


def test_few_passages_are_soon_done_and_of_many_some_are_timed(
    corpus: Corpus, loaded: list[Hashed], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1000, 100))  # each look at the clock, a hundred seconds have gone
    monkeypatch.setattr("quoth.index.tables.perf_counter", lambda: float(next(clock)))
    finder = Finder([corpus])
    assert finder.seconds_if_long() == 0
    assert not loaded
    monkeypatch.setattr(finder_module, "FEW", 4)
    assert finder.seconds_if_long() == 0  # all five are encoded between two looks
    monkeypatch.setattr(finder_module, "SOON", 99.0)
    assert finder.seconds_if_long() == 100
    embed(corpus)
    assert finder.seconds_if_long() == 0


def test_every_corpus_must_have_vectors(corpus: Corpus, loaded: list[Hashed], tmp_path: Path) -> None:
    other = Corpus.create(tmp_path / "other.quoth")
    other.add([Document("x", "", "a red house")])
    embed(corpus)
    finder = Finder([corpus, other])
    assert finder.search(QUERY, 100) == bm25([corpus, other], QUERY, 100)
    assert num_late([corpus, other]) == 1  # one passage is few, but nothing of its corpus has a vector
    embed(other)
    assert num_late([corpus, other]) == 0
    assert {hit.passage.text for hit in finder.search(QUERY, 100)} == {*TEXTS, "a red house"}


@pytest.mark.parametrize("field", ["name", "fingerprint"])
def test_vectors_of_another_model_are_not_compared(
    corpus: Corpus, loaded: list[Hashed], monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    other = Hashed()
    setattr(other, field, "other".ljust(16, "1"))
    KeyTables(corpus, other).build("fp32")
    assert found(corpus) == by_words(corpus)


def test_a_models_own_base_is_not_that_of_passage_vectors(corpus: Corpus, loaded: list[Hashed], tmp_path: Path) -> None:
    """Such a base cannot be loaded in its place, and passages would be found by words alone."""
    embed(corpus)
    model = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "m"), corpus, base=str(tmp_path / "m"))
    assert model.finder.by_vectors() is not None
    assert [each.base for each in loaded] == [None]


def test_an_empty_corpus_is_told(tmp_path: Path, loaded: list[Hashed]) -> None:
    with pytest.raises(EmptyCorpusError):
        found(Corpus.create(tmp_path / "empty.quoth"))
    with pytest.raises(InputError, match="mode is 'sparse'"):
        found(Corpus.create(tmp_path / "c.quoth"), "sparse")


def test_shares_of_a_sum_by_hand() -> None:
    words: Ranking = [(9.0, (0, 1)), (5.0, (0, 2)), (1.0, (0, 3))]
    vectors: Ranking = [(0.8, (0, 2)), (0.6, (0, 4)), (0.4, (0, 3))]
    # 1, 0.5, 0 and 1, 0.5, 0: the sums are 1.5 of 2, 1 of 1, 0.5 of 4, 0 of 3
    shares = [(1.0, (0, 2)), (pytest.approx(2 / 3), (0, 1)), (pytest.approx(1 / 3), (0, 4)), (0.01, (0, 3))]
    assert shares_of_sum([words, vectors], 10) == shares
    assert shares_of_sum([words, vectors], 2) == shares[:2]
    assert shares_of_sum([[], []], 10) == []


SPELLED = [
    "The treasurer keeps the receipts in a tin. Members pay in October.",
    "The treasurer lives in Bodmin. Excursions of members start at the office.",
    "Wendelime INVOICES. One treasure was found by strlmp, which calls a wendelime.",
]


@pytest.fixture(scope="module")
def spelling(tmp_path_factory: pytest.TempPathFactory) -> Finder:
    corpus = Corpus.create(tmp_path_factory.mktemp("spelling") / "c.quoth")
    corpus.add(Document(f"d{number}", "", text) for number, text in enumerate(SPELLED))
    return Finder([corpus])


@pytest.mark.parametrize(
    ("asked", "read", "names"),
    [
        ("who is the tresurer", "who is the treasurer", False),  # a letter missing
        ("who is the treassurer", "who is the treasurer", False),  # added
        ("who is the treadurer", "who is the treasurer", False),  # wrong
        ("who is the terasurer", "who is the treasurer", False),  # swapped
        ("who is the teraxurer", "who is the teraxurer", False),  # two slips
        ("who is the dreasurer", "who is the dreasurer", False),  # the first letter
        ("Tresurer or mebmers?", "Treasurer or members?", False),
        ("Who lives in Bodmn?", "Who lives in Bodmin?", True),
        ("who lives in bodmn", "who lives in Bodmin", True),  # as the corpus has it
        ("Who is Treasurfr?", "Who is Treasurer?", True),  # as the question has it
        ("strlmpp strlm", "strlmp strlmp", True),  # no English word
        ("Strlmmp", "Strlmp", True),
        ("pay in Octobor, tinn", "pay in October, tinn", True),  # short words are left
        ("pay in octobor", "pay in october", False),
        ("who pays the invoces", "who pays the invoices", False),
        ("TRESURER, tresurer2, tresurer_x", "TRESURER, tresurer2, tresurer_x", False),
        ("a@tresurer.org /etc/tresurer tresurer's-tin", "a@tresurer.org /etc/tresurer treasurer's-tin", False),
        ("(tresurer) mid-tresurer, tresurer's!", "(treasurer) mid-treasurer, treasurer's!", False),
        ("tresurer'nt tre\u00adsurer tre\u0301surer trésurer 東京東京東京", "", False),
        ("the officer, the measure, Keels keels", "", False),  # in the dictionary
        ("Excursin, excursin", "Excursion, excursion", False),  # only "excursions" occurs
        ("the tinss", "", False),  # "tins" is too short
        ("tresurer-general", "treasurer-general", False),
        ("the invoiced treasury", "the invoiced treasury", False),
        ("excursins wendelimme", "excursions Wendelime", True),
        ("x" * 31 + " " + "x" * 20_000, "", False),
    ],
)
def test_misspelt_words_are_read_as_the_corpus_spells_them(
    spelling: Finder, asked: str, read: str, names: bool
) -> None:
    assert spelling.as_spelled(asked) == (read or asked, names)


def test_a_misspelt_query_is_searched_as_it_was_meant_unless_words_are_asked_for(spelling: Finder) -> None:
    found, meant = spelling.search("tresurer"), spelling.search("treasurer")
    assert found == meant != []
    assert (found.read_as, meant.read_as) == ("treasurer", "")
    plain = spelling.search("tresurer", mode="bm25")
    assert (plain, plain.read_as) == ([], "")


def test_a_misspelt_word_is_taken_for_the_most_frequent_of_its_neighbours(tmp_path: Path) -> None:
    corpus, other = (Corpus.create(tmp_path / f"{name}.quoth") for name in "co")
    corpus.add(Document(f"d{number}", "", text) for number, text in enumerate(["the lanes", "the lands", "the lands"]))
    assert Finder([corpus]).as_spelled("who has lanxs") == ("who has lands", False)
    corpus.delete(["d1", "d2"])
    assert Finder([corpus]).as_spelled("who has lanxs") == ("who has lanes", False)
    corpus.add([Document("d3", "", "the lanes")])
    other.add(Document(f"d{number}", "", "the lands", {"n": number}) for number in range(3))
    assert Finder([corpus, other]).as_spelled("who has lanxs") == ("who has lands", False)
    assert Finder([corpus, other.where("n = 1")]).as_spelled("who has lanxs") == ("who has lanes", False)


def test_a_form_of_a_word_that_no_dictionary_has_must_occur(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    texts = ["kwendolping of kwendolped"] * 2 + ["Kwendola has a title."]
    corpus.add(Document(f"d{number}", "Strlmp" * (number == 2), text) for number, text in enumerate(texts))
    finder = Finder([corpus])
    assert finder.as_spelled("kwendolpng kwendolpx") == ("kwendolping kwendolpx", True)
    assert finder.as_spelled("kwendol") == ("Kwendola", True)  # "kwendolp" is more frequent, but only as a stem
    assert finder.as_spelled("strlmpp") == ("Strlmp", True)
    corpus.add([Document("last", "", "A longer text, in which kwendolp occurs once, and nothing else of it.")])
    assert finder.as_spelled("kwendolpx") == ("kwendolp", True)


def test_words_that_are_too_long_are_left(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("d", "", word := "kwendrel" * 3 + "strlmp")])
    assert len(word) == CORRECTED[-1]
    finder = Finder([corpus])
    assert finder.as_spelled(word[:-1] + "x") == (word, True)
    assert finder.as_spelled(word + "x") == (word + "x", False)


def test_of_a_text_only_some_words_are_taken_for_misspelt(spelling: Finder) -> None:
    many = [f"treasure{a}{b}" for a in "bcdfghjk" for b in "xz"]
    assert len(many) == MOST_CORRECTED
    correct = "members receipts measure office treasure "
    assert spelling.as_spelled(correct * 9 + " ".join([*many[1:], "tresurer"]))[0].endswith("treasurer")
    assert spelling.as_spelled(" ".join([*many, "tresurer"]))[0].endswith("tresurer")
    assert spelling.as_spelled(" ".join([*many[1:], "tresurer", many[1]]))[0].endswith(f"treasurer {many[1]}")
