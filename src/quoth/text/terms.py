"""Text to search terms, the same way for passages and queries, in any script.

Knows Unicode, the scripts written without spaces and English stems. Does not know indexes, scores or corpora.

1. NFKC and case folding; characters that only control the display (joiners, soft hyphens, direction marks) are removed.
   Raised and lowered digits and fractions are no part of a number next to them: 10⁶ is not 106, 2½ is not 21/2.
2. Diacritics of Latin and Greek letters are removed: München equals Munchen, and Καζαντζάκης equals ΚΑΖΑΝΤΖΑΚΗΣ.
3. A word is a run of letters and digits with their combining marks; ASCII words are stemmed (Porter2 by
   PyStemmer, the Snowball project's own binding).
4. Scripts written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) and Hangul, where particles stick
   to the noun, give overlapping pairs of characters with their marks; a single character stays one term.
5. What is written in one piece is a term too, without what is inside it, so that it is found however it is typed:
   e-mail also gives email, SKU-8847 sku8847, O'Neill oneill, 1,250,000 also 1250000.
6. C++ and C# are terms of their own, and not c; behind a longer word, the signs give one more term (Notepad++).
7. A word with something raised behind it is a term without that, too: Brandt⁵ and Brandt, m2 and m.

The words of a corpus are on disk, along with the number of the analyzer that they come from, by which it is searched
for ever: a change here is a new number. The first one lacks 5 to 7, and reads 10⁶ as 106.
"""

import re
import threading
import unicodedata
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from quoth.text.folding import INVISIBLE_BLOCKS, UNSPACED_BLOCKS, character_class, code_points

MAX_TERM_LENGTH = 128
ANALYZERS = FIRST, LATEST = 1, 2

_LATIN_AND_GREEK_BLOCKS = ((0xC0, 0x2AF), (0x370, 0x3FF), (0x1E00, 0x1FFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF))
_UNDECOMPOSED_LETTERS = {"æ": "ae", "œ": "oe", "þ": "th", **dict(zip("ðøđħıłŋŧ", "dodhilnt", strict=True))}
_HYPHENS_AND_APOSTROPHES = {0x2010: "-", 0x2011: "-", 0x2018: "'", 0x2019: "'"}
_INSIDE, _SIGNS = "[-'.,]", r"\+\+|[+#](?![^\W_])"
_WORD = "[^-'.,+#]+"
_UNIT = re.compile(
    # A number whose digits are grouped: a dot is a decimal point unless there are two.
    rf"(?<!\d[.,])\d{{1,3}}(?:(?:,\d{{3}}){{1,9}}(?!,?\d|{_WORD})|(?:\.\d{{3}}){{2,9}}(?!\.?\d|{_WORD}))"
    rf"|{_WORD}(?:['-]{_WORD})*[+#]*"
)
"""What is one within a piece."""
_stemmer_lock = threading.Lock()


def analyse(text: str, analyzer: int = LATEST) -> list[str]:
    """The terms of a text in order, with repetitions; an empty list if it has no letters or digits.

    Takes any string; words longer than `MAX_TERM_LENGTH` characters are cut.
    """
    words, joined, _ = analyse_apart(text, analyzer)
    return words + joined


class Analysis(NamedTuple):
    """The terms of a text: those of its words, those of several words written in one piece, which add nothing to its
    length, and every single character of the unspaced runs.

    With pairs alone, a one-character query (京 in 北京) would find nothing. So an index keeps these characters in a
    field of their own, and searches it if `is_unspaced_character(term)`.
    """

    words: list[str]
    joined: list[str]
    characters: list[str]


def analyse_apart(text: str, analyzer: int = LATEST) -> Analysis:
    """`analyse(text)`, by what the terms are."""
    folded = text.lower() if text.isascii() else normalise(text, analyzer)
    pieces: list[str] = (_ascii_pieces if folded.isascii() else _pieces)(analyzer).findall(folded)
    joined = [term for piece in pieces if not piece.isalnum() for term in _joined(piece)]
    if folded.isascii():  # also many a text with accents
        return Analysis(list(chain.from_iterable(map(_words, pieces))), joined, [])
    words, characters = list[str](), list[str]()
    for piece in pieces:
        if run := _characters(piece):
            words += [left + right for left, right in pairwise(run)] or run
            characters += run
        else:
            words += _words(piece)
    return Analysis(words, joined, characters)


def is_unspaced_character(term: str) -> bool:
    """Whether a term is one character (with its marks) of a script that is searched by pairs."""
    return len(_characters(term)) == 1


def normalise(text: str, analyzer: int = LATEST) -> str:
    """NFKC, case folded, without invisible characters and without the diacritics of Latin and Greek letters; with words
    that something raised follows also without it."""
    table, folded, marks = _folding()
    odd, apart = _odd_digits()
    if analyzer != FIRST and odd.search(text := _with_bare_words(text)):
        text = apart.sub(" ", text)
    # `translate` looks up every character: only the runs of those that it changes are given to it.
    plain = folded.sub(lambda run: run[0].translate(table), unicodedata.normalize("NFKC", text))
    return marks.sub("", plain.casefold())


