"""A LoRA adapter whose updates are a weighted sum of those of others for the same base, at a smaller rank.

    python recipes/average_adapters.py before:0.25 after:0.75 -o adapter --rank 32

Averages of weights before and after further training often do better than both (Wortsman et al. 2022, WiSE-FT). Each
layer's update is rounded to the rank by its singular values, and with --int8 its factors to bytes, half of the space of
fp16. The settings are those of the first folder.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from torch import Tensor

from quoth.encoders.encoder import adapter_parts
from quoth.encoders.rounding import Stored, rounded
from quoth.hub import SETTINGS_FILE
from quoth.storage import atomic_write_json, read_json
from quoth.training.adapter import ADAPTER

CONFIG = "adapter_config.json"


def factored(b_OR: Tensor, a_RI: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The two factors of this rank whose product is nearest to B A, without computing that: [O, rank], [rank, I]."""
    left_OR, of_b_RR = torch.linalg.qr(b_OR)
    right_IR, of_a_RR = torch.linalg.qr(a_RI.T)
    u, s, v = torch.linalg.svd(of_b_RR @ of_a_RR.T)
    half = s[:rank].sqrt()
    return left_OR @ u[:, :rank] * half, ((right_IR @ v[:rank].T) * half).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapters", nargs="+", metavar="FOLDER:WEIGHT")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--int8", action="store_true", help="factors in 8-bit integers, with a scale for each row")
    options = parser.parse_args()
    named = [(Path(folder), float(weight)) for folder, _, weight in (each.rpartition(":") for each in options.adapters)]
    summed: dict[str, tuple[list[Tensor], list[Tensor]]] = {}
    for folder, weight in named:
        for place, scale, b_OR, a_RI in adapter_parts(folder, load_file):
            bs, as_ = summed.setdefault(place, ([], []))
            bs.append(weight * scale * b_OR.double())
            as_.append(a_RI.double())
    stored: Stored = {}
    for place, (bs, as_) in summed.items():
        for name, factor in zip("BA", factored(torch.cat(bs, dim=1), torch.cat(as_), options.rank), strict=True):
            key = f"base_model.model.{place}.lora_{name}.weight"
            stored |= rounded(key, factor.float().numpy()) if options.int8 else {key: factor.half().numpy()}
    options.output.mkdir(parents=True, exist_ok=True)
    contiguous = {name: np.ascontiguousarray(each) for name, each in stored.items()}
    save_file(contiguous, options.output / ADAPTER, metadata={"format": "pt"})
    first = named[0][0]
    atomic_write_json(
        options.output / CONFIG, read_json(first / CONFIG) | {"r": options.rank, "lora_alpha": options.rank}
    )
    shutil.copy(first / SETTINGS_FILE, options.output)


if __name__ == "__main__":
    main()
