"""The command line: what goes where, exit codes, errors in one line, and the demo's material."""

import gzip
import inspect
import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from commands import Run
from quoth import NPM, Corpus, Document, Evidence, Prediction
from quoth.answers.options import FillOptions
from quoth.cli import demo, query
from quoth.cli import embed as cli_embed
from quoth.cli.info import bytes_of
from quoth.cli.main import program
from quoth.cli.options import label_words, pairs
from quoth.cli.output import plural, size
from quoth.cli.records import num_passages, num_read
from quoth.corpus.documents import read_documents
from quoth.errors import InputError
from quoth.index import codes
from quoth.npm.config import NPMConfig
from quoth.records import Predictions
from quoth_sources.formats import BY_SUFFIX, FORMATS
from tiny import tiny_bert, tiny_realm

ROOT = Path(__file__).resolve().parents[2]
TEXT = "The church of Hagios Demetrios stands in Thessaloniki."
START = TEXT.index("Thessaloniki")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A JSONL file of two documents."""
    path = tmp_path / "documents.jsonl"
    records = [
        {"id": "demetrios", "title": "Hagios Demetrios", "text": TEXT},
        {"id": "carmen", "title": "Carmen", "text": "Carmen is an opera by Georges Bizet."},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path, documents: Path, run: Run) -> Path:
    path = tmp_path / "a b.quoth"
    assert run("index", documents, "-o", path)[0] == 0
    return path


class Oracle:
    """Stands in for a model: knows one answer, and what it was asked with."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def fill(self, text: str, **options: Any) -> Predictions:
        self.asked.append((text, options))
        evidence = Evidence("demetrios", "Hagios Demetrios", 0, START, START + 12, TEXT, 0.75)
        filled = text.replace("[MASK]", "Thessaloniki")
        return Predictions([Prediction("Thessaloniki", -0.5, 0.75, (evidence,), filled)])

    def ask(self, question: str, **options: Any) -> Predictions:
        (answer,) = self.fill(question, **options)
        return Predictions([Prediction(answer.text, answer.log_score, answer.probability, answer.evidence)])

    def classify(self, text: str, labels: dict[str, list[str]], **options: Any) -> Predictions:
        self.asked.append((text, {"labels": labels, **options}))
        return Predictions(Prediction(label, 0.0, 1 / len(labels), ()) for label in labels)


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Oracle:
    model = Oracle()
    monkeypatch.setattr(query, "load", lambda *_: model)
    monkeypatch.setattr(query, "load_predictor", lambda *_: model)
    monkeypatch.setattr(query, "check_embedded", lambda *_: None)
    return model


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


def quoth(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "quoth", *map(str, arguments)]
    paths = {"PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env={**os.environ, **paths}, **{**pipes, **options})


# Making and changing a corpus


def test_index_says_what_the_corpus_holds(tmp_path: Path, documents: Path, run: Run) -> None:
    code, out, err = run("index", documents, "-o", tmp_path / "new.quoth")
    assert (code, err) == (0, "")
    assert out == f"{tmp_path / 'new.quoth'}: 2 documents, 2 passages, snapshot 1\n"


def test_a_broken_record_is_named_and_leaves_no_corpus(tmp_path: Path, documents: Path, run: Run) -> None:
    with documents.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    code, out, err = run("index", documents, "-o", tmp_path / "a" / "b" / "new.quoth")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"quoth: {documents}:3:")
    assert "--skip-bad" in err
    assert not (tmp_path / "a").exists()
    code, out, err = run("index", documents, "-o", tmp_path / "new.quoth", "--skip-bad")
    assert (code, "2 documents" in out) == (1, True)
    assert err.splitlines()[1] == "quoth: left out 1 broken record"


BROKEN = {
    "a.pdf": b"%PDF-1.4 and no more",
    "b.docx": b"PK\x03\x04 and no more",
    "c.jsonl": b'{"text": "A row."}\n' + 5 * b"{\n",
    "d.txt": b"\xff\xfe\x00\xd8\x00",
    "e.parquet": b"PAR1",
    "f.txt.gz": gzip.compress(b"A text that is longer than its half.")[:30],
    "g.csv": b"id,text\n1\n",
}


def test_broken_files_stop_no_folder_and_all_are_named(tmp_path: Path, run: Run) -> None:
    (folder := tmp_path / "docs").mkdir()
    for name, content in BROKEN.items():
        (folder / name).write_bytes(content)
    (folder / "good.txt").write_text("The meeting is on Friday.")
    place = tmp_path / "c.quoth"
    assert run("index", folder, "-o", place, "--strict")[:2] == (2, "")
    assert not place.exists()
    whole = [name for name in BROKEN if name not in ("c.jsonl", "g.csv")]
    for verb in (("index", folder, "-o", place), ("replace", place, folder)):
        code, out, err = run(*verb)
        assert (code, "2 documents" in out) == (1, True)
        told = [line.removeprefix(f"quoth: left out: {folder}/") for line in err.splitlines()]
        assert [line.partition(":")[0] for line in told if line.partition(":")[0] in whole] == sorted(whole)
        lines = [line.partition(" ")[0] for line in told if line[0] in "cg"]
        assert lines == ["c.jsonl:2:", "c.jsonl:3:", "c.jsonl:4:", "g.csv:2:", "c.jsonl:"]
        assert "c.jsonl: 2 more" in told
        assert f"quoth: left out {len(whole)} files and 6 broken records" in err
        assert "--skip-bad" not in err
    (more := tmp_path / "more").mkdir()
    (more / "new.txt").write_text("New.")
    (more / "a.pdf").write_bytes(BROKEN["a.pdf"])
    assert run("add", place, more, "--strict")[0] == 2
    assert run("add", place, more)[0] == 1
    assert run("sync", more, place)[0] == 1
    assert Corpus.open(place).document("new.txt").text == "New."
    assert run("add", place, folder / "c.jsonl")[0] == 2  # a file that is named itself


def test_a_document_without_text_is_told(tmp_path: Path, run: Run) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("id,title,text\na,A,Some words\nb,B,\nc,C,  \n", encoding="utf-8")
    code, out, err = run("index", table, "-o", tmp_path / "new.quoth")
    assert (code, "3 documents, 1 passage," in out) == (0, True)
    assert err.splitlines() == [
        "quoth: document 'b' has no text, so it gets no passage",
        "quoth: document 'c' has no text, so it gets no passage",
        "quoth: 2 documents without text; no search finds them",
    ]


