"""Web pages: what a reader of the page reads, each piece with the path of its element, as CSS selects it.

Knows which elements are the page's own text (`main`, if there is one) and which are not: scripts, navigation, menus,
feet, empty forms, readings of characters, what is hidden or struck out. Does not know how a page looks, or what its
scripts would add.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from quoth_sources import controls, mathml, tables
from quoth_sources.beside import apart, behind, is_mark, is_script
from quoth_sources.css import classes_of, shown_as
from quoth_sources.files import decode, meant
from quoth_sources.levels import LEVELS, is_verse
from quoth_sources.numbers import written
from quoth_sources.source import OFF, Piece, Source, Text
from quoth_sources.tables import Box, Grid, boxed
from quoth_sources.unread import is_inside, is_left_out, is_of_links, unread_kind

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_KINDS = {
    **dict.fromkeys(_HEADINGS, "heading"),
    **dict.fromkeys(("li", "dd"), "item"),
    **dict.fromkeys(("caption", "figcaption"), "caption"),
    "dt": "term",
    "pre": "code",
}
_LISTS = ("ul", "ol", "dl")
_REFERENCES = {"noteref", "doc-noteref"}
_BLOCKS = re.compile(
    "p|div|section|article|main|header|body|h[1-6]|blockquote|pre|[uod]l|d[td]|fig.*|table|address|details|summary|hr|"
    "fieldset|legend|center|t[dhr]|caption|t(head|body|foot)"
)
_ENCODING = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*(?!utf-?16)([\w-]+)|"
    rb"<\?xml[^>]{0,100}?encoding\s*=\s*[\"'](?!utf-?16)([\w-]+)",
    re.I,
)
"""What is written in bytes of ASCII cannot truly say UTF-16."""
_DIGITS = re.compile("[0-9]{1,9}")
_NAME = re.compile("[a-z][a-z0-9]*")
_XML = re.compile(r"(?s)\s*<\?xml\b|.{0,1000}?<html\b[^<>]*\sxmlns=[\"']http://www\.w3\.org/1999/xhtml\b")
_EMPTY = re.compile(
    r"<((?!(?:area|br|col|hr|img|input|link|meta|wbr)\b)([\w:-]+)\b(?:\s(?:[^<>\"']|\"[^<\"]*\"|'[^<']*')*)?)/>"
)
"""An element that XML lets end where it begins; HTML would put all that follows into it."""
_DATES = ("article:published_time", "article:modified_time", "date", "dcterms.date", "dc.date")
_MOVED = {"up": "super", "down": "sub"}
_DEEPEST = 500
_MOST_SPANNED = 100
_SPACE = Piece(" ", ())
_MOST_PIECES = 9
"""Of a label."""


def read(content: bytes) -> Source:
    """The text of a web page. Raises ValueError if it is in no encoding that is recognised."""
    text = Text("element")
    page = write(content, text)
    metas = [node.attributes for node in page.css("meta")]
    facts = {meta.get("name") or meta.get("property"): meta.get("content") for meta in metas}
    title = page.css_first("head > title") or page.css_first("body > title")  # icons have titles too
    heading = "" if title is None else " ".join(title.text().split())
    date = next((facts[key] for key in _DATES if facts.get(key)), "")
    return text.source({"title": heading, "author": facts.get("author"), "date": date})


def write(
    content: bytes,
    text: Text,
    before: str = "",
    sheets: Callable[[str], bytes | None] = lambda _: None,
    is_contents: bool = False,
) -> Any:
    """Appends the text of a page, which is returned as it was parsed; `before` is put before each element's path,
    `sheets` gives a style sheet that the page links to, `is_contents` that it is a table of contents, if it has links.

    Raises ValueError if it is in no encoding that is recognised.
    """
    from selectolax.lexbor import LexborHTMLParser

    characters = _characters(content)
    if _XML.match(characters):
        characters = _EMPTY.sub(r"<\1></\2>", characters)
    page = LexborHTMLParser(characters)
    if page.body is None:
        raise ValueError("no body in it; is it a web page?")
    linked = [sheets(link.attributes.get("href") or "") for link in page.css("link[rel=stylesheet]")]
    styles = [sheet.decode("utf-8", "replace") for sheet in linked if sheet]
    styles += [style.text() for style in page.css("style")]
    wholes, writer = _read_of(page), _Writer(text, page, "\n".join(styles))
    text.only = "contents" if is_contents and all(map(is_of_links, wholes)) else ""
    for whole in wholes:
        text.gap()
        text.block("paragraph")
        writer.append(whole, before + _path(whole))
    text.only = ""
    return page


def _read_of(page: Any) -> list[Any]:
    """What is read of a page: each `main` that is shown, if one has text, else the body."""
    for kind in ("main", "[role=main]"):
        mains = [each for each in page.css(kind) if not is_left_out(each)]
        inner = {node.mem_id for each in mains for node in each.css(kind) if node.mem_id != each.mem_id}
        if any(each.text().strip() for each in mains):
            return [each for each in mains if each.mem_id not in inner]
    return [page.body]


def _characters(content: bytes) -> str:
    said = _ENCODING.search(content[:4096])
    if said and not content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        with suppress(LookupError, ValueError):
            return content.decode(meant((said[1] or said[2]).decode()))
    return decode(content)[0]


def _path(node: Any) -> str:
    """A path that selects this element alone."""
    if node.tag == "body":
        return "body"
    siblings = _with_paths(node.parent, _path(node.parent))
    return next(path for each, path in siblings if each.mem_id == node.mem_id)


def _with_paths(node: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The children of an element with their paths; those of a text is its parent's."""
    children = [child for child in node.iter(include_text=True) if child.tag]  # none: a processing instruction
    kinds, seen, elements = Counter(child.tag for child in children), Counter[str](), 0
    for child in children:
        if child.tag.startswith("-"):
            yield child, path
            continue
        elements += 1
        seen[child.tag] += 1
        step = child.tag if kinds[child.tag] == 1 else f"{child.tag}:nth-of-type({seen[child.tag]})"
        yield child, f"{path} > {step if _NAME.fullmatch(child.tag) else f'*:nth-child({elements})'}"


