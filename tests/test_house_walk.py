"""One query on its way through the house, with numbers to follow by hand.

Six sentences stand in the corpus. The encoder is made up: a word's vector has two numbers, written below, and is the
same wherever the word stands. The blank's start query is (1, 0) and its end query (0, 1), so that a word's first
number is its similarity a to the start of an answer, its second number its similarity b to the end of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from quoth import NPM
from quoth.answers.options import ResolvedOptions
from quoth.corpus.corpus import Corpus
from quoth.encoders.keys import EncodedPassage
from quoth.index.key_table import KeyTable
from quoth.index.retriever import Retriever
from quoth.index.search import search_all
from quoth.npm.candidates import find_candidates
from quoth.npm.config import NPMConfig
from quoth.records import Document, Passage, Prediction
from quoth.text.boundaries import boundary_flags, surface_group
from quoth.text.tokenizer import TokenizedPassage
from token_tables import predict_phrases

SENTENCES = (
    "Ann moved to New York in May.",
    "Old York has walls.",
    "New York never sleeps.",
    "Paris is in France.",
    "Bob left Paris.",
    "The sea is calm.",
)
QUERY = "She lives in [MASK]."

# (exp a, exp b): how much a word speaks for being an answer's first word, and its last. All others: (1, 1).
WEIGHTS = {"new": (4, 1), "york": (1, 4), "paris": (3, 3)}


class MadeUpEncoder:
    """Every word and every mark is a token, its vector the logs of its weights."""

    name, keys = "made-up", "tokens"
    fingerprint = "0123456789abcdef" * 4
    dimensions = 2
    scale = 1.0
    config = NPMConfig(similarity_scale=1.0)

    def encode(self, passages: Sequence[Passage]) -> list[EncodedPassage]:
        return [self._encoded(each.text) for each in passages]

    def _encoded(self, text: str) -> EncodedPassage:
        tokens = list(re.finditer(r"\w+|[^\w\s]", text))
        words = [token.group().lower() for token in tokens]
        offsets_T2 = np.array([token.span() for token in tokens], np.int64)
        group_T = np.array([surface_group(word) for word in words], np.uint64)
        ids_T = np.array([sum(word.encode()) for word in words], np.int32)
        vectors_TD = np.log(np.array([WEIGHTS.get(word, (1, 1)) for word in words], np.float32))
        tokenized = TokenizedPassage(ids_T, offsets_T2, boundary_flags(text, offsets_T2), group_T, ())
        return EncodedPassage(tokenized, vectors_TD)

    def blanks(self, texts: Sequence[str]) -> list[tuple[Any, Any]]:
        return [(np.array([1, 0], np.float32), np.array([0, 1], np.float32)) for _ in texts]

    class tokenizer:
        mask_token = "[MASK]"


@pytest.fixture
def npm(tmp_path: Path) -> NPM:
    corpus = Corpus.create(tmp_path / "six.quoth")
    corpus.add(Document(f"d{i}", "", sentence) for i, sentence in enumerate(SENTENCES))
    model = NPM(cast(Any, MadeUpEncoder()), [corpus])
    model.embed("fp32")
    return model


def the_table(npm: NPM) -> KeyTable:
    retriever: Retriever = npm._retriever
    (keys,) = retriever.key_tables()
    return keys


# The words and their rows in the key table; "." is a token too.
#
#   0 Ann    1 moved  2 to     3 New    4 York   5 in     6 May    7 .
#   8 Old    9 York  10 has   11 walls 12 .
#  13 New   14 York  15 never 16 sleeps 17 .
#  18 Paris 19 is    20 in    21 France 22 .
#  23 Bob   24 left  25 Paris 26 .
#  27 The   28 sea   29 is    30 calm  31 .


def test_1_encode(npm: NPM) -> None:
    keys = the_table(npm)
    assert keys.offsets_P1.tolist() == [0, 8, 13, 18, 23, 27, 32]
    assert [SENTENCES[1][s:e] for s, e in zip(keys.start_N[8:13], keys.end_N[8:13], strict=True)] == [
        *("Old", "York", "has", "walls", "."),
    ]
    q_start_D, q_end_D = npm.query_vectors(QUERY)
    similarity = keys.vectors.similarities(np.stack([q_start_D, q_end_D]), np.array([3, 4, 18]))
    expected = [[log(4), log(1), log(3)], [log(1), log(4), log(3)]]  # New, York, Paris
    np.testing.assert_allclose(similarity, expected, rtol=1e-6)


def test_2_search(npm: NPM) -> None:
    keys = the_table(npm)
    (hits,) = search_all([keys], *npm.query_vectors(QUERY), k=4)
    # Best starts: New at 3 and 13 (4 each), Paris at 18 and 25 (3 each).
    assert hits.start_rows.tolist() == [3, 13, 18, 25]
    # Best ends: York at 4, 9 and 14 (4 each), then one of the two Parises (3 each): the first one.
    assert hits.end_rows.tolist() == [4, 9, 14, 18]


def test_3_expand(npm: NPM) -> None:
    keys = the_table(npm)
    hits = search_all([keys], *npm.query_vectors(QUERY), k=4)[0]
    found = find_candidates(hits, max_phrase_tokens=2)
    # Forward from the starts, at most two words:      New, New York (twice), Paris, Paris is, Paris (no "Paris.").
    # Backward from the ends, what was not there yet:  York (three times), Old York.
    assert sorted(zip(found.start_C.tolist(), found.end_C.tolist(), strict=True)) == [
        (3, 3),  # New
        (3, 4),  # New York
        (4, 4),  # York
        (8, 9),  # Old York
        (9, 9),  # York
        (13, 13),  # New
        (13, 14),  # New York
        (14, 14),  # York
        (18, 18),  # Paris
        (18, 19),  # Paris is
        (25, 25),  # Paris
    ]


# Each occurrence of a phrase scores, with the first word's exp a and the last word's exp b,
#
#                                sum: exp a + exp b     joint: exp a · exp b
#   New York (4, 4), twice         2 · 8 = 16             2 · 16 = 32
#   York     (1, 4), three times   3 · 5 = 15             3 ·  4 = 12
#   Paris    (3, 3), twice         2 · 6 = 12             2 ·  9 = 18
#   New      (4, 1), twice         2 · 5 = 10             2 ·  4 =  8
#   Old York (1, 4), once              5                       4
#   Paris is (3, 1), once              4                       3
#   together                          62                      77
#
# softmax_sum first divides exp a by its sum over the best starts and the first words of all candidates, New twice,
# Paris twice, York three times and Old: 4 + 4 + 3 + 3 + 1 + 1 + 1 + 1 = 18; and exp b by its sum over the best ends and
# the last words, York three times, Paris twice, New twice and is: 12 + 6 + 2 + 1 = 21. Over 126 = lcm(18, 21):
#
#   New York 2 · (4/18 + 4/21) = 2 · (28 + 24)/126 = 104/126
#   York     3 · (1/18 + 4/21) = 3 · ( 7 + 24)/126 =  93/126
#   Paris    2 · (3/18 + 3/21) = 2 · (21 + 18)/126 =  78/126
#   New      2 · (4/18 + 1/21) = 2 · (28 +  6)/126 =  68/126
#   Old York      1/18 + 4/21  =     ( 7 + 24)/126 =  31/126
#   Paris is      3/18 + 1/21  =     (21 +  6)/126 =  27/126
#   together                                         401/126
SCORES = {
    "sum": {"New York": 16, "York": 15, "Paris": 12, "New": 10, "Old York": 5, "Paris is": 4},
    "joint": {"New York": 32, "Paris": 18, "York": 12, "New": 8, "Old York": 4, "Paris is": 3},
    "softmax_sum": {
        "New York": 104 / 126,
        "York": 93 / 126,
        "Paris": 78 / 126,
        "New": 68 / 126,
        "Old York": 31 / 126,
        "Paris is": 27 / 126,
    },
}


@pytest.mark.parametrize("combine", ["sum", "joint", "softmax_sum"])
def test_4_score(npm: NPM, combine: Any) -> None:
    q_start_D, q_end_D = npm.query_vectors(QUERY)
    hits = search_all([the_table(npm)], q_start_D, q_end_D, k=4)
    options = ResolvedOptions(top_k=10, combine=combine, max_phrase_tokens=2)
    found = predict_phrases(hits, q_start_D, q_end_D, options)
    expected = SCORES[combine]
    assert [each.text for each in found] == list(expected)
    assert [np.exp(each.log_score) for each in found] == pytest.approx(list(expected.values()))
    together = {"sum": 62, "joint": 77, "softmax_sum": 401 / 126}[combine]
    shares = [score / together for score in expected.values()]
    assert [each.probability for each in found] == pytest.approx(shares)


def fill(npm: NPM, **options: Any) -> list[Prediction]:
    options = {"combine": "sum", "max_phrase_tokens": 2, "distinct": False} | options
    return npm.fill(QUERY, passages=None, k=4, **options)


def test_5_explain(npm: NPM) -> None:
    best = fill(npm)[0]
    assert best.text == "New York"
    assert best.sequence == "She lives in New York."
    assert best.probability == pytest.approx(16 / 62)
    # Both places say it equally strongly, 8/62 each; the first one comes first.
    assert [(each.document_id, each.start, each.end) for each in best.evidence] == [("d0", 13, 21), ("d2", 0, 8)]
    assert [each.score for each in best.evidence] == pytest.approx([8 / 62, 8 / 62])
    assert best.evidence[0].context == "Ann moved to New York in May."
    assert SENTENCES[0][13:21] == SENTENCES[2][0:8] == "New York"


def test_5_only_the_places_that_are_shown_are_read(npm: NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    passage = Corpus.passage
    monkeypatch.setattr(Corpus, "passage", lambda corpus, row: read.append(row) or passage(corpus, row))
    (best,) = fill(npm, top_k=1, max_evidence=1)
    # Its share is still 8/62, of two places that are 16/62 together.
    assert [(each.document_id, each.score) for each in best.evidence] == [("d0", pytest.approx(8 / 62))]
    assert (best.probability, best.num_places) == (pytest.approx(16 / 62), 2)
    assert read == [best.evidence[0].passage]


def test_5_of_phrases_that_are_not_returned_nothing_is_read(npm: NPM, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    passage = Corpus.passage
    monkeypatch.setattr(Corpus, "passage", lambda corpus, row: read.append(row) or passage(corpus, row))
    # Four phrases are proposed for one answer, in case some overlap; the best one's two places are all that is read.
    (best,) = fill(npm, top_k=1, distinct=True)
    assert (best.text, read) == ("New York", [place.passage for place in best.evidence])
    read.clear()
    # York overlaps New York in its best place, which is all that is quoted of it; Paris is the second answer.
    found = fill(npm, top_k=2, distinct=True, max_evidence=1)
    assert [each.text for each in found] == ["New York", "Paris"]
    assert len(read) == 2


def test_6_what_the_options_do(npm: NPM) -> None:
    # length_exponent 1 multiplies each score by the number of words: New York 32, York 15, ... of 62 + 16 + 5 + 4 = 87.
    assert fill(npm, length_exponent=1.0)[0].probability == pytest.approx(32 / 87)
    # The square roots of e^a and e^b for temperature 2: New York 2·(2 + 2) = 8, York 3·(1 + 2) = 9.
    best, second = fill(npm, temperature=2.0)[:2]
    assert (best.text, second.text) == ("York", "New York")
    assert (np.exp(best.log_score), np.exp(second.log_score)) == pytest.approx((9, 8))


def test_7_a_deleted_sentence_is_gone(npm: NPM) -> None:
    npm._retriever.corpora[0].delete(["d2"])
    # One New York, two Yorks and a New are left. Of the starts now Paris, New and (by row) the first word of all,
    # Ann: Ann, Ann moved; of the ends York, York, Paris, Paris: Paris at its second place, and left Paris.
    found = {each.text: np.exp(each.log_score) for each in fill(npm, top_k=20)}
    assert found == pytest.approx(
        {
            "Paris": 12,
            "York": 10,
            "New York": 8,
            "New": 5,
            "Old York": 5,
            "Paris is": 4,
            "left Paris": 4,
            "Ann": 2,
            "Ann moved": 2,
        }
    )


def test_8_restricted_to_the_sentences_that_share_words(npm: NPM) -> None:
    found = npm.fill("Ann moved to [MASK]", passages=1, k=2, max_phrase_tokens=2, combine="sum", distinct=False)
    # Only the first sentence. Starts: New (4) and, of the many equal to 1, the first, Ann; ends: York (4) and Ann.
    # New York 8, New 5 (4 + 1), York 5 (1 + 4), Ann 2, Ann moved 2, together 22.
    assert [each.text for each in found] == ["New York", "New", "York", "Ann", "Ann moved"]
    assert [each.probability for each in found] == pytest.approx([8 / 22, 5 / 22, 5 / 22, 2 / 22, 2 / 22])
    assert {each.evidence[0].document_id for each in found} == {"d0"}
