"""Open question answering: does a system find a passage with the answer, and does it give the answer?

Knows: where each set can be had, KAMEL's files (Kalo and Fichtel 2022), the corpus of SQuAD's paragraphs, how
questions become a task over a corpus, and the scores reported. Does not know: how a system searches or answers, or when
an answer is right (`judging`).
"""

import csv
import heapq
import shutil
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from quoth.cli.output import LeftOut, counting, markdown
from quoth.corpus.bm25 import check_not_empty
from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents, read_text
from quoth.corpus.view import count_passages
from quoth.datasets.judging import answer_rank, answerable, exact_match, first, holders
from quoth.datasets.questions import QAExample, read_questions, read_squad
from quoth.errors import InputError
from quoth.fields import Checked, Count, Number
from quoth.records import Document, Passage
from quoth.text.passages import MEASURED, WHOLE, get_splitter
from quoth_eval.harness import ProgressCallback
from quoth_eval.report import Report
from quoth_eval.spec import OPEN, Given, Options, Prepared, TaskSpec
from quoth_eval.statistics import abstention
from quoth_eval.systems import BM25, Answerer, asking, asks, without_share
from quoth_eval.task import Answer, Example, Scores, System, Task, draw, draw_as_released, first_right, percent, recalls
from quoth_eval.tasks.closed_files import find_file, parsed

