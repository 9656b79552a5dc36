"""Web pages: what is read of them, and that the path of each piece selects an element that has it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from quoth.sources.html import read
from quoth.sources.source import Source

PAGE = """<!doctype html><html><head><title> Kenya,
 in short</title><meta name="author" content="Ann"><meta property="article:published_time" content="2024-05-01">
<style>p {}</style></head><body><nav><a href="/">Home</a></nav><header><p>The Daily</p></header>
<main><header><h1>Kenya</h1></header><p>Kenya is a <b>coun</b>try
 in <s>West</s> <a href="x">East Africa</a>.<br>It has lakes&nbsp;&amp; <!-- no -->hills.</p><script>x()</script>
<p hidden>no</p><?php no ?>
<ul><li><del>No</del></li><li>One <i>thing</i></li><li><p>Two</p><ul><li>deep</li></ul></li></ul>
<table><caption>Towns</caption>
<thead><tr><th>Country<th>Capital</thead><tr><td>Kenya<td><p>Nairobi</p><tr><td rowspan=2>Uganda<td>Kampala
<tr><td>Entebbe</table>
<table><tr><td><h2>A frame</h2><p>around text</table>
<pre>def f():

    return  1
</pre><form><input value=no><button>no</button></form></main><footer>no</footer></body></html>"""

TEXT = """Kenya

Kenya is a country in East Africa.
It has lakes & hills.

- One thing
- Two
- deep

Towns

Country: Kenya | Capital: Nairobi
Country: Uganda | Capital: Kampala
Country: Uganda | Capital: Entebbe

A frame

around text

def f():

    return  1"""


def points_back(content: bytes, source: Source) -> None:
    page = LexborHTMLParser(content.decode())
    for start, end, path in source.runs:
        found = page.css(path)
        assert len(found) == 1, path
        assert " ".join(source.text[start:end].split()) in " ".join(found[0].text().split())


def test_a_page_by_hand() -> None:
    source = read(PAGE.encode())
    assert source.text == TEXT
    assert source.metadata == {"title": "Kenya, in short", "author": "Ann", "date": "2024-05-01"}
    points_back(PAGE.encode(), source)
    at = source.text.index("Kampala")
    [path] = [run[2] for run in source.runs if run[0] == at]
    assert path == "body > main > table:nth-of-type(1) > tbody > tr:nth-of-type(2) > td:nth-of-type(2)"


TAGS = st.sampled_from(["p", "div", "b", "ul", "li", "table", "tr", "td", "th", "h1", "br", "pre", "svg", "nav"])
OTHERS = st.sampled_from(["<?php a ?>", "<!-- b -->", "<![CDATA[c]]>"])
PARTS = st.one_of(st.text("ab <&\n\u00e9", max_size=6), TAGS.map("<{}>".format), TAGS.map("</{}>".format), OTHERS)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=25).map("".join))
def test_any_page_is_read_and_points_back(body: str) -> None:
    content = f"<meta charset=utf-8><body>{body}".encode()
    # To browsers a processing instruction is a comment; here it would count as a child.
    points_back(content.replace(b"<?php a ?>", b"<!-- a -->"), read(content))


@pytest.mark.parametrize(
    ("head", "encoding"),
    [("<meta charset=iso-8859-2>", "iso-8859-2"), ("", "utf-8"), ("", "utf-16"), ("<meta charset=none>", "utf-8")],
)
def test_the_encoding_is_what_the_page_says(head: str, encoding: str) -> None:
    assert read(f"{head}<p>Łódź, Köln</p>".encode(encoding)).text == "Łódź, Köln"


def test_the_encoding_is_what_browsers_take_it_for() -> None:
    assert read("<meta charset=iso-8859-1><p>“Yes” – it’s 5 €".encode("cp1252")).text == "“Yes” – it’s 5 €"
    page = '<?xml version="1.0" encoding="utf-16"?><html><body><p>Köln </p></body></html>'
    assert read(page.encode()).text == "Köln"


def test_a_page_that_is_nested_too_deep_says_so() -> None:
    with pytest.raises(ValueError, match="nested more than 500 deep"):
        read(b"<div>" * 2000 + b"x")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<ol><li>one<li>two<ul><li>in it</ul></ol>", "1. one\n2. two\n- in it"),
        ("<ol start=4><li>four<li>five</ol><ol><li>one</ol>", "4. four\n5. five\n\n1. one"),
        ("<ol type=a start=3><li>one</ol><ol type=I><li>x</ol><ol type=disc><li>y</ol>", "c. one\n\nI. x\n\n1. y"),
        ("<ol reversed><li>two</ol><ol start=x><li>x</ol>", "- two\n\n- x"),
    ],
)
def test_items_of_ordered_lists_have_their_numbers(page: str, text: str) -> None:
    assert read(f"<body>{page}</body>".encode()).text == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "<form action=x.aspx><h1>Fees</h1><p>They are low.</p><input><select><option>a</select></form>",
            "Fees\n\nThey are low.",
        ),
        ("<form>Search: <input><button>Go</button></form><p>Text.", "Text."),
        ("<h3><button>What is the fee?</button></h3><p>Low.<button>More</button>", "What is the fee?\n\nLow."),
        ("<article><header><h2>News</h2><p>by Ann</p></header><p>Text.</article>", "News\n\nby Ann\n\nText."),
        ("<header><p>Our site</p></header><p>Text.", "Text."),
        ("<p style='color: red; DISPLAY : none'>x<p>Text.", "Text."),
        ("<ol><li>a<li value=9>b<li>c</ol>", "1. a\n9. b\n10. c"),
        (f"<ol start={'9' * 5000}><li value={'9' * 5000}>a</ol>", "- a"),
    ],
)
def test_what_is_the_pages_own_text(body: str, text: str) -> None:
    assert read(f"<body>{body}</body>".encode()).text == text


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            "<tr><td>North<td>York<td rowspan=2>Ann<tr><td>East",
            "City: York | Manager: Ann\nRegion: East | Manager: Ann",
        ),
        ("<tr><td>North<td rowspan=2>York<td rowspan=2>Ann<tr></tr>", "City: York | Manager: Ann"),
        ("<tr><td>North<td>York<td rowspan=5>Ann<tbody><tr><td>East", "City: York | Manager: Ann\nRegion: East"),
    ],
)
def test_a_cell_spans_rows_of_its_part_of_the_table(rows: str, text: str) -> None:
    page = (
        f"<table><thead><tr><th rowspan=9>Region<th>City<th>Manager</thead>{rows}<tr><td>South<td>Bath<td>Bob</table>"
    )
    assert read(page.encode()).text == f"Region: North | {text}\nRegion: South | City: Bath | Manager: Bob"
