"""Questions over documents as people have them: `python -m benchmarks.documents benchmarks/questions/household`.

The folder has `questions.jsonl` and a folder for each collection, in it or in `corpora/`. Each collection is synced
and asked as `quoth sync` and `quoth ask` do it by default. Prints, by kind of question, the share of those for which
what is shown first, or one of the first three things shown, is a place that answers; the share of phrases that are
right; and how many answers are sure, and right.

A place answers if the words that it shares with a part of the gold quotation are half of its own words or half of
that part's.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from quoth import Corpus, Reader
from quoth.corpus.sync import sync
from quoth.datasets.judging import exact_match
from quoth.datasets.questions import QAExample
from quoth.records import Evidence, Predictions, quote_of

_WORD = re.compile(r"\w+(?:['’]\w+)?")
Words = list[tuple[str, int, int]]
"""Words without case, with their characters."""


def words(text: str) -> Words:
    return [(found[0].casefold(), *found.span()) for found in _WORD.finditer(text)]


def places(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the parts of a quotation occur in a text, word for word."""
    there = words(text)
    for part in re.split(r"\s*…\s*", quote):
        wanted = [word for word, *_ in words(part)]
        for at in range(len(there) - len(wanted) + 1):
            if wanted and [word for word, *_ in there[at : at + len(wanted)]] == wanted:
                yield there[at][1], there[at + len(wanted) - 1][2]
                break


def answers(place: Evidence, gold: Mapping[str, Sequence[tuple[int, int]]], texts: Mapping[str, str]) -> bool:
    """Whether a place is, by half of its words or half of theirs, one of the gold places."""

    def count(start: int, end: int) -> int:
        return len(words(texts[place.document_id][start:end]))

    for start, end in gold.get(place.document_id, ()):
        shared = count(max(start, place.start), min(end, place.end)) if start < place.end and place.start < end else 0
        if shared and 2 * shared >= min(count(start, end), count(place.start, place.end)):
            return True
    return False


def shown(found: Predictions) -> list[Evidence]:
    """What a person sees, in its order."""
    return [each.evidence[0] for each in found.shown]


def judged(question: Mapping[str, Any], found: Predictions, texts: Mapping[str, str]) -> dict[str, float]:
    """What is measured of one question: shares from 0 to 1, and characters."""
    gold = defaultdict[str, list[tuple[int, int]]](list)
    for each in (*question["evidence"], *question.get("also", ())):
        gold[each["file"]] += places(each["quote"], texts.get(each["file"], ""))
    seen = shown(found)
    right = [answers(place, gold, texts) for place in seen[:3]]
    facts = {"sure": found.status == "answered", "length": len(quote_of(seen[0])) if seen else 0}
    if not question["evidence"]:
        return facts
    facts |= {"first": any(right[:1]), "among three": any(right), "quotation found": bool(gold and all(gold.values()))}
    if facts["sure"]:
        facts["right if sure"] = any(right[:1])
    if question["short"]:
        wanted = QAExample(question["id"], question["question"], tuple(question["short"]))
        facts["phrase"] = bool(found) and exact_match(found[0].text, wanted)
    return {name: float(value) for name, value in facts.items()}


def asked(folder: Path, questions: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """What is measured of each question about the documents of a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus.create(Path(scratch) / "c.quoth")
        sync(corpus, folder)
        texts = {document.id: document.text for document in corpus.documents()}
        reader = Reader.from_pretrained("quoth-reader", corpus=corpus)
        reader.finder.embed()  # as `quoth sync` does
        found = reader.ask([each["question"] for each in questions], top_k=3)
        return [judged(question, one, texts) for question, one in zip(questions, found, strict=True)]


def table(rows: Sequence[tuple[str, dict[str, float]]]) -> str:
    """A line for each kind of question, and one for all."""
    kinds = [*dict.fromkeys(kind for kind, _ in rows), "all"]
    lines = [f"{'':12}{'questions':>10}" + "".join(f"{name:>16}" for name in _MEASURES) + f"{'characters':>12}"]
    for kind in kinds:
        own = [facts for other, facts in rows if kind in (other, "all")]
        cells = [[facts[name] for facts in own if name in facts] for name in _MEASURES]
        shares = "".join(f"{100 * statistics.mean(cell):>14.1f} %" if cell else f"{'':>16}" for cell in cells)
        lines.append(f"{kind:12}{len(own):>10}{shares}{statistics.median(facts['length'] for facts in own):>12.0f}")
    return "\n".join(lines)


_MEASURES = ("first", "among three", "phrase", "sure", "right if sure", "quotation found")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.documents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    by_collection = defaultdict[str, list[dict[str, Any]]](list)
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        by_collection[question["collection"]].append(question)
    rows: list[tuple[str, dict[str, float]]] = []
    for name, questions in by_collection.items():
        own = next(each for each in (folder / name, folder / "corpora" / name) if each.is_dir())
        found = asked(own, questions)
        rows += [(question["kind"], facts) for question, facts in zip(questions, found, strict=True)]
        print(f"{name}\n{table(rows[-len(questions) :])}\n", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
