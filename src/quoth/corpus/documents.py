"""Readers: files of many formats become one stream of documents.

Knows formats, compression and what makes a record usable; does not know how documents are stored or split.

A record gives its document's `id` (also `_id`, `wikipedia_id`), `title` (`wikipedia_title`) and `text`, a
string or a list of paragraphs (KILT); every other field is metadata. If the first record of a file has no
id, no record of that file may have one, and their ids are `<stem>-<line number>`.
"""

import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, replace
from errno import EFBIG, EIO
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any

from quoth.corpus import json_files, mailboxes, tables
from quoth.corpus.checks import ID_FIELDS, TITLE_FIELDS, check_document, kind_of
from quoth.corpus.whole import document_of, whole
from quoth.errors import FileWarning, InputError, RecordError, brief
from quoth.records import Document
from quoth.storage import fsync_path, naming, refuse_unless_plain
from quoth_sources import limits
from quoth_sources.files import (
    DAMAGE,
    OPENERS,
    Source,
    bare,
    check_parsers,
    decode,
    format_of,
    markup_of,
    sources_of,
    tell,
    unpacked,
)
from quoth_sources.formats import FILES, FORMATS, TEXTS
from quoth_sources.worker import Answer, EndedError, Worker, why_not

Records = Generator[tuple[int, Any], None, None]
"""Line numbers (or row numbers) and their records; a ValueError in place of a record says what is wrong with it."""

Reader = Callable[[IO[bytes], str], Records]
"""From the bytes of a file, and its name."""
Item = tuple[int, Document | Exception]
"""A document, or why there is none, and its line; 0 stands for the file."""
OnBad = Callable[[InputError], None]
OnBadRecord = Callable[[RecordError], None]
"""Receives the error of a record that is left out."""

_REMEDY = "fix it or leave it out (--skip-bad)"
_MOST_IDS = 1 << 20
"""Ids that are remembered (100 MB), to tell those of several files apart; the corpus refuses any that occurs twice."""
_PART = 1 << 18
"""Characters after which documents are handed over."""
_MOST_LOST = 20
"""Messages of a mailbox, one after another, at which the process may end: then it is not the messages."""
_SECONDS_TO_END = 10.0
"""Of a thread whose pipe is closed."""
_FIELDS = [each.name for each in fields(Document)]
_BYTES = [each.name for each in fields(Document) if each.type is bytes]
Owners = dict[str, str]
"""The files that documents were read from, by id."""


def read_documents(
    *paths: str | Path,
    format: str | None = None,
    skip_bad: bool | None = False,
    on_bad: Callable[[InputError], None] | None = None,
    header: bool | None = None,
    follow_links: bool = False,
) -> Iterator[Document]:
    """Read documents from files and folders, one after another.

    A FileWarning reports skipped files of a folder, by kind and number, files read in a guessed encoding, and text that
    looks like LaTeX or other markup. JSONL must be UTF-8. Text and tables may be UTF-8, UTF-16 with a byte order mark,
    or another detectable encoding, such as cp1252. PDF, web pages, Office, e-books and mail need pip install
    "quoth[documents]". A document's `source_map` locates its text in its file.

    Args:
        paths (str | Path): Files, folders (every readable file in them) and "-" (standard input, JSONL); files and
            folders also by URL (s3://, gs://, https://, …), read with fsspec. A file other than a table or JSONL is one
            document, whose id is its path below the folder. If an earlier file has a record's id, the file's name is
            put in front: `products.csv#1`.
        format (str | None): The name of a format, such as "csv" or "pdf"; an unknown name raises an error that lists
            all. Default: by the suffix, with or without .xz, .gz, .bz2.
        skip_bad (bool | None): Skip files and records that cannot be used; None: only below a folder. Default: False.
        on_bad (Callable[[InputError], None] | None): Receives the error of each skipped file or record. Default: None.
        header (bool | None): Whether the first row of a CSV or TSV has the column names. Default: None: judged by its
            cells; a FileWarning says if there are none, or if it is unclear.
        follow_links (bool): Follow symbolic links in a folder, also out of it. Default: False.

    Returns:
        An iterator of the documents.

    Raises:
        InputError: A path does not exist, or a package is not installed (at once); a file or a record cannot be used
            (when read; names file and line).

    Example:
        >>> with open("notes.jsonl", "w") as file:
        ...     file.write('{"id": "a", "title": "A title", "text": "A text."}')
        50
        >>> [document.title for document in quoth.read_documents("notes.jsonl")]
        ['A title']
    """
    return chain.from_iterable(read_paths(paths, format, skip_bad, on_bad, header, follow_links))


