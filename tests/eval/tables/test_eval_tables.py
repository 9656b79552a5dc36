"""The benchmark of tables: sets and their golds, counts by hand, places on drawn pages as another reader finds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from commands import Run
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.errors import InputError
from quoth.index.finder import Finder
from quoth.records import Document, Evidence, Prediction
from quoth_eval.tables import measure, pages, sets
from quoth_eval.tables.measure import Filled, counted, counts_table, measured
from quoth_eval.tables.pages import (
    Grounding,
    Word,
    drawn,
    grounded,
    labelled,
    lines_of,
    on_page,
    on_words,
    overlap,
    quoted,
)
from quoth_eval.tables.sets import (
    Box,
    Gold,
    TableSet,
    contracts,
    deleted,
    factbook,
    factbook_fields,
    forms,
    invoices,
    minutes,
)
from quoth_sources.source_map import locate

FIELDS = factbook_fields()


def country(name: str, **other: str) -> list[dict[str, str]]:
    values = {label: f"{number} of {name}" for number, label in enumerate(FIELDS.values())} | other
    lines = [f"{label}: {value}" for label, value in values.items() if value]
    own = {"country": name, "title": f"{name} - part"}
    return [own | {"id": f"{name}-{n}", "text": "\n".join(lines[n::2])} for n in range(2)]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.jsonl"
    told = [*(country(f"Land {n}") for n in range(33)), country("Lacking", Population="")]
    path.write_text("".join(json.dumps(each) + "\n" for own in told for each in own), "utf-8")
    return path


def test_countries_and_fields(world: Path) -> None:
    test, develop = factbook(world), factbook(world, "develop")
    names = sorted((f"Land {n}" for n in range(33)), key=lambda each: sha256(each.encode()).digest())
    assert ([*test.rows], [*develop.rows]) == (names[:30], names[30:])
    assert [*factbook(world, rows=2).rows] == names[:2]
    assert len(test.columns) == 12
    assert test.gold[names[0]]["population"] == Gold(f"1 of {names[0]}")
    texts = [each.text for each in test.rows[names[0]]]
    assert f"Population: 1 of {names[0]}" in "\n".join(texts)
    gone = deleted(test, ["Population"])
    assert gone.deleted
    assert [each.text for each in gone.rows[names[0]]] == [
        "\n".join(line for line in text.split("\n") if not line.startswith("Population: ")) for text in texts
    ]
    assert gone.documents()[0].metadata == {"row": names[0]}
    world.write_text(json.dumps(country("Lacking", Population="")[0]) + "\n", "utf-8")
    with pytest.raises(InputError, match="no country with all fields"):
        factbook(world)


@pytest.mark.parametrize(
    ("said", "is_right"),
    [("72.5  YEARS", True), ("72.5", True), ("is 72.5 years (est.) now", True), ("72.4", False), ("", False)],
)
def test_a_field_says_it_or_it_the_field(said: str, is_right: bool) -> None:
    assert Gold("72.5 years (est.)").accepts(said) is is_right


@pytest.mark.parametrize(
    ("start", "end", "is_right"),
    [(10, 20, True), (12, 15, True), (5, 25, True), (5, 15, False), (15, 25, False), (30, 31, True), (12, 12, False)],
)
def test_a_quotation_is_inside_what_answers_or_has_all_of_it(start: int, end: int, is_right: bool) -> None:
    assert Gold(places=((10, 20), (30, 40))).accepts("any", start, end) is is_right


def test_the_labels_of_agreements() -> None:
    lines = [json.loads(line) for line in Path(sets.__file__).with_name("contracts.jsonl").read_text().splitlines()]
    columns = {each.name for each in sets._columns("contracts.toml")[0]}
    assert [each["part"] for each in lines] == ["develop"] * 12 + ["test"] * 8
    assert len({each["document"] for each in lines}) == 20
    for each in lines:
        assert each["places"].keys() <= columns
        assert all(0 <= start < end for places in each["places"].values() for start, end in places)


def test_minutes_are_those_that_were_labelled(tmp_path: Path) -> None:
    lines, columns = sets._labelled("minutes.jsonl"), {each.name for each in sets._columns("minutes.toml")[0]}
    assert [each["part"] for each in lines] == ["develop"] * 4 + ["test"] * 12
    assert all(each["places"].keys() <= columns for each in lines)
    with pytest.raises(InputError, match=r"\.md: not the file that was labelled; give the folder minutes"):
        minutes(tmp_path)


def test_the_ranges_of_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Meeting date: 2021-05-04\nNote-taker: Ann\n"
    (tmp_path / "a.md").write_text(text)
    known = {"document": "a.md", "part": "test", "sha256": sha256(text.encode()).hexdigest()}
    places = {"places": {"notes": [[37, 40]]}}
    monkeypatch.setattr(sets, "_labelled", lambda _: [known | places, {"part": "develop"}])
    made = minutes(tmp_path)
    assert (made.rows, made.gold) == (
        {"a.md": [Document("a.md", "a.md", text)]},
        {"a.md": {"notes": Gold("", ((37, 40),))}},
    )
    assert text[37:40] == "Ann"


def test_agreements_are_those_that_were_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Made on 1 May 2020 by A and B."
    known = {
        "document": "7",
        "part": "test",
        "sha256": sha256(text.encode()).hexdigest(),
        "places": {"date": [[8, 18]]},
    }
    monkeypatch.setattr(sets, "_labelled", lambda _: [known, known | {"document": "8", "part": "develop"}])
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"documents": [{"id": 7, "file_name": "n.txt", "text": text}]}), "utf-8")
    made = contracts(path)
    assert (made.rows, made.gold) == ({"7": [Document("7", "n.txt", text)]}, {"7": {"date": Gold(places=((8, 18),))}})
    path.write_text(json.dumps({"documents": [{"id": 7, "file_name": "n.txt", "text": text + " "}]}), "utf-8")
    with pytest.raises(InputError, match="document 7 is not the one that was labelled"):
        contracts(path)
    path.write_text("[]", "utf-8")
    with pytest.raises(InputError, match="not a file of ContractNLI"):
        contracts(path)


@pytest.mark.parametrize(("name", "rows", "cells"), [("invoices", 11, 58), ("forms", 10, 70)])
def test_the_labels_of_pages(name: str, rows: int, cells: int) -> None:
    lines, columns = sets._labelled(f"{name}.jsonl"), {each.name for each in sets._columns(f"{name}.toml")[0]}
    assert len({each["document"] for each in lines}) == rows
    assert sum(len(each["boxes"]) for each in lines) == cells
    for each in lines:
        assert each["boxes"].keys() == each.get("says", each["boxes"]).keys() <= columns
        for page, left, top, right, bottom in (box for own in each["boxes"].values() for box in own):
            assert page >= 1
            assert 0 <= left < right <= 100
            assert 0 <= top < bottom <= 100


def test_a_form_says_what_is_written_in_its_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, places = drawn([Document("a", "A form", "Name: Ann Baker\nDate: 1 May 2020\nCity:")])
    (tmp_path / "a.pdf").write_bytes(content)
    boxes = {"collector": lines_of(places["Name"]), "collected": lines_of(places["Date"])}
    known = {
        "document": "a.pdf",
        "sha256": sha256(content).hexdigest(),
        "boxes": {name: [[each.page, *each.rectangle] for each in own] for name, own in boxes.items()},
    }
    monkeypatch.setattr(sets, "_labelled", lambda _: [known])
    made = forms(tmp_path)
    assert made.gold == {"a.pdf": {"collector": Gold("Ann Baker"), "collected": Gold("1 May 2020")}}
    assert made.boxes == {"a.pdf": boxes}
    [document] = made.documents()

    def cell(said: str) -> Filled:
        start = document.text.index(said)
        located = locate(document.source_map, start, start + len(said))
        assert located is not None
        return Filled(said, start, start + len(said), {"location": located.to_dict()})

    cells = {
        ("a.pdf", "collector"): cell("Ann Baker"),
        ("a.pdf", "collected"): cell("May")._replace(place=cell("Name").place),  # right, elsewhere on the page
        ("a.pdf", "permit"): cell("City"),  # nothing answers
    }
    grounding = labelled(made, counted("table", made, cells, None), cells)
    assert (grounding.known, grounding.claimed, grounding.by_page, grounding.by_word) == (2, 2, 2, 1)


def test_invoices_are_those_that_were_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Rechnung 7, 5.00 EUR"
    (tmp_path / "a.txt").write_text(text)
    says = {"total": "5.00 EUR\n5 Euro"}
    known = {"document": "a.txt", "sha256": sha256(text.encode()).hexdigest(), "says": says, "boxes": {}}
    monkeypatch.setattr(sets, "_labelled", lambda _: [known, known | {"document": "b.txt"}])
    made = invoices(tmp_path, rows=1)
    assert [each.text for each in made.documents()] == [text]
    gold = made.gold["a.txt"]["total"]
    assert [gold.accepts(said) for said in ("5.00", "about 5 euro", "7", "")] == [True, True, False, False]
    with pytest.raises(InputError, match=r"b\.txt: not the file that was labelled"):
        invoices(tmp_path)
    with pytest.raises(InputError, match="all tests"):
        invoices(tmp_path, "develop")


def small(is_deleted: bool = False) -> TableSet:
    columns = sets._columns("factbook.toml")[0][:3]
    gold = {row: {columns[0].name: Gold(f"{row} town"), columns[1].name: Gold("5")} for row in "ab"}
    return TableSet("small", columns, {row: [Document(row, row, f"{row} text")] for row in "ab"}, gold, is_deleted)


def test_counts_by_hand() -> None:
    capital, population, area = (each.name for each in small().columns)
    cells = {
        ("a", capital): Filled("A town", 0, 1, {}),
        ("b", capital): Filled("village", 0, 1, {}),
        ("b", population): Filled("5", 0, 1, {}),
        ("b", area): Filled("5", 0, 1, {}),  # nothing answers
    }
    made = counted("table", small(), cells, 3.0)
    assert made.to_dict() == {
        "system": "table",
        "name": "small",
        "rows": 2,
        "stated": 4,
        "filled": 3,
        "right": 2,
        "absent": 2,
        "filled_absent": 1,
        "elsewhere": 0,
        "cpu_seconds": 0.5,
    }
    gone = counted("table", small(True), cells, 3.0)
    assert (gone.stated, gone.filled, gone.right, gone.absent, gone.filled_absent, gone.elsewhere) == (0, 0, 0, 6, 4, 2)
    heads, rows = counts_table([made, gone])
    assert [len(row) for row in rows] == [len(heads)] * 2
    assert rows[0][4].startswith("3 (75.0 [")


class Looked:
    """A reader of a row's documents that is sure of their first word."""

    reader, name = None, "looked"

    def __init__(self, _: object = None, corpora: Sequence[Corpus] = (), name: str = "") -> None:
        self.corpora = corpora

    def where(self, condition: str) -> Looked:
        return Looked(None, [self.corpora[0].where(condition)])

    def ask(self, questions: Sequence[str], top_k: int) -> list[list[Prediction]]:
        [document] = self.corpora[0].documents()
        place = Evidence(document.id, "", 0, 0, 1, document.text, 1.0)
        status: Any = "answered" if document.id == "a" else "unsure"
        return [[Prediction(document.text.split()[0], 0.0, 0.9, (place,), status=status)] for _ in questions]


