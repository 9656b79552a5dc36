"""Who is asked: Quoth's models, other libraries' (lm:NAME, mlm:NAME, dense:NAME), and what each can do.

Knows: how a system is spelled (`quoth-mini,combine=sum`), which options it takes, and how a model is asked. Does not
know: tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from quoth.answers.options import FillOptions
from quoth.cli.models import load_predictor, load_searcher, quiet_libraries, system
from quoth.cli.output import counting
from quoth.corpus.bm25 import bm25
from quoth.corpus.corpus import Corpus
from quoth.errors import InputError
from quoth.records import Hit, Passage, Prediction
from quoth.text.tokenizer import MASK
from quoth_eval.spec import BLANKS, CLOSED, ENTITIES, OPEN, Options, Prepared, TaskSpec, read_options, unknown_option
from quoth_eval.task import HITS, Answer, Example, Source, System

if TYPE_CHECKING:
    from quoth.cli.options import Setup

TEMPLATE = f"Q: {{question}}\nA: {MASK}."
"""How a language model is asked: GPT-3's form (Brown et al. 2020)."""
SHARE = "corpus"
"""The option of a system that searches a share of the documents."""
CALIBRATIONS = ("none", "pmi", "batch")
FILLS = tuple(FillOptions.__dataclass_fields__)
KINDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    CLOSED: {"npm": FILLS},
    BLANKS: {"npm": FILLS, "reader": ("passages",), "realm": ("passages",)},
    OPEN: {
        "npm": FILLS,
        "reader": ("passages", "min_probability"),
        "realm": ("passages", "min_probability", "mode"),
        "zero-ner": (),
    },
    ENTITIES: {**dict.fromkeys(("npm", "zero-ner"), ("mode", "told", "keys")), "realm": ("mode",)},
}
"""By form, Quoth's kinds of models that can do the task, and the options that each takes there."""

Check = Callable[[Any], str | None]
"""What a value must be, if it is not."""


def _number(least: int) -> Check:
    return lambda value: None if type(value) is int and value >= least else f"a number, {least} or more"


def _one_of(*allowed: Any) -> Check:
    spelled = " or ".join(map(str, allowed)).replace("True", "true").replace("False", "false")
    return lambda value: None if value in allowed and type(value) in map(type, allowed) else spelled


def _weight(value: Any) -> str | None:
    return None if type(value) in (int, float) and 0 <= value < math.inf else "a number, 0 or more"


