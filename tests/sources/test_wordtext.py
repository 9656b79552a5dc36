"""The text of Word's paragraphs: superscripts, readings, references to notes, and what forms are filled with."""

import pytest
from test_docx import cells, table
from test_numbering import OF_OFFICE, p, word
from written import docx as by_python_docx
from written import repacked

from quoth_sources import docx
from quoth_sources.wordml import W

_W14 = 'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'


def r(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def up(text: str) -> str:
    return r(text, '<w:vertAlign w:val="superscript"/>')


def para(*parts: str) -> str:
    return f"<w:p>{''.join(parts)}</w:p>"


def field(form: str, code: str, result: str = "") -> str:
    kinds = ("begin", f"<w:ffData>{form}</w:ffData>"), ("separate", ""), ("end", "")
    begin, separate, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>' for kind, inner in kinds
    )
    return f"{begin}<w:r><w:instrText>{code}</w:instrText></w:r>{separate}{result}{end}"


def control(inner: str, kind: str = "<w:text/>", name: str = "") -> str:
    alias = f'<w:alias w:val="{name}"/>' if name else ""
    return f"<w:sdt><w:sdtPr>{alias}{kind}</w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


STYLES = (
    '<w:style w:styleId="Up"><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style>'
    '<w:style w:styleId="Mark"><w:basedOn w:val="Up"/></w:style>'
    '<w:style w:styleId="Platzhalter"><w:name w:val="Placeholder Text"/></w:style>'
)
NOT, SECOND = '<w:default w:val="0"/>', '<w:result w:val="1"/>'
CHOICES = "".join(f'<w:listEntry w:val="{each}"/>' for each in ("Small", "Large"))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (para(r("Built in 1998"), up("3"), r(", 10"), up("-"), up("3"), r(" m")), "Built in 1998³, 10⁻³ m"),
        (
            para(up("1"), r("In the beginning "), up("2"), r("the end "), up("14"), r("C")),
            "¹ In the beginning ² the end ¹⁴C",
        ),
        (para(r("H"), r("2", '<w:vertAlign w:val="subscript"/>'), r("O")), "H₂O"),
        (para(r("10"), r("6", '<w:rStyle w:val="Mark"/>'), r("x", '<w:vertAlign w:val="baseline"/>')), "10⁶x"),
        (
            para(r("10"), r("6", '<w:position w:val="8"/><w:sz w:val="19"/>'), r(" kg, up", '<w:sz w:val="24"/>'))
            + para(r("10", '<w:sz w:val="24"/>'), r("2", '<w:position w:val="4"/><w:sz w:val="24"/>')),
            "10⁶ kg, up\n\n102",
        ),
        (
            table(cells(para(r("Mass")), para(r("10"), up("6"), r(" kg"))), cells(p("Name"), p("Oak"))),
            "Mass | 10⁶ kg\nName | Oak",
        ),
        (
            "<w:p><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>やま</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>山</w:t></w:r>"
            "</w:rubyBase></w:ruby></w:r><w:r><w:t>の</w:t></w:r></w:p>",
            "山の",
        ),
    ],
)
def test_what_is_raised_or_a_reading_is_not_glued_to_the_text(body: str, text: str) -> None:
    assert docx.read(word(body, styles=STYLES)).text == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (para(r("Surname: "), field('<w:textInput/>', "FORMTEXT", r("Quist"))), "Surname: Quist"),
        (para(r("Surname:"), field('<w:textInput/>', "FORMTEXT", r("\u2002\u2002\u2002"))), "Surname:"),
        (para(r("Water: "), field(f"<w:checkBox>{NOT}<w:checked/></w:checkBox>", "FORMCHECKBOX")), "Water: ☒"),
        (para(field('<w:checkBox><w:default w:val="1"/></w:checkBox>', "FORMCHECKBOX"), r(" Water")), "☒ Water"),
        (para(field('<w:checkBox><w:checked w:val="0"/></w:checkBox>', "FORMCHECKBOX"), r(" Water")), "☐ Water"),
        (para(r("Size: "), field(f"<w:ddList>{SECOND}{CHOICES}</w:ddList>", "FORMDROPDOWN")), "Size: Large"),
        (para(r("Size: "), field(f'<w:ddList>{CHOICES}</w:ddList>', "FORMDROPDOWN", r("Small"))), "Size: Small"),
        (para(r("Size: "), field('<w:ddList><w:result w:val="7"/></w:ddList>', "FORMDROPDOWN")), "Size:"),
        (para(r("Date: "), control(r("9 May 2025"), "<w:date/>", "Day")), "Date: 9 May 2025"),
        (para(control(r("Quist"), name="Surname")), "Surname: Quist"),
        (control(p("Large"), "<w:dropDownList/>", "Size"), "Size: Large"),
        (control(p("The report"), '<w:dataBinding w:xpath="a"/><w:text/>', "Title"), "The report"),
        (control(p("One.") + p("Two."), "<w:richText/>", "Summary"), "One.\n\nTwo."),
        (para(r("Name: "), control(r("Click here."), "<w:showingPlcHdr/>", "Name")), "Name:"),
        (para(r("Name: "), control(r("Bitte klicken", '<w:rStyle w:val="Platzhalter"/>'))), "Name:"),
        (
            para(control(r("☒"), f'<w14:checkbox {_W14}><w14:checked w14:val="1"/></w14:checkbox>'), r(" Water")),
            "☒ Water",
        ),
        (table(cells(p("Name"), para(control(r("Ann"), name="Name"))), cells(p("Age"), p("7"))), "Name | Ann\nAge | 7"),
    ],
)  # fmt: skip
def test_what_a_form_is_filled_with(body: str, text: str) -> None:
    assert docx.read(word(body, styles=STYLES)).text == text