def test_list_names_every_document(tmp_path: Path, run: Run) -> None:
    table, corpus = tmp_path / "rows.csv", tmp_path / "new.quoth"
    table.write_text("id,title,text\na,Athens,One two three four\nb,Berlin,\nc,Κόρινθος,One\n", encoding="utf-8")
    run("index", table, "-o", corpus, "--splitter", "fixed:3")
    code, out, err = run("list", corpus)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["a  Athens  (2 passages)", "b  Berlin  (0 passages)", "c  Κόρινθος  (1 passage)"]
    lines = run("list", corpus, "--contains", "ΚΌΡ", "--json")[1].splitlines()
    assert [json.loads(each) for each in lines] == [{"id": "c", "title": "Κόρινθος", "passages": 1}]
    assert run("list", corpus, "--contains", "B")[1] == "b  Berlin  (0 passages)\n"
    run("delete", corpus, "a", "c")
    assert run("list", corpus, "--contains", "rome")[1] == ""
    assert run("list", corpus)[1] == "b  Berlin  (0 passages)\n"


def test_add_replace_delete_and_compact_change_the_corpus(tmp_path: Path, corpus: Path, run: Run) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "aida", "title": "Aida", "text": "By Verdi."}\n', encoding="utf-8")
    assert "3 documents" in run("add", corpus, more)[1]
    more.write_text('{"id": "aida", "title": "Aida", "text": "By Giuseppe Verdi."}\n', encoding="utf-8")
    code, out, err = run("replace", corpus, more)
    assert (code, "3 documents" in out, err) == (0, True, "quoth: replaced 1, new 0, unchanged 0\n")
    assert Corpus.open(corpus).document("aida").text == "By Giuseppe Verdi."
    with more.open("a") as file:
        file.write('{"id": "nabucco", "title": "Nabucco", "text": "By Verdi."}\n')
    assert run("replace", corpus, more)[2] == "quoth: replaced 0, new 1, unchanged 1\n"
    assert run("delete", corpus, "nabucco")[0] == 0
    assert "1 document," in run("delete", corpus, "aida", "carmen")[1]
    code, out, err = run("compact", corpus)
    assert code == 0
    assert "1 document," in out
    assert "now" in err
    assert run("verify", corpus)[1].startswith(f"{corpus}: sound\n")


@pytest.fixture
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("model"))


def test_embed_says_what_it_costs_and_keeps_to_the_budget(corpus: Path, documents: Path, tiny: Path, run: Run) -> None:
    code, out, err = run("embed", corpus, "--model", tiny, "--budget", 0.000001)
    assert code == 2
    assert "2 passages to encode, under a minute; about" in err
    assert re.search(r"about \d+ vectors take \d\.\d kB on disk \(38 bytes each\), at most \d+\.\d kB while embed", err)
    assert "--budget 1e-06 GB is less than" in err
    assert re.search(r"while embedding, and at most \d\.\d GB of memory", err)
    for memory, said in (("1kB", "1kB of memory is too little"), ("2", "write it like 500MB or 2GB")):
        code, _, err = run("embed", corpus, "--model", tiny, "--memory", memory)
        assert (code, said in err) == (2, True)
    assert not list(corpus.glob("keys/*/*"))
    code, out, err = run("embed", corpus, "--model", tiny, "--budget", 1)
    assert (code, "2 passages embedded (sq8)" in out) == (0, True)
    assert run("embed", corpus, "--model", tiny)[2] == ""
    assert run("replace", corpus, documents)[2] == "quoth: replaced 0, new 0, unchanged 2\n"
    assert run("embed", corpus, "--model", tiny)[2] == ""
    documents.write_text(documents.read_text("utf-8").replace('"title": "', '"title": "New '), encoding="utf-8")
    run("replace", corpus, documents)
    err = run("embed", corpus, "--model", tiny)[2]
    assert f"2 deleted passages would be embedded too; run `quoth compact {corpus}` first" in err