def read_paths(
    paths: Iterable[str | Path],
    format: str | None,
    skip_bad: bool | None,
    on_bad: OnBad | None,
    header: bool | None = None,
    follow_links: bool = False,
) -> list[Iterator[Document]]:
    """The same, path by path; to be read in this order."""
    if format is not None and format not in FORMATS:
        raise InputError(f"format {format!r} is not one of {', '.join(FORMATS)}")
    sources = [(sources_of(path, format, follow_links), os.path.isdir(path)) for path in paths]
    if not skip_bad:
        check_parsers(format for each, _ in sources for format, _, _ in each)
    owners = Owners()
    return [
        _read_files(each, partial(bad_record, is_folder if skip_bad is None else skip_bad, on_bad), owners, header)
        for each, is_folder in sources
    ]


def bad_record(skip_bad: bool, on_bad: OnBad | None, error: InputError) -> None:
    """What to do about a record that cannot be used: raise the error, or hand it to `on_bad` and go on."""
    if not skip_bad:
        raise error
    if on_bad is not None:
        on_bad(error)


def read_listing(path: str | Path) -> tuple[set[str], set[str]]:
    """The ids and the case-folded titles in a JSONL file of {"id": …, "title": …}; a line may have only one of them.

    Raises InputError if there is no such file, or for a line with neither.
    """
    ids, titles = set[str](), set[str]()
    for line, record in read_records(path):
        document_id, title = (str(record.get(name) or "") for name in ("id", "title"))
        if not (document_id or title):
            raise InputError(f'{path}:{line}: not a JSON object with an "id" or a "title"; fix or remove the line')
        ids.add(document_id)
        titles.add(title.casefold())
    return ids - {""}, titles - {""}


