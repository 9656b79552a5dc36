"""The page about finished runs: charts by hand, what is shown of a run, the papers' figures, a browser."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from asking import is_listed

from quoth.cli.main import main
from quoth.cli.output import markdown, print_tables
from quoth.records import Evidence, Prediction
from quoth_eval import harness
from quoth_eval.charts import NEEDS_MATPLOTLIB, drawable, interval_chart, line_chart
from quoth_eval.harness import Lazy, evaluate, read_run
from quoth_eval.pages import Picture, Quotation, Section, as_html, as_markdown, write_pictures
from quoth_eval.report import Report, Result, Row
from quoth_eval.statistics import Interval
from quoth_eval.summary import _risk, by_word_pieces, summary, swept
from quoth_eval.task import Answer, Example, Task

SVG = "{http://www.w3.org/2000/svg}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def points(svg: str) -> list[list[tuple[float, float]]]:
    """By series, where the points of a chart are, in pixels."""
    series = [each for each in ElementTree.fromstring(svg).iter(f"{SVG}g") if "clip-path" in each.attrib]
    return [[(float(use.get("x", "")), float(use.get("y", ""))) for use in each.iter(f"{SVG}use")] for each in series]


def words(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def near(number: float) -> Any:
    return pytest.approx(number, abs=0.01)


def test_intervals_are_drawn_to_scale() -> None:
    pytest.importorskip("matplotlib")
    name = "a name that is longer than its room <&> $x$"
    svg = interval_chart(
        [
            ("a", "one", Interval(0.5, 0.25, 1)),
            (name, "one", Interval(0, 0, 0.1)),
            (name, "two", Interval(0.75, 0.75, 0.75)),
        ],
        "right, %",
    )
    ((half, first), (zero, second)), ((three_quarters, third),) = points(svg)
    assert (three_quarters - zero) / (half - zero) == near(1.5)
    # Rows are 1 apart, the series of a row 0.3.
    assert (third - second) / (second - first) == near(0.3)
    shown = "a name th…oom <&> $x$"
    assert words(svg) == ["0", "20", "40", "60", "80", "100", "right, %", "a", shown, "one", "two"]


def test_lines_are_drawn_to_scale_and_wide_axes_are_logarithmic() -> None:
    pytest.importorskip("matplotlib")
    none, half = Interval(0, 0, 0), Interval(0.5, 0.4, 0.6)
    svg = line_chart({"only": [(0, none), (5, half), (10, Interval(1, 1, 1))]}, "x", "y")
    (((x0, y0), (x1, y1), (x2, y2)),) = points(svg)
    assert (x2 - x1, y1 - y2) == (near(x1 - x0), near(y0 - y1))
    assert "only" not in words(svg)
    wide = line_chart({"": [(1, half), (10, half), (100_000, half)]}, "x", "y")
    (((x0, _), (x1, _), (x2, _)),) = points(wide)
    assert x2 - x1 == near(4 * (x1 - x0))
    assert {"1", "10", "100,000"} <= set(words(wide))
    named = line_chart({"": [(0, half), (1, half)]}, "x", "y", {0: "three", 1: "<every> token"})
    assert {"three", "<every> token"} <= set(words(named))
    assert points(line_chart({"": [(0, half), (1, half)]}, "x", "y", marks=False)) == []


def row(number: int, right: bool, chance: float, *answers: str, system: str = "m", **groups: str) -> Row:
    place = Evidence("d", "The <Title>", 0, 4, 8, "It is here.", 0.5)
    said = Prediction("said", 0.0, chance, (place,))
    scores = {"exact_match": float(right), "hit_at_5": 1.0}
    return Row(system, str(number), "Who <b>asks</b>?", answers or ("right & wrong",), scores, groups, (said,))


def pictures(sections: Sequence[Section]) -> list[Picture]:
    return [part for section in sections for part in section.parts if isinstance(part, Picture)]


def test_systems_that_differ_in_one_option_are_a_sweep() -> None:
    names = ["m,k=1", "m,k=8", "m,k=1,combine=sum", "m,k=8,combine=sum", "n,k=1", "bm25", "m"]
    assert swept(names) == {
        "k": {"m": {"1": "m,k=1", "8": "m,k=8"}, "m,combine=sum": {"1": names[2], "8": names[3]}},
    }
    assert swept(["m,passages=3", "m,passages=null", "m,k=3"]) == {
        "passages": {"m": {"3": "m,passages=3", "null": "m,passages=null"}}
    }


def test_a_sweep_is_drawn_as_a_curve() -> None:
    def result(name: str, right: int) -> Result:
        return Result(name, tuple(row(i, i < right, 0.5, system=name) for i in range(4)))

    systems = (result("m,passages=3", 2), result("m,passages=30", 4), result("m,passages=null", 1))
    sections = summary({"run": Report("task", {}, systems)})
    curve = next(each for each in pictures(sections) if each.caption.startswith("passages: "))
    pytest.importorskip("matplotlib")
    svg = curve.draw()
    assert [word for word in words(svg) if word in ("3", "30", "every token")] == ["3", "30", "every token"]
    # 50, 100 and 25 %, at equal distances.
    (((x0, y0), (x1, y1), (x2, y2)),) = points(svg)
    assert (x2 - x1, y2 - y1) == (near(x1 - x0), near(1.5 * (y0 - y1)))


def test_a_run_from_before_there_was_a_status_is_read() -> None:
    place = {"document_id": "d", "title": "", "passage": 0, "start": 0, "end": 1, "context": "a", "score": 0.5}
    old = {"text": "a", "score": -1.5, "probability": 0.5, "evidence": [place], "sequence": "", "num_places": 1}
    line = asdict(Row("m", "1", "q?", ("a",), {}, {}, None))
    row = Row.of({**line, "predictions": [{**old, "abstained": False}, {**old, "abstained": True}]})
    assert row.predictions is not None
    assert [(each.log_score, each.score, each.status) for each in row.predictions] == [
        (-1.5, 0.5, "answered"),
        (-1.5, 0.5, "unsure"),
    ]
    assert Row.of({**line, "predictions": [asdict(each) for each in row.predictions]}) == row


def test_answers_are_grouped_by_word_pieces() -> None:
    rows = (row(0, True, 0.5, "one two three", "one"), row(1, True, 0.5, "one two three four five"))
    pattern = Row("m", "2", "q?", (".* x",), {"exact_match": 0.0}, pattern=True)
    grouped = by_word_pieces(Report("task", {}, (Result("m", (*rows, pattern)),)), lambda text: len(text.split()))
    (result,) = grouped.systems
    assert {name: score.num_examples for name, score in result.by_group("word pieces").items()} == {
        "1 word piece": 1,
        "4+ word pieces": 1,
    }


def test_risk_is_drawn_where_a_threshold_can_be() -> None:
    found = [(0.9, 1.0), (0.5, 0.0), (0.5, 1.0), (0.1, 0.0)]
    for order in (found, found[::-1]):
        rows = (
            Row("m", str(n), "q?", (), {"exact_match": right}, {}, (Prediction("a", 0.0, p, ()),))
            for n, (p, right) in enumerate(order)
        )
        line = _risk(Result("m", tuple(rows)))
        assert [(x, round(y.mean, 6)) for x, y in line] == [(25, 0), (75, 0.333333), (100, 0.5)]


def test_a_papers_mean_over_groups_is_beside_ours_over_groups() -> None:
    found = [("a", 1.0), ("a", 1.0), ("a", 1.0), ("b", 0.0)]
    rows = tuple(
        Row("m", str(n), "q?", (), {"dpr@20": right}, {"relation": name}) for n, (name, right) in enumerate(found)
    )
    page = as_markdown("", summary({"": Report("entities", {}, (Result("m", rows),), ("relation",))}))
    beside = page.partition("Beside the papers' figures")[2]
    assert "| system | measured | Recall@20 (macro average): dpr@20, mean over relation |" in beside
    assert re.search(r"\| m \| here, 4 examples \| 50\.0 \[", beside)
    assert "| Zero-NeR | Hoshi et al. 2022, table 1 | 67.1 |" in beside
    assert "75.0" in page


def test_a_run_without_answers_says_so_and_speeds_are_rounded() -> None:
    overview, empty = summary({"some": Report("task", {}, ()), "none": Report("sst2", {"limit": 3}, ())})[::2]
    assert overview.parts[1][1] == []  # type: ignore[index]
    assert empty.parts[0] == "No answers yet."
    assert "limit: 3." in as_markdown("", [empty])
    for seconds, told in ((0.0005, "2,000"), (0.04, "25"), (3, "0.33"), (0, "–")):
        timed = replace(row(0, True, 0.5), seconds=seconds)
        (table,) = summary({"": Report("", {}, (Result("m", (timed,)),))})[0].parts[1:]
        assert table[1][0][-1] == told  # type: ignore[index]


def test_a_page_says_the_same_in_html_and_markdown() -> None:
    parts = [
        "A <text>.",
        (["name", "value"], [["a & b", "1.5"], ["c", "–"]]),
        Section("More", [Quotation("Q?", "right", "wrong", "T", "be", "phrase", "after"), Quotation("P?", "r", "w")]),
        Picture(lambda: "<svg/>", "shown"),
    ]
    page = as_html("Title", [Section("First", []), Section("Second", parts)])
    assert "<p>A &lt;text&gt;.</p>" in page
    assert '<td class="words">a &amp; b</td><td>1.5</td>' in page
    assert "<details><summary>More</summary><blockquote><p>Q?</p>" in page
    assert "<cite>T</cite> …be<mark>phrase</mark>after…" in page
    assert '<nav><a href="#s1">Second</a></nav>' in page
    assert as_markdown("Title", [Section("Second", parts)]).splitlines() == [
        "# Title", "", "## Second", "", "A <text>.", "",
        "| name | value |", "| --- | ---: |", "| a & b | 1.5 |", "| c | – |", "",
        "### More", "", "- Q?", "  right: right; said: wrong", "  T: …be**phrase**after…", "",
        "- P?", "  right: r; said: w",
    ]  # fmt: skip
    shown = as_markdown("Title", [Section("The 2nd (a/b)", [Picture(lambda: "<svg/>", "x"), *parts])], "dir")
    assert [line for line in shown.splitlines() if line.startswith("!")] == [
        "![x](dir/the-2nd-a-b-1.svg)",
        "![shown](dir/the-2nd-a-b-2.svg)",
    ]


def test_pictures_of_runs_with_similar_names_stay_apart(tmp_path: Path) -> None:
    sections = [Section(title, [Picture(lambda: "<svg/>", "x")]) for title in ("k=1", "k 1")]
    assert write_pictures(sections, tmp_path) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["k-1-1.svg", "k-1-2.svg"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: `nq`, with two systems, and `parity`, whose texts would do harm if they were not escaped."""

    def says(text: str) -> object:
        place = Evidence("d", "T", 0, 3, 3 + len(text), f"...{text} <script>alert(1)</script>", 0.5)
        return lambda examples: [
            Answer([Prediction(text, 0.0, 0.1 * (1 + each.source), (place,))]) for each in examples
        ]

    for name in ("nq", "parity"):
        examples = [Example(str(i), f"<i>{i}</i>?", (str(i % 2),), i, {"half": f"half {i // 3}"}) for i in range(6)]
        task = Task(name=name, examples=examples, judge=is_listed, settings={"num_passages": 1234}, macro=("half",))
        evaluate(task, {"zero": says("0"), "one": says("1")}, tmp_path / "runs" / name)
    return tmp_path / "runs"


