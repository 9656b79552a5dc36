"""Systems as a task asks them: a model that fills blanks or answers questions, a search, a baseline's phrases.

Knows: what each way of asking returns. Does not know: tasks, or how a model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from quoth.corpus.bm25 import bm25
from quoth.records import Hit, Passage, Prediction
from quoth.text.tokenizer import MASK
from quoth_eval.metrics import HITS
from quoth_eval.task import Answer, Example, Source, System

TEMPLATE = f"Q: {{question}}\nA: {MASK}."
"""How a language model is asked: GPT-3's form (Brown et al. 2020)."""

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


@runtime_checkable
class Completer(Protocol):
    """A language model that completes texts with a blank, and may be shown passages of corpora."""

    @property
    def corpora(self) -> Sequence[Corpus]: ...

    def complete(self, texts: Sequence[str], options: Mapping[str, Any]) -> list[Prediction]: ...


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


def completes(model: Completer, k: int, options: Mapping[str, Any]) -> System[Source]:
    """A language model's answers. With the option `passages`, that many of BM25's best are before the question, the
    best last, so that a text that is too long loses the worst; `k` or more are found."""
    template, read = options.get("template", TEMPLATE), int(options.get("passages", 0))

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        asked = [example.text.strip() for example in examples]
        hits = [bm25(model.corpora, question, max(k, read)) if read else [] for question in asked]
        found = [[hit.passage for hit in each] for each in hits]
        texts = [
            _shown(passages[:read]) + template.replace("{question}", question)
            for passages, question in zip(found, asked, strict=True)
        ]
        said = model.complete(texts, options)
        return [Answer([each], passages) for each, passages in zip(said, found, strict=True)]

    return answer


def _shown(passages: Sequence[Passage]) -> str:
    """Passages, the best last, a line each; nothing in them is a blank."""
    lines = (f"{each.title}. {each.text}" if each.title else each.text for each in reversed(passages))
    return "".join(f"{' '.join(line.replace(MASK, ' ').split())}\n\n" for line in lines)


def embed_if_wanted(model: Filler, options: Mapping[str, Any]) -> None:
    """If the options search every token, store the vectors in full precision and without codes."""
    if options.get("passages", 3) is None or options.get("hybrid"):
        model.embed("fp32", recall=1.0)
