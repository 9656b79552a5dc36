"""Stored vectors follow their passages, whatever a program imports before it merges segments, wherever it is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quoth import NPM, Corpus
from quoth.corpus import writer as writer_module
from quoth.corpus.moves import read_moves
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import CorruptionError
from quoth.hub import locate
from quoth.index import codes
from quoth.index.key_store import MARKERS, KeyStore, absent_passages, files_of, follow, is_sound, made_files, stores
from quoth.index.tables import KeyTables
from quoth.index.vectors import KeyVectors
from quoth.npm.config import NPMConfig
from quoth.records import Document
from quoth_ray.remote import TEXT as TEXT_FILES
from quoth_ray.remote import RemoteFolder
from tiny import TEXT, tiny_bert

QUERY = "Paris is the [MASK] of France."
Vectors = dict[tuple[str, int, int], list[float]]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> TokenEncoder:
    return TokenEncoder.load(locate(str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert")), NPMConfig))


@pytest.fixture
def corpus(tmp_path: Path, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """Six documents in three segments, embedded, with codes where there are 30 tokens; d0 and d5 are deleted."""
    monkeypatch.setattr(codes, "FLAT_FROM", 30)
    corpus = Corpus.create(tmp_path / "c.quoth", splitter="fixed:5")
    for numbers in ((0, 1), (2, 3, 5), (4,)):
        corpus.add([Document(f"d{number}", "", TEXT[number]) for number in numbers])
    KeyTables(corpus, encoder).build("fp32")
    corpus.delete(["d0", "d5"])
    return corpus


def vectors(corpus: Corpus, encoder: TokenEncoder) -> Vectors:
    """Every live token's vector, by its place in its document; no place comes twice."""
    found: Vectors = {}
    tables, late = KeyTables(corpus, encoder).open()
    assert late == []
    for keys in tables:
        assert isinstance(keys.vectors, KeyVectors)
        live_P = np.ones(len(keys.passage_rows_P), np.bool_) if keys.live_P is None else keys.live_P
        for p in np.flatnonzero(live_P).tolist():
            passage = corpus.passage(int(keys.passage_rows_P[p]))
            for row in range(int(keys.offsets_P1[p]), int(keys.offsets_P1[p + 1])):
                place = (passage.document_id, int(keys.start_N[row]), int(keys.end_N[row]))
                assert passage.start <= place[1] <= place[2] <= passage.end
                assert place not in found
                found[place] = keys.vectors.floats(np.array([row]))[0].tolist()
    return found


def names(corpus: Corpus, encoder: TokenEncoder) -> set[str]:
    folder = KeyTables(corpus, encoder).folder
    return {path.name for path in folder.iterdir() if path.is_dir() and path.name != "settings"}


COMPACT = """
import os, signal, sys
from quoth.corpus import corpus, writer
def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2]:
    setattr(writer, sys.argv[2], kill)
corpus.Corpus.open(sys.argv[1]).compact()
assert not [name for name in sys.modules if name.startswith("quoth.index")]
"""


def compacted(path: Path, killed_at: str) -> Corpus:
    """The corpus after a program that imports `quoth.corpus` alone has compacted it, or was killed at a call."""
    done = subprocess.run([sys.executable, "-c", COMPACT, str(path), killed_at], timeout=120, check=False)
    assert done.returncode == (-9 if killed_at else 0)
    return Corpus.open(path)