def test_embed_asks_where_it_is_much(corpus: Path, tiny: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_embed, "ASK_FROM_BYTES", 100)
    stdin(monkeypatch, b"n\ny\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    code, _, err = run("embed", corpus, "--model", tiny)
    assert (code, "continue?" in err) == (1, True)
    assert not list(corpus.glob("keys/*/*"))
    assert run("embed", corpus, "--model", tiny)[0] == 0
    monkeypatch.setattr("shutil.disk_usage", lambda _: types.SimpleNamespace(free=10))
    other = Corpus.open(corpus)
    other.add([Document("late", "Late", TEXT)])
    assert "10 B free, but" in run("embed", corpus, "--model", tiny)[2]


def test_explain_says_how_long_each_step_took(corpus: Path, tiny: Path, run: Run) -> None:
    code, out, err = run("fill", corpus, "It is in [MASK].", "--model", tiny, "--timings", "--json")
    assert code == 0
    assert json.loads(out.splitlines()[0])["sequence"].startswith("It is in ")
    assert re.search(r"encode \d+\.\d ms · search .* · expand .* · score .* · explain \d+\.\d ms\n", err)
    assert not re.search(r"(encode|search|score) 0\.0 ms", err)


def test_info_in_words_and_as_json(corpus: Path, run: Run) -> None:
    assert re.search(r"^documents +2$", run("info", corpus)[1], re.MULTILINE)
    assert re.search(r"^size on disk +\d", run("info", corpus)[1], re.MULTILINE)
    facts = json.loads(run("info", corpus, "--json")[1])
    assert facts["documents"] == facts["passages"] == 2
    assert facts["splitter"] == "blocks:120"
    assert facts["embedded"] == []
    (segment,) = facts["segments"]
    assert (segment["passages"], segment["deleted"], facts["freed_by_compact"]) == (2, 0, 0)
    run("delete", corpus, "carmen")
    facts = json.loads(run("info", corpus, "--json")[1])
    assert facts["segments"][0]["deleted"] == 1
    assert 0 < facts["freed_by_compact"] < facts["segments"][0]["bytes"]
    assert re.search(r"^segments +1: 2 passages \(1 deleted\) \d", run("info", corpus)[1], re.MULTILINE)
    assert re.search(r"^compact would free +about \d", run("info", corpus)[1], re.MULTILINE)
    run("compact", corpus)
    assert json.loads(run("info", corpus, "--json")[1])["freed_by_compact"] == 0


def test_info_counts_segments_and_shows_the_largest(tmp_path: Path, run: Run) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    assert re.search(r"^segments +none$", run("info", corpus.path)[1], re.MULTILINE)
    for number in range(8):
        corpus.add([Document(f"{number}.{each}", "", f"{number} {TEXT}") for each in range(number + 1)])
    (line,) = re.findall("^segments +(.*)$", run("info", corpus.path)[1], re.MULTILINE)
    assert re.fullmatch(r"8, the largest: 8 passages [\d.]+ kB, 7 passages .*, 3 passages [\d.]+ kB", line)
    assert len(json.loads(run("info", corpus.path, "--json")[1])["segments"]) == 8


def test_bytes_are_counted_while_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kept", "gone before", "gone after"):
        (tmp_path / name).write_bytes(b"12345")

    def meanwhile(path: Path, **options: Any) -> os.stat_result:
        if path.name == "gone before":
            path.unlink()
        found = stat(path, **options)
        if path.name == "gone after":
            path.unlink()
        return found

    stat = Path.stat
    monkeypatch.setattr(Path, "stat", meanwhile)
    assert bytes_of(tmp_path) == 10


def test_a_recall_that_is_not_reached_is_told(
    documents: Path, tiny: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "FLAT_FROM", 1000)
    monkeypatch.setattr(codes, "DEPTH", 40)
    monkeypatch.setattr(codes, "FACTORS", (1.0,))
    records = [{"id": f"{n}", "text": f"{n}. {TEXT} Carmen is an opera by Georges Bizet."} for n in range(60)]
    documents.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    path = tmp_path / "many.quoth"
    run("index", documents, "-o", path)
    _, out, err = run("embed", path, "--model", tiny, "--storage", "sq4", "--recall", 0.9999)
    assert "60 passages embedded (sq4)" in out
    said = re.search(r"^quoth: segment 0+: its codes find (0\.\d+) of the nearest tokens, not 0\.9999", err, re.M)
    assert said
    assert "; --recall 1 compares every vector\n" in err
    (embedded,) = json.loads(run("info", path, "--json")[1])["embedded"]
    (made,) = embedded["codes"]
    assert (embedded["precision"], made["segment"], made["target"]) == ("sq4", "0" * 12, 0.9999)
    assert float(said[1]) <= made["recall"] < float(said[1]) + 0.001
    assert f", recall {said[1]}, 0.9999 requested)" in " ".join(run("info", path)[1].split())
    monkeypatch.setattr(codes, "DEPTH", 4096)
    assert run("embed", path, "--model", tiny, "--storage", "sq4", "--recall", 0.5)[2] == ""
    assert re.search(r", recall [01]\.\d+\)", " ".join(run("info", path)[1].split()))
    assert run("embed", path, "--model", tiny, "--storage", "sq4", "--recall", 1)[2] == ""
    assert json.loads(run("info", path, "--json")[1])["embedded"][0]["codes"] == []
    assert ", recall" not in run("info", path)[1]


def test_a_damaged_file_is_a_failure_that_names_it(corpus: Path, run: Run) -> None:
    victim = max((path for path in (corpus / "segments").rglob("*") if path.is_file()), key=lambda p: p.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    code, _, err = run("verify", corpus)
    assert code == 1
    assert victim.name in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["info", "nowhere.quoth"], "nowhere.quoth"),
        (["fill", "nowhere.quoth", "a [MASK]"], "quoth index"),
        (["index", "nowhere.jsonl", "-o", "x.quoth"], "nowhere.jsonl"),
        (["index", ".", "-o", "x.quoth", "--splitter", "lines"], "lines"),
        (["classify", "x", "text", "--labels", "positive"], "positive=great,good"),
        (["classify", "x", "text", "--labels", "positive=great,"], "positive=great,good"),
        (["train", "npm", ".", "-o", "x", "--set", "steps"], "steps=200"),
        (["train", "tager", ".", "-o", "x"], "it must be one of npm-mini-cpu"),
        (["train", "tagger", "nowhere.conll", "-o", "x"], "nowhere.conll"),
        (["eval", "ner", "nowhere.conll", "--system", "quoth-tager"], "nowhere.conll"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("quoth: ")
    assert says in err


def test_a_wrong_command_line_is_exit_code_2(run: Run) -> None:
    assert run("fill")[0] == 2
    assert run("search", "x", "y", "--mode", "sparse")[0] == 2


def test_an_unknown_document_is_named(corpus: Path, run: Run) -> None:
    code, _, err = run("delete", corpus, "aida")
    assert code == 2
    assert "aida" in err


# Asking


def test_fill_shows_the_answer_and_where_it_stands(corpus: Path, run: Run, oracle: Oracle) -> None:
    code, out, err = run("fill", corpus, "Hagios Demetrios is in [MASK].")
    assert (code, err) == (0, "")
    assert "1  Thessaloniki" in out
    assert f"characters {START}–{START + 12}" in out
    assert "\x1b" not in out


def test_json_is_one_prediction_a_line(corpus: Path, run: Run, oracle: Oracle) -> None:
    out = run("fill", corpus, "It is in [MASK].", "--json")[1]
    told = {"query": "It is in [MASK].", "evidence": json.loads(out)["evidence"]}
    assert json.loads(out) == oracle.fill("It is in [MASK].")[0].to_dict() | told
    assert json.loads(out)["sequence"] == "It is in Thessaloniki."
    assert json.loads(run("ask", corpus, "Where?", "--json")[1])["answer"] == "Thessaloniki"


def test_json_has_the_question_that_was_read_with_its_best_answer(
    corpus: Path, run: Run, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Predictions(oracle.fill("It is in [MASK].") * 2)
    found.read_as = "Where?"
    monkeypatch.setattr(oracle, "ask", lambda question, **options: found)
    best, second = map(json.loads, run("ask", corpus, "Wehre?", "--json")[1].splitlines())
    assert (best["query"], best["read_as"], second["read_as"]) == ("Wehre?", "Where?", "Where?")
    assert "read_as" not in json.loads(run("search", corpus, "church", "--json", "-k", "1")[1])
    assert json.loads(run("search", corpus, "chuurch", "--json", "-k", "1")[1])["read_as"] == "church"
    assert run("search", corpus, "chuurch", "-k", "1")[1].startswith("chuurch\nread as: church\n\n  1  ")


def test_a_dash_reads_a_query_a_line(corpus: Path, run: Run, oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, "It is in [MASK].\n\nΉ [MASK].\n".encode("utf-8-sig"))  # with the mark of some editors
    lines = run("fill", corpus, "-", "--json")[1].splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["It is in [MASK].", "Ή [MASK]."]


def test_a_file_in_the_place_of_a_question_is_a_mistake(corpus: Path, run: Run, oracle: Oracle, tmp_path: Path) -> None:
    asked = tmp_path / "questions.txt"
    asked.write_text("Where?\n")
    for command in ("ask", "search"):
        code, out, err = run(command, corpus, asked)
        assert (code, out) == (2, "")
        assert err == f"quoth: {str(asked)!r} is a file, not a text; - < {asked} takes a text from each of its lines\n"
    assert run("ask", corpus, "Where is it? " * 500)[0] == 0


def test_a_query_without_any_prediction_has_a_line(
    corpus: Path, run: Run, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle, "ask", lambda question, **options: Predictions())
    told = json.loads(run("ask", corpus, "Zebra?", "--json")[1])
    assert told == {
        "query": "Zebra?",
        "text": "",
        "probability": 0.0,
        "status": "not_found",
        "abstained": True,
        "evidence": [],
    }


@pytest.mark.parametrize("command", ["fill", "ask", "search"])
def test_standard_input_without_a_line_is_a_mistake(
    corpus: Path, run: Run, oracle: Oracle, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    stdin(monkeypatch, b"\n \n")
    code, out, err = run(command, corpus, "-")
    assert (code, out, err) == (2, "", "quoth: standard input is empty; write one text or question per line\n")


def test_a_bad_line_is_told_and_the_others_are_answered(
    corpus: Path, run: Run, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(text: str, **options: Any) -> Predictions:
        if "[MASK]" not in text:
            raise InputError("no [MASK] in it")
        return Oracle().fill(text, **options)

    monkeypatch.setattr(oracle, "fill", fill)
    stdin(monkeypatch, b"good [MASK]\n\xff [MASK]\nnothing\n[MASK] good\n")
    code, out, err = run("fill", corpus, "-", "--json")
    assert code == 2
    assert [json.loads(line)["query"] for line in out.splitlines()] == ["good [MASK]", "[MASK] good"]
    assert [line.split(": ")[1] for line in err.splitlines()] == ["standard input:2", "standard input:3"]
    assert run("fill", corpus, "nothing", "--json")[0] == 2


def test_every_command_that_fills_has_all_options_of_fill_with_the_defaults_of_python() -> None:
    wanted = {
        name: each.default
        for name, each in inspect.signature(NPM.fill).parameters.items()
        if name not in ("self", "text", "searched", "exclude", "distinct", "top_k")
    }
    assert wanted["combine"] is None  # the model's own
    assert FillOptions().resolved(NPMConfig().defaults).combine == "joint"
    assert wanted.pop("whole_words") is True  # its contrary is the option, --any-token
    spelled = {"k": "neighbours", "banned_tokens": "ban"}
    none = {"passages": None, "banned_tokens": None}  # the model's own number, said in the help; no option given
    root: Any = program()
    for command in (root.commands["fill"], root.commands["ask"]):
        found = {each.name: each for each in command.params}
        for name, default in (wanted | none).items():
            option = found[spelled.get(name, name)]
            assert getattr(option.default, "value", option.default) == default, (command.name, name)
        assert found["dense"].default is False


def test_options_reach_the_model(corpus: Path, run: Run, oracle: Oracle) -> None:
    run(
        "fill",
        corpus,
        "a [MASK]",
        "--passages",
        "all",
        "--combine",
        "joint",
        "--top-k",
        2,
        "--k",
        9,
        "--ban",
        "the",
        "--ban",
        "a",
        "--ban-query",
        "--ban-stop-words",
        "--any-token",
    )
    asked = ("--passages", 7, "--passage-share", 0.3, "--template", "{question} [MASK]", "--read", 4)
    run("ask", corpus, "who?", "--model", "quoth-mini", *asked)
    run("classify", corpus, "good", "--labels", "positive=great, good", "--labels", "negative=terrible")
    (_, fill), (_, ask), (_, classify) = oracle.asked
    assert fill == {
        "top_k": 2,
        "k": 9,
        "passages": None,
        "mode": "auto",
        "combine": "joint",
        "temperature": 1.0,
        "length_exponent": 0.0,
        "banned_tokens": ("the", "a"),
        "ban_query": True,
        "ban_stop_words": True,
        "max_phrase_tokens": 10,
        "whole_words": False,
        "max_evidence": 10,
    }
    assert (ask["passages"], ask["passage_share"], ask["template"]) == (7, 0.3, "{question} [MASK]")
    assert ask["read"] == 4
    assert classify["labels"] == {"positive": ["great", "good"], "negative": ["terrible"]}
    assert classify["temperature"] == 5.0
    code, _, err = run("fill", corpus, "a [MASK]", "--passages", "all", "--passage-share", 0.3)
    assert (code, "--passage-share 0.3 searches every token already; leave --passages all out" in err) == (2, True)


def test_bm25_search_needs_no_model(corpus: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "load", lambda *_: pytest.fail("loaded a model"))
    assert "demetrios · characters 0–" in run("search", corpus, "church in Thessaloniki", "-k", 1)[1]
    (hit,) = map(json.loads, run("search", corpus, "Bizet", "--json")[1].splitlines())
    assert (hit["document_id"], hit["start"], hit["text"][:6]) == ("carmen", 0, "Carmen")
    code, _, err = run("search", corpus, "Bizet", "-k", 0)
    assert code == 2
    assert "k is 0" in err


def test_bm25_search_ranks_several_corpora_as_one(corpus: Path, tmp_path: Path, run: Run) -> None:
    other = Corpus.create(tmp_path / "other.quoth")
    other.add([Document("church", "Church", "church church Thessaloniki")])
    lines = run("search", corpus, "church Thessaloniki", "--corpus", other.path, "--json")[1].splitlines()
    scores = [json.loads(line)["score"] for line in lines]
    assert {json.loads(line)["document_id"] for line in lines} == {"demetrios", "church"}
    assert scores == sorted(scores, reverse=True)
    (link := tmp_path / "link.quoth").symlink_to(other.path)
    again = ("--corpus", f"{other.path}/../other.quoth", "--corpus", link, "--corpus", corpus)
    assert (
        run("search", corpus, "church Thessaloniki", "--corpus", other.path, *again, "--json")[1].splitlines() == lines
    )
    (tmp_path / "below").mkdir()
    twin = Corpus.create(tmp_path / "below" / "other.quoth").path
    code, _, err = run("search", corpus, "church", "--corpus", other.path, "--corpus", twin)
    assert code == 2
    assert "two corpora are named 'other'; rename one of the folders" in err


def test_a_search_in_an_empty_corpus_says_so(tmp_path: Path, run: Run) -> None:
    code, _, err = run("search", Corpus.create(tmp_path / "empty.quoth").path, "x")
    assert code == 2
    assert "quoth add" in err


# Asking a REALM


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_realm(tmp_path_factory.mktemp("realm") / "tiny")


def test_a_realm_embeds_searches_and_answers(corpus: Path, realm: Path, run: Run) -> None:
    code, out, err = run("ask", corpus, "Where is it?", "--model", realm)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"`quoth embed {corpus} --keys passages --model {realm}` makes them" in err
    code, out, err = run("embed", corpus, "--model", realm)
    assert (code, out) == (0, f"{corpus}: 2 passages embedded (sq8)\n")
    assert "about 2 vectors take" in err
    code, out, err = run("search", corpus, "an opera", "--model", realm, "--mode", "dense", "--json", "-k", "5")
    assert (code, err) == (0, "")
    hits = [json.loads(line) for line in out.splitlines()]
    assert {hit["document_id"] for hit in hits} == {"demetrios", "carmen"}
    assert hits[0]["score"] >= hits[1]["score"]
    texts = {"demetrios": TEXT, "carmen": "Carmen is an opera by Georges Bizet."}
    for options in ((), ("--mode", "dense"), ("--passages", "2"), ("--mode", "dense", "--passages", "2")):
        code, out, err = run("ask", corpus, "Where is it?", "--model", realm, "--json", "--top-k", "3", *options)
        assert (code, err) == (0, "")
        answers = [json.loads(line) for line in out.splitlines()]
        assert len(answers) == 3
        for answer in answers:
            for place in answer["evidence"]:
                said = texts[place["document_id"]][place["start"] : place["end"]]
                assert said.casefold() == answer["answer"].casefold()
    code, out, err = run("fill", corpus, "[MASK] is an opera", "--model", realm, "--json", "--passages", "1")
    first, *_ = [json.loads(line) for line in out.splitlines()]
    assert (code, err, first["sequence"]) == (0, "", f"{first['token_str']} is an opera")
    code, out, err = run("fill", corpus, "[MASK] is an opera", "--model", realm, "--timings")
    assert code == 0
    assert "encode" in err
    assert "search" in err


def test_a_realm_answers_by_eq_1(corpus: Path, realm: Path, run: Run) -> None:
    assert run("embed", corpus, "--model", realm)[0] == 0
    command = ("ask", corpus, "Where is it?", "--model", realm, "--json", "--top-k", "1000", "--passages", "2")
    by_passage: dict[str, float] = {"demetrios": 0.0, "carmen": 0.0}
    for line in run(*command, "--marginal")[1].splitlines():
        for place in json.loads(line)["evidence"]:
            by_passage[place["document_id"]] += place["score"]
    search = ("search", corpus, "Where is it?", "--model", realm, "--mode", "dense", "--json")
    hits = [json.loads(line) for line in run(*search)[1].splitlines()]
    weights = {hit["document_id"]: math.exp(hit["score"] - hits[0]["score"]) for hit in hits}
    assert by_passage == pytest.approx({name: each / sum(weights.values()) for name, each in weights.items()}, rel=1e-3)
    assert run(*command, "--marginal")[1] != run(*command)[1]
    whole = [json.loads(line)["score"] for line in run(*command, "--marginal")[1].splitlines()]
    less = [json.loads(line)["score"] for line in run(*command, "--marginal", "--null-document")[1].splitlines()]
    assert sum(less) < sum(whole) == pytest.approx(1)
    code, _, err = run(*command, "--null-document")
    assert (code, "--null-document is for --marginal; add --marginal, or leave it out" in err) == (2, True)
    command = ("fill", corpus, "[MASK] is an opera", "--model", realm, "--json")
    assert run(*command, "--marginal")[1] == run(*command)[1] != run(*command, "--no-null-document")[1]
    for model, of in (("quoth-mini", "npm"), ("quoth-reader", "reader")):
        code, _, err = run("ask", corpus, "Who?", "--model", model, "--marginal")
        assert code == 2
        assert f"--marginal requires a REALM, and {model} is of kind '{of}'; try --model quoth-realm" in err


def test_the_price_of_banning_the_texts_words_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    for command in ("fill", "ask"):
        told = " ".join(run(command, "--help-all")[1].split())
        assert "10.4 % of NQ-open, 18.6 % of WebQuestions, 5.4 % of" in told


@pytest.mark.parametrize("command", ["ask", "fill", "classify", "search"])
def test_help_begins_with_what_a_newcomer_needs(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(command, "--help")
    flags = [flag for flag in re.findall(r"^│[ *]+(--[a-z-]+)", out, re.MULTILINE) if flag != "--labels"]
    assert (code, flags[:3]) == (0, ["--where", "--as-of", "--json"])
    rare = {"--neighbours", "--combine", "--marginal", "--null-document", "--temperature", "--timings", "--dense"}
    assert rare.isdisjoint(re.findall(r"--[a-z-]+", out))
    if command != "search":
        code, everything, _ = run(command, "--help-all")
        assert (code, "--timings" in everything, "--temperature" in everything) == (0, True, True)
        assert len(everything) > len(out)


def test_how_many_blanks_there_may_be_is_told(run: Run, corpus: Path) -> None:
    for model, told in (("quoth-mini", "of up to 8 blanks"), ("quoth-reader", "put one [MASK] in place of the blank")):
        code, _, err = run("fill", corpus, "no blank", "--model", model)
        assert (code, told in err) == (2, True)


@pytest.mark.parametrize(
    "given",
    [
        ("--k", "9"),
        ("--passage-share", "0.3"),
        ("--combine", "sum"),
        ("--temperature", "2"),
        ("--length-exponent", "1"),
        ("--ban", "x"),
        ("--ban-query",),
        ("--max-phrase-tokens", "3"),
        ("--read", "0"),
    ],
)
def test_options_that_are_npms_alone(corpus: Path, realm: Path, run: Run, given: Sequence[str]) -> None:
    said = f"{given[0]} is not an option of {realm} (kind realm); leave it out, or use an NPM: --model quoth-mini"
    expected = (2, "", f"quoth: {said}\n")
    assert run("ask", corpus, "Who?", "--model", realm, *given) == expected
    assert run("fill", corpus, "[MASK]", "--model", realm, *given) == expected


def test_what_a_realm_cannot_do_is_said_in_one_line(corpus: Path, realm: Path, tmp_path: Path, run: Run) -> None:
    labels = ("--labels", "good=great", "--labels", "bad=poor")
    mistakes = {
        ("ask", corpus, "Who?", "--template", "{question} [MASK]"): "--template is not an option of",
        ("fill", corpus, "[MASK]", "--min-probability", "0.5"): "--min-probability is not an option of",
        ("classify", corpus, "A joy", *labels): "is of kind 'realm'; kind 'npm' is required here",
        ("embed", corpus, "--ray"): "are passages; leave --ray out",
        ("ask", tmp_path / "none.quoth", "Who?"): "none.quoth",
    }
    for arguments, message in mistakes.items():
        code, out, err = run(*arguments, "--model", realm)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


# The pieces


def test_labels_and_settings_are_parsed() -> None:
    assert label_words(["a=x, y", "b=z"]) == {"a": ["x", "y"], "b": ["z"]}
    assert pairs(["a=1", "b=x=y"], "--set", "") == {"a": "1", "b": "x=y"}
    with pytest.raises(InputError, match="twice"):
        pairs(["a=1", "a=2"], "--set", "")


def test_passages_are_a_number_or_all() -> None:
    given = [{"passages": each, "dense": False} for each in (None, "8", "all")]
    assert [*map(num_passages, given)] == ["default", 8, "all"]
    for wrong in ("some", "0", "1.5", "all"):
        with pytest.raises(InputError, match=rf"--passages is '?{wrong}'?; it must be .*1 or more"):
            num_read({"passages": wrong})
    assert num_read({"passages": "7"}) == 7


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        (("fill", "a [MASK]"), ("--dense",), ("--passages", "all")),
        (("ask", "who?", "--model", "quoth-mini"), ("--hybrid", "0.3"), ("--passage-share", "0.3")),
        (("ask", "who?", "--model", "quoth-mini"), ("--hybrid=0.3",), ("--passage-share=0.3",)),
    ],
)
def test_an_old_flag_is_taken_with_a_note(
    corpus: Path, run: Run, oracle: Oracle, command: tuple[str, str], old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    verb, text, *more = command
    *_, told = (run(verb, corpus, text, *more, *flags) for flags in (new, old))
    (_, wanted), (_, found) = oracle.asked
    assert found == wanted
    now = " ".join(new) if "--dense" in old else "--passage-share"
    assert f"{old[0].partition('=')[0]} is now {now}; the old name goes with the next release" in told[2]


def test_the_old_flag_of_storage_is_taken_with_a_note(tmp_path: Path, run: Run) -> None:
    code, _, err = run("embed", tmp_path / "none.quoth", "--precision", "sq9")
    assert code == 2
    assert err.startswith("quoth: --precision is now --storage; the old name goes with the next release\n")
    assert "'sq9' is not one of 'sq8', 'sq4', 'fp16', 'fp32'" in err


def test_numbers_are_written_for_people() -> None:
    assert (plural(1, "document"), plural(1024, "passage")) == ("1 document", "1,024 passages")
    assert (size(512), size(1500), size(2_500_000_000_000)) == ("512 B", "1.5 kB", "2.5 TB")


# The process


def test_help_is_fast_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, time; begin = time.perf_counter()\n"
        "from quoth.cli.main import main\n"
        "assert main(['--help']) == 0\n"
        "assert not {'torch', 'transformers', 'numpy', 'pyarrow'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "quoth demo" in done.stdout


def test_help_fits_a_screen_and_starts_with_an_example(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help")[1].splitlines()
    assert len(lines) <= 52
    names = [line.split()[1] for line in lines if line.startswith("│ ")]
    assert names.count("list") == 1
    root: Any = program()
    commands = root.list_commands(None)
    assert set(commands) <= set(names)
    assert len(names) == len(commands)  # each is told in one line
    assert run("-h")[1].splitlines() == lines
    assert any('quoth fill notes.quoth "The meeting is on [MASK]."' in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fill", "x.quoth", "a [MASK]", "--topk", "3"], "--topk; did you mean --top-k? See `quoth fill --help`"),
        (["fil", "x.quoth"], "no such command 'fil'. Did you mean 'fill'? See `quoth --help`"),
        (["search", "x.quoth"], "missing argument 'QUERY'; see `quoth search --help`"),
        (["ask", "Who?"], "'Who?' is not a corpus, which comes first: quoth ask DIR QUESTION; see `quoth ask --help`"),
        (["classify", "x", "y"], "missing option '--labels'; see `quoth classify --help`"),
        (["fill", "x.quoth", "a", "[MASK]"], "a text with spaces must be in quotes; see `quoth fill --help`"),
        (["embed", "x.quoth", "--storage", "sq9"], "'sq9' is not one of 'sq8', 'sq4', 'fp16', 'fp32'"),
        (["fill", "x.quoth", "a [MASK]", "--model", "quoth-min"], "no model 'quoth-min'; did you mean quoth-mini?"),
        (["train", "adpt", "x", "-o", "y"], "did you mean adapt?"),
        (["fill", "x", "a [MASK]", "--top-k", "ten"], "--top-k is 'ten'; it must be a whole number; see `quoth fill"),
        (["embed", "x", "--budget", "much"], "--budget is 'much'; it must be a number; see `quoth embed --help`"),
        (["serve", "x", "--port", "99999"], "--port is '99999'; it must be less than or equal to 65535; see `quoth"),
    ],
)
def test_a_misspelt_command_line_is_one_line_with_the_remedy(arguments: list[str], said: str, run: Run) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("quoth: ")
    assert said in err


def test_a_path_that_is_not_a_corpus_is_said_to_be_something_else(tmp_path: Path, documents: Path, run: Run) -> None:
    for path, kind in ((tmp_path, "a folder"), (documents, "a file")):
        code, _, err = run("info", path)
        remedy = f"`quoth index {path} -o NAME.quoth` makes one from its documents"
        assert (code, err) == (2, f"quoth: {path} is {kind} but not a corpus; {remedy}\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (empty, tmp_path / "missing"):
        code, _, err = run("info", path)
        assert (code, err) == (2, f"quoth: {path}: corpus not found; `quoth index DOCS -o {path}` makes one\n")


def test_a_corpus_at_a_url_is_read_from_a_copy(
    corpus: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "cache"))
    far = shutil.copytree(corpus, tmp_path / "far.quoth")
    url = f"file://{far}"
    [copy] = [Path(json.loads(run("info", url, "--json")[1])["corpus"])]
    assert copy.is_relative_to(tmp_path / "cache")
    near, there = (json.loads(run("info", str(place), "--json")[1]) for place in (corpus, url))
    own = {"corpus": "", "bytes": 0}  # its lock is not copied
    assert near | own == there | own
    assert run("verify", url)[0] == 0
    assert run("add", str(far), str(added(tmp_path)))[0] == 0
    assert json.loads(run("info", url, "--json")[1])["documents"] == near["documents"] + 1
    code, _, err = run("compact", url)
    assert (code, "is a URL, where index, add, replace, delete and embed write" in err) == (2, True)
    code, _, err = run("info", f"file://{tmp_path}/none.quoth")
    assert (code, f"file://{tmp_path}/none.quoth: no corpus there" in err) == (2, True)


def test_a_corpus_at_a_url_is_changed_there(
    corpus: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "cache"))
    far = shutil.copytree(corpus, tmp_path / "far.quoth")
    url, before = f"file://{far}", Corpus.open(far).num_documents
    code, _, err = run("add", url, str(added(tmp_path)))
    assert (code, "another process is writing; wait for it to end, or delete" in err) == (2, True)
    (far / "writer.lock").unlink()
    code, out, _ = run("add", url, str(added(tmp_path)))
    assert (code, out) == (0, f"{url}: {before + 1} documents, {Corpus.open(far).num_passages} passages, snapshot 2\n")
    Corpus.open(far).verify()
    assert Corpus.open(far).document("one more").text == "One more document."
    assert run("replace", url, str(added(tmp_path)))[0] == 0
    assert run("delete", url, "one more")[0] == 0
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "elsewhere"))
    assert json.loads(run("info", url, "--json")[1])["documents"] == before
    code, _, err = run("replace", url, str(corpus.parent), "--delete-missing")
    assert (code, "--delete-missing needs a folder's record" in err) == (2, True)
    assert not (far / "writer.lock").exists()


def test_an_addition_that_is_interrupted_while_it_is_sent_has_not_happened(
    corpus: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.local import LocalFileSystem

    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "cache"))
    far = shutil.copytree(corpus, tmp_path / "far.quoth", ignore=shutil.ignore_patterns("writer.lock"))
    before, plain, sent = Corpus.open(far).num_documents, LocalFileSystem.put_file, list[str]()

    def put(self: LocalFileSystem, here: str, there: str, **options: object) -> None:
        sent.append(there)
        if there.endswith("checksums.json"):
            raise OSError("the network is gone")
        plain(self, here, there, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "put_file", put)
        assert run("add", f"file://{far}", str(added(tmp_path)))[0] == 1
    assert len(sent) > 1
    assert json.loads(run("info", f"file://{far}", "--json")[1])["documents"] == before
    assert run("add", f"file://{far}", str(added(tmp_path)))[0] == 0
    Corpus.open(far).verify()
    assert Corpus.open(far).num_documents == before + 1


def added(folder: Path) -> Path:
    """A file with one more document."""
    file = folder / "more.jsonl"
    file.write_text(json.dumps({"id": "one more", "text": "One more document."}) + "\n")
    return file


def test_help_wraps_its_paragraphs_to_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is full unless its paragraph ends: the next line's first word would not have fitted."""
    monkeypatch.setenv("COLUMNS", "60")
    shown = [line.strip() for line in run("embed", "--help")[1].splitlines()]
    first = next(index for index, line in enumerate(shown) if line.startswith("Estimates"))
    last = shown.index("", first)
    assert last - first > 3
    for line, following in zip(shown[first : last - 1], shown[first + 1 : last], strict=True):
        assert len(line) + 1 + len(following.split()[0]) > 58


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(130, 170, "2 to 3 minutes"), (30, 100, "up to 2 minutes"), (120, 121, "2 minutes")],
)
def test_an_estimate_names_its_unit_once(least: float, most: float, said: str) -> None:
    assert cli_embed._between(least, most) == said


