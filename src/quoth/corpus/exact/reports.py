"""Reports of checked quotations: words marked where they differ, a page that stands alone, and SARIF 2.1.0.

Knows verdicts and drafts. Does not know corpora or terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote as as_url

from quoth import __version__
from quoth.corpus.exact.changed import LOUD, Change
from quoth.corpus.exact.drafts import Draft
from quoth.corpus.exact.gate import MOST_APART, Verdict
from quoth.records import Evidence, quote_of

MEANINGS = {
    "verbatim": "It occurs word for word.",
    "typographic": "It occurs; only typography differs, as a careful editor may change it.",
    "elided": f"Its parts occur in order in one document; no ellipsis leaves out more than {MOST_APART:,} characters.",
    "altered": "It differs from the nearest place in the corpus.",
    "absent": "Nothing in the corpus is near it.",
    "unreadable": "The source that is named is not in the corpus, or is not text; nothing is said of the quotation.",
}
_EXCERPT = 160
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#1d1d1f;background:#fff}
article{border-left:.4rem solid #2a7d46;padding:.1rem 1rem;margin:1.2rem 0;background:#f6f8f6}
article.altered,article.absent{border-color:#b3261e;background:#fdf4f3}
article.unreadable{border-color:#a06a00;background:#fdf8ee}
blockquote{margin:.4rem 0}mark{background:#ffd4cf;font-weight:600}.source mark{background:#cfe8d6}
small{color:#555}strong.loud{color:#b3261e}
"""


class Checked(NamedTuple):
    """A draft under its name, and the verdicts on its quotations."""

    name: str
    draft: Draft
    verdicts: Sequence[Verdict]

    def place(self, verdict: Verdict) -> str:
        """Where a quotation is in the draft, as people are told."""
        document = self.draft.document
        if self.draft.is_plain:
            return f"{self.name}:{document.text.count(chr(10), 0, verdict.start) + 1}"
        located = Evidence("", "", 0, verdict.start, verdict.end, "", 0, source_map=document.source_map).locate()
        return f"{self.name}: {located}" if located else f"{self.name}: character {verdict.start:,}"

    def to_dict(self, verdict: Verdict) -> dict[str, Any]:
        """A verdict as JSON has it, with its draft."""
        return {"draft": self.name, **verdict.to_dict()}


def told(change: Change) -> str:
    """A change in words, what a reader must be told first."""
    loud = ", ".join(each for each in change.concerns if each in LOUD)
    other = next((each for each in change.concerns if each in ("case", "punctuation")), "")
    what = f"{loud.upper()} " if loud else f"{other} " if other else ""
    mine, its = _cut(change.quoted), _cut(change.source)
    if change.kind == "omitted":
        return f"{what}left out: {change.source_end - change.source_start:,} characters"
    return {
        "changed": f"{what}changed: “{mine}” for “{its}”",
        "missing": f"{what}missing: “{its}”",
        "added": f"{what}added: “{mine}”",
        "moved": f"{what}moved: “{mine or its}”",
        "replaced": f"{what}replaced: “{its}” by “{mine}”" if its else f"{what}inserted: “{mine}”",
        "apart": "its parts occur, but not near each other and in order in one document",
        "source": f"it is not in “{mine}”, which is named, but in “{its}”",
    }[change.kind]


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT // 2]} […] {text[-_EXCERPT // 2 :]}"


def marked_quote(verdict: Verdict) -> list[tuple[str, bool]]:
    """The quotation in pieces, with whether each was changed or added."""
    return _pieces(verdict.quote, 0, [(each.start, each.end) for each in _of_words(verdict.changes)])


def marked_source(verdict: Verdict, place: Evidence) -> list[tuple[str, bool]]:
    """The words at a place in pieces, with whether each was changed or is missing from the quotation."""
    changes = (each for each in _of_words(verdict.changes) if each.document_id == place.document_id)
    return _pieces(quote_of(place), place.start, [(each.source_start, each.source_end) for each in changes])


