from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from quoth import NPM
from quoth.corpus.corpus import Corpus
from quoth.corpus.writer import Writer
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import CorruptionError, EncoderMismatchError, InputError, LockedError
from quoth.hub import locate
from quoth.index import build as build_module
from quoth.index import tables as module
from quoth.index.costs import Cost
from quoth.index.key_store import follow
from quoth.index.key_table import in_memory
from quoth.index.tables import KeyTables
from quoth.index.vectors import KeyVectors, Quantizer
from quoth.npm.config import NPMConfig
from quoth.records import Document
from quoth.storage import WriterLock, seal_folder
from tiny import tiny_bert, tiny_roberta
from token_tables import fitted

TEXTS = [
    "Paris is the capital of France. The Seine flows through Paris.",
    "Berlin is the capital of Germany; the Spree flows through Berlin.",
    "Athens is the capital of Greece.",
    "The raven sat upon the bust of Pallas, just above the door.",
    "The Eiffel Tower stands in Paris. It was built in 1889.",
]
QUERY = "the capital is [MASK]."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> TokenEncoder:
    return TokenEncoder.load(locate(str(folder), NPMConfig))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Five one-passage documents in two segments, and one without a passage."""
    corpus = Corpus.create(tmp_path / "c.quoth")
    documents = [Document(f"d{i}", f"Title {i}", text) for i, text in enumerate(TEXTS)]
    corpus.add([*documents[:3], Document("empty", "Empty", " ")])
    corpus.add(documents[3:])
    return corpus


def build(corpus: Corpus, encoder: TokenEncoder, precision: str = "fp32") -> KeyTables:
    tables = KeyTables(corpus, encoder)
    tables.build(precision)
    return tables


def scores(npm: NPM, text: str = QUERY, **options: Any) -> dict[str, float]:
    """The log scores of a text's phrases, of every token unless the options say otherwise."""
    found = npm.fill(text, **{"passages": None, "top_k": 1000, "distinct": False, **options})
    return {each.text.casefold(): each.log_score for each in found}


def breaking_off(monkeypatch: pytest.MonkeyPatch, encoder: TokenEncoder, calls: int) -> list[str]:
    """The encoder stops at the call after this many; returns the list of the texts that it has encoded by then."""
    encode, texts, turns = encoder.passages, list[str](), iter(range(calls))

    def breaking(given: Any, titles: Any) -> Any:
        if next(turns, None) is None:
            raise KeyboardInterrupt
        texts.extend(given)
        return encode(given, titles)

    monkeypatch.setattr(encoder, "passages", breaking)
    return texts


def folders(corpus: Corpus) -> list[Path]:
    return sorted(path.parent for path in corpus.path.glob("keys/*/*/table.json"))


def test_a_table_holds_every_token_of_its_segment(corpus: Corpus, encoder: TokenEncoder) -> None:
    opened = build(corpus, encoder).open()[0]
    assert [keys.passage_rows_P.tolist() for keys in opened] == [[0, 1, 2], [3, 4]]
    for keys in opened:
        count = keys.num_keys
        assert len(keys.ids_N) == len(keys.start_N) == len(keys.end_N) == len(keys.group_N) == count
        assert keys.flags_N[:].dtype == np.uint8
        assert keys.group_N[:].dtype == np.uint64
        assert keys.vectors.similarities(np.zeros((2, 32), np.float32)).shape == (2, count)
    facts = json.loads((folders(corpus)[0] / "table.json").read_text())
    assert facts["fingerprint"] == encoder.fingerprint
    assert facts["precision"] == "fp32"
    assert facts["tokens"] == opened[0].num_keys


