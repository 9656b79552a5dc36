"""Who is asked: Quoth's models, other libraries' (lm:NAME, mlm:NAME, dense:NAME), and what each can do.

Knows: how a system is spelled (`quoth-mini,combine=sum`), which options it takes, and how a model is asked. Does not
know: tasks.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from hashlib import blake2b, file_digest, sha256
from math import ceil
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
from annotated_types import Gt, Le, MinLen

from quoth.answers.options import FillOptions
from quoth.cli.models import load_predictor, load_searcher, quiet_libraries, system
from quoth.cli.options import Setup
from quoth.cli.output import counting
from quoth.corpus.bm25 import best_places, bm25, check_not_empty, hits_of, indexed_text
from quoth.corpus.corpus import Corpus
from quoth.corpus.view import digest_of
from quoth.errors import InputError
from quoth.fields import Count, Has, NotNegative, Number, checked, fields_of
from quoth.hub import is_shipped, shipped_folder, shipped_settings
from quoth.index.options import Mode
from quoth.records import Hit, Passage, Prediction
from quoth.registry import SYSTEMS
from quoth.registry import System as Row
from quoth.text.terms import analyse
from quoth.text.tokenizer import MASK, MASKS
from quoth_eval.spec import (
    BLANKS,
    CLOSED,
    ENTITIES,
    OPEN,
    Given,
    Options,
    Prepared,
    TaskSpec,
    read_options,
    unknown_option,
)
from quoth_eval.task import HITS, Answer, Example, Source, System

TEMPLATE = f"Q: {{question}}\nA: {MASK}."
"""How a language model is asked: GPT-3's form (Brown et al. 2020)."""
SHARE = "corpus"
"""The option of a system that searches a share of the documents."""
LIBRARIES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    CLOSED: {"lm": ("calibration", "sentinel"), "mlm": ("calibration", "masks")},
    BLANKS: {"lm": ("passages", "max_new_tokens", "sentinel"), "mlm": ("passages", "masks")},
    OPEN: {
        "lm": ("passages", "template", "max_new_tokens", "sentinel"),
        "mlm": ("passages", "template", "masks"),
        "dense": ("mu", "lexical"),
    },
    ENTITIES: {"dense": ("mu", "lexical")},
}
"""By form, the kinds of other libraries' models that can do the task, and the options that each takes there."""
TYPES: Mapping[str, Any] = {
    SHARE: Annotated[float, Gt(0), Le(1)],
    "calibration": Literal["none", "pmi", "batch"],
    "labelled": Count,
    "template": Annotated[str, Has("{question}"), Has(MASK)],
    "oracle": bool,
    "mode": Mode,
    "told": bool,
    "keys": Literal["all", "random", "idf"],
    "sentinel": bool,
    "max_new_tokens": Count,
    "masks": Count,
    "mu": NotNegative,
    "lexical": Annotated[str, MinLen(1)],
}
"""The types of options beyond those of `fill` and `ask`, which their own records check."""
BASELINES = ("bm25", "frequent", "majority")
"""Systems that are no model; each task names those that it has."""
DIGITS = 8
"""Of a digest that is shown."""
FAMILIES = {
    "lm": "quoth_eval.language_models:LanguageModel.from_pretrained",
    "mlm": "quoth.npm.twin:MaskedModel.from_pretrained",
    "dense": "quoth_eval.dense:DenseSearch",
}
"""What loads other libraries' models, by their prefix."""


def family_of(name: str) -> str:
    """The prefix of a system's name that names another library's model, or "". Raises InputError if it is unknown, or
    nothing follows it."""
    prefix, colon, model = name.partition(":")
    if not colon or len(prefix) == 1 or not prefix.isalnum():  # a Windows path is no prefix
        return ""
    if prefix not in FAMILIES or not model:
        known = ", ".join(f"{each}:ID_OR_FOLDER" for each in FAMILIES)
        raise InputError(f"system {name!r}: no such kind of model; use {known}, or the name of a Quoth model")
    return prefix


def fingerprint(model: str) -> str:
    """The digest of a model's weights (of its settings if it has none), and those of shipped models that its settings
    name; "not recorded" if it is a hub's."""
    settings: Mapping[str, Any]
    digest = sha256()
    if (shipped := shipped_settings(model)) is not None:
        settings = asdict(shipped)
        digest.update(json.dumps(settings, default=str, sort_keys=True).encode())
    else:
        own = model.partition(":")[2] if family_of(model) else model
        folder = shipped_folder(model) if is_shipped(model) else Path(own)
        told = folder / "quoth.json"
        settings = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
        parts = ("*.safetensors", *(f"{part}/*.safetensors" for part in ("passages", "queries", "reader")))  # a REALM's
        weights = [file for part in parts for file in sorted(folder.glob(part))] or [told]
        if not any(file.exists() for file in weights):
            return "not recorded"
        for file in weights:
            with file.open("rb") as stream:
                file_digest(stream, lambda: digest)
    named = [each for each in settings.values() if isinstance(each, str) and is_shipped(each) and each != model]
    return ", with ".join([digest.hexdigest()[:DIGITS], *(f"{each} {fingerprint(each)}" for each in named)])


