"""The frozen records that pass between rooms, and the rankings that show them: in a notebook, and as a table.

They know how a phrase is addressed (characters of the original document), how a prediction is written as a dictionary,
HTML, and pandas where it is installed; they do not know where they come from or how they were found.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Literal, TypeVar

from quoth.errors import InputError
from quoth_sources.blocks import Block, Headings, heading_name, with_heading
from quoth_sources.source_map import Located, as_json

EXCERPT = 160
"""Characters shown before a phrase, and after it."""
LEAST_SHOWN = 0.05
"""The chance from which a unit of a text is shown."""
PLACES = 3
"""Places of a prediction that are shown."""


@dataclass(frozen=True, slots=True)
class Document:
    """A source text as it came, with its id, title and any further fields.

    `source_map` says where the text is in the file that it was read from, `blocks` what the file marks in it
    (`quoth_sources.blocks`); without any they are guessed when the document is added.
    """

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source_map: bytes = field(default=b"", repr=False)
    blocks: bytes = field(default=b"", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Passage(Located):
    """A character range of a document: `text == document.text[start:end]`. `source_map` is that part of its map, and
    `blocks` are its blocks, in characters of the document; `headings` stand above it, with their levels."""

    row: int
    document_id: str
    title: str
    text: str
    start: int
    end: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source_map: bytes = field(default=b"", repr=False)
    blocks: tuple[Block, ...] = field(default=(), repr=False, compare=False)
    headings: Headings = ()

    def path(self, at: int = 0) -> tuple[str, ...]:
        """The headings above the passage, or above a character of its document inside it, the highest first; without
        one that repeats the title."""
        above = self.headings
        for start, end, kind, level in self.blocks:
            if kind == "heading" and end <= at:
                above = with_heading(above, level, heading_name(self.text[start - self.start : end - self.start]))
        names = tuple(name for _, name in above)
        return names[names[:1] == (heading_name(self.title),) :]


@dataclass(frozen=True, slots=True)
class Match:
    """Why a passage was found: the key of it that is nearest to `query`, a part of what was asked, and how near.

    The key is `document.text[start:end]`, or the title where `start == end`.
    """

    query: str
    text: str
    start: int
    end: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search found in the corpus of this name; a higher score is better.

    `matches` say by which of its keys, where known.
    """

    passage: Passage
    score: float
    matches: tuple[Match, ...] = ()
    corpus: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The hit as JSON has it: the passage's fields, `passage` for its row, its score and its matches."""
        passage = self.passage
        return {
            "score": float(self.score),
            "document_id": passage.document_id,
            "title": passage.title,
            "passage": passage.row,
            "start": passage.start,
            "end": passage.end,
            "text": passage.text,
            "metadata": dict(passage.metadata),
            "matches": [asdict(match) for match in self.matches],
            "corpus": self.corpus,
            **({} if (location := passage.locate()) is None else {"location": location.to_dict()}),
        }

    to_row = to_dict


@dataclass(frozen=True, slots=True)
class PassageShare:
    """What one passage z adds to the likelihood of an answer y to a text x: log p(z|x), log p(y|z,x), and its share of
    p(y|x), which is p(z|y,x) = p(y|z,x) p(z|x) / p(y|x). `passage` is None, and `corpus` "", for the null document.
    """

    passage: Passage | None
    corpus: str
    log_retrieval: float
    log_likelihood: float
    share: float


@dataclass(frozen=True, slots=True)
class Likelihood:
    """log p(y|x) of an answer y, which is cut into word `pieces`, in the blank of a text x, and what each passage adds
    to it: the nearest first, the null document last. Their shares sum to 1.
    """

    answer: str
    pieces: tuple[str, ...]
    log_probability: float
    passages: tuple[PassageShare, ...]

    @property
    def probability(self) -> float:
        """p(y|x)."""
        return math.exp(self.log_probability)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it, with `probability`."""
        return {"probability": self.probability, **as_json(self)}


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """A name or a date in a text, `text[start:end]`, and its kind: "PER", "LOC", "ORG", "MISC" or "DATE" by default."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text and the spans tagged in it, in order."""

    text: str
    spans: tuple[TaggedSpan, ...]


@dataclass(frozen=True, slots=True)
class Evidence(Located):
    """One place where a predicted phrase occurs: `document.text[start:end]` is the phrase.

    `passage` is the passage's row and `context` its text, which begins at `context_start` of the document,
    so that `context[start - context_start : end - context_start]` is the phrase too. `score` is this
    occurrence's share of the prediction's probability; the shares of all its occurrences sum to it, quoted or not.
    `path` are the headings above it, the highest first.
    """

    document_id: str
    title: str
    passage: int
    start: int
    end: int
    context: str
    score: float
    corpus: str = ""
    context_start: int = 0
    source_map: bytes = field(default=b"", repr=False)
    path: tuple[str, ...] = ()


