"""The documentation site: its tutorials run as they are written, its links lead somewhere, and Sphinx builds it."""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import quoth
from quoth.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUN = ["../README.md", "first_steps.md", "tutorials/notes.md", "tutorials/editions.md", "tutorials/train.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BAR = re.compile("[▏▎▍▌▋▊▉█]")
LINK = re.compile(r"\]\(([^)\s]+)\)")
MODULE = re.compile(r"\b(?<![./])quoth(?:_[a-z]+)?(?:\.(?!json\b|md\b)[A-Za-z_]+)+")


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page in their order: language and content."""
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def run_shell(script: str) -> str:
    """Standard output and error of a block; `quoth` runs in this process, all else by the shell."""
    told = io.StringIO()
    for quoths, part in _parts(script):
        if quoths:
            with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                assert main(shlex.split(part)[1:]) == 0, told.getvalue()
        else:
            subprocess.run(["sh", "-e", "-c", part], check=True)
    return told.getvalue()


def _parts(script: str) -> list[tuple[bool, str]]:
    """A script in parts: single commands of `quoth`, and the lines between them."""
    parts: list[tuple[bool, str]] = []
    for line in script.splitlines(keepends=True):
        quoths = line.startswith("quoth ")
        if quoths or not parts or parts[-1][0]:
            parts.append((quoths, line))
        else:
            parts[-1] = (False, parts[-1][1] + line)
    return parts


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_a_script_is_divided_at_its_commands() -> None:
    assert _parts("mkdir a\nls\nquoth x\nquoth y\nls\n") == [
        (False, "mkdir a\nls\n"),
        (True, "quoth x\n"),
        (True, "quoth y\n"),
        (False, "ls\n"),
    ]


@pytest.mark.parametrize("page", RUN)
def test_a_page_runs_as_it_is_written(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of `sh` and `python` are run in their order; a block of `text` is what the command before it prints,
    except for bars and probabilities."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    output, checked = "", 0
    for language, content in blocks(page):
        if language == "sh":
            output = squeezed(run_shell(content))
        elif language == "python":
            example = doctest.DocTestParser().get_doctest(content, names, page, page, 0)
            assert example.examples
            assert doctest.DocTestRunner(verbose=False).run(example, clear_globs=False).failed == 0
            names = example.globs
        elif language == "text":
            for line in content.splitlines():
                assert squeezed(BAR.split(line)[0]) in output
                checked += 1
    assert checked >= 2


def headings(page: Path) -> set[str]:
    """The names by which links address a page's headings: lower case, no punctuation, hyphens for spaces."""
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_to_files_and_headings() -> None:
    broken = []
    for page in PAGES:
        for target in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
            name, _, heading = target.partition("#")
            file = page.parent / name if name else page
            if "://" not in target and not (file.exists() and (not heading or heading in headings(file))):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


def is_there(name: str) -> bool:
    """Whether a dotted name leads to a module, and its next part, if any, is a word of that module."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        folder = ROOT.joinpath("src", *parts[:size])
        for file in (folder.with_suffix(".py"), folder / "__init__.py"):
            if file.exists():
                return size == len(parts) or bool(re.search(rf"\b{parts[size]}\b", file.read_text(encoding="utf-8")))
    return False


def test_a_module_that_is_gone_is_noticed() -> None:
    assert is_there("quoth.npm.model.NPM.fill")
    assert is_there("quoth.NPM.fill")
    assert not is_there("quoth.predictors.phrase")
    assert not is_there("quoth.npm.model.Npm")


def test_modules_are_named_where_they_are() -> None:
    """In every page, and in the table of rooms with what to begin with."""
    pages = [*PAGES, *map(ROOT.joinpath, ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "recipes/gpu/QUEUE.md"))]
    named = {(page.name, name) for page in pages for name in MODULE.findall(page.read_text(encoding="utf-8"))}
    for row in re.findall(r"^\| .*\]\(\.\./src/quoth[\w/]+\) \|.*$", (DOCS / "code.md").read_text(), re.MULTILINE):
        room = row.partition("../src/")[2].partition(")")[0].replace("/", ".")
        named |= {("code.md", f"{room}.{module}") for module in re.findall(r"`(\w+)`", row.rpartition(") |")[2])}
    assert len(named) > 50
    assert {(page, name) for page, name in named if not is_there(name)} == set()


def test_every_page_is_in_the_contents() -> None:
    listed = {
        line
        for _, content in re.findall(r"```(\{toctree\})\n(.*?)```", (DOCS / "home.md").read_text(), re.DOTALL)
        for line in content.splitlines()
        if line and not line.startswith(":")
    }
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"home", "index"}
    assert listed == pages | {"the-index"}


def test_the_reference_has_every_public_name() -> None:
    named = set(re.findall(r"^\.\. auto\w+:: quoth\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE))
    assert named == {*quoth.__all__} - {"__version__"}


def test_drawn_pictures_are_whole_and_described() -> None:
    for name in ("verbs", "keys"):
        picture = ElementTree.parse(DOCS / "images" / f"{name}.svg").getroot()
        namespace = {"svg": "http://www.w3.org/2000/svg"}
        assert picture.find("svg:title", namespace) is not None
        style = picture.find("svg:style", namespace)
        assert style is not None
        assert "prefers-color-scheme: dark" in str(style.text)


def test_the_container_has_the_pinned_packages() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    assert "RUN pip install --no-deps --require-hashes -r requirements.lock\n" in recipe
    assert "RUN pip install --no-deps --no-build-isolation . && pip check\n" in recipe
    locked = re.findall(r"^(\S+==\S+)(.*)$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert len(locked) > 20
    assert all(rest.endswith("\\") for _, rest in locked)  # hashes follow
    assert re.search(r"^USER (?!root)\w+$", recipe, re.MULTILINE)
    assert 'ENTRYPOINT ["quoth", "serve"]' in recipe
    for words in re.findall(r"^COPY (?:--\S+ )*(.+)$", recipe, re.MULTILINE):
        sources = words.split()[:-1]
        assert all(source.startswith("/") or (ROOT / source).exists() for source in sources), words


def test_a_release_is_tested_before_it_is_published() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "test" in jobs["publish"]["needs"]
    assert jobs["test"]["needs"] == "build"


def test_the_lock_of_the_site_fits_its_extra() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    locked = dict(
        line.split("==") for line in (ROOT / "requirements-docs.lock").read_text().split("\n") if "==" in line
    )
    for requirement in extra:
        name, lowest = re.split(">=|,", requirement)[:2]
        assert [int(part) for part in locked[name].split(".")[:2]] >= [int(part) for part in lowest.split(".")[:2]]


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("sphinx", "myst_parser", "furo")),
    reason="the site is built by Sphinx; pip install -r requirements-docs.lock",
)
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    """A broken link, a page in no contents, a docstring that cannot be read: all are errors."""
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Quoth answers questions" in (tmp_path / "index.html").read_text()
    assert "A corpus is a folder of plain files" in (tmp_path / "the-index.html").read_text()
