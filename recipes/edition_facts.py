"""TempLAMA's construction from two editions of the CIA World Factbook: facts that changed, and facts that did not.

    python recipes/edition_facts.py factbook-2017.jsonl factbook-2026.jsonl -o facts
    quoth eval lama facts/changed.jsonl --set templates=facts/relations.jsonl --corpus factbook-2026.quoth

As in NPM (Min et al. 2022, appendix B), a fact changed if its object differs between the editions, and each edition
states its own. Relations are those of LAMA and TempLAMA (Dhingra et al. 2022) that the Factbook states as fields: heads
of government and of state, capitals. Files are LAMA's, with the later edition's object.
"""

from __future__ import annotations

import argparse
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from quoth.corpus.documents import read_documents
from quoth.records import Document

FIELDS = {
    "P6": "Executive branch - head of government",
    "P35": "Executive branch - chief of state",
    "P36": "Capital - name",
}
TEMPLATES = {
    "P6": "[Y] is the head of the government of [X] .",
    "P35": "[Y] is the head of state of [X] .",
    "P36": "The capital of [X] is [Y] .",
}
_TITLES = (
    "acting administrator air amir and archbishop assembly cabinet captain caretaker chairman chairperson chancellor "
    "chief co-president co-prince colonel commander commissioner confederation coprince council deputy dr emir "
    "emperor executive federal first gen general governor grand high interim island king lieutenant lord lt maj mann "
    "mayor military minister ministers of pope premier presidency president presidential prime prince princess queen "
    "republic revolutionary ruler secretary senior sir sovereign sr state sultan supreme swiss territorial the "
    "transition transitional vice vice-marshal vice-marshall "
)
_ENDS = re.compile(r" \(|[,;\[]| - | note\b|/")


def facts(documents: Iterable[Document]) -> dict[tuple[str, str], str]:
    """The object of each subject and relation."""
    found = {}
    for document in documents:
        subject = document.title.rpartition(" - ")[0]
        for line in document.text.splitlines():
            for relation, field in FIELDS.items():
                text = line.removeprefix(f"{field}: ")
                if text != line and (said := _object(relation, text)):
                    found[subject, relation] = said
    return found


def _object(relation: str, text: str) -> str:
    """A place, or a holder's name without titles; "" if no word of the name is in capitals, as surnames are."""
    words = _ENDS.split(text)[0].split()
    if relation == "P36":
        return " ".join(words)
    while words and words[0].casefold().strip(".") in _TITLES.split():
        words.pop(0)
    return " ".join(words) if len(words) < 6 and any(map(_surname, words)) else ""


def _surname(word: str) -> bool:
    return word.isupper() and sum(map(str.isalpha, word)) > 1 and not set(word) <= set("IVX")


def compared(
    old: dict[tuple[str, str], str], new: dict[tuple[str, str], str]
) -> Iterator[tuple[str, dict[str, object]]]:
    """`changed` or `unchanged` with each fact of both editions; objects that share a word but are not equal are left
    out, as spellings of one name."""
    for number, ((subject, relation), said) in enumerate(new.items()):
        before = old.get((subject, relation))
        if before is None or (before != said and _words(before) & _words(said)):
            continue
        fact = {"uuid": str(number), "predicate_id": relation, "sub_label": subject, "obj_label": said, "evidences": []}
        yield "unchanged" if before == said else "changed", fact


def _words(name: str) -> set[str]:
    """Its words, without accents and capitals; "of" and "bin" make no name."""
    kept = " ".join(word for word in name.split() if not word.islower())
    return set(re.findall(r"\w+", unicodedata.normalize("NFKD", kept.casefold()).encode("ascii", "ignore").decode()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("-o", "--output", type=Path, required=True)
    call = parser.parse_args()
    call.output.mkdir(parents=True, exist_ok=True)
    found = list(compared(*(facts(read_documents(path)) for path in (call.old, call.new))))
    for name in ("changed", "unchanged"):
        lines = [json.dumps(fact, ensure_ascii=False) + "\n" for kind, fact in found if kind == name]
        (call.output / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    templates = [json.dumps({"relation": relation, "template": text}) + "\n" for relation, text in TEMPLATES.items()]
    (call.output / "relations.jsonl").write_text("".join(templates), encoding="utf-8")


if __name__ == "__main__":
    main()
