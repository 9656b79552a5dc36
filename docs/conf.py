"""The documentation site: `make site` builds it from the pages of this folder and from docstrings.

Knows how pages are named, and what of the repository they may link to. Does not know what they say.
"""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.project import Project

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from quoth import FillOptions, __version__  # noqa: E402
from quoth.fields import fields_of, spelled  # noqa: E402

project = "Quoth"
copyright = "the authors of Quoth, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
default_role = "code"  # a word between single backticks in a docstring

# Types in signatures are shown, but most are of other packages or private. Links between pages are still checked.
nitpick_ignore_regex = [(r"py:.*", r".*")]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 120
python_maximum_signature_line_length = 120
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"Quoth {version}"
html_copy_source = False
html_show_sphinx = False

# In the repository, `index.md` is about the index. On the site, `index` must be the home page.
_NAMES = {"home": "index", "index": "the-index"}
_discover = Project.discover


def _discover_renamed(self: Project, *args: Any, **options: Any) -> set[str]:
    """The pages of the folder, under their names on the site."""
    _discover(self, *args, **options)
    paths = {_NAMES.get(name, name): path for name, path in self._docname_to_path.items()}
    self._docname_to_path = paths
    names = {path: name for name, path in paths.items()}
    self._path_to_docname = names | {self.srcdir / path: name for path, name in names.items()}
    self.docnames = set(paths)
    return self.docnames


def _without_links_to_code(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to the repository's folders and sources are only words here: the site does not contain them."""
    folder = app.project.doc2path(name, absolute=True).parent

    def words(link: re.Match[str]) -> str:
        inside = (folder / link[2].split("#")[0]).resolve().is_relative_to(app.srcdir)
        return link[0] if inside else link[1]

    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)]+)\)", words, source[0])


def _plain_signature(app: Sphinx, what: str, name: str, value: Any, *rest: Any) -> tuple[str, None] | None:
    """The keywords of a record of options, without the bounds that their types carry."""
    if value is not FillOptions:
        return None
    keywords = [f"{each.name}: {spelled(each.kind)} = {each.default!r}" for each in fields_of(value).values()]
    return f"(*, {', '.join(keywords)})", None


def _with_meanings(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """What each field of a record of options means."""
    if value is FillOptions:
        lines += ["Args:", *(f"    {each.name}: {each.meaning}" for each in fields_of(value).values()), ""]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _plain_signature)
    app.connect("autodoc-process-docstring", _with_meanings, priority=400)  # before Args are understood
    app.connect("source-read", _without_links_to_code)
    Project.discover = _discover_renamed  # type: ignore[method-assign]
