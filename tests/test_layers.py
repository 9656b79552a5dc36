"""A layer imports only lower layers, wherever it stands: at the top, in a function, for types only."""

import ast
from functools import cache
from pathlib import Path

import pytest

import quoth

ROOT = Path(quoth.__file__).parent
LAYERS = {
    "errors": 0,
    "hub": 0,
    "records": 0,
    "results": 0,
    "config": 0,
    "fields": 0,
    "memory": 0,
    "files": 0,
    "storage": 0,
    "arrays": 0,
    "types": 0,
    "timing": 0,
    "corpus": 1,
    "citations": 2,
    "datasets": 3,
    "scoring": 3,
    "tokenizers": 2,
    "encoders": 4,
    "ner": 5,
    "retrieval": 6,
    "predictors": 7,
    "models": 8,
    "pipelines": 9,
    "integrations": 9,
    "scale": 9,
    "training": 10,
    "service": 10,
    "cli": 11,
    "render": 11,
}
FACADE = {"__init__", "__main__"}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).with_suffix("").as_posix() not in FACADE)


def imported(source: str, path: Path) -> set[str]:
    """The parts of quoth that the module at `path` imports: the first name after `quoth.`."""
    package = ["quoth", *path.relative_to(ROOT).parts[:-1]]
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            names = [[*module, alias.name] for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            target = node.args[0]
            names = [target.value.split(".")] if isinstance(target, ast.Constant) else []
        else:
            continue
        found |= {name[1] for name in names if name[0] == "quoth" and len(name) > 1}
    return found - {"__version__"}


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def test_relative_lazy_and_dynamic_imports_are_all_seen() -> None:
    lazy = "def f():\n    import quoth.models.npm\n    import_module('quoth.render')\n"
    source = "from ..corpus import corpus\n" + lazy
    assert imported(source, ROOT / "encoders" / "x.py") == {"corpus", "models", "render"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_its_own_or_lower_layers(path: Path) -> None:
    here = part_of(path)
    for part in imported(path.read_text(encoding="utf-8"), path):
        assert part in LAYERS, f"{part} is in no layer; import public names from their own modules"
        assert LAYERS[part] <= LAYERS[here], f"{here} (layer {LAYERS[here]}) imports {part} (layer {LAYERS[part]})"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_training_and_scale_do_not_know_one_another(path: Path) -> None:
    here, other = part_of(path), {"training": "scale", "scale": "training"}
    assert other.get(here) not in imported(path.read_text(encoding="utf-8"), path)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_library_does_not_know_the_laboratory(path: Path) -> None:
    assert "quoth_eval" not in path.read_text(encoding="utf-8"), "quoth_eval is plugged in by its entry points"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_lowest_layers_know_no_torch(path: Path) -> None:
    if LAYERS[part_of(path)] <= LAYERS["datasets"]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {name.split(".")[0] for name in names} & {"torch", "transformers", "peft"}


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
    names = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in paths}
    graph = {name: sorted(needed(path) & names.keys()) for name, path in names.items()}

    @cache
    def chain(name: str) -> list[str]:
        return [name, *max(map(chain, graph[name]), key=len, default=[])]

    library = [name for name in names if not name.startswith(("quoth.cli.", "quoth.__main__"))]
    for some, most in ((library, 13), (list(names), 16)):
        longest = max(map(chain, some), key=len)
        assert len(longest) <= most, " > ".join(longest)