def test_help_swallows_no_brackets(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert "(pip install '.[ray]' in a clone of Quoth)" in " ".join(run("embed", "--help")[1].replace("│", " ").split())
    root: Any = program()
    commands = [*root.commands.values(), *root.get_command(None, "eval").commands.values()]
    texts = [text for each in commands for text in (each.help, *(p.help for p in each.params)) if text]
    assert len(texts) > 100
    for text in texts:
        assert Text.from_markup(text).plain == text.replace("\\[", "[").replace("\b", "")


def test_every_example_of_the_help_can_be_pasted_from_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    root: Any = program()
    groups = {(): root, ("eval",): root.get_command(None, "eval")}
    commands = {(*group, name): each for group, whole in groups.items() for name, each in whole.commands.items()}
    for name, command in commands.items():
        shown = [line.rstrip() for line in run(*name, "--help")[1].splitlines()]
        for block in command.help.split("\b\n")[1:]:
            lines = block.rstrip().splitlines()
            assert all(f" {line}" in shown for line in lines), (name, lines)
            for example in "\n".join(lines[1:]).replace("\\\n", "").splitlines():
                assert shlex.split(example)[0] in ("quoth", "curl", "torchrun") or "=" in example.split()[0], example


def test_every_command_teaches_with_an_example(run: Run) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    assert len(sections) >= 14
    for section in sections:
        assert "```sh\nquoth " in section, section.splitlines()[0]


def test_docs_are_what_the_commands_say(script: Callable[..., str]) -> None:
    with pytest.raises(SystemExit) as done:
        script(ROOT / "scripts" / "cli_help.py", "--check")
    assert done.value.code == 0


def test_ctrl_c_ends_with_130_and_a_sound_corpus(corpus: Path) -> None:
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with quoth("add", corpus, "-", preexec_fn=heed) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for number in range(3000):  # records come in parts of a megabyte
            process.stdin.write(f'{{"id": "{number}", "title": "", "text": "{"new " * 250}"}}\n')
        process.stdin.flush()
        _wait_for(corpus / "segments", more_than=1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert "interrupted" in process.stderr.read()
    Corpus.open(corpus).verify()
    assert Corpus.open(corpus).num_documents == 2


UNREAD = """
import json, os, sys
from quoth.cli.main import main
from quoth.corpus import bm25, corpus, repair

reading, writing = os.pipe()
os.close(reading)
for arguments in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        if "nonsense" in arguments:
            os.dup2(writing, 2)
        sys.exit(main(arguments))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs commands, each in a process of its own whose output nobody reads; prints their exit codes."""


def test_a_reader_that_leaves_is_no_error_to_speak_of(corpus: Path) -> None:
    verbs = ["list", "list --json", "info", "verify", "search church --json", "search church", "nonsense"]
    commands = [[verb, str(corpus), *options] for verb, *options in map(str.split, verbs)]
    done = subprocess.run([sys.executable, "-c", UNREAD, json.dumps(commands)], capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["141"] * len(commands), "")


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("ask x y -k 3", "--top-k"),
        ("fill x y -n 3", "--top-k"),
        ("fill x y --top_k 3", "--top-k"),
        ("search x y -n 3", "-k"),
        ("search x y --topk 3", "-k"),
        ("fill x y -m z", "--model"),
        ("serve -p 80", "--port"),
        ("embed x -s sq4", "--storage"),
        ("embed x -r 1", "--recall or --ray"),
        ("index x --out y", "--output"),
    ],
)
def test_a_wrong_option_is_told_with_the_one_that_is_meant(run: Run, command: str, meant: str) -> None:
    code, out, err = run(*command.split())
    assert (code, out) == (2, "")
    assert f"; did you mean {meant}? See `quoth " in err


