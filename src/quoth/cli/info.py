"""The command that shows what a corpus contains: info.

Knows how to count its documents, segments, vectors and bytes. Does not know how a corpus is stored.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from quoth.cli.models import open_corpus
from quoth.cli.options import CorpusDir, Json
from quoth.cli.output import plural, print_json, results, rounded_down, size
from quoth.errors import advising, brief

if TYPE_CHECKING:
    from quoth.corpus.corpus import Corpus
    from quoth.corpus.segment import Segment

app = typer.Typer()
IN_WORDS = {"bytes": "size on disk", "freed_by_compact": "compact would free"}
"""Labels shown instead of the JSON names."""


@app.command(rich_help_panel="Make and change a corpus")
def info(directory: CorpusDir, json: Json = False) -> None:
    """Show what a corpus contains and which models embedded it.

    \b
    Example:
      quoth info wiki.quoth
    """
    corpus = open_corpus(directory)
    with advising(directory):
        tables = _tables(directory, [each.name for each in corpus.segments])
    segments = [_segment(corpus, directory, each) for each in corpus.segments]
    total, freed = bytes_of(directory), _freed_by_compact(segments, directory)
    facts: dict[str, Any] = {
        "corpus": str(directory),
        "documents": corpus.num_documents,
        "passages": corpus.num_passages,
        "segments": segments,
        "damaged": [*(each.entry.name for each in corpus.damaged), *filter(None, [corpus.unlisted])],
        "freed_by_compact": freed,
        "snapshot": corpus.snapshot,
        "splitter": corpus.splitter,
        "fields": corpus.fields(),
        "bytes": total,
        "embedded": tables,
    }
    if json:
        print_json(facts)
        return
    from quoth.cli.render import show_facts

    embedded = ", ".join(
        f"{each['model']} {each['precision']} ({each['segments']} of {len(segments)} segments, "
        f"{size(each['bytes'])}{_recall_in_words(each['codes'])})"
        for each in tables
    )
    shown = facts | {
        "documents": f"{corpus.num_documents:,}",
        "passages": f"{corpus.num_passages:,}",
        "segments": _segments_in_words(segments),
        "damaged": ", ".join(facts["damaged"]) or "nothing that opening checks",
        "freed_by_compact": f"about {size(freed)}",
        "bytes": size(total),
        "fields": ", ".join(map(_field_in_words, facts["fields"].items())) or "none",
        "embedded": embedded or "nothing (fill and ask encode the passages they read)",
    }
    show_facts(results(), ((IN_WORDS.get(name, name), str(value)) for name, value in shown.items()))


def _field_in_words(field: tuple[str, dict[str, Any]]) -> str:
    """A field of the metadata, with its values if there are few."""
    name, facts = field
    shown = [f"{brief(value)} {count:,}" for value, count in facts["values"].items()][:3]
    repeated = shown and max(facts["values"].values()) > 1
    return f"{name} ({', '.join(shown) if repeated else plural(facts['documents'], 'document')})"


def _segment(corpus: "Corpus", directory: Path, segment: "Segment") -> dict[str, Any]:
    """A segment's number of passages, deleted ones included, and of deleted ones, and its bytes with its keys."""
    import numpy as np

    from quoth.index.key_store import stores

    live = int(corpus.live(np.arange(segment.first_row, segment.last_row)).sum())
    keys = [path for store in stores(directory) for path in store.folders(segment.name)]
    return {
        "name": segment.name,
        "passages": segment.num_passages,
        "deleted": segment.num_passages - live,
        "bytes": sum(map(bytes_of, [segment.path, *keys])),
    }


def _segments_in_words(segments: list[dict[str, Any]], most: int = 6) -> str:
    """Their number, and the largest ones."""
    largest = sorted(segments, key=lambda each: -each["bytes"])[:most]
    which = f"{len(segments)}, the largest" if len(segments) > most else len(segments)
    return f"{which}: {', '.join(map(_in_words, largest))}" if segments else "none"


def _in_words(segment: dict[str, Any]) -> str:
    deleted = f" ({segment['deleted']:,} deleted)" if segment["deleted"] else ""
    return f"{plural(segment['passages'], 'passage')}{deleted} {size(segment['bytes'])}"


def _recall_in_words(codes: list[dict[str, Any]]) -> str:
    """The lowest recall of a model's codes, with the requested one if that is higher."""
    if not codes:
        return ""
    lowest = min(codes, key=lambda each: float(each["recall"] - each["target"]))
    target = f", {lowest['target']} requested" if lowest["recall"] < lowest["target"] else ""
    return f", recall {rounded_down(lowest['recall'])}{target}"


def _freed_by_compact(segments: list[dict[str, Any]], directory: Path) -> int:
    """Approximate bytes of deleted passages, and of segments that only older snapshots use."""
    from quoth.corpus.manifest import segment_of
    from quoth.index.key_store import stores

    deleted = sum(each["bytes"] * each["deleted"] // max(each["passages"], 1) for each in segments)
    kept = {each["name"] for each in segments}
    old = [path for path in directory.glob("segments/*") if path.name not in kept]
    old += [path for store in stores(directory) for path in store.folders() if segment_of(path) not in kept]
    return int(deleted) + sum(map(bytes_of, old))


def _tables(directory: Path, segments: list[str]) -> list[dict[str, Any]]:
    """The key tables of these segments, per model: precision, numbers of segments and bytes, recall of the codes."""
    from quoth.index.codes import facts_of
    from quoth.index.key_store import stores, table_facts

    embedded = []
    for store in stores(directory):
        tables = [store.tables(segment) for segment in segments]
        facts = [table_facts(each[0]) for each in tables if each]
        if facts:
            same = {name: facts[0][name] for name in ("model", "precision", "fingerprint")}
            coded = {segment: facts_of(store.codes(segment)) for segment in segments}
            codes = [{"segment": s, "recall": c.recall, "target": c.target} for s, c in coded.items() if c]
            embedded.append({**same, "segments": len(facts), "bytes": bytes_of(store.folder), "codes": codes})
    return embedded


def bytes_of(folder: Path) -> int:
    """The bytes of all files below a folder, without those that another process removes meanwhile."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(at, name).stat().st_size
    return total
