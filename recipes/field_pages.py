"""Made pages of fields and values, rows of tables and lists, with questions and blanks.

    python recipes/field_pages.py questions.jsonl.gz -o fields.jsonl.gz --count 12000

A reader trained on prose marks the right field of the wrong page. Here every question has pages of the same fields
under other titles as negatives, another section about the same subject, and prose that names the subject. Pages name
their subject in the title alone; of a table (`--rows`), one row or several are shown, and a share of the questions asks
for a column that is not there. Lists (`--lists`: ingredients, prices, times, tasks, changes) stand under headings, most
of their lines without punctuation; a share of the questions asks for what is on no list. Names and terms are drawn from
the answers of the questions given; nothing is true.
"""

from __future__ import annotations

import argparse
import calendar
import gzip
import json
import random
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from quoth.reader.data import ReadingExample, TitledText, read_examples

MONTHS = calendar.month_name[1:]
NOTES = (" (2021 est.)", " (as of 2018)", " [3]", "; see also below", " (approx.)", " (official)", ", ranked 14th")
LEADS = ("name: ", "total: ", "main: ", "value: ")
# Parts of a field with parts, "Mouth - name: …": what the field's own value is called, and what else is said of it.
VALUES = ("name", "total", "main", "title", "most recent")
ASIDES = {
    "etymology": 'the name comes from {name}, meaning "{term}"',
    "former": "{name}; {other}",
    "note": "{name} was preferred to {other} until {year}",
    "year": "{year}",
    "rank": "{number}",
    "comparative": "slightly larger than {name}; about half the size of {other}",
}