# The demo


def test_the_atlas_holds_what_the_demo_asks() -> None:
    texts = {edition: {each.id: each.text for each in demo.atlas(edition)} for edition in ("2016", "2026")}
    assert set(texts["2016"]) == set(texts["2026"])
    for record in demo.sample("blanks.jsonl"):
        for edition in texts.values():
            assert any(record["answer"] in text for text in edition.values()), record
    for record in demo.sample("changes.jsonl"):
        assert record["blank"].count("[MASK]") == 1
        assert all(record[edition] in texts[edition][record["id"]] for edition in texts), record


def test_this_pythons_reference_holds_what_the_demo_asks() -> None:
    texts = [re.sub(r"\W+", " ", each.text) for each in demo.python_documents()]
    assert len(texts) > 50
    assert len(demo.PYTHON_BLANKS) == 12
    for blank in demo.PYTHON_BLANKS:
        assert blank.text.count("[MASK]") == 1
        assert any(blank.answer in text for text in texts), blank


def test_answers_are_compared_as_in_the_evaluation_of_questions() -> None:
    assert demo.same_answer("the Louvre,", "Louvre")
    assert demo.same_answer("code\n block", "Code block")
    assert demo.same_answer("Opera Comique of the", "Opera: Comique of")
    assert not demo.same_answer("The", "Louvre")
    assert not demo.same_answer("10", "about 10 million")
    assert demo.same_answer("340 million", "about 340 million")
    assert demo.same_answer("António Guterres of Portugal", "António Guterres")
    assert not demo.same_answer("Technical University of Munich", "Technical University of Berlin")


