"""Made passages in which the nearest words are not the answer, each asked in several ways.

    python recipes/contrast_questions.py squad.jsonl.gz -o contrast.jsonl.gz --count 8000

A reader that marks what stands next to the words of the question names the director who left, the label after an empty
field, the length where the frequency is asked, the usual limit where a condition holds, a word of the heading row. Here
one passage is asked for each of these; a part of the questions has no answer in it. Names and the sentences around what
is made come from the questions given; nothing is true. What is said and asked is in `contrast_templates.toml`. Every
third template and wording is kept for `--held-out`, and so is every fourth name and title. Lines are in the format of
`quoth train reader`, with `kind`, `evidence` (character ranges of the sentences, items or rows that answer), `template`
and `wording`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import string
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from field_pages import MONTHS

from quoth.reader.data import ReadingExample, read_examples
from quoth.text.passages import sentences

TEMPLATES = tomllib.loads(Path(__file__).with_name("contrast_templates.toml").read_text(encoding="utf-8"))


def _thirds(made: Any) -> Iterator[str]:
    """Every third template or wording of each list."""
    if isinstance(made, dict):
        made = list(made.values())
    if made and isinstance(made, list) and isinstance(made[0], str):
        yield from (each for each in made[2::3] if isinstance(each, str))
    for each in made if isinstance(made, list) else ():
        yield from _thirds(each)


KEPT = frozenset(_thirds([each for name, each in TEMPLATES.items() if name != "words"]))
"""What is for `--held-out` alone, wherever it stands."""
SHARES = {"holder": 1.4, "measure": 1.0, "form": 1.0, "label": 1.0, "clause": 1.0, "limit": 1.3, "rows": 1.0}
"""The kinds, and how many questions each has in relation to the others."""
LEAST, MOST = 80, 900
"""Characters of a passage with the sentences around what is made, at most; and from when on it may have none."""
_SLOT = re.compile(r"\{(\w+)\}")
_LEADING = re.compile(r"(?:on|in|at|around) ")
Range = tuple[int, int]
Values = Mapping[str, str]


@dataclass
class Page:
    """A text that was made, where its values stand, and its sentences, rows or items."""

    text: str = ""
    places: dict[str, list[Range]] = field(default_factory=lambda: defaultdict(list))
    units: list[Range] = field(default_factory=list)

    def evidence(self, keys: Sequence[str]) -> list[Range]:
        """The units in which values stand; neighbours are one."""
        spots = [spot for key in keys for spot in self.places.get(key, [])]
        found: list[Range] = []
        for start, end in self.units:
            if any(start <= spot[0] < end for spot in spots):
                if found and not self.text[found[-1][1] : start].strip():
                    start = found.pop()[0]
                found.append((start, end))
        return found


@dataclass(frozen=True)
class Asked:
    """A question, the values that answer it, what else is evidence, and the name without which it is another's."""

    wording: str
    values: Values
    answers: Sequence[str] = ()
    also: Sequence[str] = ()
    about: str = ""

    @property
    def text(self) -> str:
        return filled(self.wording, self.values).text


@dataclass(frozen=True)
class Scene:
    """A page about something, with its questions."""

    title: str
    template: str
    page: Page
    asked: Sequence[Asked]


def filled(template: str, values: Values) -> Page:
    """A template with its values; " / " and line breaks part its units, and a slot with a capital has a capital."""
    page = Page()
    for part in re.split(r"( / |\n+)", template):
        start = len(page.text)
        if not part.strip(" \n/"):
            page.text += " " if part == " / " else part
            continue
        for at, piece in enumerate(_SLOT.split(part)):
            said = piece
            if at % 2:
                said = values[piece] if piece in values else capital(values[piece[0].lower() + piece[1:]])
                page.places[piece[0].lower() + piece[1:]].append((len(page.text), len(page.text) + len(said)))
            page.text += said
        page.units.append((start, start + len(page.text[start:].rstrip())))
    return page


