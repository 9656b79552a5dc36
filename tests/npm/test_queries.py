"""Tuned queries: the loss against a brute force in float64, vectors that stay, training, what is saved and refused."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_npm import Brute, counted

from quoth import NPM
from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.datasets.questions import QAExample
from quoth.encoders.tokens import QUERIES
from quoth.errors import EncoderMismatchError, InputError, ModelNotFoundError
from quoth.hub import locate
from quoth.index.search import search_together
from quoth.npm.config import NPMConfig, QueryConfig
from quoth.npm.queries import QueryTask
from quoth.records import Document
from quoth.training.adapter import merged_weights
from quoth.training.recipes import run_recipe
from tiny import tiny_bert, tiny_npm, tiny_roberta

DOCUMENTS = [
    Document("france", "France", "Paris is the capital of France. The river flows through Paris."),
    Document("germany", "Germany", "Berlin is the capital of Germany. The tower of Berlin was built in 1969."),
    Document("raven", "", "The raven sat upon the bust. What is the capital? It was terrible."),
    Document("gone", "", "Paris and Berlin, the capital of Germany."),
]
EXAMPLES = [("The capital of France is [MASK].", "Paris"), ("The capital of Germany is [MASK].", "Berlin")]
WEIGHTS = Path(QUERIES) / "adapter_model.safetensors"
SETTINGS = {"steps": "40", "learning_rate": "0.02", "warmup_steps": "0", "lora_rank": "4"}


def made(folder: Path, model: Path) -> Corpus:
    """A corpus of two segments and a deletion, embedded by the model."""
    corpus = Corpus.create(folder, splitter="words:12")
    corpus.add(DOCUMENTS[:2])
    corpus.add(DOCUMENTS[2:])
    corpus.delete(["gone"])
    NPM.from_pretrained(model, corpus).embed("fp32")
    return corpus


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_npm(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def corpus(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return made(tmp_path_factory.mktemp("corpus") / "tiny.quoth", model)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("examples") / "examples.jsonl"
    lines = (json.dumps({"question": text, "answer": [answer]}) for text, answer in EXAMPLES)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def tuned(model: Path, corpus: Corpus, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("tuned") / "mine"
    assert run_recipe("npm-queries", examples, output, SETTINGS, model=str(model), corpus=corpus.path)
    return output


def task_of(model: Path, corpus: Corpus, examples: list[tuple[str, str]], **settings: Any) -> QueryTask:
    """The task of these examples, with other weights than those that it starts from."""
    asked = [QAExample("", text, (answer,)) for text, answer in examples]
    config = QueryConfig(lora_rank=4, **settings)
    task = QueryTask(NPM.from_pretrained(model, corpus), locate(str(model), NPMConfig), asked, config)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in task.parameters.values():
            weight.normal_(std=0.2, generator=random)
    return task


def first(model: Path, corpus: Corpus) -> list[str]:
    found = NPM.from_pretrained(model, corpus).fill([text for text, _ in EXAMPLES], passages=None, top_k=1)
    return [each[0].text for each in found]


def losses(folder: Path) -> list[float]:
    return [record["loss"] for record in map(json.loads, (folder / "log.jsonl").read_text().splitlines())]


@pytest.mark.parametrize("build", [tiny_bert, tiny_roberta])
@pytest.mark.parametrize(("answer", "places"), [("Paris", 2), ("raven", 1)])
@pytest.mark.parametrize("most", [2, 100_000])
def test_the_loss_equals_the_brute_force(build: Any, most: int, answer: str, places: int, tmp_path: Path) -> None:
    folder = build(tmp_path / "model")
    corpus = made(tmp_path / "corpus.quoth", folder)
    text = EXAMPLES[0][0]
    task = task_of(folder, corpus, [(text, answer)], k=100_000, phrases=most)
    q_12D = task.queries([0])
    tables = NPM.from_pretrained(folder, corpus).tables()
    [hits] = search_together(tables, [()], q_12D.detach().numpy().swapaxes(0, 1), 100_000)
    found = task.loss(0, q_12D[0], hits)

    brute, asked = Brute(folder, text), Brute(folder, text)
    asked.model.load_state_dict(merged_weights(task.model.base_model.model))
    brute.q, brute.r = asked.blank(text)
    right, wrong = [], []
    for tokens in brute.passages([corpus]):
        for i in range(len(tokens)):
            for j in range(i, min(len(tokens), i + 30)):
                if not (tokens[i][4] and tokens[j][5] and counted(tokens[i : j + 1]) <= 10):
                    continue
                _, document, start, _ = tokens[i][6]
                said = corpus.document(document).text[start : tokens[j][6][3]]
                (right if said == answer else wrong).append(tokens[i][0] + tokens[j][1])
    assert len(right) == places
    kept = sorted(right + wrong, reverse=True)[:most]
    rest = sum(math.exp(score) for score in wrong if score in kept)
    mass = sum(math.exp(score) for score in sorted(right, reverse=True)[:most])
    assert found.item() == pytest.approx(-math.log(mass / (mass + rest)), rel=1e-4)


def test_training_lowers_the_loss_and_the_answers_come_first(tuned: Path, model: Path, corpus: Corpus) -> None:
    told = losses(tuned)
    assert told[-1] < 0.2 < told[0]
    wanted = [answer for _, answer in EXAMPLES]
    assert first(model, corpus) != wanted
    assert first(tuned, corpus) == wanted


def test_examples_without_an_answer_in_the_corpus_are_left_out(model: Path, corpus: Corpus) -> None:
    task = task_of(model, corpus, [("The [MASK] sat.", "unheard"), *EXAMPLES])
    assert [(each.text, each.answers[0]) for each in task.examples] == EXAMPLES


def test_the_stored_vectors_stay_as_they_are(model: Path, tmp_path: Path, examples: Path) -> None:
    corpus = made(tmp_path / "corpus.quoth", model)

    def stored() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in corpus.path.rglob("*") if file.is_file()}

    before = stored()
    run_recipe("npm-queries", examples, tmp_path / "mine", SETTINGS, model=str(model), corpus=corpus.path)
    tuned = NPM.from_pretrained(tmp_path / "mine", corpus)
    passage = corpus.passage(0)
    [old], [new] = NPM.from_pretrained(model).token_vectors([passage]), tuned.token_vectors([passage])
    assert new.vectors_TD.tobytes() == old.vectors_TD.tobytes()
    assert tuned.embed("fp32") == []  # nothing to do
    tuned.fill(EXAMPLES[0][0], passages=None)
    assert stored() == before


def test_a_saved_model_asks_as_the_trained_one(model: Path, corpus: Corpus, tmp_path: Path) -> None:
    task = task_of(model, corpus, EXAMPLES)
    task.save_model(tmp_path / "saved")
    loaded, parent = NPM.from_pretrained(tmp_path / "saved", corpus), NPM.from_pretrained(model, corpus)
    for number, (text, _) in enumerate(EXAMPLES):
        asked = task.queries([number])[0].detach().numpy()
        np.testing.assert_allclose(np.stack(loaded.query_vectors(text)), asked, atol=2e-3)  # stored in fp16
        assert np.abs(np.stack(parent.query_vectors(text)) - asked).max() > 0.1
    assert loaded.fingerprint == parent.fingerprint


def test_tuning_again_starts_from_the_tuned_queries(
    tuned: Path, corpus: Corpus, examples: Path, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "steps": "1", "learning_rate": "0"}
    run_recipe("npm-queries", examples, tmp_path / "again", settings, model=str(tuned), corpus=corpus.path)
    old, new = (NPM.from_pretrained(each).query_vectors(EXAMPLES[0][0]) for each in (tuned, tmp_path / "again"))
    np.testing.assert_allclose(np.stack(new), np.stack(old), atol=1e-5)


def test_a_stopped_run_resumes_to_the_same_weights(
    tuned: Path, model: Path, corpus: Corpus, examples: Path, tmp_path: Path
) -> None:
    def run(**more: Any) -> bool:
        given = {"model": str(model), "corpus": corpus.path, **more}
        return run_recipe("npm-queries", examples, tmp_path / "mine", SETTINGS, **given)

    assert not run(seconds=0.0)
    assert run()
    assert (tmp_path / "mine" / WEIGHTS).read_bytes() == (tuned / WEIGHTS).read_bytes()


def test_a_corpus_with_other_vectors_is_refused(tuned: Path, examples: Path, tmp_path: Path) -> None:
    other = tiny_npm(tmp_path / "other", ["Other words make other tokens and other weights, Paris and Berlin."])
    corpus = made(tmp_path / "corpus.quoth", other)
    with pytest.raises(EncoderMismatchError, match=r"has keys of .*other .*, not of .*mine"):
        NPM.from_pretrained(tuned, corpus).fill(EXAMPLES[0][0], passages=None)
    with pytest.raises(EncoderMismatchError, match=r"has keys of .*other"):
        run_recipe("npm-queries", examples, tmp_path / "mine", SETTINGS, model=str(tuned), corpus=corpus.path)
    assert not (tmp_path / "mine").exists()


def test_what_cannot_be_learned_from_is_refused(
    model: Path, corpus: Corpus, examples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(text: str, answer: str, *more: str, given: Path = corpus.path) -> str:
        file = tmp_path / "examples.jsonl"
        file.write_text(json.dumps({"question": text, "answer": answer}))
        command = ["train", "npm-queries", str(file), "-o", str(tmp_path / "mine"), "--model", str(model), *more]
        assert main(command if "--corpus" in more else [*command, "--corpus", str(given)]) == 2
        assert not (tmp_path / "mine").exists()
        return " ".join(capsys.readouterr().err.split())

    assert "no [MASK] in 'Where is Paris?'" in refused("Where is Paris?", "France")
    assert "no answer to any of the 1 examples occurs in" in refused("The [MASK] sat.", "unheard")
    assert "lora_rank is 0; it must be" in refused("The [MASK] sat.", "raven", "--set", "lora_rank=0")
    bare = Corpus.create(tmp_path / "bare.quoth")
    bare.add(DOCUMENTS)
    assert "have no vectors of" in refused("The [MASK] sat.", "raven", given=bare.path)
    with pytest.raises(InputError, match=r"no corpus to learn from; .* --corpus DIR"):
        run_recipe("npm-queries", examples, tmp_path / "mine", model=str(model))


def test_a_damaged_adapter_is_named(tuned: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(tuned, tmp_path / "mine")
    (mine / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(ModelNotFoundError, match=r"queries/adapter_model.safetensors is damaged"):
        NPM.from_pretrained(mine)


def test_a_model_of_single_tokens_is_refused(corpus: Corpus, examples: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'quoth-mini-single' answers with one token"):
        run_recipe("npm-queries", examples, tmp_path / "mine", model="quoth-mini-single", corpus=corpus.path)
