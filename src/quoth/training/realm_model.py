"""A REALM as it is trained: towers and reader with adapters, and how they are saved.

Knows: which parts a model has, what is shared, files. Does not know: losses, data, the loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from quoth.config import REALMConfig
from quoth.encoders.pairs import pair_tokenizer
from quoth.encoders.passage_encoder import Tower, head_state, load_heads
from quoth.encoders.pretrained import HEADS_FILE, SETTINGS_FILE, REALMSource
from quoth.encoders.transformer import attend_in_fp32, load_base
from quoth.errors import InputError
from quoth.predictors.reader import ReaderModel
from quoth.storage import atomic_write_bytes, atomic_write_json
from quoth.training.adapter import save_adapter, with_adapter

PARTS = ("passages", "queries", "reader")


class TrainedREALM:
    """The parts of a REALM, those named in `trained` with gradients; the others stay as they are.

    `own_queries` gives a model whose towers are one a query tower of its own, which begins as a copy. Raises InputError
    where adapters are asked for on whole parts, which have no base that an adapter could name.
    """

    def __init__(
        self,
        source: REALMSource,
        *,
        trained: Collection[str],
        lora_rank: int,
        seed: int = 0,
        own_queries: bool = False,
        device: str = "cpu",
        bf16: bool = False,
    ) -> None:
        separate = source.config.separate_towers or own_queries
        self.config: REALMConfig = replace(source.config, separate_towers=separate)
        self.device, self.bf16, self._rank = torch.device(device), bf16, lora_rank
        self._source, self._trained, self._seed = source, frozenset(trained), seed
        encoder, hf = self._encoder("passages", "passages")
        self.tokenizer = pair_tokenizer(hf, encoder, self.config)
        self.passages = self.queries = self._tower(encoder, "passages")
        if self.config.separate_towers:
            origin = "queries" if source.config.separate_towers else "passages"
            self.queries = self._tower(self._encoder("queries", origin)[0], origin)
        torch.manual_seed(seed)
        self.reader = ReaderModel(self._encoder("reader", "reader")[0], self.config)
        load_heads(source.heads, "reader", self.reader)
        self.reader.to(self.device)
        for name, part in self._parts():
            self._freeze(name, part)
        self.parameters: Mapping[str, nn.Parameter] = {
            f"{name}.{weight}": parameter
            for name, part in self._parts()
            for weight, parameter in part.named_parameters()
            if parameter.requires_grad
        }

    def _parts(self) -> Iterator[tuple[str, Tower | ReaderModel]]:
        yield "passages", self.passages
        if self.queries is not self.passages:
            yield "queries", self.queries
        yield "reader", self.reader

    def _encoder(self, name: str, origin: str) -> tuple[Any, Any]:
        found = self._source.part(origin)
        if self._rank and found.adapter is None and found.base != self._source.base:
            raise InputError(
                f"lora_rank is {self._rank}, but part {origin!r} of {self._source.name!r} is whole, with no base to "
                "name; allowed is lora_rank=0"
            )
        model, hf = load_base(found)
        if self.bf16 and self.device.type == "cpu":
            attend_in_fp32(model)
        warm = "" if found.adapter is None else str(found.adapter)
        return with_adapter(model, self._rank, self._seed, warm), hf

    def _tower(self, encoder: Any, prefix: str) -> Tower:
        torch.manual_seed(self._seed)
        tower = Tower(encoder, self.config)
        load_heads(self._source.heads, prefix, tower)
        return tower.to(self.device)

    def _freeze(self, name: str, part: Tower | ReaderModel) -> None:
        """No dropout anywhere, as in `with_adapter`; no gradients in what is not trained. Towers that are one are
        trained where either is."""
        part.eval()
        shared = self.queries is self.passages and name == "passages" and "queries" in self._trained
        if name not in self._trained and not shared:
            part.requires_grad_(False)

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """bf16 where it was asked for."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else contextlib.nullcontext()

    def save(self, folder: Path) -> None:
        """Write what `REALM.from_pretrained` reads: adapters in fp16 or whole encoders, heads in fp32; last
        quoth.json, which makes the folder a model."""
        folder.mkdir(parents=True, exist_ok=True)
        heads: dict[str, Tensor] = {}
        for name, part in self._parts():
            self._save_encoder(folder / name, part.encoder)
            heads |= {f"{name}.{key}": weight.detach().cpu().contiguous() for key, weight in head_state(part).items()}
        atomic_write_bytes(folder / HEADS_FILE, save(heads))
        base = self.config.base or self._source.base
        settings = replace(self.config, base=base if self._rank else "")
        atomic_write_json(folder / SETTINGS_FILE, settings.to_dict())

    def _save_encoder(self, folder: Path, encoder: Any) -> None:
        if self._rank:
            save_adapter(folder, encoder, self.config.base or self._source.base)
        else:
            encoder.save_pretrained(folder)
            self.tokenizer.hf.save_pretrained(folder)
