"""Encoders in PyTorch: those of Hugging Face with an optional PEFT adapter.

Knows: loading, devices, dtypes, tensors of batches. Does not know: what the vectors are for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from timeit import repeat
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from quoth.arrays import Floats, Ints
from quoth.encoders.bert import BertEncoder, MPNetEncoder, RoundedLinear, round_linears, whole_tensor
from quoth.encoders.config import MODEL_TYPES, BertConfig, wanted_dtype
from quoth.encoders.encoder import Encoder, adapter_parts, does_not_fit, fingerprint_of
from quoth.encoders.rounding import SCALE
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import EncoderSource
from quoth.text.tokenizer import BATCH_TOKENS, FastTokenizer, Pair, PairArrays, PairTokenizer, padded, pair_arrays

PADDED_TOKENS_PER_BATCH = 8192 if torch.accelerator.is_available() else BATCH_TOKENS
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

Input = TypeVar("Input")
# In bf16 oneDNN keeps what it compiled for every shape of a batch, a thousand of them: 1.4 GB after 160 questions, 0.9
# with 32, in the same time.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")


class Transformer(Encoder):
    """A loaded encoder in PyTorch."""

    batch_tokens = PADDED_TOKENS_PER_BATCH

    def __init__(self, model: Any, tokenizer: Any, fingerprint: str) -> None:
        super().__init__(model.config, tokenizer, fingerprint)
        self.model = model.eval()
        self.device = next(model.parameters()).device

    @classmethod
    def load(cls, source: EncoderSource, *, device: str | None = None, dtype: str | None = None) -> Transformer:
        """Raises ModelNotFoundError if the model cannot be loaded, InputError on an unknown dtype or device."""
        model, tokenizer = load_encoder(source)
        fingerprint = fingerprint_of(parameters(model), tokenizer, source.adapter)
        if source.adapter is not None:
            apply_adapter(model, source.adapter)
        return cls(placed(model, device, dtype), tokenizer, fingerprint)

    @classmethod
    def load_classifier(cls, name: str, *, device: str | None = None) -> Transformer:
        """A Hugging Face token classifier from a folder or hub id; its model's config names the labels.

        Raises ModelNotFoundError if it cannot be loaded or is another kind of model.
        """
        model, tokenizer = load_kind(EncoderSource(name), _classifier, "name quoth-tagger, a folder or a hub id")
        return cls(model.to(device_named(device)), tokenizer, fingerprint_of(parameters(model), tokenizer, None))

    def states(self, batch: PairArrays, added_BTD: Floats | None = None) -> Floats:
        def states_BTD() -> Tensor:
            given = tensors(batch, self.device)
            if added_BTD is not None:
                words_BTD = self.model.get_input_embeddings()(given.pop("input_ids"))
                given["inputs_embeds"] = words_BTD + torch.from_numpy(added_BTD).to(words_BTD)
            made: Tensor = self.model(**given).last_hidden_state
            return made

        return computed(states_BTD)


def pad(inputs: Sequence[Ints], pad_id: int) -> tuple[Tensor, Tensor]:
    """Input ids and attention mask: [B, T] each."""
    ids_BT, mask_BT = padded(inputs, pad_id)
    return torch.from_numpy(ids_BT), torch.from_numpy(mask_BT)


def tensors(arrays: PairArrays, device: torch.device) -> dict[str, Tensor]:
    """A batch on a device, each [B, T], as an encoder's `forward` names them."""
    named = {"input_ids": arrays.ids_BT, "attention_mask": arrays.mask_BT, "token_type_ids": arrays.types_BT}
    return {name: torch.from_numpy(each).to(device) for name, each in named.items() if each is not None}


def pair_batch(tokenizer: PairTokenizer, pairs: Sequence[Pair], device: torch.device) -> dict[str, Tensor]:
    """Inputs of one or two texts as `tensors`."""
    return tensors(pair_arrays(tokenizer, pairs), device)


@torch.inference_mode()
def computed(forward: Callable[[], Tensor]) -> Floats:
    """What is computed without gradients, as float32 on the CPU."""
    array: Floats = forward().float().cpu().numpy()
    return array


