"""Manual pages: what a terminal shows, written by hand, for both sets of macros; places; what is no manual page."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import quoth
from commands import Run
from quoth.errors import InputError
from quoth_sources.files import sources_of
from quoth_sources.man import is_man, read
from quoth_sources.roff import args_of, said

MAN = r"""'\" t
.\" A comment.
.ie \n(.g .ds Aq \(aq
.el       .ds Aq '
.if t .ft XX
.de URL
\\$2 \(la\\$1\(ra
..
.TH "FETCH" "1" "2024\-05\-31" "fetch 2.1" "User Commands"
.SH NAME
fetch \- get files over the net
.SH
SYNOPSIS
.B fetch
[\fIOPTION\fR]...
.IR URL ...
.SH DESCRIPTION
Gets
.BR curl (1)\c
\&'s files. It\*(Aqs \(lqfast\(rq, 1\ MB\[u2014]caf\['e].
.PP
A second paragraph with a back\eslash. \" not this
.SS "Options and more"
.TP 8
.BR \-o ", " \-\-output =\fIFILE\fR
Write to FILE,
not to the terminal.
.TP
.B \-q
.TQ
.B \-\-quiet
Say nothing.
.IP \(bu 2
First point.
.IP 2. 4
Second point.
.IP "" 4
It goes on.
.ie n \{\
for terminals
.\}
.el \{\
for printers
.\}
.nf
  fetch \-o a.html
    https://example.org/a
.fi
.TS
tab(|);
l l.
Code|Meaning
_
0|all is well
1|T{
something
is
.B wrong
T}
.TE
.UR https://example.org
The page
.UE .
.URL "https://example.net" "another page"
"""
SHOWN = """NAME

fetch - get files over the net

SYNOPSIS

fetch [OPTION]... URL...

DESCRIPTION

Gets curl(1)'s files. It's “fast”, 1 MB—café.

A second paragraph with a back\\slash.

Options and more

-o, --output=FILE: Write to FILE, not to the terminal.

-q, --quiet: Say nothing.

- First point.

2.: Second point.

It goes on. for terminals
  fetch -o a.html
    https://example.org/a

Code | Meaning
0 | all is well
1 | something is wrong

The page <https://example.org>. https://example.net another page"""
MDOC = r""".Dd $Mdocdate: May 31 2024 $
.Dt CUT 1
.Os
.Sh NAME
.Nm cut
.Nd select portions of each line
.Sh SYNOPSIS
.Nm
.Fl b Ar list
.Op Fl n
.Op Ar
.Sh DESCRIPTION
The
.Nm
utility, see
.Xr paste 1 ,
cuts
.Pf ( Dq columns
of
.Pa /etc/passwd ) .
.Bl -tag -width indent
.It Fl b Ar list
The list of bytes.
.It Fl n
Do not split
.No multi Ns - Ns byte
characters.
.El
.Bl -bullet -compact
.It
One
.It
Two
.El
.Bd -literal -offset indent
cut -d : -f 1
  /etc/passwd
.Ed
.Ex -std
"""
MDOC_SHOWN = """NAME

cut – select portions of each line

SYNOPSIS

cut -b list [-n] []

DESCRIPTION

The cut utility, see paste(1), cuts (“columns” of /etc/passwd).

-b list: The list of bytes.

-n: Do not split multi-byte characters.

- One

- Two

cut -d : -f 1
  /etc/passwd

The cut utility exits 0 on success, and >0 if an error occurs."""


@pytest.mark.parametrize(("page", "shown"), [(MAN, SHOWN), (MDOC, MDOC_SHOWN)])
def test_a_page_reads_as_in_a_terminal(page: str, shown: str) -> None:
    assert read(page).text.replace("\u00a0", " ") == shown
    assert read(page.replace("\n", "\r\n")) == read(page)


def test_what_is_known_of_a_page() -> None:
    assert read(MAN).metadata == {"title": "FETCH(1)", "section": "1", "date": "2024-05-31"}
    assert read(MDOC).metadata == {"title": "CUT(1)", "section": "1", "date": "May 31 2024"}


@pytest.mark.parametrize("page", [MAN, MDOC])
def test_words_are_in_the_lines_that_are_said(page: str) -> None:
    source, lines = read(page), page.split("\n")
    seen = 0
    for start, end, line in source.runs:
        for word in re.findall(r"[a-z]{4,}", source.text[start:end]):
            if word not in ("utility", "exits", "success", "error", "occurs"):  # .Ex says them
                assert word in lines[line - 1], (word, line)
                seen += 1
    assert seen > 15


@pytest.mark.parametrize(
    ("escaped", "shown"),
    [
        (r"\fBbold\fP \f[CW]code\fR \f(BIboth\f1", "bold code both"),
        (r"a\-b \- c\(emd \[u00E9]\[u0065_0301] \N'64'", "a-b - c—d éé @".replace("éé", "ée\u0301")),
        (r"\s-2small\s0 \m[red]red\m[] \h'-04'\(bu\h'+03' x\|y\^z\&!", "small red • xyz!"),
        (r"\*(lqquoted\*(rq \*[own] \*(zz \*R", "“quoted” mine  ®"),
        (r"100\% \e\\ \~ \0 \/ \:", "100 \\\\ \u00a0    "),
    ],
)
def test_escapes(escaped: str, shown: str) -> None:
    assert said(escaped, {"own": "mine"}) == shown


def test_arguments() -> None:
    assert args_of(r'one "two words" "a ""quoted"" one" b\ c "open') == [
        "one",
        "two words",
        'a "quoted" one',
        r"b\ c",
        "open",
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        ".TH A 1\n" + ".if n \\{\\\n" * 20_000,
        ".TH A 1\n" + ".ie t \\{\n" * 20_000 + ".el \\{\n" * 20_000,
        ".TH A 1\n.de X\n" + "x\n" * 50_000,
        ".TH A 1\n" + "x\\\n" * 50_000,
        ".TH A 1\n.TS\n" + "T{\n" * 50_000,
        ".TH A 1\n.ds a \\*a\n" + "\\*a" * 50_000,
        ".TH A 1\n" + ".TP\n" * 20_000 + ".Bl\n" * 20_000 + ".El\n" * 30_000,
        ".Dd\n" + ".Op " * 20_000 + "\n" + ".It\n.It\n.SH\n.SH\n.UE\n.Nm\n.MR\n",
        ".TH\n" + '"' * 50_000 + "\\" * 50_000 + "\n." + '"' * 50_000,
        ".TH A 1\n\\[" + "u" * 50_000 + "\n\\[u110000]\\[uD800]\\N'9999999'\\h'",
        ".TH {x! 1\n",
        ".TH A 1\n.ds 0 xx\n" + "".join(f".ds {n + 1} \\*[{n}]\\*[{n}]\n" for n in range(60)) + "\\*[60]\n",
        ".als X X\n.TH A\n.X\n.so A.1\n.X a\n",
    ],
)
def test_hostile_pages_end(hostile: str) -> None:
    source = read(hostile)
    assert all(source.text[start:end] for start, end, _ in source.runs)


@pytest.mark.parametrize(
    ("content", "kind"), [(MAN, "man"), (MDOC, "man"), ("A log.\n", None), (".so man1/x.1\n", None)]
)
def test_only_a_page_is_read_as_one(tmp_path: Path, content: str, kind: str | None) -> None:
    assert is_man(content) == (kind is not None)
    for name in ("a.1", "a.3pm"):
        (tmp_path / name).write_text(content)
        assert read_as(tmp_path / name) == kind
    (tmp_path / "a.8.gz").write_bytes(gzip.compress(content.encode()))
    assert read_as(tmp_path / "a.8.gz") == kind
    whole = gzip.compress(content.encode())
    for damaged in (whole[:-9], whole[:10] + bytes([255] * 20)):
        (tmp_path / "cut.9.gz").write_bytes(damaged)
        assert read_as(tmp_path / "cut.9.gz") == "man"  # whoever reads it says that it is damaged
        with pytest.raises(InputError, match=r"cut\.9\.gz: cannot be read \(the file is damaged or truncated"):
            list(quoth.read_documents(tmp_path / "cut.9.gz"))


def read_as(file: Path) -> str | None:
    try:
        return sources_of(file, None)[0][0]
    except InputError:
        return None


@pytest.mark.filterwarnings("default::quoth.errors.FileWarning")
def test_a_folder_of_pages_is_indexed_and_says_the_line(tmp_path: Path, run: Run) -> None:
    pages = tmp_path / "man1"
    pages.mkdir()
    (pages / "cut.1.gz").write_bytes(gzip.compress(MDOC.encode()))
    (pages / "fetch.1").write_text(MAN, encoding="utf-8")
    (pages / "syslog.1").write_text("May 31 kernel: nothing\n")
    code, out, error = run("index", pages, "-o", tmp_path / "c.quoth")
    assert code == 0, error
    assert "left out 1 .1 of" in error
    assert "2 documents" in out
    corpus = quoth.Corpus.open(tmp_path / "c.quoth")
    assert corpus.document("fetch.1").title == "FETCH(1)"
    [place] = quoth.verify_quote(corpus, "Do not split multi-byte").places
    assert str(place.locate()) == f"line {MDOC.splitlines().index('Do not split') + 1}"
