"""Word documents: what is read of text boxes, content controls and notes, and where it is said to be."""

import pytest
from test_numbering import OF_OFFICE, kind, level, lines, num, p, word
from written import repacked

from quoth_sources import docx
from quoth_sources.wordml import W

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


@pytest.mark.parametrize(
    ("font", "char", "said"),
    [
        ("Symbol", "F06D", "μ"), ("Symbol", "F0B1", "±"), ("Symbol", "00A3", "≤"), ("Symbol", "F0FE", "⎭"),
        ("Symbol", "F0F0", "\ufffd"), ("Symbol", "F010", "\ufffd"), ("Wingdings", "F0FE", "☑"), ("Arial", "03BC", "μ"),
        ("Arial", "F028", "\ufffd"), ("Wingdings", "F028", ""), ("Wingdings 2", "F0FE", ""),
    ],
)  # fmt: skip
def test_characters_by_their_numbers_in_a_font(font: str, char: str, said: str) -> None:
    sign = f'<w:sym w:font="{font}" w:char="{char}"/>'
    body = f"<w:p><w:r><w:t>10</w:t><w:ptab/></w:r><w:r>{sign}</w:r><w:r><w:t>g</w:t></w:r></w:p>"
    assert lines(word(body)) == [f"10 {said}g"]


@pytest.mark.parametrize(
    ("mark", "inside", "last"),
    [
        ("<w:del/>", "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>", "2. last"),
        ("<w:moveFrom/>", "<w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom>", "2. last"),
        ("<w:vanish/>", "<w:r><w:rPr><w:vanish/></w:rPr><w:t>gone</w:t></w:r>", "2. last"),
        ('<w:vanish w:val="0"/>', "", "3. last"),
        ("<w:del/>", "<w:r><w:t>kept</w:t></w:r>", "3. last"),
    ],
)
def test_items_that_are_gone_do_not_count(mark: str, inside: str, last: str) -> None:
    place = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    gone = f"<w:p><w:pPr>{place}<w:rPr>{mark}</w:rPr></w:pPr>{inside}</w:p>"
    content = word(p("first", "1") + gone + p("last", "1"), kind(1, level(0, "%1.")) + num(1, 1))
    assert lines(content)[-1] == last


def test_fields_in_the_code_of_others() -> None:
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    text, code = "<w:r><w:t>{}</w:t></w:r>".format, "<w:r><w:instrText>{}</w:instrText></w:r>".format
    sex = begin + code("MERGEFIELD Sex") + separate + text("F") + end
    ms = begin + code("IF") + sex + code('= "F" "Ms" "Mr"') + separate + text("Ms ") + end
    broken, linked = begin + text("kept "), begin + code("REF") + separate + text("shown ") + end
    body = f"<w:p>{ms}{text('Lee')}</w:p><w:p>{broken}</w:p><w:p>{linked}{text('after')}</w:p>"
    assert lines(word(body)) == ["Ms Lee", "kept", "shown after"]


def test_notes_count_as_people_see_them() -> None:
    note = '<w:footnote w:id="{}">{}</w:footnote>'.format
    notes = (
        f'<w:footnotes xmlns:w="{W[1:-1]}">{note(0, "<w:p/>")}{note(2, p("One."))}{note(3, p("Two."))}</w:footnotes>'
    )
    related = f'<Relationship Type="{OF_OFFICE}/footnotes" Target="footnotes.xml"/>'
    content = repacked(word(p("Text."), more=related), lambda _, part: part, **{"word/footnotes.xml": notes.encode()})
    source = docx.read(content)
    places = {source.text[start:end]: place for start, end, place in source.runs}
    assert places == {"Text.": "paragraph 1", "One.": "note 1", "Two.": "note 2"}
