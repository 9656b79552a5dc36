"""What OpenDocument files (LibreOffice and others) have in common: paragraphs, lists and tables in their order.

Knows a file's body, and the numbers of items and headings, which are nowhere in its text (OpenDocument 1.3, part 3).
Does not know pages, nor what was deleted, comments, tables of contents and a slide's notes, which are left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from quoth_sources import tables
from quoth_sources.levels import joined
from quoth_sources.numbers import written
from quoth_sources.office import Archive, described, kind_of, kind_of_styles, whole
from quoth_sources.source import OFF, ON, Piece, Source, Text
from quoth_sources.tables import COVERED, Box, Grid, boxed

_LEFT_OUT = {"tracked-changes", "annotation", "table-of-content", "alphabetical-index", "forms", "sequence-decls"}
_LEFT_OUT |= {"notes", "page-number", "hidden-text", "hidden-paragraph", "ruby-text", "placeholder"}
_UP, _DOWN = re.compile("super|[1-9]"), re.compile("sub|-")
"""How the position of a raised style begins, and of a lowered one."""
_SPACES = {"s": " ", "tab": "\t", "line-break": "\n"}
_MOST_REPEATED = 100
_MOST_LEVELS = 10
_NUMBER = re.compile("%([0-9]+)%")


def body_of(archive: Archive, kind: str) -> Any:
    """The body of a text, a spreadsheet or a presentation. Raises ValueError if it is of another kind, or encrypted."""
    manifest = archive.xml("META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter("{*}encryption-data"), None) is not None:
        raise ValueError("it is encrypted; save it again, without a password")
    content = archive.xml("content.xml")
    body = None if content is None else content.find(f"{{*}}body/{{*}}{kind}")
    if body is None:
        raise ValueError(f"it has no {kind}: it is not an OpenDocument {kind}, or is damaged")
    return body


def finished(text: Text, archive: Archive) -> Source:
    """The text of a document, and what else is known of it."""
    return text.source(described(archive.xml("meta.xml")), [*archive.notes.values()])


class Lists:
    """The lists of a file, as its styles define them: levels, counted from 1, and how far each has come."""

    def __init__(self, archive: Archive) -> None:
        files = [file for name in ("styles.xml", "content.xml") if (file := archive.xml(name)) is not None]
        styles = [style for file in files for style in file.iter("{*}list-style", "{*}outline-style")]
        self._levels = {
            attribute(style, "name") if kind_of(style) == "list-style" else None: {
                counted(level, "level"): level for level in style.iterchildren("{*}*")
            }
            for style in styles
        }
        self._counts: dict[str | None, dict[int, int]] = {}

    def begin(self, part: Any) -> str:
        """The style of a list that is in no other; unless it continues another one, its numbers begin anew."""
        style = attribute(part, "style-name")
        before = style if attribute(part, "continue-numbering") == "true" else attribute(part, "continue-list")
        counts = self._counts.get(before) if before else None
        self._counts[style] = self._counts[attribute(part, "id")] = counts or {}
        return style

    def label(self, style: str | None, at: int, start: str = "", look: str | None = None) -> str:
        """What stands before the next item of a level, or heading (style None): "4.2.", "-" for a bullet, "" for
        nothing; `start` is its number, if it does not follow the one before, `look` the style in which it is shown."""
        levels, counts = self._levels.get(look, {}), self._counts.setdefault(style, {})
        counts[at] = whole(start, counts.get(at, _first(levels.get(at)) - 1) + 1)
        for deeper in [level for level in counts if level > at]:
            del counts[deeper]
        level = levels.get(at)
        if style is not None and (level is None or not kind_of(level).endswith("-number")):
            return "-"
        if level is None or not attribute(level, "num-format"):
            return ""

        def shown(part: re.Match[str]) -> str:
            other = levels.get(int(part[1]))
            return written(counts.setdefault(int(part[1]), _first(other)), attribute(other, "num-format"))

        among = range(max(at - counted(level, "display-levels"), 0) + 1, at + 1)[-_MOST_LEVELS:]
        plain = ".".join(f"%{each}%" for each in among if each == at or attribute(levels.get(each), "num-format"))
        around = attribute(level, "num-prefix"), attribute(level, "num-suffix")
        return _NUMBER.sub(shown, attribute(level, "num-list-format") or plain.join(around)).strip()


def _first(level: Any) -> int:
    return whole(attribute(level, "start-value"), 1)


class Writer:
    """Appends parts of a body to a text; `place`, the number of a paragraph or a cell of a table is where each is."""

    def __init__(self, text: Text, lists: Lists, characters: "Characters", *place: Any) -> None:
        self._text, self._lists, self._said, self._place = text, lists, characters, place
        self._paragraphs = self._tables = 0
        self._is_title = False  # of a slide

    def blocks(self, parts: Iterable[Any], style: str | None = None, level: int = 0) -> None:
        """Appends paragraphs, lists and tables, and those inside other parts; `style` and `level` are those of the list
        that they are in."""
        for part in parts:
            kind = kind_of(part)
            inside = part.iterchildren("{*}*")
            if kind in ("p", "h"):
                self._paragraph(part, level)
            elif kind == "list":
                own = self._lists.begin(part) if style is None else attribute(part, "style-name") or style
                self.blocks(inside, own, level + 1)
            elif kind in ("list-item", "list-header") and style is not None:
                self._item(part, style, level)
            elif kind == "table":
                self._tables += 1
                self._table(part)
            elif kind not in _LEFT_OUT and attribute(part, "display") != "none":
                outer, self._is_title = self._is_title, self._is_title or attribute(part, "class") == "title"
                self.blocks(inside, style, level)
                self._is_title = outer

    def _item(self, item: Any, style: str, level: int) -> None:
        first = next((kind_of(each) for each in item.iterchildren("{*}*")), "")
        label = ""
        if is_item := kind_of(item) == "list-item":
            self._text.block("item", level)
        if is_item and first != "list":
            look = attribute(item, "style-override") or style
            label = self._lists.label(style, level, attribute(item, "start-value"), look)
        self._text.gap("\n\n" if first == "h" else "\n")
        self._mark(label)
        self.blocks(item.iterchildren("{*}*"), style, level)
        self._text.unmark()
        self._text.block("paragraph", level - 1)

    def _paragraph(self, paragraph: Any, level: int) -> None:
        """`level`: how many lists it stands in."""
        self._paragraphs += 1
        is_heading = kind_of(paragraph) == "h"
        gap = "\n" if level and not is_heading else "\n\n"
        self._text.gap(gap)
        if is_heading or self._is_title:
            self._text.block("heading", counted(paragraph, "outline-level"))
        elif (styled := self._said.kind(paragraph))[0]:
            self._text.block(*styled)
        else:
            self._text.paragraph(level)
        if is_heading and not level and attribute(paragraph, "is-list-header") != "true":
            self._mark(self._lists.label(None, counted(paragraph, "outline-level")))
        for line in self._said.of(paragraph).split("\n"):
            self._text.gap("\n")
            self._text.pieces([Piece(line, (*self._place, f"paragraph {self._paragraphs}"))])
        self._text.gap(gap)

    def _mark(self, label: str) -> None:
        if label:
            self._text.mark(f"{label} ")

    def _table(self, table: Any) -> None:
        """Appends a table; one column, or a row with several paragraphs in a cell, is layout, not a table."""
        rows = [row for row in table.iter("{*}table-row") if next(row.iterancestors("{*}table")) is table]
        cells = [cell for row in rows for cell in row.iterchildren(*CELLS)]
        beside = len(rows) == 1 and any(len([*cell.iter("{*}p", "{*}h")]) > 1 for cell in cells)
        if beside or len(cells) <= len(rows):
            for cell in cells:
                self._text.gap()
                self.blocks(cell.iterchildren("{*}*"))
                self._text.gap()
            return
        marked = len([*table.iterfind("{*}table-header-rows/{*}table-row")])
        tables.write(self._text, [*self._rows(rows)], marked)

    def _rows(self, rows: Sequence[Any]) -> Iterator[list[Box]]:
        """What each cell says; one that spans several rows is repeated in each."""
        grid = Grid()
        for number, row in enumerate(rows, 1):
            grid.begin()
            for at, cell in placed(row, _MOST_REPEATED):
                if not is_covered(cell):
                    said, place = self._said.of(cell), f"table {self._tables}, row {number}, cell {at + 1}"
                    across, down = spans(cell, _MOST_REPEATED)
                    grid.add(boxed([Piece(said, (*self._place, place))], across), across, down)
                elif len(grid.row) <= at:
                    grid.add(COVERED)
            yield grid.end()


class Characters:
    """The text of a part, as its styles and the controls of its document have it."""

    def __init__(self, archive: Archive) -> None:
        files = [file for name in ("styles.xml", "content.xml") if (file := archive.xml(name)) is not None]
        styles = {attribute(each, "name"): each for file in files for each in file.iter("{*}style")}
        self._levels = {name: level for name in styles if (level := _level(styles, name))}
        self._kinds = {name: kind_of_styles(map(_shown, _based(styles, name))) for name in styles}
        self._controls = {name: said for file in files for name, said in _controls(file)}

    def kind(self, paragraph: Any) -> tuple[str, int]:
        """The kind of block that a paragraph's style is for, and its level; "" and 0 if for none."""
        name = attribute(paragraph, "style-name")
        return self._kinds.get(name) or kind_of_styles([_shown(name)])

    def of(self, part: Any) -> str:
        """The text of a part, without that of the notes in it, and what is said of its pictures."""
        return joined(self._runs(part, ""))

    def _runs(self, part: Any, level: str) -> Iterator[tuple[str, str]]:
        yield part.text or "", level
        for child in part.iterchildren():
            kind = kind_of(child)
            if kind in _SPACES:
                yield _SPACES[kind], ""
            elif not isinstance(child.tag, str) or ":svg-" in child.tag:  # an XML comment, a picture's title
                pass
            elif kind == "note":
                yield mark_of(child), "super"
            elif kind == "control":
                yield self._controls.get(attribute(child, "control"), ""), level
            elif kind == "fieldmark":
                yield _filled(child), level
            elif kind not in _LEFT_OUT and attribute(child, "showing-place-holder") != "true":
                yield from self._runs(child, self._levels.get(attribute(child, "style-name"), level))
                if kind in ("p", "h"):
                    yield "\n", ""
            yield child.tail or "", level


