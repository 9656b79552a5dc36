"""The exact index of a segment: where words begin in its texts, sorted by the folded text that follows.

Knows bytes, folding and sorting. Does not know when an index is made, deletions or corpora.

    exact.json          format, the segment's checksum, the versions of the folding and of Unicode, the number of parts
    suffixes-<n>.npy    uint32 [W]: bytes of documents.bin (uint64 if that has 4 GiB or more)
    samples-<n>.npy     uint8 [S, 16]: the first folded bytes of every `STEP`-th suffix, zeros behind the document's end

A part has the documents of up to `PART_BYTES`, sorted by themselves, so that memory is bounded: making one takes about
ten bytes per byte of its text. Folded texts are not stored. A comparison folds the bytes of a text from the word on
(`quoth.text.folding`: from any word on the result is that of the whole) up to a cut that changes nothing before it.

Shape suffixes: W words, S samples, N folded bytes, C characters.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quoth.arrays import open_array, save_array
from quoth.errors import CorruptionError
from quoth.storage import Fields, atomic_write_json, check_fields, check_folder, read_json
from quoth.text.folding import FOLDING_VERSION, fold, fold_with_places, is_plain, is_word_end

if TYPE_CHECKING:
    from quoth.corpus.segment import Segment

FACTS: Fields = {"format": (int,), "segment": (str,), "folding": (int,), "unicode": (str,), "parts": (int,)}
FORMAT = 1
HEAD = "exact.json"
STEP = 16
SAMPLE = 16
PART_BYTES = 48 << 20
_AT_A_TIME = 1 << 18
_FIRST_LOOK, _NEAR, _MARGIN = 48, 8, 10
_UNSAFE = b"\xff"
_ODD = (_UNSAFE, b"  ", b"..", b". .")
_JOINED = re.compile(rb"(?<=[a-z])-(?=[a-z])")
_LONE = re.compile(rb"(?<![a-z0-9])[-']|-(?![a-z0-9])|'(?![a-z])")
"""Hyphens and apostrophes that may be something else."""
_NONE = np.empty(0, np.uint32)
Progress = Callable[[int], None]
Offsets = NDArray[Any]
"""Bytes of documents.bin: uint32 or uint64 [W]."""


class Pattern:
    """Folded text that begins with a word, as an index is searched for it."""

    def __init__(self, text: str, ends_with_word: bool) -> None:
        self.bytes, self.ends_with_word = text.encode(), ends_with_word
        self._last = text[-1]
        self.ends_before_letters = not ends_with_word or is_word_end(f"{text[-1]}a", 1)

    def ends_before(self, after: str) -> bool:
        """Whether an occurrence is whole if this character is behind it, or none ("")."""
        if after.isascii():
            return self.ends_before_letters or not after.isalnum()
        return not self.ends_with_word or is_word_end(self._last + after, 1)


class Suffixes:
    """The opened index of one segment. It keeps the segment's bytes mapped, not the segment."""

    def __init__(self, segment: Segment, parts: list[tuple[Offsets, NDArray[np.uint8]]]) -> None:
        self._blob, self._texts_D2 = segment.layout()
        self._begins = self._texts_D2[:, 0].tolist()
        self._parts = [(suffixes_W, samples_S16.view(f"S{SAMPLE}").ravel()) for suffixes_W, samples_S16 in parts]

    @classmethod
    def open(cls, folder: Path, segment: Segment) -> Suffixes | None:
        """The index in a folder; None if it is another segment's, or was sorted otherwise. Raises CorruptionError."""
        check_folder(folder, contents=True)
        facts = check_fields(folder / HEAD, read_json(folder / HEAD), FACTS)
        if facts | {"parts": 0} != facts_of(segment, 0):
            return None
        dtype = _dtype(segment)
        parts = [
            (
                open_array(folder / f"suffixes-{number}.npy", dtype, (-1,)),
                open_array(folder / f"samples-{number}.npy", np.uint8, (-1, SAMPLE)),
            )
            for number in range(facts["parts"])
        ]
        if any(len(samples_S16) != -(-len(suffixes_W) // STEP) for suffixes_W, samples_S16 in parts):
            raise CorruptionError(f"{folder}: damaged, its files do not match")
        return cls(segment, parts)

    def count(self, pattern: Pattern) -> int:
        """How often a pattern occurs."""
        return sum(last - first for part in self._parts for first, last in self._ranges(*part, pattern))

    def occurs(self, pattern: Pattern) -> bool:
        """Whether it occurs."""
        return any(last > first for part in self._parts for first, last in self._ranges(*part, pattern))

    def find(self, pattern: Pattern, most: int | None = None) -> Offsets:
        """The bytes at which it occurs, ascending: all, or the first so many."""
        found = [part[0][first:last] for part in self._parts for first, last in self._ranges(*part, pattern)]
        if not found:
            return _NONE
        offsets_W = np.concatenate(found)
        if most is not None and most < len(offsets_W):
            offsets_W = np.partition(offsets_W, most)[:most]
        return np.sort(offsets_W)

    def is_behind(self, before: bytes, offset: int) -> bool | None:
        """Whether these folded bytes are right before a word; None if only the folding of what is before them tells."""
        begin = self._texts_D2.item(self.document_of(offset), 0)
        raw = self._blob[max(begin, offset - len(before) - 2) : offset].translate(_simple())
        return None if any(odd in raw for odd in (*_ODD, b"'", b"-")) else raw.endswith(before)

    def text_begin(self, document: int) -> int:
        """The byte at which a document's text begins."""
        return int(self._texts_D2.item(document, 0))

    def characters(self, first: int, last: int) -> int:
        """The number of characters of a text between two bytes of it."""
        between = self._blob[first:last]
        return len(between) if between.isascii() else len(between.decode())

    def document_of(self, offset: int) -> int:
        """The document whose text has a byte. Raises CorruptionError if none has."""
        number = bisect_right(self._begins, offset) - 1
        if number < 0 or offset >= self._texts_D2[number, 1]:
            raise CorruptionError(f"the exact index is damaged: byte {offset} belongs to no text")
        return number

    def documents_of(self, offsets_W: Offsets) -> NDArray[np.int64]:
        """The documents whose texts have these bytes: int64 [W]."""
        return np.searchsorted(self._texts_D2[:, 0], offsets_W, "right") - 1

    def _ranges(self, suffixes_W: Offsets, samples_S: NDArray[Any], pattern: Pattern) -> Iterator[tuple[int, int]]:
        """The ranges of suffixes that begin with a pattern and, if it ends with a word, end one."""
        wanted = pattern.bytes
        first = self._bound(suffixes_W, samples_S, wanted)
        if first == len(suffixes_W) or (after := self._after(suffixes_W.item(first), wanted)) is None:
            return
        next_bound = partial(self._next_bound, suffixes_W, samples_S)
        last = next_bound(wanted + _UNSAFE, first + 1, len(suffixes_W))
        if not pattern.ends_with_word:
            yield first, last
        elif last == first + 1:
            if pattern.ends_before(after):
                yield first, last
        else:
            yield from self._word_ends(next_bound, suffixes_W, first, last, pattern)

    def _word_ends(
        self, next_bound: Callable[[bytes, int, int], int], suffixes_W: Offsets, first: int, last: int, pattern: Pattern
    ) -> Iterator[tuple[int, int]]:
        """The ranges between two suffixes where a pattern ends a word: sorted, what follows it is sorted too."""
        wanted = pattern.bytes
        if pattern.ends_before_letters:
            wide = next_bound(wanted + b"\x80", first, last)
            yield first, wide
        else:  # of ASCII, all but digits and letters end a word
            digits = next_bound(wanted + b"0", first, last)
            behind_digits = next_bound(wanted + b":", digits, last)
            letters = next_bound(wanted + b"a", behind_digits, last)
            behind_letters = next_bound(wanted + b"{", letters, last)
            wide = next_bound(wanted + b"\x80", behind_letters, last)
            yield from ((first, digits), (behind_digits, letters), (behind_letters, wide))
        while wide < last:
            after = self._after(suffixes_W.item(wide), wanted) or ""
            until = next_bound(wanted + after.encode() + _UNSAFE, wide + 1, last)
            if pattern.ends_before(after):
                yield wide, until
            wide = until

    def _next_bound(self, suffixes_W: Offsets, samples_S: NDArray[Any], key: bytes, first: int, last: int) -> int:
        """`_bound`, after a look at the first suffix, which often is it."""
        if first >= last or not self._is_below(suffixes_W.item(first), key):
            return first
        return self._bound(suffixes_W, samples_S, key, first + 1, last)

    def _after(self, offset: int, wanted: bytes) -> str | None:
        """The character behind these folded bytes, if the text from a byte on begins with them; else None."""
        size = len(wanted)
        quick = self._quick(offset, min(size, _FIRST_LOOK))
        known = min(size, len(quick))
        if quick[:known] != wanted[:known]:
            return None
        folded = self._folded(offset, size + 4)
        return folded[size : size + 4].decode(errors="ignore")[:1] if folded.startswith(wanted) else None

    def _bound(
        self, suffixes_W: Offsets, samples_S: NDArray[Any], key: bytes, first: int = 0, last: int | None = None
    ) -> int:
        """The first suffix, from `first` to before `last`, that is not below a key."""
        head = key[:SAMPLE]
        low = int(samples_S.searchsorted(head))
        high = low if len(key) <= SAMPLE else int(samples_S.searchsorted(head, "right"))
        low = max(first, (low - 1) * STEP + 1)
        high = min(len(suffixes_W) if last is None else last, high * STEP)
        item, is_below = suffixes_W.item, self._is_below
        while low < high:
            middle = (low + high) // 2
            if is_below(item(middle), key):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_below(self, offset: int, key: bytes) -> bool:
        """Whether the folded text from a byte on sorts before a key. Long keys are compared a piece at a time."""
        size, look = len(key), _FIRST_LOOK
        while True:
            quick = self._quick(offset, min(size, look))
            known = min(size, len(quick))
            if quick[:known] != key[:known]:
                return quick[:known] < key
            if known == size:
                return False
            if known < look:
                break
            look = 4 * look
        look = min(size, known + _NEAR)  # it often differs where it is not simple
        while True:
            found = self._folded(offset, look)[:look]
            if found != key[:look]:
                return found < key
            if look == size:
                return False
            look = min(size, 4 * look)

    def _quick(self, offset: int, size: int) -> bytes:
        """Some more than so many folded bytes of the text from a byte on, at which a word begins; fewer if not all is
        simple: ASCII that folds one by one, but for hyphens inside of words.

        A text's end needs no look: behind it is the next document's record, whose first character is not simple.
        """
        folded = self._blob[offset : offset + size + _MARGIN].translate(_simple())
        lone = None
        if b"'" in folded or b"-" in folded:
            folded = _JOINED.sub(b"", folded)
            lone = _LONE.search(folded)
        # Written out: this runs some ten times per search and segment, in half a microsecond.
        if not lone and _UNSAFE not in folded and b"  " not in folded and b".." not in folded and b". ." not in folded:
            return folded[:-2]  # two more may change what is before them
        places = [at for odd in _ODD if (at := folded.find(odd)) >= 0]
        return folded[: max(min(places + ([lone.start()] if lone else [])) - 1, 0)]

    def _folded(self, offset: int, size: int) -> bytes:
        """So many folded bytes, or more, of the text from a byte on; fewer only at the end of its document."""
        if len(quick := self._quick(offset, size)) >= size:
            return quick
        end = self._texts_D2.item(self.document_of(offset), 1)
        for more in count(1):
            raw = self._blob[offset : min(offset + size + 24 * more**3, end)]
            text = raw.decode(errors="ignore")
            is_whole = offset + len(raw) >= end
            known = fold(text if is_whole else text[: last_cut(text)]).encode()
            if is_whole or len(known) >= size:
                return known
        raise AssertionError


def last_cut(text: str) -> int:
    """A place in a text, as far back as needed, before which it folds the same whatever follows; 0 if there is none.

    It is inside a word, or before one behind a word and a space, where nothing folds together with what is before it.
    """
    for at in range(len(text) - 1, 0, -1):
        before = text[at - 1]
        if is_plain(text[at]) and (before.isalnum() or (before == " " and at > 1 and text[at - 2].isalnum())):
            return at
    return 0


@cache
def _simple() -> bytes:
    """Folds bytes of ASCII one by one; those that do not fold so become `_UNSAFE`."""
    return bytes(
        0xFF if chr(at) in "`[" or at > 0x7F else at if chr(at) in "'-" else ord(fold(chr(at))) for at in range(0x100)
    )


def facts_of(segment: Segment, parts: int) -> dict[str, Any]:
    """What an index says of itself, and of the segment that it is made for."""
    versions = {"folding": FOLDING_VERSION, "unicode": unicodedata.unidata_version}
    return {"format": FORMAT, "segment": segment.sha256, **versions, "parts": parts}


def _dtype(segment: Segment) -> type[np.uint32] | type[np.uint64]:
    return np.uint32 if segment.num_bytes < 1 << 32 else np.uint64


def write(folder: Path, segment: Segment, progress: Progress) -> None:
    """Writes a segment's index into a folder, to be sealed; `progress` receives how many of its bytes are done."""
    parts = 0
    for parts, (suffixes_W, samples_S16) in enumerate(sorted_parts(segment, progress), 1):
        save_array(folder / f"suffixes-{parts - 1}.npy", suffixes_W)
        save_array(folder / f"samples-{parts - 1}.npy", samples_S16)
    atomic_write_json(folder / HEAD, facts_of(segment, parts))


def sorted_parts(segment: Segment, progress: Progress) -> Iterator[tuple[Offsets, NDArray[np.uint8]]]:
    """The suffixes of each part, and its samples."""
    blob, texts_D2 = segment.layout()
    dtype, begin = _dtype(segment), 0
    whole, flags, offsets = bytearray(), bytearray(), bytearray()  # of many small objects some stay after use
    for document, (first, last) in enumerate(texts_D2.tolist()):
        folded = fold_with_places(segment.text(document))
        encoded, (at_W, source_W) = folded.text.encode(), folded.starts()
        is_start_N = np.zeros(len(encoded) + 1, np.bool_)
        is_start_N[_bytes_at(encoded, at_W)] = True
        whole += encoded + b"\0"
        flags += is_start_N.tobytes()
        offsets += (first + _bytes_at(blob[first:last], source_W)).astype(dtype).tobytes()
        if last - begin >= PART_BYTES or document == len(texts_D2) - 1:
            yield _sorted(whole, np.frombuffer(flags, np.bool_), np.frombuffer(offsets, dtype))
            whole, flags, offsets, begin = bytearray(), bytearray(), bytearray(), last
        progress(last)


def _bytes_at(encoded: bytes, at_W: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bytes at which these characters of a text begin."""
    if encoded.isascii():
        return at_W
    return np.flatnonzero((np.frombuffer(encoded, np.uint8) & 0xC0) != 0x80)[at_W]


def _sorted(whole: bytearray, is_start_N: NDArray[np.bool_], offset_W: Offsets) -> tuple[Offsets, NDArray[np.uint8]]:
    """The bytes of words, sorted by the folded text up to its document's end, and the samples."""
    from pydivsufsort import divsufsort

    if not len(offset_W):
        return offset_W, np.zeros((0, SAMPLE), np.uint8)
    sorted_N, size = divsufsort(whole), 0
    for at in range(0, len(whole), _AT_A_TIME):  # what is kept moves to the front: no second array of that size
        block = sorted_N[at : at + _AT_A_TIME]
        kept = block[is_start_N[block]]
        sorted_N[size : size + len(kept)] = kept
        size += len(kept)
    sorted_W = sorted_N[:size].copy()
    characters_N = np.frombuffer(whole, np.uint8)
    sampled_S = sorted_W[::STEP].astype(np.int64)
    places = (np.minimum(sampled_S + at, len(whole) - 1) for at in range(SAMPLE))
    samples_S16 = np.stack([characters_N[places_S] for places_S in places], axis=1)
    samples_S16[np.logical_or.accumulate(samples_S16 == 0, axis=1)] = 0
    is_free = sorted_N.itemsize == offset_W.itemsize
    offset_N = sorted_N.view(offset_W.dtype) if is_free else np.empty(len(whole), offset_W.dtype)
    offset_N[is_start_N] = offset_W
    return offset_N[sorted_W], samples_S16
