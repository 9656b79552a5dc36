"""The training loop, its settings, adapters, losses that are shared, several processes."""
