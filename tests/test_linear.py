"""No text makes what reads it take more than its length: fragments of every grammar, repeated, in every order.

The processor's time is measured, of texts long enough that what is quadratic takes seconds; that what is linear takes
four times as long for four times as much is checked with room for noise.
"""

import io
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.corpus import tables
from quoth.corpus.documents import _read_jsonl
from quoth.corpus.where import parse
from quoth.errors import InputError, QuothError
from quoth.sources import eml, html, man, markdown, rst
from quoth.sources.files import decode
from quoth.text.boundaries import breaks, core, uncut, words
from quoth.text.passages import DEFAULT_SPLITTER, crosses_sentence, get_splitter, is_balanced, whole_sentences
from quoth.text.terms import analyse

SIZE = 40_000
QUICK = 0.2
"""Seconds for `SIZE` characters, below which nothing is measured: what is quadratic and so quick is a nuisance from a
megabyte on."""
GROWTH = 9.0
"""How much longer four times as much may take; what is quadratic takes 16 times as long."""

COMMON = ["a", "A", "b c", " ", "\t", "\n", "\n\n", "  \n", "x" * 30, "1", "1.", "é", "“", "漢", "\u0301", ".", ", ", ":", "\\"]
FRAGMENTS = {
    "markdown": [
        "#", "# ", "## a", "=", "-", "---\n", "- ", "* ", "1. ", ">", "> ", "`", "```", "```\n", "~~~", "~", "~~", "*",
        "**", "_", "__", "[", "]", "(", ")", "](", "![", "[a](b", "[a]: b\n", "[^1]", "[[", "]]", "[[a|", "<", ">", "</",
        "<a", "<b>", "<!--", "-->", "<?", "<![CDATA[", "<script>", "&", "&amp;", "&#", "|", "|-", "|-|\n", "a|b\n", "-|-\n",
        ":-:", "\\*", "\\\\", "http://", "www.", "@", "    ", "$", "$$", "==", "%%", "- [ ] ", "+++\n", "{", "}", "'", '"',
    ],
    "rst": [
        "=", "=====\n", "-----\n", "~", "*", "**", "`", "``", "``a", "|", "_", "__", "`_", "`a`_", ":a:", ":a:`", ".. ",
        "..\n", ".. a::", ".. a::\n", ".. note:: ", ".. code::\n\n  ", ".. image:: a\n", ".. |a| ", ".. _a:", ".. _a: b\n",
        ".. [1] ", "[1]_", "::", "::\n\n", "- ", "* ", "#. ", "(a) ", "+--+\n", "| a |\n", "+==+\n", "=== ===\n", "| ", "> ",
        ">>> ", ":a: b\n", "-a  b\n", "--long=x  y\n", "http://", "a@b.c", "   ", "\n   ", "<", ">`_", "\\",
    ],
    "man": [
        ".TH A 1\n", ".SH\n", ".SH A\n", ".TP\n", ".IP x\n", ".B a\n", ".BR ", ".nf\n", ".fi\n", ".RS\n", ".UR x\n", ".UE\n",
        ".de X\n", "..\n", ".ds a ", ".ds a b\n", "\\*a", "\\*[", "\\*(", "\\[", "\\(", "\\f", "\\f[", "\\fB", "\\s", "\\s[",
        "\\N'", "\\h'", "\\&", '\\"', "\\#", "\\\\", "\\\n", "\\c\n", ".if n ", ".ie t ", ".el ", "\\{", "\\}", ".if t \\{\n",
        "'", '"', '""', ".TS\n", ".TE\n", "l l.\n", "T{\n", "T}\n", "T{", "T}", ".T&\n", "tab(", ".Dd a\n", ".Nm ", ".Nm\n",
        ".Nm a\n", ".Ex\n", "Nm ", ".Op ", ".Fl ", ".Xr a 1\n", ".Bl -bullet\n", ".Bl\n", ".It\n", ".It a\n", ".El\n", ".Do ",
        "Dc ", ".Sh A\n", ".Bd\n", ".Ed\n", ".als a b\n", ".ig\n", ".", ".\t", "Ns ", "[", "]", "(",
    ],
    "html": [
        "<p>", "</p>", "<div>", "</div>", "<b>", "</b>", "<i>", "<a href=", "<a>", "<br>", "<li>", "<ul>", "</ul>", "<ol>",
        "<table>", "<tr>", "<td>", "<th>", "<td colspan=99>", "<td rowspan=99>", "</table>", "<h1>", "<pre>", "<main>",
        "<form>", "<input>", "<svg>", "<script>", "</script>", "<style>", "<!--", "-->", "<![CDATA[", "<?", "&", "&amp;",
        "&#", "<", ">", "</", "/>", "='", '"', "<x a=", " a=1", " b", "<ruby>", "<rt>", "<sup>", "<sub>", "<select>",
        "<option>", "<template>", "<math>", "<button>", "<dl>", "<dt>", "<nobr>", "<font>", "<frameset>", "<head>", "<title>",
        "<meta charset=", '<?xml version="1.0"?>', "<x:y/>", "<caption>", "<section hidden>", "<label>",
    ],
    "eml": [
        "From: a@b.c\n", "To: ", "a@b.c, ", "<a@b.c>", "Subject: ", "=?utf-8?q?", "?=", "=?utf-8?b?YQ==?= ", "Date: ",
        "Content-Type: ", "text/html\n", "text/plain; charset=", "multipart/mixed; boundary=x\n", "message/rfc822\n",
        "boundary=", '"', "(", ")", ";", "=", "=20", "=\n", "--x\n", "--x--\n", "--", ">", "> ", "\nFrom ", " \n", "\r\n",
        "Content-Transfer-Encoding: base64\n", "Content-Disposition: attachment; filename*0=", "<p>", "@", ",", "[", "\x00",
        "begin 644 a\n",
    ],
    "csv": [",", ";", "\t", "|", '"', '""', '","', "a,b\n", '"a\n', "text\n", "id,text\n", ",\n", "\r", "\r\n", "a,", "\n,"],
    "jsonl": [
        "{", "}", "[", "]", '"', ":", ",", '{"a":', '{"text":"', '"}\n', '{"text":"a"}\n', '{"id":"', "1", "1e", "-", "0.",
        "null", "true", "\\u", "\\ud800", "[1,", '{"":', "\n", "NaN", "/",
    ],
    "where": ["a", "=", "1", " and ", " or ", "not ", "(", ")", "'", "''", "'a'", "a = 1", " like '%", "%", "_", "in (", ",", '"'],
}
FRAGMENTS["text"] = sorted({each for name in ("markdown", "html", "csv") for each in FRAGMENTS[name]} | {
    "! ", "? ", "… ", "St. ", "J. ", "Mr. ", "U.S. ", "10:30 ", "2024-05-31 ", "1,000", "$", "%", "million ", "the ", "about ",
    "President ", "River", " of ", ", a ", "Name: v\n", "A: b | C: d\n", "- A\n", "(1) ", "”", ")", "»", "。", "ส", "က", "x@y",
    "/a", "--a", ".a", "a_b", "sum()", "\u2028", "\u00a0", "[MASK]",
})  # fmt: skip
BEFORE = {"man": [".TH A 1\n", ".Dd a\n.Nm a\n"], "eml": ["From: a@b.c\n", "Subject: a\n\n"], "where": ["a = '"]}