SUBJECTS = {
    "company": """chief executive=person|headquarters=place|founder=person|founding date=date|motto=term|
        number of employees=number|annual revenue=money|stock symbol=symbol|main product=term|parent company=name""",
    "river": """length=length|source=place|mouth=place|average discharge=number|longest tributary=name|basin area=area|
        mean depth=length|largest dam=name|lowest bridge=name|fish species=number""",
    "town": """mayor=person|population=number|land area=area|elevation=length|time zone=symbol|postal code=symbol|
        twin town=place|oldest church=name|density=number|charter date=date|main industry=term|nearest airport=name""",
    "book": """author=person|publisher=name|publication date=date|number of pages=number|translator=person|genre=term|
        original title=term|cover artist=person|price=money|dedication=person|language=word""",
    "film": """director=person|running time=time|budget=money|composer=person|release date=date|leading actor=person|
        distributor=name|filming location=place|box office=money|editor=person""",
    "program": """author=person|default port=number|configuration file=file|current version=version|licence=name|
        maintainer=person|default output=file|timeout=time|language=word|log level=word|buffer size=size|
        exit status=number|compression method=term|home page=file""",
    "ship": """captain=person|displacement=mass|builder=name|launch date=date|top speed=speed|crew=number|length=length|
        home port=place|owner=name|engine power=number|call sign=symbol""",
    "athlete": """coach=person|height=length|weight=mass|date of birth=date|birthplace=place|club=name|
        personal best=time|nickname=term|number of medals=number|shirt number=number|salary=money""",
    "school": """principal=person|number of students=number|motto=term|opening date=date|campus area=area|mascot=word|
        library=name|annual fee=money|school colour=word|founder=person|address=place""",
    "chemical": """melting point=number|boiling point=number|density=number|formula=symbol|discoverer=person|
        discovery date=date|colour=word|molar mass=mass|main use=term|price=money""",
    "park": """area=area|highest peak=name|warden=person|visitors=number|opening date=date|national flower=word|
        nearest town=place|highest elevation=length|entrance fee=money|rare species=term|governing body=name""",
}
ASKED = {
    "person": ("Who is the {label} of {name}?", "Who was {name}'s {label}?"),
    "date": ("When was the {label} of {name}?", "What is the {label} of {name}?"),
    "place": ("Where is the {label} of {name}?",),
    "number": ("How many is the {label} of {name}?", "How high is the {label} of {name}?"),
    "length": ("How long is the {label} of {name}?", "How large is the {label} of {name}?"),
    "money": ("How much is the {label} of {name}?",),
}
ALWAYS_ASKED = (
    "What is the {label} of {name}?",
    "What is {name}'s {label}?",
    "{name} {label}",
    "Which {label} does {name} have?",
)
WHICH = (
    "Which {subject} has the {label} {value}?",
    "Which {subject}'s {label} is {value}?",
    "{value} is the {label} of which {subject}?",
)
BLANKS = (
    "The {label} of {name} is [MASK].",
    "{name}'s {label} is [MASK].",
    "{name} has a {label} of [MASK].",
    "The {label} of {name} is called [MASK].",
    "In {name}, the {label} is [MASK].",
    "{name}: {label} [MASK]",
)
UNITS = {
    "length": ("km", "m", "ft", "cm"),
    "area": ("km2", "hectares", "acres", "sq km"),
    "mass": ("kg", "t", "g", "lb"),
    "time": ("minutes", "s", "hours", "years"),
    "speed": ("knots", "km/h", "mph"),
    "size": ("KB", "MiB", "bytes", "lines", "blocks"),
}
# Lists: how a line says a thing and its value; how one asks for the value of a thing; and for the thing of a value.
LISTS = {
    "mass": (
        "{value} {thing}|{value} of {thing}|{thing}: {value}|{thing}, {value}",
        "How much {thing} is in {name}?|How much {thing} do I need for {name}?|How much {thing} goes into {name}?",
        "",
    ),
    "few": (
        "{value} {thing}|{thing}: {value}|{value} x {thing}|{thing} ({value})",
        "How many {thing} are in {name}?|How many {thing} does {name} need?|How many {thing} are listed for {name}?",
        "",
    ),
    "money": (
        "{thing} {value}|{thing}: {value}|{thing} - {value}|{thing} ... {value}|{value} {thing}",
        "How much is {thing} at {name}?|What does {thing} cost at {name}?|What is the price of {thing} at {name}?",
        "What costs {value} at {name}?",
    ),
    "clock": (
        "{value} {thing}|{value} - {thing}|{value}: {thing}|{thing}: {value}|{thing}, {value}",
        "When is {thing} at {name}?|What time is {thing} at {name}?|At what time does {thing} begin at {name}?",
        "What happens at {value} at {name}?|What is at {value} at {name}?",
    ),
    "day": (
        "{value}: {thing}|{thing} - {value}|{thing} on {value}|{value} {thing}",
        "When is {thing} at {name}?|On what day is {thing}?|What is the date of {thing} at {name}?",
        "What is on {value} at {name}?|What takes place on {value}?",
    ),
    "person": (
        "{value} will bring {thing}|{value} to see to {thing}|{thing}: {value}|{value} - {thing}|"
        "{value} will ask about {thing}",
        "Who will see to {thing}?|Who is responsible for {thing}?|Who is in charge of {thing} at {name}?",
        "What is {value} responsible for?|What will {value} see to?",
    ),
    "change": (
        "{thing} from {before} to {value}|{thing} rises from {before} to {value}|{thing}: {value} (was {before})|"
        "{thing} was changed from {before} to {value}|{thing} is now {value}; it was {before}|"
        "{thing} goes from {before} to {value}",
        "What is {thing} at {name} now?|What is the new {thing} of {name}?|What is {thing} at {name}?",
        "",
    ),
}
THINGS = {
    "mass": "sugar|flour|butter|double cream|leeks|plums|oats|olive oil|sand|cement|paint|rice|water|salt|sawdust",
    "few": "eggs|onions|chairs|tents|torches|hinges|screws|plates|towels|pumps|spare keys|pencils|blankets|tins",
    "money": "annual pass|day ticket|bicycle hire|locker|cheese roll|service fee|half plot|deposit|late fee|key",
    "clock": "registration|coffee break|keynote|lunch|ferry|last bus|closing session|flight to Oslo|guided walk",
    "day": "annual meeting|plant sale|open day|fire drill|exam|spring fair|boiler inspection|school trip|concert",
    "person": "marquee|tables|bar|first aid|minutes|keys|raffle|car park|music|insurance|banner|posters|budget",
    "change": "rent|membership fee|session timeout|speed limit|price of a coffee|deposit|opening time|dose",
}
WAS = ("What was {thing} at {name} before?", "What was the old {thing} of {name}?")
BULLETS = ("- ", "- ", "* ", "• ", "", "", "  - ", "{number}. ", "[ ] ")
ENDS = ("", "", "", "", ".", ";", ",")

