"""Whatever a request holds: no 5xx, and every reply is as the service's own description says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quoth

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("schemathesis", reason="pip install schemathesis, to try requests of any shape")

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks
from test_service import documents
from test_span_reader import make_reader
from written import lines, pdf

from quoth_serve.app import create_app
from quoth_serve.library import Library, Models
from quoth_serve.security import Access
from tiny import tiny_npm

pytestmark = pytest.mark.filterwarnings("ignore")
HEADERS = {"Authorization": "Bearer correct horse"}
EXAMPLES = int(os.environ.get("QUOTH_TEST_REQUESTS", "10"))
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Any]:
    """An application of its own: one that was shut down answers nothing."""
    folder = tmp_path
    corpus = quoth.Corpus.create(folder / "notes.quoth")
    corpus.add(documents())
    (folder / "0").write_bytes(pdf(lines("Words on a page.")))  # an id that is tried
    corpus.add(quoth.read_documents(folder / "0", format="pdf"))
    npm = quoth.NPM.from_pretrained(tiny_npm(folder / "tiny"))
    library = Library(Models(npm, quoth.Reader(make_reader(folder / "b", max_tokens=128))), [corpus.path])
    app = create_app(library, access=Access("correct horse", True, ()), files=folder)
    yield schemathesis.openapi.from_asgi("/v1/openapi.json", app, headers=HEADERS)
    app.state.service.queue.close()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=str)
def test_any_request_is_answered_as_described(api: Any, mode: GenerationMode) -> None:
    """Those that fit the description, and those that do not."""
    tried = []
    for found in api.get_all_operations():
        operation = found.ok()
        tried.append(f"{operation.method.upper()} {operation.path}")
        needs_input = operation.body or operation.query
        if mode is GenerationMode.NEGATIVE and not needs_input:
            continue

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered(case: Any) -> None:
            case.call_and_validate(headers=HEADERS, checks=CHECKS)

        answered()
    assert {"POST /v1/fill", "POST /v1/verify", "PUT /v1/documents", "GET /metrics", "GET /v1/documents/page"} <= {
        *tried
    }