@dataclass(frozen=True, slots=True)
class Asked:
    """A system as spelled, its name, and its options."""

    spelled: str
    name: str
    options: Options


def inputs_of(asked: Sequence[Asked], corpora: Sequence[Corpus]) -> dict[str, str]:
    """The digests of what answers come from: of the weights of each system, and of the corpora as they are."""
    models = {each.spelled: fingerprint(each.name) for each in asked}
    return models | {f"corpus {each.path.name}": digest_of(each)[:DIGITS] for each in corpora}


def parse_system(spelled: str, spec: TaskSpec, common: Options = {}) -> Asked:  # noqa: B006
    """`quoth-mini,combine=sum` as a name and options; of the `common` ones, it gets those that it takes.

    Raises InputError for a system that cannot do the task, and for an option that it does not take.
    """
    name, *parts = spelled.split(",")
    own = read_options(parts, f"--system {spelled}")
    if name in spec.baselines:
        return Asked(spelled, name, own)
    (taken, record), family = _options_of(spelled, name, spec), family_of(name)
    if spec.form in (OPEN, CLOSED, BLANKS):
        taken = (*taken, SHARE)
    for key in own:
        if key not in taken:
            raise unknown_option(f"--system {spelled}", key, taken)
    of_all = {key: value for key, value in common.items() if key in taken}
    if family and of_all.get("passages") in (None, "all"):  # which is for an index; a language model is shown none
        of_all.pop("passages", None)
    options, types = {**of_all, **own}, {**TYPES, "passages": Number} if family else TYPES
    for key in options.keys() & types.keys():
        checked(f"--system {spelled}: {key}", options[key], types[key])
    if record is not None:
        record(**{key: value for key, value in options.items() if key in fields_of(record)})
    return Asked(spelled, name, options)


def _options_of(spelled: str, name: str, spec: TaskSpec) -> tuple[tuple[str, ...], Any]:
    """The options that a system takes for a task, and the record that checks them, if there is one. Raises InputError
    if it cannot do the task."""
    family = family_of(name)
    of_quoth = not family and name not in BASELINES
    if spec.form not in LIBRARIES and of_quoth:  # such as taggers
        return (), None
    row = system(name) if of_quoth else None
    taken = options_of(row, spec.form) if row else LIBRARIES.get(spec.form, {}).get(family)
    if taken is None:
        raise InputError(f"{spelled} cannot do {spec.name}; leave it out, or ask it other tasks")
    record = row.records(asks=spec.form == OPEN) if row and spec.form != ENTITIES else None
    more = spec.options if row and row.records() is FillOptions else ()
    return tuple(dict.fromkeys((*taken, *more))), record


def options_of(row: Row, form: str) -> tuple[str, ...] | None:
    """The options that Quoth's models of a kind take in a form of task; None if they cannot do it.

    What answers takes those of its `fill`, or of its `ask`; labels are chosen by what fills by all options of NPM's.
    """
    if form == ENTITIES:
        recognise = [kind for each in SYSTEMS.values() if each.keys == "entities" for kind in (each.kind, *each.over)]
        return ("mode", "told", "keys") if row.kind in recognise else ("mode",) if row.keys else None
    if form == CLOSED and row.records() is not FillOptions:
        return None
    if not row.answers:
        return () if form == OPEN and row.searches else None
    return tuple(name for name in fields_of(row.records(asks=form == OPEN)) if name != "top_k")


