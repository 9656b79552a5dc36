"""Writes `src/quoth/corpus/date_words.json`: the words of dates in many languages, from Unicode's CLDR by way of Babel.

Run it by hand (`pip install babel`, which is 36 MB and needed for nothing else). A name that is one month here and
another there (listopad) is left out: such a date is not unambiguous. So is what has a digit or a space in it. Thai is
left out, because its years are Buddhist.
"""

import json
import re
from collections import defaultdict
from itertools import chain
from pathlib import Path

import babel
from babel.localedata import locale_identifiers

from quoth.corpus.dates import folded

LANGUAGES = (
    "af am ar az be bg bn bs ca cs cy da de el en es et eu fa fi fil fr ga gl gu he hi hr hu hy id is it ka kk kn ko "
    "ky lb lt lv mk ml mn mr ms nb ne nl nn pa pl pt ro ru si sk sl sq sr sv sw ta te tr uk ur uz vi ja zh"
)
OUT = Path(__file__).parents[1] / "src/quoth/corpus/date_words.json"
SOURCE = (
    "Unicode CLDR, by Babel {}. Copyright © 1991-2026 Unicode, Inc. Distributed under the Unicode License, "
    "date_words.license.txt"
)
_APART = re.compile(r"[\s,،./()’'\-–]+")


def single(name: str) -> str:
    """A name as it is looked up; "" if it has several words, but "de" before it, or a digit."""
    words = [word for word in _APART.split(folded(name)) if word and word not in ("de", "d", "ya", "pe")]
    return words[0] if len(words) == 1 and not any(map(str.isdigit, words[0])) else ""


def main() -> None:
    months, weekdays, others = defaultdict[str, set[int]](set), set[str](), set[str]()
    for name in sorted(locale_identifiers()):
        if name.split("_")[0] not in LANGUAGES.split() or name.startswith(("en_Dsrt", "en_Shaw")):
            continue
        locale = babel.Locale.parse(name)
        patterns = [locale.date_formats[width].pattern for width in ("full", "long", "medium")]
        patterns += [str(locale.datetime_formats[width]) for width in ("full", "long", "medium")]
        before = {"", *(mark for each in patterns for mark in re.findall(r"(\w)'?MMM", each) if mark > "\x7f")}
        for form in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for number, said in locale.months[form][width].items():
                    for mark in before:  # in Hebrew, "in" is a letter of the word
                        months[single(mark + said)].add(number)
                weekdays |= {word for said in locale.days[form][width].values() for word in _APART.split(folded(said))}
        for literal in chain.from_iterable(re.findall(r"'([^']+)'|([^\x00-\x7f]+)", " ".join(patterns))):
            others |= {word for word in _APART.split(folded(literal)) if word and word[0].isalpha()}
    del months[""]
    doubtful = sorted(name for name, numbers in months.items() if len(numbers) > 1)
    made = {
        "source": SOURCE.format(babel.__version__),
        "languages": LANGUAGES.split(),
        "months": [sorted(name for name, numbers in months.items() if numbers == {month}) for month in range(1, 13)],
        "weekdays": sorted(weekdays - {""}),
        "others": sorted(others - months.keys()),
    }
    lines = ",\n".join(f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in made.items())
    OUT.write_text(f"{{\n{lines}\n}}\n".replace("], [", "],\n["), encoding="utf-8")
    print("left out:", *doubtful)


if __name__ == "__main__":
    main()
