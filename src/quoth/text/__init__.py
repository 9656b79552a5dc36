"""Texts before any model: words, tokens with their characters, where phrases may end, search terms. No torch."""
