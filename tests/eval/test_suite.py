"""Tasks by name on the command line, and what went wrong in a run: kinds of errors by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asking import given, written

from quoth import NPM, Corpus, Document
from quoth.cli.main import main
from quoth.cli.options import Setup
from quoth.errors import InputError
from quoth.records import Evidence, Prediction
from quoth_eval.charts import drawable
from quoth_eval.errors import (
    ABSENT,
    BOUNDS,
    PASSAGE,
    PHRASE,
    SILENT,
    UNKNOWN,
    UNREAD,
    error_of,
    shown_errors,
    wrong_answers,
)
from quoth_eval.harness import read_run
from quoth_eval.pages import as_markdown
from quoth_eval.report import Result, Row
from quoth_eval.systems import Asked, Opener, parse_system, sample_of, sampled_ids
from quoth_eval.tasks import GROUPS, NAMES, expand, find
from quoth_eval.tasks.openqa import read_kamel
from tiny import TEXT, tiny_npm

CONTEXT = "The Axios rises in Macedonia and flows to the Thermaic Gulf."


def row(said: str, *answers: str, context: str = CONTEXT, corpus: str = "", oracle: float = 0.0, **more: object) -> Row:
    at = context.find(said)
    place = Evidence("d", "Axios", 0, 100 + at, 100 + at + len(said), context, 0.5, context_start=100)
    predictions = (Prediction(said, 0.0, 0.5, (place,), status=more.get("status", "answered")),) if said else ()
    scores = {"exact_match": 0.0, "oracle@5": oracle}
    return Row("m", "1", "q?", answers, scores, {"corpus": corpus} if corpus else {}, predictions)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (row("the Thermaic", "Thermaic Gulf"), BOUNDS),
        (row("Gulf", "Thermaic Gulf"), BOUNDS),
        (row("Macedonia", "Thermaic Gulf", corpus="answerable"), PHRASE),
        (row("Macedonia", "Aegean", corpus="answerable", oracle=1.0), PASSAGE),
        (row("Macedonia", "Aegean", corpus="answerable"), UNREAD),
        (row("Macedonia", "Aegean", corpus="not answerable"), ABSENT),
        (row("Macedonia", "Aegean"), UNKNOWN),
        (row("", "Aegean"), SILENT),
        (row("Macedonia", "Macedonia and", status="unsure"), SILENT),
    ],
)
def test_errors_are_of_these_kinds(wrong: Row, kind: str) -> None:
    assert error_of(wrong) == kind


def test_a_wrong_label_is_told_by_both_labels() -> None:
    taken = Row("m", "1", "text", ("1",), {"accuracy": 0.0}, {}, (Prediction("0", 0.0, 1.0, ()),))
    assert error_of(taken) == "label 1 taken for 0"


def test_errors_are_sorted_by_kind_and_shown_with_their_evidence() -> None:
    right = Row("m", "2", "q?", ("x",), {"exact_match": 1.0}, {}, (Prediction("x", 0.0, 1.0, ()),))
    search = Row("bm25", "3", "q?", ("x",), {"answer@1": 0.0})
    rows = (row("", "Aegean"), right, row("Macedonia", "Aegean"), row("Gulf", "Thermaic Gulf"), search)
    wrong = wrong_answers(Result("m", rows))
    assert [each.kind for each in wrong] == [BOUNDS, UNKNOWN, SILENT]
    sections = shown_errors(wrong, 50)
    assert [each.title for each in sections] == [BOUNDS, UNKNOWN, SILENT]
    assert as_markdown("", sections[:1]).splitlines()[-3:] == [
        "- 1: q?",
        "  right: Thermaic Gulf; said: Gulf (50.0 %; right place, wrong bounds)",
        "  Axios: …The Axios rises in Macedonia and flows to the Thermaic **Gulf**.…",
    ]
    assert len(shown_errors(wrong, 1)) == 1


@pytest.fixture
def data(tmp_path: Path) -> Path:
    files = {
        "sst2/test.tsv": "__label__5\tGreat !\n__label__1\tAwful .\n",
        "sst2/verbalizers.txt": "chamber, bust\nriver, tower\n",
        "open_qa/nq.test.tsv": "what is the capital of france\t['Paris']\nwho sat on it\t['Zeus']\n",
        "kamel/dev.jsonl": '{"sub_label": "France", "obj_label": ["Paris", "Lyon"], "relation": "P36"}\n',
        "kamel/question-templates.csv": "P36, What is the capital of [S]?\n",
    }
    return written(tmp_path / "data", files)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    made = Corpus.create(tmp_path / "c.quoth")
    made.add([Document(f"d{i}", "", text) for i, text in enumerate(TEXT)])
    NPM.from_pretrained(tiny_npm(tmp_path / "npm"), made).embed()
    return tmp_path / "c.quoth"


def test_tasks_are_asked_by_name_kept_and_looked_at(
    data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npm = str(tmp_path / "npm")
    asked = ["--data", str(data), "--corpus", str(corpus), "--run", str(tmp_path / "runs"), "--json"]
    systems = ["--system", npm, "--system", f"{npm},combine=sum,passages=2", "--system", "bm25"]
    assert main(["eval", "nq", "kamel", *asked, *systems, "--set", "read=0"]) == 0
    nq, kamel = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["name"] for each in nq["systems"]] == [npm, f"{npm},combine=sum,passages=2", "bm25"]
    assert (nq["task"], nq["num_examples"], nq["num_answerable"], nq["options"]["read"]) == ("nq", 2, 1, 0)
    assert (kamel["task"], kamel["num_examples"]) == ("kamel", 1)
    assert len(nq["differences"]) == 3
    assert main(["eval", "run", "sst2", *asked, "--system", npm, "--set", "scoring=all"]) == 0
    (sst2,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert 0 <= sst2["systems"][0]["accuracy"]["mean"] <= 1
    assert main(["eval", "errors", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr().out
    assert all(f"| {task}, {npm}: " in shown for task in ("nq", "kamel"))
    assert main(["eval", "run", "sst2", *asked, "--system", npm, "--set", "scoring=nearest"]) == 2
    assert "runs/sst2 is a run with options=" in capsys.readouterr().err


def test_mistakes_are_one_clear_line(
    data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--data", str(data), "--corpus", str(corpus)]
    mistakes = {
        ("sst3", *asked): "unknown task 'sst3'; did you mean sst2?; choose from agn, yahoo",
        ("sst2", "mr", *asked): "mr/test.jsonl: no such file; get it from the data of",
        ("sst2", "--data", "nowhere", "--corpus", str(corpus)): "--data nowhere: no such folder",
        ("nq", "--data", str(data), "--corpus", "none.quoth"): "none.quoth",
        ("sst2", *asked, "--system", "bm25"): "bm25 cannot do sst2; leave it out",
        ("sst2", *asked, "--system", "quoth-reader"): "quoth-reader cannot do sst2",
        ("nq", *asked, "--system", "quoth-mini,combine"): "'combine' is not OPTION=VALUE",
        ("nq", *asked, "--limit", "-1"): "--limit -1; it must be 1 or more, or 0 for all",
        ("errors", str(tmp_path)): "name the folder of a run",
        ("nq", *asked, "--read", "0"): "no option --read; did you mean",
        ("nq", *asked, "--set", "heat=1"): "--set: no option 'heat'; use one of ks",
        ("nq", *asked, "--set", "coverage=2"): "coverage is 2; it must be true or false",
        ("nq", *asked, "--set", "ks=1,x"): "ks is [1, 'x']; it must be a list of whole numbers",
        ("nq", "x.tsv", *asked): "nq takes no files: 'x.tsv'",
        ("openqa", "x.tsv"): "x.tsv",
    }
    for arguments, says in mistakes.items():
        assert main(["eval", *arguments]) == 2, arguments
        err = capsys.readouterr().err
        assert err.count("\n") == 1, err
        assert says in err


def test_a_set_of_a_group_that_is_not_there_is_left_out(
    data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--data", str(data), "--corpus", str(corpus), "--system", "majority", "--json"]
    assert main(["eval", "sentiment", *asked]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["task"] for line in shown.out.splitlines()] == ["sst2"]
    assert [line.split(":")[1] for line in shown.err.splitlines()] == [f" left out {name}" for name in EMPTY]
    (data / "sst2" / "test.tsv").unlink()
    assert main(["eval", "sentiment", *asked]) == 2


EMPTY = ("mr", "rt", "cr", "amazon")


def test_a_set_of_a_group_that_cannot_be_asked_over_the_corpus_is_left_out(
    data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "subj").mkdir()
    (data / "subj" / "test.jsonl").write_text('{"sentence": "The raven sat.", "label": 1}\n', encoding="utf-8")
    asked = ["--data", str(data), "--corpus", str(corpus), "--system", str(tmp_path / "npm"), "--set", "scoring=all"]
    assert main(["eval", "closed", *asked, "--json"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["task"] for line in shown.out.splitlines()] == ["sst2"]
    assert "left out subj: no word of label 0, 1 occurs in the corpus" in shown.err
    assert main(["eval", "subj", *asked]) == 2


def test_systems_are_spelled_with_their_options() -> None:
    nq, sst2 = find("nq"), find("sst2")
    assert parse_system("quoth-mini", nq) == Asked("quoth-mini", "quoth-mini", {})
    spelled = "quoth-mini,combine=sum,k=9,ban_query=true"
    assert parse_system(spelled, nq).options == {"combine": "sum", "k": 9, "ban_query": True}
    common = {"k": 7, "passages": 2, "template": "x {question} [MASK]"}
    assert parse_system("quoth-mini,k=9", nq, common).options == {**common, "k": 9}
    assert parse_system("quoth-reader", nq, common).options == {"passages": 2}
    assert parse_system("lm:x", nq, common).options == {"passages": 2, "template": common["template"]}
    assert parse_system("bm25", nq, common).options == {}
    with pytest.raises(InputError, match=r"no option 'combin'; did you mean combine\?"):
        parse_system("quoth-mini,combin=sum", nq)
    with pytest.raises(InputError, match="combine is 'best'"):
        parse_system("quoth-mini,combine=best", nq)
    with pytest.raises(InputError, match="labelled is True; it must be a whole number, 1 or more"):
        parse_system("quoth-mini,labelled=true", sst2)
    with pytest.raises(InputError, match="no option 'k'"):
        parse_system("quoth-reader,k=3", nq)


def test_every_name_is_a_task_with_its_own_file_and_options() -> None:
    assert expand(["sentiment", "sst2", "rte"]) == ["sst2", "mr", "rt", "cr", "amazon", "rte"]
    assert {name for names in GROUPS.values() for name in names} <= set(NAMES)
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    for name in NAMES:
        spec = find(name)
        assert spec.name == name
        assert spec.read({}) == spec.settings()
        assert all(f"\n| `{option}` | " in page for option in spec.names)
        for system in spec.systems:
            parse_system(system, spec)


@pytest.mark.parametrize(
    "name", sorted({*expand(["closed", "open", "facts"]), "nq-dev"} - {"webquestions", "curatedtrec"})
)
def test_a_task_without_data_names_its_file_and_where_it_can_be_had(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{name} is read from DIR/\S+; name DIR with --data.*https://"):
        find(name).prepare(given(tmp_path), {})


def test_data_are_told_before_the_corpus_is(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "sst2"]) == 2
    error = capsys.readouterr().err
    assert "DIR/sst2/test.tsv" in error
    assert "lines of __label__1 to 5, tab, text" in error
    assert main(["eval", "sst2", "--data", str(data)]) == 2
    assert "no corpus to search; name one that quoth index made with --corpus" in capsys.readouterr().err


def test_kamels_questions(data: Path) -> None:
    (question,) = read_kamel(data)
    assert (question.text, question.answers) == ("What is the capital of France?", ("Paris", "Lyon"))
    (data / "kamel" / "dev.jsonl").write_text('{"sub_label": "x", "obj_label": ["y"], "relation": "P1"}\n')
    with pytest.raises(InputError, match=r"dev\.jsonl:1: not a fact of KAMEL \(relation 'P1' has no template"):
        read_kamel(data)


def test_blanks_of_the_corpus_are_swept_and_never_see_their_own_passage(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npm, runs = str(tmp_path / "npm"), tmp_path / "runs"
    asked = ["--corpus", str(corpus), "--limit", "10", "--set", "read=0", "--set", "passages=null", "--json"]
    systems = ["--system", npm, "--system", "bm25", "--system", "frequent", "--sweep", "temperature=0.5,2"]
    assert main(["eval", "run", "cloze", *asked, *systems, "--run", str(runs)]) == 0
    report = json.loads(capsys.readouterr().out)
    names = [f"{npm},temperature=0.5", f"{npm},temperature=2", "bm25", "frequent"]
    assert ([each["name"] for each in report["systems"]], report["num_examples"]) == (names, 10)
    texts = {each.document_id: each.text for each in Corpus.open(corpus).passages()}
    for row in read_run(runs / "cloze").system(names[0]).rows:
        filled = row.text.replace("[MASK]", row.answers[0])
        own = {document for document, text in texts.items() if text == filled}
        assert len(own) == 1
        assert not own & {place.document_id for said in row.predictions or () for place in said.evidence}
    assert main(["eval", "run", "cloze", *asked, "--sweep", "corpus=0.5,1"]) == 2
    assert "cloze hides passages of the whole corpus; leave out corpus" in capsys.readouterr().err
    other = str(Corpus.create(tmp_path / "other.quoth").path)
    assert main(["eval", "run", "cloze", *asked, "--corpus", other]) == 2
    assert "cloze requires one corpus, not 2" in capsys.readouterr().err


def test_facts_are_asked_by_name(data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    npm = str(tmp_path / "npm")
    asked = ["--data", str(data), "--corpus", str(corpus), "--json", "--system", npm, "--system", f"{npm},combine=sum"]
    assert main(["eval", "google-re", *asked]) == 2
    assert "lama/Google_RE/*.jsonl: no such file; it is in the data.zip of https://" in capsys.readouterr().err
    fact = {"uuid": "1", "pred": "/x/place_of_birth", "sub_label": "Axios", "obj_label": "river", "evidences": []}
    (data / "lama" / "Google_RE").mkdir(parents=True)
    (data / "lama" / "Google_RE" / "a.jsonl").write_text(json.dumps(fact) + "\n", encoding="utf-8")
    assert main(["eval", "facts", *asked, "--run", str(tmp_path / "runs")]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert (report["task"], report["num_examples"], len(report["systems"])) == ("google-re", 1, 2)
    (row,) = read_run(tmp_path / "runs" / "google-re").system(npm).rows
    assert (row.text, row.answers, row.groups) == (
        "Axios was born in [MASK] .",
        ("river",),
        {"relation": "place_of_birth"},
    )
    assert "left out trex" in shown.err


def test_samples_are_nested_and_do_not_depend_on_the_order() -> None:
    ids = [f"d{i}" for i in range(40)]
    shares = [sampled_ids(ids, share, 3) for share in (0.01, 0.26, 0.5, 1)]
    assert [len(each) for each in shares] == [1, 11, 20, 40]
    assert shares[0] < shares[1] < shares[2] < shares[3]
    assert sampled_ids(reversed(ids), 0.5, 3) == shares[2]
    assert sampled_ids(ids, 0.5, 4) != shares[2]


def test_a_sample_is_a_corpus_with_a_share_of_the_documents(corpus: Path, tmp_path: Path) -> None:
    whole = Corpus.open(corpus)
    sample = sample_of(whole, 0.5, tmp_path / "samples" / "c.quoth", seed=1)
    kept = sampled_ids([each.id for each in whole.documents()], 0.5, 1)
    assert {each.id: each.text for each in sample.documents()} == {
        each.id: each.text for each in whole.documents() if each.id in kept
    }
    assert sample.splitter == whole.splitter
    assert sample_of(whole, 0.5, sample.path, seed=1).snapshot == sample.snapshot
    assert sample_of(whole, 1, tmp_path / "unused") is whole
    assert not (tmp_path / "unused").exists()


def test_corpora_of_the_same_name_have_samples_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the two editions that `swap` asks may have it."""
    editions = [Corpus.create(tmp_path / year / "wiki.quoth") for year in ("2015", "2018")]
    for edition in editions:
        edition.add([Document(f"d{i}", "", f"Edition {edition.path.parent.name}.") for i in range(4)])
    monkeypatch.setattr("quoth_eval.systems.load_predictor", lambda name, corpora, setup: corpora)
    opener = Opener(Setup(), tmp_path / "scratch", 0)
    samples = [opener("quoth-mini", [edition], {"corpus": 0.5})[0] for edition in editions]
    assert [sample.name for sample in samples] == ["wiki", "wiki"]
    assert [{each.text for each in sample.documents()} for sample in samples] == [{"Edition 2015."}, {"Edition 2018."}]


