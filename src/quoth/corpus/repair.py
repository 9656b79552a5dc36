"""Damage: finding it, repairing what can be rebuilt from the rest, reading what is left.

Knows which files repeat others: a segment's tables, words and list of checksums follow from its documents (`rebuild`),
and the last manifest, the lists of deletions and the record of origins have copies. A document of a segment that cannot
be opened counts only if its CRC-32 is the recorded one. Does not know what is kept next to the passages: if any of it
is damaged it is removed, and its owner makes it again.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from quoth.corpus.deletions import Deletions, find_deletions
from quoth.corpus.manifest import (
    EXACT,
    LOCK,
    REPAIR,
    Manifest,
    SegmentEntry,
    check_copy,
    committed,
    deletions_path,
    manifest_path,
    read_manifest,
    sealed_folders,
    segment_path,
    side_locks,
    snapshots,
    write_manifest,
)
from quoth.corpus.origins import BEFORE, read_before, read_origins
from quoth.corpus.rebuild import part_of, rebuilt, take_rebuilt, without_places
from quoth.corpus.seen import SEEN, check_seen
from quoth.corpus.segment import Segment, open_segment
from quoth.corpus.snapshot import Snapshot, open_snapshot, reason_unlisted
from quoth.corpus.writer import sweep_temporary
from quoth.errors import CorpusNotFoundError, CorruptionError, InputError, advising, brief, few
from quoth.records import Document
from quoth.storage import (
    CHECKSUMS,
    COMMITTED,
    Lease,
    all_locked,
    atomic_write_bytes,
    check_file,
    check_folder,
    copy_of,
    cut_to,
    fsync_path,
    publish_directory,
    read_either,
    read_json,
    remove,
    sha256_file,
)


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was repaired, what is lost and what was dropped, one line of text for each file or segment."""

    repaired: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def repair(path: Path, drop: Sequence[str] = ()) -> Repairs:
    """`Corpus.repair`."""
    if not snapshots(path) and committed(path) is None:
        read_manifest(path)  # raises, because there is no corpus
    done = Repairs()
    with all_locked([path / LOCK, *side_locks(path)]):
        sweep_temporary(path, beside=True)
        manifest = _repair_manifest(path, done)
        _restore_copies(path, done)
        _drop_damaged_records(path, done)
        if manifest is not None:
            manifest = _repair_origins(path, manifest, done)
            old = manifest
            manifest, deletions = _repair_deletions(path, old, done, drop)
            if manifest != old and old.deletions:
                drop = [name for name in drop if name != old.deletions["name"]]
            try:
                manifest = _repair_segments(path, manifest, done, drop, deletions)
            except InputError as error:  # what is repaired already, the next call will not tell
                for line in done.repaired:
                    error.add_note(f"repaired: {line}")
                raise
            _release_damaged(path, manifest, done)
            remove(path / REPAIR)
        _remove_damaged_side_tables(path, done)
    return done


def _repair_manifest(path: Path, done: Repairs) -> Manifest | None:
    """The last commit's manifest, after rebuilding it or its copy from the other; None if neither can be read."""
    numbers, copy, copied = snapshots(path), path / COMMITTED, committed(path)
    last, latest, reason = numbers[-1] if numbers else -1, None, ""
    try:
        latest = read_manifest(path, last) if numbers else None
    except CorruptionError as error:
        reason = str(error)
    if copied is not None and (copied.snapshot > last or (latest is None and copied.snapshot == last)):
        file = manifest_path(path, copied.snapshot)
        remove(file)
        atomic_write_bytes(file, copy.read_bytes())
        done.repaired.append(f"{file}: rebuilt from its copy {COMMITTED}")
        return copied
    if latest is None:
        remedy = f"restore it from a backup, or delete it and {COMMITTED} to return to the previous snapshot"
        done.lost.append(f"{reason}; {COMMITTED} is not a copy of it: {remedy}")
        return None
    try:
        read_manifest(path)
    except CorruptionError as error:  # nothing tells what a lost manifest named from a killed writer's leftovers
        done.lost.append(str(error))
        return latest
    newest = manifest_path(path, last).read_bytes()
    is_wrong = copied is None or copy.read_bytes() != newest
    if is_wrong and (copy.exists() or (latest.has_copies and latest.snapshot)):
        remove(copy)
        done.repaired.append(f"{copy}: copied again from {manifest_path(path, last).name}")
    atomic_write_bytes(copy, newest)
    return latest


