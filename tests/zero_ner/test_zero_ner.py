"""Entity search against a comparison with every key; several searches as one; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_entity_encoder import Capitals
from test_luke import tiny_luke

from quoth import NPM, Corpus, Document, FusedSearch, Hit, ZeroNER
from quoth.cli.main import main
from quoth.corpus.bm25 import best_places
from quoth.errors import EmptyCorpusError, InputError, ModelNotFoundError
from quoth.index import codes
from quoth.zero_ner.keys import EntityEncoder
from quoth.zero_ner.model import _range
from quoth.zero_ner.recognition import ByText
from tiny import TEXT, tiny_bert, tiny_npm, tiny_realm

QUESTIONS = ("Where is Paris?", "what is the capital of Germany", "Was Pallas above the Seine in Berlin?", "the river")
CROWDED = "Paris and Berlin, Paris in Paris. " * 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_npm(tmp_path_factory.mktemp("zero") / "npm")


@pytest.fixture
def corpora(tmp_path: Path) -> list[Corpus]:
    """Two corpora, the first of two segments, with a deleted document and one that owns most keys."""
    first, second = (Corpus.create(tmp_path / f"{name}.quoth", splitter="words:250") for name in ("one", "two"))
    first.add([Document(f"a{i}", f"Title {i}" * (i % 2), text) for i, text in enumerate(TEXT[:3])])
    first.add([Document("crowd", "", CROWDED), Document("gone", "Paris", TEXT[1])])
    first.delete(["gone"])
    second.add([Document(f"b{i}", "Seine", f"{text} {TEXT[1]}") for i, text in enumerate(TEXT[3:])])
    return [first, second]


def model(folder: Path, corpora: Sequence[Corpus]) -> ZeroNER:
    made = ZeroNER.from_pretrained(folder, corpora, recognizer=ByText(Capitals()))
    made.embed("fp32")
    return made


Ranked = list[tuple[float, str, int]]


def brute(encoder: EntityEncoder, corpora: Sequence[Corpus], question: str, entities: Any = None) -> Ranked:
    """Every passage with the mean over entities of its largest cosine, best first."""
    q_SD = encoder.queries(question, entities or encoder.asked(question)).astype(np.float64)
    found = []
    for number, corpus in enumerate(corpora):
        for passage in corpus.passages():
            vectors_KD = encoder.encode([passage])[0].vectors_TD.astype(np.float64)
            if len(vectors_KD):
                found.append((float((q_SD @ vectors_KD.T).max(axis=1).mean()), number, passage.row))
    found.sort(key=lambda each: (-each[0], *each[1:]))
    return [(score, corpora[number].name, row) for score, number, row in found]


def assert_same(hits: Sequence[Hit], expected: Ranked, corpora: Sequence[Corpus]) -> None:
    """The same passages with the same scores; equal ones in any order."""
    assert [each.score for each in hits] == pytest.approx([score for score, _, _ in expected], abs=1e-5)
    texts = {corpus.name: corpus for corpus in corpora}
    by_text = [(round(score, 4), texts[name].passage(row).text) for score, name, row in expected]
    assert sorted((round(each.score, 4), each.passage.text) for each in hits) == sorted(by_text)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_search_equals_a_comparison_with_every_key(folder: Path, corpora: list[Corpus], k: int) -> None:
    zero_ner = model(folder, corpora)
    for question in QUESTIONS:
        hits = zero_ner.search(question, k)
        expected = brute(zero_ner.encoder, corpora, question)
        assert_same(hits, expected[:k], corpora)
        assert len(hits) == len({(each.passage.document_id, each.passage.row) for each in hits}) == min(k, 7)


def test_each_passage_says_which_key_matched_which_entity(folder: Path, corpora: list[Corpus]) -> None:
    zero_ner = model(folder, corpora)
    question = "Was Pallas above the Seine in Berlin?"
    documents = {each.id: each for corpus in corpora for each in corpus.documents()}
    for hit in zero_ner.search(question, 7):
        assert [each.query for each in hit.matches] == ["Was", "Pallas", "Seine", "Berlin"]
        assert sum(each.similarity for each in hit.matches) / 4 == pytest.approx(hit.score, abs=1e-6)
        text = documents[hit.passage.document_id].text
        for match in hit.matches:
            assert match.text == (text[match.start : match.end] or hit.passage.title)
            (encoded,) = zero_ner.encoder.encode([hit.passage])
            (q_D,) = zero_ner.encoder.queries(question, [_place(question, match.query)])
            sims = encoded.vectors_TD @ q_D
            assert match.similarity == pytest.approx(float(sims.max()), abs=1e-5)


def _place(question: str, words: str) -> tuple[int, int]:
    return question.index(words), question.index(words) + len(words)


def test_keys_are_searched_once_and_a_question_is_encoded_once(
    folder: Path, corpora: list[Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    zero_ner = model(folder, corpora)
    calls: list[str] = []
    for owner, name in ((zero_ner.encoder, "queries"), (zero_ner._retriever, "keys_in")):
        whole = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, whole=whole, name=name: calls.append(name) or whole(*given))
    assert len(zero_ner.search("Where is Paris?", 3, entities=["Paris"])) == 3
    assert calls == ["queries"]
    calls.clear()
    assert all(hit.matches for hit in FusedSearch([zero_ner]).search("Was Pallas in Berlin?", 7))
    assert calls.count("queries") == 1


def test_given_entities_take_the_place_of_recognised_ones(folder: Path, corpora: list[Corpus]) -> None:
    zero_ner = model(folder, corpora)
    question = "Was Pallas above the Seine in Berlin?"
    wanted = [_place(question, "above the")]
    expected = brute(zero_ner.encoder, corpora, question, wanted)
    for given in (["above the"], ["ABOVE THE "], wanted):
        assert_same(zero_ner.search(question, 4, entities=given), expected[:4], corpora)
    for given, message in (
        ("Paris", r"entities is the string 'Paris'; it must be a list: write \['Paris'\]"),
        ([(0, 3, 4)], r"entity \(0, 3, 4\); give its words, or characters"),
        ([(0.0, 3.0)], r"entity \(0.0, 3.0\); give its words, or characters"),
        (["Elba"], "entity 'Elba' does not occur in the question"),
        ([" "], "entity ' ' does not occur"),
        ([(3, 3)], r"entity \(3, 3\); give its words, or characters \(start, end\) from 0 to 37"),
        ([], "entities is empty; give at least one, or None"),
    ):
        with pytest.raises(InputError, match=message):
            zero_ner.search(question, entities=given)


@pytest.mark.parametrize(
    ("question", "words", "span"),
    [
        ("What museum is in the US?", "US", (22, 24)),
        ("Is Parisian art in Paris?", "Paris", (19, 24)),
        ("is the it IT?", "IT", (10, 12)),
        ("Who wrote War  and\npeace?", "War and Peace", (10, 24)),
        ("Who is O'Brien's?", "Brien", (9, 14)),
        ("the museums", "use", (5, 8)),
    ],
)
def test_a_given_entity_is_whole_words_where_it_can_be(question: str, words: str, span: tuple[int, int]) -> None:
    assert _range(question, words) == span


def test_of_several_entities_no_better_passage_is_left_out(folder: Path, tmp_path: Path) -> None:
    """More than k passages hold one of the entities; those best for all stand far down in each one's list."""
    rng = np.random.default_rng(1)
    names = ["Paris", "Berlin", "Athens", "Seoul", "Delhi", "Cairo", "Pallas", "Seine"]
    corpus = Corpus.create(tmp_path / "many.quoth")
    texts = [" ".join([*rng.choice(names, 2), "is", *rng.choice(names, 1), "river"]) for _ in range(150)]
    corpus.add([Document(f"d{i}", "", text) for i, text in enumerate(texts)])
    zero_ner = model(folder, [corpus])
    question = "Was Paris in Berlin by the Seine?"
    expected = brute(zero_ner.encoder, [corpus], question)
    for k in (1, 2, 5, 20, 100):
        found = zero_ner.search(question, k)
        assert [each.score for each in found] == pytest.approx([score for score, _, _ in expected[:k]], abs=1e-5)


