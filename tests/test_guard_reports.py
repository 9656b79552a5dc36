"""The report of every task on tiny data: its numbers stay the same, however the command is spelled.

`TASKS` is the one table: what to type for a task. If options change, change the table; the numbers in
tests/golden/reports.json stay. If systems are named otherwise, say so in `NAMES`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commands import Run
from golden_files import OLD, check_values

NPM = ("--system", "npm", "--base", "base", "--set", "read=0", "--device", "cpu")
READER = ("--system", "bm25", "--system", "reader", "--device", "cpu")
NAMED = ("--data", "data", "--corpus", "old.quoth", "--base", "base", "--device", "cpu")
SYSTEMS = ("--set", "read=0", "--system", "npm", "--system", "npm,combine=sum,passages=2")
LABELS = ("--system", "npm", "--system", "majority")
OVER = ("--corpus", "old.quoth")
BESIDE = ("--system", "bm25", "--system", "realm", "--device", "cpu")
BLANKS = ("--system", "quoth-mini-base", "--system", "frequent", "--system", "bm25")
TASKS: dict[str, Sequence[str]] = {
    **{name: (name, *NAMED, *LABELS) for name in ("agn", "yahoo", "subj", "sst2", "mr", "rt", "cr", "amazon")},
    "rte": ("rte", *NAMED, *LABELS),
    "nq": ("nq", *NAMED, "--system", "npm,read=0", "--system", "reader", "--system", "bm25"),
    **{name: (name, *NAMED, *SYSTEMS) for name in ("triviaqa", "webquestions", "curatedtrec", "kamel")},
    "nq, a share of the corpus": ("nq", *NAMED, *SYSTEMS[:4], "--sweep", "corpus=0.5,1"),
    "google-re": ("google-re", *NAMED, *SYSTEMS),
    "trex": ("trex", *NAMED, *SYSTEMS),
    "cloze": ("cloze", *NAMED, *SYSTEMS, "--system", "bm25", "--system", "frequent", "--limit", "6"),
    "translation": ("translation", *NAMED, *SYSTEMS, "--system", "npm,oracle=true"),
    "cloze of documents": ("cloze", "documents.jsonl", "--limit", "6", *NPM, *BLANKS),
    "lama of the evidence": ("lama", "data/lama/TREx/P36.jsonl", *NPM, "--set", "templates=data/lama/relations.jsonl"),
    "openqa": ("openqa", "data/open_qa/nq.test.tsv", *OVER, *READER, "--set", "abstain=true"),
    "squad": ("squad", "data/squad/dev.json", *READER, "--set", "distractors=documents.jsonl", "--set", "ks=1,2"),
    "reading": ("reading", "data/squad/dev.json", "--system", "reader", "--device", "cpu"),
    "senses": ("senses", "data/mcl_wic/dev.jsonl", "--system", "npm", "--base", "base", "--device", "cpu"),
    "swap": ("swap", "--corpus", "new.quoth", "--set", "old=old.quoth", "--set", "unchanged=2", *NPM),
    "utility": ("utility", *OVER, *BESIDE[2:], "--limit", "4"),
    "links": ("links", *OVER, *BESIDE[:2], "--system", "bm25,mention=true", *BESIDE[2:]),
    "entities": ("entities", "data/P36.json", *OVER, "--set", "templates=data/templates.json", *BESIDE),
    "ner": ("ner", "data/ner/x.conll", "--device", "cpu"),
}
REALM = {"realm": "realm, passages"}
NAMES: dict[str, dict[str, str]] = {
    "cloze of documents": {"frequent": "most frequent phrase", "bm25": "most frequent phrase of BM25's passage"},
    "links": {"bm25": "bm25, sentence", "bm25,mention=true": "bm25, mention", **REALM},
    "entities": REALM,
}
"""By task, the names in reports.json of systems that are named otherwise now."""

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
    names = NAMES.get(task, {})
    numbers = [
        {**_numbers(json.loads(path.read_text("utf-8")), names), "said": _said(path.parent, names)} for path in reports
    ]
    check_values("reports.json", {task: numbers})


def _numbers(report: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """A report's counts and scores: not how it was asked, and not how long it took."""
    systems = {_named(names, each.pop("name")): _timeless(each) for each in report["systems"]}
    compared = {
        f"{_named(names, each.pop('system'))} - {_named(names, each.pop('other'))}": each
        for each in report["differences"]
    }
    counts = {name: value for name, value in report.items() if name.startswith("num_")}
    return {"task": report["task"], **counts, "systems": systems, "differences": compared}


def _said(folder: Path, names: dict[str, str]) -> dict[str, list[Any]]:
    """By system, the best answer to each example with its probability, and how many passages were found."""
    said: dict[str, list[Any]] = {}
    for row in map(json.loads, (folder / "predictions.jsonl").read_text("utf-8").splitlines()):
        best = [[each["text"], each["probability"]] for each in (row["predictions"] or [])[:1]]
        said.setdefault(_named(names, row["system"]), []).append([row["id"], *best, len(row["passages"])])
    return said


def _named(names: dict[str, str], system: str) -> str:
    return names.get(system, system)


def _timeless(scores: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in scores.items() if name != "examples_per_second"}
