"""A room imports the rooms above it, wherever the import is written: at the top, in a function, for types only."""

import ast
import importlib
import re
import tomllib
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import quoth

ROOT = Path(quoth.__file__).parents[1]
ROOMS = (
    {"quoth_sources": "files of every kind to texts with a way back; no corpus"},
    {"ground": "names, files and settings that know no subject"},
    {"text": "words, sentences, tokens with their characters, boundaries, search terms"},
    {"corpus": "documents, passages, segments, snapshots, BM25, quotations; no model"},
    {"datasets": "published questions and tasks, and how answers are judged"},
    {"encoders": "texts to vectors: loading, precision, batches"},
    {"index": "keys on disk, tables, vectors, search, fusion"},
    {"answers": "equations, ranking, evidence, calibration"},
    {"model": "the base of what people call: loading, one text or many, options"},
    {"training": "the loop, its settings, adapters, several processes"},
    {"ner": "names and dates in texts, a tool of the systems"},
    {"reader": "the span reader, a tool of the systems"},
    {"npm": "NPM", "realm": "REALM", "zero_ner": "Zero-NeR"},
    {"tables": "rows of documents, columns of questions"},
    {"cli": "the command line"},
    {
        "quoth_serve": "HTTP, the page, and other programs",
        "quoth_ray": "several machines, and corpora at URLs",
        "quoth_eval": "the laboratory",
    },
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
SUBJECT = {room: subject for rooms in ROOMS for room, subject in rooms.items()}
GUESTS = [*ROOMS[-1]]
WITHOUT_TORCH = {"quoth_sources", "ground", "text", "corpus", "datasets", "quoth/answers/equations"}
FACADE = {"quoth/__init__", "quoth/__main__"}

# Imports that are still upward: module -> modules. The list may only shrink.
UPWARD = {
    # The overloads of `load`, for type checkers: when it runs, it imports what the registry names.
    "quoth/model/loading": {"quoth.npm.model", "quoth.reader.model", "quoth.realm.model", "quoth.zero_ner.model"},
}


def module_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py")) if module_of(path) not in FACADE}
NAMES = {module.replace("/", ".") for module in MODULES}
GROUPS = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
PLUGGED = [EntryPoint(name, value, group) for group, rows in GROUPS.items() for name, value in rows.items()]


def imported(source: str, path: Path) -> set[str]:
    """The modules of our packages that the module at `path` imports; `quoth` for its public names."""
    package = path.relative_to(ROOT).parts[:-1]
    named: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            module = ".".join(base + (node.module.split(".") if node.module else []))
            names = {f"{module}.{alias.name}" for alias in node.names}
            named |= names & NAMES or {module if module != "quoth" else f"quoth.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            target = node.args[0]
            named |= {str(target.value)} if isinstance(target, ast.Constant) else set()
    return {name for name in named if re.match(r"quoth(_[a-z]+)?(\.|$)", name)} - {"quoth.__version__"}


def room_of(module: str) -> str:
    """The room of a path below src, or of a dotted name."""
    package, *parts = module.replace(".", "/").split("/")
    if package != "quoth":
        return package
    return parts[0] if len(parts) > 1 or parts[0] in FLOOR else "ground"


def is_upward(module: str, name: str) -> bool:
    here, there = room_of(module), room_of(name)
    return here != there and FLOOR[there] >= FLOOR[here]


def test_relative_lazy_and_dynamic_imports_are_all_seen() -> None:
    lazy = "def f():\n    import quoth.npm.model\n    import_module('quoth.cli.render')\n    from quoth import errors\n"
    source = "from ..corpus import corpus\nfrom quoth.index.codes import Codes\n" + lazy
    expected = {"quoth.corpus.corpus", "quoth.npm.model", "quoth.cli.render", "quoth.errors", "quoth.index.codes"}
    assert imported(source, ROOT / "quoth" / "encoders" / "x.py") == expected


def test_a_system_that_imports_another_or_a_guest_is_seen() -> None:
    assert is_upward("quoth/npm/model", "quoth.realm.towers")
    assert is_upward("quoth/corpus/bm25", "quoth.index.codes")
    assert is_upward("quoth/hub", "quoth.ner.words")
    assert is_upward("quoth/cli/main", "quoth_eval.report")
    assert is_upward("quoth_serve/command", "quoth_ray.commands")
    assert is_upward("quoth_sources/files", "quoth.storage")
    assert not is_upward("quoth/npm/model", "quoth.npm.blanks")
    assert not is_upward("quoth/zero_ner/model", "quoth.ner.tagger")
    assert not is_upward("quoth/errors", "quoth_sources.errors")


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_its_own_room_and_those_above(module: str) -> None:
    here = room_of(module)
    assert here in FLOOR, f"{here}/ is not a room; the rooms are {', '.join(FLOOR)}"
    for name in sorted(imported(MODULES[module].read_text(encoding="utf-8"), MODULES[module])):
        assert name != "quoth", "import public names from their own modules"
        if is_upward(module, name) and name not in UPWARD.get(module, ()):
            there, above = room_of(name), ", ".join(room for room in FLOOR if FLOOR[room] < FLOOR[here]) or "nothing is"
            pytest.fail(
                f"{module}.py is in {here} ({SUBJECT[here]}) and imports {name}, in {there} ({SUBJECT[there]}), which "
                f"{here} must not know. What both need belongs in {here} or above it ({above}); what needs {there} "
                "belongs there, and is handed in, or named in the registry by a string"
            )


def test_every_upward_import_that_is_listed_is_still_there() -> None:
    for module, names in UPWARD.items():
        gone = names - imported(MODULES[module].read_text(encoding="utf-8"), MODULES[module])
        assert not gone, f"{module} no longer imports {', '.join(gone)}: take it off the list"


def test_the_core_names_no_guest() -> None:
    """But where their names were in the release before."""
    for module, path in MODULES.items():
        if room_of(module) not in GUESTS and module != "quoth/moved":
            found = re.findall("|".join(GUESTS), path.read_text(encoding="utf-8"))
            assert not found, f"{module} names {found[0]}, which is plugged in by an entry point"


@pytest.mark.parametrize("entry", PLUGGED, ids=lambda entry: entry.name)
def test_what_is_plugged_in_is_there(entry: EntryPoint) -> None:
    loaded = entry.load()
    assert room_of(entry.module) in GUESTS
    assert entry.attr is None or loaded.name


@pytest.mark.parametrize("module", [name for name in MODULES if {name, room_of(name)} & WITHOUT_TORCH])
def test_the_first_rooms_know_no_torch(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in names} & {"torch", "transformers", "peft"}


@pytest.mark.parametrize("room", ["npm", "realm", "zero_ner", "reader", "ner"])
def test_the_names_on_a_system_s_page_exist(room: str) -> None:
    page = importlib.import_module(f"quoth.{room}").__doc__ or ""
    names = re.findall(r"`(\w+(?:\.\w+)+)`", page)
    assert names
    for name in names:
        module, rest = name.split(".")[:2], name.split(".")[2:]
        value = importlib.import_module(f"quoth.{'.'.join(module)}")
        for part in rest:
            assert hasattr(value, part), f"quoth.{room} names {name}, which does not exist"
            value = getattr(value, part)


def needed(path: Path) -> set[str]:
    """What a module imports when it runs, in functions too, but not what it imports for types only."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    blocks = (node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    for_types = {inner for block in blocks for inner in ast.walk(block)}
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node not in for_types]
    return {
        name for node in imports for each in node.names for name in (f"{node.module}.{each.name}", str(node.module))
    }


def test_no_chain_of_imports_is_longer_than_needed() -> None:
    paths = [path for path in ROOT.rglob("*.py") if path.name != "__init__.py"]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}
    graph = {name: sorted(needed(path) & names.keys()) for name, path in names.items()}

    @cache
    def chain(name: str) -> list[str]:
        return [name, *max(map(chain, graph[name]), key=len, default=[])]

    library = [name for name in names if room_of(name) not in ("cli", *GUESTS) and name != "quoth.__main__"]
    used = [name for name in names if room_of(name) != "quoth_eval"]
    for some, most in ((library, 15), (used, 17)):
        longest = max(map(chain, some), key=len)
        assert len(longest) <= most, " > ".join(longest)
