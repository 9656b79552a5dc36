"""Source maps in a corpus: kept by every write, cut to passages, found damaged, absent from corpora without any."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import commands
import quoth
from quoth import Corpus, Document
from quoth.corpus import rebuild as rebuild_module
from quoth.corpus import repair as repair_module
from quoth.corpus.repair import verify
from quoth.corpus.segment import PLACES, Parts
from quoth.errors import CorruptionError, InputError
from quoth.records import Likelihood, PassageShare
from quoth_sources.source_map import Run, encode, locate, runs_of


def mapped(name: str, words: int, every: int = 1, first: int = 1) -> Document:
    """A document of numbered words, each in a line of its own number, every so many of them."""
    text, runs = "", list[Run]()
    for number in range(first, first + words):
        if number % every == 0:
            runs.append((len(text), len(text) + len(f"word{number}"), number))
        text += f"word{number} "
    return Document(name, name.upper(), text, {}, encode("line", runs))


def check(corpus: Corpus, documents: list[Document]) -> None:
    """All documents have their maps, and each passage what the whole map says of it."""
    assert {each.id: each for each in corpus.documents()} == {each.id: each for each in documents}
    maps = {each.id: each.source_map for each in documents}
    for passage in corpus.passages():
        whole = maps[passage.document_id]
        assert passage.locate() == locate(whole, passage.start, passage.end)
        inside = runs_of(whole, passage.start, passage.end)[1]
        assert runs_of(passage.source_map, passage.start, passage.end)[1] == inside


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 1500), st.integers(1, 400)), min_size=1, max_size=4))
def test_every_write_keeps_the_maps(tmp_path: Path, drawn: list[tuple[int, int]]) -> None:
    shutil.rmtree(tmp_path / "c.quoth", ignore_errors=True)
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:20")
    documents = [mapped(f"d{n}", words, every) for n, (words, every) in enumerate(drawn)]
    plain = Document("plain", "", "No map.")
    corpus.add([documents[0], plain])
    for each in documents[1:]:
        corpus.add([each])
    check(corpus, [*documents, plain])
    changed = mapped("d0", 30, first=500)
    assert corpus.replace([changed, plain]) == 1
    assert corpus.replace([changed]) == 0
    corpus.compact()
    corpus.verify()
    check(Corpus.open(corpus.path), [changed, *documents[1:], plain])


def test_another_map_is_another_document(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    document = mapped("a", 10)
    corpus.add([document])
    moved = replace(document, source_map=encode("line", [(0, 4, 99)]))
    assert corpus.replace([moved]) == 1
    assert corpus.document("a") == moved
    assert corpus.replace([replace(document, source_map=b"")]) == 1
    assert corpus.passage(corpus.rows_of("a")[0]).locate() is None


def test_a_corpus_without_maps_has_no_file_of_them(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("a", "", "Words.")])
    assert not list(corpus.path.rglob("places.*"))
    assert corpus.passage(0).locate() is None
    hit = quoth.Hit(corpus.passage(0), 1.0)
    assert "location" not in hit.to_dict()


@pytest.mark.parametrize("wrong", [b"x", encode("line", [(0, 9, 1)])])
def test_a_map_that_does_not_fit_is_refused(tmp_path: Path, wrong: bytes) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    with pytest.raises(InputError, match="source map"):
        corpus.add([Document("a", "", "Words.", {}, wrong)])


def test_damage_is_found_and_other_files_are_rebuilt_with_the_maps(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:20")
    documents = [mapped("a", 700), Document("b", "", "No map.")]
    corpus.add(documents)
    [segment] = (corpus.path / "segments").iterdir()
    for name in ("documents.npy", "passages.npy", "checks.npy", "ids.npy"):
        (segment / name).write_bytes(b"damaged")
        assert Corpus.repair(corpus.path).lost == [], name
        verify(corpus.path)
        check(Corpus.open(corpus.path), documents)


def flip(file: Path, at: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(len(content) * at)] ^= 1
    file.write_bytes(content)


def test_a_damaged_byte_is_found_in_the_maps_that_have_it(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:20")
    corpus.add([mapped("a", 700), Document("b", "", "No map.")])
    [segment] = (corpus.path / "segments").iterdir()
    flip(segment / PLACES, 0.5)
    places, damaged = Parts(segment / PLACES), 0
    for number in range(2 + corpus.num_passages):
        try:
            places.part(number)
        except ValueError:
            damaged += 1
    assert 2 <= damaged < corpus.num_passages  # the document's map, and the passages that have the byte


LOST = {
    "a byte of the first map": (lambda folder: flip(folder / PLACES, 0.25), "a", r"places\.bin"),
    "a byte of the last map": (lambda folder: flip(folder / PLACES, 0.9), "c", r"places\.bin"),
    "a row of the table": (lambda folder: flip(folder / "places.npy", 0.95), "", r"places\.npy"),
    "the table": (lambda folder: (folder / "places.npy").write_bytes(b"damaged"), "abc", r"places\.npy"),
    "the maps": (lambda folder: (folder / PLACES).unlink(), "abc", r"places\.bin"),
    "a byte, and other files": (
        lambda folder: (flip(folder / PLACES, 0.25), (folder / "ids.npy").unlink()),
        "a",
        r"ids\.npy|places\.bin",
    ),
}
"""What damages a segment, the documents that lose their maps, and the file that is named."""


@pytest.mark.parametrize("what", LOST)
@pytest.mark.parametrize("is_killed", [False, True])
def test_damaged_maps_are_lost_and_nothing_else(
    tmp_path: Path, what: str, is_killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="words:20")
    documents = [mapped("a", 300), Document("b", "", "No map."), mapped("c", 400)]
    corpus.add(documents)
    passages = [(each.document_id, each.text) for each in corpus.passages()]
    [segment] = (corpus.path / "segments").iterdir()
    damage, lost, named = LOST[what]
    damage(segment)
    for opened in (verify, Corpus.open):
        with pytest.raises(CorruptionError, match=named):
            opened(corpus.path)
    if is_killed:
        with monkeypatch.context() as killed:
            for module in (repair_module, rebuild_module):
                killed.setattr(module, "publish_directory", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                Corpus.repair(corpus.path)
    done = Corpus.repair(corpus.path)
    assert bool(done.dropped) == (bool(lost) and not is_killed)
    for told in done.dropped:
        assert f"places of {len(lost)} documents are lost" in told
        assert all(f"'{name}'" in told for name in lost)
    assert not done.lost
    verify(corpus.path)
    again = Corpus.open(corpus.path)
    assert [(each.document_id, each.text) for each in again.passages()] == passages
    kept = [each if each.id not in lost else replace(each, source_map=b"") for each in documents]
    check(again, kept)
    assert again.replace(documents) == len(set(lost) - {"b"})
    check(again, documents)


def test_json_has_locations_and_no_bytes(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([mapped("a", 5, first=7)])
    passage = corpus.passage(0)
    assert json.loads(json.dumps(quoth.Hit(passage, 1.0).to_dict()))["location"] == {"line": 7}
    found = quoth.verify_quote(corpus, "word9 word10")
    place = json.loads(json.dumps(found.to_dict()))["places"][0]
    assert (place["location"], "source_map" in place) == ({"line": 9}, False)
    told = found.places[0].locate()
    assert told is not None
    assert (told.line, told.page) == (9, None)
    shared = Likelihood("x", ("x",), -1.0, (PassageShare(passage, "c", -1.0, -1.0, 1.0),))
    assert json.loads(json.dumps(shared.to_dict()))["passages"][0]["passage"]["location"] == {"line": 7}


@pytest.mark.filterwarnings("default")
def test_the_command_line_names_the_place_and_what_is_left_out(tmp_path: Path, run: commands.Run) -> None:
    from written import docx, lines, pdf, xlsx

    (tmp_path / "files").mkdir()
    for name, content in {
        "a.pdf": pdf(lines("Nothing here."), lines("The capital of Kenya is Nairobi.")),
        "b.xlsx": xlsx(S=[("Country", "Capital"), ("Uganda", "Kampala")]),
        "c.docx": docx("The capital of Ghana is Accra."),
        "d.unknown": b"?",
    }.items():
        (tmp_path / "files" / name).write_bytes(content)
    code, out, err = run("index", tmp_path / "files", "-o", tmp_path / "c.quoth")
    assert (code, "3 documents" in out) == (0, True)
    assert err.startswith(f"quoth: left out 1 .unknown of {tmp_path / 'files'} (d.unknown): only .jsonl")
    assert "a.pdf · page 1 · characters" in run("search", tmp_path / "c.quoth", "Nairobi")[1]
    [hit] = map(json.loads, run("search", tmp_path / "c.quoth", "Kampala", "--json", "-k", "1")[1].splitlines())
    assert hit["location"] == {"sheet": "S", "cell": "A2"}
    (tmp_path / "files" / "c.docx").unlink()
    args = ("replace", tmp_path / "c.quoth", tmp_path / "files", "--delete-missing")
    assert "replaced 0, new 0, unchanged 2, deleted 1" in run(*args)[2]
    [page, *rest] = quoth.verify_quote(Corpus.open(tmp_path / "c.quoth"), "Nairobi").places
    assert ((page.locate() or page).page, rest) == (2, [])  # type: ignore[union-attr]
