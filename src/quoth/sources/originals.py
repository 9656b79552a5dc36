"""The files that documents were read from, below a folder: a document's id is the path of its file there.

Knows that no id leads out of the folder. Does not know documents.
"""

import lzma
import zlib
from pathlib import Path

from quoth.errors import InputError, brief
from quoth.sources.files import OPENERS


def original(folder: Path, name: str, most: int) -> bytes:
    """The content of the file of a document with this id, unpacked.

    Raises InputError if there is none below the folder, it cannot be read, or it has more than this many bytes.
    """
    root = folder.resolve()
    try:
        path = (root / name).resolve()
        if not (path.is_relative_to(root) and path.is_file()):
            raise InputError(f"{brief(name)}: there is no such file below the folder of the files (--files)")
        with OPENERS.get(path.suffix, Path.open)(path, "rb") as stream:
            content: bytes = stream.read(most + 1)
    except (OSError, EOFError, ValueError, RuntimeError, lzma.LZMAError, zlib.error) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{brief(name)}: its file cannot be read ({why})") from None
    if len(content) > most:
        raise InputError(f"{brief(name)}: its file has more than {most:,} bytes; that is too large to show")
    return content
