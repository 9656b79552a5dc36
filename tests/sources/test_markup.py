"""Markdown and reStructuredText: texts by hand, and that each piece is in the line that it is said to be in."""

import html
import re
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quoth_sources import markdown, rst
from quoth_sources.source import Source

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
    """Each run's letters and digits are in its line, in this order and without others between, but for escapes and the
    addresses of links."""
    lines = re.split(r"\r\n?|\n", text)
    for start, end, number in source.runs:
        said = source.text[start:end]
        line, shown = letters(html.unescape(lines[number - 1])), letters(said)
        left = iter(line)
        # The address of a link or picture stands between what a page shows of its line.
        is_around = "](" in lines[number - 1] and all(each in left for each in shown)
        assert shown in line or is_around, (said, lines[number - 1])


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\n## Monday\n\nMet Ann.\n\n---\n\n## Tuesday\n\nRain.", "Monday\n\nMet Ann.\n\nTuesday\n\nRain."),
        ("---\n\ntitle: One\n\n---\nTwo", "title: One\n\nTwo"),
        ("---\nMet Ann.\n---\nTwo", "Met Ann.\n\nTwo"),
        ("---\n- One\n- Two\n\n---\nThree", "- One\n- Two\n\nThree"),
        ("---\n# One\n---\nTwo", "One\n\nTwo"),
        ("---\n# A comment\n\ntags: [a,\n  b\n]\n'own': x\n...\nText.", "Text."),
    ],
)
def test_text_below_a_rule_is_no_front_matter(text: str, expected: str) -> None:
    assert markdown.read(text).text == expected


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In 1998<sup>3</sup> it held 10<sup>6</sup> l, H<sub>2</sub>O.", "In 1998³ it held 10⁶ l, H₂O."),
        ("10^6^ l, H~2~O, x^2 + y^2, 12<sup>th</sup>, Quoth<sup>TM</sup>", "10⁶ l, H₂O, x^2 + y^2, 12th, Quoth™"),
        ("$4·10^{-3}$ m, $E = mc^2$, $5 and $10, $HOME/a_b", "4·10⁻³ m, E = mc², $5 and $10, $HOME/a_b"),
        ("a<sup>[1](#x)</sup> b<sup>~~2~~3</sup> 10<sup>6", "a¹ b³ 10^6"),
        ("In 1998[^3] and [^a-z].\n\n[^3]: The log,\n    p. 4.", "In 1998[3] and [^a-z].\n\n[3] The log, p. 4."),
        ("[^1]\n\n[^1]: one\n\n    two\n[^2]:\n\nthree", "[1]\n\n[1] one\n\ntwo\n[2]\n\nthree"),
        ("<ruby>山<rp>(</rp><rt>やま</rt><rp>)</rp></ruby>の<ruby>道<rt>みち</ruby>", "山の道"),
        ("a %%hidden%% b\n\n%%\nnot\n\nshown\n%%\n\n`%%c%%` 5%%", "a b\n\n%%c%% 5%%"),
        (
            "for %%i in (*.txt) do copy %%i backup, then set %%NAME%% to Ada",
            "for %%i in (*.txt) do copy %%i backup, then set %%NAME%% to Ada",
        ),
        ('for %%f in (*)\ndo "%%f" "%%~nf",%%f %%secret plan%% end', 'for %%f in (*) do "%%f" "%%~nf",%%f end'),
        ("50%% of 20%% is less, and 7%%%% too", "50%% of 20%% is less, and 7%%%% too"),
        ("%%secret plan%%\n\na %%secret%%, b (%% secret %%) c%%tel. 555%%d", "a , b () cd"),
        ("计划%%秘密 计划%%进行 %%a\nb%%.\n\n%% a %%b%%c%%\n\n`%%i`", "计划进行 .\n\nb\n\n%%i"),
        ("%%i is one.\n\nb\n\nset %%NAME%%", "%%i is one.\n\nb\n\nset"),
        ("%%one\n\ntwo\n\nthree%%  \n\nfour", "four"),
        ("A line. ^name\n\n- item ^b-2\n  - inner\n\n^t1\n\nx ^2 y", "A line.\n\n- item\n- inner\n\nx ^2 y"),
        (
            "- [x] a\n- [ ] b\n1. [/] c\n2. [-] d\n\n- [>] e",
            "- Done: a\n- Open: b\n1. In progress: c\n2. Cancelled: d\n\n- [>] e",
        ),
        ("[x] is no task\n\n- [ ](a)\n- a [x]\n\n  [x] b", "[x] is no task\n\n- a [x]\n\n[x] b"),
        ("![[a.png|100]] ![[Note]] [[A#b]] [[A\\|b]]", "a.png Note A#b b"),
        ("> [!warning]- *Look* out\n> a\n>\n> b", "Look out\n\na\n\nb"),
        ('[a]({% page "/b c" %}) ![d](e f.png) [g][h]\n\n[h]: {{ url }}', "a d g"),
        ("<div>\n<p>a<br>b</p><s>c</s><td>d</td>\n<!-- e\n f --><style>g</style></div>", "a\nb\nd"),
        ("a|b\n-|-\n1<br>2|`x\\|y`", "a: 1 2 | b: x|y"),
        ("1. a\n1. b\n\n   c\n5) d", "1. a\n2. b\n\nc\n5) d"),
        ("`a\nb  c` d\n\n``` `e` ```", "a b c d\n\n`e`"),
        ("> " * 100 + "deep", "> " * 40 + "deep"),
        ("===a===\n==b c==d== =e= f==", "===a=== b c==d =e= f=="),
    ],
)
def test_markdown_of_other_programs(text: str, expected: str) -> None:
    source = markdown.read(text)
    assert source.text == expected
    points_back(text, source)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("## Second\n\n# First *one*\n\n# Other", "First one"),
        ("First\n=====\n\n# Other", "First"),
        ("## Second\n\nThird\n---", None),
        ("---\ntitle: Given\n---\n# Other", "Given"),
        ("```\n# code\n```", None),
    ],
)
def test_the_title_is_of_the_first_level_or_the_file_s_name(text: str, title: str | None) -> None:
    assert markdown.read(text).metadata.get("title") == title


