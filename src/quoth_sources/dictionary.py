"""The words of English. Does not know those of a corpus, nor what a misspelt word was meant to be."""

from functools import cache
from importlib.resources import files


@cache
def dictionary() -> frozenset[str]:
    """English words, British and American, in lower case: the list that comes with SymSpell."""
    lines = files("symspellpy").joinpath("frequency_dictionary_en_82_765.txt").read_text("utf-8-sig").splitlines()
    return frozenset(line.partition(" ")[0] for line in lines)