def mark_of(note: Any) -> str:
    """The mark of a note."""
    return "".join(text for mark in note.iterchildren("{*}note-citation") for text in mark.itertext()).strip()


def _filled(field: Any) -> str:
    """What a box to tick or a choice of a form that came from Word says."""
    said = [(attribute(each, "name"), attribute(each, "value")) for each in field.iterchildren("{*}param")]
    if attribute(field, "type").endswith("CHECKBOX"):
        return ON if ("Checkbox_Checked", "true") in said else OFF
    choices = [value for name, value in said if name == "Dropdown_ListEntry"]
    at = whole(dict(said).get("Dropdown_Selected", ""), -1)
    return choices[at] if 0 <= at < len(choices) else ""


def _level(styles: Mapping[str, Any], name: str) -> str:
    """Whether a style is raised ("super") or lowered ("sub"), or is based on one that is; "" if not."""
    for each in _based(styles, name):
        for properties in () if each not in styles else styles[each].iterchildren("{*}text-properties"):
            if position := attribute(properties, "text-position"):
                return "super" if _UP.match(position) else "sub" if _DOWN.match(position) else ""
    return ""


def _based(styles: Mapping[str, Any], name: str) -> Iterator[str]:
    """A style, the one that it is based on, and so on."""
    for _ in range(_MOST_LEVELS):
        if name:
            yield name
        name = attribute(styles.get(name), "parent-style-name")


