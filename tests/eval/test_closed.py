"""Closed sets: texts, templates and verbalizers as released; the three scorings against plain loops."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import said, written

from quoth import NPM, Corpus, Document
from quoth.errors import InputError
from quoth.npm.config import NPMConfig
from quoth_eval.harness import evaluate
from quoth_eval.tasks.closed import ClosedOptions, LabelScorer, closed_task, labels, labels_of_nearest
from quoth_eval.tasks.closed_files import (
    FORMATS,
    MASK,
    LabelledText,
    detokenise,
    read_closed_set,
    read_labelled,
    read_verbalizers,
)
from tiny import TEXT, tiny_npm

SETS = {
    "agn/test.csv": 'Class Index,Title,Description\n4,"A, B",Chips\\are new\n2,Goal,Two nil\n',
    "agn/verbalizers.txt": "vote, law, state\ngame, ball\ntrade, shop, buy\nchip, web\n",
    "sst2/test.tsv": "__label__3\tmiddling\n__label__5\tIt 's great\u2028!\n__label__2\tI do n't care .\n",
    "sst2/verbalizers.txt": "bad, awful, poor\ngood, fine\n",
    "mr/test.jsonl": json.dumps({"sentence": '"a ""big"" one , "', "label": "1"}) + "\n",
    "subj/test.jsonl": '{"sentence": "he leaves .", "label": 1}\n',
    "rt/test.jsonl": '{"input": "dull ( very ) .", "output": "negative"}\n',
    "rte/val.jsonl": '{"premise": "It rains!?", "hypothesis": "The street is wet.", "label": "not_entailment"}\n',
    "amazon/test.csv": '2,Fine,"Works, and well"\n1,No!,Broke\n',
    "yahoo/test.jsonl": '{"title": "Why?", "content": "c", "label": "Health"}\n',
    "yahoo/verbalizers.json": json.dumps({name.title(): ["word"] for name in FORMATS["yahoo"].labels}),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "sets", SETS)


def test_texts_and_labels_as_the_paper_asks_them(data: Path) -> None:
    found = {
        name: [(each.text, each.label) for each in read_closed_set(data, name).texts]
        for name in FORMATS
        if name != "cr"
    }
    assert found == {
        "agn": [
            ("A, B \n Chips\\are new The text topic is about [MASK].", "4"),
            ("Goal \n Two nil The text topic is about [MASK].", "2"),
        ],
        "yahoo": [("title: Why? content: c The text topic is about [MASK].", "health")],
        "subj": [("he leaves. This is a [MASK].", "1")],
        "sst2": [("It's great! It was [MASK].", "1"), ("I don't care. It was [MASK].", "0")],
        "mr": [('a "big" one, It was [MASK].', "1")],
        "rt": [("dull (very). It was [MASK].", "negative")],
        "amazon": [("Fine. Works, and well It was [MASK].", "2"), ("No! Broke It was [MASK].", "1")],
        "rte": [("It rains, right? [MASK], the street is wet.", "not_entailment")],
    }


def test_verbalizers_are_cut_to_the_shortest_labels_number(data: Path) -> None:
    assert read_closed_set(data, "agn").words == {
        "1": ("vote", "law"),
        "2": ("game", "ball"),
        "3": ("trade", "shop"),
        "4": ("chip", "web"),
    }
    assert read_closed_set(data, "rt").words == {"negative": ("bad", "awful"), "positive": ("good", "fine")}
    assert read_closed_set(data, "subj").words == {"0": ("review",), "1": ("summary",)}
    assert set(read_closed_set(data, "yahoo").words.values()) == {("word",)}
    with pytest.raises(InputError, match="no words for 3"):
        read_verbalizers(data / "sst2" / "verbalizers.txt", ["1", "2", "3"])


@pytest.mark.parametrize(
    ("tokenised", "plain"),
    [
        ("x ( a ) b", "x (a) b"),
        ("( a ) b", "( a) b"),  # as in the released code
        ("it is ( very ) good , is n't it ?", "it is (very) good, isn't it?"),
        ("did n 't , 's", "didn't,'s"),
        ("see www. x . com now", "see www.x.com now"),
        ("wow !. no ?.", "wow ! no ?"),
    ],
)
def test_texts_are_detokenised(tokenised: str, plain: str) -> None:
    assert detokenise(tokenised) == plain


def test_what_is_missing_or_broken_is_one_clear_line(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cr/test\.jsonl: no such file; get it from the data of https"):
        read_closed_set(data, "cr")
    with pytest.raises(InputError, match=r"nowhere: no such folder; name the folder that contains sst2/test\.tsv"):
        read_closed_set(tmp_path / "nowhere", "sst2")
    with pytest.raises(InputError, match="closed set 'sst'; choose from agn"):
        read_closed_set(data, "sst")
    (data / "mr" / "test.jsonl").write_text('{"sentence": "x", "label": "2"}\n')
    with pytest.raises(InputError, match=r"mr/test\.jsonl: row 1 has label '2'; it must be one of 0, 1"):
        read_closed_set(data, "mr")
    (data / "mr" / "test.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(InputError, match=r"mr/test\.jsonl:1: no 'sentence'"):
        read_closed_set(data, "mr")


WORDS = {"water": ("river", "seine", "spree"), "land": ("bust", "chamber", "door")}


@pytest.fixture(params=["tiny", "single"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> NPM:
    corpora = [Corpus.create(tmp_path / f"{name}.quoth") for name in ("one", "two")]
    corpora[0].add([Document(f"a{i}", "", text) for i, text in enumerate(TEXT[:3])])
    corpora[1].add(
        [Document("b", "", " ".join(TEXT[3:])), Document("w", "", "A bust in a chamber by the river Seine.")]
    )
    folder = tiny_npm(tmp_path / "npm")
    if request.param == "single":
        settings = NPMConfig(num_masks=1, similarity_scale=20.0, normalize=True)
        (folder / "quoth.json").write_text(json.dumps(settings.to_dict()), encoding="utf-8")
    made = NPM.from_pretrained(folder, corpora)
    made.embed("fp32", recall=1.0)
    return made


def tokens_of(model: NPM) -> list[tuple[int, int, Any, int]]:
    """Every token: its table, its row, its vector, its group."""
    found = []
    for number, table in enumerate(model.tables()):
        vectors = table.vectors.similarities(np.eye(model.encoder.dimensions, dtype=np.float32)).T
        found += [(number, row, vectors[row], int(table.group_N[row])) for row in range(table.num_keys)]
    return found


@pytest.mark.parametrize("scoring", ["all", "nearest", "released"])
@pytest.mark.parametrize("k", [3, 12])
def test_scorings_are_those_of_plain_loops(model: NPM, scoring: Any, k: int) -> None:
    tau = 2.0
    text = f"The water flows to the {MASK}."
    q_start, q_end = model.encoder.blanks([text])[0]
    tokens = tokens_of(model)
    groups = {
        label: {int(model.encoder.tokenizer.phrase(word).group_T[0]) for word in given}
        for label, given in WORDS.items()
    }
    assert all(len(model.encoder.tokenizer.phrase(word).group_T) == 1 for given in WORDS.values() for word in given)
    start = {(t, row): float(v @ q_start) for t, row, v, _ in tokens}
    end = {(t, row): float(v @ q_end) for t, row, v, _ in tokens}
    near_start, near_end = (sorted(each, key=lambda at: -each[at])[:k] for each in (start, end))
    expected = {}
    for label, wanted in groups.items():
        places = [(t, row) for t, row, _, group in tokens if group in wanted]
        if scoring == "released" and not model.single:
            values = [math.exp(start[at] / tau**2) for at in places if at in near_start]
            values += [math.exp(end[at] / tau**2) for at in places if at in near_end]
        else:
            if scoring != "all":
                near = near_start if model.single else [*near_start, *near_end]
                places = [at for at in places if at in near]
            values = [math.exp((start[at] + (0 if model.single else end[at])) / tau) for at in places]
        expected[label] = sum(values)
    total = sum(expected.values())
    scorer = LabelScorer(model, WORDS, ClosedOptions(scoring=scoring, label_temperature=tau, k=k))
    others = model.encoder.blanks([f"The {MASK} is bust.", f"{MASK}"])
    queries = np.stack([others[0], (q_start, q_end), others[1]], axis=1)
    _, ranked, _ = scorer.rank(queries)
    found = {each.text: each.probability for each in ranked}
    assert found == {label: pytest.approx(value / total if total else 0, rel=1e-3) for label, value in expected.items()}
    if total:
        best = ranked[0]
        assert best.text == max(expected, key=lambda label: expected[label])
        assert all(
            place.context[place.start - place.context_start : place.end - place.context_start].lower()
            in WORDS[best.text]
            for place in best.evidence
        )


def test_a_report_of_a_set(data: Path, model: NPM) -> None:
    closed = read_closed_set(data, "sst2")
    task = closed_task(closed)
    words = {"0": ("bust",), "1": ("river", "seine")}
    report = evaluate(task, {"tiny": labels(model, words, ClosedOptions())})
    rows = report.systems[0].rows
    assert {row.id: row.answers for row in rows} == {"sst2-1": ("1",), "sst2-2": ("0",)}
    assert all(set(said(row)) == {"0", "1"} for row in rows)
    assert [row.scores["accuracy"] for row in rows] == [float(said(row)[0] == row.answers[0]) for row in rows]
    with pytest.raises(InputError, match=r"label '?1'?"):
        LabelScorer(model, {"0": ("bust",), "1": ("zebra",)}, ClosedOptions())
    with pytest.raises(InputError, match="scoring is 'best'; it must be one of all, nearest, released"):
        ClosedOptions(scoring="best")  # type: ignore[arg-type]


def test_labels_voted_by_the_nearest_labelled_texts_are_those_of_a_plain_loop(data: Path, model: NPM) -> None:
    closed = read_closed_set(data, "sst2")
    asked = closed.texts[0].text
    labelled = [
        LabelledText(str(i), text, label)
        for i, (text, label) in enumerate([(f"{line} It was {MASK}.", "01"[i % 2]) for i, line in enumerate(TEXT)])
    ]
    tau, k = 2.0, 3
    q_D = np.concatenate(model.encoder.blanks([asked])[0])
    sims = [
        (model.encoder.scale * float(np.concatenate(v) @ q_D), each.label)
        for each, v in zip(labelled, model.encoder.blanks([each.text for each in labelled]), strict=True)
    ]
    near = sorted(sims, reverse=True)[:k]
    counts = {y: sum(each.label == y for each in labelled) + (y == "1") for y in "01"}
    expected = {y: sum(math.exp(sim / tau) for sim, label in near if label == y) / counts[y] for y in "01"}
    itself = LabelledText("same", asked, "1")
    system = labels_of_nearest(model, [*labelled, itself], ["0", "1"], k, tau)
    (answer,) = system([each for each in closed_task(closed).examples if each.text == asked])
    found = {each.text: each.probability for each in answer.predictions or ()}
    assert found == {y: pytest.approx(value / sum(expected.values()), rel=1e-3) for y, value in expected.items()}


def test_labelled_texts_are_those_a_set_is_published_with(data: Path) -> None:
    (data / "mr" / "train.jsonl").write_text('{"sentence": "so good .", "label": "1"}\n', encoding="utf-8")
    assert [(each.text, each.label) for each in read_labelled(data, "mr")] == [("so good. It was [MASK].", "1")]
    with pytest.raises(InputError, match="agn has no labelled texts to vote; leave labelled out, or ask subj, mr, cr"):
        read_labelled(data, "agn")
    with pytest.raises(InputError, match=r"train\.jsonl: no such file"):
        read_labelled(data, "subj")