def test_an_option_is_swept_and_so_is_the_size_of_the_corpus(
    data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npm = str(tmp_path / "npm")
    asked = ["--data", str(data), "--corpus", str(corpus), "--json", "--set", "read=0", "--system", npm]
    sweeps = ["--sweep", "passages=1,null", "--sweep", "corpus=0.4,1"]
    assert main(["eval", "nq", *asked, "--system", "bm25", *sweeps, "--run", str(tmp_path / "runs")]) == 0
    (nq,) = map(json.loads, capsys.readouterr().out.splitlines())
    names = [f"{npm},{each}" for each in ("passages=1", "passages=null", "corpus=0.4", "corpus=1")]
    assert [each["name"] for each in nq["systems"]] == [*names, "bm25"]
    rows = read_run(tmp_path / "runs" / "nq").system(names[2]).rows
    kept = sampled_ids([each.id for each in Corpus.open(corpus).documents()], 0.4)
    found = {place.rpartition(":")[0] for each in rows for place in each.passages}
    found |= {place.document_id for each in rows for said in each.predictions or () for place in said.evidence}
    assert found
    assert found <= kept
    assert main(["eval", "run", "sst2", *asked, "--set", "scoring=all", "--sweep", "corpus=0.9,1"]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "r.html")]) == 0
    assert ("The share of the corpus" in (tmp_path / "r.html").read_text(encoding="utf-8")) == drawable()
    for sweep, says in {
        "temperature=1": "--sweep temperature=1: not OPTION=VALUE,VALUE",
        "temperature": "not OPTION=VALUE,VALUE",
        "k=1,,2": "not OPTION=VALUE,VALUE",
        "heat=1,2": "no option 'heat'",
        "temperature=1,-1": "temperature is -1",
        "corpus=0.5,2": "corpus is 2; it must be above 0 and at most 1",
    }.items():
        assert main(["eval", "nq", *asked, "--sweep", sweep]) == 2, sweep
        assert says in capsys.readouterr().err


