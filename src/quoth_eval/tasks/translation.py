"""Names in other scripts, from the first sentences of encyclopaedia pages: "Athens (…; Modern Greek: Αθήνα, …".

Knows: how a page states a name's spelling in another language, and how it is asked. Does not know: models.

NPM's test set is not published in parts; this is its heuristic (Min et al. 2022, appendix B), over any documents that
keep such spellings.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from quoth.errors import InputError
from quoth.records import Document
from quoth.text.tokenizer import MASK
from quoth_eval.spec import Given, Options, Prepared, TaskSpec
from quoth_eval.systems import filling
from quoth_eval.task import Answer, Example, System, Task, draw_of_each
from quoth_eval.tasks.lama import judge

LANGUAGES = (
    "Arabic", "Armenian", "Belarusian", "Bengali", "Bulgarian", "Chinese", "Georgian", "Greek", "Hebrew", "Hindi",
    "Japanese", "Kazakh", "Korean", "Macedonian", "Mongolian", "Persian", "Russian", "Serbian", "Tamil", "Telugu",
    "Thai", "Ukrainian", "Urdu",
)  # fmt: skip
FIRST = 600
"""A spelling must occur within this many characters of a document's start."""
_AROUND = " '\"“”.\u200d\u200e\u200f"
_SPELLING = re.compile(rf"\b({'|'.join(LANGUAGES)}): *([^;,()\[\]:\n]+)")
_QUALIFIER = re.compile(r" *\([^()]*\)$|,.*$")


@dataclass(frozen=True, slots=True)
class Translation:
    """The name of a document, and its spelling in a language."""

    document_id: str
    name: str
    language: str
    spelling: str


def find_translations(documents: Iterable[Document]) -> Iterator[Translation]:
    """The spellings of documents' titles in languages of other scripts, at most one per document and language.

    The title, without its qualifier ("Georgia (country)", "Paris, Texas"), must occur in the text before them, and a
    spelling must have letters, none of them Latin.
    """
    for document in documents:
        name = _QUALIFIER.sub("", document.title).strip()
        seen = set[str]()
        for match in _SPELLING.finditer(document.text[:FIRST]):
            language, spelling = match[1], match[2].strip(_AROUND)
            stated = name and name.casefold() in document.text[: match.start()].casefold()
            letters = [char for char in spelling if char.isalpha()]
            foreign = letters and not any(char.isascii() for char in letters)
            if stated and foreign and language not in seen:
                seen.add(language)
                yield Translation(document.id, name, language, spelling)


def _make(given: Given, settings: object) -> Prepared:
    """The names that the searched documents spell in other scripts; `limit` of each language."""
    found = [each for corpus in given.searched() for each in find_translations(corpus.documents())]
    drawn = draw_of_each(found, given.limit, given.seed, lambda each: each.language)
    if not drawn:
        raise InputError("no document spells its title in another script: 'Athens (Greek: Αθήνα)'; search others")
    passages = (passage for corpus in given.corpora for passage in corpus.passages())
    first = {passage.document_id: passage.text for passage in passages if passage.start == 0}
    examples = [
        Example(
            f"{each.document_id}-{each.language}",
            f"The {each.language} translation of {each.name} is: {MASK}.",
            (each.spelling,),
            first[each.document_id],
            {"language": each.language},
        )
        for each in drawn
    ]

    def asked(name: str, options: Options) -> System[str]:
        told = {option: value for option, value in options.items() if option != "oracle"}
        if not options.get("oracle"):
            return filling(given)(name, told)
        model = given.open(name, given.corpora, options)

        def answer(examples: Sequence[Example[str]]) -> list[Answer]:
            # BM25's best passage for a passage's own text is that passage.
            texts, passages = [each.text for each in examples], [each.source for each in examples]
            return [Answer(found) for found in model.fill(texts, searched=passages, **{**told, "passages": 1})]

        return answer

    shared = given.settings()
    task = Task(name="translation", examples=examples, judge=judge, settings=shared, macro=("language",), at_a_time=32)
    return Prepared(task=task, asks=asked)


SPECS = [TaskSpec(name="translation", make=_make, options=("oracle",), limit=3000, each=True)]
