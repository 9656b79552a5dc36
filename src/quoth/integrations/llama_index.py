"""LlamaIndex: passages of a corpus as nodes that know their characters.

Knows: LlamaIndex's nodes. Does not know: how passages are ranked.
"""

from __future__ import annotations

from pathlib import Path

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from quoth.integrations.passages import Searching


class QuothRetriever(BaseRetriever):
    """The passages of a corpus that match a query best, as nodes.

    `start_char_idx` and `end_char_idx` count the code points of the document's text; the node's source is the document.

    Args:
        corpus (str | Path): The folder of a corpus.
        k (int): Number of passages. Default: 5.
        mode ("bm25" | "dense" | "hybrid"): As in `search` of the model. Default: "bm25", which needs no model.
        model (str | None): What searches by vectors, by name or folder. Default: None.

    Example:
        >>> QuothRetriever("wiki.quoth", k=3).retrieve("opera by Bizet")[0].node.start_char_idx  # doctest: +SKIP
        0
    """

    def __init__(self, corpus: str | Path, k: int = 5, mode: str = "bm25", model: str | None = None) -> None:
        self._searching, self._k = Searching(corpus, mode, model), k
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=each.id,
                    text=each.text,
                    start_char_idx=each.start,
                    end_char_idx=each.end,
                    metadata=each.metadata,
                    relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=each.document_id)},
                ),
                score=each.score,
            )
            for each in self._searching.search(query_bundle.query_str, self._k)
        ]
