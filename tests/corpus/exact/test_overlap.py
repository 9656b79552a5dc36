"""Shared runs of words: by hand, and as somebody finds them who compares every word with every other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quoth.cli.main import main
from quoth.corpus.corpus import Corpus
from quoth.corpus.exact import overlap as module
from quoth.corpus.exact.overlap import overlap
from quoth.errors import InputError
from quoth.records import Document
from quoth.text.folding import fold_with_places, is_word_end, word_starts

A = "The harbour was built in 1884, and the first lighthouse stood on its northern pier until the great storm."
WORDS = st.sampled_from(
    ["a", "A", "b", "ﬁ", "fi", "c-d", "½", "1/2", "“a”", "'a'", "中文", "ไทย", "e\u0301", "x\u00adx", "…"]
)
TEXT = st.lists(st.tuples(WORDS, st.sampled_from([" ", "  ", "\n", ", ", "-"])), max_size=14).map(
    lambda pieces: "".join(word + gap for word, gap in pieces)
)
Found = set[tuple[str, str, int, int, int]]
"""The ids of two documents, the first word in both, and how many words."""


def docs(*texts: str) -> list[Document]:
    return [Document(str(number), "", text) for number, text in enumerate(texts)]


def words_of(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A folded text, and where its words begin and end: an end is the first place where a word may end."""
    folded = fold_with_places(text).text
    starts = np.flatnonzero(word_starts(folded)).tolist()
    ends = [next(at for at in range(start + 1, len(folded) + 1) if is_word_end(folded, at)) for start in starts]
    return folded, list(zip(starts, ends, strict=True))


def brute(a: Sequence[Document], b: Sequence[Document], size: int) -> Found:
    """All runs that no other run of the pair has inside of it."""
    found: Found = set()
    for one in a:
        for other in b:
            (text, words), (text_b, words_b) = words_of(one.text), words_of(other.text)
            runs = set()
            for i in range(len(words)):
                for j in range(len(words_b)):
                    for n in range(size, min(len(words) - i, len(words_b) - j) + 1):
                        here = text[words[i][0] : words[i + n - 1][1]]
                        if here == text_b[words_b[j][0] : words_b[j + n - 1][1]]:
                            runs.add((i, j, n))
            inside = {
                run
                for run in runs
                if any(
                    each != run and all(each[k] <= run[k] and run[k] + run[2] <= each[k] + each[2] for k in (0, 1))
                    for each in runs
                )
            }
            found |= {(one.id, other.id, *run) for run in runs - inside}
    return found


def by_words(a: Sequence[Document], b: Sequence[Document], size: int) -> Found:
    """What `overlap` finds, its places as numbers of words; checks its places and its totals on the way."""
    texts = {side: {each.id: each for each in given} for side, given in (("a", a), ("b", b))}
    found: Found = set()
    for pair in overlap(a, b, size):
        shared: dict[str, set[int]] = {"a": set(), "b": set()}
        for run in pair.runs:
            firsts: list[int] = []
            for side, place in (("a", run.a), ("b", run.b)):
                folded = fold_with_places(texts[side][place.document_id].text)
                words = words_of(texts[side][place.document_id].text)[1]
                [first] = [
                    i
                    for i in range(len(words) - run.words + 1)
                    if folded.source(words[i][0], words[i + run.words - 1][1]) == (place.start, place.end)
                ][:1]
                firsts.append(first)
                shared[side] |= set(range(first, first + run.words))
            assert run.text == texts["b"][run.b.document_id].text[run.b.start : run.b.end]
            found.add((pair.a.document_id, pair.b.document_id, firsts[0], firsts[1], run.words))
        for side, told in (("a", pair.a), ("b", pair.b)):
            assert told.words == len(words_of(texts[side][told.document_id].text)[1])
            assert told.shared == len(shared[side])
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, max_size=3), st.lists(TEXT, max_size=3), st.integers(2, 4))
def test_runs_are_those_of_brute_force(a: list[str], b: list[str], size: int) -> None:
    # A text repeated at both ends has runs at every distance.
    one, other = docs(*a, "".join(a)), docs(*b, "".join(a[:1] + b + a[:1]))
    assert by_words(one, other, size) == brute(one, other, size)


