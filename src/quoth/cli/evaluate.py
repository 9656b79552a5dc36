"""The commands that measure: eval cloze, lama, ner, senses.

Knows the options. Does not know how anything is measured.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quoth.cli.models import Setup, load, quiet_libraries
from quoth.cli.options import (
    BanStopWords,
    Base,
    Combine,
    CombineOption,
    Device,
    Dtype,
    Hybrid,
    Json,
    Model,
    PassageCount,
    Read,
    num_passages,
)
from quoth.cli.output import counting, print_json, results

app = typer.Typer(no_args_is_help=True, help="Measure a model on a task.")


class System(StrEnum):
    """What answers the blanks."""

    model = "model"
    untrained = "untrained"
    frequent = "frequent"
    bm25 = "bm25"


@app.command()
def cloze(
    pages: Annotated[
        list[str], typer.Argument(metavar="PAGES...", help="Files or folders that hold the held-out documents.")
    ],
    heldout: Annotated[
        Path | None,
        typer.Option("--heldout", metavar="FILE", help="Use only the documents that this JSONL names (id, title)."),
    ] = None,
    count: Annotated[int, typer.Option("--count", help="Blanks of each kind.")] = 1000,
    limit: Annotated[int | None, typer.Option("--limit", help="Ask only the first blanks of each kind.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws other blanks.")] = 0,
    passages: PassageCount = None,
    dense: Annotated[bool, typer.Option("--dense", help="Embed the documents and search every token.")] = False,
    hybrid: Hybrid = 0.0,
    combine: CombineOption = Combine.joint,
    ban_stop_words: BanStopWords = False,
    read: Read = None,
    system: Annotated[
        list[System] | None, typer.Option("--system", help="Ask only this one. May be repeated. Default: all.")
    ] = None,
    model: Model = "quoth-mini",
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
) -> None:
    """Fill blanks drawn from documents the model has not seen, and count the exact matches.

    Half of the blanks are spans as training hides them, half are names, terms and numbers. Each phrase also
    stands in another passage of these documents; its own passage is not searched.

    \b
    Example:
      quoth eval cloze wiki.jsonl --heldout heldout_pages.jsonl
    """
    from quoth.evaluation.run import SYSTEMS, run_cloze, table

    with counting("answering", "blanks") as answered:
        report = run_cloze(
            pages,
            heldout,
            model,
            count=count,
            seed=seed,
            limit=limit,
            passages=num_passages(passages, dense, hybrid),
            hybrid=hybrid,
            combine=combine.value,
            ban_stop_words=ban_stop_words,
            read=read,
            systems=[each.value for each in system] if system else SYSTEMS,
            progress=lambda name, done, total: answered(done, total),
            load=lambda name, corpus: load(name, [corpus], Setup(base, device, dtype)),
        )
    if json:
        print_json(report.to_dict())
    else:
        results().print(table(report), soft_wrap=True, end="")


@app.command()
def lama(
    facts: Annotated[list[str], typer.Argument(metavar="FACTS...", help="LAMA's files of T-REx or Google-RE (JSONL).")],
    templates: Annotated[
        Path | None, typer.Option("--templates", metavar="FILE", help="LAMA's relations.jsonl; wanted for T-REx.")
    ] = None,
    distractors: Annotated[
        list[str] | None,
        typer.Option("--distractors", metavar="DOCS", help="Documents to search beside the evidence. May be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Ask only the first facts of each file.")] = None,
    passages: PassageCount = None,
    dense: Annotated[bool, typer.Option("--dense", help="Embed the texts and search every token.")] = False,
    hybrid: Hybrid = 0.0,
    combine: CombineOption = Combine.joint,
    ban_stop_words: BanStopWords = False,
    read: Read = None,
    model: Model = "quoth-mini",
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
) -> None:
    """Ask facts by templates over their own evidence, and count the exact matches by relation.

    Every answer stands in the texts searched; --distractors shows how much that helps.

    \b
    Example:
      quoth eval lama Google_RE/place_of_birth_test.jsonl --limit 200
    """
    from dataclasses import asdict

    from quoth.evaluation.lama import read_facts, read_templates, run_lama
    from quoth.evaluation.metrics import markdown, percent

    with counting("answering", "facts") as answered:
        found = run_lama(
            read_facts(facts, limit),
            read_templates(templates),
            model,
            lambda name, corpus: load(name, [corpus], Setup(base, device, dtype)),
            distractors=distractors or (),
            progress=lambda name, done, total: answered(done, total),
            passages=num_passages(passages, dense, hybrid),
            hybrid=hybrid,
            combine=combine.value,
            ban_stop_words=ban_stop_words,
            read=read,
        )
    whole = [each for each in found.scores if each.length == "all"]
    if json:
        print_json({"model": model, "scores": [asdict(each) for each in whole]})
        return
    rows = [[each.kind, f"{each.num_blanks:,}", percent(each.exact_match), percent(each.hit_at_5)] for each in whole]
    results().print(markdown(["relation", "facts", "exact match %", "hit@5 %"], rows), soft_wrap=True, end="")


@app.command()
def ner(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...", help="CoNLL files, or a part of one by documents: FILE:train, FILE:dev, FILE:test."
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", help="A tagger's name or folder, or a Hugging Face token classifier.")
    ] = "quoth-tagger",
    base: Base = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Tag the sentences of CoNLL files and count the names found: with their class, and ("spans") whatever their class.

    Both ends must be right. Dates by rule are left out; WNUT 2017's classes are taken as PER, LOC, ORG and MISC.

    \b
    Example:
      quoth eval ner wikigold.conll.txt:test
    """
    from quoth.encoders.tagger import Tagger
    from quoth.evaluation.metrics import markdown, percent
    from quoth.evaluation.ner import run_ner

    quiet_libraries()
    with counting("tagging", "sentences") as tagged:
        scores = run_ner(files, Tagger.load(model, device, base=base), tagged)
    if json:
        print_json({"model": model, "scores": [each.to_dict() for each in scores]})
        return
    shares = [[percent(share) for share in (each.precision, each.recall, each.f1)] for each in scores]
    rows = [[each.label, f"{each.num_gold:,}", *cells] for each, cells in zip(scores, shares, strict=True)]
    results().print(markdown(["class", "names", "precision %", "recall %", "F1 %"], rows), soft_wrap=True, end="")


@app.command()
def senses(
    pairs: Annotated[Path, typer.Argument(metavar="PAIRS", help="An MCL-WiC file (JSONL).")],
    model: Model = "quoth-mini",
    base: Base = None,
    device: Device = None,
    dtype: Dtype = None,
    json: Json = False,
) -> None:
    """Compare a word's vectors in two texts: alike where it means the same, apart where it does not?

    \b
    Example:
      quoth eval senses mcl_wic/dev.jsonl.xz --model quoth-mini-base
    """
    from dataclasses import asdict

    import numpy as np

    from quoth.evaluation.metrics import percent
    from quoth.evaluation.senses import read_pairs, sense_scores, similarities

    read = read_pairs(pairs)
    cosine = similarities(load(model, [], Setup(base, device, dtype)).encoder, read)
    scores = sense_scores(cosine, np.array([pair.same for pair in read]))
    if json:
        print_json({"model": model, **asdict(scores)})
        return
    results().print(
        f"{model}: {percent(scores.accuracy)} % right of the second half of {scores.num_pairs:,} pairs "
        f"(threshold {scores.threshold:.3f}); mean cosine {scores.same:.3f} same, {scores.different:.3f} different",
        soft_wrap=True,
    )