def test_many_keys_are_searched_by_codes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "FLAT_FROM", 200)
    rng = np.random.default_rng(0)
    corpus = Corpus.create(tmp_path / "many.quoth")
    words = sorted({word for text in TEXT for word in text.replace(",", "").split()})
    corpus.add([Document(f"d{i}", "Paris", " ".join(rng.choice(words, 30)).title()) for i in range(60)])
    zero_ner = model(folder, [corpus])
    assert list((corpus.path / "keys").glob("*/*.codes/codes.json"))
    for question in QUESTIONS:
        expected = brute(zero_ner.encoder, [corpus], question)
        found = zero_ner.search(question, 20)
        assert len(found) == 20
        exact = {row: score for score, _, row in expected}
        assert [each.score for each in found] == pytest.approx([exact[each.passage.row] for each in found], abs=1e-4)
        best = {row for _, _, row in expected[:20]}
        assert len(best & {each.passage.row for each in found}) >= 18


def test_added_and_deleted_passages_are_seen_without_embedding_again(folder: Path, corpora: list[Corpus]) -> None:
    zero_ner = model(folder, corpora)
    corpora[0].delete(["a1"])
    corpora[0].add([Document("late", "Berlin", "Germany is east of France.")])
    expected = brute(zero_ner.encoder, corpora, QUESTIONS[1])
    assert_same(zero_ner.search(QUESTIONS[1], 100), expected, corpora)
    corpora[0].compact()
    assert_same(
        model(folder, corpora).search(QUESTIONS[1], 100), brute(zero_ner.encoder, corpora, QUESTIONS[1]), corpora
    )


