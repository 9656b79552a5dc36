"""A reader over corpora: what it reads, what it says, and how sure it says that it is."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_span_reader import brute, make_reader

import quoth
from quoth.answers.evidence import Proposal, Source, predict_spans
from quoth.answers.options import FillOptions
from quoth.corpus import bm25
from quoth.errors import EmptyCorpusError, InputError, UserError
from quoth.index import retriever
from quoth.index.retriever import Retriever
from quoth.npm import blanks
from quoth.npm.blanks import LEAST, Asked, combine, passages_of, surest, words_beside
from quoth.realm.model import REALM, GivenReader
from quoth.records import Evidence, Passage, Prediction
from quoth.text.passages import is_balanced
from quoth.text.tokenizer import FastTokenizer, masked_ids
from quoth.timing import STEPS, timed
from tiny import TEXT, tiny_corpus, tiny_npm, tiny_realm

QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    return tiny_corpus(tmp_path_factory.mktemp("corpus") / "c.quoth", [f"{each}\n\n{TEXT[0]}" for each in TEXT])


@pytest.fixture(scope="module")
def span_reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_reader(tmp_path_factory.mktemp("base") / "b", max_tokens=128)


@pytest.fixture
def reader(span_reader: Any, corpus: quoth.Corpus) -> quoth.Reader:
    return quoth.Reader(copy(span_reader), [corpus])


@pytest.fixture(scope="module")
def npm(span_reader: Any, corpus: quoth.Corpus, tmp_path_factory: pytest.TempPathFactory) -> quoth.NPM:
    encoder = quoth.NPM.from_pretrained(tiny_npm(tmp_path_factory.mktemp("npm") / "m")).encoder
    return quoth.NPM(encoder, [corpus], lambda: span_reader)


@pytest.fixture(scope="module")
def own(corpus: quoth.Corpus, tmp_path_factory: pytest.TempPathFactory) -> REALM:
    """With its own reader, its vectors stored."""
    realm = REALM.from_pretrained(tiny_realm(tmp_path_factory.mktemp("realm") / "r"), corpus=corpus)
    realm.embed("fp32")
    return realm


@pytest.fixture(scope="module")
def realm(own: REALM, span_reader: Any, corpus: quoth.Corpus) -> REALM:
    return REALM(own.encoder, GivenReader(span_reader), [corpus])


def check(predictions: list[Prediction], corpus: quoth.Corpus) -> None:
    """Every answer is a slice of its documents; shares add up."""
    assert predictions
    for each in predictions:
        assert sum(place.score for place in each.evidence) == pytest.approx(each.probability)
        for place in each.evidence:
            said = corpus.document(place.document_id).text[place.start : place.end]
            assert " ".join(said.split()).casefold() == each.text.casefold()
            assert place.context[place.start - place.context_start : place.end - place.context_start] == said


def test_answers_are_slices_of_documents(reader: quoth.Reader, corpus: quoth.Corpus) -> None:
    found = reader.ask(QUESTION, top_k=50)
    check(found, corpus)
    assert [each.log_score for each in found] == sorted((each.log_score for each in found), reverse=True)
    assert sum(each.probability for each in found) < 1


def test_several_questions_are_answered_as_each_alone(reader: quoth.Reader) -> None:
    asked = [QUESTION, "Where was Nikos Kazantzakis born?", "What flows through Berlin?"] * 4
    for question, found in zip(asked, reader.ask(asked, passages=3), strict=True):
        alone = reader.ask(question, passages=3)
        assert [each.text for each in alone] == [each.text for each in found]
        assert [each.log_score for each in alone] == pytest.approx([each.log_score for each in found], abs=1e-4)


def test_blanks_are_filled(reader: quoth.Reader, corpus: quoth.Corpus) -> None:
    text = "Paris is the [MASK] of France."
    found = reader.fill(text)
    check(found, corpus)
    assert found[0].sequence == text.replace("[MASK]", found[0].text)
    assert [each.text for each in reader.fill([text, text])[1]] == [each.text for each in found]


def test_only_the_passages_asked_for_are_read(reader: quoth.Reader, corpus: quoth.Corpus) -> None:
    best = {place.passage for each in reader.ask(QUESTION, passages=1, top_k=100) for place in each.evidence}
    assert len(best) == 1
    others = {place.passage for each in reader.ask(QUESTION, passages=1, exclude=best) for place in each.evidence}
    assert len(others) == 1
    assert not best & others


def test_an_answer_with_too_small_a_chance_is_unsure_or_not_found(reader: quoth.Reader) -> None:
    [best, *_] = answers = reader.ask(QUESTION)
    assert answers.status == best.status == "answered"
    unsure = reader.ask(QUESTION, min_probability=1.0)
    assert unsure.status == "unsure"
    assert unsure[0] == replace(best, status="unsure")
    told = unsure[0].to_dict()
    assert (told["status"], told["abstained"]) == ("unsure", True)
    assert reader.ask(QUESTION, min_probability=best.probability).status == "answered"
    for lowest, status in ((best.probability, "unsure"), (1.0, "not_found")):
        reader.reader.config = replace(reader.config, defaults=replace(reader.config.defaults, not_found_below=lowest))
        assert reader.ask(QUESTION, min_probability=1.0).status == status
    assert reader.ask(QUESTION, min_probability=0.0).status == "answered"


def test_a_chance_is_the_same_however_many_answers_are_asked_for(reader: quoth.Reader, npm: quoth.NPM) -> None:
    weights = (8.0, 0.1)  # every answer alone would be nearly certain
    reader.reader.config = replace(reader.config, calibration=weights)
    npm.config = replace(npm.config, calibration=weights)
    for ask, text in ((reader.ask, QUESTION), (partial(npm.fill, read=4), "Paris is the [MASK] of France.")):
        three, one = ask(text, top_k=3), ask(text, top_k=1)
        assert (len(three), len(one)) == (3, 1)
        assert one[0].probability == pytest.approx(three[0].probability)
        assert three[0].probability < 0.5


def test_a_misspelt_question_is_answered_as_it_was_meant(reader: quoth.Reader) -> None:
    meant, slipped, same = (reader.ask(text) for text in ("The capital?", "The capitl?", QUESTION))
    assert slipped == meant
    assert (meant.read_as, slipped.read_as, same.read_as) == ("", "The capital?", "")
    named = reader.ask("What is the capital of Frence?", min_probability=0.01)
    assert named.read_as == QUESTION
    assert {each.status for each in named} <= {"unsure", "not_found"}
    assert reader.ask(QUESTION, min_probability=0.01)[0].status == "answered"
    assert [each.text for each in named] == [each.text for each in same]
    assert reader.ask("What is the capital of Frence?", min_probability=0)[0].status == "answered"


def test_a_realm_gives_sentences_with_a_given_reader(realm: REALM, corpus: quoth.Corpus) -> None:
    found = realm.ask(QUESTION, passages=3)
    assert found.sentences
    for sentence in found.sentences:
        (place,) = sentence.evidence
        assert corpus.document(place.document_id).text[place.start : place.end] == sentence.text
    assert realm.ask(QUESTION, passages=3, combine="marginal").sentences == []


def test_what_a_sure_unit_says_is_not_called_not_found(reader: quoth.Reader) -> None:
    defaults = replace(reader.config.defaults, not_found_below=1.0)
    for bias, phrase, whole in ((20.0, "unsure", "answered"), (-10.0, "not_found", "not_found")):
        reader.reader.config = replace(reader.config, defaults=defaults, sentence_calibration=(bias, 0.0))
        found = reader.ask(QUESTION, min_probability=0.9999)
        assert (found[0].status, found.status) == (phrase, whole)


def enough(reader: Any, question: str, sources: list[Source], bound: float) -> int:
    """How many passages are read of a question, four at a time, in plain sums."""
    [every] = reader.read([question], [[each.passage for each in sources]])
    weight = [math.exp(reader.config.prior * each.relevance) for each in sources]
    for count in range(4, len(sources), 4):
        said: dict[str, float] = {}
        for source, spans, times in zip(sources[:count], every, weight, strict=False):
            for start, end, odds in zip(spans.start_C, spans.end_C, spans.odds_C, strict=True):
                text = " ".join(source.passage.text[start:end].split()).casefold()
                said[text] = said.get(text, 0.0) + times * math.exp(odds)
        best, second = sorted(said.values())[:-3:-1]
        if best > second + math.exp(bound) * sum(weight[count:]):
            return count
    return len(sources)


@pytest.fixture
def eighteen(tmp_path: Path) -> quoth.Corpus:
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add(quoth.Document(f"d{n}", "", f"{n} {TEXT[n % 6]} {'the river ' * n}") for n in range(18))
    return corpus


def test_answers_are_those_of_the_passages_that_were_read(
    span_reader: Any, eighteen: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = eighteen
    reader, rows = quoth.Reader(span_reader, [corpus]), list[int]()
    asked = [QUESTION, "Where was Nikos Kazantzakis born?", "What flows through Berlin?", "the tower of the river"]
    monkeypatch.setattr(span_reader, "config", replace(span_reader.config, prior=2.0))
    read = span_reader.read
    monkeypatch.setattr(span_reader, "read", lambda q, p, *known: rows.extend(map(len, p)) or read(q, p, *known))
    counts = set()
    for bound in (-300.0, 16.0, 18.0, 300.0):
        alone = []
        for question in asked:
            ranked = bm25.best_places([corpus], question, 16)
            sources = [Source(corpus.passage(row), corpus.name, math.log(s / ranked[0][0])) for s, (_, row) in ranked]
            alone.append(enough(span_reader, question, sources, bound))
        expected = [reader.ask(question, passages=n) for question, n in zip(asked, alone, strict=True)]
        monkeypatch.setattr(span_reader, "config", replace(span_reader.config, unread_bound=bound))
        rows.clear()
        for one, other in zip(reader.ask(asked, passages=16), expected, strict=True):
            assert [each.text for each in one] == [each.text for each in other]
            assert [each.log_score for each in one] == pytest.approx([each.log_score for each in other], abs=1e-4)
            assert [each.text for each in one.sentences] == [each.text for each in other.sentences]
        assert sum(rows) == sum(alone)
        monkeypatch.setattr(span_reader, "config", replace(span_reader.config, unread_bound=None))
        counts |= set(alone)
    assert counts >= {4, 8, 16}


@pytest.mark.parametrize("mask", ["[MASK]", "<mask>"])
def test_no_more_is_read_once_the_best_answer_to_a_question_would_be_called_not_found(
    span_reader: Any, eighteen: quoth.Corpus, monkeypatch: pytest.MonkeyPatch, mask: str
) -> None:
    monkeypatch.setattr(span_reader.tokenizer, "mask_token", mask)
    rows, read = list[int](), span_reader.read
    monkeypatch.setattr(span_reader, "read", lambda q, p, *known: rows.extend(map(len, p)) or read(q, p, *known))
    for lowest, calibration, count in ((0.51, (0.0,), 12), (0.5, (0.0,), 16), (0.51, None, 16)):
        defaults = replace(span_reader.config.defaults, not_found_below=lowest)
        config = replace(span_reader.config, unread_bound=300.0, calibration=calibration, defaults=defaults)
        monkeypatch.setattr(span_reader, "config", config)
        reader = quoth.Reader(span_reader, [eighteen])
        for ask, text, expected in ((reader.ask, QUESTION, count), (reader.fill, "the [MASK] of the river", 16)):
            rows.clear()
            ask(text, passages=16)
            assert sum(rows) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passages": 0}, "passages is 0; it must be 1 or more"),
        ({"top_k": 0}, "top_k is 0; it must be 1 or more"),
        ({"exclude": [{1}, {2}]}, "exclude has 2 collections for 1 texts"),
    ],
)
def test_mistakes(reader: quoth.Reader, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader.ask(QUESTION, **options)


def test_questions_without_words_and_corpora_without_passages(span_reader: Any, tmp_path: Path) -> None:
    empty = quoth.Reader(span_reader, [quoth.Corpus.create(tmp_path / "e.quoth")])
    with pytest.raises(EmptyCorpusError, match="no passage to search"):
        empty.ask(QUESTION)
    with pytest.raises(InputError, match="the question is empty"):
        empty.ask("  ")


def proposal(text: str, probability: float, *places: tuple[int, int]) -> Proposal:
    evidence = tuple(Evidence("d", "", p, s, s + len(text), text, probability / len(places), "c") for p, s in places)
    return Proposal(Prediction(text, 0.0, probability, evidence[:1], num_places=len(places)), lambda: evidence)


def test_npm_and_reader_decide_together_by_hand() -> None:
    proposed = [proposal("Paris", 0.5, (1, 0)), proposal("Rome", 0.25, (2, 10), (3, 30))]
    marked = [proposal("rome", 0.8, (2, 10)), proposal("the Rome", 0.1, (2, 6)), proposal("Bonn", 0.01, (4, 50))]
    found = combine("[MASK] is large.", proposed, marked, (1.0, 1.0, 0.0), 5)
    w = 0.2**3  # NPM's weight, as the reader gives its best phrase 0.8
    npms = {"rome": 0.25, "Paris": 0.5, "the Rome": LEAST, "Bonn": LEAST}
    readers = {"rome": 0.8, "Paris": LEAST, "the Rome": 0.1, "Bonn": 0.01}
    sums = {phrase: npms[phrase] ** w * readers[phrase] for phrase in npms}
    assert [each.text for each in found] == ["rome", "Bonn", "Paris"]  # "the Rome" overlaps what is better
    for each in found:
        assert each.probability == pytest.approx(sums[each.text] / sum(sums.values()))
        assert sum(place.score for place in each.evidence) == pytest.approx(each.probability)
    assert combine("[MASK] is large.", proposed, marked, (1.0, 0.0, 0.0), 1)[0].text == "Paris"
    (rome,) = combine("[MASK] is large.", proposed[1:], [], (1.0, 1.0, 0.0), 5, max_evidence=1)
    assert ([place.passage for place in rome.evidence], rome.num_places) == ([2], 2)


def test_the_passages_of_the_best_phrases_are_read() -> None:
    proposed = [proposal("a", 0.5, (7, 0), (8, 0)), proposal("b", 0.3, (7, 5)), proposal("c", 0.2, (9, 0))]
    assert [each.passage.row for each in passages_of(proposed, 20)] == [7, 9]
    assert [each.passage.row for each in passages_of(proposed, 1)] == [7]


def test_npm_asks_its_reader(span_reader: Any, corpus: quoth.Corpus, tmp_path: Path) -> None:
    npm = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "m"), corpus=corpus)
    text = "Paris is the [MASK] of France."
    with pytest.raises(InputError, match="has no reader"):
        npm.fill(text, read=2)
    both = quoth.NPM(npm.encoder, [corpus], lambda: span_reader)
    alone = both.fill(text)
    assert [each.text for each in alone] == [each.text for each in npm.fill(text)]
    with timed() as seconds:
        found = both.fill(text, read=2, top_k=20)
    assert all(seconds[name] > 0 for name in STEPS)
    check(found, corpus)
    assert found[0].sequence.startswith("Paris is the ")
    assert [each.text for each in found] != [each.text for each in both.fill(text, top_k=20)]
    assert {each.status for each in both.fill(text, read=2, min_probability=1.0)} == {"unsure"}
    both.config = replace(both.config, defaults=replace(both.config.defaults, not_found_below=1.0))
    assert {each.status for each in both.fill(text, read=2, min_probability=1.0)} == {"not_found"}
    with pytest.raises(InputError, match="read is -1"):
        both.fill(text, read=-1)


def test_npm_is_asked_where_the_reader_is_unsure(npm: quoth.NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, options = ["Paris is the [MASK] of France.", "Rome is in [MASK].", "[MASK] has rivers."], FillOptions(read=4)
    settled = npm.settled(options)
    asked = npm.asked(texts, [text.replace("[MASK]", " ") for text in texts], [()] * 3, settled)
    sure = [surest(marked) for _, marked in npm.proposed_and_marked(asked, settled)]
    assert len(set(sure)) == 3
    monkeypatch.setattr(blanks, "SURE_ENOUGH", sorted(sure)[1])
    every = npm.proposed_and_marked(asked, settled)
    assert [bool(proposed) for proposed, _ in every] == [each < sorted(sure)[1] for each in sure]
    alone = [list(found) for found in npm.proposals(asked, npm._queries(texts), settled)]
    for (proposed, _), every_phrase in zip(every, alone, strict=True):
        assert [each.best.text for each in proposed] in ([], [each.best.text for each in every_phrase])
    monkeypatch.setattr(blanks, "SURE_ENOUGH", 0.0)
    with pytest.raises(UserError, match="embed"):
        npm.fill([texts[0]], passages=None, read=4)


def test_the_reader_reads_where_npm_found_phrases(npm: quoth.NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blanks, "SURE_ENOUGH", 2.0)
    options = npm.settled(FillOptions(passages=4, read=1))
    asked = npm.asked(["Paris is the [MASK] of France."], ["Paris is the of France."], [()], options)
    [(proposed, marked)] = npm.proposed_and_marked(asked, options)
    best = {row for _, (_, row) in asked.ranked[0][:1]}
    beside = next(each.passage.row for each in passages_of(proposed, 1))
    assert beside not in best
    assert {place.passage for each in marked for place in each.evidence()} == best | {beside}


def test_what_is_banned_is_no_answer_of_the_reader_either(npm: quoth.NPM) -> None:
    text = "Paris is the [MASK] of France."

    def answers(**options: Any) -> list[list[str]]:
        return [each.text.casefold().split() for each in npm.fill(text, read=4, top_k=50, **options)]

    free = answers()
    assert any("capital" in each for each in free)
    assert any({"paris", "is", "the", "of", "france"} & set(each) for each in free)
    banned = answers(banned_tokens=["capital"])
    assert banned
    assert not any("capital" in each for each in banned)
    assert not any({"paris", "is", "the", "of", "france"} & set(each) for each in answers(ban_query=True))


def test_the_reader_fills_no_blank_with_half_a_pair_of_brackets(
    npm: quoth.NPM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def halves(text: str) -> list[str]:
        options = npm.settled(FillOptions(passages=4, read=4))
        asked = npm.asked([text], [text.replace("[MASK]", "")], [()], options)
        [(_, marked)] = npm.proposed_and_marked(asked, options)
        return [each.best.text for each in marked if each.best.text.count("(") != each.best.text.count(")")]

    assert not halves("Seoul is the [MASK] of Korea.")
    opened = halves("The capital is [MASK]) of Korea.")  # the text has the other half
    assert opened
    assert all(each.rindex("(") > each.rfind(")") for each in opened)
    monkeypatch.setattr(blanks, "is_balanced", lambda text: True)
    assert halves("Seoul is the [MASK] of Korea.")


def test_answers_that_overlap_are_listed_if_asked_for_with_a_reader_too() -> None:
    marked = [proposal("rome", 0.8, (2, 10)), proposal("the Rome", 0.1, (2, 6))]
    assert [each.text for each in combine("[MASK] is large.", [], marked, (1.0, 1.0, 0.0), 5, distinct=False)] == [
        "rome",
        "the Rome",
    ]


def test_no_answer_runs_across_the_end_of_a_sentence() -> None:
    marked = [proposal("Rome. The", 0.8, (2, 10)), proposal("Rome", 0.1, (2, 10)), proposal("St. Louis", 0.1, (3, 40))]
    assert [each.text for each in combine("[MASK] is large.", [], marked, (1.0, 1.0, 0.0), 5)] == ["Rome", "St. Louis"]
    every = combine("[MASK] is large.", [], marked, (1.0, 1.0, 0.0), 5, distinct=False)
    assert [each.text for each in every] == ["Rome. The", "Rome", "St. Louis"]


def test_bm25_is_asked_once_and_a_passage_fetched_once(npm: quoth.NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    npm, rows, asked = npm.over(npm.corpora), list[int](), list[bm25.Query]()  # nothing is cached yet
    passage, search = quoth.Corpus.passage, bm25.search
    monkeypatch.setattr(quoth.Corpus, "passage", lambda of, row: rows.append(row) or passage(of, row))
    monkeypatch.setattr(bm25, "search", lambda parts, query, *more: asked.append(query) or search(parts, query, *more))
    found = npm.fill("Paris is the [MASK] of France.", passages=2, read=4, top_k=20)
    places = {place.passage for each in found for place in each.evidence}
    assert sorted(rows) == sorted(set(rows))
    assert places <= set(rows)
    assert [sorted(each.times) for each in asked] == [["franc", "is", "of", "pari", "the"]]


def test_a_passages_bm25_score_counts_when_a_blank_is_read(
    npm: quoth.NPM, span_reader: Any, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_reader, "config", replace(span_reader.config, prior=3.0))
    text = "Paris is the [MASK] of France."
    ranked = bm25.best_places([corpus], "Paris is the of France.", 4)
    [(_, found)] = npm.proposed_and_marked(Asked([text], [ranked], [()]), npm.settled(FillOptions(read=4)))
    sources = [Source(corpus.passage(row), corpus.name, math.log(s / ranked[0][0])) for s, (_, row) in ranked]
    [spans] = span_reader.read([text], [[each.passage for each in sources]])
    marked = predict_spans(sources, spans, 50, distinct=False, prior=3.0)
    expected = [each for each in marked if is_balanced(each.text)]
    assert [each.best.text for each in found] == [each.text for each in expected]
    assert [each.best.probability for each in found] == pytest.approx([each.probability for each in expected])


@pytest.mark.parametrize("same", [True, False])
def test_a_passage_is_tokenized_once_per_query(
    corpus: quoth.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """If NPM and its reader have one tokenizer, its tokens do for both, and the answers are those of two."""
    folder, text = tiny_npm(tmp_path / "m"), "Paris is the [MASK] of France."
    reader = make_reader(folder, base=lambda place: place, max_tokens=128)
    npm = quoth.NPM(quoth.NPM.from_pretrained(folder).encoder, [corpus], lambda: reader)
    monkeypatch.setattr(blanks, "SURE_ENOUGH", 2.0)
    if not same:
        npm.__dict__["_cuts_alike"] = False
    seen: list[str] = []
    cut = FastTokenizer.__call__

    def spy(self: Any, texts: Any, **options: Any) -> Any:
        seen.extend([texts] if isinstance(texts, str) else texts)
        return cut(self, texts, **options)

    monkeypatch.setattr(FastTokenizer, "__call__", spy)
    found = npm.fill(text, read=3, top_k=20)
    shown = [corpus.passage(row).text for _, (_, row) in bm25.best_places([corpus], "Paris is the of France.", 3)]
    assert len(shown) == 3
    assert [sum(each in one for one in seen) for each in shown] == [1 if same else 2] * 3
    apart = quoth.NPM(npm.encoder, [corpus], lambda: reader)
    apart.__dict__["_cuts_alike"] = False
    assert found == apart.fill(text, read=3, top_k=20)


def test_a_passages_cache_is_bounded(corpus: quoth.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retriever, "CACHED_PASSAGES", 3)
    npm = quoth.NPM.from_pretrained(tiny_npm(tmp_path / "m"), corpus=corpus)
    places = [(0, row) for row in range(corpus.num_passages)]
    assert len(places) > 3
    for at in range(len(places) - 1):
        npm._retriever.gather([places[at : at + 2]])
        assert len(npm._retriever._cache) <= 3
    assert list(npm._retriever._cache) == places[-3:]


def test_a_realm_may_take_another_reader(realm: REALM, corpus: quoth.Corpus) -> None:
    found = realm.ask(QUESTION, passages=3)
    check(found, corpus)
    assert {place.passage for each in found for place in each.evidence} <= {
        hit.passage.row for hit in realm.search(QUESTION, 3)
    }
    check(realm.fill("Paris is the [MASK] of France."), corpus)


@pytest.mark.parametrize("null_document", [True, False])
@pytest.mark.parametrize("verb", ["ask", "fill"])
def test_eq_1_with_the_null_document_equals_brute_force(
    own: REALM, realm: REALM, span_reader: Any, corpus: quoth.Corpus, verb: str, null_document: bool
) -> None:
    text = QUESTION if verb == "ask" else "Paris is the [MASK] of France."
    found = getattr(realm, verb)(text, passages=3, top_k=1000, combine="marginal", null_document=null_document)
    tokenizer, encoder = own.encoder.tokenizer, own.encoder
    ids = masked_ids(tokenizer, text, 1000) if verb == "fill" else tokenizer.pieces([text])[0][0]
    q_D = encoder.vectors_of([list(ids)])[0].astype(np.float64)
    passages = list(corpus.passages())
    vectors = [each.vectors_TD[0] for each in encoder.passages([p.text for p in passages], [p.title for p in passages])]
    relevance = {row: encoder.scale * float(vector @ q_D) for row, vector in enumerate(vectors)}
    read = sorted(relevance, key=lambda row: -relevance[row])[:3]
    weights = {row: math.exp(relevance[row]) for row in read}
    empty = math.exp(encoder.scale * float(encoder.passages([""], [""])[0].vectors_TD[0] @ q_D))
    total = sum(weights.values()) + empty * null_document
    expected: dict[str, float] = {}
    for row in read:
        # Every legal span of the passage, and "no answer here", whose odds are 1.
        odds = every_span(span_reader, text, passages[row])
        for said, its in odds:
            share = weights[row] / total * math.exp(its) / (1 + sum(math.exp(each) for _, each in odds))
            expected[said] = expected.get(said, 0.0) + share
    for each in found:
        assert each.probability == pytest.approx(expected[each.text.casefold()], rel=1e-3, abs=1e-4)
        assert not each.abstained
    assert len(found) > 5
    assert found[0].probability == pytest.approx(max(expected.values()), rel=1e-3)
    assert sum(expected.values()) < (1 - empty / total if null_document else 1)


def every_span(reader: Any, text: str, passage: Passage) -> list[tuple[str, float]]:
    """The texts of all legal spans of a passage, and their odds against "no answer here", in float64."""
    found = brute(reader, text, passage)
    return [(" ".join(passage.text[at:to].split()).casefold(), odds) for (at, to), odds in found.items()]


def test_one_softmax_is_what_fill_does_by_default(
    own: REALM, realm: REALM, span_reader: Any, corpus: quoth.Corpus
) -> None:
    text = "Paris is the [MASK] of France."
    found = realm.fill(text, passages=3, top_k=20)
    rows = {place.passage for each in realm.fill(text, passages=3, top_k=1000) for place in each.evidence}
    assert len(rows) == 3
    sources = [Source(corpus.passage(row), corpus.name) for row in sorted(rows)]
    [spans] = span_reader.read([text], [[each.passage for each in sources]])
    expected = predict_spans(sources, spans, 20)  # no prior: no passage counts more than another
    assert [each.text for each in found] == [each.text for each in expected]
    assert [each.probability for each in found] == pytest.approx([each.probability for each in expected])
    assert realm.fill(text, passages=3, top_k=20, combine="softmax") == found
    with pytest.raises(InputError, match="null_document is True and combine 'softmax'; it is for combine='marginal'"):
        realm.fill(text, null_document=True)
    with pytest.raises(InputError, match="null_document is True and combine 'softmax'"):
        realm.ask(QUESTION, null_document=True)
    with pytest.raises(InputError, match="combine is 'softmax'; it must be 'marginal'"):
        own.fill(text, combine="softmax")
    with pytest.raises(InputError, match="combine is 'max'"):
        realm.ask(QUESTION, combine="max")


def test_bm25_and_the_towers_find_passages_together(
    own: REALM, realm: REALM, span_reader: Any, corpus: quoth.Corpus
) -> None:
    found = realm.ask(QUESTION, passages=3, top_k=20, mode="hybrid")
    check(found, corpus)
    sums: dict[int, float] = {}
    for hits in (realm.search(QUESTION, 100), realm.search(QUESTION, 100, mode="bm25")):
        best, least = hits[0].score, hits[-1].score
        for hit in hits:
            sums[hit.passage.row] = sums.get(hit.passage.row, 0.0) + (hit.score - least) / (best - least)
    rows = sorted(sums, key=lambda row: (-sums[row], row))[:3]
    sources = [Source(corpus.passage(row), corpus.name, math.log(sums[row] / sums[rows[0]])) for row in rows]
    [spans] = span_reader.read([QUESTION], [[each.passage for each in sources]])
    expected = predict_spans(sources, spans, 20, prior=span_reader.config.prior)
    assert [(each.text, each.log_score) for each in found] == [
        (each.text, pytest.approx(each.log_score)) for each in expected
    ]
    hidden = realm.ask(QUESTION, mode="hybrid", exclude=rows)
    assert not {place.passage for each in hidden for place in each.evidence} & set(rows)
    assert realm.ask(QUESTION, mode="hybrid", exclude=range(corpus.num_passages)) == []
    with pytest.raises(InputError, match=r"mode is 'hybrid' and combine 'marginal'.*use mode='dense'"):
        realm.ask(QUESTION, mode="hybrid", combine="marginal")
    with pytest.raises(InputError, match=r"has a reader of its own; use mode='dense'"):
        own.ask(QUESTION, mode="hybrid")
    with pytest.raises(InputError, match="mode is 'bm25'; it must be one of auto, dense, hybrid"):
        realm.ask(QUESTION, mode="bm25")


def test_with_vectors_of_passages_every_model_reads_what_words_and_vectors_find(
    own: REALM, realm: REALM, span_reader: Any, npm: quoth.NPM, corpus: quoth.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_words = quoth.Reader(span_reader, [corpus]).ask(QUESTION, passages=3, top_k=20)
    monkeypatch.setattr("quoth.index.finder.named", lambda _: lambda corpora, *_: Retriever(corpora, own.encoder))
    assert quoth.Reader(span_reader, [corpus]).ask(QUESTION, passages=3, top_k=20) == by_words  # not a shipped model's
    monkeypatch.setattr("quoth.index.finder._SHIPPED", {own.name})
    reader = quoth.Reader(span_reader, [corpus])
    both = realm.ask(QUESTION, passages=3, top_k=20, mode="hybrid")
    assert both != by_words
    assert reader.ask(QUESTION, passages=3, top_k=20) == both
    assert reader.over([corpus]).ask([QUESTION], passages=3, top_k=20) == [both]
    assert reader.ask(QUESTION, passages=3, top_k=20, mode="bm25") == by_words
    assert reader.ask(QUESTION, passages=3, top_k=20, mode="hybrid") == both
    rows = [hit.passage.row for hit in realm.search(QUESTION, 3)]
    nearest = reader.ask(QUESTION, passages=3, top_k=20, mode="dense")
    assert {place.passage for each in nearest for place in each.evidence} <= {*rows}
    assert [hit.passage.row for hit in reader.search(QUESTION, 3, "dense")] == rows
    text = "Paris is the capital of [MASK]."
    found = [hit.passage.row for hit in reader.search(text.replace("[MASK]", " "), 3)]
    for model in (reader, quoth.NPM(npm.encoder, [corpus], lambda: span_reader)):
        filled = model.fill(text, passages=3, top_k=20, **({} if model is reader else {"read": 0}))
        assert {place.passage for each in filled for place in each.evidence} <= {*found}
        assert filled != model.fill(text, passages=3, top_k=20, mode="bm25", **({} if model is reader else {"read": 0}))


def test_a_realm_says_when_it_does_not_know(
    own: REALM, realm: REALM, span_reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = realm.ask(QUESTION, top_k=20)
    middle = found[len(found) // 2].probability
    for least in (0.0, middle, 1.0):
        asked = realm.ask(QUESTION, top_k=20, min_probability=least)
        assert [each.abstained for each in asked] == [each.probability < least for each in found]
    config = replace(span_reader.config, defaults=replace(span_reader.config.defaults, not_found_below=1.0))
    monkeypatch.setattr(span_reader, "config", config)
    assert realm.ask(QUESTION, min_probability=1.0).status == "not_found"
    with pytest.raises(InputError, match=r"min_probability is 2; it must be from 0 to 1"):
        realm.ask(QUESTION, min_probability=2)
    with pytest.raises(InputError, match=r"combine is 'marginal', which is not calibrated; leave one out"):
        realm.ask(QUESTION, min_probability=0.5, combine="marginal")
    with pytest.raises(InputError, match=r"the reader of .* is not calibrated; leave it out"):
        own.ask(QUESTION, min_probability=0.5)


def test_what_fills_no_masks_has_no_likelihood(realm: REALM) -> None:
    with pytest.raises(InputError, match="marks spans and fills no masks; use a model with a reader of its own"):
        realm.likelihood("Paris is the [MASK] of France.", "capital")


def test_what_repeats_the_sentence_of_the_blank_weighs_less() -> None:
    text = "Rome is old. The capital of Italy is [MASK], in Europe."
    assert words_beside(text) == {"capital", "italy", "europe"}
    proposed = [proposal("Italy", 0.5, (1, 0)), proposal("Rome", 0.3, (2, 9)), proposal("the", 0.1, (3, 20))]
    assert [each.text for each in combine(text, proposed, [], (1.0, 0.0, 0.0), 3)] == ["Italy", "Rome", "the"]
    assert [each.text for each in combine(text, proposed, [], (1.0, 0.0, 9.0), 3)] == ["Rome", "the", "Italy"]
