"""The page of a table in a real browser: sorted, filtered, corrected by hand; the next run takes the corrections up.

Needs Chromium and playwright; with QUOTH_TEST_BROWSER=1 their lack is an error.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import scripted

import quoth

if not os.environ.get("QUOTH_TEST_BROWSER"):
    pytest.importorskip("playwright.sync_api", reason="pip install playwright, to test the page in a browser")

from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("QUOTH_TEST_BROWSER"), reason="no Chromium; apt-get install chromium"
)
SIGNER = "Who signed it?"
QUESTIONS: list[Any] = [
    SIGNER,
    {"name": "end", "question": "When does it end?", "type": "date"},
    {"name": "fee", "question": "What is the fee?", "type": "money"},
    {"name": "heirs", "question": "Who gets it?", "type": "list"},
]
TEXTS = {
    "a": "Ann Baker signed this. It ends on 3 April 2024. The fee is US$ 900. It goes to Carl, Dora and Eve.",
    "b": "Carl Dean signed this. So Eve Fox signed it too. It ends on 31 December 2023. The fee is US$ 1,500.",
    "c": "Nobody did. It ends perhaps on 1 May 2020. It goes to Dora and Gil.",
    "d <&'\"": "Gil Hays signed this. <b>The</b> fee is $5 to $10. “Ten” it was.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    made = quoth.Corpus.create(tmp_path / "c.quoth")
    made.add(quoth.Document(name, "", text) for name, text in TEXTS.items())
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "t.html"


@pytest.fixture
def opened(browser: Any, out: Path) -> Iterator[Any]:
    """Opens the page as a browser without a dialog to save files; no error may occur on it."""
    context = browser.new_context(viewport={"width": 1366, "height": 768}, accept_downloads=True)
    errors = list[str]()

    def open_page(script: str = "delete window.showSaveFilePicker") -> Any:
        page = context.new_page()
        page.add_init_script(script)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(out.as_uri())
        return page

    yield open_page
    context.close()
    assert errors == []


def make(corpus: quoth.Corpus, out: Path) -> dict[tuple[str, str], Any]:
    rows = quoth.table(corpus, QUESTIONS, model=scripted()[0], output=out).rows
    return {(row.document_id, name): cell for row in rows for name, cell in row.cells.items()}


def cell(page: Any, row: str, column: int) -> Any:
    at = [*TEXTS].index(row)
    ids = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.id)")
    return page.locator(f"tbody tr:nth-child({ids.index([*TEXTS][at]) + 1}) td:nth-child({column + 1})")


def shows(page: Any, rows: list[str]) -> None:
    """These rows come to stand first, in this order."""
    for at, row in enumerate(rows):
        expect(page.locator("tbody tr:visible").nth(at)).to_have_attribute("data-id", row)


def test_rows_are_sorted_and_filtered(corpus: quoth.Corpus, out: Path, opened: Any) -> None:
    make(corpus, out)
    page = opened()
    a, b, c, d = TEXTS
    shows(page, [a, b, c, d])
    expect(page.locator("tbody tr:visible")).to_have_count(4)
    page.get_by_role("button", name="fee").click()
    shows(page, [a, b])
    page.get_by_role("button", name="fee").click()
    shows(page, [b, a])
    page.get_by_role("button", name="Document").click()
    facet = page.locator("th:nth-child(5) .facet")
    facet.locator("summary").click()
    expect(facet.locator("label")).to_have_count(5)
    labels = facet.locator("label").all_inner_texts()
    assert [" ".join(each.split()) for each in labels] == ["(empty) 2", "Dora 2", "Carl 1", "Eve 1", "Gil 1"]
    facet.get_by_label("Dora").check()
    shows(page, [a, c])
    expect(page.locator("tbody tr:visible")).to_have_count(2)
    expect(page.locator("#count")).to_have_text("2 of 4 rows")
    page.get_by_label("Find").fill("nobody")
    shows(page, [c])
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    page.get_by_label("Find").fill("")
    facet.get_by_label("Dora").uncheck()
    page.keyboard.press("Escape")
    page.locator("th:nth-child(4) .facet summary").click()
    page.get_by_role("textbox", name="from").fill("1000")
    shows(page, [b])
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    page.get_by_role("textbox", name="from").fill("")
    page.get_by_role("textbox", name="to").fill("1000")
    shows(page, [a])
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    page.get_by_role("textbox", name="to").fill("")
    page.get_by_label("Rows with").select_option("confirmed")
    expect(page.locator("tbody tr:visible")).to_have_count(0)


def test_cells_are_corrected_and_taken_up(corpus: quoth.Corpus, out: Path, opened: Any, tmp_path: Path) -> None:
    first = make(corpus, out)
    page, odd = opened(), [*TEXTS][3]
    cell(page, "a", 1).locator("button").click()
    page.get_by_role("button", name="Right").click()
    expect(cell(page, "b", 1)).to_have_class("open")  # the next below
    page.locator("aside blockquote").nth(1).get_by_role("button", name="Use this").click()
    expect(cell(page, "c", 1)).to_have_class("open")
    page.locator("aside").get_by_role("button", name="Not stated").click()
    page.keyboard.press("Escape")
    cell(page, odd, 3).locator("button").click()
    page.locator("aside").get_by_label("quotation").fill('"ten"')
    page.locator("aside").get_by_label("value").fill("10 EUR")
    page.locator("aside").get_by_label("value").press("Enter")
    cell(page, "c", 2).locator("button").click()
    page.locator("aside").get_by_label("value").fill("2020-05-02")
    page.get_by_role("button", name="Set").click()
    page.keyboard.press("Escape")
    page.get_by_label("Rows with").select_option("confirmed")
    expect(page.locator("#count")).to_have_text("4 of 4 rows")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save 5 corrections").click()
    name = download.value.suggested_filename
    assert name.startswith("t.corrections-")
    assert name.endswith(".json")
    download.value.save_as(tmp_path / name)
    expect(page.get_by_role("button", name="Save 5 corrections")).to_be_disabled()
    found = make(corpus, out)
    assert {key for key, each in found.items() if each.status == "confirmed"} == {
        *(("a", SIGNER), ("b", SIGNER), ("c", SIGNER), (odd, "fee"), ("c", "end"))
    }
    assert [found[each, SIGNER].text for each in "abc"] == ["Ann Baker", "Eve Fox", ""]
    assert found["b", SIGNER].evidence[0]["start"] == TEXTS["b"].index("Eve Fox")
    ten = found[odd, "fee"]
    assert (ten.text, ten.value) == ("“Ten”", {"amount": 10, "currency": "EUR"})
    assert ten.evidence[0]["start"] == TEXTS[odd].index("“Ten”")
    assert (found["c", "end"].text, found["c", "end"].value) == ("1 May 2020", "2020-05-02")
    again = opened()
    expect(cell(again, "b", 1)).to_have_attribute("data-s", "confirmed")
    cell(again, "b", 1).locator("button").click()
    again.get_by_role("button", name="Take back").click()
    with again.expect_download() as download:
        again.get_by_role("button", name="Save 1 correction").click()
    download.value.save_as(tmp_path / "t.corrections-later.json")
    assert make(corpus, out)["b", SIGNER] == first["b", SIGNER]


PICKER = """
window.written = [];
window.isFull = false;
window.showSaveFilePicker = async options => ({name: options.suggestedName, createWritable: async () => ({
  write: async content => { if (window.isFull) throw Error("full"); window.written.push(content); },
  close: async () => {}})});