def read_records(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a JSONL file (compressed or not) with their line numbers.

    Raises InputError if there is no such file, or for a line that is not an object.
    """
    try:
        with open_file(Path(path)) as stream:
            for line, record in _read_jsonl(stream, str(path)):
                if not isinstance(record, Mapping):
                    raise InputError(f"{path}:{line}: not a JSON object; fix or remove the line")
                yield line, record
    except DAMAGE as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)}); give a JSONL file") from None


def read_text(path: str | Path) -> str:
    """The text of a file, compressed or not. Raises InputError if it cannot be read or is not UTF-8."""
    try:
        with open_file(Path(path)) as stream:
            content = stream.read()
    except DAMAGE as error:
        raise InputError(
            f"{path}: cannot be read ({_reason(error)}); give a file that exists and is complete"
        ) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 text; convert it with iconv") from None


def _reason(error: Exception) -> str:
    """The system's message (no permission, for example), or that the file is damaged."""
    message = error.strerror if isinstance(error, OSError) else None
    return message or "the file is damaged or truncated"


def _read_files(sources: Iterable[Source], bad: OnBadRecord, owners: Owners, header: bool | None) -> Iterator[Document]:
    with Worker() as worker:
        yield from read_each(sources, worker, bad, owners, header)


def read_each(
    sources: Iterable[Source],
    worker: Worker,
    bad: OnBadRecord,
    owners: Owners,
    header: bool | None = None,
    hints: set[str] | None = None,
) -> Iterator[Document]:
    """The documents of files, one after another, whose ids differ from those of `owners`, which they join. `bad`
    receives the errors of records, and of files that cannot be read to their end. What `hints` has is not told again,
    and what is told joins it."""
    hints = set() if hints is None else hints
    for source in sources:
        format, file, name = source
        try:
            check_parsers([format])
            with closing(_read_in(worker, source, header)) as items:
                for line, item in items:
                    try:
                        if not isinstance(item, Document):
                            raise item
                        document = _apart(item, str(file), name, owners)
                    except ValueError as error:
                        bad(RecordError(str(file), line, error, _REMEDY, error))
                        continue
                    if format == "text" and not hints and (markup := markup_of(bare(Path(name)).name, document.text)):
                        message = f"{name} looks like {markup}; its markup is kept as text"
                        warnings.warn(FileWarning(message), stacklevel=2)
                        hints.add("markup")
                    yield document
        except RecordError:
            raise  # by `bad`
        except (*DAMAGE, InputError, ValueError) as error:
            why = f"cannot be read ({_reason(error)})" if isinstance(error, DAMAGE) else error
            bad(RecordError(str(file), 0, why, _REMEDY, error))


def _read_in(worker: Worker, source: Source, header: bool | None) -> Generator[Item, None, None]:
    """What a worker reads of a file; without a message of a mailbox at which its process ends."""
    format, file, name = source
    suffix, num_read = Path(str(file)).suffix, 0
    stem = Path(name).stem if str(file) == "-" else bare(Path(name)).stem
    given: dict[str, Any] = {"format": format, "name": name, "stem": stem, "header": header}
    held, num_lost = list[Item](), 0
    while True:
        try:
            with open_raw(file) as (stream, size):
                given |= {"after": num_read, "packed": (suffix, size) if suffix in OPENERS else None}
                for head, parts in worker.answers("quoth.corpus.documents.answers", stream, given):
                    for message in head["told"]:
                        warnings.warn(FileWarning(message), stacklevel=2)
                    num_read += len(head["items"])
                    num_lost = 0
                    if head["items"]:
                        yield from held
                        held = [*_items_of(head["items"], iter(parts))]
            yield from held  # only now: if the source fails, its last part is not all of it
            return
        except EndedError as error:
            num_lost += 1
            yield from held
            if format != "mbox" or str(file) == "-" or num_lost > _MOST_LOST:
                raise
            held = []
            num_read += 1
            yield 0, error


def answers(
    stream: IO[bytes],
    format: str,
    name: str,
    stem: str,
    header: bool | None,
    packed: tuple[str, int] | None,
    after: int,
) -> Iterator[Answer]:
    """In a worker's process: what is read of a file, in parts of up to a second's work. `packed` is a suffix that says
    how the file is compressed, and its size; `after` the number of messages of a mailbox that are passed over."""
    if packed:
        stream = unpacked(OPENERS[packed[0]](stream, "rb"), packed[1])
    readers = _READERS | {"mbox": partial(mailboxes.read, after=after)}
    readers |= {"csv": partial(tables.read, header=header), "tsv": partial(tables.read, delimiter="\t", header=header)}
    reader = readers.get(format) or partial(_read_text if format in TEXTS else _read_parsed, format=format)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FileWarning)
        items, size, until = list[Item](), 0, time.process_time() + 1
        for line, item in _items(reader(stream, name), format, stem):
            items.append((line, item))
            size += len(item.text) if isinstance(item, Document) else 0
            if size > _PART or format == "mbox" or time.process_time() > until:
                yield _answer(items, told)
                items, size, until = [], 0, time.process_time() + 1
        yield _answer(items, told)


def _answer(items: Iterable[Item], told: list[warnings.WarningMessage]) -> Answer:
    rows, parts = list[tuple[int, Any, bool]](), list[bytes]()
    for line, item in items:
        if isinstance(item, Document):
            values = {each: getattr(item, each) for each in _FIELDS}
            parts += [values.pop(each) for each in _BYTES]
            rows.append((line, values, False))
        else:
            rows.append((line, str(item), RecordError("", 0, "", "", item).is_passing))
    head = {"items": rows, "told": [str(each.message) for each in told]}
    told.clear()
    return head, parts


def _items_of(rows: Iterable[tuple[int, Any, bool]], parts: Iterator[bytes]) -> Iterator[Item]:
    for line, values, is_passing in rows:
        if isinstance(values, str):
            error = ValueError(values)
            error.__cause__ = TimeoutError() if is_passing else None
            yield line, error
        else:
            yield line, Document(**(values | dict(zip(_BYTES, parts, strict=False))))


@contextmanager
def open_raw(file: str | Path) -> Iterator[tuple[IO[bytes], int]]:
    """A file, a URL given as a string, or "-", as one of the system's files, compressed as it is, and its size (0: not
    known)."""
    if str(file) == "-":
        with open(sys.stdin.fileno(), "rb", 0, closefd=False) as stream:
            yield stream, 0
    elif isinstance(file, Path):
        with file.open("rb", 0) as stream:
            yield stream, os.fstat(stream.fileno()).st_size
    else:
        import fsspec

        opened = fsspec.open(file, "rb")
        with opened as stream, _piped(stream) as pipe:
            yield pipe, opened.fs.size(opened.path) or 0


