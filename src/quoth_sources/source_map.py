"""Where a text is in the file that it was read from: characters to page and rectangle, cell, slide, element or line.

Knows a map's runs and its bytes, of which any part can be cut out and read by itself. Does not know formats of files,
documents or corpora.

A run is (start, end, *place): the characters that stand together in one place, in the order of the text, and the
values of that place as `PLACES` names them, counted from 1. Rectangles are in hundredths of a per cent of the page's
width and height, from its upper left corner. Text that stands nowhere, such as the bars of a table, has no run.

The bytes are frames, each of up to `FRAME_RUNS` runs: little-endian uint32 [first character, last character, size of
the rest], then zlib of a line of JSON [kind of place, strings, number of runs] and the runs as int32 [runs, fields]:
start, length, values of the place (of a string its number), as differences to the run before, column by column, the
lowest bytes of a column first. A word on a page takes about 5 bytes.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PLACES = {
    "page": ("page", "left", "top", "right", "bottom"),
    "cell": ("sheet", "cell"),
    "slide": ("slide", "element"),
    "element": ("element",),
    "line": ("line",),
}
FRAME_RUNS = 512
WHOLE = 10_000
"""A page's width and height, in a run's units."""

Run = tuple[Any, ...]
Rectangle = tuple[float, float, float, float]
_HEAD = struct.Struct("<III")
_NEAR = 5.0
"""The most per cent of a page's width between two parts of a line that are marked as one."""


