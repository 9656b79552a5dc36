"""Source maps: what is written is read, any part by itself; where a phrase is, against a slow search; damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth_sources.source_map import FRAME_RUNS, PLACES, Location, Run, encode, frames_of, locate, runs_of

NUMBERS = st.integers(0, 10_000)
NAMES = st.text(max_size=5)
KINDS = {
    name: [NAMES if field in ("sheet", "cell", "element") else NUMBERS for field in PLACES[name]] for name in PLACES
}


@st.composite
def maps(draw: st.DrawFn) -> tuple[str, list[Run]]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    runs, at = [], 0
    for gap, length in draw(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=20)):
        runs.append((at + gap, at + gap + length, *(draw(each) for each in KINDS[kind])))
        at += gap + length
    return kind, runs


@given(maps(), st.integers(0, 150), st.integers(0, 20))
def test_what_is_written_is_read_and_found(drawn: tuple[str, list[Run]], start: int, length: int) -> None:
    kind, runs = drawn
    written = encode(kind, runs)
    assert runs_of(written) == (kind if runs else "", runs)
    end = start + length
    inside = [run for run in runs if run[0] < end and start < run[1]]
    assert runs_of(written, start, end)[1] == inside
    found = locate(written, start, start + max(length, 1))
    first = next((run for run in runs if run[0] < start + max(length, 1) and start < run[1]), None)
    if first is None:
        assert found is None
    else:
        values = dict(zip(PLACES[kind], first[2:], strict=True))
        assert found is not None
        assert all(getattr(found, name) == value for name, value in values.items() if hasattr(found, name))


def test_a_part_of_a_long_map_is_a_map() -> None:
    runs = [(5 * n, 5 * n + 4, n // 7, n) for n in range(3 * FRAME_RUNS + 1)]
    runs = [(start, end, line) for start, end, line, _ in runs]
    written = encode("line", runs)
    frames = [*frames_of(written)]
    assert [last for *_, last in frames] == [first for _, _, first, _ in frames[1:]] + [len(written)]
    assert len(frames) == 4
    begin, end = frames[1][2], frames[2][3]
    assert runs_of(written[begin:end])[1] == runs[FRAME_RUNS : 3 * FRAME_RUNS]


def test_rectangles_by_hand() -> None:
    runs = [
        (0, 4, 2, 1000, 500, 1400, 600),  # 400 wide, 4 characters
        (5, 8, 2, 1450, 500, 1750, 600),
        (9, 12, 2, 1000, 700, 1300, 800),  # the next line
        (13, 16, 3, 1000, 100, 1300, 200),  # the next page
    ]
    written = encode("page", runs)
    assert locate(written, 0, 4) == Location(page=2, rectangles=((10.0, 5.0, 14.0, 6.0),))
    assert locate(written, 1, 3) == Location(page=2, rectangles=((11.0, 5.0, 13.0, 6.0),))
    assert locate(written, 2, 16) == Location(page=2, rectangles=((12.0, 5.0, 17.5, 6.0), (10.0, 7.0, 13.0, 8.0)))
    assert locate(written, 4, 5) is None
    found = locate(written, 13, 14)
    assert found is not None
    assert found.to_dict() == {"page": 3, "rectangles": [[10.0, 1.0, 11.0, 2.0]]}
    assert str(found) == "page 3"


@pytest.mark.parametrize(
    ("kind", "run", "record", "shown"),
    [
        ("cell", ("Sums", "B2"), {"sheet": "Sums", "cell": "B2"}, "sheet Sums, cell B2"),
        ("slide", (4, "Title 1"), {"slide": 4, "element": "Title 1"}, "slide 4, Title 1"),
        ("line", (7,), {"line": 7}, "line 7"),
        ("element", ("body > p",), {"element": "body > p"}, "body > p"),
    ],
)
def test_other_places_by_hand(kind: str, run: Run, record: dict[str, object], shown: str) -> None:
    found = locate(encode(kind, [(3, 9, *run)]), 4, 5)
    assert found is not None
    assert (found.to_dict(), str(found)) == (record, shown)


def test_damage_is_an_error() -> None:
    written = encode("line", [(0, 3, 1), (4, 6, 2)])
    for cut in range(1, len(written)):
        with pytest.raises(ValueError):
            runs_of(written[:cut])
    for at in range(12, len(written)):
        with pytest.raises(ValueError):
            runs_of(written[:at] + bytes([written[at] ^ 0x41]) + written[at + 1 :])
