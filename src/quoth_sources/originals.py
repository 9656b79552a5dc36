"""The files that documents were read from, below a folder: a document's id is the path of its file there.

Knows that no id leads out of the folder. Does not know documents.
"""

from contextlib import suppress
from pathlib import Path

from quoth_sources.errors import InputError, brief
from quoth_sources.files import DAMAGE, OPENERS


def path_of(folder: Path, name: str) -> Path:
    """The file of a document with this id. Raises InputError if there is none below the folder."""
    root = folder.resolve()
    with suppress(OSError, ValueError, RuntimeError):  # too long, no file name, links in a circle
        path = (root / name).resolve()
        if path.is_relative_to(root) and path.is_file():
            return path
    raise InputError(f"{brief(name)}: there is no such file below the folder of the files (--files)")


def original(folder: Path, name: str, most: int) -> bytes:
    """What is in the file of a document with this id, unpacked.

    Raises InputError if there is none below the folder, it cannot be read, or it has more than this many bytes.
    """
    path = path_of(folder, name)
    try:
        with OPENERS.get(path.suffix, Path.open)(path, "rb") as stream:
            content: bytes = stream.read(most + 1)
    except DAMAGE as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{brief(name)}: its file cannot be read ({why})") from None
    if len(content) > most:
        raise InputError(f"{brief(name)}: its file has more than {most:,} bytes, which is too large to show")
    return content