def on_arrays(forward: Callable[[list[Input]], Tensor]) -> Callable[[list[Input]], Floats]:
    """The same function, `computed`."""
    return lambda inputs: computed(lambda: forward(inputs))


def load_encoder(source: EncoderSource) -> tuple[Any, Any]:
    """Like `load_base`, but without transformers, in a tenth of the time, for the architectures of `bert`."""
    folder = Path(source.base)
    config, tokenizer = BertConfig.read(folder), FastTokenizer.read(folder)
    if config is None or tokenizer is None:
        return load_base(source)
    kind = MPNetEncoder if config.model_type == "mpnet" else BertEncoder
    return kind.load(folder, config), tokenizer


def can_load(folder: Path) -> bool:
    """Whether `load_encoder` reads the encoder of a folder itself, whose weights may then be rounded."""
    return BertConfig.read(folder) is not None and FastTokenizer.read(folder) is not None


def _rounded_weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder that are stored as `rounding` does, whose scales transformers leaves out, in fp32."""
    file = folder / "model.safetensors"
    if not file.is_file():
        return {}
    stored = load_file(file)
    return {name: whole_tensor(stored, name) for name in stored if f"{name}{SCALE}" in stored}


def load_base(source: EncoderSource) -> tuple[Any, Any]:
    """The base encoder (fp32, CPU) and its tokenizer, without any adapter.

    Raises ModelNotFoundError if they cannot be loaded.
    """
    return load_kind(
        source,
        lambda name, config: "AutoModel",
        "name a shipped model, a folder or a hub id, or the folder of its base (base, --base)",
    )


def load_masked_lm(source: EncoderSource) -> tuple[Any, Any]:
    """The base as a masked language model, without any adapter, and its tokenizer. Its head, over the encoder's own
    word embeddings, is the base's; a base without one gets a random head."""
    remedy = "name a BERT or RoBERTa"
    return load_kind(source, lambda *_: "AutoModelForMaskedLM", remedy, random=("pooler.", "cls.", "lm_head."))


def load_kind(
    source: EncoderSource, choose: Callable[[str, Any], str], remedy: str, random: Sequence[str] = ("pooler.",)
) -> tuple[Any, Any]:
    """A model (fp32, CPU) and its tokenizer; `choose` returns the name of its class in transformers, given the model's
    name and config. Weights with one of `random` in their names are random if they are missing.

    Raises ModelNotFoundError, with `remedy`, if they cannot be loaded or other weights are missing, InputError for a
    decoder, and whatever `choose` raises.
    """
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    base, revision = source.base, source.revision
    try:
        config = transformers.AutoConfig.from_pretrained(base, revision=revision)
        kind = choose(base, config)
        options: dict[str, Any] = {"config": config, "revision": revision, "dtype": torch.float32}
        if kind == "AutoModel" and config.model_type in MODEL_TYPES:
            options["add_pooling_layer"] = False
        if kind == "AutoModel" and is_decoder(config):
            raise InputError(
                f"model {base!r} is a {config.model_type}, a decoder: its tokens see only earlier ones; "
                f"{remedy} of an encoder, such as BERT or RoBERTa"
            )
        model, loaded = getattr(transformers, kind).from_pretrained(base, output_loading_info=True, **options)
        if lacking := sorted(key for key in loaded["missing_keys"] if not any(part in key for part in random)):
            raise ModelNotFoundError(
                f"model {base!r} lacks {len(lacking)} of its weights, such as {lacking[0]}, which would be random; "
                f"{remedy}"
            )
        model.base_model.load_state_dict(_rounded_weights(Path(base)), strict=False)
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(base, revision=revision)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelNotFoundError(f"model {base!r} cannot be loaded: {reason}; {remedy}") from error
    return model, tokenizer


def is_decoder(config: Any) -> bool:
    """Whether a model's tokens attend only to those before them, as far as its config says."""
    from transformers.models.auto import modeling_auto

    causal, masked = (
        set(getattr(modeling_auto, f"MODEL_FOR_{kind}_MAPPING_NAMES")) for kind in ("CAUSAL_LM", "MASKED_LM")
    )
    return bool(getattr(config, "is_decoder", False)) or config.model_type in causal - masked