def _first_number(node: Any) -> int | None:
    """That of a list's first item; None if its items have no numbers, or count backwards."""
    given = node.attributes
    if node.tag != "ol" or "reversed" in given:
        return None
    return _whole(given.get("start") or "1")


def _whole(said: str | None) -> int | None:
    """A whole number; none has so many digits that Python refuses it."""
    return int(said) if said and _DIGITS.fullmatch(said) else None


class _Writer:
    """Appends elements to a text."""

    def __init__(self, text: Text, page: Any, sheet: str) -> None:
        self._text, self._labels, self._classes = text, controls.Labels(page), classes_of(sheet)
        self._lists, self._is_one = 0, False  # lists that are open; whether all that comes is of the block that is open

    @contextmanager
    def _block(self, node: Any) -> Iterator[None]:
        """While an element's text is appended: its block, and those in it; what comes after is a paragraph."""
        text, outer = self._text, (self._text.only, self._lists, self._is_one)
        kind, level = _KINDS.get(node.tag, ""), int(node.tag[1]) if node.tag in _HEADINGS else 0
        if node.attributes.get("role") == "heading":
            kind, level = "heading", _whole(node.attributes.get("aria-level")) or 2
        self._lists += node.tag in _LISTS
        text.only = text.only or unread_kind(node)
        if not self._is_one:
            text.block(kind, level or max(self._lists, kind == "item")) if kind else text.paragraph(self._lists)
            self._is_one = kind not in ("", "item")
        yield
        text.only, self._lists, self._is_one = outer
        if not self._is_one:
            text.block("paragraph", self._lists)

    def append(self, node: Any, path: str, depth: int = 0) -> None:
        """Appends an element's text. Raises ValueError if it is nested too deep."""
        if depth > _DEEPEST:
            raise ValueError(f"its elements are nested more than {_DEEPEST} deep; convert it to text")
        text, number = self._text, _first_number(node)
        for child, where in _with_paths(node, path):
            if child.tag == "-text":
                _append_characters(text, child, where)
            elif is_left_out(child):
                continue
            elif child.tag == "br":
                text.gap("\n")
            elif mathml.is_formula(child):
                text.gap(" " if _is_set_off(child) else "")
                text.pieces([Piece(mathml.said(child), (where,))])
                text.gap(" " if _is_set_off(child) else "")
            elif child.tag in controls.TAGS:
                self._control(child, where)
            elif child.tag == "table" and (rows := self._rows(child, where)):
                with self._block(child):
                    for caption, place in _within(child, where, {"caption"}):
                        text.gap()
                        with self._block(caption):
                            self.append(caption, place, depth + 1)
                    tables.write(text, *rows)
            elif child.tag == "li":
                text.gap("\n")
                if number is not None and (own := _whole(child.attributes.get("value"))) is not None:
                    number = own
                with self._block(child):
                    text.mark("- " if number is None else f"{written(number, node.attributes.get('type') or '1')}. ")
                    number = None if number is None else number + 1
                    self.append(child, where, depth + 1)
                    text.unmark()
                text.gap("\n")
            elif _BLOCKS.fullmatch(child.tag):
                text.gap("\n" if child.tag in ("ul", "ol") and node.tag == "li" else "\n\n")
                with self._block(child):
                    self.append(child, where, depth + 1)
                text.gap("\n" if child.tag in ("ul", "ol", "p") and node.tag == "li" else "\n\n")
            elif (shown := self._shown(child, text.before)) in LEVELS:
                before, said = text.before, child.text().strip() if shown == "super" else ""
                text.pieces(self._level(child, where, shown, before))
                if said.isdigit() and is_verse(said, before, behind(child), bool({*child.attributes} - {"style"})):
                    text.gap(" ")
            else:
                ahead, after = apart(child, shown, text.before)
                text.gap(" " if ahead else "")
                self.append(child, where, depth + 1)
                text.gap(" " if after else "")

    def _shown(self, node: Any, before: str) -> str:
        """How an element behind this text is shown: "super", "sub" or "apart"; "" if it is like the text around it."""
        given = node.attributes
        if node.tag in ("sup", "sub"):
            return "super" if node.tag == "sup" else "sub"
        if _REFERENCES & {given.get("role"), *(given.get("epub:type") or "").split()}:
            return "super"
        names = (given.get("class") or "").split()
        found = (self._classes.get((tag, name)) for name in names for tag in (node.tag, ""))
        shown = shown_as(given.get("style") or "") or next(filter(None, found), "")
        if shown in _MOVED:
            shown = _MOVED[shown] if is_script(node, before) else ""
        return shown or ("super" if is_mark(node, names, before) else "")

    def _level(self, node: Any, path: str, shown: str, before: str) -> list[Piece]:
        """A superscript or a subscript as one piece."""
        pieces: list[Piece] = []
        self._texts(node, path, pieces, is_raised=True)
        said = "".join(piece.text for piece in pieces)
        return [Piece(LEVELS[shown](said, before[-1:]), pieces[0].place if len(pieces) == 1 else (path,))]

    def _named(self, control: Any) -> tuple[str, Any]:
        """What a control is called, and its label, if that is shown."""
        label = self._labels.of(control)
        if label is None or is_left_out(label):
            return " ".join((control.attributes.get("aria-label") or "").split()), None
        return controls.said(label), label

    def _control(self, control: Any, path: str) -> None:
        text, (name, label) = self._text, self._named(control)
        said, is_box = controls.value(control), controls.is_box(control)
        follows = bool(name) and text.ends_with(name)
        if is_box and not follows and (label is not None or control.parent.tag == "li"):
            text.mark(f"{said or OFF} ")  # which the label follows
            return
        if is_box:
            said = (said or OFF) if name else ""
        if not said:
            return
        if name and not follows:
            text.add(name)
        if name:
            text.join(" " if name.endswith(":") else ": ")
        else:
            text.gap(" ")
        text.pieces([Piece(said, (path,))])
        text.gap("\n" if name else " ")

    def _rows(self, table: Any, path: str) -> tuple[list[list[Box]], int] | None:
        """A table's rows, and how many of the first are marked as headings; None if the table only lays out a page."""
        if any(part.mem_id != table.mem_id for part in table.css("table, h1, h2")):
            return None
        grid, rows, marked, part = Grid(), list[list[Box]](), 0, None
        for tr, where in _within(table, path, {"tr"}):
            cells = [each for each in _with_paths(tr, where) if each[0].tag in ("td", "th")]
            grid.begin(is_new=tr.parent.mem_id != part)
            part = tr.parent.mem_id
            for cell, place in cells:
                pieces: list[Piece] = []
                self._texts(cell, place, pieces)
                across, down = (_span(cell, name) for name in ("colspan", "rowspan"))
                grid.add(boxed(pieces, across, cell.tag == "th" or _is_bold(cell)), across, down)
            row = grid.end()
            if cells:
                is_head = tr.parent.tag == "thead" or all(cell.tag == "th" for cell, _ in cells)
                marked += is_head and marked == len(rows)
                rows.append(row)
        beside = len(rows) == 1 and table.css_first("p + p") is not None
        return None if beside or max(map(len, rows), default=0) < 2 else (rows, marked)

    def _texts(self, node: Any, path: str, pieces: list[Piece], is_raised: bool = False) -> None:
        """Appends what an element says in one line, to pieces; what is raised already is not raised again."""
        for child, where in _with_paths(node, path):
            if child.tag == "-text":
                pieces.append(Piece(child.text_content or "", (where,)))
            elif child.tag == "br":
                pieces.append(_SPACE)
            elif is_left_out(child):
                continue
            elif mathml.is_formula(child):
                formula = mathml.said(child)
                pieces.append(Piece(f" {formula} " if _is_set_off(child) else formula, (where,)))
            elif child.tag in controls.TAGS:
                self._in_cell(child, where, pieces)
            elif _BLOCKS.fullmatch(child.tag) or child.tag == "li":
                self._texts(child, where, pieces, is_raised)
                pieces.append(_SPACE)
            else:
                before = "".join(piece.text for piece in pieces[-3:])[-2:]
                shown = self._shown(child, before)
                if shown in LEVELS and not is_raised:
                    pieces += self._level(child, where, shown, before)
                    continue
                ahead, after = apart(child, shown, before)
                pieces += [_SPACE] * ahead
                self._texts(child, where, pieces, is_raised)
                pieces += [_SPACE] * after

    def _in_cell(self, control: Any, path: str, pieces: list[Piece]) -> None:
        (name, _), said = self._named(control), controls.value(control)
        told = " ".join("".join(piece.text for piece in pieces[-_MOST_PIECES:]).split())
        follows = bool(name) and told.endswith(name)
        if controls.is_box(control) and name:
            said = said or OFF
        if said and follows and not name.endswith(":"):
            pieces[-1] = pieces[-1]._replace(text=pieces[-1].text.rstrip())
            pieces.append(Piece(":", ()))
        pieces += [_SPACE, Piece(said, (path,)), _SPACE] if said else []


def _is_set_off(formula: Any) -> bool:
    """Whether a formula has a line of its own."""
    return bool(formula.attributes.get("display") == "block")


def _append_characters(text: Text, node: Any, path: str) -> None:
    said = node.text_content or ""
    if not is_inside(node, "pre"):
        text.pieces([Piece(said, (path,))])
        return
    for number, line in enumerate(said.split("\n")):
        if number:
            text.gap("\n" if line.strip() else "\n\n")
        text.add(line.rstrip(), path)


def _is_bold(cell: Any) -> bool:
    """Whether all that a cell says is bold."""
    said = "".join(cell.text().split())
    return said == "".join("".join(each.text().split()) for each in cell.css("b, strong"))


def _within(node: Any, path: str, tags: set[str]) -> Iterator[tuple[Any, str]]:
    """The elements of these kinds in a table's parts."""
    for child, where in _with_paths(node, path):
        if child.tag in tags:
            yield child, where
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from _within(child, where, tags)


def _span(cell: Any, name: str) -> int:
    return min(_whole(cell.attributes.get(name)) or 1, _MOST_SPANNED)
