"""The page about finished runs: charts by hand, what is shown of a run, the papers' figures, a browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quoth.cli.main import main
from quoth.cli.output import markdown, print_tables
from quoth.records import Evidence, Prediction
from quoth_eval import harness
from quoth_eval.charts import WIDTH, Bar, Line, Point, interval_chart, line_chart, nice_ticks
from quoth_eval.harness import evaluate, lazily, read_run
from quoth_eval.pages import Folded, Picture, Quotation, Section, as_html, as_markdown, as_pictures
from quoth_eval.published import published, published_for
from quoth_eval.report import Report, Result, Row
from quoth_eval.summary import _risk, by_word_pieces, summary, swept
from quoth_eval.task import Answer, Example, Scores, Task, first_right
from quoth_eval.tasks import NAMES
from quoth_eval.tasks.closed_files import FORMATS

SVG = "{http://www.w3.org/2000/svg}"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 23.8, [0, 5, 10, 15, 20, 25]),
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-30, 30, [-30, -20, -10, 0, 10, 20, 30]),
        (0, 0.61, [0, 0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_ticks_by_hand(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


def marks(svg: str) -> list[tuple[float, float]]:
    """Where the points of a chart are; those of the legend are at 16."""
    places = [path.get("transform", "") for path in ElementTree.fromstring(svg).iter(f"{SVG}path")]
    found = [re.fullmatch(r"translate\((\S+) (\S+)\)", place) for place in places if place]
    return [(float(each[1]), float(each[2])) for each in found if each]


def words(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_intervals_are_drawn_to_scale() -> None:
    svg = interval_chart([Bar("a", "one", 50, 25, 100), Bar("b", "one", 0, 0, 10), Bar("b", "two", 75, 75, 75)], "%")
    # The axis is 314 pixels long, from 150 to 464; rows of 22 and 32 pixels begin at 22; two intervals are 12 apart.
    assert marks(svg) == [(307, 33), (150, 54), (385.5, 66), (16, 125), (16, 144)]
    first = next(ElementTree.fromstring(svg).iter(f"{SVG}line"))
    assert [float(first.get(end, "")) for end in ("x1", "y1", "x2", "y2")] == [228.5, 33, 464, 33]
    assert words(svg) == ["0", "20", "40", "60", "80", "100", "a", "b", "%", "one", "two"]


def test_lines_are_drawn_to_scale_and_wide_axes_are_logarithmic() -> None:
    svg = line_chart([Line("only", [Point(0, 0), Point(5, 50, 40, 60), Point(10, 100)])], "x", "y")
    # 52 to 464 across, 252 (0) to 22 (100) down.
    assert marks(svg) == [(52, 252), (258, 137), (464, 22)]
    assert "only" not in words(svg)
    wide = line_chart([Line("", [Point(1, 100), Point(10, 100), Point(100, 100)])], "x", "y")
    assert marks(wide) == [(52, 22), (258, 22), (464, 22)]
    assert words(wide)[-5:-2] == ["1", "10", "100"]
    fast = line_chart([Line("", [Point(10, 1), Point(900_000, 1)])], "x", "y")
    (last,) = re.findall(r'<text x="([\d.]+)"[^>]*>1,000,000<', fast)
    assert 400 < float(last) <= WIDTH - 9 * 4  # half of its nine letters are right of it
    named = line_chart([Line("", [Point(0, 1), Point(1, 1)])], "x", "y", {0: "three", 1: "<every> token"})
    assert {"three", "<every> token"} <= set(words(named))
    plain = line_chart([Line("", [Point(0, 1), Point(1, 1)], marks=False)], "x", "y")
    assert marks(plain) == []


def test_names_that_do_not_fit_are_cut_and_kept_as_titles() -> None:
    name = "a name that is longer than its room <&>"
    svg = interval_chart([Bar(name, "", 1, 1, 1)], "%")
    assert f"{name}a name th…ts room <&>" in words(svg)


def row(number: int, right: bool, chance: float, *answers: str, system: str = "m", **groups: str) -> Row:
    place = Evidence("d", "The <Title>", 0, 4, 8, "It is here.", 0.5)
    said = Prediction("said", 0.0, chance, (place,))
    scores = {"exact_match": float(right), "hit_at_5": 1.0}
    return Row(system, str(number), "Who <b>asks</b>?", answers or ("right & wrong",), scores, groups, (said,))


def pictures(sections: Sequence[Section]) -> list[Picture]:
    return [part for section in sections for part in section.parts if isinstance(part, Picture)]


def test_risk_and_coverage_by_hand() -> None:
    rows = (row(0, True, 0.9), row(1, False, 0.8), row(2, True, 0.7), row(3, False, 0.1))
    (risk,) = pictures(summary({"run": Report("task", {}, (Result("m", rows),))}))
    line = next(ElementTree.fromstring(risk.svg).iter(f"{SVG}polyline")).get("points")
    # 0, 50, 33.3 and 50 % are wrong of the surest 25, 50, 75 and 100 %; the axis goes up to 50.
    assert line == "155,252 258,22 361,98.7 464,22"


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
    assert [word for word in words(curve.svg) if word in ("3", "30", "every token")] == ["3", "30", "every token"]
    # 50, 100 and 25 % of an axis from 0 to 100.
    assert marks(curve.svg) == [(52, 137), (258, 22), (464, 194.5)]


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


def test_published_figures_are_of_our_tasks_and_measures() -> None:
    assert {figure.task for figure in published()} <= {*NAMES, "lama", "entities"}
    for figure in published():
        assert figure.measure == ("accuracy" if figure.task in FORMATS else figure.measure)
        assert 0 < figure.value < 100
        assert re.search(r"arXiv:\d{4}\.\d{5}$", figure.source)
    assert {each.value for each in published_for("curatedtrec")} == {30.1, 46.8, 42.9}


def test_risk_is_drawn_where_a_threshold_can_be() -> None:
    found = [(0.9, 1.0), (0.5, 0.0), (0.5, 1.0), (0.1, 0.0)]
    for order in (found, found[::-1]):
        rows = (
            Row("m", str(n), "q?", (), {"exact_match": right}, {}, (Prediction("a", 0.0, p, ()),))
            for n, (p, right) in enumerate(order)
        )
        line = _risk(Result("m", tuple(rows)))
        assert line is not None
        assert [(point.x, round(point.y, 6)) for point in line.points] == [(25, 0), (75, 33.333333), (100, 50)]


def test_a_papers_mean_over_groups_is_beside_ours_over_groups() -> None:
    found = [("a", 1.0), ("a", 1.0), ("a", 1.0), ("b", 0.0)]
    rows = tuple(
        Row("m", str(n), "q?", (), {"dpr@20": right}, {"relation": name}) for n, (name, right) in enumerate(found)
    )
    page = as_markdown("", summary({"": Report("entities", {}, (Result("m", rows),), ("relation",))}))
    beside = page.partition("Beside the papers' figures")[2]
    assert re.search(r"\| m, mean over relation \| here \|[^|]*\| 50\.0 \[", beside)
    assert "| Zero-NeR, mean over relation | Hoshi et al. 2022, table 1 |" in beside
    assert "75.0" not in beside
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
        Folded("More", [Quotation("Q?", "right", "wrong", "T", "be", "phrase", "after"), Quotation("P?", "r", "w")]),
        Picture("<svg/>", "shown"),
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
    shown = as_markdown("Title", [Section("The 2nd (a/b)", [Folded("More", [Picture("<svg/>", "x")]), *parts])], "dir")
    assert [line for line in shown.splitlines() if line.startswith("!")] == [
        "![x](dir/the-2nd-a-b-1.svg)",
        "![shown](dir/the-2nd-a-b-2.svg)",
    ]


def test_pictures_of_runs_with_similar_names_stay_apart() -> None:
    sections = [Section(title, [Picture(f"<svg>{title}</svg>", "x")]) for title in ("k=1", "k 1")]
    assert [*as_pictures(sections)] == ["k-1-1.svg", "k-1-2.svg"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: `nq`, with two systems, and `parity`, whose texts would do harm if they were not escaped."""

    def judge(example: Example[int], answer: Answer) -> Scores:
        return first_right([prediction.text in example.answers for prediction in answer.predictions or ()])

    def says(text: str) -> object:
        place = Evidence("d", "T", 0, 3, 3 + len(text), f"...{text} <script>alert(1)</script>", 0.5)
        return lambda examples: [
            Answer([Prediction(text, 0.0, 0.1 * (1 + each.source), (place,))]) for each in examples
        ]

    for name in ("nq", "parity"):
        examples = [Example(str(i), f"<i>{i}</i>?", (str(i % 2),), i, {"half": f"half {i // 3}"}) for i in range(6)]
        task = Task(name=name, examples=examples, judge=judge, settings={"num_passages": 1234}, macro=("half",))
        evaluate(task, {"zero": says("0"), "one": says("1")}, tmp_path / "runs" / name)
    return tmp_path / "runs"


