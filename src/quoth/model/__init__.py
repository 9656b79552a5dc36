"""The base of what people call: loading, one text or many, options."""
