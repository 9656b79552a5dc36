"""Questions as people type them into a search box: "What is the admin password of the router?" becomes "admin password
router".

    python recipes/keyword_questions.py questions.jsonl.gz -o keywords.jsonl.gz

In and out: the lines `quoth train reader` takes, with the question `in_full` for a teacher; blanks lose their blank. A
question of which fewer than two words are left is left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Sequence

from quoth.corpus.documents import read_records
from quoth.text.boundaries import STOP_WORDS
from quoth.text.tokenizer import MASK

TELLING = {"first", "not", "no", "after", "before", "above", "below", "under", "over", "during", "until", "without"}
TELLING |= {"most", "more", "few", "same"}
ASKED = {"who", "when", "where", "how"}


def keywords(question: str, rng: random.Random) -> str | None:
    """The words of a question that name something, a quarter of the time all but one of them, and a quarter of the time
    the last ones first. One in three keeps its who, when, where or how."""
    keeps_asked = rng.random() < 1 / 3
    words = [
        word
        for word in (word.strip("?!.,;:\"'()") for word in question.replace(MASK, " ").split())
        if word and (_tells(word) or (keeps_asked and word.casefold() in ASKED))
    ]
    if len(words) > 3 and rng.random() < 1 / 4:
        del words[rng.randrange(len(words))]
    if rng.random() < 1 / 4:
        turn = rng.randrange(len(words) or 1)
        words = words[turn:] + words[:turn]
    if len(words) < 2:
        return None
    text = " ".join(words)
    if rng.random() < 1 / 2:
        text = text.replace("'s ", " ").replace("’s ", " ")
    return text.lower() if rng.random() < 1 / 2 else text


def _tells(word: str) -> bool:
    return word.casefold() in TELLING or word.casefold() not in STOP_WORDS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", help="JSONL, compressed or not")
    parser.add_argument("-o", "--output", required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    rows = [dict(row) for _, row in read_records(options.questions)]
    written = 0
    with gzip.open(options.output, "wt", encoding="utf-8") as out:
        for row in rows:
            if (text := keywords(row["question"], rng)) is not None:
                written += 1
                words = {"id": f"{row['id']}-words", "question": text, "in_full": row["question"]}
                out.write(json.dumps(row | words, ensure_ascii=False) + "\n")
    print(f"{options.output}: keywords of {written:,} of {len(rows):,} questions")


if __name__ == "__main__":
    main()
