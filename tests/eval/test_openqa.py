"""Questions asked of tiny corpora: ranks and scores by hand, what can be answered, SQuAD among distractors, the CLI."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import given, measured, plain, repeated, said
from test_questions import SQUAD

from quoth import NPM
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import has_answer
from quoth.datasets.questions import QAExample
from quoth.errors import EmptyCorpusError, InputError
from quoth.records import Document, Hit, Prediction
from quoth_eval import systems
from quoth_eval.harness import ProgressCallback
from quoth_eval.report import Report, Result
from quoth_eval.systems import Answerer
from quoth_eval.tasks import openqa
from quoth_eval.tasks.openqa import (
    WITHOUT_EVIDENCE,
    Evidence,
    OpenSettings,
    SquadSettings,
    abstention_table,
    draw_passages,
    questions_over,
    squad_corpus,
)
from tiny import tiny_npm

TEXTS = (
    "Bizet composed Carmen.",
    "Carmen is set in Seville, in Spain.",
    "Verdi composed Aida.",
    "Rats carried the plague.",
)
QUESTIONS = (
    QAExample("1", "who composed carmen", ("Georges Bizet", "bizet"), gold="d0"),
    QAExample("2", "where is carmen set, composed", ("Spain",), gold="d0"),
    QAExample("3", "what carried it", (r"rats?\b",), pattern=True, gold="d3"),
    QAExample("4", "who composed parsifal", ("Wagner",), gold="d9"),
)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "opera.quoth")
    made.add(Document(f"d{i}", "", text) for i, text in enumerate(TEXTS))
    return made


class Knows:
    """Finds the passages in their order, last first, and answers from a table."""

    def __init__(self, corpus: Corpus, answers: Sequence[Sequence[str]]) -> None:
        self.passages = list(corpus.passages())
        self.answers = dict(zip((each.text for each in QUESTIONS), answers, strict=True))
        self.asked_with: list[dict[str, Any]] = []

    def search(self, query: str, k: int) -> list[Hit]:
        return [Hit(passage, 0.0) for passage in self.passages[::-1][:k]]

    def ask(self, question: str, *, top_k: int, **options: Any) -> list[Prediction]:
        self.asked_with.append(options)
        return [Prediction(text, 0.0, 0.0, ()) for text in self.answers[question][:top_k]]


def places(result: Result, measure: str, depth: int) -> list[int | None]:
    """The rank of the first right passage of each question, from its measures at 1, 2, ... depth."""
    found = [[row.scores[f"{measure}@{k}"] for k in range(1, depth + 1)] for row in result.rows]
    return [next((i for i, right in enumerate(of) if right), None) for of in found]


def run_openqa(
    questions: Sequence[QAExample],
    corpora: Sequence[Corpus],
    models: Mapping[str, Any] | None = None,
    progress: ProgressCallback | None = None,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Report:
    """The report of BM25 and of models over questions."""
    (model,) = (models or {"": None}).values()
    call = given(Path(), *corpora, opens=model)
    prepared = questions_over("openqa", call, OpenSettings(**settings), questions)
    return measured(prepared, dict.fromkeys(models or {}, options or {}), progress)


def test_scores_by_hand(corpus: Corpus) -> None:
    system = Knows(corpus, [["BIZET!", "x"], ["Seville", "Spain"], ["rat trap"], []])
    seen: list[tuple[str, int, int]] = []
    report = run_openqa(
        QUESTIONS,
        [corpus],
        {"knows": system},
        ks=(1, 2, 3),
        oracle=2,
        progress=lambda *each: seen.append(each),
        options={"passages": 2},
    )
    baseline, knows = report.systems
    assert (baseline.name, baseline.rows[0].predictions, baseline.values("exact_match")) == ("bm25", None, None)
    assert places(baseline, "answer", 3) == [0, 0, 0, None]
    assert places(baseline, "paragraph", 3) == [0, 1, 0, None]
    assert places(knows, "answer", 3) == [None, 2, 0, None]  # three passages are searched for
    assert places(knows, "paragraph", 3) == [None, None, 0, None]
    assert [said(row) for row in knows.rows] == [("BIZET!", "x"), ("Seville", "Spain"), ("rat trap",), ()]
    assert (knows.values("exact_match"), knows.values("hit_at_5")) == ([1, 0, 1, 0], [1, 1, 1, 0])
    assert system.asked_with == [{"passages": 2}] * 4
    assert seen == [("bm25", 4, 4), ("knows", 4, 4)]
    found = report.to_dict()
    settings = {"num_passages": 4, "num_answerable": 3, "seed": 0, "read": 2}
    assert {name: found[name] for name in settings} == settings
    assert found["num_examples"] == 4
    first, second = found["systems"]
    assert "exact_match" not in first
    assert first["answer@1"]["mean"] == first["answer@3"]["mean"] == first["oracle@2"]["mean"] == 0.75
    assert (first["paragraph@1"]["mean"], first["paragraph@3"]["mean"]) == (0.5, 0.75)
    assert second["exact_match"] == {"mean": 0.5, "low": 0.0, "high": 1.0}
    assert (second["hit_at_5"]["mean"], second["oracle@2"]["mean"]) == (0.75, 0.25)
    assert (second["answer@1"]["mean"], second["answer@3"]["mean"]) == (0.25, 0.5)
    assert [each["num_examples"] for each in second["groups"]["corpus"].values()] == [3, 1]
    lines = plain(report.markdown(()))
    assert lines[:4] == [
        "| openqa; passages: 4; answerable: 3 | examples | exact match | hit at 5 | answer@1 | answer@2 | answer@3 "
        "| paragraph@1 | paragraph@2 | paragraph@3 | oracle@2 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| bm25 | 4 | – | – | 75.0 | 75.0 | 75.0 | 50.0 | 75.0 | 75.0 | 75.0 |",
        "| knows | 4 | 50.0 | 75.0 | 25.0 | 25.0 | 50.0 | 25.0 | 25.0 | 25.0 | 25.0 |",
    ]
    assert "50.0 [0.0, 100.0]" in report.markdown()


def test_without_gold_or_coverage_nothing_is_said_of_them(corpus: Corpus) -> None:
    report = run_openqa([QAExample("1", "Carmen", ("Spain",)), QUESTIONS[0]], [corpus], coverage=False)
    assert report.settings["num_answerable"] is None
    assert not any(name.startswith("paragraph") for row in report.systems[0].rows for name in row.scores)
    assert "paragraph" not in report.markdown()
    assert "answerable" not in report.markdown()


def test_several_corpora_are_searched_as_one(corpus: Corpus, tmp_path: Path) -> None:
    more = Corpus.create(tmp_path / "more.quoth")
    more.add([Document("w", "", "Wagner composed Parsifal.")])
    report = run_openqa(QUESTIONS, [corpus, more])
    assert (report.settings["num_passages"], report.settings["num_answerable"]) == (5, 4)
    assert report.systems[0].rows[3].scores["answer@20"] == 1


def test_mistakes_are_named(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no questions to ask"):
        run_openqa([], [corpus])
    for ks, oracle in ((), 5), ((0,), 5), ((1,), 0):
        with pytest.raises(InputError, match=r"(ks|oracle) is"):
            run_openqa(QUESTIONS, [corpus], ks=ks, oracle=oracle)
    with pytest.raises(EmptyCorpusError):
        run_openqa(QUESTIONS, [Corpus.create(tmp_path / "empty.quoth")])


def test_npm_is_such_a_system(corpus: Corpus, tmp_path: Path) -> None:
    npm = NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpus=corpus)
    system: Answerer = npm
    report = run_openqa(QUESTIONS, [corpus], {"npm": system}, options={"template": "[MASK]. {question}", "passages": 1})
    baseline, found = report.systems
    assert found.values("answer@1") == baseline.values("answer@1")
    assert all(said(row) for row in found.rows)
    assert found.values("exact_match") is not None
    assert all(row.predictions[0].evidence for row in found.rows if row.predictions)


def test_evidence_is_removed_that_only_a_dense_search_finds(tmp_path: Path) -> None:
    texts = [f"Verdi composed opera {n}, Verdi composed it." for n in range(150)]
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add(Document(f"v{n}", "", text) for n, text in enumerate(texts))
    corpus.add([Document("b", "", "The café of Georges Bizet."), Document("g", "Gold", "It is old.")])
    corpus.delete(["v0"])
    npm = NPM.from_pretrained(tiny_npm(tmp_path / "npm"), corpus=corpus)
    npm.embed()
    question = QAExample("1", "who composed it", ("Bizet", "the"), gold="g")
    evidence = {each.row for each in corpus.passages() if each.document_id in ("b", "g")}
    found = {hit.passage.row for hit in npm.search(question.text, 100, mode="bm25")}
    assert not found & evidence
    assert Evidence([question], [corpus]).rows(question) == evidence

    def quoted(**options: Any) -> set[str]:
        answers = npm.ask(question.text, passages=None, read=0, top_k=1000, distinct=False, **options)
        return {place.document_id for each in answers for place in each.evidence}

    assert "b" in quoted()
    assert not {"b", "g"} & quoted(exclude=Evidence([question], [corpus]).rows(question))


def test_evidence_is_found_for_some_questions_at_a_time(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openqa, "QUESTIONS_AT_A_TIME", 3)
    passes: list[int] = []
    monkeypatch.setattr(openqa, "read_passages", lambda corpora, _: passes.append(1) or corpora[0].passages())
    evidence = Evidence([*QUESTIONS, QUESTIONS[0]], [corpus])
    assert [evidence.rows(each) for each in QUESTIONS] == [{0}, {0, 1}, {3}, set()]
    assert len(passes) == 2
    assert evidence.rows(QUESTIONS[2]) == {3}  # asked again, as by a second model


def distractors(folder: Path) -> str:
    path = folder / "docs.jsonl"
    long = " ".join(f"Sentence {i} has five words." for i in range(60))
    records = [{"id": str(i), "title": title, "text": long} for i, title in enumerate(("black death", "Rain", "Snow"))]
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return str(path)


def test_distractors_are_drawn_by_seed_and_never_of_squads_own_articles(tmp_path: Path) -> None:
    path = distractors(tmp_path)
    everything = list(draw_passages([path], {"Black Death"}, None, 0))
    assert [each.id for each in everything] == [f"distractor:{i}:{n}" for i in (1, 2) for n in range(3)]
    assert {each.title for each in everything} == {"Rain", "Snow"}
    three = list(draw_passages([path], {"Black Death"}, 3, 0))
    assert {each.id for each in draw_passages([path], {"Black Death"}, 2, 0)} < {each.id for each in three}
    assert {each.id for each in three} != {each.id for each in draw_passages([path], {"Black Death"}, 3, 5)}
    assert len(list(draw_passages([path], set(), None, 0))) == 9
    assert list(draw_passages([], set(), 0, 0)) == list(draw_passages([], set(), None, 0)) == []


def test_a_paragraph_is_one_passage(tmp_path: Path) -> None:
    paragraphs = [Document("squad:A:0", "A", "Long. Word.\n\n" * 500), Document("squad:A:1", "A", "Short.")]
    four = SquadSettings(distractors=(distractors(tmp_path),), num_distractors=4)
    made = squad_corpus(given(tmp_path), four, paragraphs)
    assert (made.num_documents, made.num_passages) == (6, 6)
    assert [each.document_id for each in made.passages()][:2] == ["squad:A:0", "squad:A:1"]
    with pytest.raises(InputError, match="20 distractors requested, but there are 9 passages"):
        squad_corpus(given(tmp_path), replace(four, num_distractors=20, keep=str(tmp_path / "t.quoth")), paragraphs)
    assert not (tmp_path / "t.quoth").exists()


def test_the_command_for_squad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "squad.json").write_text(json.dumps(SQUAD), encoding="utf-8")
    squad, kept = str(tmp_path / "squad.json"), str(tmp_path / "kept.quoth")
    told = (f"distractors={distractors(tmp_path)}", "num_distractors=2", f"keep={kept}")
    options = ["--system", "bm25", "--set", "ks=1,2"]
    kept_too = [*options, *repeated("--set", *told)]
    assert main(["eval", "squad", squad, *kept_too]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == (
        "| squad; passages: 4 | examples | answer@1 | answer@2 | paragraph@1 | paragraph@2 | oracle@5 |"
    )
    assert main(["eval", "openqa", squad, "--corpus", kept, *options, "--set", "coverage=false"]) == 0
    assert capsys.readouterr().out == shown.replace("| squad;", "| openqa;")
    assert main(["eval", "squad", squad, *kept_too]) == 2
    assert "already exists" in capsys.readouterr().err


def test_what_is_compared_by_vectors_is_embedded_in_a_corpus_of_the_tasks_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "squad.json").write_text(json.dumps(SQUAD), encoding="utf-8")
    npm = str(tiny_npm(tmp_path / "npm"))
    options = repeated("--set", "read=0", "passages=null")
    asked = ["eval", "squad", str(tmp_path / "squad.json"), "--system", npm, *options]
    assert main(asked) == 0
    assert npm in capsys.readouterr().out
    assert main([*asked, "--set", f"keep={tmp_path / 'kept.quoth'}"]) == 2  # a corpus that is kept is the user's
    assert "segments have no vectors" in capsys.readouterr().err


def test_the_command_for_questions(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Knows(corpus, [["Bizet"], [], [], []])
    setups: list[object] = []
    monkeypatch.setattr(systems, "load_predictor", lambda name, corpora, setup: setups.append(setup) or system)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "q.tsv"
    path.write_text("who composed carmen\t['Bizet']\nwhat\t[]\n", encoding="utf-8")
    command = ["eval", "openqa", str(path), "--corpus", str(corpus.path), "--json"]
    assert main(command) == 2
    assert "q.tsv:2: no answer" in capsys.readouterr().err
    command += repeated("--set", "skip_bad=true", "oracle=3", "passages=3")
    asked = repeated("--system", "bm25", "quoth-mini,ban_query=true", "quoth-reader,min_probability=0.5")
    assert main([*command, *asked, "--base", ".", "--device", "cpu", "--dtype", "bf16"]) == 0
    assert setups == [(Path("."), "cpu", "bf16")] * 2
    shown = capsys.readouterr()
    assert "left out 1 broken record" in shown.err
    found = json.loads(shown.out)
    assert (found["num_answerable"], found["read"], found["options"]) == (1, 3, {"passages": 3})
    assert [each.get("exact_match", {}).get("mean") for each in found["systems"]] == [None, 1.0, 1.0]
    assert system.asked_with == [{"passages": 3, "ban_query": True}, {"passages": 3, "min_probability": 0.5}]
    assert main([*command, "--system", "quoth-reader,combine=sum"]) == 2
    assert "no option 'combine'; use one of passages, mode, min_probability" in capsys.readouterr().err


class Doubtful(Knows):
    """As sure as can be with its evidence, less so without."""

    def ask(self, question: str, *, top_k: int, exclude: Any = (), **options: Any) -> list[Prediction]:
        found = super().ask(question, top_k=top_k, exclude=exclude, **options)
        sure, status = (0.2, "unsure") if exclude else (0.9, "answered")
        return [replace(each, probability=sure, status=status) for each in found]


def test_questions_are_asked_again_without_their_evidence(corpus: Corpus) -> None:
    system = Doubtful(corpus, [["Bizet"], ["Seville"], ["no"], []])
    report = run_openqa(QUESTIONS, [corpus], {"doubts": system}, abstain=True, coverage=False)
    doubts = report.systems[1]
    chances = [row.predictions[0].probability if row.predictions else 0.0 for row in doubts.rows]
    assert chances == [0.9, 0.9, 0.9, 0.0]
    hidden = [options["exclude"] for options in system.asked_with if options["exclude"]]
    for question, rows in zip(QUESTIONS, hidden, strict=False):
        told = {each.row for each in corpus.passages() if has_answer(each.text, question)}
        gold = {each.row for each in corpus.passages() if each.document_id == question.gold}
        assert rows == told | gold
    assert set(doubts.values(WITHOUT_EVIDENCE) or ()) <= {0.0, 0.2, 0.9}
    assert len(doubts.values(WITHOUT_EVIDENCE) or ()) == 4
    shown = abstention_table(report)
    assert "With the evidence removed, 100.0 % of the questions get no answer." in shown
    assert "| answered | of these right |" in shown
    assert "| 75.0 | 33.3 |" in shown
    assert "| doubts | AURC | AUGRC |" in shown
    assert "| 4 questions | " in shown
    with pytest.raises(InputError, match="2 corpora; evidence can be removed from one corpus only"):
        run_openqa(QUESTIONS, [corpus, corpus], {"doubts": system}, abstain=True)


def test_evidence_of_the_whole_corpus_is_not_hidden_in_a_share(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "q.tsv"
    path.write_text("who composed carmen\t['Bizet']\n", encoding="utf-8")
    command = ["eval", "openqa", str(path), "--corpus", str(corpus.path), "--set", "abstain=true"]
    assert main([*command, "--system", "quoth-reader,corpus=0.5"]) == 2
    assert "openqa hides passages of the whole corpus; leave out corpus" in capsys.readouterr().err