def _shown(name: str) -> str:
    """The name of a style as a program shows it."""
    return name.replace("_20_", " ")


def _controls(file: Any) -> Iterator[tuple[str, str]]:
    """The controls of forms by their ids, with their values."""
    for form in file.iter("{*}form"):
        for control in form.iterchildren("{*}*"):
            kind, label = kind_of(control), attribute(control, "label")
            said = attribute(control, "current-value") or attribute(control, "value")
            if kind in ("checkbox", "radio"):
                is_on = "checked" in (attribute(control, "current-state"), attribute(control, "state"))
                is_on = is_on or attribute(control, "current-selected") == "true"
                said = f"{ON if is_on else OFF} {label}".rstrip()
            elif kind in ("listbox", "combobox"):
                chosen = [attribute(each, "label") for each in control if attribute(each, "current-selected") == "true"]
                said = ", ".join(chosen) or said
            elif kind in ("button", "hidden", "password", "file", "image", "fixed-text"):
                said = label if kind == "fixed-text" else ""
            yield attribute(control, "id"), said


def styled(body: Any, name: str, value: str) -> set[str]:
    """The names of the styles that have a property with this value."""
    styles = body.getroottree().iterfind("{*}automatic-styles/{*}style")
    having = [style for style in styles if any(attribute(each, name) == value for each in style.iterchildren("{*}*"))]
    return {attribute(style, "name") for style in having}


CELLS = ("{*}table-cell", "{*}covered-table-cell")


def placed(row: Any, most: int) -> Iterator[tuple[int, Any]]:
    """The cells of a row with their columns, one that is repeated in each of these, but not in more than `most`."""
    column = 0
    for cell in row.iterchildren(*CELLS):
        for _ in range(min(counted(cell, "number-columns-repeated"), most)):
            yield column, cell
            column += 1


def is_covered(cell: Any) -> bool:
    """Whether a cell is below another that spans several columns or rows."""
    return kind_of(cell) == "covered-table-cell"


def spans(cell: Any, most: int) -> tuple[int, int]:
    """How many columns and rows a cell spans."""
    return min(counted(cell, "number-columns-spanned"), most), counted(cell, "number-rows-spanned")


def attribute(part: Any, name: str) -> str:
    """An attribute's value, whatever its namespace; "" if there is none, or no part."""
    return "" if part is None else next((str(value) for key, value in part.items() if key.endswith(f"}}{name}")), "")


def counted(part: Any, name: str) -> int:
    """An attribute that is a number of rows, columns or levels; 1 if there is none."""
    return max(whole(attribute(part, name), 1, 1 << 20), 1)
