"""A corpus: what it holds after any sequence of writes, what it refuses, what it survives."""

import gc
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import killed
import quoth
from killed import document
from quoth.corpus import manifest as manifest_module
from quoth.corpus import repair as repair_module
from quoth.corpus import snapshot as snapshot_module
from quoth.corpus import writer as writer_module
from quoth.corpus.corpus import Corpus
from quoth.corpus.manifest import manifest_path
from quoth.corpus.moves import read_moves
from quoth.corpus.repair import verify
from quoth.errors import (
    CorpusNotFoundError,
    CorruptionError,
    DamageWarning,
    DuplicateDocumentError,
    InputError,
    LockedError,
    UnknownDocumentError,
)
from quoth.records import Document
from quoth.storage import COMMITTED, atomic_write_json, encode_json, read_json, seal_folder, sha256_bytes, sha256_file

Model = dict[str, Document]


def make(path: Path, *documents: Document, splitter: str = "fixed:3") -> Corpus:
    corpus = Corpus.create(path, splitter=splitter)
    corpus.add(documents)
    return corpus


def assert_holds(corpus: Corpus, model: Model) -> None:
    """The corpus is the model: documents, passages, rows and search."""
    assert {each.id: each for each in corpus.documents()} == model
    passages = list(corpus.passages())
    assert corpus.num_documents == len(model)
    assert corpus.num_passages == len(passages) == len({each.row for each in passages})
    assert corpus.live_rows().tolist() == [each.row for each in passages]
    assert corpus.live(corpus.live_rows()).all()
    for each in passages:
        source = model[each.document_id]
        assert corpus.passage(each.row) == each
        assert each.text == source.text[each.start : each.end]
        assert (each.title, each.metadata) == (source.title, source.metadata)
    for name, each in model.items():
        assert corpus.document(name) == each
        if each.text:
            holding = {segment.id(number) for segment, number in corpus.containing(each.text.encode())}
            assert holding == {other for other, source in model.items() if each.text in source.text}
        rows = {passage.row for passage in passages if passage.document_id == name}
        assert corpus.rows_of(name) == sorted(rows)
        if rows:
            found, scores = corpus.bm25(f"z{name}v{each.metadata['version']}", 1000)
            assert set(found.tolist()) == rows
            assert (np.diff(scores) <= 0).all()


def test_create_add_open(tmp_path: Path) -> None:
    model = {name: document(name) for name in ("a", "b")} | {"empty": document("empty", words=0)}
    assert_holds(make(tmp_path / "x.quoth", *model.values()), model)
    corpus = Corpus.open(tmp_path / "x.quoth")
    assert_holds(corpus, model)
    assert (corpus.name, corpus.splitter, corpus.snapshot) == ("x", "fixed:3", 1)
    assert [(each.first_row, each.num_passages) for each in corpus.segments] == [(0, 6)]


def test_add_streams_into_bounded_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "SEGMENT_PASSAGES", 10)
    model = {str(number): document(str(number)) for number in range(20)}
    counts: list[int] = []
    corpus = Corpus.create(tmp_path / "x", splitter="fixed:3")
    assert corpus.add((each for each in model.values()), progress=counts.append) == 20
    assert counts == list(range(1, 21))
    assert corpus.snapshot == 1
    assert [each.num_passages for each in corpus.segments] == [12, 12, 12, 12, 12]
    assert_holds(corpus, model)
    with pytest.raises(DuplicateDocumentError, match="'19' occurs twice"):
        corpus.replace([*model.values(), model["19"]])
    corpus.delete(["0"])
    before = [each.name for each in corpus.segments]
    corpus.compact()
    assert [each.name for each in corpus.segments][:4] == before[1:]
    del model["0"]
    assert_holds(corpus, model)


