"""What goes wrong is told: one line that names the file and the reason, the right exit code, nothing left behind."""

import builtins
import errno
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import quoth
from commands import Run
from quoth.answers.options import ResolvedOptions
from quoth.arrays import open_array, save_array
from quoth.cli.main import main
from quoth.cli.models import _may_be_of
from quoth.cli.output import note, print_json, visible
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_records
from quoth.errors import InputError, LockedError
from quoth.npm.config import ClassifyOptions
from quoth.records import Document
from quoth.storage import WriterLock

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "ok.jsonl"
    path.write_text('{"id": "a", "text": "Paris is the capital of France."}\n')
    return path


def in_a_process(code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


# Inputs


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("r.csv", b"id,text\n1,a\n2\n", 3),
        ("r.tsv", b"id\ttext\n1\ta\n2\n", 3),
        ("r.csv", b"id,text\n1,\xc3\xa9\xff\n2,b\n", 2),
    ],
)
def test_a_bad_row_of_a_table_is_told_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, content: bytes, line: int
) -> None:
    """The library that reads tables is written in C++: what it printed itself would be seen here."""
    (tmp_path / name).write_bytes(content)
    assert main(["index", str(tmp_path / name), "-o", str(tmp_path / "c.quoth")]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"quoth: {tmp_path / name}:{line}: ")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("options", [[], ["--skip-bad"]])
@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", b""), ("a.md", b"\xef\xbb\xbf \n"), ("a.jsonl", b""), ("", b"")]
)
def test_nothing_to_index_or_to_add_is_an_error(
    tmp_path: Path, run: Run, documents: Path, name: str, content: bytes, options: list[str]
) -> None:
    (docs := tmp_path / "docs").mkdir()
    if name:
        (docs / name).write_bytes(content)
    for given in (docs, docs / name):
        code, out, err = run("index", given, "-o", tmp_path / "new" / "c.quoth", *options)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"quoth: {given}: no ")
    assert not (tmp_path / "new").exists()
    run("index", documents, "-o", tmp_path / "c.quoth")
    code, out, err = run("add", tmp_path / "c.quoth", docs, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert Corpus.open(tmp_path / "c.quoth").snapshot == 1


def test_an_empty_document_among_others_is_added(tmp_path: Path, run: Run, documents: Path) -> None:
    (tmp_path / "empty.txt").touch()
    code, _, err = run("index", documents, tmp_path / "empty.txt", "-o", tmp_path / "c.quoth")
    assert (code, "document 'empty.txt' has no text, so it gets no passage" in err) == (0, True)
    assert run("replace", tmp_path / "c.quoth", tmp_path / "empty.txt")[0] == 0  # a file may become empty


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '{"a": [1, NaN]}'])
def test_metadata_that_json_cannot_hold_is_refused(tmp_path: Path, run: Run, value: str) -> None:
    file = tmp_path / "n.jsonl"
    file.write_text(f'{{"id": "a", "text": "x", "v": 1.5}}\n{{"id": "b", "text": "x", "v": {value}}}\n')
    code, out, err = run("index", file, "-o", tmp_path / "c.quoth")
    assert (code, out) == (2, "")
    assert err.startswith(f"quoth: {file}:2: metadata contains NaN or an infinite number")
    assert not (tmp_path / "c.quoth").exists()
    corpus = Corpus.create(tmp_path / "c.quoth")
    with pytest.raises(InputError, match="'b': metadata contains NaN"):
        corpus.add([Document("b", "", "x", {"v": json.loads(value)})])


