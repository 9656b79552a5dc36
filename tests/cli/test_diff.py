"""quoth diff: whose answers changed, and who only seems to."""

import json
from pathlib import Path

import pytest

from commands import Run
from quoth import Corpus, Document
from quoth.cli.diff import compared
from quoth.records import Evidence, Prediction, Predictions, Status

STATE = "{} is the head of the state. The river is long."


@pytest.fixture
def editions(tmp_path: Path) -> tuple[Corpus, Corpus]:
    corpora = []
    for name, head in (("old", "Ann Baker"), ("new", "Carl Dean")):
        corpus = Corpus.create(tmp_path / f"{name}.quoth")
        corpus.add([Document("state", "", STATE.format(head)), Document("town", "", "Eve Fox is the mayor of Rome.")])
        corpora.append(corpus)
    return corpora[0], corpora[1]


def answer(corpus: Corpus, text: str, status: Status = "answered") -> Predictions:
    [(document, start)] = [(d, d.text.find(text)) for d in corpus.documents() if text in d.text]
    row = corpus.rows_of(document.id)[0]
    place = Evidence(document.id, "", row, start, start + len(text), document.text, 1.0)
    return Predictions([Prediction(text, 0.0, 0.9, (place,), status=status)])


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (("Ann Baker",), ("Carl Dean",), "changed"),
        (("Ann Baker", "unsure"), ("Carl Dean",), "unsure"),
        (("Ann Baker",), ("Carl Dean", "not_found"), "changed"),  # the old answer is gone
        (("Ann Baker", "not_found"), ("Carl Dean",), "changed"),  # the new one is new
        (("Ann Baker", "not_found"), ("Carl Dean", "not_found"), "same"),
        (("Eve Fox",), ("Rome",), "same"),  # both say both
        (("Eve Fox",), ("the mayor",), "same"),
        (("The river",), ("river", "unsure"), "same"),  # but for the article
        (("Eve Fox",), ("Carl Dean",), "changed"),  # what the new one says is new
        (("Eve Fox",), None, "same"),
        (None, None, "same"),
    ],
)
def test_an_answer_changed_if_a_text_of_it_did(
    editions: tuple[Corpus, Corpus],
    before: tuple[str, Status] | None,
    after: tuple[str, Status] | None,
    outcome: str,
) -> None:
    old, new = editions
    found = [Predictions() if each is None else answer(corpus, *each) for each, corpus in ((before, old), (after, new))]
    assert compared(found[0], found[1], old, new) == outcome


def test_the_command(editions: tuple[Corpus, Corpus], run: Run, tmp_path: Path) -> None:
    old, new = (corpus.path for corpus in editions)
    asked = tmp_path / "asked.txt"
    asked.write_text("Who is the mayor of Rome?\n\nThe mayor of Rome is [MASK].\n")
    assert run("diff", old, new, "--ask", asked) == (0, "0 of 2 answers changed\n", "")
    asked.write_bytes("Who is the mayor\u2028of Rome?\r\nWho is\x0bthe mayor?\n".encode())
    assert run("diff", old, new, "--ask", asked) == (0, "0 of 2 answers changed\n", "")
    asked.write_text("Who is the head of the state?\nWho is the mayor of Rome?\n")
    code, out, error = run("diff", old, new, "--ask", asked)
    assert (code, error) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "Who is the head of the state?"
    assert lines[1].startswith("  old Ann Baker  ")
    assert lines[3].startswith("  new Carl Dean  ")
    assert "state" in lines[4]
    assert lines[-1] == "1 of 2 answers changed"
    code, out, _ = run("diff", old, new, "--ask", asked, "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert [(each["outcome"], each["old"]["text"], each["new"]["text"]) for each in records] == [
        ("changed", "Ann Baker", "Carl Dean"),
        ("same", "Eve Fox", "Eve Fox"),
    ]
    assert "read_as" not in records[0]["old"]
    misspelt = tmp_path / "misspelt.txt"
    misspelt.write_text("Who is the head of the sttate?\n")
    assert run("diff", old, new, "--ask", misspelt)[1].count("  read as: Who is the head of the state?\n") == 2
    told = json.loads(run("diff", old, new, "--ask", misspelt, "--json")[1])
    assert told["old"]["read_as"] == told["new"]["read_as"] == "Who is the head of the state?"
    editions[1].replace([Document("state", "", STATE.format("Ann Baker"))])
    assert run("diff", f"{new}@1", new, "--ask", asked)[0] == 1
    assert run("diff", old, new, "--ask", asked)[0] == 0
    assert "no snapshot" in run("diff", f"{new}@9", new, "--ask", asked)[2]
    asked.write_text("\n")
    assert run("diff", old, new, "--ask", asked)[2] == f"quoth: {asked}: no question in it; write one per line\n"
