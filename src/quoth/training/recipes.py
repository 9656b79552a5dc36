"""Recipes: named starting points for training, and the one function that runs them.

Knows: how a run begins and ends. Does not know: the recipes (the systems' `config` has them), how a task is made (their
`recipe` does), or the loop. Importing this module is fast: torch is imported when a recipe runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.errors import InputError, nearest, needs_torch
from quoth.registry import SYSTEMS, named
from quoth.training.settings import LoopConfig, Recipe, with_overrides

if TYPE_CHECKING:
    from quoth.corpus.documents import OnBad
    from quoth.hub import ModelSource
    from quoth.training.distributed import World
    from quoth.training.run import Preparing
    from quoth.training.trainer import Progress


RECIPES: dict[str, Recipe] = {
    name: recipe for row in SYSTEMS.values() if row.recipes for name, recipe in named(row.recipes).items()
}


def run_recipe(
    name: str,
    inputs: Sequence[str | Path],
    output: str | Path,
    overrides: Mapping[str, object] | None = None,
    *,
    model: str | ModelSource[Any] | None = None,
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
            `reader` files of questions with their passages (`FILE:SHARE`: a share per epoch), for `tagger` CoNLL files,
            for `npm-queries` files of texts with `[MASK]` and their answers.
        output: Folder for the model, its checkpoints and its log.
        overrides: Settings of the recipe to change, such as `{"steps": 200}`. More `steps` or `epochs` than before
            extend a run. With `evaluate_on` and `evaluate_every` held-out documents measure the model.
        model: Model to start from: name, folder or hub id. Default: the recipe's.
        corpus: For `realm-pretrain`: retrieve from this corpus instead of the inputs. A text of the inputs that occurs
            in it too, in a document of the same id, is never retrieved for itself. For `npm-queries`: the corpus whose
            vectors are asked.
        base: Folder to read base encoder weights from, instead of the shipped ones.
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
    recipe, config = chosen(name, overrides or {}, corpus is not None, on_bad is not None)
    output = Path(output)
    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is a file; name a folder for the model")
    files = [str(inputs)] if isinstance(inputs, (str, Path)) else [str(file) for file in inputs]
    with needs_torch(f"recipe {name}"), ExitStack() as stack:
        from quoth.training.run import Run
        from quoth.training.trainer import Trainer

        world = _world(name, recipe, output, resume)
        run = Run(files, output, model or recipe.model, world, stack, base, corpus, preparing, on_bad)
        job = named(recipe.prepare)(run, config)
        trainer = Trainer(job.task, job.config, output, world)
        run.counter("training", job.config.steps)(trainer.step)
        done = trainer.run(progress, job.evaluation, seconds)
    world.shutdown()
    return done


def chosen(name: str, overrides: Mapping[str, object], corpus: bool, on_bad: bool) -> tuple[Recipe, LoopConfig]:
    """The recipe and its settings; `corpus` and `on_bad`: whether these were given. Raises InputError."""
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; it must be one of {', '.join(RECIPES)}{nearest(name, RECIPES)}")
    recipe = RECIPES[name]
    if "steps" in overrides and hasattr(recipe.config, "epochs"):
        raise InputError(
            f"`steps` cannot be set for the recipe {name} (it follows from the data); set `epochs` instead"
        )
    if corpus and not recipe.retrieves:
        raise InputError(
            f"corpus (--corpus) is for realm-pretrain and npm-queries, not for {name}; realm-qa has the setting "
            "corpus=DIR (--set)"
        )
    if on_bad and not recipe.skips_bad:
        raise InputError(f"on_bad (--skip-bad) is for the recipe reader, not for {name}; leave it out")
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
