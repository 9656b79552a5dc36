"""The papers' tables with the published weights, as one command; and its rehearsal without a network.

    python recipes/published.py run -o OUT --data tasks --corpus wiki=wiki.jsonl --corpus reviews=reviews.jsonl
    python recipes/published.py make CACHE                 # random weights of the same shapes in the same files, 18 GB
    HF_HOME=CACHE HF_HUB_OFFLINE=1 python recipes/published.py run -o OUT … --limit 1        # the rehearsal

`run` fetches what it names from the hub, converts REALM's checkpoints, and runs `quoth reproduce` for each table; what
data is missing for is left out, with a note. The same command again resumes. `make` writes a cache of the hub, so that
the rehearsal runs the very same commands. What both cost: docs/published.md.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor

from quoth.hub import MINILM, find_base

NPM, SINGLE = "facebook/npm", "facebook/npm-single"
EMBEDDER, ENCODER = "google/realm-cc-news-pretrained-embedder", "google/realm-cc-news-pretrained-encoder"
OPENQA = {"nq": "google/realm-orqa-nq-openqa", "wq": "google/realm-orqa-wq-openqa"}
LUKE, TAGGER = "studio-ousia/luke-base", "studio-ousia/luke-large-finetuned-conll-2003"
REVISION = "0" * 40

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
ROBERTA: dict[str, Any] = {
    "vocab_size": 50265,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
ROBERTA |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
BERT: dict[str, Any] = {
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu_new",
}
REALM: dict[str, Any] = {"retriever_proj_size": 128, "span_hidden_size": 256, "max_span_width": 10, "num_candidates": 8}
REALM |= {"layer_norm_eps": 1e-12, "reader_layer_norm_eps": 1e-3, "reader_beam_size": 5, "reader_seq_len": 320}
TIED = "RealmKnowledgeAugEncoder"
"""Its file has the matrix of words once, under two names; the others' have it twice."""
BLOCKS = 13_353_718
LABELS = ("NIL", "MISC", "PER", "ORG", "LOC")
WORDS = " politics sports business technology great terrible review summary Yes No"
"""Labels, each of which must be one token for NPM single."""
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
Weights = OrderedDict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("cache", type=Path)
    making.add_argument("--tiny", action="store_true", help="small networks, the same names and files")
    running = commands.add_parser("run")
    running.add_argument("-o", "--output", type=Path, required=True)
    running.add_argument("--data", required=True)
    running.add_argument("--corpus", action="append", default=[])
    running.add_argument("--limit", type=int)
    running.add_argument("--only", nargs="*", default=list(TABLES), choices=list(TABLES))
    running.add_argument("--tables", nargs="*", help="only these, such as npm-table-8")
    running.add_argument("--device")
    args = parser.parse_args()
    if args.command == "make":
        make(args.cache / "hub", args.tiny)
    else:
        sys.exit(run(args))


TABLES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "npm": {
        "npm-table-1": (NPM, SINGLE),
        "npm-table-2": (NPM,),
        "npm-table-3": (NPM,),
        "npm-table-4": (NPM,),
        "npm-table-8": (NPM, SINGLE),
        "npm-table-9": (NPM, SINGLE),
        "npm-table-11": (NPM,),
        "npm-figure-7": (NPM,),
        "npm-figure-8": (NPM,),
    },
    "realm": {"realm-table-1": ("{models}/realm-nq", "{models}/realm-wq"), "realm-table-3": ("{models}/realm-news",)},
    "luke": {
        "zero-ner-table-1": ("{models}/luke",),
        "zero-ner-table-2": ("{models}/luke", "{models}/luke-alone", "{models}/luke-question"),
        "zero-ner-table-3": ("{models}/luke",),
        "zero-ner-figure-2": ("{models}/luke",),
        "zero-ner-figure-4": ("{models}/luke",),
    },
}
"""By paper, the tables and the models that are measured for each."""
CONVERTED = {
    "realm-nq": (OPENQA["nq"], EMBEDDER),
    "realm-wq": (OPENQA["wq"], EMBEDDER),
    "realm-news": (EMBEDDER, ENCODER),
}


def run(args: argparse.Namespace) -> int:
    """Every table, one process each. Returns 1 if one failed."""
    models = args.output / "models"
    asked = [
        (paper, table, [each.format(models=models) for each in names])
        for paper in args.only
        for table, names in TABLES[paper].items()
        if not args.tables or table in args.tables
    ]
    wanted, failed = {name for *_, names in asked for name in names}, 0
    models.mkdir(parents=True, exist_ok=True)
    for name, checkpoints in CONVERTED.items():
        if str(models / name) in wanted and not (models / name).exists():
            failed |= quoth("convert", *checkpoints, "-o", models / name)
    for name, asks in (("luke", "entity"), ("luke-alone", "alone"), ("luke-question", "question")):
        (models / name).mkdir(exist_ok=True)
        told = {"kind": "zero-ner", "base": LUKE, "recognizer": TAGGER, "ask_with": asks}
        (models / name / "quoth.json").write_text(json.dumps(told), encoding="utf-8")
    given = ["--data", args.data, *repeated("--corpus", args.corpus)]
    given += [
        word for name in ("limit", "device") if getattr(args, name) for word in (f"--{name}", getattr(args, name))
    ]
    for paper, table, names in asked:
        failed |= quoth("reproduce", table, "-o", args.output / paper, *given, *repeated("--model", names))
    return failed


