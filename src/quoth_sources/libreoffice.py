"""Documents of Office before 2007, and rich text: LibreOffice, if it is installed, writes them anew, and that is read.

Knows where LibreOffice is and how it is asked: without macros, and without loading what a document links to. Does not
know what is in a document; places are those of the file that LibreOffice writes.
"""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from errno import EINTR
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from quoth_sources.formats import WRITES
from quoth_sources.source import Source

_SECONDS = 240
"""Less than a worker may take, so that no LibreOffice outlives one."""
_ON_MACOS = "/Applications/LibreOffice.app/Contents/MacOS/soffice"
_SETTING = (
    '<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="{}" oor:op="fuse"><value>true'
    "</value></prop></item>"
)
_SETTINGS = (
    '<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    f"{_SETTING.format('DisableMacrosExecution')}{_SETTING.format('BlockUntrustedRefererLinks')}</oor:items>"
)


def program() -> str | None:
    """Where LibreOffice is; None if it is not installed."""
    return shutil.which("soffice") or shutil.which("libreoffice") or shutil.which(_ON_MACOS)


def read(content: bytes, format: str) -> Source:
    """The text of a document in one of these formats. Raises ValueError if LibreOffice cannot read it; from an OSError,
    by which a retry may succeed, if the document is not to blame."""
    try:
        with TemporaryDirectory(prefix="quoth-office-") as name:
            written = _written_anew(content, format, Path(name))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise ValueError(f"LibreOffice cannot be run ({error.strerror}{where})") from error
    source: Source = import_module(f"quoth_sources.{WRITES[format]}").read(written)
    return source


def _written_anew(content: bytes, format: str, folder: Path) -> bytes:
    (given := folder / f"given.{format}").write_bytes(content)
    (folder / "profile" / "user").mkdir(parents=True)
    (folder / "profile" / "user" / "registrymodifications.xcu").write_text(_SETTINGS, encoding="utf-8")
    ended = _convert([f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--convert-to", WRITES[format]], given)
    if (made := given.with_suffix(f".{WRITES[format]}")).is_file():
        return made.read_bytes()
    if abs(ended) % 128 in (signal.SIGKILL, signal.SIGTERM):
        why = "LibreOffice was ended from outside (is there enough memory?); try again"
        raise ValueError(why) from InterruptedError(EINTR, f"exit status {ended}")
    raise ValueError("LibreOffice cannot read it; is it damaged, or protected by a password?")


def _convert(options: list[str], file: Path) -> int:
    """How LibreOffice ended: an exit status, which is 128 more than a signal where its shell tells of one."""
    command = [program() or "soffice", "--headless", "--norestore", *options, "--outdir", str(file.parent), str(file)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True) as process:
        try:
            return process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            why = f"LibreOffice has not read it within {_SECONDS} seconds; split it"
            raise ValueError(why) from TimeoutError()
        finally:
            with suppress(ProcessLookupError):  # it is gone
                os.killpg(process.pid, signal.SIGKILL)
