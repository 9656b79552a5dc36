"""Model folders made of other models: of published REALM checkpoints (`google/realm-*`), or of two models' parts.

Knows: how weights and settings are named there and here, which checkpoints together make a model, which models may be
mixed. Does not know: how checkpoints are read, or what the weights do.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from tokenizers import BertWordPieceTokenizer, Tokenizer
from torch import Tensor

from quoth.encoders.bert import BertEncoder
from quoth.encoders.config import GELU, BertConfig
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import HEADS_FILE, SETTINGS_FILE, ModelSource, locate
from quoth.reader.network import SpanHead
from quoth.realm.config import REALMConfig
from quoth.realm.network import ReaderModel
from quoth.realm.towers import Tower
from quoth.storage import atomic_write_bytes, atomic_write_json, read_json
from quoth_eval.checkpoint import Checkpoint, open_checkpoint

EMBEDDER, SCORER, OPENQA = "RealmEmbedder", "RealmScorer", "RealmForOpenQA"
ENCODER, READER = "RealmKnowledgeAugEncoder", "RealmReader"
BERT_TOKENS = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}
"""BERT's special tokens, as `tokenizer_config.json` names them."""
BLOCKS = "block_emb"
"""The vectors of the published corpus, in an open-QA checkpoint: 6.8 GB, of passages that it does not contain."""

PREFIXES: dict[str, dict[str, str]] = {
    EMBEDDER: {"passages": ""},
    SCORER: {"passages": "embedder.", "queries": "query_embedder."},
    ENCODER: {"reader": ""},
    READER: {"reader": ""},
    OPENQA: {"queries": "embedder.", "reader": "reader."},
}
"""The parts of each kind of checkpoint, and the prefixes of their weights' names."""

Names = dict[str, str | None]
_BODY: Names = {
    "realm.embeddings.position_ids": None,
    "realm.embeddings.": "encoder.embeddings.",
    "realm.encoder.": "encoder.encoder.",
}
TOWER_NAMES: Names = {
    **_BODY,
    "realm.pooler.dense.": "pooler.",
    "cls.dense.": "projection.",
    "cls.LayerNorm.": "norm.",
    "cls.predictions.": None,
}
READER_NAMES: Names = {
    **_BODY,
    "realm.pooler.dense.": None,
    "cls.predictions.transform.dense.": "mlm.transform.",
    "cls.predictions.transform.LayerNorm.": "mlm.norm.",
    "cls.predictions.bias": "mlm.bias",
    "cls.predictions.decoder.": None,
    "qa_outputs.dense_intermediate.": "span.ends.",
    "qa_outputs.layer_normalization.": "span.norm.",
    "qa_outputs.dense_output.": "span.score.",
}
"""A weight's prefix there, and here; None if it is not needed: an unused head, or a tied weight."""

DEFAULTS: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu_new",
    "layer_norm_eps": 1e-12,
    "retriever_proj_size": 128,
    "num_candidates": 8,
    "span_hidden_size": 256,
    "max_span_width": 10,
    "reader_layer_norm_eps": 1e-3,
    "reader_seq_len": 320,
}
"""The defaults of a published `config.json`."""
_OWN = ("separate_towers", "reader", "defaults", "base")
"""Settings in which the two models may differ."""


