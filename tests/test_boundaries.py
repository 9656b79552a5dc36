import numpy as np
import pytest

from quoth.encoders.boundaries import MAY_END, MAY_START, SPACE_BEFORE, boundary_flags, surface_group, trim


def flags(text: str, *ranges: tuple[int, int]) -> list[str]:
    """The flags of each token as letters: S may start, E may end, _ white space before."""
    found = boundary_flags(text, np.array(ranges, np.int64).reshape(-1, 2))
    names = {MAY_START: "S", MAY_END: "E", SPACE_BEFORE: "_"}
    return ["".join(name for bit, name in names.items() if flag & bit) for flag in found]


def test_shapes() -> None:
    assert boundary_flags("", np.zeros((0, 2), np.int64)).shape == (0,)
    found = boundary_flags("a b", np.array([[0, 1], [2, 3]]))
    assert found.shape == (2,)
    assert found.dtype == np.uint8


@pytest.mark.parametrize(
    ("text", "ranges", "expected"),
    [
        ("two words", [(0, 3), (4, 9)], ["SE", "SE_"]),
        ("playing", [(0, 4), (4, 7)], ["S", "E"]),
        ("a tower.", [(0, 1), (2, 5), (5, 7), (7, 8)], ["SE", "S_", "E", ""]),
        ("x\t\ny", [(0, 1), (3, 4)], ["SE", "SE_"]),
        ("x-y", [(0, 1), (1, 2), (2, 3)], ["SE", "", "SE"]),
        ("北京市", [(0, 1), (1, 2), (2, 3)], ["SE", "SE", "SE"]),
        ("세종대왕", [(0, 2), (2, 4)], ["S", "E"]),
        ("القاهرة", [(0, 2), (2, 7)], ["S", "E"]),
        ("दिल्ली", [(0, 2), (2, 6)], ["S", "E"]),
        ("cafe\u0301 x", [(0, 4), (4, 5), (6, 7)], ["S", "E", "SE_"]),
        ("か\u3099き", [(0, 1), (1, 2), (2, 3)], ["S", "E", "SE"]),
        ("👩\u200d🔬!", [(0, 1), (1, 2), (2, 3), (3, 4)], ["S", "", "E", ""]),
        ("👍🏽", [(0, 1), (1, 2)], ["S", "E"]),
        ("می\u200cخواهم", [(0, 2), (3, 8)], ["S", "E"]),
        ("🦜", [(0, 1), (0, 1), (0, 1)], ["S", "", "E"]),
        ("a b", [(0, 1), (2, 2), (2, 3)], ["SE", "", "SE_"]),
    ],
)
def test_flags_by_hand(text: str, ranges: list[tuple[int, int]], expected: list[str]) -> None:
    assert flags(text, *ranges) == expected


def test_whitespace_is_what_space_before_means() -> None:
    assert flags("a\x01b", (0, 1), (2, 3)) == ["SE", "SE"]


def test_trim() -> None:
    assert trim(" word ", 0, 6) == (1, 5)
    assert trim("   ", 1, 3) == (3, 3)
    assert trim("e\u0301\u0323f", 0, 1) == (0, 3)
    assert trim("👍🏽x", 0, 1) == (0, 2)


def test_groups_ignore_case_and_nothing_else() -> None:
    assert surface_group("München") == surface_group("MÜNCHEN")
    assert surface_group("ΟΔΟΣ") == surface_group("οδος")
    assert surface_group("München") != surface_group("Munchen")
    assert 0 <= surface_group("") < 1 << 64