def _name(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "a name, as after dense:"


def _share(value: Any) -> str | None:
    is_share = isinstance(value, (int, float)) and 0 < value <= 1
    return None if is_share else "a share of the documents, above 0 and at most 1"


def _template(value: Any) -> str | None:
    asks = isinstance(value, str) and "{question}" in value and MASK in value
    return None if asks else "a text with {question} and then [MASK]"


_calibration, _flag = _one_of(*CALIBRATIONS), _one_of(True, False)
CHECKS: Mapping[str, Check] = {
    "calibration": _calibration,
    "labelled": _number(1),
    "template": _template,
    "oracle": _flag,
    "mode": _one_of("dense", "hybrid"),
    "told": _flag,
    "keys": _one_of("all", "random", "idf"),
}
"""The checks of options of Quoth's models beyond those of `fill`."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models: by form of task, the options it takes; the class that loads one; and whether it reports
    its progress in encoding the corpora."""

    options: Mapping[str, Mapping[str, Check]]
    loader: str
    encodes: bool = False


_DENSE: Mapping[str, Check] = {"mu": _weight, "lexical": _name}
FAMILIES: Mapping[str, Family] = {
    "lm": Family(
        {
            CLOSED: {"calibration": _calibration, "sentinel": _flag},
            OPEN: {"passages": _number(0), "template": _template, "max_new_tokens": _number(1), "sentinel": _flag},
            BLANKS: {"max_new_tokens": _number(1), "sentinel": _flag},
        },
        "quoth_eval.language_models:LanguageModel",
    ),
    "mlm": Family(
        {CLOSED: {"calibration": _calibration, "masks": _number(1)}, BLANKS: {"masks": _number(1)}},
        "quoth.npm.twin:MaskedModel",
    ),
    "dense": Family({OPEN: _DENSE, ENTITIES: _DENSE}, "quoth_eval.dense:DenseSearch", encodes=True),
}
"""By prefix."""


def family_of(name: str) -> Family | None:
    """The family that a system's name names by its prefix; None for any other name. Raises InputError if its prefix is
    unknown, or nothing follows it."""
    prefix, colon, model = name.partition(":")
    if not colon or len(prefix) == 1 or not prefix.isalnum():  # a Windows path is no prefix
        return None
    if prefix not in FAMILIES or not model:
        known = ", ".join(f"{each}:ID_OR_FOLDER" for each in FAMILIES)
        raise InputError(f"system {name!r}: no such kind of model; use {known}, or the name of a Quoth model")
    return FAMILIES[prefix]


@dataclass(frozen=True, slots=True)
class Asked:
    """A system as spelled, its name, and its options."""

    spelled: str
    name: str
    options: Options


def parse_system(spelled: str, spec: TaskSpec, common: Options = {}) -> Asked:  # noqa: B006
    """`quoth-mini,combine=sum` as a name and options; of the `common` ones, it gets those that it takes.

    Raises InputError for a system that cannot do the task, and for an option that it does not take.
    """
    name, *parts = spelled.split(",")
    own = read_options(parts, f"--system {spelled}")
    if name in spec.baselines:
        return Asked(spelled, name, own)
    checks = _checks(spelled, name, spec)
    if spec.form in (OPEN, CLOSED, BLANKS):
        checks = {**checks, SHARE: _share}
    for key, value in own.items():
        if key not in checks:
            raise unknown_option(f"--system {spelled}", key, list(checks))
        if must := checks.get(key, lambda value: None)(value):
            raise InputError(f"--system {spelled}: {key} is {value!r}; it must be {must}")
    options = {**{key: value for key, value in common.items() if key in checks}, **own}
    FillOptions(**{key: value for key, value in options.items() if key in FILLS and family_of(name) is None})
    return Asked(spelled, name, options)


def _checks(spelled: str, name: str, spec: TaskSpec) -> Mapping[str, Check]:
    """The options that a system takes for a task. Raises InputError if it cannot do it."""
    cannot = InputError(f"{spelled} cannot do {spec.name}; leave it out, or ask it other tasks")
    if family := family_of(name):
        if spec.form not in family.options:
            raise cannot
        return family.options[spec.form]
    if name in ("bm25", "frequent", "majority"):
        raise cannot
    if (kinds := KINDS.get(spec.form)) is None:  # such as taggers
        return {}
    if (row := system(name)).kind not in kinds:
        raise cannot
    more = spec.options if row.records() is FillOptions else ()
    return {option: CHECKS.get(option, lambda value: None) for option in (*kinds[row.kind], *more)}


class Opener:
    """Opens models, each once, over corpora or shares of them."""

    def __init__(self, setup: Setup, scratch: Path, seed: int) -> None:
        self.setup, self.scratch, self._seed = setup, scratch, seed
        self._opened: dict[tuple[object, ...], Any] = {}

    def __call__(self, name: str, corpora: Sequence[Corpus], options: Options = {}) -> Any:  # noqa: B006
        """The model. What its options or its kind compare by vectors is embedded in corpora that were made for the
        task. Raises the errors of loading it."""
        share = options.get(SHARE, 1)
        searches = options.get("passages", 3) is None or bool(options.get("hybrid"))
        key = (name, *(corpus.path for corpus in corpora), share, searches)
        if key not in self._opened:
            self._opened[key] = self._open(name, [self._sample(corpus, share) for corpus in corpora], searches)
        return self._opened[key]

    def _sample(self, corpus: Corpus, share: float) -> Corpus:
        return sample_of(corpus, share, self.scratch / f"{corpus.path.name}-{share}" / corpus.path.name, self._seed)

    def _open(self, name: str, corpora: Sequence[Corpus], searches: bool) -> Any:
        device, dtype = self.setup.device, self.setup.dtype
        if family := family_of(name):
            quiet_libraries()
            load = resolve_name(family.loader).from_pretrained
            with counting(f"loading {name}", "passages") as encoded:
                more = {"progress": encoded} if family.encodes else {}
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
        if each.options.get(SHARE, 1) != 1 and any(example.hidden for example in prepared.task.examples):
            told = f"{prepared.task.name} hides passages of the whole corpus"
            raise InputError(f"--system {each.spelled}: {told}; leave out {SHARE}")


def known_options(specs: Iterable[TaskSpec]) -> list[str]:
    """What may be set for these tasks or their systems."""
    own = (name for spec in specs for name in spec.names)
    more = (name for spec in specs for names in KINDS.get(spec.form, {}).values() for name in (*names, *spec.options))
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


class Filler(Protocol):
    """What a task needs of a model that fills blanks: `fill`, with the rows to exclude for each text."""

    @property
    def fill(self) -> Callable[..., Any]: ...


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

    def complete(self, texts: Sequence[str], options: Options) -> list[Prediction]: ...


@dataclass(frozen=True, slots=True)
class BM25:
    """The baseline of search. It finds passages but gives no answers."""

    corpora: tuple[Corpus, ...]

    def search(self, query: str, k: int) -> list[Hit]:
        return bm25(self.corpora, query, k)


def searcher_by_words(corpora: Sequence[Corpus], options: Options) -> Searcher:
    """BM25; with `k1` and `b`, by bm25s. Raises InputError on any other option."""
    if unknown := [name for name in options if name not in ("k1", "b")]:
        raise unknown_option("--system bm25", unknown[0], ["k1", "b"])
    if not options:
        return BM25(tuple(corpora))
    from quoth_eval.baselines import OtherBM25

    return OtherBM25(corpora, **options)


def with_lexical(model: Any, options: Options) -> Any:
    """A dense search, with BM25's scores or those of a model that imitates BM25 added, if its options say so."""
    if "lexical" in options:
        return model.with_lexical(options["lexical"], options.get("mu", 1.0))
    return model.with_bm25(options["mu"]) if "mu" in options else model


def without(options: Options, *names: str) -> dict[str, Any]:
    """The options that are for the model itself."""
    return {name: value for name, value in options.items() if name not in (SHARE, *names)}


def fills(model: Filler, options: Options) -> System[Source]:
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


def asks(system: Searcher, k: int, options: Options) -> System[Source]:
    """A system's k best passages for each question and, if it answers, its best answers."""

    def answer(example: Example[Source]) -> Answer:
        passages = [hit.passage for hit in system.search(example.text, k)]
        if not isinstance(system, Answerer):
            return Answer(None, passages)
        return Answer(system.ask(example.text, top_k=HITS, **options), passages)

    return lambda examples: [answer(example) for example in examples]


def completes(model: Completer, k: int, options: Options) -> System[Source]:
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