def test_a_word_for_a_number_is_no_number(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("b", "", "x", {"NaN": "Infinity"})])
    assert corpus.document("b").metadata == {"NaN": "Infinity"}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_printed_json_is_json_that_no_terminal_obeys(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    record = {"v": math.nan, "w": [-math.inf, {"x": math.inf}], "t": "a\x9b31m\u202eb\x7f\x1b é", "n": 1.5, "b": True}
    record["u"] = "München \ud800 北京"
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    print_json(record)
    stream.seek(0)
    line = stream.read()

    found = json.loads(line, parse_constant=Mock(side_effect=AssertionError))
    assert found == {**record, "v": None, "w": [None, {"x": None}]}
    assert not {"\x9b", "\u202e", "\x7f", "\x1b"} & set(line)


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "header.csv", "blank.jsonl", "bad.jsonl"])
def test_input_without_a_document_is_refused(tmp_path: Path, run: Run, name: str) -> None:
    contents = {"header.csv": "id,text\n", "blank.jsonl": "\n\n", "bad.jsonl": "{\n"}
    (tmp_path / name).write_text(contents.get(name, ""))
    code, out, err = run("index", tmp_path / name, "-o", tmp_path / "c.quoth", "--skip-bad")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == f"quoth: {tmp_path / name}: no documents in it; give a file that has some"
    assert os.listdir(tmp_path) == [name]


def test_adding_nothing_changes_nothing(tmp_path: Path, run: Run, documents: Path) -> None:
    (tmp_path / "e.jsonl").touch()
    assert run("index", documents, "-o", tmp_path / "c.quoth")[0] == 0
    for verb in ("add", "replace"):
        assert run(verb, tmp_path / "c.quoth", tmp_path / "e.jsonl")[0] == 2
    assert Corpus.open(tmp_path / "c.quoth").snapshot == 1


