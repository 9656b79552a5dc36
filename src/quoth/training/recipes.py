"""Recipes: named starting points for training, and the one function that runs them.

Knows: which recipes there are, settings that work. Does not know: how a task is made (the systems' `recipe` does), or
the loop. Importing this module is fast: torch is imported when a recipe runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quoth.errors import InputError
from quoth.ner.config import TaggingConfig
from quoth.npm.config import TrainConfig
from quoth.reader.config import ReaderTrainConfig
from quoth.realm.config import FineTuneConfig, ICTConfig, PretrainConfig
from quoth.training.settings import LoopConfig, with_overrides

if TYPE_CHECKING:
    from quoth.datasets.questions import OnBad
    from quoth.hub import ModelSource
    from quoth.reader.config import ReaderConfig
    from quoth.training.distributed import World
    from quoth.training.run import Job, Preparing, Run
    from quoth.training.trainer import Progress


@dataclass(frozen=True, slots=True)
class Recipe:
    """The kind of model, the model to start from, how to train it, and what makes the task of a run.

    `retrieves`: the run may retrieve from another corpus than that of its inputs. `distributed`: several processes may
    share the run.
    """

    kind: Literal["npm", "realm", "reader", "tagger"]
    model: str
    config: LoopConfig
    prepare: Callable[[Run, Any], Job]
    retrieves: bool = False
    distributed: bool = True


def _npm(run: Run, config: TrainConfig) -> Job:
    from quoth.npm.recipe import prepare

    return prepare(run, config)


def _realm(run: Run, config: ICTConfig | PretrainConfig | FineTuneConfig) -> Job:
    from quoth.realm.recipe import prepare

    return prepare(run, config)


def _reader(run: Run, config: ReaderTrainConfig) -> Job:
    from quoth.reader.recipe import prepare

    return prepare(run, config)


def _tagger(run: Run, config: TaggingConfig) -> Job:
    from quoth.ner.recipe import prepare

    return prepare(run, config)


_MINI = TrainConfig(
    steps=3000,
    warmup_steps=50,
    batch_size=32,
    learning_rate=6e-4,
    max_grad_norm=1.0,
    dropout=0.0,
    mask_ratio=0.2,
    max_repeats=3,
    contrast_with="masked",
    bf16=True,
)
_MINI_GPU = replace(_MINI, batch_size=512, mini_batch_size=256, warmup_steps=200)
_ADAPT = replace(_MINI, steps=300, batch_size=16, mini_batch_size=8, learning_rate=3e-4, checkpoint_every=20)
# The paper's own NPM (Min et al. 2022, §4): all of RoBERTa-large, inputs of up to 256 tokens; clip and dropout as in
# the released code.
_NPM_PAPER = TrainConfig(
    steps=100_000,
    warmup_steps=4_000,
    batch_size=512,
    mini_batch_size=32,
    splitter="filled",
    max_passage_tokens=254,
    learning_rate=3e-5,
    weight_decay=0.01,
    max_grad_norm=2.0,
    dropout=0.1,
    lora_rank=0,
    bf16=True,
    checkpoint_every=1_000,
)
_ICT = ICTConfig(steps=300, batch_size=32, learning_rate=3e-4, warmup_steps=20, bf16=True)
_PRETRAIN = PretrainConfig(
    steps=300,
    batch_size=8,
    learning_rate=3e-4,
    warmup_steps=20,
    bf16=True,
    exclude_self="passage",
    refresh_every=100,
    splitter="words:60",
)
# Guu et al. 2020, §4.3.
_PRETRAIN_PAPER = PretrainConfig(
    steps=200_000,
    batch_size=512,
    mini_batch_size=8,
    learning_rate=3e-5,
    warmup_steps=10_000,
    lora_rank=0,
    dropout=0.1,
    bf16=True,
    checkpoint_every=500,
)
# A small beam leaves out passages that contain an answer's text by chance. With few questions these outnumber the right
# ones.
_QA = FineTuneConfig(
    steps=500,
    batch_size=8,
    retriever_beam_size=20,
    learning_rate=3e-4,
    warmup_steps=20,
    bf16=True,
    force_positive=True,
)
# ORQA's numbers (Lee et al. 2019, §6.2), which REALM takes over: two epochs over the 79,168 questions of Natural
# Questions, one question per step.
_QA_PAPER = FineTuneConfig(
    steps=158_336,
    batch_size=1,
    retriever_beam_size=5000,
    learning_rate=1e-5,
    warmup_steps=10_000,
    lora_rank=0,
    dropout=0.1,
    checkpoint_every=1_000,
)
_BASE, _REALM_BASE = "quoth-mini-base", "quoth-realm-base"

RECIPES: dict[str, Recipe] = {
    "npm-mini-cpu": Recipe("npm", _BASE, _MINI, _npm),
    "npm-single-mini-cpu": Recipe("npm", _BASE, replace(_MINI, masking="tokens"), _npm),
    "mlm-mini-cpu": Recipe("npm", _BASE, replace(_MINI, contrast_with="nothing", mlm_weight=1.0), _npm),
    "npm-mini-gpu": Recipe("npm", _BASE, _MINI_GPU, _npm),
    "npm-single-mini-gpu": Recipe("npm", _BASE, replace(_MINI_GPU, masking="tokens"), _npm),
    "npm-large": Recipe("npm", "FacebookAI/roberta-large", _NPM_PAPER, _npm),
    "adapt": Recipe("npm", "quoth-mini", _ADAPT, _npm),
    "reader": Recipe("reader", "quoth-reader", ReaderTrainConfig(), _reader, distributed=False),
    "tagger": Recipe("tagger", _BASE, TaggingConfig(), _tagger, distributed=False),
    "realm-ict": Recipe("realm", _REALM_BASE, _ICT, _realm),
    "realm-pretrain": Recipe("realm", _REALM_BASE, _PRETRAIN, _realm, retrieves=True),
    "realm-qa": Recipe("realm", _REALM_BASE, _QA, _realm),
    "realm-pretrain-paper": Recipe("realm", _REALM_BASE, _PRETRAIN_PAPER, _realm, retrieves=True),
    "realm-qa-paper": Recipe("realm", _REALM_BASE, _QA_PAPER, _realm),
}


def run_recipe(
    name: str,
    inputs: Sequence[str | Path],
    output: str | Path,
    overrides: Mapping[str, object] | None = None,
    *,
    model: str | ModelSource[ReaderConfig] | None = None,
    corpus: str | Path | None = None,
    base: str | None = None,
    seconds: float | None = None,
    resume: bool = True,
    progress: Callable[[Progress], None] | None = None,
    preparing: Preparing | None = None,
    on_bad: OnBad | None = None,
) -> bool:
    """Train a model by a recipe. A stopped run resumes from its last checkpoint and ends at an unbroken run's weights.

    Args:
        name: A key of `RECIPES`.
        inputs: What to learn from: files or folders of documents, or one corpus; for `realm-qa` files of questions, for
            `reader` files of questions with their passages (`FILE:SHARE`: a share per epoch), for `tagger` CoNLL files.
        output: Folder for the model, its checkpoints and its log.
        overrides: Settings of the recipe to change, such as `{"steps": 200}`. More `steps` or `epochs` than before
            extend a run. With `evaluate_on` and `evaluate_every` held-out documents measure the model.
        model: Model to start from: name, folder or hub id. Default: the recipe's.
        corpus: For `realm-pretrain`: retrieve from this corpus instead of the inputs. A text of the inputs that occurs
            in it too, in a document of the same id, is never retrieved for itself.
        base: Folder to read base encoder weights from, instead of the installed ones.
        seconds: Stop with a checkpoint after this many seconds. Default: no limit.
        resume: Whether to continue a run in `output`; if false, a folder with a run is refused.
        progress: Called with the run's `Progress` after its first step, and then at least every half minute.
        preparing: Called before the first step with what is being done, how much of it is done, and the total (None:
        unknown).
        on_bad: For `reader`: called with the error of a broken record, which is then left out.

    Returns:
        Whether the last step was done.

    Raises:
        InputError: An unknown recipe or setting, a broken file, or other settings than those of the run in `output`.
        LockedError: Another process trains into `output`.
        TrainingError: The loss is not a finite number.
    """
    recipe, config = _chosen(name, overrides or {}, corpus is not None, on_bad is not None)
    output = Path(output)
    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is a file; name a folder for the model")
    files = [str(inputs)] if isinstance(inputs, (str, Path)) else [str(file) for file in inputs]
    from quoth.training.run import Run
    from quoth.training.trainer import Trainer

    with ExitStack() as stack:
        world = _world(name, recipe, output, resume)
        run = Run(files, output, model or recipe.model, world, stack, base, corpus, preparing, on_bad)
        job = recipe.prepare(run, config)
        trainer = Trainer(job.task, job.config, output, world)
        run.counter("training", job.config.steps)(trainer.step)
        done = trainer.run(progress, job.evaluation, seconds)
    world.shutdown()
    return done


def _chosen(name: str, overrides: Mapping[str, object], corpus: bool, on_bad: bool) -> tuple[Recipe, LoopConfig]:
    """The recipe and its settings; `corpus` and `on_bad`: whether these were given."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; it must be one of {', '.join(RECIPES)}")
    recipe = RECIPES[name]
    if "steps" in overrides and hasattr(recipe.config, "epochs"):
        raise InputError(
            f"`steps` cannot be set for the recipe {name} (it follows from the data); set `epochs` instead"
        )
    if corpus and not recipe.retrieves:
        raise InputError(f"corpus= is for realm-pretrain, not for {name}; realm-qa has the setting corpus=DIR")
    if on_bad and recipe.kind != "reader":
        raise InputError(f"on_bad= is for the recipe reader, not for {name}; leave it out")
    return recipe, with_overrides(recipe.config, overrides)


def _world(name: str, recipe: Recipe, output: Path, resume: bool) -> World:
    """The processes of the run, once it is clear that it may write to `output`."""
    from quoth.training.distributed import World
    from quoth.training.trainer import checkpoints

    if (output / "committed.json").exists():
        raise InputError(f"{str(output)!r} is a corpus; name another folder for the model")
    if not resume and (steps := checkpoints(output)):
        raise InputError(f"{str(output)!r} has a run at step {max(steps)}; resume it, or name another folder")
    world = World.join()
    if world.size > 1 and not recipe.distributed:
        raise InputError(f"the recipe {name} runs in a single process; start it without torchrun")
    return world