"""


def test_a_chosen_file_is_written_at_once(corpus: quoth.Corpus, out: Path, opened: Any) -> None:
    make(corpus, out)
    page = opened(PICKER)
    cell(page, "a", 1).locator("button").click()
    page.get_by_role("button", name="Right").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Save 1 correction").click()
    expect(page.locator("#told")).to_contain_text("saved in t.corrections-")
    cell(page, "a", 2).locator("button").click()
    page.locator("aside").get_by_role("button", name="Not stated").click()
    expect(page.get_by_role("button", name="Save 2 corrections")).to_be_disabled()
    page.wait_for_function("window.written.length === 2")
    first, second = (json.loads(each)["corrections"] for each in page.evaluate("window.written"))
    assert [each["text"] for each in first] == ["Ann Baker"]
    assert [(each["document_id"], each["column"], each["text"]) for each in second] == [
        *(("a", SIGNER, "Ann Baker"), ("a", "end", ""))
    ]
    page.evaluate("window.isFull = true")
    page.locator("aside").get_by_role("button", name="Not stated").click()
    expect(page.locator("#told")).to_have_text("not saved: full")
    expect(page.get_by_role("button", name="Save 3 corrections")).to_be_enabled()
    assert first[0]["start"] == 0
    assert first[0]["sentence"] == "Ann Baker signed this."


def test_what_is_gone_is_shown(corpus: quoth.Corpus, out: Path, opened: Any, tmp_path: Path) -> None:
    said = {"document_id": "a", "column": SIGNER, "text": "Ann Baker"}
    (tmp_path / "t.corrections.json").write_text(json.dumps({"corrections": [said]}))
    make(corpus, out)
    corpus.replace([quoth.Document("a", "", "Eve Fox signed this.")])
    make(corpus, out)
    page = opened()
    page.get_by_label("Rows with").select_option("gone")
    shows(page, ["a"])
    expect(page.locator("tbody tr:visible")).to_have_count(1)
    page.locator("tbody tr:visible td:nth-child(2) button").click()
    expect(page.locator("aside p.gone")).to_contain_text("was confirmed as “Ann Baker” before the document changed")
    expect(page.locator("aside mark").first).to_have_text("Eve Fox")