def union(boxes: Iterable[Rectangle]) -> Rectangle:
    """The smallest rectangle around all of them."""
    left, low, right, high = zip(*boxes, strict=True)
    return min(left), min(low), max(right), max(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file, counted from 1; None or "" where not known.

    `rectangles` are (left, top, right, bottom) on the page, in per cent of its width and height, from its upper left.
    `element` is a path (`body > p:nth-of-type(2)`) or a name (`paragraph 12`). For a range over several places, this is
    the first.
    """

    page: int | None = None
    rectangles: tuple[Rectangle, ...] = ()
    sheet: str = ""
    cell: str = ""
    slide: int | None = None
    element: str = ""
    line: int | None = None

    def __str__(self) -> str:
        names = ("page", "sheet", "cell", "slide", "line")
        named = [f"{name} {getattr(self, name)}" for name in names if self._has(name)]
        return ", ".join([*named, *filter(None, [self.element])])

    def to_dict(self) -> dict[str, Any]:
        """The known parts of the place, as JSON."""
        known = {name: getattr(self, name) for name in self.__slots__ if self._has(name)}
        return known | ({"rectangles": [[*each] for each in self.rectangles]} if self.rectangles else {})

    def _has(self, name: str) -> bool:
        return getattr(self, name) not in (None, "", ())


class Located:
    """Base of records whose `source_map` locates their characters in a file."""

    __slots__ = ()

    if TYPE_CHECKING:
        source_map: bytes
        start: int
        end: int

    def locate(self) -> Location | None:
        """Where it is in its source file: page and rectangles, cell, slide, element or line.

        None for records, such as lines of JSONL, or if the file was read by a version without such maps.
        """
        return locate(self.source_map, self.start, self.end)


def as_json(record: "DataclassInstance") -> dict[str, Any]:
    """A record as by `asdict`, recursively, with `location` in place of a `source_map`."""
    return asdict(record, dict_factory=_with_location)


def _with_location(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    known = dict(fields)
    location = locate(known.pop("source_map", b""), known.get("start", 0), known.get("end", 0))
    return known if location is None else {**known, "location": location.to_dict()}


def encode(kind: str, runs: Sequence[Run]) -> bytes:
    """A map of runs, in order, whose places are of this kind."""
    import numpy as np

    frames = []
    for at in range(0, len(runs), FRAME_RUNS):
        some, names = runs[at : at + FRAME_RUNS], dict[str, int]()
        rows = []
        for start, end, *place in some:
            values = [names.setdefault(each, len(names)) if isinstance(each, str) else each for each in place]
            rows.append([start, end - start, *values])
        columns_FR = np.diff(np.array(rows, "<i4").T, prepend=0).astype("<i4")
        planes = columns_FR[..., None].view(np.uint8).transpose(0, 2, 1).tobytes()
        rest = zlib.compress(json.dumps([kind, [*names], len(some)]).encode() + b"\n" + planes, 9)
        frames.append(_HEAD.pack(some[0][0], some[-1][1], len(rest)) + rest)
    return b"".join(frames)


def frames_of(source_map: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Per frame of a map: its first and last character, and the bytes from where to where it is.

    Raises ValueError if these are not the bytes of a map.
    """
    at = 0
    while at < len(source_map):
        if at + _HEAD.size > len(source_map):
            raise ValueError("the source map is cut off")
        first, last, size = _HEAD.unpack_from(source_map, at)
        end = at + _HEAD.size + size
        if end > len(source_map) or first > last:
            raise ValueError("the source map is cut off")
        yield first, last, at, end
        at = end


def runs_of(source_map: bytes, start: int = 0, end: int | None = None) -> tuple[str, list[Run]]:
    """The kind of places, and the runs that have characters from start to end, by default all. Raises ValueError."""
    kind, runs = "", list[Run]()
    for first, last, begin, stop in frames_of(source_map):
        if last > start and (end is None or first < end):
            kind, some = _decoded(source_map[begin + _HEAD.size : stop])
            runs += [run for run in some if run[1] > start and (end is None or run[0] < end)]
    return kind, runs


def _decoded(rest: bytes) -> tuple[str, list[Run]]:
    import numpy as np

    try:
        header, _, planes = zlib.decompress(rest).partition(b"\n")
        kind, names, count = json.loads(header)
        texts = [name in ("sheet", "cell", "element") for name in PLACES[kind]]
        shape = (len(texts) + 2, 4, count)
        planes_F4R = np.frombuffer(planes, np.uint8).reshape(shape)
        columns_FR = planes_F4R.transpose(0, 2, 1).copy().view("<i4")[..., 0].cumsum(1, np.int32)
        columns: list[list[Any]] = columns_FR.tolist()
        for number, is_text in enumerate(texts, 2):
            if is_text:
                columns[number] = [names[each] for each in columns[number]]
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the source map is damaged ({error})") from None
    return kind, [(start, start + length, *place) for start, length, *place in zip(*columns, strict=True)]


def locate(source_map: bytes, start: int, end: int) -> Location | None:
    """Where the characters from start to end are; None if the map does not say. Raises ValueError."""
    kind, runs = runs_of(source_map, start, max(end, start + 1))
    if not runs:
        return None
    first = dict(zip(PLACES[kind], runs[0][2:], strict=True))
    if kind != "page":
        return Location(**first)
    parts = (_cut(run, start, end) for run in runs if run[2] == first["page"])
    return Location(page=first["page"], rectangles=_joined(parts))


def _cut(run: Run, start: int, end: int) -> Rectangle:
    """The part of a run's rectangle that these characters take, if all characters are equally wide."""
    begin, stop, _, left, top, right, bottom = run
    width = (right - left) / (stop - begin)
    low, high = left + width * max(start - begin, 0), left + width * (min(end, stop) - begin)
    return round(low / 100, 2), top / 100, round(high / 100, 2), bottom / 100


def _joined(parts: Iterable[Rectangle]) -> tuple[Rectangle, ...]:
    """The rectangles, those that follow each other on a line as one."""
    joined = list[Rectangle]()
    for left, top, right, bottom in parts:
        if joined:
            first, upper, last, lower = joined[-1]
            overlap = min(bottom, lower) - max(top, upper)
            if 2 * overlap > min(bottom - top, lower - upper) and -1 < left - last < _NEAR:
                joined[-1] = (first, min(top, upper), max(right, last), max(bottom, lower))
                continue
        joined.append((left, top, right, bottom))
    return tuple(joined)
