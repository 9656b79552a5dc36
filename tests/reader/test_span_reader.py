"""The reader: its network by brute force, windows, what several passages say together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from quoth.answers.evidence import Source, Spans, predict_spans
from quoth.encoders.transformer import pair_batch
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import ModelSource, locate
from quoth.reader.config import NEVER, ReaderConfig
from quoth.reader.network import EndsHead, SpanReaderModel
from quoth.reader.runtime import open_reader
from quoth.reader.spans import SpanReader, legal_spans, merged, query_ids, windows, with_whole
from quoth.reader.weights import load_reader, save_reader
from quoth.records import Passage
from quoth.text.boundaries import BREAK_BEFORE, MAY_END, MAY_START
from quoth.text.passages import is_balanced
from quoth.text.tokenizer import PairTokenizer, Tokens
from tiny import TEXT, tiny_bert, tiny_mpnet, tiny_roberta

SMALL: dict[str, Any] = {
    "query_tokens": 16,
    "title_tokens": 4,
    "max_tokens": 64,
    "overlap": 12,
    "span_width": 5,
    "span_hidden": 8,
}


def passage(text: str, title: str = "", row: int = 0) -> Passage:
    return Passage(row, f"d{row}", title, text, 100, 100 + len(text))


def make_reader(folder: Path, head: str = "ends", base: Any = tiny_bert, **settings: Any) -> SpanReader:
    """A reader with random heads that tell tokens apart."""
    config = ReaderConfig(**{**SMALL, "head": head, "base": str(folder), **settings})
    torch.manual_seed(3)
    model, tokenizer = load_reader(ModelSource("tiny", config, None, str(base(folder))))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith(("span.", "none.")):
                weight.copy_(torch.randn(weight.shape))
    return SpanReader(model, tokenizer)


def test_a_line_that_ends_without_punctuation_is_shown_to_end(tmp_path: Path) -> None:
    text = "cake\n- 120 g sugar\n- 3 eggs.\ntown: riga | mayor: anna\nend"
    own = make_reader(tmp_path / "b", base=lambda folder: tiny_bert(folder, [text, "; who"]))
    body = Tokens.of(text, own.tokenizer.pieces([text])[0])
    [shown] = windows(own.tokenizer, own.config, query_ids(own.tokenizer, "who", 16), [], body)
    said = [own.tokenizer.hf.backend_tokenizer.id_to_token(int(i)) for i in shown.pair.ids_T[shown.body : -1]]
    lines = "cake ; - 120 g sugar ; - 3 eggs . town : riga | mayor : anna ; end"
    assert said == lines.split()
    marks = [t for t, token in enumerate(said) if token == ";"]
    assert [tuple(shown.offsets_T2[t]) for t in marks] == [(at, at) for at in (4, 18, 53)]
    assert [text[start:end] for start, end in shown.offsets_T2 if start < end] == [t for t in said if t != ";"]
    legal_TW = legal_spans(shown, 20)
    for t in marks:
        assert not legal_TW[t].any(), "no answer starts with a mark"
        assert not any(legal_TW[first, t - first :].any() for first in range(t)), "nor ends with it, nor crosses it"


@pytest.fixture(scope="module", params=["ends", "mlp"])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SpanReader:
    return make_reader(tmp_path_factory.mktemp("base") / "b", request.param)


def brute(reader: SpanReader, query: str, shown: Passage) -> dict[tuple[int, int], float]:
    """The odds of every legal span of a passage that fits one input, in float64, one after another."""
    ids = query_ids(reader.tokenizer, query, reader.config.query_tokens)
    [body], [(title, _)] = (
        reader.tokenizer.pieces([shown.text]),
        reader.tokenizer.pieces([f"{shown.title}." if shown.title else ""]),
    )
    [window] = windows(reader.tokenizer, reader.config, ids, title, Tokens.of(shown.text, body))
    model = reader.model.double()
    try:
        batch = pair_batch(reader.tokenizer, [window.pair], torch.device("cpu"))
        with torch.no_grad():
            states_TH = model.encoder(**batch).last_hidden_state[0]
            none = float(model.none(states_TH[0]))
            spans_TW = model.span(states_TH[None])[0]
    finally:
        reader.model.float()
    found = {}
    for t, flag in enumerate(window.flags_T):
        for w in range(reader.config.span_width):
            if t + w >= len(window.flags_T) or not flag & MAY_START or not window.flags_T[t + w] & MAY_END:
                continue
            if any(window.flags_T[i] & BREAK_BEFORE for i in range(t + 1, t + w + 1)):
                continue
            place = int(window.offsets_T2[t, 0]), int(window.offsets_T2[t + w, 1])
            found[place] = float(spans_TW[window.body + t, w]) - none
    return found


def mentions(places: Sequence[tuple[int, int, int, str, float]]) -> dict[str, float]:
    """The probability of each text with those it absorbs, the most probable first: texts with a span inside of one of
    its own, or around one, one of the two at least half as long as the other. A place has its
    passage, start, end, text and the text's probability."""
    own = {text: probability for *_, text, probability in places}
    left, sums = sorted(own, key=lambda text: (not is_balanced(text), -own[text])), dict[str, float]()
    while left:
        absorbed = {left[0]}
        for n, a, b, text, _ in places:
            for m, c, d, other, _ in places:
                nested = n == m and ((a <= c and d <= b) or (c <= a and b <= d))
                if text == left[0] and nested and 2 * min(b - a, d - c) >= max(b - a, d - c):
                    absorbed.add(other)
        sums[left[0]] = sum(own[text] for text in absorbed & {*left})
        left = [text for text in left if text not in absorbed]
    return sums


