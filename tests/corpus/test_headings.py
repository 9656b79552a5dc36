"""Which row has the headings: tables by hand, with and without, and as they are read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import Run
from quoth import read_documents
from quoth.corpus.headings import find
from quoth.errors import FileWarning

TABLES = {
    "numbers": "id,who|1,Ann|2,Bob",
    "years across": "place,2019,2020,2021|Kiel,5,7,8|Ulm,3,4,4",
    "two years across": "place,2019,2020|Kiel,1500,2500|Ulm,3500,4500",
    "decades across": "place,country,2000,2010,2015|Kiel,DE,1500,2500,7|Ulm,DE,1990,1995,2001|Bern,CH,9,8,7",
    "days across": "place,2024-01-01,2024-01-02|Kiel,5,7|Ulm,3,4",
    "an index without a name": ",0,1,2|0,5,6,6|1,7,8,8",
    "addresses": "who,mail|Ann,ann@example.org|Bob,bob@example.org",
    "codes of one length": "port,code|Kiel,KEL|Ulm,ULM|Berlin,BER",
    "named days": "what,when|fair,3 May 2024|walk,9 Juni 2024",
    "prices": "item;price|tea;€ 3,50|cake;€ 4,00",
    "paths": "file,kind|a/b.txt,note|c/d.png,picture",
    "gaps": "who,age|Ann,|Bob,7|,9",
}


@pytest.mark.parametrize("name", TABLES)
def test_headings_are_told_from_rows(name: str) -> None:
    rows = [row.split(";" if name == "prices" else ",") for row in TABLES[name].split("|")]
    found = find(rows)
    assert (found.row, found.width, found.are_there, found.is_sure) == (0, len(rows[0]), True, True)
    if "across" not in name and name != "an index without a name":
        without = find(rows[1:])
        assert not without.are_there or not without.is_sure


def test_a_first_row_that_is_like_the_others() -> None:
    for rows in (
        "1,Ann|2,Bob",
        "Ann,Kiel|Bob,Ulm|Cy,Kiel",
        "Ann,a@b.c|Bob,d@e.f",
        "2024-05-01,x|2024-06-01,y",
        "7,8|5,5",
        "Ann,1990,1991|Bob,1985,1986|Cy,1985,2001",
        "Kiel,1500,2500|Ulm,3500,4500",
        "Kiel,1990|Ulm,3500",
        "1001,1002|1003,1004",
        "5,2019,2020|6,1500,2500",
        "Kiel,2020,2019|Ulm,1500,2500",
        "Kiel,2019,2020",
    ):
        found = find([row.split(",") for row in rows.split("|")])
        assert (found.are_there, found.is_sure) == (False, True), rows
    for rows in ("name,town|Ann,Kiel|Bob,Ulm", "name", "Ann,Kiel"):
        found = find([row.split(",") for row in rows.split("|")])
        assert (found.are_there, found.is_sure) == (True, False), rows
    assert find([["1", "text"], ["2", "x"]]).are_there
    assert not find([["id", "n"], ["x", "2"]], given=False).are_there
    assert find([["1", "2"], ["3", "4"]], given=True).are_there


def test_what_is_above_a_table_and_columns_that_are_empty() -> None:
    rows = [["Report of May"], ["made:", "today"], ["id", "who", "age"], ["1", "Ann", "7"], ["2", "Bob", "8"]]
    assert (find(rows).row, find(rows).width) == (2, 3)
    padded = [["Report of May", "", ""], *rows[2:]]
    assert find(padded).row == 1
    trailing = [["id", "who"], ["1", "Ann", ""], ["2", "Bob", ""]]
    assert (find(trailing).row, find(trailing).width) == (0, 2)
    assert find([["id", "text"], ["1", "a", "b"], ["2", "c", "d"], ["3", "e", "f"]]).row == 0


@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=5), min_size=1, max_size=6))
def test_any_rows_have_a_first(rows: list[list[str]]) -> None:
    found = find(rows)
    assert 0 <= found.row < len(rows)
    assert found.width >= 1


def read(tmp_path: Path, content: str, **given: bool) -> list[tuple[str, str]]:
    (tmp_path / "t.csv").write_text(content)
    return [(each.id, each.text) for each in read_documents(tmp_path / "t.csv", **given)]  # type: ignore[arg-type]


def test_a_table_without_headings_is_read_whole(tmp_path: Path, run: Run) -> None:
    with pytest.warns(
        FileWarning, match=r"^t.csv has no headings, as its first row is like the others; if it has, say so"
    ):
        assert read(tmp_path, "1,Ann\n2,Bob\n") == [("t-1", "1 | Ann"), ("t-2", "2 | Bob")]
    with pytest.warns(FileWarning, match="t.csv has no column 'text'; .*") as told:
        assert read(tmp_path, "1,Ann\n2,Bob\n", header=True) == [("t-2", "1: 2 | Ann: Bob")]
    assert len(told) == 1
    assert read(tmp_path, "name,text\nBob,x\n", header=False) == [("t-1", "name | text"), ("t-2", "Bob | x")]
    with pytest.warns(FileWarning, match=r"'name: value \| …'; it has its headings in the first row, it seems; if not"):
        assert read(tmp_path, "name,town\nAnn,Kiel\n") == [("t-2", "name: Ann | town: Kiel")]


@pytest.mark.filterwarnings("default::quoth.errors.FileWarning")
def test_the_command_takes_the_headings_as_it_is_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "t.csv").write_text("name,town\nAnn,Kiel\n")
    for number, (option, texts) in enumerate({"--no-header": 2, "--header": 1}.items()):
        place = tmp_path / f"{number}.quoth"
        code, out, error = run("index", tmp_path / "t.csv", "-o", place, option)
        assert (code, f"{texts} document" in out, "it seems" in error) == (0, True, False)
    (tmp_path / "u.csv").write_text("name,town\nAnn,Kiel\n")
    for command, file in (("add", "u.csv"), ("replace", "t.csv")):
        code, out, _ = run(command, place, tmp_path / file, "--no-header")
        assert code == 0, out
    assert [line.split()[0] for line in run("list", place)[1].splitlines()] == ["u-1", "u-2", "t-1", "t-2"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_lines_above_the_headings_are_passed_over_and_told(tmp_path: Path, mark: str) -> None:
    rows = ["Report of 3 May", "", mark.join(["who", "age"]), mark.join(["Ann", "7"]), mark.join(["Bob", "8"])]
    with pytest.warns(FileWarning, match=r"it has 1 line above the table, not read \('Report of 3 May'\)$"):
        assert read(tmp_path, "\n".join(rows)) == [("t-4", "who: Ann | age: 7"), ("t-5", "who: Bob | age: 8")]


@pytest.mark.filterwarnings("ignore:t.csv has no column 'text'")
def test_a_long_and_a_short_row_stop_nothing(tmp_path: Path) -> None:
    with pytest.warns(
        FileWarning, match=r"^t.csv: 2 rows \(lines 3, 4\) with more or fewer cells than 2, read as far as"
    ):
        found = read(tmp_path, "who,age\nAnn,7,\nBob,8,old\nCy\nDi,9\n")
    assert [text for _, text in found] == [
        "who: Ann | age: 7",
        "who: Bob | age: 8 | column 3: old",
        "who: Cy",
        "who: Di | age: 9",
    ]