class Opener:
    """Opens models, each once, over corpora or shares of them."""

    def __init__(self, setup: Setup, scratch: Path, seed: int) -> None:
        self.setup, self.scratch, self._seed = setup, scratch, seed
        self._opened: dict[tuple[object, ...], Any] = {}

    def __call__(self, name: str, corpora: Sequence[Corpus], options: Options) -> Any:
        """The model. What its options or its kind compare by vectors is embedded in corpora that were made for the
        task. Raises the errors of loading it."""
        share = options.get(SHARE, 1)
        searches = options.get("passages", 3) in (None, "all") or bool(options.get("passage_share"))
        key = (name, *(corpus.path for corpus in corpora), share, searches)
        if key not in self._opened:
            samples = [sample_of(corpus, share, self._place(corpus, share), self._seed) for corpus in corpora]
            self._opened[key] = self._open(name, samples, searches)
        if family_of(name) == "dense":
            lexical = options.get("lexical", "")
            return self._opened[key].adding(options.get("mu", 1.0 if lexical else 0.0), lexical)
        return self._opened[key]

    def _place(self, corpus: Corpus, share: float) -> Path:
        """Where a corpus's sample is made, with its name: two editions may have the same in different folders."""
        digest = blake2b(str(corpus.path.absolute()).encode(), digest_size=8).hexdigest()
        return self.scratch / f"share-{share}" / digest / corpus.path.name

    def _open(self, name: str, corpora: Sequence[Corpus], searches: bool) -> Any:
        device, dtype = self.setup.device, self.setup.dtype
        if family := family_of(name):
            quiet_libraries()
            load = resolve_name(FAMILIES[family])
            with counting(f"loading {name}", "passages") as encoded:
                more = {"progress": encoded} if family == "dense" else {}
                return load(name.partition(":")[2], corpora, device, dtype, **more)
        row = system(name)
        load_it = load_predictor if row.answers else load_searcher
        model: Any = load_it(name, corpora, self.setup)
        made = any(self.scratch in corpus.path.parents for corpus in corpora)
        if made and row.keys and (searches or row.needs_vectors):
            with counting(f"embedding for {name}", "passages") as embedded:
                model.embed("fp32", recall=1.0, progress=embedded)
        return model


def check_shares(asked: Iterable[Asked], prepared: Prepared) -> None:
    """Raises InputError if a system searches a share of the documents for a task that hides passages, which are known
    by their rows in the whole corpus."""
    for each in asked:
        if each.options.get(SHARE, 1) != 1 and (prepared.hides or any(one.hidden for one in prepared.task.examples)):
            told = f"{prepared.task.name} hides passages of the whole corpus"
            raise InputError(f"--system {each.spelled}: {told}; leave out {SHARE}")


def known_options(specs: Iterable[TaskSpec]) -> list[str]:
    """What may be set for these tasks or their systems."""
    own = [name for spec in specs for name in spec.names]
    rows = ((options_of(row, spec.form) or (), spec) for spec in specs for row in SYSTEMS.values())
    more = [name for taken, spec in rows for name in (*taken, *(spec.options if taken else ()))]
    return list(dict.fromkeys([*own, *more]))


def sampled_ids(ids: Iterable[str], share: float, seed: int = 0) -> set[str]:
    """A share of the ids, one or more, drawn by their digests: a smaller share draws a subset of a larger one's,
    whatever their order."""
    drawn = sorted(ids, key=lambda each: blake2b(f"{seed} {each}".encode()).digest())
    return set(drawn[: ceil(share * len(drawn))])


def sample_of(corpus: Corpus, share: float, path: Path, seed: int = 0) -> Corpus:
    """A corpus in the folder `path` with a share of another's documents, split as they are there; it is made if there
    is none. The other itself if the share is 1. A sample has its own word statistics."""
    if share == 1:
        return corpus
    if path.exists():
        return Corpus.open(path)
    kept = sampled_ids((document.id for document in corpus.documents()), share, seed)
    sample = Corpus.create(path, splitter=corpus.splitter)
    sample.add(document for document in corpus.documents() if document.id in kept)
    return sample


class Searcher(Protocol):
    """A system that returns its k best passages for a question."""

    def search(self, query: str, k: int) -> list[Hit]: ...


@runtime_checkable
class Answerer(Searcher, Protocol):
    """A system that also answers: a reader, NPM, REALM."""

    def ask(self, question: str, *, top_k: int, **options: Any) -> list[Prediction]: ...


