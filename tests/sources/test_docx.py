"""Word documents: what is read of text boxes, content controls and notes, and where it is said to be."""

import pytest
from test_numbering import lines, p, word

_MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"


def boxed(inner: str) -> str:
    """A paragraph with a text box, which is there twice: once for old programs."""
    box = f"<w:txbxContent>{inner}</w:txbxContent>"
    both = f'<mc:AlternateContent xmlns:mc="{_MC}"><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>'
    return f"<w:p><w:r><w:t>Before</w:t></w:r><w:r>{both}</mc:AlternateContent></w:r></w:p>"


def table(*rows: str) -> str:
    """A table of rows, each of them its cells."""
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def cells(*inner: str) -> str:
    return "".join(f"<w:tc>{each}</w:tc>" for each in inner)


def control(inner: str, is_placeholder: bool = False) -> str:
    kind = "<w:showingPlcHdr/>" if is_placeholder else ""
    return f"<w:sdt><w:sdtPr>{kind}</w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


CLICK = p("Click here.")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            table(cells(p("Name"), p("Photo")), cells(p("Ann"), boxed(p("Caption")))),
            "Name | Photo\nAnn | Before Caption",
        ),
        (boxed(table(cells(p("Name"), p("Age")), cells(p("Ann"), p("7")))), "Before\nName\nAge\nAnn\n7"),
        (boxed(control(p("Report") + p("Ann"))), "Before\nReport\nAnn"),
        (boxed(p("Outer") + boxed(p("Inner"))), "Before\nOuter\nBefore\nInner"),
        (table(cells(p("Name"), control(CLICK, True)), cells(p("Date"), p("May"))), "Name\nDate | May"),
        (
            table(cells(p("Name")) + control(cells(CLICK), True) + cells(p("x")), cells(p("a"), p("b"), p("c"))),
            "Name | x\na | b | c",
        ),
        (table(cells(p("Name"), control(p("Ann"))), cells(p("Date"), p("May"))), "Name | Ann\nDate | May"),
    ],
)
def test_text_boxes_and_content_controls(body: str, said: str) -> None:
    assert lines(word(body)) == said.split("\n")
