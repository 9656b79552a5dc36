"""The replies of the HTTP service, as in its OpenAPI description: the JSON of `--json`, and its origin.

Knows: names and types, which match the records. Does not know: how a reply is made.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from quoth.corpus.exact.changed import Status as Verdict
from quoth.records import NOT_FOUND, Match
from quoth.records import Status as AnswerStatus
from quoth_serve.requests import MOST, Number

Snapshots = Annotated[dict[str, int], Field(description="The snapshot queried, by corpus.")]
Notes = Annotated[
    list[str], Field(description="Fields that `where` could not fully compare: some of their values are not dates.")
]
Probability = Annotated[float | None, Field(description="With a reader: the answer's chance of being right.")]


class Reply(BaseModel):
    """A reply, or a part of one."""

    model_config = ConfigDict(extra="forbid")


class Location(Reply):
    """Where something is in a document's source file; unknown parts are omitted."""

    page: int | None = None
    rectangles: Annotated[
        list[tuple[float, float, float, float]] | None,
        Field(description="Left, top, right, bottom in per cent of the page, from its upper left."),
    ] = None
    sheet: str | None = None
    cell: str | None = None
    slide: int | None = None
    element: str | None = None
    line: int | None = None


class Evidence(Reply):
    """One place where a phrase occurs; `context` begins at `context_start` of the document."""

    document_id: str
    title: str
    passage: int
    start: int
    end: int
    context: str
    score: float
    corpus: str = ""
    context_start: int = 0
    path: Annotated[list[str], Field(description="The headings above it, outermost first.")] = []
    location: Location | None = None


class PredictionReply(Reply):
    """A phrase and where it occurs. Offsets count code points."""

    text: str
    probability: Probability
    log_score: float | None
    score: Probability
    token_str: str | None = None
    sequence: str | None = None
    answer: str | None = None
    start: int | None = None
    end: int | None = None
    status: Annotated[
        AnswerStatus,
        Field(
            description=f"answered: at or above the threshold; unsure: below it; not_found: {NOT_FOUND}, "
            "and this only comes nearest."
        ),
    ]
    abstained: Annotated[bool, Field(description="Whether the status is not answered.")]
    evidence: list[Evidence]
    num_places: int
    parts: Annotated[list[str] | None, Field(description="The items of a list answer.")] = None


class Predictions(Reply):
    """The answers, best first; a list of such lists for several texts."""

    predictions: list[PredictionReply] | list[list[PredictionReply]]
    snapshots: Snapshots
    notes: Notes = []


class SentenceReply(Reply):
    """A unit of text that may answer (sentences, items, rows), its one place, and the best phrase inside it."""

    text: str
    probability: Annotated[float, Field(description="The chance that it answers.")]
    evidence: list[Evidence]
    answer: str
    status: AnswerStatus


class Answers(Predictions):
    """Answers to a question, and the sentences that may answer it, best first; lists of such lists for several. Only a
    reader returns sentences and corrects misspelt words."""

    sentences: list[SentenceReply] | list[list[SentenceReply]]
    shown: Annotated[
        list[SentenceReply] | list[list[SentenceReply]],
        Field(description="What to display, in order: the place of a sure phrase, what else may answer."),
    ]
    status: Annotated[
        AnswerStatus | list[AnswerStatus],
        Field(description="Overall status: answered if a phrase or a unit is sure."),
    ]
    read_as: Annotated[str | list[str], Field(description='The question with misspellings corrected, or "".')]
    look_in: Annotated[
        Evidence | list[Evidence | None] | None, Field(description="The most relevant passage, if nothing is sure.")
    ] = None


class HitReply(Reply):
    """A passage found."""

    score: float | None
    document_id: str
    title: str
    passage: int
    start: int
    end: int
    text: str
    metadata: dict[str, Any]
    matches: list[Match]
    corpus: str = ""
    location: Location | None = None
    words: Annotated[
        list[tuple[int, int]], Field(description="Character ranges of `text` that match a word of the query.")
    ] = []


class Hits(Reply):
    """The passages, best first."""

    passages: list[HitReply]
    read_as: Annotated[str, Field(description='The query with misspellings corrected, or "".')]
    snapshots: Snapshots
    notes: Notes = []


class Change(Reply):
    """One difference between a quotation and its source: a range of each."""

    kind: str
    quoted: str
    start: Number
    end: Number
    source: str
    document_id: str
    source_start: Number
    source_end: Number
    concerns: Annotated[
        list[str], Field(description="number, date, name, negation, modal, sign; else case, … or word.")
    ]


