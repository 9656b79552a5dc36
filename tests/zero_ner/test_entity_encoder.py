"""Entity keys against token vectors pooled by hand; what becomes a key; which recogniser a setting names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from quoth import Corpus, Document, Passage, ZeroNER
from quoth.encoders.tokens import TokenEncoder
from quoth.errors import InputError
from quoth.hub import is_luke, kind_of, locate
from quoth.npm.config import NPMConfig
from quoth.records import TaggedSpan
from quoth.registry import model_config
from quoth.zero_ner.config import ZeroNERConfig
from quoth.zero_ner.keys import EntityEncoder, Range, TokenSpans
from quoth.zero_ner.recognition import ByText, Links, NameList, load_recognizer
from tiny import TEXT, tiny_npm, tiny_roberta

PASSAGES = [
    Passage(0, "a", "Paris", TEXT[1], 0, len(TEXT[1])),
    Passage(1, "b", "", TEXT[3], 7, 7 + len(TEXT[3])),
    Passage(2, "c", "Nothing", "the river runs east", 0, 19),
    Passage(3, "d", "", "", 0, 0),
    Passage(4, "e", "\u200b", "Berlin.", 0, 7),
]


class Capitals:
    """Every word with a capital is a name."""

    name, fingerprint = "capitals", "capitals"

    def names(self, texts: Sequence[str]) -> list[list[TaggedSpan]]:
        return [[TaggedSpan(*found.span(), "X") for found in re.finditer(r"\b[A-Z]\w+", text)] for text in texts]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> TokenEncoder:
    folder = tiny_npm(tmp_path_factory.mktemp("entities") / "npm")
    return TokenEncoder.load(locate(str(folder), NPMConfig))


def encoder(tokens: TokenEncoder, **settings: str) -> EntityEncoder:
    config = ZeroNERConfig(**settings)
    return EntityEncoder(TokenSpans(tokens, config.pooling), ByText(Capitals()), config, "test")


def pooled(tokens: TokenEncoder, text: str, span: Range, pooling: str = "mean") -> NDArray[np.float64]:
    """A span's vector of length 1, from the vectors of the tokens in it."""
    (encoded,) = tokens.passages([text], [""])
    places = [(start, end) for start, end in encoded.tokens.offsets_T2.tolist()]
    inside = [
        v for v, (start, end) in zip(encoded.vectors_TD, places, strict=True) if start < span[1] and end > span[0]
    ]
    chosen = np.array(inside, np.float64)
    vector = np.concatenate([chosen[0], chosen[-1]]) if pooling == "ends" else chosen.mean(axis=0)
    unit: NDArray[np.float64] = vector / np.linalg.norm(vector)
    return unit


@pytest.mark.parametrize(("pooling", "unit_first"), [("mean", True), ("states", False)])
def test_the_mean_is_of_vectors_of_length_1_or_of_the_states(tmp_path: Path, pooling: str, unit_first: bool) -> None:
    """The shipped base scales each token's vector to length 1; `states` takes the mean before that."""
    base = locate(str(tiny_npm(tmp_path / "npm")), NPMConfig)
    assert base.config.normalize
    plain = TokenEncoder.load(replace(base, config=replace(base.config, normalize=False)))
    (tmp_path / "zero").mkdir()
    settings = {"kind": "zero-ner", "base": str(tmp_path / "npm"), "pooling": pooling}
    (tmp_path / "zero" / "quoth.json").write_text(json.dumps(settings), encoding="utf-8")
    zero_ner = ZeroNER.from_pretrained(tmp_path / "zero", recognizer=ByText(Capitals()))
    text = "what is the capital of Germany"
    (encoded,) = plain.passages([text], [""])
    start_T, end_T = encoded.tokens.offsets_T2.T
    states_TD = encoded.vectors_TD[(start_T >= text.index("capital")) & (end_T <= len(text))].astype(np.float64)
    assert len(states_TD) > 1
    if unit_first:
        states_TD = states_TD / np.linalg.norm(states_TD, axis=1, keepdims=True)
    wanted_D = states_TD.mean(axis=0)
    (found_D,) = zero_ner.encoder.vectors([text], [[(text.index("capital"), len(text))]])[0]
    np.testing.assert_allclose(found_D, wanted_D / np.linalg.norm(wanted_D), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "ends"])
