"""Tuning how an NPM asks: an encoder of blanks, learned over the vectors of a corpus, which stay as they are.

Knows: where the answers of examples occur, the phrases that the current queries find, the loss, what is saved. Does not
know: the loop, or how vectors came about.

Query-side fine-tuning is DensePhrases' (Lee et al. 2021, §6): only what encodes queries learns, so nothing has to be
embedded again. Here that is an adapter which starts as that of the keys.

Shape suffixes that differ from the project's: S places of phrases, [S, 2] their first and last tokens.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from quoth.answers.equations import Sums
from quoth.answers.options import ResolvedOptions
from quoth.arrays import Floats, Rows
from quoth.corpus.corpus import Corpus
from quoth.datasets.judging import answer_ranges, holders
from quoth.datasets.questions import QAExample, read_questions
from quoth.encoders.tokens import QUERIES, queries_of
from quoth.encoders.transformer import load_base, pad
from quoth.errors import InputError
from quoth.hub import SETTINGS_FILE, ModelSource
from quoth.index.search import search_together
from quoth.index.vectors import top
from quoth.npm.config import NPMConfig, QueryConfig
from quoth.npm.model import NPM
from quoth.npm.phrases import ScoredPhrases
from quoth.storage import atomic_write_bytes, atomic_write_json
from quoth.training.adapter import save_adapter, trainable
from quoth.training.epochs import drawn
from quoth.training.run import Job, Run
from quoth.training.trainer import LOG, Step

if TYPE_CHECKING:
    from quoth.index.key_table import KeyHits, KeyTable

_PROPOSED = ResolvedOptions(combine="joint")
_NOT_COPIED = (LOG, "writer.lock", "README.md", SETTINGS_FILE)


def prepare(run: Run, config: QueryConfig) -> Job:
    """Read the examples, and find where in the corpus their answers occur."""
    if run.corpus is None:
        raise InputError("no corpus to learn from; name one that the model has embedded with --corpus DIR")
    source = run.source(NPMConfig)
    if source.config.num_masks == 1:
        raise InputError(f"model {source.name!r} answers with one token; npm-queries is for models of phrases")
    corpus, examples = Corpus.open(run.corpus), read_questions(*run.inputs)
    npm = NPM.from_pretrained(source.name, corpus, base=run.base)
    run.claim()
    progress = run.counter("finding answers in passages", corpus.num_passages)
    return Job(QueryTask(npm, source, examples, config, run.device, progress), config)


class QueryTask:
    """Learns to encode blanks.

    Raises InputError if an example is not a text with one blank, no answer occurs in the corpus, or vectors are
    missing, EncoderMismatchError if the corpus has another model's.
    """

    def __init__(
        self,
        npm: NPM,
        source: ModelSource[NPMConfig],
        examples: Sequence[QAExample],
        config: QueryConfig,
        device: str = "cpu",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self._source, self._keys = source, npm.encoder
        texts = [npm.with_mask(each.text) for each in examples]
        inputs = [npm.encoder.query_tokens(text) for text in texts]
        self._tokens = AllTokens(npm.tables())
        places = places_of(examples, self._tokens, progress)
        held = [number for number, right_S2 in enumerate(places) if len(right_S2)]
        if not held:
            raise InputError(
                f"no answer to any of the {len(examples)} examples occurs in {npm.corpora[0].path}; give other "
                "examples, or a corpus that answers them"
            )
        self.examples, self._places = [examples[number] for number in held], [places[number] for number in held]
        self._inputs = [inputs[number] for number in held]
        encoder, hf = load_base(source.encoder)
        start = queries_of(source) or source.encoder
        self.model, self.parameters = trainable(encoder, config, self.device, str(start.adapter or ""))
        self._pad_id = int(hf.pad_token_id or 0)

    def backward(self, step: int) -> Step:
        """Add the gradient of the mean loss of the step's examples."""
        size = min(self.config.batch_size, len(self.examples))
        numbers = drawn(step, size, len(self.examples), self.config.seed, 5)
        q_B2D = self.queries(numbers)
        q_2BD = np.ascontiguousarray(q_B2D.detach().cpu().numpy().swapaxes(0, 1))
        found = search_together(self._tokens.tables, [()] * size, q_2BD, self.config.k)
        losses = [self.loss(*each) for each in zip(numbers, q_B2D, found, strict=True)]
        loss = torch.stack(losses).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return Step(loss.item(), sum(len(self._inputs[number][0]) for number in numbers))

    def queries(self, numbers: Sequence[int]) -> Tensor:
        """The examples' start and end queries, with gradients: [B, 2, D]."""
        inputs = [self._inputs[number] for number in numbers]
        ids_BT, mask_BT = pad([ids for ids, _ in inputs], self._pad_id)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.bf16):
            states = self.model(input_ids=ids_BT.to(self.device), attention_mask=mask_BT.to(self.device))
        places_B2 = torch.from_numpy(np.stack([places for _, places in inputs])).to(self.device)
        rows_B1 = torch.arange(len(inputs), device=self.device)[:, None]
        q_B2D: Tensor = states.last_hidden_state[rows_B1, places_B2].float()
        return torch.nn.functional.normalize(q_B2D, dim=-1) if self._keys.config.normalize else q_B2D

    def loss(self, number: int, q_2D: Tensor, hits: Sequence[KeyHits]) -> Tensor:
        """−log of the share that the places of the example's answers have of Σ exp(sim(q_start, c_i) + sim(q_end, c_j))
        over these and what the search proposes, the `phrases` highest of each: a scalar. Lee et al. 2021, §6, with
        NPM's score (A.1)."""
        most, right_S2, now_2D = self.config.phrases, self._places[number], q_2D.detach().cpu().numpy()
        found = ScoredPhrases(hits, now_2D[0], now_2D[1], _PROPOSED).occurrences(Sums())
        best = top(found.log_score_C.astype(np.float32), most).rows_K
        proposed_S2 = np.stack([found.start_C[best], found.end_C[best]], axis=1)
        proposed_S2 += self._tokens.first_P[found.part_C[best], None]
        wrong_S2 = proposed_S2[~np.isin(_names(proposed_S2), _names(right_S2))]
        if len(right_S2) > most:
            right_S2 = right_S2[top(self._scores(right_S2, q_2D.detach()).cpu().numpy(), most).rows_K]
        score_S = self._scores(np.concatenate([right_S2, wrong_S2]), q_2D)
        return score_S.logsumexp(dim=0) - score_S[: len(right_S2)].logsumexp(dim=0)

    def _scores(self, places_S2: Rows, q_2D: Tensor) -> Tensor:
        """sim(q_start, c_i) + sim(q_end, c_j) of places: [S]."""
        c_S2D = torch.from_numpy(self._tokens.vectors(places_S2.ravel())).reshape(len(places_S2), 2, -1)
        return self._keys.scale * torch.einsum("smd,md->s", c_S2D.to(self.device), q_2D)

    def save_model(self, folder: Path) -> None:
        """Write the adapter of queries in fp16, in addition to a copy of the model whose keys they are compared with.
        The file that makes the folder a model, quoth.json, comes last."""
        own, settings = self._source.folder, self._source.config
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(own.iterdir()) if own is not None else ():
            if file.is_file() and file.name not in _NOT_COPIED and not (folder / file.name).exists():
                atomic_write_bytes(folder / file.name, file.read_bytes())
        save_adapter(folder / QUERIES, self.model, settings.base or self._source.base)
        atomic_write_json(folder / SETTINGS_FILE, settings.to_dict())

    def settings(self) -> dict[str, Any]:
        asked = hashlib.sha256(repr([(each.text, each.answers) for each in self.examples]).encode()).hexdigest()
        data = {"examples": asked[:16], "tokens": len(self._tokens)}
        return {"model": {"keys": self._keys.fingerprint[:16]}, "data": data}


