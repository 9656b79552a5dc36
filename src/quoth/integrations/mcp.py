"""A corpus for assistants: a server of the Model Context Protocol with five tools that only read.

Knows: the tools, what they take and return, and how errors are reported. Does not know: how answers are made.
"""

# No postponed annotations: the package reads those of functions within functions.

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from quoth import __version__
from quoth.corpus.bm25 import bm25
from quoth.corpus.corpus import Corpus
from quoth.corpus.quotes import verify_quote
from quoth.errors import QuothError, nearest
from quoth.records import Evidence, Prediction

if TYPE_CHECKING:
    from quoth.models.npm import NPM
    from quoth.models.reader import Reader

MOST_ANSWERS = 50
MOST_CHARACTERS = 20_000
"""The most characters of a text or a question, and of what `read` returns at once."""
PLACES = 3
"""Places returned per answer."""

INSTRUCTIONS = (
    "Answers are phrases that occur in this corpus, word for word. `ask` answers questions, `fill` fills the [MASK] of "
    "a sentence, `search` finds passages, `read` gives a document's text, `verify_quote` checks whether words occur in "
    "the corpus. Offsets count Unicode code points of a document's text. If `corpus_does_not_say` is true, the answers "
    "are only guesses: say that the corpus has no answer. Check every quote with `verify_quote` before you give it."
)

Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
Count = Annotated[int, Field(ge=1, le=MOST_ANSWERS)]


class Place(BaseModel):
    """Where words occur: `document_text[start:end]`."""

    document_id: str
    title: str
    start: int = Field(description="First character in the document, in Unicode code points.")
    end: int = Field(description="Character after the last one.")
    quote: str = Field(description="The words as they occur there.")
    context: str = Field(description="The passage around them.")
    score: float = Field(description="The place's share of the probability, or how similar the words are (1: equal).")

    @classmethod
    def of(cls, place: Evidence) -> "Place":
        """The place that an evidence names."""
        at = place.start - place.context_start
        return cls(
            document_id=place.document_id,
            title=place.title,
            start=place.start,
            end=place.end,
            quote=place.context[at : at + place.end - place.start],
            context=place.context,
            score=place.score,
        )


class Answer(BaseModel):
    """A phrase of the corpus."""

    text: str
    probability: float = Field(description="The chance that it is right.")
    num_places: int = Field(description="How many places support it; the best are listed.")
    places: list[Place]


class Answers(BaseModel):
    """Phrases of the corpus, best first."""

    corpus_does_not_say: bool = Field(description="Whether even the best answer is only a guess.")
    answers: list[Answer]

    @classmethod
    def of(cls, predictions: Sequence[Prediction]) -> "Answers":
        """Predictions as answers."""
        return cls(
            corpus_does_not_say=not predictions or predictions[0].abstained,
            answers=[
                Answer(
                    text=each.text,
                    probability=each.probability,
                    num_places=each.num_places,
                    places=[Place.of(place) for place in each.evidence[:PLACES]],
                )
                for each in predictions
            ],
        )


class Passage(BaseModel):
    """A part of a document that matches a query."""

    document_id: str
    title: str
    start: int
    end: int
    text: str
    score: float = Field(description="BM25: higher is better, comparable within one query only.")


class Passages(BaseModel):
    """Passages, best first."""

    passages: list[Passage]


class Excerpt(BaseModel):
    """A range of a document's text."""

    document_id: str
    title: str
    start: int
    end: int
    length: int = Field(description="Characters of the whole document.")
    text: str


class Verdict(BaseModel):
    """Whether words occur in the corpus."""

    occurs: bool = Field(description="Whether they occur word for word, ignoring white space.")
    num_places: int
    num_whole: int = Field(description="Places where they are not a part of a longer word or number.")
    places: list[Place]
    nearest: list[Place] = Field(description="If they do not occur: what is most similar, best first.")


