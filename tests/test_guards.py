"""What must stay the same while the code moves: names, signatures, HTTP, keys, predictions, files of earlier versions.

Only public things are named here, so that these tests need no change when modules do.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_overloads

import pytest

import quoth
from commands import Run
from golden_files import OLD, check_text, check_values

SAMPLES = Path(__file__).parents[1] / "samples"
DOCUMENTS = ("carmen", "georges-bizet", "france", "starry-night", "van-gogh", "kazakhstan", "astana", "great-wave")
BLANKS = ["The composer of the opera Carmen is [MASK].", "The president of France is [MASK]."]
QUESTIONS = ["Who painted The Starry Night?", "Who discovered penicillin?"]
LABELS = {"music": ["opera", "music"], "painting": ["painting", "picture"]}
TEXT = "He made many canvases of cypresses and stars."


def test_public_names_signatures_and_summaries() -> None:
    lines = [line for name in sorted(quoth.__all__) for line in _told(name, getattr(quoth, name))]
    check_text("surface.txt", "\n".join(lines) + "\n")


def _told(name: str, value: Any) -> Iterator[str]:
    """A public thing and its public members, a line each, and the first line of each docstring."""
    if inspect.ismodule(value):
        for each in sorted(vars(value).items()):
            if inspect.isclass(each[1]) and each[1].__module__.startswith("quoth"):
                yield f"{name}.{each[0]}({', '.join(base.__name__ for base in each[1].__bases__)}){_summary(each[1])}"
    elif inspect.isclass(value):
        yield f"{name}{_signature(value)}{_summary(value)}"
        for member in dir(value):
            owner = next(each for each in value.__mro__ if member in vars(each)) if member[0] != "_" else object
            found = inspect.getattr_static(value, member)
            if owner.__module__.startswith("quoth") and not inspect.ismemberdescriptor(found):
                yield from (f"    {line}" for line in _told(member, found))
    elif isinstance(value, property):
        annotation = inspect.formatannotation(inspect.signature(value.fget).return_annotation)
        yield f"{name}: {_plain(annotation)}{_summary(value)}"
    elif isinstance(value, (classmethod, staticmethod)):
        yield from (f"{type(value).__name__} {line}" for line in _told(name, value.__func__))
    elif callable(value):
        yield f"{name}{_signature(value)}{_summary(value)}"
        yield from (f"    or {name}{_signature(each)}" for each in get_overloads(value))
    elif name != "__version__":
        yield f"{name}: {type(value).__name__}"


def _signature(value: Any) -> str:
    try:
        return _plain(str(inspect.signature(value)))
    except ValueError:  # as for an exception of C
        return "(…)"


def _plain(told: str) -> str:
    """Types without their modules and quotation marks, which differ with how a module spells them."""
    return re.sub(r"\b([a-z_]\w*\.)+(?=[A-Za-z])|['\"]", "", told)


def _summary(value: Any) -> str:
    return f"  # {(inspect.getdoc(value) or '').partition(chr(10))[0]}"


def test_the_http_interface(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uvicorn, client = pytest.importorskip("uvicorn"), pytest.importorskip("fastapi.testclient")
    documents: list[dict[str, Any]] = []

    def asked(server: Any, *_: Any, **__: Any) -> None:
        application = client.TestClient(server.config.app, base_url="http://localhost")
        documents.append(application.get("/v1/openapi.json").json())

    monkeypatch.setattr(uvicorn.Server, "run", asked)
    old = _old(tmp_path)
    models = [
        old / "npm",
        "--files",
        old,
        "--reader",
        old / "reader",
        "--search",
        old / "realm",
        "--base",
        old / "base",
    ]
    code, _, err = run("serve", old / "corpus.quoth", "--port", 0, "--model", *models)
    assert code == 0, err
    (document,) = documents
    document["info"].pop("version")
    check_text("openapi.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> quoth.Corpus:
    records = map(json.loads, (SAMPLES / "atlas-2016.jsonl").read_text(encoding="utf-8").splitlines())
    corpus = quoth.Corpus.create(tmp_path_factory.mktemp("guards") / "atlas.quoth")
    corpus.add(quoth.Document(**each) for each in records if each["id"] in DOCUMENTS)
    return corpus


def _answers(answers: Sequence[Any]) -> list[Any]:
    """The answers to several texts: what is said, how likely, and where."""
    return [
        [
            [each.text, each.status, each.probability, each.num_places, [_place(place) for place in each.evidence]]
            for each in predictions
        ]
        for predictions in answers
    ]


def _place(place: quoth.Evidence) -> list[Any]:
    return [place.document_id, place.start, place.end, place.score, place.context_start, len(place.context)]


def _hits(hits: Sequence[quoth.Hit]) -> list[Any]:
    return [
        [each.passage.document_id, each.passage.start, each.passage.end, each.score]
        + [[match.query, match.text, match.start, match.end, match.similarity] for match in each.matches]
        for each in hits
    ]


def _keys(corpus: quoth.Corpus, model: Any) -> dict[str, Any]:
    """A model's fingerprint and where a corpus stores its keys."""
    model.embed()
    store = corpus.path / "keys" / model.fingerprint[:16]
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(store.glob("*/table.json"))]
    assert facts
    return {"fingerprint": model.fingerprint, "tables": facts}


