"""roff's characters: escapes, strings, special characters, arguments.

Knows what an escape shows. Does not know macros. See groff(7) and groff_char(7).
"""

import re
from collections.abc import MutableMapping

Strings = MutableMapping[str, str]
"""What a page has defined by `.ds`."""

# Names and arguments are bounded: otherwise each of many that never end is looked for in all that follows.
_ESCAPE = re.compile(
    r"""\\(?:
      f(?:\[[^\]]{0,99}\]|\(..|.?) | s(?:[-+]?(?:\(\d\d|\[\d{1,9}\]|'[-+]?\d{1,9}'|\d{1,2}))
    | [mMFgkVnY](?:\[[^\]]{0,99}\]|\(..|[-+]?.?)
    | N'(?P<code>\d{1,7})' | [hvwbDoLlXZxHSARBC]'[^']{0,999}'
    | \*(?:\[(?P<string>[^\]]{0,99})\]|\((?P<two>..)|(?P<one>.))
    | \[(?P<named>[^\]]{0,99})\] | \((?P<pair>..) | (?P<single>.?)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SINGLE = {each: each for each in "-~'`._\\ "} | {"e": "\\", "E": "\\", "~": "\u00a0", "0": " ", "t": "\t", '"': ""}
_STRINGS = {"lq": "“", "rq": "”", 'L"': "“", 'R"': "”", "Aq": "'", "R": "®", "Tm": "™", "C+": "C++", "q": '"'}
_STRINGS |= {"Lt": "<", "Gt": ">", "Le": "≤", "Ge": "≥", "Ne": "≠", "Pm": "±", "Am": "&", "Ba": "|", "--": "—"}
_TABLE = r"""
co © rg ® tm ™ bu • em — en – hy - aq ' dq " lq “ rq ” oq ‘ cq ’ Bq „ bq ‚ Fo « Fc » fo ‹ fc › mi − pl + eq = ti ~ ha ^
ga ` rs \ sl / at @ sh # Do $ Po £ Eu € Ye ¥ ct ¢ la ⟨ ra ⟩ lB [ rB ] lC { rC } -> → <- ← <> ↔ ua ↑ da ↓ <= ≤ >= ≥ != ≠
== ≡ ~= ≅ ~~ ≈ +- ± mu × di ÷ de ° fm ′ sd ″ mc µ sc § ps ¶ dg † dd ‡ if ∞ sr √ *a α *b β *g γ *d δ *l λ *m μ *p π *s σ
*W Ω 12 ½ 14 ¼ 34 ¾ S1 ¹ S2 ² S3 ³ ss ß AE Æ ae æ OE Œ oe œ /O Ø /o ø oA Å oa å :A Ä :a ä :O Ö :o ö :U Ü :u ü :e ë :i ï
'A Á 'a á 'E É 'e é 'I Í 'i í 'O Ó 'o ó 'U Ú 'u ú `A À `a à `E È `e è `i ì `o ò `u ù ^a â ^e ê ^i î ^o ô ^u û ~a ã ~n ñ
~N Ñ ~o õ ,c ç ,C Ç vs š vS Š vz ž vZ Ž -D Ð Sd ð TP Þ Tp þ r! ¡ r? ¿ OK ✓ sq □ ci ○ lz ◊ br │ ul _ ru _ bv │ tf ∴ no ¬
AN ∧ OR ∨ mo ∈ es ∅ ip ∞ Of ª Om º ba | or | u2010 -
"""
_EACH = _TABLE.split()
_NAMED = dict(zip(_EACH[::2], _EACH[1::2], strict=True))
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)')
_BEFORE_COMMENT = re.compile(r'(?:[^\\]++|\\[^"#])*+', re.DOTALL)


def said(text: str, strings: Strings) -> str:
    """A line of text as it is shown."""
    if "\\" not in text:
        return text

    def shown(found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind is None:
            return ""
        value = found[kind]
        if kind == "code":
            return chr(int(value)) if int(value) < 0x110000 else ""
        if kind in ("string", "two", "one"):
            return strings.get(value, _STRINGS.get(value, ""))
        if kind == "single":
            return _SINGLE.get(value, value if value.isalnum() and value not in "cdupraz" else "")
        if re.fullmatch(r"u[0-9A-F]{4,6}(_[0-9A-F]{4,6})*", value):
            return "".join(chr(int(each, 16)) for each in value[1:].split("_") if int(each, 16) < 0x110000)
        return _NAMED.get(value, value[:1] if len(value) > 1 and value[1] in "'`^:~,v" else "")

    return _ESCAPE.sub(shown, text)


def args_of(rest: str) -> list[str]:
    """The arguments of a macro, with their escapes."""
    return [word or quoted.replace('""', '"') for quoted, word in _ARGUMENT.findall(rest)]


def comment_less(line: str) -> str:
    """A line without a comment at its end."""
    before = _BEFORE_COMMENT.match(line)
    assert before is not None
    return before[0].rstrip(" \t") if line.startswith(('\\"', "\\#"), before.end()) else line
