"""The limits on requests to the service.

Knows: bounds, and how each is spelled on the command line. Does not know: HTTP, models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any

from annotated_types import Ge, Le

from quoth.errors import InputError
from quoth.fields import Count, check_fields

MANY = ("text", "question")
"""Fields that may be lists of texts, each of which is answered."""


class BoundError(InputError):
    """A request that exceeds a bound, or whose reply would, or that is not valid text."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request, and of concurrent work.

    `body` bytes, `text` characters of each text, `texts` texts in a list, `neighbours` of a query, `passages` read or
    searched inside, `answers` and places of evidence; `concurrency` batches at work at once, each of `batch` texts,
    while `queue` requests wait; `timeout` seconds until a request is dropped, and until its reply must have been read,
    at most a day. A reply contains `reply` characters of text at most; a file whose pages are shown has `file` bytes.

    Raises InputError unless all are above 0, and `timeout` is at most a day.
    """

    body: Count = 1_000_000
    text: Count = 20_000
    texts: Count = 64
    neighbours: Count = 1 << 16
    passages: Count = 256
    answers: Count = 1000
    concurrency: Count = 2
    queue: Count = 256
    batch: Count = 16
    timeout: Annotated[float, Ge(0.001), Le(86_400)] = 60.0
    reply: Count = 1_000_000
    file: Count = 100_000_000

    def __post_init__(self) -> None:
        check_fields(self, "limit ")

    def check(self, request: Mapping[str, Any]) -> None:
        """Raises BoundError if a text is too long or not Unicode text, or there are too many."""
        for name, value in request.items():
            if name in MANY and isinstance(value, list) and len(value) > self.texts:
                raise BoundError(f"{name}: a list of {len(value):,}; at most {self.texts:,} at once")
            for each in _texts(value):
                if name != "documents" and len(each) > self.text:
                    raise BoundError(f"{name}: {len(each):,} characters; at most {self.text:,}")
                check_unicode(name, each)

    def check_reply(self, reply: Mapping[str, Any]) -> None:
        """Raises BoundError if the texts of a reply, with its keys, are too long."""
        if any(size > self.reply for size in accumulate(len(each) for each in _texts(reply))):
            raise BoundError(
                f"the reply has more than {self.reply:,} characters; ask for fewer texts, answers, places or passages "
                "(top_k, max_evidence, max_places, k), or for a part of the document (start, end)"
            )


def check_unicode(name: str, text: str) -> None:
    """Raises BoundError for text that JSON can encode but UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BoundError(f"{name}: half of a surrogate pair is not a character; send Unicode text") from None


def _texts(value: Any) -> Iterator[str]:
    """Every string in a value as JSON has it, however deep."""
    level = [value]
    while level:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, str):
                yield each
            elif isinstance(each, Mapping):
                yield from each
                inner += each.values()
            elif isinstance(each, (list, tuple)):
                inner += each
        level = inner