@pytest.mark.parametrize("killed_at", ["", "save_moves", "write_manifest", "Snapshot", "sweep_moves"])
def test_a_program_without_keys_loses_none(
    corpus: Corpus, encoder: TokenEncoder, killed_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = vectors(corpus, encoder)
    assert {document for document, _, _ in before} == {"d1", "d2", "d3", "d4"}
    again = compacted(corpus.path, killed_at)
    again.verify()
    assert len(again.segments) == (3 if killed_at in ("save_moves", "write_manifest") else 1)
    monkeypatch.setattr(encoder, "passages", lambda *_: pytest.fail("encoded a passage again"))
    assert vectors(again, encoder) == before
    KeyTables(again, encoder).build("fp32")
    again.verify()
    assert vectors(again, encoder) == before
    again.compact()
    assert vectors(again, encoder) == before
    corpus.refresh()  # so that nobody reads the older snapshot any more, and its segments can go
    again.compact()
    follow(again)
    assert vectors(again, encoder) == before
    assert {each.partition(".")[0] for each in names(again, encoder)} == {each.name for each in again.segments}
    again.verify()


def test_merges_of_merges_are_read_where_their_vectors_are(
    corpus: Corpus, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = vectors(corpus, encoder)
    stored = names(corpus, encoder)
    for passages, segments in ((4, 4), (20, 1), (20, 1)):  # first, one table is read by two segments
        monkeypatch.setattr(writer_module, "SEGMENT_PASSAGES", passages)
        corpus.compact()
        assert len(corpus.segments) == segments
        assert vectors(corpus, encoder) == before
        corpus.replace([Document("d4", "", "")])
        before = {place: each for place, each in before.items() if place[0] != "d4"}
        assert vectors(corpus, encoder) == before
    corpus.compact()
    assert names(corpus, encoder) == stored
    follow(corpus)
    assert vectors(corpus, encoder) == before
    assert names(corpus, encoder) == {corpus.segments[0].name}
    corpus.verify()


def test_answers_are_the_same_before_and_after_vectors_have_followed(corpus: Corpus, encoder: TokenEncoder) -> None:
    def answers() -> list[dict[str, float]]:
        npm = NPM(encoder, [Corpus.open(corpus.path)])
        return [
            {each.text: each.log_score for each in npm.fill(QUERY, passages=passages, top_k=1000, distinct=False)}
            for passages in (None, 4)
        ]

    before = answers()
    corpus.compact()
    files = sorted(corpus.path.rglob("*"))
    for old, new in zip(before, answers(), strict=True):
        assert new == pytest.approx(old, abs=1e-5)
    assert sorted(corpus.path.rglob("*")) == files  # who reads writes nothing
    follow(corpus)
    for old, new in zip(before, answers(), strict=True):
        assert new == pytest.approx(old, abs=1e-5)


def test_deleted_vectors_are_gone_when_the_others_have_followed(corpus: Corpus, encoder: TokenEncoder) -> None:
    live = len(vectors(corpus, encoder))
    corpus.compact()
    tables = KeyTables(corpus, encoder)
    assert sum(keys.num_keys for keys in tables.open()[0]) > live
    follow(corpus)
    assert sum(keys.num_keys for keys in tables.open()[0]) == live
    corpus.delete(["d1", "d2", "d3", "d4"])
    corpus.compact()
    follow(corpus)
    assert names(corpus, encoder) == set()


def test_a_kill_while_vectors_follow_loses_none(corpus: Corpus, encoder: TokenEncoder, tmp_path: Path) -> None:
    before = vectors(corpus, encoder)
    corpus.compact()
    program = """
import os, shutil, sys
from pathlib import Path
from killed import _counted
from quoth.corpus.corpus import Corpus
from quoth.index.key_store import follow
path, kill_at = Path(sys.argv[1]), 0
originals = [(os, "fsync"), (Path, "replace"), (Path, "unlink"), (shutil, "rmtree")]
originals = [(place, name, getattr(place, name)) for place, name in originals]
status = 1
while status:
    kill_at += 1
    copy = path.with_name(f"killed-{kill_at}.quoth")
    shutil.copytree(path, copy)
    child = os.fork()
    if not child:
        steps = [0]
        for place, name, original in originals:
            setattr(place, name, _counted(original, steps, kill_at))
        follow(Corpus.open(copy))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    subprocess.run([sys.executable, "-c", program, str(corpus.path)], check=True, timeout=300, env=environment)
    copies = sorted(tmp_path.glob("killed-*"))
    assert len(copies) > 15
    for copy in copies:
        again = Corpus.open(copy)
        again.verify()
        assert vectors(again, encoder) == before
    for copy in copies[::5]:
        again = Corpus.open(copy)
        KeyTables(again, encoder).build("fp32")
        assert vectors(again, encoder) == before
        assert {each.partition(".")[0] for each in names(again, encoder)} == {again.segments[0].name}


def test_damaged_moves_are_named_and_cost_no_more_than_vectors(corpus: Corpus, encoder: TokenEncoder) -> None:
    before = vectors(corpus, encoder)
    corpus.compact()
    (file,) = corpus.path.glob("moves/*/moves.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    for read in (corpus.verify, KeyTables(corpus, encoder).open):
        with pytest.raises(CorruptionError, match=r"moves\.npy.*`quoth repair"):
            read()
    assert "moves.npy" in Corpus.repair(corpus.path).repaired[0]
    assert [each.name for each in KeyTables(corpus, encoder).missing()] == [corpus.segments[0].name]
    KeyTables(corpus, encoder).build("fp32")
    assert {place: pytest.approx(each, abs=1e-5) for place, each in vectors(corpus, encoder).items()} == before
    corpus.verify()


def test_a_damaged_table_costs_its_own_passages_alone(corpus: Corpus, encoder: TokenEncoder) -> None:
    before = vectors(corpus, encoder)
    corpus.compact()
    (store,) = stores(corpus.path)
    file = store.whole("000000000002") / "vectors.npy"  # of d2, d3 and d5
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CorruptionError, match=r"000000000002/vectors\.npy.*`quoth repair"):
        follow(corpus)
    tables = KeyTables(corpus, encoder)
    assert tables.left("fp32") == len(corpus.rows_of("d2")) + len(corpus.rows_of("d3"))
    tables.build("fp32")
    assert {place: pytest.approx(each, abs=1e-5) for place, each in vectors(corpus, encoder).items()} == before


def test_what_another_machine_needs_of_a_segment(corpus: Corpus) -> None:
    corpus.compact()
    (segment,) = corpus.segments
    assert set(read_moves(corpus.path, segment.name)[:, 0]) == {0, 2, 5}
    origins = ("000000000000", "000000000002", "000000000005", segment.name)
    assert files_of(corpus.path, [segment.name]) == [f"keys/*/{name}*/*" for name in origins]


def test_sweeping_leaves_what_is_sound_and_of_a_segment(corpus: Corpus) -> None:
    corpus.add([Document("late", "", "late")])
    (store,), (first, second, _, late) = stores(corpus.path), (each.name for each in corpus.segments)
    store.set_recall(0.9)
    (store.folder / "model.txt").write_text("no folder")
    shutil.copytree(store.whole(first), store.partial(late))
    store.part(late, "fp32").mkdir()
    sound = sorted(path.name for path in store.folder.iterdir())
    shutil.copytree(store.whole(first), store.partial(first))
    shutil.copytree(store.whole(first), store.whole("000000000099"))
    shutil.rmtree(store.codes(first), ignore_errors=True)
    for left in (store.part(first, "sq8"), store.part("000000000099", "sq8"), store.folder / "x.tmp"):
        left.mkdir()
    with store.lock():
        store.sweep()
    (store.folder / "writer.lock").unlink(missing_ok=True)
    assert sorted(path.name for path in store.folder.iterdir()) == [
        each for each in sound if each not in ("writer.lock", f"{first}.codes")
    ]
    assert store.folders(late) == [store.part(late, "fp32"), store.partial(late)]
    assert store.folders() == sorted(path for path in store.folder.iterdir() if path.name[0] == "0")
    for file in (store.whole(second) / "vectors.npy", store.partial(late) / "kinds.npy"):
        file.write_bytes(file.read_bytes()[:-1])
    (store.folder / "settings" / "checksums.json").unlink()
    store.codes(first).mkdir()
    store.sweep()
    assert not any(path.exists() for path in (store.whole(second), store.partial(late), store.codes(first)))
    assert store.whole(first).is_dir()
    assert store.recall() == 0.97
    store.set_recall(0.9)
    settings = store.folder / "settings" / "settings.json"
    settings.write_text(settings.read_text().replace("0.9", "0.8"))
    store.sweep()
    assert store.recall() == 0.97


def test_a_local_copy_may_have_the_markers_of_a_table_alone(corpus: Corpus, tmp_path: Path) -> None:
    (store,) = stores(corpus.path)
    table = store.whole(corpus.segments[0].name)
    assert is_sound(table)
    assert not is_sound(table / "table.json")
    assert not is_sound(tmp_path / "nowhere")
    for number, names in enumerate((["table.json"], ["table.json", "absent.npy"], ["table.json", "kinds.npy"], [])):
        copy = tmp_path / str(number)
        copy.mkdir()
        for name in (*names, "checksums.json"):
            (copy / name).write_bytes((table / name).read_bytes() if (table / name).exists() else b"")
        assert is_sound(copy) == (number < 2)


def test_settings_and_facts_are_checked(corpus: Corpus) -> None:
    (store,) = stores(corpus.path)
    for recall in (0.9, 1):
        store.set_recall(recall)
        assert store.recall() == recall
    (store.folder / "settings" / "settings.json").write_text('{"recall": "high"}')
    with pytest.raises(CorruptionError, match=r"settings\.json"):
        store.recall()
    assert [each["tokens"] > 0 for each in store.facts()] == [True] * 3
    table = store.whole(corpus.segments[1].name) / "table.json"
    content = table.read_text()
    table.write_text(content.replace('"format": 2', '"format": 7'))  # whoever reads the table says so
    assert [each["format"] for each in store.facts()] == [2, 7, 2]
    for wrong in ("[]", "{}", content.replace('"tokens"', '"words"'), content.replace('"tokens": ', '"tokens": 0.5')):
        table.write_text(wrong)
        with pytest.raises(CorruptionError, match=r"table\.json"):
            list(store.facts())


def test_tables_that_are_being_written_or_removed_are_not_asked(corpus: Corpus) -> None:
    (store,), name = stores(corpus.path), corpus.segments[1].name
    for folder in (f"{name}.tmp", f"{name}.partial.7.tmp"):
        (store.folder / folder).mkdir()
        (store.folder / folder / "table.json").write_text("{")
    assert len(list(store.facts())) == 3


def test_what_a_partial_table_lacks_is_read_elsewhere(corpus: Corpus, tmp_path: Path) -> None:
    (store,), segment = stores(corpus.path), corpus.segments[1]
    count = segment.num_passages
    (store.whole(segment.name)).replace(store.partial(segment.name))
    np.save(store.partial(segment.name) / "absent.npy", np.array([0, count - 1]))
    assert store.table(segment.name) == store.partial(segment.name)
    assert absent_passages(store.partial(segment.name)).tolist() == [0, count - 1]
    (source,) = store.sources(segment, store.tables(segment.name))
    assert source.here_M.tolist() == source.there_M.tolist() == list(range(1, count - 1))
    assert store.is_stored(corpus.segments[0])
    assert not store.is_stored(segment)


def test_vectors_at_a_url_are_read_and_follow_there(
    corpus: Corpus, encoder: TokenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = vectors(corpus, encoder)
    corpus.compact()
    name = corpus.segments[0].name
    place = RemoteFolder(f"file://{corpus.path}")
    monkeypatch.setattr(encoder, "passages", lambda *_: pytest.fail("encoded a passage again"))
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "driver"))
    place.fetch(*TEXT_FILES, *MARKERS)
    tables = KeyTables(Corpus.open(place.path), encoder)
    assert (tables.missing(), tables.left("fp32"), tables.unfinished(0.97)) == ([], 0, [name])
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "worker"))
    place.fetch(*TEXT_FILES)
    place.fetch(*files_of(place.path, [name]))
    assert vectors(Corpus.open(place.path), encoder) == before
    KeyTables(Corpus.open(place.path), encoder, only=[name]).build_segments("fp32", 1.0)
    place.send(*made_files(name))
    assert vectors(corpus, encoder) == before
    assert [table.name for table in stores(corpus.path)[0].tables(name)] == [name]


def test_a_table_that_is_both_at_its_old_place_and_its_new_is_read_once(corpus: Corpus, encoder: TokenEncoder) -> None:
    """As a kill leaves it between the copy and the removal of what was copied."""
    before = vectors(corpus, encoder)
    corpus.compact()
    (store,) = stores(corpus.path)
    shutil.copytree(store.folder, corpus.path.with_name("old"))
    follow(corpus)
    for table in corpus.path.with_name("old").glob("0*"):
        shutil.copytree(table, store.folder / table.name)
    assert vectors(corpus, encoder) == before
    corpus.add([Document("late", "", "")])
    corpus.compact()  # its passages are named by their segment of now, and by those of before
    store, (segment,) = KeyStore(corpus.path, store.folder.name), corpus.segments
    latest = store.tables(segment.name)
    assert [table.name for table in latest] == ["000000000006", "000000000005", "000000000002", "000000000000"]
    sources = store.sources(segment, latest)
    taken = np.concatenate([each.here_M for each in sources]).tolist()
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) > 3
    KeyTables(corpus, encoder).build("fp32")
    assert vectors(corpus, encoder) == before
    assert {each.partition(".")[0] for each in names(corpus, encoder)} == {corpus.segments[0].name}
