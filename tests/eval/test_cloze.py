"""The cloze test: which blanks are drawn, what is searched, and how answers are counted."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import given, mean, measured
from numpy.typing import NDArray

from quoth.datasets.blanks import (
    MAX_QUERY_PIECES,
    Blank,
    draw_blanks,
    is_content,
    recurring_spans,
    words,
)
from quoth.datasets.judging import normalise
from quoth.errors import InputError
from quoth.records import Passage, Prediction
from quoth.text.tokenizer import MASK
from quoth_eval.harness import evaluate
from quoth_eval.report import Result, Row, Score
from quoth_eval.systems import fills
from quoth_eval.task import Answer, first_right, length_groups, said
from quoth_eval.tasks import find
from quoth_eval.tasks.cloze import bm25_phrases, cloze_task, frequent_phrases, most_frequent, read_pages

TEXTS = (
    "The river Axios flows to the Thermaic Gulf.",
    "Thessaloniki lies on the  THERMAIC gulf, near the river Axios.",
    "The White Tower of Thessaloniki was built in 1535.",
    "In 1535 nothing else was built.",
)
PAGES = (
    f'{{"id": "a", "title": "Axios", "text": "{" ".join(TEXTS[:2])}"}}\n'
    f'{{"id": "b", "title": "Tower", "text": "{" ".join(TEXTS[2:])}"}}\n'
)


def passage(row: int, text: str, title: str = "Page") -> Passage:
    return Passage(row, f"d{row}", title, text, 0, len(text))


PASSAGES = [passage(row, text) for row, text in enumerate(TEXTS)]


class FakeCorpus:
    """Passages, and BM25 hits by rote: `rows`, best first."""

    def __init__(self, passages: Sequence[Passage], rows: Sequence[int] = ()) -> None:
        self._passages, self.rows = passages, rows
        self.queries: list[str] = []

    def passages(self) -> Sequence[Passage]:
        return self._passages

    def passage(self, row: int) -> Passage:
        return self._passages[row]

    def bm25(self, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        self.queries.append(query)
        return np.array(self.rows[:k], np.int64), np.zeros(len(self.rows[:k]), np.float32)


class FakeModel:
    """Answers every text alike and remembers what it was asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Collection[int]]] = []
        self.options: dict[str, Any] = {}
        self.embedded: list[str] = []

    def embed(self, precision: str, recall: float) -> None:
        self.embedded.append(precision)

    def fill(
        self, text: Sequence[str], *, exclude: Sequence[Collection[int]], **options: Any
    ) -> list[list[Prediction]]:
        self.asked += zip(text, exclude, strict=True)
        self.options = options
        return [[Prediction(answer, 0.0, 0.5, ()) for answer in self.answers] for _ in text]


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in words(text)]


def test_words_are_runs_of_letters_and_digits_and_single_marks() -> None:
    assert cut("St. John's 3,200-mile  road") == ["St", ".", "John", "'", "s", "3", ",", "200", "-", "mile", "road"]
    assert cut("a_b") == ["a", "_", "b"]
    assert cut("cafe\u0301s हिन्दी") == ["cafe\u0301s", "हिन्दी"]
    assert cut("") == []


def test_stop_words_and_marks_are_no_content() -> None:
    assert [word for word in ("The", ",", "1535", "Axios", "s", "–") if is_content(word)] == ["1535", "Axios"]


def test_recurring_spans_are_those_of_a_naive_count() -> None:
    words_of = [words(text) for text in TEXTS]
    every: dict[str, set[int]] = {}
    for p, ranges in enumerate(words_of):
        for i in range(len(ranges)):
            for j in range(i, min(i + 10, len(ranges))):
                every.setdefault(normalise(TEXTS[p][ranges[i][0] : ranges[j][1]]), set()).add(p)
    found = recurring_spans(TEXTS, words_of)
    texts = {normalise(TEXTS[p][words_of[p][i][0] : words_of[p][i + n - 1][1]]) for spans in found for p, i, n in spans}
    assert texts == {key for key, owners in every.items() if len(owners) > 1}
    assert {"the thermaic gulf", "river axios", "was built"} <= texts
    assert [len(spans) for spans in found[3:]] == [0] * 7


