"""Closed sets: texts to label, as the NPM paper asks them (Min et al. 2022, §5.1, Tables 5 to 7).

Knows: the files of AGN, Yahoo, Subj, SST-2, MR, RT, CR, Amazon and RTE, their templates, and the words (fuzzy
verbalizers) of their labels. Does not know: how a text is labelled.

Templates and detokenisation are those of NPM's released `task/load_data.py`.
"""

from __future__ import annotations

import csv
import json
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from quoth.corpus.documents import read_records, read_text
from quoth.errors import InputError

MASK = "[MASK]"
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
    """A set's labels, each with its own word; its file, the file of its fuzzy verbalizers ("": its own words alone),
    how its rows are read, where the set can be had, its template without a text, and the file to train on ("": none).
    """

    labels: Mapping[str, str]
    file: str
    read: Callable[[Path], Rows]
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
        words = read_verbalizers(find_file(data, form.verbalizers, _VERBALIZERS), list(form.labels))
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
    for number, (text, label) in enumerate(form.read(path), start=1):
        if label not in form.labels:
            raise InputError(f"{path}: row {number} has label {label!r}; it must be one of {', '.join(form.labels)}")
        texts.append(LabelledText(f"{name}-{number}", text if MASK in text else f"{text} {MASK}.", label))
    if not texts:
        raise InputError(f"{path}: no row; name a folder with the whole file")
    return tuple(texts)


def find_file(data: str | Path, file: str, source: str) -> Path:
    """A file of a data folder, compressed or not. Raises InputError, saying where it can be had, if there is none."""
    _check_folder(data, file)
    if path := _present(Path(data) / file):
        return path
    raise InputError(f"{Path(data) / file}: no such file; {source}")


def find_files(data: str | Path, folder: str, source: str) -> list[Path]:
    """The files of JSON lines in a folder of a data folder, compressed or not. Raises InputError, saying where they can
    be had, if there are none."""
    _check_folder(data, folder)
    plain = {path.name.partition(".jsonl")[0] for path in (Path(data) / folder).glob("*.jsonl*")}
    if found := [path for name in sorted(plain) if (path := _present(Path(data) / folder / f"{name}.jsonl"))]:
        return found
    raise InputError(f"{Path(data) / folder}: no file of JSON lines there; {source}")


def parsed(path: str | Path, parse: Callable[[Mapping[str, Any]], Parsed], what: str) -> Iterator[Parsed]:
    """What `parse` makes of each record of a file of JSON lines. Raises InputError naming a line that is not `what`."""
    for line, record in read_records(path):
        try:
            yield parse(record)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            lacks = f"no {error}" if isinstance(error, KeyError) else error
            raise InputError(f"{path}:{line}: not {what} ({lacks}); fix or remove the line") from None


def _present(file: Path) -> Path | None:
    """The file, or the first of its compressed forms that is there."""
    return next((path for suffix in SUFFIXES if (path := Path(f"{file}{suffix}")).is_file()), None)


def _check_folder(data: str | Path, contains: str) -> None:
    if not Path(data).is_dir():
        raise InputError(f"--data {data}: no such folder; name the folder that contains {contains}")


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


def _sentences(ending: str, text: str, label: str, path: Path) -> Rows:
    """JSONL of texts and labels under these names. The quotation marks that CSV puts around a text are removed."""
    for line, record in read_records(path):
        plain = _field(record, text, path, line)
        if len(plain) > 1 and plain[0] == plain[-1] == '"':
            plain = plain[1:-1].replace('""', '"')
        yield f"{detokenise(plain).strip()} {ending}", _field(record, label, path, line)


