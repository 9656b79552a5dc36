"""Tables by a scripted reader: rows, resuming after a kill at each row, what changed, outputs read back."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import openpyxl
import pyarrow.parquet as pq
import pytest
from scripted import ANSWERS, scripted
from written import lines, pdf

import quoth
from commands import Run
from quoth.corpus.bm25 import bm25
from quoth.errors import CorpusNotFoundError, EmptyCorpusError, InputError, LockedError
from quoth.index.finder import Finder
from quoth.tables.asking import MOST, STEPS
from quoth.tables.cells import UNREADABLE, cell_of, fits
from quoth.tables.columns import Column, read_columns
from quoth.tables.told import place_of

QUESTIONS: list[Any] = [
    "Who signed it?",
    {"name": "end", "question": "When does it end?", "type": "date"},
    {"name": "fee", "question": "What is the fee?", "type": "money"},
    {"name": "heirs", "question": "Who gets it?", "type": "list"},
]
SIGNER = "Who signed it?"
TEXTS = {
    "a": "Ann Baker signed this. It ends on 03/04/2024. The fee is US$ 1,500.50. It goes to Carl, Dora and Eve.",
    "b": "Carl Dean signed this. It ends on 31/12/2023. The fee is $5 to $10.",
    "c": "Nobody did. It ends perhaps on 1 May 2020. =1+1 <b>is</b> here.",
    "d": "Eve Fox signed this.",
}
URL = {"a": {"url": "https://example.org/a", "year": 2023}, "b": {"year": 2023}, "c": {"year": 2024}}


def document(name: str, text: str) -> quoth.Document:
    return quoth.Document(name, f"Title {name}", text, URL.get(name, {}))


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "c.quoth")
    made.add(document(*each) for each in TEXTS.items())
    return made


def texts(row: Any) -> list[str]:
    return [cell.text for cell in row.cells.values()]


def test_rows(corpus: quoth.Corpus) -> None:
    reader, own = scripted()
    made = quoth.table(corpus, QUESTIONS, model=reader)
    a, b, c, d = made.rows
    assert own.asked == 16
    assert [row.document_id for row in made.rows] == [*TEXTS]
    assert [row.title for row in made.rows] == [f"Title {name}" for name in TEXTS]
    assert texts(a) == ["Ann Baker", "03/04/2024", "US$ 1,500.50", "Carl, Dora and Eve"]
    assert [cell.value for cell in a.cells.values()] == [
        "Ann Baker",
        "2024-04-03",  # the date of b says which comes first
        {"amount": 1500.5, "currency": "USD"},
        ["Carl", "Dora", "Eve"],
    ]
    assert texts(b) == ["Carl Dean", "31/12/2023", "", ""]
    assert texts(c) == ["", "", "", ""]
    assert texts(d) == ["Eve Fox", "", "", ""]  # a name is no date
    for row in made.rows:
        for cell in (*row.cells.values(), *(cell.candidate for cell in row.cells.values() if cell.candidate)):
            for place in cell.evidence:
                assert corpus.document(row.document_id).text[place["start"] : place["end"]] == cell.text
                assert "passage" not in place
    nearest = c.cells["end"].candidate
    assert nearest is not None
    assert (nearest.text, nearest.value, nearest.status) == ("1 May 2020", "2020-05-01", "unsure")
    assert c.cells["end"].probability == 0 < nearest.probability < 0.5
    nearest = b.cells["fee"].candidate  # a range is no amount, but its sentence may help
    assert nearest is not None
    assert (nearest.text, nearest.value) == ("The fee is $5 to $10.", None)
    assert a.cells[SIGNER].evidence[0]["link"] == "https://example.org/a#:~:text=Ann%20Baker"
    assert "link" not in b.cells[SIGNER].evidence[0]
    assert repr(made) == "Table(rows=4, columns=4, filled=7, changes=0)"


def test_the_surest_of_several_wordings(corpus: quoth.Corpus) -> None:
    both = {"name": "signer", "question": ["Who gets it?", "Who signed it?"], "threshold": 0.9}
    rows = quoth.table(corpus, [both], model=scripted()[0]).rows
    assert [row.cells["signer"].text for row in rows][1:] == ["Carl Dean", "", "Eve Fox"]
    none = quoth.table(corpus, [both | {"threshold": 1.0}], model=scripted()[0]).rows
    assert [row.cells["signer"].text for row in none] == [""] * 4
    assert none[3].cells["signer"].candidate is not None


def test_parts_and_groups(corpus: quoth.Corpus) -> None:
    rows = quoth.table(corpus, QUESTIONS, model=scripted()[0], where="year = 2023").rows
    assert [row.document_id for row in rows] == ["a", "b"]
    rows = quoth.table(corpus.where("id != 'a'"), [SIGNER], model=scripted()[0], by="year").rows
    assert [(row.document_id, texts(row)) for row in rows] == [("2023", ["Carl Dean"]), ("2024", [""])]
    with pytest.raises(InputError, match="no document has a field 'yaer'; did you mean year"):
        quoth.table(corpus, [SIGNER], model=scripted()[0], by="yaer", output=corpus.path.with_name("t.csv"))
    assert [each.name for each in corpus.path.parent.iterdir()] == ["c.quoth"]
    with pytest.raises(EmptyCorpusError):
        quoth.table(corpus.where("id = 'e'"), [SIGNER], model=scripted()[0])


def test_a_document_s_passages_are_read_those_with_the_question_s_words_first(tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "long.quoth", splitter="fixed:5")
    words = [f"filler{n} a b c d" for n in range(100)]
    words[70], words[80] = "Gil Hays signed it here", "It was signed and signed"
    corpus.add([quoth.Document("x", "", " ".join(words)), quoth.Document("y", "", " ".join(words[:10]))])
    reader, own = scripted()
    x, _ = quoth.table(corpus, [SIGNER], model=reader).rows
    assert texts(x) == ["Gil Hays"]
    of_x, of_y = ([each for part in own.read for each in part if each.passage.document_id == name] for name in "xy")
    assert of_x[-1].passage.text == words[70]  # a sure answer ends the reading
    assert [each.passage.text for each in of_y] == words[:MOST]
    assert [math.exp(each.relevance) for each in of_y] == pytest.approx([0.01] * MOST)
    assert [len(part) for part in own.read if part[0].passage.document_id == "y"] == [number for number, _ in STEPS]
    # What a reader over the document alone is shown, if one after the other.
    own.read.clear()
    reader.over([corpus]).where("id = 'x'").ask(SIGNER)
    assert [each for part in own.read for each in part][: len(of_x)] == of_x


def test_passages_are_found_by_vectors_too_as_over_the_document_alone(tmp_path: Path) -> None:
    told = ["The head of the office is Ada.", "Nothing was put to paper.", "Boats lie at the quay.", "It ended well."]
    documents = [quoth.Document("x", "", "\n\n".join(told)), quoth.Document("y", "", "Who put a name to it?")]
    both, alone = (quoth.Corpus.create(tmp_path / f"{name}.quoth", splitter="words:6") for name in ("both", "alone"))
    both.add(documents)
    alone.add(documents[:1])
    for corpus in (both, alone):
        Finder([corpus]).embed()
    reader, own = scripted()
    quoth.table(both.where("id = 'x'"), [SIGNER], model=reader)
    shown = [(each.passage.text, math.exp(each.relevance)) for part in own.read for each in part]
    [ranking] = Finder([alone]).rankings([SIGNER], MOST, [()])
    assert [text for text, _ in shown] == [alone.passage(row).text for _, (_, row) in ranking]
    assert [share for _, share in shown] == pytest.approx([score for score, _ in ranking], rel=0.01)  # rounded vectors
    assert [hit.passage.text for hit in bm25([alone], SIGNER, 10)] == told[-1:]  # by words alone


def test_rows_found_by_words_are_asked_again_by_vectors(corpus: quoth.Corpus, tmp_path: Path) -> None:
    reader, own = scripted()
    out = tmp_path / "t.jsonl"
    first = quoth.table(corpus, [SIGNER], model=reader, output=out).rows
    assert [row.by_words for row in first] == [True] * 4
    assert json.loads(out.read_text().splitlines()[0])["by_words"]
    quoth.table(corpus, [SIGNER], model=reader, output=out)
    assert own.asked == 4  # as they are: there are no vectors yet
    Finder([corpus]).embed()
    for _ in range(2):  # once
        rows = quoth.table(corpus, [SIGNER], model=reader, output=out).rows
        assert (own.asked, [row.by_words for row in rows]) == (8, [False] * 4)
    assert not any("by_words" in json.loads(line) for line in out.read_text().splitlines())
    corpus.add([document("e", "Guy Hall signed this.")])  # one passage without a vector is encoded as it is asked
    assert not quoth.table(corpus, [SIGNER], model=reader, output=out).rows[-1].by_words
    assert own.asked == 9


def test_a_place_in_a_pdf_has_its_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.pdf").write_bytes(pdf(lines("One."), lines("Ann Baker signed this.")))
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add(quoth.read_documents(tmp_path / "docs"))
    cell = quoth.table(corpus, [SIGNER], model=scripted()[0]).rows[0].cells[SIGNER]
    location = cell.evidence[0]["location"]
    assert (cell.text, location["page"], len(location["rectangles"])) == ("Ann Baker", 2, 1)
    assert place_of(cell) == "a.pdf, page 2"
    (tmp_path / "out").mkdir()
    for name in ("t.xlsx", "t.html", "t.jsonl"):
        quoth.table(corpus, [SIGNER], model=scripted()[0], output=tmp_path / "out" / name, files=tmp_path / "docs")
    assert '<a href="../docs/a.pdf#page=2">' in (tmp_path / "out" / "t.html").read_text()
    link = openpyxl.load_workbook(tmp_path / "out" / "t.xlsx")["Table"]["C2"].hyperlink
    assert (link.target, link.location) == (r"..\docs\a.pdf", "page=2")  # as workbooks have paths
    row = json.loads((tmp_path / "out" / "t.jsonl").read_text())
    assert row["cells"][SIGNER]["evidence"][0]["link"] == "../docs/a.pdf#page=2"
    corpus.replace([quoth.Document("../t.html", "", "Ann Baker signed this.")])
    quoth.table(corpus, [SIGNER], model=scripted()[0], output=tmp_path / "out" / "t.html", files=tmp_path / "docs")
    page = (tmp_path / "out" / "t.html").read_text()
    assert {*re.findall(r'<a href="([^"]*)"', page)} == {"../docs/a.pdf#page=2"}  # nothing outside the folder


def test_a_run_that_is_killed_goes_on(corpus: quoth.Corpus, tmp_path: Path) -> None:
    out, columns = tmp_path / "t.jsonl", len(QUESTIONS)

    def die(at: int) -> None:
        if at >= columns:
            os._exit(9)

    for finished in range(1, len(TEXTS)):
        child = os.fork()
        if not child:
            quoth.table(corpus, QUESTIONS, model=scripted(die)[0], output=out)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert not out.exists()
        journal = out.with_name("t.jsonl.rows")
        assert journal.read_bytes().count(b"\n") == finished + 1
        with journal.open("ab") as stream:
            stream.write(b'{"key": "b", "dig')  # what a kill may leave of a line
    reader, own = scripted()
    made = quoth.table(corpus, QUESTIONS, model=reader, output=out)
    assert own.asked == columns
    assert made.rows == quoth.table(corpus, QUESTIONS, model=scripted()[0]).rows
    assert [json.loads(line) for line in out.read_text().splitlines()] == [row.to_dict() for row in made.rows]
    reader, own = scripted()
    assert quoth.table(corpus, QUESTIONS, model=reader, output=out).rows == made.rows
    assert own.asked == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.quoth", "t.jsonl", "t.jsonl.rows"]


def test_the_output_of_another_table_is_refused(corpus: quoth.Corpus, tmp_path: Path) -> None:
    out, reader = tmp_path / "t.csv", scripted()[0]
    quoth.table(corpus, QUESTIONS, model=reader, output=out)
    known = out.read_bytes()
    for more, what in [({"where": "year = 2023"}, "where"), ({"by": "year"}, "by")]:
        with pytest.raises(InputError, match=rf"t\.csv belongs to another table \(other {what}\)"):
            quoth.table(corpus, QUESTIONS, model=reader, output=out, **more)
    with pytest.raises(InputError, match=r"other questions"):
        quoth.table(corpus, QUESTIONS[:1], model=reader, output=out)
    rows = tmp_path / "t.csv.rows"
    now = rows.read_bytes()
    rows.write_bytes(now.replace(b'"format": 3', b'"format": 2', 1))
    for more in ({}, {"by": "year"}):  # an older version's is told as that, whatever else differs
        with pytest.raises(InputError, match=r"of another version of Quoth; delete .*t\.csv and t\.csv\.rows"):
            quoth.table(corpus, QUESTIONS, model=reader, output=out, **more)
    rows.write_bytes(now)
    out.write_bytes(known + b"mine")
    with pytest.raises(InputError, match="was changed since it was written"):
        quoth.table(corpus, QUESTIONS, model=reader, output=out)
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        quoth.table(corpus, QUESTIONS, model=reader, output=tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_text() == "mine"
    out.unlink()
    (tmp_path / "t.csv.rows").write_bytes(b"mine\n")
    with pytest.raises(InputError, match="is not a table's"):
        quoth.table(corpus, QUESTIONS, model=reader, output=out)
    for name, what in [("t.txt", "a table is written as"), ("no/t.csv", "no such folder"), ("c.quoth", "is written")]:
        with pytest.raises(InputError, match=what):
            quoth.table(corpus, QUESTIONS, model=reader, output=tmp_path / name)


def test_a_damaged_journal_is_told(corpus: quoth.Corpus, tmp_path: Path) -> None:
    out, reader = tmp_path / "t.csv", scripted()[0]
    quoth.table(corpus, QUESTIONS, model=reader, output=out)
    journal = tmp_path / "t.csv.rows"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + b"{]" + b"".join(others))
    with pytest.raises(InputError, match=rf"damaged at byte {len(first)}; delete .*t\.csv and t\.csv\.rows"):
        quoth.table(corpus, QUESTIONS, model=reader, output=out)


def test_one_process_writes_a_table(corpus: quoth.Corpus, tmp_path: Path) -> None:
    out, reader = tmp_path / "t.csv", scripted()[0]

    def again(done: int, *_: object) -> None:
        with pytest.raises(LockedError, match="another process is writing this table"):
            quoth.table(corpus, QUESTIONS, model=reader, output=out)

    quoth.table(corpus, QUESTIONS, model=reader, output=out, progress=again)


def test_a_damaged_document_is_a_row_that_says_so(corpus: quoth.Corpus, tmp_path: Path) -> None:
    corpus.add([quoth.Document("z", "", "More. " * 20_000)])  # what is small is compared when it is opened
    corpus.compact()
    [blob] = corpus.path.glob("*/*/documents.bin")
    corpus = quoth.Corpus.open(corpus.path).where("id != 'z'")

    def put(old: bytes, new: bytes) -> None:
        with blob.open("r+b") as stream:  # in place: the corpus is open
            at = stream.read().index(old)
            stream.seek(at)
            stream.write(new)

    put(b"Carl Dean signed", b"Karl Dean signed")
    reader, own = scripted()
    rows = quoth.table(corpus, QUESTIONS, model=reader, output=tmp_path / "t.csv").rows
    assert own.asked == 12
    assert "documents.bin: damaged" in rows[1].error
    assert {cell.status for cell in rows[1].cells.values()} == {UNREADABLE}
    assert [texts(row)[0] for row in rows] == ["Ann Baker", "", "", "Eve Fox"]
    put(b"Karl Dean signed", b"Carl Dean signed")
    put(b'["d"', b'[}d"')
    rows = quoth.table(corpus, QUESTIONS, model=scripted()[0]).rows
    assert [bool(row.error) for row in rows] == [False, False, False, True]
    put(b'[}d"', b'["d"')
    reader, own = scripted()
    rows = quoth.table(corpus, QUESTIONS, model=reader, output=tmp_path / "t.csv").rows
    assert (own.asked, texts(rows[1])[0], rows[1].error) == (4, "Carl Dean", "")


def test_only_what_changed_is_asked_again(corpus: quoth.Corpus, tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    quoth.table(corpus, QUESTIONS, model=scripted()[0], output=out)
    first = corpus.snapshot
    corpus.replace(
        [
            document("a", TEXTS["a"].replace("Ann Baker", "Ann Cole")),
            document("b", f"{TEXTS['b']} More was said since."),
            document("e", "Gil Hays signed this."),
        ],
        delete=["d"],
    )
    for kept in (True, False):
        reader, own = scripted()
        made = quoth.table(corpus, QUESTIONS, model=reader, output=out if kept else None, since=first)
        assert own.asked == 4 * (3 if kept else 4 + 3)
        assert [(each.document_id, each.column, each.old.text, each.new.text) for each in made.changes] == [
            ("a", SIGNER, "Ann Baker", "Ann Cole"),
            ("e", SIGNER, "", "Gil Hays"),
            ("d", SIGNER, "Eve Fox", ""),
        ]
    reader, own = scripted()
    assert len(quoth.table(corpus, QUESTIONS, model=reader, output=out, since=first).changes) == 3
    assert own.asked == 0
    assert quoth.table(corpus, QUESTIONS, model=reader, output=out, since=corpus.snapshot).changes == []
    with pytest.raises(CorpusNotFoundError, match="no snapshot"):
        quoth.table(corpus, QUESTIONS, model=reader, since=99)


def test_several_rows_at_once_are_the_same_rows_in_order(tmp_path: Path) -> None:
    corpus, out = quoth.Corpus.create(tmp_path / "c.quoth"), tmp_path / "t.jsonl"
    names = [f"{at:02}" for at in range(12)]
    corpus.add(quoth.Document(name, "", f"Ann B{name}aker signed this. Gil Fox signed it.") for name in names)
    running, most, together = set[int](), 0, threading.Barrier(3)

    def begin(asked: int) -> None:
        nonlocal most
        running.add(threading.get_ident())
        most = max(most, len(running))
        if asked < 3:
            together.wait(60)  # three rows are asked at once, or this fails
        running.discard(threading.get_ident())

    made = quoth.table(corpus, [SIGNER], model=scripted(begin)[0], output=out, workers=3)
    assert most == 3
    assert [row.document_id for row in made.rows] == names
    assert made.rows == quoth.table(corpus, [SIGNER], model=scripted()[0]).rows
    assert [json.loads(line)["document_id"] for line in out.read_text().splitlines()] == names
    with pytest.raises(InputError, match="workers 0"):
        quoth.table(corpus, [SIGNER], model=scripted()[0], workers=0)


def test_a_kill_of_several_at_once_loses_no_finished_row(tmp_path: Path) -> None:
    corpus, out = quoth.Corpus.create(tmp_path / "c.quoth"), tmp_path / "t.jsonl"
    corpus.add(quoth.Document(f"{at:02}", "", f"Ann Baker signed this {at}.") for at in range(20))
    journal = out.with_name("t.jsonl.rows")

    def die(at: int) -> None:
        if at >= 12:
            while journal.read_bytes().count(b"\n") < 8:  # their rows are finished
                time.sleep(0.01)
            os._exit(9)

    child = os.fork()
    if not child:
        quoth.table(corpus, [SIGNER], model=scripted(die)[0], output=out, workers=4)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    kept = journal.read_bytes().count(b"\n") - 1
    reader, own = scripted()
    made = quoth.table(corpus, [SIGNER], model=reader, output=out, workers=4)
    assert own.asked == 20 - kept <= 13
    assert [row.document_id for row in made.rows] == [f"{at:02}" for at in range(20)]


def test_an_error_in_one_of_several_ends_all(corpus: quoth.Corpus, tmp_path: Path) -> None:
    def fail(asked: int) -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        quoth.table(corpus, [SIGNER], model=scripted(fail)[0], workers=2)


def test_what_both_say_is_no_change(tmp_path: Path) -> None:
    corpus = quoth.Corpus.create(tmp_path / "c.quoth")
    corpus.add([quoth.Document("x", "", "Ann Baker signed this. It ends on 1 May 2020. It goes to Carl.")])
    moved = "It  goes to Carl. It ends on 2020-05-01. Of old, perhaps. Carl Dean signed all. Ann Baker signed this."
    corpus.replace([quoth.Document("x", "", moved)])
    made = quoth.table(corpus, QUESTIONS, model=scripted()[0], since=1)
    assert texts(made.rows[0])[1:] == ["2020-05-01", "", "Carl"]
    assert [each.column for each in made.changes] == []


@pytest.fixture
def made(corpus: quoth.Corpus) -> quoth.Table:
    return quoth.table(corpus, QUESTIONS, model=scripted()[0])


def test_csv_is_read_back(made: quoth.Table, tmp_path: Path) -> None:
    made.save(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = [*csv.DictReader(stream)]
    assert [*rows[0]] == [
        *("document_id", "title", SIGNER, "end", "end (value)"),
        *("fee", "fee (value)", "heirs", "heirs (value)", "error"),
    ]
    assert (rows[0]["end"], rows[0]["end (value)"]) == ("03/04/2024", "2024-04-03")
    assert (rows[0]["fee (value)"], rows[0]["heirs (value)"]) == ("1500.5 USD", "Carl; Dora; Eve")
    assert (rows[2]["end"], rows[2]["end (value)"]) == ("", "")


def test_parquet_is_read_back(made: quoth.Table, tmp_path: Path) -> None:
    made.save(tmp_path / "t.parquet")
    rows = pq.read_table(tmp_path / "t.parquet").to_pylist()
    fee = rows[0]["fee"]
    assert (fee["text"], fee["value"]) == ("US$ 1,500.50", {"amount": 1500.5, "currency": "USD"})
    assert (fee["document_id"], fee["start"], fee["status"]) == ("a", TEXTS["a"].index("US$"), "answered")
    assert rows[0]["heirs"]["value"] == ["Carl", "Dora", "Eve"]
    assert (rows[2]["end"]["text"], rows[2]["end"]["value"], rows[2]["end"]["start"]) == ("", None, None)


def test_a_workbook_is_read_back(made: quoth.Table, tmp_path: Path) -> None:
    made.save(tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(tmp_path / "t.xlsx")
    assert book.sheetnames == ["Table", "Candidates", "Places"]
    table = book["Table"]
    assert [cell.value for cell in table[1]] == ["document_id", "title", SIGNER, "end", "fee", "heirs", "error"]
    assert [cell.value for cell in table[2]][:2] == ["a", "Title a"]
    assert table["D2"].value.date().isoformat() == "2024-04-03"
    assert "03/04/2024" in table["D2"].comment.text
    assert table["E2"].value == 1500.5
    assert "»US$ 1,500.50«" in table["E2"].comment.text
    assert table["C2"].hyperlink.target.startswith("https://example.org/a")
    assert table["C3"].hyperlink is None
    assert table["D4"].value is None
    nearest = [[cell.value for cell in row] for row in book["Candidates"].iter_rows(min_row=2)]
    assert [row[:4] for row in nearest] == [
        ["b", "fee", "The fee is $5 to $10.", ""],
        ["c", "end", "1 May 2020", "2020-05-01"],
        ["d", "end", "Eve Fox signed this.", ""],
    ]
    assert "=1+1" in nearest[1][5]
    assert book["Candidates"]["F3"].data_type == "s"
    assert book["Places"].max_row == 1 + 7


def test_a_page_stands_alone(made: quoth.Table, tmp_path: Path) -> None:
    made.save(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<mark><bdi>US$ 1,500.50</bdi></mark>" in page
    assert '<td data-v="2024-04-03" data-s="answered">' in page
    assert '<a href="https://example.org/a#:~:text=' in page
    assert "&lt;b&gt;is&lt;/b&gt;" in page
    assert "<b>is</b>" not in page
    assert page.count("<tr") == 5
    for word in ("src=", "<link", "@import", "fetch("):
        assert word not in page


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("quoth.cli.table.load_reader", lambda *_: scripted()[0])
    path = tmp_path / "q.txt"
    path.write_text("".join(f"{each}\n" for each in ANSWERS))
    return path


def test_many_cells_are_worth_the_import_of_pytorch(
    corpus: quoth.Corpus, questions: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Mock()
    monkeypatch.setattr("quoth.encoders.graph.prefer_pytorch", wanted)
    cells = corpus.num_documents * len(read_columns(questions))
    for many, calls in ((cells + 1, 0), (cells, 1)):
        monkeypatch.setattr("quoth.cli.table.MANY", many)
        assert run("table", corpus.path, questions, "--json")[0] == 0
        assert wanted.call_count == calls


def test_the_command(corpus: quoth.Corpus, questions: Path, run: Run, tmp_path: Path) -> None:
    code, out, err = run("table", corpus.path, questions, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["document_id"] for row in rows] == [*TEXTS]
    assert [*rows[0]["cells"]] == [*ANSWERS]
    cell = rows[0]["cells"][SIGNER]
    assert (cell["text"], cell["value"], cell["status"]) == ("Ann Baker", "Ann Baker", "answered")
    assert cell["evidence"][0]["document_id"] == "a"
    empty = {"text": "", "value": None, "probability": 0.0, "status": "not_found", "evidence": []}
    assert rows[2]["cells"][SIGNER] == empty
    assert err.endswith("of 16 cells filled\n")
    code, out, _ = run("table", corpus.path, questions, "--where", "id = 'd'")
    assert out.startswith("d\n  Who signed it?  Eve Fox  ")
    output = tmp_path / "t.csv"
    code, out, _ = run("table", corpus.path, questions, "-o", output)
    assert (code, out.startswith(f"{output}: "), output.exists()) == (0, True, True)
    first = corpus.snapshot
    assert run("table", corpus.path, questions, "-o", output, "--since", first)[0] == 0
    corpus.replace([document("d", "Gil Hays signed this.")])
    code, out, _ = run("table", corpus.path, questions, "-o", output, "--since", first)
    assert code == 1
    assert out.splitlines()[0] == f"d · {SIGNER}"
    assert out.splitlines()[1].startswith("  old Eve Fox  ")
    assert out.splitlines()[2].startswith("  new Gil Hays  ")
    assert "Gil Hays" in output.read_text()
    code, out, _ = run("table", corpus.path, questions, "--since", first, "--json")
    change = json.loads(out.splitlines()[0])
    assert (code, change["outcome"], change["old"]["text"]) == (1, "changed", "Eve Fox")


def test_a_watch_asks_of_what_is_new(
    corpus: quoth.Corpus, questions: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, own = scripted()
    monkeypatch.setattr("quoth.cli.table.load_reader", lambda *_: reader)
    other, out, asked = quoth.Corpus.open(corpus.path), tmp_path / "t.jsonl", list[int]()

    def both() -> None:
        other.replace([document("d", "Ann Cole signed this.")])
        other.compact()

    def mine() -> None:
        out.write_text("mine")
        other.add([document("g", "Ann Fox signed this.")])

    looks = iter([lambda: other.add([document("e", "Gil Hays signed this.")]), int, both, mine, int, out.unlink])

    def sleep(seconds: float) -> None:
        asked.append(own.asked)
        next(looks, Mock(side_effect=KeyboardInterrupt))()

    clock = SimpleNamespace(sleep=sleep, perf_counter=time.perf_counter)
    monkeypatch.setattr("quoth.cli.table.time", clock)
    questions.write_text(f"{SIGNER}\n")
    _, text, err = run("table", corpus.path, questions, "-o", out, "--watch", "5")
    said = [line for line in text.splitlines() if " · " in line or line.startswith("  new")]
    assert [line.partition("  98 %")[0] for line in said] == [
        *(f"e · {SIGNER}", "  new Gil Hays", f"d · {SIGNER}", "  new Ann Cole", f"g · {SIGNER}", "  new Ann Fox")
    ]
    assert [after - before for before, after in zip([0, *asked], asked, strict=False)] == [4, 1, 0, 1, 0, 0, 1]
    assert err.count("was changed since it was written") == 1
    assert len(out.read_text().splitlines()) == 6


def test_since_a_date(corpus: quoth.Corpus, questions: Path, run: Run) -> None:
    os.utime(corpus.path / f"manifest-{corpus.snapshot}.json", (0, 0))
    corpus.replace([document("d", "Gil Hays signed this.")])
    code, out, _ = run("table", corpus.path, questions, "--since", "2001-01-01")
    assert (code, out.splitlines()[0]) == (1, f"d · {SIGNER}")
    assert out.splitlines()[-1].endswith("2 changed since 2001-01-01")
    code, out, err = run("table", corpus.path, questions, "--since", "1969-01-01")
    assert (code, out, err.count("\n"), "(snapshot 1)" in err) == (2, "", 1, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [("Who?\n\n", "q.txt:2: an empty line"), ("Who?\nWho?\n", "q.txt:2: a second column"), ("", "no question")],
)
def test_a_bad_questions_file_writes_nothing(
    corpus: quoth.Corpus, questions: Path, run: Run, tmp_path: Path, text: str, said: str
) -> None:
    questions.write_text(text)
    before = sorted(tmp_path.iterdir())
    code, out, err = run("table", corpus.path, questions, "-o", tmp_path / "t.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_sure_unit_fills_a_cell_with_the_phrase_in_it() -> None:
    context = "It costs $5 here. It cost $4 before."

    def at(text: str, chance: float, status: Any, kind: Any = quoth.Prediction) -> Any:
        place = quoth.Evidence("a", "", 0, context.index(text), context.index(text) + len(text), context, chance)
        return kind(text, *([0.0] * (kind is quoth.Prediction)), chance, (place,), status=status)

    unit = at("It costs $5 here.", 0.7, "answered", quoth.Sentence)
    five, four, costs = at("$5", 0.4, "unsure"), at("$4", 0.3, "unsure"), at("costs", 0.9, "answered")
    money, text = Column("c", "How much?", "money"), Column("c", "How much?")

    def cell(column: Column, *phrases: Any, unit: Any = unit) -> tuple[str, float, str]:
        made = cell_of(quoth.Predictions(phrases, [unit]), column)
        return made.text, made.probability, made.candidate.text if made.candidate else ""

    assert cell(money, five, four) == ("$5", 0.7, "")
    assert cell(money, costs, five) == ("$5", 0.7, "")  # a word is no amount
    assert cell(text, costs, five) == ("costs", 0.9, "")
    assert cell(text, five) == ("It costs $5 here.", 0.7, "")
    assert cell(money, four, five) == ("It costs $5 here.", 0.7, "")  # the best is elsewhere; the unit has one amount
    unsure = at("It costs $5 here.", 0.3, "unsure", quoth.Sentence)
    assert cell(money, five, unit=unsure) == ("", 0.0, "$5")
    assert cell(money, costs, unit=unsure) == ("", 0.0, "It costs $5 here.")


@pytest.mark.parametrize("text", ["27 January 2014", "on the 5th of March, 2019", "03/04/2024", "01/27/14", "21.05.14"])
def test_a_date_whose_value_is_uncertain_fills_a_cell_of_dates(text: str) -> None:
    assert fits(text, Column("c", "When?", "date"))


@pytest.mark.parametrize("text", ["01/27-14", "1/27/2", "10:30", "Jeffery", "919-733-78", "99/99/99", "12-34-56"])
def test_what_is_no_date_fills_none(text: str) -> None:
    assert not fits(text, Column("c", "When?", "date"))
    assert fits(text, Column("c", "When?"))