@pytest.mark.parametrize("kind", ["any", "content"])
def test_blanks_hide_a_phrase_that_stands_in_another_passage(kind: str) -> None:
    blanks = draw_blanks(PASSAGES, kind, 100, seed=3)  # type: ignore[arg-type]
    assert len({(blank.text, blank.answer) for blank in blanks}) == len(blanks) > 5
    for blank in blanks:
        assert blank.text.replace(MASK, blank.answer) == f"Page. {TEXTS[blank.row]}"
        assert blank.document_id == f"d{blank.row}"
        assert len(words(blank.answer)) == blank.num_words
        others = [normalise(text) for row, text in enumerate(TEXTS) if row != blank.row]
        assert any(normalise(blank.answer) in text for text in others)
        assert cut(blank.answer)[0].isalnum()
        assert cut(blank.answer)[-1].isalnum()
        if kind == "content":
            assert is_content(cut(blank.answer)[0])
            assert is_content(cut(blank.answer)[-1])


def test_a_seed_draws_the_same_blanks_and_a_smaller_count_the_first_of_them() -> None:
    five = draw_blanks(PASSAGES, "any", 5, seed=7)
    assert draw_blanks(PASSAGES, "any", 5, seed=7) == five
    assert draw_blanks(PASSAGES, "any", 3, seed=7) == five[:3]
    assert draw_blanks(PASSAGES, "any", 5, seed=8) != five


def test_lengths_are_geometric() -> None:
    text = " ".join(f"w{i}" for i in range(2000))
    blanks = draw_blanks([passage(0, text), passage(1, text)], "content", 1000, seed=0)
    counts = [sum(blank.num_words == n for blank in blanks) for n in range(1, 12)]
    assert counts[0] == pytest.approx(500, abs=60)
    assert counts[1] == pytest.approx(250, abs=50)
    assert counts[10] == 0


def test_a_long_passage_is_cut_around_the_blank() -> None:
    text = " ".join(f"w{i}" for i in range(1000))
    for blank in draw_blanks([passage(0, text), passage(1, text)], "any", 20, seed=1):
        before, after = blank.text.removeprefix("Page. ").split(MASK)
        assert f"{before}{blank.answer}{after}" in text
        assert len(words(blank.text)) <= MAX_QUERY_PIECES + 3
        middle = 200 < text.index(blank.answer) < len(text) - 2000
        assert not middle or abs(len(before.split()) - len(after.split())) <= 2


def test_no_blank_is_drawn_where_none_can_be() -> None:
    with pytest.raises(InputError, match="two passages"):
        draw_blanks(PASSAGES[:1], "any", 5, seed=0)
    masked = [passage(row, f"{text} {MASK}") for row, text in enumerate(TEXTS)]
    with pytest.raises(InputError):
        draw_blanks(masked, "any", 5, seed=0)


def test_answers_are_compared_without_case_and_spaces() -> None:
    found = Answer([Prediction(text, 0.0, 0.0, ()) for text in ("tower", "white tower", "White", "")])
    assert said("White  Tower", found) == [False, True, False, False]


def counted(score: Score | None) -> tuple[int, float, float | None] | None:
    return score and (score.num_examples, mean(score), mean(score, "hit_at_5"))


def test_scores_counted_by_hand() -> None:
    blanks = zip(["any", "any", "content", "content"], [1, 2, 5, 1], [0, 3, None, 0], strict=True)
    rows = []
    for i, (kind, length, place) in enumerate(blanks):
        groups = {"kind": kind} | length_groups(length, "words")
        rows.append(Row("m", str(i), "", (), first_right([at == place for at in range(5)]), groups))
    result = Result("m", tuple(rows))
    assert counted(result.score()) == (4, 0.5, 0.75)
    assert counted(result.score(kind="any")) == (2, 0.5, 1.0)
    assert counted(result.score(kind="content", words="4+ words")) == (1, 0.0, 0.0)
    assert counted(result.score(**{"several words": "2+ words"})) == (2, 0.0, 0.5)
    assert counted(result.score(words="1 word")) == (2, 1.0, 1.0)
    assert result.score(words="3 words").num_examples == 0


