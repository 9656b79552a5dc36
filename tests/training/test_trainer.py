"""Training runs of a tiny encoder: they learn, they survive being broken off, and what they save is read back."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

import quoth
from quoth.encoders.rounding import rounded
from quoth.encoders.transformer import Transformer, apply_adapter, load_base, load_masked_lm
from quoth.errors import CorruptionError, InputError, TrainingError
from quoth.hub import locate
from quoth.npm import grad_cache
from quoth.npm.batches import TokenizedDocuments, tokenize_documents
from quoth.npm.collate import make_batch
from quoth.npm.config import NPMConfig, TrainConfig
from quoth.npm.task import NPMTask
from quoth.records import Document
from quoth.text.tokenizer import TextTokenizer
from quoth.training.adapter import ADAPTER, set_dropout
from quoth.training.distributed import SINGLE_PROCESS, World
from quoth.training.settings import LoopConfig
from quoth.training.trainer import Evaluation, Progress, Step, Trainer
from ranks import together
from tiny import tiny_npm

CONFIG = TrainConfig(
    steps=12,
    batch_size=4,
    learning_rate=1e-2,
    warmup_steps=2,
    lora_rank=4,
    max_passage_tokens=40,
    checkpoint_every=5,
    log_every=1,
)
TWIN = {"contrast_with": "nothing", "mlm_weight": 1.0}
SENTENCES = (
    "The capital of {0} is {1}. The river that flows through {1} gave {0} its name, as the poets of {1} say. "
    "Every spring the people of {0} walk along the river to the old tower of {1} and sing until night."
)
PLACES = {"Greece": "Athens", "France": "Paris", "Germany": "Berlin", "Korea": "Seoul", "China": "Beijing"}
DOCUMENTS = [Document(name, name, "\n\n".join([SENTENCES.format(name, city)] * 4)) for name, city in PLACES.items()]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_npm(tmp_path_factory.mktemp("tiny"), [document.text for document in DOCUMENTS])


@pytest.fixture(scope="module")
def data(base: Path) -> TokenizedDocuments:
    tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(base), num_masks=2, max_tokens=256)
    return tokenize_documents(DOCUMENTS, tokenizer, splitter="words:30", max_passage_tokens=CONFIG.max_passage_tokens)


def trainer(
    base: Path, data: TokenizedDocuments, output: Path, config: TrainConfig = CONFIG, world: World = SINGLE_PROCESS
) -> Trainer:
    source = locate(str(base), NPMConfig)
    npm = NPMConfig(base=str(base), similarity_scale=20.0, normalize=True, num_masks=config.num_masks)
    torch.manual_seed(config.seed)
    model, hf = (load_masked_lm if config.mlm_weight else load_base)(source.encoder)
    tokenizer = TextTokenizer(hf, num_masks=npm.num_masks, max_tokens=256)
    return Trainer(NPMTask(model, tokenizer, npm, data, config, world=world), config, output, world)


def changed(**settings: object) -> TrainConfig:
    return TrainConfig.from_dict({**CONFIG.to_dict(), **settings})


def weights(one: Trainer) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in one.parameters.items()}


def assert_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor], atol: float = 1e-5) -> None:
    """What one process computes twice, in as many threads, is the same to the bit; only another one adds otherwise."""
    assert left.keys() == right.keys()
    for name, value in left.items():
        torch.testing.assert_close(value, right[name], atol=atol, rtol=0)


@torch.no_grad()
def mean_loss(one: Trainer) -> float:
    """Over the first batches, masked the same way each time."""
    batches = (
        make_batch(one.task.data, one.task.sampler[i], one.task.tokenizer, one.config, np.random.default_rng(i))
        for i in range(8)
    )
    return float(np.mean([one.task.contrast.loss(batch).item() for batch in batches]))


class Stop(Exception):
    pass


def stop_at(step: int, error: type[BaseException] = Stop) -> Callable[[Progress], None]:
    """Told of this step, it raises the error."""

    def progress(now: Progress) -> None:
        if now.step == step:
            raise error

    return progress


@pytest.mark.parametrize("masking", ["spans", "tokens"])
@pytest.mark.parametrize("keys", ["clean", "masked"])
def test_a_batch_hides_what_it_says(
    base: Path, data: TokenizedDocuments, tmp_path: Path, masking: str, keys: str
) -> None:
    """The batch, read back: keys and positives show the tokens they stand for, and masks hide the positives' n-gram."""
    one = trainer(base, data, tmp_path, changed(masking=masking, contrast_with=keys))
    passages, tokenizer = one.task.sampler[0], one.task.tokenizer
    batch = make_batch(data, passages, tokenizer, one.config, np.random.default_rng(0))
    bodies = [data.ids[data.offsets[p] : data.offsets[p + 1]].tolist() for p in passages]
    assert batch.num_tokens == sum(map(len, bodies))
    assert len(batch.inputs) == len(passages) * (1 + (keys == "clean"))
    assert len(batch.masks_M2) == len(batch.masked_out_M) > 0
    key_ids = [int(batch.inputs[b][at]) for b, at in batch.keys_K2]
    if keys == "clean":
        assert key_ids == [token for body in bodies for token in body]
    assert tokenizer.mask_id not in key_ids

    hidden: dict[int, list[int]] = {}
    for query, start, end in zip(batch.positive_query, batch.positive_start, batch.positive_end, strict=True):
        assert batch.masked_out_K[start] == batch.masked_out_K[end] != batch.masked_out_M[query]
        words = key_ids[start : end + 1]
        assert hidden.setdefault(query, words) == words or keys == "masked"
    for s, body in enumerate(bodies):
        row = len(batch.inputs) - len(passages) + s
        shown = batch.inputs[row].tolist()
        for m in reversed(np.flatnonzero(batch.masked_out_M == s).tolist()):
            b, at = batch.masks_M2[m].tolist()
            assert b == row
            assert shown[at : at + tokenizer.num_masks] == [tokenizer.mask_id] * tokenizer.num_masks
            shown[at : at + tokenizer.num_masks] = hidden.get(m, [])
        if all(m in hidden for m in np.flatnonzero(batch.masked_out_M == s)):
            assert shown[len(shown) - len(body) - len(tokenizer.after) :][: len(body)] == body


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 8},
        {"masking": "tokens"},
        {"batch_size": 8, "contrast_with": "masked", "mask_ratio": 0.3},
        {"batch_size": 8, "learning_rate": 0.003, "lora_rank": 0, "similarity_chunk_size": 4},
        {"mlm_weight": 0.2},
        TWIN,
    ],
)
def test_training_lowers_the_loss(base: Path, data: TokenizedDocuments, tmp_path: Path, settings: dict) -> None:
    seen: list[Progress] = []
    one = trainer(base, data, tmp_path, changed(**settings))
    before = mean_loss(one)
    one.run(seen.append)
    assert mean_loss(one) < 0.96 * before
    assert [now.step for now in seen] == list(range(1, 13))
    assert all(now.tokens_per_second > 0 for now in seen)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record["step"] for record in log] == list(range(1, 13))


