"""The page in a real browser: what is asked, what is shown, and that what is highlighted is what was answered.

The answers are scripted, over real corpora; everything else is the service's own. Needs Chromium and playwright; with
QUOTH_TEST_BROWSER=1 their lack is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import quoth
from quoth.errors import CorpusNotFoundError, InputError
from quoth.records import Evidence, Hit, Hits, Match, Prediction, Predictions, Status

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")
if not os.environ.get("QUOTH_TEST_BROWSER"):
    pytest.importorskip("playwright.sync_api", reason="pip install playwright, to test the page in a browser")

import uvicorn
from playwright.sync_api import expect, sync_playwright
from reportlab.pdfbase.pdfmetrics import stringWidth
from written import both, lines, pdf, xlsx

from quoth_serve.app import create_app
from quoth_serve.limits import Limits
from quoth_serve.running import bound
from quoth_serve.security import Access

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("QUOTH_TEST_BROWSER"), reason="no Chromium; apt-get install chromium"
)
FILLING = "The city has many streets and squares. " * 60
TEXTS = (
    ("paris", "Paris", f"🗼 Paris 🥐 is the capital of France. {FILLING}Its mayor is Anne Hidalgo 🚲, and so it goes."),
    ("berlin", "Berlin & <b>Bär</b>", "Berlin is the capital of Germany. Its mayor is Michael Müller."),
)
NEW_MAYOR = ("berlin", "Berlin & <b>Bär</b>", "Berlin is the capital of Germany. Its mayor is Kai Wegner.")
ANSWERS = {
    "mayor of Paris": ["Anne Hidalgo"],
    "Which things": ["- oats\n- an egg"],
    "Its mayor": ["Michael Müller", "Kai Wegner", "Anne Hidalgo"],
}


class Scripted:
    """One snapshot of one corpus, and answers that are looked up in its texts."""

    def __init__(self, corpora: Sequence[quoth.Corpus], patience: threading.Event) -> None:
        self.corpora, self._patience = corpora, patience
        self.fills = self.asks = self

    def ask(self, question: list[str], **_: Any) -> list[Predictions]:
        answers = []
        for each in question:
            found = self._answers(each)
            found.read_as = each.replace("mayer", "mayor") if "mayer" in each else ""
            answers.append(found)
        return answers

    ask.options = quoth.Reader.ask.options

    def fill(self, text: list[str], **_: Any) -> list[Predictions]:
        return [self._answers(each, each) for each in text]

    def classify(self, text: str, labels: Mapping[str, Sequence[str]], **_: Any) -> Predictions:
        return Predictions(
            Prediction(name, 0.0, 0.9 if n == 0 else 0.1, tuple(self._places(words[0], 0.9)))
            for n, (name, words) in enumerate(labels.items())
        )

    def search(self, query: str, k: int, mode: str) -> Hits:
        corpus = self.corpora[-1]
        rows, scores = corpus.bm25(query, k)
        hits = Hits()
        hits.read_as = query.replace("capitel", "<capital>") if "capitel" in query and mode == "auto" else ""
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            passage = corpus.passage(row)
            at = passage.text.find("capital")
            found = (Match("capital", "capital", passage.start + at, passage.start + at + 7, 0.9),) if at >= 0 else ()
            hits.append(Hit(passage, score, found, corpus.name))
        return hits

    def _answers(self, text: str, sequence: str = "") -> Predictions:
        if "broken" in text:
            raise InputError("this <i>cannot</i> be asked")
        if "slow" in text:
            self._patience.wait(30)
        wanted = next((each for name, each in ANSWERS.items() if name in text), None)
        chances = (0.55 if "perhaps" in text else 0.8, 0.1, 0.05) if wanted else (0.02,)
        found = Predictions()
        for phrase in wanted or ["France"]:
            if places := tuple(self._places(phrase, chances[len(found)])):
                chance = chances[len(found)]
                said, items = " ".join(phrase.split()), tuple(phrase.splitlines()) if "\n" in phrase else ()
                status = self._status(chance, chances[0])
                found.append(Prediction(said, 0.0, chance, places, sequence, status, parts=items))
        return Predictions() if "nothing" in text else found

    def _status(self, chance: float, best: float) -> Status:
        return "answered" if chance >= 0.7 else "unsure" if best >= 0.1 else "not_found"

    def _places(self, phrase: str, share: float) -> Iterator[Evidence]:
        for corpus in self.corpora:
            for passage in corpus.passages():
                for each in re.finditer(re.escape(phrase), passage.text):
                    start, end = (passage.start + at for at in each.span())
                    yield Evidence(
                        passage.document_id, passage.title, passage.row, start, end, passage.text, share, corpus.name,
                        passage.start, passage.source_map,
                    )  # fmt: skip


class Backend:
    """The scripted answers over a corpus with two snapshots."""

    def __init__(self, corpus: quoth.Corpus) -> None:
        self._corpus, self.patience = corpus, threading.Event()
        self.folders = {str(corpus.path): corpus.name}

    def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> Scripted:
        if corpus not in (None, "cities"):
            raise CorpusNotFoundError(f"no corpus {corpus!r} is served")
        opened = quoth.Corpus.open(self._corpus.path, snapshot)
        return Scripted([opened.where(where) if where else opened], self.patience)

    def snapshots(self, corpus: quoth.Corpus) -> list[int]:
        return [1, 2]

    def describe(self) -> dict[str, Any]:
        return {"models": {"fill": "a", "ask": "b", "search": []}, "modes": ["bm25", "entity"]}

    def unready(self) -> str:
        return ""

    def refresh(self) -> bool:
        return False


class Served:
    """A running service and a page of a browser on it."""

    def __init__(
        self,
        backend: Backend,
        browser: Any,
        access: Access | None = None,
        limits: Limits | None = None,
        files: Path | None = None,
    ) -> None:
        self.backend = backend
        examples = ["Who is the mayor of Paris?"]
        app = create_app(backend, limits, access, examples=examples, files=files)  # type: ignore[arg-type]
        self._socket = bound("127.0.0.1", 0)
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        while not self._server.started:
            time.sleep(0.01)
        self._context = browser.new_context(viewport={"width": 1300, "height": 850})
        self.page = self._context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if "Content Security" in said.text else None)

    def ask(self, text: str) -> None:
        self.page.fill("#text", text)
        self.page.press("#text", "Enter")

    def shown(self, selector: str) -> list[str]:
        return [" ".join(each.split()) for each in self.page.locator(selector).all_inner_texts()]

    def close(self) -> None:
        """Ends both. Nothing went wrong on the page."""
        self.backend.patience.set()
        self._context.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
        assert not self.wrong


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as started:
        yield (opened := started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]))
        opened.close()


@pytest.fixture
def corpus(tmp_path: Path) -> quoth.Corpus:
    corpus = quoth.Corpus.create(tmp_path / "cities.quoth")
    corpus.add(quoth.Document(*each) for each in TEXTS)
    corpus.replace([quoth.Document(*NEW_MAYOR)])
    return corpus


@pytest.fixture
def served(corpus: quoth.Corpus, browser: Any) -> Iterator[Served]:
    served = Served(Backend(corpus), browser)
    served.page.goto(served.address)
    served.page.wait_for_selector(".empty")
    yield served
    served.close()


def test_an_example_is_asked_and_its_evidence_is_the_answer(served: Served) -> None:
    """The phrase follows characters that JavaScript counts twice; it is in the middle of what is shown."""
    page = served.page
    page.click(".examples button")
    page.wait_for_selector(".facts:has-text('in all')")
    assert served.shown(".answer .phrase") == ["Anne Hidalgo"]
    assert served.shown(".answer .chance") == ["80 %"]
    assert served.shown("#evidence h3") == ["Paris"]
    assert served.shown("#evidence mark") == ["Anne Hidalgo"]
    assert page.text_content(".document") == TEXTS[0][2]
    start = TEXTS[0][2].index("Anne")
    assert f"characters {start:,}–{start + 12:,}" in page.inner_text("#evidence .facts >> nth=0")
    mark, document = (page.locator(each).bounding_box() for each in ("mark", ".document"))
    assert document["y"] <= mark["y"] <= mark["y"] + mark["height"] <= document["y"] + document["height"]
    assert page.locator(".document").evaluate("each => each.scrollTop") > 0
    assert page.inner_text(".passage") in TEXTS[0][2]
    assert "Anne Hidalgo" in page.inner_text(".passage")


REPORT = "The city has many streets and squares, and a river that goes through it, under twelve bridges."
MAYOR = "Its mayor is Anne Hidalgo, as of today."
YELLOW_ROWS = """canvas => {
    const { width, height } = canvas, found = [];
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at] > 250 && pixels[at + 2] < 9) found.push(at / 4);
    const across = found.map(at => at % width);
    const share = (at, of) => 100 * at / of;
    return [share(Math.min(...across), width), share(Math.max(...across), width), share(found[0] / width, height)];
}"""
"""Where a picture is yellow: from left to right, and from where down, in per cent."""


def reports(folder: Path) -> tuple[quoth.Corpus, Path]:
    """A corpus of a PDF and a sheet, and the folder of these files."""
    (folder / "reports" / "2026").mkdir(parents=True)
    page = both(lines(*[REPORT] * 40, top=800), lines(MAYOR, top=90))
    (folder / "reports" / "2026" / "paris.pdf").write_bytes(pdf(lines("Contents"), page))
    (folder / "reports" / "cities.xlsx").write_bytes(
        xlsx(Mayors=[["City", "Mayor"], ["Berlin", "Its mayor is Kai Wegner"]])
    )
    corpus = quoth.Corpus.create(folder / "cities.quoth")
    corpus.add(quoth.read_documents(folder / "reports"))
    corpus.add([quoth.Document("more", "More", TEXTS[1][2])])  # a second snapshot
    return corpus, folder / "reports"


@pytest.mark.parametrize("token", [None, "correct horse"])
def test_the_page_of_a_pdf_is_shown_with_the_phrase_marked(tmp_path: Path, browser: Any, token: str | None) -> None:
    corpus, folder = reports(tmp_path)
    served = Served(Backend(corpus), browser, Access(token) if token else None, files=folder)
    page = served.page
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(served.address)
    if token:
        page.fill("#token", token)
        page.press("#token", "Enter")
    page.wait_for_selector(".empty")
    served.ask("Who is the mayor of Paris?")
    page.wait_for_selector(".sheet canvas")
    assert served.shown(".shown-as [aria-pressed=true]") == ["Page 2"]
    assert "page 2, characters" in page.inner_text(".facts >> nth=0")
    left, right, top = page.locator("canvas").evaluate(YELLOW_ROWS)
    start, end = (72 + stringWidth(each, "Helvetica", 11) for each in ("Its mayor is ", "Its mayor is Anne Hidalgo"))
    assert (left, right) == (pytest.approx(100 * start / 595, abs=0.5), pytest.approx(100 * end / 595, abs=0.5))
    assert top == pytest.approx(100 * (842 - 101) / 842, abs=1)
    frame, canvas = (page.locator(each).bounding_box() for each in (".sheet", "canvas"))
    assert frame["y"] < canvas["y"] + top / 100 * canvas["height"] < frame["y"] + frame["height"] <= 768
    page.click(".shown-as button:has-text('Text')")
    assert served.shown("#evidence mark") == ["Anne Hidalgo"]
    assert page.locator(".sheet").is_hidden()
    with page.expect_download() as saved:
        page.click("button:has-text('Save the file')")
    assert saved.value.suggested_filename == "paris.pdf"
    assert saved.value.path().read_bytes() == (folder / "2026" / "paris.pdf").read_bytes()
    (folder / "2026" / "paris.pdf").unlink()
    page.reload()
    page.click(".answer")
    page.wait_for_selector(".sheet .part:has-text('The page cannot be shown')")
    served.close()


def test_a_place_in_a_sheet_is_told_in_words(tmp_path: Path, browser: Any) -> None:
    corpus, folder = reports(tmp_path)
    served = Served(Backend(corpus), browser, files=folder)
    served.page.goto(served.address)
    served.page.wait_for_selector(".empty")
    served.ask("Its mayor is ___.")
    served.page.click(".answer:has-text('Kai Wegner')")
    served.page.wait_for_selector(".facts:has-text('in all')")
    assert "sheet Mayors, cell B2, characters" in served.page.inner_text("#evidence .facts >> nth=0")
    assert served.page.locator(".sheet").count() == 0
    served.close()


def test_places_in_one_document_are_told_apart_by_their_pages(tmp_path: Path, browser: Any) -> None:
    (tmp_path / "reports").mkdir()
    page_of_both = lines(MAYOR, top=90)
    content = pdf(page_of_both, lines("Contents"), page_of_both)
    (tmp_path / "reports" / "paris.pdf").write_bytes(content)
    corpus = quoth.Corpus.create(tmp_path / "cities.quoth")
    corpus.add(quoth.read_documents(tmp_path / "reports"))
    served = Served(Backend(corpus), browser)
    served.page.goto(served.address)
    served.ask("Who is the mayor of Paris?")
    served.page.wait_for_selector(".places button")
    assert [each.split()[-2:] for each in served.shown(".places button")] == [["p.", "1"], ["p.", "3"]]
    served.close()


def test_the_question_takes_less_room_once_it_is_asked(served: Served) -> None:
    page = served.page
    page.set_viewport_size({"width": 1366, "height": 650})
    page.goto(served.address)
    page.wait_for_selector(".empty")
    before = page.locator("#form").bounding_box()["height"]
    served.ask("Its mayor")
    page.wait_for_selector(".answer")
    assert page.locator("#form").bounding_box()["height"] < min(0.6 * before, 110)
    ends = [each.bounding_box()["y"] + each.bounding_box()["height"] for each in page.locator(".answer").all()]
    assert sorted(ends)[1] <= 650  # two answers are seen whole
    assert page.locator("#text").bounding_box()["height"] > 20
    page.click("[data-view=search]")
    page.wait_for_selector(".empty")
    assert page.locator("#form").bounding_box()["height"] > 0.9 * before


def test_a_list_is_shown_in_its_lines(tmp_path: Path, browser: Any) -> None:
    corpus = quoth.Corpus.create(tmp_path / "cities.quoth")
    corpus.add([quoth.Document("scones", "Scones", "You need:\n- oats\n- an egg")])
    served = Served(Backend(corpus), browser)
    try:
        served.page.goto(served.address)
        served.page.wait_for_selector(".empty")
        served.ask("Which things do I need?")
        served.page.wait_for_selector(".answer")
        assert served.page.inner_text(".answer .phrase") == "- oats\n- an egg"
        assert served.page.locator(".answer .said").count() == 0
    finally:
        served.close()


def test_a_blank_and_several_blanks(served: Served) -> None:
    served.ask("Its mayor is ___.")
    served.page.wait_for_selector(".answer")
    assert served.shown(".answer .phrase") == ["Kai Wegner", "Anne Hidalgo"]
    assert served.shown(".guesses") == ["Unsure"]
    assert served.shown(".said")[0] == "Its mayor is Kai Wegner."
    served.ask("Its mayor is [MASK], the mayor of Paris is ___.")
    served.page.wait_for_selector(".blank")
    assert served.shown(".blank") == [
        "Its mayor is , the mayor of Paris is ….",
        "Its mayor is …, the mayor of Paris is .",
    ]


def test_an_unsure_answer_is_shown_with_its_chance(served: Served) -> None:
    served.ask("The mayor of Paris is perhaps ___.")
    served.page.wait_for_selector(".answer")
    assert served.shown(".guesses") == ["Unsure: Anne Hidalgo, 55 %"]
    assert served.page.inner_text("#status") == "Unsure: Anne Hidalgo, 55 %."
    assert served.page.locator(".says-nothing").count() == 0
    assert served.page.locator("#evidence").is_visible()


def test_the_passages_that_were_read_do_not_say(served: Served) -> None:
    served.ask("Who invented the telephone?")
    served.page.wait_for_selector(".says-nothing")
    assert served.shown(".says-nothing b") == ["No answer was found in the passages that were read."]
    assert served.page.locator(".answer.guess").count() == 1
    assert served.page.locator("#evidence").is_hidden()
    assert served.page.inner_text("#status") == "No answer was found in the passages that were read."
    served.ask("nothing")
    served.page.wait_for_selector("#answers:not(:has(.answer)) .says-nothing")
    assert served.page.locator(".answer").count() == 0


def test_two_snapshots_side_by_side_and_the_link_to_them(served: Served) -> None:
    page = served.page
    served.ask("Its mayor is ___.")
    page.wait_for_selector(".answer")
    page.select_option("#corpus", "cities@1")
    page.wait_for_selector("h2:has-text('snapshot 1')")
    page.select_option("#compare", "cities")
    page.wait_for_selector(".changes")
    assert served.shown("h2") == ["CITIES, SNAPSHOT 1", "CITIES, SNAPSHOT 2"]
    assert served.shown("section .answers >> nth=0") != served.shown("section .answers >> nth=1")
    assert served.shown(".answer .phrase") == ["Michael Müller", "Anne Hidalgo", "Kai Wegner", "Anne Hidalgo"]
    assert served.shown(".changed") == ["changed"]
    assert served.shown(".changes") == ["The best answer changes."]
    page.click(".answer:has-text('Kai Wegner')")
    page.wait_for_selector(".facts:has-text('snapshot 2')")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".facts:has-text('in all')")
    assert served.shown(".answer[aria-expanded=true] .phrase") == ["Kai Wegner"]
    assert served.shown("#evidence mark") == ["Kai Wegner"]
    assert served.shown("#evidence h3") == ["Berlin & <b>Bär</b>"]
    page.click(".answer:has-text('Michael Müller')")
    page.wait_for_selector(".facts:has-text('snapshot 1')")
    assert served.shown("#evidence mark") == ["Michael Müller"]
    assert page.text_content(".document") == TEXTS[1][2]


def test_back_brings_the_last_question_back(served: Served) -> None:
    served.ask("Who is the mayor of Paris?")
    served.page.wait_for_selector(".answer")
    served.ask("nothing")
    served.page.wait_for_selector(".says-nothing")
    served.page.go_back()
    served.page.wait_for_selector(".answer")
    assert served.page.input_value("#text") == "Who is the mayor of Paris?"


def test_the_keyboard_is_enough(served: Served) -> None:
    page, key = served.page, served.page.keyboard
    assert page.evaluate("document.activeElement.id") == "text"
    key.type("Its mayor is ___.")
    key.press("Enter")
    page.wait_for_selector("#evidence mark")
    key.press("ArrowDown")
    key.press("ArrowDown")
    assert "Anne Hidalgo" in page.evaluate("document.activeElement.innerText")
    key.press("Enter")
    page.wait_for_selector(".facts:has-text('in all')")
    assert served.shown("#evidence mark") == ["Anne Hidalgo"]
    key.press("Escape")
    assert page.locator("#evidence").is_hidden()
    assert "Anne Hidalgo" in page.evaluate("document.activeElement.innerText")
    key.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
    page.focus("#tab-ask")
    key.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-search"
    assert page.get_attribute("#tab-search", "aria-selected") == "true"


def test_search_shows_the_keys_that_matched(served: Served) -> None:
    page = served.page
    page.click("#tab-search")
    served.ask("capital of Germany")
    page.wait_for_selector(".answer.hit")
    assert served.shown(".hit .phrase") == ["Berlin & <b>Bär</b>", "Paris"]
    assert served.shown(".hit .keys >> nth=0") == ["capital ↔ capital 0.90"]
    page.click(".hit >> nth=0")
    page.wait_for_selector(".facts:has-text('in all')")
    assert served.shown(".document mark:not(.word)") == ["capital"]
    assert served.shown(".document mark.word") == ["Germany"]


def test_a_passage_is_shown_in_its_own_corpus(corpus: quoth.Corpus, browser: Any, tmp_path: Path) -> None:
    """Though another one has a document of that id."""
    other = quoth.Corpus.create(tmp_path / "post@home.quoth")
    other.add([quoth.Document("paris", "Paris", "From Paris, the capital, with love.")])

    class Both(Backend):
        def view(self, corpus: str | None = None, snapshot: int | None = None, where: str | None = None) -> Scripted:
            opened = {each.name: each for each in (self._corpus, other)}
            return Scripted([opened[corpus]] if corpus else [*opened.values()], self.patience)

    served = Served(Both(corpus), browser)
    served.page.goto(served.address)
    served.page.wait_for_selector(".empty")
    served.page.click("#tab-search")
    for place in ("", "post@home"):
        served.page.select_option("#corpus", place)
        served.ask("capital")
        where = re.compile(r"score [\d.]+ · paris" + ("" if place else " · post@home"))
        expect(served.page.locator(".hit .where").first).to_have_text(where)  # after those of before
        served.page.click(".hit >> nth=0")
        served.page.wait_for_selector(".facts:has-text('in all')")
        assert served.shown(".document") == ["From Paris, the capital, with love."]
    served.close()


def test_what_was_read_in_place_of_a_misspelt_question_is_told(served: Served) -> None:
    page = served.page
    served.ask("Who is the mayer of Rome?")
    page.wait_for_selector(".guesses")
    assert served.shown(".guesses")[0] == "Read as: Who is the mayor of Rome?"
    assert page.inner_text("#status").startswith("Read as: Who is the mayor of Rome? No answer was found")
    page.click("#tab-search")
    served.ask("capitel of Germany")
    page.wait_for_selector(".answer.hit")
    assert served.shown(".guesses") == ["Read as: <capital> of Germany"]


def test_the_quotations_of_a_draft_are_checked(served: Served) -> None:
    page = served.page
    page.click("#tab-check")
    draft = "He says “Berlin is the capital of Germany”,\nshe “Berlin is the capital of France, and so it goes”."
    page.fill("#text", draft)
    page.press("#text", "Control+Enter")
    page.wait_for_selector(".check")
    assert served.shown(".draft >> nth=0 >> mark.faithful") == ["Berlin is the capital of Germany"]
    assert served.shown(".verdict") == ["word for word", "altered"]
    page.click(".draft mark.wrong")
    assert "France" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("Enter")
    page.wait_for_selector(".facts:has-text('in all')")
    assert page.inner_text("#status") == "2 quotations, 1 of them altered or in no document."
    page.click("summary:has-text('word for word')")
    assert served.shown("details mark.word") == ["Berlin is the capital of Germany"]
    page.fill("#text", "Nothing is quoted here.")
    page.press("#text", "Control+Enter")
    page.wait_for_selector(".says-nothing")
    assert served.shown(".says-nothing b") == ["There are no quotations in this text."]


def test_labels_and_where_the_time_went(served: Served) -> None:
    page = served.page
    page.click("#tab-classify")
    page.fill("#labels", "big: capital\nsmall: mayor")
    served.ask("Paris")
    page.wait_for_selector(".answer")
    assert served.shown(".answer .phrase") == ["big", "small"]
    assert "“capital” in Paris" in page.inner_text(".answer .where >> nth=0")
    page.click("summary:has-text('where the time went')")
    assert any(each.startswith("around it") for each in served.shown(".time li"))


def test_errors_are_told_and_can_be_tried_again(served: Served) -> None:
    page = served.page
    served.ask("this is broken")
    page.wait_for_selector(".trouble")
    assert page.inner_text("[role=alert] p") == "This <i>cannot</i> be asked."
    page.route("**/v1/ask", lambda route: route.abort())
    served.ask("Who is the mayor of Paris?")
    page.wait_for_selector(".trouble:has-text('Is it still running?')")
    page.unroute("**/v1/ask")
    page.click("text=Try again")
    page.wait_for_selector(".answer")
    assert page.locator(".trouble").count() == 0


def test_errors_are_sentences_without_names_of_fields(served: Served) -> None:
    served.ask("x" * 20_001)
    served.page.wait_for_selector(".trouble")
    said = "This text has 20,001 characters, but the service reads at most 20,000 at once. Please shorten it."
    assert served.page.inner_text("[role=alert] p") == said


def test_labels_are_those_that_are_given(served: Served) -> None:
    page = served.page
    page.click("#tab-classify")
    assert page.input_value("#labels") == ""
    served.ask("Paris")
    assert "Name two labels or more" in page.inner_text("[role=alert] p")
    assert page.evaluate("document.activeElement.id") == "labels"


@pytest.mark.parametrize(("width", "height"), [(1366, 650), (1280, 720), (1300, 850), (390, 700)])
def test_the_phrase_is_in_the_window(served: Served, width: int, height: int) -> None:
    page = served.page
    page.set_viewport_size({"width": width, "height": height})
    served.ask("Who is the mayor of Paris?")
    page.wait_for_selector(".answer")
    if page.locator("#evidence").is_hidden():
        page.click(".answer")
    page.wait_for_selector(".facts:has-text('in all')")
    mark, panel = (page.locator(each).bounding_box() for each in ("mark", ".document"))
    assert max(0, panel["y"]) <= mark["y"]
    assert mark["y"] + mark["height"] <= min(height, panel["y"] + panel["height"]) + 1  # a browser scrolls whole pixels


@pytest.mark.parametrize(("answer", "said"), [("resolve", "Copied"), ("reject", "The browser does not allow copying")])
def test_the_quotation_is_copied_or_the_refusal_is_shown(served: Served, answer: str, said: str) -> None:
    page = served.page
    page.evaluate(
        f"() => {{ navigator.clipboard.writeText = (text) => {{ window.copied = text; return Promise.{answer}(); }} }}"
    )
    served.ask("Who is the mayor of Paris?")
    page.wait_for_selector(".facts:has-text('in all')")
    page.click(".copy")
    page.wait_for_selector(f".copy:has-text('{said}')")
    start = TEXTS[0][2].index("Anne")
    assert page.evaluate("window.copied") == f"“Anne Hidalgo” (Paris, characters {start:,}–{start + 12:,})"


@pytest.mark.parametrize(
    ("url", "shown"),
    [("https://example.org/paris", 1), ("javascript:alert(1)", 0), ("https://[", 0), (5, 0)],
)
def test_the_source_is_linked_if_it_is_a_page(corpus: quoth.Corpus, served: Served, url: Any, shown: int) -> None:
    corpus.replace([quoth.Document(*TEXTS[0], {"url": url})])
    served.ask("Who is the mayor of Paris?")
    served.page.wait_for_selector(".facts:has-text('in all')")
    links = served.page.locator("#evidence a")
    assert links.count() == shown
    if shown:
        assert (links.get_attribute("href"), links.get_attribute("rel")) == (url, "noopener noreferrer")


def test_the_tabs_work_before_anything_is_known(corpus: quoth.Corpus, browser: Any) -> None:
    served = Served(Backend(corpus), browser, Access("correct horse"))
    served.page.goto(served.address)
    served.page.wait_for_selector("#token")
    served.page.click("#tab-search")
    assert served.page.locator("h1").count() == 1
    served.close()


def test_a_slow_answer_can_be_stopped(served: Served) -> None:
    page = served.page
    served.ask("slow")
    page.wait_for_selector(".waiting")
    assert page.get_attribute("#board", "aria-busy") == "true"
    page.click("text=Stop")
    page.wait_for_selector(".empty")
    served.backend.patience.set()


def test_the_page_asks_for_the_token(corpus: quoth.Corpus, browser: Any) -> None:
    served = Served(Backend(corpus), browser, Access("correct horse"))
    served.page.goto(served.address)
    served.page.fill("#token", "correct horse")
    served.page.press("#token", "Enter")
    served.page.wait_for_selector(".empty")
    served.ask("Who is the mayor of Paris?")
    served.page.wait_for_selector("#evidence mark")
    served.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1300, "light")])
def test_it_fits_small_and_large_screens(served: Served, width: int, scheme: str) -> None:
    served.page.emulate_media(color_scheme=scheme)
    served.page.set_viewport_size({"width": width, "height": 800})
    served.ask("Who is the mayor of Paris?")
    served.page.wait_for_selector(".answer")
    assert served.page.evaluate("document.documentElement.scrollWidth") <= width
