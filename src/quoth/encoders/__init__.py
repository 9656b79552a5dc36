"""Texts to vectors: loading, precision, batches; what all systems share."""
