"""The network of a tagger: an encoder that sees the shapes of words, and a linear head.

Knows: how shapes are added to the input, and what is saved next to an adapter. Does not know: texts, names of labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from quoth.errors import ModelNotFoundError
from quoth.storage import atomic_write_bytes
from quoth.text.words import NUM_SHAPES

HEAD_FILE = "tagger.safetensors"
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

    def load_head(self, folder: Path) -> None:
        """Read what `save_head` wrote. Raises ModelNotFoundError if it is missing, damaged or of a different size."""
        file = folder / HEAD_FILE
        try:
            saved = {name: value.float() for name, value in load_file(file).items()}
        except (OSError, SafetensorError) as error:
            raise ModelNotFoundError(f"{file} cannot be read ({error}); fetch or train it again") from error
        expected = {name: list(v.shape) for name, v in self.state_dict().items() if name.startswith(_OWN)}
        shapes = {name: list(v.shape) for name, v in saved.items()}
        if shapes != expected:
            raise ModelNotFoundError(
                f"{file} has shapes {shapes}, not {expected}; name the base and labels it was trained with"
            )
        with torch.no_grad():
            self.load_state_dict(saved, strict=False)
