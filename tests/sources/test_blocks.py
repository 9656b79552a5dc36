"""Blocks: what each format marks is kept, next to a text in which nothing else stands between two of them."""

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
import test_epub
import test_opendocument
from hypothesis import given, strategies
from reportlab.pdfgen.canvas import Canvas
from written import both, docx, lines, pdf, pptx, xlsx

from quoth_sources.blocks import KINDS, Block, decode, encode
from quoth_sources.source import Source, Text

MARKDOWN = """# Pump

It is red.

- one
  - in it

    goes on
- two

## Use

```
run
```

| Part | Price |
|------|-------|
| Cap  |       |

1. first
"""
RST = """Pump
====

It is red.

Use
---

- one

  goes on

  - in it

term
  meaning

-a  all of it

::

  run

.. csv-table::
   :header: Part, Price

   Cap

.. toctree::

   First steps <first>
"""
HTML = b"""<body><h1>Pump</h1>It is red.<p>So it is.</p>
<div class="toc"><p>Contents</p><ul><li><a href="#a">Use and care</a></li></ul></div>
<ul><li>one<ol><li>in it</li></ol>after it</li><li><p>two</p><p>goes on</p></li><li></li></ul>
<h2><span>Use</span></h2><dl><dt>term</dt><dd>meaning</dd></dl>
<table><caption>Prices</caption><tr><th>Part<th>Price</tr><tr><td>Cap<td>5</tr></table>
<pre>run
  it</pre>
<figure><figcaption><p>A cap</p></figcaption></figure>end<div class="contents">All <a>of it</a></div></body>"""
MAN = """.TH pump 1
.SH NAME
pump \\- a pump
.SS Use
.PP
It is red.
.TP
.B \\-a
all of it

goes on
.IP \\(bu 2
one
.IP 1. 2
two
.RS
.IP \\(bu 2
in it
.RE
.PP
.nf
run
.fi
.TS
l l.
Cap	5
.TE
"""
MDOC = """.Dd May 9, 2025
.Dt PUMP 1
.Sh NAME
.Nm pump
.Nd a pump
.Ss Use
.Bl -tag -width x
.It Fl a
all of it
.Bl -bullet
.It
one
.El
goes on
.El
.Dl run
end
"""


def odt() -> bytes:
    named = "<style:style style:name='{}' style:parent-style-name='{}'/>".format
    styles = named("P1", "Preformatted_20_Text") + named("P2", "P3") + named("P3", "Caption")
    item = "<text:list-item>{}</text:list-item>".format
    inner = f"<text:list>{item('<text:p>in it</text:p>')}</text:list>"
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rows = "".join(
        f"<table:table-row>{cells(a)}{cells(b)}</table:table-row>" for a, b in (("Part", "Price"), ("Cap", 5))
    )
    return test_opendocument.written(
        "<text:p text:style-name='Title'>Pump</text:p><text:h text:outline-level='2'>Use</text:h><text:p>Red.</text:p>"
        f"<text:list>{item(f'<text:p>one</text:p><text:p>goes on</text:p>{inner}')}{item('<text:p/>')}</text:list>"
        "<text:p>After.</text:p><text:p text:style-name='P1'>run</text:p><text:p text:style-name='P2'>A cap</text:p>"
        f"<table:table>{rows}</table:table>",
        styles=styles,
    )


def odp() -> bytes:
    frame = "<drawing:frame{}><drawing:text-box><text:p>{}</text:p></drawing:text-box></drawing:frame>".format
    slide = frame("", "It is red.") + frame(" presentation:class='title'", "Pump")
    return test_opendocument.written(f"<drawing:page>{slide}</drawing:page>", "presentation")


def ods() -> bytes:
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rows = "".join(
        f"<table:table-row>{cells(a)}{cells(b)}</table:table-row>" for a, b in (("Part", "Price"), ("Cap", 5))
    )
    return test_opendocument.written(f"<table:table table:name='Stock'>{rows}</table:table>", "spreadsheet")


def epub() -> bytes:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h2>Pump</h2><ul><li>one</li></ul></body></html>'
    return test_epub.written(page)


def outlined() -> bytes:
    """A page of contents, and one with two titles of the outline, one of them with its number."""

    def mark(canvas: Canvas) -> None:
        for level, title in enumerate(("Pump", "Use and care")):
            canvas.bookmarkPage(title)
            canvas.addOutlineEntry(title, title, level)

    contents = both(lines("Pump . . . . . . . . . . 2", top=700), lines("1.1 Use and care . . . . . . . . 2", top=650))
    page = both(
        mark, lines("Pump", top=740, size=20), lines("It is red.", top=690),
        lines("1.1 Use and care", top=640, size=16),
        lines("• Fill it.", top=590), lines("• Start it.", top=560),
    )  # fmt: skip
    return pdf(contents, page)


