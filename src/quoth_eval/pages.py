"""Pages: sections of texts, tables, pictures and quotations, as one HTML file or as Markdown.

Knows: how each part is written. Does not know: what a page is about. The HTML needs no script and no network, and
follows the reader's choice of light or dark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from quoth.cli.output import markdown
from quoth_eval.report import Table


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG and what it shows."""

    svg: str
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
class Folded:
    """Parts that are shown on demand, under a title."""

    title: str
    parts: Sequence[Part]


Part = str | Table | Picture | Quotation | Folded
"""A paragraph, a table, a picture, a quotation, or several parts folded up."""


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading. Its place on the page is its number."""

    title: str
    parts: Sequence[Part]


def as_html(title: str, sections: Sequence[Section]) -> str:
    """The page as one HTML file."""
    style = files("quoth_eval").joinpath("page.css").read_text(encoding="utf-8")
    links = [f'<a href="#s{number}">{escape(section.title)}</a>' for number, section in enumerate(sections) if number]
    body = "".join(
        f'<section id="s{number}"><h2>{escape(section.title)}</h2>{"".join(map(_html, section.parts))}</section>'
        for number, section in enumerate(sections)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1><nav>{''.join(links)}</nav>{body}</main></body></html>\n"
    )


def _html(part: Part) -> str:
    match part:
        case str():
            return f"<p>{escape(part)}</p>"
        case Picture():
            return f"<figure>{part.svg}<figcaption>{escape(part.caption)}</figcaption></figure>"
        case Quotation():
            return _html_quotation(part)
        case Folded():
            inside = "".join(map(_html, part.parts))
            return f"<details><summary>{escape(part.title)}</summary>{inside}</details>"
        case heads, rows:
            return _html_table(heads, rows)


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of words are to the left, those of numbers to the right."""
    words = [any(row[at][:1].isalpha() for row in rows) for at in range(len(heads))]
    left = [' class="words"' if each else "" for each in words]
    cells = "".join(f'<th scope="col"{side}>{escape(head)}</th>' for head, side in zip(heads, left, strict=True))
    lines = "".join(
        f"<tr>{''.join(f'<td{side}>{escape(cell)}</td>' for cell, side in zip(row, left, strict=True))}</tr>"
        for row in rows
    )
    return f"<div><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>"


def _html_quotation(part: Quotation) -> str:
    asked, right, said = escape(part.asked), escape(part.right), escape(part.said)
    shown = f"<p>{asked}</p><p>right: <b>{right}</b>; said: <b>{said}</b></p>"
    if part.phrase:
        quoted = f"…{escape(part.before)}<mark>{escape(part.phrase)}</mark>{escape(part.after)}…"
        shown += f"<p><cite>{escape(part.source)}</cite> {quoted}</p>"
    return f"<blockquote>{shown}</blockquote>"


def as_markdown(title: str, sections: Sequence[Section], folder: str = "") -> str:
    """The page as Markdown, without pictures, or with those of `as_pictures` if they are in this folder."""
    names = iter([f"{folder}/{name}" for name in as_pictures(sections)] if folder else [])
    lines = [f"# {title}\n"]
    for section in sections:
        lines += [f"## {section.title}\n", *(line for part in section.parts for line in _markdown(part, names))]
    return "\n".join(lines)


def as_pictures(sections: Sequence[Section]) -> dict[str, str]:
    """The page's pictures as SVG files by their names, in order: the section's name and a number."""
    found, counted = dict[str, str](), Counter[str]()
    for section in sections:
        name = re.sub(r"[^\w-]+", "-", section.title).strip("-").lower()
        for picture in (picture for part in section.parts for picture in _pictures(part)):
            counted[name] += 1
            found[f"{name}-{counted[name]}.svg"] = _alone(picture.svg)
    return found


def _pictures(part: Part) -> Iterator[Picture]:
    if isinstance(part, Picture):
        yield part
    elif isinstance(part, Folded):
        for inside in part.parts:
            yield from _pictures(inside)


def _alone(svg: str) -> str:
    """An SVG outside of a page, which follows the reader's choice of light or dark by itself."""
    style = "<style>svg{color:#1c1c1c}@media(prefers-color-scheme:dark){svg{color:#e8e8e8}}</style>"
    return svg.replace(">", f">{style}", 1) + "\n"


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
        case Folded():
            yield f"### {part.title}\n"
            for inside in part.parts:
                yield from _markdown(inside, names)
        case heads, rows:
            yield markdown(heads, rows)
