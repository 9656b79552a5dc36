"""Taggers: whole words at exact places of any text, windows, Hugging Face classifiers, the shipped one."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from quoth.arrays import Floats, Ints
from quoth.encoders.transformer import apply_adapter, load_base
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import locate
from quoth.ner.config import TaggerConfig
from quoth.ner.network import TagNetwork
from quoth.ner.tagger import HEAD_FILE, Tagger
from quoth.ner.words import SHAPES, WordTokenizer
from quoth.npm.config import NPMConfig
from quoth.records import TaggedSpan
from quoth.text.boundaries import words
from quoth.text.tokenizer import FastTokenizer, PairArrays
from quoth.training.recipes import run_recipe
from tiny import TEXT, TOKENIZERS, tiny_bert

STRANGE = "Zoë sang in 北京 🙂👩‍👩‍👧, Mu\u0308nchen and café Αθήνα; القاهرة."


def by_shape(labels: dict[str, str]) -> Callable[[PairArrays, Ints], Floats]:
    """A network that knows nothing but shapes: the label of each is given, all others are O."""
    names = ["O", "B-PER", "I-PER"]

    def network(batch: PairArrays, shapes_BT: Ints) -> Floats:
        wanted = [names.index(labels.get(each, "O")) for each in SHAPES] * 2
        return 9 * np.eye(3, dtype=np.float32)[np.array(wanted)[shapes_BT]]

    return network


@pytest.fixture(scope="module", params=TOKENIZERS)
def hf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FastTokenizer:
    return FastTokenizer(TOKENIZERS[request.param](tmp_path_factory.mktemp("model") / request.param))


def shape_tagger(hf: FastTokenizer, max_tokens: int = 64) -> Tagger:
    labels = {"capitalised": "B-PER", "capitals": "I-PER", "uncased": "B-PER"}
    return Tagger(by_shape(labels), WordTokenizer(hf, max_tokens), ["O", "B-PER", "I-PER"], "shapes", "none")


def shown(text: str, spans: list[TaggedSpan]) -> list[str]:
    return [text[each.start : each.end] for each in spans]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny tagger that has learned a few sentences, its base beside it."""
    folder = tmp_path_factory.mktemp("trained")
    tiny_bert(folder / "base")
    lines = [
        "The O",
        "Seine B-LOC",
        "flows O",
        "through O",
        "Paris B-LOC",
        ". O",
        "",
        "Nikos B-PER",
        "Kazantzakis I-PER",
    ]
    (folder / "train").write_text("\n".join([*lines, "was O", "born O", "", ""]) * 4, encoding="utf-8")
    settings = {"epochs": "60", "batch_size": "4", "lora_rank": "4", "learning_rate": "0.01", "bf16": "false"}
    run_recipe("tagger", [str(folder / "train")], folder / "model", settings, model=str(folder / "base"))
    return folder / "model"


def test_spans_by_hand(hf: FastTokenizer) -> None:
    text = "Ada NASA met Poe in 1845."
    assert shape_tagger(hf).spans([text, "", " \n"]) == [
        [TaggedSpan(0, 8, "PER"), TaggedSpan(13, 16, "PER"), TaggedSpan(20, 24, "DATE")],
        [],
        [],
    ]
    assert shape_tagger(hf).spans([text], dates=False) == shape_tagger(hf).names([text])
    assert len(shape_tagger(hf).names([text])[0]) == 2
    assert shape_tagger(hf).spans([]) == []


def test_places_are_characters_of_the_text_itself(hf: FastTokenizer) -> None:
    found = shown(STRANGE, shape_tagger(hf).spans([STRANGE])[0])
    assert found == ["Zoë", "北", "京", "Mu\u0308nchen", "Αθήνα", "القاهرة"]


def test_a_longer_date_wins_over_a_name_and_a_longer_name_over_a_date(hf: FastTokenizer) -> None:
    tagger = shape_tagger(hf)
    assert tagger.spans(["5 May 1999"]) == [[TaggedSpan(0, 10, "DATE")]]
    assert tagger.spans(["April NATO"]) == [[TaggedSpan(0, 10, "PER")]]
    assert tagger.spans(["April"]) == [[TaggedSpan(0, 5, "PER")]]


@given(st.lists(st.text(max_size=40), max_size=4))
@settings(max_examples=40)
def test_spans_are_whole_words_in_order(hf: FastTokenizer, texts: list[str]) -> None:
    tagger = shape_tagger(hf)
    for text, spans in zip(texts, tagger.spans(texts), strict=True):
        starts, ends = {start for start, _ in words(text)}, {end for _, end in words(text)}
        assert all(each.start in starts and each.end in ends for each in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))


def test_no_text_and_no_span_is_lost_between_windows(hf: FastTokenizer) -> None:
    text = "raven Ada NASA CAFE sat; " * 40
    whole, parts = shape_tagger(hf, 4000), shape_tagger(hf, 24)
    assert parts.spans([text]) == whole.spans([text])
    assert shown(text, parts.spans([text])[0]) == ["Ada NASA CAFE"] * 40


def test_a_trained_tagger_is_loaded_as_it_was(trained: Path) -> None:
    tagger = Tagger.load(trained)
    river, poet = tagger.names(["The Seine flows through Paris .", "Nikos Kazantzakis was born"])
    assert river == [TaggedSpan(4, 9, "LOC"), TaggedSpan(24, 29, "LOC")]
    assert poet == [TaggedSpan(0, 17, "PER")]
    assert tagger.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert tagger.fingerprint == Tagger.load(trained).fingerprint


