"""Pack what a slice on a GPU machine needs into one folder of at most 60 MB: base encoder, text, questions.

python recipes/gpu/pack.py runs/gpu enwiki-00.jsonl.xz reviews.jsonl.xz --exclude heldout_pages.jsonl
python recipes/gpu/pack.py runs/gpu --base runs/bases/mpnet
python recipes/gpu/pack.py runs/gpu enwiki-00.jsonl.xz --exclude heldout_pages.jsonl --base runs/bases/mpnet --tokens

Another base is packed as 8-bit integers. One of more than 56 MB becomes several files, for several journeys.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
from pathlib import Path

from npm_job import TOKENS
from npm_job import pack as pack_tokens
from reader_job import in_parts
from safetensors.numpy import load_file, save_file

from quoth.corpus.documents import read_documents
from quoth.encoders.rounding import rounded
from quoth.hub import SETTINGS_FILE, locate
from quoth.npm.batches import tokenize_documents
from quoth.npm.config import NPMConfig
from quoth.reader.weights import BESIDE_WEIGHTS
from quoth.text.tokenizer import FastTokenizer, TextTokenizer
from quoth.training.run import without

MEGABYTES = 60
PART = 56e6
"""Bytes of a base's weights in one file."""


def pack_base(folder: Path) -> None:
    """The base encoder of quoth-mini as it is shipped, as a model folder of its own."""
    source = locate("quoth-mini-base", NPMConfig)
    shutil.copytree(source.base, folder, dirs_exist_ok=True)
    (folder / SETTINGS_FILE).write_text(json.dumps(source.config.to_dict()), encoding="utf-8")


def pack_other_base(base: Path, folder: Path) -> None:
    """A base's folder with its weights rounded, in files of at most PART bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("part-*"):
        file.unlink()
    for name in BESIDE_WEIGHTS:
        if (base / name).is_file():
            shutil.copy(base / name, folder)
    weights = load_file(base / "model.safetensors").items()
    stored = (rounded(name, weight) if weight.ndim == 2 else {name: weight} for name, weight in weights)
    for number, part in enumerate(in_parts(stored, PART)):
        save_file(part, folder / f"part-{number}.safetensors")


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
    parser.add_argument("--tokens", action="store_true", help="pack the base's tokens in place of text, for npm_job.py")
    parser.add_argument("--exclude", default="", help="JSONL of ids and titles that are never trained on")
    parser.add_argument("--questions", nargs="*", default=[], help="questions with answers, for the jobs of REALM")
    parser.add_argument("--cloze", nargs="*", default=[], help="questions made by recipes/cloze_questions.py, likewise")
    parser.add_argument("--base", type=Path, help="folder of another base, such as recipes/base_weights.py makes")
    options = parser.parse_args()
    if options.base:
        pack_other_base(options.base, options.output / "base")
    else:
        pack_base(options.output / "base")
    count = 0
    if options.tokens:
        texts = without(read_documents(*options.texts), options.exclude)
        data = tokenize_documents(
            texts, TextTokenizer(FastTokenizer(options.output / "base"), num_masks=2, max_tokens=256)
        )
        pack_tokens(data, options.output / TOKENS)
        count = len(set(data.document.tolist()))
    elif options.texts:
        count = pack_text(options.output / "text.jsonl.xz", options.texts, options.exclude)
    for kind in ("questions", "cloze"):
        for file in map(Path, getattr(options, kind)):
            shutil.copy(file, options.output / f"{kind}-{file.name}")
    later = sorted((options.output / "base").glob("part-*" if options.tokens else "part-[1-9]*"))
    files = [file for file in options.output.rglob("*") if file.is_file() and file not in later]
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{options.output}: {count:,} documents, {size:.1f} MB", *(f"and {file.name}" for file in later))
    if size > MEGABYTES:
        raise SystemExit(f"{size:.1f} MB; a slice takes at most {MEGABYTES} MB: pack fewer texts")


if __name__ == "__main__":
    main()