def _characters(piece: str) -> list[str]:
    if piece.isascii() or not (character := _unspaced_character()).match(piece):
        return []
    return [each[: MAX_TERM_LENGTH // 2] for each in character.findall(piece)]


@lru_cache(maxsize=1 << 18)
def _words(piece: str) -> tuple[str, ...]:
    """The terms of the words in a piece."""
    if piece.isalnum():
        return (_stem(piece),)
    return tuple(term for unit in _UNIT.findall(piece) for term in _of_unit(unit)[0])


@lru_cache(maxsize=1 << 16)
def _joined(piece: str) -> tuple[str, ...]:
    """The terms of several words in one piece."""
    return tuple(term for unit in _UNIT.findall(piece) for term in _of_unit(unit)[1])


def _of_unit(unit: str) -> tuple[list[str], list[str]]:
    """The terms of a unit's words, and those of what is one in it."""
    words = re.split(_INSIDE, bare := unit.rstrip("+#"))
    terms, joined, whole = [*map(_stem, words)], list[str](), "".join(words)
    if bare != unit and not bare[-1].isdigit():
        named = (words[-1] + unit[len(bare) :])[:MAX_TERM_LENGTH]
        terms[-1], joined = (named, []) if len(words[-1]) == 1 else (terms[-1], [named])
    # 3-5 is not 35, but 555-203-1569 may be typed without its hyphens.
    is_one = len(words) > 2 or "," in bare or (len(words) == 2 and not whole.isdigit())
    is_ending = bare[-2:-1] == "'"  # of don't, Ann's
    if is_one and not is_ending and len(whole) <= MAX_TERM_LENGTH:
        joined.append(_stem(whole))
    return terms, joined


def _stem(word: str) -> str:
    if len(word) > MAX_TERM_LENGTH or not (word.isascii() and word.isalpha()):
        return word[:MAX_TERM_LENGTH]
    with _stemmer_lock:
        return str(_english_stemmer().stemWord(word))


@cache
def _english_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english", 0)


@cache
def _ascii_pieces(analyzer: int) -> re.Pattern[str]:
    """What matches a piece of an ASCII text."""
    return re.compile(_in_one_piece("[a-z0-9]+", analyzer))


def _in_one_piece(word: str, analyzer: int) -> str:
    return word if analyzer == FIRST else f"{word}(?:{_INSIDE}{word})*(?:{_SIGNS})?"


@cache
def _pieces(analyzer: int) -> re.Pattern[str]:
    """What matches a piece of any text, or an unspaced run."""
    unspaced, marks = _classes()
    letters = rf"[^\W_{unspaced}]"
    word = f"{letters}+(?:[{marks}]+{letters}*)*"
    return re.compile(f"{_in_one_piece(word, analyzer)}|(?:[{unspaced}][{marks}]*)+")


@cache
def _unspaced_character() -> re.Pattern[str]:
    """What matches a character of an unspaced run, with its marks."""
    unspaced, marks = _classes()
    return re.compile(f"[{unspaced}][{marks}]*")


@cache
def _classes() -> tuple[str, str]:
    """The letters that are written without spaces, and the combining marks, for a class of characters in a pattern."""
    category = [unicodedata.category(chr(code)) for code in range(0x32400)]
    letters = (code for code in code_points(UNSPACED_BLOCKS) if category[code][0] == "L" or category[code] == "Nl")
    unspaced = character_class(letters)
    marks = character_class(code for code in range(0x300, 0x20000) if category[code] in ("Mn", "Mc"))
    return unspaced, marks


def _with_bare_words(text: str) -> str:
    """With each word that something raised follows once more, without it."""
    raised, word = _raised()
    return word.sub(r"\1 \1\2", text) if raised.search(text) else text


@cache
def _odd_digits() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A character that NFKC makes a digit or begins with one: raised, lowered, a fraction, in a circle; and where it
    has to be kept apart from a digit next to it. Several raised ones are one number, and so are lowered ones."""
    kinds: dict[str, list[int]] = {"<super>": [], "<sub>": [], "": []}
    for code in range(0xB2, 0x1F10B):
        if unicodedata.category(chr(code)) in ("No", "So") and unicodedata.normalize("NFKC", chr(code))[0].isdecimal():
            kind = unicodedata.decomposition(chr(code)).partition(" ")[0]
            kinds[kind if kind in kinds else ""].append(code)
    raised, lowered, other = map(character_class, kinds.values())
    pairs = (
        (raised, rf"\d{lowered}{other}"),
        (lowered, rf"\d{raised}{other}"),
        (other, rf"\d{raised}{lowered}{other}"),
    )
    apart = "|".join(f"(?<=[{a}])(?=[{b}])|(?<=[{b}])(?=[{a}])" for a, b in pairs)
    return re.compile(f"[{raised}{lowered}{other}]"), re.compile(apart)


@cache
def _raised() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A raised letter or digit; and a word with what is raised behind it: digits behind a letter, or a letter."""
    codes = [code for code in range(0xAA, 0xABFF) if unicodedata.decomposition(chr(code)).startswith("<super>")]
    letters = character_class(code for code in codes if chr(code).isalpha())
    every = character_class(code for code in codes if chr(code).isalnum())
    word = rf"(?<!\w)([^\W_{every}]++)(?:(?<=\D)|(?=[{letters}]))([{every}]+)"
    return re.compile(f"[{every}]"), re.compile(word)


@cache
def _folding() -> tuple[dict[int, str | None], re.Pattern[str], re.Pattern[str]]:
    """What characters become, a run of these characters, and the marks that Latin and Greek letters lose."""
    table: dict[int, str | None] = {}
    for letter in filter(str.isalpha, map(chr, code_points(_LATIN_AND_GREEK_BLOCKS))):
        bare = "".join(c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
        table[ord(letter)] = "".join(_UNDECOMPOSED_LETTERS.get(c, c) for c in bare.casefold())
    table |= dict.fromkeys(code_points(INVISIBLE_BLOCKS)) | _HYPHENS_AND_APOSTROPHES
    letters = "a-z" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _LATIN_AND_GREEK_BLOCKS)
    marks = re.compile(f"(?<=[{letters}])[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]+")
    return table, re.compile(f"[{character_class(table)}]+"), marks
