import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from quoth.encoders import transformer
from quoth.encoders.bert import BertEncoder
from quoth.encoders.config import BertConfig
from quoth.encoders.encoder import PUBLISHED_FINGERPRINTS, fingerprint_of
from quoth.encoders.tokens import TokenEncoder
from quoth.encoders.transformer import (
    Transformer,
    apply_adapter,
    attend_in_fp32,
    dtype_named,
    load_base,
    pad,
    parameters,
)
from quoth.errors import InputError, ModelNotFoundError
from quoth.hub import EncoderSource, ModelSource, locate
from quoth.ner.config import TaggerConfig
from quoth.npm.config import NPMConfig
from quoth.records import Passage
from quoth.text.tokenizer import FastTokenizer, batches_by_length
from tiny import TEXT, TOKENIZERS, tiny_bert, tiny_mpnet, tiny_roberta

KINDS = {**TOKENIZERS, "mpnet": tiny_mpnet}
LENGTHS = [3, 40, 1, 17, 260, 40, 2]


@pytest.fixture(scope="module", params=KINDS)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return KINDS[request.param](tmp_path_factory.mktemp("model") / request.param)


def random_inputs() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.integers(5, 90, length) for length in LENGTHS]


def test_batches_equal_one_by_one_and_the_model_itself(folder: Path) -> None:
    transformer = Transformer.load(locate(str(folder), NPMConfig).encoder)
    assert transformer.max_tokens == 260
    inputs = random_inputs()
    together = transformer.encode(inputs)
    model, _ = load_base(locate(str(folder), NPMConfig).encoder)
    for ids, found in zip(inputs, together, strict=True):
        assert found.shape == (len(ids), transformer.dimensions)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, transformer.encode([ids])[0], atol=1e-5)
        with torch.no_grad():
            alone = model.eval()(input_ids=torch.from_numpy(ids)[None]).last_hidden_state[0].numpy()
        np.testing.assert_allclose(found, alone, atol=1e-5)
    assert transformer.encode([]) == []


def test_the_light_path_gives_what_transformers_gives(folder: Path) -> None:
    source = locate(str(folder), NPMConfig)
    light = Transformer.load(source.encoder)
    model, tokenizer = load_base(source.encoder)
    assert isinstance(light.model, BertEncoder)
    assert light.fingerprint == fingerprint_of(parameters(model), tokenizer, None)
    texts = [*TEXT, "", " \u200b\ufeff x\u0000y", f"a {tokenizer.mask_token} b, naïve ½ 🙂 세종대왕은"]
    for special in (True, False):
        wanted = tokenizer(texts, add_special_tokens=special, return_offsets_mapping=True)
        found = light.tokenizer(texts, add_special_tokens=special, return_offsets_mapping=True)
        assert found["input_ids"] == wanted["input_ids"]
        assert found["offset_mapping"] == [[tuple(pair) for pair in each] for each in wanted["offset_mapping"]]
    for name in ("mask_token", "mask_token_id", "pad_token_id", "unk_token_id"):
        assert getattr(light.tokenizer, name) == getattr(tokenizer, name)


