"""What an encoder is to those that use it: token ids in, last hidden states out, both as arrays; and the one loop in
which networks run without gradients, over batches of inputs of similar length.

Knows: padding, the size of batches, the files of an adapter, what a fingerprint is of. Does not know: whether PyTorch
(`transformer`) or ONNX Runtime (`graph`) computes, what the vectors are for.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError

from quoth.arrays import Floats, Ints
from quoth.encoders.rounding import SCALE
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import WEIGHTS
from quoth.storage import check_opens, read_json, sha256_file
from quoth.text.tokenizer import BATCH_TOKENS, PairArrays, PairTokenizer, batches_by_length, padded

PROBE = "Quoth the Raven: it's naïve, CAFÉ, ½ Καζαντζάκης 세종대왕은 القاهرة दिल्ली 北京 🙂"
PUBLISHED_FINGERPRINTS = {
    "1299483ac23ff1aaaab5221637e8d347ccbc6a1b6068e4fb7c412c3849b0caa4": (
        "7aee38037609893b9dfb0cd8028b856a98a972e31c9511c62d35c42adfe85973"
    ),
    "9329b44357552af51065ef31cb9e645cd549945da1f084a51476fecf1c1f36b2": (  # with the adapter npm-single-mini
        "4b0e793fd5f091bbbae6648f0419196665cdfe50ced57c986a041bfe6fe85018"
    ),
    "cc115e8ce0e8e9b7d155d40af7376b999a3278a9055b5490157fde91aa903cad": (  # tagger-mini
        "79bf52117838fbbc04f466674c14865bdf342e560cadb66699b11ca96f562f90"
    ),
}
"""The digests of encoders over the shipped base, and of the same over the published one, which are their fingerprints:
either finds as much in the other's vectors (docs/log.md, "The base in 8 bits"), so corpora keep them."""
SHIPPED_FILES = {
    "535010afdf1970cc5d9ea562b311137855d649dd05903620336f172cff245379": (
        "7aee38037609893b9dfb0cd8028b856a98a972e31c9511c62d35c42adfe85973"
    ),
}
"""The digest of the shipped base's weights and tokenizer as files, whose weights are rounded, and its fingerprint."""
_POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "luke")
_SPECIAL_LORA = ("use_dora", "use_rslora", "rank_pattern", "alpha_pattern", "modules_to_save", "fan_in_fan_out")

Input = TypeVar("Input")
Weight = TypeVar("Weight", bound=Any)


class Encoder(ABC):
    """A loaded encoder, with its tokenizer, and the fingerprint of both."""

    batch_tokens: int = BATCH_TOKENS

    def __init__(self, config: Any, tokenizer: Any, fingerprint: str) -> None:
        self.config, self.tokenizer, self.fingerprint = config, tokenizer, fingerprint
        self.dimensions = int(config.hidden_size)
        self.max_tokens = longest_input(config)
        self.pad_id = int(tokenizer.pad_token_id or 0)

    @abstractmethod
    def states(self, batch: PairArrays, added_BTD: Floats | None = None) -> Floats:
        """Last hidden states [B, T, D]; `added_BTD` is added to the embeddings of the words."""

    def encode(self, inputs: Sequence[Ints]) -> list[Floats]:
        """Last hidden states of each input: a list of [T, D], in the order given."""
        results: list[Floats] = [np.empty(0, np.float32)] * len(inputs)

        def states(some: list[Ints]) -> Floats:
            return self.states(PairArrays(*padded(some, self.pad_id), None))

        for member, states_TD in run_batched(inputs, list(map(len, inputs)), states, self.batch_tokens):
            results[member] = states_TD[: len(inputs[member])]
        return results


def run_batched(
    inputs: Sequence[Input],
    lengths: Sequence[int],
    forward: Callable[[list[Input]], Floats],
    batch_tokens: int = BATCH_TOKENS,
) -> Iterator[tuple[int, Floats]]:
    """The index of every input and its row of what `forward` makes of a batch, [B, ...].

    A batch has at most `batch_tokens`, its inputs padded to the longest, as `lengths` says. The longest inputs come
    first, so a batch that does not fit into memory fails at once. If rows have a token axis, they are as long as the
    longest input of their batch.
    """
    for members in batches_by_length(lengths, batch_tokens):
        yield from zip(members, forward([inputs[member] for member in members]), strict=True)