def test_shapes_of_the_ends_head() -> None:
    scores_BTW = EndsHead(8, 3)(torch.zeros(2, 5, 8))
    assert scores_BTW.shape == (2, 5, 3)
    assert (scores_BTW[:, 4, 1:] <= NEVER).all()


def test_values_of_the_ends_head_by_hand() -> None:
    head = EndsHead(2, 2)
    with torch.no_grad():
        head.ends.weight.copy_(torch.eye(2))
        head.ends.bias.zero_()
    # start logits 1, 2, 3; end logits 10, 20, 30
    scores_TW = head(torch.tensor([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]]))[0]
    assert scores_TW[:, 0].tolist() == [11, 22, 33]
    assert scores_TW[:2, 1].tolist() == [21, 32]


QUERY = "What is the capital of France?"
BLANK = "Paris is the [MASK] of France."


@pytest.mark.parametrize("query", [QUERY, BLANK])
def test_spans_equal_the_brute_force(reader: SpanReader, query: str) -> None:
    shown = [passage(TEXT[1], "Paris"), passage("Area: 13,676 km\nLand: 40%", row=1)]
    [found] = reader.read([query], [shown])
    for each, spans in zip(shown, found, strict=True):
        expected = brute(reader, query, each)
        total = math.log(sum(map(math.exp, expected.values())))
        assert spans.total == pytest.approx(total, abs=1e-3)
        places = list(zip(spans.start_C.tolist(), spans.end_C.tolist(), strict=True))
        best = sorted(expected, key=lambda place: -expected[place])[: len(places)]
        assert len(places) == min(64, len(expected))
        assert {expected[place] for place in best} == {expected[place] for place in places}
        for place, odds in zip(places, spans.odds_C.tolist(), strict=True):
            assert odds == pytest.approx(expected[place], abs=1e-3)


def test_answers_equal_the_brute_force(reader: SpanReader) -> None:
    shown = [passage(TEXT[1][:31], "Paris"), passage("paris  is THE capital.", row=1)]
    [found] = reader.read([QUERY], [shown])
    places: dict[str, list[float]] = defaultdict(list)
    for each in shown:
        for (start, end), odds in brute(reader, QUERY, each).items():
            places[" ".join(each.text[start:end].split()).casefold()].append(math.exp(odds))
    total = 1 + sum(map(sum, places.values()))
    answers = predict_spans([Source(each, "c") for each in shown], found, 1000, distinct=False)
    assert len(answers) == len(places) > 10
    for answer in answers:
        assert answer.probability == pytest.approx(sum(places[answer.text.casefold()]) / total, rel=1e-3)
        assert sum(each.score for each in answer.evidence) == pytest.approx(answer.probability)
        for each in answer.evidence:
            said = shown[each.passage].text[each.start - 100 : each.end - 100]
            assert " ".join(said.split()).casefold() == answer.text.casefold()
    assert len(next(each for each in answers if each.text.casefold() == "paris is the").evidence) == 2


