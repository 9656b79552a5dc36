"""Asks systems a task's examples, keeps every answer, and resumes a stopped run.

Knows: the run folder. Does not know: what a task or a system is about.

A run folder holds `run.json` (the task and its settings), `predictions.jsonl` (a line per system and example, appended
as they are answered), `report.json` and `report.md`.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from quoth.errors import InputError
from quoth.storage import atomic_write_json, encode_json, sha256_bytes
from quoth_eval.report import Report, Result, Row
from quoth_eval.task import Answer, Example, System, Task
from quoth_sources.source_map import as_json

Source = TypeVar("Source")
ProgressCallback = Callable[[str, int, int], None]
"""Takes a system's name, the number of examples it has answered, and their total."""
EVIDENCE = 3
"""Number of places kept per prediction."""
PREDICTIONS, RUN = "predictions.jsonl", "run.json"


def evaluate(
    task: Task[Source],
    systems: Mapping[str, System[Source]],
    folder: Path | None = None,
    progress: ProgressCallback | None = None,
    inputs: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Ask each system all of the task's examples.

    With `folder`, answers are appended there as they come, those that are there already are not asked for again, and
    the report is of all systems there. `inputs` are the digests of what answers come from: weights of systems, corpora.
    Raises InputError if there is no example or no system, or if the folder holds another task, other settings or
    examples, or answers from other inputs.
    """
    if not task.examples or not systems:
        raise InputError(f"{task.name}: no {'system' if task.examples else 'example'} to ask; name one or more")
    examples = _distinct(task.examples)
    kept = [] if folder is None else _resumed(folder, task, examples, inputs)
    rows = {(row.system, row.id): row for row in kept}
    for name, system in systems.items():
        waiting = [example for example in examples if (name, example.id) not in rows]
        waiting.sort(key=task.order or (lambda _: 0))
        done = len(examples) - len(waiting)
        if waiting and isinstance(system, Lazy):
            system.make()
        for at in range(0, len(waiting), task.at_a_time):
            part = waiting[at : at + task.at_a_time]
            started = perf_counter()
            given = zip(part, system(part), strict=True)
            seconds = (perf_counter() - started) / len(part)
            new = [_row(name, example, answer, task.judge(example, answer), seconds) for example, answer in given]
            if folder is not None:
                with (folder / PREDICTIONS).open("a", encoding="utf-8") as file:
                    file.write("".join(json.dumps(as_json(row), ensure_ascii=True) + "\n" for row in new))
            rows.update(((name, row.id), row) for row in new)
            done += len(part)
            if progress is not None:
                progress(name, done, len(examples))
    asked = dict.fromkeys(name for name, _ in rows)
    every = [(name, [rows[name, example.id] for example in examples if (name, example.id) in rows]) for name in asked]
    results = tuple(Result(name, tuple(of)) for name, of in every if len(of) == len(examples))
    report = Report(task.name, task.settings, results, tuple(task.macro))
    if folder is not None:
        (folder / "report.json").write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
        (folder / "report.md").write_text(report.markdown(), encoding="utf-8")
    return report


class Lazy(Generic[Source]):
    """A system that is made when it is first asked, so that a run that is complete loads no model. `evaluate` does not
    count this in its times."""

    def __init__(self, make: Callable[[], System[Source]]) -> None:
        self.make = cache(make)

    def __call__(self, examples: Sequence[Example[Source]]) -> Sequence[Answer]:
        return self.make()(examples)


def _resumed(folder: Path, task: Task[Any], examples: Sequence[Example[Any]], inputs: Mapping[str, str]) -> list[Row]:
    """The rows of a run so far; a torn last line is removed. Makes the folder if there is none. Raises InputError on
    any other broken line, or if the folder holds another run."""
    asked = sha256_bytes(encode_json([(each.id, each.text, each.answers) for each in examples]))[:8]
    told = {"task": task.name, "macro": [*task.macro], "settings": dict(task.settings), "examples": asked}
    told = json.loads(json.dumps(told))
    here = _read(folder / RUN) if (folder / RUN).exists() else told
    known = here.get("inputs", {})
    if other := [f"{name} {known[name]}" for name in inputs if known.get(name, inputs[name]) != inputs[name]]:
        raise InputError(f"{folder} has answers from another {', '.join(other)}; name a new folder")
    if told.items() <= here.items():
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write_json(folder / RUN, told | {"inputs": known | inputs})
    else:
        was = {"task": here.get("task"), **here.get("settings", {}), "examples": here.get("examples")}
        now = {"task": told["task"], **told["settings"], "examples": asked}
        other = [f"{name}={was.get(name)!r}" for name in {**was, **now} if was.get(name) != now.get(name)]
        raise InputError(f"{folder} is a run with {', '.join(other)}; resume it with the same, or name a new folder")
    path = folder / PREDICTIONS
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return list(_rows(path, content[:whole]))


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """The runs that are named: each path itself, or the runs in it and in its folders (`--run` makes one per task)."""
    found = [
        sorted(each.parent for depth in ("*", "*/*") for each in path.glob(f"{depth}/{RUN}")) or [path]
        for path in paths
    ]
    return list(dict.fromkeys(folder for each in found for folder in each))


def read_run(folder: Path) -> Report:
    """The report of a run folder, complete or not. Raises InputError if the folder is not one."""
    told = _read(folder / RUN)
    path = folder / PREDICTIONS
    by_system: dict[str, list[Row]] = {}
    for row in _rows(path, path.read_bytes()) if path.exists() else ():
        by_system.setdefault(row.system, []).append(row)
    try:
        results = tuple(Result(name, tuple(rows)) for name, rows in by_system.items())
        return Report(told["task"], told["settings"], results, tuple(told["macro"]))
    except KeyError as error:
        raise InputError(f"{folder / RUN}: not the settings of a run (no {error}); name another folder") from None


def _rows(path: Path, content: bytes) -> Iterator[Row]:
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            yield Row.of(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}:{number}: not a row of a run ({error!r}); remove the line") from None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot be read ({why}); name the folder of a run (quoth eval … --run)") from None


def _row(system: str, example: Example[Any], answer: Answer, scores: Mapping[str, float], seconds: float) -> Row:
    said = answer.predictions
    kept = None if said is None else tuple(replace(each, evidence=each.evidence[:EVIDENCE]) for each in said)
    found = tuple(f"{passage.document_id}:{passage.start}-{passage.end}" for passage in answer.passages)
    asked = (example.id, example.text, example.answers)
    return Row(system, *asked, scores, example.groups, kept, found, example.pattern, seconds, answer.weights)


def _distinct(examples: Sequence[Example[Source]]) -> list[Example[Source]]:
    """The examples with distinct ids: a repeated one gets its number of occurrence."""
    seen: dict[str, int] = {}
    result = []
    for example in examples:
        number = seen[example.id] = seen.get(example.id, 0) + 1
        result.append(example if number == 1 else replace(example, id=f"{example.id} ({number})"))
    return result