def test_most_frequent_phrases_counted_by_hand() -> None:
    assert most_frequent(["b a b c a b", "a"], "any", 3) == ("b", "a", "a b")
    assert most_frequent(["The New York of New  york, the city"], "content", 3) == ("New", "New York", "York")
    assert most_frequent([""], "any") == ()


def test_the_frequent_baseline_answers_by_kind() -> None:
    blanks = [Blank("any", 0, "d0", MASK, "x", 1), Blank("content", 1, "d1", MASK, "x", 1)]
    first, second = map(frequent_phrases(FakeCorpus(PASSAGES)), blanks)
    assert first[0] == "The"
    assert second[0] == "river"


def test_the_bm25_baseline_reads_the_best_other_passage() -> None:
    corpus = FakeCorpus(PASSAGES, rows=[0, 3, 1])
    answer = bm25_phrases(corpus)
    assert answer(Blank("content", 0, "d0", f"the {MASK} flows", "x", 1))[:2] == ("1535", "1535 nothing")
    assert corpus.queries == ["the   flows"]
    assert bm25_phrases(FakeCorpus(PASSAGES, rows=[0]))(Blank("any", 0, "d0", MASK, "x", 1)) == ()


def test_a_blanks_own_passage_is_not_searched_and_answers_keep_the_blanks_order() -> None:
    model = FakeModel("wrong", "river")
    blanks = [Blank("any", row, f"d{row}", f"{row} {MASK}", answer, 1) for row, answer in ((3, "x"), (1, "River"))]
    (result,) = evaluate(cloze_task(blanks, {}), {"m": fills(model, {"passages": 3})}).systems
    assert model.asked == [(f"1 {MASK}", {1}), (f"3 {MASK}", {3})]
    assert model.options == {"top_k": 5, "passages": 3}
    assert [row.answers for row in result.rows] == [("x",), ("River",)]
    assert counted(result.score()) == (2, 0.0, 0.5)
    assert result.score(kind="content").num_examples == 0


def test_from_files_to_a_report(tmp_path: Path) -> None:
    pages, heldout = tmp_path / "pages.jsonl", tmp_path / "heldout.jsonl"
    extra = '{"id": "c", "title": "Other", "text": "Zebra."}\n'
    repeated = PAGES.replace('"id": "a"', '"id": "e"').replace('"id": "b"', '"id": "f"')
    pages.write_text(PAGES + extra + repeated)
    heldout.write_text('{"id": "a", "title": "-"}\n{"id": "-", "title": "tower"}\n{"id": "e", "title": "-"}\n')
    call = given(tmp_path, opens=FakeModel("The"), files=(str(pages),), limit=12)
    prepared, steps = find("cloze").prepare(call, {"heldout": str(heldout)}), []
    report = measured(prepared, {"m": {"combine": "joint"}}, lambda *step: steps.append(step))
    assert report.settings["num_passages"] == 4
    assert [(each.name, len(each.rows)) for each in report.systems] == [("frequent", 12), ("bm25", 12), ("m", 12)]
    assert [row.groups["kind"] for row in report.systems[0].rows] == ["any"] * 6 + ["content"] * 6
    assert steps[-1] == ("m", 12, 12)
    assert all("Zebra" not in row.text for row in report.systems[0].rows)
    table = report.markdown(()).split("\n\n")[0].splitlines()
    assert len(table) == 5
    assert len({line.count("|") for line in table}) == 1


def test_mistakes_are_one_clear_line(tmp_path: Path) -> None:
    pages, heldout = tmp_path / "pages.jsonl", tmp_path / "heldout.jsonl"
    pages.write_text(PAGES)
    heldout.write_text('{"id": "a", "title": "-"}\n{"name": "a"}\n')
    with pytest.raises(InputError, match=r"heldout\.jsonl:2"):
        read_pages([pages], str(heldout))
    heldout.write_text('{"id": "z", "title": "z"}\n')
    with pytest.raises(InputError, match="no document"):
        read_pages([pages], str(heldout))