def _of_words(changes: Sequence[Change]) -> Iterator[Change]:
    return (each for each in changes if each.kind not in ("apart", "source", "omitted"))


def _pieces(text: str, first: int, ranges: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    pieces, at = list[tuple[str, bool]](), 0
    for start, end in sorted((start - first, end - first) for start, end in ranges):
        if at <= start < end <= len(text):
            pieces += [(text[at:start], False), (text[start:end], True)]
            at = end
    return [piece for piece in [*pieces, (text[at:], False)] if piece[0]]


def as_html(checked: Sequence[Checked]) -> str:
    """A page that needs no other file: every quotation with its verdict, its places and its changes."""
    counts: dict[str, int] = {}
    for each in checked:
        for verdict in each.verdicts:
            counts[verdict.status] = counts.get(verdict.status, 0) + 1
    summary = ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "no quotations"
    body = "".join(_article(each, verdict) for each in checked for verdict in each.verdicts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Quotations</title><style>{_STYLE}</style>'
        f"</head><body><h1>Quotations</h1><p>{summary}</p>{body}</body></html>\n"
    )


def _article(checked: Checked, verdict: Verdict) -> str:
    items = "".join(
        f"<li>{'<strong class=loud>' if each.is_loud else '<span>'}{escape(told(each))}"
        f"{'</strong>' if each.is_loud else '</span>'}</li>"
        for each in verdict.changes
    )
    places = "".join(
        f'<p class="source"><small>{escape(where(place))}</small><br>“{_html(marked_source(verdict, place))}”</p>'
        for place in verdict.evidence[:3]
    )
    return (
        f'<article class="{verdict.status}"><small>{escape(checked.place(verdict))}</small> '
        f'<b title="{escape(MEANINGS[verdict.status])}">{verdict.status}</b>'
        f"<blockquote>“{_html(marked_quote(verdict))}”</blockquote><ul>{items}</ul>{places}</article>"
    )


def _html(pieces: Sequence[tuple[str, bool]]) -> str:
    return "".join(f"<mark>{escape(text)}</mark>" if is_marked else escape(text) for text, is_marked in pieces)


def where(place: Evidence) -> str:
    """Where a place is, as people are told."""
    located = place.locate()
    title = f" ({place.title})" if place.title != place.document_id else ""
    return f"{place.document_id}{title}, {located or f'characters {place.start:,}–{place.end:,}'}"


def as_sarif(checked: Sequence[Checked], fail_on: Sequence[str]) -> dict[str, Any]:
    """The verdicts in the Static Analysis Results Interchange Format, as GitHub reads it: those of `fail_on` are
    errors, and faithful quotations no results, each of which it shows as an alert."""
    about = ("shortDescription", "fullDescription", "help")
    rules = [{"id": name, **{each: {"text": said} for each in about}} for name, said in MEANINGS.items()]
    driver = {"name": "quoth", "version": __version__, "rules": rules}
    results = [
        _result(each, verdict, "error" if verdict.status in fail_on else "warning")
        for each in checked
        for verdict in each.verdicts
        if verdict.status in fail_on or not verdict.is_faithful
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(checked: Checked, verdict: Verdict, level: str) -> dict[str, Any]:
    said = "; ".join([f"{verdict.status}: “{_cut(verdict.quote)}”", *map(told, verdict.changes)])
    place: dict[str, Any] = {"artifactLocation": {"uri": as_url(PurePath(checked.name).as_posix())}}
    place["region"] = {"startLine": 1}  # GitHub requires a line, which other formats have not
    if checked.draft.is_plain:
        text = checked.draft.document.text
        (line, column), (end_line, end_column) = (_line_and_column(text, at) for at in (verdict.start, verdict.end))
        place["region"] = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    return {
        "ruleId": verdict.status,
        "ruleIndex": [*MEANINGS].index(verdict.status),
        "level": level,
        "message": {"text": said},
        "locations": [{"physicalLocation": place}],
    }


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
