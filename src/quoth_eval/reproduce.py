"""Runs a paper's table by the commands that it consists of, and writes a page: our numbers beside the published ones.

Knows: the order of the commands (index, embed, train, eval), what of the inputs is recorded. Does not know: any task,
or how it is measured; which tables there are.
"""

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import StringIO
from pathlib import Path

from quoth import __version__
from quoth.cli.output import note
from quoth.corpus.corpus import Corpus
from quoth.errors import CorpusNotFoundError, InputError, UserError
from quoth.hub import kind_of
from quoth.storage import sha256_bytes, sha256_file
from quoth.text.passages import MEASURED
from quoth_eval.charts import drawable
from quoth_eval.harness import read_run
from quoth_eval.pages import Part as PagePart
from quoth_eval.pages import Section, as_markdown, write_pictures
from quoth_eval.papers import MODELS, Item, Part, Training
from quoth_eval.report import Table
from quoth_eval.summary import beside, log_section
from quoth_eval.systems import BASELINES, DIGITS, LIBRARIES, family_of, fingerprint
from quoth_eval.tasks import find
from quoth_eval.tasks.closed_files import present
from quoth_eval.trainings import num_pages, pages, settings, split_pages, train, train_words, trained

Do = Callable[[Sequence[str]], str]
"""Runs `quoth` with these words, and returns what it prints."""
Measured = tuple[str, Sequence[str], str, Sequence[PagePart]]
"""The name of what was measured, its command, what that printed, and the numbers to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a call of `quoth reproduce` gives: the folder of data, corpora or documents by their names in the records,
    models of one's own, --limit, --seed, and words about the device for every command."""

    output: Path
    data: Path | None = None
    corpora: Mapping[str, Path] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    setup: tuple[str, ...] = ()


def quoth(words: Sequence[str]) -> str:
    """Run a command of `quoth` here. Raises what it raises; KeyboardInterrupt if it is interrupted."""
    from quoth.cli.main import INTERRUPTED, program
    from quoth_eval.command import eval_command

    told = StringIO()
    command, given = (eval_command, words[1:]) if words[0] == "eval" else (program(words[0]), words)
    with redirect_stdout(told):
        code = command.main(args=list(given), prog_name=f"quoth {words[0]}", standalone_mode=False)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return told.getvalue()


def reproduce(item: Item, call: Call, do: Do = quoth) -> Path:
    """Measure a table, or what of it can be, and return its page. Answers that are there already are not asked for
    again. Raises InputError if nothing of it can be measured, or if the output was made from other inputs."""
    if item.cannot:
        raise InputError(f"{item.id} cannot be run here: {item.cannot}")
    if item.log:
        return _from_logs(item, call)
    item = _with_models(item, call)
    _check_models(item, call)
    lacking = {part.name: part.lacks(call.data, call.corpora) for part in item.parts}
    asked = [part for part in item.parts if len(lacking[part.name]) < len(part.tasks)]
    left_out = [f"{name}, {task}: {why}" for name, tasks in lacking.items() for task, why in tasks.items()]
    for each in left_out if asked else ():
        note(f"left out {each}")
    if not asked:
        raise InputError(f"{item.id}: {next(why for tasks in lacking.values() for why in tasks.values())}")
    folders = _folders(call, asked, do)
    if any(part.heldout for part in asked):
        _train(item, call, asked, folders, do)
    record = _recorded(item, call, asked, folders)
    measured, page = list[Measured](), call.output / f"{item.id}.md"
    todo = [(part, task) for part in asked for task in part.tasks if task not in lacking[part.name]]
    for part, task in todo:
        title = part.name if part.tasks == (task,) else f"{part.name}: {task}"
        words = eval_words(item, part, call, folders, task)
        try:
            told = do(words)
        except UserError as error:
            if (part, task) == todo[-1] and not measured:
                raise
            left_out.append(f"{title}: {error}")
            note(f"left out {left_out[-1]}")
            continue
        numbers = _numbers(item, part, _run(item, part, call) / task)
        measured.append((title, words, told, numbers))
        page.write_text(_page(item, call, measured, left_out, record), encoding="utf-8")
    return page