def quoth(*words: object) -> int:
    """Runs a command; 1 if it failed, 0 also if something that it needs is missing, which it tells."""
    print("quoth", *words, file=sys.stderr, flush=True)
    code = subprocess.run([sys.executable, "-m", "quoth", *map(str, words)], stdout=subprocess.DEVNULL).returncode
    return int(code not in (0, 2))


def repeated(option: str, values: Sequence[object]) -> list[object]:
    return [word for value in values for word in (option, value)]


def make(hub: Path, tiny: bool) -> None:
    """Every checkpoint, as the hub's cache has it: its files as they are published, the weights random."""
    for name in (NPM, SINGLE):
        folder, config = snapshot(hub, name), npm_config(tiny)
        byte_pairs(folder, [*SPECIAL], "<mask>")
        weights = transformers_weights(config)
        weights["roberta.embeddings.position_ids"] = torch.arange(config["max_position_embeddings"])[None]
        write(folder, config, weights)
    for name, kind in ((EMBEDDER, "RealmEmbedder"), (ENCODER, "RealmKnowledgeAugEncoder")):
        folder = snapshot(hub, name)
        config = realm_config(kind, tiny)
        weights = OrderedDict(drawn(realm_shapes(config)))
        if kind == TIED:
            weights["cls.predictions.decoder.weight"] = weights["realm.embeddings.word_embeddings.weight"]
        write(folder, config, weights)
        wordpiece(folder)
    for name in OPENQA.values():
        folder = snapshot(hub, name)
        config = realm_config("RealmForOpenQA", tiny) | {"num_block_records": 10 if tiny else BLOCKS}
        weights = OrderedDict(drawn(realm_shapes(config)))
        weights["block_emb"] = on_disk(
            folder / "blocks.tmp", config["num_block_records"], config["retriever_proj_size"]
        )
        write(folder, config, weights)
        (folder / "blocks.tmp").unlink()
        wordpiece(folder)
    for name, kind in ((LUKE, "LukeForMaskedLM"), (TAGGER, "LukeForEntitySpanClassification")):
        folder, config = snapshot(hub, name), luke_config(kind, tiny)
        byte_pairs(folder, [*SPECIAL], "<mask>", ("<ent>", "<ent2>"))
        first, count = ("[PAD]", "[UNK]", "[MASK]", "[MASK2]"), config["entity_vocab_size"]
        named = (*first, *(f"Entity {number}" for number in range(len(first), count)))
        dump(folder / "entity_vocab.json", {each: number for number, each in enumerate(named)})
        write(folder, config, transformers_weights(config))


def npm_config(tiny: bool) -> dict[str, Any]:
    return {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], **ROBERTA, **(TINY if tiny else LARGE)}


def luke_config(kind: str, tiny: bool) -> dict[str, Any]:
    shape = BASE if kind == "LukeForMaskedLM" else LARGE
    config = {"model_type": "luke", "architectures": [kind], **ROBERTA, **(TINY if tiny else shape)}
    config |= {"vocab_size": 50267, "use_entity_aware_attention": True}
    config |= (
        {"entity_vocab_size": 6, "entity_emb_size": 16}
        if tiny
        else {"entity_vocab_size": 500_000, "entity_emb_size": 256}
    )
    if kind != "LukeForMaskedLM":
        config |= {"id2label": dict(enumerate(LABELS)), "label2id": {each: i for i, each in enumerate(LABELS)}}
    return config


def snapshot(hub: Path, name: str) -> Path:
    """The folder of a repository's files in a cache of the hub."""
    repository = hub / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(REVISION, encoding="utf-8")
    folder = repository / "snapshots" / REVISION
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(folder: Path, config: Mapping[str, Any], weights: Weights) -> None:
    dump(folder / "config.json", config)
    torch.save(weights, folder / "pytorch_model.bin")