NESTED = "{Label} - {part}: {value}\n"
STYLES = (
    "{Label}: {value}\n",
    "{label}: {value}\n",
    "{label} = {value}\n",
    "| {Label} | {value} |\n",
    "{LABEL}\n       {value}\n",
    "{Label}\n{value}\n\n",
    "The {label} is {value}. ",
    "Its {label} is {value}.\n",
    "- {Label} - {value}\n",
    NESTED,
    NESTED,
    NESTED,
)


@dataclass(frozen=True)
class Words:
    """Names and terms to draw from, and a passage of prose that contains each."""

    names: Sequence[str]
    persons: Sequence[str]
    terms: Sequence[str]
    words: Sequence[str]
    prose: Mapping[str, TitledText]


def words_of(examples: Iterable[ReadingExample]) -> Words:
    """Answers sorted by their look: names of one to three words, of two, terms, single words."""
    prose = {text: example.passage for example in examples for text in example.texts}
    seen = [each for each in prose if each.replace(" ", "").isalpha() and len(each) > 3]
    names = [each for each in seen if all(word[0].isupper() for word in each.split()) and len(each.split()) < 4]
    terms = [each for each in seen if each.islower() and len(each.split()) < 5]
    return Words(
        names,
        [each for each in names if len(each.split()) == 2],
        terms,
        [each for each in terms if " " not in each],
        prose,
    )


def value(kind: str, words: Words, rng: random.Random) -> str:
    """A value of one kind."""
    number = rng.choice((str(rng.randint(2, 999)), f"{rng.randint(1000, 9_999_999):,}", f"{rng.uniform(0, 99):.1f}"))
    year, month, day = rng.randint(1700, 2025), rng.choice(MONTHS), rng.randint(1, 28)
    letters = "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 4)))
    if kind in UNITS:
        return f"{number} {rng.choice(UNITS[kind])}"
    if kind == "person":
        first, last = rng.choice(words.persons).split()[0], rng.choice(words.persons).split()[-1]
        return f"{first} {last.upper() if rng.random() < 0.2 else last}"
    drawn = {
        "number": number,
        "money": f"{rng.choice('$€£')}{number}" + rng.choice(("", " million", " billion")),
        "date": rng.choice((f"{day} {month} {year}", f"{month} {day}, {year}", str(year))),
        "symbol": rng.choice((f".{letters}", letters.upper(), f"{letters.upper()}-{rng.randint(1, 99)}")),
        "file": rng.choice((f"{letters}.conf", f"/etc/{letters}/{letters}.cfg", f"~/.{letters}rc", f"{letters}.out")),
        "version": f"{rng.randint(0, 12)}.{rng.randint(0, 30)}.{rng.randint(0, 9)}",
        "name": rng.choice(words.names),
        "place": rng.choice(words.names),
        "term": rng.choice(words.terms),
        "word": rng.choice(words.words),
    }
    return drawn[kind]


def asides(label: str, words: Words, rng: random.Random) -> list[str]:
    """Up to three lines that say something else of a field, in names that could be its value."""
    return [
        NESTED.format(
            Label=label.capitalize(),
            part=part,
            value=ASIDES[part].format(
                name=rng.choice(words.names),
                other=rng.choice(words.names),
                term=rng.choice(words.terms),
                year=rng.randint(1700, 2025),
                number=rng.randint(1, 200),
            ),
        )
        for part in rng.sample(sorted(ASIDES), rng.randint(0, 3))
    ]


def shares(kind: str, words: Words, rng: random.Random) -> str:
    """What follows a value that is the first of a list: " 41%, Blixen 12%"."""
    if kind not in ("name", "place", "term") or rng.random() > 0.2:
        return ""
    others = rng.sample(words.terms if kind == "term" else words.names, rng.randint(1, 3))
    return f" {rng.randint(40, 90)}%" + "".join(f", {other} {rng.randint(1, 39)}%" for other in others)


def page(
    subject: str, name: str, fields: Sequence[tuple[str, str]], style: str, words: Words, rng: random.Random
) -> tuple[str, dict[str, dict[str, Any]]]:
    """A page's text, and of every field its value and where that stands."""
    text, places = (f"{name} is a {subject}.\n" if rng.random() < 0.15 else ""), {}
    for label, kind in fields:
        said = value(kind, words, rng)
        before, after = style.split("{value}")
        others = asides(label, words, rng) if style == NESTED else []
        first = rng.randint(0, len(others))
        text += "".join(others[:first])
        text += before.format(label=label, Label=label.capitalize(), LABEL=label.upper(), part=rng.choice(VALUES))
        text += rng.choice(LEADS) if rng.random() < 0.1 else ""
        places[label] = {"text": said, "start": len(text)}
        text += said + shares(kind, words, rng) + (rng.choice(NOTES) if rng.random() < 0.3 else "") + after
        text += "".join(others[first:])
    return text.rstrip(), places