class Tools:
    """What the tools do. Models are loaded when they are first asked; one request is answered at a time."""

    def __init__(
        self, corpus: Corpus, load_reader: "Callable[[Corpus], Reader]", load_npm: "Callable[[Corpus], NPM]"
    ) -> None:
        self._corpus, self._lock = corpus, threading.Lock()
        self._load_reader, self._load_npm = load_reader, load_npm

    @cached_property
    def _reader(self) -> "Reader":
        return self._load_reader(self._corpus)

    @cached_property
    def _npm(self) -> "NPM":
        return self._load_npm(self._corpus)

    @contextmanager
    def _reading(self) -> Iterator[Corpus]:
        """The corpus as it is now; a caller's errors are reported to it."""
        try:
            with self._lock:
                self._corpus.catch_up()
                yield self._corpus
        except QuothError as error:
            raise ToolError(str(error)) from error

    def ask(self, question: Text, top_k: Count = 3) -> Answers:
        """Answer a question with phrases of the corpus, each with the places where it occurs."""
        with self._reading():
            return Answers.of(self._reader.ask(question, top_k=top_k))

    def fill(self, text: Text, top_k: Count = 3) -> Answers:
        """Fill the one [MASK] of a sentence with phrases of the corpus, each with the places where it occurs."""
        with self._reading():
            return Answers.of(self._npm.fill(text, top_k=top_k, max_evidence=PLACES))

    def search(self, query: Text, k: Count = 5) -> Passages:
        """Find the passages that match the words of a query best."""
        with self._reading() as corpus:
            found = [(hit.passage, hit.score) for hit in bm25([corpus], query, k)]
        return Passages(
            passages=[
                Passage(document_id=p.document_id, title=p.title, start=p.start, end=p.end, text=p.text, score=score)
                for p, score in found
            ]
        )

    def read(
        self, document_id: Text, start: Annotated[int, Field(ge=0)] = 0, end: Annotated[int, Field(ge=0)] | None = None
    ) -> Excerpt:
        """Read a document of the corpus, or its characters from start to end; at most 20,000 characters at once."""
        with self._reading() as corpus:
            document = corpus.document(document_id)
        length = len(document.text)
        first = min(start, length)
        last = max(first, min(length if end is None else end, length, first + MOST_CHARACTERS))
        return Excerpt(
            document_id=document.id,
            title=document.title,
            start=first,
            end=last,
            length=length,
            text=document.text[first:last],
        )

    def verify_quote(self, text: Text, max_places: Count = 10) -> Verdict:
        """Check whether words occur in the corpus, exactly except for white space; if not, what is nearest to them."""
        with self._reading() as corpus:
            found = verify_quote(corpus, text, max_places)
        return Verdict(
            occurs=found.occurs,
            num_places=found.num_places,
            num_whole=found.num_whole,
            places=[Place.of(each) for each in found.places],
            nearest=[Place.of(each) for each in found.nearest],
        )


class _Server(MCPServer[Any]):
    """Refuses arguments that a tool does not have, which the package ignores."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        known = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}.get(name, arguments)
        for each in arguments:
            if each not in known:
                raise ToolError(f"{name} has no argument {each!r}; use {', '.join(known)}{nearest(each, known)}")
        return await super().call_tool(name, arguments, context)


def server(name: str, tools: Tools) -> MCPServer[Any]:
    """The server of a corpus, to be run over standard input and output or over streamable HTTP.

    Results are typed: their schemas are the tools' output schemas. All tools are marked as read-only.
    """
    made = _Server(
        f"quoth-{name}",
        title=f"Quoth: {name}",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    hints = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    add = partial(made.add_tool, annotations=hints, structured_output=True)
    for tool, title in (
        (tools.ask, "Ask the corpus"),
        (tools.fill, "Fill a blank"),
        (tools.search, "Search passages"),
        (tools.read, "Read a document"),
        (tools.verify_quote, "Verify a quote"),
    ):
        add(tool, title=title)
    return made
