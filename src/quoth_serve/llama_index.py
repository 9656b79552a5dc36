"""LlamaIndex: passages of a corpus as nodes that know their characters; tools to answer a question and verify a
quotation.

Knows: LlamaIndex's nodes and tools. Does not know: how passages are ranked or questions answered.
"""

from __future__ import annotations

from pathlib import Path

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.tools import FunctionTool

from quoth_serve.shared import PLACE_KEYS, Asking, Searching

HIDDEN = [key for key in PLACE_KEYS if key != "title"]
"""Metadata for programs, which would only distract a language model."""


class QuothRetriever(BaseRetriever):
    """The best passages of a corpus for a query, as nodes.

    `start_char_idx` and `end_char_idx` count the code points of the document's text; the node's source is the document.
    Language models and encoders see the title and the document's own metadata, but not the place and the score.

    Args:
        corpus (str | Path): The folder of a corpus.
        k (int): Number of passages. Default: 5.
        mode ("auto" | "bm25" | "dense" | "hybrid"): As in `search` of the model. Default: "auto", which, like "bm25",
            needs no model.
        model (str | None): The model for searches by vectors, by name or folder. Default: None.
        where (str | None): A condition on the documents' metadata, as in `Corpus.where`. Default: None (all of them).

    Example:
        >>> QuothRetriever("wiki.quoth", k=3).retrieve("opera by Bizet")[0].node.start_char_idx  # doctest: +SKIP
        0
    """

    def __init__(
        self,
        corpus: str | Path,
        k: int = 5,
        mode: str = "auto",
        model: str | None = None,
        where: str | None = None,
    ) -> None:
        self._searching, self._k = Searching(corpus, mode, model, where), k
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=each.id,
                    text=each.text,
                    start_char_idx=each.metadata["start"],
                    end_char_idx=each.metadata["end"],
                    metadata=each.metadata,
                    excluded_llm_metadata_keys=HIDDEN,
                    excluded_embed_metadata_keys=HIDDEN,
                    relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=each.metadata["document_id"])},
                ),
                score=each.metadata["score"],
            )
            for each in self._searching.search(query_bundle.query_str, self._k)
        ]


def ask_tool(corpus: str | Path, model: str = "quoth-reader", top_k: int = 3, where: str | None = None) -> FunctionTool:
    """A tool, `ask_corpus`, that answers a question with phrases of a corpus. `shared.Asking` describes its inputs and
    outputs.

    Example:
        >>> ask_tool("wiki.quoth").call(question="Who composed Carmen?").raw_output  # doctest: +SKIP
    """
    asking = Asking(corpus, model, top_k, where)
    return FunctionTool.from_defaults(asking.ask_corpus, description=asking.about_ask)


def verify_tool(corpus: str | Path) -> FunctionTool:
    """A tool, `verify_quote`, that checks whether words occur in a corpus. It needs no model. `shared.Asking` describes
    its output.

    Example:
        >>> verify_tool("wiki.quoth").call(text="an opera in four acts").raw_output["occurs"]  # doctest: +SKIP
        True
    """
    asking = Asking(corpus)
    return FunctionTool.from_defaults(asking.verify_quote, description=asking.about_verify)
