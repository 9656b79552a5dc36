"""REALM's recipes and their command: from files to a model that answers; and what a saved model keeps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import quoth
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import CorpusNotFoundError, InputError, LockedError
from quoth.hub import ModelSource, locate
from quoth.realm.config import REALMConfig
from quoth.realm.network import readings
from quoth.realm.passages import PassageEncoder
from quoth.realm.trained import PARTS, TrainedREALM
from quoth.storage import WriterLock
from quoth.training.recipes import RECIPES, run_recipe
from quoth.training.settings import LoopConfig
from realm_runs import (
    CITIES,
    CONFIG,
    DOCUMENTS,
    encoded,
    make_corpus,
    make_model,
    passage_vector,
    query_vector,
    trained,
)
from tiny import tiny_bert

SMALL = {"steps": "2", "batch_size": "2", "lora_rank": "0", "bf16": "false", "log_every": "1"}
PRETRAIN = {**SMALL, "masking": "spans", "refresh_every": "1", "asynchronous": "false"}


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "m", rank=4)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("docs") / "docs.jsonl"
    texts = [f"{each.text} It is well known." for each in DOCUMENTS]
    records = [{"id": each.id, "title": each.title, "text": text} for each, text in zip(DOCUMENTS, texts, strict=True)]
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("questions") / "questions.tsv"
    lines = [f"What is the capital of {name}?\t['{city}']" for name, city in CITIES.items()]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def answers(model: TrainedREALM, question: str) -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    """A query's vector, a passage's, and the scores of its spans."""
    ids = model.tokenizer.hf(question, add_special_tokens=False)["input_ids"]
    (reading,) = readings(model.tokenizer, model.config, ids, [DOCUMENTS[0].text], [DOCUMENTS[0].title])
    with torch.no_grad():
        q, z = query_vector(model, ids), passage_vector(model, DOCUMENTS[0].text, DOCUMENTS[0].title)
        states_TH = encoded(model, model.reader.states, reading.pair.ids_T.tolist(), reading.pair.second)
        return q.numpy(), z.numpy(), model.reader.span(states_TH[None])[0]


@pytest.mark.parametrize("own_queries", [False, True])
@pytest.mark.parametrize("rank", [0, 4])
def test_a_saved_model_is_what_was_trained(
    folder: Path, adapted: Path, tmp_path: Path, rank: int, own_queries: bool
) -> None:
    model = trained(adapted if rank else folder, rank=rank, own_queries=own_queries, scatter=True)
    assert len(list(model._parts())) == 2 + own_queries
    model.save(tmp_path)
    loaded = quoth.REALM.from_pretrained(tmp_path)
    assert loaded.config.separate_towers == own_queries
    assert bool(loaded.config.base) == bool(rank)
    question, close = "What is the capital of Greece?", 2e-2 if rank else 1e-4
    q, z, scores_TW = answers(model, question)
    assert loaded.encoder.queries([question])[0] == pytest.approx(q, abs=close)
    passage = loaded.encoder.passages([DOCUMENTS[0].text], [DOCUMENTS[0].title])[0]
    assert passage.vectors_TD[0] == pytest.approx(z, abs=close)
    again = trained(tmp_path, rank=rank)
    torch.testing.assert_close(answers(again, question)[2], scores_TW, atol=close, rtol=close)
    ids = model.tokenizer.hf(question, add_special_tokens=False)["input_ids"]
    seen = readings(model.tokenizer, model.config, ids, [DOCUMENTS[0].text], [DOCUMENTS[0].title])
    (spans,) = loaded.reader.spans(seen)
    assert len(spans.odds_C) > 4
    flat = scores_TW[torch.isfinite(scores_TW)].numpy()
    assert all(np.abs(flat - score).min() < 10 * close for score in spans.odds_C)


@pytest.mark.parametrize("rank", [0, 4])
def test_what_is_not_trained_stays_as_it_was(adapted: Path, folder: Path, tmp_path: Path, rank: int) -> None:
    for number, source in enumerate((adapted, folder)):
        if rank and source == folder:
            continue
        model = trained(source, ("queries", "reader"), rank=rank, own_queries=True, scatter=True)
        model.save(tmp_path / str(number))
        before, after = (
            PassageEncoder.load(locate(str(each), REALMConfig)) for each in (source, tmp_path / str(number))
        )
        assert before.fingerprint == after.fingerprint
        for file in (source / "passages").iterdir():
            assert (tmp_path / str(number) / "passages" / file.name).read_bytes() == file.read_bytes()
        assert np.abs(before.queries(["Paris"]) - after.queries(["Paris"])).max() > 0.01


def test_a_base_that_is_not_trained_needs_no_files(tmp_path: Path) -> None:
    base = str(tiny_bert(tmp_path / "base"))
    config = type(CONFIG).from_dict({**CONFIG.to_dict(), "base": base, "dimensions": 0, "layer_norm_eps": None})
    source = ModelSource("tiny", config, None, base)
    before = PassageEncoder.load(source)
    for rank in (0, 4):
        output = tmp_path / str(rank)
        trained(source, ("queries", "reader"), rank=rank, own_queries=True, scatter=True).save(output)
        assert PassageEncoder.load(locate(str(output), REALMConfig)).fingerprint == before.fingerprint
        assert not list((output / "passages").iterdir())
        quoth.REALM.from_pretrained(output)


def test_adapters_to_whole_encoders_are_refused(folder: Path) -> None:
    for parts in (PARTS, ("reader",), ("passages", "queries")):
        with pytest.raises(
            InputError,
            match=r"stores a full \(not LoRA\) '\w+' part without .*, so LoRA cannot be used; set lora_rank=0",
        ):
            trained(folder, parts, rank=4)


def test_towers_that_are_one_learn_together(folder: Path) -> None:
    one = trained(folder, ("queries",))
    assert one.queries is one.passages
    assert {name.partition(".")[0] for name in one.parameters} == {"passages"}
    apart = trained(folder, ("queries",), own_queries=True)
    assert {name.partition(".")[0] for name in apart.parameters} == {"queries"}
    assert not any(
        module.training for part in (apart.passages, apart.queries, apart.reader) for module in part.modules()
    )


def test_only_what_is_trained_drops(folder: Path) -> None:
    source, config = locate(str(folder), REALMConfig), LoopConfig(lora_rank=0, dropout=0.2)
    model = TrainedREALM(source, config, trained=("queries",), own_queries=True)
    assert all(module.training for module in model.queries.modules())
    assert {module.p for module in model.queries.modules() if isinstance(module, torch.nn.Dropout)} == {0.2}
    assert not any(module.training for part in (model.passages, model.reader) for module in part.modules())


def test_a_run_with_dropout_in_slices_ends_where_an_unbroken_one_does(folder: Path, docs: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "dropout": "0.3", "batch_size": "4"}
    while not run_recipe("realm-ict", [str(docs)], tmp_path / "sliced", settings, model=str(folder), seconds=0):
        torch.manual_seed(99)
    assert run_recipe("realm-ict", [str(docs)], tmp_path / "whole", settings, model=str(folder))
    assert run_recipe("realm-ict", [str(docs)], tmp_path / "0", settings | {"dropout": "0"}, model=str(folder))
    sliced, whole, other = (load_file(tmp_path / name / "heads.safetensors") for name in ("sliced", "whole", "0"))
    assert all(torch.equal(weight, sliced[name]) for name, weight in whole.items())
    assert not all(torch.equal(weight, other[name]) for name, weight in whole.items())


@pytest.mark.parametrize("kind", ["whole", "adapters"])
def test_from_documents_to_answers_by_commands(
    folder: Path,
    adapted: Path,
    docs: Path,
    questions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    model, rank = (folder, "0") if kind == "whole" else (adapted, "4")

    def command(recipe: str, source: Path, output: str, start: Path, settings: dict[str, str]) -> Path:
        options = [each for item in settings.items() for each in ("--set", "=".join(item))]
        given = ["train", recipe, str(source), "-o", str(tmp_path / output), "--model", str(start), *options]
        assert main(given) == 0
        shown = capsys.readouterr()
        assert shown.out == ""
        assert f"the model is in {tmp_path / output}" in shown.err
        log = [json.loads(line) for line in (tmp_path / output / "log.jsonl").read_text().splitlines()]
        assert [each["step"] for each in log] == [1, 2]
        assert all(np.isfinite(each["loss"]) for each in log)
        return tmp_path / output

    rest = {"lora_rank": rank}
    warm = command("realm-ict", docs, "warm", model, {**SMALL, **rest})
    pretrained = command("realm-pretrain", docs, "pretrained", warm, {**PRETRAIN, **rest})
    corpus = make_corpus(tmp_path / "c")
    tuning = {**SMALL, **rest, "corpus": str(corpus.path), "retriever_beam_size": "8", "num_reader_passages": "2"}
    given = ["train", "realm-qa", str(questions), "-o", str(tmp_path / "qa"), "--model", str(pretrained)]
    assert main([*given, "--set", f"corpus={corpus.path}", "--set", f"lora_rank={rank}"]) == 2
    assert f"`quoth embed {corpus.path} --model {pretrained}` makes them" in capsys.readouterr().err
    assert main(["embed", str(corpus.path), "--model", str(pretrained)]) == 0
    capsys.readouterr()
    tuned = command("realm-qa", questions, "qa", pretrained, tuning)
    (found,) = quoth.REALM.from_pretrained(tuned, Corpus.open(corpus.path)).ask(["What is the capital of Greece?"])
    assert found
    assert all(each.evidence for each in found)


def test_a_run_makes_its_corpus_once(folder: Path, docs: Path, tmp_path: Path) -> None:
    output, seen = tmp_path / "run", list[int]()

    def preparing(what: str, done: int, total: int | None) -> None:
        if what == "indexing documents":
            seen.append(done)

    def run(*inputs: str, **overrides: str) -> bool:
        settings = {**PRETRAIN, **overrides}
        return run_recipe("realm-pretrain", inputs, output, settings, model=str(folder), preparing=preparing, seconds=0)

    assert not run(str(docs))
    corpus = Corpus.open(output / "corpus.quoth")
    assert (corpus.num_documents, corpus.splitter) == (16, "words:60")
    assert seen
    seen.clear()
    assert run(str(docs))
    assert not seen
    assert sorted(path.name for path in (output / "towers").iterdir()) == ["000000001"]
    shutil.copy(docs, tmp_path / "docs.jsonl")
    listing = tmp_path / "listing.jsonl"
    listing.write_text('{"title": "Greece"}\n')
    with pytest.raises(InputError, match=r"exclude is .* has a run with"):
        run(str(tmp_path / "docs.jsonl"), exclude=str(listing))
    assert Corpus.open(output / "corpus.quoth").num_documents == 14


def test_what_is_measured_is_not_trained_on_and_nothing_is_left_of_it(
    folder: Path, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lines = docs.read_text().splitlines(keepends=True)
    pages = tmp_path / "pages.jsonl"
    pages.write_text("".join(lines[:2]))
    settings = {**PRETRAIN, "evaluate_on": str(pages), "evaluate_every": "100", "evaluate_blanks": "2"}
    run_recipe("realm-pretrain", [str(docs)], tmp_path / "run", settings, model=str(folder), seconds=0)
    left = {document.id for document in Corpus.open(tmp_path / "run" / "corpus.quoth").documents()}
    assert left == {json.loads(line)["id"] for line in lines[2:]}
    assert not list(tmp_path.glob("quoth-probe-*"))


def test_a_tagger_keeps_its_own_base(docs: Path, tmp_path: Path) -> None:
    base = tiny_bert(tmp_path / "base", [each.text for each in DOCUMENTS])
    settings = PRETRAIN | {"masking": "salient", "steps": "1", "mlm_warmup_steps": "1"}
    assert run_recipe("realm-pretrain", [str(docs)], tmp_path / "run", settings, model="quoth-realm-base", base=base)


def test_documents_changed_before_the_first_checkpoint_are_embedded_again(
    folder: Path, docs: Path, tmp_path: Path
) -> None:
    file = tmp_path / "docs.jsonl"
    shutil.copy(docs, file)

    stop = Mock(side_effect=KeyboardInterrupt)
    for count in (16, 17):
        with pytest.raises(KeyboardInterrupt):
            run_recipe("realm-pretrain", [file], tmp_path / "run", PRETRAIN, model=str(folder), progress=stop)
        assert Corpus.open(tmp_path / "run" / "corpus.quoth").num_documents == count
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f'\n{{"id": "more {count}", "text": "One more."}}')


@pytest.mark.parametrize(("sees", "titles"), [("model", CONFIG.reader_titles), ("titles", True), ("body", False)])
def test_training_decides_what_the_reader_sees_of_a_passage(
    folder: Path, docs: Path, tmp_path: Path, sees: str, titles: bool
) -> None:
    run_recipe("realm-pretrain", [str(docs)], tmp_path / sees, {**PRETRAIN, "reader_sees": sees}, model=str(folder))
    assert json.loads((tmp_path / sees / "quoth.json").read_text())["reader_titles"] is titles


def test_a_corpus_may_be_given(folder: Path, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "given")
    run_recipe("realm-pretrain", [str(corpus.path)], tmp_path / "run", PRETRAIN, model=str(folder))
    assert not (tmp_path / "run" / "corpus.quoth").exists()
    corpus.verify()
    with pytest.raises(
        InputError, match=r"`exclude` leaves documents out of files, not out of a corpus; delete them in .*given"
    ):
        run_recipe(
            "realm-ict", [str(corpus.path)], tmp_path / "ict", {**SMALL, "exclude": "some.jsonl"}, model=str(folder)
        )


def test_what_is_measured_must_not_be_in_a_corpus_that_is_given(folder: Path, docs: Path, tmp_path: Path) -> None:
    corpus, pages = make_corpus(tmp_path / "given"), tmp_path / "pages.jsonl"
    settings = {**PRETRAIN, "evaluate_on": str(pages), "evaluate_every": "100", "evaluate_blanks": "2"}
    lines = docs.read_text().splitlines(keepends=True)
    pages.write_text("".join(lines[:2]))
    with pytest.raises(InputError, match=r"`evaluate_on` has 2 of the documents in .*given, which would be trained on"):
        run_recipe("realm-pretrain", [str(corpus.path)], tmp_path / "run", settings, model=str(folder), seconds=0)
    corpus.delete(json.loads(line)["id"] for line in lines[:2])
    run_recipe("realm-pretrain", [str(corpus.path)], tmp_path / "run", settings, model=str(folder), seconds=0)


def test_texts_may_be_others_than_those_searched(
    folder: Path, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    searched, output = make_corpus(tmp_path / "wiki"), tmp_path / "run"
    news = tmp_path / "news.jsonl"
    news.write_text("\n".join(json.dumps({"id": f"n{i}", "text": each.text}) for i, each in enumerate(DOCUMENTS[:10])))
    kept = {**PRETRAIN, "checkpoint_every": "1"}
    settings = [each for item in kept.items() for each in ("--set", "=".join(item))]
    command = ["train", "realm-pretrain", str(news), "-o", str(output), "--model", str(folder), *settings]
    assert main([*command, "--corpus", str(searched.path)]) == 0
    assert Corpus.open(output / "corpus.quoth").num_passages == 10
    assert not (output / "corpus.quoth" / "keys").exists()
    (keys,) = (searched.path / "keys").iterdir()
    assert list(keys.iterdir())
    searched.verify()
    log = [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]
    assert [each["step"] for each in log] == [1, 2]
    capsys.readouterr()
    assert main(command) == 2
    assert "searched is '', but" in capsys.readouterr().err
    own = run_recipe(
        "realm-pretrain",
        [str(searched.path)],
        tmp_path / "own",
        kept,
        model=str(folder),
        corpus=tmp_path / "." / "wiki",
    )
    assert own
    state = json.loads((tmp_path / "own" / "checkpoint-2" / "state.json").read_text())
    assert state["data"] == {"passages": 16, "searched": ""}


def test_a_corpus_to_search_is_for_pre_training(
    folder: Path, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for recipe in ("realm-ict", "realm-qa"):
        other = f"not for {recipe}; realm-qa has the setting corpus=DIR"
        with pytest.raises(InputError, match=rf"corpus \(--corpus\) is for realm-pretrain and npm-queries, {other}"):
            run_recipe(recipe, [str(docs)], tmp_path / "o", SMALL, model=str(folder), corpus=tmp_path)
    for recipe in ("adapt", "realm-ict", "reader"):
        assert main(["train", recipe, str(docs), "-o", str(tmp_path / "o"), "--corpus", str(tmp_path)]) == 2
        assert f"(--corpus) is for realm-pretrain and npm-queries, not for {recipe}" in capsys.readouterr().err
    with pytest.raises(CorpusNotFoundError):
        run_recipe("realm-pretrain", [str(docs)], tmp_path / "o", PRETRAIN, model=str(folder), corpus=tmp_path / "no")
    assert not (tmp_path / "o" / "corpus.quoth").exists()


def test_mistakes(folder: Path, docs: Path, questions: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown recipe 'realm'; it must be one of .*, realm-ict, realm-pretrain"):
        run_recipe("realm", [str(docs)], tmp_path, {})
    with pytest.raises(InputError, match=r"unknown setting 'beams'; .* steps, batch_size, .*num_reader_passages"):
        run_recipe("realm-qa", [str(questions)], tmp_path, {"beams": "3"})
    with pytest.raises(InputError, match="no corpus to answer from; name one with --set corpus=DIR"):
        run_recipe("realm-qa", [str(questions)], tmp_path / "qa", {}, model=str(folder))
    wrong = {"masking": "names", "marginal": "both", "exclude_self": "none"}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=f"^{name} is '{value}'; it must be one of "):
            run_recipe("realm-pretrain", [str(docs)], tmp_path, {name: value})
    for name in ("refresh_every", "retriever_beam_size", "num_reader_passages", "mlm_warmup_steps"):
        recipe = "realm-qa" if name in ("retriever_beam_size", "num_reader_passages") else "realm-pretrain"
        with pytest.raises(InputError, match=f"{name} is -1; it must be [01] or more"):
            run_recipe(recipe, [str(docs)], tmp_path, {name: "-1"})
    with WriterLock(tmp_path / "writer.lock"), pytest.raises(LockedError, match="is writing; wait for it to end"):
        run_recipe("realm-ict", [str(docs)], tmp_path, SMALL, model=str(folder))


def test_the_command_names_what_it_knows(
    folder: Path, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = ["-o", str(tmp_path / "out"), "--model", str(folder)]
    assert main(["train", "realm", str(docs), *output]) == 2
    shown = capsys.readouterr().err
    assert "unknown recipe 'realm'; it must be one of npm-mini-cpu" in shown
    assert all(name in shown for name in RECIPES)
    assert main(["train", "realm-ict", str(docs), *output, "--set", "mlm_warmup_steps=3"]) == 2
    assert "unknown setting 'mlm_warmup_steps'; it must be one of steps" in capsys.readouterr().err
    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*RECIPES, "--set corpus=wiki.quoth"))


def test_fine_tuning_with_a_refreshed_index_trains_both_towers(folder: Path, questions: Path, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c")
    quoth.REALM.from_pretrained(folder, corpus).embed()
    settings = {**SMALL, "steps": "3", "corpus": str(corpus.path), "retriever_beam_size": "8"}
    settings |= {"num_reader_passages": "2", "refresh_every": "1", "asynchronous": "false"}
    assert run_recipe("realm-qa", [str(questions)], tmp_path / "qa", settings, model=str(folder))
    before, after = (PassageEncoder.load(locate(str(each), REALMConfig)) for each in (folder, tmp_path / "qa"))
    assert before.fingerprint != after.fingerprint
    log = [json.loads(line) for line in (tmp_path / "qa" / "log.jsonl").read_text().splitlines()]
    assert [each["staleness"] for each in log] == [0, 0, 0]
    assert quoth.REALM.from_pretrained(folder, corpus).search("Athens", k=1), "the first model's vectors are kept"