def test_the_light_path_is_right_about_the_default_encoder() -> None:
    source = locate("quoth-mini-base", NPMConfig)
    model, tokenizer = load_base(source.encoder)
    light = Transformer.load(source.encoder)
    full = Transformer(model, tokenizer, fingerprint_of(parameters(model), tokenizer, None))
    assert light.fingerprint == full.fingerprint
    inputs = [np.array(tokenizer(text)["input_ids"]) for text in TEXT]
    for found, wanted in zip(light.encode(inputs), full.encode(inputs), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_the_light_path_imports_nothing_slow() -> None:
    program = (
        "import sys; from quoth.npm.config import NPMConfig; from quoth.hub import locate; "
        "from quoth.encoders.transformer import Transformer; "
        "Transformer.load(locate('quoth-mini', NPMConfig).encoder); slow = {'transformers', 'peft', 'torch._dynamo'}; "
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_other_architectures_go_through_transformers(tmp_path: Path) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    folder = tiny_bert(tmp_path / "tiny")
    vocabulary = len(FastTokenizer(folder).get_vocab())
    DistilBertModel(
        DistilBertConfig(vocab_size=vocabulary, dim=32, n_layers=1, n_heads=2, hidden_dim=64)
    ).save_pretrained(folder)
    assert BertConfig.read(folder) is None
    transformer = Transformer.load(locate(str(folder), NPMConfig).encoder)
    assert isinstance(transformer.model, DistilBertModel)
    assert transformer.encode([np.array([2, 7, 3])])[0].shape == (3, 32)


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    weights = load_file(folder / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    save_file({**weights, name: weights[name][:3].contiguous()}, folder / "model.safetensors")
    with pytest.raises(ModelNotFoundError, match=rf"{name} has shape \[3, 64\], .* says \[32, 64\]"):
        Transformer.load(locate(str(folder), NPMConfig).encoder)
    del weights[name]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelNotFoundError, match=f"lacks {name}"):
        Transformer.load(locate(str(folder), NPMConfig).encoder)
    (folder / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelNotFoundError, match=r"model.safetensors"):
        Transformer.load(locate(str(folder), NPMConfig).encoder)


def test_what_transformers_would_make_up_is_refused(tmp_path: Path) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    folder = tiny_bert(tmp_path / "tiny")
    config = DistilBertConfig(vocab_size=len(FastTokenizer(folder).get_vocab()), dim=32, n_layers=1, n_heads=2)
    DistilBertModel(config).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    name = "transformer.layer.0.ffn.lin1.weight"
    del weights[name]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelNotFoundError, match=rf"lacks 1 of its weights, such as {name}, which would be random"):
        Transformer.load(locate(str(folder), NPMConfig).encoder)


def test_a_decoder_is_refused(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    folder = tiny_roberta(tmp_path / "tiny")
    GPT2Model(GPT2Config(vocab_size=500, n_embd=32, n_layer=1, n_head=2, n_positions=64)).save_pretrained(folder)
    with pytest.raises(InputError, match=r"is a gpt2, a decoder: its tokens see only earlier ones; name a"):
        Transformer.load(locate(str(folder), NPMConfig).encoder)


def test_attention_in_fp32_is_attention(folder: Path) -> None:
    model, _ = load_base(locate(str(folder), NPMConfig).encoder)
    ids_BT, mask_BT = pad([np.array([5, 9, 7, 8]), np.array([6, 5])], 0)
    with torch.no_grad():
        before = model(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
        attend_in_fp32(model)
        after = model(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
        with torch.autocast("cpu", torch.bfloat16):
            coarse = model(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
    torch.testing.assert_close(after[0], before[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(after[1, :2], before[1, :2], atol=1e-5, rtol=0)
    torch.testing.assert_close(coarse[0].float(), before[0], atol=0.2, rtol=0)
    own = model.config.model_type == "mpnet"  # transformers gives MPNet only its own attention
    assert model.config._attn_implementation == ("eager" if own else "sdpa_fp32")


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"alpha_pattern": {"query": 32}}, "LORA with alpha_pattern"),
        ({"use_dora": True}, "LORA with use_dora"),
        ({"bias": "all"}, "LORA with bias 'all'"),
        ({"peft_type": "LOHA"}, "LOHA with bias 'none'"),
    ],
)
def test_adapters_that_are_more_than_lora_are_refused(tmp_path: Path, settings: dict[str, Any], kind: str) -> None:
    plain = {"peft_type": "LORA", "r": 2, "lora_alpha": 2, "bias": "none"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(plain | settings))
    with pytest.raises(InputError, match=f"is a {kind}; only plain LORA can be loaded: merge it"):
        apply_adapter(None, tmp_path)


def test_adapters_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "tiny")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 2}')
    with pytest.raises(ModelNotFoundError, match=r"has no adapter_model\.safetensors; fetch or train it again"):
        Transformer.load(locate(str(folder), NPMConfig).encoder)
    for place in ("encoder.layer.9.output.dense", "encoder.layer.1.output.dense"):
        name = f"base_model.model.{place}.lora_A.weight"
        weights = {name: torch.zeros(2, 5), name.replace("lora_A", "lora_B"): torch.zeros(32, 2)}
        save_file(weights, folder / "adapter_model.safetensors")
        with pytest.raises(InputError, match=f"does not fit its base at {place}; name the base"):
            Transformer.load(locate(str(folder), NPMConfig).encoder)


def test_padding_is_bounded() -> None:
    lengths = np.random.default_rng(0).integers(1, 300, 200).tolist()
    batches = list(batches_by_length(lengths, limit=1000))
    assert sorted(member for batch in batches for member in batch) == list(range(200))
    assert all(len(batch) * max(lengths[i] for i in batch) <= 1000 for batch in batches)
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert padded <= 1.25 * sum(lengths)
    assert list(batches_by_length([5000, 1], limit=1000)) == [[0], [1]]
    assert list(batches_by_length([])) == []


def test_pad_by_hand() -> None:
    ids_BT, mask_BT = pad([np.array([7, 8, 9]), np.array([5])], pad_id=1)
    assert ids_BT.tolist() == [[7, 8, 9], [5, 1, 1]]
    assert mask_BT.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_half_precision_is_near(folder: Path) -> None:
    exact = Transformer.load(locate(str(folder), NPMConfig).encoder).encode(random_inputs())
    half = Transformer.load(locate(str(folder), NPMConfig).encoder, dtype="bf16").encode(random_inputs())
    for a, b in zip(exact, half, strict=True):
        assert b.dtype == np.float32
        assert np.abs(a - b).mean() < 0.1


def test_the_precision_is_what_the_processor_multiplies_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert dtype_named(None, cpu) == "fp32"  # of tests, by QUOTH_DTYPE
    monkeypatch.delenv("QUOTH_DTYPE")
    for name in (None, "auto"):
        for fastest in ("int8", "bf16", "fp32"):
            monkeypatch.setattr(transformer, "fastest_dtype", lambda fastest=fastest: fastest)
            assert dtype_named(name, cpu) == fastest
            assert dtype_named(name, torch.device("cuda")) == "fp32"
            assert dtype_named("fp16", cpu) == "fp16"
    with pytest.raises(InputError, match="int8 is for the processor, not for cuda; use fp16 or bf16"):
        dtype_named("int8", torch.device("cuda"))


@pytest.mark.parametrize(
    ("seconds", "exact", "fastest"),
    [
        ((1.0, 0.69, 0.68), True, "int8"),
        ((1.0, 0.69, 0.68), False, "bf16"),
        ((1.0, 0.68, 0.69), True, "bf16"),
        ((1.0, 0.71, 0.72), True, "fp32"),
        ((1.0, 4.0, 0.5), False, "fp32"),
    ],
)
def test_formats_are_tried(
    monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, float, float], exact: bool, fastest: str
) -> None:
    """Of ten trials of each the fastest counts."""
    clock = iter(t for each in seconds for trial in (9, 2, 1, 3, 9, 9, 9, 9, 9, 9) for t in (0.0, each * trial))
    monkeypatch.setattr(transformer, "perf_counter", lambda: next(clock))
    if not exact:
        multiply = torch._int_mm
        monkeypatch.setattr(torch, "_int_mm", lambda a, b: multiply(a, b) - 10_000)
    assert transformer.fastest_dtype.__wrapped__() == fastest