@pytest.mark.parametrize(("block", "pairs", "hashed"), [(1, 1, 1), (7, 3, 2), (30, 5, 3)])
def test_limits_of_memory_change_nothing(monkeypatch: pytest.MonkeyPatch, block: int, pairs: int, hashed: int) -> None:
    a, b = docs("a b a b a b c", "", "c d e f", "a b", "b a b a"), docs("a b a b a", "x", "b c d e f g a b a")
    expected = brute(a, b, 2)
    for name, value in (("BLOCK_WORDS", block), ("PAIRS", pairs), ("_SLICE", hashed)):
        monkeypatch.setattr(module, name, value)
    assert by_words(a, b, 2) == expected
    assert len(expected) > 5


def test_equal_hashes_of_other_words_are_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Text, "grams", lambda text, size: np.zeros(len(text.start_W) - size + 1, np.uint64))
    a, b = docs("a b c d e f"), docs("x b c d y e f")
    assert by_words(a, b, 2) == brute(a, b, 2) == {("0", "0", 1, 1, 3), ("0", "0", 4, 5, 2)}


def test_typography_and_case_make_no_difference_and_words_do() -> None:
    quoted = "He wrote: “in 1884, and the ﬁrst light\u00adhouse stood on\u00a0its Northern pier” – no more."
    [pair] = overlap(docs(A), docs(quoted, A.replace("first", "second").replace("northern", "outer")), 10)
    [run] = pair.runs
    assert (run.words, run.text) == (11, "in 1884, and the ﬁrst light\u00adhouse stood on\u00a0its Northern pier")
    assert A[run.a.start : run.a.end] == "in 1884, and the first lighthouse stood on its northern pier"
    assert (pair.a.words, pair.a.shared, pair.b.words, pair.b.shared) == (19, 11, 15, 11)
    assert pair.a.share == 11 / 19


def test_each_pair_is_told_once_with_all_its_runs() -> None:
    half = "one two three four five."
    pairs = list(overlap(docs(f"{half} And {half}", half), docs(f"So: {half}"), 5))
    assert [[(run.a.start, run.b.start) for run in pair.runs] for pair in pairs] == [[(0, 4), (29, 4)], [(0, 4)]]
    assert [(pair.a.shared, pair.b.shared) for pair in pairs] == [(10, 5), (5, 5)]


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(InputError, match="words is 1; it must be 2 or more"):
        overlap(docs(A), docs(A), 1)
    with pytest.raises(InputError, match="b is an iterator"):
        overlap(docs(A), iter(docs(A)))


FILES = {"a.txt": f"{A} Much else.", "b.txt": "Nothing that is shared.", "c/d.txt": f"We read: {A.upper()}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_command_reads_corpora_and_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Corpus.create(folder / "a.quoth").add([Document("a.txt", "", FILES["a.txt"]), Document("b", "", "Something.")])
    for place in ("a.txt", "a.quoth"):
        assert main(["overlap", str(folder / place), str(folder / "c"), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told == {
            "a": {"document_id": "a.txt", "words": 21, "shared": 19, "share": 19 / 21},
            "b": {"document_id": "d.txt", "words": 21, "shared": 19, "share": 19 / 21},
            "runs": [
                {
                    "words": 19,
                    "a": {"document_id": "a.txt", "start": 0, "end": len(A) - 1},
                    "b": {"document_id": "d.txt", "start": 9, "end": 8 + len(A)},
                    "text": A.upper()[:-1],
                }
            ],
        }
    assert main(["overlap", str(folder / "a.txt"), str(folder / "c")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith(
        "| a.txt | d.txt | 19 | 90.5 % | 90.5 % | 19 | THE HARBOUR WAS BUILT IN 1884, AND THE FIRST"
    )
    assert lines[3] == "1 document of A and 1 of B share 1 run of 13 words or more"


def test_the_command_says_when_nothing_is_shared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overlap", str(folder / "a.txt"), str(folder / "b.txt")]) == 0
    assert capsys.readouterr().out == "0 documents of A and 0 of B share 0 runs of 13 words or more\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a.txt", "none.txt"], "none.txt"),
        (["a.txt", "b.txt", "--words", "1"], "words is 1; it must be 2 or more"),
        (["a.txt", "empty.jsonl"], "empty.jsonl: no documents in it"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    folder: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "empty.jsonl").touch()
    monkeypatch.chdir(folder)
    assert main(["overlap", *arguments]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
