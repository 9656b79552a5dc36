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
    """One template per relation, with [X] in place of the entity.

    Case matters; the amount of white space does not. A final question mark is optional and never part of the entity.
    """

    def __init__(self, templates: Mapping[str, str]) -> None:
        """Raises InputError if there are no templates, or if one does not contain exactly one [X]."""
        if not templates:
            raise InputError('no templates; give one per relation, such as {"P19": "Where was [X] born?"}')
        for relation, template in templates.items():
            if not isinstance(template, str) or template.count(ENTITY) != 1:
                raise InputError(f"template {template!r} of {relation}: it must be a text with exactly one {ENTITY}")
        self._patterns = {relation: _pattern(template) for relation, template in templates.items()}
        self._most_literal_first = sorted(templates, key=lambda relation: -len("".join(templates[relation].split())))

    @classmethod
    def read(cls, path: str | Path) -> QuestionTemplates:
        """The templates of a JSON file. Raises InputError, naming the file, if it is not a file of templates."""
        try:
            content = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON ({error}); fix the file") from None
        if not isinstance(content, Mapping):
            raise InputError(f'{path}: not a JSON object; it must map relations to templates: {{"P19": "Where was …"}}')
        try:
            return cls(content)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def entity(self, question: str, relation: str | None = None) -> tuple[int, int] | None:
        """The character range of the question's entity; None if no template matches.

        Without a relation, the matching template with the most literal characters wins; of equals, the earlier one.
        Raises InputError for a relation without a template.
        """
        if relation is not None and relation not in self._patterns:
            raise InputError(f"no template for relation {relation!r}; use one of {', '.join(self._patterns)}")
        stripped = _without_mark(question)
        for name in self._most_literal_first if relation is None else [relation]:
            if match := self._patterns[name].fullmatch(stripped):
                return match.span("entity")
        return None


def _without_mark(text: str) -> str:
    """`text` without a final question mark and the white space around it."""
    return text.rstrip().removesuffix("?").rstrip()


def _pattern(template: str) -> re.Pattern[str]:
    """Matches the template with any amount of white space wherever it has some."""
    parts = (re.split(r"\s+", part) for part in _without_mark(template.strip()).split(ENTITY))
    before, after = (r"\s+".join(map(re.escape, words)) for words in parts)
    return re.compile(rf"\s*{before}(?P<entity>\S(?:.*\S)?){after}", re.DOTALL)