def test_a_report_is_one_file_that_loads_nothing(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(runs), "-o", str(page), "--markdown", "--title", "A & B"]) == 0
    out, err = capsys.readouterr()
    missing = "" if drawable() else f" without its pictures: {NEEDS_MATPLOTLIB}"
    assert err == f"quoth: wrote {page}{missing}\n"
    html = page.read_text(encoding="utf-8")
    assert "<title>A &amp; B</title>" in html
    assert "<script" not in html
    assert "<i>" not in html
    assert all(link.startswith("http://www.w3.org/") for link in re.findall(r"(?:https?:)?//[^\"' ]+", html))
    assert not re.search(r"\b(?:src|srcset|@import)\b", html)
    for svg in re.findall(r"<svg.*?</svg>", html):
        ElementTree.fromstring(svg)
    assert "| nq | zero | 6 | exact match | 50.0 [" in out
    assert "Wrong answers of one: 3 of 3" in out
    assert "| REALM, pre-trained on Wikipedia | Guu et al. 2020, table 1 | 39.2 |" in out
    assert "examples of the paper: NQ 3,610." in out
    assert ">39.2<" not in html[html.index("<h2>parity") :]
    assert main(["report", str(runs / "nq"), "--markdown"]) == 0
    assert "parity" not in capsys.readouterr().out


