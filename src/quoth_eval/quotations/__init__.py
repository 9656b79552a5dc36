"""The benchmark of quotation checkers: sentences of a corpus, quoted faithfully and forged."""
