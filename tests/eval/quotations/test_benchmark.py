"""The benchmark of checkers: what is drawn is faithful or forged, and rates are counted rightly."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.folding import fold
from quoth_eval.harness import evaluate
from quoth_eval.quotations.checkers import checkers
from quoth_eval.quotations.drawing import Quotation, draw_quotations, occurring, read, write
from quoth_eval.quotations.faithful import FAITHFUL
from quoth_eval.quotations.forged import FORGED
from quoth_eval.quotations.rates import FALSE_ALARM, MISS, as_record, asking, quotations_task, rate_tables, rates
from quoth_eval.report import Report

TOWNS = ("Altona", "Bergen", "Calais", "Dieppe")
TEXT = (
    "In 1884 the harbour of {0} was built, which was paid for by merchants, and may not be entered by ships from {1}. "
    'The "old" lighthouse of {0} — it is well-known — shone over 20 km until the great storm of January came upon {1}. '
    "When the railway arrived in {1}, most of the fishermen's families had left {0} for the villages of the interior."
)
SETTINGS = {"corpora": ["towns.quoth"], "seed": 0}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    made = Corpus.create(tmp_path / "towns.quoth")
    pairs = zip(TOWNS, TOWNS[1:] + TOWNS[:1], strict=True)
    made.add(Document(one, one, TEXT.format(one, other)) for one, other in pairs)
    return made


def perfect(quotations: Sequence[Quotation]) -> list[bool]:
    return [each.faithful for each in quotations]


def run(drawn: Sequence[Quotation]) -> Report:
    every = {
        "perfect": perfect,
        "credulous": lambda quotations: [True] * len(quotations),
        "suspicious": lambda quotations: [False] * len(quotations),
    }
    return evaluate(quotations_task(drawn, SETTINGS), {name: asking(each) for name, each in every.items()})


def test_quotations_are_drawn_by_seed_and_forgeries_occur_nowhere(corpus: Corpus) -> None:
    drawn = [*draw_quotations([corpus], 12, 0)]
    assert drawn == [*draw_quotations([corpus], 12, 0)]
    assert drawn != [*draw_quotations([corpus], 12, 1)]
    assert len({(each.document_id, each.start) for each in drawn}) == 12
    folded = [fold(document.text) for document in corpus.documents()]
    for each in drawn:
        assert each.faithful == (each.variant in FAITHFUL)
        if not each.faithful and "…" not in each.text:
            assert not any(fold(each.text).strip(".") in text for text in folded)
        if each.variant == "unchanged":
            assert corpus.document(each.document_id).text[each.start : each.end] == each.text
    assert len({each.id for each in drawn}) == len(drawn)
    assert {each.variant for each in drawn} >= {*FAITHFUL, *FORGED} - {"decomposed", "ligatures"}


def test_one_sentence_of_each_document_comes_first(corpus: Corpus) -> None:
    drawn = [*draw_quotations([corpus], 4, 0)]
    assert {each.document_id for each in drawn} == {*TOWNS}
    with pytest.raises(InputError, match="12 sentences of 12 to 40 words, but 13 are to be drawn"):
        list(draw_quotations([corpus], 13, 0))


def test_what_occurs_by_chance_is_found() -> None:
    documents = [
        Document("a", "", "“First came the long and winding road”, then came the end of all things. And so it went."),
        Document("b", "", "Then came the end of all things, and first came the long and winding road."),
    ]
    texts = {
        "whole": "the long and winding road",
        "across": "road, then came the end",
        "order": "first came the long … then came the end of",
        "other order": "then came the end of … first came the long and",
        "no order": "and so it went … first came the long and",
        "two documents": "first came the long and … things, and first came the long",
        "twice": "then came the end of … then came the end of",
        "nothing": "the long and winding river",
        "part of a word": "ong and winding road",
    }
    found = occurring(texts, documents)
    assert found == {"whole", "order", "other order"}


def test_rates_of_perfect_and_useless_checkers(corpus: Corpus) -> None:
    drawn = [*draw_quotations([corpus], 8, 0)]
    faithful = sum(each.faithful for each in drawn)
    report = run(drawn)
    expected = {"perfect": (0, 0), "credulous": (0, 1), "suspicious": (1, 0)}
    for name, shares in expected.items():
        for measure, share, total in zip((FALSE_ALARM, MISS), shares, (faithful, len(drawn) - faithful), strict=True):
            found = rates(report.system(name), measure)
            assert {each.rate.mean for each in found.values()} == {share}
            assert (found["all"].quotations, found["all"].wrong) == (total, share * total)
            assert sum(each.quotations for each in found.values()) == 2 * total
    alarms, misses = rate_tables(report)
    assert alarms[0] == ["faithful, refused", "quotations", "perfect", "credulous", "suspicious"]
    assert [row[0] for row in alarms[1]][:3] == ["all", "unchanged", "marks"]
    assert misses[1][0][:2] == ["all", str(len(drawn) - faithful)]
    assert misses[1][0][3].startswith("100.0 [9")
    assert json.loads(json.dumps(as_record(report)))["systems"][2]["false_alarm"]["all"]["rate"]["mean"] == 1


def test_the_file_has_what_was_drawn(corpus: Corpus, tmp_path: Path) -> None:
    drawn = [*draw_quotations([corpus], 3, 0)]
    write(str(tmp_path / "set.jsonl"), drawn)
    assert read(tmp_path / "set.jsonl", [corpus]) == drawn
    for content, reason in (('{"a": 1}', ":1: not a quotation"), ("", "no quotation in it")):
        (tmp_path / "bad.jsonl").write_text(content)
        with pytest.raises(InputError, match=reason):
            read(tmp_path / "bad.jsonl", [corpus])
    other = Corpus.create(tmp_path / "other.quoth")
    with pytest.raises(InputError, match="a sentence of corpus 'towns'"):
        read(tmp_path / "set.jsonl", [other])


IN_SOURCE = (
    "import json,sys\nfor line in sys.stdin: asked = json.loads(line); print(int(asked['quote'] in asked['source']))"
)


def test_a_peer_reads_lines_and_writes_numbers(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "peer.py").write_text(IN_SOURCE)
    (tmp_path / "silent.py").touch()
    drawn = [*draw_quotations([corpus], 3, 0)]
    asked = checkers([corpus], {"peer": f"{sys.executable} {tmp_path / 'peer.py'}"})["peer"]
    said = dict(zip((each.id for each in drawn), asked(drawn), strict=True))
    assert {each.variant for each in drawn if said[each.id]} <= {"unchanged", "end"}
    assert all(said[each.id] for each in drawn if each.variant == "unchanged")
    for command, reason in ((f"{sys.executable} {tmp_path / 'silent.py'}", "0 answers to"), ("./none", "No such file")):
        with pytest.raises(InputError, match=reason):
            checkers([corpus], {"peer": command})["peer"](drawn)


def test_the_command(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "peer.py").write_text(IN_SOURCE)
    peer, file = f"peer={sys.executable} {tmp_path / 'peer.py'}", str(tmp_path / "set.jsonl")
    call = ["eval", "quotations", str(corpus.path), "--peer", peer]
    kept = ["--run", str(tmp_path / "run")]
    assert main([*call, "--sentences", "4", "--write", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["task"], told["num_sentences"], told["seed"]) == ("quotations", 4, 0)
    assert [each["name"] for each in told["systems"]] == ["quoth", "peer"]
    assert all(each["false_alarm"]["unchanged"]["wrong"] == 0 for each in told["systems"])
    assert all(each["miss"]["all"]["wrong"] == 0 for each in told["systems"])
    assert main([*call, "--read", file, *kept]) == 0
    out = capsys.readouterr().out
    assert "| faithful, refused | quotations | quoth | peer |" in out
    assert out.splitlines()[-1].startswith("4 sentences, ")
    assert (tmp_path / "run/report.md").read_text().startswith("| quotations; sentences: 4 | examples |")
    assert main([*call[:3], "--peer", "quoth=x"]) == 2
    assert "choose another name" in capsys.readouterr().err
