"""The page's filter in a real browser: what is chosen is the condition, which is asked, kept in the address, edited.

Needs what `test_page` needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import quoth
from quoth.corpus.where import parse
from quoth.errors import InputError

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api")
test_page = pytest.importorskip("test_page")

Served, Backend, browser, pytestmark = test_page.Served, test_page.Backend, test_page.browser, test_page.pytestmark
MARKUP = "O'Neill <b>& Co</b>"
METADATA: list[dict[str, Any]] = [
    {"source": "minutes", "date": "2023-03-01", "pages": 4, "odd name": "x", "same": 1, 'quote"d': "x"},
    {"source": "minutes", "date": "2024-05-01", "pages": 12, "odd name": "y", "same": 1},
    {"source": MARKUP, "date": "2024-06-30", "pages": 40, "same": 1},
    {"source": "letters", "date": "2025-01-01", "pages": 7, "odd name": "x", "same": 1},
]
MAYORS = ["Michael Müller", "Kai Wegner", "Anne Hidalgo", "Kai Wegner"]
FIELDS = """[{name: "source", kind: "", values: ["'a'", "'b''s'", "true", "3"]},
    {name: "date", kind: "date", values: []}, {name: "n", kind: "number", values: []},
    {name: "odd name", kind: "", values: ["'x'"]}, {name: "in", kind: "", values: ["'x'"]}]"""


def serving(folder: Path, browser: Any) -> Iterator[Any]:
    corpus = quoth.Corpus.create(folder / "cities.quoth")
    documents = [
        quoth.Document(f"d{n}", f"T{n}", f"Its mayor is {mayor}.", metadata | {"path": f"notes/{n}.md"})
        for n, (mayor, metadata) in enumerate(zip(MAYORS, METADATA, strict=True))
    ]
    more = [quoth.Document(f"e{n}", "", "A text.", {"path": f"e/{n}.md", "same": 1}) for n in range(3)]
    corpus.add(documents)
    corpus.add(more)
    served = Served(Backend(corpus), browser)
    served.page.set_viewport_size({"width": 1366, "height": 768})
    served.page.goto(served.address)
    served.page.wait_for_selector("#filter")
    yield served
    served.close()


@pytest.fixture
def served(tmp_path: Path, browser: Any) -> Iterator[Any]:
    yield from serving(tmp_path, browser)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[Any]:
    """A page for all tests that only call its functions."""
    yield from serving(tmp_path_factory.mktemp("unchanged"), browser)


def kept(served: Any) -> str | None:
    """The condition in the address."""
    found = parse_qs(urlsplit(served.page.url).fragment).get("where")
    return found[0] if found else None


def answered(served: Any, *phrases: str) -> None:
    """Waits until these are the answers."""
    served.page.wait_for_function(
        "wanted => JSON.stringify([...document.querySelectorAll('.phrase')].map(each => each.innerText)) === wanted",
        arg=json.dumps(phrases, ensure_ascii=False, separators=(",", ":")),
    )


def group(served: Any, name: str) -> Any:
    return served.page.get_by_role("group", name=name, exact=True)


def test_values_are_chosen_and_asked(served: Any) -> None:
    page = served.page
    assert not page.is_visible("#where")
    page.click("#filter summary")
    assert served.shown("#facets legend") == ["date", "pages", "odd name", "source"]
    assert page.inner_text("#others") == "Other fields: path, same. "
    source = group(served, "source")
    assert source.locator("label").all_inner_texts() == [
        "minutes\n2\ndocuments", f"{MARKUP}\n1\ndocument", "letters\n1\ndocument"
    ]  # fmt: skip
    served.ask("Its mayor is ___.")
    answered(served, "Michael Müller", "Kai Wegner", "Anne Hidalgo")
    source.get_by_label("minutes").focus()
    page.keyboard.press("Space")
    answered(served, "Michael Müller", "Kai Wegner")
    assert kept(served) == page.input_value("#where") == "source = 'minutes'"
    assert page.evaluate("document.activeElement.value") == "'minutes'"
    source.get_by_text(MARKUP).click()
    answered(served, "Michael Müller", "Kai Wegner", "Anne Hidalgo")
    assert kept(served) == "source in ('minutes', 'O''Neill <b>& Co</b>')"
    source.get_by_text("minutes").click()
    answered(served, "Anne Hidalgo")
    page.click("#clear")
    answered(served, "Michael Müller", "Kai Wegner", "Anne Hidalgo")
    assert kept(served) is None
    assert not source.get_by_label(MARKUP).is_checked()


def test_ranges_and_the_address(served: Any) -> None:
    page = served.page
    page.click("#filter summary")
    served.ask("Its mayor is ___.")
    answered(served, "Michael Müller", "Kai Wegner", "Anne Hidalgo")
    dates, pages = group(served, "date"), group(served, "pages")
    assert dates.get_by_label("from").get_attribute("placeholder") == "2023-03-01"
    assert pages.get_by_label("to").get_attribute("placeholder") == "40"
    dates.get_by_label("from").fill("2024-05")
    dates.get_by_label("from").press("Enter")
    answered(served, "Kai Wegner", "Anne Hidalgo")
    pages.get_by_label("to").fill("12")
    pages.get_by_label("to").press("Tab")
    answered(served, "Kai Wegner")
    assert kept(served) == "date >= '2024-05' and pages <= 12"
    dates.get_by_label("to").fill("May")
    dates.get_by_label("to").press("Tab")
    assert page.input_value("#where") == "date >= '2024-05' and pages <= 12"
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    answered(served, "Kai Wegner")
    page.wait_for_selector("#facets input", state="attached")
    assert page.inner_text("#filter-said") == "date >= '2024-05' and pages <= 12"
    page.click("#filter summary")
    assert (dates.get_by_label("from").input_value(), pages.get_by_label("to").input_value()) == ("2024-05", "12")


def test_a_condition_by_hand(served: Any) -> None:
    page = served.page
    page.click("#filter summary")
    served.ask("Its mayor is ___.")
    answered(served, "Michael Müller", "Kai Wegner", "Anne Hidalgo")
    page.fill("#where", "source = 'letters' and title like 't%'")
    assert group(served, "source").get_by_label("letters").is_checked()
    page.press("#where", "Enter")
    answered(served, "Kai Wegner")
    group(served, "source").get_by_text("minutes").click()
    answered(served, "Michael Müller", "Kai Wegner")
    assert kept(served) == "source in ('minutes', 'letters') and title like 't%'"
    page.fill("#where", "sorce = 'letters'")
    page.press("#where", "Enter")
    page.wait_for_selector("#where-problem:has-text('did you mean source?')")
    assert page.inner_text("#where-problem").startswith("where: no document has a field 'sorce'")
    assert page.get_attribute("#where", "aria-invalid") == "true"
    assert page.locator(".answer, .trouble").count() == 0
    page.go_back()
    answered(served, "Michael Müller", "Kai Wegner")
    assert page.input_value("#where") == "source in ('minutes', 'letters') and title like 't%'"
    assert page.inner_text("#where-problem") == ""


def test_the_problem_is_shown_when_the_filter_is_closed(served: Any) -> None:
    served.page.goto(served.address + "#view=ask&q=Its+mayor+is+___.&where=source+%3D")
    served.page.reload()
    served.page.wait_for_selector("#where-problem:has-text('the end instead of a value')")
    assert served.page.input_value("#where") == "source ="


def test_without_fields_there_is_no_filter(tmp_path: Path, browser: Any) -> None:
    corpus = quoth.Corpus.create(tmp_path / "cities.quoth")
    corpus.add(quoth.Document(*each) for each in test_page.TEXTS)
    corpus.replace([quoth.Document(*test_page.NEW_MAYOR)])
    served = Served(Backend(corpus), browser)
    with served.page.expect_response("**/v1/fields**"):
        served.page.goto(served.address)
    served.page.wait_for_selector(".empty")
    assert served.page.locator("#filter").is_hidden()
    served.close()


@pytest.mark.parametrize(
    ("text", "chosen", "rest"),
    [
        ("", {}, []),
        ("source = 'a'", {"source": ["'a'"]}, []),
        ("SOURCE = 'a'", {}, ["SOURCE = 'a'"]),
        ("source IN ('b''s', true,3) AND n <= -1.5e3", {"source": ["'b''s'", "true", "3"], "n": ["", "-1.5e3"]}, []),
        ("\"source\" = 'a' and \"in\" = 'x'", {"source": ["'a'"], "in": ["'x'"]}, []),
        ("\"odd name\" = 'x'", {"odd name": ["'x'"]}, []),
        ("date >= '2024-05' and date <= '2024'", {"date": ["'2024-05'", "'2024'"]}, []),
        ("date >= 'May' and n >= '5'", {}, ["date >= 'May'", "n >= '5'"]),
        (
            "n >= 1 and n >= 2 and source = 'a' and source = 3",
            {"n": ["1", ""], "source": ["'a'"]},
            ["n >= 2", "source = 3"],
        ),
        ("source = 'other'", {}, ["source = 'other'"]),
        ("source != 'a'", {}, ["source != 'a'"]),
        ("source not in ('a')", {}, ["source not in ('a')"]),
        ("not source = 'a' and source = 3", {"source": ["3"]}, ["not source = 'a'"]),
        ("n between 1 and 5 and source = 'a'", {"source": ["'a'"]}, ["n between 1 and 5"]),
        ("(n = 1 or n between 2 and 3) and source = 'a'", {"source": ["'a'"]}, ["(n = 1 or n between 2 and 3)"]),
        ("source = 'a' or n >= 1", {}, ["(source = 'a' or n >= 1)"]),
        ("title = 'this and that or (' and source = 'a'", {"source": ["'a'"]}, ["title = 'this and that or ('"]),
        ("source = 'a' and", {}, ["source = 'a' and"]),
        ("(source = 'a'", {}, ["(source = 'a'"]),
        ("source = 'a') or (n = 1", {}, ["source = 'a') or (n = 1"]),
        ("source ~ 'a'", {}, ["source ~ 'a'"]),
        ("once", {}, ["once"]),
        ("source = 'a' ONCE", {"source": ["'a'"]}, ["once"]),
        ("(source = 'a' or n >= 1)once", {}, ["(source = 'a' or n >= 1)", "once"]),
    ],
)
def test_a_condition_as_choices(unchanged: Any, text: str, chosen: dict[str, list[str]], rest: list[str]) -> None:
    """What is made of the choices means the same as what was read."""
    found, other, made = unchanged.page.evaluate(
        f"""async text => {{
            const {{ read, write }} = await import("/page/condition.js");
            const {{ chosen, rest }} = read(text, {FIELDS});
            const told = [...chosen].map(([name, own]) => [name, own.values.length ? own.values : [own.from, own.to]]);
            return [Object.fromEntries(told), rest, write(chosen, rest, {FIELDS})];
        }}""",
        text,
    )
    assert (found, other) == (chosen, rest)
    records: list[dict[str, Any]] = [
        {"source": source, "n": n, "date": date, "odd name": odd, "in": odd, "title": "T"}
        for source in ("a", "b's", True, 3, "c")
        for n in (-2000, 1, 2, 7)
        for date in ("2023", "2024-05-31")
        for odd in ("x", "y")
    ]
    try:
        meant = [parse(text)(each) for each in records] if text else []
    except InputError:
        with pytest.raises(InputError):
            parse(made)
    else:
        assert ([parse(made)(each) for each in records] if made else []) == meant