Status = Literal["answered", "unsure", "not_found"]
"""What a prediction is: an answer; an answer that may well be wrong; or only what comes nearest to one."""
NOT_FOUND = "no answer was found in the passages that were read"
"""What `not_found` means, as people are told."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A phrase of the corpus, the log of its score, its probability, and where it occurs, best place first.

    `evidence` are the best of its places, `num_places` is how many there are. `sequence` is the query with its blank
    filled, or "" if there was no blank (`ask`). `status`: "answered" if the probability is at or above the threshold
    that was asked for (`min_probability`), "unsure" if it is below, and "not_found" if even the best of its ranking is
    so improbable that the passages that were read do not say. If a question asks for several things, the answer may be
    a list as it stands in a text ("Russia and China"), and `parts` its items.
    """

    text: str
    log_score: float
    probability: float
    evidence: tuple[Evidence, ...]
    sequence: str = ""
    status: Status = "answered"
    num_places: int = 0
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_places", max(self.num_places, len(self.evidence)))

    def __repr__(self) -> str:
        best = [f"{place.document_id!r}[{place.start}:{place.end}]" for place in self.evidence[:1]]
        places = [f"{self.num_places} places"] if self.num_places > 1 else []
        guess = [self.status] if self.abstained else []
        return f"Prediction({', '.join([repr(self.text), f'{self.probability:.3f}', *best, *places, *guess])})"

    def _repr_html_(self) -> str:
        return Predictions([self])._repr_html_()

    def with_probability(self, probability: float, max_evidence: int | None = None) -> "Prediction":
        """The prediction with another probability, of which its best places (None: all) have the shares they had."""
        scale = probability / self.probability if self.probability else 0.0
        evidence = tuple(replace(place, score=place.score * scale) for place in self.evidence[:max_evidence])
        return replace(self, probability=probability, evidence=evidence)

    @property
    def score(self) -> float:
        """The probability, by its name in the Hugging Face pipelines."""
        return self.probability

    @property
    def abstained(self) -> bool:
        """Whether it is no answer: `status` is "unsure" or "not_found"."""
        return self.status != "answered"

    def to_dict(self) -> dict[str, Any]:
        """The prediction as JSON has it, on the command line and over HTTP.

        `text`, `probability`, `log_score`, `status`, `abstained`, `evidence` and `num_places` are named as here. Next
        to them are the keys of the Hugging Face pipelines: `score` (the probability), `token_str`, `sequence` of
        fill-mask, if a blank was filled; else `score`, `answer`, `start`, `end` of question-answering. A list has
        `parts`.
        """
        best = self.evidence[0] if self.evidence else None
        theirs: dict[str, Any] = {"token_str": self.text, "sequence": self.sequence}
        if not self.sequence:
            theirs = {"answer": self.text, "start": best.start if best else None, "end": best.end if best else None}
        return {
            "text": self.text,
            "probability": self.probability,
            "log_score": self.log_score,
            "score": self.score,
            **theirs,
            "status": self.status,
            "abstained": self.abstained,
            "evidence": [as_json(place) for place in self.evidence],
            "num_places": self.num_places,
            **({"parts": [*self.parts]} if self.parts else {}),
        }

    def to_row(self) -> dict[str, Any]:
        """The prediction with its best place, without nesting: a row of a table."""
        own = ("text", "probability", "log_score", "status", "abstained")
        of_place = ("document_id", "title", "passage", "start", "end", "context", "corpus")
        best = self.evidence[0] if self.evidence else None
        row = {name: getattr(self, name) for name in own} | {name: getattr(best, name, None) for name in of_place}
        return row | {"num_places": self.num_places}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A unit of a text that may answer a question (sentences, items, rows), the chance that it does, and the one place
    where it stands. `answer` is the best phrase inside it, which may answer by itself. `status`: as a prediction's."""

    text: str
    probability: float
    evidence: tuple[Evidence, ...]
    answer: str = ""
    status: Status = "unsure"

    def __repr__(self) -> str:
        return f"Sentence({self.text!r}, {self.probability:.0%}, {self.evidence[0].document_id!r})"

    def to_dict(self) -> dict[str, Any]:
        """The sentence as JSON has it."""
        return as_json(self)


R = TypeVar("R", Prediction, Hit)