def kinds_of(config: Any) -> list[str]:
    """The classes of transformers that a model's config names, or a phrase for error messages if it names none."""
    named: list[str] = config.architectures or ["model of no known kind"]
    return named


def _classifier(name: str, config: Any) -> str:
    kinds = kinds_of(config)
    if not any(kind.endswith("ForTokenClassification") for kind in kinds):
        raise ModelNotFoundError(
            f"model {name!r} is a {kinds[0]}; a tagger must be a token classifier: name quoth-tagger or another model"
        )
    return "AutoModelForTokenClassification"


def attend_in_fp32(model: Any) -> None:
    """Keep a transformers model's attention in fp32 under bf16 autocast: PyTorch's bf16 attention takes several times
    as long on CPUs."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return sdpa_attention_forward(module, query.float(), key.float(), value.float(), mask, **options)

    AttentionInterface.register("sdpa_fp32", attend)
    AttentionMaskInterface.register("sdpa_fp32", sdpa_mask)
    model.set_attn_implementation("sdpa_fp32")


def apply_adapter(model: Any, folder: Path) -> None:
    """Add a LoRA adapter, as PEFT saves it, to the weights in place: W += (alpha / r) B A."""
    with torch.no_grad():
        for place, scale, b, a in adapter_parts(folder, load_file):
            try:
                model.get_submodule(place).weight += scale * (b.float() @ a.float())
            except (AttributeError, RuntimeError) as error:
                raise does_not_fit(folder, place) from error


def device_named(name: str | None) -> torch.device:
    """A device by its name, or for None a GPU if there is one. Raises InputError."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        usable = " or ".join(each for each, available in there.items() if available)
        raise InputError(f"device {name!r} is not available on this machine; use {usable}") from error
    return device


def placed(model: Any, device: str | None, dtype: str | None) -> Any:
    """The model on a device and in a number format, both by their names. Raises InputError."""
    where = device_named(device)
    name = dtype_named(dtype, where)
    if name != "int8":
        return model.to(device=where, dtype=DTYPES[name])
    round_linears(model.to(device=where, dtype=torch.float32))
    return model


def dtype_named(name: str | None, device: torch.device) -> str:
    """A key of `DTYPES`, or "int8"; for None what QUOTH_DTYPE names. "auto", which is the default, is what this
    processor multiplies fastest, and fp32 on other devices. Raises InputError."""
    name = wanted_dtype(name)
    if name == "auto":
        return fastest_dtype() if device.type == "cpu" else "fp32"
    if name == "int8" and device.type != "cpu":
        raise InputError(f"dtype int8 is for the processor, not for {device.type}; use fp16 or bf16")
    if name not in (*DTYPES, "int8"):
        raise InputError(f"dtype {name!r} is unknown; use one of {', '.join(DTYPES)}, int8, auto")
    return name


@cache
def fastest_dtype() -> str:
    """int8, bf16 or fp32, whichever this processor multiplies fastest: int8 and bf16 in less than 0.7 of the time
    of fp32, and int8 if its sums are exact, which they are not on some older processors. It is tried, which takes some
    milliseconds: processors without instructions for a format have it too, but slower."""
    x_TI, weight_OI = torch.ones(64, 384), torch.ones(1536, 384)
    half_TI, half_OI, rounding = x_TI.bfloat16(), weight_OI.bfloat16(), RoundedLinear(weight_OI)
    seconds = {
        "fp32": 0.7 * _seconds(lambda: nn.functional.linear(x_TI, weight_OI)),
        "bf16": _seconds(lambda: nn.functional.linear(half_TI, half_OI)),
        "int8": _seconds(lambda: rounding(x_TI)),
    }
    if not torch.allclose(rounding(x_TI), torch.tensor(384.0)):
        del seconds["int8"]
    return min(seconds, key=seconds.__getitem__)


def _seconds(run: Callable[[], object]) -> float:
    """The shortest of ten runs."""
    return min(repeat(run, timer=perf_counter, number=1, repeat=10))


def parameters(model: nn.Module) -> Iterator[tuple[str, Floats]]:
    """A model's weights by their names, in fp32."""
    return ((name, each.detach().float().cpu().numpy()) for name, each in sorted(model.named_parameters()))