def test_fingerprints_name_weights_and_settings(folder: Path, tmp_path: Path) -> None:
    first, again = (TokenEncoder.load(locate(str(folder), NPMConfig)) for _ in range(2))
    half = TokenEncoder.load(locate(str(folder), NPMConfig), dtype="bf16")
    other = TokenEncoder.load(locate(str(KINDS[folder.name](tmp_path / "other", seed=1)), NPMConfig))
    normal = TokenEncoder.load(ModelSource("n", NPMConfig(base="", normalize=True), None, str(folder)))
    assert first.fingerprint == again.fingerprint == half.fingerprint
    assert len({first.fingerprint, other.fingerprint, normal.fingerprint}) == 3


@pytest.mark.parametrize("name", ["quoth-mini-base", "quoth-mini-single", "quoth-tagger"])
def test_vectors_of_the_published_base_are_those_of_the_shipped_one(name: str) -> None:
    source = locate(name, TaggerConfig if name == "quoth-tagger" else NPMConfig)
    assert Transformer.load(source.encoder).fingerprint in PUBLISHED_FINGERPRINTS.values()


def test_titles_are_read_unless_the_settings_say_otherwise(folder: Path) -> None:
    base = locate(str(folder), NPMConfig).base
    with_titles, without = (
        TokenEncoder.load(ModelSource("n", NPMConfig(base="", titles=titles), None, base)) for titles in (True, False)
    )
    passages = [Passage(0, "d", title, "Paris is the capital.", 0, 21) for title in ("Germany", "")]
    titled, plain = (each.vectors_TD for each in with_titles.encode(passages))
    unread, same = (each.vectors_TD for each in without.encode(passages))
    np.testing.assert_array_equal(unread, same)
    np.testing.assert_allclose(unread, plain, atol=1e-5)
    assert np.abs(titled - plain).max() > 1e-3
    assert with_titles.fingerprint != without.fingerprint


