"""Which words of a question name the entity it asks about, by templates such as "Where was [X] born?".

Knows: the file of EntityQuestions' templates (Sciavolino et al. 2021), a JSON object of relations and templates.
Does not know: entities, answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from quoth.corpus.documents import read_text
from quoth.errors import InputError

ENTITY = "[X]"


class QuestionTemplates:
    """One template for each relation, with [X] where the entity stands.

    Case counts; white space may differ. One question mark at the end may be missing, and is never the entity's.
    """

    def __init__(self, templates: Mapping[str, str]) -> None:
        """Raises InputError where there is no template, or for one that has not exactly one [X]."""
        if not templates:
            raise InputError('no templates; give one for each relation, such as {"P19": "Where was [X] born?"}')
        for relation, template in templates.items():
            if not isinstance(template, str) or template.count(ENTITY) != 1:
                raise InputError(f"template {template!r} of {relation}: allowed is a text with exactly one {ENTITY}")
        self._patterns = {relation: _pattern(template) for relation, template in templates.items()}
        self._most_literal_first = sorted(templates, key=lambda relation: -len("".join(templates[relation].split())))

    @classmethod
    def read(cls, path: str | Path) -> QuestionTemplates:
        """The templates of a JSON file. Raises InputError, naming the file, where it is not such a one."""
        try:
            content = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON ({error}); mend the file") from None
        if not isinstance(content, Mapping):
            raise InputError(f'{path}: no JSON object; it must map relations to templates: {{"P19": "Where was …"}}')
        try:
            return cls(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def entity(self, question: str, relation: str | None = None) -> tuple[int, int] | None:
        """Where in the question its entity stands, from character to character; None where no template matches.

        Without a relation, the matching template with the most literal characters decides, the earlier of equals.
        Raises InputError for a relation without a template.
        """
        if relation is not None and relation not in self._patterns:
            raise InputError(f"no template for relation {relation!r}; allowed are {', '.join(self._patterns)}")
        stripped = _without_mark(question)
        for each in self._most_literal_first if relation is None else [relation]:
            found = self._patterns[each].fullmatch(stripped)
            if found:
                return found.span("entity")
        return None


def _without_mark(text: str) -> str:
    """`text` up to its last question mark, where one ends it, and white space."""
    return text.rstrip().removesuffix("?").rstrip()


def _pattern(template: str) -> re.Pattern[str]:
    before, after = (_literal(part) for part in _without_mark(template.strip()).split(ENTITY))
    return re.compile(rf"\s*{before}(?P<entity>\S(?:.*\S)?){after}", re.DOTALL)


def _literal(text: str) -> str:
    """A pattern of the text, in which each run of white space is any."""
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))
