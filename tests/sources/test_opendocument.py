"""OpenDocument files, written by hand as LibreOffice and pandoc write them: each piece where it is."""

import io
import zipfile

import pytest

from quoth_sources import odp, ods, odt

_KINDS = (
    "office",
    "text",
    "table",
    "meta",
    "drawing",
    "presentation",
    "style",
    "svg-compatible",
    "form",
    "field",
    "loext",
)
_NAMES = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _KINDS)
_MANIFEST = "<manifest/>"
_META = f"""<office:document-meta {_NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>
<dc:title>Of Kenya</dc:title><dc:creator>Bob</dc:creator><dc:date>2024-05-01T10:00:00</dc:date>
</office:meta></office:document-meta>"""


def written(body: str, kind: str = "text", manifest: str = _MANIFEST, meta: str = _META, styles: str = "") -> bytes:
    content = f"<office:document-content {_NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
    content += f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("META-INF/manifest.xml", manifest)
        archive.writestr("content.xml", content + "</office:document-content>")
        if meta:
            archive.writestr("meta.xml", meta)
    return stream.getvalue()


def test_paragraphs_lists_and_notes() -> None:
    source = odt.read(
        written(
            "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
            "<text:table-of-content><text:p>Report 1</text:p></text:table-of-content>"
            "<text:h>Report</text:h>"
            "<text:section><text:p>Kenya's   capital<text:line-break/>is<text:s/><text:span>Nai</text:span>"
            "<!-- x -->robi"
            "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Since 1907.</text:p>"
            "</text:note-body></text:note>.<office:annotation><text:p>really?</text:p></office:annotation></text:p>"
            "</text:section><text:list><text:list-item><text:p>one</text:p><text:list><text:list-item>"
            "<text:p>in it</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p/>"
            "</text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list><text:p>After.</text:p>"
        ),
    )
    assert source.text == (
        "Report\n\nKenya's capital\nis Nairobi¹.\n\n- one\n- in it\n- two\n\nAfter.\n\n¹ Since 1907."
    )
    assert [(source.text[start:end], place) for start, end, place in source.runs] == [
        ("Report", "paragraph 1"), ("Kenya's capital", "paragraph 2"), ("is Nairobi¹.", "paragraph 2"),
        ("one", "paragraph 3"), ("in it", "paragraph 4"), ("two", "paragraph 6"), ("After.", "paragraph 7"),
        ("Since 1907.", "note 1"),
    ]  # fmt: skip
    assert source.metadata == {"title": "Of Kenya", "author": "Bob", "date": "2024-05-01"}


def test_a_comments_author_is_not_the_documents() -> None:
    comment = '<office:annotation><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">Eve</dc:creator></office:annotation>'
    assert odt.read(written(f"<text:p>Text.{comment}</text:p>", meta="")).metadata == {}


def test_a_table_and_one_inside_it() -> None:
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    inner = f"<table:table><table:table-row>{cells('hills')}</table:table-row></table:table>"
    source = odt.read(
        written(
            "<table:table><table:table-header-rows><table:table-row>"
            f"{cells('Country')}{cells('Capital')}</table:table-row></table:table-header-rows>"
            f"<table:table-row>{cells('Kenya')}{cells('Nairobi')}"
            "<table:table-cell table:number-columns-repeated='16382'/></table:table-row>"
            f"<table:table-row><table:covered-table-cell/><table:table-cell>{inner}</table:table-cell></table:table-row>"
            "</table:table>"
        ),
    )
    assert source.text == "Country: Kenya | Capital: Nairobi\nCapital: hills"
    places = {source.text[start:end]: place for start, end, place in source.runs}
    assert places["Nairobi"] == "table 1, row 2, cell 2"
    assert places["hills"] == "table 1, row 3, cell 2"


def test_what_is_beside_the_text_of_a_cell_or_of_a_picture() -> None:
    note = "<text:note><text:note-body><text:p>New.</text:p></text:note-body></text:note>"
    comment = "<office:annotation><text:p>really?</text:p></office:annotation>"
    picture = "<drawing:frame><svg-compatible:title>Logo</svg-compatible:title></drawing:frame>"
    frame = f"<drawing:frame>{picture}<drawing:text-box><text:p>of oak</text:p></drawing:text-box></drawing:frame>"
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rows = (("Item", "Cost"), (f"Chair{note}", f"5{comment}"), (f"Desk {frame}", "7"))
    table = "".join(f"<table:table-row>{''.join(map(cells, row))}</table:table-row>" for row in rows)
    source = odt.read(written(f"<table:table>{table}</table:table><text:p>See {picture}here.</text:p>"))
    assert source.text == "Item: Chair | Cost: 5\nItem: Desk of oak | Cost: 7\n\nSee here.\n\nNew."


