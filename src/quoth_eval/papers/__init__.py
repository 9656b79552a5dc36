"""The papers' tables and figures as records: what each shows, and what `quoth eval` is asked for it.

Knows: the files of this folder, one per paper; which files of data the tasks read. Does not know: how anything is run.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from quoth.errors import InputError, nearest
from quoth.fields import Checked
from quoth_eval.published import Published, published
from quoth_eval.tasks.closed_files import FORMATS, VERBALIZERS, present
from quoth_eval.tasks.openqa import KAMEL, QUESTIONS, source_of

PAPERS = ("npm", "realm", "zero_ner")
CORPORA = {
    "wiki": "pages of an encyclopedia",
    "reviews": "reviews of films, for words of opinion",
    "old": "an earlier edition of wiki: documents with the same ids",
}
"""What is searched, by the name that the records give it."""
MODELS = "{models}"
"""In the records, the folder of the models that are made for tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Checked):
    """Tasks that are asked together, in the words of `quoth eval`.

    `set` and `more` are its --set, `limit` is --limit if none is given; in them and in `systems`, {data}, {out},
    {models} and the names of `also` are folders, {limit} is the limit. `files` are patterns in the folder of data, for
    tasks that read files; `requires` must be there too; `source` says where both were published. `corpora` are
    searched, `also` are needed; `embed` are the models whose vectors all of them must have. `columns` are those of the
    published table that are shown beside it. `heldout`: the tasks read the pages of wiki that no model was trained on.
    """

    name: str
    tasks: tuple[str, ...]
    systems: tuple[str, ...]
    set: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    sweep: tuple[str, ...] = ()
    limit: int | None = None
    files: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    source: str = ""
    corpora: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    embed: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    heldout: bool = False

    def reads(self, task: str) -> list[tuple[str, str]]:
        """The patterns of the files that a task of it reads, each with where they were published."""
        found = [(pattern, self.source) for pattern in (*self.files, *self.requires)]
        if form := FORMATS.get(task):
            found = [(form.file, form.source), *([(form.verbalizers, VERBALIZERS)] if form.verbalizers else [])]
            found += [(each, form.source) for each in self.requires if each.startswith(f"{task}/")]
        elif task in QUESTIONS:
            found += [(QUESTIONS[task][0], source_of(task))]
            found += [("kamel/question-templates.csv", KAMEL)] if task == "kamel" else []
        return found

    def lacks(self, data: Path | None, corpora: Mapping[str, Path]) -> dict[str, str]:
        """What is missing for it, one line for each of its tasks that cannot be asked."""
        found = dict[str, str]()
        for task in self.tasks:
            absent = [each for each in self.reads(task) if not present(data, each[0])]
            if lacking := [name for name in (*self.corpora, *self.also) if name not in corpora]:
                name = lacking[0]
                found[task] = f"no corpus {name!r} ({CORPORA[name]}); name it: --corpus {name}=CORPUS_OR_DOCUMENTS"
            elif absent:
                where = "DIR (name it with --data)" if data is None else data
                found[task] = f"{where}/{absent[0][0]}: no such file; published: {absent[0][1]}"
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Training(Checked):
    """A model that `quoth train` makes for tables, {models}/NAME: its recipe, number of steps and settings, and the
    trained model that it starts from ("": the recipe's)."""

    name: str
    recipe: str
    steps: int
    set: tuple[str, ...] = ()
    start: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A table or figure: its caption in the paper ("" for ours), what is measured here, how long it takes, what differs
    in the paper (`about`) and in it, its parts; or why it cannot be run. `models` are settings of models that it needs,
    by the name of their folder. `log` are measures in the logs of training runs, which a figure shows instead of parts.
    `trainings` are the paper's, in the order in which they are run; `pages` are how many pages of wiki they learn from,
    and how many are held out."""

    paper: str
    source: str
    about: str
    name: str
    caption: str = ""
    shows: str
    time: str = ""
    differs: str = ""
    cannot: str = ""
    parts: tuple[Part, ...] = ()
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    log: Sequence[str] = ()
    trainings: Sequence[Training] = ()
    pages: Sequence[int] = ()

    @property
    def id(self) -> str:
        """As it is called on the command line: npm-table-8."""
        return f"{self.paper} {self.name}".lower().replace(" ", "-")

    @property
    def ours(self) -> bool:
        """Whether no paper has it."""
        return not self.name.startswith(("table ", "figure "))

    @property
    def published(self) -> Published | None:
        """What the paper printed, if that is recorded."""
        return next((each for each in published() if (each.source, each.item) == (self.source, self.name)), None)


@cache
def items() -> tuple[Item, ...]:
    """All tables and figures, paper by paper."""
    return tuple(each for paper in PAPERS for each in _read(paper))


def find_item(name: str) -> Item:
    """The table or figure of this name. Raises InputError."""
    known = {item.id: item for item in items()}
    if name not in known:
        raise InputError(f"no table or figure {name!r}{nearest(name, list(known))}; quoth reproduce --list names all")
    return known[name]


def _read(paper: str) -> Iterator[Item]:
    told = tomllib.loads(files(__name__).joinpath(f"{paper}.toml").read_text(encoding="utf-8"))
    trainings = tuple(Training(**each) for each in told.get("training", ()))
    for item in told["item"]:
        parts = [Part(**{**told.get("every_part", {}), **part}) for part in item.pop("part", ())]
        whole = {name: told[name] for name in ("paper", "source", "about")}
        shared = {"trainings": trainings, "pages": told.get("pages", ())}
        yield Item(**whole, **shared, parts=tuple(parts), **item)
