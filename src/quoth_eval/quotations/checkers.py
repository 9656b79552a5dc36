"""Who checks quotations: Quoth, and other tools, each a command.

Knows how a quotation is handed over, and what is said of it. Does not know how quotations are drawn.
"""

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence

from quoth.corpus.corpus import Corpus
from quoth.corpus.exact.quotes import verify_quote
from quoth.errors import InputError
from quoth_eval.quotations.drawing import Quotation

ACCEPTED = ("verbatim", "typographic", "elided")
Checker = Callable[[Sequence[Quotation]], Sequence[bool]]
"""Says which quotations are accepted."""


def ours(corpora: Sequence[Corpus]) -> Checker:
    """Quoth's gate over the whole corpus of each sentence: the document is not told."""
    by_name = {corpus.name: corpus for corpus in corpora}

    def is_accepted(quotation: Quotation) -> bool:
        return verify_quote(by_name[quotation.corpus], quotation.text, 1).status in ACCEPTED

    return lambda quotations: [*map(is_accepted, quotations)]


def peer(command: str, corpora: Sequence[Corpus]) -> Checker:
    """A command that reads a JSON object a line, {"quote": …, "source": the text of the sentence's document}, and
    writes a line for each: 1 if it accepts the quotation, else 0. Raises InputError if it does not."""
    by_name = {corpus.name: corpus for corpus in corpora}

    def line(quotation: Quotation) -> str:
        source = by_name[quotation.corpus].document(quotation.document_id).text
        return json.dumps({"quote": quotation.text, "source": source}) + "\n"

    def check(quotations: Sequence[Quotation]) -> list[bool]:
        lines = "".join(map(line, quotations))
        try:
            done = subprocess.run(shlex.split(command), input=lines, stdout=subprocess.PIPE, text=True, check=False)
        except OSError as error:
            raise InputError(f"--peer {command}: {error.strerror}; name a program") from None
        said = done.stdout.split()
        if done.returncode or len(said) != len(quotations) or not {*said} <= {"0", "1"}:
            told = f"exit code {done.returncode}, {len(said)} answers to {len(quotations)} quotations"
            raise InputError(f"--peer {command}: {told}; it must write 0 or 1 for each line that it reads")
        return [each == "1" for each in said]

    return check


def checkers(corpora: Sequence[Corpus], peers: Mapping[str, str]) -> dict[str, Checker]:
    """Quoth and its peers, by name."""
    return {"quoth": ours(corpora)} | {name: peer(command, corpora) for name, command in peers.items()}
