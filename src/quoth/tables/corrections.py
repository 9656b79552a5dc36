"""Cells that a person confirmed or corrected, in a file beside the table that no run overwrites.

    {"corrections": [{"document_id": row, "column": name, "text": quotation, "value": …, "start": character,
                      "sentence": around it, "digest": of the row's documents, "when": time}, …],
     "calibrations": {name: …}}

Only the first three are needed: what is missing is added when the quotation is found. `text` is "" for what a document
does not state, null for a correction that is taken back. The page saves files of its own beside this one, with a time
in their names; of a cell in several files the latest counts.
Knows: the file, and where a quotation stands now. Does not know: how cells are found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quoth.answers.evidence import quote
from quoth.errors import InputError, brief
from quoth.records import Passage, quote_of
from quoth.storage import atomic_write_bytes, refuse_unless_plain
from quoth.tables.asking import Documents
from quoth.tables.calibration import Calibration
from quoth.tables.cells import CONFIRMED, Cell, as_place
from quoth.tables.columns import Column
from quoth.tables.told import sentence_of, shown
from quoth.tables.values import value_of
from quoth.text.folding import fold, fold_with_places, is_word_end

SUFFIX = ".corrections.json"
DIGITS = 16
"""Of a digest, as many as are written."""
_ISO = re.compile(r"\d{4}(-\d\d){0,2}|P(\d+[YMWD])+")
_NULL: dict[str, tuple[type, ...]] = {"text": (str, type(None)), "start": (int, type(None)), "value": (object,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a person said of a cell; `document_id` is that of its row."""

    document_id: str
    column: str
    text: str | None
    value: Any = None
    start: int | None = None
    sentence: str = ""
    digest: str = ""
    when: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The cell that it is about."""
        return self.document_id, self.column


_NAMES = {each.name for each in fields(Correction)}


class Corrections:
    """The corrections of a table by row and column, and the calibrations of its columns; without a path there are none.

    Raises InputError if a file is not one of corrections.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._found, self._fitted = path, dict[tuple[str, str], Correction](), dict[str, Calibration]()
        self.cells, self.calibrations = dict[str, dict[str, Correction]](), dict[str, Calibration]()
        for each in self._read():
            self.cells.setdefault(each.document_id, {})[each.column] = each

    def _read(self) -> Iterator[Correction]:
        known, path = dict[tuple[str, str], Correction](), self._path
        if path is None:
            return iter(())
        begin = path.name.removesuffix(".json") if path.name.endswith(SUFFIX) else "\0"
        beside = (each for each in path.absolute().parent.glob("*.json") if each.name.startswith(begin))
        others = sorted(each for each in beside if each.name != path.name)
        for file in [path, *others] if path.exists() else others:
            for each in self._in(file):
                if each.key not in known or (each.when or "~") > (known[each.key].when or "~"):  # no time: just written
                    known[each.key] = each
        return iter(known.values())

    def _in(self, file: Path) -> Iterator[Correction]:
        refuse_unless_plain(file)
        try:
            content = json.loads(file.read_bytes())
            listed = [*content["corrections"]]
            for name, each in content.get("calibrations", {}).items() if file == self._path else ():
                self.calibrations[name] = Calibration.from_dict(each)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            why = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "other content"
            raise InputError(f"{file} has no corrections of a table ({why}); correct it, or move it away") from None
        for number, said in enumerate(listed, 1):
            if not isinstance(said, Mapping) or not {"document_id", "column", "text"} <= {*said} <= _NAMES:
                raise InputError(f"{file}: correction {number}: {brief(said)}; it has document_id, column and text")
            if wrong := [name for name, each in said.items() if not isinstance(each, _NULL.get(name, (str,)))]:
                raise InputError(f"{file}: correction {number}: its {wrong[0]} is {brief(said[wrong[0]])}")
            yield Correction(**said)

    def found(self, correction: Correction) -> None:
        """Keeps what is now known of a correction."""
        self._found[correction.key] = correction

    def calibrate(self, name: str, made: Calibration) -> None:
        """Keeps the calibration of a column."""
        self.calibrations[name] = self._fitted[name] = made

    def save(self) -> None:
        """Writes all that is known, unless the file has it; what was written there meanwhile stays."""
        if self._path is None:
            return
        known = {each.key: each for each in self._read()}
        for key, each in self._found.items():
            if key in known and (known[key].text, known[key].when) == (self.cells[key[0]][key[1]].text, each.when):
                known[key] = each
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        listed = [_brief(each if each.when else replace(each, when=now)) for each in known.values()]
        named = {name: each.to_dict() for name, each in (self.calibrations | self._fitted).items()}
        said = {"corrections": listed} | ({"calibrations": named} if named else {})
        content = json.dumps(said, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass") + b"\n"
        if (listed or named) and not (self._path.exists() and self._path.read_bytes() == content):
            atomic_write_bytes(self._path.absolute(), content)


def _brief(correction: Correction) -> dict[str, Any]:
    return {name: each for name, each in asdict(correction).items() if name == "text" or each not in (None, "")}


def corrected(
    cell: Cell, correction: Correction, column: Column, documents: Documents, digest: str, corpus: str
) -> tuple[Cell, Correction]:
    """The cell as a person said, with its place if that is a quotation, and what is now known of the correction.

    If the documents have changed and do not say it any more, the cell is as it was found, with what is `gone`. Raises
    CorruptionError.
    """
    known, said = cell if cell.text else cell.candidate, correction.text
    is_same = digest.startswith(correction.digest)
    if said is None:
        return cell, correction
    if not said.strip():
        fresh = replace(cell, text="", value=None, probability=1.0, status=CONFIRMED, evidence=(), candidate=known)
        kept = is_same or not cell.text
        return (fresh, replace(correction, digest=digest[:DIGITS])) if kept else (replace(cell, gone=""), correction)
    if (place := _place(correction, documents)) is None and not is_same:
        return replace(cell, gone=said), correction
    value = value_of(said, column.kind, column.choices) if correction.value is None else read(correction.value, column)
    own = known if known is not None and known.text != said else None
    made = Cell(said, value, 1.0, CONFIRMED, (), own, cell.read_as, cell.others)
    if place is None:
        return made, replace(correction, digest=digest[:DIGITS])
    evidence = quote(place[0], corpus, *place[1:], 1.0)
    made = replace(made, text=quote_of(evidence), evidence=(documents.linked(as_place(evidence)),))
    sentence = correction.sentence or sentence_of(made)
    return made, replace(correction, start=evidence.start, sentence=sentence, digest=digest[:DIGITS])


def problem(cell: Cell, correction: Correction, column: Column) -> str:
    """What is wrong with a correction, if anything is; `cell` is what it made."""
    if cell.gone is not None:
        said = (
            f"{brief(cell.gone)}, which its document no longer says" if cell.gone else "not stated, before it changed"
        )
        return f"was confirmed as {said}; confirm it again"
    if correction.value is not None and cell.text and read(correction.value, column) is None:
        return f"its correction has the value {brief(correction.value)}, which is no {column.type}"
    return ""


def read(value: Any, column: Column) -> Any:
    """A value that a person gave, as a column of this type has it; None if it is no such value."""
    if column.kind == "text":
        return value if isinstance(value, str) else None
    if column.kind == "list" and isinstance(value, list):
        return value if all(isinstance(each, str) for each in value) else None
    is_amount = isinstance(value, dict) and {*value} == {"amount", "currency"}
    said = shown(value) if is_amount or isinstance(value, (str, int, float)) else ""
    found = value_of(said, column.kind, column.choices)
    return said if found is None and column.kind in ("date", "duration") and _ISO.fullmatch(said) else found


def _place(correction: Correction, documents: Documents) -> tuple[Passage, int, int] | None:
    """The passage of a correction's quotation, and its characters: in the sentence that it was in, nearest to where it
    was."""
    assert correction.text is not None
    best, nearest = None, -1
    for segment, number in documents.places:
        text = segment.document(number).text
        for start, end in occurrences(text, correction.text, correction.sentence):
            away = abs(start - (correction.start or 0))
            if best is None or away < nearest:
                best, nearest = (segment, number, start, end, text), away
    if best is None:
        return None
    segment, number, start, end, text = best
    passages = [segment.passage(index) for index in range(*segment.passage_range(number))]
    first = [each for each in passages if each.start <= start] or passages
    whole = [each for each in first if end <= each.start + len(each.text)]
    passage = (whole or first)[-1]
    return (passage if whole else replace(passage, text=text[passage.start : end])), start, end


def occurrences(text: str, wanted: str, within: str = "") -> Iterator[tuple[int, int]]:
    """Where whole words occur in a text, whatever their typography, or in the occurrences of a sentence in it."""
    folded, needle = fold_with_places(text), fold(wanted).strip()
    around = fold(within).strip()
    for begin in _starts(folded.text, around) if around else [0]:
        stop = begin + len(around) if around else len(folded.text)
        for at in _starts(folded.text[:stop], needle, begin) if needle else ():
            if is_word_end(folded.text, at) and is_word_end(folded.text, at + len(needle)):
                yield folded.source(at, at + len(needle))


def _starts(text: str, part: str, start: int = 0) -> Iterator[int]:
    while (start := text.find(part, start)) >= 0:
        yield start
        start += 1
