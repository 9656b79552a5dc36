"""LangChain: passages of a corpus as a retriever; tools to answer a question and verify a quotation.

Knows: LangChain's documents and tools. Does not know: how passages are ranked or questions answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool, ToolException
from pydantic import ConfigDict, PrivateAttr

from quoth.errors import QuothError
from quoth_serve.shared import Asking, Searching


class QuothRetriever(BaseRetriever):
    """The best passages of a corpus for a query.

    Args:
        corpus (str): The folder of a corpus.
        k (int): Number of passages; `invoke(query, k=…)` overrides it. Default: 5.
        mode ("auto" | "bm25" | "dense" | "hybrid"): As in `search` of the model. Default: "auto", which, like "bm25",
            needs no model.
        model (str | None): The model for searches by vectors, by name or folder. Default: None.
        where (str | None): A condition on the documents' metadata, as in `Corpus.where`. Default: None (all of them).

    Example:
        >>> QuothRetriever(corpus="wiki.quoth", k=3).invoke("opera by Bizet")[0].metadata["start"]  # doctest: +SKIP
        0
    """

    model_config = ConfigDict(extra="forbid")

    corpus: str
    k: int = 5
    mode: str = "auto"
    model: str | None = None
    where: str | None = None
    _searching: Searching = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the corpus. Raises CorpusNotFoundError, and InputError on another mode or a wrong condition."""
        self._searching = Searching(self.corpus, self.mode, self.model, self.where)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [
            Document(id=each.id, page_content=each.text, metadata=each.metadata)
            for each in self._searching.search(query, self.k if k is None else k)
        ]


def ask_tool(
    corpus: str | Path, model: str = "quoth-reader", top_k: int = 3, where: str | None = None
) -> StructuredTool:
    """A tool, `ask_corpus`, that answers a question with phrases of a corpus; an error in the question is reported to
    the assistant. `shared.Asking` describes its inputs and outputs.

    Example:
        >>> ask_tool("wiki.quoth").invoke({"question": "Who composed Carmen?"})  # doctest: +SKIP
    """
    asking = Asking(corpus, model, top_k, where)
    return _tool(asking.ask_corpus, asking.about_ask)


def verify_tool(corpus: str | Path) -> StructuredTool:
    """A tool, `verify_quote`, that checks whether words occur in a corpus. It needs no model. `shared.Asking` describes
    its output.

    Example:
        >>> verify_tool("wiki.quoth").invoke({"text": "an opera in four acts"})["occurs"]  # doctest: +SKIP
        True
    """
    asking = Asking(corpus)
    return _tool(asking.verify_quote, asking.about_verify)


def _tool(call: Callable[..., dict[str, Any]], description: str) -> StructuredTool:
    """A tool with this method's name and argument, which reports errors to the assistant."""

    @wraps(call)
    def told(**given: str) -> dict[str, Any]:
        try:
            return call(**given)
        except QuothError as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(told, description=description, handle_tool_error=True)
