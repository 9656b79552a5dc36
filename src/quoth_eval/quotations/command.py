"""The command `quoth eval quotations`.

Knows how a call is spelled. Does not know how quotations are drawn, checked or counted.
"""

from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.models import open_corpora
from quoth.cli.options import Json, pairs, read_at, repeated, within
from quoth.cli.output import counting, plural, print_json, print_tables, results
from quoth.errors import InputError
from quoth.fields import Count


def quotations(
    corpora: Annotated[
        list[Path], typer.Argument(metavar="CORPUS...", parser=read_at, help="Corpora made by quoth index.")
    ],
    sentences: Annotated[
        int, typer.Option("--sentences", callback=within(Count, 1000), help="Draw this many, as many of each corpus.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for drawing them and what is done to them.")] = 0,
    peer: Annotated[
        list[str] | None,
        repeated(
            "--peer",
            "NAME=COMMAND",
            'Also ask this command: for each line {"quote": …, "source": …} it writes 1 if it accepts, else 0.',
        ),
    ] = None,
    write: Annotated[
        str | None, typer.Option("--write", metavar="FILE", help="Also write the quotations, as JSONL.")
    ] = None,
    read: Annotated[
        Path | None, typer.Option("--read", metavar="FILE", help="Ask the quotations of this file; draw none.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="Keep every answer here; a second call resumes.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure how often checkers refuse faithful quotations, and accept forged ones.

    Sentences are drawn from corpora, and each is quoted in up to 13 faithful ways and 12 forged ones. Quoth searches
    the whole corpus; a peer is told the sentence's document.

    \b
    Example:
      quoth eval quotations wiki.quoth --sentences 100 --write quotations.jsonl
      quoth eval quotations wiki.quoth --peer "mine=python my_checker.py"
    """
    from quoth_eval.harness import evaluate
    from quoth_eval.quotations import drawing
    from quoth_eval.quotations.checkers import checkers
    from quoth_eval.quotations.rates import as_record, asking, quotations_task, rate_tables
    from quoth_eval.systems import inputs_of

    peers = pairs(peer or [], "--peer", '"mine=python my_checker.py"')
    if "quoth" in peers:
        raise InputError("--peer quoth: Quoth itself is always asked; choose another name")
    opened = open_corpora(corpora[0], corpora[1:])
    drawn = drawing.read(read, opened) if read else [*drawing.draw_quotations(opened, sentences, seed)]
    if write:
        drawing.write(write, drawn)
    num_sentences = len({(each.corpus, each.document_id, each.start) for each in drawn})
    settings = {"corpora": [each.path.name for each in opened], "num_sentences": num_sentences}
    settings |= {"file": str(read)} if read else {"seed": seed}
    asked = {name: asking(checker) for name, checker in checkers(opened, peers).items()}
    with counting("checking", "quotations") as progress:
        inputs, task = inputs_of((), opened), quotations_task(drawn, settings)
        report = evaluate(task, asked, keep, lambda _, done, total: progress(done, total), inputs)
    if json:
        print_json(as_record(report))
        return
    print_tables(rate_tables(report))
    told = f"{plural(num_sentences, 'sentence')}, {plural(len(drawn), 'quotation')}; percentages with 95 % intervals"
    results().print(told, soft_wrap=True)