def _from_logs(item: Item, call: Call) -> Path:
    """The page of a figure that the logs of the runs named by --model show. Raises InputError."""
    if not call.models:
        raise InputError(f"{item.id} shows the log of a training run; name its folder with --model")
    sections = [_about(item, call), *(log_section(Path(each), item.log) for each in call.models)]
    page, folder = call.output / f"{item.id}.md", ""
    call.output.mkdir(parents=True, exist_ok=True)
    if drawable():
        write_pictures(sections, call.output)
        folder = "."
    page.write_text(as_markdown(f"{item.paper}, {item.name}", sections, folder), encoding="utf-8")
    return page


def systems_of(part: Part, models: Sequence[str]) -> list[str]:
    """Whom a part asks: each of its systems, or in its place the `models` of its kind, with the same options; and other
    libraries' models that can do its tasks."""
    found = list[str]()
    for spelled in part.systems:
        name, comma, options = spelled.partition(",")
        found += [f"{model}{comma}{options}" for model in models if _kind(model) == _kind(name)] or [spelled]
    forms = {find(task).form for task in part.tasks}
    found += [model for model in models if all(_kind(model) in LIBRARIES.get(form, {}) for form in forms)]
    return list(dict.fromkeys(found))


def _kind(system: str) -> str:
    """The kind of a system's model; of a baseline its name."""
    name = system.partition(",")[0]
    return name if name in BASELINES else family_of(name) or kind_of(name)


def _with_models(item: Item, call: Call) -> Item:
    """The table, with the folders of the models that it needs, of which those that are not trained are written. Models
    of one's own take the place of all that would be trained."""
    folder = call.output / "models"
    for name, told in item.models.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "quoth.json").write_text(json.dumps(dict(told)), encoding="utf-8")
    ours = {f"{MODELS}/{each.name}" for each in item.trainings} if call.models else set[str]()
    parts = list[Part]()
    for part in item.parts:
        kept = [each for each in part.systems if each not in ours]
        own = call.models if len(kept) < len(part.systems) else ()
        parts.append(replace(part, systems=tuple(each.replace(MODELS, str(folder)) for each in (*kept, *own))))
    return replace(item, parts=tuple(parts))


def _trainings(item: Item, call: Call, parts: Sequence[Part]) -> list[tuple[Training, list[str]]]:
    """The models that these parts need, with their settings."""
    return [(each, settings(each, call.limit, call.seed)) for each in trained(item, parts, call.output / "models")]


def _train(item: Item, call: Call, parts: Sequence[Part], folders: dict[str, str], do: Do) -> None:
    """Hold out pages of wiki, which are added to the folders, and train models on others. Raises InputError, before
    anything is trained, if the output was made from other inputs."""
    _recorded(item, call, parts, folders)
    drawn = pages(item, call.output)
    split_pages(Path(folders["wiki"]), drawn, *num_pages(item, call.limit), call.seed)
    folders["heldout"] = str(drawn / "heldout.jsonl")
    base = dict(zip(call.setup[::2], call.setup[1::2], strict=True)).get("--base", "")
    for training, told in _trainings(item, call, parts):
        train(train_words(item, training, told, call.output, base), do)


def _check_models(item: Item, call: Call) -> None:
    for model in call.models:
        if not any(_kind(model) in map(_kind, systems_of(part, call.models)) for part in item.parts):
            asked = dict.fromkeys(each.partition(",")[0] for part in item.parts for each in part.systems)
            raise InputError(f"--model {model}: {item.id} asks no model of its kind, but {', '.join(asked)}")