def test_stored_and_fresh_keys_are_the_same(corpus: Corpus, encoder: TokenEncoder) -> None:
    rng = np.random.default_rng(0)
    q_QD = rng.normal(size=(3, 32)).astype(np.float32)
    for keys in build(corpus, encoder).open()[0]:
        passages = [corpus.passage(row) for row in keys.passage_rows_P.tolist()]
        encoded = encoder.passages([p.text for p in passages], [p.title for p in passages])
        fresh = in_memory(corpus, passages, encoded, encoder.scale)
        for name in ("passage_rows_P", "offsets_P1", "ids_N", "start_N", "end_N", "group_N", "flags_N"):
            stored, expected = getattr(keys, name)[:], getattr(fresh, name)[:]
            np.testing.assert_array_equal(stored, expected, err_msg=name)
            some = rng.integers(len(expected), size=20)
            np.testing.assert_array_equal(getattr(keys, name)[some], expected[some], err_msg=name)
            assert stored.dtype == expected.dtype, name
        np.testing.assert_allclose(keys.vectors.similarities(q_QD), fresh.vectors.similarities(q_QD), atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "sq8", "sq4"])
def test_stored_tokens_of_every_precision_answer_like_fresh_ones(
    corpus: Corpus, encoder: TokenEncoder, precision: str
) -> None:
    npm, text = NPM(encoder, [corpus]), "the [MASK] in of is"
    found = npm.fill(text, passages=100, top_k=1000, distinct=False)
    exact = {each.text.casefold(): each.log_score for each in found}
    rows = {each.passage for prediction in found for each in prediction.evidence}
    npm.embed(precision)
    held = scores(npm, text, exclude=set(corpus.live_rows().tolist()) - rows)
    assert len(held) > 20
    assert held == pytest.approx(exact, abs={"fp32": 1e-4, "fp16": 5e-3, "sq8": 0.1, "sq4": 2.0}[precision])


@pytest.mark.parametrize("precision", ["fp16", "sq8", "sq4"])
def test_a_broken_build_goes_on(
    corpus: Corpus, encoder: TokenEncoder, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "PASSAGES_PER_PART", 2)
    whole = build(Corpus.open(corpus.path), encoder, precision).open()[0]
    expected = [keys.vectors.similarities(np.eye(32, dtype=np.float32)) for keys in whole]
    for each in folders(corpus):
        for file in each.iterdir():
            file.unlink()
        each.rmdir()

    encode = encoder.passages
    calls = breaking_off(monkeypatch, encoder, 1)
    with pytest.raises(KeyboardInterrupt):
        build(corpus, encoder, precision)
    assert calls == TEXTS[:2]
    with pytest.raises(InputError, match="2 of 2 segments have no vectors"):
        KeyTables(corpus, encoder).open()

    later: list[list[str]] = []

    def counting(texts: Any, titles: Any) -> Any:
        later.append(list(texts))
        return encode(texts, titles)

    monkeypatch.setattr(encoder, "passages", counting)
    told: list[tuple[int, int]] = []
    tables = KeyTables(corpus, encoder)
    tables.build(precision, progress=lambda done, total: told.append((done, total)))
    assert later == [TEXTS[2:3], TEXTS[3:]]
    assert told == [(0, 5), (2, 5), (3, 5), (5, 5)]
    for keys, similarity in zip(tables.open()[0], expected, strict=True):
        found = keys.vectors.similarities(np.eye(32, dtype=np.float32))
        np.testing.assert_allclose(found, similarity, atol=1e-5)
    assert not list(corpus.path.glob("keys/*/*.part"))