def read_jsonl(text: str) -> None:
    for _ in _read_jsonl(io.BytesIO(text.encode("utf-8", "surrogatepass")), "a"):
        pass


def read_table(text: str) -> None:
    for _ in tables.read(io.BytesIO(text.encode("utf-8", "surrogatepass")), "a.csv"):
        pass


def read_bytes(text: str) -> None:
    with suppress(ValueError):
        decode(text.encode("cp1252", "replace") + b"\xe9")


def condition(text: str) -> None:
    """The condition, and what it matches with, as it bounds them."""
    held = parse(f"a like '{text[:1900]}'") if "'" not in text else parse(text[:4000])
    held({"a": text[:100_000], "date": text[:4000]})


READ: dict[str, list[Callable[[str], object]]] = {
    "markdown": [markdown.read],
    "rst": [rst.read],
    "man": [man.read],
    "html": [lambda text: html.read(text.encode("utf-8", "surrogatepass"))],
    "eml": [lambda text: eml.read(text.encode("utf-8", "surrogatepass"))],
    "csv": [read_table],
    "jsonl": [read_jsonl],
    "where": [condition],
    "text": [
        *(get_splitter(spec) for spec in (DEFAULT_SPLITTER, "words:120")), whole_sentences, analyse, breaks, uncut, words,
        crosses_sentence, is_balanced, read_bytes, lambda text: core(text[: len(text) // 20]),
    ],
}  # fmt: skip
"""What reads each grammar. Phrases have 2,000 characters at most."""


def seconds(read: Callable[[str], object], text: str) -> float:
    """Of the processor. What it refuses, it has read."""
    began = time.process_time()
    with warnings.catch_warnings(action="ignore"), suppress(QuothError, ValueError, RecursionError):
        read(text)
    return time.process_time() - began


def made(before: str, pieces: list[str], size: int) -> str:
    """Each piece over and over, one after another."""
    each = size // len(pieces)
    return before + "".join((piece * (each // len(piece) + 1))[:each] + "\n" * (number % 2) for number, piece in enumerate(pieces))


@st.composite
def hostile(draw: st.DrawFn, grammar: str) -> tuple[str, list[str]]:
    fragments = st.sampled_from(FRAGMENTS[grammar] + COMMON)
    pieces = st.lists(fragments, min_size=1, max_size=3).map("".join)
    before = draw(st.sampled_from([*BEFORE.get(grammar, []), ""])) + draw(st.sampled_from(["", *FRAGMENTS[grammar]]))
    return before, draw(st.lists(pieces, min_size=1, max_size=3))


def check(grammar: str, before: str, pieces: list[str]) -> None:
    for read in READ[grammar]:
        whole = made(before, pieces, SIZE)
        if seconds(read, whole) < QUICK:
            continue
        least = min(seconds(read, made(before, pieces, SIZE // 4)) for _ in range(3))
        most = min(seconds(read, whole) for _ in range(2))
        assert most < GROWTH * max(least, QUICK / GROWTH), (read, before, pieces, least, most)


@pytest.mark.parametrize("grammar", READ)
def test_work_grows_as_the_text_does(grammar: str) -> None:
    @settings(max_examples=60, derandomize=True, database=None)
    @given(hostile(grammar))
    def is_linear(drawn: tuple[str, list[str]]) -> None:
        check(grammar, *drawn)

    is_linear()