class AllTokens:
    """The tokens of several tables as the rows of one."""

    def __init__(self, tables: Sequence[KeyTable]) -> None:
        self.tables = tables
        self.first_P = np.cumsum([0, *(keys.num_keys for keys in tables)])

    def __len__(self) -> int:
        return int(self.first_P[-1])

    def vectors(self, row_R: Rows) -> Floats:
        """Their vectors as they are stored: [R, D]."""
        part_R = np.searchsorted(self.first_P, row_R, side="right") - 1
        vectors_RD = np.empty((len(row_R), self.tables[0].vectors.dimensions), np.float32)
        for part in np.unique(part_R):
            vectors_RD[part_R == part] = self.tables[part].vectors.floats(row_R[part_R == part] - self.first_P[part])
        return vectors_RD


def places_of(
    examples: Sequence[QAExample], tokens: AllTokens, progress: Callable[[int], None] | None = None
) -> list[Rows]:
    """The first and last token of every occurrence of an example's answers, in the order of the corpus: [S, 2] for each
    example."""
    wanted = list(dict.fromkeys((each.answers, each.pattern) for each in examples))
    asked = [QAExample("", "", answers, pattern) for answers, pattern in wanted]
    passages = [
        (part, p)
        for part, keys in enumerate(tokens.tables)
        for p in range(len(keys.passage_rows_P))
        if keys.live_P is None or keys.live_P[p]
    ]
    texts = (tokens.tables[part].passage(p).text for part, p in passages)
    numbers_of: defaultdict[int, list[int]] = defaultdict(list)
    for number, held_in in holders(asked, texts, progress=progress).items():
        for passage in held_in:
            numbers_of[passage].append(number)
    found: list[list[tuple[int, int]]] = [[] for _ in asked]
    for at, numbers in sorted(numbers_of.items()):
        part, p = passages[at]
        in_passage = _places_in(tokens.tables[part], p, [asked[number] for number in numbers])
        for number, places in zip(numbers, in_passage, strict=True):
            found[number] += [(tokens.first_P[part] + first, tokens.first_P[part] + last) for first, last in places]
    rows = {answers: np.array(places, np.int64).reshape(-1, 2) for answers, places in zip(wanted, found, strict=True)}
    return [rows[each.answers, each.pattern] for each in examples]


def _places_in(keys: KeyTable, p: int, asked: Sequence[QAExample]) -> list[list[tuple[int, int]]]:
    """For each example the first and last rows of its answers in a passage of the table, if they are whole tokens."""
    passage, (first, last) = keys.passage(p), keys.offsets_P1[p : p + 2]
    row_of_start = dict(zip(keys.start_N[first:last].tolist(), range(first, last), strict=True))
    row_of_end = dict(zip(keys.end_N[first:last].tolist(), range(first, last), strict=True))
    found = []
    for example in asked:
        ranges = ((passage.start + start, passage.start + end) for start, end in answer_ranges(passage.text, example))
        rows = ((row_of_start.get(start, last), row_of_end.get(end, -1)) for start, end in ranges)
        found.append([(i, j) for i, j in rows if i <= j])
    return found


def _names(places_S2: Rows) -> Rows:
    """A number for each place, equal for equal ones; a phrase is shorter than 2^20 tokens."""
    return (places_S2[:, 0] << 20) + places_S2[:, 1] - places_S2[:, 0]
