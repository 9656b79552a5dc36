"""Pages: sections of texts, tables, pictures and quotations, as one HTML file or as Markdown.

Knows: how each part is written. Does not know: what a page is about. The HTML (`page.html`) needs no script and no
network, and follows the reader's choice of light or dark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from quoth.cli.output import markdown
from quoth.errors import InputError
from quoth_eval.charts import drawable
from quoth_eval.report import Table


@dataclass(frozen=True, slots=True)
class Picture:
    """What draws an SVG, and what it shows."""

    draw: Callable[[], str]
    caption: str


@dataclass(frozen=True, slots=True)
class Quotation:
    """What was asked, the right answer, what was said instead, and the place it was taken from."""

    asked: str
    right: str
    said: str
    source: str = ""
    before: str = ""
    phrase: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading. As a part of another section, it is shown on demand, and has no pictures."""

    title: str
    parts: Sequence[Part]


Part = str | Table | Picture | Quotation | Section
"""A paragraph, a table, a picture, a quotation, or several parts folded up."""


def as_html(title: str, sections: Sequence[Section]) -> str:
    """The page as one HTML file, without pictures if nothing draws them. Raises InputError without jinja2."""
    try:
        from jinja2 import Environment, PackageLoader
    except ImportError:
        remedy = "pip install '.[eval]' in a clone of Quoth, or print the page with: quoth report RUNS --markdown"
        raise InputError(f"the page needs jinja2; {remedy}") from None

    environment = Environment(loader=PackageLoader("quoth_eval", ""), autoescape=True, keep_trailing_newline=True)
    environment.filters["worded"] = lambda table: [
        any(row[at][:1].isalpha() for row in table[1]) for at in range(len(table[0]))
    ]
    style = files("quoth_eval").joinpath("page.css").read_text(encoding="utf-8")
    page = environment.get_template("page.html")
    return page.render(title=title, sections=sections, style=style, pictures=drawable())


def as_markdown(title: str, sections: Sequence[Section], folder: str = "") -> str:
    """The page as Markdown, without pictures, or with those of `write_pictures` if they are in this folder."""
    names = iter([f"{folder}/{name}" for name, _ in _named_pictures(sections)] if folder else [])
    lines = [f"# {title}\n"]
    for section in sections:
        lines += [f"## {section.title}\n", *(line for part in section.parts for line in _markdown(part, names))]
    return "\n".join(lines)


def _markdown(part: Part, names: Iterator[str]) -> Iterator[str]:
    match part:
        case str():
            yield f"{part}\n"
        case Picture():
            if name := next(names, ""):
                yield f"![{part.caption}]({name})\n"
        case Quotation():
            yield f"- {part.asked}\n  right: {part.right}; said: {part.said}"
            yield f"  {part.source}: …{part.before}**{part.phrase}**{part.after}…\n" if part.phrase else ""
        case Section():
            yield f"### {part.title}\n"
            for inside in part.parts:
                yield from _markdown(inside, names)
        case heads, rows:
            yield markdown(heads, rows)


def write_pictures(sections: Sequence[Section], folder: Path) -> int:
    """Write the page's pictures as SVG files into a folder, which is made; returns their number. Each follows the
    reader's choice of light or dark by itself."""
    style = "<style>svg{color:#1c1c1c}@media(prefers-color-scheme:dark){svg{color:#e8e8e8}}</style>"
    folder.mkdir(parents=True, exist_ok=True)
    named = list(_named_pictures(sections))
    for name, picture in named:
        (folder / name).write_text(picture.draw().replace(">", f">{style}", 1), encoding="utf-8")
    return len(named)


def _named_pictures(sections: Sequence[Section]) -> Iterator[tuple[str, Picture]]:
    """The pictures with the names of their files, in order: the section's name and a number."""
    counted = Counter[str]()
    for section in sections:
        name = re.sub(r"[^\w-]+", "-", section.title).strip("-").lower()
        for picture in (part for part in section.parts if isinstance(part, Picture)):
            counted[name] += 1
            yield f"{name}-{counted[name]}.svg", picture
