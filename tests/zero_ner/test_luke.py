"""LUKE: vectors of spans and names, against the published classes of transformers called directly."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import AutoTokenizer, LukeConfig, LukeForEntitySpanClassification, LukeModel

from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import EncoderSource
from quoth.records import TaggedSpan
from quoth.text.boundaries import words
from quoth.zero_ner.luke import MAX_ENTITIES, LukeSpans
from quoth.zero_ner.luke_tagger import MAX_ENTITIES as MAX_TAGGED
from quoth.zero_ner.luke_tagger import LukeTagger, best_spans
from tiny import SHAPE, TEXT, random_model, tiny_bert

ENTITIES = {"[PAD]": 0, "[UNK]": 1, "Paris": 2, "[MASK2]": 3, "Berlin": 4, "[MASK]": 5}
MENTION = 30
LABELS = ("NIL", "PER", "LOC")
Span = tuple[int, int]


def tiny_luke(folder: Path, seed: int = 0, kind: Any = LukeModel, labels: Sequence[str] = LABELS) -> Path:
    """A random LUKE with byte-level BPE, its files laid out as the published ones' are."""
    folder.mkdir(parents=True, exist_ok=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<ent>", "<ent2>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.model.save(str(folder))
    (folder / "entity_vocab.json").write_text(json.dumps(ENTITIES))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LukeTokenizer"}))
    config = LukeConfig(
        vocab_size=tokenizer.get_vocab_size(),
        entity_vocab_size=len(ENTITIES),
        entity_emb_size=16,
        id2label=dict(enumerate(labels)),
        **SHAPE,
    )
    random_model(kind, config, seed).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_luke(tmp_path_factory.mktemp("luke"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_luke(tmp_path_factory.mktemp("classifier"), kind=LukeForEntitySpanClassification)


def load(folder: Path, **options: Any) -> LukeSpans:
    return LukeSpans.load(EncoderSource(str(folder)), **options)


def ranges(text: str, *phrases: str) -> list[Span]:
    return [(text.index(each), text.index(each) + len(each)) for each in phrases]


@torch.no_grad()
def published(folder: Path, text: str, spans: list[Span]) -> np.ndarray:
    """The vectors as LukeTokenizer and LukeModel make them."""
    inputs = AutoTokenizer.from_pretrained(folder)(text, entity_spans=spans, return_tensors="pt")
    return LukeModel.from_pretrained(folder).eval()(**inputs).entity_last_hidden_state[0].numpy()


@torch.no_grad()
def by_places(model: Any, ids: Sequence[int], places: Sequence[Span]) -> Any:
    """What a model of transformers makes of an input of these ids with [MASK] entities at these places."""
    position_ids = torch.full((1, len(places), MENTION), -1)
    for entity, (first, after) in enumerate(places):
        shown = range(first, after)[:MENTION]
        position_ids[0, entity, : len(shown)] = torch.tensor(shown)
    masks = torch.full((1, len(places)), ENTITIES["[MASK]"])
    values = {"input_ids": torch.tensor([list(ids)]), "entity_ids": masks, "entity_position_ids": position_ids}
    if isinstance(model, LukeForEntitySpanClassification):
        values["entity_start_positions"] = torch.tensor([[first for first, _ in places]])
        values["entity_end_positions"] = torch.tensor([[after - 1 for _, after in places]])
    return model.eval()(**values)


def close(found: np.ndarray, wanted: np.ndarray | Tensor) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.asarray(wanted), atol=1e-5, rtol=0)


SHORT = [
    (TEXT[1], ranges(TEXT[1], "Paris", "Seine", "Eiffel Tower", "the capital of France", "Paris is")),
    (TEXT[4], ranges(TEXT[4], "Seoul", "서울", "القاهرة", "दिल्ली", "Korea, Beijing (北京)")),
    (TEXT[5], ranges(TEXT[5], "café", "München", "naïve poets")),
    ("  Mu\u0308nchen  grüßt\n Zoë 🙂 .", [(2, 10), (12, 17), (19, 22), (23, 24), (2, 22)]),
]


@pytest.mark.parametrize(("text", "spans"), SHORT)
def test_vectors_are_those_of_the_published_classes(folder: Path, text: str, spans: list[Span]) -> None:
    close(load(folder).spans([text], [spans])[0], published(folder, text, spans))


@pytest.mark.parametrize(("text", "spans"), SHORT)
def test_spans_alone_are_one_call_each(folder: Path, text: str, spans: list[Span]) -> None:
    alone = load(folder, joint=False).spans([text], [spans])[0]
    close(alone, np.concatenate([published(folder, text, [span]) for span in spans]))
    assert np.abs(alone - load(folder).spans([text], [spans])[0]).max() > 1e-3


def test_texts_of_any_order_and_company_get_the_same_vectors(folder: Path) -> None:
    model = load(folder)
    texts, spans = [text for text, _ in SHORT], [spans for _, spans in SHORT]
    texts, spans = [*texts, "", TEXT[0] * 20], [*spans, [], ranges(TEXT[0], "raven", "Pallas")]
    wanted = [model.spans([text], [each])[0] for text, each in zip(texts, spans, strict=True)]
    for order in (range(len(texts)), reversed(range(len(texts)))):
        rows = list(order)
        for row, found in zip(rows, model.spans([texts[i] for i in rows], [spans[i] for i in rows]), strict=True):
            close(found, wanted[row])
    assert wanted[-2].shape == (0, model.dimensions) == (0, SHAPE["hidden_size"])
    assert model.spans([], []) == []


def test_many_spans_are_shared_out_among_passes_in_order(folder: Path) -> None:
    text = " ".join(TEXT[:3])
    spans = words(text)
    assert MAX_ENTITIES < len(spans) <= 2 * MAX_ENTITIES
    half = -(-len(spans) // 2)
    tokens = AutoTokenizer.from_pretrained(folder)(text, entity_spans=spans)
    places = [(row[0], max(row) + 1) for row in tokens["entity_position_ids"]]
    hf = LukeModel.from_pretrained(folder)
    found = load(folder).spans([text], [spans])[0]
    for part in (slice(half), slice(half, None)):
        close(found[part], by_places(hf, tokens["input_ids"], places[part]).entity_last_hidden_state[0])


def test_a_span_of_a_long_text_is_read_in_the_window_where_it_is_farthest_from_a_cut(folder: Path) -> None:
    text = " of the capital" * 50
    found, ids = words(text), AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == len(found) == 150
    model, plain = load(folder, max_tokens=64), LukeModel.from_pretrained(folder)
    windows = {0: (0, 62), 47: (47, 109), 94: (94, 150)}
    for first, window in ((0, 0), (40, 0), (52, 0), (54, 47), (80, 47), (99, 47), (101, 94), (148, 94)):
        start, end = windows[window]
        places = [(first + 1 - start, first + 3 - start)]
        wanted = by_places(plain, [0, *ids[start:end], 2], places).entity_last_hidden_state[0]
        close(model.spans([text], [[(found[first][0], found[first + 1][1])]])[0], wanted)


def test_a_span_longer_than_a_mention_or_a_window_is_clipped(folder: Path) -> None:
    text = " of the capital" * 14
    ids, hf = AutoTokenizer.from_pretrained(folder)(text)["input_ids"], LukeModel.from_pretrained(folder)
    assert len(ids) == 44 > MENTION + 2
    wanted = by_places(hf, ids, [(1, 1 + MENTION)]).entity_last_hidden_state[0]
    close(load(folder).spans([text], [[(0, len(text))]])[0], wanted)
    wanted = by_places(hf, [*ids[:19], 2], [(5, 19)]).entity_last_hidden_state[0]
    close(load(folder, max_tokens=20).spans([text], [[(words(text)[4][0], words(text)[23][1])]])[0], wanted)


def test_an_input_is_never_longer_than_the_encoder_takes(folder: Path) -> None:
    longest = SHAPE["max_position_embeddings"] - 2
    text = "a b " * longest
    found = load(folder, max_tokens=10_000).spans([text], [[(0, 1)]])[0]
    ids = AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"][: longest - 2]
    wanted = by_places(LukeModel.from_pretrained(folder), [0, *ids, 2], [(1, 2)]).entity_last_hidden_state[0]
    close(found, wanted)


def test_the_fingerprint_names_weights_and_settings(folder: Path, tmp_path: Path) -> None:
    wanted = load(folder).fingerprint
    assert load(folder).fingerprint == load(folder, max_tokens=256).fingerprint == wanted
    others = [load(folder, joint=False), load(folder, max_tokens=64), load(tiny_luke(tmp_path, seed=1))]
    assert len({wanted, *(each.fingerprint for each in others)}) == 4


def test_a_checkpoint_without_a_pooler_has_one_fingerprint(folder: Path, tmp_path: Path) -> None:
    tiny_luke(tmp_path)
    LukeModel.from_pretrained(folder, add_pooling_layer=False).save_pretrained(tmp_path)
    assert load(tmp_path).fingerprint == load(tmp_path).fingerprint == load(folder).fingerprint


def test_spans_without_a_token_are_zeros_and_disturb_no_other(folder: Path) -> None:
    model = load(folder)
    empty = [(6, 6), (3, 4), (4, 5), (9, 9)]
    (found,), (alone,) = (
        model.spans(["One  even"], [[empty[0], (0, 3), *empty[1:]]]),
        model.spans(["One  even"], [[(0, 3)]]),
    )
    np.testing.assert_allclose(found[1], alone[0], atol=1e-6)
    assert alone.any()
    assert not np.delete(found, 1, axis=0).any()
    assert not model.spans(["", "  "], [[(0, 0)], [(0, 2)]])[1].any()


def test_spans_outside_of_their_text_are_refused(folder: Path) -> None:
    model = load(folder)
    for span in ((7, 6), (-3, 3), (0, 10), (9, 12)):
        with pytest.raises(InputError, match=r"span \(.*\) must lie within the text, 0 to 9"):
            model.spans(["One  even"], [[(0, 3), span]])
    with pytest.raises(InputError, match="1 lists of spans for 2 texts; give one list per text"):
        model.spans(["One", "two"], [[]])
    with pytest.raises(InputError, match=r"texts is a string; it must be a list of texts"):
        model.spans("One", [[]])


def test_models_of_another_kind_are_refused(folder: Path, classifier: Path, tmp_path: Path) -> None:
    tiny_bert(tmp_path / "bert")
    with pytest.raises(ModelNotFoundError, match="is a BertModel; name a LukeModel such as studio-ousia/luke-b"):
        load(tmp_path / "bert")
    with pytest.raises(ModelNotFoundError, match=r"nowhere' cannot be loaded: .*; name a folder or a hub id"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelNotFoundError, match="is a LukeModel; name a LukeForEntitySpanClassification"):
        LukeTagger.load(folder)
    with pytest.raises(InputError, match="device 'gpu9' is not available"):
        LukeTagger.load(classifier, device="gpu9")
    with pytest.raises(InputError, match="labels A, B; spans that are not names need the label NIL or O"):
        LukeTagger.load(tiny_luke(tmp_path / "ab", kind=LukeForEntitySpanClassification, labels=["A", "B"]))
    tiny_luke(tmp_path / "vocab")
    (tmp_path / "vocab" / "entity_vocab.json").write_text(json.dumps({**ENTITIES, "[MASK]": 99}))
    with pytest.raises(ModelNotFoundError, match=r"has 6 entities, but its tokenizer calls \[MASK\] entity 99"):
        load(tmp_path / "vocab")


def test_scores_are_those_of_the_published_class(classifier: Path) -> None:
    text = "Nikos Kazantzakis was born in Heraklion (Ηράκλειο)."
    found = words(text)
    spans = [(start, end) for i, (start, _) in enumerate(found) for _, end in found[i : i + 16]]
    inputs = AutoTokenizer.from_pretrained(classifier, task="entity_span_classification")(
        text, entity_spans=spans, return_tensors="pt"
    )
    with torch.no_grad():
        wanted = LukeForEntitySpanClassification.from_pretrained(classifier).eval()(**inputs).logits[0]
    [(spans_S2, scores_SL)] = LukeTagger.load(classifier)._scored([text])
    assert [tuple(each) for each in spans_S2.tolist()] == spans
    close(scores_SL, wanted)


def test_names_are_the_surest_spans_without_overlap(classifier: Path) -> None:
    tagger = LukeTagger.load(classifier)
    texts = [*TEXT[1:4], "", " \n", TEXT[5] * 2]
    for text, names, (spans_S2, scores_SL) in zip(texts, tagger.names(texts), tagger._scored(texts), strict=True):
        left = [
            (float(scores.max()), int(start), int(end), tagger.labels[int(scores.argmax())])
            for (start, end), scores in zip(spans_S2, scores_SL, strict=True)
        ]
        left = [each for each in left if each[3] != "NIL"]
        wanted = []
        while left:
            _, start, end, label = max(left, key=lambda each: each[0])
            wanted.append(TaggedSpan(start, end, label))
            left = [each for each in left if each[2] <= start or each[1] >= end]
        assert names == sorted(wanted, key=lambda each: each.start)
        assert all(a.end <= b.start for a, b in pairwise(names))
        assert bool(names) == bool(text.strip())
    assert tagger.names([]) == []


def test_spans_of_a_long_text_are_scored_in_their_window_and_in_passes_of_a_bounded_number(classifier: Path) -> None:
    text = " of the capital" * 130
    found, ids = words(text), AutoTokenizer.from_pretrained(classifier)(text)["input_ids"][1:-1]
    room = SHAPE["max_position_embeddings"] - 2 - 2
    assert len(ids) == len(found) == 390 < room + room * 3 // 4
    [(spans_S2, scores_SL)] = LukeTagger.load(classifier)._scored([text])
    places = [(i, j) for i in range(len(found)) for j in range(i + 1, min(i + 16, len(found)) + 1)]
    assert spans_S2.tolist() == [[found[i][0], found[j - 1][1]] for i, j in places]
    start = room - room // 4
    second = [span for span, (i, j) in enumerate(places) if i - start > room - j]
    share = -(-len(second) // MAX_TAGGED)
    chunk = np.array_split(second, share)[3]
    assert len(chunk) <= MAX_TAGGED
    shifted = [(places[span][0] - start + 1, places[span][1] - start + 1) for span in chunk]
    hf = LukeForEntitySpanClassification.from_pretrained(classifier)
    close(scores_SL[chunk], by_places(hf, [0, *ids[start:], 2], shifted).logits[0])


def test_greedy_choice_by_hand() -> None:
    spans = np.array([(0, 3), (0, 7), (4, 7), (8, 9), (10, 12)])
    scores = np.array([[0, 5, 0], [0, 4, 0], [0, 0, 3], [9, 1, 1], [0, 0, 1]], np.float32)
    assert best_spans(spans, scores, LABELS, "NIL") == [
        TaggedSpan(0, 3, "PER"),
        TaggedSpan(4, 7, "LOC"),
        TaggedSpan(10, 12, "LOC"),
    ]
    scores[1, 2] = 5
    assert best_spans(spans, scores, LABELS, "NIL")[0] == TaggedSpan(0, 3, "PER"), "of equal ones the first"
    scores[1, 2] = 6
    assert best_spans(spans, scores, LABELS, "NIL") == [TaggedSpan(0, 7, "LOC"), TaggedSpan(10, 12, "LOC")]


def test_the_taggers_fingerprint_names_weights_and_labels(classifier: Path, tmp_path: Path) -> None:
    kind = LukeForEntitySpanClassification
    others = [
        tiny_luke(tmp_path / "seed", seed=1, kind=kind),
        tiny_luke(tmp_path / "o", kind=kind, labels=["O", "PER", "LOC"]),
    ]
    assert LukeTagger.load(classifier).fingerprint == LukeTagger.load(str(classifier)).fingerprint
    assert len({LukeTagger.load(each).fingerprint for each in (classifier, *others)}) == 3
    assert LukeTagger.load(others[1]).labels == ("O", "PER", "LOC")
