"""REALM's recipes: warm start, pre-training, fine-tuning, each from files to a run that goes on where it was stopped.

Knows: numbers that work, and how documents and questions become a run. Does not know: the loop, or what a step is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.manifest import snapshots
from quoth.datasets.questions import read_questions
from quoth.encoders.passage_encoder import PassageEncoder
from quoth.encoders.pretrained import REALMSource, locate_realm
from quoth.errors import InputError
from quoth.ner.tagger import Tagger
from quoth.retrieval.tables import KeyTables
from quoth.storage import WriterLock, atomic_write_bytes, remove
from quoth.training.distributed import World
from quoth.training.finetune import FineTuneTask
from quoth.training.ict import ICTTask
from quoth.training.index_refresh import IndexRefresher
from quoth.training.pretrain import PretrainTask
from quoth.training.probe import Probe
from quoth.training.realm_model import TrainedREALM
from quoth.training.recipes import device_of, state, with_overrides, without
from quoth.training.salient import MaskedTexts
from quoth.training.settings import FineTuneConfig, ICTConfig, LoopConfig, PretrainConfig
from quoth.training.trainer import Evaluation, Progress, Task, Trainer

CORPUS = "corpus.quoth"
PRETRAIN = "realm-pretrain"
Report = Callable[[Progress], None]
Count = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class REALMRecipe:
    """A model to start from and how to train it."""

    model: str
    train: ICTConfig | PretrainConfig | FineTuneConfig


def realm_ict() -> REALMRecipe:
    """Warm start: towers learn to find a passage by a sentence of it; from random heads or to adapt good ones."""
    config = ICTConfig(steps=300, batch_size=32, learning_rate=3e-4, warmup_steps=20, bf16=True)
    return REALMRecipe("quoth-realm-base", config)


def realm_pretrain() -> REALMRecipe:
    """REALM's pre-training in small, some hundred steps on two CPU cores."""
    config = PretrainConfig(
        steps=300,
        batch_size=8,
        learning_rate=3e-4,
        warmup_steps=20,
        bf16=True,
        exclude_self="passage",
        refresh_every=100,
        splitter="words:60",
    )
    return REALMRecipe("quoth-realm-base", config)


def realm_qa() -> REALMRecipe:
    """Open question answering: files of questions, over the corpus that the setting `corpus` names.

    A beam as small as this leaves out passages that hold an answer's text by chance: with few questions they are more
    than the right ones.
    """
    config = FineTuneConfig(
        steps=500,
        batch_size=8,
        retriever_beam_size=20,
        learning_rate=3e-4,
        warmup_steps=20,
        bf16=True,
        force_positive=True,
    )
    return REALMRecipe("quoth-realm-base", config)