def test_the_plain_reader_is_asked_of_a_row_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "Reader", Looked)
    reader: Any = Looked()
    made, _ = measured("reader", small(), reader, tmp_path, lambda done, rows: None)
    assert (made.filled, made.right, made.filled_absent) == (2, 1, 1)  # "a" is in "a town", not in "5"


def test_words_are_drawn_where_another_reader_finds_them(tmp_path: Path) -> None:
    long = " ".join(f"word{n}" for n in range(60))
    texts = [f"Population: 4,100 people\nNote: {long}\nno field", "\n".join(f"Line {n}: value {n}" for n in range(70))]
    content, known = drawn([Document(f"{n}", f"Title {n}", text) for n, text in enumerate(texts)])
    assert [each.text for each in known["Population"]] == ["4,100", "people"]
    assert {each.page for each in known["Note"]} == {1}
    assert len({each.rectangle[1] for each in known["Note"]}) > 3
    assert (known["Line 0"][0].page, known["Line 69"][0].page) == (2, 3)
    (tmp_path / "a.pdf").write_bytes(content)
    [read] = read_documents(tmp_path / "a.pdf")
    for label in ("Population", "Line 69"):
        said = " ".join(each.text for each in known[label])
        start = read.text.index(said)
        location = locate(read.source_map, start, start + len(said))
        assert location is not None
        cell, own = Filled(said, 0, 0, {"location": location.to_dict()}), lines_of(known[label])
        assert on_page(cell, own)
        assert on_words(cell, own)
        other = lines_of(known["Line 3" if label == "Line 69" else "Line 1"])
        assert not on_page(cell, other)
        assert not on_words(cell, other)


