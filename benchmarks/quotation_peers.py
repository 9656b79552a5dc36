"""Other checkers of quotations, for `quoth eval quotations --peer`: each line read has a quote and its source.

    python benchmarks/quotation_peers.py rapidfuzz     # in an environment that has rapidfuzz

Knows rapidfuzz, gtrex and linkml-reference-validator as their documentation has them called. Does not know Quoth: none
of them is a dependency, so this file runs in an environment of its own.
"""

import json
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

LEAST = 90
"""The least similarity that counts as found, in percent: what its users set most often."""
Checker = Callable[[str, str], bool]


def rapidfuzz() -> Checker:
    """The most similar part of the source is similar by 0.9 or more."""
    from rapidfuzz import fuzz

    return lambda quote, source: bool(fuzz.partial_ratio(quote, source) >= LEAST)


def gtrex() -> Checker:
    """Grounded by the default policy."""
    from gtrex import Policy, Verifier

    verifier = lru_cache(maxsize=64)(lambda source: Verifier(source, Policy()))
    return lambda quote, source: bool(verifier(source).verify(quote).grounded)


def linkml() -> Checker:
    """The supporting text is in the reference."""
    from linkml_reference_validator.models import ReferenceContent, ReferenceValidationConfig
    from linkml_reference_validator.validation.supporting_text_validator import SupportingTextValidator

    validator: Any = SupportingTextValidator(ReferenceValidationConfig())

    def check(quote: str, source: str) -> bool:
        return bool(validator.find_text_in_reference(quote, ReferenceContent("file:source", content=source)).found)

    return check


CHECKERS = {"rapidfuzz": rapidfuzz, "gtrex": gtrex, "linkml": linkml}


def main() -> None:
    check = CHECKERS[sys.argv[1]]()
    for line in sys.stdin:
        asked = json.loads(line)
        print(int(check(asked["quote"], asked["source"])))


if __name__ == "__main__":
    main()
