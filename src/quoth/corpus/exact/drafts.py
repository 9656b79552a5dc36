"""The quotations of a draft: in quotation marks of any language, in block quotes, and the source named beside each.

Knows marks, Markdown's quotes and code, and what the readers of files keep of block quotes. Does not know corpora.

A run in marks is a quotation if it has three words or more and is no title, code or measure. Each paragraph of a block
quote is one by itself, as is each paragraph of a quotation that opens its marks again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import NamedTuple

from quoth.corpus.documents import open_raw, read_documents
from quoth.corpus.exact.changed import tokens
from quoth.corpus.segment import blocks_of
from quoth.errors import InputError, RecordError
from quoth.records import Document
from quoth.text.boundaries import begins_note
from quoth.text.folding import UNSPACED_BLOCKS, character_class, code_points
from quoth.text.terms import is_unspaced_character
from quoth_sources.blocks import Block
from quoth_sources.files import format_of
from quoth_sources.source_map import runs_of
from quoth_sources.worker import Worker

LEAST_WORDS = 3
"""Of a quotation in marks: fewer are a term, a name or a word held at a distance."""
MOST_TITLE_WORDS = 12
MOST_SET_IN = 10
"""Block quotes from which on, if most of a text is in them, they only set it in."""
MOST_MARKS = 100
"""Marks of one kind between those of a quotation."""
MOST_SINGLE = 400
"""Characters between typed single marks: they look like apostrophes."""
PAIRS = {
    "“": "”",
    "„": "“”",
    "”": "”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "‘": "’",
    "‚": "‘’",
    "「": "」",
    "『": "』",
}
PAIRS |= {each: each for each in "\"'"}
"""Opening marks, and those that close them."""
_SINGLE = "‘‚'‹›"
_STRAIGHT = "\"'"
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_CODE = re.compile(
    r"(?ms)^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)|(`+)(?!`).{1,2000}?(?<!`)\2(?!`)|\A---\n.*?^---$"
    r"|<!--.{,5000}?-->|<[a-zA-Z/][^<>]*>|\{%.{,500}?%\}|\{\{.{,500}?\}\}"
)
_TYPED = re.compile(r"(?<!`)``(?=[^`\s])(?:(?!``|\n[ \t]*\n)[^`]){1,2000}''(?!')|&(?:[lr]dquo|bdquo|[lr]aquo|quot);")
"""Marks as LaTeX and HTML type them."""
_BLOCK = re.compile(r"(?m)(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z)(?:[ \t]*[^\s>#*+\-`][^\n]*(?:\n|\Z))*)+")
_TAGGED = re.compile(r"(?is)<(blockquote|q)\b[^<>]*>((?:(?!<\1\b).)*?)</\1\s*>")
"""As HTML in Markdown marks it."""
_ENDS_BLOCK = re.compile(r"(?i)</?(?:p|div|br|li|footer|cite)\b")
_BEHIND = re.compile(r"[ \t]*>[ \t>]*")
_LABEL = re.compile(r"\W*(?:\[!|\*\*|__|[A-Z][\w ]{0,24}:)|.*[:,]\s*$", re.DOTALL)
"""How a note or an example in place of a block quote begins or ends."""
_NO_PROSE = re.compile(rf"=|\\\w|__|://|\A[^\s{character_class(code_points(UNSPACED_BLOCKS))}]*\Z")
_SECTION = re.compile(r"\d\.\d[\d.]*,?\s*\Z")
"""What comes before the title of a section: 4.1.3, “…”."""
_ATTRIBUTION = re.compile(r"(?:(?<=[.!?…\"”’»])|(?<=\A)|(?<=\n))\s*(?:—|–|--|―)\s*(?P<source>[^\n—]{1,160})\s*\Z")
_BESIDE = re.compile(
    r"[.,;:]?\s{0,2}(?:\((?P<paren>[^()\n]*(?:\([^()\n]*\)[^()\n]*)?)\)|\[(?P<text>[^\[\]\n]+)\](?:\((?P<href>[^()\s]+)\))?)"
)
_LINK = re.compile(r"\[([^\[\]\n]*)\]\(([^()\s]*)[^()\n]*\)")
_MARKUP = re.compile(
    r"!?\[([^\[\]\n]*)\]\([^()\n]*\)|\[\^[^\[\]\s]+\]|</?(?!(?:del|s|strike)\b)[a-zA-Z][^<>]*>|\\(?=[!-/:-@\[-`{-~])"
)
_RAISED = re.compile(r"(?is)<sup>(.*?)</sup>")
_AS_RAISED = str.maketrans("0123456789+-−in", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁱⁿ")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3})(?=\S)(.{1,1000}?)(?<=\S)\1(?![\w*])", re.DOTALL)
_ANCHOR = re.compile(r"(?is)<a\b[^>]*\bhref\s*=\s*[\"']?([^\"'\s>]+)[^>]*>(.*?)</a>")
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation, `draft[start:end]` without its markup, and the name beside it of what may be its source."""

    text: str
    start: int
    end: int
    source: str = ""