def _repair_segments(
    path: Path, manifest: Manifest, done: Repairs, drop: Sequence[str], deletions: Deletions | None
) -> Manifest:
    """Rebuilds segments, and takes those out that cannot be and are to be dropped; returns the last manifest."""
    lost: dict[str, str] = {}
    whole = set[str]()
    for entry in manifest.segments:
        folder = segment_path(path, entry.name)
        take_rebuilt(path, entry)
        try:
            check_folder(folder, entry.sha256, contents=True)
        except CorruptionError as error:
            if (cut := _cut(folder, entry)) or rebuilt(path, entry, manifest.splitter):
                done.repaired.append(f"{error}; {'cut to what was written' if cut else 'rebuilt from its documents'}")
                whole.add(entry.name)
            elif found := without_places(path, entry, manifest.splitter):
                changed, without = found
                segments = tuple(changed if each.name == changed.name else each for each in manifest.segments)
                manifest = manifest.successor(segments=segments)
                write_manifest(path, manifest)  # after a kill here, the next repair rebuilds it as it is recorded now
                publish_directory(part_of(path, changed), folder)
                count, names = f"{len(without):,} documents", few([*map(brief, without)])
                told = f"the places of {count} are lost: `quoth replace` reads them again ({names})"
                done.dropped.append(f"{error}; {told}")
                whole.add(entry.name)
            else:  # deleted documents count too if nobody knows them
                there = [document is not None for document in _readable(path, entry, deletions or Deletions())]
                left = f"of its {len(there)} documents {sum(there)} can be read (`quoth export`)"
                lost[entry.name] = f"{error}; {left}"
    for name in drop:
        if name not in lost.keys() | whole:
            known = ", ".join(lost) or "none"
            raise InputError(f"{name!r} is not a damaged segment of {path}, so nothing was dropped; damaged: {known}")
    dropped = lost.keys() & set(drop if deletions is not None else ())
    for name, reason in lost.items():
        if name in dropped:
            done.dropped.append(reason)
        else:
            remedy = f"restore {segment_path(path, name)} from a backup, or `quoth repair {path} --drop {name}`"
            done.lost.append(f"{reason}; {remedy}")
    return _without(path, manifest, dropped, deletions) if dropped and deletions is not None else manifest


def _without(path: Path, old: Manifest, drop: Collection[str], deletions: Deletions) -> Manifest:
    """Commits a manifest without these segments."""
    segments = tuple(entry for entry in old.segments if entry.name not in drop)
    for entry in set(old.segments) - set(segments):
        deletions = deletions.without(entry.first_document, entry.first_document + entry.num_documents)
    saved = deletions.save(deletions_path(path, old.snapshot + 1)) if len(deletions) else None
    manifest = old.successor(
        segments=segments,
        num_documents=sum(entry.num_documents for entry in segments) - len(deletions),
        num_passages=sum(entry.num_passages for entry in segments) - deletions.num_rows,
        deletions=saved,
        bypassed=tuple(name for name in old.bypassed if name not in drop),
    )
    write_manifest(path, manifest)
    return manifest


def _cut(folder: Path, entry: SegmentEntry) -> bool:
    """Cut off what was appended to the files of a segment; returns whether nothing else was wrong with it."""
    listing = folder / CHECKSUMS
    try:
        if sha256_file(listing) != entry.sha256:
            return False
        for name, expected in read_json(listing).items():
            cut_to(folder / name, expected)
        check_folder(folder, entry.sha256, contents=True)
    except (CorruptionError, OSError):
        return False
    return True


def _restore_copies(path: Path, done: Repairs) -> None:
    """Restore files that are written twice, of every snapshot, from their copies, and vice versa."""
    for number in snapshots(path):
        with suppress(CorruptionError):
            manifest = read_manifest(path, number)
            for described in manifest.written_twice:
                file = path / described["name"]
                for each in (file, copy_of(file)):
                    if cut_to(each, described):
                        done.repaired.append(f"{each}: cut to what was written")
                content, _ = read_either(file, described)
                for each, other in ((file, copy_of(file)), (copy_of(file), file)):
                    try:
                        check_file(each, described, contents=True)
                    except CorruptionError as error:
                        if manifest.has_copies or each.exists() or each == file:
                            done.repaired.append(f"{error}; copied again from {other.name}")
                        remove(each)
                        atomic_write_bytes(each, content)


def _drop_damaged_records(path: Path, done: Repairs) -> None:
    """Remove damaged files that are no part of a commit: they are made again."""
    for name in (*BEFORE, SEEN):
        try:
            check_seen(path) if name == SEEN else read_before(path / name)
        except CorruptionError as error:
            remove(path / name)
            done.dropped.append(f"{error}; removed")


def _repair_origins(path: Path, manifest: Manifest, done: Repairs) -> Manifest:
    """Commits a manifest without the parts of the record that are lost; returns the last one."""
    left = []
    for described in manifest.origins:
        try:
            read_either(path / described["name"], described)
            left.append(described)
        except CorruptionError as error:
            stay = "what was deleted there since stays in the corpus, until `quoth delete`"
            done.dropped.append(f"{error}, and so is its copy; `quoth sync` reads its folders again; {stay}")
    if len(left) < len(manifest.origins):
        manifest = manifest.successor(origins=tuple(left))
        write_manifest(path, manifest)
    return manifest