def test_formulas_lose_their_dollars_if_no_tex_is_left() -> None:
    assert markdown.read(r"$4\times10^{-3}$, $25^\circ$, $\frac{a^2}{b_1}$, $\text{CO}_2$").text == (
        r"4×10⁻³, 25°, $\frac{a²}{b₁}$, CO₂"
    )


def test_front_matter_in_toml() -> None:
    front = [
        "+++",
        'title = "A walk"',
        "date = 2024-05-01",
        "draft = true",
        "weight = 7",
        'tags = ["a", "b", 3]',
        "see = [[1]]",
        "[extra]",
        'title = "No title"',
        'author = """',
        'Ann"""',
        "+++ ",
    ]
    text = "\n".join([*front, "# Other", "", "Text +++ more."])
    source = markdown.read(text)
    assert source.text == "Other\n\nText +++ more."
    points_back(text, source)
    assert {name: value for name, value in source.metadata.items() if value} == {
        "title": "A walk",
        "date": "2024-05-01",
        "draft": "true",
        "weight": "7",
        "tags": ["a", "b", "3"],
        "author": "Ann",
    }
    for text in ("+++\nnot TOML\n+++\n\nb", "+++\na = 1\n\nb", "a\n+++\nb = 1\n+++", f"+++\na = {'[' * 9000}\n+++"):
        source = markdown.read(text)
        assert "+++" in source.text, text
        assert not source.metadata.get("b")
    assert markdown.read("+++\n+++\nb").text == "b"


