"""Write tests/golden/old: tiny models and a corpus with vectors, in the formats of the day they were written.

Version 0.1.0 wrote them. They are not written again when the code changes: what is there must be opened as it is. Only
tests/test_guards.py and tests/test_guard_reports.py read them. Weights are random (fixed seed).

    python tests/golden/make_old.py
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModel

sys.path.insert(0, str(Path(__file__).parents[1]))

import quoth
import tiny
import tiny_tokenizers

FOLDER = Path(__file__).parent / "old"
SHAPE = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 100,
}
READER = {"query_tokens": 24, "title_tokens": 6, "max_tokens": 96, "overlap": 12, "span_width": 5, "span_hidden": 8}
NPM = {"kind": "npm", "similarity_scale": 20.0, "normalize": True, "max_tokens": 96}


def documents(name: str) -> list[quoth.Document]:
    """The documents of a file in the folder."""
    return [quoth.Document(**json.loads(line)) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def write(folder: Path, **settings: Any) -> None:
    """The settings of a model."""
    (folder / "quoth.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write every model, and the corpus with the vectors of two of them."""
    for name in ("base", "npm", "reader", "realm", "corpus"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    texts = [each.text for each in documents("documents.jsonl")]
    tiny.SHAPE.update(SHAPE)
    tiny_tokenizers.VOCABULARY = 160
    write(tiny.tiny_bert(FOLDER / "base", texts), **NPM)

    torch.manual_seed(5)
    encoder = AutoModel.from_pretrained(FOLDER / "base", add_pooling_layer=False)
    adapted = get_peft_model(encoder, LoraConfig(r=2, target_modules=["query", "value"]))
    for name, weight in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.3)
    adapted.save_pretrained(FOLDER / "npm")
    (FOLDER / "npm" / "README.md").unlink(missing_ok=True)
    settings = json.loads((FOLDER / "npm" / "adapter_config.json").read_text(encoding="utf-8"))
    told = json.dumps({**settings, "base_model_name_or_path": "base"}, indent=1)
    (FOLDER / "npm" / "adapter_config.json").write_text(told + "\n", encoding="utf-8")
    write(FOLDER / "npm", **NPM, base="base")

    from quoth.hub import ModelSource
    from quoth.reader.config import ReaderConfig
    from quoth.reader.weights import load_reader, save_reader

    source = ModelSource("reader", ReaderConfig(**READER, base="base"), None, str(FOLDER / "base"))
    network, _ = load_reader(source)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.startswith(("span.", "none.")):
                weight.normal_()
    save_reader(FOLDER / "reader", network, FOLDER / "base", source.config.to_dict())

    small = {"query_tokens": 24, "passage_tokens": 64, "reader_tokens": 96, "separate_towers": False}
    tiny.tiny_realm(FOLDER / "realm", lambda folder, seed: tiny.tiny_bert(folder, texts, seed), **small)

    corpus = quoth.Corpus.create(FOLDER / "corpus")
    corpus.add(documents("documents.jsonl")[:4])
    corpus.add(documents("documents.jsonl")[4:])
    os.chdir(FOLDER)  # vectors store the name of their model, which then is no path of one machine
    quoth.load("npm", corpus, base="base").embed()
    quoth.load("realm", corpus).embed()


if __name__ == "__main__":
    main()