@pytest.mark.parametrize("titles", ["passage", "alone", "none"])
def test_keys_are_the_pooled_tokens_of_the_title_and_of_each_name(
    tokens: TokenEncoder, pooling: str, titles: str
) -> None:
    made = encoder(tokens, pooling=pooling, titles=titles)
    found = made.encode(PASSAGES)
    for passage, each in zip(PASSAGES[:4], found[:4], strict=True):
        head = f"{passage.title}. " if passage.title and titles == "passage" else ""
        names = [(s.start, s.end) for s in Capitals().names([passage.text])[0]]
        wanted = [pooled(tokens, head + passage.text, (s + len(head), e + len(head)), pooling) for s, e in names]
        places = names
        if passage.title and titles != "none":
            context = passage.title if titles == "alone" else head + passage.text
            wanted = [pooled(tokens, context, (0, len(passage.title)), pooling), *wanted]
            places = [(0, 0), *names]
        assert each.tokens.offsets_T2.tolist() == [list(place) for place in places]
        assert each.vectors_TD.shape == (len(places), made.dimensions)
        if wanted:
            np.testing.assert_allclose(each.vectors_TD, wanted, atol=1e-5)
    assert [len(each.vectors_TD) for each in found[2:4]] == [titles != "none", 0]


def test_a_title_without_a_token_is_a_key_that_is_near_to_nothing(tokens: TokenEncoder) -> None:
    (found,) = encoder(tokens).encode(PASSAGES[4:])
    assert found.tokens.offsets_T2.tolist() == [[0, 0], [0, 6]]
    assert not found.vectors_TD[0].any()
    assert np.linalg.norm(found.vectors_TD[1]) == pytest.approx(1, abs=1e-6)


def test_no_passage_has_no_keys(tokens: TokenEncoder) -> None:
    assert encoder(tokens).encode([]) == []


def test_a_question_asks_with_its_entity_in_context_alone_or_with_all_words(tokens: TokenEncoder) -> None:
    question = "what is the capital of France?"
    span = (question.index("France"), question.index("?"))
    whole = (0, len(question))
    expected = {"entity": (question, span), "alone": ("France", (0, 6)), "question": (question, whole)}
    for way, (text, place) in expected.items():
        made = encoder(tokens, ask_with=way)
        assert made.asked(question) == [span]
        np.testing.assert_allclose(made.queries(question, [span]), [pooled(tokens, text, place)], atol=1e-5)
        np.testing.assert_allclose(made.words(question), [pooled(tokens, text, place)], atol=1e-5)
    assert encoder(tokens).asked("the river") == [(0, 9)]
    with pytest.raises(InputError, match="has no words; give words"):
        encoder(tokens).queries("a \u200b b", [(2, 3)])


def test_queries_that_tune_the_index_are_entities_in_a_part_of_their_passage(tokens: TokenEncoder) -> None:
    long = "the river runs east " * 20 + "to Paris and on " + "by the tower " * 20
    at = long.index("Paris")
    places = [(long, at, at + 5), (TEXT[2], 0, 6), (TEXT[2], 0, 0), (TEXT[2], 10, 12)]
    found = encoder(tokens).queries_at(iter(places), 3)
    part = long[at - 100 : at + 105]
    wanted = [pooled(tokens, part, (100, 105)), pooled(tokens, TEXT[2][:106], (0, 6))]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert encoder(tokens).queries_at([], 3).shape == (0, 32)


def test_the_fingerprint_names_all_that_changes_keys_and_nothing_else(tokens: TokenEncoder, tmp_path: Path) -> None:
    other = TokenEncoder.load(locate(str(tiny_roberta(tmp_path / "roberta")), NPMConfig))
    config = ZeroNERConfig()
    marks = [
        encoder(tokens).fingerprint,
        encoder(tokens, pooling="ends").fingerprint,
        encoder(tokens, titles="passage").fingerprint,
        encoder(tokens, titles="none").fingerprint,
        EntityEncoder(TokenSpans(tokens, "mean"), Links(), config, "test").fingerprint,
        EntityEncoder(TokenSpans(other, "mean"), ByText(Capitals()), config, "test").fingerprint,
    ]
    assert len(set(marks)) == len(marks)
    assert encoder(tokens, ask_with="alone").fingerprint == marks[0]


def test_links_are_entities_where_a_passage_holds_them_whole() -> None:
    text = "b seine runs slow"
    links = [
        [24, 28, "Slow"],
        [13, 18, "Seine"],
        [2, 9, "before"],
        [9, 12, "cut"],
        [24, 40, "cut"],
        [18, 19, "space"],
        [13, 13, "empty"],
    ]
    passage = Passage(0, "a", "", text, 11, 11 + len(text), {"links": links})
    found = Links().of_passages([passage, Passage(1, "b", "", "x", 0, 1)])
    assert found == [[TaggedSpan(2, 7, "Seine"), TaggedSpan(13, 17, "Slow")], []]
    assert [text[each.start : each.end] for each in found[0]] == ["seine", "slow"]
    assert Links().of_texts(["Paris"]) == [[]]


