"""Closed sets: texts to label, as the NPM paper asks them (Min et al. 2022, §5, Table 5).

Knows: the files of AGN, Yahoo, Subj, SST-2, MR, RT, CR, Amazon and RTE, their templates, and the words (fuzzy
verbalizers) of their labels. Does not know: how a text is labelled.

Templates and detokenisation are those of NPM's released `task/load_data.py`.
"""

import csv
import json
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from quoth.corpus.documents import read_records, read_text
from quoth.errors import InputError
from quoth.text.tokenizer import MASK

VERBALIZERS = (
    "NPM's fuzzy verbalizers are in the data of https://github.com/facebookresearch/NPM (scripts/download_data.sh)"
)
SUFFIXES = ("", ".xz", ".gz", ".bz2")
_TIGHT = frozenset("!?.,';:)]")
_TOPIC = "The text topic is about"


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text with one blank, and the label that is right."""

    id: str
    text: str
    label: str


@dataclass(frozen=True, slots=True)
class ClosedSet:
    """Texts to label, by label the words that stand for it, and the template of the texts without a text."""

    name: str
    texts: tuple[LabelledText, ...]
    words: Mapping[str, tuple[str, ...]]
    prompt: str


Parsed = TypeVar("Parsed")
Rows = Iterator[tuple[str, str]]
"""Texts that end where the blank comes, or have one, and their labels."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A set's labels, each with its own word; its file, how its rows are read (by which reader, with which arguments),
    where the set can be had, the file of its fuzzy verbalizers ("": its own words alone), its template without a text,
    and the file to train on ("": none)."""

    labels: Mapping[str, str]
    file: str
    read: Sequence[str]
    source: str
    verbalizers: str = ""
    prompt: str = f"It was {MASK}."
    train: str = ""


def read_closed_set(data: str | Path, name: str) -> ClosedSet:
    """The set of this name in a folder of sets, one folder each (sst2/test.tsv, sst2/verbalizers.txt, …), compressed or
    not. Raises InputError, naming the file and where it can be had, if it is missing, and for a row that is broken."""
    if name not in FORMATS:
        raise InputError(f"closed set {name!r}; choose from {', '.join(FORMATS)}")
    form = FORMATS[name]
    texts = _texts(name, form, form.file, data)
    words: dict[str, tuple[str, ...]] = {label: (word,) for label, word in form.labels.items()}
    if form.verbalizers:
        words = read_verbalizers(find_file(data, form.verbalizers, VERBALIZERS), list(form.labels))
    return ClosedSet(name, texts, words, form.prompt)


def read_labelled(data: str | Path, name: str) -> tuple[LabelledText, ...]:
    """The labelled texts that are published with a set to train on. Raises InputError if there are none."""
    form = FORMATS[name]
    if not form.train:
        having = ", ".join(each for each, its in FORMATS.items() if its.train)
        raise InputError(f"{name} has no labelled texts to vote; leave labelled out, or ask {having}")
    return _texts(f"{name}-train", form, form.train, data)


def _texts(name: str, form: _Format, file: str, data: str | Path) -> tuple[LabelledText, ...]:
    path = find_file(data, file, form.source)
    texts = []
    reader, *arguments = form.read
    for number, (text, label) in enumerate(_READERS[reader](path, *arguments), start=1):
        if label not in form.labels:
            raise InputError(f"{path}: row {number} has label {label!r}; it must be one of {', '.join(form.labels)}")
        texts.append(LabelledText(f"{name}-{number}", text if MASK in text else f"{text} {MASK}.", label))
    if not texts:
        raise InputError(f"{path}: no row; name a folder with the whole file")
    return tuple(texts)


def find_file(data: str | Path, file: str, source: str) -> Path:
    """As `find_files`, a single one."""
    return find_files(data, file, source)[0]


def find_files(data: str | Path, pattern: str, source: str) -> list[Path]:
    """The files of a pattern in a data folder, compressed or not. Raises InputError, saying where they can be had, if
    there are none."""
    if not Path(data).is_dir():
        raise InputError(f"--data {data}: no such folder; name the folder that contains {pattern}")
    if found := present(data, pattern):
        return found
    raise InputError(f"{Path(data) / pattern}: no such file; {source}")


def parsed(path: str | Path, parse: Callable[[Mapping[str, Any]], Parsed], what: str) -> Iterator[Parsed]:
    """What `parse` makes of each record of a file of JSON lines. Raises InputError naming a line that is not `what`."""
    for line, record in read_records(path):
        try:
            yield parse(record)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            lacks = f"no {error}" if isinstance(error, KeyError) else error
            raise InputError(f"{path}:{line}: not {what} ({lacks}); fix or remove the line") from None


def present(data: str | Path | None, pattern: str) -> list[Path]:
    """The files of a pattern in a data folder, plain or else compressed, each once, by name."""
    found: dict[str, Path] = {}
    if data is None:
        return []
    for suffix in SUFFIXES:
        for path in Path(data).glob(f"{pattern}{suffix}"):
            found.setdefault(str(path).removesuffix(suffix), path)
    return [found[name] for name in sorted(found)]


def read_verbalizers(path: str | Path, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Each label's words: of a text file a line per label, in their order, all cut to the number of the shortest; of
    JSON an object by label. Raises InputError if a label has no words."""
    text = read_text(path)
    if str(path).removesuffix(Path(path).suffix if Path(path).suffix in SUFFIXES else "").endswith(".json"):
        try:
            listed = {str(label).casefold(): tuple(map(str, words)) for label, words in json.loads(text).items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise InputError(f"{path}: not a JSON object of labels and words ({error}); fix the file") from None
        found = {label: listed.get(label.casefold(), ()) for label in labels}
    else:
        lines = [tuple(word.strip() for word in line.split(", ")) for line in text.splitlines() if line.strip()]
        shortest = min(map(len, lines), default=0)
        found = {label: words[:shortest] for label, words in zip(labels, lines, strict=False)}
    if missing := [label for label in labels if not found.get(label)]:
        raise InputError(f"{path}: no words for {', '.join(missing)}; it must have a line or an entry for each label")
    return found


def detokenise(text: str) -> str:
    """A text without the spaces that a tokenizer has put before marks and endings, as in NPM's released code."""
    result, tight = "", True
    for token in text.replace("n 't", "n't").split():
        ending = token in _TIGHT or token == "n't" or (len(token) > 1 and token.startswith("'"))
        address = result.endswith("www.") or (result.endswith(".") and token == "com")
        spaced = not (tight or ending or address)
        result += f" {token}" if spaced else token
        tight = spaced and token in ("(", "[")
    return result.replace("!.", "!").replace("?.", "?")


def _sentences(path: Path, ending: str, text: str, label: str) -> Rows:
    """JSONL of texts and labels under these names. The quotation marks that CSV puts around a text are removed."""
    for _, (plain, of) in _records(path, text, label):
        if len(plain) > 1 and plain[0] == plain[-1] == '"':
            plain = plain[1:-1].replace('""', '"')
        yield f"{detokenise(plain).strip()} {ending}", of


def _sst2(path: Path) -> Rows:
    """Rows `__label__5<tab>text`; 3 of the five labels is neutral and left out."""
    for number, line in enumerate(StringIO(read_text(path)), start=1):
        label, tab, text = line.strip().partition("\t")
        if not tab or not label[-1:].isdigit():
            raise InputError(f"{path}:{number}: not a label, a tab and a text; fix or remove the line")
        if label[-1] != "3":
            yield f"{detokenise(text).strip()} It was", "01"[int(label[-1]) > 3]


def _table(path: Path, first: str, last: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV, each of a class, a title and a last cell."""
    for number, row in enumerate(csv.reader(StringIO(read_text(path), newline="")), start=1):
        if len(row) != 3:
            raise InputError(f"{path}: row {number} has {len(row)} cells; it must be {first}, title and {last}")
        yield number, row


def _agn(path: Path) -> Rows:
    """CSV of class, title and description, after a header line."""
    for number, (label, title, text) in _table(path, "class", "description"):
        if number > 1:
            yield f"{title} \n {text} {_TOPIC}", label


def _amazon(path: Path) -> Rows:
    """CSV of class (1, 2), title and review, as published, without a header."""
    for _, (label, title, text) in _table(path, "class (1, 2)", "review"):
        ended = title if title.endswith(tuple(string.punctuation)) else f"{title}."
        yield f"{ended} {text}".strip() + " It was", label


def _yahoo(path: Path) -> Rows:
    for record, (title, content, label) in _records(path, "title", "content", "label"):
        answer = f" answer: {record['answer']}" if "answer" in record else ""
        yield f"title: {title} content: {content}{answer} {_TOPIC}", label.casefold()


def _rte(path: Path) -> Rows:
    for _, (premise, hypothesis, label) in _records(path, "premise", "hypothesis", "label"):
        premise, hypothesis = premise.rstrip(string.punctuation), hypothesis.rstrip(string.punctuation)
        yield f"{premise}, right? {MASK}, {hypothesis[:1].lower()}{hypothesis[1:]}.", label


def _records(path: Path, *names: str) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """The records of a file of JSON lines, and their values of these names."""
    for line, record in read_records(path):
        if missing := [name for name in names if name not in record]:
            raise InputError(f"{path}:{line}: no {missing[0]!r}; fix or remove the line")
        yield record, [str(record[name]) for name in names]


_READERS: Mapping[str, Callable[..., Rows]] = {
    "sentences": _sentences,
    "sst2": _sst2,
    "agn": _agn,
    "amazon": _amazon,
    "yahoo": _yahoo,
    "rte": _rte,
}
_SETS = json.loads(files("quoth_eval").joinpath("closed_sets.json").read_bytes())
FORMATS: Mapping[str, _Format] = {name: _Format(**told) for name, told in _SETS.items()}
"""How a set is read, by its name."""