def longest_input(config: Any) -> int:
    """The most tokens an encoder's position table allows; RoBERTa and its relatives start after the padding id."""
    offset = config.pad_token_id + 1 if config.model_type in _POSITIONS_AFTER_PADDING else 0
    return int(config.max_position_embeddings) - offset


def pair_tokenizer(tokenizer: Any, config: Any, types: bool = True) -> PairTokenizer:
    """What makes an encoder's inputs of one or two texts, at most as long as it takes; with `types`, the second text
    has a type of its own where the encoder knows two."""
    return PairTokenizer(tokenizer, types and getattr(config, "type_vocab_size", 1) > 1, longest_input(config))


def loaded(
    file: Path, load: Callable[[Path], dict[str, Weight]], problem: str = "is damaged", remedy: str = "fetch it again"
) -> dict[str, Weight]:
    """A file's weights, by a function of safetensors. Raises ModelNotFoundError, with `remedy`, if it is missing
    or damaged."""
    try:
        return load(file)
    except (OSError, SafetensorError) as error:
        check_opens(file)
        raise ModelNotFoundError(f"{file} {problem} ({error}); {remedy}") from error


def adapter_file(folder: Path) -> Path:
    """The file of an adapter's weights. Raises ModelNotFoundError."""
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise ModelNotFoundError(f"adapter {str(folder)!r} has no {file.name}; fetch or train it again")
    return file


def adapter_parts(
    folder: Path, load: Callable[[Path], dict[str, Weight]]
) -> Iterator[tuple[str, float, Weight, Weight]]:
    """What a LoRA adapter, as PEFT saves it or with its factors rounded to bytes, adds to each layer: alpha / r, B and
    A. `load` is a function of safetensors. Raises InputError on another kind of adapter, ModelNotFoundError if it is
    missing or damaged."""
    settings = read_json(folder / "adapter_config.json")
    kind, bias = settings.get("peft_type"), settings.get("bias", "none")
    special = [name for name in _SPECIAL_LORA if settings.get(name)]
    if kind != "LORA" or bias != "none" or special:
        kind = f"{kind} with {special[0] if special else f'bias {bias!r}'}"
        raise InputError(
            f"adapter {str(folder)!r} is a {kind}; only plain LORA can be loaded: merge it into its base with PEFT"
        )
    scale = settings["lora_alpha"] / settings["r"]
    weights = loaded(adapter_file(folder), load, remedy="fetch or train it again")
    for name in [name for name in weights if name.endswith("lora_A.weight")]:
        place = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        if (other := name.replace("lora_A", "lora_B")) not in weights:
            raise does_not_fit(folder, place)
        b, a = (weights[each] * weights.get(f"{each}{SCALE}", 1) for each in (other, name))
        yield place, scale, b, a


def does_not_fit(folder: Path, place: str) -> InputError:
    """That an adapter has something for a layer that its base does not have, or not of that size."""
    return InputError(f"adapter {str(folder)!r} does not fit its base at {place}; name the base it was trained on")


def shipped_fingerprint(folder: Path) -> str | None:
    """The fingerprint of the shipped base, in a fifth of the time of `fingerprint_of`; None for other folders."""
    digest = hashlib.sha256()
    for file in (WEIGHTS, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        digest.update((folder / file).read_bytes() if (folder / file).is_file() else b"")
    return SHIPPED_FILES.get(digest.hexdigest())


def fingerprint_of(weights: Iterable[tuple[str, Floats]], tokenizer: Any, adapter: Path | None) -> str:
    """A digest of the weights, in order of their names, and the tokenizer, the same wherever they came from, and for
    the shipped base that of the published one."""
    digest = hashlib.sha256()
    for name, weight in weights:
        digest.update(name.encode())
        digest.update(weight.tobytes())
    tokens = tokenizer(PROBE, add_special_tokens=True)["input_ids"]
    digest.update(json.dumps([sorted(tokenizer.get_vocab().items()), tokens]).encode("utf-8"))
    if adapter is not None:
        settings = read_json(adapter / "adapter_config.json")
        digest.update(f"{settings.get('lora_alpha')} {settings.get('r')} ".encode())
        digest.update(sha256_file(adapter_file(adapter)).encode())
    return PUBLISHED_FINGERPRINTS.get(digest.hexdigest(), digest.hexdigest())
