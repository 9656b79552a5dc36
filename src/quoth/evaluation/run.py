"""Runs the cloze evaluation from files to a report: `quoth eval cloze`.

Knows: how to ask systems blanks over a corpus and score the answers. Does not know: how a model answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_listing
from quoth.errors import InputError
from quoth.evaluation.baselines import Answers, System, bm25_phrases, frequent_phrases
from quoth.evaluation.cloze import KINDS, Blank, draw_blanks
from quoth.evaluation.metrics import ALL, HITS, LENGTHS, GroupScore, exact_and_hits, group_scores, markdown, rank
from quoth.records import Document

SYSTEMS = ("model", "untrained", "frequent", "bm25")
UNTRAINED = "quoth-mini-base"
BLANKS_AT_A_TIME = 32
_TITLES = {"frequent": "most frequent phrase", "bm25": "most frequent phrase of BM25's passage"}


class Filler(Protocol):
    """What the evaluation needs of a model: NPM's `fill`, with the rows to exclude for each text, and `embed`."""

    @property
    def fill(self) -> Callable[..., Any]: ...

    def embed(self, precision: str, recall: float) -> object: ...


Load = Callable[[str, Corpus], Filler]
ProgressCallback = Callable[[str, int, int], None]
"""Takes a system's name, the number of blanks it has answered, and their total."""


@dataclass(frozen=True, slots=True)
class SystemScores:
    """One system's answers to the report's blanks, in order, and their scores. `name` is that of a model or
    baseline."""

    system: str
    name: str
    scores: tuple[GroupScore, ...]
    answers: tuple[Answers, ...]

    def score(self, kind: str = ALL, length: str = ALL) -> GroupScore | None:
        """The score of one group; None if it has no blanks."""
        return next((score for score in self.scores if (score.kind, score.length) == (kind, length)), None)


@dataclass(frozen=True, slots=True)
class ClozeReport:
    """The blanks, the settings, and each system's scores."""

    model: str
    num_pages: int
    num_passages: int
    seed: int
    options: Mapping[str, Any]
    blanks: tuple[Blank, ...]
    systems: tuple[SystemScores, ...]

    def to_dict(self) -> dict[str, Any]:
        """The settings and the scores, without the individual blanks and answers."""
        return {
            "model": self.model,
            "num_pages": self.num_pages,
            "num_passages": self.num_passages,
            "num_blanks": len(self.blanks),
            "seed": self.seed,
            "options": dict(self.options),
            "systems": [
                {"system": system.system, "name": system.name, "scores": [asdict(score) for score in system.scores]}
                for system in self.systems
            ],
        }


def run_cloze(
    pages: Sequence[str | Path],
    heldout: Path | None = None,
    model: str = "quoth-mini",
    *,
    base: str | Path | None = None,
    device: str | None = None,
    count: int = 1000,
    seed: int = 0,
    limit: int | None = None,
    systems: Sequence[str] = SYSTEMS,
    progress: ProgressCallback | None = None,
    load: Load | None = None,
    **options: Any,
) -> ClozeReport:
    """Hide `count` phrases of each kind in the documents of `pages`, and count the exact matches.

    If `heldout` is given, only the documents that it names (JSONL of ids and titles) are used. They are also the corpus
    that is searched, without each blank's own passage. `limit` asks only the first blanks of each kind. `options` are
    those of `FillOptions`, for the model's `fill`; if they search every token, the pages are embedded beforehand, in
    full precision. `load` makes a model from a name and a corpus. Raises InputError, ModelNotFoundError.
    """
    _check(systems, count, seed, limit)
    documents = read_pages(pages, heldout)
    with tempfile.TemporaryDirectory(prefix="quoth-cloze-") as folder:
        corpus = Corpus.create(Path(folder) / "pages.quoth")
        corpus.add(documents)
        number = count if limit is None else min(count, limit)
        drawn = list(corpus.passages())
        blanks = [blank for kind in KINDS for blank in draw_blanks(drawn, kind, number, seed)]
        open_model = load or _loader(base, device)
        scores = []
        for system in systems:
            answer = _system(system, model, corpus, open_model, options)
            scores.append(score_system(system, _name(system, model), answer, blanks, progress))
    return ClozeReport(model, len(documents), len(drawn), seed, options, tuple(blanks), tuple(scores))