@pytest.mark.parametrize(("kept", "kinds"), [(1, "f"), (2, "uu")])
def test_first_parts_are_kept_as_floats_until_the_quantizer_is_fitted_to_them(
    corpus: Corpus, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch, kept: int, kinds: str
) -> None:
    monkeypatch.setattr(build_module, "PASSAGES_PER_PART", 1)
    monkeypatch.setattr(build_module, "FITTED_PARTS", 2)
    encode = encoder.passages
    with monkeypatch.context() as patch:
        calls = breaking_off(patch, encoder, kept)
        with pytest.raises(KeyboardInterrupt):
            build(corpus, encoder, "sq8")
    parts = sorted(corpus.path.glob("keys/*/*.part/*[0-9]/vectors.npy"))
    assert "".join(np.load(each).dtype.kind for each in parts) == kinds
    kept = len(calls)
    calls.clear()
    monkeypatch.setattr(encoder, "passages", lambda texts, titles: calls.extend(texts) or encode(texts, titles))
    build(corpus, encoder, "sq8")
    assert calls == TEXTS[kept:]
    titles = [f"Title {number}" for number in range(3)]
    vectors = np.concatenate([each.vectors_TD for each in encode(TEXTS[:2], titles[:2])])
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    low_D, step_D = np.load(folders(corpus)[0] / "quantizer.npy")
    np.testing.assert_allclose(low_D, low - 0.1 * (high - low), atol=1e-5)
    np.testing.assert_allclose(low_D + 255 * step_D, high + 0.1 * (high - low), atol=1e-5)
    every = np.concatenate([each.vectors_TD for each in encode(TEXTS[:3], titles)])
    stored = low_D + step_D * np.load(folders(corpus)[0] / "vectors.npy")
    inside = (every > low_D) & (every < low_D + 255 * step_D)
    assert inside[: len(vectors)].all()
    assert (np.abs(stored - every) <= 0.51 * step_D + 1e-5)[inside].all()


def test_another_precision_than_what_is_stored_is_refused(corpus: Corpus, encoder: TokenEncoder) -> None:
    npm = NPM(encoder, [corpus])
    npm.embed("sq8")
    before = npm.fill(QUERY, passages=None)
    with pytest.raises(InputError, match=r"has sq8 vectors .*, not fp32; embed with storage sq8, or delete .*keys"):
        npm.embed("fp32")
    assert npm.fill(QUERY, passages=None) == before
    npm.embed("sq8")


