"""A sentence that is quoted, and what is around it.

Knows words. Does not know how a quotation is changed, or corpora.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from quoth.text.passages import whole_sentences

LEAST_WORDS, MOST_WORDS = 12, 40
PART = 5
"""The least number of words on either side of an ellipsis, or of a seam."""
WORD = re.compile(r"\w+(?:[.,'’-]\w+)*")
_NOT_QUOTED = re.compile(r"\.\s?\.|[\n…\[\]]")
"""An ellipsis or a bracket would be read as an editor's."""


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence, the text of its document, and a sentence of another document."""

    text: str
    document: str = ""
    elsewhere: str = ""

    @property
    def words(self) -> list[re.Match[str]]:
        """The sentence's words."""
        return [*WORD.finditer(self.text)]


Change = Callable[[Source, Random], str | None]
"""The sentence as somebody else has it; None if the change does not apply to it."""


def quotable(document: str) -> list[tuple[int, int]]:
    """Where the sentences are that can be quoted: 12 to 40 words in one line, from a capital to a full stop."""
    return [
        (start, end)
        for start, end in whole_sentences(document)
        if document[start].isupper()
        and document[end - 1] == "."
        and not _NOT_QUOTED.search(document, start, end)
        and LEAST_WORDS <= len(WORD.findall(document, start, end)) <= MOST_WORDS
    ]


def put(text: str, word: re.Match[str], new: str) -> str:
    """The text with another word in its place."""
    return text[: word.start()] + new + text[word.end() :]
