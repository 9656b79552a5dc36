"""Documents that say the same: case and white space do not count.

Knows texts. Does not know what is done about equal ones.
"""

from hashlib import blake2b

LONG = 1 << 22
"""Characters that are looked at together. In a longer text, a space is put after each such part, so that it equals only
texts with the same white space."""


def digest_of(text: str) -> bytes:
    """Equal for texts that say the same, and for no others that are known."""
    digest = blake2b(digest_size=16)
    for at in range(0, len(text), LONG):
        digest.update((" " * (at > 0) + " ".join(text[at : at + LONG].casefold().split())).encode())
    return digest.digest()