def dump(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def transformers_weights(config: Mapping[str, Any]) -> Weights:
    """Random weights by the names of a class of transformers, a tied matrix under both of its names."""
    weights = OrderedDict(drawn(transformers_shapes(config)))
    for name in tied(weights):
        of = "entity" if "entity" in name else "word"
        weights[name] = next(each for key, each in weights.items() if key.endswith(f"{of}_embeddings.weight"))
    return weights


def transformers_shapes(config: Mapping[str, Any]) -> Shapes:
    import transformers

    with torch.device("meta"):
        kind = getattr(transformers, config["architectures"][0])
        model = kind(transformers.AutoConfig.for_model(**config))
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


def tied(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.endswith("decoder.weight")]


def realm_config(kind: str, tiny: bool) -> dict[str, Any]:
    return {"model_type": "realm", "architectures": [kind], **BERT, **REALM, **(TINY if tiny else BASE)}


def realm_shapes(config: Mapping[str, Any]) -> Shapes:
    """The names and shapes of a published REALM, by its class."""
    kind = config["architectures"][0]
    if kind == "RealmForOpenQA":
        found: Shapes = {}
        for prefix, part in (("embedder.", "RealmEmbedder"), ("reader.", "RealmReader")):
            found |= {prefix + name: shape for name, shape in realm_shapes({**config, "architectures": [part]}).items()}
        return found
    d, size, inner = config["hidden_size"], config["vocab_size"], config["intermediate_size"]
    found = {"realm.embeddings.position_ids": (1, config["max_position_embeddings"])}
    for name, rows in (("word", size), ("position", config["max_position_embeddings"]), ("token_type", 2)):
        found[f"realm.embeddings.{name}_embeddings.weight"] = (rows, d)
    found |= norm("realm.embeddings.LayerNorm", d)
    for layer in (f"realm.encoder.layer.{number}" for number in range(config["num_hidden_layers"])):
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            found |= linear(f"{layer}.attention.{name}", d, d)
        found |= norm(f"{layer}.attention.output.LayerNorm", d) | norm(f"{layer}.output.LayerNorm", d)
        found |= linear(f"{layer}.intermediate.dense", d, inner) | linear(f"{layer}.output.dense", inner, d)
    found |= linear("realm.pooler.dense", d, d)
    found |= linear("cls.predictions.transform.dense", d, d) | norm("cls.predictions.transform.LayerNorm", d)
    found |= linear("cls.predictions.decoder", d, size) | {"cls.predictions.bias": (size,)}
    if kind == "RealmEmbedder":
        found |= linear("cls.dense", d, config["retriever_proj_size"]) | norm(
            "cls.LayerNorm", config["retriever_proj_size"]
        )
    if kind == "RealmReader":
        span = config["span_hidden_size"]
        found |= linear("qa_outputs.dense_intermediate", d, 2 * span) | linear("qa_outputs.dense_output", span, 1)
        found |= norm("qa_outputs.layer_normalization", span)
    return found


def linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def norm(name: str, size: int) -> Shapes:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Tensor]]:
    """Random weights of these shapes, the same ones every time."""
    noise = 0.05 * torch.randn(1_000_003, generator=torch.Generator().manual_seed(0))
    for name, shape in shapes.items():
        if name.endswith("position_ids"):
            yield name, torch.arange(shape[1])[None]
        elif len(shape) == 1:  # a LayerNorm's weight is 1, a bias 0
            yield name, torch.full(shape, float("orm" in name and name.endswith("weight")))
        else:
            count = math.prod(shape)  # the same million numbers over and over: drawing billions takes minutes
            yield name, noise.repeat(-(-count // len(noise)))[:count].clone().view(shape)


def on_disk(file: Path, rows: int, columns: int) -> Tensor:
    """Zeros that are in a file, not in memory."""
    return torch.from_file(str(file), shared=True, size=rows * columns, dtype=torch.float32).view(rows, columns)


def byte_pairs(folder: Path, first: Sequence[str], last: str, added: Sequence[str] = ()) -> None:
    """A byte-level BPE in the files, and of the size, of RoBERTa's."""
    trained = ByteLevelBPETokenizer()
    text = Path(__file__).read_text(encoding="utf-8") + WORDS * 9
    trained.train_from_iterator([text], vocab_size=2000, special_tokens=list(first), show_progress=False)
    trained.save_model(str(folder))
    vocabulary: dict[str, int] = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    size = ROBERTA["vocab_size"]
    vocabulary |= {f"madeupword{number:04d}": number for number in range(len(vocabulary), size - 1)}
    dump(folder / "vocab.json", vocabulary | {last: size - 1})
    names = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>", "mask": last}
    tokens: dict[str, Any] = {f"{name}_token": token for name, token in names.items()}
    if added:
        dump(folder / "added_tokens.json", {token: size + number for number, token in enumerate(added)})
        tokens |= {"additional_special_tokens": list(added), "tokenizer_class": "LukeTokenizer"}
    dump(folder / "special_tokens_map.json", {name: each for name, each in tokens.items() if name != "tokenizer_class"})
    dump(folder / "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer", **tokens})


def wordpiece(folder: Path) -> None:
    """BERT's vocabulary, which the shipped base has too, as vocab.txt."""
    tokenizer = json.loads(Path(find_base(MINILM, None), "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    (folder / "vocab.txt").write_text("".join(f"{each}\n" for each in sorted(vocabulary, key=vocabulary.__getitem__)))
    dump(folder / "tokenizer_config.json", {"do_lower_case": True, "tokenizer_class": "RealmTokenizer"})
    dump(
        folder / "special_tokens_map.json",
        {f"{each}_token": f"[{each.upper()}]" for each in ("unk", "sep", "pad", "cls", "mask")},
    )


if __name__ == "__main__":
    main()
