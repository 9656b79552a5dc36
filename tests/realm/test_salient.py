"""Training examples of REALM: what is hidden, what is shown, and that all of it stands in the passage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.realm.salient import MASKED_SHARE, MAX_SPAN_TOKENS, Masked, MaskedTexts
from quoth.records import Document, TaggedSpan
from quoth.text.boundaries import MAY_END, MAY_START, boundary_flags
from quoth.text.tokenizer import PairTokenizer
from realm_runs import CITIES, TEXT, Names, make_corpus
from tiny import tiny_bert, tiny_roberta

LONG = " ".join(TEXT)


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PairTokenizer:
    folder = request.param(tmp_path_factory.mktemp("tiny"), TEXT)
    return PairTokenizer(AutoTokenizer.from_pretrained(folder), types=False)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus") / "c", [Document("a", "", LONG)])


def draw(texts: MaskedTexts, count: int, seed: int = 0) -> list[Masked]:
    return texts.draw(count, np.random.default_rng(seed))


def unmasked(tokenizer: PairTokenizer, example: Masked) -> list[int]:
    """The example's tokens with what is hidden in its place."""
    ids = np.array(example.ids)
    assert example.masks_M.tolist() == np.flatnonzero(ids == tokenizer.mask_id).tolist()
    ids[example.masks_M] = example.hidden_M
    return ids.tolist()


def stands_in(part: list[int], whole: list[int]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))


@pytest.mark.parametrize("masking", ["salient", "spans", "tokens"])
@pytest.mark.parametrize("room", [8, 62])
def test_an_example_is_a_run_of_its_passage_with_masks(
    tokenizer: PairTokenizer, corpus: Corpus, long: Corpus, masking: str, room: int
) -> None:
    for source in (corpus, long):
        examples = draw(MaskedTexts(source, tokenizer, room, masking, Names()), 40)
        assert len(examples) == 40
        for example in examples:
            ((ids, _),) = tokenizer.pieces([example.passage.text])
            assert len(example.ids) == min(room, len(ids))
            assert stands_in(unmasked(tokenizer, example), ids)
            assert len(example.hidden_M) == len(example.masks_M) > 0
            assert example.passage == source.passage(example.passage.row)
            assert example.answer in example.passage.text
            if masking == "tokens":
                assert len(example.hidden_M) == max(1, round(MASKED_SHARE * len(example.ids)))
            else:
                assert np.diff(example.masks_M).tolist() == [1] * (len(example.masks_M) - 1)
                assert stands_in(example.hidden_M.tolist(), ids)


def test_a_salient_mask_hides_exactly_a_span(tokenizer: PairTokenizer, corpus: Corpus) -> None:
    examples = draw(MaskedTexts(corpus, tokenizer, 62, "salient", Names()), 60)
    names = {*CITIES, *CITIES.values()}
    assert {example.answer for example in examples} <= names
    assert len({example.answer for example in examples}) > len(names) // 2
    for example in examples:
        (alone, spaced) = (tokenizer.pieces([text])[0][0] for text in (example.answer, f" {example.answer}"))
        assert example.hidden_M.tolist() in (alone, spaced)


def test_the_span_stands_in_the_middle_of_what_is_shown(tokenizer: PairTokenizer, long: Corpus) -> None:
    inside = 0
    for example in draw(MaskedTexts(long, tokenizer, 16, "salient", Names()), 40):
        ((ids, _),) = tokenizer.pieces([example.passage.text])
        before, after = int(example.masks_M[0]), 15 - int(example.masks_M[-1])
        if unmasked(tokenizer, example) not in (ids[:16], ids[-16:]):
            assert abs(before - after) <= 1
            inside += 1
    assert inside > 20


def test_random_spans_are_whole_words_of_bounded_length(tokenizer: PairTokenizer, long: Corpus) -> None:
    lengths = []
    for example in draw(MaskedTexts(long, tokenizer, 62, "spans"), 60):
        ((ids, ranges),) = tokenizer.pieces([example.passage.text])
        flags = boundary_flags(example.passage.text, np.array(ranges))
        shown = unmasked(tokenizer, example)
        window = next(i for i in range(len(ids)) if ids[i : i + len(shown)] == shown)
        first, last = window + int(example.masks_M[0]), window + int(example.masks_M[-1])
        assert flags[first] & MAY_START
        assert flags[last] & MAY_END
        lengths.append(last - first + 1)
    assert max(lengths) <= MAX_SPAN_TOKENS
    assert len(set(lengths)) > 3


def test_a_span_longer_than_the_room_is_cut(tokenizer: PairTokenizer, corpus: Corpus) -> None:
    class Everything:
        def spans(self, texts: list[str]) -> list[list[TaggedSpan]]:
            return [[TaggedSpan(0, len(text), "ALL")] for text in texts]

    for example in draw(MaskedTexts(corpus, tokenizer, 5, "salient", Everything()), 10):
        assert example.ids == [tokenizer.mask_id] * 5
        assert example.passage.text.startswith(example.answer)


def test_a_passage_with_nothing_to_hide_gives_no_example(tokenizer: PairTokenizer, tmp_path: Path) -> None:
    documents = [Document("a", "", "Nothing has a name."), Document("b", "", "Paris has one.")]
    texts = MaskedTexts(make_corpus(tmp_path / "c", documents), tokenizer, 62, "salient", Names())
    found = draw(texts, 40)
    assert 0 < len(found) < 40
    assert {example.answer for example in found} == {"Paris"}
    punctuation = make_corpus(tmp_path / "d", [Document("a", "", "... !!!")])
    assert draw(MaskedTexts(punctuation, tokenizer, 62, "spans"), 4) == []


def test_a_mask_that_stands_in_the_text_hides_nothing(tokenizer: PairTokenizer, tmp_path: Path) -> None:
    text = f"The {tokenizer.mask_token} token stands for Paris."
    corpus = make_corpus(tmp_path / "c", [Document("a", "", text)])
    (example,) = draw(MaskedTexts(corpus, tokenizer, 62, "salient", Names()), 1)
    assert example.ids.count(tokenizer.mask_id) == 1 + len(example.masks_M)
    ids = np.array(example.ids)
    ids[example.masks_M] = example.hidden_M
    assert ids.tolist() == tokenizer.pieces([text])[0][0]


def test_the_generator_alone_decides(tokenizer: PairTokenizer, corpus: Corpus) -> None:
    for masking in ("salient", "spans", "tokens"):
        texts = MaskedTexts(corpus, tokenizer, 20, masking, Names())
        first, again, other = ([each.ids for each in draw(texts, 8, seed)] for seed in (1, 1, 2))
        assert first == again != other
    assert texts.draw(3, np.random.default_rng(0), "spans")[0].masks_M.tolist()


def test_deleted_passages_are_not_drawn(tokenizer: PairTokenizer, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c", [Document("a", "", "Paris."), Document("b", "", "Athens.")])
    corpus.delete(["a"])
    texts = MaskedTexts(corpus, tokenizer, 62, "tokens")
    assert {example.passage.document_id for example in draw(texts, 20)} == {"b"}
    corpus.delete(["b"])
    with pytest.raises(InputError, match="no passage to train on; give documents with text"):
        MaskedTexts(corpus, tokenizer, 62, "tokens")
