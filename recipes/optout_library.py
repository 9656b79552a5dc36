"""The library of docs/optout.md: pages of three sources, each with its name as metadata, and questions about them.

    python recipes/optout_library.py DATA -o FOLDER

DATA has `corpora/` (the World Factbook of 2026, Wikipedia of 2018) and `tasks/` (EntityQuestions, SQuAD 1.1), as the
page names them; FOLDER gets `library.jsonl` and `questions.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quoth_sources.files import OPENERS

COUNTRIES, PAGES, ARTICLES, QUESTIONS = 40, 200, 24, 20
OUR_QUESTIONS = Path(__file__).parents[1] / "benchmarks/questions"
Made = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def opened(path: Path) -> Any:
    return OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with opened(path) as stream:
        yield from map(json.loads, stream)


def factbook(data: Path) -> Made:
    """All pages of the countries that our questions ask about, and of as many others as are missing."""
    asked = [each for file in sorted(OUR_QUESTIONS.glob("factbook*_questions.jsonl")) for each in lines(file)]
    pages = [*lines(data / "corpora/factbook-2026-05-17.jsonl.xz")]
    wanted = {each["page"].split("-")[0] for each in asked}
    for page in pages:
        if len(wanted) < COUNTRIES:
            wanted.add(page["id"].split("-")[0])
    return [page for page in pages if page["id"].split("-")[0] in wanted], asked


def wikipedia(data: Path, rng: random.Random) -> Made:
    """Pages that answer a question of EntityQuestions about their title, and others."""
    pages = {page["title"]: page for page in lines(data / "corpora/wiki2018.jsonl.xz")}
    asked = [
        (pages[title], {"question": each["question"], "answer": each["answers"]})
        for file in sorted((data / "tasks/entityquestions/test").glob("*.json"))
        for each in json.loads(file.read_text(encoding="utf-8"))
        for title in sorted(pages.keys() & set(_runs(each["question"].rstrip("?"))))
        if any(answer in pages[title]["text"] for answer in each["answers"])
    ]
    chosen = rng.sample(asked, QUESTIONS)
    about = {page["title"]: page for page, _ in chosen}
    others = rng.sample(sorted(pages.keys() - about.keys()), PAGES - len(about))
    return [*about.values(), *(pages[title] for title in others)], [question for _, question in chosen]


def _runs(text: str) -> Iterator[str]:
    """All runs of words of two words or more."""
    words = text.split()
    for start in range(len(words)):
        for end in range(start + 2, len(words) + 1):
            yield " ".join(words[start:end])


def squad(data: Path, rng: random.Random) -> Made:
    """Articles, and questions about some of their paragraphs."""
    (file,) = (data / "tasks/squad").glob("dev-v1.1.json*")
    with opened(file) as stream:
        articles = rng.sample(json.load(stream)["data"], ARTICLES)
    pages = [
        {"title": each["title"].replace("_", " "), "text": "\n\n".join(part["context"] for part in each["paragraphs"])}
        for each in articles
    ]
    asked = [
        {"question": question["question"], "answer": [answer["text"] for answer in question["answers"]]}
        for each in articles
        for part in each["paragraphs"]
        for question in part["qas"]
    ]
    return pages, rng.sample(asked, QUESTIONS)


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    made = {
        "factbook": factbook(given.data),
        "wikipedia": wikipedia(given.data, rng),
        "articles": squad(given.data, rng),
    }
    with (given.output / "library.jsonl").open("w", encoding="utf-8") as stream:
        for source, (pages, _) in made.items():
            for number, page in enumerate(pages):
                own = {"id": f"{source}-{number}", "source": source, "title": page["title"], "text": page["text"]}
                stream.write(f"{json.dumps(own, ensure_ascii=False)}\n")
    with (given.output / "questions.jsonl").open("w", encoding="utf-8") as stream:
        for _, asked in made.values():
            stream.writelines(
                f"{json.dumps({key: each[key] for key in ('question', 'answer')}, ensure_ascii=False)}\n"
                for each in asked
            )


if __name__ == "__main__":
    main()
