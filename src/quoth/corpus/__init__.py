"""Documents on disk: passages, segments, snapshots, BM25, quotations. Knows no model."""
