"""Documents that say the same, or nearly.

Two texts are near duplicates if the intersection of their shingles, the runs of 32 bytes that they contain, is at least
four fifths of the union (Broder, On the resemblance and containment of documents, 1997). Min-hashing proposes pairs,
which are then compared in full, so none that is told is wrong. Case and white space do not count.

Knows texts. Does not know what is done about duplicates.

Shape suffixes that differ from the project's: H shingles.
"""

from collections import defaultdict
from functools import lru_cache, reduce
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from quoth.corpus.view import CorpusView

Hashes = NDArray[np.uint64]

NEAR = 0.8
DOUBLINGS = 5
"""A shingle has 2^5 bytes; shorter texts are compared as a whole."""
LONG = 1 << 22
"""Characters that are looked at together, in 104 MB of memory. In a longer text, a space is put after each such part,
so that it equals only texts with the same white space."""
SKETCH = 256
"""A long text is min-hashed by this many of its shingles, those with the smallest hashes."""
BANDS, ROWS = 16, 4
"""Texts with the resemblance r share a band with the probability 1 - (1 - r^4)^16: 0.9998 at 0.8, 0.12 at 0.3."""
COMPARED = 8
"""A text is compared with at most this many in a band that are not alike, so that time stays linear."""
_FACTORS = np.random.default_rng(1997).integers(1, 1 << 63, (DOUBLINGS + BANDS * ROWS, 1), np.uint64) | np.uint64(1)


def near_duplicates(corpus: "CorpusView") -> list[list[str]]:
    """`CorpusView.near_duplicates`."""
    ids, digests, signatures = list[str](), list[bytes](), list[Hashes]()
    for document in corpus.documents():
        if not (text := plain(document.text)):
            continue
        ids.append(document.id)
        digests.append(digest_of(text))
        signatures.append(signature(shingles(text)))
    groups = {number: [number] for number in range(len(ids))}
    group_of = [*groups]

    def join(one: int, other: int) -> None:
        first, second = sorted((group_of[one], group_of[other]))
        if first != second:
            for number in (moved := groups.pop(second)):
                group_of[number] = first
            groups[first] += moved

    firsts = dict[bytes, int]()
    for number, digest in enumerate(digests):
        join(firsts.setdefault(digest, number), number)
    distinct = [*firsts.values()]

    @lru_cache(64)
    def all_shingles(number: int) -> Hashes:
        return np.unique(shingles(plain(corpus.document(ids[number]).text)))

    for band_D in np.array(signatures).reshape(-1, BANDS)[distinct].T:
        values, counts = np.unique(band_D, return_counts=True)
        shared_D = np.flatnonzero(np.isin(band_D, values[counts > 1]))
        met = defaultdict[int, list[int]](list)
        for place, value in zip(shared_D.tolist(), band_D[shared_D].tolist(), strict=True):
            number = distinct[place]
            for other in met[value]:
                if group_of[number] == group_of[other]:
                    break
                if resemblance(all_shingles(number), all_shingles(other)) >= NEAR:
                    join(number, other)
                    break
            else:
                if len(met[value]) < COMPARED:
                    met[value].append(number)
    found = [[ids[number] for number in sorted(group)] for group in groups.values() if len(group) > 1]
    return sorted(found, key=len, reverse=True)


def plain(text: str) -> str:
    """A text without differences of case and white space."""
    parts = (text[at : at + LONG] for at in range(0, max(len(text), 1), LONG))
    return " ".join(" ".join(part.casefold().split()) for part in parts)


def digest_of(plain_text: str) -> bytes:
    """Equal for equal texts, and for no others that are known."""
    return blake2b(plain_text.encode(), digest_size=16).digest()


def shingles(plain_text: str) -> Hashes:
    """The hashes of a text's shingles, in order: [H]; of a long text, those of its beginning."""
    hashes_H = np.frombuffer(plain_text[:LONG].encode() or b"\0", np.uint8).astype(np.uint64)
    for doubling in range(DOUBLINGS):
        width = min(1 << doubling, len(hashes_H) - 1)
        hashes_H = _mixed((hashes_H[: len(hashes_H) - width] + np.uint64(1)) * _FACTORS[doubling] + hashes_H[width:])
    return hashes_H


def signature(shingles_H: Hashes) -> Hashes:
    """Min-hashes, one number per band: [BANDS]."""
    low_H = shingles_H
    if (share := 2 * SKETCH / len(shingles_H)) < 1:  # sorting them all would take most of the time
        low_H = shingles_H[shingles_H <= np.uint64(share * 2**64)]
    sketch_H = np.unique(low_H)[:SKETCH]
    if len(sketch_H) < SKETCH and low_H is not shingles_H:
        sketch_H = np.unique(shingles_H)[:SKETCH]
    minima = _mixed(sketch_H * _FACTORS[DOUBLINGS:]).min(axis=1).reshape(BANDS, ROWS)
    return reduce(lambda folded, row: _mixed(folded * _FACTORS[0]) + row, minima.T)


def resemblance(one_H: Hashes, other_H: Hashes) -> float:
    """The intersection of two sets of shingles as a share of their union."""
    both = len(np.intersect1d(one_H, other_H, assume_unique=True))
    return both / (len(one_H) + len(other_H) - both)


def _mixed(hashes: Hashes) -> Hashes:
    return hashes ^ (hashes >> np.uint64(31))