_DPR = "https://github.com/facebookresearch/DPR (question, tab, list of answers)"
QUESTIONS = {
    "nq-dev": ("open_qa/nq.dev.tsv", f"NQ-open's development side, data.retriever.qas.nq-dev of {_DPR}"),
    "nq": ("open_qa/nq.test.tsv", f"NQ-open's test side, data.retriever.qas.nq-test of {_DPR}"),
    "triviaqa": ("open_qa/trivia.test.tsv", f"TriviaQA's test side, data.retriever.qas.trivia-test of {_DPR}"),
    "webquestions": ("open_qa/wq.test.tsv", "WebQuestions' test side as question, tab, list of answers"),
    "curatedtrec": ("open_qa/curated.test.tsv", "CuratedTREC's test side as id, kind, question, pattern"),
    "kamel": ("kamel/dev.jsonl", "KAMEL's facts of 234 relations, as questions"),
}
"""Each set's file, and what it is, by the set's name."""
KAMEL = (
    "KAMEL is at https://github.com/JanKalo/KAMEL; copy question-templates.csv and join the relations' dev.jsonl to "
    "one file"
)
KS = (1, 5, 20)
DEPTHS = "Recall among the best passages, this many of them."
READ = 5
"""How many passages ORQA's and REALM's readers read."""
QUESTIONS_AT_A_TIME = 64
"""The evidence of this many questions is found in one pass over the corpus, and kept in memory."""
SCANNING = "scanning the corpus"
WITHOUT_EVIDENCE, SILENT = "probability_without_evidence", "no_answer_without_evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSettings(Checked):
    """What is measured."""

    ks: Annotated[tuple[Count, ...], MinLen(1), DEPTHS] = KS
    oracle: Annotated[Count, "Passages that a reader reads: its oracle is right if one contains an answer."] = READ
    coverage: Annotated[bool, "Read every passage once to count the answerable questions."] = True
    abstain: Annotated[
        bool,
        "Ask again without the passages that contain an answer or are of the gold document: does the system know when "
        "it is right?",
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings(OpenSettings):
    """How files are read."""

    patterns: Annotated[bool, "Answers in JSON are regular expressions, as in CuratedTREC."] = False
    skip_bad: Annotated[bool, "Leave out broken records and report their number."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadSettings(OpenSettings):
    """What the corpus has besides SQuAD's paragraphs."""

    coverage: bool = False
    distractors: Annotated[tuple[str, ...], "Files of documents whose passages are searched as well."] = ()
    num_distractors: Annotated[Number | None, "Add this many of their passages, drawn at random."] = None
    keep: Annotated[str | None, "Keep the corpus in this new folder, for the task openqa."] = None


def corpus_group(is_answerable: bool | None) -> dict[str, str]:
    """Whether some passage of the corpus contains an answer; none if that was not measured."""
    return {} if is_answerable is None else {"corpus": "answerable" if is_answerable else "not answerable"}


def _judge(ks: Sequence[int], oracle: int, gold: bool, example: Example[QAExample], answer: Answer) -> Scores:
    """Is an answer, or the gold document, among the best k passages; is the first answer right, or one of five?"""
    question, scores = example.source, dict[str, float]()
    place = answer_rank((passage.text for passage in answer.passages), question)
    if answer.predictions is not None:
        scores |= first_right([exact_match(prediction.text, question) for prediction in answer.predictions])
    scores |= recalls("answer", place, ks)
    if gold:
        its = first(passage.document_id == question.gold for passage in answer.passages)
        scores |= recalls("paragraph", its, ks)
    return {**scores, **recalls("oracle", place, [oracle]), **answer.scores}


class Evidence:
    """The rows of all passages that contain an answer to a question (DPR's rule), or are of its gold document.

    Found for `QUESTIONS_AT_A_TIME` questions at once, in their order, and forgotten with the next ones.
    """

    def __init__(
        self, questions: Sequence[QAExample], corpora: Sequence[Corpus], progress: ProgressCallback | None = None
    ) -> None:
        """Raises InputError for several corpora, whose rows cannot be told apart."""
        if len(corpora) > 1:
            raise InputError(f"{len(corpora)} corpora; evidence can be removed from one corpus only")
        self._corpora, self._progress = corpora, progress
        self._questions, self._known = list(dict.fromkeys(questions)), dict[QAExample, set[int]]()

    def rows(self, question: QAExample) -> set[int]:
        """The rows for one of the questions."""
        if question not in self._known:
            at = self._questions.index(question)
            some, rows = self._questions[at : at + QUESTIONS_AT_A_TIME], array("q")
            self._known = {each: set() for each in some}

            def texts() -> Iterator[str]:
                for passage in read_passages(self._corpora, self._progress):
                    rows.append(passage.row)
                    for each in (each for each in some if each.gold == passage.document_id):
                        self._known[each].add(passage.row)
                    yield passage.text

            for number, places in holders(some, texts()).items():
                self._known[some[number]].update(rows[place] for place in places)
        return self._known[question]


def doubted(
    system: System[QAExample], model: Answerer, evidence: Evidence, options: Mapping[str, Any]
) -> System[QAExample]:
    """The system; its answers also report how sure it is with the evidence removed from the corpus, and whether it
    gives no answer then."""

    def without(example: Example[QAExample]) -> Scores:
        guesses = model.ask(example.text, top_k=1, exclude=evidence.rows(example.source), **options)
        sure = guesses[0].probability if guesses else 0.0
        return {WITHOUT_EVIDENCE: sure, SILENT: float(not guesses or guesses[0].abstained)}

    return lambda examples: [
        replace(answer, scores=without(example)) for example, answer in zip(examples, system(examples), strict=True)
    ]


def read_passages(corpora: Sequence[Corpus], progress: ProgressCallback | None) -> Iterator[Passage]:
    """Every passage, in order; `progress` gets the number read so far."""
    total = count_passages(corpora)
    passages = (passage for corpus in corpora for passage in corpus.passages())
    for done, passage in enumerate(passages, start=1):
        if progress is not None and done % 1000 == 0:
            progress(SCANNING, done, total)
        yield passage


def abstention_table(report: Report) -> str:
    """How well each answering system knows when it is right, by the status of its first answers."""
    parts = list[str]()
    for result in report.systems:
        right = result.values("exact_match")
        if right is None:
            continue
        best = [row.predictions[0] if row.predictions else None for row in result.rows]
        chances = [each.probability if each else 0.0 for each in best]
        answered = [each is not None and not each.abstained for each in best]
        told = abstention(chances, [*map(bool, right)], answered)
        parts.append(markdown([result.name, *told], [[f"{len(right):,} questions", *map(percent, told.values())]]))
        if silent := result.values(SILENT):
            share = percent(sum(silent) / len(silent))
            parts.append(f"With the evidence removed, {share} % of the questions get no answer.\n")
    return "\n".join(parts)


def questions_over(name: str, given: Given, settings: OpenSettings, questions: Sequence[QAExample]) -> Prepared:
    """The task of questions over the corpora. Raises InputError, EmptyCorpusError."""
    corpora = given.searched()
    if not questions:
        raise InputError("no questions to ask; name a file that contains some")
    check_not_empty(corpora)
    covered = None
    if settings.coverage:
        covered = answerable(questions, (passage.text for passage in read_passages(corpora, given.progress)))
    groups = [corpus_group(None if covered is None else number in covered) for number in range(len(questions))]
    counted = {"num_answerable": None if covered is None else len(covered), "read": settings.oracle}
    task = Task(
        name=name,
        examples=[
            Example(each.id, each.text, each.answers, each, own, pattern=each.pattern)
            for each, own in zip(questions, groups, strict=True)
        ],
        judge=partial(_judge, settings.ks, settings.oracle, all(question.gold for question in questions)),
        settings=given.settings(**counted),
        at_a_time=16,
    )
    depth = max(*settings.ks, settings.oracle)
    evidence = Evidence(questions, corpora, given.progress) if settings.abstain else None

    def asked(name: str, options: Options) -> System[QAExample]:
        model = given.open(name, corpora, options)
        system: System[QAExample] = asking(model, name, depth, options)
        if evidence is None or not isinstance(model, Answerer):
            return system
        return doubted(system, model, evidence, without_share(options))

    return Prepared(
        task=task,
        asks=asked,
        baselines={"bm25": lambda options: asks(BM25(corpora, options), depth, {})},
        more=lambda report: "\n" + abstention_table(report) if settings.abstain else "",
        hides=settings.abstain,
    )


def source_of(name: str) -> str:
    """Where the file of a set can be had."""
    return KAMEL if name == "kamel" else f"it is {QUESTIONS[name][1]}"


def read_kamel(data: str | Path) -> list[QAExample]:
    """The questions of DIR/kamel: dev.jsonl (sub_label, obj_label, relation), asked by question-templates.csv.

    Raises InputError on a missing file, a broken line, or a relation without a template.
    """
    path, templates = find_file(data, "kamel/question-templates.csv", KAMEL), dict[str, str]()
    for number, row in enumerate(csv.reader(StringIO(read_text(path), newline="")), start=1):
        if len(row) != 2 or "[S]" not in row[1]:
            raise InputError(f"{path}:{number}: not a relation and a question with [S]; fix the line")
        templates[row[0]] = row[1].strip()
    path = find_file(data, QUESTIONS["kamel"][0], KAMEL)
    facts = parsed(path, partial(_fact, templates), "a fact of KAMEL")
    questions = [QAExample(f"{named}-{line}", text, answers) for line, (named, text, answers) in enumerate(facts, 1)]
    if not questions:
        raise InputError(f"{path}: no fact; name a folder with the whole file")
    return questions


def _fact(templates: Mapping[str, str], record: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    relation, subject, answers = record["relation"], record["sub_label"], tuple(map(str, record["obj_label"]))
    if relation not in templates:
        raise ValueError(f"relation {relation!r} has no template in question-templates.csv")
    return relation, templates[relation].replace("[S]", subject), answers


def squad_corpus(given: Given, settings: SquadSettings, paragraphs: Sequence[Document]) -> Corpus:
    """A new corpus of the paragraphs and the distractors. Raises InputError if its folder is not empty, or if there are
    too few distractors."""
    path = given.scratch / "squad.quoth" if settings.keep is None else Path(settings.keep)
    corpus = Corpus.create(path, splitter=WHOLE)
    titles = {paragraph.title for paragraph in paragraphs}
    others = draw_passages(settings.distractors, titles, settings.num_distractors, given.seed)
    try:
        with counting("indexing", "paragraphs") as indexed:
            corpus.add(chain(paragraphs, others), indexed)
    except BaseException:
        shutil.rmtree(path)
        raise
    return corpus


def draw_passages(paths: Sequence[str], titles: set[str], count: int | None, seed: int) -> Iterator[Document]:
    """Passages of the documents, split as in a corpus, each as a document `distractor:ID:NUMBER`.

    Documents with one of `titles` (ignoring case) are left out. Draws `count` passages (None: all) at random by their
    ids: the same for the same seed, whatever the order of the files; a smaller count draws a subset of a larger one's.
    Raises InputError if there are fewer.
    """
    passages = _passages(paths, {title.casefold() for title in titles}) if paths else iter(())
    if count is None:
        yield from passages
        return
    drawn = heapq.nsmallest(count, passages, key=lambda passage: blake2b(f"{seed} {passage.id}".encode()).digest())
    if len(drawn) < count:
        raise InputError(f"{count:,} distractors requested, but there are {len(drawn):,} passages; give more documents")
    yield from drawn


def _passages(paths: Sequence[str], left_out: set[str]) -> Iterator[Document]:
    split = get_splitter(MEASURED)
    for document in read_documents(*paths):
        if document.title.casefold() not in left_out:
            for number, (start, end) in enumerate(split(document.text)):
                yield Document(f"distractor:{document.id}:{number}", document.title, document.text[start:end])


def _of_data(name: str, given: Given, settings: OpenSettings) -> Prepared:
    file, source = QUESTIONS[name][0], source_of(name)
    data = given.folder(name, file, source)
    read = read_kamel(data) if name == "kamel" else read_questions(find_file(data, file, source))
    return questions_over(name, given, settings, draw_as_released(read, given.limit, given.seed))


def _of_files(given: Given, settings: FileSettings) -> Prepared:
    left_out = LeftOut()
    read = read_questions(*given.files, patterns=settings.patterns, skip_bad=settings.skip_bad, on_bad=left_out)
    left_out.report()
    return questions_over("openqa", given, settings, draw(read, given.limit, given.seed))


def _of_squad(given: Given, settings: SquadSettings) -> Prepared:
    if len(given.files) != 1:
        raise InputError(f"squad is read from one file of SQuAD 1.1 (JSON), not {len(given.files)}")
    read = read_squad(given.files[0])
    own = replace(given, corpora=(squad_corpus(given, settings, read.paragraphs),))
    return questions_over("squad", own, settings, draw(read.questions, given.limit, given.seed))


_COMMON: dict[str, Any] = {
    "form": OPEN,
    "systems": ("quoth-mini", "bm25"),
    "baselines": ("bm25",),
    "options": ("template",),
}
SPECS = [
    *(
        TaskSpec(name=name, settings=OpenSettings, make=partial(_of_data, name), limit=3000, **_COMMON)
        for name in QUESTIONS
    ),
    TaskSpec(name="openqa", settings=FileSettings, make=_of_files, takes_files=True, **_COMMON),
    TaskSpec(name="squad", settings=SquadSettings, make=_of_squad, files="squad/*.json*", takes_files=True, **_COMMON),
]