def test_a_tagger_stays_in_fp32(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The Seine flows through Paris .", "Nikos Kazantzakis was born"]
    expected = Tagger.load(trained).spans(texts)
    monkeypatch.setenv("QUOTH_DTYPE", "bf16")  # as "auto" takes on some processors
    assert Tagger.load(trained).spans(texts) == expected


def test_batches_do_not_change_the_answer(trained: Path) -> None:
    tagger = Tagger.load(trained)
    texts = [*TEXT, TEXT[3] * 30, "", TEXT[1]]
    assert tagger.spans(texts) == [tagger.spans([text])[0] for text in texts]


def test_the_network_that_was_trained_gives_the_same(trained: Path) -> None:
    ids, mask, shapes = np.array([[2, 9, 30, 3]]), np.ones((1, 4), np.int64), np.array([[0, 11, 2, 0]])
    found = Tagger.load(trained)._network(PairArrays(ids, mask, None), shapes)
    plain, _ = load_base(locate(str(trained.parent / "base"), NPMConfig).encoder)
    apply_adapter(plain, trained)
    network = TagNetwork(plain, found.shape[-1]).eval()
    network.load_state_dict({name: weight.float() for name, weight in load_file(trained / HEAD_FILE).items()}, False)
    with torch.no_grad():
        expected = network(*map(torch.from_numpy, (ids, mask, shapes)))
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5, rtol=0)


def test_a_tagger_of_other_parts_is_refused(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained, folder)
    weights = load_file(folder / HEAD_FILE)
    save_file({**weights, "head.bias": weights["head.bias"][:2].contiguous()}, folder / HEAD_FILE)
    with pytest.raises(ModelNotFoundError, match="name the base and labels it was trained with"):
        Tagger.load(folder)
    (folder / HEAD_FILE).write_bytes(b"nonsense")
    with pytest.raises(ModelNotFoundError, match=r"tagger\.safetensors cannot be read .*; fetch or train it again"):
        Tagger.load(folder)
    (folder / "quoth.json").write_text('{"kind": "npm"}')
    with pytest.raises(InputError, match="is of kind 'npm'; kind 'tagger' is required here"):
        Tagger.load(folder)
    with pytest.raises(InputError, match="is of kind 'tagger'; kind 'npm' is required here"):
        locate(str(trained), NPMConfig)


def test_settings_of_a_tagger() -> None:
    config = TaggerConfig.from_dict(json.loads(json.dumps(TaggerConfig(base="x", labels=("O", "PER")).to_dict())))
    assert config.labels == ("O", "PER")
    for labels in ((), [1], "O"):
        with pytest.raises(InputError, match="it must be a list of texts"):
            TaggerConfig(labels=labels)
    with pytest.raises(InputError, match="max_tokens is 3; it must be 16 or more"):
        TaggerConfig(labels=("O",), max_tokens=3)


@pytest.mark.parametrize("labels", [["O", "B-PER", "I-PER"], ["O", "PER"], ["I-PER", "O"]])
def test_a_token_classifier_of_hugging_face(tmp_path: Path, labels: list[str]) -> None:
    from transformers import BertConfig, BertForTokenClassification

    tiny_bert(tmp_path)
    config = BertConfig.from_pretrained(tmp_path, id2label=dict(enumerate(labels)))
    torch.manual_seed(0)
    model = BertForTokenClassification(config)
    model.bert.load_state_dict(load_base(locate(str(tmp_path), NPMConfig).encoder)[0].state_dict(), strict=False)
    model.save_pretrained(tmp_path)
    tagger = Tagger.load(str(tmp_path))
    assert tagger.labels == tuple(labels)
    long = " ".join(TEXT) * 10
    for text, spans in zip([STRANGE, long], tagger.spans([STRANGE, long]), strict=True):
        assert all(each.label in ("PER", "DATE") for each in spans)
        assert all(text[each.start : each.end].strip() for each in spans)
    ids = np.array(tagger._tokenizer.before + tagger._tokenizer.texts(["Paris"])[0].ids_T.tolist())
    with torch.no_grad():
        row = model.eval()(input_ids=torch.from_numpy(np.append(ids, tagger._tokenizer.after))[None]).logits[0, 1]
    wanted = [[TaggedSpan(0, 5, "PER")]] if labels[int(row.argmax())] != "O" else [[]]
    assert tagger.names(["Paris"]) == wanted


def test_mistakes(hf: FastTokenizer, tmp_path: Path) -> None:
    tiny_bert(tmp_path)
    with pytest.raises(
        ModelNotFoundError, match="is a BertModel; a tagger must be a token classifier: name quoth-tagger"
    ):
        Tagger.load(tmp_path)
    with pytest.raises(ModelNotFoundError, match="cannot be loaded"):
        Tagger.load(tmp_path / "nowhere")
    with pytest.raises(ModelNotFoundError, match="tagger 'quoth-tager' not found; name quoth-tagger, a folder"):
        Tagger.load("quoth-tager")
    with pytest.raises(InputError, match="device 'gpu9' is not available"):
        Tagger.load(device="gpu9")
    with pytest.raises(InputError, match=r"texts is a string; it must be a list of texts"):
        shape_tagger(hf).spans("Ada")


def test_the_shipped_tagger_finds_obvious_names() -> None:
    tagger = Tagger.load()
    text = (
        "On 4 October 1998 Elena Petrova left Microsoft and moved from Toronto to Lisbon, "
        "where she still plays the piano on Sundays."
    )
    found = {(text[each.start : each.end], each.label) for each in tagger.spans([text])[0]}
    assert found == {
        ("4 October 1998", "DATE"),
        ("Elena Petrova", "PER"),
        ("Microsoft", "ORG"),
        ("Toronto", "LOC"),
        ("Lisbon", "LOC"),
    }
