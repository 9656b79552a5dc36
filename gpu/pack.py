"""Pack what a slice on a GPU machine needs into one folder of at most 60 MB: base encoder, text, questions.

python gpu/pack.py runs/gpu enwiki-00.jsonl.xz reviews.jsonl.xz --exclude heldout_pages.jsonl
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file

from quoth.config import NPMConfig
from quoth.corpus.documents import read_documents
from quoth.hub import SETTINGS_FILE, locate
from quoth.training.run import without

MEGABYTES = 60


def pack_base(folder: Path) -> None:
    """The base encoder of quoth-mini in half precision, as a model folder of its own."""
    source = locate("quoth-mini-base", NPMConfig)
    folder.mkdir(parents=True, exist_ok=True)
    weights = load_file(Path(source.base) / "model.safetensors")
    save_file({name: weight.half() for name, weight in weights.items()}, folder / "model.safetensors")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (Path(source.base) / name).is_file():
            shutil.copy(Path(source.base) / name, folder)
    (folder / SETTINGS_FILE).write_text(json.dumps(source.config.to_dict()), encoding="utf-8")


def pack_text(file: Path, texts: list[str], exclude: str) -> int:
    """The documents of the files less the excluded ones; returns how many."""
    count = 0
    with lzma.open(file, "wt", encoding="utf-8") as out:
        for document in without(read_documents(*texts), exclude):
            out.write(json.dumps({"id": document.id, "title": document.title, "text": document.text}) + "\n")
            count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("texts", nargs="*", help="documents to train on")
    parser.add_argument("--exclude", default="", help="JSONL of ids and titles that are never trained on")
    parser.add_argument("--questions", nargs="*", default=[], help="questions with answers, for the jobs of REALM")
    parser.add_argument("--cloze", nargs="*", default=[], help="questions made by scripts/cloze_questions.py, likewise")
    parser.add_argument("--reading", nargs="*", default=[], help="questions and blanks with passages, for the reader")
    options = parser.parse_args()
    pack_base(options.output / "base")
    count = pack_text(options.output / "text.jsonl.xz", options.texts, options.exclude) if options.texts else 0
    for kind in ("questions", "cloze", "reading"):
        for file in map(Path, getattr(options, kind)):
            shutil.copy(file, options.output / f"{kind}-{file.name}")
    size = sum(file.stat().st_size for file in options.output.rglob("*") if file.is_file()) / 1e6
    print(f"{options.output}: {count:,} documents, {size:.1f} MB")
    if size > MEGABYTES:
        raise SystemExit(f"{size:.1f} MB; a slice takes at most {MEGABYTES} MB: pack fewer texts")


if __name__ == "__main__":
    main()