def test_replacing_writes_only_what_differs(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"), document("b"), document("c", words=0))
    corpus.add([document("d")])
    assert corpus.live_rows().tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    same = [document(each) for each in "abd"]
    counts: list[int] = []
    assert corpus.replace([*same, document("c", words=0)], progress=counts.append) == 0
    assert (corpus.snapshot, len(corpus.segments), counts) == (2, 2, [1, 2, 3, 4])
    b = document("b")
    others = [
        Document("b", "Another", b.text, b.metadata),
        Document("b", b.title, b.text + " more", b.metadata),
        Document("b", b.title, b.text, {"version": False}),
    ]
    for number, other in enumerate(others, 1):
        assert corpus.replace([same[0], other, same[2]]) == 1
        assert corpus.document("b") == other
        assert corpus.rows_of("a") == [0, 1, 2]
        assert corpus.rows_of("d") == [6, 7, 8]
        assert len(corpus.segments) == 2 + number
    corpus.delete(["a"])
    assert corpus.replace([same[0], document("e")]) == 2
    for twice in ([same[0], same[0]], [same[0], document("a", version=1)], [document("a", version=1), same[0]]):
        with pytest.raises(DuplicateDocumentError, match="'a' occurs twice"):
            corpus.replace([document("f"), *twice])
    assert {each.id for each in corpus.documents()} == set("abcde")


def test_rows_are_never_given_out_twice(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"))
    corpus.replace([document("a", version=1)])
    assert corpus.live_rows().tolist() == [3, 4, 5]
    corpus.compact()
    assert corpus.live_rows().tolist() == [6, 7, 8]
    with pytest.raises(InputError, match="row 2 is not a passage"):
        corpus.passage(2)
    with pytest.raises(InputError):
        corpus.passage(-1)
    assert corpus.live(np.array([-1, 2, 6, 8, 9])).tolist() == [False, False, True, True, False]


def test_mistakes_are_named_and_commit_nothing(tmp_path: Path) -> None:
    model = {"a": document("a"), "b": document("b")}
    corpus = make(tmp_path / "x", *model.values())
    with pytest.raises(DuplicateDocumentError, match=r"'a' is in .*`quoth replace`"):
        corpus.add([document("c"), document("a")])
    with pytest.raises(DuplicateDocumentError, match="'c' occurs twice"):
        corpus.add([document("c"), document("c")])
    with pytest.raises(InputError, match="document 2, 'd': text is not valid Unicode"):
        corpus.add([document("c"), Document("d", "", "\ud800")])
    with pytest.raises(UnknownDocumentError, match="'nope'"):
        corpus.delete(["a", "nope"])
    with pytest.raises(UnknownDocumentError, match="'nope'"):
        corpus.document("nope")
    with pytest.raises(InputError, match="already exists"):
        Corpus.create(tmp_path / "x")
    with pytest.raises(InputError, match="splitter"):
        Corpus.create(tmp_path / "y", splitter="lines")
    with pytest.raises(CorpusNotFoundError, match=r"not found; `quoth index DOCS -o .*` makes one"):
        Corpus.open(tmp_path / "y")
    assert corpus.add([]) == corpus.delete([]) == 0
    assert corpus.snapshot == 1
    assert os.listdir(tmp_path / "x" / "segments") == ["000000000000"]
    assert_holds(corpus, model)


def test_an_interrupted_add_leaves_no_trace(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"))

    def interrupted() -> Iterator[Document]:
        yield document("b")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.add(interrupted())
    assert os.listdir(tmp_path / "x" / "segments") == ["000000000000"]
    corpus.add([document("b")])
    assert_holds(Corpus.open(tmp_path / "x"), {"a": document("a"), "b": document("b")})


def test_a_snapshot_that_is_read_outlives_compact(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"), document("b", 30))
    corpus.add([document("c")])
    reader, before = Corpus.open(corpus.path), {name: document(name, 30 if name == "b" else 7) for name in "abc"}
    corpus.delete(["a"])
    corpus.compact()
    after = {name: each for name, each in before.items() if name != "a"}
    for _ in range(2):
        assert_holds(reader, before)
        assert_holds(Corpus.open(corpus.path, snapshot=reader.snapshot), before)
        assert_holds(corpus, after)
        assert_holds(Corpus.open(corpus.path), after)
        corpus.verify()
        assert corpus.snapshots()[0] == reader.snapshot
        corpus.replace([document("d")])
        after["d"] = document("d")
    released = reader.snapshot
    reader.refresh()
    assert_holds(reader, after)
    corpus.add([document("e")])
    assert released not in corpus.snapshots()
    corpus.compact()
    assert corpus.snapshots()[-1] == corpus.snapshot
    del reader
    corpus.compact()
    assert corpus.snapshots() == [corpus.snapshot]
    assert_holds(corpus, after | {"e": document("e")})


@pytest.mark.parametrize(
    "use",
    [
        lambda corpus: list(corpus.passages()),
        lambda corpus: corpus.bm25("text", 3),
        lambda corpus: corpus.trace("the text of a is here and it is long enough"),
        lambda corpus: quoth.verify_quotes(corpus, "They say “the text of a is here”."),
        lambda corpus: list(corpus.where("id = 'a'").passages()),
    ],
)
def test_a_corpus_that_nobody_has_keeps_no_files_open(tmp_path: Path, use: Callable[[Corpus], Any]) -> None:
    """Without waiting for a collection, which a process with many objects seldom makes."""
    make(tmp_path / "x", document("a"), document("b"))
    corpus = Corpus.open(tmp_path / "x")
    use(corpus)
    opened = [ref(each) for each in (corpus._snapshot, *corpus._snapshot.segments)]
    gc.disable()
    try:
        del corpus
        assert [each() for each in opened] == [None] * len(opened)
    finally:
        gc.enable()


def test_a_copy_that_is_replaced_while_it_is_read_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, read = make(tmp_path / "x", document("a")), Path.read_bytes

    def overtaken(path: Path) -> bytes:
        content = read(path)
        if path.name == COMMITTED:
            monkeypatch.setattr(Path, "read_bytes", read)
            corpus.add([document("b")])
        return content

    monkeypatch.setattr(Path, "read_bytes", overtaken)
    assert manifest_module.parse_manifest(corpus.path / COMMITTED).snapshot == 1


@pytest.mark.parametrize(("module", "name"), [(manifest_module, "parse_manifest"), (snapshot_module, "Lease")])
@pytest.mark.parametrize("snapshot", [None, 1])
def test_a_snapshot_released_while_it_is_opened_is_not_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, snapshot: int | None
) -> None:
    """Somebody else commits and compacts after the snapshots were listed, or after the manifest was read."""
    corpus, before = make(tmp_path / "x", document("a")), getattr(module, name)

    places = [module, repair_module] if name == "Lease" else [module]

    def overtaken(path: Path) -> Any:
        for each in places:
            monkeypatch.setattr(each, name, before)
        corpus.add([document(f"d{corpus.snapshot}")])
        corpus.compact()
        return before(path)

    monkeypatch.setattr(module, name, overtaken)
    if snapshot is None:
        assert Corpus.open(corpus.path).snapshot == corpus.snapshot
        monkeypatch.setattr(places[-1], name, overtaken)
        corpus.verify()
        assert getattr(places[-1], name) is before
    else:
        with pytest.raises(CorpusNotFoundError, match=r"no snapshot 1 .compact releases old ones.; use one of"):
            Corpus.open(corpus.path, snapshot=snapshot)
    assert getattr(module, name) is before


@pytest.mark.parametrize("name", ["manifest-7.json", "manifest-07.json"])
def test_a_manifest_that_is_listed_and_cannot_be_read_is_damage(tmp_path: Path, name: str) -> None:
    corpus = make(tmp_path / "x", document("a"))
    (corpus.path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(CorruptionError, match=r"manifest-7.json: the file is missing"):
        Corpus.open(corpus.path)


def of_the_first_format(path: Path) -> None:
    """Takes the words out of the segments, as they were before, with an index of words beside them."""
    for segment in path.glob("segments/*"):
        (segment / "words-2.bin").unlink()
        seal_folder(segment)
    (path / "bm25").mkdir()
    (path / "bm25" / "meta.json").write_text("{}")
    for number in range(len(list(path.glob("manifest-*")))):
        content = read_json(manifest_path(path, number))
        for each in content["segments"]:
            each["sha256"] = sha256_file(path / "segments" / each["name"] / "checksums.json")
        del content["sha256"]
        content |= {"format": 1, "words": {"meta.json": {"size": 2, "sha256": "0"}}, "stale_rows": [[3, 5]]}
        checksum = sha256_bytes(encode_json(content))
        atomic_write_json(manifest_path(path, number), {**content, "sha256": checksum})


def test_a_corpus_of_the_first_format_is_read_and_compact_renews_it(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a", 30), document("b"))
    corpus.delete(["b"])
    query = "za wörd1"
    rows, scores = corpus.bm25(query, 20)
    of_the_first_format(corpus.path)
    old = Corpus.open(corpus.path)
    assert_holds(old, {"a": document("a", 30)})
    for ours, theirs in zip(old.bm25(query, 20), (rows, scores), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not list(corpus.path.rglob("words-2.bin"))
    old.add([document("c")])
    assert_holds(Corpus.open(corpus.path), {"a": document("a", 30), "c": document("c")})
    old.delete(["c"])
    old.compact()
    assert [each.has_words for each in old.segments] == [True]
    assert not list(corpus.path.glob("bm25*"))
    assert_holds(Corpus.open(corpus.path), {"a": document("a", 30)})
    np.testing.assert_array_equal(old.bm25(query, 20)[1], scores)
    segments = old.segments
    old.compact()
    assert old.segments == segments
    old.verify()


def test_snapshots_stay_readable_until_compact(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"))
    corpus.replace([document("a", version=1), document("b")])
    corpus.delete("a")
    models: list[Model] = [
        {},
        {"a": document("a")},
        {"a": document("a", version=1), "b": document("b")},
        {"b": document("b")},
    ]
    for number, model in enumerate(models):
        assert_holds(Corpus.open(tmp_path / "x", snapshot=number), model)
    old = Corpus.open(tmp_path / "x", snapshot=1)
    with pytest.raises(InputError, match="snapshot 1 is for reading"):
        old.delete("a")
    corpus.compact()
    assert corpus.snapshots() == [1, corpus.snapshot]
    assert next(old.passages()).document_id == "a"
    old.refresh()
    corpus.compact()
    assert corpus.snapshots() == [old.snapshot] == [corpus.snapshot]
    with pytest.raises(CorpusNotFoundError, match="no snapshot 1"):
        Corpus.open(tmp_path / "x", snapshot=1)
    assert_holds(old, models[-1])


def test_a_reader_sees_others_writes_when_it_refreshes(tmp_path: Path) -> None:
    writer = make(tmp_path / "x", document("a"))
    reader = Corpus.open(tmp_path / "x")
    writer.add([document("b")])
    assert_holds(reader, {"a": document("a")})
    reader.add([document("c")])
    assert_holds(reader, {name: document(name) for name in "abc"})


def test_a_second_writer_is_refused_by_pid(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"))

    def meanwhile() -> Iterator[Document]:
        with pytest.raises(LockedError, match=f"process {os.getpid()} is writing"):
            Corpus.open(tmp_path / "x").delete("a")
        yield document("b")

    assert corpus.add(meanwhile()) == 1


def test_what_is_called_by_segments_that_were_never_committed_is_removed(tmp_path: Path) -> None:
    corpus = make(tmp_path / "x", document("a"))
    for name in ("000000000000", "000000000009.part"):
        (tmp_path / "x" / "keys" / "model" / name).mkdir(parents=True)
    corpus.add([document("b")])
    assert os.listdir(tmp_path / "x" / "keys" / "model") == ["000000000000"]
    corpus.compact()  # what it keeps elsewhere of the passages that moved is its owner's
    assert os.listdir(tmp_path / "x" / "keys" / "model") == ["000000000000"]


def test_moves_stay_as_long_as_something_is_called_by_what_they_name(tmp_path: Path) -> None:
    path = tmp_path / "x"
    corpus = make(path, document("a", 7), document("b", 4))  # segment 0, passages of three words: 0-2, 3-4
    corpus.replace([document("a", 5)])  # segment 2: 0-1
    with corpus_moves(path) as saved:
        corpus.compact()  # segment 3
    assert saved == {3: [[0, 3, 0], [0, 4, 1], [2, 0, 2], [2, 1, 3]]}
    assert not list(path.glob("moves/*"))
    (path / "keys" / "model" / "000000000003").mkdir(parents=True)
    corpus.add([document("c", 1)])  # segment 5
    corpus.compact()  # segment 6
    first = [[3, 0, 0], [3, 1, 1], [3, 2, 2], [3, 3, 3]]
    assert read_moves(path, "000000000006").tolist() == [*first, [5, 0, 4]]
    corpus.delete(["a"])
    corpus.add([document("d", 1)])  # segment 9
    corpus.compact()  # segment 10, with b, c and d; of segment 5 nothing is left
    again = [[6, 0, 0], [6, 1, 1], [6, 4, 2], [3, 0, 0], [3, 1, 1], [9, 0, 3]]
    assert read_moves(path, "000000000010").tolist() == again
    assert [each.name for each in path.glob("moves/*")] == ["000000000010"]
    seal_folder(path / "keys" / "model" / "000000000003")
    corpus.verify()
    shutil.rmtree(path / "keys" / "model" / "000000000003")
    corpus.compact()
    assert not list(path.glob("moves/*"))


@contextmanager
def corpus_moves(path: Path) -> Iterator[dict[int, Any]]:
    """The moves that are saved meanwhile, by segment."""
    saved: dict[int, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            writer_module, "save_moves", lambda _, name, moves_M3: saved.update({int(name): moves_M3.tolist()})
        )
        yield saved


NAMES = st.sampled_from([f"n{number}" for number in range(8)])
SIZES = st.dictionaries(NAMES, st.integers(0, 9), max_size=4)


class AgainstADict(RuleBasedStateMachine):
    """Every sequence of writes leaves what the same sequence leaves in a dict."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.corpus = Corpus.create(self.folder, splitter="fixed:3")
        self.model: Model = {}
        self.version = 0

    def fresh(self, sizes: dict[str, int]) -> Model:
        self.version += 1
        return {name: document(name, words, self.version) for name, words in sizes.items()}

    @rule(sizes=SIZES)
    def add(self, sizes: dict[str, int]) -> None:
        new = self.fresh(sizes)
        if new.keys() & self.model.keys():
            with pytest.raises(DuplicateDocumentError):
                self.corpus.add(new.values())
        else:
            self.corpus.add(new.values())
            self.model |= new

    @rule(sizes=SIZES)
    def replace(self, sizes: dict[str, int]) -> None:
        new = self.fresh(sizes)
        self.corpus.replace(new.values())
        self.model |= new

    @rule(names=st.sets(NAMES, max_size=3))
    def delete(self, names: set[str]) -> None:
        if names <= self.model.keys():
            self.corpus.delete(names)
            self.model = {name: each for name, each in self.model.items() if name not in names}
        else:
            with pytest.raises(UnknownDocumentError):
                self.corpus.delete(names)

    @rule()
    def compact(self) -> None:
        self.corpus.compact()
        assert not self.corpus.segments or len(self.corpus.segments) == 1

    @rule()
    def reopen(self) -> None:
        self.corpus = Corpus.open(self.folder)

    @invariant()
    def same(self) -> None:
        assert_holds(self.corpus, self.model)

    def teardown(self) -> None:
        self.corpus.verify()


def test_against_a_dict(tmp_path: Path) -> None:
    AgainstADict.folder = tmp_path / "x"
    options = settings(max_examples=12, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(AgainstADict, settings=options)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with several snapshots, segments and deletions, and a sealed key table."""
    path = tmp_path_factory.mktemp("written") / "x"
    corpus = make(path, document("a"), document("b"))
    corpus.replace([document("b", version=1)])
    corpus.delete("a")
    keys = path / "keys" / "model" / corpus.segments[0].name
    keys.mkdir(parents=True)
    (keys / "vectors.npy").write_bytes(os.urandom(100))
    seal_folder(keys)
    return path


def files(path: Path) -> list[str]:
    found = (each for each in path.rglob("*") if each.is_file() and each.suffix != ".lock")
    return sorted(each.relative_to(path).as_posix() for each in found)


def test_every_altered_byte_is_found_and_its_file_named(written: Path, tmp_path: Path) -> None:
    Corpus.open(written).verify()
    for name in files(written):
        shutil.copytree(written, tmp_path / "x")
        content = bytearray((tmp_path / "x" / name).read_bytes())
        place = random.Random(name).randrange(len(content))
        content[place] ^= 1
        (tmp_path / "x" / name).write_bytes(content)
        with pytest.raises(CorruptionError, match=name if "keys" not in name else "keys"):
            verify(tmp_path / "x")
        shutil.rmtree(tmp_path / "x")


def test_every_truncated_or_missing_file_is_found_on_open_or_by_the_first_search(written: Path, tmp_path: Path) -> None:
    newest = Corpus.open(written).snapshot
    old = {f"manifest-{number}.json" for number in range(newest)}
    for name in files(written):
        if name in old or ".copy." in name or name.startswith(("keys/", "deleted-2", "committed")):
            continue
        shutil.copytree(written, tmp_path / "x")
        os.truncate(tmp_path / "x" / name, (tmp_path / "x" / name).stat().st_size - 1)
        with pytest.raises((CorruptionError, DamageWarning), match=f"{name}.*`quoth repair"):
            open_and_search(tmp_path / "x")
        (tmp_path / "x" / name).unlink()
        with pytest.raises((CorruptionError, DamageWarning), match=f"{name}.*`quoth repair"):
            open_and_search(tmp_path / "x")
        shutil.rmtree(tmp_path / "x")


def open_and_search(path: Path) -> None:
    Corpus.open(path).bm25("z", 1)


KILLS = int(os.environ.get("QUOTH_TEST_KILLS", "12"))


def assert_survived(path: Path, models: list[Model]) -> None:
    done = killed.num_done(path)
    corpus = Corpus.open(path)
    corpus.verify()
    found = {each.id: each for each in corpus.documents()}
    assert found in models[done : done + 2]
    assert_holds(corpus, found)
    corpus.add([document("after")])
    corpus.verify()
    assert_holds(corpus, found | {"after": document("after")})


def test_a_kill_loses_nothing_committed(tmp_path: Path) -> None:
    models = killed.prepare(tmp_path)
    started = time.monotonic()
    steps = killed.run(tmp_path, "step-0")
    milliseconds = int((time.monotonic() - started) * 1000)
    assert killed.num_done(tmp_path / "step-0") == len(models) - 1
    chance = random.Random(0)
    kills = [f"step-{number}" for number in chance.sample(range(1, steps + 1), min(KILLS, steps))]
    kills += [f"milliseconds-{number}" for number in chance.sample(range(milliseconds // 3), 4)]
    killed.run(tmp_path, *kills)
    for name in ("step-0", *kills):
        assert_survived(tmp_path / name, models)


@pytest.mark.parametrize(
    ("given", "kind"), [([{"id": "a", "text": "x"}], "dict"), ("some text", "str"), ([None], "NoneType")]
)
@pytest.mark.parametrize("verb", ["add", "replace"])
def test_what_is_not_a_document_is_named(tmp_path: Path, verb: str, given: Any, kind: str) -> None:
    corpus = Corpus.create(tmp_path / "x")
    with pytest.raises(
        InputError, match=rf"^document 1 is a {kind}, .*; give quoth\.Document\(id, title, text, metadata\)"
    ):
        getattr(corpus, verb)(given)
    assert (corpus.num_documents, corpus.snapshot) == (0, 0)
