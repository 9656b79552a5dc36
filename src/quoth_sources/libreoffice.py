"""Documents of Office before 2007, and rich text: LibreOffice, if it is installed, writes them anew, and that is read.

Knows where LibreOffice is and how it is asked: without macros, and without loading what a document links to. Does not
know what is in a document; places are those of the file that LibreOffice writes.
"""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from functools import cache
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


@cache
def program() -> str | None:
    """Where LibreOffice is; None if it is not installed."""
    return shutil.which("soffice") or shutil.which("libreoffice") or shutil.which(_ON_MACOS)


def read(content: bytes, format: str) -> Source:
    """The text of a document in one of these formats. Raises ValueError if LibreOffice cannot read it."""
    with TemporaryDirectory(prefix="quoth-office-") as name:
        folder = Path(name)
        (given := folder / f"given.{format}").write_bytes(content)
        (folder / "profile" / "user").mkdir(parents=True)
        (folder / "profile" / "user" / "registrymodifications.xcu").write_text(_SETTINGS, encoding="utf-8")
        _convert([f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--convert-to", WRITES[format]], given)
        if not (made := given.with_suffix(f".{WRITES[format]}")).is_file():
            raise ValueError("LibreOffice cannot read it; is it damaged, or protected by a password?")
        source: Source = import_module(f"quoth_sources.{WRITES[format]}").read(made.read_bytes())
        return source


def _convert(options: list[str], file: Path) -> None:
    command = [program() or "soffice", "--headless", "--norestore", *options, "--outdir", str(file.parent), str(file)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True) as process:
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            why = f"LibreOffice has not read it within {_SECONDS} seconds; split it"
            raise ValueError(why) from TimeoutError()
        finally:
            with suppress(ProcessLookupError):  # it is gone
                os.killpg(process.pid, signal.SIGKILL)