WRITTEN: dict[str, tuple[str, Callable[[], str | bytes], list[tuple[str, int, str]]]] = {
    "markdown": ("markdown", lambda: MARKDOWN, [
        ("heading", 1, "Pump"), ("paragraph", 0, "It is red."), ("item", 1, "- one"), ("item", 2, "- in it"),
        ("paragraph", 2, "goes on"), ("item", 1, "- two"), ("heading", 2, "Use"), ("code", 0, "run"),
        ("row", 1, "Part | Price"), ("row", 0, "Part: Cap"), ("item", 1, "1. first"),
    ]),
    "rst": ("rst", lambda: RST, [
        ("heading", 1, "Pump"), ("paragraph", 0, "It is red."), ("heading", 2, "Use"), ("item", 1, "- one"),
        ("paragraph", 1, "goes on"), ("item", 2, "- in it"), ("term", 1, "term"), ("item", 1, "meaning"),
        ("term", 1, "-a"), ("item", 1, "all of it"), ("code", 0, "run"), ("row", 1, "Part | Price"),
        ("row", 0, "Part: Cap"), ("contents", 0, "First steps"),
    ]),
    "html": ("html", lambda: HTML, [
        ("heading", 1, "Pump"), ("paragraph", 0, "It is red."), ("paragraph", 0, "So it is."),
        ("contents", 0, "Contents"), ("contents", 0, "- Use and care"), ("item", 1, "- one"), ("item", 2, "1. in it"),
        ("paragraph", 1, "after it"), ("item", 1, "- two"), ("paragraph", 1, "goes on"), ("heading", 2, "Use"),
        ("term", 1, "term"), ("item", 1, "meaning"), ("caption", 0, "Prices"), ("row", 0, "Part: Cap | Price: 5"),
        ("code", 0, "run\n  it"), ("caption", 0, "A cap"), ("paragraph", 0, "end"), ("contents", 0, "All of it"),
    ]),
    "epub": ("epub", epub, [("heading", 2, "Pump"), ("item", 1, "- one"), ("paragraph", 0, "After.")]),
    "man": ("man", lambda: MAN, [
        ("heading", 1, "NAME"), ("paragraph", 0, "pump - a pump"), ("heading", 2, "Use"),
        ("paragraph", 0, "It is red."),
        ("term", 1, "-a:"), ("item", 1, "all of it"), ("paragraph", 1, "goes on"), ("item", 1, "- one"),
        ("item", 1, "1.: two"), ("item", 2, "- in it"), ("code", 0, "run"), ("row", 0, "Cap | 5"),
    ]),
    "mdoc": ("man", lambda: MDOC, [
        ("heading", 1, "NAME"), ("paragraph", 0, "pump – a pump"), ("heading", 2, "Use"), ("term", 1, "-a:"),
        ("item", 1, "all of it"), ("item", 2, "- one"), ("paragraph", 1, "goes on"), ("code", 0, "run"),
        ("paragraph", 0, "end"),
    ]),
    "docx": ("docx", partial(docx, ("Title", "Pump"), ("Heading 2", "Use"), "It is red.", ("List Bullet", "one"),
        ("List Number 2", "in it"),
        ("Caption", "A cap"), [["Part", "Price"], ["Cap", "5"]], ("TOC Heading", "Contents")), [
        ("heading", 1, "Pump"), ("heading", 2, "Use"), ("paragraph", 0, "It is red."), ("item", 1, "- one"),
        ("item", 2, "1. in it"), ("caption", 0, "A cap"), ("row", 0, "Part: Cap | Price: 5"),
        ("contents", 0, "Contents"),
    ]),
    "odt": ("odt", odt, [
        ("heading", 1, "Pump"), ("heading", 2, "Use"), ("paragraph", 0, "Red."), ("item", 1, "- one"),
        ("paragraph", 1, "goes on"), ("item", 2, "- in it"), ("paragraph", 0, "After."), ("code", 0, "run"),
        ("caption", 0, "A cap"), ("row", 0, "Part: Cap | Price: 5"),
    ]),
    "pptx": ("pptx", partial(pptx, ("Pump", "one\ntwo", "A note."), table=[["Part", "Price"], ["Cap", "5"]]), [
        ("heading", 1, "Pump"), ("item", 1, "- one"), ("item", 1, "- two"), ("row", 0, "Part: Cap | Price: 5"),
        ("paragraph", 0, "A note."),
    ]),
    "odp": ("odp", odp, [("heading", 1, "Pump"), ("paragraph", 0, "It is red.")]),
    "xlsx": ("xlsx", partial(xlsx, Stock=[["Part", "Price"], ["Cap", 5]]), [
        ("heading", 1, "Stock"), ("row", 0, "Part: Cap | Price: 5"),
    ]),
    "ods": ("ods", ods, [("heading", 1, "Stock"), ("row", 0, "Part: Cap | Price: 5")]),
    "ipynb": ("ipynb", lambda: json.dumps({"cells": [
        {"cell_type": "markdown", "source": "\n# Pump\n\n- one"},
        {"cell_type": "code", "source": "run()", "outputs": [{"output_type": "stream", "text": "done"}]},
    ]}).encode(), [("heading", 1, "Pump"), ("item", 1, "- one"), ("code", 0, "run()"), ("code", 0, "done")]),
    "pdf": ("pdf", outlined, [
        ("contents", 0, "Pump . . . . . . . . . . 2"), ("contents", 0, "1.1 Use and care . . . . . . . . 2"),
        ("heading", 1, "Pump"), ("paragraph", 0, "It is red."), ("heading", 2, "1.1 Use and care"),
        ("item", 1, "• Fill it."), ("item", 1, "• Start it."),
    ]),
}  # fmt: skip
"""A reader, what it reads, and the blocks."""


