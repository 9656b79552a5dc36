"""A REALM as it is trained: towers and reader with adapters, and how they are saved.

Knows: which parts a model has, what is shared, files. Does not know: losses, data, the loop.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from quoth.encoders.encoder import pair_tokenizer
from quoth.encoders.transformer import attend_in_fp32, load_base, pair_batch
from quoth.errors import InputError
from quoth.hub import HEADS_FILE, SETTINGS_FILE, ModelSource
from quoth.realm.config import REALMConfig
from quoth.realm.network import ReaderModel
from quoth.realm.towers import Tower, head_state, opened
from quoth.storage import atomic_write_bytes, atomic_write_json
from quoth.text.tokenizer import Pair
from quoth.training.adapter import save_adapter, set_dropout, with_adapter
from quoth.training.distributed import World
from quoth.training.settings import LoopConfig

PARTS = ("passages", "queries", "reader")
Example = TypeVar("Example")
AS_IT_IS = LoopConfig(lora_rank=0)
_ONE_TOWER = {"passages": "passages", "queries": "passages", "reader": "reader"}


class REALMTask:
    """What all training of a REALM has in common. Raises InputError if a batch cannot be divided evenly."""

    def __init__(self, model: TrainedREALM, config: LoopConfig, world: World) -> None:
        self.model, self.parameters, self.device = model, model.parameters, model.device
        self.world = world
        if config.batch_size % world.size:
            raise InputError(
                f"batch_size ({config.batch_size}) must be a multiple of the number of processes ({world.size})"
            )

    def parts(self, examples: Sequence[Example], size: int) -> list[Sequence[Example]]:
        """This process's share of a step's examples, `size` at a time (0: all)."""
        mine = examples[self.world.share(len(examples))]
        return [mine[at : at + (size or len(mine))] for at in range(0, len(mine), size or len(mine) or 1)]

    def summed(self, totals: Sequence[float]) -> list[float]:
        """Numbers of a step, and the parameters' gradients, each summed over the processes."""
        self.world.sum_gradients(self.parameters.values())
        sums = torch.tensor(totals, device=self.device)
        self.world.sum([sums])
        found: list[float] = sums.tolist()
        return found

    def vectors(self, tower: Tower, inputs: Sequence[Pair]) -> Tensor:
        """A tower's vectors of B inputs, with gradients, in fp32: [B, D]."""
        with self.model.autocast():
            found: Tensor = tower(pair_batch(self.model.tokenizer, inputs, self.device))
        return found.float()

    def save_model(self, folder: Path) -> None:
        """Write the model as `REALM.from_pretrained` reads it."""
        self.model.save(folder)


