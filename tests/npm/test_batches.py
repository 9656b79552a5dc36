"""Batches of passages of the same document, and the token ids that they are drawn from."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from transformers import AutoTokenizer

from quoth.errors import CorruptionError, InputError
from quoth.npm.batches import ARRAYS, BatchSampler, TokenizedDocuments, tokenize_documents
from quoth.records import Document
from quoth.text.passages import get_splitter
from quoth.text.tokenizer import TextTokenizer
from tiny import TEXT, tiny_bert, tiny_roberta, tiny_sentencepiece

SIZE = 4


def documents_of(*lengths: int) -> NDArray[np.int32]:
    return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)


def sampler_of(document: NDArray[np.int32], size: int, seed: int, grouping: Any = "shuffled") -> BatchSampler:
    nothing = np.zeros(0, np.int64)
    chain = np.unique(document)[::-1]
    data = TokenizedDocuments(nothing, nothing, nothing, nothing, nothing, document, chain)
    return BatchSampler(data, size, seed, grouping)


def epoch(sampler: BatchSampler, number: int) -> list[list[int]]:
    return [sampler[number * len(sampler) + i] for i in range(len(sampler))]


@pytest.fixture(scope="module")
def lengths() -> list[int]:
    return np.random.default_rng(0).integers(1, 19, size=40).tolist()


def test_a_long_document_fills_whole_batches(lengths: list[int]) -> None:
    document = documents_of(*lengths)
    whole = Counter(
        int(document[batch[0]])
        for batch in epoch(sampler_of(document, SIZE, 0), 0)
        if len(set(document[batch].tolist())) == 1
    )
    assert all(whole[d] >= n // SIZE for d, n in enumerate(lengths))


def test_left_overs_are_grouped_by_document(lengths: list[int]) -> None:
    document = documents_of(*lengths)
    mixed = [b for b in epoch(sampler_of(document, SIZE, 0), 0) if len(set(document[b].tolist())) > 1]
    assert mixed
    for batch in mixed:
        owners = document[batch].tolist()
        assert 1 + sum(d != after for d, after in pairwise(owners)) == len(set(owners))
        assert all(row + 1 == after or document[row] != document[after] for row, after in pairwise(batch))


@pytest.mark.parametrize("number", [0, 1, 5])
def test_an_epoch_covers_nearly_every_passage_once(lengths: list[int], number: int) -> None:
    document = documents_of(*lengths)
    batches = epoch(sampler_of(document, SIZE, 0), number)
    rows = [row for batch in batches for row in batch]
    assert {len(batch) for batch in batches} == {SIZE}
    assert len(rows) == len(set(rows)) > len(document) - SIZE
    assert set(rows) <= set(range(len(document)))


def test_batches_are_a_function_of_seed_and_number(lengths: list[int]) -> None:
    document = documents_of(*lengths)
    first, same, other = (sampler_of(document, SIZE, seed) for seed in (3, 3, 4))
    numbers = range(3 * len(first))
    forward = [first[i] for i in numbers]
    assert [same[i] for i in reversed(numbers)] == forward[::-1]
    assert [other[i] for i in numbers] != forward
    assert forward[: len(first)] != forward[len(first) : 2 * len(first)]


@pytest.mark.parametrize("owners", [(3,), (1, 1, 1), (0, 2, 0, 2)], ids=["one", "singles", "gaps"])
def test_few_passages_still_make_a_batch(owners: tuple[int, ...]) -> None:
    sampler = sampler_of(documents_of(*owners), 16, 0)
    assert sorted(sampler[0]) == list(range(sum(owners)))
    assert len(sampler) == 1


def test_neighbours_follow_each_other_but_at_one_place_an_epoch(lengths: list[int]) -> None:
    document = documents_of(*lengths)
    sampler = sampler_of(document, SIZE, 0, "neighbours")
    starts = set()
    for number in range(3):
        left_over = [rows for rows in epoch(sampler, number) if len(set(document[rows].tolist())) > 1]
        steps = [a - b for rows in left_over for a, b in pairwise(document[rows].tolist()) if a != b]
        short = {d for d, n in enumerate(lengths) if n % SIZE}
        between = [len(short & set(range(a - step + 1, a))) for rows in left_over for a, step in _steps(document, rows)]
        assert not any(between)
        assert len([step for step in steps if step < 0]) <= 1
        starts.add(tuple(map(tuple, left_over)))
    assert len(starts) == 3


def _steps(document: NDArray[np.int32], rows: list[int]) -> list[tuple[int, int]]:
    """Each document of a batch that is followed by another one, and how far below it that is."""
    return [(a, a - b) for a, b in pairwise(document[rows].tolist()) if a > b]


def test_random_batches_mix_documents(lengths: list[int]) -> None:
    document = documents_of(*lengths)
    batches = epoch(sampler_of(document, SIZE, 0, "random"), 0)
    rows = [row for batch in batches for row in batch]
    assert len(rows) == len(set(rows)) > len(document) - SIZE
    assert np.mean([len(set(document[batch].tolist())) for batch in batches]) > SIZE - 1


@pytest.mark.parametrize(("passages", "size"), [(0, 4), (1, 4), (9, 1)])
def test_too_little_to_contrast_is_refused(passages: int, size: int) -> None:
    with pytest.raises(InputError, match=f"{passages} passages in batches of {size}"):
        sampler_of(documents_of(passages), size, 0)


def test_neighbours_want_a_chain() -> None:
    nothing = np.zeros(0, np.int64)
    data = TokenizedDocuments(nothing, nothing, nothing, nothing, nothing, documents_of(3, 4), nothing)
    with pytest.raises(InputError, match="grouping is 'neighbours', but the data has no chain"):
        BatchSampler(data, 2, 0, "neighbours")


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta, tiny_sentencepiece])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    folder = request.param(tmp_path_factory.mktemp("model"))
    return TextTokenizer(AutoTokenizer.from_pretrained(folder), num_masks=2, max_tokens=128)


DOCUMENTS = [
    Document("raven", "The Raven", " ".join(TEXT[:1] * 20)),
    Document("empty", "Empty", ""),
    Document("cities", "", "\n\n".join(TEXT[1:])),
]


def test_tokens_are_those_that_search_encodes(tokenizer: TextTokenizer) -> None:
    seen: list[int] = []
    data = tokenize_documents(DOCUMENTS, tokenizer, splitter="words:40", max_passage_tokens=50, progress=seen.append)
    assert seen == [3]
    assert set(data.document.tolist()) == {0, 2}
    assert data.offsets[-1] == len(data.ids) == len(data.flags)
    assert np.diff(data.offsets).max() <= 50
    texts = [(document, start, end) for document in DOCUMENTS for start, end in get_splitter("words:40")(document.text)]
    assert len(texts) == data.num_passages
    found = tokenizer.passages([d.text[a:b] for d, a, b in texts], [d.title for d, *_ in texts])
    for p, passage in enumerate(found):
        body = slice(data.offsets[p], data.offsets[p + 1])
        title = data.titles[data.title_offsets[p] : data.title_offsets[p + 1]]
        assert data.ids[body].tolist() == passage.ids_T[:50].tolist()
        assert data.flags[body].tolist() == passage.flags_T[:50].tolist()
        head = [*tokenizer.before, *title.tolist(), *data.ids[body].tolist()]
        assert passage.windows[0].input_ids[: len(head)].tolist() == head


def test_byte_pairs_are_those_of_the_title_and_the_text_joined(tmp_path: Path) -> None:
    document = Document("greece", "Greece", "Athens is the capital of Greece. The Seine flows through Paris.")
    hf = AutoTokenizer.from_pretrained(tiny_roberta(tmp_path, [f"Greece. {document.text}"] * 3))
    tokenizer = TextTokenizer(hf, num_masks=2, max_tokens=128)
    data = tokenize_documents([document], tokenizer, splitter="words:6")
    read = [
        hf.convert_ids_to_tokens([*data.titles[a:b].tolist(), *data.ids[c:d].tolist()])
        for (a, b), (c, d) in zip(pairwise(data.title_offsets), pairwise(data.offsets), strict=True)
    ]
    joined = [hf.tokenize(f"Greece. {text}") for text in (document.text[:32], document.text[33:])]
    assert read == joined
    assert hf.convert_ids_to_tokens(data.titles.tolist())[-1] == "."
    first = hf.convert_ids_to_tokens(data.ids[data.offsets[:-1]].tolist())
    assert first == ["\u0120Athens", "\u0120The"]


@pytest.mark.parametrize("longest", [20, 254])
def test_filled_inputs_hold_every_token_of_a_document(tokenizer: TextTokenizer, longest: int) -> None:
    data = tokenize_documents(DOCUMENTS, tokenizer, splitter="filled", max_passage_tokens=longest)
    for d, document in enumerate(DOCUMENTS):
        if not document.text:
            assert d not in data.document
            continue
        joined = f"{document.title}. {document.text}" if document.title else document.text
        every = tokenizer.hf(joined, add_special_tokens=False)["input_ids"]
        rows = np.flatnonzero(data.document == d)
        bodies = [data.ids[data.offsets[p] : data.offsets[p + 1]].tolist() for p in rows]
        titles = [data.titles[data.title_offsets[p] : data.title_offsets[p + 1]].tolist() for p in rows]
        assert titles[0] + [token for body in bodies for token in body] == every
        assert all(title == titles[0] for title in titles)
        full = min(longest, 128 - len(tokenizer.before) - len(tokenizer.after) - len(titles[0]))
        assert [len(body) for body in bodies[:-1]] == [full] * (len(bodies) - 1)
        assert 0 < len(bodies[-1]) <= full
        assert len(bodies) > 1 or len(every) <= full


def test_an_unknown_splitter_is_refused(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InputError, match=r"splitter 'full' is not one of blocks:N, .*; nor filled"):
        tokenize_documents(DOCUMENTS, tokenizer, splitter="full")


def test_text_without_a_token_is_left_out(tokenizer: TextTokenizer) -> None:
    data = tokenize_documents([*DOCUMENTS, Document("controls", "", "\x01\x02 \x03")], tokenizer)
    assert np.diff(data.offsets).min() > 0


def test_no_text_is_refused(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InputError, match="no text to train on"):
        tokenize_documents([Document("empty", "Empty", "")], tokenizer)


def some_tokens(first: int) -> TokenizedDocuments:
    ids = np.arange(first, first + 6, dtype=np.int32)
    bounds = np.array([0, 3, 6], np.int64)
    return TokenizedDocuments(
        ids, ids.astype(np.uint8), bounds, ids[:2], np.array([0, 1, 2]), np.array([0, 1], np.int32), ids[:0]
    )


def test_saved_tokens_are_read_back_under_their_label_only(tmp_path: Path) -> None:
    folder = tmp_path / "tokens"
    assert TokenizedDocuments.load(folder, "a") is None
    some_tokens(5).save(folder, "a")
    loaded = TokenizedDocuments.load(folder, "a")
    assert loaded is not None
    assert all(np.array_equal(getattr(loaded, name), getattr(some_tokens(5), name)) for name in ARRAYS)
    assert TokenizedDocuments.load(folder, "b") is None


def test_a_save_broken_off_leaves_the_old_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tokens"
    some_tokens(5).save(folder, "a")
    calls: list[Path] = []

    def breaking(path: Path, array: NDArray[np.generic]) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise KeyboardInterrupt
        np.save(path, array)

    with monkeypatch.context() as patch:
        patch.setattr("quoth.npm.batches.save_array", breaking)
        with pytest.raises(KeyboardInterrupt):
            some_tokens(50).save(folder, "b")
    assert TokenizedDocuments.load(folder, "b") is None
    kept = TokenizedDocuments.load(folder, "a")
    assert kept is not None
    assert kept.ids.tolist() == some_tokens(5).ids.tolist()
    some_tokens(50).save(folder, "b")
    assert TokenizedDocuments.load(folder, "b") is not None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    some_tokens(5).save(tmp_path / "tokens", "a")
    file = tmp_path / "tokens" / "ids.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(CorruptionError, match=r"ids\.npy"):
        TokenizedDocuments.load(tmp_path / "tokens", "a")
