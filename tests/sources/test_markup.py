"""Markdown and reStructuredText: texts by hand, and that each piece is in the line that it is said to be in."""

import html
import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quoth.sources import markdown, rst
from quoth.sources.source import Source

DOCS = Path(__file__).parents[2] / "docs"
MARKDOWN = """---
title: "My page"
date: 2024-01-02
---
# A *head* #

Some **bold**, `code*` and [a link](http://x.y "t"), ![pic](a.png),
next line with snake_case_name and 2 * 3 * 4, \\*not\\* &amp; <b>tag</b> <http://a.b>.

Setext
------
- item one
  goes on
- [x] done [^1]
  1. inner

> quoted *text*
> more

```python
x = "# no"

y = [1](2)
```

| Country | Capital |
|---------|:-------:|
| Kenya   | **Nairobi** |
| A \\| b | c |

[ref]: http://x
[^1]: A note with [a name][ref].
"""
MARKDOWN_TEXT = """A head

Some bold, code* and a link, pic, next line with snake_case_name and 2 * 3 * 4, *not* & tag http://a.b.

Setext

- item one goes on
- Done: done [1]
1. inner

quoted text more

x = "# no"

y = [1](2)

Country: Kenya | Capital: Nairobi
Country: A | b | Capital: c

[1] A note with a name."""
RST = """=====
Title
=====

:Author: Ann

Para with *em*, **strong**, ``code``, `link <http://x>`_, :ref:`there <x>` and name_.
Second line::

    literal *x*
    more

.. note:: Be careful.

   Really *so*.

.. image:: x.png
   :alt: no

.. comment here
   more

.. code-block:: python
   :linenos:

   x = *y*

Head
----

- one
- two
  goes on

=======  =======
Country  Capital
=======  =======
Kenya    Nairobi
Uganda   Kampala
=======  =======

+---------+---------+
| Country | Capital |
+=========+=========+
| Kenya   | Nairobi |
|         | (city)  |
+---------+---------+

.. _target:
"""
RST_TEXT = """Title

Author: Ann

Para with em, strong, code, link, there and name. Second line:

literal *x*
more

Be careful.

Really so.

x = *y*

Head

- one
- two goes on

Country: Kenya | Capital: Nairobi
Country: Uganda | Capital: Kampala

Country: Kenya | Capital: Nairobi (city)"""


def points_back(text: str, source: Source) -> None:
    """Each run's letters and digits are in its line, in this order and without others between, but for escapes."""
    lines = re.split(r"\r\n?|\n", text)
    for start, end, number in source.runs:
        said = source.text[start:end]
        assert letters(said) in letters(html.unescape(lines[number - 1])), (said, lines[number - 1])


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text)))


def test_markdown_by_hand() -> None:
    source = markdown.read(MARKDOWN)
    assert source.text == MARKDOWN_TEXT
    assert source.metadata == {"title": "My page", "date": "2024-01-02"}
    points_back(MARKDOWN, source)


def test_front_matter_has_texts_and_lists_of_texts() -> None:
    fields = """title: [Of, two]
date: 2024-03-12  # of the meeting
draft: false
tags:
- retro
- 2024
people: [Ann, "Bo, Jr.", {name: Cy}]
summary: >
  A long
  text.
author:
  name: Ann
none: []
topic: Rates: a review
marks: #one #two
icon: "\\ud83d"
deep: """
    source = markdown.read(f"---\n{fields}{'[' * 5000}\n---\nText.")
    assert source.metadata == {
        "title": "Of two",
        "date": "2024-03-12",
        "draft": "false",
        "tags": ["retro", "2024"],
        "people": ["Ann", "Bo, Jr."],
        "summary": "A long text.",
        "topic": "Rates: a review",
        "marks": "#one #two",
        "icon": "\\ud83d",
        "deep": "[" * 5000,
    }
    assert source.text == "Text."


def test_restructured_text_by_hand() -> None:
    source = rst.read(RST)
    assert source.text == RST_TEXT
    assert source.metadata == {"title": "Title", "author": "Ann"}
    points_back(RST, source)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("***both*** *a **b** c* __d__ ~~e~~", "both a b c d"),
        ("==Due== is ~~on **Friday**~~ *Monday*, <del>at 3</del> a==b, c == d.", "Due is Monday, a==b, c == d."),
        (
            "[[Rates]], [[notes/a b|the *notes*]], [[x] y]], [[ -f z ]] and [[1]](http://x)",
            "Rates, the notes, [[x] y]], [[ -f z ]] and [1]",
        ),
        ("- ~~a~~\n- b\n- <s>c</s>\n\nd", "- b\n\nd"),
        ("> [!note]\n> a\n> b\n\n> [!tip]+ To do\n> c", "a b\n\nTo do\n\nc"),
        ("a*b*c 5*3 * x* 2 * 3", "abc 53 * x 2 * 3"),
        ("[![alt](i.png)](http://x) [a [b] c](d(e)f) [x] [^n]", "alt a [b] c [x] [^n]"),
        ("``a ` b`` `unclosed", "a ` b `unclosed"),
        ("a\\\nb  \nc", "a b c"),
        ("<!-- gone --><br>x &nbsp;&#65;&unknown;", "x A&unknown;"),
        ("# h\nnot a heading: #x", "h\n\nnot a heading: #x"),
        ("a\n***\nb", "a\n\nb"),
    ],
)
def test_markdown_s_inline_markup(text: str, expected: str) -> None:
    assert markdown.read(text).text == expected


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_word_of_our_own_pages_is_there_once(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    source = markdown.read(text)
    points_back(text, source)
    assert "](" not in source.text.replace("])(", "")
    assert source.metadata["title"] == text.partition("\n")[0].removeprefix("# ")


MARKS = st.sampled_from(
    [
        *"*_`[]()<>!\\&#|-=:.+ \n\t\0~",
        "ab",
        "é",
        "~~",
        "==",
        "[[",
        "]]",
        "> [!a]",
        "<s>",
        "</s>",
        "\n\n",
        "::",
        "---",
        "```",
        "- ",
        "1. ",
        ".. x:: ",
    ]
)


@given(st.lists(MARKS, max_size=40).map("".join))
@example(">\tcode in a quotation")
@example(">     code\n> \tmore\n\tand code")
def test_any_characters_are_read_and_point_back(text: str) -> None:
    for read in (markdown.read, rst.read):
        points_back(text, read(text))


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "*",
        "`",
        "<!--",
        "![a](",
        "**a ",
        "_a",
        "[a](b",
        "> ",
        "- ",
        "|",
        "``a",
        ":a:`",
        "[[a",
        "[[a|",
        "~~a ",
        "==a ",
        "<s>",
    ],
)
@pytest.mark.parametrize("read", [markdown.read, rst.read])
def test_hostile_text_takes_no_longer_than_its_length(piece: str, read) -> None:  # type: ignore[no-untyped-def]
    began = time.process_time()
    read(piece * 20_000)
    assert time.process_time() - began < 20  # half a second at most; what is quadratic takes minutes
