"""Texts compared with the corpus, character by character: quotations and citations."""
