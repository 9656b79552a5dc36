"""LangChain: passages of a corpus as a retriever.

Knows: LangChain's documents. Does not know: how passages are ranked.
"""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, PrivateAttr

from quoth.integrations.passages import Searching


class QuothRetriever(BaseRetriever):
    """The passages of a corpus that match a query best.

    Args:
        corpus (str): The folder of a corpus.
        k (int): Number of passages; `invoke(query, k=…)` overrides it. Default: 5.
        mode ("bm25" | "dense" | "hybrid"): As in `search` of the model. Default: "bm25", which needs no model.
        model (str | None): What searches by vectors, by name or folder. Default: None.

    Example:
        >>> QuothRetriever(corpus="wiki.quoth", k=3).invoke("opera by Bizet")[0].metadata["start"]  # doctest: +SKIP
        0
    """

    model_config = ConfigDict(extra="forbid")

    corpus: str
    k: int = 5
    mode: str = "bm25"
    model: str | None = None
    _searching: Searching = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the corpus. Raises CorpusNotFoundError, and InputError on another mode."""
        self._searching = Searching(self.corpus, self.mode, self.model)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [
            Document(id=each.id, page_content=each.text, metadata=each.metadata)
            for each in self._searching.search(query, self.k if k is None else k)
        ]
