"""Sections that a question names: which, where they end, and when a question asks for more than that."""

from __future__ import annotations

import pytest
from test_sentences import spans

from quoth.answers.evidence import Source
from quoth.corpus.corpus import Corpus
from quoth.reader.lists import with_whole
from quoth.reader.sections import named_sections
from quoth.reader.sentences import NAMED, answer_sentences
from quoth.records import Document, Evidence, Passage, Prediction

RECIPES = """Supper recipes

Pea soup

From Ann.

Ingredients

- 2 kg peas
- 6 onions

Method

1. Soak the peas.
2. Boil them.

Nut loaf

You need nuts and bread.

Oat scones

Ingredients
300 g oats
1 egg
Method
1) Rub in the butter.
2) Bake.

Things to check before you cook

- the gas is on"""
LEASE = """LEASE OF STUDIO 3

1 Term

1.1 Start

The lease begins on 1 May.

1.2 Notice

Three months' notice:
(a) in writing;
(b) to the landlord.

2 Rent

2.1 The rent is £400.
Paid monthly.

Signed by both."""
BYLAWS = """By-laws of the Hall

2. Members
2.1 Members pay £20.
2.2 A member may resign.
3. Money
3.1 The year ends in August."""
RULES = """WORKSHOP RULES

WHAT TO WEAR
Closed shoes
Eye protection

NOISE
None after 9pm.

What do I do with a broken tool?
Hang a red tag on it.

What about sawdust?
Sweep it up."""
LETTER = """A letter from Ann

9 April 1988

Dear Joan, the hens are well."""
NOTES = """Notes on the house

7 Pets

7.1 No dogs."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = Corpus.create(tmp_path_factory.mktemp("sections") / "own", splitter="blocks:20")
    texts = {"recipes": RECIPES, "lease": LEASE, "by-laws": BYLAWS, "rules": RULES, "letter": LETTER, "notes": NOTES}
    made.add(Document(name, text.splitlines()[0].capitalize(), text) for name, text in texts.items())
    return made


def sections(corpus: Corpus, question: str) -> list[Source]:
    read = [Source(passage, corpus.name) for passage in corpus.passages()]
    return named_sections(question, read, [corpus])


@pytest.mark.parametrize(
    ("question", "starts", "ends"),
    [
        ("Which ingredients do I need for pea soup?", "- 2 kg", "6 onions"),
        ("What goes into the oat scones?", "300 g", "1 egg"),
        ("Which ingredients are in the nut loaf?", "You need", "bread."),  # the next recipe has a heading of them
        ("How is pea soup made?", "1. Soak", "Boil them."),
        ("What's the method for the scones?", "1) Rub", "Bake."),
        ("What has to be checked before cooking supper?", "- the gas", "is on"),
        ("What does clause 1.2 say?", "1.2 Notice", "(b) to the landlord."),
        ("What is in section 1 of the lease?", "1 Term", "(b) to the landlord."),
        ("What does the lease say about notice?", "Three months' notice:", "(b) to the landlord."),
        ("What does § 2.1 of the lease require?", "2.1 The rent", "Paid monthly."),
        ("Read me 2.1 of the by-laws", "2.1 Members", "£20."),
        ("What does article 2 of the by-laws say?", "2. Members", "may resign."),
        ("What does claim 2.2 say?", "2.2 A member", "may resign."),
        ("What does section 7 say?", "7 Pets", "No dogs."),
        ("What do I have to wear in the workshop?", "Closed shoes", "Eye protection"),
        ("What are the rules on noise?", "None after", "9pm."),
        ("What should I do with a broken tool?", "Hang", "on it."),
    ],
)
def test_what_a_question_names(corpus: Corpus, question: str, starts: str, ends: str) -> None:
    [found] = sections(corpus, question)
    text, passage = found.passage.text, found.passage
    assert (text[: len(starts)], text[-len(ends) :]) == (starts, ends)
    assert corpus.document(passage.document_id).text[passage.start : passage.end] == text
    assert passage.document_id in {row.document_id for row in corpus.passages()}


@pytest.mark.parametrize(
    "question",
    [
        "Who is the landlord?",
        "What is the rent of studio 4?",
        "What does clause 7.3 say?",
        "What does clause 1.2 of the tenancy say?",  # no such document
        "What does clause 2.2 of the lease say?",  # of the by-laws
        "What does point 9 say?",  # of April
        "How much does 2.5 kg of peas cost?",
        "What do I need?",
        "Who wrote the rules on noise?",
    ],
)
def test_what_a_question_asks_beyond_it(corpus: Corpus, question: str) -> None:
    assert sections(corpus, question) == []


def test_several_of_one_name_are_all_found(corpus: Corpus) -> None:
    assert [each.passage.document_id for each in sections(corpus, "What does clause 2.1 say?")] == ["lease", "by-laws"]


def test_a_section_is_as_likely_as_was_measured_and_takes_the_place_of_what_is_in_it(corpus: Corpus) -> None:
    [named] = sections(corpus, "What do I have to wear in the workshop?")
    read = next(Source(row, corpus.name) for row in corpus.passages() if "Closed shoes" in row.text)
    marked = spans(
        read.passage.text, {"Closed shoes": 4.0, "9pm": 1.0} if "9pm" in read.passage.text else {"shoes": 4.0}
    )
    first, *others = answer_sentences([read], [marked], 0.0, None, named=[named])
    assert (first.text, first.probability) == ("Closed shoes Eye protection", NAMED)
    assert first.answer in ("Closed shoes", "shoes")
    assert all("shoes" not in each.text for each in others)
    halves = answer_sentences([read], [marked], 0.0, None, named=[named, *sections(corpus, "What about noise?")])
    assert [each.probability for each in halves[:2]] == [NAMED / 2] * 2


def prediction(text: str, whole: str, probability: float) -> Prediction:
    at = whole.index(text)
    return Prediction(text, 0.0, probability, (Evidence("rules", "", 0, at, at + len(text), whole, 1.0, "own"),))


def test_what_is_asked_for_as_a_whole_comes_first() -> None:
    text = "You need:\n- oats\n- an egg\n\nBake it."
    read, phrases = Source(_passage(text), "own"), [prediction("oats", text, 0.7), prediction("Bake", text, 0.1)]
    [whole] = answer_sentences([read], [spans(text, {"oats": 4.0, "an egg": 3.0})], 0.0, None, 1, "Which things?")
    listed, other = with_whole("Which things do I need?", phrases, whole)
    assert (listed.text, listed.parts) == ("You need: - oats - an egg", ("oats", "an egg"))
    assert (listed.probability, listed.status, other.text) == (whole.probability, "answered", "Bake")
    assert with_whole("What is in it first?", phrases, whole) == phrases
    assert with_whole("Which things do I need?", phrases[1:], whole) == phrases[1:]  # not in the list
    section = Source(_passage(text[:26]), "own")
    [named] = answer_sentences([], [], 0.0, None, 1, named=[section])
    assert with_whole("How is it made?", phrases[1:], named, [section])[0].text == "You need: - oats - an egg"
    assert with_whole("How many are there?", phrases, named, [section]) == phrases
    assert with_whole("How is it made?", [], named, [section]) == []


def _passage(text: str) -> Passage:
    return Passage(0, "rules", "", text, 0, len(text))
