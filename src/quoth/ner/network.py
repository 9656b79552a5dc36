"""The tagger's network, to be trained.

Knows: the network, its weights besides the encoder's on disk. Does not know: how texts are tagged with it (`tagger`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor, nn

from quoth.ner.tagger import HEAD_FILE
from quoth.ner.words import NUM_SHAPES
from quoth.storage import atomic_write_bytes

_OWN = ("shapes.", "head.")


class TagNetwork(nn.Module):
    """Scores of labels for each token. A word's shape is a learned vector added to its tokens' embeddings, so that an
    uncased encoder sees casing in all its layers."""

    def __init__(self, encoder: Any, num_labels: int) -> None:
        super().__init__()
        dimensions = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.shapes = nn.Embedding(NUM_SHAPES, dimensions)
        self.head = nn.Linear(dimensions, num_labels)
        nn.init.zeros_(self.shapes.weight)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, shapes_BT: Tensor) -> Tensor:
        """Logits [B, T, L] of inputs padded on the right; `shapes_BT` are numbers from `word_shapes`."""
        words_BTD = self.encoder.get_input_embeddings()(ids_BT) + self.shapes(shapes_BT)
        states = self.encoder(inputs_embeds=words_BTD, attention_mask=mask_BT).last_hidden_state
        logits_BTL: Tensor = self.head(states)
        return logits_BTL

    def save_head(self, folder: Path) -> None:
        """Write the weights that are not the encoder's, in fp16."""
        own = {name: value for name, value in self.state_dict().items() if name.startswith(_OWN)}
        halves = {name: value.detach().half().cpu().contiguous() for name, value in own.items()}
        atomic_write_bytes(folder / HEAD_FILE, save(halves))