def read_pages(pages: Sequence[str | Path], heldout: Path | None) -> list[Document]:
    """The documents of the files; with `heldout`, only those whose id or title (ignoring case) is in that list.

    Raises InputError on an invalid list, and if no document is left.
    """
    read = read_documents(*pages)
    if heldout is None:
        documents = list(read)
    else:
        ids, titles = read_listing(heldout)
        documents = [document for document in read if document.id in ids or document.title.casefold() in titles]
    if not documents:
        named = "" if heldout is None else f" that {heldout} names"
        raise InputError(f"no document{named} in {', '.join(map(str, pages))}; give the file that contains them")
    return documents


def score_system(
    system: str, name: str, answer: System, blanks: Sequence[Blank], progress: ProgressCallback | None = None
) -> SystemScores:
    """Ask a system all blanks, and score its answers."""
    answers = ask_system(name, answer, blanks, progress)
    ranks = [rank(blank.answer, given) for blank, given in zip(blanks, answers, strict=True)]
    scores = group_scores([blank.kind for blank in blanks], [blank.num_words for blank in blanks], ranks)
    return SystemScores(system, name, scores, tuple(answers))


def ask_system(
    name: str, answer: System, blanks: Sequence[Blank], progress: ProgressCallback | None = None
) -> list[Answers]:
    """A system's answers to all blanks, in their order. Blanks of neighbouring passages are asked together."""
    order = sorted(range(len(blanks)), key=lambda i: blanks[i].row)
    answers: list[Answers] = [()] * len(blanks)
    for first in range(0, len(order), BLANKS_AT_A_TIME):
        part = order[first : first + BLANKS_AT_A_TIME]
        for i, given in zip(part, answer([blanks[i] for i in part]), strict=True):
            answers[i] = given
        if progress is not None:
            progress(name, first + len(part), len(blanks))
    return answers


def model_answers(model: Filler, options: Mapping[str, Any]) -> System:
    """A model's best phrases, from a search without the blank's own passage."""

    def answer(blanks: Sequence[Blank]) -> list[Answers]:
        hidden = [{blank.row} for blank in blanks]
        filled = model.fill([blank.text for blank in blanks], exclude=hidden, top_k=HITS, **options)
        return [tuple(prediction.text for prediction in predictions) for predictions in filled]

    return answer


def embed_if_wanted(model: Filler, options: Mapping[str, Any]) -> None:
    """If the options search every token, store the vectors in full precision and without codes."""
    if options.get("passages", 3) is None or options.get("hybrid"):
        model.embed("fp32", recall=1.0)


def table(report: ClozeReport) -> str:
    """The scores as a Markdown table, one system per line: exact match and, in parentheses, hit@5; percentages."""
    groups = [(ALL, ALL), *((kind, ALL) for kind in KINDS), *((ALL, length) for length in LENGTHS if length != ALL)]
    scores = report.systems[0].scores if report.systems else ()
    counts = {(score.kind, score.length): score.num_blanks for score in scores}
    shown = [group for group in groups if group in counts]
    heads = [f"{_head(*group)} ({counts[group]:,})" for group in shown]
    by_system = [(system.name, [system.score(*group) for group in shown]) for system in report.systems]
    rows = [
        [name, *(exact_and_hits(cell.exact_match, cell.hit_at_5) for cell in cells if cell is not None)]
        for name, cells in by_system
    ]
    return markdown(["exact match % (hit@5 %)", *heads], rows)


def _head(kind: str, length: str) -> str:
    return kind if length == ALL else f"{length} word{'' if length == '1' else 's'}"


def _check(systems: Sequence[str], count: int, seed: int, limit: int | None) -> None:
    unknown = [system for system in systems if system not in SYSTEMS]
    if unknown or not systems:
        raise InputError(f"systems {unknown or 'none'}; choose from {', '.join(SYSTEMS)}")
    for name, value in (("count", count), ("limit", limit)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be 1 or more blanks of each kind")


def _name(system: str, model: str) -> str:
    return {"model": model, "untrained": UNTRAINED}.get(system) or _TITLES[system]


def _system(system: str, model: str, corpus: Corpus, load: Load, options: Mapping[str, Any]) -> System:
    if system == "frequent":
        return frequent_phrases(corpus)
    if system == "bm25":
        return bm25_phrases(corpus)
    filler = load(_name(system, model), corpus)
    embed_if_wanted(filler, options)
    return model_answers(filler, options)


def _loader(base: str | Path | None, device: str | None) -> Load:
    def load(name: str, corpus: Corpus) -> Filler:
        from quoth.models.npm import NPM

        return NPM.from_pretrained(name, corpus=corpus, base=base, device=device)

    return load