def realm_pretrain_paper() -> REALMRecipe:
    """REALM's pre-training by the paper's numbers (Guu et al. 2020, §4.3), all of BERT's weights; for many GPUs. Start
    from a model that `realm-ict` warmed up."""
    config = PretrainConfig(
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
    return REALMRecipe("quoth-realm-base", config)


def realm_qa_paper() -> REALMRecipe:
    """Open question answering by ORQA's numbers (Lee et al. 2019, §6.2), which REALM takes over: two epochs over the
    79,168 questions of Natural Questions, one question a step."""
    config = FineTuneConfig(
        steps=158_336,
        batch_size=1,
        retriever_beam_size=5000,
        learning_rate=1e-5,
        warmup_steps=10_000,
        lora_rank=0,
        dropout=0.1,
        checkpoint_every=1_000,
    )
    return REALMRecipe("quoth-realm-base", config)


REALM_RECIPES: dict[str, Callable[[], REALMRecipe]] = {
    "realm-ict": realm_ict,
    PRETRAIN: realm_pretrain,
    "realm-qa": realm_qa,
    "realm-pretrain-paper": realm_pretrain_paper,
    "realm-qa-paper": realm_qa_paper,
}


def run_realm_recipe(
    name: str,
    inputs: Sequence[str],
    output: Path,
    overrides: dict[str, str],
    *,
    model: str | None = None,
    base: str | None = None,
    seconds: float = math.inf,
    progress: Report | None = None,
    reading: Count | None = None,
    corpus: str | Path | None = None,
) -> bool:
    """Train by a recipe on documents (files, or one corpus), or on questions; goes on where it was broken off.

    `corpus` names another corpus, from which realm-pretrain retrieves passages for the documents' texts (the paper's
    X = CC-News and Z = Wikipedia); without it they are retrieved from the documents themselves. What of a text stands
    in that corpus too, in a document of the same id, is never retrieved for it.

    `model` takes the place of the recipe's. After `seconds` the run stops; returns whether it is done. `reading` is
    told documents or passages done. Raises InputError on an unknown recipe or setting, LockedError while another
    process trains into `output`.
    """
    if name not in REALM_RECIPES:
        raise InputError(f"recipe {name!r}; allowed are {', '.join(REALM_RECIPES)}")
    if corpus is not None and not name.startswith(PRETRAIN):
        raise InputError(f"corpus is what {PRETRAIN} retrieves from, not {name}; realm-qa has a setting corpus=DIR")
    recipe = REALM_RECIPES[name]()
    config = with_overrides(recipe.train, overrides)
    source = locate_realm(model or recipe.model, base)
    output.mkdir(parents=True, exist_ok=True)
    world = World.join()
    run = Run(inputs, output, source, base, world, seconds, progress, reading, corpus)
    with WriterLock(output / "writer.lock") if world.is_main else nullcontext():
        match config:
            case ICTConfig():
                done = run.warm_start(config)
            case PretrainConfig():
                done = run.pretrain(config)
            case FineTuneConfig():
                done = run.fine_tune(config)
    world.shutdown()
    return done


@dataclass(frozen=True, slots=True)
class Run:
    """One run's inputs and where it goes."""

    inputs: Sequence[str]
    output: Path
    source: REALMSource
    base: str | None
    world: World
    seconds: float
    progress: Report | None
    reading: Count | None
    searched: str | Path | None = None

    def warm_start(self, config: ICTConfig) -> bool:
        """The inverse cloze task."""
        corpus = self._shared_corpus(config)
        model = self._model(config, ("passages", "queries"))
        return self._train(ICTTask(model, corpus, config, self.world), config)

    def pretrain(self, config: PretrainConfig) -> bool:
        """Masked words, with passages found for them."""
        other = None if self.searched is None else Corpus.open(self.searched)
        corpus = self._shared_corpus(config)
        if other is not None and other.path.resolve() == corpus.path.resolve():
            other = None
        candidates = replace(self.source.config, num_candidates=config.num_candidates)
        run = replace(self, source=replace(self.source, config=candidates))
        model = run._model(config, ("passages", "queries", "reader"))
        tagger_of = cache(lambda name: Tagger.load(name, base=self.base, device=device_of(self.world)))
        tagger = tagger_of(config.tagger) if config.masking == "salient" else None
        room = model.config.query_tokens - 2
        texts = MaskedTexts(corpus, model.tokenizer, room, config.masking, tagger)
        with ExitStack() as stack:
            evaluation = None
            if config.evaluate_on and self.world.is_main:
                documents, told = read_documents(config.evaluate_on), tagger_of(PretrainConfig().tagger)
                probe = stack.enter_context(closing(Probe(documents, config, told, config.evaluate_blanks)))
                evaluation = Evaluation(
                    config.evaluate_every, lambda folder: probe.measure(locate_realm(str(folder), self.base))
                )
            dtype = "bf16" if config.bf16 else "fp32"
            every, asynchronous = config.refresh_every, config.asynchronous
            refresher = IndexRefresher(self.output, other or corpus, every, asynchronous, self.base, dtype, self.world)
            stack.callback(refresher.close)
            return self._train(PretrainTask(model, texts, refresher, config, other, self.world), config, evaluation)

    def fine_tune(self, config: FineTuneConfig) -> bool:
        """Questions, over passage vectors that stay as they are."""
        if not config.corpus:
            raise InputError("no corpus to answer from; name one with --set corpus=DIR")
        corpus = Corpus.open(config.corpus)
        questions = read_questions(*self.inputs, skip_bad=True)
        encoder = PassageEncoder.load(self.source)
        if KeyTables(corpus, encoder).missing():
            raise InputError(
                f"{corpus.path}: not all passages have vectors of {encoder.name}; "
                f"`quoth embed {corpus.path} --model {encoder.name}` makes them"
            )
        model = self._model(config, ("queries", "reader"), own_queries=True)
        task = FineTuneTask(model, encoder, corpus, questions, config, self.reading, self.world)
        return self._train(task, config)

    def _model(self, config: LoopConfig, trained: Sequence[str], own_queries: bool = False) -> TrainedREALM:
        return TrainedREALM(
            self.source,
            trained=trained,
            lora_rank=config.lora_rank,
            seed=config.seed,
            own_queries=own_queries,
            device=device_of(self.world),
            bf16=config.bf16,
            dropout=config.dropout,
        )

    def _train(self, task: Task, config: LoopConfig, evaluation: Evaluation | None = None) -> bool:
        return Trainer(task, config, self.output, self.world).run(self.progress, evaluation, self.seconds)

    def _shared_corpus(self, config: ICTConfig | PretrainConfig) -> Corpus:
        """The first process's, which makes it where it is not there."""
        if self.world.is_main:
            self._corpus(config)
        self.world.barrier()
        return self._corpus(config)

    def _corpus(self, config: ICTConfig | PretrainConfig) -> Corpus:
        """The corpus that was given, or the run's own of the documents given, made once."""
        if len(self.inputs) == 1 and snapshots(Path(self.inputs[0])):
            if config.exclude:
                raise InputError(
                    f"exclude leaves documents out of files, not of a corpus; delete them in {self.inputs[0]}"
                )
            return Corpus.open(self.inputs[0])
        folder, label = self.output / CORPUS, self.output / "corpus.json"
        wanted = json.dumps(
            {
                "documents": [state(path) for path in self.inputs],
                "exclude": state(config.exclude),
                "splitter": config.splitter,
            }
        ).encode()
        if label.is_file() and label.read_bytes() == wanted:
            return Corpus.open(folder)
        label.unlink(missing_ok=True)
        if folder.exists():
            remove(folder)
        corpus = Corpus.create(folder, splitter=config.splitter)
        corpus.add(without(read_documents(*self.inputs), config.exclude), self.reading)
        atomic_write_bytes(label, wanted)
        return corpus