def test_hidden_slides_and_what_is_on_every_slide() -> None:
    frame = "<drawing:frame presentation:class='{}'><text:p>{}</text:p></drawing:frame>".format
    often = frame("footer", "The club") + frame("date-time", "1 May") + frame("page-number", "1")
    style = "<style:style style:name='{}'><style:p presentation:visibility='{}'/></style:style>".format
    styles = style("dp1", "visible") + style("dp2", "hidden")
    slides = [f"<drawing:page drawing:style-name='dp{which}'>{frame('', 'Fees')}{often}" for which in (1, 2, 1)]
    notes = f"<presentation:notes>{often}{frame('notes', 'Say it')}</presentation:notes>"
    body = "".join(f"{slide}{notes}</drawing:page>" for slide in slides)
    source = odp.read(written(body, "presentation", styles=styles))
    assert source.text == "Fees\n\nSay it\n\nFees\n\nSay it"
    assert [number for *_, number, _ in source.runs] == [1, 1, 3, 3]


def test_slides_begin_with_their_titles() -> None:
    frame = "<drawing:frame{}><drawing:text-box>{}</drawing:text-box></drawing:frame>".format
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    rows = "".join(
        f"<table:table-row>{''.join(map(cells, row))}</table:table-row>"
        for row in (("Country", "Capital"), ("Kenya", "Nairobi"))
    )
    source = odp.read(
        written(
            "<drawing:page>"
            + frame("", "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>")
            + frame(" presentation:class='title'", "<text:p>Capitals</text:p>")
            + "<drawing:g><drawing:custom-shape><text:p>An arrow</text:p></drawing:custom-shape></drawing:g>"
            + f"<drawing:frame><table:table>{rows}</table:table></drawing:frame>"
            + f"<presentation:notes>{frame('', '<text:p>Say it</text:p><text:p>slowly</text:p>')}"
            f"{frame('', '<text:p><text:page-number>1</text:page-number></text:p>')}</presentation:notes>"
            + f"</drawing:page><drawing:page>{frame('', '<text:p>End</text:p>')}</drawing:page>",
            "presentation",
        )
    )
    assert source.text == "Capitals\n\n- one\n\nAn arrow\n\nCountry: Kenya | Capital: Nairobi\n\nSay it\nslowly\n\nEnd"
    assert source.kind == "slide"
    assert source.metadata["title"] == "Of Kenya"
    assert [(source.text[start:end], *place) for start, end, *place in source.runs] == [
        ("Capitals", 1, "paragraph 1"), ("one", 1, "paragraph 2"), ("An arrow", 1, "paragraph 3"),
        ("Kenya", 1, "table 1, row 2, cell 1"), ("Nairobi", 1, "table 1, row 2, cell 2"),
        ("Say it", 1, "notes"), ("slowly", 1, "notes"), ("End", 2, "paragraph 1"),
    ]  # fmt: skip


def _sheet(*rows: str, name: str = "Trips", more: str = "") -> str:
    return f"<table:table table:name='{name}' {more}>{''.join(rows)}</table:table>"


def _row(*cells: str, times: int = 1) -> str:
    return f"<table:table-row table:number-rows-repeated='{times}'>{''.join(cells)}</table:table-row>"


def _cell(said: str = "", kind: str = "string", times: int = 1, more: str = "") -> str:
    inside = f"<text:p>{said}</text:p>" if said else ""
    return (
        f"<table:table-cell office:value-type='{kind}' table:number-columns-repeated='{times}' {more}>{inside}"
        "<office:annotation><text:p>really?</text:p></office:annotation></table:table-cell>"
    )


def test_a_sheet_as_it_is_shown() -> None:
    date = _cell("04/03/24", "date", more="office:date-value='2024-03-04T00:00:00'")
    source = ods.read(
        written(
            _sheet(
                f"<table:table-header-rows>{_row(_cell('Place'), _cell('Since'), _cell('Share'), _cell(times=9))}"
                "</table:table-header-rows>",
                _row(_cell("Nairobi"), date, _cell("25 %", "percentage", more="office:value='0.25'")),
                _row(_cell("Mombasa", times=1), _cell(times=1), _cell("7.50 €", "currency"), times=2),
                _row(_cell(times=16384), times=40),
                _row(_cell(times=27), _cell("a note")),
                _row(_cell(times=16384), times=1_048_000),
                _row(_cell("never seen")),
            ),
            "spreadsheet",
        )
    )
    assert source.text == (
        "Trips\n\nPlace: Nairobi | Since: 2024-03-04 | Share: 25 %\nPlace: Mombasa | Share: 7.50 €\n"
        "Place: Mombasa | Share: 7.50 €\n\na note"
    )
    places = [(source.text[start:end], *place) for start, end, *place in source.runs]
    assert places[-5:] == [
        ("Mombasa", "Trips", "A3"), ("7.50 €", "Trips", "C3"), ("Mombasa", "Trips", "A4"), ("7.50 €", "Trips", "C4"),
        ("a note", "Trips", "AB45"),
    ]  # fmt: skip
    assert source.kind == "cell"


