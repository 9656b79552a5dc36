"""Questions and blanks about relations, of templated questions: "Where was X born?" becomes "X was born in [MASK]."

    python recipes/relation_blanks.py questions.jsonl.gz -o relations.jsonl.gz --apart facts.jsonl

In and out: the lines `quoth train reader` takes. A question whose template is in the list below becomes a blank half of
the time; all others are kept as they are. An example whose passage shares twelve words in a row with a text of
`--apart` (the evidence of a test) is left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from quoth.corpus.documents import read_records, read_text
from quoth.corpus.exact.overlap import overlap
from quoth.records import Document
from quoth.text.tokenizer import MASK

ROW = 12  # words in a row that make two texts the same
YEAR = re.compile(r"\b\d{4}$")

# A question's template and the statements it can become; _ is the blank, X the subject.
STATEMENTS = """
What country does X belong to|X belongs to _|X is in _
Where is X located|X is located in _|X is in _
In which country is X|X is in _|X is located in _
In which region is X located|X is in the region of _|X is located in _
Which country is X located in|X is located in _|X lies in _
What administrative area is X in|X is in _
What nationality is X|X is _|X has the nationality _
Which country is X a citizen of|X is a citizen of _|X holds the citizenship of _
What is the country of citizenship of X|X is a citizen of _
What event did X take part in|X took part in _|X competed at _
What does X belong to|X belongs to _|X is part of _
What is X part of|X is part of _|X belongs to _
What is a notable work of X|A notable work of X is _|X is best known for _
What is X known for|X is known for _|X became famous with _
In which work does X appear|X appears in _
Which group did X belong to|X belonged to _|X is a member of _
What organization is X a member of|X is a member of _|X joined _
When was X released|X was released on _|X was released in _
When did X come out|X came out on _|X came out in _
In what year was X published|X was published in _
In which country was X made|X was made in _|X comes from _
What country does X come from|X comes from _|X was created in _
On what island or landform is X located|X is located on _
Who sang X|X was sung by _|_ sang X
Who performed X|X was performed by _|_ performed X
Which artist recorded X|X was recorded by _|_ recorded X
On which continent is X|X is on the continent of _|X is located in _
What continent is X part of|X is part of _|X lies in _
In which war did X fight|X fought in _
What conflict was X involved in|X was involved in _
When was X founded|X was founded in _|X was founded on _
When was X created|X was created in _
In what year was X established|X was established in _
On what date was X born|X was born on _|X was born in _
What is the date of birth of X|X was born on _|X was born in _
When was X born|X was born on _|X was born in _
When did X die|X died on _|X died in _
On what date did X die|X died on _|X died in _
What is the date of death of X|X died on _|X died in _
What label was X on|X was signed to _|The label of X is _
Which record label released X|X was released by _
What body of water is X next to|X lies on _|X is next to _
On which lake, river or sea is X located|X lies on _
Who was married to X|X was married to _
What is the parent company of X|The parent company of X is _|X is a subsidiary of _
Which company owns X|X is owned by _|_ owns X
Where did X work|X worked in _|X worked at _
Who is X's father|The father of X is _|X is the child of _
Who was the father of X|The father of X was _
Who is X's mother|The mother of X is _
Who was the mother of X|The mother of X was _|X was born to _
What did X follow|X followed _|X came after _
What came before X|X came after _
What followed X|X was followed by _
What came after X|After X came _
Who owns X|X is owned by _|_ owns X
Who is the owner of X|The owner of X is _
Who developed X|X was developed by _|_ developed X
What company was the developer of X|The developer of X was _
Who wrote X|X was written by _|_ wrote X
Who is the author of X|The author of X is _|X is a book by _
In what place was X born|X was born in _|The birthplace of X is _
What is the birthplace of X|X was born in _|The birthplace of X is _
Where was X born|X was born in _|X was a native of _
Who created X|X was created by _|_ created X
Who is the creator of X|The creator of X is _
What did X perform|X performed _
What award did X receive|X received _|X was awarded _
Which prize was X given|X was given _
Where did X take place|X took place in _|X was held in _
When did X take place|X took place in _|X was held on _
In what league did X compete|X competed in _
Which league does X play in|X plays in _
Which language did X use|X used _|X wrote in _
What language does X speak|X speaks _
What is the original language of X|The original language of X is _|X was made in _
In what language was X made|X was made in _|The language of X is _
Who was the composer of X|The composer of X was _|X was composed by _
Where did X die|X died in _|X died at _
In which place did X die|X died in _|The place of death of X is _
Who starred in X|X starred _|_ starred in X
Who was a cast member of X|_ was in the cast of X
In which military branch did X serve|X served in _
Who was the spouse of X|The spouse of X was _|X was married to _
Who is X married to|X is married to _
Whom did X marry|X married _
What body of water does X empty into|X empties into _
Where does X flow into|X flows into _
What religion does X follow|X follows _|The religion of X is _
Which religion is X associated with|X is associated with _
Who is the child of X|The child of X is _|X had a child named _
Who was a son or daughter of X|X was the parent of _
Who employed X|X worked for _|X was employed by _
Which organization did X work for|X worked for _
Which organization did X work for or belong to|X worked for _
Who published X|X was published by _
What company was the publisher of X|The publisher of X was _
Which political party did X belong to|X was a member of _|X belonged to _
What party was X a member of|X was a member of _
Who manufactured X|X was manufactured by _|X was made by _
What company makes X|X is made by _|_ makes X
Where did X study|X studied at _|X attended _
Where was X educated|X was educated at _
Which school or university did X attend|X attended _|X studied at _
Who was the producer of X|The producer of X was _
Who produced X|X was produced by _
X was directed by whom|X was directed by _
Who was the director of X|The director of X was _
Who directed X|X was directed by _|_ directed X
X was written by whom|X was written by _
What kind of music or work is X|X is a kind of _|The genre of X is _
On which network did X air|X aired on _
What channel originally broadcast X|X was first broadcast by _
Who founded X|X was founded by _|_ founded X
Who was the founder of X|The founder of X was _
By whom was X established|X was established by _
Which team did X play for|X played for _
What club has X been a player of|X has played for _
What position does X play|X plays as _|The position of X is _
At which position did X play|X played as _
What sport is X associated with|The sport of X is _
Which sport does X involve|X is a kind of _
What river or obstacle does X span|X spans _|X crosses _
What does X cross|X crosses _|X is a bridge over _
What kind of singing voice does X have|X is a _|The voice of X is _
What is the voice type of X|The voice type of X is _
What was the rank of X|X held the rank of _
What military rank did X hold|X held the rank of _
What is the main subject of X|The main subject of X is _|X is about _
What is X about|X is about _
What constellation does X belong to|X is in the constellation of _
In which constellation is X|X is in the constellation of _
Where is the headquarters of X|The headquarters of X is in _|X is headquartered in _
Where is X based|X is based in _|X has its headquarters in _
Where was X founded|X was founded in _|X was formed in _
Where does X live|X lives in _
Where did X live|X lived in _
Whose child is X|X is a child of _
Who is a parent of X|A parent of X is _
Who is the CEO of X|The CEO of X is _
Who is the chief executive of X|The chief executive of X is _
"""
TEMPLATES: list[tuple[re.Pattern[str], list[str]]] = [
    (re.compile(re.escape(question).replace("X", "(.+)", 1)), statements)
    for question, *statements in (line.split("|") for line in STATEMENTS.strip().splitlines())
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", help="JSONL, compressed or not")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--apart", nargs="*", default=[], help="texts that no passage may share twelve words with")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    examples = [dict(record) for file in options.questions for _, record in read_records(file)]
    left_out = sharing(options.apart, (example["context"] for example in examples))
    blanks = 0
    with gzip.open(options.output, "wt", encoding="utf-8") as stream:
        for number, example in enumerate(examples):
            if number in left_out:
                continue
            statements = list(blanked(example["question"], example["answers"]))
            if statements and rng.random() < 0.5:
                blanks += 1
                example["question"], example["answers"] = rng.choice(statements)
            stream.write(json.dumps(example, ensure_ascii=False) + "\n")
    written = len(examples) - len(left_out)
    print(f"{options.output}: {written:,} of {len(examples):,} examples, {blanks:,} of them blanks")


def templated(question: str) -> tuple[str, str, list[str]]:
    """The pattern of a question's template, its subject, and the statements it can become; "" and none if no template
    fits."""
    asked = question.strip().rstrip("?").strip()
    for pattern, statements in TEMPLATES:
        if found := pattern.fullmatch(asked):
            return pattern.pattern, found[1], statements
    return "", "", []


def blanked(question: str, answers: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The statements a question can become, with their answers; after "in", a date's answer is its year."""
    is_dated = question.strip().startswith(("When", "On what date", "In what year", "What is the date"))
    _, subject, statements = templated(question)
    for statement in statements:
        given = list(answers)
        if is_dated:
            dated = [year(each) if " in _" in statement else each for each in given]
            given = [each for each in dated if each]
            if " on _" in statement and all(each["text"].isdigit() for each in given):
                continue  # a year alone does not stand after "on"
        if given:
            yield statement.replace("X", subject, 1).replace("_", MASK, 1) + ".", given


def year(answer: dict[str, Any]) -> dict[str, Any]:
    """The year at an answer's end as an answer of its own; nothing if it ends otherwise."""
    found = YEAR.search(answer["text"])
    return {"text": found[0], "start": answer["start"] + found.start()} if found else {}


def sharing(files: Iterable[str], texts: Iterable[str]) -> set[int]:
    """The numbers of the texts that share ``ROW`` words in a row with one of these files, whatever is between the
    words."""
    known = (Document("", "", words(read_text(file))) for file in files)
    given = [Document(str(number), "", words(text)) for number, text in enumerate(texts)]
    return {int(pair.b.document_id) for pair in overlap(known, given, ROW)}


def words(text: str) -> str:
    """A text without punctuation."""
    return " ".join(re.findall(r"\w+", text))


if __name__ == "__main__":
    main()
