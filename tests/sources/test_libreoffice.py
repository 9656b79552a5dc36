"""Documents that LibreOffice writes anew: by a program that does as LibreOffice is asked to, and by itself."""

import os
import shutil
import sys
import time
from errno import ENOSPC
from pathlib import Path

import pytest
from written import docx, read_in, xlsx

from quoth.corpus.documents import read_documents
from quoth.corpus.whole import document_of
from quoth.errors import InputError, RecordError
from quoth_sources import libreoffice
from quoth_sources.worker import Worker

_FAKE = """#!{python}
import os, pathlib, shutil, subprocess, sys, time
options = sys.argv[1:]
assert options[:2] == ["--headless", "--norestore"], options
profile = options[2].removeprefix("-env:UserInstallation=file://")
settings = pathlib.Path(profile, "user", "registrymodifications.xcu").read_text()
assert settings.count("<value>true</value>") == 2 and "BlockUntrustedRefererLinks" in settings
kind, folder, given = options[4], pathlib.Path(options[6]), pathlib.Path(options[7])
said = given.read_bytes()
if said == b"slow":
    pathlib.Path("{here}", "child").write_text(str(subprocess.Popen(["sleep", "60"]).pid))
    time.sleep(60)
elif said == b"killed":
    os.kill(os.getpid(), 9)
elif said != b"damaged":
    shutil.copy(pathlib.Path("{here}") / ("sample." + kind), folder / (given.stem + "." + kind))
"""


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose LibreOffice turns everything into the same document and the same workbook."""
    (tmp_path / "sample.docx").write_bytes(docx("Nairobi is the capital of Kenya."))
    (tmp_path / "sample.xlsx").write_bytes(xlsx(Trips=[("Place", "Since"), ("Kenya", 1963)]))
    (program := tmp_path / "bin" / "soffice").parent.mkdir()
    program.write_text(_FAKE.format(python=sys.executable, here=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return tmp_path


def folder_of(here: Path, **files: bytes) -> Path:
    (folder := here / "files").mkdir()
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder


def test_what_it_writes_is_read(office: Path) -> None:
    folder = folder_of(office, a_doc=b"x", b_rtf=b"x", c_xls=b"x", d_txt=b"Text.")
    texts = {document.id: document.text for document in read_documents(folder)}
    said = "Nairobi is the capital of Kenya."
    assert texts == {"a.doc": said, "b.rtf": said, "c.xls": "Trips\n\nPlace: Kenya | Since: 1963", "d.txt": "Text."}


def test_what_it_does_not_write_says_why(office: Path) -> None:
    with pytest.raises(InputError, match=r"a\.doc: LibreOffice cannot read it; is it damaged, or protected"):
        [*read_documents(folder_of(office, a_doc=b"damaged"))]


@pytest.mark.parametrize("content", [b"killed", b"no room", b"gone"])
def test_what_is_not_the_documents_fault_may_pass(
    office: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    def full(prefix: str) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC), f"/tmp/{prefix}1")

    if content == b"no room":
        monkeypatch.setattr(libreoffice, "TemporaryDirectory", full)
    if content == b"gone":
        monkeypatch.setenv("PATH", str(office))
    with pytest.raises(ValueError, match=r"ended from outside|No space left|No such file") as raised:
        document_of("doc", content, "a.doc", "a", "a")
    assert RecordError("a.doc", 0, "", "", raised.value).is_passing


def test_one_that_hangs_is_ended_with_what_it_started(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libreoffice, "_SECONDS", 3)
    with pytest.raises(ValueError, match="has not read it within 3 seconds"):
        libreoffice.read(b"slow", "doc")
    assert ends(int((office / "child").read_text()))


def ends(process: int) -> bool:
    """Whether a process that was sent SIGKILL is gone, or a zombie, within ten seconds."""
    for _ in range(200):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_without_it_they_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(libreoffice, "_ON_MACOS", "absent")
    folder = folder_of(tmp_path, a_doc=b"x", d_txt=b"Text.")
    with pytest.warns(match=r"left out 1 \.doc .*LibreOffice, if it is installed, reads \.doc; convert"):
        assert [document.id for document in read_documents(folder)] == ["d.txt"]
    with pytest.raises(InputError, match="LibreOffice, which reads these, is not installed; install it, or save the"):
        read_documents(folder / "a.doc")


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_libreoffice_itself() -> None:
    rich = rb"{\rtf1\ansi The capital of Kenya is {\b Nairobi}.\par Since 1907.}"
    with Worker() as worker:
        assert read_in(worker, "rtf", rich).text == "The capital of Kenya is Nairobi.\n\nSince 1907."
