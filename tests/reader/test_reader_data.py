"""What the reader is trained on beside real questions: short blanks made of questions, and made pages of fields."""

import gzip
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.reader.data import read_examples

sys.path.insert(0, str(Path(__file__).parents[2] / "recipes"))

from absent_answers import swapped

ROOT = Path(__file__).parents[2]
Make = Callable[..., list[dict[str, Any]]]
CONTEXT = "The engine was begun in 1834 by Charles Babbage. It still needed 25 thousand parts."
TOLD = {
    "Who began the engine?": "[MASK] began the engine",
    "What is the name of the engine?": "The name of the engine is [MASK]",
    "When was the engine begun?": "The engine was begun in [MASK]",
    "In what year did Charles Babbage begin the engine?": "Charles Babbage began the engine in [MASK]",
    "How many parts did it need?": "It needed [MASK] parts",
    "What does the engine need?": "The engine needs [MASK]",
    "Which man began the engine?": "[MASK] began the engine",
    "Why?": None,
}


@pytest.fixture
def make(script: Callable[..., str]) -> Make:
    """What a script makes of a file with some options."""

    def run(name: str, source: Path, out: Path, *options: str) -> list[dict[str, Any]]:
        script(ROOT / "recipes" / name, source, "-o", out, *options)
        read_examples(out)
        with gzip.open(out, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return run


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    texts = "They need parts and needed more; he needed, she needed, all needed."
    answer = {"text": "1834", "start": CONTEXT.index("1834")}
    rows = [
        {"id": str(i), "title": "", "context": f"{CONTEXT} {texts}", "question": question, "answers": [answer]}
        for i, question in enumerate(TOLD)
    ]
    return written(tmp_path / "questions.jsonl", rows)


def written(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def test_questions_are_told_as_blanks(questions: Path, tmp_path: Path, make: Make) -> None:
    made = make("question_blanks.py", questions, tmp_path / "blanks.jsonl.gz")
    assert [each["question"].rstrip(".") for each in made] == [told for told in TOLD.values() if told]


@pytest.mark.parametrize("name", ["absent_answers.py", "question_blanks.py", "relation_blanks.py"])
def test_only_a_line_break_ends_a_line(name: str, tmp_path: Path, make: Make) -> None:
    """Not what Python's `splitlines` takes for an end as well, which JSON need not escape."""
    context = f"{CONTEXT}\u2028\x85It had wheels, cards, a mill and a store, but nobody has ever finished building it."
    answer = {"text": "1834", "start": CONTEXT.index("1834")}
    row = {"id": "0", "title": "", "context": context, "question": "When was the engine begun?", "answers": [answer]}
    (tmp_path / "q.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert make(name, tmp_path / "q.jsonl", tmp_path / "made.jsonl.gz")


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Questions whose answers are names and terms, all of one text."""
    terms = ["wheel", "brass", "steam", "paper", "cards", "notes", "prints", "tables", "gears", "looms"]
    names = ["Ada Lovelace", "Luigi Menabrea", "Charles Babbage", "Mary Somerville", "London", "Turin", "Paris"]
    names += ["Grace Hopper", "Emmy Noether", "Alan Turing", "Georg Cantor"]
    return listed(tmp_path / "q.jsonl", [*terms, *names])


def listed(file: Path, answers: list[str]) -> Path:
    """A question for each answer, all about one text that lists them."""
    text = ", ".join(answers)
    about = {"title": "", "context": text, "question": "Which one?"}
    return written(
        file, [{"id": each, **about, "answers": [{"text": each, "start": text.index(each)}]} for each in answers]
    )


def test_a_page_of_fields_holds_its_answer_and_its_negatives_hold_the_field_under_other_titles(
    words: Path, tmp_path: Path, make: Make
) -> None:
    text = read_examples(words)[0].passage.text
    made = make("field_pages.py", words, tmp_path / "f.jsonl.gz", "--count", "60", "--seed", "1")
    assert len(made) == 60
    for each in made:
        (answer,), label = each["answers"], each["id"].split("-")[2]
        assert each["context"][answer["start"] :].startswith(answer["text"])
        others = [page["context"].lower() for page in each["negatives"] if page["context"] != text]
        assert len(others) < len(each["negatives"]), "prose that names the subject"
        assert sum(label in other for other in others) == 3, "the same fields under other titles"
        assert len(others) - 3 <= 1, "another section about the subject"
        assert all(page["title"] != each["title"] for page in each["negatives"])


def test_a_row_holds_what_is_asked_of_it_or_has_no_such_column(words: Path, tmp_path: Path, make: Make) -> None:
    made = make("field_pages.py", words, tmp_path / "r.jsonl.gz", "--count", "200", "--rows")
    seen = {"absent": 0, "name": 0, "value": 0, "alone": 0}
    for each in made:
        label, context = each["id"].rsplit("-", 1)[1], each["context"]
        seen["alone"] += "\n" not in context
        if not each["answers"]:
            assert label in each["question"]
            assert label not in context.lower()
            seen["absent"] += 1
            continue
        (answer,) = each["answers"]
        before = context[: answer["start"]].rpartition("\n")[2]
        assert context[answer["start"] :].startswith(answer["text"])
        assert before.lower().endswith((f"{label}: ", f"{label} is ")) or not before
        seen["value" if " | " in before or "; " in before else "name"] += 1
        row = next(line for line in context.split("\n") if line.startswith(before))
        assert row not in [other["context"] for other in each["negatives"]]
    assert min(seen.values()) > 10


def test_a_list_holds_what_is_asked_of_it_or_has_no_such_thing(words: Path, tmp_path: Path, make: Make) -> None:
    rows = json.loads(words.read_text(encoding="utf-8").splitlines()[0])["context"].split(", ")
    more = [f"{rows[n % 10]} of {rows[n // 10 % 10]}" for n in range(40)]
    every = listed(tmp_path / "more.jsonl", [*dict.fromkeys([*rows, *more])])
    made = make("field_pages.py", every, tmp_path / "l.jsonl.gz", "--count", "300", "--lists")
    seen = {"absent": 0, "now": 0, "before": 0, "thing": 0, "value": 0}
    for each in made:
        question, context, thing = each["question"], each["context"], each["id"].split("-", 2)[2]
        if not each["answers"]:
            seen["absent"] += 1
            assert thing not in re.split(r"\bof (?=[A-Z])| at | in |\?", question), "another thing is asked for"
            continue
        (answer,) = each["answers"]
        assert context[answer["start"] :].startswith(answer["text"])
        line = context[context.rfind("\n", 0, answer["start"]) + 1 :].split("\n")[0]
        assert thing in line
        assert thing in (question if answer["text"].removeprefix("the ") != thing else answer["text"])
        if change := re.search(r"from (.+) to (.+?)[.;,]?$", line):
            was = re.search("What was", question) is not None
            assert answer["text"] == change[1 if was else 2]
            seen["before" if was else "now"] += 1
        seen["value" if thing in question else "thing"] += 1
    assert min(seen.values()) > 5, seen


def test_a_name_or_thing_of_a_question_is_swapped_for_one_that_the_passage_does_not_have() -> None:
    told = [
        {"question": "Who lived in Turin in 1840?", "context": "Menabrea lived in Turin.", "answers": [{}]},
        {"question": "Who died in Paris?", "context": "Germain died in Paris, not in Turin.", "answers": [{}]},
        {
            "question": "Who lent the tables to the club?",
            "context": "Ada lent the tables to the club.",
            "answers": [{}],
        },
        {"question": "Who saw the engine in London?", "context": "Mary saw it in London.", "answers": [{}]},
    ]
    asked = set()
    for seed in range(40):
        made = list(swapped(told, random.Random(seed)))
        assert not any(each["answers"] for each in made)
        asked |= {(each["question"], each["context"]) for each in made}
    turin, paris, club, london = (each["context"] for each in told)
    assert asked == {
        *((f"Who lived in {place} in 1840?", turin) for place in ("Paris", "London")),
        ("Who died in London?", paris),  # its passage has Turin too
        ("Who lent the engine to the club?", club),
        ("Who lent the tables to the engine?", club),
        *((f"Who saw the engine in {place}?", london) for place in ("Turin", "Paris")),
    }


def test_what_a_passage_does_not_say_is_asked_of_it(tmp_path: Path, make: Make) -> None:
    long = "Her notes are kept in the library of a college, which shows them to whoever asks, on every day of the week."
    turin = "Luigi Menabrea was born in Turin on 4 September 1809."
    context = f"Ada Lovelace was born in London. {long} London has her desk. {turin}"
    told = {
        "Where was Ada Lovelace born?": "London",
        "Where was Luigi Menabrea born?": "Turin",
        "When was Luigi Menabrea born?": "4 September 1809",
    }
    rows = [
        {"id": said, "title": "", "context": context, "question": question, "answers": [answer]}
        for question, said in told.items()
        for answer in [{"text": said, "start": context.index(said)}]
    ]
    made = make("absent_answers.py", written(tmp_path / "told.jsonl", rows), tmp_path / "absent.jsonl.gz")
    assert not any(each["answers"] for each in made)
    without = f"Ada Lovelace was born in London. {long} London has her desk."
    assert {(each["question"], each["context"]) for each in made} == {
        ("Where was Ada Lovelace born?", f"{long} {turin}"),
        ("Where was Luigi Menabrea born?", without),
        ("When was Luigi Menabrea born?", without),
        ("When was Ada Lovelace born?", context),
    }


def test_relations_become_statements_and_dates_after_in_keep_their_year_alone(tmp_path: Path, make: Make) -> None:
    context = (
        "Ada Lovelace was born on 10 December 1815 in London. " + "Her notes are kept in the library of a college. " * 2
    )
    date, place = ({"text": text, "start": context.index(text)} for text in ("10 December 1815", "London"))
    asked = {"When was Ada Lovelace born?": date, "Where was Ada Lovelace born?": place, "Why was she born?": place}
    rows = [
        {"id": str(i), "title": "", "context": context, "question": question, "answers": [answer]}
        for i, (question, answer) in enumerate([*asked.items()] * 20)
    ]
    made = make("relation_blanks.py", written(tmp_path / "told.jsonl", rows), tmp_path / "blanks.jsonl.gz")
    assert {(each["question"], each["answers"][0]["text"]) for each in made} == {
        ("When was Ada Lovelace born?", "10 December 1815"),
        ("Ada Lovelace was born on [MASK].", "10 December 1815"),
        ("Ada Lovelace was born in [MASK].", "1815"),
        ("Where was Ada Lovelace born?", "London"),
        ("Ada Lovelace was born in [MASK].", "London"),
        ("Ada Lovelace was a native of [MASK].", "London"),
        ("Why was she born?", "London"),
    }
    test = tmp_path / "test.txt"
    test.write_text("ada lovelace was born on 10 december 1815, in london; her notes", encoding="utf-8")
    other = rows[0] | {"id": "other", "context": "Born on 10 December 1815."}
    other["answers"] = [{"text": "10 December 1815", "start": 8}]
    both = written(tmp_path / "both.jsonl", [*rows, other])
    left = make("relation_blanks.py", both, tmp_path / "left.jsonl.gz", "--apart", str(test))
    assert [each["id"] for each in left] == ["other"]


def test_entities_get_evidence_that_names_them_and_negatives_without_an_answer(tmp_path: Path, make: Make) -> None:
    pages = {
        "Ada Lovelace": "Ada Lovelace was born in London. She wrote notes.",
        "Notes": "A note on Ada Lovelace, whose mother left London with her soon.",
        "Turin": "Where was Ada Lovelace heard of? Born in Turin was Luigi Menabrea.",
        "Menabrea": "Luigi Menabrea was born in Chambéry and lived in Turin.",
    }
    documents = [{"id": title, "title": title, "text": text} for title, text in pages.items()]
    asked = {"Ada Lovelace": "London", "Luigi Menabrea": "Chambéry", "Nobody Known": "London"}
    questions = [{"question": f"Where was {name} born?", "answers": [place]} for name, place in asked.items()]
    (tmp_path / "P19.dev.json").write_text(json.dumps(questions), encoding="utf-8")
    (tmp_path / "P19.test.json").write_text(json.dumps(questions[1:2]), encoding="utf-8")
    (tmp_path / "templates.json").write_text(json.dumps({"P19": "Where was [X] born?"}), encoding="utf-8")
    corpus = Corpus.create(tmp_path / "pages.quoth")
    corpus.add(read_documents(written(tmp_path / "pages.jsonl", documents)))
    options = ["--templates", str(tmp_path / "templates.json"), str(tmp_path / "P19.dev.json")]

    made = make("entity_blanks.py", tmp_path / "pages.quoth", tmp_path / "all.jsonl.gz", *options)
    texts = {"Where was Ada Lovelace born?", "Ada Lovelace was born in [MASK]."}
    assert {each["question"] for each in made if each["title"] in ("Ada Lovelace", "Notes")} == texts
    assert {each["title"] for each in made} == {"Ada Lovelace", "Notes", "Menabrea"}  # the entity's own page first
    assert [each["title"] for each in made][:2] == ["Ada Lovelace"] * 2
    for each in made:
        (answer,) = each["answers"]
        assert each["context"][answer["start"] :].startswith(answer["text"])
        assert all(answer["text"] not in page["context"] for page in each["negatives"])
    assert {page["title"] for page in made[0]["negatives"]} >= {"Turin"}

    apart = [*options, "--leave-out", str(tmp_path / "P19.test.json")]
    left = make("entity_blanks.py", tmp_path / "pages.quoth", tmp_path / "left.jsonl.gz", *apart)
    assert {each["title"] for each in left} == {"Ada Lovelace", "Notes"}
    heldout = written(tmp_path / "heldout.jsonl", [{"id": "Notes", "title": "Notes"}])
    kept = make(
        "entity_blanks.py", tmp_path / "pages.quoth", tmp_path / "kept.jsonl.gz", *apart, "--exclude", str(heldout)
    )
    assert {each["title"] for each in kept} == {"Ada Lovelace"}


def test_an_average_lies_between_two_readers(tmp_path: Path, script: Callable[..., str]) -> None:
    name = "encoder.encoder.layer.5.output.dense.weight"
    asked = ["quoth-reader-small", "quoth-reader-base", "-o", tmp_path / "between", "--weight", "0.25"]
    script(ROOT / "recipes" / "average_readers.py", *asked)
    before, between = (
        load_file(folder / "reader.safetensors") for folder in (ROOT / "adapters" / "reader-mini", tmp_path / "between")
    )
    change, part = (each[name].float() * each[f"{name}.scale"] for each in (before, between))
    assert change.abs().max() > 0
    assert (part - 0.75 * change).abs().max() <= between[f"{name}.scale"].max()  # the base has no change at all