def test_token_encoder_conventions(folder: Path) -> None:
    source = locate(str(folder), NPMConfig)
    plain = TokenEncoder.load(source)
    assert plain.scale == pytest.approx(32**-0.5)
    normal = TokenEncoder.load(
        ModelSource("n", NPMConfig(base="", normalize=True, similarity_scale=20.0), None, source.base)
    )
    assert normal.scale == 20.0
    texts = ["Paris is the capital.", "The raven " * 200, "\u200b"]
    for encoder in (plain, normal):
        found = encoder.passages(texts, ["Title", "", ""])
        for each in found:
            assert each.vectors_TD.shape == (len(each.tokens.ids_T), 32)
        assert len(found[1].tokens.windows) > 1
        alone = encoder.passages(texts[:1], ["Title"])[0]
        np.testing.assert_allclose(found[0].vectors_TD, alone.vectors_TD, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found[1].vectors_TD, axis=1), 1, atol=1e-5)
    ids = plain.tokenizer.query("the [MASK] door")[0]
    (start, end), states = plain.blanks(["the [MASK] door"])[0], plain._encoder.encode([ids])[0]
    at = ids.tolist().index(plain.tokenizer.mask_id)
    np.testing.assert_allclose([start, end], states[at : at + 2], atol=1e-5)
    with pytest.raises(InputError, match="has no words"):
        plain.words("  ")


def test_inputs_never_exceed_the_model(folder: Path) -> None:
    source = ModelSource("long", NPMConfig(base="", max_tokens=512), None, str(folder))
    encoder = TokenEncoder.load(source)
    assert encoder.tokenizer.max_tokens == 260
    assert len(encoder.passages(["raven " * 600], [""])[0].tokens.windows) > 2


def test_sample_queries_are_cut_without_a_word(folder: Path) -> None:
    encoder = TokenEncoder.load(locate(str(folder), NPMConfig))
    places = [("a [MASK] b", 0, 1), ("a " * 400, 400, 401), ("a b", 0, 1)]
    assert encoder.queries_at(places, 2).shape == (4, 32)


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="device 'gpu9' is not available on this machine; use cpu"):
        Transformer.load(locate(str(folder), NPMConfig).encoder, device="gpu9")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match=r"device 'cuda' is not available on this machine; use cpu( or mps)?$"):
            Transformer.load(locate(str(folder), NPMConfig).encoder, device="cuda")
    with pytest.raises(InputError, match="dtype 'fp8' is unknown; use one of fp32, bf16, fp16, int8, auto"):
        Transformer.load(locate(str(folder), NPMConfig).encoder, dtype="fp8")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelNotFoundError, match="cannot be loaded: ") as error:
        Transformer.load(locate(str(tmp_path), NPMConfig).encoder)
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_an_adapter_is_added_as_peft_adds_it(folder: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    model, _ = load_base(locate(str(folder), NPMConfig).encoder)
    torch.manual_seed(0)
    adapted = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["query", "value", "dense"]))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    adapted.save_pretrained(tmp_path)
    transformer = Transformer.load(EncoderSource(str(folder), tmp_path))
    ids = random_inputs()[1]
    with torch.no_grad():
        expected = adapted.eval()(input_ids=torch.from_numpy(ids)[None]).last_hidden_state[0].numpy()
    np.testing.assert_allclose(transformer.encode([ids])[0], expected, atol=1e-4)
    assert transformer.fingerprint != Transformer.load(locate(str(folder), NPMConfig).encoder).fingerprint
