"""The route that lists the fields for `where`.

Knows how much of a field is listed. Does not know how fields are counted.
"""

# No postponed annotations: FastAPI reads those of functions within functions.

import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Query
from starlette.responses import Response

from quoth.corpus.corpus import Corpus
from quoth.corpus.facets import LONGEST, Facet, joined
from quoth_serve.batches import BatchQueue
from quoth_serve.originals import Opened
from quoth_serve.problems import JSON
from quoth_serve.replies import CorpusPlace, Fields

MOST_FIELDS, MOST_VALUES = 50, 12


def add_fields(api: FastAPI, view: Callable[..., Awaitable[Opened]], reads: BatchQueue) -> None:
    """Add the route; `view` opens corpora."""
    counting = threading.Lock()

    @api.get("/v1/fields", response_model=Fields)
    async def fields(place: Annotated[CorpusPlace, Query()]) -> Response:
        """The fields of the documents' metadata, which `where` can test, and their most frequent values."""
        opened = await view(place.corpus, place.snapshot)

        def count() -> Response:
            with counting:  # whoever waits finds it counted
                return JSON(told(opened.corpora))

        return await reads.reply(count)


def told(corpora: Sequence[Corpus]) -> dict[str, Any]:
    """The fields of some corpora, the most common first, as in `replies.Fields`."""
    facets = joined(each.facets for each in corpora)
    names = sorted((name for name in facets if len(name) <= LONGEST), key=lambda name: (-facets[name].documents, name))
    return {
        "documents": sum(each.num_documents for each in corpora),
        "fields": [_field(name, facets[name]) for name in names[:MOST_FIELDS]],
        "snapshots": {each.name: each.snapshot for each in corpora},
    }


def _field(name: str, facet: Facet) -> dict[str, Any]:
    least, most = facet.ends or (None, None)
    return {
        "name": name,
        "documents": facet.documents,
        "distinct": None if facet.counts is None else len(facet.counts),
        "values": [{"value": value, "documents": count} for value, count in facet.most_common(MOST_VALUES)],
        "least": least,
        "most": most,
    }
