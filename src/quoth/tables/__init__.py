"""Tables over a corpus: a row per document, a column per question, every cell a place in a document or empty."""
