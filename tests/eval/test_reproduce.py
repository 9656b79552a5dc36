"""The papers' tables by name: their records can be asked, and what is made of them is in the right order."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from commands import Run
from quoth import Corpus, Document
from quoth.errors import InputError
from quoth.fields import check_fields
from quoth.records import Prediction
from quoth_eval.charts import drawable
from quoth_eval.harness import evaluate
from quoth_eval.pages import as_markdown
from quoth_eval.papers import Item, Part, find_item, items
from quoth_eval.published import published_for
from quoth_eval.report import Report, Result, Row
from quoth_eval.reproduce import Call, eval_words, quoth, reproduce, systems_of
from quoth_eval.spec import read_options
from quoth_eval.summary import beside
from quoth_eval.systems import fingerprint, known_options, parse_system
from quoth_eval.task import Answer, Example, Task, first_right
from quoth_eval.tasks import find
from quoth_eval.tasks.closed_files import present
from tiny import tiny_npm

PLACES = {**{name: name for name in ("data", "out", "old")}, "limit": 5}


def test_every_table_and_figure_of_the_papers_is_named_once() -> None:
    expected = [f"npm-table-{n}" for n in range(1, 12)] + [f"npm-figure-{n}" for n in range(1, 10)]
    expected += [f"realm-table-{n}" for n in range(1, 5)] + [f"realm-figure-{n}" for n in range(1, 5)]
    expected += [f"zero-ner-table-{n}" for n in range(1, 4)] + [f"zero-ner-figure-{n}" for n in range(1, 5)]
    ids = [item.id for item in items()]
    assert len(set(ids)) == len(ids)
    assert [item.id for item in items() if not item.ours] == expected
    for item in items():
        assert bool(item.caption) != item.ours
        assert [bool(item.parts), bool(item.log), bool(item.cannot)].count(True) == 1, item.id
        assert bool(item.time and item.differs) == (not item.cannot), item.id
        assert len({part.name for part in item.parts}) == len(item.parts), item.id


@pytest.mark.parametrize("item", [each for each in items() if each.parts], ids=lambda item: item.id)
def test_eval_takes_what_the_records_say(item: Item, tmp_path: Path) -> None:
    trained = {each.name: {"kind": item.paper.lower()} for each in item.trainings}
    for name, settings in {**item.models, **trained}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "quoth.json").write_text(json.dumps(dict(settings)), encoding="utf-8")
    places = {**PLACES, "models": str(tmp_path)}
    for part in item.parts:
        for spec in map(find, part.tasks):
            told = read_options([each.format(**places) for each in (*part.set, *part.more)])
            assert not set(told) - set(known_options([spec])), part.name
            check_fields(spec.read({"templates": "x", **told} if "templates" in spec.names else told))
            for system in part.systems:
                parse_system(system.format(**places), spec, told)
            assert spec.takes_files or not part.files, part.name
            assert part.reads(spec.name) or part.heldout or not spec.takes_files, part.name


def test_each_published_column_that_is_measured_is_shown_beside_a_part_and_no_other() -> None:
    for item in items():
        shown = [name for part in item.parts for name in part.columns]
        columns = item.published.columns if item.published else ()
        assert set(shown) == {each.name for each in columns if each.measures}, item.id
        for part in item.parts:
            for name in part.columns:
                (column,) = (each for each in columns if each.name == name)
                assert set(column.measures) & set(part.tasks), (item.id, name)


PART = Part(name="p", tasks=("nq",), systems=("quoth-mini,read=0", "quoth-mini", "quoth-reader", "bm25"))


def test_own_models_take_the_place_of_those_of_their_kind(tmp_path: Path) -> None:
    mine = str(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "quoth.json").write_text('{"kind": "npm"}', encoding="utf-8")
    assert systems_of(PART, []) == list(PART.systems)
    assert systems_of(PART, [mine]) == [f"{mine},read=0", mine, "quoth-reader", "bm25"]
    assert systems_of(PART, [mine, "quoth-mini-single"])[:2] == [f"{mine},read=0", "quoth-mini-single,read=0"]
    assert systems_of(PART, ["lm:gpt2"]) == [*PART.systems, "lm:gpt2"]
    assert "mlm:bert" not in systems_of(replace(PART, tasks=("links",)), ["mlm:bert"])  # which finds no passages


def test_what_is_missing_is_said_with_its_source(tmp_path: Path) -> None:
    (part,) = find_item("npm-figure-5").parts
    assert part.lacks(tmp_path, {})["senses"].startswith(f"{tmp_path}/mcl_wic/dev.jsonl: no such file; published: MCL")
    (tmp_path / "mcl_wic").mkdir()
    (tmp_path / "mcl_wic" / "dev.jsonl.xz").write_bytes(b"")
    assert part.lacks(tmp_path, {}) == {}
    (tmp_path / "mcl_wic" / "dev.jsonl").write_bytes(b"")
    assert [path.name for path in present(tmp_path, "mcl_wic/*.jsonl")] == ["dev.jsonl"]
    sentiment = find_item("npm-table-1").parts[2]
    assert set(sentiment.lacks(tmp_path, {"reviews": tmp_path})) == {"sst2", "mr", "rt", "cr", "amazon"}
    assert "no corpus 'reviews'" in sentiment.lacks(tmp_path, {})["mr"]


def test_a_limit_is_a_tenth_where_a_table_draws_by_relation() -> None:
    entities, questions = find_item("zero-ner-table-1"), find_item("realm-table-1")
    call, places = Call(output=Path("o"), limit=30), {**PLACES, "wiki": "w", "models": "m"}
    for item, expected in ((entities, "3"), (questions, "30")):
        words = eval_words(item, item.parts[0], call, places)
        assert words[words.index("--limit") + 1] == expected


ITEM = Item(
    paper="REALM",
    source="Guu et al. 2020, REALM, arXiv:2002.08909",
    about="All.",
    name="table 1",
    caption="Test results.",
    shows="questions",
    differs="Much.",
    parts=(
        Part(
            name="a b",
            tasks=("nq", "kamel"),
            systems=("quoth-realm",),
            corpora=("wiki",),
            embed=("quoth-realm",),
            columns=("NQ",),
        ),
    ),
)


class Doing:
    """Instead of `quoth`: makes corpora, and answers one of two examples rightly."""

    def __init__(self) -> None:
        self.done: list[list[str]] = []

    def __call__(self, words: Sequence[str]) -> str:
        self.done.append(list(words))
        if words[0] == "index":
            Corpus.create(words[words.index("-o") + 1]).add([Document("d", "T", Path(words[1]).read_text())])
        if words[0] == "eval":
            examples = [Example(each, "q?", (each,), None) for each in "xy"]
            task = Task(
                name=words[1], examples=examples, judge=lambda e, a: first_right([a.predictions[0].text == e.id])
            )
            says = {"mine": lambda asked: [Answer([Prediction("x", 0.0, 1.0, ())]) for _ in asked]}
            evaluate(task, says, Path(words[words.index("--run") + 1]) / words[1])
        return "what was printed\n"


@pytest.fixture
def call(tmp_path: Path) -> Call:
    (tmp_path / "data" / "open_qa").mkdir(parents=True)
    (tmp_path / "data" / "open_qa" / "nq.test.tsv").write_text("q\t['x']\n", encoding="utf-8")
    (tmp_path / "wiki.txt").write_text("Text.", encoding="utf-8")
    return Call(output=tmp_path / "out", data=tmp_path / "data", corpora={"wiki": tmp_path / "wiki.txt"})


def test_a_table_is_indexed_embedded_asked_and_shown_beside_the_paper(call: Call) -> None:
    doing = Doing()
    page = reproduce(ITEM, call, doing).read_text(encoding="utf-8")
    made = str(call.output / "corpora" / "wiki.quoth")
    assert [words[0] for words in doing.done] == ["index", "embed", "eval"]
    assert doing.done[1] == ["embed", made, "--model", "quoth-realm", "--yes"]
    assert doing.done[2][:4] == ["eval", "nq", "--data", str(call.data)]
    assert doing.done[2][doing.done[2].index("--corpus") + 1] == made
    assert "| system | measured | NQ: exact match |" in page
    assert "| mine | here, 2 examples | 50.0 [0.0, 100.0] |" in page
    assert "| ORQA (Lee et al., 2019) | Guu et al. 2020, table 1 | 33.3 |" in page
    assert "DrQA" not in page  # which was not asked these questions
    assert "English Wikipedia of 20 December 2018" in page
    assert page.index("| ORQA (") < page.index("what was printed")
    assert "kamel: " in page.split("## Left out")[1]  # its file is missing
    digest = sha256((call.data / "open_qa" / "nq.test.tsv").read_bytes()).hexdigest()[:8]
    assert f"| open_qa/nq.test.tsv | {digest} |" in page

    again = Doing()
    reproduce(ITEM, call, again)
    assert [words[0] for words in again.done] == ["embed", "eval"]  # embed does nothing to what is embedded

    (call.data / "open_qa" / "nq.test.tsv").write_text("other\t['x']\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"open_qa/nq.test.tsv was .* and is .* now; name a new folder"):
        reproduce(ITEM, call, again)


def test_table_4_shows_speed_beside_the_papers(call: Call) -> None:
    item = find_item("npm-table-4")
    item = replace(item, parts=tuple(replace(part, embed=()) for part in item.parts if part.name == "nq"))
    page = reproduce(item, call, Doing()).read_text(encoding="utf-8")
    assert "| system | measured | NQ Acc: exact match | NQ #Q/sec: examples per second |" in page
    assert re.search(r"\| mine \| here, 2 examples \| 50\.0 \[0\.0, 100\.0\] \| \d[\d.e+]* \|", page)
    assert "| OPT 6.7B + BM25 | Min et al. 2022, table 4 | 10.7 | 0.12 |" in page
    assert "36.36" not in page  # of Subj


def test_a_system_without_the_measure_has_a_row_too() -> None:
    rows = (Row("bm25", "1", "q?", ("a",), {"answer@5": 1.0}),)
    report = Report("nq", {"num_answerable": 0}, (Result("bm25", rows),))
    (table,) = (each for each, _ in published_for("nq") if each.item == "table 1")
    (section,) = beside(report, [(table, table.columns[:1])])
    page = as_markdown("", [section])
    assert "| bm25 | here, 1 example | – |" in page
    assert "answerable questions: 0;" in page


def test_a_figure_shows_no_published_table(call: Call) -> None:
    figure = replace(ITEM, name="figure 1", caption="Drawn.")
    assert "ORQA" not in reproduce(figure, call, Doing()).read_text(encoding="utf-8")


def test_other_documents_or_another_limit_need_another_folder(call: Call) -> None:
    reproduce(ITEM, call, Doing())
    with pytest.raises(InputError, match="--limit of realm-table-1 was None and is 5 now"):
        reproduce(ITEM, replace(call, limit=5), Doing())
    call.corpora["wiki"].write_text("Another text.", encoding="utf-8")
    with pytest.raises(InputError, match="documents of wiki was"):
        reproduce(ITEM, call, Doing())


def test_a_corpus_of_ones_own_is_only_read(call: Call, tmp_path: Path) -> None:
    Corpus.create(tmp_path / "own.quoth").add([Document("d", "T", "Text.")])
    doing = Doing()
    reproduce(ITEM, Call(output=call.output, data=call.data, corpora={"wiki": tmp_path / "own.quoth"}), doing)
    assert [words[0] for words in doing.done] == ["eval"]


def test_nothing_to_measure_is_an_error(call: Call) -> None:
    with pytest.raises(InputError, match="no corpus 'wiki'"):
        reproduce(ITEM, Call(output=call.output, data=call.data), Doing())
    with pytest.raises(InputError, match="asks no model of its kind, but quoth-realm"):
        reproduce(ITEM, Call(output=call.output, data=call.data, models=("quoth-reader",)), Doing())
    with pytest.raises(InputError, match=r"npm-figure-9 cannot be run here: no command"):
        reproduce(find_item("npm-figure-9"), call)
    with pytest.raises(InputError, match="did you mean npm-table-1"):
        find_item("npm-tabel-1")


def test_a_figure_of_a_training_run_is_its_log(tmp_path: Path, run: Run) -> None:
    """Twenty steps in ten parts: the mean of two steps each; a picture beside the page."""
    log = tmp_path / "m" / "log.jsonl"
    log.parent.mkdir()
    lines = [{"step": 5, "loss": 1.0}]  # of a part of the run that retrieved nothing
    lines += [{"step": step, "utility": step / 50, "gain": 0.5, "null": 0.25} for step in range(10, 30)]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    code, out, _ = run("reproduce", "realm-figure-4", "--model", log.parent, "-o", tmp_path / "out")
    assert code == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if " to " in line[:12]]
    assert [row[0] for row in rows] == [f"{step} to {step + 1}" for step in range(10, 30, 2)]
    assert [row[1].split()[0] for row in rows[:3]] == ["0.21", "0.25", "0.29"]
    assert rows[0][2:] == ["0.50 [0.50, 0.50]", "0.25 [0.25, 0.25]"]
    assert [f"](./{each.name})" in out for each in (tmp_path / "out").glob("*.svg")] == [True] * drawable()
    code, _, err = run("reproduce", "realm-figure-4", "-o", tmp_path / "out")
    assert (code, "name its folder with --model" in err) == (2, True)
    log.write_text(json.dumps(lines[0]), encoding="utf-8")
    for folder, said in ((log.parent, "has no utility"), (tmp_path, "has no log.jsonl")):
        code, _, err = run("reproduce", "realm-figure-4", "--model", folder, "-o", tmp_path / "out")
        assert (code, said in err) == (2, True)


def test_weights_are_told_by_their_digest(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "quoth.json").write_text('{"kind": "npm", "reader": "quoth-reader-small"}', encoding="utf-8")
    own, _, reader = fingerprint(str(tmp_path)).partition(", with ")
    assert own == sha256(b"weights").hexdigest()[:8]
    assert reader == f"quoth-reader-small {fingerprint('quoth-reader-small')}"
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "adapter_model.safetensors").write_bytes(b"of a tower")
    assert fingerprint(str(tmp_path)).partition(",")[0] == sha256(b"weightsof a tower").hexdigest()[:8]
    assert fingerprint("somebody/model") == "not recorded"


def test_figure_5_by_its_command(tmp_path: Path, run: Run) -> None:
    npm = tiny_npm(tmp_path / "npm")
    pair = {"sentence1": "The raven sat.", "start1": 4, "end1": 9, "sentence2": "A raven.", "start2": 2, "end2": 7}
    (tmp_path / "mcl_wic").mkdir()
    lines = [
        json.dumps({"id": f"dev.{n}", "lemma": "raven", "pos": "NOUN", "label": "TF"[n % 2], **pair}) for n in range(6)
    ]
    (tmp_path / "mcl_wic" / "dev.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = ("--data", tmp_path, "-o", tmp_path / "out", "--model", npm, "--base", npm, "--device", "cpu")
    code, page, err = run("reproduce", "npm-figure-5", *given)
    assert code == 0, err
    assert page == (tmp_path / "out" / "npm-figure-5.md").read_text(encoding="utf-8")
    assert page.startswith("# NPM, figure 5\n")
    assert f"| {npm} |" in page
    assert run("reproduce", "npm-figure-5", *given)[:2] == (0, page)


def test_the_list_and_mistakes_on_the_command_line(tmp_path: Path, run: Run) -> None:
    code, out, _ = run("reproduce", "--list", "--data", tmp_path)
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines() if line[:1] != " "] == [item.id for item in items()]
    assert f"missing: {tmp_path}/mcl_wic/dev.jsonl" in out
    for words, told in (
        ((), "no table; name one"),
        (("npm-table-8",), "nowhere to write"),
        (("npm-table-8", "-o", tmp_path / "o", "--corpus", "news=x"), "no such corpus or documents"),
        (("npm-table-8", "-o", tmp_path / "o"), "name it with --data"),
    ):
        code, _, err = run("reproduce", *words)
        assert code == 2
        assert told in err


def test_a_command_that_is_interrupted_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that is stopped is not done, so that its model must not be measured."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    docs = tmp_path / "docs.jsonl"
    docs.write_text(json.dumps({"text": "Some words."}), encoding="utf-8")
    monkeypatch.setattr("quoth.cli.train.run_recipe", stopped)
    with pytest.raises(KeyboardInterrupt):
        quoth(["train", "npm-mini-cpu", str(docs), "-o", str(tmp_path / "model")])