class Atlas:
    """Stands in for a model that knows the answers of 2016 and the corpus that it reads."""

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        self.corpus = corpora[0]
        self.answers = {each.get("text", each.get("question")): each["answer"] for each in demo.sample("blanks.jsonl")}
        self.changes = {each["blank"]: each for each in demo.sample("changes.jsonl")}

    def fill(self, texts: list[str], **options: Any) -> list[list[Prediction]]:
        return [[self.predict(text)] for text in texts]

    ask = fill

    def predict(self, text: str) -> Prediction:
        edition = "2026" if self.corpus.snapshot > 1 else "2016"
        change = self.changes.get(text)
        answer = change[edition] if change else self.answers[text]
        document = next(each for each in self.corpus.documents() if answer in each.text)
        start = document.text.index(answer)
        evidence = Evidence(document.id, document.title, 0, start, start + len(answer), document.text, 1.0)
        return Prediction(answer, 0.0, 1.0, (evidence,))


def test_the_demo_shows_answers_with_evidence_and_counts_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "load_reader"):
        monkeypatch.setattr(demo, name, lambda _model, corpora, *_: Atlas(corpora))
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    assert "✓ Georges Bizet  100 %" in out
    assert "16 of 16 right" in out
    shown = demo.CHANGES_SHOWN
    assert f"{shown} of {shown} answers changed, {shown} from right to right" in out
    assert out.endswith(f"\n{demo.JUDGED}\n")