def test_quoth_mini(atlas: quoth.Corpus) -> None:
    npm = quoth.load("quoth-mini", atlas, device="cpu")
    keys = _keys(atlas, npm)
    few: dict[str, Any] = {"top_k": 2, "max_evidence": 2}
    check_values(
        "predictions.json",
        {
            "quoth-mini": keys,
            "quoth-mini, fill": _answers(npm.fill(BLANKS, **few)),
            "quoth-mini, fill, read 0": _answers(npm.fill(BLANKS, read=0, **few)),
            "quoth-mini, fill, read 0, k 64, 1 passage, sum": _answers(
                npm.fill(BLANKS, read=0, k=64, passages=1, combine="sum", **few)
            ),
            "quoth-mini, fill, read 0, every token": _answers(npm.fill(BLANKS, read=0, passages=None, **few)),
            "quoth-mini, fill, read 0, hybrid": _answers(npm.fill(BLANKS, read=0, passage_share=0.33, **few)),
            "quoth-mini, ask, read 2": _answers(npm.ask(QUESTIONS, read=2, **few)),
            "quoth-mini, classify": [[each.text, each.probability] for each in npm.classify(TEXT, LABELS)],
            **{f"quoth-mini, search, {mode}": _hits(npm.search(QUESTIONS[0], 3, mode=mode)) for mode in MODES},
        },
    )


MODES: tuple[Any, ...] = ("bm25", "dense", "hybrid")


def test_quoth_mini_single(atlas: quoth.Corpus) -> None:
    npm = quoth.load("quoth-mini-single", atlas, device="cpu")
    found = _answers(npm.fill(BLANKS, top_k=2, max_evidence=2))
    check_values("predictions.json", {"quoth-mini-single": npm.fingerprint, "quoth-mini-single, fill": found})


def test_quoth_reader(atlas: quoth.Corpus) -> None:
    reader = quoth.load("quoth-reader", atlas, device="cpu")
    few: dict[str, Any] = {"top_k": 2, "passages": 3}
    asked = {"ask": _answers(reader.ask(QUESTIONS, **few)), "fill": _answers(reader.fill(BLANKS[:1], **few))}
    check_values("predictions.json", {f"quoth-reader, {name}": found for name, found in asked.items()})


def test_quoth_realm(atlas: quoth.Corpus) -> None:
    realm = quoth.load("quoth-realm", atlas, device="cpu")
    keys = _keys(atlas, realm)
    found = {f"quoth-realm, search, {mode}": _hits(realm.search(QUESTIONS[0], 3, mode=mode)) for mode in MODES}
    asked = _answers(realm.ask(QUESTIONS, top_k=2, passages=3))
    check_values("predictions.json", {"quoth-realm": keys, "quoth-realm, ask": asked, **found})


def test_quoth_zero_ner(atlas: quoth.Corpus) -> None:
    model = quoth.load("quoth-zero-ner", atlas, device="cpu")
    keys, found = _keys(atlas, model), _hits(model.search(QUESTIONS[0], 3))
    check_values("predictions.json", {"quoth-zero-ner": keys, "quoth-zero-ner, search": found})


def _old(folder: Path) -> Path:
    """The files of an earlier version, in a folder that may be written to."""
    shutil.copytree(OLD, folder / "old")
    (folder / "old" / "corpus").rename(folder / "old" / "corpus.quoth")
    return folder / "old"


def test_files_of_an_earlier_version(tmp_path: Path) -> None:
    old = _old(tmp_path)
    corpus = quoth.Corpus.open(old / "corpus.quoth")
    added = map(json.loads, (old / "documents.jsonl").read_text(encoding="utf-8").splitlines())
    assert list(corpus.documents()) == [quoth.Document(**each) for each in added]
    blank, question = "[MASK] is the capital of France.", "Where was Ann Lee born?"
    npm = quoth.load(old / "npm", corpus, base=old / "base")
    whole, reader = quoth.load(old / "base", corpus), quoth.load(old / "reader", corpus)
    realm = quoth.load(old / "realm", corpus)
    stored = {each.name for each in (corpus.path / "keys").iterdir()}
    assert stored == {model.fingerprint[:16] for model in (npm, realm)}
    check_values(
        "predictions.json",
        {
            "old npm, every token": _answers([npm.fill(blank, passages=None, top_k=3)]),
            "old npm, its base": _answers([whole.fill(blank, top_k=3)]),
            "old reader": _answers([reader.ask(question, top_k=3)]),
            "old realm": _answers([realm.ask(question, top_k=3)]),
            "old realm, search": _hits(realm.search(question, 3, mode="dense")),
        },
    )
    assert corpus.snapshot == 2
    corpus.delete(["raven"])
    assert npm.fill(blank, passages=None)
