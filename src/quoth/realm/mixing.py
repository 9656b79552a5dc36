"""A REALM of two others: the reader of one, the retriever of the other (REALM, Guu et al. 2020, Table 2).

Knows: the files of a REALM's folder. Does not know: what its parts compute.
"""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from pathlib import Path

from safetensors.torch import load_file, save
from torch import Tensor

from quoth.errors import InputError
from quoth.hub import HEADS_FILE, SETTINGS_FILE, ModelSource, locate
from quoth.realm.config import REALMConfig
from quoth.storage import atomic_write_bytes, atomic_write_json

TOWERS, READER = ("passages", "queries"), ("reader",)
_OWN = ("separate_towers", "reader", "defaults", "base")
"""Settings in which the two models may differ."""


def mix(encoder: str, retriever: str, output: Path, base: str | None = None) -> None:
    """Write a new model to the folder `output`: the reader ("encoder" in the paper) of the model `encoder`, the towers
    of `retriever`.

    An untrained retriever, such as quoth-realm-base, is its base. Raises InputError if `output` is there already, if
    the models differ in a setting, or if `encoder` has no reader of its own; ModelNotFoundError.
    """
    reading, finding = locate(encoder, REALMConfig, base), locate(retriever, REALMConfig, base)
    _check(reading, finding, output)
    output.mkdir(parents=True, exist_ok=True)
    heads: dict[str, Tensor] = {}
    for source, parts in ((finding, TOWERS), (reading, READER)):
        for part in parts:
            if source.folder is not None and (source.folder / part).is_dir():
                shutil.copytree(source.folder / part, output / part)
        stored = load_file(source.heads) if source.heads is not None else {}
        heads |= {name: weight for name, weight in stored.items() if name.partition(".")[0] in parts}
    atomic_write_bytes(output / HEADS_FILE, save(heads))
    named = replace(finding.config, reader="", base=finding.config.base or reading.config.base)
    atomic_write_json(output / SETTINGS_FILE, named.to_dict())


def _check(reading: ModelSource[REALMConfig], finding: ModelSource[REALMConfig], output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is there already; name a new folder")
    if reading.folder is None or reading.config.reader:
        raise InputError(f"model {reading.name!r} has no reader of its own; name the folder of a trained REALM")
    own, theirs = reading.config, finding.config
    unlike = [each.name for each in fields(own) if each.name not in _OWN]
    unlike = [name for name in unlike if getattr(own, name) != getattr(theirs, name)]
    if own.base and theirs.base and own.base != theirs.base:
        unlike.append("base")
    if unlike:
        values = f"{unlike[0]} is {getattr(own, unlike[0])} and {getattr(theirs, unlike[0])}"
        raise InputError(f"{reading.name} and {finding.name} have different settings: {values}; mix models of one kind")