@dataclass(frozen=True, slots=True)
class Part:
    """A tower or a reader in a checkpoint: the prefix of its weights' names, and how they continue."""

    checkpoint: Checkpoint
    prefix: str
    names: Names

    @property
    def settings(self) -> dict[str, Any]:
        """The checkpoint's, with defaults for what it does not say."""
        given = self.checkpoint.settings
        return {name: given.get(name, default) for name, default in DEFAULTS.items()}

    @property
    def bert(self) -> BertConfig:
        """The shape of its encoder. Raises InputError on another activation than BERT's."""
        settings = self.settings
        if (activation := settings["hidden_act"]) not in GELU:
            raise InputError(f"{self.checkpoint.name}: hidden_act {activation!r}; use one of {', '.join(GELU)}")
        shape = {field.name: settings[field.name] for field in fields(BertConfig) if field.name in settings}
        return BertConfig(model_type="bert", **shape)

    def state(self) -> dict[str, Tensor]:
        """Its weights by their names here. Raises InputError on a name that no REALM has."""
        found: dict[str, Tensor] = {}
        for name, weight in self.checkpoint.weights.items():
            if name.startswith(self.prefix):
                rest = name.removeprefix(self.prefix)
                there = next((prefix for prefix in self.names if rest.startswith(prefix)), None)
                if there is None:
                    raise _unknown(self.checkpoint, name)
                if (here := self.names[there]) is not None:
                    found[here + rest.removeprefix(there)] = weight.float().contiguous()
        return found

    def published(self, name: str) -> str:
        """What a weight of this project's is called in the checkpoint."""
        there, here = next((t, h) for t, h in self.names.items() if h is not None and name.startswith(h))
        return self.prefix + there + name.removeprefix(here)


def convert(checkpoints: Sequence[str], output: Path) -> tuple[str, ...]:
    """Write the model folder that published checkpoints (folders or hub ids) make together; returns notes about it.

    They are an open-QA checkpoint, with or without an embedder for the passages' vectors; or an embedder (or scorer)
    with an encoder or reader. Raises ModelNotFoundError if one is missing or lacks weights, InputError if they do not
    make a model or the folder is in use.
    """
    _check_new(output)
    found = [open_checkpoint(name, leave_out=(BLOCKS,)) for name in checkpoints]
    for checkpoint in found:
        _check(checkpoint)
    parts = _choose(found)
    config = _config(parts)
    states = {name: _fitted(part, config) for name, part in parts.items()}
    passages, queries = states["passages"], states.get("queries", states["passages"])
    same = passages.keys() == queries.keys() and all(torch.equal(w, queries[name]) for name, w in passages.items())
    if same:
        states.pop("queries", None)
    _write(output, replace(config, separate_towers=not same), states, parts)
    return tuple(_notes(parts))