def fields_of(subject: str) -> list[tuple[str, str]]:
    """The fields that a page about a subject may have, each with the kind of its value."""
    return re.findall(r"([^|= ][^|=]*)=([a-z]+)", " ".join(SUBJECTS[subject].split()))


def examples(words: Words, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Questions and blanks about one group of pages after the other."""
    for group in count():
        subject = rng.choice(sorted(SUBJECTS))
        every = fields_of(subject)
        fields, style = rng.sample(every, rng.randint(4, len(every))), rng.choice(STYLES)
        names = rng.sample(words.words if subject == "program" else words.names, 4)
        section = rng.choice(("", "", f" - {rng.choice(words.words).capitalize()}", f" ({subject})"))
        pages = [(f"{name}{section}", *page(subject, name, fields, style, words, rng)) for name in names]
        if rest := [each for each in every if each not in fields]:  # another section about the same subject
            title = f"{names[0]} - {rng.choice(words.words).capitalize()}"
            pages.insert(1, (title, *page(subject, names[0], rest, style, words, rng)))
        others = [words.prose[names[0]], *(TitledText(title, text) for title, text, _ in pages[1:])]
        rng.shuffle(others)
        title, text, places = pages[0]
        for label, kind in rng.sample(fields, 3):
            forms = BLANKS if rng.random() < 0.5 else (*ASKED.get(kind, ()), *ALWAYS_ASKED)
            yield {
                "id": f"{subject}-{group}-{label}",
                "title": title,
                "context": text,
                "question": rng.choice(forms).format(label=label, name=names[0]),
                "answers": [places[label]],
                "negatives": [{"title": other.title, "context": other.text} for other in others],
            }


def row_of(subject: str, cells: Mapping[str, str], is_prose: bool, capitals: bool) -> tuple[str, dict[str, int]]:
    """A row's text, "Town: Riga | Mayor: …" or as a sentence, and where each cell's value starts."""
    text, places = "", {}
    for label, said in cells.items():
        if is_prose:
            text += " is a " + subject + "; " if len(places) == 1 else ", " if text else ""
            text += f"its {label} is " if places else ""
        else:
            text += (" | " if text else "") + f"{label.capitalize() if capitals else label}: "
        places[label] = len(text)
        text += said
    return text, places


def rows(words: Words, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Questions about the rows of one table after the other; the other rows are beside the one asked, or negatives."""
    for group in count():
        subject = rng.choice(sorted(SUBJECTS))
        every = fields_of(subject)
        rng.shuffle(every)
        fields, absent = every[:-2][: rng.randint(2, 7)], every[-2:]
        names = rng.sample(words.persons if subject == "athlete" else words.names, rng.randint(3, 8))
        how = rng.random() < 0.25, rng.random() < 0.6
        table = [{subject: name, **{label: value(kind, words, rng) for label, kind in fields}} for name in names]
        lines = [row_of(subject, row, *how) for row in table]
        alone = rng.random() < 0.6
        title = rng.choice(("", rng.choice(words.names), f"{subject}s", f"{subject}s".title()))
        for number in rng.sample(range(len(names)), 2):
            (line, places), (label, kind) = lines[number], rng.choice(absent if rng.random() < 0.3 else fields)
            question = rng.choice((*ASKED.get(kind, ()), *ALWAYS_ASKED)).format(label=label, name=names[number])
            said = table[number].get(label, "")
            if said and rng.random() < 0.25 and [row[label] for row in table].count(said) == 1:
                question = rng.choice(WHICH).format(subject=subject, label=label, value=said)
                label, said = subject, names[number]
            context = line if alone else "\n".join(text for text, _ in lines)
            others = [text for text, _ in lines if text != line] if alone else [words.prose[names[number]].text]
            start = context.index(line) + places.get(label, 0)
            yield {
                "id": f"row-{group}-{number}-{label}",
                "title": title,
                "context": context,
                "question": question,
                "answers": [{"text": said, "start": start}] if said else [],
                "negatives": [{"title": title, "context": text} for text in rng.sample(others, min(3, len(others)))],
            }


def listed(kind: str, words: Words, rng: random.Random) -> str:
    """A value of one kind that a list may have."""
    made = {
        "few": lambda: str(rng.randint(1, 60)),
        "clock": lambda: (
            f"{rng.randint(6, 22)}{rng.choice(':.')}{rng.randint(0, 11) * 5:02}" + rng.choice(("", "", " pm"))
        ),
        "day": lambda: f"{rng.randint(1, 28)} {rng.choice(MONTHS)}",
        "mass": lambda: (
            f"{rng.randint(1, 99) * rng.choice((1, 5, 10))} {rng.choice(('g', 'kg', 'ml', 'tsp', 'cups', 'lb'))}"
        ),
        "money": lambda: f"{rng.choice('$€££')}{rng.choice((rng.randint(1, 99), f'{rng.uniform(1, 99):.2f}'))}",
    }
    return made[kind]() if kind in made else value(kind, words, rng)


def lists(words: Words, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Questions about one page of lists after the other."""
    for group in count():
        kind = rng.choice(sorted(LISTS))
        lines, asked, reverse = (forms.split("|") for forms in LISTS[kind])
        style, bullet, end = rng.choice(lines), rng.choice(BULLETS), rng.choice(ENDS)
        article = rng.choice(("", "", "the ")) if kind not in ("mass", "few") else ""
        names = rng.sample(words.names, rng.randint(1, 3))
        common = rng.sample(THINGS[kind].split("|"), 8) if rng.random() < 0.6 else []
        shared, absent, *own = rng.sample([*common, *rng.sample(words.terms, 30 - len(common))], 30)
        text, places = "", []
        for number, name in enumerate(names):
            things = [*own[9 * number :][: rng.randint(2, 8)], *([shared] if rng.random() < 0.6 else [])]
            rng.shuffle(things)
            text += rng.choice(("# {}\n\n", "{}\n\n", "## {}\n", "{}:\n", "{}\n")).format(name)
            for at, thing in enumerate(things, 1):
                of = rng.choice(("money", "few", "clock", "mass")) if kind == "change" else kind
                said = {"thing": article + thing, "value": listed(of, words, rng), "before": listed(of, words, rng)}
                start = len(text) + len(bullet.format(number=at))
                text += bullet.format(number=at) + style.format(**said) + end + "\n"
                spots = {key: start + _before(style, key, said) for key in said if "{" + key + "}" in style}
                places.append((name, thing, said, spots))
            text += "\n"
        for name, thing, said, spots in rng.sample(places, min(3, len(places))):
            answer, forms = "value", asked
            if kind == "change" and rng.random() < 0.4:
                answer, forms = "before", WAS
            elif (
                any(reverse)
                and rng.random() < 0.3
                and [each["value"] for *_, each, _ in places].count(said["value"]) == 1
            ):
                answer, forms = "thing", reverse
            is_absent = rng.random() < 0.25 and answer != "thing"
            asked_for = article + (absent if is_absent else thing)
            question = rng.choice(forms).format(**{**said, "thing": asked_for}, name=name)
            yield {
                "id": f"list-{group}-{thing}",
                "title": rng.choice(("", name if len(names) == 1 else "", rng.choice(words.names))),
                "context": text.rstrip(),
                "question": question,
                "answers": [] if is_absent else [{"text": said[answer], "start": spots[answer]}],
                "negatives": [{"title": "", "context": words.prose[name].text}],
            }


def _before(style: str, key: str, said: Mapping[str, str]) -> int:
    """How many characters a line has before one of its parts."""
    return len(style[: style.index("{" + key + "}")].format(**said))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", help="files that `quoth train reader` takes")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL, compressed with gzip")
    parser.add_argument("--count", type=int, default=12000, help="questions and blanks")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--rows", action="store_true", help="of rows of tables instead of pages")
    kinds.add_argument("--lists", action="store_true", help="of lists instead of pages")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    words = words_of(each for file in options.questions for each in read_examples(file))
    made = (rows if options.rows else lists if options.lists else examples)(words, rng)
    with gzip.open(options.output, "wt", encoding="utf-8") as stream:
        for each in islice(made, options.count):
            stream.write(json.dumps(each, ensure_ascii=False) + "\n")
    print(f"{options.output}: {options.count:,} questions and blanks")


if __name__ == "__main__":
    main()
