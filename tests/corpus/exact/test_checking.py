"""The quotations of whole drafts: by the source that is named, and what reports say of them."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from quoth import Corpus, Document, verify_quotes
from quoth.corpus.exact.checking import Checker
from quoth.corpus.exact.drafts import Draft
from quoth.corpus.exact.reports import Checked, as_html, as_sarif, marked_quote, marked_source, told
from quoth.errors import InputError

TEXTS = {
    "operas/carmen.md": ("Carmen, an opera", "Carmen is an opera in four acts. It was not well received in 1875."),
    "operas/faust.md": ("Faust", "Faust is an opera in five acts. It was well received in 1859."),
    "scan's.pdf": ("A scan", ""),
    "12": ("Paris", "A city on the Seine."),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = Corpus.create(tmp_path_factory.mktemp("checking") / "texts.quoth")
    made.add(Document(name, title, text) for name, (title, text) in TEXTS.items())
    return made


@pytest.mark.parametrize(
    ("beside", "status", "source"),
    [
        ("", "verbatim", ""),
        (" (carmen.md)", "verbatim", "carmen.md"),
        (" (operas/carmen.md, p. 3)", "verbatim", "operas/carmen.md"),
        (
            " ([there](https://example.org/operas/carmen.md#acts))",
            "verbatim",
            "https://example.org/operas/carmen.md#acts",
        ),
        (" (Carmen, an opera)", "verbatim", "Carmen, an opera"),
        (" (Carmen, an Opera, p. 3)", "verbatim", "Carmen, an Opera"),
        (" (operas/faust.md)", "altered", "operas/faust.md"),  # it says five
        (" (none.pdf)", "verbatim", "none.pdf"),  # found elsewhere
        (" (Paris)", "verbatim", ""),  # a word, that is no name of a document
        (" (an aside)", "verbatim", ""),
    ],
)
def test_the_source_that_is_named(corpus: Corpus, beside: str, status: str, source: str) -> None:
    [found] = verify_quotes(corpus, f"It is “an opera in four acts”{beside}.")
    assert (found.status, found.source) == (status, source)


@pytest.mark.parametrize("source", ["none.pdf", "[x](https://example.org/none)", "scan's.pdf", "A scan, p. 3"])
def test_what_is_not_in_the_corpus_or_no_text_is_never_called_false(corpus: Corpus, source: str) -> None:
    [found] = verify_quotes(corpus, f"It is “an opera of many acts” ({source}).")
    assert (found.status, found.evidence, found.changes) == ("unreadable", (), ())


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("> an opera in four acts (Smith 2010, p. 3).\n", "typographic"),
        ("> an opera in four acts. (Smith, 2010)\n", "typographic"),
        ("“an opera in four acts (p. 3)”", "typographic"),
        ("“an opera in four acts (Smith 2010: 33–35).”", "typographic"),
        ("“an opera in four acts (May 2010)”", "altered"),
        ("“an opera in four acts (max. 3)”", "altered"),
        ("“an opera in four acts (3)”", "altered"),
        ("“an opera in nine acts (p. 3)”", "altered"),
    ],
)
def test_a_citation_behind_a_quotation_is_not_part_of_it(corpus: Corpus, said: str, status: str) -> None:
    assert [each.status for each in verify_quotes(corpus, said)] == [status]


def test_a_citation_of_the_source_itself_is_compared(tmp_path: Path) -> None:
    made = Corpus.create(tmp_path / "acts")
    made.add([Document("act", "", "The owner shall pay it in full (Housing Act 1985, p. 3).")])
    for year, status in (("1985", "verbatim"), ("1988", "altered")):
        [found] = verify_quotes(made, f"“The owner shall pay it in full (Housing Act {year}, p. 3).”")
        assert found.status == status


def test_a_wrong_source_is_told(corpus: Corpus) -> None:
    [found] = verify_quotes(corpus, "“It was not well received in 1875” (faust.md).")
    [change] = [each for each in found.changes if each.kind == "source"]
    assert (found.status, change.quoted, change.source) == ("altered", "faust.md", "operas/carmen.md")
    assert "operas/carmen.md" in told(change)


def test_several_corpora_texts_files_and_documents(corpus: Corpus, tmp_path: Path) -> None:
    more = Corpus.create(tmp_path / "more.quoth")
    more.add([Document("norma", "", "Norma is an opera in two acts.")])
    draft = "“Norma is an opera in two acts”\n\n> Faust is an opera in five acts."
    found = verify_quotes([corpus, more], draft)
    assert [(each.status, each.evidence[0].corpus) for each in found] == [("verbatim", "more"), ("verbatim", "texts")]
    file = tmp_path / "draft.md"
    file.write_text(draft, encoding="utf-8")
    assert verify_quotes([corpus, more], file) == found
    assert len(verify_quotes(corpus, Document("", "", draft))) == 1  # a document has no markup
    assert verify_quotes(corpus, "Nothing is quoted here.") == []
    with pytest.raises(InputError, match="surrogate"):
        verify_quotes(corpus, "“one two \ud800 three”")


DRAFT = (
    "It is “an opera in four acts”.\n"
    "They say “It was well received in 1875” and <b>\n"
    "“zebras and quaggas, & more”, and “It was well received … Faust is an opera in five acts”.\n"
)


@pytest.fixture(scope="module")
def checked(corpus: Corpus) -> Checked:
    draft = Draft(Document("draft", "", DRAFT))
    return Checked("my drafts/draft.md", draft, Checker([corpus])(draft))


def test_words_are_marked(checked: Checked) -> None:
    verdict = checked.verdicts[1]
    assert checked.place(verdict) == "my drafts/draft.md:2"
    assert [told(each) for each in verdict.changes] == ["NEGATION missing: “not”"]
    assert marked_quote(verdict) == [("It was well received in 1875", False)]
    assert marked_source(verdict, verdict.evidence[0]) == [
        ("It was ", False),
        ("not", True),
        (" well received in 1875", False),
    ]


def test_sarif(checked: Checked) -> None:
    report: dict[str, Any] = json.loads(json.dumps(as_sarif([checked], ["altered", "absent"])))
    [run] = report["runs"]
    assert report["version"] == "2.1.0"
    results = run["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [
        ("altered", "error"),
        ("absent", "error"),
        ("altered", "error"),
    ]
    for each, verdict in zip(results, checked.verdicts[1:], strict=True):
        assert run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
        [place] = each["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "my%20drafts/draft.md"
        region = place["physicalLocation"]["region"]
        line = DRAFT.split("\n")[region["startLine"] - 1]
        assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == verdict.quote
    assert "not" in results[0]["message"]["text"]
    other = checked.draft._replace(is_plain=False)
    [run] = as_sarif([Checked("draft.docx", other, checked.verdicts)], ["verbatim", "absent"])["runs"]
    assert [each["level"] for each in run["results"]] == ["error", "warning", "error", "warning"]
    assert all(each["locations"][0]["physicalLocation"]["region"] == {"startLine": 1} for each in run["results"])


def test_the_page_stands_alone_and_is_well_formed(checked: Checked) -> None:
    opened: list[str] = []
    shown: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert not {"src", "href"} & {name for name, _ in attrs}
            if tag not in ("meta", "br"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

        def handle_data(self, data: str) -> None:
            shown.append(data)

    Reader().feed(as_html([checked]))
    assert opened == []
    assert "zebras and quaggas, & more" in "".join(shown)
    assert "no quotations" in as_html([])