def test_of_answers_that_overlap_the_best_is_listed(reader: SpanReader) -> None:
    shown = [passage(TEXT[1], "Paris"), passage(TEXT[2], row=1)]
    [found] = reader.read([QUERY], [shown])
    sources = [Source(each, "c") for each in shown]
    every = predict_spans(sources, found, 1000, distinct=False)
    listed = predict_spans(sources, found, 5)
    assert len(listed) == 5
    places = [(e.passage, e.start, e.end, each.text, each.probability) for each in every for e in each.evidence]
    sums = mentions(places)
    taken: list[tuple[int, int, int]] = []
    for name in sorted(sums, key=lambda name: -sums[name]):
        answer = next(each for each in every if each.text == name)
        best = answer.evidence[0]
        if ". " in answer.text:  # the texts have no abbreviations
            continue
        if not any(best.passage == p and best.start < e and s < best.end for p, s, e in taken):
            taken.append((best.passage, best.start, best.end))
            if len(taken) <= 5:
                given = listed[len(taken) - 1]
                # The slightest texts are not absorbed.
                assert (given.text, given.probability) == (answer.text, pytest.approx(sums[name], rel=0.02))


def test_no_answer_is_lost_at_the_edge_of_a_window(reader: SpanReader) -> None:
    text = " ".join(TEXT[:4] * 2)
    ids = query_ids(reader.tokenizer, QUERY, 16)
    [body] = reader.tokenizer.pieces([text])
    shown = windows(reader.tokenizer, reader.config, ids, [], Tokens.of(text, body))
    assert len(shown) > 2
    assert max(len(each.pair.ids_T) for each in shown) <= reader.config.max_tokens
    width = reader.config.span_width
    for first in range(len(body[0])):
        for last in range(first, min(first + width, len(body[0]))):
            start, end = body[1][first][0], body[1][last][1]
            assert any(each.offsets_T2[0, 0] <= start and end <= each.offsets_T2[-1, 1] for each in shown)
    # A word at a window's edge is not taken for its beginning.
    for each in shown:
        for flag, (_, end) in zip(each.flags_T, each.offsets_T2.tolist(), strict=True):
            if flag & MAY_END and end < len(text):
                assert not (text[end - 1].isalnum() and text[end].isalnum())


def test_a_span_in_two_windows_counts_once(reader: SpanReader) -> None:
    [[spans]] = reader.read([QUERY], [[passage(" ".join(TEXT[:4]))]])
    places = list(zip(spans.start_C.tolist(), spans.end_C.tolist(), strict=True))
    assert len(places) == len(set(places)) > 64
    assert np.isfinite(spans.total)
    assert spans.total >= spans.odds_C.max()