class Draft(NamedTuple):
    """A draft, and what its file says of it: the ranges quoted, and links as their texts and addresses. `is_plain`: the
    text is that of the file, with its markup."""

    document: Document
    quoted: Sequence[tuple[int, int]] = ()
    links: Sequence[tuple[str, str]] = ()
    is_plain: bool = True


def read_drafts(path: Path) -> Iterator[Draft]:
    """The drafts in a file: one, unless it has several documents. Raises InputError if it cannot be read."""
    format = format_of(path)
    plain = format in ("markdown", "text")
    found = False
    for document in _documents(path, plain):
        found = True
        if plain:
            yield Draft(document)
            continue
        links = _links(path) if format == "html" else ()
        yield Draft(document, [*_quoted(document, path, format)], links, False)
    if not found:
        raise InputError(f"{path}: no text in it; give a draft that has one")


def _documents(path: Path, plain: bool) -> Iterator[Document]:
    try:
        yield from read_documents(path, format="text" if plain else None)
    except RecordError as error:
        raise InputError(f"{str(error).removesuffix(f'; {error.remedy}')}; give a draft that can be read") from None


def quotations(draft: str | Document | Draft) -> list[Quotation]:
    """The quotations of a draft, in the order of the text.

    Args:
        draft (str | Document | Draft): A text, with Markdown's markup if it has any, or a document that was read.

    Returns:
        The quotations, each with its range of characters.

    Example:
        >>> [each.text for each in quotations("He said: “An opera in four acts.” It is.")]
        ['An opera in four acts.']
    """
    if isinstance(draft, str):
        draft = Draft(Document("", "", draft))
    elif isinstance(draft, Document):
        draft = Draft(draft, is_plain=False)
    text = draft.document.text
    found = [*_blocks(draft)]
    typed = _TYPED.sub(_as_printed, text) if draft.is_plain else text
    shown = [*typed]
    for start, end in [*_hidden(draft, typed), *((each.start, each.end) for each in found)]:
        shown[start:end] = "\n" * (end - start) if "\n\n" in text[start:end] else " " * (end - start)
    masked = "".join(shown)
    for first, last in _paragraphs(draft, masked):
        found += _in_marks(draft, masked, first, last)
    return sorted(found, key=lambda each: (each.start, each.end))


def _as_printed(typed: re.Match[str]) -> str:
    """Marks as they are printed, in as many characters."""
    if typed[0][0] == "`":
        return f" “{typed[0][2:-2]}” "
    size, before, after = len(typed[0]), typed.string[: typed.start()][-1:], typed.string[typed.end() :][:1]
    closes = typed[0][1] == "r" or (typed[0] == "&quot;" and before.strip() != "" and not after.isalnum())
    mark = {"b": "„", "q": '"'}.get(typed[0][1]) or ("«»" if "aquo" in typed[0] else "“”")[closes]
    return mark.ljust(size) if closes else mark.rjust(size)


def _hidden(draft: Draft, text: str) -> Iterator[tuple[int, int]]:
    """What is not prose."""
    if draft.is_plain:
        yield from (each.span() for each in _CODE.finditer(text))
    else:
        kinds = ("code", "furniture", "contents", "heading")
        yield from ((each.start, each.end) for each in blocks_of(draft.document) if each.kind in kinds)


def _paragraphs(draft: Draft, text: str) -> Iterator[tuple[int, int]]:
    if not draft.is_plain:
        yield from ((each.start, each.end) for each in blocks_of(draft.document))
        return
    at = 0
    for gap in _PARAGRAPH.finditer(text):
        yield at, gap.start()
        at = gap.end()
    yield at, len(text)


