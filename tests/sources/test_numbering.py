"""The numbers of items and headings, which Word and OpenDocument only define: as LibreOffice 7.4 shows them."""

import io
import zipfile

import pytest

from quoth_sources import docx, odt
from quoth_sources.numbers import written

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OF_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def word(body: str, numbering: str = "", styles: str = "", more: str = "") -> bytes:
    """A Word document of these paragraphs; `more` are further relations."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        related = '<Relationships><Relationship Type="{0}/{1}" Target="{2}"/>{3}</Relationships>'.format
        archive.writestr("_rels/.rels", related(OF_OFFICE, "officeDocument", "/word/document.xml", ""))
        others = f'<Relationship Type="{OF_OFFICE}/styles" Target="styles.xml"/>{more}'
        archive.writestr("word/_rels/document.xml.rels", related(OF_OFFICE, "numbering", "numbering.xml", others))
        archive.writestr("word/document.xml", f"<w:document {_W}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/numbering.xml", f"<w:numbering {_W}>{numbering}</w:numbering>")
        archive.writestr("word/styles.xml", f"<w:styles {_W}>{styles}</w:styles>")
    return stream.getvalue()


def p(text: str, number: str = "", level: int = 0, style: str = "") -> str:
    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>' if number else ""
    properties = (f'<w:pStyle w:val="{style}"/>' if style else "") + place
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def level(at: int, text: str, way: str = "decimal", start: int = 1, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{way}"/>{more}<w:lvlText w:val="{text}"/>'
        "</w:lvl>"
    )


def kind(name: int, *levels: str) -> str:
    return f'<w:abstractNum w:abstractNumId="{name}">{"".join(levels)}</w:abstractNum>'


def num(name: int, of: int, more: str = "") -> str:
    return f'<w:num w:numId="{name}"><w:abstractNumId w:val="{of}"/>{more}</w:num>'


def starts(at: int, number: int) -> str:
    return f'<w:lvlOverride w:ilvl="{at}"><w:startOverride w:val="{number}"/></w:lvlOverride>'


def lines(content: bytes) -> list[str]:
    return [line for line in docx.read(content).text.split("\n") if line]


LEGAL = kind(
    1, level(0, "%1."), level(1, "%1.%2"), level(2, "(%3)", "lowerLetter"), level(3, "%1/%4", "upperRoman", start=3)
)


def test_levels_count_and_begin_again() -> None:
    body = p("Terms", "1") + p("Rent", "1", 1) + p("cash", "1", 2) + p("card", "1", 2) + p("Deposit", "1", 1)
    body += p("End", "1") + p("Notice", "1", 1) + p("post", "1", 2) + p("deep", "1", 3) + p("deeper", "1", 3)
    assert lines(word(body, LEGAL + num(1, 1))) == [
        "1. Terms", "1.1 Rent", "(a) cash", "(b) card", "1.2 Deposit", "2. End", "2.1 Notice", "(a) post",
        "2/III deep", "2/IV deeper",
    ]  # fmt: skip


def test_lists_of_one_kind_go_on_counting_unless_one_begins_anew() -> None:
    body = p("one", "1") + p("two", "2") + "<w:p/>" + p("again", "3") + p("more", "3") + p("back", "1")
    numbering = kind(1, level(0, "%1)")) + num(1, 1) + num(2, 1) + num(3, 1, starts(0, 7))
    assert lines(word(body, numbering)) == ["1) one", "2) two", "7) again", "8) more", "9) back"]


def test_a_level_that_was_skipped_is_at_its_start() -> None:
    assert lines(word(p("a", "1", 1) + p("b", "1", 1), LEGAL + num(1, 1))) == ["1.1 a", "1.2 b"]


@pytest.mark.parametrize(("restart", "last"), [("", "1.1"), ('<w:lvlRestart w:val="0"/>', "1.3")])
def test_a_level_may_go_on_in_spite_of_those_above(restart: str, last: str) -> None:
    chapters = kind(1, level(0, "%1."), level(1, "1.%2", more=restart))
    body = p("A", "1") + p("a", "1", 1) + p("b", "1", 1) + p("B", "1") + p("c", "1", 1)
    assert lines(word(body, chapters + num(1, 1)))[-1] == f"{last} c"


@pytest.mark.parametrize(
    ("way", "text", "shown"),
    [
        ("bullet", "\uf0b7", "- x"),
        ("none", "%1", "x"),
        ("decimal", "", "x"),
        ("decimalZero", "%1.", "04. x"),
        ("upperLetter", "Part %1:", "Part D: x"),
        ("lowerRoman", "%1", "iv x"),
        ("hebrew1", "%1.", "4. x"),
    ],
)
def test_how_a_level_looks(way: str, text: str, shown: str) -> None:
    assert lines(word(p("x", "1"), kind(1, level(0, text, way, start=4)) + num(1, 1))) == [shown]


def test_legal_numbers_are_digits_at_every_level() -> None:
    levels = level(0, "Article %1", "upperRoman"), level(1, "%1.%2", more="<w:isLgl/>")
    assert lines(word(p("A", "1") + p("b", "1", 1), kind(1, *levels) + num(1, 1))) == ["Article I A", "1.1 b"]


def test_a_list_may_look_different_from_its_kind() -> None:
    own = f'<w:lvlOverride w:ilvl="0">{level(0, "[%1]", start=5)}</w:lvlOverride>'
    body = p("x", "1") + p("y", "9") + p("z", "0") + p("far", "1", 8)
    assert lines(word(body, kind(1, level(0, "%1.")) + num(1, 1, own))) == ["[5] x", "y", "z", "far"]


def test_a_level_that_only_one_list_of_a_kind_has() -> None:
    own = f'<w:lvlOverride w:ilvl="1">{level(1, "%1.%2")}</w:lvlOverride>'
    numbering = kind(1, level(0, "%1.")) + num(1, 1) + num(2, 1, own)
    body = p("a", "1") + p("b", "2", 1) + p("c", "1") + p("d", "2", 1)
    assert lines(word(body, numbering)) == ["1. a", "1.1 b", "2. c", "2.1 d"]


def test_a_level_begins_at_a_lists_own_number_each_time() -> None:
    body = p("a", "1") + p("b", "1", 1) + p("c", "1", 1) + p("d", "1") + p("e", "1", 1)
    assert lines(word(body, LEGAL + num(1, 1, starts(1, 5)))) == ["1. a", "1.5 b", "1.6 c", "2. d", "2.5 e"]


def test_headings_have_the_numbers_of_their_styles() -> None:
    style = '<w:style w:styleId="{}"><w:basedOn w:val="{}"/><w:pPr>{}<w:outlineLvl w:val="0"/></w:pPr></w:style>'.format
    of_list = '<w:numPr><w:numId w:val="1"/></w:numPr>'
    styles = style("H1", "H0", of_list) + style("H2", "H1", of_list) + style("Own", "H2", "") + style("H0", "Own", "")
    numbering = kind(
        1, level(0, "%1", more='<w:pStyle w:val="H1"/>'), level(1, "%1.%2", more='<w:pStyle w:val="H2"/>')
    ) + num(1, 1)
    body = (
        p("Rent", style="H1") + "<w:p/>" + p("Cash", style="H2") + p("Card", style="Own") + p("Late", "0", style="H1")
    )
    assert docx.read(word(body, numbering, styles)).text == "1 Rent\n\n1.1 Cash\n\n1.2 Card\n\nLate"


@pytest.mark.parametrize("link", ['<w:pStyle w:val="H2"/>', ""])
def test_a_style_may_only_say_its_level(link: str) -> None:
    style = '<w:style w:styleId="{}"><w:basedOn w:val="{}"/><w:pPr><w:numPr>{}</w:numPr></w:pPr></w:style>'.format
    styles = style("H1", "", '<w:numId w:val="1"/>') + style("H2", "H1", '<w:ilvl w:val="1"/>')
    numbering = kind(1, level(0, "%1"), level(1, "%1.%2", more=link)) + num(1, 1)
    body = "".join(p(text, style=style) for text, style in [("A", "H1"), ("B", "H2"), ("C", "H2"), ("D", "H1")])
    assert lines(word(body, numbering, styles)) == ["1 A", "1.1 B", "1.2 C", "2 D"]


def test_a_list_that_is_that_of_a_style() -> None:
    styles = '<w:style w:styleId="Mine"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    pointing = '<w:abstractNum w:abstractNumId="2"><w:numStyleLink w:val="Mine"/></w:abstractNum>'
    numbering = kind(1, level(0, "%1)")) + pointing + num(1, 1) + num(2, 2)
    assert lines(word(p("a", "1") + p("b", "2"), numbering, styles)) == ["1) a", "2) b"]


def test_empty_items_count_and_cells_have_their_numbers() -> None:
    row = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>".format
    body = p("", "1") + f"<w:tbl>{row(p('', '1'), p('Rent'))}{row(p('', '1'), p('Notice'))}</w:tbl>" + p("last", "1")
    assert lines(word(body, LEGAL + num(1, 1))) == ["2. | Rent", "3. | Notice", "4. last"]


def test_a_document_that_lacks_what_it_refers_to() -> None:
    gone = f'<Relationship Type="{OF_OFFICE}/image" Target="media/NULL"/>'
    assert docx.read(word(p("Text."), more=gone)).text == "Text."


def test_a_document_that_was_saved_as_strict() -> None:
    stream = io.BytesIO()
    strict = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    with zipfile.ZipFile(io.BytesIO(word(p("x", "1"), LEGAL + num(1, 1)))) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).decode().replace(_W[9:-1], strict))
    assert docx.read(stream.getvalue()).text == "1. x"


def test_what_is_no_word_document_says_so() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ValueError, match="it is not a Word document"):
        docx.read(stream.getvalue())


@pytest.mark.parametrize(
    ("number", "way", "said"),
    [
        (26, "a", "z"), (28, "A", "BB"), (1994, "I", "MCMXCIV"), (4, "i", "iv"), (9, "01", "09"), (0, "a", "0"),
        (0, "I", "0"), (10_000, "i", "10000"), (12, "1", "12"), (3, "", "3"),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(number: int, way: str, said: str) -> None:
    assert written(number, way) == said


_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "style")
)
_LEVEL = "<text:list-level-style-number text:level='{}' style:num-format='{}' {}/>".format


def opendocument(body: str, styles: str = "", outline: str = "") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        of_lists = f"<text:list-style style:name='L'>{styles}</text:list-style>" if styles else ""
        parts = f"<office:automatic-styles>{of_lists}</office:automatic-styles><office:body><office:text>{body}"
        content = f"<office:document-content {_NAMES}>{parts}</office:text></office:body></office:document-content>"
        archive.writestr("content.xml", content)
        archive.writestr(
            "styles.xml", f"<office:styles {_NAMES}><text:outline-style>{outline}</text:outline-style></office:styles>"
        )
    return stream.getvalue()


def item(text: str, inside: str = "", more: str = "") -> str:
    return f"<text:list-item {more}><text:p>{text}</text:p>{inside}</text:list-item>"


def listed(*items: str, more: str = "text:style-name='L'") -> str:
    return f"<text:list {more}>{''.join(items)}</text:list>"


LEVELS = _LEVEL(1, "1", "style:num-suffix='.'") + _LEVEL(2, "a", "text:display-levels='2' style:num-prefix='('")


def test_items_of_opendocument_count() -> None:
    inner = listed(item("cash"), item("card"), more="")
    body = listed(
        item("Rent", inner),
        item("", more=""),
        "<text:list-header><text:p>So:</text:p></text:list-header>",
        item("End", inner),
    )
    body += "<text:p>Then</text:p>" + listed(item("anew"), item("ten", more="text:start-value='10'"), item("on"))
    assert odt.read(opendocument(body, LEVELS)).text == (
        "1. Rent\n(1.a cash\n(1.b card\nSo:\n3. End\n(3.a cash\n(3.b card\n\nThen\n\n1. anew\n10. ten\n11. on"
    )


def test_a_list_of_opendocument_goes_on() -> None:
    first = listed(item("one"), more="text:style-name='L' xml:id='first'")
    same = listed(item("two"), more="text:style-name='L' text:continue-numbering='true'")
    other = listed(item("anew")) + listed(item("three"), more="text:style-name='L' text:continue-list='first'")
    below = listed(
        f"<text:list-item>{listed(item('deep'), more='')}</text:list-item>",
        more="text:style-name='L' text:continue-numbering='true'",
    )
    text = odt.read(opendocument(first + same + other + below, LEVELS)).text
    assert " ".join(text.split()) == "1. one 2. two 1. anew 3. three (3.a deep"


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        (_LEVEL(1, "", ""), "x"),
        (_LEVEL(1, "I", "text:start-value='4'"), "IV x"),
        (_LEVEL(1, "1", "text:num-list-format='No %1%:'"), "No 1: x"),
        ("<text:list-level-style-bullet text:level='1'/>", "- x"),
        ("", "- x"),
    ],
)
def test_how_a_level_of_opendocument_looks(style: str, shown: str) -> None:
    assert odt.read(opendocument(listed(item("x")), style)).text == shown


def test_an_item_may_look_different_from_its_list() -> None:
    styles = LEVELS + f"</text:list-style><text:list-style style:name='B'>{_LEVEL(1, 'A', '')}"
    body = listed(item("one"), item("two", more="text:style-override='B'"), item("three"))
    assert odt.read(opendocument(body, styles)).text == "1. one\nB two\n3. three"


def test_headings_of_opendocument_have_numbers() -> None:
    outline = "<text:outline-level-style text:level='1' style:num-format='1' style:num-suffix='.'/>"
    outline += "<text:outline-level-style text:level='2' style:num-format='1' text:display-levels='2'/>"
    outline += "<text:outline-level-style text:level='3' style:num-format=''/>"
    heading = "<text:h text:outline-level='{}' {}>{}</text:h>".format
    body = heading(1, "", "Rent") + heading(2, "", "Cash") + heading(3, "", "Coins") + heading(1, "", "End")
    body += heading(2, "text:is-list-header='true'", "Names") + heading(2, "", "Notice")
    body += listed(f"<text:list-item>{heading(1, '', 'Annex')}</text:list-item>", more="")
    assert odt.read(opendocument(body, outline=outline)).text == (
        "1. Rent\n\n1.1 Cash\n\nCoins\n\n2. End\n\nNames\n\n2.1 Notice\n\n- Annex"
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:t>seen</w:t></w:r></w:p>", "seen"),
        ("<w:p><w:r><w:rPr><w:strike/></w:rPr><w:t>old</w:t></w:r><w:r><w:t>new</w:t></w:r></w:p>", "new"),
        ('<w:p><w:r><w:rPr><w:dstrike w:val="0"/></w:rPr><w:t>kept</w:t></w:r></w:p>', "kept"),
        (
            "<w:p>Name: <w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent><w:r><w:t>Click here.</w:t></w:r>"
            "</w:sdtContent></w:sdt><w:r><w:t>Name:</w:t></w:r></w:p>",
            "Name:",
        ),
        (
            f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{p('Click here.')}</w:sdtContent></w:sdt>"
            f"<w:sdt><w:sdtContent>{p('Ann')}</w:sdtContent></w:sdt>",
            "Ann",
        ),
        (
            f"<w:p><w:r><w:t>Agent:</w:t></w:r><w:r><w:txbxContent>{p('Fiona Lund')}{p('Tel. 0191')}</w:txbxContent>"
            "</w:r><w:r><w:t>After.</w:t></w:r></w:p>",
            "Agent:\nFiona Lund\nTel. 0191\nAfter.",
        ),
        (
            f"<w:tbl><w:tr><w:tc>{p('Name')}</w:tc><w:tc>{p('Town')}</w:tc></w:tr><w:tr><w:trPr><w:del/></w:trPr><w:tc>"
            f"{p('Bo')}</w:tc><w:tc>{p('York')}</w:tc></w:tr><w:tr><w:tc>{p('Ann')}</w:tc><w:tc>{p('Bath')}</w:tc></w:tr>"
            "</w:tbl>",
            "Name | Town\nAnn | Bath",
        ),
    ],
)
def test_what_is_not_to_be_seen_in_a_word_document(body: str, text: str) -> None:
    assert docx.read(word(body)).text == text


def test_hidden_parts_of_opendocument() -> None:
    body = "<text:section text:display='none'><text:p>secret</text:p></text:section><text:section><text:p>Said"
    body += "<text:hidden-text text:string-value='x'>x</text:hidden-text>.</text:p></text:section>"
    assert odt.read(opendocument(body)).text == "Said."