class TrainedREALM:
    """The parts of a REALM, those named in `trained` with gradients, by the settings of a run; the others stay as they
    are. A model with the reader of a `Reader` has no other, unless "reader" is trained.

    `own_queries` gives a model with a single tower a separate query tower, which begins as a copy. Raises InputError if
    LoRA is requested for parts that are stored whole, without a base model.
    """

    def __init__(
        self,
        source: ModelSource[REALMConfig],
        config: LoopConfig = AS_IT_IS,
        *,
        trained: Collection[str] = (),
        own_queries: bool = False,
        device: str = "cpu",
    ) -> None:
        separate = source.config.separate_towers or own_queries
        given = "" if "reader" in trained else source.config.reader
        if not given and not _has_reader(source.heads):
            raise InputError(
                f"{source.name} has no reader of its own, as it learned from another; `quoth convert --encoder MODEL "
                f"--retriever {source.name} -o DIR` gives it that of a MODEL with one, such as realm-ict makes"
            )
        self.config: REALMConfig = replace(source.config, separate_towers=separate, reader=given)
        self.device, self.bf16, self._rank = torch.device(device), config.bf16, config.lora_rank
        self._source, self._seed = source, config.seed
        self._origins = {name: name for name in PARTS} if source.config.separate_towers else _ONE_TOWER
        self._trained = frozenset(name if separate else _ONE_TOWER[name] for name in trained)
        encoder, hf = self._encoder("passages")
        self.tokenizer = pair_tokenizer(hf, encoder.config, self.config.token_types)
        self.passages = self.queries = self._tower(encoder, "passages")
        if separate:
            self.queries = self._tower(self._encoder("queries")[0], "queries")
        # Heads that are not stored are random, by the seed: `with_adapter` sets it here, `_tower` again for a tower.
        self._reader: ReaderModel | None = None
        if not given:
            own = opened(ReaderModel, self._encoder("reader")[0], self.config, source.heads, "reader")
            self._reader = own.to(self.device)
        for name, part in self._parts():
            set_dropout(part, config.dropout if name in self._trained else 0.0)
            if name not in self._trained:
                part.requires_grad_(False)
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
        if self._reader is not None:
            yield "reader", self._reader

    @property
    def reader(self) -> ReaderModel:
        """The model's own reader, which one with the reader of a `Reader` lacks."""
        assert self._reader is not None
        return self._reader

    def _encoder(self, name: str) -> tuple[Any, Any]:
        """A part's encoder, with an adapter if it is trained, and its tokenizer."""
        origin, rank = self._origins[name], self._rank if name in self._trained else 0
        found = self._source.part(origin)
        if rank and self._is_whole(origin):
            raise InputError(
                f"{self._source.name!r} stores a full (not LoRA) {origin!r} part without a base model, so LoRA cannot "
                f"be used; set lora_rank=0 (it is {rank})"
            )
        model, hf = load_base(found)
        if self.bf16 and self.device.type == "cpu":
            attend_in_fp32(model)
        warm = "" if found.adapter is None else str(found.adapter)
        return with_adapter(model, rank, self._seed, warm), hf

    def _is_whole(self, origin: str) -> bool:
        folder = self._source.folder
        return folder is not None and (folder / origin / "config.json").is_file()

    def _tower(self, encoder: Any, name: str) -> Tower:
        torch.manual_seed(self._seed)
        return opened(Tower, encoder, self.config, self._source.heads, self._origins[name]).to(self.device)

    def autocast(self) -> torch.autocast:
        """bf16 if the settings say so."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    def save(self, folder: Path) -> None:
        """Write what `REALM.from_pretrained` reads: adapters in fp16 or whole encoders, heads in fp32; last
        quoth.json, which makes the folder a model.

        Encoders that are not trained are copied as they are, so that stored vectors stay those of the model.
        """
        folder.mkdir(parents=True, exist_ok=True)
        heads: dict[str, Tensor] = {}
        for name, part in self._parts():
            if name not in self._trained:
                self._copy_encoder(folder / name, self._origins[name])
            elif self._rank:
                save_adapter(folder / name, part.encoder, self.config.base or self._source.base)
            else:
                part.encoder.save_pretrained(folder / name)
                self.tokenizer.hf.save_pretrained(folder / name)
            heads |= {f"{name}.{key}": weight.detach().cpu().contiguous() for key, weight in head_state(part).items()}
        atomic_write_bytes(folder / HEADS_FILE, save(heads))
        whole = all((folder / name / "config.json").is_file() for name, _ in self._parts())
        base = "" if whole else self.config.base or self._source.base
        atomic_write_json(folder / SETTINGS_FILE, replace(self.config, base=base).to_dict())

    def _copy_encoder(self, folder: Path, origin: str) -> None:
        """The source's files of a part: the whole encoder, the adapter, or none if it is the base itself."""
        found = self._source.part(origin)
        files = [*Path(found.base).iterdir()] if self._is_whole(origin) else []
        if found.adapter is not None:
            files = [*found.adapter.glob("adapter_*")]
        folder.mkdir(exist_ok=True)
        for file in files:
            if file.resolve() != (folder / file.name).resolve():
                shutil.copyfile(file, folder / file.name)


def _has_reader(heads: Path | None) -> bool:
    if heads is None or not heads.is_file():  # an untrained model, and one whose loading tells what is missing
        return True
    with safe_open(heads, "pt") as stored:
        return any(name.startswith("reader.") for name in stored.keys())  # noqa: SIM118