def _blocks(draft: Draft) -> Iterator[Quotation]:
    """Block quotes, each paragraph by itself, without the line that names the source."""
    text = draft.document.text
    if not draft.is_plain:
        for start, end in draft.quoted:
            yield from _block(draft, text[start:end], [*range(start, end + 1)])
        return
    for block in _BLOCK.finditer(text):
        kept, at = "", list[int]()
        for line in re.finditer(r"[^\n]*(?:\n|\Z)", block[0]):
            marks = _BEHIND.match(line[0])
            skipped = marks.end() if marks else 0
            kept += line[0][skipped:]
            at += range(block.start() + line.start() + skipped, block.start() + line.end())
        yield from _block(draft, kept, [*at, block.end()])
    tagged = [*_TAGGED.finditer(text)]
    code = [span for span in _hidden(draft, text) if text[span[0]] != "<"] if tagged else []
    for block in tagged:
        if any(start <= block.start() < end for start, end in code):
            continue
        kept, at = "", list[int]()
        for piece in re.finditer(r"<[^<>]*>|[^<]+|<", block[2]):
            is_tag = _TAG.fullmatch(piece[0])
            said = ("\n\n" if _ENDS_BLOCK.match(piece[0]) else "") if is_tag else piece[0]
            kept += said
            at += [block.start(2) + piece.start() + (0 if is_tag else number) for number in range(len(said))]
        yield from _block(draft, kept, [*at, block.end(2)])


def _block(draft: Draft, text: str, places: Sequence[int]) -> list[Quotation]:
    """The paragraphs of a block quote, whose characters are at these places of the draft."""
    found, source, at = list[Quotation](), "", 0
    for gap in [*_PARAGRAPH.finditer(text), None]:
        end, following = (gap.start(), gap.end()) if gap else (len(text), len(text))
        said = text[at:end].rstrip()
        if named := _ATTRIBUTION.search(said):
            source, said = _name(named["source"], draft), said[: named.start()].rstrip()
        first, at = at + len(said) - len(said.lstrip()), following
        said = said.strip()
        if said and not _LABEL.match(said) and not _CODE.search(said) and _num_words(said) >= LEAST_WORDS:
            found.append(Quotation(_plain(said, draft), places[first], places[first + len(said) - 1] + 1))
    return [replace(each, source=source) for each in found]


def _in_marks(draft: Draft, text: str, first: int, last: int) -> Iterator[Quotation]:
    """The quotations in marks of a paragraph; what is nested in one is part of it."""
    at = first
    while at < last:
        mark = text[at]
        if mark not in PAIRS or not _opens(text, at, first, last):
            at += 1
            continue
        end = _closing(text, at, last)
        goes_on = end is None and mark not in _SINGLE and _reopens(text, last, mark)
        if end is None and not goes_on:
            at += 1
            continue
        stop = last if end is None else end
        said = text[at + 1 : stop]
        if _is_quotation(said, text[max(at - 20, first) : at]):
            whole = draft.document.text[at + 1 : stop]  # with its markup
            begin, finish = stop - len(whole.lstrip()), at + 1 + len(whole.rstrip())
            source = _beside(draft, text[stop + 1 : stop + 240]) if end is not None else ""
            yield Quotation(_plain(draft.document.text[begin:finish], draft), begin, finish, source)
        at = stop + 1


def _opens(text: str, at: int, first: int, last: int) -> bool:
    before, after = text[at - 1] if at > first else " ", text[at + 1] if at + 1 < last else " "
    mark = text[at]
    if mark in "»›":
        return (before.isspace() or before in "([—–-") and not after.isspace()
    if mark in "«‹„‚「『“":
        return mark != "“" or not before.isalnum()
    if before.isalnum() or after.isspace() or before in _STRAIGHT:
        return False
    is_letter = after.isalpha() and text[at + 2 : at + 3] in ("'", "’")  # rock 'n' roll
    return not is_letter and (mark != "'" or after.isalpha())


def _closing(text: str, at: int, last: int) -> int | None:
    """Where the mark that closes another is; None if none does in the paragraph."""
    mark, depth, seen = text[at], 1, 0
    for place in range(at + 1, min(last, at + MOST_SINGLE) if mark == "'" else last):
        each = text[place]
        if each not in PAIRS[mark] and each != mark:
            continue
        if (seen := seen + 1) > MOST_MARKS:
            return None
        before, after = text[place - 1], text[place + 1] if place + 1 < last else " "
        if mark in "'‘‚":
            if each in PAIRS[mark] and not before.isspace() and not after.isalnum() and _num_words(text[at:place]) > 0:
                return place
        elif mark in '"”':
            if not before.isspace() and not after.isalnum():
                return place
            if before.isspace() and not after.isspace():
                return None  # another begins: this one was no opening mark
        elif each in PAIRS[mark]:
            depth -= 1
            if not depth:
                return place
        elif each == mark:
            depth += 1
    return None


def _reopens(text: str, last: int, mark: str) -> bool:
    """Whether the next paragraph begins with this mark, as one does in which a quotation goes on."""
    return text[last : last + 40].lstrip(" \t\r\n>").startswith(mark)