def slot(name: str) -> str:
    return "{" + name + "}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class Maker:
    """Makes scenes of every kind from the names and passages of questions."""

    def __init__(self, examples: Sequence[ReadingExample], held_out: bool, rng: random.Random) -> None:
        self.held_out, self.rng, self.currency = held_out, rng, "$"
        who, where = Counter[str](), Counter[str]()
        for each in examples:
            for text in each.texts:
                if re.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]{2,}", text) and each.question.startswith("Who "):
                    who[text] += 1
                if re.fullmatch(r"[A-Z][a-z]{3,}", text) and re.search(r"\b[Ww]here|city|town|country", each.question):
                    where[text] += 1
        firsts = Counter(each.split()[0] for each in who)
        known = {each for each, times in firsts.items() if times > 1} - {*where, *TEMPLATES["words"]["no_names"]}
        self.firsts = self.own(sorted(known))
        self.lasts = self.own(sorted({each.split()[1] for each in who if each.split()[0] in known} - {*where}))
        self.places = self.own(sorted(where))
        texts = {each.passage.text: each.passage.title for each in examples}
        kept = set(self.own(sorted({title or text for text, title in texts.items()})))
        self.titles = sorted(kept & {*texts.values()})
        self.prose = sorted(text for text, title in texts.items() if (title or text) in kept)

    def own(self, names: Sequence[str]) -> list[str]:
        """Those of the names that this half has."""
        return [each for each in names if (crc32(each.encode()) % 4 == 0) == self.held_out]

    def half(self, templates: Sequence[str]) -> list[str]:
        """Those of the templates or wordings that this half has: every third is held out."""
        return [each for each in templates if (each in KEPT) == self.held_out]

    def pick(self, templates: Sequence[str]) -> str:
        return self.rng.choice(self.half(templates))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def value(self, kind: str) -> str:
        """A value of one kind."""
        rng, words = self.rng, TEMPLATES["words"]
        place, last, first = rng.choice(self.places), rng.choice(self.lasts), rng.choice(self.firsts)
        number, year, month = str(rng.randint(2, 99)), str(rng.randint(1930, 2025)), rng.choice(MONTHS)
        day = rng.randint(1, 28)
        letters = "".join(rng.choices(string.ascii_uppercase, k=rng.randint(2, 3)))
        made = {
            "person": f"{first} {last}",
            "place": place,
            "last": last,
            "first": first,
            "year": year,
            "few": number,
            "age": str(rng.randint(5, 21)),
            "name": rng.choice((f"{place} Ltd", f"{last} & Sons", f"{last} {place}", f"{place} Works")),
            "date": rng.choice((f"{day} {month} {year}", f"{day:02}/{rng.randint(1, 12):02}/{year}")),
            "code": rng.choice((f"{letters}-{number}", f"{letters}{rng.randint(100, 9999)}", f"{number}{letters[0]}")),
            "account": " ".join(str(rng.randint(1000, 9999)) for _ in range(3)),
            "phone": rng.choice((f"555-{rng.randint(100, 9999):04}", f"0{number} 555 {rng.randint(1000, 9999)}")),
            "email": f"{rng.choice((first, last)).lower()}{rng.choice(('', number))}@{place.lower()}.example",
            "street": f"{number} {rng.choice((place, last))} {rng.choice(('Street', 'Road', 'Lane', 'Square'))}",
            "room": rng.choice((f"room {number}", f"Room {letters[0]}{number}", f"Building {letters[0]}")),
            "beds": f"{number} beds",
            "km": f"{number} km",
            "kg": f"{number} kg",
            "mg": f"{rng.randint(1, 40) * 25} mg",
            "days": f"{number} {rng.choice(('days', 'days', 'working days'))}",
            "weeks": f"{rng.randint(2, 26)} {rng.choice(('weeks', 'months'))}",
            "minutes": f"{number} {rng.choice(('minutes', 'seconds'))}",
            "degrees": f"{rng.randint(12, 25) * 10} degrees",
            "speed": f"{rng.randint(1, 12) * 10} km/h",
            "title": f"The {rng.choice(words['titles'])} {rng.choice(words['subjects'])}",
            "day": f"{day} {month}",
            "clock": rng.choice(
                (f"{rng.randint(6, 22)}:{rng.randint(0, 11) * 5:02}", f"{rng.randint(1, 12)}.30 {rng.choice('ap')}m")
            ),
            "money": f"{self.currency}{rng.choice((number, f'{rng.uniform(1, 99):.2f}'))}",
        }
        return made[kind] if kind in made else rng.choice(words[kind])

    def values(self, kinds: Sequence[str]) -> list[str]:
        """A value for each kind, all different."""
        made: list[str] = []
        for kind in kinds:
            tries = (self.value(kind) for _ in range(1000))
            made.append(next(said for said in tries if said not in made))
        return made

    def moment(self, template: str) -> tuple[str, str]:
        """A template with "{on}" written out, and what {when} is."""
        day, month, year = self.rng.randint(1, 28), self.rng.choice(MONTHS), self.rng.randint(1960, 2025)
        whens = (f"{day} {month} {year}", f"{day} {month}", f"{month} {year}", str(year))
        at = self.rng.randrange(len(whens))
        before = "on " if at < 2 else "in "
        return template.replace("{on}", before + "{when}").replace("{On}", capital(before) + "{when}"), whens[at]

    def body(self, is_house: bool = True) -> tuple[str, list[str]]:
        """A body that has offices, and these; unless any will do, one with a house."""
        bodies = list(TEMPLATES["holder"]["bodies"].items())
        offices, names = self.rng.choice(bodies[:4] if is_house else bodies)
        name = self.rng.choice(names.split("|"))
        return name.format(p=self.value("place"), n=self.value("last")), offices.split("|")

    def holder(self) -> Scene:
        made, rng = TEMPLATES["holder"], self.rng
        told = rng.choices(("succeeded", "terms", "left", "is"), (11, 3, 4, 2))[0]
        raw = self.pick(made[told])
        template, when = self.moment(raw)
        body, offices = self.body(False)
        role, second = rng.sample(offices, 2)
        persons = dict(zip(("old", "new", "older", "founder", "other"), self.values(["person"] * 5), strict=True))
        first = rng.randint(1950, 2000)
        second_year = first + rng.randint(3, 12)
        third = second_year + rng.randint(3, 12)
        he, his, him = rng.choice((("he", "his", "him"), ("she", "her", "her")))
        values = {
            **persons,
            "role": role,
            "second": second,
            "body": body,
            "name": body.removeprefix("the "),
            "when": when,
            "y0": str(first),
            "y1": str(second_year),
            "y2": str(third),
            "he": he,
            "his": his,
            "him": him,
            "between": str(rng.randint(second_year + 1, third - 1)),
            "place": self.value("place"),
            "founded": str(rng.randint(1850, 1949)),
        }
        extra = {key: self.pick(made[key]) for key in ("founded", "beside") if self.chance(0.35)}
        lines = [*([self.pick(made["intro"])] if self.chance(0.25) else []), template, *extra.values()]
        page = filled((" / " if "\n" not in template else "\n").join(lines), values)
        changed = "when" if "{when}" in template else "y2" if told == "terms" else ""
        answers = {
            "founder": "founder" if "founded" in extra else "",
            "other": "other" if "beside" in extra else "",
            "new": "" if told == "left" else "new",
            "after": "" if told == "left" else "new",
            "in": "old",
            "old": "" if told == "is" else "old",
            "before": "old",
            "when": changed,
            "began": changed,
        }
        asks = ["new", "new", "new", "old", "when" if told != "is" else "began", "founder", "other"]
        asks += {"left": ["after"], "is": [], "terms": ["before", "after", "began", "in", "in"]}.get(
            told, ["before", "after", "began"]
        )
        rng.shuffle(asks)
        asked = [
            Asked(
                self.pick(made["asked"][key]),
                values,
                [answers[key]] if answers[key] else [],
                () if key in ("founder", "other") or "\n" in template else ("role",),
                values["name"],
            )
            for key in dict.fromkeys((["new"] if told != "is" and self.chance(0.5) else []) + asks)
        ]
        if self.chance(0.2):
            other, _ = self.body(False)
            asked.insert(
                1, Asked(self.pick(made["asked"]["new"]), {**values, "body": other, "name": other.removeprefix("the ")})
            )
        return Scene(capital(values["name"]), raw, page, asked)

    def measure(self) -> Scene:
        rng = self.rng
        family = rng.choice(TEMPLATES["measure"]["families"])
        place, thing = self.value("place"), rng.choice(family["things"])
        own = f"{place} {thing}" if self.chance(0.5) else thing
        kinds = [kind for kind, made in family.items() if isinstance(made, dict)]
        said = rng.sample([each for each in kinds if each not in ("often", "long")], rng.randint(0, 3))
        said += [each for each in ("often", "long") if self.chance(0.75)]
        known = {"often": rng.choice(family["often_values"]), "long": rng.choice(family["long_values"])}
        values = {"the": f"the {own}", "thing": own, **{kind: known.get(kind) or self.value(kind) for kind in kinds}}
        is_both = {"often", "long"} <= {*said} and self.chance(0.4)
        lines = [self.pick(family[kind]["said"]) for kind in said if not is_both or kind not in known]
        lines += [self.pick(family["both"])] if is_both else []
        if not lines:
            return self.measure()
        rng.shuffle(lines)
        between = rng.choice((" / ", " / ", "\n", "\n- "))
        lines = [
            line if at == 0 or self.chance(0.3) else line.replace("{it}", "it").replace("{It}", "It")
            for at, line in enumerate(lines)
        ]
        template = between.join(lines)
        if "{it}" not in lines[0].lower() or between == "\n- ":
            template = "{Thing}\n" + between.lstrip(" /") + template
        page = filled(template, {**values, "it": values["the"]})
        absent = [kind for kind in kinds if kind not in said]
        asks = [*rng.sample(said, min(2, len(said))), rng.choice(absent) if absent and self.chance(0.6) else said[-1]]
        if (missing := {"often", "long"} - {*said}) and self.chance(0.5):
            asks[-1] = min(missing)
        rng.shuffle(asks)
        asked = [
            Asked(self.pick(family[kind]["asked"]), values, [kind] if kind in said else [], (), own)
            for kind in dict.fromkeys(asks)
        ]
        return Scene(rng.choice((capital(own), capital(thing), place)), " ".join(lines), page, asked)

    def form(self) -> Scene:
        if self.chance(0.3):
            return self.ticked()
        made, rng = TEMPLATES["form"], self.rng
        form, fields = rng.choice(list(made["fields"].items()))
        kinds = dict(each.split("=") for each in fields.split("|"))
        labels = list(kinds)[rng.randint(0, 2) :]
        values = dict(zip(labels, self.values([kinds[label] for label in labels]), strict=True))
        empty = rng.choice((0.15, 0.3, 0.4, 0.5, 1.0))
        filled_in = {label for label in labels if not self.chance(empty)}
        style = self.pick(made["styles"])
        text = "".join(
            style.replace("{L}", slot(f"L{at}"))
            .replace("{U}", slot(f"u{at}"))
            .replace("{v}", slot(f"v{at}") if label in filled_in else "")
            for at, label in enumerate(labels)
        )
        known = {"form": form, **{f"v{at}": values[label] for at, label in enumerate(labels)}}
        known |= {f"l{at}": label for at, label in enumerate(labels)}
        known |= {f"u{at}": label.upper() for at, label in enumerate(labels)}
        page = filled("{form}\n\n" + text.rstrip("\n"), known)
        asked = [
            Asked(
                self.pick(made["who"] if kinds[label] == "person" and self.chance(0.5) else made["asked"]),
                {"l": label, "form": form.lower()},
                [f"v{labels.index(label)}"] if label in filled_in else [],
                [f"{case}{labels.index(label)}" for case in "lu" if label in labels],
                form.lower(),
            )
            for label in rng.sample(list(kinds), 4)
            if label in labels or self.chance(0.2)
        ]
        return Scene(form, style, page, asked)

    def ticked(self) -> Scene:
        """A form with boxes to tick."""
        made, rng = TEMPLATES["form"], self.rng
        yes, no = (style := self.pick(made["tick_styles"])).split("|")
        form, lines, values, asked = rng.choice(list(made["fields"])), list[str](), dict[str, str](), list[Asked]()
        for at, (group, choices) in enumerate(rng.sample(list(made["ticks"].items()), rng.randint(1, 3))):
            options = {f"t{at}{number}": each for number, each in enumerate(rng.sample(choices.split("|"), 3))}
            values |= {f"g{at}": group, **options}
            chosen = rng.choice(["", *options])
            lines += [slot(f"G{at}") + ":"]
            lines += [(yes if each == chosen else no).replace("{v}", slot(each)) for each in options]
            found = [chosen] if chosen else []
            asked.append(Asked(self.pick(made["tick_asked"]), {"l": group}, found, [f"g{at}"], group))
        return Scene(form, style, filled("\n".join([form, *lines]), values), asked)

    def label(self) -> Scene:
        made, rng = TEMPLATES["label"], self.rng
        group = rng.choice(made["groups"])
        shown, absent = (labels := rng.sample(group["labels"], rng.randint(4, 6)))[:-1], labels[-1]
        said = self.values([group["value"]] * len(shown))
        style = self.pick(made["behind"] if self.chance(0.65) else made["before"])
        lines = [style.replace("{l}", each).replace("{v}", slot(f"v{at}")) for at, each in enumerate(shown)]
        between = rng.choice(("\n", "\n", "\n", "; ", " · ")) if ")" in style or "]" in style else "\n"
        name, _ = self.body()
        head = rng.choice(made["heads"]) + rng.choice(("\n", "\n\n"))
        values = {"name": capital(name), **{kind: self.value(kind) for kind in ("person", "street")}}
        page = filled(head + between.join(lines), {**values, **{f"v{at}": each for at, each in enumerate(said)}})
        order = rng.sample(range(len(shown)), 3)
        asks = [(shown[at], [f"v{at}"]) for at in order] + ([(absent, list[str]())] if self.chance(0.8) else [])
        asked = [Asked(self.pick(group["asked"]), {"l": each, "name": name}, found, (), name) for each, found in asks]
        return Scene(capital(name), style, page, asked[::-1])

    def clause(self) -> Scene:
        made, rng = TEMPLATES["clause"], self.rng
        topic, items = rng.choice(list(made["topics"].items()))
        sides = dict(zip(("out", "in"), (each.strip().split("|") for each in items.split(">")), strict=True))
        shown = rng.choice((["out"], ["out"], ["in"], ["in"], ["out", "in"], ["in", "out"]))
        name = self.body()[0].removeprefix("the ")
        own = f"{topic} of the {name}" if topic.startswith("the ") and self.chance(0.5) else topic
        values, parts, keys = {"x": own}, list[str](), dict[str, list[str]]()
        style, is_said = self.pick(made["items"]), self.chance(0.35)
        for side in shown:
            listed_ = rng.sample(sides[side], rng.randint(2, 4))
            keys[side] = [f"{side}{at}" for at in range(len(listed_))]
            values |= dict(zip(keys[side], listed_, strict=True))
            slots = list(map(slot, keys[side]))
            if is_said:
                template = self.pick(made[f"{side}_said"])
                last = " or " if " not " in template else " and "
                every = ", ".join(slots[:-1]) + last + slots[-1]
                parts.append(template.replace("{list}", every).replace("{List}", "{" + capital(every[1:])))
                continue
            lead = self.pick(made[side])
            marks = string.ascii_lowercase if "(" in style else string.digits[1:]
            pairs = zip(slots, marks, strict=False)
            text = "".join(style.replace("{i}", item).replace("{n}", mark) for item, mark in pairs)
            parts.append(f"{lead}\n{text.rstrip()}" if "\n" in style else f"{lead} {text.rstrip(',; ')}.")
        between = "\n\n" if "\n" in style and not is_said else rng.choice((" / ", "\n"))
        page = filled(between.join(parts), values)
        asked = [
            Asked(self.pick(made[f"{side}_asked"]), values, keys.get(side, []), (), own)
            for side in rng.sample(["in", "out"], 2)
            if side in shown or self.chance(0.7)
        ]
        return Scene(rng.choice((capital(own), name)), parts[0], page, asked)

    def limit(self) -> Scene:
        made, rng = TEMPLATES["limit"], self.rng
        (topic, conditions), (other, _) = rng.sample(list(made["topics"].items()), 2)
        noun, kind = topic.split("=")
        told = rng.choices(("both", "only", "one"), (5, 4, 1))[0]
        cond, second, absent = rng.sample(conditions.split("|"), 3)
        usual, special, third = self.values([kind] * 3)
        name, _ = self.body()
        raw = self.pick(made[told])
        values = {"noun": noun, "cond": cond, "n": usual, "m": special, "name": name}
        again = ""
        if told != "one" and "\n" not in raw and self.chance(0.3):
            again = self.pick([each for each in made["only"] if "\n" not in each])
            again = again.replace("{m}", "{third}").replace("{cond}", "{second}").replace("{Cond}", "{Second}")
        head = rng.choice(("", "# {Name}\n\n", "{Name}\n", "Rules of {name}\n\n"))
        if again:
            raw += (" / " if raw.endswith(".") and again.endswith(".") else "\n") + again
        page = filled(head + raw, {**values, "second": second, "third": third})
        asks = {
            "both": [("asked", values, ["n"]), ("asked_case", values, ["m"])],
            "only": [("asked_case", values, ["m"]), ("asked_case", {**values, "cond": absent}, [])],
            "one": [("asked", values, ["n"])],
        }[told]
        if again:
            asks.append(("asked_case", {**values, "cond": second}, ["third"]))
        if self.chance(0.35):
            asks.append(("asked", {**values, "noun": other.split("=")[0]}, []))
        rng.shuffle(asks)
        also = {"m": "cond", "third": "second"}
        asked = [
            Asked(self.pick(made[form]), given, found, [also[key] for key in found if key in also], name)
            for form, given, found in asks
        ]
        return Scene(capital(name) if head == "" or self.chance(0.5) else "", raw, page, asked)

    def rows(self) -> Scene:
        made, rng = TEMPLATES["rows"], self.rng
        table, columns = rng.choice(list(made["tables"].items()))
        key, *others = columns.split("|")
        absent, *shown = rng.sample(others, rng.randint(3, len(others)))
        kinds = dict(each.split("=") for each in (key, *shown))
        names, height = list(kinds), rng.randint(2, 6)
        if not self.chance(0.6):
            rng.shuffle(names)
        cells = {name: self.values([kinds[name]] * height) for name in names}
        style = self.pick(made["styles"])
        is_plain, between = style.startswith("CSV"), style.removeprefix("CSV") if style.startswith("CSV") else " | "
        lines = [between.join(map(capital, names))] if "{k}" not in style or self.chance(0.6) else []
        kept = [rng.randrange(height)] if not is_plain and self.chance(0.3) else list(range(height))
        for row in kept:
            cell = {name: slot(f"r{row}c{at}") for at, name in enumerate(names)}
            line = "".join(style.replace("{k}", capital(name)).replace("{v}", cell[name]) for name in names)
            line = line.rstrip(" ,|") + (" |" if style.startswith("|") else "")
            lines.append(between.join(cell.values()) if is_plain else line)
        said = {f"r{row}c{at}": cells[name][row] for row in kept for at, name in enumerate(names)}
        page = filled("\n".join(lines), said)
        asked = []
        first = names.index(key.split("=")[0])
        for _ in range(4):
            row, at = rng.choice(kept), rng.randrange(len(names))
            other = rng.choice([each for each in range(len(names)) if each != at])
            about, wanted = (at, other) if self.chance(0.35) else (first, at)
            given = {"k": names[about], "key": cells[names[about]][row], "t": table, "c": names[wanted]}
            answers = [f"r{row}c{wanted}"]
            if (chance := rng.random()) < 0.2:
                given, answers = {**given, "c": absent.split("=")[0]}, []
            elif chance < 0.3:
                given, answers = {**given, "key": self.value(kinds[names[about]])}, []
                if given["key"] in page.text:
                    continue
            if about != wanted:
                wording = self.pick(made["asked"] if about == first else made["asked_by"])
                asked.append(Asked(wording, given, answers, (), given["key"]))
        return Scene(rng.choice((table.capitalize(), "")), style, page, asked)

    def around(self, page: Page, forbidden: Sequence[str]) -> tuple[str, str]:
        """Sentences of a passage to stand before and after."""
        if len(page.text) > LEAST and self.chance(0.3):
            return "", ""
        rng = self.rng
        text = rng.choice(self.prose)
        parts = [text[start:end].strip() for start, end in sentences(text)]
        parts = [
            each for each in parts if 25 < len(each) < 260 and not any(word in each for word in (*forbidden, "\n"))
        ]
        room, least = MOST - len(page.text), rng.randint(len(page.text) < LEAST, 4)
        kept: list[str] = []
        for each in parts[:least]:
            if (room := room - len(each) - 2) < 0:
                break
            kept.append(each)
        is_prose = "\n" not in page.text and page.text.endswith(".")
        at, gap = rng.randint(0, len(kept)), " " if is_prose and self.chance(0.7) else "\n\n"
        before, after = " ".join(kept[:at]), " ".join(kept[at:])
        return before and before + gap, after and gap + after

    def examples(self, kind: str) -> Iterator[dict[str, Any]]:
        """Questions of one kind without end, up to three in a row of one passage."""
        made = getattr(self, kind)
        while True:
            self.currency = self.rng.choice("$€£")
            scene = made()
            said = {scene.page.text[start:end] for spots in scene.page.places.values() for start, end in spots}
            before, after = self.around(scene.page, sorted(said | {ask.about for ask in scene.asked} - {""}))
            title = self.rng.choice((scene.title, scene.title, "", self.rng.choice(self.titles)))
            text, shift = before + scene.page.text + after, len(before)
            for ask in scene.asked[:3]:
                yield {
                    "kind": kind,
                    "title": title,
                    "context": text,
                    "question": ask.text,
                    "answers": self.answers(scene.page, ask, shift),
                    "evidence": [
                        [start + shift, end + shift]
                        for start, end in (scene.page.evidence([*ask.answers, *ask.also]) if ask.answers else [])
                    ],
                    "negatives": self.negatives(kind, ask),
                    "template": scene.template,
                    "wording": ask.wording,
                }

    def answers(self, page: Page, ask: Asked, shift: int) -> list[dict[str, Any]]:
        """The values that answer, with "on" and "in" and without."""
        found = []
        for start, end in (spot for key in ask.answers for spot in page.places[key]):
            found.append({"text": page.text[start:end], "start": start + shift})
            if lead := _LEADING.match(page.text[start:end]):
                found.append({"text": page.text[start + lead.end() : end], "start": start + lead.end() + shift})
        return found

    def negatives(self, kind: str, ask: Asked) -> list[dict[str, str]]:
        """For half of those that name what they are about: a page of this kind about something else."""
        if not ask.about or ask.about not in ask.text or self.chance(0.3):
            return []
        other: Scene = getattr(self, kind)()
        if ask.about.casefold() in f"{other.title}\n{other.page.text}".casefold():
            return []
        before, after = self.around(other.page, [ask.about])
        return [{"title": other.title, "context": before + other.page.text + after}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", help="files that `quoth train reader` takes")
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSONL, compressed if it ends in .gz")
    parser.add_argument("--count", type=int, default=8000, help="questions in all")
    parser.add_argument("--held-out", action="store_true", help="of what is kept for it")
    parser.add_argument("--even", action="store_true", help="as many of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    given = [each for file in options.questions for each in read_examples(file)]
    maker, whole = Maker(given, options.held_out, rng), sum(SHARES.values())
    made = []
    for kind, share in SHARES.items():
        wanted = round(options.count / len(SHARES) if options.even else options.count * share / whole)
        for number, each in zip(range(wanted), maker.examples(kind), strict=False):
            made.append({"id": f"{kind}-{number}", **each})
    rng.shuffle(made)
    with (gzip.open if options.output.suffix == ".gz" else open)(options.output, "wt", encoding="utf-8") as stream:
        for each in made:
            stream.write(json.dumps(each, ensure_ascii=False) + "\n")
    print(f"{options.output}: {len(made):,} questions")


if __name__ == "__main__":
    main()
