"""Whether the first row of a table has headings: the columns of a list have, the labels and values of a form have not.

Knows what cells say, and which are bold. Does not know files.
"""

import re
from collections.abc import Sequence

_MOST_WORDS = 10
"""Of a heading."""
_MOSTLY = 0.8
"""The share of values from which they are all of one kind."""
_YEAR = re.compile(r"(1[5-9]|20)\d\d$")
_LABEL = re.compile(
    r"(?i)\b(?:"
    r"account|action|activity|address|age|allergy|amount|answer|applicant|approved|attendees|author|"
    r"birth|blood|budget|building|capital|category|chair|city|class|client|code|colour|comment|"
    r"company|contact|cost|country|course|customer|date|day|deadline|definition|department|"
    r"description|detail|dimensions|director|doctor|due|duration|effect|email|employee|employer|end|"
    r"ending|example|expires|expiry|explanation|family|fax|firm|from|function|gender|grade|group|"
    r"height|id|ingredient|instructor|insurance|invoice|job|language|leader|length|level|location|"
    r"manager|material|meaning|measure|member|mobile|model|name|nationality|note|number|occupation|"
    r"office|opening|order|organi[sz]ation|owner|page|partner|period|person|phase|phone|place|"
    r"position|postcode|prepared|present|price|priority|product|project|purpose|question|reason|"
    r"reference|remarks|responsible|result|reviewed|role|room|section|service|sex|signature|size|"
    r"skill|sponsor|start|state|status|step|street|subject|supervisor|supplier|symptom|task|tel|"
    r"telephone|term|time|title|to|topic|total|translation|treatment|type|unit|url|value|venue|"
    r"version|warranty|website|weight|width|zip"
    r")s?\b"
)
"""What labels of forms and headings are about."""


def is_headed(rows: Sequence[Sequence[str]], bold: Sequence[Sequence[bool]] = ()) -> bool:
    """Whether the first row has headings of what is below; which cells are `bold` is known for some formats alone."""
    first, below = rows[0], rows[1:]
    heads = [said for said in first if said]
    columns = {number for row in below for number, said in enumerate(row) if said}
    if not heads or not columns or 2 * len({*heads}) < len(heads) or 2 * len(heads) < len(columns):
        return False
    if len(heads) == 1 and first[0]:
        return False  # a title, or a part of a form
    if bold and all(bold[0]) != all(row[0] for row in bold if row):
        return all(bold[0])
    return all(map(_may_head, heads)) and not (len(columns) == 2 and first[0] and is_form(rows))


def is_form(rows: Sequence[Sequence[str]]) -> bool:
    """Whether two columns are labels and their values, from the first row on. If in doubt they are: headings that were
    not taken for such stay next to what is below, but a form's first row would be lost."""
    (_, value), *below = (row for row in ([said for said in each if said] for each in rows) if len(row) == 2)
    numbers = sum(_has_digits(said) for _, said in below)
    labels = sum(said.endswith(":") or _LABEL.search(said) is not None for said, _ in below)
    if _has_digits(value):
        return True
    if numbers >= _MOSTLY * len(below):
        return False
    mixed = len(below) > 2 and numbers > (1 - _MOSTLY) * len(below)
    return mixed or 2 * labels >= len(below) or _LABEL.search(value) is None


def _may_head(said: str) -> bool:
    words = said.split()
    is_text = any(map(str.isalpha, said)) or _YEAR.match(said) is not None
    is_sentence = said.endswith(".") and len(words) > _MOST_WORDS / 2
    return is_text and len(words) <= _MOST_WORDS and not is_sentence and not said.endswith(":")


def _has_digits(said: str) -> bool:
    return any(map(str.isdigit, said))
