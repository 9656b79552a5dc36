"""The REALM jobs of QUEUE.md: pre-training on the packed texts, then open questions over the same texts.

`job.py` runs them. The packed base has halved weights, so models here name its folder in the place of the hub's name
until they are done. What comes back: an archive of each part, its heads, settings, and the three logs in one file.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.hub import MINILM, SETTINGS_FILE, ModelSource, locate, shipped_folder, shipped_settings
from quoth.index.tables import KeyTables
from quoth.realm.config import REALMConfig
from quoth.realm.passages import PassageEncoder
from quoth.realm.trained import PARTS, TrainedREALM
from quoth.registry import SYSTEMS
from quoth.training.recipes import run_recipe
from quoth.training.trainer import Progress

Settings = dict[str, str]
START: Any = shipped_settings("quoth-realm-base")
REALM_JOBS: dict[str, Settings] = {
    "realm-mini": {},
    "realm-mini-tokens": {"masking": "tokens"},
    "realm-mini-spans": {"masking": "spans"},
    "realm-mini-stale": {"refresh_every": "6000"},
}
"""What is different about each one's pre-training: the paper's Table 2."""
PRETRAIN = {"steps": "2500", "mlm_warmup_steps": "500", "batch_size": "32", "refresh_every": "200"}
CLOZE = {"steps": "1500", "batch_size": "16", "retriever_beam_size": "20"}
FINE_TUNE = {"steps": "1000", "batch_size": "16", "retriever_beam_size": "20"}
TINY = {"steps": "3", "batch_size": "2", "log_every": "1", "bf16": "false"}


def train_realm(changed: Settings, inputs: Path, work: Path, out: Path, seconds: float, tiny: bool) -> dict[str, Any]:
    """One slice: pre-training, questions made of the texts (`cloze*`), then real ones (`questions*`)."""
    until = time.monotonic() + seconds
    texts, cloze, questions = (sorted(map(str, inputs.glob(f"{name}*"))) for name in ("text", "cloze", "questions"))
    base, start, corpus = str(inputs / "base"), work / "start", work / "corpus.quoth"
    _start(base, start, tiny)
    over = {"tagger": str(_tagger(base, work / "tagger"))} | ({"mlm_warmup_steps": "1"} if tiny else {})
    asked = {"corpus": str(corpus)} | ({"retriever_beam_size": "9"} if tiny else {})
    stages = [
        ("realm-pretrain", texts, work / "pretrained", PRETRAIN | changed | over),
        ("realm-qa", cloze, work / "cloze", CLOZE | asked),
        ("realm-qa", questions, work / "final", FINE_TUNE | asked),
    ]
    model = start
    for recipe, files, folder, settings in stages:
        if recipe == "realm-qa":
            _embed(texts, corpus, work / "pretrained")
        left = max(until - time.monotonic(), 1.0)
        settings |= TINY if tiny else {}
        done = run_recipe(recipe, files, folder, settings, model=str(model), seconds=left, progress=_say)
        logs = (each / "log.jsonl" for _, _, each, _ in stages)
        lines = "".join(log.read_text(encoding="utf-8") for log in logs if log.is_file())
        (out / "log.jsonl").write_text(lines, encoding="utf-8")
        if not done:
            return {"done": False}
        model = folder
    settings_file = json.loads((model / SETTINGS_FILE).read_text(encoding="utf-8"))
    (out / SETTINGS_FILE).write_text(json.dumps(settings_file | {"base": MINILM}, indent=1), encoding="utf-8")
    shutil.copy(model / "heads.safetensors", out)
    for part in PARTS:
        shutil.make_archive(str(out / part), "zip", model / part)
    return {"done": True}


def _say(now: Progress) -> None:
    print(now, flush=True)


def _start(base: str, folder: Path, tiny: bool) -> None:
    """The untrained REALM, over the packed base."""
    if not (folder / SETTINGS_FILE).is_file():
        config = replace(START, base=base)
        reader = None if tiny else shipped_folder(SYSTEMS["realm"].reads_with)
        TrainedREALM(ModelSource("start", config, None, base, reader)).save(folder)


def _tagger(base: str, folder: Path) -> Path:
    """The shipped tagger, over the packed base."""
    if not folder.exists():
        shutil.copytree(shipped_folder("quoth-tagger"), folder)
        settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
        (folder / SETTINGS_FILE).write_text(json.dumps(settings | {"base": base}), encoding="utf-8")
    return folder


def _embed(texts: list[str], folder: Path, model: Path) -> None:
    """The corpus of the texts with the model's vectors."""
    corpus = Corpus.open(folder) if folder.exists() else Corpus.create(folder)
    if not corpus.num_passages:
        corpus.add(read_documents(*texts))
    tables = KeyTables(corpus, PassageEncoder.load(locate(str(model), REALMConfig), dtype="bf16"))
    if tables.missing():
        tables.build("fp16", recall=1.0)
