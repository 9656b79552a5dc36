"""What is a quotation in a draft, and what is not: by hand, in every kind of file that is read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.written import docx

from quoth import Document
from quoth.corpus.exact.drafts import Quotation, quotations, read_drafts
from quoth.errors import InputError


def texts(draft: str) -> list[str]:
    return [each.text for each in quotations(draft)]


@pytest.mark.parametrize(
    "marked",
    [
        "“{}”",
        '"{}"',
        "„{}“",
        "„{}”",
        "”{}”",
        "«{}»",
        "« {} »",
        "»{}«",
        "‘{}’",
        "'{}'",
        "‚{}‘",
        "‹{}›",
        "›{}‹",
        "「{}」",
        "『{}』",
    ],
)
@pytest.mark.parametrize("words", ["the end is near", "I have a dream", "Nobody was there, it's said."])
def test_marks_of_any_language(marked: str, words: str) -> None:
    draft = f"He said {marked.format(words)} and left, it's said."
    [found] = quotations(draft)
    assert found == Quotation(words, draft.index(words), draft.index(words) + len(words))


@pytest.mark.parametrize(
    "draft",
    [
        "It's the dogs' and the cats' food; rock 'n' roll in the '90s, wasn't it, O'Neill's?",
        'He is 6\' 2" tall, the board is 5\'11" by 3" and 12" wide.',
        "The so-called “expert” and his 'method' and the „Lösung“ and the \"third way\".",
        "She read “The Tale of Genji”, “Much Ado About Nothing” and 'The Curious Adventures of Mr. Wonderbird.'",
        "See Section 4.1.3, “Booting from the network with a card”.",
        'Call `print("one two three four")`.\n\n```\nsay("one two three four")\n```\n',
        '<a title="one two three four" href="x">x</a> {% image "a b c d" %} name="one two three"',
        "An “unclosed mark of some words and no more.",
        "Kill 'Em All is an album" + ", and more of it" * 40 + ". The critics' list.",
        "The expression “x IN (y, z)” and 'x + y z' and “1 + 2 – 3”; see “Shrek 1+2”.",
        "> **Note:** this is a note, and no quotation.\n",
        "> [!TIP]\n> This is a tip, and no quotation.\n",
    ],
)
def test_what_is_no_quotation(draft: str) -> None:
    assert texts(draft) == []


def test_nested_marks_are_part_of_the_outer_quotation() -> None:
    assert texts("“He told me ‘never again, my friend’ twice.” Then: ‘She said “never again” to me.’") == [
        "He told me ‘never again, my friend’ twice.",
        "She said “never again” to me.",
    ]
    assert texts("Er sagte: „Sie rief ‚nie wieder, niemals‘ und ging.“") == ["Sie rief ‚nie wieder, niemals‘ und ging."]


def test_paragraphs_that_open_their_marks_again() -> None:
    draft = "“The first paragraph goes on.\n\n“The second one does too.\n\n“The third ends.” “It ends here.”"
    assert texts(draft) == [
        "The first paragraph goes on.",
        "The second one does too.",
        "The third ends.",
        "It ends here.",
    ]


def test_block_quotes_of_markdown() -> None:
    draft = "He wrote:\n\n> It was first given\n> in *Paris*, [in 1875](x.md).\n>\n> And it failed at once.\n"
    draft += "> — carmen.md, p. 3\n\nEnd."
    first, second = quotations(draft)
    assert (first.text, second.text) == ("It was first given\nin Paris, in 1875.", "And it failed at once.")
    assert draft[first.start : first.end] == "It was first given\n> in *Paris*, [in 1875](x.md)."
    assert [each.source for each in (first, second)] == ["carmen.md, p. 3"] * 2


def test_html_in_markdown_marks_quotations() -> None:
    inside = "<p>It was <i>first</i> given in 1875.</p><p>And it failed at once.</p>"
    draft = f"Text.\n\n<blockquote>\n{inside}\n</blockquote>\n\n"
    draft += "He said <q>it is over now</q>; write `<q>one two three</q>`.\n\n```html\n<q>four five six</q>\n```\n"
    found = quotations(draft)
    assert [each.text for each in found] == ["It was first given in 1875.", "And it failed at once.", "it is over now"]
    assert draft[found[0].start : found[0].end] == "It was <i>first</i> given in 1875."


def test_notes_and_markup_inside() -> None:
    assert texts("A note.[^1]\n\n[^1]: Smith wrote “an **opera** in[^2] four acts” once.") == ["an opera in four acts"]
    assert texts(r"“It costs \$5, says *he*, &amp; more”") == ["It costs $5, says he, & more"]


@pytest.mark.parametrize(
    ("behind", "source"),
    [
        (" (carmen.md)", "carmen.md"),
        (" ([see](docs/carmen.md))", "docs/carmen.md"),
        (" [Carmen](carmen.html#1)", "carmen.html#1"),
        (", (Carmen, p. 3)", "Carmen, p. 3"),
        (" and so on (carmen.md)", ""),
        ("", ""),
    ],
)
def test_the_source_beside_a_quotation(behind: str, source: str) -> None:
    [found] = quotations(f"It is “an opera in four acts”{behind}.")
    assert found.source == source


def test_a_web_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<p>He said <q>the end is near</q> and &ldquo;it is over now&rdquo; (<a href='carmen.html'>Carmen</a>).</p>"
        "<blockquote><p>One paragraph of it.</p><p>Another one of it.</p></blockquote>"
        '<pre>say("one two three")</pre>',
        encoding="utf-8",
    )
    [draft] = read_drafts(page)
    found = quotations(draft)
    assert [(each.text, each.source) for each in found] == [
        ("the end is near", ""),
        ("it is over now", "carmen.html"),
        ("One paragraph of it.", ""),
        ("Another one of it.", ""),
    ]
    assert all(draft.document.text[each.start : each.end] == each.text for each in found)


def test_block_quotes_that_only_set_a_page_in_are_none(tmp_path: Path) -> None:
    for count, most in ((9, 9), (10, 0)):
        page = tmp_path / f"{count}.html"
        page.write_text("<p>A question: how?</p><blockquote>The answer to it is set in.</blockquote>" * count)
        [draft] = read_drafts(page)
        assert len(quotations(draft)) == most


def test_a_word_document(tmp_path: Path) -> None:
    file = tmp_path / "draft.docx"
    file.write_bytes(docx("He said “it is over now”.", ("Quote", "It was given in Paris."), "No quotation here."))
    [draft] = read_drafts(file)
    assert [each.text for each in quotations(draft)] == ["it is over now", "It was given in Paris."]


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        [*read_drafts(tmp_path / "none.md")]
    (tmp_path / "bad.docx").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match=r"bad\.docx.*; give a draft that can be read"):
        [*read_drafts(tmp_path / "bad.docx")]


@given(st.text("ab \n\"'“”‘’„«»「」>`[](){}<*_-.,", max_size=80))
def test_any_text_is_read_and_places_are_in_order(draft: str) -> None:
    found = quotations(draft)
    assert all(0 <= each.start < each.end <= len(draft) for each in found)
    assert [each.start for each in found] == sorted(each.start for each in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(draft[each.start : each.end] == each.text for each in quotations(Document("", "", draft)))


@pytest.mark.parametrize(
    ("draft", "quoted"),
    [
        ("He said ``the end is near'' and ``more of it, it's said''.", ["the end is near", "more of it, it's said"]),
        ("See ``x = ''`` and ``one two three four``.", []),
        (
            "It says &ldquo;the end is near&rdquo;, &quot;so it is said&quot;, &laquo;and it is so&raquo;.",
            ["the end is near", "so it is said", "and it is so"],
        ),
        (
            "“10<sup>6</sup> by the 2<sup>n</sup> of the 1<sup>st</sup> day<sup>2</sup> here<sup>3</sup>”",
            ["10⁶ by the 2ⁿ of the 1st day² here"],
        ),
        ("“the end is <b>near</b> but <del>not</del> today”", ["the end is near but <del>not</del> today"]),
        ("It's rock 'n' roll for the dogs' sake, and rock ‘n’ roll of the cats’ kind.", []),
    ],
)
def test_markup_and_typed_marks(draft: str, quoted: list[str]) -> None:
    assert texts(draft) == quoted
    assert "<" in draft or [draft[each.start : each.end] for each in quotations(draft)] == quoted
