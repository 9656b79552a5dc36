"""No text makes what reads it take more than its length: fragments of every grammar, repeated, in every order.

The processor's time is measured, of texts long enough that what is quadratic takes seconds; that what is linear takes
four times as long for four times as much is checked with room for noise.
"""

import gc
import io
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.corpus import tables
from quoth.corpus.documents import _read_jsonl
from quoth.corpus.where import parse
from quoth.errors import QuothError
from quoth.text.boundaries import breaks, uncut, words
from quoth.text.passages import DEFAULT_SPLITTER, crosses_sentence, get_splitter, is_balanced, whole_sentences
from quoth.text.terms import analyse
from quoth_sources import eml, html, man, markdown, rst
from quoth_sources.files import decode

SIZE = 40_000
QUICK = 0.2
"""Seconds for `SIZE` characters, below which nothing is measured: what is quadratic and so quick is a nuisance from a
megabyte on."""
TRIES = 3
"""On a busy machine a single measurement may be wrong; what is quadratic is so each time."""
GROWTH = 9.0
"""How much longer four times as much may take; what is quadratic takes 16 times as long."""


def spelled(said: str, *others: str) -> list[str]:
    """Fragments, of which these are more; · is a space, ⏎ the end of a line, ⇥ a tab."""
    return [*others, *(each.translate({0xB7: " ", 0x23CE: "\n", 0x21E5: "\t"}) for each in said.split())]


COMMON = spelled(
    r"""
    a A b·c · ⇥ ⏎ ⏎⏎ ··⏎ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 1 1. é “ 漢 . ,· : \
    """,
    "\u0301",
)
FRAGMENTS: dict[str, list[str]] = {}
FRAGMENTS["markdown"] = spelled(
    r"""
    # #· ##·a = - ---⏎ -· *· 1.· > >· ` ``` ```⏎ ~~~ ~ ~~ * ** _ __ [ ] ( ) ]( ![ [a](b [a]:·b⏎ [^1] [[ ]] [[a| < >
    </ <a <b> <!-- --> <? <![CDATA[ <script> & &amp; &# | |- |-|⏎ a|b⏎ -|-⏎ :-: \* \\ http:// www. @ ···· $ $$ == %%
    -·[·]· +++⏎ { } ' "
    """
)
FRAGMENTS["rst"] = spelled(
    r"""
    = =====⏎ -----⏎ ~ * ** ` `` ``a | _ __ `_ `a`_ :a: :a:` ..· ..⏎ ..·a:: ..·a::⏎ ..·note::· ..·code::⏎⏎··
    ..·image::·a⏎ ..·|a|· ..·_a: ..·_a:·b⏎ ..·[1]· [1]_ :: ::⏎⏎ -· *· #.· (a)· +--+⏎ |·a·|⏎ +==+⏎ ===·===⏎ |· >·
    >>>· :a:·b⏎ -a··b⏎ --long=x··y⏎ http:// a@b.c ··· ⏎··· < >`_ \
    """
)
FRAGMENTS["man"] = spelled(
    r"""
    .TH·A·1⏎ .SH⏎ .SH·A⏎ .TP⏎ .IP·x⏎ .B·a⏎ .BR· .nf⏎ .fi⏎ .RS⏎ .UR·x⏎ .UE⏎ .de·X⏎ ..⏎ .ds·a· .ds·a·b⏎ \*a \*[ \*( \[
    \( \f \f[ \fB \s \s[ \N' \h' \& \" \# \\ \⏎ \c⏎ .if·n· .ie·t· .el· \{ \} .if·t·\{⏎ ' " "" .TS⏎ .TE⏎ l·l.⏎ T{⏎
    T}⏎ T{ T} .T&⏎ tab( .Dd·a⏎ .Nm· .Nm⏎ .Nm·a⏎ .Ex⏎ Nm· .Op· .Fl· .Xr·a·1⏎ .Bl·-bullet⏎ .Bl⏎ .It⏎ .It·a⏎ .El⏎ .Do·
    Dc· .Sh·A⏎ .Bd⏎ .Ed⏎ .als·a·b⏎ .ig⏎ . .⇥ Ns· [ ] (
    """
)
FRAGMENTS["html"] = spelled(
    r"""
    <p> </p> <div> </div> <b> </b> <i> <a·href= <a> <br> <li> <ul> </ul> <ol> <table> <tr> <td> <th> <td·colspan=99>
    <td·rowspan=99> </table> <h1> <pre> <main> <form> <input> <svg> <script> </script> <style> <!-- --> <![CDATA[ <?
    & &amp; &# < > </ /> =' " <x·a= ·a=1 ·b <ruby> <rt> <sup> <sub> <select> <option> <template> <math> <button>
    <dl> <dt> <nobr> <font> <frameset> <head> <title> <meta·charset= <?xml·version="1.0"?> <x:y/> <caption>
    <section·hidden> <label>
    """
)
FRAGMENTS["eml"] = spelled(
    r"""
    From:·a@b.c⏎ To:· a@b.c,· <a@b.c> Subject:· =?utf-8?q? ?= =?utf-8?b?YQ==?=· Date:· Content-Type:· text/html⏎
    text/plain;·charset= multipart/mixed;·boundary=x⏎ message/rfc822⏎ boundary= " ( ) ; = =20 =⏎ --x⏎ --x--⏎ -- > >·
    ⏎From· ·⏎ Content-Transfer-Encoding:·base64⏎ Content-Disposition:·attachment;·filename*0= <p> @ , [ begin·644·a⏎
    """,
    "\r\n",
    "\x00",
)
FRAGMENTS["csv"] = spelled(
    r"""
    , ; ⇥ | " "" "," a,b⏎ "a⏎ text⏎ id,text⏎ ,⏎ a, ⏎,
    """,
    "\r",
    "\r\n",
)
FRAGMENTS["jsonl"] = spelled(
    r"""
    { } [ ] " : , {"a": {"text":" "}⏎ {"text":"a"}⏎ {"id":" 1 1e - 0. null true \u \ud800 [1, {"": ⏎ NaN /
    """
)
FRAGMENTS["where"] = spelled(
    r"""
    a = 1 ·and· ·or· not· ( ) ' '' 'a' a·=·1 ·like·'% % _ in·( , "
    """
)
FRAGMENTS["text"] = spelled(
    r"""
    !· ?· …· St.· J.· Mr.· U.S.· 10:30· 2024-05-31· 1,000 $ % million· the· about· President· River ·of· ,·a·
    Name:·v⏎ A:·b·|·C:·d⏎ -·A⏎ (1)· ” ) » 。 ส က x@y /a --a .a a_b sum() [MASK]
    """,
    *("\u2028", "\xa0", *FRAGMENTS["markdown"], *FRAGMENTS["html"], *FRAGMENTS["csv"]),
)
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
        *map(get_splitter, (DEFAULT_SPLITTER, "words:120")),
        *(whole_sentences, crosses_sentence, is_balanced, breaks, uncut, words, analyse, read_bytes),
    ],
}
"""What reads each grammar."""


