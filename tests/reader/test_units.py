"""Units of a text: pieces by blocks, the best with its neighbours, by marks of evidence or by spans."""

import math
from dataclasses import replace

import numpy as np
import pytest

from quoth.answers.evidence import Source, Spans
from quoth.reader.config import ReaderConfig
from quoth.reader.units import BESIDE, LONGEST, answer_units, pieces
from quoth.records import Passage
from quoth_sources.blocks import Block
from quoth_sources.guess import guess

RECIPE = (
    "Scones\n\nThey are eaten warm. Butter melts on them.\n\n- flour\n- butter\n- one egg\n\nBake them for ten minutes."
)
NOBODY = np.zeros(0, np.int64)


def passage(text: str, blocks: tuple[Block, ...] | None = None, start: int = 0) -> Passage:
    found = tuple(guess(text)) if blocks is None else blocks
    moved = tuple(Block(a + start, b + start, kind, level) for a, b, kind, level in found)
    return Passage(0, "d", "Scones", text, start, start + len(text), blocks=moved)


def marked(text: str, words: dict[str, float], relevance: float = 0.0) -> Spans:
    """A reading whose tokens are the words; those named are evidence with this probability, others with 1 %."""
    offsets, logits = [], []
    at = 0
    for word in text.split():
        at = text.index(word, at)
        chance = words.get(word.strip(".,"), 0.01)
        offsets.append((at, at + len(word)))
        logits.append(math.log(chance / (1 - chance)))
        at += len(word)
    return Spans(NOBODY, NOBODY, np.zeros(0), -5.0, relevance, (np.array(offsets), np.array(logits)))


def units(text: str, words: dict[str, float], **given: float) -> list[str]:
    return [
        each.text for each in answer_units([Source(passage(text), "c")], [marked(text, words)], ReaderConfig(**given))
    ]


def test_pieces_are_sentences_items_and_headings() -> None:
    found = [(RECIPE[each.start : each.end], each.heads) for each in pieces(passage(RECIPE, start=40))]
    assert found == [
        ("Scones", True),
        ("They are eaten warm.", False),
        ("Butter melts on them.", False),
        ("- flour", False),
        ("- butter", False),
        ("- one egg", False),
        ("Bake them for ten minutes.", False),
    ]


def test_what_is_not_read_is_no_piece() -> None:
    text = "Contents 3\n\nReal text."
    blocks = (Block(0, 10, "contents"), Block(12, 22, "paragraph"))
    assert [text[a:b] for a, b, _ in pieces(passage(text, blocks))] == ["Real text."]


def test_the_best_piece_is_shown_with_those_beside_it_that_answer_too() -> None:
    evidence = {"flour": 0.9, "butter": 0.8, "one": 0.6, "egg": 0.6}
    first, *others = units(RECIPE, evidence)
    assert first == "- flour - butter - one egg"
    assert len(others) == 2, "and the next best, each by itself"
    # "- flour" has two tokens, the mark and the word: (0.9 + 0.01) / 2.
    alone = {"flour": 0.9, "butter": 0.9 * BESIDE - 0.05}
    assert units(RECIPE, alone)[0] == "- flour"


def test_a_heading_is_never_shown_by_itself_and_ends_a_unit() -> None:
    text = "Before it all.\n\nOvens\n\nAfter it all."
    found = units(text, {"Before": 0.9, "it": 0.9, "all": 0.9, "Ovens": 0.99, "After": 0.9})
    assert found == ["Before it all.", "After it all."]


def test_a_unit_has_an_end() -> None:
    text = " ".join(f"Sentence number {n} is evidence too." for n in range(60))
    words = dict.fromkeys([*["Sentence", "number", "is", "evidence", "too"], *map(str, range(60))], 0.9)
    assert LONGEST - 40 < len(units(text, words)[0]) <= LONGEST


# Evidence 0.9/3 and 0.7/3 (plus 0.01s), relevance -2 and 2, in the search 0 and -1, all spans in the first passage.
@pytest.mark.parametrize(
    ("weights", "best"),
    [
        ((1.0, 0.0, 0.0, 0.0), "It is warm."),
        ((1.0, 1.0, 0.0, 0.0), "It is cold."),
        ((1.0, 1.0, 5.0, 0.0), "It is warm."),
        ((1.0, 1.0, 0.0, 1.0), "It is warm."),
    ],
)
def test_a_units_score_weighs_evidence_relevance_search_and_spans(weights: tuple[float, ...], best: str) -> None:
    texts = ["It is warm.", "It is cold."]
    read = [Source(passage(text), "c", relevance) for text, relevance in zip(texts, (0.0, -1.0), strict=True)]
    spans = [marked(texts[0], {"warm": 0.9}, -2.0), marked(texts[1], {"cold": 0.7}, 2.0)]
    spans[0] = replace(spans[0], start_C=np.array([6]), end_C=np.array([10]), odds_C=np.array([3.0]), total=3.0)
    assert answer_units(read, spans, ReaderConfig(unit_weights=weights))[0].text == best


def test_without_marks_the_odds_of_the_spans_inside_decide() -> None:
    text = "They are eaten warm. Butter melts on them."
    odds = np.log([0.2, 0.3, 0.1])
    spans = Spans(np.array([5, 9, 21]), np.array([8, 14, 27]), odds, float(np.logaddexp.reduce(odds)))
    first, second = answer_units([Source(passage(text), "c")], [spans], ReaderConfig())
    total = 1 + 0.6
    assert (first.text, second.text) == ("They are eaten warm.", "Butter melts on them.")
    assert first.probability == pytest.approx(0.5 / total)
    assert first.answer == "eaten"


def test_its_chance_is_calibrated_by_what_is_known_of_it() -> None:
    weights = (0.5, 1.0, 2.0)
    text = "It is warm."
    [unit] = answer_units(
        [Source(passage(text), "c")],
        [marked(text, {"It": 0.6, "is": 0.6, "warm": 0.6}, 0.25)],
        ReaderConfig(sentence_calibration=weights),
    )
    logit = 0.5 + math.log(0.6 / 0.4) + 2 * 0.25
    assert unit.probability == pytest.approx(1 / (1 + math.exp(-logit)))
