"""The characters of a Word document's paragraphs: what a reader sees of runs, fields, controls and references to notes.

Knows what was deleted, is hidden, raised or asked for, and what a form is filled with. Does not know lists and tables.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from quoth_sources.levels import OF_OFFICE, joined
from quoth_sources.numbering import WAYS
from quoth_sources.numbers import written
from quoth_sources.office import kind_of, whole
from quoth_sources.source import OFF, ON
from quoth_sources.wordml import Styles, W, attribute, below, is_on, symbol

NOTES = {"footnote": "decimal", "endnote": "lowerRoman"}
"""The kinds of notes, and how they are numbered if a document does not say."""
_UNSEEN = {W + name for name in ("vanish", "strike", "dstrike")}
_FILLED = {"text", "date", "dropDownList", "comboBox", "checkbox"}
_LEFT_OUT = ("}del", "}moveFrom", "}instrText", "}Fallback", "}pPr", "}rPr")
_ASKING = {"PlaceholderText", "Placeholder Text"}
_REFERENCE = re.compile(r"(?i)(?:foot|end)note\s?(?:reference|anchor|characters)")
"""The styles of the marks of notes; they are raised also where the styles are damaged."""
_MOST_RUNS = 200
"""Of a field, in which its text is looked for."""
_LEVEL, _SAID, _LABEL = "quoth-level", "quoth-said", "quoth-label"
"""Attributes that are put into the tree: of a run, whether it is raised; of a field or a reference, its text; of a
paragraph, the name of the control that is all of it."""


def prepare(root: Any, styles: Styles) -> None:
    """Puts into a part, if there is one, what its text takes to be read, and empties what Word does not show."""
    if root is None:
        return
    for said in (*_asked_for(root, styles), *_in_code(root)):
        said.text = ""
    for run in root.iter(W + "r"):
        properties = below(run, "rPr")
        style = attribute(below(properties, "rStyle"))
        named = styles.based(style)
        said = (below(each, "vertAlign") for each in (properties, *(below(style, "rPr") for style in named)))
        own = attribute(next((each for each in said if each is not None), None))
        is_mark = any(below(run, f"{kind}Reference") is not None for kind in NOTES)
        if is_mark or (not own and _REFERENCE.fullmatch(style)):
            own = "superscript"
        if level := OF_OFFICE.get(own, "") if own else _moved(run):
            run.set(_LEVEL, level)
    for field in root.iter(W + "fldChar"):
        if (value := _filled(below(field, "ffData"))) and not _result(field).strip():
            field.set(_SAID, value)
    _label(root)


def _moved(run: Any) -> str:
    """Whether a run is moved up ("super") or down ("sub") in letters that are smaller than those before it."""
    properties = below(run, "rPr")
    up, size = (whole(attribute(below(properties, name)), 0) for name in ("position", "sz"))
    before = next(run.itersiblings(W + "r", preceding=True), None) if up and size else None
    usual = 0 if before is None else whole(attribute(below(before, "rPr", "sz")), size + 1)
    return ("super" if up > 0 else "sub") if usual > size else ""


def _asked_for(root: Any, styles: Styles) -> Iterator[Any]:
    """The texts of content controls that only say what is to be written there."""
    for control in root.iter(W + "sdt"):
        if is_on(below(control, "sdtPr", "showingPlcHdr")):
            yield from control.iter(W + "t")
    for run in root.iter(W + "r"):
        if style := attribute(below(run, "rPr", "rStyle")):
            names = {style, *(attribute(below(each, "name")) for each in styles.based(style)[:1])}
            if names & _ASKING and next(run.iterancestors(W + "sdt"), None) is not None:
                yield from run.iter(W + "t")


def _in_code(root: Any) -> Iterator[Any]:
    """The texts of fields that are in the code of another: of the sex, in "if the sex is F, Ms, else Mr"."""
    in_code: list[bool] = []  # of each field that has begun: whether its code goes on
    for part in root.iter(W + "p", W + "fldChar", W + "t"):
        kind = attribute(part, "fldCharType")
        if part.tag == W + "p":  # a field without an end must not take the rest of the document with it
            in_code = [False] * len(in_code)
        elif kind == "begin":
            in_code.append(True)
        elif in_code and kind == "separate":
            in_code[-1] = False
        elif in_code and kind == "end":
            in_code.pop()
        elif any(in_code[:-1]):
            yield part


def _filled(form: Any) -> str:
    """What a box to tick or a choice of a form says; a field to write in has its text in the document."""
    if (box := below(form, "checkBox")) is not None:
        ticked = below(box, "checked")
        return ON if is_on(below(box, "default") if ticked is None else ticked) else OFF
    choices = [attribute(each) for each in (() if form is None else form.iterfind(f"{W}ddList/{W}listEntry"))]
    chosen = attribute(below(form, "ddList", "result")) or attribute(below(form, "ddList", "default"))
    at = whole(chosen, 0)
    return choices[at] if 0 <= at < len(choices) else ""


def _result(field: Any) -> str:
    """The text of a field that begins here, as far as its paragraph has it."""
    depth, is_code, said = 1, True, ""
    for run in islice(field.getparent().itersiblings(W + "r"), _MOST_RUNS):
        for part in run.iter(W + "fldChar", W + "t"):
            kind = attribute(part, "fldCharType")
            depth += (kind == "begin") - (kind == "end")
            is_code = is_code and kind != "separate"
            if not depth:
                return said
            said += "" if is_code else part.text or ""
    return said


def _label(root: Any) -> None:
    """Gives a paragraph that is nothing but one filled control the name of that, which the text does not show."""
    controls: dict[Any, list[Any]] = {}
    for control in root.iter(W + "sdt"):
        inner = [*islice(control.iter(W + "p"), 2)] or [*islice(control.iterancestors(W + "p"), 1)]
        controls.setdefault(inner[0] if len(inner) == 1 else None, []).append(control)
    for paragraph, found in controls.items():
        name = _name(found[0]) if len(found) == 1 and paragraph is not None else ""
        if name and characters(found[0]).strip() == characters(paragraph).strip() != "":
            paragraph.set(_LABEL, name)


def _name(control: Any) -> str:
    """What a field, a choice or a box is called; "" if nothing, or if it shows a property of the document."""
    properties = below(control, "sdtPr")
    kinds = {kind_of(each) for each in (() if properties is None else properties)}
    shown = kinds & _FILLED and "dataBinding" not in kinds
    return " ".join(attribute(below(properties, "alias")).split()) if shown else ""


def label_of(paragraph: Any) -> str:
    """The name of the control that is all of a paragraph, or ""."""
    return paragraph.get(_LABEL) or ""


def mark_notes(root: Any, kind: str) -> Mapping[str, str]:
    """Gives the references to notes of a kind their marks, which are by the notes' ids."""
    marks: dict[str, str] = {}
    way = WAYS.get(attribute(root.find(f".//{W}{kind}Pr/{W}numFmt")) or NOTES[kind], "1")
    for reference in root.iter(f"{W}{kind}Reference"):
        is_gone = next(reference.iterancestors(W + "del", W + "moveFrom"), None) is not None
        if not is_gone and attribute(reference, "customMarkFollows") in ("", "0", "false", "off"):
            mark = marks.setdefault(attribute(reference, "id"), written(len(marks) + 1, way))
            reference.set(_SAID, mark)
    return marks


