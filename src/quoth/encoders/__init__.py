"""Texts to vectors: loading, precision, batches; what all systems share.

All use an `encoder.Encoder`; `graph` opens it in ONNX Runtime where it can, and needs no PyTorch for that, else
`transformer` in PyTorch.
"""
