"""A reader whose weights lie between those of two others that began from the same one.

    python recipes/average_readers.py before after -o reader --weight 0.7

Averages of weights before and after fine-tuning often do better than both (Wortsman et al. 2022, WiSE-FT).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from quoth.hub import locate
from quoth.reader.config import ReaderConfig
from quoth.reader.weights import load_reader, save_reader, trained

BASE = "quoth-reader-base"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a reader's name or folder; the result takes its settings")
    parser.add_argument("after", help="another")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result")
    parser.add_argument("--weight", type=float, default=0.5, help="share of AFTER in the average, from 0 to 1")
    options = parser.parse_args()
    source = locate(options.before, ReaderConfig)
    before, after = (load_reader(each)[0] for each in (source, locate(options.after, ReaderConfig)))
    base = Path(source.base) if source.is_whole else load_reader(locate(BASE, ReaderConfig))[0]
    theirs = trained(after)
    with torch.no_grad():
        for name, own in trained(before).items():
            own.lerp_(theirs[name], options.weight)
    save_reader(options.output, before, base, before.config.to_dict())


if __name__ == "__main__":
    main()