def test_the_learning_rate_rises_then_falls(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    one = trainer(base, data, tmp_path)
    rates = []
    for one.step in range(12):
        rates.append(one.learning_rate)
    assert rates == pytest.approx([1e-2 * x for x in (0.5, 1.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)])
    for steps, warmup in ((2, 50), (1, 0)):  # of the warm-up, half of the run at most
        config = LoopConfig(steps=steps, warmup_steps=warmup, learning_rate=1.0)
        short = Trainer(Late(), config, tmp_path / str(steps))
        for short.step in range(steps):
            assert short.learning_rate == 1.0


@pytest.mark.parametrize("settings", [{}, {"lora_rank": 0}, {"mlm_weight": 0.2}, TWIN, {**TWIN, "lora_rank": 0}])
def test_a_resumed_run_ends_where_an_unbroken_one_does(
    base: Path, data: TokenizedDocuments, tmp_path: Path, settings: dict
) -> None:
    config = changed(**settings)
    unbroken = trainer(base, data, tmp_path / "unbroken", config)
    unbroken.run()
    output = tmp_path / "broken"
    with pytest.raises(Stop):
        trainer(base, data, output, config).run(stop_at(7))
    with (output / "log.jsonl").open("a") as log:
        log.write('{"step": 8, "lo')
    resumed = trainer(base, data, output, config)
    assert resumed.step == 5
    resumed.run()
    assert_same(weights(unbroken), weights(resumed))
    logs = [(tmp_path / name / "log.jsonl").read_text(encoding="utf-8") for name in ("unbroken", "broken")]
    steps = [[(r["step"], r["loss"]) for r in map(json.loads, text.splitlines())] for text in logs]
    assert steps[0] == steps[1]
    assert [path.name for path in output.glob("checkpoint*")] == ["checkpoint-12"]


class Late:
    """A task whose second parameter has no gradient in its first four steps, as a warm-up leaves towers alone, and
    whose third never has one, as an unused pooler."""

    def __init__(self) -> None:
        self.parameters = {name: torch.nn.Parameter(torch.tensor([3.0, -2.0])) for name in ("early", "late", "never")}
        self.device = torch.device("cpu")

    def backward(self, step: int) -> Step:
        loss = sum((step + 1) * (one**2).sum() for one in [*self.parameters.values()][: 1 + (step >= 4)])
        loss.backward()
        return Step(loss.item(), 1)

    def save_model(self, folder: Path) -> None:
        pass

    def settings(self) -> dict:
        return {}


def test_a_parameter_that_learns_later_resumes_too(tmp_path: Path) -> None:
    config = LoopConfig(steps=12, checkpoint_every=7, learning_rate=0.1, warmup_steps=0, log_every=1)
    unbroken = Trainer(Late(), config, tmp_path / "unbroken")
    unbroken.run()
    with pytest.raises(Stop):
        Trainer(Late(), config, tmp_path / "broken").run(stop_at(8))
    resumed = Trainer(Late(), config, tmp_path / "broken")
    assert resumed.step == 7
    resumed.run()
    assert_same(weights(unbroken), weights(resumed))


KILLED = """
import sys, time
from pathlib import Path
import torch
from test_trainer import trainer
from quoth.npm.batches import TokenizedDocuments
torch.set_num_threads(int(sys.argv[4]))
base, tokens, output = map(Path, sys.argv[1:4])
def progress(now):
    print(now.step, flush=True)
    time.sleep(0.05)
trainer(base, TokenizedDocuments.load(tokens, "test"), output).run(progress)
"""


def test_a_killed_process_resumes(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    data.save(tmp_path / "tokens", "test")
    output = tmp_path / "run"
    paths = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *map(str, (base, tmp_path / "tokens", output, torch.get_num_threads()))],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
    )
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            if line.strip() == "8":
                break
        process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    resumed = trainer(base, data, output)
    assert resumed.step == 5
    resumed.run()
    unbroken = trainer(base, data, tmp_path / "unbroken")
    unbroken.run()
    # Sums in another order move these weights by 1e-5; a resume that forgets Adam's count of steps, the least that
    # it can forget, by 1.2e-2.
    assert_same(weights(unbroken), weights(resumed), atol=3e-4)


