"""Questions that their own passage does not answer, of questions that it does, for `quoth train reader`.

    python recipes/absent_answers.py squad.jsonl.gz redocred.jsonl.gz -o absent.jsonl.gz

A reader that only ever sees foreign passages without an answer takes any date of the right page for the one that is
asked. Three kinds: the passage without the sentences that name an answer; of questions made by templates, what is
asked of other subjects, but not of this one ("When was X born?" where the text says where); and a name or thing of the
question that the passage has, in place of which another question's stands ("in Leeds" for "in Rotherham").
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from relation_blanks import templated

from quoth.corpus.documents import read_records
from quoth.text.passages import sentences

LEAST_WORDS = 20
"""Words of a passage that remain, at least."""
Example = dict[str, Any]
_PART = re.compile(
    r"\b(?P<before>[a-z]+)\s(?P<part>[A-Z][\w'’-]+(?:\s(?:of\s)?[A-Z][\w'’-]+)*|(?<=\bthe\s)[a-z]{4,}(?=\s(?:of|in|on|at|for|to|from|by|with|was|is)\b|\?))"
)


def without_evidence(example: Example) -> Example | None:
    """The example without the sentences that name an answer; nothing if little remains, or an answer does."""
    text, said = example["context"], {answer["text"].casefold() for answer in example["answers"]}
    parts = [text[start:end].strip() for start, end in sentences(text)]
    kept = " ".join(part for part in parts if not any(answer in part.casefold() for answer in said))
    if len(kept.split()) < LEAST_WORDS or not said:
        return None
    return {**example, "context": kept, "answers": []}


def not_said(examples: Iterable[Example], rng: random.Random) -> Iterator[Example]:
    """For every subject of a passage a question that is asked of subjects like it, but not of it.

    Alike are subjects of whom one thing is asked of both.
    """
    known: dict[tuple[str, str], list[tuple[str, Example]]] = defaultdict(list)
    for example in examples:
        template, subject, _ = templated(example["question"])
        if template:
            known[example["context"], subject].append((template, example))
    beside: dict[str, set[str]] = defaultdict(set)
    for every in known.values():
        for template, _ in every:
            beside[template] |= {other for other, _ in every}
    for (_, subject), every in known.items():
        said = {template for template, _ in every}
        if others := sorted(set().union(*(beside[template] for template in said)) - said):
            asked = rng.choice(others).replace("(.+)", subject).replace("\\", "")
            yield {**every[0][1], "question": f"{asked}?", "answers": []}


def swapped(examples: Iterable[Example], rng: random.Random) -> Iterator[Example]:
    """Questions in which a name, or what follows "the", was replaced by that of another question, after the same word.

    The passage has what was replaced and not what replaces it.
    """
    parts: dict[tuple[str, bool], list[str]] = defaultdict(list)
    found = []
    for example in examples:
        for match in _PART.finditer(example["question"]):
            part = match["part"]
            like = parts[match["before"].casefold(), part[0].isupper()]
            like.append(part)
            if part.casefold() in example["context"].casefold():
                found.append((example, match.span("part"), like))
    for example, (start, end), like in found:
        question, other = example["question"], rng.choice(like)
        if other.casefold() not in f"{example['context']}\n{question}".casefold():
            yield {**example, "question": question[:start] + other + question[end:], "answers": []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", help="JSONL, compressed or not")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, made = random.Random(options.seed), list[Example]()
    for file in options.questions:
        every = [dict(example) for _, example in read_records(file)]
        made += filter(None, map(without_evidence, every))
        made += not_said(every, rng)
        made += swapped(every, rng)
    rng.shuffle(made)
    with gzip.open(options.output, "wt", encoding="utf-8") as stream:
        for example in made:
            stream.write(json.dumps(example, ensure_ascii=False) + "\n")
    print(f"{options.output}: {len(made):,} questions without an answer")


if __name__ == "__main__":
    main()