def test_folders_of_what_several_calls_have_written_are_one_report(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):  # as `quoth eval … --run all/a` and `--run all/b` leave them
        shutil.copytree(runs, tmp_path / "all" / name)
    assert main(["report", str(tmp_path / "all"), "--markdown"]) == 0
    headings = re.findall(r"^## parity \((.+)\)$", capsys.readouterr().out, re.MULTILINE)
    assert headings == [str(tmp_path / "all" / name / "parity") for name in ("a", "b")]


def test_without_jinja2_the_page_is_refused_in_one_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["report", str(runs), "-o", str(tmp_path / "report.html")]) == 2
    assert "the page needs jinja2; pip install '.[eval]'" in capsys.readouterr().err
    assert main(["report", str(runs), "--markdown"]) == 0


def test_pictures_are_files_that_the_markdown_shows(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pictures"
    with monkeypatch.context() as patched:
        patched.setattr("quoth_eval.report_command.drawable", lambda: False)
        assert main(["report", str(runs), "--pictures", str(folder)]) == 2
    assert "matplotlib draws them" in capsys.readouterr().err
    pytest.importorskip("matplotlib")
    assert main(["report", str(runs), "--pictures", str(folder), "--markdown"]) == 0
    shown = capsys.readouterr().out
    drawn = sorted(folder.iterdir())
    assert drawn
    assert all(f"({each.as_posix()})" in shown for each in drawn)
    assert {ElementTree.parse(each).getroot().tag for each in drawn} == {f"{SVG}svg"}


def test_mistakes_are_one_clear_line(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, says in {
        (str(runs),): "nowhere to write; name a file with -o report.html",
        (str(runs), "--markdown", "r.md"): "r.md is not a run: --markdown takes no file but prints the page; write it "
        "with: --markdown > r.md",
        (str(runs), "--markdown", "r.html"): "r.html is not a run: name the page to write with: -o r.html",
        (str(tmp_path / "none"), "--markdown"): "name the folder of a run",
        (str(runs), "-o", str(tmp_path / "none" / "report.html")): "No such file",
    }.items():
        assert main(["report", *arguments]) in (1, 2)
        assert says in capsys.readouterr().err


def test_times_are_medians_and_leave_out_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(harness, "perf_counter", lambda: clock[0])
    takes = iter([4.0, 1.0, 1.0])

    def answer(examples: Sequence[Example[int]]) -> list[Answer]:
        clock[0] += next(takes)
        return [Answer([]) for _ in examples]

    def load() -> object:
        clock[0] += 100
        return answer

    examples = [Example(str(i), "", ("x",), i) for i in range(6)]
    task = Task(name="timed", examples=examples, judge=lambda *_: {"exact_match": 0.0}, at_a_time=2)
    report = evaluate(task, {"slow": Lazy(load)}, tmp_path / "run")
    assert [each.seconds for each in report.systems[0].rows] == [2, 2, 0.5, 0.5, 0.5, 0.5]
    assert report.systems[0].per_second == read_run(tmp_path / "run").systems[0].per_second == 2


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium")
def test_the_page_fits_a_phone_and_needs_no_network(runs: Path, tmp_path: Path) -> None:
    browsers = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    page = tmp_path / "report.html"
    assert main(["report", str(runs), "-o", str(page)]) == 0
    with browsers.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        papers = []
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme, offline=True)
            shown = context.new_page()
            problems: list[str] = []
            shown.on("console", lambda message, problems=problems: problems.append(message.text))
            shown.goto(page.as_uri())
            assert shown.evaluate("document.documentElement.scrollWidth") <= 390
            shown.locator("summary").first.click()
            assert not drawable() or shown.locator("svg").first.bounding_box()["width"] > 300
            assert problems == []
            papers.append(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert papers[0] != papers[1]
        browser.close()


def test_tables_fit_a_terminal_and_are_markdown_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = ["sst2; num passages: 20,679", *(f"measure {i}" for i in range(3))]
    rows = [["quoth-mini,calibration=pmi", *["87.2 [84.1, 90.3]"] * 3]]
    print_tables([(heads, rows), (heads[:2], [["[b]x[/b]", "1"]])])
    assert capsys.readouterr().out == markdown(heads, rows) + "\n" + markdown(heads[:2], [["[b]x[/b]", "1"]])
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setenv("COLUMNS", "80")
    print_tables([(heads, rows), (heads[:2], [["[b]x[/b]", "1"]])])
    shown = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 80
    assert "[b]x[/b]" in shown
    assert shown.count("90.3]") == 3