@contextmanager
def _piped(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """A pipe through which the bytes of a stream come. Raises OSError if they cannot be read, whatever else that
    leads to."""
    out, into = os.pipe()
    failed = list[Exception]()

    def copy() -> None:
        try:
            with suppress(BrokenPipeError), open(into, "wb", 0) as end:  # nobody needs the rest
                shutil.copyfileobj(stream, end)
        except Exception as error:  # every file system raises its own
            failed.append(error)

    def check() -> None:
        thread.join(_SECONDS_TO_END)
        if failed and isinstance(failed[0], OSError) and failed[0].errno:
            raise failed[0]
        if failed:
            raise OSError(EIO, str(failed[0]) or type(failed[0]).__name__) from failed[0]

    thread = Thread(target=copy, daemon=True)
    try:
        with open(out, "rb", 0) as pipe:
            thread.start()
            yield pipe
    except ValueError:  # the beginning of a file may seem damaged
        check()
        raise
    check()


def open_file(file: Path) -> IO[bytes]:
    """The bytes of a file (its suffix says how it is compressed), or of "-"."""
    if str(file) == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    opener = OPENERS.get(file.suffix)
    return file.open("rb") if opener is None else unpacked(opener(file, "rb"), file.stat().st_size)


@contextmanager
def create_lines(file: str) -> Iterator[IO[bytes]]:
    """A JSONL file to write, compressed as its suffix says and complete or absent, or standard output for "-".

    Raises InputError for another suffix, or a name that is not a plain file's.
    """
    if file == "-":
        with open(sys.stdout.fileno(), "wb", closefd=False) as stream:
            yield stream
        return
    final = Path(file)
    if format_of(final) != "jsonl":
        raise InputError(f"{file} does not end in .jsonl, .jsonl.gz, .jsonl.bz2 or .jsonl.xz; choose such a name")
    refuse_unless_plain(final)
    part = final.with_name(f"{final.stem}.{os.getpid()}.tmp{final.suffix}")
    try:
        with naming(final), OPENERS.get(final.suffix, Path.open)(part, "wb") as stream:
            yield stream
        fsync_path(part)
        part.replace(final)
        fsync_path(final.absolute().parent)
    except OSError as error:
        if error.filename and Path(error.filename) == part:
            error.filename = file
        raise
    finally:
        part.unlink(missing_ok=True)


def _items(records: Iterable[tuple[int, Any]], format: str, stem: str) -> Iterator[Item]:
    numbered: bool | None = None
    try:
        for line, record in records:
            try:
                if isinstance(record, ValueError):
                    raise record
                if not isinstance(record, (Mapping, Document)):
                    raise ValueError(f"the record is {kind_of(record)}, not an object")
                if numbered is None:
                    numbered = isinstance(record, Mapping) and _first(record, ID_FIELDS) is None
                number = f"{stem}-{line}" if numbered else None
                document = record if isinstance(record, Document) else _document(record, number)
                # With ids of their own, rows would be other documents, without vectors, after one was inserted before.
                if numbered and format in ("csv", "tsv") and isinstance(record, Mapping):
                    document = tables.placed(document, record, line)
                check_document(document)
            except (ValueError, RecursionError) as error:
                yield 0 if format in FILES else line, error
            else:
                yield 0 if format in FILES else line, document
    except Exception as error:
        why = f"cannot be read ({_reason(error)})" if isinstance(error, DAMAGE) else why_not(error)
        failed = ValueError(str(error) if isinstance(error, InputError) else why)
        failed.__cause__ = error
        yield 0, failed


def _apart(document: Document, file: str, name: str, owners: Owners) -> Document:
    """A document under an id that no other has. Raises ValueError if its own file has its id twice."""
    if owners.get(document.id, file) != file and document.id != name:
        document = with_file(document, name)
    if document.id in owners:
        first = "" if owners[document.id] == file else f", first in {owners[document.id]}"
        raise ValueError(f"id {brief(document.id)} occurs twice{first}")
    if len(owners) < _MOST_IDS:
        owners[document.id] = file
    return document


def with_file(document: Document, name: str) -> Document:
    """A record with its file's name in front of its id, which a record of another file has; warns of it."""
    warnings.warn(FileWarning(f"{name}: ids that another file has too become '{name}#ID'"), stacklevel=2)
    return replace(document, id=f"{name}#{document.id}")


def _document(record: Mapping[str, Any], number: str | None) -> Document:
    given = _first(record, ID_FIELDS)
    if (given is None) == (number is None):
        raise ValueError("no id" if given is None else "an id, although the file's first record has none")
    if number is None and (isinstance(given, bool) or not isinstance(given, (str, int))):
        raise ValueError(f"id is {kind_of(given)}, not a string")
    if "text" not in record:
        raise ValueError("no field 'text'")
    text = record["text"]
    if isinstance(text, list):
        if not all(isinstance(paragraph, str) for paragraph in text):
            raise ValueError("text is a list, but not only of strings")
        text = "".join(paragraph if paragraph.endswith("\n") else paragraph + "\n" for paragraph in text)
    metadata = {key: value for key, value in record.items() if key not in (*ID_FIELDS, *TITLE_FIELDS, "text")}
    if isinstance(metadata.get("metadata"), dict):
        metadata |= metadata.pop("metadata")
    return Document(number or str(given), _first(record, TITLE_FIELDS) or "", text, metadata)


def _first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _read_jsonl(stream: IO[bytes], name: str) -> Records:
    for number, line in enumerate(iter(partial(stream.readline, limits.RECORD + 1), b""), 1):
        if len(line) > limits.RECORD:
            why = f"a line of more than {limits.RECORD:,} bytes, at which reading ends; is it JSONL?"
            yield number, ValueError(why)
            return
        if line.isspace():
            continue
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if text.strip():
                yield number, json.loads(text)
        except UnicodeDecodeError as error:
            yield number, ValueError(f"not UTF-8 at byte {error.start}")
        except json.JSONDecodeError as error:
            yield number, ValueError(f"not JSON ({error.msg.removesuffix(' at')} at character {error.pos})")
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"not JSON that can be read ({error})")