def test_visible_sheets_by_name_and_cells_that_are_repeated() -> None:
    styles = "<style:style style:name='ta2'><style:table-properties table:display='false'/></style:style>"
    styles += "<style:style style:name='ta1'><style:table-properties table:display='true'/></style:style>"
    table = [_row(_cell("Day"), _cell("Open")), _row(_cell("Monday"), _cell("9 to 5"))]
    hidden = _sheet(*table, name="Old", more="table:style-name='ta2'")
    shown = _sheet(*table, more="table:style-name='ta1'")
    closed = _sheet(_row(_cell("closed", times=3)), name="Other")
    source = ods.read(written(hidden + shown + closed, "spreadsheet", styles=styles))
    assert source.text == "Trips\n\nSheet: Trips | Day: Monday | Open: 9 to 5\n\nOther\n\nclosed | closed | closed"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (written("", kind="spreadsheet"), "it has no text: it is not an OpenDocument text"),
        (written("", manifest="<manifest><encryption-data/></manifest>"), "without a password"),
        (written("", kind="presentation"), "it has no text"),
    ],
)
def test_what_is_no_text_says_so(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        odt.read(content)


def test_a_document_without_a_manifest_is_read() -> None:
    comment = "<manifest><!-- no encryption-data --></manifest>"
    assert odt.read(written("<text:p>Text.</text:p>", manifest=comment)).text == "Text."
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(written("<text:p>Text.</text:p>"))) as old, zipfile.ZipFile(stream, "w") as new:
        new.writestr("content.xml", old.read("content.xml"))
    source = odt.read(stream.getvalue())
    assert (source.text, source.metadata) == ("Text.", {})


def test_what_is_raised_or_beside_the_text() -> None:
    position = "<style:style style:name='{}'><style:text-properties style:text-position='{}'/></style:style>".format
    styles = position("T1", "super 58%") + position("T2", "-33% 58%") + position("T3", "0% 100%")
    styles += "<style:style style:name='T4' style:parent-style-name='T1'/>"
    span = "<text:span text:style-name='{}'>{}</text:span>".format
    body = f"<text:p>H{span('T2', 2)}O, 10{span('T4', '-')}{span('T1', 3)}{span('T3', ' g')}</text:p>"
    body += "<text:p><text:ruby>山<text:ruby-text>やま</text:ruby-text></text:ruby>の</text:p>"
    body += "<text:p>Name: <text:placeholder>Click here</text:placeholder></text:p>"
    assert odt.read(written(body, styles=styles)).text == "H₂O, 10⁻³ g\n\n山の\n\nName:"


def test_what_a_form_is_filled_with() -> None:
    controls = (
        "<form:text form:id='a' form:current-value='Quist'/><form:text form:id='b'/>"
        "<form:checkbox form:id='c' form:current-state='checked' form:label='Water'/>"
        "<form:radio form:id='d' form:label='Tap'/><form:button form:id='e' form:label='Send' form:value='x'/>"
        "<form:listbox form:id='f'><form:option form:label='Small'/>"
        "<form:option form:label='Large' form:current-selected='true'/></form:listbox>"
    )
    kind = "vnd.oasis.opendocument.field.FORM"
    parameter = "<field:param field:name='{}' field:value='{}'/>".format
    parameters = ("Dropdown_ListEntry", "S"), ("Dropdown_ListEntry", "L"), ("Dropdown_Selected", 1)
    choice = "".join(parameter(*each) for each in parameters)
    ticked = parameter("Checkbox_Checked", "true")
    body = f"<office:forms><form:form>{controls}</form:form></office:forms>" + "".join(
        f"<text:p>{line}</text:p>"
        for line in (
            "Surname: <drawing:control drawing:control='a'/>",
            "Plot: <drawing:control drawing:control='b'/>",
            "<drawing:control drawing:control='c'/> <drawing:control drawing:control='d'/>",
            "Size: <drawing:control drawing:control='f'/><drawing:control drawing:control='e'/>",
            f"Tap: <field:fieldmark field:type='{kind}CHECKBOX'>{ticked}</field:fieldmark>",
            f"Pipe: <field:fieldmark field:type='{kind}CHECKBOX'/>",
            f"Fit: <field:fieldmark field:type='{kind}DROPDOWN'>{choice}</field:fieldmark>",
            "Date: <loext:content-control loext:showing-place-holder='true'>Click here.</loext:content-control>",
        )
    )
    assert odt.read(written(body)).text.split("\n\n") == [
        "Surname: Quist", "Plot:", "☒ Water ☐ Tap", "Size: Large", "Tap: ☒", "Pipe: ☐", "Fit: L", "Date:",
    ]  # fmt: skip
