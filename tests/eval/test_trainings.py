"""Tables whose models are trained first: what is trained on what, in which order, and what a second call does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quoth import Corpus, Document
from quoth.errors import InputError
from quoth.training.recipes import RECIPES
from quoth.training.settings import with_overrides
from quoth_eval.harness import evaluate
from quoth_eval.papers import Item, Part, Training, items
from quoth_eval.reproduce import Call, reproduce
from quoth_eval.task import Answer, Example, Task
from quoth_eval.trainings import num_pages, pages, settings, split_pages, trained

RECALL = ("Zero-shot Retrieval Recall@5",)
ITEM = Item(
    paper="REALM",
    source="Guu et al. 2020, REALM, arXiv:2002.08909",
    about="All.",
    name="table 2",
    caption="Ablations.",
    shows="models",
    differs="Much.",
    pages=(3, 2),
    trainings=(
        Training(name="first", recipe="realm-ict", steps=50),
        Training(name="second", recipe="realm-pretrain", steps=40, start="first", set=("masking=spans",)),
        Training(name="unasked", recipe="realm-pretrain", steps=40, start="first"),
    ),
    parts=(
        Part(name="p", tasks=("utility",), systems=("{models}/second",), also=("wiki",), heldout=True, columns=RECALL),
    ),
)


@pytest.mark.parametrize("item", [each for each in items() if each.trainings and each.parts], ids=lambda item: item.id)
def test_recipes_take_what_the_records_say(item: Item) -> None:
    known = [each.name for each in item.trainings]
    for number, each in enumerate(item.trainings):
        assert not each.start or each.start in known[:number]
        told = dict(setting.split("=") for setting in settings(each, 7, 3))
        config = with_overrides(RECIPES[each.recipe].config, told)
        assert (config.steps, config.seed) == (7, 3)
    asked = [system for part in item.parts for system in part.systems if system.startswith("{models}/")]
    assert {each.removeprefix("{models}/") for each in asked} <= {*known, *item.models}
    assert (
        all(part.heldout and part.also == ("wiki",) for part in item.parts if set(part.systems) & set(asked))
        or item.models
    )


def test_tables_that_share_a_folder_share_models_of_one_name() -> None:
    named: dict[str, Training] = {}
    for each in (training for item in items() for training in item.trainings):
        assert named.setdefault(each.name, each) == each


def test_only_what_is_asked_is_trained_and_what_it_starts_from() -> None:
    assert [each.name for each in trained(ITEM, ITEM.parts, "{models}")] == ["first", "second"]


def test_a_look_has_ten_pages_per_example() -> None:
    item = replace(ITEM, pages=(250, 30))
    assert [num_pages(item, limit) for limit in (None, 0, 5, 2)] == [(250, 30), (250, 30), (50, 30), (20, 20)]


def test_pages_are_split_once(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document(f"d{n}", f"T{n}", f"Text {n}.") for n in range(20)])

    def ids(folder: str) -> list[set[str]]:
        files = [tmp_path / folder / f"{name}.jsonl" for name in ("train", "heldout")]
        return [{json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()} for file in files]

    split_pages(corpus.path, tmp_path / "a", 6, 4, 0)
    learned, held_out = ids("a")
    assert (len(learned), len(held_out), learned & held_out) == (6, 4, set())
    split_pages(corpus.path, tmp_path / "all", 60, 40, 0)  # more than there are: in proportion
    learned, held_out = ids("all")
    assert (len(learned), len(held_out), len(learned | held_out)) == (12, 8, 20)
    split_pages(corpus.path, tmp_path / "a", 1, 1, 0)  # it is there
    assert [len(each) for each in ids("a")] == [6, 4]


class Doing:
    """Instead of `quoth`: makes corpora and models, and is killed by the training named `dies`."""

    def __init__(self, dies: str = "") -> None:
        self.done, self.dies = list[list[str]](), dies

    def __call__(self, words: Sequence[str]) -> str:
        self.done.append(list(words))
        output = Path(words[words.index("--run" if words[0] == "eval" else "-o") + 1])
        if words[0] == "index":
            Corpus.create(output).add([Document(f"d{n}", "T", f"Text {n}.") for n in range(10)])
        if words[0] == "train":
            output.mkdir(parents=True, exist_ok=True)
            if output.stem == self.dies:
                raise KeyboardInterrupt
            (output / "quoth.json").write_text('{"kind": "realm"}', encoding="utf-8")
        if words[0] == "eval":
            task: Task[Any] = Task(
                name=words[1], examples=[Example("x", "q", ("x",), None)], judge=lambda e, a: a.scores
            )
            evaluate(task, {"m": lambda asked: [Answer(scores={"recall@5": 1.0}) for _ in asked]}, output / words[1])
        return "what was printed\n"

    @property
    def commands(self) -> list[str]:
        return [" ".join(words[:2]) for words in self.done]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    (tmp_path / "wiki.txt").write_text("Text.", encoding="utf-8")
    return Call(
        output=tmp_path / "out", corpora={"wiki": tmp_path / "wiki.txt"}, setup=("--device", "cpu", "--base", "b")
    )


def test_models_are_trained_in_order_asked_and_kept(call: Call) -> None:
    killed = Doing(dies="second")
    with pytest.raises(KeyboardInterrupt):
        reproduce(ITEM, call, killed)
    assert killed.commands[1:] == ["train realm-ict", "train realm-pretrain"]
    out = call.output
    first, second = killed.done[1:]
    assert first == [
        *["train", "realm-ict", f"{out}/pages/realm/train.jsonl", "-o", f"{out}/models/first.part"],
        *["--set", "steps=50", "--set", "checkpoint_every=20", "--set", "seed=0", "--base", "b"],
    ]
    assert second[second.index("--model") + 1] == f"{out}/models/first"
    assert second[second.index("-o") + 1] == f"{out}/models/second.part"

    again = Doing()
    page = reproduce(ITEM, call, again).read_text(encoding="utf-8")
    assert again.commands == ["train realm-pretrain", "eval utility"]  # the first is done, the second resumes
    assert again.done[0] == second
    assert again.done[1][:3] == ["eval", "utility", f"{out}/pages/realm/heldout.jsonl"]
    assert again.done[1][again.done[1].index("--system") + 1] == f"{out}/models/second"
    ours = page.index("| utility | examples | recall@5 |")  # all measures, then the one that the paper has beside it
    assert (
        ours
        < page.index("| m | here, 1 example | 100.0")
        < page.index("| 30x stale MIPS | Guu et al. 2020, table 2 | 15.1 |")
    )
    assert "| training of second | realm-pretrain masking=spans steps=40 checkpoint_every=20 seed=0 |" in page
    last = Doing()
    reproduce(ITEM, call, last)
    assert last.commands == ["eval utility"]


def test_other_settings_are_refused_before_anything_is_trained(call: Call) -> None:
    with pytest.raises(KeyboardInterrupt):
        reproduce(ITEM, call, Doing(dies="first"))
    other, look = Doing(), replace(call, limit=7)
    with pytest.raises(InputError, match=r"--limit of realm-table-2 was None and is 7 now; name a new folder"):
        reproduce(ITEM, look, other)
    with pytest.raises(InputError, match=r"training of first was realm-ict steps=50 .* and is realm-ict steps=7 "):
        reproduce(replace(ITEM, name="table 8"), look, other)  # which has the same models
    with pytest.raises(InputError, match=r"pages of wiki for REALM was 3 to learn from, 2 held out, .* and is 4 to"):
        reproduce(replace(ITEM, pages=(4, 2)), call, other)
    assert other.commands == []
    reproduce(replace(ITEM, paper="NPM", pages=(4, 2)), call, other)  # whose pages are its own
    assert other.done[0][2] == str(pages(replace(ITEM, paper="NPM"), call.output) / "train.jsonl")


def test_models_of_ones_own_are_asked_and_nothing_is_trained(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "quoth.json").write_text('{"kind": "realm"}', encoding="utf-8")
    doing = Doing()
    page = reproduce(ITEM, Call(output=call.output, corpora=call.corpora, models=(str(tmp_path / "mine"),)), doing)
    assert doing.commands == [f"index {call.corpora['wiki']}", "eval utility"]
    assert [doing.done[1][at + 1] for at, word in enumerate(doing.done[1]) if word == "--system"] == [
        f"{tmp_path}/mine"
    ]
    assert "training of" not in page.read_text(encoding="utf-8")