def inside(part: Any, kind: str) -> Iterator[Any]:
    """The rows of a table, the cells of a row, or the paragraphs of a text box, also those of content controls, but
    none of tables or text boxes inside."""
    return (each for each in part.iter(W + kind) if next(each.iterancestors(part.tag)) is part)


def characters(part: Any) -> str:
    """The text of a part, without what was deleted, is struck out or hidden, or is there twice, as text boxes are."""
    return joined(_runs(part, ""))


def _runs(part: Any, level: str) -> Iterator[tuple[str, str]]:
    """The texts of a part, and whether they are raised."""
    if str(part.tag).endswith(_LEFT_OUT):
        return
    match str(part.tag).removeprefix(W):
        case "rt":  # how a word is read
            return
        case "r" if any(each.tag in _UNSEEN and is_on(each) for each in part.iterfind(f"{W}rPr/*")):
            return
        case "txbxContent":
            for paragraph in inside(part, "p"):
                yield "\n", ""
                yield from _runs(paragraph, "")
            yield "\n", ""
            return
        case "t" | "delText":
            yield part.text or "", level
        case "sym":
            yield symbol(part), level
        case "tab" | "ptab":
            yield "\t", ""
        case "br" | "cr":
            yield "\n", ""
        case "noBreakHyphen":
            yield "-", level
        case "fldChar":
            yield part.get(_SAID) or "", level
        case "footnoteReference" | "endnoteReference":
            yield part.get(_SAID) or "", "super"
        case "r":
            level = part.get(_LEVEL) or level
    for child in part.iterchildren():
        yield from _runs(child, level)