@pytest.mark.parametrize("link", [[1, 2], "Seine", [5, 3, "x"], [-1, 3, "x"], ["1", 2, "x"], [True, 2, "x"], None])
def test_broken_links_name_their_document(link: object) -> None:
    passage = Passage(0, "page 7", "", "text", 0, 4, {"links": [link]})
    with pytest.raises(InputError, match=r"document 'page 7': link .* is not \[start, end, target\]"):
        Links().of_passages([passage])


def test_no_links_are_none_and_what_is_no_list_is_refused() -> None:
    assert Links().of_passages([Passage(0, "a", "", "text", 0, 4, {"links": None})]) == [[]]
    with pytest.raises(InputError, match=r"document 'a': link 5 is not \[start, end, target\]"):
        Links().of_passages([Passage(0, "a", "", "text", 0, 4, {"links": 5})])


def test_a_setting_names_the_recogniser(tmp_path: Path) -> None:
    corpora = []
    for name, title in (("one", "Eiffel Tower"), ("two", "Seine (river)")):
        corpora.append(Corpus.create(tmp_path / f"{name}.quoth"))
        corpora[-1].add([Document("a", title, TEXT[1])])
    (tmp_path / "names.txt").write_text("Paris\nSeine\n", encoding="utf-8")
    text = TEXT[1]
    expected = {"titles": ["Seine"], str(tmp_path / "names.txt"): ["Paris", "Seine", "Paris"]}
    for name, names in expected.items():
        (found,) = load_recognizer(name, corpora[1:], None, None).of_texts([text])
        assert [text[each.start : each.end] for each in found] == names
    assert isinstance(load_recognizer("links", corpora, None, None), Links)
    tagger = load_recognizer("quoth-tagger", corpora, None, None)
    names = [text[each.start : each.end] for each in tagger.of_passages([PASSAGES[0]])[0]]
    assert names[:2] == ["Paris", "France"]
    first = load_recognizer("titles", corpora[:1], None, None).fingerprint
    assert first == ByText(NameList(["Eiffel Tower"])).fingerprint
    assert first != load_recognizer("titles", corpora[1:], None, None).fingerprint
    for some in ([], corpora):
        with pytest.raises(InputError, match=rf"recognizer 'titles' with {len(some)} corpora; give one, or a file"):
            load_recognizer("titles", some, None, None)


def test_settings_come_from_a_name_a_folder_or_another_encoder(tmp_path: Path) -> None:
    settings = {"kind": "zero-ner", "base": "studio-ousia/luke-base", "joint": False, "recognizer": "links"}
    (tmp_path / "quoth.json").write_text(json.dumps(settings), encoding="utf-8")
    assert locate(str(tmp_path), ZeroNERConfig).config.to_dict().items() >= settings.items()
    (tmp_path / "names.txt").touch()
    beside = {"kind": "zero-ner", "recognizer": "names.txt"}
    (tmp_path / "quoth.json").write_text(json.dumps(beside), encoding="utf-8")
    assert locate(str(tmp_path), ZeroNERConfig).config == ZeroNERConfig(recognizer=str(tmp_path / "names.txt"))
    (tmp_path / "config.json").write_text("[1]", encoding="utf-8")
    assert not is_luke(str(tmp_path))
    assert locate("quoth-zero-ner", ZeroNERConfig).config == ZeroNERConfig()
    assert locate("quoth-mini-base", ZeroNERConfig).config == ZeroNERConfig(base="quoth-mini-base")
    kinds = {str(tmp_path), "quoth-zero-ner", "studio-ousia/luke-base", "studio-ousia/mluke-large"}
    assert {kind_of(each) for each in kinds} == {"zero-ner"}
    assert not is_luke("someone/flukey-model")
    assert kind_of(str(tiny_npm(tmp_path / "npm"))) == "npm"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pooling": "max"}, "pooling is 'max'; it must be one of mean, states, ends"),
        ({"titles": True}, "titles is True; it must be one of alone, passage, none"),
        ({"ask_with": "x"}, "ask_with is 'x'; it must be one of entity, alone, question"),
        ({"base": ""}, "base is ''; it must be a text, not empty"),
        ({"recognizer": None}, "recognizer is None; it must be"),
        ({"joint": 1}, "joint is 1; it must be true or false"),
        ({"max_tokens": 8}, "max_tokens is 8; it must be 16 or more"),
        ({"depth": 3}, "unknown setting 'depth'"),
    ],
)
def test_other_settings_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model_config({"kind": "zero-ner", **values})
