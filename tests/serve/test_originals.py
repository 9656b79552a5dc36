"""Pages and files of documents over HTTP: what is shown, and that nothing else below or outside of the folder is."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import quoth

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("pypdfium2")

from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from starlette.testclient import TestClient
from written import lines, pdf, xlsx

from quoth_serve.app import create_app
from quoth_serve.limits import Limits
from quoth_serve.security import HEADERS, Access
from quoth_sources.marks import YELLOW

SECRET = b"%PDF-1.7 not a document of the corpus"
PAGES = pdf(lines("One."), lines("The capital of Uganda is Kampala."))
HERE = Access(hosts=("testserver",))
Get = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "two.pdf").write_bytes(PAGES)
    (folder / "z.pdf.gz").write_bytes(gzip.compress(PAGES))
    (folder / "s.xlsx").write_bytes(xlsx(S=[["Kampala"]]))
    (folder / "n.txt").write_text("Kampala")
    return folder


@pytest.fixture
def corpus(tmp_path: Path, folder: Path) -> quoth.Corpus:
    """A corpus of the folder, and of documents whose ids are names of files that were never read."""
    (tmp_path / "secret.pdf").write_bytes(SECRET)
    corpus = quoth.Corpus.create(tmp_path / "r.quoth")
    corpus.add(quoth.read_documents(folder))
    corpus.add(quoth.Document(each, "T", "Kampala") for each in ("later.pdf", "../secret.pdf"))
    (folder / "later.pdf").write_bytes(SECRET)
    (folder / "private.pdf").write_bytes(SECRET)
    return corpus


@pytest.fixture
def start(corpus: quoth.Corpus, folder: Path) -> Iterator[Callable[..., Get]]:
    opened = ExitStack()

    def call(files: Path | None = folder, limits: Limits | None = None, access: Access = HERE) -> Get:
        backend: Any = SimpleNamespace(
            folders={},
            view=lambda name=None, snapshot=None, where=None: SimpleNamespace(corpora=[corpus], asks=quoth.Reader),
            snapshots=lambda corpus: [],
            describe=lambda: {"models": {}, "modes": []},
            refresh=lambda: False,
        )
        client = TestClient(create_app(backend, limits, access, files=files), raise_server_exceptions=False)
        opened.enter_context(client)
        return lambda path, **given: client.get(f"/v1/{path}", params=given)

    with opened:
        yield call


def place(corpus: quoth.Corpus, name: str, phrase: str = "Kampala") -> dict[str, Any]:
    start = corpus.document(name).text.index(phrase)
    return {"id": name, "start": start, "end": start + len(phrase)}


@pytest.mark.parametrize("name", ["a/two.pdf", "z.pdf.gz"])
def test_the_page_with_the_phrase_marked(name: str, corpus: quoth.Corpus, start: Callable[..., Get]) -> None:
    get = start()
    reply = get("documents/page", **place(corpus, name), width=595)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
    assert {each: reply.headers[each] for each in HEADERS} == HEADERS
    assert reply.headers["cache-control"] == "no-store"
    image = Image.open(io.BytesIO(reply.content)).convert("RGB")
    assert image.size == (595, 842)
    assert image.getcolors(99999)
    assert YELLOW in {colour for _, colour in image.getcolors(99999)}
    other = get("documents/page", **place(corpus, name, "One"))
    assert Image.open(io.BytesIO(other.content)).width == 1000
    assert get("corpus").json()["files"]


def test_the_file_is_saved_not_opened(corpus: quoth.Corpus, start: Callable[..., Get]) -> None:
    reply = start()("documents/file", id="a/two.pdf")
    assert (reply.status_code, reply.content) == (200, PAGES)
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"] == "attachment; filename*=UTF-8''two.pdf"
    assert reply.headers["content-length"] == str(len(PAGES))
    assert {each: reply.headers[each] for each in HEADERS} == HEADERS


def test_a_text_has_a_file_but_no_page(start: Callable[..., Get]) -> None:
    get = start()
    assert get("documents/file", id="n.txt").content == b"Kampala"
    assert "not on a page of a PDF" in get("documents/page", id="n.txt", start=0, end=1).json()["detail"]


def test_without_files_there_are_no_such_routes(corpus: quoth.Corpus, start: Callable[..., Get]) -> None:
    get = start(None)
    assert get("documents/page", **place(corpus, "a/two.pdf")).status_code == 404
    assert get("documents/file", id="a/two.pdf").status_code == 404
    assert not get("corpus").json()["files"]


@pytest.mark.parametrize(
    ("name", "status", "why"),
    [
        ("private.pdf", 404, "document"),
        ("a/../a/two.pdf", 404, "document"),
        ("/etc/passwd", 404, "document"),
        ("\0", 404, "document"),
        ("../secret.pdf", 400, "was not read from a file of its own"),
        ("later.pdf", 400, "was not read from a file of its own"),
    ],
)
def test_only_files_that_were_read_are_shown(name: str, status: int, why: str, start: Callable[..., Get]) -> None:
    get = start()
    for reply in (get("documents/file", id=name), get("documents/page", id=name, start=0, end=1)):
        assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json")
        assert why in reply.json()["detail"]
        assert SECRET not in reply.content


def test_a_file_that_is_gone_or_another_one_now(
    corpus: quoth.Corpus, folder: Path, tmp_path: Path, start: Callable[..., Get]
) -> None:
    get, file, asked = start(), folder / "a" / "two.pdf", place(corpus, "a/two.pdf")

    def refused(why: str, path: str = "documents/page", **given: Any) -> None:
        reply = get(path, **given)
        assert (reply.status_code, why in reply.json()["detail"]) == (400, True), reply.text
        assert str(tmp_path) not in reply.text
        assert SECRET not in reply.content

    refused("not on a page of a PDF; ask for its text", **place(corpus, "s.xlsx"))
    file.write_bytes(pdf(lines("One."), lines("Nairobi is elsewhere, by the sea.")))
    refused("page 2 has other words where the answer was: it is not the file that was read", **asked)
    file.write_bytes(pdf(lines("secret"), encrypt=StandardEncryption("key")))
    refused("it is encrypted", **asked)
    file.write_bytes(SECRET)
    refused("not a PDF", **asked)
    file.unlink()
    refused("no such file below the folder", **asked)
    refused("no such file below the folder", "documents/file", id="a/two.pdf")
    file.symlink_to(tmp_path / "secret.pdf")
    refused("no such file below the folder", **asked)
    refused("no such file below the folder", "documents/file", id="a/two.pdf")


def test_limits_and_the_token(corpus: quoth.Corpus, start: Callable[..., Get]) -> None:
    asked = place(corpus, "a/two.pdf")
    get = start(limits=Limits(text=50, file=100))
    wrong = (
        {"width": 99},
        {"width": 2001},
        {"start": -1},
        {"end": asked["start"]},
        {"start": 0, "end": 51},
        {"page": 1},
    )
    for each in wrong:
        reply = get("documents/page", **asked | each)
        assert reply.status_code == 422, (each, reply.text)
    reply = get("documents/page", **asked)
    assert (reply.status_code, "more than 100 bytes" in reply.json()["detail"]) == (400, True)
    closed = start(access=Access("correct horse", hosts=("testserver",)))
    assert closed("documents/page", **asked).status_code == 401
    assert closed("documents/file", id="a/two.pdf").status_code == 401
