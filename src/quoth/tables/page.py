"""A table as a page that stands alone: sorted and searched in the browser, every quotation in its sentence.

Knows: HTML, and the few lines of script that sort. Does not know: other forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from quoth.storage import create
from quoth.tables.cells import Cell, Row
from quoth.tables.columns import Column
from quoth.tables.told import Rows, place_of, sentence_of, shown

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<title>Table</title><style>
body{font:15px/1.4 system-ui,sans-serif;margin:1rem}table{border-collapse:collapse}
th,td{border:1px solid #ccc;padding:.3rem .5rem;vertical-align:top;text-align:left;max-width:28rem}
th{position:sticky;top:0;background:#f3f3f3}th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid}summary{cursor:pointer}blockquote{margin:.3rem 0;color:#333}
.empty,.error,small{color:#666}mark{background:#fd6}
@media(prefers-color-scheme:dark){body{background:#111;color:#eee}th{background:#222}blockquote{color:#ccc}
mark{color:#000}.empty,.error,small{color:#aaa}}
</style></head><body>
<p><label>Show rows with <input type="search" id="find"></label></p><table><thead><tr>"""
TAIL = """</tbody></table><script>
const body=document.querySelector("tbody");
document.querySelectorAll("th").forEach((head,at)=>head.querySelector("button").onclick=()=>{
  const up=head.getAttribute("aria-sort")!=="ascending";
  document.querySelectorAll("th").forEach(each=>each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort",up?"ascending":"descending");
  const said=row=>row.cells[at].dataset.v, own=new Intl.Collator(undefined,{numeric:true});
  const by=(a,b)=>{
    const [x,y]=[said(a),said(b)];
    if(!x||!y)return x?-1:y?1:0;
    const order=isNaN(x)||isNaN(y)?own.compare(x,y):x-y;
    return up?order:-order;
  };
  body.append(...[...body.rows].sort(by));
});
document.getElementById("find").oninput=event=>{
  const word=event.target.value.toLowerCase();
  for(const row of body.rows)row.hidden=!row.textContent.toLowerCase().includes(word);
};
</script></body></html>
"""


def write_page(part: Path, columns: Sequence[Column], rows: Rows) -> None:
    """The page, row by row; an empty cell shows what came nearest."""
    with create(part) as stream:
        for piece in _pieces(columns, rows):
            stream.write(piece.encode("utf-8", "replace"))


def _pieces(columns: Sequence[Column], rows: Rows) -> Iterator[str]:
    yield HEAD
    for name in ("Document", *(each.name for each in columns)):
        yield f'<th scope="col"><button>{_text(name)}</button></th>'
    yield "</tr></thead><tbody>\n"
    for row in rows():
        yield f"<tr>{_document(row)}{''.join(_cell(row.cells[each.name]) for each in columns)}</tr>\n"
    yield TAIL


def _document(row: Row) -> str:
    title = f"<br><small>{_text(row.title)}</small>" if row.title != row.document_id else ""
    error = f'<br><span class="error">{_text(row.error)}</span>' if row.error else ""
    return f'<td data-v="{escape(row.document_id)}">{_text(row.document_id)}{title}{error}</td>'


def _cell(cell: Cell) -> str:
    if not cell.text:
        known = cell.candidate
        inside = f'<details><summary class="empty">–</summary>{_quoted(known)}</details>' if known else ""
        return f'<td data-v="">{inside}</td>'
    value = cell.value["amount"] if isinstance(cell.value, dict) else cell.value
    said = cell.text if cell.value is None else shown(cell.value)
    sort = escape(cell.text if value is None else shown(value))
    return f'<td data-v="{sort}"><details><summary>{_text(said)}</summary>{_quoted(cell)}</details></td>'


def _quoted(cell: Cell) -> str:
    if not cell.evidence:
        return ""
    before, quotation, after = map(_text, sentence_of(cell))
    place = f"{100 * cell.probability:.0f} % · {_text(place_of(cell))}"
    link = cell.evidence[0].get("link", "")
    where = f'<a href="{escape(link)}">{place}</a>' if link else place
    return f"<blockquote>{before}<mark>{quotation}</mark>{after}<br><small>{where}</small></blockquote>"


def _text(text: str) -> str:
    """Text of a document: no markup, nothing that turns the rest of the line around."""
    return f"<bdi>{escape(text)}</bdi>" if text else ""