def test_a_report_is_one_file_that_loads_nothing(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(runs), "-o", str(page), "--markdown", "--title", "A & B"]) == 0
    out, err = capsys.readouterr()
    assert err == f"quoth: wrote {page}\n"
    html = page.read_text(encoding="utf-8")
    assert "<title>A &amp; B</title>" in html
    assert "<script" not in html
    assert "<i>" not in html
    assert set(re.findall(r"(?:https?:)?//[^\"' ]+", html)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(?:src|srcset|@import)\b", html)
    for svg in re.findall(r"<svg.*?</svg>", html):
        ElementTree.fromstring(svg)
    assert "| nq | zero | 6 | exact match | 50.0 [" in out
    assert "Wrong answers of one: 3 of 3" in out
    assert "| REALM, pre-trained on Wikipedia | Guu et al. 2020, table 1 | exact match | 39.2 | 3,610 |" in out
    assert ">39.2<" not in html[html.index("<h2>parity") :]
    folder = tmp_path / "pictures"
    assert main(["report", str(runs), "--pictures", str(folder), "--markdown"]) == 0
    shown = capsys.readouterr().out
    drawn = sorted(folder.iterdir())
    assert drawn
    assert all(f"({each.as_posix()})" in shown for each in drawn)
    assert {ElementTree.parse(each).getroot().tag for each in drawn} == {"{http://www.w3.org/2000/svg}svg"}
    assert main(["report", str(runs / "nq"), "--markdown"]) == 0
    assert "parity" not in capsys.readouterr().out


def test_mistakes_are_one_clear_line(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, says in {
        (str(runs),): "nowhere to write; name a file with -o report.html",
        (str(runs), "--markdown", "r.md"): "r.md is not a run: --markdown takes no file but prints the page; write it "
        "with: --markdown > r.md",
        (str(runs), "--markdown", "r.html"): "r.html is not a run: name the page to write with: -o r.html",
        (str(tmp_path), "--markdown"): "name the folder of a run",
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
    report = evaluate(task, {"slow": lazily(load)}, tmp_path / "run")
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
            assert shown.locator("svg").first.bounding_box()["width"] > 300
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