def test_each_query_is_read_until_the_rest_cannot_change_its_answer(
    reader: SpanReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve passages of one word each: odds 1, but 100 where the query's word is; unread ones may have 2 each."""
    sources = [Source(passage(f"word{n}", row=n), "c") for n in range(12)]
    shown: list[dict[str, list[int]]] = []

    def read(queries: list[str], passages: list[list[Passage]], known: Any) -> list[list[Spans]]:
        shown.append({query: [p.row for p in group] for query, group in zip(queries, passages, strict=True)})
        return [
            [
                Spans(np.array([0]), np.array([len(p.text)]), np.log([100.0 if p.text == query else 1.0]), 0)
                for p in group
            ]
            for query, group in zip(queries, passages, strict=True)
        ]

    monkeypatch.setattr(reader, "read", read)
    monkeypatch.setattr(reader, "config", replace(reader.config, unread_bound=math.log(2)))
    queries = ["word6", "word0", "nothing"]
    first, second, third = list(range(4)), list(range(4, 8)), list(range(8, 12))
    found = reader.read_enough(queries, [sources] * 3)
    assert shown == [dict.fromkeys(queries, first), {"word6": second, "nothing": second}, {"nothing": third}]
    assert list(map(len, found)) == [8, 4, 12]
    assert [np.exp(each.odds_C[0]) for each in found[0]] == pytest.approx([1] * 6 + [100, 1])
    assert list(map(len, reader.read_enough(queries[1:], [[], sources[:3]]))) == [0, 3]
    monkeypatch.setattr(reader, "config", replace(reader.config, unread_bound=None))
    shown.clear()
    assert list(map(len, reader.read_enough(queries, [sources] * 3))) == [12] * 3
    assert shown == [{query: [*first, *second, *third] for query in queries}]


def test_windows_are_merged_by_hand() -> None:
    first = Spans(np.array([0, 5]), np.array([3, 8]), np.log([1.0, 2.0]), math.log(4))
    second = Spans(np.array([5, 9]), np.array([8, 12]), np.log([3.0, 5.0]), math.log(9))
    found = merged([first, second])
    # The span that both have counts once, with 3; its 2 of the first window are not counted.
    assert list(zip(found.start_C, found.end_C, strict=True)) == [(0, 3), (5, 8), (9, 12)]
    assert np.exp(found.odds_C) == pytest.approx([1, 3, 5])
    assert math.exp(found.total) == pytest.approx(4 + 9 - 2)
    assert merged([first]) is first
    third = Spans(np.array([5]), np.array([8]), np.log([2.5]), math.log(3))
    found = merged([first, second, third])
    assert np.exp(found.odds_C) == pytest.approx([1, 3, 5])
    assert math.exp(found.total) == pytest.approx(4 + 9 + 3 - 2 - 2.5)


def test_spans_have_all_of_an_address_or_a_sign() -> None:
    text = "At -80 °C: mail a.b@c.org or see https://d.org/v3."
    spans = Spans(np.array([4, 16, 23, 11]), np.array([9, 19, 25, 15]), np.log([1.0, 2.0, 3.0, 4.0]), math.log(20))
    assert [text[start:end] for start, end in zip(spans.start_C, spans.end_C, strict=True)] == [
        "80 °C",
        "a.b",
        "rg",
        "mail",
    ]
    found = with_whole(spans, text)
    odds = zip(found.start_C, found.end_C, np.exp(found.odds_C), strict=True)
    assert {text[start:end]: pytest.approx(each) for start, end, each in odds} == {
        "-80 °C": 1,
        "a.b@c.org": 5,
        "mail": 4,
    }
    assert found.total == spans.total
    none = np.zeros(0, np.int64)
    assert len(with_whole(Spans(none, none, np.zeros(0), NEVER), text).odds_C) == 0
    assert with_whole(spans, "nothing of it") is spans


def test_windows_without_spans_are_merged() -> None:
    none = np.zeros(0, np.int64)
    found = merged([Spans(none, none, np.zeros(0), NEVER)] * 2)
    assert (found.start_C.tolist(), found.end_C.tolist(), found.odds_C.tolist(), found.total) == ([], [], [], NEVER)


def test_windows_advance_by_their_room_less_the_overlap(reader: SpanReader) -> None:
    text = " ".join(TEXT[:4] * 2)
    tokenizer = reader.tokenizer
    ids, title = query_ids(tokenizer, QUERY, 16), tokenizer.pieces([TEXT[1]])[0][0]
    [body] = tokenizer.pieces([text])
    found = windows(tokenizer, reader.config, ids, title, Tokens.of(text, body))
    room = 64 - len(ids) - 4 - 3  # [CLS] query [SEP] four tokens of the title, passage [SEP]
    for number, each in enumerate(found):
        first = number * (room - 12)
        shown = body[0][first : first + room]
        expected = tokenizer.pair(ids, [*title[:4], *shown], 64)
        assert each.pair.ids_T.tolist() == expected.ids_T.tolist()
        assert each.body == len(ids) + 2 + 4
        assert each.pair.ids_T[each.body : -1].tolist() == list(shown)
        assert [text[start:end] for start, end in each.offsets_T2] == [
            text[start:end].strip() for start, end in body[1][first : first + room]
        ]
        assert len(each.flags_T) == len(shown)
    assert len(found) > 2
    assert first < len(body[0]) <= first + room


def test_every_script_is_quoted_as_it_stands(tmp_path: Path) -> None:
    for number, base in enumerate((tiny_bert, tiny_roberta, tiny_mpnet)):
        reader = make_reader(tmp_path / str(number), base=base, max_tokens=200)
        shown = [passage(each, row=i) for i, each in enumerate(TEXT)]
        [found] = reader.read([QUERY], [shown])
        answers = predict_spans([Source(each, "c") for each in shown], found, 500, distinct=False)
        assert any(not each.text.isascii() for each in answers)
        for answer in answers:
            assert (
                answer.text
                == TEXT[answer.evidence[0].passage][answer.evidence[0].start - 100 : answer.evidence[0].end - 100]
            )


def test_saved_weights_are_those_that_were_trained(reader: SpanReader, tmp_path: Path) -> None:
    base, _ = load_reader(ModelSource("tiny", reader.config, None, reader.config.base))
    model = SpanReaderModel(base.encoder, reader.config)
    model, _ = load_reader(ModelSource("tiny", reader.config, None, reader.config.base))
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "word_embeddings" not in name:
                weight += 0.02 * torch.randn(weight.shape)
    save_reader(tmp_path / "m", model, base, reader.config.to_dict())
    again = open_reader(str(tmp_path / "m"))
    for (name, ours), theirs in zip(model.named_parameters(), again.model.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=0.5 * 0.1 / 127 + 1e-6), name
    (tmp_path / "m" / "reader.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelNotFoundError, match="damaged"):
        open_reader(str(tmp_path / "m"))


def test_a_reader_of_another_base_is_stored_whole(reader: SpanReader, tmp_path: Path) -> None:
    base = Path(reader.config.base)
    save_reader(tmp_path / "m", reader.model, base, reader.config.to_dict() | {"base": "nobody/nothing"})
    again = open_reader(str(tmp_path / "m"))
    for (name, ours), theirs in zip(reader.model.named_parameters(), again.model.parameters(), strict=True):
        largest = ours.abs().amax(dim=-1, keepdim=True) if ours.ndim == 2 and name.startswith("encoder.") else 0 * ours
        assert ((ours - theirs).abs() <= largest / 127 / 2 + 1e-7).all(), name
    [[[ours]], [[theirs]]] = (each.read([QUERY], [[passage(TEXT[1])]]) for each in (reader, again))
    assert ours.total == pytest.approx(theirs.total, abs=0.2)
    assert (tmp_path / "m" / "model.safetensors").stat().st_size < (base / "model.safetensors").stat().st_size / 2
    half = open_reader(str(tmp_path / "m"), dtype="bf16")
    assert {each.dtype for each in half.model.encoder.parameters()} == {torch.bfloat16}
    assert {each.dtype for each in (*half.model.span.parameters(), *half.model.none.parameters())} == {torch.float32}
    [[rough]] = half.read([QUERY], [[passage(TEXT[1])]])
    assert rough.total == pytest.approx(theirs.total, abs=0.2)
    dropping, _ = load_reader(locate(str(tmp_path / "m"), ReaderConfig), with_dropouts=True)
    found = dict(dropping.named_parameters())
    assert all(torch.equal(found[name], weight) for name, weight in again.model.named_parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "biaffine"}, "head is 'biaffine'; it must be one of ends, mlp"),
        ({"overlap": 4}, r"overlap 4; it must be at least span_width \(5\)"),
        ({"max_tokens": 34}, "leaves 11 for a passage"),
        ({"span_width": 0}, "span_width is 0; it must be 1 or more"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReaderConfig(**{**SMALL, **settings})


def test_the_query_is_cut_around_its_blank(reader: SpanReader) -> None:
    tokenizer: PairTokenizer = reader.tokenizer
    ids = query_ids(tokenizer, "the river " * 30 + "[MASK]" + " the tower" * 30, 16)
    assert len(ids) == 16
    assert ids[8] == tokenizer.mask_id


def test_a_base_whose_inputs_are_too_short_is_refused(tmp_path: Path) -> None:
    """Its windows would never reach the end of a passage."""
    with pytest.raises(InputError, match=r"takes at most 260 tokens, which leaves 249 for a passage; it must be more "):
        make_reader(tmp_path / "b", max_tokens=900, query_tokens=8, title_tokens=0, overlap=249)


def test_a_blank_is_one_by_either_name(tmp_path: Path) -> None:
    tokenizer = make_reader(tmp_path / "b", base=tiny_roberta).tokenizer
    for text in ("Paris is [MASK].", "Paris is <mask>."):
        assert query_ids(tokenizer, text, 50).count(tokenizer.mask_id) == 1


def test_known_tokens_are_asked_for_by_passage(reader: SpanReader) -> None:
    passages, asked = [passage(text, row=row) for row, text in enumerate(TEXT[:2])], list[Passage]()
    reader.read([QUERY], [passages], lambda each: asked.append(each))
    assert asked == passages


def test_evidence_marks_passages_and_tokens(tmp_path: Path) -> None:
    own = make_reader(tmp_path / "b", evidence=True)
    shown = passage(TEXT[0], "A title")
    [[found]] = own.read(["who"], [[shown]])
    assert found.marks is not None
    model = own.model
    assert isinstance(model, SpanReaderModel)
    titled = own.tokenizer.pieces(["A title."])[0][0]
    body = Tokens.of(shown.text, own.tokenizer.pieces([shown.text])[0])
    [reading] = windows(own.tokenizer, own.config, query_ids(own.tokenizer, "who", 16), titled, body)
    with torch.inference_mode():
        states_TH = model.encoder(**pair_batch(own.tokenizer, [reading.pair], "cpu")).last_hidden_state[0]
        first = torch.tanh(model.pooler.weight @ states_TH[0] + model.pooler.bias)
        relevance = float(model.relevance.weight[0] @ first + model.relevance.bias[0])
        marks_T = (states_TH @ model.evidence.weight[0] + model.evidence.bias[0])[reading.body :][: len(body.flags_T)]
    assert found.relevance == pytest.approx(relevance, abs=1e-5)
    np.testing.assert_allclose(found.marks[1], marks_T, atol=1e-5)
    assert found.marks[0].tolist() == reading.offsets_T2.tolist()


def test_passages_are_read_until_one_is_relevant_enough(tmp_path: Path) -> None:
    plain, own = make_reader(tmp_path / "a"), make_reader(tmp_path / "a", evidence=True, evidence_layers=1)
    assert isinstance(own.model, SpanReaderModel)
    assert isinstance(plain.model, SpanReaderModel)
    own.model.load_state_dict(plain.model.state_dict(), strict=False)
    read = [Source(passage(text, row=row), "c") for row, text in enumerate([*TEXT[:7], " ".join(TEXT), *TEXT[:3]])]
    questions, shown = ["who", "what is it"], [[each.passage for each in read]] * 2
    alone, every = plain.read(questions, shown), own.read(questions, shown)
    sought = [max(own[n].relevance for n in range(4, 8)) for own in every]
    wanted = max(sought)
    counts = [next((n for n in (4, 8) if max(e.relevance for e in each[:n]) >= wanted), len(read)) for each in every]
    own.config = replace(own.config, marked_passages=3, enough_relevance=wanted - 1e-4)
    found = own.read_enough(questions, [read] * 2)
    assert [len(each) for each in found] == counts
    assert min(counts) < len(read)
    for q, count in enumerate(counts):
        best = sorted(range(count), key=lambda n: -every[q][n].relevance)[:3]
        assert {n for n, each in enumerate(found[q]) if len(each.odds_C)} == set(best)
        for n, each in enumerate(found[q]):
            assert each.marks is not None
            assert each.relevance == pytest.approx(every[q][n].relevance, abs=1e-5)
            np.testing.assert_allclose(each.marks[1], (every[q][n].marks or ())[1], atol=1e-5)
            if n in best:
                assert each.total == pytest.approx(alone[q][n].total, abs=1e-4), "spans are those of the reader without"
    [blank] = own.read_enough([f"{own.tokenizer.mask_token} is it"], [read])
    assert all(each.marks is None for each in blank), "blanks are no questions"
    assert all(len(each.odds_C) for each in blank)