def test_wiki_links_of_front_matter() -> None:
    source = markdown.read('---\nup: [[Index]]\nsee:\n  - "[[A b|bee]]"\n  - [[C]]\nm: [[1, 2], [3]]\n---\nText')
    assert source.metadata == {"up": "Index", "see": ["bee", "C"]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("read", [markdown.read, rst.read])
def test_lines_are_those_of_an_editor(read: Callable[[str], Source], end: str) -> None:
    source = read(end.join(["one\u2028two", "", "three\x0c", "", "- four", "- five"]))
    assert [(source.text[run[0] : run[1]], run[2]) for run in source.runs] == [
        ("one two", 1),
        ("three", 3),
        ("four", 5),
        ("five", 6),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"10\ :sup:`6` and H\ :sub:`2`\ O, :math:`10^6`", "10⁶ and H₂O, 10⁶"),
        (
            "1998 [#log]_ [1]_ [CIT]_ [#]_\n\n.. [#log] See it.\n.. [1] One\n\n   more.",
            "1998 [log] [1] [CIT] [#]\n\n[log] See it.\n\n[1] One\n\nmore.",
        ),
        (":ref:`text <x>` :doc:`/a/b` :py:func:`~a.b.c` :x:y:`z`", "text /a/b c z"),
        (
            ".. versionadded:: 3.2\n   The *thing*.\n\n.. deprecated:: 4",
            "New in version 3.2 The thing.\n\nDeprecated since version 4",
        ),
        (
            ".. unknown:: an *argument*\n   :o: x\n\n   - item\n\n.. py:function:: f(*a, **b)\n   :m: n\n\n   Does.",
            "an argument\n\n- item\n\nf(*a, **b)\n\nDoes.",
        ),
        (".. toctree::\n   :caption: Parts\n\n   One <a/b>\n   c/d", "Parts\n\nOne"),
        (
            ".. include:: /etc/hostname\n\n.. csv-table::\n   :file: /etc/hostname\n\n.. raw:: html\n\n   <b>\n\ny",
            "y",
        ),
        ('.. csv-table:: T\n   :header: a, b\n\n   1, "2, 3"', "T\n\na: 1 | b: 2, 3"),
        (".. list-table:: T\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - *2*", "T\n\na: 1 | b: 2"),
        (
            ".. math:: E = mc^2\n\n.. math::\n   :label: x\n\n   10^{-3}\n   \\frac{1}{2}",
            "E = mc²\n\n10⁻³\n\\frac{1}{2}",
        ),
        ("|a| |b|\n\n.. |a| replace:: some *words*\n.. |c| image:: d", "some words |b|"),
        (
            "term : kind\n  Definition\n\n:field: body\n:list:\n  - a\n\n-x, --yes  Option",
            "term : kind\nDefinition\n\nfield: body\nlist:\n- a\n\n-x, --yes Option",
        ),
        ("iv. four\nv. five\n\n(a) one\n\n    * two", "iv. four\nv. five\n\n(a) one\n\n- two"),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n|   +---+\n|   | 3 |\n+---+---+", "a: 1 | b: 2\na: 1 | b: 3"),
        ("=  ==\n   hh\n=  ==\na  1\n=  ==", "a | hh: 1"),
        ("+--\n| a\n\nb", "+-- | a\n\nb"),
        ("====\nA\n==\n\nb", "====\nA\n==\n\nb"),
        ("`open and *open too\n\n| line\n|   more\n\n>>> x\n1", "`open and *open too\n\nline\nmore\n\n>>> x\n1"),
    ],
)
def test_restructured_text_of_other_programs(text: str, expected: str) -> None:
    source = rst.read(text)
    assert source.text == expected
    points_back(text, source)


def test_what_is_nested_too_deep_is_read(capfd: pytest.CaptureFixture[str]) -> None:
    lists = "".join(f"{' ' * 2 * depth}- level{depth}\n\n" for depth in range(60))
    quotes = "".join(f"{' ' * depth}level{depth}\n\n" for depth in range(60))
    for read, text in ((markdown.read, lists), (rst.read, lists), (rst.read, quotes)):
        source = read(text)
        assert re.findall(r"level\d+", source.text) == re.findall(r"level\d+", text)
        points_back(text, source)
    assert capfd.readouterr() == ("", "")


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
@example("> [!a](> [!a]ab)1. ")
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
    read(piece * 5_000)
    assert time.process_time() - began < 10  # a second at most; what is quadratic takes minutes