# Options


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        (ResolvedOptions, {"length_exponent": 1e308}, r"length_exponent is 1e\+308; it must be from -1000 to 1000"),
        (ResolvedOptions, {"length_exponent": math.nan}, "length_exponent is nan"),
        (
            ResolvedOptions,
            {"temperature": 1e-320},
            r"temperature is 1e-320; it must be 1e-06 or more; try temperature=1.0",
        ),
        (ClassifyOptions, {"temperature": 1e-320}, "temperature is 1e-320"),
        (
            ResolvedOptions,
            {"max_phrase_tokens": 2**70},
            "max_phrase_tokens is 1180591620717411303424; it must be from 1 to 2147483647",
        ),
        (ResolvedOptions, {"top_k": 2**70}, "top_k is 1180591620717411303424; .* 2147483647"),
    ],
)
def test_numbers_that_overflow_are_refused(options: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        options(**given)


def test_large_and_small_numbers_are_numbers() -> None:
    least = ResolvedOptions(length_exponent=-1000, temperature=1e-6, max_phrase_tokens=2**31 - 1, top_k=2**31 - 1)
    assert (least.length_exponent, least.temperature) == (-1000, 1e-6)
    assert least.max_phrase_tokens == least.top_k == 2**31 - 1
    assert ResolvedOptions(temperature=1e300).temperature == 1e300


TOLD_AT_ONCE = [
    (["ask", "C", ""], "the question is empty"),
    (["ask", "C", "Who?", "--top-k", "0"], "--top-k is 0; it must be 1 or more; try --top-k=5"),
    (["ask", "C", "Who?", "--passages", "0"], "--passages is 0; it must be 1 or more"),
    (["ask", "C", "Who?", "--min-probability", "2"], "--min-probability is 2.0; it must be from 0 to 1"),
    (["ask", "C", "Who?", "--dtype", "f8"], "'f8' is not one of 'fp32', 'bf16', 'fp16'"),
    (["ask", "C", "Who?", "--device", "gpu"], "--device is 'gpu'; it must be cpu, cuda, cuda:1 or mps"),
    (["ask", "C", "Who?", "--base", "/none"], "--base is '/none'; there is no such folder"),
    (["ask", "C", "Who?", "--model", "quoth-realm"], "`quoth embed C --keys passages --model quoth-realm`"),
    (["ask", "C", "Who?", "--mode", "dense"], "`quoth embed C --keys passages --model quoth-realm`"),
    (["ask", "C", "Who?", "--mode", "hybrid"], "`quoth embed C --keys passages --model quoth-realm`"),
    (
        ["ask", "C", "Who?", "--dense", "--mode", "bm25"],
        "--dense finds passages by vectors alone, --mode bm25 does not",
    ),
    (["fill", "C", "a [MASK]", "--mode", "dense"], "`quoth embed C --keys passages --model quoth-realm`"),
    (["index", "C", "-o", "D", "--vectors", "--ray"], "--vectors does not work with --ray"),
    (
        ["ask", "C", "Who?", "--model", "quoth-mini", "--template", "[MASK]"],
        "--template is '[MASK]'; it must be a text, with {question}",
    ),
    (["ask", "C", "Who?", "--model", "quoth-mini", "--template", "{question}"], "no [MASK] in '{question}'"),
    (["fill", "C", "no blank"], "no [MASK] in 'no blank'"),
    (["fill", "C", "___ or [MASK] [MASK]", "--model", "quoth-reader"], "2 masks in"),
    (["fill", "C", "[MASK] " * 9], "the text has 9 blanks; give at most 8 at a time"),
    (["fill", "C", "a [MASK]", "--passages", "all"], "`quoth embed C --keys tokens --model quoth-mini`"),
    (["fill", "C", "a [MASK]", "--k", "0"], "--neighbours is 0"),
    (["fill", "C", "a [MASK]", "--model", "quoth-zero-ner"], "kind 'npm' is required here"),
    (["classify", "C", " ", "--labels", "a=b", "--labels", "c=d"], "the text is empty; give one to label"),
    (["classify", "C", "x", "--labels", "a=b"], "labels has only 'a'"),
    (
        ["classify", "C", "x", "--labels", "a=b", "--labels", "c=d", "--template", "x"],
        "--template is 'x'; it must be a text, with {text}",
    ),
    (["search", "C", " "], "the query is empty"),
    (["search", "C", "x", "-k", "0"], "--k is 0"),
    (["search", "C", "x", "--mode", "dense"], "`quoth embed C --keys passages --model quoth-realm`"),
    (["search", "C", "x", "--mode", "entity"], "`quoth embed C --keys entities --model quoth-zero-ner`"),
    (["search", "C", "x", "--mode", "hybrid", "--weight", "tokens=1"], "weight 1.0 of tokens"),
    (["search", "C", "x", "--mode", "dense", "--model", "quoth-reader"], "is a reader and has no vectors"),
    (
        ["embed", "C", "--model", "nope"],
        "no model 'nope'; name quoth-mini, quoth-mini-single, quoth-base, quoth-reader",
    ),
    (["embed", "C", "--model", "quoth-mni"], "no model 'quoth-mni'; did you mean quoth-mini?"),
    (["embed", "C", "--model", "./nope"], "no model './nope'"),
    (["embed", "C", "--model", "C"], "has no model; it needs config.json"),
    (["embed", "C", "--keys", "entities", "--model", "no/such"], "in the Hugging Face cache (HF_HUB_OFFLINE is set)"),
    (["embed", "C", "--recall", "2"], "recall is 2.0; it must be from 0.5 to 1"),
    (["train", "adapt", "nowhere.jsonl", "-o", "x"], "nowhere.jsonl: no such file or folder; give one that exists"),
    (["train", "adapt", __file__, "-o", __file__], "test_told.py' is a file; name a folder for the model"),
    (["train", "adapt", "C", "-o", "x", "--model", "nope"], "no model 'nope'"),
    (["mcp", "C", "--npm", "nope"], "no model 'nope'"),
]


def test_a_mistake_is_told_before_torch_is_imported(tmp_path: Path, run: Run, documents: Path) -> None:
    assert run("index", documents, "-o", tmp_path / "C")[0] == 0
    code = """
import json, os, sys
os.chdir(sys.argv[1])
os.environ["HF_HUB_OFFLINE"] = "1"
from quoth.cli.main import main
for arguments in json.loads(sys.argv[2]):
    print(main(arguments), "torch" in sys.modules)
"""
    done = in_a_process(code, tmp_path, json.dumps([arguments for arguments, _ in TOLD_AT_ONCE]))
    assert done.stdout.splitlines() == ["2 False"] * len(TOLD_AT_ONCE)
    lines = done.stderr.splitlines()
    assert len(lines) == len(TOLD_AT_ONCE)
    for (arguments, said), line in zip(TOLD_AT_ONCE, lines, strict=True):
        assert said in line, arguments


# Interruptions


def test_ctrl_c_while_it_is_imported_is_one_line() -> None:
    code = """
import builtins, os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
original = builtins.__import__
def interrupted(name, *arguments, **options):
    if name == "quoth.cli.main":
        os.kill(os.getpid(), signal.SIGINT)
    return original(name, *arguments, **options)
builtins.__import__ = interrupted
runpy.run_module("quoth", run_name="__main__")
"""
    done = in_a_process(code)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "quoth: interrupted; everything committed so far is kept\n"


def test_ctrl_c_in_a_command_is_one_line(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def interrupted(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "quoth.corpus.corpus":
            raise KeyboardInterrupt
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert run("info", tmp_path) == (130, "", "quoth: interrupted; everything committed so far is kept\n")


KILLED = """
import os, signal, sys
from quoth.corpus import corpus, writer
from quoth.cli.main import main
where = sys.argv[1]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "manifest-0":
    corpus.write_manifest = die
elif where == "segment":
    writer.Writer.commit = die
main(["index", sys.argv[2], "-o", sys.argv[3]])
"""


@pytest.mark.parametrize("where", ["manifest-0", "segment"])
def test_a_first_index_that_was_killed_is_run_again(tmp_path: Path, run: Run, documents: Path, where: str) -> None:
    path = tmp_path / "c.quoth"
    assert in_a_process(KILLED, where, documents, path).returncode == -9
    assert path.exists()
    code, out, _ = run("index", documents, "-o", path)
    assert (code, out) == (0, f"{path}: 1 document, 1 passage, snapshot 1\n")
    corpus = Corpus.open(path)
    corpus.verify()
    assert corpus.bm25("capital", 5)[0].tolist() == [0]
    code, _, err = run("index", documents, "-o", path)
    assert (code, "already exists" in err) == (2, True)


def test_only_what_was_begun_is_begun_again(tmp_path: Path, run: Run, documents: Path) -> None:
    (tmp_path / "mine" / "segments").mkdir(parents=True)
    (tmp_path / "mine" / "segments" / "file").write_text("mine")
    assert run("index", documents, "-o", tmp_path / "mine")[0] == 2
    assert (tmp_path / "mine" / "segments" / "file").read_text() == "mine"
    Corpus.create(tmp_path / "other", splitter="fixed:3")
    with WriterLock(tmp_path / "other" / "writer.lock"):
        with pytest.raises(LockedError):
            Corpus.create(tmp_path / "other")
        assert run("index", documents, "-o", tmp_path / "other")[0] == 2
    assert Corpus.open(tmp_path / "other").splitter == "fixed:3"


# What the system refuses


def refusing(number: int) -> Mock:
    return Mock(side_effect=OSError(number, os.strerror(number)))


def test_a_full_disk_is_named(tmp_path: Path, run: Run, documents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("index", documents, "-o", tmp_path / "c.quoth")[0] == 0
    documents.write_text('{"id": "b", "text": "Rome"}\n')
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refusing(errno.ENOSPC))
        code, out, err = run("add", tmp_path / "c.quoth", documents)
    assert (code, out) == (1, "")
    file = tmp_path / "c.quoth" / "segments" / "000000000001" / "blocks.bin"
    assert err == f"quoth: {file}: No space left on device; free some space and run the command again\n"
    assert run("add", tmp_path / "c.quoth", documents)[0] == 0


def test_a_missing_permission_is_named(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    path = tmp_path / "c.quoth"
    code, out, err = run("index", "-", "-o", path)
    assert (code, out) == (2, "")
    assert err == f"quoth: {path}/committed.json: Permission denied; change its permissions\n"


def test_an_input_file_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "open", refusing(errno.EACCES))
    for read in (read_documents, read_records):
        with pytest.raises(InputError, match="Permission denied") as caught:
            list(read(documents))
        assert "damaged" not in str(caught.value)


def test_an_array_that_may_not_be_read_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    save_array(tmp_path / "a.npy", np.arange(3))
    monkeypatch.setattr(np.lib.format, "read_array", refusing(errno.EACCES))
    with pytest.raises(PermissionError):
        open_array(tmp_path / "a.npy")


# The terminal


def test_names_of_files_do_not_command_the_terminal(tmp_path: Path, run: Run, documents: Path) -> None:
    path = tmp_path / "o\x1b]0;t\x07\u202e.q"
    shown = f"{tmp_path}/o\\x1b]0;t\\x07\\u202e.q"
    assert run("index", documents, "-o", path)[1] == f"{shown}: 1 document, 1 passage, snapshot 1\n"
    assert run("verify", path)[1].startswith(f"{shown}: sound\n")
    assert f"quoth: {shown} already exists" in run("index", documents, "-o", path)[2]
    assert "\x1b" not in run("info", path)[1]


def test_notes_keep_what_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    note("München 北京\u200c می‌خواهم\n  'x'\\n \x1b[31m")
    assert capsys.readouterr().err == "quoth: München 北京\u200c می‌خواهم 'x'\\n \\x1b[31m\n"
    assert visible("a\x9bb\u2066c") == "a\\x9bb\\u2066c"


def test_vectors_of_another_shipped_model_are_told_before_one_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("a", "", "Paris is a city.")])
    table = corpus.path / "keys" / "0123456789abcdef" / corpus.segments[0].name
    table.mkdir(parents=True)
    facts = {"format": 2, "model": "quoth-mini", "fingerprint": "0", "precision": "sq8", "tokens": 1}
    (table / "table.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setattr("quoth.cli.search.load_searcher", lambda *_: pytest.fail("loaded"))
    monkeypatch.setattr("quoth.cli.query.load_predictor", lambda *_: pytest.fail("loaded"))
    dense = ["fill", corpus.path, "a [MASK]", "--passages", "all", "--model", "quoth-mini-single"]
    for arguments, model, keys in (
        (["search", corpus.path, "city", "--mode", "dense"], "quoth-realm", "passages"),
        (dense, "quoth-mini-single", "tokens"),
    ):
        command = f"`quoth embed {corpus.path} --keys {keys} --model {model}` makes them"
        told = f"quoth: {corpus.path}: has vectors of quoth-mini, not of {model}; {command}\n"
        assert run(*arguments) == (2, "", told)


def test_words_of_an_entity_that_are_not_the_query_s_are_told_before_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    Corpus.create(tmp_path / "c.quoth")
    monkeypatch.setattr("quoth.cli.search.load_entities", lambda *_: pytest.fail("loaded"))
    told = "quoth: entity 'Elba' does not occur in the question 'Who?'; give words of it\n"
    assert run("search", tmp_path / "c.quoth", "Who?", "--mode", "entity", "--entity", "Elba") == (2, "", told)


def test_shipped_models_with_the_same_vectors_are_not_taken_for_others() -> None:
    models = {name: quoth.load(name) for name in ("quoth-realm", "quoth-realm-base", "quoth-zero-ner")}
    models["quoth-mini-base"] = quoth.ZeroNER.from_pretrained("quoth-mini-base")
    pairs = [
        (stored, name)
        for stored, one in models.items()
        for name in models
        if one.fingerprint == models[name].fingerprint
    ]
    assert ("quoth-realm", "quoth-realm-base") in pairs
    assert all(_may_be_of(stored, name, models[name].keys) for stored, name in pairs)
    assert not _may_be_of("quoth-mini", "quoth-realm", "passages")
    assert not _may_be_of("quoth-mini", "quoth-mini-single", "tokens")
    assert _may_be_of("a-folder", "quoth-mini", "tokens")