@pytest.mark.parametrize(
    ("way", "marks"), [("", "ⁱ ⁱⁱ"), ('<w:endnotePr><w:numFmt w:val="decimal"/></w:endnotePr>', "¹ ²")]
)
def test_notes_have_their_marks(way: str, marks: str) -> None:
    refer = '<w:r><w:{}Reference w:id="{}"/></w:r>'.format
    foot, end = refer("footnote", 9), refer("footnote", 4)
    gone = f"<w:del>{refer('footnote', 7)}</w:del>"
    own = '<w:r><w:footnoteReference w:id="5" w:customMarkFollows="1"/></w:r>' + up("*")
    body = para(r("Built in 1998"), foot, gone, r(", sold"), own, refer("endnote", 2), end, r("."), refer("endnote", 3))
    parts = {}
    for kind, texts in (
        ("footnote", {9: "By Ann.", 4: "Or 1999.", 5: "Twice."}),
        ("endnote", {2: "See Bo.", 3: "See X."}),
    ):
        inner = "".join(f'<w:{kind} w:id="{name}">{p(text)}</w:{kind}>' for name, text in texts.items())
        parts[f"word/{kind}s.xml"] = f'<w:{kind}s xmlns:w="{W[1:-1]}">{inner}</w:{kind}s>'.encode()
    related = "".join(
        f'<Relationship Type="{OF_OFFICE}/{kind}s" Target="{kind}s.xml"/>' for kind in ("footnote", "endnote")
    )
    text = docx.read(
        repacked(word(body + f"<w:sectPr>{way}</w:sectPr>", more=related), lambda _, part: part, **parts)
    ).text
    one, two = marks.split()
    assert (
        text
        == f"Built in 1998¹, sold*{one}².{two}\n\n¹ By Ann.\n\n² Or 1999.\n\nTwice.\n\n{one} See Bo.\n\n{two} See X."
    )


def test_a_document_of_a_library_has_no_facts_of_its_template() -> None:
    assert docx.read(by_python_docx("Words.")).metadata == {}


def test_marks_of_notes_are_raised_without_their_styles() -> None:
    custom = '<w:r><w:footnoteReference w:customMarkFollows="1" w:id="2"/><w:t>4</w:t></w:r>'
    body = para(r("In 1999"), custom, r(", 1998"), r("5", '<w:rStyle w:val="EndnoteReference"/>'), r(" and 1997"))
    body += para(r("1996"), r("7", '<w:rStyle w:val="Other"/>'))
    assert docx.read(word(body)).text == "In 1999⁴, 1998⁵ and 1997\n\n19967"
    named = '<w:rStyle w:val="FootnoteReference"/><w:vertAlign w:val="baseline"/>'
    assert docx.read(word(para(r("see note "), r("5", named)))).text == "see note 5"
    damaged = repacked(word(body), lambda name, part: b"nonsense" if name.endswith("styles.xml") else part)
    assert docx.read(damaged).text.startswith("In 1999⁴, 1998⁵")
