"""Shards together answer as one process does, whatever is asked and however segments are dealt."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_npm import sentences

from quoth import NPM, Corpus
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import InputError
from quoth.hub import locate
from quoth.npm.config import NPMConfig
from quoth.records import Document, Prediction
from quoth_ray.shard import Shard
from quoth_ray.sharded import ShardedNPM, assigned
from tiny import tiny_bert

QUERIES = ["the capital of [MASK] is above the river", "[MASK] sat"]


class LocalShards:
    """Shards in this process."""

    def __init__(self, shards: Sequence[Any]) -> None:
        self._shards = list(shards)

    def __len__(self) -> int:
        return len(self._shards)

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [getattr(shard, method)(*each) for shard, each in zip(self._shards, arguments, strict=True)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Five segments with deletions; the last one has no vectors and is encoded when asked for."""
    rng = np.random.default_rng(3)
    corpus = Corpus.create(tmp_path_factory.mktemp("corpora") / "parts.quoth", splitter="words:12")
    for segment in "abcd":
        corpus.add([Document(f"{segment}{i}", "Paris" * (i % 2), sentences(rng, 3)) for i in range(4)])
    corpus.delete(["a1", "c2"])
    return corpus


@pytest.fixture(scope="module", params=[2, 1], ids=["phrases", "tokens"])
def encoder(request: Any, tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> TokenEncoder:
    source = locate(str(tiny_bert(tmp_path_factory.mktemp("model") / "bert")), NPMConfig)
    encoder = TokenEncoder.load(replace(source, config=replace(source.config, num_masks=request.param)))
    NPM(encoder, [corpus]).embed("fp32")
    return encoder


@pytest.fixture(scope="module", autouse=True)
def late(corpus: Corpus, encoder: TokenEncoder) -> None:
    if not any(each.id == "late" for each in corpus.documents()):
        corpus.add([Document("late", "", "Berlin is the capital of Germany above the river.")])


def sharded(corpus: Corpus, encoder: TokenEncoder, parts: int) -> ShardedNPM:
    names = assigned([each.name for each in corpus.segments], parts)
    return ShardedNPM(encoder, corpus, LocalShards([Shard(corpus, encoder, each) for each in names]))


def assert_same(left: list[Prediction], right: list[Prediction]) -> None:
    assert [each.text for each in left] == [each.text for each in right]
    for ours, theirs in zip(left, right, strict=True):
        assert (ours.log_score, ours.probability) == pytest.approx((theirs.log_score, theirs.probability), rel=1e-6)
        assert (ours.sequence, ours.num_places) == (theirs.sequence, theirs.num_places)
        ours_at, theirs_at = (
            {(place.passage, place.start, place.end, place.context): place.score for place in each.evidence}
            for each in (ours, theirs)
        )
        assert ours_at == pytest.approx(theirs_at, rel=1e-5)


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize(
    "options",
    [
        {"passages": None},
        {"passages": None, "combine": "joint", "k": 7},
        {"passages": None, "max_evidence": 1},
        {"passages": 5, "max_evidence": 3},
        {"passages": None, "combine": "softmax_sum", "k": 30, "length_exponent": 0.5},
        {"passages": 3},
        {"passages": 5, "combine": "softmax_sum", "ban_query": True, "ban_stop_words": True},
        {"passages": 3, "passage_share": 0.3, "k": 20},
        {"passages": 3, "passage_share": 0.3, "combine": "softmax_sum", "k": 9},
        {"passages": None, "banned_tokens": ("Paris",), "exclude": [0, 1, 7]},
    ],
    ids=lambda options: "-".join(f"{name}={value}" for name, value in options.items()),
)
def test_partial_sums_give_the_whole_model_s_answers(
    corpus: Corpus, encoder: TokenEncoder, parts: int, options: dict[str, Any]
) -> None:
    whole, split = NPM(encoder, [corpus]), sharded(corpus, encoder, parts)
    answers = whole.fill(QUERIES, top_k=12, **options)
    assert all(answers)
    for ours, theirs in zip(split.fill(QUERIES, top_k=12, **options), answers, strict=True):
        assert_same(ours, theirs)


def test_a_table_that_appears_between_two_calls(tmp_path: Path, encoder: TokenEncoder) -> None:
    """Rows of the tables that were are not taken for rows of those that are."""
    corpus = Corpus.create(tmp_path / "grows.quoth", splitter="words:12")
    rng = np.random.default_rng(4)
    corpus.add([Document(f"a{i}", "", sentences(rng, 3)) for i in range(5)])
    NPM(encoder, [corpus]).embed("fp32")
    corpus.add([Document(f"b{i}", "", sentences(rng, 3)) for i in range(5)])
    corpus.delete(["b1"])
    expected = NPM(encoder, [corpus]).fill(QUERIES[0], passages=None)

    class Embedding(LocalShards):
        def ask(self, method: str, arguments: Any) -> list[Any]:
            found = super().ask(method, arguments)
            if method == "nearest":
                NPM(encoder, [Corpus.open(corpus.path)]).embed("fp32")
                for shard in self._shards:
                    shard._known.clear()
            return found

    shards = Embedding([Shard(corpus, encoder, [each.name for each in corpus.segments])])
    assert_same(ShardedNPM(encoder, corpus, shards).fill(QUERIES[0], passages=None), expected)


def test_shards_that_forget_work_it_out_again(corpus: Corpus, encoder: TokenEncoder) -> None:
    class Forgetful(LocalShards):
        def ask(self, method: str, arguments: Any) -> list[Any]:
            found = super().ask(method, arguments)
            for shard in self._shards:
                shard._known.clear()
            return found

    names = assigned([each.name for each in corpus.segments], 3)
    shards = Forgetful([Shard(corpus, encoder, each) for each in names])
    for options in ({"passages": None}, {"passages": 3, "passage_share": 0.3}):
        assert_same(
            ShardedNPM(encoder, corpus, shards).fill(QUERIES[0], **options),
            NPM(encoder, [corpus]).fill(QUERIES[0], **options),
        )


def test_many_threads_ask_the_same_shards(corpus: Corpus, encoder: TokenEncoder) -> None:
    """More questions at once than a shard remembers."""
    split = sharded(corpus, encoder, 2)
    expected = split.fill(QUERIES[0], passages=None)
    with ThreadPoolExecutor(24) as pool:
        for found in pool.map(lambda _: split.fill(QUERIES[0], passages=None), range(48)):
            assert_same(found, expected)


def test_a_blank_that_nothing_fills_has_no_answer(corpus: Corpus, encoder: TokenEncoder) -> None:
    everything = corpus.live_rows().tolist()
    assert sharded(corpus, encoder, 2).fill(QUERIES[0], passages=None, exclude=everything) == []


def test_every_segment_is_in_one_shard() -> None:
    names = [f"{n}" for n in range(7)]
    for shards in range(1, 8):
        parts = assigned(names, shards)
        assert [name for part in parts for name in part] == names
        assert len(parts) == shards
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for shards in (0, 8):
        with pytest.raises(InputError, match=f"{shards} shards of 7 segments; choose 1 to 7"):
            assigned(names, shards)


def test_only_the_named_segments_are_needed(tmp_path: Path, encoder: TokenEncoder) -> None:
    """A shard does not mind that another one's segment is not embedded."""
    corpus = Corpus.create(tmp_path / "half.quoth")
    corpus.add([Document("a", "", "Paris is the capital of France.")])
    NPM(encoder, [corpus]).embed("fp32")
    corpus.add([Document(f"b{i}", "", "The raven sat above the door.") for i in range(300)])
    first, second = (Shard(corpus, encoder, [each.name]) for each in corpus.segments)
    assert ShardedNPM(encoder, corpus, LocalShards([first])).fill(QUERIES[0], passages=None)
    with pytest.raises(InputError, match="have no vectors"):
        ShardedNPM(encoder, corpus, LocalShards([first, second])).fill(QUERIES[0], passages=None)
