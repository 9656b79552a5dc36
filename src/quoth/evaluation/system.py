"""Systems as a task asks them: a model that fills blanks or answers questions, a search, a baseline's phrases.

Knows: what each way of asking returns. Does not know: tasks, or how a model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from quoth.evaluation.metrics import HITS
from quoth.evaluation.task import Answer, Example, Source, System
from quoth.records import Hit, Prediction
from quoth.retrieval.sparse import bm25

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus


class Filler(Protocol):
    """What the evaluation needs of a model: `fill`, with the rows to exclude for each text, and `embed`."""

    @property
    def fill(self) -> Callable[..., Any]: ...

    def embed(self, precision: str, recall: float) -> object: ...


class Searcher(Protocol):
    """A system that returns its k best passages for a question."""

    def search(self, query: str, k: int) -> list[Hit]: ...


@runtime_checkable
class Answerer(Searcher, Protocol):
    """A system that also answers: a reader, NPM, REALM."""

    def ask(self, question: str, *, top_k: int, **options: Any) -> list[Prediction]: ...


@dataclass(frozen=True, slots=True)
class BM25:
    """The baseline of search. It finds passages but gives no answers."""

    corpora: tuple[Corpus, ...]

    def search(self, query: str, k: int) -> list[Hit]:
        return bm25(self.corpora, query, k)


def fills(model: Filler, options: Mapping[str, Any]) -> System[Source]:
    """A model's best phrases for each blank, without the example's hidden passages."""

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        hidden = [example.hidden for example in examples]
        filled = model.fill([example.text for example in examples], exclude=hidden, top_k=HITS, **options)
        return [Answer(predictions) for predictions in filled]

    return answer


def phrases(propose: Callable[[Sequence[Source]], Sequence[Sequence[str]]]) -> System[Source]:
    """A baseline's phrases, which have no place and no probability."""

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        given = propose([example.source for example in examples])
        return [Answer([Prediction(text, 0.0, 0.0, ()) for text in texts]) for texts in given]

    return answer


def asks(system: Searcher, k: int, options: Mapping[str, Any]) -> System[Source]:
    """A system's k best passages for each question and, if it answers, its best answers."""

    def answer(example: Example[Source]) -> Answer:
        passages = [hit.passage for hit in system.search(example.text, k)]
        if not isinstance(system, Answerer):
            return Answer(None, passages)
        return Answer(system.ask(example.text, top_k=HITS, **options), passages)

    return lambda examples: [answer(example) for example in examples]


def embed_if_wanted(model: Filler, options: Mapping[str, Any]) -> None:
    """If the options search every token, store the vectors in full precision and without codes."""
    if options.get("passages", 3) is None or options.get("hybrid"):
        model.embed("fp32", recall=1.0)