def test_what_cannot_be_searched_is_said(folder: Path, corpora: list[Corpus], tmp_path: Path) -> None:
    zero_ner = ZeroNER.from_pretrained(folder, corpora, recognizer=ByText(Capitals()))
    with pytest.raises(
        InputError, match=r"segments have no vectors of .*`quoth embed .* --keys entities --model .*` m"
    ):
        zero_ner.search("Paris")
    with pytest.raises(InputError, match="the question is empty"):
        zero_ner.search(" ")
    with pytest.raises(InputError, match="k is 0; it must be 1 or more"):
        zero_ner.search("Paris", 0)
    with pytest.raises(InputError, match="mode is 'sparse'; it must be one of auto, bm25, dense, hybrid"):
        zero_ner.search("Paris", mode="sparse")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mode 'bm25' takes no entities"):
        zero_ner.search("Paris", mode="bm25", entities=["Paris"])
    with pytest.raises(EmptyCorpusError, match="no passage to search"):
        ZeroNER.from_pretrained(folder, recognizer=ByText(Capitals())).search("Paris")
    with pytest.raises(ModelNotFoundError, match="model 'quoth-none' not found"):
        ZeroNER.from_pretrained("quoth-none", recognizer=ByText(Capitals()))


def test_words_tokens_passages_and_entities_are_one_search(folder: Path, corpora: list[Corpus], tmp_path: Path) -> None:
    zero_ner, npm = model(folder, corpora), NPM.from_pretrained(folder, corpora)
    npm.embed("fp32")
    realm = _realm(tmp_path, corpora)
    question, depth, weights = "Where is Paris?", 100, {"entities": 3.0, "bm25": 0.5}
    rankings = {
        0.5: best_places(npm.corpora, question, depth),
        1.0: npm.ranked_by_keys(question, depth).ranking,
        1.0001: realm.ranked_by_keys(question, depth).ranking,
        3.0: zero_ner.ranked_by_keys(question, depth).ranking,
    }
    scores: dict[Any, float] = {}
    for weight, ranking in rankings.items():
        for rank, (_, place) in enumerate(ranking, start=1):
            scores[place] = scores.get(place, 0.0) + round(weight, 3) / (60 + rank)
    best = sorted(scores, key=lambda place: (-scores[place], place))[:4]
    found = FusedSearch([npm, realm, zero_ner], weights=weights).search(question, 4)
    assert [each.passage for each in found] == [corpora[number].passage(row) for number, row in best]
    assert [each.score for each in found] == pytest.approx([scores[place] for place in best])
    assert [[each.query for each in hit.matches] for hit in found] == [["Where", "Paris"]] * 4
    alone = FusedSearch([npm], "sum", {"bm25": 0}).search(question, 3)
    assert [each.passage for each in alone] == [each.passage for each in npm.search(question, 3, "dense")]
    plain = FusedSearch([zero_ner]).search(question, 5)
    assert [each.passage for each in plain] == [each.passage for each in zero_ner.search(question, 5, "hybrid")]