class _Ranking(list[R]):
    """Best first: a list that shows itself in a notebook, and as a table. `read_as` is what was asked, with misspelt
    words as the corpus spells them, or "" if it was read as given."""

    read_as = ""

    def to_pandas(self) -> Any:
        """A pandas DataFrame, a row for each, with its place; a prediction's is its best one.

        Raises:
            InputError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas() takes pandas, which is not installed; pip install pandas") from None
        return pandas.DataFrame([each.to_row() for each in self])

    def _html(self, told: str, show: Callable[[R], str]) -> str:
        lines = [f"read as: {_text(self.read_as)}"] * bool(self.read_as) + [told] * bool(told)
        items = f"<ol>{''.join(f'<li>{show(each)}</li>' for each in self)}</ol>" if self else ""
        return "".join(f"<p><em>{line}</em></p>" for line in lines) + items


class Predictions(_Ranking[Prediction]):
    """A ranking of predictions, best first. A reader's answer to a question also has `sentences`, those that may answer
    it, best first, and `read_as`: the question with misspelt words as the corpus spells them ("" if there are none).
    If nothing is sure, `look_in` is the passage that is most relevant."""

    look_in: Evidence | None = None

    def __init__(self, predictions: Iterable[Prediction] = (), sentences: Sequence[Sentence] = ()) -> None:
        super().__init__(predictions)
        self.sentences = list(sentences)

    @property
    def shown(self) -> list[Sentence]:
        """What a person sees, in order: the units of the texts that may answer, that of a sure phrase first; without
        units the phrases themselves."""
        units = [each for each in self.sentences if each.probability >= LEAST_SHOWN]
        if not self or (units and self[0].abstained):
            return units
        best = self[0]
        around = [each for each in self.sentences if any(is_within(place, each.evidence[0]) for place in best.evidence)]
        if not best.abstained and around:
            first = around[0]
            raised = replace(first, probability=max(first.probability, best.probability))
            return [raised, *(each for each in units if each is not first)]
        return [*(Sentence(each.text, each.probability, each.evidence, each.text) for each in self), *units]

    @property
    def status(self) -> Status:
        """That of the whole: "answered" if the best prediction is, or the best unit; else the best prediction's;
        "not_found" if there is none."""
        if any(each.status == "answered" for each in self.sentences[:1]):
            return "answered"
        return self[0].status if self else "not_found"

    def __repr__(self) -> str:
        return "\n".join(["Predictions([", *(f"    {each!r}," for each in self), "])"]) if self else "Predictions([])"

    def _repr_html_(self) -> str:
        nearest = f"{NOT_FOUND}; what comes nearest:" if self else NOT_FOUND
        return self._html(nearest if self.status == "not_found" else "", _prediction)


class Hits(_Ranking[Hit]):
    """A ranking of passages, best first. `read_as` is the query with misspelt words as the corpus spells them, if the
    mode is "auto" and there are any."""

    def _repr_html_(self) -> str:
        return self._html("" if self else "no passage of the corpus matches", _hit)


def is_within(place: Evidence, whole: Evidence) -> bool:
    """Whether a place is a part of another, or all of it."""
    same = (place.corpus, place.document_id) == (whole.corpus, whole.document_id)
    return same and whole.start <= place.start and place.end <= whole.end


def in_context(place: Evidence) -> tuple[int, int]:
    """Where the words of a place begin and end in its context."""
    return place.start - place.context_start, place.end - place.context_start


def quote_of(place: Evidence) -> str:
    """The words of a place, as they occur there."""
    return place.context[slice(*in_context(place))]


def places_told(prediction: Prediction) -> tuple[Evidence, ...]:
    """An answer's first places, or that of each phrase if it fills several blanks."""
    return prediction.evidence[: max(PLACES, len(prediction.parts))]


def _prediction(prediction: Prediction) -> str:
    unsure = " <em>(unsure)</em>" if prediction.status == "unsure" else ""
    head = f"<b>{_text(prediction.text)}</b> {100 * prediction.probability:.1f} %{unsure}"
    shown = places_told(prediction)
    more = prediction.num_places - len(shown)
    rest = f"<small>… and {more:,} more {'place' if more == 1 else 'places'}</small>" if more > 0 else ""
    return head + "".join(map(place_html, shown)) + rest


def place_html(evidence: Evidence) -> str:
    """A place as a part of a page: its words in their context, and where they are."""
    quote = _excerpt(evidence.context, [in_context(evidence)])
    return f"<blockquote>{quote}<br>{_source(evidence, evidence.corpus)}</blockquote>"


def _hit(hit: Hit) -> str:
    passage = hit.passage
    ranges = sorted({(match.start - passage.start, match.end - passage.start) for match in hit.matches})
    quote = _excerpt(passage.text, [each for each in ranges if each[0] < each[1]])
    head = f"<b>{_text(passage.title or passage.document_id)}</b> {hit.score:.3f}"
    return f"{head}<blockquote>{quote}<br>{_source(passage)}</blockquote>"


def _excerpt(text: str, marked: Sequence[tuple[int, int]]) -> str:
    """The text around the first marked range, with what is marked highlighted."""
    first, last = marked[0] if marked else (0, 0)
    start, end = max(first - EXCERPT, 0), min(max(last, first) + EXCERPT, len(text))
    parts, at = ["…" if start else ""], start
    for low, high in marked:
        if at <= low and high <= end:
            parts += [_text(text[at:low]), f"<mark>{_text(text[low:high])}</mark>"]
            at = high
    return "".join([*parts, _text(text[at:end]), "…" if end < len(text) else ""])


def _source(place: Passage | Evidence, corpus: str = "") -> str:
    where = str(place.locate() or "")
    parts = (place.title, place.document_id, where, f"characters {place.start:,}–{place.end:,}", corpus)
    return f"<small>{' · '.join(_text(part) for part in parts if part)}</small>"


def _text(text: str) -> str:
    """Text of a corpus as it can be put into a page: no markup, nothing that turns the rest of the line around."""
    return f"<bdi>{escape(text.encode('utf-8', 'replace').decode())}</bdi>" if text else ""