class Verified(Reply):
    """Whether a text occurs in the corpus (ignoring white space and the style of quotation marks), how often and where;
    if not, the nearest text."""

    occurs: bool
    text: str
    num_places: int
    num_whole: Annotated[int, Field(description="Number of places where it is not part of a longer word or number.")]
    places: list[Evidence]
    nearest: list[Evidence]
    status: Verdict
    changes: list[Change]
    snapshots: Snapshots
    notes: Notes = []


class Quotation(Reply):
    """A quotation of the draft, `draft[start:end]`, and whether it is faithful."""

    quote: Annotated[str, Field(description="Its words, without markup.")]
    start: Number
    end: Number
    status: Verdict
    evidence: list[Evidence]
    changes: list[Change]
    source: Annotated[str, Field(description="The source that is named beside it, if it was found.")]


class TracedPlace(Reply):
    """Where a run of the draft occurs."""

    document_id: str
    start: Number
    end: Number
    corpus: str = ""


class TracedRun(Reply):
    """A run of six words or more of the draft, `draft[start:end]`, that occurs word for word, quoted or not."""

    start: Number
    end: Number
    num_places: int
    places: list[TracedPlace]


class Checked(Reply):
    """The quotations of a draft, in the order of the text, and its runs of words that occur, the rarest first."""

    quotations: list[Quotation]
    spans: list[TracedRun]
    snapshots: Snapshots
    notes: Notes = []


class CorpusPlace(Reply):
    """Which corpus, and which of its snapshots."""

    corpus: str | None = None
    snapshot: Number | None = None


class DocumentName(CorpusPlace):
    """Which document."""

    id: str


class DocumentPlace(DocumentName):
    """A document, and a range of its characters, clipped at its end."""

    start: Number = 0
    end: Number | None = None


class PagePlace(DocumentName):
    """A document, a range of its characters, and the width of the picture of their page."""

    start: Number
    end: Annotated[int, Field(ge=1, lt=MOST)]
    width: Annotated[int, Field(ge=100, le=2000, description="Pixels.")] = 1000


class DocumentReply(Reply):
    """A document, or the requested part."""

    corpus: str
    snapshot: int
    id: str
    title: str
    metadata: dict[str, Any]
    text: str
    start: int
    end: int
    length: Annotated[int, Field(description="Characters of the whole text.")]


class ValueReply(Reply):
    """A value of a field, and how many documents have it."""

    value: bool | int | float | str
    documents: int


class FieldReply(Reply):
    """A field of the documents' metadata."""

    name: str
    documents: Annotated[int, Field(description="How many have it.")]
    distinct: Annotated[int | None, Field(description="Number of its values; null if there are more than 1,000.")]
    values: Annotated[list[ValueReply], Field(description="The most frequent, at most 12; none if distinct is null.")]
    least: Annotated[float | str | None, Field(description="The least value of a field of numbers or dates.")]
    most: float | str | None


class Fields(Reply):
    """The fields for `where`: the 50 most common."""

    documents: Annotated[int, Field(description="Number of documents.")]
    fields: list[FieldReply]
    snapshots: Snapshots


class Written(Reply):
    """The result of a write."""

    corpus: str
    snapshot: Annotated[int, Field(description="Its snapshot, which is served from now on.")]
    written: int = 0
    deleted: int = 0


class CorpusReply(Reply):
    """A corpus and its available snapshots."""

    name: str
    documents: int
    passages: int
    snapshot: int
    snapshots: list[int]
    damaged: Annotated[list[str], Field(description="Damaged segments, which are not searched.")]


class About(Reply):
    """What is served."""

    version: str
    corpora: list[CorpusReply]
    models: dict[str, Any]
    modes: list[str]
    vectors: Annotated[
        dict[str, str],
        Field(description="Progress of the background vectors of a corpus's passages (complete, failed, none)."),
    ] = {}
    writable: bool
    where: Annotated[bool, Field(description="Whether queries take `where`: not on a cluster.")] = True
    files: Annotated[bool, Field(description="With --files: whether pages and files of documents are available.")]
    limits: dict[str, float]
    examples: Annotated[list[str], Field(description="Questions these corpora answer.")]


class Status(Reply):
    """Whether the service is well."""

    status: str
    damaged: Annotated[list[str], Field(description="Segments left out, if any.")] = []