@pytest.fixture(autouse=True)
def without_garbage() -> Iterator[None]:
    """That of other tests would be collected in the measured time; to look for it before each would take longest."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def seconds(read: Callable[[str], object], text: str) -> float:
    """Of the processor. What it refuses, it has read."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    try:
        with warnings.catch_warnings(action="ignore"), suppress(QuothError, ValueError, RecursionError):
            read(text)
        return time.process_time() - began
    finally:
        gc.enable()


def made(before: str, pieces: Sequence[str], between: str, size: int) -> str:
    """Each piece over and over, one after another."""
    each = size // len(pieces)
    return before + between.join((piece * (each // len(piece) + 1))[:each] for piece in pieces)


Shape = tuple[str, Sequence[str], str]


@st.composite
def shapes(draw: st.DrawFn, grammar: str) -> Shape:
    fragments = st.sampled_from(FRAGMENTS[grammar] + COMMON)
    pieces = st.lists(fragments, min_size=1, max_size=3).map("".join)
    before = draw(st.sampled_from([*BEFORE.get(grammar, []), ""])) + draw(st.sampled_from(["", *FRAGMENTS[grammar]]))
    return before, draw(st.lists(pieces, min_size=1, max_size=3)), draw(st.sampled_from(["", "\n"]))


def check(grammar: str, *shape: *Shape) -> None:
    for read in READ[grammar]:
        whole, part = made(*shape, SIZE), made(*shape, SIZE // 4)
        for _ in range(TRIES):
            least, most = 0.0, seconds(read, whole)
            if most >= QUICK:
                least = min(seconds(read, part) for _ in range(2))
            if is_linear := most < max(GROWTH * least, QUICK):
                break
        assert is_linear, (grammar, shape, read, least, most)


@pytest.mark.parametrize("grammar", READ)
def test_work_grows_as_the_text_does(grammar: str) -> None:
    @settings(max_examples=15, derandomize=True, database=None)
    @given(shapes(grammar))
    def is_linear(shape: Shape) -> None:
        check(grammar, *shape)

    is_linear()


@pytest.mark.parametrize(
    ("grammar", "before", "pieces"),
    [
        ("markdown", "# a", [" ", "b"]),
        ("markdown", "a|b\n", [" ", "x-"]),
        ("markdown", "a|b\n-", [" ", "x"]),
        ("man", ".TH a 1\n", ["\\*["]),
        ("man", ".TH a 1\n", ["\\["]),
        ("man", ".TH a 1\n", ["\\f["]),
        ("man", ".TH a 1\n", ["\\h'"]),
        ("man", ".TH a 1\n\\&a", [" ", "b"]),
        ("man", ".Dd a\n.Nm a\n.Nm ", ["Nm "]),
        ("man", ".Dd a\n.Nm ", ["a", "\n.Nm\n"]),
        ("man", ".TH a 1\n.UR ", ["a", "\n.UE\n"]),
        ("man", ".TH a 1\n", [".if n "]),
        ("csv", "", ["a,", "\n"]),
        ("markdown", "$$", ["a```\n"]),
        ("eml", "From: a@b.c\nSubject: ", ["b c漢=?utf-8?q?"]),
        ("eml", "From: a@b.c\nDate: ", ["=?utf-8?q?<a@b.c>"]),
        ("eml", "From: a@b.c\nSubject: ", ["=?utf-8?q?a?=", "=?utf-8?q?"]),
    ],
)
def test_work_of_these_grew_faster(grammar: str, before: str, pieces: list[str]) -> None:
    check(grammar, before, pieces, "")