def test_the_demo_counts_what_is_wrong(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Silent:
        def fill(self, texts: list[str], **options: Any) -> list[list[Prediction]]:
            return [[] for _ in texts]

    monkeypatch.setattr(demo, "load", lambda *_: Silent())
    code, out, err = run("demo", "--python", "--keep", tmp_path / "kept.quoth")
    assert code == 0
    assert "✗ no answer was found in the passages that were read  (the text says loop)" in out
    assert "0 of 12 right" in out
    assert "kept.quoth" in err
    assert Corpus.open(tmp_path / "kept.quoth").num_documents > 50


def test_the_demo_says_how_sure_an_answer_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (each.answer for each in demo.PYTHON_BLANKS[:3])
    said = {
        first: Prediction(first, 0.0, 0.55, (), status="unsure"),
        second: Prediction("else", 0.0, 0.3, (), status="unsure"),
        third: Prediction(third, 0.0, 0.02, (), status="not_found"),
    }

    class Unsure:
        def fill(self, texts: list[str], **options: Any) -> list[list[Prediction]]:
            return [[said[each.answer]] if each.answer in said else [] for each in demo.PYTHON_BLANKS]

    monkeypatch.setattr(demo, "load", lambda *_: Unsure())
    _, out, _ = run("demo", "--python")
    assert f"✓ {first}  unsure, 55 %\n" in out
    assert f"✗ else  unsure, 30 %  (the text says {second})" in out
    assert f"✗ no answer was found in the passages that were read  (the text says {third})" in out
    assert "1 of 12 right (1 of these unsure)" in out


def _wait_for(folder: Path, more_than: int) -> None:
    """Wait until `folder` has more entries than that, half a minute at most."""
    for _ in range(300):
        if folder.is_dir() and len(list(folder.iterdir())) > more_than:
            return
        time.sleep(0.1)
    pytest.fail(f"nothing new in {folder.name}")


@pytest.mark.parametrize("task", ["cloze", "lama", "senses", "swap"])
def test_what_a_model_computes_with_reaches_it(
    task: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = {"sentence1": "a bank", "start1": "2", "end1": "6", "sentence2": "the bank", "start2": "4", "end2": "8"}
    fact = {"uuid": "g1", "pred": "/people/person/date_of_birth", "sub_label": "Ann Lee", "obj_label": "1941"}
    records = {"senses": word, "lama": fact | {"evidences": [{"snippet": "Ann Lee, born 1941."}]}}
    lines = [json.dumps(records.get(task, {}) | ({"label": label} if task == "senses" else {})) for label in "TFTF"]
    (tmp_path / "records.jsonl").write_text("\n".join(lines if task == "senses" else lines[:1]), encoding="utf-8")
    inputs: list[object] = [tmp_path / "records.jsonl"]
    if task == "cloze":
        inputs = [ROOT / "samples" / "atlas-2016.jsonl", "--limit", 4]
    if task == "swap":
        editions = [tmp_path / f"{edition}.quoth" for edition in ("2016", "2026")]
        for edition in editions:
            assert run("index", ROOT / "samples" / f"atlas-{edition.stem}.jsonl", "-o", edition)[0] == 0
        inputs = ["--corpus", editions[1], "--set", f"old={editions[0]}"]
    seen: list[dict[str, object]] = []

    def load(name: str, **options: object) -> None:
        seen.append(options)
        raise InputError("seen")

    monkeypatch.setattr(NPM, "from_pretrained", load)
    code, _, err = run(
        "eval", task, *inputs, "--system", "quoth-mini", "--base", tmp_path, "--device", "cpu", "--dtype", "fp16"
    )
    assert (code, err.splitlines()[-1]) == (2, "quoth: seen")
    (options,) = seen
    assert [options[name] for name in ("base", "device", "dtype")] == [tmp_path, "cpu", "fp16"]


def test_a_format_that_is_not_known_is_refused_with_those_that_are(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_documents(tmp_path, format="wpd")
    assert {*str(refused.value).split("is not one of ")[1].split(", ")} == {*FORMATS}
    code, _, err = run("index", tmp_path, "--format", "docxx", "-o", tmp_path / "x.quoth")
    assert code == 2
    assert err.startswith("quoth: --format is 'docxx'; it must be one of jsonl, ")
    assert err.endswith(", xls; did you mean docx?\n")


def test_every_suffix_is_in_the_documentation() -> None:
    tables = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("formats.md", "documents.md"))
    assert {*re.findall(r"`(\.[a-z]+)`", tables)} >= {*BY_SUFFIX}