def _is_quotation(said: str, before: str) -> bool:
    """Whether a run in marks, behind these words, is a quotation: no term, title, code or measure."""
    words = [each.cased for each in tokens(said) if each.is_word]
    if _num_words(said) < LEAST_WORDS or _NO_PROSE.search(said) or _SECTION.search(before):
        return False
    is_sentence = (
        said.lstrip()[:1].isupper() or said.rstrip()[-1:] in tuple(".,;:!?…。！？") or is_unspaced_character(said[0])
    )
    if len(words) == LEAST_WORDS and not is_sentence:
        return False
    telling = [each for each in words if len(each) > 4 or each[:1].isupper()]
    is_title = words[0][:1].isupper() and all(each[:1].isupper() or each[:1].isdigit() for each in telling)
    least = 3 if said.rstrip()[-1:] in tuple(".,;") else 2
    return not (is_title and least <= len(telling) and len(words) <= MOST_TITLE_WORDS)


def _num_words(text: str) -> int:
    """The words of a text, without numbers; none of a formula, whose words are letters."""
    words = [each.folded for each in tokens(text) if each.is_word and any(map(str.isalpha, each.folded))]
    long = [each for each in words if len(each) > 1 or is_unspaced_character(each)]
    return len(words) if len(long) > 1 else len(long)


def _beside(draft: Draft, after: str) -> str:
    """The name in a parenthesis or a link that directly follows a quotation; "" if there is none."""
    if match := _BESIDE.match(after):
        if match["href"]:
            return match["href"]
        return _name(match["paren"] or match["text"] or "", draft)
    said = after.lstrip(" .,;:(—–")
    return next((href for name, href in draft.links if name and said.startswith(name)), "")


def _name(said: str, draft: Draft) -> str:
    """What names a source: the address of a link in it, or the words themselves."""
    if link := _LINK.search(said):
        return link[2]
    href = next((href for name, href in draft.links if name and name == said.strip()), "")
    return href or _EMPHASIS.sub(r"\2", said).strip()


def _plain(text: str, draft: Draft) -> str:
    """A text without Markdown's markup."""
    if not draft.is_plain:
        return text
    text = _RAISED.sub(_raised, text)
    return unescape(_EMPHASIS.sub(r"\2", _MARKUP.sub(r"\1", text)))


def _raised(raised: re.Match[str]) -> str:
    """What is raised, but for the mark of a note: 10⁶, 1st."""
    shown = _TAG.sub("", _MARKUP.sub(r"\1", raised[1])).translate(_AS_RAISED)
    if not shown.isalnum() and not set(shown) <= {*"⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹"}:
        return ""
    if shown.isalpha() and len(shown) > 1:
        return raised[1]  # 1ˢᵗ
    before = raised.string[: raised.start()][-4:]
    is_note = begins_note(f"{before}²", len(before)) or before[-1:] in tuple(".,;:!?\"'”’»)")
    return "" if is_note else shown


def _quoted(document: Document, path: Path, format: str | None) -> Iterator[tuple[int, int]]:
    """The ranges that a file marks as quoted."""
    styled = _styled(path) if format == "docx" else set[str]()
    _, runs = runs_of(document.source_map, 0, len(document.text)) if document.source_map else ("", ())
    blocks = blocks_of(document)
    starts, whole, inline, parts = [each.start for each in blocks], dict[int, Block](), list[Block](), set[str]()
    for start, end, *place in runs:
        elements = str(place[-1]).split(" > ")
        names = [each.partition(":")[0] for each in elements]
        block = blocks[max(bisect_right(starts, start) - 1, 0)]
        if "blockquote" in names or elements[-1] in styled:
            parts.add(" > ".join(elements[: names.index("blockquote") + 1 if "blockquote" in names else None]))
            if block.kind == "paragraph":
                whole.setdefault(block.start, block)
        elif "q" in names:
            inline.append(Block(start, end, "q"))
    set_in = sum(each.end - each.start for each in whole.values())
    is_layout = len(parts) >= MOST_SET_IN and 2 * set_in > len(document.text)
    yield from ((each.start, each.end) for each in [*inline, *([] if is_layout else whole.values())])


def _styled(path: Path) -> set[str]:
    """The paragraphs of a Word document that have a style for quotations."""
    with open_raw(path) as (stream, _), Worker() as worker:
        made = worker.made("quoth_sources.docx.quoted", stream.read())
    return {f"paragraph {number}" for number in made.decode().split()}


def _links(path: Path) -> list[tuple[str, str]]:
    """The links of a web page: their texts, and where they lead."""
    with open_raw(path) as (stream, _):
        page = stream.read().decode("utf-8", "replace")
    return [(" ".join(unescape(_TAG.sub("", text)).split()), unescape(href)) for href, text in _ANCHOR.findall(page)]