def words(*texts: str) -> list[Word]:
    return [Word(text, 1 + n // 3, (10.0 * n, 5.0, 10.0 * n + 8, 6.0)) for n, text in enumerate(texts)]


def test_the_words_of_a_field_that_are_quoted() -> None:
    field = words("$609.4", "billion", "(2016", "est.)", "++", "$588.1", "billion")
    assert [each.text for each in quoted("$609.4 billion", field)] == ["$609.4", "billion"]
    assert [each.text for each in quoted("588.1  Billion", field)] == ["$588.1", "billion"]
    assert [each.text for each in quoted("2016", field)] == ["(2016"]
    assert quoted("GDP: $609.4 billion (2016 est.) ++ $588.1 billion more", field) == field


def test_overlaps_by_hand() -> None:
    assert overlap((0, 0, 2, 1), (1, 0, 3, 1)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 2, 1), (0, 0, 2, 1)) == 1
    assert overlap((0, 0, 2, 1), (2, 0, 3, 1)) == 0
    near = {"location": {"page": 1, "rectangles": [[0.0, 5.0, 12.0, 6.0]]}}
    field = lines_of(quoted("one", words("one", "two")))
    assert field == [Box(1, (0.0, 5.0, 8.0, 6.0))]
    assert on_words(Filled("one", 0, 0, near), field)  # 8 of 12
    wide = {"location": {"page": 1, "rectangles": [[0.0, 5.0, 17.0, 6.0]]}}
    assert not on_words(Filled("one", 0, 0, wide), field)  # 8 of 17
    assert not on_words(Filled("one", 0, 0, {}), field)


def test_grounding_f1_by_hand() -> None:
    made = Grounding(counted("table", small(), {}, 0.0), known=10, claimed=8, by_page=6, by_word=3)
    precision, recall = 6 / 8, 6 / 10
    assert made.f1(made.by_page) == pytest.approx(2 * precision * recall / (precision + recall))
    assert made.to_dict()["word_f1"] == pytest.approx(2 * 3 / 18)
    assert made.table()[1][0][-1] == "33.3"


def test_cells_of_pages(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = factbook(world, rows=2)
    (tmp_path / "p").mkdir()

    def cells(_: TableSet, corpus: Corpus, *__: object) -> dict[tuple[str, str], Filled]:
        found = {}
        for document in corpus.documents():
            row = str(document.metadata["row"])
            start = document.text.index(f"1 of {row}")
            located = locate(document.source_map, start, start + len(f"1 of {row}"))
            assert located is not None
            found[row, "population"] = Filled(f"1 of {row}", start, 0, {"location": located.to_dict()})
            found[row, "area"] = Filled("wrong", 0, 0, {"location": located.to_dict()})
        return found

    monkeypatch.setattr(pages, "by_table", cells)
    reader: Any = Looked()
    made = grounded(given, FIELDS, reader, tmp_path / "p", lambda done, rows: None)
    assert (made.known, made.claimed, made.counts.right, made.by_page, made.by_word) == (24, 4, 2, 2, 2)


def test_a_corpus_that_was_stopped_before_its_texts_is_finished(world: Path, tmp_path: Path) -> None:
    given = sets.factbook(world, "test", 3)
    made, is_new = measure.corpus_of(given, tmp_path, given.documents)
    Corpus.create(tmp_path / "stopped" / made.path.name)
    again, was_new = measure.corpus_of(given, tmp_path / "stopped", given.documents)
    assert (is_new, was_new, again.num_passages) == (True, True, made.num_passages)
    assert (measure.corpus_of(given, tmp_path, given.documents)[1], Finder([again]).by_vectors() is None) == (
        False,
        False,
    )


def test_the_command(world: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, bool]] = []

    def ask(system: str) -> Callable[..., dict[tuple[str, str], Filled]]:
        def cells(given: TableSet, *_: object) -> dict[tuple[str, str], Filled]:
            asked.append((system, given.name, given.deleted))
            return {(row, "population"): Filled(f"1 of {row}", 0, 1, {}) for row in given.rows}

        return cells

    monkeypatch.setattr(measure, "SYSTEMS", {"table": ask("table"), "reader": ask("reader")})
    monkeypatch.setattr("quoth_eval.tables.command.load_reader", lambda *_: Looked())
    monkeypatch.setattr("quoth_eval.tables.measure.Reader", Looked)
    code, out, err = run("eval", "table", "factbook", world, "--rows", 3, "--json")
    assert code == 0, err
    made = json.loads(out)
    assert made["inputs"] == sha256(world.read_bytes()).hexdigest()
    assert [(each["system"], each["stated"], each["filled"], each["right"]) for each in made["cells"]] == [
        ("table", 36, 3, 3),
        ("reader", 36, 3, 3),
    ]
    code, out, _ = run("eval", "table", "deleted", world, "--rows", 3, "--system", "table")
    assert (code, asked[-1]) == (0, ("table", "factbook, fields deleted", True))
    assert "| 36 | 3 | 3 | 0 (0.0 [" in out
    code, _, err = run("eval", "table", "pages", world, "--system", "reader")
    assert (code, "pages measure the table alone" in err) == (2, True)
    code, _, err = run("eval", "table", "facts", world)
    assert (code, "factbook" in err) == (2, True)