def _realm(folder: Path, corpora: Sequence[Corpus]) -> Any:
    from quoth import REALM

    realm = REALM.from_pretrained(tiny_realm(folder / "realm"), corpora)
    realm.embed("fp32")
    return realm


def test_wrong_fusions_are_refused(folder: Path, corpora: list[Corpus]) -> None:
    zero_ner = model(folder, corpora)
    for models, options, message in (
        ([], {}, "no model to search with"),
        ([zero_ner], {"fusion": "max"}, "fusion 'max'; use one of rrf, sum"),
        ([zero_ner], {"weights": {"tokens": 1.0}}, "weight 1.0 of tokens; give 0 or more for bm25, entities"),
        ([zero_ner], {"weights": {"bm25": 0.0, "entities": 0.0}}, "weights {'bm25': 0.0, 'entities': 0.0}; give"),
        ([zero_ner], {"weights": {"bm25": -1.0}}, "weight -1.0 of bm25; give 0 or more"),
        (
            [zero_ner, model(folder, corpora[::-1])],
            {},
            "the models search different corpora or snapshots; load them all",
        ),
    ):
        with pytest.raises(InputError, match=message):
            FusedSearch(models, **options)  # type: ignore[arg-type]


@pytest.fixture
def place(corpora: list[Corpus], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a corpus, a Zero-NeR whose names are listed, and the NPM it is made of."""
    (tmp_path / "names.txt").write_text("Paris\nBerlin\nSeine\n", encoding="utf-8")
    settings = {"kind": "zero-ner", "base": str(folder), "recognizer": str(tmp_path / "names.txt")}
    (tmp_path / "zero").mkdir()
    (tmp_path / "zero" / "quoth.json").write_text(json.dumps(settings), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_line_embeds_searches_and_explains(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        return (main(arguments), *capsys.readouterr())

    assert run("embed", "one.quoth", "--keys", "entities", "--model", "zero")[:2] == (
        0,
        "one.quoth: 4 passages embedded (sq8)\n",
    )
    question = "Where is Paris?"
    entity = ["search", "one.quoth", question, "--mode", "entity", "--model", "zero"]
    code, out, _ = run(*entity, "--json", "--show-matches", "-k", "2")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert len(records) == 2
    assert [each["query"] for each in records[0]["matches"]] == ["Paris"]
    assert records[0]["matches"][0]["text"] == "Paris"
    assert "matches" not in json.loads(run(*entity, "--json")[1].splitlines()[0])
    assert "Paris = Paris (characters" in run(*entity, "--show-matches")[1]
    given = json.loads(run(*entity, "--json", "--show-matches", "--entity", "is Paris", "-k", "1")[1])
    assert [each["query"] for each in given["matches"]] == ["is Paris"]
    mixed = run(
        "search", "one.quoth", question, "--mode", "hybrid", "--model", "zero", "--weight", "entities=2", "--json"
    )
    assert mixed[0] == 0
    assert len(mixed[1].splitlines()) == 3


def test_it_is_measured_alone_with_bm25_beside_its_own_base_and_by_one_key(
    place: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for model_name in ("zero", str(folder)):
        keys = "entities" if model_name == "zero" else "tokens"
        assert main(["embed", "one.quoth", "--keys", keys, "--model", model_name]) == 0
    (place / "templates.json").write_text(json.dumps({"P1": "What is [X]?"}), encoding="utf-8")
    asked = [("Paris", "capital of France"), ("Berlin", "Germany"), ("Seine", "Eiffel Tower"), ("Oslo", "Norway")]
    questions = [{"question": f"What is {name}?", "answers": [answer]} for name, answer in asked]
    (place / "P1.test.json").write_text(json.dumps(questions), encoding="utf-8")
    capsys.readouterr()
    command = ["eval", "entities", "P1.test.json", "--corpus", "one.quoth", "--set", "templates=templates.json"]
    ways = [
        "bm25",
        str(folder),
        *(f"zero{more}" for more in ("", ",told=true", ",mode=hybrid", ",keys=all", ",keys=idf")),
    ]
    systems = [part for each in ways for part in ("--system", each)]
    assert main([*command, *systems, "--set", "idf=true", "--set", "ks=1,4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["num_examples"], report["num_covered"]) == (4, 3)
    assert [each["name"] for each in report["systems"]] == ways
    covered = [each["groups"]["covered"]["covered"] for each in report["systems"]]
    assert all(scores["dpr@4"]["mean"] == 1 for scores in covered[1:-1])
    assert covered[5] == covered[3]  # all keys, and the model's own search


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "one.quoth", "x", "--entity", "x"], "--entity x goes with --mode entity, not auto"),
        (["search", "one.quoth", "x", "--weight", "bm25=1"], "--weight bm25=1 goes with --mode hybrid, not auto"),
        (["search", "one.quoth", "x", "--mode", "hybrid", "--weight", "bm25=a"], "--weight: could not convert"),
        (["search", "one.quoth", "x", "--mode", "dense", "--model", "a", "--model", "b"], "--model is given 2 times"),
        (
            ["embed", "one.quoth", "--keys", "tokens", "--model", "zero"],
            "--keys tokens with --model zero, whose keys are",
        ),
        (["embed", "one.quoth", "--keys", "entities", "--ray"], "--ray embeds tokens, but the keys of quoth-zero-ner"),
        (["search", "one.quoth", "x", "--show-matches"], "--show-matches goes with --mode entity or hybrid, not auto"),
        (
            ["search", "one.quoth", "x", "--mode", "entity", "--model", "quoth-realm"],
            "is of kind 'realm'; kind 'zero-ner' or 'npm' is required here",
        ),
        (
            ["fill", "one.quoth", "x [MASK]", "--model", "quoth-zero-ner"],
            "is of kind 'zero-ner'; kind 'npm' is required",
        ),
        (["search", "one.quoth", "x\udcff"], "is not UTF-8 text"),
        (["fill", "one.quoth", "x [MASK]", "--model", "zero"], "is of kind 'zero-ner'; kind 'npm' is required here"),
    ],
)
def test_wrong_commands_say_what_is_wrong(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("titles", ["passage", "alone"])
def test_a_luke_serves_as_it_is_and_one_at_a_time(corpora: list[Corpus], tmp_path: Path, titles: str) -> None:
    settings = {"kind": "zero-ner", "base": str(tiny_luke(tmp_path / "luke")), "recognizer": "titles", "titles": titles}
    marks = set()
    for joint in (True, False):
        (tmp_path / "quoth.json").write_text(json.dumps({**settings, "joint": joint}), encoding="utf-8")
        made = ZeroNER.from_pretrained(tmp_path, corpora, recognizer=ByText(Capitals()))
        made.embed("fp32")
        assert_same(made.search("Where is Paris?", 7), brute(made.encoder, corpora, "Where is Paris?"), corpora)
        marks.add(made.fingerprint)
    assert len(marks) == 2
    assert ZeroNER.from_pretrained(tmp_path / "luke", corpora).config.base == str(tmp_path / "luke")


def test_an_encoder_of_another_kind_serves_as_it_is(corpora: list[Corpus], tmp_path: Path) -> None:
    made = ZeroNER.from_pretrained(tiny_bert(tmp_path / "bert"), corpora[:1], recognizer=ByText(Capitals()))
    made.embed("fp32")
    assert_same(made.search("Where is Paris?", 3), brute(made.encoder, corpora[:1], "Where is Paris?")[:3], corpora)
