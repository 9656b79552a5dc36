"""Short blanks made of questions: "When was Ada Lovelace born?" becomes "Ada Lovelace was born in [MASK]."

    python recipes/question_blanks.py questions.jsonl.gz -o blanks.jsonl.gz

In and out: the lines `quoth train reader` takes. A question that no rule fits is left out. The rules know the order of
words and the irregular verbs, no grammar: a few sentences in a hundred are clumsy, none loses its answer.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from quoth.corpus.documents import read_records
from quoth.text.tokenizer import MASK

BE = {"is", "was", "are", "were"}
DO = {"did", "do", "does"}
AUXILIARIES = BE | DO | {"has", "have", "had", "can", "could", "will", "would", "may", "might", "must", "should"}
PREPOSITIONS = frozenset(
    re.findall("[a-z]+", "in on at by from to for during with of near since until under after before about as into")
)
DETERMINERS = PREPOSITIONS.union(
    re.findall("[a-z]+", "the a an his her its their this that these those any each first new and or not")
)
IRREGULAR = """be was been|become became become|begin began begun|break broke broken|bring brought brought|build built
built|buy bought bought|catch caught caught|choose chose chosen|come came come|cost cost cost|cut cut cut|deal dealt
dealt|die died died|draw drew drawn|drive drove driven|eat ate eaten|fall fell fallen|feel felt felt|fight fought fought
|find found found|fly flew flown|get got gotten|give gave given|go went gone|grow grew grown|have had had|hear heard
heard|hold held held|keep kept kept|know knew known|lay laid laid|lead led led|leave left left|lie lay lain|lose lost
lost|make made made|mean meant meant|meet met met|pay paid paid|put put put|read read read|ride rode ridden|rise rose
risen|run ran run|say said said|see saw seen|sell sold sold|send sent sent|set set set|show showed shown|sing sang sung|
speak spoke spoken|spend spent spent|stand stood stood|steal stole stolen|strike struck struck|take took taken|teach
taught taught|tell told told|think thought thought|throw threw thrown|understand understood understood|wear wore worn|
win won won|write wrote written|bear bore born|hide hid hidden|seek sought sought|shoot shot shot|split split split"""


class Verbs:
    """The verbs of a text: base form to past, and what looks like a participle."""

    def __init__(self, texts: Iterable[str]) -> None:
        words = Counter(word for text in texts for word in re.findall(r"[a-z]+", text))
        forms = [entry.split() for entry in IRREGULAR.replace("\n", " ").split("|")]
        self.past = {base: past for base, past, _ in forms}
        for word in words:
            past = f"{word}d" if word.endswith("e") else f"{word[:-1]}ied" if word.endswith("y") else f"{word}ed"
            if word not in self.past and word not in DETERMINERS and words[past] > 2:
                self.past[word] = past
        self._participles = {each[2] for each in forms}

    def is_past(self, word: str) -> bool:
        """Whether a word can be a past form or a participle."""
        return word.endswith("ed") or word in self._participles or word in self.past.values()

    def participle(self, words: Sequence[str]) -> int:
        """The place of the first participle after a subject, or -1."""
        return next((i for i, word in enumerate(words) if i and word.islower() and self.is_past(word)), -1)

    def base(self, words: Sequence[str]) -> int:
        """The place of the first verb after a subject, or -1."""
        places = range(1, len(words))
        return next((i for i in places if words[i] in self.past and words[i - 1].lower() not in DETERMINERS), -1)


def statement(question: str, preposition: str, verbs: Verbs) -> str | None:
    """A question as a sentence with a blank; `preposition` stands before an answer of time or place. None where no rule
    fits."""
    words = question.strip().rstrip("?").strip().split()
    if len(words) < 3:
        return None
    head, second = words[0].lower(), words[1].lower()
    if head in PREPOSITIONS and second in ("what", "which", "whom"):
        at = next((i for i, word in enumerate(words[2:6], 2) if word in AUXILIARIES), 0)
        return _told(words[at], words[at + 1 :], head, verbs) if at else None
    if head in ("when", "where"):
        return _told(second, words[2:], preposition, verbs)
    if head == "how" and second == "many":
        return _counted(words[2:], verbs)
    if head in ("who", "what") and second in AUXILIARIES:
        return _told(second, words[2:], None, verbs)
    if head == "who":
        return " ".join([MASK, *words[1:]])
    if head in ("what", "which"):
        at = next((i for i, word in enumerate(words[2:6], 2) if word in AUXILIARIES or verbs.is_past(word)), 0)
        if at and words[at] in AUXILIARIES and second in ("year", "day", "city", "country", "state"):
            return _told(words[at], words[at + 1 :], preposition, verbs)
        if at and words[at] in AUXILIARIES:
            return _told(words[at], words[at + 1 :], None, verbs)
        return " ".join([MASK, *words[at:]]) if at else None
    return None


def _told(auxiliary: str, rest: Sequence[str], preposition: str | None, verbs: Verbs) -> str | None:
    """The words after an auxiliary, told in the order of a statement. With a preposition the blank ends it."""
    if not rest:
        return None
    if auxiliary in BE:
        if preposition is None and verbs.is_past(rest[0]):
            return " ".join([MASK, auxiliary, *rest])
        at = verbs.participle(rest)
        ends = rest[-1] in PREPOSITIONS or at == len(rest) - 1
        if at > 0 and (preposition is not None or ends):
            return _ended([*rest[:at], auxiliary, *rest[at:]], preposition)
        if preposition is None and rest[-1] in PREPOSITIONS:
            return None
        return _ended([*rest, auxiliary], preposition)
    if auxiliary not in DO:
        return None
    at = verbs.base(rest)
    if at < 0 or rest[at] in ("do", "be", "have"):
        return None
    said = rest[at]
    if auxiliary == "did":
        said = verbs.past[said]
    elif auxiliary == "does":
        said += "es" if said.endswith(("s", "sh", "ch", "x", "o")) else "s"
    told = [*rest[:at], said]
    if preposition is not None or rest[-1] in PREPOSITIONS:
        return _ended([*told, *rest[at + 1 :]], preposition)
    return " ".join([*told, MASK, *rest[at + 1 :]])


def _counted(rest: Sequence[str], verbs: Verbs) -> str | None:
    """What follows "how many"."""
    at = next((i for i, word in enumerate(rest) if i and (word in AUXILIARIES or verbs.is_past(word))), 0)
    if not at or rest[at] not in AUXILIARIES:
        return " ".join([MASK, *rest])
    after = rest[at + 1 :]
    if rest[at] in BE and after and (after[0] == "there" or verbs.is_past(after[0])):
        return " ".join(["there", rest[at], MASK, *rest[:at], *after[1:]] if after[0] == "there" else [MASK, *rest])
    told = _told(rest[at], after, None, verbs) if rest[at] in DO else None
    return told.replace(MASK, " ".join([MASK, *rest[:at]])) if told else None


def _ended(words: Sequence[str], preposition: str | None) -> str:
    there = words[-1] in PREPOSITIONS or not preposition
    return " ".join([*words, *([] if there else [preposition or ""]), MASK])


def preposition_of(context: str, answer: dict[str, Any]) -> str:
    """What stands before an answer of time or place: the passage's preposition, nothing before one of its own."""
    if answer["text"].split()[0].lower() in PREPOSITIONS:
        return ""
    before = context[: answer["start"]].split()
    return before[-1].lower() if before and before[-1].lower() in PREPOSITIONS - {"of", "for", "with", "as"} else "in"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", help="JSONL, compressed or not")
    parser.add_argument("-o", "--output", required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows = [dict(row) for file in options.questions for _, row in read_records(file)]
    verbs, written = Verbs({row["context"] for row in rows}), 0
    with gzip.open(options.output, "wt", encoding="utf-8") as out:
        for row in rows:
            told = statement(row["question"], preposition_of(row["context"], row["answers"][0]), verbs)
            if told is None:
                continue
            text = f"{told[0].upper()}{told[1:]}" + rng.choice([".", ".", ""])
            titled = row["title"] and rng.random() < 0.1
            written += 1
            blank = {"id": f"{row['id']}-blank", "question": f"{row['title']}. {text}" if titled else text}
            out.write(json.dumps(row | blank, ensure_ascii=False) + "\n")
    print(f"{options.output}: {written:,} blanks of {len(rows):,} questions")


if __name__ == "__main__":
    main()
