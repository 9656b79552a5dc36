"""Texts before any model: words, sentences, passages, tokens with their characters, boundaries, terms. No torch."""
