"""Cells that a person confirmed or corrected: where they stand, that no run loses them, and what is learned of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scripted import scripted

import quoth
from commands import Run
from quoth.errors import InputError
from quoth.tables.cells import CONFIRMED, Cell
from quoth.tables.columns import Column
from quoth.tables.corrections import occurrences, read

END, FEE = {"name": "end", "question": "When does it end?", "type": "date"}, "What is the fee?"
QUESTIONS: list[Any] = ["Who signed it?", END, {"name": "fee", "question": FEE, "type": "money"}]
TEXTS = {
    "a": "Ann Baker signed this. It ends on 3 April 2024. The fee is US$ 1,500.50. Carl “the” Dean saw it on 5 May.",
    "b": "Carl Dean signed this. It ends on 31 December 2023. Later, 31 December 2023 came.",
    "c": "Nobody did. It ends perhaps on 1 May 2020.",
}


def document(name: str, text: str) -> quoth.Document:
    return quoth.Document(name, "", text)


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "c.quoth")
    made.add(document(*each) for each in TEXTS.items())
    return made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "t.jsonl"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "t.corrections.json"


def write(path: Path, *corrections: dict[str, Any]) -> None:
    path.write_text(json.dumps({"corrections": corrections}))


def said(row: str, column: str, text: str | None, **more: Any) -> dict[str, Any]:
    return {"document_id": row, "column": column, "text": text, **more}


def cells(corpus: quoth.Corpus, out: Path, **more: Any) -> dict[tuple[str, str], Cell]:
    rows = quoth.table(corpus, QUESTIONS, model=scripted()[0], output=out, **more).rows
    return {(row.document_id, name): cell for row in rows for name, cell in row.cells.items()}


def test_a_correction_has_its_place_and_its_value(corpus: quoth.Corpus, out: Path, kept: Path) -> None:
    write(
        kept,
        said("a", "Who signed it?", 'carl "the"  dean'),
        said("a", "fee", "US$ 1,500.50", value="1600 EUR"),
        said("b", "end", "31 December 2023", start=60),
        said("b", "fee", ""),
        said("c", "end", "1 May 2020"),
        said("c", "fee", "ten dollars a day"),
        said("c", "Who signed it?", None),
    )
    found = cells(corpus, out)
    signer, fee, end = found["a", "Who signed it?"], found["a", "fee"], found["b", "end"]
    assert (signer.text, signer.status, signer.probability) == ("Carl “the” Dean", CONFIRMED, 1.0)
    assert signer.candidate is not None
    assert signer.candidate.text == "Ann Baker"
    assert (fee.text, fee.value) == ("US$ 1,500.50", {"amount": 1600, "currency": "EUR"})
    assert end.evidence[0]["start"] == TEXTS["b"].rindex("31 December")
    assert (end.value, end.candidate) == ("2023-12-31", None)
    assert (found["b", "fee"].text, found["b", "fee"].status) == ("", CONFIRMED)
    assert (found["c", "end"].text, found["c", "end"].value, found["c", "end"].status) == (
        "1 May 2020",
        "2020-05-01",
        CONFIRMED,
    )
    typed = found["c", "fee"]
    assert (typed.text, typed.status, typed.evidence) == ("ten dollars a day", CONFIRMED, ())
    assert found["c", "Who signed it?"].status == "not_found"
    for (row, _), cell in found.items():
        for place in cell.evidence:
            first = place["context_start"]
            assert TEXTS[row][place["start"] : place["end"]] == cell.text
            assert place["context"][place["start"] - first : place["end"] - first] == cell.text


def test_what_is_known_is_added_and_nothing_is_overwritten(corpus: quoth.Corpus, out: Path, kept: Path) -> None:
    write(kept, said("b", "end", "31 December 2023"), said("z", "end", "x"), said("a", "other", "y", when="2026-01-01"))
    cells(corpus, out)
    first, *others = json.loads(kept.read_text())["corrections"]
    assert (first["text"], first["start"]) == ("31 December 2023", TEXTS["b"].index("31 December"))
    assert first["sentence"] == "It ends on 31 December 2023."
    assert {"digest", "when"} < {*first}
    assert [each["text"] for each in others] == ["x", "y"]
    assert others[1] == said("a", "other", "y", when="2026-01-01")
    content = kept.read_bytes()
    cells(corpus, out)
    assert kept.read_bytes() == content


def test_of_several_files_the_latest_counts(corpus: quoth.Corpus, out: Path, kept: Path, tmp_path: Path) -> None:
    write(kept, said("a", "fee", "", when="2026-02-01"), said("b", "fee", "", when="2026-02-01"))
    page = tmp_path / "t.corrections-20260301.json"
    write(page, said("a", "fee", "5 May", when="2026-03-01"), said("b", "fee", "Later", when="2026-01-01"))
    write(tmp_path / "tt.corrections.json", said("c", "fee", "Nobody", when="2026-04-01"))
    found = cells(corpus, out)
    assert [found[each, "fee"].text for each in "abc"] == ["5 May", "", ""]
    assert found["c", "fee"].status == "not_found"
    page.unlink()
    assert cells(corpus, out)["a", "fee"].text == "5 May"  # taken up
    known = json.loads(kept.read_text())["corrections"]
    known[0] = said("a", "fee", "Ann Baker")  # by hand, without a time: it is the latest
    kept.write_text(json.dumps({"corrections": known}))
    write(page, said("a", "fee", "5 May", when="2026-03-01"))
    assert cells(corpus, out)["a", "fee"].text == "Ann Baker"


def test_what_is_written_during_a_run_stays(corpus: quoth.Corpus, out: Path, kept: Path) -> None:
    write(kept, said("b", "end", "31 December 2023"))

    def meanwhile(*_: object) -> None:
        write(kept, said("b", "end", "Later"), said("c", "fee", ""))

    cells(corpus, out, progress=meanwhile)
    known = json.loads(kept.read_text())["corrections"]
    assert [(each["document_id"], each["text"]) for each in known] == [("b", "Later"), ("c", "")]
    assert "start" not in known[0]
    assert cells(corpus, out)["b", "end"].text == "Later"


def test_corrections_survive_changes_and_what_is_gone_is_told(corpus: quoth.Corpus, out: Path, kept: Path) -> None:
    write(
        kept,
        said("a", "fee", "US$ 1,500.50"),
        said("b", "end", "31 December 2023"),
        said("b", "fee", ""),
        said("c", "fee", "by word of mouth"),
    )
    cells(corpus, out)
    before = corpus.snapshot
    corpus.replace(
        [
            document("a", f"A page was put before it. {TEXTS['a']}"),
            document("b", TEXTS["b"].replace("ends on 31 December 2023", "ends on 1 June 2024") + " The fee is $7."),
            document("c", TEXTS["c"] + " More."),
        ]
    )
    made = quoth.table(corpus, QUESTIONS, model=scripted()[0], output=out, since=before)
    found = {(row.document_id, name): cell for row in made.rows for name, cell in row.cells.items()}
    assert (found["a", "fee"].status, found["a", "fee"].evidence[0]["start"]) == (
        CONFIRMED,
        TEXTS["a"].index("US$") + 26,
    )
    end, fee, typed = found["b", "end"], found["b", "fee"], found["c", "fee"]
    assert (end.text, end.status, end.gone) == (
        "1 June 2024",
        "answered",
        "31 December 2023",
    )  # it occurs elsewhere still
    assert (fee.text, fee.status, fee.gone) == ("$7", "answered", "")
    assert (typed.text, typed.status, typed.gone) == ("", "not_found", "by word of mouth")
    changed = {(each.document_id, each.column): (each.old.text, each.new.text) for each in made.changes}
    assert changed["b", "end"] == ("31 December 2023", "1 June 2024")
    assert ("a", "fee") not in changed
    assert [each["text"] for each in json.loads(kept.read_text())["corrections"]] == [
        *("US$ 1,500.50", "31 December 2023", "", "by word of mouth")
    ]
    corpus.replace([document("b", TEXTS["b"])])
    assert cells(corpus, out)["b", "end"].status == CONFIRMED


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"corrections": [', "line 1"),
        ("[]", "other content"),
        ('{"corrections": 5}', "other content"),
        (
            '{"corrections": [{"document_id": "a", "text": "x"}]}',
            "correction 1: .* it has document_id, column and text",
        ),
        ('{"corrections": [{"document_id": "a", "column": "end", "text": 5}]}', "correction 1: its text is 5"),
        ('{"corrections": [{"document_id": "a", "column": "end", "text": "x", "who": "y"}]}', "correction 1"),
    ],
)
def test_a_file_that_cannot_be_read_stops_the_run(
    corpus: quoth.Corpus, out: Path, kept: Path, content: str, error: str
) -> None:
    kept.write_text(content)
    with pytest.raises(InputError, match=error):
        cells(corpus, out)
    assert kept.read_text() == content
    assert not out.exists()


def test_odd_characters_are_kept(tmp_path: Path, out: Path, kept: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "odd.quoth")
    corpus.add([document("a", "Ann Baker signed \0 this.")])
    write(kept, said("a", "end", "Baker"), said("a", "fee", "\udc80"))
    for _ in range(2):
        assert cells(corpus, out)["a", "end"].status == CONFIRMED
    known, odd = json.loads(kept.read_bytes())["corrections"]
    assert (known["sentence"], odd["text"]) == (corpus.document("a").text, "\udc80")


def test_a_file_of_another_name_stands_alone(corpus: quoth.Corpus, out: Path, tmp_path: Path) -> None:
    write(tmp_path / "c.json", said("a", "end", ""))
    (tmp_path / "contracts.json").write_text("{}")
    assert cells(corpus, out, corrections=tmp_path / "c.json")["a", "end"].status == CONFIRMED


def test_whole_words_are_found_whatever_their_typography() -> None:
    text = "An end. Legend: “the end” — The  End; ending"
    assert [text[a:b] for a, b in occurrences(text, "end")] == ["end", "end", "End"]
    assert [text[a:b] for a, b in occurrences(text, "the end")] == ["the end", "The  End"]
    assert [*occurrences(text, "the end", 'Legend: "the end"')] == [(text.index("the end"), text.index("the end") + 7)]
    assert [*occurrences(text, "ending", "An end.")] == [*occurrences(text, " ")] == [*occurrences(text, "nd")] == []


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        *[("number", each, 3200000) for each in (3200000, "3.2 million")],
        *[("money", each, {"amount": 5, "currency": "USD"}) for each in ("5 USD", {"amount": 5, "currency": "USD"})],
        *[("date", "5 March 2019", "2019-03-05"), ("date", "2019-03", "2019-03"), ("duration", "P3Y", "P3Y")],
        *[("yes/no", True, True), ("list", ["x", "y"], ["x", "y"]), ("choice of A, B", "b", "B")],
        *[
            ("number", "many", None),
            ("list", "x, y and z", ["x", "y", "z"]),
            ("text", "x", "x"),
            ("text", ["x"], None),
            ("list", 5, ["5"]),
            ("money", {"a": 1}, None),
            ("choice of A, B", "C", None),
        ],
    ],
)
def test_values_that_a_person_gives(kind: str, value: Any, expected: Any) -> None:
    assert read(value, Column("c", "What?", kind)) == expected


ODDS = [round(float(each), 2) for each in np.linspace(-3, 3, 36)]
RIGHT = [at % 3 != 0 if at < 20 else at not in (25, 31) for at in range(36)]


@pytest.fixture
def many(tmp_path: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "m.quoth")
    dates = (f"{1 + at % 28} May 20{10 + at // 28}" for at in range(36))
    texts = zip(ODDS, dates, strict=True)
    made.add(document(f"{at:02}", f"It ({odds}) ends on {day}. Or so.") for at, (odds, day) in enumerate(texts))
    return made


def confirm(many: quoth.Corpus, kept: Path, count: int) -> None:
    texts = [many.document(f"{at:02}").text for at in range(count)]
    dates = [text.split("ends on ")[1].split(".")[0] for text in texts]
    wrong = ["Or so" if at % 2 else "" for at in range(count)]
    each = zip(RIGHT, dates, wrong, strict=False)
    write(kept, *(said(f"{at:02}", "end", day if right else other) for at, (right, day, other) in enumerate(each)))


def test_thirty_confirmed_cells_fit_the_chance_of_a_column(many: quoth.Corpus, out: Path, kept: Path) -> None:
    confirm(many, kept, 36)
    plain = quoth.table(many, [END, "Who signed it?"], model=scripted()[0]).rows
    raw = [(cell := row.cells["end"]).probability or cell.candidate.probability for row in plain]  # type: ignore[union-attr]
    assert raw == pytest.approx([1 / (1 + math.exp(-each)) for each in ODDS])
    quoth.table(many, [END, "Who signed it?"], model=scripted()[0], output=out, calibrate=True)
    known = json.loads(kept.read_text())["calibrations"]
    assert [*known] == ["end"]
    # The likeliest weights, by a general optimiser; shares instead of 0 and 1 as Platt has them.
    x, num_right = np.array(ODDS), sum(RIGHT)
    target = np.where(RIGHT, (num_right + 1) / (num_right + 2), 1 / (36 - num_right + 2))

    def loss(w: Any) -> float:
        odds = w[0] + w[1] * x
        return float(np.sum(np.logaddexp(0, odds) - target * odds))

    best = minimize(loss, [0.0, 1.0]).x
    assert known["end"]["weights"] == pytest.approx(best, abs=0.01)
    # The smallest chance from which on four in five are right, by trying each.
    shares = 1 / (1 + np.exp(-(known["end"]["weights"][0] + known["end"]["weights"][1] * x)))
    good = [p for p in shares if np.mean(np.array(RIGHT)[shares >= p]) >= 0.8]
    assert known["end"]["threshold"] == pytest.approx(min(good), abs=1e-6)
    # Fitted again to other cells, it is another one.
    confirm(many, kept, 31)
    content = json.loads(kept.read_text()) | {"calibrations": known}
    kept.write_text(json.dumps(content))
    quoth.table(many, [END, "Who signed it?"], model=scripted()[0], output=out, calibrate=True)
    assert json.loads(kept.read_text())["calibrations"]["end"]["cells"] == 31
    # A later run, over documents that nobody confirmed, fills cells from there on.
    kept.write_text(json.dumps({"corrections": [], "calibrations": known}))
    rows = quoth.table(many, [END, "Who signed it?"], model=scripted()[0], output=out).rows
    for row, share in zip(rows, shares, strict=True):
        cell = row.cells["end"]
        known_cell = cell if cell.text else cell.candidate
        assert known_cell is not None
        assert bool(cell.text) == (share >= min(good) - 1e-9)
        assert known_cell.probability == pytest.approx(share, abs=1e-6)
    # The threshold of the questions file goes before; another question has its own chances.
    asked = END | {"threshold": 0.999}
    assert not any(
        row.cells["end"].text for row in quoth.table(many, [asked], model=scripted()[0], corrections=kept).rows
    )
    other = END | {"question": ["When does it end?", "Who gets it?"]}
    rows = quoth.table(many, [other], model=scripted()[0], corrections=kept).rows
    assert [bool(row.cells["end"].text) for row in rows] == [each >= 0.0 for each in ODDS]
    assert json.loads(kept.read_text())["calibrations"] == known


def test_fewer_confirmed_cells_are_refused(many: quoth.Corpus, out: Path, kept: Path) -> None:
    confirm(many, kept, 29)
    reader, own = scripted()
    with pytest.raises(InputError, match=r"no column has 30 confirmed cells .*; end has 29, Who signed it\? has 0"):
        quoth.table(many, [END, "Who signed it?"], model=reader, output=out, calibrate=True)
    assert (own.asked, out.exists()) == (0, False)
    # Thirty, but for one there was no answer that could have been right.
    write(kept, *json.loads(kept.read_text())["corrections"], said("x", "end", ""))
    many.add([document("x", "Nothing here.")])
    with pytest.raises(InputError, match="end has 29"):
        quoth.table(many, [END, "Who signed it?"], model=reader, output=out, calibrate=True)


def test_chances_that_say_nothing_stay(tmp_path: Path) -> None:
    from quoth.tables.calibration import fitted

    raw = [0.1 + 0.02 * each for each in range(40)]
    made = fitted(raw, [each < 0.5 for each in raw], "x")
    assert made.weights == ()
    assert made.threshold == min(p for p in [*raw, 1.0] if p == 1.0 or np.mean([q < 0.5 for q in raw if q >= p]) >= 0.8)
    assert made.chance(0.3) == 0.3
    assert fitted(raw, [True] * 40, "x").weights == ()


def test_the_command_tells_what_is_wrong(
    corpus: quoth.Corpus, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.cli.table.load_reader", lambda *_: scripted()[0])
    questions = tmp_path / "q.csv"
    questions.write_text(f"name,question,type\nend,When does it end?,date\nfee,{FEE},money\n")
    given = tmp_path / "mine.json"
    write(
        given,
        said("b", "end", "31 December 2023"),
        said("z", "end", "x"),
        said("a", "fee", "US$ 1,500.50", value="much"),
    )
    code, out, err = run("table", corpus.path, questions, "--corrections", given, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert rows[1]["cells"]["end"].items() >= {"text": "31 December 2023", "status": "confirmed"}.items()
    assert {"text", "value", "probability", "status", "evidence"} <= {*rows[1]["cells"]["end"]}
    assert "a · fee: its correction has the value 'much', which is no money" in err
    assert "z · end" in err
    assert "2 confirmed" in err
    corpus.replace([document("b", "It ends on 1 June 2024.")])
    code, out, err = run("table", corpus.path, questions, "--corrections", given)
    assert "b · end: was confirmed as '31 December 2023', which its document no longer says; confirm it again" in err
    code, out, err = run("table", corpus.path, questions, "--corrections", given, "--calibrate")
    assert (code, out, err.count("\n")) == (2, "", 1)