def _sst2(path: Path) -> Rows:
    """Rows `__label__5<tab>text`; 3 of the five labels is neutral and left out."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        label, tab, text = line.strip().partition("\t")
        if not tab or not label[-1:].isdigit():
            raise InputError(f"{path}:{number}: not a label, a tab and a text; fix or remove the line")
        if label[-1] != "3":
            yield f"{detokenise(text).strip()} It was", "01"[int(label[-1]) > 3]


def _table(path: Path) -> Iterator[tuple[int, list[str]]]:
    yield from enumerate(csv.reader(StringIO(read_text(path), newline="")), start=1)


def _agn(path: Path) -> Rows:
    """CSV of class, title and description, after a header line."""
    for number, row in _table(path):
        if len(row) != 3:
            raise InputError(f"{path}: row {number} has {len(row)} cells; it must be class, title and description")
        if number > 1:
            yield f"{row[1]} \n {row[2]} {_TOPIC}", row[0]


def _amazon(path: Path) -> Rows:
    """CSV of class (1, 2), title and review, as published, without a header."""
    for number, row in _table(path):
        if len(row) != 3:
            raise InputError(f"{path}: row {number} has {len(row)} cells; it must be class (1, 2), title and review")
        title = row[1] if row[1].endswith(tuple(string.punctuation)) else f"{row[1]}."
        yield f"{title} {row[2]}".strip() + " It was", row[0]


def _yahoo(path: Path) -> Rows:
    for line, record in read_records(path):
        title, content, label = (_field(record, name, path, line) for name in ("title", "content", "label"))
        answer = f" answer: {record['answer']}" if "answer" in record else ""
        yield f"title: {title} content: {content}{answer} {_TOPIC}", label.casefold()


def _rte(path: Path) -> Rows:
    for line, record in read_records(path):
        premise, hypothesis, label = (_field(record, name, path, line) for name in ("premise", "hypothesis", "label"))
        premise, hypothesis = premise.rstrip(string.punctuation), hypothesis.rstrip(string.punctuation)
        yield f"{premise}, right? {MASK}, {hypothesis[:1].lower()}{hypothesis[1:]}.", label


def _field(record: Mapping[str, Any], name: str, path: Path, line: int) -> str:
    if name not in record:
        raise InputError(f"{path}:{line}: no {name!r}; fix or remove the line")
    return str(record[name])


_VERBALIZERS = (
    "NPM's fuzzy verbalizers are in the data of https://github.com/facebookresearch/NPM (scripts/download_data.sh)"
)
_KPT = "get it from the data of https://github.com/facebookresearch/NPM (scripts/download_data.sh)"
_AGN = f"{_KPT}, as CSV of class (1 to 4), title and description after a header"
_JSONL = f"{_KPT}, as JSONL with sentence and label (0, 1)"
_SENTIMENT = {"0": "terrible", "1": "great"}
_TOPICS = {"1": "politics", "2": "sports", "3": "business", "4": "technology"}
_YAHOO = {
    "society & culture": "society",
    "science & mathematics": "science",
    "health": "health",
    "education & reference": "education",
    "computers & internet": "computer",
    "sports": "sports",
    "business & finance": "business",
    "entertainment & music": "entertainment",
    "family & relationships": "family",
    "politics & government": "politics",
}
_SST2 = "sst2/verbalizers.txt"
_MR = partial(_sentences, "It was", "sentence", "label")

FORMATS: Mapping[str, _Format] = {
    "agn": _Format(_TOPICS, "agn/test.csv", _agn, _AGN, "agn/verbalizers.txt", f"{_TOPIC} {MASK}."),
    "yahoo": _Format(
        _YAHOO,
        "yahoo/test.jsonl",
        _yahoo,
        "write yahoo_answers_topics of https://huggingface.co as JSONL with title, content, answer and label",
        "yahoo/verbalizers.json",
        f"{_TOPIC} {MASK}.",
    ),
    "subj": _Format(
        {"0": "review", "1": "summary"},
        "subj/test.jsonl",
        partial(_sentences, "This is a", "sentence", "label"),
        f"{_KPT}, as JSONL with sentence and label (0: subjective)",
        prompt=f"This is a {MASK}.",
        train="subj/train.jsonl",
    ),
    "sst2": _Format(_SENTIMENT, "sst2/test.tsv", _sst2, f"{_KPT}, as lines of __label__1 to 5, tab, text", _SST2),
    "mr": _Format(_SENTIMENT, "mr/test.jsonl", _MR, _JSONL, _SST2, train="mr/train.jsonl"),
    "rt": _Format(
        {"negative": "terrible", "positive": "great"},
        "rt/test.jsonl",
        partial(_sentences, "It was", "input", "output"),
        "write the test side of rotten_tomatoes of https://huggingface.co as JSONL with input and output (positive, …)",
        _SST2,
    ),
    "cr": _Format(_SENTIMENT, "cr/test.jsonl", _MR, _JSONL, _SST2, train="cr/train.jsonl"),
    "amazon": _Format(
        {"1": "terrible", "2": "great"},
        "amazon/test.csv",
        _amazon,
        "get amazon_polarity of https://huggingface.co as CSV of class (1, 2), title and review without a header",
        _SST2,
    ),
    "rte": _Format(
        {"entailment": "Yes", "not_entailment": "No"},
        "rte/val.jsonl",
        _rte,
        "get RTE of https://super.gluebenchmark.com (val.jsonl: premise, hypothesis, label)",
        prompt=f"right? {MASK},",
    ),
}
"""How a set is read, by its name."""
