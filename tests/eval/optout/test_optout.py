"""Opting out: what is lost is counted by who holds the answers, shares add up, and nothing of the documents is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quoth
from commands import Run
from quoth.corpus.corpus import Corpus
from quoth.datasets.questions import QAExample
from quoth.errors import InputError
from quoth.records import Document, Evidence, Prediction, Status
from quoth_eval.harness import evaluate
from quoth_eval.optout.experiment import Call, Outcome
from quoth_eval.optout.loss import THEIRS, held_by, optout_task, shares, shares_of
from quoth_eval.optout.removal import Left, Removal, draw_quotations, occurring
from quoth_eval.optout.tables import left_table, loss_table, share_tables
from quoth_eval.systems import Asked
from quoth_eval.task import Answer

PRESS = {
    "p-nile": "The Nile is a long river that flows through Egypt to the sea. Its source is in Burundi.",
    "p-oslo": "Oslo is the capital of Norway and lies at the head of a fjord. It has many ferries to the islands.",
}
OTHERS = {
    "o-nile": "The Nile is a long river that flows through Egypt to the sea. It is 6,650 km long.",
    "o-rome": "Rome is the capital of Italy, and lies by the Tiber. It was founded in 753 before Christ.",
    "o-bern": "Bern is the seat of the government of Switzerland, and lies by the Aare.",
}
QUESTIONS = (
    QAExample("both", "Through which country does the Nile flow?", ("Egypt",)),
    QAExample("press", "What is the capital of Norway?", ("Oslo",)),
    QAExample("others", "What is the capital of Italy?", ("Rome",)),
    QAExample("nobody", "What is the capital of France?", ("Paris",)),
)
FIRST = Left(documents=2, snapshots=1, quotations=2, elsewhere=1, in_bytes=1, vectors=2, recorded=0)


def documents(*owners: dict[str, str]) -> list[Document]:
    return [
        Document(name, name.title(), text, {"owner": "press" if texts is PRESS else "others"})
        for texts in owners
        for name, text in texts.items()
    ]


def make(folder: Path, *owners: dict[str, str]) -> Corpus:
    corpus = Corpus.create(folder)
    corpus.add(documents(*owners))
    return corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make(tmp_path / "library.quoth", PRESS, OTHERS)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        "".join(json.dumps({"id": q.id, "question": q.text, "answer": q.answers}) + "\n" for q in QUESTIONS)
    )
    return file


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_questions_are_grouped_by_who_holds_an_answer(corpus: Corpus) -> None:
    expected = ["they and others", "they alone", "others alone", "nobody"]
    assert held_by(QUESTIONS, corpus, {*PRESS}) == expected
    swapped = {"they alone": "others alone", "others alone": "they alone"}
    assert held_by(QUESTIONS, corpus, {*OTHERS}) == [swapped.get(each, each) for each in expected]


def test_nothing_is_left_of_them_after_compacting(corpus: Corpus, tmp_path: Path) -> None:
    realm = quoth.REALM.from_pretrained("quoth-realm", corpus=corpus)
    realm.embed("sq8")
    before = contents(corpus.path)
    quotations = draw_quotations(corpus.where("owner = 'press'"), 10, 0)
    assert sorted(quotations) == [
        "Oslo is the capital of Norway and lies at the head of a fjord.",
        "The Nile is a long river that flows through Egypt to the sea.",
    ]
    removal = Removal(corpus, tmp_path / "copy" / "library.quoth", [*PRESS], quotations)
    stages = dict(removal.stages())
    assert stages == {
        "before": FIRST,
        "deleted": Left(documents=0, snapshots=1, quotations=0, elsewhere=1, in_bytes=1, vectors=2, recorded=0),
        "compacted": Left(documents=0, snapshots=0, quotations=0, elsewhere=1, in_bytes=0, vectors=0, recorded=0),
    }
    assert contents(corpus.path) == before
    # By brute force: of a corpus that never had the documents, every file of every segment is the same.
    never = make(tmp_path / "never.quoth", OTHERS)
    own = quoth.REALM.from_pretrained("quoth-realm", corpus=never)
    own.embed("sq8")
    [ours], [theirs] = removal.corpus.segments, never.segments
    assert contents(ours.path) == contents(theirs.path)
    everything = b"".join(contents(removal.corpus.path).values())
    for word in (b"Burundi", b"Oslo", b"fjord", b"p-nile", b"press"):
        assert word not in everything, word
        assert word in b"".join(before.values())
    after = realm.over(removal.corpus)
    for question in QUESTIONS:
        asked = [[hit.passage.document_id for hit in each.search(question.text, 5)] for each in (after, own)]
        assert asked[0] == asked[1]


def test_a_copy_of_another_snapshot_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    before = Corpus.open(corpus.path, corpus.snapshot)
    corpus.delete(["o-nile"])
    with pytest.raises(InputError, match="was changed while it was copied"):
        Removal(before, tmp_path / "copy", [*PRESS], [])


def test_the_record_of_source_files_names_them_until_it_is_compacted(tmp_path: Path, run: Run) -> None:
    for name, text in (OTHERS | PRESS).items():
        (tmp_path / "files" / name).with_suffix(".txt").parent.mkdir(exist_ok=True)
        (tmp_path / "files" / name).with_suffix(".txt").write_text(text)
    assert run("index", str(tmp_path / "files"), "-o", str(tmp_path / "a.quoth"), "--no-vectors")[0] == 0
    removal = Removal(Corpus.open(tmp_path / "a.quoth"), tmp_path / "copy.quoth", ["p-nile.txt", "p-oslo.txt"], [])
    assert [(left.documents, left.recorded) for _, left in removal.stages()] == [(2, 2), (0, 2), (0, 0)]


def test_probes_are_found_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    content = bytes(range(256)) * 300_000  # of several chunks
    probes = [content[at : at + 20] for at in range(16)]
    probes += [b"spans two chunks of the file", b"the very end", b"is in another", b"is in none of them", b"short"]
    content = content[: (1 << 24) - 9] + probes[16] + content[(1 << 24) + 19 :] + probes[17]
    (tmp_path / "a.bin").write_bytes(content)
    (tmp_path / "in" / "b.bin").write_bytes(b"it is in another file, short")
    (tmp_path / "c").write_bytes(b"")
    everything = content + b"\0" + (tmp_path / "in" / "b.bin").read_bytes()
    assert occurring(tmp_path, probes) == {each for each in probes[:-1] if each in everything}
    assert occurring(tmp_path, []) == set()


def place(document: str, score: float) -> Evidence:
    return Evidence(document, document.title(), 0, 0, 1, "x", score)


def test_shares_of_an_answer_sum_to_one() -> None:
    places = (place("a", 0.3), place("b", 0.1), place("a", 0.1), place("c", 0.1))
    assert shares(Prediction("x", 0.0, 0.6, places)) == pytest.approx({"a": 0.8, "b": 0.2})  # of the best three
    assert shares(Prediction("x", 0.0, 0.0, (place("a", 0), place("b", 0)))) == {"a": 0.5, "b": 0.5}
    assert shares(Prediction("x", 0.0, 0.0, ())) == {}


def test_answers_without_a_place_have_no_share(corpus: Corpus) -> None:
    made = outcome(corpus, said("Egypt"), said("Oslo"), said("Rome"), said("Bern", place("o-bern", 0.1)))
    assert shares_of(made.results("m")[0]) == {"o-bern": 1.0}
    nobody = outcome(corpus, *map(said, ("Egypt", "Oslo", "Rome", "Bern")))
    assert share_tables(nobody, None)[0] == (["share of the answers by owner"], [])


def said(text: str, *places: Evidence, status: Status = "answered") -> Answer:
    return Answer([Prediction(text, 0.0, sum(each.score for each in places), places, status=status)])


def outcome(corpus: Corpus, *before: Answer) -> Outcome:
    answers = {
        "m, before": before
        or (
            said("Egypt", place("p-nile", 0.2), place("o-nile", 0.2)),
            said("Oslo", place("p-oslo", 0.5)),
            said("Rome", place("o-rome", 0.9)),
            said("Bern", place("o-bern", 0.1)),
        ),
        "m, after": (
            said("Egypt", place("o-nile", 0.4)),
            said("Rome", place("o-rome", 0.5), status="not_found"),
            said("Rome", place("o-rome", 0.9)),
            said("Bern", place("o-bern", 0.1)),
        ),
    }

    def system(name: str) -> Callable[[Any], list[Answer]]:
        found = dict(zip((each.id for each in QUESTIONS), answers[name], strict=True))
        return lambda examples: [found[example.id] for example in examples]

    task = optout_task(QUESTIONS, held_by(QUESTIONS, corpus, {*PRESS}), [*PRESS], {})
    report = evaluate(task, {name: system(name) for name in answers})
    call = Call(corpus, "owner = 'press'", [*PRESS], QUESTIONS, [Asked("m", "m", {})], {})
    return Outcome(call, report, {"before": FIRST}, 2)


def test_the_loss_is_told_by_who_holds_the_answers(corpus: Corpus) -> None:
    _, rows = loss_table(outcome(corpus))
    assert [row[:4] for row in rows] == [
        ["m", "4", "75.0", "50.0"],
        ["m: they alone", "1", "100.0", "0.0"],
        ["m: they and others", "1", "100.0", "100.0"],
        ["m: others alone", "1", "100.0", "100.0"],
        ["m: nobody", "1", "0.0", "0.0"],
    ]
    assert rows[0][4].startswith("-25.0 [")
    assert [row[6:8] for row in rows] == [["100.0", "75.0"], ["100.0", "0.0"], *[["100.0", "100.0"]] * 3]


def test_shares_are_means_over_the_first_answers(corpus: Corpus) -> None:
    made = outcome(corpus)
    before, after = made.results("m")
    assert before.values(THEIRS) == [1, 1, 0, 0]
    assert after.values(THEIRS) == [0, 0, 0, 0]
    expected = {"o-rome": 1 / 4, "p-oslo": 1 / 4, "o-bern": 1 / 4, "p-nile": 1 / 8, "o-nile": 1 / 8}
    assert shares_of(before) == pytest.approx(expected)
    owners, titles = share_tables(made, "owner")
    assert owners[1] == [["others", "62.5"], ["press", "37.5"]]
    assert share_tables(made, None)[0][1] == [["others", "62.5"], ["they", "37.5"]]
    assert {*map(tuple, titles[1])} == {
        ("P-Oslo (p-oslo) *", "25.0"),
        ("O-Rome (o-rome)", "25.0"),
        ("O-Bern (o-bern)", "25.0"),
        ("P-Nile (p-nile) *", "12.5"),
        ("O-Nile (o-nile)", "12.5"),
    }
    assert left_table(made)[1][-1] == ["questions for which m names one", "2", "", "0"]


def test_the_command_asks_before_and_after(corpus: Corpus, questions: Path, run: Run, tmp_path: Path) -> None:
    quoth.REALM.from_pretrained("quoth-realm", corpus=corpus).embed("sq8")
    before = contents(corpus.path)
    command = ["eval", "optout", str(corpus.path), str(questions), "--by", "owner", "--run", str(tmp_path / "run")]
    told = ["--where", "owner = 'press'", "--system", "bm25", "--json"]
    code, out, err = run(*command, *told, *("--system", "quoth-mini,read=0"), *("--system", "quoth-realm"))
    assert code == 0, err
    found = json.loads(out)
    assert (found["num_removed"], found["num_documents"]) == (2, 5)
    assert found["left"]["compacted"] == {"elsewhere": 1} | dict.fromkeys(
        ("documents", "snapshots", "quotations", "in_bytes", "vectors", "recorded"), 0
    )
    systems = {each["name"]: each for each in found["systems"]}
    for name in ("bm25", "quoth-mini,read=0", "quoth-realm"):
        assert systems[f"{name}, before"][THEIRS]["mean"] > 0
        assert systems[f"{name}, after"][THEIRS]["mean"] == 0
    assert systems["bm25, before"]["groups"]["answered by"]["they alone"]["answer@5"]["mean"] == 1
    assert systems["bm25, after"]["groups"]["answered by"]["they alone"]["answer@5"]["mean"] == 0
    assert sum(found["shares"]["quoth-realm"].values()) == pytest.approx(1)
    assert contents(corpus.path) == before
    assert run(*command, *told, "--system", "quoth-mini,read=0", "--system", "quoth-realm") == (0, out, err)
    code, _, err = run(*command, "--where", "owner = 'press'", "--limit", "2")
    assert (code, "resume it with the same" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--where", "owner = 'nobody'"], "no document meets this condition"),
        (["--where", "owner is not null"], "every document meets this condition"),
        (["--where", "owner = 'press'", "--by", "source"], "no document has this field; use one of owner"),
        (["--where", "owner = 'press'", "--set", "reed=0"], "no option 'reed'; did you mean read?"),
        (["--where", "owner = 'press'", "--system", "frequent"], "frequent"),
    ],
)
def test_mistakes_are_told(corpus: Corpus, questions: Path, run: Run, words: list[str], told: str) -> None:
    code, out, err = run("eval", "optout", str(corpus.path), str(questions), *words)
    assert (code, out, told in err) == (2, "", True), err