class BM25:
    """The baseline of search. It finds passages but gives no answers. With other k1 or b than Lucene's, terms are the
    same, and scores, by bm25s, lack the constant factor k1 + 1. Raises InputError on any other option."""

    def __init__(self, corpora: Sequence[Corpus], options: Options = {}) -> None:  # noqa: B006
        self._corpora = corpora
        self._index: Any = None
        if unknown := [name for name in options if name not in ("k1", "b")]:
            raise unknown_option("--system bm25", unknown[0], ["k1", "b"])
        if options:
            check_not_empty(corpora)
            self._places = [(corpus, row) for corpus in corpora for row in corpus.live_rows().tolist()]
            self._index = self._indexed(**{"k1": 0.9, "b": 0.4, **options})  # Anserini's

    def _indexed(self, k1: float, b: float) -> Any:
        try:
            from bm25s import BM25 as Index
        except ImportError:
            remedy = "pip install '.[eval]' in a clone of Quoth"
            raise InputError(f"BM25 with other k1 and b needs bm25s; {remedy}") from None
        vocabulary: dict[str, int] = {}
        passages = (corpus.passage(row) for corpus, row in self._places)
        texts = (indexed_text(passage.title, passage.text) for passage in passages)
        ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in analyse(text)] for text in texts]
        index = Index(k1=k1, b=b, method="lucene")
        index.index((ids, vocabulary), show_progress=False)
        return index

    def search(self, query: str, k: int) -> list[Hit]:
        """The k best passages that contain a term of the query, ties by corpus, then row."""
        if self._index is None:
            return bm25(self._corpora, query, k)
        if not (terms := analyse(query)):
            return []
        scores_P = self._index.get_scores(terms)
        best = [int(i) for i in np.argsort(-scores_P, kind="stable")[:k] if scores_P[i] > 0]
        return [Hit(self._places[i][0].passage(self._places[i][1]), float(scores_P[i])) for i in best]


def fills(model: Any, options: Options, read: int = 0) -> System[Source]:
    """A model's best phrases for each blank, without the example's hidden passages; before the text are BM25's `read`
    best passages of `model.corpora` for it."""
    told = without_share(options)

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        hidden = [example.hidden for example in examples]
        texts = [example.text for example in examples]
        if read:
            asked = [_unmasked(text) for text in texts]
            found = [_found(model, query, read, rows) for query, rows in zip(asked, hidden, strict=True)]
            texts = [_shown(passages) + text for passages, text in zip(found, texts, strict=True)]
        filled = model.fill(texts, exclude=hidden, top_k=HITS, **told)
        return [Answer(predictions) for predictions in filled]

    return answer


def filling(given: Given) -> Callable[[str, Options], System[Any]]:
    """How a model by its name and options fills a task's blanks from the corpora."""

    def asked(name: str, options: Options) -> System[Any]:
        model = given.open(name, given.corpora, options)
        return fills(model, *_apart(options)) if family_of(name) else fills(model, options)

    return asked


def _apart(options: Options) -> tuple[dict[str, Any], int]:
    """A language model's own options, and how many passages it is shown."""
    told = dict(options)
    return told, told.pop("passages", 0)


def without_share(options: Options) -> dict[str, Any]:
    """The options that are for the model itself."""
    return {name: value for name, value in options.items() if name != SHARE}


def asks(system: Searcher, k: int, options: Options) -> System[Source]:
    """A system's k best passages for each question and, if it answers, its best answers."""

    def answer(example: Example[Source]) -> Answer:
        passages = [hit.passage for hit in system.search(example.text, k)]
        if not isinstance(system, Answerer):
            return Answer(None, passages)
        return Answer(system.ask(example.text, top_k=HITS, **options), passages)

    return lambda examples: [answer(example) for example in examples]


def asking(model: Any, name: str, k: int, options: Options) -> System[Any]:
    """How a model, by its name and options, answers questions."""
    family, told = family_of(name), without_share(options)
    return completes(model, k, told) if family in ("lm", "mlm") else asks(model, k, {} if family else told)


def completes(model: Any, k: int, options: Options) -> System[Source]:
    """A language model's answers. With the option `passages`, that many of BM25's best are before the question, the
    best last, so that a text that is too long loses the worst; `k` or more are found."""
    told, read = _apart(options)
    template = told.pop("template", TEMPLATE)

    def answer(examples: Sequence[Example[Source]]) -> list[Answer]:
        asked = [_unmasked(example.text).strip() for example in examples]
        found = [_found(model, question, max(k, read)) if read else [] for question in asked]
        texts = [
            _shown(passages[:read]) + template.replace("{question}", question)
            for passages, question in zip(found, asked, strict=True)
        ]
        said = model.fill(texts, top_k=HITS, **told)
        return [Answer(each, passages) for each, passages in zip(said, found, strict=True)]

    return answer


def _found(model: Any, query: str, k: int, hidden: Collection[int] = ()) -> list[Passage]:
    """BM25's k best passages for a query in the model's corpora, but the rows `hidden`."""
    return [hit.passage for hit in hits_of(model.corpora, best_places(model.corpora, query, k, hidden))]


def _shown(passages: Sequence[Passage]) -> str:
    """Passages, the best last, a line each; nothing in them is a blank."""
    lines = (f"{each.title}. {each.text}" if each.title else each.text for each in reversed(passages))
    return "".join(f"{' '.join(_unmasked(line).split())}\n\n" for line in lines)


def _unmasked(text: str) -> str:
    return reduce(lambda text, mask: text.replace(mask, " "), MASKS, text)