def test_a_kill_between_checkpoints_leaves_a_whole_one(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        trainer(base, data, tmp_path).run(stop_at(5 + 1))
    (tmp_path / "checkpoint.part").mkdir()
    (tmp_path / "checkpoint.part" / "state.safetensors").write_bytes(b"half")
    (tmp_path / "checkpoint-9.123.tmp").mkdir()
    (tmp_path / "checkpoint-3").mkdir()
    resumed = trainer(base, data, tmp_path)
    assert resumed.step == 5
    resumed.run()
    (tmp_path / "checkpoint-12" / "state.json").write_text("{", encoding="utf-8")
    with pytest.raises(CorruptionError, match=r"state\.json"):
        trainer(base, data, tmp_path)


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("learning_rate", 0.5, "learning_rate is 0.5"),
        ("steps", 11, "steps is 11"),
        ("masking", "tokens", "masking is 'tokens', num_masks is 1"),
    ],
)
def test_other_settings_do_not_resume(
    base: Path, data: TokenizedDocuments, tmp_path: Path, setting: str, value: object, named: str
) -> None:
    one = trainer(base, data, tmp_path)
    one.step = 5
    one.save_checkpoint()
    with pytest.raises(InputError, match=f"^{named}, but .* has a run with .*; use the same"):
        trainer(base, data, tmp_path, changed(**{setting: value}))


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_the_saved_adapter_is_what_was_trained(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    from peft import PeftModel

    one = trainer(base, data, tmp_path)
    one.run()
    ids = torch.tensor([[2, 7, 9, 11, 4, 13, 3]])
    plain = AutoModel.from_pretrained(base, add_pooling_layer=False).eval()
    with torch.no_grad():
        untrained = plain(ids).last_hidden_state
        theirs = PeftModel.from_pretrained(AutoModel.from_pretrained(base, add_pooling_layer=False), tmp_path).eval()
        expected = theirs(ids).last_hidden_state
        apply_adapter(plain, tmp_path)
        merged = plain(ids).last_hidden_state
        trained = one.task.model(ids).last_hidden_state
    torch.testing.assert_close(merged, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(merged, trained, atol=2e-2, rtol=0)
    assert (merged - untrained).abs().max() > 0.1

    npm = quoth.NPM.from_pretrained(tmp_path)
    assert npm.config == one.task.npm
    assert npm.fingerprint != quoth.NPM.from_pretrained(base).fingerprint
    text = "The capital of Greece is [MASK]."
    start, end = npm.query_vectors(text)
    query, masks = one.task.tokenizer.query(text)
    with torch.no_grad():
        hidden = one.task.model(torch.from_numpy(query)[None]).last_hidden_state[0, masks]
    assert np.stack([start, end]) == pytest.approx(torch.nn.functional.normalize(hidden, dim=-1).numpy(), abs=5e-3)


def test_full_fine_tuning_saves_a_whole_model(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    one = trainer(base, data, tmp_path, changed(lora_rank=0, steps=2))
    one.run()
    loaded = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
    assert_same(dict(loaded.named_parameters()), weights(one))
    npm = quoth.NPM.from_pretrained(tmp_path)
    assert (npm.config.similarity_scale, npm.config.normalize) == (20.0, True)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("in_bytes", [False, True])
def test_a_warm_start_goes_on_from_an_adapter(
    base: Path, data: TokenizedDocuments, tmp_path: Path, in_bytes: bool
) -> None:
    first = trainer(base, data, tmp_path / "first", changed(steps=2, bf16=True))
    first.run()
    if in_bytes:
        file = tmp_path / "first" / ADAPTER
        parts = [rounded(name, weight.float().numpy()) for name, weight in load_file(file).items()]
        save_file({name: torch.tensor(part) for each in parts for name, part in each.items()}, file)
    second = trainer(base, data, tmp_path / "second", changed(warm_start=str(tmp_path / "first")))
    for name, value in weights(second).items():
        torch.testing.assert_close(value, weights(first)[name], atol=2e-3 if in_bytes else 1e-3, rtol=1e-3)
    with pytest.raises(InputError, match="of rank 4, does not fit this model and lora_rank=8"):
        trainer(base, data, tmp_path / "third", changed(warm_start=str(tmp_path / "first"), lora_rank=8))
    with pytest.raises(InputError, match=r"has no adapter_model\.safetensors"):
        trainer(base, data, tmp_path / "third", changed(warm_start=str(tmp_path / "nowhere")))


def test_full_fine_tuning_goes_on_from_an_adapter(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    trainer(base, data, tmp_path / "first", changed(steps=2, bf16=True)).run()
    whole = trainer(base, data, tmp_path / "second", changed(warm_start=str(tmp_path / "first"), lora_rank=0))
    merged = Transformer.load(locate(str(tmp_path / "first"), NPMConfig).encoder).model.state_dict()
    untrained = dict(AutoModel.from_pretrained(base, add_pooling_layer=False).named_parameters())
    assert any(not torch.equal(merged[name], value) for name, value in untrained.items())
    for name, value in whole.parameters.items():
        torch.testing.assert_close(value.detach(), merged[name])


def test_bodies_longer_than_the_encoder_are_refused(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max_passage_tokens is 250; this encoder takes at most 19"):
        trainer(base, data, tmp_path, changed(max_passage_tokens=250))


@pytest.mark.parametrize("masking", ["spans", "tokens"])
@pytest.mark.parametrize(("keys", "weight"), [("clean", 0), ("masked", 0), ("masked", 0.2), ("nothing", 1)])
def test_gradient_caching_gives_the_direct_gradients(
    base: Path, data: TokenizedDocuments, tmp_path: Path, masking: str, keys: str, weight: float
) -> None:
    settings = {"masking": masking, "contrast_with": keys, "mlm_weight": weight, "lora_rank": 0}
    direct = trainer(base, data, tmp_path / "direct", changed(**settings))
    cached = trainer(base, data, tmp_path / "cached", changed(**settings, mini_batch_size=3, similarity_chunk_size=5))
    for step in range(3):
        passages, rng = direct.task.sampler[step], np.random.default_rng(step)
        batch = make_batch(data, passages, direct.task.tokenizer, direct.config, rng)
        assert cached.task.contrast.backward(batch) == pytest.approx(direct.task.contrast.backward(batch), abs=1e-5)
    for name, parameter in direct.parameters.items():
        if parameter.grad is not None:
            torch.testing.assert_close(cached.parameters[name].grad, parameter.grad, atol=1e-5, rtol=1e-4)
    assert max(float(p.grad.abs().max()) for p in direct.parameters.values() if p.grad is not None) > 1e-3


def test_inputs_encoded_by_length_have_the_same_gradients(
    base: Path, data: TokenizedDocuments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, parted = (trainer(base, data, tmp_path / name, changed(lora_rank=0)) for name in ("one", "parted"))
    batch, widths = one.task.batches(0)[0], list[int]()
    parted.task.model.register_forward_hook(lambda *call: widths.append(call[2].last_hidden_state.shape[1]))
    loss = one.task.contrast.backward(batch)
    lengths = sorted(map(len, batch.inputs), reverse=True)
    monkeypatch.setattr(grad_cache, "PADDED_TOKENS", 2 * lengths[0])
    assert parted.task.contrast.backward(batch) == pytest.approx(loss, rel=1e-5)
    assert widths == lengths[::2]
    assert len(set(widths)) > 1
    for name, parameter in one.parameters.items():
        if parameter.grad is not None:
            torch.testing.assert_close(parted.parameters[name].grad, parameter.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="there is no compiler")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # PyTorch's own, when it compiles
def test_a_compiled_encoder_has_the_same_gradients(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    settings = {"lora_rank": 4, "mini_batch_size": 3}
    one, compiled = (trainer(base, data, tmp_path, changed(compile=each, **settings)) for each in (False, True))
    for step in range(2):
        steps = [each.task.backward(step) for each in (one, compiled)]
        assert steps[1].loss == pytest.approx(steps[0].loss, rel=1e-5)
    assert one.parameters.keys() == compiled.parameters.keys()
    assert compiled.task.model._compiled_call_impl is not None  # else nothing was compared
    for name, parameter in one.parameters.items():
        torch.testing.assert_close(compiled.parameters[name].grad, parameter.grad, atol=1e-5, rtol=1e-3)


def test_what_cannot_be_compiled_says_so(
    base: Path, data: TokenizedDocuments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"compile with dropout 0.1: set compile=false, or dropout=0"):
        changed(compile=True, dropout=0.1)
    monkeypatch.setenv("CXX", "no-compiler")
    with pytest.raises(InputError, match=r"compile needs a C\+\+ compiler, and no-compiler is not here; install it"):
        trainer(base, data, tmp_path, changed(compile=True))


def test_gradient_caching_drops_the_same_twice(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    """Both passes give the same states, and the gradient is the slope of the loss that was reported."""
    one = trainer(base, data, tmp_path, changed(dropout=0.3, mini_batch_size=3, lora_rank=0))
    batch, seen = one.task.batches(0)[0], list[torch.Tensor]()
    one.task.model.register_forward_hook(lambda *call: seen.append(call[2].last_hidden_state.detach()))

    def loss() -> float:
        torch.manual_seed(5)
        return one.task.contrast.backward(batch)

    loss()
    first, second = seen[:3], seen[3:]
    assert len(batch.inputs) == 8
    for before, after in zip(first, second, strict=True):
        assert torch.equal(before, after)
    one.task.contrast.backward(batch)
    assert not torch.allclose(seen[6], first[0], atol=0.1)
    for parameter in one.parameters.values():
        parameter.grad = None
    loss()
    slopes = {name: p.grad for name, p in one.parameters.items() if p.grad is not None}
    length = math.sqrt(sum(float(slope.square().sum()) for slope in slopes.values()))
    values = []
    for way in (1.0, -2.0):
        with torch.no_grad():
            for name, slope in slopes.items():
                one.parameters[name] += way * 2e-3 / length * slope
        slopes = {name: slope.clone() for name, slope in slopes.items()}
        values.append(loss())
    assert (values[0] - values[1]) / 4e-3 == pytest.approx(length, rel=0.03)


def test_dropout_is_that_of_the_settings(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    for share in (0.0, 0.25):
        model = trainer(base, data, tmp_path, changed(dropout=share)).task.model
        dropouts = [module for module in model.modules() if isinstance(module, torch.nn.Dropout)]
        assert len(dropouts) == 7
        assert {module.p for module in dropouts} == {share}
        assert all(module.training == (share > 0) for module in model.modules())
    with pytest.raises(InputError, match=r"dropout is 0.1, but Linear has no dropout layers; it must be 0"):
        set_dropout(torch.nn.Linear(2, 2), 0.1)
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match=r"dropout is .*; it must be .*0 or more and below 1"):
            changed(dropout=share)


def test_groups_are_contrasted_within_themselves(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    grouped = trainer(base, data, tmp_path / "grouped", changed(batch_size=8, groups=2, lora_rank=0))
    halves = grouped.task.batches(grouped.step)
    assert [len(half.inputs) for half in halves] == [8, 8]
    loss = grouped._train(0.0).loss
    apart = trainer(base, data, tmp_path / "apart", changed(batch_size=4, lora_rank=0))
    mean = (apart.task.contrast.loss(halves[0]) + apart.task.contrast.loss(halves[1])) / 2
    assert loss == pytest.approx(mean.item(), abs=1e-5)
    grouped.task.contrast.backward(halves[0], 0.5)
    grouped.task.contrast.backward(halves[1], 0.5)
    for name, gradient in zip(apart.parameters, torch.autograd.grad(mean, [*apart.parameters.values()]), strict=True):
        torch.testing.assert_close(grouped.parameters[name].grad, gradient, atol=1e-6, rtol=1e-4)
    assert len(apart.task.sampler) == len(grouped.task.sampler)


def test_only_the_phrase_itself_is_masked_out(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    one = trainer(base, data, tmp_path, changed(negatives="all"))
    batch, by_passage = (
        make_batch(data, one.task.sampler[0], one.task.tokenizer, changed(negatives=by), np.random.default_rng(0))
        for by in ("all", "other_passages")
    )
    assert batch.masked_out_M.tolist() == list(range(len(batch.masks_M2)))
    hidden = batch.inputs[len(batch.inputs) // 2 :]
    removed = sum(len(ids) for ids in batch.inputs[: len(hidden)]) + 2 * len(batch.masks_M2) - sum(map(len, hidden))
    assert np.count_nonzero(batch.masked_out_K >= 0) == removed
    for label in range(len(batch.masks_M2)):
        own = by_passage.masked_out_K[batch.masked_out_K == label]
        assert set(own.tolist()) == {by_passage.masked_out_M[label]}


def train(world: World, base: Path, tokens: Path, output: Path, groups: int, weight: float) -> None:
    settings = changed(mini_batch_size=2, groups=groups, mlm_weight=weight)
    trainer(base, TokenizedDocuments.load(tokens, "test"), output, settings, world).run()


@pytest.mark.parametrize(("groups", "weight"), [(1, 0.0), (2, 0.5)])
def test_two_processes_train_as_one(
    base: Path, data: TokenizedDocuments, tmp_path: Path, groups: int, weight: float
) -> None:
    data.save(tmp_path / "tokens", "test")
    together(train, base, tmp_path / "tokens", tmp_path / "two", groups, weight)
    one = trainer(base, data, tmp_path / "one", changed(groups=groups, mlm_weight=weight))
    one.run()
    ours, theirs = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("one", "two"))
    for name, weight in ours.items():
        torch.testing.assert_close(theirs[name].float(), weight.float(), atol=2e-3, rtol=0)
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("one", "two")]
    losses = [[json.loads(line)["loss"] for line in lines] for lines in logs]
    assert losses[1] == pytest.approx(losses[0], abs=1e-3)
    assert len(losses[0]) == CONFIG.steps


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.3, "mini_batch_size": 3, "steps": 4}])
def test_a_run_in_slices_ends_where_an_unbroken_one_does(
    base: Path, data: TokenizedDocuments, tmp_path: Path, settings: dict
) -> None:
    config, slices = changed(**settings), 1
    while not trainer(base, data, tmp_path / "sliced", config).run(seconds=0):
        slices += 1
    assert slices == config.steps
    torch.manual_seed(99)
    unbroken = trainer(base, data, tmp_path / "unbroken", config)
    assert unbroken.run()
    ours, theirs = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("sliced", "unbroken"))
    assert_same(ours, theirs)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(
    base: Path, data: TokenizedDocuments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trainer(base, data, tmp_path)
    backward = one.task.contrast.backward
    monkeypatch.setattr(
        one.task.contrast, "backward", lambda batch, weight: backward(batch, weight) if one.step < 7 else float("nan")
    )
    with pytest.raises(TrainingError, match=r"the loss is nan at step 8; the last checkpoint in .* is kept"):
        one.run()
    assert trainer(base, data, tmp_path).step == 5


def test_passages_without_a_phrase_in_common_are_counted(base: Path, tmp_path: Path) -> None:
    tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(base), num_masks=2, max_tokens=256)
    texts = ["Athens", "Paris", "the poets", "Every spring"]
    nothing = tokenize_documents([Document(text, "", text) for text in texts], tokenizer)
    seen: list[Progress] = []
    one = trainer(base, nothing, tmp_path, changed(steps=2))
    before = weights(one)
    one.run(seen.append)
    assert [now.skipped for now in seen] == [4, 4]
    assert_same(before, weights(one))


def test_the_best_model_is_kept(base: Path, data: TokenizedDocuments, tmp_path: Path) -> None:
    scores = {3: 0.2, 6: 0.5, 9: 0.4, 12: 0.1}
    config = changed(evaluate_on="pages.jsonl", evaluate_every=3)
    one = trainer(base, data, tmp_path, config)
    at_best: list[dict[str, torch.Tensor]] = []

    def evaluate(folder: Path) -> dict[str, float]:
        quoth.NPM.from_pretrained(folder)
        if one.step == 6:
            at_best.append(load_file(folder / "adapter_model.safetensors"))
        return {"score": scores[one.step], "other": 1.0}

    one.run(evaluation=Evaluation(3, evaluate))
    assert_same(load_file(tmp_path / "best" / "adapter_model.safetensors"), at_best[0])
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert {record["step"]: record["score"] for record in log if "score" in record} == scores