def _read_parquet(stream: IO[bytes], name: str) -> Records:
    import pyarrow
    from pyarrow import parquet

    def plain(value: Any) -> Any:  # as JSON can represent it: dates and decimals become strings
        return value if isinstance(value, (str, int, type(None))) else json.loads(json.dumps(value, default=str))

    with TemporaryFile() as copy:
        if not stream.seekable():
            shutil.copyfileobj(stream, copy)
            stream = copy
        try:
            left = limits.unpacked_bytes(stream.seek(0, os.SEEK_END))
            for number, row in enumerate(_rows(parquet.ParquetFile(stream), left), 1):
                yield number, {key: plain(value) for key, value in row.items()}
        except pyarrow.ArrowMemoryError:
            raise
        except pyarrow.ArrowException:
            yield 0, ValueError("not a Parquet file, or damaged")


def _rows(table: Any, left: int) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file. Raises OSError if they have more than so many bytes."""
    for batch in table.iter_batches(batch_size=256):
        left -= batch.nbytes
        if left < 0:
            raise OSError(EFBIG, "its rows unpack to too much; split it")
        yield from batch.rename_columns(tables.distinct(batch.schema.names)).to_pylist()


def _read_text(stream: IO[bytes], name: str, format: str) -> Records:
    """A text as it is, with the lines that it has, or without its markup."""
    try:
        text, encoding = decode(whole(stream, limits.TEXT_BYTES))
        tell(name, encoding)
        yield 0, document_of(format, text, name, name, bare(Path(name)).stem)
    except ValueError as error:
        yield 0, error


def _read_parsed(stream: IO[bytes], name: str, format: str) -> Records:
    try:
        yield 0, document_of(format, whole(stream, limits.FILE_BYTES), name, name, bare(Path(name)).stem)
    except ValueError as error:
        yield 0, error


_READERS: dict[str, Reader] = {
    "jsonl": _read_jsonl,
    "csv": tables.read,
    "tsv": partial(tables.read, delimiter="\t"),
    "json": partial(json_files.read, jsonl=_read_jsonl),
    "parquet": _read_parquet,
    "mbox": mailboxes.read,
}