def _check_new(output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is there already; name a new folder")


def _check(checkpoint: Checkpoint) -> None:
    """Raises InputError if a checkpoint is not a REALM, or has weights that its kind does not have."""
    if checkpoint.settings.get("model_type") != "realm" or checkpoint.kind not in PREFIXES:
        raise InputError(
            f"{checkpoint.name} is a {checkpoint.kind}, not a published REALM; use one of {', '.join(PREFIXES)}, such "
            "as google/realm-orqa-nq-openqa"
        )
    prefixes = tuple(PREFIXES[checkpoint.kind].values())
    for name in checkpoint.weights:
        if not name.startswith(prefixes):
            raise _unknown(checkpoint, name)


def _unknown(checkpoint: Checkpoint, name: str) -> InputError:
    return InputError(f"{checkpoint.name}: no {checkpoint.kind} has a weight {name!r}; fetch it as it was published")


def _choose(found: Sequence[Checkpoint]) -> dict[str, Part]:
    """The parts of the model: "passages", perhaps "queries", "reader". Raises InputError if one is not given, or
    given twice."""
    embedders = [checkpoint for checkpoint in found if checkpoint.kind in (EMBEDDER, SCORER)]
    readers = [checkpoint for checkpoint in found if checkpoint.kind not in (EMBEDDER, SCORER)]
    if len(embedders) > 1 or len(readers) != 1 or not (embedders or readers[0].kind == OPENQA):
        kinds = " and ".join(checkpoint.kind for checkpoint in found)
        raise InputError(
            f"{kinds or 'nothing'} cannot be made a model; name one open-QA "
            "checkpoint, with or without an embedder, or one embedder (or scorer) and one encoder (or reader)"
        )
    parts: dict[str, Part] = {}
    for checkpoint in [*embedders, *readers]:
        for name, prefix in PREFIXES[checkpoint.kind].items():
            if (checkpoint.kind, name) != (SCORER, "queries") or any(
                weight.startswith(prefix) for weight in checkpoint.weights
            ):
                parts[name] = Part(checkpoint, prefix, READER_NAMES if name == "reader" else TOWER_NAMES)
    if "passages" not in parts:
        parts["passages"] = parts["queries"]
    return parts


def _config(parts: Mapping[str, Part]) -> REALMConfig:
    """The settings of the model, its reader's as the released code has them."""
    tower, reader = parts["passages"].settings, parts["reader"].settings
    reader_tokens = min(reader["reader_seq_len"], reader["max_position_embeddings"])
    plain = REALMConfig()
    return REALMConfig(
        pooler=True,
        dimensions=tower["retriever_proj_size"],
        layer_norm_eps=tower["layer_norm_eps"],
        query_tokens=min(plain.query_tokens, reader_tokens - 16),
        passage_tokens=min(plain.passage_tokens, tower["max_position_embeddings"]),
        reader_tokens=reader_tokens,
        num_candidates=reader["num_candidates"],
        span_width=reader["max_span_width"],
        span_hidden=reader["span_hidden_size"],
        reader_layer_norm_eps=reader["reader_layer_norm_eps"],
    )


def _fitted(part: Part, config: REALMConfig) -> dict[str, Tensor]:
    """A part's weights by their names here: exactly those of its module, in its shapes.

    Raises InputError on a weight too many, ModelNotFoundError on one that is missing or of another shape.
    """
    with torch.device("meta"):  # the module without weights
        encoder = BertEncoder(part.bert)
        module = ReaderModel(encoder, config) if part.names is READER_NAMES else Tower(encoder, config)
    wanted, state = module.state_dict(), part.state()
    if part.checkpoint.kind == ENCODER:  # it has no span reader yet: it gets an untrained one, always the same
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            head = SpanHead(part.bert.hidden_size, config.span_width, config.span_hidden, config.reader_layer_norm_eps)
        fresh = {f"span.{name}": weight for name, weight in head.state_dict().items()}
        state |= {name: weight for name, weight in fresh.items() if name not in state}
    for name in state:
        if name not in wanted:
            raise _unknown(part.checkpoint, part.published(name))
    for name, weight in wanted.items():
        if name not in state or state[name].shape != weight.shape:
            there = f"of shape {list(state[name].shape)}" if name in state else "missing"
            raise ModelNotFoundError(
                f"{part.checkpoint.name}: {part.published(name)} is {there}, its config.json requires "
                f"{list(weight.shape)}; fetch it again"
            )
    return state


def _write(
    output: Path, config: REALMConfig, states: Mapping[str, Mapping[str, Tensor]], parts: Mapping[str, Part]
) -> None:
    """A folder for each encoder, one file of all heads; last quoth.json, which makes the folder a model."""
    tokenizer = _tokenizer(parts)
    heads: dict[str, Tensor] = {}
    for name, state in states.items():
        encoder = {key.removeprefix("encoder."): weight for key, weight in state.items() if key.startswith("encoder.")}
        heads |= {f"{name}.{key}": weight for key, weight in state.items() if not key.startswith("encoder.")}
        folder = output / name
        folder.mkdir(parents=True)
        tokenizer.save(str(folder / "tokenizer.json"))
        atomic_write_json(
            folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **BERT_TOKENS}
        )
        atomic_write_bytes(folder / "model.safetensors", save(encoder, {"format": "pt"}))
        atomic_write_json(folder / "config.json", {"architectures": ["BertModel"], **asdict(parts[name].bert)})
    atomic_write_bytes(output / HEADS_FILE, save(heads))
    atomic_write_json(output / SETTINGS_FILE, config.to_dict())


