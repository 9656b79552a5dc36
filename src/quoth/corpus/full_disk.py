"""Deleting and compacting on a full disk: what is removed first, and in which steps.

Knows that a write that failed for lack of space is tried again once there is some. Does not know what a write consists
of (`writer`), or where the reserve is kept.
"""

import shutil
from collections.abc import Sequence
from errno import EDQUOT, ENOSPC

from quoth.corpus.manifest import read_manifest
from quoth.corpus.segment import Segment
from quoth.corpus.sweep import release, sweep
from quoth.corpus.writer import Writer, worth_merging

RESERVE = 1 << 16
"""Bytes that a corpus keeps for a full disk: enough to delete a thousand documents, or to merge small segments."""

_AROUND = 1 << 15
"""What a merge writes along with segments: moves, manifest and its copy, lists of checksums; each takes some blocks."""


def delete(writer: Writer, document_ids: Sequence[str]) -> int:
    """`Writer.delete`; on a full disk with the reserve."""
    try:
        return writer.delete(document_ids)
    except OSError as error:
        _raise_unless_full(error, writer)
    sweep(writer.path, writer.snapshot.manifest)
    writer.yield_reserve()
    return writer.delete(document_ids)


def merge(writer: Writer) -> bool:
    """`Writer.merge`; on a full disk with the reserve and without the older snapshots, first the segments that shrink,
    one by one from the smallest, each of which frees space for the next.

    Raises OSError naming the bytes that are needed; what was merged until then is committed.
    """
    try:
        return writer.merge()
    except OSError as error:
        _raise_unless_full(error, writer)
    writer.yield_reserve()
    _make_room(writer)
    shrinking = [each for each in writer.snapshot.segments if writer.snapshot.num_deleted(each)]
    merged = False
    for chosen in (*([each] for each in sorted(shrinking, key=_bytes)), None):
        needed = _AROUND + sum(_bytes_kept(writer, each) for each in chosen or worth_merging(writer.snapshot))
        try:
            merged = writer.merge(chosen) or merged
        except OSError as error:
            _raise_unless_full(error, writer)
            _make_room(writer)
            free = shutil.disk_usage(writer.path).free
            message = f"No space left on device: compacting needs some {needed:,} bytes, and {free:,} are free"
            raise OSError(ENOSPC, message, str(writer.path)) from None
        _make_room(writer)
    return merged


def _raise_unless_full(error: OSError, writer: Writer) -> None:
    """Raises the error unless the disk is full and nothing was committed."""
    if error.errno not in (ENOSPC, EDQUOT) or read_manifest(writer.path) != writer.snapshot.manifest:
        raise error


def _make_room(writer: Writer) -> None:
    """Removes what a failed write left, and the older snapshots that nobody reads."""
    sweep(writer.path, writer.snapshot.manifest)
    release(writer.path, writer.snapshot.manifest.snapshot, thorough=True)


def _bytes(segment: Segment) -> int:
    return sum(512 * each.stat().st_blocks for each in segment.path.iterdir())


def _bytes_kept(writer: Writer, segment: Segment) -> int:
    """What a segment's documents will take, about, without the deleted ones."""
    deleted = writer.snapshot.num_deleted(segment)
    return _bytes(segment) * (segment.num_documents - deleted) // segment.num_documents