def check_whole(source: Source) -> None:
    """Blocks are in order, begin and end with a character, and only white space is between them."""
    ends = [0, *(block.end for block in source.blocks)]
    starts = [*(block.start for block in source.blocks), len(source.text)]
    assert all(not source.text[end:start].strip() and end <= start for end, start in zip(ends, starts, strict=True))
    for start, end, *_ in source.blocks:
        assert source.text[start:end] == source.text[start:end].strip() != ""
    rows = [(start, end, KINDS.index(kind), level) for start, end, kind, level in source.blocks]
    assert decode(encode(source.blocks)).tolist() == [[*row] for row in rows]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_file_marks_is_kept(name: str) -> None:
    reader, made, blocks = WRITTEN[name]
    source: Source = import_module(f"quoth_sources.{reader}").read(made())
    assert [(block.kind, block.level, source.text[block.start : block.end]) for block in source.blocks] == blocks
    check_whole(source)


def test_a_pdf_without_an_outline_marks_nothing() -> None:
    source = import_module("quoth_sources.pdf").read(pdf(lines("Pump", size=20)))
    assert (source.text, [*source.blocks]) == ("Pump", [])


def test_a_page_that_the_book_calls_its_contents() -> None:
    link = '<p><a href="two.xhtml">Chapter two</a></p>'
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'.format
    guide = '<guide><reference type="toc" href="text/one.xhtml"/></guide></package>'

    def kinds(body: str) -> list[str]:
        book = test_epub.repacked(
            test_epub.written(page(body)),
            lambda name, part: part.replace(b"</package>", guide.encode()) if name.endswith(".opf") else part,
        )
        return [block.kind for block in import_module("quoth_sources.epub").read(book).blocks]

    assert kinds(link) == ["contents", "paragraph"]
    assert kinds(link + "<p>But most of it is a text without any link.</p>") == ["paragraph"] * 3


_WORDS = strategies.sampled_from(["a", "some words", "x\n y", " "])
_STEPS: strategies.SearchStrategy[list[tuple[Any, ...]]] = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("add"), _WORDS),
        strategies.tuples(strategies.just("gap"), strategies.sampled_from([" ", "\n", "\n\n"])),
        strategies.tuples(strategies.sampled_from(["mark", "join"]), strategies.sampled_from(["- ", ": "])),
        strategies.tuples(strategies.just("unmark")),
        strategies.tuples(strategies.just("block"), strategies.sampled_from(["item", "heading", "row"])),
        strategies.tuples(strategies.just("paragraph")),
    ),
    max_size=30,
)


@given(_STEPS)
def test_blocks_do_not_change_a_text_and_cover_it(steps: list[tuple[Any, ...]]) -> None:
    text, plain = Text("line"), Text("line")
    for name, *values in steps:
        getattr(text, name)(*values)
        if name not in ("block", "paragraph"):
            getattr(plain, name)(*values)
    source = text.source({})
    assert source.text == plain.source({}).text
    if source.blocks:
        check_whole(source)
        assert all(before.end <= block.start for before, block in pairwise(source.blocks))
    else:
        assert not source.text.strip() or not any(name in ("block", "paragraph") for name, *_ in steps)


def test_all_blocks_are_of_one_kind_while_that_is_asked_for() -> None:
    text = Text("line")
    text.only = "contents"
    text.block("heading", 2)
    text.add("Pump")
    text.table([[[], []]], 0)
    text.only = ""
    text.block("item", 1)
    text.add("one")
    assert text.source({}).blocks == [Block(0, 4, "contents"), Block(6, 9, "item", 1)]