def _tokenizer(parts: Mapping[str, Part]) -> Tokenizer | BertWordPieceTokenizer:
    """The tokenizer of the first checkpoint with one. Raises ModelNotFoundError if none has one or it does not fit."""
    folders = dict.fromkeys(part.checkpoint.folder for part in parts.values())
    found = next((tokenizer for folder in folders if (tokenizer := _tokenizer_in(folder)) is not None), None)
    if found is None:
        raise ModelNotFoundError(f"{next(iter(folders))} has no tokenizer.json and no vocab.txt; fetch it again")
    for part in parts.values():
        if (size := found.get_vocab_size()) > (known := part.bert.vocab_size):
            raise ModelNotFoundError(
                f"the tokenizer has {size} tokens, {part.checkpoint.name} knows {known}; name checkpoints of one model"
            )
    return found


def _tokenizer_in(folder: Path) -> Tokenizer | BertWordPieceTokenizer | None:
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    if not (folder / "vocab.txt").is_file():
        return None
    settings = folder / "tokenizer_config.json"
    lowercase = read_json(settings).get("do_lower_case", True) if settings.is_file() else True
    return BertWordPieceTokenizer.from_file(str(folder / "vocab.txt"), lowercase=lowercase)


def _notes(parts: Mapping[str, Part]) -> Iterator[str]:
    """What a user should know of a model made of these parts."""
    passages, reader = parts["passages"].checkpoint, parts["reader"].checkpoint
    if reader.kind == OPENQA:
        yield f"{reader.name} has vectors of passages that it lacks; left out: run quoth embed on your corpus"
    if passages.kind == OPENQA:
        yield (
            f"passages are embedded by the tower that {passages.name} has for questions; the published model's are by "
            "google/realm-cc-news-pretrained-embedder: name it as well"
        )
    if reader.kind == ENCODER:
        yield f"{reader.name} fills blanks; it has no span reader yet, so ask answers at random until it is trained"


def mix(encoder: str, retriever: str, output: Path, base: str | None = None) -> None:
    """Write a new model to the folder `output`: the reader ("encoder" in the paper) of the model `encoder`, the towers
    of `retriever`. REALM, Table 2.

    An untrained retriever, such as quoth-realm-base, is its base. Raises InputError if `output` is there already, if
    the models differ in a setting, or if `encoder` has no reader of its own; ModelNotFoundError.
    """
    reading, finding = locate(encoder, REALMConfig, base), locate(retriever, REALMConfig, base)
    _check_new(output)
    _check_alike(reading, finding)
    output.mkdir(parents=True, exist_ok=True)
    heads: dict[str, Tensor] = {}
    for source, parts in ((finding, ("passages", "queries")), (reading, ("reader",))):
        for part in parts:
            if source.folder is not None and (source.folder / part).is_dir():
                shutil.copytree(source.folder / part, output / part)
        stored = load_file(source.heads) if source.heads is not None else {}
        heads |= {name: weight for name, weight in stored.items() if name.partition(".")[0] in parts}
    atomic_write_bytes(output / HEADS_FILE, save(heads))
    named = replace(finding.config, reader="", base=finding.config.base or reading.config.base)
    atomic_write_json(output / SETTINGS_FILE, named.to_dict())


def _check_alike(reading: ModelSource[REALMConfig], finding: ModelSource[REALMConfig]) -> None:
    if reading.folder is None or reading.config.reader:
        raise InputError(f"model {reading.name!r} has no reader of its own; name the folder of a trained REALM")
    own, theirs = reading.config, finding.config
    shared = [field.name for field in fields(own) if field.name not in _OWN]
    unlike = [name for name in shared if getattr(own, name) != getattr(theirs, name)]
    if own.base and theirs.base and own.base != theirs.base:
        unlike.append("base")
    if unlike:
        values = f"{unlike[0]} is {getattr(own, unlike[0])} and {getattr(theirs, unlike[0])}"
        raise InputError(f"{reading.name} and {finding.name} have different settings: {values}; mix models of one kind")