def test_quick_runs_what_there_is_and_names_what_is_missing(
    data: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fact = {"uuid": "g1", "pred": "/people/person/date_of_birth", "sub_label": "Ann Lee", "obj_label": "1941"}
    pair = {"sentence1": "a raven", "start1": 2, "end1": 7, "sentence2": "the raven", "start2": 4, "end2": 9}
    (data / "lama" / "Google_RE").mkdir(parents=True)
    (data / "mcl_wic").mkdir()
    facts = json.dumps(fact | {"evidences": [{"snippet": "Ann Lee, born 1941."}]})
    (data / "lama" / "Google_RE" / "date_of_birth_test.jsonl").write_text(facts + "\n", encoding="utf-8")
    pairs = [json.dumps(pair | {"label": label}) for label in "TFTF"]
    (data / "mcl_wic" / "dev.jsonl").write_text("\n".join(pairs), encoding="utf-8")
    (data / "ner").mkdir()
    documents = [f"-DOCSTART- O\n\nAda{i} B-PER\nsang O\n" for i in range(40)]
    (data / "ner" / "x.conll").write_text("\n".join(documents), encoding="utf-8")
    npm, runs = str(tmp_path / "npm"), tmp_path / "runs"
    asked = ["--data", str(data), "--corpus", str(corpus), "--limit", "2", "--system", npm]
    assert main(["eval", "quick", *asked, "--run", str(runs)]) == 0
    err = capsys.readouterr().err
    for left_out in ("webquestions: ", "translation: no document", f"ner: model '{npm}' is of kind 'npm'"):
        assert f"left out {left_out}" in err
    assert {each.name for each in runs.iterdir()} == {
        *("nq", "kamel", "sst2", "lama", "senses", "cloze", "ner", "report.html")
    }
    page = (runs / "report.html").read_text(encoding="utf-8")
    assert all(f"<h2>{name}</h2>" in page for name in ("kamel", "lama", "nq", "senses", "sst2"))
    for wrong, says in {
        ("--limit", "-1"): "--limit -1; it must be 1",
        ("--data", "none"): "--data none: no such",
    }.items():
        assert main(["eval", "quick", *asked, *wrong]) == 2
        assert says in capsys.readouterr().err
