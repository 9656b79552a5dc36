"""The rows of a table asked on a Ray cluster: an actor per CPU, each with the corpus and the reader.

Knows: which actor asks which row. Does not know: how a row is asked, or what is kept of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quoth.corpus.corpus import Corpus
from quoth.corpus.view import parts
from quoth.tables.asking import Asker, rows_of
from quoth.tables.cells import Row
from quoth.tables.columns import Column
from quoth.tables.table import Asks
from quoth_ray.cluster import ModelName, connect, unwrapped
from quoth_ray.remote import KEYS, TEXT, RemoteFolder

RETRIES = 10


class RowActor:
    """Asks the columns' questions of rows of the corpus at a place, in one process of the cluster."""

    def __init__(
        self,
        place: RemoteFolder,
        snapshot: int,
        condition: str,
        by: str | None,
        columns: Sequence[Column],
        model: ModelName,
    ) -> None:
        from quoth.reader.runtime import open_reader

        place.fetch(*TEXT, KEYS)
        corpus = Corpus.open(place.path, snapshot)
        corpus = parts([corpus], condition)[0] if condition else corpus
        reader = open_reader(model.name, device=model.device, dtype=model.dtype, base=model.base)
        self._asker, self._rows = Asker(reader, corpus, columns), rows_of(corpus, by)

    def row(self, key: str) -> Row:
        """A row by its key."""
        return self._asker.row(key, self._rows[key])


def asking(place: RemoteFolder, model: ModelName) -> Asks:
    """What asks rows of the corpus at a folder or URL, by a reader that every machine can load."""

    def asks(corpus: Corpus, columns: Sequence[Column], by: str | None, keys: Sequence[str]) -> Iterator[Row]:
        from ray.util import ActorPool

        import ray

        if not keys:
            return
        given = place, corpus.snapshot, corpus.condition, by, columns, model
        actor = ray.remote(num_cpus=1, max_restarts=RETRIES, max_task_retries=RETRIES)(RowActor)
        num_actors = min(connect(), len(keys))
        actors: list[Any] = [actor.remote(*given) for _ in range(num_actors)]
        pool: Any = ActorPool(actors)
        for key in keys:
            pool.submit(lambda one, key: one.row.remote(key), key)
        try:
            while pool.has_next():
                yield unwrapped(pool.get_next_unordered)
        finally:
            for each in actors:
                ray.kill(each)

    return asks
