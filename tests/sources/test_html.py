"""Web pages: what is read of them, and that the path of each piece selects an element that has it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from quoth_sources.html import read
from quoth_sources.source import Source

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


def test_the_title_of_an_icon_is_not_the_pages() -> None:
    assert "title" not in read(b"<body><svg><title>Menu</title></svg><h1>Fees</h1>").metadata
    assert read(b"<title>Fees</title><svg><title>Menu</title></svg>").metadata["title"] == "Fees"


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
        ("<nav>x</nav><main>One</main><p>x<main>Two", "One\n\nTwo"),
        ("<main hidden>x</main><main>Text.</main>", "Text."),
        ("<main style='display:none'>x</main><p>Text.", "Text."),
        ("<main> </main><div>Text.", "Text."),
        ("<main>One<div role=main>Two<main>Three</main></div></main>x", "One\n\nTwo\n\nThree"),
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


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>Since 1998<sup>3</sup>, 10<sup><i>6</i></sup> l.", "Since 1998³, 10⁶ l."),
        ("<p>H<sub>2</sub>O, x<sup>n/2</sup>, Ada<sup>[<a href=#n>5</a>]</sup>", "H₂O, x^(n/2), Ada[5]"),
        ("<p>Built in 1998<a role=doc-noteref href=#n>1</a>.", "Built in 1998¹."),
        ("<p>Built in 1998<a epub:type=noteref href=#n><sup>1</sup></a>.", "Built in 1998¹."),
        ("<p>10<span style='vertical-align: super'>6</span>", "10⁶"),
        ("<style>/* a } */ p .up, i.low { color: red; vertical-align:super }</style><p>10<b class='x up'>6</b>", "10⁶"),
        ("<style>/* .up { vertical-align: super }</style><p>10<b class=up>6</b>", "106"),
        ("<table><tr><th>What<th>Mass<tr><td>Oak<td>10<sup>6</sup> kg", "What: Oak | Mass: 10⁶ kg"),
        (
            "<p><ruby>山<rp>(</rp><rt>やま</rt><rp>)</rp></ruby>の<ruby><rb>道</rb><rtc><rt>みち</rt></rtc></ruby>",
            "山の道",
        ),
        (
            "<p><sup>1</sup>In the beginning <sup class=v>2</sup>He and <sup>3</sup>the",
            "¹ In the beginning ² He and ³ the",
        ),
        ("<p>Dated by <sup>14</sup>C, not <sup>3</sup>He; 5<sup>2</sup>and", "Dated by ¹⁴C, not ³He; 5²and"),
        ("<p>in the Hofgarten,<span class=lnum>10</span><br>And drank", "in the Hofgarten, 10\nAnd drank"),
        ("<p><span id=v1>१</span><span>नारायणं</span>", "१ नारायणं"),
        ("<style>.n {float: right}</style><p>she said <span class=n>20</span>to me", "she said 20 to me"),
        (
            "<p>the cruellest<span class=linenum>10</span> month so<b class=v-num>17</b>loved",
            "the cruellest 10 month so 17 loved",
        ),
        (
            "<p><b class=vn>19</b>and <i class=x>20</i>It of<i class=x>10</i> <em id=v2>3</em>whom",
            "19 and 20 It of 10 3 whom",
        ),
        (
            "<p>H<b class=x>2</b>O, <b class=x>5</b>kg, <code>arg<i class=x>1</i></code>, MP<b class=x>3</b>",
            "H2O, 5kg, arg1, MP3",
        ),
        ("<table><tr><td>a<td>so<span class=v>17</span>loved<tr><td>b<td>c</table>", "a | so 17 loved\nb | c"),
        ("<p>It costs <span class=a>9.</span><span class=b>99</span><br>", "It costs 9.99"),
        (
            "<p>On the <span class=x>1</span>st of May, COVID-<span class=y>19</span> and",
            "On the 1st of May, COVID-19 and",
        ),
    ],
)
def test_what_is_raised_or_beside_the_text_is_not_glued_to_it(body: str, text: str) -> None:
    assert read(f"<body>{body}</body>".encode()).text == text


@pytest.mark.parametrize(
    ("style", "sign"),
    [
        ("position:relative; top:-.5em; font-size:60%", "⁶"),
        ("POSITION: RELATIVE; TOP: -5PX", "⁶"),
        ("position:relative;bottom:4pt", "⁶"),
        ("position:relative;top:-4.0pt;mso-text-raise:4.0pt", "⁶"),
        ("font-size:60%;vertical-align:4px", "⁶"),
        ("vertical-align: 30%", "⁶"),
        ("vertical-align: text-top", "⁶"),
        ("vertical-align:top", "⁶"),
        ("font-variant-position:super", "⁶"),
        ("font-variant-position: sub", "₆"),
        ("vertical-align: -.25em", "₆"),
        ("vertical-align:text-bottom", "₆"),
        ("position:relative; top: 3px", "₆"),
        ("position:relative; bottom: -1ex", "₆"),
        ("top: -1em", "6"),
        ("padding-top: -1em; position: relative", "6"),
        ("vertical-align: 1px", "6"),
        ("vertical-align: baseline", "6"),
    ],
)
def test_what_a_style_moves_up_or_down_is_raised_or_lowered(style: str, sign: str) -> None:
    body = f"<p>4×10<span style='{style}'>6</span> a"
    assert read(f"<body>{body}</body>".encode()).text == f"4×10{sign} a"
    sheet = f"<style>span.x {{{style}}}</style><p>4×10<span class=x>6</span> a<table><tr><td>x<td>10<span class=x>6"
    assert read(sheet.encode()).text == f"4×10{sign} a\n\nx | 10{sign}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("L<i style='vertical-align:.2em'>A</i>T<i style='position:relative;top:.5ex'>E</i>X", "LATEX"),
        ("see <b style='position:relative;top:2px'>ls</b> of <b style='vertical-align:top'>2019</b>", "see ls of 2019"),
        ("of <i style='vertical-align:4px'>14</i>C", "of ¹⁴C"),
    ],
)  # fmt: skip
def test_what_is_only_laid_out_is_not_raised(body: str, text: str) -> None:
    assert read(f"<body><p>{body}</body>".encode()).text == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("in 1999<a class=footnote-reference href=#id4>2</a>.", "in 1999²."),
        ("in 1999<!-- x --><a href=#footnote-7>7</a><!-- x -->, so", "in 1999⁷, so"),
        ("in 1999<a rel=footnote href=#fn:1>8</a> a word<a href=notes.html#a>b</a>", "in 1999⁸ a wordᵇ"),
        ("“Yes.”<a href=#n>12</a> It<a href=#a>*</a>", "“Yes.”¹² It*"),
        ("in 1998<span class=footnote>1</span> or 1998<span class=MsoFootnoteReference>2</span>", "in 1998¹ or 1998²"),
        ("word<a href=#a>1</a>,<a href=#b>2</a>", "word¹,²"),
        ("see <a href=#a>1</a>,<a href=#b>2</a> and [<a href=#c>3</a>], §<a href=#d>4</a>", "see 1,2 and [3], §4"),
        ("<a href=#a>a</a><a href=#b>b</a> plan<a href=#b>s</a>ed <a href=https://x.org>1999</a>", "ab plansed 1999"),
    ],
)
def test_links_to_notes_are_their_marks(body: str, text: str) -> None:
    assert read(f"<body><p>{body}</body>".encode()).text == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("<label for=a>Surname</label> <input id=a value=Quist>", "Surname: Quist"),
        ("<label>Plot: <input type=number value=27></label>", "Plot: 27"),
        ("<div><label for=a>Town</label></div><div><input id=a value=Bonn></div>", "Town: Bonn"),
        ("<label>Size <select><option value=''>Choose<option selected>Large</select></label>", "Size: Large"),
        ("<label>Size <select><option value='' selected>Choose<option>Large</select></label><p>x", "Size\n\nx"),
        ("<label>Remarks<textarea>\nby the\nriver</textarea></label>", "Remarks: by the river"),
        ("<input aria-label=Street value='1 Mill Lane'><label>Nr <input></label>", "Street: 1 Mill Lane\nNr"),
        ("<label><input type=checkbox checked> Water</label> <label><input type=radio> Tap</label>", "☒ Water ☐ Tap"),
        ("<label for=a>Water</label><input id=a type=checkbox checked>", "Water: ☒"),
        ("<ul><li><input type=checkbox checked disabled> Sow<li><input type=checkbox> Reap</ul>", "☒ Sow\n☐ Reap"),
        ("<table><tr><td><label for=a>Name</label><td><input id=a value=Ann><tr><td>Age<td>7", "Name | Ann\nAge | 7"),
        ("<table><tr><td><label>Name <input value=Ann></label><td>x<tr><td>Age<td>7", "Name: Ann | x\nAge | 7"),
        ("Seek: <input value=x><input type=hidden value=y><input type=submit value=Go><p>Text.", "Seek: x\n\nText."),
        ("<input type=checkbox><input type=password value=x>", ""),
    ],
)
def test_what_a_form_is_filled_with(form: str, text: str) -> None:
    assert read(f"<body><form>{form}</form></body>".encode()).text == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<input role=button aria-haspopup=true><label>2</label><div><ul><li>de</ul></div><p>x", "2\n\nx"),
        ("<button aria-haspopup=menu>Tools</button> <ul><li>Print</ul><p>x", "x"),
        ("<a aria-haspopup=dialog>Tools</a><div><h2>Kenya</h2></div>", "Tools\n\nKenya"),
        ("<ul><li><a hreflang=de>Deutsch</a><li><a hreflang=fr>Français</a></ul><p>x", "x"),
        ("<ul><li><a hreflang=de>Goethe</a> (German)<li>Shaw</ul>", "- Goethe (German)\n- Shaw"),
        ("<details><summary>More</summary>It is closed.</details>", "More\n\nIt is closed."),
        ("<p hidden=until-found>Found.<p style='visibility:hidden'>no<ul role=menubar><li>no</ul>", "Found."),
    ],
)  # fmt: skip
def test_menus_are_not_the_pages_text(body: str, text: str) -> None:
    assert read(f"<main>{body}</main>".encode()).text == text