def _repair_deletions(
    path: Path, manifest: Manifest, done: Repairs, drop: Sequence[str]
) -> tuple[Manifest, Deletions | None]:
    """The deletions, None if they are lost and not to be dropped, and the last manifest."""
    if not (found := find_deletions(path, manifest)).is_lost:
        return manifest, found.deletions
    assert manifest.deletions is not None
    snapshot, file = Snapshot(path, manifest), path / manifest.deletions["name"]
    if not snapshot.is_incomplete:
        snapshot.deletions.save(file)
        fsync_path(path)
        done.repaired.append(f"{found.damage}; rebuilt from an older list and the ids")
    elif file.name in drop:
        done.dropped.append(reason_unlisted(snapshot))
        manifest = _without(path, manifest, (), snapshot.deletions)
    else:
        remedy = f"restore {file} from a backup, or `quoth repair {path} --drop {file.name}`"
        done.lost.append(f"{reason_unlisted(snapshot)}; {remedy}")
        return manifest, None
    return manifest, snapshot.deletions


def _check_twice(path: Path, manifest: Manifest) -> None:
    """Raises CorruptionError if a file that was written twice, or its copy, is damaged."""
    for described in manifest.written_twice:
        file = path / described["name"]
        for each in (file, copy_of(file)) if manifest.has_copies else (file,):
            check_file(each, described, contents=True)


def _release_damaged(path: Path, latest: Manifest, done: Repairs) -> None:
    """Release older snapshots that cannot be read any more because of files that only they use."""
    for number in snapshots(path)[:-1]:
        try:
            manifest = read_manifest(path, number)
            if manifest.written_twice != latest.written_twice:
                _check_twice(path, manifest)
            for entry in set(manifest.segments) - set(latest.segments):
                check_folder(segment_path(path, entry.name), entry.sha256, contents=True)
        except CorruptionError as error:
            remove(manifest_path(path, number))
            fsync_path(path)
            done.repaired.append(f"{error}; the older snapshot {number} that used it is released")


def _remove_damaged_side_tables(path: Path, done: Repairs) -> None:
    """Remove the damaged folders of keys, moves and exact indexes, and with a folder all that belong to it (its name
    and a suffix)."""
    folders = sealed_folders(path)
    for folder in folders:
        try:
            if folder.exists():
                check_folder(folder, contents=True)
        except CorruptionError as error:
            belonging = (other for other in folders if other.parent == folder.parent and other.stem == folder.name)
            for other in {folder, *belonging}:
                remove(other)
            maker = f"`quoth embed {path}`, with the same model,"
            if folder.parent.name == EXACT:
                maker = f"`quoth embed {path} --keys exact`"
            done.repaired.append(f"{error}; removed {folder}: {maker} makes it again")


def intact_documents(path: Path, lost: Callable[[str], None]) -> Iterator[Document]:
    """Every document of a corpus that can be read as it was added; `lost` receives a line per segment with others.

    And one if documents may be among them that were deleted. Raises CorpusNotFoundError, and CorruptionError if no
    manifest can be read.
    """
    snapshot = open_snapshot(path, None)
    if snapshot.is_incomplete:
        lost(reason_unlisted(snapshot))
    opened = {segment.name: segment for segment in snapshot.segments}
    for entry in snapshot.manifest.segments:
        count = bad = 0
        for document in _readable(path, entry, snapshot.deletions, opened.get(entry.name)):
            count += 1
            if document is None:
                bad += 1
            else:
                yield document
        if bad:
            lost(f"{segment_path(path, entry.name)}: {bad} of {count} documents cannot be read")


def _readable(
    path: Path, entry: SegmentEntry, deletions: Deletions, segment: Segment | None = None
) -> Iterator[Document | None]:
    """The documents of a segment that are not deleted; None in place of one that cannot be read."""
    if segment is None:
        with suppress(CorruptionError):
            segment = Segment(segment_path(path, entry.name), entry.first_row, entry.first_document, "", sealed=False)
    for number in range(entry.num_documents):
        if entry.first_document + number not in deletions:
            document = None
            with suppress(CorruptionError, IndexError, ValueError):
                document = None if segment is None else segment.document(number)
            yield document


def verify(path: Path) -> None:
    """Reads every file. Raises CorruptionError naming the first one that is missing or damaged."""
    with advising(path):
        read_manifest(path)
        check_copy(path)
        sound: set[SegmentEntry] = set()
        for number in snapshots(path):
            try:
                _verify_snapshot(path, number, sound)
            except (CorpusNotFoundError, CorruptionError):
                if number in snapshots(path):
                    raise  # not released since it was listed
        read_origins(path, read_manifest(path))
        check_seen(path)
        for folder in sealed_folders(path):
            check_folder(folder, contents=True)


def _verify_snapshot(path: Path, number: int, sound: set[SegmentEntry]) -> None:
    """Reads the deletions and origins of a snapshot and its segments, but for `sound` ones, to which it adds them; one
    at a time, because each has files open. Raises CorruptionError."""
    manifest = read_manifest(path, number)
    lease = Lease(manifest_path(path, number))  # so that `compact` keeps its files
    _check_twice(path, manifest)
    for entry in manifest.segments:
        if entry not in sound:
            open_segment(path, entry).verify()
            sound.add(entry)
    del lease
