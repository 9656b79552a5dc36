"""The report of every task on tiny data: its numbers stay the same, however the command is spelled.

`TASKS` is the one table: what to type for a task. If options change, change the table; the numbers in
tests/golden/reports.json stay. If systems are named otherwise, say so in `NAMES`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from golden_files import OLD, check_values

Run = Callable[..., tuple[int, str, str]]

NPM = ("--model", "npm", "--base", "base", "--read", "0", "--device", "cpu")
READER = ("--model", "reader", "--device", "cpu")
NAMED = ("--data", "data", "--corpus", "old.quoth", "--base", "base", "--device", "cpu")
SYSTEMS = ("--read", "0", "--system", "npm", "--system", "npm,combine=sum,passages=2")
LABELS = ("--system", "npm", "--system", "majority")
TASKS: dict[str, Sequence[str]] = {
    **{name: ("run", name, *NAMED, *LABELS) for name in ("agn", "yahoo", "subj", "sst2", "mr", "rt", "cr", "amazon")},
    "rte": ("run", "rte", *NAMED, *LABELS),
    "nq": ("run", "nq", *NAMED, "--system", "npm,read=0", "--system", "reader", "--system", "bm25"),
    "triviaqa": ("run", "triviaqa", *NAMED, *SYSTEMS),
    "webquestions": ("run", "webquestions", *NAMED, *SYSTEMS),
    "curatedtrec": ("run", "curatedtrec", *NAMED, *SYSTEMS),
    "kamel": ("run", "kamel", *NAMED, *SYSTEMS),
    "nq, a share of the corpus": ("run", "nq", *NAMED, "--read", "0", "--system", "npm", "--sweep", "corpus=0.5,1"),
    "google-re": ("run", "google-re", *NAMED, *SYSTEMS),
    "trex": ("run", "trex", *NAMED, *SYSTEMS),
    "cloze": ("run", "cloze", *NAMED, *SYSTEMS, "--system", "bm25", "--system", "frequent", "--limit", "6"),
    "translation": ("run", "translation", *NAMED, *SYSTEMS, "--system", "npm,oracle=true"),
    "cloze of documents": ("cloze", "documents.jsonl", "--count", "3", *NPM),
    "lama of the evidence": ("lama", "data/lama/TREx/P36.jsonl", "--templates", "data/lama/relations.jsonl", *NPM),
    "openqa": ("openqa", "old.quoth", "data/open_qa/nq.test.tsv", "--abstain", *READER),
    "squad": ("squad", "data/squad/dev.json", "--distractors", "documents.jsonl", "--k", "1", "--k", "2", *READER),
    "reading": ("reading", "data/squad/dev.json", *READER),
    "senses": ("senses", "data/mcl_wic/dev.jsonl", "--model", "npm", "--base", "base", "--device", "cpu"),
    "swap": ("swap", "old.quoth", "new.quoth", "--unchanged", "2", *NPM),
    "links": ("links", "old.quoth", "--beside", "realm", "--device", "cpu"),
    "entities": ("entities", "old.quoth", "data/P36.json", "--templates", "data/templates.json", "--beside", "realm"),
    "ner": ("ner", "data/ner/x.conll", "--device", "cpu"),
}
NAMES: dict[str, str] = {}
"""The names in reports.json of systems that are named otherwise now."""

FRANCE, GREECE = "what is the capital of france", "where was nikos kazantzakis born"
SENTENCES = [("The raven was great .", 1), ("It was terrible .", 0)]
CAPITAL = {"predicate_id": "P36", "sub_label": "France", "obj_label": "Paris", "uuid": "t1"}
EVIDENCE = {"obj_surface": "Paris", "masked_sentence": "[MASK] is the capital of France."}
BORN = {"pred": "/people/person/place_of_birth", "sub_label": "Bob Ray", "obj_label": "Berlin", "uuid": "g1"}
PARAGRAPHS = {"Towns": "Athens, Berlin and Paris are towns. Ann Lee sang there.", "Lee": "Ann Lee was born in Paris."}
PAIR = {"sentence1": "The raven sat.", "start1": 4, "end1": 9, "sentence2": "A raven.", "start2": 2, "end2": 7}


def _squad() -> dict[str, Any]:
    def article(title: str, text: str) -> dict[str, Any]:
        answer = {"text": "Paris", "answer_start": text.index("Paris")}
        asked = {"id": title, "question": f"Which town is in {title}?", "answers": [answer]}
        return {"title": title, "paragraphs": [{"context": text, "qas": [asked]}]}

    return {"version": "1.1", "data": [article(*each) for each in PARAGRAPHS.items()]}


def _lines(*records: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


def _sentences(text: str, label: str) -> str:
    return _lines(*({text: sentence, label: number} for sentence, number in SENTENCES))


WORDS = "terrible, bust\ngreat, tower\n"
TOPICS = ["France", "Greece", "Germany", "Spree"]
YAHOO = ("society & culture", "science & mathematics", "health", "education & reference", "computers & internet")
YAHOO = (*YAHOO, "sports", "business & finance", "entertainment & music", "family & relationships")
YAHOO = (*YAHOO, "politics & government")
COMMON = ("capital", "raven", "born", "great", "tower", "towns", "review", "president", "door", "government")
DATA: dict[str, str] = {
    "agn/test.csv": "label,title,text\n1,Paris,The capital of France\n2,Athens,It lies in Greece\n",
    "agn/verbalizers.txt": "\n".join(TOPICS) + "\n",
    "yahoo/test.jsonl": _lines({"title": "Paris?", "content": "The Seine", "label": "Health", "answer": "Yes"}),
    "yahoo/verbalizers.json": json.dumps({label: [word] for label, word in zip(YAHOO, COMMON, strict=True)}),
    "subj/test.jsonl": _sentences("sentence", "label"),
    "sst2/test.tsv": "__label__5\tGreat !\n__label__1\tAwful .\n",
    "sst2/verbalizers.txt": WORDS,
    "mr/test.jsonl": _sentences("sentence", "label"),
    "rt/test.jsonl": _lines({"input": "Great .", "output": "positive"}, {"input": "Bad .", "output": "negative"}),
    "cr/test.jsonl": _sentences("sentence", "label"),
    "amazon/test.csv": '"2","Good","It was great"\n"1","Bad","It was terrible"\n',
    "rte/val.jsonl": _lines({"premise": "Paris is great.", "hypothesis": "It is.", "label": "entailment"}),
    "open_qa/nq.test.tsv": f"{FRANCE}\t['Paris']\n{GREECE}\t['Heraklion', 'Crete']\nwho sat on it\t['Zeus']\n",
    "open_qa/trivia.test.tsv": f"{FRANCE}\t['Paris']\n",
    "open_qa/wq.test.tsv": f"{GREECE}\t['Heraklion']\n",
    "open_qa/curated.test.tsv": f"1\tx\t{FRANCE}\tPari[sz]\n",
    "kamel/dev.jsonl": _lines({"sub_label": "France", "obj_label": ["Paris", "Lyon"], "relation": "P36"}),
    "kamel/question-templates.csv": "P36, What is the capital of [S]?\n",
    "lama/Google_RE/place_of_birth_test.jsonl": _lines({**BORN, "evidences": [{"snippet": "Bob Ray, of Berlin."}]}),
    "lama/TREx/P36.jsonl": _lines({**CAPITAL, "evidences": [EVIDENCE]}),
    "lama/relations.jsonl": _lines({"relation": "P36", "template": "[Y] is the capital of [X] ."}),
    "squad/dev.json": json.dumps(_squad()),
    "mcl_wic/dev.jsonl": _lines(*({**PAIR, "label": label} for label in "TFTF")),
    "P36.json": json.dumps([{"question": "What is the capital of Greece?", "answers": ["Athens"]}]),
    "templates.json": json.dumps({"P36": "What is the capital of [X]?"}),
    "ner/x.conll": "Ann B-PER\nLee I-PER\nsaw O\nParis B-LOC\n. O\n\nThe O\nraven O\nsat O\n. O\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, two editions of a corpus with vectors, and every task's files."""
    made = tmp_path_factory.mktemp("reports") / "here"
    shutil.copytree(OLD, made)
    (made / "corpus").rename(made / "old.quoth")
    for name, content in DATA.items():
        (made / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (made / "data" / name).write_text(content, encoding="utf-8")
    return made


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    monkeypatch.chdir(folder)
    if not (folder / "new.quoth").exists():
        assert run("index", "documents-new.jsonl", "-o", "new.quoth")[0] == 0
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_the_report_of(task: str, here: Path, run: Run) -> None:
    keep = here / "runs" / task
    code, _, err = run("eval", *TASKS[task], "--run", keep)
    assert code == 0, err
    reports = sorted(keep.rglob("report.json"))
    assert reports, "no report.json in the folder of --run"
    numbers = [{**_numbers(json.loads(path.read_text("utf-8"))), "said": _said(path.parent)} for path in reports]
    check_values("reports.json", {task: numbers})


def _numbers(report: dict[str, Any]) -> dict[str, Any]:
    """A report's counts and scores: not how it was asked, and not how long it took."""
    systems = {_name(each.pop("name")): _timeless(each) for each in report["systems"]}
    compared = {f"{_name(each.pop('system'))} - {_name(each.pop('other'))}": each for each in report["differences"]}
    counts = {name: value for name, value in report.items() if name.startswith("num_")}
    return {"task": report["task"], **counts, "systems": systems, "differences": compared}


def _said(folder: Path) -> dict[str, list[Any]]:
    """By system, the best answer to each example with its probability, and how many passages were found."""
    said: dict[str, list[Any]] = {}
    for row in map(json.loads, (folder / "predictions.jsonl").read_text("utf-8").splitlines()):
        best = [[each["text"], each["probability"]] for each in (row["predictions"] or [])[:1]]
        said.setdefault(_name(row["system"]), []).append([row["id"], *best, len(row["passages"])])
    return said


def _name(system: str) -> str:
    return NAMES.get(system, system)


def _timeless(scores: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in scores.items() if name != "examples_per_second"}