def eval_words(item: Item, part: Part, call: Call, folders: Mapping[str, str], task: str = "") -> list[str]:
    """A part, or one of its tasks, as `quoth eval` takes it."""
    limit = part.limit if call.limit is None else call.limit
    if call.limit and any(find(task).each for task in part.tasks):
        limit = max(1, call.limit // 10)
    places = {**folders, "limit": limit or part.limit}
    given: dict[str, Sequence[object]] = {
        "--data": [call.data] if call.data else [],
        "--corpus": [folders[name] for name in part.corpora],
        "--system": [each.format(**places) for each in systems_of(part, call.models)],
        "--set": [each.format(**places) for each in (*part.set, *part.more)],
        "--sweep": part.sweep,
        "--limit": [] if limit is None else [limit],
        "--seed": [call.seed],
        "--run": [_run(item, part, call)],
    }
    files = [str(path) for pattern in part.files for path in present(call.data, pattern) or [Path("DIR", pattern)]]
    files += [folders["heldout"]] if part.heldout else []
    options = [str(word) for option, values in given.items() for value in values for word in (option, value)]
    return ["eval", *([task] if task else part.tasks), *files, *options, *call.setup]


def _run(item: Item, part: Part, call: Call) -> Path:
    return call.output / "runs" / item.id / part.name.replace(" ", "-")


def _folders(call: Call, parts: Sequence[Part], do: Do) -> dict[str, str]:
    """The folders that commands name: of data, and of corpora, which are made and embedded if documents are given."""
    found = {"data": str(call.data or ""), "out": str(call.output)}
    call.output.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(each for part in parts for each in (*part.corpora, *part.also)):
        given = call.corpora[name]
        try:
            Corpus.open(given)
            found[name] = str(given)
            continue
        except CorpusNotFoundError:
            found[name] = str(_indexed(name, given, call, do))
        wanted = [each for part in parts if name in (*part.corpora, *part.also) for each in part.embed]
        for model in dict.fromkeys(wanted):
            for each in [own for own in call.models if _kind(own) == _kind(model)] or [model]:
                do(["embed", found[name], "--model", each.partition(",")[0], "--yes", *call.setup])
    return found


def _indexed(name: str, documents: Path, call: Call, do: Do) -> Path:
    """The corpus of these documents in the output; it is made, as a whole or not at all, if there is none."""
    made = call.output / "corpora" / f"{name}.quoth"
    if not made.exists():
        part = made.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        do(["index", str(documents), "-o", str(part), "--splitter", MEASURED])
        part.rename(made)
    return made


def _recorded(item: Item, call: Call, parts: Sequence[Part], folders: Mapping[str, str]) -> dict[str, str]:
    """The digests of what a table is made from, kept in the output. Raises InputError if one was different before."""
    found = {f"--limit of {item.id}": str(call.limit), f"--seed of {item.id}": str(call.seed)}
    trainings = _trainings(item, call, parts)
    found |= {f"training of {each.name}": " ".join([each.recipe, *told]) for each, told in trainings}
    if any(part.heldout for part in parts):
        learned, held_out = num_pages(item, call.limit)
        drawn = f"{learned} to learn from, {held_out} held out, or in proportion"
        found[f"pages of wiki for {item.paper}"] = drawn
    later = {name for each, _ in trainings if not Path(name := str(call.output / "models" / each.name)).exists()}
    for part in parts:
        for pattern, _ in (each for task in part.tasks for each in part.reads(task)):
            if files := present(call.data, pattern):
                found[pattern] = _digest(files)
        for name in (*part.corpora, *part.also):
            found[f"corpus {name}"] = _texts(Path(folders[name]))
            if folders[name] != str(call.corpora[name]):
                given = call.corpora[name]
                files = [given] if given.is_file() else sorted(each for each in given.rglob("*") if each.is_file())
                found[f"documents of {name}"] = _digest(files)
        names = [each.partition(",")[0] for each in systems_of(part, call.models)]
        found |= {f"model {name}": fingerprint(name) for name in names if name not in later and _kind(name) != name}
    path = call.output / "inputs.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in found:
        if found[name] != before.get(name, found[name]):
            raise InputError(f"{path}: {name} was {before[name]} and is {found[name]} now; name a new folder with -o")
    path.write_text(json.dumps({**before, **found}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found


def _texts(corpus: Path) -> str:
    """The digest of a corpus's documents and of how they are split, whatever its segments."""
    opened, digest = Corpus.open(corpus), sha256()
    digest.update(opened.splitter.encode())
    for document in opened.documents():
        digest.update(json.dumps([document.id, document.title, document.text]).encode())
    return digest.hexdigest()[:DIGITS]


def _digest(files: Sequence[Path]) -> str:
    """The digest of a file, or of the digests of several."""
    whole = sha256_bytes("".join(map(sha256_file, files)).encode()) if files[1:] else sha256_file(files[0])
    return whole[:DIGITS] + (f", {len(files)} files" if files[1:] else "")


def _numbers(item: Item, part: Part, folder: Path) -> list[PagePart]:
    """Our numbers in a run, with the paper's of these columns below them; of held-out pages, which no paper measures,
    first all of ours."""
    report = read_run(folder)
    table, found = item.published, list[PagePart]()
    if table is not None:
        shown = [each for each in table.columns if each.name in part.columns and report.task in each.measures]
        sections = beside(report, [(table, shown)] if shown else [])
        found = [each for section in sections for each in section.parts[1:]]
    return [report.table(())] * (part.heldout or not found) + found


def _page(
    item: Item, call: Call, measured: Sequence[Measured], left_out: Sequence[str], record: Mapping[str, str]
) -> str:
    """The page about a table."""
    numbers = list[PagePart]()
    for title, _, _, tables in measured:
        numbers += [f"{title}:", *tables]
    details = [Section(title, [f"```sh\nquoth {shlex.join(words)}\n```", told]) for title, words, told, _ in measured]
    gone = [Section("Left out", ["\n".join(f"- {each}" for each in left_out)])] if left_out else []
    made: Table = (["made from", "SHA-256, or settings"], [list(row) for row in record.items() if row[0][:2] != "--"])
    sections = [_about(item, call), Section("Numbers", numbers), *details, *gone]
    return as_markdown(f"{item.paper}, {item.name}", [*sections, Section("Made from", [made])])


def _about(item: Item, call: Call) -> Section:
    numbers = "Means" if item.log else "Percentages"
    about = [captioned(item), f"Paper: {item.source}.", f"What differs: {item.about} {item.differs}".rstrip()]
    about.append(f"Seed {call.seed}, Quoth {__version__}. {numbers} with 95 % intervals.")
    if call.limit:
        about.append(f"This is a look, with --limit {call.limit}; the whole needs another folder.")
    return Section("What it shows", about)


def captioned(item: Item) -> str:
    """The paper's caption, or that no paper has it; and what is measured here."""
    return f"Ours, in no paper. {ended(item.shows)}" if item.ours else f"“{item.caption}” Here: {ended(item.shows)}"


def ended(text: str) -> str:
    """A sentence with its end."""
    return text if text.endswith("?") else f"{text}."


def needs(item: Item) -> str:
    """What a table needs, in words."""
    models = dict.fromkeys(each.partition(",")[0] for part in item.parts for each in part.systems)
    learned = {f"{MODELS}/{each.name}" for each in trained(item, item.parts, MODELS)}
    asked = ", ".join(each for each in models if each not in learned)
    corpora = dict.fromkeys(name for part in item.parts for name in (*part.corpora, *part.also))
    read = dict.fromkeys(each for part in item.parts for task in part.tasks for each, _ in part.reads(task))
    told = [
        "a run's log.jsonl" if item.log else asked.replace(f"{MODELS}/", "a quoth-zero-ner that asks with: "),
        "models that are trained before" if learned else "",
        f"corpora: {', '.join(corpora)}" if corpora else "",
        ", ".join(read),
    ]
    return "; ".join(filter(None, told))