def test_compact_waits_for_nobody_who_embeds(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    corpus.delete(["d0"])
    with WriterLock(next(corpus.path.glob("keys/*/writer.lock"))), pytest.raises(LockedError, match="is writing"):
        corpus.compact()
    corpus.compact()
    assert not tables.missing()


def test_new_segments_alone_are_built(corpus: Corpus, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = build(corpus, encoder)
    corpus.add([Document("new", "", "The Nile flows through Cairo.")])
    assert [segment.num_passages for segment in tables.missing()] == [1]
    assert tables.open()[1] == [5]
    monkeypatch.setattr(module, "LATE_PASSAGES", 0)
    with pytest.raises(InputError, match="1 of 3 segments have no vectors"):
        tables.open()
    told: list[tuple[int, int]] = []
    tables.build("fp32", progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 1), (1, 1)]
    assert len(tables.open()[0]) == 3


def test_deleted_passages_are_seen_as_such_without_a_new_build(corpus: Corpus, encoder: TokenEncoder) -> None:
    npm = NPM(encoder, [corpus])
    npm.embed("fp32")
    before = npm.fill(QUERY, passages=None, top_k=1000, distinct=False)
    corpus.delete(["d0"])
    after = npm.fill(QUERY, passages=None, top_k=1000, distinct=False)
    assert "d0" in {each.document_id for prediction in before for each in prediction.evidence}
    assert "d0" not in {each.document_id for prediction in after for each in prediction.evidence}
    corpus.compact()
    npm.embed("fp32")
    assert scores(npm) == pytest.approx({each.text.casefold(): each.log_score for each in after}, abs=1e-4)


def test_segments_without_passages_or_tokens(tmp_path: Path, encoder: TokenEncoder) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    corpus.add([Document("none", "", "  ")])
    corpus.add([Document("invisible", "", "\u200b")])
    corpus.add([Document("d", "", TEXTS[0])])
    for precision in ("sq8", "sq4", "fp32"):
        opened = build(corpus, encoder, precision).open()[0]
        assert [keys.num_keys > 0 for keys in opened] == [False, False, True]
        if precision != "fp32":
            shutil.rmtree(corpus.path / "keys")
    npm = NPM(encoder, [corpus])
    assert npm.fill("Paris is [MASK].", passages=None)
    assert npm.search("Paris", mode="dense")[0].passage.document_id == "d"


@pytest.mark.parametrize("name", ["kind.npy", "vectors.npy", "offsets.npy", "place.npy", "checksums.json"])
def test_a_truncated_missing_or_altered_file_is_named(corpus: Corpus, encoder: TokenEncoder, name: str) -> None:
    build(corpus, encoder)
    corpus.verify()
    file = folders(corpus)[1] / name
    content = file.read_bytes()
    file.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
    with pytest.raises(CorruptionError, match=name):
        corpus.verify()
    file.write_bytes(content[:-3])
    with pytest.raises(CorruptionError, match=name):
        KeyTables(corpus, encoder).open()
    file.unlink()
    for read in (KeyTables(corpus, encoder).open, corpus.verify):
        with pytest.raises(CorruptionError, match=name):
            read()


def test_a_table_of_another_version_is_refused(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    folder = folders(corpus)[0]
    facts = json.loads((folder / "table.json").read_text())
    (folder / "table.json").write_text(json.dumps(facts | {"format": 1}))
    seal_folder(folder)
    with pytest.raises(InputError, match=r"another version of Quoth \(format 1, not 2\); delete .* and embed again"):
        tables.open()


def test_keys_of_another_model_are_told_apart(corpus: Corpus, encoder: TokenEncoder, tmp_path: Path) -> None:
    build(corpus, encoder)
    other = TokenEncoder.load(locate(str(tiny_roberta(tmp_path / "tiny-roberta")), NPMConfig))
    with pytest.raises(EncoderMismatchError) as error:
        NPM(other, [corpus]).fill("the [MASK]", passages=None)
    message = str(error.value)
    assert "\n" not in message
    for part in ("c.quoth", "tiny-bert", encoder.fingerprint[:8], "tiny-roberta", other.fingerprint[:8], "quoth embed"):
        assert part in message
    build(corpus, other)
    assert len(KeyTables(corpus, encoder).open()[0]) == len(KeyTables(corpus, other).open()[0]) == 2


def test_one_builder_at_a_time(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    place = folders(corpus)[0].parent
    with WriterLock(place / "writer.lock"), pytest.raises(LockedError):
        tables.build("fp32")


@pytest.mark.parametrize("name", ["keys", "keys/{model}", "keys/{model}/writer.lock"])
def test_vectors_are_not_written_through_a_link(
    corpus: Corpus, encoder: TokenEncoder, tmp_path: Path, name: str
) -> None:
    link = corpus.path / name.format(model=KeyTables(corpus, encoder).folder.name)
    link.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "precious").mkdir()
    link.symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match=f"{link} is a symbolic link"):
        build(corpus, encoder)
    assert not list((tmp_path / "precious").iterdir())


def test_precision_is_checked_before_anything_is_written(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = KeyTables(corpus, encoder)
    for call in (tables.build, tables.cost):
        with pytest.raises(InputError, match="storage is 'int4'; it must be one of sq8, sq4, fp16, fp32"):
            call("int4")
    assert not (corpus.path / "keys").exists()


@pytest.mark.parametrize("precision", ["fp32", "sq4"])
def test_the_cost_is_known_before(corpus: Corpus, encoder: TokenEncoder, precision: str) -> None:
    tables = KeyTables(corpus, encoder)
    cost = tables.cost(precision)
    tokens = sum(len(each.tokens.ids_T) for each in encoder.passages(TEXTS, [""] * 5))
    assert (cost.passages, cost.tokens) == (5, tokens)
    assert cost.seconds > 0
    assert not list(corpus.path.glob("keys/*"))
    build(corpus, encoder, precision)
    files = [path for name in ("vectors", "kind", "place") for path in corpus.path.glob(f"keys/*/*/{name}.npy")]
    assert cost.bytes == pytest.approx(sum(file.stat().st_size - 128 for file in files))
    assert tables.cost(precision) == Cost(0, 0, 0, 0, 0.0)
    floats = 0 if precision.startswith("fp") else 4 * 32 * tokens  # of the first part, which says how they are rounded
    assert cost.bytes < cost.peak_bytes <= cost.bytes + max(cost.bytes, floats)
    assert cost.plus(cost) == Cost(10, 2 * tokens, 2 * cost.bytes, 2 * cost.peak_bytes, 2 * cost.seconds)


def test_the_cost_of_a_part_is_not_that_of_all(corpus: Corpus, encoder: TokenEncoder) -> None:
    build(corpus, encoder)
    corpus.add([Document("late", "Late", TEXTS[0])])
    assert KeyTables(corpus, encoder).cost("fp32").passages == 1


@pytest.mark.parametrize("precision", ["fp32", "sq8", "sq4"])
def test_vectors_follow_their_passages_into_a_merged_segment(
    corpus: Corpus, encoder: TokenEncoder, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = NPM(encoder, [corpus])
    npm.embed(precision)
    corpus.delete(["d1"])
    corpus.add([Document("late", "Late", "The raven never flitted.")])
    npm.embed(precision)
    before = scores(npm)
    corpus.compact()
    assert len(corpus.segments) == 1
    monkeypatch.setattr(encoder, "passages", lambda *_: pytest.fail("encoded a passage again"))
    npm.embed(precision)
    after = npm.fill(QUERY, passages=None, top_k=1000, distinct=False)
    tolerance = {"fp32": 1e-5, "sq8": 0.02, "sq4": 1.0}[precision]
    found = {each.text.casefold(): each.log_score for each in after}
    assert found == pytest.approx(before, abs=tolerance)
    for each in after:
        for place in each.evidence:
            document = corpus.document(place.document_id)
            assert document.text[place.start : place.end].casefold() == each.text.casefold()
    (facts,) = [json.loads((folder / "table.json").read_text()) for folder in folders(corpus)]
    (keys,) = npm._retriever.tables[0].open()[0]
    assert facts["tokens"] == keys.num_keys
    corpus.verify()


@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "sq8", "sq4"])
def test_a_merge_with_passages_that_have_no_vectors_carries_the_others(
    corpus: Corpus, encoder: TokenEncoder, precision: str, following: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, npm = build(corpus, encoder, precision), NPM(encoder, [corpus])
    corpus.add([Document("late", "Late", "The raven never flitted."), Document("gone", "", "Gone.")])
    corpus.delete(["gone", "d1"])
    before = scores(npm)
    encode, encoded = encoder.passages, []
    monkeypatch.setattr(encoder, "passages", lambda *given: encoded.extend(given[0]) or encode(*given))
    for turn in range(2):
        corpus.compact()
        if following:
            follow(corpus)
            assert (next(corpus.path.glob("keys/*")) / f"{corpus.segments[0].name}.partial").is_dir()
        assert [corpus.passage(row).document_id for row in tables.open()[1]] == ["late", "d0"][: 1 + turn]
        corpus.verify()
        again = NPM(encoder, [Corpus.open(corpus.path)])
        assert scores(again) == pytest.approx(before, abs={"fp32": 1e-4, "sq8": 0.05, "sq4": 1.5}[precision])
        assert again.fill(QUERY, passages=9, top_k=1000, distinct=False)
        corpus.replace([replace(corpus.document("d0"), metadata={"edition": 2})])
    del again
    corpus.compact()
    encoded.clear()
    npm.embed(precision)
    assert sorted(encoded) == sorted([TEXTS[0], "The raven never flitted."])
    assert not tables.missing()
    assert not list(corpus.path.glob("keys/*/*.partial"))
    assert scores(npm) == pytest.approx(before, abs={"fp32": 1e-4, "sq8": 0.05, "sq4": 1.5}[precision])


def test_a_merge_broken_off_leaves_keys_as_they_were(
    corpus: Corpus, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(corpus, encoder)
    before = folders(corpus)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "commit", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            corpus.compact()
    assert folders(corpus) == before
    corpus.refresh()
    assert len(KeyTables(corpus, encoder).open()[0]) == 2


def test_merged_scales_cover_all() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(50, 4)).astype(np.float32), 3 * rng.normal(size=(50, 4)).astype(np.float32)
    both = Quantizer.covering([fitted(first), fitted(second)])
    assert both is not None
    for sample in (first, second):
        np.testing.assert_allclose(
            both.encode(sample) * both.step_D + both.low_D, sample, atol=0.51 * float(both.step_D.max())
        )
    same = Quantizer.covering([fitted(first)] * 2)
    assert same is not None
    np.testing.assert_array_equal(same.encode(first), fitted(first).encode(first))
    assert Quantizer.covering([]) is None


def test_what_is_done_already_costs_nothing(
    corpus: Corpus, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = build(corpus, encoder)
    corpus.add([Document("late", "Late", "The raven never flitted.")])
    corpus.compact()
    assert tables.cost("fp32").passages == 1
    shutil.rmtree(corpus.path / "keys")
    monkeypatch.setattr(build_module, "PASSAGES_PER_PART", 2)
    monkeypatch.setattr(module, "PASSAGES_PER_PART", 2)
    with monkeypatch.context() as patch:
        breaking_off(patch, encoder, 1)
        with pytest.raises(KeyboardInterrupt):
            tables.build("fp32")
    assert tables.cost("fp32").passages == 4
    assert tables.cost("fp16").passages == 6


def test_eight_bits_do_not_decay_over_many_merges(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder, "sq8")
    probe = np.eye(32, dtype=np.float32)
    for turn in range(12):
        corpus.add([Document(f"late{turn}", "", TEXTS[turn % 5])])
        corpus.compact()
        tables.build("sq8")
    (keys,), _ = tables.open()
    passages = [corpus.passage(row) for row in keys.passage_rows_P.tolist()]
    encoded = encoder.passages([p.text for p in passages], [p.title for p in passages])
    fresh = in_memory(corpus, passages, encoded, encoder.scale).vectors.similarities(probe)
    assert isinstance(keys.vectors, KeyVectors)
    assert keys.vectors.quantizer is not None
    step = encoder.scale * float(keys.vectors.quantizer.step_D.max())
    assert np.abs(keys.vectors.similarities(probe) - fresh).max() < 1.6 * step


def quantizers(corpus: Corpus, encoder: TokenEncoder) -> list[Any]:
    opened: list[Any] = [keys.vectors for keys in KeyTables(corpus, encoder).open()[0]]
    return [each.quantizer for each in opened]


def test_four_bits_are_carried_bit_by_bit_where_scales_are_equal(corpus: Corpus, encoder: TokenEncoder) -> None:
    build(corpus, encoder, "sq4")
    before: list[Any] = [keys.vectors for keys in KeyTables(corpus, encoder).open()[0]]
    larger = max(before, key=len)
    corpus.compact()
    follow(corpus)
    (keys,), _ = KeyTables(corpus, encoder).open()
    (quantizer,) = quantizers(corpus, encoder)
    np.testing.assert_array_equal(quantizer.low_D, larger.quantizer.low_D)
    np.testing.assert_array_equal(quantizer.step_D, larger.quantizer.step_D)
    first = 0 if larger is before[0] else len(before[0])
    vectors: Any = keys.vectors
    np.testing.assert_array_equal(vectors.stored_ND[first : first + len(larger)], larger.stored_ND)
    for turn in range(3):
        corpus.add([Document(f"late{turn}", "", "Nevermore.")])
        corpus.compact()
        build(corpus, encoder, "sq4")
    (again,), _ = KeyTables(corpus, encoder).open()
    kept: Any = again.vectors
    np.testing.assert_array_equal(kept.stored_ND[: len(vectors)], vectors.stored_ND)


def test_few_tokens_do_not_decide_the_scale_of_many(corpus: Corpus, encoder: TokenEncoder, tmp_path: Path) -> None:
    other = Corpus.create(tmp_path / "other.quoth")
    other.add([Document("first", "", "Raven.")])
    build(other, encoder, "sq4")
    ((few,), texts) = quantizers(other, encoder), [Document(f"d{i}", "", text) for i, text in enumerate(TEXTS)]
    other.add(texts)
    other.compact()
    follow(other)
    (carried,) = quantizers(other, encoder)
    np.testing.assert_array_equal(carried.step_D, few.step_D)
    build(other, encoder, "sq4")
    (fitted,) = quantizers(other, encoder)
    assert (fitted.step_D > few.step_D).mean() > 0.9


def test_many_deleted_passages_are_not_late(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    corpus.add([Document(f"gone{i}", "", "Gone.") for i in range(300)])
    corpus.delete([f"gone{i}" for i in range(299)])
    assert len(tables.open()[1]) == 1


def test_tables_of_older_snapshots_are_forgotten(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    first = tables.open()[0]
    corpus.delete(["d0"])
    second = tables.open()[0]
    assert second[0].vectors is first[0].vectors
    assert second[0].live_P is not None
    assert second[0].live_P.tolist() == [False, True, True]
    corpus.compact()
    tables.open()
    assert [name for name, _ in tables._mapped] == [segment.name for segment in corpus.segments]


def test_embed_works_on_what_the_corpus_has_become(corpus: Corpus, encoder: TokenEncoder) -> None:
    other = Corpus.open(corpus.path)
    other.add([Document("late", "Late", "The raven never flitted.")])
    other.compact()
    tables = KeyTables(corpus, encoder)
    tables.build("fp32")
    assert corpus.snapshot == other.snapshot
    assert not KeyTables(other, encoder).missing()


def test_what_a_killed_process_left_is_removed(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    place = folders(corpus)[0]
    for name in (f"{place.name}.fp32.part", f"{place.name}.partial", "000000000099.carried.part"):
        shutil.copytree(place, place.parent / name)
    tables.build("fp32")
    assert sorted(path.name for path in place.parent.iterdir() if path.is_dir()) == [f.name for f in folders(corpus)]


@pytest.mark.parametrize("name", ["vectors.npy", "kind.npy", "table.json", "checksums.json", ""])
def test_a_damaged_table_is_made_again(corpus: Corpus, encoder: TokenEncoder, name: str) -> None:
    tables = build(corpus, encoder)
    before = {file.name: file.read_bytes() for file in folders(corpus)[0].iterdir()}
    place = folders(corpus)[0]
    if name:
        (place / name).write_bytes(before[name][:-3])
    else:
        shutil.rmtree(place)
        place.mkdir()
    assert [each.name for each in tables.missing()] == [place.name]
    assert tables.left("fp32") == tables.cost("fp32").passages == 3
    KeyTables(corpus, encoder).build("fp32")
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    corpus.verify()


def test_a_damaged_part_of_a_broken_build_is_made_again(
    corpus: Corpus, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module.Builder, "_join", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        build(Corpus.open(corpus.path), encoder)
    monkeypatch.undo()
    (file,) = corpus.path.glob("keys/*/000000000000.fp32.part/000000000/vectors.npy")
    file.write_bytes(file.read_bytes()[:-3])
    build(corpus, encoder)
    corpus.verify()
    assert not list(corpus.path.glob("keys/*/*.part"))


def test_tables_of_which_only_the_markers_are_here_are_not_made_again(corpus: Corpus, encoder: TokenEncoder) -> None:
    tables = build(corpus, encoder)
    for file in folders(corpus)[0].iterdir():
        if file.name not in ("table.json", "checksums.json"):
            file.unlink()
    assert not tables.missing()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kind.npy", [1 << 30]),
        ("offsets.npy", [0, -1]),
        ("offsets.npy", [5]),
        ("offsets.npy", [0, 1 << 40]),
        ("table.json", None),
    ],
)
def test_a_table_of_values_out_of_range_is_named(
    corpus: Corpus, encoder: TokenEncoder, name: str, values: list[int] | None
) -> None:
    npm = NPM(encoder, [corpus])
    npm.embed("fp32")
    place = folders(corpus)[0]
    if values is None:
        (place / name).write_text(json.dumps({"format": 2, "model": "m", "tokens": "many"}))
    else:
        array = np.load(place / name)
        array[: len(values)] = values
        np.save(place / name, array)
    seal_folder(place)
    with pytest.raises(CorruptionError, match=rf"{name}: damaged.*`quoth") as error:
        NPM(encoder, [Corpus.open(corpus.path)]).fill(QUERY, passages=None)
    assert "\n" not in str(error.value)
